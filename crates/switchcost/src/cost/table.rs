//! The report of `switchcost cost`: a table for each kind of access and stride, a heat map, regions.

use comfy_table::Table;
use model::case::{Walk, Work};
use model::cost::{Cost, CostPoint, Curve};
use model::estimate::Estimate;
use model::published::li2007;
use model::record::Record;
use model::regions::{Axis, Beside};
use model::ring::Case;
use model::speed::Speed;
use model::summary::COUNT_TOLERANCE;
use model::words;

use super::answer::headline;
use super::figures::map;
use crate::terminal::{self, Text, View, cpu_list, estimate_words, figure, rounds_words, value};

const LEGEND: &str = "c1, c2: ns of a switch without and with work: (hop of the ring - mean of its members' solos on the same memory) /\n  counted switches, at the CPU's full speed, 95 % interval with the scatter between launches; indirect = c2 - c1\n";

/// Said where a figure stands in brackets.
const UNRESOLVED: &str = "( ): not resolved from zero\n";

pub(crate) fn text(record: &Record, cost: &Cost, view: View) -> Text {
    let of_curve = |curve: &Curve| format!("{}\n{}\n", title(curve), table(curve, view.verbose));
    let mut tables = cost.curves.iter().map(of_curve).collect::<Vec<_>>().join("\n");
    if cost.curves.iter().flat_map(|curve| &curve.points).any(has_brackets) {
        tables += &format!("\n{UNRESOLVED}");
    }
    let direct = cost.direct.iter().map(|direct| {
        let (members, c1) = (direct.members, estimate_words(direct.cost_ns));
        format!("c1 of {members} members: {c1} ns a switch\n")
    });
    let mut details = direct.collect::<String>() + "\n" + LEGEND;
    details.extend(beside(cost).into_iter().map(|line| line + "\n"));
    details.push_str(&terminal::drawn(map(cost)));
    Text {
        headline: headline(record, cost),
        heading: heading(record),
        table: tables,
        details,
        findings: findings(cost, view),
    }
}

/// The costs of a curve by array; with `all` also what is counted.
fn table(curve: &Curve, all: bool) -> Table {
    let mut columns = vec!["array", "ns/switch", "interval", "indirect ns", "interval"];
    columns.extend(all.then_some(["switches/hop", "", "rounds"]).into_iter().flatten());
    let row = |point: &CostPoint| {
        let mut cells = costs(curve, point).to_vec();
        cells.extend(all.then(|| counts(point)).into_iter().flatten());
        cells
    };
    terminal::table(columns, curve.points.iter().map(row))
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

fn costs(curve: &Curve, point: &CostPoint) -> [String; 5] {
    let size = match curve.work.walk {
        Walk::Whole | Walk::Chase => Axis::ARRAY.size(point.array_bytes),
        Walk::Sparse => Axis::PAGES.size(Work { bytes: point.array_bytes, ..curve.work }.touches()),
    };
    let (total, indirect) = (point.total_ns, point.indirect_ns);
    [size, value(total), narrow_interval(total), value(indirect), narrow_interval(indirect)]
}

/// Switches as they were counted, with a mark where they are not one a hop, and the rounds.
fn counts(point: &CostPoint) -> [String; 3] {
    let switches = point.switches_per_hop;
    let is_unlike_one = switches.is_some_and(|e| (e.value - 1.0).abs() > COUNT_TOLERANCE);
    [
        switches.map_or("-".to_string(), |e| format!("{:.3}", e.value)),
        if is_unlike_one { "!" } else { "" }.to_string(),
        switches.map_or("-".to_string(), |e| e.rounds.to_string()),
    ]
}

/// The interval, in brackets where it includes zero; or why there is none, so short that two fit into a row.
fn narrow_interval(estimate: Option<Estimate>) -> String {
    let Some(estimate) = estimate else { return "-".to_string() };
    match estimate.interval().map(|i| format!("{} to {}", figure(i.low), figure(i.high))) {
        None if estimate.speed == Speed::Contended => "full speed not seen".to_string(),
        None => format!("{} only", rounds_words(estimate.rounds)),
        Some(range) if estimate.resolved => range,
        Some(range) => format!("({range})"),
    }
}

fn has_brackets(point: &CostPoint) -> bool {
    let both = [point.total_ns, point.indirect_ns].into_iter().flatten();
    both.into_iter().any(|of| !of.resolved && of.interval().is_some())
}

/// What is read from the curves, one of lines at random first: there nothing is fetched ahead.
fn findings(cost: &Cost, view: View) -> Vec<String> {
    let mut lines: Vec<String> = published(cost).filter(|_| view.history).into_iter().collect();
    let mut curves: Vec<&Curve> = cost.curves.iter().collect();
    curves.sort_by_key(|curve| curve.work.walk != Walk::Chase);
    lines.extend(curves.into_iter().map(|curve| {
        let what = if curve.outcome.regions().is_some() { "regions" } else { "course" };
        format!("{what}, {}: {}", title(curve), curve.in_words)
    }));
    lines.extend(cost.by_members.iter().map(|curve| {
        let work = curve.work.map_or("no work".to_string(), |work| work.in_words());
        format!("by members, {work}: {}", curve.in_words)
    }));
    lines
}

/// What of the machine lies where the courses break.
fn beside(cost: &Cost) -> Vec<String> {
    let arrays = cost.curves.iter().filter_map(|curve| {
        let levels = levels(&curve.outcome.breaks().axis, &curve.beside)?;
        Some(format!("beside the machine, {}: {levels}", title(curve)))
    });
    let members = cost.by_members.iter().filter_map(|curve| {
        let levels = levels(&Axis::MEMBERS, &curve.beside)?;
        Some(format!("beside the machine, by members: {levels}"))
    });
    arrays.chain(members).collect()
}

fn levels(axis: &Axis, beside: &[Option<Beside>]) -> Option<String> {
    let levels: Vec<String> = beside.iter().flatten().map(|level| level.in_words(axis)).collect();
    (!levels.is_empty()).then(|| levels.join("; "))
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
