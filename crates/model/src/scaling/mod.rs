//! Which law does the cost of a switch follow as the ring grows?
//!
//! [`law`] takes the cost per switch at some ring sizes and says which of thirteen [`Shape`]s they
//! follow, where the knees are, and how sure that is; or that the points cannot tell. The method,
//! its sources and its measured error rates are in `docs/method.md`.
//!
//! Costs may be in any one unit, except that sentences call them nanoseconds. Rings are sizes in
//! members.

mod fit;
mod knees;
mod points;
mod projection;
mod select;
mod shape;
mod verdict;
mod words;

#[cfg(test)]
mod any_input;
#[cfg(test)]
mod tests;

pub use points::{Noise, Point};
pub use projection::projected;
pub use select::law;
pub use shape::Shape;
pub use verdict::{Candidate, Curve, Knee, KneeKind, Law, Verdict};

/// The confidence of every interval that comes out ([`Knee`]).
pub const CONFIDENCE: f64 = crate::curve::CONFIDENCE;

/// Relative difference between sizes that is never called a law, whatever the errors say.
///
/// Added in quadrature to every standard error. Those cover what changes from round to
/// round at one size; they do not cover what comes with the size itself (page colours, alignment
/// of stacks, the kernel's hash chains), which is of the order of one or two per cent and is
/// no scaling.
pub const EQUIVALENCE: f64 = 0.02;
