//! Figures in sentences.

/// Formats a part as a percentage, rounded up to whole ones: it is always a bound or a warning.
pub fn percent(part: f64) -> String {
    format!("{:.0} %", (100.0 * part - 1e-9).ceil())
}

/// Formats a share in percent without its sign, below ten with a decimal: `0.7`, `33`.
pub fn percent_of(share: f64) -> String {
    let percent = 100.0 * share;
    format!("{percent:.0$}", usize::from(percent < 9.95))
}

/// Formats a factor: `2.9x`.
pub fn times(factor: f64) -> String {
    format!("{}x", three_digits(factor))
}

/// Formats a change in nanoseconds, with its sign.
pub fn signed(ns: f64) -> String {
    let sign = if ns < 0.0 { "" } else { "+" };
    format!("{sign}{}", time(ns))
}

/// Formats nanoseconds with three significant digits, in the unit that suits them.
pub fn time(ns: f64) -> String {
    let (scale, unit) = time_unit(ns);
    format!("{} {unit}", three_digits(round_to_three(ns) / scale))
}

/// Returns the unit in which a time in nanoseconds is printed: its nanoseconds and its name.
pub fn time_unit(ns: f64) -> (f64, &'static str) {
    match round_to_three(ns).abs() {
        size if size >= 1e9 => (1e9, "s"),
        size if size >= 1e6 => (1e6, "ms"),
        size if size >= 1e3 => (1e3, "us"),
        _ => (1.0, "ns"),
    }
}

/// Formats CPUs as a list: `0,2`.
pub fn list(cpus: &[u32]) -> String {
    cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// Formats bytes in the largest binary unit of which there is at least one, with up to three
/// significant digits: `1.5 MiB`.
pub fn bytes(bytes: u64) -> String {
    let (scale, unit) = byte_unit(bytes);
    format!("{} {unit}", plain(bytes as f64 / scale))
}

/// Formats two sizes in bytes, the unit once where both have the same: `128 to 256 KiB`.
pub fn byte_range(low: u64, high: u64) -> String {
    let (scale, unit) = byte_unit(low);
    let low = if unit == byte_unit(high).1 { plain(low as f64 / scale) } else { bytes(low) };
    format!("{low} to {}", bytes(high))
}

fn byte_unit(bytes: u64) -> (f64, &'static str) {
    let power = bytes.checked_ilog(1024).unwrap_or(0).min(3);
    (1024_f64.powi(power as i32), ["B", "KiB", "MiB", "GiB"][power as usize])
}

/// Formats three significant digits without trailing zeros; whole numbers stay whole.
pub fn plain(value: f64) -> String {
    if value.fract() == 0.0 {
        return format!("{value:.0}");
    }
    let mut text = three_digits(value);
    if text.contains('.') {
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    }
    text
}

/// Formats two significant digits, without trailing zeros.
pub fn two_digits(value: f64) -> String {
    plain(format!("{value:.1e}").parse().unwrap_or(value))
}

fn round_to_three(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

/// Formats three significant digits.
pub fn three_digits(value: f64) -> String {
    digits(round_to_three(value), 3)
}

/// Formats four significant digits.
pub fn four_digits(value: f64) -> String {
    digits(format!("{value:.3e}").parse().unwrap_or(value), 4)
}

/// Formats `count` significant digits of a value that is rounded to them.
fn digits(value: f64, count: u8) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let magnitude = value.abs().log10().floor();
    let decimals = (f64::from(count) - 1.0 - magnitude).clamp(0.0, 6.0) as usize;
    format!("{value:.decimals$}")
}

/// Formats a whole number with its thousands apart: `2,632`.
pub fn whole(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let first = digits.len() % 3;
    let mut text = if value <= -0.5 { "-".to_string() } else { String::new() };
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && at % 3 == first {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a count with its thousands apart; below a hundred with three digits.
pub fn grouped(count: f64) -> String {
    if count >= 100.0 { whole(count) } else { plain(count) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_a_person_writes_them() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(192 * 1024), "192 KiB");
        assert_eq!(bytes(1_572_864), "1.5 MiB");
        assert_eq!(bytes(1_000_000), "977 KiB");
        assert_eq!(byte_range(131_072, 262_144), "128 to 256 KiB");
        assert_eq!(byte_range(524_288, 1_048_576), "512 KiB to 1 MiB");
    }

    #[test]
    fn digits_and_thousands() {
        let four = [1.4831, 999.96, 12.345, 0.0].map(four_digits);
        assert_eq!(four, ["1.483", "1000", "12.35", "0"]);
        let all = [0.4, 632.0, 2631.6, 26_320.0, 1_234_567.0, -1500.0].map(whole);
        assert_eq!(all, ["0", "632", "2,632", "26,320", "1,234,567", "-1,500"]);
        assert_eq!([0.0, 2.345, 99.0, 1234.5].map(grouped), ["0", "2.35", "99", "1,234"]);
    }
}
