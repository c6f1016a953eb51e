//! What is asked of a run's samples while it goes on: how precise they are, and which cases need
//! more of them.

use std::collections::BTreeSet;
use std::mem::{Discriminant, discriminant};
use std::ops::Range;

use crate::estimate::{Estimate, widest};
use crate::findings;
use crate::parts::split;
use crate::speed::CaseSlices;
use crate::summary::{summaries, widths};
use crate::table::Table;
use rundata::case::Sample;
use rundata::experiment::Takes;
use rundata::plan::{FEWEST_ROUNDS, Plan};
use rundata::ring::{self, Policy};
use rundata::run::Failure;
use rundata::trial::Trial;

/// Whether the precision is looked at after `rounds` rounds. Looks are spaced by half as much
/// again (8, 12, 18, 27, ...): a rule asked after every round stops too soon by luck.
pub fn is_interim_check(rounds: u32) -> bool {
    let looks = std::iter::successors(Some(FEWEST_ROUNDS), |look| Some(look + look.div_ceil(2)));
    looks.take_while(|look| *look <= rounds).last() == Some(rounds)
}

/// The widest relative half-width among the cases that are still measured; absent as long as one of
/// them has no interval.
pub fn worst_precision(plan: &Plan, samples: &[Sample], failures: &[Failure]) -> Option<f64> {
    if plan.parts.is_empty() {
        let table = &Table::new(plan, samples);
        return widest(
            widths(&summaries(table, failures)).chain(findings::widths(table, failures)),
        );
    }
    let mut of_parts = Vec::new();
    for ((plan, samples), (_, cases)) in split(plan, samples).iter().zip(plan.spans()) {
        let failed = failures_within(failures, &cases);
        // An experiment of which nothing can be measured keeps no other going.
        let has_failed = |case: usize| failed.iter().any(|failure| failure.case == case);
        if !(0..plan.cases.len()).all(has_failed) {
            of_parts.push(worst_precision(plan, samples, &failed));
        }
    }
    widest(of_parts.into_iter())
}

/// Returns the failures of these cases, numbered from the first of them.
fn failures_within(failures: &[Failure], cases: &Range<usize>) -> Vec<Failure> {
    let within = failures.iter().filter(|failure| cases.contains(&failure.case));
    within.map(|of| Failure { case: of.case - cases.start, ..of.clone() }).collect()
}

/// What a run says so far, for whoever waits for it: the cost of a switch of its smallest ring, or
/// what its first trial is about. Absent until that is measured; without an interval in the first
/// rounds.
pub fn interim_estimate(plan: &Plan, samples: &[Sample]) -> Option<Estimate> {
    if !plan.parts.is_empty() {
        return split(plan, samples)
            .iter()
            .find_map(|(plan, samples)| interim_estimate(plan, samples));
    }
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
pub fn cases_without_full_speed(plan: &Plan, samples: &[Sample]) -> Vec<usize> {
    if !plan.parts.is_empty() {
        let mut all = Vec::new();
        for ((plan, samples), (_, cases)) in split(plan, samples).iter().zip(plan.spans()) {
            all.extend(
                cases_without_full_speed(plan, samples).into_iter().map(|case| cases.start + case),
            );
        }
        return all;
    }
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
pub fn focused_cases(plan: &Plan, samples: &[Sample], round: u32) -> Option<Vec<usize>> {
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

/// Numbers of the cases that may pause: their intervals are as narrow as the plan asks for, and no
/// figure of another case that still needs samples is taken from theirs.
pub fn pausable_cases(plan: &Plan, samples: &[Sample]) -> BTreeSet<usize> {
    let mut paused = BTreeSet::new();
    for ((plan, samples), (_, cases)) in split(plan, samples).iter().zip(plan.spans()) {
        let narrow = narrow(plan, samples);
        let measured: BTreeSet<usize> = samples.iter().map(Sample::case).collect();
        let mut needed = BTreeSet::new();
        // One that could never be measured keeps no other going.
        let open = measured.difference(&narrow).copied();
        for case in open.filter(|case| plan.ring(*case).is_some()) {
            needed.extend(plan.solo_of(case));
            needed.extend(plan.none_of(case));
        }
        paused.extend(narrow.difference(&needed).map(|case| cases.start + case));
    }
    paused
}

/// Numbers of the cases of a plan of one experiment whose intervals are narrow enough.
fn narrow(plan: &Plan, samples: &[Sample]) -> BTreeSet<usize> {
    let table = &Table::new(plan, samples);
    let is_narrow = |width: Option<f64>| width.is_some_and(|it| it <= plan.stopping.precision);
    let mut narrow = BTreeSet::new();
    for ((case, _), summary) in plan.rings().zip(summaries(table, &[])) {
        if is_narrow(summary.headline().and_then(Estimate::relative_half_width)) {
            narrow.insert(case);
        }
    }
    for ((case, _), width) in plan.trials().zip(findings::widths(table, &[])) {
        if is_narrow(width) {
            narrow.insert(case);
        }
    }
    narrow
}

/// The share of the time that the cases of one kind of one experiment may have taken and still take
/// part in the next round, where others need time too.
const LARGEST_SHARE: f64 = 1.0 / 3.0;
/// The same of rings of an experiment that is about trials, as `response` is: they are its details.
const DETAILS_SHARE: f64 = 0.1;

/// Where a few groups share all of the time, each may have so many times its part of it: two that
/// take about as long are to be in the same rounds.
const FEW_GROUPS: f64 = 1.25;

/// Rounds from one to the next that paused cases take part in too, as the machine changes.
const PAUSED_EVERY: u32 = 4;

/// Numbers of the cases that a round of a plan of several experiments is for, in their order.
/// `spent_ns` is the time that each case has taken so far.
///
/// The first round is for all. Later the cases of each kind (rings, loops, wake-ups) of each
/// experiment are a group: one whose cases take long sits out a round once it has had its share, so
/// that none takes the time of the others.
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
    let mut open = groups(plan);
    open.retain(|group| group.cases.iter().any(is_open));
    let whole: f64 = open.iter().map(|group| group.spent(spent_ns)).sum();
    let shares: f64 = open.iter().map(|group| group.share).sum();
    let has_all = round % PAUSED_EVERY == 0;
    let mut taking_part = BTreeSet::new();
    for group in open {
        let limit = whole * group.share.max(FEW_GROUPS * group.share / shares);
        if group.spent(spent_ns) <= limit {
            taking_part.extend(group.cases.into_iter().filter(is_open));
        }
    }
    order.retain(|case| taking_part.contains(case) || (has_all && paused.contains(case)));
    order
}

/// The cases of one kind of one experiment.
struct Group {
    cases: Vec<usize>,
    /// The share of the time that they may have had.
    share: f64,
}

impl Group {
    fn spent(&self, spent_ns: &[u64]) -> f64 {
        let all = self.cases.iter().filter_map(|case| spent_ns.get(*case));
        all.fold(0.0, |sum, ns| sum + *ns as f64)
    }
}

/// The cases of a plan in groups by experiment and kind.
fn groups(plan: &Plan) -> Vec<Group> {
    let kind = |case: usize| plan.trial(case).map(|case| discriminant(&case.trial));
    let mut groups = Vec::new();
    for (experiment, cases) in plan.spans() {
        let mut of_kinds: Vec<(Option<Discriminant<Trial>>, Group)> = Vec::new();
        for case in cases {
            let own = kind(case);
            match of_kinds.iter_mut().find(|(kind, _)| *kind == own) {
                Some((_, group)) => group.cases.push(case),
                None => {
                    let is_detail = own.is_none() && experiment.takes() == Takes::Both;
                    let share = if is_detail { DETAILS_SHARE } else { LARGEST_SHARE };
                    of_kinds.push((own, Group { cases: vec![case], share }));
                }
            }
        }
        groups.extend(of_kinds.into_iter().map(|(_, group)| group));
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
        let mut rings: Vec<ring::Sample> = rundata::case::rings(&run.samples).cloned().collect();
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
        let ring = |members| ring::Case::of_processes(members, cpu(1));
        let with_work = |bytes| {
            let work = ring::Work::new(bytes, 64, ring::Op::Read).ok();
            Case::Ring(ring::Case { work, ..ring(2) })
        };
        let calls = |call: &str| {
            let trial = Trial::Loop { call: call.to_string() };
            Case::Trial(trial::Case { trial, cpu: 1, policy: ring::Policy::Other })
        };
        let plans = vec![
            Plan::of(Experiment::Ring, [ring(1), ring(2), ring(4)]),
            Plan::of(Experiment::Cost, [with_work(4096), with_work(1 << 20)]),
            Plan::of(Experiment::Response, [calls("getuid"), calls("signal-self")]),
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
        let sets = Plan::of(Experiment::Cost, [ring::Case::of_processes(2, cpu(1))]);
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
