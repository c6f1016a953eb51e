//! Between which ends a figure is drawn, and what does not fit between them.

use model::figure::{Axis, Figure, Map, Point, Role, Scale, Series, Unit};

use super::Ruler;

/// The rulers of a figure of series.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    /// Along x.
    pub(crate) x: Ruler,
    /// Along y.
    pub(crate) y: Ruler,
    /// Points that cannot be drawn: not above zero on a logarithmic axis, or no numbers at all.
    pub(crate) left_out: usize,
    /// All points.
    pub(crate) points: usize,
}

impl Frame {
    pub(crate) fn of(figure: &Figure, all: &[Series]) -> Self {
        let points = || all.iter().flat_map(|series| &series.points);
        let xs: Vec<f64> =
            points().map(|point| point.x).chain(end_of_steps(all, figure.x.scale)).collect();
        let ends = |low: Option<f64>, high: Option<f64>| [low, high].into_iter().flatten();
        let ys: Vec<f64> =
            points().flat_map(|p| std::iter::once(p.y).chain(ends(p.low, p.high))).collect();
        let on_zero = |series: &Series| matches!(series.role, Role::Bars | Role::Steps);
        let x = Ruler::new(&figure.x, &xs, false);
        let values: Vec<f64> = points().map(|point| point.y).collect();
        // A scale that draws an interval's end but no point would be of no use.
        let scale = Ruler::new(&figure.y, &values, false).scale;
        let axis = Axis { scale, ..figure.y.clone() };
        let y = Ruler::new(&axis, &ys, all.iter().any(on_zero));
        // A class without any is drawn as that.
        let empty = |series: &Series, p: &Point| series.role == Role::Steps && p.y == 0.0;
        let lost =
            |series: &Series, p: &Point| !x.draws(p.x) || (!y.draws(p.y) && !empty(series, p));
        let of = |series: &Series| series.points.iter().filter(|p| lost(series, p)).count();
        let left_out = all.iter().map(of).sum();
        Self { left_out, points: points().count(), x, y }
    }

    /// What is said of points that are not drawn; nothing if all are.
    pub(crate) fn left_out_in_words(&self) -> Option<String> {
        if self.left_out == 0 {
            return None;
        }
        let logarithmic = [&self.x, &self.y].into_iter().any(|ruler| ruler.scale == Scale::Log);
        let why = match logarithmic {
            true => "not above zero, so not on a logarithmic axis",
            false => "not a number that can be drawn",
        };
        Some(format!("{} of {} points left out: {why}.", self.left_out, self.points))
    }
}

/// The last class of a count is as wide as the one before it.
pub(crate) fn end_of_last(series: &Series, scale: Scale) -> Option<f64> {
    let [.., before, last] = series.points.as_slice() else { return None };
    Some(match scale {
        Scale::Linear => last.x + (last.x - before.x),
        Scale::Log => last.x * (last.x / before.x),
    })
}

fn end_of_steps(all: &[Series], scale: Scale) -> Vec<f64> {
    let steps = all.iter().filter(|series| series.role == Role::Steps);
    steps.filter_map(|series| end_of_last(series, scale)).collect()
}

/// The rulers of a heat map, and its cells' edges.
#[derive(Clone, Debug)]
pub(crate) struct MapFrame {
    /// Along x, with an end at each outer edge.
    pub(crate) x: Ruler,
    /// Along y.
    pub(crate) y: Ruler,
    /// Of the values.
    pub(crate) values: Ruler,
    /// Edges of the columns, one more than there are.
    pub(crate) x_edges: Vec<f64>,
    /// Edges of the rows.
    pub(crate) y_edges: Vec<f64>,
}

/// From so many times the least value on, equal steps of colour hide it.
const WIDE: f64 = 30.0;

impl MapFrame {
    /// None where the places are not in order, are none, or do not fit the values.
    pub(crate) fn of(figure: &Figure, map: &Map) -> Option<Self> {
        let fits = map.values.len() == map.ys.len()
            && map.values.iter().all(|row| row.len() == map.xs.len());
        let (x, x_edges) = cells(&figure.x, &map.xs).filter(|_| fits)?;
        let (y, y_edges) = cells(&figure.y, &map.ys)?;
        let known: Vec<f64> = map.values.iter().flatten().flatten().copied().collect();
        let least = known.iter().copied().fold(f64::INFINITY, f64::min);
        let most = known.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let scale = if least > 0.0 && most / least >= WIDE { Scale::Log } else { Scale::Linear };
        let axis = Axis { label: map.label.clone(), unit: map.unit, scale, names: Vec::new() };
        Some(Self { x, y, values: Ruler::exact(&axis, &known), x_edges, y_edges })
    }
}

/// The ruler of places that are cells' middles, and the edges between them.
fn cells(axis: &Axis, places: &[f64]) -> Option<(Ruler, Vec<f64>)> {
    let mut ruler = Ruler::new(axis, places, false);
    let ordered = places.windows(2).all(|two| two[0] < two[1]);
    if places.is_empty() || !ordered || !places.iter().all(|place| ruler.draws(*place)) {
        return None;
    }
    let between = |one: f64, other: f64| match ruler.scale {
        Scale::Linear => 0.5 * (one + other),
        Scale::Log => one.sqrt() * other.sqrt(),
    };
    let beyond = |edge: f64, place: f64| match ruler.scale {
        Scale::Linear => place + (place - edge),
        Scale::Log => place * (place / edge),
    };
    let mut edges: Vec<f64> = places.windows(2).map(|two| between(two[0], two[1])).collect();
    let (first, last) = (places[0], places[places.len() - 1]);
    let (low, high) = match (edges.first(), edges.last()) {
        (Some(low), Some(high)) => (beyond(*low, first), beyond(*high, last)),
        _ if axis.unit == Unit::Names => (first - 0.5, first + 0.5),
        _ => (ruler.low, ruler.high),
    };
    edges.insert(0, low);
    edges.push(high);
    (ruler.low, ruler.high) = (low, high);
    (low < high).then_some((ruler, edges))
}

#[cfg(test)]
mod tests {
    use model::figure::Body;

    use super::*;
    use crate::report::drawing::samples;

    #[test]
    fn what_a_logarithmic_axis_cannot_show_is_counted() {
        let mut figure = samples::ring();
        figure.y.scale = Scale::Log;
        let mut all = figure.series().to_vec();
        all[0].points[1].y = -3.0;
        all[0].points[2].y = 0.0;
        let frame = Frame::of(&figure, &all);
        assert_eq!(frame.left_out, 2);
        let words = frame.left_out_in_words().unwrap();
        assert!(words.starts_with("2 of ") && words.contains("not above zero"), "{words}");
        assert!(frame.y.low > 0.0);
    }

    #[test]
    fn cells_meet_between_their_middles() {
        let figure = samples::map();
        let Body::Map(map) = &figure.body else { panic!("no map") };
        let frame = MapFrame::of(&figure, map).unwrap();
        assert_eq!(frame.x_edges.len(), map.xs.len() + 1);
        assert!(frame.x_edges.windows(2).all(|two| two[0] < two[1]));
        let middle = frame.x_edges[1];
        assert!((middle * middle / (map.xs[0] * map.xs[1]) - 1.0).abs() < 1e-12, "{middle}");
    }

    #[test]
    fn a_map_that_is_none_has_no_frame() {
        let figure = samples::map();
        let Body::Map(map) = &figure.body else { panic!("no map") };
        let broken = [
            Map { values: Vec::new(), ..map.clone() },
            Map { xs: vec![4.0, 2.0, 1.0, 0.5], ..map.clone() },
            Map { xs: vec![f64::NAN; map.xs.len()], ..map.clone() },
            Map { xs: Vec::new(), ys: Vec::new(), values: Vec::new(), ..map.clone() },
        ];
        assert!(broken.iter().all(|map| MapFrame::of(&figure, map).is_none()));
    }
}
