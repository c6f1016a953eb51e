//! The cost over time.

use charts::{Axis, Figure, Mark, Point, Role, Scale, Series, Unit};
use model::trend::{By, Trend};

use crate::present::figures::{lines, nanoseconds};

/// The points with their intervals and the levels; by kernel or build a bar for each. None without
/// points.
pub(super) fn figure(found: &Trend) -> Option<Figure> {
    let at = |index: usize| match found.terms.by {
        By::Run => index as f64 + 1.0,
        By::Kernel | By::Build => index as f64,
    };
    let point = |(index, of): (usize, &model::trend::Point)| {
        Point::with_ends(at(index), of.ns, [of.low, of.high])
    };
    let points: Vec<Point> = found.points.iter().enumerate().map(point).collect();
    let (x, role) = match found.terms.by {
        By::Run => (Axis::new("run", Unit::Count, Scale::Linear), Role::Measured),
        By::Kernel | By::Build => {
            let names = found.points.iter().map(|of| of.name.clone()).collect();
            (Axis::of_names(found.terms.by.name(), names), Role::Bars)
        }
    };
    let mut series = vec![Series::new(&*found.case.title, 0, role, points)];
    let mut marks = Vec::new();
    if found.terms.by == By::Run {
        let ends = found
            .levels
            .iter()
            .flat_map(|of| [of.first, of.last].map(|index| Point::bare(at(index), of.ns)));
        series.push(Series::new("level", 0, Role::Law, ends.collect()));
        let mark = |change: &model::trend::Change| Mark {
            x: at(change.at),
            between: None,
            label: change.since.get(..10).unwrap_or(&change.since).to_string(),
        };
        marks.extend(found.changes.iter().map(mark));
    }
    let clock = found.clock_ghz.map_or(String::new(), |ghz| format!(", at {ghz:.2} GHz"));
    let title = format!("Cost over time{clock}");
    let axes = (x, nanoseconds("cost"));
    let figure = lines("trend", &title, found.in_words.clone(), axes, series)?;
    Some(Figure { marks, ..figure })
}
