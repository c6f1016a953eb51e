//! Interim checks: how precise a running run is, and which cases need more rounds.
//!
//! A run stops when the widest interval is as narrow as asked, or when its time is up. A rule that
//! is checked after every round stops too early, at a lucky moment, so checks are spaced by half as
//! much again: after 8, 12, 18, 27, 41, ... rounds. Example of a run that asks for 1 %:
//!
//! - after 8 rounds, the rings of 2, 4 and 8 members are known to 0.8, 1.1 and 3 %: it goes on;
//! - after 12 rounds, to 0.7, 0.9 and 2.2 %. In a run of several experiments the first two may
//!   pause, so that the third gets their time; every fourth round has them again, as the machine
//!   changes. A solo ring goes on while the interval of one of its rings is too wide;
//! - after 27 rounds, to 0.6, 0.7 and 0.98 %: it stops. Checked after each round, it might have
//!   stopped at a lucky 0.99 % after 20, and stated an interval that covers less than 95 %.

use std::collections::BTreeSet;
use std::mem::{Discriminant, discriminant};
use std::ops::Range;

use rundata::case::Sample;
use rundata::experiment::CaseKinds;
use rundata::plan::{MIN_CLEAN_ROUNDS, Plan};
use rundata::ring::{self, Policy};
use rundata::run::Failure;
use rundata::trial::Trial;

use crate::estimate::{Estimate, widest};
use crate::findings;
use crate::parts::split;
use crate::speed::CaseSlices;
use crate::summary::{summaries, widths};
use crate::table::Table;

/// Returns whether the precision is checked after `rounds` rounds: after 8, 12, 18, 27, ...
pub fn is_interim_check(rounds: u32) -> bool {
    let mut check = MIN_CLEAN_ROUNDS;
    while check < rounds {
        check += check.div_ceil(2);
    }
    check == rounds
}

/// Returns the widest relative half-width among the cases that are still measured; absent as long as
/// one of them has no interval.
pub fn worst_precision(plan: &Plan, samples: &[Sample], failures: &[Failure]) -> Option<f64> {
    if plan.parts.is_empty() {
        let table = &Table::new(plan, samples);
        let summaries = summaries(table, failures);
        let ring_widths = widths(&summaries);
        return widest(ring_widths.chain(findings::widths(table, failures)));
    }
    let mut precisions = Vec::new();
    for ((plan, samples), (_, cases)) in split(plan, samples).iter().zip(plan.spans()) {
        let failed = failures_within(failures, &cases);
        // An experiment of which nothing can be measured does not keep the run going.
        if !(0..plan.cases.len()).all(|case| has_failed(&failed, case)) {
            precisions.push(worst_precision(plan, samples, &failed));
        }
    }
    widest(precisions.into_iter())
}

fn has_failed(failures: &[Failure], case: usize) -> bool {
    failures.iter().any(|failure| failure.case == case)
}

/// Returns the failures of these cases, numbered from the first of them.
fn failures_within(failures: &[Failure], cases: &Range<usize>) -> Vec<Failure> {
    let mut within = Vec::new();
    for failure in failures {
        if cases.contains(&failure.case) {
            within.push(Failure { case: failure.case - cases.start, ..failure.clone() });
        }
    }
    within
}

/// Returns the estimate that is shown while a run goes on: the cost of a switch of its smallest
/// ring, or the headline of its first trial. Absent until that is measured; without an interval in
/// the first rounds.
pub fn interim_estimate(plan: &Plan, samples: &[Sample]) -> Option<Estimate> {
    if !plan.parts.is_empty() {
        return split(plan, samples)
            .iter()
            .find_map(|(plan, samples)| interim_estimate(plan, samples));
    }
    let table = &Table::new(plan, samples);
    let rings = plan.rings().filter(|(_, case)| case.members > 1);
    match rings.min_by_key(|(number, case)| (case.members, *number)) {
        Some((ring, _)) => table.above_solo(ring, 0),
        None => findings::figure_ns(table, plan.trials().next()?.0),
    }
}

/// Returns the numbers of the cases whose speed was checked and that were not seen at full speed,
/// not even in few rounds: more rounds may show it. Rings come first. A ring that was seen at full
/// speed under SCHED_FIFO, where competing tasks wait, needs no more.
pub fn cases_without_full_speed(plan: &Plan, samples: &[Sample]) -> Vec<usize> {
    let mut lacking = Vec::new();
    if !plan.parts.is_empty() {
        for ((plan, samples), (_, cases)) in split(plan, samples).iter().zip(plan.spans()) {
            for case in cases_without_full_speed(plan, samples) {
                lacking.push(cases.start + case);
            }
        }
        return lacking;
    }
    let table = &Table::new(plan, samples);
    for (case, _) in plan.rings() {
        let twin = fifo_twin(plan, case);
        let twin_has_it = twin.is_some_and(|twin| table.has_seen_full_speed(twin));
        if table.is_judged(case) && !table.has_seen_full_speed(case) && !twin_has_it {
            lacking.push(case);
        }
    }
    for (case, _) in plan.trials() {
        if findings::lacks_clean(table, case) {
            lacking.push(case);
        }
    }
    lacking
}

/// Returns the number of the same ring under SCHED_FIFO, which a plan has where the CPU was busy.
fn fifo_twin(plan: &Plan, case: usize) -> Option<usize> {
    let normal = plan.ring(case).filter(|ring| ring.policy == Policy::Other)?;
    let twin = ring::RingCase { policy: Policy::Fifo, ..normal.clone() };
    plan.find_ring(|ring| *ring == twin)
}

/// Rounds from one to the next that have all cases of a run that otherwise has some of them.
const ALL_CASES_EVERY: u32 = 4;

/// Returns the numbers of the cases that round `round` measures, where these are not all: with
/// working sets, whose intervals differ most, the half with the wider ones, except in every fourth
/// round. Cases that can mostly not be judged take most time, and are left out unless all are such.
pub fn focused_cases(plan: &Plan, samples: &[Sample], round: u32) -> Option<Vec<usize>> {
    let has_triples = plan.batching.ring.triples.is_some();
    if !has_triples || round < MIN_CLEAN_ROUNDS || round % ALL_CASES_EVERY == 0 {
        return None;
    }
    let table = Table::new(plan, samples);
    let mut cases: Vec<usize> = plan.rings().map(|(case, _)| case).collect();
    if cases.iter().any(|case| is_mostly_judged(&table, *case)) {
        cases.retain(|case| is_mostly_judged(&table, *case));
    }
    let mut widths = Vec::new();
    for case in cases {
        let estimate = table.above_solo(case, 0);
        let width = estimate.as_ref().and_then(Estimate::precision).unwrap_or(f64::INFINITY);
        widths.push((case, width));
    }
    widths.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    widths.truncate(widths.len().div_ceil(2));
    Some(widths.into_iter().map(|(case, _)| case).collect())
}

fn is_mostly_judged(table: &Table, case: usize) -> bool {
    table.slices(case).is_some_and(CaseSlices::is_mostly_judged)
}

/// Returns the numbers of the cases that may pause: their intervals are as narrow as the plan asks
/// for, and no case that still needs samples takes its difference from theirs.
pub fn pausable_cases(plan: &Plan, samples: &[Sample]) -> BTreeSet<usize> {
    let mut pausable = BTreeSet::new();
    for ((plan, samples), (_, cases)) in split(plan, samples).iter().zip(plan.spans()) {
        let precise = precise_cases(plan, samples);
        // A case that could never be measured does not keep others going.
        let measured: BTreeSet<usize> = samples.iter().map(Sample::case).collect();
        let mut needed = BTreeSet::new();
        for case in measured.difference(&precise) {
            if plan.ring(*case).is_some() {
                needed.extend(plan.solo_of(*case));
                needed.extend(plan.none_of(*case));
            }
        }
        pausable.extend(precise.difference(&needed).map(|case| cases.start + case));
    }
    pausable
}

/// Returns the numbers of the cases whose intervals are narrow enough, in a plan of one experiment.
fn precise_cases(plan: &Plan, samples: &[Sample]) -> BTreeSet<usize> {
    let table = &Table::new(plan, samples);
    let limit = plan.stopping.precision;
    let mut precise = BTreeSet::new();
    for ((case, _), summary) in plan.rings().zip(summaries(table, &[])) {
        if let Some(width) = summary.headline().and_then(Estimate::relative_half_width) {
            if width <= limit {
                precise.insert(case);
            }
        }
    }
    for ((case, _), width) in plan.trials().zip(findings::widths(table, &[])) {
        if width.is_some_and(|width| width <= limit) {
            precise.insert(case);
        }
    }
    precise
}

/// Largest share of the time that a group of cases may have taken and still be in the next round,
/// where others need time too.
const MAX_SHARE: f64 = 1.0 / 3.0;
/// Like [`MAX_SHARE`], for the rings of an experiment that is about trials: they are its details.
const MAX_DETAILS_SHARE: f64 = 0.1;

/// Factor over its equal share of the time that a group may have had where few groups are left: two
/// that take about as long are to be in the same rounds.
const FEW_GROUPS_FACTOR: f64 = 1.25;

/// Returns the numbers of the cases that a round of a plan of several experiments measures, in their
/// order. `spent_ns` is the time that each case has taken so far.
///
/// The first round has all. Later the cases of each kind (rings, loops, wake-ups) of each experiment
/// are a group: one whose cases take long is left out of rounds once it has had its share, so that
/// it does not take the time of the others. Paused cases are in every fourth round, as the machine
/// changes.
pub fn cases_of_round(
    plan: &Plan,
    round: u32,
    paused: &BTreeSet<usize>,
    spent_ns: &[u64],
) -> Vec<usize> {
    let mut order = plan.order(round);
    let is_open = |case: &usize| !paused.contains(case);
    if round == 0 || !order.iter().any(is_open) {
        return order;
    }
    let mut open = case_groups(plan);
    open.retain(|group| group.cases.iter().any(is_open));
    let spent: f64 = open.iter().map(|group| group.spent(spent_ns)).sum();
    let shares: f64 = open.iter().map(|group| group.max_share).sum();
    let mut taking_part = BTreeSet::new();
    for group in open {
        let equal_share = FEW_GROUPS_FACTOR * group.max_share / shares;
        if group.spent(spent_ns) <= spent * group.max_share.max(equal_share) {
            taking_part.extend(group.cases.into_iter().filter(is_open));
        }
    }
    let has_paused = round % ALL_CASES_EVERY == 0;
    order.retain(|case| taking_part.contains(case) || (has_paused && paused.contains(case)));
    order
}

/// The cases of one kind of one experiment.
struct CaseGroup {
    cases: Vec<usize>,
    /// The kind of trial; absent for rings.
    kind: Option<Discriminant<Trial>>,
    /// Largest share of the time that they may have had.
    max_share: f64,
}

impl CaseGroup {
    /// Returns the time that the group has taken, in nanoseconds.
    fn spent(&self, spent_ns: &[u64]) -> f64 {
        let mut sum = 0.0;
        for case in &self.cases {
            if let Some(ns) = spent_ns.get(*case) {
                sum += *ns as f64;
            }
        }
        sum
    }
}

/// Returns the cases of a plan in groups by experiment and kind.
fn case_groups(plan: &Plan) -> Vec<CaseGroup> {
    let mut groups = Vec::new();
    for (experiment, cases) in plan.spans() {
        let mut of_experiment: Vec<CaseGroup> = Vec::new();
        for case in cases {
            let kind = plan.trial(case).map(|case| discriminant(&case.trial));
            match of_experiment.iter_mut().find(|group| group.kind == kind) {
                Some(group) => group.cases.push(case),
                None => {
                    let is_detail = kind.is_none() && experiment.case_kinds() == CaseKinds::Both;
                    let max_share = if is_detail { MAX_DETAILS_SHARE } else { MAX_SHARE };
                    of_experiment.push(CaseGroup { cases: vec![case], kind, max_share });
                }
            }
        }
        groups.extend(of_experiment);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::speed::cut;
    use rundata::case::Case;
    use rundata::experiment::Experiment;
    use rundata::placement::Placement;
    use rundata::plan::Stopping;
    use rundata::run::Run;
    use rundata::trial;

    /// A run whose rings all lack clean slices, with the same under fifo beside them, which do not.
    fn with_twins() -> Run {
        let mut run =
            Run::parse(include_str!("../../rundata/tests/fixtures/run-v1.jsonl")).unwrap();
        let cases = run.header.plan.cases.len();
        let mut rings: Vec<ring::RingSample> =
            rundata::case::rings(&run.samples).cloned().collect();
        let again = |sample: &ring::RingSample| ring::RingSample {
            round: sample.round + 6,
            ..sample.clone()
        };
        rings.extend(rings.iter().map(again).collect::<Vec<_>>());
        let slices = |sample: &ring::RingSample, is_clean: bool| {
            Sample::from(cut(sample.clone(), sample.laps.min(10), |_| is_clean))
        };
        let normal = rings.iter().map(|sample| slices(sample, false));
        let fifo = rings.iter().map(|sample| slices(sample, true));
        let fifo = fifo.map(|sample| {
            let case = sample.case() + cases;
            sample.with_case(case)
        });
        run.samples = normal.chain(fifo).collect();
        let mut twins = run.header.plan.cases.clone();
        for twin in twins.iter_mut().filter_map(rundata::case::Case::ring_mut) {
            twin.policy = Policy::Fifo;
        }
        run.header.plan.cases.extend(twins);
        run
    }

    #[test]
    fn nothing_is_lacking_of_a_ring_that_has_its_answer_under_fifo() {
        let lacking = |run: &Run| cases_without_full_speed(&run.header.plan, &run.samples);
        let run = with_twins();
        assert_eq!(lacking(&run), Vec::<usize>::new());
        // The same without the twins.
        let mut alone = run.clone();
        for case in alone.header.plan.cases.iter_mut().filter_map(rundata::case::Case::ring_mut) {
            case.priority = (case.policy == Policy::Fifo).then_some(2);
        }
        let cases = run.header.plan.cases.len();
        assert_eq!(lacking(&alone), (0..cases / 2).collect::<Vec<_>>());
    }

    fn cpu(cpu: u32) -> Placement {
        Placement::Same { cpu }
    }

    /// Rings of one, two and four; two working sets, which take long; two loops.
    fn whole() -> Plan {
        let ring = |members| ring::RingCase::of_processes(members, cpu(1));
        let with_work = |bytes| {
            let work = ring::Work::new(bytes, 64, ring::AccessKind::Read).ok();
            Case::Ring(ring::RingCase { work, ..ring(2) })
        };
        let calls = |call: &str| {
            let trial = Trial::Loop { call: call.to_string() };
            Case::Trial(trial::TrialCase { trial, cpu: 1, policy: ring::Policy::Other })
        };
        let plans = vec![
            Plan::from_cases(Experiment::Ring, [ring(1), ring(2), ring(4)]),
            Plan::from_cases(Experiment::Cost, [with_work(4096), with_work(1 << 20)]),
            Plan::from_cases(Experiment::Response, [calls("getuid"), calls("signal-self")]),
        ];
        let planned = plans.into_iter().map(|plan| (plan, Vec::new())).collect();
        Plan::from_parts(planned, 7, Stopping::default())
    }

    fn sorted(mut cases: Vec<usize>) -> Vec<usize> {
        cases.sort_unstable();
        cases
    }

    #[test]
    fn the_first_round_is_for_all_and_begins_with_the_ring_of_two_and_its_solo() {
        let plan = whole();
        let first = cases_of_round(&plan, 0, &BTreeSet::new(), &[]);
        assert_eq!(sorted(first[..2].to_vec()), [0, 1]);
        assert_eq!(sorted(first), [0, 1, 2, 3, 4, 5, 6]);
        let later: Vec<Vec<usize>> =
            (1..9).map(|round| cases_of_round(&plan, round, &BTreeSet::new(), &[0; 7])).collect();
        assert!(later.iter().all(|round| round.len() == 7));
        assert!(later.iter().any(|round| sorted(round[..2].to_vec()) != [0, 1]), "shuffled");
    }

    #[test]
    fn an_experiment_that_cannot_be_measured_does_not_decide_the_precision() {
        let text = include_str!("../../rundata/tests/fixtures/run-v1.jsonl");
        let run = rundata::run::Run::parse(text).expect("a run");
        let sets = Plan::from_cases(Experiment::Cost, [ring::RingCase::of_processes(2, cpu(1))]);
        let (seed, stopping) = (run.header.plan.seed, run.header.plan.stopping.clone());
        let rings = run.header.plan.clone();
        let own = worst_precision(&rings, &run.samples, &run.failures);
        let number = rings.cases.len();
        let parts = vec![(rings, Vec::new()), (sets, Vec::new())];
        let plan = Plan::from_parts(parts, seed, stopping);
        assert_eq!(worst_precision(&plan, &run.samples, &run.failures), None, "not yet measured");
        let failed = Failure { case: number, round: 0, message: String::new() };
        let failures = [&run.failures[..], &[failed]].concat();
        assert!(own.is_some());
        assert_eq!(worst_precision(&plan, &run.samples, &failures), own);
    }

    #[test]
    fn no_group_takes_the_time_of_the_others() {
        let plan = whole();
        // A round of each group in turn takes 30, 200 and 4.
        let took = [10, 10, 10, 100, 100, 2, 2];
        let mut spent = [0_u64; 7];
        let mut rounds = [0_u32; 7];
        for round in 0..400 {
            for case in cases_of_round(&plan, round, &BTreeSet::new(), &spent) {
                spent[case] += took[case];
                rounds[case] += 1;
            }
        }
        let whole: u64 = spent.iter().sum();
        let of_sets = spent[3] + spent[4];
        assert!(of_sets * 3 < whole * 2, "{spent:?}");
        assert!(rounds.iter().all(|of_case| *of_case > 20), "{rounds:?}");
        assert!(rounds[5] > rounds[3], "{rounds:?}");
    }

    #[test]
    fn narrow_cases_pause_and_the_others_have_the_time() {
        let plan = whole();
        let paused = BTreeSet::from([0, 1, 2, 5, 6]);
        let spent = [900, 900, 900, 10, 10, 500, 500];
        let cases = |round| sorted(cases_of_round(&plan, round, &paused, &spent));
        assert_eq!(cases(9), [3, 4]);
        assert_eq!(cases(12), [0, 1, 2, 3, 4, 5, 6], "paused ones are looked at now and then");
        let everything: BTreeSet<usize> = (0..7).collect();
        assert_eq!(cases_of_round(&plan, 9, &everything, &spent).len(), 7);
    }

    #[test]
    fn looks_are_spaced() {
        let looks: Vec<u32> = (0..50).filter(|rounds| is_interim_check(*rounds)).collect();
        assert_eq!(looks, [8, 12, 18, 27, 41]);
    }
}
