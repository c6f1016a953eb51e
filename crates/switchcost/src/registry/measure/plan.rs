//! `switchcost measure`, from a budget and a seed to one plan of all its experiments.

use anyhow::{Context, Result};
use clap::{Args, Command, FromArgMatches};
use rundata::notice::NoticeKind;
use rundata::plan::{Plan, Stopping};

use crate::base::values::{TimeBudget, each_once, nanoseconds};
use crate::engine::setting::{LocalHost, PlanWithNotices};
use crate::experiments::clock::overhead::{self, OverheadArgs};
use crate::experiments::cost::{self, CostArgs};
use crate::experiments::response::{self, ResponseArgs};
use crate::experiments::ring::{self, RingArgs};

/// Of the budget, for intervals and the report at the end.
const FOR_THE_END: f64 = 0.05;

/// An experiment with its weight in the budget: as many sizes and working sets are planned as this
/// share of the time suffices for.
struct Share {
    name: &'static str,
    percent: u32,
}

const RING: Share = Share { name: "ring", percent: 25 };
const COST: Share = Share { name: "cost", percent: 40 };
const RESPONSE: Share = Share { name: "response", percent: 25 };
const CLOCK: Share = Share { name: "clock", percent: 10 };

/// The plan of all experiments that are possible here.
pub(crate) struct MeasurePlan {
    /// The plan, and what was not available for it; absent where no experiment is possible.
    pub(crate) planned: Option<PlanWithNotices>,
    /// Why an experiment was left out, with its name.
    pub(crate) left_out: Vec<String>,
}

/// Plans all experiments as if each had been asked for with its share of the budget.
pub(crate) fn plan(budget: TimeBudget, seed: u64, here: &LocalHost) -> MeasurePlan {
    let all = [
        (&RING, part::<RingArgs>(&RING, budget, seed, here, ring::plan::plan)),
        (&COST, part::<CostArgs>(&COST, budget, seed, here, cost::plan::plan)),
        (&RESPONSE, part::<ResponseArgs>(&RESPONSE, budget, seed, here, response::plan::plan)),
        (&CLOCK, part::<OverheadArgs>(&CLOCK, budget, seed, here, overhead::plan)),
    ];
    let mut plans: Vec<PlanWithNotices> = Vec::new();
    let mut left_out = Vec::new();
    for (share, planned) in all {
        match planned {
            Ok(planned) => plans.push(planned),
            Err(error) => left_out.push(format!("{}: {error:#}", share.name)),
        }
    }
    let Some((first, _)) = plans.first() else { return MeasurePlan { planned: None, left_out } };
    let time = budget.time.mul_f64(1.0 - FOR_THE_END);
    let stopping = Stopping { budget_ns: nanoseconds(time), ..first.stopping.clone() };
    let notices = each_once(plans.iter().flat_map(|(_, notices)| notices.iter().cloned()));
    let planned = Some((Plan::from_parts(plans, seed, stopping), notices));
    MeasurePlan { planned, left_out }
}

/// The plan of an experiment, with the arguments that it has if only budget and seed are typed.
fn part<A: Args + FromArgMatches>(
    share: &Share,
    budget: TimeBudget,
    seed: u64,
    here: &LocalHost,
    plan: fn(&A, &LocalHost) -> Result<PlanWithNotices>,
) -> Result<PlanWithNotices> {
    let time = budget.time.mul_f64(f64::from(share.percent) / 100.0);
    let (plan, mut notices) =
        plan(&defaults(share.name, TimeBudget { time, ..budget }, seed)?, here)?;
    // The budget that such a note asks for is that of the experiment alone.
    for notice in notices.iter_mut().filter(|notice| notice.kind == NoticeKind::TooShort) {
        notice.text = format!("Measured fewer sizes of {}; a longer --budget has all", share.name);
    }
    Ok((plan, notices))
}

/// An experiment's own arguments as if only budget and seed had been typed.
fn defaults<A: Args + FromArgMatches>(
    name: &'static str,
    budget: TimeBudget,
    seed: u64,
) -> Result<A> {
    let extends = if budget.extends { "+" } else { "" };
    let budget = format!("{}ms{extends}", budget.time.as_millis().max(1));
    let words = [name, "--budget", &budget, "--seed", &seed.to_string()].map(String::from);
    let matches = A::augment_args(Command::new(name)).try_get_matches_from(words);
    let matches = matches.with_context(|| format!("the defaults of {name}"))?;
    A::from_arg_matches(&matches).with_context(|| format!("the defaults of {name}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_budget_that_may_be_extended_reaches_the_plans() {
        for extends in [false, true] {
            let budget = TimeBudget { time: Duration::from_secs(25), extends };
            let args: RingArgs = defaults("ring", budget, 5).unwrap();
            assert_eq!((args.effort.budget, args.effort.seed), (budget, 5));
        }
    }

    #[test]
    fn the_shares_are_those_of_a_whole() {
        let shares = [RING, COST, RESPONSE, CLOCK].map(|share| share.percent);
        assert_eq!(shares.iter().sum::<u32>(), 100);
    }
}
