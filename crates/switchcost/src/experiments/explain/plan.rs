//! `switchcost explain`, from what was typed to a plan: rings that differ in one thing.

use anyhow::Result;
use model::case::Case;
use model::experiment::Experiment;
use model::explain::{EVENTFD, MANY, PIPE, YIELD};
use model::placement::Placement;
use model::plan::Batching;
use model::ring as rings;
use model::ring::{Burden, Case as Ring, Kind, Policy, State};
use model::trial::loops::GETUID;
use model::trial::wakeup::{DEFAULT_SLACK_NS, Wakeup};
use model::trial::{Case as TrialCase, Repeats, Trial};
use probe::{placement, ring};

use super::ExplainArgs;
use crate::engine::setting::{Here, Planned, pair};

/// Calls of a round that does nothing but enter and leave the kernel.
const CALLS: u32 = 10_000;
/// Wakes of a round of each sleeper: its median is enough.
const WAKES: u32 = 60;
const WAKE_PERIOD_NS: u64 = 500_000;

/// Burdens on the CPU of the ring, and on a ring whose members have a CPU each.
const HERE: [Burden; 6] = [
    Burden::Seccomp,
    Burden::Ibpb,
    Burden::PerfEvent,
    Burden::Cgroup1,
    Burden::Cgroup4,
    Burden::Cgroup8,
];
const ELSEWHERE: [Burden; 2] = [Burden::Awake, Burden::Busy];

/// How the note begins on what is not measured here.
pub(super) const NOT_MEASURED: &str = "not measured: ";

/// The plan, and a note on each part that is not there or not granted, and how to get it.
pub(crate) fn plan(args: &ExplainArgs, here: &Here) -> Result<Planned> {
    ring::sweep_groups();
    let cpu = here.cpu(args.common.cpu)?;
    let whole = Ring { kind: args.kind, ..pair(Placement::Same { cpu }) };
    let (mut cases, mut notices) = (chain(&whole), Vec::new());
    if threadclock::time_stamp_ordered().is_some() {
        let call = Trial::Loop { call: GETUID.to_string() };
        cases.push(trial(call, cpu));
    } else {
        notices.push(format!(
            "{NOT_MEASURED}system calls: this CPU has no time-stamp counter that a program may \
             read"
        ));
    }
    if !args.parts_only {
        let (added, why_not) = added(&whole, here, args.common.effort.seed);
        cases.extend(added);
        notices.extend(why_not.into_iter().map(|why| format!("{NOT_MEASURED}{why}")));
    }
    let batching = Batching {
        // One sample a worker: such costs scatter from worker to worker.
        ring: rings::Batching { samples_per_round: 1, ..rings::Batching::default() },
        trial: Repeats { trials: CALLS },
    };
    Ok((args.common.effort.plan(Experiment::Explain, cases, batching), notices))
}

fn trial(trial: Trial, cpu: u32) -> Case {
    TrialCase { trial, cpu, policy: Policy::Other }.into()
}

/// The whole first, then the rings that its parts are differences of.
fn chain(whole: &Ring) -> Vec<Case> {
    let by = |link: &str, kind: Kind| Ring { link: link.to_string(), kind, ..whole.clone() };
    let mut all = vec![whole.clone(), by(PIPE, whole.kind).solo()];
    for link in [YIELD, EVENTFD] {
        let threads = by(link, Kind::Thread);
        all.extend([threads.solo(), threads]);
    }
    if whole.kind == Kind::Process {
        all.push(by(YIELD, Kind::Process));
    }
    all.into_iter().map(Case::Ring).collect()
}

/// What would add to a switch, as far as it is there and granted; and what is not, and why.
fn added(whole: &Ring, here: &Here, seed: u64) -> (Vec<Case>, Vec<String>) {
    let (mut all, mut missing) = (vec![many(whole)], Vec::new());
    all.extend(states(whole));
    let mut burdened = |of: Ring, burdens: &[Burden], all: &mut Vec<Ring>| {
        for burden in burdens {
            match ring::check_burden(*burden, &of) {
                Ok(()) => all.push(Ring { burden: Some(*burden), ..of.clone() }),
                Err(why) => missing.push(why),
            }
        }
    };
    burdened(whole.clone(), &HERE, &mut all);
    match other_cpu(whole, here) {
        Some(elsewhere) => {
            all.push(elsewhere.clone());
            burdened(elsewhere, &ELSEWHERE, &mut all);
        }
        None => missing.push(
            "waking on another CPU: this program may use one CPU only (taskset, cpuset)"
                .to_string(),
        ),
    }
    let is_granted = all.iter().any(|of| of.burden == Some(Burden::Awake));
    let cpu = whole.placement.cpus()[0];
    let sleepers = sleepers(seed, is_granted).into_iter().map(|of| trial(Trial::Wakeup(of), cpu));
    (all.into_iter().map(Case::Ring).chain(sleepers).collect(), missing)
}

/// A hundred threads of which one has the token, and all want the CPU.
fn many(whole: &Ring) -> Ring {
    Ring { link: YIELD.to_string(), kind: Kind::Thread, members: MANY, ..whole.clone() }
}

/// The registers that this CPU has, with the ring that uses none, and all their solos.
fn states(whole: &Ring) -> Vec<Ring> {
    let told = [State::Sse, State::Avx, State::Avx512, State::Neon];
    let there = told.into_iter().filter(|state| ring::check_state(*state).is_ok());
    let with = |state| {
        let ring = Ring { state: Some(state), ..whole.clone() };
        [ring.solo(), ring]
    };
    [State::None].into_iter().chain(there).flat_map(with).collect()
}

/// The members on a CPU each; none where there is one only.
fn other_cpu(whole: &Ring, here: &Here) -> Option<Ring> {
    let cpu = whole.placement.cpus()[0];
    let others: Vec<u32> = here.allowed.iter().copied().filter(|other| *other != cpu).collect();
    let other = placement::choose_one(&others, &here.machine)?;
    let placement = Placement::Pinned { cpus: vec![cpu, other], relation: None };
    Some(Ring { placement, ..whole.clone() })
}

/// A sleeper with the least slack, one with that of applications, and one without idle states.
fn sleepers(seed: u64, is_granted: bool) -> Vec<Wakeup> {
    let plain = Wakeup::plain(WAKES, WAKE_PERIOD_NS, seed);
    let by_default = Wakeup { timer_slack_ns: DEFAULT_SLACK_NS, ..plain };
    let awake = is_granted.then_some(Wakeup { cpu_latency_us: Some(0), ..plain });
    [plain, by_default].into_iter().chain(awake).collect()
}
