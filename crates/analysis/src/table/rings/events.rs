//! What was counted beside the time of rings, for a hop and for a switch.

use rundata::bounds::saturating_sum;
use rundata::ring::RingSample;

use super::{Batch, Figure, Figures, Solo, Table, less, medians};
use crate::estimate::{Estimate, Speed};
use crate::speed::clean_events;

impl Table<'_> {
    /// What was counted of an event of the plan for a hop, by its place in the plan: of clean slices
    /// where the case has enough of them, else contended.
    pub fn events_per_hop(&self, case: usize, event: usize, stream: u64) -> Option<Estimate> {
        let (figures, full) = self.events(case, event);
        self.counted(figures, full, stream)
    }

    /// What was counted of it for a counted switch above the solo ring; absent where the solo is no
    /// ring of its own.
    pub fn events_per_switch(&self, case: usize, event: usize, stream: u64) -> Option<Estimate> {
        let Some(Solo::Case(solo)) = self.solo(case) else { return None };
        let ((ring, full), (solo, solo_full)) =
            (self.events(case, event), self.events(solo, event));
        self.counted(self.per_switch(case, less(&ring, &solo)), full && solo_full, stream)
    }

    /// Launches do not scatter in what is counted as they do in time: over rounds.
    fn counted(&self, figures: Figures, full: bool, stream: u64) -> Option<Estimate> {
        let all: Vec<f64> = figures.values().copied().collect();
        match full {
            true => self.over_rounds(&figures, stream),
            false => {
                self.told(Estimate::as_it_was(&all, None, self.confidence(), Speed::Contended))
            }
        }
    }

    /// By rounds, and whether nothing but clean slices are in them, or nobody looked.
    fn events(&self, case: usize, event: usize) -> (Figures, bool) {
        let full = self.has_figure(Figure::Hop(case));
        let of_clean = || {
            self.of_clean(case, |ring, batch, level| {
                clean_events(ring, batch, level, event).into_iter().collect()
            })
        };
        let clean = full.then(of_clean).flatten().map(|of| medians(&of));
        // Of hops that are cut into pieces no slice is clean.
        if let Some(clean) = clean.filter(|of| !of.is_empty()) {
            return (clean, true);
        }
        let of_all = |batch: &Batch| {
            let counts = |s: &RingSample| {
                Some(saturating_sum(s.slices.as_ref()?.counts_of(event)?.iter().copied()))
            };
            let all = batch.iter().filter_map(|s| Some((counts(s)?, s.hops)));
            let (counts, hops): (Vec<u64>, Vec<u64>) = all.unzip();
            let (count, hops) =
                (saturating_sum(counts.into_iter()), saturating_sum(hops.into_iter()));
            (hops > 0).then(|| count as f64 / hops as f64)
        };
        let all = self.batches(case).filter_map(|(round, batch)| Some((round, of_all(batch)?)));
        (all.collect(), !self.is_judged(case))
    }
}
