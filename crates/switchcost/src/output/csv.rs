//! Samples as CSV. What was not read or does not apply is empty, never zero.

use ::csv::{Reader, StringRecord, Writer};
use anyhow::{Context, Result};
use model::interference::Environment;
use model::ring::{self, Disturbance};
use model::run::Run;
use model::sample::{rings, trials};
use model::speed::Slices;
use model::state::State;
use model::trial::{self, Quantity, Tally, Trial};
use serde::Serialize;

/// A row. What was not read is empty, never zero.
#[derive(Serialize)]
struct RingRow<'a> {
    experiment: &'static str,
    case: usize,
    round: u32,
    sample: u32,
    members: u32,
    kind: &'static str,
    link: &'a str,
    work_bytes: u64,
    stride_bytes: Option<u64>,
    op: Option<&'static str>,
    placement: String,
    policy: &'static str,
    hops: u64,
    elapsed_ns: u64,
    user_ns: Option<i64>,
    system_ns: Option<i64>,
    voluntary: u64,
    involuntary: u64,
    migrations: Option<u64>,
    minor_faults: u64,
    major_faults: u64,
    steal_ns: Option<u64>,
    laps: u64,
    cpu_ns: u64,
    setup_ns: u64,
    cpus: String,
    disturbed: String,
    walk: Option<&'static str>,
    huge_pages: Option<bool>,
    priority: Option<u32>,
    state: Option<&'static str>,
    slice_laps: Option<u64>,
    slices_ns: String,
    latency_quanta_ns: String,
    throughput_quanta_ns: String,
    waited_ns: Option<u64>,
    huge_page_bytes: Option<u64>,
}

fn ring_row<'a>(run: &'a Run, sample: &'a ring::Sample) -> Option<RingRow<'a>> {
    let case = run.header.plan.ring(sample.case)?;
    let (counters, slices) = (&sample.counters, sample.slices.as_ref());
    let split = sample.user_system_ns();
    let words = sample.disturbances(case).iter().map(Disturbance::to_string).collect::<Vec<_>>();
    let cpus = case.placement.cpus().iter().map(u32::to_string).collect::<Vec<_>>();
    Some(RingRow {
        experiment: run.header.plan.experiment.name(),
        case: sample.case,
        round: sample.round,
        sample: sample.sample,
        members: case.members,
        kind: case.kind.name(),
        link: &case.link,
        work_bytes: case.work.map_or(0, |work| work.bytes),
        stride_bytes: case.work.map(|work| work.stride_bytes),
        op: case.work.map(|work| work.op.name()),
        placement: case.placement.to_string(),
        policy: case.policy.name(),
        hops: sample.hops,
        elapsed_ns: sample.elapsed_ns,
        user_ns: split.map(|(user, _)| user),
        system_ns: split.map(|(_, system)| system),
        voluntary: counters.voluntary,
        involuntary: counters.involuntary,
        migrations: counters.migrations,
        minor_faults: counters.minor_faults,
        major_faults: counters.major_faults,
        steal_ns: sample.steal_ns,
        laps: sample.laps,
        cpu_ns: sample.cpu_ns(),
        setup_ns: sample.setup_ns,
        cpus: cpus.join(" "),
        disturbed: words.join(" "),
        walk: case.work.map(|work| work.walk.name()),
        huge_pages: case.work.map(|work| work.huge_pages),
        priority: case.priority,
        state: case.state.map(State::name),
        slice_laps: slices.map(|slices| slices.laps),
        slices_ns: slices.map_or_else(String::new, |slices| blanks(&slices.elapsed_ns)),
        latency_quanta_ns: slices.map_or_else(String::new, |slices| blanks(&slices.latency_ns)),
        throughput_quanta_ns: slices
            .map_or_else(String::new, |slices| blanks(&slices.throughput_ns)),
        waited_ns: slices.and_then(Slices::waited_ns),
        huge_page_bytes: sample.huge_page_bytes,
    })
}

/// Several figures in one column, in the order of time.
fn blanks<T: ToString>(figures: &[T]) -> String {
    figures.iter().map(T::to_string).collect::<Vec<_>>().join(" ")
}

/// All samples of a run's rings, with a header line.
pub(crate) fn of_rings(run: &Run) -> Result<Vec<u8>> {
    let mut writer = Writer::from_writer(Vec::new());
    for row in rings(&run.samples).filter_map(|sample| ring_row(run, sample)) {
        writer.serialize(row).context("cannot write a sample as CSV")?;
    }
    finished(writer)
}

/// A row. What does not apply or was not read is empty, never zero.
#[derive(Serialize)]
struct TrialRow<'a> {
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

/// What was written.
pub(crate) fn finished(writer: Writer<Vec<u8>>) -> Result<Vec<u8>> {
    writer.into_inner().map_err(|error| error.into_error()).context("cannot write CSV")
}

/// All samples of a run's trials, with a header line.
pub(crate) fn of_trials(run: &Run) -> Result<Vec<u8>> {
    let mut writer = Writer::from_writer(Vec::new());
    for sample in trials(&run.samples) {
        let tallies = sample.all_tallies();
        let tallies = tallies.iter().map(|(name, tally)| tally_row(run, sample, name, tally));
        let counts = sample.counts.iter().map(|(name, count)| {
            Some(TrialRow { total: *count as f64, ..bare(run, sample, name)? })
        });
        for row in tallies.chain(counts).flatten() {
            writer.serialize(row).context("cannot write a sample as CSV")?;
        }
    }
    finished(writer)
}

fn tally_row<'a>(
    run: &'a Run,
    sample: &'a trial::Sample,
    name: &'a str,
    tally: &Tally,
) -> Option<TrialRow<'a>> {
    let figures = Quantity::of(tally)?;
    Some(TrialRow {
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

fn bare<'a>(run: &'a Run, sample: &'a trial::Sample, quantity: &'a str) -> Option<TrialRow<'a>> {
    let case = run.header.plan.trial(sample.case)?;
    let mut row = TrialRow {
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

/// Rows of rings, or of trials.
struct Table {
    columns: StringRecord,
    rows: Vec<StringRecord>,
}

impl Table {
    fn read(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::from_reader(bytes);
        let columns = reader.headers()?.clone();
        Ok(Self { columns, rows: reader.records().collect::<Result<_, _>>()? })
    }

    /// A row in the order of `columns`.
    fn row_by(&self, row: &StringRecord, columns: &[&str]) -> StringRecord {
        let place = |name: &&str| self.columns.iter().position(|column| column == *name);
        let cell = |name| place(name).and_then(|place| row.get(place)).unwrap_or_default();
        columns.iter().map(cell).collect()
    }
}

/// All samples of a run, with a header line, by round and case.
pub(crate) fn of_both(run: &Run) -> Result<Vec<u8>> {
    let written = [of_rings(run)?, of_trials(run)?];
    let read = written.iter().map(|bytes| Table::read(bytes));
    let tables: Vec<Table> = read.collect::<Result<_>>().context("cannot read CSV")?;
    let mut columns: Vec<&str> = Vec::new();
    for column in tables.iter().flat_map(|table| &table.columns) {
        if !columns.contains(&column) {
            columns.push(column);
        }
    }
    let place = |name: &str| columns.iter().position(|column| *column == name);
    let (case, round) = (place("case"), place("round"));
    let mut rows: Vec<StringRecord> = tables
        .iter()
        .flat_map(|table| table.rows.iter().map(|row| table.row_by(row, &columns)))
        .collect();
    let number =
        |row: &StringRecord, place: Option<usize>| -> Option<u64> { row.get(place?)?.parse().ok() };
    rows.sort_by_key(|row| (number(row, round), number(row, case)));
    let mut writer = Writer::from_writer(Vec::new());
    writer.write_record(&columns).context("cannot write CSV")?;
    rows.iter().try_for_each(|row| writer.write_record(row)).context("cannot write CSV")?;
    finished(writer)
}
