//! The costs of a pair, and the reasons why nothing is concluded from them.

use rundata::plan::MIN_ROUNDS;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::normal_quantile;
use stats::ratio::{
    CostPair, CostSide, ExtraUncertainty, GroupedCost, LogVariances, PairedCosts, SeparateCosts,
};

use super::answer::ChangeAnswer;
use crate::estimate::Speed;
use crate::quote::NotQuotable;
use crate::results::{CaseFigure, CountedEstimates, LaunchFigure};

/// The reason why a comparison of two costs is inconclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Reason")]
pub enum UndecidedReason {
    /// The interval holds 1 and reaches beyond the limit.
    TooWide,
    /// A side has too few rounds for an interval.
    FewRounds,
    /// A side was not seen at the CPU's full speed, or that was not measured.
    NoFullSpeed,
    /// Other tasks ran on the CPU of a side.
    NotAlone,
    /// The run of a side was interrupted or is not finished.
    NotEnded,
    /// The base's cost is not clearly above zero, so that a ratio to it has no meaning.
    BaseNotResolved,
    /// The new cost is not clearly above zero, so that its ratio to the base is not known.
    NewNotResolved,
    /// Neither side has an interval: both are published figures.
    NoInterval,
}

impl UndecidedReason {
    /// Returns whether a side lacks full speed, by itself or because of other tasks.
    pub(super) fn is_of_speed(self) -> bool {
        matches!(self, Self::NoFullSpeed | Self::NotAlone)
    }

    /// Returns the name of the side that is not resolved from zero; `None` for other reasons.
    pub(super) fn unresolved_side(self, [base, new]: [&str; 2]) -> Option<&str> {
        match self {
            Self::BaseNotResolved => Some(base),
            Self::NewNotResolved => Some(new),
            _ => None,
        }
    }

    /// Returns the reason in words. `base` and `new` are the names of the sides.
    pub(super) fn in_words(self, [base, new]: [&str; 2]) -> String {
        let words = match self {
            Self::TooWide => "the interval is too wide",
            Self::FewRounds => "too few rounds for an interval",
            Self::NoFullSpeed => "full speed was not seen on one side or both",
            Self::NotAlone => "other tasks ran on the CPU",
            Self::NotEnded => "one side was interrupted or is not finished",
            Self::BaseNotResolved => return format!("the cost of {base} includes zero"),
            Self::NewNotResolved => return format!("the cost of {new} includes zero"),
            Self::NoInterval => "published figures have no interval",
        };
        words.to_string()
    }
}

/// The costs of a pair of cases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PairCosts {
    /// The costs with their errors.
    pub(super) values: CostPair,
    /// Rounds behind the base's cost; absent for a published figure.
    pub(super) base_rounds: Option<u32>,
    /// Rounds behind the new cost; absent for a published figure.
    pub(super) new_rounds: Option<u32>,
    /// The reason why no difference is a change: a side did not complete, or was not measured at
    /// full speed and alone on its CPU. Published figures are never unfit.
    pub(super) unfit: Option<UndecidedReason>,
    /// The reason why the base's cost may not be quoted by itself.
    pub(super) base_not_quotable: Option<NotQuotable>,
    /// The reason why the new cost may not be quoted by itself.
    pub(super) new_not_quotable: Option<NotQuotable>,
    /// True if both costs are at one clock of the core.
    pub(super) at_one_clock: bool,
    /// The upper bound of a side that was not seen at full speed, beside the other side's cost.
    pub(super) bound: Option<BoundedCosts>,
    /// True if both are above zero by their nature: then their intervals are of logarithms.
    pub(super) are_positive: bool,
    /// True for the sums of traces: more of them are one longer trace.
    pub(super) are_of_traces: bool,
}

/// Two costs of which one is known only by an upper bound: its side was not seen at full speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct BoundedCosts {
    /// The side that has the bound.
    side: CostSide,
    /// The bound, as an exact figure, and the cost of the other side.
    costs: CostPair,
    at_most_ns: f64,
}

impl BoundedCosts {
    /// Builds it where exactly one side lacks full speed and has a bound, and the other holds.
    pub(super) fn from_figures(
        base: &CaseFigure,
        new: &CaseFigure,
        launch_scatter: f64,
        uncertainty: ExtraUncertainty,
    ) -> Option<Self> {
        let (side, at_most_ns, other) = match (bound_at_full_speed(base), bound_at_full_speed(new))
        {
            (Some(ns), None) => (CostSide::Base, ns, SideCost::from_figure(new, launch_scatter)?),
            (None, Some(ns)) => (CostSide::New, ns, SideCost::from_figure(base, launch_scatter)?),
            _ => return None,
        };
        if other.unfit.is_some() || other.not_quotable.is_some() {
            return None;
        }
        let bound = GroupedCost::exact(at_most_ns);
        let (base, new) = match side {
            CostSide::Base => (bound, other.cost),
            CostSide::New => (other.cost, bound),
        };
        let (between, open) = (launch_scatter, uncertainty);
        let costs = CostPair::Separate(SeparateCosts { base, new, between, open });
        Some(Self { side, costs, at_most_ns })
    }

    /// Returns the answer that the bound gives; `None` where it decides nothing.
    pub(super) fn answer(&self, confidence: f64) -> Option<ChangeAnswer> {
        let ratio = self.costs.ratio(confidence);
        // A published figure has no interval and is taken as printed.
        let is_exact = !self.costs.has_interval();
        let (low, high) = match ratio.value {
            Some(value) if is_exact => (value, value),
            _ => ratio.interval()?,
        };
        let at_most_ns = self.at_most_ns;
        match self.side {
            CostSide::New if high < 1.0 => {
                Some(ChangeAnswer::Bounded { worse: false, ratio: high, at_most_ns })
            }
            CostSide::Base if low > 1.0 => {
                Some(ChangeAnswer::Bounded { worse: true, ratio: low, at_most_ns })
            }
            _ => None,
        }
    }
}

/// Returns the upper bound of a side's cost at full speed, in nanoseconds: the highest bound of its
/// launches. `None` for a side that was seen at full speed or did not complete, and where a launch
/// has no bound.
fn bound_at_full_speed(figure: &CaseFigure) -> Option<f64> {
    let counted = figure.counted_estimates();
    unfit_reason(&counted).filter(|reason| reason.is_of_speed())?;
    let mut highest: Option<f64> = None;
    for estimate in &counted.estimates {
        let bound = estimate.at_most.filter(|ns| ns.is_finite() && *ns > 0.0)?;
        highest = Some(highest.map_or(bound, |known| known.max(bound)));
    }
    highest
}

impl PairCosts {
    /// Returns whether an answer may be built on both: each completed and was measured at full
    /// speed, in enough rounds for an interval.
    pub(super) fn holds(&self) -> bool {
        self.unfit.is_none() && self.values.has_interval()
    }

    /// Returns the costs with the errors of their logarithms, by the intervals of these figures.
    pub(super) fn on_logarithms(self, base: &CaseFigure, new: &CaseFigure) -> Self {
        let mut values = self.values;
        if let CostPair::Separate(costs) = &mut values {
            costs.base.log_variances = log_variances(base);
            costs.new.log_variances = log_variances(new);
        }
        Self { values, are_positive: true, ..self }
    }

    /// Returns whether the interval of a side includes zero, so that it has no ratio. One that is too
    /// wide to be quoted does not, where it is above zero by its nature.
    pub(super) fn includes_zero(&self, side: CostSide) -> bool {
        let not_quotable = match side {
            CostSide::Base => self.base_not_quotable,
            CostSide::New => self.new_not_quotable,
        };
        match not_quotable {
            Some(NotQuotable::NotResolved { low, .. }) => !self.are_positive || low <= 0.0,
            _ => false,
        }
    }

    /// Builds the costs of two sides that were measured independently. Absent where a side has no
    /// figure.
    pub(super) fn separate(
        base: &CaseFigure,
        new: &CaseFigure,
        launch_scatter: f64,
    ) -> Option<Self> {
        let base = SideCost::from_figure(base, launch_scatter)?;
        let new = SideCost::from_figure(new, launch_scatter)?;
        let values = CostPair::Separate(SeparateCosts {
            base: base.cost,
            new: new.cost,
            between: launch_scatter,
            open: ExtraUncertainty::default(),
        });
        Some(Self {
            values,
            base_rounds: base.rounds,
            new_rounds: new.rounds,
            unfit: base.unfit.or(new.unfit),
            base_not_quotable: base.not_quotable,
            new_not_quotable: new.not_quotable,
            at_one_clock: false,
            bound: None,
            are_positive: false,
            are_of_traces: false,
        })
    }

    /// Builds the costs of two sides that were measured in the same rounds of a session. Absent
    /// without a round that both have.
    pub(super) fn paired(base: &LaunchFigure, new: &LaunchFigure, seed: u64) -> Option<Self> {
        let mut pairs = Vec::new();
        for (round, base_ns) in &base.by_round {
            if let Some(new_ns) = new.by_round.get(round) {
                pairs.push((*base_ns, *new_ns));
            }
        }
        let rounds = u32::try_from(pairs.len()).ok();
        let values = CostPair::Paired(PairedCosts::from_rounds(&pairs, MIN_ROUNDS, seed)?);
        let unfit = unfit_reason(&launch_estimates(base));
        Some(Self {
            values,
            base_rounds: rounds,
            new_rounds: rounds,
            unfit: unfit.or_else(|| unfit_reason(&launch_estimates(new))),
            base_not_quotable: launch_not_quotable(base),
            new_not_quotable: launch_not_quotable(new),
            at_one_clock: false,
            bound: None,
            are_positive: false,
            are_of_traces: false,
        })
    }
}

fn launch_estimates(launch: &LaunchFigure) -> CountedEstimates {
    CountedEstimates {
        estimates: launch.estimate.into_iter().collect(),
        are_complete: launch.is_complete,
    }
}

fn launch_not_quotable(launch: &LaunchFigure) -> Option<NotQuotable> {
    launch.estimate?.quote_cost().err()
}

/// Returns the variances of the logarithm of the mean of the launches that count, by the ends of their
/// intervals. Absent where an interval is missing or reaches zero.
fn log_variances(figure: &CaseFigure) -> Option<LogVariances> {
    let counted = figure.counted_estimates();
    let sum = counted.mean()? * counted.estimates.len() as f64;
    let mut variances = LogVariances::default();
    for estimate in &counted.estimates {
        let ends = estimate.interval()?;
        if ends.low <= 0.0 {
            return None;
        }
        let weight = estimate.value / (sum * normal_quantile(estimate.confidence)?);
        variances.down += (weight * (estimate.value / ends.low).ln()).powi(2);
        variances.up += (weight * (ends.high / estimate.value).ln()).powi(2);
    }
    let is_finite = variances.down.is_finite() && variances.up.is_finite();
    if is_finite { Some(variances) } else { None }
}

/// Returns the reason why nothing is concluded from these estimates.
fn unfit_reason(counted: &CountedEstimates) -> Option<UndecidedReason> {
    if !counted.are_complete {
        return Some(UndecidedReason::NotEnded);
    }
    if counted.has_speed(Speed::Full) || counted.has_speed(Speed::FewRounds) {
        return None;
    }
    if counted.has_speed(Speed::NotAlone) || counted.has_speed(Speed::CpuTime) {
        return Some(UndecidedReason::NotAlone);
    }
    Some(UndecidedReason::NoFullSpeed)
}

/// The cost of one side of a pair.
struct SideCost {
    cost: GroupedCost,
    /// Rounds of all launches that count; absent for a published figure.
    rounds: Option<u32>,
    unfit: Option<UndecidedReason>,
    not_quotable: Option<NotQuotable>,
}

impl SideCost {
    /// Builds the cost of a side: the mean of the launches that count, or the published figure; `None`
    /// where that is not a finite number.
    fn from_figure(figure: &CaseFigure, launch_scatter: f64) -> Option<Self> {
        let launches = match figure {
            CaseFigure::Published(cost) if cost.is_finite() => {
                let cost = GroupedCost::exact(*cost);
                return Some(Self { cost, rounds: None, unfit: None, not_quotable: None });
            }
            CaseFigure::Published(_) => return None,
            CaseFigure::Measured(launches) => launches,
        };
        let counted = figure.counted_estimates();
        let count = counted.estimates.len() as f64;
        // A sample of no hops, which only a damaged run file has, has no cost of one.
        let value = counted.mean().filter(|cost| cost.is_finite())?;
        let cost = GroupedCost {
            value,
            groups: u32::try_from(counted.estimates.len()).ok(),
            all_groups: u32::try_from(launches.len()).ok()?,
            variance: counted.squared_errors().map(|squares| squares / (count * count)),
            log_variances: None,
        };
        Some(Self {
            cost,
            rounds: Some(counted.rounds()),
            unfit: unfit_reason(&counted),
            not_quotable: figure.mean_estimate(launch_scatter)?.quote_cost().err(),
        })
    }
}
