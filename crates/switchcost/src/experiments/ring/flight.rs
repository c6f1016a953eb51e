//! The answer of rings with several items under way: what an item takes, beside one by one.

use analysis::estimate::Estimate;
use analysis::marked;
use analysis::record::RingRecord;
use analysis::summary::CaseSummary;
use probe::ring::find_link;
use rundata::ring::{Flight, RingCase};
use rundata::words;

use super::answer::RingAnswer;
use crate::base::values::each_once;

/// Returns `With 16 items under way an item takes 310 ns (305 to 315) and 0.063 switches, 5.1x less
/// than one by one (1.58 us)`; `None` where all rings have one item.
///
/// Where rings differ in more than that, it is of those that are like the first.
pub(super) fn answer(rings: &[&CaseSummary]) -> Option<RingAnswer> {
    let first = rings.iter().find(|ring| ring.case.flight.is_some())?;
    let mut alike: Vec<&CaseSummary> = Vec::new();
    for ring in rings {
        if one_by_one(&ring.case) == one_by_one(&first.case) {
            alike.push(ring);
        }
    }
    let base = alike.iter().find(|ring| ring.case.flight.is_none()).copied();
    alike.retain(|ring| ring.case.flight.is_some());
    alike.sort_by(|one, other| item_ns(one).total_cmp(&item_ns(other)));
    let best = alike.first()?;
    let setting = setting_in_words(rings, &best.case);
    let Some(hop) = best.ns_per_hop else {
        return Some(RingAnswer::new("What an item takes was not measured"));
    };
    let time = match hop.answer_cost() {
        Ok(time) => time,
        Err(why) => {
            let flight = in_words(best.case.flight);
            let why = why.with_time_unit();
            return Some(RingAnswer::new(format!("What an item takes {flight}{setting}: {why}")));
        }
    };
    let mut sentence = marked![
        format!("With {}{setting} an item takes ", items_in_words(best.case.flight)),
        time.marked_time_and_bound(),
        switches_in_words(best)
    ];
    if let Some(base) = base {
        sentence.push(difference_in_words(base.ns_per_hop, hop));
    }
    let full = alike[1..].iter().find(|ring| ring.case.flight == Some(Flight::Full));
    if let Some(full) = full {
        if let Some(Ok(time)) = full.ns_per_hop.map(|hop| hop.answer_cost()) {
            let switches = switches_in_words(full);
            sentence.push(format!("; with a full link {}{switches}", time.brief_time()));
        }
    }
    Some(RingAnswer::new(sentence))
}

/// Returns a line on each link that carries several items by other means than one.
pub(super) fn links_with_two_mechanisms(record: &RingRecord) -> Vec<String> {
    let mut in_flight: Vec<&CaseSummary> = record.cases.iter().collect();
    in_flight.retain(|summary| summary.case.flight.is_some());
    let mut lines = Vec::new();
    for link in each_once(in_flight.iter().map(|summary| &summary.case.link)) {
        if let Some(words) = find_link(link).and_then(|link| link.several_items_in_words()) {
            lines.push(format!("{link}: {words}"));
        }
    }
    lines
}

/// Returns a ring with one item under way.
fn one_by_one(case: &RingCase) -> RingCase {
    RingCase { flight: None, ..case.clone() }
}

/// Returns the time of an item in nanoseconds; infinity where it has no answer.
fn item_ns(ring: &CaseSummary) -> f64 {
    match ring.ns_per_hop.map(|hop| hop.answer_cost()) {
        Some(Ok(time)) => time.value(),
        _ => f64::INFINITY,
    }
}

/// Returns `16 items under way`, `a full link`.
fn items_in_words(flight: Option<Flight>) -> String {
    match flight {
        None => "one item".to_string(),
        Some(Flight::Items(count)) => format!("{count} items under way"),
        Some(flight @ Flight::Full) => flight.in_words(),
    }
}

/// Returns `with 16 items under way`.
fn in_words(flight: Option<Flight>) -> String {
    format!("with {}", items_in_words(flight))
}

/// Returns ` and 0.063 switches`; empty where they were not counted.
fn switches_in_words(ring: &CaseSummary) -> String {
    match ring.switches_per_hop {
        Some(switches) => format!(" and {} switches", words::three_digits(switches.value)),
        None => String::new(),
    }
}

/// Returns `, 5.10x less than one by one (1.58 us)`, or that no difference is resolved; empty where
/// one of the two may not be quoted.
fn difference_in_words(base: Option<Estimate>, hop: Estimate) -> String {
    let Some(base) = base else { return String::new() };
    let (Ok(base), Ok(hop)) = (base.quote_cost(), hop.quote_cost()) else { return String::new() };
    if !base.differs_from(&hop) {
        return "; no difference from one by one is resolved".to_string();
    }
    let time = words::time(base.value());
    if hop.value() < base.value() {
        format!(", {} less than one by one ({time})", words::times(base.value() / hop.value()))
    } else {
        format!(", {} as much as one by one ({time})", words::times(hop.value() / base.value()))
    }
}

/// Returns the link and the placement, where rings differ in them.
fn setting_in_words(rings: &[&CaseSummary], case: &RingCase) -> String {
    let (mut has_links, mut has_placements, mut has_sizes) = (case.link != "pipe", false, false);
    for ring in rings {
        has_links |= ring.case.link != case.link;
        has_placements |= ring.case.placement != case.placement;
        has_sizes |= ring.case.members != case.members;
    }
    let mut setting = String::new();
    if has_links {
        setting += &format!(" by {}", case.link);
    }
    if has_placements {
        setting += &format!(" on {}", case.placement);
    }
    if has_sizes {
        setting += &format!(" in a ring of {}", case.members);
    }
    setting
}
