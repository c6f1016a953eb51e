//! A map of c2 over c1 by array and stride, in shades, without colour: it reads the same in a file.

use std::fmt::Write;

use model::case::Walk;
use model::cost::{Cost, CostPoint, Curve};

/// Shades for c2 / c1 below so much; beyond the last it is the full block.
const SHADES: [(f64, char); 4] =
    [(1.25, '\u{b7}'), (2.0, '\u{2591}'), (4.0, '\u{2592}'), (8.0, '\u{2593}')];
const FULL: char = '\u{2588}';
const UNRESOLVED: char = '?';

const WIDTH: usize = 80;
const LABEL: usize = 16;
const CELL: usize = 4;

/// The map with its legend, ending with an empty line; empty where there is nothing to compare.
pub(crate) fn map(cost: &Cost) -> String {
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
