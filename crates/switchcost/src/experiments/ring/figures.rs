//! Charts and tiles of rings without work: what a switch costs by the size of the ring, and by what
//! carries the token.

use std::cmp::Reverse;

use analysis::estimate::Estimate;
use analysis::record::{RingRecord, course};
use analysis::scaling::{Knee, ScalingVerdict};
use analysis::summary::CaseSummary;
use analysis::table::Table;
use charts::{Axis, AxisMark, Figure, Point, PointCertainty, Role, Scale, Series, Unit};
use rundata::placement::Placement;
use rundata::ring::{MemberKind, Policy, RingCase, RingSample};
use rundata::run::Run;
use rundata::words;

use super::answer::members as counted_members;
use super::at_once;
use crate::base::values::each_once;
use crate::report::figures::{
    ChartLabels, RING_COST, RING_CPU, bars, cost_points, count_points, interval_words, lines,
    members_axis, nanoseconds, time_words,
};
use crate::report::tiles::Tile;

/// A case and its number in the plan.
type NumberedCase<'a> = (usize, &'a CaseSummary);

/// Cases that differ in nothing but their size, by size.
struct SizeGroup<'a> {
    name: String,
    cases: Vec<NumberedCase<'a>>,
}

impl SizeGroup<'_> {
    /// Returns whether several items are under way in its rings.
    fn is_in_flight(&self) -> bool {
        self.cases.iter().any(|(_, summary)| summary.case.flight.is_some())
    }

    /// Draws an estimate of each case against its size.
    fn line(
        &self,
        index: usize,
        estimate: impl Fn(usize, &CaseSummary) -> Option<Estimate>,
    ) -> Series {
        let mut by_size = Vec::new();
        for (number, summary) in &self.cases {
            by_size.push((size(summary), estimate(*number, summary)));
        }
        Series::new(&*self.name, index, Role::Measured, cost_points(by_size))
    }

    /// Draws the counted switches per hop against the size.
    fn switches_line(&self, index: usize) -> Series {
        let mut by_size = Vec::new();
        for (_, summary) in &self.cases {
            by_size.push((size(summary), summary.switches_per_hop));
        }
        Series::new(&*self.name, index, Role::Measured, count_points(by_size))
    }
}

/// Returns the number of members, as a place on an axis.
fn size(summary: &CaseSummary) -> f64 {
    f64::from(summary.case.members)
}

/// Draws a run of rings without work. `index` is its place among the runs that are drawn together,
/// and stands in every series. Each figure has another id.
pub(crate) fn figures(run: &Run, record: &RingRecord, index: usize) -> Vec<Figure> {
    if at_once::has_several_rings(record) {
        return at_once::figures(record, index);
    }
    let groups = size_groups(record);
    let has_sizes = groups.iter().any(|group| group.cases.len() > 1);
    let mut figures = Vec::new();
    if has_sizes || groups.len() == 1 {
        figures.extend(cost_by_size(record, &groups, index));
    }
    if groups.iter().any(SizeGroup::is_in_flight) {
        figures.extend(items_compared(&groups, index));
    } else if groups.len() > 1 {
        figures.extend(settings_compared(&groups, index));
    }
    if has_sizes {
        figures.extend(cpu_time_by_size(run, &groups, index));
        figures.extend(switches_by_size(&groups, index));
    }
    figures
}

/// Returns the figures that stand for the run: a switch of the smallest and of the largest ring of
/// each group, what a hop takes there and alone, the other sizes.
pub(crate) fn tiles(record: &RingRecord) -> Vec<Tile> {
    if at_once::has_several_rings(record) {
        return at_once::tiles(record);
    }
    let groups = size_groups(record);
    let mut sizes = Vec::new();
    for group in &groups {
        sizes.extend(group.cases.iter().map(|(_, summary)| summary.case.members));
    }
    let has_one_size = each_once(sizes).len() == 1;
    let names = TileNames { has_one_group: groups.len() == 1, has_one_size };
    let mut tiles = Vec::new();
    for group in &groups {
        for (_, summary) in [group.cases.first(), group.cases.last()].into_iter().flatten() {
            tiles.extend(names.switch_tile(group, summary));
        }
    }
    for group in &groups {
        let Some((_, smallest)) = group.cases.first() else { continue };
        let name = format!("hop, {}", names.name(group, smallest));
        tiles.extend(Tile::cost(name, smallest.ns_per_hop));
    }
    if let Some(solo) = record.cases.iter().find(|summary| summary.case.members == 1) {
        tiles.extend(Tile::cost("hop, ring of one", solo.ns_per_hop));
    }
    for group in &groups {
        for (_, larger) in group.cases.iter().skip(1) {
            tiles.extend(names.switch_tile(group, larger));
        }
    }
    Tile::each_once(tiles)
}

/// Names of tiles, as short as the groups of a run allow.
struct TileNames {
    has_one_group: bool,
    has_one_size: bool,
}

impl TileNames {
    fn name(&self, group: &SizeGroup, summary: &CaseSummary) -> String {
        if self.has_one_group {
            counted_members(&summary.case)
        } else if self.has_one_size {
            group.name.clone()
        } else {
            format!("{}, {}", group.name, summary.case.members)
        }
    }

    fn switch_tile(&self, group: &SizeGroup, summary: &CaseSummary) -> Option<Tile> {
        let name = format!("switch, {}", self.name(group, summary));
        Tile::cost(name, summary.ns_per_switch_above_solo)
    }
}

fn size_groups(record: &RingRecord) -> Vec<SizeGroup<'_>> {
    let mut groups: Vec<SizeGroup> = Vec::new();
    for (number, summary) in record.cases.iter().enumerate() {
        if summary.case.members == 1 {
            continue;
        }
        let name = group_name(&summary.case);
        match groups.iter_mut().find(|known| known.name == name) {
            Some(group) => group.cases.push((number, summary)),
            None => groups.push(SizeGroup { name, cases: vec![(number, summary)] }),
        }
    }
    for group in &mut groups {
        group.cases.sort_by_key(|(_, summary)| summary.case.members);
    }
    groups
}

/// Returns what tells a ring from others but for its size: `futex, threads, fifo`. Defaults are
/// left out.
fn group_name(case: &RingCase) -> String {
    let mut words = vec![case.link.clone()];
    if case.kind == MemberKind::Thread {
        words.push("threads".to_string());
    }
    if let Some(work) = case.work {
        words.push(work.in_words());
    }
    if !matches!(case.placement, Placement::Same { .. }) {
        words.push(format!("on {}", case.placement));
    }
    if case.policy != Policy::Other {
        words.push(case.policy.to_string());
    }
    if let Some(state) = case.state {
        words.push(format!("registers {state}"));
    }
    if let Some(flight) = case.flight {
        words.push(flight.in_words());
    }
    if case.has_several_rings() {
        words.push(format!("{} rings", case.rings()));
    }
    words.join(", ")
}

/// Draws the cost of a switch with the laws that describe it and their knees.
fn cost_by_size(record: &RingRecord, groups: &[SizeGroup], index: usize) -> Option<Figure> {
    let mut series: Vec<Series> = Vec::new();
    for group in groups {
        let line = group.line(index, |_, summary| summary.ns_per_switch_above_solo);
        if !line.points.is_empty() {
            series.push(line);
        }
    }
    let mut sentence = match &series[..] {
        [only] => format!("A switch costs {}", ends_in_words(only)),
        many => range_in_words(many),
    };
    let mut marks = Vec::new();
    for law in &record.found.scaling {
        let name = match law.cases.first() {
            Some(case) if *case < record.cases.len() => group_name(&record.cases[*case].case),
            _ => String::new(),
        };
        let prefix = if groups.len() > 1 { format!("{name}, ") } else { String::new() };
        let curve = Series::new(format!("{prefix}law"), index, Role::Law, curve_points(&law.law));
        let measured = series.iter().find(|line| line.role == Role::Measured && line.name == name);
        if let Some(measured) = measured {
            if is_near(&curve.points, &measured.points) {
                series.push(curve);
            }
        }
        marks.extend(law.law.knees.iter().map(|knee| knee_mark(knee, &prefix)));
        if groups.len() == 1 && law.law.shape().is_some() {
            sentence.push_str(&format!("; law: {}", law.in_words));
        }
    }
    let title = "Cost of a switch by the size of the ring";
    let axes = (members_axis(Scale::Log), nanoseconds("cost of a switch"));
    let figure = lines(RING_COST, title, format!("{sentence}."), axes, series)?;
    Some(Figure { base: Some(2.0), marks, ..figure })
}

/// A law that is farther than this share from a value, and not within its interval, would tell
/// another story than the values.
const MAX_LAW_DISTANCE: f64 = 0.25;

/// Returns whether a line passes all values closely that it may be fitted to.
pub(super) fn is_near(line: &[Point], values: &[Point]) -> bool {
    for value in values {
        if value.certainty != PointCertainty::Sure {
            continue;
        }
        let Some(y) = height_at(line, value.x) else { return false };
        let is_within = match (value.low, value.high) {
            (Some(low), Some(high)) => low <= y && y <= high,
            _ => false,
        };
        if !is_within && (y - value.y).abs() > MAX_LAW_DISTANCE * value.y.abs() {
            return false;
        }
    }
    true
}

/// Returns the height of a line at `x`, straight between its points; `None` beyond its ends.
fn height_at(line: &[Point], x: f64) -> Option<f64> {
    let pair = line.windows(2).find(|pair| pair[0].x <= x && x <= pair[1].x)?;
    let [left, right] = [pair[0], pair[1]];
    let share = if right.x > left.x { (x - left.x) / (right.x - left.x) } else { 0.0 };
    Some(left.y + share * (right.y - left.y))
}

/// Returns the least and the most that a switch costs in several lines.
fn range_in_words(lines: &[Series]) -> String {
    let mut points: Vec<(&str, &Point)> = Vec::new();
    for line in lines {
        points.extend(line.points.iter().map(|point| (&*line.name, point)));
    }
    // Of equals the first is the least, and the last the most.
    points.sort_by(|(_, one), (_, other)| one.y.total_cmp(&other.y));
    match (points.first(), points.last()) {
        (Some((least_name, least)), Some((most_name, most))) => {
            let least = point_in_words(least, least_name);
            format!("A switch costs from {least} to {}", point_in_words(most, most_name))
        }
        _ => String::new(),
    }
}

fn point_in_words(point: &Point, line: &str) -> String {
    format!("{} at {:.0} members by {line}", time_words(point), point.x)
}

/// Returns `1.2 us at 2 members (1.1 us to 1.3 us), 1.9 us at 64 members (1.8 us to 2 us)`.
fn ends_in_words(line: &Series) -> String {
    let mut words = Vec::new();
    for point in each_once([line.points.first(), line.points.last()].into_iter().flatten()) {
        let (time, interval) = (time_words(point), interval_words(point));
        words.push(format!("{time} at {:.0} members{interval}", point.x));
    }
    words.join(", ")
}

/// Returns the fitted law from the smallest to the largest size.
fn curve_points(law: &ScalingVerdict) -> Vec<Point> {
    course(law).into_iter().map(|(members, ns)| Point::bare(members, ns)).collect()
}

/// Marks a knee where it is most likely, between the sizes that bracket it.
fn knee_mark(knee: &Knee, prefix: &str) -> AxisMark {
    let (low, high) = (f64::from(knee.low_members), f64::from(knee.high_members));
    let label = match knee.factor {
        Some(factor) => format!("{prefix}knee {}", words::times(factor)),
        None => format!("{prefix}knee"),
    };
    AxisMark { x: (low * high).sqrt(), between: Some((low, high)), label }
}

/// Draws the time of an item in the smallest ring of each group, side by side.
fn items_compared(groups: &[SizeGroup], index: usize) -> Option<Figure> {
    let mut times: Vec<(String, Estimate)> = Vec::new();
    for group in groups {
        let Some((_, summary)) = group.cases.first() else { continue };
        if let Some(hop) = summary.ns_per_hop {
            times.push((group.name.clone(), hop));
        }
    }
    let labels =
        ChartLabels { id: "flights", title: "Items under way compared", axis: "time of an item" };
    bars(labels, "Time of a hop, in which an item is sent and received.", times, index)
}

/// Draws rings of one size, the one that most groups have, side by side.
fn settings_compared(groups: &[SizeGroup], index: usize) -> Option<Figure> {
    let mut cases: Vec<&RingCase> = Vec::new();
    let mut sizes: Vec<u32> = Vec::new();
    for group in groups {
        if let Some((_, summary)) = group.cases.first() {
            cases.push(&summary.case);
        }
        sizes.extend(group.cases.iter().map(|(_, summary)| summary.case.members));
    }
    let (id, title) = if each_once(cases.iter().map(|case| &case.link)).len() > 1 {
        ("links", "Links compared")
    } else if each_once(cases.iter().map(|case| case.placement.to_string())).len() > 1 {
        ("placements", "Placements compared")
    } else if each_once(cases.iter().map(|case| case.state)).len() > 1 {
        ("states", "Registers in use compared")
    } else {
        ("policies", "Scheduling policies compared")
    };
    let size = most_frequent(sizes)?;
    let mut costs: Vec<(String, Estimate)> = Vec::new();
    for group in groups {
        let case = group.cases.iter().find(|(_, summary)| summary.case.members == size);
        let Some((_, summary)) = case else { continue };
        if let Some(cost) = summary.ns_per_switch_above_solo {
            costs.push((group.name.clone(), cost));
        }
    }
    let about = match groups.len() - costs.len() {
        0 => format!("Rings of {size}."),
        left => format!("Rings of {size}; {left} without a cost of a switch are left out."),
    };
    bars(ChartLabels { id, title, axis: "cost of a switch" }, &about, costs, index)
}

/// Returns the size that most rings have; of equals the smallest.
fn most_frequent(mut sizes: Vec<u32>) -> Option<u32> {
    sizes.sort_unstable();
    let runs = sizes.chunk_by(|one, other| one == other);
    let longest = runs.max_by_key(|run| (run.len(), Reverse(run[0])))?;
    Some(longest[0])
}

/// Draws the CPU time of a lap, and that of the ring of two scaled to each size.
fn cpu_time_by_size(run: &Run, groups: &[SizeGroup], index: usize) -> Option<Figure> {
    let table = Table::new(&run.header.plan, &run.samples);
    let lap = |number: usize, summary: &CaseSummary| {
        // A random stream of its own, apart from those of the record.
        let stream = (3 << 32) + table.rank(number);
        let by_round = table.as_found_by_round(number, RingSample::cpu_ns_per_hop);
        table.over_rounds(&by_round, stream)?.scaled(size(summary))
    };
    let mut series: Vec<Series> = Vec::new();
    for group in groups {
        let mut projected = Vec::new();
        for (_, summary) in &group.cases {
            if let Some(ns) = summary.projected_cpu_ns_per_lap {
                projected.push(Point::bare(size(summary), ns));
            }
        }
        let prefix = if groups.len() > 1 { format!("{}, ", group.name) } else { String::new() };
        let name = format!("{prefix}projected");
        series.push(group.line(index, lap));
        series.push(Series::new(name, index, Role::Projected, projected));
    }
    let (x, y) = (members_axis(Scale::Linear), nanoseconds("CPU time of a lap"));
    let in_words =
        "CPU time of all members for one lap; the projected line is that of the ring of \
                    two, scaled."
            .to_string();
    let figure = Figure::new(RING_CPU, "CPU time of a lap", x, y).with_series(series)?;
    Some(Figure { base: Some(2.0), in_words, ..figure })
}

/// Draws the switches per hop as the kernel counted them.
fn switches_by_size(groups: &[SizeGroup], index: usize) -> Option<Figure> {
    let title = "Switches per hop, as the kernel counted them";
    let y = Axis::new("switches per hop", Unit::Ratio, Scale::Linear);
    let series = groups.iter().map(|group| group.switches_line(index));
    let figure =
        Figure::new("ring-switches", title, members_axis(Scale::Log), y).with_series(series)?;
    let mut counts = Vec::new();
    for line in figure.series() {
        counts.extend(line.points.iter().map(|point| point.y));
    }
    counts.sort_by(f64::total_cmp);
    let (least, most) = (counts.first()?, counts.last()?);
    let in_words = format!(
        "From {least:.2} to {most:.2} switches per hop: costs are divided by these, not by hops."
    );
    Some(Figure { in_words, ..figure })
}
