//! What can be said of a pair of costs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ratio::{Costs, Ratio, Unresolved};

/// More rounds than this nobody will measure; the number would say nothing.
const MOST_ROUNDS: u32 = 1_000_000;

/// The same of launches.
const MOST_LAUNCHES: u32 = 1000;

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

/// The answer from the interval: within the limit comes first, since what is proven to be small is no
/// change, however well it is resolved.
pub(super) fn answer(costs: &Costs, ratio: &Ratio, limit: f64, confidence: f64) -> Answer {
    let few_rounds = missing_rounds(costs);
    if let Some(missing) = few_rounds.filter(|missing| *missing > 0) {
        let more = Some(More::Rounds(missing));
        return Answer::CannotTell { reason: Reason::FewRounds, more };
    }
    if !costs.at_full_speed() {
        return Answer::CannotTell { reason: Reason::NoFullSpeed, more: None };
    }
    let Some((low, high)) = ratio.interval() else {
        let reason = why_none(costs);
        let more = match reason {
            Reason::BaseNotResolved | Reason::NewNotResolved => more(costs, limit, confidence),
            _ => None,
        };
        return Answer::CannotTell { reason, more };
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
    Answer::CannotTell { reason: Reason::TooWide, more: more(costs, limit, confidence) }
}

fn why_none(costs: &Costs) -> Reason {
    match (costs.has_interval(), costs.rounds()) {
        (true, _) => match costs.unresolved() {
            Unresolved::Base => Reason::BaseNotResolved,
            Unresolved::New => Reason::NewNotResolved,
        },
        (false, (None, None)) => Reason::NoInterval,
        (false, _) => Reason::FewRounds,
    }
}

/// Of a session, up to the least number with which there is an interval.
fn missing_rounds(costs: &Costs) -> Option<u32> {
    let Costs::Within(_) = costs else { return None };
    Some(crate::plan::MINIMUM_ROUNDS.saturating_sub(costs.rounds().0?))
}

/// The least number more with which the answer would be one of the others: the variances fall with the
/// number, all else stays.
fn more(costs: &Costs, limit: f64, confidence: f64) -> Option<More> {
    let tells = |more: u32| {
        let ratio = costs.with_more(more).ratio(confidence);
        ratio.interval().is_some_and(|(low, high)| {
            low > 1.0 || high < 1.0 || (1.0 / (1.0 + limit) <= low && high <= 1.0 + limit)
        })
    };
    let (most, of): (u32, fn(u32) -> More) = match costs {
        Costs::Apart(_) => (MOST_LAUNCHES, More::Launches),
        Costs::Within(_) => (MOST_ROUNDS, More::Rounds),
    };
    let mut enough = 1;
    while !tells(enough) {
        enough *= 2;
        if enough > most {
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
    Some(of(enough))
}
