//! What a worker gives for one case in one round.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ring, trial};

pub use crate::ring::{Counters, Disturbance};

/// What one measurement gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sample {
    /// One timed batch of a ring's laps.
    Ring(ring::Sample),
    /// All trials of one case in one round.
    Trial(trial::Sample),
}

impl From<ring::Sample> for Sample {
    fn from(sample: ring::Sample) -> Self {
        Self::Ring(sample)
    }
}

impl From<trial::Sample> for Sample {
    fn from(sample: trial::Sample) -> Self {
        Self::Trial(sample)
    }
}

impl Sample {
    /// Number of its case in the plan.
    pub fn case(&self) -> usize {
        match self {
            Self::Ring(sample) => sample.case,
            Self::Trial(sample) => sample.case,
        }
    }

    /// Its round, from 0.
    pub fn round(&self) -> u32 {
        match self {
            Self::Ring(sample) => sample.round,
            Self::Trial(sample) => sample.round,
        }
    }

    /// The same sample as one of another case.
    #[must_use]
    pub fn of_case(self, case: usize) -> Self {
        match self {
            Self::Ring(sample) => Self::Ring(ring::Sample { case, ..sample }),
            Self::Trial(sample) => Self::Trial(trial::Sample { case, ..sample }),
        }
    }

    /// The ring's, if it is one.
    pub fn ring(&self) -> Option<&ring::Sample> {
        match self {
            Self::Ring(sample) => Some(sample),
            Self::Trial(_) => None,
        }
    }

    /// The ring's, if it is one.
    pub fn ring_mut(&mut self) -> Option<&mut ring::Sample> {
        match self {
            Self::Ring(sample) => Some(sample),
            Self::Trial(_) => None,
        }
    }

    /// The trial's, if it is one.
    pub fn trial(&self) -> Option<&trial::Sample> {
        match self {
            Self::Ring(_) => None,
            Self::Trial(sample) => Some(sample),
        }
    }
}

/// The samples of rings among them.
pub fn rings(samples: &[Sample]) -> impl Iterator<Item = &ring::Sample> + Clone {
    samples.iter().filter_map(Sample::ring)
}

/// The samples of trials among them.
pub fn trials(samples: &[Sample]) -> impl Iterator<Item = &trial::Sample> + Clone {
    samples.iter().filter_map(Sample::trial)
}
