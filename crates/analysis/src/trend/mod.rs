//! The stored runs of a machine as a record of it: a case's cost over time, where it changed, and
//! what of the machine changed with it.
//!
//! All figures are at one clock of the core, so that a turbo is no change of cost; the clock has
//! changes of its own. `docs/method.md` has the formulas; `docs/validation.md` has how often a
//! change is found, and none where there is none.

mod changes;
mod choice;
mod series;
mod steps;
mod words;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::ratio::CostRatio;

pub use choice::{Case, Planned, choose};

use crate::comparison::{GateVerdict, WantedCost};
use crate::marked::MarkedText;
use crate::results::{Quantity, Results};
use rundata::experiment::named;
use rundata::machine::FieldDifference;
use series::Series;
use steps::Steps;

/// Version of the JSON form.
pub const SCHEMA: u32 = 1;

/// Which cost is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cost {
    /// Of a switch above solo; of a ring that does not switch that of a hop, of a trial its own.
    #[default]
    Switch,
    /// Of a hop.
    Hop,
}

named!(Cost, "cost", Switch => "switch", Hop => "hop");

impl Cost {
    /// Which figures serve, the best first.
    fn quantities(self) -> &'static [Quantity] {
        match self {
            Self::Switch => WantedCost::Switch.quantities(),
            Self::Hop => WantedCost::Hop.quantities(),
        }
    }
}

/// What a point of the series is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// All runs on a kernel release, together.
    Kernel,
    /// All runs of a build of this program, together.
    Build,
    /// A run.
    #[default]
    Run,
}

named!(By, "grouping", Kernel => "kernel", Build => "build", Run => "run");

/// How the runs are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Terms {
    /// Which cost.
    pub cost: Cost,
    /// What a point is.
    pub by: By,
    /// The share by which the newest change may be slower: 0.03 is 3 %. Absent where nobody asked
    /// for a gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
}

/// A run, or all runs of one kernel or build, at the clock of the series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// The run's name, the kernel's release, or the build.
    pub name: String,
    /// The runs that it is the mean of, by name.
    pub runs: Vec<String>,
    /// When the first of them began, RFC 3339, UTC.
    pub started: String,
    /// Number of its level: one more than changes before it.
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
    /// The clock that the core had in its runs, in GHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_ghz: Option<f64>,
    /// Kernel release of its first run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Version of this program that measured it.
    pub version: String,
    /// Its commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Runs of it that are far from those before and after them, and hardly count.
    pub alone: u32,
}

/// A stretch of the series without a change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Level {
    /// Number of its first point.
    pub first: usize,
    /// Number of its last point.
    pub last: usize,
    /// Runs.
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
pub struct Change {
    /// Number of the first point behind it.
    pub at: usize,
    /// When that began, RFC 3339, UTC.
    pub since: String,
    /// Its first run.
    pub run: String,
    /// The last run before it.
    pub after_run: String,
    /// The cost before in nanoseconds.
    pub before_ns: f64,
    /// The cost behind it.
    pub after_ns: f64,
    /// after / before, with a 95 % interval.
    pub ratio: CostRatio,
    /// What changed with it in the machine and affects the cost of a switch: between the second run
    /// before and the second behind, as the place may be one off.
    pub machine: Vec<FieldDifference>,
    /// What changed with it in the program that measured.
    pub program: Vec<FieldDifference>,
    /// The core's clocks before and behind, in GHz, where they differ: that is taken out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks_ghz: Option<[f64; 2]>,
    /// In words: `4.1 % (3.6 to 4.7) slower since 2026-11-12, 1.54 us, not 1.48 us: kernel 6.12.3 ->
    /// 6.12.9`.
    pub in_words: MarkedText,
}

impl Change {
    /// Whether the cost rose.
    pub fn is_dearer(&self) -> bool {
        self.after_ns > self.before_ns
    }

    /// Returns whether the whole interval says that it is slower by more than the limit.
    fn is_beyond(&self, limit: f64) -> bool {
        self.ratio.low.is_some_and(|low| low > 1.0 + limit)
    }

    /// Returns whether it is slower, and not shown to be so by no more than the limit.
    fn may_be_beyond(&self, limit: f64) -> bool {
        self.is_dearer() && self.ratio.high.is_none_or(|high| high > 1.0 + limit)
    }
}

/// A change of the core's clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockChange {
    /// Number of the first point behind it.
    pub at: usize,
    /// When that began, RFC 3339, UTC.
    pub since: String,
    /// The clock before, in GHz.
    pub before_ghz: f64,
    /// The clock behind it.
    pub after_ghz: f64,
    /// In words.
    pub in_words: String,
}

/// Runs that do not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// Why.
    pub why: String,
    /// Their names.
    pub runs: Vec<String>,
}

/// Whether the newest change may pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gate {
    /// The verdict.
    pub verdict: GateVerdict,
    /// With its reason, in words.
    pub in_words: MarkedText,
}

/// All that the runs say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trend {
    /// Version of this form.
    pub schema: u32,
    /// What is followed.
    pub case: Case,
    /// How.
    pub terms: Terms,
    /// Which cost it is; absent where no run has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<Quantity>,
    /// The clock that all figures are at, in GHz: the middle of the runs'. Absent where it is not
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_ghz: Option<f64>,
    /// Figures that count: runs.
    pub runs: usize,
    /// When the newest of them began, RFC 3339, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// In the order of their first runs.
    pub points: Vec<Point>,
    /// One more than there are changes.
    pub levels: Vec<Level>,
    /// In their order.
    pub changes: Vec<Change>,
    /// Of the core's clock.
    pub clock_changes: Vec<ClockChange>,
    /// Relative standard deviation between neighbours in time, beyond their own errors.
    pub scatter: f64,
    /// How far neighbours depend on each other: from 0 to 0.8, taken into account.
    pub dependence: f64,
    /// The smallest change, as a share, that the newest three runs would show, whatever is not
    /// known of how the cost goes with the clock. Absent below six runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detectable: Option<f64>,
    /// Runs that do not count, by reason.
    pub left_out: Vec<LeftOut>,
    /// The answer.
    pub in_words: MarkedText,
    /// Absent where nobody asked for a gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
}

impl Trend {
    /// What these runs, in any order, say of a case.
    pub fn of(case: &Case, sides: &[Results], terms: Terms) -> Self {
        let series = Series::of(case, sides, terms);
        let steps = series.steps();
        let (changes, steps) = changes::of_cost(&series, steps);
        let clock_changes = changes::of_clock(&series);
        let mut found = Self {
            schema: SCHEMA,
            case: case.clone(),
            terms,
            of: series.of,
            clock_ghz: series.clock_ghz,
            runs: series.figures.len(),
            until: series.until.clone(),
            points: series.points(&steps),
            levels: series.levels(&steps),
            changes,
            clock_changes,
            scatter: steps.scatter,
            dependence: steps.dependence,
            detectable: steps.detectable().map(|share| share + series.open()),
            left_out: series.left_out,
            in_words: MarkedText::default(),
            gate: None,
        };
        found.in_words = words::answer(&found);
        found.gate = terms.limit.map(|limit| found.gate(limit));
        found
    }

    /// Returns the change that is furthest from none, whichever way; the newest of equals.
    pub fn largest_change(&self) -> Option<&Change> {
        let extent = |change: &Change| change.ratio.value.map_or(0.0, |ratio| ratio.ln().abs());
        self.changes.iter().max_by(|one, other| extent(one).total_cmp(&extent(other)))
    }

    fn gate(&self, limit: f64) -> Gate {
        let newest = self.changes.last();
        let verdict = match (newest, self.detectable) {
            (Some(change), _) if change.is_beyond(limit) => GateVerdict::Fail,
            (Some(change), _) if change.may_be_beyond(limit) => GateVerdict::Undecided,
            (_, Some(detectable)) if detectable <= limit => GateVerdict::Pass,
            _ => GateVerdict::Undecided,
        };
        Gate { verdict, in_words: words::gate(self, verdict, limit) }
    }
}

/// Of figures and errors as they stand.
fn steps_of(all: impl IntoIterator<Item = (usize, f64, f64)>) -> Steps {
    let figure = |(place, value, error)| steps::Figure { place, value, error };
    Steps::of(&all.into_iter().map(figure).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests;
