//! `switchcost ring --launches`: several launches of one plan, and what they say together.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use analysis::estimate::Speed;
use analysis::marked::MarkedText;
use analysis::results::{CaseResults, Results};
use anyhow::{Context, Result};
use rundata::plan::Plan;
use rundata::run::{LaunchPosition, Run};
use stats::SampleSummary;

use super::RingArgs;
use crate::base::failure::usage;
use crate::base::lines::Layout;
use crate::engine::execute::{self, HeaderOptions};
use crate::engine::interrupt::Interrupt;
use crate::engine::progress::Progress;
use crate::engine::setting::LocalHost;
use crate::engine::store::speed::results_of;
use crate::report::output::print_fitted;
use crate::report::printout::{Printout, printout};
use crate::report::table::Table;
use crate::report::terminal::{self, interval, sentence, value};

/// Measures the same plan so many times, each with a seed of its own; prints what all launches say
/// together.
pub(crate) fn take(args: &RingArgs) -> Result<ExitCode> {
    let (count, output) = (args.launches, &args.output);
    output.files.check()?;
    let is_file_asked = output.files.json.is_some() || output.files.csv.is_some();
    if is_file_asked || output.files.print.is_some() || output.plot {
        return Err(usage(
            "--launches: each launch is a run of its own, which `runs export` and `runs show` \
                write (no --json, --csv, --print or --plot here)",
        ));
    }
    let here = LocalHost::detect()?;
    let (plan, notices) = super::plan::plan(args, &here)?;
    let interrupt = Interrupt::watch()?;
    let set = execute::run_name(plan.experiment, SystemTime::now());
    let (mut runs, mut whole) = (Vec::new(), true);
    for number in 1..=count {
        let plan = Plan { seed: plan.seed.wrapping_add(u64::from(number) - 1), ..plan.clone() };
        let progress = Progress::new(&plan, output.files.quiet);
        let launch = Some(LaunchPosition { set: set.clone(), number, count });
        let planned = (plan, notices.clone());
        let taken = execute::measure_run(
            planned,
            here.clone(),
            &interrupt,
            progress,
            launch,
            HeaderOptions::from_output(output),
        );
        whole &= taken.is_complete();
        let path = taken.path();
        runs.push((taken.run, path));
        if interrupt.signal().is_some() {
            break;
        }
    }
    if !output.files.quiet {
        let layout = Layout::terminal().with_wide_tables(output.view.wide);
        print_fitted(text(&runs), layout).context("cannot print the report")?;
    }
    Ok(interrupt.exit_code().unwrap_or(u8::from(!whole)).into())
}

/// Returns a table of each case's figures by all launches together.
fn text(runs: &[(Run, Option<PathBuf>)]) -> Printout {
    let launches: Vec<&Run> = runs.iter().map(|(run, _)| run).collect();
    let Some(first) = launches.first() else { return Printout::default() };
    let Some(results) = Results::from_launches(results_of(&launches)) else {
        return Printout::default();
    };
    let columns =
        ["case", "cost of", "ns", "interval", "scatter between launches", "at full speed"];
    let mut rows = Vec::new();
    let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
    for case in &results.cases {
        let launch_scatter = results.case_launch_scatter(case.number);
        rows.push(row(case, launch_scatter));
        (least, most) = (least.min(100.0 * launch_scatter), most.max(100.0 * launch_scatter));
    }
    let scatter =
        if least == most { format!("{most:.1}") } else { format!("{least:.1} to {most:.1}") };
    let confidence = 100.0 * first.header.plan.stopping.confidence;
    let mut legend = format!(
        "\n\nns: mean of the launches at full speed and at one clock; interval: {confidence:.0} %, \
         by the launches' own errors and their scatter (taken to be {scatter} %)\n"
    );
    for (_, path) in runs {
        legend += &(terminal::run_file_line(path.as_deref()) + "\n");
    }
    let unfinished = launches.iter().find_map(|run| run.unfinished());
    let heading = sentence(unfinished, terminal::heading(&first.header));
    let count = format!(", {} launches\n\n", runs.len());
    printout![heading, count, Table::new(columns, rows), legend]
}

/// Returns the row of a case: the figure that stands for it, by the launches at full speed.
fn row(case: &CaseResults, launch_scatter: f64) -> [MarkedText; 6] {
    let dash = || "-".to_string();
    let Some((quantity, figure)) = case.figures.first_key_value() else {
        return [case.title.clone(), dash(), dash(), dash(), dash(), dash()].map(MarkedText::from);
    };
    let mut values = Vec::new();
    for estimate in figure.counted_estimates().estimates {
        if estimate.quote_cost().is_ok() && estimate.speed == Speed::Full {
            values.push(estimate.value);
        }
    }
    let mean = figure.mean_at_one_clock(launch_scatter);
    let scatter = SampleSummary::from_values(&values);
    let scatter = scatter.map(|found| format!("{:.1} %", 100.0 * found.deviation / found.mean));
    [
        case.title.clone().into(),
        quantity.in_words().into(),
        value(mean),
        interval(mean).into(),
        scatter.unwrap_or_else(dash).into(),
        format!("{} of {}", values.len(), figure.launches().len()).into(),
    ]
}
