//! `switchcost ring`, from what was typed to a plan.

use anyhow::{Context, Result, anyhow};
use model::experiment::Experiment;
use model::plan::{self, Plan};
use model::ring::{Batching, Case, Placement, Policy, Work};
use model::speed::Reference;
use model::state::State;
use probe::{placement, ring};

use super::args::{RingArgs, StateNames};
use crate::execute::Planned;
use crate::failure::usage;
use crate::links::{self, LinkNames};
use crate::setting::{Here, PlacementArg};

/// The plan of `switchcost ring`, and a word on each link that was left out.
pub(crate) fn plan(args: &RingArgs, here: &Here) -> Result<Planned> {
    let policy = args.policy.unwrap_or(Policy::Other);
    ring::check_policy(policy).with_context(|| format!("--policy {policy}"))?;
    let one = placement::choose_one(&here.allowed, &here.machine);
    let placements = here.placements(&args.placement, one)?;
    let (states, mut notices) = choose_states(args.state.as_ref())?;
    Work::check_stride(args.stride).map_err(usage)?;
    let work = match args.work {
        0 => None,
        bytes => Some(Work::new(bytes, args.stride, args.op).map_err(usage)?),
    };
    let largest = args.members.0.iter().max().copied().unwrap_or(0);
    here.check_memory(
        &format!("--work {} in {largest} members", args.work),
        u128::from(args.work) * u128::from(largest),
        "less work or fewer --members",
    )?;
    let case = |placement: &Placement| Case {
        members: 2,
        kind: args.kind,
        link: String::new(),
        work,
        placement: placement.clone(),
        policy,
        priority: None,
        state: None,
    };
    let (rings, left_out) = rings(&args.link, &placements.iter().map(case).collect::<Vec<_>>())?;
    notices.extend(left_out);
    notices.extend(lonely(&args.placement, &placements));
    let mut cases: Vec<Case> = Vec::new();
    for ring in &rings {
        for state in &states {
            for members in &args.members.0 {
                let ring = Case { members: *members, state: *state, ..ring.clone() };
                // The solo ring of a sweep's pair is that of its first CPU: several may have the same.
                match *members {
                    1 if cases.contains(&ring.solo()) => {}
                    1 => cases.push(ring.solo()),
                    _ => cases.push(ring),
                }
            }
        }
    }
    let plan = Plan {
        experiment: Experiment::Ring,
        cases: cases.into_iter().map(Into::into).collect(),
        seed: args.effort.seed,
        batching: plan::Batching::of_rings(Batching { laps: args.laps, ..Batching::default() }),
        stopping: args.effort.stopping(),
        reference: Reference::default(),
    };
    Ok((plan.with_solos(), notices))
}

/// The rings of two for each link in each placement, and a word on each that was left out. Links are
/// chosen for the first placement; which of them the others can do shows there.
fn rings(asked: &LinkNames, placed: &[Case]) -> Result<(Vec<Case>, Vec<String>)> {
    let Some((first, others)) = placed.split_first() else {
        return Err(anyhow!("no CPU is allowed"));
    };
    let (links, mut notices) = links::choose(asked, first)?;
    let mut rings = Vec::new();
    for link in links {
        rings.push(Case { link: link.name.to_string(), ..first.clone() });
        for other in others {
            match link.suits(other) {
                Ok(()) => rings.push(Case { link: link.name.to_string(), ..other.clone() }),
                Err(why) => notices.push(format!("left out: placement {}: {why}", other.placement)),
            }
        }
    }
    Ok((rings, notices))
}

/// A sweep that found nothing to sweep over.
fn lonely(asked: &PlacementArg, placements: &[Placement]) -> Option<String> {
    let alone = *asked == PlacementArg::Sweep && placements.len() < 2;
    alone.then(|| {
        "--placement sweep: this program may use one CPU only (see taskset -p $$ and the control group's \
         cpuset)"
            .to_string()
    })
}

/// The states in their order, none among them, and a word on each that was left out of all. One that was
/// asked for by name and that this CPU lacks is an error. Without any the members do nothing about
/// registers.
fn choose_states(asked: Option<&StateNames>) -> Result<(Vec<Option<State>>, Vec<String>)> {
    let Some(asked) = asked else { return Ok((vec![None], Vec::new())) };
    let mut notices = Vec::new();
    let mut states = vec![State::None];
    match asked {
        StateNames::These(names) => {
            for state in names {
                ring::check_state(*state).map_err(usage)?;
            }
            states.extend(names);
        }
        StateNames::All => {
            for state in State::ALL {
                match ring::check_state(*state) {
                    Ok(()) => states.push(*state),
                    Err(why) => notices.push(format!("left out: {why}")),
                }
            }
        }
    }
    states.sort();
    states.dedup();
    Ok((states.into_iter().map(Some).collect(), notices))
}
