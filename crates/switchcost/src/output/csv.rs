//! Rows as CSV, and the samples of a run as rows. What was not read or does not apply is empty, never zero.

use ::csv::Writer;
use anyhow::{Context, Result};
use model::case::{rings, trials};
use model::ring::State;
use model::ring::{self, Disturbance};
use model::run::Run;
use model::speed::Slices;
use model::trial::Environment;
use model::trial::{self, Quantity, Trial};

/// Names of columns, and what stands there.
type Row = Vec<(&'static str, String)>;

/// Empty where it is not known.
pub(crate) fn known(value: Option<impl ToString>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

/// Several figures in one column.
fn several<T: ToString>(all: &[T]) -> String {
    all.iter().map(T::to_string).collect::<Vec<_>>().join(" ")
}

/// A column: its name, and what stands there in a row of `T`.
pub(crate) type Column<'a, T> = (&'static str, Box<dyn Fn(&T) -> String + 'a>);

/// The rows below a line of all columns, which is there without rows too.
pub(crate) fn table<T>(columns: &[Column<'_, T>], rows: &[T]) -> Result<Vec<u8>> {
    let row = |row: &T| columns.iter().map(|(name, of)| (*name, of(row))).collect();
    write(columns.iter().map(|(name, _)| *name).collect(), rows.iter().map(row))
}

fn columns(rows: &[Row]) -> Vec<&'static str> {
    let mut columns = Vec::new();
    for (name, _) in rows.iter().flatten() {
        if !columns.contains(name) {
            columns.push(*name);
        }
    }
    columns
}

fn cell<'a>(row: &'a Row, column: &str) -> &'a str {
    row.iter().find(|(name, _)| *name == column).map_or("", |(_, text)| text)
}

fn write(columns: Vec<&str>, rows: impl IntoIterator<Item = Row>) -> Result<Vec<u8>> {
    let mut writer = Writer::from_writer(Vec::new());
    if !columns.is_empty() {
        writer.write_record(&columns).context("cannot write CSV")?;
    }
    for row in rows {
        let cells = columns.iter().map(|column| cell(&row, column));
        writer.write_record(cells).context("cannot write CSV")?;
    }
    writer.into_inner().map_err(|error| error.into_error()).context("cannot write CSV")
}

/// All samples of a run. Of one that has rings and trials both, by round and case.
pub(crate) fn samples(run: &Run) -> Result<Vec<u8>> {
    let of_rings = rings(&run.samples).filter_map(|sample| ring_row(run, sample));
    let of_trials = trials(&run.samples).filter_map(|sample| trial_rows(run, sample)).flatten();
    let mut rows: Vec<Row> = of_rings.chain(of_trials).collect();
    let columns = columns(&rows);
    if run.header.plan.rings().next().is_some() && run.header.plan.trials().next().is_some() {
        let number = |row: &Row, column| cell(row, column).parse::<u64>().ok();
        rows.sort_by_key(|row| (number(row, "round"), number(row, "case")));
    }
    write(columns, rows)
}

fn ring_row(run: &Run, sample: &ring::Sample) -> Option<Row> {
    let case = run.header.plan.ring(sample.case)?;
    let (counters, work) = (&sample.counters, case.work.as_ref());
    let split = sample.user_system_ns();
    let slices = |of: fn(&Slices) -> String| known(sample.slices.as_ref().map(of));
    Some(vec![
        ("experiment", run.header.plan.experiment.to_string()),
        ("case", sample.case.to_string()),
        ("round", sample.round.to_string()),
        ("sample", sample.sample.to_string()),
        ("members", case.members.to_string()),
        ("kind", case.kind.name().to_string()),
        ("link", case.link.clone()),
        ("work_bytes", work.map_or(0, |work| work.bytes).to_string()),
        ("stride_bytes", known(work.map(|work| work.stride_bytes))),
        ("op", known(work.map(|work| work.op.name()))),
        ("placement", case.placement.to_string()),
        ("policy", case.policy.name().to_string()),
        ("hops", sample.hops.to_string()),
        ("elapsed_ns", sample.elapsed_ns.to_string()),
        ("user_ns", known(split.map(|(user, _)| user))),
        ("system_ns", known(split.map(|(_, system)| system))),
        ("voluntary", counters.voluntary.to_string()),
        ("involuntary", counters.involuntary.to_string()),
        ("migrations", known(counters.migrations)),
        ("minor_faults", counters.minor_faults.to_string()),
        ("major_faults", counters.major_faults.to_string()),
        ("steal_ns", known(sample.steal_ns)),
        ("laps", sample.laps.to_string()),
        ("cpu_ns", sample.cpu_ns().to_string()),
        ("setup_ns", sample.setup_ns.to_string()),
        ("cpus", several(&case.placement.cpus())),
        ("disturbed", several::<Disturbance>(&sample.disturbances(case))),
        ("walk", known(work.map(|work| work.walk.name()))),
        ("huge_pages", known(work.map(|work| work.huge_pages))),
        ("priority", known(case.priority)),
        ("state", known(case.state.map(State::name))),
        ("slice_laps", slices(|slices| slices.laps.to_string())),
        ("slices_ns", slices(|slices| several(&slices.elapsed_ns))),
        ("latency_quanta_ns", slices(|slices| several(&slices.latency_ns))),
        ("throughput_quanta_ns", slices(|slices| several(&slices.throughput_ns))),
        ("waited_ns", slices(|slices| known(slices.waited_ns()))),
        ("huge_page_bytes", known(sample.huge_page_bytes)),
    ])
}

/// A row for each quantity of a trial; its unit is the end of its name.
fn trial_rows(run: &Run, sample: &trial::Sample) -> Option<Vec<Row>> {
    let case = run.header.plan.trial(sample.case)?;
    let labels: Row = match &case.trial {
        Trial::Call { call } | Trial::Loop { call } => vec![("call", call.clone())],
        Trial::TwoProcesses => vec![("call", "two-processes".to_string())],
        Trial::Gaps { .. } => vec![("call", "gaps".to_string())],
        Trial::Wakeup(wakeup) => {
            vec![("call", "wakeup".to_string()), ("load", wakeup.load.to_string())]
        }
        Trial::Primes { primes } => vec![("primes", primes.to_string())],
        Trial::Malloc { bytes, preload } => {
            vec![("bytes", bytes.to_string()), ("preload", known(preload.as_ref()))]
        }
        Trial::Sampling { phase, .. } => vec![("phase", phase.to_string())],
        Trial::Execution(execution) => {
            let is_disturbed = execution.environment == Environment::Disturbed;
            vec![
                ("bytes", execution.work.bytes.to_string()),
                ("setting", execution.setting.to_string()),
                ("environment", execution.environment.to_string()),
                ("noise", known(is_disturbed.then(|| execution.noise.name()))),
                ("laps", execution.laps.to_string()),
            ]
        }
    };
    let label = |name: &'static str| {
        let found = labels.iter().find(|(known, _)| *known == name);
        (name, known(found.map(|(_, value)| value)))
    };
    let row = |name: &str, total: f64, figures: Option<Quantity>| {
        let figure = |of: fn(&Quantity) -> Option<String>| known(figures.as_ref().and_then(of));
        vec![
            ("experiment", run.header.plan.experiment.to_string()),
            ("case", sample.case.to_string()),
            ("round", sample.round.to_string()),
            ("cpu", case.cpu.to_string()),
            ("policy", case.policy.name().to_string()),
            label("call"),
            label("primes"),
            label("bytes"),
            label("preload"),
            label("phase"),
            ("elapsed_ns", sample.elapsed_ns.to_string()),
            ("steal_ns", known(sample.steal_ns)),
            ("quantity", name.to_string()),
            // Values of a tally, and their sum; of a count itself.
            ("values", figure(|of| Some(of.count.to_string()))),
            ("total", format!("{total:?}")),
            ("mean", figure(|of| Some(format!("{:?}", of.mean)))),
            ("sd", figure(|of| Some(format!("{:?}", of.sd?)))),
            ("min", figure(|of| Some(of.min.to_string()))),
            ("p50", figure(|of| Some(of.p50.to_string()))),
            ("p99", figure(|of| Some(of.p99.to_string()))),
            ("max", figure(|of| Some(of.max.to_string()))),
            label("setting"),
            label("environment"),
            label("noise"),
            label("laps"),
            label("load"),
        ]
    };
    let tallies = sample.all_tallies();
    let of_tallies = tallies
        .iter()
        .filter_map(|(name, tally)| Some(row(name, tally.total(), Some(Quantity::of(tally)?))));
    let of_counts = sample.counts.iter().map(|(name, count)| row(name, *count as f64, None));
    Some(of_tallies.chain(of_counts).collect())
}
