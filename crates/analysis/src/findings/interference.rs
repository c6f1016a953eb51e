//! `classic experiment interference`: does a disturbance reach the execution time of a ring of two?
//! Tables 1 and 2 of Li, Ding and Shen (2007, section 3.3).
//!
//! The two-process program runs a handful of times in each of four conditions, augmented or plain
//! setting, quiet or disturbed, at several array sizes. [`judge`] says which setting's interval
//! grew under the disturbance, and by how much. Formulas and sources are in `docs/method.md`.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::marked;
use crate::marked::MarkedText;
use crate::table::Table;
use rundata::trial::interference::*;
use rundata::trial::{Sample, Trial};
use rundata::words::{percent, time, times, two_digits};
use stats::{Interval, MeanShift, Permutation, PooledGrowth, SampleSummary, ScatterGrowth, mean};

/// The confidence of every interval here: the paper's.
pub const CONFIDENCE: f64 = 0.90;

/// Events of the disturbance that all runs of a condition should have met together: below it they
/// are hardly disturbed.
const FEWEST_EVENTS: i64 = 5;

/// The runs of one setting in one environment at one array size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Runs")]
pub struct ConditionTimes {
    /// The setting.
    pub setting: Setting,
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
    /// From the execution times of single runs, by round.
    pub fn from_rounds(
        setting: Setting,
        environment: Environment,
        array_bytes: u64,
        by_round: BTreeMap<u32, f64>,
    ) -> Self {
        let times = SampleSummary::from_values(&by_round.values().copied().collect::<Vec<f64>>());
        Self { setting, environment, array_bytes, times, by_round }
    }

    /// Width of the mean's interval as a part of the mean.
    fn width(&self) -> Option<f64> {
        let times = self.times.filter(|times| times.mean > 0.0)?;
        let interval = times.interval(CONFIDENCE)?;
        Some((interval.high - interval.low) / times.mean)
    }

    /// The times as parts of their mean.
    fn relative(&self) -> Option<SampleSummary> {
        let times = self.times.filter(|times| times.mean > 0.0)?;
        Some(SampleSummary { mean: 1.0, deviation: times.deviation / times.mean, ..times })
    }
}

/// One setting at one array size, quiet against disturbed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Comparison")]
pub struct SettingComparison {
    /// The setting.
    pub setting: Setting,
    /// Array of each member in bytes.
    pub array_bytes: u64,
    /// Student's interval of the quiet mean, at [`CONFIDENCE`].
    pub quiet: Option<Interval>,
    /// The same, disturbed.
    pub disturbed: Option<Interval>,
    /// How much the scatter, and with as many runs the half-width, grew.
    pub growth: Option<ScatterGrowth>,
    /// How far the mean moved, disturbed - quiet, as a part of the quiet mean: Welch's interval.
    pub moved: Option<MeanShift>,
}

/// How wide the intervals of both settings are in one environment, as parts of the means: what the
/// paper asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Widths")]
pub struct IntervalWidths {
    /// The environment.
    pub environment: Environment,
    /// From the narrowest to the widest of the augmented setting, over the array sizes: 0.013 is
    /// 1.3 % of the mean.
    pub augmented: (f64, f64),
    /// The same of the plain setting.
    pub plain: (f64, f64),
    /// Plain over augmented: geometric mean over the array sizes. Absent where a scatter is zero.
    pub plain_over_augmented: Option<ScatterGrowth>,
    /// How often chance gives as much; absent where single times are not known.
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
    /// How often chance gives the augmented setting's growth; absent where single times are not
    /// known.
    pub augmented_by_chance: Option<Permutation>,
    /// The same of the plain setting's.
    pub plain_by_chance: Option<Permutation>,
}

/// Compares quiet with disturbed runs in each setting. Runs may come in any order; of several with
/// the same setting, environment and size the first counts.
pub fn judge(runs: &[ConditionTimes]) -> InterferenceVerdict {
    let augmented = OfSetting::of(runs, Setting::Augmented);
    let plain = OfSetting::of(runs, Setting::Plain);
    let over = plain.pooled.zip(augmented.pooled).map(|(plain, other)| plain.over(other));
    InterferenceVerdict {
        augmented_by_chance: augmented.by_chance,
        plain_by_chance: plain.by_chance,
        augmented: augmented.pooled.and_then(|growth| growth.growth(CONFIDENCE)),
        plain: plain.pooled.and_then(|growth| growth.growth(CONFIDENCE)),
        plain_over_augmented: over.and_then(|growth| growth.growth(CONFIDENCE)),
        comparisons: [augmented.comparisons, plain.comparisons].concat(),
        widths: Environment::ALL.iter().filter_map(|of| IntervalWidths::of(runs, *of)).collect(),
    }
}

impl IntervalWidths {
    /// Of the array sizes that were run in both settings.
    fn of(runs: &[ConditionTimes], environment: Environment) -> Option<Self> {
        let own = |setting: Setting, array_bytes: u64| {
            runs.iter().find(|of| {
                (of.setting, of.environment, of.array_bytes) == (setting, environment, array_bytes)
            })
        };
        let sizes: BTreeSet<u64> = runs.iter().map(|runs| runs.array_bytes).collect();
        let pairs: Vec<(&ConditionTimes, &ConditionTimes)> = sizes
            .into_iter()
            .filter_map(|size| own(Setting::Augmented, size).zip(own(Setting::Plain, size)))
            .collect();
        let range = |of: fn(&(&ConditionTimes, &ConditionTimes)) -> Option<f64>| {
            let widths = || pairs.iter().filter_map(of);
            widths().reduce(f64::min).zip(widths().reduce(f64::max))
        };
        let relative = |(augmented, plain): &(&ConditionTimes, &ConditionTimes)| {
            Some((augmented.relative()?, plain.relative()?))
        };
        let both: Vec<(SampleSummary, SampleSummary)> = pairs.iter().filter_map(relative).collect();
        // Times of the rounds that have both, as parts of the means.
        let rounds = pairs.iter().filter_map(|(augmented, plain)| {
            let (one, other) = (augmented.times?.mean, plain.times?.mean);
            let in_round = |(round, time): (&u32, &f64)| {
                Some((time / one, plain.by_round.get(round)? / other))
            };
            Some(augmented.by_round.iter().filter_map(in_round).collect::<Vec<(f64, f64)>>())
        });
        Some(Self {
            environment,
            augmented: range(|(augmented, _)| augmented.width())?,
            plain: range(|(_, plain)| plain.width())?,
            plain_over_augmented: PooledGrowth::from_pairs(&both)
                .and_then(|growth| growth.growth(CONFIDENCE)),
            by_chance: Permutation::test(&rounds.collect::<Vec<_>>()),
        })
    }

    /// `90 % intervals are 1.3 to 5.8 % wide in the augmented setting and 48 to 57 % in the plain
    /// one, 14.2x (9.1x to 22x) as wide`.
    fn in_words(&self) -> MarkedText {
        let percent = |(low, high): (f64, f64)| match [low, high].map(|of| two_digits(100.0 * of)) {
            [low, high] if low == high => format!("{low} %"),
            [low, high] => format!("{low} to {high} %"),
        };
        let (augmented, plain) = (percent(self.augmented), percent(self.plain));
        let wider = match self.plain_over_augmented {
            None => "which is wider is not known".into(),
            Some(of) if of.is_resolved() && too_often(of, self.by_chance).is_none() => {
                marked![with_range(of), " as wide"]
            }
            Some(of) => {
                format!("no difference resolved ({} to {})", times(of.low), times(of.high)).into()
            }
        };
        let settings =
            format!("{augmented} wide in the augmented setting and {plain} in the plain one, ");
        marked![settings, wider]
    }
}

/// What the runs of one setting say.
struct OfSetting {
    comparisons: Vec<SettingComparison>,
    pooled: Option<PooledGrowth>,
    by_chance: Option<Permutation>,
}

impl OfSetting {
    fn of(runs: &[ConditionTimes], setting: Setting) -> Self {
        let own = || runs.iter().filter(|runs| runs.setting == setting);
        let sizes: BTreeSet<u64> = own().map(|runs| runs.array_bytes).collect();
        let (mut comparisons, mut both, mut rounds) = (Vec::new(), Vec::new(), Vec::new());
        // By array size, ascending.
        for array_bytes in sizes {
            let find = |environment: Environment| {
                own().find(|of| (of.environment, of.array_bytes) == (environment, array_bytes))
            };
            let (quiet, disturbed) = (find(Environment::Quiet), find(Environment::Disturbed));
            let interval = |runs: Option<&ConditionTimes>| runs?.times?.interval(CONFIDENCE);
            let pair = quiet.zip(disturbed);
            let times = pair.and_then(|(quiet, disturbed)| quiet.times.zip(disturbed.times));
            comparisons.push(SettingComparison {
                setting,
                array_bytes,
                quiet: interval(quiet),
                disturbed: interval(disturbed),
                growth: times.and_then(|(a, b)| ScatterGrowth::between(&a, &b, CONFIDENCE)),
                moved: times.and_then(|(a, b)| MeanShift::between(&a, &b, CONFIDENCE)),
            });
            both.extend(times);
            // Quiet and disturbed times of the rounds that have both.
            rounds.extend(pair.map(|(quiet, disturbed)| {
                let in_round =
                    |(round, quiet): (&u32, &f64)| Some((*quiet, *disturbed.by_round.get(round)?));
                quiet.by_round.iter().filter_map(in_round).collect::<Vec<(f64, f64)>>()
            }));
        }
        let (pooled, by_chance) = (PooledGrowth::from_pairs(&both), Permutation::test(&rounds));
        Self { comparisons, pooled, by_chance }
    }
}

impl InterferenceVerdict {
    /// Which setting's intervals grew under the disturbance and by how much, how the means moved,
    /// and which setting bore it better; one sentence each, without the last full stop.
    pub fn in_words(&self) -> String {
        let mut told = vec![
            self.tell(Setting::Augmented, self.augmented, self.augmented_by_chance),
            self.tell(Setting::Plain, self.plain, self.plain_by_chance),
        ];
        // Whether one setting's own growth, or the other's shrinking, is more than chance; taken
        // for granted where single times are not known.
        let moved_apart = |more: Option<Permutation>, less: Option<Permutation>| {
            more.is_none_or(|more| more.grew(CONFIDENCE))
                || less.is_none_or(|less| less.shrank(CONFIDENCE))
        };
        let (plain, augmented) = (self.plain_by_chance, self.augmented_by_chance);
        if let Some(growth) = self.plain_over_augmented {
            let factor = with_range(growth);
            told.push(if growth.low > 1.0 && moved_apart(plain, augmented) {
                format!("the plain setting's grew {factor} as much as the augmented one's")
            } else if growth.high < 1.0 && moved_apart(augmented, plain) {
                format!("the plain setting's grew only {factor} as much as the augmented one's")
            } else {
                format!("which setting was disturbed less is not resolved, {factor}")
            });
        }
        format!("{} ({:.0} % intervals)", told.join(". "), 100.0 * CONFIDENCE)
    }

    fn tell(
        &self,
        setting: Setting,
        growth: Option<ScatterGrowth>,
        by_chance: Option<Permutation>,
    ) -> String {
        let name = format!("{setting} setting");
        let moved = self.moves(setting);
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

    /// What the paper asked: how much narrower intervals are in the augmented setting than in the
    /// plain one, in quiet and disturbed; then what the disturbance added to each.
    pub fn headline(&self, noise: Noise) -> MarkedText {
        let widths = self.widths.iter().map(|widths| match widths.environment {
            Environment::Quiet => marked!["in quiet ", widths.in_words()],
            Environment::Disturbed => {
                marked![format!("under {} ", noise.events()), widths.in_words()]
            }
        });
        let widths: Vec<MarkedText> = widths.collect();
        let first = match widths.is_empty() {
            true => "How wide intervals of execution times are in each setting is not known (too \
                 few runs)"
                .into(),
            false => {
                let confidence = 100.0 * CONFIDENCE;
                let what = format!("Intervals of execution times ({confidence:.0} %): ");
                marked![what, MarkedText::join(widths, "; ")]
            }
        };
        let factor = |growth: Option<ScatterGrowth>, by_chance: Option<Permutation>| match growth {
            None => "not known (too few runs)".into(),
            Some(growth) if growth.is_resolved() && too_often(growth, by_chance).is_none() => {
                with_range(growth)
            }
            Some(growth) => {
                format!("not resolved ({} to {})", times(growth.low), times(growth.high)).into()
            }
        };
        marked![
            first,
            format!(". By {} they grew: ", noise.events()),
            factor(self.augmented, self.augmented_by_chance),
            " in the augmented setting, ",
            factor(self.plain, self.plain_by_chance),
            " in the plain one."
        ]
    }

    /// The smallest and the largest move of the setting's means, and how many are resolved.
    fn moves(&self, setting: Setting) -> String {
        let own = self.comparisons.iter().filter(|of| of.setting == setting);
        let moves: Vec<MeanShift> = own.filter_map(|of| of.moved).collect();
        let parts = || moves.iter().map(|moved| 100.0 * moved.part);
        let Some((least, most)) = parts().reduce(f64::min).zip(parts().reduce(f64::max)) else {
            return String::new();
        };
        let resolved = moves.iter().filter(|moved| moved.is_resolved()).count();
        let range = match moves.len() {
            1 => format!("its mean moved by {least:+.1} %"),
            _ => format!("its means moved by {least:+.1} to {most:+.1} %"),
        };
        format!("; {range} ({resolved} of {} resolved)", moves.len())
    }
}

/// How often chance does as much as a growth that is resolved, where that is too often.
fn too_often(growth: ScatterGrowth, by_chance: Option<Permutation>) -> Option<f64> {
    let (grew, shrank) = (growth.low > 1.0, growth.high < 1.0);
    let chance = by_chance?;
    let share = if grew { chance.up } else { chance.down };
    let is_more = if grew { chance.grew(CONFIDENCE) } else { chance.shrank(CONFIDENCE) };
    (!is_more && (grew || shrank)).then_some(share)
}

fn with_range(growth: ScatterGrowth) -> MarkedText {
    let range = format!(" ({} to {})", times(growth.low), times(growth.high));
    marked![MarkedText::figure(times(growth.ratio)), range]
}

/// What the experiment says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Found")]
pub struct InterferenceFindings {
    /// Execution times in nanoseconds of every condition, in the order of the plan.
    pub runs: Vec<ConditionTimes>,
    /// Quiet against disturbed.
    pub verdict: InterferenceVerdict,
    /// The verdict in words.
    pub in_words: String,
    /// What the disturbance did in one run, on average, by setting; absent where nothing was
    /// disturbed.
    pub events_per_run: BTreeMap<String, f64>,
    /// What speaks against the figures: conditions that met hardly any disturbance, runs that the
    /// kernel may have held back.
    #[serde(default)]
    pub doubts: Vec<String>,
}

pub(super) fn find<'a>(table: &'a Table<'a>) -> InterferenceFindings {
    let execution = |(case, trial): (usize, &'a Trial)| match trial {
        Trial::Execution(execution) => Some((table.of_trial(case), execution, case)),
        _ => None,
    };
    let executions: Vec<Condition> = table.trials().filter_map(execution).collect();
    let runs_of = |(samples, execution, _): &Condition| {
        let time = |sample: &&Sample| Some((sample.round, sample.tally(EXECUTION_NS)?.mean()?));
        let times = samples.iter().filter_map(time).collect();
        ConditionTimes::from_rounds(
            execution.setting,
            execution.environment,
            execution.work.bytes,
            times,
        )
    };
    let runs: Vec<ConditionTimes> = executions.iter().map(runs_of).collect();
    let events = |setting: &Setting| {
        let own = executions.iter().filter(|(_, execution, _)| execution.setting == *setting);
        let samples = own.flat_map(|(samples, ..)| samples.iter());
        let counts = samples.filter_map(|sample| Some(sample.count(NOISE_EVENTS)? as f64));
        Some((setting.to_string(), mean(&counts.collect::<Vec<f64>>())?))
    };
    let verdict = judge(&runs);
    let doubts = [hardly_disturbed(table, &executions), held_back(table, &executions)];
    InterferenceFindings {
        doubts: doubts.into_iter().flatten().collect(),
        in_words: verdict.in_words(),
        verdict,
        runs,
        events_per_run: Setting::ALL.iter().filter_map(events).collect(),
    }
}

/// A condition's samples, what was executed, and the number of its case.
type Condition<'a> = (&'a [&'a Sample], &'a Execution, usize);

/// Conditions whose runs together met too few events, and what helps.
fn hardly_disturbed(table: &Table, executions: &[Condition]) -> Option<String> {
    let few = |(_, execution, case): &Condition| {
        let met = table.sum(*case, NOISE_EVENTS)?;
        (met < FEWEST_EVENTS).then(|| format!("{execution} ({met})"))
    };
    let told: Vec<String> = executions.iter().filter_map(few).collect();
    let events = executions.first()?.1.noise.events();
    (!told.is_empty()).then(|| {
        format!(
            "fewer than {FEWEST_EVENTS} {events} in all runs together of: {}; longer runs have \
                more (--budget, or sizes that are closer together)",
            told.join("; ")
        )
    })
}

/// Real-time runs that lasted so long that the kernel may have held them back.
fn held_back(table: &Table, executions: &[Condition]) -> Option<String> {
    let limit = LONGEST_REALTIME_NS as f64;
    let policy = |case: usize| table.plan.trial(case).map(|case| case.policy);
    let is_realtime = |case: usize| policy(case).is_some_and(|policy| policy.is_realtime());
    let real_time = executions.iter().filter(|(_, _, case)| is_realtime(*case));
    let samples = real_time.flat_map(|(samples, ..)| samples.iter());
    let longest = samples.filter_map(|sample| sample.tally(EXECUTION_NS)?.max()).max()? as f64;
    (longest > limit).then(|| {
        format!(
            "real-time runs lasted up to {}: the kernel may have throttled them, as real-time \
                work gets 950 ms of each second (sched_rt_runtime_us). Fewer --laps keep them \
                below {}",
            time(longest),
            time(limit)
        )
    })
}

#[cfg(test)]
mod tests;
