//! `switchcost` alone: what a switch costs here in a few seconds, and what to type next.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Command, FromArgMatches};

use crate::engine::execute;
use crate::engine::setting::LocalHost;
use crate::experiments::ring::{RingArgs, plan};
use crate::registry::Record;
use crate::report::machine_line::machine_line;
use crate::report::output::print_text;
use crate::report::printout::Printout;
use crate::report::terminal;

/// The command that it stands for: the ring of two for five seconds.
const COMMAND: [&str; 5] = ["ring", "--members", "2", "--budget", "5s"];

/// Meaning of the figure.
const MEANING: &str = "That is the time to put one process to sleep and let the next one run, on \
     one CPU, without what it then does. A server pays it for each wake-up, often several for a \
     request.";

/// Commands to try next.
const NEXT: &str = "\
Next:
  switchcost measure -o report.html         all that matters in a minute, as a page
  switchcost ring                           does it grow with the number of processes?
  switchcost trace --pid PID                what switches cost a running service (root)
  switchcost compare --ab '' 'nice'         two settings side by side
  switchcost compare history:sun-4/280 last a machine of 1992 and this one
  switchcost --help                         all commands
";

/// Measures the ring of two and prints its cost. The run is stored, as every run is.
pub(crate) fn run() -> Result<ExitCode> {
    let matches = RingArgs::augment_args(Command::new("ring")).get_matches_from(COMMAND);
    let args = RingArgs::from_arg_matches(&matches).context("the plan of the first answer")?;
    let host = LocalHost::detect()?;
    let planned = plan::plan(&args, &host)?;
    let mut taken = execute::new_run(planned, host, &args.output)?;
    let record = Record::from_run(&taken.run);
    if let Some(result) = record.result() {
        taken.keep_result(result);
    }
    let header = &taken.run.header;
    let tasks = taken.run.competing_tasks.as_ref();
    let line = machine_line(&header.plan, &header.machine, tasks, record.common().noise);
    let headline = terminal::sentence(taken.run.unfinished(), record.headline());
    let parts = [headline.into(), MEANING.into(), line.into(), NEXT.into()];
    print_text(Printout::paragraphs(parts)).context("cannot print the answer")?;
    Ok(taken.exit_code())
}
