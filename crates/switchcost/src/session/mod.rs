//! `compare --ab`: two settings measured in one session, interleaved round by round, as two runs that
//! know of each other.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use model::comparison::{Comparison, Terms};
use model::experiment::Experiment;
use model::looks;
use model::plan::Plan;
use model::run::{Arm, End, Failure, Line, Run, StopReason};
use model::sample::Sample;
use model::subject::Subject;
use probe::assignment::Assignment;
use probe::company::Watcher;

use crate::execute::{company_of, move_controller, nanoseconds, run_name, split};
use crate::failure::say;
use crate::interrupt::Interrupt;
use crate::launch::{Away, Launch, LaunchError, Workers};
use crate::progress::Progress;
use crate::ring::RingArgs;
use crate::schedule::{Course, Outcome, Schedule, State, Watch};
use crate::setting::Here;
use crate::store::{Folder, RunFile};
use half::Half;

mod half;

const ARMS: [Arm; 2] = [Arm::A, Arm::B];

/// What a session gave.
pub(crate) struct Measured {
    /// B compared with A.
    pub(crate) found: Comparison,
    /// The files of both runs, as far as they are stored.
    pub(crate) paths: Vec<PathBuf>,
    /// The exit code that says by which signal it was stopped.
    pub(crate) interrupted: Option<u8>,
    /// A case could not be measured, or a run not stored.
    pub(crate) not_whole: bool,
}

/// How a session ended.
pub(crate) enum Ended {
    /// With something to compare, or the reason why there is not.
    Measured(Box<Measured>),
    /// Somebody asked to stop before the first round: the exit code that says so.
    Interrupted(u8),
}

/// Measures the rings of `args` behind both prefixes, stores both runs, compares them.
pub(crate) fn measure(prefixes: &[String], args: &RingArgs, terms: Terms) -> Result<Ended> {
    let here = Here::detect()?;
    let interrupt = Interrupt::watch()?;
    let planned = half::plan(prefixes, &interrupt, args, &here);
    if let Some(code) = interrupt.exit_code() {
        return Ok(Ended::Interrupted(code));
    }
    let halves = planned?;
    let measured = measure_halves(halves, args, terms, here, interrupt);
    Ok(Ended::Measured(Box::new(measured)))
}

fn measure_halves(
    halves: [Half; 2],
    args: &RingArgs,
    terms: Terms,
    Here { allowed, machine }: Here,
    interrupt: Interrupt,
) -> Measured {
    let [a, b] = &halves;
    let started = SystemTime::now();
    let both = Plan { cases: [&a.plan.cases[..], &b.plan.cases].concat(), ..a.plan.clone() };
    let notices = move_controller(&both, &allowed, &machine);
    let name = run_name(Experiment::Ring, started);
    let mut runs = [a, b].map(|half| half.run(&name, started, &machine, &notices));
    let stored = runs.each_mut().map(Stored::store);
    let behind =
        |half: &Half| Workers::behind(interrupt.clone(), half.words.clone(), allowed.clone());
    let away = Away::new(allowed.clone(), machine.clone());
    let cases = both.cases.len() / 2;
    let mut workers = Arms { workers: halves.each_ref().map(behind), away, cases };
    let mut recorder = Recorder {
        cases: workers.cases,
        plan: &both,
        progress: Progress::new(&both, args.output.quiet),
        files: runs.each_mut().map(|half| half.file.take()),
        lost: stored.contains(&false),
        company: company_of(&both, &machine),
    };
    let empty = runs.each_ref().map(|half| half.run.clone());
    let precision = |samples: &[Sample], failures: &[Failure]| {
        compare(&filled(&empty, samples, failures), terms).worst_precision()
    };
    let course = Course {
        order: Box::new(|round| halves[0].plan.order_of_twins(round)),
        precision: Box::new(precision),
        lacking: Box::new(|samples| looks::lacking(&both, samples)),
        focus: Box::new(|_, _| None),
    };
    let schedule = Schedule::new(&both, Vec::new(), Duration::ZERO, &mut workers, &mut recorder);
    let Outcome { samples, failures, reason, spent } = schedule.on(course).run();
    recorder.progress.end();
    let end = End {
        reason,
        finished: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        spent_ns: nanoseconds(spent),
    };
    // Both were measured in turn all the time: whoever was there was beside both.
    let company = recorder.company.end();
    for arm in 0..ARMS.len() {
        recorder.keep(arm, &Line::Company(Box::new(company.clone())));
        recorder.keep(arm, &Line::End(end.clone()));
        recorder.with_file(arm, RunFile::sync);
    }
    let paths = recorder.files.iter().flatten().map(|file| file.path().to_path_buf()).collect();
    let lost = recorder.lost;
    drop(recorder);
    let mut whole = filled(&empty, &samples, &failures);
    whole.iter_mut().for_each(|run| run.end = Some(end.clone()));
    Measured {
        found: compare(&whole, terms),
        paths,
        interrupted: interrupt.exit_code(),
        not_whole: lost || !failures.is_empty() || reason == StopReason::Failed,
    }
}

fn compare(runs: &[Run; 2], terms: Terms) -> Comparison {
    let [a, b] = runs.each_ref().map(Subject::of_run);
    Comparison::of(&a, &b, terms)
}

/// A run and its file.
struct Stored {
    run: Run,
    file: Option<RunFile>,
}

impl Stored {
    /// Makes the file; without one the run is measured all the same.
    fn store(&mut self) -> bool {
        let made =
            Folder::of_user().and_then(|folder| RunFile::create(folder.path(), &self.run.header));
        let (file, error) = split(made);
        if let Some(error) = &error {
            say(&format!(
                "error: the run is not stored: {error:#}; it is measured and compared all the same"
            ));
        }
        self.file = file;
        error.is_none()
    }
}

/// Both runs with their samples and failures, each numbered as in its own plan.
fn filled(empty: &[Run; 2], samples: &[Sample], failures: &[Failure]) -> [Run; 2] {
    let mut runs = empty.clone();
    let cases = runs[0].header.plan.cases.len();
    for sample in samples {
        let own = sample.clone().of_case(sample.case() % cases);
        runs[sample.case() / cases].samples.push(own);
    }
    for failure in failures {
        let own = Failure { case: failure.case % cases, ..failure.clone() };
        runs[failure.case / cases].failures.push(own);
    }
    runs
}

/// The workers of both settings: the second half of the cases belongs to B. One thread makes way for
/// both.
struct Arms {
    workers: [Workers; 2],
    away: Away,
    cases: usize,
}

impl Launch for Arms {
    fn launch(
        &mut self,
        assignment: &Assignment,
        sink: &mut dyn FnMut(Sample),
    ) -> Result<(), LaunchError> {
        self.away.keep(assignment.case.cpus());
        self.workers[assignment.case_number / self.cases].launch(assignment, sink)
    }
}

/// Keeps every sample in the file of its run.
struct Recorder<'a> {
    cases: usize,
    plan: &'a Plan,
    progress: Progress,
    files: [Option<RunFile>; 2],
    lost: bool,
    company: Watcher,
}

impl Recorder<'_> {
    fn keep(&mut self, arm: usize, line: &Line) {
        self.with_file(arm, |file| file.write(line));
    }

    fn with_file(&mut self, arm: usize, act: impl FnOnce(&mut RunFile) -> Result<()>) {
        let Some(file) = &mut self.files[arm] else { return };
        if let Err(error) = act(file) {
            self.progress.say(&format!(
                "error: the run is not stored any further: {error:#}; it is measured and compared all the same"
            ));
            self.files[arm] = None;
            self.lost = true;
        }
    }
}

impl Watch for Recorder<'_> {
    fn case(&mut self, state: &State) {
        self.progress.show(state);
    }

    fn sample(&mut self, sample: &Sample) {
        let own = sample.clone().of_case(sample.case() % self.cases);
        self.keep(sample.case() / self.cases, &Line::Sample(own));
    }

    fn pause(&mut self) {
        for arm in 0..self.files.len() {
            self.with_file(arm, RunFile::sync);
        }
        self.company.look_if_due();
    }

    fn failure(&mut self, failure: &Failure) {
        let (arm, case) = (failure.case / self.cases, failure.case % self.cases);
        let title = self.plan.cases[failure.case].title();
        let name = ARMS[arm].name();
        self.progress.say(&format!("error: {name}: {title}: {}", failure.message));
        self.keep(arm, &Line::Failure(Failure { case, ..failure.clone() }));
    }
}
