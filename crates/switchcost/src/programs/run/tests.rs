//! Known answers on fixed runs, and any input.

use proptest::prelude::*;

use analysis::comparison::{
    ChangeAnswer, Comparison, ComparisonTerms, LIMIT, UndecidedReason, WantedCost,
};
use analysis::program::{Cost, CostProfile, ProfilePoint, ProgramCost};
use analysis::results::Quantity;
use launcher::{
    CommandRun, Ending, ExecBaseline, IoBytes, OrphanCounts, ProcessUsage, RunDelay, RunUsage,
    SampledTimes, ThreadPeak,
};
use rundata::machine::{CpuAccounting, Machine};
use rundata::reading::Reading;

use super::findings::Switching;
use super::plan::{Around, Plan};
use super::record::Record;
use super::results::results;
use crate::base::lines::Layout;
use crate::report::output::declarations;

const MS: u64 = 1_000_000;

#[test]
fn the_columns_of_runs_are_those_declared() {
    let mut columns = super::columns();
    columns.sort_unstable();
    assert_eq!(columns, declarations::names(declarations::ExportedTable::Commands));
}

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

fn plan(commands: usize, runs: u32) -> Plan {
    let commands = vec![vec!["true".to_owned()]; commands];
    Plan {
        commands,
        names: Vec::new(),
        runs,
        warmup: 0,
        seed: 5,
        tree: false,
        confidence: 0.95,
        show_output: false,
        shell: None,
        ignore_failure: false,
        around: Around::default(),
    }
}

fn record_with(plan: Plan, runs: Vec<CommandRun>, accounting: CpuAccounting) -> Record {
    let mut machine = Machine::default();
    machine.kernel.hz = Reading::Known(250);
    let build = serde_json::from_value(serde_json::json!({
        "version": "0", "commit": null, "profile": "p", "target": "t"
    }));
    let about = ("2026-01-01T00:00:00Z".to_owned(), None, Vec::new(), build.unwrap());
    Record::new(plan, runs, (machine, Reading::Known(accounting)), about)
}

fn record(plan: Plan, runs: Vec<CommandRun>) -> Record {
    record_with(plan, runs, CpuAccounting::Tick)
}

#[test]
fn each_figure_has_its_middle_spread_and_range() {
    let runs =
        [10, 12, 11, 13, 90].into_iter().zip(0..).map(|(ms, round)| run(0, round, ms * MS, MS));
    let record = record(plan(1, 5), runs.collect());
    let summary = &record.commands[0];
    let real = summary.figure("real_ns").unwrap();
    assert_eq!((real.estimate.value, real.min, real.max), (12e6, 10e6, 90e6));
    // Deviations 2, 0, 1, 1, 78 ms: their median is 1 ms.
    assert!((real.spread.unwrap() - 1.4826e6).abs() < 1e-3);
    assert!(real.estimate.interval().is_some());
    // 78 ms off is beyond 3.5 x 1.4826 ms, 2 ms is not.
    assert_eq!(summary.outliers.len(), 1);
    assert_eq!((summary.outliers[0].round, summary.outliers[0].times_median), (4, 7.5));
    assert_eq!(summary.missing["migrations"], "/proc/PID/sched: absent");
    assert!(summary.figure("migrations").is_none(), "what was not read is no zero");
}

#[test]
fn few_or_equal_runs_have_no_outliers() {
    let four = [1, 1, 2, 90].into_iter().zip(0..).map(|(ms, round)| run(0, round, ms * MS, MS));
    assert_eq!(record(plan(1, 4), four.collect()).commands[0].outliers, []);
    let equal = [1, 1, 1, 1, 90].into_iter().zip(0..).map(|(ms, round)| run(0, round, ms * MS, MS));
    assert_eq!(record(plan(1, 5), equal.collect()).commands[0].outliers, []);
}

#[test]
fn ratios_are_taken_within_rounds() {
    // Each round twice as slow as the one before: only within rounds is the second 1.5 times the
    // first.
    let runs = (0..6).flat_map(|round| {
        let ms = MS << round;
        [run(1, round, ms * 3 / 2, 6 * MS), run(0, round, ms, 2 * MS)]
    });
    let record = record(plan(2, 6), runs.collect());
    let [real, cpu] = &record.ratios[..] else { panic!("{:?}", record.ratios) };
    assert!((real.estimate.value - 1.5).abs() < 1e-9 && real.estimate.resolved, "{real:?}");
    assert!((cpu.estimate.value - 3.0).abs() < 1e-9, "{cpu:?}");
    // Around 1 nothing is resolved.
    let near = |round: u32| if round % 2 == 0 { 11 } else { 9 };
    let runs =
        (0..6).flat_map(|round| [run(0, round, 10 * MS, MS), run(1, round, near(round) * MS, MS)]);
    assert!(!super::tests::record(plan(2, 6), runs.collect()).ratios[0].estimate.resolved);
}

/// Four sessions whose times do not scatter: only the term for sessions is left, 1.96 x 7 % x
/// sqrt(2).
#[test]
fn sessions_are_compared_as_results() {
    let session = |ms: [u64; 2], name: &str| {
        let runs = (0..6).flat_map(|round| {
            let [first, second] = ms;
            [run(0, round, first * MS, MS), run(1, round, second * MS, MS)]
        });
        results(&record(plan(2, 6), runs.collect()), name.to_string())
    };
    let terms = |wanted| ComparisonTerms { limit: LIMIT, confidence: 0.95, wanted, across: None };
    let (before, after) = (session([10, 20], "before"), session([10, 40], "after"));
    let found = Comparison::from_results(&before, &after, terms(WantedCost::Switch));
    let [same, slower] = &found.changes[..] else { panic!("{:?}", found.changes) };
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

#[test]
fn the_split_rests_on_ticks() {
    // 400 ms of CPU time by 4 ms ticks: a quarter user, as sampled, of 100 ticks.
    let runs = || (0..4).map(|round| run(0, round, 100 * MS, 100 * MS)).collect::<Vec<_>>();
    let split = &record(plan(1, 4), runs()).commands[0].split;
    assert_eq!(split.ticks, Some(100.0));
    let user = split.user.unwrap();
    assert!((user.value - 0.25).abs() < 1e-9 && user.low > 0.17 && user.high < 0.35, "{user:?}");
    // Where the kernel measures, its own figures are exact.
    let precise = record_with(plan(1, 4), runs(), CpuAccounting::Precise);
    let user = precise.commands[0].split.user.unwrap();
    assert_eq!((user.value, user.low, user.high), (1.0, 1.0, 1.0));
    // A tenth of its own: the kernel's split is taken, but of nine tenths nobody knows.
    let mut with_children = runs();
    for run in &mut with_children {
        run.used.own_cpu_ns = Reading::Known(10 * MS);
        run.used.sampled = Reading::Known(SampledTimes { user_ns: 2 * MS, both_ns: 10 * MS });
    }
    let split = &record(plan(1, 4), with_children).commands[0].split;
    let user = split.user.unwrap();
    assert!(split.with_children && split.ticks == Some(10.0), "{split:?}");
    // Wilson's 0.0567 to 0.5098 for 2 of 10, of a tenth; the kernel calls all user, which it cannot
    // be.
    assert!((user.low - 0.00567).abs() < 1e-5 && (user.high - 0.95098).abs() < 1e-5, "{user:?}");
    assert_eq!(user.value.to_bits(), user.high.to_bits());
    // Four ticks in all: not resolved.
    let short = record(plan(1, 1), vec![run(0, 0, 16 * MS, 16 * MS)]);
    assert_eq!((short.commands[0].split.user, short.commands[0].split.ticks), (None, Some(4.0)));
    let five = record(plan(1, 1), vec![run(0, 0, 20 * MS, 20 * MS)]);
    assert!(five.commands[0].split.user.is_some());
}

#[test]
fn an_interrupted_run_is_left_out_where_there_are_others() {
    let mut runs: Vec<CommandRun> = (0..3).map(|round| run(0, round, MS, MS)).collect();
    runs[2].interrupted = true;
    let several = record(plan(1, 9), runs);
    assert_eq!((several.commands[0].runs, several.runs.len()), (2, 3));
    assert_eq!(several.notices, ["interrupted in round 3 of 9, which is left out"]);
    let alone = record(plan(1, 1), vec![CommandRun { interrupted: true, ..run(0, 0, MS, MS) }]);
    assert_eq!(alone.commands[0].runs, 1);
    assert_eq!(alone.notices, ["interrupted: the figures cover the time until then"]);
    // One that is not ended by it has its whole figures.
    let whole = CommandRun { interrupted: true, signal: Some(2), ..run(0, 0, MS, MS) };
    let notices = record(plan(1, 1), vec![whole]).notices;
    assert_eq!(notices, ["signal 2 arrived during the run, which continued to its end"]);
}

#[test]
fn a_command_keeps_its_number_where_the_other_has_no_run() {
    for command in [0, 1] {
        let mut odd = run(command, 0, MS, MS);
        odd.interrupted = true;
        let record = record(plan(2, 1), vec![odd]);
        assert_eq!(record.commands.len(), 1);
        assert_eq!(record.commands[0].number, command);
        let told = format!("true ({}): interrupted", command + 1);
        assert!(record.notices[0].starts_with(&told), "{:?}", record.notices);
    }
}

#[test]
fn ratios_of_many_rounds_are_those_of_few() {
    // 1.5 and 2 in turn, above and below what is resampled.
    for rounds in [40, 4000] {
        let runs = (0..rounds).flat_map(|round| {
            let second = if round % 2 == 0 { 1500 } else { 2000 };
            [run(0, round, 1000, 2 * MS), run(1, round, second, 6 * MS)]
        });
        let record = record(plan(2, rounds), runs.collect());
        let real = &record.ratios[0];
        assert!((1.5..=2.0).contains(&real.estimate.value) && real.estimate.resolved, "{real:?}");
        assert_eq!(real.estimate.rounds, rounds);
        assert!(real.estimate.low >= Some(1.499) && real.estimate.high <= Some(2.001), "{real:?}");
    }
}

#[test]
fn orphans_of_unknown_origin_are_told() {
    let mut odd = run(0, 0, MS, MS);
    odd.used.orphans.of_unknown_origin = 3;
    let told = record(plan(1, 1), vec![odd]).notices;
    assert!(told.iter().any(|told| told.starts_with("3 orphans are not counted")), "{told:?}");
}

#[test]
fn own_time_that_is_not_known_is_not_taken_for_childrens() {
    let mut odd = run(0, 0, 100 * MS, 100 * MS);
    odd.used.own_cpu_ns = Reading::unknown("no clock");
    assert!(!record(plan(1, 1), vec![odd]).commands[0].split.with_children);
}

#[test]
fn resident_memory_near_the_launchers_may_be_its_own() {
    let words = 7 << 17;
    for (most, words, told) in [
        (1 << 20, 0, true),
        (5 << 18, 0, true),
        (2 << 20, 0, false),
        (2 << 20, words, true),
        (3 << 20, words, false),
    ] {
        let mut small = run(0, 0, MS, MS);
        small.used.at_exec.resident_bytes = 1 << 20;
        small.used.usage.max_resident_bytes = most;
        let mut plan = plan(1, 1);
        plan.commands[0].push("x".repeat(words));
        let notices = record(plan, vec![small]).notices;
        let may_be =
            notices.iter().any(|told| told.starts_with("max resident may be the launcher's"));
        assert_eq!(may_be, told, "{most}: {notices:?}");
    }
}

#[test]
fn what_was_not_counted_is_told() {
    let mut odd = run(0, 0, MS, 100 * MS);
    odd.used.orphans.ended = 2;
    odd.used.orphans.left_behind = Reading::Known(vec![7, 8]);
    odd.used.delay = Reading::Known(RunDelay { run_delay_ns: 1, covered_cpu_ns: 43 * MS });
    odd.used.at_exec.resident_bytes = 2 << 20;
    let told = record(plan(1, 1), vec![odd]).notices;
    let starts = [
        "2 of its descendants outlived their parents and ended: not counted",
        "2 processes still ran after the end of true and are not counted (7, 8)",
        "run delay and migrations are of its first thread",
        "max resident may be the launcher's",
    ];
    assert_eq!(told.len(), starts.len(), "{told:?}");
    assert!(told.iter().zip(starts).all(|(told, start)| told.starts_with(start)), "{told:?}");
    assert!(told[2].ends_with("43 % of the CPU time"), "{told:?}");
}

#[test]
fn stored_notices_call_commands_what_the_stored_plan_calls_them() {
    let mut odd = run(1, 0, MS, 100 * MS);
    odd.used.orphans.left_behind = Reading::Known(vec![7]);
    odd.used.delay = Reading::Known(RunDelay { run_delay_ns: 1, covered_cpu_ns: 43 * MS });
    // One label begins with the other.
    let plan = named(&[&["a:"], &["a:", "b"]], 1);
    let mut record = record(plan.clone(), vec![run(0, 0, MS, MS), odd]);
    let events = ["a: b: process 7 still ran after the end of a: b and is not counted"];
    assert_eq!(record.events(), events);
    assert_eq!(record.notices.len(), 2, "{:?}", record.notices);
    let commands = vec![vec!["a:".to_string()], vec!["hidden".to_string()]];
    record.store_as((Plan { commands, ..plan }, None));
    let stored = "hidden: process 7 still ran after the end of hidden and is not counted";
    assert_eq!(record.notices[0], stored);
    assert!(record.notices[1].starts_with("hidden: run delay"), "{:?}", record.notices);
}

#[test]
fn switches_cost_what_the_profile_says() {
    // 1,000 switches at 2 to 3 us direct, up to 10 us with cache effects: 2 to 10 ms of 100 ms.
    let record = record(plan(1, 1), vec![run(0, 0, 200 * MS, 100 * MS)]);
    let cost = |low_ns, high_ns| Cost { low_ns, high_ns };
    let direct = Some(cost(2000.0, 3000.0));
    let point =
        |array_bytes, total| ProfilePoint { array_bytes, total, direct, ..ProfilePoint::default() };
    let points = vec![point(4096, cost(2500.0, 4000.0)), point(262_144, cost(5000.0, 10_000.0))];
    let profile =
        Reading::Known(CostProfile { run: "r".to_owned(), points, ..CostProfile::default() });
    let switching = Switching::of(&record.commands[0], profile, Vec::new());
    let (overhead, direct) =
        (switching.overhead_ns.unwrap(), switching.direct_overhead_ns.unwrap());
    assert!((overhead.low - 2e6).abs() < 1.0 && (overhead.high - 1e7).abs() < 1.0, "{overhead:?}");
    assert!((direct.low - 2e6).abs() < 1.0 && (direct.high - 3e6).abs() < 1.0, "{direct:?}");
    let ProgramCost::Estimated { share, .. } = switching.cost else { panic!("no estimate") };
    assert!((share.low - 0.02).abs() < 1e-9 && (share.high - 0.1).abs() < 1e-9, "{share:?}");
    // Its memory is larger than the largest array: said.
    assert!(switching.notices[0].contains("at most 256 KiB"), "{:?}", switching.notices);
    let none = Switching::of(&record.commands[0], Reading::unknown("none"), Vec::new());
    assert_eq!(none.overhead_ns, None);
}

#[test]
fn a_gate_has_the_codes_of_compare() {
    use super::gate::{Gate, Gated};
    // The others take `ratio` times as much, one in ten rounds apart.
    let of = |ratios: &[u64], rounds: u32, figures: &[Gated]| {
        let ms: Vec<u64> = ratios.iter().map(|percent| percent * 10).collect();
        Gate::of(&plan(ms.len(), rounds), &series(&ms, rounds), figures, 0.1)
    };
    for (ratios, rounds, code, words) in [
        (&[100, 105][..], 8, 0, "PASS: not more than 10 % above the base"),
        (&[100, 50], 8, 0, "PASS: not more than 10 % above the base"),
        (
            &[100, 200],
            8,
            1,
            "FAIL: more than 10 % above the base: real time by 100.0 % (100.0 to 100.0 %)",
        ),
        (
            &[100, 200],
            4,
            3,
            "UNDECIDED: may be more than 10 % above the base: real time has too few rounds for \
             an interval (-n 5 or more)",
        ),
        (
            &[100, 100, 200],
            8,
            1,
            "FAIL: more than 10 % above the base: true (3), real time by 100.0 % (100.0 to 100.0 \
             %)",
        ),
    ] {
        let gate = of(ratios, rounds, &[Gated::Real]);
        assert_eq!((gate.exit_code(false), &*gate.in_words), (code, words), "{ratios:?}");
        assert_eq!(gate.exit_code(true), if code == 3 { 0 } else { code });
    }
    // From 6 % less to 24 % more: its interval reaches beyond the limit.
    let wide = (0..8).flat_map(|round| {
        [run(0, round, 100 * MS, MS), run(1, round, (94 + 30 * u64::from(round % 2)) * MS, MS)]
    });
    let wide = Gate::of(&plan(2, 8), &wide.collect::<Vec<_>>(), &[Gated::Real, Gated::Cpu], 0.1);
    assert_eq!(wide.exit_code(false), 3, "{wide:?}");
    assert!(wide.in_words.contains("above the base: real time by up to 24.0 %"), "{wide:?}");
    // What fails in one run of many is not compared, however fast it is.
    let mut some = series(&[1000, 500], 8);
    some[5].used.ending = Ending::Exited { code: 3 };
    let failed = Gate::of(&plan(2, 8), &some, &[Gated::Real], 0.1);
    assert_eq!((failed.exit_code(false), failed.exit_code(true)), (2, 2));
    assert!(failed.in_words.contains("1 of 8 runs did not succeed (exit code 3)"), "{failed:?}");
}

#[test]
fn few_switches_more_are_no_multiple() {
    use super::gate::{Gate, Gated};
    let of = |counts: [u64; 2]| {
        let of_round = |round| {
            [0, 1].map(|command| {
                let mut one = run(command, round, MS, MS);
                (one.used.usage.voluntary, one.used.usage.involuntary) = (counts[command], 7);
                one
            })
        };
        let runs: Vec<CommandRun> = (0..8).flat_map(of_round).collect();
        Gate::of(&plan(2, 8), &runs, &[Gated::Voluntary, Gated::Switches], 0.1)
    };
    assert_eq!(of([0, 1]).exit_code(false), 0);
    assert_eq!(of([0, 20]).exit_code(false), 1);
    let many = of([90, 190]);
    assert_eq!(many.changes[0].ratio.map(|of| of.value.round()), Some(2.0));
    assert_eq!((many.changes[1].base, many.changes[1].new), (97.0, 197.0));
}

#[test]
fn a_comparison_in_markdown() {
    use super::gate::{Gate, Gated};
    use super::markdown::markdown;
    let plan = named(&[&["sh", "-c", "a | b"], &["new"]], 8);
    let runs = series(&[100, 200], 8);
    let gate = Gate::of(&plan, &runs, &[Gated::Real, Gated::Cpu, Gated::Switches], 0.1);
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

/// The first line of what is printed.
fn headline(record: &Record) -> String {
    super::answer::headline(record).into()
}

#[test]
fn headlines_mark_their_figures() {
    let commands: [&[&str]; 2] = [&["a", "2 s"], &["b"]];
    let marked = |count: usize, rounds: u32, ms: &[u64]| {
        let plan = named(&commands[..count], rounds);
        let text = super::answer::headline(&record(plan, series(ms, rounds)));
        let figures = text.spans().iter().map(|span| text[span.range.clone()].to_string());
        figures.collect::<Vec<String>>()
    };
    assert_eq!(marked(1, 1, &[10]), ["10.0 ms", "1.00 ms"]);
    assert_eq!(marked(1, 8, &[10]), ["10.01 ms"]);
    assert_eq!(marked(2, 8, &[10, 20]), ["2.00x", "faster"]);
}

fn named(commands: &[&[&str]], runs: u32) -> Plan {
    let words = |words: &&[&str]| words.iter().map(|word| word.to_string()).collect();
    Plan { commands: commands.iter().map(words).collect(), ..plan(commands.len(), runs) }
}

#[test]
fn the_headline_of_one_run_says_what_it_used() {
    let plan = named(&[&["make", "-j4"]], 1);
    let mut one = run(0, 0, 12_300 * MS, 40_100 * MS);
    (one.used.usage.voluntary, one.used.usage.involuntary) = (5000, 300);
    let mut record = record(plan, vec![one]);
    assert_eq!(headline(&record), "make -j4: 12.3 s real, 40.1 s CPU, 5,300 switches");
    // 5,300 switches at 91 to 159 us are 0.48 to 0.84 s of 40.1 s.
    let cost = Cost { low_ns: 91_000.0, high_ns: 159_000.0 };
    let point = |array_bytes| ProfilePoint {
        array_bytes,
        total: cost,
        direct: Some(cost),
        ..ProfilePoint::default()
    };
    let points = vec![point(4096), point(4 << 20)];
    let profile =
        Reading::Known(CostProfile { run: "r".to_owned(), points, ..CostProfile::default() });
    let switching = Switching::of(&record.commands[0], profile, Vec::new());
    record.commands[0].switching = Some(switching);
    assert_eq!(
        headline(&record),
        "make -j4: 12.3 s real, 40.1 s CPU, 5,300 switches; switching took about 1.2 to 2.1 % of \
         the CPU time"
    );
    // A range over tenfold is not quoted: 91 us to 1 ms a switch.
    let wide = ProfilePoint { total: Cost { high_ns: 1e6, ..cost }, ..point(4 << 20) };
    let points = vec![point(4096), wide];
    let profile =
        CostProfile { run: "r".into(), age_s: Some(90), points, ..CostProfile::default() };
    let switching = Switching::of(&record.commands[0], Reading::Known(profile), Vec::new());
    record.commands[0].switching = Some(switching);
    let said = headline(&record);
    let direct = "; switching itself took about 1.2 to 2.1 % of the CPU time, without the refill \
         of caches";
    assert!(said.contains(direct), "{said}");
    let mut failed = run(0, 0, 5 * MS, MS / 2);
    failed.used.ending = Ending::Exited { code: 3 };
    let failed = super::tests::record(named(&[&["sh", "-c", "exit 3"]], 1), vec![failed]);
    assert_eq!(
        headline(&failed),
        "sh -c 'exit 3' (exit code 3): 5.00 ms real, 0.500 ms CPU, 1,000 switches"
    );
}

#[test]
fn the_headline_of_several_runs_has_the_interval() {
    let of = |runs: u32| {
        let all = (0..runs).map(|round| run(0, round, (121 + u64::from(round) % 5) * 100 * MS, MS));
        headline(&record(named(&[&["make"]], runs), all.collect()))
    };
    let known = of(20);
    assert!(known.starts_with("make: 12.3 s (12.") && known.ends_with("), 20 runs"), "{known}");
    assert_eq!(of(3), "make: about 12.2 s, 3 runs (5 or more give an interval)");
}

/// Real times in each round of commands that take `ms`, all a little longer in odd rounds.
fn series(ms: &[u64], rounds: u32) -> Vec<CommandRun> {
    let of_round = |round: u32| {
        ms.iter().enumerate().map(move |(command, ms)| {
            run(command, round, (ms * 100 + u64::from(round % 2)) * MS / 100, MS)
        })
    };
    (0..rounds).flat_map(of_round).collect()
}

#[test]
fn the_headline_of_several_commands_says_which_is_faster() {
    let sleeps: [&[&str]; 3] = [&["sleep", "0.01"], &["sleep", "0.02"], &["sleep", "0.03"]];
    let of = |ms: &[u64], rounds: u32| {
        headline(&record(named(&sleeps[..ms.len()], rounds), series(ms, rounds)))
    };
    assert_eq!(of(&[10, 20], 8), "sleep 0.01 is 2.00x (2.00 to 2.00) faster than sleep 0.02");
    assert_eq!(of(&[20, 10], 8), "sleep 0.02 is 2.00x (2.00 to 2.00) faster than sleep 0.01");
    assert_eq!(
        of(&[10, 20], 3),
        "sleep 0.01 is ~2x faster than sleep 0.02 (3 runs each, no interval: at least 5 are needed)"
    );
    // The fastest and the slowest of three.
    assert_eq!(
        of(&[20, 39, 10], 2),
        "sleep 0.03 is ~3.9x faster than sleep 0.02 (2 runs each, no interval: at least 5 are needed)"
    );
    assert!(
        of(&[39, 10], 1).starts_with("sleep 0.02 is ~3.9x faster than sleep 0.01 (1 run each,")
    );
    let alike = of(&[10, 10], 8);
    assert!(
        alike.starts_with("No difference is resolved between sleep 0.01 and sleep 0.02: 1.00x ("),
        "{alike}"
    );
    assert_eq!(
        of(&[30, 10, 20], 8),
        "sleep 0.02 is 2.00x (2.00 to 2.00) faster than sleep 0.03 and 3.00x than sleep 0.01, \
         in this order"
    );
    assert_eq!(
        of(&[10, 10, 20], 8),
        "sleep 0.01 is the fastest, not resolved from sleep 0.02; sleep 0.03 takes 2.00x (2.00 \
         to 2.00) as long"
    );
    assert_eq!(of(&[10, 10, 10], 8), "No difference is resolved between the 3 commands");
}

/// The same command twice is told apart, within the characters that a label may have.
#[test]
fn a_long_command_is_told_apart_in_a_label_of_bounded_length() {
    let long = ["gzip", "-6", &"x".repeat(100)];
    let record = record(named(&[&long, &long], 8), series(&[10, 20], 8));
    let label = record.plan.label(1);
    assert!(label.ends_with(" (2)") && label.chars().count() == 48, "{label}");
    assert!(headline(&record).contains(&label), "{}", headline(&record));
}

/// Both say what the second takes by the first, whichever has the lower median.
#[test]
fn what_is_not_resolved_is_the_ratio_of_the_table() {
    // The second takes less in most rounds and more in some.
    let of_round = |round: u32| {
        let ms = if round % 3 == 0 { 1_100 } else { 960 };
        [run(0, round, 1_000 * MS, MS), run(1, round, ms * MS, MS)]
    };
    let record = record(named(&[&["true"], &["false"]], 9), (0..9).flat_map(of_round).collect());
    let said = headline(&record);
    assert!(
        said.starts_with("No difference is resolved between true and false: 0.960x ("),
        "{said}"
    );
    let text = super::table::text(&record, false).to_string();
    let row = text.lines().find(|line| line.starts_with("false ")).unwrap();
    assert!(row.contains(" 0.960x "), "{text}");
}

/// A ranking is told only where each is resolved from the next.
#[test]
fn an_order_is_told_where_all_of_it_holds() {
    let sleeps: [&[&str]; 4] = [&["a"], &["b"], &["c"], &["d"]];
    let of = |runs: Vec<CommandRun>| headline(&record(named(&sleeps, 8), runs));
    assert_eq!(
        of(series(&[10, 20, 40, 80], 8)),
        "a is 2.00x (2.00 to 2.00) faster than b, 4.00x than c and 8.00x than d, in this order"
    );
    // c and d take turns.
    let of_round = |round: u32| {
        let [c, d] = if round % 2 == 0 { [40, 44] } else { [44, 41] };
        [10, 20, c, d].into_iter().enumerate().map(move |(of, ms)| run(of, round, ms * MS, MS))
    };
    let said = of((0..8).flat_map(of_round).collect());
    assert!(said.starts_with("a is 2.00x") && !said.contains("order"), "{said}");
}

#[test]
fn who_ignores_failures_has_them_compared() {
    use super::gate::{Gate, Gated};
    let mut runs = series(&[100, 100], 8);
    runs.iter_mut().for_each(|run| run.used.ending = Ending::Exited { code: 1 });
    let plan = Plan { ignore_failure: true, ..plan(2, 8) };
    let gate = Gate::of(&plan, &runs, &[Gated::Real], 0.1);
    assert_eq!((gate.exit_code(false), gate.failed.len()), (0, 0));
}

#[test]
fn a_shell_is_told_of_where_it_is_seen() {
    let told = |shell: Option<&str>, ms: u64| {
        let plan = Plan { shell: shell.map(str::to_string), ..plan(1, 5) };
        let runs = (0..5).map(|round| run(0, round, ms * MS, MS)).collect();
        record(plan, runs).notices.iter().any(|told| told.contains("-N runs without"))
    };
    assert!(told(Some("sh"), 1) && !told(Some("sh"), 50) && !told(None, 1));
}

#[test]
fn values_of_a_parameter_name_their_commands() {
    let names = vec!["n=1".to_owned(), "n=4".to_owned()];
    let plan = Plan { names, ..named(&[&["make", "-j1"], &["make", "-j4"]], 8) };
    let record = record(plan, series(&[40, 10], 8));
    assert_eq!(headline(&record), "n=4 is 4.00x (4.00 to 4.00) faster than n=1");
    assert_eq!(record.ratios.iter().map(|ratio| ratio.command).collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn what_is_printed_by_default_fits_eighty_columns() {
    let long = "x".repeat(200);
    let commands: [&[&str]; 3] = [&["sh", "-c", &long], &["sleep", "0.02"], &[&long, "b"]];
    for (count, runs) in [(1, 1), (1, 20), (3, 20), (2, 2)] {
        let plan = named(&commands[..count], runs);
        let record = record(plan, series(&[12_345, 67_890, 99_999][..count], runs));
        let text = super::table::text(&record, false).text(Layout::default());
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{widest:?}: {text}");
        assert!(text.lines().all(|line| line == line.trim_end()), "{text:?}");
        assert!(text.starts_with(headline(&record).split(' ').next().unwrap()), "{text}");
        let all = super::table::text(&record, true);
        assert!(
            all.to_string().contains("not recorded by Linux: ixrss")
                && all.to_string().len() > text.len(),
            "{all}"
        );
        assert!(
            all.to_string().contains("switches: counted by the kernel for the command and all"),
            "{all}"
        );
    }
}

#[test]
fn records_of_schema_1_stay_readable() {
    let new = record(plan(2, 6), series(&[10, 20], 6));
    let mut old = serde_json::to_value(&new).unwrap();
    old["schema"] = 1.into();
    old.as_object_mut().unwrap().remove("host");
    old["plan"].as_object_mut().unwrap().remove("show_output");
    for ratio in old["ratios"].as_array_mut().unwrap() {
        ratio.as_object_mut().unwrap().remove("command");
    }
    let read: Record = serde_json::from_value(old).unwrap();
    assert_eq!((read.schema, new.schema), (1, 2));
    assert_eq!(read.ratios, new.ratios);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics_and_json_brings_it_back(
        figures in proptest::collection::vec((any::<u64>(), any::<u64>(), any::<u64>(), any::<bool>()), 0..7)
    ) {
        let runs = figures.into_iter().zip(0..).map(|((real, cpu, own, interrupted), round)| {
            let mut run = run((own % 2) as usize, round / 2, real, cpu);
            run.used.own_cpu_ns = Reading::Known(own);
            CommandRun { interrupted, ..run }
        });
        let mut record = record(plan(2, 3), runs.collect());
        for summary in &mut record.commands {
            summary.switching = Some(Switching::of(summary, Reading::unknown("none"), Vec::new()));
        }
        let json = serde_json::to_string(&record).unwrap();
        let back: Record = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(serde_json::to_string(&back).unwrap(), json);
    }
}
