//! Samples grouped by case and round, and the figures that are taken within a round.

use std::collections::BTreeMap;

use rand::{Rng, RngExt};

use crate::sample::Sample;
use crate::stats::{Rounds, median};

/// Samples of one case in one round.
pub(crate) type Batch<'a> = Vec<&'a Sample>;

/// All samples of a run by case and round.
#[derive(Debug, Default)]
pub struct Grouped<'a> {
    cases: BTreeMap<usize, BTreeMap<u32, Batch<'a>>>,
}

impl<'a> Grouped<'a> {
    /// Groups `samples`, whatever their order. Samples without a hop or without time say nothing
    /// and are passed over.
    pub fn new(samples: &'a [Sample]) -> Self {
        let mut grouped = Self::default();
        for sample in samples.iter().filter(|s| s.hops > 0 && s.elapsed_ns > 0) {
            let rounds = grouped.cases.entry(sample.case).or_default();
            rounds.entry(sample.round).or_default().push(sample);
        }
        grouped
    }

    /// Samples of a case in the order of rounds.
    pub fn samples(&self, case: usize) -> impl Iterator<Item = &'a Sample> + '_ {
        self.cases.get(&case).into_iter().flat_map(|rounds| rounds.values().flatten().copied())
    }

    /// Number of rounds in which a case was measured.
    pub fn rounds(&self, case: usize) -> u32 {
        self.cases.get(&case).map_or(0, |rounds| rounds.len() as u32)
    }

    /// The samples of a case by the number of their round.
    pub(crate) fn by_round(&self, case: usize) -> impl Iterator<Item = (u32, &Batch<'a>)> + '_ {
        let rounds = self.cases.get(&case).into_iter().flatten();
        rounds.map(|(round, batch)| (*round, batch))
    }

    /// A figure of one case, by rounds.
    pub fn single(&'a self, case: usize, of: fn(&Sample) -> f64) -> Single<'a> {
        let rounds = self.cases.get(&case).map_or_else(Vec::new, |r| r.values().collect());
        Single { rounds, of }
    }

    /// Cost of a counted switch above the solo ring, by the rounds in which both were measured and
    /// in which the ring switched at all. `of` is the cost of a hop: by real or by CPU time.
    pub fn above_solo(&'a self, case: usize, solo: usize, of: fn(&Sample) -> f64) -> AboveSolo<'a> {
        let (Some(ring), Some(alone)) = (self.cases.get(&case), self.cases.get(&solo)) else {
            return AboveSolo { rounds: Vec::new(), of };
        };
        let pair = |(round, batch): (&u32, &'a Batch<'a>)| Some((batch, alone.get(round)?));
        let rounds = ring.iter().filter(|(_, b)| switched(b)).filter_map(pair).collect();
        AboveSolo { rounds, of }
    }

    /// The same figure by the number of its round.
    pub fn above_solo_by_round(
        &self,
        case: usize,
        solo: usize,
        of: fn(&Sample) -> f64,
    ) -> BTreeMap<u32, f64> {
        let figure = |round: &u32| {
            let ring = self.cases.get(&case)?.get(round).filter(|batch| switched(batch))?;
            Some((*round, above_solo(ring, self.cases.get(&solo)?.get(round)?, of)))
        };
        let rounds = self.cases.get(&case).into_iter().flat_map(|rounds| rounds.keys());
        rounds.filter_map(figure).collect()
    }

    /// What the working set adds to the cost of a counted switch: total - direct, by the rounds in
    /// which all four rings were measured and both of several switched. Each is a ring and its solo.
    pub fn indirect(
        &'a self,
        total: (usize, usize),
        direct: (usize, usize),
        of: fn(&Sample) -> f64,
    ) -> Indirect<'a> {
        let of_round = |case: usize, round: &u32| self.cases.get(&case)?.get(round);
        let pair = |(ring, solo): (usize, usize), round: &u32| -> Option<Pair<'a>> {
            let ring = of_round(ring, round).filter(|batch| switched(batch))?;
            Some((ring, of_round(solo, round)?))
        };
        let known = self.cases.get(&total.0).into_iter().flat_map(|rounds| rounds.keys());
        let both = known.filter_map(|round| Some((pair(total, round)?, pair(direct, round)?)));
        let (total, direct): (Vec<_>, Vec<_>) = both.unzip();
        Indirect {
            total: AboveSolo { rounds: total, of },
            direct: AboveSolo { rounds: direct, of },
        }
    }
}

/// As many samples of a round, drawn with replacement.
pub(crate) fn draw<'a>(batch: &Batch<'a>, rng: &mut dyn Rng) -> Batch<'a> {
    batch.iter().map(|_| batch[rng.random_range(0..batch.len())]).collect()
}

pub(crate) fn middle(batch: &Batch, of: fn(&Sample) -> f64) -> f64 {
    let values: Vec<f64> = batch.iter().map(|sample| of(sample)).collect();
    median(&values).unwrap_or(f64::NAN)
}

/// A figure of one case: the median over the samples of a round.
pub struct Single<'a> {
    rounds: Vec<&'a Batch<'a>>,
    of: fn(&Sample) -> f64,
}

impl Rounds for Single<'_> {
    fn len(&self) -> usize {
        self.rounds.len()
    }
    fn figure(&self, round: usize) -> f64 {
        middle(self.rounds[round], self.of)
    }
    fn resampled(&self, round: usize, rng: &mut dyn Rng) -> f64 {
        middle(&draw(self.rounds[round], rng), self.of)
    }
}

/// A ring and its solo in one round.
type Pair<'a> = (&'a Batch<'a>, &'a Batch<'a>);

pub(crate) fn switched(batch: &Batch) -> bool {
    batch.iter().any(|s| s.counters.switches() > 0)
}

/// (hop(N) - hop(1)) / counted switches per hop, within a round. Signed.
pub struct AboveSolo<'a> {
    rounds: Vec<Pair<'a>>,
    of: fn(&Sample) -> f64,
}

pub(crate) fn above_solo(ring: &Batch, solo: &Batch, of: fn(&Sample) -> f64) -> f64 {
    let difference = middle(ring, of) - middle(solo, of);
    let switches: u64 = ring.iter().map(|s| s.counters.switches()).sum();
    let hops: u64 = ring.iter().map(|s| s.hops).sum();
    difference * hops as f64 / switches as f64
}

impl Rounds for AboveSolo<'_> {
    fn len(&self) -> usize {
        self.rounds.len()
    }
    fn figure(&self, round: usize) -> f64 {
        let (ring, solo) = self.rounds[round];
        above_solo(ring, solo, self.of)
    }
    fn resampled(&self, round: usize, rng: &mut dyn Rng) -> f64 {
        let (ring, solo) = self.rounds[round];
        let drawn = draw(ring, rng);
        // A draw in which nothing switched has no cost per switch: keep the round as it was.
        if drawn.iter().all(|s| s.counters.switches() == 0) {
            return self.figure(round);
        }
        above_solo(&drawn, &draw(solo, rng), self.of)
    }
}

/// The cost of a switch with work less that without, within a round. Signed.
pub struct Indirect<'a> {
    total: AboveSolo<'a>,
    direct: AboveSolo<'a>,
}

impl Rounds for Indirect<'_> {
    fn len(&self) -> usize {
        self.total.len()
    }
    fn figure(&self, round: usize) -> f64 {
        self.total.figure(round) - self.direct.figure(round)
    }
    fn resampled(&self, round: usize, rng: &mut dyn Rng) -> f64 {
        self.total.resampled(round, rng) - self.direct.resampled(round, rng)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Counters;

    fn sample(case: usize, round: u32, hops: u64, ns: u64, v: u64, i: u64) -> Sample {
        let counters = Counters { voluntary: v, involuntary: i, ..Counters::default() };
        Sample {
            case,
            round,
            sample: 0,
            laps: hops,
            hops,
            elapsed_ns: ns,
            counters,
            steal_ns: None,
            setup_ns: 0,
        }
    }

    #[test]
    fn cost_is_divided_by_counted_switches_of_both_kinds() {
        // 4000 ns a hop against 1000 alone, at 1.5 switches a hop: 2000 ns a switch.
        let all = [sample(0, 0, 100, 100_000, 0, 0), sample(1, 0, 100, 400_000, 100, 50)];
        let grouped = Grouped::new(&all);
        assert!((grouped.above_solo(1, 0, Sample::ns_per_hop).figure(0) - 2000.0).abs() < 1e-9);
    }

    #[test]
    fn a_negative_difference_stays_negative() {
        let all = [sample(0, 0, 100, 300_000, 0, 0), sample(1, 0, 100, 200_000, 100, 0)];
        let grouped = Grouped::new(&all);
        assert!((grouped.above_solo(1, 0, Sample::ns_per_hop).figure(0) + 1000.0).abs() < 1e-9);
    }

    #[test]
    fn differences_are_taken_within_rounds_only() {
        // Drift: the second round is 1000 ns slower for both. Round 2 lacks the solo, round 3 the
        // ring: neither may be paired with another round.
        let all = [
            sample(0, 0, 100, 100_000, 0, 0),
            sample(1, 0, 100, 400_000, 100, 0),
            sample(0, 1, 100, 200_000, 0, 0),
            sample(1, 1, 100, 500_000, 100, 0),
            sample(1, 2, 100, 900_000, 100, 0),
            sample(0, 3, 100, 100_000, 0, 0),
        ];
        let grouped = Grouped::new(&all);
        let pairs = grouped.above_solo(1, 0, Sample::ns_per_hop);
        assert_eq!(pairs.len(), 2);
        assert!((0..2).all(|round| (pairs.figure(round) - 3000.0).abs() < 1e-9));
    }

    #[test]
    fn a_ring_that_never_switched_has_no_cost_per_switch() {
        let all = [sample(0, 0, 100, 100_000, 0, 0), sample(1, 0, 100, 400_000, 0, 0)];
        let grouped = Grouped::new(&all);
        assert!(grouped.above_solo(1, 0, Sample::ns_per_hop).is_empty());
        assert!(grouped.above_solo(1, 7, Sample::ns_per_hop).is_empty());
    }

    #[test]
    fn the_indirect_cost_is_the_double_difference_of_one_round() {
        // Without work 4000 - 1000 at one switch a hop; with work 10000 - 5000 at two: 2500 - 3000 in
        // the first round, and in the second, where the pair with work takes 6000 more, 2500.
        let four = |round: u32, with_work: u64| {
            [
                sample(0, round, 100, 100_000, 0, 0),
                sample(1, round, 100, 400_000, 100, 0),
                sample(2, round, 100, 500_000, 0, 0),
                sample(3, round, 100, with_work, 150, 50),
            ]
        };
        let mut all = [four(0, 1_000_000), four(1, 1_600_000)].concat();
        // Rounds that lack any of the four, or a switch in either ring, give nothing.
        for missing in 0..4 {
            let mut round = four(2 + missing, 1_000_000).to_vec();
            round.remove(missing as usize);
            all.extend(round);
        }
        all.extend(four(6, 1_000_000).map(|mut s| {
            if s.case == 1 {
                s.counters = Counters::default();
            }
            s
        }));
        let grouped = Grouped::new(&all);
        let indirect = grouped.indirect((3, 2), (1, 0), Sample::ns_per_hop);
        assert_eq!(indirect.len(), 2);
        assert!((indirect.figure(0) + 500.0).abs() < 1e-9);
        assert!((indirect.figure(1) - 2500.0).abs() < 1e-9);
        assert!(grouped.indirect((3, 9), (1, 0), Sample::ns_per_hop).is_empty());
    }

    #[test]
    fn drift_common_to_a_round_leaves_the_indirect_cost_alone() {
        let all: Vec<Sample> = (0..6_u32)
            .flat_map(|round| {
                let drift = 1_000_000 * u64::from(round);
                [
                    sample(0, round, 100, drift + 100_000, 0, 0),
                    sample(1, round, 100, drift + 400_000, 100, 0),
                    sample(2, round, 100, drift + 500_000, 0, 0),
                    sample(3, round, 100, drift + 1_000_000, 100, 0),
                ]
            })
            .collect();
        let grouped = Grouped::new(&all);
        let indirect = grouped.indirect((3, 2), (1, 0), Sample::ns_per_hop);
        let estimate = crate::estimate::Estimate::over(&indirect, 5, 0.95, 1).unwrap();
        assert!((estimate.value - 2000.0).abs() < 1e-6 && estimate.resolved, "{estimate:?}");
        assert!(estimate.low.is_some_and(|low| (low - 2000.0).abs() < 1e-6), "{estimate:?}");
    }

    #[test]
    fn empty_samples_are_passed_over() {
        let all = [sample(0, 0, 0, 100, 0, 0), sample(0, 1, 10, 0, 0, 0)];
        assert_eq!(Grouped::new(&all).rounds(0), 0);
    }
}
