//! What can be measured: the subcommands that make plans.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::named::named;

/// An experiment.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Experiment {
    /// `ring`: what a switch costs by the size of the ring.
    Ring,
    /// `cost`: direct and total cost of a switch by working set.
    Cost,
    /// `cost --interference`: execution times in quiet and under disturbance.
    Interference,
    /// `response`: what a kernel's response time is made of.
    Response,
    /// `clock overhead`: what it costs to read a clock.
    ClockOverhead,
    /// `clock primes`: how precisely clocks time the same work.
    ClockPrimes,
    /// `clock malloc`: what malloc and free cost.
    ClockMalloc,
    /// `clock sampling`: what accounting by timer ticks makes of a sleeper.
    ClockSampling,
}

named!(
    Experiment,
    "known experiment",
    Ring => "ring",
    Cost => "cost",
    Interference => "interference",
    Response => "response",
    ClockOverhead => "clock-overhead",
    ClockPrimes => "clock-primes",
    ClockMalloc => "clock-malloc",
    ClockSampling => "clock-sampling"
);

/// Which cases an experiment has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Rings only.
    Rings,
    /// Trials only.
    Trials,
    /// Rings and trials.
    Both,
}

impl Experiment {
    /// Which cases it has.
    pub fn takes(self) -> Takes {
        match self {
            Self::Ring | Self::Cost => Takes::Rings,
            Self::Response => Takes::Both,
            Self::Interference
            | Self::ClockOverhead
            | Self::ClockPrimes
            | Self::ClockMalloc
            | Self::ClockSampling => Takes::Trials,
        }
    }
}

/// A value in a run file. Where the experiment has cases of one kind it is a ring's or a trial's and stands bare;
/// where it has both it stands under the name of its kind.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Stored<Ring, Trial, Named> {
    /// Of a ring.
    Ring(Ring),
    /// Of a trial.
    Trial(Trial),
    /// Of either, under its name.
    Named(Named),
}
