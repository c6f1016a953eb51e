//! One row a sample. The first columns are the same for every experiment that rests on the ring.

use anyhow::{Context, Result};
use model::ring::{Disturbance, Sample};
use model::run::Run;
use model::sample::rings;
use model::speed::Slices;
use model::state::State;
use serde::Serialize;

/// A row. What was not read is empty, never zero.
#[derive(Serialize)]
struct Row<'a> {
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

fn row<'a>(run: &'a Run, sample: &'a Sample) -> Option<Row<'a>> {
    let case = run.header.plan.ring(sample.case)?;
    let (counters, slices) = (&sample.counters, sample.slices.as_ref());
    let split = sample.user_system_ns();
    let words = sample.disturbances(case).iter().map(Disturbance::to_string).collect::<Vec<_>>();
    let cpus = case.placement.cpus().iter().map(u32::to_string).collect::<Vec<_>>();
    Some(Row {
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
pub(crate) fn rows(run: &Run) -> Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rings(&run.samples).filter_map(|sample| row(run, sample)) {
        writer.serialize(row).context("cannot write a sample as CSV")?;
    }
    writer.into_inner().map_err(|error| error.into_error()).context("cannot write CSV")
}
