//! What a run says, whatever was measured: its cases, what the experiment is about, the verdicts.

use rundata::case::Case;
use rundata::competing::CompetingTasks;
use rundata::experiment::Experiment;
use rundata::ring::RingCase;
use rundata::run::{Header, Run, RunEnd};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cost::{CostFindings, group_cases};
use crate::curve::CurvePoint;
use crate::estimate::widest;
use crate::explain;
use crate::findings::{self, ExperimentFindings};
use crate::noise::{self, NoiseVerdict};
use crate::response::{self, ResponseSummary};
use crate::scaling;
use crate::speed::SpeedLevel;
use crate::summary::{CaseSummary, summaries_at_clocks, widths, worst_precision};
use crate::table::Table;

/// How the cost grows with the ring, for the cases that differ in nothing but their size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// Numbers of the cases, by ring size.
    pub cases: Vec<usize>,
    /// The law of `ns_per_switch_above_solo` against ring size.
    pub law: scaling::ScalingVerdict,
    /// The law in words.
    pub in_words: String,
}

/// What `ring` and `cost` are about.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RingFindings {
    /// Scaling laws, one for each series of sizes, of the costs that may be quoted; none of a run
    /// that did not end.
    pub scaling: Vec<Series>,
    /// What switches cost by working set; absent for experiments that do not ask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostFindings>,
    /// The CPUs' own speed, by the CPUs that the leaders ran on; empty where it was not measured.
    pub speed: Vec<CpuSpeed>,
}

/// What `clock` and `classic experiment interference` are about.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TrialFindings {
    /// What the experiment is about; absent where its measures say it all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub findings: Option<ExperimentFindings>,
    /// Nanoseconds to a tick of the time-stamp counter, the median over samples; absent without
    /// such a counter.
    pub ns_per_tick: Option<f64>,
}

/// What `explain` is about.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ExplainFindings {
    /// What a switch is made of; absent of a plan without the ring of two by pipe.
    pub explained: Option<explain::ExplainedSwitch>,
    /// Nanoseconds to a tick of the time-stamp counter, the median over samples; absent without
    /// such a counter.
    pub ns_per_tick: Option<f64>,
}

/// All that a run says: of each case, and what its experiment is about. Computed on reading, never
/// stored.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Record_of_{Found}")]
pub struct Record<Case, Found> {
    /// The first line of the run file.
    pub header: Header,
    /// The last line; absent for a run that was killed.
    pub end: Option<RunEnd>,
    /// Cases in the order of the plan.
    pub cases: Vec<Case>,
    /// What the experiment is about.
    #[serde(flatten)]
    pub found: Found,
    /// Widest relative half-width of the intervals; absent as long as a case has none.
    pub worst_precision: Option<f64>,
    /// The verdict on the machine's noise.
    pub noise: NoiseVerdict,
    /// What else ran on the measured CPUs; absent where it was not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub company: Option<CompetingTasks>,
    /// What could not be measured or read.
    pub warnings: Vec<String>,
}

/// Of `ring` and `cost`.
pub type RingRecord = Record<CaseSummary, RingFindings>;
/// Of `clock` and `classic experiment interference`.
pub type TrialRecord = Record<findings::TrialSummary, TrialFindings>;
/// Of `response`.
pub type ResponseRecord = Record<ResponseSummary, response::ResponseFindings>;
/// Of `explain`.
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
            company: run.company.clone(),
            warnings: run.warnings.clone(),
        }
    }
}

/// How fast a CPU ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuSpeed {
    /// The CPU; several where the scheduler chose.
    pub cpus: Vec<u32>,
    /// Its level.
    pub level: SpeedLevel,
    /// Its clock in GHz by the latency-bound loop; absent where a multiplication's cycles are not
    /// known.
    pub clock_ghz: Option<f64>,
}

impl RingRecord {
    /// The record of a run.
    pub fn of(run: &Run) -> Self {
        let plan = &run.header.plan;
        let table = &Table::new(plan, &run.samples);
        let target = &run.header.build.target;
        let cases = summaries_at_clocks(table, &run.failures, target);
        let cost = (plan.experiment == Experiment::Cost)
            .then(|| CostFindings::from_cases(plan, table, &cases, &run.header.machine));
        // The law of a ring against its size is of hops without work.
        let has_law = cost.is_none() && run.unfinished().is_none();
        let scaling = if has_law { series(&cases) } else { Vec::new() };
        let found = RingFindings { scaling, cost, speed: speeds(table, target) };
        let precision = worst_precision(&cases);
        Self::new(run, table, cases, precision, found)
    }
}

impl TrialRecord {
    /// The record of a run.
    pub fn of(run: &Run) -> Self {
        let table = &Table::new(&run.header.plan, &run.samples);
        let ns_per_tick = findings::ns_per_tick(&run.samples);
        let findings = ExperimentFindings::from_table(table, run.company.as_ref());
        let found = TrialFindings { findings, ns_per_tick };
        let precision = widest(findings::widths(table, &run.failures));
        Self::new(run, table, findings::summaries(run, table), precision, found)
    }
}

impl ResponseRecord {
    /// The record of a run.
    pub fn of(run: &Run) -> Self {
        let table = &Table::new(&run.header.plan, &run.samples);
        let rings = summaries_at_clocks(table, &run.failures, &run.header.build.target);
        let of_trials = findings::widths(table, &run.failures);
        let precision = widest(widths(&rings).chain(of_trials));
        let found = response::ResponseFindings::from_run(run, table, &rings);
        Self::new(run, table, of_both(run, table, rings), precision, found)
    }

    /// The summary of a ring by its number in the plan.
    pub fn ring(&self, case: usize) -> Option<&CaseSummary> {
        self.cases.get(case)?.ring()
    }

    /// The summary of a trial by its number in the plan.
    pub fn trial(&self, case: usize) -> Option<&findings::TrialSummary> {
        self.cases.get(case)?.trial()
    }
}

/// The summaries of rings and trials in the order of the plan.
fn of_both(run: &Run, table: &Table, rings: Vec<CaseSummary>) -> Vec<ResponseSummary> {
    let (mut rings, mut trials) = (rings.into_iter(), findings::summaries(run, table).into_iter());
    let cases = table.plan.cases.iter().filter_map(|case| match case {
        Case::Ring(_) => rings.next().map(|ring| ResponseSummary::Ring(Box::new(ring))),
        Case::Trial(_) => trials.next().map(|trial| ResponseSummary::Trial(Box::new(trial))),
    });
    cases.collect()
}

impl ExplainRecord {
    /// The record of a run.
    pub fn of(run: &Run) -> Self {
        let table = &Table::new(&run.header.plan, &run.samples);
        let rings = summaries_at_clocks(table, &run.failures, &run.header.build.target);
        let explained = explain::find(table);
        // Of the whole: what would add to it is known to a share of that, not of itself.
        let precision = explained.as_ref().and_then(|of| of.whole_ns?.precision());
        let ns_per_tick = findings::ns_per_tick(&run.samples);
        let found = ExplainFindings { explained, ns_per_tick };
        Self::new(run, table, of_both(run, table, rings), precision, found)
    }
}

fn speeds(table: &Table, target: &str) -> Vec<CpuSpeed> {
    let speed = |(cpus, level): (&Vec<u32>, &SpeedLevel)| CpuSpeed {
        cpus: cpus.clone(),
        level: *level,
        clock_ghz: level.clock_ghz(target),
    };
    table.levels().iter().map(speed).collect()
}

/// Laws for the cases that differ in nothing but their size; of solo rings and of what does not
/// switch there is none.
fn series(cases: &[CaseSummary]) -> Vec<Series> {
    let key = |of: &CaseSummary| {
        (!of.does_not_switch).then(|| RingCase { members: 1, ..of.case.clone() })
    };
    let law_of = |(_, mut indices): (RingCase, Vec<usize>)| {
        indices.sort_by_key(|index| cases[*index].case.members);
        let points: Vec<CurvePoint> =
            indices.iter().filter_map(|index| cases[*index].point()).collect();
        let law = above_zero(scaling::law(&points));
        Series { cases: indices, in_words: law.in_words(), law }
    };
    group_cases(cases, key).into_iter().map(law_of).collect()
}

/// Places between the smallest and the largest size at which a law is looked at.
const COURSE_PLACES: i32 = 48;

/// A law from the smallest to the largest measured size: members and the cost of a switch in
/// nanoseconds. At equal ratios, and on both sides of each turn; empty without a law.
pub fn course(law: &scaling::ScalingVerdict) -> Vec<(f64, f64)> {
    let (low, high) = (f64::from(law.smallest_members), f64::from(law.largest_members));
    if low <= 0.0 || high <= low {
        return Vec::new();
    }
    let step = (high / low).powf(1.0 / f64::from(COURSE_PLACES));
    let turns = law.curve.iter().flat_map(|curve| &curve.turns);
    let around = turns.flat_map(|turn| [*turn, turn * (1.0 + 1e-6)]);
    let within = around.filter(|place| (low..=high).contains(place));
    let mut places: Vec<f64> =
        (0..=COURSE_PLACES).map(|i| (low * step.powi(i)).clamp(low, high)).chain(within).collect();
    places.sort_by(f64::total_cmp);
    places.into_iter().filter_map(|members| Some((members, law.cost_at(members)?))).collect()
}

/// A law that has a switch cost nothing or less somewhere between two measured sizes describes none
/// of them.
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
