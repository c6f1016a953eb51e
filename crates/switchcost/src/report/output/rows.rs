//! A run as a line of JSON for a dataset of many runs (docs/fleet.md): the facts of its header, its
//! cases and its samples. All of it comes from one computation of the results.

use analysis::noise::NoiseVerdict;
use analysis::results::Results;
use anyhow::{Context, Result};
use rundata::run::{Header, Run, RunEnd};
use serde::Serialize;

use super::{csv, escape_controls, summary};

/// The line of a run. Its facts have the keys that they have in the record of a run.
#[derive(Serialize)]
struct DatasetRow<'a> {
    header: &'a Header,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<&'a RunEnd>,
    noise: Option<NoiseVerdict>,
    speed: Vec<ClockSpeed>,
    /// CSV of the cases, in the format `summary-csv`.
    summary: String,
    /// CSV of the samples, in the format `csv` without the columns of slices.
    samples: String,
}

#[derive(Serialize)]
struct ClockSpeed {
    clock_ghz: f64,
}

/// The line of a file that holds no readable run.
#[derive(Serialize)]
struct UnreadableRun {
    error: String,
}

/// Returns the line of a run, or the line that says why it could not be read.
pub(crate) fn dataset_line(run: Result<Run>) -> Result<Vec<u8>> {
    match run.and_then(|run| run_line(&run)) {
        Ok(line) => Ok(line),
        Err(error) => json_line(&UnreadableRun { error: format!("{error:#}") }),
    }
}

fn run_line(run: &Run) -> Result<Vec<u8>> {
    let results = Results::from_run(run);
    let summary = summary::summary_of(run, &results)?;
    let mut samples = Vec::new();
    csv::samples_without_slices(run, &mut samples)?;
    json_line(&DatasetRow {
        header: &run.header,
        end: run.end.as_ref(),
        speed: results.clock_ghz.map(|clock_ghz| ClockSpeed { clock_ghz }).into_iter().collect(),
        noise: results.noise,
        summary: String::from_utf8(summary).context("not UTF-8")?,
        samples: String::from_utf8(samples).context("not UTF-8")?,
    })
}

fn json_line(value: &impl Serialize) -> Result<Vec<u8>> {
    let json = serde_json::to_string(value).context("cannot write JSON")?;
    Ok((escape_controls(&json) + "\n").into_bytes())
}
