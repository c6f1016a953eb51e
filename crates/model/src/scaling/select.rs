//! The criterion, and the choice among the candidates.

use super::Shape;
use super::fit::{Fit, fits};
use super::knees::find_knees;
use super::points::{Noise, Point, Prepared};
use super::verdict::{Candidate, Curve, Law, Verdict};
use super::words::shape_name;
use crate::curve::{CLEARLY_BETTER, lack_of_fit, quantile};
use crate::words::{percent, plain};

/// Fewer sizes than this say nothing about a law.
const FEWEST_SIZES: usize = 4;
/// Points beyond the freedoms of a law that must be left to estimate the noise from, by number of
/// positions. Two knees on Sloan's nine points would leave 4, and fit their noise.
const LEFT_FOR_NOISE: [usize; 3] = [4, 4, 7];
/// Where that leaves no law with a knee, a slope is not told either: it might be one.
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

/// The common factor of all variances, the same for every candidate: taken from each itself, a poor one would
/// excuse its own misfit (Burnham and Anderson 2002, section 2.5).
#[derive(Debug, Clone, Copy)]
pub(super) struct Dispersion {
    factor: f64,
    /// Degrees of freedom that it was estimated with; `None` for errors that are known.
    freedom: Option<usize>,
}

/// A fit with its criterion.
#[derive(Debug, Clone)]
pub(super) struct Scored {
    pub(super) fit: Fit,
    pub(super) criterion: f64,
}

/// The law that the cost per switch follows.
///
/// Points may come in any order, and several may have the same size. Deterministic. Multiplying all costs by a positive number changes nothing but
/// the unit of the answer.
#[must_use]
pub fn law(points: &[Point]) -> Verdict {
    let data = Prepared::new(points);
    let count = data.sizes.len();
    if count < FEWEST_SIZES {
        let sizes = if count == 1 { "size is" } else { "sizes are" };
        let why = format!("{count} {sizes} too few ({FEWEST_SIZES} are needed)");
        return cannot_tell(&data, &[], why);
    }
    if data.unit <= 0.0 {
        return cannot_tell(&data, &[], "all costs are zero".into());
    }
    let (all, dispersion) = score(&data);
    let Some(chosen) = choose(&all) else {
        return cannot_tell(&data, &all, "the errors are too large".into());
    };
    let fit_p = fit_p(&data, &chosen.fit);
    if let Some(why) = misfit(&data, &chosen.fit, fit_p).or_else(|| contested(&data, &all, chosen))
    {
        return cannot_tell(&data, &all, why);
    }
    let mut trend_below = None;
    if chosen.fit.shape == Shape::Constant {
        match flatness(&data, &chosen.fit, dispersion) {
            Ok(bound) => trend_below = Some(bound),
            Err(why) => return cannot_tell(&data, &all, why),
        }
    }
    Verdict {
        law: Law::Follows { shape: chosen.fit.shape },
        curve: Some(curve(&data, &chosen.fit)),
        knees: find_knees(&data, &all, chosen, dispersion),
        trend_below,
        fit_p,
        ..cannot_tell(&data, &all, String::new())
    }
}

fn curve(data: &Prepared, fit: &Fit) -> Curve {
    Curve {
        shape: fit.shape,
        coefficients: fit.coefficients.iter().map(|c| c * data.unit).collect(),
        turns: fit.turns.clone(),
    }
}

fn cannot_tell(data: &Prepared, all: &[Scored], why: String) -> Verdict {
    Verdict {
        law: Law::CannotTell { why },
        curve: None,
        knees: Vec::new(),
        trend_below: None,
        fit_p: None,
        candidates: candidates(data, all),
        noise: data.noise,
        smallest_members: data.sizes.first().copied().unwrap_or(0),
        largest_members: data.sizes.last().copied().unwrap_or(0),
        ignored: data.ignored,
    }
}

fn score(data: &Prepared) -> (Vec<Scored>, Dispersion) {
    let every = Shape::ALL.iter().flat_map(|&shape| fits(data, shape));
    let fits: Vec<Fit> = every.filter(|fit| leaves_enough(data, fit.shape)).collect();
    let dispersion = Dispersion::of(data, &fits);
    let price = (data.observations.len() as f64).ln();
    let scored = |fit: Fit| {
        let criterion = fit.chi2 / dispersion.factor + fit.shape.charge() * price;
        Scored { fit, criterion }
    };
    (fits.into_iter().map(scored).collect(), dispersion)
}

/// Whether there are points enough for this shape.
fn leaves_enough(data: &Prepared, shape: Shape) -> bool {
    let count = data.observations.len();
    let needed = match (data.noise, shape) {
        (Noise::Known, _) | (_, Shape::Constant) => 1,
        _ if count < FEWEST_WITHOUT_ERRORS => return false,
        (Noise::Estimated, shape) => LEFT_FOR_NOISE[shape.places()],
    };
    count >= shape.freedoms() + needed
}

impl Dispersion {
    /// 1 for known errors. Else that of the closest of all candidates, the richer ones therefore; less what the
    /// criterion charges for it, as the best of many places fits better than one place would.
    fn of(data: &Prepared, fits: &[Fit]) -> Self {
        let closest = fits.iter().min_by(|a, b| a.chi2.total_cmp(&b.chi2));
        let (Noise::Estimated, Some(fit)) = (data.noise, closest) else {
            return Self { factor: 1.0, freedom: None };
        };
        let charge = fit.shape.charge() as usize;
        let left = data.observations.len().saturating_sub(charge).max(1);
        Self { factor: (fit.chi2 / left as f64).max(1.0), freedom: Some(left) }
    }

    /// Half-width of the interval of a combination of a fit's coefficients, at [`super::CONFIDENCE`].
    pub(super) fn half_width(self, fit: &Fit, combination: [f64; 3]) -> Option<f64> {
        Some(quantile(self.freedom)? * (fit.variance_of(combination) * self.factor).sqrt())
    }
}

/// The best fit of each shape.
fn leaders(all: &[Scored]) -> Vec<&Scored> {
    let of_shape = |&shape: &Shape| lowest(all.iter().filter(|s| s.fit.shape == shape));
    Shape::ALL.iter().filter_map(of_shape).collect()
}

/// The lowest criterion; of equal ones (to rounding) the first.
fn lowest<'a>(mut scored: impl Iterator<Item = &'a Scored>) -> Option<&'a Scored> {
    let first = scored.next()?;
    let lower = |best: &'a Scored, next: &'a Scored| {
        if next.criterion < best.criterion - 1e-7 { next } else { best }
    };
    Some(scored.fold(first, lower))
}

/// The best candidate, or the simplest law inside it that is not clearly worse.
fn choose(all: &[Scored]) -> Option<&Scored> {
    let leaders = leaders(all);
    let best = lowest(leaders.iter().copied())?;
    let inside = |s: &&&Scored| {
        best.fit.shape.contains(s.fit.shape) && s.criterion <= best.criterion + CLEARLY_BETTER
    };
    let simpler = leaders.iter().filter(inside);
    let simplest = simpler.min_by(|a, b| {
        let freedoms = a.fit.shape.freedoms().cmp(&b.fit.shape.freedoms());
        freedoms.then(a.criterion.total_cmp(&b.criterion))
    });
    Some(simplest.copied().unwrap_or(best))
}

/// Of the chi-squared test for lack of fit. Errors that are estimated from the scatter about the laws cannot
/// test them.
fn fit_p(data: &Prepared, fit: &Fit) -> Option<f64> {
    let left = data.observations.len().checked_sub(fit.shape.freedoms())?;
    lack_of_fit(fit.chi2, left).filter(|_| data.noise == Noise::Known)
}

/// Why even the best law does not describe the points.
fn misfit(data: &Prepared, fit: &Fit, fit_p: Option<f64>) -> Option<String> {
    (fit_p? < LACK_OF_FIT).then(|| {
        let left = data.observations.len() - fit.shape.freedoms();
        let freedom = if left == 1 { "degree" } else { "degrees" };
        let chi2 = plain(format!("{:.1e}", fit.chi2).parse().unwrap_or(fit.chi2));
        let law = shape_name(fit.shape);
        format!(
            "no law fits; the best is {law} (chi-squared {chi2} for {left} {freedom} of freedom)"
        )
    })
}

fn too_few_for_growth(data: &Prepared) -> Option<String> {
    let count = data.observations.len();
    let too_few = data.noise == Noise::Estimated && count < FEWEST_WITHOUT_ERRORS;
    too_few.then(|| {
        format!(
            "{count} points without standard errors are too few to tell growth from noise \
             ({FEWEST_WITHOUT_ERRORS} are needed)"
        )
    })
}

/// Why another law would be as good an answer, where that matters.
fn contested(data: &Prepared, all: &[Scored], chosen: &Scored) -> Option<String> {
    let rivals = leaders(all).into_iter().filter(|rival| {
        let (a, b) = (chosen.fit.shape, rival.fit.shape);
        a != b
            && !a.contains(b)
            && !b.contains(a)
            && rival.criterion <= chosen.criterion + ABOUT_EQUAL
            && !same_knees(&chosen.fit, &rival.fit)
    });
    let (rival, difference, at) = rivals
        .map(|rival| {
            let (difference, at) = furthest_apart(data, &chosen.fit, &rival.fit);
            (rival, difference, at)
        })
        .find(|&(_, difference, _)| difference > SAME_CURVE)?;
    Some(format!(
        "{} and {} fit about equally well but differ by {} at {at:.0} members",
        shape_name(chosen.fit.shape),
        shape_name(rival.fit.shape),
        percent(difference),
    ))
}

/// A step or a hinge at the same place is one finding, whichever it is.
fn same_knees(a: &Fit, b: &Fit) -> bool {
    let near = |(i, j): (&usize, &usize)| i.abs_diff(*j) <= 1;
    let some = a.shape.knees() > 0 && a.shape.knees() == b.shape.knees();
    some && a.brackets.iter().zip(&b.brackets).all(near)
}

/// Largest relative difference at the measured sizes, and where.
fn furthest_apart(data: &Prepared, a: &Fit, b: &Fit) -> (f64, f64) {
    let sizes = data.sizes.iter().map(|&size| f64::from(size));
    let apart = |members: f64| {
        let (a, b) = (a.at(members), b.at(members));
        let largest = a.abs().max(b.abs());
        let part = if largest > 0.0 { (a - b).abs() / largest } else { 0.0 };
        (part, members)
    };
    sizes.map(apart).fold((0.0, 0.0), |x, y| if y.0 > x.0 { y } else { x })
}

/// The largest trend that the points do not exclude, as a part of the level; or why they are not
/// flat enough to be called so.
fn flatness(data: &Prepared, constant: &Fit, dispersion: Dispersion) -> Result<f64, String> {
    let level = constant.at(data.largest());
    let unresolved = dispersion.half_width(constant, [1.0, 0.0, 0.0]);
    if unresolved.is_none_or(|half| half >= level.abs()) {
        let why = "the costs are not resolved from zero".into();
        return Err(too_few_for_growth(data).unwrap_or(why));
    }
    let trends = [Shape::Logarithmic, Shape::Linear].map(|shape| {
        let fit = fits(data, shape).pop()?;
        let (low, high) = (data.smallest(), data.largest());
        let (low, high) = (shape.basis(&[], low), shape.basis(&[], high));
        let across = std::array::from_fn(|i| high[i] - low[i]);
        Some((fit.combine(across).abs() + dispersion.half_width(&fit, across)?) / level.abs())
    });
    let bound = trends.iter().map(|trend| trend.unwrap_or(f64::INFINITY)).fold(0.0, f64::max);
    if bound <= FLAT_LIMIT {
        return Ok(bound);
    }
    if let Some(why) = too_few_for_growth(data) {
        return Err(why);
    }
    Err(format!(
        "a flat cost and a trend of up to {} from {} to {} members both fit",
        percent(bound),
        data.smallest(),
        data.largest()
    ))
}

fn candidates(data: &Prepared, all: &[Scored]) -> Vec<Candidate> {
    let mut leaders = leaders(all);
    leaders.sort_by(|a, b| a.criterion.total_cmp(&b.criterion));
    let best = leaders.first().map_or(0.0, |s| s.criterion);
    let candidate = |s: &&Scored| Candidate {
        shape: s.fit.shape,
        freedoms: s.fit.shape.freedoms(),
        criterion: s.criterion,
        above_best: s.criterion - best,
        scatter: (s.fit.chi2 / data.observations.len() as f64).sqrt(),
    };
    leaders.iter().map(candidate).collect()
}
