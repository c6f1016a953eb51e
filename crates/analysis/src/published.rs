//! Figures that others have published, to set beside ours. The tables are in `data/`.

pub mod modern;

use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error};

/// A file of published figures that cannot be read, which no release has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("data/{file}: {what}")]
pub struct PublishedError {
    /// Its name.
    pub file: &'static str,
    /// What is wrong with it, and in which line.
    pub what: String,
}

/// The rows of a file: comment lines, a header, and a row a line.
fn rows<T: DeserializeOwned>(file: &'static str, text: &str) -> Result<Vec<T>, PublishedError> {
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
    let wrong = |error: csv::Error| PublishedError { file, what: error.to_string() };
    reader.deserialize().map(|row| row.map_err(wrong)).collect()
}

/// A number above 0.
fn positive<'de, D: Deserializer<'de>>(field: D) -> Result<f64, D::Error> {
    let number = f64::deserialize(field)?;
    let is_sound = number.is_finite() && number > 0.0;
    is_sound.then_some(number).ok_or_else(|| D::Error::custom(format!("{number} is not above 0")))
}

/// Hines, Wyatt and Chang (2000): Pentium Pro, 166 MHz, Linux 2.2.14; `data/hines2000.csv`.
pub mod hines2000 {
    /// The cost of one call in CPU cycles.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct CallCost {
        /// Mean.
        pub mean_cycles: f64,
        /// Standard deviation.
        pub sd_cycles: f64,
    }

    /// getrusage() (their table 1).
    pub const GETRUSAGE: CallCost = CallCost { mean_cycles: 416.0, sd_cycles: 161.0 };
    /// Their getpinfo() (table 1).
    pub const GETPINFO: CallCost = CallCost { mean_cycles: 213.0, sd_cycles: 66.0 };
    /// malloc of a small block, mean in cycles (table 2).
    pub const MALLOC_CYCLES: f64 = 591.0;
    /// What getpinfo() gains over getrusage() in precision, in percent (section 4).
    pub const PRECISION_GAIN_PERCENT: f64 = 527.0;
}

/// VenturCom, "VENIX Kernel Response Time" (1984): `data/venix1984.csv` as typed values.
pub mod venix1984 {
    use serde::Deserialize;

    use super::{PublishedError, positive, rows};

    /// What one processor took, in milliseconds as printed.
    #[derive(Debug, Clone, PartialEq, Deserialize)]
    pub struct VenixProcessor {
        /// Its name.
        #[serde(rename = "processor")]
        pub name: String,
        /// Its clock, where the memorandum says.
        pub clock_mhz: Option<f64>,
        /// A system call: getuid.
        #[serde(rename = "syscall_overhead_ms", deserialize_with = "positive")]
        pub system_call_ms: f64,
        /// Average interrupt latency, estimated.
        #[serde(deserialize_with = "positive")]
        pub interrupt_latency_ms: f64,
        /// A signal to oneself, caught and its handler installed again.
        #[serde(rename = "signal_time_ms", deserialize_with = "positive")]
        pub signal_ms: f64,
        /// Of that the kernel's processing.
        #[serde(rename = "signal_kernel_ms", deserialize_with = "positive")]
        pub kernel_processing_ms: f64,
        /// A loop of two processes that send each other a signal.
        #[serde(rename = "twosig_loop_ms", deserialize_with = "positive")]
        pub two_process_loop_ms: f64,
        /// A context switch.
        #[serde(deserialize_with = "positive")]
        pub context_switch_ms: f64,
    }

    /// The figures that come with the program.
    pub fn published() -> Result<Vec<VenixProcessor>, PublishedError> {
        rows("venix1984.csv", CSV)
    }

    pub(super) const CSV: &str = include_str!("../../../data/venix1984.csv");
}

/// Sloan, "Context Switch Time Scalability: Benchmark Results" (1992), Appendix 1:
/// `data/sloan1992.csv` as typed values.
pub mod sloan1992 {
    use std::num::NonZeroU32;

    use serde::Deserialize;

    use super::{PublishedError, positive, rows};

    pub(super) const CSV: &str = include_str!("../../../data/sloan1992.csv");

    /// Laps of every run.
    const LAPS: f64 = 1e6;

    /// A ring of one size on one machine: a line of the file.
    #[derive(Debug, Clone, PartialEq, Deserialize)]
    pub struct SloanRow {
        /// Who made the machine.
        pub vendor: String,
        /// Its model.
        pub model: String,
        /// Number of its CPUs.
        pub cpus: NonZeroU32,
        /// Its operating system.
        pub os: String,
        /// Members of the ring.
        pub processes: NonZeroU32,
        /// Real time of a million laps, in seconds as printed.
        #[serde(deserialize_with = "positive")]
        pub real_s: f64,
        /// CPU time of all members.
        #[serde(deserialize_with = "positive")]
        pub cpu_s: f64,
        /// Its user part.
        #[serde(deserialize_with = "positive")]
        pub user_s: f64,
        /// Its system part.
        #[serde(deserialize_with = "positive")]
        pub system_s: f64,
        /// CPU time of the ring of two, scaled to this size, as printed.
        #[serde(deserialize_with = "positive")]
        pub projected_s: f64,
    }

    impl SloanRow {
        /// One of its times in nanoseconds a hop.
        pub fn ns_per_hop(&self, seconds: f64) -> f64 {
            seconds * 1e9 / (LAPS * f64::from(self.processes.get()))
        }

        /// Model and operating system.
        pub fn machine(&self) -> (&str, &str) {
            (&self.model, &self.os)
        }
    }

    /// The figures that come with the program: the rings of a machine one after the other.
    pub fn published() -> Result<Vec<SloanRow>, PublishedError> {
        rows("sloan1992.csv", CSV)
    }
}

/// The published figures of Li, Ding and Shen (2007), "Quantifying the Cost of Context Switch":
/// `data/li2007.csv` and `data/li2007_times.csv` as typed values.
///
/// Their machine: dual Pentium Xeon, 2.0 GHz, 512 KB second-level cache, Linux 2.6.17.
pub mod li2007 {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer};
    use stats::{Interval, SampleSummary};

    use super::{PublishedError, positive, rows};
    use crate::findings::interference::{CONFIDENCE, ConditionTimes};
    use rundata::trial::interference::{Environment, ProgramSetting};

    const FILE: &str = "li2007.csv";

    /// c1 in microseconds (section 3).
    pub const DIRECT_US: f64 = 3.8;

    /// Runs behind each interval of the paper's Tables 1 and 2.
    pub const RUNS: u32 = 6;

    /// A range of c2 over a range of array sizes.
    #[derive(Debug, Clone, PartialEq, Deserialize)]
    pub struct TotalCost {
        /// Which arrays, in the words of the file.
        pub condition: String,
        /// Smallest array of each process in bytes.
        #[serde(rename = "smallest_kb", deserialize_with = "bytes")]
        pub smallest_bytes: u64,
        /// Largest array.
        #[serde(rename = "largest_kb", deserialize_with = "bytes")]
        pub largest_bytes: u64,
        /// Bytes between successive accesses; absent where every element is touched in turn.
        pub stride_bytes: Option<u64>,
        /// Lowest cost of a switch in microseconds.
        #[serde(deserialize_with = "positive")]
        pub low_us: f64,
        /// Highest cost.
        #[serde(deserialize_with = "positive")]
        pub high_us: f64,
        /// Mean cost, where the paper gives it.
        pub mean_us: Option<f64>,
    }

    /// An interval of Tables 1 and 2: dual-processor is augmented, single-processor plain, and what
    /// disturbs are network packets.
    #[derive(Deserialize)]
    struct TimesRow {
        environment: Environment,
        setting: ProgramSetting,
        #[serde(rename = "array_kb", deserialize_with = "bytes")]
        array_bytes: u64,
        #[serde(deserialize_with = "positive")]
        low: f64,
        #[serde(deserialize_with = "positive")]
        high: f64,
    }

    /// The bytes of a size in the paper's KB.
    fn bytes<'de, D: Deserializer<'de>>(field: D) -> Result<u64, D::Error> {
        u64::deserialize(field).map(|kilobytes| kilobytes.saturating_mul(1024))
    }

    /// All published figures.
    #[derive(Debug, Clone, PartialEq)]
    pub struct LiFigures {
        /// c2 where all fits (section 3.1, first region).
        pub first_region: TotalCost,
        /// c2 where the combined working sets exceed the cache (second region).
        pub second_region: TotalCost,
        /// c2 by stride, arrays that exceed the cache (section 3.2).
        pub by_stride: Vec<TotalCost>,
        /// Tables 1 and 2 (section 3.3): means and scatters of the execution times that have the
        /// printed 90 % intervals, in the paper's unit, which it does not name.
        pub runs: Vec<ConditionTimes>,
    }

    impl LiFigures {
        /// Reads the text of `data/li2007.csv` and of `data/li2007_times.csv`. Fails on any line
        /// that it does not understand.
        pub fn parse(costs: &str, times: &str) -> Result<Self, PublishedError> {
            let costs: Vec<TotalCost> = rows(FILE, costs)?;
            let [first_region, second_region, by_stride @ ..] = &costs[..] else {
                let what = "one of the two regions is missing".to_string();
                return Err(PublishedError { file: FILE, what });
            };
            let runs = |TimesRow { environment, setting, array_bytes, low, high }: TimesRow| {
                let interval = Interval { low, high, confidence: CONFIDENCE };
                let times = SampleSummary::from_interval(interval, RUNS);
                ConditionTimes {
                    setting,
                    environment,
                    array_bytes,
                    times,
                    by_round: BTreeMap::new(),
                }
            };
            Ok(Self {
                first_region: first_region.clone(),
                second_region: second_region.clone(),
                by_stride: by_stride.to_vec(),
                runs: rows("li2007_times.csv", times)?.into_iter().map(runs).collect(),
            })
        }

        /// The figures that come with the program.
        pub fn published() -> Result<Self, PublishedError> {
            let costs = include_str!("../../../data/li2007.csv");
            Self::parse(costs, include_str!("../../../data/li2007_times.csv"))
        }

        /// c2 where the combined working sets exceed the cache over c2 where all fit: from the
        /// lowest over the highest to the highest over the lowest. To set beside
        /// [`crate::regions::CacheRegions::second_over_first`].
        pub fn second_over_first(&self) -> (f64, f64) {
            let (first, second) = (&self.first_region, &self.second_region);
            (second.low_us / first.high_us, second.high_us / first.low_us)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    #[test]
    fn nine_machines_as_printed() {
        let all = sloan1992::published().unwrap();
        assert_eq!(all.len(), 78);
        assert_eq!(all.chunk_by(|a, b| a.machine() == b.machine()).count(), 9);
        let sun = all.iter().find(|row| row.model == "Sun-4/280").unwrap();
        assert_eq!((sun.cpus.get(), &*sun.os), (1, "SunOS 4.1.1"));
        // 1294 seconds for a million laps of two hops: 647 us a hop.
        assert_eq!(sun.ns_per_hop(sun.real_s), 647_000.0);
    }

    #[test]
    fn a_bad_line_of_a_ring_is_named() {
        for (line, word) in [
            ("IBM,370/4381,1", "3 fields"),
            ("IBM,370/4381,0,AIX,2,1,1,1,1,1", "nonzero"),
            ("IBM,370/4381,1,AIX,2,-1,1,1,1,1", "-1 is not above 0"),
            ("IBM,370/4381,1,AIX,2,1,1,1,1,", "cannot parse float"),
        ] {
            let error = rows::<sloan1992::SloanRow>(
                "sloan1992.csv",
                &format!("{}{line}\n", sloan1992::CSV),
            )
            .unwrap_err()
            .to_string();
            assert!(error.contains(word) && error.contains("line: 81"), "{error}");
        }
    }

    #[test]
    fn three_processors_as_printed() {
        let all = venix1984::published().unwrap();
        let names: Vec<&str> = all.iter().map(|processor| &*processor.name).collect();
        assert_eq!(names, ["80186", "8088", "LSI 11/23"]);
        let clocks: Vec<Option<f64>> = all.iter().map(|processor| processor.clock_mhz).collect();
        assert_eq!(clocks, [Some(8.0), Some(4.77), None]);
        let venix1984::VenixProcessor { system_call_ms, context_switch_ms, .. } = all[0];
        assert_eq!((system_call_ms, context_switch_ms), (0.36, 1.5));
        assert_eq!((all[2].signal_ms, all[2].two_process_loop_ms), (4.6, 13.5));
    }

    #[test]
    fn a_machine_of_today_as_measured() {
        let all = modern::published().unwrap();
        let epyc: Vec<&modern::ModernRow> =
            all.iter().filter(|row| row.machine == "amd-epyc-25/17").collect();
        let of_two = epyc.iter().find(|row| row.what == modern::ModernFigure::Switch).unwrap();
        assert_eq!((&*of_two.name, of_two.processes.map(NonZeroU32::get)), ("pipe", Some(2)));
        assert_eq!((of_two.us, of_two.low_us, of_two.high_us), (1.511, 1.480, 1.542));
        assert_eq!(of_two.work(), None);
        let arrays = epyc.iter().filter_map(|row| row.work());
        assert_eq!(arrays.map(|work| work.bytes).max(), Some(4 << 20));
        assert!(all.iter().all(|row| row.low_us <= row.us && row.us <= row.high_us));
    }

    #[test]
    fn a_bad_line_of_a_machine_of_today_is_named() {
        let lines = modern::CSV.lines().count() + 1;
        for (line, word) in [
            ("x,cpu,6.18,2,2026,switch,pipe", "7 fields"),
            ("x,cpu,6.18,0,2026,hop,pipe,2,,,,,,other,1,1,1", "nonzero"),
            ("x,cpu,6.18,2,2026,turn,pipe,2,,,,,,other,1,1,1", "unknown variant `turn`"),
            ("x,cpu,6.18,2,2026,hop,pipe,2,,,,,,other,1,-1,1", "-1 is not above 0"),
        ] {
            let text = format!("{}{line}\n", modern::CSV);
            let error = rows::<modern::ModernRow>("modern.csv", &text).unwrap_err().to_string();
            let place = format!("line: {lines}");
            assert!(error.contains(word) && error.contains(&place), "{error}");
        }
    }

    #[test]
    fn a_bad_line_of_a_processor_is_named() {
        for (line, word) in [
            ("80186,8,0.36", "3 fields"),
            ("80186,8,,0.1,1.2,0.2,5.4,1.5", "cannot parse float"),
            ("80186,8,0,0.1,1.2,0.2,5.4,1.5", "0 is not above 0"),
            ("80186,8,0.36,0.1,1.2,0.2,5.4,inf", "inf is not above 0"),
        ] {
            let text = format!("{}{line}\n", venix1984::CSV);
            let error =
                rows::<venix1984::VenixProcessor>("venix1984.csv", &text).unwrap_err().to_string();
            assert!(error.contains(word) && error.contains("line: 6"), "{error}");
        }
    }

    #[test]
    fn they_are_those_of_the_table() {
        let table = include_str!("../../../data/hines2000.csv");
        let of = |start: &str| {
            let line = table.lines().find(|line| line.starts_with(start)).expect(start);
            let cells: Vec<&str> = line.split(',').collect();
            (cells[2].parse::<f64>().ok(), cells[3].parse::<f64>().ok())
        };
        let call = |call: hines2000::CallCost| (Some(call.mean_cycles), Some(call.sd_cycles));
        assert_eq!(of("call_overhead,getrusage,"), call(hines2000::GETRUSAGE));
        assert_eq!(of("call_overhead,getpinfo,"), call(hines2000::GETPINFO));
        assert_eq!(of("malloc_small_block,getpinfo,").0, Some(hines2000::MALLOC_CYCLES));
        assert_eq!(of("precision_gain_primes_percent,").0, Some(hines2000::PRECISION_GAIN_PERCENT));
    }
}
