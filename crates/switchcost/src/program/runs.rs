//! `switchcost runs`: what is stored.

use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use analysis::program::short;
use analysis::results::PUBLISHED_PREFIX;
use anyhow::{Context, Result, bail};
use clap::Subcommand;
use rundata::run::StopReason;

use crate::base::failure::usage;
use crate::base::lines::Layout;
use crate::base::values::Destination;
use crate::engine::execute::{self, ResumeArgs};
use crate::engine::store::{
    RunBrief, RunStore, StoredRun, find, find_all, header, read, read_each,
};
use crate::program::history::{self, HistoryArgs};
use crate::registry::measure::table::rows_so_far;
use crate::registry::{self, Record};
use crate::report::output::{
    self, ExportFormat, FileOptions, OutputOptions, TableOptions, csv, print_fitted, print_text,
    rows,
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
        #[command(flatten)]
        view: View,
    },
    /// Write a run in another format
    #[command(after_long_help = "Examples:\n  switchcost runs export last --format csv -o \
             samples.csv\n  switchcost runs export last --format summary-csv")]
    Export {
        /// Name, start of a name, `last`, `last~1`, or a file
        #[arg(required = true, value_name = "RUN", hide_possible_values = true)]
        runs: Vec<String>,
        /// The format
        #[arg(long, value_enum, default_value_t = ExportFormat::Json)]
        format: ExportFormat,
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
        RunsCommand::Show { run, view, .. } if run.starts_with(PUBLISHED_PREFIX) => {
            let machine = run.strip_prefix(PUBLISHED_PREFIX).map(str::to_string);
            let tables = TableOptions { wide: view.wide };
            history::run(&HistoryArgs { machine, json: None, svg: None, tables })
        }
        RunsCommand::Show { run, plot, view } => {
            for entry in find_all(&run)? {
                let mut run = read(&entry.path)?;
                run.header.plan.reference.strict = view.strict;
                Record::from_run(&run).show(&run, &entry.path, view, plot)?;
            }
            Ok(ExitCode::SUCCESS)
        }
        RunsCommand::Export { runs, format, output } => {
            output::check_destination("--output", &output)?;
            match (&*runs, format) {
                (_, ExportFormat::Rows) => export_all(&runs, &output)?,
                ([run], _) => export(&only(run)?.path, format, &output)?,
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
            registry::report_new_run(execute::resume(&path, &more, quiet, rows_so_far)?, &output)
        }
        RunsCommand::Remove { runs } => remove(&runs),
    }
}

/// Ids that an ambiguous name is told to stand for, the newest first.
const MOST_NAMES: usize = 5;

/// The only run that is meant: a file of this format has one.
fn only(name: &str) -> Result<StoredRun> {
    let mut all = find_all(name)?;
    if all.len() > 1 {
        let newest = all.iter().rev().take(MOST_NAMES);
        let names: Vec<&str> = newest.map(|entry| &*entry.name).collect();
        return Err(usage(format!(
            "{} runs are called '{name}', and a file has one: name one by its id ({})",
            all.len(),
            names.join(", ")
        )));
    }
    all.pop().context("no run was named")
}

/// Samples whose rows are in the order of the file are written as they are read: a file may be
/// larger than the memory.
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

/// A line of each, whatever one of them is: of one that cannot be read, why.
fn export_all(runs: &[String], to: &Destination) -> Result<()> {
    output::write_output_with(to, |to| {
        for name in runs {
            match find_all(name) {
                Ok(all) => {
                    for entry in all {
                        to.write_all(&rows::dataset_line(read(&entry.path))?)?;
                    }
                }
                Err(error) => to.write_all(&rows::dataset_line(Err(error))?)?,
            }
        }
        Ok(())
    })
}

/// Letters of a command and of a result in the list, on a terminal of 80 columns or fewer.
const LEAST_LETTERS: [usize; 2] = [18, 24];

/// Columns of a terminal that is not wide.
const NARROW: usize = 80;

fn list(folder: &RunStore, tables: TableOptions) -> Result<ExitCode> {
    let entries = folder.entries()?;
    let (names, now) = (short_names(&entries), SystemTime::now());
    let briefs: Vec<Result<RunBrief>> = entries.iter().map(StoredRun::brief).collect();
    let given: Vec<Option<&str>> = briefs
        .iter()
        .map(|brief| brief.as_ref().ok().and_then(|brief| brief.header.name.as_deref()))
        .collect();
    // Of several runs with one name each is addressed by its own.
    let is_shared = |name: &str| given.iter().filter(|other| **other == Some(name)).count() > 1;
    // A run is a line, as far as that goes.
    let [most_of_command, most] = if tables.wide {
        [usize::MAX; 2]
    } else {
        LEAST_LETTERS
            .map(|least| (least + Layout::terminal().table.saturating_sub(NARROW) / 2).max(least))
    };
    let shown = |text: String| cut(&text, most);
    let row = |((entry, brief), short): ((&StoredRun, &Result<RunBrief>), String)| match brief {
        Ok(brief) => [
            age(&brief.header.started, now),
            match brief.header.name.clone() {
                Some(name) if is_shared(&name) => format!("{name} ({short})"),
                Some(name) => name,
                None => short,
            },
            cut(&command(brief), most_of_command),
            shown(state(entry, brief)),
            brief.header.host.clone().unwrap_or("-".to_string()),
        ],
        // It is still there.
        Err(error) => {
            let [age, command, host] = ["-"; 3].map(String::from);
            [age, entry.name.clone(), command, shown(format!("{error:#}")), host]
        }
    };
    let table = Table::new(
        ["age", "name", "command", "result", "host"],
        entries.iter().zip(&briefs).zip(names).map(row),
    );
    let table = table.texts(|_| true).first_to_go(&["host", "command"]);
    let mut results = briefs.iter().flatten().filter_map(|brief| brief.result.as_ref());
    let is_rough = results.any(|result| result.is_rough);
    let legend = if is_rough { "\n~ not at full speed: no comparison uses it\n" } else { "" };
    let text = if table.is_empty() {
        printout![format!("no runs in {}\n", folder.path.display())]
    } else {
        printout![table, "\n", legend]
    };
    print_fitted(text, tables.layout()).context("cannot print the list")?;
    Ok(ExitCode::SUCCESS)
}

/// Names as short as they may be typed: the second in which a run began, or its moment where others
/// began in that second, where no other run began then.
fn short_names(entries: &[StoredRun]) -> Vec<String> {
    let mut names = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let moment = entry.name.find('Z').map_or(entry.name.len(), |end| end + 1);
        let second = short(&entry.name).len().min(moment);
        let beginnings = [second, moment].map(|length| &entry.name[..length]);
        // Sorted by name: others of that moment stand beside it.
        let beside = index.checked_sub(1).into_iter().chain([index + 1]);
        let neighbours: Vec<&StoredRun> = beside.filter_map(|number| entries.get(number)).collect();
        let is_alone = |beginning: &&&str| {
            !neighbours.iter().any(|neighbour| neighbour.name.starts_with(**beginning))
        };
        let name = beginnings.iter().find(is_alone).copied().unwrap_or(&entry.name);
        names.push(name.to_string());
    }
    names
}

/// `3 min` since a moment in RFC 3339; a dash where it is none, or in the future.
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

/// As it was typed, without the program's own name; what was measured where that was left out.
fn command(brief: &RunBrief) -> String {
    let typed = brief.header.invocation.get(1..).unwrap_or_default();
    match typed {
        [] => brief.header.plan.experiment.clone(),
        words => shell_words::join(words),
    }
}

/// At most so many letters, the last of them dots where some are left out.
fn cut(text: &str, most: usize) -> String {
    match text.chars().count() <= most {
        true => text.to_string(),
        false => text.chars().take(most - 3).chain("...".chars()).collect(),
    }
}

fn state(entry: &StoredRun, brief: &RunBrief) -> String {
    let state = match brief.end {
        _ if entry.is_running() => "running",
        None => "killed (resume)",
        Some(StopReason::Interrupted) => "interrupted (resume)",
        Some(StopReason::Failed) => "failed",
        Some(StopReason::Precise | StopReason::BudgetSpent | StopReason::RoundsDone) => {
            return match &brief.result {
                Some(result) => result.text.clone(),
                None => "complete".to_string(),
            };
        }
    };
    state.to_string()
}

fn remove(runs: &[String]) -> Result<ExitCode> {
    // All are found and looked at before any is removed: a slip must not leave half of it done.
    let mut entries: Vec<StoredRun> = Vec::new();
    for name in runs {
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
        // Whoever names another kind of file by mistake keeps it.
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
