//! The ratio of two costs, and how far it is known.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bootstrap::resampled_middles;
use crate::location::{
    Center, SampleSummary, midmean, midmean_cut, normal_quantile, student_quantile,
};

/// New cost / base cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename = "Ratio")]
pub struct CostRatio {
    /// New / base; absent where the base is not above zero, so that nothing is a multiple of it.
    pub value: Option<f64>,
    /// Lower end of its simultaneous interval; absent where there is none.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

impl CostRatio {
    /// Both ends, if there is an interval.
    pub fn interval(&self) -> Option<(f64, f64)> {
        self.low.zip(self.high)
    }

    /// Half of the interval's width / the ratio itself: a ratio of 20 is as well known at 19 to 21
    /// as one of 1 at 0.95 to 1.05.
    pub fn relative_half_width(&self) -> Option<f64> {
        let (low, high) = self.interval()?;
        self.value.filter(|value| *value != 0.0).map(|value| (high - low) / 2.0 / value.abs())
    }
}

/// One of two costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostSide {
    /// What the other is compared with.
    Base,
    /// What is compared.
    New,
}

/// A pair of costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CostPair {
    /// Measured one after the other.
    Separate(SeparateCosts),
    /// Measured in the same rounds.
    Paired(PairedCosts),
}

/// Two costs of groups of their own. d = ln(new / base) has the variance sum of s_i^2 / (K^2 c^2)
/// of each side + tau^2 (1 / K_base + 1 / K_new): s_i is the standard error within group i of K, c
/// their mean, tau the relative scatter between groups.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeparateCosts {
    /// What the other is compared with.
    pub base: GroupedCost,
    /// What is compared.
    pub new: GroupedCost,
    /// tau.
    pub between: f64,
    /// What else leaves d open.
    pub open: ExtraUncertainty,
}

/// What leaves ln(new / base) open beside the scatter of both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ExtraUncertainty {
    /// A standard error that does not shrink with groups or rounds.
    pub error: f64,
    /// Beyond chance: added to both ends.
    pub slack: f64,
}

impl ExtraUncertainty {
    fn widened(&self, half: f64, confidence: f64) -> Option<f64> {
        Some(half.hypot(normal_quantile(confidence)? * self.error) + self.slack)
    }
}

/// The mean of groups of repetitions, or an exact figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupedCost {
    /// The mean, or the figure.
    pub value: f64,
    /// Groups that it is the mean of; none of an exact figure.
    pub groups: Option<u32>,
    /// All groups that there are: of as many more as large a share will count.
    pub of: u32,
    /// Sum of squared standard errors / groups squared; absent where a group has none.
    pub variance: Option<f64>,
}

/// Two costs of the same rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairedCosts {
    base: f64,
    new: f64,
    /// The relative difference within rounds, 2 (new - base) / (new + base).
    difference: f64,
    /// Its variance; absent below two rounds.
    variance: Option<f64>,
    rounds: u32,
    /// Rounds that an interval takes.
    fewest: u32,
    /// What else leaves it open.
    open: ExtraUncertainty,
    /// Whose cost is at or below zero most often, where more rounds have one than the midmean cuts
    /// off on a side: what stands for those would move it.
    unfit: Option<CostSide>,
}

impl CostPair {
    /// Both costs: base and new.
    pub fn both(&self) -> (f64, f64) {
        match self {
            Self::Separate(apart) => (apart.base.value, apart.new.value),
            Self::Paired(within) => (within.base, within.new),
        }
    }

    /// Whether both sides have what an interval takes, and one of them was measured at all.
    pub fn has_interval(&self) -> bool {
        match self {
            Self::Separate(SeparateCosts { base, new, .. }) => {
                let known = base.variance.is_some() && new.variance.is_some();
                known && (base.groups.is_some() || new.groups.is_some())
            }
            Self::Paired(within) => within.rounds >= within.fewest && within.variance.is_some(),
        }
    }

    /// The ratio with the interval that holds the true one with `confidence`. No interval where a
    /// cost is not resolved from zero, or too many rounds have a cost below it.
    pub fn ratio(&self, confidence: f64) -> CostRatio {
        let (base, new) = self.both();
        let value = match self {
            // What stands for rounds below zero has moved the middle.
            Self::Separate(_) | Self::Paired(PairedCosts { unfit: Some(_), .. }) => new / base,
            Self::Paired(within) => as_ratio(within.difference),
        };
        let value = (base > 0.0 && value.is_finite()).then_some(value);
        let ends = match self {
            _ if !self.has_interval() => None,
            Self::Separate(apart) => apart.ends(confidence),
            Self::Paired(within) => within.ends(confidence),
        };
        let (low, high) = ends.filter(|(low, high)| low.is_finite() && high.is_finite()).unzip();
        CostRatio { value, low, high }
    }

    /// The side that is not resolved from zero, of costs that have what an interval takes and have
    /// none.
    pub fn unresolved(&self) -> CostSide {
        let (base, new) = self.both();
        let is_new = match self {
            Self::Paired(PairedCosts { unfit: Some(side), .. }) => return *side,
            Self::Paired(within) => within.difference < 0.0,
            Self::Separate(_) => new <= 0.0,
        };
        if base > 0.0 && is_new { CostSide::New } else { CostSide::Base }
    }

    /// The same where something else leaves it open, too.
    pub fn widened_by(self, open: ExtraUncertainty) -> Self {
        match self {
            Self::Separate(apart) => Self::Separate(SeparateCosts { open, ..apart }),
            Self::Paired(within) => Self::Paired(PairedCosts { open, ..within }),
        }
    }

    /// The same with `more` groups on each side that is measured, or `more` rounds, if these
    /// scatter as the others did.
    pub fn with_more(&self, more: u32) -> Self {
        match self {
            Self::Separate(apart) => {
                let (base, new) = (apart.base.with_more(more), apart.new.with_more(more));
                Self::Separate(SeparateCosts { base, new, ..*apart })
            }
            Self::Paired(within) => {
                let rounds = within.rounds.saturating_add(more);
                let shrink = f64::from(within.rounds) / f64::from(rounds.max(1));
                let variance = within.variance.map(|v| v * shrink);
                Self::Paired(PairedCosts { rounds, variance, ..*within })
            }
        }
    }

    /// The least number more, up to `most`, with which the interval would exclude 1, or lie within
    /// `limit` of it.
    pub fn more_needed(&self, limit: f64, confidence: f64, most: u32) -> Option<u32> {
        let suffices = |more: u32| {
            let ends = self.with_more(more).ratio(confidence).interval();
            ends.is_some_and(|(low, high)| {
                low > 1.0 || high < 1.0 || (1.0 / (1.0 + limit) <= low && high <= 1.0 + limit)
            })
        };
        let (mut few, mut enough) = (0, most);
        while enough - few > 1 {
            let middle = few + (enough - few) / 2;
            *if suffices(middle) { &mut enough } else { &mut few } = middle;
        }
        suffices(enough).then_some(enough)
    }
}

impl GroupedCost {
    /// A figure that is taken as it is.
    pub fn exact(value: f64) -> Self {
        Self { value, groups: None, of: 0, variance: Some(0.0) }
    }

    /// Variance of the logarithm; absent where the cost is not above zero by as much as the
    /// logarithm needs.
    fn log_variance(&self, between: f64, z: f64) -> Option<f64> {
        let relative = self.variance? / (self.value * self.value);
        let resolved = self.value > 0.0 && z * relative.sqrt() < 1.0;
        let between = self.groups.map_or(0.0, |k| between * between / f64::from(k));
        resolved.then_some(relative + between)
    }

    fn with_more(&self, more: u32) -> Self {
        let Some(groups) = self.groups else { return *self };
        let useful = u64::from(more) * u64::from(groups) / u64::from(self.of.max(1));
        let grown = groups.saturating_add(u32::try_from(useful).unwrap_or(u32::MAX));
        let variance = self.variance.map(|v| v * f64::from(groups) / f64::from(grown));
        Self { groups: Some(grown), variance, ..*self }
    }
}

impl SeparateCosts {
    fn ends(&self, confidence: f64) -> Option<(f64, f64)> {
        let z = normal_quantile(confidence)?;
        let variance =
            self.base.log_variance(self.between, z)? + self.new.log_variance(self.between, z)?;
        let half = self.open.widened(z * variance.sqrt(), confidence)?;
        let d = (self.new.value / self.base.value).ln();
        Some(((d - half).exp(), (d + half).exp()))
    }
}

impl PairedCosts {
    /// Of (base, new) by round. What is resampled is their relative difference within each, so that
    /// what slows a whole round down by a factor drops out. There is an interval from `fewest`
    /// rounds on. Absent without rounds, or if a middle is not finite.
    pub fn from_rounds(pairs: &[(f64, f64)], fewest: u32, seed: u64) -> Option<Self> {
        let relative: Vec<f64> = pairs.iter().map(|(base, new)| relative(*base, *new)).collect();
        let middle = |of: fn(&(f64, f64)) -> f64| {
            midmean(&pairs.iter().map(of).collect::<Vec<f64>>()).filter(|cost| cost.is_finite())
        };
        Some(Self {
            base: middle(|(base, _)| *base)?,
            new: middle(|(_, new)| *new)?,
            difference: midmean(&relative)?,
            variance: variance(&relative, seed),
            rounds: u32::try_from(pairs.len()).ok()?,
            fewest,
            open: ExtraUncertainty::default(),
            unfit: unfit(pairs),
        })
    }

    fn ends(&self, confidence: f64) -> Option<(f64, f64)> {
        // One less than the rounds that the middle is the mean of (Yuen 1974, after Tukey and
        // McLaughlin 1963).
        let left = self.rounds as usize - 2 * midmean_cut(self.rounds as usize);
        let half = student_quantile(confidence, left as f64 - 1.0)? * self.variance?.sqrt();
        let half = self.open.widened(half, confidence)?;
        let fit = self.unfit.is_none() && self.base > 0.0;
        let is_ratio = fit && self.difference.abs() + half < MOST_DIFFERENCE;
        is_ratio.then(|| (as_ratio(self.difference - half), as_ratio(self.difference + half)))
    }
}

/// Variance of the middle of all rounds from its resamples. A resampled mean scatters by the
/// variance with the denominator n, which n / (n - 1) corrects. Unknown below two rounds.
fn variance(figures: &[f64], seed: u64) -> Option<f64> {
    let middles = resampled_middles(figures, Center::Midmean, seed)?;
    let deviation = SampleSummary::from_values(&middles)?.deviation;
    let count = figures.len() as f64;
    Some(deviation * deviation * count / (count - 1.0)).filter(|variance| variance.is_finite())
}

/// The relative difference of two costs of which one is nothing. No two costs have a greater one:
/// in a round in which one of them came out below zero it is taken for that, and cut off with the
/// quarter of the rounds that lie furthest out.
const MOST_DIFFERENCE: f64 = 2.0;

/// The ratio of two costs from their relative difference.
fn as_ratio(difference: f64) -> f64 {
    (MOST_DIFFERENCE + difference) / (MOST_DIFFERENCE - difference)
}

fn unfit(pairs: &[(f64, f64)]) -> Option<CostSide> {
    let below = |cost: fn(f64, f64) -> f64| {
        pairs.iter().filter(|(base, new)| base != new && cost(*base, *new) <= 0.0).count()
    };
    let side =
        if below(|_, new| new) > below(|base, _| base) { CostSide::New } else { CostSide::Base };
    (below(f64::min) > midmean_cut(pairs.len())).then_some(side)
}

fn relative(base: f64, new: f64) -> f64 {
    // Also of two that cost nothing.
    if base == new {
        return 0.0;
    }
    match base + new {
        sum if sum > 0.0 => (2.0 * (new - base) / sum).clamp(-MOST_DIFFERENCE, MOST_DIFFERENCE),
        _ => MOST_DIFFERENCE.copysign(new - base),
    }
}
