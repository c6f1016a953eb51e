//! The registry: each experiment's command, and what this program makes of the runs of each.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use charts::{Body, Figure, Look, Role, printable, terminal as plot};
use model::experiment::Takes;
use model::findings::{self, Findings, headlines_ns};
use model::run::Run;
use model::subject::Subject;
use model::summary::worst_precision;
use model::{record, response};
use schemars::JsonSchema;
use serde::Serialize;

use crate::clock::ClockCommand;
use crate::cost::CostArgs;
use crate::execute::{self, Taken};
use crate::failure::say;
use crate::figures::rounds;
use crate::output::{self, ExportFormat, Output, csv, exports, print, to_json};
use crate::response::ResponseArgs;
use crate::ring::{RingArgs, launches};
use crate::setting::{Here, Planned};
use crate::terminal::{self, Common, Text};
use crate::values::Destination;
use crate::{clock, cost, interference, ring, watch};

pub(crate) fn ring(args: &RingArgs) -> Result<ExitCode> {
    match args.launches {
        1 => measured(&args.output, |here| ring::plan::plan(args, here)),
        _ => launches::take(args),
    }
}

pub(crate) fn cost(args: &CostArgs) -> Result<ExitCode> {
    let (of, output) = (&args.interference, &args.output);
    if args.program.pid.is_some() || !args.program.command.is_empty() {
        output.check()?;
        return watch::run(&args.program, output);
    }
    measured(output, |here| match of.interference {
        true => interference::plan::plan(of, args.laps, &args.effort, here),
        false => cost::plan::plan(args, here),
    })
}

pub(crate) fn response(args: &ResponseArgs) -> Result<ExitCode> {
    measured(&args.common.output, |here| crate::response::plan::plan(args, here))
}

pub(crate) fn clock(command: &ClockCommand) -> Result<ExitCode> {
    measured(&command.common().output, |here| clock::plan::plan(command, here))
}

/// Measures a plan, stores it, prints it; looks first whether the outputs can be written.
fn measured(output: &Output, plan: impl FnOnce(&Here) -> Result<Planned>) -> Result<ExitCode> {
    output.check()?;
    let here = Here::detect()?;
    let planned = plan(&here)?;
    tell(&execute::new_run(planned, here, output.quiet)?, output)
}

/// Writes the outputs and the report of a run that has just been measured.
pub(crate) fn tell(taken: &Taken, output: &Output) -> Result<ExitCode> {
    Record::of(&taken.run).write(&taken.run, taken.path.as_deref(), output)?;
    // Asked for last: a report takes seconds, in which somebody may lose patience.
    Ok(taken.exit_code())
}

/// What `--json` writes of a run, and what `runs export` does.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "AnyRecord")]
pub(crate) enum Record {
    /// Of `ring` and `cost`.
    Rings(Box<record::Record>),
    /// Of `clock` and `cost --interference`.
    Trials(Box<findings::Record>),
    /// Of `response`.
    Response(Box<response::Record>),
}

impl Record {
    pub(crate) fn of(run: &Run) -> Self {
        match run.header.plan.experiment.takes() {
            Takes::Rings => Self::Rings(Box::new(record::Record::of(run))),
            Takes::Trials => Self::Trials(Box::new(findings::Record::of(run))),
            Takes::Both => Self::Response(Box::new(response::Record::of(run))),
        }
    }

    /// What every record has beside its findings.
    pub(crate) fn common(&self) -> Common<'_> {
        let (noise, speed, ns_per_tick, precision) = match self {
            Self::Rings(of) => (&of.noise, &of.speed[..], None, worst_precision(&of.cases)),
            Self::Trials(of) => (&of.noise, &[][..], of.ns_per_tick, of.worst_precision),
            Self::Response(of) => (&of.noise, &[][..], of.ns_per_tick, of.worst_precision),
        };
        Common { noise, speed, ns_per_tick, precision }
    }

    /// All that is printed of it, ending with a newline; `path` is where the run is stored.
    pub(crate) fn table(&self, run: &Run, path: Option<&Path>) -> String {
        let text = match self {
            Self::Rings(of) => match &of.cost {
                Some(found) => cost::table::text(of, found),
                None => ring::table::text(of),
            },
            Self::Response(of) => crate::response::table::text(of),
            Self::Trials(of) => {
                let body = match &of.findings {
                    Findings::Overhead(found) => clock::table::overhead(of, found),
                    Findings::Primes(found) => clock::table::primes(found),
                    Findings::Malloc(found) => clock::table::malloc(of, found),
                    Findings::Sampling(points) => clock::table::sampling(of, points),
                    Findings::Interference(found) => interference::table::text(of, found),
                };
                let cpu = of.cases.first().map(|case| format!(", on CPU {}", case.case.cpu));
                Text { heading: cpu.unwrap_or_default(), body, findings: Vec::new() }
            }
        };
        terminal::report(run, text, &self.common(), path)
    }

    /// Its charts. `run` is the run that it is of, `index` its place among the runs that are drawn together.
    pub(crate) fn figures(&self, run: &Run, index: usize) -> Vec<Figure> {
        let mut all = match self {
            Self::Rings(of) => match &of.cost {
                Some(found) => cost::figures::figures(of, found, index),
                None => ring::figures::figures(run, of, index),
            },
            Self::Response(of) => crate::response::figures::figures(of, index),
            Self::Trials(of) => {
                let found = match &of.findings {
                    Findings::Overhead(found) => clock::figures::calls(of, found, index),
                    Findings::Primes(found) => clock::figures::deviations(found, index),
                    Findings::Malloc(found) => clock::figures::blocks(of, found, index),
                    Findings::Sampling(found) => clock::figures::accounts(found, index),
                    Findings::Interference(found) => interference::table::figure(found, index),
                };
                found.into_iter().collect()
            }
        };
        let mut seen = rounds::of_rings(run);
        seen.extend(rounds::of_cases(&headlines_ns(run)));
        all.extend(rounds::figure(seen, index));
        all
    }

    /// Writes all that `output` asks for. The table goes to standard output, or to standard error where
    /// that belongs to a machine-readable format.
    fn write(&self, run: &Run, path: Option<&Path>, output: &Output) -> Result<()> {
        let mut errors = Vec::new();
        let wanted = [(ExportFormat::Json, &output.json), (ExportFormat::Csv, &output.csv)];
        if !output.quiet {
            let is_taken = wanted.iter().any(|(_, to)| **to == Some(Destination::Stdout));
            let look = match is_taken {
                true => output::look_of(&io::stderr()),
                false => output::look_of(&io::stdout()),
            };
            let text = self.shown(run, path, output.plot.then_some(&look));
            let printed = match is_taken {
                true => output::ignore_broken_pipe(io::stderr().write_all(text.as_bytes())),
                false => print(text.as_bytes()),
            };
            errors.extend(printed.context("cannot print the report").err());
        }
        for (format, to) in wanted {
            errors.extend(to.as_ref().and_then(|to| self.export(run, format, to).err()));
        }
        // The last is told by whoever asked; the others would be lost.
        let last = errors.pop();
        errors.iter().for_each(|error| say(&format!("error: {error:#}")));
        last.map_or(Ok(()), Err)
    }

    /// Prints the report of a stored run, with its charts if they are asked for.
    pub(crate) fn show(&self, run: &Run, path: &Path, plot: bool) -> Result<()> {
        let look = plot.then(|| output::look_of(&io::stdout()));
        let text = self.shown(run, Some(path), look.as_ref());
        print(text.as_bytes()).context("cannot print the report")
    }

    /// The report, with its charts in text if there is a look for them. Single samples by round are left to the
    /// report in HTML: they are too many for a terminal. Maps are in the report already.
    fn shown(&self, run: &Run, path: Option<&Path>, look: Option<&Look>) -> String {
        let text = printable(&self.table(run, path));
        let Some(look) = look else { return text };
        let is_raw = |figure: &Figure| figure.series().iter().any(|of| of.role == Role::Raw);
        let is_shown = |figure: &Figure| !is_raw(figure) && matches!(figure.body, Body::Series(_));
        let figures = self.figures(run, 0).into_iter().filter(is_shown);
        let drawn: String =
            figures.map(|figure| format!("\n{}", plot(&figure, &[], look))).collect();
        match drawn.is_empty() {
            true => text + "\nplot: nothing was measured that can be drawn\n",
            false => text + &drawn,
        }
    }

    /// Writes a run in a machine-readable format.
    pub(crate) fn export(&self, run: &Run, format: ExportFormat, to: &Destination) -> Result<()> {
        let bytes = match format {
            ExportFormat::Json => to_json(self)?,
            ExportFormat::Csv => csv::samples(run)?,
            ExportFormat::GoBench => exports::go_bench(&Subject::of_run(run)),
            ExportFormat::Openmetrics => exports::openmetrics(&Subject::of_run(run)),
        };
        output::put(&bytes, to)
    }
}
