//! Trials: the instrument that stands beside the ring. Something is done many times in a fresh
//! worker, and the outcome of each time is kept.
//!
//! `case` says what is tried, `sample` what comes back, `record` what all runs say; one file an
//! experiment reads its samples. The names of tallies and counts stand with the experiment.

mod by_round;
mod case;
mod clean;
mod figures;
mod gap;
pub mod gaps;
mod headline;
pub mod interference;
pub mod loops;
pub mod malloc;
pub mod overhead;
pub mod primes;
mod record;
mod sample;
pub mod sampling;
mod sliced;
mod tally;
pub mod wakeup;

#[cfg(test)]
mod slices_tests;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use by_round::ByRound;
pub use case::{Case, Phase, Repeats, Trial};
pub(crate) use clean::quanta_by_cpu;
pub(crate) use figures::ByCase;
pub use gap::Gap;
pub use headline::headlines_ns;
pub use record::{Findings, Quantity, Record, Summary};
pub(crate) use record::{judge, ns_per_tick, summaries};
pub use sample::Sample;
pub use sliced::Sliced;
pub use tally::Tally;

use crate::instrument::Instrument;
use crate::plan::Plan;
use crate::run::{Failure, Run};
use crate::speed::{Level, levels};

/// The instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Trials;

impl Instrument for Trials {
    type Case = Case;
    type Sample = Sample;
    type Batching = Repeats;
    type Record = Record;

    const NAME: &'static str = "trials";
    const EXPERIMENTS: &'static [&'static str] =
        &[overhead::NAME, primes::NAME, malloc::NAME, sampling::NAME, interference::NAME];

    fn title(case: &Case) -> String {
        case.trial.to_string()
    }

    fn cpus(case: &Case) -> Vec<u32> {
        vec![case.cpu]
    }

    fn needs_as_much(other: &Case, failed: &Case) -> bool {
        other == failed
    }

    fn worst_precision(plan: &Plan<Self>, samples: &[Sample], failures: &[Failure]) -> Option<f64> {
        let by_case = ByCase::new(plan, samples);
        let failed = |case: &usize| failures.iter().any(|failure| failure.case == *case);
        let open = (0..plan.cases.len()).filter(|case| !failed(case));
        let width = |case: usize| headline::estimate(&by_case, case)?.relative_half_width();
        open.map(width).collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)
    }

    fn lacking(plan: &Plan<Self>, samples: &[Sample]) -> Vec<usize> {
        let by_case = ByCase::new(plan, samples);
        (0..plan.cases.len()).filter(|case| headline::lacks_clean(&by_case, *case)).collect()
    }

    fn levels(plan: &Plan<Self>, samples: &[Sample]) -> BTreeMap<Vec<u32>, Level> {
        levels(&quanta_by_cpu(plan, samples), &plan.reference)
    }

    fn record(run: &Run<Self>) -> Record {
        Record::of(run)
    }
}
