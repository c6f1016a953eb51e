//! The report of `switchcost cost`: a table for each kind of access and stride, a heat map, regions.

use std::fmt::Write;

use model::case::{Walk, Work};
use model::cost::{Cost, CostPoint, Curve};
use model::published::li2007;
use model::record::{COUNT_TOLERANCE, Record};
use model::regions::{Axis, Beside};

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
    format!(
        "\n{} members by {}, policy {}{priority}, placement {} (CPU {}), huge pages {huge_pages}{lacking}",
        case.kind,
        case.link,
        case.policy,
        case.placement,
        cpu_list(&case.placement.cpus())
    )
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

fn row(curve: &Curve, point: &CostPoint) -> [String; 8] {
    let size = match curve.work.walk {
        Walk::Whole | Walk::Chase => Axis::array().size(point.array_bytes),
        Walk::Sparse => {
            Axis::pages().size(Work { bytes: point.array_bytes, ..curve.work }.touches())
        }
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
        lines.extend(levels(&Axis::members(), &curve.beside));
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
    let of =
        |curve: &Curve| Some(format!("{} ({})", range(curve.second_over_first()?), title(curve)));
    let ours: Vec<String> = cost.curves.iter().filter_map(of).collect();
    let here = if ours.is_empty() { "not both seen here".to_string() } else { ours.join("; ") };
    Some(format!(
        "c2 where combined working sets exceed the cache / where all fit: {here}; theirs {} (Li, Ding and Shen 2007, \
         in sequence; their c1 {} us)",
        range(theirs.second_over_first()),
        figure(theirs.direct_us)
    ))
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
