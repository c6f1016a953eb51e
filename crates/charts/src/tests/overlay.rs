//! Several runs in one figure, and multiples of them.

use crate::*;

fn line(id: &str, run: usize, y: f64) -> Figure {
    Figure {
        id: id.into(),
        title: id.into(),
        in_words: format!("{y}."),
        x: Axis::new("members", Unit::Count, Scale::Linear),
        y: Axis::new("cost", Unit::Nanoseconds, Scale::Linear),
        body: Body::Series(vec![Series::new(
            "pipe",
            run,
            Role::Measured,
            vec![Point::bare(2.0, y)],
        )]),
        marks: vec![Mark { x: 5.0, between: None, label: "L2".into() }],
        regions: Vec::new(),
        base: None,
    }
}

fn bars(run: usize, names: &[&str]) -> Figure {
    let points = (0..names.len()).map(|place| Point::bare(place as f64, run as f64)).collect();
    Figure {
        x: Axis::of_names("", names.iter().map(ToString::to_string).collect()),
        body: Body::Series(vec![Series::new("measured", run, Role::Bars, points)]),
        ..line("bars", run, 0.0)
    }
}

fn named(runs: Vec<Vec<Figure>>) -> Vec<Figure> {
    let names = ["one", "two", "three"].map(String::from);
    together(names.into_iter().zip(runs).collect())
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
    other.marks.push(Mark { x: 9.0, between: None, label: "L3".into() });
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
fn names_on_an_axis_are_those_of_all_runs() {
    let all = named(vec![vec![bars(0, &["pipe", "futex"])], vec![bars(1, &["futex", "yield"])]]);
    assert_eq!(all[0].x.names, ["pipe", "futex", "yield"]);
    let second: Vec<f64> = all[0].series()[1].points.iter().map(|point| point.x).collect();
    assert_eq!(second, [1.0, 2.0], "futex is the second, yield the third");
}

#[test]
fn maps_and_other_axes_stay_apart_under_ids_of_their_own() {
    let map = |run: usize| Figure {
        body: Body::Map(Map {
            label: "cost".into(),
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
        body: Body::Series(series),
        marks: Vec::new(),
        regions: Vec::new(),
        base: Some(2.0),
    }
}

fn measured(run: usize, points: &[(f64, f64, f64, f64)]) -> Series {
    let point = |&(x, y, low, high): &(f64, f64, f64, f64)| Point {
        x,
        y,
        low: Some(low),
        high: Some(high),
    };
    Series::new("pipe", run, Role::Measured, points.iter().map(point).collect())
}

#[test]
fn growth_is_over_the_value_at_two_with_the_widest_interval() {
    let figure = drawn(vec![measured(0, &[(2.0, 4.0, 3.0, 5.0), (8.0, 12.0, 10.0, 15.0)])]);
    let [two, eight] = figure.relative_to(Base::Own).unwrap()[0].points[..] else { panic!() };
    assert_eq!(two, Point::bare(2.0, 1.0));
    assert_eq!(eight, Point { x: 8.0, y: 3.0, low: Some(2.0), high: Some(5.0) });
}

#[test]
fn another_run_is_divided_place_by_place() {
    let base = measured(0, &[(2.0, 4.0, 4.0, 4.0), (8.0, 10.0, 10.0, 10.0)]);
    let other = measured(1, &[(2.0, 2.0, 1.0, 3.0), (4.0, 7.0, 7.0, 7.0), (8.0, 20.0, 20.0, 20.0)]);
    let divided = drawn(vec![base, other]).relative_to(Base::Run(0)).unwrap();
    assert!(divided[0].points.iter().all(|point| point.y == 1.0 && point.low.is_none()));
    let [two, eight] = divided[1].points[..] else { panic!("4 has no base: {divided:?}") };
    assert_eq!((two.y, two.low, two.high, eight.y), (0.5, Some(0.25), Some(0.75), 2.0));
}

#[test]
fn a_base_that_is_not_above_zero_gives_no_ratio_and_one_whose_interval_is_not_no_interval() {
    let figure = |base| drawn(vec![measured(0, &[base, (4.0, 6.0, 5.0, 7.0)])]);
    let none = figure((2.0, -1.0, -2.0, 0.5)).relative_to(Base::Own);
    assert!(none.is_none(), "{none:?}");
    let open = figure((2.0, 1.0, -1.0, 3.0)).relative_to(Base::Own).unwrap();
    assert_eq!(open[0].points[1], Point::bare(4.0, 6.0));
}

#[test]
fn what_is_no_cost_or_has_no_members_is_not_divided() {
    let points = [(2.0, 4.0, 3.0, 5.0)];
    let mut counts = drawn(vec![measured(0, &points)]);
    counts.y.unit = Unit::Count;
    assert!(counts.relative_to(Base::Own).is_none());
    let mut arrays = drawn(vec![measured(0, &points), measured(1, &points)]);
    arrays.x = Axis::new("array", Unit::Bytes, Scale::Log);
    arrays.base = None;
    assert!(arrays.relative_to(Base::Own).is_none());
    assert!(arrays.relative_to(Base::Run(0)).is_some());
    assert!(arrays.relative_to(Base::Run(2)).is_none(), "no such run is in it");
    let alone = drawn(vec![measured(0, &points)]);
    assert!(alone.relative_to(Base::Run(0)).is_none(), "a run beside itself");
}
