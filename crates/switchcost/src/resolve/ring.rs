//! `switchcost ring`, from what was typed to a plan.

use anyhow::{Context, Result};
use model::case::{Case, Work};
use model::machine::Machine;
use model::plan::{Batching, Plan};
use probe::ring::Registered;
use probe::{placement, ring};

use super::links;
use crate::cli::RingArgs;
use crate::failure::usage;

/// The plan of `switchcost ring`, and a word on each link that was left out. `allowed` are the CPUs
/// that this process was started on.
pub(crate) fn plan(
    args: &RingArgs,
    allowed: &[u32],
    machine: &Machine,
) -> Result<(Plan, Vec<String>)> {
    ring::check_policy(args.policy).with_context(|| format!("--policy {}", args.policy))?;
    let one = placement::choose_one(allowed, machine);
    let placement = super::placement(&args.placement, one, allowed, machine)?;
    Work::check_stride(args.stride).map_err(usage)?;
    let work = match args.work {
        0 => None,
        bytes => Some(Work::new(bytes, args.stride, args.op).map_err(usage)?),
    };
    let largest = args.members.0.iter().max().copied().unwrap_or(0);
    super::check_memory(
        &format!("--work {} in {largest} members", args.work),
        u128::from(args.work) * u128::from(largest),
        "less work or fewer --members",
        machine,
    )?;
    let case = |members: u32, link: &str| Case {
        members,
        kind: args.kind,
        link: link.to_string(),
        work,
        placement: placement.clone(),
        policy: args.policy,
        priority: None,
    };
    let (links, notices) = links::choose(&args.link, &case(2, ""))?;
    let sizes = |link: &&Registered| args.members.0.iter().map(|members| case(*members, link.name));
    let plan = Plan {
        experiment: "ring".to_string(),
        cases: links.iter().flat_map(sizes).collect(),
        seed: args.effort.seed,
        batching: Batching { laps: args.laps, ..Batching::default() },
        stopping: super::stopping(&args.effort),
    };
    Ok((plan.with_solos(), notices))
}
