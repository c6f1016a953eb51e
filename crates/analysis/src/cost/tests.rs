use rundata::experiment::Experiment;
use rundata::machine::{CacheKind, CpuCache, CpuModel, DataTlb};
use rundata::placement::Placement;
use rundata::reading::Reading;
use rundata::ring::{AccessKind, Counters, RingCase, RingSample, Walk, Work};

use super::*;
use crate::interim;
use crate::regions::CacheRegion;
use crate::speed::tests::cut;
use crate::summary::summaries;

fn plan(members: &[u32], works: &[Work]) -> Plan {
    let case = |members: u32, work: Option<Work>| RingCase {
        work,
        ..RingCase::of_processes(members, Placement::Same { cpu: 1 })
    };
    let with = |members: &u32| {
        let works = works.iter().map(|work| Some(*work));
        std::iter::once(None).chain(works).map(|work| case(*members, work)).collect::<Vec<_>>()
    };
    Plan { seed: 1, ..Plan::from_cases(Experiment::Cost, members.iter().flat_map(with)) }
        .with_solos()
}

/// Eight rounds of a machine whose switch costs what `cost` says; a hop alone costs 1000 ns and the
/// round's own drift, which the differences must not show, and a switch of the rounds scatters by 1
/// %.
fn samples(plan: &Plan, cost: impl Fn(&RingCase) -> u64) -> Vec<RingSample> {
    let one = |round: u32, index: usize| {
        let case = plan.ring(index).unwrap();
        let switches = if case.members == 1 { 0 } else { 2000 };
        let scatter = 1000 + [0, 7, 3, 9, 5, 1, 8, 2][(round as usize + index) % 8];
        let ns_per_hop = 1000 + 500 * u64::from(round) + 2 * cost(case) * scatter / 1000;
        RingSample {
            case: index,
            round,
            laps: 1000,
            hops: 1000,
            elapsed_ns: 1000
                * if switches == 0 { 1000 + 500 * u64::from(round) } else { ns_per_hop },
            counters: Counters { voluntary: switches, ..Counters::default() },
            ..RingSample::default()
        }
    };
    let rounds = (0..8).flat_map(|round| (0..plan.cases.len()).map(move |case| (round, case)));
    rounds.map(|(round, case)| one(round, case)).collect()
}

fn machine() -> Machine {
    let cache = |level: u32, kib: u64| CpuCache {
        of_cpu: 1,
        level: Reading::Known(level),
        kind: Reading::Known(CacheKind::Unified),
        size_bytes: Reading::Known(kib * 1024),
        line_bytes: Reading::Known(64),
        ..CpuCache::default()
    };
    let mut machine = Machine::default();
    machine.cpu.caches = Reading::Known(vec![cache(1, 32), cache(2, 512), cache(3, 32 * 1024)]);
    let vendor = Reading::Known("AuthenticAMD".to_string());
    machine.cpu.models = Reading::Known(vec![CpuModel { vendor, ..CpuModel::default() }]);
    machine
}

fn cost(plan: &Plan, of: impl Fn(&RingCase) -> u64) -> CostFindings {
    let samples = samples(plan, of);
    let table = Table::from_samples(plan, &samples, []);
    CostFindings::from_cases(plan, &table, &summaries(&table, &[]), &machine())
}

fn kib(case: &RingCase) -> u64 {
    case.work.map_or(0, |work| work.bytes / 1024)
}

fn whole(kib: u64) -> Work {
    Work::new(kib * 1024, 128, AccessKind::Rmw).unwrap()
}

/// 3 us while two arrays fit into 512 KiB, then 100 ns for each KiB beyond.
fn l2(case: &RingCase) -> u64 {
    3000 + 100 * kib(case).saturating_sub(256)
}

#[test]
fn direct_total_and_indirect_are_those_that_went_in() {
    let works: Vec<Work> = [64, 512, 1024].map(whole).to_vec();
    let cost = cost(&plan(&[2], &works), l2);
    assert_eq!((cost.direct.len(), cost.curves.len(), cost.by_members.len()), (1, 1, 0));
    let direct = cost.direct[0].cost_ns.unwrap();
    assert!((direct.value / 3000.0 - 1.0).abs() < 0.01 && direct.resolved, "{direct:?}");
    for (point, (total, indirect)) in
        cost.curves[0].points.iter().zip([(3000, 0), (28_600, 25_600), (79_800, 76_800)])
    {
        let (c2, extra) = (point.total_ns.unwrap(), point.indirect_ns.unwrap());
        assert!((c2.value / f64::from(total) - 1.0).abs() < 0.01, "{c2:?}");
        assert!((extra.value - f64::from(indirect)).abs() < 0.01 * f64::from(total), "{extra:?}");
        assert_eq!(extra.resolved, indirect > 0, "{extra:?}");
        assert_eq!(point.switches_per_hop.unwrap().value, 2.0);
    }
}

#[test]
fn regions_are_found_without_the_caches_and_set_beside_them() {
    let works: Vec<Work> =
        [16, 32, 64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048].map(whole).to_vec();
    let cost = cost(&plan(&[2], &works), l2);
    let curve = &cost.curves[0];
    let regions = curve.outcome.regions().unwrap();
    assert!(regions.extent(CacheRegion::TogetherTooLarge).is_some(), "{}", curve.in_words);
    let found = &regions.breaks.breaks[0];
    assert!((192 * 1024..=384 * 1024).contains(&found.at), "{found:?}");
    let level = curve.beside[0].as_ref().unwrap();
    assert_eq!((&*level.level.name, level.level.size), ("L2", 512 * 1024));
    let (low, high) = curve.outcome.regions().unwrap().second_over_first().unwrap();
    assert!(low < high && high > 50.0, "{low} to {high}");
}

#[test]
fn pages_and_members_have_axes_of_their_own() {
    let page = |pages: u64| Work {
        walk: Walk::Sparse,
        ..Work::new(pages * 4096, 4096, AccessKind::Rmw).unwrap()
    };
    let works: Vec<Work> = [4, 8, 16, 32, 64, 128, 256, 512].map(page).to_vec();
    let tlb = cost(&plan(&[2], &works), |case| if kib(case) > 4 * 64 { 9000 } else { 3000 });
    let breaks = tlb.curves[0].outcome.breaks();
    assert!(tlb.curves[0].outcome.regions().is_none());
    assert_eq!((breaks.smallest, breaks.largest, breaks.breaks.len()), (4, 512, 1));
    assert_eq!((breaks.breaks[0].low, breaks.breaks[0].high), (64, 128));
    assert_eq!(tlb.curves[0].beside[0].as_ref().unwrap().level.name, "lines of L1");

    let sizes: Vec<u32> = (2..=16).collect();
    let many = cost(&plan(&sizes, &[whole(64)]), |case| match case.members {
        ..=6 => 3000,
        _ if case.work.is_some() => 20_000,
        _ => 3000,
    });
    assert_eq!((many.direct.len(), many.curves.len(), many.by_members.len()), (15, 15, 2));
    let [bare, worked] = &many.by_members[..] else { panic!("with and without work") };
    assert!(
        bare.work.is_none() && bare.indirect_breaks.is_none() && bare.breaks.breaks.is_empty(),
        "{}",
        bare.in_words
    );
    assert_eq!((worked.breaks.breaks[0].low, worked.breaks.breaks[0].high), (6, 7));
    assert_eq!(worked.beside[0].as_ref().unwrap().level.size, 6);
    // The cost jumps there, and so does what the working set adds.
    let jump = worked.jump.unwrap();
    assert_eq!((jump.from, jump.to), (6, 7));
    assert!((jump.factor.value / (20.0 / 3.0) - 1.0).abs() < 0.02, "{jump:?}");
    assert!(
        worked.indirect_jump.is_none(),
        "before it the working set adds nothing that is resolved"
    );
    assert_eq!(bare.jump, None);
}

/// A line in each of 256 pages, on a machine whose kernel keeps six address spaces.
fn six_spaces(case: &RingCase) -> u64 {
    let added = |members: u32| match members {
        2 => 19,
        3 => 70,
        4 => 98,
        _ => 1110,
    };
    650 + case.work.map_or(0, |_| added(case.members))
}

fn pages(count: u64) -> Work {
    Work { walk: Walk::Sparse, ..Work::new(count * 4096, 4096, AccessKind::Read).unwrap() }
}

#[test]
fn members_with_a_fixed_working_set_have_their_jump_and_candidates() {
    let sizes: Vec<u32> = (2..=10).collect();
    let found = cost(&plan(&sizes, &[pages(256)]), six_spaces);
    assert_eq!((found.curves.len(), found.by_members.len()), (9, 2));
    assert!(found.curves.iter().all(|curve| curve.jump.is_none()), "two costs say it themselves");
    let worked = &found.by_members[1];
    let (total, added) = (worked.jump.unwrap(), worked.indirect_jump.unwrap());
    assert_eq!((total.from, total.to, added.from, added.to), (4, 5, 4, 5));
    assert!((added.factor.value - 1110.0 / 98.0).abs() < 1.5, "{added:?}");
    assert!((total.factor.value - 1760.0 / 748.0).abs() < 0.05, "{total:?}");
    let names: Vec<&str> = worked.candidates.iter().map(|of| of.name.as_str()).collect();
    // 256 lines of 64 B of four members are 64 KiB, of five 80: L1 was outgrown before.
    assert_eq!(
        names,
        ["the 6 address spaces that Linux keeps in a CPU's TLB, shared with other tasks"]
    );
    let course = worked.indirect_breaks.as_ref().unwrap();
    assert_eq!((course.breaks[0].low, course.breaks[0].high), (4, 5));
}

#[test]
fn arrays_have_their_jump_and_their_peak_from_none_at_all_on() {
    let chase = |kib: u64| Work {
        walk: Walk::Chase,
        ..Work::new(kib * 1024, 64, AccessKind::Rmw).unwrap()
    };
    let works = [32, 256, 1024].map(chase).to_vec();
    let found = cost(&plan(&[2], &works), |case| match kib(case) {
        32 => 2430,
        256 => 1050,
        1024 => 181_000,
        _ => 940,
    });
    let curve = &found.curves[0];
    let (jump, peak) = (curve.jump.unwrap(), curve.peak.unwrap());
    assert_eq!((jump.from, jump.to), (256 * 1024, 1024 * 1024));
    assert!((jump.factor.value / (181.0 / 1.05) - 1.0).abs() < 0.02, "{jump:?}");
    assert_eq!((peak.at, peak.down_at), (32 * 1024, 256 * 1024));
    let names: Vec<&str> = curve.candidates.iter().map(|of| of.name.as_str()).collect();
    assert_eq!(names, ["L2 512 KiB"]);
    // Without the last array the jump is to the first, where L1 holds one array and no two.
    let found = cost(&plan(&[2], &works[..2]), |case| if kib(case) == 32 { 2430 } else { 940 });
    let curve = &found.curves[0];
    assert_eq!(curve.jump.map(|jump| (jump.from, jump.to)), Some((0, 32 * 1024)));
    assert_eq!(curve.candidates[0].name, "L1 32 KiB");
}

#[test]
fn strides_are_an_axis_of_their_own() {
    let strides = [8, 64, 128, 256, 512, 1024];
    let works: Vec<Work> =
        strides.map(|stride| Work::new(64 * 1024, stride, AccessKind::Rmw).unwrap()).to_vec();
    let found = cost(&plan(&[2], &works), |case| match case.work {
        Some(work) if work.stride_bytes >= 256 => 9000,
        _ => 3000,
    });
    let [by_stride] = &found.by_stride[..] else { panic!("{:?}", found.by_stride) };
    assert_eq!(by_stride.jump.map(|jump| (jump.from, jump.to)), Some((128, 256)));
    assert_eq!((by_stride.breaks.breaks[0].low, by_stride.breaks.breaks[0].high), (128, 256));
    assert!(by_stride.candidates.is_empty(), "of no stride the machine has so many");
}

#[test]
fn a_tlb_that_the_pages_of_all_members_outgrow_is_a_candidate() {
    let [small, huge] = [4 << 10, 2 << 20];
    let tlb = |level, entries, page_bytes| DataTlb { level, entries, page_bytes };
    let tlbs = [tlb(1, 72, small), tlb(2, 3072, small), tlb(1, 72, huge)];
    let mut machine = Machine::default();
    machine.cpu.tlbs = Reading::Known(tlbs.to_vec());
    let plan = plan(&[2], &[]);
    let levels = MachineLevels::from_machine(&machine, &plan);
    let names = |axis: &SizeAxis, (from, to): (u64, u64), work: Work| {
        let cost = |ns: f64| estimate(ns, Some(1.0), Speed::Full).quote_cost().unwrap();
        let jump = CostJump::between(&(from, cost(100.0)), &(to, cost(900.0)));
        let found = levels.candidates(&jump, axis, 2, Some(work));
        found.into_iter().map(|of| of.name).collect::<Vec<_>>()
    };
    let (first, second) = ("L1 TLB of 72 pages of 4 KiB", "L2 TLB of 3072 pages of 4 KiB");
    assert_eq!(names(&SizeAxis::PAGES, (16, 64), pages(1)), [first]);
    assert_eq!(names(&SizeAxis::PAGES, (128, 256), pages(1)), [""; 0]);
    assert_eq!(names(&SizeAxis::PAGES, (512, 1024), pages(1)), [second]);
    assert_eq!(names(&SizeAxis::MEMBERS, (4, 8), pages(256)), [second]);
    // All pages of an array are touched, huge ones by themselves.
    let array = Work::new(1 << 20, 64, AccessKind::Read).unwrap();
    assert_eq!(names(&SizeAxis::ARRAY, (2 << 20, 8 << 20), array), [second]);
    let large = Work { huge_pages: true, ..array };
    assert_eq!(names(&SizeAxis::ARRAY, (2 << 20, 8 << 20), large), [""; 0]);
    assert_eq!(
        names(&SizeAxis::ARRAY, (64 << 20, 128 << 20), large),
        ["L1 TLB of 72 pages of 2 MiB"]
    );
}

#[test]
fn before_linux_6_6_a_scheduler_shortens_the_turns_of_few_tasks_only() {
    let names = |release: &str, link: &str, (from, to): (u64, u64)| {
        let mut machine = Machine::default();
        machine.kernel.release = Reading::Known(release.to_string());
        let mut plan = plan(&[2], &[]);
        for case in &mut plan.cases {
            let rundata::case::Case::Ring(case) = case else { continue };
            case.link = link.into();
        }
        let cost = |ns: f64| estimate(ns, Some(1.0), Speed::Full).quote_cost().unwrap();
        let jump = CostJump::between(&(from, cost(100.0)), &(to, cost(900.0)));
        let found = MachineLevels::from_machine(&machine, &plan).candidates(
            &jump,
            &SizeAxis::MEMBERS,
            2,
            None,
        );
        found.into_iter().map(|of| of.name).collect::<Vec<_>>()
    };
    let eight = "the 8 tasks that CFS gives a turn within its latency";
    assert_eq!(names("6.1.0-18-amd64", "yield", (8, 9)), [eight]);
    assert_eq!(names("5.10", "yield", (4, 16)), [eight]);
    assert_eq!(names("6.1.0", "yield", (9, 16)), [""; 0]);
    assert_eq!(names("6.1.0", "yield", (4, 8)), [""; 0]);
    assert_eq!(names("6.6.1", "yield", (8, 9)), [""; 0]);
    assert_eq!(names("6.1.0", "pipe", (8, 9)), [""; 0]);
    assert_eq!(names("unknown", "yield", (8, 9)), [""; 0]);
}

/// c2 and c1 of all rounds, and the differences of those rounds that both were measured in.
fn estimate(value: f64, half: Option<f64>, speed: Speed) -> Estimate {
    Estimate {
        value,
        standard_error: half.map(|half| half / 2.0),
        low: half.map(|half| value - half),
        high: half.map(|half| value + half),
        confidence: 0.95,
        resolved: half.is_some_and(|half| value.abs() > half),
        rounds: 12,
        speed,
        at_most: None,
    }
}

#[test]
fn the_indirect_cost_is_what_is_left_of_the_total() {
    use Speed::{Contended, Full, NotJudged};
    let of = |ns: f64, half: f64| estimate(ns, Some(half), NotJudged);
    // A switch of 419 us, of it 426 us by the rounds that had both: 418, with an interval over
    // both.
    let found = indirect_cost(of(419e3, 5e3), of(1e3, 50.0), of(426e3, 4e3)).unwrap();
    assert_eq!((found.value, found.low, found.high), (418e3, Some(414e3), Some(430e3)));
    assert!(found.quote().is_ok() && found.value < 419e3);
    // Not known better than what it is made of, and none of a direct cost that may be below zero.
    let slow = estimate(419e3, None, Contended);
    let found = indirect_cost(slow, estimate(1e3, Some(50.0), Full), of(426e3, 4e3)).unwrap();
    assert_eq!((found.value, found.speed), (418e3, Contended));
    assert_eq!(found.quote(), Err(NotQuotable::NotAtFullSpeed));
    assert_eq!(indirect_cost(of(419e3, 5e3), of(20.0, 50.0), of(426e3, 4e3)), None);
    assert_eq!(indirect_cost(slow, estimate(-7e3, None, Contended), slow), None);
}

proptest::proptest! {
    #[test]
    fn an_indirect_cost_is_never_above_its_total(
        total in -1e6..1e6_f64, direct in -1e4..1e4_f64, paired in -1e6..1e6_f64,
        halves in proptest::array::uniform3(proptest::option::of(0.0..1e5_f64)),
        speeds in proptest::array::uniform3(0_usize..4),
    ) {
        let all = [Speed::Full, Speed::Contended, Speed::NotAlone, Speed::NotJudged];
        let of = |value, which: usize| estimate(value, halves[which], all[speeds[which]]);
        let (total, direct) = (of(total, 0), of(direct, 1));
        if let Some(found) = indirect_cost(total, direct, of(paired, 2)) {
            proptest::prop_assert_eq!(found.value, total.value - direct.value);
            proptest::prop_assert!(found.value < total.value);
            let both = total.quote_cost().is_ok() && direct.quote_cost().is_ok();
            proptest::prop_assert!(found.quote().is_err() || total.interval().is_some());
            proptest::prop_assert!(found.quote_cost().is_err() || direct.quote_cost().is_ok(), "{both}");
        }
    }
}

#[test]
fn strides_operations_and_huge_pages_are_not_mixed() {
    let other = |work: Work| {
        [work, Work { op: AccessKind::Read, ..work }, Work { huge_pages: true, ..work }]
    };
    let works: Vec<Work> = [64, 128].map(whole).into_iter().flat_map(other).collect();
    let cost = cost(&plan(&[2], &works), l2);
    assert_eq!(cost.curves.len(), 3);
    assert!(cost.curves.iter().all(|curve| curve.points.len() == 2));
}

#[test]
fn without_the_ring_without_work_there_is_no_indirect_cost() {
    let mut plan = plan(&[2], &[whole(64)]);
    plan.cases.retain(|case| case.ring().is_some_and(|case| case.work.is_some()));
    let cost = cost(&plan, l2);
    assert!(cost.direct.is_empty() && cost.curves[0].points[0].indirect_ns.is_none());
    assert!(cost.curves[0].points[0].total_ns.is_some());
}

#[test]
fn a_round_of_the_wider_half_leaves_out_what_cannot_be_judged() {
    let works: Vec<Work> = [64, 128, 4096].map(whole).to_vec();
    let mut plan = plan(&[2], &works);
    plan.batching.ring.triples = Some(4);
    let is_left_out = |case: usize| plan.ring(case).unwrap().work == Some(works[2]);
    let cut = |sample: RingSample| {
        if !is_left_out(sample.case) { cut(sample, 10, |_| true) } else { sample }
    };
    let samples: Vec<RingSample> = samples(&plan, l2).into_iter().map(cut).collect();
    let focus = |samples: &[RingSample], round| {
        let samples: Vec<_> = samples.iter().cloned().map(rundata::case::Sample::from).collect();
        interim::focused_cases(&plan, &samples, round)
    };
    let wider = focus(&samples, 9).unwrap();
    assert!(!wider.is_empty() && !wider.iter().any(|case| is_left_out(*case)), "{wider:?}");
    // Every fourth round is for all; where nothing can be judged, the others are for the wider
    // half.
    assert_eq!(focus(&samples, 12), None);
    let unjudged: Vec<RingSample> =
        samples.iter().map(|one| RingSample { slices: None, ..one.clone() }).collect();
    assert_eq!(focus(&unjudged, 9).unwrap().len(), plan.cases.len().div_ceil(2));
}
