//! What a switch costs, and ranges of costs and shares.

use rundata::words::two_digits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A range.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Range {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// Upper end over lower end up to which a range is an answer.
const WIDEST: f64 = 10.0;

impl Range {
    /// Each end changed alike.
    pub fn map(self, of: impl Fn(f64) -> f64) -> Self {
        Self { low: of(self.low), high: of(self.high) }
    }

    /// Whether it is too wide to be quoted: from zero, or over tenfold.
    pub fn is_wide(self) -> bool {
        self.low <= 0.0 || self.high > WIDEST * self.low
    }

    /// What is left beside a part of it, from 0 on.
    pub fn beside(self, part: Self) -> Self {
        Self { low: self.low - part.high, high: self.high - part.low }.map(|end| end.max(0.0))
    }
}

/// Cost of the switch itself in ns, by its kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Direct {
    /// Of a ring of two by a pipe.
    pub pipe: Range,
    /// Of rings by sched_yield, where they were measured.
    pub yields: Option<Range>,
}

/// A program's yields are cheaper than a ring's, whose members each read a byte too, by no more
/// than this.
pub const CHEAPER: f64 = 1.3;

impl Direct {
    /// Of switches of which this share, from 0 to 1, is involuntary (a yield is).
    pub fn at(self, involuntary_share: f64) -> Range {
        let Self { pipe, yields: Some(yields) } = self else { return self.pipe };
        let any = pipe.high.max(yields.high);
        Range {
            low: (yields.low / CHEAPER).min(pipe.low),
            high: involuntary_share * yields.high + (1.0 - involuntary_share) * any,
        }
    }
}

/// What a switch of a program costs, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Price {
    /// The switch itself.
    pub direct: Option<Direct>,
    /// With what refilling caches takes, where the working set is known.
    pub total: Option<Range>,
}

/// `1.2 to 2.1 %`, two digits; `at least 15 %` where the upper end is the whole, which says nothing.
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
