//! The record of a run: its cases, the findings of its experiment, the verdict on noise.

use rundata::case::Case;
use rundata::competing::CompetingTasks;
use rundata::experiment::Experiment;
use rundata::ring::RingCase;
use rundata::run::{Header, Run, RunEnd, SettingChange};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cost::{CostFindings, group_cases};
use crate::curve::CurvePoint;
use crate::estimate::widest;
use crate::explain;
use crate::findings::{self, ExperimentFindings};
use crate::noise::{self, NoiseVerdict};
use crate::response::{self, ResponseSummary};
use crate::rings_at_once::{self, RingCountSeries};
use crate::scaling;
use crate::setting_changes::run_warnings;
use crate::speed::SpeedLevel;
use crate::summary::{CaseSummary, summaries_at_clocks, widths, worst_precision};
use crate::table::Table;

/// The growth of the cost with the ring, for cases that differ in nothing but their size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// Numbers of the cases, by ring size.
    pub cases: Vec<usize>,
    /// The law of `ns_per_switch_above_solo` against ring size.
    pub law: scaling::ScalingVerdict,
    /// The law in words.
    pub in_words: String,
}

/// Findings of `ring` and `cost`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RingFindings {
    /// Scaling laws, one for each series of sizes, of the costs that may be quoted; empty for a run
    /// that did not end.
    pub scaling: Vec<Series>,
    /// Costs of a switch by working set; absent for other experiments than `cost`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostFindings>,
    /// Findings on the number of rings that run at the same time; absent in plans without several
    /// rings, and for a run that did not end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rings_at_once: Vec<RingCountSeries>,
    /// The CPUs' own speed, by the CPUs that the leaders ran on; empty where it was not measured.
    pub speed: Vec<CpuSpeed>,
}

/// Findings of `clock` and `classic experiment interference`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TrialFindings {
    /// Findings of the experiment; absent where its measures are all there is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub findings: Option<ExperimentFindings>,
    /// Nanoseconds to a tick of the time-stamp counter, the median over samples; absent without
    /// such a counter.
    pub ns_per_tick: Option<f64>,
}

/// Findings of `explain`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ExplainFindings {
    /// The parts of a switch; absent for a plan without the ring of two by pipe.
    pub explained: Option<explain::ExplainedSwitch>,
    /// Nanoseconds to a tick of the time-stamp counter, the median over samples; absent without
    /// such a counter.
    pub ns_per_tick: Option<f64>,
}

/// The figures of a run: those of each case, and the findings of its experiment. It is computed when
/// a run is read, and never stored.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Record_of_{Found}")]
pub struct Record<Case, Found> {
    /// The first line of the run file.
    pub header: Header,
    /// The last line; absent for a run that was killed.
    pub end: Option<RunEnd>,
    /// Cases in the order of the plan.
    pub cases: Vec<Case>,
    /// Findings of the experiment.
    #[serde(flatten)]
    pub found: Found,
    /// Widest relative half-width of the intervals; absent as long as a case has none.
    pub worst_precision: Option<f64>,
    /// The verdict on the machine's noise.
    pub noise: NoiseVerdict,
    /// Competing tasks on the measured CPUs; absent where it was not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub competing_tasks: Option<CompetingTasks>,
    /// Changes of the machine's settings while the run went on: rounds under other settings than
    /// those of the header are in no figure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub setting_changes: Vec<SettingChange>,
    /// Facts that could not be measured or read.
    pub warnings: Vec<String>,
}

/// Record of `ring` and `cost`.
pub type RingRecord = Record<CaseSummary, RingFindings>;
/// Record of `clock` and `classic experiment interference`.
pub type TrialRecord = Record<findings::TrialSummary, TrialFindings>;
/// Record of `response`.
pub type ResponseRecord = Record<ResponseSummary, response::ResponseFindings>;
/// Record of `explain`.
pub type ExplainRecord = Record<ResponseSummary, ExplainFindings>;

impl<Case, Found> Record<Case, Found> {
    fn new(
        run: &Run,
        table: &Table,
        cases: Vec<Case>,
        worst_precision: Option<f64>,
        found: Found,
    ) -> Self {
        Self {
            header: run.header.clone(),
            end: run.end.clone(),
            cases,
            found,
            worst_precision,
            noise: noise::judge(table),
            competing_tasks: run.competing_tasks.clone(),
            setting_changes: run.setting_changes.clone(),
            warnings: run_warnings(run),
        }
    }
}

/// The speed of a CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuSpeed {
    /// The CPU; several where the scheduler chose.
    pub cpus: Vec<u32>,
    /// Level of an unshared core on it.
    pub level: SpeedLevel,
    /// Clock in GHz by the latency-bound loop; absent where a multiplication's cycles are not
    /// known.
    pub clock_ghz: Option<f64>,
}

impl RingRecord {
    /// Computes the record of a run.
    pub fn from_run(run: &Run) -> Self {
        let plan = &run.header.plan;
        let table = &Table::new(plan, &run.samples);
        let target = &run.header.build.target;
        let cases = summaries_at_clocks(table, &run.failures, target);
        let mut cost = None;
        if plan.experiment == Experiment::Cost {
            cost = Some(CostFindings::from_cases(plan, table, &cases, &run.header.machine));
        }
        // The law of a ring against its size is of hops without work.
        let has_law = cost.is_none() && run.unfinished().is_none();
        let scaling = if has_law { series(&cases) } else { Vec::new() };
        let rings_at_once = if has_law { rings_at_once::series(&cases) } else { Vec::new() };
        let found = RingFindings { scaling, cost, rings_at_once, speed: speeds(table, target) };
        let precision = worst_precision(&cases);
        Self::new(run, table, cases, precision, found)
    }
}

impl TrialRecord {
    /// Computes the record of a run.
    pub fn from_run(run: &Run) -> Self {
        let table = &Table::new(&run.header.plan, &run.samples);
        let ns_per_tick = findings::ns_per_tick(&run.samples);
        let findings = ExperimentFindings::from_table(table, run.competing_tasks.as_ref());
        let found = TrialFindings { findings, ns_per_tick };
        let precision = widest(findings::widths(table, &run.failures));
        Self::new(run, table, findings::summaries(run, table), precision, found)
    }
}

impl ResponseRecord {
    /// Computes the record of a run.
    pub fn from_run(run: &Run) -> Self {
        let table = &Table::new(&run.header.plan, &run.samples);
        let rings = summaries_at_clocks(table, &run.failures, &run.header.build.target);
        let trial_widths = findings::widths(table, &run.failures);
        let precision = widest(widths(&rings).chain(trial_widths));
        let found = response::ResponseFindings::from_run(run, table, &rings);
        Self::new(run, table, summaries_in_order(run, table, rings), precision, found)
    }

    /// Returns the summary of a ring by its number in the plan.
    pub fn ring(&self, case: usize) -> Option<&CaseSummary> {
        self.cases.get(case)?.ring()
    }

    /// Returns the summary of a trial by its number in the plan.
    pub fn trial(&self, case: usize) -> Option<&findings::TrialSummary> {
        self.cases.get(case)?.trial()
    }
}

/// Returns the summaries of rings and trials in the order of the plan.
fn summaries_in_order(run: &Run, table: &Table, rings: Vec<CaseSummary>) -> Vec<ResponseSummary> {
    let (mut rings, mut trials) = (rings.into_iter(), findings::summaries(run, table).into_iter());
    let mut cases = Vec::new();
    for case in &table.plan.cases {
        match case {
            Case::Ring(_) => {
                if let Some(ring) = rings.next() {
                    cases.push(ResponseSummary::Ring(Box::new(ring)));
                }
            }
            Case::Trial(_) => {
                if let Some(trial) = trials.next() {
                    cases.push(ResponseSummary::Trial(Box::new(trial)));
                }
            }
        }
    }
    cases
}

impl ExplainRecord {
    /// Computes the record of a run.
    pub fn from_run(run: &Run) -> Self {
        let table = &Table::new(&run.header.plan, &run.samples);
        let rings = summaries_at_clocks(table, &run.failures, &run.header.build.target);
        let explained = explain::find(table);
        // Of the whole: what would add to it is known to a share of that, not of itself.
        let precision = explained.as_ref().and_then(|switch| switch.whole_ns?.precision());
        let ns_per_tick = findings::ns_per_tick(&run.samples);
        let found = ExplainFindings { explained, ns_per_tick };
        Self::new(run, table, summaries_in_order(run, table, rings), precision, found)
    }
}

fn speeds(table: &Table, target: &str) -> Vec<CpuSpeed> {
    let mut speeds = Vec::new();
    for (cpus, level) in table.levels() {
        let clock_ghz = level.clock_ghz(target);
        speeds.push(CpuSpeed { cpus: cpus.clone(), level: *level, clock_ghz });
    }
    speeds
}

/// Returns the laws of cases that differ in nothing but their size. Solo rings and rings that do not
/// switch have none.
fn series(cases: &[CaseSummary]) -> Vec<Series> {
    let mut all_series = Vec::new();
    for (_, mut numbers) in group_cases(cases, size_group) {
        numbers.sort_by_key(|number| cases[*number].case.members);
        let points: Vec<CurvePoint> =
            numbers.iter().filter_map(|number| cases[*number].point()).collect();
        let law = above_zero(scaling::law(&points));
        all_series.push(Series { cases: numbers, in_words: law.in_words(), law });
    }
    all_series
}

/// Returns the solo ring of a case, which is that of all cases that differ only in their size;
/// absent for a ring that does not switch, for several rings, and with several items under way.
fn size_group(summary: &CaseSummary) -> Option<RingCase> {
    let case = &summary.case;
    if summary.does_not_switch || case.has_several_rings() || case.flight.is_some() {
        return None;
    }
    Some(RingCase { members: 1, ..summary.case.clone() })
}

/// Steps from the smallest to the largest size at which a law is evaluated.
const LAW_STEPS: i32 = 48;

/// Returns a law from the smallest to the largest measured size, as members and the cost of a switch
/// in nanoseconds: at equal ratios, and on both sides of each turn. Empty without a law.
pub fn course(law: &scaling::ScalingVerdict) -> Vec<(f64, f64)> {
    let (low, high) = (f64::from(law.smallest_members), f64::from(law.largest_members));
    if low <= 0.0 || high <= low {
        return Vec::new();
    }
    let ratio = (high / low).powf(1.0 / f64::from(LAW_STEPS));
    let mut sizes = Vec::new();
    for step in 0..=LAW_STEPS {
        sizes.push((low * ratio.powi(step)).clamp(low, high));
    }
    if let Some(curve) = &law.curve {
        for turn in &curve.turns {
            sizes.extend([*turn, turn * (1.0 + 1e-6)]);
        }
    }
    sizes.retain(|size| (low..=high).contains(size));
    sizes.sort_by(f64::total_cmp);
    let mut course = Vec::new();
    for members in sizes {
        if let Some(cost) = law.cost_at(members) {
            course.push((members, cost));
        }
    }
    course
}

/// Returns the law, or none if it has costs at or below zero between measured sizes: no switch costs
/// that.
fn above_zero(law: scaling::ScalingVerdict) -> scaling::ScalingVerdict {
    if course(&law).iter().all(|(_, ns)| *ns > 0.0) {
        return law;
    }
    let why = "the law that fits best has costs below zero".to_string();
    let law_of = scaling::ScalingLaw::CannotTell { why };
    scaling::ScalingVerdict {
        law: law_of,
        curve: None,
        knees: Vec::new(),
        trend_below: None,
        ..law
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cost that grows linearly, 1000 ns and 100 for each member.
    fn linear() -> scaling::ScalingVerdict {
        let point = |members: u32| {
            let y = 1000.0 + 100.0 * f64::from(members);
            CurvePoint { x: f64::from(members), y, error: Some(y / 200.0) }
        };
        scaling::law(&[2, 4, 8, 16, 32, 64].map(point))
    }

    #[test]
    fn a_law_is_drawn_within_its_data() {
        let course = course(&linear());
        let (first, last) = (course[0], course[course.len() - 1]);
        assert!(first.0 == 2.0 && (first.1 - 1200.0).abs() < 20.0, "{first:?}");
        assert!(last.0 == 64.0 && (last.1 - 7400.0).abs() < 80.0, "{last:?}");
        assert_eq!(above_zero(linear()), linear());
        assert!(super::course(&scaling::law(&[])).is_empty());
    }

    #[test]
    fn a_law_below_zero_is_none() {
        let mut law = linear();
        law.curve.as_mut().expect("a line").coefficients[0] = -1000.0;
        let none = above_zero(law);
        assert!(none.curve.is_none() && course(&none).is_empty());
        assert_eq!(none.in_words(), "inconclusive: the law that fits best has costs below zero");
    }
}
