//! The best fits of all forms with their turns between given x, the choice among them, and the
//! intervals of their answers.

use std::cmp::Ordering;

use super::points::{CurvePoint, FitData};
use super::{
    CLEARLY_BETTER, CONFIDENCE, CurveForm, ErrorModel, FitSettings, MAX_TERMS, Nesting, Turn,
};
use crate::distributions::{chi_squared_share_above, normal_quantile, student_quantile};
use crate::least_squares::{FitRow, LeastSquaresFit, least_squares};

/// Distance within which two criteria are equal to rounding.
const ROUNDING: f64 = 1e-7;

/// The common factor of all variances.
#[derive(Clone, Copy, Debug)]
struct CommonFactor {
    value: f64,
    /// Degrees of freedom that it was estimated with; none for errors that are known.
    freedom: Option<usize>,
}

/// The fits of all forms to some points.
#[derive(Clone, Debug)]
pub struct CurveAnalysis {
    /// Points as fitted.
    pub data: FitData,
    /// The best fit of each form for each choice of brackets.
    pub fits: Vec<FormFit>,
    settings: &'static FitSettings,
    /// The common factor of all variances; absent where each fit has its own.
    common: Option<CommonFactor>,
}

impl CurveAnalysis {
    /// Fits all forms that the points suffice for. Deterministic; the order of the points does not
    /// matter, and several may have the same x.
    pub fn new(points: &[CurvePoint], settings: &'static FitSettings) -> Self {
        let data = FitData::new(points, settings);
        let mut fits = Vec::new();
        for number in 0..settings.forms.len() {
            if suffices(&data, settings, number) {
                fits.extend(fit_form(&data, settings, number));
            }
        }
        let common = common_factor(&data, settings, &fits);
        let mut analysis = Self { fits: Vec::new(), data, settings, common };
        for fit in fits {
            let scored = analysis.score(fit);
            analysis.fits.push(scored);
        }
        analysis
    }

    /// Adds the criterion to a fit.
    fn score(&self, fit: FormFit) -> FormFit {
        let count = self.data.observations.len() as f64;
        let (chi2, charge) = (fit.solution.chi2, fit.form.charge());
        let criterion = match self.common {
            Some(factor) => chi2 / factor.value + charge * count.ln(),
            None => schwarz(chi2, count, charge),
        };
        FormFit { criterion, ..fit }
    }

    /// Returns the best fit, or the best of the simplest forms inside its own that is not clearly
    /// worse.
    pub fn chosen(&self) -> Option<&FormFit> {
        let leaders = self.leaders();
        let best = lowest(&leaders)?;
        let limit = best.criterion + CLEARLY_BETTER;
        let mut simpler = leaders;
        simpler.retain(|fit| self.contains(best.number, fit.number) && fit.criterion <= limit);
        let simplest = simpler.iter().map(|fit| self.richness(fit.form)).min();
        simpler.retain(|fit| Some(self.richness(fit.form)) == simplest);
        lowest(&simpler).or(Some(best))
    }

    /// Returns a number that is smaller for a simpler form.
    fn richness(&self, form: &CurveForm) -> usize {
        match self.settings.nesting {
            Nesting::Terms => form.freedoms(),
            Nesting::Turns => form.turns.len(),
        }
    }

    /// Returns the best fit of each form, in the order of the forms.
    pub fn leaders(&self) -> Vec<&FormFit> {
        let mut leaders = Vec::new();
        for number in 0..self.settings.forms.len() {
            let mut of_form: Vec<&FormFit> = self.fits.iter().collect();
            of_form.retain(|fit| fit.number == number);
            leaders.extend(lowest(&of_form));
        }
        leaders
    }

    /// Returns by how much the criterion of the best fit with fewer turns lies above this one's.
    /// None for a fit without turns.
    pub fn support(&self, fit: &FormFit) -> Option<f64> {
        let mut least: Option<f64> = None;
        for other in &self.fits {
            if other.turns.len() < fit.turns.len() {
                let lead = other.criterion - fit.criterion;
                least = Some(least.unwrap_or(lead).min(lead));
            }
        }
        least
    }

    /// Returns whether one form is simpler than another and inside it.
    pub fn contains(&self, form: usize, simpler: usize) -> bool {
        let forms = self.settings.forms;
        let (one, other) = (&forms[form], &forms[simpler]);
        match self.settings.nesting {
            Nesting::Turns => other.turns.len() < one.turns.len(),
            Nesting::Terms => {
                let has_its_terms = other.terms.iter().all(|term| one.terms.contains(term));
                form != simpler && (has_its_terms || one.contains.contains(&simpler))
            }
        }
    }

    /// Returns the best fit of a form, whether or not there are points enough to choose it.
    pub fn fit(&self, number: usize) -> Option<FormFit> {
        let mut best: Option<FormFit> = None;
        for fit in fit_form(&self.data, self.settings, number) {
            let fit = self.score(fit);
            match &best {
                Some(known) if known.criterion.total_cmp(&fit.criterion).is_le() => {}
                _ => best = Some(fit),
            }
        }
        best
    }

    /// Returns the half-width of the interval of a combination of a fit's coefficients, given its
    /// turns. Without points beyond its freedoms there is none.
    pub fn half_width(&self, fit: &FormFit, combination: [f64; MAX_TERMS]) -> Option<f64> {
        let left = self.data.observations.len().checked_sub(fit.form.freedoms())?;
        let factor = match self.common {
            Some(factor) => factor,
            None if left == 0 => CommonFactor { value: 1.0, freedom: None },
            None => {
                CommonFactor { value: (fit.solution.chi2 / left as f64).max(1.0), freedom: None }
            }
        };
        let variance = fit.solution.variance_of(combination) * factor.value;
        Some(quantile(factor.freedom)? * variance.sqrt())
    }

    /// Returns the first and the last bracket that all fits with as many knees leave open for the
    /// fit's turn of this number.
    pub fn brackets(&self, fit: &FormFit, turn: usize) -> (usize, usize) {
        let mut scored: Vec<(usize, f64)> = Vec::new();
        for other in &self.fits {
            if other.form.knees() == fit.form.knees() {
                scored.push((other.brackets[turn], other.criterion));
            }
        }
        let mut weights = vec![0.0; self.data.xs.len()];
        for (bracket, weight) in akaike_weights(&scored) {
            weights[bracket] += weight;
        }
        credible_span(weights.into_iter().enumerate().collect(), fit.brackets[turn])
    }

    /// Returns the probability that points which do follow the fit lie as far off it, all together,
    /// as these: the chi-squared test. None without degrees of freedom, and where the errors are
    /// estimated from the scatter about the fits, which they then cannot test.
    pub fn lack_of_fit(&self, fit: &FormFit) -> Option<f64> {
        let left = self.data.observations.len().checked_sub(fit.form.freedoms())?;
        if self.data.errors_known { lack_of_fit(fit.solution.chi2, left) } else { None }
    }
}

/// Returns whether there are points enough for a form.
fn suffices(data: &FitData, settings: &FitSettings, number: usize) -> bool {
    let form = &settings.forms[number];
    let (fewest, left) = match settings.errors {
        ErrorModel::Given { fewest, left } if !data.errors_known && form.freedoms() > 1 => {
            (fewest, left[form.turns.len()])
        }
        _ => (0, 1),
    };
    let count = data.observations.len();
    data.places.len() >= settings.fewest && count >= fewest.max(form.freedoms() + left)
}

/// Returns the common factor of all variances: 1 for known errors, else that of the closest of all
/// fits, a rich one therefore. Its degrees of freedom are less by what the criterion charges for it,
/// as the best of many places fits better than one place would. Every fit has the same factor: taken
/// from each itself, a poor one would excuse its own misfit (Burnham and Anderson 2002, section
/// 2.5).
fn common_factor(data: &FitData, settings: &FitSettings, fits: &[FormFit]) -> Option<CommonFactor> {
    if settings.errors == ErrorModel::Smoothed {
        return None;
    }
    let closest = fits.iter().min_by(|a, b| a.solution.chi2.total_cmp(&b.solution.chi2));
    match closest {
        Some(fit) if !data.errors_known => {
            let charge = fit.form.charge() as usize;
            let left = data.observations.len().saturating_sub(charge).max(1);
            let value = (fit.solution.chi2 / left as f64).max(1.0);
            Some(CommonFactor { value, freedom: Some(left) })
        }
        _ => Some(CommonFactor { value: 1.0, freedom: None }),
    }
}

/// Returns minus twice the log-likelihood plus ln n for each of `charged` freedoms (Schwarz 1978).
/// The errors are the given ones times a common factor of at least 1 (Birge 1932), here replaced by
/// its maximum-likelihood value.
fn schwarz(chi2: f64, count: f64, charged: f64) -> f64 {
    let dispersion = (chi2 / count).max(1.0);
    count * dispersion.ln() + chi2 / dispersion + charged * count.ln()
}

/// Returns the fit with the lowest criterion; of equal ones the first.
fn lowest<'a>(fits: &[&'a FormFit]) -> Option<&'a FormFit> {
    let mut best = *fits.first()?;
    for fit in fits {
        if fit.criterion < best.criterion - ROUNDING {
            best = fit;
        }
    }
    Some(best)
}

/// Returns the upper tail of the chi-squared distribution. None without degrees of freedom.
pub fn lack_of_fit(chi2: f64, freedom: usize) -> Option<f64> {
    if freedom == 0 {
        return None;
    }
    chi_squared_share_above(chi2, freedom as f64)
}

/// Returns half of a [`CONFIDENCE`] interval in standard errors: Student's with `freedom` degrees
/// where the errors are estimated from the points, the normal distribution's where they are known
/// (none).
pub fn quantile(freedom: Option<usize>) -> Option<f64> {
    match freedom {
        Some(left) => student_quantile(CONFIDENCE, left as f64),
        None => normal_quantile(CONFIDENCE),
    }
}

/// Returns the Akaike weights (Burnham and Anderson 2002, section 2.9) of places with their
/// criterion.
pub fn akaike_weights<P: Copy>(scored: &[(P, f64)]) -> Vec<(P, f64)> {
    let mut best = f64::INFINITY;
    for (_, criterion) in scored {
        best = best.min(*criterion);
    }
    let mut weights = Vec::with_capacity(scored.len());
    for (place, criterion) in scored {
        weights.push((*place, ((best - criterion) / 2.0).exp()));
    }
    weights
}

/// Returns the first and the last of the places that carry [`CONFIDENCE`] of the weight, summed from
/// the heaviest down, with everything between them and `chosen`.
pub fn credible_span<P: Copy + PartialOrd>(mut weights: Vec<(P, f64)>, chosen: P) -> (P, P) {
    let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
    weights.sort_by(|a, b| {
        let by_place = a.0.partial_cmp(&b.0).unwrap_or(Ordering::Equal);
        b.1.total_cmp(&a.1).then(by_place)
    });
    let (mut first, mut last) = (chosen, chosen);
    let mut covered = 0.0;
    for (place, weight) in weights {
        // A total that is no number is never covered, nor is a place of it needed.
        let is_needed = covered < CONFIDENCE * total;
        if !is_needed {
            break;
        }
        covered += weight;
        first = if place < first { place } else { first };
        last = if place > last { place } else { last };
    }
    (first, last)
}

/// A form fitted with its turns in given brackets.
#[derive(Clone, Debug)]
pub struct FormFit {
    /// The form.
    pub form: &'static CurveForm,
    /// Index of the form in the settings.
    pub number: usize,
    /// Bracket of each turn: i for the one between the different x of number i and i + 1.
    pub brackets: Vec<usize>,
    /// Places of the turns.
    pub turns: Vec<f64>,
    /// Solution; its coefficients are in units of [`FitData::unit`].
    pub solution: LeastSquaresFit<MAX_TERMS>,
    /// Penalised criterion; lower is better, only differences mean anything.
    pub criterion: f64,
}

impl FormFit {
    /// Returns the fitted y.
    pub fn at(&self, x: f64) -> f64 {
        self.combine(self.basis(x))
    }

    /// Returns the values of the terms at x.
    pub fn basis(&self, x: f64) -> [f64; MAX_TERMS] {
        self.form.basis(&self.turns, x)
    }

    /// Returns a linear combination of the coefficients.
    pub fn combine(&self, basis: [f64; MAX_TERMS]) -> f64 {
        let mut sum = 0.0;
        for (coefficient, value) in self.solution.coefficients.iter().zip(basis) {
            sum += coefficient * value;
        }
        sum
    }
}

/// Fits a form for every admissible choice of brackets; the fits have no criterion yet.
fn fit_form(data: &FitData, settings: &FitSettings, number: usize) -> Vec<FormFit> {
    let mut fits = Vec::new();
    for brackets in bracket_choices(data, &settings.forms[number], settings.between) {
        fits.extend(best_within(data, settings, number, &brackets));
    }
    fits
}

/// Returns the admissible choices of a bracket for each turn.
fn bracket_choices(data: &FitData, form: &CurveForm, between: usize) -> Vec<Vec<usize>> {
    let count = data.xs.len().saturating_sub(1);
    let last = count.saturating_sub(1);
    let mut choices = Vec::new();
    match form.turns {
        [] => choices.push(Vec::new()),
        // All of them belong to one scale.
        [Turn::Scale(_), ..] => {
            for bracket in 0..count {
                // By three times the scale 95 % of the way is done.
                if 3.0 * data.xs[bracket + 1] <= data.range().1 {
                    choices.push(vec![bracket; form.turns.len()]);
                }
            }
        }
        [Turn::FarScale(_), ..] => choices.push(vec![last; form.turns.len()]),
        [_] => choices.extend((form.before - 1..count).map(|bracket| vec![bracket])),
        _ => {
            // Two x on each side, or two turns would explain two outliers.
            for first in 1..last {
                for second in first + between..last {
                    choices.push(vec![first, second]);
                }
            }
        }
    }
    choices
}

/// Returns the closest fit of a form with its turns within the brackets, if one is admissible; of
/// equal ones the first.
fn best_within(
    data: &FitData,
    settings: &FitSettings,
    number: usize,
    brackets: &[usize],
) -> Option<FormFit> {
    let form = &settings.forms[number];
    let mut best: Option<FormFit> = None;
    for turns in turns_within(data, form, brackets) {
        let rows = data.observations.iter().map(|seen| FitRow {
            basis: form.basis(&turns, seen.x),
            y: seen.y,
            precision: seen.precision,
        });
        let Some(solution) = least_squares(rows, form.terms.len()) else { continue };
        if !form.admits(&solution.coefficients, &turns, data.range()) {
            continue;
        }
        let is_closer = match &best {
            Some(best) => solution.chi2 < best.solution.chi2 - 1e-9,
            None => true,
        };
        if is_closer {
            let brackets = brackets.to_vec();
            best = Some(FormFit { form, number, brackets, turns, solution, criterion: 0.0 });
        }
    }
    best
}

/// Returns all combinations of places within the brackets.
fn turns_within(data: &FitData, form: &CurveForm, brackets: &[usize]) -> Vec<Vec<f64>> {
    let mut choices: Vec<Vec<f64>> = vec![Vec::new()];
    for (&bracket, turn) in brackets.iter().zip(form.turns) {
        let places = turn.places(data.xs[bracket], data.xs[bracket + 1]);
        let mut longer = Vec::new();
        for start in &choices {
            for place in &places {
                longer.push([&start[..], &[*place]].concat());
            }
        }
        choices = longer;
    }
    choices
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lack_of_fit_is_that_of_the_chi_squared_distribution() {
        // Upper 5 % points from any table: 3.841 for 1 degree of freedom, 18.307 for 10.
        for (chi2, freedom) in [(3.841, 1), (18.307, 10)] {
            let p = lack_of_fit(chi2, freedom).unwrap();
            assert!((p - 0.05).abs() < 1e-4, "{p}");
        }
        assert_eq!(lack_of_fit(1.0, 0), None);
    }
}
