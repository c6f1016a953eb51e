//! Two commands compared.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::run::Run;
use crate::estimate::Estimate;
use crate::plan::MINIMUM_ROUNDS;
use crate::stats::OnePerRound;

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
        let firsts = runs.iter().filter(|run| run.command == 0);
        let second = |round: u32| {
            let mut seconds = runs.iter().filter(|run| run.command == 1);
            seconds.find(|run| run.round == round)
        };
        let log_ratio = |first: &&Run| {
            let (a, b) = (of(first), of(second(first.round)?));
            (a > 0 && b > 0).then(|| (b as f64 / a as f64).ln())
        };
        let logs = OnePerRound(firsts.filter_map(log_ratio).collect());
        let estimate = Estimate::over(&logs, MINIMUM_ROUNDS, confidence, seed)?;
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
