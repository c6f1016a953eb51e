//! An axis between its ends: where a value lies on it, and its ticks. A heat map has two, and one
//! of colours.

use crate::figure::{Axis, Figure, HeatMap, Point, PointCertainty, Scale, Unit, extremes};
use crate::text::clean;
use crate::ticks::{self, Notation, written};

/// A tick and its label.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AxisTick {
    pub(crate) at: f64,
    pub(crate) label: String,
}

/// An axis as it is drawn.
#[derive(Clone, Debug)]
pub(crate) struct AxisRuler {
    /// Its label, with the unit where the ticks have none: `CPU time (ms)`.
    pub(crate) title: String,
    /// Linear for a logarithmic axis that could show no value.
    pub(crate) scale: Scale,
    /// The lower end.
    pub(crate) low: f64,
    /// The upper end.
    pub(crate) high: f64,
    unit: Unit,
    names: Vec<String>,
}

impl AxisRuler {
    /// A ruler with room for all `values`.
    pub(crate) fn new(axis: &Axis, values: &[f64]) -> Self {
        let mut ruler = Self {
            title: clean(&axis.label),
            scale: axis.scale,
            low: 0.0,
            high: 1.0,
            unit: axis.unit,
            names: axis.names.iter().map(|name| clean(name)).collect(),
        };
        let is_log = |value: &f64| Scale::Log.draws(*value);
        if axis.unit == Unit::Names || !values.iter().any(is_log) {
            ruler.scale = Scale::Linear;
        }
        let (low, high) = ruler.extremes(values);
        (ruler.low, ruler.high) = match ruler.scale {
            _ if axis.unit == Unit::Names => {
                let last = ruler.names.len().max(1) as f64 - 1.0;
                (-0.5, last.max(high).round() + 0.5)
            }
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

    fn extremes(&self, values: &[f64]) -> (f64, f64) {
        extremes(values.iter().copied().filter(|value| self.draws(*value)))
    }

    /// Whether the value can be drawn at all.
    pub(crate) fn draws(&self, value: f64) -> bool {
        self.scale.draws(value)
    }

    /// Both ends, as [`Scale::on`] has them.
    pub(crate) fn ends(&self) -> (f64, f64) {
        (self.scale.on(self.low), self.scale.on(self.high))
    }

    /// Where the value lies: 0 at the lower end, 1 at the upper. What lies beyond an end is at that
    /// end; what cannot be drawn is at the lower end.
    pub(crate) fn position(&self, value: f64) -> f64 {
        self.share(self.scale.on(value))
    }

    /// The same of a place that [`Scale::on`] has given.
    pub(crate) fn share(&self, place: f64) -> f64 {
        let (low, high) = self.ends();
        let share = (place - low) / (high - low);
        if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) }
    }

    /// The value at a position from 0 to 1.
    pub(crate) fn value(&self, position: f64) -> f64 {
        let (low, high) = self.ends();
        self.scale.back(low + position * (high - low))
    }

    /// Whether the value lies between the ends.
    pub(crate) fn holds(&self, value: f64) -> bool {
        self.draws(value) && value >= self.low && value <= self.high
    }

    /// About `most` ticks at the most.
    pub(crate) fn ticks(&self, most: usize) -> Vec<AxisTick> {
        let said = |at: f64| AxisTick { at, label: self.say(at) };
        if self.unit == Unit::Names {
            let every = self.names.len().div_ceil(most).max(1);
            return (0..self.names.len()).step_by(every).map(|at| said(at as f64)).collect();
        }
        if self.scale == Scale::Log {
            let (ticks, step) = ticks::log(self.unit, self.low, self.high, most);
            let Some(step) = step else { return ticks.into_iter().map(said).collect() };
            let exact = |at: f64| {
                let notation = Notation::of(self.unit, at);
                AxisTick { at, label: notation.with_unit(&notation.number(at, step)) }
            };
            return ticks.into_iter().map(exact).collect();
        }
        let (ticks, step) = ticks::linear(self.unit, self.low, self.high, most);
        let notation = self.notation();
        let number = |at: f64| AxisTick { at, label: notation.number(at, step) };
        ticks.into_iter().map(number).collect()
    }

    /// Its ticks for each of these numbers of them at the most, from coarse to fine, each rung
    /// once.
    pub(crate) fn ladder(&self, most: impl IntoIterator<Item = usize>) -> Vec<Vec<AxisTick>> {
        let mut rungs: Vec<Vec<AxisTick>> = most.into_iter().map(|most| self.ticks(most)).collect();
        rungs.dedup();
        rungs.retain(|rung| !rung.is_empty());
        rungs
    }

    fn notation(&self) -> Notation {
        Notation::of(self.unit, self.low.abs().max(self.high.abs()))
    }

    /// The value with its unit, or the name.
    pub(crate) fn say(&self, value: f64) -> String {
        match self.unit {
            // Points of one name stand side by side.
            Unit::Names => self.names.get(value.round() as usize).cloned().unwrap_or_default(),
            _ => written(self.unit, value),
        }
    }

    /// The interval of a value in words, if it has one.
    pub(crate) fn say_interval(&self, point: &Point) -> Option<String> {
        let (low, high) = point.interval()?;
        Some(format!("{} to {}", self.say(low), self.say(high)))
    }

    /// The value of a point, marked where it is rough: `~1.9 us`; of a range its ends.
    pub(crate) fn say_value(&self, point: &Point) -> String {
        match point.certainty {
            PointCertainty::Sure => self.say(point.y),
            PointCertainty::Rough => format!("~{}", self.say(point.y)),
            PointCertainty::RangeOnly => self.say_interval(point).unwrap_or_default(),
        }
    }

    /// The value of a point with its interval: `1.9 us (1.8 us to 2 us)`.
    pub(crate) fn say_with_interval(&self, point: &Point) -> String {
        let interval =
            self.say_interval(point).filter(|_| point.certainty != PointCertainty::RangeOnly);
        let interval = interval.map(|interval| format!(" ({interval})"));
        self.say_value(point) + &interval.unwrap_or_default()
    }
}

/// Includes zero if that takes less than half of the axis away; a margin at each other end.
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

/// From this ratio of the largest to the least value on, equal steps of colour hide the least.
const WIDE: f64 = 30.0;

/// The rulers of a heat map. Columns and rows are as wide as their neighbours, whatever their
/// places are.
#[derive(Clone, Debug)]
pub(crate) struct MapGrid<'a> {
    pub(crate) map: &'a HeatMap,
    /// Of the columns, by their numbers.
    pub(crate) x: AxisRuler,
    /// Of the rows.
    pub(crate) y: AxisRuler,
    /// Of the values: from the least to the largest.
    pub(crate) values: AxisRuler,
}

impl<'a> MapGrid<'a> {
    /// None where the places are not in order, are none, or do not fit the values.
    pub(crate) fn of(figure: &Figure, map: &'a HeatMap) -> Option<Self> {
        let is_sound = |at: &[f64]| {
            let ordered = at.windows(2).all(|two| two[0] < two[1]);
            ordered && !at.is_empty() && at.iter().all(|at| Scale::Linear.draws(*at))
        };
        let fits = map.values.len() == map.ys.len()
            && map.values.iter().all(|row| row.len() == map.xs.len());
        if !(fits && is_sound(&map.xs) && is_sound(&map.ys)) {
            return None;
        }
        let known: Vec<f64> = map.values.iter().flatten().flatten().copied().collect();
        let (least, most) = extremes(known.iter().copied());
        let scale = if least > 0.0 && most / least >= WIDE { Scale::Log } else { Scale::Linear };
        let mut values = AxisRuler::new(&Axis::new("", map.unit, scale), &known);
        let (low, high) = values.extremes(&known);
        if high - low > high.abs() * 1e-9 {
            (values.low, values.high) = (low, high);
        }
        let numbered = |axis: &Axis, at: &[f64]| {
            let own = AxisRuler::new(axis, at);
            let names = at.iter().map(|at| own.say(*at)).collect();
            AxisRuler::new(&Axis::with_names(&axis.label, names), &[])
        };
        let (x, y) = (numbered(&figure.x, &map.xs), numbered(&figure.y, &map.ys));
        Some(Self { map, x, y, values })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::FigureBody;
    use crate::samples;

    fn axis(unit: Unit, scale: Scale) -> Axis {
        Axis { label: "time".into(), unit, scale, names: Vec::new() }
    }

    fn labels(ruler: &AxisRuler, most: usize) -> Vec<String> {
        ruler.ticks(most).into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn one_unit_for_all_numbers_of_a_linear_axis() {
        let ruler = AxisRuler::new(&axis(Unit::Nanoseconds, Scale::Linear), &[900.0, 4200.0]);
        assert_eq!(ruler.title, "time (us)");
        assert_eq!(labels(&ruler, 5), ["0", "1", "2", "3", "4"]);
    }

    #[test]
    fn each_number_of_a_logarithmic_axis_has_its_own() {
        let ruler = AxisRuler::new(&axis(Unit::Nanoseconds, Scale::Log), &[100.0, 20_000.0, -5.0]);
        assert_eq!(ruler.title, "time");
        assert_eq!(labels(&ruler, 4), ["100 ns", "1 us", "10 us"]);
        assert!(!ruler.draws(-5.0) && !ruler.draws(f64::NAN) && !ruler.draws(1e300));
    }

    #[test]
    fn costs_below_zero_make_an_axis_linear_only_where_nothing_else_is() {
        let ruler = AxisRuler::new(&axis(Unit::Ratio, Scale::Log), &[-3.0, -1.0, f64::NAN]);
        assert_eq!(ruler.scale, Scale::Linear);
        assert!(ruler.low < -3.0 && ruler.high > -1.0, "{ruler:?}");
    }

    #[test]
    fn equal_values_and_none_have_an_axis() {
        for scale in [Scale::Linear, Scale::Log] {
            for values in [&[][..], &[7.0][..], &[0.0, 0.0][..], &[-2.0][..], &[1e279, 1e279][..]] {
                let ruler = AxisRuler::new(&axis(Unit::Bytes, scale), values);
                assert!(ruler.low < ruler.high, "{values:?} {ruler:?}");
                assert!(values.iter().all(|v| !ruler.draws(*v) || ruler.holds(*v)), "{values:?}");
                assert!(!ruler.ticks(6).is_empty(), "{values:?}");
            }
        }
    }

    #[test]
    fn an_axis_begins_at_zero_unless_that_would_hide_its_values() {
        let ends = |values: &[f64]| {
            let ruler = AxisRuler::new(&axis(Unit::Ratio, Scale::Linear), values);
            (ruler.low, ruler.high)
        };
        assert_eq!(ends(&[0.0, 9.0, 10.0]).0, 0.0, "bars stand on zero");
        assert!(ends(&[9.0, 10.0]).0 > 8.0);
        assert_eq!(ends(&[3.0, 10.0]).0, 0.0);
    }

    #[test]
    fn values_lie_where_their_scale_has_them() {
        let ruler = AxisRuler::new(&axis(Unit::Count, Scale::Log), &[2.0, 32.0]);
        assert!((ruler.position(8.0) - 0.5).abs() < 1e-12);
        assert_eq!(ruler.position(-1.0), 0.0);
        assert_eq!(ruler.position(f64::INFINITY), 1.0);
        assert!((ruler.value(ruler.position(8.0)) - 8.0).abs() < 1e-9);
        assert_eq!(ruler.say(1.5), "1.5");
    }

    #[test]
    fn a_map_has_a_number_for_each_column_and_row() {
        let figure = samples::map();
        let FigureBody::Map(map) = &figure.body else { panic!("no map") };
        let grid = MapGrid::of(&figure, map).unwrap();
        assert_eq!((grid.x.low, grid.x.high), (-0.5, map.xs.len() as f64 - 0.5));
        assert_eq!((&*grid.x.say(1.0), &*grid.y.say(0.0)), ("16 KiB", "8 B"));
    }

    #[test]
    fn a_map_that_is_none_has_no_grid() {
        let figure = samples::map();
        let FigureBody::Map(map) = &figure.body else { panic!("no map") };
        let broken = [
            HeatMap { values: Vec::new(), ..map.clone() },
            HeatMap { xs: vec![4.0, 2.0, 1.0, 0.5], ..map.clone() },
            HeatMap { xs: vec![f64::NAN; map.xs.len()], ..map.clone() },
            HeatMap { xs: Vec::new(), ys: Vec::new(), values: Vec::new(), ..map.clone() },
        ];
        assert!(broken.iter().all(|map| MapGrid::of(&figure, map).is_none()));
    }
}
