//! The core's clocks on both sides: a difference by the clock is no change of the measured code.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use stats::ratio::ExtraUncertainty;

use super::answer::CaseChange;
use super::names;
use crate::at_clock::{ClockConversion, common_elasticity};
use crate::results::{CaseFigure, Results};

/// Clocks that differ by no more than this many percent are not reported; turbo, throttling and
/// governors change them by more.
const MIN_CLOCK_PERCENT: f64 = 1.0;

/// The clocks of both sides, where they differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Clocks")]
pub struct ClockDifference {
    /// Clock of most of the base, in GHz.
    pub base_ghz: f64,
    /// Clock of most of the new side, in GHz.
    pub new_ghz: f64,
    /// The difference in words.
    pub in_words: String,
}

impl ClockDifference {
    /// Compares the clocks of two results; absent where one is not known, or they are alike.
    pub(super) fn from_results(
        base: &Results,
        new: &Results,
        changes: &[CaseChange],
    ) -> Option<Self> {
        let [base_name, new_name] = names(&base.side, &new.side);
        let (base_ghz, new_ghz) = base.clock_ghz.zip(new.clock_ghz)?;
        let percent = 100.0 * (new_ghz / base_ghz - 1.0);
        if percent.abs() <= MIN_CLOCK_PERCENT {
            return None;
        }
        let direction = if percent < 0.0 { "lower" } else { "higher" };
        let are_converted = changes.iter().any(|change| change.at_one_clock);
        let effect =
            if are_converted { "times are at one clock" } else { "the ratios include that" };
        let in_words = format!(
            "the core's clock was {:.1} % {direction} in {new_name} ({new_ghz:.2} GHz, \
             {base_ghz:.2} in {base_name}): {effect}",
            percent.abs()
        );
        Some(Self { base_ghz, new_ghz, in_words })
    }
}

/// The figures of a pair at the clock of the base.
pub(super) struct PairAtOneClock {
    pub(super) base: CaseFigure,
    pub(super) new: CaseFigure,
    /// The uncertainty of the ratio that the conversion adds. Both sides are converted with one
    /// elasticity.
    pub(super) uncertainty: ExtraUncertainty,
}

/// Converts both figures to the clock of the base; they stay as they are where a clock is not known.
pub(super) fn at_one_clock(base: &CaseFigure, new: &CaseFigure) -> PairAtOneClock {
    let (Some(to_ns), Some(_)) = (base.quantum_ns(), new.quantum_ns()) else {
        let uncertainty = ExtraUncertainty::default();
        return PairAtOneClock { base: base.clone(), new: new.clone(), uncertainty };
    };
    let elasticity = common_elasticity(&[base.clocks(), new.clocks()].concat());
    let base = base.converted_to(to_ns, elasticity);
    let new = new.converted_to(to_ns, elasticity);
    let log_ratio = new.log_ratio - base.log_ratio;
    let uncertainty = ClockConversion { log_ratio, elasticity }.uncertainty();
    PairAtOneClock { base: base.figure, new: new.figure, uncertainty }
}
