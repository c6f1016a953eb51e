//! What stands on the axis, the points over it, and what of the machine lies there: that is set beside what
//! was found afterwards.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Break;
use crate::words::{self, plain};

/// The unit of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Bytes, told in KiB, MiB and GiB.
    Bytes,
    /// Things that are counted: pages, members.
    Count,
}

/// What the sizes are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Axis {
    /// What is said after a count, or of bytes: `array`, `pages`, `members`.
    pub name: String,
    /// Its unit.
    pub unit: Unit,
}

impl Axis {
    /// Bytes of each member's array.
    #[must_use]
    pub fn array() -> Self {
        Self { name: "array".into(), unit: Unit::Bytes }
    }

    /// Bytes of all arrays of a ring together: members x array.
    #[must_use]
    pub fn all_arrays() -> Self {
        Self { name: "all arrays".into(), unit: Unit::Bytes }
    }

    /// Pages that each member touches, one line in each.
    #[must_use]
    pub fn pages() -> Self {
        Self { name: "pages".into(), unit: Unit::Count }
    }

    /// Members of the ring.
    #[must_use]
    pub fn members() -> Self {
        Self { name: "members".into(), unit: Unit::Count }
    }

    /// A size in words: `192 KiB`, `64 pages`.
    #[must_use]
    pub fn size(&self, size: u64) -> String {
        match self.unit {
            Unit::Bytes => words::bytes(size),
            Unit::Count => format!("{size} {}", self.name),
        }
    }

    /// Two sizes in words: `128 to 256 KiB`, `32 to 64 pages`.
    #[must_use]
    pub fn range(&self, low: u64, high: u64) -> String {
        match self.unit {
            Unit::Bytes => words::byte_range(low, high),
            Unit::Count => format!("{low} to {high} {}", self.name),
        }
    }
}

/// The cost of one switch at one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// The size, in the unit of the axis.
    pub size: u64,
    /// Cost of one switch in ns; signed, a difference of two rings may be below zero.
    pub cost_ns: f64,
    /// Its standard error in ns. A point without one is left out.
    pub standard_error_ns: Option<f64>,
}

/// Something of the machine that a working set may outgrow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Level {
    /// Its name: `L2`, `second-level TLB`.
    pub name: String,
    /// How much it holds, in the unit of the axis.
    pub size: u64,
}

/// A break beside a level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Beside {
    /// The smallest level that is not surely outgrown at the break; the largest if all are.
    pub level: Level,
    /// Place of the break / size of the level.
    pub part: f64,
    /// The same for the lower end of the break's bracket.
    pub part_low: f64,
    /// The same for the upper end.
    pub part_high: f64,
}

/// Sets a break beside the level that it is likely to belong to: the smallest that holds the lower
/// end of the break's bracket, else the largest. `None` without a level that holds anything.
#[must_use]
pub fn beside(found: &Break, levels: &[Level]) -> Option<Beside> {
    let mut real: Vec<&Level> = levels.iter().filter(|level| level.size > 0).collect();
    real.sort_by_key(|level| level.size);
    let level = real.iter().find(|level| level.size >= found.low).or(real.last())?;
    let part = |size: u64| size as f64 / level.size as f64;
    Some(Beside {
        level: Level::clone(level),
        part: part(found.at),
        part_low: part(found.low),
        part_high: part(found.high),
    })
}

impl Beside {
    /// `0.38 of L2 = 512 KiB (0.25 to 0.5)`.
    #[must_use]
    pub fn in_words(&self, axis: &Axis) -> String {
        let [part, low, high] = [self.part, self.part_low, self.part_high].map(two_places);
        let Level { name, size } = &self.level;
        format!("{part} of {name} = {} ({low} to {high})", axis.size(*size))
    }
}

/// Two decimals are enough for a part; small ones keep two digits.
fn two_places(part: f64) -> String {
    if part < 0.1 { plain(part) } else { plain((100.0 * part).round() / 100.0) }
}
