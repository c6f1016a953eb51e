use rundata::case::Sample;
use rundata::experiment::Experiment;
use rundata::plan::Plan;
use rundata::ring::Policy;
use rundata::run::{Run, RunEnd, StopReason};
use rundata::trial::switches::{WAIT_NS, busy_ns};
use rundata::trial::{Tally, TrialCase};

use super::*;
use crate::estimate::SHARED_LAUNCH_SCATTER;
use crate::findings::ExperimentFindings;
use crate::record::TrialRecord;
use crate::results::Results;

/// A second of a trace: its voluntary switches, and how long tasks waited by the beginnings of bins.
#[derive(Clone, Debug, Default)]
pub(crate) struct Second {
    pub(crate) voluntary: i64,
    pub(crate) preempted: i64,
    pub(crate) waits: Vec<(i64, u32)>,
}

/// Builds the run of a trace with these parts, in bins of 0, 1,024, 2,048, ... 65,536 ns.
pub(crate) fn traced_run(name: &str, seconds: &[Second]) -> Run {
    let text = include_str!("../../../../rundata/tests/fixtures/run-v1.jsonl");
    let mut run = Run::new(Run::parse(text).expect("a run file").header);
    let bins_ns = [0].into_iter().chain((10..=16).map(|shift| 1 << shift)).collect();
    let trace = SwitchTrace { tasks: TracedTasks::Machine, command: Vec::new(), bins_ns };
    let case = TrialCase { trial: Trial::Switches(trace), cpu: 0, policy: Policy::Other };
    run.header.run = name.to_string();
    run.header.name = None;
    run.header.plan = Plan::from_cases(Experiment::Trace, [case]);
    run.header.plan.reference.launch_scatter = Some(SHARED_LAUNCH_SCATTER);
    for (round, second) in (0..).zip(seconds) {
        let busy = [(busy_ns(0), 250_000_000), (busy_ns(1), 750_000_000)];
        let mut counts = BTreeMap::from(busy);
        counts.insert(VOLUNTARY.to_string(), second.voluntary);
        counts.insert(PREEMPTED.to_string(), second.preempted);
        counts.insert(YIELDED.to_string(), 0);
        counts.insert(MIGRATIONS.to_string(), 3);
        run.samples.push(Sample::Trial(TrialSample {
            case: 0,
            round,
            elapsed_ns: 1_000_000_000,
            elapsed_ticks: None,
            tallies: BTreeMap::from([(WAIT_NS.to_string(), Tally::from(second.waits.clone()))]),
            sliced: Vec::new(),
            gaps: Vec::new(),
            counts,
            steal_ns: None,
        }));
    }
    let (reason, spent_ns) = (StopReason::BudgetSpent, seconds.len() as u64 * 1_000_000_000);
    run.end = Some(RunEnd { reason, finished: run.header.started.clone(), spent_ns });
    run
}

fn found(run: &Run) -> TraceFindings {
    match TrialRecord::from_run(run).found.findings {
        Some(ExperimentFindings::Trace(found)) => *found,
        other => panic!("{other:?}"),
    }
}

fn estimate(found: &TraceFindings, id: &str) -> Estimate {
    found.figure(id).unwrap_or_else(|| panic!("{id} of {found:?}")).estimate
}

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * other.abs().max(1.0)
}

/// Rates of 80 to 120 have a mean of 100, and without one of the parts one of 95 to 105: the standard
/// error of its logarithm is sqrt(4/5 x the sum of squares of theirs), and t(0.975; 4) = 2.776.
#[test]
fn the_interval_of_a_rate_is_by_the_scatter_of_the_parts() {
    let mut seconds = Vec::new();
    for voluntary in [100, 110, 120, 90, 80] {
        seconds.push(Second { voluntary, ..Second::default() });
    }
    let found = found(&traced_run("a", &seconds));
    let rate = estimate(&found, "voluntary");
    let logarithms = [100.0, 97.5, 95.0, 102.5, 105.0_f64].map(f64::ln);
    let middle = logarithms.iter().sum::<f64>() / 5.0;
    let squares: f64 = logarithms.iter().map(|logarithm| (logarithm - middle).powi(2)).sum();
    let factor = (2.776_445_105 * (0.8 * squares).sqrt()).exp();
    assert_eq!((rate.value, rate.rounds, rate.resolved), (100.0, 5, true));
    assert!((rate.high.unwrap() - 100.0 * factor).abs() < 1e-6, "{rate:?}");
    assert!((rate.low.unwrap() - 100.0 / factor).abs() < 1e-6, "{rate:?}");
    assert_eq!((found.parts, found.seconds, found.switches_per_s()), (5, 5.0, 100.0));
    assert_eq!(estimate(&found, "busiest-cpu").value, 0.75);
    assert_eq!(estimate(&found, "migrations").value, 3.0);
}

/// One part of five has nearly all switches.
#[test]
fn no_interval_reaches_below_zero_nor_a_share_above_one() {
    for quiet in [0, 1, 1000] {
        let mut seconds = Vec::new();
        for voluntary in [quiet, 570_000, quiet, quiet, quiet] {
            seconds.push(Second { voluntary, ..Second::default() });
        }
        let mut run = traced_run("a", &seconds);
        for sample in &mut run.samples {
            let Sample::Trial(sample) = sample else { continue };
            let busy = if sample.round == 1 { 100_000_000 } else { 990_000_000 };
            sample.counts.insert(busy_ns(1), busy);
        }
        let found = found(&run);
        for figure in &found.figures {
            let ends = figure.estimate.interval().expect("five parts");
            assert!(ends.low >= 0.0 && ends.low <= figure.estimate.value, "{figure:?}");
            assert!(ends.high >= figure.estimate.value && ends.high.is_finite(), "{figure:?}");
        }
        assert_eq!(estimate(&found, "voluntary").resolved, quiet > 0);
        assert_eq!(estimate(&found, "busiest-cpu").high, Some(1.0));
    }
}

/// A part of 20 s is a block of its own beside those of twenty parts of a second.
#[test]
fn blocks_have_the_same_time() {
    let mut run = traced_run("a", &vec![Second::default(); 22]);
    for sample in &mut run.samples {
        let Sample::Trial(sample) = sample else { continue };
        if sample.round >= 20 {
            sample.elapsed_ns = 20_000_000_000;
        }
    }
    let parts = TraceParts::from_table(&Table::new(&run.header.plan, &run.samples)).unwrap();
    let mut seconds = Vec::new();
    for block in parts.blocks() {
        seconds.push(block.elapsed_ns / 1_000_000_000);
    }
    assert_eq!(seconds, [5, 6, 5, 4, 20, 20]);
}

#[test]
fn names_of_preempters_stay_on_their_line() {
    let mut run = traced_run("a", &[Second::default()]);
    let Sample::Trial(sample) = &mut run.samples[0] else { panic!("a part") };
    sample.counts.insert("preempted_by:a\n\u{202e}voluntary  5/s and more".to_string(), 7);
    let found = found(&run);
    let figure = found.figures.last().expect("a figure");
    assert_eq!(figure.title, "preempted by a??voluntary  5/");
    assert_eq!((figure.id.as_str(), figure.estimate.value), ("preempted-by:a??voluntary  5/", 7.0));
}

#[test]
fn fewer_than_five_parts_have_no_interval() {
    for parts in 1..5 {
        let second = Second { voluntary: 7, ..Second::default() };
        let found = found(&traced_run("a", &vec![second; parts]));
        let rate = estimate(&found, "voluntary");
        assert_eq!((rate.value, rate.rounds, rate.interval()), (7.0, parts as u32, None));
    }
}

/// Of 100 waits 60 are in the bin from 2,048 ns and 40 in the one from 16,384 ns: the median is at
/// 50/60 of the first, and p99 at 39/40 of the second.
#[test]
fn percentiles_are_spread_within_a_bin() {
    let second = Second { waits: vec![(2048, 60), (16_384, 40)], ..Second::default() };
    let found = found(&traced_run("a", &[second]));
    assert!(close(estimate(&found, "wait-p50").value, 2048.0 + 2048.0 * 50.0 / 60.0));
    assert!(close(estimate(&found, "wait-p99").value, 16_384.0 + 16_384.0 * 39.0 / 40.0));
    // The last bin has no end: it is taken to have twice its beginning.
    let last = Second { waits: vec![(65_536, 2)], ..Second::default() };
    let found = self::found(&traced_run("a", &[last]));
    assert!(close(estimate(&found, "wait-p50").value, 1.5 * 65_536.0));
}

#[test]
fn a_trace_without_waits_has_no_percentiles() {
    let found = found(&traced_run("a", &[Second::default()]));
    assert!(found.figure("wait-p50").is_none());
    assert_eq!(estimate(&found, "voluntary").value, 0.0);
}

/// Two traces are as one with the parts of both, not the mean of two percentiles.
#[test]
fn traces_on_one_side_add_up() {
    let quick = vec![Second { waits: vec![(1024, 990)], ..Second::default() }; 6];
    let slow = vec![Second { waits: vec![(32_768, 30)], ..Second::default() }; 6];
    let runs = [traced_run("a", &quick), traced_run("b", &slow)];
    let merged = Results::from_launches(runs.iter().map(Results::from_run).collect()).unwrap();
    let both = Results::from_run(&traced_run("both", &[quick, slow].concat()));
    assert_eq!((merged.side.launches, merged.cases.len()), (2, both.cases.len()));
    for (merged, both) in merged.cases.iter().zip(&both.cases) {
        assert_eq!((&merged.title, &merged.figures), (&both.title, &both.figures));
    }
    let p99 = merged.cases.iter().find(|case| case.label("figure") == Some("wait-p99")).unwrap();
    let p99 = p99.figures.values().next().unwrap().counted_estimates().estimates[0].value;
    // 180 of 6,120 waits are slow: the slowest hundredth is within these.
    assert!((32_768.0..65_536.0).contains(&p99), "{p99}");
}

#[test]
fn any_numbers_of_a_damaged_file_are_read() {
    let odd =
        Second { voluntary: i64::MIN, preempted: i64::MAX, waits: vec![(-5, 9), (7, u32::MAX)] };
    let mut run = traced_run("a", &vec![odd; 7]);
    for sample in &mut run.samples {
        if let Sample::Trial(sample) = sample {
            sample.elapsed_ns = if sample.round == 3 { 0 } else { u64::MAX / 2 };
        }
    }
    let results = Results::from_run(&run);
    assert!(!results.cases.is_empty());
}
