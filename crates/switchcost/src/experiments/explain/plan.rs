//! `switchcost explain`, from what was typed to a plan: rings that differ in one thing.

use analysis::explain::{EVENTFD, MANY, PIPE, YIELD};
use anyhow::Result;
use probe::{placement, ring};
use rundata::case::Case;
use rundata::experiment::Experiment;
use rundata::notice::Notice;
use rundata::placement::Placement;
use rundata::plan::Batching;
use rundata::ring as rings;
use rundata::ring::{Burden, MemberKind, Policy, RegisterState, RingCase};
use rundata::trial::loops::GETUID;
use rundata::trial::wakeup::{DEFAULT_SLACK_NS, Wakeup};
use rundata::trial::{Trial, TrialBatching, TrialCase};

use super::ExplainArgs;
use crate::engine::policies::{Contention, take_policy};
use crate::engine::setting::{LocalHost, PlanWithNotices, pair};

/// Calls of a round that do nothing but enter and leave the kernel.
const CALLS: u32 = 10_000;
/// Wake-ups of each sleeper in a round: its median is enough.
const WAKES: u32 = 60;
/// Mean time from one wake-up to the next.
const WAKE_PERIOD_NS: u64 = 500_000;

/// Burdens on a ring on one CPU.
const ONE_CPU_BURDENS: [Burden; 6] = [
    Burden::Seccomp,
    Burden::Ibpb,
    Burden::PerfEvent,
    Burden::Cgroup1,
    Burden::Cgroup4,
    Burden::Cgroup8,
];
/// Burdens on a ring whose members have a CPU each.
const TWO_CPU_BURDENS: [Burden; 2] = [Burden::Awake, Burden::Busy];

/// Plans the rings and trials, with a notice on each part that is not there or not granted, and how
/// to get it.
pub(crate) fn plan(args: &ExplainArgs, here: &LocalHost) -> Result<PlanWithNotices> {
    ring::sweep_groups();
    let load = here.current_load();
    let cpu = here.cpu(args.common.cpu, &load)?;
    let mut notices = Vec::new();
    let what = "the rings and calls";
    let policy = take_policy(args.policy, cpu, what, &load, here, &mut notices)?;
    let whole = RingCase { kind: args.kind, policy, ..pair(Placement::Same { cpu }) };
    let mut cases = chain(&whole);
    if threadclock::time_stamp_ordered().is_some() {
        let call = Trial::Loop { call: GETUID.to_string() };
        cases.push(trial(call, cpu, policy));
    } else {
        notices.push(Notice::part_not_measured(
            "system calls",
            "system calls: this CPU has no time-stamp counter that a program may read",
        ));
    }
    if !args.parts_only {
        let is_busy = Contention::on_cpu(cpu, &load, here) != Contention::Free;
        let (added, not_measured) = added(&whole, here, is_busy, args.common.effort.seed);
        cases.extend(added);
        notices.extend(not_measured);
    }
    let batching = Batching {
        // One sample a worker: such costs scatter from worker to worker.
        ring: rings::RingBatching { samples_per_round: 1, ..rings::RingBatching::default() },
        trial: TrialBatching { trials: CALLS },
    };
    Ok((args.common.effort.plan(Experiment::Explain, cases, batching), notices))
}

fn trial(trial: Trial, cpu: u32, policy: Policy) -> Case {
    TrialCase { trial, cpu, policy }.into()
}

/// Builds the whole first, then the rings whose differences are its parts.
fn chain(whole: &RingCase) -> Vec<Case> {
    let mut rings = vec![whole.clone(), ring_by(PIPE, whole.kind, whole).solo()];
    for link in [YIELD, EVENTFD] {
        let threads = ring_by(link, MemberKind::Thread, whole);
        rings.extend([threads.solo(), threads]);
    }
    if whole.kind == MemberKind::Process {
        rings.push(ring_by(YIELD, MemberKind::Process, whole));
    }
    rings.into_iter().map(Case::Ring).collect()
}

/// Returns the ring with another link and kind of members.
fn ring_by(link: &str, kind: MemberKind, whole: &RingCase) -> RingCase {
    RingCase { link: link.to_string(), kind, ..whole.clone() }
}

/// Returns the cases of what would add to a switch, as far as it is available and granted, with a
/// notice on each part that is not.
fn added(whole: &RingCase, here: &LocalHost, is_busy: bool, seed: u64) -> (Vec<Case>, Vec<Notice>) {
    let mut rings = vec![ring_of_many(whole)];
    rings.extend(register_rings(whole));
    let mut missing = add_burdened(whole, &ONE_CPU_BURDENS, &mut rings);
    match ring_on_two_cpus(whole, here) {
        Ok(apart) => {
            rings.push(apart.clone());
            missing.extend(add_burdened(&apart, &TWO_CPU_BURDENS, &mut rings));
        }
        Err(why) => {
            let part = "waking on another CPU";
            missing.push(Notice::part_not_measured(part, format!("{part}: {why}")));
        }
    }
    let cpu = whole.placement.cpus()[0];
    let (sleepers, not_measured) = sleepers(whole, is_busy.then_some(cpu), seed);
    for notice in not_measured {
        if !missing.contains(&notice) {
            missing.push(notice);
        }
    }
    let mut cases: Vec<Case> = rings.into_iter().map(Case::Ring).collect();
    for sleeper in sleepers {
        cases.push(trial(Trial::Wakeup(sleeper), cpu, whole.policy));
    }
    (cases, missing)
}

/// Adds the ring with each burden that is granted to `rings`; returns a notice on each other one.
fn add_burdened(ring: &RingCase, burdens: &[Burden], rings: &mut Vec<RingCase>) -> Vec<Notice> {
    let mut missing = Vec::new();
    for burden in burdens {
        match check_burden(*burden, ring) {
            Ok(()) => rings.push(RingCase { burden: Some(*burden), ..ring.clone() }),
            Err(why) => missing.push(Notice::part_not_measured(burden.name(), why)),
        }
    }
    missing
}

/// Checks that a burden is granted to a ring; if not, says why, and whether another policy helps.
fn check_burden(burden: Burden, ring: &RingCase) -> Result<(), String> {
    let Err(why) = ring::check_burden(burden, ring) else { return Ok(()) };
    let normal = RingCase { policy: Policy::Other, ..ring.clone() };
    if ring.policy == Policy::Other || ring::check_burden(burden, &normal).is_err() {
        return Err(why);
    }
    Err(format!("{burden}: not granted under {}; --policy other measures it", ring.policy))
}

/// Builds a ring of a hundred threads of which one has the token, and all want the CPU.
fn ring_of_many(whole: &RingCase) -> RingCase {
    RingCase { members: MANY, ..ring_by(YIELD, MemberKind::Thread, whole) }
}

/// Builds rings that use each kind of registers that this CPU has, after one that uses none; each
/// behind its solo.
fn register_rings(whole: &RingCase) -> Vec<RingCase> {
    let mut states = vec![RegisterState::None];
    for state in
        [RegisterState::Sse, RegisterState::Avx, RegisterState::Avx512, RegisterState::Neon]
    {
        if ring::check_state(state).is_ok() {
            states.push(state);
        }
    }
    let mut rings = Vec::new();
    for state in states {
        let ring = RingCase { state: Some(state), ..whole.clone() };
        rings.extend([ring.solo(), ring]);
    }
    rings
}

/// Places the members on a CPU each; the error says why they cannot be. Under a real-time policy a
/// further CPU is left for this program.
fn ring_on_two_cpus(whole: &RingCase, here: &LocalHost) -> Result<RingCase, String> {
    let cpu = whole.placement.cpus()[0];
    let mut others = here.allowed.clone();
    others.retain(|allowed| *allowed != cpu);
    let other = placement::choose_one(&others, &here.machine)
        .ok_or("this program may use one CPU only (taskset, cpuset)")?;
    if whole.policy.is_realtime() && others.len() < 2 {
        let policy = whole.policy;
        return Err(format!(
            "under {policy} a third CPU is needed to watch from (--policy other does without)"
        ));
    }
    let placement = Placement::Pinned { cpus: vec![cpu, other], relation: None };
    Ok(RingCase { placement, ..whole.clone() })
}

/// Returns a sleeper with the least slack, one with that of applications, and one without idle
/// states; and a notice on each that is left out. A real-time sleeper has no slack, and the CPU `busy`,
/// which competing tasks use, is never idle.
fn sleepers(whole: &RingCase, busy: Option<u32>, seed: u64) -> (Vec<Wakeup>, Vec<Notice>) {
    let plain = Wakeup::plain(WAKES, WAKE_PERIOD_NS, seed);
    let by_default = Wakeup { timer_slack_ns: DEFAULT_SLACK_NS, ..plain };
    let awake = Wakeup { cpu_latency_us: Some(0), ..plain };
    let is_realtime = whole.policy.is_realtime();
    let mut missing = Vec::new();
    if is_realtime {
        let why =
            format!("timer slack: under {} a sleeper has none (--policy other)", whole.policy);
        missing.push(Notice::part_not_measured("timer slack", why));
    }
    let no_idle = match busy.filter(|_| is_realtime) {
        Some(cpu) => {
            let why = format!("leaving idle: other tasks use CPU {cpu}, which is never idle");
            Some(Notice::part_not_measured("leaving idle", why))
        }
        None => match check_burden(Burden::Awake, whole) {
            Ok(()) => None,
            Err(why) => Some(Notice::part_not_measured(Burden::Awake.name(), why)),
        },
    };
    let has_idle = no_idle.is_none();
    missing.extend(no_idle);
    let kept = match (is_realtime, has_idle) {
        (true, true) => vec![plain, awake],
        (true, false) => Vec::new(),
        (false, true) => vec![plain, by_default, awake],
        (false, false) => vec![plain, by_default],
    };
    (kept, missing)
}

#[cfg(test)]
mod tests {
    use rundata::notice::NoticeKind;

    use super::*;
    use crate::engine::policies::tests::here;

    fn under(policy: Policy) -> RingCase {
        RingCase { policy, ..pair(Placement::Same { cpu: 1 }) }
    }

    #[test]
    fn members_under_fifo_never_take_the_last_cpu() {
        let two = here(0.0, Ok(()));
        let three = LocalHost { allowed: vec![0, 1, 2], ..two.clone() };
        let alone = LocalHost { allowed: vec![1], ..two.clone() };
        let cpus = |policy, here: &LocalHost| {
            ring_on_two_cpus(&under(policy), here).map(|ring| ring.placement.cpus())
        };
        assert_eq!(cpus(Policy::Other, &two), Ok(vec![0, 1]));
        assert_eq!(cpus(Policy::Fifo, &three), Ok(vec![1, 2]));
        let why = cpus(Policy::Fifo, &two).expect_err("no CPU is left");
        assert!(why.contains("a third CPU"), "{why}");
        let why = cpus(Policy::Other, &alone).expect_err("one CPU");
        assert!(why.contains("one CPU only"), "{why}");
    }

    #[test]
    fn what_a_real_time_sleeper_cannot_show_is_left_out_with_the_reason() {
        let (kept, missing) = sleepers(&under(Policy::Fifo), Some(1), 7);
        assert_eq!(kept, []);
        let kinds: Vec<NoticeKind> = missing.iter().map(|notice| notice.kind.clone()).collect();
        let parts = ["timer slack", "leaving idle"];
        assert_eq!(kinds, parts.map(|part| NoticeKind::PartNotMeasured(part.to_string())));
    }

    #[test]
    fn every_ring_of_the_chain_has_the_policy_of_the_whole() {
        let rings = chain(&under(Policy::Fifo));
        assert!(
            rings.iter().all(|case| case.ring().is_some_and(|ring| ring.policy == Policy::Fifo))
        );
    }
}
