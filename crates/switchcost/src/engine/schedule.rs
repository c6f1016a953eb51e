//! Rounds: every case once in each, in shuffled order, until the figures are precise enough or the
//! time is spent.

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

/// What happens while the rounds go on.
pub(crate) enum RunEvent<'a> {
    /// A case is about to be measured.
    Case(RunState),
    Sample(&'a Sample),
    /// A worker has ended: nothing is being measured.
    Pause,
    /// A case cannot be measured.
    Failure(&'a Failure),
    /// What the run says by now, a row a figure: what it is of, and the figure in words.
    Rows(&'a [(String, String)]),
}

/// How far a run is before a case.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunState {
    /// Number of the coming case.
    pub(crate) case: usize,
    /// From 0.
    pub(crate) round: u32,
    /// Time spent measuring.
    pub(crate) spent: Duration,
    /// Widest relative half-width at the last look.
    pub(crate) precision: Option<f64>,
    /// What the run says so far.
    pub(crate) figure: Option<Estimate>,
}

/// Where a run stands before a round.
pub(crate) struct RoundStart<'s> {
    samples: &'s [Sample],
    pub(crate) round: u32,
    /// The time that each case has taken so far.
    spent: &'s [Duration],
    /// Cases that failed so often that they are not tried again.
    given_up: &'s BTreeSet<usize>,
}

/// Numbers of the cases of a round, in their order.
type Order<'a> = dyn FnMut(&RoundStart) -> Vec<usize> + 'a;
type Precision<'a> = dyn Fn(&[Sample], &[Failure]) -> Option<f64> + 'a;
type Figure<'a> = dyn Fn(&[Sample]) -> Option<Estimate> + 'a;
type Lacking<'a> = dyn Fn(&[Sample]) -> Vec<usize> + 'a;
type Rows<'a> = dyn Fn(&[Sample]) -> Vec<(String, String)> + 'a;

/// Which cases a round has, and by what the run may stop for being precise.
pub(crate) struct RoundRules<'a> {
    pub(crate) order: Box<Order<'a>>,
    /// The widest relative half-width; absent as long as something has no interval.
    pub(crate) precision: Box<Precision<'a>>,
    /// What the run says so far, for whoever waits for it. Asked for at the same times, and after
    /// each of the first rounds.
    pub(crate) figure: Box<Figure<'a>>,
    /// Numbers of the cases that have too few clean slices, for whose sake the budget is extended.
    pub(crate) lacking: Box<Lacking<'a>>,
    /// The rows of the table so far, for whoever waits for them; absent where nobody does.
    pub(crate) rows: Option<Box<Rows<'a>>>,
}

impl<'a> RoundRules<'a> {
    /// The plan's own.
    pub(crate) fn of(plan: &'a Plan) -> Self {
        if !plan.parts.is_empty() {
            return Self { order: by_turns(plan), ..Self::of_experiment(plan) };
        }
        Self::of_experiment(plan)
    }

    fn of_experiment(plan: &'a Plan) -> Self {
        let order = move |start: &RoundStart| {
            let mut order = plan.order(start.round);
            if let Some(focus) = interim::focused_cases(plan, start.samples, start.round) {
                order.retain(|case| focus.contains(case));
            }
            order
        };
        Self {
            order: Box::new(order),
            precision: Box::new(move |samples, failed| {
                interim::worst_precision(plan, samples, failed)
            }),
            figure: Box::new(move |samples| interim::interim_estimate(plan, samples)),
            lacking: Box::new(move |samples| match plan.stopping.fixed_budget {
                true => Vec::new(),
                false => interim::cases_without_full_speed(plan, samples),
            }),
            rows: None,
        }
    }
}

/// The order of a plan of several experiments: cases that are narrow enough pause, as looked at at
/// the same rounds at which the run may stop, and no experiment takes the time of the others.
fn by_turns(plan: &Plan) -> Box<Order<'_>> {
    let mut paused: Option<BTreeSet<usize>> = None;
    Box::new(move |start| {
        let round = start.round;
        // A run that goes on is looked at before its first round.
        if is_interim_check(round) || (paused.is_none() && round > MIN_CLEAN_ROUNDS) {
            paused = Some(interim::pausable_cases(plan, start.samples));
        }
        let spent_ns: Vec<u64> = start.spent.iter().copied().map(nanoseconds).collect();
        // A case that is not tried again holds no turn for the others of its kind.
        let mut paused = paused.clone().unwrap_or_default();
        paused.extend(start.given_up);
        interim::cases_of_round(plan, round, &paused, &spent_ns)
    })
}

/// Runs the rounds of a plan.
struct Schedule<'a> {
    plan: &'a Plan,
    course: RoundRules<'a>,
    launch: &'a mut MeasureCase<'a>,
    watch: &'a mut dyn FnMut(RunEvent<'_>),
    samples: Vec<Sample>,
    failures: Vec<Failure>,
    spent_before: Duration,
    started: Instant,
    precision: Option<f64>,
    figure: Option<Estimate>,
    cases: Vec<CaseState>,
    /// The time that each case has taken in this session.
    took: Vec<Duration>,
    /// When the rows are asked for next.
    next_rows: Duration,
    /// Where the budget ends: later than the plan's while clean slices are missing.
    limit: Duration,
    /// The cases that are still measured beyond the plan's budget.
    only: Option<BTreeSet<usize>>,
    /// The most rounds of each case, once the plan's budget is spent.
    most_rounds: Option<Vec<usize>>,
}

/// What is known of a case beside its samples.
#[derive(Clone, Default)]
struct CaseState {
    /// The last time.
    took: Duration,
    failed_in_a_row: u32,
    is_given_up: bool,
}

/// So many rounds are never too many for a case: twice those that a figure at full speed takes.
const LEAST_ROUNDS: usize = 2 * MIN_CLEAN_ROUNDS as usize;

/// Rows are shown at most once in this time.
const ROWS_EVERY: Duration = Duration::from_millis(500);

/// And only after so many times as long as it took to make them.
const ROWS_SHARE: u32 = 25;

/// Members from which on a ring's time goes with its size.
const LARGE: u32 = 256;

/// Failures in a row, without running out of anything, after which a case is given up.
const MOST_FAILURES: u32 = 3;

/// How a schedule ended.
#[derive(Debug)]
pub(crate) struct ScheduleOutcome {
    /// All samples, those of earlier sessions first.
    pub(crate) samples: Vec<Sample>,
    /// Cases that could not be measured.
    pub(crate) failures: Vec<Failure>,
    pub(crate) reason: StopReason,
    /// Time spent measuring, earlier sessions included.
    pub(crate) spent: Duration,
}

/// Runs rounds until a reason to stop comes up, after the samples of earlier sessions, which took
/// `spent_before`.
pub(crate) fn run<'a>(
    plan: &'a Plan,
    course: RoundRules<'a>,
    (samples, spent_before): (Vec<Sample>, Duration),
    launch: &'a mut MeasureCase<'a>,
    watch: &'a mut dyn FnMut(RunEvent<'_>),
) -> ScheduleOutcome {
    let schedule = Schedule {
        plan,
        course,
        launch,
        watch,
        samples,
        failures: Vec::new(),
        spent_before,
        started: Instant::now(),
        precision: None,
        figure: None,
        cases: vec![CaseState::default(); plan.cases.len()],
        took: vec![Duration::ZERO; plan.cases.len()],
        next_rows: Duration::ZERO,
        limit: Duration::from_nanos(plan.stopping.budget_ns),
        only: None,
        most_rounds: None,
    };
    schedule.run()
}

impl Schedule<'_> {
    fn run(mut self) -> ScheduleOutcome {
        let last = self.samples.iter().map(Sample::round).max();
        let mut round = last.map_or(0, |last| last.saturating_add(1));
        let reason = loop {
            if self.plan.stopping.rounds.is_some_and(|most| round >= most) {
                break StopReason::RoundsDone;
            }
            match self.round(round) {
                Err(StopReason::BudgetSpent) if self.extend() => {}
                Err(reason) => break reason,
                Ok(()) => {}
            }
            round += 1;
            // Nobody waits for a first figure longer than it takes.
            if round < MIN_CLEAN_ROUNDS || is_interim_check(round) {
                self.figure = (self.course.figure)(&self.samples);
            }
            if is_interim_check(round) && self.is_precise() {
                break StopReason::Precise;
            }
        };
        let spent = self.spent();
        ScheduleOutcome { samples: self.samples, failures: self.failures, reason, spent }
    }

    /// One round, or a reason to stop.
    fn round(&mut self, round: u32) -> Result<(), StopReason> {
        if self.only.is_some() && !self.extend() {
            return Err(StopReason::BudgetSpent);
        }
        let mut tried = false;
        let given_up = self.cases.iter().enumerate().filter(|(_, case)| case.is_given_up);
        let given_up: BTreeSet<usize> = given_up.map(|(number, _)| number).collect();
        let start =
            RoundStart { samples: &self.samples, round, spent: &self.took, given_up: &given_up };
        for case in (self.course.order)(&start) {
            tried |= self.case(case, round)?;
        }
        // A round for cases that were given up is one for all: time is left.
        if !tried && self.only.is_none() {
            for case in self.plan.order(round) {
                tried |= self.case(case, round)?;
            }
        }
        match self.cases.iter().all(|case| case.is_given_up) {
            true => Err(StopReason::Failed),
            false if !tried => Err(StopReason::BudgetSpent),
            false => Ok(()),
        }
    }

    /// Goes on beyond the plan's budget, up to [`MAX_BUDGET_FACTOR`] times as long, with the cases that
    /// have too few clean slices, each with at most as many times the rounds that it had when the
    /// budget was spent: one that no time would help does not take the rest for itself. Asked for
    /// before each round then.
    fn extend(&mut self) -> bool {
        self.limit = Duration::from_nanos(self.plan.stopping.most_budget_ns());
        let measured = self.samples.iter().map(|one| (one.case(), one.round()));
        let mut rounds = vec![0; self.cases.len()];
        BTreeSet::from_iter(measured).into_iter().for_each(|(case, _)| rounds[case] += 1);
        let most = self.most_rounds.get_or_insert_with(|| {
            let most = |count: &usize| (count * MAX_BUDGET_FACTOR as usize).max(LEAST_ROUNDS);
            rounds.iter().map(most).collect()
        });
        let mut lacking = BTreeSet::from_iter((self.course.lacking)(&self.samples));
        // One that never gave a sample would give none now.
        let may_go_on = |case: usize| (1..most[case]).contains(&rounds[case]);
        lacking.retain(|case| !self.cases[*case].is_given_up && may_go_on(*case));
        let extends = !lacking.is_empty() && self.spent() < self.limit;
        self.only = Some(lacking);
        extends
    }

    /// Whether the case was tried: not where it was given up or does not fit into the budget.
    fn case(&mut self, case: usize, round: u32) -> Result<bool, StopReason> {
        let is_left_out = self.only.as_ref().is_some_and(|only| !only.contains(&case));
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
        let Self { precision, figure, .. } = *self;
        (self.watch)(RunEvent::Case(RunState { case, round, spent, precision, figure }));
        let result = self.measure(case, round);
        let took = self.spent().saturating_sub(spent);
        self.cases[case].took = took;
        self.took[case] += took;
        (self.watch)(RunEvent::Pause);
        self.show_rows();
        match result {
            Ok(()) => self.cases[case].failed_in_a_row = 0,
            Err(WorkerError::Interrupted) => return Err(StopReason::Interrupted),
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

    /// Shows the rows of the table, if somebody waits for them, but never takes more than a small
    /// share of the time for that.
    fn show_rows(&mut self) {
        let before = self.started.elapsed();
        let Some(rows) = self.course.rows.as_ref().filter(|_| before >= self.next_rows) else {
            return;
        };
        let rows = rows(&self.samples);
        (self.watch)(RunEvent::Rows(&rows));
        let after = self.started.elapsed();
        self.next_rows = after + ROWS_EVERY.max((after - before) * ROWS_SHARE);
    }

    /// What a large ring will take that was not measured yet, of a budget that is kept: in ratio to
    /// the largest that was. Nothing where that is not known, and of all other cases.
    fn expected(&self, case: usize) -> Duration {
        let members = |case: usize| self.plan.ring(case).map_or(0, |ring| ring.members);
        let own = members(case);
        if own < LARGE || !self.plan.stopping.fixed_budget {
            return Duration::ZERO;
        }
        // From a ring of a few nothing follows: most of its time is the laps'.
        let measured = self.cases.iter().enumerate();
        let measured =
            measured.filter(|(other, of)| !of.took.is_zero() && members(*other) >= LARGE);
        let largest = measured.max_by_key(|(other, _)| members(*other));
        let ratio = |other: usize| f64::from(own) / f64::from(members(other));
        largest.map_or(Duration::ZERO, |(other, of)| of.took.mul_f64(ratio(other)))
    }

    /// A case at which the machine ran out is not tried again, nor is one that needs as much. Any
    /// other failure costs its round; only a case that keeps failing is given up.
    fn count_failure(&mut self, case: usize, exhausted: bool) {
        let failed = &self.plan.cases[case];
        for (other, tried) in self.plan.cases.iter().zip(&mut self.cases) {
            tried.is_given_up |= exhausted && other.needs_as_much(failed);
        }
        let tried = &mut self.cases[case];
        tried.failed_in_a_row += 1;
        tried.is_given_up |= tried.failed_in_a_row >= MOST_FAILURES;
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
        (self.launch)(&assignment, patience, &mut |sample| {
            watch(RunEvent::Sample(&sample));
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
    use rundata::experiment::Experiment;
    use rundata::placement::Placement;
    use rundata::plan::Stopping;
    use rundata::ring::RingCase;

    use crate::report::figures::tests::sample;

    /// Samples without a kernel: a hop costs 1000 ns alone and 3000 ns in company, plus `wobble`.
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
        run_from(plan, RoundRules::of(plan), (Vec::new(), Duration::ZERO), fake)
    }

    fn run_from<'a>(
        plan: &'a Plan,
        course: RoundRules<'a>,
        earlier: (Vec<Sample>, Duration),
        fake: &mut Fake,
    ) -> ScheduleOutcome {
        let mut launch = |assignment: &Assignment, _, sink: &mut dyn FnMut(Sample)| {
            fake.launch(assignment, sink)
        };
        super::run(plan, course, earlier, &mut launch, &mut |_| {})
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

    /// Runs after `spent` on a course on which `lacking` of so many samples lacks clean slices.
    fn run_lacking(
        plan: &Plan,
        spent: Duration,
        fake: &mut Fake,
        lacking: impl Fn(usize) -> Vec<usize>,
    ) -> ScheduleOutcome {
        lack_after(plan, (Vec::new(), spent), fake, lacking)
    }

    /// The same after samples of an earlier session.
    fn lack_after(
        plan: &Plan,
        earlier: (Vec<Sample>, Duration),
        fake: &mut Fake,
        lacking: impl Fn(usize) -> Vec<usize>,
    ) -> ScheduleOutcome {
        let course = RoundRules {
            order: Box::new(|start| plan.order(start.round)),
            precision: Box::new(|_, _| None),
            figure: Box::new(|_| None),
            lacking: Box::new(move |samples: &[Sample]| lacking(samples.len())),
            rows: None,
        };
        run_from(plan, course, earlier, fake)
    }

    #[test]
    fn a_spent_budget_goes_on_with_what_lacks_clean_slices_up_to_three_times_as_long() {
        let (budget, whole) = (Duration::from_nanos(LONG), plan(LONG, None));
        // One that lacks some for ever is given up after 16 rounds, or three times those that it
        // had.
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
    fn a_fixed_budget_is_not_extended() {
        let mut fixed = plan(LONG, None);
        fixed.stopping.fixed_budget = true;
        assert_eq!((RoundRules::of(&fixed).lacking)(&[]), Vec::<usize>::new());
        let mut fake = Fake::default();
        let spent = (Vec::new(), Duration::from_nanos(LONG));
        let outcome = run_from(&fixed, RoundRules::of(&fixed), spent, &mut fake);
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
            let spent = (Vec::new(), Duration::from_nanos(LONG));
            run_from(&plan, RoundRules::of(&plan), spent, &mut fake);
            let members = |case: &usize| plan.ring(*case).map_or(0, |of| of.members);
            let all: Vec<u32> = fake.asked.iter().map(|(_, case)| members(case)).collect();
            let [small, large] = [true, false]
                .map(|is| all.iter().filter(|members| (**members < LARGE) == is).count());
            (small, large)
        };
        assert_eq!([large(true), large(false)], [(6, 1), (6, 3)]);
    }

    #[test]
    fn a_figure_is_there_after_the_first_round_and_has_its_interval_at_the_first_look() {
        let plan = plan(LONG, Some(9));
        let mut fake = Fake { wobble: 30, ..Fake::default() };
        let mut figures = Vec::new();
        let mut launch = |assignment: &Assignment, _, sink: &mut dyn FnMut(Sample)| {
            fake.launch(assignment, sink)
        };
        super::run(
            &plan,
            RoundRules::of(&plan),
            (Vec::new(), Duration::ZERO),
            &mut launch,
            &mut |of| {
                if let RunEvent::Case(RunState { round, figure, .. }) = of {
                    figures.push((round, figure));
                }
            },
        );
        let at = |of: u32| figures.iter().find(|(round, _)| *round == of).and_then(|(_, f)| *f);
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
        let course = RoundRules { order: Box::new(order), ..RoundRules::of(&plan) };
        run_from(&plan, course, (Vec::new(), Duration::ZERO), &mut fake);
        let mut second: Vec<usize> =
            fake.asked.iter().filter(|(round, _)| *round == 1).map(|(_, case)| *case).collect();
        second.sort_unstable();
        assert_eq!((fake.asked.len(), second), (8, vec![2, 4]));
    }

    #[test]
    fn a_round_for_cases_that_were_given_up_does_not_end_the_run() {
        let plan = plan(LONG, Some(MOST_FAILURES + 2));
        let fail = (0..MOST_FAILURES + 2).map(|round| (round, 4)).collect();
        let mut fake = Fake { fail, ..Fake::default() };
        let order = |start: &RoundStart| match start.round {
            round @ 0..MOST_FAILURES => plan.order(round),
            _ => vec![2],
        };
        let course = RoundRules { order: Box::new(order), ..RoundRules::of(&plan) };
        let outcome = run_from(&plan, course, (Vec::new(), Duration::ZERO), &mut fake);
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
        let start = (Vec::new(), Duration::ZERO);
        let outcome = super::run(&plan, RoundRules::of(&plan), start, &mut launch, &mut |_| {});
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
        assert_eq!(failed, MOST_FAILURES as usize, "given up");
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
        let course = RoundRules { rows: Some(Box::new(count)), ..RoundRules::of(&plan) };
        super::run(&plan, course, (Vec::new(), Duration::ZERO), &mut launch, &mut |event| {
            if let RunEvent::Rows(rows) = event {
                shown.extend(rows.to_vec());
            }
        });
        // At once behind the first case, and later not with each.
        assert_eq!(shown[0], ("samples".to_string(), "1".to_string()));
        assert!(shown.len() < 16, "{shown:?}");
        assert!(RoundRules::of(&plan).rows.is_none());
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
        let outcome = run_from(&plan, RoundRules::of(&plan), (earlier, Duration::ZERO), &mut fake);
        assert_eq!(fake.asked.first().map(|(round, _)| *round), Some(2));
        assert_eq!(outcome.samples.len(), 9 + 5 * 6);
    }
}
