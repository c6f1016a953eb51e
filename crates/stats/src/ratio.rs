//! The ratio of two costs, and its interval.
//!
//! *Paired* costs were measured in the same rounds. Rounds of (10, 11), (15, 16.5) and (10, 11) ms,
//! the second one slowed down as a whole, differ by 2 (11 - 10) / (11 + 10) = 9.5 % each: within
//! rounds nothing scatters, though the costs themselves scatter by half. So the middle of the
//! relative differences is resampled, and turned into a ratio at the end: a difference d of the
//! costs over their mean is a ratio of (2 + d) / (2 - d) = 2.095 / 1.905 = 1.10.
//!
//! *Separate* costs were measured one after the other, in groups (launches). Each has a standard
//! error within its groups, and both contain the scatter between groups, tau. With 1.2 % between
//! launches and 5 launches on each side the ratio is known to sqrt(2 / 5) x 1.2 % = 0.8 % at best,
//! however long each launch runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bootstrap::resampled_middles;
use crate::distributions::{normal_quantile, student_quantile};
use crate::location::{Center, SampleSummary, finite, midmean, midmean_cut};

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
    /// Returns both ends, if there is an interval.
    pub fn interval(&self) -> Option<(f64, f64)> {
        Some((self.low?, self.high?))
    }

    /// Returns half of the interval's width over the ratio itself: a ratio of 20 is as well known at
    /// 19 to 21 as one of 1 at 0.95 to 1.05.
    pub fn relative_half_width(&self) -> Option<f64> {
        let (low, high) = self.interval()?;
        let value = self.value.filter(|value| *value != 0.0)?;
        Some((high - low) / 2.0 / value.abs())
    }
}

/// Side of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostSide {
    /// The cost below the line.
    Base,
    /// The cost above the line.
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
    /// The cost below the line.
    pub base: GroupedCost,
    /// The cost above the line.
    pub new: GroupedCost,
    /// Relative scatter between groups, tau.
    pub between: f64,
    /// Uncertainty of d beside both scatters.
    pub open: ExtraUncertainty,
}

/// Uncertainty of ln(new / base) beside the scatter of both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ExtraUncertainty {
    /// A standard error that does not shrink with groups or rounds.
    pub error: f64,
    /// A bias that is not random: added to both ends.
    pub slack: f64,
}

impl ExtraUncertainty {
    /// Widens half of an interval. Absent for a confidence outside 0 to 1.
    fn widen(&self, half: f64, confidence: f64) -> Option<f64> {
        Some(half.hypot(normal_quantile(confidence)? * self.error) + self.slack)
    }
}

/// The mean of groups of repetitions, or an exact figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupedCost {
    /// The mean, or the figure.
    pub value: f64,
    /// Number of groups in the mean; none for an exact figure.
    pub groups: Option<u32>,
    /// Number of groups that there are, with those that do not count: if 5 of 10 count, 5 of 10
    /// more will.
    pub all_groups: u32,
    /// Sum of squared standard errors / groups squared; absent where a group has none.
    pub variance: Option<f64>,
    /// Errors of its logarithm; absent where `variance` stands for them.
    pub log_variances: Option<LogVariances>,
}

/// Errors of the logarithm of a cost, by the ends of its interval. A quantile of 15 us may lie between
/// 14 and 105: it is hardly less, and may be seven times as much.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LogVariances {
    /// Variance towards lower costs.
    pub down: f64,
    /// Variance towards higher costs.
    pub up: f64,
}

/// Two costs of the same rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairedCosts {
    base: f64,
    new: f64,
    /// The relative difference within rounds, 2 (new - base) / (new + base).
    difference: f64,
    /// Variance of the difference; absent below two rounds.
    variance: Option<f64>,
    rounds: u32,
    /// Least number of rounds of an interval.
    fewest: u32,
    /// Uncertainty beside the scatter of the rounds.
    open: ExtraUncertainty,
    /// The side whose cost is at or below zero most often, if more rounds have such a cost than the
    /// midmean cuts off on a side: the values in place of those rounds would move it.
    unfit: Option<CostSide>,
}

impl CostPair {
    /// Returns both costs: base and new.
    pub fn both(&self) -> (f64, f64) {
        match self {
            Self::Separate(costs) => (costs.base.value, costs.new.value),
            Self::Paired(costs) => (costs.base, costs.new),
        }
    }

    /// Returns whether both sides have what an interval takes, and one of them was measured at all.
    pub fn has_interval(&self) -> bool {
        match self {
            Self::Separate(SeparateCosts { base, new, .. }) => {
                let is_known = base.variance.is_some() && new.variance.is_some();
                is_known && (base.groups.is_some() || new.groups.is_some())
            }
            Self::Paired(costs) => costs.rounds >= costs.fewest && costs.variance.is_some(),
        }
    }

    /// Returns the ratio with the interval that holds the true one with `confidence`. No interval
    /// where a cost is not resolved from zero, or too many rounds have a cost below it.
    pub fn ratio(&self, confidence: f64) -> CostRatio {
        let (base, new) = self.both();
        let value = match self {
            // The values in place of rounds below zero have moved the middle.
            Self::Separate(_) | Self::Paired(PairedCosts { unfit: Some(_), .. }) => new / base,
            Self::Paired(costs) => to_ratio(costs.difference),
        };
        let value = if base > 0.0 && value.is_finite() { Some(value) } else { None };
        let ends = match self {
            _ if !self.has_interval() => None,
            Self::Separate(costs) => costs.interval(confidence),
            Self::Paired(costs) => costs.interval(confidence),
        };
        match ends {
            Some((low, high)) if low.is_finite() && high.is_finite() => {
                CostRatio { value, low: Some(low), high: Some(high) }
            }
            _ => CostRatio { value, low: None, high: None },
        }
    }

    /// Returns the side that is not resolved from zero, for costs that have what an interval takes
    /// and yet have none.
    pub fn unresolved(&self) -> CostSide {
        let (base, new) = self.both();
        let is_new = match self {
            Self::Paired(PairedCosts { unfit: Some(side), .. }) => return *side,
            Self::Paired(costs) => costs.difference < 0.0,
            Self::Separate(_) => new <= 0.0,
        };
        if base > 0.0 && is_new { CostSide::New } else { CostSide::Base }
    }

    /// Replaces the uncertainty beside the scatter.
    pub fn widened_by(self, open: ExtraUncertainty) -> Self {
        match self {
            Self::Separate(costs) => Self::Separate(SeparateCosts { open, ..costs }),
            Self::Paired(costs) => Self::Paired(PairedCosts { open, ..costs }),
        }
    }

    /// Projects the costs to `more` groups on each side that is measured, or `more` rounds, if these
    /// scatter as the others did.
    pub fn with_more(&self, more: u32) -> Self {
        match self {
            Self::Separate(costs) => {
                let (base, new) = (costs.base.with_more(more), costs.new.with_more(more));
                Self::Separate(SeparateCosts { base, new, ..*costs })
            }
            Self::Paired(costs) => {
                let rounds = costs.rounds.saturating_add(more);
                let shrink = f64::from(costs.rounds) / f64::from(rounds.max(1));
                let variance = costs.variance.map(|variance| variance * shrink);
                Self::Paired(PairedCosts { rounds, variance, ..*costs })
            }
        }
    }

    /// Returns whether the interval would exclude 1, or lie within `limit` of it, if nothing scattered
    /// within the groups of either side.
    pub fn decides_with_exact_groups(&self, limit: f64, confidence: f64) -> bool {
        match self {
            Self::Separate(costs) => {
                let (base, new) = (costs.base.with_exact_groups(), costs.new.with_exact_groups());
                let exact = Self::Separate(SeparateCosts { base, new, ..*costs });
                exact.decides(limit, confidence)
            }
            Self::Paired(_) => self.decides(limit, confidence),
        }
    }

    /// Returns the least number of further groups or rounds, up to `most`, with which the interval
    /// would exclude 1, or lie within `limit` of it.
    pub fn more_needed(&self, limit: f64, confidence: f64, most: u32) -> Option<u32> {
        let (mut few, mut enough) = (0, most);
        while enough - few > 1 {
            let middle = few + (enough - few) / 2;
            let is_enough = self.with_more(middle).decides(limit, confidence);
            *if is_enough { &mut enough } else { &mut few } = middle;
        }
        if self.with_more(enough).decides(limit, confidence) { Some(enough) } else { None }
    }

    /// Returns whether the interval excludes 1, or lies within `limit` of it.
    fn decides(&self, limit: f64, confidence: f64) -> bool {
        match self.ratio(confidence).interval() {
            Some((low, high)) => {
                low > 1.0 || high < 1.0 || (1.0 / (1.0 + limit) <= low && high <= 1.0 + limit)
            }
            None => false,
        }
    }
}

impl GroupedCost {
    /// Builds a figure that is taken as it is.
    pub fn exact(value: f64) -> Self {
        Self { value, groups: None, all_groups: 0, variance: Some(0.0), log_variances: None }
    }

    /// Returns the variances of the logarithm; absent where a standard error stands for them and the
    /// cost is not resolved from zero: a logarithm needs that.
    fn variances_of_logarithm(&self, between: f64, z: f64) -> Option<LogVariances> {
        let between = match self.groups {
            Some(groups) => between * between / f64::from(groups),
            None => 0.0,
        };
        if let Some(LogVariances { down, up }) = self.log_variances {
            return Some(LogVariances { down: down + between, up: up + between });
        }
        let relative = self.variance? / (self.value * self.value);
        let is_resolved = self.value > 0.0 && z * relative.sqrt() < 1.0;
        let variance = relative + between;
        if is_resolved { Some(LogVariances { down: variance, up: variance }) } else { None }
    }

    /// Returns the cost with groups that do not scatter within themselves.
    fn with_exact_groups(&self) -> Self {
        let log_variances = self.log_variances.map(|_| LogVariances::default());
        Self { variance: self.variance.map(|_| 0.0), log_variances, ..*self }
    }

    fn with_more(&self, more: u32) -> Self {
        let Some(groups) = self.groups else { return *self };
        let useful = u64::from(more) * u64::from(groups) / u64::from(self.all_groups.max(1));
        let grown = groups.saturating_add(u32::try_from(useful).unwrap_or(u32::MAX));
        let shrink = |variance: f64| variance * f64::from(groups) / f64::from(grown);
        let mut cost = Self { groups: Some(grown), ..*self };
        cost.variance = self.variance.map(shrink);
        if let Some(LogVariances { down, up }) = self.log_variances {
            cost.log_variances = Some(LogVariances { down: shrink(down), up: shrink(up) });
        }
        cost
    }
}

impl SeparateCosts {
    fn interval(&self, confidence: f64) -> Option<(f64, f64)> {
        let z = normal_quantile(confidence)?;
        let base = self.base.variances_of_logarithm(self.between, z)?;
        let new = self.new.variances_of_logarithm(self.between, z)?;
        // The ratio is lowest where the base is high and the new one low (Zou and Donner 2008).
        let down = self.open.widen(z * (base.up + new.down).sqrt(), confidence)?;
        let up = self.open.widen(z * (base.down + new.up).sqrt(), confidence)?;
        let d = (self.new.value / self.base.value).ln();
        Some(((d - down).exp(), (d + up).exp()))
    }
}

impl PairedCosts {
    /// Builds the costs from (base, new) by round. Their relative difference within each round is
    /// resampled, so that a factor by which a whole round was slower drops out. There is an interval
    /// from `fewest` rounds on. Absent without rounds, or if a middle is not finite.
    pub fn from_rounds(pairs: &[(f64, f64)], fewest: u32, seed: u64) -> Option<Self> {
        let (bases, news): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        let mut differences = Vec::with_capacity(pairs.len());
        for (base, new) in pairs {
            differences.push(relative_difference(*base, *new));
        }
        Some(Self {
            base: finite(midmean(&bases)?)?,
            new: finite(midmean(&news)?)?,
            difference: midmean(&differences)?,
            variance: midmean_variance(&differences, seed),
            rounds: u32::try_from(pairs.len()).ok()?,
            fewest,
            open: ExtraUncertainty::default(),
            unfit: unfit_side(pairs),
        })
    }

    fn interval(&self, confidence: f64) -> Option<(f64, f64)> {
        // One less than the rounds that the middle is the mean of (Yuen 1974, after Tukey and
        // McLaughlin 1963).
        let left = self.rounds as usize - 2 * midmean_cut(self.rounds as usize);
        let half = student_quantile(confidence, left as f64 - 1.0)? * self.variance?.sqrt();
        let half = self.open.widen(half, confidence)?;
        let is_fit = self.unfit.is_none() && self.base > 0.0;
        if is_fit && self.difference.abs() + half < MAX_DIFFERENCE {
            Some((to_ratio(self.difference - half), to_ratio(self.difference + half)))
        } else {
            None
        }
    }
}

/// Returns the variance of the midmean of all rounds from its resamples. A resampled mean scatters
/// by the variance with the denominator n, which n / (n - 1) corrects. Unknown below two rounds.
fn midmean_variance(figures: &[f64], seed: u64) -> Option<f64> {
    let middles = resampled_middles(figures, Center::Midmean, seed)?;
    let deviation = SampleSummary::from_values(&middles)?.deviation;
    let count = figures.len() as f64;
    finite(deviation * deviation * count / (count - 1.0))
}

/// Relative difference of two costs of which one is nothing: no two costs have a greater one. A
/// round in which one of them came out below zero has this difference, and is cut off with the
/// quarter of the rounds that lie furthest out.
const MAX_DIFFERENCE: f64 = 2.0;

/// Turns the relative difference of two costs into their ratio.
fn to_ratio(difference: f64) -> f64 {
    (MAX_DIFFERENCE + difference) / (MAX_DIFFERENCE - difference)
}

/// Returns the side whose cost is at or below zero in most rounds, if that is so in more rounds than
/// a midmean cuts off on a side.
fn unfit_side(pairs: &[(f64, f64)]) -> Option<CostSide> {
    let (mut base_below, mut new_below, mut any_below) = (0, 0, 0);
    for (base, new) in pairs {
        if base != new {
            base_below += usize::from(*base <= 0.0);
            new_below += usize::from(*new <= 0.0);
            any_below += usize::from(base.min(*new) <= 0.0);
        }
    }
    if any_below <= midmean_cut(pairs.len()) {
        return None;
    }
    Some(if new_below > base_below { CostSide::New } else { CostSide::Base })
}

/// Returns 2 (new - base) / (new + base), from -2 to 2; 0 for equal costs, also if both are zero.
fn relative_difference(base: f64, new: f64) -> f64 {
    if base == new {
        return 0.0;
    }
    match base + new {
        sum if sum > 0.0 => (2.0 * (new - base) / sum).clamp(-MAX_DIFFERENCE, MAX_DIFFERENCE),
        _ => MAX_DIFFERENCE.copysign(new - base),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing is cut off from three rounds: their midmean is a mean, with Student's interval.
    #[test]
    fn three_rounds_have_the_interval_of_their_mean() {
        let rounds = [(100.0, 101.0), (100.0, 102.0), (100.0, 103.0)];
        let paired = PairedCosts::from_rounds(&rounds, 3, 1).unwrap();
        let (low, high) = CostPair::Paired(paired).ratio(0.95).interval().unwrap();
        let differences = rounds.map(|(base, new)| relative_difference(base, new));
        let summary = SampleSummary::from_values(&differences).unwrap();
        let expected = summary.interval(0.95).unwrap();
        let width = to_ratio(expected.high) - to_ratio(expected.low);
        // 2,000 resamples know the deviation to 1.6 %.
        assert!(((high - low) / width - 1.0).abs() < 0.05, "{low} to {high}, {expected:?}");
        assert!((f64::midpoint(low, high) - 1.02).abs() < 0.001, "{low} to {high}");
    }

    /// Builds a mean of one group, known by the ends of its interval of 95 %.
    fn between_ends(value: f64, [low, high]: [f64; 2]) -> GroupedCost {
        let z = normal_quantile(0.95).unwrap();
        let [down, up] = [value / low, high / value].map(|factor| (factor.ln() / z).powi(2));
        let log_variances = Some(LogVariances { down, up });
        let variance = Some((value * (high / low).ln() / (2.0 * z)).powi(2));
        GroupedCost { value, groups: Some(1), all_groups: 1, variance, log_variances }
    }

    fn ratio_of(base: GroupedCost, new: GroupedCost) -> CostPair {
        let open = ExtraUncertainty::default();
        CostPair::Separate(SeparateCosts { base, new, between: 0.0, open })
    }

    /// Both are between 14 and 105, and one of them was found at either end.
    #[test]
    fn a_wide_interval_reaches_as_far_as_it_does_on_each_side() {
        let (low, high) = (between_ends(15.0, [14.0, 105.0]), between_ends(100.0, [14.0, 105.0]));
        let pair = ratio_of(low, high);
        let (from, to) = pair.ratio(0.95).interval().expect("two intervals");
        // ln(100 / 15) -+ the root of the squares of ln(105 / 15) and ln(100 / 14), or of ln(15 / 14)
        // and ln(105 / 100).
        let down = (105.0_f64 / 15.0).ln().hypot((100.0_f64 / 14.0).ln());
        let up = (15.0_f64 / 14.0).ln().hypot((105.0_f64 / 100.0).ln());
        let ratio = 100.0 / 15.0;
        assert!((from / (ratio * (-down).exp()) - 1.0).abs() < 1e-9 && from < 1.0, "{from}");
        assert!((to / (ratio * up.exp()) - 1.0).abs() < 1e-9, "{to}");
        // A standard error as wide would not be resolved from zero.
        let plain = ratio_of(
            GroupedCost { log_variances: None, ..low },
            GroupedCost { log_variances: None, ..high },
        );
        assert_eq!(plain.ratio(0.95).interval(), None);
        // Without an error within them, both would be told apart.
        assert!(pair.decides_with_exact_groups(0.03, 0.95));
        assert!(!pair.decides(0.03, 0.95) && pair.with_more(1000).decides(0.03, 0.95));
    }
}
