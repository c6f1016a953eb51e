//! The search for the knees' positions.

use crate::curve::{least_squares, variance_of};

use super::points::{Observation, Prepared};
use super::shape::{MOST_TERMS, Shape};

/// Positions of a hinge that are tried within one bracket, as fractions of it.
const HINGES: [f64; 4] = [0.0, 0.25, 0.5, 0.75];
/// The same for the two ends of a ramp.
const RAMP_ENDS: [[f64; 2]; 2] = [[0.0, 0.5], [0.5, 1.0]];

/// A shape fitted with its knees in given brackets.
#[derive(Debug, Clone)]
pub(super) struct Fit {
    pub(super) shape: Shape,
    /// Bracket i lies between sizes i and i + 1.
    pub(super) brackets: Vec<usize>,
    pub(super) turns: Vec<f64>,
    /// In units of [`Prepared::unit`].
    pub(super) coefficients: Vec<f64>,
    /// See [`crate::curve`]'s least squares.
    inverse: [[f64; MOST_TERMS]; MOST_TERMS],
    /// Weighted sum of squared residuals.
    pub(super) chi2: f64,
}

impl Fit {
    pub(super) fn at(&self, members: f64) -> f64 {
        self.combine(self.shape.basis(&self.turns, members))
    }

    pub(super) fn combine(&self, basis: [f64; MOST_TERMS]) -> f64 {
        let terms = self.coefficients.iter().zip(basis);
        terms.map(|(coefficient, value)| coefficient * value).sum()
    }

    /// Variance of a linear combination of the coefficients, for standard errors as given.
    pub(super) fn variance_of(&self, combination: [f64; MOST_TERMS]) -> f64 {
        variance_of(&self.inverse, combination)
    }
}

/// The best fit of `shape` for every admissible choice of brackets.
pub(super) fn fits(data: &Prepared, shape: Shape) -> Vec<Fit> {
    bracket_choices(data, shape)
        .into_iter()
        .filter_map(|brackets| best_within(data, shape, &brackets))
        .collect()
}

fn bracket_choices(data: &Prepared, shape: Shape) -> Vec<Vec<usize>> {
    let count = data.sizes.len().saturating_sub(1);
    match shape.places() {
        0 => vec![Vec::new()],
        // A plateau that is not measured is none: by three times this scale 95 % of the way is done.
        _ if shape == Shape::Saturating => {
            let reached = |i: &usize| 3.0 * f64::from(data.sizes[*i + 1]) <= data.largest();
            (0..count).filter(reached).map(|i| vec![i]).collect()
        }
        1 => {
            // A law with a slope needs two sizes before its knee to have one.
            let sloped = shape != Shape::Step;
            (usize::from(sloped)..count).map(|i| vec![i]).collect()
        }
        _ => {
            // Two sizes in every part, or two knees would explain two outliers.
            let pairs =
                (1..count).flat_map(|i| (i + 2..count.saturating_sub(1)).map(move |j| [i, j]));
            pairs.map(Vec::from).collect()
        }
    }
}

fn best_within(data: &Prepared, shape: Shape, brackets: &[usize]) -> Option<Fit> {
    let mut choices: Vec<Vec<f64>> = vec![Vec::new()];
    for (which, &bracket) in brackets.iter().enumerate() {
        let places = places(data, shape, which, bracket);
        let extend = |start: &Vec<f64>| {
            let longer = |&turn: &f64| [start.as_slice(), &[turn]].concat();
            places.iter().map(longer).collect::<Vec<_>>()
        };
        choices = choices.iter().flat_map(extend).collect();
    }
    let range = (data.smallest(), data.largest());
    let mut best: Option<Fit> = None;
    for turns in choices {
        let Some(fit) = solve(data, shape, brackets, turns) else {
            continue;
        };
        let better = best.as_ref().is_none_or(|b| fit.chi2 < b.chi2 - 1e-9);
        if better && shape.admits(&fit.coefficients, &fit.turns, range) {
            best = Some(fit);
        }
    }
    best
}

fn places(data: &Prepared, shape: Shape, which: usize, bracket: usize) -> Vec<f64> {
    let low = f64::from(data.sizes[bracket]);
    let high = f64::from(data.sizes[bracket + 1]);
    // Nothing was measured inside the bracket: any place of a step there fits alike.
    if shape.has_steps() {
        return vec![(low * high).sqrt()];
    }
    let fractions: &[f64] = match shape {
        Shape::Ramp => &RAMP_ENDS[which],
        _ => &HINGES,
    };
    let place = |f: &f64| match shape {
        Shape::FlatLogarithmic | Shape::Saturating => low * (high / low).powf(*f),
        _ => low + f * (high - low),
    };
    fractions.iter().map(place).collect()
}

fn solve(data: &Prepared, shape: Shape, brackets: &[usize], turns: Vec<f64>) -> Option<Fit> {
    let row = |seen: &Observation| (shape.basis(&turns, seen.members), seen.cost, seen.precision);
    let terms = shape.terms();
    let solved = least_squares(data.observations.iter().map(row), terms)?;
    let coefficients = solved.coefficients[..terms].to_vec();
    let (inverse, chi2) = (solved.inverse, solved.chi2);
    Some(Fit { shape, brackets: brackets.to_vec(), turns, coefficients, inverse, chi2 })
}
