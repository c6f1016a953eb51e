//! Figures of rings: within a round, or of all clean slices of a run.

mod as_it_was;
mod events;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use rundata::bounds::saturating_sum;
use rundata::plan::{MIN_ROUNDS, Plan};
use rundata::ring::{self, RingSample, Triples};
use stats::{Elasticity, FewFigures, PooledMedian, PriorScatter, mad_sigma, mean, median};

use super::{Figures, Table};
use crate::estimate::{Estimate, Speed};
use crate::speed::{
    CaseClocks, CaseSlices, ClockModel, SpeedLevel, clean_above, clean_hops, clean_hops_in_rows,
    elasticity_of_sum, leader_cpus, mostly_clean_above,
};
use as_it_was::SliceTime;

/// Samples of one case in one round.
pub(super) type Batch<'a> = Vec<&'a RingSample>;

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

/// How far a figure is supplied with clean slices, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CleanSupply {
    /// There is no figure at full speed.
    TooFew,
    /// Full speed was seen in few rounds.
    FewRounds,
    /// Full speed was seen in many rounds.
    Enough,
}

/// A hop at full speed.
#[derive(Clone, Copy, Debug)]
pub(super) struct FullHop {
    pub(super) ns: f64,
    /// Standard error within the run.
    pub(super) error: f64,
    /// Degrees of freedom of that error.
    pub(super) freedom: f64,
    /// tau: the scatter between launches, as a share.
    pub(super) scatter: f64,
    pub(super) rounds: u32,
    /// Whether full speed was seen in few rounds only.
    pub(super) is_few: bool,
}

/// How hops at full speed scatter between rounds where no launches say it, as a share
/// (docs/validation.md).
const HOP_ROUNDS: f64 = 0.01;
/// The same of what a hop takes above the members' own solos. It is assumed: each round has memory
/// of its own.
const ABOVE_ROUNDS: f64 = 0.02;
/// Degrees of freedom of such an assumption.
const ASSUMED_FREEDOM: f64 = 4.0;
/// Degrees of freedom of a scatter that several launches have shown.
const KNOWN_FREEDOM: f64 = 12.0;

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
    pub fn samples(&self, case: usize) -> impl Iterator<Item = &'a RingSample> + '_ {
        self.batches(case).flat_map(|(_, batch)| batch.iter().copied())
    }

    /// Number of rounds in which a case was measured.
    pub fn rounds(&self, case: usize) -> u32 {
        self.batches(case).count() as u32
    }

    /// Hops of a case in each round.
    pub fn hops_by_round(&self, case: usize) -> Vec<(u32, u64)> {
        let hops = |batch: &Batch| saturating_sum(batch.iter().map(|sample| sample.hops));
        self.batches(case).map(|(round, batch)| (round, hops(batch))).collect()
    }

    /// How the times that a figure is made of go with the core's clock; absent where the run does
    /// not tell.
    fn clocks(&self, figure: Figure) -> Option<Vec<(ClockModel, f64)>> {
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
        of: impl Fn(&ring::RingCase, &Batch, &SpeedLevel) -> Vec<f64>,
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
        self.supply(figure) == CleanSupply::Enough
    }

    /// Tells how far a figure is supplied with clean slices.
    fn supply(&self, figure: Figure) -> CleanSupply {
        let (Figure::Hop(case) | Figure::AboveOwnSolos(case)) = figure;
        let Some(slices) = self.slices(case) else { return CleanSupply::TooFew };
        let (is_enough, is_few) = match figure {
            Figure::Hop(_) => (slices.has_full_speed(), slices.has_few_rounds()),
            Figure::AboveOwnSolos(_) => {
                (slices.has_full_speed_above(), slices.has_few_rounds_above())
            }
        };
        let is_alone = !self.is_figure_not_alone(figure);
        match (is_enough && is_alone, is_few && is_alone) {
            (true, _) => CleanSupply::Enough,
            (false, true) => CleanSupply::FewRounds,
            (false, false) => CleanSupply::TooFew,
        }
    }

    /// Whether full speed was seen for a case, in many rounds or in few.
    pub fn has_seen_full_speed(&self, case: usize) -> bool {
        let figure = match self.solo(case) {
            Some(Solo::Own) => Figure::AboveOwnSolos(case),
            _ => Figure::Hop(case),
        };
        self.supply(figure) != CleanSupply::TooFew
    }

    /// The figures of few rounds: the median of each round's clean slices that stand in rows, in
    /// nanoseconds.
    fn few_by_round(&self, figure: Figure) -> Figures {
        let (Figure::Hop(case) | Figure::AboveOwnSolos(case)) = figure;
        let Some(clocks) = self.rings.get(case).map(|ring| ring.clocks) else {
            return Figures::new();
        };
        let figures = match figure {
            Figure::Hop(_) => self.of_clean(case, |ring, batch, level| {
                clean_hops_in_rows(ring, batch, level, clocks.hop.as_ref())
            }),
            Figure::AboveOwnSolos(_) => self.of_clean(case, |ring, batch, level| {
                mostly_clean_above(ring, batch, level, clocks.above())
            }),
        };
        figures.map(|figures| medians(&figures)).unwrap_or_default()
    }

    /// How a figure of this size scatters between rounds, as launches have shown it or as is
    /// assumed.
    fn round_scatter(&self, figure: Figure, size: f64) -> PriorScatter {
        let (Figure::Hop(case) | Figure::AboveOwnSolos(case)) = figure;
        let known = self.plan.reference.known_of(case);
        let prior = |share: f64, freedom| PriorScatter { deviation: share * size.abs(), freedom };
        let (share, assumed) = match figure {
            Figure::Hop(_) => (known.hop_round_scatter.or(known.round_scatter), HOP_ROUNDS),
            Figure::AboveOwnSolos(_) => (known.round_scatter, ABOVE_ROUNDS),
        };
        if let Some(share) = share {
            return prior(share, KNOWN_FREEDOM);
        }
        if matches!(figure, Figure::Hop(_)) {
            return prior(assumed, ASSUMED_FREEDOM);
        }
        // With a working set workers differ by their memory, whoever shares the core.
        let all: Vec<f64> =
            self.figure_as_it_was(figure, SliceTime::Elapsed).into_values().collect();
        let share = mad_sigma(&all).zip(median(&all)).map(|(sigma, middle)| sigma / middle.abs());
        let share = share.filter(|share| share.is_finite()).unwrap_or(0.0);
        prior(share.clamp(assumed, 1.0), ASSUMED_FREEDOM)
    }

    /// A figure of clean slices and how far it is known, of many rounds or of few.
    fn clean_figure(&self, figure: Figure) -> Option<FewFigures> {
        match self.supply(figure) {
            CleanSupply::TooFew => None,
            CleanSupply::FewRounds => {
                let figures: Vec<f64> = self.few_by_round(figure).into_values().collect();
                FewFigures::from_rounds(&figures, self.round_scatter(figure, median(&figures)?))
            }
            CleanSupply::Enough => {
                let PooledMedian { value, standard_error, rounds } = self.pooled(figure)?;
                let freedom = f64::from(rounds) - 1.0;
                Some(FewFigures { value, standard_error, freedom, rounds })
            }
        }
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
    fn middles(&self, case: usize, of: impl Fn(&RingSample) -> Option<f64>) -> Figures {
        let figures = |batch: &Batch| batch.iter().filter_map(|s| of(s)).collect::<Vec<f64>>();
        let middle = |(round, batch): (u32, &Batch)| Some((round, median(&figures(batch))?));
        self.batches(case).filter_map(middle).collect()
    }

    /// A figure of one case by rounds: the median of the round's samples.
    pub fn middle_by_round(&self, case: usize, of: fn(&RingSample) -> f64) -> Figures {
        self.middles(case, |sample| Some(of(sample)))
    }

    /// The same of the samples that were timed as the machine was found: rounds without one have no
    /// figure. Of a case that is not judged of all samples: waiting changed nothing in it that
    /// anybody knows of.
    pub fn as_found_by_round(&self, case: usize, of: fn(&RingSample) -> f64) -> Figures {
        let any = !self.is_judged(case);
        self.middles(case, |sample| (any || sample.is_as_found()).then(|| of(sample)))
    }

    /// Time of a hop by rounds, as the estimates take it: the median of the round's clean slices
    /// where the case was judged and has enough of them, else of its samples.
    pub fn hop_by_round(&self, case: usize) -> Figures {
        match self.supply(Figure::Hop(case)) {
            CleanSupply::Enough => self.clean_hops(case).map(medians).unwrap_or_default(),
            CleanSupply::FewRounds => self.few_by_round(Figure::Hop(case)),
            CleanSupply::TooFew => self.as_found_by_round(case, RingSample::ns_per_hop),
        }
    }

    /// Cost of a counted switch above the solo ring, by the rounds in which both were measured and
    /// in which the ring switched at all. By real time of clean slices where there are enough of
    /// them.
    pub fn above_solo_by_round(&self, case: usize) -> Figures {
        let is_seen = self.has_seen_full_speed(case);
        match self.solo(case) {
            Some(Solo::Case(solo)) if is_seen && self.has_seen_full_speed(solo) => {
                self.per_switch(case, less(&self.hop_by_round(case), &self.hop_by_round(solo)))
            }
            Some(Solo::Own) if self.has_full_speed(case) => {
                self.per_switch(case, self.clean_above(case).unwrap_or_default())
            }
            Some(Solo::Own) if is_seen => {
                self.per_switch(case, self.few_by_round(Figure::AboveOwnSolos(case)))
            }
            _ => self.above_solo_of_all(case, RingSample::ns_per_hop),
        }
    }

    /// The same of all samples, at whatever speed. `of` is the cost of a hop: by real or by CPU
    /// time. The members' own solos are known by real time only.
    pub fn above_solo_of_all(&self, case: usize, of: fn(&RingSample) -> f64) -> Figures {
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

    /// Returns the CPU time of a switch above the solo ring by rounds, of all samples.
    pub(crate) fn cpu_above_solo_by_round(&self, case: usize) -> Figures {
        self.above_solo_of_all(case, RingSample::cpu_ns_per_hop)
    }

    /// Returns the CPU time of a hop by rounds, of the samples timed as the machine was found.
    pub(crate) fn cpu_hop_by_round(&self, case: usize) -> Figures {
        self.as_found_by_round(case, RingSample::cpu_ns_per_hop)
    }

    /// Returns the CPU time of a hop, the median over rounds.
    pub(crate) fn cpu_hop(&self, case: usize) -> Option<Estimate> {
        // A random stream of its own, apart from those of summaries.
        let stream = (7 << 32) + 4 * self.rank(case) + 3;
        self.over_rounds(&self.cpu_hop_by_round(case), stream)
    }

    /// Costs of a hop by rounds / the switches that the kernel counted in each.
    fn per_switch(&self, case: usize, hops: Figures) -> Figures {
        let of = |(round, above): (u32, f64)| {
            let batch = self.rings.get(case)?.rounds.get(&round)?;
            let switches = saturating_sum(batch.iter().map(|s| s.switches()));
            let hops = saturating_sum(batch.iter().map(|s| s.hops));
            (switches > 0).then_some((round, above * hops as f64 / switches as f64))
        };
        hops.into_iter().filter_map(of).collect()
    }

    /// Time of a hop.
    pub fn hop(&self, case: usize, stream: u64) -> Option<Estimate> {
        let of_all = || self.as_found_by_round(case, RingSample::ns_per_hop);
        let scatter = self.plan.reference.scatter_of(case);
        self.sum_of(&[(Figure::Hop(case), 1.0)], scatter, of_all, stream)
    }

    /// Cost of a counted switch above the solo ring. Absent where there is no solo, or nothing
    /// switched.
    pub fn above_solo(&self, case: usize, stream: u64) -> Option<Estimate> {
        let of_all = || self.above_solo_of_all(case, RingSample::ns_per_hop);
        self.sum_of(&self.switch(case)?, self.plan.reference.scatter_of(case), of_all, stream)
    }

    /// The cost of a switch of one ring less that of another, each above its solo: what a working
    /// set or registers in use add. By the rounds in which both were measured and switched, or of
    /// all clean slices.
    pub fn difference(&self, one: usize, other: usize, stream: u64) -> Option<Estimate> {
        let of_all = |case: usize| self.above_solo_of_all(case, RingSample::ns_per_hop);
        let others = self.switch(other)?.into_iter().map(|(figure, times)| (figure, -times));
        let parts: Vec<Part> = self.switch(one)?.into_iter().chain(others).collect();
        let scatter = |case| self.plan.reference.scatter_of(case);
        let scatter = f64::max(scatter(one), scatter(other));
        self.sum_of(&parts, scatter, || less(&of_all(one), &of_all(other)), stream)
    }

    /// Any figure by rounds: the median over rounds with its interval. At no particular speed.
    pub fn over_rounds(&self, by_round: &Figures, stream: u64) -> Option<Estimate> {
        let figures: Vec<f64> = by_round.values().copied().collect();
        Estimate::over(&figures, MIN_ROUNDS, self.confidence(), self.seed(stream))
    }

    pub(super) fn confidence(&self) -> f64 {
        self.plan.stopping.confidence
    }

    fn seed(&self, stream: u64) -> u64 {
        self.plan.seed.wrapping_add(stream)
    }

    /// A hop of a case at full speed, seen in many rounds or in few. None where it has too few clean
    /// slices.
    pub(super) fn full_hop(&self, case: usize) -> Option<FullHop> {
        let figure = Figure::Hop(case);
        let clean = self.clean_figure(figure)?;
        let clocks = self.clock_variance(figure, 1.0);
        Some(FullHop {
            ns: clean.value,
            error: (clean.standard_error.powi(2) + clocks).sqrt(),
            freedom: clean.freedom,
            scatter: self.plan.reference.scatter_of(case),
            rounds: clean.rounds,
            is_few: self.supply(figure) == CleanSupply::FewRounds,
        })
    }

    /// Whether others on the CPU are why a hop has no figure at full speed.
    pub(super) fn is_hop_not_alone(&self, case: usize) -> bool {
        self.is_figure_not_alone(Figure::Hop(case))
    }

    /// At full speed where all figures that it is made of have clean slices, in many rounds or in
    /// few; on a shared core where they were judged and have not; else over rounds, not judged.
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
        let supply = parts.iter().map(|(figure, _)| self.supply(*figure)).min()?;
        let clean = match supply {
            CleanSupply::Enough => self.full_speed(parts, launch_scatter),
            CleanSupply::FewRounds => self.few_rounds(parts, launch_scatter),
            CleanSupply::TooFew => None,
        };
        // What few rounds leave open may be more than what sharing the core adds.
        let is_open = clean.is_none_or(|of| of.speed == Speed::FewRounds && !of.resolved);
        let as_it_was = is_open.then(|| self.as_it_was(parts)).flatten();
        self.told(as_it_was.filter(|of| clean.is_none() || of.resolved).or(clean))
    }

    /// An estimate as the plan has it told: with `--strict` nothing but full speed in many rounds.
    pub(super) fn told(&self, estimate: Option<Estimate>) -> Option<Estimate> {
        let is_strict = self.plan.reference.strict;
        estimate.map(|estimate| if is_strict { estimate.strict() } else { estimate })
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
        let all = || self.middle_by_round(case, RingSample::switches_per_hop).into_values();
        let mean = mean(&clean).or_else(|| mean(&all().collect::<Vec<f64>>()));
        mean.filter(|per_hop| *per_hop > 0.0)
    }

    /// A sum of medians of clean slices, each times a factor. Cases are independent workers.
    fn full_speed(&self, parts: &[Part], launch_scatter: f64) -> Option<Estimate> {
        let sum = self.clean_sum(parts)?;
        let FewFigures { value, standard_error, rounds, .. } = sum;
        let confidence = self.confidence();
        Estimate::at_full_speed(value, standard_error, rounds, launch_scatter, confidence)
    }

    /// The same of few rounds.
    fn few_rounds(&self, parts: &[Part], launch_scatter: f64) -> Option<Estimate> {
        Estimate::in_few_rounds(self.clean_sum(parts)?, launch_scatter, self.confidence())
    }

    /// A sum of figures of clean slices and its error within the run.
    fn clean_sum(&self, parts: &[Part]) -> Option<FewFigures> {
        let (mut value, mut variance) = (0.0, 0.0);
        let (mut freedom, mut rounds) = (f64::INFINITY, u32::MAX);
        // A solo ring may be the one of two rings: its errors are the same in both.
        let mut times: BTreeMap<Figure, f64> = BTreeMap::new();
        for (figure, factor) in parts {
            *times.entry(*figure).or_default() += factor;
        }
        for (figure, factor) in times {
            let clean = self.clean_figure(figure)?;
            value += factor * clean.value;
            variance += (factor * clean.standard_error).powi(2);
            variance += self.clock_variance(figure, factor);
            freedom = freedom.min(clean.freedom);
            rounds = rounds.min(clean.rounds);
        }
        Some(FewFigures { value, standard_error: variance.sqrt(), freedom, rounds })
    }

    /// The variance that the clocks of a figure leave open, of so many times the figure.
    fn clock_variance(&self, figure: Figure, factor: f64) -> f64 {
        let errors = self.clocks(figure).into_iter().flatten();
        errors.map(|(clock, times)| (factor * times * clock.error_ns()).powi(2)).sum()
    }

    fn pooled(&self, figure: Figure) -> Option<PooledMedian> {
        let seed = |stream: u64, case: usize| self.seed((stream << 32) + self.rank(case));
        match figure {
            Figure::Hop(case) => PooledMedian::from_rounds(self.clean_hops(case)?, seed(5, case)),
            // A worker's memory is its own: each counts once, by its median.
            Figure::AboveOwnSolos(case) => {
                let medians = self.clean_above(case)?.into_iter();
                let workers = medians.map(|(round, median)| (round, vec![median])).collect();
                PooledMedian::from_rounds(&workers, seed(6, case))
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
    use rundata::experiment::Experiment;

    use crate::estimate::Speed;
    use crate::quote::NotQuotable;
    use crate::speed::cut;
    use rundata::placement::Placement;
    use rundata::plan::CaseHistory;
    use rundata::ring::{self, CountedEvent, Counters};

    /// The ratio of the two loops on an unshared core, as [`cut`] makes them.
    const UNSHARED_RATIO: f64 = 5920.0 / 5860.0;

    /// Four rings: a solo one and one of two, twice.
    fn plan() -> Plan {
        let case = |members: u32, link: &str| ring::RingCase {
            link: link.into(),
            ..ring::RingCase::of_processes(members, Placement::Same { cpu: 1 })
        };
        Plan {
            seed: 7,
            ..Plan::from_cases(
                Experiment::Ring,
                [case(1, "pipe"), case(2, "pipe"), case(1, "futex"), case(2, "futex")]
                    .map(rundata::case::Case::Ring)
                    .to_vec(),
            )
        }
    }

    fn sample(
        case: usize,
        round: u32,
        hops: u64,
        elapsed_ns: u64,
        switches: (u64, u64),
    ) -> RingSample {
        let (voluntary, involuntary) = switches;
        RingSample {
            case,
            round,
            laps: hops / if case % 2 == 0 { 1 } else { 2 },
            hops,
            elapsed_ns,
            counters: Counters { voluntary, involuntary, ..Counters::default() },
            ..RingSample::default()
        }
    }

    fn above(samples: &[RingSample]) -> Figures {
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
        let mut all: Vec<RingSample> = (0..2).flat_map(round).collect();
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
    fn rounds(count: u32) -> Vec<RingSample> {
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
    fn sliced(count: u32, is_clean: impl Fn(u32, u64) -> bool) -> Vec<RingSample> {
        let cut = |plain: RingSample| {
            let round = plain.round;
            let mut sample = cut(plain, 20, |index| is_clean(round, index));
            let slices = sample.slices.as_mut().unwrap();
            for (index, ns) in slices.elapsed_ns.iter_mut().enumerate() {
                *ns = if is_clean(round, index as u64) { *ns } else { *ns * 14 / 10 };
            }
            sample.elapsed_ns = slices.elapsed_ns.iter().sum();
            sample
        };
        let steady = |sample: RingSample| {
            let drift = 1_000_000 * u64::from(sample.round % 3);
            RingSample { elapsed_ns: sample.elapsed_ns - drift, ..sample }
        };
        rounds(count).into_iter().map(steady).map(cut).collect()
    }

    #[test]
    fn counts_are_those_of_clean_slices_above_the_ring_of_one() {
        let mut plan = plan();
        plan.batching.ring.events = vec![CountedEvent::Instructions, CountedEvent::PageFaults];
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
        let all = table.above_solo_of_all(1, RingSample::ns_per_hop);
        assert!(all.values().all(|cost| *cost > 3600.0), "{all:?}");
        assert!(table.above_solo_by_round(1).values().all(|cost| (*cost - 3000.0).abs() < 1e-6));
    }

    /// A ring of two and its solo of so many rounds, of whose 20 slices the first `clean` are.
    fn cost_of(rounds: u32, clean: u64) -> Estimate {
        let all = sliced(rounds, |_, index| index < clean);
        Table::of(&plan(), &all, []).above_solo(1, 1).unwrap()
    }

    #[test]
    fn full_speed_in_few_rounds_has_an_interval_from_one_round_on() {
        // Three rounds of ten clean slices in a row: 30 of each ring.
        let found = cost_of(3, 10);
        assert_eq!((found.speed, found.rounds), (Speed::FewRounds, 3));
        assert!((found.value - 3000.0).abs() < 1e-6, "{found:?}");
        assert!(found.quote_cost().is_ok());
        // Nothing scatters: the prior alone is left, 1 % of each hop (4,000 and 1,000 ns), known to
        // 6 degrees of freedom, 4 of which are the prior's; the middle of three has 0.4487 of their
        // variance.
        let hops = (4000.0_f64.powi(2) + 1000.0_f64.powi(2)).sqrt();
        let error = 0.01 * hops * (4.0 / 6.0 * 0.4487_f64).sqrt();
        let half = (2.4469 * error).hypot(1.96 * 0.01 * 3000.0);
        let width = found.high.unwrap() - found.low.unwrap();
        assert!((width / (2.0 * half) - 1.0).abs() < 1e-3, "{found:?}: {half}");
        // One less of any is none.
        assert_eq!(cost_of(3, 9).speed, Speed::Contended, "27 slices");
        assert_eq!(cost_of(20, 7).speed, Speed::Full, "140 slices of 20 rounds");
        assert_eq!(cost_of(7, 7).speed, Speed::Contended, "rows of seven are luck");
        assert_eq!(cost_of(7, 8).speed, Speed::FewRounds, "rows of eight");
    }

    /// Rounds scatter by what earlier launches say, known to 12 degrees of freedom.
    #[test]
    fn launches_say_how_rounds_scatter() {
        let all = sliced(3, |_, index| index < 10);
        let width = |scatter: f64| {
            let known = CaseHistory { hop_round_scatter: Some(scatter), ..CaseHistory::default() };
            let mut plan = plan();
            plan.reference.cases = vec![known; 4];
            let cost = Table::of(&plan, &all, []).above_solo(1, 1).unwrap();
            cost.standard_error.unwrap()
        };
        assert!((width(0.02) / width(0.01) - 2.0).abs() < 1e-9);
    }

    /// All slices ran on a shared core and took 1.4 times as long.
    #[test]
    fn as_the_core_was_has_an_interval_and_a_bound() {
        let all = sliced(9, |_, _| false);
        let mut plan = plan();
        plan.reference.unshared_ratio = Some(UNSHARED_RATIO);
        let table = Table::of(&plan, &all, []);
        let cost = table.above_solo(1, 1).unwrap();
        assert_eq!((cost.speed, cost.rounds), (Speed::Contended, 9));
        assert!((cost.value - 1.4 * 3000.0).abs() < 1e-6, "{cost:?}");
        let (low, high) = (cost.low.unwrap(), cost.high.unwrap());
        assert!(low < cost.value && cost.value < high && low > 0.85 * cost.value, "{cost:?}");
        assert_eq!(cost.quote_cost(), Err(NotQuotable::NotAtFullSpeed));
        assert_eq!(cost.answer_cost().map(|of| of.value()), Ok(cost.value));
        // Sharing never makes faster.
        assert!(cost.at_most.is_some_and(|most| most >= 3000.0), "{cost:?}");
        // Silence on request.
        let mut plan = plan.clone();
        plan.reference.strict = true;
        let strict = Table::of(&plan, &all, []).above_solo(1, 1).unwrap();
        assert_eq!((strict.interval(), strict.at_most), (None, None));
        assert_eq!(strict.answer_cost(), Err(NotQuotable::NotAtFullSpeed));
    }

    /// The samples of the two rings that waited for nothing lie in different rounds.
    #[test]
    fn figures_of_different_rounds_are_subtracted_as_independent_ones() {
        let mut all = sliced(9, |_, _| false);
        all.retain(|sample| (sample.case < 2) == (sample.round < 4));
        let mut plan = plan();
        plan.reference.unshared_ratio = Some(UNSHARED_RATIO);
        let table = Table::of(&plan, &all, []);
        let one = table.above_solo(3, 1).unwrap();
        let other = table.above_solo(1, 1).unwrap();
        let difference = table.difference(3, 1, 1).unwrap();
        assert_eq!(difference.speed, Speed::Contended);
        assert!((difference.value - (one.value - other.value)).abs() < 1e-6, "{difference:?}");
        assert_eq!(difference.rounds, 4);
        let error = difference.standard_error.unwrap();
        assert!(error > one.standard_error.unwrap() && error.is_finite(), "{difference:?}");
    }

    /// A solo that was shared while its ring was not is 1.4 times too slow: what is taken off is
    /// less than that.
    #[test]
    fn a_solo_that_was_shared_more_than_its_ring_keeps_the_bound_above() {
        let mut all = sliced(9, |_, _| false);
        for sample in all.iter_mut().filter(|sample| sample.case == 1) {
            let slices = sample.slices.as_mut().unwrap();
            for quantum in 0..slices.latency_ns.len() {
                // Nearly unshared, and not clean: 3 % off.
                slices.throughput_ns[quantum] = slices.latency_ns[quantum] * 104 / 100;
            }
        }
        let mut plan = plan();
        plan.reference.unshared_ratio = Some(UNSHARED_RATIO);
        let cost = Table::of(&plan, &all, []).above_solo(1, 1).unwrap();
        assert_eq!(cost.speed, Speed::Contended);
        let ring_alone = 1.4 * 4000.0;
        assert!(cost.at_most.unwrap() > ring_alone - 1.4 * 1000.0, "{cost:?}");
    }

    /// Others had a turn in each slice of the ring: by the members' CPU time.
    #[test]
    fn beside_tasks_that_were_always_there_it_is_by_cpu_time() {
        let mut all = sliced(9, |_, _| true);
        for sample in &mut all {
            let slices = sample.slices.as_mut().unwrap();
            slices.cpu_ns = slices.elapsed_ns.clone();
            slices.elapsed_ns.iter_mut().for_each(|ns| *ns += 1_000_000);
        }
        let plan = plan();
        let cost = Table::of(&plan, &all, []).above_solo(1, 1).unwrap();
        assert_eq!(cost.speed, Speed::CpuTime);
        assert!((cost.value - 3000.0).abs() < 1e-6, "{cost:?}");
        assert_eq!(cost.quote_cost(), Err(NotQuotable::NotAlone));
        assert!(cost.answer_cost().unwrap().time().ends_with(", by CPU time)"));
    }

    /// Nothing scatters within the launch: what is left is the term for launches, 1.96 x 5 %.
    #[test]
    fn a_difference_scatters_between_launches_as_the_ring_that_scatters_more() {
        let all = sliced(10, |_, _| true);
        let mut plan = plan();
        let known = [0.01, 0.02, 0.01, 0.05]
            .map(|scatter| CaseHistory { launch_scatter: Some(scatter), ..CaseHistory::default() });
        plan.reference.cases = known.to_vec();
        let table = Table::of(&plan, &all, []);
        for (one, other) in [(3, 1), (1, 3)] {
            let half = table.difference(one, other, 1).unwrap().relative_half_width().unwrap();
            assert!((half - 0.097_998_2).abs() < 1e-6, "{one} less {other}: {half}");
        }
    }

    /// 30 clean slices of each kind, in 8 rounds, 5 % of all: one less of any, and full speed was
    /// seen in few rounds at most.
    #[test]
    fn too_few_clean_slices_give_a_figure_of_few_rounds_or_as_the_core_was() {
        let speed = |rounds: u32, is_clean: &dyn Fn(u32, u64) -> bool| {
            let all = sliced(rounds, is_clean);
            let plan = plan();
            let cost = Table::of(&plan, &all, []).above_solo(1, 1).unwrap();
            assert_eq!(cost.quote_cost().is_ok(), cost.speed.is_full(), "{cost:?}");
            cost.speed
        };
        assert_eq!(speed(8, &|_, index| index < 4), Speed::Full);
        assert_eq!(speed(7, &|_, index| index < 10), Speed::FewRounds, "7 rounds");
        assert_eq!(speed(8, &|_, index| index < 3), Speed::Contended, "24 slices");
        assert_eq!(
            speed(8, &|round, index| round > 0 && index < 10),
            Speed::FewRounds,
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
        assert_eq!(table.hop(1, 1).unwrap().speed, Speed::CpuTime);
        assert_eq!(table.above_solo(1, 1).unwrap().speed, Speed::CpuTime);
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
