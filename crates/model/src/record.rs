//! What a run of rings says: its cases, the scaling law, the verdicts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::case::rings;
use crate::competing::CompetingTasks;
use crate::cost::{Cost, alike};
use crate::curve::Point;
use crate::experiment::Experiment;
use crate::noise::{self, NoiseVerdict};
use crate::pairing::Grouped;
use crate::ring::Case;
use crate::run::{End, Header, Run};
use crate::scaling;
use crate::speed::Level;
use crate::summary::{CaseSummary, summaries};

/// How the cost grows with the ring, for the cases that differ in nothing but their size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// Numbers of the cases, by ring size.
    pub cases: Vec<usize>,
    /// The law of `ns_per_switch_above_solo` against ring size.
    pub law: scaling::Verdict,
    /// The law in words.
    pub in_words: String,
}

/// All that a run of rings says. Computed on reading, never stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// The first line of the run file.
    pub header: Header,
    /// The last line; absent for a run that was killed.
    pub end: Option<End>,
    /// Cases in the order of the plan.
    pub cases: Vec<CaseSummary>,
    /// Scaling laws, one for each series of sizes.
    pub scaling: Vec<Series>,
    /// What switches cost by working set; absent for experiments that do not ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// The verdict on the machine's noise.
    pub noise: NoiseVerdict,
    /// The CPUs' own speed, by the CPUs that the leaders ran on; empty where it was not measured.
    pub speed: Vec<CpuSpeed>,
    /// What else ran on the measured CPUs; absent where it was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub company: Option<CompetingTasks>,
    /// What could not be measured or read.
    pub warnings: Vec<String>,
}

/// How fast a CPU ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuSpeed {
    /// The CPU; several where the scheduler chose.
    pub cpus: Vec<u32>,
    /// Its level.
    pub level: Level,
    /// Its clock in GHz by the latency-bound loop; absent where a multiplication's cycles are not known.
    pub clock_ghz: Option<f64>,
}

impl Record {
    /// The record of a run.
    pub fn of(run: &Run) -> Self {
        let plan = &run.header.plan;
        let grouped = Grouped::new(plan, rings(&run.samples));
        let cases = summaries(plan, &grouped, &run.failures);
        let cost = (plan.experiment == Experiment::Cost)
            .then(|| Cost::of(plan, &grouped, &cases, &run.header.machine));
        // The law of a ring against its size is of hops without work.
        let scaling = if cost.is_some() { Vec::new() } else { series(&cases) };
        Self {
            header: run.header.clone(),
            end: run.end.clone(),
            noise: noise::judge(&grouped),
            speed: speeds(&grouped, &run.header.build.target),
            cases,
            scaling,
            cost,
            company: run.company.clone(),
            warnings: run.warnings.clone(),
        }
    }
}

fn speeds(grouped: &Grouped, target: &str) -> Vec<CpuSpeed> {
    let speed = |(cpus, level): (&Vec<u32>, &Level)| CpuSpeed {
        cpus: cpus.clone(),
        level: *level,
        clock_ghz: level.clock_ghz(target),
    };
    grouped.levels().iter().map(speed).collect()
}

/// Laws for the cases that differ in nothing but their size; of solo rings and of what does not
/// switch there is none.
fn series(cases: &[CaseSummary]) -> Vec<Series> {
    let key =
        |of: &CaseSummary| (!of.does_not_switch).then(|| Case { members: 1, ..of.case.clone() });
    let law_of = |(_, mut indices): (Case, Vec<usize>)| {
        indices.sort_by_key(|index| cases[*index].case.members);
        let points: Vec<Point> = indices.iter().filter_map(|index| cases[*index].point()).collect();
        let law = scaling::law(&points);
        Series { cases: indices, in_words: law.in_words(), law }
    };
    alike(cases, key).into_iter().map(law_of).collect()
}
