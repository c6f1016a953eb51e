//! The published figures of Li, Ding and Shen (2007), "Quantifying the Cost of Context Switch":
//! `data/li2007.csv` as typed values.
//!
//! Their machine: dual Pentium Xeon, 2.0 GHz, 512 KB second-level cache, Linux 2.6.17.

use crate::interference::{CONFIDENCE, Environment, Runs, Setting};
use crate::stats::{Interval, Summary};

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

/// One interval of Tables 1 and 2: 90 % for the mean of six execution times, in the paper's unit,
/// which it does not name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Execution {
    /// Dual-processor is augmented, single-processor plain.
    pub setting: Setting,
    /// Quiet, or disturbed by network packets.
    pub environment: Environment,
    /// Array of each process in bytes.
    pub array_bytes: u64,
    /// The interval.
    pub interval: Interval,
}

/// All published figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    /// c1 in microseconds (section 3).
    pub direct_us: f64,
    /// c2 where all fits (section 3.1, first region).
    pub first_region: Total,
    /// c2 where two do not fit together (second region).
    pub second_region: Total,
    /// c2 by stride, arrays that exceed the cache (section 3.2).
    pub by_stride: Vec<Total>,
    /// Tables 1 and 2 (section 3.3).
    pub executions: Vec<Execution>,
}

/// A file that is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Li2007Error {
    /// A line that cannot be read.
    #[error("li2007.csv, line {line}: {what}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
    /// A figure that must be there.
    #[error("li2007.csv: {0} is missing")]
    Missing(&'static str),
}

impl Figures {
    /// Reads the text of `data/li2007.csv`. Fails on any line that it does not understand.
    pub fn parse(text: &str) -> Result<Self, Li2007Error> {
        let (mut direct_us, mut regions) = (None, Vec::new());
        let (mut by_stride, mut executions) = (Vec::new(), Vec::new());
        let lines = text.lines().enumerate().filter(|(_, line)| !line.starts_with('#'));
        for (index, line) in lines.skip(1) {
            let wrong = |what: String| Li2007Error::Line { line: index + 1, what };
            let row = Row::parse(line).map_err(wrong)?;
            match row.quantity {
                "c1_direct" => direct_us = Some(row.number(row.mean).map_err(wrong)?),
                "c2_total" => regions.push(row.total().map_err(wrong)?),
                "c2_total_stride" => by_stride.push(row.total().map_err(wrong)?),
                "interference" => executions.push(row.execution().map_err(wrong)?),
                other => return Err(wrong(format!("unknown quantity '{other}'"))),
            }
        }
        regions.sort_by_key(|total| total.smallest_bytes);
        let mut regions = regions.into_iter();
        Ok(Self {
            direct_us: direct_us.ok_or(Li2007Error::Missing("c1"))?,
            first_region: regions.next().ok_or(Li2007Error::Missing("the first region"))?,
            second_region: regions.next().ok_or(Li2007Error::Missing("the second region"))?,
            by_stride,
            executions,
        })
    }

    /// The figures that come with the program.
    pub fn published() -> Result<Self, Li2007Error> {
        Self::parse(include_str!("../../../../data/li2007.csv"))
    }

    /// c2 where two do not fit together over c2 where all fits: from the lowest over the highest to
    /// the highest over the lowest. To set beside [`crate::regions::Regions::second_over_first`].
    #[must_use]
    pub fn second_over_first(&self) -> (f64, f64) {
        let (first, second) = (&self.first_region, &self.second_region);
        (second.low_us / first.high_us, second.high_us / first.low_us)
    }

    /// Tables 1 and 2 as [`crate::interference::judge`] takes them: means and scatters that have the
    /// printed intervals.
    #[must_use]
    pub fn runs(&self) -> Vec<Runs> {
        let runs = |execution: &Execution| Runs {
            setting: execution.setting,
            environment: execution.environment,
            array_bytes: execution.array_bytes,
            times: Summary::from_interval(execution.interval, RUNS),
            by_round: std::collections::BTreeMap::new(),
        };
        self.executions.iter().map(runs).collect()
    }
}

/// One line, split.
struct Row<'a> {
    quantity: &'a str,
    condition: &'a str,
    array_kb: &'a str,
    stride: &'a str,
    low: &'a str,
    high: &'a str,
    mean: &'a str,
}

impl<'a> Row<'a> {
    fn parse(line: &'a str) -> Result<Self, String> {
        let fields: Vec<&str> = line.split(',').collect();
        let [quantity, condition, array_kb, stride, low, high, mean] = fields[..] else {
            return Err(format!("{} fields instead of 7", fields.len()));
        };
        Ok(Self { quantity, condition, array_kb, stride, low, high, mean })
    }

    fn number(&self, field: &str) -> Result<f64, String> {
        let number: f64 = field.parse().map_err(|_| format!("'{field}' is not a number"))?;
        if number.is_finite() { Ok(number) } else { Err(format!("'{field}' is not finite")) }
    }

    fn kilobytes(field: &str) -> Result<u64, String> {
        let number: u64 = field.parse().map_err(|_| format!("'{field}' is not a size in KB"))?;
        number.checked_mul(KB).ok_or_else(|| format!("'{field}' KB are too large"))
    }

    fn total(&self) -> Result<Total, String> {
        let (smallest, largest) =
            self.array_kb.split_once("..").unwrap_or((self.array_kb, self.array_kb));
        let stride = match self.stride {
            "sequential" => Stride::Sequential,
            bytes => {
                Stride::Bytes(bytes.parse().map_err(|_| format!("'{bytes}' is not a stride"))?)
            }
        };
        let mean_us = match self.mean {
            "" => None,
            mean => Some(self.number(mean)?),
        };
        Ok(Total {
            condition: self.condition.to_owned(),
            smallest_bytes: Self::kilobytes(smallest)?,
            largest_bytes: Self::kilobytes(largest)?,
            stride,
            low_us: self.number(self.low)?,
            high_us: self.number(self.high)?,
            mean_us,
        })
    }

    fn execution(&self) -> Result<Execution, String> {
        let (environment, setting) = match self.condition {
            "quiet dual-processor" => (Environment::Quiet, Setting::Augmented),
            "quiet single-processor" => (Environment::Quiet, Setting::Plain),
            "network dual-processor" => (Environment::Disturbed, Setting::Augmented),
            "network single-processor" => (Environment::Disturbed, Setting::Plain),
            other => return Err(format!("unknown condition '{other}'")),
        };
        let (low, high) = (self.number(self.low)?, self.number(self.high)?);
        Ok(Execution {
            setting,
            environment,
            array_bytes: Self::kilobytes(self.array_kb)?,
            interval: Interval { low, high, confidence: CONFIDENCE },
        })
    }
}
