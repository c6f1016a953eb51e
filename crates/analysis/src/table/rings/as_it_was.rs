//! Figures of rings on a shared core, where no stretch of full speed was seen: by elapsed time, or by
//! CPU time beside competing tasks; and the upper bound that such slices give for the full speed.

use std::collections::BTreeMap;

use rundata::ring::RingSample;
use stats::{FewFigures, median, quantile};

use super::{Figures, RingFigure, Table, WeightedFigure, merged_factors};
use crate::estimate::{Estimate, Speed, shared_figures};
use crate::speed::{FEWEST_CLEAN, HopAsItWas, hops_as_they_were};

/// The time of a slice that counts on a shared core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::table) enum SliceTime {
    /// The time that passed.
    Elapsed,
    /// The CPU time of all members.
    Cpu,
}

/// Share of the fastest slices, of which the slowest bounds the figure at full speed.
const FASTEST_SHARE: f64 = 0.25;

impl Table<'_> {
    /// Returns the slices of a case as they were, by round.
    fn slices_as_they_were(&self, case: usize) -> BTreeMap<u32, Vec<HopAsItWas>> {
        let Some(ring) = self.plan.ring(case) else { return BTreeMap::new() };
        let batches = self.batches(case);
        batches.map(|(round, batch)| (round, hops_as_they_were(ring, batch))).collect()
    }

    /// Returns a figure on a shared core by round, in nanoseconds: the median of the slices that did
    /// not wait for an unshared core; of the samples, where hops are longer than slices.
    pub(super) fn figure_as_it_was(&self, figure: RingFigure, time: SliceTime) -> Figures {
        let case = match figure {
            RingFigure::Hop(case) => case,
            RingFigure::AboveMemberSolos(case) => return self.above_members_as_found(case),
        };
        let mut figures = Figures::new();
        for (round, slices) in self.slices_as_they_were(case) {
            let mut hops = Vec::new();
            for slice in slices {
                if slice.is_as_found {
                    hops.extend(match time {
                        SliceTime::Elapsed => Some(slice.ns),
                        SliceTime::Cpu => slice.cpu_ns,
                    });
                }
            }
            if let Some(middle) = median(&hops) {
                figures.insert(round, middle);
            }
        }
        if figures.is_empty() && time == SliceTime::Elapsed {
            return self.as_found_by_round(case, RingSample::ns_per_hop);
        }
        figures
    }

    /// Returns a sum of figures by the rounds that have all of them.
    fn sum_as_it_was(&self, parts: &[WeightedFigure], time: SliceTime) -> Figures {
        let Some((first, others)) = parts.split_first() else { return Figures::new() };
        let mut sums = self.figure_as_it_was(first.figure, time);
        for sum in sums.values_mut() {
            *sum *= first.factor;
        }
        for part in others {
            let figures = self.figure_as_it_was(part.figure, time);
            sums.retain(|round, _| figures.contains_key(round));
            for (round, sum) in &mut sums {
                *sum += part.factor * figures[round];
            }
        }
        sums
    }

    /// Returns the longest time of a hop in nanoseconds in the fastest quarter of the slices of a
    /// case, and the median sharing of the core in that quarter.
    fn fastest_quarter(&self, case: usize) -> Option<(f64, f64)> {
        let mut slices = Vec::new();
        for in_round in self.slices_as_they_were(case).into_values() {
            slices.extend(in_round);
        }
        if slices.len() < FEWEST_CLEAN as usize {
            return None;
        }
        slices.sort_by(|a, b| a.ns.total_cmp(&b.ns));
        let times: Vec<f64> = slices.iter().map(|slice| slice.ns).collect();
        let longest = quantile(&times, FASTEST_SHARE)?;
        let fastest = slices.iter().take_while(|slice| slice.ns <= longest);
        let sharing = median(&fastest.map(|slice| slice.sharing).collect::<Vec<f64>>())?;
        Some((longest, sharing))
    }

    /// Returns an upper bound of a cost at full speed by its fastest slices: sharing a core makes no
    /// slice faster. Absent for sums of more than a ring and its solo.
    ///
    /// A solo that is subtracted may have been on a core that was shared more than that of its
    /// ring. It is then taken as faster, in the ratio in which the reference quanta were slowed.
    fn bound_at_full_speed(&self, parts: &[WeightedFigure]) -> Option<f64> {
        if parts.len() > 2 {
            return None;
        }
        let (mut bound, mut ring_sharing) = (0.0, 0.0);
        for WeightedFigure { figure, factor } in parts {
            let RingFigure::Hop(case) = figure else { return None };
            let (ns, sharing) = self.fastest_quarter(*case)?;
            if *factor > 0.0 {
                bound += factor * ns;
                ring_sharing = sharing;
            } else {
                bound += factor * ns * (ring_sharing / sharing).min(1.0);
            }
        }
        if bound > 0.0 { Some(bound) } else { None }
    }

    /// Returns a hop of a case by round on a shared core, in nanoseconds.
    pub(in crate::table) fn hop_as_it_was(&self, case: usize, time: SliceTime) -> Figures {
        self.figure_as_it_was(RingFigure::Hop(case), time)
    }

    /// Returns a sum on a shared core: by CPU time where competing tasks ran on the CPU and that time
    /// is known.
    pub(super) fn as_it_was(&self, parts: &[WeightedFigure]) -> Option<Estimate> {
        let mut speed = Speed::Contended;
        let mut figures = None;
        if self.is_not_alone(parts) {
            figures = self.shared_sum(parts, SliceTime::Cpu);
            speed = if figures.is_some() { Speed::CpuTime } else { Speed::NotAlone };
        }
        let figures = figures.or_else(|| self.shared_sum(parts, SliceTime::Elapsed))?;
        let estimate = Estimate::from_shared(figures, self.confidence(), speed)?;
        Some(Estimate { at_most: self.bound_at_full_speed(parts), ..estimate })
    }

    /// Returns a sum of figures on a shared core: within the rounds that have all of them, or, if
    /// no round has, of each one's own rounds as independent figures.
    fn shared_sum(&self, parts: &[WeightedFigure], time: SliceTime) -> Option<FewFigures> {
        let within_rounds: Vec<f64> = self.sum_as_it_was(parts, time).into_values().collect();
        if !within_rounds.is_empty() {
            return shared_figures(&within_rounds, Some(self.scale_as_it_was(parts)));
        }
        let mut sum = FewFigures {
            value: 0.0,
            standard_error: 0.0,
            freedom: f64::INFINITY,
            rounds: u32::MAX,
        };
        for (figure, factor) in merged_factors(parts) {
            let figures: Vec<f64> = self.figure_as_it_was(figure, time).into_values().collect();
            let part = shared_figures(
                &figures,
                Some(self.scale_as_it_was(&[WeightedFigure { figure, factor: 1.0 }])),
            )?;
            sum.value += factor * part.value;
            sum.standard_error = sum.standard_error.hypot(factor * part.standard_error);
            sum.freedom = sum.freedom.min(part.freedom);
            sum.rounds = sum.rounds.min(part.rounds);
        }
        Some(sum)
    }

    /// Returns the size of the times that a sum is made of, in nanoseconds: the root of the sum of
    /// their squares.
    fn scale_as_it_was(&self, parts: &[WeightedFigure]) -> f64 {
        let mut squares = 0.0;
        for WeightedFigure { figure, factor } in parts {
            // A hop above its solos scatters as the whole hop does.
            let hops = self.figure_as_it_was(RingFigure::Hop(figure.case()), SliceTime::Elapsed);
            let middle = median(&hops.into_values().collect::<Vec<f64>>()).unwrap_or(0.0);
            squares += (factor * middle).powi(2);
        }
        squares.sqrt()
    }
}
