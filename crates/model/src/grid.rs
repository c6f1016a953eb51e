//! Lists of numbers as people type them: `2,4,8`, `2..64`, `2..64:4`, `2..20000:x2`.

use std::fmt;

/// A list that cannot be read, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GridError {
    /// The part of the list that cannot be read.
    pub item: String,
    /// What is wrong with it.
    pub why: String,
}

impl fmt::Display for GridError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}': {} (accepted: numbers and ranges such as 2,4,8 or 2..64 or 2..64:4 or 2..20000:x2)",
            self.item, self.why
        )
    }
}

impl std::error::Error for GridError {}

/// Longest list accepted: a typing error must not ask for a million cases.
pub const MOST_VALUES: usize = 10_000;

enum Step {
    Add(u64),
    Multiply(u64),
}

/// Reads a comma-separated list whose items are values or ranges `low..high`, `low..high:+step`
/// (or `:step`) and `low..high:xfactor`. Ranges include their end: a geometric range whose last
/// step would pass the end stops at the end itself. `value` reads one number, so that callers can
/// accept suffixes such as `64K`. The result is sorted and holds each value once.
pub fn parse(
    text: &str,
    value: impl Fn(&str) -> Result<u64, String>,
) -> Result<Vec<u64>, GridError> {
    let mut all = Vec::new();
    for item in text.split(',').map(str::trim) {
        let fail = |why: String| GridError { item: item.to_string(), why };
        match item.split_once("..") {
            None => all.push(value(item).map_err(fail)?),
            Some((low, rest)) => {
                let (high, step) = match rest.split_once(':') {
                    None => (rest, Step::Add(1)),
                    Some((high, step)) => (high, read_step(step, &value).map_err(fail)?),
                };
                let low = value(low).map_err(fail)?;
                let high = value(high).map_err(fail)?;
                expand(low, high, &step, &mut all).map_err(fail)?;
            }
        }
        if all.len() > MOST_VALUES {
            return Err(fail(format!("more than {MOST_VALUES} values")));
        }
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

fn read_step(text: &str, value: impl Fn(&str) -> Result<u64, String>) -> Result<Step, String> {
    if let Some(factor) = text.strip_prefix('x') {
        return match factor.parse::<u64>() {
            Ok(factor) if factor >= 2 => Ok(Step::Multiply(factor)),
            _ => Err(format!("the factor 'x{factor}' must be x2 or more")),
        };
    }
    match value(text.strip_prefix('+').unwrap_or(text))? {
        0 => Err("a step of 0 never arrives".to_string()),
        step => Ok(Step::Add(step)),
    }
}

fn expand(low: u64, high: u64, step: &Step, all: &mut Vec<u64>) -> Result<(), String> {
    if low > high {
        return Err(format!("the range starts at {low}, above its end {high}"));
    }
    if low == 0 && matches!(step, Step::Multiply(_)) {
        return Err("a geometric range cannot start at 0".to_string());
    }
    let mut next = Some(low);
    while let Some(current) = next.filter(|current| *current < high) {
        all.push(current);
        if all.len() > MOST_VALUES {
            return Err(format!("more than {MOST_VALUES} values"));
        }
        next = match step {
            Step::Add(step) => current.checked_add(*step),
            Step::Multiply(factor) => current.checked_mul(*factor),
        };
    }
    // The end belongs to the range when the steps meet it, and always to a geometric one: who asks
    // for 2..20000:x2 wants to see 20000.
    if next == Some(high) || matches!(step, Step::Multiply(_)) {
        all.push(high);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain(text: &str) -> Result<Vec<u64>, GridError> {
        parse(text, |t| t.parse::<u64>().map_err(|_| "not a whole number".to_string()))
    }

    #[test]
    fn lists_ranges_and_geometric_ranges() {
        assert_eq!(plain("2,4, 8,4").unwrap(), [2, 4, 8]);
        assert_eq!(plain("2..6").unwrap(), [2, 3, 4, 5, 6]);
        assert_eq!(plain("2..9:3").unwrap(), [2, 5, 8]);
        assert_eq!(plain("2..8:+3").unwrap(), [2, 5, 8]);
        assert_eq!(plain("2..20:x2").unwrap(), [2, 4, 8, 16, 20]);
        assert_eq!(plain("7..7").unwrap(), [7]);
        assert_eq!(plain("1,10..1000:x10").unwrap(), [1, 10, 100, 1000]);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (text, item) in [
            ("2,zwei", "zwei"),
            ("", ""),
            ("9..2", "9..2"),
            ("2..8:0", "2..8:0"),
            ("2..8:x1", "2..8:x1"),
            ("2..8:xx", "2..8:xx"),
            ("0..8:x2", "0..8:x2"),
            ("1..99999999", "1..99999999"),
            ("2..", "2.."),
            ("-4", "-4"),
        ] {
            assert_eq!(plain(text).unwrap_err().item, item, "{text}");
        }
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        let end = u64::MAX;
        assert_eq!(plain(&format!("{}..{end}", end - 1)).unwrap(), [end - 1, end]);
        assert_eq!(plain(&format!("{}..{end}:x3", end / 2)).unwrap(), [end / 2, end]);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,30}") {
            if let Ok(values) = plain(&text) {
                prop_assert!(!values.is_empty());
                prop_assert!(values.windows(2).all(|w| w[0] < w[1]));
            }
        }
    }
}
