//! Published figures in the axes of this program's charts: machines by themselves, and beside the
//! figures of runs.
//!
//! The machines of 1984 to 2007 are up to a thousand times as slow as today's. Beside the figures of
//! a run the axis of times is logarithmic, so that equal ratios have equal distances and both can be
//! read.

use analysis::published::{hines2000, li2007};
use analysis::results::{PublishedCase, PublishedMachine, Quantity};
use charts::{Axis, Figure, FigureBody, Point, Role, Scale, Series, Unit};
use rundata::ring::{RingCase, Work};
use rundata::words;

use super::{CLOCK_CALLS, CLOCK_MALLOC, COST_BY_ARRAY, RING_COST, RING_CPU, members_axis};

/// Nanoseconds of a cycle of a Pentium Pro of 166 MHz.
const NS_PER_CYCLE: f64 = 1000.0 / 166.0;

/// Id of the chart of what was printed of a machine.
pub(crate) const AS_PRINTED: &str = "published";

/// Note below charts of published figures.
const AS_PUBLISHED: &str = "As published, those of 1984 to 2007 without intervals; of the machines \
     of 1992 it is the CPU time of a hop.";

/// Returns the charts of a published machine by itself, the `index`th of the runs that are drawn
/// together. A chart is left out if the machine has no figures for it.
pub(crate) fn published_figures(machine: &PublishedMachine, index: usize) -> Vec<Figure> {
    let costs = ring_line(machine, switch_cost);
    let cost =
        ring_chart(RING_COST, "Cost of a switch by the size of the ring", "cost of a switch");
    let cpu = ring_chart(RING_CPU, "CPU time of a lap", "CPU time of a lap");
    let cpu_times = ring_line(machine, lap_cpu_time);
    let array = Axis::new("array of each member", Unit::Bytes, Scale::Log);
    let title = "Cost of a switch by working set";
    let arrays = Figure {
        in_words: "By the array that each member works on between two switches.".to_string(),
        ..Figure::new(COST_BY_ARRAY, title, array, log_ns("cost of a switch"))
    };
    let mut figures = Vec::new();
    figures.extend(cost.with_series([published_series(year_name(machine), costs, Some(index))]));
    figures.extend(cpu.with_series([published_series(year_name(machine), cpu_times, Some(index))]));
    figures.extend(arrays.with_series(array_series(machine, Some(index))));
    figures.extend(printed_figure(machine, index));
    figures
}

/// Begins a chart by the size of the ring.
fn ring_chart(id: &str, title: &str, axis: &str) -> Figure {
    let figure = Figure::new(id, title, members_axis(Scale::Log), log_ns(axis));
    Figure { base: Some(2.0), in_words: AS_PUBLISHED.to_string(), ..figure }
}

/// Returns the chart of all that was printed of a machine: a row for each figure of a case, and for
/// each range. Absent for a machine with so many figures that a chart has a line of them.
fn printed_figure(machine: &PublishedMachine, index: usize) -> Option<Figure> {
    let has_line =
        ring_line(machine, switch_cost).len() > 1 || array_series(machine, None).len() > 1;
    if has_line {
        return None;
    }
    let (mut names, mut points) = (Vec::new(), Vec::new());
    for case in &machine.cases {
        for quantity in case.figures.keys() {
            points.extend(case_point(case, *quantity, names.len() as f64));
            names.push(format!("{} of {}", quantity.in_words(), case.title));
        }
    }
    for range in &machine.ranges {
        let x = names.len() as f64;
        points.push(if range.low_ns < range.high_ns {
            Point::range(x, [range.low_ns, range.high_ns])
        } else {
            Point::bare(x, range.low_ns)
        });
        names.push(range.subject.clone());
    }
    let title = format!("What was published of {}", machine.name);
    let figure = Figure::new(AS_PRINTED, &title, Axis::with_names("", names), log_ns("time"));
    let in_words = "Printed without intervals; a bar is a range of figures.".to_string();
    let series = published_series(year_name(machine), points, Some(index));
    Figure { in_words, ..figure }.with_series([series])
}

/// Returns whether a chart has only one published figure, and so says no more than the chart of what
/// was printed.
pub(crate) fn is_one_published_figure(figure: &Figure) -> bool {
    match figure.series() {
        [only] => {
            figure.x.unit != Unit::Names && only.role == Role::Published && only.points.len() == 1
        }
        _ => false,
    }
}

/// Returns the name by which a machine is asked for, and the year: `sun-4/280, 1992`.
fn year_name(machine: &PublishedMachine) -> String {
    format!("{}, {}", machine.name, machine.year)
}

fn published_series(name: String, points: Vec<Point>, run: Option<usize>) -> Series {
    Series { name, run, role: Role::Published, points }
}

/// Reads the point of a ring from its case; its place is the number of members.
type RingPoint = fn(&PublishedCase, &RingCase) -> Option<Point>;

/// Returns the points of a machine's rings by size: of those without work that are like the first
/// in all else.
fn ring_line(machine: &PublishedMachine, ring_point: RingPoint) -> Vec<Point> {
    let mut points = Vec::new();
    let mut first: Option<&RingCase> = None;
    for case in &machine.cases {
        let Some(ring) = &case.ring else { continue };
        if ring.members < 2 || ring.work.is_some() {
            continue;
        }
        let first = *first.get_or_insert(ring);
        if *ring == (RingCase { members: ring.members, ..first.clone() }) {
            points.extend(ring_point(case, ring));
        }
    }
    points
}

/// Returns the cost of a switch; of Sloan's machines the CPU time of a hop, which comes nearest.
fn switch_cost(case: &PublishedCase, ring: &RingCase) -> Option<Point> {
    let x = ring.members.into();
    let cost = case_point(case, Quantity::NsPerSwitchAboveSolo, x);
    cost.or_else(|| case_point(case, Quantity::CpuNsPerHop, x))
}

fn lap_cpu_time(case: &PublishedCase, ring: &RingCase) -> Option<Point> {
    let hop_ns = case.figures.get(&Quantity::CpuNsPerHop)?;
    Some(Point::bare(ring.members.into(), hop_ns * f64::from(ring.members)))
}

/// Returns the point of a published figure, with its interval if one was published.
fn case_point(case: &PublishedCase, quantity: Quantity, x: f64) -> Option<Point> {
    let mut point = Point::bare(x, *case.figures.get(&quantity)?);
    if let Some((low, high)) = case.intervals.get(&quantity) {
        point.low = Some(*low);
        point.high = Some(*high);
    }
    Some(point)
}

/// Returns the cost of a switch by array: a series for each way to walk it.
fn array_series(machine: &PublishedMachine, run: Option<usize>) -> Vec<Series> {
    let mut series: Vec<Series> = Vec::new();
    let mut before: Option<Work> = None;
    for case in &machine.cases {
        let Some(ring) = &case.ring else { continue };
        let Some(work) = ring.work else { continue };
        if before.is_none_or(|before| before != Work { bytes: before.bytes, ..work }) {
            let name = format!("{}, {}", year_name(machine), work.walk_in_words());
            series.push(published_series(name, Vec::new(), run));
        }
        before = Some(work);
        let point = case_point(case, Quantity::NsPerSwitchAboveSolo, work.bytes as f64);
        if let Some(series) = series.last_mut() {
            series.points.extend(point);
        }
    }
    series
}

fn log_ns(label: &str) -> Axis {
    Axis::new(label, Unit::Nanoseconds, Scale::Log)
}

/// Adds published figures to the charts of runs, as series that belong to no run. If there are rings
/// among the charts, adds the chart of the cost of a switch over the years behind them. `runs` are
/// the names of the runs that are drawn.
pub(crate) fn with_published(
    mut figures: Vec<Figure>,
    machines: &[PublishedMachine],
    runs: &[String],
) -> Vec<Figure> {
    // A machine that was asked for by its name is drawn already.
    let mut others: Vec<&PublishedMachine> = Vec::new();
    for machine in machines {
        let name = year_name(machine);
        let mut drawn = figures.iter().flat_map(Figure::series);
        if !drawn.any(|series| series.name == name) {
            others.push(machine);
        }
    }
    for figure in &mut figures {
        let series = match figure.id.as_str() {
            RING_COST => ring_series(&others, switch_cost),
            RING_CPU => ring_series(&others, lap_cpu_time),
            COST_BY_ARRAY => {
                let mut series = li_series(figure);
                for machine in &others {
                    series.extend(array_series(machine, None));
                }
                series
            }
            CLOCK_CALLS => hines_calls(figure),
            CLOCK_MALLOC => hines_malloc(figure),
            _ => Vec::new(),
        };
        add_series(figure, series);
    }
    if let Some(history) = years(&figures, &others, runs) {
        // A run has a ring of two, so there is a chart of its cost.
        let place = figures.iter().position(|figure| figure.id == RING_COST).unwrap_or(0);
        figures.insert(place + 1, history);
    }
    figures
}

/// Returns the rings by pipe of each machine. Rings by other links are other experiments.
fn ring_series(machines: &[&PublishedMachine], ring_point: RingPoint) -> Vec<Series> {
    let mut series = Vec::new();
    for machine in machines {
        let first = machine.cases.iter().find_map(|case| case.ring.as_ref());
        if first.is_some_and(|ring| ring.link == "pipe") {
            let points = ring_line(machine, ring_point);
            series.push(published_series(year_name(machine), points, None));
        }
    }
    series
}

fn add_series(figure: &mut Figure, mut published: Vec<Series>) {
    published.retain(|series| !series.points.is_empty());
    if published.is_empty() {
        return;
    }
    figure.y.scale = Scale::Log;
    if let FigureBody::Series(series) = &mut figure.body {
        series.extend(published);
    }
}

/// The first and the last place of a figure on its x axis.
#[derive(Clone, Copy)]
struct PlaceRange {
    first: f64,
    last: f64,
}

impl PlaceRange {
    /// Returns the range of all points; absent without points.
    fn from_figure(figure: &Figure) -> Option<Self> {
        let mut range: Option<Self> = None;
        for series in figure.series() {
            for point in &series.points {
                let Self { first, last } = range.unwrap_or(Self { first: point.x, last: point.x });
                range = Some(Self { first: first.min(point.x), last: last.max(point.x) });
            }
        }
        range
    }
}

/// Returns a horizontal line through a whole figure.
fn flat_series(name: &str, range: PlaceRange, ns: f64) -> Series {
    let points = vec![Point::bare(range.first, ns), Point::bare(range.last, ns)];
    published_series(name.to_string(), points, None)
}

/// Returns the costs by Li, Ding and Shen: c1 across all arrays, and the regions, of which only
/// ranges were printed.
fn li_series(figure: &Figure) -> Vec<Series> {
    let (Ok(figures), Some(range)) =
        (li2007::LiFigures::published(), PlaceRange::from_figure(figure))
    else {
        return Vec::new();
    };
    let mut series = vec![flat_series("xeon-2.0, 2007, c1", range, li2007::DIRECT_US * 1e3)];
    for region in [&figures.first_region, &figures.second_region] {
        let arrays = words::byte_range(region.smallest_bytes, region.largest_bytes);
        let ends = [region.low_us * 1e3, region.high_us * 1e3];
        let points = vec![
            Point::range(region.smallest_bytes as f64, ends),
            Point::range(region.largest_bytes as f64, ends),
        ];
        series.push(published_series(format!("xeon-2.0, 2007, {arrays}"), points, None));
    }
    series
}

/// Returns the calls by Hines et al. at the places of their names, which are added to the axis if it
/// does not have them.
fn hines_calls(figure: &mut Figure) -> Vec<Series> {
    let names = &mut figure.x.names;
    let mut points = Vec::new();
    for (name, call) in [("getrusage", hines2000::GETRUSAGE), ("getpinfo", hines2000::GETPINFO)] {
        let place = names.iter().position(|known| known == name).unwrap_or_else(|| {
            names.push(name.to_string());
            names.len() - 1
        });
        points.push(Point::bare(place as f64, call.mean_cycles * NS_PER_CYCLE));
    }
    vec![published_series("pentium-pro/166, 2000".to_string(), points, None)]
}

fn hines_malloc(figure: &Figure) -> Vec<Series> {
    let mean_ns = hines2000::MALLOC_CYCLES * NS_PER_CYCLE;
    match PlaceRange::from_figure(figure) {
        Some(range) => vec![flat_series("pentium-pro/166, 2000, mean", range, mean_ns)],
        None => Vec::new(),
    }
}

/// A switch in a ring of two, in the chart over the years.
struct YearPoint {
    /// Name of a machine with its year, or of a run.
    name: String,
    /// Number of the run that the point belongs to; absent beside the runs.
    run: Option<usize>,
    role: Role,
    point: Point,
}

impl YearPoint {
    /// Returns the point of a published machine; absent if it has no ring of two.
    fn from_machine(machine: &PublishedMachine) -> Option<Self> {
        let point = pair_point(&ring_line(machine, switch_cost))?;
        Some(Self { name: year_name(machine), run: None, role: Role::Published, point })
    }
}

/// Returns the point of the ring of two.
fn pair_point(points: &[Point]) -> Option<Point> {
    points.iter().find(|point| point.x == 2.0).copied()
}

/// Returns the chart of a switch in a ring of two on every published machine.
pub(crate) fn by_year(machines: &[PublishedMachine]) -> Figure {
    years_figure(machines.iter().filter_map(YearPoint::from_machine).collect())
}

/// Returns the chart of a switch in a ring of two on every machine, oldest first, the runs last.
/// Absent if no run has a ring of two by pipe without work.
fn years(figures: &[Figure], others: &[&PublishedMachine], runs: &[String]) -> Option<Figure> {
    let mut theirs: Vec<YearPoint> = Vec::new();
    for machine in others {
        theirs.extend(YearPoint::from_machine(machine));
    }
    let mut ours: Vec<YearPoint> = Vec::new();
    let charts = figures.iter().filter(|figure| figure.id == RING_COST);
    for series in charts.flat_map(Figure::series) {
        let (Some(run), Some(point)) = (series.run, pair_point(&series.points)) else { continue };
        let role = series.role;
        if role == Role::Published {
            let name = series.name.clone();
            theirs.push(YearPoint { name, run: Some(run), role, point });
        } else if role == Role::Measured && series.name.starts_with("pipe") {
            let name = runs.get(run).cloned().unwrap_or_default();
            ours.push(YearPoint { name, run: Some(run), role, point });
        }
    }
    if ours.is_empty() {
        return None;
    }
    ours.dedup_by_key(|point| point.run);
    theirs.sort_by_key(|point| year(&point.name).to_string());
    theirs.extend(ours);
    Some(years_figure(theirs))
}

/// Returns the last word of a machine's name, which is its year.
fn year(name: &str) -> &str {
    name.rsplit(' ').next().unwrap_or_default()
}

/// Builds the chart over the years, a row for each point.
fn years_figure(points: Vec<YearPoint>) -> Figure {
    let has_runs = points.iter().any(|point| point.role == Role::Measured);
    let here = if has_runs { ", and as measured here" } else { "" };
    let in_words = format!(
        "Cost of a switch in a ring of two as each was published{here}. Of Sloan's machines it is \
         the CPU time of a hop, with all other costs of a hop; of VENIX the switch between two \
         signals."
    );
    let (mut names, mut series) = (Vec::new(), Vec::new());
    for YearPoint { name, run, role, point } in points {
        let points = vec![Point { x: names.len() as f64, ..point }];
        let is_run = role == Role::Measured;
        let series_name = if is_run { "measured".to_string() } else { name.clone() };
        series.push(Series { name: series_name, run, role, points });
        names.push(name);
    }
    let title = "A switch in a ring of two, 1984 to today";
    let x = Axis::with_names("machine and year", names);
    let figure = Figure::new("history", title, x, log_ns("cost of a switch"));
    Figure { in_words, body: FigureBody::Series(series), ..figure }
}
