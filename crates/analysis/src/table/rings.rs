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
pub(super) use as_it_was::SliceTime;

/// Samples of one case in one round.
pub(super) type Batch<'a> = Vec<&'a RingSample>;

/// Figures of slices by the number of their round.
pub(super) type SlicesByRound = BTreeMap<u32, Vec<f64>>;

/// Samples and solo reference of one ring case; empty for trials.
#[derive(Debug, Default)]
pub(super) struct RingSamples<'a> {
    pub(super) rounds: BTreeMap<u32, Batch<'a>>,
    pub(super) solo: Option<SoloReference>,
    pub(super) slices: CaseSlices,
    pub(super) clocks: CaseClocks,
    /// Hops of clean slices, computed when they are first needed.
    pub(super) clean: OnceLock<Option<SlicesByRound>>,
}

/// The time that is subtracted from the hop of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SoloReference {
    /// A hop of a ring of one, which is a case of its own.
    Case(usize),
    /// The solos of the members, in the same worker on the same memory.
    Members,
}

impl SoloReference {
    /// Returns the reference of a case; absent for a solo ring and without any solo. `solos` are
    /// those of the plan.
    pub(super) fn of_case(plan: &Plan, solos: &[usize], case: usize) -> Option<Self> {
        // Links whose members cannot be alone in their worker have a case for the solo.
        match plan.solo_among(solos, case) {
            Some(solo) if solo != case => return Some(Self::Case(solo)),
            _ => {}
        }
        let has_solos = plan.batching.ring.triples.is_some() && plan.ring(case)?.members > 1;
        if has_solos { Some(Self::Members) } else { None }
    }
}

/// A figure of clean slices, with the number of its case. Estimates are sums of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum RingFigure {
    /// Time of a hop.
    Hop(usize),
    /// Time of a hop above the members' own solos.
    AboveMemberSolos(usize),
}

impl RingFigure {
    fn case(self) -> usize {
        let (Self::Hop(case) | Self::AboveMemberSolos(case)) = self;
        case
    }
}

/// A figure and the factor by which it is multiplied in a sum.
#[derive(Clone, Copy)]
struct WeightedFigure {
    figure: RingFigure,
    factor: f64,
}

/// Supply of a figure with clean slices, in ascending order.
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
    /// True if full speed was seen in few rounds only.
    pub(super) is_few: bool,
}

/// Assumed scatter of hops at full speed between rounds, as a share, where no launches show it
/// (docs/validation.md).
const HOP_ROUND_SCATTER: f64 = 0.01;
/// Assumed scatter of hops above the members' own solos between rounds, as a share: each round has
/// memory of its own.
const ABOVE_ROUND_SCATTER: f64 = 0.02;
/// Degrees of freedom of an assumed scatter.
const ASSUMED_FREEDOM: f64 = 4.0;
/// Degrees of freedom of a scatter that several launches have shown.
const KNOWN_FREEDOM: f64 = 12.0;

impl<'a> Table<'a> {
    /// Returns the number of a ring among the rings of its plan, which selects its random streams.
    pub fn rank(&self, case: usize) -> u64 {
        self.plan.rings().take_while(|(number, _)| *number < case).count() as u64
    }

    fn batches(&self, case: usize) -> impl Iterator<Item = (u32, &Batch<'a>)> {
        let rounds = self.rings.get(case).into_iter().flat_map(|ring| &ring.rounds);
        rounds.map(|(round, batch)| (*round, batch))
    }

    /// Returns the samples of a case in the order of rounds.
    pub fn samples(&self, case: usize) -> impl Iterator<Item = &'a RingSample> + '_ {
        self.batches(case).flat_map(|(_, batch)| batch.iter().copied())
    }

    /// Returns the number of rounds in which a case was measured.
    pub fn rounds(&self, case: usize) -> u32 {
        self.batches(case).count() as u32
    }

    /// Returns the hops of a case in each round.
    pub fn hops_by_round(&self, case: usize) -> Vec<(u32, u64)> {
        let mut hops = Vec::new();
        for (round, batch) in self.batches(case) {
            hops.push((round, saturating_sum(batch.iter().map(|sample| sample.hops))));
        }
        hops
    }

    /// Returns the models of how the times that a figure is made of follow the core's clock, each
    /// with its factor; absent where the run does not show it.
    fn clocks(&self, figure: RingFigure) -> Option<Vec<(ClockModel, f64)>> {
        let clocks = self.rings.get(figure.case())?.clocks;
        match figure {
            RingFigure::Hop(_) => Some(vec![(clocks.hop?, 1.0)]),
            RingFigure::AboveMemberSolos(_) => {
                let (ring, solo) = clocks.above()?;
                Some(vec![(ring, 1.0), (solo, -1.0)])
            }
        }
    }

    /// Returns the elasticity of a hop of a case; absent where the run does not show it.
    pub fn hop_elasticity(&self, case: usize) -> Option<Elasticity> {
        elasticity_of_sum(&self.clocks(RingFigure::Hop(case))?)
    }

    /// Returns the elasticity of the cost of a switch; absent where the run does not show it.
    pub fn elasticity(&self, case: usize) -> Option<Elasticity> {
        let mut times = Vec::new();
        for WeightedFigure { figure, factor } in self.switch(case)? {
            for (clock, share) in self.clocks(figure)? {
                times.push((clock, share * factor));
            }
        }
        elasticity_of_sum(&times)
    }

    /// Returns the counts of a ring's slices, empty for a trial. Absent for a case that the plan
    /// does not have.
    pub fn slices(&self, case: usize) -> Option<&CaseSlices> {
        self.rings.get(case).map(|ring| &ring.slices)
    }

    /// Returns the figures of the clean slices of a case. `read` returns those of one round.
    fn clean_figures(
        &self,
        case: usize,
        read: impl Fn(&ring::RingCase, &Batch, &SpeedLevel) -> Vec<f64>,
    ) -> Option<SlicesByRound> {
        let ring = self.plan.ring(case)?;
        let level = self.levels.get(&leader_cpus(ring))?;
        let mut figures = SlicesByRound::new();
        for (round, batch) in self.batches(case) {
            let in_round = read(ring, batch, level);
            if !in_round.is_empty() {
                figures.insert(round, in_round);
            }
        }
        Some(figures)
    }

    /// Returns the time of a hop in nanoseconds in each clean slice.
    fn clean_hops(&self, case: usize) -> Option<&SlicesByRound> {
        let ring = self.rings.get(case)?;
        ring.clean.get_or_init(|| self.read_clean_hops(case, &ring.clocks)).as_ref()
    }

    fn read_clean_hops(&self, case: usize, clocks: &CaseClocks) -> Option<SlicesByRound> {
        self.clean_figures(case, |ring, batch, level| {
            let mut hops = Vec::new();
            for (_, of_sample) in clean_hops(ring, batch, level, clocks.hop.as_ref()) {
                hops.extend(of_sample);
            }
            hops
        })
    }

    /// Returns the median of each round's clean slices of rings of triples, above the members' own
    /// solos, in nanoseconds.
    fn clean_above(&self, case: usize) -> Option<Figures> {
        let clocks = self.rings.get(case).and_then(|ring| ring.clocks.above());
        let above =
            self.clean_figures(case, |ring, batch, level| clean_above(ring, batch, level, clocks))?;
        Some(medians(&above))
    }

    /// Returns whether the quanta show at which speed a case ran.
    pub fn is_judged(&self, case: usize) -> bool {
        self.slices(case).is_some_and(CaseSlices::is_judged)
    }

    /// Returns the figure that decides whether a case was seen at full speed: that of its triples,
    /// where it has them, else its hop.
    fn deciding_figure(&self, case: usize) -> RingFigure {
        match self.solo(case) {
            Some(SoloReference::Members) => RingFigure::AboveMemberSolos(case),
            _ => RingFigure::Hop(case),
        }
    }

    /// Returns whether a case has enough clean slices for its figure at full speed, or clean triples
    /// where its figure is of those.
    pub fn has_full_speed(&self, case: usize) -> bool {
        self.has_figure(self.deciding_figure(case))
    }

    fn solo(&self, case: usize) -> Option<SoloReference> {
        self.rings.get(case)?.solo
    }

    fn has_figure(&self, figure: RingFigure) -> bool {
        self.supply(figure) == CleanSupply::Enough
    }

    /// Returns the supply of a figure with clean slices.
    fn supply(&self, figure: RingFigure) -> CleanSupply {
        let Some(slices) = self.slices(figure.case()) else { return CleanSupply::TooFew };
        let (is_enough, is_few) = match figure {
            RingFigure::Hop(_) => (slices.has_full_speed(), slices.has_few_rounds()),
            RingFigure::AboveMemberSolos(_) => {
                (slices.has_full_speed_above(), slices.has_few_rounds_above())
            }
        };
        if self.is_figure_not_alone(figure) {
            CleanSupply::TooFew
        } else if is_enough {
            CleanSupply::Enough
        } else if is_few {
            CleanSupply::FewRounds
        } else {
            CleanSupply::TooFew
        }
    }

    /// Returns whether full speed was seen for a case, in many rounds or in few.
    pub fn has_seen_full_speed(&self, case: usize) -> bool {
        self.supply(self.deciding_figure(case)) != CleanSupply::TooFew
    }

    /// Returns the speed at which the hop of a case was measured.
    pub(crate) fn hop_speed(&self, case: usize) -> Speed {
        if !self.is_judged(case) {
            return Speed::NotJudged;
        }
        match self.supply(RingFigure::Hop(case)) {
            CleanSupply::Enough => Speed::Full,
            CleanSupply::FewRounds => Speed::FewRounds,
            CleanSupply::TooFew if self.is_hop_not_alone(case) => Speed::NotAlone,
            CleanSupply::TooFew => Speed::Contended,
        }
    }

    /// Returns the figures of few rounds: the median of each round's clean slices that stand in
    /// rows, in nanoseconds.
    fn few_by_round(&self, figure: RingFigure) -> Figures {
        let case = figure.case();
        let Some(RingSamples { clocks, .. }) = self.rings.get(case) else {
            return Figures::new();
        };
        let figures = match figure {
            RingFigure::Hop(_) => self.clean_figures(case, |ring, batch, level| {
                clean_hops_in_rows(ring, batch, level, clocks.hop.as_ref())
            }),
            RingFigure::AboveMemberSolos(_) => self.clean_figures(case, |ring, batch, level| {
                mostly_clean_above(ring, batch, level, clocks.above())
            }),
        };
        match figures {
            Some(figures) => medians(&figures),
            None => Figures::new(),
        }
    }

    /// Returns the scatter between rounds of a figure of this size, as launches have shown it or as
    /// is assumed.
    fn round_scatter(&self, figure: RingFigure, size: f64) -> PriorScatter {
        let known = self.plan.reference.known_of(figure.case());
        let shown = match figure {
            RingFigure::Hop(_) => known.hop_round_scatter.or(known.round_scatter),
            RingFigure::AboveMemberSolos(_) => known.round_scatter,
        };
        let (share, freedom) = match (shown, figure) {
            (Some(share), _) => (share, KNOWN_FREEDOM),
            (None, RingFigure::Hop(_)) => (HOP_ROUND_SCATTER, ASSUMED_FREEDOM),
            (None, RingFigure::AboveMemberSolos(_)) => {
                let share = self.shared_round_scatter(figure);
                (share.clamp(ABOVE_ROUND_SCATTER, 1.0), ASSUMED_FREEDOM)
            }
        };
        PriorScatter { deviation: share * size.abs(), freedom }
    }

    /// Returns the scatter of a figure between rounds on a shared core, as a share; 0 where it is
    /// not known. With a working set workers differ by their memory, on a shared core, too.
    fn shared_round_scatter(&self, figure: RingFigure) -> f64 {
        let by_round = self.figure_as_it_was(figure, SliceTime::Elapsed);
        let figures: Vec<f64> = by_round.into_values().collect();
        let (Some(sigma), Some(middle)) = (mad_sigma(&figures), median(&figures)) else {
            return 0.0;
        };
        let share = sigma / middle.abs();
        if share.is_finite() { share } else { 0.0 }
    }

    /// Returns a figure of clean slices with its error, of many rounds or of few.
    fn clean_figure(&self, figure: RingFigure) -> Option<FewFigures> {
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

    /// Returns whether competing tasks were there all the time while a figure was measured.
    ///
    /// Those beside the solo were also beside its ring, which was measured in the same rounds: a
    /// ring that has just slept may have the CPU for several of their turns.
    fn is_figure_not_alone(&self, figure: RingFigure) -> bool {
        match figure {
            RingFigure::AboveMemberSolos(case) => {
                self.slices(case).is_some_and(CaseSlices::is_not_alone_above)
            }
            RingFigure::Hop(case) => match self.solo(case) {
                Some(SoloReference::Case(solo)) => {
                    self.is_case_not_alone(case) || self.is_case_not_alone(solo)
                }
                _ => self.is_case_not_alone(case),
            },
        }
    }

    fn is_case_not_alone(&self, case: usize) -> bool {
        self.slices(case).is_some_and(CaseSlices::is_not_alone)
    }

    /// Returns the median of the figures that `read` returns for a round's samples, by rounds.
    fn middles(&self, case: usize, read: impl Fn(&RingSample) -> Option<f64>) -> Figures {
        let mut middles = Figures::new();
        for (round, batch) in self.batches(case) {
            let mut figures = Vec::new();
            for sample in batch {
                figures.extend(read(sample));
            }
            if let Some(middle) = median(&figures) {
                middles.insert(round, middle);
            }
        }
        middles
    }

    /// Returns a figure of one case by rounds: the median of the round's samples.
    pub fn middle_by_round(&self, case: usize, read: fn(&RingSample) -> f64) -> Figures {
        self.middles(case, |sample| Some(read(sample)))
    }

    /// Returns a figure of one case by rounds: the median of the round's samples that were timed as
    /// the machine was found. Rounds without such a sample have no figure. For a case that is not
    /// judged it is of all samples, as waiting is not known to have changed anything in it.
    pub fn as_found_by_round(&self, case: usize, read: fn(&RingSample) -> f64) -> Figures {
        let takes_all = !self.is_judged(case);
        self.middles(case, |sample| {
            if takes_all || sample.is_as_found() { Some(read(sample)) } else { None }
        })
    }

    /// Returns the time of a hop by rounds, as the estimates take it: the median of the round's
    /// clean slices where the case has enough of them, else of its samples.
    pub fn hop_by_round(&self, case: usize) -> Figures {
        match self.supply(RingFigure::Hop(case)) {
            CleanSupply::Enough => self.clean_hops(case).map(medians).unwrap_or_default(),
            CleanSupply::FewRounds => self.few_by_round(RingFigure::Hop(case)),
            CleanSupply::TooFew => self.as_found_by_round(case, RingSample::ns_per_hop),
        }
    }

    /// Returns the cost of a counted switch above the solo ring, by the rounds in which both were
    /// measured and in which the ring switched at all. It is of clean slices where there are enough
    /// of them.
    pub fn above_solo_by_round(&self, case: usize) -> Figures {
        let is_seen = self.has_seen_full_speed(case);
        match self.solo(case) {
            Some(SoloReference::Case(solo)) if is_seen && self.has_seen_full_speed(solo) => {
                self.per_switch(case, &less(&self.hop_by_round(case), &self.hop_by_round(solo)))
            }
            Some(SoloReference::Members) if self.has_full_speed(case) => {
                self.per_switch(case, &self.clean_above(case).unwrap_or_default())
            }
            Some(SoloReference::Members) if is_seen => {
                self.per_switch(case, &self.few_by_round(RingFigure::AboveMemberSolos(case)))
            }
            _ => self.above_solo_of_all(case, RingSample::ns_per_hop),
        }
    }

    /// Returns the cost of a counted switch above the solo ring by rounds, of all samples at
    /// whatever speed. `hop_cost` returns the cost of a hop: by real or by CPU time. The members'
    /// own solos are known by real time only.
    pub fn above_solo_of_all(&self, case: usize, hop_cost: fn(&RingSample) -> f64) -> Figures {
        let above = match self.solo(case) {
            None => Figures::new(),
            Some(SoloReference::Case(solo)) => less(
                &self.as_found_by_round(case, hop_cost),
                &self.as_found_by_round(solo, hop_cost),
            ),
            Some(SoloReference::Members) => self.above_members_as_found(case),
        };
        self.per_switch(case, &above)
    }

    /// Returns the time of a hop above the members' own solos by rounds, as the machine was found.
    fn above_members_as_found(&self, case: usize) -> Figures {
        self.middles(case, |sample| {
            sample.triples.as_deref().and_then(Triples::above_solos_as_found_ns)
        })
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

    /// Returns costs of a hop by rounds, divided by the switches per hop that the kernel counted in
    /// each.
    fn per_switch(&self, case: usize, hops: &Figures) -> Figures {
        let mut costs = Figures::new();
        let Some(ring) = self.rings.get(case) else { return costs };
        for (round, above) in hops {
            let Some(batch) = ring.rounds.get(round) else { continue };
            let switches = saturating_sum(batch.iter().map(|sample| sample.switches()));
            let hops = saturating_sum(batch.iter().map(|sample| sample.hops));
            if switches > 0 {
                costs.insert(*round, above * hops as f64 / switches as f64);
            }
        }
        costs
    }

    /// Returns the time of a hop.
    pub fn hop(&self, case: usize, stream: u64) -> Option<Estimate> {
        let hop = WeightedFigure { figure: RingFigure::Hop(case), factor: 1.0 };
        let by_round = || self.as_found_by_round(case, RingSample::ns_per_hop);
        self.weighted_sum(&[hop], self.plan.reference.scatter_of(case), by_round, stream)
    }

    /// Returns the cost of a counted switch above the solo ring. Absent where there is no solo, or
    /// nothing switched.
    pub fn above_solo(&self, case: usize, stream: u64) -> Option<Estimate> {
        let by_round = || self.above_solo_of_all(case, RingSample::ns_per_hop);
        let scatter = self.plan.reference.scatter_of(case);
        self.weighted_sum(&self.switch(case)?, scatter, by_round, stream)
    }

    /// Returns the cost of a switch of ring `one` less that of ring `other`, each above its solo:
    /// what a working set or registers in use add. It is of all clean slices, or by the rounds in
    /// which both were measured and switched.
    pub fn difference(&self, one: usize, other: usize, stream: u64) -> Option<Estimate> {
        let mut parts = self.switch(one)?;
        for WeightedFigure { figure, factor } in self.switch(other)? {
            parts.push(WeightedFigure { figure, factor: -factor });
        }
        let reference = &self.plan.reference;
        let scatter = f64::max(reference.scatter_of(one), reference.scatter_of(other));
        let by_round = || {
            let one = self.above_solo_of_all(one, RingSample::ns_per_hop);
            less(&one, &self.above_solo_of_all(other, RingSample::ns_per_hop))
        };
        self.weighted_sum(&parts, scatter, by_round, stream)
    }

    /// Returns the median over rounds of any figure with its interval, at no particular speed.
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

    /// Returns a hop of a case at full speed, seen in many rounds or in few. Absent where it has too
    /// few clean slices.
    pub(super) fn full_hop(&self, case: usize) -> Option<FullHop> {
        let figure = RingFigure::Hop(case);
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

    /// Returns whether competing tasks are why a hop has no figure at full speed.
    pub(super) fn is_hop_not_alone(&self, case: usize) -> bool {
        self.is_figure_not_alone(RingFigure::Hop(case))
    }

    /// Returns a sum of figures.
    ///
    /// It is at full speed where all of them have clean slices, in many rounds or in few; on a
    /// shared core where they were judged and have not; else over the figures by rounds of
    /// `by_round`, not judged.
    fn weighted_sum(
        &self,
        parts: &[WeightedFigure],
        launch_scatter: f64,
        by_round: impl Fn() -> Figures,
        stream: u64,
    ) -> Option<Estimate> {
        if !parts.iter().all(|part| self.is_judged(part.figure.case())) {
            return self.over_rounds(&by_round(), stream);
        }
        let supply = parts.iter().map(|part| self.supply(part.figure)).min()?;
        let clean = match supply {
            CleanSupply::Enough => self.full_speed(parts, launch_scatter),
            CleanSupply::FewRounds => self.few_rounds(parts, launch_scatter),
            CleanSupply::TooFew => None,
        };
        let estimate = match clean {
            None => self.as_it_was(parts)?,
            // Few rounds may leave more uncertain than sharing the core adds.
            Some(few) if few.speed == Speed::FewRounds && !few.resolved => {
                match self.as_it_was(parts) {
                    Some(shared) if shared.resolved => shared,
                    _ => few,
                }
            }
            Some(clean) => clean,
        };
        Some(self.reported(estimate))
    }

    /// Returns an estimate as the plan has it reported: with `--strict` without the interval, if it
    /// is not at full speed in many rounds.
    pub(crate) fn reported(&self, estimate: Estimate) -> Estimate {
        if self.plan.reference.strict { estimate.strict() } else { estimate }
    }

    /// Returns whether competing tasks are why one of the parts has no figure at full speed.
    fn is_not_alone(&self, parts: &[WeightedFigure]) -> bool {
        parts.iter().any(|part| self.is_figure_not_alone(part.figure))
    }

    /// Returns the parts of (hop(N) - hop(1)) / counted switches a hop. Absent where there is no
    /// solo or nothing switched.
    fn switch(&self, case: usize) -> Option<Vec<WeightedFigure>> {
        let factor = 1.0 / self.switches_per_hop(case)?;
        Some(match self.solo(case)? {
            SoloReference::Case(solo) => vec![
                WeightedFigure { figure: RingFigure::Hop(case), factor },
                WeightedFigure { figure: RingFigure::Hop(solo), factor: -factor },
            ],
            SoloReference::Members => {
                vec![WeightedFigure { figure: RingFigure::AboveMemberSolos(case), factor }]
            }
        })
    }

    /// Returns the counted switches a hop: the mean over the rounds of the samples with clean
    /// slices, or of all samples where none has. Absent where nothing switched.
    pub(crate) fn switches_per_hop(&self, case: usize) -> Option<f64> {
        let mut ratios = Vec::new();
        for (switches, hops) in self.slices(case)?.switches.values() {
            ratios.push(*switches as f64 / *hops as f64);
        }
        if ratios.is_empty() {
            ratios.extend(self.middle_by_round(case, RingSample::switches_per_hop).into_values());
        }
        mean(&ratios).filter(|per_hop| *per_hop > 0.0)
    }

    /// Returns a sum at full speed. Cases are independent workers.
    fn full_speed(&self, parts: &[WeightedFigure], launch_scatter: f64) -> Option<Estimate> {
        let FewFigures { value, standard_error, rounds, .. } = self.clean_sum(parts)?;
        let confidence = self.confidence();
        Estimate::at_full_speed(value, standard_error, rounds, launch_scatter, confidence)
    }

    /// Returns a sum of which at least one part was seen at full speed in few rounds.
    fn few_rounds(&self, parts: &[WeightedFigure], launch_scatter: f64) -> Option<Estimate> {
        Estimate::in_few_rounds(self.clean_sum(parts)?, launch_scatter, self.confidence())
    }

    /// Returns a sum of figures of clean slices with its error within the run.
    fn clean_sum(&self, parts: &[WeightedFigure]) -> Option<FewFigures> {
        let (mut value, mut variance) = (0.0, 0.0);
        let (mut freedom, mut rounds) = (f64::INFINITY, u32::MAX);
        for (figure, factor) in merged_factors(parts) {
            let clean = self.clean_figure(figure)?;
            value += factor * clean.value;
            variance += (factor * clean.standard_error).powi(2);
            variance += self.clock_variance(figure, factor);
            freedom = freedom.min(clean.freedom);
            rounds = rounds.min(clean.rounds);
        }
        Some(FewFigures { value, standard_error: variance.sqrt(), freedom, rounds })
    }

    /// Returns the variance that the conversion between clocks adds to `factor` times a figure.
    fn clock_variance(&self, figure: RingFigure, factor: f64) -> f64 {
        let mut variance = 0.0;
        for (clock, share) in self.clocks(figure).unwrap_or_default() {
            variance += (factor * share * clock.error_ns()).powi(2);
        }
        variance
    }

    fn pooled(&self, figure: RingFigure) -> Option<PooledMedian> {
        // Hops and triples have random streams of their own.
        match figure {
            RingFigure::Hop(case) => {
                let seed = self.seed((5 << 32) + self.rank(case));
                PooledMedian::from_rounds(self.clean_hops(case)?, seed)
            }
            // A worker's memory is its own: each worker counts once, by its median.
            RingFigure::AboveMemberSolos(case) => {
                let mut workers = SlicesByRound::new();
                for (round, median) in self.clean_above(case)? {
                    workers.insert(round, vec![median]);
                }
                PooledMedian::from_rounds(&workers, self.seed((6 << 32) + self.rank(case)))
            }
        }
    }
}

/// Returns the factor of each figure of a sum. Two rings may have one solo, whose error is the same
/// in both.
fn merged_factors(parts: &[WeightedFigure]) -> BTreeMap<RingFigure, f64> {
    let mut factors: BTreeMap<RingFigure, f64> = BTreeMap::new();
    for part in parts {
        *factors.entry(part.figure).or_default() += part.factor;
    }
    factors
}

fn medians(by_round: &SlicesByRound) -> Figures {
    let mut medians = Figures::new();
    for (round, figures) in by_round {
        if let Some(middle) = median(figures) {
            medians.insert(*round, middle);
        }
    }
    medians
}

/// Returns the difference of two figures in the rounds that have both.
fn less(minuend: &Figures, subtrahend: &Figures) -> Figures {
    let mut differences = Figures::new();
    for (round, figure) in minuend {
        if let Some(other) = subtrahend.get(round) {
            differences.insert(*round, figure - other);
        }
    }
    differences
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
        Table::from_samples(&plan(), samples, []).above_solo_by_round(1)
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
        assert!(Table::from_samples(&plan(), &all, []).above_solo_by_round(7).is_empty());
        // Neither have hops of nothing, which only a damaged file has.
        let none = [sample(0, 0, 0, 100, (0, 0)), sample(0, 1, 10, 0, (0, 0))];
        assert_eq!(Table::from_samples(&plan(), &none, []).rounds(0), 0);
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
        let found = Table::from_samples(&plan, &all, []).difference(3, 1, 1).unwrap();
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
        let table = Table::from_samples(&plan, &all, []);
        let hop = table.events_per_hop(1, 0, 1).unwrap();
        assert_eq!((hop.value, hop.rounds, hop.speed), (7.0, 9, Speed::NotJudged));
        let switch = table.events_per_switch(1, 0, 1).unwrap();
        assert!((switch.value - 2.0).abs() < 1e-9 && switch.rounds == 9, "{switch:?}");
        assert_eq!(table.events_per_hop(1, 1, 1).unwrap().rounds, 10);
        assert_eq!((table.events_per_hop(1, 2, 1), table.events_per_switch(0, 0, 1)), (None, None));
        // Where too few are clean it is of all, and not to be quoted.
        let few = sliced(2, |_, index| index < 8);
        assert_eq!(Table::from_samples(&plan, &few, []).events_per_hop(1, 0, 1), None);
        let mut few = all;
        few.retain(|sample| sample.round < 3);
        let of_all = Table::from_samples(&plan, &few, []).events_per_hop(1, 0, 1).unwrap();
        assert!(of_all.value > 7.0 && of_all.speed == Speed::Contended, "{of_all:?}");
    }

    #[test]
    fn figures_are_those_of_clean_slices() {
        let all = sliced(10, |_, index| index < 8);
        let plan = plan();
        let table = Table::from_samples(&plan, &all, []);
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
        Table::from_samples(&plan(), &all, []).above_solo(1, 1).unwrap()
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
            let cost = Table::from_samples(&plan, &all, []).above_solo(1, 1).unwrap();
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
        let table = Table::from_samples(&plan, &all, []);
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
        let strict = Table::from_samples(&plan, &all, []).above_solo(1, 1).unwrap();
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
        let table = Table::from_samples(&plan, &all, []);
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
        let cost = Table::from_samples(&plan, &all, []).above_solo(1, 1).unwrap();
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
        let cost = Table::from_samples(&plan, &all, []).above_solo(1, 1).unwrap();
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
        let table = Table::from_samples(&plan, &all, []);
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
            let cost = Table::from_samples(&plan, &all, []).above_solo(1, 1).unwrap();
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
        let table = Table::from_samples(&plan, &all, []);
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
        let table = Table::from_samples(&plan, &all, []);
        assert_eq!(table.above_solo(1, 1).unwrap().speed, Speed::NotJudged);
        assert_eq!(table.hop(1, 1).unwrap().speed, Speed::Full);
        assert_eq!(table.above_solo(3, 1).unwrap().speed, Speed::Full);
    }
}
