//! Which law does the cost of a switch follow as the ring grows?
//!
//! [`law`] takes the cost per switch at some ring sizes and says which of thirteen [`Shape`]s they
//! follow, where the knees are, and how sure that is; or that the points are inconclusive. The method
//! and its sources are in `docs/method.md`, its measured error rates in `docs/validation.md`.
//!
//! Costs may be in any one unit, except that sentences call them nanoseconds. Rings are sizes in
//! members.

mod law;
mod shape;
mod verdict;
mod words;

#[cfg(test)]
mod tests;

pub use law::law;
pub use shape::Shape;
pub use verdict::{Candidate, Curve, Knee, KneeKind, Law, Noise, Point, Verdict};

/// The confidence of every interval that comes out ([`Knee`]).
pub const CONFIDENCE: f64 = stats::changepoint::CONFIDENCE;

/// Relative difference between sizes that is never called a law, whatever the errors say.
///
/// Added in quadrature to every standard error. Those cover what changes from round to
/// round at one size; they do not cover what comes with the size itself (page colours, alignment
/// of stacks, the kernel's hash chains), which is of the order of one or two per cent and is
/// no scaling.
pub const EQUIVALENCE: f64 = 0.02;

/// Sloan's projected column: the CPU time that `members` would need if every switch cost what it costs in
/// a ring of two, cpu(2) * N / 2 (Sloan 1992, "Results", column *Proj*). `two_process_cpu` is that of a ring
/// of two, in any unit, for the same number of laps.
#[must_use]
pub fn projected(two_process_cpu: f64, members: u32) -> f64 {
    two_process_cpu * f64::from(members) / 2.0
}
