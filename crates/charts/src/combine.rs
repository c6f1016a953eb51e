//! Several runs in one figure: laid over each other, or one divided by another.
//!
//! Dividing: a run that costs 12 us (10 to 15) at 8 members and 4 us (3 to 5) at 2, its base, has
//! grown to 12 / 4 = 3 times its cost there. The interval of the ratio reaches from 10 / 5 = 2 to
//! 15 / 3 = 5, as if both ends were at their worst at once: it covers the ratio wherever both
//! intervals cover their costs, and is wider than that of `compare`, which pairs rounds.

use crate::figure::{
    Axis, Figure, FigureBody, Point, PointCertainty, Role, Scale, Series, Unit, extremes,
};
use crate::shapes::leader;

/// A figure of one run or, with all their series, of several.
struct OverlaidFigure {
    figure: Figure,
    /// Name of the run, if there is only one.
    only_run: Option<String>,
}

/// Lays the figures of several runs over each other: those with one id become one, with the series
/// of all. Maps and single samples cannot lie over each other; they stay apart, with the run's name
/// in the title, single samples at the end. `runs` are names with figures, in the order of the
/// indices in their series.
pub fn overlay_runs(runs: Vec<(String, Vec<Figure>)>) -> Vec<Figure> {
    let mut overlaid: Vec<OverlaidFigure> = Vec::new();
    for (name, figures) in runs {
        for figure in figures {
            match overlaid.iter_mut().find(|known| can_share(&known.figure, &figure)) {
                Some(known) => known.add(figure, &name),
                None => overlaid.push(OverlaidFigure { figure, only_run: Some(name.clone()) }),
            }
        }
    }
    // Results come before the samples they rest on.
    overlaid.sort_by_key(|known| has_raw(&known.figure));
    make_unique(&mut overlaid);
    overlaid.into_iter().map(|known| known.figure).collect()
}

/// Gives figures that have one id different ids, and titles with the names of their runs.
fn make_unique(overlaid: &mut [OverlaidFigure]) {
    let ids: Vec<String> = overlaid.iter().map(|known| known.figure.id.clone()).collect();
    for (index, OverlaidFigure { figure, only_run }) in overlaid.iter_mut().enumerate() {
        let (before, total) = (count_id(&ids[..index], &figure.id), count_id(&ids, &figure.id));
        match only_run {
            Some(run) if total > 1 => {
                figure.title = format!("{} ({run})", figure.title);
                figure.run = Some(run.clone());
            }
            _ => {}
        }
        if before > 0 {
            figure.id = format!("{}-{}", figure.id, before + 1);
        }
    }
}

fn count_id(ids: &[String], id: &str) -> usize {
    ids.iter().filter(|known| *known == id).count()
}

fn has_raw(figure: &Figure) -> bool {
    figure.series().iter().any(|series| series.role == Role::Raw)
}

/// Returns whether two figures can become one.
fn can_share(one: &Figure, other: &Figure) -> bool {
    one.id == other.id
        && can_overlay(one)
        && can_overlay(other)
        && is_same_axis(&one.x, &other.x)
        && is_same_axis(&one.y, &other.y)
}

fn can_overlay(figure: &Figure) -> bool {
    matches!(figure.body, FigureBody::Series(_)) && !has_raw(figure)
}

fn is_same_axis(one: &Axis, other: &Axis) -> bool {
    one.unit == other.unit && one.label == other.label
}

impl OverlaidFigure {
    /// Lays the figure of the run `name` over this one.
    fn add(&mut self, mut over: Figure, name: &str) {
        let (under, only_run) = (&mut self.figure, self.only_run.take());
        // A sentence that holds for all of them stands there once.
        if under.in_words != over.in_words {
            if let Some(run) = only_run {
                under.in_words = format!("{run}: {}", under.in_words);
            }
            under.in_words = format!("{}\n{name}: {}", under.in_words, over.in_words);
        }
        share_names(&mut under.x, &mut over);
        for (under, over) in [(&mut under.x, &over.x), (&mut under.y, &over.y)] {
            if over.scale == Scale::Log {
                under.scale = Scale::Log;
            }
        }
        for mut mark in over.marks {
            if !under.marks.contains(&mark) {
                mark.label = format!("{} ({name})", mark.label);
                under.marks.push(mark);
            }
        }
        // Shades of two runs would hide each other: only the first run's are drawn.
        if under.regions.is_empty() {
            under.regions = over.regions;
            for region in &mut under.regions {
                region.label = format!("{} ({name})", region.label);
            }
        }
        if let (FigureBody::Series(under), FigureBody::Series(over)) = (&mut under.body, over.body)
        {
            under.extend(over);
        }
    }
}

/// Adds the names on the x axis of `over` that `under` lacks, and moves the points of `over` to the
/// places of their names: positions on an axis of names are indices into its list.
fn share_names(under: &mut Axis, over: &mut Figure) {
    if under.unit != Unit::Names {
        return;
    }
    let mut places: Vec<f64> = Vec::new();
    for name in &over.x.names {
        let known = under.names.iter().position(|known| known == name);
        places.push(known.unwrap_or(under.names.len()) as f64);
        if known.is_none() {
            under.names.push(name.clone());
        }
    }
    if let FigureBody::Series(series) = &mut over.body {
        for Series { points, .. } in series {
            for point in &mut *points {
                point.x = *places.get(point.x as usize).unwrap_or(&point.x);
            }
            points.sort_by(|one, other| one.x.total_cmp(&other.x));
        }
    }
}

/// Divisor of the values of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RatioBase {
    /// The first sure point of each series, from the figure's base on: how the series grows from
    /// there.
    Own,
    /// The series of that run with the same name and role, point by point.
    Run(usize),
}

impl Figure {
    /// Divides the series by their base. Points without a base, with one that is not sure, or with
    /// one not above zero, are left out; a base itself is 1. None for maps, for axes other than
    /// time, by [`RatioBase::Own`] for figures without a base, and by [`RatioBase::Run`] if only
    /// that run has points.
    pub fn relative_to(&self, base: RatioBase) -> Option<Vec<Series>> {
        let FigureBody::Series(all_series) = &self.body else { return None };
        if self.y.unit != Unit::Nanoseconds {
            return None;
        }
        let mut divided = Vec::new();
        for series in all_series {
            divided.push(match base {
                RatioBase::Own => divide_by_own(series, all_series, self.base?),
                RatioBase::Run(run) => divide_by_run(series, all_series, run),
            });
        }
        let has_result = divided.iter().any(|series| {
            series.run.map(RatioBase::Run) != Some(base) && !series.points.is_empty()
        });
        if has_result { Some(divided) } else { None }
    }
}

/// Divides a series by its first sure point from x = `from` on.
fn divide_by_own(series: &Series, all_series: &[Series], from: f64) -> Series {
    let mut points = Vec::new();
    if let Some(base) = own_base(series, all_series, from) {
        for point in &series.points {
            let is_base = base.x == point.x;
            points.push(if is_base { Point::bare(point.x, 1.0) } else { divide(point, &base) });
        }
    }
    Series { points, ..series.clone() }
}

/// Divides a series by that of the run, point by point.
fn divide_by_run(series: &Series, all_series: &[Series], run: usize) -> Series {
    let mut points = Vec::new();
    if let Some(base_series) = series_of_run(series, all_series, run) {
        let is_itself = std::ptr::eq(base_series, series);
        for point in &series.points {
            match value_at(base_series, point.x) {
                Some(base) if is_base(&base) => points.push(if is_itself {
                    Point::bare(point.x, 1.0)
                } else {
                    divide(point, &base)
                }),
                _ => {}
            }
        }
    }
    Series { points, ..series.clone() }
}

/// Returns whether others may be divided by the point: it is sure and above zero.
fn is_base(point: &Point) -> bool {
    point.certainty == PointCertainty::Sure && point.y > 0.0
}

/// Finds the first sure point from x = `from` on. A line is divided by its value at the base of the
/// series that it follows.
fn own_base(series: &Series, all_series: &[Series], from: f64) -> Option<Point> {
    if !series.role.is_line() {
        return first_base(series, from);
    }
    let x = match leader(all_series, series) {
        Some(leader) => first_base(&all_series[leader], from)?.x,
        None => from,
    };
    value_at(series, x).filter(is_base)
}

fn first_base(series: &Series, from: f64) -> Option<Point> {
    series.points.iter().find(|point| point.x >= from && is_base(point)).copied()
}

/// Finds the series of the run that this one is compared with: the one with its name and role; for a
/// published one without that, the run's first measured series.
fn series_of_run<'a>(series: &Series, all_series: &'a [Series], run: usize) -> Option<&'a Series> {
    let mut candidates: Vec<&Series> = all_series.iter().collect();
    candidates.retain(|other| other.run == Some(run));
    for other in &candidates {
        if other.name == series.name && other.role == series.role {
            return Some(other);
        }
    }
    if series.role != Role::Published {
        return None;
    }
    candidates.into_iter().find(|other| matches!(other.role, Role::Measured | Role::Bars))
}

/// Returns the point at an x; for a line without one there, it is interpolated.
fn value_at(series: &Series, x: f64) -> Option<Point> {
    if let Some(point) = series.points.iter().find(|point| point.x == x) {
        return Some(*point);
    }
    if !series.role.is_line() {
        return None;
    }
    let pair = series.points.windows(2).find(|pair| pair[0].x < x && x < pair[1].x)?;
    let part = (x - pair[0].x) / (pair[1].x - pair[0].x);
    Some(Point::bare(x, pair[0].y + part * (pair[1].y - pair[0].y)))
}

fn divide(point: &Point, base: &Point) -> Point {
    let (low, high) = divided_interval(point, base).unzip();
    Point { x: point.x, y: point.y / base.y, low, high, certainty: point.certainty }
}

/// Returns the widest interval of the ratio; none if the base's interval reaches zero, which leaves
/// the ratio open there.
fn divided_interval(point: &Point, base: &Point) -> Option<(f64, f64)> {
    let (low, high) = (point.low?, point.high?);
    let (base_low, base_high) = (base.low.unwrap_or(base.y), base.high.unwrap_or(base.y));
    let quotients = [low / base_low, low / base_high, high / base_low, high / base_high];
    let (low, high) = extremes(quotients);
    if base_low > 0.0 && low.is_finite() && high.is_finite() { Some((low, high)) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AxisMark, HeatMap};

    fn line(id: &str, run: usize, y: f64) -> Figure {
        Figure {
            id: id.into(),
            title: id.into(),
            in_words: format!("{y}."),
            x: Axis::new("members", Unit::Count, Scale::Linear),
            y: Axis::new("cost", Unit::Nanoseconds, Scale::Linear),
            body: FigureBody::Series(vec![Series::new(
                "pipe",
                run,
                Role::Measured,
                vec![Point::bare(2.0, y)],
            )]),
            marks: vec![AxisMark { x: 5.0, between: None, label: "L2".into() }],
            regions: Vec::new(),
            base: None,
            run: None,
        }
    }

    fn bars(run: usize, names: &[&str]) -> Figure {
        let points = (0..names.len()).map(|place| Point::bare(place as f64, run as f64)).collect();
        Figure {
            x: Axis::with_names("", names.iter().map(ToString::to_string).collect()),
            body: FigureBody::Series(vec![Series::new("measured", run, Role::Bars, points)]),
            ..line("bars", run, 0.0)
        }
    }

    fn named(runs: Vec<Vec<Figure>>) -> Vec<Figure> {
        let names = ["one", "two", "three"].map(String::from);
        overlay_runs(names.into_iter().zip(runs).collect())
    }

    #[test]
    fn one_run_stays_as_it_is() {
        let alone = vec![line("a", 0, 1.0), line("b", 0, 2.0)];
        assert_eq!(named(vec![alone.clone()]), alone);
    }

    #[test]
    fn figures_alike_become_one_with_the_series_of_all() {
        let mut other = line("a", 1, 7.0);
        other.y.scale = Scale::Log;
        other.marks.push(AxisMark { x: 9.0, between: None, label: "L3".into() });
        let all = named(vec![vec![line("a", 0, 1.0)], vec![other, line("b", 1, 2.0)]]);
        assert_eq!(all.iter().map(|figure| &*figure.id).collect::<Vec<_>>(), ["a", "b"]);
        let runs: Vec<Option<usize>> = all[0].series().iter().map(|series| series.run).collect();
        assert_eq!(runs, [Some(0), Some(1)]);
        assert_eq!(all[0].in_words, "one: 1.\ntwo: 7.");
        assert_eq!(all[0].y.scale, Scale::Log);
        let marks: Vec<&str> = all[0].marks.iter().map(|mark| &*mark.label).collect();
        assert_eq!(marks, ["L2", "L3 (two)"], "what both have is there once");
    }

    #[test]
    fn what_is_said_of_all_runs_is_said_once() {
        let all = named(vec![vec![line("a", 0, 1.0)], vec![line("a", 1, 1.0)]]);
        assert_eq!((all.len(), &*all[0].in_words), (1, "1."));
    }

    #[test]
    fn names_on_an_axis_are_those_of_all_runs() {
        let all =
            named(vec![vec![bars(0, &["pipe", "futex"])], vec![bars(1, &["futex", "yield"])]]);
        assert_eq!(all[0].x.names, ["pipe", "futex", "yield"]);
        let second: Vec<f64> = all[0].series()[1].points.iter().map(|point| point.x).collect();
        assert_eq!(second, [1.0, 2.0], "futex is the second, yield the third");
    }

    #[test]
    fn maps_and_other_axes_stay_apart_under_ids_of_their_own() {
        let map = |run: usize| Figure {
            body: FigureBody::Map(HeatMap {
                unit: Unit::Nanoseconds,
                xs: vec![1.0],
                ys: vec![1.0],
                values: vec![vec![None]],
                contrast: None,
            }),
            ..line("map", run, 0.0)
        };
        let mut ticks = line("a", 1, 1.0);
        ticks.y.unit = Unit::Count;
        let all = named(vec![vec![map(0), line("a", 0, 1.0)], vec![map(1), ticks]]);
        let ids: Vec<&str> = all.iter().map(|figure| &*figure.id).collect();
        assert_eq!(ids, ["map", "a", "map-2", "a-2"]);
        assert_eq!((&*all[0].title, &*all[2].title), ("map (one)", "map (two)"));
        assert_eq!((all[0].run.as_deref(), all[2].run.as_deref()), (Some("one"), Some("two")));
    }

    fn drawn(series: Vec<Series>) -> Figure {
        Figure {
            id: "a".into(),
            title: "a".into(),
            in_words: String::new(),
            x: Axis::new("members of the ring", Unit::Count, Scale::Linear),
            y: Axis::new("cost", Unit::Nanoseconds, Scale::Linear),
            body: FigureBody::Series(series),
            marks: Vec::new(),
            regions: Vec::new(),
            base: Some(2.0),
            run: None,
        }
    }

    fn measured(run: usize, points: &[(f64, f64, f64, f64)]) -> Series {
        let point = |&(x, y, low, high): &_| Point::with_ends(x, y, [low, high]);
        Series::new("pipe", run, Role::Measured, points.iter().map(point).collect())
    }

    #[test]
    fn growth_is_over_the_value_at_two_with_the_widest_interval() {
        let figure = drawn(vec![measured(0, &[(2.0, 4.0, 3.0, 5.0), (8.0, 12.0, 10.0, 15.0)])]);
        let [two, eight] = figure.relative_to(RatioBase::Own).unwrap()[0].points[..] else {
            panic!()
        };
        assert_eq!(two, Point::bare(2.0, 1.0));
        assert_eq!(eight, Point::with_ends(8.0, 3.0, [2.0, 5.0]));
    }

    #[test]
    fn another_run_is_divided_place_by_place() {
        let base = measured(0, &[(2.0, 4.0, 4.0, 4.0), (8.0, 10.0, 10.0, 10.0)]);
        let other =
            measured(1, &[(2.0, 2.0, 1.0, 3.0), (4.0, 7.0, 7.0, 7.0), (8.0, 20.0, 20.0, 20.0)]);
        let divided = drawn(vec![base, other]).relative_to(RatioBase::Run(0)).unwrap();
        assert!(divided[0].points.iter().all(|point| point.y == 1.0 && point.low.is_none()));
        let [two, eight] = divided[1].points[..] else { panic!("4 has no base: {divided:?}") };
        assert_eq!((two.y, two.low, two.high, eight.y), (0.5, Some(0.25), Some(0.75), 2.0));
    }

    #[test]
    fn a_base_that_is_not_above_zero_gives_no_ratio_and_one_whose_interval_is_not_no_interval() {
        let figure = |base| drawn(vec![measured(0, &[base, (4.0, 6.0, 5.0, 7.0)])]);
        let below = drawn(vec![measured(0, &[(2.0, -1.0, -2.0, 0.5)])]).relative_to(RatioBase::Own);
        assert!(below.is_none(), "{below:?}");
        let next = figure((2.0, -1.0, -2.0, 0.5)).relative_to(RatioBase::Own).unwrap();
        assert_eq!(next[0].points[1], Point::bare(4.0, 1.0), "the next one holds");
        let open = figure((2.0, 1.0, -1.0, 3.0)).relative_to(RatioBase::Own).unwrap();
        assert_eq!(open[0].points[1], Point::bare(4.0, 6.0));
    }

    fn rough(point: Point) -> Point {
        Point { certainty: PointCertainty::Rough, ..point }
    }

    #[test]
    fn growth_is_over_the_first_point_that_holds_and_its_law_over_the_same_place() {
        let points =
            vec![rough(Point::bare(2.0, 40.0)), Point::bare(4.0, 5.0), Point::bare(8.0, 10.0)];
        let law = vec![Point::bare(2.0, 3.0), Point::bare(8.0, 9.0)];
        let all = vec![
            Series::new("pipe", 0, Role::Measured, points),
            Series::new("pipe, law", 0, Role::Law, law),
        ];
        let divided = drawn(all).relative_to(RatioBase::Own).unwrap();
        let values = |series: &Series| series.points.iter().map(|p| p.y).collect::<Vec<f64>>();
        assert_eq!(values(&divided[0]), [8.0, 1.0, 2.0]);
        // 5 at 4, between 3 at 2 and 9 at 8.
        assert_eq!(values(&divided[1]), [0.6, 1.8]);
        assert_eq!(
            divided[0].points[0].certainty,
            PointCertainty::Rough,
            "it does not hold by division"
        );
    }

    #[test]
    fn nothing_is_divided_by_what_does_not_hold() {
        let points = vec![rough(Point::bare(2.0, 4.0)), rough(Point::bare(4.0, 5.0))];
        let alone = drawn(vec![Series::new("pipe", 0, Role::Measured, points.clone())]);
        assert_eq!(alone.relative_to(RatioBase::Own), None);
        let other = vec![Point::bare(2.0, 4.0), Point::bare(4.0, 5.0)];
        let both = drawn(vec![
            Series::new("pipe", 0, Role::Measured, points),
            Series::new("pipe", 1, Role::Measured, other),
        ]);
        assert_eq!(both.relative_to(RatioBase::Run(0)), None);
        let divided = both.relative_to(RatioBase::Run(1)).unwrap();
        assert_eq!(divided[0].points, [rough(Point::bare(2.0, 1.0)), rough(Point::bare(4.0, 1.0))]);
    }

    #[test]
    fn what_is_no_cost_or_has_no_members_is_not_divided() {
        let points = [(2.0, 4.0, 3.0, 5.0)];
        let mut counts = drawn(vec![measured(0, &points)]);
        counts.y.unit = Unit::Count;
        assert!(counts.relative_to(RatioBase::Own).is_none());
        let mut arrays = drawn(vec![measured(0, &points), measured(1, &points)]);
        arrays.x = Axis::new("array", Unit::Bytes, Scale::Log);
        arrays.base = None;
        assert!(arrays.relative_to(RatioBase::Own).is_none());
        assert!(arrays.relative_to(RatioBase::Run(0)).is_some());
        assert!(arrays.relative_to(RatioBase::Run(2)).is_none(), "no such run is in it");
        let alone = drawn(vec![measured(0, &points)]);
        assert!(alone.relative_to(RatioBase::Run(0)).is_none(), "a run beside itself");
    }
}
