//! What a run of explanations answers in a sentence, and what else matters of it.

use analysis::estimate::Estimate;
use analysis::explain::{ExplainedSwitch, SwitchPart, explained_ring};
use analysis::marked;
use analysis::marked::MarkedText;
use analysis::quote::cost;
use analysis::record::ExplainRecord;
use rundata::notice::NoticeKind;
use rundata::ring::{MemberKind, Policy};

use crate::experiments::ring::settings::under_policy;
use crate::report::terminal::cpu_list;

/// The first line of a report.
pub(crate) fn headline(record: &ExplainRecord) -> MarkedText {
    let cpus = cpu_list(&record.header.plan.cases.first().map_or(Vec::new(), |of| of.cpus()));
    let Some((found, whole)) = found(record).and_then(|of| Some((of, of.whole_ns?))) else {
        return "Nothing was measured that a switch is made of.".into();
    };
    let members = match found.kind {
        MemberKind::Process => "two processes",
        MemberKind::Thread => "two threads",
    };
    let setting = format!("{members} by pipe, CPU {cpus}");
    let policy = under_policy(whole_policy(record));
    match whole.answer_cost() {
        Ok(whole) => {
            let parts =
                if is_whole(record) { format!(": {}", made_of(found)) } else { String::new() };
            let behind = format!("{policy}, its system calls included{parts}; {setting}.");
            marked!["A switch costs ", whole.marked_time(), behind]
        }
        Err(why) => {
            format!("What a switch costs{policy}: {}; {setting}.", why.with_time_unit()).into()
        }
    }
}

/// Returns the policy of the ring that is explained.
pub(super) fn whole_policy(record: &ExplainRecord) -> Policy {
    explained_ring(&record.header.plan).map_or(Policy::Other, |(_, ring)| ring.policy)
}

pub(super) fn found(record: &ExplainRecord) -> Option<&ExplainedSwitch> {
    record.found.explained.as_ref()
}

/// Whether the run ended: nothing is added up of one that did not.
pub(super) fn is_whole(record: &ExplainRecord) -> bool {
    rundata::run::unfinished(record.end.as_ref()).is_none()
}

/// The parts, the largest first, and the rest.
fn made_of(found: &ExplainedSwitch) -> String {
    let quoted = |of: &SwitchPart| Some((of.ns?.answer_cost().ok()?, of.part.in_words()));
    let mut parts: Vec<_> = found.parts.iter().filter_map(quoted).collect();
    parts.sort_by(|(one, _), (other, _)| other.value().total_cmp(&one.value()));
    let told = parts.iter().map(|(ns, name)| format!("{} {name}", ns.brief_time()));
    let open = found.parts.iter().filter(|of| quoted(of).is_none());
    let open = open.map(|of| format!("{}: {}", of.part.in_words(), why(of.ns)));
    told.chain(open).chain([rest(found)]).collect::<Vec<_>>().join(", ")
}

fn rest(found: &ExplainedSwitch) -> String {
    match found.rest_ns.map(|of| of.answer()) {
        Some(Ok(rest)) if rest.value() > 0.0 => format!("{} not explained", rest.time()),
        Some(Ok(rest)) => format!("not explained: {}", rest.time()),
        Some(Err(why)) => format!("the rest {}", why.with_time_unit()),
        None => "the rest is not known".to_string(),
    }
}

/// Why there is no figure.
pub(super) fn why(ns: Option<Estimate>) -> String {
    ns.map_or("not measured".to_string(), |of| cost(&of))
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

/// What of the whole other commands print.
fn above_solo(found: &ExplainedSwitch) -> Option<String> {
    let above = found.above_solo_ns?.quote_cost().ok()?.time();
    Some(format!("above solo: {above}, without what one alone pays for its calls (`ring`)"))
}
