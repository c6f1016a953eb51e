//! Rounds: every case once in each, in shuffled order, until the figures are precise enough or the
//! time is spent.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use model::looks;
use model::plan::{Plan, is_look};
use model::run::{Failure, StopReason};
use model::sample::Sample;
use model::speed::FEWEST_ROUNDS;
use probe::assignment::Assignment;

use crate::launch::{Launch, LaunchError};

/// What is told while the rounds go on.
pub(crate) trait Watch {
    /// A case is about to be measured.
    fn case(&mut self, state: &State);
    /// A sample has arrived.
    fn sample(&mut self, sample: &Sample);
    /// A worker has ended: nothing is being measured.
    fn pause(&mut self);
    /// A case cannot be measured.
    fn failure(&mut self, failure: &Failure);
}

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
    /// Number of the coming case.
    pub(crate) case: usize,
    /// Round, from 0.
    pub(crate) round: u32,
    /// Time spent measuring.
    pub(crate) spent: Duration,
    /// Widest relative half-width at the last look.
    pub(crate) precision: Option<f64>,
}

/// Runs the rounds of a plan.
pub(crate) struct Schedule<'a> {
    plan: &'a Plan,
    launch: &'a mut dyn Launch,
    watch: &'a mut dyn Watch,
    samples: Vec<Sample>,
    failures: Vec<Failure>,
    first_round: u32,
    spent_before: Duration,
    started: Instant,
    precision: Option<f64>,
    last_took: BTreeMap<usize, Duration>,
    retired: BTreeSet<usize>,
    course: Course<'a>,
    /// Where the budget ends: later than the plan's while clean slices are missing.
    limit: Duration,
    /// The cases that are still measured beyond the plan's budget.
    only: Option<BTreeSet<usize>>,
    /// The most rounds of each case, once the plan's budget is spent.
    most_rounds: Option<BTreeMap<usize, usize>>,
    failed_in_a_row: BTreeMap<usize, u32>,
}

/// How precise what was measured is; absent as long as something has no interval.
pub(crate) type Precision<'a> = dyn Fn(&[Sample], &[Failure]) -> Option<f64> + 'a;

/// Numbers of the cases for whose sake the budget is extended.
pub(crate) type Lacking<'a> = dyn Fn(&[Sample]) -> Vec<usize> + 'a;

/// Numbers of the cases that the round of that number is for; none where it is for all.
pub(crate) type Focus<'a> = dyn Fn(&[Sample], u32) -> Option<Vec<usize>> + 'a;

/// In which order the cases of a round come, and by what the run may stop for being precise.
pub(crate) struct Course<'a> {
    /// The numbers of the cases, of the round of that number.
    pub(crate) order: Box<dyn Fn(u32) -> Vec<usize> + 'a>,
    /// The widest relative half-width.
    pub(crate) precision: Box<Precision<'a>>,
    /// The cases that have too few clean slices.
    pub(crate) lacking: Box<Lacking<'a>>,
    /// The cases that a round is for, where it is not for all.
    pub(crate) focus: Box<Focus<'a>>,
}

/// A run that lacks clean slices takes at most so many times its budget, and each of its cases as many times the
/// rounds that it had when the budget was spent: one that no time would help does not take the rest for itself.
const MOST_BUDGETS: u32 = 3;

/// But so many rounds are never too many for a case: twice those that a figure at full speed takes.
const LEAST_ROUNDS: usize = 2 * FEWEST_ROUNDS as usize;

/// Failures in a row, without running out of anything, after which a case is given up.
const MOST_FAILURES: u32 = 3;

/// How a schedule ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// All samples, those of earlier sessions first.
    pub(crate) samples: Vec<Sample>,
    /// Cases that could not be measured.
    pub(crate) failures: Vec<Failure>,
    /// Why it ended.
    pub(crate) reason: StopReason,
    /// Time spent measuring, earlier sessions included.
    pub(crate) spent: Duration,
}

enum Step {
    Tried,
    /// Did not fit into the budget, or was given up before.
    Skipped,
    Stop(StopReason),
}

impl<'a> Schedule<'a> {
    /// A schedule that goes on after `samples` of earlier sessions, which took `spent`.
    pub(crate) fn new(
        plan: &'a Plan,
        samples: Vec<Sample>,
        spent: Duration,
        launch: &'a mut dyn Launch,
        watch: &'a mut dyn Watch,
    ) -> Self {
        let first_round = samples.iter().map(|s| s.round().saturating_add(1)).max().unwrap_or(0);
        Self {
            plan,
            launch,
            watch,
            samples,
            failures: Vec::new(),
            first_round,
            spent_before: spent,
            started: Instant::now(),
            precision: None,
            last_took: BTreeMap::new(),
            retired: BTreeSet::new(),
            course: Course {
                order: Box::new(|round| plan.order(round)),
                precision: Box::new(|samples, failures| {
                    looks::worst_precision(plan, samples, failures)
                }),
                lacking: Box::new(|samples| looks::lacking(plan, samples)),
                focus: Box::new(|samples, round| looks::focus(plan, samples, round)),
            },
            limit: Duration::from_nanos(plan.stopping.budget_ns),
            only: None,
            most_rounds: None,
            failed_in_a_row: BTreeMap::new(),
        }
    }

    /// The same on another course than the plan's own.
    pub(crate) fn on(self, course: Course<'a>) -> Self {
        Self { course, ..self }
    }

    /// Runs rounds until a reason to stop comes up.
    pub(crate) fn run(mut self) -> Outcome {
        let mut round = self.first_round;
        let reason = loop {
            if self.plan.stopping.rounds.is_some_and(|most| round >= most) {
                break StopReason::RoundsDone;
            }
            match self.round(round) {
                Some(StopReason::BudgetSpent) if self.extend() => {}
                Some(reason) => break reason,
                None => {}
            }
            round += 1;
            if is_look(round) && self.is_precise() {
                break StopReason::Precise;
            }
        };
        let spent = self.spent();
        Outcome { samples: self.samples, failures: self.failures, reason, spent }
    }

    /// One round; a reason to stop if there is one.
    fn round(&mut self, round: u32) -> Option<StopReason> {
        if self.only.is_some() && !self.extend() {
            return Some(StopReason::BudgetSpent);
        }
        let mut tried = 0;
        let focus = (self.course.focus)(&self.samples, round);
        for case in (self.course.order)(round) {
            if focus.as_ref().is_some_and(|focus| !focus.contains(&case)) {
                continue;
            }
            match self.case(case, round) {
                Step::Tried => tried += 1,
                Step::Skipped => {}
                Step::Stop(reason) => return Some(reason),
            }
        }
        match (0..self.plan.cases.len()).all(|case| self.retired.contains(&case)) {
            true => Some(StopReason::Failed),
            false if tried == 0 => Some(StopReason::BudgetSpent),
            false => None,
        }
    }

    /// Goes on beyond the plan's budget, up to [`MOST_BUDGETS`] times as long, with the cases that have too few
    /// clean slices. Asked for before each round then.
    fn extend(&mut self) -> bool {
        let budget = Duration::from_nanos(self.plan.stopping.budget_ns);
        let limit = budget.saturating_mul(MOST_BUDGETS);
        let rounds = self.rounds_by_case();
        let most = self.most_rounds.get_or_insert_with(|| {
            let most = |count: usize| (count * MOST_BUDGETS as usize).max(LEAST_ROUNDS);
            rounds.iter().map(|(case, count)| (*case, most(*count))).collect()
        });
        let has_time = |case: &usize| rounds.get(case) < most.get(case);
        let lacking: BTreeSet<usize> = (self.course.lacking)(&self.samples)
            .into_iter()
            .filter(|case| !self.retired.contains(case) && has_time(case))
            .collect();
        let extends = !lacking.is_empty() && self.spent() < limit;
        (self.limit, self.only) = (limit, Some(lacking));
        extends
    }

    fn rounds_by_case(&self) -> BTreeMap<usize, usize> {
        let all: BTreeSet<_> = self.samples.iter().map(|one| (one.case(), one.round())).collect();
        let mut rounds = BTreeMap::new();
        for (case, _) in all {
            *rounds.entry(case).or_default() += 1;
        }
        rounds
    }

    fn case(&mut self, case: usize, round: u32) -> Step {
        let is_left_out = self.only.as_ref().is_some_and(|only| !only.contains(&case));
        if is_left_out || self.retired.contains(&case) {
            return Step::Skipped;
        }
        let budget = self.limit;
        // The first round is always finished: every size is measured once.
        if round > 0 && self.spent() >= budget {
            return Step::Stop(StopReason::BudgetSpent);
        }
        // A large ring that no longer fits leaves the rest of the time to the small ones.
        let took = self.last_took.get(&case).copied().unwrap_or_default();
        if round > 0 && self.spent() + took > budget {
            return Step::Skipped;
        }
        let spent = self.spent();
        self.watch.case(&State { case, round, spent, precision: self.precision });
        let result = self.measure(case, round);
        self.last_took.insert(case, self.spent().saturating_sub(spent));
        self.watch.pause();
        match result {
            Ok(()) => {
                self.failed_in_a_row.remove(&case);
                Step::Tried
            }
            Err(LaunchError::Interrupted) => Step::Stop(StopReason::Interrupted),
            Err(LaunchError::Case { message, exhausted }) => {
                let failure = Failure { case, round, message };
                self.watch.failure(&failure);
                self.failures.push(failure);
                self.count_failure(case, exhausted);
                Step::Tried
            }
        }
    }

    /// A case at which the machine ran out is not tried again, nor is one that needs as much. Any
    /// other failure costs its round; only a case that keeps failing is given up.
    fn count_failure(&mut self, case: usize, exhausted: bool) {
        let cases = &self.plan.cases;
        if exhausted {
            let as_much = |other: &usize| cases[*other].needs_as_much(&cases[case]);
            self.retired.extend((0..cases.len()).filter(as_much));
        }
        let in_a_row = self.failed_in_a_row.entry(case).or_default();
        *in_a_row += 1;
        if *in_a_row >= MOST_FAILURES {
            self.retired.insert(case);
        }
    }

    fn measure(&mut self, case: usize, round: u32) -> Result<(), LaunchError> {
        let assignment = Assignment {
            case_number: case,
            case: self.plan.cases[case].clone(),
            round,
            batching: self.plan.batching.clone(),
            unshared_ratio: self.plan.reference.unshared_ratio,
        };
        let (samples, watch) = (&mut self.samples, &mut *self.watch);
        self.launch.launch(&assignment, &mut |sample| {
            watch.sample(&sample);
            samples.push(sample);
        })
    }

    fn is_precise(&mut self) -> bool {
        self.precision = (self.course.precision)(&self.samples, &self.failures);
        self.precision.is_some_and(|worst| worst <= self.plan.stopping.precision)
    }

    fn spent(&self) -> Duration {
        self.spent_before + self.started.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::experiment::Experiment;
    use model::plan::{Batching, Stopping};
    use model::ring::{self, Case, Counters, Kind, Placement, Policy};
    use model::speed::Reference;

    /// Samples without a kernel: a hop costs 1000 ns alone and 3000 ns in company, plus `wobble`.
    struct Fake {
        asked: Vec<(u32, usize)>,
        most_members: u32,
        wobble: u64,
        interrupt_after: usize,
        fail: Vec<(u32, u32)>,
    }

    impl Default for Fake {
        fn default() -> Self {
            Self {
                asked: Vec::new(),
                most_members: u32::MAX,
                wobble: 0,
                interrupt_after: usize::MAX,
                fail: Vec::new(),
            }
        }
    }

    impl Launch for Fake {
        fn launch(
            &mut self,
            assignment: &Assignment,
            sink: &mut dyn FnMut(Sample),
        ) -> Result<(), LaunchError> {
            let members = assignment.case.ring().map_or(0, |case| case.members);
            if self.asked.len() >= self.interrupt_after {
                return Err(LaunchError::Interrupted);
            }
            self.asked.push((assignment.round, assignment.case_number));
            if members > self.most_members {
                let message = "out of members".to_string();
                return Err(LaunchError::Case { message, exhausted: true });
            }
            if self.fail.contains(&(assignment.round, members)) {
                let message = "once".to_string();
                return Err(LaunchError::Case { message, exhausted: false });
            }
            let turn = self.asked.len() as u64 % 7;
            let ns_per_hop = if members == 1 { 1000 } else { 3000 } + self.wobble * turn;
            let switches = if members == 1 { 0 } else { 1000 };
            let sample = ring::Sample {
                case: assignment.case_number,
                round: assignment.round,
                sample: 0,
                laps: 1000,
                hops: 1000,
                elapsed_ns: 1000 * ns_per_hop,
                counters: Counters { voluntary: switches, ..Counters::default() },
                steal_ns: None,
                setup_ns: 0,
                slices: None,
                triples: None,
                huge_page_bytes: None,
            };
            sink(sample.into());
            Ok(())
        }
    }

    #[derive(Default)]
    struct Quiet(Vec<Failure>);
    impl Watch for Quiet {
        fn case(&mut self, _: &State) {}
        fn sample(&mut self, _: &Sample) {}
        fn pause(&mut self) {}
        fn failure(&mut self, failure: &Failure) {
            self.0.push(failure.clone());
        }
    }

    fn plan(budget_ns: u64, rounds: Option<u32>) -> Plan {
        let case = |members| Case {
            members,
            kind: Kind::Process,
            link: "pipe".into(),
            work: None,
            placement: Placement::Same { cpu: 1 },
            policy: Policy::Other,
            priority: None,
            state: None,
        };
        let stopping = Stopping { precision: 0.01, budget_ns, rounds, confidence: 0.95 };
        let cases = [2, 4, 8, 16, 32].map(|members| case(members).into()).to_vec();
        let experiment = Experiment::Ring;
        let reference = Reference::default();
        Plan { experiment, cases, seed: 3, batching: Batching::default(), stopping, reference }
            .with_solos()
    }

    fn run(plan: &Plan, fake: &mut Fake) -> Outcome {
        Schedule::new(plan, Vec::new(), Duration::ZERO, fake, &mut Quiet::default()).run()
    }

    const LONG: u64 = 3_600_000_000_000;

    #[test]
    fn rounds_are_shuffled_as_the_plan_says_and_solos_take_part() {
        let (plan, mut fake) = (plan(LONG, Some(4)), Fake::default());
        let outcome = run(&plan, &mut fake);
        assert_eq!(outcome.reason, StopReason::RoundsDone);
        let expected: Vec<(u32, usize)> = (0..4)
            .flat_map(|round| plan.order(round).into_iter().map(move |c| (round, c)))
            .collect();
        assert_eq!(fake.asked, expected);
        let in_order = |round: u32| {
            fake.asked.iter().filter(|(r, _)| *r == round).map(|(_, c)| *c).collect::<Vec<_>>()
        };
        assert!((0..4).any(|round| !in_order(round).is_sorted()), "no round was shuffled");
        assert_eq!(plan.ring(0).map(|case| case.members), Some(1));
    }

    #[test]
    fn a_spent_budget_still_finishes_the_first_round() {
        let mut fake = Fake::default();
        let outcome = run(&plan(1, None), &mut fake);
        assert_eq!(outcome.reason, StopReason::BudgetSpent);
        assert_eq!(fake.asked.len(), 6);
    }

    #[test]
    fn it_stops_at_the_first_look_that_is_precise() {
        let mut fake = Fake::default();
        let outcome = run(&plan(LONG, None), &mut fake);
        assert_eq!(outcome.reason, StopReason::Precise);
        assert_eq!(fake.asked.len(), 6 * 8);
        let mut noisy = Fake { wobble: 300, ..Fake::default() };
        let outcome = run(&plan(LONG, Some(9)), &mut noisy);
        assert_eq!(outcome.reason, StopReason::RoundsDone);
    }

    /// Runs after `spent` on a course on which `lacking` of so many samples lacks clean slices.
    fn run_lacking(
        plan: &Plan,
        spent: Duration,
        fake: &mut Fake,
        lacking: impl Fn(usize) -> Vec<usize>,
    ) -> Outcome {
        lack_after(plan, (Vec::new(), spent), fake, lacking)
    }

    /// The same after samples of an earlier session.
    fn lack_after(
        plan: &Plan,
        (samples, spent): (Vec<Sample>, Duration),
        fake: &mut Fake,
        lacking: impl Fn(usize) -> Vec<usize>,
    ) -> Outcome {
        let mut watch = Quiet::default();
        let schedule = Schedule::new(plan, samples, spent, fake, &mut watch);
        let course = Course {
            order: Box::new(|round| plan.order(round)),
            precision: Box::new(|_, _| None),
            lacking: Box::new(move |samples: &[Sample]| lacking(samples.len())),
            focus: Box::new(|_, _| None),
        };
        schedule.on(course).run()
    }

    #[test]
    fn a_spent_budget_goes_on_with_what_lacks_clean_slices_up_to_three_times_as_long() {
        let (budget, whole) = (Duration::from_nanos(LONG), plan(LONG, None));
        // One that lacks some for ever is given up after 16 rounds, or three times those that it had.
        for (stored, most) in [(0, 16), (6, 18)] {
            let samples = run(&plan(LONG, Some(stored)), &mut Fake::default()).samples;
            let mut fake = Fake::default();
            let outcome = lack_after(&whole, (samples, budget), &mut fake, |_| vec![3]);
            let of_case = fake.asked.iter().filter(|(_, case)| *case == 3).count() as u32;
            assert_eq!((outcome.reason, stored + of_case), (StopReason::BudgetSpent, most));
        }
        // The budget is spent when the first round, which is always finished, is over.
        let mut fake = Fake::default();
        let outcome = run_lacking(&whole, budget, &mut fake, |_| Vec::new());
        assert_eq!((outcome.reason, fake.asked.len()), (StopReason::BudgetSpent, 6));
        // Case 3 lacks some until it has been measured twice more.
        let mut fake = Fake::default();
        let lacking = |samples| if samples < 8 { vec![3] } else { Vec::new() };
        let outcome = run_lacking(&whole, budget, &mut fake, lacking);
        let extended: Vec<usize> = fake.asked[6..].iter().map(|(_, case)| *case).collect();
        assert_eq!((outcome.reason, extended), (StopReason::BudgetSpent, vec![3, 3]));
        // One that always will is not waited for beyond three budgets.
        let mut fake = Fake::default();
        let outcome = run_lacking(&whole, 3 * budget, &mut fake, |_| vec![3]);
        assert_eq!((outcome.reason, fake.asked.len()), (StopReason::BudgetSpent, 6));
        // Rounds that were asked for are all rounds that there are.
        let mut fake = Fake::default();
        let outcome = run_lacking(&plan(LONG, Some(1)), budget, &mut fake, |_| vec![3]);
        assert_eq!((outcome.reason, fake.asked.len()), (StopReason::RoundsDone, 6));
    }

    #[test]
    fn a_round_may_be_for_some_cases_only() {
        let (plan, mut fake) = (plan(LONG, Some(2)), Fake::default());
        let mut watch = Quiet::default();
        let schedule = Schedule::new(&plan, Vec::new(), Duration::ZERO, &mut fake, &mut watch);
        let course = Course {
            order: Box::new(|round| plan.order(round)),
            precision: Box::new(|_, _| None),
            lacking: Box::new(|_| Vec::new()),
            focus: Box::new(|_, round| (round == 1).then(|| vec![2, 4])),
        };
        schedule.on(course).run();
        let mut second: Vec<usize> =
            fake.asked.iter().filter(|(round, _)| *round == 1).map(|(_, case)| *case).collect();
        second.sort_unstable();
        assert_eq!((fake.asked.len(), second), (8, vec![2, 4]));
    }

    #[test]
    fn sizes_beyond_a_failed_one_are_not_tried_again_and_the_others_go_on() {
        let (plan, mut fake) = (plan(LONG, Some(5)), Fake { most_members: 8, ..Fake::default() });
        let outcome = run(&plan, &mut fake);
        let rounds_of = |members: u32| {
            let is_size = |case: &usize| plan.ring(*case).is_some_and(|of| of.members == members);
            fake.asked.iter().filter(|(_, case)| is_size(case)).count()
        };
        assert_eq!((rounds_of(1), rounds_of(2), rounds_of(8)), (5, 5, 5));
        assert!(rounds_of(16) <= 1 && rounds_of(32) <= 1);
        assert!(!outcome.failures.is_empty() && !outcome.samples.is_empty());
    }

    #[test]
    fn a_run_in_which_nothing_can_be_measured_says_so() {
        let outcome = run(&plan(LONG, None), &mut Fake { most_members: 0, ..Fake::default() });
        assert_eq!((outcome.reason, outcome.samples.len()), (StopReason::Failed, 0));
    }

    #[test]
    fn a_failure_costs_its_round_and_a_case_that_keeps_failing_is_given_up() {
        let plan = plan(LONG, Some(8));
        let fail = vec![(1, 1), (2, 4), (4, 32), (5, 32), (6, 32)];
        let mut fake = Fake { fail, wobble: 300, ..Fake::default() };
        let outcome = run(&plan, &mut fake);
        assert_eq!(outcome.reason, StopReason::RoundsDone);
        let tries = |members: u32| {
            let is_size = |case: &usize| plan.ring(*case).is_some_and(|of| of.members == members);
            fake.asked.iter().filter(|(_, case)| is_size(case)).count()
        };
        assert_eq!((tries(1), tries(4), tries(16), tries(32)), (8, 8, 8, 7));
        assert_eq!(outcome.failures.len(), 5);
    }

    #[test]
    fn an_interrupt_keeps_what_was_measured() {
        let mut fake = Fake { interrupt_after: 9, ..Fake::default() };
        let outcome = run(&plan(LONG, None), &mut fake);
        assert_eq!((outcome.reason, outcome.samples.len()), (StopReason::Interrupted, 9));
    }

    #[test]
    fn a_resumed_run_goes_on_with_the_next_round() {
        let plan = plan(LONG, Some(7));
        let mut fake = Fake { wobble: 300, interrupt_after: 9, ..Fake::default() };
        let earlier = run(&plan, &mut fake).samples;
        let mut fake = Fake { wobble: 300, ..Fake::default() };
        let mut quiet = Quiet::default();
        let schedule = Schedule::new(&plan, earlier, Duration::ZERO, &mut fake, &mut quiet);
        let outcome = schedule.run();
        assert_eq!(fake.asked.first().map(|(round, _)| *round), Some(2));
        assert_eq!(outcome.samples.len(), 9 + 5 * 6);
    }
}
