//! The report of `switchcost cost`: a table for each kind of access and stride, a heat map, regions.

use std::fmt::Write;
use std::path::Path;

use comfy_table::Table;
use model::case::{Walk, Work};
use model::company::Company;
use model::cost::{Cost, CostPoint, Curve, MembersCurve};
use model::published::li2007;
use model::record::{Record, worst_precision};
use model::regions::{Axis, Beside};

use super::heat;
use crate::terminal::{self, estimate_words, figure, interval_words, stop_words};

const LEGEND: &str = "c1, c2: ns of a switch without and with work: (hop of the ring - mean of its members' solos on the same memory) /\n  counted switches, at the CPU's full speed, 95 % interval with the scatter between launches; indirect = c2 - c1\n";

/// The whole report, ending with a newline.
pub(crate) fn report(record: &Record, cost: &Cost, path: Option<&Path>) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{}\n", heading(record));
    for direct in &cost.direct {
        let c1 = estimate_words(direct.cost_ns.as_ref());
        let _ = writeln!(text, "c1 of {} members: {c1} ns a switch", direct.members);
    }
    for curve in &cost.curves {
        let _ = writeln!(text, "\n{}", title(curve));
        let _ = writeln!(text, "{}", table(curve));
    }
    let _ = writeln!(text, "\n{LEGEND}");
    text.push_str(&heat::map(cost));
    for line in findings(record, cost) {
        let _ = writeln!(text, "{line}");
    }
    let _ = writeln!(text, "{}", terminal::place(path));
    text
}

fn heading(record: &Record) -> String {
    let mut words = terminal::heading(&record.header);
    if let Some(case) = record.header.plan.ring(0) {
        let cpus: Vec<String> = case.placement.cpus().iter().map(u32::to_string).collect();
        let priority = case.priority.map_or(String::new(), |p| format!(" at priority {p}"));
        let _ = write!(
            words,
            "\n{} members by {}, policy {}{priority}, placement {} (CPU {})",
            case.kind,
            case.link,
            case.policy,
            case.placement,
            cpus.join(",")
        );
        let huge =
            record.header.plan.rings().filter_map(|(_, case)| case.work).any(|w| w.huge_pages);
        words.push_str(if huge { ", huge pages on" } else { ", huge pages off" });
        let shares = record.cases.iter().filter_map(|case| case.huge_page_share);
        if let Some(share) = shares.reduce(f64::min).filter(|share| *share < 1.0) {
            let _ = write!(words, " (not always given: in {:.0} % of the samples)", share * 100.0);
        }
    }
    words
}

/// `rmw by 128 B, 2 members`.
fn title(curve: &Curve) -> String {
    format!("{}, {} members", walk_words(&curve.work), curve.members)
}

pub(crate) fn walk_words(work: &Work) -> String {
    match work.walk {
        Walk::Whole => format!("{} by {} bytes", work.op, work.stride_bytes),
        Walk::Chase => format!("{} of lines at random", work.op),
        Walk::Sparse => format!("{} of one line in each {} bytes", work.op, work.stride_bytes),
    }
}

fn table(curve: &Curve) -> Table {
    let columns = ["array", "c2", "interval", "indirect", "interval", "switches/hop", "", "rounds"];
    let mut table = terminal::table(columns);
    for point in &curve.points {
        table.add_row(row(curve, point));
    }
    terminal::align(&mut table);
    table
}

fn row(curve: &Curve, point: &CostPoint) -> Vec<String> {
    let dash = || "-".to_string();
    let value = |e: &Option<model::estimate::Estimate>| figure(e.as_ref().map(|e| e.value));
    let interval =
        |e: &Option<model::estimate::Estimate>| e.as_ref().map_or_else(dash, interval_words);
    let switches = point.switches_per_hop;
    let unlike_one =
        switches.is_some_and(|e| (e.value - 1.0).abs() > model::record::COUNT_TOLERANCE);
    vec![
        size_words(curve, point),
        value(&point.total_ns),
        interval(&point.total_ns),
        value(&point.indirect_ns),
        interval(&point.indirect_ns),
        switches.map_or_else(dash, |e| format!("{:.3}", e.value)),
        if unlike_one { "!" } else { "" }.to_string(),
        switches.map_or_else(dash, |e| e.rounds.to_string()),
    ]
}

fn size_words(curve: &Curve, point: &CostPoint) -> String {
    match curve.work.walk {
        Walk::Whole | Walk::Chase => Axis::array().size(point.array_bytes),
        Walk::Sparse => {
            Axis::pages().size(Work { bytes: point.array_bytes, ..curve.work }.touches())
        }
    }
}

fn findings(record: &Record, cost: &Cost) -> Vec<String> {
    let mut lines = Vec::new();
    for case in &record.cases {
        if let Some(failure) = &case.failure {
            let further = if case.rounds > 0 { "failed in some rounds" } else { "not measured" };
            let work = case.case.work.map_or("no work".to_string(), |work| work.in_words());
            lines.push(format!("{further}: ring of {}, {work}: {failure}", case.case.members));
        }
    }
    for curve in &cost.curves {
        let what = if curve.outcome.regions().is_some() { "regions" } else { "course" };
        lines.push(format!("{what}, {}: {}", title(curve), curve.in_words));
        lines.extend(levels(curve.outcome.breaks().axis.clone(), &curve.beside));
    }
    for curve in &cost.by_members {
        lines.push(format!("by members, {}: {}", members_words(curve), curve.in_words));
        lines.extend(levels(Axis::members(), &curve.beside));
    }
    lines.extend(published(cost));
    lines.push(format!("machine: {}", record.noise.in_words()));
    lines.extend(terminal::speed_words(&record.speed));
    lines.extend(record.company.as_ref().and_then(Company::line));
    let rounds = record.cases.iter().map(|case| case.rounds).max().unwrap_or(0);
    let widest = worst_precision(&record.cases);
    let stopped = stop_words(&record.header, record.end.as_ref(), rounds, widest);
    lines.push(format!("stopped: {stopped}"));
    lines.extend(record.header.notices.iter().map(|notice| format!("note: {notice}")));
    lines.extend(record.warnings.iter().map(|warning| format!("warning: {warning}")));
    lines
}

fn members_words(curve: &MembersCurve) -> String {
    curve.work.map_or("no work".to_string(), |work| work.in_words())
}

/// What of the machine lies where the course breaks.
fn levels(axis: Axis, beside: &[Option<Beside>]) -> Option<String> {
    let told: Vec<String> = beside.iter().flatten().map(|level| level.in_words(&axis)).collect();
    (!told.is_empty()).then(|| format!("  beside the machine: {}", told.join("; ")))
}

/// Our second region over our first, beside the paper's.
fn published(cost: &Cost) -> Option<String> {
    let theirs = li2007::Figures::published().ok()?;
    let of = |curve: &Curve| Some((title(curve), curve.second_over_first()?));
    let ours: Vec<String> = cost
        .curves
        .iter()
        .filter_map(of)
        .map(|(title, (low, high))| {
            format!("{} to {} ({title})", figure(Some(low)), figure(Some(high)))
        })
        .collect();
    let (low, high) = theirs.second_over_first();
    let paper = format!(
        "{} to {} (Li, Ding and Shen 2007, in sequence; their c1 {} us)",
        figure(Some(low)),
        figure(Some(high)),
        figure(Some(theirs.direct_us))
    );
    let asked = cost.curves.iter().any(|curve| curve.outcome.regions().is_some());
    let here = if ours.is_empty() { "not both seen here".to_string() } else { ours.join("; ") };
    asked.then(|| {
        format!("c2 where combined working sets exceed the cache / where all fit: {here}; theirs {paper}")
    })
}
