//! Histograms as bars of text, within 80 columns.

use std::fmt::Write;

use stats::Histogram;

/// Columns of the longest bar.
const LONGEST: f64 = 44.0;

/// A line for each bin: where it begins, its bar, its count, its share of the time of all bins.
/// Anything at all has a bar of one.
pub(super) fn bars(histogram: &Histogram) -> String {
    let most = histogram.0.iter().map(|bin| bin.count).max().unwrap_or(0).max(1) as f64;
    let total_ns: f64 = histogram.0.iter().map(|bin| bin.total_ns).sum();
    let mut text = String::new();
    for bin in &histogram.0 {
        let columns = (LONGEST * bin.count as f64 / most).ceil() as usize;
        let share = if total_ns > 0.0 { 100.0 * bin.total_ns / total_ns } else { 0.0 };
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{:>8} |{:<44}| {:>8} {share:>6.1} %",
            bin.label(),
            "#".repeat(columns),
            bin.count
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_values_are_seen_and_lines_are_short() {
        let text = bars(&Histogram::of([(1500.0, 100_000_000), (5e6, 1), (3000.0, 0)]));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().all(|line| line.len() <= 80), "{text}");
        assert_eq!(lines.len(), 12, "empty bins between are shown: {text}");
        assert!(lines[0].starts_with("    1 us |####"), "{text}");
        assert!(lines[11].contains("    5 ms |# ") && lines[11].contains(" 1 "), "{text}");
        assert!(lines[1].contains("|  ") && lines[1].contains(" 0 "), "{text}");
        assert_eq!(bars(&Histogram::default()), "");
    }
}
