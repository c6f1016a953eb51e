//! Known answers on fixed runs, and properties of any runs.

use proptest::prelude::*;

use analysis::comparison::{
    ChangeAnswer, Comparison, ComparisonTerms, LIMIT, UndecidedReason, WantedCost,
};
use analysis::program::{Cost, CostProfile, ProfilePoint, ProgramCost};
use analysis::results::{Quantity, Results};
use launcher::{
    CommandRun, Ending, ExecBaseline, IoBytes, OrphanCounts, ProcessUsage, RunDelay, RunUsage,
    SampledTimes, ThreadPeak,
};
use rundata::machine::{CpuAccounting, Machine};
use rundata::reading::Reading;

use super::answer;
use super::findings::SwitchOverhead;
use super::gate::{CommandGate, GatedFigure};
use super::hyperfine::TableChoices;
use super::markdown::markdown;
use super::output;
use super::plan::{CommandPlan, HookLines};
use super::record::{CommandUseRecord, RecordOrigin};
use super::results::build_results;
use super::table;
use super::typed::export_labels;
use crate::base::lines::Layout;
use crate::report::output::declarations;

const MS: u64 = 1_000_000;

/// Builds a run that succeeded and made 1,000 switches.
fn run(command: usize, round: u32, real_ns: u64, cpu_ns: u64) -> CommandRun {
    let usage = ProcessUsage {
        user_ns: cpu_ns,
        max_resident_bytes: 2 << 20,
        voluntary: 900,
        involuntary: 100,
        ..ProcessUsage::default()
    };
    let used = RunUsage {
        real_ns,
        ending: Ending::Exited { code: 0 },
        usage,
        own_cpu_ns: Reading::Known(cpu_ns),
        sampled: Reading::Known(SampledTimes { user_ns: cpu_ns / 4, both_ns: cpu_ns }),
        delay: Reading::Known(RunDelay { run_delay_ns: 7, covered_cpu_ns: cpu_ns }),
        migrations: Reading::unknown("/proc/PID/sched: absent"),
        io: Reading::Known(IoBytes::default()),
        threads: Reading::Known(ThreadPeak { peak_seen: 1, looks: 1 }),
        orphans: OrphanCounts {
            left_behind: Reading::Known(Vec::new()),
            ..OrphanCounts::default()
        },
        at_exec: ExecBaseline::default(),
        asked_to_be_traced: false,
    };
    CommandRun { command, round, interrupted: false, signal: None, used }
}

/// Builds a run of the only command for each real time in milliseconds.
fn runs_of_one(times_ms: &[u64]) -> Vec<CommandRun> {
    let mut runs = Vec::new();
    for (round, ms) in times_ms.iter().enumerate() {
        runs.push(run(0, round as u32, ms * MS, MS));
    }
    runs
}

/// Builds rounds of commands with these real times in milliseconds; all take a little longer in odd
/// rounds.
fn rounds_of(times_ms: &[u64], rounds: u32) -> Vec<CommandRun> {
    let mut runs = Vec::new();
    for round in 0..rounds {
        for (command, ms) in times_ms.iter().enumerate() {
            let real_ns = (ms * 100 + u64::from(round % 2)) * MS / 100;
            runs.push(run(command, round, real_ns, MS));
        }
    }
    runs
}

fn plan(commands: usize, runs: u32) -> CommandPlan {
    CommandPlan {
        commands: vec![vec!["true".to_owned()]; commands],
        names: Vec::new(),
        runs,
        warmup: 0,
        seed: 5,
        tree: false,
        confidence: 0.95,
        show_output: false,
        shell: None,
        outputs: Vec::new(),
        input: None,
        ignore_failure: false,
        ignored_codes: Vec::new(),
        hooks: HookLines::default(),
    }
}

fn plan_of(commands: &[&[&str]], runs: u32) -> CommandPlan {
    let mut plan = plan(commands.len(), runs);
    for (number, words) in commands.iter().enumerate() {
        plan.commands[number] = words.iter().map(|word| word.to_string()).collect();
    }
    plan
}

fn record_with_accounting(
    plan: CommandPlan,
    runs: Vec<CommandRun>,
    accounting: CpuAccounting,
) -> CommandUseRecord {
    let mut machine = Machine::default();
    machine.kernel.hz = Reading::Known(250);
    let build = serde_json::from_value(serde_json::json!({
        "version": "0", "commit": null, "profile": "p", "target": "t"
    }));
    let origin = RecordOrigin {
        started: "2026-01-01T00:00:00Z".to_owned(),
        host: None,
        invocation: Vec::new(),
        build: build.unwrap(),
        machine,
        accounting: Reading::Known(accounting),
    };
    CommandUseRecord::new(plan, runs, origin)
}

fn record(plan: CommandPlan, runs: Vec<CommandRun>) -> CommandUseRecord {
    record_with_accounting(plan, runs, CpuAccounting::Tick)
}

fn headline(record: &CommandUseRecord) -> String {
    answer::headline(record).into()
}

/// Builds a known cost profile.
fn profile_of(points: Vec<ProfilePoint>) -> Reading<CostProfile> {
    Reading::Known(CostProfile { run: "r".to_owned(), points, ..CostProfile::default() })
}

#[test]
fn csv_has_the_declared_columns() {
    let mut columns = output::columns();
    columns.sort_unstable();
    assert_eq!(columns, declarations::names(declarations::ExportedTable::Commands));
}

#[test]
fn each_figure_has_its_median_spread_and_range() {
    let record = record(plan(1, 5), runs_of_one(&[10, 12, 11, 13, 90]));
    let summary = &record.commands[0];
    let real = summary.figure("real_ns").unwrap();
    assert_eq!((real.estimate.value, real.min, real.max), (12e6, 10e6, 90e6));
    // Deviations 2, 0, 1, 1, 78 ms: their median is 1 ms.
    assert!((real.spread.unwrap() - 1.4826e6).abs() < 1e-3);
    assert!(real.estimate.interval().is_some());
    // 78 ms is more than 3.5 x 1.4826 ms from the median, 2 ms is not.
    assert_eq!(summary.outliers.len(), 1);
    assert_eq!((summary.outliers[0].round, summary.outliers[0].times_median), (4, 7.5));
    assert_eq!(summary.missing["migrations"], "/proc/PID/sched: absent");
    assert!(summary.figure("migrations").is_none(), "an unknown figure is no zero");
}

#[test]
fn few_or_equal_runs_have_no_outliers() {
    for times_ms in [&[1, 1, 2, 90][..], &[1, 1, 1, 1, 90]] {
        let record = record(plan(1, times_ms.len() as u32), runs_of_one(times_ms));
        assert_eq!(record.commands[0].outliers, []);
    }
}

#[test]
fn ratios_are_taken_within_rounds() {
    // Each round takes twice as long as the one before: only within rounds is the second command
    // 1.5 times the first.
    let mut runs = Vec::new();
    for round in 0..6 {
        let real_ns = MS << round;
        runs.push(run(1, round, real_ns * 3 / 2, 6 * MS));
        runs.push(run(0, round, real_ns, 2 * MS));
    }
    let record = record(plan(2, 6), runs);
    let [real, cpu] = &record.ratios[..] else { panic!("{:?}", record.ratios) };
    assert!((real.estimate.value - 1.5).abs() < 1e-9 && real.estimate.resolved, "{real:?}");
    assert!((cpu.estimate.value - 3.0).abs() < 1e-9, "{cpu:?}");
}

#[test]
fn a_ratio_around_one_is_not_resolved() {
    let mut runs = Vec::new();
    for round in 0..6 {
        runs.push(run(0, round, 10 * MS, MS));
        runs.push(run(1, round, if round % 2 == 0 { 11 } else { 9 } * MS, MS));
    }
    assert!(!record(plan(2, 6), runs).ratios[0].estimate.resolved);
}

/// Returns the results of six rounds of two commands, whose times do not scatter.
fn session(times_ms: [u64; 2], name: &str) -> Results {
    let mut runs = Vec::new();
    for round in 0..6 {
        for (command, ms) in times_ms.into_iter().enumerate() {
            runs.push(run(command, round, ms * MS, MS));
        }
    }
    build_results(&record(plan(2, 6), runs), name.to_string())
}

/// Without scatter, only the term for sessions is left: 1.96 x 7 % x sqrt(2).
#[test]
fn two_sessions_are_compared_with_the_scatter_between_sessions() {
    let (before, after) = (session([10, 20], "before"), session([10, 40], "after"));
    let terms = |wanted| ComparisonTerms { limit: LIMIT, confidence: 0.95, wanted, across: None };
    let real = Comparison::from_results(&before, &after, terms(WantedCost::Switch));
    let [same, slower] = &real.changes[..] else { panic!("{:?}", real.changes) };
    assert_eq!((same.quantity, same.base_ns, same.new_ns), (Quantity::RealNs, 10e6, 10e6));
    let (low, high) = same.ratio.interval().unwrap();
    // Both intervals hold together: 2.24 in place of 1.96.
    assert!((high - (2.2414_f64 * 0.07 * 2.0_f64.sqrt()).exp()).abs() < 1e-4, "{high}");
    assert!((low * high - 1.0).abs() < 1e-9);
    assert!(matches!(
        same.answer,
        ChangeAnswer::CannotTell { reason: UndecidedReason::TooWide, .. }
    ));
    assert_eq!(slower.answer, ChangeAnswer::Changed { worse: true, beyond_limit: true });
    let cpu = Comparison::from_results(&before, &after, terms(WantedCost::Cpu));
    assert_eq!((cpu.changes[1].quantity, cpu.changes[1].ratio.value), (Quantity::CpuNs, Some(1.0)));
}

/// Builds four runs of 100 ms of CPU time each.
fn runs_of_400_ms() -> Vec<CommandRun> {
    (0..4).map(|round| run(0, round, 100 * MS, 100 * MS)).collect()
}

#[test]
fn user_time_is_estimated_from_samples_of_the_tick() {
    // 400 ms by ticks of 4 ms: a quarter of 100 ticks was sampled as user.
    let split = &record(plan(1, 4), runs_of_400_ms()).commands[0].split;
    assert_eq!(split.ticks, Some(100.0));
    let user = split.user.unwrap();
    assert!((user.value - 0.25).abs() < 1e-9 && user.low > 0.17 && user.high < 0.35, "{user:?}");
}

#[test]
fn user_time_is_exact_where_the_kernel_measures_it() {
    let record = record_with_accounting(plan(1, 4), runs_of_400_ms(), CpuAccounting::Precise);
    let user = record.commands[0].split.user.unwrap();
    assert_eq!((user.value, user.low, user.high), (1.0, 1.0, 1.0));
}

#[test]
fn user_time_of_children_is_unknown() {
    // A tenth of the time is that of its own threads: the kernel's split is taken, but nine tenths
    // may be user or system time.
    let mut runs = runs_of_400_ms();
    for run in &mut runs {
        run.used.own_cpu_ns = Reading::Known(10 * MS);
        run.used.sampled = Reading::Known(SampledTimes { user_ns: 2 * MS, both_ns: 10 * MS });
    }
    let split = &record(plan(1, 4), runs).commands[0].split;
    assert!(split.with_children && split.ticks == Some(10.0), "{split:?}");
    // Wilson's interval for 2 of 10 is 0.0567 to 0.5098, here of a tenth. The kernel calls all of it
    // user time, which lies above the interval.
    let user = split.user.unwrap();
    assert!((user.low - 0.00567).abs() < 1e-5 && (user.high - 0.95098).abs() < 1e-5, "{user:?}");
    assert_eq!(user.value.to_bits(), user.high.to_bits());
}

#[test]
fn user_time_is_not_resolved_by_fewer_than_five_ticks() {
    let four = record(plan(1, 1), vec![run(0, 0, 16 * MS, 16 * MS)]);
    assert_eq!((four.commands[0].split.user, four.commands[0].split.ticks), (None, Some(4.0)));
    let five = record(plan(1, 1), vec![run(0, 0, 20 * MS, 20 * MS)]);
    assert!(five.commands[0].split.user.is_some());
}

#[test]
fn unknown_time_of_its_own_threads_is_not_taken_for_that_of_children() {
    let mut odd = run(0, 0, 100 * MS, 100 * MS);
    odd.used.own_cpu_ns = Reading::unknown("no clock");
    assert!(!record(plan(1, 1), vec![odd]).commands[0].split.with_children);
}

#[test]
fn an_interrupted_run_is_left_out_if_there_are_others() {
    let mut runs = runs_of_one(&[1, 1, 1]);
    runs[2].interrupted = true;
    let record = record(plan(1, 9), runs);
    assert_eq!((record.commands[0].runs, record.runs.len()), (2, 3));
    assert_eq!(record.notices, ["interrupted in round 3 of 9, which is left out"]);
}

#[test]
fn an_interrupted_run_counts_if_it_is_the_only_one() {
    let mut interrupted = run(0, 0, MS, MS);
    interrupted.interrupted = true;
    let record = record(plan(1, 1), vec![interrupted]);
    assert_eq!(record.commands[0].runs, 1);
    assert_eq!(record.notices, ["interrupted: the figures cover the time until then"]);
}

#[test]
fn a_run_that_survived_a_signal_is_complete() {
    let survivor = CommandRun { interrupted: true, signal: Some(2), ..run(0, 0, MS, MS) };
    let notices = record(plan(1, 1), vec![survivor]).notices;
    assert_eq!(notices, ["signal 2 arrived during the run, which continued to its end"]);
}

#[test]
fn a_command_keeps_its_number_if_the_other_has_no_run() {
    for command in [0, 1] {
        let mut interrupted = run(command, 0, MS, MS);
        interrupted.interrupted = true;
        let record = record(plan(2, 1), vec![interrupted]);
        assert_eq!(record.commands.len(), 1);
        assert_eq!(record.commands[0].number, command);
        let start = format!("true ({}): interrupted", command + 1);
        assert!(record.notices[0].starts_with(&start), "{:?}", record.notices);
    }
}

#[test]
fn ratios_of_many_rounds_equal_those_of_few() {
    // 1.5 and 2 in turn; the interval of 40 rounds is resampled, that of 4,000 is not.
    for rounds in [40, 4000] {
        let mut runs = Vec::new();
        for round in 0..rounds {
            runs.push(run(0, round, 1000, 2 * MS));
            runs.push(run(1, round, if round % 2 == 0 { 1500 } else { 2000 }, 6 * MS));
        }
        let record = record(plan(2, rounds), runs);
        let real = &record.ratios[0].estimate;
        assert!((1.5..=2.0).contains(&real.value) && real.resolved, "{real:?}");
        assert_eq!(real.rounds, rounds);
        assert!(real.low >= Some(1.499) && real.high <= Some(2.001), "{real:?}");
    }
}

#[test]
fn a_notice_reports_orphans_of_unknown_origin() {
    let mut odd = run(0, 0, MS, MS);
    odd.used.orphans.of_unknown_origin = 3;
    let notices = record(plan(1, 1), vec![odd]).notices;
    let start = "3 orphans are not counted";
    assert!(notices.iter().any(|notice| notice.starts_with(start)), "{notices:?}");
}

#[test]
fn resident_memory_near_the_launchers_may_be_the_launchers() {
    const LONG_WORD: usize = 7 << 17;
    for (resident_bytes, word_bytes, has_notice) in [
        (1 << 20, 0, true),
        (5 << 18, 0, true),
        (2 << 20, 0, false),
        (2 << 20, LONG_WORD, true),
        (3 << 20, LONG_WORD, false),
    ] {
        let mut small = run(0, 0, MS, MS);
        small.used.at_exec.resident_bytes = 1 << 20;
        small.used.usage.max_resident_bytes = resident_bytes;
        let mut plan = plan(1, 1);
        plan.commands[0].push("x".repeat(word_bytes));
        let notices = record(plan, vec![small]).notices;
        let start = "max resident may be the launcher's";
        let has_start = notices.iter().any(|notice| notice.starts_with(start));
        assert_eq!(has_start, has_notice, "{resident_bytes}: {notices:?}");
    }
}

#[test]
fn notices_report_everything_that_was_not_counted() {
    let mut odd = run(0, 0, MS, 100 * MS);
    odd.used.orphans.ended = 2;
    odd.used.orphans.left_behind = Reading::Known(vec![7, 8]);
    odd.used.delay = Reading::Known(RunDelay { run_delay_ns: 1, covered_cpu_ns: 43 * MS });
    odd.used.at_exec.resident_bytes = 2 << 20;
    let notices = record(plan(1, 1), vec![odd]).notices;
    let starts = [
        "2 of its descendants outlived their parents and ended: not counted",
        "2 processes still ran after the end of true and are not counted (7, 8)",
        "run delay and migrations are of its first thread",
        "max resident may be the launcher's",
    ];
    assert_eq!(notices.len(), starts.len(), "{notices:?}");
    for (notice, start) in notices.iter().zip(starts) {
        assert!(notice.starts_with(start), "{notice}");
    }
    assert!(notices[2].ends_with("43 % of the CPU time"), "{notices:?}");
}

#[test]
fn stored_notices_label_commands_like_the_stored_plan() {
    let mut odd = run(1, 0, MS, 100 * MS);
    odd.used.orphans.left_behind = Reading::Known(vec![7]);
    odd.used.delay = Reading::Known(RunDelay { run_delay_ns: 1, covered_cpu_ns: 43 * MS });
    // One label begins with the other.
    let plan = plan_of(&[&["a:"], &["a:", "b"]], 1);
    let mut record = record(plan.clone(), vec![run(0, 0, MS, MS), odd]);
    let events = ["a: b: process 7 still ran after the end of a: b and is not counted"];
    assert_eq!(record.events(), events);
    assert_eq!(record.notices.len(), 2, "{:?}", record.notices);
    let commands = vec![vec!["a:".to_string()], vec!["hidden".to_string()]];
    record.store_as(CommandPlan { commands, ..plan }, None);
    let stored = "hidden: process 7 still ran after the end of hidden and is not counted";
    assert_eq!(record.notices[0], stored);
    assert!(record.notices[1].starts_with("hidden: run delay"), "{:?}", record.notices);
}

#[test]
fn switch_overhead_is_switches_times_cost() {
    // 1,000 switches at 2 to 3 us direct, up to 10 us with cache effects: 2 to 10 ms of 100 ms.
    let record = record(plan(1, 1), vec![run(0, 0, 200 * MS, 100 * MS)]);
    let direct = Some(Cost { low_ns: 2000.0, high_ns: 3000.0 });
    let small = ProfilePoint {
        array_bytes: 4096,
        total: Cost { low_ns: 2500.0, high_ns: 4000.0 },
        direct,
        ..ProfilePoint::default()
    };
    let large = ProfilePoint {
        array_bytes: 262_144,
        total: Cost { low_ns: 5000.0, high_ns: 10_000.0 },
        direct,
        ..ProfilePoint::default()
    };
    let profile = profile_of(vec![small, large]);
    let estimated = SwitchOverhead::estimate(&record.commands[0], profile, Vec::new());
    let overhead = estimated.overhead_ns.unwrap();
    assert!((overhead.low - 2e6).abs() < 1.0 && (overhead.high - 1e7).abs() < 1.0, "{overhead:?}");
    let direct = estimated.direct_overhead_ns.unwrap();
    assert!((direct.low - 2e6).abs() < 1.0 && (direct.high - 3e6).abs() < 1.0, "{direct:?}");
    let ProgramCost::Estimated { share, .. } = estimated.cost else { panic!("no estimate") };
    assert!((share.low - 0.02).abs() < 1e-9 && (share.high - 0.1).abs() < 1e-9, "{share:?}");
    // Its memory is larger than the largest array of the profile.
    assert!(estimated.notices[0].contains("at most 256 KiB"), "{:?}", estimated.notices);
}

#[test]
fn there_is_no_overhead_without_a_profile() {
    let record = record(plan(1, 1), vec![run(0, 0, 200 * MS, 100 * MS)]);
    let unknown = Reading::unknown("none");
    let overhead = SwitchOverhead::estimate(&record.commands[0], unknown, Vec::new());
    assert_eq!((overhead.overhead_ns, overhead.direct_overhead_ns), (None, None));
}

#[test]
fn a_gate_has_the_exit_codes_of_compare() {
    for (times_ms, rounds, code, words) in [
        (&[1000, 1050][..], 8, 0, "PASS: not more than 10 % above the base"),
        (&[1000, 500], 8, 0, "PASS: not more than 10 % above the base"),
        (
            &[1000, 2000],
            8,
            1,
            "FAIL: more than 10 % above the base: real time by 100.0 % (100.0 to 100.0 %)",
        ),
        (
            &[1000, 2000],
            4,
            3,
            "UNDECIDED: may be more than 10 % above the base: real time has too few rounds for \
             an interval (-n 5 or more)",
        ),
        (
            &[1000, 1000, 2000],
            8,
            1,
            "FAIL: more than 10 % above the base: true (3), real time by 100.0 % (100.0 to 100.0 \
             %)",
        ),
    ] {
        let runs = rounds_of(times_ms, rounds);
        let plan = plan(times_ms.len(), rounds);
        let gate = CommandGate::judge(&plan, &runs, &[GatedFigure::Real], 0.1);
        assert_eq!((gate.exit_code(false), &*gate.in_words), (code, words), "{times_ms:?}");
        assert_eq!(gate.exit_code(true), if code == 3 { 0 } else { code });
    }
}

#[test]
fn a_gate_is_undecided_if_an_interval_crosses_the_limit() {
    // From 6 % less to 24 % more in turn.
    let mut runs = Vec::new();
    for round in 0..8 {
        runs.push(run(0, round, 100 * MS, MS));
        runs.push(run(1, round, (94 + 30 * u64::from(round % 2)) * MS, MS));
    }
    let figures = [GatedFigure::Real, GatedFigure::Cpu];
    let gate = CommandGate::judge(&plan(2, 8), &runs, &figures, 0.1);
    assert_eq!(gate.exit_code(false), 3, "{gate:?}");
    assert!(gate.in_words.contains("above the base: real time by up to 24.0 %"), "{gate:?}");
}

#[test]
fn a_gate_compares_nothing_if_a_run_failed() {
    let mut runs = rounds_of(&[1000, 500], 8);
    runs[5].used.ending = Ending::Exited { code: 3 };
    let gate = CommandGate::judge(&plan(2, 8), &runs, &[GatedFigure::Real], 0.1);
    assert_eq!((gate.exit_code(false), gate.exit_code(true)), (2, 2));
    assert!(gate.in_words.contains("1 of 8 runs did not succeed (exit code 3)"), "{gate:?}");
}

#[test]
fn a_gate_compares_failed_runs_if_failures_are_ignored() {
    let mut runs = rounds_of(&[100, 100], 8);
    for run in &mut runs {
        run.used.ending = Ending::Exited { code: 1 };
    }
    let plan = CommandPlan { ignore_failure: true, ..plan(2, 8) };
    let gate = CommandGate::judge(&plan, &runs, &[GatedFigure::Real], 0.1);
    assert_eq!((gate.exit_code(false), gate.failed.len()), (0, 0));
}

#[test]
fn a_gate_compares_runs_that_failed_with_an_ignored_code() {
    let mut runs = rounds_of(&[100, 100], 8);
    runs[5].used.ending = Ending::Exited { code: 3 };
    runs[6].used.ending = Ending::Killed { signal: 9, core_dumped: false };
    for (ignored_codes, exit_code) in [(vec![3, 137], 0), (vec![3], 2), (vec![137], 2)] {
        let plan = CommandPlan { ignored_codes, ..plan(2, 8) };
        let gate = CommandGate::judge(&plan, &runs, &[GatedFigure::Real], 0.1);
        assert_eq!(gate.exit_code(false), exit_code, "{:?}", plan.ignored_codes);
    }
}

/// Compares two commands with these counts of voluntary switches, and 7 involuntary ones each.
fn judge_switches(counts: [u64; 2]) -> CommandGate {
    let mut runs = Vec::new();
    for round in 0..8 {
        for (command, count) in counts.into_iter().enumerate() {
            let mut run = run(command, round, MS, MS);
            run.used.usage.voluntary = count;
            run.used.usage.involuntary = 7;
            runs.push(run);
        }
    }
    let figures = [GatedFigure::Voluntary, GatedFigure::Switches];
    CommandGate::judge(&plan(2, 8), &runs, &figures, 0.1)
}

#[test]
fn a_few_more_switches_are_no_change() {
    assert_eq!(judge_switches([0, 1]).exit_code(false), 0);
    assert_eq!(judge_switches([0, 20]).exit_code(false), 1);
    let many = judge_switches([90, 190]);
    assert_eq!(many.changes[0].ratio.map(|ratio| ratio.value.round()), Some(2.0));
    assert_eq!((many.changes[1].base, many.changes[1].new), (97.0, 197.0));
}

#[test]
fn markdown_has_a_row_for_each_change() {
    let plan = plan_of(&[&["sh", "-c", "a | b"], &["new"]], 8);
    let runs = rounds_of(&[100, 200], 8);
    let figures = [GatedFigure::Real, GatedFigure::Cpu, GatedFigure::Switches];
    let gate = CommandGate::judge(&plan, &runs, &figures, 0.1);
    assert_eq!(
        markdown(&record(plan, runs), &gate),
        "**sh -c 'a | b' is 2.00x (2.00 to 2.00) faster than new**\n\n\
         | figure | sh -c 'a \\| b' | new | ratio | interval | answer |\n\
         |:--|--:|--:|--:|--:|:--|\n\
         | real time | 100 ms | 200 ms | 2.000 | 2.000 to 2.000 | slower ! |\n\
         | CPU time | 1.00 ms | 1.00 ms | 1.000 | 1.000 to 1.000 | not changed |\n\
         | switches | 1,000 | 1,000 | 1.000 | 1.000 to 1.000 | not changed |\n\n\
         FAIL: more than 10 % above the base: real time by 100.0 % (100.0 to 100.0 %)\n"
    );
}

/// Returns the marked parts of the headline of one command or more.
fn marked_parts(rounds: u32, times_ms: &[u64]) -> Vec<String> {
    let commands: [&[&str]; 2] = [&["a", "2 s"], &["b"]];
    let plan = plan_of(&commands[..times_ms.len()], rounds);
    let text = answer::headline(&record(plan, rounds_of(times_ms, rounds)));
    text.spans().iter().map(|span| text[span.range.clone()].to_string()).collect()
}

#[test]
fn headlines_mark_their_figures() {
    assert_eq!(marked_parts(1, &[10]), ["10.0 ms", "1.00 ms"]);
    assert_eq!(marked_parts(8, &[10]), ["10.01 ms"]);
    assert_eq!(marked_parts(8, &[10, 20]), ["2.00x", "faster"]);
}

/// Builds the record of one run of `make` with 5,300 switches in 40.1 s of CPU time.
fn record_of_make() -> CommandUseRecord {
    let mut make = run(0, 0, 12_300 * MS, 40_100 * MS);
    make.used.usage.voluntary = 5000;
    make.used.usage.involuntary = 300;
    record(plan_of(&[&["make", "-j4"]], 1), vec![make])
}

#[test]
fn the_headline_of_one_run_has_its_times_and_switches() {
    let line = headline(&record_of_make());
    assert_eq!(line, "make -j4: 12.3 s real, 40.1 s CPU, 5,300 switches");
}

#[test]
fn the_headline_of_a_failed_run_has_its_ending() {
    let mut failed = run(0, 0, 5 * MS, MS / 2);
    failed.used.ending = Ending::Exited { code: 3 };
    let record = record(plan_of(&[&["sh", "-c", "exit 3"]], 1), vec![failed]);
    assert_eq!(
        headline(&record),
        "sh -c 'exit 3' (exit code 3): 5.00 ms real, 0.500 ms CPU, 1,000 switches"
    );
}

/// Adds the overhead by a profile with 91 us up to `high_ns` a switch to the record of `make`.
fn headline_with_cost(high_ns: f64) -> String {
    let direct = Cost { low_ns: 91_000.0, high_ns: 159_000.0 };
    let small = ProfilePoint {
        array_bytes: 4096,
        total: direct,
        direct: Some(direct),
        ..ProfilePoint::default()
    };
    let large = ProfilePoint { array_bytes: 4 << 20, total: Cost { high_ns, ..direct }, ..small };
    let mut record = record_of_make();
    let profile = profile_of(vec![small, large]);
    let overhead = SwitchOverhead::estimate(&record.commands[0], profile, Vec::new());
    record.commands[0].switching = Some(overhead);
    headline(&record)
}

#[test]
fn the_headline_of_one_run_has_the_share_of_switching() {
    // 5,300 switches at 91 to 159 us are 0.48 to 0.84 s of 40.1 s.
    assert_eq!(
        headline_with_cost(159_000.0),
        "make -j4: 12.3 s real, 40.1 s CPU, 5,300 switches; switching took about 1.2 to 2.1 % of \
         the CPU time"
    );
}

#[test]
fn the_headline_has_the_direct_share_if_the_whole_range_is_over_tenfold() {
    let line = headline_with_cost(1e6);
    let direct = "; switching itself took about 1.2 to 2.1 % of the CPU time, without the refill \
         of caches";
    assert!(line.contains(direct), "{line}");
}

#[test]
fn the_headline_of_several_runs_has_the_interval() {
    let times_ms = |runs: u64| (0..runs).map(|run| (121 + run % 5) * 100).collect::<Vec<u64>>();
    let many = record(plan_of(&[&["make"]], 20), runs_of_one(&times_ms(20)));
    let line = headline(&many);
    assert!(line.starts_with("make: 12.3 s (12.") && line.ends_with("), 20 runs"), "{line}");
    let few = record(plan_of(&[&["make"]], 3), runs_of_one(&times_ms(3)));
    assert_eq!(headline(&few), "make: about 12.2 s, 3 runs (5 or more give an interval)");
}

/// Returns the headline of rounds of sleep(1) with these real times.
fn headline_of_sleeps(times_ms: &[u64], rounds: u32) -> String {
    let sleeps: [&[&str]; 3] = [&["sleep", "0.01"], &["sleep", "0.02"], &["sleep", "0.03"]];
    let plan = plan_of(&sleeps[..times_ms.len()], rounds);
    headline(&record(plan, rounds_of(times_ms, rounds)))
}

#[test]
fn the_headline_of_two_commands_says_which_is_faster() {
    assert_eq!(
        headline_of_sleeps(&[10, 20], 8),
        "sleep 0.01 is 2.00x (2.00 to 2.00) faster than sleep 0.02"
    );
    assert_eq!(
        headline_of_sleeps(&[20, 10], 8),
        "sleep 0.02 is 2.00x (2.00 to 2.00) faster than sleep 0.01"
    );
    let unresolved = headline_of_sleeps(&[10, 10], 8);
    let start = "No difference is resolved between sleep 0.01 and sleep 0.02: 1.00x (";
    assert!(unresolved.starts_with(start), "{unresolved}");
}

#[test]
fn the_headline_of_few_rounds_says_that_there_is_no_interval() {
    assert_eq!(
        headline_of_sleeps(&[10, 20], 3),
        "sleep 0.01 is ~2x faster than sleep 0.02 (3 runs each, no interval: at least 5 are needed)"
    );
    let one_round = headline_of_sleeps(&[39, 10], 1);
    let start = "sleep 0.02 is ~3.9x faster than sleep 0.01 (1 run each,";
    assert!(one_round.starts_with(start), "{one_round}");
    // Of three commands, the fastest and the slowest.
    assert_eq!(
        headline_of_sleeps(&[20, 39, 10], 2),
        "sleep 0.03 is ~3.9x faster than sleep 0.02 (2 runs each, no interval: at least 5 are needed)"
    );
}

#[test]
fn the_headline_of_three_commands_compares_with_the_fastest() {
    assert_eq!(
        headline_of_sleeps(&[30, 10, 20], 8),
        "sleep 0.02 is 2.00x (2.00 to 2.00) faster than sleep 0.03 and 3.00x than sleep 0.01, \
         in this order"
    );
    assert_eq!(
        headline_of_sleeps(&[10, 10, 20], 8),
        "sleep 0.01 is the fastest, not resolved from sleep 0.02; sleep 0.03 takes 2.00x (2.00 \
         to 2.00) as long"
    );
    assert_eq!(
        headline_of_sleeps(&[10, 10, 10], 8),
        "No difference is resolved between the 3 commands"
    );
}

#[test]
fn labels_of_equal_long_commands_have_their_numbers() {
    let long = ["gzip", "-6", &"x".repeat(100)];
    let record = record(plan_of(&[&long, &long], 8), rounds_of(&[10, 20], 8));
    let label = record.plan.label(1);
    assert!(label.ends_with(" (2)") && label.chars().count() == 48, "{label}");
    assert!(headline(&record).contains(&label), "{}", headline(&record));
}

#[test]
fn labels_that_differ_in_their_middle_have_their_numbers() {
    let middle = |word: &str| format!("{}{word}{}", "a".repeat(60), "z".repeat(60));
    let mut plan = plan_of(&[&[&middle("x")], &[&middle("y")], &["true"], &["true"]], 8);
    let labels = |plan: &CommandPlan| {
        let mut labels: Vec<String> = (0..4).map(|number| plan.label(number)).collect();
        labels.dedup();
        labels
    };
    assert_eq!(labels(&plan).len(), 4, "{:?}", labels(&plan));
    assert!(plan.label(1).ends_with(" (2)") && plan.label(1).chars().count() == 48);
    // Names that are what two commands without one would be called.
    plan.names = ["true (3)", "true (4)", "", ""].map(str::to_string).to_vec();
    let mut unique = labels(&plan);
    assert_eq!(unique[2..], ["true (3.1)", "true (4.1)"]);
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), 4, "{unique:?}");
}

#[test]
fn exported_names_are_whole_and_distinct() {
    let long = "x".repeat(100);
    let plan = plan_of(&[&["gzip", &long], &["true"], &["true"]], 8);
    let names: Vec<String> = export_labels(&plan).into_iter().map(|command| command.name).collect();
    assert_eq!(names, [format!("gzip {long}"), "true (2)".into(), "true (3)".into()]);
}

/// Headline and table have the time of the second over the first, whichever has the lower median.
#[test]
fn an_unresolved_ratio_is_that_of_the_table() {
    // The second takes less time in most rounds and more in some.
    let mut runs = Vec::new();
    for round in 0..9 {
        runs.push(run(0, round, 1_000 * MS, MS));
        runs.push(run(1, round, if round % 3 == 0 { 1_100 } else { 960 } * MS, MS));
    }
    let record = record(plan_of(&[&["true"], &["false"]], 9), runs);
    let line = headline(&record);
    let start = "No difference is resolved between true and false: 0.960x (";
    assert!(line.starts_with(start), "{line}");
    let text = table::text(&record, false, TableChoices::default()).to_string();
    let row = text.lines().find(|line| line.starts_with("false ")).unwrap();
    assert!(row.contains(" 0.960x "), "{text}");
}

#[test]
fn the_headline_has_an_order_if_each_command_is_resolved_from_the_next() {
    let commands: [&[&str]; 4] = [&["a"], &["b"], &["c"], &["d"]];
    let ordered = record(plan_of(&commands, 8), rounds_of(&[10, 20, 40, 80], 8));
    assert_eq!(
        headline(&ordered),
        "a is 2.00x (2.00 to 2.00) faster than b, 4.00x than c and 8.00x than d, in this order"
    );
    // c is faster in one round, d in the next.
    let mut runs = Vec::new();
    for round in 0..8 {
        let [c, d] = if round % 2 == 0 { [40, 44] } else { [44, 41] };
        for (command, ms) in [10, 20, c, d].into_iter().enumerate() {
            runs.push(run(command, round, ms * MS, MS));
        }
    }
    let line = headline(&record(plan_of(&commands, 8), runs));
    assert!(line.starts_with("a is 2.00x") && !line.contains("order"), "{line}");
}

#[test]
fn a_notice_reports_the_shell_if_times_are_short() {
    for (shell, ms, has_notice) in
        [(Some("sh"), 1, true), (Some("sh"), 50, false), (None, 1, false)]
    {
        let plan = CommandPlan { shell: shell.map(str::to_string), ..plan(1, 5) };
        let notices = record(plan, runs_of_one(&[ms; 5])).notices;
        let has_hint = notices.iter().any(|notice| notice.contains("-N runs without"));
        assert_eq!(has_hint, has_notice, "{shell:?}, {ms} ms");
    }
}

#[test]
fn commands_with_parameters_are_labelled_by_their_values() {
    let names = vec!["n=1".to_owned(), "n=4".to_owned()];
    let plan = CommandPlan { names, ..plan_of(&[&["make", "-j1"], &["make", "-j4"]], 8) };
    let record = record(plan, rounds_of(&[40, 10], 8));
    assert_eq!(headline(&record), "n=4 is 4.00x (4.00 to 4.00) faster than n=1");
    assert_eq!(record.ratios.iter().map(|ratio| ratio.command).collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn the_brief_report_fits_eighty_columns() {
    let long = "x".repeat(200);
    let commands: [&[&str]; 3] = [&["sh", "-c", &long], &["sleep", "0.02"], &[&long, "b"]];
    for (count, runs) in [(1, 1), (1, 20), (3, 20), (2, 2)] {
        let plan = plan_of(&commands[..count], runs);
        let record = record(plan, rounds_of(&[12_345, 67_890, 99_999][..count], runs));
        let brief = table::text(&record, false, TableChoices::default()).text(Layout::default());
        let widest = brief.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{widest:?}: {brief}");
        assert!(brief.lines().all(|line| line == line.trim_end()), "{brief:?}");
        assert!(brief.starts_with(headline(&record).split(' ').next().unwrap()), "{brief}");
        let full = table::text(&record, true, TableChoices::default()).to_string();
        assert!(full.len() > brief.len(), "{full}");
        assert!(full.contains("not recorded by Linux: ixrss"), "{full}");
        assert!(full.contains("switches: counted by the kernel for the command and all"), "{full}");
    }
}

#[test]
fn records_of_schema_1_stay_readable() {
    let new = record(plan(2, 6), rounds_of(&[10, 20], 6));
    let mut old = serde_json::to_value(&new).unwrap();
    old["schema"] = 1.into();
    old.as_object_mut().unwrap().remove("host");
    old["plan"].as_object_mut().unwrap().remove("show_output");
    for ratio in old["ratios"].as_array_mut().unwrap() {
        ratio.as_object_mut().unwrap().remove("command");
    }
    let read: CommandUseRecord = serde_json::from_value(old).unwrap();
    assert_eq!((read.schema, new.schema), (1, 2));
    assert_eq!(read.ratios, new.ratios);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn any_record_can_be_written_and_read(
        figures in proptest::collection::vec((any::<u64>(), any::<u64>(), any::<u64>(), any::<bool>()), 0..7)
    ) {
        let mut runs = Vec::new();
        for ((real, cpu, own, interrupted), round) in figures.into_iter().zip(0..) {
            let mut run = run((own % 2) as usize, round / 2, real, cpu);
            run.used.own_cpu_ns = Reading::Known(own);
            runs.push(CommandRun { interrupted, ..run });
        }
        let mut record = record(plan(2, 3), runs);
        for summary in &mut record.commands {
            let unknown = Reading::unknown("none");
            summary.switching = Some(SwitchOverhead::estimate(summary, unknown, Vec::new()));
        }
        let json = serde_json::to_string(&record).unwrap();
        let back: CommandUseRecord = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(serde_json::to_string(&back).unwrap(), json);
    }
}
