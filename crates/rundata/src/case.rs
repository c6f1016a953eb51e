//! A case is a point of a plan's grid, a sample one measurement of it. Each is of a ring or of a
//! trial.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::experiment::CaseKinds;
use crate::ring::{RingCase, RingSample};
use crate::trial::{TrialCase, TrialSample};

/// A point of a plan's grid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Case {
    /// Members that pass a token round.
    Ring(RingCase),
    /// Something that is done many times, of which each outcome is kept.
    Trial(TrialCase),
}

/// A measurement of a case in one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sample {
    /// A timed batch of laps.
    Ring(Box<RingSample>),
    /// The trials of one round together.
    Trial(TrialSample),
}

impl From<RingCase> for Case {
    fn from(case: RingCase) -> Self {
        Self::Ring(case)
    }
}

impl From<TrialCase> for Case {
    fn from(case: TrialCase) -> Self {
        Self::Trial(case)
    }
}

impl From<RingSample> for Sample {
    fn from(sample: RingSample) -> Self {
        Self::Ring(Box::new(sample))
    }
}

impl From<TrialSample> for Sample {
    fn from(sample: TrialSample) -> Self {
        Self::Trial(sample)
    }
}

impl Case {
    /// Returns the ring; `None` for a trial.
    pub fn ring(&self) -> Option<&RingCase> {
        match self {
            Self::Ring(ring) => Some(ring),
            Self::Trial(_) => None,
        }
    }

    /// Returns the ring to change it; `None` for a trial.
    pub fn ring_mut(&mut self) -> Option<&mut RingCase> {
        match self {
            Self::Ring(ring) => Some(ring),
            Self::Trial(_) => None,
        }
    }

    /// Returns the trial; `None` for a ring.
    pub fn trial(&self) -> Option<&TrialCase> {
        match self {
            Self::Ring(_) => None,
            Self::Trial(trial) => Some(trial),
        }
    }

    /// Describes the case in a few words, for progress and failures: `ring of 64`.
    pub fn title(&self) -> String {
        match self {
            Self::Ring(case) => case.title(),
            Self::Trial(case) => case.trial.to_string(),
        }
    }

    /// Returns the CPUs that are measured on, sorted, each once; none where the kernel chose.
    pub fn cpus(&self) -> Vec<u32> {
        match self {
            Self::Ring(case) => case.cpus(),
            Self::Trial(case) => case.cpus(),
        }
    }

    /// Returns whether an experiment with cases of these kinds may have this one.
    pub fn is_one_of(&self, kinds: CaseKinds) -> bool {
        match kinds {
            CaseKinds::Rings => self.ring().is_some(),
            CaseKinds::Trials => self.trial().is_some(),
            CaseKinds::Both => true,
        }
    }

    /// Returns whether two cases are compared with each other more closely than with the rest of
    /// their plan: these are measured one after the other in every round. All trials of a plan
    /// belong together.
    pub fn belongs_to(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Ring(ring), Self::Ring(other)) => ring.belongs_to(other),
            (Self::Trial(_), Self::Trial(_)) => true,
            (Self::Ring(_), Self::Trial(_)) | (Self::Trial(_), Self::Ring(_)) => false,
        }
    }

    /// Returns whether the case needs at least as much of the machine as `failed`, on which the
    /// machine ran out.
    pub fn needs_as_much(&self, failed: &Self) -> bool {
        match (self, failed) {
            (Self::Ring(case), Self::Ring(failed)) => case.needs_as_much(failed),
            _ => self == failed,
        }
    }
}

impl Sample {
    /// Returns the sample of a ring; `None` for one of a trial.
    pub fn ring(&self) -> Option<&RingSample> {
        match self {
            Self::Ring(sample) => Some(sample),
            Self::Trial(_) => None,
        }
    }

    /// Returns the sample of a ring to change it; `None` for one of a trial.
    pub fn ring_mut(&mut self) -> Option<&mut RingSample> {
        match self {
            Self::Ring(sample) => Some(sample),
            Self::Trial(_) => None,
        }
    }

    /// Returns the sample of a trial; `None` for one of a ring.
    pub fn trial(&self) -> Option<&TrialSample> {
        match self {
            Self::Ring(_) => None,
            Self::Trial(sample) => Some(sample),
        }
    }

    /// Returns the number of the case in the plan.
    pub fn case(&self) -> usize {
        match self {
            Self::Ring(sample) => sample.case,
            Self::Trial(sample) => sample.case,
        }
    }

    /// Returns the round, from 0.
    pub fn round(&self) -> u32 {
        match self {
            Self::Ring(sample) => sample.round,
            Self::Trial(sample) => sample.round,
        }
    }

    /// Moves the sample to another case number.
    pub fn with_case(self, case: usize) -> Self {
        match self {
            Self::Ring(sample) => Self::Ring(Box::new(RingSample { case, ..*sample })),
            Self::Trial(sample) => Self::Trial(TrialSample { case, ..sample }),
        }
    }
}

/// Returns the samples of rings.
pub fn rings(samples: &[Sample]) -> impl Iterator<Item = &RingSample> + Clone {
    samples.iter().filter_map(Sample::ring)
}

/// Returns the samples of trials.
pub fn trials(samples: &[Sample]) -> impl Iterator<Item = &TrialSample> + Clone {
    samples.iter().filter_map(Sample::trial)
}
