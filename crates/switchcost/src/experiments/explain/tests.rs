//! Answers and charts of a made-up run: a hop alone takes 1,000 ns, a call 100, and a switch what the
//! rings say.

use std::collections::BTreeMap;

use analysis::record::ExplainRecord;
use charts::Role;
use rundata::experiment::Experiment;
use rundata::notice::Notice;
use rundata::ring::{Burden, MemberKind, Policy, RingCase};
use rundata::run::Run;
use rundata::trial::loops::{EMPTY_BATCH_TICKS, GETUID};
use rundata::trial::overhead::BATCH_TICKS;
use rundata::trial::{self, Trial};

use super::answer::headline;
use crate::registry::Record;
use crate::report::figures::tests::{case, figure, figures, near, run, series};
use crate::report::terminal::View;

fn ring(link: &str, kind: MemberKind) -> RingCase {
    RingCase { link: link.to_string(), kind, ..case(2, None) }
}

/// Parts of 200, 800, 200, 100 and 400 ns, and 170 that they leave; a filter adds 60.
fn made() -> Run {
    let filtered = RingCase { burden: Some(Burden::Seccomp), ..case(2, None) };
    let cases = vec![
        case(2, None),
        ring("yield", MemberKind::Thread),
        ring("yield", MemberKind::Process),
        ring("eventfd", MemberKind::Thread),
        filtered,
    ];
    let mut run = run(Experiment::Explain, cases, |of| match (&*of.link, of.kind, of.burden) {
        ("pipe", _, None) => 870,
        ("pipe", _, Some(_)) => 930,
        ("yield", MemberKind::Thread, _) => 300,
        ("yield", MemberKind::Process, _) => 400,
        _ => 600,
    });
    let number = run.header.plan.cases.len();
    let call = Trial::Loop { call: GETUID.to_string() };
    run.header
        .plan
        .cases
        .push(trial::TrialCase { trial: call, cpu: 1, policy: Policy::Other }.into());
    let batch = |ticks: i64| [ticks].into_iter().collect();
    run.samples.extend((0..8).map(|round| {
        let tallies = BTreeMap::from([
            (BATCH_TICKS.to_string(), batch(21_000)),
            (EMPTY_BATCH_TICKS.to_string(), batch(1_000)),
        ]);
        rundata::case::Sample::Trial(trial::TrialSample {
            case: number,
            round,
            elapsed_ns: 10_000,
            elapsed_ticks: Some(20_000),
            gaps: Vec::new(),
            sliced: Vec::new(),
            tallies,
            counts: BTreeMap::new(),
            steal_ns: None,
        })
    }));
    run
}

#[test]
fn the_first_line_has_the_whole_its_parts_by_size_and_the_rest() {
    let words = headline(&ExplainRecord::from_run(&made()));
    assert!(words.starts_with("A switch costs 1.87"), "{words}");
    let parts = words.split(", its system calls included: ").nth(1).unwrap_or_default();
    let names = ["pipe", "sleep/wake-up", "scheduler", "two system calls", "address space"];
    let places: Vec<Option<usize>> = names.iter().map(|name| parts.find(name)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{words}");
    assert!(parts.starts_with("800 ns pipe, "), "{words}");
    assert!(words.contains(" not explained; two processes by pipe, CPU 1."), "{words}");
}

#[test]
fn a_run_under_fifo_says_so_at_its_figure_and_in_its_heading() {
    let mut run = made();
    for ring in run.header.plan.cases.iter_mut().filter_map(rundata::case::Case::ring_mut) {
        ring.policy = Policy::Fifo;
    }
    let record = ExplainRecord::from_run(&run);
    let words = headline(&record);
    assert!(words.contains(") under fifo, its system calls included: 800 ns pipe"), "{words}");
    let text = super::table::text(&record, View::default());
    assert_eq!(text.heading, ", on CPU 1 under fifo");
    let result = Record::from_run(&run).result().expect("a whole").text;
    assert!(result.ends_with(" a switch under fifo, all included"), "{result}");
}

#[test]
fn a_run_that_did_not_end_adds_nothing_up() {
    let mut run = made();
    run.end = None;
    let record = ExplainRecord::from_run(&run);
    let words = headline(&record);
    assert!(!words.contains(" ns pipe") && !words.contains("explained"), "{words}");
    let text = Record::from_run(&run).text(&run, None, View::ALL);
    assert!(
        !text.to_string().contains("not explained")
            && !text.to_string().lines().any(|of| of.starts_with("sum"))
    );
    assert!(figures(&run).iter().all(|of| of.id != "explain"));
}

#[test]
fn what_is_not_granted_is_named_with_what_it_needs() {
    let mut run = made();
    run.header.notices =
        vec![Notice::part_not_measured("ibpb", "ibpb: prctl: ENXIO: spectre_v2_user=prctl")];
    let text = |view| Record::from_run(&run).text(&run, None, view);
    assert!(
        text(View::default())
            .to_string()
            .contains("not measured: ibpb (--verbose says what each needs)")
    );
    assert!(text(View::ALL).to_string().contains("note: not measured: ibpb: prctl: ENXIO"));
}

/// Bars end where the next begins, and the last is the whole.
#[test]
fn the_waterfall_goes_up_to_the_whole() {
    let figures = figures(&made());
    let chart = figure(&figures, "explain");
    let names =
        ["two system calls", "pipe", "scheduler", "address space", "sleep/wake-up", "whole"];
    assert_eq!(chart.x.names, names);
    let bars = series(chart, Role::Bars, "up to and with it");
    let ends: Vec<f64> = bars.points.iter().map(|point| point.y).collect();
    for (end, wanted) in ends.iter().zip([200.0, 1000.0, 1200.0, 1300.0, 1700.0, 1870.0]) {
        assert!(near(*end, wanted), "{ends:?}");
    }
    let added = figure(&figures, "explain-added");
    assert_eq!(added.x.names, ["seccomp filter"]);
}
