//! The report of `switchcost cost`: a table for each kind of access and stride, a heat map, regions.

use std::fmt::Write;
use std::iter::once;

use model::case::{Walk, Work};
use model::cost::{Cost, CostPoint, Curve};
use model::published::li2007;
use model::record::{COUNT_TOLERANCE, Record};
use model::regions::{Axis, Beside};
use model::ring::Case;
use model::words;

use crate::terminal::{self, Told, cpu_list, estimate_words, figure, interval, value};

const LEGEND: &str = "c1, c2: ns of a switch without and with work: (hop of the ring - mean of its members' solos on the same memory) /\n  counted switches, at the CPU's full speed, 95 % interval with the scatter between launches; indirect = c2 - c1\n";

pub(crate) fn told(record: &Record, cost: &Cost) -> Told {
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
    body.push_str(&heat_map(cost));
    Told { heading: heading(record), body, findings: findings(cost) }
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
    let told: Vec<String> = beside.iter().flatten().map(|level| level.in_words(axis)).collect();
    (!told.is_empty()).then(|| format!("  beside the machine: {}", told.join("; ")))
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
    let (paper, c1) = (range(theirs.second_over_first()), figure(theirs.direct_us));
    Some(format!(
        "c2 where combined working sets exceed the cache / where all fit: {here}; theirs {paper} (Li, Ding and Shen \
         2007, in sequence; their c1 {c1} us)"
    ))
}

/// Shades for c2 / c1 below so much; beyond the last it is the full block.
const SHADES: [(f64, &str); 4] =
    [(1.25, "\u{b7}"), (2.0, "\u{2591}"), (4.0, "\u{2592}"), (8.0, "\u{2593}")];
const FULL: &str = "\u{2588}";
const UNRESOLVED: &str = "?";

/// Sizes of the map side by side: 80 columns with the names of the curves.
const SIZES_ON_A_LINE: usize = 10;

/// The map with its legend, ending with an empty line; empty where there is nothing to compare.
fn heat_map(cost: &Cost) -> String {
    let curves = || cost.curves.iter().filter(|curve| curve.work.walk != Walk::Sparse);
    let points = curves().flat_map(|curve| &curve.points);
    let mut arrays: Vec<u64> = points.map(|point| point.array_bytes).collect();
    arrays.sort_unstable();
    arrays.dedup();
    let part = |part: &[u64]| {
        let sizes = part.iter().map(|bytes| words::bytes(*bytes).replace([' ', 'i', 'B'], ""));
        let row = |curve: &Curve| {
            let direct = cost.direct.iter().find(|of| of.members == curve.members);
            let direct = direct.and_then(|of| of.cost_ns).map(|c1| c1.value);
            let cells = part.iter().map(|bytes| {
                let point = curve.points.iter().find(|point| point.array_bytes == *bytes);
                point.map_or("", |point| shade(point, direct)).repeat(3)
            });
            let by = match curve.work.walk {
                Walk::Chase => Walk::Chase.to_string(),
                _ => curve.work.stride_bytes.to_string(),
            };
            let name = format!("{} {by} N={}", curve.work.op, curve.members);
            once(name).chain(cells).collect::<Vec<String>>()
        };
        let columns: Vec<String> = once(String::new()).chain(sizes).collect();
        format!("{}\n\n", terminal::table(columns, curves().map(row)))
    };
    let parts: String = arrays.chunks(SIZES_ON_A_LINE).map(part).collect();
    let [(_, a), (_, b), (_, c), (_, d)] = SHADES;
    match parts.is_empty() {
        true => parts,
        false => format!(
            "c2 / c1 by array: {a} below 1.25, {b} 2, {c} 4, {d} 8, {FULL} above; {UNRESOLVED} not resolved\n{parts}"
        ),
    }
}

fn shade(point: &CostPoint, direct: Option<f64>) -> &'static str {
    let resolved = point.total_ns.filter(|c2| c2.resolved && c2.value > 0.0);
    let Some((c2, c1)) = resolved.zip(direct.filter(|c1| *c1 > 0.0)) else { return UNRESOLVED };
    let ratio = c2.value / c1;
    // A ratio that differs from 1 by chance alone has no shade either.
    let is_apart = point.indirect_ns.is_some_and(|indirect| indirect.resolved);
    match SHADES.iter().find(|(below, _)| ratio < *below) {
        Some((_, shade)) if is_apart || ratio < SHADES[0].0 => shade,
        None if is_apart => FULL,
        _ => UNRESOLVED,
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
        let shades =
            [1.0, 1.3, 3.0, 5.0, 9.0].map(|c2| shade(&point(c2, true), Some(1.0))).concat();
        assert_eq!(shades, "\u{b7}\u{2591}\u{2592}\u{2593}\u{2588}");
        for unclear in [
            shade(&point(9.0, false), Some(1.0)),
            shade(&point(-9.0, true), Some(1.0)),
            shade(&point(9.0, true), None),
        ] {
            assert_eq!(unclear, UNRESOLVED);
        }
    }
}
