//! A histogram with bins that a person reads: 0, 1, 2, 5, 10, 20, 50, ... ns.
//!
//! 19 ns lies between 10 and 20: edges belong to the bin that they begin, so 20 ns is in the next.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::OctaveScale;

/// One bin.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename = "Bin")]
pub struct HistogramBin {
    /// Least value that belongs in it, in nanoseconds.
    pub from_ns: u64,
    /// Least value above it, in nanoseconds.
    pub below_ns: u64,
    /// Number of values.
    pub count: u64,
    /// Their sum in nanoseconds.
    pub total_ns: f64,
}

impl HistogramBin {
    /// Writes the lower edge: `5 us`.
    pub fn label(&self) -> String {
        let thousands = self.from_ns.checked_ilog(1000).unwrap_or(0).min(3);
        let unit = ["ns", "us", "ms", "s"][thousands as usize];
        format!("{} {unit}", self.from_ns / 1000_u64.pow(thousands))
    }
}

/// Bins from that of the least to that of the greatest value. Each says its own bounds, so that a
/// histogram is read alike whatever its bins are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Histogram(pub Vec<HistogramBin>);

impl Histogram {
    /// Counts values, each as often as it came, in nanoseconds, empty bins between them included.
    /// Values below 1 ns are in the first bin, 0 to 1 ns; those that are not finite are left out.
    pub fn from_values(values: impl IntoIterator<Item = (f64, u32)>) -> Self {
        let mut bins: BTreeMap<usize, HistogramBin> = BTreeMap::new();
        for (value, times) in values {
            if !value.is_finite() {
                continue;
            }
            let number = bin_number(value);
            let bin = bins.entry(number).or_insert_with(|| empty_bin(number));
            bin.count += u64::from(times);
            bin.total_ns += value * f64::from(times);
        }
        let (Some(&first), Some(&last)) = (bins.keys().next(), bins.keys().next_back()) else {
            return Self::default();
        };
        let mut all_bins = Vec::new();
        for number in first..=last {
            all_bins.push(bins.remove(&number).unwrap_or_else(|| empty_bin(number)));
        }
        Self(all_bins)
    }

    /// Counts values in nanoseconds, each as often as it came, in bins of eight parts an octave;
    /// empty bins are left out. Values below 0 are in the first bin.
    pub fn in_octaves(values: impl IntoIterator<Item = (i64, u32)>) -> Self {
        let scale = OctaveScale::EIGHT_PARTS;
        let mut bins: BTreeMap<usize, HistogramBin> = BTreeMap::new();
        for (value, times) in values {
            let index = scale.part_index(u64::try_from(value).unwrap_or(0));
            let [from_ns, below_ns] = scale.part_bounds(index);
            let empty = HistogramBin { from_ns, below_ns, count: 0, total_ns: 0.0 };
            let bin = bins.entry(index).or_insert(empty);
            bin.count += u64::from(times);
            bin.total_ns += value as f64 * f64::from(times);
        }
        Self(bins.into_values().collect())
    }
}

fn empty_bin(number: usize) -> HistogramBin {
    HistogramBin { from_ns: edge(number), below_ns: edge(number + 1), count: 0, total_ns: 0.0 }
}

/// Number of edges: the last is 5e18.
const EDGES: usize = 58;

/// Returns the lower edge of a bin: 0, 1, 2, 5, 10, ...
fn edge(number: usize) -> u64 {
    let Some(above) = number.checked_sub(1) else { return 0 };
    [1, 2, 5][above % 3] * 10_u64.saturating_pow((above / 3) as u32)
}

fn bin_number(value: f64) -> usize {
    (1..EDGES).take_while(|number| edge(*number) as f64 <= value).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_fall_between_the_edges_of_their_bin() {
        let histogram =
            Histogram::from_values([(1.0, 1), (1.9, 2), (2.0, 1), (19.0, 3), (-4.0, 1)]);
        let bins: Vec<(u64, u64, u64)> =
            histogram.0.iter().map(|bin| (bin.from_ns, bin.below_ns, bin.count)).collect();
        assert_eq!(bins, [(0, 1, 1), (1, 2, 3), (2, 5, 1), (5, 10, 0), (10, 20, 3)]);
        let label = |value: f64| Histogram::from_values([(value, 1)]).0[0].label();
        assert_eq!(
            [label(0.5), label(700.0), label(5e6), label(3e9)],
            ["0 ns", "500 ns", "5 ms", "2 s"]
        );
        assert_eq!(histogram.0[1].total_ns, 1.0 + 3.8);
        assert_eq!(Histogram::from_values([]), Histogram::default());
    }

    #[test]
    fn octaves_have_eight_bins_and_no_empty_one() {
        let histogram = Histogram::in_octaves([(-5, 1), (1000, 2), (1023, 1), (1024, 4)]);
        let mut bins = Vec::new();
        for bin in &histogram.0 {
            bins.push((bin.from_ns, bin.below_ns, bin.count));
        }
        assert_eq!(bins, [(0, 1, 1), (960, 1024, 3), (1024, 1152, 4)]);
        assert_eq!(histogram.0[1].total_ns, 3023.0);
    }

    proptest! {
        #[test]
        fn no_value_is_lost(values in prop::collection::vec((any::<f64>(), 0_u32..9), 0..50)) {
            let finite = values.iter().filter(|(value, _)| value.is_finite());
            let all: u64 = finite.map(|(_, times)| u64::from(*times)).sum();
            let histogram = Histogram::from_values(values.clone());
            prop_assert_eq!(histogram.0.iter().map(|bin| bin.count).sum::<u64>(), all);
            let neighbours = histogram.0.windows(2);
            for pair in neighbours {
                prop_assert_eq!(pair[0].below_ns, pair[1].from_ns);
            }
        }
    }
}
