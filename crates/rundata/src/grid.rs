//! Lists of numbers as people type them: `2,4,8`, `2..64`, `2..64:4`, `2..20000:x2`.

/// Longest list accepted: a typing error must not ask for a million cases.
pub const MAX_VALUES: usize = 10_000;

const ACCEPTED: &str = "numbers and ranges such as 2,4,8 or 2..64 or 2..64:4 or 2..20000:x2";

#[derive(Clone, Copy)]
enum RangeStep {
    Add(u64),
    Multiply(u64),
}

/// Reads a comma-separated list whose items are values or ranges `low..high`, `low..high:+step` (or
/// `:step`) and `low..high:xfactor`. Ranges include their end: a geometric range whose last step
/// would pass the end stops at the end itself. `value` reads one number, so that callers can accept
/// suffixes such as `64K`. The result is sorted and holds each value once. An error names the item
/// that cannot be read, and why.
pub fn parse(text: &str, value: impl Fn(&str) -> Result<u64, String>) -> Result<Vec<u64>, String> {
    let mut all = Vec::new();
    for item in text.split(',').map(str::trim) {
        add_item(item, &value, &mut all)
            .map_err(|why| format!("'{item}': {why} (accepted: {ACCEPTED})"))?;
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

fn add_item(
    item: &str,
    value: impl Fn(&str) -> Result<u64, String>,
    all: &mut Vec<u64>,
) -> Result<(), String> {
    match item.split_once("..") {
        None => match item.split_once('-') {
            Some((low, high)) if value(low).is_ok() && value(high).is_ok() => {
                return Err(format!("use {low}..{high}"));
            }
            _ => all.push(value(item)?),
        },
        Some((low, rest)) => {
            let (high, step) = rest.split_once(':').unwrap_or((rest, "1"));
            let step = match step.strip_prefix('x') {
                Some(factor) => match factor.parse() {
                    Ok(factor) if factor >= 2 => RangeStep::Multiply(factor),
                    _ => return Err(format!("the factor 'x{factor}' must be x2 or more")),
                },
                None => match value(step.strip_prefix('+').unwrap_or(step))? {
                    0 => return Err("the step must be 1 or more".to_string()),
                    step => RangeStep::Add(step),
                },
            };
            add_range(value(low)?, value(high)?, step, all)?;
        }
    }
    if all.len() > MAX_VALUES {
        return Err(format!("more than {MAX_VALUES} values"));
    }
    Ok(())
}

fn add_range(low: u64, high: u64, step: RangeStep, all: &mut Vec<u64>) -> Result<(), String> {
    if low > high {
        return Err(format!("the range starts at {low}, above its end {high}"));
    }
    if low == 0 && matches!(step, RangeStep::Multiply(_)) {
        return Err("a geometric range cannot start at 0".to_string());
    }
    let mut next = Some(low);
    while let Some(current) = next.filter(|next| *next < high && all.len() <= MAX_VALUES) {
        all.push(current);
        next = match step {
            RangeStep::Add(step) => current.checked_add(step),
            RangeStep::Multiply(factor) => current.checked_mul(factor),
        };
    }
    // The end belongs to the range when the steps meet it, and always to a geometric one: who asks
    // for 2..20000:x2 wants to see 20000.
    if next == Some(high) || matches!(step, RangeStep::Multiply(_)) {
        all.push(high);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain(text: &str) -> Result<Vec<u64>, String> {
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
            let told = plain(text).unwrap_err();
            assert!(told.starts_with(&format!("'{item}': ")), "{text}: {told}");
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
