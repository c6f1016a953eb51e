//! Sloan, "Context Switch Time Scalability: Benchmark Results" (1992), Appendix 1:
//! `data/sloan1992.csv` as typed values.

use std::num::NonZeroU32;

use serde::Deserialize;

use super::{PublishedError, parse_rows, positive};

const CSV: &str = include_str!("../../data/sloan1992.csv");

/// Laps of every run.
const LAPS: f64 = 1e6;

/// A ring of one size on one machine: a line of the file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct SloanRow {
    /// Vendor of the machine.
    pub vendor: String,
    /// Model of the machine.
    pub model: String,
    /// Number of its CPUs.
    pub cpus: NonZeroU32,
    /// Operating system.
    pub os: String,
    /// Members of the ring.
    pub processes: NonZeroU32,
    /// Real time of a million laps, in seconds as printed.
    #[serde(deserialize_with = "positive")]
    pub real_s: f64,
    /// CPU time of all members, in seconds.
    #[serde(deserialize_with = "positive")]
    pub cpu_s: f64,
    /// User part of the CPU time.
    #[serde(deserialize_with = "positive")]
    pub user_s: f64,
    /// System part of the CPU time.
    #[serde(deserialize_with = "positive")]
    pub system_s: f64,
    /// CPU time of the ring of two, scaled to this size, as printed.
    #[serde(deserialize_with = "positive")]
    pub projected_s: f64,
}

impl SloanRow {
    /// Converts one of the row's times to nanoseconds a hop.
    pub fn ns_per_hop(&self, seconds: f64) -> f64 {
        seconds * 1e9 / (LAPS * f64::from(self.processes.get()))
    }

    /// Returns model and operating system.
    pub fn machine(&self) -> (&str, &str) {
        (&self.model, &self.os)
    }
}

/// Returns the rows of the built-in file: the rings of a machine one after the other.
pub fn published() -> Result<Vec<SloanRow>, PublishedError> {
    parse_rows("sloan1992.csv", CSV)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_machines_as_printed() {
        let rows = published().unwrap();
        assert_eq!(rows.len(), 78);
        assert_eq!(rows.chunk_by(|row, next| row.machine() == next.machine()).count(), 9);
        let sun = rows.iter().find(|row| row.model == "Sun-4/280").unwrap();
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
            let text = format!("{CSV}{line}\n");
            let error = parse_rows::<SloanRow>("sloan1992.csv", &text).unwrap_err().to_string();
            assert!(error.contains(word) && error.contains("line: 81"), "{error}");
        }
    }
}
