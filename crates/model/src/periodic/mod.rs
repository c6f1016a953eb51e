//! Periods in the moments at which something happened, found without knowing what to look for.

mod spectrum;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::f64::consts::TAU;

use statrs::distribution::{ContinuousCDF, Gamma};

use spectrum::Spectrum;

/// Most moments that are looked at; further windows are left out of the search.
const MOST_MOMENTS: usize = 20_000;
/// Periods that a window must hold.
const LEAST_PERIODS: f64 = 3.0;
/// Shortest period.
const SHORTEST_NS: f64 = 400_000.0;
/// Chance at which moments without a period would look as if they had one.
const FALSE_ALARM: f64 = 0.01;
/// Share of the highest peak that a lower frequency must reach to be the fundamental.
const SHARE_OF_PEAK: f64 = 0.5;
/// How far from its slot a moment may be, as a share of the period.
const TOLERANCE: f64 = 0.05;
/// Share of the slots in which something must have happened.
const LEAST_HIT: f64 = 0.5;

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Period {
    /// From one to the next, in nanoseconds.
    pub period_ns: f64,
    /// Share of the slots (multiples of the period within a window) in which something happened.
    pub hit: f64,
    /// For each window the numbers of the moments that are of the period: one a slot, the nearest.
    pub members: Vec<Vec<usize>>,
}

/// The period of moments in windows of `span_ns`, each list from the start of its window. Windows
/// need not be in phase with one another. None where chance alone would do.
///
/// The periodogram of points (Schuster 1898; Rayleigh's statistic), R(f) = |sum exp(2 pi i f t)|^2 / n,
/// summed over windows: for moments without a period Gamma(windows, 1). The lowest frequency counts
/// that reaches half of the highest peak and fills half of its slots: a comb has all its harmonics.
pub fn find(windows: &[Vec<f64>], span_ns: f64) -> Option<Period> {
    let used = windows_used(windows);
    let spectrum = Spectrum::of(used, LEAST_PERIODS / span_ns, 1.0 / SHORTEST_NS, span_ns)?;
    let threshold = threshold(&spectrum, used)?;
    let peaks = spectrum.peaks();
    let highest = peaks.iter().map(|(_, power)| *power).reduce(f64::max)?;
    let least = threshold.max(SHARE_OF_PEAK * highest);
    let high = peaks.into_iter().filter(|(_, power)| *power >= least);
    high.map(|(frequency, _)| 1.0 / spectrum::refine(used, frequency, spectrum.step()))
        .map(|period_ns| members(windows, span_ns, period_ns))
        .find(|period| period.hit >= LEAST_HIT)
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

/// The power that chance reaches at some frequency in few cases only. Moments that come in bursts
/// raise the whole spectrum, and the threshold with it.
fn threshold(spectrum: &Spectrum, windows: &[Vec<f64>]) -> Option<f64> {
    let with_moments = windows.iter().filter(|moments| !moments.is_empty()).count();
    let gamma = Gamma::new(with_moments as f64, 1.0).ok()?;
    let level = gamma.inverse_cdf(1.0 - FALSE_ALARM / spectrum.independent());
    let floor = crate::stats::median(spectrum.powers())? / gamma.inverse_cdf(0.5);
    Some(level * floor.max(1.0))
}

/// Which moments are of a period: in each window those nearest to the slots of its own phase. The
/// periodogram is blind to phase and gives the period roughly; a line through those moments, moment
/// against slot, gives it well.
fn members(windows: &[Vec<f64>], span_ns: f64, roughly_ns: f64) -> Period {
    let own = |period_ns: f64| -> Vec<BTreeMap<i64, usize>> {
        windows.iter().map(|moments| of_window(moments, period_ns)).collect()
    };
    let period_ns = slope(windows, &own(roughly_ns)).unwrap_or(roughly_ns);
    let members = own(period_ns);
    let used = windows.iter().filter(|moments| !moments.is_empty()).count();
    let slots = used as f64 * (span_ns / period_ns).floor().max(1.0);
    let hit: usize = members.iter().map(BTreeMap::len).sum();
    let numbers = |own: BTreeMap<i64, usize>| own.into_values().collect();
    Period {
        period_ns,
        hit: (hit as f64 / slots).min(1.0),
        members: members.into_iter().map(numbers).collect(),
    }
}

/// The moments of a window that are nearest to slots, by slot.
fn of_window(moments: &[f64], period_ns: f64) -> BTreeMap<i64, usize> {
    let (sine, cosine) = moments.iter().fold((0.0, 0.0), |(sine, cosine), moment| {
        let angle = TAU * (moment / period_ns).fract();
        (sine + angle.sin(), cosine + angle.cos())
    });
    let phase = f64::atan2(sine, cosine) / TAU;
    let mut nearest: BTreeMap<i64, (f64, usize)> = BTreeMap::new();
    for (number, moment) in moments.iter().enumerate() {
        let position = moment / period_ns - phase;
        let off = (position - position.round()).abs();
        if off <= TOLERANCE {
            let slot = nearest.entry(position.round() as i64).or_insert((off, number));
            if off < slot.0 {
                *slot = (off, number);
            }
        }
    }
    nearest.into_iter().map(|(slot, (_, number))| (slot, number)).collect()
}

/// Least squares of moment against slot, with an intercept for each window.
fn slope(windows: &[Vec<f64>], members: &[BTreeMap<i64, usize>]) -> Option<f64> {
    let (mut products, mut squares) = (0.0, 0.0);
    for (moments, own) in windows.iter().zip(members) {
        let many = own.len() as f64;
        let mean_slot = own.keys().map(|slot| *slot as f64).sum::<f64>() / many;
        let mean_moment = own.values().map(|number| moments[*number]).sum::<f64>() / many;
        for (slot, number) in own {
            let from_mean = *slot as f64 - mean_slot;
            products += from_mean * (moments[*number] - mean_moment);
            squares += from_mean * from_mean;
        }
    }
    (squares > 0.0 && products > 0.0).then(|| products / squares)
}
