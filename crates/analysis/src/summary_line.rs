//! The sentence that a summary of runs begins with.

use rundata::ring::{MemberKind, Policy, Walk};
use rundata::words::bytes;

use crate::cost::CostCurve;
use crate::curve;
use crate::estimate::Estimate;
use crate::marked;
use crate::marked::MarkedText;
use crate::noise::{NoiseLevel, NoiseVerdict};
use crate::quote::{NotQuotable, cost as in_full};
use crate::record::RingRecord;
use crate::scaling::Knee;
use crate::summary::CaseSummary;

/// Returns one sentence on a run of rings, a run of costs by working set, and the verdicts on the
/// machine's noise. Each of them may be missing.
pub fn in_words(
    ring: Option<&RingRecord>,
    cost: Option<&RingRecord>,
    noise: &[(&str, &NoiseVerdict)],
) -> MarkedText {
    let mut parts = vec![switch_in_words(&switching_rings(ring, cost))];
    if let Some(record) = cost {
        parts.extend(cost_in_words(record, ring));
    }
    if let Some(words) = ring.and_then(knees_in_words) {
        parts.push(words.into());
    }
    if let Some(words) = machine_in_words(noise) {
        parts.push(words.into());
    }
    MarkedText::join(parts, "; ")
}

/// Returns the rings without work whose cost of a switch was measured, those of `ring` first.
fn switching_rings<'a>(
    ring: Option<&'a RingRecord>,
    cost: Option<&'a RingRecord>,
) -> Vec<MeasuredRing<'a>> {
    let mut rings = Vec::new();
    for record in [ring, cost].into_iter().flatten() {
        for summary in &record.cases {
            let is_bare_ring = summary.case.members > 1 && summary.case.work.is_none();
            if let (true, Some(cost)) = (is_bare_ring, summary.ns_per_switch_above_solo) {
                rings.push(MeasuredRing { summary, cost });
            }
        }
    }
    rings
}

/// A ring with its cost of a switch.
struct MeasuredRing<'a> {
    summary: &'a CaseSummary,
    cost: Estimate,
}

impl MeasuredRing<'_> {
    fn is_pair(&self) -> bool {
        self.summary.case.members == 2
    }

    /// Returns how well the ring tells what a switch costs; 0 is best.
    fn rank(&self) -> u8 {
        let has_answer = self.cost.answer_cost().is_ok();
        if self.is_pair() && self.cost.quote_cost().is_ok() {
            0
        } else if self.is_pair() && has_answer {
            1
        } else if has_answer {
            2
        } else {
            3
        }
    }
}

/// Returns the cost of a switch in words. One that is not of the normal policy says so, with the
/// cost under the normal policy beside it where that is known.
fn switch_in_words(rings: &[MeasuredRing]) -> MarkedText {
    // Of several with one rank the first.
    let Some(best) = rings.iter().min_by_key(|ring| ring.rank()) else {
        return "What a switch costs here was not measured".into();
    };
    let Ok(answer) = best.cost.answer_cost() else {
        return format!("What a switch costs here: {}", in_full(&best.cost)).into();
    };
    let mut setting = " here".to_string();
    if !best.is_pair() {
        setting += &format!(" with {} members", best.summary.case.members);
    }
    if let Some(cycles) = best.summary.cycles_in_words() {
        setting += &format!(", {cycles}");
    }
    let words = marked!["A switch costs ", answer.marked_time_and_bound(), setting];
    let policy = best.summary.case.policy;
    if policy == Policy::Other {
        return words;
    }
    let normal_pair =
        rings.iter().find(|ring| ring.is_pair() && ring.summary.case.policy == Policy::Other);
    let normal = match normal_pair.map(|pair| pair.cost.answer_cost()) {
        Some(Ok(cost)) => format!("; with the normal policy {}", cost.time()),
        _ => String::new(),
    };
    marked![words, format!(" under {policy}{normal}")]
}

/// Returns the cost of a switch with a working set in words; absent where nothing is known of it.
fn cost_in_words(record: &RingRecord, ring: Option<&RingRecord>) -> Option<MarkedText> {
    let (_, array_bytes, cost) = with_work(record)?;
    let mut set = format!("with {} of working set", bytes(array_bytes));
    if let Some(words) = reference_in_words(record, ring) {
        set += &format!(" ({words})");
    }
    match cost.answer_cost() {
        Ok(answer) => Some(marked![answer.marked_time(), " ", set]),
        // Its interval says something; that there were too few rounds does not.
        Err(NotQuotable::NotResolved { .. }) => Some(format!("{set}: {}", in_full(&cost)).into()),
        Err(_) => None,
    }
}

/// Returns a ring of two without work.
fn bare_pair(record: &RingRecord) -> Option<&CaseSummary> {
    record.cases.iter().find(|summary| summary.case.members == 2 && summary.case.work.is_none())
}

/// Returns the cost without work of the run of costs by working set, and its policy if the run of
/// rings had another one. Absent without a run of rings: the sentence has no other direct cost then.
fn reference_in_words(cost: &RingRecord, ring: Option<&RingRecord>) -> Option<String> {
    let (pair, pair_of_ring) = (bare_pair(cost)?, bare_pair(ring?)?);
    let policy = pair.case.policy;
    let mut words = Vec::new();
    if policy != pair_of_ring.case.policy {
        words.push(format!("policy {policy}"));
    }
    if let Some(direct) = pair.ns_per_switch_above_solo {
        // A cost that may not be quoted would stand beside one that may.
        if let (Ok(_), Ok(answer)) = (direct.quote_cost(), direct.answer_cost()) {
            words.push(format!("{} without", answer.brief_time()));
        }
    }
    if words.is_empty() { None } else { Some(words.join(", ")) }
}

/// Returns the cost with the array that tells most, with its curve and the array's size in bytes:
/// that of two members that follow a chain, where no processor can fetch ahead, else that of the
/// first curve with a cost.
pub fn with_work(record: &RingRecord) -> Option<(&CostCurve, u64, Estimate)> {
    let curves = &record.found.cost.as_ref()?.curves;
    for curve in curves {
        if curve.members == 2 && curve.work.walk == Walk::Chase {
            if let Some((array_bytes, cost)) = telling_point(curve) {
                return Some((curve, array_bytes, cost));
            }
        }
    }
    for curve in curves {
        if let Some((array_bytes, cost)) = telling_point(curve) {
            return Some((curve, array_bytes, cost));
        }
    }
    None
}

/// Returns the array of a curve that tells most, in bytes, with its cost: the first one behind the
/// largest jump, else the largest whose cost may be quoted, else the largest with an answer.
fn telling_point(curve: &CostCurve) -> Option<(u64, Estimate)> {
    let mut costs: Vec<(u64, Estimate)> = Vec::new();
    for point in &curve.points {
        if let Some(cost) = point.total_ns {
            costs.push((point.array_bytes, cost));
        }
    }
    costs.into_iter().max_by_key(|(array_bytes, cost)| {
        let size = curve.size(*array_bytes);
        let is_behind_jump = curve.jump.is_some_and(|jump| jump.to == size);
        (is_behind_jump, cost.quote_cost().is_ok(), cost.answer_cost().is_ok(), *array_bytes)
    })
}

/// Returns the knees of the cost by ring size in words; absent without a law.
fn knees_in_words(record: &RingRecord) -> Option<String> {
    let law = &record.found.scaling.first()?.law;
    let members = match record.cases.first().map(|summary| summary.case.kind) {
        Some(MemberKind::Thread) => "threads",
        _ => "processes",
    };
    if law.knees.is_empty() {
        law.shape()?;
        return Some(format!("no jump up to {} {members}", law.largest_members));
    }
    let mut knees = Vec::new();
    for knee in &law.knees {
        knees.push(knee_in_words(knee, members));
    }
    Some(knees.join(" and "))
}

fn knee_in_words(knee: &Knee, members: &str) -> String {
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

/// Returns the worst of the verdicts in words; absent without any.
fn machine_in_words(noise: &[(&str, &NoiseVerdict)]) -> Option<String> {
    if noise.is_empty() {
        return None;
    }
    let verdicts = noise.iter().map(|(name, verdict)| (*name, (*verdict).clone()));
    // A quiet experiment shows nothing about one that could not be judged.
    let unjudged = noise.iter().any(|(_, verdict)| verdict.level == NoiseLevel::Unknown);
    let words = match NoiseVerdict::together(verdicts, &[]).level {
        NoiseLevel::Noisy => "the machine was noisy",
        NoiseLevel::Unusable => "the machine was very noisy",
        NoiseLevel::Quiet if !unjudged => "the machine was quiet",
        NoiseLevel::Quiet | NoiseLevel::Unknown => {
            "too few rounds to tell whether the machine was quiet"
        }
    };
    Some(words.to_string())
}
