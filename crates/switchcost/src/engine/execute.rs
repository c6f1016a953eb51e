//! A plan from its first case to its report: every experiment ends here.
//!
//! Several runs may be measured by one schedule, so that their cases share the same rounds: A and B
//! of `compare --ab`. Then the schedule's plan has the cases of all runs, one run after the other:
//!
//! ```text
//! run              A           B
//! its own cases    0   1   2   0   1   2
//! the schedule's   0   1   2   3   4   5      case 4 is case 1 of B
//! ```

use std::borrow::Cow;
use std::cell::RefCell;
use std::mem;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
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
    RunResult, SettingChange, StopReason,
};
use rundata::trial::Trial;
use rundata::trial::command::{CommandSubject, CommandTrial};

use crate::base::failure::{Interrupted, print_message, usage};
use crate::base::secrets::{kept, kept_invocation, shown};
use crate::base::values::{
    TimeBudget, above_zero, budget, in_range, nanoseconds, seconds_in_words, share,
};
use crate::engine::interrupt::Interrupt;
use crate::engine::progress::{Progress, RowBuilder};
use crate::engine::schedule::{self, EarlierSessions, RoundRules, RunEvent, ScheduleOutcome};
use crate::engine::setting::{LocalHost, PlanWithNotices};
use crate::engine::setting_watcher::SettingWatcher;
use crate::engine::store::{RunFile, RunStore, speed};
use crate::engine::workers::{WorkerError, Workers};
use crate::report::output::{FileOptions, OutputOptions};

/// Measures a plan and stores it.
pub(crate) fn new_run(
    planned: PlanWithNotices,
    host: LocalHost,
    output: &OutputOptions,
) -> Result<RecordedRun> {
    check_cases(&planned)?;
    let progress = Progress::new(&planned.0, output.files.quiet);
    let (interrupt, options) = (Interrupt::watch()?, HeaderOptions::from_output(output));
    Ok(measure_run(planned, host, &interrupt, progress, None, options))
}

/// Reasons for an empty plan that are told.
const MAX_REASONS: usize = 3;

/// Refuses a plan without a case, as where each link was left out, with the reasons.
fn check_cases((plan, notices): &PlanWithNotices) -> Result<()> {
    if !plan.cases.is_empty() {
        return Ok(());
    }
    // Notices on single cases follow those on the machine.
    let more = notices.len().saturating_sub(MAX_REASONS);
    let mut texts = Vec::new();
    for notice in &notices[more..] {
        texts.push(notice.text.as_str());
    }
    let mut reasons = texts.join("; ");
    if more > 0 {
        reasons += &format!("; {more} more");
    }
    bail!("nothing of what was asked for can be measured here: {reasons}")
}

/// The choices of the user, or of a caller, that a run's header records.
#[derive(Clone, Debug)]
pub(crate) struct HeaderOptions {
    /// The run's name.
    pub(crate) name: Option<String>,
    /// Leaves out what identifies the machine.
    pub(crate) anonymous: bool,
    /// Keeps all words of a command.
    pub(crate) store_command: bool,
    /// When the budget began to run, where what was done before the first case counts.
    pub(crate) since: Option<Instant>,
    /// Marks a quick measurement that `switchcost run` makes for itself.
    pub(crate) is_quick: bool,
}

impl HeaderOptions {
    /// Returns the options as typed.
    pub(crate) fn from_output(output: &OutputOptions) -> Self {
        let FileOptions { anonymous, store_command, .. } = output.files;
        Self { name: output.name.clone(), anonymous, store_command, since: None, is_quick: false }
    }

    /// Returns the header of a run that is no half of a session and no launch of several.
    pub(crate) fn header(
        self,
        run: String,
        started: SystemTime,
        plan: Plan,
        machine: &Machine,
        notices: Vec<Notice>,
    ) -> Header {
        let (host, machine, invocation) = if self.anonymous {
            (None, anonymous(machine.clone()), Vec::new())
        } else {
            (Some(host()), machine.clone(), invocation(self.store_command))
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

/// Returns the machine's name (uname(2)).
pub(crate) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Returns a machine without what identifies it.
pub(crate) fn anonymous(mut machine: Machine) -> Machine {
    machine.kernel.boot_id = Reading::unknown(LEFT_OUT);
    machine.kernel.command_line = Reading::unknown(LEFT_OUT);
    machine
}

/// The reason why an anonymous machine lacks a fact.
const LEFT_OUT: &str = "left out (--anonymous)";

/// Measures a plan and stores it, maybe as one of several launches.
pub(crate) fn measure_run(
    (plan, notices): PlanWithNotices,
    host: LocalHost,
    interrupt: &Interrupt,
    progress: Progress,
    launch: Option<run::LaunchPosition>,
    options: HeaderOptions,
) -> RecordedRun {
    let started = SystemTime::now();
    let mut plan = speed::with_reference(plan, &host.machine);
    if let Some(since) = options.since {
        let passed = nanoseconds(since.elapsed());
        plan.stopping.budget_ns = plan.stopping.budget_ns.saturating_sub(passed).max(1);
    }
    let name = match &launch {
        None => run_name(plan.experiment, started),
        Some(launch) => format!("{}-{}", launch.set, launch.number),
    };
    let notices = [notices, move_controller(&plan, &host)].concat();
    let header = options.header(name, started, plan, &host.machine, notices);
    finish(RecordedRun::begin(Header { launch, ..header }, interrupt), &host, progress)
}

/// Returns the command line: of a command that is measured its program and a hash, unless all of it
/// is to be stored.
pub(crate) fn invocation(store_command: bool) -> Vec<String> {
    let mut words = Vec::new();
    for word in std::env::args_os() {
        words.push(word.to_string_lossy().into_owned());
    }
    if store_command { words } else { kept_invocation(&words) }
}

/// Returns the words of the commands that a plan measures, which are the same in all cases.
fn command_words(plan: &mut Plan) -> Vec<&mut Vec<String>> {
    let mut found = Vec::new();
    for case in &mut plan.cases {
        let Case::Trial(case) = case else { continue };
        if let Trial::Command(CommandTrial { subject: CommandSubject::Command(words), .. }) =
            &mut case.trial
        {
            found.push(words);
        }
    }
    found
}

/// Takes a command's words out of what is stored and told, and for an anonymous run all that names
/// the command; returns the words.
fn take_words(header: &mut Header) -> Option<Vec<String>> {
    let is_anonymous = header.host.is_none();
    if is_anonymous {
        for case in &mut header.plan.cases {
            let Case::Trial(case) = case else { continue };
            if let Trial::Command(command) = &mut case.trial {
                command.executable = None;
            }
        }
    }
    let mut taken = None;
    for words in command_words(&mut header.plan) {
        let stored = if is_anonymous { shown(words, true) } else { kept(words) };
        taken = Some(mem::replace(words, stored));
    }
    taken
}

/// A run that is measured, and its file.
pub(crate) struct RecordedRun {
    pub(crate) run: Run,
    /// Absent where the run is not stored, or not completely.
    file: Option<RunFile>,
    pub(crate) interrupt: Interrupt,
    /// Words of the command that the plan measures, which are in no file.
    words: Option<Vec<String>>,
    /// The round in which an earlier session of the run was killed.
    killed_in: Option<u32>,
}

impl RecordedRun {
    /// Makes the file; without one measuring continues.
    pub(crate) fn begin(mut header: Header, interrupt: &Interrupt) -> Self {
        let words = take_words(&mut header);
        let file = RunStore::of_user().and_then(|store| RunFile::create(&store.path, &header));
        if let Err(error) = &file {
            print_message(&format!("error: the run is not stored: {error:#}; measuring continues"));
        }
        Self {
            run: Run::new(header),
            file: file.ok(),
            interrupt: interrupt.clone(),
            words,
            killed_in: None,
        }
    }

    /// Returns the file that has all of the run.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        Some(self.file.as_ref()?.path.clone())
    }

    /// Returns the code by which a script knows whether all was measured and stored, or which
    /// signal asked to stop.
    pub(crate) fn exit_code(&self) -> ExitCode {
        self.interrupt.exit_code().unwrap_or(u8::from(!self.is_complete())).into()
    }

    /// Adds to the file what the run says in a few words.
    pub(crate) fn keep_result(&mut self, result: RunResult) {
        let Some(file) = &mut self.file else { return };
        if let Err(error) = file.write(&RunFileLine::Result(result)) {
            print_message(&format!("error: the run is stored without its result: {error:#}"));
        }
    }

    /// Returns whether all cases were measured and all samples are stored.
    pub(crate) fn is_complete(&self) -> bool {
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
    match workers.measure(assignment, patience, &mut |sample| samples.push(sample)) {
        Err(WorkerError::Interrupted) => {
            Err(Interrupted(interrupt.exit_code().unwrap_or(128)).into())
        }
        Err(WorkerError::Case(error)) => Err(error.into()),
        Err(error @ (WorkerError::Overdue(_) | WorkerError::SettingLost(_))) => Err(error.into()),
        Ok(()) => Ok(samples),
    }
}

/// Goes on with a stored run.
pub(crate) fn resume(
    path: &Path,
    args: &ResumeArgs,
    quiet: bool,
    row_builder: RowBuilder,
) -> Result<RecordedRun> {
    let (mut file, mut run) = RunFile::reopen(path)?;
    let killed_in = if run.end.is_none() { run.rounds().checked_sub(1) } else { None };
    check_resumable(&mut run)?;
    args.check_preload(&run.header.plan)?;
    let host = LocalHost::detect()?;
    for cpu in run.header.plan.cpus() {
        host.check_cpu("the run", cpu)?;
    }
    let spent_ns = run.spent_ns();
    let stopping = args.stopping(&run, spent_ns)?;
    let mut differences = Vec::new();
    for difference in run.header.machine.differences(&host.machine) {
        let (field, base, other) = (difference.field, difference.base, difference.other);
        let difference = format!("{field}: {base} then, {other} now");
        print_message(&format!("warning: the machine differs from the run's: {difference}"));
        differences.push(difference);
    }
    move_controller(&run.header.plan, &host);
    let at = seconds_in_words(SystemTime::now());
    let reference = Some(speed::known_now(&run));
    let resumed =
        RunFileLine::Resumed(ResumedSession { at, spent_ns, stopping, differences, reference });
    file.write(&resumed)?;
    run.push(resumed);
    let mut progress = Progress::new(&run.header.plan, quiet);
    if !run.header.plan.parts.is_empty() {
        progress.row_builder = Some(row_builder);
    }
    let interrupt = Interrupt::watch()?;
    let recorded = RecordedRun { run, file: Some(file), interrupt, words: None, killed_in };
    Ok(finish(recorded, &host, progress))
}

/// Refuses a run that cannot be resumed: half of a session, a command, whose words are gone, and a
/// trace, whose time is over.
fn check_resumable(run: &mut Run) -> Result<()> {
    if run.header.plan.experiment == Experiment::Trace {
        return Err(usage(format!("{} is a trace: trace anew", run.header.run)));
    }
    if run.header.session.is_some() {
        return Err(usage(format!(
            "{} is one half of a session of two settings, which cannot be resumed alone (compare \
                --ab measures both again)",
            run.header.run
        )));
    }
    if !command_words(&mut run.header.plan).is_empty() {
        return Err(usage(format!(
            "{} measures a command, whose words are not stored: measure it anew",
            run.header.run
        )));
    }
    Ok(())
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
    /// Refuses to load a library that the run file names and the user does not.
    fn check_preload(&self, plan: &Plan) -> Result<()> {
        for (_, case) in plan.trials() {
            let Trial::Malloc { preload: Some(library), .. } = &case.trial else { continue };
            if !self.preload.contains(library) {
                return Err(usage(format!(
                    "the run file names a library to be loaded into what is measured, \
                     '{library}': if you trust it, resume with --preload {}",
                    shell_words::quote(library)
                )));
            }
        }
        Ok(())
    }

    /// Returns the stopping rule from here on; an error says what is missing for anything to be
    /// left to do.
    fn stopping(&self, run: &Run, spent_ns: u64) -> Result<Stopping> {
        let done = run.rounds();
        let mut stopping = run.header.plan.stopping.clone();
        if let Some(precision) = self.precision {
            stopping.precision = precision;
        }
        if let Some(budget) = self.budget {
            stopping.budget_ns = spent_ns.saturating_add(nanoseconds(budget.time));
            stopping.fixed_budget = !budget.extends;
        }
        if let Some(more) = self.rounds {
            stopping.rounds = Some(done.saturating_add(more));
        }
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

/// Returns the name of a run. Names sort by time; the process id distinguishes two runs of one
/// moment.
pub(crate) fn run_name(experiment: Experiment, started: SystemTime) -> String {
    let mut time = humantime::format_rfc3339_millis(in_range(started)).to_string();
    time.retain(|c| c.is_ascii_alphanumeric());
    format!("{time}-{experiment}-{}", std::process::id())
}

/// Moves this process with all its threads off the CPUs that are measured. Returns what was not
/// possible.
pub(crate) fn move_controller(plan: &Plan, host: &LocalHost) -> Vec<Notice> {
    let measured = plan.cpus();
    let mut notices = Vec::new();
    if host.allowed.iter().all(|cpu| measured.contains(cpu)) {
        notices.push(
            "the measured tasks may use every CPU of this program, which therefore wakes up on a \
                measured CPU for each sample. To keep one apart, measure on fewer (--placement, \
                --cpu) or allow one more (taskset, cpuset)"
                .into(),
        );
    }
    let away = placement::choose_for_controller(&host.allowed, &measured, &host.machine);
    if let Err(errno) = placement::pin_process(&away) {
        notices.push(
            format!("this program could not move off the CPUs that are measured: {errno}").into(),
        );
    }
    notices
}

/// Measures what is left of one run.
fn finish(recorded: RecordedRun, host: &LocalHost, progress: Progress) -> RecordedRun {
    let mut plan = recorded.run.header.plan.clone();
    if let Some(words) = &recorded.words {
        for stored in command_words(&mut plan) {
            stored.clone_from(words);
        }
    }
    let workers = [Workers::new(recorded.interrupt.clone())];
    let mut rules = RoundRules::for_plan(&plan);
    if let Some(row_builder) = progress.row_builder.filter(|_| progress.is_seen()) {
        let empty = Run::new(recorded.run.header.clone());
        rules.rows = Some(Box::new(move |samples| {
            row_builder(&Run { samples: samples.to_vec(), ..empty.clone() })
        }));
    }
    let [recorded] = measure_runs([recorded], workers, &plan, rules, host, progress);
    speed::learn(&recorded.run);
    recorded
}

/// Measures `runs` by one schedule, each by its own workers. The cases of `plan` are those of all
/// runs, one after the other, each of as many.
pub(crate) fn measure_runs<const N: usize>(
    runs: [RecordedRun; N],
    workers: [Workers; N],
    plan: &Plan,
    rules: RoundRules<'_>,
    host: &LocalHost,
    progress: Progress,
) -> [RecordedRun; N] {
    let cases_per_run = plan.cases.len() / N;
    let tasks =
        CompetitionWatcher::begin(Path::new("/"), std::process::id(), &plan.cpus(), &host.machine);
    let tasks = tasks.leave_out(&plan.subject_pids());
    let first = &runs[0].run;
    let mut settings = SettingWatcher::new(
        Path::new("/"),
        first.header.machine.clone(),
        first.setting_changes.last(),
    );
    for half in &runs[1..] {
        settings.ignore_differences(&half.run.header.machine);
    }
    if let Some(round) = runs[0].killed_in {
        settings.continue_round(round);
    }
    let mut seen = Run::new(first.header.clone());
    seen.setting_changes.clone_from(&first.setting_changes);
    let seen = Rc::new(RefCell::new(seen));
    let rules = leave_out_other_settings(rules, &seen);
    let mut recorder = Recorder { runs, plan, progress, tasks, settings, seen };
    // Only a run that is measured alone is resumed.
    let first = &mut recorder.runs[0].run;
    let earlier = EarlierSessions {
        samples: earlier_samples(first),
        spent: Duration::from_nanos(first.spent_ns()),
    };
    let mut measured = Vec::new();
    let mut measure_case = |assignment: &Assignment, patience, sink: &mut dyn FnMut(Sample)| {
        let cpus = assignment.case.cpus();
        if cpus != measured {
            // This thread wakes up for each sample. A refusal was reported before the first worker.
            let away = placement::choose_for_controller(&host.allowed, &cpus, &host.machine);
            let _ = placement::pin(&away);
            measured = cpus;
        }
        let run = assignment.case_number / cases_per_run;
        workers[run].measure(assignment, patience, sink)
    };
    let outcome = schedule::run(plan, rules, earlier, &mut measure_case, &mut |event| {
        recorder.note(event);
    });
    recorder.end(outcome)
}

/// Makes rules that leave out samples of rounds under other settings, which are in no figure. `seen`
/// has the changes so far.
fn leave_out_other_settings<'a>(rules: RoundRules<'a>, seen: &Rc<RefCell<Run>>) -> RoundRules<'a> {
    let RoundRules { order, precision, estimate, lacking, rows } = rules;
    let [by_precision, by_estimate, by_lacking] = [(); 3].map(|()| seen.clone());
    RoundRules {
        order,
        precision: Box::new(move |samples, failures| {
            precision(&counted_samples(samples, &by_precision.borrow()), failures)
        }),
        estimate: Box::new(move |samples| {
            estimate(&counted_samples(samples, &by_estimate.borrow()))
        }),
        lacking: Box::new(move |samples| lacking(&counted_samples(samples, &by_lacking.borrow()))),
        rows,
    }
}

/// Returns the samples of rounds under the settings of the header.
fn counted_samples<'s>(samples: &'s [Sample], run: &Run) -> Cow<'s, [Sample]> {
    if run.setting_changes.is_empty() {
        return Cow::Borrowed(samples);
    }
    let mut counted = samples.to_vec();
    counted.retain(|sample| run.is_under_header_settings(sample.round()));
    Cow::Owned(counted)
}

/// Takes all samples of a run, those under other settings too: rounds are numbered by them.
fn earlier_samples(run: &mut Run) -> Vec<Sample> {
    let mut samples = mem::take(&mut run.samples);
    samples.append(&mut run.set_aside);
    samples
}

/// Adds samples and failures to their runs, each numbered as in the plan of its run.
pub(crate) fn distribute(
    runs: &mut [&mut Run],
    samples: impl IntoIterator<Item = Sample>,
    failures: impl IntoIterator<Item = Failure>,
) {
    let cases_per_run = runs[0].header.plan.cases.len();
    for sample in samples {
        let case = sample.case();
        runs[case / cases_per_run].samples.push(sample.with_case(case % cases_per_run));
    }
    for failure in failures {
        let run = failure.case / cases_per_run;
        let case = failure.case % cases_per_run;
        runs[run].failures.push(Failure { case, ..failure });
    }
}

/// Keeps every sample in the file of its run as it arrives, and shows how far the runs are.
struct Recorder<'a, const N: usize> {
    runs: [RecordedRun; N],
    plan: &'a Plan,
    progress: Progress,
    /// Watches competing tasks on the CPUs that are measured.
    tasks: CompetitionWatcher,
    /// Watches the settings of the machine.
    settings: SettingWatcher,
    /// A run with the changes of settings that were seen, for the rules of the rounds.
    seen: Rc<RefCell<Run>>,
}

impl<const N: usize> Recorder<'_, N> {
    fn note(&mut self, event: RunEvent<'_>) {
        let cases_per_run = self.plan.cases.len() / N;
        match event {
            RunEvent::Case(state) => {
                let changes = self.settings.before_case(state.round);
                self.keep_changes(changes);
                self.progress.show(&state);
            }
            RunEvent::Sample(sample) => {
                let case = sample.case() % cases_per_run;
                let line = RunFileLine::Sample(sample.clone().with_case(case));
                self.keep(sample.case() / cases_per_run, &line);
            }
            RunEvent::Pause => {
                for run in 0..N {
                    self.with_file(run, RunFile::sync);
                }
                self.tasks.look_if_due();
            }
            RunEvent::Rows(rows) => self.progress.show_rows(rows),
            RunEvent::Failure(failure) => {
                let run = failure.case / cases_per_run;
                let case = failure.case % cases_per_run;
                let arm = match &self.runs[run].run.header.session {
                    Some(session) => format!("{}: ", session.arm.name()),
                    None => String::new(),
                };
                let title = self.plan.title(failure.case);
                self.progress.say(&format!("error: {arm}{title}: {}", failure.message));
                self.keep(run, &RunFileLine::Failure(Failure { case, ..failure.clone() }));
            }
        }
    }

    /// Keeps changes of the machine's settings in all runs: they share their rounds.
    fn keep_changes(&mut self, changes: Vec<SettingChange>) {
        for change in changes {
            self.seen.borrow_mut().push(RunFileLine::Setting(change.clone()));
            for run in 0..N {
                let line = RunFileLine::Setting(change.clone());
                self.keep(run, &line);
                self.runs[run].run.push(line);
            }
        }
    }

    fn keep(&mut self, run: usize, line: &RunFileLine) {
        self.with_file(run, |file| file.write(line));
    }

    /// Gives up a file that cannot be written any more, with an error message; measuring goes on.
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
        let changes = self.settings.at_end();
        self.keep_changes(changes);
        distribute(&mut self.runs.each_mut().map(|recorded| &mut recorded.run), samples, failures);
        let finished = seconds_in_words(SystemTime::now());
        let end = RunFileLine::End(RunEnd { reason, finished, spent_ns: nanoseconds(spent) });
        // All were measured in turn all the time: who ran beside one ran beside all.
        let lines = [RunFileLine::CompetingTasks(Box::new(self.tasks.end())), end];
        for run in 0..N {
            for line in &lines {
                self.keep(run, line);
                self.runs[run].run.push(line.clone());
            }
            self.with_file(run, RunFile::sync);
            self.runs[run].run.set_other_settings_aside();
        }
        self.runs
    }
}

/// Returns version, commit, profile and target of the running program.
pub(crate) fn build_info() -> ProgramBuild {
    let commit = env!("SWITCHCOST_COMMIT");
    ProgramBuild {
        version: env!("CARGO_PKG_VERSION").to_string(),
        commit: if commit.is_empty() { None } else { Some(commit.to_string()) },
        profile: env!("SWITCHCOST_PROFILE").to_string(),
        target: env!("SWITCHCOST_TARGET").to_string(),
    }
}

#[cfg(test)]
mod tests {
    use rundata::machine::FieldDifference;

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
    fn rounds_under_other_settings_do_not_make_a_run_precise() {
        let text = include_str!("../../../rundata/tests/fixtures/run-v1.jsonl");
        let mut run = Run::parse(text).expect("a run file");
        let samples = mem::take(&mut run.samples);
        assert!(matches!(counted_samples(&samples, &run), Cow::Borrowed(_)));
        let last = samples.iter().map(Sample::round).max().expect("samples");
        let difference = run.header.machine.kernel.release.known().cloned();
        let differences = vec![FieldDifference {
            field: "scheduler.name".to_string(),
            base: difference.clone().into(),
            other: difference.into(),
        }];
        let at = run.header.started.clone();
        run.push(RunFileLine::Setting(SettingChange { round: last, at, differences }));
        let seen = Rc::new(RefCell::new(run));
        let plan = seen.borrow().header.plan.clone();
        let told = Rc::new(RefCell::new(Vec::new()));
        let noted = told.clone();
        let rules = RoundRules {
            precision: Box::new(move |samples, _| {
                noted.borrow_mut().extend(samples.iter().map(Sample::round));
                None
            }),
            ..RoundRules::for_plan(&plan)
        };
        assert_eq!((leave_out_other_settings(rules, &seen).precision)(&samples, &[]), None);
        let told = told.borrow();
        assert!(!told.is_empty() && told.iter().all(|round| *round < last), "{told:?} {last}");
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
