//! Two commands compared.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::figures::estimate;
use super::run::Run;

/// A figure of the second command over the first one's, taken within each round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ratio {
    /// Which figure: `real_ns` or `cpu_ns`.
    pub of: String,
    /// Median over rounds of second / first.
    pub value: f64,
    /// Lower end of its interval; absent with fewer rounds than an interval needs.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Nominal coverage.
    pub confidence: f64,
    /// Whether there is an interval and it excludes 1.
    pub resolved: bool,
    /// Rounds in which both ran.
    pub rounds: u32,
}

impl Ratio {
    /// The ratio of `of` over the rounds of `runs` in which both commands ran to their end. It is
    /// estimated on the logarithm, so that second / first and first / second say the same.
    #[must_use]
    pub fn over(
        runs: &[&Run],
        name: &str,
        of: fn(&Run) -> u64,
        confidence: f64,
        seed: u64,
    ) -> Option<Self> {
        let seconds: BTreeMap<u32, u64> =
            runs.iter().filter(|run| run.command == 1).map(|run| (run.round, of(run))).collect();
        let log_ratio = |first: &Run| {
            let (a, b) = (of(first), *seconds.get(&first.round)?);
            (a > 0 && b > 0).then(|| (b as f64 / a as f64).ln())
        };
        let firsts = runs.iter().filter(|run| run.command == 0);
        let logs = firsts.filter_map(|run| log_ratio(run)).collect();
        let estimate = estimate(logs, confidence, seed)?;
        Some(Self {
            of: name.to_owned(),
            value: estimate.value.exp(),
            low: estimate.low.map(f64::exp),
            high: estimate.high.map(f64::exp),
            confidence,
            resolved: estimate.resolved,
            rounds: estimate.rounds,
        })
    }
}
