//! The parts of `switchcost measure`: what each experiment measures if nothing is said, in its share of
//! the budget.

use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, Command, FromArgMatches};
use model::plan::Plan;
use model::response::Response;
use model::ring::Ring;
use model::trial::Trials;

use super::clock::Here;
use crate::cli::MeasureArgs;

/// Of the budget, in percent: by how many cases an experiment has and how far they scatter.
const RING: u32 = 25;
const COST: u32 = 40;
const RESPONSE: u32 = 25;
const CLOCK: u32 = 10;

/// A plan, what could not be had for it, and how much of the budget is spent before it.
pub(crate) struct Part<I: model::instrument::Instrument> {
    pub(crate) plan: Plan<I>,
    pub(crate) notices: Vec<String>,
    pub(crate) before: Duration,
}

/// Sizes of rings.
pub(crate) fn ring(args: &MeasureArgs, here: &Here<'_>) -> Result<Part<Ring>> {
    let typed = defaults("ring", args, RING)?;
    let (plan, notices) = super::ring::plan(&typed, here.allowed, here.machine)?;
    Ok(Part { plan, notices, before: Duration::ZERO })
}

/// Working sets.
pub(crate) fn cost(args: &MeasureArgs, here: &Here<'_>) -> Result<Part<Ring>> {
    let typed = defaults("cost", args, COST)?;
    let (plan, notices) = super::cost::plan(&typed, here.allowed, here.machine)?;
    Ok(Part { plan, notices, before: share(args, RING) })
}

/// What a response is made of.
pub(crate) fn response(args: &MeasureArgs, here: &Here<'_>) -> Result<Part<Response>> {
    let (plan, notices) = super::response::plan(&defaults("response", args, RESPONSE)?, here)?;
    Ok(Part { plan, notices, before: share(args, RING + COST) })
}

/// Clocks.
pub(crate) fn clock(args: &MeasureArgs, here: &Here<'_>) -> Result<Part<Trials>> {
    let (plan, notices) = super::clock::overhead(&defaults("overhead", args, CLOCK)?, here)?;
    Ok(Part { plan, notices, before: share(args, RING + COST + RESPONSE) })
}

fn share(args: &MeasureArgs, percent: u32) -> Duration {
    args.budget.mul_f64(f64::from(percent) / 100.0)
}

/// An experiment's own arguments as if only budget and seed had been typed.
fn defaults<A: Args + FromArgMatches>(
    name: &'static str,
    args: &MeasureArgs,
    percent: u32,
) -> Result<A> {
    let budget = format!("{}ms", share(args, percent).as_millis().max(1));
    let words = [name, "--budget", &budget, "--seed", &args.seed.to_string()].map(String::from);
    let matches = A::augment_args(Command::new(name)).try_get_matches_from(words);
    let matches = matches.with_context(|| format!("the defaults of {name}"))?;
    A::from_arg_matches(&matches).with_context(|| format!("the defaults of {name}"))
}
