//! Output of `switchcost run` once its commands have run: the printed report, and the files.

use std::path::Path;

use analysis::program::{CostProfile, WorkingSet};
use anyhow::Result;
use launcher::CommandRun;
use rundata::reading::Reading;

use super::args::RunArgs;
use super::findings::{CommandSummary, FIGURE_SOURCES, SwitchOverhead};
use super::gate::CommandGate;
use super::hyperfine::{ExportedCommand, benchmark_results};
use super::markdown::markdown;
use super::metrics::further_gauges;
use super::page::build_page;
use super::plan::CommandPlan;
use super::record::{CommandUseRecord, RecordOrigin};
use super::results::build_results;
use super::table;
use crate::base::values::Destination;
use crate::engine::execute;
use crate::programs::watch::{ChosenProfile, quick};
use crate::report::output::csv::{self, known};
use crate::report::output::printed::{PrintableRun, PrintedMeasure};
use crate::report::output::{FileOptions, all_written, exports, say_fitted, to_json, write_output};
use crate::report::printout::printout;

/// Name of results that are of no file.
const RECORD_NAME: &str = "run";

/// A series whose runs are done.
pub(super) struct FinishedSeries {
    pub(super) plan: CommandPlan,
    pub(super) runs: Vec<CommandRun>,
    /// Names of the commands in hyperfine's formats.
    pub(super) exported: Vec<ExportedCommand>,
    /// Time of the start in UTC (RFC 3339).
    pub(super) started: String,
    /// True if a signal asked to stop.
    pub(super) is_interrupted: bool,
    /// Why the exit code is no verdict of the gate: the series did not come to its end.
    pub(super) unjudged: Option<String>,
    /// Verdict of --fail-above, or the comparison of --markdown.
    pub(super) gate: Option<CommandGate>,
}

impl FinishedSeries {
    /// Prints the report and writes all files that were asked for; returns whether all could be
    /// written. Errors are printed, and do not keep others from being written.
    ///
    /// `stored_plan` and `stored_gate` replace the printed ones in JSON. `profile` is the cost
    /// profile that was named.
    pub(super) fn write(
        self,
        args: &RunArgs,
        profile: Option<&ChosenProfile>,
        stored_plan: CommandPlan,
        stored_gate: Option<CommandGate>,
    ) -> bool {
        let FileOptions { json, csv, .. } = &args.output.files;
        let is_quiet = args.is_quiet();
        let mut outputs = Vec::new();
        let results = benchmark_results(&self.exported, &self.runs);
        for (format, place) in args.exports() {
            outputs.push((place, format.render(&results, args.table_choices())));
        }
        if let Some(place) = csv {
            outputs.push((place, run_rows(&self.runs)));
        }
        let (mut report_written, mut judgements_written, mut number_written) =
            (Ok(()), Ok(()), Ok(()));
        if let Some(gate) = &self.gate {
            let judgements = gate.judgements(&self.plan, self.unjudged.as_deref());
            judgements_written = args.judgements.write("run", &judgements);
        }
        // Reading the machine and the estimate take time.
        let asked = args.output.files.number();
        let is_file_asked = json.is_some()
            || args.markdown.is_some()
            || args.openmetrics.is_some()
            || args.report.report.is_some();
        if is_file_asked || asked.is_some() || !is_quiet {
            let (mut record, gate) = self.into_record(args, profile);
            if let (Some(place), Some(gate)) = (&args.markdown, &gate) {
                outputs.push((place, Ok(markdown(&record, gate).into_bytes())));
            }
            if let Some(place) = &args.openmetrics {
                outputs.push((place, Ok(openmetrics(&record))));
            }
            record.gate = args.fail_above.and(gate);
            number_written = asked.map_or(Ok(()), |asked| print_number(&record, asked));
            if !record.runs.is_empty() {
                let report_place = args.report.write(|| build_page(&record));
                if !is_quiet {
                    let report_place = report_place.as_deref().unwrap_or_default();
                    let table = table::text(&record, args.output.verbose, args.table_choices());
                    let text = printout![table, report_place];
                    say_fitted(text, args.output.tables.layout());
                }
                report_written = report_place.map(|_| ());
            }
            if let Some(place) = json {
                record.store_as(stored_plan, stored_gate);
                outputs.push((place, to_json(&record)));
            }
        }
        let mut results = Vec::new();
        for (place, bytes) in outputs {
            results.push(bytes.and_then(|bytes| write_output(&bytes, place)));
        }
        results.extend([judgements_written, report_written, number_written]);
        all_written(results)
    }

    /// Builds the record, and returns the gate beside it.
    fn into_record(
        self,
        args: &RunArgs,
        profile: Option<&ChosenProfile>,
    ) -> (CommandUseRecord, Option<CommandGate>) {
        let FileOptions { json, anonymous, store_command, .. } = &args.output.files;
        let (mut machine, accounting) = if json.is_some() {
            probe::machine::read_with_accounting(Path::new("/"))
        } else {
            probe::machine::accounting(Path::new("/"))
        };
        let (mut host, mut invocation) = (None, Vec::new());
        if *anonymous {
            machine = execute::anonymous(machine);
        } else {
            host = Some(execute::host());
            invocation = execute::invocation(*store_command);
        }
        let origin = RecordOrigin {
            started: self.started,
            host,
            invocation,
            build: execute::build_info(),
            machine,
            accounting,
        };
        let mut record = CommandUseRecord::new(self.plan, self.runs, origin);
        if !args.no_estimate {
            add_estimates(&mut record, self.is_interrupted, *anonymous, profile);
        }
        (record, self.gate)
    }
}

/// Returns the record as OpenMetrics.
fn openmetrics(record: &CommandUseRecord) -> Vec<u8> {
    let results = build_results(record, RECORD_NAME.to_string());
    exports::openmetrics_beside(&results, &further_gauges(record, &results))
}

/// Prints one number of a command.
fn print_number(record: &CommandUseRecord, asked: &PrintedMeasure) -> Result<()> {
    let results = build_results(record, RECORD_NAME.to_string());
    let printable = PrintableRun::from_results(&results);
    printable.with_used(|command| record.used(command)).write(asked, &Destination::Stdout)
}

/// Columns of CSV before those of the figures.
const FIRST_COLUMNS: [&str; 6] =
    ["experiment", "command", "round", "interrupted", "exit_code", "signal"];

/// Columns of CSV behind those of the figures.
const LAST_COLUMNS: [&str; 2] = ["orphans_ended", "left_behind"];

/// Returns all columns of CSV.
pub(super) fn columns() -> Vec<&'static str> {
    let figures = FIGURE_SOURCES.map(|source| source.name);
    [&FIRST_COLUMNS[..], &figures, &LAST_COLUMNS].concat()
}

/// Returns a row of CSV for each run, below the columns.
fn run_rows(runs: &[CommandRun]) -> Result<Vec<u8>> {
    csv::write(&columns(), runs.iter().map(run_row))
}

fn run_row(run: &CommandRun) -> Vec<String> {
    let ending = run.used.ending;
    let first: [String; FIRST_COLUMNS.len()] = [
        "run".to_string(),
        run.command.to_string(),
        run.round.to_string(),
        run.interrupted.to_string(),
        known(ending.code().ok()),
        known(ending.code().err()),
    ];
    let figures = FIGURE_SOURCES.map(|source| known((source.read)(&run.used).known()));
    let orphans = &run.used.orphans;
    let last: [String; LAST_COLUMNS.len()] =
        [orphans.ended.to_string(), known(orphans.left_behind.known().map(Vec::len))];
    [&first[..], &figures, &last].concat()
}

/// Adds the estimated overhead of their switches to all commands, by the named profile or by the
/// best that is stored. If there is none, a quick one is measured, unless a signal asked to stop.
fn add_estimates(
    record: &mut CommandUseRecord,
    is_interrupted: bool,
    anonymous: bool,
    named: Option<&ChosenProfile>,
) {
    let mut resident_bytes: f64 = 0.0;
    for summary in &record.commands {
        resident_bytes = resident_bytes.max(summary.median("max_resident_bytes").unwrap_or(0.0));
    }
    let working_set = WorkingSet::within(resident_bytes as u64);
    let mut chosen = match named {
        Some(named) => Ok(named.clone()),
        None => quick::stored_profile(working_set),
    };
    let mut notices = Vec::new();
    let has_switches = record.commands.iter().any(CommandSummary::has_switches);
    if chosen.is_err() && !is_interrupted && has_switches {
        let measured = quick::measure_quickly(anonymous);
        chosen = quick::stored_profile(working_set);
        let notice = describe_quick_measurement(measured, &chosen);
        chosen = chosen.map_err(|_| notice.clone());
        notices.push(notice);
    }
    if let Ok(chosen) = &chosen {
        notices.extend_from_slice(&chosen.notices);
    }
    let profile: Reading<CostProfile> = chosen.map(|chosen| chosen.profile).into();
    for summary in &mut record.commands {
        let overhead = SwitchOverhead::estimate(summary, profile.clone(), notices.clone());
        summary.switching = Some(overhead);
    }
}

/// Describes what a quick measurement has given.
fn describe_quick_measurement(
    measured: Result<()>,
    chosen: &Result<ChosenProfile, String>,
) -> String {
    match (measured, chosen) {
        (Ok(()), Ok(_)) => "no stored cost profile could be used, so a quick one was measured; \
                            `switchcost cost` makes a better one"
            .to_string(),
        (Ok(()), Err(reason)) => {
            format!("the quick measurement cannot be used as a profile: {reason}")
        }
        (Err(error), _) => format!("the quick measurement failed: {error:#}"),
    }
}
