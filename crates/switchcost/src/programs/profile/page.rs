//! The page of charts of a profile: the cost of a call by function and by size, and how often each
//! function is called.

use analysis::estimate::Estimate;
use charts::{Axis, Figure, Point, PointCertainty, Role, Scale, Series, Unit};

use super::findings::{CallProfile, GroupCost};
use super::launches::CallGroup;
use super::table::{self, function_name, headline, library_name};
use crate::base::lines::Layout;
use crate::report::figures::{lines, nanoseconds};
use crate::report::machine_line::cpu_and_kernel;
use crate::report::page::{FindingsDetails, FindingsPage, build_words};
use crate::report::terminal::{counted, shortened};
use crate::report::tiles::Tile;

/// Id of the chart of the cost of a call of each function.
const CALLS: &str = "calls";
/// Id of the chart of the cost of a call by how many bytes it asks for.
const SIZES: &str = "sizes";
/// Id of the chart of how often each function is called.
const COUNTS: &str = "counts";

/// Charts by id, each with its question.
const QUESTIONS: [(&str, &str); 3] =
    [(CALLS, "What does a call cost?"), (SIZES, "By size?"), (COUNTS, "How often is it called?")];

/// Characters of a command in a title.
const MAX_COMMAND_CHARS: usize = 48;

/// Builds the page of a profile.
pub(crate) fn page(profile: &CallProfile) -> FindingsPage {
    let name = shortened(&shell_words::join(&profile.plan.command), MAX_COMMAND_CHARS);
    let charts = [calls_chart(profile), sizes_chart(profile), counts_chart(profile)];
    FindingsPage {
        title: format!("calls of {name}"),
        heading: "What calls cost a program",
        answer: headline(profile).into(),
        setting: setting(profile),
        tiles: tiles(profile),
        figures: charts.into_iter().flatten().collect(),
        questions: &QUESTIONS,
        details: FindingsDetails {
            title: "How it was measured",
            subject: name,
            facts_title: "Machine, command and runs",
            facts: facts(profile),
            text_title: "All that the profile says",
            text: table::text(profile, true).text(Layout::PAGE).into(),
            unlisted: "Single calls are not listed: switchcost profile --csv FILE",
        },
        footer: "Each call is timed by the CPU time of its thread; what timing adds is subtracted. \
                 A call that is too short to be timed has an upper bound.",
    }
}

fn setting(profile: &CallProfile) -> String {
    let launches = counted(profile.launches.len(), "run");
    format!("{launches} on {}.", cpu_and_kernel(&profile.machine))
}

/// Returns the functions of an allocator, without their sizes.
fn functions(profile: &CallProfile, allocator: usize) -> Vec<&GroupCost> {
    let mut functions = Vec::new();
    for row in &profile.rows {
        if row.allocator == allocator && row.group.function.is_some() && row.group.bytes.is_none() {
            functions.push(row);
        }
    }
    functions
}

/// Functions that have a tile.
const MAX_FUNCTION_TILES: usize = 4;

/// Returns the figures above the charts: a call on average, its share of the CPU time, each other
/// allocator's ratio, each function.
fn tiles(profile: &CallProfile) -> Vec<Tile> {
    let mut tiles = Vec::new();
    if let Some(all_calls) = profile.all_calls(0) {
        tiles.push(cost_tile("a call", all_calls));
        tiles.extend(share_tile(all_calls));
        tiles.push(Tile::counted("calls", all_calls.calls, "a run"));
    }
    for ratio in &profile.ratios {
        if ratio.group != CallGroup::ALL {
            continue;
        }
        if let Some(interval) = ratio.ratio.interval() {
            let library = library_name(profile.plan.allocator(ratio.allocator));
            let ends = [ratio.ratio.value, interval.low, interval.high];
            tiles.push(Tile::ratio(format!("{library} / own"), ends));
        }
    }
    for row in functions(profile, 0).into_iter().take(MAX_FUNCTION_TILES) {
        tiles.push(cost_tile(&format!("a call of {}", function_name(row)), row));
    }
    tiles
}

/// Returns the share of the CPU time in percent; none if it is only an upper bound, or not above
/// zero.
fn share_tile(row: &GroupCost) -> Option<Tile> {
    if row.is_bound {
        return None;
    }
    let share = row.share_of_cpu.filter(|share| share.value > 0.0)?;
    let [value, low, high] = value_and_ends(share).map(|share| 100.0 * share);
    let without_interval = share.low.is_none().then_some("one run");
    let tile = Tile::at_most("share of the CPU time", [low, high], "%");
    Some(Tile { value, without_interval, ..tile })
}

/// Returns the CPU time of a call; its upper bound if it is too short to be timed.
fn cost_tile(name: &str, row: &GroupCost) -> Tile {
    if row.is_bound {
        return Tile::time_at_most(format!("{name}, at most"), [0.0, row.at_most_ns().max(0.0)]);
    }
    let without_interval = row.ns_per_call.low.is_none().then_some("in few runs");
    Tile { without_interval, ..Tile::time(name, value_and_ends(row.ns_per_call)) }
}

/// Returns the value and the ends of an estimate; without an interval, the value three times.
fn value_and_ends(estimate: Estimate) -> [f64; 3] {
    match (estimate.low, estimate.high) {
        (Some(low), Some(high)) => [estimate.value, low, high],
        _ => [estimate.value; 3],
    }
}

/// Returns the CPU time of a call as a point; for one that is too short to be timed the upper
/// bound, which is drawn hollow.
fn cost_point(x: f64, row: &GroupCost) -> Point {
    if row.is_bound {
        let certainty = PointCertainty::Rough;
        return Point { certainty, ..Point::bare(x, row.at_most_ns().max(0.0)) };
    }
    let point = Point::bare(x, row.ns_per_call.value);
    let Some(interval) = row.ns_per_call.interval() else {
        return Point { certainty: PointCertainty::Rough, ..point };
    };
    let (low, high) = (Some(interval.low), Some(interval.high));
    Point { low, high, certainty: PointCertainty::Sure, ..point }
}

/// Says what hollow points are, if there are any.
fn hollow_points_note(rows: &[&GroupCost]) -> String {
    let has_bound = rows.iter().any(|row| row.is_bound);
    let has_few = rows.iter().any(|row| !row.is_bound && row.ns_per_call.low.is_none());
    let words = match (has_bound, has_few) {
        (true, true) => "Hollow (~): an upper bound, or of too few runs for an interval.",
        (true, false) => "Hollow (~): an upper bound, the call is too short to be timed.",
        (false, true) => "Hollow (~): of too few runs for an interval.",
        (false, false) => "",
    };
    words.to_string()
}

/// Returns the name of the series of an allocator.
fn allocator_name(profile: &CallProfile, allocator: usize) -> String {
    if profile.plan.allocators.is_empty() {
        "a call".to_string()
    } else {
        library_name(profile.plan.allocator(allocator)).to_string()
    }
}

/// Draws a bar for each function, side by side for each allocator.
fn calls_chart(profile: &CallProfile) -> Option<Figure> {
    let mut names: Vec<String> = Vec::new();
    let mut series = Vec::new();
    let mut rows = Vec::new();
    for allocator in 0..=profile.plan.allocators.len() {
        let mut bars = Vec::new();
        for row in functions(profile, allocator) {
            let name = function_name(row);
            let index = names.iter().position(|known| *known == name).unwrap_or(names.len());
            if index == names.len() {
                names.push(name);
            }
            bars.push(cost_point(index as f64, row));
            rows.push(row);
        }
        series.push(Series::new(allocator_name(profile, allocator), 0, Role::Bars, bars));
    }
    let axes = (Axis::with_names("function", names), nanoseconds("CPU time of a call"));
    lines(CALLS, "CPU time of a call", hollow_points_note(&rows), axes, series)
}

/// Draws the cost of a call by the bytes that it asks for: a line for each function of each
/// allocator.
fn sizes_chart(profile: &CallProfile) -> Option<Figure> {
    let mut series: Vec<Series> = Vec::new();
    let mut rows = Vec::new();
    for row in &profile.rows {
        let (Some(function), Some((_, to @ 1..))) = (&row.group.function, row.group.bytes) else {
            continue;
        };
        let name = if profile.plan.allocators.is_empty() {
            function.clone()
        } else {
            format!("{function}, {}", allocator_name(profile, row.allocator))
        };
        let point = cost_point(to as f64, row);
        rows.push(row);
        match series.iter_mut().find(|known| known.name == name) {
            Some(known) => known.points.push(point),
            None => series.push(Series::new(name, 0, Role::Measured, vec![point])),
        }
    }
    for series in &mut series {
        series.points.sort_by(|one, other| one.x.total_cmp(&other.x));
    }
    let x = Axis::new("up to so many bytes", Unit::Bytes, Scale::Log);
    let axes = (x, nanoseconds("CPU time of a call"));
    lines(SIZES, "CPU time of a call by size", hollow_points_note(&rows), axes, series)
}

/// Draws how often each function is called in a launch.
fn counts_chart(profile: &CallProfile) -> Option<Figure> {
    let (mut names, mut bars) = (Vec::new(), Vec::new());
    for (index, row) in functions(profile, 0).into_iter().enumerate() {
        names.push(function_name(row));
        bars.push(Point::bare(index as f64, row.calls));
    }
    let series = Series::new("calls", 0, Role::Bars, bars);
    let y = Axis::new("calls in a run", Unit::Count, Scale::Linear);
    let figure = Figure::new(COUNTS, "Calls in a run", Axis::with_names("function", names), y);
    figure.with_series([series])
}

fn facts(profile: &CallProfile) -> Vec<(&'static str, String)> {
    let plan = &profile.plan;
    let mut facts = vec![
        ("machine", cpu_and_kernel(&profile.machine)),
        ("measured", profile.started.clone()),
        ("command", shell_words::join(&plan.command)),
    ];
    for allocator in &plan.allocators {
        facts.push(("allocator", allocator.clone()));
    }
    facts.push(("seed", plan.seed.to_string()));
    facts.push(("by", build_words(&profile.build)));
    facts
}
