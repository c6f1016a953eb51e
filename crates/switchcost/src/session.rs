//! `compare --ab`: two settings measured in one session, interleaved round by round, as two runs that
//! know of each other.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, anyhow};
use model::comparison::{Comparison, Terms};
use model::machine::Machine;
use model::plan::Plan;
use model::ring::Ring;
use model::run::{Arm, End, Failure, Header, Line, Run, SCHEMA, Session, StopReason};
use model::sample::Sample;
use model::subject::Comparable;
use probe::assignment::Assignment;
use probe::standing::Standing;

use crate::cli::RingArgs;
use crate::failure::{say, usage};
use crate::interrupt::Interrupt;
use crate::launch::{Launch, LaunchError, Workers};
use crate::measure::{keep_away, look_around, nanoseconds, run_name, split};
use crate::progress::Progress;
use crate::schedule::{Course, Outcome, Schedule, State, Watch};
use crate::store::{Folder, RunFile};
use crate::{build, resolve};

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

/// Measures the rings of `args` behind both prefixes, stores both runs, compares them.
pub(crate) fn measure(prefixes: &[String], args: &RingArgs, terms: Terms) -> Result<Measured> {
    let (machine, allowed) = look_around()?;
    let interrupt = Interrupt::watch()?;
    let own = look(&interrupt, Vec::new()).map_err(|why| anyhow!("the worker {why}"))?;
    let mut halves = Vec::new();
    for (arm, typed) in ARMS.into_iter().zip(prefixes) {
        halves.push(Half::plan(arm, typed, &interrupt, &own, args, &machine)?);
    }
    let [a, b] = &mut halves[..] else {
        return Err(usage("--ab: two prefixes are compared"));
    };
    are_alike(&a.plan, &b.plan)?;
    let started = SystemTime::now();
    let both = Plan { cases: [&a.plan.cases[..], &b.plan.cases].concat(), ..a.plan.clone() };
    let notices = keep_away(&both, &allowed, &machine);
    let name = run_name("ring", started);
    let mut runs = [a, b].map(|half| half.run(&name, started, &machine, &notices));
    let stored = runs.each_mut().map(Stored::store);
    let workers =
        [&halves[0], &halves[1]].map(|half| Workers::behind(interrupt.clone(), half.words.clone()));
    let mut workers = Arms { workers, cases: both.cases.len() / 2 };
    let mut recorder = Recorder {
        cases: workers.cases,
        plan: &both,
        progress: Progress::new(&both, args.output.quiet),
        files: runs.each_mut().map(|half| half.file.take()),
        lost: stored.contains(&false),
    };
    let empty = runs.each_ref().map(|half| half.run.clone());
    let precision = |samples: &[Sample], failures: &[Failure]| {
        compare(&filled(&empty, samples, failures), terms).worst_half_width()
    };
    let course = Course {
        order: Box::new(|round| halves[0].plan.order_of_twins(round)),
        precision: Box::new(precision),
    };
    let schedule = Schedule::new(&both, Vec::new(), Duration::ZERO, &mut workers, &mut recorder);
    let Outcome { samples, failures, reason, spent } = schedule.on(course).run();
    recorder.progress.end();
    let end = End {
        reason,
        finished: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        spent_ns: nanoseconds(spent),
    };
    ARMS.iter().enumerate().for_each(|(arm, _)| recorder.keep(arm, &Line::End(end.clone())));
    recorder.pause();
    let paths = recorder.files.iter().flatten().map(|file| file.path().to_path_buf()).collect();
    let lost = recorder.lost;
    drop(recorder);
    let mut whole = filled(&empty, &samples, &failures);
    whole.iter_mut().for_each(|run| run.end = Some(end.clone()));
    Ok(Measured {
        found: compare(&whole, terms),
        paths,
        interrupted: interrupt.signal().map(|signal| 128 + u8::try_from(signal).unwrap_or(0)),
        not_whole: lost || !failures.is_empty() || reason == StopReason::Failed,
    })
}

fn look(interrupt: &Interrupt, prefix: Vec<String>) -> Result<Standing, String> {
    Workers::behind(interrupt.clone(), prefix).look()
}

fn compare(runs: &[Run; 2], terms: Terms) -> Comparison {
    let [a, b] = runs.each_ref().map(Ring::subject);
    Comparison::of(&a, &b, terms)
}

/// One of the two settings.
struct Half {
    arm: Arm,
    words: Vec<String>,
    plan: Plan,
    notices: Vec<String>,
}

impl Half {
    /// What is measured behind a prefix: where the prefix leaves the worker, under its policy. A worker
    /// places itself and takes its case's policy, which would undo both.
    fn plan(
        arm: Arm,
        typed: &str,
        interrupt: &Interrupt,
        own: &Standing,
        args: &RingArgs,
        machine: &Machine,
    ) -> Result<Self> {
        let of_prefix = || format!("--ab, prefix {} ('{typed}')", arm.name());
        let words = shell_words::split(typed).map_err(|error| {
            usage(format!("{}: {error} (accepted: words as a shell splits them)", of_prefix()))
        })?;
        let standing = look(interrupt, words.clone())
            .map_err(|why| usage(format!("{}: {why}", of_prefix())))?;
        let (mut plan, notices) =
            resolve::ring::plan(args, &standing.cpus, machine).with_context(of_prefix)?;
        if (standing.policy, standing.priority) != (own.policy, own.priority) {
            let policy = standing.policy().ok_or_else(|| {
                usage(format!(
                    "{}: it sets policy {} (sched(7)), which members of a ring cannot have (accepted: \
                     other, batch, fifo, rr)",
                    of_prefix(),
                    standing.policy
                ))
            })?;
            if args.policy != model::case::Policy::Other && args.policy != policy {
                let asked = args.policy;
                return Err(usage(format!(
                    "{}: it sets policy {policy}, and --policy {asked} would undo it",
                    of_prefix()
                )));
            }
            for case in &mut plan.cases {
                case.policy = policy;
                case.priority = policy.is_realtime().then_some(standing.priority);
            }
        }
        Ok(Self { arm, words, plan, notices })
    }

    fn run(
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
            build: build::info(),
            plan: self.plan.clone(),
            machine: machine.clone(),
            notices: [&self.notices[..], notices].concat(),
            session: Some(Session {
                id: name.to_string(),
                arm: self.arm,
                prefix: self.words.clone(),
                other: named(other),
            }),
        };
        Stored { run: Run::new(header), file: None }
    }
}

/// Only the same rings can be compared round by round, whatever CPU and policy they have.
fn are_alike(a: &Plan, b: &Plan) -> Result<()> {
    let rings = |plan: &Plan| -> Vec<_> {
        let cases = plan.cases.iter();
        cases
            .map(|case| (case.members, case.link.clone(), case.state, case.placement.relation()))
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
        let own = Sample { case: sample.case % cases, ..sample.clone() };
        runs[sample.case / cases].samples.push(own);
    }
    for failure in failures {
        let own = Failure { case: failure.case % cases, ..failure.clone() };
        runs[failure.case / cases].failures.push(own);
    }
    runs
}

/// The workers of both settings: the second half of the cases belongs to B.
struct Arms {
    workers: [Workers; 2],
    cases: usize,
}

impl Launch<Ring> for Arms {
    fn launch(
        &mut self,
        assignment: &Assignment<Ring>,
        sink: &mut dyn FnMut(Sample),
    ) -> Result<(), LaunchError> {
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

impl Watch<Ring> for Recorder<'_> {
    fn case(&mut self, state: &State) {
        self.progress.show(state);
    }

    fn sample(&mut self, sample: &Sample) {
        let own = Sample { case: sample.case % self.cases, ..sample.clone() };
        self.keep(sample.case / self.cases, &Line::Sample(own));
    }

    fn pause(&mut self) {
        for arm in 0..self.files.len() {
            self.with_file(arm, RunFile::sync);
        }
    }

    fn failure(&mut self, failure: &Failure) {
        use model::instrument::Instrument;
        let (arm, case) = (failure.case / self.cases, failure.case % self.cases);
        let title = Ring::title(&self.plan.cases[failure.case]);
        let name = ARMS[arm].name();
        self.progress.say(&format!("error: {name}: {title}: {}", failure.message));
        self.keep(arm, &Line::Failure(Failure { case, ..failure.clone() }));
    }
}
