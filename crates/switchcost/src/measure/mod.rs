//! `switchcost measure`: the main job in one word.

mod shares;
mod summary;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, anyhow};
use clap::Args;
use model::run::Run;
use model::{record, response, trial};

use crate::execute::Planned;
use crate::failure::say;
use crate::interrupt::Interrupt;
use crate::output::{Record, check_place, print};
use crate::progress::Whole;
use crate::report::drawn::Drawn;
use crate::setting::Here;
use crate::values::{Destination, duration, seed};
use crate::{execute, report};
use shares::{Asked, Part};
use summary::Summary;

#[derive(Debug, Args)]
pub(crate) struct MeasureArgs {
    /// Stop when this much time is spent; of each experiment the first round is always finished
    #[arg(long, default_value = "90s", value_name = "TIME", value_parser = duration, allow_hyphen_values = true)]
    pub(crate) budget: Duration,

    /// Seed of the order of cases and of the statistics' resampling; recorded
    #[arg(long, default_value_t = 1992, value_name = "NUMBER", value_parser = seed, allow_hyphen_values = true)]
    pub(crate) seed: u64,

    /// Where the report goes, or - for standard output
    ///
    /// A report that is there already is replaced; any other file is left alone.
    #[arg(long, short, value_name = "FILE|-", default_value_t = Destination::File(PathBuf::from("report.html")))]
    pub(crate) output: Destination,

    /// No progress and no summary: only errors and the files
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Of the budget, for intervals and the report at the end.
const FOR_THE_REPORT: f64 = 0.05;

pub(crate) fn run(args: &MeasureArgs) -> Result<ExitCode> {
    check_place("--output", &args.output)?;
    report::check(&args.output)?;
    let here = Here::detect()?;
    let mut course = Course {
        here: &here,
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
        ring: course.take(Part::Ring, shares::ring, record::Record::of),
        cost: course.take(Part::Cost, shares::cost, record::Record::of),
        response: course.take(Part::Response, shares::response, response::Record::of),
        clock: course.take(Part::Clock, shares::clock, trial::Record::of),
        runs: Vec::new(),
        report: None,
    };
    course.bar.end();
    summary.runs = std::mem::take(&mut course.paths);
    let drawn = std::mem::take(&mut course.drawn);
    let mut errors = Vec::new();
    if !drawn.is_empty() {
        let lead = summary::sentence(&summary);
        let written = report::write(drawn, Some(&lead), &args.output)
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
    here: &'a Here,
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
        plan: fn(&Asked<'_>) -> Result<Planned>,
        record: fn(&Run) -> R,
    ) -> Option<R> {
        if self.interrupt.signal().is_some() {
            return None;
        }
        let before = self.started.elapsed();
        let budget = part.share(self.budget.saturating_sub(before));
        let asked = Asked { budget, seed: self.seed, here: self.here };
        let planned = plan(&asked).map_err(|error| self.fail(part, &error)).ok();
        // Links and policies are tried for a plan: that takes a moment, too.
        let (plan, notices) = planned.filter(|_| self.interrupt.signal().is_none())?;
        let progress = self.bar.part(&plan, before);
        let (here, planned) = (self.here.clone(), (plan, notices));
        let taken = execute::take(planned, here, &self.interrupt, progress, None);
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
