//! Breaks of the cost of a switch as the working set grows.
//!
//! [`breaks`] takes costs against any axis (bytes of an array, pages, members of a ring) and finds
//! up to two breaks, each with the sizes between which it lies, or the reason why the points are
//! inconclusive. [`regions`] reads them as the three regions of Li, Ding and Shen (2007, section
//! 3.1). Neither uses the sizes of caches: [`nearest_level`] compares breaks with them afterwards.
//! The method and its sources are in `docs/method.md`, its measured error rates in
//! `docs/validation.md`.

mod breaks;
mod reading;
mod refill;

#[cfg(test)]
mod tests;

pub use breaks::breaks;
pub use reading::{CacheRegion, CacheRegions, DirectInterval, RegionExtent, regions};
pub use refill::CacheRefill;

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::curve::TurnKind;
use rundata::words::{byte_range, bytes, percent, plain, time};

/// Confidence of all intervals that are read ([`DirectInterval`]) and returned ([`CostBreak`]).
pub const CONFIDENCE: f64 = stats::changepoint::CONFIDENCE;

/// Relative difference between sizes that is never called a break, whatever the errors say.
///
/// Added in quadrature to every standard error. It is wider than [`crate::scaling::EQUIVALENCE`]:
/// straight pieces only approximate how caches fill, and such bends are no breaks.
pub const EQUIVALENCE: f64 = 0.05;

/// The conclusion about breaks or regions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "answer", rename_all = "snake_case")]
#[schemars(rename = "Answer")]
pub enum CurveAnswer {
    /// Breaks: the pieces of the curve are known, with a break between any two.
    Found,
    /// Regions: there are some.
    Seen,
    /// Regions: one flat or straight piece, so that all arrays up to this one fit, or the cost does
    /// not show that they do not.
    NoThreshold {
        /// The largest array for which that is known, in bytes.
        up_to_bytes: u64,
    },
    /// The points are inconclusive.
    CannotTell {
        /// The reason, in words that follow a colon.
        why: String,
    },
}

/// The trend of the cost within a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Course")]
pub enum CostTrend {
    /// No rise or fall is resolved.
    Flat,
    /// The cost rises.
    Rises,
    /// The cost falls.
    Falls,
}

impl CostTrend {
    /// Returns the trend of a change, which counts if it is larger than `least`.
    fn from_change(change: f64, least: f64) -> Self {
        match change {
            rise if rise > least => Self::Rises,
            fall if -fall > least => Self::Falls,
            _ => Self::Flat,
        }
    }
}

/// Sizes that follow one line.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Piece")]
pub struct CurvePiece {
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
    /// The trend in between.
    pub course: CostTrend,
}

/// A place where the cost leaves one line for another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Break")]
pub struct CostBreak {
    /// The kind of change.
    pub kind: TurnKind,
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
#[schemars(rename = "Breaks")]
pub struct CostBreaks {
    /// The axis of the sizes.
    pub axis: SizeAxis,
    /// The conclusion.
    pub finding: CurveAnswer,
    /// The pieces, ascending; one more than `breaks`. Empty if the points are inconclusive.
    pub pieces: Vec<CurvePiece>,
    /// The breaks, ascending; empty for one smooth line.
    pub breaks: Vec<CostBreak>,
    /// Criterion of the best description with fewer breaks above that of the chosen one: from 10
    /// on the simpler one has practically no support. `None` without breaks.
    pub support: Option<f64>,
    /// For a flat course: the largest jump within the piece that the points do not exclude, as a
    /// part of the cost. Where the piece ends before the largest size, larger ones beyond it are
    /// not excluded.
    pub jump_below: Option<f64>,
    /// Smallest measured size; 0 without points.
    pub smallest: u64,
    /// Largest measured size; 0 without points.
    pub largest: u64,
    /// Points left out: size 0, a cost that is no sensible number, or no standard error.
    pub ignored: usize,
}

impl CurvePiece {
    /// Returns the piece in words: `flat at 3.1 us`, `rises from 8.0 us to 120 us`.
    pub fn in_words(&self) -> String {
        let (start, end) = (time(self.cost_at_first_ns), time(self.cost_at_last_ns));
        match self.course {
            CostTrend::Flat if start == end => format!("flat at {start}"),
            CostTrend::Flat => format!("about flat, {start} to {end}"),
            CostTrend::Rises => format!("rises from {start} to {end}"),
            CostTrend::Falls => format!("falls from {start} to {end}"),
        }
    }
}

impl CostBreak {
    /// Returns the place with its bracket: `192 KiB (128 to 256 KiB)`.
    pub fn place(&self, axis: &SizeAxis) -> String {
        let single = if self.sizes_after == 1 { ", seen at one size only" } else { "" };
        format!("{} ({}{single})", axis.size(self.at), axis.range(self.low, self.high))
    }
}

impl CostBreaks {
    /// Returns the pieces in one sentence, without a full stop.
    pub fn in_words(&self) -> String {
        if let CurveAnswer::CannotTell { why } = &self.finding {
            return format!("inconclusive: {why}");
        }
        let mut places = vec![String::new()];
        for found in &self.breaks {
            places.push(format!("from {} on ", found.place(&self.axis)));
        }
        let mut pieces = Vec::new();
        for (place, piece) in places.iter().zip(&self.pieces) {
            pieces.push(format!("{place}{}", piece.in_words()));
        }
        let range = self.axis.range(self.smallest, self.largest);
        format!("{}{} ({range})", pieces.join("; "), self.bound_in_words())
    }

    /// Returns the bound of a flat curve, and up to where that is known; empty for any other.
    fn bound_in_words(&self) -> String {
        let Some((bound, piece)) = self.jump_below.zip(self.pieces.first()) else {
            return String::new();
        };
        let mut beyond = String::new();
        if piece.last < self.largest {
            beyond = format!("; inconclusive beyond {}", self.axis.size(piece.last));
        }
        format!(", any jump below {}{beyond}", percent(bound))
    }
}

/// The unit of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Unit")]
pub enum AxisUnit {
    /// Bytes, printed in KiB, MiB and GiB.
    Bytes,
    /// Things that are counted: pages, members.
    Count,
}

/// The axis of the sizes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Axis")]
pub struct SizeAxis {
    /// The name, which follows a count: `array`, `pages`, `members`, `rings`.
    pub name: Cow<'static, str>,
    /// The unit.
    pub unit: AxisUnit,
}

impl SizeAxis {
    /// Bytes of each member's array.
    pub const ARRAY: Self = Self { name: Cow::Borrowed("array"), unit: AxisUnit::Bytes };
    /// Pages that each member touches, one line in each.
    pub const PAGES: Self = Self { name: Cow::Borrowed("pages"), unit: AxisUnit::Count };
    /// Members of the ring.
    pub const MEMBERS: Self = Self { name: Cow::Borrowed("members"), unit: AxisUnit::Count };
    /// Rings that run at the same time.
    pub const RINGS: Self = Self { name: Cow::Borrowed("rings"), unit: AxisUnit::Count };
    /// Bytes from one access to the next.
    pub const STRIDE: Self = Self { name: Cow::Borrowed("stride"), unit: AxisUnit::Bytes };

    /// Returns a size in words: `192 KiB`, `64 pages`.
    pub fn size(&self, size: u64) -> String {
        match self.unit {
            AxisUnit::Bytes => bytes(size),
            AxisUnit::Count => format!("{size} {}", self.name),
        }
    }

    /// Returns whether the sizes are counts, with nothing between one and the next.
    pub(crate) fn is_count(&self) -> bool {
        self.unit == AxisUnit::Count
    }

    /// Returns a range in words: `128 to 256 KiB`, `32 to 64 pages`.
    pub fn range(&self, low: u64, high: u64) -> String {
        match self.unit {
            AxisUnit::Bytes => byte_range(low, high),
            AxisUnit::Count => format!("{low} to {high} {}", self.name),
        }
    }
}

/// A limit of the machine that a working set may exceed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Level")]
pub struct MachineLevel {
    /// The name: `L2`, `second-level TLB`.
    pub name: String,
    /// The capacity, in the unit of the axis.
    pub size: u64,
}

/// A break compared with the level nearest to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Beside")]
pub struct NearestLevel {
    /// The smallest level that is not surely exceeded at the break; the largest if all are.
    pub level: MachineLevel,
    /// Place of the break / size of the level.
    pub part: f64,
    /// Lower end of the break's bracket / size of the level.
    pub part_low: f64,
    /// Upper end of the bracket / size of the level.
    pub part_high: f64,
}

/// Compares a break with the level that it is likely to belong to: the smallest that holds the lower
/// end of the break's bracket, else the largest. Absent without a level above zero.
pub fn nearest_level(found: &CostBreak, levels: &[MachineLevel]) -> Option<NearestLevel> {
    let mut ascending: Vec<&MachineLevel> = levels.iter().filter(|level| level.size > 0).collect();
    ascending.sort_by_key(|level| level.size);
    let level = ascending.iter().find(|level| level.size >= found.low).or(ascending.last())?;
    let part = |size: u64| size as f64 / level.size as f64;
    Some(NearestLevel {
        level: (*level).clone(),
        part: part(found.at),
        part_low: part(found.low),
        part_high: part(found.high),
    })
}

impl NearestLevel {
    /// Returns the comparison in words: `0.38 of L2 = 512 KiB (0.25 to 0.5)`.
    pub fn in_words(&self, axis: &SizeAxis) -> String {
        let MachineLevel { name, size } = &self.level;
        format!(
            "{} of {name} = {} ({} to {})",
            part_in_words(self.part),
            axis.size(*size),
            part_in_words(self.part_low),
            part_in_words(self.part_high)
        )
    }
}

/// Returns a part with two decimals, which are enough; a small one with two digits.
fn part_in_words(part: f64) -> String {
    plain(if part < 0.1 { part } else { (100.0 * part).round() / 100.0 })
}
