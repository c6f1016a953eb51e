//! Several runs in one.

use super::*;

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
    ticks.y.unit = Unit::Ticks;
    let all = named(vec![vec![map(0), line("a", 0, 1.0)], vec![map(1), ticks]]);
    let ids: Vec<&str> = all.iter().map(|figure| &*figure.id).collect();
    assert_eq!(ids, ["map", "a", "map-2", "a-2"]);
    assert_eq!((&*all[0].title, &*all[2].title), ("map (one)", "map (two)"));
}
