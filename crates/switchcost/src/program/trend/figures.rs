//! The cost over time, and the clock.

use analysis::trend::{CaseTrend, PointGrouping};
use charts::{Axis, AxisMark, Figure, Point, Role, Scale, Series, Unit};

use crate::report::figures::{lines, nanoseconds};

/// The chart of the cost.
pub(super) const COST: &str = "trend";
/// The chart of the core's clock.
pub(super) const CLOCK: &str = "clock";

/// All that there is to draw of a trend.
pub(super) fn figures(found: &CaseTrend) -> Vec<Figure> {
    figure(found).into_iter().chain(clock(found)).collect()
}

/// The clock that the core had in each run; none where it is known of fewer than two.
fn clock(found: &CaseTrend) -> Option<Figure> {
    if found.terms.by != PointGrouping::Run {
        return None;
    }
    let mut points = Vec::new();
    for (index, point) in found.points.iter().enumerate() {
        points.extend(point.clock_ghz.map(|ghz| Point::bare(index as f64 + 1.0, ghz)));
    }
    if points.len() < 2 {
        return None;
    }
    let changes: Vec<String> =
        found.clock_changes.iter().map(|change| format!("{}.", change.in_words)).collect();
    let in_words = match changes.is_empty() {
        true => "No change of the core's clock shows.".to_string(),
        false => changes.join(" "),
    };
    let x = Axis::new("run", Unit::Count, Scale::Linear);
    let y = Axis::new("clock of the core in GHz", Unit::Ratio, Scale::Linear);
    let marks = found.clock_changes.iter().map(|change| AxisMark {
        x: change.at as f64 + 1.0,
        between: None,
        label: change.since.get(..10).unwrap_or(&change.since).to_string(),
    });
    let figure = Figure { in_words, marks: marks.collect(), ..Figure::new(CLOCK, "Clock", x, y) };
    figure.with_series([Series::new("clock", 0, Role::Measured, points)])
}

/// The points with their intervals and the levels; by kernel or build a bar for each. None without
/// points.
pub(super) fn figure(found: &CaseTrend) -> Option<Figure> {
    let at = |index: usize| match found.terms.by {
        PointGrouping::Run => index as f64 + 1.0,
        PointGrouping::Kernel | PointGrouping::Scheduler | PointGrouping::Build => index as f64,
    };
    let point = |(index, of): (usize, &analysis::trend::TrendPoint)| {
        Point::with_ends(at(index), of.ns, [of.low, of.high])
    };
    let points: Vec<Point> = found.points.iter().enumerate().map(point).collect();
    let (x, role) = match found.terms.by {
        PointGrouping::Run => (Axis::new("run", Unit::Count, Scale::Linear), Role::Measured),
        PointGrouping::Kernel | PointGrouping::Scheduler | PointGrouping::Build => {
            let names = found.points.iter().map(|of| of.name.clone()).collect();
            (Axis::with_names(found.terms.by.name(), names), Role::Bars)
        }
    };
    let mut series = vec![Series::new(&*found.case.title, 0, role, points)];
    let mut marks = Vec::new();
    if found.terms.by == PointGrouping::Run {
        for level in &found.levels {
            let ends = [level.first, level.last].map(|index| Point::bare(at(index), level.ns));
            series.push(Series::new("level", 0, Role::Law, ends.to_vec()));
        }
        let mark = |change: &analysis::trend::CostChange| AxisMark {
            x: at(change.at),
            between: None,
            label: change.since.get(..10).unwrap_or(&change.since).to_string(),
        };
        marks.extend(found.changes.iter().map(mark));
    }
    let clock = found.clock_ghz.map_or(String::new(), |ghz| format!(", at {ghz:.2} GHz"));
    let title = format!("Cost over time{clock}");
    let axes = (x, nanoseconds("cost"));
    let figure = lines(COST, &title, found.in_words.to_string(), axes, series)?;
    Some(Figure { marks, ..figure })
}
