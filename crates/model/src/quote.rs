//! The one gate: which figures a sentence, a table's value, a chart's point, a ranking, a law, a comparison, a profile
//! or an export's estimate may use, and the words for those that may not be used.

use std::fmt;

use crate::estimate::{Estimate, Speed};
use crate::words::{three_digits, time_unit};

/// A figure that holds: it has an interval that excludes zero, and was measured at full speed with nobody else on the
/// CPU, or where nobody can look at the speed. There is no other way to one than [`Estimate::quote`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quoted {
    value: f64,
    low: f64,
    high: f64,
    standard_error: f64,
}

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

    /// Standard error within the run, without the scatter between launches.
    pub fn standard_error(&self) -> f64 {
        self.standard_error
    }
}

/// Why a figure may not be quoted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NotQuotable {
    /// Other tasks ran on its CPU nearly all the time.
    NotAlone,
    /// Too few slices were at the CPU's full speed.
    NotAtFullSpeed,
    /// So many rounds are too few for an interval.
    TooFewRounds(u32),
    /// The interval, from one end to the other, does not exclude what would make the figure meaningless: zero, and of
    /// a cost all that is below.
    NotResolved {
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
    },
}

impl Estimate {
    /// The figure, if it may be quoted. Signed: what it is a difference of decides whether less than nothing means
    /// anything; of a cost it does not ([`Self::quote_cost`]).
    pub fn quote(&self) -> Result<Quoted, NotQuotable> {
        match (self.speed, self.low.zip(self.high).zip(self.standard_error)) {
            (Speed::NotAlone, _) => Err(NotQuotable::NotAlone),
            (Speed::Contended, _) => Err(NotQuotable::NotAtFullSpeed),
            (_, None) => Err(NotQuotable::TooFewRounds(self.rounds)),
            (_, Some(((low, high), standard_error))) => match low > 0.0 || high < 0.0 {
                true => Ok(Quoted { value: self.value, low, high, standard_error }),
                false => Err(NotQuotable::NotResolved { low, high }),
            },
        }
    }

    /// The same of a cost, which cannot be below zero: an interval that is says that it was not measured.
    pub fn quote_cost(&self) -> Result<Quoted, NotQuotable> {
        let Quoted { low, high, .. } = self.quote()?;
        if low > 0.0 { self.quote() } else { Err(NotQuotable::NotResolved { low, high }) }
    }
}

impl NotQuotable {
    /// In words, of a time in nanoseconds: `not resolved: -900 to 200 ns`.
    pub fn of_time(&self) -> String {
        let Self::NotResolved { low, high } = *self else { return self.to_string() };
        let (scale, unit) = time_unit(if low.abs() > high.abs() { low } else { high });
        format!(
            "not resolved: {} to {} {unit}",
            three_digits(low / scale),
            three_digits(high / scale)
        )
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
        assert_eq!((quoted.value(), quoted.standard_error()), (1000.0, 10.0));
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
}
