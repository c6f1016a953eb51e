//! The choice of the law, its knees, or why there is none.

use stats::changepoint::{self, Analysis, Errors, Fit, Nesting, Settings, Turn};

use super::EQUIVALENCE;
use super::shape::{FORMS, Shape};
use super::verdict::{Candidate, Curve, Knee, KneeKind, Law, Noise, Point, Verdict};
use super::words::shape_name;
use crate::words::{percent, two_digits};

/// Fewer sizes than this say nothing about a law.
const FEWEST_SIZES: usize = 4;
/// Without standard errors, fewer points than this do not tell a slope: it might be a knee.
const FEWEST_WITHOUT_ERRORS: usize = 7;
/// Laws this near to each other fit about equally (Burnham and Anderson 2002, section 2.6).
const ABOUT_EQUAL: f64 = 2.0;
/// Laws whose curves stay this near to each other may be told as one.
const SAME_CURVE: f64 = 0.10;
/// A trend that the points must exclude before they may be called flat.
const FLAT_LIMIT: f64 = 0.25;
/// Points that lie as far off the best law, all together, less often than this follow none. The errors are
/// estimates of few rounds themselves, so it is not the usual 5 %.
const LACK_OF_FIT: f64 = 0.001;

static SETTINGS: Settings = Settings {
    forms: &FORMS,
    tolerance: EQUIVALENCE,
    relative: false,
    // Two knees on Sloan's nine points would leave 4, and fit their noise.
    errors: Errors::Given { fewest: FEWEST_WITHOUT_ERRORS, left: [4, 4, 7] },
    fewest: FEWEST_SIZES,
    // Two sizes in every part, or two knees would explain two outliers.
    between: 2,
    nesting: Nesting::Terms,
};

/// The law that the cost per switch follows.
///
/// Points may come in any order, and several may have the same size. Deterministic. Multiplying all costs by
/// a positive number changes nothing but the unit of the answer.
#[must_use]
pub fn law(points: &[Point]) -> Verdict {
    let point = |point: &Point| changepoint::Point {
        x: f64::from(point.members),
        y: point.cost_ns,
        error: point.standard_error_ns,
    };
    let all = Analysis::of(&points.iter().map(point).collect::<Vec<_>>(), &SETTINGS);
    let silent = |why: String| Verdict {
        law: Law::CannotTell { why },
        curve: None,
        knees: Vec::new(),
        trend_below: None,
        fit_p: None,
        candidates: candidates(&all),
        noise: if all.data.errors_known { Noise::Known } else { Noise::Estimated },
        smallest_members: all.data.range().0 as u32,
        largest_members: all.data.range().1 as u32,
        ignored: all.data.ignored,
    };
    match choose(&all) {
        Err(why) => silent(why),
        Ok((chosen, trend_below)) => Verdict {
            law: Law::Follows { shape: Shape::of(chosen.number) },
            curve: Some(curve(&all, chosen)),
            knees: (0..chosen.form.knees()).map(|which| knee(&all, chosen, which)).collect(),
            trend_below,
            fit_p: all.lack_of_fit(chosen),
            ..silent(String::new())
        },
    }
}

/// The fit of the law, and of a flat one the trend that is not excluded; or why there is none.
fn choose(all: &Analysis) -> Result<(&Fit, Option<f64>), String> {
    let count = all.data.places.len();
    if count < FEWEST_SIZES {
        let sizes = if count == 1 { "size is" } else { "sizes are" };
        return Err(format!("{count} {sizes} too few ({FEWEST_SIZES} are needed)"));
    }
    if all.data.unit <= 0.0 {
        return Err("all costs are zero".into());
    }
    let chosen = all.chosen().ok_or("the errors are too large")?;
    if let Some(why) = misfit(all, chosen).or_else(|| contested(all, chosen)) {
        return Err(why);
    }
    let is_flat = Shape::of(chosen.number) == Shape::Constant;
    let trend_below = if is_flat { Some(flatness(all, chosen)?) } else { None };
    Ok((chosen, trend_below))
}

fn curve(all: &Analysis, fit: &Fit) -> Curve {
    let coefficients = &fit.solution.coefficients[..fit.form.terms.len()];
    Curve {
        shape: Shape::of(fit.number),
        coefficients: coefficients.iter().map(|c| c * all.data.unit).collect(),
        turns: fit.turns.clone(),
    }
}

/// Why even the best law does not describe the points.
fn misfit(all: &Analysis, fit: &Fit) -> Option<String> {
    (all.lack_of_fit(fit)? < LACK_OF_FIT).then(|| {
        let left = all.data.observations.len() - fit.form.freedoms();
        let freedom = if left == 1 { "degree" } else { "degrees" };
        let chi2 = two_digits(fit.solution.chi2);
        let law = shape_name(Shape::of(fit.number));
        format!(
            "no law fits; the best is {law} (chi-squared {chi2} for {left} {freedom} of freedom)"
        )
    })
}

/// Why another law would be as good an answer, where that matters.
fn contested(all: &Analysis, chosen: &Fit) -> Option<String> {
    let is_rival = |rival: &&Fit| {
        let (a, b) = (chosen.number, rival.number);
        a != b
            && !all.contains(a, b)
            && !all.contains(b, a)
            && rival.criterion <= chosen.criterion + ABOUT_EQUAL
            && !same_knees(chosen, rival)
    };
    let apart = |rival: &Fit| {
        let (difference, at) = furthest_apart(&all.data.xs, chosen, rival);
        (Shape::of(rival.number), difference, at)
    };
    let mut rivals = all.leaders().into_iter().filter(is_rival).map(apart);
    let (rival, difference, at) = rivals.find(|(_, difference, _)| *difference > SAME_CURVE)?;
    Some(format!(
        "{} and {} fit about equally well but differ by {} at {at:.0} members",
        shape_name(Shape::of(chosen.number)),
        shape_name(rival),
        percent(difference),
    ))
}

/// A step or a hinge at the same place is one finding, whichever it is.
fn same_knees(a: &Fit, b: &Fit) -> bool {
    let near = |(i, j): (&usize, &usize)| i.abs_diff(*j) <= 1;
    let some = a.form.knees() > 0 && a.form.knees() == b.form.knees();
    some && a.brackets.iter().zip(&b.brackets).all(near)
}

/// Largest relative difference at the measured sizes, and where.
fn furthest_apart(sizes: &[f64], a: &Fit, b: &Fit) -> (f64, f64) {
    let apart = |&members: &f64| {
        let (a, b) = (a.at(members), b.at(members));
        let largest = a.abs().max(b.abs());
        let part = if largest > 0.0 { (a - b).abs() / largest } else { 0.0 };
        (part, members)
    };
    sizes.iter().map(apart).fold((0.0, 0.0), |x, y| if y.0 > x.0 { y } else { x })
}

fn too_few_for_growth(all: &Analysis) -> Option<String> {
    let count = all.data.observations.len();
    let too_few = !all.data.errors_known && count < FEWEST_WITHOUT_ERRORS;
    too_few.then(|| {
        format!(
            "{count} points without standard errors are too few to tell growth from noise \
             ({FEWEST_WITHOUT_ERRORS} are needed)"
        )
    })
}

/// The largest trend that the points do not exclude, as a part of the level; or why they are not
/// flat enough to be called so.
fn flatness(all: &Analysis, constant: &Fit) -> Result<f64, String> {
    let (low, high) = all.data.range();
    let level = constant.at(high).abs();
    let unresolved = all.half_width(constant, [1.0, 0.0, 0.0, 0.0]);
    if unresolved.is_none_or(|half| half >= level) {
        let why = "the costs are not resolved from zero".into();
        return Err(too_few_for_growth(all).unwrap_or(why));
    }
    let trend = |shape: Shape| {
        let fit = all.fit(shape as usize)?;
        let (low, high) = (fit.basis(low), fit.basis(high));
        let across = std::array::from_fn(|i| high[i] - low[i]);
        Some((fit.combine(across).abs() + all.half_width(&fit, across)?) / level)
    };
    let trends = [Shape::Logarithmic, Shape::Linear].map(trend);
    let bound = trends.iter().map(|trend| trend.unwrap_or(f64::INFINITY)).fold(0.0, f64::max);
    if bound <= FLAT_LIMIT {
        return Ok(bound);
    }
    Err(too_few_for_growth(all).unwrap_or_else(|| {
        let bound = percent(bound);
        format!("a flat cost and a trend of up to {bound} from {low} to {high} members both fit")
    }))
}

fn candidates(all: &Analysis) -> Vec<Candidate> {
    let mut leaders = all.leaders();
    leaders.sort_by(|a, b| a.criterion.total_cmp(&b.criterion));
    let best = leaders.first().map_or(0.0, |fit| fit.criterion);
    let candidate = |fit: &&Fit| Candidate {
        shape: Shape::of(fit.number),
        freedoms: fit.form.freedoms(),
        criterion: fit.criterion,
        above_best: fit.criterion - best,
        scatter: (fit.solution.chi2 / all.data.observations.len() as f64).sqrt(),
    };
    leaders.iter().map(candidate).collect()
}

fn knee(all: &Analysis, fit: &Fit, which: usize) -> Knee {
    let (first, last) = all.brackets(fit, which);
    let sizes = &all.data.places;
    let stepped = fit.form.turns[which] == Turn::Step;
    let after = fit.brackets[which] + 1;
    let end = fit.brackets.get(which + 1).map_or(sizes.len(), |next| next + 1);
    let next_turn = fit.turns.get(which + 1).copied();
    let at_members = if stepped { sizes[after] } else { next_turn.unwrap_or(all.data.range().1) };
    let (factor, interval) = factor(all, fit, which, at_members);
    Knee {
        kind: if stepped { KneeKind::Step } else { KneeKind::Hinge },
        low_members: sizes[first] as u32,
        high_members: sizes[last + 1] as u32,
        factor,
        factor_low: interval.map(|(low, _)| low),
        factor_high: interval.map(|(_, high)| high),
        at_members,
        sizes_after: end - after,
    }
}

/// Cost after over cost by the law before, and its interval by the delta method.
fn factor(all: &Analysis, fit: &Fit, which: usize, at: f64) -> (Option<f64>, Option<(f64, f64)>) {
    let (after, before) = (fit.basis(at), fit.form.basis(&fit.turns[..which], at));
    let (cost_after, cost_before) = (fit.combine(after), fit.combine(before));
    if cost_after <= 0.0 || cost_before <= 0.0 {
        return (None, None);
    }
    let factor = cost_after / cost_before;
    let gradient = std::array::from_fn(|i| after[i] / cost_after - before[i] / cost_before);
    // Where the old cost may be zero the ratio has no upper end, and the delta method no meaning.
    let resolved = all.half_width(fit, before).is_some_and(|half| half < cost_before);
    let half = all.half_width(fit, gradient).filter(|_| resolved);
    let interval = half.map(|half| (factor * (-half).exp(), factor * half.exp()));
    let finite = |&(low, high): &(f64, f64)| low.is_finite() && high.is_finite();
    (Some(factor).filter(|f| f.is_finite()), interval.filter(finite))
}
