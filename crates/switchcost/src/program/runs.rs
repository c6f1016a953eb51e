//! `switchcost runs`: lists, shows, exports, resumes and removes stored runs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use analysis::program::short;
use analysis::results::PUBLISHED_PREFIX;
use anyhow::{Context, Result, bail};
use clap::Subcommand;
use rundata::experiment::Experiment;
use rundata::run::StopReason;

use crate::base::failure::usage;
use crate::base::lines::Layout;
use crate::base::values::Destination;
use crate::engine::execute::{self, ResumeArgs};
use crate::engine::store::speed::results_of_files;
use crate::engine::store::{
    RunBrief, RunStore, StoredRun, find, find_all, header, read, read_each,
};
use crate::program::history::{self, HistoryArgs};
use crate::program::report::records::{self, is_record};
use crate::registry::measure::table::rows_so_far;
use crate::registry::{self, Record};
use crate::report::output::printed::{PrintRequest, PrintableRun};
use crate::report::output::{
    self, ExportFormat, FileOptions, OutputOptions, TableOptions, csv, exports, print_fitted,
    print_text, rows, trackers,
};
use crate::report::printout::printout;
use crate::report::table::Table;
use crate::report::terminal::View;

/// RUN is a name from `runs list`, the beginning of one, `last`, `last~1` for the one before, or a
/// file (a path with a slash, or ending in .jsonl). A name given by --name means all runs that were
/// stored under it.
#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// List the stored runs, oldest first
    #[command(
        visible_alias = "ls",
        after_long_help = "Examples:\n  switchcost runs list\n  switchcost runs list --history"
    )]
    List {
        /// List published figures of 1984 to today instead, which compare and report take
        #[arg(long)]
        history: bool,
        /// With --history: draw what a switch costs by year as an SVG file; - for standard output
        #[arg(long, value_name = "FILE|-", requires = "history")]
        svg: Option<Destination>,
        /// With --history: write the figures as JSON to a file, or - for standard output
        #[arg(long, value_name = "FILE|-", requires = "history", conflicts_with = "svg")]
        json: Option<Destination>,
        #[command(flatten)]
        tables: TableOptions,
    },
    /// Print the report of a run, as it was printed when it ended
    #[command(
        alias = "view",
        after_long_help = "Examples:\n  switchcost runs show last\n  switchcost runs show last~1 \
             --verbose --plot"
    )]
    Show {
        /// Name, start of a name, `last`, `last~1`, or a file
        run: String,
        /// Draw the charts below the table, in 80 columns or what the terminal has (COLUMNS,
        /// NO_COLOR)
        #[arg(long)]
        plot: bool,
        /// Print one number instead: ns, cycles, p99, switches-per-hop, ...; help lists all
        ///
        /// It is that of the case that the first line answers with. `ns:ring of 4` or `ns:members=4`
        /// names another.
        #[arg(long, value_name = "MEASURE[:CASE]", conflicts_with = "plot")]
        print: Option<PrintRequest>,
        #[command(flatten)]
        view: View,
    },
    /// Write a run in another format
    #[command(after_long_help = "Examples:\n  switchcost runs export last --format csv -o \
             samples.csv\n  switchcost runs export last --format summary-csv")]
    Export {
        /// Name, start of a name, `last`, `last~1`, or a file; or what `run` or `profile` wrote by
        /// --json
        #[arg(required = true, value_name = "RUN", hide_possible_values = true)]
        runs: Vec<String>,
        /// The format
        #[arg(long, value_enum, default_value_t = ExportFormat::Json)]
        format: ExportFormat,
        /// Write one number instead: ns, cycles, p99, switches-per-hop, ...; help lists all
        #[arg(long, value_name = "MEASURE[:CASE]", conflicts_with = "format")]
        print: Option<PrintRequest>,
        /// Where to; - is standard output
        #[arg(long, short, default_value = "-", value_name = "FILE|-")]
        output: Destination,
    },
    /// Go on with a run that was killed, interrupted or not precise enough
    #[command(after_long_help = "Example:\n  switchcost runs resume last --budget 60s")]
    Resume {
        /// Name, start of a name, `last`, `last~1`, or a file
        run: String,
        #[command(flatten)]
        more: ResumeArgs,
        /// Print nothing but errors
        #[arg(long, short)]
        quiet: bool,
        #[command(flatten)]
        view: View,
    },
    /// Remove stored runs
    #[command(
        visible_alias = "rm",
        alias = "delete",
        after_long_help = "Example:\n  switchcost runs remove last weekly"
    )]
    Remove {
        /// Names, starts of names, `last`, `last~1`, or files
        #[arg(required = true)]
        runs: Vec<String>,
    },
}

pub(crate) fn run(command: RunsCommand) -> Result<ExitCode> {
    match command {
        RunsCommand::List { history: true, svg, json, tables } => {
            history::run(&HistoryArgs { machine: None, json, svg, tables })
        }
        RunsCommand::List { tables, .. } => list(&RunStore::of_user()?, tables),
        RunsCommand::Show { run, print: Some(request), .. } => {
            write_number(&run, &request, &Destination::Stdout)
        }
        RunsCommand::Show { run, plot, view, print: None } => {
            match run.strip_prefix(PUBLISHED_PREFIX) {
                Some(machine) => {
                    let tables = TableOptions { wide: view.wide };
                    let machine = Some(machine.to_string());
                    history::run(&HistoryArgs { machine, json: None, svg: None, tables })
                }
                None => show(&run, plot, view),
            }
        }
        RunsCommand::Export { runs, print: Some(request), output, .. } => match &*runs {
            [name] => write_number(name, &request, &output),
            _ => Err(usage(format!("--print: {} runs: a number is of one", runs.len()))),
        },
        RunsCommand::Export { runs, format, output, print: None } => {
            output::check_destination("--output", &output)?;
            match (&*runs, format) {
                (_, ExportFormat::Rows) => export_rows(&runs, &output)?,
                (_, ExportFormat::Otava) => export_series(&runs, &output)?,
                ([name], _) if is_record(name) => export_record(name, format, &output)?,
                ([run], _) => export(&find_only(run)?.path, format, &output)?,
                _ => return Err(usage(format!("{} runs: a file has one", runs.len()))),
            }
            Ok(ExitCode::SUCCESS)
        }
        RunsCommand::Resume { run, more, quiet, view } => {
            let output = OutputOptions {
                files: FileOptions { quiet, ..FileOptions::default() },
                view,
                ..OutputOptions::default()
            };
            let path = find(&run)?.path;
            let taken = execute::resume(&path, &more, quiet, rows_so_far)?;
            registry::report_new_run(taken, &output)
        }
        RunsCommand::Remove { runs } => remove(&runs),
    }
}

/// Prints the reports of all runs of a name.
fn show(name: &str, plot: bool, view: View) -> Result<ExitCode> {
    for entry in find_all(name)? {
        let mut run = read(&entry.path)?;
        run.header.plan.reference.strict = view.strict;
        Record::from_run(&run).show(&run, &entry.path, view, plot)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes one number of a run, or of a record in JSON.
fn write_number(name: &str, request: &PrintRequest, to: &Destination) -> Result<ExitCode> {
    request.check()?;
    output::check_destination("--output", to)?;
    let Some(asked) = request.number() else { return Ok(ExitCode::SUCCESS) };
    if is_record(name) {
        let record = records::read(Path::new(name))?;
        let results = record.results(name)?;
        let printable = PrintableRun::from_results(&results);
        printable.with_used(|command| record.used(command)).write(asked, to)?;
    } else {
        let run = read(&find_only(name)?.path)?;
        Record::from_run(&run).write_number(&run, asked, to)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Most ids that the error for an ambiguous name lists, the newest first.
const MAX_LISTED_IDS: usize = 5;

/// Finds the only run of a name, for formats whose file has one run.
fn find_only(name: &str) -> Result<StoredRun> {
    let mut found = find_all(name)?;
    if found.len() > 1 {
        let newest = found.iter().rev().take(MAX_LISTED_IDS);
        let ids: Vec<&str> = newest.map(|entry| &*entry.name).collect();
        return Err(usage(format!(
            "{} runs are called '{name}', and a file has one: name one by its id ({})",
            found.len(),
            ids.join(", ")
        )));
    }
    found.pop().context("no run was named")
}

/// Writes a run in another format. Samples whose rows are in the order of the file are written as
/// they are read: a file may be larger than the memory.
fn export(path: &Path, format: ExportFormat, to: &Destination) -> Result<()> {
    let plan = header(path)?.plan;
    if format != ExportFormat::Csv || !csv::keeps_order(&plan) {
        return registry::export(&read(path)?, format, to);
    }
    output::write_output_with(to, |to| {
        let mut rows = csv::SampleRows::new(&plan, to)?;
        read_each(path, |sample| rows.write_sample(&sample))?;
        rows.finish()
    })
}

/// Writes what `run` or `profile` wrote by --json in another format.
fn export_record(name: &str, format: ExportFormat, to: &Destination) -> Result<()> {
    let record = records::read(Path::new(name))?;
    let results = record.results(name)?;
    let bytes = match format {
        ExportFormat::Openmetrics => {
            exports::openmetrics_beside(&results, &record.further_gauges(&results))
        }
        _ => registry::export_results(&results, None, format)?,
    };
    output::write_output(&bytes, to)
}

/// Writes a row for each run: a series. A name stands for all runs that were stored under it, or for
/// the record of a command.
fn export_series(names: &[String], to: &Destination) -> Result<()> {
    let (mut series, mut paths) = (Vec::new(), Vec::new());
    for name in names {
        if is_record(name) {
            series.push(records::read(Path::new(name))?.results(name)?);
        } else {
            paths.extend(find_all(name)?.into_iter().map(|entry| entry.path));
        }
    }
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    for results in results_of_files(&paths) {
        series.push(results?);
    }
    output::write_output(&trackers::otava(&series)?, to)
}

/// Writes a line for each run; for one that cannot be read, the line says why.
fn export_rows(names: &[String], to: &Destination) -> Result<()> {
    output::write_output_with(to, |to| {
        for name in names {
            match find_all(name) {
                Ok(found) => {
                    for entry in found {
                        to.write_all(&rows::dataset_line(read(&entry.path))?)?;
                    }
                }
                Err(error) => to.write_all(&rows::dataset_line(Err(error))?)?,
            }
        }
        Ok(())
    })
}

/// Width of the columns of commands and results, in letters.
#[derive(Clone, Copy)]
struct ListWidths {
    command: usize,
    result: usize,
}

/// Widths on a terminal of [`NARROW_COLUMNS`] or fewer.
const NARROW_WIDTHS: ListWidths = ListWidths { command: 18, result: 24 };

/// Columns of a terminal that is not wide.
const NARROW_COLUMNS: usize = 80;

impl ListWidths {
    /// Returns the widths with which a run takes one line, as far as possible.
    fn new(is_wide: bool) -> Self {
        if is_wide {
            return Self { command: usize::MAX, result: usize::MAX };
        }
        let spare = Layout::terminal().table.saturating_sub(NARROW_COLUMNS) / 2;
        Self { command: NARROW_WIDTHS.command + spare, result: NARROW_WIDTHS.result + spare }
    }
}

/// A stored run as it is listed.
struct ListedRun<'a> {
    entry: &'a StoredRun,
    /// The name of the run as it may be typed.
    short_name: String,
    /// Facts of the run; an error where the file cannot be read.
    brief: Result<RunBrief>,
}

fn list(folder: &RunStore, tables: TableOptions) -> Result<ExitCode> {
    let entries = folder.entries()?;
    let mut runs = Vec::new();
    for (entry, short_name) in entries.iter().zip(short_names(&entries)) {
        runs.push(ListedRun { entry, short_name, brief: entry.brief() });
    }
    let (now, widths) = (SystemTime::now(), ListWidths::new(tables.wide));
    let mut rows = Vec::new();
    for run in &runs {
        rows.push(match &run.brief {
            Ok(brief) => [
                age(&brief.header.started, now),
                listed_name(run, brief, &runs),
                cut(&command(brief), widths.command),
                cut(&state(run.entry, brief), widths.result),
                brief.header.host.clone().unwrap_or("-".to_string()),
            ],
            Err(error) => {
                let [age, command, host] = ["-"; 3].map(String::from);
                let result = cut(&format!("{error:#}"), widths.result);
                [age, run.entry.name.clone(), command, result, host]
            }
        });
    }
    let table = Table::new(["age", "name", "command", "result", "host"], rows);
    let table = table.texts(|_| true).first_to_go(&["host", "command"]);
    let has_rough = runs.iter().any(|run| {
        let result = run.brief.as_ref().ok().and_then(|brief| brief.result.as_ref());
        result.is_some_and(|result| result.is_rough)
    });
    let legend = if has_rough { "\n~ not at full speed: no comparison uses it\n" } else { "" };
    let text = if table.is_empty() {
        printout![format!("no runs in {}\n", folder.path.display())]
    } else {
        printout![table, "\n", legend]
    };
    print_fitted(text, tables.layout()).context("cannot print the list")?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the name that a run was given, with its own where several have that; else its own.
fn listed_name(run: &ListedRun, brief: &RunBrief, runs: &[ListedRun]) -> String {
    let Some(name) = &brief.header.name else { return run.short_name.clone() };
    let mut count = 0;
    for listed in runs {
        if listed.brief.as_ref().is_ok_and(|brief| brief.header.name.as_ref() == Some(name)) {
            count += 1;
        }
    }
    if count > 1 { format!("{name} ({})", run.short_name) } else { name.clone() }
}

/// Returns names as short as they may be typed: the second in which a run began, or the moment where
/// others began in that second; the whole name where others began at that moment. Entries are sorted
/// by name, so that others of that moment stand beside each.
fn short_names(entries: &[StoredRun]) -> Vec<String> {
    let mut names = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let moment = entry.name.find('Z').map_or(entry.name.len(), |end| end + 1);
        let second = short(&entry.name).len().min(moment);
        let before = index.checked_sub(1).and_then(|before| entries.get(before));
        let after = entries.get(index + 1);
        let is_taken = |beginning: &str| {
            before.is_some_and(|entry| entry.name.starts_with(beginning))
                || after.is_some_and(|entry| entry.name.starts_with(beginning))
        };
        let beginnings = [&entry.name[..second], &entry.name[..moment]];
        let free = beginnings.into_iter().find(|beginning| !is_taken(beginning));
        names.push(free.unwrap_or(&entry.name).to_string());
    }
    names
}

/// Returns the time since a moment in RFC 3339: `3 min`; a dash where it is no moment, or in the
/// future.
fn age(started: &str, now: SystemTime) -> String {
    let began = humantime::parse_rfc3339(started).ok();
    let Some(passed) = began.and_then(|began| now.duration_since(began).ok()) else {
        return "-".to_string();
    };
    match passed.as_secs() {
        seconds @ ..60 => format!("{seconds} s"),
        seconds @ ..3600 => format!("{} min", seconds / 60),
        seconds @ ..172_800 => format!("{} h", seconds / 3600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

/// Returns the command as it was typed, without the program's own name; the experiment where that
/// was left out (`--anonymous`).
fn command(brief: &RunBrief) -> String {
    let typed = brief.header.invocation.get(1..).unwrap_or_default();
    if typed.is_empty() { brief.header.plan.experiment.clone() } else { shell_words::join(typed) }
}

/// Cuts a text to so many letters, the last of which are dots.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_string();
    }
    let beginning: String = text.chars().take(most - 3).collect();
    beginning + "..."
}

/// Returns the result of a run, or why it has none.
fn state(entry: &StoredRun, brief: &RunBrief) -> String {
    if entry.is_running() {
        return "running".to_string();
    }
    let is_trace = brief.header.plan.experiment == Experiment::Trace.name();
    match brief.end {
        // A trace has no rounds to finish: nothing resumes it, and what it counted stands.
        None | Some(StopReason::Interrupted) if is_trace => match &brief.result {
            Some(result) => result.text.clone(),
            None => "incomplete".to_string(),
        },
        None => "killed (resume)".to_string(),
        Some(StopReason::Interrupted) => "interrupted (resume)".to_string(),
        Some(StopReason::Failed) => "failed".to_string(),
        Some(StopReason::Precise | StopReason::BudgetSpent | StopReason::RoundsDone) => {
            match &brief.result {
                Some(result) => result.text.clone(),
                None => "complete".to_string(),
            }
        }
    }
}

/// Removes runs. All are found and checked before any is removed, so that a mistyped name removes
/// none.
fn remove(names: &[String]) -> Result<ExitCode> {
    let mut entries: Vec<StoredRun> = Vec::new();
    for name in names {
        for entry in find_all(name)? {
            // Two names may stand for one run.
            if !entries.iter().any(|known| known.path == entry.path) {
                entries.push(entry);
            }
        }
    }
    for entry in &entries {
        if entry.is_running() {
            bail!("{} is still running: stop it first", entry.name);
        }
        // A file that is no run, named by mistake, is kept.
        read_each(&entry.path, |_| Ok(()))?;
    }
    for entry in &entries {
        std::fs::remove_file(&entry.path)
            .with_context(|| format!("cannot remove {}", entry.path.display()))?;
        let line = format!("removed {}\n", entry.path.display());
        print_text(&line).context("cannot print what was removed")?;
    }
    Ok(ExitCode::SUCCESS)
}
