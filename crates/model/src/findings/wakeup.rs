//! Wake-ups: how late a sleeper is that asked to be woken at a moment.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ByCase;
use crate::estimate::Estimate;
use crate::trial::{Quantity, Tally, Trial};
use stats::{Histogram, quantile_ranks};

pub use crate::trial::wakeup::*;

/// Coverage of the tails' intervals.
const CONFIDENCE: f64 = 0.95;

/// A quantile of many values with its interval by ranks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tail {
    /// The value.
    pub value_ns: i64,
    /// Lower end of the interval: a value that was seen.
    pub low_ns: i64,
    /// Upper end.
    pub high_ns: i64,
    /// Nominal coverage at least, for independent wakes.
    pub confidence: f64,
}

impl Tail {
    /// None where there are too few values for an upper end.
    pub fn of(tally: &Tally, p: f64, confidence: f64) -> Option<Self> {
        let count = tally.count();
        let ranks = quantile_ranks(count, p, confidence)?;
        let [low_ns, value_ns, high_ns] = ranks.map(|rank| tally.at_rank(rank));
        Some(Self { value_ns: value_ns?, low_ns: low_ns?, high_ns: high_ns?, confidence })
    }
}

/// What one case says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Found {
    /// Number of the case in the plan.
    pub case: usize,
    /// What else ran on the CPU.
    pub load: Load,
    /// Lateness of all wakes in nanoseconds.
    pub late_ns: Quantity,
    /// Its median in a round, over rounds.
    pub median_ns: Option<Estimate>,
    /// The value that 99 % do not exceed; absent with fewer than 368 wakes.
    pub p99_ns: Option<Tail>,
    /// The value that 99.9 % do not exceed; absent with fewer than 3688 wakes.
    pub p999_ns: Option<Tail>,
    /// How often which lateness came.
    pub histogram: Histogram,
    /// The timer slack that was in force, in nanoseconds; absent where it could not be read.
    pub timer_slack_ns: Option<i64>,
    /// Switches of the sleeper for each wake: one where it slept each time.
    pub switches_per_wake: Option<f64>,
    /// CPU time of the companion for each second of the sample, in percent.
    pub busy_percent: Option<f64>,
    /// Time that the hypervisor took, as the kernel reports it, for each second of the sample, in
    /// percent; it is in the lateness. Absent where it is not reported.
    pub steal_percent: Option<f64>,
}

/// What each case of wake-ups says.
pub(crate) fn find(by_case: &ByCase) -> Vec<Found> {
    let found = |(case, trial): (usize, &Trial)| {
        let Trial::Wakeup(wakeup) = trial else { return None };
        let samples = by_case.of(case);
        let late = by_case.merged(case, |sample| Some(sample.tally(LATE_NS)?.into_owned()));
        // Of what every sample has.
        let sum = |name: &str| {
            let counts = samples.iter().map(|sample| Some(sample.count(name)? as f64));
            counts.sum::<Option<f64>>()
        };
        let elapsed_ns: f64 = samples.iter().map(|sample| sample.elapsed_ns as f64).sum();
        let percent = |ns: f64| (elapsed_ns > 0.0).then(|| 100.0 * ns / elapsed_ns);
        let stolen = samples.iter().map(|sample| sample.steal_ns).sum::<Option<u64>>();
        Some(Found {
            case,
            load: wakeup.load,
            late_ns: Quantity::of(&late)?,
            median_ns: by_case.estimate(case, |sample| sample.median(LATE_NS)),
            p99_ns: Tail::of(&late, 0.99, CONFIDENCE),
            p999_ns: Tail::of(&late, 0.999, CONFIDENCE),
            histogram: Histogram::of(late.values().map(|(value, times)| (value as f64, times))),
            timer_slack_ns: samples.iter().find_map(|sample| sample.count(SLACK_NS)),
            switches_per_wake: sum(SWITCHES).map(|switches| switches / late.count() as f64),
            busy_percent: sum(COMPANION_NS).and_then(percent),
            steal_percent: stolen.and_then(|ns| percent(ns as f64)),
        })
    };
    by_case.trials().filter_map(found).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::case::Policy;
    use crate::experiment::Experiment;
    use crate::plan::{Batching, Plan, Stopping};
    use crate::trial::{Case, Repeats, Sample};

    fn found_in(wakes_per_round: i64, rounds: u32, busy: Option<i64>) -> Found {
        let wakeup = Wakeup {
            load: Load::Busy,
            wakes: wakes_per_round as u32,
            period_ns: 1_000_000,
            timer_slack_ns: 1,
            seed: 1,
        };
        let case = Case { trial: Trial::Wakeup(wakeup), cpu: 1, policy: Policy::Fifo };
        let plan = Plan {
            experiment: Experiment::Response,
            cases: vec![case.into()],
            seed: 1,
            batching: Batching::of_trials(Repeats { trials: 1 }),
            stopping: Stopping { precision: 0.01, budget_ns: 1, rounds: None, confidence: 0.95 },
            reference: Default::default(),
        };
        let sample = |round: u32| Sample {
            case: 0,
            round,
            elapsed_ns: 2_000_000,
            elapsed_ticks: None,
            gaps: Vec::new(),
            sliced: Vec::new(),
            tallies: BTreeMap::from([(LATE_NS.to_string(), (1..=wakes_per_round).collect())]),
            counts: [(SWITCHES, wakes_per_round), (SLACK_NS, 1)]
                .into_iter()
                .chain(busy.map(|ns| (COMPANION_NS, ns)))
                .map(|(name, count)| (name.to_string(), count))
                .collect(),
            steal_ns: None,
        };
        let samples: Vec<Sample> = (0..rounds).map(sample).collect();
        find(&ByCase::new(&plan, &samples)).pop().expect("wakes")
    }

    #[test]
    fn far_quantiles_are_told_from_enough_wakes_only() {
        let few = found_in(60, 6, None);
        assert_eq!((few.p99_ns, few.p999_ns), (None, None), "360 wakes");
        let more = found_in(100, 6, None);
        let p99 = more.p99_ns.expect("600 wakes");
        assert_eq!((p99.low_ns, p99.value_ns, p99.high_ns), (99, 99, 100));
        assert_eq!(more.p999_ns, None);
        let many = found_in(1000, 6, None).p999_ns.expect("6000 wakes");
        assert_eq!((many.value_ns, many.high_ns), (999, 1000));
        assert!(many.low_ns >= 996, "{many:?}");
    }

    #[test]
    fn what_was_counted_beside_is_told_and_what_was_not_is_absent() {
        let busy = found_in(100, 5, Some(1_900_000));
        assert!((busy.busy_percent.unwrap() - 95.0).abs() < 1e-9);
        assert_eq!((busy.switches_per_wake, busy.timer_slack_ns), (Some(1.0), Some(1)));
        assert_eq!(busy.median_ns.map(|median| median.value), Some(50.0));
        assert_eq!(found_in(100, 5, None).busy_percent, None);
    }
}
