//! `switchcost measure`: the main job in one command, and its summary on one screen.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;

use crate::base::failure::{Interrupted, print_message, usage};
use crate::base::values::{Destination, TimeBudget, budget, run_name, whole};
use crate::engine::execute::{self, HeaderOptions, RecordedRun};
use crate::engine::interrupt::Interrupt;
use crate::engine::progress::Progress;
use crate::engine::setting::LocalHost;
use crate::program::report;
use crate::program::report::drawn::DrawnRun;
use crate::registry::measure::plan::plan;
use crate::registry::measure::table::{answer, rows_so_far};
use crate::registry::{MeasureRecord, Record};
use crate::report::output::{check_destination, history, print_text, say_text, write_output};
use crate::report::page;
use crate::report::terminal::View;

#[derive(Debug, Args)]
pub(crate) struct MeasureArgs {
    /// Stop when this much time is spent; a number is seconds
    ///
    /// The first round of all cases is always finished. With a + after it, the run may take up to
    /// three times as long for cases that were disturbed too often.
    #[arg(long, aliases = ["time", "seconds", "duration"], short_alias = 't', default_value = "60s", value_name = "TIME", value_parser = budget)]
    pub(crate) budget: TimeBudget,

    /// Seed of the order of cases and of the statistics' resampling; recorded
    #[arg(long, default_value_t = 1992, value_name = "NUMBER", value_parser = whole(0..=u64::MAX))]
    pub(crate) seed: u64,

    /// Write a report with charts in HTML to a file, or - for standard output
    ///
    /// A report that is there already is replaced; any other file is left alone.
    #[arg(long, short = 'o', alias = "output", value_name = "FILE|-")]
    pub(crate) report: Option<Destination>,

    /// Write figures that others may see: no host name, no command
    ///
    /// Rows of data/modern.csv: the CPU's model, the kernel's release, the number of CPUs, and what was
    /// seen at full speed. Send the file by an issue (A result to share), or add it by data/add.
    #[arg(long, value_name = "FILE|-")]
    pub(crate) share: Option<Destination>,

    /// Name of the stored run
    #[arg(long, value_name = "NAME", value_parser = run_name)]
    pub(crate) name: Option<String>,

    /// Leave out of the record what identifies the machine: host name, boot id, command lines
    #[arg(long)]
    pub(crate) anonymous: bool,

    /// Print nothing but errors; the files are written
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// Print all that is known: what each experiment found, notes, where the run is stored
    #[arg(long, short)]
    pub(crate) verbose: bool,

    /// Print only figures that were seen at full speed in 8 rounds or more, and for others the
    /// reason
    #[arg(long, hide_short_help = true)]
    pub(crate) strict: bool,
}

impl MeasureArgs {
    /// Checks, before anything is measured, that the files can be written. Changes nothing.
    fn check_files(&self) -> Result<()> {
        if let Some(report) = &self.report {
            page::check("--report", report)?;
        }
        let Some(share) = &self.share else { return Ok(()) };
        if self.report.as_ref().is_some_and(|report| report.is_same_place(share)) {
            return Err(usage(format!("--share {share}: --report is written there")));
        }
        check_destination("--share", share)?;
        if cfg!(debug_assertions) {
            print_message(
                "note: --share: this is a debug build, whose figures data/add does not take",
            );
        }
        Ok(())
    }

    /// Returns whether a file that was asked for goes to standard output.
    fn uses_stdout(&self) -> bool {
        let stdout = Some(Destination::Stdout);
        self.report == stdout || self.share == stdout
    }
}

pub(crate) fn run(args: &MeasureArgs) -> Result<ExitCode> {
    let started = Instant::now();
    args.check_files()?;
    let (mut host, interrupt) = (LocalHost::detect()?, Interrupt::watch()?);
    // Looked up once, so that all experiments choose the same CPU.
    host.load = Some(host.current_load());
    let measure = plan(args.budget, args.seed, &host);
    if let Some(code) = interrupt.exit_code() {
        return Err(Interrupted(code).into());
    }
    for why in &measure.left_out {
        print_message(&format!("error: {why}"));
    }
    let planned = measure.planned.context("none of its experiments can run here: see above")?;
    let mut progress = Progress::new(&planned.0, args.quiet);
    progress.row_builder = Some(rows_so_far);
    let options = HeaderOptions {
        name: args.name.clone(),
        anonymous: args.anonymous,
        store_command: false,
        since: Some(started),
        is_quick: false,
    };
    let mut taken = execute::measure_run(planned, host, &interrupt, progress, None, options);
    taken.run.header.plan.reference.strict = args.strict;
    let record = Record::from_run(&taken.run);
    if let Some(result) = record.result() {
        taken.keep_result(result);
    }
    let is_written = write_summary(&taken, &record, args);
    let failed = !is_written || !taken.is_complete() || !measure.left_out.is_empty();
    Ok(interrupt.exit_code().unwrap_or(u8::from(failed)).into())
}

/// Writes the files and prints the summary; returns whether all could be done. Errors are printed.
fn write_summary(taken: &RecordedRun, record: &Record, args: &MeasureArgs) -> bool {
    let path = taken.path();
    let view = View { verbose: args.verbose, ..View::default() };
    let mut text = record.text(&taken.run, path.as_deref(), view);
    let mut errors = Vec::new();
    if let (Record::Measure(measured), Some(to)) = (record, &args.report) {
        let written = write_report(taken, measured, to)
            .context("the report is not written (`switchcost report` makes one of stored runs)");
        match (written, to) {
            (Ok(()), Destination::File(path)) => text.push(format!("report: {}\n", path.display())),
            (written, _) => errors.extend(written.err()),
        }
    }
    if let Some(to) = &args.share {
        let written = write_rows_to_share(taken, to)
            .with_context(|| format!("--share {to}: the file is not written"));
        match (written, to) {
            (Ok(()), Destination::File(path)) => {
                text.push(format!("to share: {}\n", path.display()));
            }
            (written, _) => errors.extend(written.err()),
        }
    }
    // The summary goes to standard error where a file has standard output.
    if !args.quiet {
        if args.uses_stdout() {
            say_text(text);
        } else {
            errors.extend(print_text(text).context("cannot print the summary").err());
        }
    }
    for error in &errors {
        print_message(&format!("error: {error:#}"));
    }
    errors.is_empty()
}

fn write_rows_to_share(taken: &RecordedRun, to: &Destination) -> Result<()> {
    write_output(&history::rows_to_share(&taken.run)?, to)
}

fn write_report(taken: &RecordedRun, record: &MeasureRecord, to: &Destination) -> Result<()> {
    let path = taken.path();
    let drawn = DrawnRun::from_parts(&taken.run, &record.parts, path.as_deref(), 0);
    report::write(drawn, &format!("{}.", answer(record)), to)
}
