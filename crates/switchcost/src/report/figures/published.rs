//! Figures that others have published, in the axes of ours.

use analysis::published::{hines2000, li2007};
use analysis::results::{PublishedCase, PublishedMachine, Quantity};
use charts::{Axis, Figure, FigureBody, Point, Role, Scale, Series, Unit};
use rundata::ring::{RingCase, Work};
use rundata::words;

use super::{CLOCK_CALLS, CLOCK_MALLOC, COST_BY_ARRAY, RING_COST, RING_CPU, members_axis};

/// Cycles of a Pentium Pro of 166 MHz in nanoseconds.
const NS_PER_CYCLE: f64 = 1000.0 / 166.0;

/// The chart of what was printed of a machine.
pub(crate) const AS_PRINTED: &str = "published";

/// Said of figures that are of no run.
const AS_PUBLISHED: &str = "As published, those of 1984 to 2007 without intervals; of the machines \
     of 1992 it is the CPU time of a hop.";

/// The figures of a published machine by themselves, the `index`th of what is drawn together. What
/// has none of ours to lie over is in no figure.
pub(crate) fn published_figures(machine: &PublishedMachine, index: usize) -> Vec<Figure> {
    let ring = |id: &str, title: &str, label: &str| {
        let figure = Figure::new(id, title, members_axis(Scale::Log), log_ns(label));
        Figure { base: Some(2.0), in_words: AS_PUBLISHED.to_string(), ..figure }
    };
    let title = "Cost of a switch by the size of the ring";
    let rings = |of: Of| vec![published(year_name(machine), line(machine, of), Some(index))];
    let array = Axis::new("array of each member", Unit::Bytes, Scale::Log);
    let cost = "cost of a switch";
    let arrays = Figure {
        in_words: "By the array that each member works on between two switches.".to_string(),
        ..Figure::new(COST_BY_ARRAY, "Cost of a switch by working set", array, log_ns(cost))
    };
    let all = [
        (ring(RING_COST, title, cost), rings(cost_of)),
        (ring(RING_CPU, "CPU time of a lap", "CPU time of a lap"), rings(cpu_of_lap)),
        (arrays, by_array(machine, Some(index))),
    ];
    let all = all.into_iter().filter_map(|(figure, series)| figure.with_series(series));
    all.chain(as_printed(machine, index)).collect()
}

/// All that was printed of a machine of which less is known than a line: a row for each case, and
/// for each range its ends.
fn as_printed(machine: &PublishedMachine, index: usize) -> Option<Figure> {
    let is_line = line(machine, cost_of).len() > 1 || by_array(machine, None).len() > 1;
    if is_line {
        return None;
    }
    let (mut names, mut points) = (Vec::new(), Vec::new());
    for case in &machine.cases {
        for quantity in case.figures.keys() {
            points.extend(point(case, *quantity, names.len() as f64));
            names.push(format!("{} of {}", quantity.in_words(), case.title));
        }
    }
    for range in &machine.ranges {
        let x = names.len() as f64;
        points.push(match range.low_ns < range.high_ns {
            true => Point::range(x, [range.low_ns, range.high_ns]),
            false => Point::bare(x, range.low_ns),
        });
        names.push(range.subject.clone());
    }
    let title = format!("What was published of {}", machine.name);
    let x = Axis::with_names("", names);
    let figure = Figure::new(AS_PRINTED, &title, x, log_ns("time"));
    let in_words = "Printed without intervals; a bar is a range of figures.".to_string();
    let series = published(year_name(machine), points, Some(index));
    Figure { in_words, ..figure }.with_series([series])
}

/// Whether a chart is a single published figure, which says no more than the chart of what was
/// printed.
pub(crate) fn is_one_published_figure(figure: &Figure) -> bool {
    let is_dot = |series: &Series| series.role == Role::Published && series.points.len() == 1;
    figure.x.unit != Unit::Names && figure.series().len() == 1 && figure.series().iter().all(is_dot)
}

/// `sun-4/280, 1992`: by this it is asked for, and when it was published.
fn year_name(machine: &PublishedMachine) -> String {
    format!("{}, {}", machine.name, machine.year)
}

fn published(name: String, points: Vec<Point>, run: Option<usize>) -> Series {
    Series { name, run, role: Role::Published, points }
}

/// What is drawn of a ring, at the number of its members.
type Of = fn(&PublishedCase, &RingCase) -> Option<Point>;

/// A figure of each ring of several, by size: of those that are as the first but for it.
fn line(machine: &PublishedMachine, of: Of) -> Vec<Point> {
    let rings = || machine.cases.iter().filter_map(|case| Some((case, case.ring.as_ref()?)));
    let rings = || rings().filter(|(_, ring)| ring.members > 1 && ring.work.is_none());
    let Some((_, first)) = rings().next() else { return Vec::new() };
    let is_alike = |ring: &RingCase| *ring == RingCase { members: ring.members, ..first.clone() };
    rings().filter(|(_, ring)| is_alike(ring)).filter_map(|(case, ring)| of(case, ring)).collect()
}

/// What comes nearest to the cost of a counted switch: of Sloan's machines the CPU time of a hop.
fn cost_of(case: &PublishedCase, ring: &RingCase) -> Option<Point> {
    let known = [Quantity::NsPerSwitchAboveSolo, Quantity::CpuNsPerHop];
    known.iter().find_map(|quantity| point(case, *quantity, ring.members.into()))
}

fn cpu_of_lap(case: &PublishedCase, ring: &RingCase) -> Option<Point> {
    let cpu = case.figures.get(&Quantity::CpuNsPerHop)?;
    Some(Point::bare(ring.members.into(), cpu * f64::from(ring.members)))
}

/// A figure at its place.
fn point(case: &PublishedCase, of: Quantity, x: f64) -> Option<Point> {
    let ends = case.intervals.get(&of);
    let (low, high) = (ends.map(|ends| ends.0), ends.map(|ends| ends.1));
    Some(Point { low, high, ..Point::bare(x, *case.figures.get(&of)?) })
}

/// The cost of a switch by array: a line for each way to walk it.
fn by_array(machine: &PublishedMachine, run: Option<usize>) -> Vec<Series> {
    let worked = |case: &PublishedCase| case.ring.as_ref().and_then(|ring| ring.work);
    let cases: Vec<(&PublishedCase, Work)> =
        machine.cases.iter().filter_map(|case| Some((case, worked(case)?))).collect();
    let series = |of_walk: &[(&PublishedCase, Work)]| {
        let at = |(case, work): &(&PublishedCase, Work)| {
            point(case, Quantity::NsPerSwitchAboveSolo, work.bytes as f64)
        };
        let name = format!("{}, {}", year_name(machine), of_walk[0].1.walk_in_words());
        published(name, of_walk.iter().filter_map(at).collect(), run)
    };
    let is_alike = |one: &Work, other: &Work| *one == Work { bytes: one.bytes, ..*other };
    cases.chunk_by(|(_, one), (_, other)| is_alike(one, other)).map(series).collect()
}

fn log_ns(label: &str) -> Axis {
    Axis::new(label, Unit::Nanoseconds, Scale::Log)
}

/// Sets what `all` have published beside the figures of runs: series that are of no run, in the
/// same axes. With rings among the figures comes one more, the cost of a switch over the years;
/// `runs` are the names of what is drawn.
pub(crate) fn with_published(
    mut figures: Vec<Figure>,
    all: &[PublishedMachine],
    runs: &[String],
) -> Vec<Figure> {
    // One that was asked for by name is there already.
    let drawn: Vec<&Series> = figures.iter().flat_map(Figure::series).collect();
    let is_drawn =
        |one: &&PublishedMachine| drawn.iter().any(|series| series.name == year_name(one));
    let others: Vec<&PublishedMachine> = all.iter().filter(|one| !is_drawn(one)).collect();
    for figure in &mut figures {
        let rings = |of: Of| {
            others.iter().map(|one| published(year_name(one), pipe(one, of), None)).collect()
        };
        let series: Vec<Series> = match figure.id.as_str() {
            RING_COST => rings(cost_of),
            RING_CPU => rings(cpu_of_lap),
            COST_BY_ARRAY => {
                let arrays = others.iter().flat_map(|one| by_array(one, None));
                li(figure).into_iter().chain(arrays).collect()
            }
            CLOCK_CALLS => hines(figure),
            CLOCK_MALLOC => {
                let ns = hines2000::MALLOC_CYCLES * NS_PER_CYCLE;
                let mean = |all| flat("pentium-pro/166, 2000, mean".to_string(), all, ns);
                range(figure).map(mean).into_iter().collect()
            }
            _ => Vec::new(),
        };
        add(figure, series);
    }
    let history = years(&figures, &others, runs);
    let place = figures.iter().position(|figure| figure.id == RING_COST);
    let place = place.map_or(0, |place| place + 1);
    figures.splice(place..place, history);
    figures
}

/// A line of rings by pipe: others are other experiments.
fn pipe(machine: &PublishedMachine, of: Of) -> Vec<Point> {
    let first = machine.cases.iter().find_map(|case| case.ring.as_ref());
    if first.is_some_and(|ring| ring.link == "pipe") { line(machine, of) } else { Vec::new() }
}

fn add(figure: &mut Figure, mut published: Vec<Series>) {
    published.retain(|series| !series.points.is_empty());
    if published.is_empty() {
        return;
    }
    // A thousand times ours: only equal ratios show both.
    figure.y.scale = Scale::Log;
    if let FigureBody::Series(series) = &mut figure.body {
        series.extend(published);
    }
}

/// From the first to the last place of a figure.
fn range(figure: &Figure) -> Option<(f64, f64)> {
    let places = || figure.series().iter().flat_map(|of| &of.points).map(|point| point.x);
    places().reduce(f64::min).zip(places().reduce(f64::max))
}

fn flat(name: String, (from, to): (f64, f64), ns: f64) -> Series {
    published(name, vec![Point::bare(from, ns), Point::bare(to, ns)], None)
}

/// c1 across all arrays; the regions, of which only ranges were printed.
fn li(figure: &Figure) -> Vec<Series> {
    let (Ok(theirs), Some(all)) = (li2007::LiFigures::published(), range(figure)) else {
        return Vec::new();
    };
    let mut series = vec![flat("xeon-2.0, 2007, c1".to_string(), all, li2007::DIRECT_US * 1e3)];
    for total in [&theirs.first_region, &theirs.second_region] {
        let over = (total.smallest_bytes as f64, total.largest_bytes as f64);
        let arrays = words::byte_range(total.smallest_bytes, total.largest_bytes);
        let ends = [total.low_us * 1e3, total.high_us * 1e3];
        let points = [over.0, over.1].map(|bytes| Point::range(bytes, ends));
        series.push(published(format!("xeon-2.0, 2007, {arrays}"), points.to_vec(), None));
    }
    series
}

fn hines(figure: &mut Figure) -> Vec<Series> {
    let names = &mut figure.x.names;
    let calls = [("getrusage", hines2000::GETRUSAGE), ("getpinfo", hines2000::GETPINFO)];
    let points = calls.map(|(name, call)| {
        let place = names.iter().position(|known| known == name).unwrap_or_else(|| {
            names.push(name.to_string());
            names.len() - 1
        });
        Point::bare(place as f64, call.mean_cycles * NS_PER_CYCLE)
    });
    vec![published("pentium-pro/166, 2000".to_string(), points.to_vec(), None)]
}

fn of_two(points: &[Point]) -> Option<Point> {
    points.iter().find(|point| point.x == 2.0).copied()
}

/// The name of a machine that has a ring of two, and what a switch of it costs.
fn ring_of_two(machine: &PublishedMachine) -> Option<(String, Option<usize>, Point)> {
    Some((year_name(machine), None, of_two(&line(machine, cost_of))?))
}

/// A switch of a ring of two on every published machine.
pub(crate) fn by_year(all: &[PublishedMachine]) -> Figure {
    timeline(all.iter().filter_map(ring_of_two).collect(), Vec::new(), &[])
}

/// A switch of a ring of two on every machine, oldest first, the runs last; none without a run.
fn years(figures: &[Figure], others: &[&PublishedMachine], runs: &[String]) -> Option<Figure> {
    let rings = || figures.iter().filter(|of| of.id == RING_COST).flat_map(Figure::series);
    // The cost of each run that has one without work by the pipe.
    let mut ours: Vec<(usize, Point)> = rings()
        .filter(|series| series.role == Role::Measured && series.name.starts_with("pipe"))
        .filter_map(|series| Some((series.run?, of_two(&series.points)?)))
        .collect();
    ours.dedup_by_key(|(run, _)| *run);
    ours.first()?;
    let known = others.iter().filter_map(|of| ring_of_two(of));
    let asked = rings().filter(|of| of.role == Role::Published && of.run.is_some());
    let asked = asked.filter_map(|of| Some((of.name.clone(), of.run, of_two(&of.points)?)));
    let mut theirs: Vec<(String, Option<usize>, Point)> = known.chain(asked).collect();
    theirs.sort_by_key(|(name, ..)| name.rsplit(' ').next().unwrap_or_default().to_string());
    Some(timeline(theirs, ours, runs))
}

/// Machines with their years, and the runs below them.
fn timeline(
    theirs: Vec<(String, Option<usize>, Point)>,
    ours: Vec<(usize, Point)>,
    runs: &[String],
) -> Figure {
    let (mut names, mut series) = (Vec::new(), Vec::new());
    let at = |place: usize, point: Point| vec![Point { x: place as f64, ..point }];
    for (name, run, point) in theirs {
        series.push(published(name.clone(), at(names.len(), point), run));
        names.push(name);
    }
    for (run, point) in ours {
        series.push(Series::new("measured", run, Role::Measured, at(names.len(), point)));
        names.push(runs.get(run).cloned().unwrap_or_default());
    }
    let here = if series.iter().any(|of| of.role == Role::Measured) {
        ", and as measured here"
    } else {
        ""
    };
    let in_words = format!(
        "Cost of a switch in a ring of two as each was published{here}. Of Sloan's machines it is \
         the CPU time of a hop, with all other costs of a hop; of VENIX the switch between two \
         signals."
    );
    let title = "A switch in a ring of two, 1984 to today";
    let x = Axis::with_names("machine and year", names);
    let figure = Figure::new("history", title, x, log_ns("cost of a switch"));
    Figure { in_words, body: FigureBody::Series(series), ..figure }
}
