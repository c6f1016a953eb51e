//! What is asked of a run's samples while it goes on: how precise they are, and which cases need more of them.

use crate::levels::with_shared_level;
use crate::pairing::Grouped;
use crate::plan::Plan;
use crate::run::Failure;
use crate::sample::{Sample, rings, trials};
use crate::speed::{CaseSlices, FEWEST_ROUNDS};
use crate::summary::{summaries, widths};
use crate::trial::{self, ByCase};

/// The widest relative half-width among the cases that are still measured; absent as long as one of them has no
/// interval.
pub fn worst_precision(plan: &Plan, samples: &[Sample], failures: &[Failure]) -> Option<f64> {
    let plan = &with_shared_level(plan, samples);
    let of_rings = summaries(plan, &Grouped::new(plan, rings(samples)), failures);
    let by_case = ByCase::new(plan, trials(samples));
    let all =
        widths(&of_rings).chain(trial::widths(&by_case, failures)).collect::<Option<Vec<f64>>>()?;
    all.into_iter().reduce(f64::max)
}

/// Numbers of the cases that have too few clean slices for a figure at full speed, though the CPU's speed was
/// looked at: more rounds of these may give one. Rings first.
pub fn lacking(plan: &Plan, samples: &[Sample]) -> Vec<usize> {
    let plan = &with_shared_level(plan, samples);
    let grouped = Grouped::new(plan, rings(samples));
    let by_case = ByCase::new(plan, trials(samples));
    let of_rings = plan.rings().map(|(case, _)| case);
    let of_rings =
        of_rings.filter(|case| grouped.is_judged(*case) && !grouped.has_full_speed(*case));
    let of_trials = plan.trials().map(|(case, _)| case);
    of_rings.chain(of_trials.filter(|case| trial::lacks_clean(&by_case, *case))).collect()
}

/// Numbers of the cases that the coming round, of that number, is for, where it is not for all: of working sets,
/// whose intervals differ most, the wider half, but every fourth round all. Those that can mostly not be judged
/// take the most time and are left out, unless it is all.
pub fn focus(plan: &Plan, samples: &[Sample], round: u32) -> Option<Vec<usize>> {
    if plan.batching.ring.triples.is_none() || round < FEWEST_ROUNDS || round.is_multiple_of(4) {
        return None;
    }
    let grouped = Grouped::new(plan, rings(samples));
    let width = |case: usize| {
        let estimate = grouped.above_solo(case, 0);
        estimate.and_then(|estimate| estimate.relative_half_width()).unwrap_or(f64::INFINITY)
    };
    let all: Vec<usize> = plan.rings().map(|(case, _)| case).collect();
    let is_judged = |case: &usize| grouped.slices(*case).is_some_and(CaseSlices::is_mostly_judged);
    let mut judged: Vec<usize> = all.iter().copied().filter(is_judged).collect();
    if judged.is_empty() {
        judged = all;
    }
    let mut widths: Vec<(usize, f64)> =
        judged.into_iter().map(|case| (case, width(case))).collect();
    widths.sort_by(|one, other| other.1.total_cmp(&one.1));
    widths.truncate(widths.len().div_ceil(2));
    Some(widths.into_iter().map(|(case, _)| case).collect())
}
