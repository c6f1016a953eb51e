//! `switchcost response`, from what was typed to a plan. One function a part.

use anyhow::{Context, Result};
use model::case::{Case as RingCase, Kind, Placement, Policy};
use model::plan::{self, Plan};
use model::response::{Batching, Case, NAME, Response};
use model::trial::loops::GETUID;
use model::trial::{Case as TrialCase, Repeats, Trial};
use probe::trial::{self, SIGNAL_LOOPS, SYSTEM_CALLS};

use super::clock::Here;
use super::links;
use crate::cli::{LinkNames, Part, ResponseArgs};
use crate::failure::usage;

/// Loops of each trial in a round: as many as the memorandum's programs made in all.
const LOOPS: u32 = 10_000;

/// A plan as it grows, part by part.
struct Parts {
    cpu: u32,
    cases: Vec<Case>,
    notices: Vec<String>,
}

/// The plan, and a word on everything that was left out.
pub(crate) fn plan(args: &ResponseArgs, here: &Here) -> Result<(Plan<Response>, Vec<String>)> {
    let cpu = here.cpu(args.place.cpu)?;
    let mut parts = Parts { cpu, cases: Vec::new(), notices: Vec::new() };
    for part in args.parts() {
        match part {
            Part::SystemCalls => parts.system_calls()?,
            Part::Signals => parts.signals(),
            Part::Links => parts.links()?,
        }
    }
    let Parts { cases, notices, .. } = parts;
    if cases.is_empty() {
        return Err(usage(format!(
            "--only: nothing of it can be had here: {}",
            notices.join("; ")
        )));
    }
    let plan = Plan {
        experiment: NAME.to_string(),
        cases,
        seed: args.effort.seed,
        batching: Batching {
            // One sample a worker: such costs scatter from worker to worker.
            ring: plan::Batching { samples_per_round: 1, ..plan::Batching::default() },
            trial: Repeats { trials: LOOPS },
        },
        stopping: super::stopping(&args.effort),
    };
    Ok((plan, notices))
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
                    self.notices.push(format!("{} is not to be had here: {why}", call.name))
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
        let ring = |members: u32, link: &str| RingCase {
            members,
            kind: Kind::Process,
            link: link.to_string(),
            work: None,
            placement: Placement::Same { cpu: self.cpu },
            policy: Policy::Other,
            priority: None,
        };
        let (links, notices) = links::choose(&LinkNames::All, &ring(2, ""))?;
        let pair = |link: &str| [1, 2].map(|members| Case::Ring(ring(members, link)));
        let cases: Vec<Case> = links.iter().flat_map(|link| pair(link.name)).collect();
        self.cases.extend(cases);
        self.notices.extend(notices);
        Ok(())
    }
}
