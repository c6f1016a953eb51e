//! The ratio of two costs, and how far it is known.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::MINIMUM_ROUNDS;
use crate::stats::{
    Center, RESAMPLES, Rounds, Summary, cut, midmean, resampled_middles, student_quantile,
};
use crate::subject::{ByRound, Values};

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

/// What is known of a pair of costs: two estimates with their variances, each the bootstrap's, by which
/// the ratio has its interval; or one of their difference within rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Costs {
    pub(super) base: f64,
    pub(super) new: f64,
    /// Unknown below two rounds: then there is no interval either.
    base_variance: Option<f64>,
    new_variance: Option<f64>,
    within_rounds: Option<Within>,
    /// Rounds behind each; none of a published figure.
    pub(super) base_rounds: Option<u32>,
    pub(super) new_rounds: Option<u32>,
}

/// The relative difference within rounds, 2 (new - base) / (new + base), and its variance.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Within {
    difference: f64,
    variance: Option<f64>,
    /// Whose cost is at or below zero most often, where more rounds have one than the midmean cuts off
    /// on a side: what stands for those would move it.
    unfit: Option<Unresolved>,
}

/// The side that keeps two costs from having a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unresolved {
    Base,
    New,
}

impl Costs {
    /// Of two that were measured apart: each is resampled by itself. Absent without any figure.
    pub(super) fn apart(base: &Values, new: &Values, seed: u64) -> Option<Self> {
        Self::apart_by(base, new, seed, RESAMPLES)
    }

    pub(super) fn apart_by(
        base: &Values,
        new: &Values,
        seed: u64,
        resamples: usize,
    ) -> Option<Self> {
        Some(Self {
            base: middle(base)?,
            new: middle(new)?,
            base_variance: variance_of(base, seed, resamples),
            new_variance: variance_of(new, seed.wrapping_add(1), resamples),
            within_rounds: None,
            base_rounds: rounds_of(base),
            new_rounds: rounds_of(new),
        })
    }

    /// Of two that were measured in the same rounds: what is resampled is their relative difference
    /// within each, so that what slows a whole round down by a factor drops out. Absent without a round
    /// that has both.
    pub(super) fn paired(base: &ByRound, new: &ByRound, seed: u64) -> Option<Self> {
        Self::paired_by(base, new, seed, RESAMPLES)
    }

    pub(super) fn paired_by(
        base: &ByRound,
        new: &ByRound,
        seed: u64,
        resamples: usize,
    ) -> Option<Self> {
        let relative = Relative { base: Shared::with(base, new), new: Shared::with(new, base) };
        let figures = |of: &dyn Rounds| (0..of.len()).map(|r| of.figure(r)).collect::<Vec<f64>>();
        let rounds = u32::try_from(relative.len()).ok();
        Some(Self {
            base: finite(midmean(&figures(&relative.base)))?,
            new: finite(midmean(&figures(&relative.new)))?,
            base_variance: None,
            new_variance: None,
            within_rounds: Some(Within {
                difference: midmean(&figures(&relative))?,
                variance: variance(&relative, seed, resamples),
                unfit: relative.unfit(),
            }),
            base_rounds: rounds,
            new_rounds: rounds,
        })
    }

    /// Whether both sides have the rounds that an interval takes, and one of them has rounds at all.
    pub(super) fn has_interval(&self) -> bool {
        let enough = |rounds: Option<u32>| rounds.is_none_or(|rounds| rounds >= MINIMUM_ROUNDS);
        enough(self.base_rounds)
            && enough(self.new_rounds)
            && (self.base_rounds.is_some() || self.new_rounds.is_some())
    }

    /// The ratio with the interval that holds the true one with `confidence`. No interval where the base
    /// is not resolved from zero, or too many rounds have a cost below it.
    pub(super) fn ratio(&self, confidence: f64) -> Ratio {
        let value = match &self.within_rounds {
            // What stands for rounds below zero has moved the middle.
            Some(Within { unfit: Some(_), .. }) | None => self.new / self.base,
            Some(within) => as_ratio(within.difference),
        };
        let value = (self.base > 0.0 && value.is_finite()).then_some(value);
        let ends = self.has_interval().then(|| self.ends(confidence)).flatten();
        Ratio { value, low: ends.map(|ends| ends.0), high: ends.map(|ends| ends.1) }
    }

    /// Which side it is, of costs that have rounds enough and no interval.
    pub(super) fn unresolved(&self) -> Unresolved {
        match &self.within_rounds {
            Some(Within { unfit: Some(side), .. }) => *side,
            Some(Within { difference, .. }) if self.base > 0.0 && *difference < 0.0 => {
                Unresolved::New
            }
            _ => Unresolved::Base,
        }
    }

    fn ends(&self, confidence: f64) -> Option<(f64, f64)> {
        let t = student_quantile(confidence, self.freedom()?)?;
        let ends = match &self.within_rounds {
            Some(Within { unfit: Some(_), .. }) => return None,
            Some(Within { difference, variance, .. }) => {
                let half = t * (*variance)?.sqrt();
                let is_ratio = self.base > 0.0 && difference.abs() + half < MOST_DIFFERENCE;
                is_ratio.then(|| (as_ratio(difference - half), as_ratio(difference + half)))?
            }
            None => self.fieller(t)?,
        };
        (ends.0.is_finite() && ends.1.is_finite()).then_some(ends)
    }

    /// All ratios r for which new - r base is no further from zero than t times its standard error
    /// (Fieller 1954).
    fn fieller(&self, t: f64) -> Option<(f64, f64)> {
        let square = t * t;
        let a = self.base * self.base - square * self.base_variance?;
        let b = self.base * self.new;
        let c = self.new * self.new - square * self.new_variance?;
        if !(self.base > 0.0 && a > 0.0) {
            return None;
        }
        // Not below zero but for rounding, as the estimate itself lies inside.
        let root = (b * b - a * c).max(0.0).sqrt();
        Some(((b - root) / a, (b + root) / a))
    }

    /// Degrees of freedom of the variance of new - ratio x base (Welch 1947, Satterthwaite 1946).
    fn freedom(&self) -> Option<f64> {
        let of = |rounds: Option<u32>| rounds.map(freedom);
        if self.within_rounds.is_some() {
            return of(self.base_rounds).filter(|freedom| *freedom >= 1.0);
        }
        let (base, new) = (self.scaled_base_variance()?, self.new_variance?);
        let part = |variance: f64, freedom: Option<f64>| match freedom {
            Some(freedom) if freedom >= 1.0 => Some(variance * variance / freedom),
            Some(_) => None,
            None => Some(0.0),
        };
        let below = part(base, of(self.base_rounds))? + part(new, of(self.new_rounds))?;
        let freedom = (base + new) * (base + new) / below;
        match freedom.is_finite() {
            true => Some(freedom.max(1.0)),
            // Neither side scatters at all.
            false => of(self.base_rounds).into_iter().chain(of(self.new_rounds)).reduce(f64::min),
        }
    }

    /// The base's share of the variance of new - ratio x base.
    fn scaled_base_variance(&self) -> Option<f64> {
        let (ratio, variance) = (self.new / self.base, self.base_variance?);
        let scaled = ratio * ratio * variance;
        Some(if scaled.is_finite() { scaled } else { variance })
    }

    /// The same with `more` rounds on each side that is measured, if these scatter as the others did.
    pub(super) fn with_more(&self, more: u32) -> Self {
        let grown = |rounds: Option<u32>| rounds.map(|rounds| rounds.saturating_add(more));
        let shrink = |variance: Option<f64>, rounds: Option<u32>| match rounds {
            Some(rounds) if rounds > 0 => variance.map(|variance| {
                variance * f64::from(rounds) / f64::from(rounds.saturating_add(more))
            }),
            _ => variance,
        };
        Self {
            base_variance: shrink(self.base_variance, self.base_rounds),
            new_variance: shrink(self.new_variance, self.new_rounds),
            within_rounds: self.within_rounds.map(|within| Within {
                variance: shrink(within.variance, self.base_rounds),
                ..within
            }),
            base_rounds: grown(self.base_rounds),
            new_rounds: grown(self.new_rounds),
            ..*self
        }
    }
}

fn rounds_of(values: &Values) -> Option<u32> {
    match values {
        Values::Published(_) => None,
        Values::Measured(measured) => u32::try_from(measured.rounds.len()).ok(),
    }
}

fn variance_of(values: &Values, seed: u64, resamples: usize) -> Option<f64> {
    match values {
        Values::Published(_) => Some(0.0),
        Values::Measured(measured) => variance(&*measured.rounds, seed, resamples),
    }
}

/// The middle of the rounds: what both costs are, and so their ratio.
fn middle(values: &Values) -> Option<f64> {
    match values {
        Values::Published(value) => finite(Some(*value)),
        Values::Measured(measured) => finite(midmean(&measured.figures())),
    }
}

/// A sample of no hops, which only a damaged run file has, has no cost of one.
fn finite(cost: Option<f64>) -> Option<f64> {
    cost.filter(|cost| cost.is_finite())
}

/// Variance of the middle of all rounds from its resamples. A resampled mean scatters by the variance
/// with the denominator n, which n / (n - 1) mends. Unknown below two rounds.
fn variance(rounds: &dyn Rounds, seed: u64, resamples: usize) -> Option<f64> {
    let middles = resampled_middles(rounds, Center::Midmean, seed, resamples)?;
    let deviation = Summary::of(&middles)?.deviation;
    let count = rounds.len() as f64;
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

/// Relative differences of two figures that were taken in the same rounds.
struct Relative<'a> {
    base: Shared<'a>,
    new: Shared<'a>,
}

impl Relative<'_> {
    fn unfit(&self) -> Option<Unresolved> {
        let both = |round| (self.base.figure(round), self.new.figure(round));
        let different = || (0..self.len()).map(both).filter(|(base, new)| base != new);
        let base_below = different().filter(|(base, _)| *base <= 0.0).count();
        let new_below = different().filter(|(_, new)| *new <= 0.0).count();
        let below = different().filter(|(base, new)| base.min(*new) <= 0.0).count();
        let side = if new_below > base_below { Unresolved::New } else { Unresolved::Base };
        (below > cut(self.len())).then_some(side)
    }

    fn of(base: f64, new: f64) -> f64 {
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
}

impl Rounds for Relative<'_> {
    fn len(&self) -> usize {
        self.base.len().min(self.new.len())
    }
    fn figure(&self, round: usize) -> f64 {
        Self::of(self.base.figure(round), self.new.figure(round))
    }
    fn resampled(&self, round: usize, rng: &mut dyn rand::Rng) -> f64 {
        let base = self.base.resampled(round, rng);
        Self::of(base, self.new.resampled(round, rng))
    }
}

/// The rounds of a figure that another has too.
struct Shared<'a> {
    of: &'a ByRound,
    places: Vec<usize>,
}

impl<'a> Shared<'a> {
    fn with(of: &'a ByRound, other: &ByRound) -> Self {
        let is_shared = |place: &usize| other.numbers.binary_search(&of.numbers[*place]).is_ok();
        Self { of, places: (0..of.numbers.len()).filter(is_shared).collect() }
    }
}

impl Rounds for Shared<'_> {
    fn len(&self) -> usize {
        self.places.len()
    }
    fn figure(&self, round: usize) -> f64 {
        self.of.rounds.figure(self.places[round])
    }
    fn resampled(&self, round: usize, rng: &mut dyn rand::Rng) -> f64 {
        self.of.rounds.resampled(self.places[round], rng)
    }
}
