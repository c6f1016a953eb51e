//! The costs of a pair of cases, and what the answer needs to know of how they were measured.

use stats::mean;
use stats::ratio::{self, Apart, Cost, Within};

use crate::estimate::Estimate;
use crate::plan::MINIMUM_ROUNDS;
use crate::speed::Speed;
use crate::subject::{Measured, Values};

/// What is known of a pair of costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Costs {
    /// The numbers.
    pub(super) of: ratio::Costs,
    /// Rounds behind base and new: none of a published figure.
    pub(super) rounds: (Option<u32>, Option<u32>),
    /// Whether both sides were measured at full speed, published ones left aside: without that no
    /// difference is a change.
    pub(super) at_full_speed: bool,
}

impl Costs {
    /// Of two that were measured apart. Absent without a figure on each side.
    pub(super) fn apart(base: &Values, new: &Values, launch_scatter: f64) -> Option<Self> {
        let (base, new) = (side(base)?, side(new)?);
        Some(Self {
            of: ratio::Costs::Apart(Apart { base: base.0, new: new.0, between: launch_scatter }),
            rounds: (base.1, new.1),
            at_full_speed: base.2 && new.2,
        })
    }

    /// Of two that were measured in the same rounds of one session. Absent without a round that has both.
    pub(super) fn paired(base: &Measured, new: &Measured, seed: u64) -> Option<Self> {
        let both = |(round, base): (&u32, &f64)| Some((*base, *new.by_round.get(round)?));
        let pairs: Vec<(f64, f64)> = base.by_round.iter().filter_map(both).collect();
        let rounds = u32::try_from(pairs.len()).ok();
        let is_full = |of: &Measured| of.estimate.is_some_and(|e| e.speed == Speed::Full);
        Some(Self {
            of: ratio::Costs::Within(Within::of(&pairs, MINIMUM_ROUNDS, seed)?),
            rounds: (rounds, rounds),
            at_full_speed: is_full(base) && is_full(new),
        })
    }

    /// Launches that each is the mean of: none of a published figure, nor of a session.
    pub(super) fn launches(&self) -> (Option<u32>, Option<u32>) {
        match &self.of {
            ratio::Costs::Apart(apart) => (apart.base.groups, apart.new.groups),
            ratio::Costs::Within(_) => (None, None),
        }
    }
}

/// Cost, rounds of all its launches together, and whether it was measured at full speed: the mean of the
/// launches that saw full speed, or of all where none did, or as published.
fn side(values: &Values) -> Option<(Cost, Option<u32>, bool)> {
    let launches = match values {
        Values::Published(cost) => {
            return cost.is_finite().then(|| (Cost::exact(*cost), None, true));
        }
        Values::Measured(launches) => launches,
    };
    let estimates: Vec<_> = launches.iter().filter_map(|launch| launch.estimate).collect();
    // A launch that did not see full speed says nothing of it, and takes nothing from those that did.
    let is_full = |estimate: &&Estimate| estimate.speed == Speed::Full;
    let full: Vec<Estimate> = estimates.iter().filter(is_full).copied().collect();
    let at_full_speed = !full.is_empty();
    let estimates = if at_full_speed { full } else { estimates };
    let count = estimates.len() as f64;
    let costs: Vec<f64> = estimates.iter().map(|estimate| estimate.value).collect();
    let squares: Option<Vec<f64>> =
        estimates.iter().map(|e| e.standard_error.map(|error| error * error)).collect();
    let cost = Cost {
        // A sample of no hops, which only a damaged run file has, has no cost of one.
        value: mean(&costs).filter(|cost| cost.is_finite())?,
        groups: u32::try_from(estimates.len()).ok(),
        of: u32::try_from(launches.len()).ok()?,
        variance: squares.map(|squares| squares.iter().sum::<f64>() / (count * count)),
    };
    Some((cost, Some(estimates.iter().map(|estimate| estimate.rounds).sum()), at_full_speed))
}
