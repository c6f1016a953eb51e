//! What one worker saw in one round. Raw figures only.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::gap::{GAP_TICKS, Gap};
use super::sliced::Sliced;
use super::tally::Tally;

/// The trials of one case in one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TrialSample")]
pub struct Sample {
    /// Number of the case in the plan.
    pub case: usize,
    /// Round, from 0: one fresh worker for each case.
    pub round: u32,
    /// Time of all trials together, the reference quanta among them, in nanoseconds (CLOCK_MONOTONIC_RAW; of `clock-sampling` the
    /// time for which both processes were watched, by CLOCK_MONOTONIC).
    pub elapsed_ns: u64,
    /// The same time by the time-stamp counter, in its ticks; absent without such a counter.
    pub elapsed_ticks: Option<u64>,
    /// Outcomes by name, of trials that are not taken in slices; each name ends in its unit
    /// (docs/record-format.md).
    pub tallies: BTreeMap<String, Tally>,
    /// Outcomes of trials in slices, one entry for each of their loops. Empty for other trials, in runs of
    /// schema 1, and on architectures that the quanta are not written for: then they are in `tallies`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sliced: Vec<Sliced>,
    /// Gaps in the order of time, of trials that keep their moments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Gap>,
    /// Sums over the trials by name; a figure that was not available is absent.
    pub counts: BTreeMap<String, i64>,
    /// Time stolen by the hypervisor from the CPU, in nanoseconds, in steps of the kernel's 10 ms;
    /// absent where it is not reported.
    pub steal_ns: Option<u64>,
}

impl Sample {
    /// Nanoseconds to a tick of the time-stamp counter; absent without such a counter.
    pub fn ns_per_tick(&self) -> Option<f64> {
        let ticks = self.elapsed_ticks.filter(|ticks| *ticks > 0)?;
        Some(self.elapsed_ns as f64 / ticks as f64)
    }

    /// The tally of that name, of all slices.
    pub fn tally(&self, name: &str) -> Option<Cow<'_, Tally>> {
        let in_slices = || self.sliced.iter().find_map(|sliced| sliced.tally_of(name, |_| true));
        self.tallies.get(name).map(Cow::Borrowed).or_else(|| in_slices().map(Cow::Owned))
    }

    /// All tallies, of all slices, with that of the gaps' lengths.
    pub fn all_tallies(&self) -> BTreeMap<String, Tally> {
        let mut all = self.tallies.clone();
        for sliced in &self.sliced {
            for name in sliced.tallies.keys().filter(|name| !self.tallies.contains_key(*name)) {
                if let Some(tally) = sliced.tally_of(name, |_| true) {
                    all.entry(name.clone()).or_insert(tally);
                }
            }
        }
        if !self.gaps.is_empty() {
            let length = |gap: &Gap| i64::try_from(gap.ticks).unwrap_or(i64::MAX);
            all.insert(GAP_TICKS.to_string(), self.gaps.iter().map(length).collect());
        }
        all
    }

    /// The count of that name.
    pub fn count(&self, name: &str) -> Option<i64> {
        self.counts.get(name).copied()
    }
}
