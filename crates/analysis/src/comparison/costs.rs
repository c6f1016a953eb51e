//! The costs of a pair, and why nothing may be built on them.

use rundata::plan::MIN_ROUNDS;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::mean;
use stats::ratio::{self, GroupedCost, PairedCosts, SeparateCosts};

use super::answer::ChangeAnswer;
use crate::estimate::{Estimate, Speed};
use crate::quote::NotQuotable;
use crate::results::{CaseFigure, LaunchFigure};

/// Why nothing can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Reason")]
pub enum UndecidedReason {
    /// The interval holds 1 and reaches beyond the limit.
    TooWide,
    /// Too few rounds on a side for an interval.
    FewRounds,
    /// A side was not seen at the CPU's full speed, or that was not measured.
    NoFullSpeed,
    /// Other tasks ran on the CPU of a side.
    NotAlone,
    /// A side is of a run that was interrupted or is not finished.
    NotEnded,
    /// The base's cost is not clearly above zero, so that nothing is a multiple of it.
    BaseNotResolved,
    /// The new cost is not clearly above zero: what it is of the base is then not known.
    NewNotResolved,
    /// Neither side has an interval: both are published figures.
    NoInterval,
}

impl UndecidedReason {
    /// Whether a side was not at full speed by itself.
    pub(super) fn is_of_speed(self) -> bool {
        matches!(self, Self::NoFullSpeed | Self::NotAlone)
    }

    /// In words. `base` and `new` are what the sides are called.
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

/// What is known of a pair of costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PairCosts {
    /// The numbers.
    pub(super) of: ratio::CostPair,
    /// Rounds behind base and new: none of a published figure.
    pub(super) rounds: (Option<u32>, Option<u32>),
    /// Why no difference is a change: a side did not end, or was not measured at full speed with
    /// nobody else on the CPU. Published ones are left aside.
    pub(super) unfit: Option<UndecidedReason>,
    /// Why the costs of base and new may not be quoted, each by itself.
    pub(super) why: (Option<NotQuotable>, Option<NotQuotable>),
    /// Whether both are at one clock of the core.
    pub(super) at_one_clock: bool,
    /// The bound of a side that was not seen at full speed, against the other side's cost.
    pub(super) bound: Option<BoundedCosts>,
}

/// Two costs of which one is known only by an upper bound: its side was not seen at full speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct BoundedCosts {
    /// The side that has the bound.
    side: ratio::CostSide,
    /// The bound, as an exact figure, and the cost of the other side.
    costs: ratio::CostPair,
    at_most_ns: f64,
}

impl BoundedCosts {
    /// Builds it where exactly one side lacks full speed and has a bound, and the other holds.
    pub(super) fn from_values(
        base: &CaseFigure,
        new: &CaseFigure,
        launch_scatter: f64,
        open: ratio::ExtraUncertainty,
    ) -> Option<Self> {
        let (bounded, at_most_ns, other) =
            match (bound_at_full_speed(base), bound_at_full_speed(new)) {
                (Some(ns), None) => (ratio::CostSide::Base, ns, side(new, launch_scatter)?),
                (None, Some(ns)) => (ratio::CostSide::New, ns, side(base, launch_scatter)?),
                _ => return None,
            };
        if other.unfit.is_some() || other.why.is_some() {
            return None;
        }
        let bound = GroupedCost::exact(at_most_ns);
        let (base, new) = match bounded {
            ratio::CostSide::Base => (bound, other.cost),
            ratio::CostSide::New => (other.cost, bound),
        };
        let costs =
            ratio::CostPair::Separate(SeparateCosts { base, new, between: launch_scatter, open });
        Some(Self { side: bounded, costs, at_most_ns })
    }

    /// Returns the answer that the bound gives; `None` where it decides nothing.
    pub(super) fn answer(&self, confidence: f64) -> Option<ChangeAnswer> {
        let ratio = self.costs.ratio(confidence);
        // Of a published figure there is no interval: it is taken as printed.
        let is_exact = !self.costs.has_interval();
        let (low, high) = match ratio.value {
            Some(value) if is_exact => (value, value),
            _ => ratio.interval()?,
        };
        let at_most_ns = self.at_most_ns;
        match self.side {
            ratio::CostSide::New if high < 1.0 => {
                Some(ChangeAnswer::Bounded { worse: false, ratio: high, at_most_ns })
            }
            ratio::CostSide::Base if low > 1.0 => {
                Some(ChangeAnswer::Bounded { worse: true, ratio: low, at_most_ns })
            }
            _ => None,
        }
    }
}

/// Returns the upper bound of what a side costs at full speed, in nanoseconds: the highest of its
/// launches' bounds. `None` of a side that was seen at full speed or did not end, and where a launch
/// has no bound.
fn bound_at_full_speed(values: &CaseFigure) -> Option<f64> {
    let (estimates, are_whole) = values.counted_estimates();
    unfit(&estimates, are_whole).filter(|reason| reason.is_of_speed())?;
    let mut highest: Option<f64> = None;
    for estimate in &estimates {
        let bound = estimate.at_most.filter(|ns| ns.is_finite() && *ns > 0.0)?;
        highest = Some(highest.map_or(bound, |known| known.max(bound)));
    }
    highest
}

impl PairCosts {
    /// Whether an answer may be built on both: each ended and was measured at full speed, in enough
    /// rounds for an interval.
    pub(super) fn holds(&self) -> bool {
        self.unfit.is_none() && self.of.has_interval()
    }

    /// Of two that were measured apart. Absent without a figure on each side.
    pub(super) fn separate(
        base: &CaseFigure,
        new: &CaseFigure,
        launch_scatter: f64,
    ) -> Option<Self> {
        let (base, new) = (side(base, launch_scatter)?, side(new, launch_scatter)?);
        let costs = SeparateCosts {
            base: base.cost,
            new: new.cost,
            between: launch_scatter,
            open: ratio::ExtraUncertainty::default(),
        };
        Some(Self {
            of: ratio::CostPair::Separate(costs),
            rounds: (base.rounds, new.rounds),
            unfit: base.unfit.or(new.unfit),
            why: (base.why, new.why),
            at_one_clock: false,
            bound: None,
        })
    }

    /// Of two that were measured in the same rounds of one session. Absent without a round that has
    /// both.
    pub(super) fn paired(base: &LaunchFigure, new: &LaunchFigure, seed: u64) -> Option<Self> {
        let both = |(round, base): (&u32, &f64)| Some((*base, *new.by_round.get(round)?));
        let pairs: Vec<(f64, f64)> = base.by_round.iter().filter_map(both).collect();
        let rounds = u32::try_from(pairs.len()).ok();
        let unfit = |of: &LaunchFigure| unfit(of.estimate.as_slice(), of.is_complete);
        let why = |of: &LaunchFigure| of.estimate.and_then(|of| of.quote_cost().err());
        Some(Self {
            of: ratio::CostPair::Paired(PairedCosts::from_rounds(&pairs, MIN_ROUNDS, seed)?),
            rounds: (rounds, rounds),
            unfit: unfit(base).or(unfit(new)),
            why: (why(base), why(new)),
            at_one_clock: false,
            bound: None,
        })
    }
}

/// Why nothing is built on these.
fn unfit(all: &[Estimate], are_whole: bool) -> Option<UndecidedReason> {
    let any = |speed: Speed| all.iter().any(|of| of.speed == speed);
    match () {
        () if !are_whole => Some(UndecidedReason::NotEnded),
        () if any(Speed::Full) || any(Speed::FewRounds) => None,
        () if any(Speed::NotAlone) || any(Speed::CpuTime) => Some(UndecidedReason::NotAlone),
        () => Some(UndecidedReason::NoFullSpeed),
    }
}

/// One side of a pair.
struct SideCost {
    cost: GroupedCost,
    /// Of all its launches together; none of a published figure.
    rounds: Option<u32>,
    unfit: Option<UndecidedReason>,
    why: Option<NotQuotable>,
}

/// The mean of the launches that count, or the cost as published.
fn side(values: &CaseFigure, launch_scatter: f64) -> Option<SideCost> {
    let launches = match values {
        CaseFigure::Published(cost) => {
            let cost = cost.is_finite().then(|| GroupedCost::exact(*cost))?;
            return Some(SideCost { cost, rounds: None, unfit: None, why: None });
        }
        CaseFigure::Measured(launches) => launches,
    };
    let (estimates, are_whole) = values.counted_estimates();
    let count = estimates.len() as f64;
    let costs: Vec<f64> = estimates.iter().map(|estimate| estimate.value).collect();
    let squares: Option<f64> = estimates.iter().map(|e| Some(e.standard_error?.powi(2))).sum();
    let cost = GroupedCost {
        // A sample of no hops, which only a damaged run file has, has no cost of one.
        value: mean(&costs).filter(|cost| cost.is_finite())?,
        groups: u32::try_from(estimates.len()).ok(),
        all_groups: u32::try_from(launches.len()).ok()?,
        variance: squares.map(|squares| squares / (count * count)),
    };
    Some(SideCost {
        cost,
        rounds: Some(estimates.iter().map(|of| of.rounds).fold(0, u32::saturating_add)),
        unfit: unfit(&estimates, are_whole),
        why: values.mean_estimate(launch_scatter)?.quote_cost().err(),
    })
}
