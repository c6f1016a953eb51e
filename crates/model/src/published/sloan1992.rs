//! Sloan, "Context Switch Time Scalability: Benchmark Results" (1992), Appendix 1:
//! `data/sloan1992.csv` as typed values.

use std::num::NonZeroU32;

use serde::Deserialize;

use super::{PublishedError, positive, rows};

const CSV: &str = include_str!("../../../../data/sloan1992.csv");

/// Laps of every run.
pub const LAPS: f64 = 1e6;

/// A ring of one size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// Members of the ring.
    pub processes: u32,
    /// Real time of a million laps, in seconds as printed.
    pub real_s: f64,
    /// CPU time of all members.
    pub cpu_s: f64,
    /// Its user part.
    pub user_s: f64,
    /// Its system part.
    pub system_s: f64,
    /// CPU time of the ring of two, scaled to this size, as printed.
    pub projected_s: f64,
}

impl Row {
    /// One of its times in nanoseconds a hop.
    pub fn ns_per_hop(&self, seconds: f64) -> f64 {
        seconds * 1e9 / (LAPS * f64::from(self.processes))
    }
}

/// A machine and its operating system.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// Who made it.
    pub vendor: String,
    /// Its model.
    pub model: String,
    /// Number of its CPUs.
    pub cpus: u32,
    /// Its operating system.
    pub system: String,
    /// By size of the ring, as printed.
    pub rows: Vec<Row>,
}

/// A line of the file.
#[derive(Deserialize)]
struct Line {
    vendor: String,
    model: String,
    cpus: NonZeroU32,
    os: String,
    processes: NonZeroU32,
    #[serde(deserialize_with = "positive")]
    real_s: f64,
    #[serde(deserialize_with = "positive")]
    cpu_s: f64,
    #[serde(deserialize_with = "positive")]
    user_s: f64,
    #[serde(deserialize_with = "positive")]
    system_s: f64,
    #[serde(deserialize_with = "positive")]
    projected_s: f64,
}

/// The figures that come with the program.
pub fn published() -> Result<Vec<Machine>, PublishedError> {
    parse(CSV)
}

fn parse(text: &str) -> Result<Vec<Machine>, PublishedError> {
    let mut machines: Vec<Machine> = Vec::new();
    for line in rows::<Line>("sloan1992.csv", text)? {
        let Line { vendor, model, os, real_s, cpu_s, user_s, system_s, projected_s, .. } = line;
        let processes = line.processes.get();
        let row = Row { processes, real_s, cpu_s, user_s, system_s, projected_s };
        match machines.iter_mut().find(|known| known.model == model && known.system == os) {
            Some(known) => known.rows.push(row),
            None => {
                let cpus = line.cpus.get();
                machines.push(Machine { vendor, model, cpus, system: os, rows: vec![row] });
            }
        }
    }
    Ok(machines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_machines_as_printed() {
        let all = published().unwrap();
        assert_eq!(all.len(), 9);
        assert_eq!(all.iter().map(|machine| machine.rows.len()).sum::<usize>(), 78);
        let sun = all.iter().find(|machine| machine.model == "Sun-4/280").unwrap();
        assert_eq!((sun.cpus, &*sun.system), (1, "SunOS 4.1.1"));
        // 1294 seconds for a million laps of two hops: 647 us a hop.
        assert_eq!(sun.rows[0].ns_per_hop(sun.rows[0].real_s), 647_000.0);
    }

    #[test]
    fn a_bad_line_is_named() {
        for (line, word) in [
            ("IBM,370/4381,1", "3 fields"),
            ("IBM,370/4381,0,AIX,2,1,1,1,1,1", "nonzero"),
            ("IBM,370/4381,1,AIX,2,-1,1,1,1,1", "-1 is not above 0"),
            ("IBM,370/4381,1,AIX,2,1,1,1,1,", "cannot parse float"),
        ] {
            let error = parse(&format!("{CSV}{line}\n")).unwrap_err().to_string();
            assert!(error.contains(word) && error.contains("line: 81"), "{error}");
        }
    }
}
