//! The gate that every printed number passes: which estimates may be quoted, and why others may not.
//!
//! Laws, rankings, comparisons, profiles and exports use quotable estimates only ([`QuotedFigure`]):
//! measured at full speed, or where the speed cannot be checked, with an interval that excludes
//! zero. People are shown the best that is known ([`BestEstimate`]), marked where it is not quotable.
//! Examples of the cost of a switch, in nanoseconds:
//!
//! - 1,000 (971 to 1,029) at full speed: quotable, `1.00 us (0.971 to 1.03)`.
//! - -350 (-873 to 173): a difference that includes zero, `not resolved: -873 to 173 ns`.
//! - 2,010 (1,230 to 7,530,000): the interval is wider than tenfold, not resolved either.
//! - 2,000 (1,700 to 2,300) on a shared core: shown as `~2.00 us (1.70 to 2.30, core shared)`.
//! - 1,230 in one round: shown as `~1.23 us (1 round)`, without an interval.

use std::fmt;

use rundata::words::{four_digits, three_digits, time, time_unit, whole};

use crate::estimate::{Estimate, Speed};
use crate::marked;
use crate::marked::MarkedText;

/// A quotable estimate: its interval excludes zero, and it was measured at full speed, or where the
/// speed cannot be checked. Only [`Estimate::quote`] and its variants build one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuotedFigure {
    value: f64,
    low: f64,
    high: f64,
    standard_error: Option<f64>,
}

/// Width of an interval over its value below which four digits are printed.
const FINE_WIDTH: f64 = 0.01;

impl QuotedFigure {
    /// Returns the value, in the unit of its estimate.
    pub fn value(&self) -> f64 {
        self.value
    }

    /// Returns the lower end of the interval.
    pub fn low(&self) -> f64 {
        self.low
    }

    /// Returns the upper end of the interval.
    pub fn high(&self) -> f64 {
        self.high
    }

    /// Returns whether the difference from another estimate of the same run is resolved (95 %). The
    /// variation between launches is in both, and is left out.
    pub fn differs_from(&self, other: &Self) -> bool {
        match (self.standard_error, other.standard_error) {
            (Some(a), Some(b)) => (self.value - other.value).abs() > 1.96 * a.hypot(b),
            _ => false,
        }
    }

    /// Returns the standard error within the run, without the variation between launches; absent for
    /// a sum.
    pub fn standard_error(&self) -> Option<f64> {
        self.standard_error
    }
}

/// The reason why an estimate is not quotable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NotQuotable {
    /// Competing tasks ran in most slices, or near them.
    NotAlone,
    /// Too few slices were at the CPU's full speed.
    NotAtFullSpeed,
    /// The rounds, counted here, are too few for an interval.
    TooFewRounds(u32),
    /// The interval includes values that are not a result: zero, and for a cost all below it.
    NotResolved {
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
    },
}

impl Estimate {
    /// Returns a difference, if it is quotable. It may be below zero; a cost may not
    /// ([`Self::quote_cost`]).
    pub fn quote(&self) -> Result<QuotedFigure, NotQuotable> {
        self.quote_if(|figure| {
            (figure.low > 0.0 && figure.value > 0.0) || (figure.high < 0.0 && figure.value < 0.0)
        })
    }

    /// Returns a cost, if it is quotable. A cost is above zero: an interval that reaches below is
    /// not resolved, and so is one that is too wide.
    pub fn quote_cost(&self) -> Result<QuotedFigure, NotQuotable> {
        self.quote_if(|figure| {
            let is_positive = figure.low > 0.0 && figure.value > 0.0;
            is_positive && !is_too_wide(figure.value, figure.low, figure.high)
        })
    }

    /// Returns a count, rate or share, if it is quotable. Zero is a result, too.
    pub fn quote_count(&self) -> Result<QuotedFigure, NotQuotable> {
        self.quote_if(|figure| figure.low >= 0.0 && figure.value >= 0.0)
    }

    fn quote_if(&self, holds: impl Fn(&QuotedFigure) -> bool) -> Result<QuotedFigure, NotQuotable> {
        match self.speed {
            Speed::NotAlone | Speed::CpuTime => return Err(NotQuotable::NotAlone),
            Speed::Contended => return Err(NotQuotable::NotAtFullSpeed),
            Speed::Full | Speed::FewRounds | Speed::NotJudged => {}
        }
        let (Some(low), Some(high)) = (self.low, self.high) else {
            return Err(NotQuotable::TooFewRounds(self.rounds));
        };
        let quoted =
            QuotedFigure { value: self.value, low, high, standard_error: self.standard_error };
        let is_finite = [self.value, low, high].iter().all(|end| end.is_finite());
        if is_finite && holds(&quoted) {
            Ok(quoted)
        } else {
            Err(NotQuotable::NotResolved { low, high })
        }
    }

    /// Returns the sum of costs. The ends of its interval are the sums of theirs, so that it holds
    /// whatever the parts have in common. An error if one of them is not quotable.
    pub fn sum(parts: &[Self]) -> Result<Self, NotQuotable> {
        let first = parts.first().ok_or(NotQuotable::TooFewRounds(0))?;
        let (mut value, mut low, mut high) = (0.0, 0.0, 0.0);
        let (mut speed, mut rounds) = (Speed::Full, first.rounds);
        for part in parts {
            let quoted = part.quote_cost()?;
            value += quoted.value;
            low += quoted.low;
            high += quoted.high;
            speed = combined_speed(speed, part.speed);
            rounds = rounds.min(part.rounds);
        }
        Ok(first.replaced_by(value, [low, high], rounds, speed))
    }

    /// Returns this cost less another one. The two were measured apart, so that both intervals count
    /// in full. An error if one of them is not quotable.
    pub fn above(&self, other: &Self) -> Result<Self, NotQuotable> {
        let (upper, lower) = (self.quote_cost()?, other.quote_cost()?);
        let speed = combined_speed(self.speed, other.speed);
        let ends = [upper.low - lower.high, upper.high - lower.low];
        let rounds = self.rounds.min(other.rounds);
        Ok(self.replaced_by(upper.value - lower.value, ends, rounds, speed))
    }

    /// Returns another value with its interval at the same confidence.
    fn replaced_by(&self, value: f64, [low, high]: [f64; 2], rounds: u32, speed: Speed) -> Self {
        Self {
            value,
            standard_error: None,
            low: Some(low),
            high: Some(high),
            resolved: low > 0.0 || high < 0.0,
            rounds,
            speed,
            at_most: None,
            ..*self
        }
    }

    /// Returns the best that is known of a difference, signed and quotable or not; an error if
    /// nothing is known.
    pub fn answer(&self) -> Result<BestEstimate, NotQuotable> {
        self.answer_if(|low, high| low > 0.0 || high < 0.0)
    }

    /// Like [`Self::answer`], for a cost: it cannot be below zero.
    pub fn answer_cost(&self) -> Result<BestEstimate, NotQuotable> {
        self.answer_if(|low, high| low > 0.0 && !is_too_wide(self.value, low, high))
    }

    /// Like [`Self::answer`], for a count, rate or share: zero is a result, too.
    pub fn answer_count(&self) -> Result<BestEstimate, NotQuotable> {
        self.answer_if(|low, _| low >= 0.0)
    }

    fn answer_if(&self, holds: impl Fn(f64, f64) -> bool) -> Result<BestEstimate, NotQuotable> {
        let ends = match (self.low, self.high, self.speed) {
            (Some(low), Some(high), _) => Some((low, high)),
            (_, _, Speed::Contended) => return Err(NotQuotable::NotAtFullSpeed),
            (_, _, Speed::NotAlone | Speed::CpuTime) => return Err(NotQuotable::NotAlone),
            _ => None,
        };
        let (low, high) = ends.unwrap_or((self.value, self.value));
        let is_finite = [self.value, low, high].iter().all(|end| end.is_finite());
        if !is_finite || !holds(low, high) || !holds(self.value, self.value) {
            return Err(match ends {
                Some((low, high)) => NotQuotable::NotResolved { low, high },
                None => NotQuotable::TooFewRounds(self.rounds),
            });
        }
        let Self { value, speed, rounds, at_most, .. } = *self;
        Ok(BestEstimate { value, ends, speed, rounds, at_most })
    }
}

/// Largest factor between the value of a cost and an end of its interval.
const MAX_FACTOR: f64 = 10.0;

/// Returns whether the interval of a cost is too wide for a figure: `2.01 us (1.23 to 7530)`.
fn is_too_wide(value: f64, low: f64, high: f64) -> bool {
    high > MAX_FACTOR * value || value > MAX_FACTOR * low
}

/// Returns the speed of a figure made of two: full where both are, few rounds where one is of few
/// rounds.
fn combined_speed(one: Speed, other: Speed) -> Speed {
    match (one, other) {
        (Speed::Full, Speed::Full) => Speed::Full,
        (one, other) if one.is_full() && other.is_full() => Speed::FewRounds,
        _ => Speed::NotJudged,
    }
}

/// The best that is known of a figure, and how it was measured. It is shown to people; comparisons,
/// laws, rankings and verdicts use [`QuotedFigure`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BestEstimate {
    value: f64,
    ends: Option<(f64, f64)>,
    speed: Speed,
    rounds: u32,
    at_most: Option<f64>,
}

impl BestEstimate {
    /// Returns the value, in the unit of its estimate.
    pub fn value(&self) -> f64 {
        self.value
    }

    /// Returns the interval; absent with too few rounds where the speed cannot be checked.
    pub fn ends(&self) -> Option<(f64, f64)> {
        self.ends
    }

    /// Returns whether the estimate is of the core as it was, or has no interval: it is marked, and
    /// not quotable.
    pub fn is_rough(&self) -> bool {
        self.speed.is_as_it_was() || self.ends.is_none()
    }

    /// Returns the mark before a figure that is not quotable; empty for others.
    pub fn mark(&self) -> &'static str {
        if self.is_rough() { ROUGH_MARK } else { "" }
    }

    /// Returns how the estimate was measured, if not at full speed: `core shared`.
    pub fn kind(&self) -> &'static str {
        match self.speed {
            Speed::Contended => "core shared",
            Speed::NotAlone => "CPU shared",
            Speed::CpuTime => "by CPU time",
            Speed::Full | Speed::FewRounds | Speed::NotJudged => "",
        }
    }

    /// Returns the number of rounds, where they are few: `full speed in 3 rounds`, or `2 rounds`
    /// where the speed cannot be checked.
    pub fn few_rounds(&self) -> Option<String> {
        let plural = if self.rounds == 1 { "" } else { "s" };
        if self.speed == Speed::FewRounds {
            Some(format!("full speed in {} round{plural}", self.rounds))
        } else if self.ends.is_none() {
            Some(format!("{} round{plural}", self.rounds))
        } else {
            None
        }
    }

    /// Returns whether the estimate is of CPU time.
    pub fn is_by_cpu_time(&self) -> bool {
        self.speed == Speed::CpuTime
    }

    /// Returns whether competing tasks were there all the time.
    pub fn is_beside_others(&self) -> bool {
        matches!(self.speed, Speed::NotAlone | Speed::CpuTime)
    }

    /// Returns the upper bound of the figure at full speed, where that was not seen and the bound is
    /// well below the value.
    pub fn bound(&self) -> Option<f64> {
        let bound = self.at_most?;
        let is_below = bound < MAX_BOUND * self.value;
        if is_below && self.speed.is_as_it_was() { Some(bound) } else { None }
    }

    /// Returns the time in nanoseconds with its interval and kind: `~2.03 us (1.75 to 2.27, core
    /// shared)`.
    pub fn time(&self) -> String {
        self.marked_time().into()
    }

    /// Like [`Self::time`], with its figure marked.
    pub fn marked_time(&self) -> MarkedText {
        self.describe_time(None)
    }

    /// Returns the time without interval and kind: `~2.03 us`.
    pub fn brief_time(&self) -> String {
        format!("{}{}", self.mark(), time(self.value))
    }

    /// Returns the time and its bound at full speed, if there is one: `~2.03 us (1.75 to 2.27, core
    /// shared; at full speed at most 1.9)`.
    pub fn time_and_bound(&self) -> String {
        self.marked_time_and_bound().into()
    }

    /// Like [`Self::time_and_bound`], with its figure marked.
    pub fn marked_time_and_bound(&self) -> MarkedText {
        self.describe_time(self.bound())
    }

    /// Returns a figure that is no time, with its interval and kind: `3.12 times (2.98 to 3.25)`.
    pub fn marked_with_unit(&self, unit: &str) -> MarkedText {
        self.describe(1.0, unit, None)
    }

    fn describe_time(&self, bound: Option<f64>) -> MarkedText {
        let (scale, unit) = time_unit(self.value);
        self.describe(scale, unit, bound)
    }

    /// Describes the figure in a unit of this size.
    fn describe(&self, scale: f64, unit: &str, bound: Option<f64>) -> MarkedText {
        let digits = match self.ends {
            Some((low, high)) if is_fine(self.value, low, high) => four_digits,
            _ => three_digits,
        };
        let mut details = Vec::new();
        if let Some((low, high)) = self.ends {
            details.push(format!("{} to {}", digits(low / scale), digits(high / scale)));
        }
        details.extend(self.few_rounds());
        if !self.kind().is_empty() {
            details.push(self.kind().to_string());
        }
        let mut details = details.join(", ");
        if let Some(most) = bound {
            details += &format!("; at full speed at most {}", digits(most / scale));
        }
        let value = digits(self.value / scale);
        let figure = MarkedText::figure(format!("{}{value} {unit}", self.mark()));
        if details.is_empty() { figure } else { marked![figure, format!(" ({details})")] }
    }
}

/// Largest bound over the value that is printed: a larger one says no more than the value.
const MAX_BOUND: f64 = 0.97;

/// The mark of a figure that is not quotable.
pub const ROUGH_MARK: &str = "~";

fn is_fine(value: f64, low: f64, high: f64) -> bool {
    let width = high - low;
    width > 0.0 && width < FINE_WIDTH * value.abs()
}

impl QuotedFigure {
    fn is_fine(&self) -> bool {
        is_fine(self.value, self.low, self.high)
    }

    /// Returns a count without its interval: `5,470`, with a fourth digit where it is known that
    /// well.
    pub fn whole(&self) -> String {
        let digits = if self.is_fine() { four_digits } else { three_digits };
        whole(digits(self.value).parse().unwrap_or(self.value))
    }

    /// Returns a time in nanoseconds with its interval, all in one unit: `1.54 us (1.52 to 1.57)`.
    /// With four digits where it is known that well: `1.483 us (1.478 to 1.488)`.
    pub fn time(&self) -> String {
        self.marked_time().into()
    }

    /// Like [`Self::time`], with its figure marked.
    pub fn marked_time(&self) -> MarkedText {
        let (scale, unit) = time_unit(self.value);
        let digits = if self.is_fine() { four_digits } else { three_digits };
        let [value, low, high] = [self.value, self.low, self.high].map(|ns| digits(ns / scale));
        marked![MarkedText::figure(format!("{value} {unit}")), format!(" ({low} to {high})")]
    }
}

/// Returns a cost in nanoseconds with its interval and kind, `1.54 us (1.52 to 1.57)`, or why
/// nothing is known of it.
pub fn cost(estimate: &Estimate) -> String {
    match estimate.answer_cost() {
        Ok(cost) => cost.time(),
        Err(why) => why.with_time_unit(),
    }
}

/// Like [`cost`], with its figure marked.
pub fn marked_cost(estimate: &Estimate) -> MarkedText {
    match estimate.answer_cost() {
        Ok(cost) => cost.marked_time(),
        Err(why) => why.with_time_unit().into(),
    }
}

/// Like [`cost`] without the interval: `1.54 us`.
pub fn brief_cost(estimate: &Estimate) -> String {
    match estimate.answer_cost() {
        Ok(cost) => cost.brief_time(),
        Err(why) => why.with_time_unit(),
    }
}

/// Like [`cost`], for a difference of times, which may be below zero.
pub fn difference(estimate: &Estimate) -> String {
    match estimate.answer() {
        Ok(difference) => difference.time(),
        Err(why) => why.with_time_unit(),
    }
}

impl NotQuotable {
    /// Returns the reason without the figure itself: `not resolved`.
    pub fn reason(&self) -> String {
        match self {
            Self::NotAlone => "other tasks ran on its CPU".to_string(),
            Self::NotAtFullSpeed => "full speed not seen".to_string(),
            Self::TooFewRounds(1) => "1 round only".to_string(),
            Self::TooFewRounds(rounds) => format!("{rounds} rounds only"),
            Self::NotResolved { .. } => "not resolved".to_string(),
        }
    }

    /// Returns the reason for a time in nanoseconds: `not resolved: -900 to 200 ns`.
    pub fn with_time_unit(&self) -> String {
        let Self::NotResolved { low, high } = *self else { return self.to_string() };
        let (scale, unit) = time_unit(if low.abs() > high.abs() { low } else { high });
        Self::NotResolved { low: low / scale, high: high / scale }.with_unit(unit)
    }

    /// Returns the reason for a figure in this unit: `not resolved: -0.4 to 1.2 %`.
    pub fn with_unit(&self, unit: &str) -> String {
        match self {
            Self::NotResolved { .. } => format!("{self} {unit}"),
            _ => self.to_string(),
        }
    }
}

/// Formats the reason without a unit.
impl fmt::Display for NotQuotable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason())?;
        if let Self::NotResolved { low, high } = self {
            write!(f, ": {} to {}", three_digits(*low), three_digits(*high))?;
        }
        Ok(())
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
        let words = |estimate: &Estimate| estimate.quote_cost().unwrap_err().with_time_unit();
        assert_eq!(words(&measured(-350.0, 250.0)), "not resolved: -873 to 173 ns");
        let reason = measured(-350.0, 250.0).quote_cost().unwrap_err().reason();
        assert_eq!(reason, "not resolved");
        let shared = Estimate::as_it_was(&[2000.0; 6], None, 0.95, Speed::Contended).unwrap();
        assert_eq!(words(&shared), "full speed not seen");
        let not_alone = Estimate { speed: Speed::NotAlone, ..measured(1000.0, 10.0) };
        assert_eq!(words(&not_alone), "other tasks ran on its CPU");
        let over = |figures: &[f64]| Estimate::over(figures, 5, 0.95, 1).unwrap();
        assert_eq!(words(&over(&[1.0])), "1 round only");
        assert_eq!(words(&over(&[1.0, 2.0])), "2 rounds only");
        // What nobody can look at the speed of is quoted all the same.
        assert!(over(&[5.0, 5.1, 5.2, 5.3, 5.4]).quote().is_ok());
    }

    /// Each kind is told with its mark and its name, and has no more than its interval.
    #[test]
    fn the_best_that_is_known_is_told_with_its_kind() {
        let told = |estimate: &Estimate| estimate.answer_cost().map(|answer| answer.time());
        let shared = Estimate::as_it_was(&[2000.0; 6], None, 0.95, Speed::Contended).unwrap();
        let shared = Estimate { at_most: Some(1900.0), ..shared };
        let words = told(&shared).unwrap();
        assert!(words.starts_with("~2.00 us (1.7"), "{words}");
        assert!(words.ends_with(", core shared)"), "{words}");
        let words = shared.answer_cost().unwrap().time_and_bound();
        assert!(words.ends_with(", core shared; at full speed at most 1.90)"), "{words}");
        // A bound that says no more is left out.
        let close = Estimate { at_most: Some(1990.0), ..shared };
        assert_eq!(close.answer_cost().unwrap().bound(), None);
        let by_cpu = Estimate { speed: Speed::CpuTime, ..shared };
        assert!(told(&by_cpu).unwrap().ends_with(", by CPU time)"));
        let few = Estimate { speed: Speed::FewRounds, rounds: 3, ..measured(1483.1, 0.1) };
        assert_eq!(told(&few), Ok("1.48 us (1.45 to 1.51, full speed in 3 rounds)".to_string()));
        let wide = Estimate { low: Some(1_230.0), high: Some(7.53e6), ..measured(2010.0, 1.0) };
        let not_resolved = NotQuotable::NotResolved { low: 1_230.0, high: 7.53e6 };
        assert_eq!(told(&wide), Err(not_resolved));
        assert_eq!(wide.quote_cost(), Err(not_resolved));
        let one = Estimate::over(&[1234.0], 5, 0.95, 1).unwrap();
        assert_eq!(told(&one), Ok("~1.23 us (1 round)".to_string()));
        // What includes zero is an answer of its own, and what --strict leaves is a reason.
        assert!(told(&measured(-350.0, 250.0)).is_err());
        assert_eq!(told(&shared.strict()), Err(NotQuotable::NotAtFullSpeed));
        assert_eq!(told(&by_cpu.strict()), Err(NotQuotable::NotAlone));
        assert_eq!(told(&few.strict()), Err(NotQuotable::NotAtFullSpeed));
        assert_eq!(measured(1483.1, 0.1).strict(), measured(1483.1, 0.1));
    }

    #[test]
    fn less_than_nothing_is_a_difference_and_no_cost() {
        let below = measured(-1000.0, 10.0);
        assert!(below.quote().is_ok());
        let why = below.quote_cost().unwrap_err();
        assert!(why.with_time_unit().starts_with("not resolved: -1.0"), "{}", why.with_time_unit());
    }

    #[test]
    fn nothing_is_an_answer_of_what_is_counted_only() {
        let none = Estimate::over(&[0.0; 6], 5, 0.95, 1).unwrap();
        assert_eq!(none.quote_count().map(|of| of.value()), Ok(0.0));
        let words = none.quote_cost().unwrap_err().with_unit("%");
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
