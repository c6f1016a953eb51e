//! Parameters of commands, with the values that each one takes.
//!
//! ```text
//! --parameter n 1,2,4                    n: 1, 2, 4
//! --parameter flags ',-O2'               flags: (empty), -O2
//! --parameter-scan delay 0.3 0.7 -D 0.2  delay: 0.3, 0.5, 0.7
//! ```

use anyhow::Result;

use crate::base::failure::usage;

/// A parameter, and its values in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ParameterList {
    /// Option that has given it.
    pub(super) flag: &'static str,
    pub(super) name: String,
    pub(super) values: Vec<String>,
}

/// Most values of a scan, as in hyperfine.
const MAX_SCANNED: i128 = 100_000;

impl ParameterList {
    /// Reads the values of --parameter: names and lists in turn.
    pub(super) fn from_lists(words: &[String]) -> Result<Vec<Self>> {
        let mut lists: Vec<Self> = Vec::new();
        for pair in words.chunks(2) {
            let [name, list] = pair else { continue };
            if lists.iter().any(|list| list.name == *name) {
                return Err(usage(format!(
                    "--parameter {name}: given twice (accepted: all its values in one list, A,B,C)"
                )));
            }
            let values = split_values(list);
            lists.push(Self { flag: "--parameter", name: name.clone(), values });
        }
        Ok(lists)
    }

    /// Reads the values of --parameter-scan: a name, the first value and the greatest one; `step` is
    /// that of --parameter-step-size, or 1.
    pub(super) fn from_scan(words: &[String], step: Option<&str>) -> Result<Self> {
        let [name, first, last] = words else {
            return Err(usage("--parameter-scan: accepted: NAME MIN MAX"));
        };
        let refuse = |why: &str| usage(format!("--parameter-scan {name} {first} {last}: {why}"));
        let first_number = Decimal::parse(first).map_err(|why| refuse(&why))?;
        let last_number = Decimal::parse(last).map_err(|why| refuse(&why))?;
        let is_whole = first_number.digits == 0 && last_number.digits == 0;
        let step = match step {
            Some(text) => parse_step(text)?,
            None if is_whole => Decimal { mantissa: 1, digits: 0 },
            None => return Err(refuse("numbers with a point need a --parameter-step-size")),
        };
        let values = scan(first_number, last_number, step);
        let values = values.ok_or_else(|| refuse(TOO_LARGE))?;
        if values.is_empty() {
            return Err(refuse("MIN is above MAX (accepted: the lower number first)"));
        }
        if values.len() as i128 > MAX_SCANNED {
            let hint = "(accepted: a larger --parameter-step-size)";
            return Err(refuse(&format!("more than {MAX_SCANNED} values {hint}")));
        }
        Ok(Self { flag: "--parameter-scan", name: name.clone(), values })
    }

    /// Returns the text that a value replaces: `{NAME}`.
    pub(super) fn placeholder(&self) -> String {
        placeholder(&self.name)
    }
}

/// Returns the text that a value of a parameter replaces.
pub(super) fn placeholder(name: &str) -> String {
    format!("{{{name}}}")
}

/// Parses the value of --parameter-step-size.
fn parse_step(text: &str) -> Result<Decimal> {
    let why = match Decimal::parse(text) {
        Ok(step) if step.mantissa > 0 => return Ok(step),
        Ok(_) => "accepted: a number above 0".to_string(),
        Err(why) => why,
    };
    Err(usage(format!("--parameter-step-size {text}: {why}")))
}

/// Splits a list at its commas; `\,` is a comma and `\\` a backslash within a value.
fn split_values(list: &str) -> Vec<String> {
    let mut values = vec![String::new()];
    let mut letters = list.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter == ',' {
            values.push(String::new());
            continue;
        }
        let is_escape = letter == '\\';
        let escaped = letters.next_if(|next| is_escape && matches!(next, ',' | '\\'));
        if let Some(value) = values.last_mut() {
            value.push(escaped.unwrap_or(letter));
        }
    }
    values
}

/// A decimal number: `mantissa` / 10^`digits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Decimal {
    mantissa: i128,
    digits: u32,
}

/// Most digits behind the point.
const MAX_DIGITS: usize = 18;

/// A mantissa is below this, as in hyperfine (96 bits).
const MANTISSA_LIMIT: i128 = 1 << 96;

/// Reason for which large numbers are refused.
const TOO_LARGE: &str = "a number is too large (accepted: up to 28 digits)";

impl Decimal {
    /// Parses a number such as `-0.25`, without an exponent. The error says why it is none.
    fn parse(text: &str) -> Result<Self, String> {
        let (sign, number) = match text.strip_prefix('-') {
            Some(number) => (-1, number),
            None => (1, text.strip_prefix('+').unwrap_or(text)),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let all_digits = format!("{whole}{fraction}");
        let is_number = all_digits.bytes().all(|byte| byte.is_ascii_digit());
        if number.contains(['e', 'E']) && number.parse::<f64>().is_ok() {
            return Err(format!("'{text}' has an exponent (accepted: 1000 or 0.001 without one)"));
        }
        if !is_number || all_digits.is_empty() {
            return Err(format!("'{text}' is no number (accepted: 1, -0.25)"));
        }
        if fraction.len() > MAX_DIGITS {
            let hint = format!("(accepted: up to {MAX_DIGITS} digits behind the point)");
            return Err(format!("'{text}' is too long {hint}"));
        }
        let mantissa: Option<i128> = all_digits.parse().ok();
        let mantissa = mantissa.filter(|mantissa| *mantissa < MANTISSA_LIMIT).ok_or(TOO_LARGE)?;
        Ok(Self { mantissa: sign * mantissa, digits: fraction.len() as u32 })
    }

    /// Returns the mantissa for so many digits; `None` if it is too large.
    fn scaled(self, digits: u32) -> Option<i128> {
        self.mantissa.checked_mul(10_i128.checked_pow(digits.checked_sub(self.digits)?)?)
    }

    fn text(self) -> String {
        let digits = self.digits as usize;
        let all = format!("{:0>width$}", self.mantissa.unsigned_abs(), width = digits + 1);
        let (whole, fraction) = all.split_at(all.len() - digits);
        let sign = if self.mantissa < 0 { "-" } else { "" };
        if digits == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
    }
}

/// Returns the values from `first` to `last` by `step`, one more than [`MAX_SCANNED`] at most; `None`
/// if the numbers are too large. The first value has its own digits, the others also those of the
/// step.
fn scan(first: Decimal, last: Decimal, step: Decimal) -> Option<Vec<String>> {
    let digits = first.digits.max(last.digits).max(step.digits);
    let (end, step_size) = (last.scaled(digits)?, step.scaled(digits)?);
    let mut mantissa = first.scaled(digits)?;
    let shown_digits = first.digits.max(step.digits);
    let unit = 10_i128.checked_pow(digits - shown_digits)?;
    let mut values = Vec::new();
    while mantissa <= end && values.len() as i128 <= MAX_SCANNED {
        values.push(match values.len() {
            0 => first.text(),
            _ => Decimal { mantissa: mantissa / unit, digits: shown_digits }.text(),
        });
        mantissa = mantissa.checked_add(step_size)?;
    }
    Some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| word.to_string()).collect()
    }

    #[test]
    fn a_list_is_split_at_commas_that_are_not_escaped() {
        for (list, values) in [
            ("a", &["a"][..]),
            ("1,2,4", &["1", "2", "4"]),
            (r"hello\, world!,b", &["hello, world!", "b"]),
            (r"\\\,", &[r"\,"]),
            (r"\n,\", &[r"\n", r"\"]),
            (",-O2", &["", "-O2"]),
            ("a,,", &["a", "", ""]),
            (" ", &[" "]),
            ("", &[""]),
        ] {
            assert_eq!(split_values(list), values, "{list}");
        }
    }

    #[test]
    fn a_scan_reaches_its_end_and_has_exact_decimals() {
        for (scan, step, values) in [
            (["1", "3"], None, "1 2 3"),
            (["0", "10"], Some("3"), "0 3 6 9"),
            (["0.3", "0.7"], Some("0.2"), "0.3 0.5 0.7"),
            (["0", "1"], Some("0.25"), "0 0.25 0.50 0.75 1.00"),
            (["-1", "1"], None, "-1 0 1"),
            (["-0.1", "0.1"], Some("0.1"), "-0.1 0.0 0.1"),
            (["1", "1"], None, "1"),
            (["0.10", "0.30"], Some("0.1"), "0.10 0.20 0.30"),
            (["1", "1.5"], Some("1"), "1"),
            (["9223372036854775808", "9223372036854775808"], None, "9223372036854775808"),
        ] {
            let list = ParameterList::from_scan(&words(&["n", scan[0], scan[1]]), step).unwrap();
            assert_eq!(list.values.join(" "), values, "{scan:?} {step:?}");
        }
        let many = ParameterList::from_scan(&words(&["n", "1", "100000"]), None).unwrap();
        assert_eq!(many.values.len(), 100_000);
    }

    #[test]
    fn what_is_no_list_or_scan_is_refused() {
        for (scan, step, message) in [
            (["3", "1"], None, "MIN is above MAX (accepted: the lower number first)"),
            (["0", "100001"], None, "more than 100000 values (accepted: a larger"),
            (["0.5", "1"], None, "--parameter-step-size"),
            (["0", "1"], Some("0"), "above 0"),
            (["0", "1"], Some("-1"), "above 0"),
            (["a", "1"], None, "'a' is no number (accepted: 1, -0.25)"),
            (["1e3", "1"], None, "'1e3' has an exponent (accepted: 1000"),
            (["", "1"], None, "'' is no number"),
            ([".", "1"], None, "'.' is no number"),
            (["0", "1"], Some("1E1"), "--parameter-step-size 1E1: '1E1' has an exponent"),
            (["0.0000000000000000001", "1"], Some("1"), "up to 18 digits"),
            (["0", "79228162514264337593543950336"], None, "too large (accepted: up to 28"),
        ] {
            let scan = words(&["n", scan[0], scan[1]]);
            let error = ParameterList::from_scan(&scan, step).unwrap_err().to_string();
            assert!(error.contains(message), "{scan:?}: {error}");
        }
        let twice = ParameterList::from_lists(&words(&["n", "1", "n", "2"]));
        let error = twice.unwrap_err().to_string();
        assert!(error.contains("given twice (accepted: all its values in one list"), "{error}");
    }
}
