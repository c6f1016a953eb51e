//! `switchcost ring --launches`: several launches of one plan, and what they say together.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{Context, Result};
use charts::printable;
use model::plan::Plan;
use model::run::{Launch, Run};
use model::speed::Speed;
use model::subject::{Subcase, Subject, Values};
use stats::{Summary, mean, normal_quantile};

use crate::execute::{self, Planned};
use crate::failure::usage;
use crate::interrupt::Interrupt;
use crate::output::{Output, print};
use crate::progress::Progress;
use crate::setting::Here;
use crate::terminal;

/// The same plan so many times, each with a seed of its own, and what all of them say together.
pub(crate) fn take(
    count: u32,
    (plan, notices): &Planned,
    here: &Here,
    output: &Output,
) -> Result<ExitCode> {
    if output.json.is_some() || output.csv.is_some() || output.plot {
        return Err(usage(
            "--launches: each launch is a run of its own: write it by `runs export` or `runs show` (accepted here: \
             no --json, --csv, --plot)",
        ));
    }
    let interrupt = Interrupt::watch()?;
    let set = execute::run_name(plan.experiment, SystemTime::now());
    let (mut runs, mut whole) = (Vec::new(), true);
    for number in 1..=count {
        let plan = Plan { seed: plan.seed.wrapping_add(u64::from(number) - 1), ..plan.clone() };
        let progress = Progress::new(&plan, output.quiet);
        let launch = Launch { set: set.clone(), number, of: count };
        let planned = (plan, notices.clone());
        let taken = execute::take(planned, here.clone(), &interrupt, progress, Some(launch));
        whole &= taken.is_whole();
        let path = taken.path.clone();
        runs.push((taken.run, path));
        if let Some(code) = interrupt.exit_code() {
            write(&runs, output)?;
            return Ok(ExitCode::from(code));
        }
    }
    write(&runs, output)?;
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints each launch's figures and all of them together, unless nothing is to be printed.
fn write(runs: &[(Run, Option<PathBuf>)], output: &Output) -> Result<()> {
    match output.quiet {
        true => Ok(()),
        false => print(printable(&text(runs)).as_bytes()).context("cannot print the report"),
    }
}

fn text(runs: &[(Run, Option<PathBuf>)]) -> String {
    let mut text = String::new();
    let subjects = runs.iter().map(|(run, _)| Subject::of_run(run)).collect();
    let (Some((first, _)), Some(all)) = (runs.first(), Subject::of_launches(subjects)) else {
        return text;
    };
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{}, {} launches\n", terminal::heading(&first.header), runs.len());
    let confidence = first.header.plan.stopping.confidence;
    let header = ["case", "cost of", "ns", "interval", "scatter between launches", "at full speed"];
    let mut table = terminal::table(header);
    for case in &all.cases {
        table.add_row(row(case, all.launch_scatter, confidence));
    }
    terminal::align(&mut table);
    let _ = writeln!(text, "{table}\n");
    let _ = writeln!(
        text,
        "ns: mean of the launches at full speed; interval: {:.0} %, by the launches' own errors and their scatter \
         (taken to be {:.1} %)",
        confidence * 100.0,
        all.launch_scatter * 100.0
    );
    for (_, path) in runs {
        let _ = writeln!(text, "{}", terminal::place(path.as_deref()));
    }
    text
}

fn row(case: &Subcase, launch_scatter: f64, confidence: f64) -> [String; 6] {
    let dash = || "-".to_string();
    let Some(figure) = case.figures.first() else {
        return [case.title.clone(), dash(), dash(), dash(), dash(), dash()];
    };
    let launches = match &figure.values {
        Values::Measured(launches) => &launches[..],
        Values::Published(_) => &[],
    };
    let estimates = launches.iter().filter_map(|launch| launch.estimate);
    let full: Vec<_> = estimates.filter(|estimate| estimate.speed == Speed::Full).collect();
    let values: Vec<f64> = full.iter().map(|estimate| estimate.value).collect();
    let interval = || {
        let (count, value) = (values.len() as f64, mean(&values)?);
        let squares: Option<f64> = full.iter().map(|e| Some(e.standard_error?.powi(2))).sum();
        let variance = squares? / (count * count) + (launch_scatter * value).powi(2) / count;
        let half = normal_quantile(confidence)? * variance.sqrt();
        let (low, high) =
            (terminal::figure(Some(value - half)), terminal::figure(Some(value + half)));
        Some(format!("{low} to {high}"))
    };
    let scatter = Summary::of(&values).map(|s| format!("{:.1} %", 100.0 * s.deviation / s.mean));
    [
        case.title.clone(),
        figure.quantity.in_words().to_string(),
        terminal::figure(mean(&values)),
        interval().unwrap_or_else(dash),
        scatter.unwrap_or_else(dash),
        format!("{} of {}", full.len(), launches.len()),
    ]
}
