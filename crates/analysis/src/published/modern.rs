//! What this program has measured on machines of today: `data/modern.csv` as typed values. Its rows
//! are as `switchcost runs export --format history` writes them.

use std::num::NonZeroU32;

use rundata::experiment::named;
use rundata::ring::{AccessKind, Policy, Walk, Work};
use serde::Deserialize;

use super::{PublishedError, positive, rows};

/// What a row is the cost of.
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

/// A figure of one machine: a line of the file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ModernRow {
    /// The machine's name, behind `history:`.
    pub machine: String,
    /// Its CPU, and whether a hypervisor is below it.
    pub cpu: String,
    /// Release of its kernel.
    pub kernel: String,
    /// Number of its CPUs.
    pub cpus: NonZeroU32,
    /// When it was measured.
    pub year: u32,
    /// What was measured.
    pub what: ModernFigure,
    /// The link of the ring, or the call.
    pub name: String,
    /// Members of the ring; absent of a call.
    pub processes: Option<NonZeroU32>,
    /// Array that each of them touches in a hop; absent without one.
    pub array_bytes: Option<u64>,
    /// Distance between accesses.
    pub stride_bytes: Option<u64>,
    /// What is done to each element.
    pub op: Option<AccessKind>,
    /// Which elements are touched.
    pub walk: Option<Walk>,
    /// Whether the array asks for huge pages.
    pub huge_pages: Option<bool>,
    /// The scheduling policy.
    pub policy: Policy,
    /// The cost in microseconds.
    #[serde(deserialize_with = "positive")]
    pub us: f64,
    /// Lower end of its interval, 95 %.
    #[serde(deserialize_with = "positive")]
    pub low_us: f64,
    /// Upper end.
    #[serde(deserialize_with = "positive")]
    pub high_us: f64,
}

impl ModernRow {
    /// The working set of a ring that has one.
    pub fn work(&self) -> Option<Work> {
        Some(Work {
            bytes: self.array_bytes?,
            stride_bytes: self.stride_bytes?,
            op: self.op?,
            walk: self.walk?,
            huge_pages: self.huge_pages?,
        })
    }

    /// Whether another row is of the same case: a ring has a hop and a switch.
    pub fn is_same_case(&self, other: &Self) -> bool {
        let of = |row: &Self| (row.processes, row.work(), row.policy);
        self.processes.is_some() && self.name == other.name && of(self) == of(other)
    }
}

/// The figures that come with the program: the rows of a machine one after the other.
pub fn published() -> Result<Vec<ModernRow>, PublishedError> {
    rows("modern.csv", CSV)
}

pub(super) const CSV: &str = include_str!("../../../../data/modern.csv");
