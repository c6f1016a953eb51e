//! SampleRows as CSV, and the samples of a run as rows. What was not read or does not apply is empty,
//! never zero.

use std::fmt::{Display, Write as _};
use std::io::Write;

use ::csv::{Writer, WriterBuilder};
use anyhow::{Context, Result};
use charts::{clean, is_obeyed};
use rundata::case::Sample;
use rundata::experiment::Experiment;
use rundata::plan::Plan;
use rundata::ring::{self, Burden, CountedEvent, Disturbance, RegisterState, Slices};
use rundata::run::Run;
use rundata::trial::interference::Environment;
use rundata::trial::{self, TallySummary, Trial};

use crate::base::values::each_once;

/// Empty where it is not known.
pub(crate) fn known(value: Option<impl ToString>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

/// Several figures in one column.
fn several<T: Display>(all: &[T]) -> String {
    let mut text = String::new();
    for one in all {
        if !text.is_empty() {
            text.push(' ');
        }
        let _ = write!(text, "{one}");
    }
    text
}

/// SampleRows below a line of the columns' names, which is there without rows too.
pub(crate) fn write(
    names: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    let mut table = Table::new(names, &mut all)?;
    rows.into_iter().try_for_each(|row| table.row(row))?;
    table.finish()?;
    Ok(all)
}

/// Whether a spreadsheet would calculate it: what begins so and is no number. Names come from whoever
/// gave them.
fn is_formula(cell: &str) -> bool {
    cell.starts_with(['=', '+', '-', '@']) && cell.len() > 1 && cell.parse::<f64>().is_err()
}

/// A table that is being written.
struct Table<W: Write>(Writer<W>);

impl<W: Write> Table<W> {
    fn new(names: &[&str], to: W) -> Result<Self> {
        let mut writer = WriterBuilder::new().buffer_capacity(WRITTEN_BYTES).from_writer(to);
        writer.write_record(names).context("cannot write CSV")?;
        Ok(Self(writer))
    }

    fn row(&mut self, mut row: Vec<String>) -> Result<()> {
        // CSV has no way to escape these (RFC 4180, section 2).
        row.iter_mut().filter(|cell| cell.contains(is_obeyed)).for_each(|cell| *cell = clean(cell));
        // A spreadsheet takes these for formulas.
        let formulas = row.iter_mut().filter(|cell| is_formula(cell));
        formulas.for_each(|cell| cell.insert(0, '\''));
        self.0.write_record(row).context("cannot write CSV")
    }

    fn finish(mut self) -> Result<()> {
        self.0.flush().context("cannot write CSV")
    }
}

/// Bytes of CSV that are written at once.
const WRITTEN_BYTES: usize = 1 << 16;

/// Writes all samples of a run. Of one that has rings and trials both, by round and case.
pub(crate) fn samples(run: &Run, to: impl Write) -> Result<()> {
    rows_of(run, SampleRows::new(&run.header.plan, to)?)
}

/// The same without what is written slice by slice, which is most of it.
pub(crate) fn samples_without_slices(run: &Run, to: impl Write) -> Result<()> {
    rows_of(run, SampleRows::with(&run.header.plan, |name| !OF_SLICES.contains(&name), to)?)
}

fn rows_of(run: &Run, mut rows: SampleRows<impl Write>) -> Result<()> {
    let plan = &run.header.plan;
    let mut samples: Vec<&Sample> = run.samples.iter().collect();
    if !keeps_order(plan) {
        samples.sort_by_key(|sample| (sample.round(), sample.case()));
    }
    samples.into_iter().try_for_each(|sample| rows.write_sample(sample))?;
    rows.finish()
}

/// Whether the rows of a plan's samples are in the order of the samples.
pub(crate) fn keeps_order(plan: &Plan) -> bool {
    plan.rings().next().is_none() || plan.trials().next().is_none()
}

/// The rows of samples: one of a ring, one for each quantity of a trial.
pub(crate) struct SampleRows<'a, W: Write> {
    plan: &'a Plan,
    table: Table<W>,
    /// What fills each column of a ring's row; a column of trials alone is empty.
    of_ring: Vec<Option<OfRing>>,
    /// The same of a trial's row.
    of_trial: Vec<Option<OfTrial>>,
}

impl<'a, W: Write> SampleRows<'a, W> {
    pub(crate) fn new(plan: &'a Plan, to: W) -> Result<Self> {
        Self::with(plan, |_| true, to)
    }

    /// Of these columns alone.
    fn with(plan: &'a Plan, is_wanted: impl Fn(&str) -> bool, to: W) -> Result<Self> {
        let (of_rings, of_trials) = (RING.map(|(name, _)| name), TRIAL.map(|(name, _)| name));
        let is_shown = |name: &&&str| match name.parse::<CountedEvent>() {
            Ok(event) => is_counted(plan, event),
            Err(_) => **name != BURDEN || plan.rings().any(|(_, of)| of.burden.is_some()),
        };
        let rings = of_rings.iter().filter(|_| plan.rings().next().is_some()).filter(is_shown);
        let trials = of_trials.iter().filter(|_| plan.trials().next().is_some());
        let wanted = rings.chain(trials).copied().filter(|name| is_wanted(name));
        let names = each_once(wanted);
        let of_ring = names.iter().map(|name| filler(&RING, name)).collect();
        let of_trial = names.iter().map(|name| filler(&TRIAL, name)).collect();
        Ok(Self { plan, table: Table::new(&names, to)?, of_ring, of_trial })
    }

    /// Writes those of a sample.
    pub(crate) fn write_sample(&mut self, sample: &Sample) -> Result<()> {
        let plan = self.plan;
        match sample {
            Sample::Ring(sample) => {
                let Some(case) = plan.ring(sample.case) else { return Ok(()) };
                let row = Ring { plan, case, sample };
                self.table.row(self.of_ring.iter().map(|of| known(of.map(|of| of(&row)))).collect())
            }
            Sample::Trial(sample) => quantities(plan, sample).iter().try_for_each(|row| {
                let cells = self.of_trial.iter().map(|of| known(of.map(|of| of(row))));
                self.table.row(cells.collect())
            }),
        }
    }

    /// Writes what is left.
    pub(crate) fn finish(self) -> Result<()> {
        self.table.finish()
    }
}

/// What fills a column of such a row, if it has one of this name.
fn filler<T: Copy>(columns: &[(&str, T)], name: &str) -> Option<T> {
    columns.iter().find(|(known, _)| *known == name).map(|(_, of)| *of)
}

/// Whether some case of a plan counts such events.
fn is_counted(plan: &Plan, event: CountedEvent) -> bool {
    let of_parts = plan.parts.iter().map(|part| &part.batching);
    of_parts.chain([&plan.batching]).any(|batching| batching.ring.events.contains(&event))
}

/// The experiment that a case is of.
fn experiment_of(plan: &Plan, case: usize) -> Experiment {
    let part = plan.place_of(case).and_then(|(part, _)| plan.parts.get(part));
    part.map_or(plan.experiment, |part| part.experiment)
}

/// A sample of a ring.
struct Ring<'a> {
    plan: &'a Plan,
    case: &'a ring::RingCase,
    sample: &'a ring::RingSample,
}

impl Ring<'_> {
    /// What was counted of an event, of all slices together.
    fn counted(&self, event: CountedEvent) -> String {
        let place =
            self.plan.batching_of(self.sample.case).ring.events.iter().position(|of| *of == event);
        let counts = || self.sample.slices.as_ref()?.counts_of(place?);
        known(counts().map(|all| all.iter().fold(0, |sum: u64, one| sum.saturating_add(*one))))
    }
}

type OfRing = fn(&Ring) -> String;

/// A column of plans that have a burden only, as those of events are: rows of others are to the byte
/// what they were.
const BURDEN: &str = "burden";

/// Columns with a figure for each slice of a sample.
const OF_SLICES: [&str; 3] = ["slices_ns", "latency_quanta_ns", "throughput_quanta_ns"];

/// Columns by name.
const RING: [(&str, OfRing); 47] = [
    ("experiment", |of| experiment_of(of.plan, of.sample.case).to_string()),
    ("case", |of| of.sample.case.to_string()),
    ("round", |of| of.sample.round.to_string()),
    ("sample", |of| of.sample.sample.to_string()),
    ("members", |of| of.case.members.to_string()),
    ("kind", |of| of.case.kind.name().to_string()),
    ("link", |of| of.case.link.clone()),
    ("work_bytes", |of| of.case.work.map_or(0, |work| work.bytes).to_string()),
    ("stride_bytes", |of| known(of.case.work.map(|work| work.stride_bytes))),
    ("op", |of| known(of.case.work.map(|work| work.op.name()))),
    ("placement", |of| of.case.placement.to_string()),
    ("policy", |of| of.case.policy.name().to_string()),
    ("hops", |of| of.sample.hops.to_string()),
    ("elapsed_ns", |of| of.sample.elapsed_ns.to_string()),
    ("user_ns", |of| known(of.sample.user_system_ns().map(|(user, _)| user))),
    ("system_ns", |of| known(of.sample.user_system_ns().map(|(_, system)| system))),
    ("voluntary", |of| of.sample.counters.voluntary.to_string()),
    ("involuntary", |of| of.sample.counters.involuntary.to_string()),
    ("migrations", |of| known(of.sample.counters.migrations)),
    ("minor_faults", |of| of.sample.counters.minor_faults.to_string()),
    ("major_faults", |of| of.sample.counters.major_faults.to_string()),
    ("steal_ns", |of| known(of.sample.steal_ns)),
    ("laps", |of| of.sample.laps.to_string()),
    ("cpu_ns", |of| of.sample.cpu_ns().to_string()),
    ("setup_ns", |of| of.sample.setup_ns.to_string()),
    ("cpus", |of| several(&of.case.placement.cpus())),
    ("disturbed", |of| several::<Disturbance>(&of.sample.disturbances(of.case))),
    ("walk", |of| known(of.case.work.map(|work| work.walk.name()))),
    ("huge_pages", |of| known(of.case.work.map(|work| work.huge_pages))),
    ("priority", |of| known(of.case.priority)),
    ("state", |of| known(of.case.state.map(RegisterState::name))),
    ("slice_laps", |of| known(of.sample.slices.as_ref().map(|of| of.laps))),
    ("slices_ns", |of| known(of.sample.slices.as_ref().map(|of| several(&of.elapsed_ns)))),
    ("latency_quanta_ns", |of| known(of.sample.slices.as_ref().map(|of| several(&of.latency_ns)))),
    ("throughput_quanta_ns", |of| {
        known(of.sample.slices.as_ref().map(|of| several(&of.throughput_ns)))
    }),
    ("waited_ns", |of| known(of.sample.slices.as_ref().and_then(Slices::waited_ns))),
    ("huge_page_bytes", |of| known(of.sample.huge_page_bytes)),
    (BURDEN, |of| known(of.case.burden.map(Burden::name))),
    ("cycles", |of| of.counted(CountedEvent::Cycles)),
    ("instructions", |of| of.counted(CountedEvent::Instructions)),
    ("L1-dcache-load-misses", |of| of.counted(CountedEvent::L1Misses)),
    ("LLC-load-misses", |of| of.counted(CountedEvent::LastLevelMisses)),
    ("dTLB-load-misses", |of| of.counted(CountedEvent::DataTlbMisses)),
    ("iTLB-load-misses", |of| of.counted(CountedEvent::InstructionTlbMisses)),
    ("context-switches", |of| of.counted(CountedEvent::ContextSwitches)),
    ("page-faults", |of| of.counted(CountedEvent::PageFaults)),
    ("cpu-migrations", |of| of.counted(CountedEvent::Migrations)),
];

/// A quantity of a sample of a trial; its unit is the end of its name.
struct Measured<'a> {
    plan: &'a Plan,
    case: &'a trial::TrialCase,
    sample: &'a trial::TrialSample,
    name: String,
    /// The sum of a tally's values; a count itself.
    total: f64,
    tally: Option<TallySummary>,
}

/// All tallies with values, then all counts.
fn quantities<'a>(plan: &'a Plan, sample: &'a trial::TrialSample) -> Vec<Measured<'a>> {
    let Some(case) = plan.trial(sample.case) else { return Vec::new() };
    let measured =
        |name: &str, total, tally| Measured { plan, case, sample, name: name.into(), total, tally };
    let tallies = sample.all_tallies();
    let of_tallies = tallies.iter().filter_map(|(name, of)| {
        Some(measured(name, of.total(), Some(TallySummary::from_tally(of)?)))
    });
    let of_counts = sample.counts.iter().map(|(name, count)| measured(name, *count as f64, None));
    of_tallies.chain(of_counts).collect()
}

impl Measured<'_> {
    /// What tells its trial from others of the experiment.
    fn label(&self, name: &str) -> String {
        match (&self.case.trial, name) {
            (Trial::Call { call } | Trial::Loop { call }, "call") => call.clone(),
            (Trial::Command(of), "call") => of.to_string(),
            (Trial::Command(of), "bytes") => of.bytes.to_string(),
            (Trial::TwoProcesses, "call") => "two-processes".to_string(),
            (Trial::Gaps { .. }, "call") => "gaps".to_string(),
            (Trial::Wakeup(_), "call") => "wakeup".to_string(),
            (Trial::Wakeup(wakeup), "load") => wakeup.load.to_string(),
            (Trial::Wakeup(wakeup), "timer_slack_ns") => wakeup.timer_slack_ns.to_string(),
            (Trial::Wakeup(wakeup), "cpu_latency_us") => known(wakeup.cpu_latency_us),
            (Trial::Primes { primes }, "primes") => primes.to_string(),
            (Trial::Malloc { bytes, .. }, "bytes") => bytes.to_string(),
            (Trial::Malloc { preload, .. }, "preload") => known(preload.as_ref()),
            (Trial::Sampling { phase, .. }, "phase") => phase.to_string(),
            (Trial::Execution(of), "bytes") => of.work.bytes.to_string(),
            (Trial::Execution(of), "setting") => of.setting.to_string(),
            (Trial::Execution(of), "environment") => of.environment.to_string(),
            (Trial::Execution(of), "noise") => {
                let is_disturbed = of.environment == Environment::Disturbed;
                known(is_disturbed.then(|| of.noise.name()))
            }
            (Trial::Execution(of), "laps") => of.laps.to_string(),
            _ => String::new(),
        }
    }

    /// A figure of a tally; of a count only the total is known.
    fn tally<T: ToString>(&self, of: fn(&TallySummary) -> T) -> String {
        known(self.tally.as_ref().map(of))
    }
}

type OfTrial = fn(&Measured) -> String;

/// Columns by name.
const TRIAL: [(&str, OfTrial); 28] = [
    ("experiment", |of| experiment_of(of.plan, of.sample.case).to_string()),
    ("case", |of| of.sample.case.to_string()),
    ("round", |of| of.sample.round.to_string()),
    ("cpu", |of| of.case.cpu.to_string()),
    ("policy", |of| of.case.policy.name().to_string()),
    ("call", |of| of.label("call")),
    ("primes", |of| of.label("primes")),
    ("bytes", |of| of.label("bytes")),
    ("preload", |of| of.label("preload")),
    ("phase", |of| of.label("phase")),
    ("elapsed_ns", |of| of.sample.elapsed_ns.to_string()),
    ("steal_ns", |of| known(of.sample.steal_ns)),
    ("quantity", |of| of.name.clone()),
    ("values", |of| of.tally(|tally| tally.count)),
    ("total", |of| format!("{:?}", of.total)),
    ("mean", |of| of.tally(|tally| format!("{:?}", tally.mean))),
    ("sd", |of| of.tally(|tally| known(tally.sd.map(|sd| format!("{sd:?}"))))),
    ("min", |of| of.tally(|tally| tally.min)),
    ("p50", |of| of.tally(|tally| tally.p50)),
    ("p99", |of| of.tally(|tally| tally.p99)),
    ("max", |of| of.tally(|tally| tally.max)),
    ("setting", |of| of.label("setting")),
    ("environment", |of| of.label("environment")),
    ("noise", |of| of.label("noise")),
    ("laps", |of| of.label("laps")),
    ("load", |of| of.label("load")),
    ("timer_slack_ns", |of| of.label("timer_slack_ns")),
    ("cpu_latency_us", |of| of.label("cpu_latency_us")),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rundata::placement::Placement;
    use rundata::ring::{AccessKind, CoreWait, Counters, Policy, Walk, Work};
    use rundata::trial::interference::{Execution, Noise, PacketWire, ProgramSetting};
    use rundata::trial::sampling::SleepPhase;
    use rundata::trial::wakeup::{Wakeup, WakeupLoad};

    use super::*;
    use crate::report::output::declarations;

    #[test]
    fn the_columns_of_samples_are_those_declared() {
        let of_rings = RING.iter().map(|(name, _)| *name);
        let mut names = each_once(of_rings.chain(TRIAL.iter().map(|(name, _)| *name)));
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

    /// Of a sample in which no two fields are alike.
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
        let row = Ring { plan: &plan, case: &case, sample: &sample };
        // Of CPU time the quanta are left out: 41 + 42 + 51 + 52.
        let expected = "experiment=ring, case=4, round=6, sample=8, members=3, kind=thread, \
                        link=futex, work_bytes=4096, stride_bytes=64, op=write, placement=1,0, \
                        policy=fifo, hops=21, elapsed_ns=1000, user_ns=314, system_ns=1400, \
                        voluntary=9, involuntary=10, migrations=11, minor_faults=12, \
                        major_faults=13, steal_ns=14, laps=7, cpu_ns=1714, setup_ns=15, cpus=0 1, \
                        disturbed=steal:14ns major-faults:13 migrations:11, walk=sparse, \
                        huge_pages=true, priority=17, state=avx, slice_laps=5, slices_ns=31 32, \
                        latency_quanta_ns=41 42, throughput_quanta_ns=51 52, waited_ns=61, \
                        huge_page_bytes=16, burden=seccomp, cycles=108, instructions=107, \
                        L1-dcache-load-misses=106, LLC-load-misses=105, dTLB-load-misses=104, \
                        iTLB-load-misses=103, context-switches=102, page-faults=101, \
                        cpu-migrations=100";
        assert_eq!(RING.map(|(name, of)| format!("{name}={}", of(&row))).join(", "), expected);
    }

    /// The same; what a trial does not have is empty.
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
            let row = &quantities(&plan, &sample)[0];
            let cells = TRIAL.map(|(name, of)| (name, of(row))).into_iter();
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
        let names = RING.map(|(name, _)| name);
        let promised = names.iter().position(|name| *name == "steal_ns").expect("it is a column");
        let promised = names[..=promised].join(",");
        assert!(docs.contains(&format!("`{promised}`")), "{promised}");
    }
}
