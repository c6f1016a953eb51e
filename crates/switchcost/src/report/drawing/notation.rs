//! How the numbers of an axis are written.

use model::figure::Unit;

/// Powers of 1000 for time in nanoseconds, of 1024 for bytes, of 1000 for counts.
const TIMES: &[(f64, &str)] = &[(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")];
const SECONDS: &[(f64, &str)] = &[(1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")];
const SIZES: &[(f64, &str)] =
    &[(1_073_741_824.0, "GiB"), (1_048_576.0, "MiB"), (1024.0, "KiB"), (1.0, "B")];
const COUNTS: &[(f64, &str)] = &[(1e9, "G"), (1e6, "M"), (1e4, "k"), (1.0, "")];

/// One scale for all numbers of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Notation {
    /// What a number is divided by.
    pub(crate) divisor: f64,
    /// The unit of what is left; empty for none.
    pub(crate) unit: &'static str,
}

impl Notation {
    /// The largest unit of which `size` is at least one; the smallest one for less.
    pub(crate) fn of(unit: Unit, size: f64) -> Self {
        let units = match unit {
            Unit::Nanoseconds => TIMES,
            Unit::Seconds => SECONDS,
            Unit::Bytes => SIZES,
            Unit::Count | Unit::Ticks => COUNTS,
            Unit::Ratio | Unit::Names => return Self { divisor: 1.0, unit: "" },
        };
        let fits = |(least, _): &&(f64, &str)| size.abs() >= *least * (1.0 - 1e-9);
        let chosen = units.iter().find(fits).or(units.last());
        let (divisor, unit) = chosen.copied().unwrap_or((1.0, ""));
        // From ten thousand on, a count is in thousands.
        Self { divisor: if divisor == 1e4 { 1e3 } else { divisor }, unit }
    }

    /// The number alone, exact to `step` (in the axis's own unit).
    pub(crate) fn number(self, value: f64, step: f64) -> String {
        let (value, step) = (value / self.divisor, (step / self.divisor).abs());
        // Not -0.
        let value = if value.abs() < step * 1e-6 { 0.0 } else { value };
        if value != 0.0 && !(1e-5..1e6).contains(&value.abs()) {
            return format!("{value:.3e}").replace(".000e", "e");
        }
        let whole = |decimals: &usize| {
            let steps = step * 10f64.powi(*decimals as i32);
            (steps - steps.round()).abs() <= 1e-6 * steps && steps > 0.5
        };
        let decimals = (0..6).find(whole).unwrap_or(6);
        format!("{value:.decimals$}")
    }
}

/// A number by itself, with its unit, to three digits or all of a whole one: `1.5 us`, `64 KiB`, `20k`.
pub(crate) fn written(unit: Unit, value: f64) -> String {
    let notation = Notation::of(unit, value);
    let number = three_digits(value / notation.divisor);
    match notation.unit {
        "" => number,
        "k" | "M" | "G" => format!("{number}{}", notation.unit),
        word => format!("{number} {word}"),
    }
}

fn three_digits(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        return "0".to_string();
    }
    if !(1e-5..1e6).contains(&size) {
        return format!("{value:.2e}").replace(".00e", "e");
    }
    if value.fract() == 0.0 {
        return format!("{value:.0}");
    }
    let decimals = (2.0 - size.log10().floor()).clamp(0.0, 7.0) as usize;
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_unit_that_suits_them() {
        let cases = [
            (Unit::Nanoseconds, 100.0, "100 ns"),
            (Unit::Nanoseconds, 1500.0, "1.5 us"),
            (Unit::Nanoseconds, -2e6, "-2 ms"),
            (Unit::Nanoseconds, 5e9, "5 s"),
            (Unit::Seconds, 0.25, "250 ms"),
            (Unit::Bytes, 65536.0, "64 KiB"),
            (Unit::Bytes, 1_048_576.0, "1 MiB"),
            (Unit::Bytes, 512.0, "512 B"),
            (Unit::Count, 4096.0, "4096"),
            (Unit::Nanoseconds, 1485.4, "1.49 us"),
            (Unit::Nanoseconds, 999_999.0, "1000 us"),
            (Unit::Count, 20_000.0, "20k"),
            (Unit::Count, 1e6, "1M"),
            (Unit::Ratio, 1.25, "1.25"),
            (Unit::Ratio, 1e300, "1e300"),
            (Unit::Nanoseconds, 0.0, "0 ns"),
        ];
        for (unit, value, expected) in cases {
            assert_eq!(written(unit, value), expected);
        }
    }

    #[test]
    fn rounding_errors_are_no_negative_zero() {
        let whole = Notation { divisor: 1.0, unit: "" };
        assert_eq!(whole.number(-1e-17, 0.5), "0.0");
        assert_eq!(whole.number(0.75, 0.25), "0.75");
        assert_eq!(whole.number(3.0, 1.0), "3");
    }
}
