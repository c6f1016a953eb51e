//! Calls that were timed as a page of charts.

use charts::{Axis, Figure, Point, PointCertainty, Role, Scale, Series, Unit};

use super::findings::{CallProfile, Row};
use super::table::{self, headline, library};
use crate::base::lines::Layout;
use crate::report::figures::{lines, nanoseconds};
use crate::report::machine_line::cpu_and_kernel;
use crate::report::page::{FindingsDetails, FindingsPage, build_words};
use crate::report::terminal::{counted, shortened};
use crate::report::tiles::Tile;

/// The cost of a call of each function.
const CALLS: &str = "calls";
/// The cost of a call by how many bytes it asks for.
const SIZES: &str = "sizes";
/// How often each function is called.
const COUNTS: &str = "counts";

/// Charts by id, each with its question.
const QUESTIONS: [(&str, &str); 3] =
    [(CALLS, "What does a call cost?"), (SIZES, "By size?"), (COUNTS, "How often is it called?")];

/// Characters of a command in a title.
const MOST_LETTERS: usize = 48;

/// The page of calls that were timed.
pub(crate) fn page(profile: &CallProfile) -> FindingsPage {
    let name = shortened(&shell_words::join(&profile.plan.command), MOST_LETTERS);
    FindingsPage {
        title: format!("calls of {name}"),
        heading: "What calls cost a program",
        answer: headline(profile).into(),
        setting: setting(profile),
        tiles: tiles(profile),
        figures: [calls(profile), sizes(profile), counts(profile)].into_iter().flatten().collect(),
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
    let runs = counted(profile.launches.len(), "run");
    format!("{runs} on {}.", cpu_and_kernel(&profile.machine))
}

/// The functions of an allocator, without their sizes.
fn functions(profile: &CallProfile, allocator: usize) -> impl Iterator<Item = &Row> {
    profile.rows.iter().filter(move |row| {
        row.allocator == allocator && row.what.function.is_some() && row.what.bytes.is_none()
    })
}

fn function_name(row: &Row) -> String {
    row.what.function.clone().unwrap_or("all".to_string())
}

/// Functions that have a tile.
const MOST_FUNCTIONS: usize = 4;

/// A call on average, its share of the CPU time, each function, and what other allocators make of
/// it.
fn tiles(profile: &CallProfile) -> Vec<Tile> {
    let mut tiles = Vec::new();
    if let Some(all) = profile.all(0) {
        tiles.push(cost("a call", all));
        let share = all.share_of_cpu.filter(|_| !all.is_bound);
        if let Some(share) = share.filter(|share| share.value > 0.0) {
            let (low, high) = share.low.zip(share.high).unwrap_or((share.value, share.value));
            let [value, low, high] = [share.value, low, high].map(|share| 100.0 * share);
            let without_interval = share.low.is_none().then_some("one run");
            let name = "share of the CPU time";
            tiles.push(Tile { value, without_interval, ..Tile::at_most(name, [low, high], "%") });
        }
        tiles.push(Tile::counted("calls", all.calls, "a run"));
    }
    for ratio in profile.ratios.iter().filter(|ratio| ratio.what == super::launches::What::ALL) {
        if let Some(ends) = ratio.ratio.interval() {
            let name = format!("{} / own", library(profile.plan.allocator(ratio.allocator)));
            tiles.push(Tile::ratio(name, [ratio.ratio.value, ends.low, ends.high]));
        }
    }
    for row in functions(profile, 0).take(MOST_FUNCTIONS) {
        tiles.push(cost(&format!("a call of {}", function_name(row)), row));
    }
    tiles
}

/// A call's CPU time, or of one that is too short what it takes at most.
fn cost(name: &str, row: &Row) -> Tile {
    if row.is_bound {
        return Tile::time_at_most(format!("{name}, at most"), [0.0, row.at_most_ns().max(0.0)]);
    }
    let value = row.ns_per_call.value;
    let (low, high) = row.ns_per_call.low.zip(row.ns_per_call.high).unwrap_or((value, value));
    let without_interval = row.ns_per_call.low.is_none().then_some("in few runs");
    Tile { without_interval, ..Tile::time(name, [value, low, high]) }
}

/// A call's CPU time at a place. Of a call that is too short the upper bound, and hollow.
fn point(x: f64, row: &Row) -> Point {
    if row.is_bound {
        return Point {
            certainty: PointCertainty::Rough,
            ..Point::bare(x, row.at_most_ns().max(0.0))
        };
    }
    let (low, high) = row.ns_per_call.low.zip(row.ns_per_call.high).unzip();
    let certainty = if low.is_some() { PointCertainty::Sure } else { PointCertainty::Rough };
    Point { low, high, certainty, ..Point::bare(x, row.ns_per_call.value) }
}

/// Says what hollow points are, if there are any.
fn note(rows: &[&Row]) -> String {
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

/// Names of the series of an allocator.
fn allocator_name(profile: &CallProfile, allocator: usize) -> String {
    match profile.plan.allocators.is_empty() {
        true => "a call".to_string(),
        false => library(profile.plan.allocator(allocator)).to_string(),
    }
}

/// A bar for each function, side by side for each allocator.
fn calls(profile: &CallProfile) -> Option<Figure> {
    let mut names: Vec<String> = Vec::new();
    let mut series = Vec::new();
    let mut rows = Vec::new();
    for allocator in 0..=profile.plan.allocators.len() {
        let mut bars = Vec::new();
        for row in functions(profile, allocator) {
            let name = function_name(row);
            let place = names.iter().position(|known| *known == name).unwrap_or(names.len());
            if place == names.len() {
                names.push(name);
            }
            bars.push(point(place as f64, row));
            rows.push(row);
        }
        series.push(Series::new(allocator_name(profile, allocator), 0, Role::Bars, bars));
    }
    let axes = (Axis::with_names("function", names), nanoseconds("CPU time of a call"));
    lines(CALLS, "CPU time of a call", note(&rows), axes, series)
}

/// The cost of a call by the bytes that it asks for: a line for each function of each allocator.
fn sizes(profile: &CallProfile) -> Option<Figure> {
    let mut series: Vec<Series> = Vec::new();
    let mut rows = Vec::new();
    for row in &profile.rows {
        let (Some(function), Some((_, to @ 1..))) = (&row.what.function, row.what.bytes) else {
            continue;
        };
        let name = match profile.plan.allocators.is_empty() {
            true => function.clone(),
            false => format!("{function}, {}", allocator_name(profile, row.allocator)),
        };
        let point = point(to as f64, row);
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
    lines(SIZES, "CPU time of a call by size", note(&rows), axes, series)
}

/// How often each function is called in a run.
fn counts(profile: &CallProfile) -> Option<Figure> {
    let rows: Vec<&Row> = functions(profile, 0).collect();
    let names = rows.iter().map(|row| function_name(row)).collect();
    let bars = rows.iter().enumerate().map(|(place, row)| Point::bare(place as f64, row.calls));
    let series = Series::new("calls", 0, Role::Bars, bars.collect());
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
    facts.extend(plan.allocators.iter().map(|name| ("allocator", name.clone())));
    facts.push(("seed", plan.seed.to_string()));
    facts.push(("by", build_words(&profile.build)));
    facts
}
