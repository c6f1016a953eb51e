//! Multiples of something.

use super::*;

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
    let [two, eight] = figure.relative_to(Base::Two).unwrap()[0].points[..] else { panic!() };
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
    let none = figure((2.0, -1.0, -2.0, 0.5)).relative_to(Base::Two);
    assert!(none.is_none(), "{none:?}");
    let open = figure((2.0, 1.0, -1.0, 3.0)).relative_to(Base::Two).unwrap();
    assert_eq!(open[0].points[1], Point::bare(4.0, 6.0));
}

#[test]
fn what_is_no_cost_or_has_no_members_is_not_divided() {
    let points = [(2.0, 4.0, 3.0, 5.0)];
    let mut counts = drawn(vec![measured(0, &points)]);
    counts.y.unit = Unit::Count;
    assert!(counts.relative_to(Base::Two).is_none());
    let mut arrays = drawn(vec![measured(0, &points), measured(1, &points)]);
    arrays.x = Axis::new("array", Unit::Bytes, Scale::Log);
    assert!(arrays.relative_to(Base::Two).is_none());
    assert!(arrays.relative_to(Base::Run(0)).is_some());
    assert!(arrays.relative_to(Base::Run(2)).is_none(), "no such run is in it");
    let alone = drawn(vec![measured(0, &points)]);
    assert!(alone.relative_to(Base::Run(0)).is_none(), "a run beside itself");
}
