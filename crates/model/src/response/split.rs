//! A run's rings and its trials, each as a run of its own instrument: what is said of rings and of
//! trials elsewhere is said of them here.

use std::collections::BTreeMap;

use super::{Case, Response, Sample};
use crate::instrument::Instrument;
use crate::plan::Plan;
use crate::ring::Ring;
use crate::run::{Failure, Header, Run};
use crate::speed::{Level, Reference, levels, quanta_by_place};
use crate::trial::{Trials, quanta_by_cpu};

/// One instrument's half of a run. Its cases are numbered anew.
#[derive(Clone, Debug, PartialEq)]
pub struct Half<I: Instrument> {
    /// Its cases.
    pub plan: Plan<I>,
    /// The number in the whole plan of each of its cases.
    pub numbers: Vec<usize>,
    /// Their samples.
    pub samples: Vec<I::Sample>,
    /// Their failures.
    pub failures: Vec<Failure>,
}

/// Both halves.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    /// The rings.
    pub rings: Half<Ring>,
    /// The trials.
    pub trials: Half<Trials>,
}

impl Split {
    /// Takes a run apart. Samples that are not of their case's instrument are passed over.
    pub fn of(plan: &Plan<Response>, samples: &[Sample], failures: &[Failure]) -> Self {
        let mut rings = Half::empty(plan, plan.batching.ring.clone());
        let mut trials = Half::empty(plan, plan.batching.trial.clone());
        for (number, case) in plan.cases.iter().enumerate() {
            match case {
                Case::Ring(case) => rings.add(number, case),
                Case::Trial(case) => trials.add(number, case),
            }
        }
        for sample in samples {
            match sample {
                Sample::Ring(sample) => {
                    let moved = |case| crate::sample::Sample { case, ..sample.clone() };
                    rings.samples.extend(rings.new_number(sample.case).map(moved));
                }
                Sample::Trial(sample) => {
                    let moved = |case| crate::trial::Sample { case, ..sample.clone() };
                    trials.samples.extend(trials.new_number(sample.case).map(moved));
                }
            }
        }
        rings.take_failures(failures);
        trials.take_failures(failures);
        let mut split = Self { rings, trials };
        split.share_level(&plan.reference);
        split
    }

    /// The levels that the quanta of both halves together speak of, by the CPUs that they ran on.
    pub fn levels(&self, reference: &Reference) -> BTreeMap<Vec<u32>, Level> {
        let Self { rings, trials } = self;
        let mut quanta = quanta_by_place(&rings.plan.cases, rings.samples.iter());
        for (place, of_trials) in quanta_by_cpu(&trials.plan, &trials.samples) {
            quanta.entry(place).or_default().add(of_trials);
        }
        levels(&quanta, reference)
    }

    /// Both halves ran on the same CPU: what they say of it together is known to each of them.
    fn share_level(&mut self, reference: &Reference) {
        let levels = self.levels(reference);
        if let [level] = levels.values().collect::<Vec<_>>()[..] {
            let unshared_ratio = Some(level.unshared_ratio);
            let shared = Reference { unshared_ratio, established: level.established, ..*reference };
            (self.rings.plan.reference, self.trials.plan.reference) = (shared, shared);
        }
    }

    /// The widest relative half-width in both halves; absent as long as a case has no interval.
    pub fn worst_precision(&self) -> Option<f64> {
        let widest = [self.rings.worst_precision(), self.trials.worst_precision()];
        let asked = [self.rings.has_open_cases(), self.trials.has_open_cases()];
        let of_those = widest.into_iter().zip(asked).filter(|(_, is_open)| *is_open);
        let widths: Option<Vec<f64>> = of_those.map(|(widest, _)| widest).collect();
        widths?.into_iter().reduce(f64::max)
    }
}

impl<I: Instrument> Half<I> {
    fn empty(whole: &Plan<Response>, batching: I::Batching) -> Self {
        let plan = Plan {
            experiment: whole.experiment.clone(),
            cases: Vec::new(),
            seed: whole.seed,
            batching,
            stopping: whole.stopping.clone(),
            reference: whole.reference,
        };
        Self { plan, numbers: Vec::new(), samples: Vec::new(), failures: Vec::new() }
    }

    fn add(&mut self, number: usize, case: &I::Case) {
        self.plan.cases.push(case.clone());
        self.numbers.push(number);
    }

    /// The number here of a case of the whole plan.
    pub fn new_number(&self, case: usize) -> Option<usize> {
        self.numbers.binary_search(&case).ok()
    }

    fn take_failures(&mut self, failures: &[Failure]) {
        let moved = |failure: &Failure| {
            Some(Failure { case: self.new_number(failure.case)?, ..failure.clone() })
        };
        self.failures = failures.iter().filter_map(moved).collect();
    }

    fn has_open_cases(&self) -> bool {
        let is_failed = |case: usize| self.failures.iter().any(|failure| failure.case == case);
        (0..self.plan.cases.len()).any(|case| !is_failed(case))
    }

    fn worst_precision(&self) -> Option<f64> {
        I::worst_precision(&self.plan, &self.samples, &self.failures)
    }

    /// The half as a run.
    pub fn into_run(self, header: &Header<Response>) -> Run<I> {
        let Header {
            schema,
            run,
            started,
            invocation,
            build,
            machine,
            notices,
            session,
            launch,
            ..
        } = header.clone();
        let header = Header {
            schema,
            run,
            started,
            invocation,
            build,
            plan: self.plan,
            machine,
            notices,
            session,
            launch,
        };
        let (samples, failures) = (self.samples, self.failures);
        Run { samples, failures, ..Run::new(header) }
    }
}
