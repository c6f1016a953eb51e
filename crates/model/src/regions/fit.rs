//! The best fit of a shape with its breaks between given sizes, for all such choices.

use super::BreakKind;
use super::observe::{Observation, Prepared};
use super::shape::{MOST_TERMS, Shape};
use crate::curve::{KNEE_CHARGE, Solution, least_squares, quantile, schwarz, variance_of};

/// Places of a hinge that are tried between two sizes, as fractions of their ratio.
const PLACES: [f64; 3] = [0.0, 1.0 / 3.0, 2.0 / 3.0];

/// A shape fitted with its breaks in given brackets.
#[derive(Debug, Clone)]
pub(super) struct Fit {
    pub(super) shape: Shape,
    /// Bracket i lies between sizes i and i + 1.
    pub(super) brackets: Vec<usize>,
    pub(super) turns: Vec<f64>,
    pub(super) solution: Solution<MOST_TERMS>,
    /// The penalised criterion; lower is better, only differences mean anything.
    pub(super) criterion: f64,
}

impl Fit {
    pub(super) fn at(&self, x: f64) -> f64 {
        self.combine(self.shape.basis(&self.turns, x))
    }

    pub(super) fn combine(&self, basis: [f64; MOST_TERMS]) -> f64 {
        let terms = self.solution.coefficients.iter().zip(basis);
        terms.map(|(coefficient, value)| coefficient * value).sum()
    }

    /// Half-width of the interval of a combination of coefficients, given the places.
    pub(super) fn half_width(
        &self,
        data: &Prepared,
        combination: [f64; MOST_TERMS],
    ) -> Option<f64> {
        let left = data.observations.len().checked_sub(self.shape.freedoms())?;
        let dispersion = match left {
            0 => 1.0,
            _ => (self.solution.chi2 / left as f64).max(1.0),
        };
        let variance = variance_of(&self.solution.inverse, combination) * dispersion;
        Some(quantile(None)? * variance.sqrt())
    }
}

/// The best fit of `shape` for every admissible choice of brackets.
pub(super) fn fits(data: &Prepared, shape: Shape) -> Vec<Fit> {
    if data.observations.len() <= shape.freedoms() {
        return Vec::new();
    }
    bracket_choices(data, shape)
        .into_iter()
        .filter_map(|brackets| best_within(data, shape, &brackets))
        .collect()
}

fn bracket_choices(data: &Prepared, shape: Shape) -> Vec<Vec<usize>> {
    let count = data.sizes.len().saturating_sub(1);
    let first = shape.sizes_before() - 1;
    match shape.breaks().len() {
        0 => vec![Vec::new()],
        1 => (first..count).map(|i| vec![i]).collect(),
        _ => {
            // Between the breaks one size is enough: on a grid of doublings, more sizes than that
            // do not lie between half a cache and a whole one. Before and after, two are needed, or
            // two breaks would explain two outliers.
            let last = count.saturating_sub(1);
            (1..last).flat_map(|i| (i + 1..last).map(move |j| vec![i, j])).collect()
        }
    }
}

fn best_within(data: &Prepared, shape: Shape, brackets: &[usize]) -> Option<Fit> {
    let mut best: Option<Fit> = None;
    for turns in turns_within(data, shape, brackets) {
        let Some(fit) = solve(data, shape, brackets, turns) else {
            continue;
        };
        let better = best.as_ref().is_none_or(|b| fit.solution.chi2 < b.solution.chi2 - 1e-9);
        if better {
            best = Some(fit);
        }
    }
    best
}

/// All combinations of places within the brackets.
fn turns_within(data: &Prepared, shape: Shape, brackets: &[usize]) -> Vec<Vec<f64>> {
    let mut choices: Vec<Vec<f64>> = vec![Vec::new()];
    for (&bracket, kind) in brackets.iter().zip(shape.breaks()) {
        let (low, high) = (data.xs[bracket], data.xs[bracket + 1]);
        let places: Vec<f64> = match kind {
            // Nothing was measured inside: any place of a step there fits alike.
            BreakKind::Step => vec![(low * high).sqrt()],
            BreakKind::Hinge => PLACES.iter().map(|f| low * (high / low).powf(*f)).collect(),
        };
        let longer = |start: &Vec<f64>| {
            places.iter().map(|&turn| [start.as_slice(), &[turn]].concat()).collect::<Vec<_>>()
        };
        choices = choices.iter().flat_map(longer).collect();
    }
    choices
}

fn solve(data: &Prepared, shape: Shape, brackets: &[usize], turns: Vec<f64>) -> Option<Fit> {
    let row = |seen: &Observation| (shape.basis(&turns, seen.x), seen.cost, seen.precision);
    let solution = least_squares(data.observations.iter().map(row), shape.terms())?;
    let charged = shape.terms() as f64 + KNEE_CHARGE * shape.breaks().len() as f64;
    let criterion = schwarz(solution.chi2, data.observations.len(), charged);
    Some(Fit { shape, brackets: brackets.to_vec(), turns, solution, criterion })
}
