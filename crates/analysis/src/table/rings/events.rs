//! Events that were counted beside the time of rings, for a hop and for a switch.

use rundata::bounds::saturating_sum;
use rundata::ring::RingSample;

use super::{Batch, Figures, RingFigure, SoloReference, Table, less, medians};
use crate::estimate::{Estimate, Speed};
use crate::speed::clean_events;

/// Counts of an event for a hop by rounds.
struct EventFigures {
    by_round: Figures,
    /// True if only clean slices are in them, or if the speed was not judged.
    is_full: bool,
}

impl Table<'_> {
    /// Returns the count of an event for a hop, by the event's place in the plan: of clean slices
    /// where the case has enough of them, else contended.
    pub fn events_per_hop(&self, case: usize, event: usize, stream: u64) -> Option<Estimate> {
        self.count_estimate(&self.events(case, event), stream)
    }

    /// Returns the count of an event for a counted switch above the solo ring; absent where the solo
    /// is no ring of its own.
    pub fn events_per_switch(&self, case: usize, event: usize, stream: u64) -> Option<Estimate> {
        let Some(SoloReference::Case(solo)) = self.solo(case) else { return None };
        let (ring, solo) = (self.events(case, event), self.events(solo, event));
        let figures = EventFigures {
            by_round: self.per_switch(case, &less(&ring.by_round, &solo.by_round)),
            is_full: ring.is_full && solo.is_full,
        };
        self.count_estimate(&figures, stream)
    }

    /// Returns the estimate of counts over rounds: launches do not scatter in them as in times.
    fn count_estimate(&self, figures: &EventFigures, stream: u64) -> Option<Estimate> {
        if figures.is_full {
            return self.over_rounds(&figures.by_round, stream);
        }
        let counts: Vec<f64> = figures.by_round.values().copied().collect();
        let shared = Estimate::as_it_was(&counts, None, self.confidence(), Speed::Contended)?;
        Some(self.reported(shared))
    }

    fn events(&self, case: usize, event: usize) -> EventFigures {
        if self.has_figure(RingFigure::Hop(case)) {
            let clean = self.clean_figures(case, |ring, batch, level| {
                Vec::from_iter(clean_events(ring, batch, level, event))
            });
            let by_round = clean.map(|clean| medians(&clean)).unwrap_or_default();
            // Hops that are cut into pieces have no clean slices.
            if !by_round.is_empty() {
                return EventFigures { by_round, is_full: true };
            }
        }
        let mut by_round = Figures::new();
        for (round, batch) in self.batches(case) {
            if let Some(count) = count_per_hop(batch, event) {
                by_round.insert(round, count);
            }
        }
        EventFigures { by_round, is_full: !self.is_judged(case) }
    }
}

/// Returns the count of an event for a hop over the samples that have it.
fn count_per_hop(batch: &Batch, event: usize) -> Option<f64> {
    let (mut counts, mut hops) = (Vec::new(), Vec::new());
    for sample in batch {
        if let Some(count) = event_count(sample, event) {
            counts.push(count);
            hops.push(sample.hops);
        }
    }
    let (count, hops) = (saturating_sum(counts.into_iter()), saturating_sum(hops.into_iter()));
    if hops > 0 { Some(count as f64 / hops as f64) } else { None }
}

fn event_count(sample: &RingSample, event: usize) -> Option<u64> {
    Some(saturating_sum(sample.slices.as_ref()?.counts_of(event)?.iter().copied()))
}
