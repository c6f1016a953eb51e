//! The verdict in one plain sentence.

use std::fmt;

use super::EQUIVALENCE;
use super::shape::Shape;
use super::verdict::{Curve, Knee, KneeKind, Law, Verdict};
use crate::words::{percent, signed, time, times};

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_words())
    }
}

impl Verdict {
    /// The verdict in one sentence, without a full stop. Costs are taken to be nanoseconds.
    #[must_use]
    pub fn in_words(&self) -> String {
        match (&self.law, &self.curve) {
            (Law::CannotTell { why }, _) => format!("inconclusive: {why}"),
            (Law::Follows { .. }, None) => "inconclusive: no curve".into(),
            (Law::Follows { .. }, Some(curve)) => self.describe(curve),
        }
    }

    fn describe(&self, curve: &Curve) -> String {
        let low = f64::from(self.smallest_members);
        let high = f64::from(self.largest_members);
        if self.knees.is_empty() {
            let ends = format!(
                "from {} at {low:.0} to {} at {high:.0} members",
                time(curve.at(low)),
                time(curve.at(high))
            );
            return match curve.shape {
                Shape::Constant => {
                    let bound =
                        self.trend_below.map(|b| format!(", any trend below {}", percent(b)));
                    let level = time(curve.at(low));
                    let bound = bound.unwrap_or_default();
                    format!("flat from {low:.0} to {high:.0} members: {level} a switch{bound}")
                }
                _ => format!("{} ({ends})", slope(curve, low, high)),
            };
        }
        let knees: Vec<String> = self.knees.iter().map(|knee| tell(curve, knee)).collect();
        let until = self.knees.first().map_or(0, |knee| knee.low_members);
        let base = slope(curve, low, f64::from(until).max(low + 1.0));
        let start = if until > self.smallest_members {
            format!("{base} from {low:.0} to {until} members")
        } else {
            format!("{base} at {low:.0} members")
        };
        format!("{start}, then {}", knees.join(", then "))
    }
}

/// The law before the first knee.
fn slope(curve: &Curve, low: f64, high: f64) -> String {
    let rate = curve.coefficients.get(1).copied().unwrap_or(0.0);
    let verb = |rate: f64| if rate < 0.0 { "falls" } else { "grows" };
    // A slope that nobody would call one: a hinge needs some slope before it.
    let level = curve.at(low).abs().max(curve.at(high).abs());
    if curve.shape == Shape::LinearHinge && (rate * (high - low)).abs() <= EQUIVALENCE * level {
        return "flat".into();
    }
    match curve.shape.base() {
        Shape::Logarithmic => {
            let doubling = signed(rate * std::f64::consts::LN_2);
            format!("{} with the logarithm of the ring: {doubling} for each doubling", verb(rate))
        }
        Shape::Linear => format!(
            "{} linearly with the ring: {} for each further member",
            verb(rate),
            signed(rate)
        ),
        Shape::Saturating => {
            let verb = if rate < 0.0 { "falls" } else { "rises" };
            let half = 1.0 + std::f64::consts::LN_2 * curve.turns.first().unwrap_or(&0.0);
            format!("{verb} to a plateau, half of the way by {half:.0} members")
        }
        Shape::Quadratic => {
            format!("{} with the square of the ring", verb(curve.at(high) - curve.at(low)))
        }
        _ => "flat".into(),
    }
}

fn tell(curve: &Curve, knee: &Knee) -> String {
    let place = format!("a knee between {} and {}", knee.low_members, knee.high_members);
    let single = if knee.sizes_after == 1 { " (seen at one size only)" } else { "" };
    let levels_off = curve.shape == Shape::Ramp && knee.at_members > curve.turns[1];
    if levels_off {
        return format!("flat again after {place}{single}");
    }
    let Some(factor) = knee.factor else {
        let change = curve.at(knee.at_members) - curve.at(f64::from(knee.low_members));
        return format!("{place}: {}{single}", signed(change));
    };
    if curve.shape == Shape::FlatLogarithmic {
        let doubling = signed(curve.coefficients[1] * std::f64::consts::LN_2);
        return format!("{place}: {doubling} for each doubling from there{single}");
    }
    let word = if factor < 1.0 { "faster" } else { "slower" };
    let place_of_factor = match knee.kind {
        KneeKind::Step => String::new(),
        KneeKind::Hinge => format!(" by {:.0} members", knee.at_members),
    };
    let interval = match (knee.factor_low, knee.factor_high) {
        (Some(low), Some(high)) => format!(" ({} to {})", times(low), times(high)),
        _ => String::new(),
    };
    let times = times(factor);
    format!("{place}: {times} {word}{place_of_factor}{interval}{single}")
}

pub(super) fn shape_name(shape: Shape) -> &'static str {
    match shape {
        Shape::Constant => "a flat cost",
        Shape::Logarithmic => "logarithmic growth",
        Shape::Linear => "linear growth",
        Shape::Saturating => "a plateau",
        Shape::Quadratic => "quadratic growth",
        Shape::Step => "a flat cost with a step",
        Shape::FlatLogarithmic => "a flat cost, then logarithmic growth",
        Shape::LogarithmicStep => "logarithmic growth with a step",
        Shape::LinearStep => "linear growth with a step",
        Shape::LogarithmicHinge => "logarithmic growth with a hinge",
        Shape::LinearHinge => "linear growth with a hinge",
        Shape::TwoSteps => "a flat cost with two steps",
        Shape::Ramp => "a flat cost with a ramp",
    }
}
