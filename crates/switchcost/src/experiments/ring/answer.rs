//! What a run of rings answers, in a sentence or two.

use analysis::estimate::Estimate;
use analysis::marked;
use analysis::marked::MarkedText;
use analysis::not_alone;
use analysis::quote::{BestEstimate, QuotedFigure, cost, marked_cost};
use analysis::record::RingRecord;
use analysis::summary::CaseSummary;
use rundata::ring::{Case, Kind, Policy};
use rundata::run::unfinished;
use rundata::words;

use super::comparison;
use super::jump;
use crate::base::values::each_once;
use crate::report::terminal::counted;

/// What a run answers: a first sentence without its full stop, to which more may be added, and what
/// follows behind that.
struct RingAnswer {
    first: MarkedText,
    rest: String,
}

impl RingAnswer {
    fn new(first: impl Into<MarkedText>) -> Self {
        Self { first: first.into(), rest: String::new() }
    }

    /// Joins both.
    fn in_words(self) -> MarkedText {
        marked![self.first, ".", self.rest]
    }
}

/// The first line of a report.
pub(crate) fn headline(record: &RingRecord) -> MarkedText {
    match both_policies(record) {
        Some([normal, under_fifo]) => headline_of_both(&normal, &under_fifo),
        None => headline_of_one(record).in_words(),
    }
}

/// Splits a run whose rings were measured under the normal policy and under SCHED_FIFO beside it.
fn both_policies(record: &RingRecord) -> Option<[RingRecord; 2]> {
    let both = [Policy::Other, Policy::Fifo].map(|policy| under_policy(record, policy));
    let has_rings = |record: &RingRecord| record.cases.iter().any(|of| of.case.members > 1);
    both.iter().all(has_rings).then_some(both)
}

/// Returns the part of a record that is of one policy: its cases and their laws.
fn under_policy(record: &RingRecord, policy: Policy) -> RingRecord {
    let mut part = record.clone();
    part.cases.retain(|of| of.case.policy == policy);
    let place = |case: &usize| {
        let wanted = &record.cases.get(*case)?.case;
        part.cases.iter().position(|of| of.case == *wanted)
    };
    part.found.scaling.retain_mut(|series| {
        let places: Option<Vec<usize>> = series.cases.iter().map(place).collect();
        let is_of_policy = places.is_some();
        series.cases = places.unwrap_or_default();
        is_of_policy
    });
    part
}

/// The figure of record is of the normal policy, and that under fifo is told beside. Where others
/// kept the normal rings from the CPU, that under fifo comes first.
fn headline_of_both(normal: &RingRecord, under_fifo: &RingRecord) -> MarkedText {
    let is_known = |record: &RingRecord| smallest_switch(record).is_some_and(|of| of.is_ok());
    match (is_known(normal), smallest_switch(under_fifo)) {
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
    let rings = record.cases.iter().filter_map(switch);
    let (_, estimate) = rings.min_by_key(|(of, _)| of.case.members)?;
    let answer =
        || estimate.answer_cost().map_or_else(|_| cost(&estimate), |of| of.time_and_bound());
    Some(estimate.quote_cost().map_err(|_| answer()))
}

/// Whether rings differ in nothing but their size: then the sentence itself names their policy.
fn is_one_setting(record: &RingRecord) -> bool {
    let rings = record.cases.iter().filter(|of| of.case.members > 1);
    let settings = rings.map(|of| Case { members: 1, ..of.case.clone() });
    each_once(settings).len() == 1
}

fn headline_of_one(record: &RingRecord) -> RingAnswer {
    let rings = || record.cases.iter().filter(|of| of.case.members > 1);
    let links = each_once(rings().map(|of| &of.case.link));
    let places = each_once(rings().map(|of| &of.case.placement));
    let states = each_once(rings().map(|of| of.case.state));
    if links.len() > 1 {
        let is_whole = unfinished(record.end.as_ref()).is_none();
        let cheapest = cheapest(&record.cases, is_whole).map(RingAnswer::new);
        return cheapest.unwrap_or_else(|| not_measured(record));
    }
    if places.len() > 1 {
        return by_setting(record, |case| match case.placement.relation() {
            Some(relation) => format!("between {}", relation.in_words()),
            None => "on one CPU".to_string(),
        });
    }
    if states.len() > 1 {
        return by_setting(record, |case| {
            let state = case.state.map_or("no registers", |state| state.name());
            format!("with registers {state}")
        });
    }
    let mut answer = by_size(record);
    answer.rest += &jump::sentence(record);
    answer
}

/// `A switch costs 1.54 us (1.52 to 1.57), 5,650 cycles at 3.69 GHz, with 2 processes, 2.4 us with
/// 64: it grows with the logarithm of their number.`
fn by_size(record: &RingRecord) -> RingAnswer {
    let mut rings: Vec<(&CaseSummary, Estimate)> = record.cases.iter().filter_map(switch).collect();
    rings.sort_by_key(|(of, _)| of.case.members);
    let Some((smallest, own)) = rings.first() else { return not_measured(record) };
    let answer = |(of, cost): &(_, Estimate)| Some((*of, cost.answer_cost().ok()?));
    let known: Vec<(&CaseSummary, BestEstimate)> = rings.iter().filter_map(answer).collect();
    let setting = setting(&smallest.case);
    let with = members(&smallest.case);
    let Some((first, least)) = known.first() else {
        let policy = comparison::under_policy(smallest.case.policy);
        let what = format!("What a switch costs with {with}{setting}{policy}: ");
        return RingAnswer::new(marked![what, marked_cost(own)]);
    };
    let cycles = match first.cycles_in_words() {
        Some(cycles) => format!(", {cycles},"),
        None if first.case.policy == Policy::Other => String::new(),
        None => ",".to_string(),
    };
    let policy = comparison::under_policy(first.case.policy);
    let beside = least.is_beside_others().then(|| not_alone::beside_words(record));
    let beside = beside.unwrap_or_default();
    let mut words = marked![
        "A switch costs ",
        least.marked_time_and_bound(),
        format!("{policy}{cycles} with {}{beside}", members(&first.case))
    ];
    let open = own.answer_cost().err();
    let open = open.map_or(String::new(), |why| format!("; with {with}: {}", why.with_time_unit()));
    let most = known.last().filter(|_| known.len() > 1);
    let most = most.map_or(String::new(), |(of, most)| {
        // Of another kind it is no growth: its interval says how much it is worth.
        let is_alike = most.mark() == least.mark();
        let time = if is_alike { most.brief_time() } else { most.time() };
        format!(", {time} with {}", of.case.members)
    });
    let law = record.found.scaling.first().filter(|_| known.len() > 1);
    let law = law.and_then(|series| series.law.growth_in_words());
    let law = law.map_or(String::new(), |law| format!(": {law}"));
    words.push(format!("{most}{setting}{law}{open}"));
    RingAnswer::new(words)
}

/// A ring of several with what its switch costs.
fn switch(of: &CaseSummary) -> Option<(&CaseSummary, Estimate)> {
    Some((of, of.ns_per_switch_above_solo.filter(|_| of.case.members > 1)?))
}

/// `2 processes`.
pub(super) fn members(case: &Case) -> String {
    let noun = match case.kind {
        Kind::Thread => "thread",
        Kind::Process if case.members == 1 => "process",
        Kind::Process => return format!("{} processes", case.members),
    };
    counted(case.members as usize, noun)
}

/// What of the setting is not the default and changes the answer.
fn setting(case: &Case) -> String {
    let work = case.work.map(|work| format!(" that walk {} each", words::bytes(work.bytes)));
    let link = (case.link != "pipe").then(|| format!(" by {}", case.link));
    [work, link].into_iter().flatten().collect()
}

/// What a switch costs in each of several settings, of the smallest ring.
fn by_setting(record: &RingRecord, name: impl Fn(&Case) -> String) -> RingAnswer {
    let smallest = record.cases.iter().map(|of| of.case.members).filter(|many| *many > 1).min();
    let (mut known, mut open) = (Vec::new(), Vec::new());
    for (of, cost) in record.cases.iter().filter_map(switch) {
        match cost.answer_cost() {
            _ if Some(of.case.members) != smallest => {}
            Ok(cost) => known.push(marked![cost.marked_time(), " ", name(&of.case)]),
            Err(why) => open.push(format!("{}: {}", name(&of.case), why.with_time_unit())),
        }
    }
    let open = open.join("; ");
    match (known.is_empty(), open.is_empty()) {
        (true, true) => not_measured(record),
        (true, false) => RingAnswer::new(format!("What a switch costs {open}")),
        (false, is_known) => {
            let mut words = marked!["A switch costs ", MarkedText::join(known, ", ")];
            if !is_known {
                words.push(format!("; {open}"));
            }
            RingAnswer::new(words)
        }
    }
}

/// The link with the cheapest hop, which is all that waking another costs: send, wake, switch,
/// receive. And which others it is not told apart from. Of a run that is not whole no link is
/// called the cheapest. A sentence without its full stop.
pub(crate) fn cheapest<'a>(
    cases: impl IntoIterator<Item = &'a CaseSummary> + Clone,
    is_whole: bool,
) -> Option<MarkedText> {
    let sizes = cases.clone().into_iter().map(|of| of.case.members);
    let smallest = sizes.filter(|many| *many > 1).min()?;
    let rings = cases.into_iter().filter(|of| of.case.members == smallest);
    let all: Vec<(&CaseSummary, Estimate)> =
        rings.filter_map(|of| Some((of, of.ns_per_hop?))).collect();
    let quoted = |(of, hop): &(_, Estimate)| Some((*of, hop.quote_cost().ok()?));
    let mut hops: Vec<(&CaseSummary, QuotedFigure)> = all.iter().filter_map(quoted).collect();
    if is_whole {
        hops.sort_by(|(_, one), (_, other)| one.value().total_cmp(&other.value()));
    }
    let Some(((best, hop), others)) = hops.split_first() else {
        let (of, hop) = all.first()?;
        let link = &of.case.link;
        return Some(match hop.answer_cost() {
            Ok(answer) => marked![
                format!("A hop by {link} takes "),
                answer.marked_time(),
                "; links are not ranked."
            ],
            Err(why) => format!("What a hop by {link} costs: {}.", why.with_time_unit()).into(),
        });
    };
    let switch = best.ns_per_switch_above_solo.and_then(|cost| cost.answer_cost().ok());
    let part =
        switch.map_or(String::new(), |cost| format!(", {} of it the switch", cost.brief_time()));
    let (link, time, left) = (&best.case.link, hop.marked_time(), all.len() - hops.len());
    if !is_whole || (others.is_empty() && left > 0) {
        let part = format!("{part}; links are not ranked");
        return Some(marked![format!("A hop by {link} takes "), time, part]);
    }
    let left = match left {
        0 => String::new(),
        1 => "; 1 link is not ranked".to_string(),
        many => format!("; {many} links are not ranked"),
    };
    let told = apart(hop, others);
    Some(marked![format!("Cheapest is {link}: "), time, format!(" a hop{part}{told}{left}")])
}

/// Whether the next link is dearer, or which are not told apart from the cheapest.
fn apart(hop: &QuotedFigure, others: &[(&CaseSummary, QuotedFigure)]) -> String {
    let is_alike = |(_, other): &&(&CaseSummary, QuotedFigure)| !hop.differs_from(other);
    let alike: Vec<&str> = others.iter().filter(is_alike).map(|(of, _)| &*of.case.link).collect();
    match (&alike[..], others.first()) {
        ([], Some((next, other))) => {
            let more = words::times(other.value() / hop.value());
            format!("; next is {}, {more} as much", next.case.link)
        }
        ([], None) => String::new(),
        (names, _) if names.len() == others.len() => "; no difference is resolved".to_string(),
        (names, _) => format!("; not resolved from {}", names.join(", ")),
    }
}

/// Why there is no answer.
fn not_measured(record: &RingRecord) -> RingAnswer {
    if record.cases.iter().all(|of| of.case.members == 1) {
        let hop = record.cases.first().and_then(|of| of.ns_per_hop);
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
    if record.cases.iter().any(|of| of.does_not_switch) {
        RingAnswer::new("These rings do not switch: the cost of a hop is not that of a switch")
    } else {
        RingAnswer::new("What a switch costs was not measured")
    }
}
