//! The points that can be used, with the standard errors that the fits use.

use super::{ErrorModel, FitSettings};
use crate::median;

/// Largest absolute y in any unit: beyond it the curves would overflow.
const MAX_VALUE: f64 = 1e100;

/// A measured point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// Position; above 0.
    pub x: f64,
    /// Measured value; signed.
    pub y: f64,
    /// Standard error of y, if it is known.
    pub error: Option<f64>,
}

/// Returns a standard error if a fit can use it: finite and not below zero.
pub fn usable_error(error: Option<f64>) -> Option<f64> {
    error.filter(|error| error.is_finite() && *error >= 0.0)
}

/// A point as the fits see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FitObservation {
    /// Position, as in [`FitData::xs`].
    pub x: f64,
    /// Value in units of [`FitData::unit`].
    pub y: f64,
    /// Level that its relative error refers to.
    pub level: f64,
    /// 1 / standard error.
    pub precision: f64,
}

/// The points that can be used, by x.
#[derive(Clone, Debug)]
pub struct FitData {
    /// Points.
    pub observations: Vec<FitObservation>,
    /// Different x as given, ascending.
    pub places: Vec<f64>,
    /// Different x as fitted: multiples of the smallest, if the settings say so.
    pub xs: Vec<f64>,
    /// Largest absolute y. All fits work in this unit, so that they depend on ratios only.
    pub unit: f64,
    /// Whether each point came with its error.
    pub errors_known: bool,
    /// Number of points that could not be used: x or y is no sensible number, or there is no
    /// standard error where the settings ask for one.
    pub ignored: usize,
}

impl FitData {
    pub(super) fn new(points: &[CurvePoint], settings: &FitSettings) -> Self {
        let mut usable = points.to_vec();
        usable.retain(|point| is_usable(point, settings));
        usable.sort_by(|a, b| a.x.total_cmp(&b.x).then(a.y.total_cmp(&b.y)));
        let mut places: Vec<f64> = usable.iter().map(|point| point.x).collect();
        places.dedup();
        let scale = match places.first() {
            Some(first) if settings.relative => *first,
            _ => 1.0,
        };
        let mut unit = 0.0_f64;
        for point in &usable {
            unit = unit.max(point.y.abs());
        }
        Self {
            observations: observe(&usable, unit, scale, settings),
            xs: places.iter().map(|x| x / scale).collect(),
            places,
            unit,
            errors_known: usable.iter().all(|point| usable_error(point.error).is_some()),
            ignored: points.len() - usable.len(),
        }
    }

    /// Returns the smallest and the largest x of the fits; 0 without points.
    pub fn range(&self) -> (f64, f64) {
        match (self.xs.first(), self.xs.last()) {
            (Some(first), Some(last)) => (*first, *last),
            _ => (0.0, 0.0),
        }
    }
}

fn is_usable(point: &CurvePoint, settings: &FitSettings) -> bool {
    let needs_error = settings.errors == ErrorModel::Smoothed;
    let has_error = !needs_error || usable_error(point.error).is_some();
    point.x > 0.0 && point.x.is_finite() && point.y.abs() <= MAX_VALUE && has_error
}

/// Scales the points for the fits, and gives each its standard error. No points where every y is
/// zero.
fn observe(
    usable: &[CurvePoint],
    unit: f64,
    scale: f64,
    settings: &FitSettings,
) -> Vec<FitObservation> {
    if unit <= 0.0 {
        return Vec::new();
    }
    let ys: Vec<f64> = usable.iter().map(|point| point.y / unit).collect();
    let levels = levels(&ys);
    let errors = standard_errors(usable, unit, &levels);
    let mut observations = Vec::with_capacity(usable.len());
    for (i, point) in usable.iter().enumerate() {
        let error = match settings.errors {
            ErrorModel::Given { .. } => errors[i],
            ErrorModel::Smoothed => smoothed(&errors, i),
        };
        observations.push(FitObservation {
            x: point.x / scale,
            y: ys[i],
            level: levels[i],
            precision: 1.0 / error.hypot(settings.tolerance * levels[i]),
        });
    }
    observations
}

/// Returns the standard error of each point, in the unit of the fits. A point without one among
/// points with one is as uncertain, relative to its level, as the worst of them.
fn standard_errors(usable: &[CurvePoint], unit: f64, levels: &[f64]) -> Vec<f64> {
    let mut given = Vec::with_capacity(usable.len());
    let mut worst = 0.0_f64;
    for (point, level) in usable.iter().zip(levels) {
        let error = usable_error(point.error).map(|error| error / unit);
        if let Some(error) = error {
            worst = worst.max(error / level);
        }
        given.push(error);
    }
    let mut errors = Vec::with_capacity(usable.len());
    for (error, level) in given.into_iter().zip(levels) {
        errors.push(error.unwrap_or(worst * level));
    }
    errors
}

/// Returns the level that each relative error refers to: a running median of three, which keeps
/// steps but does not let one low point give itself a high weight (Tukey 1977, chapter 7).
fn levels(ys: &[f64]) -> Vec<f64> {
    let sizes: Vec<f64> = ys.iter().map(|y| y.abs()).collect();
    let middle = median(&sizes).unwrap_or(0.0);
    let last = sizes.len().saturating_sub(1);
    let mut levels = Vec::with_capacity(sizes.len());
    for i in 0..sizes.len() {
        let mut near = [sizes[i.saturating_sub(1)], sizes[i], sizes[(i + 1).min(last)]];
        near.sort_by(f64::total_cmp);
        // Values that pass through zero would otherwise claim to be exact there.
        levels.push(near[1].max(0.1 * middle));
    }
    levels
}

/// Returns the median of an error and its nearest neighbours. Errors from few repetitions scatter
/// themselves, several-fold between points that are measured alike: a point with a small one by luck
/// must not rule the fit.
fn smoothed(errors: &[f64], at: usize) -> f64 {
    let reach = 2.min(at).min(errors.len() - 1 - at);
    let mut near = errors[at - reach..=at + reach].to_vec();
    near.sort_by(f64::total_cmp);
    near[reach].max(0.5 * errors[at])
}
