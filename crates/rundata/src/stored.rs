//! The form of cases, their batching and their samples in a run file.
//!
//! An experiment whose cases are of one kind stores them bare. One that has rings and trials stores
//! each under the name of its kind:
//!
//! ```text
//! ring      "cases": [{"members": 1, ...}, {"members": 2, ...}]
//! response  "cases": [{"ring": {"members": 2, ...}}, {"trial": {"trial": {...}, "cpu": 1, ...}}]
//! ```
//!
//! A bare value does not say its kind, so a plan is read by its experiment, and a sample by the
//! experiment of the header before it. The types here only write and describe that form:
//! everywhere else cases and samples are [`Case`] and [`Sample`].

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Value, from_value};

use crate::case::{Case, Sample};
use crate::experiment::{CaseKinds, Experiment};
use crate::plan::{Batching, Plan, PlanPart, Reference, Stopping};
use crate::ring::{RingBatching, RingCase, RingSample};
use crate::trial::{TrialBatching, TrialCase, TrialSample};

/// A case in a stored plan.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub enum StoredCase<'a> {
    /// The case of an experiment that has rings only.
    Ring(&'a RingCase),
    /// The case of an experiment that has trials only.
    Trial(&'a TrialCase),
    /// The case of an experiment that has both kinds, under the name of its kind.
    Named(&'a Case),
}

/// The batching of a stored plan.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub enum StoredBatching<'a> {
    /// The batching of an experiment that has rings only.
    Ring(&'a RingBatching),
    /// The batching of an experiment that has trials only.
    Trial(&'a TrialBatching),
    /// The batching of an experiment that has both kinds, each under its name.
    Named(&'a Batching),
}

/// A sample in a run file.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub enum StoredSample<'a> {
    /// The sample of an experiment that has rings only.
    Ring(&'a RingSample),
    /// The sample of an experiment that has trials only.
    Trial(&'a TrialSample),
    /// The sample of an experiment that has both kinds, under the name of its kind.
    Named(&'a Sample),
}

impl<'a> StoredCase<'a> {
    fn from_case(case: &'a Case, kinds: CaseKinds) -> Self {
        match (kinds, case) {
            (CaseKinds::Both, case) => Self::Named(case),
            (_, Case::Ring(ring)) => Self::Ring(ring),
            (_, Case::Trial(trial)) => Self::Trial(trial),
        }
    }
}

impl<'a> StoredBatching<'a> {
    fn from_batching(batching: &'a Batching, kinds: CaseKinds) -> Self {
        match kinds {
            CaseKinds::Rings => Self::Ring(&batching.ring),
            CaseKinds::Trials => Self::Trial(&batching.trial),
            CaseKinds::Both => Self::Named(batching),
        }
    }
}

impl<'a> StoredSample<'a> {
    fn from_sample(sample: &'a Sample, kinds: CaseKinds) -> Self {
        match (kinds, sample) {
            (CaseKinds::Both, sample) => Self::Named(sample),
            (_, Sample::Ring(ring)) => Self::Ring(ring),
            (_, Sample::Trial(trial)) => Self::Trial(trial),
        }
    }
}

/// Writes the line of a sample in a run file of that experiment.
pub(crate) fn sample_to_text(
    sample: &Sample,
    experiment: Experiment,
) -> serde_json::Result<String> {
    let stored = StoredSample::from_sample(sample, experiment.case_kinds());
    Ok(format!("{{\"sample\":{}}}", serde_json::to_string(&stored)?))
}

/// Reads the line of a sample in a run file of an experiment with cases of one kind.
pub(crate) fn ring_sample_from_text(text: &str) -> serde_json::Result<Sample> {
    #[derive(Deserialize)]
    struct RingSampleLine {
        sample: Box<RingSample>,
    }
    let line: RingSampleLine = serde_json::from_str(text)?;
    Ok(Sample::Ring(line.sample))
}

/// Like [`ring_sample_from_text`], for trials.
pub(crate) fn trial_sample_from_text(text: &str) -> serde_json::Result<Sample> {
    #[derive(Deserialize)]
    struct TrialSampleLine {
        sample: TrialSample,
    }
    let line: TrialSampleLine = serde_json::from_str(text)?;
    Ok(Sample::Trial(line.sample))
}

fn case_from_value(value: Value, kinds: CaseKinds) -> serde_json::Result<Case> {
    match kinds {
        CaseKinds::Rings => from_value(value).map(Case::Ring),
        CaseKinds::Trials => from_value(value).map(Case::Trial),
        CaseKinds::Both => from_value(value),
    }
}

fn batching_from_value(value: Value, kinds: CaseKinds) -> serde_json::Result<Batching> {
    match kinds {
        CaseKinds::Rings => from_value(value).map(Batching::of_rings),
        CaseKinds::Trials => from_value(value).map(Batching::of_trials),
        CaseKinds::Both => from_value(value),
    }
}

/// A plan as it is written.
#[derive(Serialize)]
struct WrittenPlan<'a> {
    experiment: Experiment,
    cases: Vec<StoredCase<'a>>,
    seed: u64,
    batching: StoredBatching<'a>,
    stopping: &'a Stopping,
    reference: &'a Reference,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<PlanPart>,
}

/// A plan as it is read: its experiment says what its cases and its batching are.
#[derive(Deserialize)]
struct ReadPlan {
    experiment: Experiment,
    cases: Vec<Value>,
    seed: u64,
    batching: Value,
    stopping: Stopping,
    reference: Reference,
    #[serde(default)]
    parts: Vec<PlanPart>,
}

impl ReadPlan {
    fn into_plan(self) -> serde_json::Result<Plan> {
        let kinds = self.experiment.case_kinds();
        let mut cases = Vec::with_capacity(self.cases.len());
        for case in self.cases {
            cases.push(case_from_value(case, kinds)?);
        }
        Ok(Plan {
            experiment: self.experiment,
            cases,
            seed: self.seed,
            batching: batching_from_value(self.batching, kinds)?,
            stopping: self.stopping,
            reference: self.reference,
            parts: self.parts,
        })
    }
}

impl Serialize for Plan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let kinds = self.experiment.case_kinds();
        let written = WrittenPlan {
            experiment: self.experiment,
            cases: self.cases.iter().map(|case| StoredCase::from_case(case, kinds)).collect(),
            seed: self.seed,
            batching: StoredBatching::from_batching(&self.batching, kinds),
            stopping: &self.stopping,
            reference: &self.reference,
            parts: self.parts.clone(),
        };
        written.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Plan {
    /// Refuses a plan whose numbers are out of range (`Plan::check`).
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let plan = ReadPlan::deserialize(deserializer)?.into_plan().map_err(de::Error::custom)?;
        plan.check().map_err(de::Error::custom)?;
        Ok(plan)
    }
}
