//! At which clock of the core a figure is, and what it is at another.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::Elasticity;
use stats::ratio::ExtraUncertainty;

use crate::speed::clock_ghz;

/// Clocks within this share of each other are one (by ln of their ratio): a launch reads its own no
/// better, as quanta come in steps of up to 10 ns.
pub const SAME_CLOCK: f64 = 0.002;

/// The clock of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AtClock {
    /// The latency quantum at that clock, in nanoseconds.
    pub quantum_ns: f64,
    /// By which power of the period of the core's clock the figure goes, by the run's own slices: 1
    /// where the core bounds it, 0 where memory or a device does. Absent where the run saw one
    /// clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elasticity: Option<Elasticity>,
    /// The same by earlier launches, as the plan has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<Elasticity>,
}

/// What bringing figures to another clock leaves open.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClockConversion {
    /// ln of the quanta, there over here.
    pub apart: f64,
    /// By which power they were brought; where that is not known by the middle between 0 and 1.
    pub power: Option<Elasticity>,
}

impl ClockConversion {
    /// What a figure is multiplied by.
    pub fn factor(&self) -> f64 {
        (self.apart * self.power.map_or(0.5, |of| of.value)).exp()
    }

    /// The error of the power, or where nobody knows it, any from 0 to 1; relative to the figure.
    pub fn open(&self) -> ExtraUncertainty {
        match self.power {
            Some(power) => {
                ExtraUncertainty { error: (self.apart * power.standard_error).abs(), slack: 0.0 }
            }
            None => ExtraUncertainty { error: 0.0, slack: (self.apart / 2.0).abs() },
        }
    }
}

impl AtClock {
    /// The clock in GHz, of a program that was built for `target`; absent where that is not known.
    pub fn ghz(&self, target: &str) -> Option<f64> {
        clock_ghz(self.quantum_ns, target)
    }

    /// What brings the figure to the clock of a quantum of `to_ns`: by `power` where that is known.
    pub fn to(&self, to_ns: f64, power: Option<Elasticity>) -> ClockConversion {
        let apart = (to_ns / self.quantum_ns).ln();
        ClockConversion { apart: if apart.abs() < SAME_CLOCK { 0.0 } else { apart }, power }
    }
}

/// The power of like figures: what those say together that have seen it themselves, else the best
/// that is known of one.
pub fn power_of(all: &[AtClock]) -> Option<Elasticity> {
    let is_sound = |of: &Elasticity| of.value.is_finite() && of.standard_error >= 0.0;
    let own = all.iter().filter_map(|of| of.elasticity).filter(is_sound);
    let known = all.iter().filter_map(|of| of.known).filter(is_sound);
    let best = known.min_by(|one, other| one.standard_error.total_cmp(&other.standard_error));
    pooled(own).or(best)
}

/// No power is known better than this, however many runs say it: cases that are alike are not the
/// same.
const LEAST_ERROR: f64 = 0.01;

/// What several runs say of one power: the mean, each by its error. Absent without any.
pub fn pooled(all: impl IntoIterator<Item = Elasticity>) -> Option<Elasticity> {
    let (mut weights, mut sum) = (0.0, 0.0);
    for of in all {
        let weight = of.standard_error.max(LEAST_ERROR).powi(-2);
        (weights, sum) = (weights + weight, sum + weight * of.value);
    }
    let standard_error = f64::max((1.0_f64 / weights).sqrt(), LEAST_ERROR);
    (weights > 0.0 && weights.is_finite())
        .then(|| Elasticity { value: sum / weights, standard_error })
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: AtClock = AtClock { quantum_ns: 5000.0, elasticity: None, known: None };

    fn power(value: f64, standard_error: f64) -> Elasticity {
        Elasticity { value, standard_error }
    }

    #[test]
    fn a_figure_goes_with_the_period_by_its_power() {
        let to = |value| AT.to(5500.0, Some(power(value, 0.1)));
        assert_eq!(to(0.0).factor(), 1.0);
        assert!((to(1.0).factor() - 1.1).abs() < 1e-12);
        assert!((to(0.5).factor() - 1.1_f64.sqrt()).abs() < 1e-12);
        let open = to(1.0).open();
        assert!((open.error - 0.1 * 1.1_f64.ln()).abs() < 1e-12 && open.slack == 0.0);
    }

    /// Both ends of what it may be lie within the slack.
    #[test]
    fn where_nothing_is_known_it_may_be_any_from_0_to_1() {
        let by = AT.to(5500.0, None);
        let (factor, slack) = (by.factor(), by.open().slack);
        assert!(factor * (1.0 - slack) < 1.0 + 2e-3 && factor * (1.0 + slack) > 1.1 - 2e-3);
        for same in [5000.0, 5009.0] {
            let still = AT.to(same, None);
            assert_eq!((still.factor(), still.open()), (1.0, ExtraUncertainty::default()));
        }
    }

    /// What a run was told is no evidence beside what others saw themselves.
    #[test]
    fn what_is_borrowed_does_not_vote() {
        let own = AtClock { elasticity: Some(power(1.0, 0.02)), ..AT };
        let told = AtClock { known: Some(power(0.5, 0.1)), ..AT };
        assert_eq!(power_of(&[told, own, told, told]), Some(power(1.0, 0.02)));
        let better = AtClock { known: Some(power(0.6, 0.05)), ..AT };
        assert_eq!(power_of(&[told, better, told]), Some(power(0.6, 0.05)));
        assert_eq!(power_of(&[AT]), None);
    }

    #[test]
    fn runs_say_a_power_together() {
        assert_eq!(pooled([]), None);
        let both = pooled([power(0.9, 0.02), power(1.0, 0.02)]).unwrap();
        assert!(
            (both.value - 0.95).abs() < 1e-12
                && (both.standard_error - 0.02 / 2_f64.sqrt()).abs() < 1e-12
        );
        // By their errors, and no better than so.
        assert!(pooled([power(0.9, 0.01), power(1.0, 0.1)]).unwrap().value < 0.91);
        assert_eq!(pooled([power(1.0, 0.0); 50]).unwrap().standard_error, LEAST_ERROR);
    }
}
