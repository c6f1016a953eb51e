//! The plan of `switchcost measure`: from a budget and a seed to one plan of all its experiments.

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

/// Share of the budget that is kept for intervals and the report at the end.
const REPORT_SHARE: f64 = 0.05;

/// An experiment and its share of the budget, by which its sizes and working sets are chosen.
struct BudgetShare {
    name: &'static str,
    percent: u32,
}

const RING: BudgetShare = BudgetShare { name: "ring", percent: 25 };
const COST: BudgetShare = BudgetShare { name: "cost", percent: 40 };
const RESPONSE: BudgetShare = BudgetShare { name: "response", percent: 25 };
const CLOCK: BudgetShare = BudgetShare { name: "clock", percent: 10 };

/// The plan of all experiments that are possible here.
pub(crate) struct MeasurePlan {
    /// The plan, and what was not available for it; absent where no experiment is possible.
    pub(crate) planned: Option<PlanWithNotices>,
    /// Names of the experiments that were left out, each with the reason.
    pub(crate) left_out: Vec<String>,
}

/// Plans all experiments as if each had been asked for with its share of the budget.
pub(crate) fn plan(budget: TimeBudget, seed: u64, host: &LocalHost) -> MeasurePlan {
    let parts = [
        (&RING, plan_part::<RingArgs>(&RING, budget, seed, host, ring::plan::plan)),
        (&COST, plan_part::<CostArgs>(&COST, budget, seed, host, cost::plan::plan)),
        (&RESPONSE, plan_part::<ResponseArgs>(&RESPONSE, budget, seed, host, response::plan::plan)),
        (&CLOCK, plan_part::<OverheadArgs>(&CLOCK, budget, seed, host, overhead::plan)),
    ];
    let mut plans: Vec<PlanWithNotices> = Vec::new();
    let mut left_out = Vec::new();
    for (share, planned) in parts {
        match planned {
            Ok(planned) => plans.push(planned),
            Err(error) => left_out.push(format!("{}: {error:#}", share.name)),
        }
    }
    let Some((first, _)) = plans.first() else { return MeasurePlan { planned: None, left_out } };
    let time = budget.time.mul_f64(1.0 - REPORT_SHARE);
    let stopping = Stopping { budget_ns: nanoseconds(time), ..first.stopping.clone() };
    let notices = each_once(plans.iter().flat_map(|(_, notices)| notices.iter().cloned()));
    let planned = Some((Plan::from_parts(plans, seed, stopping), notices));
    MeasurePlan { planned, left_out }
}

/// Plans an experiment with its default arguments and its share of the budget.
fn plan_part<A: Args + FromArgMatches>(
    share: &BudgetShare,
    budget: TimeBudget,
    seed: u64,
    host: &LocalHost,
    plan: fn(&A, &LocalHost) -> Result<PlanWithNotices>,
) -> Result<PlanWithNotices> {
    let time = budget.time.mul_f64(f64::from(share.percent) / 100.0);
    let args = default_args(share.name, TimeBudget { time, ..budget }, seed)?;
    let (plan, mut notices) = plan(&args, host)?;
    // Such a notice names the budget of the experiment alone, which nobody has typed.
    for notice in notices.iter_mut().filter(|notice| notice.kind == NoticeKind::TooShort) {
        notice.text = format!("Measured fewer sizes of {}; a longer --budget has all", share.name);
    }
    Ok((plan, notices))
}

/// Returns the arguments of an experiment as if only its budget and seed had been typed.
fn default_args<A: Args + FromArgMatches>(
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
            let args: RingArgs = default_args("ring", budget, 5).unwrap();
            assert_eq!((args.effort.budget, args.effort.seed), (budget, 5));
        }
    }

    #[test]
    fn the_shares_are_those_of_a_whole() {
        let shares = [RING, COST, RESPONSE, CLOCK].map(|share| share.percent);
        assert_eq!(shares.iter().sum::<u32>(), 100);
    }
}
