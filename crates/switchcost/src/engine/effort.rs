//! The time to measure: as typed, and as the stopping rule of a plan.
//!
//! A budget that is too short for all sizes measures fewer of them, so that each still has the
//! rounds that an interval takes. Of the sizes 2 to 53 (52 of them) a budget of 5 s, at 80 ms a
//! case and 8 rounds, suffices for 7 cases: the solo and the sizes 2, 12, 22, 33, 43, 53.

use std::time::Duration;

use clap::Args;
use rundata::case::Case;
use rundata::experiment::Experiment;
use rundata::notice::Notice;
use rundata::plan::{Batching, MIN_CLEAN_ROUNDS, Plan, Stopping};

use crate::base::values::{TimeBudget, above_zero, budget, nanoseconds, share, whole};

/// Confidence of all intervals.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// How long to measure; `BUDGET` is the seconds that an experiment takes if nothing is said.
#[derive(Debug, Args)]
#[command(next_help_heading = "Effort")]
pub(crate) struct Effort<const BUDGET: u64 = 20> {
    /// Stop when every interval's half-width is below this share of its figure
    ///
    /// The interval has a term for the scatter between launches. Until five stored launches of the
    /// same plan have shown how they scatter here, it keeps the interval at 2 % or more.
    #[arg(long, default_value = "2.5%", value_name = "SHARE", value_parser = share)]
    pub(crate) precision: f64,

    /// Stop after this time (seconds); with a + up to three times as late, until all figures hold
    ///
    /// Where that is too little for all sizes, fewer are measured, and the answer says so. With a +
    /// after it, as by default, the run may take up to three times as long for cases that were
    /// disturbed too often: 20s+ takes at most 60 s, and the progress line and the end say so.
    /// --rounds is always kept.
    #[arg(long, aliases = ["time", "seconds", "duration"], short_alias = 't', default_value = format!("{BUDGET}s+"), value_name = "TIME", value_parser = budget)]
    pub(crate) budget: TimeBudget,

    /// Stop after this many rounds in any case
    #[arg(long, value_name = "COUNT", value_parser = above_zero::<u32>)]
    pub(crate) rounds: Option<u32>,

    /// Seed of the order of cases and of the statistics' resampling; recorded
    #[arg(long, default_value_t = 1992, value_name = "NUMBER", value_parser = whole(0..=u64::MAX))]
    pub(crate) seed: u64,
}

/// Typical time of a case in a round: start and end of its worker, and some tens of milliseconds of
/// laps.
const CASE_TIME: Duration = Duration::from_millis(80);

impl<const BUDGET: u64> Effort<BUDGET> {
    /// Returns the sizes for which the budget suffices, two at least, and a note if some were left
    /// out. They are evenly spread from the first on, as many as give intervals, and reach as far
    /// as that many can. All are returned where a number of rounds was asked for.
    ///
    /// Each size has `each` cases, each of which takes `added` longer than others; `others` cases
    /// are measured beside those of the sizes.
    pub(crate) fn fitting<T: Copy>(
        &self,
        asked: &[T],
        each: usize,
        others: usize,
        added: impl Fn(T) -> Duration,
    ) -> (Vec<T>, Option<Notice>) {
        if self.rounds.is_some() || asked.len() < 3 {
            return (asked.to_vec(), None);
        }
        let fits = |sizes: &[T]| time_needed(sizes, each, others, &added) <= self.budget.time;
        let mut chosen = asked[..2].to_vec();
        for count in 2..=asked.len() {
            // The last of equals reaches furthest.
            match largest_spread(&asked[..count], fits) {
                Some(sizes) if sizes.len() >= chosen.len() => chosen = sizes,
                _ => {}
            }
        }
        if chosen.len() == asked.len() {
            return (chosen, None);
        }
        let seconds = time_needed(asked, each, others, &added).as_secs_f64().ceil();
        let (kept, count) = (chosen.len(), asked.len());
        let text = format!("Measured {kept} of {count} sizes; --budget {seconds}s measures all");
        (chosen, Some(Notice::too_short(text)))
    }

    /// Returns a plan of these cases, in this order, with the seed and the stopping rule as typed.
    pub(crate) fn plan<C: Into<Case>>(
        &self,
        experiment: Experiment,
        cases: impl IntoIterator<Item = C>,
        batching: Batching,
    ) -> Plan {
        let (seed, stopping) = (self.seed, self.stopping());
        Plan { seed, batching, stopping, ..Plan::from_cases(experiment, cases) }
    }

    /// Returns the stopping rule as typed.
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

/// Returns the time of the rounds that intervals take, of all cases of these sizes and of others.
fn time_needed<T: Copy>(
    sizes: &[T],
    each: usize,
    others: usize,
    added: &impl Fn(T) -> Duration,
) -> Duration {
    let mut longer = Duration::ZERO;
    for size in sizes {
        longer += added(*size);
    }
    let cases = CASE_TIME * (sizes.len() * each + others) as u32;
    (cases + longer * each as u32) * MIN_CLEAN_ROUNDS
}

/// Returns as many of the sizes, evenly spread, as fit; nothing where not even two do.
fn largest_spread<T: Copy>(sizes: &[T], fits: impl Fn(&[T]) -> bool) -> Option<Vec<T>> {
    let counts: Vec<usize> = (2..=sizes.len()).collect();
    let fitting = counts.partition_point(|count| fits(&spread(sizes, *count)));
    if fitting == 0 { None } else { Some(spread(sizes, fitting + 1)) }
}

/// Returns so many of the sizes, two or more, evenly spread, with both ends.
fn spread<T: Copy>(sizes: &[T], kept: usize) -> Vec<T> {
    let last = sizes.len() - 1;
    let mut chosen = Vec::with_capacity(kept);
    for number in 0..kept {
        chosen.push(sizes[(number * last + (kept - 1) / 2) / (kept - 1)]);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_budget_has_fewer_sizes_and_says_so() {
        let effort = |seconds, rounds| Effort::<20> {
            precision: 0.025,
            budget: TimeBudget { time: Duration::from_secs(seconds), extends: true },
            rounds,
            seed: 1,
        };
        let sizes: Vec<u32> = (2..=53).collect();
        let none = |_| Duration::ZERO;
        let (kept, notice) = effort(5, None).fitting(&sizes, 1, 1, none);
        assert_eq!(kept, [2, 12, 22, 33, 43, 53]);
        let expected = Notice::too_short("Measured 6 of 52 sizes; --budget 34s measures all");
        assert_eq!(notice, Some(expected));
        assert_eq!(effort(1, None).fitting(&sizes, 1, 1, none).0, [2, 3], "two at least");
        for whole in [effort(60, None), effort(1, Some(2))] {
            assert_eq!(whole.fitting(&sizes, 1, 1, none), (sizes.clone(), None));
        }
        // Those that take longest are left out first.
        let large = [2, 64, 1024, 4096];
        let added = |members| Duration::from_millis(members);
        assert_eq!(effort(5, None).fitting(&large, 1, 1, added).0, [2, 64]);
        assert_eq!(effort(12, None).fitting(&large, 1, 1, added).0, [2, 64, 1024]);
        assert_eq!(effort(1, Some(2)).fitting(&large, 1, 1, added).0, large);
        // What each takes beyond laps counts for all of its rounds.
        let slow = |_| Duration::from_millis(80);
        assert_eq!(effort(5, None).fitting(&sizes, 1, 1, slow).0, [2, 28, 53]);
    }

    /// What is advised measures all, and more time never measures fewer.
    #[test]
    fn the_budget_that_is_advised_measures_all() {
        let effort = |ms| Effort::<20> {
            precision: 0.025,
            budget: TimeBudget { time: Duration::from_millis(ms), extends: false },
            rounds: None,
            seed: 1,
        };
        let grids: [Vec<u64>; 4] = [
            (0..17).map(|power| 1024 << power).collect(),
            (1..13).map(|power| 1 << power).collect(),
            (2..=64).collect(),
            vec![1 << 26, 1 << 10, 1 << 20, 64],
        ];
        let added: [fn(u64) -> Duration; 3] = [
            |_| Duration::ZERO,
            |bytes| Duration::from_nanos(bytes * 10),
            |members| Duration::from_micros(members.min(100_000)),
        ];
        for (sizes, added) in grids.iter().flat_map(|grid| added.map(|added| (grid, added))) {
            for (each, others) in [(1, 0), (1, 1), (3, 7)] {
                let mut before = 0;
                for ms in (200..60_000).step_by(700) {
                    let (kept, note) = effort(ms).fitting(sizes, each, others, added);
                    assert!(kept.len() >= before.max(2), "{sizes:?} {each} {others} {ms} ms");
                    before = kept.len();
                    let Some(note) = note else { continue };
                    let (_, advised) = note.text.split_once("--budget ").unwrap();
                    let advised: u64 = advised.split_once('s').unwrap().0.parse().unwrap();
                    let (all, note) = effort(advised * 1000).fitting(sizes, each, others, added);
                    assert_eq!((all.len(), note), (sizes.len(), None), "{sizes:?} {ms} ms");
                }
            }
        }
    }
}
