//! The CPU's own speed: reference quanta around slices of what is timed, the level of an unshared core,
//! and the figures of the slices that ran at it.
//!
//! Data flows `Slices` (raw, in a sample) -> `Level` (of a run) -> clean slices -> [`stats::Pooled`] (of a case).
//! `docs/method.md`, "The CPU's own speed", has the rules and the figures that they were chosen by.

mod clean;
mod known;
mod level;
mod slices;
mod triples;

#[cfg(test)]
pub(crate) mod tests;
#[cfg(test)]
pub(crate) use tests::{around, cut};

pub use clean::{
    CaseSlices, CleanCounts, FEWEST_CLEAN, FEWEST_ROUNDS, LEAST_SHARE, slices_by_case,
};
pub(crate) use clean::{QuantaByPlace, add_quanta, levels, longest_uninterrupted, quanta_by_place};
pub use known::{KNOWN, KnownSpeed, Seen, SpeedFile, cpu_key};
pub use level::{Level, Quanta, Reference, TOLERANCE};
pub use slices::{
    ADD_TURNS, ADDS_PER_TURN, LONGEST_SLICE_NS, MULTIPLIES_PER_TURN, MULTIPLY_TURNS, QUANTA_AROUND,
    Slices, Wait,
};
pub use triples::{Places, Triple, Triples};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// tau, the relative scatter between launches where these have not said otherwise: 1 % of a figure, as
/// launches of one hour scatter on the test machine (docs/validation.md).
pub const LAUNCH_SCATTER: f64 = 0.01;

/// At which speed of the CPU a figure was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Speed {
    /// Of clean slices only: at full speed, with nobody else on the core.
    Full,
    /// Too few slices were clean: of all slices, without an interval.
    Contended,
    /// Nobody looked: no reference quanta, or slices too long to be judged by them.
    #[default]
    NotJudged,
}
