//! The best fits of all forms with their turns between given x, the choice among them, and how far
//! its answers are known.

use statrs::distribution::{ChiSquared, ContinuousCDF};

use super::points::{CurvePoint, FitData};
use super::{
    CLEARLY_BETTER, CONFIDENCE, CurveForm, ErrorModel, FitSettings, MAX_TERMS, Nesting, Turn,
};
use crate::least_squares::{FitRow, LeastSquaresFit, least_squares};
use crate::location::{normal_quantile, student_quantile};

/// Criteria nearer to each other than this are equal to rounding.
const EQUAL: f64 = 1e-7;

/// All that was fitted to some points.
#[derive(Clone, Debug)]
pub struct CurveAnalysis {
    /// The points as fitted.
    pub data: FitData,
    /// The best fit of each form for each choice of brackets.
    pub fits: Vec<FormFit>,
    settings: &'static FitSettings,
    /// The common factor of all variances, and the degrees of freedom that it was estimated with
    /// (none for errors that are known); absent where each fit has its own.
    common: Option<(f64, Option<usize>)>,
}

impl CurveAnalysis {
    /// Fits all forms that the points suffice for. Deterministic; the order of the points does not
    /// matter, and several may have the same x.
    pub fn new(points: &[CurvePoint], settings: &'static FitSettings) -> Self {
        let data = FitData::new(points, settings);
        let candidates =
            (0..settings.forms.len()).filter(|number| enough(&data, settings, *number));
        let all: Vec<FormFit> =
            candidates.flat_map(|number| fits(&data, settings, number)).collect();
        let common = common(&data, settings, &all);
        let blank = Self { fits: Vec::new(), data, settings, common };
        Self { fits: all.into_iter().map(|fit| blank.scored(fit)).collect(), ..blank }
    }

    fn scored(&self, fit: FormFit) -> FormFit {
        let count = self.data.observations.len() as f64;
        let (chi2, charge) = (fit.solution.chi2, fit.form.charge());
        let criterion = match self.common {
            Some((factor, _)) => chi2 / factor + charge * count.ln(),
            None => schwarz(chi2, count, charge),
        };
        FormFit { criterion, ..fit }
    }

    /// The best fit, or the best of the simplest forms inside its own that is not clearly worse.
    pub fn chosen(&self) -> Option<&FormFit> {
        let leaders = self.leaders();
        let best = lowest(leaders.iter().copied())?;
        let limit = best.criterion + CLEARLY_BETTER;
        let is_as_good =
            |fit: &&FormFit| self.contains(best.number, fit.number) && fit.criterion <= limit;
        let simpler: Vec<&FormFit> = leaders.into_iter().filter(is_as_good).collect();
        let rank = |form: &CurveForm| match self.settings.nesting {
            Nesting::Terms => form.freedoms(),
            Nesting::Turns => form.turns.len(),
        };
        let simplest = simpler.iter().map(|fit| rank(fit.form)).min();
        let of_them = simpler.into_iter().filter(|fit| Some(rank(fit.form)) == simplest);
        lowest(of_them).or(Some(best))
    }

    /// The best fit of each form, in the order of the forms.
    pub fn leaders(&self) -> Vec<&FormFit> {
        let of_form = |number| lowest(self.fits.iter().filter(|fit| fit.number == number));
        (0..self.settings.forms.len()).filter_map(of_form).collect()
    }

    /// Criterion of the best fit with fewer turns above this one's. None of a fit without turns.
    pub fn support(&self, fit: &FormFit) -> Option<f64> {
        let fewer = self.fits.iter().filter(|other| other.turns.len() < fit.turns.len());
        fewer.map(|other| other.criterion - fit.criterion).reduce(f64::min)
    }

    /// Whether one form is simpler than another and inside it.
    pub fn contains(&self, form: usize, simpler: usize) -> bool {
        let forms = self.settings.forms;
        let (one, other) = (&forms[form], &forms[simpler]);
        let is_inside = || other.terms.iter().all(|term| one.terms.contains(term));
        match self.settings.nesting {
            Nesting::Turns => other.turns.len() < one.turns.len(),
            Nesting::Terms => form != simpler && (is_inside() || one.contains.contains(&simpler)),
        }
    }

    /// The best fit of a form, whether or not there are points enough to choose it.
    pub fn fit(&self, number: usize) -> Option<FormFit> {
        let all = fits(&self.data, self.settings, number).into_iter().map(|fit| self.scored(fit));
        all.min_by(|a, b| a.criterion.total_cmp(&b.criterion))
    }

    /// Half-width of the interval of a combination of a fit's coefficients, given its turns.
    /// Without points beyond its freedoms there is none.
    pub fn half_width(&self, fit: &FormFit, combination: [f64; MAX_TERMS]) -> Option<f64> {
        let left = self.data.observations.len().checked_sub(fit.form.freedoms())?;
        let own = if left == 0 { 1.0 } else { (fit.solution.chi2 / left as f64).max(1.0) };
        let (factor, freedom) = self.common.unwrap_or((own, None));
        Some(quantile(freedom)? * (fit.solution.variance_of(combination) * factor).sqrt())
    }

    /// First and last bracket of the fit's turn of this number that all fits with as many knees
    /// leave open.
    pub fn brackets(&self, fit: &FormFit, turn: usize) -> (usize, usize) {
        let same = self.fits.iter().filter(|other| other.form.knees() == fit.form.knees());
        let scored: Vec<(usize, f64)> =
            same.map(|other| (other.brackets[turn], other.criterion)).collect();
        let mut weights: Vec<(usize, f64)> = (0..self.data.xs.len()).map(|i| (i, 0.0)).collect();
        akaike_weights(&scored).into_iter().for_each(|(at, weight)| weights[at].1 += weight);
        credible_span(weights, fit.brackets[turn])
    }

    /// How often points that do follow the fit would lie as far off it, all together, as these: the
    /// chi-squared test. None without degrees of freedom, and where the errors are estimated from
    /// the scatter about the fits, which they then cannot test.
    pub fn lack_of_fit(&self, fit: &FormFit) -> Option<f64> {
        let left = self.data.observations.len().checked_sub(fit.form.freedoms())?;
        lack_of_fit(fit.solution.chi2, left).filter(|_| self.data.errors_known)
    }
}

/// Whether there are points enough for a form.
fn enough(data: &FitData, settings: &FitSettings, number: usize) -> bool {
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

/// 1 for known errors. Else that of the closest of all fits, a rich one therefore; less what the
/// criterion charges for it, as the best of many places fits better than one place would. The same
/// for every fit: taken from each itself, a poor one would excuse its own misfit (Burnham and
/// Anderson 2002, section 2.5).
fn common(
    data: &FitData,
    settings: &FitSettings,
    fits: &[FormFit],
) -> Option<(f64, Option<usize>)> {
    let closest = fits.iter().min_by(|a, b| a.solution.chi2.total_cmp(&b.solution.chi2));
    let of_scatter = closest.filter(|_| !data.errors_known).map(|fit| {
        let left = data.observations.len().saturating_sub(fit.form.charge() as usize).max(1);
        ((fit.solution.chi2 / left as f64).max(1.0), Some(left))
    });
    (settings.errors != ErrorModel::Smoothed).then(|| of_scatter.unwrap_or((1.0, None)))
}

/// Minus twice the log-likelihood plus ln n for each of `charged` freedoms (Schwarz 1978). The
/// errors are the given ones times a common factor of at least 1 (Birge 1932), here replaced by its
/// maximum-likelihood value.
fn schwarz(chi2: f64, count: f64, charged: f64) -> f64 {
    let dispersion = (chi2 / count).max(1.0);
    count * dispersion.ln() + chi2 / dispersion + charged * count.ln()
}

/// The lowest criterion; of equal ones the first.
fn lowest<'a>(mut fits: impl Iterator<Item = &'a FormFit>) -> Option<&'a FormFit> {
    let first = fits.next()?;
    let lower = |best: &'a FormFit, next: &'a FormFit| {
        if next.criterion < best.criterion - EQUAL { next } else { best }
    };
    Some(fits.fold(first, lower))
}

/// The upper tail of the chi-squared distribution. None without degrees of freedom.
pub fn lack_of_fit(chi2: f64, freedom: usize) -> Option<f64> {
    let distribution = ChiSquared::new(freedom as f64).ok()?;
    (freedom > 0).then(|| distribution.sf(chi2)).filter(|p| p.is_finite())
}

/// Half of a [`CONFIDENCE`] interval in standard errors: Student's with `freedom` degrees where the
/// errors are estimated from the points, the normal distribution's where they are known (none).
pub fn quantile(freedom: Option<usize>) -> Option<f64> {
    match freedom {
        Some(left) => student_quantile(CONFIDENCE, left as f64),
        None => normal_quantile(CONFIDENCE),
    }
}

/// Akaike weights (Burnham and Anderson 2002, section 2.9) of places with their criterion.
pub fn akaike_weights<P: Copy>(scored: &[(P, f64)]) -> Vec<(P, f64)> {
    let best = scored.iter().map(|(_, criterion)| *criterion).fold(f64::INFINITY, f64::min);
    let weight = |(place, criterion): &(P, f64)| (*place, ((best - criterion) / 2.0).exp());
    scored.iter().map(weight).collect()
}

/// First and last of the places that carry [`CONFIDENCE`] of the weight, summed from the heaviest
/// down, with everything between them and `chosen`.
pub fn credible_span<P: Copy + PartialOrd>(mut weights: Vec<(P, f64)>, chosen: P) -> (P, P) {
    let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
    let order = |a: &P, b: &P| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal);
    weights.sort_by(|a, b| b.1.total_cmp(&a.1).then(order(&a.0, &b.0)));
    let mut covered = 0.0;
    let heaviest = weights.into_iter().take_while(|(_, weight)| {
        let is_needed = covered < CONFIDENCE * total;
        covered += weight;
        is_needed
    });
    heaviest.fold((chosen, chosen), |(first, last), (place, _)| {
        (if place < first { place } else { first }, if place > last { place } else { last })
    })
}

/// A form fitted with its turns in given brackets.
#[derive(Clone, Debug)]
pub struct FormFit {
    /// The form.
    pub form: &'static CurveForm,
    /// Its number in the settings.
    pub number: usize,
    /// For each turn i of the bracket between the different x of number i and i + 1.
    pub brackets: Vec<usize>,
    /// The places of the turns.
    pub turns: Vec<f64>,
    /// Its coefficients are in units of [`FitData::unit`].
    pub solution: LeastSquaresFit<MAX_TERMS>,
    /// The penalised criterion; lower is better, only differences mean anything.
    pub criterion: f64,
}

impl FormFit {
    /// The fitted y.
    pub fn at(&self, x: f64) -> f64 {
        self.combine(self.basis(x))
    }

    /// The values of the terms at x.
    pub fn basis(&self, x: f64) -> [f64; MAX_TERMS] {
        self.form.basis(&self.turns, x)
    }

    /// A linear combination of the coefficients.
    pub fn combine(&self, basis: [f64; MAX_TERMS]) -> f64 {
        let terms = self.solution.coefficients.iter().zip(basis);
        terms.map(|(coefficient, value)| coefficient * value).sum()
    }
}

/// The best fit of a form for every admissible choice of brackets, not scored.
fn fits(data: &FitData, settings: &FitSettings, number: usize) -> Vec<FormFit> {
    let form = &settings.forms[number];
    let choices = bracket_choices(data, form, settings.between);
    choices.into_iter().filter_map(|brackets| best_within(data, form, number, &brackets)).collect()
}

fn bracket_choices(data: &FitData, form: &CurveForm, between: usize) -> Vec<Vec<usize>> {
    let count = data.xs.len().saturating_sub(1);
    match form.turns {
        [] => vec![Vec::new()],
        // All of them belong to one scale.
        [Turn::Scale(_), ..] => {
            // By three times the scale 95 % of the way is done.
            let is_reached = |i: &usize| 3.0 * data.xs[*i + 1] <= data.range().1;
            (0..count).filter(is_reached).map(|i| vec![i; form.turns.len()]).collect()
        }
        [Turn::FarScale(_), ..] => vec![vec![count.saturating_sub(1); form.turns.len()]],
        [_] => (form.before - 1..count).map(|i| vec![i]).collect(),
        _ => {
            // Two x on each side, or two turns would explain two outliers.
            let last = count.saturating_sub(1);
            (1..last).flat_map(|i| (i + between..last).map(move |j| vec![i, j])).collect()
        }
    }
}

fn best_within(
    data: &FitData,
    form: &'static CurveForm,
    number: usize,
    brackets: &[usize],
) -> Option<FormFit> {
    let fits = turns_within(data, form, brackets).into_iter().filter_map(|turns| {
        let rows = data.observations.iter().map(|seen| FitRow {
            basis: form.basis(&turns, seen.x),
            y: seen.y,
            precision: seen.precision,
        });
        let solution = least_squares(rows, form.terms.len())?;
        let is_of_it = form.admits(&solution.coefficients, &turns, data.range());
        let brackets = brackets.to_vec();
        is_of_it.then_some(FormFit { form, number, brackets, turns, solution, criterion: 0.0 })
    });
    let less = |fit: &FormFit, than: &FormFit| fit.solution.chi2 < than.solution.chi2 - 1e-9;
    fits.reduce(|best, next| if less(&next, &best) { next } else { best })
}

/// All combinations of places within the brackets.
fn turns_within(data: &FitData, form: &CurveForm, brackets: &[usize]) -> Vec<Vec<f64>> {
    brackets.iter().zip(form.turns).fold(vec![Vec::new()], |choices, (&bracket, turn)| {
        let places = turn.places(data.xs[bracket], data.xs[bracket + 1]);
        let longer = |start: &Vec<f64>| {
            places.iter().map(|&place| [&start[..], &[place]].concat()).collect::<Vec<_>>()
        };
        choices.iter().flat_map(longer).collect()
    })
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
