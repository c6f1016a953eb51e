//! The sentence that a summary begins with, on figures that are known.

use analysis::cost::{CostCurve, CostFindings, CostPoint, CurveReading};
use analysis::curve::TurnKind;
use analysis::estimate::{Estimate, Speed};
use analysis::jump::{CostJump, CostRatio};
use analysis::noise::{NoiseLevel, NoiseVerdict};
use analysis::record::RingRecord;
use analysis::regions::{SizeAxis, breaks};
use analysis::scaling::Knee;
use analysis::summary_line::in_words;
use rundata::ring::{AccessKind, Policy, Walk, Work};
use rundata::run::Run;

const V1: &str = include_str!("../../../rundata/tests/fixtures/run-v1.jsonl");

fn estimate(value: f64, ends: Option<(f64, f64)>) -> Estimate {
    let (low, high) = (ends.map(|ends| ends.0), ends.map(|ends| ends.1));
    let resolved = ends.is_some_and(|(low, high)| low > 0.0 || high < 0.0);
    Estimate {
        value,
        standard_error: None,
        low,
        high,
        confidence: 0.95,
        resolved,
        rounds: 6,
        speed: Default::default(),
        at_most: None,
    }
}

/// A ring of two that costs so much a switch.
fn rings(cost: Estimate) -> RingRecord {
    let mut record = RingRecord::from_run(&Run::parse(V1).expect("the fixture"));
    record.cases[1].ns_per_switch_above_solo = Some(cost);
    record
}

fn verdict(level: NoiseLevel) -> NoiseVerdict {
    NoiseVerdict {
        shared_core: None,
        halted: None,
        level,
        clock_range: None,
        clean_share: None,
        not_alone_share: None,
        round_spread: None,
        disturbed_share: 0.0,
        reasons: Vec::new(),
    }
}

#[test]
fn a_cost_comes_with_its_interval_or_with_why_there_is_none() {
    let says = |cost| in_words(Some(&rings(cost)), None, &[]);
    let known = says(estimate(1900.0, Some((1800.0, 2000.0))));
    assert!(known.starts_with("A switch costs 1.90 us (1.80 to 2.00) here"), "{known}");
    let few = says(estimate(1900.0, None));
    assert!(few.starts_with("A switch costs ~1.90 us (6 rounds) here"), "{few}");
    let open = says(estimate(20.0, Some((-30.0, 70.0))));
    assert!(open.contains("here with 4 members"), "the larger ring is known: {open}");
    assert!(in_words(None, None, &[]).contains("was not measured"));
    let below = says(estimate(-50.0, Some((-70.0, -30.0))));
    assert!(below.contains("here with 4 members"), "nothing costs less: {below}");
}

#[test]
fn knees_are_told_where_they_lie_and_where_there_is_none() {
    let mut record = rings(estimate(1900.0, None));
    let cannot = in_words(Some(&record), None, &[]);
    assert!(!cannot.contains("knee"), "two sizes tell nothing of knees: {cannot}");
    let knee = |low_members, high_members| Knee {
        kind: TurnKind::Step,
        low_members,
        high_members,
        factor: None,
        factor_low: None,
        factor_high: None,
        at_members: f64::from(high_members),
        sizes_after: 3,
    };
    record.found.scaling[0].law.knees = vec![knee(6, 7), knee(16, 32)];
    let two = in_words(Some(&record), None, &[]);
    assert!(
        two.contains("; a knee at 7 processes and a knee between 16 and 32 processes"),
        "{two}"
    );
}

#[test]
fn of_working_sets_the_chase_behind_its_largest_jump_is_told() {
    let curve = |walk, costs: &[(u64, f64)]| {
        let point = |&(array_bytes, ns): &(u64, f64)| CostPoint {
            case: 0,
            array_bytes,
            total_ns: Some(estimate(ns, Some((0.9 * ns, 1.1 * ns)))),
            indirect_ns: None,
            switches_per_hop: None,
        };
        let work =
            Work { bytes: 1024, stride_bytes: 64, op: AccessKind::Read, walk, huge_pages: false };
        let outcome = CurveReading::Breaks(breaks(SizeAxis::ARRAY, &[]));
        let points = costs.iter().map(point).collect();
        let (beside, in_words, candidates) = (Vec::new(), String::new(), Vec::new());
        let (jump, peak) = (None, None);
        CostCurve { members: 2, work, points, outcome, beside, in_words, jump, peak, candidates }
    };
    let known = |ns: f64| estimate(ns, Some((0.9 * ns, 1.1 * ns)));
    let mut record = rings(known(1900.0));
    let chase = curve(Walk::Chase, &[(64 << 10, 5000.0), (300 << 10, 12_000.0), (1 << 20, 9e5)]);
    let whole = curve(Walk::Whole, &[(256 << 10, 4000.0)]);
    record.found.cost = Some(CostFindings {
        direct: Vec::new(),
        curves: vec![whole, chase],
        by_members: Vec::new(),
        by_stride: Vec::new(),
    });
    let says = in_words(None, Some(&record), &[]);
    assert!(says.contains(" with 1 MiB of working set"), "the largest, without a jump: {says}");
    let factor = CostRatio { value: 2.4, low: 2.3, high: 2.5 };
    let (from, to, from_ns, to_ns) = (64 << 10, 300 << 10, 5000.0, 12_000.0);
    let cost = record.found.cost.as_mut().unwrap();
    cost.curves[1].jump = Some(CostJump { from, to, from_ns, to_ns, factor });
    let says = in_words(None, Some(&record), &[]);
    assert!(says.contains("; 12.0 us (10.8 to 13.2) with 300 KiB of working set"), "{says}");
    assert!(says.starts_with("A switch costs 1.90 us ("), "its own ring of two: {says}");
    let mut ring = rings(known(2500.0));
    let beside = in_words(Some(&ring), Some(&record), &[]);
    assert!(beside.contains("of working set (1.90 us without)"), "{beside}");
    ring.cases[1].case.policy = Policy::Fifo;
    let policies = in_words(Some(&ring), Some(&record), &[]);
    assert!(policies.contains("of working set (policy other, 1.90 us without)"), "{policies}");
    // As an interrupted run had it: "about -184 ns with 256 KiB of working set".
    let points = &mut record.found.cost.as_mut().expect("curves").curves[1].points;
    points[1].total_ns = Some(Estimate { rounds: 1, ..estimate(-184.0, None) });
    let few = in_words(Some(&ring), Some(&record), &[]);
    assert!(!few.contains("1 round only") && !few.contains("-184"), "{few}");
    let points = &mut record.found.cost.as_mut().expect("curves").curves[1].points;
    points[1].total_ns = Some(estimate(1200.0, Some((-300.0, 2810.0))));
    let open = in_words(Some(&ring), Some(&record), &[]);
    let words = "; with 300 KiB of working set (policy other, 1.90 us without): not resolved: ";
    assert!(open.contains(words), "{open}");
}

#[test]
fn the_worst_verdict_on_the_machine_stands() {
    let (quiet, unusable) = (verdict(NoiseLevel::Quiet), verdict(NoiseLevel::Unusable));
    let says = |all: &[(&str, &NoiseVerdict)]| in_words(None, None, all);
    assert!(says(&[("ring", &quiet)]).ends_with("; the machine was quiet"));
    assert!(says(&[("ring", &quiet), ("cost", &unusable)]).ends_with("the machine was very noisy"));
    assert!(!says(&[]).contains("machine"), "nobody has judged it");
    let unknown = verdict(NoiseLevel::Unknown);
    let some = says(&[("ring", &unknown), ("clock", &quiet)]);
    assert!(some.ends_with("; too few rounds to tell whether the machine was quiet"), "{some}");
}

#[test]
fn under_another_policy_the_normal_one_is_told_beside() {
    let shared = Estimate { speed: Speed::Contended, ..estimate(2030.0, Some((1750.0, 2270.0))) };
    let mut fifo = rings(estimate(1670.0, Some((1650.0, 1690.0))));
    fifo.cases[1].case.policy = Policy::Fifo;
    let says = in_words(Some(&rings(shared)), Some(&fifo), &[]);
    let words = "A switch costs 1.67 us (1.65 to 1.69) here under fifo; with the normal policy \
                 ~2.03 us (1.75 to 2.27, core shared)";
    assert!(says.starts_with(words), "{says}");
    // The figure of record is that of the normal policy.
    let says = in_words(Some(&rings(estimate(1460.0, Some((1450.0, 1470.0))))), Some(&fifo), &[]);
    assert!(says.starts_with("A switch costs 1.46 us (1.45 to 1.47) here"), "{says}");
    assert!(!says.contains("fifo;"), "{says}");
}
