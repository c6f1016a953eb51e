//! `measure`: rings, working sets, response and clocks as the parts of one plan, so that all share
//! all of the time. What each part says is what a run of its experiment says.

pub(crate) mod plan;
pub(crate) mod table;

use analysis::noise::NoiseVerdict;
use analysis::record::CpuSpeed;
use analysis::setting_changes::run_warnings;
use rundata::competing::CompetingTasks;
use rundata::experiment::Experiment;
use rundata::run::{Header, Run, RunEnd, SettingChange};
use schemars::JsonSchema;
use serde::Serialize;

use crate::registry::Record;

/// What a run of several experiments says.
#[derive(Serialize, JsonSchema)]
pub(crate) struct MeasureRecord {
    /// The first line of the run file.
    pub(crate) header: Header,
    /// The last line; absent for a run that was killed.
    pub(crate) end: Option<RunEnd>,
    /// What each experiment says, in the order of the plan. Cases have the numbers that they have in
    /// their part, from 0.
    pub(crate) parts: Vec<Record>,
    /// The CPUs' own speed, as the first part with rings says it; empty where it was not measured.
    pub(crate) speed: Vec<CpuSpeed>,
    /// Widest relative half-width of the intervals; absent as long as a case has none.
    pub(crate) worst_precision: Option<f64>,
    /// The verdict on the machine's noise, of all parts together.
    pub(crate) noise: NoiseVerdict,
    /// What else ran on the measured CPUs; absent where it was not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) company: Option<CompetingTasks>,
    /// Changes of the machine's settings while the run went on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) setting_changes: Vec<SettingChange>,
    /// What could not be measured or read.
    pub(crate) warnings: Vec<String>,
}

impl MeasureRecord {
    /// Computes the record of a run whose plan has parts.
    pub(crate) fn from_run(run: &Run) -> Self {
        let parts: Vec<Record> =
            analysis::parts::part_runs(run).iter().map(Record::from_run).collect();
        let named = parts.iter().map(|part| (part_name(part), part.common().noise.clone()));
        let noise = NoiseVerdict::together(named, &[]);
        let widths: Option<Vec<f64>> = parts.iter().map(|part| part.common().precision).collect();
        Self {
            header: run.header.clone(),
            end: run.end.clone(),
            worst_precision: widths.and_then(|all| all.into_iter().reduce(f64::max)),
            noise,
            speed: parts.iter().find_map(|part| part.speed()).unwrap_or_default(),
            company: run.company.clone(),
            setting_changes: run.setting_changes.clone(),
            warnings: run_warnings(run),
            parts,
        }
    }
}

impl Record {
    /// The CPUs' own speed, where it tells that.
    fn speed(&self) -> Option<Vec<CpuSpeed>> {
        Some(self.common().speed.to_vec()).filter(|speed| !speed.is_empty())
    }
}

/// What a part is called where it stands beside others.
pub(crate) fn part_name(part: &Record) -> &'static str {
    match part.header().plan.experiment {
        Experiment::ClockOverhead => "clock",
        experiment => experiment.name(),
    }
}
