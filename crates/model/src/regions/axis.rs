//! What stands on the axis, and the points over it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::words;

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
