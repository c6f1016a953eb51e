//! The ratio of two costs, and how far it is known.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;
use crate::plan::MINIMUM_ROUNDS;
use crate::speed::Speed;
use crate::stats::{
    Center, RESAMPLES, Summary, cut, mean, midmean, normal_quantile, resampled_middles,
    student_quantile,
};
use crate::subject::{Measured, Values};

/// New cost / base cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ratio {
    /// New / base; absent where the base is not above zero, so that nothing is a multiple of it.
    pub value: Option<f64>,
    /// Lower end of its simultaneous interval; absent where there is none.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

impl Ratio {
    /// Both ends, if there is an interval.
    pub fn interval(&self) -> Option<(f64, f64)> {
        self.low.zip(self.high)
    }

    /// Half of the interval's width / the ratio itself: a ratio of 20 is as well known at 19 to 21 as
    /// one of 1 at 0.95 to 1.05.
    pub fn relative_half_width(&self) -> Option<f64> {
        let (low, high) = self.interval()?;
        let value = self.value.filter(|value| *value != 0.0)?;
        Some((high - low) / 2.0 / value.abs())
    }
}

/// What is known of a pair of costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Costs {
    /// Measured one after the other.
    Apart(Apart),
    /// Measured in the same rounds of one session.
    Within(Within),
}

/// The side that keeps two costs from having a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unresolved {
    Base,
    New,
}

/// Two costs of launches of their own. d = ln(new / base) has the variance sum of s_i^2 / (K^2 c^2) of each
/// side + tau^2 (1 / K_base + 1 / K_new): s_i is the standard error within launch i of K, c their mean, tau the
/// scatter between launches. A published figure has no variance that anybody knows of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Apart {
    pub(super) base: Side,
    pub(super) new: Side,
    /// tau.
    launch_scatter: f64,
}

/// One side of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Side {
    /// Mean of the launches that saw full speed, or of all where none did, or as published.
    pub(super) cost: f64,
    /// Those that it is the mean of; none of a published figure.
    launches: Option<u32>,
    /// All that there are: of as many more as large a share will see full speed.
    of: u32,
    /// Rounds of all launches together; none of a published figure.
    rounds: Option<u32>,
    /// Sum of squared standard errors / launches squared; absent where a launch has none.
    variance: Option<f64>,
    /// The worst of the launches'.
    speed: Option<Speed>,
}

/// Costs of the same rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Within {
    base: f64,
    new: f64,
    /// The relative difference within rounds, 2 (new - base) / (new + base).
    difference: f64,
    /// Its variance; absent below two rounds.
    variance: Option<f64>,
    rounds: u32,
    speed: Speed,
    /// Whose cost is at or below zero most often, where more rounds have one than the midmean cuts off
    /// on a side: what stands for those would move it.
    unfit: Option<Unresolved>,
}

impl Costs {
    /// Of two that were measured apart. Absent without a figure on each side.
    pub(super) fn apart(base: &Values, new: &Values, launch_scatter: f64) -> Option<Self> {
        let (base, new) = (Side::of(base)?, Side::of(new)?);
        Some(Self::Apart(Apart { base, new, launch_scatter }))
    }

    /// Of two that were measured in the same rounds: what is resampled is their relative difference
    /// within each, so that what slows a whole round down by a factor drops out. Absent without a round
    /// that has both.
    pub(super) fn paired(base: &Measured, new: &Measured, seed: u64) -> Option<Self> {
        Self::paired_by(base, new, seed, RESAMPLES)
    }

    pub(super) fn paired_by(
        base: &Measured,
        new: &Measured,
        seed: u64,
        resamples: usize,
    ) -> Option<Self> {
        let pairs = shared(&base.by_round, &new.by_round);
        let relative: Vec<f64> = pairs.iter().map(|(base, new)| relative(*base, *new)).collect();
        let middle = |of: fn(&(f64, f64)) -> f64| {
            finite(midmean(&pairs.iter().map(of).collect::<Vec<f64>>()))
        };
        let speed = |of: &Measured| of.estimate.map_or(Speed::NotJudged, |e| e.speed);
        Some(Self::Within(Within {
            base: middle(|(base, _)| *base)?,
            new: middle(|(_, new)| *new)?,
            difference: midmean(&relative)?,
            variance: variance(&relative, seed, resamples),
            rounds: u32::try_from(pairs.len()).ok()?,
            speed: worse(speed(base), speed(new)),
            unfit: unfit(&pairs),
        }))
    }

    /// Both costs in nanoseconds: base and new.
    pub(super) fn both(&self) -> (f64, f64) {
        match self {
            Self::Apart(apart) => (apart.base.cost, apart.new.cost),
            Self::Within(within) => (within.base, within.new),
        }
    }

    /// Launches that each is the mean of: none of a published figure, nor of a session.
    pub(super) fn launches(&self) -> (Option<u32>, Option<u32>) {
        match self {
            Self::Apart(apart) => (apart.base.launches, apart.new.launches),
            Self::Within(_) => (None, None),
        }
    }

    /// Rounds behind each: none of a published figure.
    pub(super) fn rounds(&self) -> (Option<u32>, Option<u32>) {
        match self {
            Self::Apart(apart) => (apart.base.rounds, apart.new.rounds),
            Self::Within(within) => (Some(within.rounds), Some(within.rounds)),
        }
    }

    /// Whether both sides were measured at full speed, published ones left aside: without that no difference
    /// is a change.
    pub(super) fn at_full_speed(&self) -> bool {
        match self {
            Self::Apart(apart) => {
                let full = |side: &Side| side.speed.is_none_or(|speed| speed == Speed::Full);
                full(&apart.base) && full(&apart.new)
            }
            Self::Within(within) => within.speed == Speed::Full,
        }
    }

    /// Whether both sides have what an interval takes, and one of them was measured at all.
    pub(super) fn has_interval(&self) -> bool {
        match self {
            Self::Apart(apart) => {
                let known = apart.base.variance.is_some() && apart.new.variance.is_some();
                known && (apart.base.launches.is_some() || apart.new.launches.is_some())
            }
            Self::Within(within) => within.rounds >= MINIMUM_ROUNDS && within.variance.is_some(),
        }
    }

    /// The ratio with the interval that holds the true one with `confidence`. No interval where a cost is not
    /// resolved from zero, or too many rounds have a cost below it.
    pub(super) fn ratio(&self, confidence: f64) -> Ratio {
        let (base, new) = self.both();
        let value = match self {
            // What stands for rounds below zero has moved the middle.
            Self::Apart(_) | Self::Within(Within { unfit: Some(_), .. }) => new / base,
            Self::Within(within) => as_ratio(within.difference),
        };
        let value = (base > 0.0 && value.is_finite()).then_some(value);
        let ends = self.has_interval().then(|| self.ends(confidence)).flatten();
        Ratio { value, low: ends.map(|ends| ends.0), high: ends.map(|ends| ends.1) }
    }

    /// Which side it is, of costs that have rounds enough and no interval.
    pub(super) fn unresolved(&self) -> Unresolved {
        let (base, new) = self.both();
        match self {
            Self::Within(Within { unfit: Some(side), .. }) => *side,
            Self::Within(within) if base > 0.0 && within.difference < 0.0 => Unresolved::New,
            Self::Within(_) => Unresolved::Base,
            Self::Apart(_) if base > 0.0 && new <= 0.0 => Unresolved::New,
            Self::Apart(_) => Unresolved::Base,
        }
    }

    fn ends(&self, confidence: f64) -> Option<(f64, f64)> {
        let ends = match self {
            Self::Apart(apart) => apart.ends(confidence),
            Self::Within(within) => within.ends(confidence),
        }?;
        (ends.0.is_finite() && ends.1.is_finite()).then_some(ends)
    }

    /// The same with `more` launches on each side that is measured, or of a session with `more` rounds, if
    /// these scatter as the others did.
    pub(super) fn with_more(&self, more: u32) -> Self {
        match self {
            Self::Apart(apart) => Self::Apart(Apart {
                base: apart.base.with_more(more),
                new: apart.new.with_more(more),
                ..*apart
            }),
            Self::Within(within) => {
                let rounds = within.rounds.saturating_add(more);
                let shrink = f64::from(within.rounds) / f64::from(rounds.max(1));
                let variance = within.variance.map(|variance| variance * shrink);
                Self::Within(Within { rounds, variance, ..*within })
            }
        }
    }
}

impl Side {
    fn of(values: &Values) -> Option<Self> {
        let launches = match values {
            Values::Published(cost) => {
                let cost = finite(Some(*cost))?;
                let (launches, rounds, variance, speed) = (None, None, Some(0.0), None);
                return Some(Self { cost, launches, of: 0, rounds, variance, speed });
            }
            Values::Measured(launches) => launches,
        };
        let estimates: Vec<_> = launches.iter().filter_map(|launch| launch.estimate).collect();
        // A launch that did not see full speed says nothing of it, and takes nothing from those that did.
        let is_full = |estimate: &&Estimate| estimate.speed == Speed::Full;
        let full: Vec<Estimate> = estimates.iter().filter(is_full).copied().collect();
        let estimates = if full.is_empty() { estimates } else { full };
        let count = estimates.len() as f64;
        let costs: Vec<f64> = estimates.iter().map(|estimate| estimate.value).collect();
        let squares: Option<Vec<f64>> =
            estimates.iter().map(|e| e.standard_error.map(|error| error * error)).collect();
        Some(Self {
            cost: finite(mean(&costs))?,
            launches: u32::try_from(estimates.len()).ok(),
            of: u32::try_from(launches.len()).ok()?,
            rounds: Some(estimates.iter().map(|estimate| estimate.rounds).sum()),
            variance: squares.map(|squares| squares.iter().sum::<f64>() / (count * count)),
            speed: estimates.iter().map(|estimate| estimate.speed).reduce(worse),
        })
    }

    /// Variance of the logarithm; absent where the cost is not above zero by as much as the logarithm needs.
    fn log_variance(&self, launch_scatter: f64, z: f64) -> Option<f64> {
        let relative = self.variance? / (self.cost * self.cost);
        let resolved = self.cost > 0.0 && z * relative.sqrt() < 1.0;
        let between = self.launches.map_or(0.0, |k| launch_scatter * launch_scatter / f64::from(k));
        resolved.then_some(relative + between)
    }

    fn with_more(&self, more: u32) -> Self {
        let Some(launches) = self.launches else { return *self };
        let useful = u64::from(more) * u64::from(launches) / u64::from(self.of.max(1));
        let grown = launches.saturating_add(u32::try_from(useful).unwrap_or(u32::MAX));
        let shrink = f64::from(launches) / f64::from(grown);
        let variance = self.variance.map(|variance| variance * shrink);
        Self { launches: Some(grown), variance, ..*self }
    }
}

impl Apart {
    fn ends(&self, confidence: f64) -> Option<(f64, f64)> {
        let z = normal_quantile(confidence)?;
        let variance = self.base.log_variance(self.launch_scatter, z)?
            + self.new.log_variance(self.launch_scatter, z)?;
        let (d, half) = ((self.new.cost / self.base.cost).ln(), z * variance.sqrt());
        Some(((d - half).exp(), (d + half).exp()))
    }
}

impl Within {
    fn ends(&self, confidence: f64) -> Option<(f64, f64)> {
        let t = student_quantile(confidence, freedom(self.rounds))?;
        let half = t * self.variance?.sqrt();
        let fit = self.unfit.is_none() && self.base > 0.0;
        let is_ratio = fit && self.difference.abs() + half < MOST_DIFFERENCE;
        is_ratio.then(|| (as_ratio(self.difference - half), as_ratio(self.difference + half)))
    }
}

/// The one that says less.
fn worse(one: Speed, other: Speed) -> Speed {
    let rank = |speed: Speed| match speed {
        Speed::Full => 0,
        Speed::NotJudged => 1,
        Speed::Contended => 2,
    };
    if rank(other) > rank(one) { other } else { one }
}

/// A sample of no hops, which only a damaged run file has, has no cost of one.
fn finite(cost: Option<f64>) -> Option<f64> {
    cost.filter(|cost| cost.is_finite())
}

/// Variance of the middle of all rounds from its resamples. A resampled mean scatters by the variance
/// with the denominator n, which n / (n - 1) mends. Unknown below two rounds.
fn variance(figures: &[f64], seed: u64, resamples: usize) -> Option<f64> {
    let middles = resampled_middles(figures, Center::Midmean, seed, resamples)?;
    let deviation = Summary::of(&middles)?.deviation;
    let count = figures.len() as f64;
    Some(deviation * deviation * count / (count - 1.0)).filter(|variance| variance.is_finite())
}

/// Degrees of freedom of a middle's variance: one less than the rounds that it is the mean of (Yuen
/// 1974, after Tukey and McLaughlin 1963).
fn freedom(rounds: u32) -> f64 {
    let left = rounds as usize - 2 * cut(rounds as usize);
    left as f64 - 1.0
}

/// The relative difference of two costs of which one is nothing. No two costs have a greater one: in a
/// round in which one of them came out below zero it is taken for that, and cut off with the quarter of
/// the rounds that lie furthest out.
const MOST_DIFFERENCE: f64 = 2.0;

/// The ratio of two costs from their relative difference.
fn as_ratio(difference: f64) -> f64 {
    (MOST_DIFFERENCE + difference) / (MOST_DIFFERENCE - difference)
}

/// The figures of the rounds that both have.
fn shared(base: &BTreeMap<u32, f64>, new: &BTreeMap<u32, f64>) -> Vec<(f64, f64)> {
    base.iter().filter_map(|(round, base)| Some((*base, *new.get(round)?))).collect()
}

fn unfit(pairs: &[(f64, f64)]) -> Option<Unresolved> {
    let different = || pairs.iter().filter(|(base, new)| base != new);
    let base_below = different().filter(|(base, _)| *base <= 0.0).count();
    let new_below = different().filter(|(_, new)| *new <= 0.0).count();
    let below = different().filter(|(base, new)| base.min(*new) <= 0.0).count();
    let side = if new_below > base_below { Unresolved::New } else { Unresolved::Base };
    (below > cut(pairs.len())).then_some(side)
}

fn relative(base: f64, new: f64) -> f64 {
    // Also of two that cost nothing.
    if base == new {
        return 0.0;
    }
    let sum = base + new;
    match sum > 0.0 {
        true => (2.0 * (new - base) / sum).clamp(-MOST_DIFFERENCE, MOST_DIFFERENCE),
        false => MOST_DIFFERENCE.copysign(new - base),
    }
}
