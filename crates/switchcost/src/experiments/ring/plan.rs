//! `switchcost ring`, from what was typed to a plan.

use std::time::Duration;

use anyhow::{Context, Result};
use probe::ring;
use rundata::experiment::Experiment;
use rundata::notice::Notice;
use rundata::placement::Placement;
use rundata::plan;
use rundata::ring::{Policy, RegisterState, RingBatching, RingCase, Work};

use super::RingArgs;
use crate::base::failure::usage;
use crate::base::values::each_once;
use crate::engine::policies::Contention;
use crate::engine::setting::{CurrentLoad, LocalHost, PlacementArg, PlanWithNotices, pair};
use crate::experiments::{events, links};

/// What a member adds to the time of a ring: its start, its laps and its end.
const MEMBER: Duration = Duration::from_millis(1);

/// The plan of `switchcost ring`, and a note on each link that was left out.
pub(crate) fn plan(args: &RingArgs, here: &LocalHost) -> Result<PlanWithNotices> {
    let policy = args.policy.unwrap_or(Policy::Other);
    ring::check_policy(policy).with_context(|| format!("--policy {policy}"))?;
    let load = here.current_load();
    let placements = here.placements(&args.placement, load.choose_one(here))?;
    let (states, left_out_states) = choose_states(&args.state)?;
    let mut notices: Vec<Notice> = left_out_states.into_iter().map(Notice::from).collect();
    let one_cpu = placements.iter().find(|of| of.is_one_cpu());
    let also_fifo = match (args.policy, one_cpu) {
        (None, Some(placement)) => is_also_fifo(placement.cpus()[0], (&load, here), &mut notices),
        _ => false,
    };
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
    let case = |placement: &Placement| RingCase {
        kind: args.kind,
        work,
        policy,
        ..pair(placement.clone())
    };
    let (rings, left_out) = rings(&args.link, &placements.iter().map(case).collect::<Vec<_>>())?;
    notices.extend(left_out.into_iter().map(Notice::from));
    if args.placement == PlacementArg::Sweep && placements.len() < 2 {
        notices.push(
            "--placement sweep: this program may use one CPU only (see taskset -p $$ and the \
             control group's cpuset)"
                .to_string()
                .into(),
        );
    }
    let under_fifo =
        if also_fifo { rings.iter().filter(|ring| is_on_one_cpu(ring)).count() } else { 0 };
    let kinds = (rings.len() + under_fifo) * states.len();
    let (sizes, too_short) =
        args.effort.fitting(&args.members, kinds, kinds, |members| MEMBER * members);
    notices.extend(too_short);
    let cases = cases(&rings, &states, &sizes, also_fifo);
    let (events, not_counted) = events::choose(&args.events, one_cpu)?;
    notices.extend(not_counted.into_iter().map(Notice::from));
    let batching = RingBatching { laps: args.laps, events, ..RingBatching::default() };
    let plan = args.effort.plan(Experiment::Ring, cases, plan::Batching::of_rings(batching));
    Ok((plan.with_solos(), notices))
}

/// Builds the cases: each ring in each state and size, and under SCHED_FIFO those on one CPU again,
/// behind the others.
fn cases(
    rings: &[RingCase],
    states: &[Option<RegisterState>],
    sizes: &[u32],
    also_fifo: bool,
) -> Vec<RingCase> {
    let mut cases = Vec::new();
    for ring in rings {
        for state in states {
            let ring = RingCase { state: *state, ..ring.clone() };
            let sized = sizes.iter().map(|members| match members {
                // The solo ring of a sweep's pair is that of its first CPU: several may have the
                // same.
                1 => ring.solo(),
                _ => RingCase { members: *members, ..ring.clone() },
            });
            cases.extend(sized);
        }
    }
    if also_fifo {
        let beside = cases.iter().filter(|case| is_on_one_cpu(case)).cloned();
        let beside: Vec<RingCase> =
            beside.map(|case| RingCase { policy: Policy::Fifo, ..case }).collect();
        cases.extend(beside);
    }
    each_once(cases)
}

/// Whether rings are measured under SCHED_FIFO beside those of the normal policy, as other tasks use
/// their CPU. Adds a note of it, or of why not.
fn is_also_fifo(
    cpu: u32,
    (load, here): (&CurrentLoad, &LocalHost),
    notices: &mut Vec<Notice>,
) -> bool {
    match Contention::on_cpu(cpu, load, here) {
        Contention::Free => false,
        Contention::FifoGranted(busy) => {
            let busy = busy.in_words();
            notices.push(format!("{busy}: rings are measured under SCHED_FIFO, too").into());
            true
        }
        Contention::FifoRefused(_, why) => {
            notices.push(why.into());
            false
        }
    }
}

fn is_on_one_cpu(case: &RingCase) -> bool {
    case.placement.is_one_cpu()
}

/// The rings of two for each link in each placement, and a note on each that was left out. Links
/// are chosen for the first placement; which of them the others can do shows there.
fn rings(asked: &[String], placed: &[RingCase]) -> Result<(Vec<RingCase>, Vec<String>)> {
    let (first, others) = placed.split_first().context("no CPU is allowed")?;
    let (links, mut notices) = links::choose(asked, first)?;
    let mut rings = Vec::new();
    for link in links {
        let by_it = |case: &RingCase| RingCase { link: link.name.to_string(), ..case.clone() };
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
fn choose_states(asked: &[String]) -> Result<(Vec<Option<RegisterState>>, Vec<String>)> {
    // The list of names in the error ends in a bracket.
    let named = |name: &String| {
        let unknown = |why: String| usage(format!("--state {}", why.replace(')', ", or all)")));
        name.trim().parse::<RegisterState>().map_err(unknown)
    };
    let is_all = asked == [links::ALL];
    let asked = match is_all {
        _ if asked.is_empty() => return Ok((vec![None], Vec::new())),
        true => RegisterState::ALL.to_vec(),
        false => asked.iter().map(named).collect::<Result<_>>()?,
    };
    let (mut states, mut notices) = (vec![RegisterState::None], Vec::new());
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

#[cfg(test)]
mod tests {
    use rundata::plan::{Batching, Plan};
    use rustix::io::Errno;

    use super::*;
    use crate::engine::policies::tests::here;

    const OTHER: Policy = Policy::Other;
    const FIFO: Policy = Policy::Fifo;

    fn ring(placement: Placement) -> RingCase {
        pair(placement)
    }

    /// Members and policies of the rings of a plan, in order.
    fn planned(
        rings: &[RingCase],
        states: &[Option<RegisterState>],
        also_fifo: bool,
    ) -> Vec<(u32, Policy)> {
        let plan = Plan::from_cases(Experiment::Ring, cases(rings, states, &[2, 4], also_fifo));
        let plan = Plan { batching: Batching::default(), ..plan }.with_solos();
        plan.rings().map(|(_, case)| (case.members, case.policy)).collect()
    }

    #[test]
    fn under_fifo_each_ring_and_its_solo_is_measured_a_second_time() {
        let one_cpu = ring(Placement::Same { cpu: 1 });
        let both = [(1, OTHER), (1, FIFO), (2, OTHER), (4, OTHER), (2, FIFO), (4, FIFO)];
        assert_eq!(planned(std::slice::from_ref(&one_cpu), &[None], true), both);
        assert_eq!(
            planned(std::slice::from_ref(&one_cpu), &[None], false),
            [both[0], both[2], both[3]]
        );
        let by = |link: &str| RingCase { link: link.to_string(), ..one_cpu.clone() };
        let links = planned(&[by("pipe"), by("futex")], &[None], true);
        assert_eq!(links.iter().filter(|(_, policy)| *policy == FIFO).count(), 6);
        assert_eq!(links.len(), 12);
        let states =
            planned(&[one_cpu], &[Some(RegisterState::None), Some(RegisterState::Sse)], true);
        assert_eq!(states.iter().filter(|(_, policy)| *policy == FIFO).count(), 6);
    }

    #[test]
    fn rings_on_several_cpus_are_never_measured_under_fifo_too() {
        let pinned = ring(Placement::Pinned { cpus: vec![0, 1], relation: None });
        let rings = planned(&[pinned], &[None], true);
        assert!(rings.iter().all(|(_, policy)| *policy == OTHER), "{rings:?}");
    }

    #[test]
    fn that_fifo_is_measured_too_or_why_not_is_noted() {
        let noted = |share, fifo| {
            let (here, mut notices) = (here(share, fifo), Vec::new());
            let also = is_also_fifo(1, (&here.current_load(), &here), &mut notices);
            (also, notices.iter().map(Notice::to_string).collect::<String>())
        };
        let busy = "CPU 1 was busy when measuring began (38 %)";
        let too = format!("{busy}: rings are measured under SCHED_FIFO, too");
        assert_eq!(noted(0.38, Ok(())), (true, too));
        assert_eq!(noted(0.1, Ok(())), (false, String::new()));
        let (also, why) = noted(0.38, Err(Errno::PERM));
        assert!(!also && why.starts_with(busy) && why.contains("CAP_SYS_NICE"), "{why}");
    }
}
