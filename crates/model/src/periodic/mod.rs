//! Periods in the moments at which something happened, found without knowing what to look for.

mod slots;
mod spectrum;

#[cfg(test)]
mod tests;

use statrs::distribution::{ContinuousCDF, Gamma};

pub use slots::Period;
use spectrum::{HARMONICS, Spectrum};

/// Most moments that are looked at; further windows are left out of the search.
const MOST_MOMENTS: usize = 6000;
/// Periods that a window must hold.
const LEAST_PERIODS: u32 = 4;
/// Shortest period: some less than that of the fastest tick.
const SHORTEST_NS: f64 = 800_000.0;
/// Chance at which moments without a period would look as if they had one.
const FALSE_ALARM: f64 = 0.01;
/// Share of the slots in which something must have happened.
const LEAST_HIT: f64 = 0.5;
/// Factor by which more moments must lie near slots than would by chance.
const ABOVE_CHANCE: f64 = 1.5;

/// Moments in windows of `span_ns`, each list from the start of its window, ascending. Windows need
/// not be in phase with one another.
#[derive(Clone, Copy, Debug)]
pub struct Windows<'a> {
    /// What happened when.
    pub moments: &'a [Vec<f64>],
    /// From when to when nothing could be seen: slots there do not count. As many as windows, or none.
    pub blind: &'a [Vec<(f64, f64)>],
    /// Length of a window.
    pub span_ns: f64,
}

/// The period of moments. None where chance alone would do.
///
/// The periodogram of points (Schuster 1898; Rayleigh's statistic), R(f) = |sum exp(2 pi i f t)|^2 / n,
/// summed over windows: for moments without a period Gamma(windows, 1). A comb is as high at its
/// harmonics, which what merely comes in clumps is not: the score of a frequency is the least of the
/// powers at f, 2 f and 3 f, each over the level of its neighbourhood. Of the frequencies that chance does
/// not reach, and half of whose slots are hit, the one counts that explains the most. The highest score
/// would not do: two combs of one period, a quarter of it apart, are highest at four times their frequency.
pub fn find(windows: Windows) -> Option<Period> {
    let used = windows_used(windows.moments);
    let spectrum = Spectrum::of(used, LEAST_PERIODS, 1.0 / SHORTEST_NS, windows.span_ns)?;
    let with_moments = used.iter().filter(|moments| !moments.is_empty()).count();
    let gamma = Gamma::new(with_moments as f64, 1.0).ok()?;
    // Chance must be as high at all harmonics at once.
    let alarm = (FALSE_ALARM / spectrum.independent()).powf(1.0 / HARMONICS as f64);
    let (level, middle) = (gamma.inverse_cdf(1.0 - alarm), gamma.inverse_cdf(0.5));
    let scores = spectrum.scores(middle);
    let peaks = spectrum.peaks(&scores);
    let period = |(frequency, score): (f64, f64)| {
        let refined = spectrum::refine(used, frequency, spectrum.step());
        slots::period(&windows, 1.0 / refined, score / level)
    };
    let is_one = |period: &Period| period.hit >= LEAST_HIT && period.above_chance >= ABOVE_CHANCE;
    let found = peaks.into_iter().filter(|(_, score)| *score >= level).map(period).filter(is_one);
    // Of equals the last: the highest frequency. A multiple of the right one has fewer hits.
    found.max_by(|a, b| a.explains.total_cmp(&b.explains))
}

/// As many windows, from the first, as the search has time for.
fn windows_used(windows: &[Vec<f64>]) -> &[Vec<f64>] {
    let mut all = 0;
    let many = windows.iter().take_while(|moments| {
        all += moments.len();
        all <= MOST_MOMENTS
    });
    &windows[..many.count().max(1).min(windows.len())]
}
