//! One row a tally or count of each sample.

use anyhow::{Context, Result};
use model::interference::Environment;
use model::run::Run;
use model::sample::trials;
use model::trial::{Quantity, Sample, Tally, Trial};
use serde::Serialize;

/// A row. What does not apply or was not read is empty, never zero.
#[derive(Serialize)]
struct Row<'a> {
    experiment: &'static str,
    case: usize,
    round: u32,
    cpu: u32,
    policy: &'static str,
    call: Option<&'a str>,
    primes: Option<u32>,
    bytes: Option<u64>,
    preload: Option<&'a str>,
    phase: Option<String>,
    elapsed_ns: u64,
    steal_ns: Option<u64>,
    /// Its name; the unit is its end.
    quantity: &'a str,
    /// Values of a tally; empty for a count.
    values: Option<u64>,
    /// Sum of the values; the count itself.
    total: f64,
    mean: Option<f64>,
    sd: Option<f64>,
    min: Option<i64>,
    p50: Option<i64>,
    p99: Option<i64>,
    max: Option<i64>,
    setting: Option<String>,
    environment: Option<String>,
    noise: Option<&'static str>,
    laps: Option<u64>,
    load: Option<String>,
}

/// All samples of a run's trials, with a header line.
pub(crate) fn rows(run: &Run) -> Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for sample in trials(&run.samples) {
        let tallies = sample.all_tallies();
        let tallies = tallies.iter().map(|(name, tally)| tally_row(run, sample, name, tally));
        let counts = sample
            .counts
            .iter()
            .map(|(name, count)| Some(Row { total: *count as f64, ..bare(run, sample, name)? }));
        for row in tallies.chain(counts).flatten() {
            writer.serialize(row).context("cannot write a sample as CSV")?;
        }
    }
    writer.into_inner().map_err(|error| error.into_error()).context("cannot write CSV")
}

fn tally_row<'a>(
    run: &'a Run,
    sample: &'a Sample,
    name: &'a str,
    tally: &Tally,
) -> Option<Row<'a>> {
    let figures = Quantity::of(tally)?;
    Some(Row {
        values: Some(figures.count),
        total: tally.total(),
        mean: Some(figures.mean),
        sd: figures.sd,
        min: Some(figures.min),
        p50: Some(figures.p50),
        p99: Some(figures.p99),
        max: Some(figures.max),
        ..bare(run, sample, name)?
    })
}

fn bare<'a>(run: &'a Run, sample: &'a Sample, quantity: &'a str) -> Option<Row<'a>> {
    let case = run.header.plan.trial(sample.case)?;
    let mut row = Row {
        experiment: run.header.plan.experiment.name(),
        case: sample.case,
        round: sample.round,
        cpu: case.cpu,
        policy: case.policy.name(),
        call: None,
        primes: None,
        bytes: None,
        preload: None,
        phase: None,
        elapsed_ns: sample.elapsed_ns,
        steal_ns: sample.steal_ns,
        quantity,
        values: None,
        total: 0.0,
        mean: None,
        sd: None,
        min: None,
        p50: None,
        p99: None,
        max: None,
        setting: None,
        environment: None,
        noise: None,
        laps: None,
        load: None,
    };
    match &case.trial {
        Trial::Call { call } | Trial::Loop { call } => row.call = Some(call),
        Trial::TwoProcesses => row.call = Some("two-processes"),
        Trial::Primes { primes } => row.primes = Some(*primes),
        Trial::Malloc { bytes, preload } => {
            row.bytes = Some(*bytes);
            row.preload = preload.as_deref();
        }
        Trial::Sampling { phase, .. } => row.phase = Some(phase.to_string()),
        Trial::Execution(execution) => {
            row.bytes = Some(execution.work.bytes);
            row.setting = Some(execution.setting.to_string());
            row.environment = Some(execution.environment.to_string());
            row.noise =
                (execution.environment == Environment::Disturbed).then(|| execution.noise.name());
            row.laps = Some(execution.laps);
        }
        Trial::Gaps { .. } => row.call = Some("gaps"),
        Trial::Wakeup(wakeup) => {
            row.call = Some("wakeup");
            row.load = Some(wakeup.load.to_string());
        }
    }
    Some(row)
}
