//! Li, Ding and Shen, "Quantifying the Cost of Context Switch" (2007): `data/li2007.csv` and
//! `data/li2007_times.csv` as typed values.
//!
//! Their machine: dual Pentium Xeon, 2.0 GHz, 512 KB second-level cache, Linux 2.6.17.

use std::collections::BTreeMap;

use rundata::trial::interference::{Environment, ProgramSetting};
use serde::{Deserialize, Deserializer};
use stats::{Interval, SampleSummary};

use super::{PublishedError, parse_rows, positive};
use crate::findings::interference::{CONFIDENCE, ConditionTimes};

const FILE: &str = "li2007.csv";

/// c1 in microseconds (section 3).
pub const DIRECT_US: f64 = 3.8;

/// Runs behind each interval of the paper's Tables 1 and 2.
pub const RUNS: u32 = 6;

/// A range of c2 over a range of array sizes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct TotalCost {
    /// The arrays, in the words of the file.
    pub condition: String,
    /// Smallest array of each process in bytes.
    #[serde(rename = "smallest_kb", deserialize_with = "bytes")]
    pub smallest_bytes: u64,
    /// Largest array of each process in bytes.
    #[serde(rename = "largest_kb", deserialize_with = "bytes")]
    pub largest_bytes: u64,
    /// Bytes between successive accesses; absent where every element is touched in turn.
    pub stride_bytes: Option<u64>,
    /// Lowest cost of a switch in microseconds.
    #[serde(deserialize_with = "positive")]
    pub low_us: f64,
    /// Highest cost of a switch in microseconds.
    #[serde(deserialize_with = "positive")]
    pub high_us: f64,
    /// Mean cost in microseconds; absent where the paper does not give it.
    pub mean_us: Option<f64>,
}

/// An interval of Tables 1 and 2. Their dual-processor is augmented, single-processor plain, and
/// network packets disturb.
#[derive(Deserialize)]
struct TimesRow {
    environment: Environment,
    setting: ProgramSetting,
    #[serde(rename = "array_kb", deserialize_with = "bytes")]
    array_bytes: u64,
    #[serde(deserialize_with = "positive")]
    low: f64,
    #[serde(deserialize_with = "positive")]
    high: f64,
}

impl TimesRow {
    /// Returns the mean and scatter that have the printed interval.
    fn to_times(&self) -> ConditionTimes {
        let interval = Interval { low: self.low, high: self.high, confidence: CONFIDENCE };
        ConditionTimes {
            setting: self.setting,
            environment: self.environment,
            array_bytes: self.array_bytes,
            times: SampleSummary::from_interval(interval, RUNS),
            by_round: BTreeMap::new(),
        }
    }
}

/// Parses a size in the paper's KB, and returns its bytes.
fn bytes<'de, D: Deserializer<'de>>(field: D) -> Result<u64, D::Error> {
    let kilobytes = u64::deserialize(field)?;
    Ok(kilobytes.saturating_mul(1024))
}

/// The published figures of the paper.
#[derive(Debug, Clone, PartialEq)]
pub struct LiFigures {
    /// c2 where everything fits (section 3.1, first region).
    pub first_region: TotalCost,
    /// c2 where the combined working sets exceed the cache (second region).
    pub second_region: TotalCost,
    /// c2 by stride, arrays that exceed the cache (section 3.2).
    pub by_stride: Vec<TotalCost>,
    /// Tables 1 and 2 (section 3.3): means and scatters of the execution times that have the
    /// printed 90 % intervals, in the paper's unit, which it does not name.
    pub runs: Vec<ConditionTimes>,
}

impl LiFigures {
    /// Parses the text of `data/li2007.csv` and of `data/li2007_times.csv`. Fails on any line that
    /// it does not understand.
    pub fn parse(costs: &str, times: &str) -> Result<Self, PublishedError> {
        let costs: Vec<TotalCost> = parse_rows(FILE, costs)?;
        let [first_region, second_region, by_stride @ ..] = &costs[..] else {
            let what = "one of the two regions is missing".to_string();
            return Err(PublishedError { file: FILE, what });
        };
        let rows: Vec<TimesRow> = parse_rows("li2007_times.csv", times)?;
        Ok(Self {
            first_region: first_region.clone(),
            second_region: second_region.clone(),
            by_stride: by_stride.to_vec(),
            runs: rows.iter().map(TimesRow::to_times).collect(),
        })
    }

    /// Returns the figures of the built-in files.
    pub fn published() -> Result<Self, PublishedError> {
        let costs = include_str!("../../data/li2007.csv");
        Self::parse(costs, include_str!("../../data/li2007_times.csv"))
    }

    /// Returns c2 where the combined working sets exceed the cache over c2 where everything fits:
    /// from the lowest over the highest to the highest over the lowest. It is set beside
    /// [`crate::regions::CacheRegions::second_over_first`].
    pub fn second_over_first(&self) -> (f64, f64) {
        let (first, second) = (&self.first_region, &self.second_region);
        (second.low_us / first.high_us, second.high_us / first.low_us)
    }
}
