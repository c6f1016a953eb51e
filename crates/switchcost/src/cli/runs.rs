//! `switchcost runs` as typed.

use std::time::Duration;

use clap::{Subcommand, ValueEnum};

use super::values::{Destination, above_zero, duration, share};

/// Formats that a run can be exported to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// The record: estimates, scaling law, verdicts, machine
    Json,
    /// One row a sample
    Csv,
    /// Go's benchmark format, a line for each case and round: for benchstat
    GoBench,
    /// OpenMetrics: for the textfile collector of node_exporter
    Openmetrics,
}

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
        /// More time than the run's own budget has left
        #[arg(long, value_name = "TIME", value_parser = duration)]
        budget: Option<Duration>,
        /// Another precision than the run's own
        #[arg(long, value_name = "SHARE", value_parser = share)]
        precision: Option<f64>,
        /// Rounds on top of those done, instead of the run's own limit
        #[arg(long, value_name = "COUNT", value_parser = above_zero::<u32>)]
        rounds: Option<u32>,
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
