//! Costs of calls, their table and their answer, on fixed launches.

use analysis::used::Known;
use launcher::Ending;
use rundata::machine::Machine;

use super::findings::{CallProfile, ProfileOrigin};
use super::launches::{CallGroup, CallTimeBin, CountedCalls, ProfilePlan, ProfiledLaunch};
use super::memory::CallTimes;
use super::table;
use crate::base::lines::Layout;
use crate::engine::execute::build_info;

fn plan(allocators: &[&str]) -> ProfilePlan {
    ProfilePlan {
        command: vec!["server".to_string(), "--once".to_string()],
        malloc: true,
        calls: Vec::new(),
        allocators: allocators.iter().map(|name| name.to_string()).collect(),
        runs: 6,
        seed: 1,
        confidence: 0.95,
    }
}

fn plan_of_functions(names: &[&str]) -> ProfilePlan {
    let calls = names.iter().map(|name| name.to_string()).collect();
    ProfilePlan { malloc: false, calls, ..plan(&[]) }
}

/// Calls that each took so many ns, with what timing adds.
#[derive(Clone, Copy)]
struct AlikeCalls {
    ns: u64,
    calls: u64,
}

fn counted(function: &str, bytes: Option<(u64, u64)>, alike: &[AlikeCalls]) -> CountedCalls {
    let mut times = CallTimes::default();
    let (mut count, mut histogram) = (0, Vec::new());
    for AlikeCalls { ns, calls } in alike.iter().copied() {
        count += calls;
        times.sum_ns += ns * calls;
        times.max_ns = times.max_ns.max(ns);
        histogram.push(CallTimeBin { from_ns: ns, below_ns: ns + 1, calls });
    }
    let group = CallGroup { function: Some(function.to_string()), bytes };
    CountedCalls { group, calls: count, times, histogram }
}

/// Returns calls of a named function.
fn function_calls(name: &str, ns: u64, calls: u64) -> CountedCalls {
    counted(name, None, &[AlikeCalls { ns, calls }])
}

/// Returns calls of malloc for 16 to 31 bytes.
fn malloc_calls(ns: u64, calls: u64) -> CountedCalls {
    counted("malloc", Some((16, 31)), &[AlikeCalls { ns, calls }])
}

/// Returns a launch in which timing adds 10 ns to a call of an allocator, and 20 to others.
fn launch(allocator: usize, round: u32, counted: Vec<CountedCalls>) -> ProfiledLaunch {
    ProfiledLaunch {
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
        overhead_ns: Some(50.0),
        counted,
    }
}

fn profile(plan: ProfilePlan, launches: Vec<ProfiledLaunch>) -> CallProfile {
    let origin = ProfileOrigin {
        started: "2026".to_string(),
        host: None,
        machine: Machine::default(),
        build: build_info(),
    };
    CallProfile::from_launches(plan, launches, origin)
}

/// Returns a profile of six rounds with each allocator; `calls` returns the calls of a launch by
/// the number of its allocator and of its round.
fn profile_of_rounds(
    allocators: &[&str],
    calls: impl Fn(usize, u32) -> CountedCalls,
) -> CallProfile {
    let mut launches = Vec::new();
    for round in 0..6 {
        for allocator in 0..=allocators.len() {
            launches.push(launch(allocator, round, vec![calls(allocator, round)]));
        }
    }
    profile(plan(allocators), launches)
}

fn printed(profile: &CallProfile) -> String {
    table::text(profile, false).to_string()
}

fn has_notice(profile: &CallProfile, words: &str) -> bool {
    profile.notices.iter().any(|notice| notice.contains(words))
}

#[track_caller]
fn assert_contains(text: &str, words: &str) {
    assert!(text.contains(words), "{words}: {text}");
}

#[test]
fn the_time_that_timing_adds_is_subtracted_and_switches_add_to_the_wall_clock() {
    let alike = [AlikeCalls { ns: 30, calls: 900 }, AlikeCalls { ns: 1_010, calls: 100 }];
    let mut small = counted("malloc", Some((16, 31)), &alike);
    small.times =
        CallTimes { switched: 2, off_cpu_ns: 8_000_000, max_wall_ns: 7_000_000, ..small.times };
    let large = counted("malloc", Some((1024, 2047)), &[AlikeCalls { ns: 60, calls: 1_000 }]);
    let profile = profile(plan(&[]), vec![launch(0, 0, vec![small.clone(), large.clone()])]);
    let ns_per_call = |group: &CallGroup| profile.row(0, group).unwrap().ns_per_call.value;
    let malloc = CallGroup::of_function("malloc");
    // (20 x 900 + 1000 x 100) / 1000; 50; of both.
    assert_eq!(ns_per_call(&small.group), 118.0);
    assert_eq!(ns_per_call(&large.group), 50.0);
    assert_eq!(ns_per_call(&malloc), 84.0);
    let all_calls = profile.all_calls(0).unwrap();
    assert_eq!((all_calls.calls, all_calls.switched), (2_000.0, 2));
    assert_eq!(all_calls.ns_per_call.value, 84.0);
    assert_eq!(all_calls.wall_ns_per_call.value, (8_000_000.0 + 168_000.0) / 2_000.0);
    // The command took 1 ms, of which profiling took 50 ns for each of 2,000 calls.
    assert_eq!(all_calls.share_of_cpu.unwrap().value, 168_000.0 / 900_000.0);
    let malloc = profile.row(0, &malloc).unwrap();
    assert_eq!((malloc.p50_ns, malloc.p99_ns, malloc.p999_ns), (50.0, 1_000.0, 1_000.0));
    assert_eq!((malloc.longest_ns, malloc.longest_wall_ns), (1_010, 7_000_000));
    assert_eq!(all_calls.ns_per_call.interval(), None);
}

#[test]
fn named_functions_are_not_added_up_and_have_an_empty_call_of_their_own() {
    let calls = vec![function_calls("write", 520, 100), function_calls("fsync", 60, 100)];
    let profile = profile(plan_of_functions(&["write", "fsync"]), vec![launch(0, 0, calls)]);
    let write = profile.row(0, &CallGroup::of_function("write")).unwrap();
    assert_eq!(write.ns_per_call.value, 500.0);
    assert_eq!(profile.all_calls(0), None);
    let text = printed(&profile);
    assert!(
        text.starts_with("Of 2 functions, write takes most: a call takes about 500 ns"),
        "{text}"
    );
}

#[test]
fn the_share_of_the_cpu_time_is_unknown_if_profiling_took_most_of_it() {
    let profile = profile(plan(&[]), vec![launch(0, 0, vec![malloc_calls(30, 10_001)])]);
    assert_eq!(profile.all_calls(0).unwrap().share_of_cpu, None);
    let words = "the share of the calls is unknown";
    assert!(has_notice(&profile, words), "{:?}", profile.notices);
}

#[test]
fn allocators_that_do_not_see_the_same_calls_have_no_ratio() {
    let profile = profile_of_rounds(&["libjemalloc.so.2"], |allocator, _| {
        malloc_calls(30, 1_000 - 200 * allocator as u64)
    });
    assert_eq!(profile.ratios, []);
    let words = "800 calls are seen, without it 1000";
    assert!(has_notice(&profile, words), "{:?}", profile.notices);
}

#[test]
fn a_cost_below_that_of_an_empty_interval_stays_below_zero() {
    let free = function_calls("free", 9, 10);
    let profile = profile(plan(&[]), vec![launch(0, 0, vec![free])]);
    let all_calls = profile.all_calls(0).unwrap();
    assert_eq!(all_calls.ns_per_call.value, -1.0);
    assert_eq!(all_calls.p50_ns, -1.0);
    let text = printed(&profile);
    assert_contains(&text, "takes no time that can be measured (not resolved: -1.00 ns)");
    assert!(!text.contains("inf"), "{text}");
}

/// Returns a launch on a machine where 24 cycles take 5.5 ns, each of 16 calls in a row 1 ns, and a
/// single one is measured as 4 ns: by 3 ns too long, or by 1.5 ns too short.
fn with_known_call(launch: ProfiledLaunch) -> ProfiledLaunch {
    let known = Some(Known { told_ns: 4.0, in_a_row_ns: 1.0, chained_ns: 5.5 });
    ProfiledLaunch { known, ..launch }
}

/// Returns a profile of six rounds with a known call: a call of malloc takes `ns` with the
/// allocator of the same number.
fn profile_of_mallocs(ns: &[u64]) -> CallProfile {
    let allocators = &["x.so"][..ns.len() - 1];
    let mut launches = Vec::new();
    for round in 0..6 {
        for (allocator, ns) in ns.iter().enumerate() {
            let calls = known_malloc_calls(*ns);
            launches.push(with_known_call(launch(allocator, round, vec![calls])));
        }
    }
    profile(plan(allocators), launches)
}

fn known_malloc_calls(ns: u64) -> CountedCalls {
    counted("malloc", Some((64, 127)), &[AlikeCalls { ns: 10 + ns, calls: 1_000 }])
}

#[test]
fn a_short_call_has_an_upper_bound() {
    let profile = profile_of_mallocs(&[3]);
    let row = profile.all_calls(0).unwrap();
    assert_eq!((row.is_bound, row.least_ns, row.most_ns), (true, 0.0, 4.5));
    let interval = row.ns_per_call.interval().unwrap();
    assert_eq!((interval.low, interval.high, row.ns_per_call.resolved), (0.0, 4.5, false));
    let share = row.share_of_cpu.unwrap();
    assert!((share.high.unwrap() - 4_500.0 / 950_000.0).abs() < 1e-12, "{share:?}");
    assert_eq!(share.low, Some(0.0));
    let text = table::text(&profile, true).to_string();
    let first = "An allocation or free takes at most 4.50 ns; all take at most 0.47 % of the CPU";
    assert!(text.starts_with(first), "{text}");
    let line = text.lines().find(|line| line.contains("64")).unwrap();
    let cells: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(cells[5..11], ["<=4.50", "0", "to", "4.50", "-", "-"], "{text}");
    assert_contains(&text, "measured for a call that takes 1.00 ns");
}

#[test]
fn a_single_launch_has_an_upper_bound_with_and_without_a_known_call() {
    let short = launch(0, 0, vec![known_malloc_calls(3)]);
    let text = printed(&profile(plan(&[]), vec![with_known_call(short)]));
    assert_contains(&text, "takes at most 4.50 ns");
    assert_contains(&text, "<=4.50");
    let long = launch(0, 0, vec![known_malloc_calls(300)]);
    let text = printed(&profile(plan(&[]), vec![ProfiledLaunch { known: None, ..long }]));
    assert_contains(&text, "takes at most 300 ns");
    assert_contains(&text, "was not measured");
}

/// From 13.5 ns on there is an interval, which covers the error of the known call.
#[test]
fn a_longer_call_has_an_interval() {
    assert!(profile_of_mallocs(&[13]).all_calls(0).unwrap().is_bound);
    assert!(!profile_of_mallocs(&[14]).all_calls(0).unwrap().is_bound);
    let profile = profile_of_mallocs(&[100]);
    let row = profile.all_calls(0).unwrap();
    let interval = row.ns_per_call.interval().unwrap();
    assert_eq!((interval.low, interval.high, row.is_bound), (97.0, 101.5, false));
    let text = printed(&profile);
    assert!(text.starts_with("An allocation or free takes 100 ns (97.0 to 102)"), "{text}");
}

/// 3 of 40 ns: at most 4.5 of at least 37.
#[test]
fn a_short_call_has_an_upper_bound_of_its_ratio() {
    let profile = profile_of_mallocs(&[40, 3]);
    let ratio = &profile.ratios[0];
    let most = 4.5 / 37.0;
    assert!(ratio.is_bound && ratio.ratio.resolved, "{ratio:?}");
    assert_eq!(ratio.ratio.low, Some(0.0));
    assert!((ratio.ratio.high.unwrap() - most).abs() < 1e-9, "{ratio:?}");
    let text = printed(&profile);
    assert_contains(&text, "it takes at most 0.122 times that");
    assert_contains(&text, "<=0.122");
    // 13 ns, which is an upper bound, may be less than 16 or more.
    let text = printed(&profile_of_mallocs(&[16, 13]));
    assert_contains(&text, "(<=1.12)");
    assert_contains(&text, "not resolved from 1");
}

#[test]
fn there_is_no_ratio_to_a_cost_that_may_be_zero() {
    let profile = profile_of_mallocs(&[3, 40]);
    assert_eq!(profile.ratios, []);
    assert!(has_notice(&profile, "not compared between"), "{profile:?}");
}

#[test]
fn the_answer_says_which_function_takes_most_only_if_it_is_resolved() {
    let answer = |write_ns: u64, fsync_ns: u64| {
        let calls = vec![
            function_calls("write", 20 + write_ns, 100),
            function_calls("fsync", 20 + fsync_ns, 100),
        ];
        let launches = vec![with_known_call(launch(0, 0, calls))];
        printed(&profile(plan_of_functions(&["write", "fsync"]), launches))
    };
    assert!(answer(21, 20).starts_with("Of 2 functions, write may take most: a call"));
    assert!(answer(30, 20).starts_with("Of 2 functions, write takes most: a call"));
}

#[test]
fn a_ratio_that_is_not_resolved_is_in_brackets() {
    let mut launches = Vec::new();
    for round in 0..2 {
        launches.push(launch(0, round, vec![malloc_calls(30, 1_000)]));
        launches.push(launch(1, round, vec![malloc_calls(50, 1_000)]));
    }
    let text = printed(&profile(plan(&["x.so"]), launches));
    assert_contains(&text, " (2.00) ");
    assert_contains(&text, "in brackets is not resolved");
    let text = printed(&profile_of_doubled_costs());
    assert!(!text.contains("(2.00)"), "{text}");
}

/// Returns a profile in which allocator 1 takes twice what the C library's takes, in every round;
/// the rounds differ more than that.
fn profile_of_doubled_costs() -> CallProfile {
    profile_of_rounds(&["/usr/lib/libjemalloc.so.2"], |allocator, round| {
        let ns = 50 * (u64::from(round) + 1);
        malloc_calls(ns * (allocator as u64 + 1) + 10, 1_000)
    })
}

#[test]
fn ratios_are_taken_within_rounds() {
    let profile = profile_of_doubled_costs();
    let ratio = profile.ratios.iter().find(|ratio| ratio.group == CallGroup::ALL).unwrap().ratio;
    assert!((ratio.value - 2.0).abs() < 1e-9, "{ratio:?}");
    let interval = ratio.interval().unwrap();
    // The overlap in either cost: 2 ns of 350 and of 175.
    let (low, high) = (2.0 * (348.0 / 350.0), 2.0 / (173.0 / 175.0));
    assert!((interval.low - low).abs() < 1e-9, "{interval:?}");
    assert!((interval.high - high).abs() < 1e-9, "{interval:?}");
    let base = profile.all_calls(0).unwrap().ns_per_call;
    assert!(base.interval().unwrap().half_width() > 50.0, "{base:?}");
}

#[test]
fn the_answer_comes_first_and_lines_fit_the_terminal() {
    let single = vec![launch(0, 0, vec![malloc_calls(30, 1_000)])];
    let text = table::text(&profile(plan(&[]), single), false).text(Layout::default());
    let first = "An allocation or free takes about 20.0 ns (1 round only); all take 2.1 % of the\n";
    assert!(text.starts_with(first), "{text}");
    assert_contains(&text, "intervals need 5 runs or more: -n 10");
    let text = table::text(&profile_of_doubled_costs(), true);
    let words = "With /usr/lib/libjemalloc.so.2 it takes 2.00 times that";
    assert_contains(&text.to_string(), words);
    let text = text.text(Layout::default());
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn a_command_that_did_not_load_the_profiler_is_told() {
    let launches = vec![ProfiledLaunch { processes: 0, ..launch(0, 0, Vec::new()) }];
    let text = printed(&profile(plan(&[]), launches));
    assert!(text.starts_with("No call of server --once was counted.\n"), "{text}");
    assert_contains(&text, "did not load the profiler");
}
