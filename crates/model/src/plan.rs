//! All cases of a run, how they are sampled, in which order, and when the run may stop.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::case::Case;
use crate::instrument::Instrument;
use crate::ring::Ring;
use crate::speed::{FEWEST_ROUNDS, Reference};
use crate::state::State;

/// Rounds before an interval is given of what no reference quanta judge.
pub const MINIMUM_ROUNDS: u32 = 5;

/// How a worker batches laps into samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Batching {
    /// Laps of every sample; calibrated in each worker when absent.
    pub laps: Option<u64>,
    /// Wanted duration of a calibrated sample, in nanoseconds.
    pub sample_ns: u64,
    /// Samples that a worker takes in one round, at most.
    pub samples_per_round: u32,
    /// A worker takes no further sample once its samples have lasted this long, in nanoseconds.
    pub enough_ns: u64,
    /// Wanted duration of a slice of a sample, in nanoseconds, between two reference quanta; absent in
    /// plans whose samples are not cut into slices. No slice is shorter than a lap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice_ns: Option<u64>,
    /// How often a worker measures, beside its samples, each member's solo, the ring, and each solo again, at
    /// most; absent where solos are rings of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triples: Option<u32>,
    /// At how many places of its memory a worker tries a working set that was given huge pages, at most; it measures
    /// at the one where a lap took least. Absent where it tries none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub places: Option<u32>,
}

/// A slice as timed without a neighbour on the core. A neighbour that comes for less than a slice and is gone
/// again is seen by no quantum: of slices of 1 ms most have had one such on a core that is shared half of the
/// time, of these few have (docs/validation.md).
pub const SLICE_NS: u64 = 250_000;

impl Default for Batching {
    /// 10 ms a sample: at least one timer tick down to HZ=100, so that the kernel's user/system
    /// split has something to say, and long enough that two clock reads do not count.
    fn default() -> Self {
        Self {
            laps: None,
            sample_ns: 10_000_000,
            samples_per_round: 3,
            enough_ns: 250_000_000,
            slice_ns: Some(SLICE_NS),
            triples: None,
            places: None,
        }
    }
}

/// When a run may stop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stopping {
    /// Relative half-width of the interval at which a case is precise enough: 0.01 is 1 %.
    pub precision: f64,
    /// Time for the whole plan, in nanoseconds. The first round is always finished.
    pub budget_ns: u64,
    /// Rounds after which the run stops in any case; no such limit when absent.
    pub rounds: Option<u32>,
    /// Confidence of every interval: 0.95 is 95 %.
    pub confidence: f64,
}

/// All cases of a run, its seed and its stopping rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(bound = "")]
#[schemars(rename = "Plan_of_{I}")]
pub struct Plan<I: Instrument = Ring> {
    /// The experiment's name: the subcommand that made the plan.
    pub experiment: String,
    /// The grid; of rings, solo rings included.
    pub cases: Vec<I::Case>,
    /// Seed of the order of cases and of every resampling.
    pub seed: u64,
    /// How a worker makes samples; of rings, how laps become samples.
    pub batching: I::Batching,
    /// When to stop.
    pub stopping: Stopping,
    /// What was known of the CPU's full speed and of launches when the plan was made.
    #[serde(default)]
    pub reference: Reference,
}

impl<I: Instrument> Plan<I> {
    /// The order in which the cases of round `round` (from 0) are run: a permutation of the case
    /// numbers, different from round to round and fixed by the seed. Cases that belong together stay
    /// together: their blocks are shuffled, and each within itself.
    pub fn order(&self, round: u32) -> Vec<usize> {
        let mut rng = self.rng_of(u64::from(round));
        let mut blocks = self.blocks();
        blocks.shuffle(&mut rng);
        blocks.iter_mut().for_each(|block| block.shuffle(&mut rng));
        blocks.concat()
    }

    /// The order of a round in which each case is measured twice, in two settings: as itself, and as its
    /// twin, whose number is higher by the number of cases. Twins are next to each other.
    pub fn order_of_twins(&self, round: u32) -> Vec<usize> {
        // Another stream than the round's own order has.
        let mut rng = self.rng_of((1 << 32) + u64::from(round));
        let twins = |case: usize| {
            let mut pair = [case, case + self.cases.len()];
            pair.shuffle(&mut rng);
            pair
        };
        self.order(round).into_iter().flat_map(twins).collect()
    }

    fn rng_of(&self, stream: u64) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(stream);
        rng
    }

    fn blocks(&self) -> Vec<Vec<usize>> {
        let mut blocks: Vec<Vec<usize>> = Vec::new();
        for (index, case) in self.cases.iter().enumerate() {
            let joins = |block: &&mut Vec<usize>| {
                let first = block.first().map(|first| &self.cases[*first]);
                first.is_some_and(|first| I::belong_together(first, case))
            };
            match blocks.iter_mut().find(joins) {
                Some(block) => block.push(index),
                None => blocks.push(vec![index]),
            }
        }
        blocks
    }

    /// Every CPU that is measured on, sorted, each once.
    pub fn cpus(&self) -> Vec<u32> {
        let mut all: Vec<u32> = self.cases.iter().flat_map(I::cpus).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

impl Plan {
    /// The number of the solo ring that case `case` is compared with, if the plan has it.
    pub fn solo_of(&self, case: usize) -> Option<usize> {
        let of = self.cases.get(case)?;
        self.cases.iter().position(|candidate| candidate.is_solo_of(of))
    }

    /// The number of the same ring whose members have no registers in use, if `case` has some.
    pub fn none_of(&self, case: usize) -> Option<usize> {
        let of = self.cases.get(case).filter(|of| !matches!(of.state, None | Some(State::None)))?;
        let none = Case { state: Some(State::None), ..of.clone() };
        self.cases.iter().position(|candidate| *candidate == none)
    }

    /// Adds the missing solo rings, so that every ring has one to be compared with.
    pub fn with_solos(mut self) -> Self {
        let mut solos: Vec<Case> = Vec::new();
        for case in &self.cases {
            let known = self.cases.iter().chain(&solos).any(|other| other.is_solo_of(case));
            if !known {
                solos.push(case.solo());
            }
        }
        solos.append(&mut self.cases);
        self.cases = solos;
        self
    }
}

/// Whether the precision is looked at after `rounds` rounds. Looks are spaced by half as much
/// again (8, 12, 18, 27, ...): a rule asked after every round stops too soon by luck.
pub fn is_look(rounds: u32) -> bool {
    let mut look = FEWEST_ROUNDS;
    while look < rounds {
        look += look.div_ceil(2);
    }
    look == rounds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Kind, Op, Placement, Policy, Work};

    fn plan(sizes: &[u32], seed: u64) -> Plan {
        let case = |members: &u32| Case {
            members: *members,
            kind: Kind::Process,
            link: "pipe".into(),
            work: None,
            placement: Placement::Same { cpu: 1 },
            policy: Policy::Other,
            priority: None,
            state: None,
        };
        Plan {
            experiment: "ring".into(),
            cases: sizes.iter().map(case).collect(),
            seed,
            batching: Batching::default(),
            stopping: Stopping { precision: 0.01, budget_ns: 1, rounds: None, confidence: 0.95 },
            reference: Default::default(),
        }
    }

    #[test]
    fn every_round_holds_each_case_once_in_an_order_of_its_own() {
        let plan = plan(&[1, 2, 4, 8, 10, 16, 20, 32, 48, 64], 7);
        let orders: Vec<_> = (0..20).map(|round| plan.order(round)).collect();
        for order in &orders {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..10).collect::<Vec<_>>());
        }
        let mut distinct = orders.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), 20, "two of twenty rounds have the same order");
        // No place in the round belongs to one case: drift must not fall on it alone.
        for place in 0..10 {
            let first = orders[0][place];
            assert!(orders.iter().any(|order| order[place] != first), "place {place} is fixed");
        }
    }

    #[test]
    fn a_ring_and_its_solo_stay_together_in_an_order_of_their_own() {
        let mut plan = plan(&[], 7);
        let bare = self::plan(&[2], 7).cases.remove(0);
        let with = |bytes| Work::new(bytes, 8, Op::Rmw).ok();
        let works = [None, with(1024), with(2048), with(4096), with(8192)];
        plan.cases = works.map(|work| Case { work, ..bare.clone() }).to_vec();
        let plan = plan.with_solos();
        let (mut solo_first, mut blocks) = (0, Vec::new());
        for round in 0..20 {
            let order = plan.order(round);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..10).collect::<Vec<_>>());
            for pair in order.chunks(2) {
                assert_eq!(plan.cases[pair[0]].work, plan.cases[pair[1]].work, "{order:?}");
                solo_first += usize::from(plan.cases[pair[0]].members == 1);
            }
            blocks.push(order.chunks(2).map(|pair| pair[0] % 5).collect::<Vec<_>>());
        }
        assert!(
            (30..70).contains(&solo_first),
            "of 100 pairs the solo comes first in {solo_first}"
        );
        blocks.sort();
        blocks.dedup();
        assert!(blocks.len() > 15, "blocks are shuffled");
    }

    #[test]
    fn twins_are_next_to_each_other() {
        let plan = plan(&[2, 4, 8], 7).with_solos();
        let count = plan.cases.len();
        let mut first = [0, 0];
        for round in 0..40 {
            let order = plan.order_of_twins(round);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..2 * count).collect::<Vec<_>>());
            for pair in order.chunks(2) {
                assert_eq!(pair[0] % count, pair[1] % count, "{order:?}");
                first[pair[0] / count] += 1;
            }
        }
        // Neither setting goes first by rule.
        assert!(first.iter().all(|count| (60..=100).contains(count)), "{first:?}");
    }

    #[test]
    fn the_seed_fixes_the_order() {
        let sizes = [1, 2, 4, 8, 16, 32];
        assert_eq!(plan(&sizes, 7).order(3), plan(&sizes, 7).order(3));
        assert_ne!(plan(&sizes, 7).order(3), plan(&sizes, 8).order(3));
    }

    #[test]
    fn solos_are_added_once_and_found() {
        let plan = plan(&[2, 4], 1).with_solos();
        assert_eq!(plan.cases.iter().map(|c| c.members).collect::<Vec<_>>(), [1, 2, 4]);
        assert_eq!(plan.clone().with_solos(), plan);
        assert_eq!(plan.solo_of(2), Some(0));
        assert_eq!(plan.solo_of(9), None);
    }

    #[test]
    fn looks_are_spaced() {
        let looks: Vec<u32> = (0..50).filter(|rounds| is_look(*rounds)).collect();
        assert_eq!(looks, [8, 12, 18, 27, 41]);
    }
}
