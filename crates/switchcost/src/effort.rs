//! How long to measure: as typed, and as the stopping rule of a plan.

use std::time::Duration;

use clap::Args;
use model::case::Case;
use model::experiment::Experiment;
use model::plan::{Batching, Plan, Stopping};
use model::speed::Reference;

use crate::values::{above_zero, duration, nanoseconds, share, whole};

/// Confidence of all intervals.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// How long to measure; `BUDGET` is the seconds that an experiment takes if nothing is said.
#[derive(Debug, Args)]
#[command(next_help_heading = "Effort")]
pub(crate) struct Effort<const BUDGET: u64 = 20> {
    /// Stop when every interval's half-width is below this share of its figure
    ///
    /// A figure at full speed has a term for the scatter between launches, which keeps one launch at 2 % or more, and
    /// at 1 % or more once five stored launches have shown less scatter.
    #[arg(long, default_value = "2.5%", value_name = "SHARE", value_parser = share)]
    pub(crate) precision: f64,

    /// Stop when this much time is spent; the first round is always finished
    ///
    /// While a case has too few clean slices the run goes on with such cases, up to three times as long.
    /// --rounds ends it all the same.
    #[arg(long, default_value = format!("{BUDGET}s"), value_name = "TIME", value_parser = duration)]
    pub(crate) budget: Duration,

    /// Stop after this many rounds in any case
    #[arg(long, value_name = "COUNT", value_parser = above_zero::<u32>)]
    pub(crate) rounds: Option<u32>,

    /// Seed of the order of cases and of the statistics' resampling; recorded
    #[arg(long, default_value_t = 1992, value_name = "NUMBER", value_parser = whole(0..=u64::MAX))]
    pub(crate) seed: u64,
}

impl<const BUDGET: u64> Effort<BUDGET> {
    /// A plan of these cases, in this order, with the seed and the stopping rule as typed.
    pub(crate) fn plan<C: Into<Case>>(
        &self,
        experiment: Experiment,
        cases: impl IntoIterator<Item = C>,
        batching: Batching,
    ) -> Plan {
        let cases = cases.into_iter().map(Into::into).collect();
        let (seed, stopping) = (self.seed, self.stopping());
        Plan { experiment, cases, seed, batching, stopping, reference: Reference::default() }
    }

    /// The stopping rule as typed.
    pub(crate) fn stopping(&self) -> Stopping {
        Stopping {
            precision: self.precision,
            budget_ns: nanoseconds(self.budget),
            rounds: self.rounds,
            confidence: CONFIDENCE,
        }
    }
}
