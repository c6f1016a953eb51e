//! An axis between its ends: where a value lies on it, and its ticks. A heat map has two, and a
//! third one of colours.
//!
//! Three numbers name a place on an axis: the *value* (8 members), its *coordinate* on the scale
//! (ln 8 = 2.08 on a logarithmic axis, 8 on a linear one), and its *position* (0 at the lower end,
//! 1 at the upper: 0.5 for 8 between 2 and 32).

use crate::figure::{
    Axis, Figure, HeatMap, MapContrast, Point, PointCertainty, Scale, Unit, extremes,
};
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
    /// Label of the axis, with the unit where the ticks have none: `CPU time (ms)`.
    pub(crate) title: String,
    /// Scale; linear for a logarithmic axis that could show no value.
    pub(crate) scale: Scale,
    /// Lower end.
    pub(crate) low: f64,
    /// Upper end.
    pub(crate) high: f64,
    unit: Unit,
    names: Vec<String>,
    full_names: Vec<String>,
}

impl AxisRuler {
    /// Builds a ruler with room for all `values`.
    pub(crate) fn new(axis: &Axis, values: &[f64]) -> Self {
        let mut ruler = Self {
            title: clean(&axis.label),
            scale: axis.scale,
            low: 0.0,
            high: 1.0,
            unit: axis.unit,
            names: axis.names.iter().map(|name| clean(name)).collect(),
            full_names: axis.full_names.iter().map(|name| clean(name)).collect(),
        };
        if axis.unit == Unit::Names || !values.iter().any(|value| Scale::Log.draws(*value)) {
            ruler.scale = Scale::Linear;
        }
        let (low, high) = ruler.extremes(values);
        (ruler.low, ruler.high) = match ruler.scale {
            _ if axis.unit == Unit::Names => {
                let last = ruler.names.len().max(1) as f64 - 1.0;
                (-0.5, last.max(high).round() + 0.5)
            }
            _ if low > high => (0.0, 1.0),
            Scale::Linear | Scale::Root => linear_ends(low, high),
            Scale::Log => log_ends(low, high),
        };
        let unit = ruler.notation().unit;
        if ruler.scale != Scale::Log && !unit.is_empty() {
            ruler.title = format!("{} ({unit})", ruler.title);
        }
        ruler
    }

    fn extremes(&self, values: &[f64]) -> (f64, f64) {
        extremes(values.iter().copied().filter(|value| self.draws(*value)))
    }

    /// Returns whether the value can be drawn at all.
    pub(crate) fn draws(&self, value: f64) -> bool {
        self.scale.draws(value)
    }

    /// Returns the coordinates of both ends.
    pub(crate) fn ends(&self) -> (f64, f64) {
        (self.scale.coordinate(self.low), self.scale.coordinate(self.high))
    }

    /// Returns the position of a value: 0 at the lower end, 1 at the upper. A value beyond an end is
    /// at that end; one that cannot be drawn is at the lower end.
    pub(crate) fn position(&self, value: f64) -> f64 {
        self.position_at(self.scale.coordinate(value))
    }

    /// Returns the position of a coordinate, as [`AxisRuler::position`] does for a value.
    pub(crate) fn position_at(&self, coordinate: f64) -> f64 {
        let (low, high) = self.ends();
        let position = (coordinate - low) / (high - low);
        if position.is_nan() { 0.0 } else { position.clamp(0.0, 1.0) }
    }

    /// Returns the value at a position from 0 to 1.
    pub(crate) fn value(&self, position: f64) -> f64 {
        let (low, high) = self.ends();
        self.scale.value_at(low + position * (high - low))
    }

    /// Returns whether the value lies between the ends.
    pub(crate) fn contains(&self, value: f64) -> bool {
        self.draws(value) && value >= self.low && value <= self.high
    }

    /// Returns ticks, about `most` at the most.
    pub(crate) fn ticks(&self, most: usize) -> Vec<AxisTick> {
        let mut ticks = Vec::new();
        if self.unit == Unit::Names {
            let every = self.names.len().div_ceil(most).max(1);
            for (number, name) in self.names.iter().enumerate().step_by(every) {
                ticks.push(AxisTick { at: number as f64, label: name.clone() });
            }
        } else if self.scale == Scale::Root {
            for at in ticks::root(self.unit, self.low, self.high, most) {
                ticks.push(self.round_tick(at));
            }
        } else if self.scale == Scale::Log {
            let (places, step) = ticks::log(self.unit, self.low, self.high, most);
            for at in places {
                ticks.push(match step {
                    None => self.round_tick(at),
                    Some(step) => self.exact_tick(at, step),
                });
            }
        } else {
            let (places, step) = ticks::linear(self.unit, self.low, self.high, most);
            for at in places {
                ticks.push(match self.unit {
                    Unit::Day => self.round_tick(at),
                    _ => AxisTick { at, label: self.notation().number(at, step) },
                });
            }
        }
        ticks
    }

    /// Builds a tick whose label has three digits and the unit, or is the date.
    fn round_tick(&self, at: f64) -> AxisTick {
        AxisTick { at, label: self.format_value(at) }
    }

    /// Builds a tick whose label is exact to `step` and has the unit.
    fn exact_tick(&self, at: f64, step: f64) -> AxisTick {
        let notation = Notation::for_size(self.unit, at);
        AxisTick { at, label: notation.with_unit(&notation.number(at, step)) }
    }

    /// Returns the ticks for each of these upper bounds of their number, from coarse to fine, each
    /// rung once.
    pub(crate) fn ladder(&self, most: impl IntoIterator<Item = usize>) -> Vec<Vec<AxisTick>> {
        let mut rungs: Vec<Vec<AxisTick>> = most.into_iter().map(|most| self.ticks(most)).collect();
        rungs.dedup();
        rungs.retain(|rung| !rung.is_empty());
        rungs
    }

    fn notation(&self) -> Notation {
        Notation::for_size(self.unit, self.low.abs().max(self.high.abs()))
    }

    /// Writes a value with its unit, or as the name that stands at its tick.
    fn format_tick(&self, value: f64) -> String {
        match self.unit {
            Unit::Names => self.names.get(value.round() as usize).cloned().unwrap_or_default(),
            _ => self.format_value(value),
        }
    }

    /// Writes a value with its unit, or as the full name at its place.
    pub(crate) fn format_value(&self, value: f64) -> String {
        match self.unit {
            // Points of one name stand side by side.
            Unit::Names => {
                let number = value.round() as usize;
                let name = self.full_names.get(number).or(self.names.get(number));
                name.cloned().unwrap_or_default()
            }
            _ => written(self.unit, value),
        }
    }

    /// Writes the interval of a point, if it has one: `1.8 us to 2 us`.
    pub(crate) fn format_interval(&self, point: &Point) -> Option<String> {
        let (low, high) = point.interval()?;
        Some(format!("{} to {}", self.format_value(low), self.format_value(high)))
    }

    /// Writes the value of a point, marked where it is rough: `~1.9 us`; of a range its ends.
    pub(crate) fn format_point(&self, point: &Point) -> String {
        match point.certainty {
            PointCertainty::Sure => self.format_value(point.y),
            PointCertainty::Rough => format!("~{}", self.format_value(point.y)),
            PointCertainty::RangeOnly => self.format_interval(point).unwrap_or_default(),
        }
    }

    /// Writes the value of a point with its interval: `1.9 us (1.8 us to 2 us)`.
    pub(crate) fn format_with_interval(&self, point: &Point) -> String {
        let value = self.format_point(point);
        match self.format_interval(point) {
            Some(interval) if point.certainty != PointCertainty::RangeOnly => {
                format!("{value} ({interval})")
            }
            _ => value,
        }
    }
}

/// Chooses the ends of a linear axis. They include zero if that takes less than half of the axis
/// away; at each end that is not zero there is a margin.
fn linear_ends(low: f64, high: f64) -> (f64, f64) {
    let low = if low > 0.0 && low < 0.6 * high { 0.0 } else { low };
    let high = if high < 0.0 && high > 0.6 * low { 0.0 } else { high };
    let span = high - low;
    // Equal values are in the middle.
    if span <= low.abs().max(high.abs()) * 1e-9 {
        let around = if high == 0.0 { 1.0 } else { high.abs() * 0.5 };
        return (low - around, high + around);
    }
    let margin = 0.05 * span;
    (if low == 0.0 { low } else { low - margin }, if high == 0.0 { high } else { high + margin })
}

/// Chooses the ends of a logarithmic axis: a margin of 4 % of its length, at most a factor of 2.
fn log_ends(low: f64, high: f64) -> (f64, f64) {
    let span = (high / low).ln();
    let margin = if span < 1e-9 { 2f64.ln() } else { (0.04 * span).min(2f64.ln()) };
    (low / margin.exp(), high * margin.exp())
}

/// Ratio of the largest to the least value from which equal steps of colour hide the least.
const MIN_LOG_COLOUR_RATIO: f64 = 30.0;

/// The rulers of a heat map. All columns have the same width, and all rows, whatever their places
/// are.
#[derive(Clone, Debug)]
pub(crate) struct MapGrid<'a> {
    pub(crate) map: &'a HeatMap,
    /// Ruler of the columns, by their numbers.
    pub(crate) x: AxisRuler,
    /// Ruler of the rows, by their numbers.
    pub(crate) y: AxisRuler,
    /// Ruler of the values: from the least to the largest.
    pub(crate) values: AxisRuler,
}

impl<'a> MapGrid<'a> {
    /// Builds the rulers. None where the places are not in order, are none, or do not fit the
    /// values.
    pub(crate) fn from_map(figure: &Figure, map: &'a HeatMap) -> Option<Self> {
        let fits = map.values.len() == map.ys.len()
            && map.values.iter().all(|row| row.len() == map.xs.len());
        if !(fits && are_rising(&map.xs) && are_rising(&map.ys)) {
            return None;
        }
        let mut known = Vec::new();
        for row in &map.values {
            known.extend(row.iter().flatten());
        }
        let (least, most) = extremes(known.iter().copied());
        let is_wide = least > 0.0 && most / least >= MIN_LOG_COLOUR_RATIO && map.contrast.is_none();
        let scale = if is_wide { Scale::Log } else { Scale::Linear };
        let mut values = AxisRuler::new(&Axis::new("", map.unit, scale), &known);
        let (low, high) = values.extremes(&known);
        if high - low > high.abs() * 1e-9 {
            (values.low, values.high) = (low, high);
        }
        if let Some(MapContrast { middle, reach }) = map.contrast {
            (values.low, values.high) = (middle - reach, middle + reach);
        }
        let (x, y) = (number_places(&figure.x, &map.xs), number_places(&figure.y, &map.ys));
        Some(Self { map, x, y, values })
    }
}

/// Returns whether these are places that can be drawn, at least one, each above the one before.
fn are_rising(places: &[f64]) -> bool {
    let is_ordered = places.windows(2).all(|pair| pair[0] < pair[1]);
    is_ordered && !places.is_empty() && places.iter().all(|place| Scale::Linear.draws(*place))
}

/// Builds a ruler on which the places are names, equally far apart.
fn number_places(axis: &Axis, places: &[f64]) -> AxisRuler {
    let ruler = AxisRuler::new(axis, places);
    let mut numbered = AxisRuler::new(&Axis::with_names(&axis.label, Vec::new()), &[]);
    for place in places {
        numbered.names.push(ruler.format_tick(*place));
        numbered.full_names.push(ruler.format_value(*place));
    }
    numbered.high = places.len() as f64 - 0.5;
    numbered
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::FigureBody;
    use crate::samples;

    fn axis(unit: Unit, scale: Scale) -> Axis {
        Axis::new("time", unit, scale)
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
                assert!(
                    values.iter().all(|v| !ruler.draws(*v) || ruler.contains(*v)),
                    "{values:?}"
                );
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
        assert_eq!(ruler.format_value(1.5), "1.5");
    }

    #[test]
    fn a_map_has_a_number_for_each_column_and_row() {
        let figure = samples::map();
        let FigureBody::Map(map) = &figure.body else { panic!("no map") };
        let grid = MapGrid::from_map(&figure, map).unwrap();
        assert_eq!((grid.x.low, grid.x.high), (-0.5, map.xs.len() as f64 - 0.5));
        assert_eq!((&*grid.x.format_value(1.0), &*grid.y.format_value(0.0)), ("16 KiB", "8 B"));
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
        assert!(broken.iter().all(|map| MapGrid::from_map(&figure, map).is_none()));
    }
}
