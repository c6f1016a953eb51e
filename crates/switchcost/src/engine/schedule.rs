//! Rounds: every case once in each, in shuffled order, until the figures are precise enough or the
//! time is spent.
//!
//! Shuffled rounds spread a slow drift of the machine (heat, a competing task) evenly over all
//! cases, so that it cannot look like a difference between them. Rings of 2, 4 and 8 members and
//! their solo, with a budget of 20 s that may be extended (`20s+`):
//!
//! ```text
//! round 0   4  solo  2  8     always finished, whatever it takes: each size is measured once
//! round 1   2  8  solo  4
//! ...
//! round 8                     an interim check: precise already? then the run ends
//! ...
//! 20 s      the budget is spent. Of 4 members, too few slices were clean:
//! round 57  4                 only that case goes on, up to 60 s and three times its rounds
//! ```
//!
//! A case that fails costs its round. After three failures in a row, or one that says that the
//! machine has run out of something, it is given up, and so are those that need as much.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use analysis::estimate::Estimate;
use analysis::interim::{self, is_interim_check};
use probe::assignment::{Assignment, CaseFailure};
use rundata::case::Sample;
use rundata::plan::{MAX_BUDGET_FACTOR, MIN_CLEAN_ROUNDS, Plan};
use rundata::run::{Failure, StopReason};

use crate::base::values::nanoseconds;
use crate::engine::workers::{MeasureCase, WorkerError};

/// An event between two rounds or within one.
pub(crate) enum RunEvent<'a> {
    /// A case is about to be measured.
    Case(RunState),
    Sample(&'a Sample),
    /// A worker has ended: nothing is being measured.
    Pause,
    /// A case cannot be measured.
    Failure(&'a Failure),
    /// The rows of the table so far: the title of each, and its figure in words.
    Rows(&'a [(String, String)]),
}

/// The state of a run before a case.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunState {
    /// Number of the coming case.
    pub(crate) case: usize,
    /// From 0.
    pub(crate) round: u32,
    /// Time spent measuring.
    pub(crate) spent: Duration,
    /// Widest relative half-width at the last interim check.
    pub(crate) precision: Option<f64>,
    /// The run's main figure so far.
    pub(crate) estimate: Option<Estimate>,
}

/// The state of a run before a round.
pub(crate) struct RoundStart<'s> {
    samples: &'s [Sample],
    pub(crate) round: u32,
    /// The time that each case has taken so far.
    spent: &'s [Duration],
    /// Cases that failed so often that they are not tried again.
    given_up: &'s BTreeSet<usize>,
}

/// Returns the numbers of the cases of a round, in their order.
type OrderRule<'a> = dyn FnMut(&RoundStart) -> Vec<usize> + 'a;
type PrecisionRule<'a> = dyn Fn(&[Sample], &[Failure]) -> Option<f64> + 'a;
type EstimateRule<'a> = dyn Fn(&[Sample]) -> Option<Estimate> + 'a;
type LackingRule<'a> = dyn Fn(&[Sample]) -> Vec<usize> + 'a;
type RowsRule<'a> = dyn Fn(&[Sample]) -> Vec<(String, String)> + 'a;

/// The rules of a run's rounds: which cases each has, and when the run may stop.
pub(crate) struct RoundRules<'a> {
    pub(crate) order: Box<OrderRule<'a>>,
    /// Returns the widest relative half-width; nothing as long as a figure has no interval.
    pub(crate) precision: Box<PrecisionRule<'a>>,
    /// Returns the run's main figure so far. Asked at interim checks, and after each of the first
    /// rounds.
    pub(crate) estimate: Box<EstimateRule<'a>>,
    /// Returns the cases that have too few clean slices, for whose sake the budget is extended.
    pub(crate) lacking: Box<LackingRule<'a>>,
    /// Returns the rows of the table so far; absent where they are not shown.
    pub(crate) rows: Option<Box<RowsRule<'a>>>,
}

impl<'a> RoundRules<'a> {
    /// Returns the rules of a plan by itself.
    pub(crate) fn for_plan(plan: &'a Plan) -> Self {
        let order: Box<OrderRule<'a>> = if plan.parts.is_empty() {
            Box::new(|start| focused_order(plan, start))
        } else {
            order_by_turns(plan)
        };
        Self {
            order,
            precision: Box::new(|samples, failures| {
                interim::worst_precision(plan, samples, failures)
            }),
            estimate: Box::new(|samples| interim::interim_estimate(plan, samples)),
            lacking: Box::new(|samples| {
                if plan.stopping.fixed_budget {
                    return Vec::new();
                }
                interim::cases_without_full_speed(plan, samples)
            }),
            rows: None,
        }
    }
}

/// Returns the order of a round of one experiment: all cases, or those that need more rounds.
fn focused_order(plan: &Plan, start: &RoundStart) -> Vec<usize> {
    let mut order = plan.order(start.round);
    if let Some(focus) = interim::focused_cases(plan, start.samples, start.round) {
        order.retain(|case| focus.contains(case));
    }
    order
}

/// Returns the order of a plan of several experiments: cases that are precise enough at an interim
/// check pause until the next one, and no experiment takes the time of the others.
fn order_by_turns(plan: &Plan) -> Box<OrderRule<'_>> {
    let mut paused_at_check: Option<BTreeSet<usize>> = None;
    Box::new(move |start| {
        let round = start.round;
        // A run that goes on is checked before its first round.
        let is_resumed = paused_at_check.is_none() && round > MIN_CLEAN_ROUNDS;
        if is_interim_check(round) || is_resumed {
            paused_at_check = Some(interim::pausable_cases(plan, start.samples));
        }
        let mut spent_ns = Vec::new();
        for spent in start.spent {
            spent_ns.push(nanoseconds(*spent));
        }
        // A case that is not tried again holds no turn for the others of its kind.
        let mut paused = paused_at_check.clone().unwrap_or_default();
        paused.extend(start.given_up);
        interim::cases_of_round(plan, round, &paused, &spent_ns)
    })
}

/// Runs the rounds of a plan.
struct Schedule<'a> {
    plan: &'a Plan,
    rules: RoundRules<'a>,
    measure_case: &'a mut MeasureCase<'a>,
    watch: &'a mut dyn FnMut(RunEvent<'_>),
    samples: Vec<Sample>,
    failures: Vec<Failure>,
    spent_before: Duration,
    started: Instant,
    precision: Option<f64>,
    estimate: Option<Estimate>,
    cases: Vec<CaseState>,
    /// The time that each case has taken in this session.
    case_times: Vec<Duration>,
    /// When the rows are asked for next.
    next_rows: Duration,
    /// The end of the budget: later than the plan's while clean slices are missing.
    limit: Duration,
    /// The cases that are still measured beyond the plan's budget; absent before it is spent.
    extended_cases: Option<BTreeSet<usize>>,
    /// The most rounds of each case, once the plan's budget is spent.
    max_rounds: Option<Vec<usize>>,
}

/// The state of a case, beside its samples.
#[derive(Clone, Default)]
struct CaseState {
    /// The time that it took in the last round.
    took: Duration,
    failed_in_a_row: u32,
    is_given_up: bool,
}

/// Rounds that every case may have beyond the budget: twice those that a figure at full speed
/// takes.
const MIN_EXTENDED_ROUNDS: usize = 2 * MIN_CLEAN_ROUNDS as usize;

/// Shortest time between two drawings of the rows.
const MIN_ROWS_INTERVAL: Duration = Duration::from_millis(500);

/// Shortest time between two drawings of the rows, in times that it took to make them: 4 % of the
/// time goes into rows at most.
const MIN_ROWS_FACTOR: u32 = 25;

/// Members from which on a ring's time grows with its size.
const LARGE_RING: u32 = 256;

/// Failures in a row, without running out of anything, after which a case is given up.
const MAX_FAILURES: u32 = 3;

/// The samples of earlier sessions of a run that is resumed, and the time that they took.
#[derive(Default)]
pub(crate) struct EarlierSessions {
    pub(crate) samples: Vec<Sample>,
    pub(crate) spent: Duration,
}

/// The result of a schedule: samples, failures, and why it ended.
#[derive(Debug)]
pub(crate) struct ScheduleOutcome {
    /// Samples of this session, after those of earlier ones.
    pub(crate) samples: Vec<Sample>,
    /// Cases that could not be measured.
    pub(crate) failures: Vec<Failure>,
    pub(crate) reason: StopReason,
    /// Time spent measuring, earlier sessions included.
    pub(crate) spent: Duration,
}

/// Runs rounds until a reason to stop comes up, after those of earlier sessions.
pub(crate) fn run<'a>(
    plan: &'a Plan,
    rules: RoundRules<'a>,
    earlier: EarlierSessions,
    measure_case: &'a mut MeasureCase<'a>,
    watch: &'a mut dyn FnMut(RunEvent<'_>),
) -> ScheduleOutcome {
    let schedule = Schedule {
        plan,
        rules,
        measure_case,
        watch,
        samples: earlier.samples,
        failures: Vec::new(),
        spent_before: earlier.spent,
        started: Instant::now(),
        precision: None,
        estimate: None,
        cases: vec![CaseState::default(); plan.cases.len()],
        case_times: vec![Duration::ZERO; plan.cases.len()],
        next_rows: Duration::ZERO,
        limit: Duration::from_nanos(plan.stopping.budget_ns),
        extended_cases: None,
        max_rounds: None,
    };
    schedule.run()
}

impl Schedule<'_> {
    fn run(mut self) -> ScheduleOutcome {
        let mut round = match self.samples.iter().map(Sample::round).max() {
            Some(last) => last.saturating_add(1),
            None => 0,
        };
        let reason = loop {
            if self.plan.stopping.rounds.is_some_and(|most| round >= most) {
                break StopReason::RoundsDone;
            }
            match self.run_round(round) {
                Err(StopReason::BudgetSpent) if self.extend() => {}
                Err(reason) => break reason,
                Ok(()) => {}
            }
            round += 1;
            // Nobody waits for a first figure longer than it takes.
            if round < MIN_CLEAN_ROUNDS || is_interim_check(round) {
                self.estimate = (self.rules.estimate)(&self.samples);
            }
            if is_interim_check(round) && self.is_precise() {
                break StopReason::Precise;
            }
        };
        let spent = self.spent();
        ScheduleOutcome { samples: self.samples, failures: self.failures, reason, spent }
    }

    /// Measures one round; an error is a reason to stop.
    fn run_round(&mut self, round: u32) -> Result<(), StopReason> {
        if self.extended_cases.is_some() && !self.extend() {
            return Err(StopReason::BudgetSpent);
        }
        let mut given_up = BTreeSet::new();
        for (number, case) in self.cases.iter().enumerate() {
            if case.is_given_up {
                given_up.insert(number);
            }
        }
        let start = RoundStart {
            samples: &self.samples,
            round,
            spent: &self.case_times,
            given_up: &given_up,
        };
        let mut was_tried = false;
        for case in (self.rules.order)(&start) {
            was_tried |= self.try_case(case, round)?;
        }
        // A round for cases that were given up is one for all: time is left.
        if !was_tried && self.extended_cases.is_none() {
            for case in self.plan.order(round) {
                was_tried |= self.try_case(case, round)?;
            }
        }
        if self.cases.iter().all(|case| case.is_given_up) {
            return Err(StopReason::Failed);
        }
        if was_tried { Ok(()) } else { Err(StopReason::BudgetSpent) }
    }

    /// Goes on beyond the plan's budget, up to [`MAX_BUDGET_FACTOR`] times as long, with the cases
    /// that have too few clean slices; returns whether there is one. Each has at most as many times
    /// the rounds that it had when the budget was spent: a case that no time would help does not
    /// take the rest for itself. Asked before each round then.
    fn extend(&mut self) -> bool {
        self.limit = Duration::from_nanos(self.plan.stopping.most_budget_ns());
        let rounds = self.rounds_of_cases();
        let max_rounds = self.max_rounds.get_or_insert_with(|| {
            let mut max_rounds = rounds.clone();
            for count in &mut max_rounds {
                *count = (*count * MAX_BUDGET_FACTOR as usize).max(MIN_EXTENDED_ROUNDS);
            }
            max_rounds
        });
        let mut extended = BTreeSet::new();
        for case in (self.rules.lacking)(&self.samples) {
            // A case that never gave a sample would give none now.
            let may_go_on = (1..max_rounds[case]).contains(&rounds[case]);
            if may_go_on && !self.cases[case].is_given_up {
                extended.insert(case);
            }
        }
        let goes_on = !extended.is_empty() && self.spent() < self.limit;
        self.extended_cases = Some(extended);
        goes_on
    }

    /// Returns the rounds in which each case gave a sample.
    fn rounds_of_cases(&self) -> Vec<usize> {
        let mut measured = BTreeSet::new();
        for sample in &self.samples {
            measured.insert((sample.case(), sample.round()));
        }
        let mut rounds = vec![0; self.cases.len()];
        for (case, _) in measured {
            rounds[case] += 1;
        }
        rounds
    }

    /// Measures a case, unless it was given up or does not fit into the budget. Returns whether it
    /// was tried; an error is a reason to stop.
    fn try_case(&mut self, case: usize, round: u32) -> Result<bool, StopReason> {
        let is_left_out = self.extended_cases.as_ref().is_some_and(|cases| !cases.contains(&case));
        if is_left_out || self.cases[case].is_given_up {
            return Ok(false);
        }
        let spent = self.spent();
        // The first round is always finished: every size is measured once.
        if round > 0 && spent >= self.limit {
            return Err(StopReason::BudgetSpent);
        }
        // A large ring that no longer fits leaves the rest of the time to the small ones.
        let is_first = self.cases[case].took.is_zero();
        let expected = if is_first { self.expected(case) } else { self.cases[case].took };
        if (round > 0 || !expected.is_zero()) && spent + expected > self.limit {
            return Ok(false);
        }
        let Self { precision, estimate, .. } = *self;
        (self.watch)(RunEvent::Case(RunState { case, round, spent, precision, estimate }));
        let result = self.measure(case, round);
        let took = self.spent().saturating_sub(spent);
        self.cases[case].took = took;
        self.case_times[case] += took;
        (self.watch)(RunEvent::Pause);
        self.show_rows();
        match result {
            Ok(()) => self.cases[case].failed_in_a_row = 0,
            Err(WorkerError::Interrupted) => return Err(StopReason::Interrupted),
            Err(lost @ WorkerError::SettingLost(_)) => {
                self.note_failure(case, round, lost.to_string());
                return Err(StopReason::Failed);
            }
            Err(WorkerError::Case(CaseFailure { message, exhausted })) => {
                self.note_failure(case, round, message);
                self.count_failure(case, exhausted);
            }
            Err(overdue @ WorkerError::Overdue(_)) => {
                self.note_failure(case, round, overdue.to_string());
                // One that was measured before may have been stopped with its machine.
                if self.samples.iter().all(|sample| sample.case() != case) {
                    self.cases[case].is_given_up = true;
                }
                self.count_failure(case, false);
                // The rest is not measured even once: each of them might take as long.
                if self.spent() >= self.limit {
                    return Err(StopReason::BudgetSpent);
                }
            }
        }
        Ok(true)
    }

    fn note_failure(&mut self, case: usize, round: u32, message: String) {
        let failure = Failure { case, round, message };
        (self.watch)(RunEvent::Failure(&failure));
        self.failures.push(failure);
    }

    /// Shows the rows of the table, if they are shown at all, but never takes more than a small
    /// share of the time for that.
    fn show_rows(&mut self) {
        let before = self.started.elapsed();
        let Some(rows) = &self.rules.rows else { return };
        if before < self.next_rows {
            return;
        }
        let rows = rows(&self.samples);
        (self.watch)(RunEvent::Rows(&rows));
        let after = self.started.elapsed();
        self.next_rows = after + MIN_ROWS_INTERVAL.max((after - before) * MIN_ROWS_FACTOR);
    }

    /// Returns the time that a large ring, which was not measured yet, will take of a budget that
    /// is kept: in ratio to the largest that was measured. Zero where that is not known, and for
    /// all other cases.
    fn expected(&self, case: usize) -> Duration {
        let members = self.members(case);
        if members < LARGE_RING || !self.plan.stopping.fixed_budget {
            return Duration::ZERO;
        }
        // From a ring of a few nothing follows: most of its time is the laps'.
        let (mut largest, mut took) = (LARGE_RING, Duration::ZERO);
        for (number, state) in self.cases.iter().enumerate() {
            let size = self.members(number);
            if !state.took.is_zero() && size >= largest {
                (largest, took) = (size, state.took);
            }
        }
        took.mul_f64(f64::from(members) / f64::from(largest))
    }

    /// Returns the members of a ring; 0 for a trial.
    fn members(&self, case: usize) -> u32 {
        self.plan.ring(case).map_or(0, |ring| ring.members)
    }

    /// Counts a failure. A case at which the machine ran out is not tried again, nor is one that
    /// needs as much. Any other failure costs its round; only a case that keeps failing is given
    /// up.
    fn count_failure(&mut self, case: usize, exhausted: bool) {
        let failed = &self.plan.cases[case];
        for (number, state) in self.cases.iter_mut().enumerate() {
            state.is_given_up |= exhausted && self.plan.cases[number].needs_as_much(failed);
        }
        let state = &mut self.cases[case];
        state.failed_in_a_row += 1;
        state.is_given_up |= state.failed_in_a_row >= MAX_FAILURES;
    }

    fn measure(&mut self, case: usize, round: u32) -> Result<(), WorkerError> {
        let assignment = Assignment {
            case_number: case,
            case: self.plan.cases[case].clone(),
            round,
            batching: self.plan.batching_of(case).clone(),
            unshared_ratio: self.plan.reference.unshared_ratio,
        };
        let patience = assignment.patience(self.limit.saturating_sub(self.spent()));
        let (samples, watch) = (&mut self.samples, &mut *self.watch);
        (self.measure_case)(&assignment, patience, &mut |sample| {
            watch(RunEvent::Sample(&sample));
            samples.push(sample);
        })
    }

    fn is_precise(&mut self) -> bool {
        self.precision = (self.rules.precision)(&self.samples, &self.failures);
        self.precision.is_some_and(|worst| worst <= self.plan.stopping.precision)
    }

    fn spent(&self) -> Duration {
        self.spent_before + self.started.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rundata::experiment::Experiment;
    use rundata::placement::Placement;
    use rundata::plan::Stopping;
    use rundata::ring::RingCase;

    use crate::report::figures::tests::sample;

    /// Samples without a kernel: a hop costs 1000 ns in a solo and 3000 ns in a larger ring, plus
    /// `wobble`.
    struct Fake {
        asked: Vec<(u32, usize)>,
        most_members: u32,
        wobble: u64,
        interrupt_after: usize,
        fail: Vec<(u32, u32)>,
        /// In this round and later ones a ring of so many members does not end in the time that it
        /// is given.
        overdue: Option<(u32, u32)>,
    }

    impl Default for Fake {
        fn default() -> Self {
            Self {
                asked: Vec::new(),
                most_members: u32::MAX,
                wobble: 0,
                interrupt_after: usize::MAX,
                fail: Vec::new(),
                overdue: None,
            }
        }
    }

    impl Fake {
        fn launch(
            &mut self,
            assignment: &Assignment,
            sink: &mut dyn FnMut(Sample),
        ) -> Result<(), WorkerError> {
            let members = assignment.case.ring().map_or(0, |case| case.members);
            if self.asked.len() >= self.interrupt_after {
                return Err(WorkerError::Interrupted);
            }
            self.asked.push((assignment.round, assignment.case_number));
            let is_overdue = |(round, size)| assignment.round >= round && members == size;
            if self.overdue.is_some_and(is_overdue) {
                return Err(WorkerError::Overdue(Duration::from_secs(7)));
            }
            if members > self.most_members {
                let message = "out of members".to_string();
                return Err(WorkerError::Case(CaseFailure { message, exhausted: true }));
            }
            if self.fail.contains(&(assignment.round, members)) {
                let message = "once".to_string();
                return Err(WorkerError::Case(CaseFailure { message, exhausted: false }));
            }
            let turn = self.asked.len() as u64 % 7;
            let ns_per_hop = if members == 1 { 1000 } else { 3000 } + self.wobble * turn;
            let switches = if members == 1 { 0 } else { 1000 };
            let place = (assignment.case_number, assignment.round);
            sink(sample(place, 1000, 1000 * ns_per_hop, switches));
            Ok(())
        }
    }

    fn plan(budget_ns: u64, rounds: Option<u32>) -> Plan {
        let case = |members| RingCase::of_processes(members, Placement::Same { cpu: 1 });
        let stopping =
            Stopping { precision: 0.01, budget_ns, rounds, confidence: 0.95, fixed_budget: false };
        let cases = [2, 4, 8, 16, 32].map(|members| case(members).into()).to_vec();
        Plan {
            seed: 3,
            stopping,
            ..Plan::from_cases::<rundata::case::Case>(Experiment::Ring, cases)
        }
        .with_solos()
    }

    fn run(plan: &Plan, fake: &mut Fake) -> ScheduleOutcome {
        run_from(plan, RoundRules::for_plan(plan), EarlierSessions::default(), fake)
    }

    fn run_from<'a>(
        plan: &'a Plan,
        rules: RoundRules<'a>,
        earlier: EarlierSessions,
        fake: &mut Fake,
    ) -> ScheduleOutcome {
        let mut launch = |assignment: &Assignment, _, sink: &mut dyn FnMut(Sample)| {
            fake.launch(assignment, sink)
        };
        super::run(plan, rules, earlier, &mut launch, &mut |_| {})
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
    fn a_case_that_does_not_end_is_given_up_and_ends_a_run_whose_time_is_over() {
        let mut fake = Fake { overdue: Some((0, 8)), ..Fake::default() };
        let outcome = run(&plan(LONG, Some(3)), &mut fake);
        assert_eq!(outcome.reason, StopReason::RoundsDone);
        assert_eq!(fake.asked.len(), 6 * 3 - 2, "it is tried once");
        let said: Vec<&str> = outcome.failures.iter().map(|one| one.message.as_str()).collect();
        assert_eq!(said, ["the worker did not end within 7 s and was killed"]);

        // One that was measured before is tried as often as after any other failure.
        let mut fake = Fake { overdue: Some((1, 8)), ..Fake::default() };
        let outcome = run(&plan(LONG, Some(6)), &mut fake);
        assert_eq!((outcome.failures.len(), fake.asked.len()), (3, 6 * 6 - 2));

        let mut fake = Fake { overdue: Some((0, 8)), ..Fake::default() };
        let outcome = run(&plan(1, None), &mut fake);
        assert_eq!(outcome.reason, StopReason::BudgetSpent);
        let position = plan(1, None)
            .order(0)
            .iter()
            .position(|case| plan(1, None).ring(*case).is_some_and(|ring| ring.members == 8));
        assert_eq!(Some(fake.asked.len()), position.map(|before| before + 1), "nothing after it");
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

    /// Runs after `spent` by rules by which, of so many samples, the cases `lacking` lack clean
    /// slices.
    fn run_lacking(
        plan: &Plan,
        spent: Duration,
        fake: &mut Fake,
        lacking: impl Fn(usize) -> Vec<usize>,
    ) -> ScheduleOutcome {
        lack_after(plan, EarlierSessions { samples: Vec::new(), spent }, fake, lacking)
    }

    /// Like `run_lacking`, but after samples of an earlier session.
    fn lack_after(
        plan: &Plan,
        earlier: EarlierSessions,
        fake: &mut Fake,
        lacking: impl Fn(usize) -> Vec<usize>,
    ) -> ScheduleOutcome {
        let rules = RoundRules {
            order: Box::new(|start| plan.order(start.round)),
            precision: Box::new(|_, _| None),
            estimate: Box::new(|_| None),
            lacking: Box::new(move |samples: &[Sample]| lacking(samples.len())),
            rows: None,
        };
        run_from(plan, rules, earlier, fake)
    }

    #[test]
    fn a_spent_budget_goes_on_with_what_lacks_clean_slices_up_to_three_times_as_long() {
        let (budget, whole) = (Duration::from_nanos(LONG), plan(LONG, None));
        // One that lacks some for ever is given up after 16 rounds, or three times those that it
        // had.
        for (stored, most) in [(0, 16), (6, 18)] {
            let samples = run(&plan(LONG, Some(stored)), &mut Fake::default()).samples;
            let mut fake = Fake::default();
            let outcome =
                lack_after(&whole, EarlierSessions { samples, spent: budget }, &mut fake, |_| {
                    vec![3]
                });
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
    fn a_fixed_budget_is_not_extended() {
        let mut fixed = plan(LONG, None);
        fixed.stopping.fixed_budget = true;
        assert_eq!((RoundRules::for_plan(&fixed).lacking)(&[]), Vec::<usize>::new());
        let mut fake = Fake::default();
        let earlier = EarlierSessions { samples: Vec::new(), spent: Duration::from_nanos(LONG) };
        let outcome = run_from(&fixed, RoundRules::for_plan(&fixed), earlier, &mut fake);
        assert_eq!((outcome.reason, fake.asked.len()), (StopReason::BudgetSpent, 6));
    }

    /// Of a budget that is kept, and is spent: one is measured, which says what the others take.
    #[test]
    fn large_rings_that_do_not_fit_a_kept_budget_are_not_begun() {
        let case = |members| RingCase::of_processes(members, Placement::Same { cpu: 1 });
        let large = |is_kept: bool| {
            let mut plan = plan(LONG, Some(1));
            plan.cases.extend([300, 600, 1200].map(|members| case(members).into()));
            plan.stopping.fixed_budget = is_kept;
            let mut fake = Fake::default();
            let earlier =
                EarlierSessions { samples: Vec::new(), spent: Duration::from_nanos(LONG) };
            run_from(&plan, RoundRules::for_plan(&plan), earlier, &mut fake);
            let members = |case: &usize| plan.ring(*case).map_or(0, |of| of.members);
            let all: Vec<u32> = fake.asked.iter().map(|(_, case)| members(case)).collect();
            let [small, large] = [true, false]
                .map(|is| all.iter().filter(|members| (**members < LARGE_RING) == is).count());
            (small, large)
        };
        assert_eq!([large(true), large(false)], [(6, 1), (6, 3)]);
    }

    #[test]
    fn a_figure_is_there_after_the_first_round_and_has_its_interval_at_the_first_look() {
        let plan = plan(LONG, Some(9));
        let mut fake = Fake { wobble: 30, ..Fake::default() };
        let mut estimates = Vec::new();
        let mut launch = |assignment: &Assignment, _, sink: &mut dyn FnMut(Sample)| {
            fake.launch(assignment, sink)
        };
        super::run(
            &plan,
            RoundRules::for_plan(&plan),
            EarlierSessions::default(),
            &mut launch,
            &mut |event| {
                if let RunEvent::Case(RunState { round, estimate, .. }) = event {
                    estimates.push((round, estimate));
                }
            },
        );
        let at = |of: u32| {
            estimates.iter().find(|(round, _)| *round == of).and_then(|(_, found)| *found)
        };
        assert_eq!(at(0), None);
        // 3,000 ns less 1,000, and the wobble.
        let first = at(1).unwrap();
        assert!((1800.0..2200.0).contains(&first.value) && first.interval().is_none(), "{first:?}");
        assert_ne!(at(7), Some(first), "after each round up to the first look");
        assert!(at(8).unwrap().interval().is_some());
    }

    #[test]
    fn a_round_may_be_for_some_cases_only() {
        let (plan, mut fake) = (plan(LONG, Some(2)), Fake::default());
        let order = |start: &RoundStart| match start.round {
            1 => vec![2, 4],
            round => plan.order(round),
        };
        let rules = RoundRules { order: Box::new(order), ..RoundRules::for_plan(&plan) };
        run_from(&plan, rules, EarlierSessions::default(), &mut fake);
        let mut second: Vec<usize> =
            fake.asked.iter().filter(|(round, _)| *round == 1).map(|(_, case)| *case).collect();
        second.sort_unstable();
        assert_eq!((fake.asked.len(), second), (8, vec![2, 4]));
    }

    #[test]
    fn a_round_for_cases_that_were_given_up_does_not_end_the_run() {
        let plan = plan(LONG, Some(MAX_FAILURES + 2));
        let fail = (0..MAX_FAILURES + 2).map(|round| (round, 4)).collect();
        let mut fake = Fake { fail, ..Fake::default() };
        let order = |start: &RoundStart| match start.round {
            round @ 0..MAX_FAILURES => plan.order(round),
            _ => vec![2],
        };
        let rules = RoundRules { order: Box::new(order), ..RoundRules::for_plan(&plan) };
        let outcome = run_from(&plan, rules, EarlierSessions::default(), &mut fake);
        assert_eq!(outcome.reason, StopReason::RoundsDone);
    }

    /// Rings as one experiment, and working sets that each take a second as another.
    fn whole_plan(budget_ns: u64, rounds: Option<u32>) -> Plan {
        let rings = plan(budget_ns, rounds);
        let set = |bytes| {
            let work = rundata::ring::Work::new(bytes, 64, rundata::ring::AccessKind::Read).ok();
            RingCase { work, ..RingCase::of_processes(2, Placement::Same { cpu: 1 }) }
        };
        let mut sets = Plan::from_cases(Experiment::Cost, [4096, 8192].map(set));
        sets.batching.ring.triples = Some(4);
        let stopping = rings.stopping.clone();
        Plan::from_parts(vec![(rings, Vec::new()), (sets, Vec::new())], 3, stopping)
    }

    #[test]
    fn parts_are_measured_in_the_same_rounds_each_in_its_own_way() {
        let (plan, mut fake) = (whole_plan(LONG, Some(3)), Fake::default());
        let mut triples = vec![None; plan.cases.len()];
        let mut launch = |assignment: &Assignment, _, sink: &mut dyn FnMut(Sample)| {
            triples[assignment.case_number] = assignment.batching.ring.triples;
            fake.launch(assignment, sink)
        };
        let start = EarlierSessions::default();
        let outcome =
            super::run(&plan, RoundRules::for_plan(&plan), start, &mut launch, &mut |_| {});
        assert_eq!(outcome.reason, StopReason::RoundsDone);
        assert!(fake.asked[..8].iter().all(|(round, _)| *round == 0), "{:?}", fake.asked);
        assert_eq!(triples, [None, None, None, None, None, None, Some(4), Some(4)]);
        let first: Vec<usize> = fake.asked[..2].iter().map(|(_, case)| *case).collect();
        assert!(first.contains(&0) && first.contains(&1), "solo and ring of two: {first:?}");
    }

    #[test]
    fn of_several_experiments_narrow_cases_pause_and_a_failing_one_ends_no_other() {
        let mut plan = whole_plan(LONG, Some(36));
        plan.stopping.precision = 0.02;
        // The working sets have no interval: their samples are no triples.
        let fail = (0..36).map(|round| (round, 32)).collect();
        let mut fake = Fake { fail, ..Fake::default() };
        let outcome = run(&plan, &mut fake);
        assert_eq!(outcome.reason, StopReason::RoundsDone);
        let asked = |round: u32| -> BTreeSet<usize> {
            let of_round = fake.asked.iter().filter(|(of, _)| *of == round);
            of_round.map(|(_, case)| *case).collect()
        };
        // Behind the look at round 27 the rings pause, but for each fourth round.
        assert_eq!(asked(29), BTreeSet::from([6, 7]));
        assert_eq!(asked(32), BTreeSet::from([0, 1, 2, 3, 4, 6, 7]));
        let failed = fake.asked.iter().filter(|(_, case)| *case == 5).count();
        assert_eq!(failed, MAX_FAILURES as usize, "given up");
    }

    #[test]
    fn rows_are_made_only_where_somebody_waits_for_them() {
        let plan = whole_plan(LONG, Some(2));
        let mut fake = Fake::default();
        let mut shown = Vec::new();
        let mut launch = |assignment: &Assignment, _, sink: &mut dyn FnMut(Sample)| {
            fake.launch(assignment, sink)
        };
        let count = |samples: &[Sample]| vec![("samples".to_string(), samples.len().to_string())];
        let rules = RoundRules { rows: Some(Box::new(count)), ..RoundRules::for_plan(&plan) };
        super::run(&plan, rules, EarlierSessions::default(), &mut launch, &mut |event| {
            if let RunEvent::Rows(rows) = event {
                shown.extend(rows.to_vec());
            }
        });
        // At once behind the first case, and later not with each.
        assert_eq!(shown[0], ("samples".to_string(), "1".to_string()));
        assert!(shown.len() < 16, "{shown:?}");
        assert!(RoundRules::for_plan(&plan).rows.is_none());
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
        let samples = run(&plan, &mut fake).samples;
        let earlier = EarlierSessions { samples, spent: Duration::ZERO };
        let mut fake = Fake { wobble: 300, ..Fake::default() };
        let outcome = run_from(&plan, RoundRules::for_plan(&plan), earlier, &mut fake);
        assert_eq!(fake.asked.first().map(|(round, _)| *round), Some(2));
        assert_eq!(outcome.samples.len(), 9 + 5 * 6);
    }
}
