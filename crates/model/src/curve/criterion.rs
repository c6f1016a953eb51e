//! The penalised criterion, and what its weights say of a place.

use statrs::distribution::{ChiSquared, ContinuousCDF, StudentsT};

use super::CONFIDENCE;

/// Minus twice the log-likelihood plus ln n for each of `charged` freedoms (Schwarz 1978), from the
/// weighted sum of squares `chi2` of `count` points.
///
/// The errors are the given ones times a common factor of at least 1 (Birge 1932), here replaced
/// by its maximum-likelihood value.
pub(crate) fn schwarz(chi2: f64, count: usize, charged: f64) -> f64 {
    let n = count as f64;
    let dispersion = (chi2 / n).max(1.0);
    n * dispersion.ln() + chi2 / dispersion + charged * n.ln()
}

/// How often points that do follow the model would lie as far off it, all together, as these: the upper tail
/// of the chi-squared distribution. `None` without degrees of freedom.
pub(crate) fn lack_of_fit(chi2: f64, freedom: usize) -> Option<f64> {
    let distribution = ChiSquared::new(freedom as f64).ok()?;
    (freedom > 0).then(|| distribution.sf(chi2)).filter(|p| p.is_finite())
}

/// First and last of the places that carry [`CONFIDENCE`] of the Akaike weight (Burnham and Anderson
/// 2002, section 2.9), summed from the heaviest down, with everything between them and `chosen`.
/// `scored` are places (below `places`) with their criterion.
pub(crate) fn credible_span(
    places: usize,
    scored: &[(usize, f64)],
    chosen: usize,
) -> (usize, usize) {
    let best = scored.iter().map(|(_, criterion)| *criterion).fold(f64::INFINITY, f64::min);
    let mut weights: Vec<(f64, usize)> = (0..places).map(|i| (0.0, i)).collect();
    for (place, criterion) in scored {
        weights[*place].0 += ((best - criterion) / 2.0).exp();
    }
    let total: f64 = weights.iter().map(|(weight, _)| weight).sum();
    weights.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let (mut first, mut last) = (chosen, chosen);
    let mut covered = 0.0;
    for (weight, place) in weights {
        if covered >= CONFIDENCE * total {
            break;
        }
        covered += weight;
        first = first.min(place);
        last = last.max(place);
    }
    (first, last)
}

/// Half of a [`CONFIDENCE`] interval in standard errors: Student's with `freedom` degrees where the
/// noise is estimated from the points, the normal distribution's where it is known (`None`).
pub(crate) fn quantile(freedom: Option<usize>) -> Option<f64> {
    // Student's t for very many degrees of freedom: the normal distribution.
    let freedom = freedom.map_or(1e6, |left| left as f64);
    let distribution = StudentsT::new(0.0, 1.0, freedom).ok()?;
    Some(distribution.inverse_cdf(0.5 + CONFIDENCE / 2.0))
}
