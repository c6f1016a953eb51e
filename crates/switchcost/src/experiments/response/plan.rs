//! `switchcost response`, from what was typed to a plan. One function a part.

use anyhow::{Context, Result};
use clap::ValueEnum;
use probe::idle::{LATENCY_DEVICE, LatencyBound};
use probe::trial::calls::{SIGNAL_LOOPS, SYSTEM_CALLS};
use probe::{policy, ring};
use rundata::case::Case;
use rundata::experiment::Experiment;
use rundata::notice::Notice;
use rundata::placement::Placement;
use rundata::plan::Batching;
use rundata::ring as rings;
use rundata::ring::{Policy, RingCase};
use rundata::trial::loops::GETUID;
use rundata::trial::wakeup::{DEFAULT_SLACK_NS, Wakeup, WakeupLoad};
use rundata::trial::{Trial, TrialBatching, TrialCase};

use super::{Part, ResponseArgs};
use crate::base::failure::usage;
use crate::base::values::each_once;
use crate::engine::policies;
use crate::engine::setting::{self, CurrentLoad, LocalHost, PlanWithNotices, pair};
use crate::experiments::clock::available;
use crate::experiments::links;

/// Loops of each trial in a round: as many as the memorandum's programs made in all.
const LOOPS: u32 = 10_000;
/// For how long a round watches for gaps: many ticks, and a few turns of a neighbour.
const GAPS_NS: u64 = 250_000_000;
/// Wakes of a round: in ten rounds enough for the 99.9th percentile.
const WAKES: u32 = 400;
/// From wake to wake on average.
const WAKE_PERIOD_NS: u64 = 500_000;

/// The cases of a part, and a note on everything of it that was left out.
type Planning = (Vec<Case>, Vec<Notice>);

/// The plan, and a note on everything that was left out.
pub(crate) fn plan(args: &ResponseArgs, here: &LocalHost) -> Result<PlanWithNotices> {
    let load = here.current_load();
    let cpu = here.cpu(args.common.cpu, &load)?;
    if args.busy_policy != Policy::Other && !args.parts().contains(&Part::Interrupts) {
        return Err(usage(format!(
            "--busy-policy {}: only the part interrupts has a busy thread (--only)",
            args.busy_policy
        )));
    }
    let (mut cases, mut notices): Planning = Default::default();
    let policy = take_policy(args, cpu, (&load, here), &mut notices)?;
    let has_counter = threadclock::time_stamp_ordered().is_some();
    for part in args.parts() {
        if !has_counter && matches!(part, Part::SystemCalls | Part::Signals | Part::Interrupts) {
            notices.push(
                format!(
                    "{} cannot be measured here: this CPU has no time-stamp counter that a program \
                 may read",
                    part.to_possible_value()
                        .map_or(String::new(), |part| part.get_name().to_string())
                )
                .into(),
            );
            continue;
        }
        let (of_part, left_out) = match part {
            Part::SystemCalls => system_calls(cpu, policy)?,
            Part::Signals => (signals(cpu, policy), Vec::new()),
            Part::Links => links_of(cpu, policy)?,
            Part::Interrupts => (vec![busy(cpu, args.busy_policy, here)?], Vec::new()),
            Part::Wakeup => wakeup(cpu, args.common.effort.seed, here),
        };
        cases.extend(of_part);
        notices.extend(left_out);
    }
    // Parts may need the same.
    let cases = each_once(cases);
    if cases.is_empty() {
        let reasons: Vec<&str> = notices.iter().map(|notice| notice.text.as_str()).collect();
        let why = reasons.join("; ");
        return Err(usage(format!("--only: nothing of it is available here: {why}")));
    }
    let batching = Batching {
        // One sample a worker: such costs scatter from worker to worker.
        ring: rings::RingBatching { samples_per_round: 1, ..rings::RingBatching::default() },
        trial: TrialBatching { trials: LOOPS },
    };
    Ok((args.common.effort.plan(Experiment::Response, cases, batching), notices))
}

fn trial(trial: Trial, cpu: u32, policy: Policy) -> Case {
    TrialCase { trial, cpu, policy }.into()
}

/// Returns the policy of the parts that have none of their own: as asked for, or SCHED_FIFO where
/// the CPU is busy.
fn take_policy(
    args: &ResponseArgs,
    cpu: u32,
    (load, here): (&CurrentLoad, &LocalHost),
    notices: &mut Vec<Notice>,
) -> Result<Policy> {
    let parts = args.parts().into_iter().filter(|part| part.takes_policy());
    let names: Vec<&str> = parts.map(Part::in_words).collect();
    match (names.is_empty(), args.policy) {
        (false, asked) => {
            let what = names.join(", ");
            policies::take_policy(asked, cpu, &what, load, here, notices)
        }
        (true, None | Some(Policy::Other)) => Ok(Policy::Other),
        (true, Some(asked)) => Err(usage(format!(
            "--policy {asked}: interrupts and wakeup have policies of their own (--only; of the \
             busy thread of interrupts: --busy-policy)"
        ))),
    }
}

fn of_loop(call: &str, cpu: u32, policy: Policy) -> Case {
    trial(Trial::Loop { call: call.to_string() }, cpu, policy)
}

fn system_calls(cpu: u32, policy: Policy) -> Result<Planning> {
    let (calls, notices) = available(SYSTEM_CALLS, |_| true)?;
    let notices = notices.into_iter().map(Notice::from).collect();
    Ok((calls.iter().map(|call| of_loop(call, cpu, policy)).collect(), notices))
}

/// The memorandum's formulas need its system call too.
fn signals(cpu: u32, policy: Policy) -> Vec<Case> {
    let loops = [GETUID].into_iter().chain(SIGNAL_LOOPS.iter().map(|call| call.name));
    let of_two = trial(Trial::TwoProcesses, cpu, policy);
    loops.map(|call| of_loop(call, cpu, policy)).chain([of_two]).collect()
}

/// Two processes on one CPU by each link, and each one's solo.
fn links_of(cpu: u32, policy: Policy) -> Result<Planning> {
    let ring = |members: u32, link: &str| RingCase {
        members,
        link: link.to_string(),
        policy,
        ..pair(Placement::Same { cpu })
    };
    let (links, notices) = links::choose(&[links::ALL.to_string()], &ring(2, ""))?;
    let both = |link: &str| [1, 2].map(|members| Case::Ring(ring(members, link)));
    let notices = notices.into_iter().map(Notice::from).collect();
    Ok((links.iter().flat_map(|link| both(link.name)).collect(), notices))
}

/// A busy thread and what interrupts it.
fn busy(cpu: u32, policy: Policy, here: &LocalHost) -> Result<Case> {
    if policy.is_realtime() && here.allowed.len() < 2 {
        return Err(usage(format!(
            "--busy-policy {policy}: this program may use one CPU only, and a real-time thread \
             that never waits could not be watched there (accepted here: other)"
        )));
    }
    if !matches!(policy, Policy::Other | Policy::Fifo) {
        return Err(usage(format!("--busy-policy {policy}: accepted are other and fifo")));
    }
    ring::check_policy(policy).with_context(|| format!("--busy-policy {policy}"))?;
    Ok(trial(Trial::Gaps { duration_ns: GAPS_NS }, cpu, policy))
}

/// A sleeper on an idle and on a busy CPU, under each policy that is granted; under the normal one
/// also with the timer slack that applications have, and without idle states where those can be
/// forbidden.
fn wakeup(cpu: u32, seed: u64, here: &LocalHost) -> Planning {
    let why = match here.allowed.len() < 2 {
        true => Some(
            "a real-time sleeper needs a second CPU to be watched from (taskset, cpuset)"
                .to_string(),
        ),
        false => policy::check(Policy::Fifo).err().map(setting::describe_no_fifo),
    };
    let policies: &[_] =
        if why.is_some() { &[Policy::Other] } else { &[Policy::Fifo, Policy::Other] };
    let refused = why.map(|why| format!("wake-ups are measured under SCHED_OTHER only: {why}"));
    // Tried, and given back at once.
    let bound = LatencyBound::hold(0).map(drop);
    let no_device = bound.as_ref().err().map(|error| {
        format!(
            "what leaving an idle state adds to a wake-up is not measured: {LATENCY_DEVICE}: \
             {error} (run as root, or grant read and write access to the device)"
        )
    });
    let plain = Wakeup::plain(WAKES, WAKE_PERIOD_NS, seed);
    let busy = Wakeup { load: WakeupLoad::Busy, ..plain };
    let by_default = Wakeup { timer_slack_ns: DEFAULT_SLACK_NS, ..plain };
    let awake = bound.is_ok().then_some(Wakeup { cpu_latency_us: Some(0), ..plain });
    let of = |policy: &Policy| {
        // A real-time sleeper has no slack.
        let others = (*policy == Policy::Other).then_some([Some(by_default), awake]);
        let sleepers = [plain, busy].into_iter().chain(others.into_iter().flatten().flatten());
        let cases = sleepers.map(|of| trial(Trial::Wakeup(of), cpu, *policy));
        cases.collect::<Vec<Case>>()
    };
    let notices = [refused, no_device].into_iter().flatten().map(Notice::from).collect();
    (policies.iter().flat_map(of).collect(), notices)
}
