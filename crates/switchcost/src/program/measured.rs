//! `ring`, `cost`, `response`, `explain` and `clock`: measured, stored, printed.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

#[cfg(feature = "documents")]
use crate::documents::{
    classic::ExperimentCommand,
    interference::{self, OldInterferenceArgs},
    paper::PaperCommand,
};
use crate::engine::execute;
use crate::engine::setting::{LocalHost, PlanWithNotices};
use crate::experiments::clock::overhead::{self, OverheadArgs};
use crate::experiments::cost::CostArgs;
use crate::experiments::explain::ExplainArgs;
use crate::experiments::response::ResponseArgs;
use crate::experiments::ring::{RingArgs, launches};
use crate::experiments::{cost, explain, response, ring};
use crate::program::hints::say_renamed;
#[cfg(feature = "programs")]
use crate::programs::{
    sensitivity::{self, SensitivityArgs},
    watch::{self, ProgramArgs},
};
use crate::registry::report_new_run;
use crate::report::output::OutputOptions;

pub(crate) fn ring(args: &RingArgs) -> Result<ExitCode> {
    match args.launches {
        1 => measured(&args.output, |here| ring::plan::plan(args, here)),
        _ => launches::take(args),
    }
}

/// `cost`: of rings, of a process or command, and by its old name an experiment of the paper.
#[derive(Debug, Args)]
pub(crate) struct CostCommand {
    #[cfg(feature = "documents")]
    #[command(flatten)]
    interference: OldInterferenceArgs,

    #[cfg(feature = "programs")]
    #[command(flatten)]
    program: ProgramArgs,

    #[command(flatten)]
    cost: CostArgs,
}

pub(crate) fn cost(command: &CostCommand) -> Result<ExitCode> {
    let args = &command.cost;
    let output = &args.output;
    #[cfg(feature = "programs")]
    if command.program.is_asked_for() {
        output.files.check()?;
        return watch::run(&command.program, args.effort.budget, output);
    }
    #[cfg(feature = "documents")]
    if command.interference.interference {
        say_renamed("cost --interference", "classic experiment interference");
        let chosen = &command.interference.chosen;
        return measured(output, |here| {
            interference::plan::plan(chosen, args.laps, &args.effort, here)
        });
    }
    measured(output, |here| cost::plan::plan(args, here))
}

pub(crate) fn response(args: &ResponseArgs) -> Result<ExitCode> {
    measured(&args.common.output, |here| response::plan::plan(args, here))
}

pub(crate) fn explain(args: &ExplainArgs) -> Result<ExitCode> {
    measured(&args.common.output, |here| explain::plan::plan(args, here))
}

#[cfg(feature = "programs")]
pub(crate) fn sensitivity(args: &SensitivityArgs) -> Result<ExitCode> {
    measured(&args.output, |here| sensitivity::plan::plan(args, here))
}

pub(crate) fn clock_overhead(args: &OverheadArgs) -> Result<ExitCode> {
    measured(&args.common.output, |here| overhead::plan(args, here))
}

#[cfg(feature = "documents")]
pub(crate) fn classic_experiment(command: ExperimentCommand) -> Result<ExitCode> {
    measured(command.output(), |here| command.plan(here))
}

/// Measures an experiment of the papers that was asked for by its old name, as one of `clock`.
#[cfg(feature = "documents")]
pub(crate) fn renamed_experiment(command: PaperCommand) -> Result<ExitCode> {
    let name = command.name();
    say_renamed(&format!("clock {name}"), &format!("classic experiment {name}"));
    classic_experiment(ExperimentCommand::Paper(command))
}

/// Measures a plan, stores it, prints it; looks first whether the outputs can be written.
fn measured(
    output: &OutputOptions,
    plan: impl FnOnce(&LocalHost) -> Result<PlanWithNotices>,
) -> Result<ExitCode> {
    output.files.check()?;
    let here = LocalHost::detect()?;
    let planned = plan(&here)?;
    report_new_run(execute::new_run(planned, here, output)?, output)
}
