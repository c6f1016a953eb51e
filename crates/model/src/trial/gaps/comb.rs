//! Gaps that come at a period: the timer tick is one such comb.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::class::{Class, Told};
use crate::periodic;
use crate::trial::record::Quantity;
use crate::trial::tally::Tally;

/// Most combs that are looked for in a class.
const MOST: usize = 3;
/// How far a comb's period may be from the tick's: clocks agree better, few teeth tell no better.
const SAME_PERIOD: f64 = 0.01;

/// Gaps of one class that come at a period.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comb {
    /// From one to the next, in nanoseconds; found without knowing of the tick.
    pub period_ns: f64,
    /// Share of its slots in which there was a gap.
    pub hit: f64,
    /// Length of its gaps, in nanoseconds.
    pub length_ns: Quantity,
    /// Share of the watched time that it took, in percent.
    pub lost_percent: f64,
    /// Whether it is the timer tick: gaps without a switch, at the period that the kernel tells.
    pub is_tick: bool,
}

/// A comb with the gaps that belong to it, for each sample their numbers.
pub(super) struct Found {
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

/// The combs of a class, the clearest first: each is taken away before the next is looked for.
pub(super) fn of_class(watched: &Watched, class: Class) -> Vec<Found> {
    let of_class = |gaps: &Vec<Told>| -> Vec<usize> {
        (0..gaps.len()).filter(|number| gaps[*number].class == class).collect()
    };
    let mut left: Vec<Vec<usize>> = watched.gaps.iter().map(of_class).collect();
    let mut found = Vec::new();
    while found.len() < MOST {
        let pairs = || watched.gaps.iter().zip(&left);
        let moments: Vec<Vec<f64>> = pairs()
            .map(|(gaps, left)| left.iter().map(|number| gaps[*number].at_ns).collect())
            .collect();
        let Some(period) = periodic::find(&moments, watched.window_ns) else { break };
        // The numbers that the search gave are places among those that were left.
        let members: Vec<Vec<usize>> = left
            .iter()
            .zip(&period.members)
            .map(|(left, places)| places.iter().map(|place| left[*place]).collect())
            .collect();
        let Some(comb) = comb(watched, class, &period, &members) else { break };
        for (left, members) in left.iter_mut().zip(&members) {
            left.retain(|number| members.binary_search(number).is_err());
        }
        found.push(Found { comb, members });
    }
    found
}

fn comb(
    watched: &Watched,
    class: Class,
    period: &periodic::Period,
    members: &[Vec<usize>],
) -> Option<Comb> {
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
