//! What several launches of one plan say together.

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use model::run::Run;
use model::speed::Speed;
use model::subject::{Subcase, Subject, Values};
use stats::{Summary, mean, normal_quantile};

use super::{parts, print, printable};
use crate::cli::Output;

/// Prints each launch's figures and all of them together, unless nothing is to be printed.
pub(crate) fn write(runs: &[(Run, Option<PathBuf>)], output: &Output) -> Result<()> {
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
    let _ = writeln!(text, "{}, {} launches\n", parts::heading(&first.header), runs.len());
    let confidence = first.header.plan.stopping.confidence;
    let header = ["case", "cost of", "ns", "interval", "scatter between launches", "at full speed"];
    let mut table = parts::table(header);
    for case in &all.cases {
        table.add_row(row(case, all.launch_scatter, confidence));
    }
    parts::align(&mut table);
    let _ = writeln!(text, "{table}\n");
    let _ = writeln!(
        text,
        "ns: mean of the launches at full speed; interval: {:.0} %, by the launches' own errors and their scatter \
         (taken to be {:.1} %)",
        confidence * 100.0,
        all.launch_scatter * 100.0
    );
    for (_, path) in runs {
        let _ = writeln!(text, "{}", parts::place(path.as_deref()));
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
        let (low, high) = (parts::figure(Some(value - half)), parts::figure(Some(value + half)));
        Some(format!("{low} to {high}"))
    };
    let scatter = Summary::of(&values).map(|s| format!("{:.1} %", 100.0 * s.deviation / s.mean));
    [
        case.title.clone(),
        figure.quantity.in_words().to_string(),
        parts::figure(mean(&values)),
        interval().unwrap_or_else(dash),
        scatter.unwrap_or_else(dash),
        format!("{} of {}", full.len(), launches.len()),
    ]
}
