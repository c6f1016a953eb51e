//! Prices of a switch for who knows only how often there is one: a dashboard with the kernel's
//! counters, which say nothing of working sets.

use super::price::Range;
use super::profile::ProfilePoint;
use super::refill::{RefillLimit, direct_of};

/// The least and the most that a switch costs, by what its counter says of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatePrices {
    /// Cost in ns of a voluntary switch itself, at least 0.
    pub voluntary: Range,
    /// Cost in ns of an involuntary switch itself, at least 0.
    pub involuntary: Range,
    /// The most that refilling caches adds; absent where no working set was measured.
    pub refill: Option<RefillLimit>,
    /// Whether the costs are of too few rounds for an interval: upper estimates. Then the least costs
    /// mean nothing.
    pub is_rough: bool,
}

impl RatePrices {
    /// Returns the prices of a profile; absent without the cost of a switch between two processes.
    pub fn from_points(points: &[ProfilePoint]) -> Option<Self> {
        let direct = direct_of(points, None)?;
        Some(Self {
            voluntary: direct.at(0.0).map(|ns| ns.max(0.0)),
            involuntary: direct.at(1.0).map(|ns| ns.max(0.0)),
            refill: RefillLimit::from_points(points),
            is_rough: false,
        })
    }

    /// Returns the prices of a profile of upper estimates ([`rough_points_of`](super::rough_points_of)).
    pub fn from_rough_points(points: &[ProfilePoint]) -> Option<Self> {
        Some(Self { is_rough: true, ..Self::from_points(points)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::profile::Cost;

    fn point(total: Cost, direct: Option<Cost>) -> ProfilePoint {
        ProfilePoint {
            array_bytes: 64 << 10,
            total,
            direct,
            hop_ns: Some(10_000.0),
            members: 2,
            ..ProfilePoint::default()
        }
    }

    #[test]
    fn prices_are_by_kind_and_never_below_zero() {
        let direct = Cost { low_ns: 1000.0, high_ns: 1100.0 };
        let yields = Cost { low_ns: 650.0, high_ns: 700.0 };
        let walked = point(Cost { low_ns: 3000.0, high_ns: 4000.0 }, Some(direct));
        let yielding = ProfilePoint { yields: true, total: yields, ..point(yields, None) };
        let prices = RatePrices::from_points(&[walked, yielding]).unwrap();
        assert_eq!(prices.voluntary, Range { low: 500.0, high: 1100.0 });
        assert_eq!(prices.involuntary, Range { low: 500.0, high: 700.0 });
        assert!(prices.refill.unwrap().most_ns >= 3000.0);
        // Not resolved from zero.
        let noisy = point(walked.total, Some(Cost { low_ns: -200.0, high_ns: 900.0 }));
        let prices = RatePrices::from_points(&[noisy]).unwrap();
        assert_eq!(prices.voluntary, Range { low: 0.0, high: 900.0 });
        assert_eq!(RatePrices::from_points(&[yielding]), None);
    }
}
