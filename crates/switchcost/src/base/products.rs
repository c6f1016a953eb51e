//! Products that a build may leave out, by the features of Cargo.toml: what is said of data that only
//! such a product can show.
//!
//! Rooms and commands of a product are under `#[cfg(feature = ...)]`; this is for what is known
//! without them.

use anyhow::{Result, anyhow};
use rundata::experiment::Experiment;

/// Checks that this build can show runs of an experiment.
pub(crate) fn check_experiment(experiment: Experiment) -> Result<()> {
    match feature_of(experiment) {
        Some(ProductFeature { name, is_built: false }) => Err(not_built(experiment.name(), name)),
        Some(_) | None => Ok(()),
    }
}

/// Returns the error of what is asked of a product that was left out.
pub(crate) fn not_built(what: &str, feature: &str) -> anyhow::Error {
    anyhow!("this build has no {what}: built without the feature {feature}")
}

/// A feature of Cargo.toml.
struct ProductFeature {
    name: &'static str,
    is_built: bool,
}

const DOCUMENTS: ProductFeature =
    ProductFeature { name: "documents", is_built: cfg!(feature = "documents") };
const SWITCHES: ProductFeature =
    ProductFeature { name: "switches", is_built: cfg!(feature = "switches") };
const PROGRAMS: ProductFeature =
    ProductFeature { name: "programs", is_built: cfg!(feature = "programs") };

/// Returns the feature that has an experiment; `None` if it is of the core.
fn feature_of(experiment: Experiment) -> Option<ProductFeature> {
    match experiment {
        Experiment::Interference
        | Experiment::ClockPrimes
        | Experiment::ClockMalloc
        | Experiment::ClockSampling => Some(DOCUMENTS),
        Experiment::Sensitivity => Some(PROGRAMS),
        Experiment::Trace => Some(SWITCHES),
        Experiment::Ring
        | Experiment::Cost
        | Experiment::Response
        | Experiment::Explain
        | Experiment::ClockOverhead
        | Experiment::Measure => None,
    }
}
