//! `compare --ab`: two settings measured in one session, interleaved round by round, as two runs
//! that know of each other. A setting is a command before the worker, which runs where that leaves
//! it, under the policy that it sets; or with `--ab-setting` a value of a setting of the machine.
//!
//! ```text
//! compare --ab '' 'chrt -f 10' --members 2
//!   look     a worker behind each prefix reports its CPUs and its policy
//!   plan     the same rings for both; those of B under fifo 10, as a worker sets the policy of its case
//!   measure  round 1: A2 B2 B1 A1, round 2: B1 A1 A2 B2, ...     (A1 and B1 one after the other)
//!   store    NAME-a, NAME-b, each with the name of the other
//! ```

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use analysis::comparison::{Comparison, ComparisonTerms};
use anyhow::{Context, Result, anyhow};
use probe::policy::{self, SchedulingState};
use probe::{THREAD_BYTES, room_for_thread};
use rundata::case::Case;
use rundata::experiment::Experiment;
use rundata::machine::{CpuRelation, Machine};
use rundata::notice::Notice;
use rundata::plan::Plan;
use rundata::ring::{Policy, RegisterState};
use rundata::run::{Arm, Header, Run, SessionHalf};

use crate::base::failure::{Interrupted, usage};
use crate::base::secrets::{kept_prefix, masked, shown};
use crate::engine::execute::{
    self, HeaderOptions, RecordedRun, distribute, move_controller, run_name,
};
use crate::engine::interrupt::Interrupt;
use crate::engine::machine_setting::{SettingArm, SettingSwitch};
use crate::engine::progress::Progress;
use crate::engine::schedule::RoundRules;
use crate::engine::setting::{CurrentLoad, LocalHost};
use crate::engine::store::speed::{known_speed, results_of};
use crate::engine::workers::{WorkerError, Workers};
use crate::experiments::ring::{self, RingArgs};

/// Both settings, as they were typed.
#[derive(Clone, Copy)]
pub(crate) enum TypedSettings<'a> {
    /// A command before the worker, for each.
    Prefixes(&'a [String]),
    /// Values of a setting of the machine.
    OfMachine {
        /// Its file.
        file: &'a Path,
        /// Both values.
        values: &'a [String],
    },
}

/// A session that was measured.
pub(crate) struct MeasuredSession {
    /// B against A.
    pub(crate) comparison: Comparison,
    pub(crate) halves: [RecordedRun; 2],
    /// Whether the setting of the machine is as it was.
    pub(crate) put_back: Result<()>,
}

/// Measures the rings of `args` under both settings, stores both runs, compares B with A.
///
/// # Errors
/// [`Interrupted`] where somebody asked to stop before the first round.
pub(crate) fn measure(
    settings: TypedSettings<'_>,
    args: &RingArgs,
    terms: ComparisonTerms,
) -> Result<MeasuredSession> {
    let host = LocalHost::detect()?;
    let interrupt = Interrupt::watch()?;
    let planned = match settings {
        TypedSettings::Prefixes(prefixes) => plan_halves(prefixes, &interrupt, args, &host),
        TypedSettings::OfMachine { file, values } => {
            plan_setting_halves(file, values, &interrupt, args, &host)
        }
    };
    if let Some(code) = interrupt.exit_code() {
        return Err(Interrupted(code).into());
    }
    let halves = planned?;
    let [a, b] = &halves;
    let both = Plan { cases: [&a.plan.cases[..], &b.plan.cases].concat(), ..a.plan.clone() };
    let started = SystemTime::now();
    let name = run_name(Experiment::Ring, started);
    let notices = move_controller(&both, &host);
    let options = HeaderOptions::from_output(&args.output);
    let headers = halves.each_ref().map(|half| half.header(&name, started, &notices, &options));
    let empty_runs = headers.clone().map(Run::new);
    let rules = RoundRules {
        order: Box::new(|start| match settings {
            TypedSettings::Prefixes(_) => halves[0].plan.order_of_twins(start.round),
            TypedSettings::OfMachine { .. } => halves[0].plan.order_of_halves(start.round),
        }),
        precision: Box::new(|samples, failures| {
            let mut runs = empty_runs.clone();
            let failures = failures.iter().cloned();
            distribute(&mut runs.each_mut(), samples.iter().cloned(), failures);
            compare(runs.each_ref(), terms).worst_precision()
        }),
        // What is asked for is a ratio: single costs are not shown while it is measured.
        estimate: Box::new(|_| None),
        ..RoundRules::for_plan(&both)
    };
    let workers = halves.each_ref().map(|half| {
        let prefix = half.prefix.clone();
        let workers = Workers::behind(interrupt.clone(), prefix, host.allowed.clone());
        match &half.setting {
            Some(setting) => workers.under(setting.clone()),
            None => workers,
        }
    });
    let progress = Progress::new(&both, args.output.files.quiet);
    let runs = headers.map(|header| RecordedRun::begin(header, &interrupt));
    let runs = execute::measure_runs(runs, workers, &both, rules, &host, progress);
    let put_back = halves[0].setting.as_ref().map_or(Ok(()), SettingArm::finish);
    let comparison = compare(runs.each_ref().map(|recorded| &recorded.run), terms);
    Ok(MeasuredSession { comparison, halves: runs, put_back })
}

fn compare(runs: [&Run; 2], terms: ComparisonTerms) -> Comparison {
    let sides = results_of(&runs);
    Comparison::from_results(&sides[0], &sides[1], terms)
}

/// A setting with the plan of its run.
struct PlannedHalf {
    arm: Arm,
    /// Words of the command before the worker.
    prefix: Vec<String>,
    /// The value of the setting of the machine; absent where a prefix makes the difference.
    setting: Option<SettingArm>,
    /// The machine under this setting.
    machine: Machine,
    plan: Plan,
    notices: Vec<Notice>,
}

/// Plans both halves of the same rings under two values of a setting of the machine.
fn plan_setting_halves(
    file: &Path,
    values: &[String],
    interrupt: &Interrupt,
    args: &RingArgs,
    host: &LocalHost,
) -> Result<[PlannedHalf; 2]> {
    let [a, b] = values else { return Err(usage("--ab-setting: two values are compared")) };
    let workers = Workers::behind(interrupt.clone(), Vec::new(), host.allowed.clone());
    let scheduling = workers.look().map_err(|why| anyhow!("the worker {why}"))?;
    let unchanged = PrefixSetting { scheduling, sets_policy: false };
    let switch = Arc::new(Mutex::new(SettingSwitch::begin(file, values)?));
    let plan_half = |arm: Arm, value: &String| {
        let setting = SettingArm { switch: switch.clone(), value: value.clone() };
        setting.establish()?;
        let host = LocalHost::detect()?;
        let half = PlannedHalf::plan(arm, Vec::new(), &unchanged, args, &host)?;
        Ok::<_, anyhow::Error>(PlannedHalf { setting: Some(setting), ..half })
    };
    let halves = [plan_half(Arm::A, a)?, plan_half(Arm::B, b)?];
    if compared_rings(&halves[0].plan) != compared_rings(&halves[1].plan) {
        return Err(usage(
            "--ab-setting: the two values allow different rings: name rings that both allow \
             (--link, --placement)",
        ));
    }
    Ok(halves)
}

/// Plans both halves of the same rings.
fn plan_halves(
    prefixes: &[String],
    interrupt: &Interrupt,
    args: &RingArgs,
    host: &LocalHost,
) -> Result<[PlannedHalf; 2]> {
    let [a, b] = prefixes else { return Err(usage("--ab: two prefixes are compared")) };
    let workers = Workers::behind(interrupt.clone(), Vec::new(), host.allowed.clone());
    let without_prefix = workers.look().map_err(|why| anyhow!("the worker {why}"))?;
    let looker = PrefixLooker { interrupt, host, without_prefix };
    let halves = [looker.plan(Arm::A, a, args)?, looker.plan(Arm::B, b, args)?];
    // Only the same rings can be compared round by round, whatever CPU and policy they have.
    if compared_rings(&halves[0].plan) != compared_rings(&halves[1].plan) {
        return Err(usage(
            "--ab: the two prefixes allow different rings: name rings that both allow (--link, \
                --placement)",
        ));
    }
    Ok(halves)
}

/// Settings of a ring that have to be the same in both halves.
#[derive(PartialEq)]
struct ComparedRing {
    members: u32,
    link: String,
    state: Option<RegisterState>,
    relation: Option<CpuRelation>,
}

fn compared_rings(plan: &Plan) -> Vec<ComparedRing> {
    let mut rings = Vec::new();
    for (_, case) in plan.rings() {
        rings.push(ComparedRing {
            members: case.members,
            link: case.link.clone(),
            state: case.state,
            relation: case.placement.relation(),
        });
    }
    rings
}

/// Finds out what a prefix does to a worker.
struct PrefixLooker<'a> {
    interrupt: &'a Interrupt,
    host: &'a LocalHost,
    /// Scheduling of a worker without a prefix.
    without_prefix: SchedulingState,
}

impl PrefixLooker<'_> {
    /// Plans the half of a prefix as it was typed.
    fn plan(&self, arm: Arm, typed: &str, args: &RingArgs) -> Result<PlannedHalf> {
        let shown_prefix = masked(&[typed.to_string()]).concat();
        let name = format!("--ab, prefix {} ('{shown_prefix}')", arm.name());
        let prefix = shell_words::split(typed).map_err(|error| {
            usage(format!("{name}: {error} (accepted: words as a shell splits them)"))
        })?;
        let setting = self.find_setting(&prefix).map_err(|why| usage(format!("{name}: {why}")))?;
        PlannedHalf::plan(arm, prefix, &setting, args, self.host).with_context(|| name)
    }

    fn find_setting(&self, prefix: &[String]) -> Result<PrefixSetting, WorkerError> {
        let (interrupt, allowed) = (self.interrupt.clone(), self.host.allowed.clone());
        let workers = Workers::behind(interrupt, prefix.to_vec(), allowed);
        let scheduling = workers.look()?;
        let has_other_policy = scheduling.policy != self.without_prefix.policy
            || scheduling.priority != self.without_prefix.priority;
        let sets_policy = has_other_policy || sets_same_policy(&workers, &scheduling)?;
        Ok(PrefixSetting { scheduling, sets_policy })
    }
}

/// Scheduling that a prefix leaves a worker with.
struct PrefixSetting {
    scheduling: SchedulingState,
    /// True where the prefix has set the policy; otherwise it is that with which it was started.
    sets_policy: bool,
}

/// Returns whether a prefix sets the policy that its worker would have had anyway (`chrt -o 0`): then
/// the worker has it, too, when the prefix is started under another.
fn sets_same_policy(workers: &Workers, seen: &SchedulingState) -> Result<bool, WorkerError> {
    let other = match seen.policy() {
        Some(Policy::Batch) => Policy::Other,
        _ => Policy::Batch,
    };
    std::thread::scope(|scope| {
        // A thread of its own takes the policy, so that it need not be put back, which might not be
        // permitted.
        let look = || match policy::take(other) {
            Ok(()) => workers.look().map(|again| again.policy == seen.policy),
            // A prefix cannot set a policy, either, where none may be taken.
            Err(_) => Ok(false),
        };
        let builder = std::thread::Builder::new().stack_size(THREAD_BYTES);
        let thread = room_for_thread(THREAD_BYTES).and_then(|()| builder.spawn_scoped(scope, look));
        let thread = thread
            .map_err(|error| WorkerError::once(format!("no thread can be started: {error}")))?;
        thread.join().unwrap_or(Ok(false))
    })
}

/// Returns a name with that of the half: `NAME-a`.
fn half_name(name: &str, arm: Arm) -> String {
    format!("{name}-{}", arm.name().to_lowercase())
}

impl PlannedHalf {
    /// Plans the rings of a half. A worker places itself and takes the policy of its case, which
    /// would undo what the prefix did: so the cases have the policy of the prefix.
    fn plan(
        arm: Arm,
        prefix: Vec<String>,
        setting: &PrefixSetting,
        args: &RingArgs,
        host: &LocalHost,
    ) -> Result<Self> {
        let scheduling = &setting.scheduling;
        let (allowed, machine) = (scheduling.cpus.clone(), host.machine.clone());
        let host = LocalHost { allowed, machine, load: None };
        // Both halves have the policy that their prefix leaves them, however busy the CPU is.
        let load = CurrentLoad { fifo: None, ..host.current_load() };
        let host = LocalHost { load: Some(load), ..host };
        let (mut plan, notices) = ring::plan::plan(args, &host)?;
        plan.reference = known_speed(&host.machine, &plan.cpus());
        if setting.sets_policy {
            let policy = checked_policy(scheduling, args)?;
            for case in &mut plan.cases {
                if let Case::Ring(ring) = case {
                    ring.policy = policy;
                    ring.priority = policy.is_realtime().then_some(scheduling.priority);
                }
            }
        }
        Ok(Self { arm, prefix, setting: None, machine: host.machine, plan, notices })
    }

    /// Returns the header of the half's run. `name` is that of the session, `notices` are those of
    /// both halves.
    fn header(
        &self,
        name: &str,
        started: SystemTime,
        notices: &[Notice],
        options: &HeaderOptions,
    ) -> Header {
        let other = if self.arm == Arm::A { Arm::B } else { Arm::A };
        let prefix = if options.store_command {
            self.prefix.clone()
        } else {
            shown(&kept_prefix(&self.prefix), options.anonymous)
        };
        let id = name.to_string();
        let setting = self.setting.as_ref().map(|arm| Box::new(arm.stored()));
        let other = half_name(name, other);
        let session = SessionHalf { id, arm: self.arm, prefix, other, setting };
        let notices = [&self.notices[..], notices].concat();
        let given_name = options.name.as_ref().map(|given| half_name(given, self.arm));
        let options = HeaderOptions { name: given_name, ..options.clone() };
        let (run, plan) = (half_name(name, self.arm), self.plan.clone());
        let header = options.header(run, started, plan, &self.machine, notices);
        Header { session: Some(session), ..header }
    }
}

/// Returns the policy that a prefix has set, if rings can have it and no option contradicts it.
fn checked_policy(scheduling: &SchedulingState, args: &RingArgs) -> Result<Policy> {
    let policy = scheduling.policy().ok_or_else(|| {
        usage(format!(
            "it sets policy {} (sched(7)), which members of a ring cannot have (accepted: other, \
             batch, fifo, rr)",
            scheduling.policy
        ))
    })?;
    match args.policy {
        Some(asked) if asked != policy => Err(usage(format!(
            "it sets policy {policy}, and --policy {asked} would undo it (leave one of them out)"
        ))),
        _ => Ok(policy),
    }
}
