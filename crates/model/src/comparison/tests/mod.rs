//! Comparisons of runs.

use super::*;
use crate::case::{self, Sample};
use crate::case::{Case, Placement, Policy};
use crate::reading::Reading;
use crate::ring;
use crate::run::{Arm, Failure, Run, Session};
use crate::speed::cut;
use crate::subject::{Quantity, published};

mod costs;

const V1: &str = include_str!("../../../tests/fixtures/run-v1.jsonl");

fn terms() -> Terms {
    Terms { limit: LIMIT, confidence: 0.95, wanted: Wanted::Switch }
}

fn subject(change: impl Fn(&mut Run)) -> Subject {
    let mut run = Run::parse(V1).unwrap();
    change(&mut run);
    Subject::of_run(&run)
}

/// The same with twice the rounds, in slices that all ran at full speed.
fn full_speed(change: impl Fn(&mut Run)) -> Subject {
    subject(|run| {
        let rings: Vec<ring::Sample> = case::rings(&run.samples).cloned().collect();
        let again =
            |sample: &ring::Sample| ring::Sample { round: sample.round + 6, ..sample.clone() };
        let more: Vec<ring::Sample> = rings.iter().map(again).collect();
        let slices =
            |sample: ring::Sample| cut(sample.clone(), sample.laps.min(10), |_| true).into();
        run.samples = rings.into_iter().chain(more).map(slices).collect();
        change(run);
    })
}

fn set_policy(case: &mut Case, policy: Policy) {
    if let Case::Ring(ring) = case {
        ring.policy = policy;
    }
}

/// Every time of a run times a factor.
fn slower(run: &mut Run, factor: f64) {
    let times = |ns: u64| (ns as f64 * factor) as u64;
    for sample in run.samples.iter_mut().filter_map(Sample::ring_mut) {
        sample.elapsed_ns = times(sample.elapsed_ns);
        let slices = sample.slices.iter_mut().flat_map(|slices| &mut slices.elapsed_ns);
        slices.for_each(|ns| *ns = times(*ns));
    }
}

#[test]
fn a_run_is_not_different_from_itself_and_nothing_is_unfair() {
    let (base, new) = (subject(|_| {}), subject(|_| {}));
    let found = Comparison::of(&base, &new, terms());
    let of: Vec<Quantity> = found.changes.iter().map(|change| change.of).collect();
    assert_eq!(
        of,
        [Quantity::NsPerHop, Quantity::NsPerSwitchAboveSolo, Quantity::NsPerSwitchAboveSolo]
    );
    for change in &found.changes {
        assert_eq!(change.ratio.value, Some(1.0));
        assert!(!matches!(change.answer, Answer::Changed { .. }), "{change:?}");
    }
    assert!((found.confidence_each - (1.0 - 0.05 / 3.0)).abs() < 1e-12);
    assert_eq!((&found.conditions.bearing[..], found.unpaired.len()), (&[][..], 0));
    assert!(!found.is_worse_beyond_limit());
    assert_eq!(Comparison::of(&base, &new, terms()), found, "the same runs, the same answer");
}

#[test]
fn a_slower_run_is_worse_and_a_faster_one_is_not() {
    let slower = |times: f64| full_speed(move |run| slower(run, times));
    let found = Comparison::of(&slower(1.0), &slower(3.0), terms());
    assert!(found.is_worse_beyond_limit());
    assert!(found.changes.iter().all(Change::is_worse_beyond_limit), "{}", found.in_words);
    assert_eq!(found.in_words, "of 3 cases: 3 slower (3 beyond 3 %)");
    let back = Comparison::of(&slower(3.0), &slower(1.0), terms());
    assert!(!back.is_worse_beyond_limit());
    assert_eq!(back.in_words, "of 3 cases: 3 faster");
}

#[test]
fn a_session_stops_by_widths_in_proportion_to_the_ratio() {
    let times = |factor: f64| {
        let slower = full_speed(move |run| slower(run, factor));
        Comparison::of(&full_speed(|_| {}), &slower, terms()).worst_precision().unwrap()
    };
    let (same, slower) = (times(1.0), times(20.0));
    assert!((same / slower - 1.0).abs() < 0.2, "{same} {slower}");
}

fn fail(run: &mut Run, case: usize, from_round: u32) {
    run.samples.retain(|sample| sample.case() != case || sample.round() < from_round);
    run.failures.push(Failure { case, round: from_round, message: "out of it".into() });
}

/// Neither does what cannot be measured keep the others going, nor does a gate pass it over.
#[test]
fn what_failed_stops_nobody_and_is_lost_to_the_new_side_only() {
    let whole = || full_speed(|_| {});
    let expected = Comparison::of(&whole(), &whole(), terms()).worst_precision();
    for from_round in [0, 3] {
        let failed = || full_speed(|run| fail(run, 2, from_round));
        let found = Comparison::of(&whole(), &failed(), terms());
        let [(title, why)] = found.lost()[..] else { panic!("{:?}", found.lost()) };
        assert_eq!(title, "ring of 4");
        assert!(why.contains("out of it"), "{why}");
        assert!(expected.is_some() && found.worst_precision().is_some(), "{from_round}");
        assert_eq!(Comparison::of(&failed(), &whole(), terms()).lost(), []);
        assert_eq!(
            Comparison::of(&failed(), &failed(), terms()).lost().len(),
            usize::from(from_round > 0)
        );
    }
    // A failure that left an interval has lost nothing.
    let once = full_speed(|run| fail(run, 2, 11));
    assert_eq!(Comparison::of(&whole(), &once, terms()).lost(), []);
    // What was never planned was not lost, but left out by whoever planned it.
    let smaller = full_speed(|run| run.header.plan.cases.truncate(2));
    assert_eq!(Comparison::of(&whole(), &smaller, terms()).lost(), []);
}

#[test]
fn cases_that_differ_are_listed_and_a_cpu_of_another_number_is_told() {
    let other = subject(|run| {
        let cases = &mut run.header.plan.cases;
        for (number, case) in cases.iter_mut().enumerate() {
            let Case::Ring(ring) = case else { continue };
            ring.members = if number == 2 { 16 } else { ring.members };
            ring.placement = Placement::Same { cpu: 7 };
        }
    });
    let found = Comparison::of(&subject(|_| {}), &other, terms());
    let left: Vec<(bool, &str)> =
        found.unpaired.iter().map(|left| (left.in_base, &*left.title)).collect();
    assert_eq!(left, [(false, "ring of 16"), (true, "ring of 4")]);
    assert_eq!(found.changes.len(), 2);
    let warned = found.conditions.warnings.iter().any(|w| w.starts_with("measured on another CPU"));
    assert!(warned, "{:?}", found.conditions.warnings);
}

#[test]
fn what_differs_between_machines_is_named_and_not_fair() {
    let other = subject(|run| {
        run.header.machine.kernel.release = Reading::Known("2.4.20".to_string());
        run.header.machine.virtualization.hypervisor_type = Reading::Known("another".to_string());
        run.header.build.profile = "debug".to_string();
    });
    let found = Comparison::of(&subject(|_| {}), &other, terms()).conditions;
    let fields: Vec<&str> = found.bearing.iter().map(|difference| &*difference.field).collect();
    assert_eq!(fields, ["kernel.release", "virtualization.hypervisor_type"]);
    let has = |word: &str| found.warnings.iter().any(|warning| warning.contains(word));
    assert!(has("kernel, virtualization differ together"), "{:?}", found.warnings);
    assert_eq!(found.program[0].field, "build.profile");
}

#[test]
fn a_published_machine_is_compared_by_hops_and_has_no_interval_of_its_own() {
    let all = published().unwrap();
    let sun = all.iter().find(|machine| machine.name == "sun-4/280").unwrap();
    let found = Comparison::of(&sun.subject(), &subject(|_| {}), terms());
    let sizes: Vec<&str> = found.changes.iter().map(|change| &*change.title).collect();
    assert_eq!(sizes, ["ring of 2", "ring of 4"]);
    for change in &found.changes {
        assert_eq!(
            (change.of, change.base_rounds, change.new_rounds),
            (Quantity::NsPerHop, None, Some(6))
        );
        assert!(change.ratio.value < Some(0.1) && change.ratio.low.is_some(), "{change:?}");
    }
    assert_eq!(found.changes[0].base_ns, 647_000.0);
    assert!(found.conditions.warnings[0].contains("the new one's alone"));
    let both = Comparison::of(&sun.subject(), &sun.subject(), terms());
    let none = Answer::CannotTell { reason: Reason::NoInterval, more: None };
    assert!(both.changes.iter().all(|change| change.answer == none));
}

#[test]
fn halves_of_a_session_are_paired_in_spite_of_their_policy() {
    let half = |arm: Arm, policy: Policy| {
        subject(move |run| {
            let (id, other) = ("s".to_string(), "other".to_string());
            run.header.session = Some(Session { id, arm, prefix: Vec::new(), other });
            run.header.plan.cases.iter_mut().for_each(|case| set_policy(case, policy));
        })
    };
    let (a, b) = (half(Arm::A, Policy::Other), half(Arm::B, Policy::Fifo));
    let found = Comparison::of(&a, &b, terms());
    assert_eq!((found.paired, found.changes.len(), found.unpaired.len()), (true, 3, 0));
    assert!(!Comparison::of(&a, &half(Arm::A, Policy::Other), terms()).paired);
    let apart = Comparison::of(
        &a,
        &subject(|run| set_policy(&mut run.header.plan.cases[0], Policy::Fifo)),
        terms(),
    );
    assert_eq!((apart.paired, apart.changes.len()), (false, 2));
}

/// The same work in more time because the clock was slower: the comparison says so beside its answer.
#[test]
fn another_clock_is_told() {
    let at = |factor: f64| {
        full_speed(move |run| {
            run.header.build.target = "x86_64-unknown-linux-gnu".to_string();
            for slices in
                run.samples.iter_mut().filter_map(|sample| sample.ring_mut()?.slices.as_mut())
            {
                let quanta = slices.latency_ns.iter_mut().chain(&mut slices.throughput_ns);
                quanta.for_each(|ns| *ns = (f64::from(*ns) * factor) as u32);
            }
        })
    };
    let warned = |factor: f64| {
        let found = Comparison::of(&at(1.0), &at(factor), terms());
        found.conditions.warnings.into_iter().find(|warning| warning.contains("clock"))
    };
    assert_eq!(warned(1.005), None);
    let slower = warned(1.05).expect("a warning");
    assert!(
        slower.starts_with("the CPU's clock was another: 3.69 and 3.51 GHz (-4.8 %)"),
        "{slower}"
    );
}
