//! `switchcost measure`: the main job in one word.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, anyhow};
use model::run::Run;
use model::{record, response, trial};

use crate::cli::{Destination, MeasureArgs, check_place};
use crate::failure::say;
use crate::interrupt::Interrupt;
use crate::measure;
use crate::progress::Whole;
use crate::report::html::{self, Drawn};
use crate::report::summary::{self, Summary};
use crate::report::{Record, print};
use crate::resolve::clock::Here;
use crate::resolve::measure::{self as parts, Asked, Part, Planned};

/// Of the budget, for intervals and the report at the end.
const FOR_THE_REPORT: f64 = 0.05;

pub(super) fn run(args: &MeasureArgs) -> Result<ExitCode> {
    check_place("--output", &args.output)?;
    html::check(&args.output)?;
    let (machine, allowed) = measure::look_around()?;
    let mut course = Course {
        here: Here { allowed: &allowed, machine: &machine },
        started: Instant::now(),
        budget: args.budget.mul_f64(1.0 - FOR_THE_REPORT),
        seed: args.seed,
        interrupt: Interrupt::watch()?,
        bar: Whole::new(args.budget, args.quiet),
        drawn: Vec::new(),
        paths: Vec::new(),
        not_whole: false,
    };
    let mut summary = Summary {
        ring: course.take(Part::Ring, parts::ring, record::Record::of),
        cost: course.take(Part::Cost, parts::cost, record::Record::of),
        response: course.take(Part::Response, parts::response, response::Record::of),
        clock: course.take(Part::Clock, parts::clock, trial::Record::of),
        runs: Vec::new(),
        report: None,
    };
    course.bar.end();
    summary.runs = std::mem::take(&mut course.paths);
    let drawn = std::mem::take(&mut course.drawn);
    let mut errors = Vec::new();
    if !drawn.is_empty() {
        let lead = summary::sentence(&summary);
        let written = html::write(drawn, Some(&lead), &args.output)
            .context("the report is not written (`switchcost report` makes one of stored runs)");
        match (written, &args.output) {
            (Ok(()), Destination::File(path)) => summary.report = Some(path.clone()),
            (written, _) => errors.extend(written.err()),
        }
    }
    if !args.quiet {
        errors.extend(tell(&summary, &args.output).err());
    }
    errors.iter().for_each(|error| say(&format!("error: {error:#}")));
    Ok(match course.interrupt.signal() {
        Some(signal) => ExitCode::from(128 + u8::try_from(signal).unwrap_or(0)),
        None if course.not_whole || !errors.is_empty() => ExitCode::FAILURE,
        None => ExitCode::SUCCESS,
    })
}

/// The summary goes where the report does not.
fn tell(summary: &Summary, report: &Destination) -> Result<()> {
    let text = summary::text(summary);
    match report {
        Destination::File(_) => print(text.as_bytes())
            .map_err(|error| anyhow!(error).context("cannot print the summary"))?,
        Destination::Stdout => say(text.trim_end()),
    }
    Ok(())
}

/// The experiments one after the other. One that cannot be is told of, and leaves the others be.
struct Course<'a> {
    here: Here<'a>,
    started: Instant,
    budget: Duration,
    seed: u64,
    interrupt: Interrupt,
    bar: Whole,
    drawn: Vec<Drawn>,
    paths: Vec<PathBuf>,
    not_whole: bool,
}

impl Course<'_> {
    fn take<R: Record>(
        &mut self,
        part: Part,
        plan: fn(&Asked<'_>) -> Planned,
        record: fn(&Run) -> R,
    ) -> Option<R> {
        if self.interrupt.signal().is_some() {
            return None;
        }
        let before = self.started.elapsed();
        let budget = part.share(self.budget.saturating_sub(before));
        let asked = Asked { budget, seed: self.seed, here: &self.here };
        let planned = plan(&asked).map_err(|error| self.fail(part, &error)).ok();
        // Links and policies are tried for a plan: that takes a moment, too.
        let (plan, notices) = planned.filter(|_| self.interrupt.signal().is_none())?;
        let progress = self.bar.part(&plan, before);
        let (machine, allowed) = (self.here.machine.clone(), self.here.allowed);
        let taken = measure::take(plan, machine, allowed, notices, &self.interrupt, progress);
        self.not_whole |= !taken.is_whole();
        let record = record(&taken.run);
        let index = self.drawn.len();
        self.drawn.push(Drawn::of_run(&taken.run, &record, taken.path.as_deref(), index));
        self.paths.extend(taken.path);
        Some(record)
    }

    fn fail(&mut self, part: Part, error: &Error) {
        self.not_whole = true;
        self.bar.say(&format!("error: {}: {error:#}", part.name()));
    }
}
