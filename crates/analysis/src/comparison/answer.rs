//! The answer on a pair of costs, as data and in words.

use std::collections::BTreeMap;

use rundata::experiment::named;
use rundata::plan::{MIN_CLEAN_ROUNDS, MIN_ROUNDS};
use rundata::words::{plain, three_digits, time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::ratio::{CostPair, CostRatio, CostSide};

use super::costs::{PairCosts, UndecidedReason};
use crate::marked;
use crate::marked::MarkedText;
use crate::measures::MeasurePair;
use crate::results::{Quantity, WHOLE};

/// Names of the sides in a record.
const RECORD_NAMES: [&str; 2] = ["base", "new"];

/// Smallest ratio that is told as a factor, not in percent; below 1 its inverse.
pub(super) const MIN_FACTOR: f64 = 2.0;

/// Largest number of further rounds that is told.
const MAX_TOLD_ROUNDS: u32 = 1_000_000;

/// Largest number of further launches that is told.
const MAX_TOLD_LAUNCHES: u32 = 1000;

/// The cost that is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Wanted")]
pub enum WantedCost {
    /// The cost that stands for the case: of a switch above solo, of a hop where a ring does not
    /// switch, of a trial its own; where one side lacks it, the next that both have.
    #[default]
    Switch,
    /// Time of a hop.
    Hop,
    /// CPU time: of a switch above solo, else of a hop.
    Cpu,
    /// 99th percentile of wake-ups.
    P99,
    /// Median of requests under load.
    RequestP50,
    /// 99th percentile of requests under load.
    RequestP99,
}

named!(WantedCost, "cost", Switch => "switch", Hop => "hop", Cpu => "cpu", P99 => "p99", RequestP50 => "request-p50", RequestP99 => "request-p99");

impl WantedCost {
    /// Returns the quantities that serve, the best first.
    pub(crate) fn quantities(self) -> &'static [Quantity] {
        use Quantity::{
            CallNs, CpuNs, CpuNsPerHop, CpuNsPerSwitchAboveSolo, CpuShare, NsPerHop,
            NsPerSwitchAboveSolo, PartNs, PerSecond, QueueWaitNs, RealNs, RequestP50Ns,
            RequestP99Ns, TrialNs, WakeP50Ns, WakeP99Ns,
        };
        match self {
            Self::Switch => &[
                NsPerSwitchAboveSolo,
                NsPerHop,
                TrialNs,
                PartNs,
                RealNs,
                WakeP50Ns,
                CallNs,
                QueueWaitNs,
                PerSecond,
                CpuShare,
            ],
            Self::Hop => &[NsPerHop, TrialNs, PartNs, RealNs, WakeP50Ns],
            Self::Cpu => &[CpuNsPerSwitchAboveSolo, CpuNsPerHop, CpuNs, CallNs],
            Self::P99 => &[WakeP99Ns],
            Self::RequestP50 => &[RequestP50Ns],
            Self::RequestP99 => &[RequestP99Ns],
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
    /// Link that carries the token.
    Link,
    /// Processes or threads.
    Kind,
    /// Kernel, its command line and its settings.
    Kernel,
    /// Scheduler: the kernel's own, or one in BPF.
    Scheduler,
    /// Features of the kernel's scheduler.
    Features,
    /// Preemption of the kernel.
    #[serde(rename = "preempt")]
    Preemption,
    /// What chooses the frequency.
    Governor,
}

named!(ComparedSetting, "setting to compare across", Policy => "policy", Placement => "placement", Link => "link", Kind => "kind", Kernel => "kernel", Scheduler => "scheduler", Features => "features", Preemption => "preempt", Governor => "governor");

impl ComparedSetting {
    /// Returns whether it is a setting of the machine, which all cases of a run have in common.
    pub fn is_of_machine(self) -> bool {
        match self {
            Self::Policy | Self::Placement | Self::Link | Self::Kind => false,
            Self::Kernel | Self::Scheduler | Self::Features | Self::Preemption | Self::Governor => {
                true
            }
        }
    }
}

/// The terms on which two results are compared.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Terms")]
pub struct ComparisonTerms {
    /// A cost within this share of the other is not changed: 0.03 is 3 %, from 1 / 1.03 to 1.03
    /// times.
    pub limit: f64,
    /// Confidence of all intervals together: 0.95 is 95 %.
    pub confidence: f64,
    /// The cost that is compared.
    pub wanted: WantedCost,
    /// The setting in which the cases of a pair may differ, as its effect is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub across: Option<ComparedSetting>,
}

/// The answer on a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "answer", rename_all = "snake_case")]
#[schemars(rename = "Answer")]
pub enum ChangeAnswer {
    /// The interval lies within the limit on both sides of 1.
    NotChanged,
    /// The interval excludes 1 and is not within the limit, and both sides were measured at full
    /// speed.
    Changed {
        /// True if the new cost is the higher one.
        worse: bool,
        /// True if the whole interval is beyond the limit.
        beyond_limit: bool,
    },
    /// The upper bound of a side that was not seen at full speed is below the other cost: which one
    /// is faster is known, by how much only at least.
    Bounded {
        /// True if the new cost is the higher one.
        worse: bool,
        /// New / base is at most this where the new one is faster, at least this where it is slower.
        ratio: f64,
        /// The upper bound in nanoseconds, of the new side where that is faster, else of the base.
        at_most_ns: f64,
    },
    /// The data decide none of these.
    CannotTell {
        /// The reason.
        reason: UndecidedReason,
        /// About how many more would decide it, if things stay as they are; absent where more would
        /// not.
        more: Option<MoreNeeded>,
    },
}

/// The measuring that would decide a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "More")]
pub enum MoreNeeded {
    /// Launches, on each side that was measured.
    Launches(u32),
    /// Rounds of the session; where there are too few, as many as are missing for an interval.
    Rounds(u32),
    /// Traces that last longer: several on one side are one trace.
    LongerTraces,
}

impl MoreNeeded {
    /// Returns it as advice: `measure each run about 3 more times`, `measure about 12 more rounds`.
    pub(super) fn in_words(self) -> String {
        match self {
            Self::Launches(1) => "measure each run once more".to_string(),
            Self::Launches(count) => format!("measure each run about {count} more times"),
            Self::Rounds(1) => "measure one more round".to_string(),
            Self::Rounds(count) => format!("measure about {count} more rounds"),
            Self::LongerTraces => "trace longer".to_string(),
        }
    }
}

/// A case that both sides have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Change")]
pub struct CaseChange {
    /// The case in words.
    pub title: String,
    /// The labels by which the two were found to be the same case.
    pub labels: BTreeMap<String, String>,
    /// Number of the case in the plan of the base.
    pub base_case: usize,
    /// Number of the case in the plan of the new side.
    pub new_case: usize,
    /// The quantity that is compared.
    #[serde(rename = "of")]
    pub quantity: Quantity,
    /// The base's cost in nanoseconds: the mean of its launches at full speed and at the middle
    /// one's clock, or as published; of a session the mean of the middle half of its rounds. Of a
    /// trace `per_second` is events a second, `cpu_share` a share from 0 to 1.
    pub base_ns: f64,
    /// The new side's cost in nanoseconds, at the base's clock.
    pub new_ns: f64,
    /// The reason why the base's cost may not be quoted; absent where it may, and for a published
    /// figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_not_quotable: Option<String>,
    /// The reason why the new cost may not be quoted, as for the base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_not_quotable: Option<String>,
    /// Launches that the base's cost is the mean of: those at full speed, or all where none was;
    /// absent for a published figure and in a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_launches: Option<u32>,
    /// Launches that the new cost is the mean of, as for the base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_launches: Option<u32>,
    /// Rounds of the base; absent for a published figure.
    pub base_rounds: Option<u32>,
    /// Rounds of the new side; absent for a published figure.
    pub new_rounds: Option<u32>,
    /// The last reported reason why the base could not be measured in some round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_failure: Option<String>,
    /// The last reported reason why the new side could not be measured in some round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_failure: Option<String>,
    /// Each exported measure on both sides, by its id, and the counted switches of a hop.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub measures: BTreeMap<String, MeasurePair>,
    /// True if both are at one clock of the core, that of the base.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_one_clock: bool,
    /// New / base; of a session by the middle of their relative differences within rounds.
    pub ratio: CostRatio,
    /// The answer.
    #[serde(flatten)]
    pub answer: ChangeAnswer,
    /// The answer in words.
    pub in_words: String,
}

impl CaseChange {
    /// Returns whether the case has become slower beyond the limit.
    pub fn is_worse_beyond_limit(&self) -> bool {
        self.answer == ChangeAnswer::Changed { worse: true, beyond_limit: true }
    }

    /// Returns whether an interval was tested against the limit.
    pub fn is_tested(&self) -> bool {
        !self.is_bounded() && self.reason().is_none_or(|reason| reason == UndecidedReason::TooWide)
    }

    /// Returns whether its ratio is told: an interval was tested, a bound decided it, both costs are
    /// as published, or a side is not at full speed, where the ratio is the one that was seen.
    pub fn has_ratio(&self) -> bool {
        use UndecidedReason::{NoFullSpeed, NoInterval, NotAlone};
        let is_seen = matches!(self.reason(), Some(NoInterval | NoFullSpeed | NotAlone));
        self.is_tested() || self.is_bounded() || is_seen
    }

    /// Returns the interval of the ratio as the core was: both sides were measured in turn in one
    /// session, in which full speed was not seen. It holds for that core, not for one at full speed.
    pub fn interval_as_seen(&self) -> Option<(f64, f64)> {
        let is_session = self.base_launches.is_none() && self.base_rounds.is_some();
        if !is_session || !self.is_seen_only() {
            return None;
        }
        self.ratio.interval()
    }

    /// Returns whether it is of a trace and one side counted none.
    pub fn is_none_on_one_side(&self) -> bool {
        self.quantity.is_of_trace() && (self.base_ns == 0.0) != (self.new_ns == 0.0)
    }

    /// Returns whether only a bound of one side decided it.
    pub fn is_bounded(&self) -> bool {
        matches!(self.answer, ChangeAnswer::Bounded { .. })
    }

    /// Returns whether the new side failed so often that the case is inconclusive.
    pub fn is_lost(&self) -> bool {
        use UndecidedReason::{FewRounds, NoFullSpeed, NotAlone};
        let is_undecided = matches!(self.reason(), Some(FewRounds | NoFullSpeed | NotAlone));
        let has_few_rounds = self.new_rounds.is_some_and(|rounds| rounds < MIN_CLEAN_ROUNDS);
        self.new_failure.is_some() && (is_undecided || has_few_rounds)
    }

    /// Returns why the case is undecided, and what would decide it; absent where there is an answer.
    /// `names` are those of base and new.
    pub fn why_undecided(&self, names: [&str; 2]) -> Option<String> {
        match self.answer {
            ChangeAnswer::CannotTell { reason, more } => {
                let values = [self.base_ns, self.new_ns];
                Some(why_undecided(self.quantity, values, reason, more, names))
            }
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

/// Returns the answer on a pair of costs. Within the limit comes first, since what is proven to be
/// small is no change, however well it is resolved.
pub(super) fn answer(
    costs: &PairCosts,
    ratio: &CostRatio,
    limit: f64,
    confidence: f64,
) -> ChangeAnswer {
    if let Some(missing) = missing_rounds(costs) {
        let (reason, more) = (UndecidedReason::FewRounds, MoreNeeded::Rounds(missing));
        return ChangeAnswer::CannotTell { reason, more: Some(more) };
    }
    if let Some(reason) = costs.unfit {
        let by_bound = costs.bound.and_then(|bound| bound.answer(confidence));
        return by_bound.unwrap_or(ChangeAnswer::CannotTell { reason, more: None });
    }
    let reason = match ratio.interval() {
        _ if costs.includes_zero(CostSide::Base) => UndecidedReason::BaseNotResolved,
        _ if costs.includes_zero(CostSide::New) => UndecidedReason::NewNotResolved,
        None => missing_interval_reason(costs),
        Some((low, high)) => match ChangeAnswer::from_interval([low, high], limit) {
            Some(answer) => return answer,
            None => UndecidedReason::TooWide,
        },
    };
    let more = match reason {
        UndecidedReason::NoInterval | UndecidedReason::FewRounds => None,
        _ => more_needed(costs, limit, confidence),
    };
    ChangeAnswer::CannotTell { reason, more }
}

/// Returns how many rounds a session lacks for an interval; `None` where it has enough.
fn missing_rounds(costs: &PairCosts) -> Option<u32> {
    match (&costs.values, costs.base_rounds) {
        (CostPair::Paired(_), Some(rounds)) if rounds < MIN_ROUNDS => Some(MIN_ROUNDS - rounds),
        _ => None,
    }
}

/// Returns why two costs have a ratio without an interval.
fn missing_interval_reason(costs: &PairCosts) -> UndecidedReason {
    if costs.values.has_interval() {
        return match costs.values.unresolved() {
            CostSide::Base => UndecidedReason::BaseNotResolved,
            CostSide::New => UndecidedReason::NewNotResolved,
        };
    }
    match (costs.base_rounds, costs.new_rounds) {
        (None, None) => UndecidedReason::NoInterval,
        _ => UndecidedReason::FewRounds,
    }
}

fn more_needed(costs: &PairCosts, limit: f64, confidence: f64) -> Option<MoreNeeded> {
    match &costs.values {
        CostPair::Separate(_) if costs.are_of_traces => {
            let would_decide = costs.values.decides_with_exact_groups(limit, confidence);
            if would_decide { Some(MoreNeeded::LongerTraces) } else { None }
        }
        CostPair::Separate(_) => {
            let launches = costs.values.more_needed(limit, confidence, MAX_TOLD_LAUNCHES)?;
            Some(MoreNeeded::Launches(launches))
        }
        CostPair::Paired(_) => {
            let rounds = costs.values.more_needed(limit, confidence, MAX_TOLD_ROUNDS)?;
            Some(MoreNeeded::Rounds(rounds))
        }
    }
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

    /// Returns the answer in words.
    pub(super) fn in_words(
        &self,
        quantity: Quantity,
        values: [f64; 2],
        ratio: &CostRatio,
        limit: f64,
    ) -> String {
        match self {
            Self::NotChanged => format!("not changed within {}", percent(limit)),
            Self::Changed { worse, beyond_limit } => {
                let direction = quantity.direction(*worse);
                let beyond = match (worse, beyond_limit) {
                    (true, true) => format!(", beyond {}", percent(limit)),
                    (true, false) => format!(", perhaps beyond {}", percent(limit)),
                    (false, _) => String::new(),
                };
                format!("changed: {}{direction}{beyond}", amount_before_word(ratio.value))
            }
            Self::Bounded { ratio, .. } => format!("changed: {}", at_least(quantity, *ratio)),
            Self::CannotTell { reason, more } => {
                let why = why_undecided(quantity, values, *reason, *more, RECORD_NAMES);
                format!("inconclusive: {why}")
            }
        }
    }
}

/// Returns why a comparison of two values is undecided, and what would decide it.
fn why_undecided(
    quantity: Quantity,
    values: [f64; 2],
    reason: UndecidedReason,
    more: Option<MoreNeeded>,
    names: [&str; 2],
) -> String {
    if let (true, Some(side)) = (quantity.is_of_trace(), reason.unresolved_side(names)) {
        for (value, name) in values.into_iter().zip(names) {
            if value == 0.0 {
                return format!("none was counted in {name}");
            }
        }
        return format!("the {} of {side} is not resolved; trace longer", quantity.in_words());
    }
    match (reason, more) {
        (UndecidedReason::TooWide, Some(more)) => more.in_words(),
        (UndecidedReason::TooWide, None) if quantity.is_of_trace() => {
            "longer traces would not decide it".to_string()
        }
        (UndecidedReason::TooWide, None) => "more measurements would not decide it".to_string(),
        (reason, Some(more)) => format!("{}; {}", reason.in_words(names), more.in_words()),
        (reason, None) => reason.in_words(names),
    }
}

/// Returns a limit in percent: `3 %`, `0.5 %`.
pub fn percent(limit: f64) -> String {
    format!("{} %", plain(limit * 100.0))
}

/// Returns a bound of a ratio in words, rounded towards no change: `at least 233x faster`, `at least
/// 12.3 % slower`.
pub(super) fn at_least(quantity: Quantity, ratio: f64) -> MarkedText {
    let direction = quantity.direction(ratio >= 1.0);
    let amount = factor_or_percent(round_bound(ratio));
    marked!["at least ", MarkedText::figure(amount), format!(" {direction}")]
}

/// Returns how far a ratio is from 1, in percent or from [`MIN_FACTOR`] on as a factor: `12.3 %`,
/// `233x`.
pub(super) fn factor_or_percent(ratio: f64) -> String {
    let factor = ratio.max(1.0 / ratio);
    if factor < MIN_FACTOR {
        format!("{:.1} %", (ratio - 1.0).abs() * 100.0)
    } else {
        format!("{}x", three_digits(factor))
    }
}

/// Rounds a bound of a ratio towards no change, to the digits that are told: a tenth of a percent,
/// of a factor three digits.
pub fn round_bound(ratio: f64) -> f64 {
    let factor = ratio.max(1.0 / ratio);
    if factor < MIN_FACTOR {
        return 1.0 + (1000.0 * (ratio - 1.0)).trunc() / 1000.0;
    }
    let step = 10_f64.powf(factor.log10().floor() - 2.0);
    let factor = (factor / step).floor() * step;
    if ratio < 1.0 { 1.0 / factor } else { factor }
}

/// Returns how far a ratio is from 1, with a blank behind it: in percent from half the cost to below
/// twice the cost, else as a factor. Empty without a ratio above zero.
fn amount_before_word(ratio: Option<f64>) -> String {
    match ratio {
        Some(ratio @ 2.0..) => format!("{}x ", three_digits(ratio)),
        Some(ratio @ 0.5..2.0) => format!("{:.1} % ", (ratio - 1.0).abs() * 100.0),
        Some(ratio) if ratio > 0.0 => format!("{}x ", three_digits(1.0 / ratio)),
        _ => String::new(),
    }
}

/// Returns the part of a switch that changed most, in nanoseconds: it explains the change of the
/// whole. Absent where no part changed.
pub(super) fn largest_part_change(changes: &[CaseChange]) -> Option<MarkedText> {
    let mut largest: Option<&CaseChange> = None;
    for change in changes {
        let is_part = change.quantity == Quantity::PartNs && change.title != WHOLE;
        let is_changed = matches!(change.answer, ChangeAnswer::Changed { .. });
        let is_larger = largest.is_none_or(|known| is_difference_larger(change, known));
        if is_part && is_changed && is_larger {
            largest = Some(change);
        }
    }
    let part = largest?;
    let (base, new) = (time(part.base_ns), time(part.new_ns));
    let title = format!("{}: ", capitalize(&part.title));
    Some(marked![title, MarkedText::figure(base), format!(" to {new}, {}", part.in_words)])
}

fn is_difference_larger(change: &CaseChange, known: &CaseChange) -> bool {
    let [difference, known_difference] =
        [change, known].map(|change| (change.new_ns - change.base_ns).abs());
    difference.total_cmp(&known_difference).is_ge()
}

fn capitalize(title: &str) -> String {
    let mut letters = title.chars();
    let Some(first) = letters.next() else { return String::new() };
    format!("{}{}", first.to_uppercase(), letters.as_str())
}
