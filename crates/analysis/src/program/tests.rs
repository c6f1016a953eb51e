//! Exact answers on fixed cost profiles, and any input.

use proptest::prelude::*;
use rundata::reading::Reading;
use rundata::ring::Walk;

use super::*;

const KIB: u64 = 1024;

fn point(kib: u64, low_ns: f64, high_ns: f64) -> ProfilePoint {
    let total = Cost { low_ns, high_ns };
    ProfilePoint { array_bytes: kib * KIB, total, ..ProfilePoint::default() }
}

fn profile() -> Vec<ProfilePoint> {
    vec![
        point(64, 3000.0, 4000.0),
        point(128, 3500.0, 4500.0),
        point(256, 10_000.0, 20_000.0),
        point(512, 50_000.0, 90_000.0),
    ]
}

fn program(low_kib: u64, high_kib: u64) -> Program {
    Program {
        voluntary_per_s: Reading::Known(900.0),
        involuntary_per_s: Reading::Known(100.0),
        cpu_share: Reading::Known(0.5),
        working_set: Reading::Known(WorkingSet {
            low_bytes: low_kib * KIB,
            high_bytes: high_kib * KIB,
            sampled: None,
        }),
    }
}

fn share(answer: &ProgramCost) -> (f64, f64) {
    match answer {
        ProgramCost::Estimated { share, .. } => (share.low, share.high),
        ProgramCost::Inconclusive { .. } => panic!("{}", answer.in_words()),
    }
}

fn near(ours: (f64, f64), expected: (f64, f64)) -> bool {
    (ours.0 - expected.0).abs() < 1e-12 && (ours.1 - expected.1).abs() < 1e-12
}

#[test]
fn at_a_measured_size_the_share_is_that_of_its_interval() {
    // 1,000 switches a second of 3.5 to 4.5 us, in half a second of CPU time.
    let answer = program_cost(&program(128, 128), &profile());
    assert!(near(share(&answer), (0.007, 0.009)), "{answer:?}");
    assert_eq!(
        answer.in_words(),
        "switching takes 0.7 to 0.9 % of the CPU time: 1,000 switches a second at 3.5 to 4.5 us \
         each"
    );
}

#[test]
fn between_sizes_it_spans_the_neighbours() {
    let answer = program_cost(&program(150, 200), &profile());
    assert!(near(share(&answer), (0.007, 0.04)), "{answer:?}");
    // A range over several sizes spans all of them and the neighbours outside it.
    let wide = program_cost(&program(100, 300), &profile());
    assert!(near(share(&wide), (0.006, 0.18)), "{wide:?}");
    // A cost that falls with size is spanned just so.
    let falls = [point(64, 9000.0, 9500.0), point(128, 1000.0, 1500.0)];
    assert!(near(share(&program_cost(&program(90, 90), &falls)), (0.002, 0.019)));
}

#[test]
fn nothing_is_extrapolated_silently() {
    let words = program_cost(&program(400, 600), &profile()).in_words();
    assert_eq!(
        words,
        "inconclusive: cost profile: the working set is 400 KiB to 600 KiB, but costs were measured \
         for 64 KiB to 512 KiB only: measure them with `switchcost cost --array 1K..1MiB:x2`"
    );
    assert!(
        program_cost(&program(10, 100), &profile()).in_words().contains("is 10 KiB to 100 KiB,")
    );
    // With c1, no work is measured too.
    let mut with_direct = profile();
    with_direct[0].direct = Some(Cost { low_ns: 2000.0, high_ns: 2500.0 });
    let answer = program_cost(&program(10, 60), &with_direct);
    assert!(near(share(&answer), (0.004, 0.008)), "{answer:?}");
    assert!(answer.in_words().contains(", 0.4 to 0.5 % for the direct cost alone"), "{answer:?}");
    // Beyond all arrays that much is known.
    let beyond = program_cost(&program(10, 1 << 20), &with_direct);
    assert!(
        beyond
            .in_words()
            .ends_with("1K..2GiB:x2`; the direct cost alone takes 0.4 to 0.5 % of the CPU time"),
        "{}",
        beyond.in_words()
    );
    let empty = program_cost(&program(1, 1), &[]).in_words();
    assert_eq!(empty, "inconclusive: no stored cost profile: run `switchcost cost` first");
}

#[test]
fn each_missing_input_is_named() {
    let nothing = Program {
        voluntary_per_s: Reading::unknown("/proc/7/status: No such file"),
        involuntary_per_s: Reading::Known(f64::NAN),
        cpu_share: Reading::Known(0.0),
        working_set: Reading::unknown("/proc/7/clear_refs: Permission denied"),
    };
    let ProgramCost::Inconclusive { missing, direct_share: None, command: None } =
        program_cost(&nothing, &profile())
    else {
        panic!("told");
    };
    let starts = [
        "voluntary switches: /proc",
        "involuntary switches: NaN",
        "CPU time: ",
        "working set: /proc",
    ];
    assert_eq!(missing.len(), starts.len());
    assert!(missing.iter().zip(starts).all(|(why, start)| why.starts_with(start)), "{missing:?}");
}

#[test]
fn what_does_not_hold_is_said() {
    let assumed = |program: &Program, points: &[ProfilePoint]| match program_cost(program, points) {
        ProgramCost::Estimated { assumptions, .. } => assumptions.join("; "),
        ProgramCost::Inconclusive { missing, .. } => panic!("{missing:?}"),
    };
    let plain = assumed(&program(128, 128), &profile());
    assert!(
        !plain.contains("involuntary") && !plain.contains("do not fit this program"),
        "{plain}"
    );
    let preempted = Program { involuntary_per_s: Reading::Known(2e6), ..program(128, 128) };
    let told = assumed(&preempted, &profile());
    assert!(
        told.contains("most switches are involuntary") && told.contains("do not fit this program"),
        "{told}"
    );
    let unresolved = assumed(&program(64, 64), &[point(64, -500.0, 800.0)]);
    assert!(unresolved.contains("not resolved from zero"), "{unresolved}");
}

#[test]
fn shares_stay_within_the_cpu_time() {
    // A million switches of -0.5 to 4 us in half a second of CPU time.
    let busy = Program { voluntary_per_s: Reading::Known(1e6), ..program(64, 64) };
    let answer = program_cost(&busy, &[point(64, -500.0, 4000.0)]);
    assert_eq!(share(&answer), (0.0, 1.0));
    let ProgramCost::Estimated { limited, assumptions, .. } = &answer else { panic!("{answer:?}") };
    assert!(limited);
    let told = assumptions.join("; ");
    assert!(told.contains("limited to 0 %") && told.contains("limited to 100 %"), "{told}");
    assert!(told.contains("by the stored costs it is 800 %"), "{told}");
    let ProgramCost::Estimated { limited, .. } = program_cost(&program(128, 128), &profile())
    else {
        panic!("an estimate")
    };
    assert!(!limited);
}

/// A ring that walks 256 KiB takes longer for a hop than the program runs between two switches.
#[test]
fn an_array_that_there_is_no_time_for_is_not_the_programs() {
    let walk = |of: ProfilePoint| ProfilePoint {
        hop_ns: Some(of.array_bytes as f64 / KIB as f64 * 4000.0),
        ..of
    };
    // 0.5 ms between two switches: 125 KiB.
    let points: Vec<ProfilePoint> = profile().into_iter().map(walk).collect();
    assert!(near(share(&program_cost(&program(64, 512), &points)), (0.006, 0.009)));
    // Arrays beyond it need not be measured, and what was touched at least stays.
    assert!(near(share(&program_cost(&program(64, 1 << 20), &points)), (0.006, 0.009)));
    assert!(near(share(&program_cost(&program(300, 1 << 20), &points)), (0.02, 0.18)));
}

#[test]
fn work_makes_no_switch_cheaper() {
    let direct = Some(Cost { low_ns: 2000.0, high_ns: 2500.0 });
    let points = [(64, -900.0), (128, 3000.0)]
        .map(|(kib, low)| ProfilePoint { direct, ..point(kib, low, 4000.0) });
    assert!(near(share(&program_cost(&program(64, 128), &points)), (0.004, 0.008)));
}

#[test]
fn each_walk_is_read_by_itself() {
    let chase = |of: ProfilePoint| ProfilePoint { walk: Walk::Chase, ..of };
    let mut points = profile();
    points.extend([point(96, 5000.0, 6000.0), point(1024, 7000.0, 8000.0)].map(chase));
    // Of the whole walk 64 and 128 KiB are around 70 to 80 KiB; of the other one nothing is.
    assert!(near(share(&program_cost(&program(70, 80), &points)), (0.006, 0.009)));
    assert!(near(share(&program_cost(&program(100, 120), &points)), (0.006, 0.016)));
    assert!(near(share(&program_cost(&program(600, 700), &points)), (0.01, 0.016)));
}

#[test]
fn a_profile_is_called_by_what_may_be_typed_and_its_age() {
    let profile = |run: &str, name: Option<&str>, age_s: Option<u64>| {
        let (run, name) = (run.to_string(), name.map(str::to_string));
        CostProfile { run, name, age_s, ..CostProfile::default() }.called()
    };
    let run = "20261125T022900123Z-cost-1234";
    assert_eq!(profile(run, None, Some(3 * 3600 + 59)), "profile 20261125T022900, 3 hours old");
    assert_eq!(profile(run, Some("mine"), Some(59)), "profile mine, less than a minute old");
    assert_eq!(profile("a/fileZ", None, None), "profile a/fileZ");
    assert_eq!(profile("r", None, Some(60)), "profile r, 1 minute old");
    assert_eq!(profile("r", None, Some(200_000)), "profile r, 2 days old");
    let brought = |then: f64, now: f64| {
        let (measured_ghz, clock_ghz) = (Some(then), Some(now));
        CostProfile { run: "r".into(), measured_ghz, clock_ghz, ..CostProfile::default() }.called()
    };
    assert_eq!(brought(4.08, 3.78), "profile r, brought from 4.08 to 3.78 GHz");
    // No sentence has the same clock twice.
    assert_eq!(brought(3.690, 3.681), "profile r");
}

#[test]
fn no_cache_loses_more_than_it_holds() {
    use rundata::machine::{CacheKind, CpuCache, Machine};
    let mut machine = Machine::default();
    let set = WorkingSet { low_bytes: 5, high_bytes: 1 << 40, sampled: None };
    assert_eq!(set.in_caches(&machine), set);
    machine.cpu.caches = Reading::Known(vec![CpuCache {
        kind: Reading::Known(CacheKind::Unified),
        size_bytes: Reading::Known(1 << 20),
        ..CpuCache::default()
    }]);
    assert_eq!(
        set.in_caches(&machine),
        WorkingSet { low_bytes: 5, high_bytes: 2 << 20, sampled: None }
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics(
        rates in proptest::array::uniform3(any::<f64>()),
        set in (any::<u64>(), any::<u64>()),
        points in proptest::collection::vec((0_u64..1 << 40, any::<f64>(), any::<f64>(), any::<bool>()), 0..8),
    ) {
        let [voluntary, involuntary, cpu] = rates.map(Reading::Known);
        let program = Program {
            voluntary_per_s: voluntary,
            involuntary_per_s: involuntary,
            cpu_share: cpu,
            working_set: Reading::Known(WorkingSet { low_bytes: set.0, high_bytes: set.1, sampled: None }),
        };
        let points: Vec<ProfilePoint> = points.iter().map(|&(array_bytes, low_ns, high_ns, direct)| {
            let total = Cost { low_ns, high_ns };
            let hop_ns = direct.then_some(high_ns);
            ProfilePoint { array_bytes, total, direct: direct.then_some(total), walk: Walk::Chase, hop_ns, ..ProfilePoint::default() }
        }).collect();
        let answer = program_cost(&program, &points);
        if let ProgramCost::Estimated { share, direct_share, .. } = &answer {
            let all = [Some(*share), *direct_share];
            let ends = all.into_iter().flatten().flat_map(|of| [of.low, of.high]);
            prop_assert!(ends.into_iter().all(|end| (0.0..=1.0).contains(&end)), "{answer:?}");
        }
        prop_assert!(!answer.in_words().is_empty());
        prop_assert!(serde_json::to_string(&answer).is_ok());
    }

    /// A wider working set never narrows the answer.
    #[test]
    fn wider_sets_give_wider_shares(a in 64_u64..512, b in 64_u64..512, c in 64_u64..512, d in 64_u64..512) {
        let mut sizes = [a, b, c, d];
        sizes.sort_unstable();
        let [a, b, c, d] = sizes;
        let inner = share(&program_cost(&program(b, c), &profile()));
        let outer = share(&program_cost(&program(a, d), &profile()));
        prop_assert!(outer.0 <= inner.0 && inner.1 <= outer.1);
    }
}

#[test]
fn a_run_of_rings_is_a_profile() {
    use crate::estimate::Speed;
    use crate::record::RingRecord;
    use rundata::case::{Sample, rings};
    use rundata::placement::Placement;
    use rundata::ring::{AccessKind, Work};
    use rundata::run::Run;

    let mut run = Run::parse(include_str!("../../../rundata/tests/fixtures/run-v1.jsonl")).unwrap();
    // Its rings of two are bare: no array, no point.
    assert_eq!(points_of(&RingRecord::from_run(&run), None), []);
    // The same solo and ring again, with work that costs each switch 1,000 ns more.
    let work = Work::new(4096, 8, AccessKind::Rmw).unwrap();
    let cases = run.header.plan.cases.len();
    for original in [0, 1] {
        let mut case = run.header.plan.ring(original).unwrap().clone();
        case.work = Some(work);
        run.header.plan.cases.push(case.into());
        let copies = rings(&run.samples).filter(|sample| sample.case == original).cloned();
        let copies: Vec<Sample> = copies
            .map(|mut sample| {
                sample.case = cases + original;
                sample.elapsed_ns += 1000 * sample.counters.switches();
                rundata::case::Sample::from(sample)
            })
            .collect();
        run.samples.extend(copies);
    }
    let record = RingRecord::from_run(&run);
    let points = points_of(&record, None);
    let [point] = points[..] else { panic!("{points:?}") };
    let of = |case: usize| record.cases[case].ns_per_switch_above_solo.unwrap().interval().unwrap();
    let (total, direct) = (of(cases + 1), of(1));
    assert_eq!((point.array_bytes, point.walk), (4096, Walk::Whole));
    assert_eq!(point.hop_ns, record.cases[cases + 1].ns_per_hop.map(|hop| hop.value));
    assert_eq!(point.total, Cost { low_ns: total.low, high_ns: total.high });
    assert_eq!(point.direct, Some(Cost { low_ns: direct.low, high_ns: direct.high }));
    assert!((total.low - direct.low - 1000.0).abs() < 100.0, "{total:?} {direct:?}");
    // The core's clock is lower by a tenth now; nobody knows how the costs go with it.
    let mut clocked = record.clone();
    for case in &mut clocked.cases {
        case.clock_ghz = Some(4.0);
        case.ns_per_switch_above_solo.iter_mut().for_each(|of| of.speed = Speed::Full);
    }
    let [slower] = points_of(&clocked, Some(3.6))[..] else { panic!("one ring") };
    assert_eq!(slower.total.low_ns, total.low);
    assert!((slower.total.high_ns - total.high / 0.9).abs() < 1e-6, "{slower:?}");
    // They are known to go with it.
    let elasticity = Some(stats::Elasticity { value: 1.0, standard_error: 0.0 });
    clocked.cases.iter_mut().for_each(|case| case.elasticity = elasticity);
    let [slower] = points_of(&clocked, Some(3.6))[..] else { panic!("one ring") };
    assert!((slower.total.low_ns - total.low / 0.9).abs() < 1e-6, "{slower:?}");
    assert!((slower.hop_ns.unwrap() - point.hop_ns.unwrap() / 0.9).abs() < 1e-6, "{slower:?}");
    // What was not at full speed is at no clock.
    let mut contended = clocked.clone();
    for case in &mut contended.cases {
        case.ns_per_switch_above_solo.iter_mut().for_each(|of| of.speed = Speed::NotJudged);
    }
    assert_eq!(points_of(&contended, Some(3.6)), points);
    // Clocks are not read so well that these differ.
    assert_eq!(points_of(&clocked, Some(4.004)), points);
    // Lines at random are walked by programs, too; one line a page is not.
    for (walk, points) in [(Walk::Chase, 1), (Walk::Sparse, 0)] {
        let mut other = run.clone();
        let mut walked = run.header.plan.ring(cases + 1).unwrap().clone();
        walked.work = Some(Work { walk, ..work });
        other.header.plan.cases[cases] = walked.solo().into();
        other.header.plan.cases[cases + 1] = walked.into();
        let found = points_of(&RingRecord::from_run(&other), None);
        assert_eq!(found.len(), points);
        assert!(found.iter().all(|point| point.walk == walk));
    }
    // Across two CPUs it is another cost.
    let mut apart = run.header.plan.ring(cases + 1).unwrap().clone();
    apart.placement = Placement::Pinned { cpus: vec![0, 1], relation: None };
    run.header.plan.cases[cases + 1] = apart.into();
    assert_eq!(points_of(&RingRecord::from_run(&run), None), []);
}

const PAGE: u64 = 4096;
const HUGE: u64 = 2 << 20;
const SIZES: PageSizes = PageSizes { page: PAGE, huge: Some(HUGE) };

fn window(cpu_ns: u64, switches: u64, pages: u64) -> Window {
    let referenced_bytes = pages * PAGE;
    let elapsed_ns = 1_000_000;
    Window { elapsed_ns, cpu_ns, switches, threads: 1, referenced_bytes, huge_bytes: 0 }
}

fn range(windows: &[Window], resident: Option<u64>) -> Option<(u64, u64)> {
    WorkingSet::seen_in(windows, SIZES, resident).map(|set| (set.low_bytes, set.high_bytes))
}

#[test]
fn the_range_is_what_the_windows_leave_open() {
    // 99 switches make 100 stretches: 200 pages, a line of each, are 128 bytes a stretch.
    let windows = [window(5, 99, 200), window(5, 9, 300), window(0, 0, 0)];
    assert_eq!(range(&windows, Some(1 << 30)), Some((128, 1 << 30)));
    assert_eq!(range(&windows, Some(100)), Some((100, 100)));
}

/// Clearing a referenced bit flushes no TLB: 64 pages were touched, and four were seen.
#[test]
fn pages_that_were_seen_are_no_upper_end() {
    let truth = 64 * PAGE;
    let (_, high) = range(&[window(5, 40, 4)], Some(truth + PAGE)).unwrap();
    assert!(high >= truth, "{high}");
    assert_eq!(range(&[window(5, 40, 4)], None), None);
}

#[test]
fn a_huge_page_is_one_line_at_least() {
    let with = |pages: u64, huge: u64| Window { huge_bytes: huge * HUGE, ..window(5, 0, pages) };
    // Ten small pages, and one of two huge ones: which of them is not told.
    let windows = [with(10 + 512, 2)];
    assert_eq!(range(&windows, Some(1 << 30)), Some((64, 1 << 30)));
    assert_eq!(range(&[with(10 + 512, 1)], Some(1 << 30)), Some((11 * 64, 1 << 30)));
    assert_eq!(range(&[with(512, 1)], Some(1 << 30)), Some((64, 1 << 30)));
    let unknown = PageSizes { huge: None, ..SIZES };
    let set = WorkingSet::seen_in(&[with(10 + 512, 1)], unknown, Some(1 << 30)).unwrap();
    assert_eq!(set.low_bytes, 10 * 64);
}

#[test]
fn without_cpu_time_nothing_was_touched_by_it() {
    assert_eq!(range(&[window(0, 0, 9)], Some(1)), None);
    assert_eq!(range(&[], Some(1)), None);
}
