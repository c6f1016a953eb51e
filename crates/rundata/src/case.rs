//! One point of a plan's grid and what a worker gives for it in one round: each is of a ring or of
//! a trial.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::experiment::Takes;
use crate::{ring, trial};

/// Something of a ring or of a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "{R}_or_{T}")]
pub enum Either<R, T> {
    /// Of a ring: members that pass a token round.
    Ring(R),
    /// Of a trial: something that is done many times, of which each outcome is kept.
    Trial(T),
}

/// One point of the grid.
pub type Case = Either<ring::Case, trial::Case>;
/// What one measurement gave: a timed batch of a ring's laps, or all trials of one case in one
/// round.
pub type Sample = Either<ring::Sample, trial::Sample>;

/// A value in a run file. Where the experiment has cases of one kind it is a ring's or a trial's
/// and stands bare; where it has both it stands under the name of its kind.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Stored<Ring, Trial, Named> {
    /// Of a ring.
    Ring(Ring),
    /// Of a trial.
    Trial(Trial),
    /// Of either, under its name.
    Named(Named),
}

impl<R, T> Either<R, T> {
    /// The ring's, if it is one.
    pub fn ring(&self) -> Option<&R> {
        match self {
            Self::Ring(ring) => Some(ring),
            Self::Trial(_) => None,
        }
    }

    /// The ring's, if it is one.
    pub fn ring_mut(&mut self) -> Option<&mut R> {
        match self {
            Self::Ring(ring) => Some(ring),
            Self::Trial(_) => None,
        }
    }

    /// The trial's, if it is one.
    pub fn trial(&self) -> Option<&T> {
        match self {
            Self::Ring(_) => None,
            Self::Trial(trial) => Some(trial),
        }
    }

    /// As it is stored in a run of an experiment that takes such cases.
    pub fn stored(&self, takes: Takes) -> Stored<&R, &T, &Self> {
        match self {
            _ if takes == Takes::Both => Stored::Named(self),
            Self::Ring(ring) => Stored::Ring(ring),
            Self::Trial(trial) => Stored::Trial(trial),
        }
    }
}

impl From<ring::Case> for Case {
    fn from(case: ring::Case) -> Self {
        Self::Ring(case)
    }
}

impl From<trial::Case> for Case {
    fn from(case: trial::Case) -> Self {
        Self::Trial(case)
    }
}

impl Case {
    /// In a few words, for progress and failures: `ring of 64`.
    pub fn title(&self) -> String {
        match self {
            Self::Ring(case) => case.title(),
            Self::Trial(case) => case.trial.to_string(),
        }
    }

    /// The CPUs that are measured on, sorted, each once.
    pub fn cpus(&self) -> Vec<u32> {
        match self {
            Self::Ring(case) => case.placement.cpus(),
            Self::Trial(case) => vec![case.cpu],
        }
    }

    /// Whether an experiment that takes such cases may have it.
    pub fn is_taken(&self, takes: Takes) -> bool {
        match takes {
            Takes::Rings => self.ring().is_some(),
            Takes::Trials => self.trial().is_some(),
            Takes::Both => true,
        }
    }

    /// Whether two cases are compared with each other more closely than with the rest of their
    /// plan: such are measured one after the other in every round. All trials of a plan are.
    pub fn belongs_to(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Ring(one), Self::Ring(other)) => one.belongs_to(other),
            (one, other) => one.ring().is_none() && other.ring().is_none(),
        }
    }

    /// Whether it needs at least as much of the machine as `failed`, on which it ran out.
    pub fn needs_as_much(&self, failed: &Self) -> bool {
        match (self, failed) {
            (Self::Ring(case), Self::Ring(failed)) => case.needs_as_much(failed),
            _ => self == failed,
        }
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
    pub fn of_case(self, case: usize) -> Self {
        match self {
            Self::Ring(sample) => Self::Ring(ring::Sample { case, ..sample }),
            Self::Trial(sample) => Self::Trial(trial::Sample { case, ..sample }),
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
