//! `measure`: rings, working sets, response and clocks as the parts of one plan, measured in the same
//! rounds, so that a disturbance affects all alike. The record of each part is that of a run of its
//! experiment.
//!
//! ```text
//! plan.rs    budget 60 s --> ring 25 %, cost 40 %, response 25 %, clock 10 % --> one plan with four parts
//! mod.rs     one run     --> a run of each part --> a record of each --> MeasureRecord
//! table.rs   MeasureRecord --> the answer in a sentence, a row a figure
//! ```

pub(crate) mod plan;
pub(crate) mod table;

use analysis::noise::NoiseVerdict;
use analysis::parts::part_runs;
use analysis::record::CpuSpeed;
use analysis::setting_changes::run_warnings;
use rundata::competing::CompetingTasks;
use rundata::experiment::Experiment;
use rundata::run::{Header, Run, RunEnd, SettingChange};
use schemars::JsonSchema;
use serde::Serialize;

use crate::registry::Record;

/// The record of a run of several experiments.
#[derive(Serialize, JsonSchema)]
pub(crate) struct MeasureRecord {
    /// The first line of the run file.
    pub(crate) header: Header,
    /// The last line; absent for a run that was killed.
    pub(crate) end: Option<RunEnd>,
    /// Records of the experiments, in the order of the plan. Cases have the numbers that they have in
    /// their part, from 0.
    pub(crate) parts: Vec<Record>,
    /// The CPUs' own speed, as the first part with rings says it; empty where it was not measured.
    pub(crate) speed: Vec<CpuSpeed>,
    /// Widest relative half-width of the intervals; absent as long as a case has none.
    pub(crate) worst_precision: Option<f64>,
    /// The verdict on the machine's noise, of all parts together.
    pub(crate) noise: NoiseVerdict,
    /// Competing tasks on the measured CPUs; absent where they were not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) competing_tasks: Option<CompetingTasks>,
    /// Changes of the machine's settings while the run went on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) setting_changes: Vec<SettingChange>,
    /// Warnings of what could not be measured or read.
    pub(crate) warnings: Vec<String>,
}

impl MeasureRecord {
    /// Computes the record of a run whose plan has parts.
    pub(crate) fn from_run(run: &Run) -> Self {
        let mut parts = Vec::new();
        for part in part_runs(run) {
            parts.push(Record::from_run(&part));
        }
        let verdicts = parts.iter().map(|part| (part_name(part), part.common().noise.clone()));
        let noise = NoiseVerdict::together(verdicts, &[]);
        let speed = parts.iter().map(|part| part.common().speed).find(|speed| !speed.is_empty());
        Self {
            header: run.header.clone(),
            end: run.end.clone(),
            worst_precision: worst_precision(&parts),
            noise,
            speed: speed.unwrap_or_default().to_vec(),
            competing_tasks: run.competing_tasks.clone(),
            setting_changes: run.setting_changes.clone(),
            warnings: run_warnings(run),
            parts,
        }
    }
}

/// Returns the widest relative half-width of all parts; `None` as long as one has none.
fn worst_precision(parts: &[Record]) -> Option<f64> {
    let mut worst: Option<f64> = None;
    for part in parts {
        let width = part.common().precision?;
        worst = Some(worst.map_or(width, |worst| worst.max(width)));
    }
    worst
}

/// Returns the name of a part in lines of several: `clock` for `clock overhead`.
pub(crate) fn part_name(part: &Record) -> &'static str {
    match part.header().plan.experiment {
        Experiment::ClockOverhead => "clock",
        experiment => experiment.name(),
    }
}
