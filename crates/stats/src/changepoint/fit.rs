//! The best fit of a form with its turns between given x, for all such choices.

use super::Settings;
use super::form::{Form, MOST_TERMS, Turn};
use super::points::Data;
use crate::least_squares::{Row, Solution, least_squares};

/// A form fitted with its turns in given brackets.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The form.
    pub form: &'static Form,
    /// Its number in the settings.
    pub number: usize,
    /// For each turn i of the bracket between the different x of number i and i + 1.
    pub brackets: Vec<usize>,
    /// The places of the turns.
    pub turns: Vec<f64>,
    /// Its coefficients are in units of [`Data::unit`].
    pub solution: Solution<MOST_TERMS>,
    /// The penalised criterion; lower is better, only differences mean anything.
    pub criterion: f64,
}

impl Fit {
    /// The fitted y.
    pub fn at(&self, x: f64) -> f64 {
        self.combine(self.basis(x))
    }

    /// The values of the terms at x.
    pub fn basis(&self, x: f64) -> [f64; MOST_TERMS] {
        self.form.basis(&self.turns, x)
    }

    /// A linear combination of the coefficients.
    pub fn combine(&self, basis: [f64; MOST_TERMS]) -> f64 {
        let terms = self.solution.coefficients.iter().zip(basis);
        terms.map(|(coefficient, value)| coefficient * value).sum()
    }
}

/// The best fit of a form for every admissible choice of brackets, not scored.
pub(super) fn fits(data: &Data, settings: &Settings, number: usize) -> Vec<Fit> {
    let form = &settings.forms[number];
    let choices = bracket_choices(data, form, settings.between);
    choices.into_iter().filter_map(|brackets| best_within(data, form, number, &brackets)).collect()
}

fn bracket_choices(data: &Data, form: &Form, between: usize) -> Vec<Vec<usize>> {
    let count = data.xs.len().saturating_sub(1);
    match form.turns {
        [] => vec![Vec::new()],
        [Turn::Scale(_)] => {
            // By three times the scale 95 % of the way is done.
            let is_reached = |i: &usize| 3.0 * data.xs[*i + 1] <= data.range().1;
            (0..count).filter(is_reached).map(|i| vec![i]).collect()
        }
        [_] => (form.before - 1..count).map(|i| vec![i]).collect(),
        _ => {
            // Two x on each side, or two turns would explain two outliers.
            let last = count.saturating_sub(1);
            (1..last).flat_map(|i| (i + between..last).map(move |j| vec![i, j])).collect()
        }
    }
}

fn best_within(data: &Data, form: &'static Form, number: usize, brackets: &[usize]) -> Option<Fit> {
    let mut best: Option<Fit> = None;
    for turns in turns_within(data, form, brackets) {
        let row = |seen: &super::Observation| Row {
            basis: form.basis(&turns, seen.x),
            y: seen.y,
            precision: seen.precision,
        };
        let Some(solution) = least_squares(data.observations.iter().map(row), form.terms.len())
        else {
            continue;
        };
        let is_better = best.as_ref().is_none_or(|b| solution.chi2 < b.solution.chi2 - 1e-9);
        if is_better && form.admits(&solution.coefficients, &turns, data.range()) {
            let brackets = brackets.to_vec();
            best = Some(Fit { form, number, brackets, turns, solution, criterion: 0.0 });
        }
    }
    best
}

/// All combinations of places within the brackets.
fn turns_within(data: &Data, form: &Form, brackets: &[usize]) -> Vec<Vec<f64>> {
    let mut choices: Vec<Vec<f64>> = vec![Vec::new()];
    for (&bracket, turn) in brackets.iter().zip(form.turns) {
        let places = turn.places(data.xs[bracket], data.xs[bracket + 1]);
        let longer = |start: &Vec<f64>| {
            places.iter().map(|&place| [start.as_slice(), &[place]].concat()).collect::<Vec<_>>()
        };
        choices = choices.iter().flat_map(longer).collect();
    }
    choices
}
