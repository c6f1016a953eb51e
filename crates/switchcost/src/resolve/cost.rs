//! `switchcost cost`, from what was typed to a plan.

use anyhow::{Context, Result};
use model::case::{Case, Op, Policy, Walk, Work};
use model::cost::EXPERIMENT;
use model::machine::Machine;
use model::plan::{Batching, Plan};
use probe::{placement, policy, ring};

use super::{grid, setting};
use crate::cli::{ByteSizes, CostArgs, PlacementArg, Switch};
use crate::failure::usage;

/// Strides where none are asked for: in sequence, and the paper's.
const STRIDES: [u64; 2] = [8, 128];

/// The page of the TLB grid.
const PAGE_BYTES: u64 = 4096;

/// The link of the paper's programs.
const LINK: &str = "pipe";

/// The plan of `switchcost cost`, and what was granted of the augmented setting and what was not.
pub(crate) fn plan(
    args: &CostArgs,
    allowed: &[u32],
    machine: &Machine,
) -> Result<(Plan, Vec<String>)> {
    let quiet = placement::choose_quiet(allowed, machine);
    let placement = super::placement(&args.placement, quiet, allowed, machine)?;
    let mut notices: Vec<String> = chosen_cpu(args, quiet, machine).into_iter().collect();
    let (policy, priority) = take_policy(args, allowed, &mut notices)?;
    let (works, skipped) = works(args, quiet, machine)?;
    notices.extend(skipped);
    notices.extend(without_huge_pages(args, machine));
    let members: Vec<u32> = args.members.0.iter().copied().filter(|size| *size > 1).collect();
    let Some(largest) = members.iter().max() else {
        return Err(usage(
            "--members 1: the ring of one is measured beside others (accepted: 2 or more)",
        ));
    };
    let most = works.iter().map(|work| work.bytes).max().unwrap_or(0);
    super::check_memory(
        &format!("--array {most} in {largest} members"),
        u128::from(most) * u128::from(*largest),
        "smaller arrays or fewer --members",
        machine,
    )?;
    let case = |members: u32, work: Option<Work>| Case {
        members,
        kind: args.kind,
        link: LINK.to_string(),
        work,
        placement: placement.clone(),
        policy,
        priority,
    };
    let with_and_without = || std::iter::once(None).chain(works.iter().copied().map(Some));
    let grid = members.iter().flat_map(|m| with_and_without().map(|work| case(*m, work)));
    let plan = Plan {
        experiment: EXPERIMENT.to_string(),
        cases: grid.collect(),
        seed: args.effort.seed,
        // One sample a worker: what a working set costs scatters from worker to worker, so that the
        // time for a second sample is better spent on another round.
        batching: Batching { laps: args.laps, samples_per_round: 1, ..Batching::default() },
        stopping: super::stopping(&args.effort),
    };
    Ok((plan.with_solos(), notices))
}

/// All working sets, and a word on those that cannot be walked by some stride.
fn works(
    args: &CostArgs,
    cpu: Option<u32>,
    machine: &Machine,
) -> Result<(Vec<Work>, Option<String>)> {
    let asked = |list: &Option<ByteSizes>| list.as_ref().map(|list| list.0.clone());
    let (arrays, strides, walk) = match args.tlb {
        true => {
            let pages = || grid::pages().into_iter().map(|pages| pages * PAGE_BYTES).collect();
            (asked(&args.array).unwrap_or_else(pages), vec![PAGE_BYTES], Walk::Sparse)
        }
        false => {
            let arrays = || grid::arrays(machine, cpu, args.deep);
            let strides = asked(&args.stride).unwrap_or_else(|| STRIDES.to_vec());
            (asked(&args.array).unwrap_or_else(arrays), strides, Walk::Whole)
        }
    };
    let mut ops: Vec<Op> = Vec::new();
    for op in &args.op {
        if !ops.contains(op) {
            ops.push(*op);
        }
    }
    let (mut works, mut too_small) = (Vec::new(), Vec::new());
    for stride in strides {
        Work::check_stride(stride).map_err(usage)?;
        for bytes in &arrays {
            // Any stride fits an array that is as long: what is wrong then is the array.
            Work::new(*bytes, stride.min(*bytes).max(8), Op::Read)
                .map_err(|error| usage(error.to_string().replace("--work", "--array")))?;
            match Work::new(*bytes, stride, Op::Read) {
                Ok(work) => {
                    let with = |op: &Op| Work {
                        op: *op,
                        walk,
                        huge_pages: args.huge_pages == Switch::On,
                        ..work
                    };
                    works.extend(ops.iter().map(with));
                }
                Err(_) => too_small.push(format!("{bytes} by {stride}")),
            }
        }
    }
    if works.is_empty() {
        return Err(usage(format!(
            "--stride: larger than every array (--array): {}",
            too_small.join(", ")
        )));
    }
    let left_out = (!too_small.is_empty()).then(|| {
        format!("left out, as the stride is longer than the array: {}", too_small.join(", "))
    });
    Ok((works, left_out))
}

/// Why this CPU, where it was chosen here.
fn chosen_cpu(args: &CostArgs, quiet: Option<u32>, machine: &Machine) -> Option<String> {
    let cpu = quiet.filter(|_| args.placement == PlacementArg::Same)?;
    Some(setting::chosen_cpu(cpu, machine))
}

/// The policy and its priority, and a word on what was granted.
fn take_policy(
    args: &CostArgs,
    allowed: &[u32],
    notices: &mut Vec<String>,
) -> Result<(Policy, Option<u32>)> {
    // Where this program has no CPU of its own a real-time ring could keep it from being stopped.
    let alone = allowed.len() < 2;
    let asked = args.policy.unwrap_or(if alone { Policy::Other } else { Policy::Fifo });
    if alone && asked.is_realtime() {
        return Err(usage(format!(
            "--policy {asked}: this program may use one CPU only, and a real-time ring there could not be \
             watched (accepted here: other, batch)"
        )));
    }
    if alone && args.policy.is_none() {
        notices.push("not granted: SCHED_FIFO needs a second CPU to be watched from; the normal policy instead".to_string());
    }
    if !asked.is_realtime() {
        ring::check_policy(asked).with_context(|| format!("--policy {asked}"))?;
        return Ok((asked, None));
    }
    match policy::highest(asked) {
        Ok(priority) => {
            notices.push(setting::granted(asked, priority));
            Ok((asked, Some(priority)))
        }
        Err(errno) if args.policy.is_none() => {
            notices.push(setting::not_granted(asked, errno));
            Ok((Policy::Other, None))
        }
        Err(_) => {
            ring::check_policy(asked).with_context(|| format!("--policy {asked}"))?;
            Ok((asked, None))
        }
    }
}

/// Huge pages that were asked for and that this kernel does not give.
fn without_huge_pages(args: &CostArgs, machine: &Machine) -> Option<String> {
    let on = args.huge_pages == Switch::On;
    let why = match machine.memory.thp_enabled.known().map(String::as_str) {
        Some("always" | "madvise") => return None,
        Some(other) => format!("transparent huge pages are '{other}' here"),
        None => "this kernel does not say whether it has transparent huge pages".to_string(),
    };
    on.then(|| {
        format!("not granted: --huge-pages on: {why} (/sys/kernel/mm/transparent_hugepage/enabled)")
    })
}
