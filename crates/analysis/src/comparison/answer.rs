//! What can be said of a pair of costs, and in words.

use std::collections::BTreeMap;

use rundata::experiment::named;
use rundata::plan::{MIN_CLEAN_ROUNDS, MIN_ROUNDS};
use rundata::words::{plain, three_digits, time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::ratio::{self, CostRatio, CostSide};

use super::costs::{PairCosts, UndecidedReason};
use crate::marked;
use crate::marked::MarkedText;
use crate::measures::MeasurePair;
use crate::quote::NotQuotable;
use crate::results::{Quantity, WHOLE};

/// What the sides are called in a record.
const SIDES: [&str; 2] = ["base", "new"];

/// A ratio from which on it is told as a factor, and below whose inverse.
pub(super) const FACTOR: f64 = 2.0;

/// Rounds above which the number needed is not told.
const MOST_ROUNDS: u32 = 1_000_000;

/// The same of launches.
const MOST_LAUNCHES: u32 = 1000;

/// Which cost is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Wanted")]
pub enum WantedCost {
    /// What stands for the case: the cost of a switch above solo, of a ring that does not switch
    /// that of a hop, of a trial its own; where one side lacks it, the next that both have.
    #[default]
    Switch,
    /// Time of a hop.
    Hop,
    /// CPU time: of a switch above solo, else of a hop.
    Cpu,
}

named!(WantedCost, "cost", Switch => "switch", Hop => "hop", Cpu => "cpu");

impl WantedCost {
    /// Which figures serve, the best first.
    pub(crate) fn quantities(self) -> &'static [Quantity] {
        use Quantity::{
            CpuNs, CpuNsPerHop, CpuNsPerSwitchAboveSolo, NsPerHop, NsPerSwitchAboveSolo, PartNs,
            RealNs, TrialNs,
        };
        match self {
            Self::Switch => &[NsPerSwitchAboveSolo, NsPerHop, TrialNs, PartNs, RealNs],
            Self::Hop => &[NsPerHop, TrialNs, PartNs, RealNs],
            Self::Cpu => &[CpuNsPerSwitchAboveSolo, CpuNsPerHop, CpuNs],
        }
    }
}

/// A setting whose effect is asked for: cases that differ in it alone are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Across")]
pub enum ComparedSetting {
    /// Scheduling policy.
    Policy,
    /// Placement on CPUs.
    Placement,
    /// What carries the token.
    Link,
    /// Processes or threads.
    Kind,
    /// Kernel, its command line and its settings.
    Kernel,
}

named!(ComparedSetting, "setting to compare across", Policy => "policy", Placement => "placement", Link => "link", Kind => "kind", Kernel => "kernel");

/// How two results are to be compared.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Terms")]
pub struct ComparisonTerms {
    /// A cost within this share of the other is not changed: 0.03 is 3 %, from 1 / 1.03 to 1.03
    /// times.
    pub limit: f64,
    /// Confidence of all intervals together: 0.95 is 95 %.
    pub confidence: f64,
    /// Which cost.
    pub wanted: WantedCost,
    /// In what the cases of a pair may differ, as it is what is asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub across: Option<ComparedSetting>,
}

/// What is known of a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "answer", rename_all = "snake_case")]
#[schemars(rename = "Answer")]
pub enum ChangeAnswer {
    /// The interval lies within the limit on both sides of 1.
    NotChanged,
    /// The interval excludes 1 and is not within the limit, and both sides were measured at full
    /// speed.
    Changed {
        /// Whether the new cost is the higher one.
        worse: bool,
        /// Whether the whole interval is beyond the limit.
        beyond_limit: bool,
    },
    /// One side was not seen at full speed, and the upper bound of its cost there is below the other
    /// cost: which one is faster is known, by how much only at least.
    Bounded {
        /// Whether the new cost is the higher one.
        worse: bool,
        /// New / base is at most this where the new one is faster, at least this where it is slower.
        ratio: f64,
        /// The upper bound in nanoseconds, of the new side where that is faster, else of the base.
        at_most_ns: f64,
    },
    /// None of these.
    CannotTell {
        /// Why not.
        reason: UndecidedReason,
        /// About how many more would tell, if things stay as they are; absent where more would not.
        more: Option<MoreNeeded>,
    },
}

/// What more of would tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "More")]
pub enum MoreNeeded {
    /// Launches, on each side that was measured.
    Launches(u32),
    /// Rounds of the session; of few rounds, how many more it takes for an interval.
    Rounds(u32),
}

impl MoreNeeded {
    /// `measure each run about 3 more times`, `measure about 12 more rounds`.
    pub(super) fn in_words(self) -> String {
        match self {
            Self::Launches(1) => "measure each run once more".to_string(),
            Self::Launches(count) => format!("measure each run about {count} more times"),
            Self::Rounds(1) => "measure one more round".to_string(),
            Self::Rounds(count) => format!("measure about {count} more rounds"),
        }
    }
}

/// A case that both sides have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Change")]
pub struct CaseChange {
    /// In words.
    pub title: String,
    /// By these the two were found to be the same case.
    pub labels: BTreeMap<String, String>,
    /// Its number in the plan of the base.
    pub base_case: usize,
    /// In that of the new one.
    pub new_case: usize,
    /// What is compared.
    #[serde(rename = "of")]
    pub quantity: Quantity,
    /// The base's cost in nanoseconds: the mean of its launches at full speed and at the middle
    /// one's clock, or as published; of a session the mean of the middle half of its rounds.
    pub base_ns: f64,
    /// The new one's at the base's clock.
    pub new_ns: f64,
    /// Why the base's cost may not be quoted, in words; absent where it may, and for a published
    /// figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_not_quotable: Option<String>,
    /// The same of the new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_not_quotable: Option<String>,
    /// Launches that the base's cost is the mean of: those at full speed, or all where none was.
    /// Absent for a published figure and in a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_launches: Option<u32>,
    /// The same of the new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_launches: Option<u32>,
    /// Rounds of the base; absent for a published figure.
    pub base_rounds: Option<u32>,
    /// Rounds of the new one.
    pub new_rounds: Option<u32>,
    /// Why the base could not be measured in some round, as last told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_failure: Option<String>,
    /// The same of the new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_failure: Option<String>,
    /// What both have of each exported measure, by its id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub measures: BTreeMap<String, MeasurePair>,
    /// Whether both are at one clock of the core, that of the base.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_one_clock: bool,
    /// New / base; of a session by the middle of their relative differences within rounds.
    pub ratio: CostRatio,
    /// What follows.
    #[serde(flatten)]
    pub answer: ChangeAnswer,
    /// The answer in words.
    pub in_words: String,
}

impl CaseChange {
    /// Whether the case has become slower beyond the limit.
    pub fn is_worse_beyond_limit(&self) -> bool {
        self.answer == ChangeAnswer::Changed { worse: true, beyond_limit: true }
    }

    /// Whether there is an interval to go by.
    pub fn is_tested(&self) -> bool {
        !self.is_bounded() && self.reason().is_none_or(|reason| reason == UndecidedReason::TooWide)
    }

    /// Whether its ratio is told: there is an interval to go by, both costs are as published, or a
    /// side is not at full speed, where the ratio is the one that was seen.
    pub fn has_ratio(&self) -> bool {
        use UndecidedReason::{NoFullSpeed, NoInterval, NotAlone};
        let is_seen = matches!(self.reason(), Some(NoInterval | NoFullSpeed | NotAlone));
        self.is_tested() || self.is_bounded() || is_seen
    }

    /// Whether only a bound of one side decided it.
    pub fn is_bounded(&self) -> bool {
        matches!(self.answer, ChangeAnswer::Bounded { .. })
    }

    /// Whether the new side failed so often that nothing can be told.
    pub fn is_lost(&self) -> bool {
        use UndecidedReason::{FewRounds, NoFullSpeed, NotAlone};
        let has_few = matches!(self.reason(), Some(FewRounds | NoFullSpeed | NotAlone));
        let few = |rounds: u32| rounds < MIN_CLEAN_ROUNDS;
        self.new_failure.is_some() && (has_few || self.new_rounds.is_some_and(few))
    }

    /// Why nothing can be told, and what would; absent where there is an answer. `names` are what
    /// base and new are called.
    pub fn why_undecided(&self, names: [&str; 2]) -> Option<String> {
        match self.answer {
            ChangeAnswer::CannotTell { reason, more } => Some(why_undecided(reason, more, names)),
            _ => None,
        }
    }

    pub(super) fn reason(&self) -> Option<UndecidedReason> {
        match self.answer {
            ChangeAnswer::CannotTell { reason, .. } => Some(reason),
            _ => None,
        }
    }
}

/// The answer from the interval: within the limit comes first, since what is proven to be small is
/// no change, however well it is resolved.
pub(super) fn answer(
    costs: &PairCosts,
    ratio: &CostRatio,
    limit: f64,
    confidence: f64,
) -> ChangeAnswer {
    let cannot_tell = |reason, more| ChangeAnswer::CannotTell { reason, more };
    let (most, of, rounds): (u32, fn(u32) -> MoreNeeded, _) = match costs.of {
        ratio::CostPair::Separate(_) => (MOST_LAUNCHES, MoreNeeded::Launches, None),
        ratio::CostPair::Paired(_) => (MOST_ROUNDS, MoreNeeded::Rounds, costs.rounds.0),
    };
    let missing = rounds.map_or(0, |rounds| MIN_ROUNDS.saturating_sub(rounds));
    if missing > 0 {
        return cannot_tell(UndecidedReason::FewRounds, Some(MoreNeeded::Rounds(missing)));
    }
    if let Some(reason) = costs.unfit {
        let by_bound = costs.bound.and_then(|bound| bound.answer(confidence));
        return by_bound.unwrap_or(cannot_tell(reason, None));
    }
    let more = || costs.of.more_needed(limit, confidence, most).map(of);
    // A cost that may not be quoted by itself is no base, and no multiple of one.
    let is_open = |why: Option<NotQuotable>| matches!(why, Some(NotQuotable::NotResolved { .. }));
    match costs.why {
        (base, _) if is_open(base) => return cannot_tell(UndecidedReason::BaseNotResolved, more()),
        (_, new) if is_open(new) => return cannot_tell(UndecidedReason::NewNotResolved, more()),
        _ => {}
    }
    let Some((low, high)) = ratio.interval() else {
        return match (costs.of.has_interval(), costs.of.unresolved(), costs.rounds) {
            (true, CostSide::Base, _) => cannot_tell(UndecidedReason::BaseNotResolved, more()),
            (true, CostSide::New, _) => cannot_tell(UndecidedReason::NewNotResolved, more()),
            (false, _, (None, None)) => cannot_tell(UndecidedReason::NoInterval, None),
            _ => cannot_tell(UndecidedReason::FewRounds, None),
        };
    };
    ChangeAnswer::from_interval([low, high], limit)
        .unwrap_or_else(|| cannot_tell(UndecidedReason::TooWide, more()))
}

impl ChangeAnswer {
    /// Returns the answer that the interval of a ratio gives; `None` where it holds 1 and reaches
    /// beyond the limit. A change is beyond the limit if its whole interval is.
    pub fn from_interval([low, high]: [f64; 2], limit: f64) -> Option<Self> {
        let unchanged = 1.0 / (1.0 + limit)..=1.0 + limit;
        if unchanged.contains(&low) && unchanged.contains(&high) {
            return Some(Self::NotChanged);
        }
        if low <= 1.0 && high >= 1.0 {
            return None;
        }
        let beyond_limit = !unchanged.contains(&low) && !unchanged.contains(&high);
        Some(Self::Changed { worse: low > 1.0, beyond_limit })
    }

    /// The answer in words.
    pub(super) fn in_words(&self, ratio: &CostRatio, limit: f64) -> String {
        let (reason, more) = match self {
            Self::NotChanged => return format!("not changed within {}", percent(limit)),
            Self::Changed { worse, beyond_limit } => {
                let direction = if *worse { "slower" } else { "faster" };
                let beyond = match (worse, beyond_limit) {
                    (true, true) => format!(", beyond {}", percent(limit)),
                    (true, false) => format!(", perhaps beyond {}", percent(limit)),
                    (false, _) => String::new(),
                };
                return format!("changed: {}{direction}{beyond}", change(ratio.value));
            }
            Self::Bounded { ratio, .. } => return format!("changed: {}", at_least(*ratio)),
            Self::CannotTell { reason, more } => (reason, more),
        };
        let why = why_undecided(*reason, *more, SIDES);
        format!("inconclusive: {why}")
    }
}

/// Why nothing can be told, and what would.
fn why_undecided(reason: UndecidedReason, more: Option<MoreNeeded>, names: [&str; 2]) -> String {
    match (reason, more) {
        (UndecidedReason::TooWide, Some(more)) => more.in_words(),
        (UndecidedReason::TooWide, None) => "more measurements would not decide it".to_string(),
        (reason, Some(more)) => format!("{}; {}", reason.in_words(names), more.in_words()),
        (reason, None) => reason.in_words(names),
    }
}

/// `3 %`, `0.5 %`.
pub fn percent(limit: f64) -> String {
    format!("{} %", plain(limit * 100.0))
}

/// Returns a bound of a ratio in words, rounded towards no change: `at least 233x faster`, `at least
/// 12.3 % slower`.
pub(super) fn at_least(ratio: f64) -> MarkedText {
    let direction = if ratio < 1.0 { "faster" } else { "slower" };
    let rounded = round_bound(ratio);
    let factor = rounded.max(1.0 / rounded);
    let figure = if factor < FACTOR {
        format!("{:.1} %", (rounded - 1.0).abs() * 100.0)
    } else {
        format!("{}x", three_digits(factor))
    };
    marked!["at least ", MarkedText::figure(figure), format!(" {direction}")]
}

/// Rounds a bound of a ratio towards no change, to the digits that are told: a tenth of a percent,
/// of a factor three digits.
pub fn round_bound(ratio: f64) -> f64 {
    let factor = ratio.max(1.0 / ratio);
    if factor < FACTOR {
        return 1.0 + (1000.0 * (ratio - 1.0)).trunc() / 1000.0;
    }
    let step = 10_f64.powf(factor.log10().floor() - 2.0);
    let factor = (factor / step).floor() * step;
    if ratio < 1.0 { 1.0 / factor } else { factor }
}

/// A ratio as a change, with a blank behind it: in percent up to twice the cost or half of it, then
/// as a factor. Nothing where no factor says it: of a cost that came out at or below zero.
fn change(ratio: Option<f64>) -> String {
    match ratio {
        Some(ratio @ 2.0..) => format!("{}x ", three_digits(ratio)),
        Some(ratio @ 0.5..2.0) => format!("{:.1} % ", (ratio - 1.0).abs() * 100.0),
        Some(ratio) if ratio > 0.0 => format!("{}x ", three_digits(1.0 / ratio)),
        _ => String::new(),
    }
}

/// The part of a switch that changed most, in nanoseconds: by it the whole did.
pub(super) fn moved_most(changes: &[CaseChange]) -> Option<MarkedText> {
    let by = |change: &CaseChange| (change.new_ns - change.base_ns).abs();
    let is_part = |change: &&CaseChange| {
        change.quantity == Quantity::PartNs
            && change.title != WHOLE
            && matches!(change.answer, ChangeAnswer::Changed { .. })
    };
    let most = changes.iter().filter(is_part).max_by(|a, b| by(a).total_cmp(&by(b)))?;
    let [base, new] = [most.base_ns, most.new_ns].map(time);
    let title = format!("{}: ", capital(&most.title));
    Some(marked![title, MarkedText::figure(base), format!(" to {new}, {}", most.in_words)])
}

fn capital(title: &str) -> String {
    let mut letters = title.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
