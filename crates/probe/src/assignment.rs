//! What a worker gets, and what it reports when it fails.

use std::time::Duration;

use model::case::Case;
use model::case::Sample;
use model::plan::Batching;
use model::trial::Trial;
use serde::{Deserialize, Serialize};

use crate::{ring, trial};

/// What a worker gets: one case of any kind, one round.
pub type Assignment = ring::Assignment<Case, Batching>;

/// Why a case gave no (further) samples.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Unmeasured {
    /// What happened: the value, the limit or errno, the next step.
    pub message: String,
    /// The machine has run out of something: a case that needs as much would fail too.
    pub exhausted: bool,
}

/// All steps of a worker have deadlines of their own, of a minute and more each.
const TIMEOUT: Duration = Duration::from_secs(600);

impl Assignment {
    /// Takes the samples in the calling process, which is single-threaded and for this alone; each goes to `sink`
    /// as soon as it is proven.
    pub fn measure(&self, sink: &mut dyn FnMut(Sample)) -> Result<(), Unmeasured> {
        let Self { case_number, round, .. } = *self;
        match &self.case {
            Case::Ring(case) => {
                let assignment = self.of_ring(case);
                ring::run(&assignment, &mut |sample| sink(Sample::Ring(sample))).map_err(|error| {
                    Unmeasured { message: error.to_string(), exhausted: error.is_exhaustion() }
                })
            }
            Case::Trial(case) => {
                let sample = trial::run(case_number, case, round, self.batching.trial.trials)
                    .map_err(|error| Unmeasured { message: error.to_string(), exhausted: false })?;
                sink(Sample::Trial(sample));
                Ok(())
            }
        }
    }

    /// Longer than any working worker takes: its parent kills it then.
    pub fn timeout(&self) -> Duration {
        match &self.case {
            Case::Ring(case) => TIMEOUT.saturating_add(ring::slowest(&self.of_ring(case))),
            Case::Trial(_) => TIMEOUT,
        }
    }

    /// What the worker's environment must hold for the case, or must not, beside what this process was given.
    pub fn environment(&self) -> Vec<(&'static str, Option<String>)> {
        match self.case.trial().map(|case| &case.trial) {
            // Also without one: a measurement of the C library's must not be of another.
            Some(Trial::Malloc { preload, .. }) => vec![("LD_PRELOAD", preload.clone())],
            _ => Vec::new(),
        }
    }

    fn of_ring(&self, case: &model::ring::Case) -> ring::Assignment {
        ring::Assignment {
            case_number: self.case_number,
            case: case.clone(),
            round: self.round,
            batching: self.batching.ring.clone(),
            unshared_ratio: self.unshared_ratio,
        }
    }
}
