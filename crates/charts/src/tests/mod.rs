//! Figures with known drawings, and figures that nobody should make.

mod html;
mod inline;
mod picture;
mod terminal;

use crate::figure::{
    Axis, AxisMark, AxisRegion, Figure, FigureBody, HeatMap, Point, PointCertainty, Role, Scale,
    Series, Unit,
};

fn axis(label: &str, unit: Unit, scale: Scale) -> Axis {
    Axis::new(label, unit, scale)
}

fn points(values: &[(f64, f64)], half_width: f64) -> Vec<Point> {
    let point = |(x, y): &(f64, f64)| Point {
        x: *x,
        y: *y,
        low: (half_width > 0.0).then_some(y * (1.0 - half_width)),
        high: (half_width > 0.0).then_some(y * (1.0 + half_width)),
        certainty: PointCertainty::Sure,
    };
    values.iter().map(point).collect()
}

fn series(name: &str, role: Role, points: Vec<Point>) -> Series {
    Series { name: name.into(), run: Some(0), role, points }
}

/// Cost against the size of the ring: a knee, its law, a published machine.
pub(crate) fn ring() -> Figure {
    let sizes: Vec<f64> = (1..=6).map(|k| 2f64.powi(k)).collect();
    let cost = |n: f64| if n < 8.0 { 1900.0 } else { 1900.0 + 420.0 * (n / 8.0).log2() };
    let measured: Vec<(f64, f64)> = sizes
        .iter()
        .enumerate()
        .map(|(k, n)| (*n, cost(*n) * (1.0 + 0.02 * (k % 3) as f64)))
        .collect();
    let law: Vec<(f64, f64)> = [2.0, 8.0, 16.0, 32.0, 64.0].map(|n| (n, cost(n))).to_vec();
    let published: Vec<(f64, f64)> = sizes.iter().map(|n| (*n, 2600.0 + 8.0 * n)).collect();
    let mut published =
        series("Sun 4/280 (1992), thousandths", Role::Published, points(&published, 0.0));
    published.run = None;
    Figure {
        id: "ring-cost".into(),
        title: "Cost of a switch by the size of the ring".into(),
        in_words: "Rises from 1.9 us at 2 members.".into(),
        x: axis("members of the ring", Unit::Count, Scale::Log),
        y: axis("cost of a switch", Unit::Nanoseconds, Scale::Linear),
        body: FigureBody::Series(vec![
            series("pipe", Role::Measured, points(&measured, 0.05)),
            series("law", Role::Law, points(&law, 0.0)),
            published,
        ]),
        marks: vec![AxisMark { x: 8.0, between: Some((6.0, 11.0)), label: "knee 1.2x".into() }],
        regions: Vec::new(),
        base: Some(2.0),
        run: None,
    }
}

/// Cost against the array: three strides, caches, regions.
pub(crate) fn cost() -> Figure {
    let arrays: Vec<f64> = (0..=14).map(|k| 1024.0 * 2f64.powi(k)).collect();
    let curve = |by: f64| -> Vec<(f64, f64)> {
        let refill = |bytes: f64| 900.0 + bytes.min(4e6) * by + (bytes - 4e6).max(0.0) * by * 0.05;
        arrays.iter().map(|bytes| (*bytes, refill(*bytes))).collect()
    };
    let mark = |x: f64, label: &str| AxisMark { x, between: None, label: label.into() };
    let region = |from: f64, to: f64, label: &str| AxisRegion { from, to, label: label.into() };
    Figure {
        id: "cost-by-array".into(),
        title: "Cost of a switch by working set".into(),
        in_words: String::new(),
        x: axis("array of each member", Unit::Bytes, Scale::Log),
        y: axis("cost of a switch", Unit::Nanoseconds, Scale::Log),
        body: FigureBody::Series(vec![
            series("read by 128 B", Role::Measured, points(&curve(0.012), 0.12)),
            series("write by 128 B", Role::Measured, points(&curve(0.021), 0.08)),
            series("rmw by 16 B", Role::Measured, points(&curve(0.055), 0.2)),
            series(
                "rmw by 16 B, course",
                Role::Law,
                points(&[(1024.0, 950.0), (5e5, 29e3), (1.6e7, 3e5)], 0.0),
            ),
        ]),
        marks: vec![
            mark(32768.0, "L1 data 32 KiB"),
            mark(49152.0, "break, rmw by 16 B"),
            mark(1_048_576.0, "L2 1 MiB"),
            mark(1_441_792.0, "TLB 352 pages"),
            mark(1e9, "L3 1 GiB"),
        ],
        regions: vec![
            region(1024.0, 32768.0, "all fits"),
            region(32768.0, 1_048_576.0, "combined working sets exceed the cache"),
            region(1_048_576.0, 1.7e7, "one alone does not fit"),
        ],
        base: None,
        run: None,
    }
}

/// Links side by side.
pub(crate) fn bars() -> Figure {
    let names = ["futex", "eventfd", "pipe", "unix stream socket", "signal"];
    let values = [(0.0, 1650.0), (1.0, 1810.0), (2.0, 1900.0), (3.0, 3120.0), (4.0, -80.0)];
    let mut x = axis("", Unit::Names, Scale::Linear);
    x.names = names.map(String::from).to_vec();
    let mut costs = points(&values, 0.1);
    (costs[4].low, costs[4].high) = (Some(-400.0), Some(240.0));
    Figure {
        body: FigureBody::Series(vec![series("measured", Role::Bars, costs)]),
        ..Figure::new(
            "links",
            "Links compared",
            x,
            axis("cost of a switch", Unit::Nanoseconds, Scale::Linear),
        )
    }
}

/// Delay of wake-ups: the share up to each time, and the median and the 99th percentile.
pub(crate) fn distribution() -> Figure {
    let shares = [(900.0, 0.0), (2e3, 10.0), (5e3, 50.0), (7e3, 90.0), (2e4, 99.0), (9e4, 100.0)];
    Figure {
        body: FigureBody::Series(vec![
            series("idle", Role::Distribution, points(&shares, 0.0)),
            series("idle, percentiles", Role::Quantiles, points(&[shares[2], shares[4]], 0.0)),
        ]),
        ..Figure::new(
            "wake-ups",
            "How late a sleeper is woken",
            axis("late by", Unit::Nanoseconds, Scale::Log),
            axis("share of wake-ups up to it", Unit::Percent, Scale::Linear),
        )
    }
}

/// Cost by array and stride.
pub(crate) fn map() -> Figure {
    let xs: Vec<f64> = (0..8).map(|k| 4096.0 * 4f64.powi(k)).collect();
    let ys: Vec<f64> = (3..9).map(|k| 2f64.powi(k)).collect();
    let value = |x: f64, y: f64| (x < 6e7 || y > 8.0).then_some(900.0 + x.min(8e6) * 0.6 / y);
    let values = ys.iter().map(|y| xs.iter().map(|x| value(*x, *y)).collect()).collect();
    Figure {
        body: FigureBody::Map(HeatMap { unit: Unit::Nanoseconds, xs, ys, values, contrast: None }),
        ..Figure::new(
            "cost-map-rmw-2",
            "Cost of a switch by array and stride (rmw)",
            axis("array of each member", Unit::Bytes, Scale::Log),
            axis("stride", Unit::Bytes, Scale::Log),
        )
    }
}

/// Samples by round, one of them bad.
pub(crate) fn raw() -> Figure {
    let sample = |k: usize| {
        (
            f64::from((k / 8) as u32),
            4000.0 + 60.0 * ((k * 37) % 11) as f64 + if k == 61 { 2500.0 } else { 0.0 },
        )
    };
    let solo = |k: usize| (f64::from((k / 8) as u32), 880.0 + 20.0 * ((k * 29) % 7) as f64);
    let samples: Vec<(f64, f64)> = (0..160).map(sample).collect();
    let solos: Vec<(f64, f64)> = (0..160).map(solo).collect();
    Figure {
        body: FigureBody::Series(vec![
            series("2 members", Role::Raw, points(&samples, 0.0)),
            series("solo", Role::Raw, points(&solos, 0.0)),
        ]),
        ..Figure::new(
            "samples",
            "Samples by round",
            axis("round", Unit::Count, Scale::Linear),
            axis("time of a hop", Unit::Nanoseconds, Scale::Linear),
        )
    }
}

/// CPU time with the projected line.
pub(crate) fn projected() -> Figure {
    let sizes = [2.0, 8.0, 16.0, 24.0, 32.0, 48.0, 64.0];
    let real: Vec<(f64, f64)> = sizes.map(|n| (n, 4000.0 * n + 12.0 * n * n)).to_vec();
    let line: Vec<(f64, f64)> = sizes.map(|n| (n, 4000.0 * n)).to_vec();
    Figure {
        body: FigureBody::Series(vec![
            series("pipe", Role::Measured, points(&real, 0.04)),
            series("projected", Role::Projected, points(&line, 0.0)),
        ]),
        ..Figure::new(
            "ring-cpu",
            "CPU time of a lap",
            axis("members of the ring", Unit::Count, Scale::Linear),
            axis("CPU time of a lap", Unit::Nanoseconds, Scale::Linear),
        )
    }
}

/// Returns one figure of each kind.
pub(crate) fn all() -> Vec<Figure> {
    vec![ring(), cost(), projected(), bars(), distribution(), map(), raw()]
}

/// Figures that nobody should make, but that a run file may lead to.
pub(crate) fn hostile() -> Vec<Figure> {
    let values: [&[(f64, f64)]; 9] = [
        &[],
        &[(f64::NAN, f64::NAN)],
        &[(4.0, 7.0)],
        &[(1.0, -3.0), (2.0, -2.0), (-3.0, -1.0)],
        &[(1e-300, 1e300), (f64::MAX, f64::MIN), (1e279, -1e279)],
        &[(5.0, 5.0), (5.0, 5.0), (5.0, 5.0)],
        &[(0.0, 0.0), (0.0, 0.0)],
        &[(1.0, f64::INFINITY), (f64::NEG_INFINITY, 2.0), (3.0, 4.0)],
        &[(1.0, 1.0), (1.0 + 1e-15, 1.0 + 1e-15)],
    ];
    let mut figures = Vec::new();
    for mut figure in all() {
        for places in values {
            figure.marks = vec![AxisMark {
                x: f64::NAN,
                between: Some((f64::NAN, -1.0)),
                label: "x\x1b[31m".into(),
            }];
            figure.regions =
                vec![AxisRegion { from: f64::INFINITY, to: -1.0, label: "\u{202e}".into() }];
            figure.title = "<&\"\x00>]]> ".repeat(8);
            figure.x.label = "wide 大".repeat(20);
            figure.y.label = "\n\t\x1b]0;".repeat(9);
            let points: Vec<Point> =
                places.iter().map(|(x, y)| Point::with_ends(*x, *y, [-y, f64::NAN])).collect();
            match &mut figure.body {
                FigureBody::Series(all_series) => {
                    for series in all_series {
                        series.points.clone_from(&points);
                        series.name = "名\x07前".repeat(20);
                    }
                }
                FigureBody::Map(map) => {
                    map.xs = places.iter().map(|(x, _)| *x).collect();
                    let row: Vec<Option<f64>> = places.iter().map(|(_, y)| Some(*y)).collect();
                    map.values = vec![row; map.ys.len()];
                }
            }
            figures.push(figure.clone());
        }
    }
    figures
}
