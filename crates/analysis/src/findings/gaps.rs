//! Gaps: what a busy thread loses of its CPU, to whom, and how regularly.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;
use crate::table::{ByRound, Table};
use rundata::trial::gaps::*;
use rundata::trial::{Quantity, Sample, Tally, Trial};
use rundata::words;
use stats::{Histogram, MomentWindows, Period, find_period, mean, median};

/// The gaps of one class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ClassFound")]
pub struct GapClassFindings {
    /// Which.
    pub class: Class,
    /// Gaps per second watched, over rounds.
    pub per_second: Option<Estimate>,
    /// Share of the watched time that they took, in percent, over rounds.
    pub lost_percent: Option<Estimate>,
    /// Their length in nanoseconds, all rounds together; absent without gaps.
    pub length_ns: Option<Quantity>,
    /// The same, each of them: for charts, in no record.
    #[serde(skip)]
    pub all_lengths_ns: Tally,
    /// How often gaps of which length came.
    pub histogram: Histogram,
    /// Those that come at a period, the clearest first.
    pub combs: Vec<GapComb>,
}

/// What one case says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Found")]
pub struct GapFindings {
    /// Number of the case in the plan.
    pub case: usize,
    /// Time watched in nanoseconds, all rounds together.
    pub watched_ns: f64,
    /// Gaps above this many nanoseconds were kept; the median over rounds.
    pub threshold_ns: f64,
    /// Nanoseconds of a step of the loop, the median over rounds.
    pub loop_ns: f64,
    /// Share of the watched time that all gaps took, in percent, over rounds.
    pub lost_percent: Option<Estimate>,
    /// By class, in a fixed order.
    pub classes: Vec<GapClassFindings>,
    /// Median length of the timer tick's gaps in a round, in nanoseconds, over rounds; absent where
    /// no comb was found to be the tick.
    pub tick_ns: Option<Estimate>,
    /// From tick to tick in nanoseconds, by the kernel's word.
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

/// Watched time of a sample in nanoseconds.
fn watched_ns(sample: &Sample) -> Option<f64> {
    let window = sample.count(WINDOW_TICKS)?.saturating_sub(sample.count(LOOK_TICKS)?);
    Some(window as f64 * sample.ns_per_tick()?).filter(|_| window > 0)
}

/// Figures of samples: those that have one.
fn figures(samples: &[&Sample], of: impl Fn(&Sample) -> Option<f64>) -> Vec<f64> {
    samples.iter().filter_map(|sample| of(sample)).collect()
}

fn in_ns(sample: &Sample, ticks: &str) -> Option<f64> {
    Some(sample.count(ticks)? as f64 * sample.ns_per_tick()?)
}

fn interrupts_per_second(samples: &[&Sample]) -> Option<BTreeMap<String, f64>> {
    let mut sums: BTreeMap<String, f64> = BTreeMap::new();
    let mut watched_s = 0.0;
    for sample in samples.iter().filter(|sample| sample.count(ALL_INTERRUPTS).is_some()) {
        watched_s += in_ns(sample, WINDOW_TICKS)? / 1e9;
        for (name, count) in &sample.counts {
            if let Some(name) = name.strip_prefix(INTERRUPTS) {
                *sums.entry(name.to_string()).or_default() += *count as f64;
            }
        }
    }
    sums.values_mut().for_each(|sum| *sum /= watched_s);
    (watched_s > 0.0).then_some(sums)
}

fn found(table: &Table, case: usize) -> Option<(GapFindings, ByRound)> {
    let samples = table.of_trial(case).iter().copied();
    let samples: Vec<&Sample> = samples.filter(|sample| watched_ns(sample).is_some()).collect();
    let gaps: Vec<Vec<Told>> = samples.iter().map(|sample| classified(sample)).collect();
    let ticks = figures(&samples, |sample| sample.count(TICK_NS).map(|ns| ns as f64));
    let watched = Watched {
        gaps: &gaps,
        window_ns: median(&figures(&samples, |sample| in_ns(sample, WINDOW_TICKS)))?,
        watched_ns: figures(&samples, watched_ns).iter().sum(),
        tick_ns: median(&ticks).filter(|ns| *ns > 0.0),
    };
    let combs = combs_of(&watched);
    // Median length of the tick's gaps. Where two combs have its period, of the clearer.
    let mut tick_by_round = ByRound::default();
    if let Some(tick) = combs.iter().find(|found| found.comb.is_tick) {
        let length = |(sample, members): (&&Sample, &Vec<Told>)| {
            let lengths: Vec<f64> = members.iter().map(|gap| gap.length_ns).collect();
            Some((sample.round, median(&lengths)?))
        };
        tick_by_round = samples.iter().zip(&tick.members).filter_map(length).collect();
    }
    let lost_percent = |class: Option<Class>| {
        table.estimate(case, |sample| {
            let ns = sum(sample, class, |gap| gap.length_ns);
            Some(100.0 * ns / watched_ns(sample)?)
        })
    };
    let of_class = |class: &Class| {
        let own = gaps.iter().flatten().filter(|gap| gap.class == *class);
        let lengths: Tally = own.map(|gap| gap.length_ns.round() as i64).collect();
        let per_second = |s: &Sample| Some(1e9 * sum(s, Some(*class), |_| 1.0) / watched_ns(s)?);
        GapClassFindings {
            class: *class,
            per_second: table.estimate(case, per_second),
            lost_percent: lost_percent(Some(*class)),
            length_ns: Quantity::of(&lengths),
            histogram: Histogram::from_values(
                lengths.values().map(|(ns, times)| (ns as f64, times)),
            ),
            combs: combs.iter().filter(|of| of.class == *class).map(|of| of.comb.clone()).collect(),
            all_lengths_ns: lengths,
        }
    };
    let stolen = |sample: &Sample| {
        Some(100.0 * sample.steal_ns? as f64 / sample.elapsed_ns as f64).filter(|s| s.is_finite())
    };
    let found = GapFindings {
        case,
        watched_ns: watched.watched_ns,
        threshold_ns: median(&figures(&samples, |sample| in_ns(sample, THRESHOLD_TICKS)))?,
        loop_ns: median(&figures(&samples, |sample| in_ns(sample, LOOP_TICKS)))?,
        lost_percent: lost_percent(None),
        classes: Class::ALL.iter().map(of_class).collect(),
        tick_ns: tick_by_round.estimate(table.plan),
        told_tick_period_ns: watched.tick_ns,
        steal_percent: mean(&figures(&samples, stolen)),
        interrupts_per_second: interrupts_per_second(&samples),
        cut_short: samples.iter().filter(|s| s.count(CUT_SHORT) == Some(1)).count() as u32,
    };
    Some((found, tick_by_round))
}

/// Of the gaps of a class, or of all.
fn sum(sample: &Sample, class: Option<Class>, of: fn(&Told) -> f64) -> f64 {
    let gaps = classified(sample);
    let own = gaps.iter().filter(|gap| class.is_none_or(|class| gap.class == class));
    // The empty sum of floats is -0.
    own.fold(0.0, |sum, gap| sum + of(gap))
}

/// What each case of gaps says, with the median length of the timer tick's gaps in nanoseconds by
/// round: empty where no comb is the tick.
pub(crate) fn find(table: &Table) -> Vec<(GapFindings, ByRound)> {
    let gaps = table.trials().filter(|(_, trial)| matches!(trial, Trial::Gaps { .. }));
    gaps.filter_map(|(case, _)| found(table, case)).collect()
}

/// Most combs that are looked for in a class.
const MOST: usize = 3;
/// How far a comb's period may be from the tick's: clocks agree better, few teeth tell no better.
const SAME_PERIOD: f64 = 0.01;

/// Gaps of one class that come at a period.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Comb")]
pub struct GapComb {
    /// From one to the next, in nanoseconds; found without knowing of the tick.
    pub period_ns: f64,
    /// Share of its slots in which there was a gap; those in which another task ran do not count.
    pub hit: f64,
    /// Length of its gaps, in nanoseconds.
    pub length_ns: Quantity,
    /// Share of the watched time that it took, in percent.
    pub lost_percent: f64,
    /// Whether it is the timer tick: gaps without a switch, at the period that the kernel tells.
    pub is_tick: bool,
    /// Where no comb is the timer tick, and the tick's period is a multiple of this one: that
    /// multiple. One of so many gaps may then be the tick, as where a host's tick comes with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tick_may_be_one_of: Option<u32>,
}

/// A comb with the gaps that belong to it, of each sample.
struct FoundComb {
    /// That most of its gaps are of.
    class: Class,
    comb: GapComb,
    members: Vec<Vec<Told>>,
}

/// What was watched: the gaps of each sample, and for how long.
struct Watched<'a> {
    gaps: &'a [Vec<Told>],
    /// Of one window, looks included: the windows of a case are alike.
    window_ns: f64,
    /// Of all windows, without looks.
    watched_ns: f64,
    /// From tick to tick by the kernel's word.
    tick_ns: Option<f64>,
}

/// Gaps at least this long are looked at together, in nanoseconds: a comb of long ones would drown
/// in the many short ones, and the other way round nothing is lost.
const STRATA_NS: [f64; 6] = [0.0, 500.0, 2_000.0, 10_000.0, 50_000.0, 500_000.0];

/// The combs of all gaps, those of gaps without a switch first, the clearest first.
fn combs_of(watched: &Watched) -> Vec<FoundComb> {
    let mut combs = of_classes(watched, &[Class::Interrupt, Class::Uncharged]);
    combs.extend(of_classes(watched, &[Class::SwitchedOut]));
    // Another comb of the tick's period is the host's, or another timer's.
    let ticks = combs.iter_mut().filter(|found| found.comb.is_tick);
    ticks.skip(1).for_each(|found| found.comb.is_tick = false);
    if !combs.iter().any(|found| found.comb.is_tick) {
        mark_what_may_hold_the_tick(&mut combs, watched.tick_ns);
    }
    combs
}

/// Most gaps of a comb from one tick to the next: a host's tick of 1 ms and a guest's of 10 ms.
const MOST_GAPS_PER_TICK: f64 = 10.0;

/// Two combs that come at the same moments are one here. Where the tick's is a part of another, it
/// cannot be told by its moments.
fn mark_what_may_hold_the_tick(combs: &mut [FoundComb], tick_ns: Option<f64>) {
    let Some(tick_ns) = tick_ns else { return };
    for found in combs.iter_mut().filter(|found| found.class != Class::SwitchedOut) {
        let exactly = tick_ns / found.comb.period_ns;
        let multiple = exactly.round();
        let is_multiple = (exactly / multiple - 1.0).abs() < SAME_PERIOD;
        if is_multiple && (2.0..=MOST_GAPS_PER_TICK).contains(&multiple) {
            found.comb.tick_may_be_one_of = Some(multiple as u32);
        }
    }
}

/// The combs of these classes together: each is taken away before the next is looked for. Together,
/// as the gaps of one comb may fall into two: by their length, by what else came.
fn of_classes(watched: &Watched, classes: &[Class]) -> Vec<FoundComb> {
    let mut left = only(watched.gaps, |gap| classes.contains(&gap.class));
    let blind = blind(watched, classes);
    let mut found = Vec::new();
    while found.len() < MOST {
        let in_stratum = |least_ns: &f64| in_stratum(watched, &left, &blind, *least_ns);
        let strata: Vec<_> = STRATA_NS.iter().filter_map(in_stratum).collect();
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

/// The gaps of each sample that are of a kind.
fn only(gaps: &[Vec<Told>], is_it: impl Fn(&Told) -> bool) -> Vec<Vec<Told>> {
    gaps.iter().map(|gaps| gaps.iter().copied().filter(&is_it).collect()).collect()
}

/// A period and its gaps, of each sample.
type WithMembers = (Period, Vec<Vec<Told>>);

/// Of what the strata gave, from the shortest gaps on: the clearest period, in the first stratum
/// that has it. The higher ones have only the longer of its gaps.
fn whole_comb(strata: Vec<WithMembers>) -> Option<WithMembers> {
    let clearest = strata.iter().max_by(|a, b| f64::total_cmp(&a.0.strength, &b.0.strength))?;
    let period_ns = clearest.0.period_ns;
    let is_it = |found: &WithMembers| (found.0.period_ns / period_ns - 1.0).abs() < SAME_PERIOD;
    strata.into_iter().find(is_it)
}

/// The clearest period of the gaps that are left and at least so long, with its gaps.
fn in_stratum(
    watched: &Watched,
    left: &[Vec<Told>],
    blind: &[Vec<(f64, f64)>],
    least_ns: f64,
) -> Option<WithMembers> {
    let long = only(left, |gap| gap.length_ns >= least_ns);
    let moments = |gaps: &Vec<Told>| gaps.iter().map(|gap| gap.at_ns).collect();
    let moments: Vec<Vec<f64>> = long.iter().map(moments).collect();
    let period =
        find_period(MomentWindows { moments: &moments, blind, span_ns: watched.window_ns })?;
    let places = long.iter().zip(&period.members);
    let members = places.map(|(gaps, own)| own.iter().map(|place| gaps[*place]).collect());
    let members = members.collect();
    Some((period, members))
}

/// While another task runs no interrupt is seen.
fn blind(watched: &Watched, classes: &[Class]) -> Vec<Vec<(f64, f64)>> {
    if classes.contains(&Class::SwitchedOut) {
        return Vec::new();
    }
    let out = only(watched.gaps, |gap| gap.class == Class::SwitchedOut);
    let ends = |gap: &Told| (gap.at_ns, gap.at_ns + gap.length_ns);
    out.iter().map(|gaps| gaps.iter().map(ends).collect()).collect()
}

/// With the class that most of its gaps are of.
fn comb(watched: &Watched, period: &Period, members: &[Vec<Told>]) -> Option<(Class, GapComb)> {
    let own = || members.iter().flatten();
    let count = |class: &&Class| own().filter(|gap| gap.class == **class).count();
    let class = *Class::ALL.iter().rev().max_by_key(count)?;
    let lengths: Tally = own().map(|gap| gap.length_ns.round() as i64).collect();
    let lost_ns: f64 = own().map(|gap| gap.length_ns).sum();
    let is_near = |tick_ns: f64| (period.period_ns / tick_ns - 1.0).abs() < SAME_PERIOD;
    let comb = GapComb {
        period_ns: period.period_ns,
        hit: period.hit,
        length_ns: Quantity::of(&lengths)?,
        lost_percent: 100.0 * lost_ns / watched.watched_ns,
        // A turn that another task takes at ticks is no tick.
        is_tick: class != Class::SwitchedOut && watched.tick_ns.is_some_and(is_near),
        tick_may_be_one_of: None,
    };
    Some((class, comb))
}

impl GapComb {
    /// What comes how often, what it takes, and whether it is the tick.
    pub fn in_words(&self, class: Class) -> String {
        let is_not_the_tick = match self.tick_may_be_one_of {
            Some(multiple) => format!("one of {multiple} may be the timer tick"),
            None => "not the timer tick".to_string(),
        };
        let what = match (self.is_tick, class) {
            (true, _) => "the timer tick".to_string(),
            (_, Class::Interrupt) => format!("an interrupt; {is_not_the_tick}"),
            (_, Class::SwitchedOut) => {
                format!("another task ran (counted switches); {is_not_the_tick}")
            }
            (_, Class::Uncharged) => format!(
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
