//! What a run of rings answers, in a sentence or two.

use model::estimate::Estimate;
use model::not_alone;
use model::quote::{Answer, Quoted, cost};
use model::record::RingRecord;
use model::ring::{Case, Kind, Policy};
use model::run::unfinished;
use model::summary::CaseSummary;
use model::words;

use super::comparison;
use super::jump;
use crate::base::values::each_once;
use crate::present::terminal::counted;

/// The first line of a report.
pub(crate) fn headline(record: &RingRecord) -> String {
    match both_policies(record) {
        Some([normal, under_fifo]) => headline_of_both(&normal, &under_fifo),
        None => headline_of_one(record),
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
fn headline_of_both(normal: &RingRecord, under_fifo: &RingRecord) -> String {
    let is_known = |record: &RingRecord| smallest_switch(record).is_some_and(|of| of.is_ok());
    match (is_known(normal), smallest_switch(under_fifo)) {
        (true, Some(Ok(cost))) if is_one_setting(under_fifo) => {
            let words = headline_of_one(normal);
            let (first, rest) = first_sentence(&words);
            format!("{first}; {} under fifo.{rest}", words::time(cost.value()))
        }
        (true, Some(Ok(_))) => {
            let (normal, words) = (headline_of_one(normal), headline_of_one(under_fifo));
            format!("{normal} Under fifo: {}", lowercase_first(&words))
        }
        (true, _) | (false, None) => headline_of_one(normal),
        (false, Some(_)) => {
            let words = headline_of_one(under_fifo);
            let (first, rest) = first_sentence(&words);
            let why = match smallest_switch(normal) {
                Some(Err(why)) => why,
                _ => "not measured".to_string(),
            };
            let first = if is_one_setting(under_fifo) {
                first.to_string()
            } else {
                format!("Under fifo: {}", lowercase_first(first))
            };
            format!("{first}; with the normal policy {why}.{rest}")
        }
    }
}

/// Returns the cost of a switch in the smallest ring of a record, or why there is none in words.
fn smallest_switch(record: &RingRecord) -> Option<Result<Quoted, String>> {
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

fn lowercase_first(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect())
}

/// Splits after the first sentence, without its full stop.
fn first_sentence(words: &str) -> (&str, &str) {
    match words.find(". ") {
        Some(end) => (&words[..end], &words[end + 1..]),
        None => (words.strip_suffix('.').unwrap_or(words), ""),
    }
}

fn headline_of_one(record: &RingRecord) -> String {
    let rings = || record.cases.iter().filter(|of| of.case.members > 1);
    let links = each_once(rings().map(|of| &of.case.link));
    let places = each_once(rings().map(|of| &of.case.placement));
    let states = each_once(rings().map(|of| of.case.state));
    if links.len() > 1 {
        let is_whole = unfinished(record.end.as_ref()).is_none();
        return cheapest(&record.cases, is_whole).unwrap_or_else(|| not_measured(record));
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
    by_size(record) + &jump::sentence(record)
}

/// `A switch costs 1.54 us (1.52 to 1.57), 5,650 cycles at 3.69 GHz, with 2 processes, 2.4 us with
/// 64: it grows with the logarithm of their number.`
fn by_size(record: &RingRecord) -> String {
    let mut rings: Vec<(&CaseSummary, Estimate)> = record.cases.iter().filter_map(switch).collect();
    rings.sort_by_key(|(of, _)| of.case.members);
    let Some((smallest, own)) = rings.first() else { return not_measured(record) };
    let answer = |(of, cost): &(_, Estimate)| Some((*of, cost.answer_cost().ok()?));
    let known: Vec<(&CaseSummary, Answer)> = rings.iter().filter_map(answer).collect();
    let setting = setting(&smallest.case);
    let with = members(&smallest.case);
    let Some((first, least)) = known.first() else {
        let policy = comparison::under_policy(smallest.case.policy);
        return format!("What a switch costs with {with}{setting}{policy}: {}.", cost(own));
    };
    let cycles = match first.cycles_in_words() {
        Some(cycles) => format!(", {cycles},"),
        None if first.case.policy == Policy::Other => String::new(),
        None => ",".to_string(),
    };
    let policy = comparison::under_policy(first.case.policy);
    let beside = least.is_beside_others().then(|| not_alone::beside_words(record));
    let words = format!(
        "A switch costs {}{policy}{cycles} with {}{}",
        least.time_and_bound(),
        members(&first.case),
        beside.unwrap_or_default()
    );
    let open = own.answer_cost().err();
    let open = open.map_or(String::new(), |why| format!("; with {with}: {}", why.of_time()));
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
    format!("{words}{most}{setting}{law}{open}.")
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
fn by_setting(record: &RingRecord, name: impl Fn(&Case) -> String) -> String {
    let smallest = record.cases.iter().map(|of| of.case.members).filter(|many| *many > 1).min();
    let (mut known, mut open) = (Vec::new(), Vec::new());
    for (of, cost) in record.cases.iter().filter_map(switch) {
        match cost.answer_cost() {
            _ if Some(of.case.members) != smallest => {}
            Ok(cost) => known.push(format!("{} {}", cost.time(), name(&of.case))),
            Err(why) => open.push(format!("{}: {}", name(&of.case), why.of_time())),
        }
    }
    match (&known[..], open.join("; ")) {
        ([], open) if open.is_empty() => not_measured(record),
        ([], open) => format!("What a switch costs {open}."),
        (known, open) if open.is_empty() => format!("A switch costs {}.", known.join(", ")),
        (known, open) => format!("A switch costs {}; {open}.", known.join(", ")),
    }
}

/// The link with the cheapest hop, which is all that waking another costs: send, wake, switch,
/// receive. And which others it is not told apart from. Of a run that is not whole no link is
/// called the cheapest.
pub(crate) fn cheapest<'a>(
    cases: impl IntoIterator<Item = &'a CaseSummary> + Clone,
    is_whole: bool,
) -> Option<String> {
    let sizes = cases.clone().into_iter().map(|of| of.case.members);
    let smallest = sizes.filter(|many| *many > 1).min()?;
    let rings = cases.into_iter().filter(|of| of.case.members == smallest);
    let all: Vec<(&CaseSummary, Estimate)> =
        rings.filter_map(|of| Some((of, of.ns_per_hop?))).collect();
    let quoted = |(of, hop): &(_, Estimate)| Some((*of, hop.quote_cost().ok()?));
    let mut hops: Vec<(&CaseSummary, Quoted)> = all.iter().filter_map(quoted).collect();
    if is_whole {
        hops.sort_by(|(_, one), (_, other)| one.value().total_cmp(&other.value()));
    }
    let Some(((best, hop), others)) = hops.split_first() else {
        let (of, hop) = all.first()?;
        let link = &of.case.link;
        return Some(match hop.answer_cost() {
            Ok(answer) => format!("A hop by {link} takes {}; links are not ranked.", answer.time()),
            Err(why) => format!("What a hop by {link} costs: {}.", why.of_time()),
        });
    };
    let switch = best.ns_per_switch_above_solo.and_then(|cost| cost.answer_cost().ok());
    let part =
        switch.map_or(String::new(), |cost| format!(", {} of it the switch", cost.brief_time()));
    let (link, time, left) = (&best.case.link, hop.time(), all.len() - hops.len());
    if !is_whole || (others.is_empty() && left > 0) {
        return Some(format!("A hop by {link} takes {time}{part}; links are not ranked."));
    }
    let left = match left {
        0 => String::new(),
        1 => "; 1 link is not ranked".to_string(),
        many => format!("; {many} links are not ranked"),
    };
    let told = apart(hop, others);
    Some(format!("Cheapest is {link}: {time} a hop{part}{told}{left}."))
}

/// Whether the next link is dearer, or which are not told apart from the cheapest.
fn apart(hop: &Quoted, others: &[(&CaseSummary, Quoted)]) -> String {
    let is_alike = |(_, other): &&(&CaseSummary, Quoted)| !hop.differs_from(other);
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
fn not_measured(record: &RingRecord) -> String {
    if record.cases.iter().all(|of| of.case.members == 1) {
        let hop = record.cases.first().and_then(|of| of.ns_per_hop);
        return match hop.map(|hop| hop.answer_cost()) {
            None => "Nothing was measured.".to_string(),
            Some(Ok(hop)) => {
                format!("A ring of one takes {} a hop; it has no switch.", hop.time())
            }
            Some(Err(why)) => {
                format!("Time of a hop of a ring of one: {}. It has no switch.", why.of_time())
            }
        };
    }
    match record.cases.iter().any(|of| of.does_not_switch) {
        true => "These rings do not switch: the cost of a hop is not that of a switch.".to_string(),
        false => "What a switch costs was not measured.".to_string(),
    }
}
