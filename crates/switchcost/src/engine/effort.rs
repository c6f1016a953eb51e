//! How long to measure: as typed, and as the stopping rule of a plan.

use std::time::Duration;

use clap::Args;
use clap::builder::UnknownArgumentValueParser;
use model::case::Case;
use model::experiment::Experiment;
use model::plan::{Batching, FEWEST_ROUNDS, Plan, Reference, Stopping};

use crate::base::values::{above_zero, duration, nanoseconds, share, whole};
use crate::present::terminal::TOO_SHORT;

/// Confidence of all intervals.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// How long to measure; `BUDGET` is the seconds that an experiment takes if nothing is said.
#[derive(Debug, Args)]
#[command(next_help_heading = "Effort")]
pub(crate) struct Effort<const BUDGET: u64 = 20> {
    /// Stop when every interval's half-width is below this share of its figure
    ///
    /// A figure at full speed has a term for the scatter between launches. It keeps one launch at
    /// 2 % or more until five stored launches of the same plan have shown how they scatter here.
    #[arg(long, default_value = "2.5%", value_name = "SHARE", value_parser = share)]
    pub(crate) precision: f64,

    /// Stop when this much time is spent; the first round is always finished
    ///
    /// While a case has too few clean slices the run goes on with such cases, up to three times
    /// as long. --rounds is always kept.
    #[arg(long, default_value = format!("{BUDGET}s"), value_name = "TIME", value_parser = duration)]
    pub(crate) budget: Duration,

    /// Stop after this many rounds in any case
    #[arg(long, value_name = "COUNT", value_parser = above_zero::<u32>)]
    pub(crate) rounds: Option<u32>,

    /// Seed of the order of cases and of the statistics' resampling; recorded
    #[arg(long, default_value_t = 1992, value_name = "NUMBER", value_parser = whole(0..=u64::MAX))]
    pub(crate) seed: u64,

    #[command(flatten)]
    pub(crate) other: OtherNames,
}

/// What other tools call the budget: refused, with a pointer to it.
#[derive(Debug, Default, Args)]
pub(crate) struct OtherNames {
    #[arg(long = "duration", aliases = ["time", "quick"], num_args = 0..=1, hide = true, value_parser = UnknownArgumentValueParser::suggest_arg("--budget"))]
    other_duration: Option<String>,
}

/// About what a case takes in a round: its worker's start and end, and some tens of milliseconds of
/// laps.
const CASE: Duration = Duration::from_millis(80);

impl<const BUDGET: u64> Effort<BUDGET> {
    /// The sizes for which the budget suffices to give intervals, evenly spread, the first and the
    /// last among them; and a note if some were left out. Each size has so many cases, and there
    /// are others beside them. All of them where the number of rounds was asked for.
    pub(crate) fn fitting<T: Copy>(
        &self,
        sizes: &[T],
        each: usize,
        others: usize,
    ) -> (Vec<T>, Option<String>) {
        let all = sizes.len() * each + others;
        let fit = (self.budget.as_nanos() / (CASE * FEWEST_ROUNDS).as_nanos()) as usize;
        let kept = (fit.saturating_sub(others) / each.max(1)).max(2);
        if self.rounds.is_some() || all <= fit || kept >= sizes.len() {
            return (sizes.to_vec(), None);
        }
        let place = |number: usize| (number * (sizes.len() - 1) + (kept - 1) / 2) / (kept - 1);
        let chosen = (0..kept).map(|number| sizes[place(number)]).collect();
        let budget = humantime::format_duration(self.budget);
        let needed = ((CASE * FEWEST_ROUNDS).as_secs_f64() * all as f64).ceil();
        let note = format!(
            "{TOO_SHORT} {budget} is enough for {kept} of {} sizes; --budget {needed:.0}s measures \
             all",
            sizes.len()
        );
        (chosen, Some(note))
    }

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
            fixed_budget: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_budget_has_fewer_sizes_and_says_so() {
        let effort = |seconds, rounds| Effort::<20> {
            precision: 0.025,
            budget: Duration::from_secs(seconds),
            rounds,
            seed: 1,
            other: OtherNames::default(),
        };
        let sizes: Vec<u32> = (2..=53).collect();
        let (kept, note) = effort(5, None).fitting(&sizes, 1, 1);
        assert_eq!(kept, [2, 12, 22, 33, 43, 53]);
        assert_eq!(
            note.as_deref(),
            Some("budget: 5s is enough for 6 of 52 sizes; --budget 34s measures all")
        );
        assert_eq!(effort(1, None).fitting(&sizes, 1, 1).0, [2, 53], "never fewer than both ends");
        for whole in [effort(60, None), effort(1, Some(2))] {
            assert_eq!(whole.fitting(&sizes, 1, 1), (sizes.clone(), None));
        }
    }
}
