//! Heat maps: the rulers and the cells' edges.

use crate::figure::{Axis, Figure, Map, Scale, Unit};
use crate::ruler::Ruler;

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
    let mut ruler = Ruler::new(axis, places);
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
    use super::*;
    use crate::figure::Body;
    use crate::samples;

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
