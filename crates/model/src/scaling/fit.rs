//! Weighted least squares, and the search for the knees' positions.

use super::points::Prepared;
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
    /// Inverse of R in the QR decomposition; times its transpose it is the covariance of the
    /// coefficients for the standard errors as given.
    inverse: Matrix,
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
        let mut projected = [0.0; MOST_TERMS];
        for (weight, row) in combination.iter().zip(&self.inverse) {
            for (sum, value) in projected.iter_mut().zip(row) {
                *sum += weight * value;
            }
        }
        projected.iter().map(|value| value * value).sum()
    }

    /// Positions and coefficients: what the fit was free to choose.
    pub(super) fn freedoms(&self) -> usize {
        self.shape.terms() + self.shape.knees()
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
    match shape.knees() {
        0 => vec![Vec::new()],
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
    fractions.iter().map(|f| low + f * (high - low)).collect()
}

/// QR decomposition by modified Gram-Schmidt (Bjorck 1967): stable enough for a quadratic in N
/// where the normal equations are not. `None` where the points cannot separate the terms.
fn solve(data: &Prepared, shape: Shape, brackets: &[usize], turns: Vec<f64>) -> Option<Fit> {
    let terms = shape.terms();
    let mut columns = vec![Vec::with_capacity(data.observations.len()); terms];
    let mut rest = Vec::with_capacity(data.observations.len());
    for seen in &data.observations {
        let basis = shape.basis(&turns, seen.members);
        for (column, value) in columns.iter_mut().zip(basis) {
            column.push(value * seen.precision);
        }
        rest.push(seen.cost * seen.precision);
    }
    let mut upper = Matrix::default();
    let mut right = [0.0; MOST_TERMS];
    for j in 0..terms {
        let (done, open) = columns.split_at_mut(j);
        let column = &mut open[0];
        let before = dot(column, column).sqrt();
        for (k, earlier) in done.iter().enumerate() {
            upper[k][j] = dot(earlier, column);
            subtract(column, upper[k][j], earlier);
        }
        let norm = dot(column, column).sqrt();
        if !norm.is_finite() || norm <= 1e-9 * before {
            return None;
        }
        upper[j][j] = norm;
        column.iter_mut().for_each(|value| *value /= norm);
        right[j] = dot(column, &rest);
        subtract(&mut rest, right[j], column);
    }
    let inverse = invert_upper(&upper, terms);
    let coefficients: Vec<f64> = inverse[..terms].iter().map(|row| dot(row, &right)).collect();
    let chi2 = dot(&rest, &rest);
    let sound = chi2.is_finite() && coefficients.iter().all(|c| c.is_finite());
    sound.then(|| Fit { shape, brackets: brackets.to_vec(), turns, coefficients, inverse, chi2 })
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

fn subtract(from: &mut [f64], times: f64, what: &[f64]) {
    for (value, other) in from.iter_mut().zip(what) {
        *value -= times * other;
    }
}

type Matrix = [[f64; MOST_TERMS]; MOST_TERMS];

fn invert_upper(upper: &Matrix, terms: usize) -> Matrix {
    let mut inverse = Matrix::default();
    for j in 0..terms {
        inverse[j][j] = 1.0 / upper[j][j];
        for i in (0..j).rev() {
            let sum: f64 = (i + 1..=j).map(|k| upper[i][k] * inverse[k][j]).sum();
            inverse[i][j] = -sum / upper[i][i];
        }
    }
    inverse
}
