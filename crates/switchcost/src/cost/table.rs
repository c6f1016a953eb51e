//! The report of `switchcost cost`: a table for each kind of access and stride, a heat map, regions.

use std::fmt::Write;

use model::case::{Walk, Work};
use model::cost::{Cost, CostPoint, Curve};
use model::published::li2007;
use model::record::Record;
use model::regions::{Axis, Beside};
use model::ring::Case;
use model::summary::COUNT_TOLERANCE;
use model::words;

use super::figures::map;
use crate::terminal::{self, Text, cpu_list, estimate_words, figure, interval, value};

const LEGEND: &str = "c1, c2: ns of a switch without and with work: (hop of the ring - mean of its members' solos on the same memory) /\n  counted switches, at the CPU's full speed, 95 % interval with the scatter between launches; indirect = c2 - c1\n";

pub(crate) fn text(record: &Record, cost: &Cost) -> Text {
    let mut body = String::new();
    // Writing to a String cannot fail.
    for direct in &cost.direct {
        let (members, c1) = (direct.members, estimate_words(direct.cost_ns));
        let _ = writeln!(body, "c1 of {members} members: {c1} ns a switch");
    }
    let columns = ["array", "c2", "interval", "indirect", "interval", "switches/hop", "", "rounds"];
    for curve in &cost.curves {
        let rows = curve.points.iter().map(|point| row(curve, point));
        let _ = writeln!(body, "\n{}\n{}", title(curve), terminal::table(columns, rows));
    }
    let _ = writeln!(body, "\n{LEGEND}");
    body.push_str(&terminal::drawn(map(cost)));
    Text { heading: heading(record), body, findings: findings(cost) }
}

fn heading(record: &Record) -> String {
    let Some(case) = record.header.plan.ring(0) else { return String::new() };
    let priority = case.priority.map_or(String::new(), |p| format!(" at priority {p}"));
    let mut works = record.header.plan.rings().filter_map(|(_, case)| case.work);
    let huge_pages = if works.any(|work| work.huge_pages) { "on" } else { "off" };
    let shares = record.cases.iter().filter_map(|case| case.huge_page_share);
    let lacking = shares.reduce(f64::min).filter(|share| *share < 1.0);
    let lacking = lacking.map_or(String::new(), |share| {
        format!(" (not always given: in {:.0} % of the samples)", share * 100.0)
    });
    let Case { kind, link, policy, placement, .. } = case;
    let cpus = cpu_list(&placement.cpus());
    format!(
        "\n{kind} members by {link}, policy {policy}{priority}, placement {placement} (CPU {cpus}), huge pages {huge_pages}{lacking}"
    )
}

/// `rmw by 128 B, 2 members`.
fn title(curve: &Curve) -> String {
    format!("{}, {} members", walk_words(&curve.work), curve.members)
}

/// `rmw by 128 B`.
pub(crate) fn walk_words(work: &Work) -> String {
    let (op, stride) = (work.op, words::bytes(work.stride_bytes));
    match work.walk {
        Walk::Whole => format!("{op} by {stride}"),
        Walk::Chase => format!("{op} of lines at random"),
        Walk::Sparse => format!("{op} of one line in each {stride}"),
    }
}

fn row(curve: &Curve, point: &CostPoint) -> [String; 8] {
    let size = match curve.work.walk {
        Walk::Whole | Walk::Chase => Axis::ARRAY.size(point.array_bytes),
        Walk::Sparse => Axis::PAGES.size(Work { bytes: point.array_bytes, ..curve.work }.touches()),
    };
    let (total, indirect, switches) = (point.total_ns, point.indirect_ns, point.switches_per_hop);
    let is_unlike_one = switches.is_some_and(|e| (e.value - 1.0).abs() > COUNT_TOLERANCE);
    [
        size,
        value(total),
        interval(total),
        value(indirect),
        interval(indirect),
        switches.map_or("-".to_string(), |e| format!("{:.3}", e.value)),
        if is_unlike_one { "!" } else { "" }.to_string(),
        switches.map_or("-".to_string(), |e| e.rounds.to_string()),
    ]
}

fn findings(cost: &Cost) -> Vec<String> {
    let mut lines = Vec::new();
    for curve in &cost.curves {
        let what = if curve.outcome.regions().is_some() { "regions" } else { "course" };
        lines.push(format!("{what}, {}: {}", title(curve), curve.in_words));
        lines.extend(levels(&curve.outcome.breaks().axis, &curve.beside));
    }
    for curve in &cost.by_members {
        let work = curve.work.map_or("no work".to_string(), |work| work.in_words());
        lines.push(format!("by members, {work}: {}", curve.in_words));
        lines.extend(levels(&Axis::MEMBERS, &curve.beside));
    }
    lines.extend(published(cost));
    lines
}

/// What of the machine lies where the course breaks.
fn levels(axis: &Axis, beside: &[Option<Beside>]) -> Option<String> {
    let levels: Vec<String> = beside.iter().flatten().map(|level| level.in_words(axis)).collect();
    (!levels.is_empty()).then(|| format!("  beside the machine: {}", levels.join("; ")))
}

/// Our second region over our first, beside the paper's.
fn published(cost: &Cost) -> Option<String> {
    let theirs = li2007::Figures::published().ok()?;
    cost.curves.iter().find(|curve| curve.outcome.regions().is_some())?;
    let range = |(low, high): (f64, f64)| format!("{} to {}", figure(low), figure(high));
    let of = |curve: &Curve| {
        Some(format!("{} ({})", range(curve.outcome.regions()?.second_over_first()?), title(curve)))
    };
    let ours: Vec<String> = cost.curves.iter().filter_map(of).collect();
    let here = if ours.is_empty() { "not both seen here".to_string() } else { ours.join("; ") };
    let (paper, c1) = (range(theirs.second_over_first()), figure(li2007::DIRECT_US));
    Some(format!(
        "c2 where combined working sets exceed the cache / where all fit: {here}; theirs {paper} (Li, Ding and Shen \
         2007, in sequence; their c1 {c1} us)"
    ))
}
