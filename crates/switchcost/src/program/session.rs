//! `compare --ab`: two settings measured in one session, interleaved round by round, as two runs
//! that know of each other. A setting is a command before the worker; the worker runs where that
//! leaves it, under the policy that it sets.

use std::time::SystemTime;

use analysis::comparison::{Comparison, ComparisonTerms};
use anyhow::{Context, Result, anyhow};
use probe::policy::{self, SchedulingState};
use probe::{THREAD_BYTES, room_for_thread};
use rundata::case::Case;
use rundata::experiment::Experiment;
use rundata::notice::Notice;
use rundata::plan::Plan;
use rundata::ring::Policy;
use rundata::run::{Arm, Header, Run, SessionHalf};

use crate::base::failure::{Interrupted, usage};
use crate::base::secrets::{kept_prefix, masked, shown};
use crate::engine::execute::{
    self, HeaderOptions, RecordedRun, distribute, move_controller, run_name,
};
use crate::engine::interrupt::Interrupt;
use crate::engine::progress::Progress;
use crate::engine::schedule::RoundRules;
use crate::engine::setting::{CurrentLoad, LocalHost};
use crate::engine::store::speed::{known_speed, results_of};
use crate::engine::workers::{WorkerError, Workers};
use crate::experiments::ring::{self, RingArgs};

const ARMS: [Arm; 2] = [Arm::A, Arm::B];

/// Measures the rings of `args` behind both prefixes, stores both runs, compares B with A.
/// [`Interrupted`] where somebody asked to stop before the first round.
pub(crate) fn measure(
    prefixes: &[String],
    args: &RingArgs,
    terms: ComparisonTerms,
) -> Result<(Comparison, [RecordedRun; 2])> {
    let here = LocalHost::detect()?;
    let interrupt = Interrupt::watch()?;
    let planned = plan(prefixes, &interrupt, args, &here);
    if let Some(code) = interrupt.exit_code() {
        return Err(Interrupted(code).into());
    }
    let halves = planned?;
    let [a, b] = &halves;
    let both = Plan { cases: [&a.plan.cases[..], &b.plan.cases].concat(), ..a.plan.clone() };
    let started = SystemTime::now();
    let name = run_name(Experiment::Ring, started);
    let notices = move_controller(&both, &here);
    let about = HeaderOptions::from_output(&args.output);
    let headers =
        halves.each_ref().map(|half| half.header(&name, started, &here, &notices, &about));
    let empty = headers.clone().map(Run::new);
    let rules = RoundRules {
        order: Box::new(|start| halves[0].plan.order_of_twins(start.round)),
        precision: Box::new(|samples, failures| {
            let mut runs = empty.clone();
            let failures = failures.iter().cloned();
            distribute(&mut runs.each_mut(), samples.iter().cloned(), failures);
            compare(runs.each_ref(), terms).worst_precision()
        }),
        // What is asked for is a ratio.
        estimate: Box::new(|_| None),
        ..RoundRules::for_plan(&both)
    };
    let workers = halves
        .each_ref()
        .map(|half| Workers::behind(interrupt.clone(), half.words.clone(), here.allowed.clone()));
    let progress = Progress::new(&both, args.output.files.quiet);
    let runs = headers.map(|header| RecordedRun::begin(header, &interrupt));
    let runs = execute::measure_runs(runs, workers, &both, rules, &here, progress);
    Ok((compare(runs.each_ref().map(|taken| &taken.run), terms), runs))
}

fn compare(runs: [&Run; 2], terms: ComparisonTerms) -> Comparison {
    let sides = results_of(&runs);
    Comparison::from_results(&sides[0], &sides[1], terms)
}

/// One of the two settings.
struct Half {
    arm: Arm,
    words: Vec<String>,
    plan: Plan,
    notices: Vec<Notice>,
}

/// Both, of the same rings.
fn plan(
    prefixes: &[String],
    interrupt: &Interrupt,
    args: &RingArgs,
    here: &LocalHost,
) -> Result<[Half; 2]> {
    let [a, b] = prefixes else { return Err(usage("--ab: two prefixes are compared")) };
    let workers = |words| Workers::behind(interrupt.clone(), words, here.allowed.clone());
    let own = workers(Vec::new()).look().map_err(|why| anyhow!("the worker {why}"))?;
    let half = |arm: Arm, typed: &str| {
        let name =
            format!("--ab, prefix {} ('{}')", arm.name(), masked(&[typed.to_string()]).concat());
        let words = shell_words::split(typed).map_err(|error| {
            usage(format!("{name}: {error} (accepted: words as a shell splits them)"))
        })?;
        let workers = workers(words.clone());
        let refused = |why| usage(format!("{name}: {why}"));
        let standing = workers.look().map_err(refused)?;
        let policy = |standing: &SchedulingState| (standing.policy, standing.priority);
        // Else the policy is what the prefix was itself started with.
        let sets_policy =
            policy(&standing) != policy(&own) || sets_own(&workers, &standing).map_err(refused)?;
        Half::plan(arm, words, (&standing, sets_policy), args, here).with_context(|| name)
    };
    let halves = [half(ARMS[0], a)?, half(ARMS[1], b)?];
    // Only the same rings can be compared round by round, whatever CPU and policy they have.
    let [a, b] = halves.each_ref().map(|half| {
        let rings = half.plan.rings().map(|(_, case)| {
            (case.members, case.link.clone(), case.state, case.placement.relation())
        });
        rings.collect::<Vec<_>>()
    });
    match a == b {
        true => Ok(halves),
        false => Err(usage(
            "--ab: the two prefixes allow different rings: name rings that both allow (--link, \
                --placement)",
        )),
    }
}

/// Whether a prefix sets the policy that its worker would have had anyway (`chrt -o 0`): then it
/// has it too when it is started under another.
fn sets_own(workers: &Workers, seen: &SchedulingState) -> Result<bool, WorkerError> {
    let other = match seen.policy() {
        Some(Policy::Batch) => Policy::Other,
        _ => Policy::Batch,
    };
    std::thread::scope(|scope| {
        // On a thread of its own: nothing has to be put back, for which there might be no
        // permission.
        let look = || match policy::take(other) {
            Ok(()) => workers.look().map(|again| again.policy == seen.policy),
            // Where no policy may be taken, none was set.
            Err(_) => Ok(false),
        };
        let builder = std::thread::Builder::new().stack_size(THREAD_BYTES);
        let thread = room_for_thread(THREAD_BYTES).and_then(|()| builder.spawn_scoped(scope, look));
        let none = |error| WorkerError::once(format!("no thread can be started: {error}"));
        thread.map_err(none)?.join().unwrap_or(Ok(false))
    })
}

/// A name with that of the half: `NAME-a`.
fn named_as(name: &str, arm: Arm) -> String {
    format!("{name}-{}", arm.name().to_lowercase())
}

impl Half {
    /// A worker places itself and takes its case's policy, which would undo what the prefix did: so
    /// the cases have it.
    fn plan(
        arm: Arm,
        words: Vec<String>,
        (standing, sets_policy): (&SchedulingState, bool),
        args: &RingArgs,
        LocalHost { machine, .. }: &LocalHost,
    ) -> Result<Self> {
        let here =
            LocalHost { allowed: standing.cpus.clone(), machine: machine.clone(), load: None };
        // Both halves have the policy that their prefix leaves them, however busy the CPU is.
        let load = CurrentLoad { fifo: None, ..here.current_load() };
        let here = LocalHost { load: Some(load), ..here };
        let (mut plan, notices) = ring::plan::plan(args, &here)?;
        plan.reference = known_speed(machine, &plan.cpus());
        if sets_policy {
            let policy = standing.policy().ok_or_else(|| {
                usage(format!(
                    "it sets policy {} (sched(7)), which members of a ring cannot have (accepted: \
                     other, batch, fifo, rr)",
                    standing.policy
                ))
            })?;
            if let Some(asked) = args.policy.filter(|asked| *asked != policy) {
                return Err(usage(format!(
                    "it sets policy {policy}, and --policy {asked} would undo it (leave one of \
                     them out)"
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

    fn header(
        &self,
        name: &str,
        started: SystemTime,
        here: &LocalHost,
        notices: &[Notice],
        about: &HeaderOptions,
    ) -> Header {
        let named = |arm: Arm| named_as(name, arm);
        let other = if self.arm == Arm::A { Arm::B } else { Arm::A };
        let session = SessionHalf {
            id: name.to_string(),
            arm: self.arm,
            prefix: match about.store_command {
                true => self.words.clone(),
                false => shown(&kept_prefix(&self.words), about.anonymous),
            },
            other: named(other),
        };
        let notices = [&self.notices[..], notices].concat();
        let given = about.name.as_ref().map(|given| named_as(given, self.arm));
        let about = HeaderOptions { name: given, ..about.clone() };
        let (run, plan) = (named(self.arm), self.plan.clone());
        let header = about.header(run, started, plan, &here.machine, notices);
        Header { session: Some(session), ..header }
    }
}
