//! `compare --ab`: two settings measured in one session, interleaved round by round, as two runs
//! that know of each other. A setting is a command before the worker, which runs where that leaves
//! it, under the policy that it sets; with `--ab-setting` a value of a setting of the machine; with
//! `--ab-commands` what a command does to the machine.
//!
//! ```text
//! compare --ab '' 'chrt -f 10' --members 2
//!   look     a worker behind each prefix reports its CPUs and its policy
//!   plan     the same rings for both; those of B under fifo 10, as a worker sets the policy of its case
//!   measure  round 1: A2 B2 B1 A1, round 2: B1 A1 A2 B2, ...     (A1 and B1 one after the other)
//!   store    NAME-a, NAME-b, each with the name of the other
//! ```

mod experiment;

use std::path::Path;
#[cfg(feature = "programs")]
use std::process::ExitCode;
use std::time::SystemTime;

use analysis::comparison::{Comparison, ComparisonTerms};
use anyhow::{Context, Result, anyhow};
use probe::policy::{self, SchedulingState};
use probe::{THREAD_BYTES, room_for_thread};
use rundata::case::Case;
use rundata::machine::{CpuRelation, Machine};
use rundata::notice::Notice;
use rundata::plan::Plan;
use rundata::ring::{Flight, Policy, RegisterState, Work};
use rundata::run::{Arm, Header, Run, SessionHalf, StateCommand};

use crate::base::failure::{Interrupted, print_message, usage};
use crate::base::secrets::{kept_prefix, masked, shown};
use crate::engine::execute::{
    self, HeaderOptions, RecordedRun, distribute, move_controller, run_name,
};
use crate::engine::interrupt::Interrupt;
use crate::engine::machine_setting::SettingArm;
use crate::engine::machine_state::MachineState;
use crate::engine::progress::Progress;
use crate::engine::schedule::RoundRules;
use crate::engine::setting::{CurrentLoad, LocalHost};
use crate::engine::state_commands::CommandArm;
use crate::engine::store::speed::{known_speed, results_of};
use crate::engine::workers::{WorkerError, Workers};
#[cfg(feature = "programs")]
use crate::programs::run::{self, RunArgs};
use crate::report::output::OutputOptions;

pub(crate) use experiment::{SessionCommand, SessionExperiment};

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
        values: &'a [String; 2],
    },
    /// Commands, each of which brings the machine into a state.
    Commands(&'a [String; 2]),
}

impl TypedSettings<'_> {
    /// Returns the option that takes them.
    pub(crate) fn option(self) -> &'static str {
        match self {
            Self::Prefixes(_) => "--ab",
            Self::OfMachine { .. } => "--ab-setting",
            Self::Commands(_) => "--ab-commands",
        }
    }

    /// Starts the guard of both states of the machine; `None` for prefixes, which leave the machine
    /// as it is.
    fn begin_states(self, interrupt: &Interrupt) -> Result<Option<[MachineState; 2]>> {
        Ok(match self {
            Self::Prefixes(_) => None,
            Self::OfMachine { file, values } => {
                Some(SettingArm::begin_both(file, values)?.map(MachineState::Setting))
            }
            Self::Commands(commands) => {
                Some(CommandArm::begin_both(commands, interrupt)?.map(MachineState::Command))
            }
        })
    }
}

/// A session that was measured.
pub(crate) struct MeasuredSession {
    /// B against A.
    pub(crate) comparison: Comparison,
    pub(crate) halves: [RecordedRun; 2],
    /// Whether the setting of the machine is as it was.
    pub(crate) put_back: Result<()>,
}

/// Measures an experiment under both settings, stores both runs, compares B with A. `output` are the
/// options of the session.
///
/// # Errors
/// [`Interrupted`] where somebody asked to stop before the first round.
pub(crate) fn measure(
    settings: TypedSettings<'_>,
    experiment: SessionExperiment<'_>,
    output: &OutputOptions,
    terms: ComparisonTerms,
) -> Result<MeasuredSession> {
    let host = LocalHost::detect()?;
    let interrupt = Interrupt::watch()?;
    let planned = match settings {
        TypedSettings::Prefixes(prefixes) => plan_halves(prefixes, &interrupt, experiment, &host),
        TypedSettings::OfMachine { .. } | TypedSettings::Commands(_) => {
            plan_state_halves(settings, &interrupt, experiment, &host)
        }
    };
    if let Some(code) = interrupt.exit_code() {
        return Err(Interrupted(code).into());
    }
    let halves = planned?;
    let [a, b] = &halves;
    let both = Plan { cases: [&a.plan.cases[..], &b.plan.cases].concat(), ..a.plan.clone() };
    let started = SystemTime::now();
    let name = run_name(experiment.experiment(), started);
    let notices = move_controller(&both, &host);
    let options = experiment.header_options(output);
    let headers = halves.each_ref().map(|half| half.header(&name, started, &notices, &options));
    let empty_runs = headers.clone().map(Run::new);
    let rules = RoundRules {
        order: Box::new(|start| match settings {
            TypedSettings::Prefixes(_) => halves[0].plan.order_of_twins(start.round),
            TypedSettings::OfMachine { .. } | TypedSettings::Commands(_) => {
                halves[0].plan.order_of_halves(start.round)
            }
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
        match &half.state {
            Some(state) => workers.under(state.clone()),
            None => workers,
        }
    });
    let progress = Progress::new(&both, experiment.is_quiet(output));
    let runs = headers.map(|header| RecordedRun::begin(header, &interrupt));
    let runs = execute::measure_runs(runs, workers, &both, rules, &host, progress);
    let put_back = halves[0].state.as_ref().map_or(Ok(()), MachineState::finish);
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
    /// The state of the machine; absent where a prefix makes the difference.
    state: Option<MachineState>,
    /// The machine under this setting.
    machine: Machine,
    plan: Plan,
    notices: Vec<Notice>,
}

/// Plans both halves of the same cases under two states of the machine.
fn plan_state_halves(
    settings: TypedSettings<'_>,
    interrupt: &Interrupt,
    experiment: SessionExperiment<'_>,
    host: &LocalHost,
) -> Result<[PlannedHalf; 2]> {
    let option = settings.option();
    let workers = Workers::behind(interrupt.clone(), Vec::new(), host.allowed.clone());
    let scheduling = workers.look().map_err(|why| anyhow!("the worker {why}"))?;
    let unchanged = PrefixSetting { scheduling, sets_policy: false };
    let states = settings.begin_states(interrupt)?;
    let [a, b] = states.context("prefixes are no states of the machine")?;
    let shown = [a.shown(), b.shown()].join(" and ");
    // The CPU of both halves is chosen by the same load.
    let load = Some(host.current_load());
    let plan_half = |arm: Arm, state: MachineState| {
        state.establish()?;
        let host = LocalHost { load: load.clone(), ..LocalHost::detect()? };
        let half = PlannedHalf::plan(arm, Vec::new(), &unchanged, experiment, &host)?;
        Ok::<_, anyhow::Error>(PlannedHalf { state: Some(state), ..half })
    };
    let halves = [plan_half(Arm::A, a)?, plan_half(Arm::B, b)?];
    if compared_cases(&halves[0].plan) != compared_cases(&halves[1].plan) {
        return Err(usage(format!(
            "{option}: {shown} allow different cases: name some that both allow (--link, \
             --placement, --only)"
        )));
    }
    Ok(halves)
}

/// Plans both halves of the same rings.
fn plan_halves(
    prefixes: &[String],
    interrupt: &Interrupt,
    experiment: SessionExperiment<'_>,
    host: &LocalHost,
) -> Result<[PlannedHalf; 2]> {
    let [a, b] = prefixes else { return Err(usage("--ab: two prefixes are compared")) };
    let workers = Workers::behind(interrupt.clone(), Vec::new(), host.allowed.clone());
    let without_prefix = workers.look().map_err(|why| anyhow!("the worker {why}"))?;
    let looker = PrefixLooker { interrupt, host, without_prefix };
    let halves = [looker.plan(Arm::A, a, experiment)?, looker.plan(Arm::B, b, experiment)?];
    // Only the same rings can be compared round by round, whatever CPU and policy they have.
    if compared_cases(&halves[0].plan) != compared_cases(&halves[1].plan) {
        return Err(usage(
            "--ab: the two prefixes allow different rings: name rings that both allow (--link, \
                --placement)",
        ));
    }
    Ok(halves)
}

/// Measures a command under both states of the machine, as `run` does.
#[cfg(feature = "programs")]
pub(crate) fn run_in_turn(settings: TypedSettings<'_>, args: &RunArgs) -> Result<ExitCode> {
    run::check_in_turn(args)?;
    let interrupt = Interrupt::watch()?;
    let Some(states) = settings.begin_states(&interrupt)? else {
        return Err(usage(format!(
            "{}: `run` compares commands itself (--vs); behind -- it needs --ab-setting or \
             --ab-commands",
            settings.option()
        )));
    };
    let code = run::run_in_turn(args, &states, &interrupt);
    let code = match (code, interrupt.exit_code()) {
        (Err(_), Some(code)) => Err(Interrupted(code).into()),
        (code, _) => code,
    };
    match (code, states[0].finish()) {
        (Ok(code), finished) => finished.map(|()| code),
        (Err(cause), Ok(())) => Err(cause),
        (Err(cause), Err(error)) => {
            print_message(&format!("error: {error:#}"));
            Err(cause)
        }
    }
}

/// A case as it has to be in both halves.
#[derive(PartialEq)]
struct ComparedCase {
    /// What it is called; of a ring its members alone.
    title: String,
    ring: Option<ComparedRing>,
}

/// Settings of a ring that have to be the same in both halves.
#[derive(PartialEq)]
struct ComparedRing {
    link: String,
    state: Option<RegisterState>,
    flight: Option<Flight>,
    relation: Option<CpuRelation>,
    work: Option<Work>,
    rings: u32,
}

fn compared_cases(plan: &Plan) -> Vec<ComparedCase> {
    let mut cases = Vec::new();
    for case in &plan.cases {
        let ring = match case {
            Case::Trial(_) => None,
            Case::Ring(ring) => Some(ComparedRing {
                link: ring.link.clone(),
                state: ring.state,
                flight: ring.flight,
                relation: ring.placement.relation(),
                work: ring.work,
                rings: ring.rings(),
            }),
        };
        cases.push(ComparedCase { title: case.title(), ring });
    }
    cases
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
    fn plan(
        &self,
        arm: Arm,
        typed: &str,
        experiment: SessionExperiment<'_>,
    ) -> Result<PlannedHalf> {
        let shown_prefix = masked(&[typed.to_string()]).concat();
        let name = format!("--ab, prefix {} ('{shown_prefix}')", arm.name());
        let prefix = shell_words::split(typed).map_err(|error| {
            usage(format!("{name}: {error} (accepted: words as a shell splits them)"))
        })?;
        let setting = self.find_setting(&prefix).map_err(|why| usage(format!("{name}: {why}")))?;
        PlannedHalf::plan(arm, prefix, &setting, experiment, self.host).with_context(|| name)
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
    /// Plans the cases of a half. A worker places itself and takes the policy of its case, which
    /// would undo what the prefix did: so the cases have the policy of the prefix.
    fn plan(
        arm: Arm,
        prefix: Vec<String>,
        setting: &PrefixSetting,
        experiment: SessionExperiment<'_>,
        host: &LocalHost,
    ) -> Result<Self> {
        let scheduling = &setting.scheduling;
        let (allowed, machine) = (scheduling.cpus.clone(), host.machine.clone());
        let host = LocalHost { allowed, machine, load: None };
        // Both halves have the policy that their prefix leaves them, however busy the CPU is.
        let load = CurrentLoad { fifo: None, ..host.current_load() };
        let host = LocalHost { load: Some(load), ..host };
        let (mut plan, notices) = experiment.plan(&host)?;
        plan.reference = known_speed(&host.machine, &plan.cpus());
        if setting.sets_policy {
            let policy = checked_policy(scheduling, experiment)?;
            for case in &mut plan.cases {
                if let Case::Ring(ring) = case {
                    ring.policy = policy;
                    ring.priority = policy.is_realtime().then_some(scheduling.priority);
                }
            }
        }
        Ok(Self { arm, prefix, state: None, machine: host.machine, plan, notices })
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
        let (mut setting, mut command) = (None, None);
        match &self.state {
            Some(MachineState::Setting(arm)) => setting = Some(Box::new(arm.stored())),
            Some(state @ MachineState::Command(_)) => {
                let line = state.stored(options.anonymous, options.store_command);
                command = Some(Box::new(StateCommand { line }));
            }
            None => {}
        }
        let other = half_name(name, other);
        let session = SessionHalf { id, arm: self.arm, prefix, other, setting, command };
        let notices = [&self.notices[..], notices].concat();
        let given_name = options.name.as_ref().map(|given| half_name(given, self.arm));
        let options = HeaderOptions { name: given_name, ..options.clone() };
        let (run, plan) = (half_name(name, self.arm), self.plan.clone());
        let header = options.header(run, started, plan, &self.machine, notices);
        Header { session: Some(session), ..header }
    }
}

/// Returns the policy that a prefix has set, if rings can have it and no option contradicts it.
fn checked_policy(
    scheduling: &SchedulingState,
    experiment: SessionExperiment<'_>,
) -> Result<Policy> {
    let policy = scheduling.policy().ok_or_else(|| {
        usage(format!(
            "it sets policy {} (sched(7)), which members of a ring cannot have (accepted: other, \
             batch, fifo, rr)",
            scheduling.policy
        ))
    })?;
    match experiment.policy() {
        Some(asked) if asked != policy => Err(usage(format!(
            "it sets policy {policy}, and --policy {asked} would undo it (leave one of them out)"
        ))),
        _ => Ok(policy),
    }
}
