//! What can be said of a pair of costs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ratio::{Costs, Ratio, Unresolved};

/// More rounds than this nobody will measure; the number would say nothing.
const MOST_ROUNDS: u32 = 1_000_000;

/// One of three answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// The interval lies within the limit on both sides of 1.
    NotChanged,
    /// The interval excludes 1 and is not within the limit.
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
        /// About how many more rounds on each measured side would tell, if things stay as they are; of
        /// few rounds, how many more it takes for an interval, which then tells or not.
        more_rounds: Option<u32>,
    },
}

/// Why nothing can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The interval holds 1 and reaches beyond the limit.
    TooWide,
    /// Fewer than 5 rounds on a side.
    FewRounds,
    /// The base's cost is not clearly above zero, so that nothing is a multiple of it.
    BaseNotResolved,
    /// The new cost is not clearly above zero: within rounds, what it is of the base is then not known.
    NewNotResolved,
    /// Neither side has an interval: both are published figures.
    NoInterval,
}

/// The answer from the interval: within the limit comes first, since what is proven to be small is no
/// change, however well it is resolved.
pub(super) fn answer(costs: &Costs, ratio: &Ratio, limit: f64, confidence: f64) -> Answer {
    let (lowest, highest) = (1.0 / (1.0 + limit), 1.0 + limit);
    let Some((low, high)) = ratio.interval() else {
        let reason = why_none(costs);
        let more_rounds = match reason {
            Reason::NoInterval => None,
            Reason::FewRounds => Some(missing_rounds(costs)),
            Reason::TooWide | Reason::BaseNotResolved | Reason::NewNotResolved => {
                more_rounds(costs, limit, confidence)
            }
        };
        return Answer::CannotTell { reason, more_rounds };
    };
    if lowest <= low && high <= highest {
        return Answer::NotChanged;
    }
    if low > 1.0 || high < 1.0 {
        let is_beyond = |value: f64| value > highest || value < lowest;
        let beyond_limit = ratio.value.is_some_and(is_beyond);
        return Answer::Changed { worse: low > 1.0, beyond_limit };
    }
    let more_rounds = more_rounds(costs, limit, confidence);
    Answer::CannotTell { reason: Reason::TooWide, more_rounds }
}

fn why_none(costs: &Costs) -> Reason {
    match (costs.has_interval(), costs.base_rounds.or(costs.new_rounds)) {
        (true, _) => match costs.unresolved() {
            Unresolved::Base => Reason::BaseNotResolved,
            Unresolved::New => Reason::NewNotResolved,
        },
        (false, None) => Reason::NoInterval,
        (false, Some(_)) => Reason::FewRounds,
    }
}

/// Up to the least number with which there is an interval.
fn missing_rounds(costs: &Costs) -> u32 {
    let fewest = costs.base_rounds.into_iter().chain(costs.new_rounds).min().unwrap_or(0);
    crate::plan::MINIMUM_ROUNDS.saturating_sub(fewest)
}

/// The least number of rounds more on each measured side with which the answer would be one of the
/// others: the variances fall with the number of rounds, all else stays.
fn more_rounds(costs: &Costs, limit: f64, confidence: f64) -> Option<u32> {
    let tells = |more: u32| {
        let costs = costs.with_more(more);
        let ratio = costs.ratio(confidence);
        ratio.interval().is_some_and(|(low, high)| {
            low > 1.0 || high < 1.0 || (1.0 / (1.0 + limit) <= low && high <= 1.0 + limit)
        })
    };
    let mut enough = 1;
    while !tells(enough) {
        enough *= 2;
        if enough > MOST_ROUNDS {
            return None;
        }
    }
    // Doubling went past it: it lies between the last two tries.
    let (mut few, mut enough) = (enough / 2, enough);
    while enough - few > 1 {
        let middle = few + (enough - few) / 2;
        match tells(middle) {
            true => enough = middle,
            false => few = middle,
        }
    }
    Some(enough)
}
