//! How launches of the same plan on the same machine scatter.

use crate::stats::median;

/// tau where launches have not said otherwise: 1 % of a figure, as launches of one hour scatter on the test
/// machine (docs/validation.md).
pub const LAUNCH_SCATTER: f64 = 0.01;

/// Launches from which their scatter is taken from them.
const FEWEST_LAUNCHES: usize = 5;

/// A case's figure in one launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Launch {
    /// The figure.
    pub value: f64,
    /// Its standard error within the launch.
    pub standard_error: f64,
}

/// tau of the relative figures of one case (Paule and Mandel 1982, J. Res. NBS 87): the scatter between
/// launches that makes the weighted squares about their mean as large as their number less one. 0 where
/// launches scatter less than their own errors say. Absent below five launches.
pub fn launch_scatter(launches: &[Launch]) -> Option<f64> {
    let sound =
        |l: &&Launch| l.value.is_finite() && l.standard_error > 0.0 && l.standard_error.is_finite();
    let sound: Vec<&Launch> = launches.iter().filter(sound).collect();
    let middle = median(&sound.iter().map(|l| l.value).collect::<Vec<_>>())?;
    if sound.len() < FEWEST_LAUNCHES || middle <= 0.0 {
        return None;
    }
    let relative: Vec<(f64, f64)> =
        sound.iter().map(|l| (l.value / middle, (l.standard_error / middle).powi(2))).collect();
    let excess = |tau2: f64| {
        let weight = |variance: f64| 1.0 / (variance + tau2);
        let total: f64 = relative.iter().map(|(_, v)| weight(*v)).sum();
        let mean = relative.iter().map(|(x, v)| weight(*v) * x).sum::<f64>() / total;
        let squares: f64 = relative.iter().map(|(x, v)| weight(*v) * (x - mean).powi(2)).sum();
        squares - (relative.len() - 1) as f64
    };
    if excess(0.0) <= 0.0 {
        return Some(0.0);
    }
    // Falling in tau2, and below zero once tau2 is above all squares together.
    let (mut low, mut high) = (0.0, 1.0);
    while excess(high) > 0.0 && high < 1e12 {
        high *= 2.0;
    }
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        match excess(middle) > 0.0 {
            true => low = middle,
            false => high = middle,
        }
    }
    Some(high.sqrt())
}
