//! Figures of rings: within a round, or of all clean slices of a run.

mod events;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::{Figures, Table};
use crate::bounds::sum;
use crate::estimate::Estimate;
use crate::plan::{FEWEST_ROUNDS, MINIMUM_ROUNDS, Plan};
use crate::ring::{self, Sample, Triples};
use crate::speed::{
    CaseClocks, CaseSlices, Clock, FEWEST_CLEAN, Level, clean_above, clean_hops, elasticity_of_sum,
    leader_cpus,
};
use stats::{Elasticity, Pooled, mean, median};

/// Samples of one case in one round.
pub(super) type Batch<'a> = Vec<&'a Sample>;

/// Figures of slices by the number of their round.
pub(super) type OfSlices = BTreeMap<u32, Vec<f64>>;

/// What is known of one ring; nothing of a case that is none.
#[derive(Debug, Default)]
pub(super) struct OfRing<'a> {
    pub(super) rounds: BTreeMap<u32, Batch<'a>>,
    pub(super) solo: Option<Solo>,
    pub(super) slices: CaseSlices,
    pub(super) clocks: CaseClocks,
    /// The hops of clean slices, once somebody has asked for them.
    pub(super) clean: OnceLock<Option<OfSlices>>,
}

/// What is subtracted from the hop of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Solo {
    /// A ring of one, a case of its own.
    Case(usize),
    /// Each member's own, in the same worker on the same memory.
    Own,
}

impl Solo {
    /// That of a case.
    pub(super) fn of(plan: &Plan, case: usize) -> Option<Self> {
        match plan.solo_of(case).filter(|solo| *solo != case) {
            // Of a link whose members cannot be alone in their worker.
            Some(solo) => Some(Self::Case(solo)),
            None => {
                plan.batching.ring.triples?;
                plan.ring(case).filter(|ring| ring.members > 1).map(|_| Self::Own)
            }
        }
    }
}

/// A figure of clean slices that estimates are sums of, by its case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Figure {
    /// Time of a hop.
    Hop(usize),
    /// What a hop takes above the members' own solos.
    AboveOwnSolos(usize),
}

/// A hop at full speed.
#[derive(Clone, Copy, Debug)]
pub(super) struct FullHop {
    pub(super) ns: f64,
    /// Standard error within the run.
    pub(super) error: f64,
    /// tau: the scatter between launches, as a share.
    pub(super) scatter: f64,
    pub(super) rounds: u32,
}

/// A figure and what it is multiplied by.
type Part = (Figure, f64);

impl<'a> Table<'a> {
    /// The number of a ring among the rings of its plan, by which its random streams are told
    /// apart.
    pub fn rank(&self, case: usize) -> u64 {
        self.plan.rings().take_while(|(number, _)| *number < case).count() as u64
    }

    fn batches(&self, case: usize) -> impl Iterator<Item = (u32, &Batch<'a>)> {
        let rounds = self.rings.get(case).map(|ring| &ring.rounds);
        rounds.into_iter().flatten().map(|(round, batch)| (*round, batch))
    }

    /// Samples of a case in the order of rounds.
    pub fn samples(&self, case: usize) -> impl Iterator<Item = &'a Sample> + '_ {
        self.batches(case).flat_map(|(_, batch)| batch.iter().copied())
    }

    /// Number of rounds in which a case was measured.
    pub fn rounds(&self, case: usize) -> u32 {
        self.batches(case).count() as u32
    }

    /// Hops of a case in each round.
    pub fn hops_by_round(&self, case: usize) -> Vec<(u32, u64)> {
        let hops = |batch: &Batch| sum(batch.iter().map(|sample| sample.hops));
        self.batches(case).map(|(round, batch)| (round, hops(batch))).collect()
    }

    /// How the times that a figure is made of go with the core's clock; absent where the run does
    /// not tell.
    fn clocks(&self, figure: Figure) -> Option<Vec<(Clock, f64)>> {
        let (Figure::Hop(case) | Figure::AboveOwnSolos(case)) = figure;
        let of = self.rings.get(case)?.clocks;
        match figure {
            Figure::Hop(_) => of.hop.map(|hop| vec![(hop, 1.0)]),
            Figure::AboveOwnSolos(_) => {
                of.above().map(|(ring, solo)| vec![(ring, 1.0), (solo, -1.0)])
            }
        }
    }

    /// By which power a hop of a case goes with the period of the core's clock; absent where the
    /// run does not tell.
    pub fn hop_elasticity(&self, case: usize) -> Option<Elasticity> {
        elasticity_of_sum(&self.clocks(Figure::Hop(case))?)
    }

    /// The same of the cost of a switch.
    pub fn elasticity(&self, case: usize) -> Option<Elasticity> {
        let times = |(figure, factor): Part| {
            let clocks = self.clocks(figure)?.into_iter();
            Some(clocks.map(|(clock, times)| (clock, times * factor)).collect::<Vec<_>>())
        };
        let parts: Option<Vec<_>> = self.switch(case)?.into_iter().map(times).collect();
        elasticity_of_sum(&parts?.concat())
    }

    /// The slices of a ring, none of a trial. Absent of a case that the plan does not have.
    pub fn slices(&self, case: usize) -> Option<&CaseSlices> {
        self.rings.get(case).map(|ring| &ring.slices)
    }

    /// Figures of the clean slices of a case. `of` gives them for a round.
    fn of_clean(
        &self,
        case: usize,
        of: impl Fn(&ring::Case, &Batch, &Level) -> Vec<f64>,
    ) -> Option<OfSlices> {
        let ring = self.plan.ring(case)?;
        let level = self.levels.get(&leader_cpus(ring))?;
        let figures = self.batches(case).map(|(round, batch)| (round, of(ring, batch, level)));
        Some(figures.filter(|(_, figures)| !figures.is_empty()).collect())
    }

    /// Time of a hop in nanoseconds in each clean slice.
    fn clean_hops(&self, case: usize) -> Option<&OfSlices> {
        let of = self.rings.get(case)?;
        let found = || {
            self.of_clean(case, |ring, batch, level| {
                let of_samples = clean_hops(ring, batch, level, of.clocks.hop.as_ref()).into_iter();
                of_samples.map(|(_, hops)| hops).collect::<Vec<_>>().concat()
            })
        };
        of.clean.get_or_init(found).as_ref()
    }

    /// The median of each round's clean slices of rings of triples, above the members' own solos,
    /// in nanoseconds.
    fn clean_above(&self, case: usize) -> Option<Figures> {
        let clocks = self.rings.get(case).and_then(|ring| ring.clocks.above());
        let above = |ring: &_, batch: &Batch, level: &_| clean_above(ring, batch, level, clocks);
        self.of_clean(case, above).map(|above| medians(&above))
    }

    /// Whether the quanta tell at which speed a case ran.
    pub fn is_judged(&self, case: usize) -> bool {
        self.slices(case).is_some_and(CaseSlices::is_judged)
    }

    /// Whether a case has clean slices enough for its figure at full speed, or clean triples where
    /// its figure is of those.
    pub fn has_full_speed(&self, case: usize) -> bool {
        self.has_figure(match self.solo(case) {
            Some(Solo::Own) => Figure::AboveOwnSolos(case),
            _ => Figure::Hop(case),
        })
    }

    fn solo(&self, case: usize) -> Option<Solo> {
        self.rings.get(case)?.solo
    }

    fn has_figure(&self, figure: Figure) -> bool {
        let (Figure::Hop(case) | Figure::AboveOwnSolos(case)) = figure;
        let has_slices = self.slices(case).is_some_and(match figure {
            Figure::Hop(_) => CaseSlices::has_full_speed,
            Figure::AboveOwnSolos(_) => CaseSlices::has_full_speed_above,
        });
        has_slices && !self.is_figure_not_alone(figure)
    }

    /// Whether others were there all the time while a figure was measured. Whoever was beside the
    /// solo was beside its ring, which was measured in the same rounds: a ring that has just slept
    /// may have the CPU for several of their turns.
    fn is_figure_not_alone(&self, figure: Figure) -> bool {
        let is_not_alone = |case| self.slices(case).is_some_and(CaseSlices::is_not_alone);
        match figure {
            Figure::Hop(case) => match self.solo(case) {
                Some(Solo::Case(solo)) => is_not_alone(case) || is_not_alone(solo),
                _ => is_not_alone(case),
            },
            Figure::AboveOwnSolos(case) => {
                self.slices(case).is_some_and(CaseSlices::is_not_alone_above)
            }
        }
    }

    /// The median of what a round's samples say, by rounds.
    fn middles(&self, case: usize, of: impl Fn(&Sample) -> Option<f64>) -> Figures {
        let figures = |batch: &Batch| batch.iter().filter_map(|s| of(s)).collect::<Vec<f64>>();
        let middle = |(round, batch): (u32, &Batch)| Some((round, median(&figures(batch))?));
        self.batches(case).filter_map(middle).collect()
    }

    /// A figure of one case by rounds: the median of the round's samples.
    pub fn middle_by_round(&self, case: usize, of: fn(&Sample) -> f64) -> Figures {
        self.middles(case, |sample| Some(of(sample)))
    }

    /// The same of the samples that were timed as the machine was found: rounds without one have no
    /// figure. Of a case that is not judged of all samples: waiting changed nothing in it that
    /// anybody knows of.
    pub fn as_found_by_round(&self, case: usize, of: fn(&Sample) -> f64) -> Figures {
        let any = !self.is_judged(case);
        self.middles(case, |sample| (any || sample.is_as_found()).then(|| of(sample)))
    }

    /// Time of a hop by rounds, as the estimates take it: the median of the round's clean slices
    /// where the case was judged and has enough of them, else of its samples.
    pub fn hop_by_round(&self, case: usize) -> Figures {
        let full = self.has_figure(Figure::Hop(case));
        match full.then(|| self.clean_hops(case)).flatten() {
            Some(clean) => medians(clean),
            None => self.as_found_by_round(case, Sample::ns_per_hop),
        }
    }

    /// Cost of a counted switch above the solo ring, by the rounds in which both were measured and
    /// in which the ring switched at all. By real time of clean slices where there are enough of
    /// them.
    pub fn above_solo_by_round(&self, case: usize) -> Figures {
        let full = self.has_full_speed(case);
        match self.solo(case) {
            Some(Solo::Case(solo)) if full && self.has_full_speed(solo) => {
                self.per_switch(case, less(&self.hop_by_round(case), &self.hop_by_round(solo)))
            }
            Some(Solo::Own) if full => {
                self.per_switch(case, self.clean_above(case).unwrap_or_default())
            }
            _ => self.above_solo_of_all(case, Sample::ns_per_hop),
        }
    }

    /// The same of all samples, at whatever speed. `of` is the cost of a hop: by real or by CPU
    /// time. The members' own solos are known by real time only.
    pub fn above_solo_of_all(&self, case: usize, of: fn(&Sample) -> f64) -> Figures {
        let above = match self.solo(case) {
            None => Figures::new(),
            Some(Solo::Case(solo)) => {
                less(&self.as_found_by_round(case, of), &self.as_found_by_round(solo, of))
            }
            Some(Solo::Own) => self
                .middles(case, |s| s.triples.as_deref().and_then(Triples::above_solos_as_found_ns)),
        };
        self.per_switch(case, above)
    }

    /// Costs of a hop by rounds / the switches that the kernel counted in each.
    fn per_switch(&self, case: usize, hops: Figures) -> Figures {
        let of = |(round, above): (u32, f64)| {
            let batch = self.rings.get(case)?.rounds.get(&round)?;
            let switches = sum(batch.iter().map(|s| s.switches()));
            let hops = sum(batch.iter().map(|s| s.hops));
            (switches > 0).then_some((round, above * hops as f64 / switches as f64))
        };
        hops.into_iter().filter_map(of).collect()
    }

    /// Time of a hop.
    pub fn hop(&self, case: usize, stream: u64) -> Option<Estimate> {
        let of_all = || self.as_found_by_round(case, Sample::ns_per_hop);
        let scatter = self.plan.reference.scatter_of(case);
        self.sum_of(&[(Figure::Hop(case), 1.0)], scatter, of_all, stream)
    }

    /// Cost of a counted switch above the solo ring. Absent where there is no solo, or nothing
    /// switched.
    pub fn above_solo(&self, case: usize, stream: u64) -> Option<Estimate> {
        let of_all = || self.above_solo_of_all(case, Sample::ns_per_hop);
        self.sum_of(&self.switch(case)?, self.plan.reference.scatter_of(case), of_all, stream)
    }

    /// The same of the clean slices of rounds that are too few for a figure at full speed: without
    /// an interval, so that nobody may quote it. Absent from as many rounds on as give one, where
    /// others were there, and where so few slices are clean that it would not hold.
    pub fn above_solo_so_far(&self, case: usize) -> Option<Estimate> {
        let Some(Solo::Case(solo)) = self.solo(case) else { return None };
        let clean = |of: usize| {
            let clean =
                self.clean_hops(of).filter(|_| !self.is_figure_not_alone(Figure::Hop(of)))?;
            let count: usize = clean.values().map(Vec::len).sum();
            (count >= FEWEST_CLEAN as usize).then(|| medians(clean))
        };
        let figures = self.per_switch(case, less(&clean(case)?, &clean(solo)?));
        let few = Some(figures).filter(|of| of.len() < FEWEST_ROUNDS as usize)?;
        Estimate::over(&Vec::from_iter(few.into_values()), FEWEST_ROUNDS, self.confidence(), 0)
    }

    /// The cost of a switch of one ring less that of another, each above its solo: what a working
    /// set or registers in use add. By the rounds in which both were measured and switched, or of
    /// all clean slices.
    pub fn difference(&self, one: usize, other: usize, stream: u64) -> Option<Estimate> {
        let of_all = |case: usize| self.above_solo_of_all(case, Sample::ns_per_hop);
        let others = self.switch(other)?.into_iter().map(|(figure, times)| (figure, -times));
        let parts: Vec<Part> = self.switch(one)?.into_iter().chain(others).collect();
        let scatter = |case| self.plan.reference.scatter_of(case);
        let scatter = f64::max(scatter(one), scatter(other));
        self.sum_of(&parts, scatter, || less(&of_all(one), &of_all(other)), stream)
    }

    /// Any figure by rounds: the median over rounds with its interval. At no particular speed.
    pub fn over_rounds(&self, by_round: &Figures, stream: u64) -> Option<Estimate> {
        let figures: Vec<f64> = by_round.values().copied().collect();
        Estimate::over(&figures, MINIMUM_ROUNDS, self.confidence(), self.seed(stream))
    }

    pub(super) fn confidence(&self) -> f64 {
        self.plan.stopping.confidence
    }

    fn seed(&self, stream: u64) -> u64 {
        self.plan.seed.wrapping_add(stream)
    }

    /// A hop of a case at full speed. None where it has too few clean slices.
    pub(super) fn full_hop(&self, case: usize) -> Option<FullHop> {
        let figure = Figure::Hop(case);
        let pooled = self.has_figure(figure).then(|| self.pooled(figure))??;
        let errors = self.clocks(figure).into_iter().flatten();
        let clocks = errors.map(|(clock, times)| (times * clock.error_ns()).powi(2)).sum::<f64>();
        Some(FullHop {
            ns: pooled.value,
            error: (pooled.standard_error.powi(2) + clocks).sqrt(),
            scatter: self.plan.reference.scatter_of(case),
            rounds: pooled.rounds,
        })
    }

    /// Whether others on the CPU are why a hop has no figure at full speed.
    pub(super) fn is_hop_not_alone(&self, case: usize) -> bool {
        self.is_figure_not_alone(Figure::Hop(case))
    }

    /// At full speed where all figures that it is made of have clean slices enough; of all slices
    /// and without an interval where they were judged and have not; else over rounds, not judged.
    fn sum_of(
        &self,
        parts: &[Part],
        launch_scatter: f64,
        of_all: impl Fn() -> Figures,
        stream: u64,
    ) -> Option<Estimate> {
        let is_judged =
            |(Figure::Hop(case) | Figure::AboveOwnSolos(case), _): &Part| self.is_judged(*case);
        if !parts.iter().all(is_judged) {
            return self.over_rounds(&of_all(), stream);
        }
        let full = parts.iter().all(|(figure, _)| self.has_figure(*figure));
        full.then(|| self.full_speed(parts, launch_scatter)).flatten().or_else(|| {
            let figures: Vec<f64> = of_all().into_values().collect();
            let contended = Estimate::contended(&figures, self.confidence())?;
            Some(if self.is_not_alone(parts) { contended.not_alone() } else { contended })
        })
    }

    /// Whether others on the CPU are why one of the parts has no figure at full speed.
    fn is_not_alone(&self, parts: &[Part]) -> bool {
        parts.iter().any(|(figure, _)| self.is_figure_not_alone(*figure))
    }

    /// (hop(N) - hop(1)) / counted switches a hop, as parts. None where there is no solo or nothing
    /// switched.
    fn switch(&self, case: usize) -> Option<Vec<Part>> {
        let each = 1.0 / self.switches_per_hop(case)?;
        Some(match self.solo(case)? {
            Solo::Case(solo) => vec![(Figure::Hop(case), each), (Figure::Hop(solo), -each)],
            Solo::Own => vec![(Figure::AboveOwnSolos(case), each)],
        })
    }

    /// Counted switches a hop of the samples that have clean slices, or of all where none has: the
    /// mean over their rounds. None where nothing switched.
    pub(crate) fn switches_per_hop(&self, case: usize) -> Option<f64> {
        let of = |(switches, hops): &(u64, u64)| *switches as f64 / *hops as f64;
        let clean: Vec<f64> = self.slices(case)?.switches.values().map(of).collect();
        let all = || self.middle_by_round(case, Sample::switches_per_hop).into_values();
        let mean = mean(&clean).or_else(|| mean(&all().collect::<Vec<f64>>()));
        mean.filter(|per_hop| *per_hop > 0.0)
    }

    /// A sum of medians of clean slices, each times a factor. Cases are independent workers.
    fn full_speed(&self, parts: &[Part], launch_scatter: f64) -> Option<Estimate> {
        let (mut value, mut variance, mut rounds) = (0.0, 0.0, u32::MAX);
        // A solo ring may be the one of two rings: its errors are the same in both.
        let mut times: BTreeMap<Figure, f64> = BTreeMap::new();
        for (figure, factor) in parts {
            *times.entry(*figure).or_default() += factor;
        }
        for (figure, factor) in times {
            let pooled = self.pooled(figure)?;
            value += factor * pooled.value;
            variance += (factor * pooled.standard_error).powi(2);
            let errors = self.clocks(figure).into_iter().flatten();
            variance += errors
                .map(|(clock, times)| (factor * times * clock.error_ns()).powi(2))
                .sum::<f64>();
            rounds = rounds.min(pooled.rounds);
        }
        let confidence = self.confidence();
        Estimate::at_full_speed(value, variance.sqrt(), rounds, launch_scatter, confidence)
    }

    fn pooled(&self, figure: Figure) -> Option<Pooled> {
        let seed = |stream: u64, case: usize| self.seed((stream << 32) + self.rank(case));
        match figure {
            Figure::Hop(case) => Pooled::of(self.clean_hops(case)?, seed(5, case)),
            // A worker's memory is its own: each counts once, by its median.
            Figure::AboveOwnSolos(case) => {
                let medians = self.clean_above(case)?.into_iter();
                let workers = medians.map(|(round, median)| (round, vec![median])).collect();
                Pooled::of(&workers, seed(6, case))
            }
        }
    }
}

fn medians(by_round: &BTreeMap<u32, Vec<f64>>) -> Figures {
    by_round.iter().filter_map(|(round, all)| Some((*round, median(all)?))).collect()
}

/// One less the other, of the rounds that have both.
fn less(one: &Figures, other: &Figures) -> Figures {
    let less = |(round, figure): (&u32, &f64)| Some((*round, figure - other.get(round)?));
    one.iter().filter_map(less).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;

    use crate::estimate::Speed;
    use crate::placement::Placement;
    use crate::plan::Known;
    use crate::quote::NotQuotable;
    use crate::ring::{self, Counters, Event};
    use crate::speed::cut;

    /// Four rings: a solo one and one of two, twice.
    fn plan() -> Plan {
        let case = |members: u32, link: &str| ring::Case {
            link: link.into(),
            ..ring::Case::of_processes(members, Placement::Same { cpu: 1 })
        };
        Plan {
            seed: 7,
            ..Plan::of(
                Experiment::Ring,
                [case(1, "pipe"), case(2, "pipe"), case(1, "futex"), case(2, "futex")]
                    .map(crate::case::Case::Ring)
                    .to_vec(),
            )
        }
    }

    fn sample(case: usize, round: u32, hops: u64, elapsed_ns: u64, switches: (u64, u64)) -> Sample {
        let (voluntary, involuntary) = switches;
        Sample {
            case,
            round,
            sample: 0,
            laps: hops / if case % 2 == 0 { 1 } else { 2 },
            hops,
            elapsed_ns,
            counters: Counters { voluntary, involuntary, ..Counters::default() },
            steal_ns: None,
            setup_ns: 0,
            slices: None,
            triples: None,
            huge_page_bytes: None,
        }
    }

    fn above(samples: &[Sample]) -> Figures {
        Table::of(&plan(), samples, []).above_solo_by_round(1)
    }

    #[test]
    fn cost_per_switch_divides_by_counted_switches() {
        // Two switches a hop, voluntary and involuntary: (5000 - 1000) / 2.
        let all = [sample(0, 0, 100, 100_000, (0, 0)), sample(1, 0, 100, 500_000, (100, 100))];
        assert_eq!(above(&all), [(0, 2000.0)].into());
    }

    #[test]
    fn differences_keep_their_sign() {
        let all = [sample(0, 0, 100, 300_000, (0, 0)), sample(1, 0, 100, 200_000, (100, 0))];
        assert_eq!(above(&all), [(0, -1000.0)].into());
    }

    #[test]
    fn drift_common_to_a_round_drops_out_and_a_missing_partner_is_passed_over() {
        let round = |round: u32| {
            let drift = 1000 * u64::from(round) * 100;
            [
                sample(0, round, 100, 100_000 + drift, (0, 0)),
                sample(1, round, 100, 400_000 + drift, (100, 0)),
            ]
        };
        let mut all: Vec<Sample> = (0..2).flat_map(round).collect();
        all.push(sample(0, 2, 100, 1, (0, 0)));
        all.push(sample(1, 3, 100, 1, (100, 0)));
        assert_eq!(above(&all), [(0, 3000.0), (1, 3000.0)].into());
    }

    #[test]
    fn what_never_switched_has_no_cost_of_a_switch() {
        let all = [sample(0, 0, 100, 100_000, (0, 0)), sample(1, 0, 100, 400_000, (0, 0))];
        assert!(above(&all).is_empty());
        assert!(Table::of(&plan(), &all, []).above_solo_by_round(7).is_empty());
        // Neither have hops of nothing, which only a damaged file has.
        let none = [sample(0, 0, 0, 100, (0, 0)), sample(0, 1, 10, 0, (0, 0))];
        assert_eq!(Table::of(&plan(), &none, []).rounds(0), 0);
    }

    /// Ten rounds of all four rings: futex switches for 1000 ns more than pipe, each round drifts.
    fn rounds(count: u32) -> Vec<Sample> {
        let one = |round: u32| {
            let drift = 1_000_000 * u64::from(round % 3);
            [
                sample(0, round, 1000, drift + 1_000_000, (0, 0)),
                sample(1, round, 1000, drift + 4_000_000, (1000, 0)),
                sample(2, round, 1000, drift + 5_000_000, (0, 0)),
                sample(3, round, 1000, drift + 9_000_000, (500, 500)),
            ]
        };
        (0..count).flat_map(one).collect()
    }

    #[test]
    fn a_double_difference_is_paired_within_rounds_that_have_all_four() {
        let mut all = rounds(10);
        all.retain(|sample| (sample.case, sample.round) != (2, 3));
        let plan = plan();
        let found = Table::of(&plan, &all, []).difference(3, 1, 1).unwrap();
        assert_eq!((found.value, found.rounds, found.speed), (1000.0, 9, Speed::NotJudged));
        assert_eq!((found.low, found.high), (Some(1000.0), Some(1000.0)));
    }

    /// Every second slice runs on a shared core and takes 1.4 times as long; the figures are of the
    /// others.
    fn sliced(count: u32, is_clean: impl Fn(u32, u64) -> bool) -> Vec<Sample> {
        let cut = |plain: Sample| {
            let round = plain.round;
            let mut sample = cut(plain, 20, |index| is_clean(round, index));
            let slices = sample.slices.as_mut().unwrap();
            for (index, ns) in slices.elapsed_ns.iter_mut().enumerate() {
                *ns = if is_clean(round, index as u64) { *ns } else { *ns * 14 / 10 };
            }
            sample.elapsed_ns = slices.elapsed_ns.iter().sum();
            sample
        };
        let steady = |sample: Sample| {
            let drift = 1_000_000 * u64::from(sample.round % 3);
            Sample { elapsed_ns: sample.elapsed_ns - drift, ..sample }
        };
        rounds(count).into_iter().map(steady).map(cut).collect()
    }

    #[test]
    fn counts_are_those_of_clean_slices_above_the_ring_of_one() {
        let mut plan = plan();
        plan.batching.ring.events = vec![Event::Instructions, Event::PageFaults];
        let mut all = sliced(10, |_, index| index < 8);
        for sample in &mut all {
            let members = if sample.case % 2 == 0 { 1 } else { 2 };
            let laps = sample.laps;
            let slices = sample.slices.as_mut().unwrap();
            // Another guest's work makes more of them.
            let counts = |at: usize| {
                let a_hop = [5, 7][sample.case % 2] * if at < 8 { 1 } else { 9 };
                a_hop * members * slices.laps_of(at, laps)
            };
            let counts: Vec<u64> = (0..slices.elapsed_ns.len()).map(counts).collect();
            slices.events = vec![counts.clone(), counts];
            // Of one round not all is known.
            if sample.round == 3 {
                slices.events[0].pop();
            }
        }
        let table = Table::of(&plan, &all, []);
        let hop = table.events_per_hop(1, 0, 1).unwrap();
        assert_eq!((hop.value, hop.rounds, hop.speed), (7.0, 9, Speed::NotJudged));
        let switch = table.events_per_switch(1, 0, 1).unwrap();
        assert!((switch.value - 2.0).abs() < 1e-9 && switch.rounds == 9, "{switch:?}");
        assert_eq!(table.events_per_hop(1, 1, 1).unwrap().rounds, 10);
        assert_eq!((table.events_per_hop(1, 2, 1), table.events_per_switch(0, 0, 1)), (None, None));
        // Where too few are clean it is of all, and not to be quoted.
        let few = sliced(2, |_, index| index < 8);
        assert_eq!(Table::of(&plan, &few, []).events_per_hop(1, 0, 1), None);
        let mut few = all;
        few.retain(|sample| sample.round < 3);
        let of_all = Table::of(&plan, &few, []).events_per_hop(1, 0, 1).unwrap();
        assert!(of_all.value > 7.0 && of_all.speed == Speed::Contended, "{of_all:?}");
    }

    #[test]
    fn figures_are_those_of_clean_slices() {
        let all = sliced(10, |_, index| index < 8);
        let plan = plan();
        let table = Table::of(&plan, &all, []);
        let cost = table.above_solo(1, 1).unwrap();
        assert!((cost.value - 3000.0).abs() < 1e-6, "{cost:?}");
        assert_eq!((cost.speed, cost.rounds, cost.standard_error), (Speed::Full, 10, Some(0.0)));
        // Nothing scatters: what is left is the term for launches, 1.96 x 1 %.
        assert!((cost.relative_half_width().unwrap() - 0.019_599_64).abs() < 1e-6, "{cost:?}");
        let hop = table.hop(1, 1).unwrap();
        assert!((hop.value - 4000.0).abs() < 1e-6 && hop.speed == Speed::Full, "{hop:?}");
        let more = table.difference(3, 1, 1).unwrap();
        assert!((more.value - 1000.0).abs() < 1e-6 && more.speed == Speed::Full, "{more:?}");
        // All slices together say something else, which stands beside.
        let all = table.above_solo_of_all(1, Sample::ns_per_hop);
        assert!(all.values().all(|cost| *cost > 3600.0), "{all:?}");
        assert!(table.above_solo_by_round(1).values().all(|cost| (*cost - 3000.0).abs() < 1e-6));
    }

    /// Of the clean slices of a few rounds, from the thirtieth of each ring on; never to be quoted.
    #[test]
    fn a_figure_so_far_is_of_clean_slices_and_has_no_interval() {
        let so_far = |rounds: u32, clean: u64| {
            let all = sliced(rounds, |_, index| index < clean);
            Table::of(&plan(), &all, []).above_solo_so_far(1)
        };
        let found = so_far(3, 10).unwrap();
        assert!((found.value - 3000.0).abs() < 1e-6, "{found:?}");
        assert_eq!((found.rounds, found.interval()), (3, None));
        assert_eq!(found.quote_cost(), Err(NotQuotable::TooFewRounds(3)));
        assert_eq!(so_far(3, 9), None, "27 slices");
        assert_eq!(so_far(8, 10), None, "there is a figure with an interval");
        // Not where others had turns beside it.
        let mut beside = sliced(3, |_, _| true);
        for sample in &mut beside {
            let slices = sample.slices.as_mut().unwrap();
            slices.cpu_ns = slices.elapsed_ns.clone();
            slices.elapsed_ns[7] += if sample.case == 0 { 4_000_000 } else { 0 };
        }
        assert_eq!(Table::of(&plan(), &beside, []).above_solo_so_far(1), None);
    }

    /// Nothing scatters within the launch: what is left is the term for launches, 1.96 x 5 %.
    #[test]
    fn a_difference_scatters_between_launches_as_the_ring_that_scatters_more() {
        let all = sliced(10, |_, _| true);
        let mut plan = plan();
        let known = [0.01, 0.02, 0.01, 0.05]
            .map(|scatter| Known { launch_scatter: Some(scatter), ..Known::default() });
        plan.reference.cases = known.to_vec();
        let table = Table::of(&plan, &all, []);
        for (one, other) in [(3, 1), (1, 3)] {
            let half = table.difference(one, other, 1).unwrap().relative_half_width().unwrap();
            assert!((half - 0.097_998_2).abs() < 1e-6, "{one} less {other}: {half}");
        }
    }

    /// 30 clean slices of each kind, in 8 rounds, 5 % of all: one less of any, and there is no
    /// interval.
    #[test]
    fn too_few_clean_slices_give_the_contended_figure_without_an_interval() {
        let speed = |rounds: u32, is_clean: &dyn Fn(u32, u64) -> bool| {
            let all = sliced(rounds, is_clean);
            let plan = plan();
            let cost = Table::of(&plan, &all, []).above_solo(1, 1).unwrap();
            assert_eq!(cost.interval().is_some(), cost.speed == Speed::Full, "{cost:?}");
            assert_eq!(cost.resolved, cost.speed == Speed::Full);
            cost.speed
        };
        assert_eq!(speed(8, &|_, index| index < 4), Speed::Full);
        assert_eq!(speed(7, &|_, index| index < 10), Speed::Contended, "7 rounds");
        assert_eq!(speed(8, &|_, index| index < 3), Speed::Contended, "24 slices");
        assert_eq!(
            speed(8, &|round, index| round > 0 && index < 10),
            Speed::Contended,
            "in 7 rounds"
        );
        assert_eq!(speed(40, &|_, index| index < 1), Speed::Full, "5 %");
        assert_eq!(speed(40, &|round, index| round > 7 && index < 1), Speed::Contended, "4 %");
    }

    /// Others had a turn in each sample of the solo, and none in the ring: it had just slept, and
    /// had the CPU for long.
    #[test]
    fn whoever_was_beside_the_solo_was_beside_its_ring() {
        let mut all = sliced(10, |_, _| true);
        for sample in &mut all {
            let slices = sample.slices.as_mut().unwrap();
            slices.cpu_ns = slices.elapsed_ns.clone();
            if sample.case == 0 {
                slices.elapsed_ns[7] += 4_000_000;
            }
        }
        let plan = plan();
        let table = Table::of(&plan, &all, []);
        assert!(
            !table.slices(1).unwrap().is_not_alone() && table.slices(0).unwrap().is_not_alone()
        );
        assert_eq!(table.hop(1, 1).unwrap().speed, Speed::NotAlone);
        assert_eq!(table.above_solo(1, 1).unwrap().speed, Speed::NotAlone);
        assert_eq!(table.above_solo(3, 1).unwrap().speed, Speed::Full, "another link, alone");
    }

    #[test]
    fn the_half_without_quanta_keeps_the_other_from_being_judged() {
        let mut all = sliced(10, |_, _| true);
        all.iter_mut().filter(|sample| sample.case == 0).for_each(|sample| sample.slices = None);
        let plan = plan();
        let table = Table::of(&plan, &all, []);
        assert_eq!(table.above_solo(1, 1).unwrap().speed, Speed::NotJudged);
        assert_eq!(table.hop(1, 1).unwrap().speed, Speed::Full);
        assert_eq!(table.above_solo(3, 1).unwrap().speed, Speed::Full);
    }
}
