//! A plan from its first case to its report: every experiment ends here.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::{Result, anyhow};
use model::experiment::Experiment;
use model::machine::Machine;
use model::plan::{Plan, Stopping};
use model::run::{self, Build, End, Failure, Header, Line, Resumed, Run, SCHEMA, StopReason};
use model::sample::Sample;
use probe::assignment::Assignment;
use probe::company::Watcher;
use probe::placement;

use crate::failure::{say, usage};
use crate::interrupt::Interrupt;
use crate::launch::{Away, Launch, LaunchError, Workers};
use crate::progress::Progress;
use crate::schedule::{Outcome, Schedule, State, Watch};
use crate::setting::{Here, Planned};
use crate::store::{Folder, RunFile, speed};

/// Measures a plan and stores it.
pub(crate) fn new_run(planned: Planned, here: Here, quiet: bool) -> Result<Taken> {
    let progress = Progress::new(&planned.0, quiet);
    Ok(take(planned, here, &Interrupt::watch()?, progress, None))
}

/// Measures a plan and stores it, maybe as one of several launches.
pub(crate) fn take(
    (plan, notices): Planned,
    Here { allowed, machine }: Here,
    interrupt: &Interrupt,
    progress: Progress,
    launch: Option<run::Launch>,
) -> Taken {
    let started = SystemTime::now();
    let plan = speed::with_reference(plan, &machine);
    let mut header = Header {
        schema: SCHEMA,
        run: match &launch {
            None => run_name(plan.experiment, started),
            Some(launch) => format!("{}-{}", launch.set, launch.number),
        },
        started: humantime::format_rfc3339_seconds(started).to_string(),
        invocation: std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect(),
        build: build_info(),
        plan,
        machine,
        notices,
        session: None,
        launch,
    };
    header.notices.extend(move_controller(&header.plan, &allowed, &header.machine));
    let (file, store_error) =
        split(Folder::of_user().and_then(|folder| RunFile::create(folder.path(), &header)));
    if let Some(error) = &store_error {
        say(&format!(
            "error: the run is not stored: {error:#}; it is measured and printed all the same"
        ));
    }
    let store = Store { file, lost: store_error.is_some() };
    finish(Run::new(header), allowed, store, interrupt, progress)
}

/// A run that has come to its end, and what became of it.
pub(crate) struct Taken {
    pub(crate) run: Run,
    /// Where it is stored.
    pub(crate) path: Option<PathBuf>,
    /// It is not stored, or not as a whole.
    lost: bool,
    interrupt: Interrupt,
}

impl Taken {
    /// By it a script knows whether all was measured and stored, or who asked to stop.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self.interrupt.exit_code() {
            Some(code) => ExitCode::from(code),
            None if self.is_whole() => ExitCode::SUCCESS,
            None => ExitCode::FAILURE,
        }
    }

    /// Whether all cases were measured and all samples are stored.
    pub(crate) fn is_whole(&self) -> bool {
        let failed = self.run.end.as_ref().is_none_or(|end| end.reason == StopReason::Failed);
        !self.lost && self.run.failures.is_empty() && !failed
    }
}

/// Takes samples of one case beforehand, for a plan that depends on them; they are not kept. Where
/// somebody asked to stop, the exit code that says so.
pub(crate) fn rehearse(assignment: &Assignment) -> Result<Result<Vec<Sample>, ExitCode>> {
    let interrupt = Interrupt::watch()?;
    let mut samples = Vec::new();
    let mut sink = |sample| samples.push(sample);
    match Workers::new(interrupt.clone()).launch(assignment, &mut sink) {
        Err(LaunchError::Interrupted) => {
            Ok(Err(ExitCode::from(interrupt.exit_code().unwrap_or(128))))
        }
        Err(LaunchError::Case { message, .. }) => Err(anyhow!(message)),
        Ok(()) => Ok(Ok(samples)),
    }
}

/// Goes on with a stored run.
pub(crate) fn resume(path: &Path, more: &More, quiet: bool) -> Result<Taken> {
    let (mut file, mut run) = RunFile::reopen(path)?;
    if run.header.session.is_some() {
        return Err(usage(format!(
            "{} is one half of a session that measured two settings: it cannot go on alone (compare --ab \
             measures both anew)",
            run.header.run
        )));
    }
    let here = Here::detect()?;
    run.header.plan.cpus().into_iter().try_for_each(|cpu| here.check_cpu("the run", cpu))?;
    let Here { allowed, machine } = here;
    let spent_ns = run.spent_ns();
    let stopping = more.stopping(&run, spent_ns)?;
    let differences: Vec<String> = run
        .header
        .machine
        .differences(&machine)
        .iter()
        .map(|d| format!("{}: {} then, {} now", d.field, d.base, d.other))
        .collect();
    for difference in &differences {
        say(&format!("warning: the machine differs from the run's: {difference}"));
    }
    move_controller(&run.header.plan, &allowed, &machine);
    let at = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let resumed = Line::Resumed(Resumed { at, spent_ns, stopping, differences });
    file.write(&resumed)?;
    run.push(resumed);
    let progress = Progress::new(&run.header.plan, quiet);
    let store = Store { file: Some(file), lost: false };
    Ok(finish(run, allowed, store, &Interrupt::watch()?, progress))
}

/// What a resumed run may have beyond its own plan.
pub(crate) struct More {
    /// Time on top of what is spent.
    pub(crate) budget: Option<Duration>,
    /// Another precision.
    pub(crate) precision: Option<f64>,
    /// Rounds on top of those done.
    pub(crate) rounds: Option<u32>,
}

impl More {
    /// The stopping rule from here on, or what is missing for anything to be left to do.
    fn stopping(&self, run: &Run, spent_ns: u64) -> Result<Stopping> {
        let mut stopping = run.header.plan.stopping.clone();
        stopping.precision = self.precision.unwrap_or(stopping.precision);
        if let Some(more) = self.budget {
            stopping.budget_ns = spent_ns.saturating_add(nanoseconds(more));
        }
        let done = run.rounds();
        if let Some(more) = self.rounds {
            stopping.rounds = Some(done.saturating_add(more));
        }
        if spent_ns >= stopping.budget_ns {
            return Err(usage(format!(
                "the run's budget of {} is spent: give it more with --budget",
                humantime::format_duration(Duration::from_nanos(stopping.budget_ns))
            )));
        }
        if stopping.rounds.is_some_and(|most| done >= most) {
            return Err(usage(format!("all {done} rounds are done: ask for more with --rounds")));
        }
        Ok(stopping)
    }
}

pub(crate) fn split<T>(result: Result<T>) -> (Option<T>, Option<anyhow::Error>) {
    match result {
        Ok(value) => (Some(value), None),
        Err(error) => (None, Some(error)),
    }
}

pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Names sort by time; the process id tells two runs of one moment apart.
pub(crate) fn run_name(experiment: Experiment, started: SystemTime) -> String {
    let time = humantime::format_rfc3339_millis(started).to_string();
    let time: String = time.chars().filter(|c| c.is_ascii_alphanumeric()).collect();
    format!("{time}-{experiment}-{}", std::process::id())
}

/// Moves this process with all its threads off the CPUs that are measured.
/// Gives what could not be had.
pub(crate) fn move_controller(plan: &Plan, allowed: &[u32], machine: &Machine) -> Vec<String> {
    let measured = plan.cpus();
    let mut notices = Vec::new();
    if allowed.iter().all(|cpu| measured.contains(cpu)) {
        notices.push(
            "what is measured may use every CPU that this program may, which wakes up there to take \
             each sample; for a CPU of its own measure on fewer (--placement, --cpu) or allow it one \
             more (taskset, cpuset)"
                .to_string(),
        );
    }
    let away = placement::for_controller(allowed, &measured, machine);
    if let Err(errno) = placement::pin_process(&away) {
        notices
            .push(format!("this program could not move off the CPUs that are measured: {errno}"));
    }
    notices
}

/// Measures, then writes the end.
fn finish(
    mut run: Run,
    allowed: Vec<u32>,
    store: Store,
    interrupt: &Interrupt,
    progress: Progress,
) -> Taken {
    let away = Away::new(allowed, run.header.machine.clone());
    let mut workers = Workers::with_way(interrupt.clone(), away);
    let plan = run.header.plan.clone();
    let company = company_of(&plan, &run.header.machine);
    let mut recorder = Recorder { store, progress, plan: &plan, company };
    let spent = Duration::from_nanos(run.spent_ns());
    let samples = std::mem::take(&mut run.samples);
    let schedule = Schedule::new(&plan, samples, spent, &mut workers, &mut recorder);
    let Outcome { samples, failures, reason, spent } = schedule.run();
    recorder.progress.end();
    run.samples = samples;
    run.failures = failures;
    let end = End {
        reason,
        finished: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        spent_ns: nanoseconds(spent),
    };
    let company = Line::Company(Box::new(recorder.company.end()));
    for line in [company, Line::End(end)] {
        recorder.keep(&line);
        run.push(line);
    }
    recorder.with_file(RunFile::sync);
    speed::learn(&run);
    let Store { file, lost } = recorder.store;
    let path = file.map(|file| file.path().to_path_buf());
    Taken { run, path, lost, interrupt: interrupt.clone() }
}

/// Looks for the first time who else runs on the CPUs of a plan.
pub(crate) fn company_of(plan: &Plan, machine: &Machine) -> Watcher {
    Watcher::begin(Path::new("/"), std::process::id(), &plan.cpus(), machine)
}

/// Where a run is kept.
struct Store {
    file: Option<RunFile>,
    /// Not all of it is kept.
    lost: bool,
}

/// Keeps every sample as it arrives, and shows how far the run is.
struct Recorder<'a> {
    store: Store,
    progress: Progress,
    plan: &'a Plan,
    company: Watcher,
}

impl Recorder<'_> {
    /// A file that cannot be written any more is given up with a word; measuring goes on.
    fn keep(&mut self, line: &Line) {
        self.with_file(|file| file.write(line));
    }

    fn with_file(&mut self, act: impl FnOnce(&mut RunFile) -> Result<()>) {
        let Some(file) = &mut self.store.file else { return };
        if let Err(error) = act(file) {
            self.progress.say(&format!(
                "error: the run is not stored any further: {error:#}; it is measured and printed all the same"
            ));
            self.store = Store { file: None, lost: true };
        }
    }
}

impl Watch for Recorder<'_> {
    fn case(&mut self, state: &State) {
        self.progress.show(state);
    }

    fn sample(&mut self, sample: &Sample) {
        self.keep(&Line::Sample(sample.clone()));
    }

    fn pause(&mut self) {
        self.with_file(RunFile::sync);
        self.company.look_if_due();
    }

    fn failure(&mut self, failure: &Failure) {
        let title = self.plan.cases[failure.case].title();
        self.progress.say(&format!("error: {title}: {}", failure.message));
        self.keep(&Line::Failure(failure.clone()));
    }
}

/// Version, commit, profile and target of the running program.
pub(crate) fn build_info() -> Build {
    let commit = env!("SWITCHCOST_COMMIT");
    Build {
        version: env!("CARGO_PKG_VERSION").to_string(),
        commit: (!commit.is_empty()).then(|| commit.to_string()),
        profile: env!("SWITCHCOST_PROFILE").to_string(),
        target: env!("SWITCHCOST_TARGET").to_string(),
    }
}
