//! What can be said of a pair of costs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::ratio::{self, Ratio, Side};

use super::costs::Costs;
use crate::subject::Quantity;

/// More rounds than this nobody will measure; the number would say nothing.
const MOST_ROUNDS: u32 = 1_000_000;

/// The same of launches.
const MOST_LAUNCHES: u32 = 1000;

/// Which cost is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Wanted {
    /// What stands for the case: the cost of a switch above solo, of a ring that does not switch that
    /// of a hop, of a trial its own; where one side lacks it, the next that both have.
    #[default]
    Switch,
    /// Time of a hop.
    Hop,
    /// CPU time: of a switch above solo, else of a hop.
    Cpu,
}

impl Wanted {
    /// Which figures serve, the best first.
    pub(super) fn quantities(self) -> &'static [Quantity] {
        use Quantity::{CpuNsPerHop, CpuNsPerSwitchAboveSolo, NsPerHop, NsPerSwitchAboveSolo};
        match self {
            Self::Switch => &[NsPerSwitchAboveSolo, NsPerHop, Quantity::TrialNs],
            Self::Hop => &[NsPerHop, Quantity::TrialNs],
            Self::Cpu => &[CpuNsPerSwitchAboveSolo, CpuNsPerHop],
        }
    }
}

/// How two subjects are to be compared.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Terms {
    /// A cost within this share of the other is not changed: 0.03 is 3 %, from 1 / 1.03 to 1.03 times.
    pub limit: f64,
    /// Confidence of all intervals together: 0.95 is 95 %.
    pub confidence: f64,
    /// Which cost.
    pub wanted: Wanted,
}

/// One of three answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// The interval lies within the limit on both sides of 1.
    NotChanged,
    /// The interval excludes 1 and is not within the limit, and both sides were measured at full speed.
    Changed {
        /// Whether the new cost is the higher one.
        worse: bool,
        /// Whether the ratio itself is beyond the limit.
        beyond_limit: bool,
    },
    /// Neither.
    CannotTell {
        /// Why not.
        reason: Reason,
        /// About how many more would tell, if things stay as they are; absent where more would not.
        more: Option<More>,
    },
}

/// What more of would tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum More {
    /// Launches, on each side that was measured.
    Launches(u32),
    /// Rounds of the session; of few rounds, how many more it takes for an interval.
    Rounds(u32),
}

/// Why nothing can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The interval holds 1 and reaches beyond the limit.
    TooWide,
    /// Too few rounds on a side for an interval.
    FewRounds,
    /// A side was not seen at the CPU's full speed, or nobody looked.
    NoFullSpeed,
    /// The base's cost is not clearly above zero, so that nothing is a multiple of it.
    BaseNotResolved,
    /// The new cost is not clearly above zero: what it is of the base is then not known.
    NewNotResolved,
    /// Neither side has an interval: both are published figures.
    NoInterval,
}

/// A case that both sides have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// In words.
    pub title: String,
    /// By these the two were found to be the same case.
    pub labels: BTreeMap<String, String>,
    /// Its number in the plan of the base.
    pub base_case: usize,
    /// In that of the new one.
    pub new_case: usize,
    /// What is compared.
    pub of: Quantity,
    /// The base's cost in nanoseconds: the mean of its launches at full speed, or as published; of a session the
    /// mean of the middle half of its rounds.
    pub base_ns: f64,
    /// The new one's.
    pub new_ns: f64,
    /// Launches that the base's cost is the mean of: those at full speed, or all where none was. Absent for a
    /// published figure and in a session.
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
    /// New / base; of a session by the middle of their relative differences within rounds.
    pub ratio: Ratio,
    /// What follows.
    #[serde(flatten)]
    pub answer: Answer,
    /// The answer in words.
    pub in_words: String,
}

impl Change {
    /// Whether the case has become slower beyond the limit.
    pub fn is_worse_beyond_limit(&self) -> bool {
        self.answer == Answer::Changed { worse: true, beyond_limit: true }
    }

    /// Whether there is an interval to go by.
    pub fn is_tested(&self) -> bool {
        self.reason().is_none_or(|reason| reason == Reason::TooWide)
    }

    /// Whether the new side failed so often that nothing can be told.
    pub fn is_lost(&self) -> bool {
        let has_few = matches!(self.reason(), Some(Reason::FewRounds | Reason::NoFullSpeed));
        self.new_failure.is_some() && has_few
    }

    fn reason(&self) -> Option<Reason> {
        match self.answer {
            Answer::CannotTell { reason, .. } => Some(reason),
            _ => None,
        }
    }
}

/// The answer from the interval: within the limit comes first, since what is proven to be small is no
/// change, however well it is resolved.
pub(super) fn answer(costs: &Costs, ratio: &Ratio, limit: f64, confidence: f64) -> Answer {
    let cannot_tell = |reason, more| Answer::CannotTell { reason, more };
    let missing = missing_rounds(costs);
    if missing > 0 {
        return cannot_tell(Reason::FewRounds, Some(More::Rounds(missing)));
    }
    if !costs.at_full_speed {
        return cannot_tell(Reason::NoFullSpeed, None);
    }
    let more = || match costs.of {
        ratio::Costs::Apart(_) => {
            costs.of.more_needed(limit, confidence, MOST_LAUNCHES).map(More::Launches)
        }
        ratio::Costs::Within(_) => {
            costs.of.more_needed(limit, confidence, MOST_ROUNDS).map(More::Rounds)
        }
    };
    let Some((low, high)) = ratio.interval() else {
        return match (costs.of.has_interval(), costs.of.unresolved(), costs.rounds) {
            (true, Side::Base, _) => cannot_tell(Reason::BaseNotResolved, more()),
            (true, Side::New, _) => cannot_tell(Reason::NewNotResolved, more()),
            (false, _, (None, None)) => cannot_tell(Reason::NoInterval, None),
            _ => cannot_tell(Reason::FewRounds, None),
        };
    };
    let (lowest, highest) = (1.0 / (1.0 + limit), 1.0 + limit);
    if lowest <= low && high <= highest {
        return Answer::NotChanged;
    }
    if low > 1.0 || high < 1.0 {
        let is_beyond = |value: f64| value > highest || value < lowest;
        let beyond_limit = ratio.value.is_some_and(is_beyond);
        return Answer::Changed { worse: low > 1.0, beyond_limit };
    }
    cannot_tell(Reason::TooWide, more())
}

/// Of a session, up to the least number with which there is an interval.
fn missing_rounds(costs: &Costs) -> u32 {
    match (costs.of, costs.rounds) {
        (ratio::Costs::Within(_), (Some(rounds), _)) => {
            crate::plan::MINIMUM_ROUNDS.saturating_sub(rounds)
        }
        _ => 0,
    }
}
