//! A figure with its interval, or the word that it is not resolved.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::stats::{Center, Interval, Rounds, hierarchical_interval};

/// An estimate over rounds. Signed: a difference below zero stays below zero.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// Median over rounds.
    pub value: f64,
    /// Mean over rounds; far from the median when some rounds were disturbed.
    pub mean: f64,
    /// Lower end of the median's interval; absent with fewer rounds than an interval needs.
    pub low: Option<f64>,
    /// Upper end of the median's interval; absent as `low`.
    pub high: Option<f64>,
    /// Nominal coverage of the interval: 0.95 is 95 %.
    pub confidence: f64,
    /// Whether there is an interval and it excludes zero.
    pub resolved: bool,
    /// Rounds behind the estimate.
    pub rounds: u32,
}

impl Estimate {
    /// The estimate from `rounds`; an interval only from `minimum_rounds` on. Absent without rounds.
    pub fn over(
        rounds: &dyn Rounds,
        minimum_rounds: u32,
        confidence: f64,
        seed: u64,
    ) -> Option<Self> {
        let figures: Vec<f64> = (0..rounds.len()).map(|round| rounds.figure(round)).collect();
        let interval = (figures.len() >= minimum_rounds as usize)
            .then(|| hierarchical_interval(rounds, Center::Median, confidence, seed))
            .flatten();
        Some(Self {
            value: Center::Median.of(&figures)?,
            mean: Center::Mean.of(&figures)?,
            low: interval.map(|i| i.low),
            high: interval.map(|i| i.high),
            confidence,
            resolved: interval.is_some_and(|i| !i.includes_zero()),
            rounds: figures.len() as u32,
        })
    }

    /// The same in another unit; none for a factor that is not above zero.
    pub fn scaled(&self, factor: f64) -> Option<Self> {
        (factor > 0.0).then(|| Self {
            value: self.value * factor,
            mean: self.mean * factor,
            low: self.low.map(|low| low * factor),
            high: self.high.map(|high| high * factor),
            ..*self
        })
    }

    /// The interval, if there is one.
    pub fn interval(&self) -> Option<Interval> {
        let (low, high) = (self.low?, self.high?);
        Some(Interval { low, high, confidence: self.confidence })
    }

    /// Half-width of the interval relative to the estimate: 0.01 is 1 %. Absent without interval
    /// and for an estimate of zero.
    pub fn relative_half_width(&self) -> Option<f64> {
        let half = self.interval()?.half_width();
        (self.value != 0.0).then(|| half / self.value.abs())
    }
}
