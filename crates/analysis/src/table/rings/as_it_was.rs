//! Figures of rings on a shared core, where no stretch of full speed was seen: whoever shared the
//! core, or by CPU time beside other tasks. And what such slices say of the full speed.

use std::collections::BTreeMap;

use rundata::ring::{RingSample, Triples};
use stats::{FewFigures, median, quantile};

use super::{Figure, Figures, Part, Table};
use crate::estimate::{Estimate, Speed, shared_figures};
use crate::speed::{FEWEST_CLEAN, HopAsItWas, hops_as_they_were};

/// Which time of a slice counts, where it is taken as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SliceTime {
    /// The time that passed.
    Elapsed,
    /// The CPU time of all members.
    Cpu,
}

/// The share of slices, the fastest, whose slowest bounds the figure at full speed.
const FASTEST: f64 = 0.25;

impl Table<'_> {
    /// The slices of a case as they were, by round.
    fn slices_as_they_were(&self, case: usize) -> BTreeMap<u32, Vec<HopAsItWas>> {
        let Some(ring) = self.plan.ring(case) else { return BTreeMap::new() };
        let batches = self.batches(case);
        batches.map(|(round, batch)| (round, hops_as_they_were(ring, batch))).collect()
    }

    /// A figure by round, whoever shared the core: the median of the slices that waited for
    /// nothing, in nanoseconds. Where hops are longer than slices, of the samples.
    pub(super) fn figure_as_it_was(&self, figure: Figure, time: SliceTime) -> Figures {
        let case = match figure {
            Figure::Hop(case) => case,
            Figure::AboveOwnSolos(case) => {
                return self.middles(case, |sample| {
                    sample.triples.as_deref().and_then(Triples::above_solos_as_found_ns)
                });
            }
        };
        let hop_ns = |slice: &HopAsItWas| match time {
            SliceTime::Elapsed => Some(slice.ns),
            SliceTime::Cpu => slice.cpu_ns,
        };
        let mut figures = Figures::new();
        for (round, slices) in self.slices_as_they_were(case) {
            let as_found = slices.iter().filter(|slice| slice.is_as_found);
            let middle = median(&as_found.filter_map(hop_ns).collect::<Vec<f64>>());
            figures.extend(middle.map(|middle| (round, middle)));
        }
        match time {
            SliceTime::Elapsed if figures.is_empty() => {
                self.as_found_by_round(case, RingSample::ns_per_hop)
            }
            _ => figures,
        }
    }

    /// A sum of figures, each times a factor, by the rounds that have all of them.
    fn sum_as_it_was(&self, parts: &[Part], time: SliceTime) -> Figures {
        let figures = |(figure, factor): &Part| (self.figure_as_it_was(*figure, time), *factor);
        let all: Vec<(Figures, f64)> = parts.iter().map(figures).collect();
        let Some((first, _)) = all.first() else { return Figures::new() };
        let sum = |round: &u32| {
            let parts = all.iter().map(|(figures, factor)| Some(factor * figures.get(round)?));
            Some((*round, parts.sum::<Option<f64>>()?))
        };
        first.keys().filter_map(sum).collect()
    }

    /// The fastest quarter of the slices of a case: the longest time of a hop in it, in
    /// nanoseconds, and how far the core was shared in it.
    fn fastest_quarter(&self, case: usize) -> Option<(f64, f64)> {
        let slices = self.slices_as_they_were(case).into_values();
        let mut slices = slices.collect::<Vec<_>>().concat();
        slices.sort_by(|one, other| one.ns.total_cmp(&other.ns));
        let times: Vec<f64> = slices.iter().map(|slice| slice.ns).collect();
        let longest = quantile(&times, FASTEST).filter(|_| times.len() >= FEWEST_CLEAN as usize)?;
        let fastest = slices.iter().take_while(|slice| slice.ns <= longest);
        let sharing = median(&fastest.map(|slice| slice.sharing).collect::<Vec<f64>>())?;
        Some((longest, sharing))
    }

    /// An upper bound of a cost at full speed by its fastest slices: sharing a core never makes one
    /// faster. A solo that is taken off may have been shared more than its ring: it is then taken
    /// as fast as if it were slowed by that as much as the reference quanta are. Absent of sums of
    /// more than a ring and its solo.
    fn bound_at_full_speed(&self, parts: &[Part]) -> Option<f64> {
        if parts.len() > 2 {
            return None;
        }
        let (mut bound, mut ring_sharing) = (0.0, 0.0);
        for (figure, factor) in parts {
            let Figure::Hop(case) = figure else { return None };
            let (ns, sharing) = self.fastest_quarter(*case)?;
            if *factor > 0.0 {
                bound += factor * ns;
                ring_sharing = sharing;
            } else {
                bound += factor * ns * (ring_sharing / sharing).min(1.0);
            }
        }
        Some(bound).filter(|bound| *bound > 0.0)
    }

    /// A hop of a case by round as it was, in nanoseconds: by CPU time where others ran on the CPU
    /// and that is known.
    pub(in crate::table) fn hop_as_it_was(&self, case: usize, is_by_cpu_time: bool) -> Figures {
        let time = if is_by_cpu_time { SliceTime::Cpu } else { SliceTime::Elapsed };
        self.figure_as_it_was(Figure::Hop(case), time)
    }

    /// A sum on a shared core: by CPU time where others ran on the CPU and that is known.
    pub(super) fn as_it_was(&self, parts: &[Part]) -> Option<Estimate> {
        let is_not_alone = self.is_not_alone(parts);
        let by_cpu_time = is_not_alone.then(|| self.shared_sum(parts, SliceTime::Cpu)).flatten();
        let speed = match (is_not_alone, &by_cpu_time) {
            (true, Some(_)) => Speed::CpuTime,
            (true, None) => Speed::NotAlone,
            (false, _) => Speed::Contended,
        };
        let figures = by_cpu_time.or_else(|| self.shared_sum(parts, SliceTime::Elapsed))?;
        let found = Estimate::from_shared(figures, self.confidence(), speed)?;
        Some(Estimate { at_most: self.bound_at_full_speed(parts), ..found })
    }

    /// Returns a sum of figures on a shared core: within the rounds that have all of them, or, if
    /// no round has, of each one's own rounds as independent figures.
    fn shared_sum(&self, parts: &[Part], time: SliceTime) -> Option<FewFigures> {
        let within_rounds: Vec<f64> = self.sum_as_it_was(parts, time).into_values().collect();
        if !within_rounds.is_empty() {
            return shared_figures(&within_rounds, Some(self.scale_as_it_was(parts)));
        }
        let mut factors: BTreeMap<Figure, f64> = BTreeMap::new();
        for (figure, factor) in parts {
            *factors.entry(*figure).or_default() += factor;
        }
        let mut sum = FewFigures {
            value: 0.0,
            standard_error: 0.0,
            freedom: f64::INFINITY,
            rounds: u32::MAX,
        };
        for (figure, factor) in factors {
            let figures: Vec<f64> = self.figure_as_it_was(figure, time).into_values().collect();
            let part = shared_figures(&figures, Some(self.scale_as_it_was(&[(figure, 1.0)])))?;
            sum.value += factor * part.value;
            sum.standard_error = sum.standard_error.hypot(factor * part.standard_error);
            sum.freedom = sum.freedom.min(part.freedom);
            sum.rounds = sum.rounds.min(part.rounds);
        }
        Some(sum)
    }

    /// The size of the times that a sum is made of, in nanoseconds: the root of the sum of their
    /// squares.
    fn scale_as_it_was(&self, parts: &[Part]) -> f64 {
        let mut squares = 0.0;
        for (figure, factor) in parts {
            // What a hop takes above its solos scatters as the whole hop does.
            let (Figure::Hop(case) | Figure::AboveOwnSolos(case)) = figure;
            let hops = self.figure_as_it_was(Figure::Hop(*case), SliceTime::Elapsed);
            let middle = median(&hops.into_values().collect::<Vec<f64>>()).unwrap_or(0.0);
            squares += (factor * middle).powi(2);
        }
        squares.sqrt()
    }
}
