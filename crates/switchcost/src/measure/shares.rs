//! The parts of `switchcost measure`: what each experiment measures if nothing is said, in its share of
//! the budget.

use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, Command, FromArgMatches};

use crate::execute::Planned;
use crate::setting::Here;
use crate::{clock, cost, response, ring};

/// An experiment's weight in the budget: by how many cases it has and how far they scatter. They are
/// measured in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Ring,
    Cost,
    Response,
    Clock,
}

impl Part {
    const ALL: [Self; 4] = [Self::Ring, Self::Cost, Self::Response, Self::Clock];

    /// What it is called.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ring => "ring",
            Self::Cost => "cost",
            Self::Response => "response",
            Self::Clock => "clock",
        }
    }

    const fn weight(self) -> u32 {
        match self {
            Self::Ring => 25,
            Self::Cost => 40,
            Self::Response => 25,
            Self::Clock => 10,
        }
    }

    /// What it has of the time that is left: what an earlier one has taken too much or left over is
    /// shared by the later ones.
    pub(crate) fn share(self, left: Duration) -> Duration {
        let later = Self::ALL.iter().skip_while(|part| **part != self);
        let weights: u32 = later.map(|part| part.weight()).sum();
        left * self.weight() / weights
    }
}

/// What has to be known for a plan with nothing typed but a budget.
pub(crate) struct Asked<'a> {
    pub(crate) budget: Duration,
    pub(crate) seed: u64,
    pub(crate) here: &'a Here,
}

/// Sizes of rings.
pub(crate) fn ring(asked: &Asked<'_>) -> Result<Planned> {
    ring::plan::plan(&defaults("ring", asked)?, asked.here)
}

/// Working sets.
pub(crate) fn cost(asked: &Asked<'_>) -> Result<Planned> {
    cost::plan::plan(&defaults("cost", asked)?, asked.here)
}

/// What a response is made of.
pub(crate) fn response(asked: &Asked<'_>) -> Result<Planned> {
    response::plan::plan(&defaults("response", asked)?, asked.here)
}

/// Clocks.
pub(crate) fn clock(asked: &Asked<'_>) -> Result<Planned> {
    clock::plan::overhead(&defaults("overhead", asked)?, asked.here)
}

/// An experiment's own arguments as if only budget and seed had been typed.
fn defaults<A: Args + FromArgMatches>(name: &'static str, asked: &Asked<'_>) -> Result<A> {
    let budget = format!("{}ms", asked.budget.as_millis().max(1));
    let words = [name, "--budget", &budget, "--seed", &asked.seed.to_string()].map(String::from);
    let matches = A::augment_args(Command::new(name)).try_get_matches_from(words);
    let matches = matches.with_context(|| format!("the defaults of {name}"))?;
    A::from_arg_matches(&matches).with_context(|| format!("the defaults of {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_goes_to_the_later_parts() {
        let seconds = Duration::from_secs;
        assert_eq!(Part::Ring.share(seconds(100)), seconds(25));
        // The rings were precise after five seconds.
        assert_eq!(Part::Cost.share(seconds(75)), seconds(40));
        assert_eq!(Part::Response.share(seconds(7)), seconds(5));
        assert_eq!(Part::Clock.share(seconds(3)), seconds(3), "the last has all");
        assert_eq!(Part::Clock.share(Duration::ZERO), Duration::ZERO);
    }
}
