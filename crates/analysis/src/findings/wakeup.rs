//! Wake-ups: how late a sleeper is woken.

use rundata::trial::wakeup::*;
use rundata::trial::{Tally, TallySummary, Trial, TrialCase, TrialSample};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{ClusterCounts, Histogram, clustered_quantile_ranks, normal_quantile, quantile_ranks};

use super::load;
use crate::estimate::{Estimate, Speed, widened_ends};
use crate::measures::{Quantity, WakeSource};
use crate::table::{ByRound, Table};

/// Coverage of the tails' intervals.
pub const CONFIDENCE: f64 = 0.95;

/// A quantile of many values with its interval by ranks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Tail")]
pub struct TailQuantile {
    /// The value.
    pub value_ns: i64,
    /// Lower end of the interval: a value that was seen.
    pub low_ns: i64,
    /// Upper end.
    pub high_ns: i64,
    /// Nominal coverage: of [`Self::from_tally`] for independent values, of [`Self::from_rounds`]
    /// for independent rounds.
    pub confidence: f64,
}

impl TailQuantile {
    /// Returns the quantile `p` of a tally; absent where there are too few values for an upper end.
    pub fn from_tally(tally: &Tally, p: f64, confidence: f64) -> Option<Self> {
        let ranks = quantile_ranks(tally.count(), p, confidence)?;
        Self::from_ranks(tally, ranks, confidence)
    }

    /// Returns the quantile `p` of the values of all rounds, whose values may depend on each other
    /// within a round. Absent where there are too few rounds or values for an interval.
    pub fn from_rounds(rounds: &[Tally], p: f64, confidence: f64) -> Option<Self> {
        let mut all = Tally::default();
        for round in rounds {
            all.merge(round);
        }
        let quantile = all.quantile(p)?;
        let mut clusters = Vec::new();
        for round in rounds {
            let (total, up_to_quantile) = (round.count(), round.count_up_to(quantile));
            clusters.push(ClusterCounts { up_to_quantile, total });
        }
        let ranks = clustered_quantile_ranks(&clusters, p, confidence)?;
        Self::from_ranks(&all, ranks, confidence)
    }

    fn from_ranks(tally: &Tally, ranks: [u64; 3], confidence: f64) -> Option<Self> {
        let [low_ns, value_ns, high_ns] = ranks.map(|rank| tally.at_rank(rank));
        Some(Self { value_ns: value_ns?, low_ns: low_ns?, high_ns: high_ns?, confidence })
    }

    /// Returns the quantile as an estimate over `rounds` rounds. Its error is that of a normal
    /// logarithm with as wide an interval.
    pub fn estimate(&self, rounds: u32) -> Option<Estimate> {
        let ends = [self.low_ns, self.value_ns, self.high_ns].map(|ns| ns.max(1) as f64);
        let [low, value, high] = ends;
        let width = (high / low).ln() / (2.0 * normal_quantile(self.confidence)?);
        Some(Estimate {
            value,
            standard_error: Some(value * width),
            low: Some(low),
            high: Some(high),
            confidence: self.confidence,
            resolved: true,
            rounds,
            speed: Speed::NotJudged,
            at_most: None,
        })
    }

    /// Returns the quantile with an interval that also has the scatter between launches, a standard
    /// deviation as a share.
    pub(crate) fn widened_by_launches(self, scatter: f64) -> Self {
        let Some(deviations) = normal_quantile(self.confidence) else { return self };
        let [value, low, high] =
            [self.value_ns, self.low_ns, self.high_ns].map(|ns| ns.max(1) as f64);
        let ends = widened_ends(value, [low, high], deviations * scatter);
        let [low_ns, high_ns] = ends.map(|ns| ns.round() as i64);
        Self { low_ns, high_ns, ..self }
    }

    /// Returns half of the interval's width as a share of the value.
    pub(crate) fn relative_half_width(&self) -> f64 {
        self.high_ns.saturating_sub(self.low_ns) as f64 / 2.0 / self.value_ns.max(1) as f64
    }
}

/// Findings of one case of wake-ups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Found")]
pub struct WakeupFindings {
    /// Number of the case in the plan.
    pub case: usize,
    /// The load on the CPU.
    pub load: WakeupLoad,
    /// Lateness of all wakes in nanoseconds.
    pub late_ns: TallySummary,
    /// Lateness of each wake, for charts; not stored.
    #[serde(skip)]
    pub all_late_ns: Tally,
    /// Median lateness of a round, over rounds. Its interval and those of the tails have the scatter
    /// between launches in them; in files of older versions they have not.
    pub median_ns: Option<Estimate>,
    /// Difference of that median from the one of the plain sleeper, with the least timer slack and every idle
    /// state, within rounds. Signed: with more slack it is above zero, without idle states below.
    /// Absent for the plain sleeper itself, and where that was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above_plain_ns: Option<Estimate>,
    /// The value that 99 % do not exceed; absent with fewer than 368 wakes.
    pub p99_ns: Option<TailQuantile>,
    /// The value that 99.9 % do not exceed; absent with fewer than 3688 wakes.
    pub p999_ns: Option<TailQuantile>,
    /// Histogram of the lateness; in records of older versions with bins from 1, 2, 5, 10, ... ns.
    pub histogram: Histogram,
    /// The timer slack that was in force, in nanoseconds; absent where it could not be read.
    pub timer_slack_ns: Option<i64>,
    /// Largest time for leaving an idle state, in microseconds, while /dev/cpu_dma_latency was held;
    /// absent where it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_latency_us: Option<i64>,
    /// Switches of the sleeper for each wake: one where it slept each time.
    pub switches_per_wake: Option<f64>,
    /// CPU time of the companion for each second of the sample, in percent.
    pub busy_percent: Option<f64>,
    /// Stolen time for each second of the sample as the kernel reports it, in percent; the lateness
    /// includes it. Absent where it is not reported.
    pub steal_percent: Option<f64>,
}

/// Returns the median lateness of a case by round.
pub(crate) fn medians(table: &Table, case: usize) -> ByRound {
    let late = table.trial_samples(case).iter();
    late.filter_map(|sample| Some((sample.round, sample.median(LATE_NS)?))).collect()
}

/// Returns the case of the same sleeper with the least timer slack and every idle state; absent for
/// that sleeper itself.
fn plain_sleeper(table: &Table, case: &TrialCase, wakeup: &Wakeup) -> Option<usize> {
    let plain = Wakeup { timer_slack_ns: MIN_SLACK_NS, cpu_latency_us: None, ..*wakeup };
    let plain = TrialCase { trial: Trial::Wakeup(plain), ..case.clone() };
    if plain == *case {
        return None;
    }
    let (number, _) = table.plan.trials().find(|(_, other)| **other == plain)?;
    Some(number)
}

/// Returns the findings of each case of wake-ups.
pub(crate) fn find(table: &Table) -> Vec<WakeupFindings> {
    let mut findings = Vec::new();
    for (number, case) in table.plan.trials() {
        if let Trial::Wakeup(wakeup) = &case.trial {
            findings.extend(find_case(table, number, case, wakeup));
        }
    }
    findings
}

/// Returns the findings of a case; absent without wakes.
fn find_case(
    table: &Table,
    number: usize,
    case: &TrialCase,
    wakeup: &Wakeup,
) -> Option<WakeupFindings> {
    let samples = table.trial_samples(number);
    let medians_ns = medians(table, number);
    let mut above_plain_ns = None;
    if let Some(plain) = plain_sleeper(table, case, wakeup) {
        let plain_ns = medians(table, plain);
        let above = ByRound::together([&medians_ns, &plain_ns], |[late, plain]| late - plain);
        above_plain_ns = above.estimate(table.plan);
    }
    let late = table.merged(number, |sample| Some(sample.tally(LATE_NS)?.into_owned()));
    // As floats, since the sum of integers may be too large in a damaged file.
    let elapsed_ns: f64 = samples.iter().map(|sample| sample.elapsed_ns as f64).sum();
    let switches = sum_of_figures(samples, |sample| Some(sample.count(SWITCHES)? as f64));
    let busy_ns = sum_of_figures(samples, |sample| Some(sample.count(COMPANION_NS)? as f64));
    let stolen_ns = sum_of_figures(samples, |sample| Some(sample.steal_ns? as f64));
    let known = table.plan.reference.known_of(number);
    let scatter_of =
        |quantity: Quantity| quantity.wake_scatter(WakeSource::Timer, &known).unwrap_or_default();
    let median_ns = medians_ns.estimate(table.plan);
    let tail = |p| {
        let tail = launch_tail(table, number, p)?;
        Some(tail.widened_by_launches(scatter_of(Quantity::WakeP99Ns)))
    };
    Some(WakeupFindings {
        case: number,
        load: wakeup.load,
        late_ns: TallySummary::from_tally(&late)?,
        median_ns: median_ns
            .map(|median| median.widened_by_launches(scatter_of(Quantity::WakeP50Ns))),
        above_plain_ns,
        p99_ns: tail(0.99),
        p999_ns: tail(0.999),
        histogram: Histogram::in_octaves(late.values()),
        timer_slack_ns: samples.iter().find_map(|sample| sample.count(SLACK_NS)),
        cpu_latency_us: samples.iter().find_map(|sample| sample.count(CPU_LATENCY_US)),
        switches_per_wake: switches.map(|switches| switches / late.count() as f64),
        busy_percent: percent_of(busy_ns, elapsed_ns),
        steal_percent: percent_of(stolen_ns, elapsed_ns),
        all_late_ns: late,
    })
}

/// Returns the quantile `p` of a case with the interval of this launch: by the scatter of rounds, as
/// late wakes come in bursts, and with too few rounds as if wakes were independent. Absent with too
/// few wakes.
pub(crate) fn launch_tail(table: &Table, number: usize, p: f64) -> Option<TailQuantile> {
    let rounds = load::tallies(table, number, LATE_NS);
    let mut late = Tally::default();
    for round in &rounds {
        late.merge(round);
    }
    let independent = TailQuantile::from_tally(&late, p, CONFIDENCE)?;
    Some(TailQuantile::from_rounds(&rounds, p, CONFIDENCE).unwrap_or(independent))
}

/// Returns the sum of a figure that every sample has; absent where one lacks it.
fn sum_of_figures(
    samples: &[&TrialSample],
    figure: fn(&TrialSample) -> Option<f64>,
) -> Option<f64> {
    samples.iter().map(|sample| figure(sample)).sum()
}

fn percent_of(part_ns: Option<f64>, elapsed_ns: f64) -> Option<f64> {
    let part_ns = part_ns?;
    if elapsed_ns > 0.0 { Some(100.0 * part_ns / elapsed_ns) } else { None }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::tests::run;
    use super::*;
    use crate::comparison::{
        ChangeAnswer, Comparison, ComparisonTerms, LIMIT, UndecidedReason, WantedCost,
    };
    use crate::results::Results;
    use rundata::experiment::Experiment;
    use rundata::plan::{Batching, CaseHistory, Plan, QuantileScatter};
    use rundata::ring::Policy;
    use rundata::run::{RunEnd, StopReason};
    use rundata::trial::TrialBatching;

    fn wakeup(load: WakeupLoad, wakes: i64) -> Wakeup {
        Wakeup {
            load,
            wakes: wakes as u32,
            period_ns: 1_000_000,
            timer_slack_ns: 1,
            seed: 1,
            cpu_latency_us: None,
        }
    }

    fn plan(sleepers: &[(Wakeup, Policy)]) -> Plan {
        let case = |(of, policy): &(Wakeup, Policy)| TrialCase {
            trial: Trial::Wakeup(*of),
            cpu: 1,
            policy: *policy,
        };
        Plan {
            seed: 1,
            batching: Batching::of_trials(TrialBatching { trials: 1 }),
            ..Plan::from_cases(Experiment::Response, sleepers.iter().map(case))
        }
    }

    fn sample(case: usize, round: u32, late_ns: Tally, counts: &[(&str, i64)]) -> TrialSample {
        TrialSample {
            case,
            round,
            elapsed_ns: 2_000_000,
            elapsed_ticks: None,
            gaps: Vec::new(),
            sliced: Vec::new(),
            tallies: BTreeMap::from([(LATE_NS.to_string(), late_ns)]),
            counts: counts.iter().map(|(name, count)| (name.to_string(), *count)).collect(),
            steal_ns: None,
        }
    }

    fn found_in(wakes_per_round: i64, rounds: u32, busy: Option<i64>) -> WakeupFindings {
        let plan = plan(&[(wakeup(WakeupLoad::Busy, wakes_per_round), Policy::Fifo)]);
        let mut counts = vec![(SWITCHES, wakes_per_round), (SLACK_NS, 1)];
        counts.extend(busy.map(|ns| (COMPANION_NS, ns)));
        let of = |round| sample(0, round, (1..=wakes_per_round).collect(), &counts);
        let samples: Vec<TrialSample> = (0..rounds).map(of).collect();
        find(&Table::from_samples(&plan, [], &samples)).pop().expect("wakes")
    }

    /// A file may say anything.
    #[test]
    fn more_stolen_time_than_can_be_added_is_no_reason_to_fail() {
        let plan = plan(&[(wakeup(WakeupLoad::Busy, 3), Policy::Fifo)]);
        let of = |round| TrialSample {
            steal_ns: Some(u64::MAX),
            ..sample(0, round, (1..=3).collect(), &[])
        };
        let samples: Vec<TrialSample> = (0..3).map(of).collect();
        let found = find(&Table::from_samples(&plan, [], &samples)).pop().expect("wakes");
        assert!(found.steal_percent.is_some_and(|of| of > 1e14), "{:?}", found.steal_percent);
    }

    /// Rounds drift by 1 us; slack adds 50 us to each, an idle state is left in 15.
    #[test]
    fn slack_and_idle_states_are_told_from_the_plain_sleeper_within_rounds() {
        let plain = wakeup(WakeupLoad::Idle, 3);
        let slack = Wakeup { timer_slack_ns: DEFAULT_SLACK_NS, ..plain };
        let awake = Wakeup { cpu_latency_us: Some(0), ..plain };
        let busy = wakeup(WakeupLoad::Busy, 3);
        let sleepers = [(plain, Policy::Other), (slack, Policy::Other), (awake, Policy::Other)];
        let others = [(slack, Policy::Fifo), (busy, Policy::Other)];
        let plan = plan(&[&sleepers[..], &others].concat());
        let round = |round: u32| {
            let drift = 1000 * i64::from(round);
            let late =
                |ns: i64| [ns - 100, ns, ns + 5000].map(|ns| ns + drift).into_iter().collect();
            let held = [(CPU_LATENCY_US, 0)];
            [
                sample(0, round, late(40_000), &[]),
                sample(1, round, late(90_000), &[]),
                sample(2, round, late(25_000), &held),
                sample(3, round, late(90_000), &[]),
                sample(4, round, late(60_000), &[]),
            ]
        };
        let samples: Vec<TrialSample> = (0..6).flat_map(round).collect();
        let found = find(&Table::from_samples(&plan, [], &samples));
        let above = |case: usize| {
            let above = found[case].above_plain_ns?;
            assert_eq!((above.low, above.high), (Some(above.value), Some(above.value)));
            Some(above.value)
        };
        // Of another policy or load there is no plain sleeper, or it is one.
        let all = [0, 1, 2, 3, 4].map(above);
        assert_eq!(all, [None, Some(50_000.0), Some(-15_000.0), None, None]);
        assert_eq!((found[2].cpu_latency_us, found[1].cpu_latency_us), (Some(0), None));
    }

    #[test]
    fn far_quantiles_are_told_from_enough_wakes_only() {
        let few = found_in(60, 6, None);
        assert_eq!((few.p99_ns, few.p999_ns), (None, None), "360 wakes");
        let more = found_in(100, 6, None);
        let p99 = more.p99_ns.expect("600 wakes");
        // Launches scatter by 25 %: exp(1.96 x 0.25) = 1.632.
        assert_eq!((p99.low_ns, p99.value_ns, p99.high_ns), (61, 99, 162));
        assert_eq!(more.p999_ns, None);
        let many = found_in(1000, 6, None).p999_ns.expect("6000 wakes");
        assert_eq!((many.value_ns, many.high_ns), (999, 1631));
        assert!((605..=613).contains(&many.low_ns), "{many:?}");
    }

    /// Without a known scatter launches are taken to scatter by 25 %: exp(1.96 x 0.25) = 1.632.
    #[test]
    fn intervals_have_the_scatter_between_launches() {
        let sleeper = wakeup(WakeupLoad::Idle, 1);
        let mut plan = plan(&[(sleeper, Policy::Other)]);
        let samples: Vec<TrialSample> = (0..6)
            .map(|round| sample(0, round, std::iter::repeat_n(10_000, 100).collect(), &[]))
            .collect();
        let ends = |plan: &Plan| {
            let found = find(&Table::from_samples(plan, [], &samples)).remove(0);
            let (median, p99) = (found.median_ns.unwrap(), found.p99_ns.unwrap());
            [median.low.unwrap() as i64, median.high.unwrap() as i64, p99.low_ns, p99.high_ns]
        };
        assert_eq!(ends(&plan), [6_126, 16_323, 6_126, 16_323]);
        // Earlier launches have shown 30 %: exp(1.96 x 0.3) = 1.800.
        let known =
            QuantileScatter { wake_p50: Some(0.3), wake_p99: Some(0.3), ..Default::default() };
        let history = CaseHistory { quantile_scatter: Some(known), ..CaseHistory::default() };
        plan.reference.cases = vec![history];
        assert_eq!(ends(&plan), [5_554, 18_003, 5_554, 18_004]);
    }

    /// A launch of 8 rounds of 400 wakes, of which every 50th is `late_ns` late and the others 10 us.
    fn launch(late_ns: i64) -> Results {
        let sleeper = wakeup(WakeupLoad::Idle, 400);
        let mut samples = Vec::new();
        for round in 0..8 {
            let mut late = vec![10_000; 392];
            late.extend([late_ns; 8]);
            samples.push(sample(0, round, late.into_iter().collect(), &[]));
        }
        let mut run = run(Experiment::Response, vec![Trial::Wakeup(sleeper)], samples);
        let reason = StopReason::RoundsDone;
        run.end = Some(RunEnd { reason, finished: String::new(), spent_ns: 1 });
        Results::from_run(&run)
    }

    /// Nobody judges the speed of a sleeper, and none is needed: launches scatter by 25 %, so that one
    /// of each side tells a factor of 8 from none, and not 1.2 from none.
    #[test]
    fn two_launches_of_a_sleeper_are_compared_without_a_speed() {
        let answer = |late_ns: i64, wanted: WantedCost| {
            let terms = ComparisonTerms { limit: LIMIT, confidence: 0.95, wanted, across: None };
            let comparison = Comparison::from_results(&launch(20_000), &launch(late_ns), terms);
            assert_eq!(comparison.changes.len(), 1, "{:?}", comparison.unpaired);
            (comparison.changes[0].quantity, comparison.changes[0].answer)
        };
        let worse = ChangeAnswer::Changed { worse: true, beyond_limit: true };
        assert_eq!(answer(160_000, WantedCost::P99), (Quantity::WakeP99Ns, worse));
        let wide = |answer: ChangeAnswer| {
            matches!(answer, ChangeAnswer::CannotTell { reason: UndecidedReason::TooWide, .. })
        };
        assert!(wide(answer(24_000, WantedCost::P99).1));
        let (quantity, median) = answer(160_000, WantedCost::Switch);
        assert!(quantity == Quantity::WakeP50Ns && wide(median), "{median:?}");
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
