//! The report of `switchcost cost`: a table for each kind of access and stride, a heat map, regions.

use std::fmt::Write;
use std::path::Path;

use comfy_table::Table;
use model::case::{Walk, Work};
use model::company::Company;
use model::cost::{Cost, CostPoint, Curve, MembersCurve};
use model::published::li2007;
use model::record::{CaseSummary, Record, worst_precision};
use model::regions::{Axis, Beside};

use crate::terminal::{self, estimate_words, figure, interval_words};

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
    text.push_str(&heat_map(cost));
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
    let failed = |case: &CaseSummary| {
        let work = case.case.work.map_or("no work".to_string(), |work| work.in_words());
        let name = format!("ring of {}, {work}", case.case.members);
        Some(terminal::failed(&name, case.rounds, case.failure.as_ref()?))
    };
    let mut lines: Vec<String> = record.cases.iter().filter_map(failed).collect();
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
    let end = record.end.as_ref();
    lines.extend(terminal::end(&record.header, end, rounds, widest, &record.warnings));
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

/// Shades for c2 / c1 below so much; beyond the last it is the full block.
const SHADES: [(f64, char); 4] =
    [(1.25, '\u{b7}'), (2.0, '\u{2591}'), (4.0, '\u{2592}'), (8.0, '\u{2593}')];
const FULL: char = '\u{2588}';
const UNRESOLVED: char = '?';

const WIDTH: usize = 80;
const LABEL: usize = 16;
const CELL: usize = 4;

/// The map with its legend, ending with an empty line; empty where there is nothing to compare.
fn heat_map(cost: &Cost) -> String {
    let mut text = String::new();
    let mut arrays: Vec<u64> = Vec::new();
    let whole = |curve: &&Curve| curve.work.walk != Walk::Sparse;
    for curve in cost.curves.iter().filter(whole) {
        arrays.extend(curve.points.iter().map(|point| point.array_bytes));
    }
    arrays.sort_unstable();
    arrays.dedup();
    if arrays.is_empty() {
        return text;
    }
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "c2 / c1 by array: {} below 1.25, {} 2, {} 4, {} 8, {FULL} above; {UNRESOLVED} not resolved",
        SHADES[0].1, SHADES[1].1, SHADES[2].1, SHADES[3].1
    );
    for part in arrays.chunks((WIDTH - LABEL) / CELL) {
        let header: String = part.iter().map(|bytes| format!("{:>CELL$}", short(*bytes))).collect();
        let _ = writeln!(text, "{:LABEL$}{header}", "");
        for curve in cost.curves.iter().filter(whole) {
            let direct = cost.direct.iter().find(|of| of.members == curve.members);
            let direct = direct.and_then(|of| of.cost_ns.as_ref()).map(|c1| c1.value);
            let cells: String = part.iter().map(|bytes| cell(curve, *bytes, direct)).collect();
            let by = match curve.work.walk {
                Walk::Chase => Walk::Chase.to_string(),
                Walk::Whole | Walk::Sparse => curve.work.stride_bytes.to_string(),
            };
            let label = format!("{} {by} N={}", curve.work.op, curve.members);
            let _ = writeln!(text, "{label:LABEL$}{cells}");
        }
    }
    text.push('\n');
    text
}

fn cell(curve: &Curve, bytes: u64, direct: Option<f64>) -> String {
    let point = curve.points.iter().find(|point| point.array_bytes == bytes);
    let mark = point.map_or(' ', |point| shade(point, direct));
    format!(" {}", mark.to_string().repeat(CELL - 1))
}

fn shade(point: &CostPoint, direct: Option<f64>) -> char {
    let resolved = point.total_ns.filter(|c2| c2.resolved && c2.value > 0.0);
    // A ratio that differs from 1 by chance alone has no shade either.
    let alike = |c2: f64, c1: f64| c2 / c1 < SHADES[0].0;
    let apart = point.indirect_ns.is_some_and(|indirect| indirect.resolved);
    let Some((c2, c1)) = resolved.zip(direct.filter(|c1| *c1 > 0.0)) else { return UNRESOLVED };
    if !apart && !alike(c2.value, c1) {
        return UNRESOLVED;
    }
    let ratio = c2.value / c1;
    SHADES.iter().find(|(below, _)| ratio < *below).map_or(FULL, |(_, shade)| *shade)
}

/// At most three characters: `181`, `2K`, `.5M`, `64M`.
fn short(bytes: u64) -> String {
    const K: u64 = 1 << 10;
    match bytes {
        0..1000 => bytes.to_string(),
        1000..102_400 => format!("{}K", (bytes + K / 2) / K),
        102_400..1_048_576 => format!(".{}M", (bytes * 10 / (K * K)).clamp(1, 9)),
        1_048_576..104_857_600 => format!("{}M", (bytes + K * K / 2) / (K * K)),
        104_857_600..1_073_741_824 => format!(".{}G", (bytes * 10 / (K * K * K)).clamp(1, 9)),
        _ => format!("{}G", bytes / (K * K * K)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::estimate::Estimate;

    fn point(value: f64, resolved: bool) -> CostPoint {
        let total_ns = Some(Estimate {
            value,
            standard_error: None,
            speed: Default::default(),
            low: None,
            high: None,
            confidence: 0.95,
            resolved,
            rounds: 5,
        });
        CostPoint {
            case: 0,
            array_bytes: 8,
            total_ns,
            indirect_ns: total_ns,
            switches_per_hop: None,
        }
    }

    #[test]
    fn shades_grow_with_the_ratio_and_what_is_not_resolved_has_none() {
        let shades: String =
            [1.0, 1.3, 3.0, 5.0, 9.0].map(|c2| shade(&point(c2, true), Some(1.0))).iter().collect();
        assert_eq!(shades, "\u{b7}\u{2591}\u{2592}\u{2593}\u{2588}");
        for unclear in [
            shade(&point(9.0, false), Some(1.0)),
            shade(&point(-9.0, true), Some(1.0)),
            shade(&point(9.0, true), None),
        ] {
            assert_eq!(unclear, UNRESOLVED);
        }
    }

    #[test]
    fn sizes_fit_their_cells() {
        let sizes = [8, 1000, 1024, 65536, 131_072, 524_288, 741_448, 1 << 20, 64 << 20, 128 << 20];
        let words = sizes.map(short);
        assert_eq!(words, ["8", "1K", "1K", "64K", ".1M", ".5M", ".7M", "1M", "64M", ".1G"]);
        assert!((3..34).all(|power| short(1 << power).len() < CELL));
    }
}
