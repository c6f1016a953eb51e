//! What is asked of a run's samples while it goes on: how precise they are, and which cases need
//! more of them.

use crate::case::Sample;
use crate::estimate::{Estimate, widest};
use crate::findings;
use crate::plan::{FEWEST_ROUNDS, Plan};
use crate::run::Failure;
use crate::speed::CaseSlices;
use crate::summary::{summaries, widths};
use crate::table::Table;

/// Whether the precision is looked at after `rounds` rounds. Looks are spaced by half as much
/// again (8, 12, 18, 27, ...): a rule asked after every round stops too soon by luck.
pub fn is_look(rounds: u32) -> bool {
    let looks = std::iter::successors(Some(FEWEST_ROUNDS), |look| Some(look + look.div_ceil(2)));
    looks.take_while(|look| *look <= rounds).last() == Some(rounds)
}

/// The widest relative half-width among the cases that are still measured; absent as long as one of
/// them has no interval.
pub fn worst_precision(plan: &Plan, samples: &[Sample], failures: &[Failure]) -> Option<f64> {
    let table = &Table::new(plan, samples);
    widest(widths(&summaries(table, failures)).chain(findings::widths(table, failures)))
}

/// What a run says so far, for whoever waits for it: the cost of a switch of its smallest ring, or
/// what its first trial is about. Absent until that is measured; without an interval in the first
/// rounds.
pub fn figure(plan: &Plan, samples: &[Sample]) -> Option<Estimate> {
    let table = &Table::new(plan, samples);
    let of_two = plan.rings().filter(|(_, case)| case.members > 1);
    match of_two.min_by_key(|(number, case)| (case.members, *number)) {
        Some((ring, _)) => table.above_solo(ring, 0),
        None => findings::figure_ns(table, plan.trials().next()?.0),
    }
}

/// Numbers of the cases that have not been seen at full speed, not even in few rounds, though the
/// CPU's speed was looked at: more rounds of these may show it. Rings first.
pub fn lacking(plan: &Plan, samples: &[Sample]) -> Vec<usize> {
    let table = &Table::new(plan, samples);
    let lacks = |case: &usize| table.is_judged(*case) && !table.has_seen_full_speed(*case);
    let of_rings = plan.rings().map(|(case, _)| case).filter(lacks);
    let of_trials = plan.trials().map(|(case, _)| case);
    of_rings.chain(of_trials.filter(|case| findings::lacks_clean(table, *case))).collect()
}

/// Numbers of the cases that the coming round, of that number, is for, where it is not for all: of
/// working sets, whose intervals differ most, the wider half, but every fourth round all. Those
/// that can mostly not be judged take the most time and are left out, unless it is all.
pub fn focus(plan: &Plan, samples: &[Sample], round: u32) -> Option<Vec<usize>> {
    if plan.batching.ring.triples.is_none() || round < FEWEST_ROUNDS || round % 4 == 0 {
        return None;
    }
    let table = Table::new(plan, samples);
    let width = |case: usize| {
        let estimate = table.above_solo(case, 0);
        estimate.as_ref().and_then(Estimate::precision).unwrap_or(f64::INFINITY)
    };
    let all = || plan.rings().map(|(case, _)| case);
    let is_judged = |case: &usize| table.slices(*case).is_some_and(CaseSlices::is_mostly_judged);
    let any = !all().any(|case| is_judged(&case));
    let judged = all().filter(|case| any || is_judged(case));
    let mut widths: Vec<(usize, f64)> = judged.map(|case| (case, width(case))).collect();
    widths.sort_by(|one, other| other.1.total_cmp(&one.1));
    widths.truncate(widths.len().div_ceil(2));
    Some(widths.into_iter().map(|(case, _)| case).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_spaced() {
        let looks: Vec<u32> = (0..50).filter(|rounds| is_look(*rounds)).collect();
        assert_eq!(looks, [8, 12, 18, 27, 41]);
    }
}
