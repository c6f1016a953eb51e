//! `switchcost measure`: the main job in one word.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Error, Result};

use crate::cli::{Destination, MeasureArgs, check_place};
use crate::failure::say;
use crate::interrupt::Interrupt;
use crate::measure;
use crate::progress::Whole;
use crate::report::html::{self, Drawn};
use crate::report::summary::{self, Summary};
use crate::report::{Report, print};
use crate::resolve::clock::Here;
use crate::resolve::measure as parts;

pub(super) fn run(args: &MeasureArgs) -> Result<ExitCode> {
    check_place("--output", &args.output)?;
    html::check(&args.output)?;
    let (machine, allowed) = measure::look_around()?;
    let here = Here { allowed: &allowed, machine: &machine };
    let mut course = Course {
        here: &here,
        interrupt: Interrupt::watch()?,
        bar: Whole::new(args.budget, args.quiet),
        drawn: Vec::new(),
        paths: Vec::new(),
        not_whole: false,
    };
    let mut summary = Summary {
        ring: course.take("ring", || parts::ring(args, &here)),
        cost: course.take("cost", || parts::cost(args, &here)),
        response: course.take("response", || parts::response(args, &here)),
        clock: course.take("clock overhead", || parts::clock(args, &here)),
        runs: Vec::new(),
        report: None,
    };
    course.bar.end();
    summary.runs = course.paths;
    let written = match course.drawn.is_empty() {
        true => Ok(()),
        false => html::write(course.drawn, &args.output)
            .context("the report is not written (`switchcost report` makes one of stored runs)"),
    };
    if let (Ok(()), Destination::File(path)) = (&written, &args.output) {
        summary.report = Some(path.clone());
    }
    if !args.quiet {
        match &args.output {
            Destination::File(_) => print(summary::text(&summary).as_bytes())?,
            Destination::Stdout => say(summary::text(&summary).trim_end()),
        }
    }
    written?;
    Ok(match course.interrupt.signal() {
        Some(signal) => ExitCode::from(128 + u8::try_from(signal).unwrap_or(0)),
        None if course.not_whole => ExitCode::FAILURE,
        None => ExitCode::SUCCESS,
    })
}

/// The experiments one after the other. One that cannot be is told of, and leaves the others be.
struct Course<'a> {
    here: &'a Here<'a>,
    interrupt: Interrupt,
    bar: Whole,
    drawn: Vec<Drawn>,
    paths: Vec<PathBuf>,
    not_whole: bool,
}

impl Course<'_> {
    fn take<I: Report>(
        &mut self,
        name: &str,
        part: impl FnOnce() -> Result<parts::Part<I>>,
    ) -> Option<I::Record> {
        if self.interrupt.signal().is_some() {
            return None;
        }
        let part = part().map_err(|error| self.fail(name, &error)).ok()?;
        let progress = self.bar.part(&part.plan, part.before);
        let machine = self.here.machine.clone();
        let allowed = self.here.allowed;
        let taken =
            measure::take(part.plan, machine, allowed, part.notices, &self.interrupt, progress);
        self.not_whole |= !taken.is_whole();
        let record = I::record(&taken.run);
        let index = self.drawn.len();
        self.drawn.push(Drawn::of_run(&taken.run, &record, taken.path.as_deref(), index));
        self.paths.extend(taken.path);
        Some(record)
    }

    fn fail(&mut self, name: &str, error: &Error) {
        self.not_whole = true;
        say(&format!("error: {name}: {error:#}"));
    }
}
