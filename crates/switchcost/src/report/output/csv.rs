//! Rows as CSV, and the samples of a run as rows. A cell that was not read or does not apply is empty,
//! never zero.
//!
//! One table has the samples of rings and of trials. Its columns are those of [`RING_COLUMNS`], then
//! those of [`TRIAL_COLUMNS`] that rings do not have; a cell of the other kind is empty:
//!
//! ```text
//! experiment,case,round,...,members,...,call,...
//! response,0,0,...,2,...,,...                       a sample of a ring
//! response,3,0,...,,...,getpid,...                  a quantity of a sample of a trial
//! ```

use std::fmt::{Display, Write as _};
use std::io::Write;

use ::csv::{Writer, WriterBuilder};
use anyhow::{Context, Result};
use charts::{clean, is_obeyed};
use rundata::case::Sample;
use rundata::experiment::Experiment;
use rundata::plan::Plan;
use rundata::ring::{self, Burden, CountedEvent, Disturbance, RegisterState, Slices, Work};
use rundata::run::Run;
use rundata::trial::interference::Environment;
use rundata::trial::{self, TallySummary, Trial};

use crate::base::values::each_once;

/// Returns the cell of a value that may be unknown; empty then.
pub(crate) fn known(value: Option<impl ToString>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

/// Joins several figures for one cell.
fn several<T: Display>(figures: &[T]) -> String {
    let mut text = String::new();
    for figure in figures {
        if !text.is_empty() {
            text.push(' ');
        }
        let _ = write!(text, "{figure}");
    }
    text
}

/// Writes rows below a line of the columns' names, which is there without rows too.
pub(crate) fn write(
    names: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut writer = RowWriter::new(names, &mut bytes)?;
    for row in rows {
        writer.write_row(row)?;
    }
    writer.finish()?;
    Ok(bytes)
}

/// Returns whether a spreadsheet would take the cell for a formula, and calculate it: it begins like
/// one and is no number. Names in cells come from whoever gave them.
fn is_formula(cell: &str) -> bool {
    cell.starts_with(['=', '+', '-', '@']) && cell.len() > 1 && cell.parse::<f64>().is_err()
}

/// Bytes of CSV that are written at once.
const BUFFER_BYTES: usize = 1 << 16;

/// Writes rows whose cells can neither act on a terminal nor be calculated by a spreadsheet.
struct RowWriter<W: Write>(Writer<W>);

impl<W: Write> RowWriter<W> {
    /// Writes the line of names.
    fn new(names: &[&str], to: W) -> Result<Self> {
        let mut writer = WriterBuilder::new().buffer_capacity(BUFFER_BYTES).from_writer(to);
        writer.write_record(names).context("cannot write CSV")?;
        Ok(Self(writer))
    }

    fn write_row(&mut self, mut row: Vec<String>) -> Result<()> {
        for cell in &mut row {
            // CSV has no way to escape these (RFC 4180, section 2).
            if cell.contains(is_obeyed) {
                *cell = clean(cell);
            }
            if is_formula(cell) {
                cell.insert(0, '\'');
            }
        }
        self.0.write_record(row).context("cannot write CSV")
    }

    fn finish(mut self) -> Result<()> {
        self.0.flush().context("cannot write CSV")
    }
}

/// Writes all samples of a run; by round and case if it has rings and trials both.
pub(crate) fn samples(run: &Run, to: impl Write) -> Result<()> {
    write_samples(run, SampleRows::new(&run.header.plan, to)?)
}

/// Writes all samples without the columns of slices, which are most of the bytes.
pub(crate) fn samples_without_slices(run: &Run, to: impl Write) -> Result<()> {
    let is_wanted = |name: &str| !SLICE_COLUMNS.contains(&name);
    write_samples(run, SampleRows::with_columns(&run.header.plan, is_wanted, to)?)
}

fn write_samples(run: &Run, mut rows: SampleRows<impl Write>) -> Result<()> {
    let mut samples: Vec<&Sample> = run.samples.iter().collect();
    if !keeps_order(&run.header.plan) {
        samples.sort_by_key(|sample| (sample.round(), sample.case()));
    }
    for sample in samples {
        rows.write_sample(sample)?;
    }
    rows.finish()
}

/// Returns whether the rows of a plan's samples are in the order of the samples.
pub(crate) fn keeps_order(plan: &Plan) -> bool {
    !has_rings(plan) || !has_trials(plan)
}

fn has_rings(plan: &Plan) -> bool {
    plan.rings().next().is_some()
}

fn has_trials(plan: &Plan) -> bool {
    plan.trials().next().is_some()
}

/// Writes samples as rows: one for a sample of a ring, one for each quantity of a sample of a trial.
pub(crate) struct SampleRows<'a, W: Write> {
    plan: &'a Plan,
    writer: RowWriter<W>,
    /// Fills each column in the row of a ring; absent where rings do not have the column.
    ring_cells: Vec<Option<RingCell>>,
    /// Fills each column in the row of a trial; absent where trials do not have the column.
    trial_cells: Vec<Option<TrialCell>>,
}

impl<'a, W: Write> SampleRows<'a, W> {
    pub(crate) fn new(plan: &'a Plan, to: W) -> Result<Self> {
        Self::with_columns(plan, |_| true, to)
    }

    /// Begins a table of the wanted columns only.
    fn with_columns(plan: &'a Plan, is_wanted: impl Fn(&str) -> bool, to: W) -> Result<Self> {
        let mut names = Vec::new();
        if has_rings(plan) {
            for (name, _) in RING_COLUMNS {
                if has_ring_column(plan, name) && is_wanted(name) {
                    names.push(name);
                }
            }
        }
        if has_trials(plan) {
            for (name, _) in TRIAL_COLUMNS {
                if is_wanted(name) {
                    names.push(name);
                }
            }
        }
        let names = each_once(names);
        Ok(Self {
            plan,
            writer: RowWriter::new(&names, to)?,
            ring_cells: names.iter().map(|name| find_cell(&RING_COLUMNS, name)).collect(),
            trial_cells: names.iter().map(|name| find_cell(&TRIAL_COLUMNS, name)).collect(),
        })
    }

    /// Writes the rows of a sample.
    pub(crate) fn write_sample(&mut self, sample: &Sample) -> Result<()> {
        match sample {
            Sample::Ring(sample) => self.write_ring(sample),
            Sample::Trial(sample) => self.write_trial(sample),
        }
    }

    fn write_ring(&mut self, sample: &ring::RingSample) -> Result<()> {
        let Some(case) = self.plan.ring(sample.case) else { return Ok(()) };
        let row = RingRow { plan: self.plan, case, sample };
        let cells = self.ring_cells.iter().map(|cell| known(cell.map(|cell| cell(&row))));
        self.writer.write_row(cells.collect())
    }

    fn write_trial(&mut self, sample: &trial::TrialSample) -> Result<()> {
        for row in trial_rows(self.plan, sample) {
            let cells = self.trial_cells.iter().map(|cell| known(cell.map(|cell| cell(&row))));
            self.writer.write_row(cells.collect())?;
        }
        Ok(())
    }

    /// Writes what is still in the buffer.
    pub(crate) fn finish(self) -> Result<()> {
        self.writer.finish()
    }
}

/// Finds the function that fills the column of this name.
fn find_cell<T: Copy>(columns: &[(&str, T)], name: &str) -> Option<T> {
    let (_, cell) = columns.iter().find(|(known, _)| *known == name)?;
    Some(*cell)
}

/// Returns whether rows of a plan's rings have a column: one of an event only if it is counted, those
/// of burdens, of items under way and of several rings only if a case has them. So the rows of plans
/// without them stay as they were before
/// these columns existed, byte by byte.
fn has_ring_column(plan: &Plan, name: &str) -> bool {
    match name.parse::<CountedEvent>() {
        Ok(event) => is_counted(plan, event),
        Err(_) if name == BURDEN => plan.rings().any(|(_, case)| case.burden.is_some()),
        Err(_) if name == FLIGHT => plan.rings().any(|(_, case)| case.flight.is_some()),
        Err(_) if name == RINGS => plan.rings().any(|(_, case)| case.has_several_rings()),
        Err(_) => true,
    }
}

/// Returns whether some case of a plan counts such events.
fn is_counted(plan: &Plan, event: CountedEvent) -> bool {
    plan.batching.ring.events.contains(&event)
        || plan.parts.iter().any(|part| part.batching.ring.events.contains(&event))
}

/// Returns the experiment that a case belongs to.
fn experiment_of(plan: &Plan, case: usize) -> Experiment {
    let part = plan.place_of(case).and_then(|(part, _)| plan.parts.get(part));
    match part {
        Some(part) => part.experiment,
        None => plan.experiment,
    }
}

/// The row of a sample of a ring.
struct RingRow<'a> {
    plan: &'a Plan,
    case: &'a ring::RingCase,
    sample: &'a ring::RingSample,
}

impl RingRow<'_> {
    /// Returns a cell on the working set; empty without one.
    fn work<T: ToString>(&self, cell: fn(&Work) -> T) -> String {
        known(self.case.work.as_ref().map(cell))
    }

    /// Returns a cell on the slices; empty for a sample without them.
    fn slices<T: ToString>(&self, cell: fn(&Slices) -> T) -> String {
        known(self.sample.slices.as_ref().map(cell))
    }

    /// Returns the count of an event over all slices; empty if it was not counted.
    fn counted(&self, event: CountedEvent) -> String {
        let events = &self.plan.batching_of(self.sample.case).ring.events;
        let Some(place) = events.iter().position(|counted| *counted == event) else {
            return String::new();
        };
        let slices = self.sample.slices.as_ref();
        let Some(counts) = slices.and_then(|slices| slices.counts_of(place)) else {
            return String::new();
        };
        let mut sum: u64 = 0;
        for count in counts {
            sum = sum.saturating_add(*count);
        }
        sum.to_string()
    }
}

/// Fills a cell in the row of a ring.
type RingCell = fn(&RingRow) -> String;

/// Name of the column that only plans with a burden have.
const BURDEN: &str = "burden";

/// Name of the column that only plans with several items under way have.
const FLIGHT: &str = "flight";
/// Name of the column that only plans with several rings have.
const RINGS: &str = "rings";

/// Names of the columns with a figure for each slice of a sample.
const SLICE_COLUMNS: [&str; 3] = ["slices_ns", "latency_quanta_ns", "throughput_quanta_ns"];

/// Columns of rings, in their order.
const RING_COLUMNS: [(&str, RingCell); 49] = [
    ("experiment", |row| experiment_of(row.plan, row.sample.case).to_string()),
    ("case", |row| row.sample.case.to_string()),
    ("round", |row| row.sample.round.to_string()),
    ("sample", |row| row.sample.sample.to_string()),
    ("members", |row| row.case.members.to_string()),
    ("kind", |row| row.case.kind.name().to_string()),
    ("link", |row| row.case.link.clone()),
    ("work_bytes", |row| row.case.work.map_or(0, |work| work.bytes).to_string()),
    ("stride_bytes", |row| row.work(|work| work.stride_bytes)),
    ("op", |row| row.work(|work| work.op.name())),
    ("placement", |row| row.case.placement_name()),
    ("policy", |row| row.case.policy.name().to_string()),
    ("hops", |row| row.sample.hops.to_string()),
    ("elapsed_ns", |row| row.sample.elapsed_ns.to_string()),
    ("user_ns", |row| known(row.sample.user_system_ns().map(|(user, _)| user))),
    ("system_ns", |row| known(row.sample.user_system_ns().map(|(_, system)| system))),
    ("voluntary", |row| row.sample.counters.voluntary.to_string()),
    ("involuntary", |row| row.sample.counters.involuntary.to_string()),
    ("migrations", |row| known(row.sample.counters.migrations)),
    ("minor_faults", |row| row.sample.counters.minor_faults.to_string()),
    ("major_faults", |row| row.sample.counters.major_faults.to_string()),
    ("steal_ns", |row| known(row.sample.steal_ns)),
    ("laps", |row| row.sample.laps.to_string()),
    ("cpu_ns", |row| row.sample.cpu_ns().to_string()),
    ("setup_ns", |row| row.sample.setup_ns.to_string()),
    ("cpus", |row| several(&row.case.cpus())),
    ("disturbed", |row| several::<Disturbance>(&row.sample.disturbances(row.case))),
    ("walk", |row| row.work(|work| work.walk.name())),
    ("huge_pages", |row| row.work(|work| work.huge_pages)),
    ("priority", |row| known(row.case.priority)),
    ("state", |row| known(row.case.state.map(RegisterState::name))),
    ("slice_laps", |row| row.slices(|slices| slices.laps)),
    ("slices_ns", |row| row.slices(|slices| several(&slices.elapsed_ns))),
    ("latency_quanta_ns", |row| row.slices(|slices| several(&slices.latency_ns))),
    ("throughput_quanta_ns", |row| row.slices(|slices| several(&slices.throughput_ns))),
    ("waited_ns", |row| row.slices(|slices| known(slices.waited_ns()))),
    ("huge_page_bytes", |row| known(row.sample.huge_page_bytes)),
    (BURDEN, |row| known(row.case.burden.map(Burden::name))),
    (FLIGHT, |row| known(row.case.flight)),
    (RINGS, |row| row.case.rings().to_string()),
    ("cycles", |row| row.counted(CountedEvent::Cycles)),
    ("instructions", |row| row.counted(CountedEvent::Instructions)),
    ("L1-dcache-load-misses", |row| row.counted(CountedEvent::L1Misses)),
    ("LLC-load-misses", |row| row.counted(CountedEvent::LastLevelMisses)),
    ("dTLB-load-misses", |row| row.counted(CountedEvent::DataTlbMisses)),
    ("iTLB-load-misses", |row| row.counted(CountedEvent::InstructionTlbMisses)),
    ("context-switches", |row| row.counted(CountedEvent::ContextSwitches)),
    ("page-faults", |row| row.counted(CountedEvent::PageFaults)),
    ("cpu-migrations", |row| row.counted(CountedEvent::Migrations)),
];

/// The row of one quantity of a sample of a trial. The unit of the quantity ends its name.
struct TrialRow<'a> {
    plan: &'a Plan,
    case: &'a trial::TrialCase,
    sample: &'a trial::TrialSample,
    name: String,
    /// The sum of a tally's values, or the count itself.
    total: f64,
    /// Absent of a count.
    tally: Option<TallySummary>,
}

/// Returns the rows of a sample: all tallies with values, then all counts.
fn trial_rows<'a>(plan: &'a Plan, sample: &'a trial::TrialSample) -> Vec<TrialRow<'a>> {
    let Some(case) = plan.trial(sample.case) else { return Vec::new() };
    let mut rows = Vec::new();
    for (name, tally) in &sample.all_tallies() {
        let Some(summary) = TallySummary::from_tally(tally) else { continue };
        let (name, total) = (name.to_string(), tally.total());
        rows.push(TrialRow { plan, case, sample, name, total, tally: Some(summary) });
    }
    for (name, count) in &sample.counts {
        let (name, total) = (name.to_string(), *count as f64);
        rows.push(TrialRow { plan, case, sample, name, total, tally: None });
    }
    rows
}

impl TrialRow<'_> {
    /// Returns a setting of the trial; empty if it has none of this name.
    fn label(&self, name: &str) -> String {
        match (&self.case.trial, name) {
            (Trial::Call { call } | Trial::Loop { call }, "call") => call.clone(),
            (Trial::Command(command), "call") => command.to_string(),
            (Trial::Switches(trace), "call") => trace.to_string(),
            (Trial::Command(command), "bytes") => command.bytes.to_string(),
            (Trial::TwoProcesses, "call") => "two-processes".to_string(),
            (Trial::Gaps { .. }, "call") => "gaps".to_string(),
            (Trial::Wakeup(_), "call") => "wakeup".to_string(),
            (Trial::Wakeup(wakeup), "load") => wakeup.load.to_string(),
            (Trial::Wakeup(wakeup), "timer_slack_ns") => wakeup.timer_slack_ns.to_string(),
            (Trial::Wakeup(wakeup), "cpu_latency_us") => known(wakeup.cpu_latency_us),
            (Trial::Load(load), "call") => format!("wakeup-{}", load.mechanism),
            (Trial::Load(load), "load") => load.load_words(),
            (Trial::Primes { primes }, "primes") => primes.to_string(),
            (Trial::Malloc { bytes, .. }, "bytes") => bytes.to_string(),
            (Trial::Malloc { preload, .. }, "preload") => known(preload.as_ref()),
            (Trial::Sampling { phase, .. }, "phase") => phase.to_string(),
            (Trial::Execution(execution), "bytes") => execution.work.bytes.to_string(),
            (Trial::Execution(execution), "setting") => execution.setting.to_string(),
            (Trial::Execution(execution), "environment") => execution.environment.to_string(),
            (Trial::Execution(execution), "noise") => {
                let is_disturbed = execution.environment == Environment::Disturbed;
                known(is_disturbed.then(|| execution.noise.name()))
            }
            (Trial::Execution(execution), "laps") => execution.laps.to_string(),
            _ => String::new(),
        }
    }

    /// Returns a figure of the tally; empty of a count.
    fn tally<T: ToString>(&self, figure: fn(&TallySummary) -> T) -> String {
        known(self.tally.as_ref().map(figure))
    }
}

/// Fills a cell in the row of a trial.
type TrialCell = fn(&TrialRow) -> String;

/// Columns of trials, in their order.
const TRIAL_COLUMNS: [(&str, TrialCell); 28] = [
    ("experiment", |row| experiment_of(row.plan, row.sample.case).to_string()),
    ("case", |row| row.sample.case.to_string()),
    ("round", |row| row.sample.round.to_string()),
    ("cpu", |row| row.case.cpu.to_string()),
    ("policy", |row| row.case.policy.name().to_string()),
    ("call", |row| row.label("call")),
    ("primes", |row| row.label("primes")),
    ("bytes", |row| row.label("bytes")),
    ("preload", |row| row.label("preload")),
    ("phase", |row| row.label("phase")),
    ("elapsed_ns", |row| row.sample.elapsed_ns.to_string()),
    ("steal_ns", |row| known(row.sample.steal_ns)),
    ("quantity", |row| row.name.clone()),
    ("values", |row| row.tally(|tally| tally.count)),
    ("total", |row| format!("{:?}", row.total)),
    ("mean", |row| row.tally(|tally| format!("{:?}", tally.mean))),
    ("sd", |row| row.tally(|tally| known(tally.sd.map(|sd| format!("{sd:?}"))))),
    ("min", |row| row.tally(|tally| tally.min)),
    ("p50", |row| row.tally(|tally| tally.p50)),
    ("p99", |row| row.tally(|tally| tally.p99)),
    ("max", |row| row.tally(|tally| tally.max)),
    ("setting", |row| row.label("setting")),
    ("environment", |row| row.label("environment")),
    ("noise", |row| row.label("noise")),
    ("laps", |row| row.label("laps")),
    ("load", |row| row.label("load")),
    ("timer_slack_ns", |row| row.label("timer_slack_ns")),
    ("cpu_latency_us", |row| row.label("cpu_latency_us")),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rundata::placement::Placement;
    use rundata::ring::{AccessKind, CoreWait, Counters, Flight, Policy, Walk};
    use rundata::trial::interference::{Execution, Noise, PacketWire, ProgramSetting};
    use rundata::trial::sampling::SleepPhase;
    use rundata::trial::wakeup::{Wakeup, WakeupLoad};

    use super::*;
    use crate::report::output::declarations;

    #[test]
    fn the_columns_of_samples_are_those_declared() {
        let ring_names = RING_COLUMNS.map(|(name, _)| name);
        let trial_names = TRIAL_COLUMNS.map(|(name, _)| name);
        let mut names = each_once(ring_names.into_iter().chain(trial_names));
        names.sort_unstable();
        assert_eq!(names, declarations::names(declarations::ExportedTable::Samples));
    }

    #[test]
    fn a_name_is_no_formula_and_a_number_stays_one() {
        let row = ["=1+1", "+a", "-b c", "@x", "-1.5", "+2", "-1e-9", "-", "a=b", "\t=1"];
        let rows = [row.map(String::from).to_vec()];
        let text = String::from_utf8(write(&["n"; 10], rows).unwrap()).unwrap();
        let line = text.lines().nth(1).unwrap();
        assert_eq!(line, "'=1+1,'+a,'-b c,'@x,-1.5,+2,-1e-9,-,a=b,'=1");
    }

    #[test]
    fn samples_of_rings_and_trials_are_in_the_order_of_rounds() {
        let mut run = Run::parse(include_str!("../../../tests/fixtures/measure.jsonl")).unwrap();
        run.samples.reverse();
        let mut text = Vec::new();
        samples(&run, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let heads: Vec<&str> = text.lines().next().unwrap().split(',').collect();
        let [round, case] = ["round", "case"].map(|name| {
            heads.iter().position(|head| *head == name).unwrap_or_else(|| panic!("no {name}"))
        });
        let mut rows: Vec<(u32, usize)> = Vec::new();
        for line in text.lines().skip(1) {
            let cells: Vec<&str> = line.split(',').collect();
            rows.push((cells[round].parse().unwrap(), cells[case].parse().unwrap()));
        }
        assert!(rows.is_sorted(), "{rows:?}");
        assert!(rows.first().unwrap().0 < rows.last().unwrap().0, "of several rounds");
    }

    /// No two fields of the sample are alike.
    #[test]
    fn every_column_of_a_ring_has_the_field_of_its_name() {
        let work = Work {
            bytes: 4096,
            stride_bytes: 64,
            op: AccessKind::Write,
            walk: Walk::Sparse,
            huge_pages: true,
        };
        let case = ring::RingCase {
            members: 3,
            kind: ring::MemberKind::Thread,
            link: "futex".into(),
            work: Some(work),
            placement: Placement::Pinned { cpus: vec![1, 0], relation: None },
            policy: Policy::Fifo,
            priority: Some(17),
            state: Some(RegisterState::Avx),
            burden: Some(Burden::Seccomp),
            flight: Some(Flight::Items(16)),
            beside: vec![Placement::Pinned { cpus: vec![1, 0], relation: None }],
        };
        let slices = Slices {
            laps: 5,
            elapsed_ns: vec![31, 32],
            latency_ns: vec![41, 42],
            throughput_ns: vec![51, 52],
            cpu_ns: Vec::new(),
            // Each event another count, in the plan's order: the last first.
            events: (0..9).map(|event| vec![event, 100]).collect(),
            waits: Some(vec![CoreWait { elapsed_ns: 61, ..CoreWait::default() }]),
        };
        let sample = ring::RingSample {
            case: 4,
            round: 6,
            sample: 8,
            laps: 7,
            hops: 21,
            elapsed_ns: 1000,
            counters: Counters {
                voluntary: 9,
                involuntary: 10,
                migrations: Some(11),
                minor_faults: 12,
                major_faults: 13,
                cpu_ns: 1900,
                user_ns: Some(500),
                system_ns: Some(1400),
                run_delay_ns: None,
                halts: None,
            },
            steal_ns: Some(14),
            setup_ns: 15,
            slices: Some(slices),
            huge_page_bytes: Some(16),
            ..ring::RingSample::default()
        };
        let mut plan = Plan::from_cases(Experiment::Ring, [case.clone()]);
        plan.batching.ring.events = CountedEvent::ALL.iter().rev().copied().collect();
        let row = RingRow { plan: &plan, case: &case, sample: &sample };
        // Of CPU time the quanta are left out: 41 + 42 + 51 + 52.
        let expected = "experiment=ring, case=4, round=6, sample=8, members=3, kind=thread, \
                        link=futex, work_bytes=4096, stride_bytes=64, op=write, placement=1,0, \
                        policy=fifo, hops=21, elapsed_ns=1000, user_ns=314, system_ns=1400, \
                        voluntary=9, involuntary=10, migrations=11, minor_faults=12, \
                        major_faults=13, steal_ns=14, laps=7, cpu_ns=1714, setup_ns=15, cpus=0 1, \
                        disturbed=steal:14ns major-faults:13 migrations:11, walk=sparse, \
                        huge_pages=true, priority=17, state=avx, slice_laps=5, slices_ns=31 32, \
                        latency_quanta_ns=41 42, throughput_quanta_ns=51 52, waited_ns=61, \
                        huge_page_bytes=16, burden=seccomp, flight=16, rings=2, cycles=108, \
                        instructions=107, \
                        L1-dcache-load-misses=106, LLC-load-misses=105, dTLB-load-misses=104, \
                        iTLB-load-misses=103, context-switches=102, page-faults=101, \
                        cpu-migrations=100";
        assert_eq!(
            RING_COLUMNS.map(|(name, cell)| format!("{name}={}", cell(&row))).join(", "),
            expected
        );
    }

    /// No two fields of the sample are alike; what a trial does not have is empty.
    #[test]
    fn every_column_of_a_trial_has_the_field_of_its_name() {
        let filled = |trial: Trial| {
            let case = trial::TrialCase { trial, cpu: 3, policy: Policy::Batch };
            let plan = Plan::from_cases(Experiment::Response, [case]);
            let sample = trial::TrialSample {
                case: 0,
                round: 6,
                elapsed_ns: 1000,
                elapsed_ticks: Some(999),
                tallies: BTreeMap::from([("late_ns".into(), [2, 5, 5, 8].into_iter().collect())]),
                sliced: Vec::new(),
                gaps: Vec::new(),
                counts: BTreeMap::new(),
                steal_ns: Some(14),
            };
            let row = &trial_rows(&plan, &sample)[0];
            let cells = TRIAL_COLUMNS.map(|(name, cell)| (name, cell(row))).into_iter();
            let filled = cells.filter(|(_, cell)| !cell.is_empty());
            filled.map(|(name, cell)| format!("{name}={cell}")).collect::<Vec<_>>().join(" ")
        };
        let assert_is = |trial, first: &str, last: &str| {
            let expected = format!(
                "experiment=response case=0 round=6 cpu=3 policy=batch{first} elapsed_ns=1000 \
                 steal_ns=14 quantity=late_ns values=4 total=20.0 mean=5.0 sd=2.449489742783178 \
                 min=2 p50=5 p99=8 max=8{last}"
            );
            assert_eq!(filled(trial), expected);
        };
        assert_is(Trial::Call { call: "getpid".into() }, " call=getpid", "");
        assert_is(Trial::Primes { primes: 40 }, " primes=40", "");
        let malloc = Trial::Malloc { bytes: 41, preload: Some("lib".into()) };
        assert_is(malloc, " bytes=41 preload=lib", "");
        let sampling = Trial::Sampling { phase: SleepPhase::Anywhere, duration_ns: 42 };
        assert_is(sampling, " phase=anywhere", "");
        let execution = Execution {
            setting: ProgramSetting::Augmented,
            environment: Environment::Disturbed,
            noise: Noise::Timer,
            noise_cpu: 2,
            work: Work::new(4096, 64, AccessKind::Write).unwrap(),
            laps: 7,
            seed: 9,
            priority: Some(17),
            wire: PacketWire::Loopback,
        };
        let words = " setting=augmented environment=disturbed noise=timer laps=7";
        assert_is(Trial::Execution(execution), " bytes=4096", words);
        let wakeup = Wakeup {
            load: WakeupLoad::Busy,
            wakes: 30,
            period_ns: 31,
            timer_slack_ns: 32,
            seed: 33,
            cpu_latency_us: Some(34),
        };
        let words = " load=busy timer_slack_ns=32 cpu_latency_us=34";
        assert_is(Trial::Wakeup(wakeup), " call=wakeup", words);
    }

    #[test]
    fn the_docs_have_the_first_columns_of_a_ring_in_their_order() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/record-format.md");
        let docs = std::fs::read_to_string(path).expect("docs/record-format.md");
        let names = RING_COLUMNS.map(|(name, _)| name);
        let promised = names.iter().position(|name| *name == "steal_ns").expect("it is a column");
        let promised = names[..=promised].join(",");
        assert!(docs.contains(&format!("`{promised}`")), "{promised}");
    }
}
