//! One point of a plan's grid: a ring, or something that is tried.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ring, trial};

pub use crate::placement::Placement;
pub use crate::policy::Policy;
pub use crate::ring::{ELEMENT_BYTES, Kind, LINE_BYTES, Op, Walk, Work, WorkError};

/// One point of the grid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Case {
    /// Members that pass a token round.
    Ring(ring::Case),
    /// Something that is done many times, of which each outcome is kept.
    Trial(trial::Case),
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
    /// The ring, if it is one.
    pub fn ring(&self) -> Option<&ring::Case> {
        match self {
            Self::Ring(case) => Some(case),
            Self::Trial(_) => None,
        }
    }

    /// The trial, if it is one.
    pub fn trial(&self) -> Option<&trial::Case> {
        match self {
            Self::Ring(_) => None,
            Self::Trial(case) => Some(case),
        }
    }

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

    /// Whether two cases are compared with each other more closely than with the rest of their plan: such are
    /// measured one after the other in every round. All trials of a plan are.
    pub fn belongs_to(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Ring(one), Self::Ring(other)) => one.belongs_to(other),
            (Self::Trial(_), Self::Trial(_)) => true,
            _ => false,
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
