//! The report of a captured state, to the letter.

use analysis::program::{CostProfile, Direct, Price, Range};
use charts::{Figure, Scale, Series, Unit};
use rundata::reading::Reading;
use switchtrace::{ThreadKey, ThreadSnapshot};

use super::pinning::PinningSaving;
use super::report::{
    TimelinePoint, TraceCosts, TraceFacts, TraceReport, TraceTarget, TraceTimeline,
};
use super::{figures, page, table};
use crate::base::lines::Layout;
use crate::observe::live::GroupBy;
use crate::observe::live::account::{SwitchAccount, ThreadUsage, TraceScope};
use crate::observe::live::labels::ProcessLabels;
use crate::observe::live::rows::{PreemptionCount, RowGrouping};
use crate::observe::live::session::TracerOverhead;
use crate::observe::live::tests::{name, pair, thread};
use crate::programs::watch::HandOverCost;
use crate::report::printout::Printout;

const SECOND: u64 = 1_000_000_000;

fn account(scope: TraceScope) -> SwitchAccount {
    let mut account = SwitchAccount::new(scope);
    let (main, worker, alien) = (name(812, 1), name(813, 1), name(57, 1));
    let look = |of: u64| {
        vec![
            thread(main, 812, "postgres", 2_400 * of),
            thread(worker, 812, "postgres:io", 80_000 * of),
            thread(alien, 57, "kworker/1:2", 100 * of),
        ]
    };
    let pairs = |of: u64| {
        [
            pair(worker, main, 30_000 * of, 10_000 * of),
            pair(worker, alien, 0, 50 * of),
            pair(main, ThreadKey::default(), 1_000 * of, 0),
        ]
    };
    account.add_look(2 * SECOND, look(1), &pairs(1));
    account.add_look(4 * SECOND, look(2), &pairs(2));
    account
}

fn costs(price: Price) -> TraceCosts {
    let profile = match price.direct {
        Some(_) => Reading::Known(CostProfile {
            run: "a-run".into(),
            age_s: Some(7200),
            ..CostProfile::default()
        }),
        None => Reading::unknown("no stored cost profile: run `switchcost cost` first"),
    };
    let refill_unknown = price.total.is_none().then(|| "its memory was not read".to_string());
    let command_to_know = price.direct.is_none().then(|| "switchcost cost".to_string());
    TraceCosts {
        price,
        figure: None,
        own: None,
        apart: None,
        profile,
        refill_unknown,
        command_to_know,
    }
}

fn process(name: &str, pid: u32) -> TraceTarget {
    TraceTarget { name: name.into(), pid: Some(pid), pids: vec![pid], ..TraceTarget::default() }
}

fn report(
    account: &SwitchAccount,
    grouping: RowGrouping<'_>,
    target: TraceTarget,
    seconds: f64,
    costs: TraceCosts,
    overhead: TracerOverhead,
) -> TraceReport {
    let facts = TraceFacts { target, seconds, costs, overhead, timeline: Vec::new() };
    TraceReport::from_account(account, grouping, facts)
}

fn trace(scope: TraceScope, price: Price) -> TraceReport {
    let target = match scope {
        TraceScope::All => TraceTarget::machine(),
        _ => process("postgres", 812),
    };
    let own = TracerOverhead {
        ns_per_switch: Reading::Known(165.0),
        cpu_ns: 2_000_000,
        share: Reading::Known(0.003),
        preemptions: NOT_ONE,
    };
    report(
        &account(scope),
        RowGrouping { by: GroupBy::Thread, labels: &ProcessLabels::default() },
        target,
        2.0,
        costs(price),
        own,
    )
}

const NOT_ONE: PreemptionCount = PreemptionCount { count: 0, of_switches: 0, per_s: 0.0 };

const DIRECT: Option<Direct> =
    Some(Direct { pipe: Range { low: 200.0, high: 300.0 }, yields: None });
const TOTAL: Option<Range> = Some(Range { low: 780.0, high: 1_100.0 });

/// Returns the report as pages have room for it.
fn printed(trace: &TraceReport, is_verbose: bool) -> Printout {
    table::text(trace, is_verbose, Layout::PAGE)
}

#[test]
fn the_answer_comes_first() {
    let trace = trace(TraceScope::Processes(vec![812]), Price { direct: DIRECT, total: TOTAL });
    let said = printed(&trace, false).text(Layout::default()).to_string();
    let expected = "\
postgres (pid 812): 41,200 switches a second, 50 % voluntary; they cost 7.8 to
  11 % of its CPU time, by profile a-run, 2 hours old; preempted 5,025 times a
  second, mostly by its own threads (over 99 %), then kworker/1:2 (0.5 %). Fewer
  switches would save up to 11 % of its CPU time, most of it by refilling
  caches: most are preemptions by its own threads.

2.00 s; counts/s; prmpts: preempted; moves: to other CPUs; run <66us: from 33

name                 id sleeps prmpts yields  moves   wait    p99    run  cost %
postgres:io         813    20k    20k      0      0   <1us   <1us  <16us 2.0-3.0
postgres            812    600    600      0      0   <1us   <1us  <16us 2.0-3.0

--wide shows 2 more columns: cpu %, preempted by

preempted, times a second: 5,000 by its own threads (over 99 %), 25 by
  kworker/1:2 (0.5 %)
this tracer: 0.3 % of the machine, 165 ns a switch
";
    assert_eq!(said, expected);
}

/// Of 22 preemptions one is by the kernel; the rest are the observer's own doing, which is not of
/// the program.
#[test]
fn what_the_observer_preempts_is_no_neighbours_doing() {
    let (worker, alien, observer) = (name(812, 1), name(57, 1), name(99, 1));
    let launcher = name(98, 1);
    let look = |of: u64| {
        let started =
            ThreadSnapshot { parent: 99, ..thread(launcher, 98, "switchcost-cmd", 2 * of) };
        vec![
            thread(worker, 812, "postgres", 80_000 * of),
            thread(alien, 57, "kworker/1:2", 2 * of),
            thread(observer, 99, "switchcost", 40 * of),
            started,
        ]
    };
    let pairs = |of: u64| {
        [
            pair(worker, alien, 0, of),
            pair(worker, observer, 3, 20 * of),
            pair(worker, launcher, 0, of),
            pair(observer, launcher, 0, of),
        ]
    };
    for scope in [TraceScope::Processes(vec![812]), TraceScope::All] {
        let mut account = SwitchAccount::new(scope.clone()).by_observer(99);
        account.add_look(2 * SECOND, look(1), &pairs(1));
        account.add_look(4 * SECOND, look(2), &pairs(2));
        assert_eq!(account.preempted_by_observer(), 21, "{scope:?}");
        // Nor is it in a chart.
        let charts = format!("{:?}", drawn(&account));
        assert!(charts.contains("postgres (812) by kworker/1:2 (57)"), "{charts}");
        assert!(!charts.contains("switchcost"), "{charts}");
        let preemptions = PreemptionCount::new(21, &account.total(), 2.0);
        let own = TracerOverhead { preemptions, ..trace(scope.clone(), Price::default()).own };
        let target = match scope {
            TraceScope::All => TraceTarget::machine(),
            _ => process("postgres", 812),
        };
        let by = RowGrouping { by: GroupBy::Process, labels: &ProcessLabels::default() };
        let costs = costs(Price::default());
        let found = report(&account, by, target, 2.0, costs, own);
        let names: Vec<&str> = found.neighbours.iter().map(|of| &*of.name).collect();
        assert_eq!(names, ["kworker/1:2"], "{scope:?}");
        assert!(
            found
                .in_words
                .contains("; preempted 0.5 times a second, mostly by kworker/1:2 (100 %)"),
            "{found:?}"
        );
        assert_eq!(found.rows[0].preempted_by.as_ref().map(|by| &*by.name), Some("kworker/1:2"));
        let said = printed(&found, false).to_string().replace("\n  ", " ");
        let words = "; it took the CPU: 21 of 80,0";
        assert!(said.contains(words) && said.contains(" 10.5 a second"), "{said}");
    }
}

/// Forty short-lived processes of one name take the CPU once each, a kernel thread twice, and a
/// thread of its own a hundred times.
#[test]
fn preempters_of_one_name_are_one_group_as_are_its_own_threads() {
    let (main, worker, alien) = (name(812, 1), name(813, 1), name(16, 1));
    let curls: Vec<ThreadKey> = (0..40).map(|number| name(2_000 + number, 1)).collect();
    let threads = |of: u64| {
        let mut all = vec![
            thread(main, 812, "postgres", 800 * of),
            thread(worker, 812, "postgres:io", 800 * of),
            thread(alien, 16, "rcu_preempt", 2 * of),
        ];
        all.extend(curls.iter().map(|curl| thread(*curl, curl.tid, "curl", of)));
        all
    };
    let pairs = |of: u64| {
        let mut all = vec![pair(main, worker, 0, 158 * of), pair(main, alien, 0, 2 * of)];
        all.extend(curls.iter().map(|curl| pair(main, *curl, 0, of)));
        all
    };
    let mut account = SwitchAccount::new(TraceScope::Processes(vec![812]));
    account.add_look(2 * SECOND, threads(1), &pairs(1));
    account.add_look(4 * SECOND, threads(2), &pairs(2));
    let own = trace(TraceScope::All, Price::default()).own;
    let by = RowGrouping { by: GroupBy::Thread, labels: &ProcessLabels::default() };
    let costs = costs(Price::default());
    let found = report(&account, by, process("x", 812), 2.0, costs, own);
    let words =
        "; preempted 100 times a second, mostly by its own threads (79 %), then curl (20 %)";
    assert!(found.in_words.contains(words), "{}", found.in_words);
    let groups: Vec<(&str, bool, f64)> =
        found.preempters.iter().map(|group| (&*group.name, group.is_own, group.per_s)).collect();
    let expected =
        [("its own threads", true, 79.0), ("curl", false, 20.0), ("rcu_preempt", false, 1.0)];
    assert_eq!(groups, expected);
    // Its own threads preempt it most, so that no neighbour is to be kept off its CPUs.
    let line = "preempted, times a second: 79 by its own threads (79 %), 20 by curl (20 %), 1 by \
                rcu_preempt (1 %)";
    assert!(printed(&found, false).to_string().contains(line), "{}", printed(&found, false));
}

#[test]
fn the_largest_rows_are_printed_and_what_the_others_make_together() {
    let mut account = SwitchAccount::new(TraceScope::All);
    let names: Vec<ThreadKey> = (0..200).map(|number| name(1_000 + number, 1)).collect();
    let threads = |of: u64| {
        let mut all = Vec::new();
        for (number, name) in names.iter().enumerate() {
            let switches = if number < 12 { 2_000 } else { 20 };
            all.push(thread(*name, name.tid, "sh", switches * of));
        }
        all
    };
    account.add_look(2 * SECOND, threads(1), &[]);
    account.add_look(4 * SECOND, threads(2), &[]);
    let own = trace(TraceScope::All, Price::default()).own;
    let by = RowGrouping { by: GroupBy::Thread, labels: &ProcessLabels::default() };
    let costs = costs(Price::default());
    let found = report(&account, by, TraceTarget::machine(), 2.0, costs, own);
    let rows =
        |text: &Printout| text.to_string().lines().filter(|line| line.starts_with("sh ")).count();
    let said = printed(&found, false);
    assert_eq!(rows(&said), 12, "{said}");
    assert!(
        said.to_string().contains("\n188 more: 1,880 switches a second (--verbose)\n"),
        "{said}"
    );
    assert_eq!(rows(&printed(&found, true)), 200);
}

#[test]
fn a_profile_without_a_cost_is_not_told_as_no_cpu_time() {
    let profile = Reading::Known(CostProfile { run: "a-run".into(), ..CostProfile::default() });
    let costs = TraceCosts { profile, refill_unknown: None, ..costs(Price::default()) };
    let own = trace(TraceScope::All, Price::default()).own;
    let account = account(TraceScope::Processes(vec![812]));
    let by = RowGrouping { by: GroupBy::Thread, labels: &ProcessLabels::default() };
    let found = report(&account, by, process("x", 812), 2.0, costs, own);
    assert!(found.total.cpu_share > 0.0);
    let said = printed(&found, false);
    assert!(
        said.to_string().contains("cost: unknown: the cost profile has no cost of a switch"),
        "{said}"
    );
    assert!(!said.to_string().contains("no CPU time"), "{said}");
}

#[test]
fn what_is_not_known_is_said_with_the_way_to_know_it() {
    let direct_only =
        trace(TraceScope::Processes(vec![812]), Price { direct: DIRECT, total: None });
    assert!(
        direct_only.in_words.contains(
            "they cost at least 2 % of its CPU time, by profile a-run, 2 hours old (what refilling \
             caches adds is unknown);"
        ),
        "{}",
        direct_only.in_words
    );
    // A range over tenfold is not quoted.
    let total = DIRECT.map(|of| Range { high: 11.0 * of.pipe.low, ..of.pipe });
    let wide = trace(TraceScope::Processes(vec![812]), Price { direct: DIRECT, total });
    assert!(
        wide.in_words.contains(
            "at least 2 % of its CPU time, by profile a-run, 2 hours old (the upper end is unknown);"
        ),
        "{}",
        wide.in_words
    );
    let said = printed(&direct_only, false);
    assert!(
        said.to_string().contains("refill of caches: unknown: its memory was not read\n"),
        "{said}"
    );
    let nothing = trace(TraceScope::All, Price::default());
    assert_eq!(
        nothing.in_words,
        "machine: 41,250 switches a second, 50 % voluntary; their cost is unknown; \
         preempted 5,025 times a second, mostly by postgres (over 99 %), then kworker/1:2 (0.5 %)."
    );
    let said = printed(&nothing, false);
    assert!(
        said.to_string().contains("no stored cost profile")
            && said.to_string().contains("to find out: switchcost cost"),
        "{said}"
    );
}

#[test]
fn details_are_the_pairs_and_the_lengths() {
    let said = printed(
        &trace(TraceScope::Processes(vec![812]), Price { direct: DIRECT, total: TOTAL }),
        true,
    );
    for line in [
        "from               to                sleeps  preempts    CPU %",
        "postgres:io (813)  postgres (812)    30,000    10,000  0.4-0.6",
        "postgres (812)     idle               1,000         0      0.0",
        "  time  wait %  run %  preempted %  asleep %",
        "  <1us     100      -            -         -",
        " <66us       -      -          100         -",
        "cost profile: a-run",
    ] {
        assert!(said.to_string().contains(&format!("\n{line}\n")), "{line}\n{said}");
    }
}

fn drawn(account: &SwitchAccount) -> Vec<Figure> {
    figures::figures(
        account,
        RowGrouping { by: GroupBy::Thread, labels: &ProcessLabels::default() },
    )
}

#[test]
fn charts_have_who_preempts_whom_and_how_long_each_waits() {
    let all = drawn(&account(TraceScope::Processes(vec![812])));
    let ids: Vec<&str> = all.iter().map(|figure| &*figure.id).collect();
    assert_eq!(ids, ["preempts", "waits", "lengths"]);
    let [preempts, waits, _] = &all[..] else { panic!() };
    assert_eq!(
        preempts.x.names,
        ["postgres:io (813) by postgres (812)", "postgres:io (813) by kworker/1:2 (57)"]
    );
    let counts: Vec<f64> = preempts.series()[0].points.iter().map(|point| point.y).collect();
    assert_eq!(counts, [10_000.0, 50.0]);
    assert!(preempts.in_words.starts_with("10,050 preemptions of threads"), "{preempts:?}");
    // The kernel's thread is not of the process.
    let names: Vec<&str> = waits.series().iter().map(|series| &*series.name).collect();
    assert_eq!(names[0], "postgres:io (813)");
    assert_eq!(names[2], "postgres (812)");
    assert_eq!(names.len(), 4, "{names:?}");
    assert!(waits.in_words.starts_with("99 % of the waits are below 1.02 us."), "{waits:?}");
    assert_eq!(waits.x.scale, Scale::Log);
    assert_eq!(waits.y.unit, Unit::Percent);
}

#[test]
fn threads_that_come_and_go_are_taken_together_by_name() {
    let mut account = SwitchAccount::new(TraceScope::All);
    let names: Vec<_> = (0..100).map(|number| name(1_000 + number, 1)).collect();
    let threads = |of: u64| {
        names.iter().map(|name| thread(*name, name.tid, "sh", 10 * of)).collect::<Vec<_>>()
    };
    let pairs =
        |of: u64| names.windows(2).map(|two| pair(two[0], two[1], 0, of)).collect::<Vec<_>>();
    account.add_look(2 * SECOND, threads(1), &pairs(1));
    account.add_look(4 * SECOND, threads(2), &pairs(2));
    let all = drawn(&account);
    assert_eq!(all[0].x.names, ["sh by sh"]);
    assert!(all[0].in_words.contains("Threads of one name are taken together."), "{:?}", all[0]);
    let six = "Of 100 threads those 6 with the most switches are drawn.";
    assert!(all[1].in_words.contains(six), "{:?}", all[1]);
    assert_eq!(all[1].series().len(), 12);
}

/// Lengths are known by powers of two: a share only at their ends.
#[test]
fn a_distribution_is_drawn_where_it_is_known() {
    let mut counts = [0; 32];
    (counts[0], counts[2], counts[4]) = (40, 50, 10);
    let [line, marked] = figures::distribution("x", &counts.into());
    let points = |of: &Series| of.points.iter().map(|p| (p.x, p.y)).collect::<Vec<_>>();
    let ends = [(128.0, 40.0), (256.0, 40.0), (512.0, 90.0), (1024.0, 90.0), (2048.0, 100.0)];
    assert_eq!(points(&line), ends);
    assert_eq!(points(&marked), [(512.0, 90.0), (2048.0, 100.0)]);
    // What is above zero begins with none; what is longer than all has no end.
    let ends = |bucket, count| {
        let mut counts = [0; 32];
        (counts[3], counts[bucket]) = (1, count);
        points(&figures::distribution("x", &counts.into())[0])
    };
    assert_eq!(ends(3, 1), [(1024.0 / 2.0, 0.0), (1024.0, 100.0)]);
    assert_eq!(ends(31, 1).last().map(|(_, share)| *share), Some(50.0));
    assert_eq!(figures::distribution("x", &[0; 32].into()).map(|of| of.points.len()), [0, 0]);
}

#[test]
fn a_page_has_the_answer_the_charts_and_what_the_terminal_says() {
    let trace = trace(TraceScope::Processes(vec![812]), Price { direct: DIRECT, total: TOTAL });
    let html = page::page(&trace, drawn(&account(TraceScope::Processes(vec![812])))).html();
    for words in [
        "<p class=\"lead\">postgres (pid 812): 41,200 switches a second",
        "<span class=\"figure\">41,200 <span class=\"unit\">/s</span></span><span class=\"range\">counted",
        "<span class=\"range\">7.80 to 11.0</span>",
        ">Who preempts whom?</h2>",
        ">How long does it wait for a CPU?</h2>",
        "refilling caches: 4.8 to 9 %",
    ] {
        assert!(html.contains(words), "no {words}: {html}");
    }
    assert!(!html.contains("<select id=\"base\""), "there is nothing to divide by");
}

#[test]
fn nothing_that_was_switched_is_no_division_by_zero() {
    let own = TracerOverhead {
        ns_per_switch: Reading::unknown("x"),
        cpu_ns: 0,
        share: Reading::unknown("x"),
        preemptions: NOT_ONE,
    };
    let target = process("x", 1);
    let price = Price { direct: DIRECT, total: TOTAL };
    let account = SwitchAccount::new(TraceScope::Processes(vec![1]));
    let trace = report(
        &account,
        RowGrouping { by: GroupBy::Thread, labels: &ProcessLabels::default() },
        target,
        0.5,
        costs(price),
        own,
    );
    assert_eq!(trace.in_words, "x (pid 1) was not switched once in 0.5 s.");
    assert_eq!(drawn(&account), []);
    assert!(page::page(&trace, Vec::new()).html().contains("was not switched once"));
    assert!(serde_json::to_string(&trace).is_ok_and(|text| !text.contains("null,\"high\"")));
    printed(&trace, true);
}

#[test]
fn a_timeline_has_a_bounded_number_of_points() {
    let mut timeline = TraceTimeline::default();
    for second in 0..100_000_u64 {
        timeline
            .add(second as f64, &ThreadUsage { voluntary: 10 * second, ..ThreadUsage::default() });
    }
    let points: Vec<TimelinePoint> = timeline.points();
    assert!((1_000..=2_048).contains(&points.len()), "{}", points.len());
    assert!(points.iter().all(|point| (point.switches_per_s - 10.0).abs() < 1e-9));
    let apart = || points.windows(2).map(|two| two[1].at_s - two[0].at_s);
    let (least, most) = (apart().fold(f64::MAX, f64::min), apart().fold(0.0, f64::max));
    assert!(least > 0.0 && most <= 4.0 * least, "{least} to {most}");
}

/// Of 41,200 switches a second of 20 us each two threads make 40,000 to each other, a quarter of
/// them involuntary.
#[test]
fn workers_apart_preempt_nobody_and_hand_over_at_the_sweeps_cost() {
    let price = Price { direct: DIRECT, total: Some(Range { low: 800.0, high: 1_000.0 }) };
    let pinning = |hand_over_ns: Range, cpus| {
        let apart = HandOverCost { hand_over_ns, run: "a-sweep".into() };
        PinningSaving::compute(&account(TraceScope::Processes(vec![812])), price, &apart, cpus)
    };
    let hand_over_ns = Range { low: 400.0, high: 500.0 };
    let found = pinning(hand_over_ns, 2).unwrap();
    // In two seconds 40,000 switches, 30,000 of them voluntary, in 824 ms of CPU time.
    let [low, high] = [40.0 * 800.0 - 30.0 * 500.0, 40.0 * 1_000.0 - 30.0 * 400.0];
    assert_eq!(found.share, Range { low: low * 1e3 / 824e6, high: high * 1e3 / 824e6 });
    assert_eq!(found.in_words(), " Pinning its 2 workers apart would save up to 3.4 %.");
    // With one CPU there is no apart; where handing over is dearer than a switch nothing is saved.
    assert_eq!(pinning(hand_over_ns, 1), None);
    assert_eq!(pinning(Range { low: 1_000.0, high: 1_100.0 }, 2), None);
    // Nor where that is not known, or is not worth a sentence.
    assert_eq!(pinning(Range { low: 400.0, high: 1_100.0 }, 2), None);
    assert_eq!(pinning(Range { low: 1_065.0, high: 1_066.0 }, 2), None);
}

#[test]
fn the_saving_is_told_of_a_program_only() {
    let apart =
        HandOverCost { hand_over_ns: Range { low: 400.0, high: 500.0 }, run: "a-sweep".into() };
    let price = Price { direct: DIRECT, total: Some(Range { low: 800.0, high: 1_000.0 }) };
    let said = |scope| {
        let own = TracerOverhead {
            ns_per_switch: Reading::Known(165.0),
            cpu_ns: 0,
            share: Reading::Known(0.0),
            preemptions: NOT_ONE,
        };
        let target =
            if scope == TraceScope::All { TraceTarget::machine() } else { process("x", 812) };
        let costs = TraceCosts { apart: Some((apart.clone(), 2)), ..costs(price) };
        let by = RowGrouping { by: GroupBy::Thread, labels: &ProcessLabels::default() };
        report(&account(scope), by, target, 2.0, costs, own)
    };
    let one = said(TraceScope::Processes(vec![812]));
    assert!(
        one.in_words.ends_with(". Pinning its 2 workers apart would save up to 3.4 %."),
        "{one:?}"
    );
    let text = printed(&one, true);
    assert!(
        text.to_string().contains("workers hand over in 400 ns to 500 ns (measured by a-sweep)"),
        "{text}"
    );
    assert!(!said(TraceScope::All).in_words.contains("Pinning"));
}
