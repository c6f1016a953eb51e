//! What takes samples. An experiment is a plan over one instrument and a reading of its samples;
//! plan, run file, schedule and worker are the same for all instruments.

use std::collections::BTreeMap;
use std::fmt::Debug;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::plan::Plan;
use crate::run::{Failure, Run};
use crate::speed::Level;

/// Something that is kept in a run file.
pub trait Kept: Clone + Debug + PartialEq + Serialize + DeserializeOwned + JsonSchema {}
impl<T: Clone + Debug + PartialEq + Serialize + DeserializeOwned + JsonSchema> Kept for T {}

/// A sample of whatever instrument.
pub trait Numbered {
    /// Number of its case in the plan.
    fn case(&self) -> usize;
    /// Its round, from 0.
    fn round(&self) -> u32;
}

/// A way to take samples: what a case is, what a sample is, what a run of them says.
pub trait Instrument: Kept + Copy + Send + Sync + 'static {
    /// A point of the grid.
    type Case: Kept;
    /// What one measurement gives.
    type Sample: Kept + Numbered;
    /// How a worker makes samples of the case that it is told.
    type Batching: Kept;
    /// What a run says.
    type Record: Serialize;

    /// Its name, by which a worker is told what to do.
    const NAME: &'static str;

    /// The experiments that rest on it: what stands in a plan's `experiment`.
    const EXPERIMENTS: &'static [&'static str];

    /// A case in a few words, for progress and failures: `ring of 64`.
    fn title(case: &Self::Case) -> String;

    /// The CPUs that are measured on, sorted, each once.
    fn cpus(case: &Self::Case) -> Vec<u32>;

    /// Whether two cases are compared with each other more closely than with the rest of their plan:
    /// such are measured one after the other in every round. All are alike where nothing is said.
    fn belong_together(_: &Self::Case, _: &Self::Case) -> bool {
        true
    }

    /// Whether `other` needs at least as much of the machine as `failed`, on which it ran out.
    fn needs_as_much(other: &Self::Case, failed: &Self::Case) -> bool;

    /// The widest relative half-width among the cases that are still measured; absent as long as
    /// one of them has no interval.
    fn worst_precision(
        plan: &Plan<Self>,
        samples: &[Self::Sample],
        failures: &[Failure],
    ) -> Option<f64>;

    /// Numbers of the cases that have too few clean slices for a figure at full speed, though the CPU's speed
    /// was looked at: more rounds of these may give one.
    fn lacking(_: &Plan<Self>, _: &[Self::Sample]) -> Vec<usize> {
        Vec::new()
    }

    /// Numbers of the cases that the coming round, of that number, is for, where it is not for all: those whose
    /// intervals are widest.
    fn focus(_: &Plan<Self>, _: &[Self::Sample], _round: u32) -> Option<Vec<usize>> {
        None
    }

    /// The level of an unshared core, by the CPUs that the reference quanta ran on.
    fn levels(_: &Plan<Self>, _: &[Self::Sample]) -> BTreeMap<Vec<u32>, Level> {
        BTreeMap::new()
    }

    /// What a run says. Computed on reading, never stored.
    fn record(run: &Run<Self>) -> Self::Record;
}
