//! `switchcost response`: what a kernel's response time is made of, measured in one run. Some of its
//! cases are rings, others trials; the instrument holds both, so that one schedule interleaves them and
//! every figure that needs several is paired within rounds.

mod budget;
mod links;
mod loops;
pub mod memorandum;
mod record;
mod signals;
mod split;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::trial::ByRound;
pub use budget::{Against, Budget};
pub use links::LinkCost;
pub use loops::LoopCost;
pub(crate) use record::noise_of;
pub use record::{Record, Summary};
pub use signals::{Account, Signals};
pub use split::{Half, Split};

use crate::case;
use crate::instrument::{Instrument, Numbered};
use crate::plan::{self, Plan};
use crate::ring::Ring;
use crate::run::{Failure, Run};
use crate::sample;
use crate::speed::Level;
use crate::trial::{self, Repeats, Trials};

/// The experiment's name.
pub const NAME: &str = "response";

/// The instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Response;

/// A point of the grid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ResponseCase")]
pub enum Case {
    /// A ring.
    Ring(case::Case),
    /// Something that is tried.
    Trial(trial::Case),
}

/// What one worker gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ResponseSample")]
pub enum Sample {
    /// One timed batch of a ring's laps.
    Ring(sample::Sample),
    /// All trials of one case in one round.
    Trial(trial::Sample),
}

/// How a worker makes samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ResponseBatching")]
pub struct Batching {
    /// Of rings.
    pub ring: plan::Batching,
    /// Of trials.
    pub trial: Repeats,
}

impl Numbered for Sample {
    fn case(&self) -> usize {
        match self {
            Self::Ring(sample) => sample.case(),
            Self::Trial(sample) => sample.case(),
        }
    }
    fn round(&self) -> u32 {
        match self {
            Self::Ring(sample) => sample.round(),
            Self::Trial(sample) => sample.round(),
        }
    }
}

impl Instrument for Response {
    type Case = Case;
    type Sample = Sample;
    type Batching = Batching;
    type Record = Record;

    const NAME: &'static str = "response";
    const EXPERIMENTS: &'static [&'static str] = &[NAME];

    fn title(case: &Case) -> String {
        match case {
            Case::Ring(case) => Ring::title(case),
            Case::Trial(case) => Trials::title(case),
        }
    }

    fn cpus(case: &Case) -> Vec<u32> {
        match case {
            Case::Ring(case) => Ring::cpus(case),
            Case::Trial(case) => Trials::cpus(case),
        }
    }

    fn belong_together(one: &Case, other: &Case) -> bool {
        match (one, other) {
            (Case::Ring(one), Case::Ring(other)) => Ring::belong_together(one, other),
            (Case::Trial(one), Case::Trial(other)) => Trials::belong_together(one, other),
            _ => false,
        }
    }

    fn needs_as_much(other: &Case, failed: &Case) -> bool {
        match (other, failed) {
            (Case::Ring(other), Case::Ring(failed)) => Ring::needs_as_much(other, failed),
            (Case::Trial(other), Case::Trial(failed)) => Trials::needs_as_much(other, failed),
            _ => false,
        }
    }

    fn worst_precision(plan: &Plan<Self>, samples: &[Sample], failures: &[Failure]) -> Option<f64> {
        Split::of(plan, samples, failures).worst_precision()
    }

    fn lacking(plan: &Plan<Self>, samples: &[Sample]) -> Vec<usize> {
        let Split { rings, trials } = Split::of(plan, samples, &[]);
        let of_rings = Ring::lacking(&rings.plan, &rings.samples);
        let of_trials = Trials::lacking(&trials.plan, &trials.samples);
        let of_rings = of_rings.into_iter().map(|case| rings.numbers[case]);
        of_rings.chain(of_trials.into_iter().map(|case| trials.numbers[case])).collect()
    }

    fn levels(plan: &Plan<Self>, samples: &[Sample]) -> BTreeMap<Vec<u32>, Level> {
        Split::of(plan, samples, &[]).levels(&plan.reference)
    }

    fn record(run: &Run<Self>) -> Record {
        Record::of(run)
    }
}

#[cfg(test)]
mod tests;
