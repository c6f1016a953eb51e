//! `switchcost measure`: the main job in one word.

mod summary;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, anyhow};
use clap::{Args, Command, FromArgMatches};
use model::run::Run;
use model::{record, response, trial};

use crate::execute::{self, Planned};
use crate::failure::say;
use crate::interrupt::Interrupt;
use crate::output::{Record, check_place, print};
use crate::progress::Whole;
use crate::report::drawn::Drawn;
use crate::setting::Here;
use crate::values::{Destination, duration, seed};
use crate::{clock, cost, report, ring};
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
        ring: course.take(Part::Ring, ring::plan::plan, record::Record::of),
        cost: course.take(Part::Cost, cost::plan::plan, record::Record::of),
        response: course.take(Part::Response, crate::response::plan::plan, response::Record::of),
        clock: course.take(Part::Clock, clock::plan::overhead, trial::Record::of),
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
    Ok(match course.interrupt.exit_code() {
        Some(code) => ExitCode::from(code),
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
    fn take<A: Args + FromArgMatches, R: Record>(
        &mut self,
        part: Part,
        plan: fn(&A, &Here) -> Result<Planned>,
        record: fn(&Run) -> R,
    ) -> Option<R> {
        if self.interrupt.signal().is_some() {
            return None;
        }
        let before = self.started.elapsed();
        let budget = part.share(self.budget.saturating_sub(before));
        let args = defaults(part.told().0, budget, self.seed);
        let planned = args.and_then(|args| plan(&args, self.here));
        let planned = planned.map_err(|error| self.fail(part, &error)).ok();
        // Links and policies are tried for a plan: that takes a moment, too.
        let planned = planned.filter(|_| self.interrupt.signal().is_none())?;
        let progress = self.bar.part(&planned.0, before);
        let taken = execute::take(planned, self.here.clone(), &self.interrupt, progress, None);
        self.not_whole |= !taken.is_whole();
        let record = record(&taken.run);
        let index = self.drawn.len();
        self.drawn.push(Drawn::of_run(&taken.run, &record, taken.path.as_deref(), index));
        self.paths.extend(taken.path);
        Some(record)
    }

    fn fail(&mut self, part: Part, error: &Error) {
        self.not_whole = true;
        self.bar.say(&format!("error: {}: {error:#}", part.told().0));
    }
}

/// An experiment's weight in the budget: by how many cases it has and how far they scatter. They are
/// measured in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Ring,
    Cost,
    Response,
    Clock,
}

impl Part {
    const ALL: [Self; 4] = [Self::Ring, Self::Cost, Self::Response, Self::Clock];

    /// What it is called, and its weight.
    const fn told(self) -> (&'static str, u32) {
        match self {
            Self::Ring => ("ring", 25),
            Self::Cost => ("cost", 40),
            Self::Response => ("response", 25),
            Self::Clock => ("clock", 10),
        }
    }

    /// What it has of the time that is left: what an earlier one has taken too much or left over is
    /// shared by the later ones.
    fn share(self, left: Duration) -> Duration {
        let later = Self::ALL.iter().skip_while(|part| **part != self);
        let weights: u32 = later.map(|part| part.told().1).sum();
        left * self.told().1 / weights
    }
}

/// An experiment's own arguments as if only budget and seed had been typed.
fn defaults<A: Args + FromArgMatches>(
    name: &'static str,
    budget: Duration,
    seed: u64,
) -> Result<A> {
    let budget = format!("{}ms", budget.as_millis().max(1));
    let words = [name, "--budget", &budget, "--seed", &seed.to_string()].map(String::from);
    let matches = A::augment_args(Command::new(name)).try_get_matches_from(words);
    let matches = matches.with_context(|| format!("the defaults of {name}"))?;
    A::from_arg_matches(&matches).with_context(|| format!("the defaults of {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_goes_to_the_later_parts() {
        let seconds = Duration::from_secs;
        assert_eq!(Part::Ring.share(seconds(100)), seconds(25));
        // The rings were precise after five seconds.
        assert_eq!(Part::Cost.share(seconds(75)), seconds(40));
        assert_eq!(Part::Response.share(seconds(7)), seconds(5));
        assert_eq!(Part::Clock.share(seconds(3)), seconds(3), "the last has all");
        assert_eq!(Part::Clock.share(Duration::ZERO), Duration::ZERO);
    }
}
