//! Answers and charts of responses: wake-ups and links of one run.

use std::collections::BTreeMap;

use analysis::response::LoopCost;
use analysis::response::ResponseSummary;
use charts::{Figure, Role, Scale};
use rundata::case::Case;
use rundata::experiment::Experiment;
use rundata::plan::{Batching, Plan, Stopping};
use rundata::ring::Policy;
use rundata::ring::RingBatching;
use rundata::run::{Header, Run};
use rundata::trial::wakeup::{LATE_NS, Wakeup, WakeupLoad};
use rundata::trial::{self, Trial, TrialBatching};

use crate::registry::Record;
use crate::report::figures::tests::*;
use crate::report::terminal::View;

fn wakeup(policy: Policy) -> Case {
    of_sleeper(policy, 1, None)
}

fn of_sleeper(policy: Policy, timer_slack_ns: u64, cpu_latency_us: Option<u32>) -> Case {
    let of = Wakeup {
        load: WakeupLoad::Idle,
        wakes: 600,
        period_ns: 1_000_000,
        timer_slack_ns,
        seed: 1,
        cpu_latency_us,
    };
    Case::Trial(trial::TrialCase { trial: Trial::Wakeup(of), cpu: 1, policy })
}

/// Six rounds; sleepers are 1 to 600 us late, a switch by pipe costs 3 us and by futex 2.
fn drawn() -> Vec<Figure> {
    figures(&made([(wakeup(Policy::Other), 0), (wakeup(Policy::Fifo), 0)]))
}

/// The same with such sleepers, each so many nanoseconds later.
fn made<const N: usize>(sleepers: [(Case, i64); N]) -> Run {
    let by = |link: &str| rundata::ring::RingCase { link: link.into(), ..case(2, None) };
    let rings = run(Experiment::Ring, vec![by("pipe"), by("futex")], |case| {
        if case.link == "pipe" { 3000 } else { 2000 }
    });
    let mut cases: Vec<Case> = rings.header.plan.cases.clone();
    let first = cases.len();
    cases.extend(sleepers.iter().map(|(case, _)| case.clone()));
    let header = Header {
        schema: 1,
        run: "made".into(),
        started: rings.header.started,
        invocation: Vec::new(),
        name: None,
        host: None,
        build: rings.header.build,
        plan: Plan {
            experiment: Experiment::Response,
            cases,
            seed: 1,
            batching: Batching {
                ring: RingBatching::default(),
                trial: TrialBatching { trials: 600 },
            },
            stopping: Stopping {
                precision: 0.01,
                budget_ns: 1,
                rounds: Some(6),
                confidence: 0.95,
                fixed_budget: false,
            },
            reference: Default::default(),
            parts: Vec::new(),
        },
        machine: rings.header.machine,
        notices: Vec::new(),
        is_quick: false,
        session: None,
        launch: None,
    };
    let mut run = Run::new(header);
    run.end = rings.end;
    run.samples = rings.samples;
    let late = |later: i64| (1..=600).map(|us| us * 1000 + later).collect();
    let all = sleepers.iter().enumerate().map(|(place, (_, later))| (first + place, *later));
    for (round, (case, later)) in (0..6).flat_map(|round| all.clone().map(move |of| (round, of))) {
        let tallies = BTreeMap::from([(LATE_NS.to_string(), late(later))]);
        let sample = trial::TrialSample {
            case,
            round,
            elapsed_ns: 1_000_000_000,
            elapsed_ticks: None,
            gaps: Vec::new(),
            sliced: Vec::new(),
            tallies,
            counts: BTreeMap::new(),
            steal_ns: None,
        };
        run.samples.push(rundata::case::Sample::Trial(sample));
    }
    run
}

/// A switch by pipe of 3 us and a call of 150 ns at 2 GHz; what may not be quoted has no cycles,
/// and what waits has no clock.
#[test]
fn wide_tables_have_cycles_of_what_may_be_quoted() {
    let mut record =
        analysis::record::ResponseRecord::from_run(&made([(wakeup(Policy::Other), 0)]));
    for summary in &mut record.cases {
        let ResponseSummary::Ring(ring) = summary else { continue };
        let [cycles, open] = in_cycles(ring.ns_per_switch_above_solo);
        ring.clock_ghz = Some(2.0);
        ring.cycles_per_switch = if ring.case.link == "pipe" { cycles } else { open };
    }
    let wide = View { wide: true, ..View::default() };
    let call = |record: &mut analysis::record::ResponseRecord, call: &str, is_open: bool| {
        let case = record.found.wakeups[0].case;
        let ns = record.found.wakeups[0].median_ns.and_then(|late| late.scaled(5e-4));
        let ResponseSummary::Trial(trial) = &mut record.cases[case] else { panic!("a sleeper") };
        let [cycles, open] = in_cycles(ns);
        (trial.clock_ghz, trial.cycles) = (Some(2.0), if is_open { open } else { cycles });
        let call = call.to_string();
        let (ticks, empty_loop_ns, kernel_entries) = (None, None, None);
        record.found.loops =
            vec![LoopCost { case, call, ns, ticks, empty_loop_ns, kernel_entries }];
        super::table::text(record, wide).table
    };
    let text = call(&mut record, "getuid", false);
    // All wake-ups are the same: the interval is the assumed scatter between launches.
    assert_eq!(cells(&text, "getuid"), ["ns", "150", "91.9", "to", "245", "300", "2.00"]);
    assert_eq!(cells(&text, "switch by pipe")[5..], ["6024", "2.00"]);
    assert_eq!(cells(&text, "wake-up, idle")[5..7], ["-", "-"]);
    assert_eq!(cells(&call(&mut record, "getuid", true), "getuid")[5..7], ["-", "2.00"]);
    // Of links alone each has its row.
    (record.found.loops, record.found.wakeups) = (Vec::new(), Vec::new());
    let links = super::table::text(&record, wide).table;
    assert_eq!(cells(&links, "pipe")[5..7], ["6024", "2.00"]);
    assert_eq!(cells(&links, "futex")[5..7], ["-", "2.00"]);
    assert!(!super::table::text(&record, View::default()).table.to_string().contains("GHz"));
}

/// What is printed by default, its broken lines joined.
fn printed(run: &Run) -> String {
    Record::from_run(run).text(run, None, View::default()).to_string().replace("\n  ", " ")
}

#[test]
fn the_answer_has_the_slack_of_applications_and_what_it_and_idle_states_add() {
    let sleepers = [
        (of_sleeper(Policy::Other, 1, None), 0),
        (of_sleeper(Policy::Other, 50_000, None), 50_000),
        (of_sleeper(Policy::Other, 1, Some(0)), -20_000),
        (wakeup(Policy::Fifo), -10_000),
    ];
    let run = made(sleepers);
    let text = printed(&run);
    let first = text.lines().next().unwrap();
    assert!(first.starts_with("Cheapest is futex: "), "{text}");
    let wanted = "; a timer on an idle CPU wakes a thread 350 us (214 to 571) late (median), 644 \
         us at 99 %, with the default timer slack; 300 us with 1 ns, 280 us without idle states; \
         SCHED_OTHER, CPU 1.";
    assert!(first.ends_with(wanted), "{first}");
    for line in [
        "timer slack: the default of 50 us adds 50.0 us (50.0 to 50.0) to a wake-up under \
         SCHED_OTHER; prctl(PR_SET_TIMERSLACK) lowers it",
        "idle states: leaving one takes 20.0 us (20.0 to 20.0) of the wake-up; \
         /dev/cpu_dma_latency held at 0 keeps the CPU awake",
    ] {
        assert!(text.lines().any(|of| of == line), "no {line:?} in {text}");
    }
    let mut under_fifo = run.clone();
    for ring in under_fifo.header.plan.cases.iter_mut().filter_map(Case::ring_mut) {
        ring.policy = Policy::Fifo;
    }
    let text = printed(&under_fifo);
    let first = text.lines().next().unwrap();
    assert!(first.ends_with("idle states (SCHED_OTHER); under fifo, CPU 1."), "{first}");
    assert!(text.contains("wake-up, idle, other "), "{text}");
    let record = analysis::record::ResponseRecord::from_run(&under_fifo);
    let heading = super::table::text(&record, View::default()).heading;
    assert_eq!(heading, ", on CPU 1 under fifo");
    let text = Record::from_run(&run).text(&run, None, View::default()).to_string();
    let rows: Vec<&str> =
        text.lines().filter_map(|line| line.trim().strip_prefix("wake-up, ")).collect();
    let names = ["idle  ", "idle, slack 50 us  ", "idle, awake  ", "idle, fifo  "];
    assert_eq!(rows.len(), names.len(), "{text}");
    assert!(rows.iter().zip(names).all(|(row, name)| row.starts_with(name)), "{rows:?}");
}

/// As a run on a busy machine had it: "leaving one takes -448 ns (not resolved)".
#[test]
fn leaving_an_idle_state_costs_no_less_than_nothing() {
    let awake = (of_sleeper(Policy::Other, 1, Some(0)), 448);
    let by_default = (of_sleeper(Policy::Other, 50_000, None), 50_000);
    let text = printed(&made([(of_sleeper(Policy::Other, 1, None), 0), by_default, awake]));
    let wanted = "idle states: what leaving one adds to a wake-up: not resolved: -448 to -448 ns; ";
    assert!(text.contains(wanted), "{text}");
}

#[test]
fn without_the_device_it_is_said_what_is_not_measured_and_an_older_run_is_not_blamed() {
    let by_default = (of_sleeper(Policy::Other, 50_000, None), 50_000);
    let text = printed(&made([(wakeup(Policy::Other), 0), by_default]));
    assert!(text.contains("it needs access to /dev/cpu_dma_latency (root)"), "{text}");
    let old = printed(&made([(wakeup(Policy::Other), 0), (wakeup(Policy::Fifo), 0)]));
    assert!(
        old.contains(
            "300 us (184 to 490) late (median), 594 us at 99 %, with timer slack 1 ns; SCHED_OTHER"
        ),
        "{old}"
    );
    assert!(!old.contains("dma_latency") && !old.contains("default"), "{old}");
}

/// A case as it was stored before there were other sleepers.
#[test]
fn an_older_case_reads_back_with_its_title_and_its_fields() {
    let text = r#"{"trial":{"of":"wakeup","load":"idle","wakes":400,"period_ns":500000,"timer_slack_ns":1,"seed":1992},"cpu":1,"policy":"other"}"#;
    let case: trial::TrialCase = serde_json::from_str(text).unwrap();
    assert_eq!(case.trial.to_string(), "wake-up on an idle CPU");
    assert_eq!(serde_json::to_string(&case).unwrap(), text);
    let title = |case: Case| case.title();
    assert_eq!(
        title(of_sleeper(Policy::Other, 50_000, None)),
        "wake-up on an idle CPU, timer slack 50 us"
    );
    assert_eq!(
        title(of_sleeper(Policy::Other, 1, Some(0))),
        "wake-up on an idle CPU, idle latency 0 us"
    );
}

#[test]
fn wake_ups_are_distributions_by_policy_with_their_percentiles_marked() {
    let figures = drawn();
    let late = figure(&figures, "response-late");
    assert_eq!((late.x.scale, late.y.scale), (Scale::Log, Scale::Linear));
    let line = series(late, Role::Distribution, "idle CPU, other");
    series(late, Role::Distribution, "idle CPU, fifo");
    // From 1 to 600 us in equal steps: nobody is earlier or later than the ends.
    let [first, .., last] = &line.points[..] else { panic!("{line:?}") };
    assert_eq!((first.x, first.y, last.x, last.y), (1e3, 0.0, 600e3, 100.0));
    assert!(line.points.windows(2).all(|two| two[0].x <= two[1].x && two[0].y < two[1].y));
    let marked = series(late, Role::Quantiles, "idle CPU, other, percentiles");
    let marked: Vec<(f64, f64)> = marked.points.iter().map(|point| (point.x, point.y)).collect();
    // 3600 wake-ups are too few for the last of a thousand.
    assert_eq!(marked, [(300e3, 50.0), (594e3, 99.0)]);
    assert!(late.in_words.contains(" 300 us (idle CPU, "), "{}", late.in_words);
}

#[test]
fn links_of_a_response_are_the_same_bars_as_those_of_rings() {
    let figures = drawn();
    let links = figure(&figures, "links");
    assert_eq!(links.x.names, ["futex", "pipe"]);
    let bars = series(links, Role::Bars, "measured");
    assert!(near(bars.points[0].y, 2000.0) && near(bars.points[1].y, 3000.0));
    let rounds = figure(&figures, "rounds");
    // Four rings in eight rounds, two trials in six.
    assert_eq!(series(rounds, Role::Raw, "samples").points.len(), 4 * 8 + 2 * 6);
}
