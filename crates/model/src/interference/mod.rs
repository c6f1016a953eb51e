//! Does a disturbance reach the measurement? Tables 1 and 2 of Li, Ding and Shen (2007, section 3.3).
//!
//! The two-process program runs a handful of times in each of four conditions, augmented or plain
//! setting, quiet or disturbed, at several array sizes. [`judge`] says which setting's interval grew
//! under the disturbance, and by how much. Formulas and sources are in `docs/method.md`.

mod permutation;
mod pooled;
mod words;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::stats::{Growth, Interval, Summary, student_quantile};
pub use permutation::Permutation;
use permutation::permutation;
use pooled::{over, pooled};

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

/// A move of a mean as a part of it: 0.01 is 1 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Moved {
    /// The move; signed.
    pub part: f64,
    /// Lower end of its interval at [`CONFIDENCE`].
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Moved {
    /// Welch's interval (1947) for a difference of means with scatters of their own, the degrees of
    /// freedom by Satterthwaite (1946), over the quiet mean.
    fn of(quiet: &Summary, disturbed: &Summary) -> Option<Self> {
        let share = |s: &Summary| s.deviation * s.deviation / f64::from(s.count);
        let (a, b) = (share(quiet), share(disturbed));
        let freedom = (a + b) * (a + b) / (a * a / quiet.freedom() + b * b / disturbed.freedom());
        let level = quiet.mean.abs();
        let part = (disturbed.mean - quiet.mean) / level;
        let half = student_quantile(CONFIDENCE, freedom)? * (a + b).sqrt() / level;
        let sound = part.is_finite() && half.is_finite();
        sound.then_some(Self { part, low: part - half, high: part + half })
    }

    /// Whether the interval excludes no move.
    #[must_use]
    pub fn is_resolved(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
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

/// Compares quiet with disturbed runs in each setting. Runs may come in any order; of several with
/// the same setting, environment and size the first counts.
#[must_use]
pub fn judge(runs: &[Runs]) -> Verdict {
    let mut sizes: Vec<u64> = runs.iter().map(|runs| runs.array_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let comparisons: Vec<Comparison> = [Setting::Augmented, Setting::Plain]
        .into_iter()
        .flat_map(|setting| sizes.iter().map(move |&size| (setting, size)))
        .filter_map(|(setting, size)| compare(runs, setting, size))
        .collect();
    let pairs = |setting: Setting| -> Vec<(Summary, Summary)> {
        let pair = |&size: &u64| {
            let find = |environment| times(runs, setting, environment, size);
            Some((find(Environment::Quiet)?, find(Environment::Disturbed)?))
        };
        sizes.iter().filter_map(pair).collect()
    };
    let (augmented, plain) = (pooled(&pairs(Setting::Augmented)), pooled(&pairs(Setting::Plain)));
    let by_chance = |setting: Setting| {
        let of = |size: &u64| paired(runs, setting, *size);
        permutation(&sizes.iter().filter_map(of).collect::<Vec<_>>())
    };
    Verdict {
        comparisons,
        augmented_by_chance: by_chance(Setting::Augmented),
        plain_by_chance: by_chance(Setting::Plain),
        augmented: augmented.map(|p| p.growth()),
        plain: plain.map(|p| p.growth()),
        plain_over_augmented: plain.zip(augmented).map(|(plain, other)| over(plain, other)),
    }
}

fn compare(runs: &[Runs], setting: Setting, array_bytes: u64) -> Option<Comparison> {
    runs.iter().find(|r| r.setting == setting && r.array_bytes == array_bytes)?;
    let find = |environment| times(runs, setting, environment, array_bytes);
    let (quiet, disturbed) = (find(Environment::Quiet), find(Environment::Disturbed));
    let both = quiet.zip(disturbed);
    Some(Comparison {
        setting,
        array_bytes,
        quiet: quiet.and_then(|s| s.interval(CONFIDENCE)),
        disturbed: disturbed.and_then(|s| s.interval(CONFIDENCE)),
        growth: both.and_then(|(a, b)| Growth::of(&a, &b, CONFIDENCE)),
        moved: both.and_then(|(a, b)| Moved::of(&a, &b)),
    })
}

fn times(
    runs: &[Runs],
    setting: Setting,
    environment: Environment,
    array_bytes: u64,
) -> Option<Summary> {
    find(runs, setting, environment, array_bytes)?.times
}

fn find(
    runs: &[Runs],
    setting: Setting,
    environment: Environment,
    array_bytes: u64,
) -> Option<&Runs> {
    let is_it = |runs: &&Runs| {
        (runs.setting, runs.environment, runs.array_bytes) == (setting, environment, array_bytes)
    };
    runs.iter().find(is_it)
}

/// Quiet and disturbed times of the rounds that have both; absent where there is neither.
fn paired(runs: &[Runs], setting: Setting, array_bytes: u64) -> Option<Vec<(f64, f64)>> {
    let of = |environment| find(runs, setting, environment, array_bytes);
    let (quiet, disturbed) = (of(Environment::Quiet)?, of(Environment::Disturbed)?);
    let pair = |(round, quiet): (&u32, &f64)| Some((*quiet, *disturbed.by_round.get(round)?));
    Some(quiet.by_round.iter().filter_map(pair).collect())
}
