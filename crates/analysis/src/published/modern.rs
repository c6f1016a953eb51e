//! Costs that this program has measured on machines of today: `data/modern.csv` as typed values. Its
//! rows are as `switchcost runs export --format history` writes them.

use std::num::NonZeroU32;

use rundata::experiment::named;
use rundata::ring::{AccessKind, Policy, Walk, Work};
use serde::Deserialize;

use super::{PublishedError, parse_rows, positive};

const CSV: &str = include_str!("../../data/modern.csv");

/// The kind of cost in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModernFigure {
    /// A hop of a ring.
    Hop,
    /// A counted switch of a ring, above the ring of one.
    Switch,
    /// A call that reads a clock, as `clock overhead` times it.
    Call,
    /// A system call or a signal, as `response` times it.
    Loop,
}

named!(ModernFigure, "figure of a row", Hop => "hop", Switch => "switch", Call => "call", Loop => "loop");

/// A cost on one machine: a line of the file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ModernRow {
    /// Name of the machine, behind `history:`.
    pub machine: String,
    /// Model of its CPU, and whether a hypervisor is below it.
    pub cpu: String,
    /// Release of its kernel.
    pub kernel: String,
    /// Number of its CPUs.
    pub cpus: NonZeroU32,
    /// Year of the measurement.
    pub year: u32,
    /// The kind of cost.
    pub what: ModernFigure,
    /// The link of the ring, or the call.
    pub name: String,
    /// Members of the ring; absent for a call.
    pub processes: Option<NonZeroU32>,
    /// Array that each member touches in a hop; absent without one.
    pub array_bytes: Option<u64>,
    /// Distance between accesses.
    pub stride_bytes: Option<u64>,
    /// Operation on each element.
    pub op: Option<AccessKind>,
    /// Order of the elements.
    pub walk: Option<Walk>,
    /// True if the array asks for huge pages.
    pub huge_pages: Option<bool>,
    /// The scheduling policy.
    pub policy: Policy,
    /// The cost in microseconds.
    #[serde(deserialize_with = "positive")]
    pub us: f64,
    /// Lower end of its interval, 95 %.
    #[serde(deserialize_with = "positive")]
    pub low_us: f64,
    /// Upper end of its interval, 95 %.
    #[serde(deserialize_with = "positive")]
    pub high_us: f64,
}

impl ModernRow {
    /// Returns the working set of a ring that has one.
    pub fn work(&self) -> Option<Work> {
        Some(Work {
            bytes: self.array_bytes?,
            stride_bytes: self.stride_bytes?,
            op: self.op?,
            walk: self.walk?,
            huge_pages: self.huge_pages?,
        })
    }

    /// Returns whether two rows are of the same ring, which has a hop and a switch. A call has one
    /// row.
    pub fn is_same_case(&self, other: &Self) -> bool {
        self.processes.is_some()
            && self.processes == other.processes
            && self.name == other.name
            && self.work() == other.work()
            && self.policy == other.policy
    }
}

/// Returns the rows of the built-in file: those of a machine one after the other.
pub fn published() -> Result<Vec<ModernRow>, PublishedError> {
    parse_rows("modern.csv", CSV)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_of_today_as_measured() {
        let rows = published().unwrap();
        let epyc: Vec<&ModernRow> =
            rows.iter().filter(|row| row.machine == "amd-epyc-25/17").collect();
        let switch = epyc.iter().find(|row| row.what == ModernFigure::Switch).unwrap();
        assert_eq!((&*switch.name, switch.processes.map(NonZeroU32::get)), ("pipe", Some(2)));
        assert_eq!((switch.us, switch.low_us, switch.high_us), (1.511, 1.480, 1.542));
        assert_eq!(switch.work(), None);
        let arrays = epyc.iter().filter_map(|row| row.work());
        assert_eq!(arrays.map(|work| work.bytes).max(), Some(4 << 20));
        assert!(rows.iter().all(|row| row.low_us <= row.us && row.us <= row.high_us));
    }

    #[test]
    fn a_bad_line_of_a_machine_of_today_is_named() {
        let lines = CSV.lines().count() + 1;
        for (line, word) in [
            ("x,cpu,6.18,2,2026,switch,pipe", "7 fields"),
            ("x,cpu,6.18,0,2026,hop,pipe,2,,,,,,other,1,1,1", "nonzero"),
            ("x,cpu,6.18,2,2026,turn,pipe,2,,,,,,other,1,1,1", "unknown variant `turn`"),
            ("x,cpu,6.18,2,2026,hop,pipe,2,,,,,,other,1,-1,1", "-1 is not above 0"),
        ] {
            let text = format!("{CSV}{line}\n");
            let error = parse_rows::<ModernRow>("modern.csv", &text).unwrap_err().to_string();
            let place = format!("line: {lines}");
            assert!(error.contains(word) && error.contains(&place), "{error}");
        }
    }
}
