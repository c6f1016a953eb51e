//! All that a dataset of many runs takes of one, in a line of JSON: each estimate is computed once.

use analysis::noise::NoiseVerdict;
use analysis::results::Results;
use anyhow::{Context, Result};
use rundata::run::{Header, Run, RunEnd};
use serde::Serialize;

use super::{csv, escape_controls, summary};

/// The facts lie where the record has them.
#[derive(Serialize)]
struct DatasetRow<'a> {
    header: &'a Header,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<&'a RunEnd>,
    noise: Option<NoiseVerdict>,
    speed: Vec<Clock>,
    /// As `summary-csv` has them.
    summary: String,
    /// As `csv` has them, without what is written slice by slice.
    samples: String,
}

#[derive(Serialize)]
struct Clock {
    clock_ghz: f64,
}

/// Why there is none of a file.
#[derive(Serialize)]
struct Lacks {
    error: String,
}

pub(crate) fn dataset_line(run: Result<Run>) -> Result<Vec<u8>> {
    match run.and_then(|run| rows(&run)) {
        Ok(line) => Ok(line),
        Err(why) => told(&Lacks { error: format!("{why:#}") }),
    }
}

fn rows(run: &Run) -> Result<Vec<u8>> {
    let results = Results::from_run(run);
    let summary = summary::summary_of(run, &results)?;
    let mut samples = Vec::new();
    csv::samples_without_slices(run, &mut samples)?;
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).context("not UTF-8");
    told(&DatasetRow {
        header: &run.header,
        end: run.end.as_ref(),
        speed: results.clock_ghz.map(|clock_ghz| Clock { clock_ghz }).into_iter().collect(),
        noise: results.noise,
        summary: text(summary)?,
        samples: text(samples)?,
    })
}

fn told(value: &impl Serialize) -> Result<Vec<u8>> {
    let plain = serde_json::to_string(value).context("cannot write JSON")?;
    Ok((escape_controls(&plain) + "\n").into_bytes())
}
