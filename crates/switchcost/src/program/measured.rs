//! `ring`, `cost`, `response`, `explain` and `clock`: measured, stored, printed.

use std::process::ExitCode;

use anyhow::Result;

use crate::engine::execute::{self, Taken};
use crate::engine::setting::{Here, Planned};
use crate::experiments::clock::ClockCommand;
use crate::experiments::cost::CostArgs;
use crate::experiments::explain::ExplainArgs;
use crate::experiments::interference::InterferenceCommand;
use crate::experiments::response::ResponseArgs;
use crate::experiments::ring::{RingArgs, launches};
use crate::experiments::sensitivity::SensitivityArgs;
use crate::experiments::{Record, clock, cost, explain, interference, response, ring, sensitivity};
use crate::observe::watch;
use crate::present::output::Output;
use crate::program::hints::say_renamed;

pub(crate) fn ring(args: &RingArgs) -> Result<ExitCode> {
    match args.launches {
        1 => measured(&args.output, |here| ring::plan::plan(args, here)),
        _ => launches::take(args),
    }
}

pub(crate) fn cost(args: &CostArgs) -> Result<ExitCode> {
    let output = &args.output;
    if args.program.is_asked_for() {
        output.files.check()?;
        return watch::run(&args.program, args.effort.budget, output);
    }
    if args.interference.interference {
        say_renamed("cost --interference", "classic experiment interference");
        let chosen = &args.interference.chosen;
        return measured(output, |here| {
            interference::plan::plan(chosen, args.laps, &args.effort, here)
        });
    }
    measured(output, |here| cost::plan::plan(args, here))
}

pub(crate) fn interference(args: &InterferenceCommand) -> Result<ExitCode> {
    measured(&args.output, |here| {
        interference::plan::plan(&args.chosen, args.laps, &args.effort(), here)
    })
}

pub(crate) fn response(args: &ResponseArgs) -> Result<ExitCode> {
    measured(&args.common.output, |here| response::plan::plan(args, here))
}

pub(crate) fn explain(args: &ExplainArgs) -> Result<ExitCode> {
    measured(&args.common.output, |here| explain::plan::plan(args, here))
}

pub(crate) fn sensitivity(args: &SensitivityArgs) -> Result<ExitCode> {
    measured(&args.output, |here| sensitivity::plan::plan(args, here))
}

pub(crate) fn clock(command: &ClockCommand) -> Result<ExitCode> {
    measured(&command.common().output, |here| clock::plan(command, here))
}

/// Measures a plan, stores it, prints it; looks first whether the outputs can be written.
fn measured(output: &Output, plan: impl FnOnce(&Here) -> Result<Planned>) -> Result<ExitCode> {
    output.files.check()?;
    let here = Here::detect()?;
    let planned = plan(&here)?;
    tell(execute::new_run(planned, here, output)?, output)
}

/// Writes the outputs and the report of a run that has just been measured.
pub(crate) fn tell(mut taken: Taken, output: &Output) -> Result<ExitCode> {
    taken.run.header.plan.reference.strict = output.view.strict;
    let record = Record::of(&taken.run);
    record.result().into_iter().for_each(|result| taken.keep_result(result));
    record.write(&taken.run, taken.path().as_deref(), output)?;
    // Asked for last: a report takes seconds, in which somebody may lose patience.
    Ok(taken.exit_code())
}
