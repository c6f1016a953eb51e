//! What a run of costs by working set answers, in a sentence.

use model::cost::{Cost, Curve};
use model::estimate::Estimate;
use model::quote::cost as time_words;
use model::record::Record;
use model::regions::{Axis, Region};
use model::ring::{Case, Kind, Walk, Work};
use model::summary_line::with_work;
use model::words;

/// `A switch costs 1.55 us (1.52 to 1.58) without a working set, 2.4 us with 256 KiB: combined working sets exceed the
/// cache from 192 KiB (128 to 256 KiB) on.`
pub(crate) fn headline(record: &Record, cost: &Cost) -> String {
    let direct = cost.direct.iter().find_map(|of| Some((of.members, of.cost_ns?)));
    let with = with_work(record);
    let members = direct.map(|(members, _)| members).or(with.map(|(of, ..)| of.members));
    let direct = direct.map(|(_, c1)| format!("{} without a working set", time_words(&c1)));
    let costs: Vec<String> = match (direct, with) {
        (Some(direct), with) => {
            let beside =
                with.map(|(of, array, c2)| format!("{} with {}", about(&c2), size(of, array)));
            std::iter::once(direct).chain(beside).collect()
        }
        (None, Some((of, array, c2))) => {
            vec![format!("{} with {}", time_words(&c2), size(of, array))]
        }
        (None, None) => Vec::new(),
    };
    let (Some(members), false) = (members, costs.is_empty()) else {
        return "What a switch costs was not measured.".to_string();
    };
    let first = with.map(|(of, ..)| of);
    let beyond = first.into_iter().chain(&cost.curves).find_map(beyond_the_cache);
    let beyond = beyond.map_or(String::new(), |words| format!(": {words}"));
    format!(
        "A switch{} costs {}{}{beyond}.",
        ring(record, members),
        costs.join(", "),
        policy(record)
    )
}

/// The figure alone, which is no more than about right without an interval.
fn about(cost: &Estimate) -> String {
    let time = words::time(cost.value);
    if cost.resolved { time } else { format!("about {time}") }
}

/// `256 KiB`, or how many pages have one line touched.
fn size(curve: &Curve, array_bytes: u64) -> String {
    match curve.work.walk {
        Walk::Whole | Walk::Chase => words::bytes(array_bytes),
        Walk::Sparse => {
            let pages = Work { bytes: array_bytes, ..curve.work }.touches();
            format!("a line in each of {}", Axis::PAGES.size(pages))
        }
    }
}

/// Where the working sets of a curve's members do not fit together any more.
fn beyond_the_cache(curve: &Curve) -> Option<String> {
    let regions = curve.outcome.regions()?;
    regions.of(Region::TogetherTooLarge)?;
    let place = regions.breaks.breaks.first()?.place(&regions.breaks.axis);
    Some(format!("{} from {place} on", Region::TogetherTooLarge.in_words()))
}

/// The ring, where it is not one of two processes.
fn ring(record: &Record, members: u32) -> String {
    let kind = record.header.plan.ring(0).map_or(Kind::Process, |case| case.kind);
    match (members, kind) {
        (2, Kind::Process) => String::new(),
        (_, Kind::Process) => format!(" among {members} processes"),
        (_, Kind::Thread) => format!(" among {members} threads"),
    }
}

/// The policy, where it is not the usual one.
fn policy(record: &Record) -> String {
    let policy = record.header.plan.ring(0).map(|case: &Case| case.policy);
    let policy = policy.filter(|policy| policy.name() != "other");
    policy.map_or(String::new(), |policy| format!(", policy {policy}"))
}
