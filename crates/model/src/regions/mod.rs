//! Where does the cost of a switch leave one course for another as the working set grows?
//!
//! [`breaks`] takes costs against any axis (bytes of an array, pages, members of a ring) and finds
//! up to two breaks, each with the sizes between which it lies; or says why the points are inconclusive.
//! [`regions`] reads them as the three regions of Li, Ding and Shen (2007, section 3.1). Neither is
//! told the sizes of caches: [`beside`] sets what was found beside them afterwards. The method and its
//! sources are in `docs/method.md`, its measured error rates in `docs/validation.md`.

mod axis;
mod breaks;
mod reading;
mod refill;
mod words;

#[cfg(test)]
mod tests;

pub use axis::{Axis, Beside, Level, Point, Unit, beside};
pub use breaks::breaks;
pub use reading::{Answer, Direct, Extent, Region, Regions, regions};
pub use refill::Refill;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The confidence of every interval that goes in ([`Direct`]) and comes out ([`Break`]).
pub const CONFIDENCE: f64 = stats::changepoint::CONFIDENCE;

/// Relative difference between sizes that is never called a break, whatever the errors say.
///
/// Added in quadrature to every standard error. It is wider than [`crate::scaling::EQUIVALENCE`]: straight
/// pieces only approximate how caches fill, and such bends are no breaks.
pub const EQUIVALENCE: f64 = 0.05;

/// What the points say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Finding {
    /// The course of the cost is known: its pieces, with a break between any two.
    Found,
    /// The points are inconclusive.
    CannotTell {
        /// Why not, in words that follow a colon.
        why: String,
    },
}

/// How the cost runs within a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Course {
    /// No rise or fall is resolved.
    Flat,
    /// It rises.
    Rises,
    /// It falls.
    Falls,
}

impl Course {
    /// Of a change that counts where it is larger than `least`.
    fn of(change: f64, least: f64) -> Self {
        match change.abs() > least {
            true if change > 0.0 => Self::Rises,
            true => Self::Falls,
            false => Self::Flat,
        }
    }
}

/// Sizes that follow one course.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Piece {
    /// Smallest measured size of the piece, in the unit of the axis.
    pub first: u64,
    /// Largest measured size of the piece.
    pub last: u64,
    /// Measured sizes in it.
    pub sizes: usize,
    /// Fitted cost at `first`, in ns; signed.
    pub cost_at_first_ns: f64,
    /// Fitted cost at `last`, in ns; signed.
    pub cost_at_last_ns: f64,
    /// How it runs in between.
    pub course: Course,
}

/// How the cost changes at a break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BreakKind {
    /// It jumps.
    Step,
    /// Its slope changes.
    Hinge,
}

/// Where the cost leaves one course for another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Break {
    /// How the cost changes.
    pub kind: BreakKind,
    /// The most likely place, in the unit of the axis: between two measured sizes.
    pub at: u64,
    /// Largest measured size surely before the break: with `high` it brackets the break with at
    /// least 95 % of the criterion's weight.
    pub low: u64,
    /// Smallest measured size surely at or after it.
    pub high: u64,
    /// Measured sizes from the break to the next one or to the end. With 1 the break rests on a
    /// single size, and a disturbance of that size would look the same.
    pub sizes_after: usize,
}

/// The answer of [`breaks`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Breaks {
    /// What the sizes are.
    pub axis: Axis,
    /// Whether the points could tell.
    pub finding: Finding,
    /// The pieces, ascending; one more than `breaks`. Empty if the points are inconclusive.
    pub pieces: Vec<Piece>,
    /// The breaks, ascending; none for one smooth course.
    pub breaks: Vec<Break>,
    /// Criterion of the best description with fewer breaks above that of the chosen one: from 10
    /// on the simpler one has practically no support. `None` without breaks.
    pub support: Option<f64>,
    /// For a flat course: the largest jump within the piece that the points do not exclude, as a part
    /// of the cost. Where the piece ends before the largest size, larger ones beyond it are not
    /// excluded.
    pub jump_below: Option<f64>,
    /// Smallest measured size; 0 without points.
    pub smallest: u64,
    /// Largest measured size; 0 without points.
    pub largest: u64,
    /// Points left out: size 0, a cost that is no sensible number, or no standard error.
    pub ignored: usize,
}

impl Breaks {
    /// Whether the points could tell.
    #[must_use]
    pub fn found(&self) -> bool {
        self.finding == Finding::Found
    }
}
