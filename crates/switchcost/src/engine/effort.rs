//! How long to measure: as typed, and as the stopping rule of a plan.

use std::time::Duration;

use clap::Args;
use model::case::Case;
use model::experiment::Experiment;
use model::plan::{Batching, FEWEST_ROUNDS, Plan, Reference, Stopping};

use crate::base::values::{Budget, above_zero, budget, nanoseconds, share, whole};
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

    /// Stop when this much time is spent; a number is seconds
    ///
    /// Where that is too little for all sizes, fewer are measured, and the answer says so. With a +
    /// behind it, as the default has, the run may go on up to three times as long with cases that
    /// have too few clean slices. --rounds is always kept.
    #[arg(long, aliases = ["seconds", "duration"], default_value = format!("{BUDGET}s+"), value_name = "TIME", value_parser = budget)]
    pub(crate) budget: Budget,

    /// Stop after this many rounds in any case
    #[arg(long, value_name = "COUNT", value_parser = above_zero::<u32>)]
    pub(crate) rounds: Option<u32>,

    /// Seed of the order of cases and of the statistics' resampling; recorded
    #[arg(long, default_value_t = 1992, value_name = "NUMBER", value_parser = whole(0..=u64::MAX))]
    pub(crate) seed: u64,
}

/// About what a case takes in a round: its worker's start and end, and some tens of milliseconds of
/// laps.
const CASE: Duration = Duration::from_millis(80);

/// Share of the budget that the first round may take: it is finished.
const ONE_ROUND: f64 = 0.8;

impl<const BUDGET: u64> Effort<BUDGET> {
    /// The sizes for which the budget suffices to give intervals, evenly spread, the first and the
    /// last among them; and a note if some were left out. Each size has so many cases, and there
    /// are others beside them. The largest are left out where a single round would not fit, by what
    /// is `added` to the time of a case of a size. All of them where the number of rounds
    /// was asked for.
    pub(crate) fn fitting<T: Copy>(
        &self,
        asked: &[T],
        (each, others): (usize, usize),
        added: impl Fn(T) -> Duration,
    ) -> (Vec<T>, Option<String>) {
        let added_to = |sizes: &[T]| sizes.iter().map(|size| added(*size)).sum::<Duration>();
        let time = |count: usize, added: Duration| {
            CASE * (count * each + others) as u32 + added * each as u32
        };
        let first = |sizes: &[T]| time(sizes.len(), added_to(sizes)).div_f64(ONE_ROUND);
        // One that could not have its rounds in half of the budget has fewer of them.
        let counts = |size: &T| added(*size) * 2 * FEWEST_ROUNDS <= self.budget.time;
        let rounds = |sizes: &[T]| {
            let counted: Vec<T> = sizes.iter().copied().filter(counts).collect();
            time(sizes.len(), added_to(&counted)) * FEWEST_ROUNDS
        };
        if self.rounds.is_some() || asked.len() < 3 {
            return (asked.to_vec(), None);
        }
        let fits = |chosen: &Vec<T>| rounds(chosen) <= self.budget.time;
        // More than so many do not fit whatever they are.
        let most = self.budget.time.as_nanos() / (CASE * FEWEST_ROUNDS).as_nanos();
        let of_first = |count: usize| {
            let all = &asked[..count];
            let most = usize::try_from(most).unwrap_or(usize::MAX).clamp(2, count);
            let fewer = (2..=most).rev().map(|kept| spread(all, kept)).find(fits);
            fewer.unwrap_or_else(|| spread(all, 2))
        };
        let begins = |count: &usize| {
            let chosen = of_first(*count);
            let is_small = chosen.last().is_none_or(|of| added(*of) < CASE);
            is_small || first(&chosen) <= self.budget.time
        };
        let counts: Vec<usize> = (3..=asked.len()).collect();
        let chosen = of_first(counts.partition_point(begins) + 2);
        if chosen.len() == asked.len() {
            return (chosen, None);
        }
        let kept = chosen.len();
        let needed = rounds(asked).max(first(asked)).as_secs_f64().ceil();
        let note =
            format!("{TOO_SHORT} {kept} of {} sizes; --budget {needed}s measures all", asked.len());
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
            budget_ns: nanoseconds(self.budget.time),
            rounds: self.rounds,
            confidence: CONFIDENCE,
            fixed_budget: !self.budget.extends,
        }
    }
}

/// So many of the sizes, two or more, evenly spread, with both ends.
fn spread<T: Copy>(sizes: &[T], kept: usize) -> Vec<T> {
    let last = sizes.len() - 1;
    let place = |number: usize| (number * last + (kept - 1) / 2) / (kept - 1);
    (0..kept).map(|number| sizes[place(number)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_budget_has_fewer_sizes_and_says_so() {
        let effort = |seconds, rounds| Effort::<20> {
            precision: 0.025,
            budget: Budget { time: Duration::from_secs(seconds), extends: true },
            rounds,
            seed: 1,
        };
        let sizes: Vec<u32> = (2..=53).collect();
        let none = |_| Duration::ZERO;
        let (kept, note) = effort(5, None).fitting(&sizes, (1, 1), none);
        assert_eq!(kept, [2, 12, 22, 33, 43, 53]);
        assert_eq!(note.as_deref(), Some("Measured 6 of 52 sizes; --budget 34s measures all"));
        assert_eq!(
            effort(1, None).fitting(&sizes, (1, 1), none).0,
            [2, 53],
            "never fewer than both ends"
        );
        for whole in [effort(60, None), effort(1, Some(2))] {
            assert_eq!(whole.fitting(&sizes, (1, 1), none), (sizes.clone(), None));
        }
        // Large ones whose first round alone would take longer are left out from the end.
        let large = [2, 64, 1024, 4096];
        let added = |members| Duration::from_millis(members);
        let (kept, note) = effort(5, None).fitting(&large, (1, 1), added);
        assert_eq!(kept, [2, 64, 1024]);
        let told = note.unwrap_or_default();
        assert_eq!(told, "Measured 3 of 4 sizes; --budget 7s measures all");
        assert_eq!(effort(7, None).fitting(&large, (1, 1), added), (large.to_vec(), None));
        assert_eq!(effort(1, None).fitting(&large, (1, 1), added).0, [2, 64], "two at least");
        assert_eq!(effort(1, Some(2)).fitting(&large, (1, 1), added).0, large);
        // What each takes beyond laps counts for all of its rounds.
        let slow = |_| Duration::from_millis(80);
        assert_eq!(effort(5, None).fitting(&sizes, (1, 1), slow).0, [2, 28, 53]);
    }
}
