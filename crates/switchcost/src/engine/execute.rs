//! A plan from its first case to its report: every experiment ends here.

use std::mem;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Result, bail};
use clap::Args;
use probe::assignment::Assignment;
use probe::competing::CompetitionWatcher;
use probe::placement;
use rundata::case::{Case, Sample};
use rundata::experiment::Experiment;
use rundata::machine::Machine;
use rundata::notice::Notice;
use rundata::plan::{Plan, Stopping};
use rundata::reading::Reading;
use rundata::run::{
    self, Failure, Header, ProgramBuild, RUN_SCHEMA, ResumedSession, Run, RunEnd, RunFileLine,
    StopReason,
};
use rundata::trial::command::{CommandSubject, CommandTrial};
use rundata::trial::{self, Trial};

use crate::base::failure::{Interrupted, say, usage};
use crate::base::secrets::{kept, kept_invocation, shown};
use crate::base::values::{
    TimeBudget, above_zero, budget, in_range, nanoseconds, seconds_in_words, share,
};
use crate::engine::interrupt::Interrupt;
use crate::engine::progress::{Progress, RowBuilder};
use crate::engine::schedule::{self, RoundRules, RunEvent, ScheduleOutcome};
use crate::engine::setting::{LocalHost, PlanWithNotices};
use crate::engine::store::{RunFile, RunStore, speed};
use crate::engine::workers::{WorkerError, Workers};
use crate::report::output::{Files, Output};

/// Measures a plan and stores it.
pub(crate) fn new_run(
    planned: PlanWithNotices,
    here: LocalHost,
    output: &Output,
) -> Result<RecordedRun> {
    check_cases(&planned)?;
    let progress = Progress::new(&planned.0, output.files.quiet);
    Ok(take(planned, here, &Interrupt::watch()?, progress, None, HeaderOptions::of(output)))
}

/// Reasons for an empty plan that are told.
const MOST_REASONS: usize = 3;

/// Refuses a plan without a case, as where each link was left out, with the reasons.
fn check_cases((plan, notices): &PlanWithNotices) -> Result<()> {
    if !plan.cases.is_empty() {
        return Ok(());
    }
    // Those of single cases follow those of the machine.
    let more = notices.len().saturating_sub(MOST_REASONS);
    let texts: Vec<&str> = notices[more..].iter().map(|notice| notice.text.as_str()).collect();
    let mut reasons = texts.join("; ");
    if more > 0 {
        reasons += &format!("; {more} more");
    }
    bail!("nothing of what was asked for can be measured here: {reasons}")
}

/// What a run's header says of it because somebody asked for it.
#[derive(Clone, Debug)]
pub(crate) struct HeaderOptions {
    /// The run's name.
    pub(crate) name: Option<String>,
    /// Whether to leave out what identifies the machine.
    pub(crate) anonymous: bool,
    /// Whether to keep all words of a command.
    pub(crate) store_command: bool,
    /// When the budget began to run, where what was done before the first case counts.
    pub(crate) since: Option<Instant>,
    /// Whether it is a quick measurement that `switchcost run` makes for itself.
    pub(crate) is_quick: bool,
}

impl HeaderOptions {
    pub(crate) fn of(output: &Output) -> Self {
        let Files { anonymous, store_command, .. } = output.files;
        Self { name: output.name.clone(), anonymous, store_command, since: None, is_quick: false }
    }

    /// The header of a run of its own.
    pub(crate) fn header(
        self,
        run: String,
        started: SystemTime,
        plan: Plan,
        machine: &Machine,
        notices: Vec<Notice>,
    ) -> Header {
        let (host, machine, invocation) = match self.anonymous {
            true => (None, anonymous(machine.clone()), Vec::new()),
            false => (Some(host()), machine.clone(), invocation(self.store_command)),
        };
        Header {
            schema: RUN_SCHEMA,
            run,
            started: seconds_in_words(started),
            invocation,
            name: self.name,
            host,
            build: build_info(),
            plan,
            machine,
            notices,
            is_quick: self.is_quick,
            session: None,
            launch: None,
        }
    }
}

/// The machine's name (uname(2)).
pub(crate) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// A machine without what identifies it.
pub(crate) fn anonymous(mut machine: Machine) -> Machine {
    let left_out = || Reading::unknown("left out (--anonymous)");
    machine.kernel.boot_id = left_out();
    machine.kernel.command_line = left_out();
    machine
}

/// Measures a plan and stores it, maybe as one of several launches.
pub(crate) fn take(
    (plan, notices): PlanWithNotices,
    here: LocalHost,
    interrupt: &Interrupt,
    progress: Progress,
    launch: Option<run::LaunchPosition>,
    about: HeaderOptions,
) -> RecordedRun {
    let started = SystemTime::now();
    let mut plan = speed::with_reference(plan, &here.machine);
    if let Some(since) = about.since {
        let passed = nanoseconds(since.elapsed());
        plan.stopping.budget_ns = plan.stopping.budget_ns.saturating_sub(passed).max(1);
    }
    let name = match &launch {
        None => run_name(plan.experiment, started),
        Some(launch) => format!("{}-{}", launch.set, launch.number),
    };
    let notices = [notices, move_controller(&plan, &here)].concat();
    let header = about.header(name, started, plan, &here.machine, notices);
    finish(RecordedRun::begin(Header { launch, ..header }, interrupt), &here, progress)
}

/// The command line: of a command that is measured its program and a hash, unless all of it is to
/// be stored.
pub(crate) fn invocation(store_command: bool) -> Vec<String> {
    let words = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned());
    let words: Vec<String> = words.collect();
    if store_command { words } else { kept_invocation(&words) }
}

/// The words of the commands that a plan has, the same in all cases.
fn commands(plan: &mut Plan) -> impl Iterator<Item = &mut Vec<String>> {
    plan.cases.iter_mut().filter_map(|case| match case {
        Case::Trial(case) => match &mut case.trial {
            Trial::Command(CommandTrial { subject: CommandSubject::Command(words), .. }) => {
                Some(words)
            }
            _ => None,
        },
        Case::Ring(_) => None,
    })
}

/// Takes the words out of what is stored and told, and where it is to be anonymous all that names
/// the command; gives the words.
fn take_words(header: &mut Header) -> Option<Vec<String>> {
    let is_anonymous = header.host.is_none();
    let plan = &mut header.plan;
    if is_anonymous {
        for case in &mut plan.cases {
            let Case::Trial(case) = case else { continue };
            if let Trial::Command(command) = &mut case.trial {
                command.executable = None;
            }
        }
    }
    let stored = |words: &[String]| if is_anonymous { shown(words, true) } else { kept(words) };
    commands(plan).map(|words| mem::replace(words, stored(words))).last()
}

/// A run that is measured, and its file.
pub(crate) struct RecordedRun {
    pub(crate) run: Run,
    /// None where it is not stored, or not as a whole.
    file: Option<RunFile>,
    pub(crate) interrupt: Interrupt,
    /// Those of the command that the plan has, which are in no file.
    words: Option<Vec<String>>,
}

impl RecordedRun {
    /// Makes the file; without one measuring continues.
    pub(crate) fn begin(mut header: Header, interrupt: &Interrupt) -> Self {
        let words = take_words(&mut header);
        let file = RunStore::of_user().and_then(|folder| RunFile::create(&folder.path, &header));
        let file = file.inspect_err(|error| {
            say(&format!("error: the run is not stored: {error:#}; measuring continues"));
        });
        Self { run: Run::new(header), file: file.ok(), interrupt: interrupt.clone(), words }
    }

    /// Where all of it is stored.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        Some(self.file.as_ref()?.path.clone())
    }

    /// By it a script knows whether all was measured and stored, or who asked to stop.
    pub(crate) fn exit_code(&self) -> ExitCode {
        self.interrupt.exit_code().unwrap_or(u8::from(!self.is_whole())).into()
    }

    /// Adds to its file what it says in a few words.
    pub(crate) fn keep_result(&mut self, result: String) {
        let Some(file) = &mut self.file else { return };
        if let Err(error) = file.write(&RunFileLine::Result(result)) {
            say(&format!("error: the run is stored without its result: {error:#}"));
        }
    }

    /// Whether all cases were measured and all samples are stored.
    pub(crate) fn is_whole(&self) -> bool {
        let failed = self.run.end.as_ref().is_none_or(|end| end.reason == StopReason::Failed);
        self.file.is_some() && self.run.failures.is_empty() && !failed
    }
}

/// Takes samples of one case beforehand, for a plan that depends on them; they are not kept.
pub(crate) fn rehearse(assignment: &Assignment) -> Result<Vec<Sample>> {
    let interrupt = Interrupt::watch()?;
    let mut samples = Vec::new();
    let workers = Workers::new(interrupt.clone());
    let patience = assignment.patience(Duration::ZERO);
    match workers.launch(assignment, patience, &mut |sample| samples.push(sample)) {
        Err(WorkerError::Interrupted) => {
            Err(Interrupted(interrupt.exit_code().unwrap_or(128)).into())
        }
        Err(WorkerError::Case(error)) => Err(error.into()),
        Err(overdue @ WorkerError::Overdue(_)) => Err(overdue.into()),
        Ok(()) => Ok(samples),
    }
}

/// Goes on with a stored run.
pub(crate) fn resume(
    path: &Path,
    more: &ResumeArgs,
    quiet: bool,
    rows_of: RowBuilder,
) -> Result<RecordedRun> {
    let (mut file, mut run) = RunFile::reopen(path)?;
    if run.header.session.is_some() {
        return Err(usage(format!(
            "{} is one half of a session of two settings, which cannot be resumed alone (compare \
                --ab measures both again)",
            run.header.run
        )));
    }
    if commands(&mut run.header.plan).next().is_some() {
        return Err(usage(format!(
            "{} measures a command, whose words are not stored: measure it anew",
            run.header.run
        )));
    }
    more.check_preload(&run.header.plan)?;
    let here = LocalHost::detect()?;
    run.header.plan.cpus().into_iter().try_for_each(|cpu| here.check_cpu("the run", cpu))?;
    let spent_ns = run.spent_ns();
    let stopping = more.stopping(&run, spent_ns)?;
    let differences = run.header.machine.differences(&here.machine);
    let differences: Vec<String> = differences
        .iter()
        .map(|d| format!("{}: {} then, {} now", d.field, d.base, d.other))
        .collect();
    for difference in &differences {
        say(&format!("warning: the machine differs from the run's: {difference}"));
    }
    move_controller(&run.header.plan, &here);
    let at = seconds_in_words(SystemTime::now());
    let reference = Some(speed::known_now(&run));
    let resumed =
        RunFileLine::Resumed(ResumedSession { at, spent_ns, stopping, differences, reference });
    file.write(&resumed)?;
    run.push(resumed);
    let mut progress = Progress::new(&run.header.plan, quiet);
    progress.rows_of = (!run.header.plan.parts.is_empty()).then_some(rows_of);
    let taken = RecordedRun { run, file: Some(file), interrupt: Interrupt::watch()?, words: None };
    Ok(finish(taken, &here, progress))
}

/// What a resumed run may have beyond its own plan.
#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// More time than the run's own budget has left; a number is seconds, and with a + behind it
    /// that may be extended
    #[arg(long, aliases = ["seconds", "duration"], value_name = "TIME", value_parser = budget)]
    budget: Option<TimeBudget>,
    /// Another precision than the run's own
    #[arg(long, value_name = "SHARE", value_parser = share)]
    precision: Option<f64>,
    /// Rounds on top of those done, instead of the run's own limit
    #[arg(long, value_name = "COUNT", value_parser = above_zero::<u32>)]
    rounds: Option<u32>,
    /// A library that the run file names to be loaded into what is measured (LD_PRELOAD); may be
    /// given several times
    ///
    /// A run file is data: what it names is loaded only if it is named here too.
    #[arg(long, value_name = "LIBRARY")]
    preload: Vec<String>,
}

impl ResumeArgs {
    fn check_preload(&self, plan: &Plan) -> Result<()> {
        let library = |case: &trial::TrialCase| match &case.trial {
            Trial::Malloc { preload, .. } => preload.clone(),
            _ => None,
        };
        let mut libraries = plan.trials().filter_map(|(_, case)| library(case));
        let Some(library) = libraries.find(|library| !self.preload.contains(library)) else {
            return Ok(());
        };
        Err(usage(format!(
            "the run file names a library to be loaded into what is measured, '{library}': if \
             you trust it, resume with --preload {}",
            shell_words::quote(&library)
        )))
    }

    /// The stopping rule from here on, or what is missing for anything to be left to do.
    fn stopping(&self, run: &Run, spent_ns: u64) -> Result<Stopping> {
        let done = run.rounds();
        let own = run.header.plan.stopping.clone();
        let budget_ns = self.budget.map(|more| spent_ns.saturating_add(nanoseconds(more.time)));
        let stopping = Stopping {
            precision: self.precision.unwrap_or(own.precision),
            budget_ns: budget_ns.unwrap_or(own.budget_ns),
            fixed_budget: self.budget.map_or(own.fixed_budget, |more| !more.extends),
            rounds: self.rounds.map(|more| done.saturating_add(more)).or(own.rounds),
            ..own
        };
        if spent_ns >= stopping.budget_ns {
            return Err(usage(format!(
                "the run's budget of {} is spent: --budget gives it more",
                humantime::format_duration(Duration::from_nanos(stopping.budget_ns))
            )));
        }
        if stopping.rounds.is_some_and(|most| done >= most) {
            return Err(usage(format!("all {done} rounds are done: ask for more with --rounds")));
        }
        Ok(stopping)
    }
}

/// Names sort by time; the process id distinguishes two runs of one moment.
pub(crate) fn run_name(experiment: Experiment, started: SystemTime) -> String {
    let time = humantime::format_rfc3339_millis(in_range(started)).to_string();
    let time: String = time.chars().filter(|c| c.is_ascii_alphanumeric()).collect();
    format!("{time}-{experiment}-{}", std::process::id())
}

/// Moves this process with all its threads off the CPUs that are measured. Gives what was not
/// possible.
pub(crate) fn move_controller(plan: &Plan, here: &LocalHost) -> Vec<Notice> {
    let measured = plan.cpus();
    let mut notices = Vec::new();
    if here.allowed.iter().all(|cpu| measured.contains(cpu)) {
        notices.push(
            "the measured tasks may use every CPU of this program, which therefore wakes up on a \
                measured CPU for each sample. To keep one apart, measure on fewer (--placement, \
                --cpu) or allow one more (taskset, cpuset)"
                .into(),
        );
    }
    let away = placement::choose_for_controller(&here.allowed, &measured, &here.machine);
    if let Err(errno) = placement::pin_process(&away) {
        notices.push(
            format!("this program could not move off the CPUs that are measured: {errno}").into(),
        );
    }
    notices
}

/// Measures one run from where it is.
fn finish(taken: RecordedRun, here: &LocalHost, progress: Progress) -> RecordedRun {
    let mut plan = taken.run.header.plan.clone();
    if let Some(words) = &taken.words {
        commands(&mut plan).for_each(|of| of.clone_from(words));
    }
    let workers = [Workers::new(taken.interrupt.clone())];
    let mut course = RoundRules::of(&plan);
    if let Some(rows_of) = progress.rows_of.filter(|_| progress.is_seen()) {
        let empty = Run::new(taken.run.header.clone());
        course.rows = Some(Box::new(move |samples| {
            rows_of(&Run { samples: samples.to_vec(), ..empty.clone() })
        }));
    }
    let [taken] = measure([taken], workers, &plan, course, here, progress);
    speed::learn(&taken.run);
    taken
}

/// Measures `runs` by one schedule, each by its own workers. The cases of `plan` are those of all
/// runs, one after the other, each of as many.
pub(crate) fn measure<const N: usize>(
    runs: [RecordedRun; N],
    workers: [Workers; N],
    plan: &Plan,
    course: RoundRules<'_>,
    here: &LocalHost,
    progress: Progress,
) -> [RecordedRun; N] {
    let cases = plan.cases.len() / N;
    let mut recorder = Recorder {
        runs,
        plan,
        progress,
        tasks: CompetitionWatcher::begin(
            Path::new("/"),
            std::process::id(),
            &plan.cpus(),
            &here.machine,
        )
        .leave_out(&plan.subject_pids()),
    };
    // Only a run of its own is resumed.
    let first = &mut recorder.runs[0].run;
    let earlier = (std::mem::take(&mut first.samples), Duration::from_nanos(first.spent_ns()));
    let mut measured = Vec::new();
    let mut launch = |assignment: &Assignment, patience, sink: &mut dyn FnMut(Sample)| {
        let cpus = assignment.case.cpus();
        if cpus != measured {
            // This thread wakes up for each sample. A refusal was reported before the first worker.
            let away = placement::choose_for_controller(&here.allowed, &cpus, &here.machine);
            let _ = placement::pin(&away);
            measured = cpus;
        }
        workers[assignment.case_number / cases].launch(assignment, patience, sink)
    };
    let outcome =
        schedule::run(plan, course, earlier, &mut launch, &mut |event| recorder.note(event));
    recorder.end(outcome)
}

/// Adds samples and failures to their runs, each numbered as in its own plan.
pub(crate) fn fill(
    runs: &mut [&mut Run],
    samples: impl IntoIterator<Item = Sample>,
    failures: impl IntoIterator<Item = Failure>,
) {
    let cases = runs[0].header.plan.cases.len();
    for sample in samples {
        let case = sample.case();
        runs[case / cases].samples.push(sample.with_case(case % cases));
    }
    for failure in failures {
        let run = failure.case / cases;
        runs[run].failures.push(Failure { case: failure.case % cases, ..failure });
    }
}

/// Keeps every sample in the file of its run as it arrives, and shows how far they are.
struct Recorder<'a, const N: usize> {
    runs: [RecordedRun; N],
    plan: &'a Plan,
    progress: Progress,
    /// Who else runs on the CPUs that are measured.
    tasks: CompetitionWatcher,
}

impl<const N: usize> Recorder<'_, N> {
    fn note(&mut self, event: RunEvent<'_>) {
        let cases = self.plan.cases.len() / N;
        match event {
            RunEvent::Case(state) => self.progress.show(&state),
            RunEvent::Sample(sample) => {
                let (run, case) = (sample.case() / cases, sample.case() % cases);
                self.keep(run, &RunFileLine::Sample(sample.clone().with_case(case)));
            }
            RunEvent::Pause => {
                (0..N).for_each(|run| self.with_file(run, RunFile::sync));
                self.tasks.look_if_due();
            }
            RunEvent::Rows(rows) => self.progress.show_rows(rows),
            RunEvent::Failure(failure) => {
                let (run, case) = (failure.case / cases, failure.case % cases);
                let title = self.plan.title(failure.case);
                let session = self.runs[run].run.header.session.as_ref();
                let arm = session.map_or(String::new(), |of| format!("{}: ", of.arm.name()));
                self.progress.say(&format!("error: {arm}{title}: {}", failure.message));
                self.keep(run, &RunFileLine::Failure(Failure { case, ..failure.clone() }));
            }
        }
    }

    fn keep(&mut self, run: usize, line: &RunFileLine) {
        self.with_file(run, |file| file.write(line));
    }

    /// A file that cannot be written any more is given up with an error message; measuring goes on.
    fn with_file(&mut self, run: usize, act: impl FnOnce(&mut RunFile) -> Result<()>) {
        let Some(file) = &mut self.runs[run].file else { return };
        if let Err(error) = act(file) {
            self.progress.say(&format!(
                "error: the run is not stored any further: {error:#}; measuring continues"
            ));
            self.runs[run].file = None;
        }
    }

    fn end(mut self, outcome: ScheduleOutcome) -> [RecordedRun; N] {
        let ScheduleOutcome { samples, failures, reason, spent } = outcome;
        self.progress.end();
        fill(&mut self.runs.each_mut().map(|taken| &mut taken.run), samples, failures);
        let finished = seconds_in_words(SystemTime::now());
        let end = RunFileLine::End(RunEnd { reason, finished, spent_ns: nanoseconds(spent) });
        // All were measured in turn all the time: who ran beside one ran beside all.
        let lines = [RunFileLine::Company(Box::new(self.tasks.end())), end];
        for run in 0..N {
            for line in &lines {
                self.keep(run, line);
                self.runs[run].run.push(line.clone());
            }
            self.with_file(run, RunFile::sync);
        }
        self.runs
    }
}

/// Version, commit, profile and target of the running program.
pub(crate) fn build_info() -> ProgramBuild {
    let commit = env!("SWITCHCOST_COMMIT");
    ProgramBuild {
        version: env!("CARGO_PKG_VERSION").to_string(),
        commit: (!commit.is_empty()).then(|| commit.to_string()),
        profile: env!("SWITCHCOST_PROFILE").to_string(),
        target: env!("SWITCHCOST_TARGET").to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_without_a_case_is_refused_with_the_reasons() {
        let text = include_str!("../../../rundata/tests/fixtures/run-v1.jsonl");
        let mut plan = Run::parse(text).expect("a run file").header.plan;
        assert!(check_cases(&(plan.clone(), Vec::new())).is_ok());
        plan.cases.clear();
        let notices =
            ["a", "b", "c", "d", "e"].map(|name| Notice::from(format!("left out: {name}")));
        let refused = check_cases(&(plan, notices.to_vec())).expect_err("no case");
        let told = "nothing of what was asked for can be measured here: left out: c; left out: d; \
                    left out: e; 2 more";
        assert_eq!(refused.to_string(), told);
    }

    #[test]
    fn more_time_is_kept_unless_it_may_be_extended() {
        let text = include_str!("../../../rundata/tests/fixtures/run-v1.jsonl");
        let mut run = Run::parse(text).unwrap();
        for own in [false, true] {
            run.header.plan.stopping.fixed_budget = own;
            for (text, is_fixed) in [("5s", true), ("5s+", false)] {
                let more = ResumeArgs { budget: budget(text).ok(), ..none() };
                let stopping = more.stopping(&run, 0).unwrap();
                assert_eq!((stopping.fixed_budget, stopping.budget_ns), (is_fixed, 5_000_000_000));
            }
            assert_eq!(none().stopping(&run, 0).unwrap().fixed_budget, own);
        }
    }

    fn none() -> ResumeArgs {
        ResumeArgs { budget: None, precision: None, rounds: Some(1), preload: Vec::new() }
    }
}
