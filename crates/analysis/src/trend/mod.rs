//! The cost of a case over the stored runs of a machine: when it changed, and what changed in the
//! machine at that time.
//!
//! Figures are converted to one clock of the core, so that turbo is no change of cost; changes
//! of the clock are reported by themselves. Example: ten runs with about 1,500 ns, then ten with
//! about 1,560 ns.
//!
//! 1. Neighbours differ by 0.3 % at random. Each run gets this as its standard error, with its own
//!    error and a least error of 0.1 % (`steps`).
//! 2. A run with 1,950 ns, more than 5 errors from the median of the five around it, stands alone:
//!    its error becomes as large as its distance, so that it hardly counts.
//! 3. A step of 4 % between two means of ten (error 0.3 % * sqrt(2 / 10) = 0.13 %) lowers
//!    chi-squared by about 890. It must be lowered by 4 ln(20) + 4 = 16, so there are two levels.
//! 4. The ratio of the levels, 1.040, has an interval of 1.037 to 1.043. It excludes 1: a change.
//!
//! The formulas are in `docs/method.md`, and how often a change is found, and none where there is
//! none, in `docs/validation.md`.

mod changes;
mod choice;
mod series;
mod steps;
mod words;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::ratio::CostRatio;

pub(crate) use choice::label_matches;
pub use choice::{FollowedCase, PlannedCases, choose};

use crate::comparison::{GateVerdict, WantedCost};
use crate::marked;
use crate::marked::MarkedText;
use crate::results::{Quantity, Results};
use rundata::experiment::named;
use rundata::machine::FieldDifference;
use series::CaseSeries;
use steps::PlacedFigure;

/// Version of the JSON form.
pub const SCHEMA: u32 = 1;

/// The cost that is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Cost")]
pub enum TrendCost {
    /// Time of a switch above solo; of a hop where a ring does not switch; of a trial.
    #[default]
    Switch,
    /// Time of a hop.
    Hop,
}

named!(TrendCost, "cost", Switch => "switch", Hop => "hop");

impl TrendCost {
    /// Returns the quantities that can stand for the cost, the best first.
    fn quantities(self) -> &'static [Quantity] {
        match self {
            Self::Switch => WantedCost::Switch.quantities(),
            Self::Hop => WantedCost::Hop.quantities(),
        }
    }
}

/// The runs that are one point of the series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "By")]
pub enum PointGrouping {
    /// The runs on a kernel release, together.
    Kernel,
    /// The runs under a scheduler, together.
    Scheduler,
    /// The runs of a build of this program, together.
    Build,
    /// A single run.
    #[default]
    Run,
}

named!(PointGrouping, "grouping", Kernel => "kernel", Scheduler => "scheduler", Build => "build", Run => "run");

/// Settings of a trend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Terms")]
pub struct TrendSettings {
    /// The cost that is followed.
    pub cost: TrendCost,
    /// The runs that are one point.
    pub by: PointGrouping,
    /// The share by which the newest change may be slower: 0.03 is 3 %. Absent without a gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
}

/// A run, or all runs of one kernel, scheduler or build, at the clock of the series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Point")]
pub struct TrendPoint {
    /// The run's name, the kernel's release, the scheduler's name, or the build.
    pub name: String,
    /// Names of the runs that the point is the mean of.
    pub runs: Vec<String>,
    /// Start of the first of these runs, RFC 3339, UTC.
    pub started: String,
    /// Number of the point's level: the count of changes before it.
    pub level: usize,
    /// The cost in nanoseconds.
    pub ns: f64,
    /// Lower end of its 95 % interval, with the scatter between runs.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// The cost in cycles of the core's clock; absent where the clock is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycles: Option<f64>,
    /// The clock that the core had in these runs, in GHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_ghz: Option<f64>,
    /// Kernel release of the first run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Version of this program that measured the first run.
    pub version: String,
    /// Commit of this program that measured the first run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Count of runs that are far from those before and after them, and hardly count.
    pub alone: u32,
}

/// A stretch of the series without a change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Level")]
pub struct CostLevel {
    /// Number of its first point.
    pub first: usize,
    /// Number of its last point.
    pub last: usize,
    /// Count of its runs.
    pub runs: usize,
    /// Their cost in nanoseconds.
    pub ns: f64,
    /// Lower end of its 95 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// The cost in cycles of the core's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycles: Option<f64>,
}

/// A change of the cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Change")]
pub struct CostChange {
    /// Number of the first point after the change.
    pub at: usize,
    /// Start of that point, RFC 3339, UTC.
    pub since: String,
    /// Name of the first run after the change.
    pub run: String,
    /// Name of the last run before it.
    pub after_run: String,
    /// The cost before in nanoseconds.
    pub before_ns: f64,
    /// The cost after in nanoseconds.
    pub after_ns: f64,
    /// after / before, with a 95 % interval.
    pub ratio: CostRatio,
    /// Changes of the machine that affect the cost of a switch: between the second run before and
    /// the second run after, as the change may be one run earlier or later.
    pub machine: Vec<FieldDifference>,
    /// Changes of the program that measured, between the same runs.
    pub program: Vec<FieldDifference>,
    /// The core's clocks before and after, in GHz, where they differ; the costs are corrected for
    /// them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks_ghz: Option<[f64; 2]>,
    /// In words: `4.1 % (3.6 to 4.7) slower since 2026-11-12, 1.54 us, not 1.48 us: kernel 6.12.3 ->
    /// 6.12.9`.
    pub in_words: MarkedText,
}

impl CostChange {
    /// Returns whether the cost rose.
    pub fn is_dearer(&self) -> bool {
        self.after_ns > self.before_ns
    }

    /// Returns whether the whole interval is slower by more than `limit`.
    fn is_beyond(&self, limit: f64) -> bool {
        self.ratio.low.is_some_and(|low| low > 1.0 + limit)
    }

    /// Returns whether the cost rose, and the interval does not exclude a rise by more than `limit`.
    fn may_be_beyond(&self, limit: f64) -> bool {
        self.is_dearer() && self.ratio.high.is_none_or(|high| high > 1.0 + limit)
    }
}

/// A change of the core's clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockChange {
    /// Number of the first point after the change.
    pub at: usize,
    /// Start of that point, RFC 3339, UTC.
    pub since: String,
    /// The clock before, in GHz.
    pub before_ghz: f64,
    /// The clock after, in GHz.
    pub after_ghz: f64,
    /// In words.
    pub in_words: String,
}

/// Runs that do not count, for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "LeftOut")]
pub struct LeftOutRuns {
    /// The reason.
    pub why: String,
    /// Names of the runs.
    pub runs: Vec<String>,
}

/// The decision whether the newest change may pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Gate")]
pub struct TrendGate {
    /// The verdict.
    pub verdict: GateVerdict,
    /// The verdict and its reason in words.
    pub in_words: MarkedText,
    /// The reason alone; empty in a verdict that was read from JSON.
    #[serde(skip)]
    pub reason: String,
}

/// The cost of one case over several runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Trend")]
pub struct CaseTrend {
    /// Version of this form.
    pub schema: u32,
    /// The case that is followed.
    pub case: FollowedCase,
    /// Settings of the trend.
    pub terms: TrendSettings,
    /// The quantity that stands for the cost; absent where no run has one.
    #[serde(default, rename = "of", skip_serializing_if = "Option::is_none")]
    pub quantity: Option<Quantity>,
    /// The clock that all figures are converted to, in GHz: the median of the runs. Absent where it
    /// is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_ghz: Option<f64>,
    /// Count of runs whose figures count.
    pub runs: usize,
    /// Start of the newest of them, RFC 3339, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// The points, in the order of their first runs.
    pub points: Vec<TrendPoint>,
    /// The levels in order: one more than there are changes.
    pub levels: Vec<CostLevel>,
    /// The changes in order.
    pub changes: Vec<CostChange>,
    /// Changes of the core's clock.
    pub clock_changes: Vec<ClockChange>,
    /// Relative standard deviation between neighbours in time, beyond their own errors.
    pub scatter: f64,
    /// Correlation of neighbours, from 0 to 0.8; the intervals are widened by it.
    pub dependence: f64,
    /// The smallest change, as a share, that the newest three runs would show, whatever the
    /// elasticity of the cost is. Absent below six runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detectable: Option<f64>,
    /// Runs that do not count, by reason.
    pub left_out: Vec<LeftOutRuns>,
    /// The answer.
    pub in_words: MarkedText,
    /// The decision of the gate; absent where none was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<TrendGate>,
}

impl CaseTrend {
    /// Returns the trend of a case over runs, which may be in any order.
    pub fn from_runs(case: &FollowedCase, runs: &[Results], terms: TrendSettings) -> Self {
        let series = CaseSeries::from_runs(case, runs, terms);
        let (changes, steps) = changes::cost_changes(&series, series.steps());
        let mut trend = Self {
            schema: SCHEMA,
            case: case.clone(),
            terms,
            quantity: series.quantity,
            clock_ghz: series.clock_ghz,
            runs: series.figures.len(),
            until: series.until.clone(),
            points: series.points(&steps),
            levels: series.levels(&steps),
            changes,
            clock_changes: changes::clock_changes(&series),
            scatter: steps.scatter,
            dependence: steps.dependence,
            detectable: steps.detectable().map(|share| share + series.hidden_by_clock()),
            left_out: series.left_out,
            in_words: MarkedText::default(),
            gate: None,
        };
        trend.in_words = words::answer(&trend);
        trend.gate = terms.limit.map(|limit| trend.gate(limit));
        trend
    }

    /// Returns the change whose ratio is furthest from 1 in either direction; the newest of equals.
    pub fn largest_change(&self) -> Option<&CostChange> {
        self.changes.iter().max_by(|a, b| log_distance(a).total_cmp(&log_distance(b)))
    }

    fn gate(&self, limit: f64) -> TrendGate {
        let newest = self.changes.last();
        let verdict = match (newest, self.detectable) {
            (Some(change), _) if change.is_beyond(limit) => GateVerdict::Fail,
            (Some(change), _) if change.may_be_beyond(limit) => GateVerdict::Undecided,
            (_, Some(detectable)) if detectable <= limit => GateVerdict::Pass,
            _ => GateVerdict::Undecided,
        };
        let reason = words::gate_reason(self, verdict, limit);
        let in_words = marked![verdict.marked(), format!(": {reason}")];
        TrendGate { verdict, in_words, reason }
    }
}

/// Returns the distance of a change's ratio from 1, as a logarithm.
fn log_distance(change: &CostChange) -> f64 {
    change.ratio.value.map_or(0.0, |ratio| ratio.ln().abs())
}

#[cfg(test)]
mod tests;
