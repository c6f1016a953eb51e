//! Runs of rings.

use std::collections::BTreeMap;
use std::rc::Rc;

use rand::Rng;

use super::{ByRound, Comparable, Figure, Labels, Quantity, Subcase, Subject, Values, failure_of};
use crate::case::{Case, Placement};
use crate::instrument::Instrument;
use crate::noise;
use crate::pairing::{Batch, Grouped, above_solo, draw, middle, switched};
use crate::plan::Plan;
use crate::record::HARDLY_SWITCHES_PER_HOP;
use crate::ring::Ring;
use crate::run::{Failure, Run};
use crate::sample::Sample;
use crate::stats::{Rounds, median};

impl Comparable for Ring {
    fn subject(run: &Run) -> Subject {
        let plan = &run.header.plan;
        let grouped = Grouped::new(&run.samples);
        let noise = noise::judge(&plan.cases, &run.samples, &grouped);
        Subject::of_run(run, noise, cases(plan, &grouped, &run.failures))
    }
}

/// All cases of a plan with their figures.
pub(super) fn cases(plan: &Plan, grouped: &Grouped, failures: &[Failure]) -> Vec<Subcase> {
    let batches: Vec<Batches> = (0..plan.cases.len()).map(|case| batches(grouped, case)).collect();
    let subcase = |(number, case): (usize, &Case)| {
        let of_case = &batches[number];
        let alone = plan.solo_of(number).filter(|solo| *solo != number);
        Subcase {
            number,
            title: Ring::title(case),
            labels: labels(case),
            details: details(case),
            figures: figures(case, of_case, alone.map(|solo| &batches[solo])),
            failure: failure_of(failures, number),
            iterations: iterations(of_case),
        }
    };
    plan.cases.iter().enumerate().map(subcase).collect()
}

/// The samples of one case by round, shared by the figures that are made of them.
type Batches = BTreeMap<u32, Rc<Vec<Sample>>>;

fn batches(grouped: &Grouped, case: usize) -> Batches {
    let owned = |batch: &Batch| Rc::new(batch.iter().map(|sample| (*sample).clone()).collect());
    grouped.by_round(case).map(|(round, batch)| (round, owned(batch))).collect()
}

fn iterations(batches: &Batches) -> Vec<(u32, u64)> {
    batches.iter().map(|(round, batch)| (*round, batch.iter().map(|s| s.hops).sum())).collect()
}

/// What stands for the case first: of a ring that switches the cost of a switch, else that of a hop.
fn figures(case: &Case, ring: &Batches, solo: Option<&Batches>) -> Vec<Figure> {
    let mut all = Vec::new();
    let does_switch = case.members > 1 && switches_per_hop(ring) >= HARDLY_SWITCHES_PER_HOP;
    if let Some(solo) = solo.filter(|_| does_switch) {
        let above = |of| Rings { rounds: pairs(ring, solo), of };
        all.extend(figure(Quantity::NsPerSwitchAboveSolo, above(Sample::ns_per_hop)));
    }
    let alone = |of| {
        let rounds = ring.iter().map(|(round, batch)| (*round, batch.clone(), None)).collect();
        Rings { rounds, of }
    };
    all.extend(figure(Quantity::NsPerHop, alone(Sample::ns_per_hop)));
    if let Some(solo) = solo.filter(|_| does_switch && case.placement.is_one_cpu()) {
        let by_cpu = Rings { rounds: pairs(ring, solo), of: Sample::cpu_ns_per_hop };
        all.extend(figure(Quantity::CpuNsPerSwitchAboveSolo, by_cpu));
    }
    all.extend(figure(Quantity::CpuNsPerHop, alone(Sample::cpu_ns_per_hop)));
    all
}

fn figure(quantity: Quantity, rounds: Rings) -> Option<Figure> {
    let numbers: Vec<u32> = rounds.rounds.iter().map(|(number, ..)| *number).collect();
    let values = Values::Measured(ByRound { numbers, rounds: Box::new(rounds) });
    values.middle().is_some().then_some(Figure { quantity, values })
}

/// Median over rounds, as a record has it.
fn switches_per_hop(ring: &Batches) -> f64 {
    let of = |batch: &Rc<Vec<Sample>>| middle(&batch.iter().collect(), Sample::switches_per_hop);
    median(&ring.values().map(of).collect::<Vec<f64>>()).unwrap_or(0.0)
}

/// A round of a ring, by its number, and of the solo ring that is subtracted.
type Round = (u32, Rc<Vec<Sample>>, Option<Rc<Vec<Sample>>>);

/// The rounds in which both were measured and the ring switched at all.
fn pairs(ring: &Batches, solo: &Batches) -> Vec<Round> {
    let pair = |(round, batch): (&u32, &Rc<Vec<Sample>>)| {
        let does_switch = switched(&batch.iter().collect());
        does_switch.then_some((*round, batch.clone(), Some(solo.get(round)?.clone())))
    };
    ring.iter().filter_map(pair).collect()
}

/// The figures of [`crate::pairing`], with samples of their own.
struct Rings {
    rounds: Vec<Round>,
    of: fn(&Sample) -> f64,
}

impl Rings {
    fn batches(&self, round: usize) -> (Batch<'_>, Option<Batch<'_>>) {
        let (_, ring, solo) = &self.rounds[round];
        (ring.iter().collect(), solo.as_ref().map(|solo| solo.iter().collect()))
    }
}

impl Rounds for Rings {
    fn len(&self) -> usize {
        self.rounds.len()
    }
    fn figure(&self, round: usize) -> f64 {
        match self.batches(round) {
            (ring, None) => middle(&ring, self.of),
            (ring, Some(solo)) => above_solo(&ring, &solo, self.of),
        }
    }
    fn resampled(&self, round: usize, rng: &mut dyn Rng) -> f64 {
        match self.batches(round) {
            (ring, None) => middle(&draw(&ring, rng), self.of),
            (ring, Some(solo)) => {
                let drawn = draw(&ring, rng);
                match switched(&drawn) {
                    true => above_solo(&drawn, &draw(&solo, rng), self.of),
                    false => above_solo(&ring, &solo, self.of),
                }
            }
        }
    }
}

/// By these rings are paired.
pub(super) fn labels(case: &Case) -> Labels {
    let mut labels = vec![
        ("members", case.members.to_string()),
        ("kind", case.kind.name().to_string()),
        ("link", case.link.clone()),
    ];
    if let Some(work) = &case.work {
        labels.push(("work", work.bytes.to_string()));
        labels.push(("stride", work.stride_bytes.to_string()));
        labels.push(("op", work.op.name().to_string()));
        labels.push(("walk", work.walk.name().to_string()));
        labels.push(("huge-pages", work.huge_pages.to_string()));
    }
    labels.push(("placement", placement(&case.placement)));
    labels.push(("policy", case.policy.name().to_string()));
    labels.extend(case.state.map(|state| ("state", state.name().to_string())));
    labels.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
}

/// Of a pair that a sweep chose the relation: on another machine other CPUs have it.
fn placement(placement: &Placement) -> String {
    match placement.relation() {
        Some(relation) => relation.to_string(),
        None => placement.to_string(),
    }
}

fn details(case: &Case) -> Labels {
    let cpus: Vec<String> = case.placement.cpus().iter().map(u32::to_string).collect();
    vec![
        ("CPU".to_string(), cpus.join(",")),
        ("real-time priority".to_string(), case.priority().to_string()),
    ]
}
