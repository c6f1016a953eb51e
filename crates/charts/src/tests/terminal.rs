use proptest::prelude::*;
use unicode_width::UnicodeWidthStr;

use crate::{
    Axis, AxisMark, AxisRegion, Figure, FigureBody, HeatMap, PlotStyle, Point, PointCertainty,
    Role, Scale, Series, Unit,
};
use crate::{render_text as plot, samples};

const ASCII: PlotStyle = PlotStyle { columns: 80, colour: false, unicode: false };
const UNICODE: PlotStyle = PlotStyle { columns: 80, colour: false, unicode: true };

#[test]
fn colours_change_nothing_but_colours() {
    for figure in samples::all() {
        let plain = plot(&figure, &[], &UNICODE);
        let coloured = plot(&figure, &[], &PlotStyle { colour: true, ..UNICODE });
        assert!(coloured.contains("\x1b["), "{coloured}");
        for line in coloured.lines() {
            let last = line.rfind('\x1b').map_or("\x1b[0m", |place| &line[place..]);
            assert!(last.starts_with("\x1b[0m"), "a line leaves its colour on: {line:?}");
        }
        let stripped: String = coloured
            .split('\x1b')
            .enumerate()
            .map(|(k, part)| if k == 0 { part } else { part.split_once('m').unwrap().1 })
            .collect();
        assert_eq!(stripped, plain);
    }
}

#[test]
fn ascii_is_ascii() {
    let mut figure = samples::bars();
    figure.title = "Größe in µs".into();
    let text = plot(&figure, &[], &ASCII);
    assert!(text.is_ascii() && text.starts_with("Gr??e in ?s\n"), "{text}");
}

#[test]
fn thousands_of_points_are_a_plot_like_any_other() {
    let mut figure = samples::raw();
    let FigureBody::Series(all) = &mut figure.body else { panic!("no series") };
    let point = |k: u32| Point::bare(k.into(), f64::from(k % 997));
    all[0].points = (0..20_000).map(point).collect();
    assert_eq!(plot(&figure, &[], &UNICODE).lines().count(), 22);
}

#[test]
fn fixed_figures_are_drawn_like_this() {
    let narrow = PlotStyle { columns: 60, ..ASCII };
    assert_eq!(plot(&samples::ring(), &[], &narrow), include_str!("expected/ring.txt"));
    assert_eq!(plot(&samples::bars(), &[], &narrow), include_str!("expected/bars.txt"));
    assert_eq!(plot(&samples::map(), &[], &narrow), include_str!("expected/map.txt"));
}

#[test]
fn what_is_only_roughly_known_has_a_mark_of_its_own_and_a_legend() {
    let mut figure = samples::ring();
    assert!(!plot(&figure, &[], &UNICODE).contains("known only roughly"));
    let FigureBody::Series(all) = &mut figure.body else { panic!("no series") };
    all[0].points[0].certainty = PointCertainty::Rough;
    let text = plot(&figure, &[], &UNICODE);
    assert_eq!(text.matches('○').count(), 2, "the point and its legend: {text}");
    assert!(text.contains("○ known only roughly"), "{text}");
    let ascii = plot(&figure, &[], &ASCII);
    assert!(ascii.contains("~ known only roughly"), "{ascii}");
    assert_eq!(ascii.matches('~').count(), 2, "{ascii}");
}

fn check_width(figure: &Figure, style: &PlotStyle) -> Result<(), TestCaseError> {
    let text = plot(figure, &["one".to_string(), "two".to_string()], style);
    for line in text.lines() {
        prop_assert!(line.width() <= style.columns, "{} columns: {line:?}", style.columns);
        prop_assert!(!line.chars().any(char::is_control), "{line:?}");
    }
    Ok(())
}

#[test]
fn figures_that_nobody_should_make_are_plots_all_the_same() {
    for figure in samples::hostile() {
        for columns in [1, 2, 29, 30, 31, 45, 80] {
            for unicode in [true, false] {
                check_width(&figure, &PlotStyle { columns, colour: false, unicode }).unwrap();
            }
        }
    }
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![any::<f64>(), -1e4..1e4f64, Just(0.0), Just(f64::NAN), 1.0..1e9f64]
}

fn axis() -> impl Strategy<Value = Axis> {
    let units =
        [Unit::Nanoseconds, Unit::Bytes, Unit::Count, Unit::Ratio, Unit::Percent, Unit::Names];
    (
        any::<String>(),
        proptest::sample::select(units.to_vec()),
        any::<bool>(),
        prop::collection::vec(any::<String>(), 0..5),
    )
        .prop_map(|(label, unit, log, names)| {
            let scale = if log { Scale::Log } else { Scale::Linear };
            Axis { label, unit, scale, names, full_names: Vec::new() }
        })
}

fn series() -> impl Strategy<Value = Series> {
    let roles = [
        Role::Measured,
        Role::Raw,
        Role::Law,
        Role::Projected,
        Role::Published,
        Role::Distribution,
        Role::Quantiles,
        Role::Bars,
    ];
    let end = || prop::option::of(number());
    let point = (number(), number(), end(), end()).prop_map(|(x, y, low, high)| Point {
        low,
        high,
        ..Point::bare(x, y)
    });
    (
        any::<String>(),
        prop::option::of(0..4usize),
        proptest::sample::select(roles.to_vec()),
        prop::collection::vec(point, 0..40),
    )
        .prop_map(|(name, run, role, points)| Series { name, run, role, points })
}

fn body() -> impl Strategy<Value = FigureBody> {
    let places = || prop::collection::vec(number(), 0..12);
    let row = prop::collection::vec(prop::option::of(number()), 0..12);
    let map = (places(), places(), prop::collection::vec(row, 0..12)).prop_map(
        |(mut xs, mut ys, values)| {
            xs.sort_by(f64::total_cmp);
            ys.sort_by(f64::total_cmp);
            FigureBody::Map(HeatMap { unit: Unit::Nanoseconds, xs, ys, values, contrast: None })
        },
    );
    prop_oneof![3 => prop::collection::vec(series(), 0..6).prop_map(FigureBody::Series), 1 => map]
}

fn figure() -> impl Strategy<Value = Figure> {
    let mark = (number(), prop::option::of((number(), number())), any::<String>())
        .prop_map(|(x, between, label)| AxisMark { x, between, label });
    let region = (number(), number(), any::<String>()).prop_map(|(from, to, label)| AxisRegion {
        from,
        to,
        label,
    });
    let marks = prop::collection::vec(mark, 0..6);
    (any::<String>(), axis(), axis(), body(), marks, prop::collection::vec(region, 0..4)).prop_map(
        |(title, x, y, body, marks, regions)| Figure {
            title,
            body,
            marks,
            regions,
            ..Figure::new("any", "", x, y)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(testing::repeats(80, 400)))]

    #[test]
    fn no_plot_is_wider_than_the_terminal(
        figure in figure(),
        columns in 1..=80usize,
        unicode in any::<bool>(),
    ) {
        check_width(&figure, &PlotStyle { columns, colour: false, unicode })?;
    }
}
