//! Gaps that come at a period: the timer tick is one such comb.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{Period, Windows, find_period};

use super::class::{Class, Told};
use crate::trial::tally::{Quantity, Tally};
use crate::words;

/// Most combs that are looked for in a class.
const MOST: usize = 3;
/// How far a comb's period may be from the tick's: clocks agree better, few teeth tell no better.
const SAME_PERIOD: f64 = 0.01;

/// Gaps of one class that come at a period.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comb {
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
}

/// A comb with the gaps that belong to it, for each sample their numbers.
#[derive(Clone)]
pub(super) struct Found {
    /// That most of its gaps are of.
    pub(super) class: Class,
    pub(super) comb: Comb,
    pub(super) members: Vec<Vec<usize>>,
}

/// What was watched: the gaps of each sample, and for how long.
pub(super) struct Watched<'a> {
    pub(super) gaps: &'a [Vec<Told>],
    /// Of one window, looks included: the windows of a case are alike.
    pub(super) window_ns: f64,
    /// Of all windows, without looks.
    pub(super) watched_ns: f64,
    /// From tick to tick by the kernel's word.
    pub(super) tick_ns: Option<f64>,
}

/// Gaps at least this long are looked at together, in nanoseconds: a comb of long ones would drown in
/// the many short ones, and the other way round nothing is lost.
const STRATA_NS: [f64; 6] = [0.0, 500.0, 2_000.0, 10_000.0, 50_000.0, 500_000.0];

/// The combs of these classes together, the clearest first: each is taken away before the next is looked
/// for. Together, as the gaps of one comb may fall into two: by their length, by what else came.
pub(super) fn of_classes(watched: &Watched, classes: &[Class]) -> Vec<Found> {
    let of_classes = |gaps: &Vec<Told>| -> Vec<usize> {
        (0..gaps.len()).filter(|number| classes.contains(&gaps[*number].class)).collect()
    };
    let mut left: Vec<Vec<usize>> = watched.gaps.iter().map(of_classes).collect();
    let blind = blind(watched, classes);
    let mut found = Vec::new();
    while found.len() < MOST {
        let in_stratum = |least_ns: &f64| in_stratum(watched, &left, &blind, *least_ns);
        let strata: Vec<_> = STRATA_NS.iter().filter_map(in_stratum).collect();
        let Some((period, members)) = whole_comb(strata) else { break };
        let class = mostly(watched, &members);
        let Some(comb) = comb(watched, class, &period, &members) else { break };
        for (left, members) in left.iter_mut().zip(&members) {
            left.retain(|number| members.binary_search(number).is_err());
        }
        found.push(Found { class, comb, members });
    }
    found
}

/// A period and, for each sample, the numbers of its gaps.
type WithMembers = (Period, Vec<Vec<usize>>);

/// Of what the strata gave, from the shortest gaps on: the clearest period, in the first stratum that has
/// it. The higher ones have only the longer of its gaps.
fn whole_comb(strata: Vec<WithMembers>) -> Option<WithMembers> {
    let clearest = strata.iter().max_by(|a, b| f64::total_cmp(&a.0.strength, &b.0.strength))?;
    let period_ns = clearest.0.period_ns;
    let is_it = |found: &WithMembers| (found.0.period_ns / period_ns - 1.0).abs() < SAME_PERIOD;
    strata.into_iter().find(is_it)
}

/// The class that most of these gaps are of.
fn mostly(watched: &Watched, members: &[Vec<usize>]) -> Class {
    let of = |class: Class| {
        let pairs = watched.gaps.iter().zip(members);
        let all =
            pairs.flat_map(|(gaps, members)| members.iter().map(|number| gaps[*number].class));
        all.filter(|own| *own == class).count()
    };
    Class::ALL.into_iter().rev().max_by_key(|class| of(*class)).unwrap_or(Class::Interrupt)
}

/// The clearest period of the gaps that are left and at least so long, with their numbers.
fn in_stratum(
    watched: &Watched,
    left: &[Vec<usize>],
    blind: &[Vec<(f64, f64)>],
    least_ns: f64,
) -> Option<WithMembers> {
    let long: Vec<Vec<usize>> = watched
        .gaps
        .iter()
        .zip(left)
        .map(|(gaps, left)| {
            left.iter().copied().filter(|number| gaps[*number].length_ns >= least_ns).collect()
        })
        .collect();
    let moments: Vec<Vec<f64>> = watched
        .gaps
        .iter()
        .zip(&long)
        .map(|(gaps, long)| long.iter().map(|number| gaps[*number].at_ns).collect())
        .collect();
    let windows = Windows { moments: &moments, blind, span_ns: watched.window_ns };
    let period = find_period(windows)?;
    // The numbers that the search gave are places among those that are long.
    let places = long.iter().zip(&period.members);
    let members = places.map(|(long, own)| own.iter().map(|place| long[*place]).collect());
    let members = members.collect();
    Some((period, members))
}

/// While another task runs no interrupt is seen.
fn blind(watched: &Watched, classes: &[Class]) -> Vec<Vec<(f64, f64)>> {
    if classes.contains(&Class::SwitchedOut) {
        return Vec::new();
    }
    let out = |gap: &&Told| gap.class == Class::SwitchedOut;
    let ends = |gap: &Told| (gap.at_ns, gap.at_ns + gap.length_ns);
    watched.gaps.iter().map(|gaps| gaps.iter().filter(out).map(ends).collect()).collect()
}

fn comb(watched: &Watched, class: Class, period: &Period, members: &[Vec<usize>]) -> Option<Comb> {
    let lengths = || {
        let pairs = watched.gaps.iter().zip(members);
        pairs.flat_map(|(gaps, members)| members.iter().map(|number| gaps[*number].length_ns))
    };
    let tally: Tally = lengths().map(|length| length.round() as i64).collect();
    let is_near = |tick_ns: f64| (period.period_ns / tick_ns - 1.0).abs() < SAME_PERIOD;
    Some(Comb {
        period_ns: period.period_ns,
        hit: period.hit,
        length_ns: Quantity::of(&tally)?,
        lost_percent: 100.0 * lengths().sum::<f64>() / watched.watched_ns,
        // A turn that another task takes at ticks is no tick.
        is_tick: class != Class::SwitchedOut && watched.tick_ns.is_some_and(is_near),
    })
}

impl Comb {
    /// What comes how often, what it takes, and whether it is the tick.
    pub fn in_words(&self, class: Class) -> String {
        let what = match (self.is_tick, class) {
            (true, _) => "the timer tick",
            (_, Class::Interrupt) => "an interrupt that is not the timer tick",
            (_, Class::SwitchedOut) => "another task ran (counted switches); not the timer tick",
            (_, Class::Uncharged) => {
                "charged to nobody here, as stolen time is, or interrupts where the kernel accounts for them apart; not the timer tick"
            }
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
