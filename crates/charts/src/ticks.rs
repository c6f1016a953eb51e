//! Numbers on an axis: where its ticks are, and how they are written.

use crate::figure::Unit;

/// Powers of 1000 for time in nanoseconds, of 1024 for bytes, of 1000 for counts.
const TIMES: &[(f64, &str)] = &[(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")];
const SIZES: &[(f64, &str)] =
    &[(1_073_741_824.0, "GiB"), (1_048_576.0, "MiB"), (1024.0, "KiB"), (1.0, "B")];
const COUNTS: &[(f64, &str)] = &[(1e9, "G"), (1e6, "M"), (1e4, "k"), (1.0, "")];
const PERCENT: &[(f64, &str)] = &[(1.0, "%")];
const NONE: &[(f64, &str)] = &[(1.0, "")];

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
            Unit::Bytes => SIZES,
            Unit::Count => COUNTS,
            Unit::Percent => PERCENT,
            Unit::Ratio | Unit::Names => NONE,
        };
        let fits = |(least, _): &&(f64, &str)| size.abs() >= *least * (1.0 - 1e-9);
        let (divisor, unit) = *units.iter().find(fits).unwrap_or(&units[units.len() - 1]);
        // From ten thousand on, a count is in thousands.
        Self { divisor: if divisor == 1e4 { 1e3 } else { divisor }, unit }
    }

    /// The number alone, exact to `step` (in the axis's own unit).
    pub(crate) fn number(self, value: f64, step: f64) -> String {
        let (value, step) = (value / self.divisor, (step / self.divisor).abs());
        let whole = |decimals: &usize| {
            let steps = step * 10f64.powi(*decimals as i32);
            (steps - steps.round()).abs() <= 1e-6 * steps && steps > 0.5
        };
        // Not -0.
        let value = if value.abs() < step * 1e-6 { 0.0 } else { value };
        plain(value, (0..6).find(whole).unwrap_or(6))
    }

    /// The number with the unit: `1.5 us`, `64 KiB`, `20k`.
    pub(crate) fn with_unit(self, number: &str) -> String {
        let between = if matches!(self.unit, "" | "k" | "M" | "G") { "" } else { " " };
        format!("{number}{between}{}", self.unit)
    }
}

/// A number by itself, with its unit, to three digits or all of a whole one.
pub(crate) fn written(unit: Unit, value: f64) -> String {
    let notation = Notation::of(unit, value);
    let value = value / notation.divisor;
    let decimals = (2.0 - value.abs().log10().floor()).clamp(0.0, 7.0) as usize;
    let number = plain(value, if value == 0.0 { 0 } else { decimals });
    match number.contains('.') && !number.contains('e') {
        true => notation.with_unit(number.trim_end_matches('0').trim_end_matches('.')),
        false => notation.with_unit(&number),
    }
}

/// With so many decimals; very large and very small ones as powers of ten.
fn plain(value: f64, decimals: usize) -> String {
    match value == 0.0 || (1e-5..1e6).contains(&value.abs()) {
        true => format!("{value:.decimals$}"),
        false => format!("{value:.3e}").replace(".000e", "e"),
    }
}

/// What fills an axis with too many ticks has none.
const MOST: usize = 1000;

/// At equal steps of 1, 2 or 5 (bytes: of powers of two), at most about `most` of them between both
/// ends. Gives the step too.
pub(crate) fn linear(unit: Unit, low: f64, high: f64, most: usize) -> (Vec<f64>, f64) {
    let rough = (high - low) / most.max(1) as f64;
    if !(rough > 0.0 && rough.is_finite()) {
        return (Vec::new(), 1.0);
    }
    let step = match unit {
        Unit::Bytes => rough.log2().ceil().exp2(),
        Unit::Count | Unit::Names => nice(rough).max(1.0),
        _ => nice(rough),
    };
    let first = (low / step - 1e-6).ceil();
    let last = (high / step + 1e-6).floor();
    let number = ((last - first) as usize).saturating_add(1);
    if last < first || number > MOST {
        return (Vec::new(), step);
    }
    ((0..number).map(|k| (first + k as f64) * step).collect(), step)
}

/// At powers of two (bytes, members) or at 1, 2, 5, 10, ..., thinned out to about `most`, or at
/// parts of powers where there is much room. Both ends are above zero. Gives the step where it is
/// the same everywhere.
pub(crate) fn log(unit: Unit, low: f64, high: f64, most: usize) -> (Vec<f64>, Option<f64>) {
    let twos = match unit {
        Unit::Bytes => true,
        // Rings begin with two, counts of what happened with one.
        Unit::Count => low > 1.0 && high / low <= 4096.0,
        _ => false,
    };
    let (base, parts): (f64, &[usize]) = if twos { (2.0, &[4, 2]) } else { (10.0, &[10, 2, 1]) };
    let [first, last] = [low, high].map(|end| end.ln() / base.ln());
    let span = last - first;
    let few = |parts: &&usize| 2.0 * span * (base - 1.0) * **parts as f64 <= most as f64;
    let mut ticks = match parts.iter().find(few) {
        Some(parts) if span >= 1.0 => {
            let between = (0..(base as usize - 1) * parts).map(|k| 1.0 + k as f64 / *parts as f64);
            times(base, &between.collect::<Vec<f64>>(), low, high)
        }
        _ if !twos && span * 3.0 <= most as f64 => times(base, &[1.0, 2.0, 5.0], low, high),
        _ if !twos && span * 2.0 <= most as f64 => times(base, &[1.0, 3.0], low, high),
        _ => {
            let number = (last + 1e-6).floor() - (first - 1e-6).ceil() + 1.0;
            times(base.powf((number / most as f64).ceil().max(1.0)), &[1.0], low, high)
        }
    };
    ticks.retain(|tick| unit != Unit::Count || (tick - tick.round()).abs() < 1e-9 * tick);
    // Between two powers there is room for a ruler too.
    if ticks.len() >= 2 && (span >= 1.0 || 4 * ticks.len() >= most) {
        return (ticks, None);
    }
    let (ticks, step) = linear(unit, low, high, most);
    (ticks, Some(step))
}

/// 1, 2 or 5 times a power of ten, not below `rough`.
fn nice(rough: f64) -> f64 {
    let power = 10f64.powf(rough.log10().floor());
    let times = [1.0, 2.0, 5.0].into_iter().find(|times| times * power >= rough * (1.0 - 1e-9));
    times.unwrap_or(10.0) * power
}

/// So many times each power.
fn times(base: f64, times: &[f64], low: f64, high: f64) -> Vec<f64> {
    let power = |value: f64| value.ln() / base.ln();
    let (first, last) = (power(low).floor() as i32, power(high).ceil() as i32);
    let all = (first..=last).flat_map(|k| times.iter().map(move |t| t * base.powi(k)));
    all.filter(|tick| *tick >= low * (1.0 - 1e-9) && *tick <= high * (1.0 + 1e-9)).collect()
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

    #[test]
    fn steps_are_those_that_a_person_would_choose() {
        assert_eq!(
            linear(Unit::Nanoseconds, 0.0, 4700.0, 6),
            (vec![0.0, 1000.0, 2000.0, 3000.0, 4000.0], 1000.0)
        );
        assert_eq!(linear(Unit::Ratio, -0.3, 0.3, 4).0, [-0.2, 0.0, 0.2]);
        assert_eq!(linear(Unit::Count, 0.0, 2.0, 10).0, [0.0, 1.0, 2.0], "no half members");
        assert_eq!(
            linear(Unit::Bytes, 0.0, 70_000.0, 5).0,
            [0.0, 16384.0, 32768.0, 49152.0, 65536.0]
        );
    }

    #[test]
    fn powers_of_two_for_members_and_bytes_and_of_ten_for_the_rest() {
        assert_eq!(log(Unit::Count, 2.0, 64.0, 8).0, [2.0, 4.0, 8.0, 16.0, 32.0, 64.0]);
        assert_eq!(log(Unit::Count, 2.0, 4096.0, 6).0, [4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0]);
        assert_eq!(log(Unit::Bytes, 1024.0, 5000.0, 6).0, [1024.0, 2048.0, 4096.0]);
        assert_eq!(log(Unit::Nanoseconds, 90.0, 1100.0, 6).0, [100.0, 200.0, 500.0, 1000.0]);
        assert_eq!(
            log(Unit::Nanoseconds, 1.0, 1e6, 8).0,
            (0..=6).map(|k| 10f64.powi(k)).collect::<Vec<_>>()
        );
        assert_eq!(log(Unit::Count, 0.9, 1e9, 5).0, [1.0, 100.0, 1e4, 1e6, 1e8]);
    }

    #[test]
    fn an_axis_within_one_decade_has_ticks_too() {
        let ticks = log(Unit::Nanoseconds, 3100.0, 4400.0, 5);
        assert_eq!(ticks, (vec![3500.0, 4000.0], Some(500.0)));
    }

    #[test]
    fn no_axis_has_no_end_of_ticks() {
        for (low, high) in [(0.0, 1e290), (-1e290, 1e290), (1e-290, 1e290), (1.0, 1.0 + 1e-15)] {
            assert!(linear(Unit::Count, low, high, 8).0.len() <= 20);
            if low > 0.0 {
                assert!(log(Unit::Nanoseconds, low, high, 8).0.len() <= 20);
            }
        }
    }
}
