//! Gaps: the time that a busy thread loses of its CPU, by cause and by period.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rundata::trial::gaps::*;
use rundata::trial::{Tally, TallySummary, Trial, TrialSample};
use rundata::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{Histogram, MomentWindows, Period, find_period, mean, median};

use crate::estimate::Estimate;
use crate::table::{ByRound, Table};

/// The gaps of one class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ClassFound")]
pub struct GapClassFindings {
    /// The class.
    pub class: GapClass,
    /// Gaps per second watched, over rounds.
    pub per_second: Option<Estimate>,
    /// Their share of the watched time, in percent, over rounds.
    pub lost_percent: Option<Estimate>,
    /// Their length in nanoseconds, all rounds together; absent without gaps.
    pub length_ns: Option<TallySummary>,
    /// Length of each gap, for charts; not stored.
    #[serde(skip)]
    pub all_lengths_ns: Tally,
    /// Histogram of their lengths.
    pub histogram: Histogram,
    /// Combs of them, the clearest first.
    pub combs: Vec<GapComb>,
}

/// Findings of one case of gaps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Found")]
pub struct GapFindings {
    /// Number of the case in the plan.
    pub case: usize,
    /// Time watched in nanoseconds, all rounds together.
    pub watched_ns: f64,
    /// Shortest gap that was stored, in nanoseconds, the median over rounds.
    pub threshold_ns: f64,
    /// Nanoseconds of a step of the loop, the median over rounds.
    pub loop_ns: f64,
    /// Share of the watched time that all gaps took, in percent, over rounds.
    pub lost_percent: Option<Estimate>,
    /// Gaps by class, in a fixed order.
    pub classes: Vec<GapClassFindings>,
    /// Median length of the timer tick's gaps in a round, in nanoseconds, over rounds; absent where
    /// no comb was found to be the tick.
    pub tick_ns: Option<Estimate>,
    /// Period of the timer tick in nanoseconds, as the kernel states it.
    pub told_tick_period_ns: Option<f64>,
    /// Time that the kernel reports as stolen from the CPU around the window, in percent of it,
    /// mean over rounds (steps of 10 ms). Absent where it reports none.
    pub steal_percent: Option<f64>,
    /// Interrupts per second that the kernel counted on the CPU around the window, by name in
    /// /proc/interrupts; absent where it could not be read.
    pub interrupts_per_second: Option<BTreeMap<String, f64>>,
    /// Rounds whose window was ended early, as there was no room for more gaps.
    pub cut_short: u32,
}

/// Returns the watched time of a sample in nanoseconds.
fn watched_ns(sample: &TrialSample) -> Option<f64> {
    let window = sample.count(WINDOW_TICKS)?.saturating_sub(sample.count(LOOK_TICKS)?);
    let window_ns = window as f64 * sample.ns_per_tick()?;
    if window > 0 { Some(window_ns) } else { None }
}

/// Returns the figures of the samples that have one.
fn figures(samples: &[&TrialSample], figure: impl Fn(&TrialSample) -> Option<f64>) -> Vec<f64> {
    samples.iter().filter_map(|sample| figure(sample)).collect()
}

fn in_ns(sample: &TrialSample, ticks: &str) -> Option<f64> {
    Some(sample.count(ticks)? as f64 * sample.ns_per_tick()?)
}

fn interrupts_per_second(samples: &[&TrialSample]) -> Option<BTreeMap<String, f64>> {
    let mut sums: BTreeMap<String, f64> = BTreeMap::new();
    let mut watched_s = 0.0;
    for sample in samples {
        if sample.count(ALL_INTERRUPTS).is_none() {
            continue;
        }
        watched_s += in_ns(sample, WINDOW_TICKS)? / 1e9;
        for (name, count) in &sample.counts {
            if let Some(name) = name.strip_prefix(INTERRUPTS) {
                *sums.entry(name.to_string()).or_default() += *count as f64;
            }
        }
    }
    for sum in sums.values_mut() {
        *sum /= watched_s;
    }
    if watched_s > 0.0 { Some(sums) } else { None }
}

/// Returns the findings of a case, and the median length of the tick's gaps by round.
fn find_case(table: &Table, case: usize) -> Option<(GapFindings, ByRound)> {
    let mut samples = table.trial_samples(case).to_vec();
    samples.retain(|sample| watched_ns(sample).is_some());
    let gaps: Vec<Vec<ClassifiedGap>> = samples.iter().map(|sample| classify(sample)).collect();
    let watched = WatchedGaps {
        gaps: &gaps,
        window_ns: median(&figures(&samples, |sample| in_ns(sample, WINDOW_TICKS)))?,
        watched_ns: figures(&samples, watched_ns).iter().sum(),
        tick_ns: told_tick_period_ns(&samples),
    };
    let combs = find_combs(&watched);
    // Where two combs have the tick's period, the clearer one is the tick.
    let tick_by_round = match combs.iter().find(|found| found.comb.is_tick) {
        Some(tick) => median_lengths(&samples, tick),
        None => ByRound::default(),
    };
    let mut classes = Vec::new();
    for class in GapClass::ALL {
        classes.push(class_findings(table, case, *class, &gaps, &combs));
    }
    let cut_short = samples.iter().filter(|sample| sample.count(CUT_SHORT) == Some(1));
    let findings = GapFindings {
        case,
        watched_ns: watched.watched_ns,
        threshold_ns: median(&figures(&samples, |sample| in_ns(sample, THRESHOLD_TICKS)))?,
        loop_ns: median(&figures(&samples, |sample| in_ns(sample, LOOP_TICKS)))?,
        lost_percent: lost_percent(table, case, None),
        classes,
        tick_ns: tick_by_round.estimate(table.plan),
        told_tick_period_ns: watched.tick_ns,
        steal_percent: mean(&figures(&samples, stolen_percent)),
        interrupts_per_second: interrupts_per_second(&samples),
        cut_short: cut_short.count() as u32,
    };
    Some((findings, tick_by_round))
}

/// Returns the period of the timer tick as the kernel states it, in nanoseconds.
fn told_tick_period_ns(samples: &[&TrialSample]) -> Option<f64> {
    let ticks = figures(samples, |sample| Some(sample.count(TICK_NS)? as f64));
    median(&ticks).filter(|ns| *ns > 0.0)
}

/// Returns the median length of a comb's gaps by round, in nanoseconds.
fn median_lengths(samples: &[&TrialSample], found: &FoundComb) -> ByRound {
    let mut medians = Vec::new();
    for (sample, gaps) in samples.iter().zip(&found.members) {
        let lengths: Vec<f64> = gaps.iter().map(|gap| gap.length_ns).collect();
        if let Some(length_ns) = median(&lengths) {
            medians.push((sample.round, length_ns));
        }
    }
    medians.into_iter().collect()
}

fn class_findings(
    table: &Table,
    case: usize,
    class: GapClass,
    gaps: &[Vec<ClassifiedGap>],
    combs: &[FoundComb],
) -> GapClassFindings {
    let mut gaps = gaps.concat();
    gaps.retain(|gap| gap.class == class);
    let lengths: Tally = gaps.iter().map(|gap| gap.length_ns.round() as i64).collect();
    let combs = combs.iter().filter(|found| found.class == class);
    GapClassFindings {
        class,
        per_second: table.estimate(case, |sample| {
            Some(1e9 * sum(sample, Some(class), |_| 1.0) / watched_ns(sample)?)
        }),
        lost_percent: lost_percent(table, case, Some(class)),
        length_ns: TallySummary::from_tally(&lengths),
        histogram: Histogram::from_values(lengths.values().map(|(ns, times)| (ns as f64, times))),
        combs: combs.map(|found| found.comb.clone()).collect(),
        all_lengths_ns: lengths,
    }
}

/// Estimates the share of the watched time that the gaps of a class, or of all, took, in percent.
fn lost_percent(table: &Table, case: usize, class: Option<GapClass>) -> Option<Estimate> {
    table.estimate(case, |sample| {
        let ns = sum(sample, class, |gap| gap.length_ns);
        Some(100.0 * ns / watched_ns(sample)?)
    })
}

fn stolen_percent(sample: &TrialSample) -> Option<f64> {
    let percent = 100.0 * sample.steal_ns? as f64 / sample.elapsed_ns as f64;
    if percent.is_finite() { Some(percent) } else { None }
}

/// Returns the sum of a figure over the gaps of a class, or of all.
fn sum(sample: &TrialSample, class: Option<GapClass>, figure: fn(&ClassifiedGap) -> f64) -> f64 {
    // Not `sum()`: that of no floats is -0.
    let mut sum = 0.0;
    for gap in classify(sample) {
        if class.is_none_or(|class| gap.class == class) {
            sum += figure(&gap);
        }
    }
    sum
}

/// Returns the findings of each case of gaps, with the median length of the timer tick's gaps in
/// nanoseconds by round: empty where no comb is the tick.
pub(crate) fn find(table: &Table) -> Vec<(GapFindings, ByRound)> {
    let mut findings = Vec::new();
    for (case, trial) in table.trials() {
        if matches!(trial, Trial::Gaps { .. }) {
            findings.extend(find_case(table, case));
        }
    }
    findings
}

/// Largest number of combs of a class.
const MAX_COMBS: usize = 3;
/// Largest relative difference of periods that are one: clocks agree better, but few gaps do not
/// tell the period better.
const SAME_PERIOD: f64 = 0.01;

/// Gaps of one class that come at a period.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Comb")]
pub struct GapComb {
    /// Period in nanoseconds; found without knowing the tick.
    pub period_ns: f64,
    /// Share of its multiples with a gap, without those at which another task ran.
    pub hit: f64,
    /// Length of its gaps, in nanoseconds.
    pub length_ns: TallySummary,
    /// Share of the watched time that it took, in percent.
    pub lost_percent: f64,
    /// Whether it is the timer tick: gaps without a switch, at the period that the kernel states.
    pub is_tick: bool,
    /// Multiple of this period that is the tick's, where no comb is the timer tick: one of so many
    /// gaps may be the tick, for example where a host's tick comes with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tick_may_be_one_of: Option<u32>,
}

/// A comb with the gaps that belong to it, of each sample.
struct FoundComb {
    /// The class of most of its gaps.
    class: GapClass,
    comb: GapComb,
    members: Vec<Vec<ClassifiedGap>>,
}

/// The gaps of each sample and the times that were watched.
struct WatchedGaps<'a> {
    gaps: &'a [Vec<ClassifiedGap>],
    /// Length of one window with its looks: the windows of a case are alike.
    window_ns: f64,
    /// Length of all windows without looks.
    watched_ns: f64,
    /// Period of the timer tick as the kernel states it.
    tick_ns: Option<f64>,
}

/// Shortest gaps of the strata in which periods are searched, in nanoseconds: a comb of long gaps
/// would be lost among the many short ones.
const STRATA_NS: [f64; 6] = [0.0, 500.0, 2_000.0, 10_000.0, 50_000.0, 500_000.0];

/// Returns the combs of all gaps, those of gaps without a switch first, the clearest first.
fn find_combs(watched: &WatchedGaps) -> Vec<FoundComb> {
    let mut combs = combs_of_classes(watched, &[GapClass::Interrupt, GapClass::Uncharged]);
    combs.extend(combs_of_classes(watched, &[GapClass::SwitchedOut]));
    // Another comb of the tick's period is the host's, or another timer's.
    let mut has_tick = false;
    for found in &mut combs {
        if found.comb.is_tick {
            found.comb.is_tick = !has_tick;
            has_tick = true;
        }
    }
    if !has_tick {
        mark_multiples_of_tick(&mut combs, watched.tick_ns);
    }
    combs
}

/// Largest number of gaps of a comb in a period of the tick: a host's tick of 1 ms and a guest's of
/// 10 ms.
const MAX_GAPS_PER_TICK: f64 = 10.0;

/// Marks the combs that may include the timer tick: its gaps come at the same moments then, and
/// cannot be told apart.
fn mark_multiples_of_tick(combs: &mut [FoundComb], tick_ns: Option<f64>) {
    let Some(tick_ns) = tick_ns else { return };
    for found in combs {
        let periods_per_tick = tick_ns / found.comb.period_ns;
        let multiple = periods_per_tick.round();
        let is_multiple = (periods_per_tick / multiple - 1.0).abs() < SAME_PERIOD;
        let is_possible = (2.0..=MAX_GAPS_PER_TICK).contains(&multiple);
        if found.class != GapClass::SwitchedOut && is_multiple && is_possible {
            found.comb.tick_may_be_one_of = Some(multiple as u32);
        }
    }
}

/// Returns the combs of these classes together; each is removed before the next is searched. The
/// gaps of one comb may be of two classes.
fn combs_of_classes(watched: &WatchedGaps, classes: &[GapClass]) -> Vec<FoundComb> {
    let mut left = only(watched.gaps, |gap| classes.contains(&gap.class));
    let blind = blind_times(watched, classes);
    let mut found = Vec::new();
    while found.len() < MAX_COMBS {
        let mut strata = Vec::new();
        for least_ns in STRATA_NS {
            strata.extend(in_stratum(watched, &left, &blind, least_ns));
        }
        let Some((period, members)) = whole_comb(strata) else { break };
        let Some((class, comb)) = comb(watched, &period, &members) else { break };
        for (left, members) in left.iter_mut().zip(&members) {
            // Both are in the order of time.
            let mut members = members.iter().peekable();
            left.retain(|gap| members.next_if_eq(&gap).is_none());
        }
        found.push(FoundComb { class, comb, members });
    }
    found
}

/// Returns the gaps of each sample that match.
fn only(
    gaps: &[Vec<ClassifiedGap>],
    matches: impl Fn(&ClassifiedGap) -> bool,
) -> Vec<Vec<ClassifiedGap>> {
    let mut matching = gaps.to_vec();
    for gaps_of_sample in &mut matching {
        gaps_of_sample.retain(&matches);
    }
    matching
}

/// A period and its gaps, of each sample.
type PeriodicGaps = (Period, Vec<Vec<ClassifiedGap>>);

/// Returns the clearest period of the strata, from the first stratum that has it: the others have
/// only the longer of its gaps. Strata come in ascending order of their shortest gaps.
fn whole_comb(strata: Vec<PeriodicGaps>) -> Option<PeriodicGaps> {
    let clearest = strata.iter().max_by(|(a, _), (b, _)| a.strength.total_cmp(&b.strength))?;
    let period_ns = clearest.0.period_ns;
    strata.into_iter().find(|(period, _)| (period.period_ns / period_ns - 1.0).abs() < SAME_PERIOD)
}

/// Returns the clearest period of the remaining gaps of `least_ns` or more, with its gaps.
fn in_stratum(
    watched: &WatchedGaps,
    left: &[Vec<ClassifiedGap>],
    blind: &[Vec<(f64, f64)>],
    least_ns: f64,
) -> Option<PeriodicGaps> {
    let long = only(left, |gap| gap.length_ns >= least_ns);
    let mut moments: Vec<Vec<f64>> = Vec::new();
    for gaps in &long {
        moments.push(gaps.iter().map(|gap| gap.at_ns).collect());
    }
    let period =
        find_period(MomentWindows { moments: &moments, blind, span_ns: watched.window_ns })?;
    let mut members = Vec::new();
    for (gaps, numbers) in long.iter().zip(&period.members) {
        members.push(numbers.iter().map(|number| gaps[*number]).collect());
    }
    Some((period, members))
}

/// Returns the times in which another task ran, when no interrupt is seen.
fn blind_times(watched: &WatchedGaps, classes: &[GapClass]) -> Vec<Vec<(f64, f64)>> {
    if classes.contains(&GapClass::SwitchedOut) {
        return Vec::new();
    }
    let mut blind = Vec::new();
    for gaps in only(watched.gaps, |gap| gap.class == GapClass::SwitchedOut) {
        blind.push(gaps.iter().map(|gap| (gap.at_ns, gap.at_ns + gap.length_ns)).collect());
    }
    blind
}

/// Builds a comb, with the class of most of its gaps.
fn comb(
    watched: &WatchedGaps,
    period: &Period,
    members: &[Vec<ClassifiedGap>],
) -> Option<(GapClass, GapComb)> {
    let gaps = members.concat();
    let class = most_frequent_class(&gaps)?;
    let lengths: Tally = gaps.iter().map(|gap| gap.length_ns.round() as i64).collect();
    let lost_ns: f64 = gaps.iter().map(|gap| gap.length_ns).sum();
    let has_period_of_tick = match watched.tick_ns {
        Some(tick_ns) => (period.period_ns / tick_ns - 1.0).abs() < SAME_PERIOD,
        None => false,
    };
    let comb = GapComb {
        period_ns: period.period_ns,
        hit: period.hit,
        length_ns: TallySummary::from_tally(&lengths)?,
        lost_percent: 100.0 * lost_ns / watched.watched_ns,
        // Another task's turn at a tick is not the tick.
        is_tick: class != GapClass::SwitchedOut && has_period_of_tick,
        tick_may_be_one_of: None,
    };
    Some((class, comb))
}

/// Returns the class of most gaps; of several the first one.
fn most_frequent_class(gaps: &[ClassifiedGap]) -> Option<GapClass> {
    GapClass::ALL.iter().min_by_key(|class| Reverse(count_class(gaps, **class))).copied()
}

fn count_class(gaps: &[ClassifiedGap], class: GapClass) -> usize {
    gaps.iter().filter(|gap| gap.class == class).count()
}

impl GapComb {
    /// Returns the period, the time and the cause of the comb in words.
    pub fn in_words(&self, class: GapClass) -> String {
        let is_not_the_tick = match self.tick_may_be_one_of {
            Some(multiple) => format!("one of {multiple} may be the timer tick"),
            None => "not the timer tick".to_string(),
        };
        let what = match (self.is_tick, class) {
            (true, _) => "the timer tick".to_string(),
            (_, GapClass::Interrupt) => format!("an interrupt; {is_not_the_tick}"),
            (_, GapClass::SwitchedOut) => {
                format!("another task ran (counted switches); {is_not_the_tick}")
            }
            (_, GapClass::Uncharged) => format!(
                "charged to no task, such as stolen time, or interrupts where the kernel \
                 accounts for them separately; {is_not_the_tick}"
            ),
        };
        format!(
            "every {} ({:.0} % of the times): {} each, {} % of the CPU: {what}",
            words::time(self.period_ns),
            100.0 * self.hit,
            words::time(self.length_ns.p50 as f64),
            words::three_digits(self.lost_percent),
        )
    }
}
