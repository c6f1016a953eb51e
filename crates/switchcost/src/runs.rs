//! `switchcost runs`: what is stored.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use charts::printable;
use clap::Subcommand;
use comfy_table::{Table, presets};
use model::run::{End, StopReason};

use crate::execute::{self, More};
use crate::experiments::{self, Record};
use crate::output::{self, ExportFormat, Output};
use crate::store::{Entry, Folder, read};
use crate::values::Destination;

/// RUN is a name from `runs list`, the start of one that no other shares, `last`, or a file.
#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// List the stored runs, oldest first
    List,
    /// Print the report of a run, by what is known of its CPU's full speed now
    Show {
        /// Name, start of a name, `last`, or a file
        run: String,
        /// Draw the charts below the table, in 80 columns or what the terminal has (COLUMNS, NO_COLOR)
        #[arg(long)]
        plot: bool,
    },
    /// Write a run in another format
    Export {
        /// Name, start of a name, `last`, or a file
        run: String,
        /// The format
        #[arg(long, value_enum, default_value_t = ExportFormat::Json)]
        format: ExportFormat,
        /// Where to; - is standard output
        #[arg(long, short, default_value = "-", value_name = "FILE|-")]
        output: Destination,
    },
    /// Go on with a run that was killed, interrupted or not precise enough
    Resume {
        /// Name, start of a name, `last`, or a file
        run: String,
        #[command(flatten)]
        more: More,
        /// No progress and no table
        #[arg(long, short)]
        quiet: bool,
    },
    /// Remove stored runs
    Remove {
        /// Names, starts of names, `last`, or files
        #[arg(required = true)]
        runs: Vec<String>,
    },
}

pub(crate) fn run(command: RunsCommand) -> Result<ExitCode> {
    let folder = Folder::of_user()?;
    match command {
        RunsCommand::List => list(&folder),
        RunsCommand::Show { run, plot } => {
            let path = folder.find(&run)?.path;
            let run = read(&path)?;
            Record::of(&run).show(&run, &path, plot)?;
            Ok(ExitCode::SUCCESS)
        }
        RunsCommand::Export { run, format, output } => {
            let run = read(&folder.find(&run)?.path)?;
            Record::of(&run).export(&run, format, &output)?;
            Ok(ExitCode::SUCCESS)
        }
        RunsCommand::Resume { run, more, quiet } => {
            let output = Output { json: None, csv: None, plot: false, quiet };
            experiments::tell(&execute::resume(&folder.find(&run)?.path, &more, quiet)?, &output)
        }
        RunsCommand::Remove { runs } => remove(&folder, &runs),
    }
}

fn list(folder: &Folder) -> Result<ExitCode> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["name", "experiment", "cases", "rounds", "samples", "state"]);
    for entry in folder.entries()? {
        table.add_row(match read(&entry.path) {
            Ok(run) => [
                entry.name.clone(),
                run.header.plan.experiment.to_string(),
                run.header.plan.cases.len().to_string(),
                run.rounds().to_string(),
                run.samples.len().to_string(),
                state(&entry, run.end.as_ref()).to_string(),
            ],
            // It is still there.
            Err(error) => {
                let [a, b, c, d] = ["-"; 4].map(String::from);
                [entry.name, a, b, c, d, format!("{error:#}")]
            }
        });
    }
    let text = match table.is_empty() {
        true => format!("no runs in {}\n", folder.path.display()),
        false => format!("{table}\n"),
    };
    output::print(printable(&text).as_bytes()).context("cannot print the list")?;
    Ok(ExitCode::SUCCESS)
}

fn state(entry: &Entry, end: Option<&End>) -> &'static str {
    match end.map(|end| end.reason) {
        _ if entry.is_running() => "running",
        None => "killed (can be resumed)",
        Some(StopReason::Interrupted) => "interrupted (can be resumed)",
        Some(StopReason::Failed) => "failed",
        Some(StopReason::Precise | StopReason::BudgetSpent | StopReason::RoundsDone) => "complete",
    }
}

fn remove(folder: &Folder, runs: &[String]) -> Result<ExitCode> {
    // All are found and looked at before any is removed: a slip must not leave half of it done.
    let entries: Vec<Entry> = runs.iter().map(|run| folder.find(run)).collect::<Result<_>>()?;
    for entry in &entries {
        if entry.is_running() {
            bail!("{} is still running: stop it first", entry.name);
        }
        // Whoever names another kind of file by mistake keeps it.
        read(&entry.path)?;
    }
    for entry in &entries {
        std::fs::remove_file(&entry.path)
            .with_context(|| format!("cannot remove {}", entry.path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}
