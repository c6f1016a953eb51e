//! The answer of a run of rings, in a sentence or two.
//!
//! `A switch costs 1.54 us (1.52 to 1.57) with 2 processes, 2.4 us with 64: it grows with the
//! logarithm of their number.` Rings that differ in their link, placement or registers are compared
//! at their smallest size instead. Rings that were measured under two policies have both figures.

use analysis::estimate::Estimate;
use analysis::marked;
use analysis::marked::MarkedText;
use analysis::not_alone;
use analysis::quote::{BestEstimate, QuotedFigure, cost, marked_cost};
use analysis::record::RingRecord;
use analysis::summary::CaseSummary;
use rundata::ring::{MemberKind, Policy, RingCase};
use rundata::run::unfinished;
use rundata::words;

use super::at_once;
use super::flight;
use super::jump;
use super::settings::under_policy as policy_phrase;
use crate::base::values::each_once;
use crate::report::terminal::counted;

/// The answer of a run: a first sentence without its full stop, to which more may be added, and what
/// follows behind it.
pub(super) struct RingAnswer {
    first: MarkedText,
    rest: String,
}

impl RingAnswer {
    pub(super) fn new(first: impl Into<MarkedText>) -> Self {
        Self { first: first.into(), rest: String::new() }
    }

    /// Joins both parts.
    fn in_words(self) -> MarkedText {
        marked![self.first, ".", self.rest]
    }
}

/// Returns the first line of a report.
pub(crate) fn headline(record: &RingRecord) -> MarkedText {
    if at_once::has_several_rings(record) {
        return at_once::headline(record);
    }
    match split_by_policy(record) {
        Some([normal, under_fifo]) => headline_of_both(&normal, &under_fifo),
        None => headline_of_one(record).in_words(),
    }
}

/// Splits a run whose rings were measured under the normal policy and under SCHED_FIFO beside it.
fn split_by_policy(record: &RingRecord) -> Option<[RingRecord; 2]> {
    let normal = under_policy(record, Policy::Other);
    let under_fifo = under_policy(record, Policy::Fifo);
    if normal.cases.iter().any(is_ring) && under_fifo.cases.iter().any(is_ring) {
        Some([normal, under_fifo])
    } else {
        None
    }
}

/// Returns whether a case has more than one member.
fn is_ring(summary: &CaseSummary) -> bool {
    summary.case.members > 1
}

/// Returns the part of a record that is of one policy: its cases and their laws.
fn under_policy(record: &RingRecord, policy: Policy) -> RingRecord {
    let mut part = record.clone();
    part.cases.retain(|summary| summary.case.policy == policy);
    part.found.scaling.clear();
    for series in &record.found.scaling {
        if let Some(cases) = renumber(&series.cases, record, &part) {
            let mut series = series.clone();
            series.cases = cases;
            part.found.scaling.push(series);
        }
    }
    part
}

/// Returns the numbers in `part` of cases of a record; `None` where the part lacks one.
fn renumber(numbers: &[usize], record: &RingRecord, part: &RingRecord) -> Option<Vec<usize>> {
    let mut new_numbers = Vec::new();
    for number in numbers {
        let wanted = &record.cases.get(*number)?.case;
        new_numbers.push(part.cases.iter().position(|summary| summary.case == *wanted)?);
    }
    Some(new_numbers)
}

/// Returns the cases with more than one member.
fn rings_of(record: &RingRecord) -> Vec<&CaseSummary> {
    let mut rings: Vec<&CaseSummary> = record.cases.iter().collect();
    rings.retain(|summary| is_ring(summary));
    rings
}

/// Returns the answer under the normal policy with that under fifo beside it. Where other tasks
/// kept the normal rings from the CPU, that under fifo comes first.
fn headline_of_both(normal: &RingRecord, under_fifo: &RingRecord) -> MarkedText {
    let is_known = matches!(smallest_switch(normal), Some(Ok(_)));
    match (is_known, smallest_switch(under_fifo)) {
        (true, Some(Ok(cost))) if is_one_setting(under_fifo) => {
            let mut answer = headline_of_one(normal);
            answer.first.push(format!("; {} under fifo", words::time(cost.value())));
            answer.in_words()
        }
        (true, Some(Ok(_))) => {
            let under_fifo = headline_of_one(under_fifo).in_words().uncapitalized();
            marked![headline_of_one(normal).in_words(), " Under fifo: ", under_fifo]
        }
        (true, _) | (false, None) => headline_of_one(normal).in_words(),
        (false, Some(_)) => {
            let mut answer = headline_of_one(under_fifo);
            if !is_one_setting(under_fifo) {
                answer.first = marked!["Under fifo: ", answer.first.uncapitalized()];
            }
            let why = match smallest_switch(normal) {
                Some(Err(why)) => why,
                _ => "not measured".to_string(),
            };
            answer.first.push(format!("; with the normal policy {why}"));
            answer.in_words()
        }
    }
}

/// Returns the cost of a switch in the smallest ring of a record, or why there is none in words.
fn smallest_switch(record: &RingRecord) -> Option<Result<QuotedFigure, String>> {
    let (_, estimate) = switch_costs(record).into_iter().next()?;
    Some(estimate.quote_cost().map_err(|_| match estimate.answer_cost() {
        Ok(best) => best.time_and_bound(),
        Err(_) => cost(&estimate),
    }))
}

/// Returns whether rings differ in nothing but their size: then the sentence itself names their
/// policy.
fn is_one_setting(record: &RingRecord) -> bool {
    let mut settings = Vec::new();
    for ring in rings_of(record) {
        settings.push(RingCase { members: 1, ..ring.case.clone() });
    }
    each_once(settings).len() == 1
}

/// Returns the answer of rings under one policy, by what they differ in.
fn headline_of_one(record: &RingRecord) -> RingAnswer {
    let rings = rings_of(record);
    if let Some(answer) = flight::answer(&rings) {
        return answer;
    }
    if each_once(rings.iter().map(|ring| &ring.case.link)).len() > 1 {
        let is_whole = unfinished(record.end.as_ref()).is_none();
        return match cheapest(&record.cases, is_whole) {
            Some(words) => RingAnswer::new(words),
            None => not_measured(record),
        };
    }
    if each_once(rings.iter().map(|ring| &ring.case.placement)).len() > 1 {
        return by_setting(record, |case| match case.placement.relation() {
            Some(relation) => format!("between {}", relation.in_words()),
            None => "on one CPU".to_string(),
        });
    }
    if each_once(rings.iter().map(|ring| ring.case.state)).len() > 1 {
        return by_setting(record, |case| {
            let state = case.state.map_or("no registers", |state| state.name());
            format!("with registers {state}")
        });
    }
    let mut answer = by_size(record);
    answer.rest += &jump::sentence(record);
    answer
}

/// Returns `A switch costs 1.54 us (1.52 to 1.57), 5,650 cycles at 3.69 GHz, with 2 processes, 2.4 us
/// with 64: it grows with the logarithm of their number.`
fn by_size(record: &RingRecord) -> RingAnswer {
    let rings = switch_costs(record);
    let Some((smallest, smallest_cost)) = rings.first() else { return not_measured(record) };
    let mut known: Vec<(&CaseSummary, BestEstimate)> = Vec::new();
    for (summary, cost) in &rings {
        if let Ok(best) = cost.answer_cost() {
            known.push((*summary, best));
        }
    }
    let setting = setting_in_words(&smallest.case);
    let with = members(&smallest.case);
    let Some((first, least)) = known.first() else {
        let policy = policy_phrase(smallest.case.policy);
        let what = format!("What a switch costs with {with}{setting}{policy}: ");
        return RingAnswer::new(marked![what, marked_cost(smallest_cost)]);
    };
    let cycles = match first.cycles_in_words() {
        Some(cycles) => format!(", {cycles},"),
        None if first.case.policy == Policy::Other => String::new(),
        None => ",".to_string(),
    };
    let policy = policy_phrase(first.case.policy);
    let beside =
        if least.is_beside_others() { not_alone::beside_words(record) } else { String::new() };
    let mut words = marked![
        "A switch costs ",
        least.marked_time_and_bound(),
        format!("{policy}{cycles} with {}{beside}", members(&first.case))
    ];
    if known.len() > 1 {
        if let Some((largest, most)) = known.last() {
            // An estimate of another kind shows no growth: its interval says how much it is worth.
            let is_alike = most.mark() == least.mark();
            let time = if is_alike { most.brief_time() } else { most.time() };
            words.push(format!(", {time} with {}", largest.case.members));
        }
    }
    words.push(setting);
    if known.len() > 1 {
        let law = record.found.scaling.first();
        if let Some(growth) = law.and_then(|series| series.law.growth_in_words()) {
            words.push(format!(": {growth}"));
        }
    }
    if let Err(why) = smallest_cost.answer_cost() {
        words.push(format!("; with {with}: {}", why.with_time_unit()));
    }
    RingAnswer::new(words)
}

/// Returns the rings that have a cost of a switch with that cost, the smallest ring first.
fn switch_costs(record: &RingRecord) -> Vec<(&CaseSummary, Estimate)> {
    let mut costs = Vec::new();
    for ring in rings_of(record) {
        if let Some(cost) = ring.ns_per_switch_above_solo {
            costs.push((ring, cost));
        }
    }
    costs.sort_by_key(|(ring, _)| ring.case.members);
    costs
}

/// Returns `2 processes`.
pub(super) fn members(case: &RingCase) -> String {
    let noun = match case.kind {
        MemberKind::Thread => "thread",
        MemberKind::Process if case.members == 1 => "process",
        MemberKind::Process => return format!("{} processes", case.members),
    };
    counted(case.members as usize, noun)
}

/// Returns what of the setting is not the default and changes the answer.
fn setting_in_words(case: &RingCase) -> String {
    let mut words = String::new();
    if let Some(work) = &case.work {
        words += &format!(" that walk {} each", words::bytes(work.bytes));
    }
    if case.link != "pipe" {
        words += &format!(" by {}", case.link);
    }
    words
}

/// Returns what a switch costs in each of several settings, in the smallest ring; `name` says the
/// setting.
fn by_setting(record: &RingRecord, name: impl Fn(&RingCase) -> String) -> RingAnswer {
    let smallest = rings_of(record).iter().map(|ring| ring.case.members).min();
    let Some(smallest) = smallest else { return not_measured(record) };
    let (mut known, mut open) = (Vec::new(), Vec::new());
    for summary in record.cases.iter().filter(|summary| summary.case.members == smallest) {
        let Some(cost) = summary.ns_per_switch_above_solo else { continue };
        match cost.answer_cost() {
            Ok(cost) => known.push(marked![cost.marked_time(), " ", name(&summary.case)]),
            Err(why) => open.push(format!("{}: {}", name(&summary.case), why.with_time_unit())),
        }
    }
    let open = open.join("; ");
    if known.is_empty() && open.is_empty() {
        return not_measured(record);
    }
    if known.is_empty() {
        return RingAnswer::new(format!("What a switch costs {open}"));
    }
    let mut words = marked!["A switch costs ", MarkedText::join(known, ", ")];
    if !open.is_empty() {
        words.push(format!("; {open}"));
    }
    RingAnswer::new(words)
}

/// Returns the link with the cheapest hop, which is all that waking another costs (send, wake,
/// switch, receive), and the links that it is not resolved from. A sentence without its full stop.
///
/// No link is called the cheapest if the run is not whole.
pub(crate) fn cheapest<'a>(
    cases: impl IntoIterator<Item = &'a CaseSummary>,
    is_whole: bool,
) -> Option<MarkedText> {
    let mut rings: Vec<&CaseSummary> = cases.into_iter().collect();
    rings.retain(|summary| is_ring(summary));
    let smallest = rings.iter().map(|ring| ring.case.members).min()?;
    rings.retain(|ring| ring.case.members == smallest);
    let mut measured: Vec<(&CaseSummary, Estimate)> = Vec::new();
    let mut quotable: Vec<(&CaseSummary, QuotedFigure)> = Vec::new();
    for ring in rings {
        let Some(hop) = ring.ns_per_hop else { continue };
        measured.push((ring, hop));
        if let Ok(quoted) = hop.quote_cost() {
            quotable.push((ring, quoted));
        }
    }
    if is_whole {
        quotable.sort_by(|(_, one), (_, other)| one.value().total_cmp(&other.value()));
    }
    let Some(((best, hop), others)) = quotable.split_first() else {
        let (ring, hop) = measured.first()?;
        let link = &ring.case.link;
        return Some(match hop.answer_cost() {
            Ok(answer) => marked![
                format!("A hop by {link} takes "),
                answer.marked_time(),
                "; links are not ranked."
            ],
            Err(why) => format!("What a hop by {link} costs: {}.", why.with_time_unit()).into(),
        });
    };
    let link = &best.case.link;
    let time = hop.marked_time();
    let unranked = measured.len() - quotable.len();
    let switch = switch_of_hop(best);
    if !is_whole || (others.is_empty() && unranked > 0) {
        let tail = format!("{switch}; links are not ranked");
        return Some(marked![format!("A hop by {link} takes "), time, tail]);
    }
    let next = next_link(hop, others);
    let unranked = match unranked {
        0 => String::new(),
        1 => "; 1 link is not ranked".to_string(),
        many => format!("; {many} links are not ranked"),
    };
    let tail = format!(" a hop{switch}{next}{unranked}");
    Some(marked![format!("Cheapest is {link}: "), time, tail])
}

/// Returns `, 1.2 us of it the switch`; empty where that is not known.
fn switch_of_hop(ring: &CaseSummary) -> String {
    let Some(cost) = ring.ns_per_switch_above_solo else { return String::new() };
    match cost.answer_cost() {
        Ok(switch) => format!(", {} of it the switch", switch.brief_time()),
        Err(_) => String::new(),
    }
}

/// Returns how much dearer the next link is, or which links are not resolved from the cheapest.
fn next_link(cheapest: &QuotedFigure, others: &[(&CaseSummary, QuotedFigure)]) -> String {
    let mut alike: Vec<&str> = Vec::new();
    for (ring, hop) in others {
        if !cheapest.differs_from(hop) {
            alike.push(&ring.case.link);
        }
    }
    let Some((next, hop)) = others.first() else { return String::new() };
    if alike.is_empty() {
        let times = words::times(hop.value() / cheapest.value());
        format!("; next is {}, {times} as much", next.case.link)
    } else if alike.len() == others.len() {
        "; no difference is resolved".to_string()
    } else {
        format!("; not resolved from {}", alike.join(", "))
    }
}

/// Says why there is no answer.
fn not_measured(record: &RingRecord) -> RingAnswer {
    if !record.cases.iter().any(is_ring) {
        let hop = record.cases.first().and_then(|summary| summary.ns_per_hop);
        return match hop.map(|hop| hop.answer_cost()) {
            None => RingAnswer::new("Nothing was measured"),
            Some(Ok(hop)) => RingAnswer::new(marked![
                "A ring of one takes ",
                hop.marked_time(),
                " a hop; it has no switch"
            ]),
            Some(Err(why)) => RingAnswer {
                first: format!("Time of a hop of a ring of one: {}", why.with_time_unit()).into(),
                rest: " It has no switch.".to_string(),
            },
        };
    }
    if record.cases.iter().any(|summary| summary.does_not_switch) {
        RingAnswer::new("These rings do not switch: the cost of a hop is not that of a switch")
    } else {
        RingAnswer::new("What a switch costs was not measured")
    }
}
