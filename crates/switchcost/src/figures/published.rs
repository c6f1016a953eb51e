//! Figures that others have published, in the axes of ours.

use charts::{Axis, Body, Figure, Point, Role, Scale, Series, Unit};
use model::published::{hines2000, li2007};
use model::ring::Case;
use model::subject::{Published, PublishedCase, Quantity};
use model::words;

use crate::clock::figures::{CALLS, MALLOC};
use crate::cost;
use crate::ring::figures::{COST, CPU};

/// Cost of a switch by year.
const HISTORY: &str = "history";

/// Cycles of a Pentium Pro of 166 MHz in nanoseconds.
const NS_PER_CYCLE: f64 = 1000.0 / 166.0;

/// The figures of a published machine by themselves, the `index`th of what is drawn together. What has none
/// of ours to lie over is in no figure.
pub(crate) fn of_published(machine: &Published, index: usize) -> Vec<Figure> {
    let cost = line(machine, cost_of);
    let of_two = cost.iter().find(|point| point.x == 2.0).copied();
    let in_words =
        format!("{}, {}: {} ({}).", machine.machine, machine.system, machine.source, machine.year);
    let drawn = |figure: Figure, points: Vec<Point>| {
        let figure = Figure { in_words: in_words.clone(), ..figure };
        figure.of([series(machine, points, Some(index))])
    };
    let title = "Cost of a switch by the size of the ring";
    let by_size = ring_figure(COST, title, "cost of a switch");
    let lap = ring_figure(CPU, "CPU time of a lap", "CPU time of a lap");
    let years = of_two.and_then(|point| {
        let points = vec![Point { x: 0.0, ..point }];
        history(vec![year_name(machine)]).of([series(machine, points, Some(index))])
    });
    [drawn(by_size, cost), drawn(lap, line(machine, cpu_of_lap)), years]
        .into_iter()
        .flatten()
        .collect()
}

/// `sun-4/280, 1992`: by this it is asked for, and when it was published.
fn year_name(machine: &Published) -> String {
    format!("{}, {}", machine.name, machine.year)
}

fn series(machine: &Published, points: Vec<Point>, run: Option<usize>) -> Series {
    Series { name: year_name(machine), run, role: Role::Published, points }
}

/// A figure of each ring of several, by size.
fn line(machine: &Published, of: fn(&PublishedCase, &Case) -> Option<f64>) -> Vec<Point> {
    let point = |case: &PublishedCase| {
        let ring = case.ring.as_ref().filter(|ring| ring.members > 1)?;
        Some(Point::bare(f64::from(ring.members), of(case, ring)?))
    };
    machine.cases.iter().filter_map(point).collect()
}

/// What comes nearest to the cost of a counted switch: of Sloan's machines the CPU time of a hop.
fn cost_of(case: &PublishedCase, _: &Case) -> Option<f64> {
    let known = [Quantity::NsPerSwitchAboveSolo, Quantity::CpuNsPerHop, Quantity::NsPerHop];
    known.iter().find_map(|quantity| case.figures.get(quantity)).copied()
}

fn cpu_of_lap(case: &PublishedCase, ring: &Case) -> Option<f64> {
    Some(case.figures.get(&Quantity::CpuNsPerHop)? * f64::from(ring.members))
}

fn ring_figure(id: &str, title: &str, label: &str) -> Figure {
    let x = Axis::new("members of the ring", Unit::Count, Scale::Log);
    let y = Axis::new(label, Unit::Nanoseconds, Scale::Log);
    Figure { base: Some(2.0), ..Figure::new(id, title, x, y) }
}

fn history(names: Vec<String>) -> Figure {
    let x = Axis::of_names("machine and year", names);
    let y = Axis::new("cost of a switch", Unit::Nanoseconds, Scale::Log);
    Figure::new(HISTORY, "A switch in a ring of two, 1984 to today", x, y)
}

/// Sets what `all` have published beside the figures of runs: series that are of no run, in the same axes.
/// With rings among the figures comes one more, the cost of a switch over the years; `runs` are the names
/// of what is drawn.
pub(crate) fn with_published(
    mut figures: Vec<Figure>,
    all: &[Published],
    runs: &[String],
) -> Vec<Figure> {
    // One that was asked for by name is there already.
    let others: Vec<&Published> =
        all.iter().filter(|one| !is_drawn(&figures, &year_name(one))).collect();
    for figure in &mut figures {
        let series: Vec<Series> = match figure.id.as_str() {
            COST => others.iter().map(|of| series(of, pipe(of, cost_of), None)).collect(),
            CPU => others.iter().map(|of| series(of, pipe(of, cpu_of_lap), None)).collect(),
            cost::figures::BY_ARRAY => li(figure),
            CALLS => hines(figure),
            MALLOC => malloc(figure),
            _ => Vec::new(),
        };
        add(figure, series);
    }
    let history = years(&figures, &others, runs);
    figures.retain(|figure| figure.id != HISTORY);
    let place = figures.iter().position(|figure| figure.id == COST).map_or(0, |place| place + 1);
    figures.splice(place..place, history);
    figures
}

/// A line of rings by pipe: others are other experiments.
fn pipe(machine: &Published, of: fn(&PublishedCase, &Case) -> Option<f64>) -> Vec<Point> {
    let by_pipe = |case: &PublishedCase| {
        case.ring.as_ref().is_some_and(|ring| ring.link == "pipe" && ring.work.is_none())
    };
    if machine.cases.iter().all(by_pipe) { line(machine, of) } else { Vec::new() }
}

fn is_drawn(figures: &[Figure], name: &str) -> bool {
    figures.iter().any(|figure| figure.series().iter().any(|series| series.name == name))
}

fn add(figure: &mut Figure, mut published: Vec<Series>) {
    published.retain(|series| !series.points.is_empty());
    if published.is_empty() {
        return;
    }
    // A thousand times ours: only equal ratios show both.
    figure.y.scale = Scale::Log;
    if figure.x.unit != Unit::Names {
        figure.x.scale = Scale::Log;
    }
    if let Body::Series(series) = &mut figure.body {
        series.extend(published);
    }
}

fn range(figure: &Figure) -> Option<(f64, f64)> {
    let places = || figure.series().iter().flat_map(|of| &of.points).map(|point| point.x);
    let low = places().reduce(f64::min)?;
    Some((low, places().reduce(f64::max)?))
}

fn flat(name: String, (from, to): (f64, f64), ns: f64) -> Series {
    let points = vec![Point::bare(from, ns), Point::bare(to, ns)];
    Series { name, run: None, role: Role::Published, points }
}

/// c1 across all arrays; of the regions, of which only ranges were printed, both ends.
fn li(figure: &Figure) -> Vec<Series> {
    let (Ok(theirs), Some(all)) = (li2007::Figures::published(), range(figure)) else {
        return Vec::new();
    };
    let mut series = vec![flat("xeon-2.0, 2007, c1".to_string(), all, theirs.direct_us * 1e3)];
    for total in [&theirs.first_region, &theirs.second_region] {
        let over = (total.smallest_bytes as f64, total.largest_bytes as f64);
        let arrays = words::byte_range(total.smallest_bytes, total.largest_bytes);
        for (end, us) in [("lowest", total.low_us), ("highest", total.high_us)] {
            let name = format!("xeon-2.0, 2007, {arrays}, {end}");
            series.push(flat(name, over, us * 1e3));
        }
    }
    series
}

fn hines(figure: &mut Figure) -> Vec<Series> {
    let mut place = |name: &str| {
        let names = &mut figure.x.names;
        let known = names.iter().position(|known| known == name);
        known.unwrap_or_else(|| {
            names.push(name.to_string());
            names.len() - 1
        }) as f64
    };
    let calls = [("getrusage", hines2000::GETRUSAGE), ("getpinfo", hines2000::GETPINFO)];
    let point = |(name, call): (&str, hines2000::Call)| {
        Point::bare(place(name), call.mean_cycles * NS_PER_CYCLE)
    };
    let points = calls.map(point).to_vec();
    vec![Series {
        name: "pentium-pro/166, 2000".to_string(),
        run: None,
        role: Role::Published,
        points,
    }]
}

fn malloc(figure: &Figure) -> Vec<Series> {
    let name = "pentium-pro/166, 2000, mean".to_string();
    let ns = hines2000::MALLOC_CYCLES * NS_PER_CYCLE;
    range(figure).map(|all| flat(name, all, ns)).into_iter().collect()
}

/// A switch of a ring of two on every machine, oldest first, the runs last.
fn years(figures: &[Figure], others: &[&Published], runs: &[String]) -> Option<Figure> {
    let asked = figures.iter().find(|figure| figure.id == HISTORY);
    let ours: Vec<(usize, Point)> = figures.iter().flat_map(of_two).collect();
    if ours.is_empty() {
        return None;
    }
    let of_two = |of: &&&Published| {
        let line = line(of, cost_of);
        Some((year_name(of), line.into_iter().find(|point| point.x == 2.0)?))
    };
    let mut theirs: Vec<(String, Option<usize>, Point)> = others
        .iter()
        .filter_map(|of| of_two(&of))
        .map(|(name, point)| (name, None, point))
        .collect();
    let wanted = asked.iter().flat_map(|figure| figure.series());
    theirs.extend(wanted.filter_map(|of| Some((of.name.clone(), of.run, *of.points.first()?))));
    let year = |name: &str| name.rsplit(' ').next().unwrap_or_default().to_string();
    theirs.sort_by_key(|(name, ..)| year(name));
    let mut names: Vec<String> = theirs.iter().map(|(name, ..)| name.clone()).collect();
    let mut series = Vec::new();
    for (place, (name, run, point)) in theirs.into_iter().enumerate() {
        let points = vec![Point { x: place as f64, ..point }];
        series.push(Series { name, run, role: Role::Published, points });
    }
    for (run, point) in ours {
        let name = runs.get(run).cloned().unwrap_or_default();
        let point = Point { x: names.len() as f64, ..point };
        series.push(Series::new("measured", run, Role::Measured, vec![point]));
        names.push(name);
    }
    let mut figure = history(names);
    figure.in_words = "Cost of a switch in a ring of two as each was published, and as measured here. \
                       Of Sloan's machines it is the CPU time of a hop, all that a hop costs beside the \
                       switch included; of VENIX the switch between two signals."
        .to_string();
    figure.body = Body::Series(series);
    Some(figure)
}

/// The cost of a switch in a ring of two, for each run that has one without work by the pipe.
fn of_two(figure: &Figure) -> Vec<(usize, Point)> {
    let measured = |series: &Series| {
        let of_pipe = series.role == Role::Measured && series.name.starts_with("pipe");
        let run = series.run.filter(|_| of_pipe)?;
        Some((run, *series.points.iter().find(|point| point.x == 2.0)?))
    };
    let mut found: Vec<(usize, Point)> = match figure.id.as_str() {
        COST => figure.series().iter().filter_map(measured).collect(),
        _ => Vec::new(),
    };
    found.dedup_by_key(|(run, _)| *run);
    found
}
