//! What was tried one after the other in slices of a quarter of a millisecond, with reference quanta around each.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::tally::Tally;
use crate::speed::Slices;

/// Outcomes slice by slice. A sample has one of these for each of its loops.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sliced {
    /// The slices and the quanta between them. A lap gives one outcome to each tally.
    pub slices: Slices,
    /// Outcomes by name, those of each slice apart; each name ends in its unit (docs/record-format.md).
    pub tallies: BTreeMap<String, Vec<Tally>>,
}

impl Sliced {
    /// Whether the quanta tell which slices are clean.
    pub fn can_be_judged(&self) -> bool {
        let slices = self.slices.elapsed_ns.len();
        self.slices.can_be_judged() && self.tallies.values().all(|of| of.len() == slices)
    }

    /// The tally of that name of all slices that `takes`; none without an outcome.
    pub fn tally_of(&self, name: &str, takes: impl Fn(usize) -> bool) -> Option<Tally> {
        let mut all = Tally::default();
        let slices = self.tallies.get(name)?.iter().enumerate();
        slices.filter(|(index, _)| takes(*index)).for_each(|(_, tally)| all.merge(tally));
        (all.count() > 0).then_some(all)
    }

    /// Time of a lap in a slice, in nanoseconds. None of a slice without an outcome.
    pub fn ns_per_lap(&self, index: usize) -> Option<f64> {
        let laps = self.tallies.values().next()?.get(index)?.count();
        (laps > 0).then(|| self.slices.elapsed_ns.get(index).map(|ns| *ns as f64 / laps as f64))?
    }
}
