//! The price of a switch, and ranges of costs and shares.

use rundata::words::two_digits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A range of costs or shares.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Range {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Largest upper end over lower end of a range that is quoted.
const MAX_WIDTH: f64 = 10.0;

impl Range {
    /// Returns the range with `change` applied to both ends.
    pub fn map(self, change: impl Fn(f64) -> f64) -> Self {
        Self { low: change(self.low), high: change(self.high) }
    }

    /// Returns whether it is too wide to be quoted: from zero or below, or over tenfold.
    pub fn is_wide(self) -> bool {
        self.low <= 0.0 || self.high > MAX_WIDTH * self.low
    }

    /// Returns the rest without a part of it, at least 0.
    pub fn beside(self, part: Self) -> Self {
        let low = (self.low - part.high).max(0.0);
        let high = (self.high - part.low).max(0.0);
        Self { low, high }
    }
}

/// Cost of the switch itself in ns, by its kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Direct {
    /// Cost in a ring of two by a pipe.
    pub pipe: Range,
    /// Cost in rings by sched_yield; absent where they were not measured.
    pub yields: Option<Range>,
}

/// Largest cost of a yield in a ring over that in a program: members of the ring also read a byte.
pub const MAX_YIELD_RATIO: f64 = 1.3;

impl Direct {
    /// Returns the mean cost of switches of which this share, from 0 to 1, is involuntary; a yield
    /// counts as one.
    pub fn at(self, involuntary_share: f64) -> Range {
        let Self { pipe, yields: Some(yields) } = self else { return self.pipe };
        let voluntary = pipe.high.max(yields.high);
        Range {
            low: (yields.low / MAX_YIELD_RATIO).min(pipe.low),
            high: involuntary_share * yields.high + (1.0 - involuntary_share) * voluntary,
        }
    }
}

/// Cost of a switch of a program in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Price {
    /// Cost of the switch itself.
    pub direct: Option<Direct>,
    /// Cost with the refill of caches; absent where the working set is not known.
    pub total: Option<Range>,
}

/// Returns a share as `1.2 to 2.1 %`, with two digits; as `at least 15 %` where the upper end is all,
/// which says nothing.
pub fn percents(share: Range) -> String {
    if share.low < 1.0 && share.high >= 1.0 {
        return format!("at least {} %", two_digits(100.0 * share.low));
    }
    match [share.low, share.high].map(|part| two_digits(100.0 * part)) {
        [low, high] if low == high => format!("{high} %"),
        [low, high] => format!("{low} to {high} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_over_tenfold_is_no_answer() {
        let is_wide = |low, high| Range { low, high }.is_wide();
        assert!(!is_wide(0.02, 0.2) && !is_wide(1.0, 1.0));
        assert!(is_wide(0.02, 0.21) && is_wide(0.0, 0.1) && is_wide(-0.1, 0.1));
    }

    #[test]
    fn an_upper_end_that_says_nothing_is_not_told() {
        let words = |low, high| percents(Range { low, high });
        assert_eq!(words(0.012, 0.021), "1.2 to 2.1 %");
        assert_eq!(words(0.15, 1.0), "at least 15 %");
        assert_eq!(words(0.15, 0.99), "15 to 99 %");
        assert_eq!(words(1.0, 1.0), "100 %");
    }

    #[test]
    fn a_switch_costs_what_its_kind_does() {
        let pipe = Range { low: 1000.0, high: 1100.0 };
        assert_eq!(Direct { pipe, yields: None }.at(1.0), pipe);
        let direct = Direct { pipe, yields: Some(Range { low: 650.0, high: 700.0 }) };
        assert_eq!(direct.at(0.0), Range { low: 500.0, high: 1100.0 });
        assert_eq!(direct.at(0.25), Range { low: 500.0, high: 1000.0 });
        assert_eq!(direct.at(1.0), Range { low: 500.0, high: 700.0 });
        // Where a yield is dearer than a hop by a pipe.
        let dear = Direct { pipe, yields: Some(Range { low: 2600.0, high: 3000.0 }) };
        assert_eq!(dear.at(0.0), Range { low: 1000.0, high: 3000.0 });
    }
}
