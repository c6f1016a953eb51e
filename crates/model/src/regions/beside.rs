//! What was found, set beside what the machine says of its caches: a step of its own, afterwards.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Axis, Break};
use crate::words::plain;

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
