//! Figures in sentences.

/// A part as a percentage, rounded up to whole ones: it is always a bound or a warning.
pub(crate) fn percent(part: f64) -> String {
    format!("{:.0} %", (100.0 * part - 1e-9).ceil())
}

/// A factor: `2.9x`.
pub(crate) fn times(factor: f64) -> String {
    format!("{}x", three_digits(factor))
}

/// A change in nanoseconds, with its sign.
pub(crate) fn signed(ns: f64) -> String {
    let sign = if ns < 0.0 { "" } else { "+" };
    format!("{sign}{}", time(ns))
}

/// Nanoseconds with three significant digits, in the unit that suits them.
pub(crate) fn time(ns: f64) -> String {
    let rounded = round_to_three(ns);
    let (scale, unit) = match rounded.abs() {
        size if size >= 1e9 => (1e9, "s"),
        size if size >= 1e6 => (1e6, "ms"),
        size if size >= 1e3 => (1e3, "us"),
        _ => (1.0, "ns"),
    };
    format!("{} {unit}", three_digits(rounded / scale))
}

fn round_to_three(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

/// Three significant digits.
pub(crate) fn three_digits(value: f64) -> String {
    let value = round_to_three(value);
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let magnitude = value.abs().log10().floor();
    let decimals = (2.0 - magnitude).clamp(0.0, 6.0) as usize;
    format!("{value:.decimals$}")
}
