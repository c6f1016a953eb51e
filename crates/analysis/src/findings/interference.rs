//! `classic experiment interference`: whether a disturbance affects the execution time of a ring of
//! two (Tables 1 and 2 of Li, Ding and Shen 2007, section 3.3).
//!
//! The two-process program runs a handful of times in each of four conditions, augmented or plain
//! setting, quiet or disturbed, at several array sizes. [`judge`] compares how the interval of each
//! setting grew under the disturbance. Formulas and sources are in `docs/method.md`.

use std::collections::{BTreeMap, BTreeSet};

use rundata::trial::interference::*;
use rundata::trial::{Trial, TrialSample};
use rundata::words::{percent, time, times, two_digits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{Interval, MeanShift, Permutation, PooledGrowth, SampleSummary, ScatterGrowth, mean};

use crate::marked;
use crate::marked::MarkedText;
use crate::table::Table;

/// Confidence of all intervals of this experiment, as in the paper.
pub const CONFIDENCE: f64 = 0.90;

/// Fewest events of the disturbance in all runs of a condition together: with fewer they were hardly
/// disturbed.
const FEWEST_EVENTS: i64 = 5;

/// The runs of one setting in one environment at one array size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Runs")]
pub struct ConditionTimes {
    /// The setting.
    pub setting: ProgramSetting,
    /// The environment.
    pub environment: Environment,
    /// Array of each member in bytes.
    pub array_bytes: u64,
    /// Mean and scatter of the execution times, in one unit throughout. `None` with fewer than two
    /// runs.
    pub times: Option<SampleSummary>,
    /// The execution times by round; empty where only their mean and scatter are known.
    #[serde(default)]
    pub by_round: BTreeMap<u32, f64>,
}

impl ConditionTimes {
    /// Builds the condition from the execution times of single runs, by round.
    pub fn from_rounds(
        setting: ProgramSetting,
        environment: Environment,
        array_bytes: u64,
        by_round: BTreeMap<u32, f64>,
    ) -> Self {
        let values: Vec<f64> = by_round.values().copied().collect();
        let times = SampleSummary::from_values(&values);
        Self { setting, environment, array_bytes, times, by_round }
    }

    /// Returns the times if something can be relative to their mean.
    fn positive_times(&self) -> Option<SampleSummary> {
        self.times.filter(|times| times.mean > 0.0)
    }

    /// Returns the width of the mean's interval relative to the mean.
    fn width(&self) -> Option<f64> {
        let times = self.positive_times()?;
        let interval = times.interval(CONFIDENCE)?;
        Some((interval.high - interval.low) / times.mean)
    }

    /// Returns the times relative to their mean.
    fn relative(&self) -> Option<SampleSummary> {
        let times = self.positive_times()?;
        Some(SampleSummary { mean: 1.0, deviation: times.deviation / times.mean, ..times })
    }
}

/// Comparison of quiet with disturbed runs of a setting at an array size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Comparison")]
pub struct SettingComparison {
    /// The setting.
    pub setting: ProgramSetting,
    /// Array of each member in bytes.
    pub array_bytes: u64,
    /// Student's interval of the quiet mean, at [`CONFIDENCE`].
    pub quiet: Option<Interval>,
    /// Student's interval of the disturbed mean, at [`CONFIDENCE`].
    pub disturbed: Option<Interval>,
    /// Growth of the scatter, which with as many runs is that of the half-width.
    pub growth: Option<ScatterGrowth>,
    /// Disturbed less quiet mean, relative to the quiet mean, with Welch's interval.
    pub moved: Option<MeanShift>,
}

/// Widths of the intervals of both settings in one environment, relative to the means, as the paper
/// compares them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Widths")]
pub struct IntervalWidths {
    /// The environment.
    pub environment: Environment,
    /// Narrowest and widest interval of the augmented setting, over the array sizes: 0.013 is 1.3 %
    /// of the mean.
    pub augmented: (f64, f64),
    /// Narrowest and widest interval of the plain setting.
    pub plain: (f64, f64),
    /// Plain over augmented: geometric mean over the array sizes. Absent where a scatter is zero.
    pub plain_over_augmented: Option<ScatterGrowth>,
    /// Permutation test of that ratio; absent where single times are not known.
    pub by_chance: Option<Permutation>,
}

/// The answer of [`judge`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Verdict")]
pub struct InterferenceVerdict {
    /// Every setting at every array size, settings apart, arrays ascending.
    pub comparisons: Vec<SettingComparison>,
    /// The settings against each other, in quiet and disturbed.
    #[serde(default)]
    pub widths: Vec<IntervalWidths>,
    /// Growth of the augmented setting's intervals: geometric mean over the array sizes.
    pub augmented: Option<ScatterGrowth>,
    /// Growth of the plain setting's.
    pub plain: Option<ScatterGrowth>,
    /// The plain setting's growth over the augmented one's.
    pub plain_over_augmented: Option<ScatterGrowth>,
    /// Permutation test of the augmented setting's growth; absent where single times are not known.
    pub augmented_by_chance: Option<Permutation>,
    /// Permutation test of the plain setting's growth.
    pub plain_by_chance: Option<Permutation>,
}

/// Compares quiet with disturbed runs in each setting. Runs may come in any order; with equal
/// setting, environment and size the first counts.
pub fn judge(runs: &[ConditionTimes]) -> InterferenceVerdict {
    let augmented = SettingGrowth::from_runs(runs, ProgramSetting::Augmented);
    let plain = SettingGrowth::from_runs(runs, ProgramSetting::Plain);
    let plain_over_augmented = match (plain.pooled, augmented.pooled) {
        (Some(plain), Some(augmented)) => plain.over(augmented).growth(CONFIDENCE),
        _ => None,
    };
    let mut widths = Vec::new();
    for environment in Environment::ALL {
        widths.extend(IntervalWidths::from_runs(runs, *environment));
    }
    InterferenceVerdict {
        augmented_by_chance: augmented.by_chance,
        plain_by_chance: plain.by_chance,
        augmented: augmented.growth(),
        plain: plain.growth(),
        plain_over_augmented,
        comparisons: [augmented.comparisons, plain.comparisons].concat(),
        widths,
    }
}

/// Returns the runs of a condition at an array size.
fn find_condition(
    runs: &[ConditionTimes],
    setting: ProgramSetting,
    environment: Environment,
    array_bytes: u64,
) -> Option<&ConditionTimes> {
    let wanted = (setting, environment, array_bytes);
    runs.iter().find(|runs| (runs.setting, runs.environment, runs.array_bytes) == wanted)
}

impl IntervalWidths {
    /// Compares the array sizes that were run in both settings.
    fn from_runs(runs: &[ConditionTimes], environment: Environment) -> Option<Self> {
        let sizes: BTreeSet<u64> = runs.iter().map(|runs| runs.array_bytes).collect();
        let (mut augmented_widths, mut plain_widths) = (Vec::new(), Vec::new());
        let (mut relative, mut rounds) = (Vec::new(), Vec::new());
        for size in sizes {
            let augmented = find_condition(runs, ProgramSetting::Augmented, environment, size);
            let plain = find_condition(runs, ProgramSetting::Plain, environment, size);
            let (Some(augmented), Some(plain)) = (augmented, plain) else { continue };
            augmented_widths.extend(augmented.width());
            plain_widths.extend(plain.width());
            if let (Some(augmented), Some(plain)) = (augmented.relative(), plain.relative()) {
                relative.push((augmented, plain));
            }
            rounds.extend(relative_times(augmented, plain));
        }
        let growth = PooledGrowth::from_pairs(&relative);
        Some(Self {
            environment,
            augmented: value_range(&augmented_widths)?,
            plain: value_range(&plain_widths)?,
            plain_over_augmented: growth.and_then(|growth| growth.growth(CONFIDENCE)),
            by_chance: Permutation::test(&rounds),
        })
    }

    /// `90 % intervals are 1.3 to 5.8 % wide in the augmented setting and 48 to 57 % in the plain
    /// one, 14.2x (9.1x to 22x) as wide`.
    fn in_words(&self) -> MarkedText {
        let (augmented, plain) = (percent_range(self.augmented), percent_range(self.plain));
        let wider = match self.plain_over_augmented {
            None => "which is wider is not known".into(),
            Some(growth) if growth.is_resolved() && too_often(growth, self.by_chance).is_none() => {
                marked![with_range(growth), " as wide"]
            }
            Some(growth) => {
                let (low, high) = (times(growth.low), times(growth.high));
                format!("no difference resolved ({low} to {high})").into()
            }
        };
        let settings =
            format!("{augmented} wide in the augmented setting and {plain} in the plain one, ");
        marked![settings, wider]
    }
}

/// Returns the smallest and the largest value.
fn value_range(values: &[f64]) -> Option<(f64, f64)> {
    let least = values.iter().copied().reduce(f64::min)?;
    let most = values.iter().copied().reduce(f64::max)?;
    Some((least, most))
}

/// Returns a range of shares in words: `1.3 to 5.8 %`.
fn percent_range(range: (f64, f64)) -> String {
    let (low, high) = (two_digits(100.0 * range.0), two_digits(100.0 * range.1));
    if low == high { format!("{low} %") } else { format!("{low} to {high} %") }
}

/// Returns the times of the rounds that have both conditions, relative to the means.
fn relative_times(first: &ConditionTimes, second: &ConditionTimes) -> Option<Vec<(f64, f64)>> {
    let (first_mean, second_mean) = (first.times?.mean, second.times?.mean);
    let mut times = Vec::new();
    for (first_time, second_time) in common_rounds(first, second) {
        times.push((first_time / first_mean, second_time / second_mean));
    }
    Some(times)
}

/// Returns the times of the rounds that have both conditions.
fn common_rounds(first: &ConditionTimes, second: &ConditionTimes) -> Vec<(f64, f64)> {
    let mut times = Vec::new();
    for (round, first_time) in &first.by_round {
        if let Some(second_time) = second.by_round.get(round) {
            times.push((*first_time, *second_time));
        }
    }
    times
}

/// The comparison of quiet with disturbed runs of one setting.
struct SettingGrowth {
    /// Comparisons by array size, ascending.
    comparisons: Vec<SettingComparison>,
    pooled: Option<PooledGrowth>,
    by_chance: Option<Permutation>,
}

impl SettingGrowth {
    fn from_runs(runs: &[ConditionTimes], setting: ProgramSetting) -> Self {
        let mut sizes = BTreeSet::new();
        for condition in runs {
            if condition.setting == setting {
                sizes.insert(condition.array_bytes);
            }
        }
        let (mut comparisons, mut pairs, mut rounds) = (Vec::new(), Vec::new(), Vec::new());
        for array_bytes in sizes {
            let quiet = find_condition(runs, setting, Environment::Quiet, array_bytes);
            let disturbed = find_condition(runs, setting, Environment::Disturbed, array_bytes);
            let quiet_times = quiet.and_then(|runs| runs.times);
            let disturbed_times = disturbed.and_then(|runs| runs.times);
            let mut comparison = SettingComparison {
                setting,
                array_bytes,
                quiet: quiet_times.and_then(|times| times.interval(CONFIDENCE)),
                disturbed: disturbed_times.and_then(|times| times.interval(CONFIDENCE)),
                growth: None,
                moved: None,
            };
            if let (Some(quiet), Some(disturbed)) = (quiet_times, disturbed_times) {
                comparison.growth = ScatterGrowth::between(&quiet, &disturbed, CONFIDENCE);
                comparison.moved = MeanShift::between(&quiet, &disturbed, CONFIDENCE);
                pairs.push((quiet, disturbed));
            }
            comparisons.push(comparison);
            if let (Some(quiet), Some(disturbed)) = (quiet, disturbed) {
                rounds.push(common_rounds(quiet, disturbed));
            }
        }
        let (pooled, by_chance) = (PooledGrowth::from_pairs(&pairs), Permutation::test(&rounds));
        Self { comparisons, pooled, by_chance }
    }

    /// Returns the growth of all array sizes together.
    fn growth(&self) -> Option<ScatterGrowth> {
        self.pooled.as_ref()?.growth(CONFIDENCE)
    }
}

impl InterferenceVerdict {
    /// Returns how the intervals and means of each setting changed under the disturbance, and which
    /// setting changed less; one sentence each, without the last full stop.
    pub fn in_words(&self) -> String {
        let mut sentences = vec![
            self.growth_in_words(
                ProgramSetting::Augmented,
                self.augmented,
                self.augmented_by_chance,
            ),
            self.growth_in_words(ProgramSetting::Plain, self.plain, self.plain_by_chance),
        ];
        let (plain, augmented) = (self.plain_by_chance, self.augmented_by_chance);
        if let Some(growth) = self.plain_over_augmented {
            let factor = with_range(growth);
            sentences.push(if growth.low > 1.0 && is_no_chance(plain, augmented) {
                format!("the plain setting's grew {factor} as much as the augmented one's")
            } else if growth.high < 1.0 && is_no_chance(augmented, plain) {
                format!("the plain setting's grew only {factor} as much as the augmented one's")
            } else {
                format!("which setting was disturbed less is not resolved, {factor}")
            });
        }
        format!("{} ({:.0} % intervals)", sentences.join(". "), 100.0 * CONFIDENCE)
    }

    fn growth_in_words(
        &self,
        setting: ProgramSetting,
        growth: Option<ScatterGrowth>,
        by_chance: Option<Permutation>,
    ) -> String {
        let name = format!("{setting} setting");
        let moved = self.shifts_in_words(setting);
        let Some(growth) = growth else {
            return format!(
                "{name}: inconclusive, it needs two runs or more in both environments, and some \
                 scatter in each{moved}"
            );
        };
        let factor = with_range(growth);
        let (grew, shrank) = (growth.low > 1.0, growth.high < 1.0);
        match too_often(growth, by_chance) {
            Some(share) => format!(
                "{name}: growth of its interval not resolved, {factor}: {} of the ways to swap \
                    quiet and disturbed within rounds do as much{moved}",
                percent(share)
            ),
            None if grew => {
                format!("{name}: its interval grew {factor} under the disturbance{moved}")
            }
            None if shrank => {
                format!("{name}: its interval shrank under the disturbance, to {factor}{moved}")
            }
            None => format!("{name}: growth of its interval not resolved, {factor}{moved}"),
        }
    }

    /// Returns the headline: how much narrower intervals are in the augmented setting than in the
    /// plain one, as the paper asked, quiet and disturbed; then their growth by the disturbance.
    pub fn headline(&self, noise: Noise) -> MarkedText {
        let mut widths = Vec::new();
        for interval_widths in &self.widths {
            let environment = match interval_widths.environment {
                Environment::Quiet => "in quiet ".to_string(),
                Environment::Disturbed => format!("under {} ", noise.events()),
            };
            widths.push(marked![environment, interval_widths.in_words()]);
        }
        let first = if widths.is_empty() {
            "How wide intervals of execution times are in each setting is not known (too few runs)"
                .into()
        } else {
            let confidence = 100.0 * CONFIDENCE;
            let what = format!("Intervals of execution times ({confidence:.0} %): ");
            marked![what, MarkedText::join(widths, "; ")]
        };
        marked![
            first,
            format!(". By {} they grew: ", noise.events()),
            growth_factor(self.augmented, self.augmented_by_chance),
            " in the augmented setting, ",
            growth_factor(self.plain, self.plain_by_chance),
            " in the plain one."
        ]
    }

    /// Returns the smallest and the largest shift of the setting's means, and how many are resolved;
    /// empty without shifts.
    fn shifts_in_words(&self, setting: ProgramSetting) -> String {
        let (mut percents, mut resolved) = (Vec::new(), 0);
        for comparison in self.comparisons.iter().filter(|one| one.setting == setting) {
            if let Some(shift) = comparison.moved {
                percents.push(100.0 * shift.part);
                resolved += usize::from(shift.is_resolved());
            }
        }
        let Some((least, most)) = value_range(&percents) else { return String::new() };
        let range = match percents.len() {
            1 => format!("its mean moved by {least:+.1} %"),
            _ => format!("its means moved by {least:+.1} to {most:+.1} %"),
        };
        format!("; {range} ({resolved} of {} resolved)", percents.len())
    }
}

/// Returns whether one setting's growth, or the other one's shrinking, is more than chance; true
/// where single times are not known.
fn is_no_chance(grown: Option<Permutation>, shrunk: Option<Permutation>) -> bool {
    grown.is_none_or(|grown| grown.grew(CONFIDENCE))
        || shrunk.is_none_or(|shrunk| shrunk.shrank(CONFIDENCE))
}

/// Returns the factor of a growth, if it is resolved.
fn growth_factor(growth: Option<ScatterGrowth>, by_chance: Option<Permutation>) -> MarkedText {
    let Some(growth) = growth else { return "not known (too few runs)".into() };
    if growth.is_resolved() && too_often(growth, by_chance).is_none() {
        return with_range(growth);
    }
    format!("not resolved ({} to {})", times(growth.low), times(growth.high)).into()
}

/// Returns the share of permutations that do as much as a resolved growth, if that is too large.
fn too_often(growth: ScatterGrowth, by_chance: Option<Permutation>) -> Option<f64> {
    let chance = by_chance?;
    if growth.low > 1.0 && !chance.grew(CONFIDENCE) {
        return Some(chance.up);
    }
    if growth.high < 1.0 && !chance.shrank(CONFIDENCE) {
        return Some(chance.down);
    }
    None
}

fn with_range(growth: ScatterGrowth) -> MarkedText {
    let range = format!(" ({} to {})", times(growth.low), times(growth.high));
    marked![MarkedText::figure(times(growth.ratio)), range]
}

/// Findings of `classic experiment interference`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Found")]
pub struct InterferenceFindings {
    /// Execution times in nanoseconds of every condition, in the order of the plan.
    pub runs: Vec<ConditionTimes>,
    /// Quiet against disturbed.
    pub verdict: InterferenceVerdict,
    /// The verdict in words.
    pub in_words: String,
    /// Mean events of the disturbance in a run, by setting; absent where nothing was disturbed.
    pub events_per_run: BTreeMap<String, f64>,
    /// Reasons to doubt the findings: conditions that were hardly disturbed, runs that the kernel may
    /// have throttled.
    #[serde(default)]
    pub doubts: Vec<String>,
}

pub(super) fn find<'a>(table: &'a Table<'a>) -> InterferenceFindings {
    let mut conditions = Vec::new();
    for (case, trial) in table.trials() {
        if let Trial::Execution(execution) = trial {
            conditions.push(Condition { case, execution, samples: table.trial_samples(case) });
        }
    }
    let runs: Vec<ConditionTimes> = conditions.iter().map(Condition::times).collect();
    let mut events_per_run = BTreeMap::new();
    for setting in ProgramSetting::ALL {
        if let Some(events) = mean_events(&conditions, *setting) {
            events_per_run.insert(setting.to_string(), events);
        }
    }
    let verdict = judge(&runs);
    let mut doubts = Vec::new();
    doubts.extend(doubt_disturbance(table, &conditions));
    doubts.extend(doubt_throttling(table, &conditions));
    InterferenceFindings { doubts, in_words: verdict.in_words(), verdict, runs, events_per_run }
}

/// A case of the experiment.
struct Condition<'a> {
    case: usize,
    execution: &'a Execution,
    samples: &'a [&'a TrialSample],
}

impl Condition<'_> {
    /// Returns the execution times of the runs.
    fn times(&self) -> ConditionTimes {
        let mut by_round = BTreeMap::new();
        for sample in self.samples {
            if let Some(time) = sample.tally(EXECUTION_NS).and_then(|tally| tally.mean()) {
                by_round.insert(sample.round, time);
            }
        }
        let Execution { setting, environment, .. } = *self.execution;
        ConditionTimes::from_rounds(setting, environment, self.execution.work.bytes, by_round)
    }
}

/// Returns the mean events of the disturbance in a run of a setting.
fn mean_events(conditions: &[Condition], setting: ProgramSetting) -> Option<f64> {
    let mut counts = Vec::new();
    for condition in conditions {
        if condition.execution.setting != setting {
            continue;
        }
        for sample in condition.samples {
            if let Some(count) = sample.count(NOISE_EVENTS) {
                counts.push(count as f64);
            }
        }
    }
    mean(&counts)
}

/// Returns the conditions whose runs together met too few events, and what helps.
fn doubt_disturbance(table: &Table, conditions: &[Condition]) -> Option<String> {
    let mut few = Vec::new();
    for Condition { case, execution, .. } in conditions {
        match table.sum(*case, NOISE_EVENTS) {
            Some(met) if met < FEWEST_EVENTS => few.push(format!("{execution} ({met})")),
            _ => {}
        }
    }
    if few.is_empty() {
        return None;
    }
    let events = conditions.first()?.execution.noise.events();
    Some(format!(
        "fewer than {FEWEST_EVENTS} {events} in all runs together of: {}; longer runs have more \
         (--budget, or sizes that are closer together)",
        few.join("; ")
    ))
}

/// Returns a doubt if real-time runs lasted so long that the kernel may have throttled them.
fn doubt_throttling(table: &Table, conditions: &[Condition]) -> Option<String> {
    let limit = MAX_REALTIME_NS as f64;
    let mut times_ns = Vec::new();
    for Condition { case, samples, .. } in conditions {
        let is_realtime = table.plan.trial(*case).is_some_and(|case| case.policy.is_realtime());
        if !is_realtime {
            continue;
        }
        for sample in *samples {
            if let Some(tally) = sample.tally(EXECUTION_NS) {
                times_ns.extend(tally.max());
            }
        }
    }
    let longest = times_ns.into_iter().max()? as f64;
    if longest <= limit {
        return None;
    }
    Some(format!(
        "real-time runs lasted up to {}: the kernel may have throttled them, as real-time work \
         gets 950 ms of each second (sched_rt_runtime_us). Fewer --laps keep them below {}",
        time(longest),
        time(limit)
    ))
}

#[cfg(test)]
mod tests;
