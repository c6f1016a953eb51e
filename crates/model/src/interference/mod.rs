//! Does a disturbance reach the measurement? Tables 1 and 2 of Li, Ding and Shen (2007, section 3.3).
//!
//! The two-process program runs a handful of times in each of four conditions, augmented or plain
//! setting, quiet or disturbed, at several array sizes. [`judge`] says which setting's interval grew
//! under the disturbance, and by how much. Formulas and sources are in `docs/method.md`.

mod words;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use stats::{Growth, Interval, Moved, Permutation, PooledGrowth, Summary};

/// The confidence of every interval here: the paper's.
pub const CONFIDENCE: f64 = 0.90;

/// How the program was placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Setting {
    /// Away from interrupts and other work, under a real-time policy: the paper's dual-processor.
    Augmented,
    /// Everything on one CPU under the normal policy: the paper's single-processor.
    Plain,
}

/// What else the machine did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Environment {
    /// Nothing.
    Quiet,
    /// The disturbance was on.
    Disturbed,
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Setting::Augmented => "augmented",
            Setting::Plain => "plain",
        })
    }
}

impl fmt::Display for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Environment::Quiet => "quiet",
            Environment::Disturbed => "disturbed",
        })
    }
}

/// The runs of one setting in one environment at one array size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Runs {
    /// The setting.
    pub setting: Setting,
    /// The environment.
    pub environment: Environment,
    /// Array of each member in bytes.
    pub array_bytes: u64,
    /// Mean and scatter of the execution times, in one unit throughout. `None` with fewer than two
    /// runs.
    pub times: Option<Summary>,
    /// The execution times by round; empty where only their mean and scatter are known.
    #[serde(default)]
    pub by_round: BTreeMap<u32, f64>,
}

impl Runs {
    /// From the execution times of single runs, by round.
    #[must_use]
    pub fn of(
        setting: Setting,
        environment: Environment,
        array_bytes: u64,
        by_round: BTreeMap<u32, f64>,
    ) -> Self {
        let times = Summary::of(&by_round.values().copied().collect::<Vec<f64>>());
        Self { setting, environment, array_bytes, times, by_round }
    }
}

/// One setting at one array size, quiet against disturbed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The setting.
    pub setting: Setting,
    /// Array of each member in bytes.
    pub array_bytes: u64,
    /// Student's interval of the quiet mean, at [`CONFIDENCE`].
    pub quiet: Option<Interval>,
    /// The same, disturbed.
    pub disturbed: Option<Interval>,
    /// How much the scatter, and with as many runs the half-width, grew.
    pub growth: Option<Growth>,
    /// How far the mean moved, disturbed - quiet, as a part of the quiet mean: Welch's interval.
    pub moved: Option<Moved>,
}

/// The answer of [`judge`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// Every setting at every array size, settings apart, arrays ascending.
    pub comparisons: Vec<Comparison>,
    /// Growth of the augmented setting's intervals: geometric mean over the array sizes.
    pub augmented: Option<Growth>,
    /// Growth of the plain setting's.
    pub plain: Option<Growth>,
    /// The plain setting's growth over the augmented one's.
    pub plain_over_augmented: Option<Growth>,
    /// How often chance gives the augmented setting's growth; absent where single times are not known.
    #[serde(default)]
    pub augmented_by_chance: Option<Permutation>,
    /// The same of the plain setting's.
    #[serde(default)]
    pub plain_by_chance: Option<Permutation>,
}

/// The first runs of a setting at one array size in each environment.
struct Pair<'a> {
    array_bytes: u64,
    quiet: Option<&'a Runs>,
    disturbed: Option<&'a Runs>,
}

/// Compares quiet with disturbed runs in each setting. Runs may come in any order; of several with
/// the same setting, environment and size the first counts.
#[must_use]
pub fn judge(runs: &[Runs]) -> Verdict {
    let (augmented, plain) = (pairs(runs, Setting::Augmented), pairs(runs, Setting::Plain));
    let growth = |pairs: &[Pair]| {
        PooledGrowth::of(&pairs.iter().filter_map(Pair::times).collect::<Vec<_>>())
    };
    let by_chance = |pairs: &[Pair]| {
        Permutation::of(&pairs.iter().filter_map(Pair::rounds).collect::<Vec<_>>())
    };
    let (of_augmented, of_plain) = (growth(&augmented), growth(&plain));
    let comparisons = |setting, pairs: &[Pair]| -> Vec<Comparison> {
        pairs.iter().map(|pair| pair.compare(setting)).collect()
    };
    Verdict {
        augmented_by_chance: by_chance(&augmented),
        plain_by_chance: by_chance(&plain),
        augmented: of_augmented.and_then(|growth| growth.growth(CONFIDENCE)),
        plain: of_plain.and_then(|growth| growth.growth(CONFIDENCE)),
        plain_over_augmented: of_plain
            .zip(of_augmented)
            .and_then(|(plain, other)| plain.over(other).growth(CONFIDENCE)),
        comparisons: [
            comparisons(Setting::Augmented, &augmented),
            comparisons(Setting::Plain, &plain),
        ]
        .concat(),
    }
}

/// By array size, ascending.
fn pairs(runs: &[Runs], setting: Setting) -> Vec<Pair<'_>> {
    let of_setting = || runs.iter().filter(move |runs| runs.setting == setting);
    let sizes: BTreeSet<u64> = of_setting().map(|runs| runs.array_bytes).collect();
    let pair = |array_bytes: u64| {
        let find = |environment: Environment| {
            let is_it =
                |runs: &&Runs| (runs.environment, runs.array_bytes) == (environment, array_bytes);
            of_setting().find(is_it)
        };
        let (quiet, disturbed) = (find(Environment::Quiet), find(Environment::Disturbed));
        Pair { array_bytes, quiet, disturbed }
    };
    sizes.into_iter().map(pair).collect()
}

impl Pair<'_> {
    fn compare(&self, setting: Setting) -> Comparison {
        let interval = |runs: Option<&Runs>| runs?.times?.interval(CONFIDENCE);
        let both = self.times();
        Comparison {
            setting,
            array_bytes: self.array_bytes,
            quiet: interval(self.quiet),
            disturbed: interval(self.disturbed),
            growth: both.and_then(|(a, b)| Growth::of(&a, &b, CONFIDENCE)),
            moved: both.and_then(|(a, b)| Moved::of(&a, &b, CONFIDENCE)),
        }
    }

    fn times(&self) -> Option<(Summary, Summary)> {
        self.quiet?.times.zip(self.disturbed?.times)
    }

    /// Quiet and disturbed times of the rounds that have both; absent where an environment has no runs.
    fn rounds(&self) -> Option<Vec<(f64, f64)>> {
        let (quiet, disturbed) = (&self.quiet?.by_round, &self.disturbed?.by_round);
        let pair = |(round, quiet): (&u32, &f64)| Some((*quiet, *disturbed.get(round)?));
        Some(quiet.iter().filter_map(pair).collect())
    }
}
