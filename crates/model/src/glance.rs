//! Runs at a glance: the sentence that a summary begins with.

use crate::case::{Kind, Walk};
use crate::cost::CostPoint;
use crate::estimate::Estimate;
use crate::noise::{NoiseLevel, NoiseVerdict};
use crate::record::{CaseSummary, Record};
use crate::scaling::{Knee, Verdict};
use crate::words::{bytes, time};

/// The working set that is told of: a program's that does some work between two switches. Where it was
/// not measured, the nearest one.
pub const ARRAY_BYTES: u64 = 256 << 10;

/// What a run of rings, one of costs by working set, and the verdicts on the machine's noise say, in one
/// sentence; each may be missing.
#[must_use]
pub fn in_words(
    ring: Option<&Record>,
    cost: Option<&Record>,
    noise: &[(&str, &NoiseVerdict)],
) -> String {
    let direct = ring.and_then(of_two).or_else(|| cost.and_then(of_two));
    let mut parts = vec![match direct {
        Some(cost) => format!("a switch costs {} here", estimate(&cost)),
        None => "what a switch costs here was not measured".into(),
    }];
    if let Some((array, cost)) = cost.and_then(with_work) {
        parts.push(format!("{} with {} of working set", estimate(&cost), bytes(array)));
    }
    parts.extend(ring.and_then(knees));
    parts.extend(machine(noise));
    parts.join("; ")
}

/// A ring of two without work.
fn of_two(record: &Record) -> Option<Estimate> {
    let bare = |of: &&CaseSummary| of.case.members == 2 && of.case.work.is_none();
    record.cases.iter().find(bare)?.ns_per_switch_above_solo
}

/// The array nearest to [`ARRAY_BYTES`] of two members that follow a chain through it, which no processor
/// can fetch ahead; of other walks where there is none.
fn with_work(record: &Record) -> Option<(u64, Estimate)> {
    let curves = &record.cost.as_ref()?.curves;
    let chase = curves.iter().find(|curve| curve.members == 2 && curve.work.walk == Walk::Chase);
    let chase = chase.or_else(|| curves.first())?;
    let measured = |point: &CostPoint| Some((point.array_bytes, point.total_ns?));
    let away = |array: &u64| ((*array as f64) / ARRAY_BYTES as f64).ln().abs();
    let all = chase.points.iter().filter_map(measured);
    all.min_by(|(a, _), (b, _)| away(a).total_cmp(&away(b)))
}

/// Where the cost by ring size leaves one law for another.
fn knees(record: &Record) -> Option<String> {
    let law = &record.scaling.first()?.law;
    let kind = record.cases.first().map_or(Kind::Process, |of| of.case.kind);
    let members = match kind {
        Kind::Process => "processes",
        Kind::Thread => "threads",
    };
    Some(match &law.knees[..] {
        [] => without_knees(law, members),
        knees => knees.iter().map(|knee| at(knee, members)).collect::<Vec<_>>().join(" and "),
    })
}

fn without_knees(law: &Verdict, members: &str) -> String {
    match law.shape() {
        Some(_) => format!("no knee up to {} {members}", law.largest_members),
        None => "whether it has a knee cannot be told".into(),
    }
}

fn at(knee: &Knee, members: &str) -> String {
    match knee.high_members - knee.low_members {
        0 | 1 => format!("a knee at {} {members}", knee.high_members),
        _ => format!("a knee between {} and {} {members}", knee.low_members, knee.high_members),
    }
}

/// The worst of the verdicts.
fn machine(noise: &[(&str, &NoiseVerdict)]) -> Option<String> {
    let all = noise.iter().map(|(name, verdict)| (*name, (*verdict).clone()));
    Some(match NoiseVerdict::together(all).level {
        NoiseLevel::Unknown => return None,
        NoiseLevel::Quiet => "the machine was quiet".into(),
        NoiseLevel::Noisy => "the machine was noisy".into(),
        NoiseLevel::Unusable => {
            "the machine was so noisy that the figures say more about its neighbours".into()
        }
    })
}

/// A cost and how far it can be trusted.
fn estimate(cost: &Estimate) -> String {
    match cost.interval() {
        None => format!("about {} (too few rounds for an interval)", time(cost.value)),
        Some(i) if cost.resolved => {
            format!("{} ({} to {})", time(cost.value), time(i.low), time(i.high))
        }
        Some(i) => format!("an amount that is not resolved ({} to {})", time(i.low), time(i.high)),
    }
}
