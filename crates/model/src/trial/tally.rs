//! The outcomes of many trials, kept whole: each value with how often it came.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

    /// Takes up all values of another.
    pub fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|(value, times)| self.add(*value, *times));
    }

    /// Every value moved by `shift`.
    pub fn shifted(&self, shift: i64) -> Self {
        Self(self.0.iter().map(|(value, times)| (value.saturating_add(shift), *times)).collect())
    }

    /// Every value with how often it came, ascending.
    pub fn values(&self) -> impl Iterator<Item = (i64, u32)> {
        self.0.iter().map(|(value, times)| (*value, *times))
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.0.values().map(|times| u64::from(*times)).sum()
    }

    /// Sum of all values.
    pub fn total(&self) -> f64 {
        self.0.iter().map(|(value, times)| *value as f64 * f64::from(*times)).sum()
    }

    /// Arithmetic mean; absent without values.
    pub fn mean(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.total() / self.count() as f64)
    }

    /// Standard deviation (of a sample, n - 1); absent below two values.
    pub fn sd(&self) -> Option<f64> {
        let (count, mean) = (self.count(), self.mean()?);
        let square =
            |(value, times): (&i64, &u32)| (*value as f64 - mean).powi(2) * f64::from(*times);
        let squares: f64 = self.0.iter().map(square).sum();
        (count > 1).then(|| (squares / (count - 1) as f64).sqrt())
    }

    /// Least value.
    pub fn min(&self) -> Option<i64> {
        self.0.keys().next().copied()
    }

    /// Greatest value.
    pub fn max(&self) -> Option<i64> {
        self.0.keys().next_back().copied()
    }

    /// The least value that at least the share `p` (0 to 1) of all values does not exceed: a value
    /// that was seen (type 1 of Hyndman and Fan 1996). Absent without values.
    pub fn quantile(&self, p: f64) -> Option<i64> {
        self.at_rank((p.clamp(0.0, 1.0) * self.count() as f64).ceil().max(1.0) as u64)
    }

    /// The value of a rank in ascending order, from 1; absent beyond the last.
    pub fn at_rank(&self, rank: u64) -> Option<i64> {
        let mut seen = 0;
        self.0.iter().find_map(|(value, times)| {
            seen += u64::from(*times);
            (seen >= rank).then_some(*value)
        })
    }
}

/// A tally in figures. The unit is in the name that it stands under.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quantity {
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

impl Quantity {
    /// The figures of a tally; absent without values.
    pub fn of(tally: &Tally) -> Option<Self> {
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
