//! What is asked of a run's samples while it goes on: how precise they are, and which cases need
//! more of them.

use crate::case::Sample;
use crate::estimate::{Estimate, widest};
use crate::findings;
use crate::plan::{FEWEST_ROUNDS, Plan};
use crate::ring::{self, Policy};
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
/// CPU's speed was looked at: more rounds of these may show it. Rings first. Of a ring that has its
/// answer under SCHED_FIFO, as others keep the normal one from the CPU, nothing is lacking.
pub fn lacking(plan: &Plan, samples: &[Sample]) -> Vec<usize> {
    let table = &Table::new(plan, samples);
    let lacks = |case: &usize| table.is_judged(*case) && !table.has_seen_full_speed(*case);
    let has_twin =
        |case: &usize| fifo_twin(plan, *case).is_some_and(|twin| table.has_seen_full_speed(twin));
    let of_rings = plan.rings().map(|(case, _)| case).filter(|case| lacks(case) && !has_twin(case));
    let of_trials = plan.trials().map(|(case, _)| case);
    of_rings.chain(of_trials.filter(|case| findings::lacks_clean(table, *case))).collect()
}

/// Returns the number of the same ring under SCHED_FIFO, which a plan has where the CPU was busy.
fn fifo_twin(plan: &Plan, case: usize) -> Option<usize> {
    let normal = plan.ring(case).filter(|ring| ring.policy == Policy::Other)?;
    let twin = ring::Case { policy: Policy::Fifo, ..normal.clone() };
    plan.find_ring(|ring| *ring == twin)
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
    use crate::run::Run;
    use crate::speed::cut;

    /// A run whose rings all lack clean slices, with the same under fifo beside them, which do not.
    fn with_twins() -> Run {
        let mut run = Run::parse(include_str!("../tests/fixtures/run-v1.jsonl")).unwrap();
        let cases = run.header.plan.cases.len();
        let mut rings: Vec<ring::Sample> = crate::case::rings(&run.samples).cloned().collect();
        let again =
            |sample: &ring::Sample| ring::Sample { round: sample.round + 6, ..sample.clone() };
        rings.extend(rings.iter().map(again).collect::<Vec<_>>());
        let slices = |sample: &ring::Sample, is_clean: bool| {
            Sample::Ring(cut(sample.clone(), sample.laps.min(10), |_| is_clean))
        };
        let normal = rings.iter().map(|sample| slices(sample, false));
        let fifo = rings.iter().map(|sample| slices(sample, true));
        let fifo = fifo.map(|sample| {
            let case = sample.case() + cases;
            sample.of_case(case)
        });
        run.samples = normal.chain(fifo).collect();
        let mut twins = run.header.plan.cases.clone();
        for twin in twins.iter_mut().filter_map(crate::case::Case::ring_mut) {
            twin.policy = Policy::Fifo;
        }
        run.header.plan.cases.extend(twins);
        run
    }

    #[test]
    fn nothing_is_lacking_of_a_ring_that_has_its_answer_under_fifo() {
        let lacking = |run: &Run| lacking(&run.header.plan, &run.samples);
        let run = with_twins();
        assert_eq!(lacking(&run), Vec::<usize>::new());
        // The same without the twins.
        let mut alone = run.clone();
        for case in alone.header.plan.cases.iter_mut().filter_map(crate::case::Case::ring_mut) {
            case.priority = (case.policy == Policy::Fifo).then_some(2);
        }
        let cases = run.header.plan.cases.len();
        assert_eq!(lacking(&alone), (0..cases / 2).collect::<Vec<_>>());
    }

    #[test]
    fn looks_are_spaced() {
        let looks: Vec<u32> = (0..50).filter(|rounds| is_look(*rounds)).collect();
        assert_eq!(looks, [8, 12, 18, 27, 41]);
    }
}
