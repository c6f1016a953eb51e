//! Sums of hops of several rings, each times a factor, and of what was measured apart: differences
//! of rings that differ in one thing.

use std::collections::BTreeMap;

use stats::{FewFigures, median};

use super::rings::FullHop;
use super::{Figures, Table};
use crate::estimate::{Estimate, Speed};

/// Hops of rings by the number of their case, and a time measured apart, each times a factor.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SumOfHops {
    pub(crate) hops: BTreeMap<usize, f64>,
    /// How often the time that was measured apart is in it.
    pub(crate) apart: f64,
}

impl SumOfHops {
    /// A hop of a ring.
    pub(crate) fn of(case: usize) -> Self {
        Self { hops: BTreeMap::from([(case, 1.0)]), apart: 0.0 }
    }

    /// So often what was measured apart.
    pub(crate) fn of_apart(times: f64) -> Self {
        Self { apart: times, ..Self::default() }
    }

    /// The same with another so many times.
    pub(crate) fn plus(mut self, other: &Self, times: f64) -> Self {
        for (case, factor) in &other.hops {
            *self.hops.entry(*case).or_default() += times * factor;
        }
        // What cancels out was never there.
        self.hops.retain(|_, factor| factor.abs() > 1e-12);
        self.apart += times * other.apart;
        self
    }

    pub(crate) fn times(self, factor: f64) -> Self {
        Self::default().plus(&self, factor)
    }
}

/// What launches scatter by of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scatter {
    /// Each hop by its own: of rings that do different things.
    OfEach,
    /// All hops by the same share: of one ring with one thing more or less.
    Common,
}

impl Table<'_> {
    /// A sum in nanoseconds. At full speed where each hop has clean slices enough: value +- t s,
    /// where the variance s^2 is the sum of (factor x error)^2 and of the scatter between launches.
    /// Of all slices and without an interval where a hop was judged and has not enough of them;
    /// where nobody looked at one, over rounds. Absent where something of it was not measured.
    pub(crate) fn sum_of_hops(
        &self,
        of: &SumOfHops,
        scatter: Scatter,
        apart: Option<&Estimate>,
        stream: u64,
    ) -> Option<Estimate> {
        let apart = if of.apart == 0.0 { None } else { Some(apart?) };
        if of.hops.is_empty() {
            return apart?.scaled(of.apart);
        }
        let hops: Vec<(f64, Option<FullHop>)> =
            of.hops.iter().map(|(case, factor)| (*factor, self.full_hop(*case))).collect();
        let full: Option<Vec<(f64, FullHop)>> =
            hops.iter().map(|(factor, hop)| Some((*factor, (*hop)?))).collect();
        let is_full = apart.is_none_or(|of| of.speed.is_full());
        if let Some(full) = full.filter(|_| is_full) {
            return self.full_sum(&full, scatter, apart.map(|apart| (of.apart, apart)));
        }
        let lacks = |case: &usize| self.is_judged(*case) && self.full_hop(*case).is_none();
        let is_open = apart.is_some_and(|of| of.speed.is_as_it_was());
        if !is_open && !of.hops.keys().any(lacks) {
            return self.over_rounds(&self.sum_by_round(of, apart), stream);
        }
        self.told(self.hops_as_they_were(of, apart))
    }

    /// A sum on a shared core: by CPU time where others ran on the CPU and that is known of all.
    fn hops_as_they_were(&self, of: &SumOfHops, apart: Option<&Estimate>) -> Option<Estimate> {
        let is_not_alone = of.hops.keys().any(|case| self.is_hop_not_alone(*case));
        let by_round = |is_by_cpu_time: bool| {
            let hops = of.hops.iter();
            let hops =
                hops.map(|(case, factor)| (*factor, self.hop_as_it_was(*case, is_by_cpu_time)));
            Vec::from_iter(sum_within_rounds(&hops.collect::<Vec<_>>(), of, apart).into_values())
        };
        let by_cpu_time = if is_not_alone { by_round(true) } else { Vec::new() };
        let (figures, speed) = match (is_not_alone, by_cpu_time.is_empty()) {
            (true, false) => (by_cpu_time, Speed::CpuTime),
            (true, true) => (by_round(false), Speed::NotAlone),
            (false, _) => (by_round(false), Speed::Contended),
        };
        let mut squares = 0.0;
        for (case, factor) in &of.hops {
            let hops = Vec::from_iter(self.hop_as_it_was(*case, false).into_values());
            squares += (factor * median(&hops).unwrap_or(0.0)).powi(2);
        }
        Estimate::as_it_was(&figures, Some(squares.sqrt()), self.confidence(), speed)
    }

    fn full_sum(
        &self,
        hops: &[(f64, FullHop)],
        scatter: Scatter,
        apart: Option<(f64, &Estimate)>,
    ) -> Option<Estimate> {
        let tau = self.plan.reference.scatter();
        let parts = hops.iter().map(|(factor, hop)| {
            Some((factor * hop.ns, factor * hop.error, hop.scatter, hop.rounds))
        });
        let apart_part = apart.map(|(times, of)| {
            Some((times * of.value, times * of.standard_error?, tau, of.rounds))
        });
        let is_few = hops.iter().any(|(_, hop)| hop.is_few)
            || apart.is_some_and(|(_, of)| of.speed == Speed::FewRounds);
        let parts: Vec<(f64, f64, f64, u32)> = parts.chain(apart_part).collect::<Option<_>>()?;
        let value: f64 = parts.iter().map(|(ns, ..)| ns).sum();
        let within: f64 = parts.iter().map(|(_, error, ..)| error.powi(2)).sum();
        let between: f64 = match scatter {
            Scatter::OfEach => parts.iter().map(|(ns, _, tau, _)| (ns * tau).powi(2)).sum(),
            Scatter::Common => {
                let tau = parts.iter().map(|(_, _, tau, _)| *tau).fold(0.0, f64::max);
                (value * tau).powi(2)
            }
        };
        let rounds = parts.iter().map(|(.., rounds)| *rounds).min()?;
        // Launch scatter is already in the error; pass 0.
        let (error, confidence) = ((within + between).sqrt(), self.confidence());
        if !is_few {
            return Estimate::at_full_speed(value, error, rounds, 0.0, confidence);
        }
        let freedom = hops.iter().map(|(_, hop)| hop.freedom).fold(f64::INFINITY, f64::min);
        let few = FewFigures { value, standard_error: error, freedom, rounds };
        self.told(Estimate::in_few_rounds(few, 0.0, confidence))
    }

    /// A sum by the rounds that have all of it.
    pub(crate) fn sum_by_round(&self, of: &SumOfHops, apart: Option<&Estimate>) -> Figures {
        let hops: Vec<(f64, Figures)> =
            of.hops.iter().map(|(case, factor)| (*factor, self.hop_by_round(*case))).collect();
        sum_within_rounds(&hops, of, apart)
    }
}

/// Adds up hops by round, each times its factor, and what was measured apart.
fn sum_within_rounds(hops: &[(f64, Figures)], of: &SumOfHops, apart: Option<&Estimate>) -> Figures {
    let constant = apart.map_or(0.0, |apart| of.apart * apart.value);
    let Some((_, first)) = hops.first() else { return Figures::new() };
    let sum = |round: &u32| {
        let all = hops.iter().map(|(factor, of)| Some(factor * of.get(round)?));
        Some((*round, constant + all.sum::<Option<f64>>()?))
    };
    first.keys().filter_map(sum).collect()
}
