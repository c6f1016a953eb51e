//! The criterion, the choice among the fits, and how far its answers are known.

use statrs::distribution::{ChiSquared, ContinuousCDF, StudentsT};

use super::fit::{Fit, fits};
use super::form::{Form, MOST_TERMS};
use super::points::{Data, Point};
use super::{CLEARLY_BETTER, CONFIDENCE, Errors, Nesting, Settings};

/// Criteria nearer to each other than this are equal to rounding.
const EQUAL: f64 = 1e-7;

/// All that was fitted to some points.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// The points as fitted.
    pub data: Data,
    /// The best fit of each form for each choice of brackets.
    pub fits: Vec<Fit>,
    settings: &'static Settings,
    /// The common factor of all variances; none where each fit has its own.
    common: Option<Dispersion>,
}

/// A factor of variances.
#[derive(Clone, Copy, Debug)]
struct Dispersion {
    factor: f64,
    /// Degrees of freedom that it was estimated with; none for errors that are known.
    freedom: Option<usize>,
}

impl Analysis {
    /// Fits all forms that the points suffice for. Deterministic; the order of the points does not matter,
    /// and several may have the same x.
    pub fn of(points: &[Point], settings: &'static Settings) -> Self {
        let data = Data::new(points, settings);
        let candidates = match data.places.len() >= settings.fewest {
            true => 0..settings.forms.len(),
            false => 0..0,
        };
        let candidates = candidates.filter(|number| leaves_enough(&data, settings, *number));
        let all: Vec<Fit> = candidates.flat_map(|number| fits(&data, settings, number)).collect();
        let common = common(&data, settings, &all);
        let count = data.observations.len() as f64;
        let score = |fit: Fit| {
            let (chi2, charge) = (fit.solution.chi2, fit.form.charge());
            let criterion = match common {
                Some(dispersion) => chi2 / dispersion.factor + charge * count.ln(),
                None => schwarz(chi2, count, charge),
            };
            Fit { criterion, ..fit }
        };
        Self { fits: all.into_iter().map(score).collect(), data, settings, common }
    }

    /// The best fit, or the best of the simplest forms inside its own that is not clearly worse.
    pub fn chosen(&self) -> Option<&Fit> {
        let leaders = self.leaders();
        let best = lowest(leaders.iter().copied())?;
        let limit = best.criterion + CLEARLY_BETTER;
        let is_as_good =
            |fit: &&Fit| self.contains(best.number, fit.number) && fit.criterion <= limit;
        let simpler: Vec<&Fit> = leaders.into_iter().filter(is_as_good).collect();
        let rank = |form: &Form| match self.settings.nesting {
            Nesting::Terms => form.freedoms(),
            Nesting::Turns => form.turns.len(),
        };
        let simplest = simpler.iter().map(|fit| rank(fit.form)).min();
        let of_them = simpler.into_iter().filter(|fit| Some(rank(fit.form)) == simplest);
        lowest(of_them).or(Some(best))
    }

    /// The best fit of each form, in the order of the forms.
    pub fn leaders(&self) -> Vec<&Fit> {
        let of_form = |number| lowest(self.fits.iter().filter(|fit| fit.number == number));
        (0..self.settings.forms.len()).filter_map(of_form).collect()
    }

    /// Criterion of the best fit with fewer turns above this one's. None of a fit without turns.
    pub fn support(&self, fit: &Fit) -> Option<f64> {
        let fewer = self.fits.iter().filter(|other| other.turns.len() < fit.turns.len());
        fewer.map(|other| other.criterion - fit.criterion).reduce(f64::min)
    }

    /// Whether one form is simpler than another and inside it.
    pub fn contains(&self, form: usize, simpler: usize) -> bool {
        let forms = self.settings.forms;
        let (one, other) = (&forms[form], &forms[simpler]);
        match self.settings.nesting {
            Nesting::Turns => other.turns.len() < one.turns.len(),
            Nesting::Terms => {
                let is_inside = other.terms.iter().all(|term| one.terms.contains(term));
                form != simpler && (is_inside || one.contains.contains(&simpler))
            }
        }
    }

    /// The fit of a form without turns, whether or not there are points enough to choose it.
    pub fn fit(&self, number: usize) -> Option<Fit> {
        fits(&self.data, self.settings, number).pop()
    }

    /// Half-width of the interval of a combination of a fit's coefficients, given its turns. Without points
    /// beyond its freedoms there is none.
    pub fn half_width(&self, fit: &Fit, combination: [f64; MOST_TERMS]) -> Option<f64> {
        let Dispersion { factor, freedom } = match self.common {
            Some(common) => common,
            None => {
                let left = self.data.observations.len().checked_sub(fit.form.freedoms())?;
                let own = fit.solution.chi2 / left.max(1) as f64;
                Dispersion { factor: if left == 0 { 1.0 } else { own.max(1.0) }, freedom: None }
            }
        };
        Some(quantile(freedom)? * (fit.solution.variance_of(combination) * factor).sqrt())
    }

    /// First and last bracket of the fit's turn of this number that all fits with as many knees leave open.
    pub fn brackets(&self, fit: &Fit, turn: usize) -> (usize, usize) {
        let same = self.fits.iter().filter(|other| other.form.knees() == fit.form.knees());
        let scored: Vec<(usize, f64)> =
            same.map(|other| (other.brackets[turn], other.criterion)).collect();
        let mut weights: Vec<(usize, f64)> = (0..self.data.xs.len()).map(|i| (i, 0.0)).collect();
        for (bracket, weight) in akaike_weights(&scored) {
            weights[bracket].1 += weight;
        }
        credible_span(weights, fit.brackets[turn])
    }

    /// How often points that do follow the fit would lie as far off it, all together, as these: the
    /// chi-squared test. None without degrees of freedom, and where the errors are estimated from the
    /// scatter about the fits, which they then cannot test.
    pub fn lack_of_fit(&self, fit: &Fit) -> Option<f64> {
        let left = self.data.observations.len().checked_sub(fit.form.freedoms())?;
        lack_of_fit(fit.solution.chi2, left).filter(|_| self.data.errors_known)
    }
}

/// Whether there are points enough for a form.
fn leaves_enough(data: &Data, settings: &Settings, number: usize) -> bool {
    let (count, form) = (data.observations.len(), &settings.forms[number]);
    let needed = match settings.errors {
        Errors::Given { fewest, left } if !data.errors_known && form.freedoms() > 1 => {
            match count < fewest {
                true => return false,
                false => left[form.turns.len()],
            }
        }
        _ => 1,
    };
    count >= form.freedoms() + needed
}

/// 1 for known errors. Else that of the closest of all fits, a rich one therefore; less what the
/// criterion charges for it, as the best of many places fits better than one place would. The same for
/// every fit: taken from each itself, a poor one would excuse its own misfit (Burnham and Anderson
/// 2002, section 2.5).
fn common(data: &Data, settings: &Settings, fits: &[Fit]) -> Option<Dispersion> {
    if settings.errors == Errors::Smoothed {
        return None;
    }
    let closest = fits.iter().min_by(|a, b| a.solution.chi2.total_cmp(&b.solution.chi2));
    let Some(fit) = closest.filter(|_| !data.errors_known) else {
        return Some(Dispersion { factor: 1.0, freedom: None });
    };
    let left = data.observations.len().saturating_sub(fit.form.charge() as usize).max(1);
    let factor = (fit.solution.chi2 / left as f64).max(1.0);
    Some(Dispersion { factor, freedom: Some(left) })
}

/// Minus twice the log-likelihood plus ln n for each of `charged` freedoms (Schwarz 1978). The errors
/// are the given ones times a common factor of at least 1 (Birge 1932), here replaced by its
/// maximum-likelihood value.
fn schwarz(chi2: f64, count: f64, charged: f64) -> f64 {
    let dispersion = (chi2 / count).max(1.0);
    count * dispersion.ln() + chi2 / dispersion + charged * count.ln()
}

/// The lowest criterion; of equal ones the first.
fn lowest<'a>(mut fits: impl Iterator<Item = &'a Fit>) -> Option<&'a Fit> {
    let first = fits.next()?;
    let lower = |best: &'a Fit, next: &'a Fit| {
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
    // Student's t for very many degrees of freedom: the normal distribution.
    let freedom = freedom.map_or(1e6, |left| left as f64);
    let distribution = StudentsT::new(0.0, 1.0, freedom).ok()?;
    Some(distribution.inverse_cdf(0.5 + CONFIDENCE / 2.0))
}

/// Akaike weights (Burnham and Anderson 2002, section 2.9) of places with their criterion.
pub fn akaike_weights<P: Copy>(scored: &[(P, f64)]) -> Vec<(P, f64)> {
    let best = scored.iter().map(|(_, criterion)| *criterion).fold(f64::INFINITY, f64::min);
    let weight = |(place, criterion): &(P, f64)| (*place, ((best - criterion) / 2.0).exp());
    scored.iter().map(weight).collect()
}

/// First and last of the places that carry [`CONFIDENCE`] of the weight, summed from the heaviest down,
/// with everything between them and `chosen`.
pub fn credible_span<P: Copy + PartialOrd>(mut weights: Vec<(P, f64)>, chosen: P) -> (P, P) {
    let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
    let order = |a: &P, b: &P| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal);
    weights.sort_by(|a, b| b.1.total_cmp(&a.1).then(order(&a.0, &b.0)));
    let (mut first, mut last, mut covered) = (chosen, chosen, 0.0);
    for (place, weight) in weights {
        if covered >= CONFIDENCE * total {
            break;
        }
        covered += weight;
        first = if place < first { place } else { first };
        last = if place > last { place } else { last };
    }
    (first, last)
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
