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

use super::load::plan::plan_loads;
use super::{Part, ResponseArgs};
use crate::base::failure::usage;
use crate::base::values::each_once;
use crate::engine::policies;
use crate::engine::setting::{self, CurrentLoad, LocalHost, PlanWithNotices, pair};
use crate::experiments::clock::available;
use crate::experiments::links;

/// Loops of each trial in a round: as many as the memorandum's programs made in all.
const LOOPS: u32 = 10_000;
/// Time for which a round watches for gaps: many ticks, and a few turns of a competing task.
const GAPS_NS: u64 = 250_000_000;
/// Wake-ups of a round: in ten rounds enough for the 99.9th percentile.
const WAKES: u32 = 400;
/// Mean time from one wake-up to the next.
const WAKE_PERIOD_NS: u64 = 500_000;

/// Cases of a part of the experiment, and a note on everything of it that is left out.
#[derive(Default)]
struct PartPlan {
    cases: Vec<Case>,
    notices: Vec<Notice>,
}

impl PartPlan {
    /// Builds the plan of a part of which nothing is left out.
    fn complete(cases: Vec<Case>) -> Self {
        Self { cases, notices: Vec::new() }
    }

    fn add_sleepers(&mut self, sleepers: &[Wakeup], cpu: u32, policy: Policy) {
        for sleeper in sleepers {
            self.cases.push(trial(Trial::Wakeup(*sleeper), cpu, policy));
        }
    }
}

/// Plans the parts that are asked for, with a note on everything that is left out.
pub(crate) fn plan(args: &ResponseArgs, here: &LocalHost) -> Result<PlanWithNotices> {
    let load = here.current_load();
    let cpu = here.cpu(args.common.cpu, &load)?;
    if args.busy_policy != Policy::Other && !args.parts().contains(&Part::Interrupts) {
        return Err(usage(format!(
            "--busy-policy {}: only the part interrupts has a busy thread (--only)",
            args.busy_policy
        )));
    }
    if let (Some(option), false) = (args.load.first_given(), args.parts().contains(&Part::Load)) {
        return Err(usage(format!("{option}: only the part load has it (--only load)")));
    }
    let mut notices = Vec::new();
    let policy = take_policy(args, cpu, &load, here, &mut notices)?;
    let has_counter = threadclock::time_stamp_ordered().is_some();
    let mut cases = Vec::new();
    for part in args.parts() {
        if !has_counter && matches!(part, Part::SystemCalls | Part::Signals | Part::Interrupts) {
            notices.push(describe_no_counter(part));
            continue;
        }
        let planned = match part {
            Part::SystemCalls => plan_system_calls(cpu, policy)?,
            Part::Signals => PartPlan::complete(plan_signals(cpu, policy)),
            Part::Links => plan_links(cpu, policy)?,
            Part::Interrupts => {
                PartPlan::complete(vec![plan_busy_thread(cpu, args.busy_policy, here)?])
            }
            Part::Wakeup => plan_wakeups(cpu, args.common.effort.seed, here),
            Part::Load => {
                PartPlan::complete(plan_loads(&args.load, cpu, args.common.effort.seed, here)?)
            }
        };
        cases.extend(planned.cases);
        notices.extend(planned.notices);
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

fn describe_no_counter(part: Part) -> Notice {
    let value = part.to_possible_value();
    let name = value.as_ref().map_or("", |value| value.get_name());
    let why = "cannot be measured here: this CPU has no time-stamp counter that a program may read";
    format!("{name} {why}").into()
}

fn trial(trial: Trial, cpu: u32, policy: Policy) -> Case {
    TrialCase { trial, cpu, policy }.into()
}

/// Returns the policy of the parts that have none of their own: as asked for, or SCHED_FIFO where
/// the CPU is busy.
fn take_policy(
    args: &ResponseArgs,
    cpu: u32,
    load: &CurrentLoad,
    here: &LocalHost,
    notices: &mut Vec<Notice>,
) -> Result<Policy> {
    let mut names = Vec::new();
    for part in args.parts() {
        if part.takes_policy() {
            names.push(part.in_words());
        }
    }
    if !names.is_empty() {
        return policies::take_policy(args.policy, cpu, &names.join(", "), load, here, notices);
    }
    match args.policy {
        None | Some(Policy::Other) => Ok(Policy::Other),
        Some(asked) => Err(usage(format!(
            "--policy {asked}: interrupts, wakeup and load have policies of their own (--only; of the \
             busy thread of interrupts: --busy-policy)"
        ))),
    }
}

fn loop_case(call: &str, cpu: u32, policy: Policy) -> Case {
    trial(Trial::Loop { call: call.to_string() }, cpu, policy)
}

fn plan_system_calls(cpu: u32, policy: Policy) -> Result<PartPlan> {
    let (calls, notices) = available(SYSTEM_CALLS, |_| true)?;
    let cases = calls.iter().map(|call| loop_case(call, cpu, policy)).collect();
    Ok(PartPlan { cases, notices: Notice::from_texts(notices) })
}

/// Plans signals, and the system call that the memorandum's formulas need too.
fn plan_signals(cpu: u32, policy: Policy) -> Vec<Case> {
    let mut cases = vec![loop_case(GETUID, cpu, policy)];
    for call in SIGNAL_LOOPS {
        cases.push(loop_case(call.name, cpu, policy));
    }
    cases.push(trial(Trial::TwoProcesses, cpu, policy));
    cases
}

/// Plans two processes on one CPU for each link, and the solo of each.
fn plan_links(cpu: u32, policy: Policy) -> Result<PartPlan> {
    let pair = RingCase { policy, ..pair(Placement::Same { cpu }) };
    let (links, notices) = links::choose(&[links::ALL.to_string()], &pair)?;
    let mut cases = Vec::new();
    for link in links {
        for members in [1, 2] {
            let link = link.name.to_string();
            cases.push(Case::Ring(RingCase { members, link, ..pair.clone() }));
        }
    }
    Ok(PartPlan { cases, notices: Notice::from_texts(notices) })
}

/// Plans a busy thread, whose gaps show what interrupts it.
fn plan_busy_thread(cpu: u32, policy: Policy, here: &LocalHost) -> Result<Case> {
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

/// Plans a sleeper on an idle and on a busy CPU, under each policy that is granted. Under the
/// normal one there are two more, as far as idle states can be forbidden: with the timer slack that
/// applications have, and without idle states.
fn plan_wakeups(cpu: u32, seed: u64, here: &LocalHost) -> PartPlan {
    let mut plan = PartPlan::default();
    let plain = Wakeup::plain(WAKES, WAKE_PERIOD_NS, seed);
    let busy = Wakeup { load: WakeupLoad::Busy, ..plain };
    match why_no_fifo(here) {
        None => plan.add_sleepers(&[plain, busy], cpu, Policy::Fifo),
        Some(why) => {
            let text = format!("wake-ups are measured under SCHED_OTHER only: {why}");
            plan.notices.push(text.into());
        }
    }
    // A real-time sleeper has no slack.
    let by_default = Wakeup { timer_slack_ns: DEFAULT_SLACK_NS, ..plain };
    plan.add_sleepers(&[plain, busy, by_default], cpu, Policy::Other);
    // Tried, and given back at once.
    match LatencyBound::hold(0) {
        Ok(_) => {
            let awake = Wakeup { cpu_latency_us: Some(0), ..plain };
            plan.add_sleepers(&[awake], cpu, Policy::Other);
        }
        Err(error) => plan.notices.push(
            format!(
                "what leaving an idle state adds to a wake-up is not measured: {LATENCY_DEVICE}: \
                 {error} (run as root, or grant read and write access to the device)"
            )
            .into(),
        ),
    }
    plan
}

/// Returns why sleepers cannot be measured under SCHED_FIFO; `None` if they can.
fn why_no_fifo(here: &LocalHost) -> Option<String> {
    if here.allowed.len() < 2 {
        let why = "a real-time sleeper needs a second CPU to be watched from (taskset, cpuset)";
        return Some(why.to_string());
    }
    policy::check(Policy::Fifo).err().map(setting::describe_no_fifo)
}
