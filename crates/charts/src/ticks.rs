//! Numbers on an axis: where its ticks are, and how they are written.
//!
//! A linear axis has ticks at equal steps of 1, 2 or 5 times a power of ten: 0 to 4700 ns with room
//! for six ticks has a rough step of 783, so the step is 1000 and the ticks are 0, 1, 2, 3 and 4 us.
//! A logarithmic axis has ticks at powers of its base (2 for bytes and members, 10 for the rest),
//! between them if there is room (1, 2, 5, 10, ...), or at every second or third power if there is
//! not. Within one decade, where powers would give a tick or none, its ticks are the linear ones.
//! An axis of square roots has ticks at 0 and at 1, 2, 5, 10, ..., without those that are too near
//! to the next.

use crate::figure::{Scale, Unit};

/// A unit in which numbers are written.
#[derive(Clone, Copy, Debug)]
struct NumberUnit {
    /// Least number that is written in it.
    size: f64,
    name: &'static str,
}

const fn unit(size: f64, name: &'static str) -> NumberUnit {
    NumberUnit { size, name }
}

// Powers of 1000 for time in nanoseconds, of 1024 for bytes, of 1000 for counts.
const TIMES: &[NumberUnit] = &[unit(1e9, "s"), unit(1e6, "ms"), unit(1e3, "us"), unit(1.0, "ns")];
const SIZES: &[NumberUnit] =
    &[unit(1_073_741_824.0, "GiB"), unit(1_048_576.0, "MiB"), unit(1024.0, "KiB"), unit(1.0, "B")];
const COUNTS: &[NumberUnit] = &[unit(1e9, "G"), unit(1e6, "M"), unit(1e4, "k"), unit(1.0, "")];
const PERCENT: &[NumberUnit] = &[unit(1.0, "%")];
const NONE: &[NumberUnit] = &[unit(1.0, "")];

/// Relative distance below which numbers are equal to rounding.
const ROUNDING: f64 = 1e-9;

/// Decimals of the most exact tick.
const MAX_DECIMALS: usize = 6;

/// Divisor and unit that all numbers of an axis share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Notation {
    /// Divisor of each number.
    pub(crate) divisor: f64,
    /// Unit of the quotient; empty for none.
    pub(crate) unit: &'static str,
    /// Whether numbers above zero have a plus sign.
    pub(crate) has_sign: bool,
}

impl Notation {
    /// Chooses the largest unit of which `size` is at least one; the smallest one if there is none.
    pub(crate) fn for_size(unit: Unit, size: f64) -> Self {
        let units = match unit {
            Unit::Nanoseconds => TIMES,
            Unit::Bytes => SIZES,
            Unit::Count => COUNTS,
            Unit::Percent | Unit::Change => PERCENT,
            Unit::Ratio | Unit::Names | Unit::Day => NONE,
        };
        let fitting = units.iter().find(|unit| size.abs() >= unit.size * (1.0 - ROUNDING));
        let chosen = fitting.unwrap_or(&units[units.len() - 1]);
        // From ten thousand on, a count is in thousands.
        let divisor = if chosen.size == 1e4 { 1e3 } else { chosen.size };
        Self { divisor, unit: chosen.name, has_sign: unit == Unit::Change }
    }

    /// Writes the number alone, exact to `step` (in the axis's own unit).
    pub(crate) fn number(self, value: f64, step: f64) -> String {
        let (value, step) = (value / self.divisor, (step / self.divisor).abs());
        let decimals = (0..MAX_DECIMALS).find(|decimals| is_multiple(step, *decimals));
        // Not -0.
        let value = if value.abs() < step * 1e-6 { 0.0 } else { value };
        self.with_sign(value, with_decimals(value, decimals.unwrap_or(MAX_DECIMALS)))
    }

    /// Puts a plus sign before a written number above zero, if the notation has signs.
    fn with_sign(self, value: f64, number: String) -> String {
        if self.has_sign && value > 0.0 { format!("+{number}") } else { number }
    }

    /// Appends the unit to a written number: `1.5 us`, `64 KiB`, `20k`.
    pub(crate) fn with_unit(self, number: &str) -> String {
        let between = if matches!(self.unit, "" | "k" | "M" | "G") { "" } else { " " };
        format!("{number}{between}{}", self.unit)
    }
}

/// Returns whether a step is written exactly with that many decimals.
fn is_multiple(step: f64, decimals: usize) -> bool {
    let steps = step * 10f64.powi(decimals as i32);
    (steps - steps.round()).abs() <= 1e-6 * steps && steps > 0.5
}

/// Writes a number with its unit, to three digits or all digits of a whole one; a day as its date.
pub(crate) fn written(unit: Unit, value: f64) -> String {
    if unit == Unit::Day {
        return date(value);
    }
    let notation = Notation::for_size(unit, value);
    let value = value / notation.divisor;
    let decimals = (2.0 - value.abs().log10().floor()).clamp(0.0, 7.0) as usize;
    let number = with_decimals(value, if value == 0.0 { 0 } else { decimals });
    let number = notation.with_sign(value, number);
    if number.contains('.') && !number.contains('e') {
        notation.with_unit(number.trim_end_matches('0').trim_end_matches('.'))
    } else {
        notation.with_unit(&number)
    }
}

/// Writes the date of a day that is counted from 1 January 1970: `2026-11-24`.
///
/// Years begin in March here, so that a leap day is the last of its year; 400 of them have 146,097
/// days, whatever year they begin with (Howard Hinnant, "chrono-compatible low-level date
/// algorithms").
fn date(day: f64) -> String {
    const DAYS_OF_400_YEARS: i64 = 146_097;
    let day = day.floor().clamp(-1e9, 1e9) as i64 + 719_468;
    let (era, day) = (day.div_euclid(DAYS_OF_400_YEARS), day.rem_euclid(DAYS_OF_400_YEARS));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day:02}", era * 400 + year + next)
}

/// Writes a number with that many decimals; very large and very small ones as powers of ten.
fn with_decimals(value: f64, decimals: usize) -> String {
    if value == 0.0 || (1e-5..1e6).contains(&value.abs()) {
        format!("{value:.decimals$}")
    } else {
        format!("{value:.3e}").replace(".000e", "e")
    }
}

/// An axis that would have more ticks has none.
const MAX_TICKS: usize = 1000;

/// Places ticks at equal steps of 1, 2 or 5 times a power of ten (bytes: of powers of two), at most
/// about `most` of them between both ends. Returns the step too.
pub(crate) fn linear(unit: Unit, low: f64, high: f64, most: usize) -> (Vec<f64>, f64) {
    let rough = (high - low) / most.max(1) as f64;
    if !(rough > 0.0 && rough.is_finite()) {
        return (Vec::new(), 1.0);
    }
    let step = match unit {
        Unit::Bytes => rough.log2().ceil().exp2(),
        Unit::Count | Unit::Names | Unit::Day => round_step(rough).max(1.0),
        _ => round_step(rough),
    };
    let first = (low / step - 1e-6).ceil();
    let last = (high / step + 1e-6).floor();
    let number = ((last - first) as usize).saturating_add(1);
    if last < first || number > MAX_TICKS {
        return (Vec::new(), step);
    }
    let mut ticks = Vec::with_capacity(number);
    for k in 0..number {
        ticks.push((first + k as f64) * step);
    }
    (ticks, step)
}

/// Places ticks at powers of two (bytes, members) or at 1, 2, 5, 10, ..., thinned out to about
/// `most`, or at parts of powers where there is much room. Both ends are above zero. Returns the
/// step where it is the same everywhere.
pub(crate) fn log(unit: Unit, low: f64, high: f64, most: usize) -> (Vec<f64>, Option<f64>) {
    let twos = match unit {
        Unit::Bytes => true,
        // Rings begin with two members, counts of events with one.
        Unit::Count => low > 1.0 && high / low <= 4096.0,
        _ => false,
    };
    // Into how many parts the steps between a power and the next may be divided, the finest first.
    let (base, divisions): (f64, &[usize]) =
        if twos { (2.0, &[4, 2]) } else { (10.0, &[10, 2, 1]) };
    let [first, last] = [low, high].map(|end| end.ln() / base.ln());
    let (span, room) = (last - first, most as f64);
    let fitting =
        divisions.iter().find(|division| 2.0 * span * (base - 1.0) * **division as f64 <= room);
    let mut ticks = match fitting {
        Some(division) if span >= 1.0 => {
            let mut factors = Vec::new();
            for k in 0..(base as usize - 1) * division {
                factors.push(1.0 + k as f64 / *division as f64);
            }
            multiples(base, &factors, low, high)
        }
        _ if !twos && span * 3.0 <= room => multiples(base, &[1.0, 2.0, 5.0], low, high),
        _ if !twos && span * 2.0 <= room => multiples(base, &[1.0, 3.0], low, high),
        _ => {
            let powers = (last + 1e-6).floor() - (first - 1e-6).ceil() + 1.0;
            multiples(base.powf((powers / room).ceil().max(1.0)), &[1.0], low, high)
        }
    };
    ticks.retain(|tick| unit != Unit::Count || (tick - tick.round()).abs() < ROUNDING * tick);
    // Between two powers there is room for a linear axis too.
    if ticks.len() >= 2 && (span >= 1.0 || 4 * ticks.len() >= most) {
        return (ticks, None);
    }
    let (ticks, step) = linear(unit, low, high, most);
    (ticks, Some(step))
}

/// Places ticks at zero and at 1, 2, 5, 10, ... on an axis of square roots, thinned out from its
/// upper end so that about `most` of them would be equally far apart. An axis that goes below zero
/// has linear ticks.
pub(crate) fn root(unit: Unit, low: f64, high: f64, most: usize) -> Vec<f64> {
    if low < 0.0 || !Scale::Log.draws(high) {
        return linear(unit, low, high, most).0;
    }
    let least = low.max(if unit == Unit::Count { 1.0 } else { high / 1e4 });
    let gap = (high.sqrt() - low.sqrt()) / most.max(1) as f64;
    let mut ticks: Vec<f64> = Vec::new();
    for tick in multiples(10.0, &[1.0, 2.0, 5.0], least, high).into_iter().rev() {
        let is_below = ticks.last().is_none_or(|above| above.sqrt() - tick.sqrt() >= gap);
        // Zero has a tick of its own.
        let is_above = low > 0.0 || tick.sqrt() >= gap;
        if is_below && is_above {
            ticks.push(tick);
        }
    }
    if low == 0.0 {
        ticks.push(0.0);
    }
    ticks.reverse();
    ticks
}

/// Returns the least of 1, 2 or 5 times a power of ten that is not below `rough`.
fn round_step(rough: f64) -> f64 {
    let power = 10f64.powf(rough.log10().floor());
    for factor in [1.0, 2.0, 5.0] {
        if factor * power >= rough * (1.0 - ROUNDING) {
            return factor * power;
        }
    }
    10.0 * power
}

/// Returns the products of each power of the base and each factor that lie between both ends.
fn multiples(base: f64, factors: &[f64], low: f64, high: f64) -> Vec<f64> {
    let first = (low.ln() / base.ln()).floor() as i32;
    let last = (high.ln() / base.ln()).ceil() as i32;
    let mut ticks = Vec::new();
    for exponent in first..=last {
        for factor in factors {
            let tick = factor * base.powi(exponent);
            if tick >= low * (1.0 - ROUNDING) && tick <= high * (1.0 + ROUNDING) {
                ticks.push(tick);
            }
        }
    }
    ticks
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
            (Unit::Percent, 5.0, "5 %"),
            (Unit::Change, 5.0, "+5 %"),
            (Unit::Change, -12.34, "-12.3 %"),
            (Unit::Change, 0.0, "0 %"),
        ];
        for (unit, value, expected) in cases {
            assert_eq!(written(unit, value), expected);
        }
    }

    #[test]
    fn rounding_errors_are_no_negative_zero() {
        let whole = Notation { divisor: 1.0, unit: "", has_sign: false };
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
    fn days_are_dates_in_leap_years_and_before_1970() {
        let dates = [
            (0.0, "1970-01-01"),
            (-1.0, "1969-12-31"),
            (11_016.0, "2000-02-29"),
            (20_781.5, "2026-11-24"),
            (47_540.0, "2100-02-28"),
            (47_541.0, "2100-03-01"),
        ];
        for (day, expected) in dates {
            assert_eq!(date(day), expected);
        }
        assert_eq!(linear(Unit::Day, 20_755.5, 20_758.5, 9).0, [20_756.0, 20_757.0, 20_758.0]);
    }

    #[test]
    fn an_axis_of_roots_shows_one_beside_many() {
        assert_eq!(root(Unit::Count, 0.0, 60.0, 9), [0.0, 1.0, 5.0, 10.0, 20.0, 50.0]);
        assert_eq!(root(Unit::Count, 0.0, 4000.0, 6), [0.0, 200.0, 1000.0, 2000.0]);
        assert_eq!(root(Unit::Count, 0.0, 1.0, 6), [0.0, 1.0]);
        assert_eq!(root(Unit::Ratio, -0.3, 0.3, 4), [-0.2, 0.0, 0.2]);
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
