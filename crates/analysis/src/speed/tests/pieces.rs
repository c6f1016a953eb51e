//! How often intervals hold where a hop takes longer than a core stays unshared: no hop is clean,
//! pieces are.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rundata::plan::Plan;
use rundata::ring::{Counters, RingSample, Triple, Triples};
use testing::repeats;

use super::simulation::{Model, Trace, UNSHARED_RATIO, normal, plan};
use crate::estimate::{Estimate, Speed};
use crate::table::Table;

const MEMBERS: usize = 2;
const PIECES: usize = 20;
const RING_LAPS: u64 = 6;
const SOLO_LAPS: u64 = 3;
const TRIPLES: usize = 3;
const ROUNDS: u32 = 12;

/// Launches that are simulated.
fn launches() -> u64 {
    repeats(12, 200)
}

/// A solo's piece, and what the ring adds to it.
const PIECE_NS: f64 = 200_000.0;
const MORE_NS: f64 = 10_000.0;
const SOLO_PASS_NS: f64 = 400.0;
const SWITCH_NS: f64 = 1_500.0;
/// What a hop of the ring takes above the solos.
const ABOVE_NS: f64 = PIECES as f64 * MORE_NS + SWITCH_NS;
const SLOWER: f64 = 0.4;
const QUANTUM_S: f64 = 12e-6;

/// A worker that works on a machine whose core is shared at times.
struct Worker<'a> {
    trace: &'a Trace,
    now: f64,
    /// What this worker's memory makes of what a switch adds, and the state of a cache that others
    /// use: it drifts over some tens of pieces.
    memory: f64,
    drift: f64,
    hops: (u32, u32),
}

impl Worker<'_> {
    fn quantum(&mut self, to: &mut Triple, rng: &mut ChaCha8Rng) {
        let shared = self.trace.share(self.now, self.now + QUANTUM_S);
        let times = 1.0 + 0.38 * shared + (0.004 * normal(rng)).abs();
        to.latency_ns.push((5860.0 * (1.0 + 0.001 * normal(rng))) as u32);
        to.throughput_ns.push((5860.0 * UNSHARED_RATIO * times) as u32);
        self.now += QUANTUM_S;
    }

    fn part(&mut self, ns: f64, rng: &mut ChaCha8Rng) -> u64 {
        self.drift = 0.95 * self.drift + 0.31 * 0.01 * normal(rng);
        let shared = self.trace.share(self.now, self.now + ns / 1e9);
        let took = ns * (1.0 + SLOWER * shared) * (1.0 + self.drift + 0.01 * normal(rng));
        self.now += took / 1e9;
        took as u64
    }

    /// Hops one after the other; whether any was unshared from its beginning to its end is counted.
    fn phase(
        &mut self,
        hops: u64,
        is_ring: bool,
        to: &mut Triple,
        rng: &mut ChaCha8Rng,
    ) -> Vec<u64> {
        let (more, pass) = match is_ring {
            true => (MORE_NS * self.memory, SOLO_PASS_NS + SWITCH_NS * self.memory),
            false => (0.0, SOLO_PASS_NS),
        };
        let mut parts = Vec::new();
        for hop in 0..hops {
            if hop > 0 {
                parts.push(self.part(pass, rng));
            }
            let start = self.now;
            self.quantum(to, rng);
            for _ in 0..PIECES {
                parts.push(self.part(PIECE_NS + more, rng));
                self.quantum(to, rng);
            }
            self.hops.0 += 1;
            self.hops.1 += u32::from(self.trace.share(start, self.now) == 0.0);
        }
        parts
    }

    fn triple(&mut self, rng: &mut ChaCha8Rng) -> Triple {
        let mut triple = Triple::default();
        let solos = |worker: &mut Self, triple: &mut Triple, rng: &mut ChaCha8Rng| {
            for _ in 0..MEMBERS {
                let parts = worker.phase(SOLO_LAPS, false, triple, rng);
                triple.solos_ns.extend(parts);
            }
        };
        solos(self, &mut triple, rng);
        triple.ring_ns = self.phase(RING_LAPS * MEMBERS as u64, true, &mut triple, rng);
        solos(self, &mut triple, rng);
        triple
    }
}

/// The plan with the ring of two alone: its solos are its own.
fn own_solos() -> Plan {
    let mut plan = plan();
    plan.cases.remove(0);
    plan.batching.ring.triples = Some(TRIPLES as u32);
    plan
}

fn launch(model: Model, seed: u64) -> (Vec<RingSample>, (u32, u32)) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let trace = Trace::of(model, f64::from(ROUNDS) * 0.8 + 1.0, &mut rng);
    let level = (0.01 * normal(&mut rng)).exp();
    let mut hops = (0, 0);
    let worker = |round: u32| {
        let memory = level * (0.02 * normal(&mut rng)).exp();
        let now = f64::from(round) * 0.8;
        let mut worker = Worker { trace: &trace, now, memory, drift: 0.0, hops };
        let all = (0..TRIPLES).map(|_| worker.triple(&mut rng)).collect();
        hops = worker.hops;
        let triples = Triples {
            members: MEMBERS as u32,
            ring_laps: RING_LAPS,
            solo_laps: SOLO_LAPS,
            pieces: Some(PIECES as u32),
            all,
            ..Triples::default()
        };
        let counters = Counters { voluntary: 2, migrations: Some(0), ..Counters::default() };
        RingSample {
            case: 0,
            round,
            laps: 1,
            hops: 2,
            elapsed_ns: 8_000_000,
            counters,
            steal_ns: Some(0),
            triples: Some(triples.into()),
            ..RingSample::default()
        }
    };
    let samples = (0..ROUNDS).map(worker).collect();
    (samples, hops)
}

/// Estimates at full speed of many launches; share of them that have one, and of hops that were
/// clean throughout.
fn said(model: Model, look: impl Fn(&mut [RingSample])) -> (Vec<Estimate>, f64, f64) {
    let plan = own_solos();
    let (mut hops, mut unshared) = (0, 0);
    let estimates: Vec<Estimate> = (0..launches())
        .filter_map(|seed| {
            let (mut samples, of) = launch(model, 4000 + seed);
            (hops, unshared) = (hops + of.0, unshared + of.1);
            look(&mut samples);
            let found = Table::from_samples(&plan, &samples, []).above_solo(0, 1)?;
            (found.speed == Speed::Full).then_some(found)
        })
        .collect();
    let answered = estimates.len() as f64 / launches() as f64;
    (estimates, answered, f64::from(unshared) / f64::from(hops))
}

fn covered_and_bias(estimates: &[Estimate]) -> (f64, f64) {
    let holds =
        |one: &&Estimate| one.interval().is_some_and(|i| i.low <= ABOVE_NS && ABOVE_NS <= i.high);
    let covered = estimates.iter().filter(holds).count() as f64 / estimates.len() as f64;
    let values: Vec<f64> = estimates.iter().map(|one| one.value).collect();
    (100.0 * covered, 100.0 * (stats::median(&values).unwrap() / ABOVE_NS - 1.0))
}

/// Stays of milliseconds, half of the time: hops of 4 ms are hit.
#[test]
fn figures_of_pieces_hold_where_hardly_a_hop_is_clean() {
    for model in [Model::Independent, Model::Half] {
        let (estimates, answered, unshared) = said(model, |_| ());
        let (covered, bias) = covered_and_bias(&estimates);
        println!(
            "{model:?}: {:.1} % of hops unshared, answered {answered:.2}, covered {covered:.1} \
             %, bias {bias:+.2} %",
            100.0 * unshared
        );
        // Two and a half standard errors of a share of 95 % of twelve launches are 16 points.
        let (least, most) = repeats((79.0, 100.0), (92.0, 98.5));
        assert!((least..=most).contains(&covered), "{model:?}: {covered:.1} %");
        assert!(bias.abs() < repeats(1.2, 0.7), "{model:?}: {bias:.2} %");
        assert!(answered > repeats(0.6, 0.7), "{model:?}: {answered:.2}");
        assert!(matches!(model, Model::Independent) || unshared < 0.25, "{unshared}");
    }
}

/// Broken on purpose: quanta that see nothing.
#[test]
fn without_quanta_the_pieces_of_a_shared_core_are_in_the_figure() {
    let (estimates, ..) = said(Model::Half, |samples| {
        for triple in samples.iter_mut().flat_map(|s| &mut s.triples.as_mut().unwrap().all) {
            let least = triple.throughput_ns.iter().copied().min().unwrap();
            triple.throughput_ns.fill(least);
        }
    });
    let widths: Vec<f64> = estimates.iter().filter_map(|e| e.relative_half_width()).collect();
    let (covered, bias) = covered_and_bias(&estimates);
    let width = stats::median(&widths).unwrap();
    println!(
        "quanta that see nothing: covered {covered:.1} %, bias {bias:+.2} %, width {width:.3}"
    );
    assert!(bias > 5.0 || covered < 80.0 || width > 0.1);
}
