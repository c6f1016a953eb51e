//! What a worker is told, and what it says when it cannot.

use std::time::Duration;

use model::instrument::Instrument;
use model::ring::Ring;
use model::sample::Sample;
use serde::{Deserialize, Serialize};

use crate::ring;

/// What a worker is told: one case, one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Assignment<I: Instrument = Ring> {
    /// Number of the case in the plan.
    pub case_number: usize,
    /// The case.
    pub case: I::Case,
    /// The round.
    pub round: u32,
    /// How the case becomes samples.
    pub batching: I::Batching,
    /// k0 of the CPU that is measured, as far as it is known (`model::speed::Reference`): what is waited for.
    #[serde(default)]
    pub unshared_ratio: Option<f64>,
}

/// Why a case gave no (further) samples.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Unmeasured {
    /// What happened: the value, the limit or errno, the next step.
    pub message: String,
    /// The machine has run out of something: a case that needs as much would fail too.
    pub exhausted: bool,
}

/// See [`Measure::patience`]: all steps of a worker have deadlines of their own, of a minute and more each.
const PATIENCE: Duration = Duration::from_secs(600);

/// An instrument that this machine can be measured with.
pub trait Measure: Instrument {
    /// Takes the samples of an assignment in the calling process, which is single-threaded and for
    /// this alone; each goes to `sink` as soon as it is proven.
    fn measure(
        assignment: &Assignment<Self>,
        sink: &mut dyn FnMut(Self::Sample),
    ) -> Result<(), Unmeasured>;

    /// Longer than any sound worker takes: whoever started it ends it then.
    fn patience(_: &Assignment<Self>) -> Duration {
        PATIENCE
    }

    /// What the worker's environment must hold for a case, or must not, beside what this process
    /// was given.
    fn environment(_: &Self::Case) -> Vec<(&'static str, Option<String>)> {
        Vec::new()
    }
}

impl Measure for Ring {
    fn patience(assignment: &Assignment) -> Duration {
        PATIENCE.saturating_add(ring::slowest(assignment))
    }

    fn measure(assignment: &Assignment, sink: &mut dyn FnMut(Sample)) -> Result<(), Unmeasured> {
        ring::run(assignment, sink).map_err(|error| Unmeasured {
            message: error.to_string(),
            exhausted: error.is_exhaustion(),
        })
    }
}
