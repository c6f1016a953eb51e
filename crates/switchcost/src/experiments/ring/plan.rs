//! `switchcost ring`, from what was typed to a plan.

use std::time::Duration;

use anyhow::{Context, Result};
use model::experiment::Experiment;
use model::placement::Placement;
use model::plan;
use model::ring::{Batching, Case, Policy, State, Work};
use probe::{placement, ring};

use super::RingArgs;
use crate::base::failure::usage;
use crate::base::values::each_once;
use crate::engine::setting::{Here, PlacementArg, Planned, pair};
use crate::experiments::{events, links};

/// What a member adds to the time of a ring: its start, its laps and its end.
const MEMBER: Duration = Duration::from_millis(1);

/// The plan of `switchcost ring`, and a note on each link that was left out.
pub(crate) fn plan(args: &RingArgs, here: &Here) -> Result<Planned> {
    let policy = args.policy.unwrap_or(Policy::Other);
    ring::check_policy(policy).with_context(|| format!("--policy {policy}"))?;
    // Where CPUs were named nobody has to be chosen.
    let is_named = matches!(args.placement, PlacementArg::Cpus(_) | PlacementArg::Free);
    let among = if is_named { here.allowed.clone() } else { here.free() };
    let one = placement::choose_one(&among, &here.machine);
    let placements = here.placements(&args.placement, one)?;
    let (states, mut notices) = choose_states(&args.state)?;
    Work::check_stride(args.stride).map_err(usage)?;
    let work = match args.work {
        0 => None,
        bytes => Some(Work::new(bytes, args.stride, args.op).map_err(usage)?),
    };
    let largest = args.members.iter().max().copied().unwrap_or(0);
    here.check_memory(
        &format!("--work {} in {largest} members", args.work),
        u128::from(args.work) * u128::from(largest),
        "less work or fewer --members",
    )?;
    let case =
        |placement: &Placement| Case { kind: args.kind, work, policy, ..pair(placement.clone()) };
    let (rings, left_out) = rings(&args.link, &placements.iter().map(case).collect::<Vec<_>>())?;
    notices.extend(left_out);
    if args.placement == PlacementArg::Sweep && placements.len() < 2 {
        notices.push(
            "--placement sweep: this program may use one CPU only (see taskset -p $$ and the \
             control group's cpuset)"
                .to_string(),
        );
    }
    let kinds = rings.len() * states.len();
    let (sizes, too_short) =
        args.effort.fitting(&args.members, (kinds, kinds), |members| MEMBER * members);
    notices.extend(too_short);
    let sized = |ring: Case| {
        sizes.iter().map(move |members| match members {
            // The solo ring of a sweep's pair is that of its first CPU: several may have the same.
            1 => ring.solo(),
            _ => Case { members: *members, ..ring.clone() },
        })
    };
    let with_states = rings
        .iter()
        .flat_map(|ring| states.iter().map(move |state| Case { state: *state, ..ring.clone() }));
    let cases = each_once(with_states.flat_map(sized));
    let one_cpu = placements.iter().find(|of| of.is_one_cpu());
    let (events, not_counted) = events::choose(&args.events, one_cpu)?;
    notices.extend(not_counted);
    let batching = Batching { laps: args.laps, events, ..Batching::default() };
    let plan = args.effort.plan(Experiment::Ring, cases, plan::Batching::of_rings(batching));
    Ok((plan.with_solos(), notices))
}

/// The rings of two for each link in each placement, and a note on each that was left out. Links
/// are chosen for the first placement; which of them the others can do shows there.
fn rings(asked: &[String], placed: &[Case]) -> Result<(Vec<Case>, Vec<String>)> {
    let (first, others) = placed.split_first().context("no CPU is allowed")?;
    let (links, mut notices) = links::choose(asked, first)?;
    let mut rings = Vec::new();
    for link in links {
        let by_it = |case: &Case| Case { link: link.name.to_string(), ..case.clone() };
        rings.push(by_it(first));
        for other in others {
            match link.suits(other) {
                Ok(()) => rings.push(by_it(other)),
                Err(why) => notices.push(format!("left out: placement {}: {why}", other.placement)),
            }
        }
    }
    Ok((rings, notices))
}

/// The states in their order, none among them, and a note on each that was left out of all. One
/// that was asked for by name and that this CPU lacks is an error. Without any the members do
/// nothing about registers.
fn choose_states(asked: &[String]) -> Result<(Vec<Option<State>>, Vec<String>)> {
    // The list of names in the error ends in a bracket.
    let named = |name: &String| {
        let unknown = |why: String| usage(format!("--state {}", why.replace(')', ", or all)")));
        name.trim().parse::<State>().map_err(unknown)
    };
    let is_all = asked == [links::ALL];
    let asked = match is_all {
        _ if asked.is_empty() => return Ok((vec![None], Vec::new())),
        true => State::ALL.to_vec(),
        false => asked.iter().map(named).collect::<Result<_>>()?,
    };
    let (mut states, mut notices) = (vec![State::None], Vec::new());
    for state in asked {
        match ring::check_state(state) {
            Ok(()) => states.push(state),
            Err(why) if is_all => notices.push(format!("left out: {why}")),
            Err(why) => return Err(usage(why)),
        }
    }
    states.sort();
    states.dedup();
    Ok((states.into_iter().map(Some).collect(), notices))
}
