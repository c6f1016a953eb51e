//! The published figures of Li, Ding and Shen (2007), "Quantifying the Cost of Context Switch":
//! `data/li2007.csv` as typed values.
//!
//! Their machine: dual Pentium Xeon, 2.0 GHz, 512 KB second-level cache, Linux 2.6.17.

use std::collections::BTreeMap;

use serde::Deserialize;
use stats::{Interval, Summary};

use super::{PublishedError, rows};
use crate::findings::interference::{CONFIDENCE, Runs};
use crate::trial::{Environment, Setting};

const FILE: &str = "li2007.csv";

/// Runs behind each interval of the paper's Tables 1 and 2.
pub const RUNS: u32 = 6;

/// Bytes of the paper's KB.
const KB: u64 = 1024;

/// The distance between successive accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stride {
    /// Every element in turn.
    Sequential,
    /// So many bytes.
    Bytes(u64),
}

/// A range of c2 over a range of array sizes.
#[derive(Debug, Clone, PartialEq)]
pub struct Total {
    /// Which arrays, in the words of the file.
    pub condition: String,
    /// Smallest array of each process in bytes.
    pub smallest_bytes: u64,
    /// Largest array.
    pub largest_bytes: u64,
    /// The stride.
    pub stride: Stride,
    /// Lowest cost of a switch in microseconds.
    pub low_us: f64,
    /// Highest cost.
    pub high_us: f64,
    /// Mean cost, where the paper gives it.
    pub mean_us: Option<f64>,
}

/// All published figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    /// c1 in microseconds (section 3).
    pub direct_us: f64,
    /// c2 where all fits (section 3.1, first region).
    pub first_region: Total,
    /// c2 where the combined working sets exceed the cache (second region).
    pub second_region: Total,
    /// c2 by stride, arrays that exceed the cache (section 3.2).
    pub by_stride: Vec<Total>,
    /// Tables 1 and 2 (section 3.3): dual-processor is augmented, single-processor plain, and what disturbs
    /// are network packets. Means and scatters of the execution times that have the printed 90 % intervals, in the
    /// paper's unit, which it does not name.
    pub runs: Vec<Runs>,
}

impl Figures {
    /// Reads the text of `data/li2007.csv`. Fails on any line that it does not understand.
    pub fn parse(text: &str) -> Result<Self, PublishedError> {
        let wrong = |what: String| PublishedError { file: FILE, what };
        let (mut direct_us, mut regions) = (None, Vec::new());
        let (mut by_stride, mut runs) = (Vec::new(), Vec::new());
        for row in rows::<Row>(FILE, text)? {
            match &*row.quantity {
                "c1_direct" => direct_us = row.mean,
                "c2_total" => regions.push(row.total().map_err(wrong)?),
                "c2_total_stride" => by_stride.push(row.total().map_err(wrong)?),
                "interference" => runs.push(row.runs().map_err(wrong)?),
                other => return Err(wrong(format!("unknown quantity '{other}'"))),
            }
        }
        regions.sort_by_key(|total| total.smallest_bytes);
        let mut regions = regions.into_iter();
        let missing = |what: &str| wrong(format!("{what} is missing"));
        Ok(Self {
            direct_us: direct_us.ok_or_else(|| missing("c1"))?,
            first_region: regions.next().ok_or_else(|| missing("the first region"))?,
            second_region: regions.next().ok_or_else(|| missing("the second region"))?,
            by_stride,
            runs,
        })
    }

    /// The figures that come with the program.
    pub fn published() -> Result<Self, PublishedError> {
        Self::parse(include_str!("../../../../data/li2007.csv"))
    }

    /// c2 where the combined working sets exceed the cache over c2 where all fit: from the lowest over the highest to
    /// the highest over the lowest. To set beside [`crate::regions::Regions::second_over_first`].
    #[must_use]
    pub fn second_over_first(&self) -> (f64, f64) {
        let (first, second) = (&self.first_region, &self.second_region);
        (second.low_us / first.high_us, second.high_us / first.low_us)
    }
}

/// A line of the file.
#[derive(Deserialize)]
struct Row {
    quantity: String,
    condition: String,
    array_kb: String,
    stride_b: String,
    low: Option<f64>,
    high: Option<f64>,
    mean: Option<f64>,
}

impl Row {
    fn ends(&self) -> Result<(f64, f64), String> {
        let ends =
            self.low.zip(self.high).filter(|(low, high)| low.is_finite() && high.is_finite());
        ends.ok_or_else(|| format!("'{}' lacks an end of its range", self.condition))
    }

    fn bytes(kilobytes: &str) -> Result<u64, String> {
        let number = kilobytes.parse().ok().and_then(|number: u64| number.checked_mul(KB));
        number.ok_or_else(|| format!("'{kilobytes}' is not a size in KB"))
    }

    fn total(self) -> Result<Total, String> {
        let (low_us, high_us) = self.ends()?;
        let sizes = self.array_kb.split_once("..");
        let (smallest, largest) = sizes.unwrap_or((&self.array_kb, &self.array_kb));
        let stride = match &*self.stride_b {
            "sequential" => Stride::Sequential,
            bytes => {
                Stride::Bytes(bytes.parse().map_err(|_| format!("'{bytes}' is not a stride"))?)
            }
        };
        Ok(Total {
            smallest_bytes: Self::bytes(smallest)?,
            largest_bytes: Self::bytes(largest)?,
            condition: self.condition,
            stride,
            low_us,
            high_us,
            mean_us: self.mean,
        })
    }

    fn runs(self) -> Result<Runs, String> {
        let (environment, setting) = match &*self.condition {
            "quiet dual-processor" => (Environment::Quiet, Setting::Augmented),
            "quiet single-processor" => (Environment::Quiet, Setting::Plain),
            "network dual-processor" => (Environment::Disturbed, Setting::Augmented),
            "network single-processor" => (Environment::Disturbed, Setting::Plain),
            other => return Err(format!("unknown condition '{other}'")),
        };
        let (low, high) = self.ends()?;
        Ok(Runs {
            setting,
            environment,
            array_bytes: Self::bytes(&self.array_kb)?,
            times: Summary::from_interval(Interval { low, high, confidence: CONFIDENCE }, RUNS),
            by_round: BTreeMap::new(),
        })
    }
}
