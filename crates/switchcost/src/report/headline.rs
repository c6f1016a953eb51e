//! What a run says, in a sentence or two.

use model::cost::Curve;
use model::estimate::Estimate;
use model::record::{CaseSummary, Record};
use model::words;

/// Of rings: what a switch costs in the smallest and the largest, and the law between.
pub(super) fn of_rings(record: &Record) -> Vec<String> {
    match &record.cost {
        Some(cost) => of_working_sets(cost),
        None => record
            .scaling
            .iter()
            .flat_map(|series| of_series(record, &series.cases, &series.in_words))
            .collect(),
    }
}

/// A figure with its interval: `1.9 us (1.8 to 2 us)`.
pub(super) fn estimate(of: &Estimate) -> String {
    let value = words::time(of.value);
    match of.interval() {
        Some(i) if of.resolved => {
            format!("{value} ({} to {})", words::time(i.low), words::time(i.high))
        }
        _ => format!("{value} (not resolved)"),
    }
}

fn of_series(record: &Record, cases: &[usize], law: &str) -> Vec<String> {
    let summaries = || cases.iter().filter_map(|case| record.cases.get(*case));
    let cost = |of: &CaseSummary| {
        let cost = estimate(of.ns_per_switch_above_solo.as_ref()?);
        Some((of.case.members, of.case.link.clone(), cost))
    };
    let mut known = summaries().filter_map(cost);
    let Some((members, link, first)) = known.next() else { return Vec::new() };
    let start = format!("A switch costs {first} in a ring of {members} by {link}");
    match known.last() {
        None => vec![format!("{start}.")],
        Some((members, _, last)) => {
            vec![format!("{start}, {last} in one of {members}."), format!("Law: {law}.")]
        }
    }
}

fn of_working_sets(cost: &model::cost::Cost) -> Vec<String> {
    let direct = cost.direct.iter().filter_map(|direct| {
        let cost = estimate(direct.cost_ns.as_ref()?);
        Some(format!("Without work a switch of {} members costs {cost}.", direct.members))
    });
    let dearest = |curve: &Curve| {
        let known =
            curve.points.iter().filter_map(|point| Some((point.array_bytes, point.total_ns?)));
        known.max_by(|(_, one), (_, other)| one.value.total_cmp(&other.value))
    };
    let curve = |curve: &Curve| {
        let (bytes, cost) = dearest(curve)?;
        let (op, bytes) = (curve.work.op, words::bytes(bytes));
        Some(format!(
            "With {bytes} of working set each ({op}), {}: {}.",
            estimate(&cost),
            curve.in_words
        ))
    };
    // The dearest of all curves stands for them; the charts show the others.
    let most = cost.curves.iter().max_by(|one, other| {
        let value = |of: &Curve| dearest(of).map_or(f64::NEG_INFINITY, |(_, cost)| cost.value);
        value(one).total_cmp(&value(other))
    });
    direct.chain(most.and_then(curve)).collect()
}
