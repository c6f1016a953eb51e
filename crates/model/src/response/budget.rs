//! The response budget: what the way from a timer's interrupt to the process that waits for it should
//! take by its parts, beside what it was measured to take.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::by_round::ByRound;
use super::loops::Figures;
use super::memorandum;
use super::signals::ring_switch_ns;
use super::split::{Half, Split};
use crate::case::Policy;
use crate::estimate::Estimate;
use crate::trial::loops::GETUID;
use crate::trial::wakeup::Load;
use crate::trial::{Case, Trial, Trials, gaps, wakeup};

/// The link whose switch stands in the budget: c1 of a pipe.
const LINK: &str = super::links::REFERENCE;

/// The parts, in nanoseconds. Each is absent where it was not measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Budget {
    /// Entry and handler: the time that a timer tick takes from a running program, median of a round,
    /// over rounds.
    pub entry_and_handler_ns: Option<Estimate>,
    /// Switch to the process that waits: a counted switch above solo of the ring of two by pipe, its
    /// wake-up included.
    pub switch_ns: Option<Estimate>,
    /// Return to that process: a fourth of a system call, as the memorandum takes it.
    pub return_ns: Option<Estimate>,
    /// The sum of the three, within rounds.
    pub sum_ns: Option<Estimate>,
    /// Each condition in which wake-ups were measured.
    pub against: Vec<Against>,
}

/// Measured wake-ups beside the sum.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Against {
    /// Number of the case in the plan.
    pub case: usize,
    /// The sleeper's policy.
    pub policy: Policy,
    /// What else ran on the CPU.
    pub load: Load,
    /// Median lateness of a round, over rounds, in nanoseconds.
    pub measured_ns: Option<Estimate>,
    /// Measured less the sum, within rounds, in nanoseconds. Signed.
    pub unexplained_ns: Option<Estimate>,
}

/// The parts by round.
struct Parts {
    entry_and_handler: ByRound,
    switch: ByRound,
    back: ByRound,
}

impl Parts {
    fn of(split: &Split) -> Self {
        let call = Figures::new(&split.trials).call_ns(GETUID);
        Self {
            entry_and_handler: tick_ns(&split.trials),
            switch: ring_switch_ns(&split.rings, LINK),
            back: ByRound::together([&call], |[call]| memorandum::interrupt_latency(call)),
        }
    }

    fn sum(&self) -> ByRound {
        let parts = [&self.entry_and_handler, &self.switch, &self.back];
        ByRound::together(parts, |parts| parts.iter().sum())
    }
}

/// The tick's gaps of a round, of the first case in which a tick was found.
fn tick_ns(trials: &Half<Trials>) -> ByRound {
    let of_case = |case| gaps::tick_by_round(&trials.plan, &trials.samples, case);
    let mut by_case = (0..trials.plan.cases.len()).map(of_case);
    by_case.find(|ticks| !ticks.is_empty()).unwrap_or_default().into_iter().collect()
}

fn late_ns(trials: &Half<Trials>, case: usize) -> ByRound {
    let samples = trials.samples.iter().filter(|sample| sample.case == case);
    samples.filter_map(|sample| Some((sample.round, wakeup::median_ns(sample)?))).collect()
}

/// The budget; absent where no wake-up was measured.
pub(super) fn find(split: &Split) -> Option<Budget> {
    let trials = &split.trials;
    let wakeups: Vec<(usize, &Case, Load)> = trials
        .plan
        .cases
        .iter()
        .enumerate()
        .filter_map(|(number, case)| match &case.trial {
            Trial::Wakeup(wakeup) => Some((number, case, wakeup.load)),
            _ => None,
        })
        .collect();
    if wakeups.is_empty() {
        return None;
    }
    let parts = Parts::of(split);
    let sum = parts.sum();
    let estimate = |figures: &ByRound| figures.estimate(&trials.plan);
    let against = |(number, case, load): (usize, &Case, Load)| {
        let late = late_ns(trials, number);
        Against {
            case: trials.numbers[number],
            policy: case.policy,
            load,
            measured_ns: estimate(&late),
            unexplained_ns: estimate(&ByRound::together([&late, &sum], |[late, sum]| late - sum)),
        }
    };
    Some(Budget {
        entry_and_handler_ns: estimate(&parts.entry_and_handler),
        switch_ns: estimate(&parts.switch),
        return_ns: estimate(&parts.back),
        sum_ns: estimate(&sum),
        against: wakeups.into_iter().map(against).collect(),
    })
}
