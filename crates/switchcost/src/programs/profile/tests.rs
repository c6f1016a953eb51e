use analysis::used::Known;
use launcher::Ending;
use rundata::machine::Machine;

use super::findings::CallProfile;
use super::launches::{Bin, Counted, Launch, Plan, What};
use super::memory::Times;
use super::table;
use crate::base::lines::Layout;

fn plan(allocators: &[&str]) -> Plan {
    Plan {
        command: vec!["server".to_string(), "--once".to_string()],
        malloc: true,
        calls: Vec::new(),
        allocators: allocators.iter().map(|name| name.to_string()).collect(),
        runs: 6,
        seed: 1,
        confidence: 0.95,
    }
}

/// Calls of which each took so many ns with what timing adds.
fn counted(function: &str, bytes: Option<(u64, u64)>, each: &[(u64, u64)]) -> Counted {
    let bin = |&(ns, calls): &(u64, u64)| Bin { from_ns: ns, below_ns: ns + 1, calls };
    Counted {
        what: What { function: Some(function.to_string()), bytes },
        calls: each.iter().map(|(_, calls)| calls).sum(),
        times: Times {
            sum_ns: each.iter().map(|(ns, calls)| ns * calls).sum(),
            max_ns: each.iter().map(|(ns, _)| *ns).max().unwrap_or(0),
            ..Times::default()
        },
        histogram: each.iter().map(bin).collect(),
    }
}

fn launch(allocator: usize, round: u32, counted: Vec<Counted>) -> Launch {
    Launch {
        allocator,
        round,
        ending: Ending::Exited { code: 0 },
        exit_code: 0,
        cpu_ns: 1_000_000,
        processes: 1,
        missed_threads: 0,
        clocks: vec!["rseq".to_string()],
        empty_ns: Some(10.0),
        empty_call_ns: Some(20.0),
        known: Some(Known { told_ns: 2.5, in_a_row_ns: 0.5, chained_ns: 2.5 }),
        own_ns: Some(50.0),
        counted,
    }
}

fn profile(plan: Plan, launches: Vec<Launch>) -> CallProfile {
    let build = crate::engine::execute::build_info();
    CallProfile::of(plan, launches, ("2026".to_string(), None, Machine::default()), build)
}

fn of(function: Option<&str>, bytes: Option<(u64, u64)>) -> What {
    What { function: function.map(str::to_string), bytes }
}

#[test]
fn what_timing_adds_is_subtracted_by_kind_and_switches_add_to_the_wall_clock() {
    let mut small = counted("malloc", Some((16, 31)), &[(30, 900), (1_010, 100)]);
    small.times =
        Times { switched: 2, off_cpu_ns: 8_000_000, max_wall_ns: 7_000_000, ..small.times };
    let large = counted("malloc", Some((1024, 2047)), &[(60, 1_000)]);
    let found = profile(plan(&[]), vec![launch(0, 0, vec![small, large])]);
    let ns = |what: &What| found.row(0, what).unwrap().ns_per_call.value;
    // (20 x 900 + 1000 x 100) / 1000; 50; of both.
    assert_eq!(ns(&of(Some("malloc"), Some((16, 31)))), 118.0);
    assert_eq!(ns(&of(Some("malloc"), Some((1024, 2047)))), 50.0);
    assert_eq!(ns(&of(Some("malloc"), None)), 84.0);
    let all = found.all(0).unwrap();
    assert_eq!((all.calls, all.switched), (2_000.0, 2));
    assert_eq!(all.ns_per_call.value, 84.0);
    assert_eq!(all.wall_ns_per_call.value, (8_000_000.0 + 168_000.0) / 2_000.0);
    // The command has 1 ms, of which profiling took 50 ns for each of 2,000 calls.
    assert_eq!(all.share_of_cpu.unwrap().value, 168_000.0 / 900_000.0);
    let malloc = found.row(0, &of(Some("malloc"), None)).unwrap();
    assert_eq!((malloc.p50_ns, malloc.p99_ns, malloc.p999_ns), (50.0, 1_000.0, 1_000.0));
    assert_eq!((malloc.longest_ns, malloc.longest_wall_ns), (1_010, 7_000_000));
    assert_eq!(all.ns_per_call.interval(), None);
}

#[test]
fn named_functions_are_not_added_up_and_have_an_empty_call_of_their_own() {
    let counts = vec![counted("write", None, &[(520, 100)]), counted("fsync", None, &[(60, 100)])];
    let plan =
        Plan { malloc: false, calls: vec!["write".to_string(), "fsync".to_string()], ..plan(&[]) };
    let found = profile(plan, vec![launch(0, 0, counts)]);
    assert_eq!(found.row(0, &of(Some("write"), None)).unwrap().ns_per_call.value, 500.0);
    assert_eq!(found.all(0), None);
    let text = table::text(&found, false);
    assert!(
        text.to_string().starts_with("Of 2 functions, write takes most: a call takes about 500 ns"),
        "{text}"
    );
}

#[test]
fn a_share_of_what_is_mostly_profiling_is_not_known() {
    let malloc = counted("malloc", Some((16, 31)), &[(30, 10_001)]);
    let found = profile(plan(&[]), vec![launch(0, 0, vec![malloc])]);
    assert_eq!(found.all(0).unwrap().share_of_cpu, None);
    assert!(
        found.notices.iter().any(|note| note.contains("the share of the calls is unknown")),
        "{:?}",
        found.notices
    );
}

#[test]
fn allocators_that_do_not_see_the_same_calls_have_no_ratio() {
    let launches = (0..6).flat_map(|round| {
        [0, 1].map(|allocator| {
            let calls = 1_000 - 200 * allocator as u64;
            launch(allocator, round, vec![counted("malloc", Some((16, 31)), &[(30, calls)])])
        })
    });
    let found = profile(plan(&["libjemalloc.so.2"]), launches.collect());
    assert_eq!(found.ratios, []);
    assert!(
        found.notices.iter().any(|note| note.contains("800 calls are seen, without it 1000")),
        "{:?}",
        found.notices
    );
}

#[test]
fn a_cost_below_that_of_nothing_stays_below_zero() {
    let found = profile(plan(&[]), vec![launch(0, 0, vec![counted("free", None, &[(9, 10)])])]);
    assert_eq!(found.all(0).unwrap().ns_per_call.value, -1.0);
    assert_eq!(found.all(0).unwrap().p50_ns, -1.0);
    let text = table::text(&found, false);
    assert!(
        text.to_string().contains("takes no time that can be measured (not resolved: -1.00 ns)")
            && !text.to_string().contains("inf"),
        "{text}"
    );
}

/// As on a machine where 24 cycles take 5.5 ns, each of 16 calls in a row 1 ns, and one alone is
/// told as 4 ns: by 3 ns too much, or by 1.5 ns too little.
fn with_known(of: Launch) -> Launch {
    Launch { known: Some(Known { told_ns: 4.0, in_a_row_ns: 1.0, chained_ns: 5.5 }), ..of }
}

fn rounds(each: impl Fn(usize) -> Vec<Counted>, allocators: &[&str]) -> CallProfile {
    let all = (0..6).flat_map(|round| (0..=allocators.len()).map(move |of| (of, round)));
    let all = all.map(|(of, round)| with_known(launch(of, round, each(of))));
    profile(plan(allocators), all.collect())
}

#[test]
fn what_a_short_call_takes_is_an_upper_bound() {
    let malloc = |ns: u64| vec![counted("malloc", Some((64, 127)), &[(10 + ns, 1_000)])];
    let short = rounds(|_| malloc(3), &[]);
    let row = short.all(0).unwrap();
    assert_eq!((row.is_bound, row.least_ns, row.most_ns), (true, 0.0, 4.5));
    let interval = row.ns_per_call.interval().unwrap();
    assert_eq!((interval.low, interval.high, row.ns_per_call.resolved), (0.0, 4.5, false));
    let share = row.share_of_cpu.unwrap();
    assert!((share.high.unwrap() - 4_500.0 / 950_000.0).abs() < 1e-12, "{share:?}");
    assert_eq!(share.low, Some(0.0));
    let text = table::text(&short, true).to_string();
    let first = "An allocation or free takes at most 4.50 ns; all take at most 0.47 % of the CPU";
    assert!(text.to_string().starts_with(first), "{text}");
    let cells: Vec<&str> =
        text.lines().find(|line| line.contains("64")).unwrap().split_whitespace().collect();
    assert_eq!(cells[5..11], ["<=4.50", "0", "to", "4.50", "-", "-"], "{text}");
    assert!(text.to_string().contains("measured for a call that takes 1.00 ns"), "{text}");
    // Also of one run, and where nothing is known of overlap.
    let one = |of| table::text(&profile(plan(&[]), vec![of]), false);
    let text = one(with_known(launch(0, 0, malloc(3))));
    assert!(
        text.to_string().contains("takes at most 4.50 ns") && text.to_string().contains("<=4.50"),
        "{text}"
    );
    let text = one(Launch { known: None, ..launch(0, 0, malloc(300)) });
    assert!(
        text.to_string().contains("takes at most 300 ns")
            && text.to_string().contains("was not measured"),
        "{text}"
    );
    // From 13.5 ns on there is an interval, with that in it by which a known call is off.
    for (ns, is_bound) in [(13, true), (14, false)] {
        assert_eq!(rounds(|_| malloc(ns), &[]).all(0).unwrap().is_bound, is_bound, "{ns}");
    }
    let long = rounds(|_| malloc(100), &[]);
    let row = long.all(0).unwrap();
    let interval = row.ns_per_call.interval().unwrap();
    assert_eq!((interval.low, interval.high, row.is_bound), (97.0, 101.5, false));
    let text = table::text(&long, false);
    assert!(
        text.to_string().starts_with("An allocation or free takes 100 ns (97.0 to 102)"),
        "{text}"
    );
}

#[test]
fn nothing_is_built_on_what_a_short_call_takes() {
    let of = |own: u64, other: u64| {
        let malloc = move |of: usize| {
            let ns = [own, other][of];
            vec![counted("malloc", Some((64, 127)), &[(10 + ns, 1_000)])]
        };
        rounds(malloc, &["x.so"])
    };
    // 3 of 40 ns: at most 4.5 of at least 37.
    let found = of(40, 3);
    let ratio = &found.ratios[0];
    let most = 4.5 / 37.0;
    assert!(ratio.is_bound && ratio.ratio.resolved, "{ratio:?}");
    assert_eq!(ratio.ratio.low, Some(0.0));
    assert!((ratio.ratio.high.unwrap() - most).abs() < 1e-9, "{ratio:?}");
    let text = table::text(&found, false);
    assert!(text.to_string().contains("it takes at most 0.122 times that"), "{text}");
    assert!(text.to_string().contains("<=0.122"), "{text}");
    // 13 ns, which is a bound, may be less than 16 or more.
    let text = table::text(&of(16, 13), false);
    assert!(
        text.to_string().contains("(<=1.12)") && text.to_string().contains("not resolved from 1"),
        "{text}"
    );
    // What may be nothing has no multiple.
    let found = of(3, 40);
    assert_eq!(found.ratios, []);
    assert!(found.notices.iter().any(|of| of.contains("not compared between")), "{found:?}");
    // 20 and 21 ns: which takes more is not told.
    let ranked = |one: u64, other: u64| {
        let named = |name, ns| counted(name, None, &[(20 + ns, 100)]);
        let calls = vec!["write".to_string(), "fsync".to_string()];
        let plan = Plan { malloc: false, calls, ..plan(&[]) };
        let of = with_known(launch(0, 0, vec![named("write", one), named("fsync", other)]));
        table::text(&profile(plan, vec![of]), false)
    };
    assert!(ranked(21, 20).to_string().starts_with("Of 2 functions, write may take most: a call"));
    assert!(ranked(30, 20).to_string().starts_with("Of 2 functions, write takes most: a call"));
}

#[test]
fn a_ratio_that_is_not_resolved_is_in_brackets() {
    let launches = (0..2).flat_map(|round| {
        [0, 1].map(|allocator| {
            let ns = 30 + 20 * allocator as u64;
            launch(allocator, round, vec![counted("malloc", Some((16, 31)), &[(ns, 1_000)])])
        })
    });
    let text = table::text(&profile(plan(&["x.so"]), launches.collect()), false);
    assert!(
        text.to_string().contains(" (2.00) ")
            && text.to_string().contains("in brackets is not resolved"),
        "{text}"
    );
    assert!(!table::text(&two(), false).to_string().contains("(2.00)"), "{text}");
}

/// Allocator 1 takes twice what the C library's takes, in every round; the rounds differ more than
/// that.
fn two() -> CallProfile {
    let launches = (0..6).flat_map(|round| {
        let ns = 50 * (u64::from(round) + 1);
        [0, 1].map(|allocator| {
            let malloc = counted("malloc", Some((16, 31)), &[(ns * (allocator + 1) + 10, 1_000)]);
            launch(allocator as usize, round, vec![malloc])
        })
    });
    profile(plan(&["/usr/lib/libjemalloc.so.2"]), launches.collect())
}

#[test]
fn ratios_are_taken_within_rounds() {
    let found = two();
    let ratio = found.ratios.iter().find(|ratio| ratio.what == of(None, None)).unwrap().ratio;
    assert!((ratio.value - 2.0).abs() < 1e-9, "{ratio:?}");
    let range = ratio.interval().unwrap();
    // The overlap of one and of the other, 2 ns of 350 and of 175.
    let ends = [2.0 * (348.0 / 350.0), 2.0 / (173.0 / 175.0)];
    assert!((range.low - ends[0]).abs() < 1e-9, "{range:?}");
    assert!((range.high - ends[1]).abs() < 1e-9, "{range:?}");
    let own = found.all(0).unwrap().ns_per_call;
    assert!(own.interval().unwrap().half_width() > 50.0, "{own:?}");
}

#[test]
fn the_answer_comes_first_and_fits() {
    let one = vec![launch(0, 0, vec![counted("malloc", Some((16, 31)), &[(30, 1_000)])])];
    let text = table::text(&profile(plan(&[]), one), false).text(Layout::default());
    let first = "An allocation or free takes about 20.0 ns (1 round only); all take 2.1 % of the\n";
    assert!(text.starts_with(first), "{text}");
    assert!(text.contains("intervals need 5 runs or more: -n 10"), "{text}");
    let text = table::text(&two(), true);
    assert!(
        text.to_string().contains("With /usr/lib/libjemalloc.so.2 it takes 2.00 times that"),
        "{text}"
    );
    let text = text.text(Layout::default());
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let nothing = profile(plan(&[]), vec![Launch { processes: 0, ..launch(0, 0, Vec::new()) }]);
    let text = table::text(&nothing, false);
    assert!(text.to_string().starts_with("No call of server --once was counted.\n"), "{text}");
    assert!(text.to_string().contains("did not load the profiler"), "{text}");
}
