//! The usable points, with the standard errors that the fits use.

use super::{EQUIVALENCE, Point};
use crate::curve::{LARGEST_COST, levels, sound_error};

/// One usable point, in units of [`Prepared::unit`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Observation {
    /// Size over the smallest size: the fits see ratios only.
    pub(super) x: f64,
    pub(super) cost: f64,
    /// The level that its relative error refers to.
    pub(super) level: f64,
    /// 1 / standard error.
    pub(super) precision: f64,
}

/// The usable points in order of size.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) observations: Vec<Observation>,
    /// Different sizes, ascending.
    pub(super) sizes: Vec<u64>,
    /// The same over the smallest of them.
    pub(super) xs: Vec<f64>,
    /// The largest absolute cost. All fits work in this unit.
    pub(super) unit: f64,
    pub(super) ignored: usize,
}

impl Prepared {
    pub(super) fn new(points: &[Point]) -> Self {
        // Differences of long hops scatter more than those of short ones, so a point's error cannot be guessed from the scatter of the others.
        let error = |point: &Point| sound_error(point.standard_error_ns);
        let usable = |point: &Point| {
            point.size > 0 && point.cost_ns.abs() <= LARGEST_COST && error(point).is_some()
        };
        let mut used: Vec<Point> = points.iter().copied().filter(usable).collect();
        used.sort_by(|a, b| a.size.cmp(&b.size).then(a.cost_ns.total_cmp(&b.cost_ns)));
        let mut sizes: Vec<u64> = used.iter().map(|point| point.size).collect();
        sizes.dedup();
        let smallest = sizes.first().map_or(1.0, |&size| size as f64);
        let unit = used.iter().map(|point| point.cost_ns.abs()).fold(0.0, f64::max);
        Prepared {
            observations: if unit > 0.0 { observe(&used, unit, smallest) } else { Vec::new() },
            xs: sizes.iter().map(|&size| size as f64 / smallest).collect(),
            sizes,
            unit,
            ignored: points.len() - used.len(),
        }
    }
}

fn observe(used: &[Point], unit: f64, smallest: f64) -> Vec<Observation> {
    let costs: Vec<f64> = used.iter().map(|point| point.cost_ns / unit).collect();
    let levels = levels(&costs);
    let error = |point: &Point| sound_error(point.standard_error_ns).unwrap_or(0.0) / unit;
    let errors: Vec<f64> = used.iter().map(error).collect();
    let observation = |(i, point): (usize, &Point)| Observation {
        x: point.size as f64 / smallest,
        cost: costs[i],
        level: levels[i],
        precision: 1.0 / smoothed(&errors, i).hypot(EQUIVALENCE * levels[i]),
    };
    used.iter().enumerate().map(observation).collect()
}

/// Median of an error and its nearest neighbours. Errors from few rounds scatter themselves, several-fold
/// between sizes that are measured alike: a point with a small one by luck must not rule the fit.
fn smoothed(errors: &[f64], at: usize) -> f64 {
    let reach = 2.min(at).min(errors.len() - 1 - at);
    let mut near = errors[at - reach..=at + reach].to_vec();
    near.sort_by(f64::total_cmp);
    near[reach].max(0.5 * errors[at])
}
