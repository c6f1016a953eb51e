//! Charts of responses: wake-ups and links of one run.

use std::collections::BTreeMap;

use charts::{Figure, Role};
use model::case::{Case, Policy};
use model::experiment::Experiment;
use model::plan::{Batching, Plan, Stopping};
use model::ring::Batching as Laps;
use model::run::{Header, Run};
use model::trial::wakeup::{LATE_NS, Load, Wakeup};
use model::trial::{self, Repeats, Trial};

use crate::figures::tests::*;

fn wakeup(policy: Policy) -> Case {
    let of =
        Wakeup { load: Load::Idle, wakes: 600, period_ns: 1_000_000, timer_slack_ns: 1, seed: 1 };
    Case::Trial(trial::Case { trial: Trial::Wakeup(of), cpu: 1, policy })
}

/// Six rounds; sleepers are 1 to 600 us late, a switch by pipe costs 3 us and by futex 2.
fn drawn() -> Vec<Figure> {
    let by = |link: &str| model::ring::Case { link: link.into(), ..case(2, None) };
    let rings = run(Experiment::Ring, vec![by("pipe"), by("futex")], |case| {
        if case.link == "pipe" { 3000 } else { 2000 }
    });
    let mut cases: Vec<Case> = rings.header.plan.cases.clone();
    let first = cases.len();
    cases.extend([wakeup(Policy::Other), wakeup(Policy::Fifo)]);
    let header = Header {
        schema: 1,
        run: "made".into(),
        started: rings.header.started,
        invocation: Vec::new(),
        build: rings.header.build,
        plan: Plan {
            experiment: Experiment::Response,
            cases,
            seed: 1,
            batching: Batching { ring: Laps::default(), trial: Repeats { trials: 600 } },
            stopping: Stopping { precision: 0.01, budget_ns: 1, rounds: Some(6), confidence: 0.95 },
            reference: Default::default(),
        },
        machine: rings.header.machine,
        notices: Vec::new(),
        session: None,
        launch: None,
    };
    let mut run = Run::new(header);
    run.samples = rings.samples;
    let late = (1..=600).map(|us| us * 1000).collect();
    let tallies = BTreeMap::from([(LATE_NS.to_string(), late)]);
    for (round, case) in (0..6).flat_map(|round| [(round, first), (round, first + 1)]) {
        let sample = trial::Sample {
            case,
            round,
            elapsed_ns: 1_000_000_000,
            elapsed_ticks: None,
            gaps: Vec::new(),
            sliced: Vec::new(),
            tallies: tallies.clone(),
            counts: BTreeMap::new(),
            steal_ns: None,
        };
        run.samples.push(model::case::Sample::Trial(sample));
    }
    figures(&run)
}

#[test]
fn wake_ups_are_steps_by_policy_with_their_99th_percentile_marked() {
    let figures = drawn();
    let late = figure(&figures, "response-late");
    let steps = series(late, Role::Steps, "idle CPU, other");
    series(late, Role::Steps, "idle CPU, fifo");
    // Bins 1, 2, 5, ... 500 us, and nothing above 1 ms.
    let at = |x: f64| steps.points.iter().find(|point| point.x == x).unwrap().y;
    assert_eq!((at(1e3), at(2e3), at(500e3), at(1e6)), (6.0, 18.0, 606.0, 0.0));
    assert_eq!(steps.points.iter().map(|point| point.y).sum::<f64>(), 3600.0);
    let [mark, _] = &late.marks[..] else { panic!("{:?}", late.marks) };
    assert_eq!((mark.x, &*mark.label), (594_000.0, "99 %, idle CPU, other"));
    let (low, high) = mark.between.unwrap();
    assert!(low < mark.x && mark.x < high);
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
