//! The points that can be used, with the standard errors that the fits use.

use super::{ErrorModel, FitSettings};
use crate::median;

/// No y is larger in any unit; beyond it the curves would overflow.
const LARGEST: f64 = 1e100;

/// A measured point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// Where; above 0.
    pub x: f64,
    /// What was measured; signed.
    pub y: f64,
    /// Its standard error, if it is known.
    pub error: Option<f64>,
}

/// A standard error that a fit can use: finite and not below zero.
pub fn usable_error(error: Option<f64>) -> Option<f64> {
    error.filter(|error| error.is_finite() && *error >= 0.0)
}

/// A point as the fits see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FitObservation {
    /// See [`FitData::xs`].
    pub x: f64,
    /// In units of [`FitData::unit`].
    pub y: f64,
    /// The level that its relative error refers to.
    pub level: f64,
    /// 1 / standard error.
    pub precision: f64,
}

/// The points that can be used, by x.
#[derive(Clone, Debug)]
pub struct FitData {
    /// The points.
    pub observations: Vec<FitObservation>,
    /// The different x as given, ascending.
    pub places: Vec<f64>,
    /// The same as fitted: multiples of the smallest, if the settings say so.
    pub xs: Vec<f64>,
    /// The largest absolute y. All fits work in this unit, so that they depend on ratios only.
    pub unit: f64,
    /// Whether each point came with its error.
    pub errors_known: bool,
    /// Points that could not be used: x or y is no sensible number, or there is no standard error
    /// where the settings ask for one.
    pub ignored: usize,
}

impl FitData {
    pub(super) fn new(points: &[CurvePoint], settings: &FitSettings) -> Self {
        let needs_error = settings.errors == ErrorModel::Smoothed;
        let is_usable = |point: &CurvePoint| {
            let has_error = !needs_error || usable_error(point.error).is_some();
            point.x > 0.0 && point.x.is_finite() && point.y.abs() <= LARGEST && has_error
        };
        let mut usable: Vec<CurvePoint> = points.iter().copied().filter(is_usable).collect();
        usable.sort_by(|a, b| a.x.total_cmp(&b.x).then(a.y.total_cmp(&b.y)));
        let mut places: Vec<f64> = usable.iter().map(|point| point.x).collect();
        places.dedup();
        let scale = if settings.relative { places.first().copied().unwrap_or(1.0) } else { 1.0 };
        let unit = usable.iter().map(|point| point.y.abs()).fold(0.0, f64::max);
        Self {
            observations: observe(&usable, unit, scale, settings),
            xs: places.iter().map(|x| x / scale).collect(),
            places,
            unit,
            errors_known: usable.iter().all(|point| usable_error(point.error).is_some()),
            ignored: points.len() - usable.len(),
        }
    }

    /// Smallest and largest x of the fits; 0 without points.
    pub fn range(&self) -> (f64, f64) {
        (self.xs.first().copied().unwrap_or(0.0), self.xs.last().copied().unwrap_or(0.0))
    }
}

fn observe(
    usable: &[CurvePoint],
    unit: f64,
    scale: f64,
    settings: &FitSettings,
) -> Vec<FitObservation> {
    let ys: Vec<f64> = usable.iter().map(|point| point.y / unit).collect();
    let levels = levels(&ys);
    let given = || usable.iter().map(|p| Some(usable_error(p.error)? / unit)).zip(&levels);
    // A point without a standard error among points with one: as uncertain as the worst of them.
    let worst = given().filter_map(|(error, level)| Some(error? / level)).fold(0.0, f64::max);
    let errors: Vec<f64> = given().map(|(error, level)| error.unwrap_or(worst * level)).collect();
    let observation = |(i, point): (usize, &CurvePoint)| {
        let error = match settings.errors {
            ErrorModel::Given { .. } => errors[i],
            ErrorModel::Smoothed => smoothed(&errors, i),
        };
        FitObservation {
            x: point.x / scale,
            y: ys[i],
            level: levels[i],
            precision: 1.0 / error.hypot(settings.tolerance * levels[i]),
        }
    };
    usable.iter().enumerate().filter(|_| unit > 0.0).map(observation).collect()
}

/// The level that each relative error refers to: a running median of three, which keeps steps but
/// does not let one low point give itself a high weight (Tukey 1977, chapter 7).
fn levels(ys: &[f64]) -> Vec<f64> {
    let sizes: Vec<f64> = ys.iter().map(|y| y.abs()).collect();
    let middle = median(&sizes).unwrap_or(0.0);
    let last = sizes.len().saturating_sub(1);
    let level = |i: usize| {
        let mut near = [sizes[i.saturating_sub(1)], sizes[i], sizes[(i + 1).min(last)]];
        near.sort_by(f64::total_cmp);
        // Values that pass through zero would otherwise claim to be exact there.
        near[1].max(0.1 * middle)
    };
    (0..sizes.len()).map(level).collect()
}

/// Median of an error and its nearest neighbours. Errors from few repetitions scatter themselves,
/// several-fold between points that are measured alike: a point with a small one by luck must not
/// rule the fit.
fn smoothed(errors: &[f64], at: usize) -> f64 {
    let reach = 2.min(at).min(errors.len() - 1 - at);
    let mut near = errors[at - reach..=at + reach].to_vec();
    near.sort_by(f64::total_cmp);
    near[reach].max(0.5 * errors[at])
}
