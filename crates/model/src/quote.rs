//! The one gate: which figures a sentence, a table's value, a chart's point, a ranking, a law, a
//! comparison, a profile or an export's estimate may use, and the words for those that may not be
//! used.

use std::fmt;

use crate::estimate::{Estimate, Speed};
use crate::words::{four_digits, three_digits, time, time_unit, whole};

/// A figure that holds: it has an interval that excludes zero, and was measured at full speed with
/// nobody else on the CPU, or where nobody can look at the speed. There is no other way to one than
/// [`Estimate::quote`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quoted {
    value: f64,
    low: f64,
    high: f64,
    standard_error: Option<f64>,
}

/// Intervals narrower than this share of their value are told with four digits.
const FINE: f64 = 0.01;

impl Quoted {
    /// The figure, in the unit of its estimate.
    pub fn value(&self) -> f64 {
        self.value
    }

    /// Lower end of its interval.
    pub fn low(&self) -> f64 {
        self.low
    }

    /// Upper end of its interval.
    pub fn high(&self) -> f64 {
        self.high
    }

    /// Whether the difference from another of the same run is resolved (95 %): its scatter between
    /// launches is in both.
    pub fn differs_from(&self, other: &Self) -> bool {
        let errors = self.standard_error.zip(other.standard_error);
        errors.is_some_and(|(a, b)| (self.value - other.value).abs() > 1.96 * a.hypot(b))
    }

    /// Standard error within the run, without the scatter between launches; none of a sum.
    pub fn standard_error(&self) -> Option<f64> {
        self.standard_error
    }
}

/// Why a figure may not be quoted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NotQuotable {
    /// Other tasks ran on its CPU in most slices, or had turns near them.
    NotAlone,
    /// Too few slices were at the CPU's full speed.
    NotAtFullSpeed,
    /// So many rounds are too few for an interval.
    TooFewRounds(u32),
    /// The interval, from one end to the other, does not exclude what would make the figure
    /// meaningless: zero, and of a cost all that is below.
    NotResolved {
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
    },
}

impl Estimate {
    /// The figure, if it may be quoted. Signed: what it is a difference of decides whether less
    /// than nothing means anything; of a cost it does not ([`Self::quote_cost`]).
    pub fn quote(&self) -> Result<Quoted, NotQuotable> {
        self.quote_if(|of| (of.low > 0.0 && of.value > 0.0) || (of.high < 0.0 && of.value < 0.0))
    }

    /// The same of a cost, which cannot be below zero: an interval that is says that it was not
    /// measured.
    pub fn quote_cost(&self) -> Result<Quoted, NotQuotable> {
        self.quote_if(|of| of.low > 0.0 && of.value > 0.0)
    }

    /// The same of what was counted, as a rate or a share: nothing is an answer, too.
    pub fn quote_count(&self) -> Result<Quoted, NotQuotable> {
        self.quote_if(|of| of.low >= 0.0 && of.value >= 0.0)
    }

    fn quote_if(&self, holds: impl Fn(&Quoted) -> bool) -> Result<Quoted, NotQuotable> {
        let known = match self.speed {
            Speed::NotAlone => return Err(NotQuotable::NotAlone),
            Speed::Contended => return Err(NotQuotable::NotAtFullSpeed),
            Speed::Full | Speed::NotJudged => self.low.zip(self.high),
        };
        let (low, high) = known.ok_or(NotQuotable::TooFewRounds(self.rounds))?;
        let quoted = Quoted { value: self.value, low, high, standard_error: self.standard_error };
        let is_finite = [self.value, low, high].iter().all(|end| end.is_finite());
        match is_finite && holds(&quoted) {
            true => Ok(quoted),
            false => Err(NotQuotable::NotResolved { low, high }),
        }
    }

    /// The sum of costs: value and interval are the sums of theirs, whatever the parts have in
    /// common. Why not, where one of them may not be quoted.
    pub fn sum(parts: &[Self]) -> Result<Self, NotQuotable> {
        let quoted: Vec<Quoted> = parts.iter().map(Self::quote_cost).collect::<Result<_, _>>()?;
        let first = parts.first().ok_or(NotQuotable::TooFewRounds(0))?;
        let sum = |of: fn(&Quoted) -> f64| quoted.iter().map(of).sum::<f64>();
        let is_full = parts.iter().all(|part| part.speed == Speed::Full);
        let rounds = parts.iter().map(|part| part.rounds).min().unwrap_or_default();
        Ok(first.with(sum(Quoted::value), [sum(Quoted::low), sum(Quoted::high)], rounds, is_full))
    }

    /// What is left of a cost above another: measured apart, so that both intervals count in full.
    pub fn above(&self, other: &Self) -> Result<Self, NotQuotable> {
        let (own, less) = (self.quote_cost()?, other.quote_cost()?);
        let is_full = [self.speed, other.speed] == [Speed::Full; 2];
        let ends = [own.low - less.high, own.high - less.low];
        Ok(self.with(own.value - less.value, ends, self.rounds.min(other.rounds), is_full))
    }

    fn with(&self, value: f64, [low, high]: [f64; 2], rounds: u32, is_full: bool) -> Self {
        Self {
            value,
            standard_error: None,
            low: Some(low),
            high: Some(high),
            resolved: low > 0.0 || high < 0.0,
            rounds,
            speed: if is_full { Speed::Full } else { Speed::NotJudged },
            ..*self
        }
    }
}

impl Quoted {
    fn is_fine(&self) -> bool {
        let width = self.high - self.low;
        width > 0.0 && width < FINE * self.value.abs()
    }

    /// A count without its interval: `5,470`, with a fourth digit where it is known that well.
    pub fn whole(&self) -> String {
        let digits = if self.is_fine() { four_digits } else { three_digits };
        whole(digits(self.value).parse().unwrap_or(self.value))
    }

    /// A time in nanoseconds with its interval, all in one unit: `1.54 us (1.52 to 1.57)`. With
    /// four digits where it is known that well: `1.483 us (1.478 to 1.488)`.
    pub fn time(&self) -> String {
        let (scale, unit) = time_unit(self.value);
        let digits = if self.is_fine() { four_digits } else { three_digits };
        let [value, low, high] = [self.value, self.low, self.high].map(|ns| digits(ns / scale));
        format!("{value} {unit} ({low} to {high})")
    }
}

/// A cost in nanoseconds with its interval, or why there is none to tell: `1.54 us (1.52 to 1.57)`.
pub fn cost(estimate: &Estimate) -> String {
    estimate.quote_cost().map_or_else(|why| why.of_time(), |cost| cost.time())
}

/// The same without the interval: `1.54 us`.
pub fn brief_cost(estimate: &Estimate) -> String {
    estimate.quote_cost().map_or_else(|why| why.of_time(), |cost| time(cost.value))
}

/// A difference of times in nanoseconds, which may be below zero, with its interval or why there is
/// none to tell.
pub fn difference(estimate: &Estimate) -> String {
    estimate.quote().map_or_else(|why| why.of_time(), |difference| difference.time())
}

impl NotQuotable {
    /// In words, of a time in nanoseconds: `not resolved: -900 to 200 ns`.
    pub fn of_time(&self) -> String {
        let Self::NotResolved { low, high } = *self else { return self.to_string() };
        let (scale, unit) = time_unit(if low.abs() > high.abs() { low } else { high });
        Self::NotResolved { low: low / scale, high: high / scale }.of(unit)
    }

    /// In words, of what has this unit: `not resolved: -0.4 to 1.2 %`.
    pub fn of(&self, unit: &str) -> String {
        match self {
            Self::NotResolved { .. } => format!("{self} {unit}"),
            _ => self.to_string(),
        }
    }
}

/// Where the unit stands elsewhere or there is none.
impl fmt::Display for NotQuotable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAlone => f.write_str("other tasks ran on its CPU"),
            Self::NotAtFullSpeed => f.write_str("full speed not seen"),
            Self::TooFewRounds(1) => f.write_str("1 round only"),
            Self::TooFewRounds(rounds) => write!(f, "{rounds} rounds only"),
            Self::NotResolved { low, high } => {
                write!(f, "not resolved: {} to {}", three_digits(*low), three_digits(*high))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(value: f64, standard_error: f64) -> Estimate {
        Estimate::at_full_speed(value, standard_error, 20, 0.01, 0.95).unwrap()
    }

    #[test]
    fn what_holds_is_quoted_with_its_interval() {
        let quoted = measured(1000.0, 10.0).quote().unwrap();
        assert_eq!((quoted.value(), quoted.standard_error()), (1000.0, Some(10.0)));
        assert_eq!(quoted.time(), "1.00 us (0.971 to 1.03)");
        assert_eq!(measured(1483.1, 0.1).quote().unwrap().time(), "1.48 us (1.45 to 1.51)");
        let fine = Estimate::at_full_speed(1483.1, 1.5, 20, 0.001, 0.95).unwrap();
        assert_eq!(fine.quote().unwrap().time(), "1.483 us (1.479 to 1.487)");
        let cycles = |of: Estimate| of.scaled(3.69).unwrap().quote().unwrap().whole();
        assert_eq!((cycles(measured(1483.1, 0.1)), cycles(fine)), ("5,470".into(), "5,473".into()));
        assert!(quoted.low() < 1000.0 && quoted.high() > 1000.0, "{quoted:?}");
        assert_eq!(measured(1000.0, 10.0).quote_cost(), Ok(quoted));
    }

    #[test]
    fn what_does_not_hold_says_why_in_the_same_words() {
        let words = |estimate: &Estimate| estimate.quote_cost().unwrap_err().of_time();
        assert_eq!(words(&measured(-350.0, 250.0)), "not resolved: -873 to 173 ns");
        assert_eq!(words(&Estimate::contended(&[1.0], 0.95).unwrap()), "full speed not seen");
        let not_alone = Estimate { speed: Speed::NotAlone, ..measured(1000.0, 10.0) };
        assert_eq!(words(&not_alone), "other tasks ran on its CPU");
        let over = |figures: &[f64]| Estimate::over(figures, 5, 0.95, 1).unwrap();
        assert_eq!(words(&over(&[1.0])), "1 round only");
        assert_eq!(words(&over(&[1.0, 2.0])), "2 rounds only");
        // What nobody can look at the speed of is quoted all the same.
        assert!(over(&[5.0, 5.1, 5.2, 5.3, 5.4]).quote().is_ok());
    }

    #[test]
    fn less_than_nothing_is_a_difference_and_no_cost() {
        let below = measured(-1000.0, 10.0);
        assert!(below.quote().is_ok());
        let why = below.quote_cost().unwrap_err();
        assert!(why.of_time().starts_with("not resolved: -1.0"), "{}", why.of_time());
    }

    #[test]
    fn nothing_is_an_answer_of_what_is_counted_only() {
        let none = Estimate::over(&[0.0; 6], 5, 0.95, 1).unwrap();
        assert_eq!(none.quote_count().map(|of| of.value()), Ok(0.0));
        let words = none.quote_cost().unwrap_err().of("%");
        assert_eq!(words, "not resolved: 0 to 0 %");
        let endless = Estimate { value: f64::INFINITY, ..measured(1000.0, 10.0) };
        assert!(endless.quote().is_err() && endless.quote_count().is_err());
    }

    #[test]
    fn a_sum_is_the_sum_of_its_parts_or_there_is_none() {
        let (one, other) = (measured(1000.0, 10.0), measured(300.0, 20.0));
        let parts = [one, other].map(|part| part.quote_cost().unwrap());
        let sum = Estimate::sum(&[one, other]).unwrap().quote_cost().unwrap();
        assert_eq!(sum.value(), 1300.0);
        assert_eq!(sum.low(), parts[0].low() + parts[1].low());
        assert_eq!(sum.high(), parts[0].high() + parts[1].high());
        let rest = one.above(&other).unwrap().quote().unwrap();
        assert_eq!((rest.value(), rest.low()), (700.0, parts[0].low() - parts[1].high()));
        let open = measured(-350.0, 250.0);
        let why = open.quote_cost().unwrap_err();
        assert_eq!(Estimate::sum(&[one, open]), Err(why));
        assert_eq!((one.above(&open), open.above(&one)), (Err(why), Err(why)));
    }
}
