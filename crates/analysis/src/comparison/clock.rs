//! The core's clock on both sides: what differs by it is no change of what is measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use stats::ratio::ExtraUncertainty;

use super::answer::CaseChange;
use super::names;
use crate::at_clock::{ClockConversion, common_elasticity};
use crate::results::{CaseFigure, Results};

/// Clocks that differ by more than this share are told: turbo, throttling, a governor.
const DIFFERS: f64 = 0.01;

/// Two clocks that differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Clocks")]
pub struct ClockDifference {
    /// That which most of the base had, in GHz.
    pub base_ghz: f64,
    /// That of the new one.
    pub new_ghz: f64,
    /// In words.
    pub in_words: String,
}

impl ClockDifference {
    /// Absent where one is not known, or they are alike.
    pub(super) fn of(base: &Results, new: &Results, changes: &[CaseChange]) -> Option<Self> {
        let [base_name, new_name] = names(&base.side, &new.side);
        let (base_ghz, new_ghz) = base.clock_ghz.zip(new.clock_ghz)?;
        let percent = 100.0 * (new_ghz / base_ghz - 1.0);
        let way = if percent < 0.0 { "lower" } else { "higher" };
        let are_brought = changes.iter().any(|change| change.at_one_clock);
        let how = if are_brought { "times are at one clock" } else { "the ratios include that" };
        let in_words = format!(
            "the core's clock was {:.1} % {way} in {new_name} ({new_ghz:.2} GHz, {base_ghz:.2} in \
             {base_name}): {how}",
            percent.abs()
        );
        (percent.abs() > 100.0 * DIFFERS).then_some(Self { base_ghz, new_ghz, in_words })
    }
}

/// Both at the clock of the base, and what that leaves open of their ratio: they were brought by
/// one power. As they are where a clock is not known.
pub(super) fn at_one_clock(
    base: &CaseFigure,
    new: &CaseFigure,
) -> (CaseFigure, CaseFigure, ExtraUncertainty) {
    let (Some(to_ns), Some(_)) = (base.quantum_ns(), new.quantum_ns()) else {
        return (base.clone(), new.clone(), ExtraUncertainty::default());
    };
    let power = common_elasticity(&[base.clocks(), new.clocks()].concat());
    let (base, base_apart) = base.at(to_ns, power);
    let (new, new_apart) = new.at(to_ns, power);
    (
        base,
        new,
        ClockConversion { log_ratio: new_apart - base_apart, elasticity: power }.uncertainty(),
    )
}
