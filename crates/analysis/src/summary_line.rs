//! The sentence that a summary of runs begins with.

use rundata::ring::{MemberKind, Policy, Walk};
use rundata::words::bytes;

use crate::cost::{CostCurve, CostPoint};
use crate::curve;
use crate::estimate::Estimate;
use crate::marked;
use crate::marked::MarkedText;
use crate::noise::{NoiseLevel, NoiseVerdict};
use crate::quote::{NotQuotable, cost as in_full};
use crate::record::RingRecord;
use crate::scaling::Knee;
use crate::summary::CaseSummary;

/// What a run of rings, one of costs by working set, and the verdicts on the machine's noise say,
/// in one sentence; each may be missing.
pub fn in_words(
    ring: Option<&RingRecord>,
    cost: Option<&RingRecord>,
    noise: &[(&str, &NoiseVerdict)],
) -> MarkedText {
    let rings: Vec<&CaseSummary> = [ring, cost].into_iter().flatten().flat_map(bare).collect();
    let mut parts = vec![switch_words(&rings)];
    if let Some((cost, (_, array, with))) = cost.and_then(|cost| Some((cost, with_work(cost)?))) {
        let beside = beside(cost, ring).map_or(String::new(), |words| format!(" ({words})"));
        let set = format!("with {} of working set{beside}", bytes(array));
        match with.answer_cost() {
            Ok(answer) => parts.push(marked![answer.marked_time(), " ", set]),
            // Its interval says something; that there were too few rounds does not.
            Err(NotQuotable::NotResolved { .. }) => {
                parts.push(format!("{set}: {}", in_full(&with)).into());
            }
            Err(_) => {}
        }
    }
    parts.extend(ring.and_then(knees).map(MarkedText::from));
    parts.extend(machine(noise).map(MarkedText::from));
    MarkedText::join(parts, "; ")
}

/// What a switch of two costs: the first of these rings of which it may be quoted, else the first
/// of which anything is known, else what is known of a larger ring. What is not of the normal
/// policy says so, with what is known under that beside it.
fn switch_words(rings: &[&CaseSummary]) -> MarkedText {
    let cost = |of: &CaseSummary| of.ns_per_switch_above_solo;
    let is_quoted = |of: &&&CaseSummary| cost(of).is_some_and(|cost| cost.quote_cost().is_ok());
    let is_known = |of: &&&CaseSummary| cost(of).is_some_and(|cost| cost.answer_cost().is_ok());
    let known = || rings.iter().filter(|of| cost(of).is_some());
    let pairs = || known().filter(|of| of.case.members == 2);
    let best = pairs().find(is_quoted).or(pairs().find(is_known)).or(known().find(is_known));
    let Some(best) = best.or(known().next()) else {
        return "What a switch costs here was not measured".into();
    };
    let Some(Ok(answer)) = cost(best).map(|cost| cost.answer_cost()) else {
        let why = cost(best).as_ref().map_or(String::new(), in_full);
        return format!("What a switch costs here: {why}").into();
    };
    let cycles = best.cycles_in_words().map_or(String::new(), |cycles| format!(", {cycles}"));
    let members = match best.case.members {
        2 => String::new(),
        many => format!(" with {many} members"),
    };
    let setting = format!(" here{members}{cycles}");
    let words = marked!["A switch costs ", answer.marked_time_and_bound(), setting];
    if best.case.policy == Policy::Other {
        return words;
    }
    let normal = pairs().find(|of| of.case.policy == Policy::Other).and_then(|of| cost(of));
    let normal = normal.and_then(|cost| cost.answer_cost().ok());
    let normal = normal.map(|cost| format!("; with the normal policy {}", cost.time()));
    marked![words, format!(" under {}{}", best.case.policy, normal.unwrap_or_default())]
}

/// The rings of several members without work.
fn bare(record: &RingRecord) -> impl Iterator<Item = &CaseSummary> {
    record.cases.iter().filter(|of| of.case.members > 1 && of.case.work.is_none())
}

/// A ring of two without work.
fn two(record: &RingRecord) -> Option<&CaseSummary> {
    record.cases.iter().find(|of| of.case.members == 2 && of.case.work.is_none())
}

/// What a cost with work is to be set beside: that of the same run without, where another run,
/// which may have had another policy, tells the direct cost.
fn beside(cost: &RingRecord, ring: Option<&RingRecord>) -> Option<String> {
    let (own, other) = (two(cost)?, ring.and_then(two)?);
    // One that does not hold would be set beside one that may.
    let without = own.ns_per_switch_above_solo.filter(|cost| cost.quote_cost().is_ok());
    let without = without.and_then(|cost| cost.answer_cost().ok());
    let without = without.map(|cost| format!("{} without", cost.brief_time()));
    let policy = own.case.policy;
    let policy = (policy != other.case.policy).then(|| format!("policy {policy}"));
    let words: Vec<String> = policy.into_iter().chain(without).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// The cost with the array that says most, and that array: the first one behind the largest jump,
/// else the largest that may be quoted, else the largest that is known. Of two members that follow a chain through it, which no
/// processor can fetch ahead; of other walks where there is none. With the curve that it is of.
pub fn with_work(record: &RingRecord) -> Option<(&CostCurve, u64, Estimate)> {
    let curves = &record.found.cost.as_ref()?.curves;
    let measured = |of: &CostPoint| Some((of.array_bytes, of.total_ns?));
    let most = |of| {
        let curve: &CostCurve = of;
        let behind = curve.jump.map(|jump| jump.to);
        let rank = |(array, cost): &(u64, Estimate)| {
            let is_known = cost.answer_cost().is_ok();
            (Some(curve.size(*array)) == behind, cost.quote_cost().is_ok(), is_known, *array)
        };
        let (array, cost) = curve.points.iter().filter_map(measured).max_by_key(rank)?;
        Some((curve, array, cost))
    };
    let is_chase = |curve: &&CostCurve| curve.members == 2 && curve.work.walk == Walk::Chase;
    let chase = curves.iter().filter(is_chase).find_map(most);
    chase.or_else(|| curves.iter().find_map(most))
}

/// Where the cost by ring size leaves one law for another.
fn knees(record: &RingRecord) -> Option<String> {
    let law = &record.found.scaling.first()?.law;
    let threads = record.cases.first().is_some_and(|of| of.case.kind == MemberKind::Thread);
    let members = if threads { "threads" } else { "processes" };
    Some(match (&law.knees[..], law.shape()) {
        ([], Some(_)) => format!("no jump up to {} {members}", law.largest_members),
        ([], None) => return None,
        (knees, _) => knees.iter().map(|knee| at(knee, members)).collect::<Vec<_>>().join(" and "),
    })
}

fn at(knee: &Knee, members: &str) -> String {
    let (low, high) = (knee.low_members, knee.high_members);
    let place = match high.saturating_sub(low) {
        0 | 1 => format!("at {high} {members}"),
        _ => format!("between {low} and {high} {members}"),
    };
    let only = if knee.sizes_after == 1 { " (seen at one size only)" } else { "" };
    let how = match (knee.factor, knee.kind) {
        (Some(..1.0), curve::TurnKind::Step) => "faster beyond ",
        (Some(..1.0), curve::TurnKind::Hinge) => "growing less beyond ",
        _ => "",
    };
    format!("{how}a knee {place}{only}")
}

/// The worst of the verdicts.
fn machine(noise: &[(&str, &NoiseVerdict)]) -> Option<String> {
    let all = noise.iter().map(|(name, verdict)| (*name, (*verdict).clone()));
    // Who judged his own figures quiet says nothing of the others'.
    let unjudged = noise.iter().any(|(_, verdict)| verdict.level == NoiseLevel::Unknown);
    let words = match NoiseVerdict::together(all, &[]).level {
        NoiseLevel::Noisy => "the machine was noisy",
        NoiseLevel::Unusable => "the machine was very noisy",
        NoiseLevel::Quiet if !unjudged => "the machine was quiet",
        NoiseLevel::Quiet | NoiseLevel::Unknown => {
            "too few rounds to tell whether the machine was quiet"
        }
    };
    (!noise.is_empty()).then(|| words.to_string())
}
