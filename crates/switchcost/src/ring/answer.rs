//! What a run of rings answers, in a sentence or two.

use model::curve;
use model::estimate::Estimate;
use model::not_alone;
use model::record::Record;
use model::ring::{Case, Kind};
use model::scaling::{Shape, Verdict};
use model::summary::CaseSummary;
use model::words;

use super::jump;
use crate::terminal::{counted, time_words};
use crate::values::each_once;

/// The first line of a report.
pub(crate) fn headline(record: &Record) -> String {
    if let Some(words) = not_alone::in_words(record) {
        return words;
    }
    let rings = || record.cases.iter().filter(|of| of.case.members > 1);
    let links = each_once(rings().map(|of| &of.case.link));
    let places = each_once(rings().map(|of| &of.case.placement));
    let states = each_once(rings().map(|of| of.case.state));
    if links.len() > 1 {
        return cheapest(&record.cases).unwrap_or_else(|| not_measured(record));
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

/// `A switch costs 1.54 us (1.52 to 1.57) with 2 processes, 2.4 us with 64: it grows with the logarithm of
/// their number.`
fn by_size(record: &Record) -> String {
    let cost = |of: &CaseSummary| of.ns_per_switch_above_solo;
    let mut rings: Vec<&CaseSummary> =
        record.cases.iter().filter(|of| of.case.members > 1 && cost(of).is_some()).collect();
    rings.sort_by_key(|of| of.case.members);
    let (Some(first), Some(last)) = (rings.first(), rings.last()) else {
        return not_measured(record);
    };
    let Some(own) = cost(first) else { return not_measured(record) };
    let setting = setting(&first.case);
    let words = format!("A switch costs {} with {}", time_words(&own), members(&first.case));
    if rings.len() == 1 {
        return format!("{words}{setting}.");
    }
    let most = cost(last).map_or(String::new(), |cost| words::time(cost.value));
    let law = record.scaling.first().and_then(|series| growth(&series.law));
    let law = law.map_or(String::new(), |law| format!(": {law}"));
    format!("{words}, {most} with {}{setting}{law}.", last.case.members)
}

/// How the cost of a switch depends on the number of members; nothing where that is not known.
fn growth(law: &Verdict) -> Option<String> {
    let how = match law.shape()? {
        Shape::Constant => "it does not depend on their number".to_string(),
        Shape::Logarithmic => "it grows with the logarithm of their number".to_string(),
        Shape::Linear => "it grows linearly with their number".to_string(),
        Shape::Saturating | Shape::Sigmoid => "it rises to a plateau".to_string(),
        Shape::Unfinished => "it follows a smooth curve without a knee".to_string(),
        Shape::Slowing => "it grows ever more slowly with their number".to_string(),
        Shape::Quadratic => "it grows with the square of their number".to_string(),
        _ => {
            let knees = law.knees.iter().map(|knee| match (knee.low_members, knee.high_members) {
                (low, high) if high.saturating_sub(low) <= 1 => format!("at {high}"),
                (low, high) => format!("between {low} and {high}"),
            });
            let steps = law.knees.iter().all(|knee| knee.kind == curve::Kind::Step);
            let what = if steps { "steps" } else { "grows faster" };
            format!("it {what} {}", knees.collect::<Vec<_>>().join(" and "))
        }
    };
    Some(how)
}

fn members(case: &Case) -> String {
    counted(case.members as usize, if case.kind == Kind::Thread { "thread" } else { "process" })
        .replace("processs", "processes")
}

/// What of the setting is not the default and changes the answer.
fn setting(case: &Case) -> String {
    let work = case.work.map(|work| format!(" that walk {} each", words::bytes(work.bytes)));
    let link = (case.link != "pipe").then(|| format!(" by {}", case.link));
    let policy = (case.policy.name() != "other").then(|| format!(", policy {}", case.policy));
    [work, link, policy].into_iter().flatten().collect()
}

/// What a switch costs in each of several settings, of the smallest ring.
fn by_setting(record: &Record, name: impl Fn(&Case) -> String) -> String {
    let smallest = record.cases.iter().map(|of| of.case.members).filter(|many| *many > 1).min();
    let rings = record.cases.iter().filter(|of| Some(of.case.members) == smallest);
    let words = rings.filter_map(|of| {
        Some(format!("{} {}", time_words(&of.ns_per_switch_above_solo?), name(&of.case)))
    });
    match words.collect::<Vec<_>>() {
        all if all.is_empty() => not_measured(record),
        all => format!("A switch costs {}.", all.join(", ")),
    }
}

/// The link with the cheapest hop, which is all that waking another costs: send, wake, switch, receive. And
/// which others it is not told apart from.
pub(crate) fn cheapest<'a>(
    cases: impl IntoIterator<Item = &'a CaseSummary> + Clone,
) -> Option<String> {
    let sizes = cases.clone().into_iter().map(|of| of.case.members);
    let smallest = sizes.filter(|many| *many > 1).min()?;
    let rings = cases.into_iter().filter(|of| of.case.members == smallest);
    let mut hops: Vec<(&CaseSummary, Estimate)> =
        rings.filter_map(|of| Some((of, of.ns_per_hop?))).collect();
    hops.sort_by(|(_, one), (_, other)| one.value.total_cmp(&other.value));
    let (first, others) = hops.split_first()?;
    let (best, hop) = first;
    let is_alike = |(_, other): &&(&CaseSummary, Estimate)| !differ(hop, other);
    let alike: Vec<&str> = others.iter().filter(is_alike).map(|(of, _)| &*of.case.link).collect();
    let switch = best.ns_per_switch_above_solo.filter(|cost| cost.resolved);
    let part = switch
        .map_or(String::new(), |cost| format!(", {} of it the switch", words::time(cost.value)));
    let told = match (&alike[..], others.first()) {
        ([], Some((next, other))) => {
            let more = words::times(other.value / hop.value);
            format!("next is {}, {more} as much", next.case.link)
        }
        ([], None) => String::new(),
        (names, _) if names.len() == others.len() => "no difference is resolved".to_string(),
        (names, _) => format!("not resolved from {}", names.join(", ")),
    };
    let (link, hop) = (&best.case.link, time_words(hop));
    Some(format!("Cheapest is {link}: {hop} a hop{part}; {told}."))
}

/// Whether the difference of two costs of one run is resolved (95 %).
fn differ(one: &Estimate, other: &Estimate) -> bool {
    let squares = one.standard_error.zip(other.standard_error).map(|(a, b)| a * a + b * b);
    squares.is_some_and(|squares| (one.value - other.value).abs() > 1.96 * squares.sqrt())
}

/// Why there is no answer.
fn not_measured(record: &Record) -> String {
    if record.cases.iter().all(|of| of.case.members == 1) {
        let hop = record.cases.first().and_then(|of| of.ns_per_hop);
        return hop.map_or("Nothing was measured.".to_string(), |hop| {
            format!("A ring of one takes {} a hop; it has no switch.", time_words(&hop))
        });
    }
    match record.cases.iter().any(|of| of.does_not_switch) {
        true => "These rings do not switch: what a hop costs there is no switch.".to_string(),
        false => "What a switch costs was not measured.".to_string(),
    }
}
