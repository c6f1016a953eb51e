//! An axis with both ends: where a value lies between them, and its ticks.

use crate::figure::{Axis, Scale, Unit};
use crate::text::clean;
use crate::ticks::{self, Notation, written};

/// Beyond this, differences and ratios of what is finite are not.
const HUGE: f64 = 1e280;

/// A tick and what stands at it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    /// Where.
    pub(crate) at: f64,
    /// Its label.
    pub(crate) label: String,
}

/// An axis as it is drawn.
#[derive(Clone, Debug)]
pub(crate) struct Ruler {
    /// What is on it, with the unit where the ticks have none: `CPU time (ms)`.
    pub(crate) title: String,
    /// How it is divided. Linear for an axis on which logarithms would have left nothing.
    pub(crate) scale: Scale,
    /// Its ends.
    pub(crate) low: f64,
    /// The upper one.
    pub(crate) high: f64,
    unit: Unit,
    names: Vec<String>,
}

impl Ruler {
    /// A ruler as long as `values` need.
    pub(crate) fn new(axis: &Axis, values: &[f64]) -> Self {
        let mut ruler = Self {
            title: clean(&axis.label),
            scale: axis.scale,
            low: 0.0,
            high: 1.0,
            unit: axis.unit,
            names: axis.names.iter().map(|name| clean(name)).collect(),
        };
        if axis.unit == Unit::Names {
            ruler.scale = Scale::Linear;
            let last = values.iter().copied().filter(|value| drawable(Scale::Linear, *value));
            let last = last.fold(ruler.names.len().max(1) as f64 - 1.0, f64::max);
            (ruler.low, ruler.high) = (-0.5, last.round() + 0.5);
            return ruler;
        }
        if !values.iter().any(|value| drawable(Scale::Log, *value)) {
            ruler.scale = Scale::Linear;
        }
        let (low, high) = ruler.extremes(values);
        (ruler.low, ruler.high) = match ruler.scale {
            _ if low > high => (0.0, 1.0),
            Scale::Linear => linear_ends(low, high),
            Scale::Log => log_ends(low, high),
        };
        let unit = ruler.notation().unit;
        if ruler.scale == Scale::Linear && !unit.is_empty() {
            ruler.title = format!("{} ({unit})", ruler.title);
        }
        ruler
    }

    /// A ruler that ends at the least and the greatest value.
    pub(crate) fn exact(axis: &Axis, values: &[f64]) -> Self {
        let mut ruler = Self::new(axis, values);
        let (low, high) = ruler.extremes(values);
        if high - low > high.abs() * 1e-9 {
            (ruler.low, ruler.high) = (low, high);
        }
        ruler
    }

    fn extremes(&self, values: &[f64]) -> (f64, f64) {
        let usable = values.iter().copied().filter(|value| self.draws(*value));
        usable.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)))
    }

    /// Whether the value can be drawn at all.
    pub(crate) fn draws(&self, value: f64) -> bool {
        drawable(self.scale, value)
    }

    /// Where the value lies: 0 at the lower end, 1 at the upper; beyond them, at them. What cannot be
    /// drawn is at the lower end.
    pub(crate) fn position(&self, value: f64) -> f64 {
        let (low, high, value) = match self.scale {
            Scale::Linear => (self.low, self.high, value),
            Scale::Log => (self.low.ln(), self.high.ln(), value.max(f64::MIN_POSITIVE).ln()),
        };
        let position = (value - low) / (high - low);
        if position.is_nan() { 0.0 } else { position.clamp(0.0, 1.0) }
    }

    /// The value at a position from 0 to 1.
    pub(crate) fn value(&self, position: f64) -> f64 {
        match self.scale {
            Scale::Linear => self.low + position * (self.high - self.low),
            Scale::Log => self.low * (self.high / self.low).powf(position),
        }
    }

    /// Whether the value lies between the ends.
    pub(crate) fn holds(&self, value: f64) -> bool {
        self.draws(value) && value >= self.low && value <= self.high
    }

    /// About `most` ticks at the most.
    pub(crate) fn ticks(&self, most: usize) -> Vec<Tick> {
        if self.unit == Unit::Names {
            let names = self.names.iter().enumerate();
            return names.map(|(k, name)| Tick { at: k as f64, label: name.clone() }).collect();
        }
        match self.scale {
            Scale::Linear => {
                let (ticks, step) = ticks::linear(self.unit, self.low, self.high, most);
                let notation = self.notation();
                let label = |at: &f64| Tick { at: *at, label: notation.number(*at, step) };
                ticks.iter().map(label).collect()
            }
            Scale::Log => {
                let ticks = ticks::log(self.unit, self.low, self.high, most);
                let label = |at: &f64| Tick { at: *at, label: written(self.unit, *at) };
                ticks.iter().map(label).collect()
            }
        }
    }

    fn notation(&self) -> Notation {
        Notation::of(self.unit, self.low.abs().max(self.high.abs()))
    }

    /// The value as a person says it.
    pub(crate) fn say(&self, value: f64) -> String {
        match self.unit {
            Unit::Names => self.names.get(value as usize).cloned().unwrap_or_default(),
            _ => written(self.unit, value),
        }
    }
}

fn drawable(scale: Scale, value: f64) -> bool {
    let size = value.abs();
    size < HUGE && (scale == Scale::Linear || (value > 0.0 && size > 1.0 / HUGE))
}

/// From zero if that takes less than half of the axis away; else a margin at both ends.
fn linear_ends(low: f64, high: f64) -> (f64, f64) {
    let low = if low > 0.0 && low < 0.6 * high { 0.0 } else { low };
    let high = if high < 0.0 && high > 0.6 * low { 0.0 } else { high };
    let span = high - low;
    // Equal values are in the middle.
    if span <= low.abs().max(high.abs()) * 1e-9 {
        let around = if high == 0.0 { 1.0 } else { high.abs() * 0.5 };
        return (low - around, high + around);
    }
    let margin = |end: f64| if end == 0.0 { 0.0 } else { 0.05 * span };
    (low - margin(low), high + margin(high))
}

fn log_ends(low: f64, high: f64) -> (f64, f64) {
    let span = (high / low).ln();
    let margin = if span < 1e-9 { 2f64.ln() } else { (0.04 * span).min(2f64.ln()) };
    (low / margin.exp(), high * margin.exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(unit: Unit, scale: Scale) -> Axis {
        Axis { label: "time".into(), unit, scale, names: Vec::new() }
    }

    fn labels(ruler: &Ruler, most: usize) -> Vec<String> {
        ruler.ticks(most).into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn one_unit_for_all_numbers_of_a_linear_axis() {
        let ruler = Ruler::new(&axis(Unit::Nanoseconds, Scale::Linear), &[900.0, 4200.0]);
        assert_eq!(ruler.title, "time (us)");
        assert_eq!(labels(&ruler, 5), ["0", "1", "2", "3", "4"]);
    }

    #[test]
    fn each_number_of_a_logarithmic_axis_has_its_own() {
        let ruler = Ruler::new(&axis(Unit::Nanoseconds, Scale::Log), &[100.0, 20_000.0, -5.0]);
        assert_eq!(ruler.title, "time");
        assert_eq!(labels(&ruler, 4), ["100 ns", "1 us", "10 us"]);
        assert!(!ruler.draws(-5.0) && !ruler.draws(f64::NAN) && !ruler.draws(1e300));
    }

    #[test]
    fn costs_below_zero_make_an_axis_linear_only_where_nothing_else_is() {
        let ruler = Ruler::new(&axis(Unit::Ratio, Scale::Log), &[-3.0, -1.0, f64::NAN]);
        assert_eq!(ruler.scale, Scale::Linear);
        assert!(ruler.low < -3.0 && ruler.high > -1.0, "{ruler:?}");
    }

    #[test]
    fn equal_values_and_none_have_an_axis() {
        for scale in [Scale::Linear, Scale::Log] {
            for values in [&[][..], &[7.0][..], &[0.0, 0.0][..], &[-2.0][..], &[1e279, 1e279][..]] {
                let ruler = Ruler::new(&axis(Unit::Bytes, scale), values);
                assert!(ruler.low < ruler.high, "{values:?} {ruler:?}");
                assert!(values.iter().all(|v| !ruler.draws(*v) || ruler.holds(*v)), "{values:?}");
                assert!(!ruler.ticks(6).is_empty(), "{values:?}");
            }
        }
    }

    #[test]
    fn an_axis_begins_at_zero_unless_that_would_hide_its_values() {
        let ends = |values: &[f64]| {
            let ruler = Ruler::new(&axis(Unit::Ratio, Scale::Linear), values);
            (ruler.low, ruler.high)
        };
        assert_eq!(ends(&[0.0, 9.0, 10.0]).0, 0.0, "bars stand on zero");
        assert!(ends(&[9.0, 10.0]).0 > 8.0);
        assert_eq!(ends(&[3.0, 10.0]).0, 0.0);
    }

    #[test]
    fn values_lie_where_their_scale_has_them() {
        let ruler = Ruler::new(&axis(Unit::Count, Scale::Log), &[2.0, 32.0]);
        assert!((ruler.position(8.0) - 0.5).abs() < 1e-12);
        assert_eq!(ruler.position(-1.0), 0.0);
        assert_eq!(ruler.position(f64::INFINITY), 1.0);
        assert!((ruler.value(ruler.position(8.0)) - 8.0).abs() < 1e-9);
        assert_eq!(ruler.say(1.5), "1.5");
    }
}
