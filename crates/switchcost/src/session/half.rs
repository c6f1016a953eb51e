//! What is measured behind each prefix: where it leaves the worker, under the policy that it sets.

use std::time::SystemTime;

use anyhow::{Context, Result, anyhow};
use model::case::{Case, Policy};
use model::machine::Machine;
use model::plan::Plan;
use model::run::{Arm, Header, Run, SCHEMA, Session};
use probe::policy;
use probe::policy::Standing;

use super::{ARMS, Stored};
use crate::failure::usage;
use crate::interrupt::Interrupt;
use crate::launch::{Unseen, Workers};
use crate::ring::RingArgs;
use crate::setting::Here;
use crate::store::speed::known_speed;
use crate::{execute, ring};

/// One of the two settings.
pub(super) struct Half {
    arm: Arm,
    pub(super) words: Vec<String>,
    pub(super) plan: Plan,
    notices: Vec<String>,
}

/// Both, of the same rings.
pub(super) fn plan(
    prefixes: &[String],
    interrupt: &Interrupt,
    args: &RingArgs,
    here: &Here,
) -> Result<[Half; 2]> {
    let [a, b] = prefixes else { return Err(usage("--ab: two prefixes are compared")) };
    let workers = |words| Workers::behind(interrupt.clone(), words, here.allowed.clone());
    let own = workers(Vec::new()).look().map_err(|why| anyhow!("the worker {}", told(why)))?;
    let half = |arm: Arm, typed: &str| {
        let name = format!("--ab, prefix {} ('{typed}')", arm.name());
        let words = shell_words::split(typed).map_err(|error| {
            usage(format!("{name}: {error} (accepted: words as a shell splits them)"))
        })?;
        let seen = Seen::behind(&workers(words.clone()), &own)
            .map_err(|why| usage(format!("{name}: {}", told(why))))?;
        Half::plan(arm, words, &seen, args, &here.machine).with_context(|| name)
    };
    let halves = [half(ARMS[0], a)?, half(ARMS[1], b)?];
    are_alike(&halves[0].plan, &halves[1].plan)?;
    Ok(halves)
}

/// An interrupt is told by the exit code alone.
fn told(why: Unseen) -> String {
    match why {
        Unseen::Interrupted => "was interrupted".to_string(),
        Unseen::Refused(why) => why,
    }
}

/// As what a prefix starts a worker.
struct Seen {
    standing: Standing,
    /// The policy is the prefix's, not what it was itself started with.
    sets_policy: bool,
}

impl Seen {
    fn behind(workers: &Workers, own: &Standing) -> Result<Self, Unseen> {
        let standing = workers.look()?;
        let policy = |standing: &Standing| (standing.policy, standing.priority);
        let sets_policy = policy(&standing) != policy(own) || sets_own(workers, &standing)?;
        Ok(Self { standing, sets_policy })
    }
}

/// Whether a prefix sets the policy that its worker would have had anyway (`chrt -o 0`): then it has it
/// too when it is started under another.
fn sets_own(workers: &Workers, seen: &Standing) -> Result<bool, Unseen> {
    let other = match seen.policy() {
        Some(Policy::Batch) => Policy::Other,
        _ => Policy::Batch,
    };
    std::thread::scope(|scope| {
        // On a thread of its own: nothing has to be put back, for which there might be no permission.
        let look = scope.spawn(|| match policy::take(other) {
            Ok(()) => workers.look().map(|again| again.policy == seen.policy),
            // Where no policy may be taken, none was set.
            Err(_) => Ok(false),
        });
        look.join().unwrap_or(Ok(false))
    })
}

impl Half {
    /// A worker places itself and takes its case's policy, which would undo what the prefix did: so the
    /// cases have it.
    fn plan(
        arm: Arm,
        words: Vec<String>,
        seen: &Seen,
        args: &RingArgs,
        machine: &Machine,
    ) -> Result<Self> {
        let standing = &seen.standing;
        let here = Here { allowed: standing.cpus.clone(), machine: machine.clone() };
        let (mut plan, notices) = ring::plan::plan(args, &here)?;
        plan.reference = known_speed(machine, &plan.cpus());
        if seen.sets_policy {
            let policy = standing.policy().ok_or_else(|| {
                usage(format!(
                    "it sets policy {} (sched(7)), which members of a ring cannot have (accepted: \
                     other, batch, fifo, rr)",
                    standing.policy
                ))
            })?;
            if let Some(asked) = args.policy.filter(|asked| *asked != policy) {
                return Err(usage(format!(
                    "it sets policy {policy}, and --policy {asked} would undo it (leave one of them out)"
                )));
            }
            for case in &mut plan.cases {
                let Case::Ring(ring) = case else { continue };
                ring.policy = policy;
                ring.priority = policy.is_realtime().then_some(standing.priority);
            }
        }
        Ok(Self { arm, words, plan, notices })
    }

    pub(super) fn run(
        &self,
        name: &str,
        started: SystemTime,
        machine: &Machine,
        notices: &[String],
    ) -> Stored {
        let named = |arm: Arm| format!("{name}-{}", arm.name().to_lowercase());
        let other = if self.arm == Arm::A { Arm::B } else { Arm::A };
        let header = Header {
            schema: SCHEMA,
            run: named(self.arm),
            started: humantime::format_rfc3339_seconds(started).to_string(),
            invocation: std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect(),
            build: execute::build_info(),
            plan: self.plan.clone(),
            machine: machine.clone(),
            notices: [&self.notices[..], notices].concat(),
            session: Some(Session {
                id: name.to_string(),
                arm: self.arm,
                prefix: self.words.clone(),
                other: named(other),
            }),
            launch: None,
        };
        Stored { run: Run::new(header), file: None }
    }
}

/// Only the same rings can be compared round by round, whatever CPU and policy they have.
fn are_alike(a: &Plan, b: &Plan) -> Result<()> {
    let rings = |plan: &Plan| -> Vec<_> {
        plan.rings()
            .map(|(_, case)| {
                (case.members, case.link.clone(), case.state, case.placement.relation())
            })
            .collect()
    };
    match rings(a) == rings(b) {
        true => Ok(()),
        false => Err(usage(
            "--ab: behind one prefix other rings can be measured than behind the other: name those that \
             both can have (--link, --placement)",
        )),
    }
}
