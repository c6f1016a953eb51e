//! `switchcost response`, from what was typed to a plan. One function a part.

use anyhow::{Context, Result};
use clap::ValueEnum;
use model::case::Case;
use model::experiment::Experiment;
use model::plan::Batching;
use model::ring as rings;
use model::ring::{Case as RingCase, Placement, Policy};
use model::trial::loops::GETUID;
use model::trial::wakeup::{Load, Wakeup};
use model::trial::{Case as TrialCase, Repeats, Trial};
use probe::trial::{self, SIGNAL_LOOPS, SYSTEM_CALLS};
use probe::{policy, ring};

use super::{Part, ResponseArgs};
use crate::failure::usage;
use crate::links::{self, LinkNames};
use crate::setting::{Here, Planned, pair};

/// Loops of each trial in a round: as many as the memorandum's programs made in all.
const LOOPS: u32 = 10_000;
/// For how long a round watches for gaps: many ticks, and a few turns of a neighbour.
const GAPS_NS: u64 = 250_000_000;
/// Wakes of a round: in ten rounds enough for the 99.9th percentile.
const WAKES: u32 = 400;
/// From wake to wake on average.
const WAKE_PERIOD_NS: u64 = 500_000;
/// The least that there is: what is late is then the kernel's doing.
const TIMER_SLACK_NS: u64 = 1;

/// A plan as it grows, part by part.
struct Parts {
    cpu: u32,
    cases: Vec<Case>,
    notices: Vec<String>,
}

/// The plan, and a word on everything that was left out.
pub(crate) fn plan(args: &ResponseArgs, here: &Here) -> Result<Planned> {
    let cpu = here.cpu(args.place.cpu)?;
    if args.busy_policy != Policy::Other && !args.parts().contains(&Part::Interrupts) {
        return Err(usage(format!(
            "--busy-policy {}: nothing is busy without the part interrupts (--only)",
            args.busy_policy
        )));
    }
    let mut parts = Parts { cpu, cases: Vec::new(), notices: Vec::new() };
    let has_counter = threadclock::time_stamp_ordered().is_some();
    for part in args.parts() {
        if !has_counter && matches!(part, Part::SystemCalls | Part::Signals | Part::Interrupts) {
            parts.notices.push(format!(
                "{} cannot be measured here: this CPU has no time-stamp counter that a program may read",
                part.to_possible_value().map_or(String::new(), |part| part.get_name().to_string())
            ));
            continue;
        }
        match part {
            Part::SystemCalls => parts.system_calls()?,
            Part::Signals => parts.signals(),
            Part::Links => parts.links()?,
            Part::Interrupts => parts.interrupts(args.busy_policy, here)?,
            Part::Wakeup => parts.wakeup(args.effort.seed, here),
        }
    }
    let Parts { cases, notices, .. } = parts;
    if cases.is_empty() {
        let why = notices.join("; ");
        return Err(usage(format!("--only: nothing of it is available here: {why}")));
    }
    let batching = Batching {
        // One sample a worker: such costs scatter from worker to worker.
        ring: rings::Batching { samples_per_round: 1, ..rings::Batching::default() },
        trial: Repeats { trials: LOOPS },
    };
    Ok((args.effort.plan(Experiment::Response, cases, batching), notices))
}

impl Parts {
    fn trial(&mut self, trial: Trial) {
        let case = Case::Trial(TrialCase { trial, cpu: self.cpu, policy: Policy::Other });
        // Parts may need the same.
        if !self.cases.contains(&case) {
            self.cases.push(case);
        }
    }

    fn system_calls(&mut self) -> Result<()> {
        let calls = trial::available(SYSTEM_CALLS);
        for (call, why_not) in calls.context("cannot look which system calls there are")? {
            match why_not {
                None => self.trial(Trial::Loop { call: call.name.to_string() }),
                Some(why) => {
                    self.notices.push(format!("{} is not available here: {why}", call.name));
                }
            }
        }
        Ok(())
    }

    /// The memorandum's formulas need its system call too.
    fn signals(&mut self) {
        let loops = [GETUID].into_iter().chain(SIGNAL_LOOPS.iter().map(|call| call.name));
        loops.for_each(|call| self.trial(Trial::Loop { call: call.to_string() }));
        self.trial(Trial::TwoProcesses);
    }

    /// Two processes on one CPU by each link, and each one's solo.
    fn links(&mut self) -> Result<()> {
        let ring = |members: u32, link: &str| {
            let link = link.to_string();
            RingCase { members, link, ..pair(Placement::Same { cpu: self.cpu }) }
        };
        let (links, notices) = links::choose(&LinkNames::All, &ring(2, ""))?;
        let pair = |link: &str| [1, 2].map(|members| Case::Ring(ring(members, link)));
        let cases: Vec<Case> = links.iter().flat_map(|link| pair(link.name)).collect();
        self.cases.extend(cases);
        self.notices.extend(notices);
        Ok(())
    }

    /// A busy thread and what interrupts it.
    fn interrupts(&mut self, policy: Policy, here: &Here) -> Result<()> {
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
        let trial = Trial::Gaps { duration_ns: GAPS_NS };
        self.cases.push(Case::Trial(TrialCase { trial, cpu: self.cpu, policy }));
        Ok(())
    }

    /// A sleeper on an idle and on a busy CPU, under each policy that is granted.
    fn wakeup(&mut self, seed: u64, here: &Here) {
        let mut policies = vec![Policy::Other];
        match policy::check(Policy::Fifo) {
            _ if here.allowed.len() < 2 => self.notices.push(
                "wake-ups are measured under the normal policy only: a real-time sleeper needs a \
                 second CPU to be watched from (taskset, cpuset)"
                    .to_string(),
            ),
            Ok(()) => policies.insert(0, Policy::Fifo),
            Err(errno) => self.notices.push(format!(
                "wake-ups are measured under the normal policy only: fifo: {errno}; {}",
                policy::needs(Policy::Fifo)
            )),
        }
        let (wakes, period_ns, timer_slack_ns) = (WAKES, WAKE_PERIOD_NS, TIMER_SLACK_NS);
        for policy in policies {
            for load in [Load::Idle, Load::Busy] {
                let wakeup = Wakeup { load, wakes, period_ns, timer_slack_ns, seed };
                let case = TrialCase { trial: Trial::Wakeup(wakeup), cpu: self.cpu, policy };
                self.cases.push(case.into());
            }
        }
    }
}
