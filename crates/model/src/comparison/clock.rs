//! The core's clock on both sides: what differs by it is no change of what is measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::at_clock::pooled;
use crate::subject::{Subject, Values};

/// Clocks that differ by more than this share are told: turbo, throttling, a governor.
const DIFFERS: f64 = 0.01;

/// Two clocks that differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Clocks {
    /// That which most of the base had, in GHz.
    pub base_ghz: f64,
    /// That of the new one.
    pub new_ghz: f64,
    /// In words.
    pub in_words: String,
}

impl Clocks {
    /// Absent where one is not known, or they are alike.
    pub(super) fn of(base: &Subject, new: &Subject) -> Option<Self> {
        let (base_ghz, new_ghz) = base.clock_ghz.zip(new.clock_ghz)?;
        let percent = 100.0 * (new_ghz / base_ghz - 1.0);
        let way = if percent < 0.0 { "lower" } else { "higher" };
        let in_words = format!(
            "the core's clock was {:.1} % {way} in new ({new_ghz:.2} GHz, {base_ghz:.2} in base): times are at one clock",
            percent.abs()
        );
        (percent.abs() > 100.0 * DIFFERS).then_some(Self { base_ghz, new_ghz, in_words })
    }
}

/// Both at the clock of the base, and how far the ratio is uncertain where nobody knows how they go with it. As they are where
/// a clock is not known.
pub(super) fn at_one_clock(base: &Values, new: &Values) -> (Values, Values, f64) {
    let (Some(to_ns), Some(_)) = (base.quantum_ns(), new.quantum_ns()) else {
        return (base.clone(), new.clone(), 0.0);
    };
    let power = pooled(base.elasticities().chain(new.elasticities()));
    let (base, base_slack) = base.at(to_ns, power);
    let (new, new_slack) = new.at(to_ns, power);
    (base, new, base_slack + new_slack)
}
