//! The answer of a run of explanations in a sentence, and what else matters of it.

use analysis::estimate::Estimate;
use analysis::explain::{ExplainedSwitch, explained_ring};
use analysis::marked;
use analysis::marked::MarkedText;
use analysis::quote::cost;
use analysis::record::ExplainRecord;
use rundata::notice::NoticeKind;
use rundata::ring::{MemberKind, Policy};

use crate::experiments::ring::settings::under_policy;
use crate::report::terminal::cpu_list;

/// Returns the first line of a report.
pub(crate) fn headline(record: &ExplainRecord) -> MarkedText {
    let Some(found) = found(record) else { return nothing_measured() };
    let Some(whole) = found.whole_ns else { return nothing_measured() };
    let cpus = record.header.plan.cases.first().map_or(Vec::new(), |case| case.cpus());
    let members = match found.kind {
        MemberKind::Process => "two processes",
        MemberKind::Thread => "two threads",
    };
    let setting = format!("{members} by pipe, CPU {}", cpu_list(&cpus));
    let policy = under_policy(whole_policy(record));
    match whole.answer_cost() {
        Ok(best) => {
            let parts = if is_whole(record) {
                format!(": {}", parts_in_words(found))
            } else {
                String::new()
            };
            let behind = format!("{policy}, its system calls included{parts}; {setting}.");
            marked!["A switch costs ", best.marked_time(), behind]
        }
        Err(why) => {
            format!("What a switch costs{policy}: {}; {setting}.", why.with_time_unit()).into()
        }
    }
}

fn nothing_measured() -> MarkedText {
    "Nothing was measured that a switch is made of.".into()
}

/// Returns the policy of the ring that is explained.
pub(super) fn whole_policy(record: &ExplainRecord) -> Policy {
    explained_ring(&record.header.plan).map_or(Policy::Other, |(_, ring)| ring.policy)
}

pub(super) fn found(record: &ExplainRecord) -> Option<&ExplainedSwitch> {
    record.found.explained.as_ref()
}

/// Returns whether the run ended: nothing is added up of one that did not.
pub(super) fn is_whole(record: &ExplainRecord) -> bool {
    rundata::run::unfinished(record.end.as_ref()).is_none()
}

/// Returns the parts, the largest first, those that are not known, and the rest.
fn parts_in_words(found: &ExplainedSwitch) -> String {
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for part in &found.parts {
        let name = part.part.in_words();
        match part.ns.map(|ns| ns.answer_cost()) {
            Some(Ok(best)) => known.push((best, name)),
            Some(Err(_)) | None => unknown.push(format!("{name}: {}", why(part.ns))),
        }
    }
    known.sort_by(|(one, _), (other, _)| other.value().total_cmp(&one.value()));
    let mut words = Vec::new();
    for (best, name) in known {
        words.push(format!("{} {name}", best.brief_time()));
    }
    words.extend(unknown);
    words.push(rest_in_words(found));
    words.join(", ")
}

fn rest_in_words(found: &ExplainedSwitch) -> String {
    match found.rest_ns.map(|rest| rest.answer()) {
        Some(Ok(rest)) if rest.value() > 0.0 => format!("{} not explained", rest.time()),
        Some(Ok(rest)) => format!("not explained: {}", rest.time()),
        Some(Err(why)) => format!("the rest {}", why.with_time_unit()),
        None => "the rest is not known".to_string(),
    }
}

/// Returns why there is no figure.
pub(super) fn why(ns: Option<Estimate>) -> String {
    match ns {
        Some(ns) => cost(&ns),
        None => "not measured".to_string(),
    }
}

/// Returns what matters beside the headline, most first.
pub(super) fn findings(record: &ExplainRecord) -> Vec<String> {
    let Some(found) = found(record) else { return Vec::new() };
    let mut lines: Vec<String> = above_solo(found).into_iter().collect();
    let mut missing: Vec<&str> = Vec::new();
    for notice in &record.header.notices {
        if let NoticeKind::PartNotMeasured(part) = &notice.kind {
            missing.push(part);
        }
    }
    if !missing.is_empty() {
        let parts = missing.join(", ");
        lines.push(format!("not measured: {parts} (--verbose says what each needs)"));
    }
    lines
}

/// Returns what other commands print of the whole.
fn above_solo(found: &ExplainedSwitch) -> Option<String> {
    let above = found.above_solo_ns?.quote_cost().ok()?.time();
    Some(format!("above solo: {above}, without what one alone pays for its calls (`ring`)"))
}
