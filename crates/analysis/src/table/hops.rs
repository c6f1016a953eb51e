//! Sums of hops of several rings and of a time that was measured apart, each times a factor:
//! differences of rings that differ in one thing.

use std::collections::BTreeMap;

use stats::{FewFigures, median};

use super::rings::{FullHop, SliceTime};
use super::{Figures, Table};
use crate::estimate::{Estimate, Speed};

/// Hops of rings by the number of their case, and a time measured apart, each times a factor.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct HopSum {
    pub(crate) hops: BTreeMap<usize, f64>,
    /// Factor of the time that was measured apart.
    pub(crate) apart: f64,
}

impl HopSum {
    /// Returns a hop of a ring.
    pub(crate) fn hop(case: usize) -> Self {
        Self { hops: BTreeMap::from([(case, 1.0)]), apart: 0.0 }
    }

    /// Returns `factor` times the time that was measured apart.
    pub(crate) fn time_apart(factor: f64) -> Self {
        Self { apart: factor, ..Self::default() }
    }

    /// Adds `factor` times another sum.
    pub(crate) fn plus(mut self, other: &Self, factor: f64) -> Self {
        for (case, share) in &other.hops {
            *self.hops.entry(*case).or_default() += factor * share;
        }
        // A hop that cancels out need not have been measured.
        self.hops.retain(|_, share| share.abs() > 1e-12);
        self.apart += factor * other.apart;
        self
    }

    pub(crate) fn times(self, factor: f64) -> Self {
        Self::default().plus(&self, factor)
    }
}

/// The scatter between launches of the hops of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaunchScatter {
    /// Each hop scatters by its own share: rings that do different things.
    Independent,
    /// The hops scatter by one share: one ring with one thing more or less.
    Common,
}

/// A time at full speed in a sum, with its factor applied.
struct SumPart {
    ns: f64,
    error: f64,
    /// tau: the scatter between launches, as a share.
    scatter: f64,
    rounds: u32,
}

impl Table<'_> {
    /// Returns a sum in nanoseconds. Absent where something of it was not measured.
    ///
    /// It is at full speed where each hop has enough clean slices: value +- t s, where the variance
    /// s^2 is the sum of (factor * error)^2 and of the scatter between launches. It is of all
    /// slices, on a shared core, where a hop was judged and has too few of them; and over rounds,
    /// where the speed of one was not judged.
    pub(crate) fn sum_of_hops(
        &self,
        sum: &HopSum,
        scatter: LaunchScatter,
        apart: Option<&Estimate>,
        stream: u64,
    ) -> Option<Estimate> {
        let apart = if sum.apart == 0.0 { None } else { Some(apart?) };
        if sum.hops.is_empty() {
            return apart?.scaled(sum.apart);
        }
        if apart.is_none_or(|apart| apart.speed.is_full()) {
            if let Some(hops) = self.full_hops(sum) {
                return self.full_sum(sum, &hops, scatter, apart);
            }
        }
        let mut is_shared = apart.is_some_and(|apart| apart.speed.is_as_it_was());
        for case in sum.hops.keys() {
            is_shared |= self.is_judged(*case) && self.full_hop(*case).is_none();
        }
        if is_shared {
            return Some(self.reported(self.shared_hops(sum, apart)?));
        }
        self.over_rounds(&self.sum_by_round(sum, apart), stream)
    }

    /// Returns the hops of a sum with their factors; absent where one was not seen at full speed.
    fn full_hops(&self, sum: &HopSum) -> Option<Vec<(f64, FullHop)>> {
        let mut hops = Vec::new();
        for (case, factor) in &sum.hops {
            hops.push((*factor, self.full_hop(*case)?));
        }
        Some(hops)
    }

    /// Returns a sum on a shared core: by CPU time where competing tasks ran on the CPU and that time
    /// is known for all hops.
    fn shared_hops(&self, sum: &HopSum, apart: Option<&Estimate>) -> Option<Estimate> {
        let mut speed = Speed::Contended;
        let mut figures = Vec::new();
        if sum.hops.keys().any(|case| self.is_hop_not_alone(*case)) {
            figures = self.shared_hops_by_round(sum, apart, SliceTime::Cpu);
            speed = if figures.is_empty() { Speed::NotAlone } else { Speed::CpuTime };
        }
        if figures.is_empty() {
            figures = self.shared_hops_by_round(sum, apart, SliceTime::Elapsed);
        }
        let mut squares = 0.0;
        for (case, factor) in &sum.hops {
            let hops = Vec::from_iter(self.hop_as_it_was(*case, SliceTime::Elapsed).into_values());
            squares += (factor * median(&hops).unwrap_or(0.0)).powi(2);
        }
        Estimate::as_it_was(&figures, Some(squares.sqrt()), self.confidence(), speed)
    }

    fn shared_hops_by_round(
        &self,
        sum: &HopSum,
        apart: Option<&Estimate>,
        time: SliceTime,
    ) -> Vec<f64> {
        let mut hops = Vec::new();
        for (case, factor) in &sum.hops {
            hops.push((*factor, self.hop_as_it_was(*case, time)));
        }
        Vec::from_iter(sum_within_rounds(&hops, time_apart_ns(sum, apart)).into_values())
    }

    /// Returns a sum at full speed of hops with their factors and of the time apart.
    fn full_sum(
        &self,
        sum: &HopSum,
        hops: &[(f64, FullHop)],
        scatter: LaunchScatter,
        apart: Option<&Estimate>,
    ) -> Option<Estimate> {
        let mut parts = Vec::new();
        let (mut freedom, mut is_few) = (f64::INFINITY, false);
        for (factor, hop) in hops {
            parts.push(SumPart {
                ns: factor * hop.ns,
                error: factor * hop.error,
                scatter: hop.scatter,
                rounds: hop.rounds,
            });
            freedom = freedom.min(hop.freedom);
            is_few |= hop.is_few;
        }
        if let Some(apart) = apart {
            parts.push(SumPart {
                ns: sum.apart * apart.value,
                error: sum.apart * apart.standard_error?,
                scatter: self.plan.reference.scatter(),
                rounds: apart.rounds,
            });
            is_few |= apart.speed == Speed::FewRounds;
        }
        let rounds = parts.iter().map(|part| part.rounds).min()?;
        let value: f64 = parts.iter().map(|part| part.ns).sum();
        let within: f64 = parts.iter().map(|part| part.error.powi(2)).sum();
        let standard_error = (within + variance_between_launches(&parts, scatter)).sqrt();
        // The error holds the scatter between launches, so none is added.
        if !is_few {
            return Estimate::at_full_speed(value, standard_error, rounds, 0.0, self.confidence());
        }
        let few = FewFigures { value, standard_error, freedom, rounds };
        Some(self.reported(Estimate::in_few_rounds(few, 0.0, self.confidence())?))
    }

    /// Returns a sum by the rounds that have all of it.
    pub(crate) fn sum_by_round(&self, sum: &HopSum, apart: Option<&Estimate>) -> Figures {
        let mut hops = Vec::new();
        for (case, factor) in &sum.hops {
            hops.push((*factor, self.hop_by_round(*case)));
        }
        sum_within_rounds(&hops, time_apart_ns(sum, apart))
    }
}

fn variance_between_launches(parts: &[SumPart], scatter: LaunchScatter) -> f64 {
    match scatter {
        LaunchScatter::Independent => {
            parts.iter().map(|part| (part.ns * part.scatter).powi(2)).sum()
        }
        LaunchScatter::Common => {
            let (mut value, mut largest) = (0.0, 0.0);
            for part in parts {
                value += part.ns;
                largest = f64::max(largest, part.scatter);
            }
            f64::powi(value * largest, 2)
        }
    }
}

/// Returns the part of a sum that was measured apart.
fn time_apart_ns(sum: &HopSum, apart: Option<&Estimate>) -> f64 {
    apart.map_or(0.0, |apart| sum.apart * apart.value)
}

/// Adds up hops by round, each times its factor, and a constant time.
fn sum_within_rounds(hops: &[(f64, Figures)], constant_ns: f64) -> Figures {
    let mut sums = Figures::new();
    let Some((_, first)) = hops.first() else { return sums };
    for round in first.keys() {
        if let Some(sum) = sum_in_round(hops, *round) {
            sums.insert(*round, constant_ns + sum);
        }
    }
    sums
}

fn sum_in_round(hops: &[(f64, Figures)], round: u32) -> Option<f64> {
    let mut sum = 0.0;
    for (factor, figures) in hops {
        sum += factor * figures.get(&round)?;
    }
    Some(sum)
}
