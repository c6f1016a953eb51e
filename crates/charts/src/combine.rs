//! Several runs in one figure: laid over each other, or one divided by another.

use crate::figure::{
    Axis, Figure, FigureBody, Point, PointCertainty, Role, Scale, Series, Unit, extremes,
};
use crate::shapes::leader;

/// Lays the figures of several runs over each other: those with the same id become one, with the
/// series of all. Maps and single samples cannot lie over each other; they stay apart, with the
/// run's name in the title, single samples at the end. `runs` are names with figures, in the order
/// of the indices in their series.
pub fn overlay_runs(runs: Vec<(String, Vec<Figure>)>) -> Vec<Figure> {
    // Each with the name of its run, if it is of one only.
    let mut all: Vec<(Figure, Option<String>)> = Vec::new();
    for (name, figures) in runs {
        for figure in figures {
            match all.iter_mut().find(|(known, _)| can_share(known, &figure)) {
                Some((known, only)) => add(known, only.take(), figure, &name),
                None => all.push((figure, Some(name.clone()))),
            }
        }
    }
    // Results come before the samples they rest on.
    all.sort_by_key(|(figure, _)| has_raw(figure));
    let ids: Vec<String> = all.iter().map(|(figure, _)| figure.id.clone()).collect();
    for (place, (figure, only)) in all.iter_mut().enumerate() {
        let alike = |ids: &[String]| ids.iter().filter(|id| **id == figure.id).count();
        let (before, total) = (alike(&ids[..place]), alike(&ids));
        if let Some(only) = only.as_ref().filter(|_| total > 1) {
            figure.title = format!("{} ({only})", figure.title);
        }
        if before > 0 {
            figure.id = format!("{}-{}", figure.id, before + 1);
        }
    }
    all.into_iter().map(|(figure, _)| figure).collect()
}

fn has_raw(figure: &Figure) -> bool {
    figure.series().iter().any(|series| series.role == Role::Raw)
}

fn can_share(one: &Figure, other: &Figure) -> bool {
    let same = |one: &Axis, other: &Axis| one.unit == other.unit && one.label == other.label;
    let fits = |figure: &Figure| matches!(figure.body, FigureBody::Series(_)) && !has_raw(figure);
    one.id == other.id
        && fits(one)
        && fits(other)
        && same(&one.x, &other.x)
        && same(&one.y, &other.y)
}

/// Lays the figure of the run `name` over one that was of the run `only` so far, or of several.
fn add(under: &mut Figure, only: Option<String>, mut over: Figure, name: &str) {
    // What is said of all of them is said once.
    if under.in_words != over.in_words {
        if let Some(only) = only {
            under.in_words = format!("{only}: {}", under.in_words);
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
    if let (FigureBody::Series(under), FigureBody::Series(over)) = (&mut under.body, over.body) {
        under.extend(over);
    }
}

/// Positions on an axis of names are indices into its list: names of `over` that `under` lacks are
/// added.
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
                point.x = places.get(point.x as usize).copied().unwrap_or(point.x);
            }
            points.sort_by(|one, other| one.x.total_cmp(&other.x));
        }
    }
}

/// What a series is divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RatioBase {
    /// Its own first point that holds, from the figure's base on: how it grows from there.
    Own,
    /// The series of the same name and role of that run, point by point.
    Run(usize),
}

impl Figure {
    /// The series divided by their base. Points without a base, with one that does not hold, or with
    /// one not above zero, are left out. None for maps, for axes other than time, by [`RatioBase::Own`] for figures without a
    /// base, and by [`RatioBase::Run`] if only that run has points.
    ///
    /// The interval reaches from the lower end over the base's upper end to the upper over the
    /// base's lower: it covers the ratio wherever both cover theirs, and is wider than that of
    /// `compare`, which pairs rounds. What is divided by itself is 1.
    pub fn relative_to(&self, base: RatioBase) -> Option<Vec<Series>> {
        let FigureBody::Series(all) = &self.body else { return None };
        let own = self.base.filter(|_| base == RatioBase::Own);
        if self.y.unit != Unit::Nanoseconds || (base == RatioBase::Own && own.is_none()) {
            return None;
        }
        let divided: Vec<Series> =
            all.iter().map(|series| relative(series, all, base, own)).collect();
        let is_other = |series: &Series| series.run.map(RatioBase::Run) != Some(base);
        let any = divided.iter().any(|series| is_other(series) && !series.points.is_empty());
        any.then_some(divided)
    }
}

fn relative(series: &Series, all: &[Series], base: RatioBase, from: Option<f64>) -> Series {
    let own = from.and_then(|from| own_base(series, all, from));
    let of_run = match base {
        RatioBase::Own => None,
        RatioBase::Run(run) => of_run(series, all, run),
    };
    let mut points = Vec::new();
    for point in &series.points {
        let by = match base {
            RatioBase::Own => own,
            RatioBase::Run(_) => of_run.and_then(|run| value_at(run, point.x)).filter(holds),
        };
        let is_base = base == RatioBase::Own || of_run.is_some_and(|run| std::ptr::eq(run, series));
        points.extend(by.map(|by| match is_base && by.x == point.x {
            true => Point::bare(point.x, 1.0),
            false => over(point, &by),
        }));
    }
    Series { points, ..series.clone() }
}

/// Whether others may be divided by it.
fn holds(point: &Point) -> bool {
    point.certainty == PointCertainty::Sure && point.y > 0.0
}

/// The first point from that place on that holds. A line has the place of the series that it goes
/// with.
fn own_base(series: &Series, all: &[Series], from: f64) -> Option<Point> {
    let first =
        |of: &Series| of.points.iter().copied().find(|point| point.x >= from && holds(point));
    if !series.role.is_line() {
        return first(series);
    }
    let place = match leader(all, series) {
        Some(leader) => first(&all[leader])?.x,
        None => from,
    };
    value_at(series, place).filter(holds)
}

/// The series of the run that this one is compared with: same name and role; for a published one
/// without that, the run's first measured series.
fn of_run<'a>(series: &Series, all: &'a [Series], run: usize) -> Option<&'a Series> {
    let find = |fits: &dyn Fn(&Series) -> bool| {
        all.iter().find(|other| other.run == Some(run) && fits(other))
    };
    let same = find(&|other| other.name == series.name && other.role == series.role);
    same.or_else(|| match series.role {
        Role::Published => find(&|other| matches!(other.role, Role::Measured | Role::Bars)),
        _ => None,
    })
}

/// The point at that place; of a line without one there, interpolated.
fn value_at(series: &Series, x: f64) -> Option<Point> {
    if let Some(point) = series.points.iter().find(|point| point.x == x) {
        return Some(*point);
    }
    let pair = series.points.windows(2).find(|pair| pair[0].x < x && x < pair[1].x)?;
    let part = (x - pair[0].x) / (pair[1].x - pair[0].x);
    let between = Point::bare(x, pair[0].y + part * (pair[1].y - pair[0].y));
    series.role.is_line().then_some(between)
}

fn over(point: &Point, base: &Point) -> Point {
    let (base_low, base_high) = (base.low.unwrap_or(base.y), base.high.unwrap_or(base.y));
    // An end of the base at or below zero leaves the ratio open there.
    let ends = || {
        let (low, high) = (point.low?, point.high?);
        let quotients = [low / base_low, low / base_high, high / base_low, high / base_high];
        let (low, high) = extremes(quotients);
        (base_low > 0.0 && low.is_finite() && high.is_finite()).then_some((low, high))
    };
    let (low, high) = ends().unzip();
    Point { x: point.x, y: point.y / base.y, low, high, certainty: point.certainty }
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
            }),
            ..line("map", run, 0.0)
        };
        let mut ticks = line("a", 1, 1.0);
        ticks.y.unit = Unit::Count;
        let all = named(vec![vec![map(0), line("a", 0, 1.0)], vec![map(1), ticks]]);
        let ids: Vec<&str> = all.iter().map(|figure| &*figure.id).collect();
        assert_eq!(ids, ["map", "a", "map-2", "a-2"]);
        assert_eq!((&*all[0].title, &*all[2].title), ("map (one)", "map (two)"));
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
