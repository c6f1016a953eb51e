//! The law that the cost of a switch follows as the ring grows.
//!
//! [`law`] takes the cost per switch at some ring sizes and says which of sixteen [`LawShape`]s they
//! follow, where the knees are, and how sure that is; or that the points are inconclusive. The
//! method and its sources are in `docs/method.md`, its measured error rates in
//! `docs/validation.md`.
//!
//! Costs may be in any one unit, except that sentences call them nanoseconds. Rings are sizes in
//! members.

mod verdict;

#[cfg(test)]
mod tests;

pub use verdict::{
    CandidateLaw, CostGrowth, ErrorSource, Knee, LawCurve, LawShape, ScalingLaw, ScalingVerdict,
};

use stats::changepoint::{CurveAnalysis, ErrorModel, FitSettings, FormFit, Nesting};

use crate::curve::{self, CurvePoint, TurnBracket, TurnKind};
use rundata::words::{percent, two_digits};
use verdict::FORMS;

/// Confidence of all intervals that are returned ([`Knee`]).
pub const CONFIDENCE: f64 = stats::changepoint::CONFIDENCE;

/// Relative difference between sizes that is never called a law, whatever the errors say.
///
/// Added in quadrature to every standard error. Those cover what changes from round to
/// round at one size; they do not cover what comes with the size itself (page colours, alignment
/// of stacks, the kernel's hash chains), which is of the order of one or two per cent and is
/// no scaling.
pub const EQUIVALENCE: f64 = 0.02;

/// Sloan's projected column: the CPU time that `members` would need if every switch cost what it
/// costs in a ring of two, cpu(2) * N / 2 (Sloan 1992, "Results", column *Proj*). `two_process_cpu`
/// is that of a ring of two, in any unit, for the same number of laps.
pub fn projected(two_process_cpu: f64, members: u32) -> f64 {
    two_process_cpu * f64::from(members) / 2.0
}

/// Fewest sizes of a law.
const FEWEST_SIZES: usize = 4;
/// Fewest points without standard errors that tell a slope from a knee.
const FEWEST_WITHOUT_ERRORS: usize = 7;
/// Largest difference of the criterion of laws that fit about equally (Burnham and Anderson 2002, section 2.6).
const ABOUT_EQUAL: f64 = 2.0;
/// Largest relative difference of curves that count as one.
const SAME_CURVE: f64 = 0.10;
/// Smallest relative trend that a flat law must exclude.
const FLAT_LIMIT: f64 = 0.25;
/// Smallest p of the test for lack of fit with which points follow a law. It is not the usual 5 %, as
/// the errors themselves are estimates of few rounds.
const LACK_OF_FIT: f64 = 0.001;

static SETTINGS: FitSettings = FitSettings {
    forms: &FORMS,
    tolerance: EQUIVALENCE,
    relative: false,
    // Two knees on Sloan's nine points would leave 4, and fit their noise.
    errors: ErrorModel::Given { fewest: FEWEST_WITHOUT_ERRORS, left: [4, 4, 7] },
    fewest: FEWEST_SIZES,
    // Two sizes in every part, or two knees would explain two outliers.
    between: 2,
    nesting: Nesting::Terms,
};

/// Returns the law that the cost per switch follows.
///
/// Points may come in any order, and several may have the same size. Deterministic. Multiplying all
/// costs by a positive number changes nothing but the unit of the answer.
pub fn law(points: &[CurvePoint]) -> ScalingVerdict {
    let all = CurveAnalysis::new(points, &SETTINGS);
    let (smallest, largest) = all.data.range();
    let found = choose(&all);
    let silent = ScalingVerdict {
        law: ScalingLaw::CannotTell { why: String::new() },
        curve: None,
        knees: Vec::new(),
        trend_below: None,
        fit_p: None,
        candidates: candidates(&all),
        noise: if all.data.errors_known { ErrorSource::Known } else { ErrorSource::Estimated },
        smallest_members: smallest as u32,
        largest_members: largest as u32,
        ignored: all.data.ignored,
    };
    match found {
        Err(why) => ScalingVerdict { law: ScalingLaw::CannotTell { why }, ..silent },
        Ok((chosen, trend_below)) => ScalingVerdict {
            law: ScalingLaw::Follows { shape: LawShape::from_number(chosen.number) },
            curve: Some(fitted(&all, chosen)),
            knees: (0..chosen.form.knees()).map(|which| knee(&all, chosen, which)).collect(),
            trend_below,
            fit_p: all.lack_of_fit(chosen),
            ..silent
        },
    }
}

/// Returns the fit of the law, and for a flat one the trend that is not excluded; the error says why
/// there is none.
fn choose(all: &CurveAnalysis) -> Result<(&FormFit, Option<f64>), String> {
    let chosen = curve::best_fit(all, FEWEST_SIZES, "")?;
    let doubts = [misfit, gradual_rival, contested];
    if let Some(why) = doubts.into_iter().find_map(|doubt| doubt(all, chosen)) {
        return Err(why);
    }
    let is_flat = LawShape::from_number(chosen.number) == LawShape::Constant;
    let trend_below = if is_flat { Some(flatness(all, chosen)?) } else { None };
    Ok((chosen, trend_below))
}

fn fitted(all: &CurveAnalysis, fit: &FormFit) -> LawCurve {
    let coefficients = &fit.solution.coefficients[..fit.form.terms.len()];
    LawCurve {
        shape: LawShape::from_number(fit.number),
        coefficients: coefficients.iter().map(|c| c * all.data.unit).collect(),
        turns: fit.turns.clone(),
    }
}

/// Returns the reason why even the best law does not describe the points, if there is one.
fn misfit(all: &CurveAnalysis, fit: &FormFit) -> Option<String> {
    let is_lacking = all.lack_of_fit(fit)? < LACK_OF_FIT;
    if !is_lacking {
        return None;
    }
    let left = all.data.observations.len() - fit.form.freedoms();
    let freedom = if left == 1 { "degree" } else { "degrees" };
    let chi2 = two_digits(fit.solution.chi2);
    let law = LawShape::from_number(fit.number).name();
    Some(format!(
        "no law fits; the best is {law} (chi-squared {chi2} for {left} {freedom} of freedom)"
    ))
}

/// Returns the reason why a gradual law is as good as the one with a knee, however near their curves
/// are: the question is whether there is a knee at all.
fn gradual_rival(all: &CurveAnalysis, chosen: &FormFit) -> Option<String> {
    if chosen.form.knees() == 0 {
        return None;
    }
    let limit = chosen.criterion + margin(all.data.observations.len());
    let mut rivals = Vec::new();
    // Including laws that the points do not suffice to name.
    for shape in LawShape::GRADUAL {
        match all.fit(shape as usize) {
            Some(fit) if fit.criterion <= limit => rivals.push(fit),
            _ => {}
        }
    }
    let rival = rivals.iter().min_by(|a, b| a.criterion.total_cmp(&b.criterion))?;
    let knee = LawShape::from_number(chosen.number).name();
    let gradual = LawShape::from_number(rival.number).name();
    Some(format!("{knee} and {gradual} fit about equally well"))
}

/// Returns the margin by which a law with a knee must be better than any gradual one: half of the
/// penalty of a coefficient.
fn margin(points: usize) -> f64 {
    0.5 * (points as f64).ln()
}

/// Returns the reason why another law with another curve is as good, if there is one.
fn contested(all: &CurveAnalysis, chosen: &FormFit) -> Option<String> {
    for rival in all.leaders() {
        let (a, b) = (chosen.number, rival.number);
        let are_nested = a == b || all.contains(a, b) || all.contains(b, a);
        let is_near = rival.criterion <= chosen.criterion + ABOUT_EQUAL;
        if are_nested || !is_near || have_same_knees(chosen, rival) {
            continue;
        }
        let (difference, members) = largest_difference(&all.data.xs, chosen, rival);
        if difference > SAME_CURVE {
            return Some(format!(
                "{} and {} fit about equally well but differ by {} at {members:.0} members",
                LawShape::from_number(a).name(),
                LawShape::from_number(b).name(),
                percent(difference)
            ));
        }
    }
    None
}

/// Returns whether two fits have knees at the same places; a step and a hinge are one finding.
fn have_same_knees(a: &FormFit, b: &FormFit) -> bool {
    if a.form.knees() == 0 || a.form.knees() != b.form.knees() {
        return false;
    }
    a.brackets.iter().zip(&b.brackets).all(|(a, b)| a.abs_diff(*b) <= 1)
}

/// Returns the largest relative difference at the measured sizes, and its size.
fn largest_difference(sizes: &[f64], a: &FormFit, b: &FormFit) -> (f64, f64) {
    let mut largest = (0.0, 0.0);
    for members in sizes {
        let (a, b) = (a.at(*members), b.at(*members));
        let difference = (a - b).abs() / a.abs().max(b.abs());
        // A ratio of zeros is not a number, and not greater than any.
        if difference > largest.0 {
            largest = (difference, *members);
        }
    }
    largest
}

/// Returns why it is inconclusive: too few points without errors, or else the given reason.
fn too_few_or(all: &CurveAnalysis, why: String) -> String {
    let count = all.data.observations.len();
    if all.data.errors_known || count >= FEWEST_WITHOUT_ERRORS {
        return why;
    }
    format!(
        "{count} points without standard errors are too few to tell growth from noise \
         ({FEWEST_WITHOUT_ERRORS} are needed)"
    )
}

/// Returns the largest trend that the points do not exclude, relative to the level; the error says
/// why they are not flat enough.
fn flatness(all: &CurveAnalysis, constant: &FormFit) -> Result<f64, String> {
    let (low, high) = all.data.range();
    let level = curve::flat_level(all, constant, high).map_err(|why| too_few_or(all, why))?;
    let mut bound: f64 = 0.0;
    for shape in [LawShape::Logarithmic, LawShape::Linear] {
        bound = bound.max(largest_trend(all, shape, level).unwrap_or(f64::INFINITY));
    }
    if bound <= FLAT_LIMIT {
        return Ok(bound);
    }
    let bound = percent(bound);
    let both =
        format!("a flat cost and a trend of up to {bound} from {low} to {high} members both fit");
    Err(too_few_or(all, both))
}

/// Returns the largest trend by this law from the smallest to the largest size, relative to the
/// level.
fn largest_trend(all: &CurveAnalysis, shape: LawShape, level: f64) -> Option<f64> {
    let fit = all.fit(shape as usize)?;
    let (low, high) = all.data.range();
    let (low, high) = (fit.basis(low), fit.basis(high));
    let across = std::array::from_fn(|i| high[i] - low[i]);
    Some((fit.combine(across).abs() + all.half_width(&fit, across)?) / level)
}

fn candidates(all: &CurveAnalysis) -> Vec<CandidateLaw> {
    let mut leaders = all.leaders();
    leaders.sort_by(|a, b| a.criterion.total_cmp(&b.criterion));
    let mut candidates = Vec::new();
    for fit in &leaders {
        candidates.push(CandidateLaw {
            shape: LawShape::from_number(fit.number),
            freedoms: fit.form.freedoms(),
            criterion: fit.criterion,
            above_best: fit.criterion - leaders[0].criterion,
            scatter: (fit.solution.chi2 / all.data.observations.len() as f64).sqrt(),
        });
    }
    candidates
}

fn knee(all: &CurveAnalysis, fit: &FormFit, which: usize) -> Knee {
    let place = TurnBracket::from_fit(all, fit, which);
    let at_members = match place.kind {
        TurnKind::Step => all.data.places[place.after],
        TurnKind::Hinge => match fit.turns.get(which + 1) {
            Some(next) => *next,
            None => all.data.range().1,
        },
    };
    let mut knee = Knee {
        kind: place.kind,
        low_members: place.low as u32,
        high_members: place.high as u32,
        factor: None,
        factor_low: None,
        factor_high: None,
        at_members,
        sizes_after: place.sizes_after,
    };
    add_factor(&mut knee, all, fit, which);
    knee
}

/// Adds the cost after a knee over the cost by the law before it, with its interval by the delta
/// method.
fn add_factor(knee: &mut Knee, all: &CurveAnalysis, fit: &FormFit, which: usize) {
    let after = fit.basis(knee.at_members);
    let before = fit.form.basis(&fit.turns[..which], knee.at_members);
    let (cost_after, cost_before) = (fit.combine(after), fit.combine(before));
    if cost_after <= 0.0 || cost_before <= 0.0 {
        return;
    }
    let factor = cost_after / cost_before;
    if factor.is_finite() {
        knee.factor = Some(factor);
    }
    let gradient = std::array::from_fn(|i| after[i] / cost_after - before[i] / cost_before);
    let half_widths = (all.half_width(fit, before), all.half_width(fit, gradient));
    let (Some(half_before), Some(half)) = half_widths else { return };
    // Where the cost before may be zero the ratio has no upper end, and the delta method fails.
    let is_resolved = half_before < cost_before;
    let (low, high) = (factor * (-half).exp(), factor * half.exp());
    if is_resolved && low.is_finite() && high.is_finite() {
        knee.factor_low = Some(low);
        knee.factor_high = Some(high);
    }
}
