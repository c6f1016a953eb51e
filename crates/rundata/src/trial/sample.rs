//! Outcomes that one worker saw in one round. Raw figures only.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::gaps::GAP_TICKS;
use crate::ring::Slices;

/// The trials of one case in one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialSample {
    /// Number of the case in the plan.
    pub case: usize,
    /// Round, from 0: a fresh worker for each case.
    pub round: u32,
    /// Time of all trials together, the reference quanta among them, in nanoseconds
    /// (CLOCK_MONOTONIC_RAW; of `clock-sampling` the time for which both processes were watched, by
    /// CLOCK_MONOTONIC).
    pub elapsed_ns: u64,
    /// `elapsed_ns` by the time-stamp counter, in its ticks; absent without such a counter.
    pub elapsed_ticks: Option<u64>,
    /// Outcomes by name, for trials that are not taken in slices; each name ends in its unit
    /// (docs/record-format.md).
    pub tallies: BTreeMap<String, Tally>,
    /// Outcomes of trials in slices, an entry for each of their loops. Empty for other trials, in
    /// runs of schema 1, and on architectures for which the quanta are not written: there the
    /// outcomes are in `tallies`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sliced: Vec<SlicedTallies>,
    /// Gaps in the order of time, for trials that keep their moments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Gap>,
    /// Sums over the trials by name; a figure that was not available is absent.
    pub counts: BTreeMap<String, i64>,
    /// Time stolen by the hypervisor from the CPU, in nanoseconds, in steps of the kernel's 10 ms;
    /// absent where it is not reported.
    pub steal_ns: Option<u64>,
}

impl TrialSample {
    /// Returns the nanoseconds to a tick of the time-stamp counter; `None` without such a counter.
    pub fn ns_per_tick(&self) -> Option<f64> {
        let ticks = self.elapsed_ticks?;
        if ticks == 0 {
            return None;
        }
        Some(self.elapsed_ns as f64 / ticks as f64)
    }

    /// Returns the tally of that name over all slices.
    pub fn tally(&self, name: &str) -> Option<Cow<'_, Tally>> {
        if let Some(tally) = self.tallies.get(name) {
            return Some(Cow::Borrowed(tally));
        }
        let sliced = self.sliced.iter().find_map(|sliced| sliced.tally_of(name, |_| true))?;
        Some(Cow::Owned(sliced))
    }

    /// Returns all tallies over all slices, and the tally of the gaps' lengths.
    pub fn all_tallies(&self) -> BTreeMap<String, Tally> {
        let mut all = self.tallies.clone();
        for sliced in &self.sliced {
            for name in sliced.tallies.keys() {
                if let Some(tally) = sliced.tally_of(name, |_| true) {
                    all.entry(name.clone()).or_insert(tally);
                }
            }
        }
        if !self.gaps.is_empty() {
            let mut lengths = Tally::default();
            for gap in &self.gaps {
                lengths.add(i64::try_from(gap.ticks).unwrap_or(i64::MAX), 1);
            }
            all.insert(GAP_TICKS.to_string(), lengths);
        }
        all
    }

    /// Returns the median outcome of that name over all slices.
    pub fn median(&self, name: &str) -> Option<f64> {
        self.tally(name)?.median()
    }

    /// Returns the count of that name.
    pub fn count(&self, name: &str) -> Option<i64> {
        self.counts.get(name).copied()
    }
}

/// Outcomes slice by slice. A sample has one of these for each of its loops.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SlicedTallies {
    /// The slices and the quanta between them. A lap gives one outcome to each tally.
    pub slices: Slices,
    /// Outcomes by name, those of each slice apart; each name ends in its unit
    /// (docs/record-format.md).
    pub tallies: BTreeMap<String, Vec<Tally>>,
}

impl SlicedTallies {
    /// Returns whether the quanta show which slices are clean.
    pub fn can_be_judged(&self) -> bool {
        let slices = self.slices.elapsed_ns.len();
        self.slices.can_be_judged() && self.tallies.values().all(|tallies| tallies.len() == slices)
    }

    /// Returns the tally of that name over all slices that `takes` selects; `None` without an
    /// outcome.
    pub fn tally_of(&self, name: &str, takes: impl Fn(usize) -> bool) -> Option<Tally> {
        let mut sum = Tally::default();
        for (index, tally) in self.tallies.get(name)?.iter().enumerate() {
            if takes(index) {
                sum.merge(tally);
            }
        }
        if sum.count() > 0 { Some(sum) } else { None }
    }

    /// Returns the time of a lap in a slice, in nanoseconds; `None` for a slice without an outcome.
    pub fn ns_per_lap(&self, index: usize) -> Option<f64> {
        let laps = self.tallies.values().next()?.get(index)?.count();
        let elapsed_ns = *self.slices.elapsed_ns.get(index)?;
        if laps > 0 { Some(elapsed_ns as f64 / laps as f64) } else { None }
    }
}

/// A gap between two successive time stamps of a loop that does nothing else. In JSON
/// `[at_ticks, ticks, switches, cpu_ns, clocked_ticks]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "StoredGap", into = "StoredGap")]
#[schemars(with = "StoredGap")]
pub struct Gap {
    /// From the start of the window to the last stamp before it, in ticks of the time stamp.
    pub at_ticks: u64,
    /// From that stamp to the next, in ticks.
    pub ticks: u64,
    /// Switches of the thread, of both kinds, since it looked after the gap before.
    pub switches: u32,
    /// The thread's CPU time (CLOCK_THREAD_CPUTIME_ID) since it looked after the gap before, in
    /// nanoseconds.
    pub cpu_ns: u64,
    /// From one reading of that CPU time to the other, in ticks: what its length is compared with.
    pub clocked_ticks: u64,
}

type StoredGap = (u64, u64, u32, u64, u64);

impl From<StoredGap> for Gap {
    fn from((at_ticks, ticks, switches, cpu_ns, clocked_ticks): StoredGap) -> Self {
        Self { at_ticks, ticks, switches, cpu_ns, clocked_ticks }
    }
}

impl From<Gap> for StoredGap {
    fn from(gap: Gap) -> Self {
        (gap.at_ticks, gap.ticks, gap.switches, gap.cpu_ns, gap.clocked_ticks)
    }
}

/// A multiset of whole numbers; the unit is in the name under which it is kept. In JSON a list of
/// `[value, times]`, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Vec<(i64, u32)>", into = "Vec<(i64, u32)>")]
#[schemars(with = "Vec<(i64, u32)>")]
pub struct Tally(BTreeMap<i64, u32>);

impl From<Vec<(i64, u32)>> for Tally {
    fn from(pairs: Vec<(i64, u32)>) -> Self {
        let mut tally = Self::default();
        pairs.into_iter().for_each(|(value, times)| tally.add(value, times));
        tally
    }
}

impl From<Tally> for Vec<(i64, u32)> {
    fn from(tally: Tally) -> Self {
        tally.0.into_iter().collect()
    }
}

impl FromIterator<i64> for Tally {
    fn from_iter<T: IntoIterator<Item = i64>>(values: T) -> Self {
        let mut tally = Self::default();
        values.into_iter().for_each(|value| tally.add(value, 1));
        tally
    }
}

impl Tally {
    fn add(&mut self, value: i64, times: u32) {
        if times > 0 {
            let count = self.0.entry(value).or_default();
            *count = count.saturating_add(times);
        }
    }

    /// Adds all values of another tally.
    pub fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|(value, times)| self.add(*value, *times));
    }

    /// Returns the tally with every value moved by `shift`.
    pub fn shifted(&self, shift: i64) -> Self {
        let mut shifted = BTreeMap::new();
        for (value, times) in &self.0 {
            shifted.insert(value.saturating_add(shift), *times);
        }
        Self(shifted)
    }

    /// Returns the tally with every value less the median of `empty`; `None` where that has no
    /// values.
    pub fn less(&self, empty: &Self) -> Option<Self> {
        Some(self.shifted(empty.quantile(0.5)?.saturating_neg()))
    }

    /// Iterates over the values and their counts, ascending.
    pub fn values(&self) -> impl Iterator<Item = (i64, u32)> {
        self.0.iter().map(|(value, times)| (*value, *times))
    }

    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.0.values().map(|times| u64::from(*times)).sum()
    }

    /// Returns the number of values that do not exceed `most`.
    pub fn count_up_to(&self, most: i64) -> u64 {
        self.0.range(..=most).map(|(_, times)| u64::from(*times)).sum()
    }

    /// Returns the sum of all values.
    pub fn total(&self) -> f64 {
        let mut sum = 0.0;
        for (value, times) in self.values() {
            sum += value as f64 * f64::from(times);
        }
        sum
    }

    /// Returns the arithmetic mean; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        if self.0.is_empty() { None } else { Some(self.total() / self.count() as f64) }
    }

    /// Returns the standard deviation (of a sample, n - 1); `None` below two values.
    pub fn sd(&self) -> Option<f64> {
        let (count, mean) = (self.count(), self.mean()?);
        let mut squares = 0.0;
        for (value, times) in self.values() {
            squares += (value as f64 - mean).powi(2) * f64::from(times);
        }
        if count > 1 { Some((squares / (count - 1) as f64).sqrt()) } else { None }
    }

    /// Returns the least value.
    pub fn min(&self) -> Option<i64> {
        self.0.keys().next().copied()
    }

    /// Returns the greatest value.
    pub fn max(&self) -> Option<i64> {
        self.0.keys().next_back().copied()
    }

    /// Returns the least value that at least the share `p` (0 to 1) of all values does not exceed:
    /// a value that was seen (type 1 of Hyndman and Fan 1996). `None` without values.
    pub fn quantile(&self, p: f64) -> Option<i64> {
        self.at_rank((p.clamp(0.0, 1.0) * self.count() as f64).ceil().max(1.0) as u64)
    }

    /// Returns the median, a value that was seen; `None` without values.
    pub fn median(&self) -> Option<f64> {
        self.quantile(0.5).map(|value| value as f64)
    }

    /// Returns the value of a rank in ascending order, from 1; `None` beyond the last.
    pub fn at_rank(&self, rank: u64) -> Option<i64> {
        let mut seen = 0;
        for (value, times) in self.values() {
            seen += u64::from(times);
            if seen >= rank {
                return Some(value);
            }
        }
        None
    }
}

/// A tally in figures. The unit is in the name that it stands under.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TallySummary {
    /// Number of values.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of all values; absent below two.
    pub sd: Option<f64>,
    /// Least value.
    pub min: i64,
    /// Median: a value that was seen.
    pub p50: i64,
    /// The value that 99 % do not exceed.
    pub p99: i64,
    /// Greatest value.
    pub max: i64,
}

impl TallySummary {
    /// Computes the figures of a tally; `None` without values.
    pub fn from_tally(tally: &Tally) -> Option<Self> {
        Some(Self {
            count: tally.count(),
            mean: tally.mean()?,
            sd: tally.sd(),
            min: tally.min()?,
            p50: tally.quantile(0.5)?,
            p99: tally.quantile(0.99)?,
            max: tally.max()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_answers() {
        // 2, 4, 4, 4, 5, 5, 7, 9: mean 5, sum of squares 32.
        let tally: Tally = [9, 2, 4, 5, 4, 7, 4, 5].into_iter().collect();
        assert_eq!((tally.count(), tally.mean()), (8, Some(5.0)));
        assert!((tally.sd().unwrap() - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
        assert_eq!((tally.min(), tally.max()), (Some(2), Some(9)));
        assert_eq!((tally.quantile(0.5), tally.quantile(0.99)), (Some(4), Some(9)));
        assert_eq!((tally.quantile(0.0), tally.quantile(0.51)), (Some(2), Some(5)));
        assert_eq!(tally.shifted(-5).mean(), Some(0.0));
        assert_eq!([1, 4, 100].map(|most| tally.count_up_to(most)), [0, 4, 8]);
    }

    #[test]
    fn nothing_has_no_figures() {
        let none = Tally::default();
        assert_eq!((none.count(), none.mean(), none.sd()), (0, None, None));
        assert_eq!((none.min(), none.quantile(0.5)), (None, None));
        assert_eq!(Tally::from_iter([3]).sd(), None);
    }

    proptest! {
        #[test]
        fn it_is_its_values(values in prop::collection::vec(-1000_i64..1000, 1..200)) {
            let tally: Tally = values.iter().copied().collect();
            let mut sorted = values.clone();
            sorted.sort_unstable();
            prop_assert_eq!(tally.count(), values.len() as u64);
            for p in [0.01, 0.25, 0.5, 0.75, 0.99, 1.0] {
                let rank = ((p * sorted.len() as f64).ceil() as usize).max(1);
                prop_assert_eq!(tally.quantile(p), Some(sorted[rank - 1]));
            }
            let text = serde_json::to_string(&tally).unwrap();
            prop_assert_eq!(serde_json::from_str::<Tally>(&text).unwrap(), tally.clone());
            let (left, right) = values.split_at(values.len() / 2);
            let mut merged: Tally = left.iter().copied().collect();
            merged.merge(&right.iter().copied().collect());
            prop_assert_eq!(merged, tally);
        }

        #[test]
        fn any_list_of_pairs_is_a_tally(pairs: Vec<(i64, u32)>) {
            let tally = Tally::from(pairs);
            let _ = (tally.mean(), tally.sd(), tally.quantile(0.5), tally.shifted(i64::MIN));
        }
    }
}
