//! The choice among the candidates, and what it says.

use super::fit::{Fit, fits};
use super::observe::Prepared;
use super::shape::{MOST_TERMS, Shape};
use super::{Axis, Break, Breaks, Course, EQUIVALENCE, Finding, Piece, Point};
use crate::curve::{CLEARLY_BETTER, KNEE_CHARGE, credible_span};
use crate::words::percent;

/// Fewer sizes than this say nothing about a course.
const FEWEST_SIZES: usize = 5;
/// A jump that the points must exclude before they may be called flat: half as much again. The
/// rises of Li, Ding and Shen are fourfold and more.
const FLAT_LIMIT: f64 = 0.5;
/// Points further than this part of the cost from the best course, and further than `FAR_ERRORS`
/// standard errors (root mean square both), follow none of them.
const FAR: f64 = 0.30;
/// See [`FAR`].
const FAR_ERRORS: f64 = 3.0;

/// Finds up to two breaks in the course of the cost.
///
/// Points may come in any order, and several may have the same size. Deterministic. Multiplying all costs, or all sizes, by a positive number
/// changes nothing but the unit of the answer.
#[must_use]
pub fn breaks(axis: Axis, points: &[Point]) -> Breaks {
    let data = Prepared::new(points);
    let silent = |why: String| Breaks {
        axis: axis.clone(),
        finding: Finding::CannotTell { why },
        pieces: Vec::new(),
        breaks: Vec::new(),
        support: None,
        jump_below: None,
        smallest: data.sizes.first().copied().unwrap_or(0),
        largest: data.sizes.last().copied().unwrap_or(0),
        ignored: data.ignored,
    };
    match find(&data, &axis) {
        Err(why) => silent(why),
        Ok(Found { pieces, breaks, support, jump_below }) => Breaks {
            finding: Finding::Found,
            pieces,
            breaks,
            support,
            jump_below,
            ..silent(String::new())
        },
    }
}

/// A course with free breaks, as [`super::refill`] weighs it against its own.
pub(super) struct Free {
    pub(super) chi2: f64,
    pub(super) freedoms: usize,
    pub(super) charge: f64,
}

/// All courses with free breaks.
pub(super) fn with_breaks(data: &Prepared) -> Vec<Free> {
    let free = |fit: Fit| {
        let (terms, breaks) = (fit.shape.terms(), fit.shape.breaks().len());
        let charge = terms as f64 + KNEE_CHARGE * breaks as f64;
        Free { chi2: fit.solution.chi2, freedoms: terms + breaks, charge }
    };
    let shapes = Shape::ALL.iter().filter(|shape| !shape.breaks().is_empty());
    shapes.flat_map(|&shape| fits(data, shape)).map(free).collect()
}

struct Found {
    pieces: Vec<Piece>,
    breaks: Vec<Break>,
    support: Option<f64>,
    jump_below: Option<f64>,
}

fn find(data: &Prepared, axis: &Axis) -> Result<Found, String> {
    let count = data.sizes.len();
    if count < FEWEST_SIZES {
        let sizes = if count == 1 {
            "size with a standard error is"
        } else {
            "sizes with a standard error are"
        };
        return Err(format!("{count} {sizes} too few ({FEWEST_SIZES} are needed)"));
    }
    if data.unit <= 0.0 {
        return Err("all costs are zero".into());
    }
    let all: Vec<Fit> = Shape::ALL.iter().flat_map(|&shape| fits(data, shape)).collect();
    let Some(chosen) = choose(&all) else {
        return Err("the errors are too large".into());
    };
    if let Some(why) = misfit(data, chosen) {
        return Err(why);
    }
    let mut pieces = pieces(data, chosen);
    let mut jump_below = None;
    if let [piece] = &mut pieces[..]
        && piece.course == Course::Flat
    {
        let (last, bound) = flatness(data, &all, chosen, axis)?;
        *piece = Piece { last: data.sizes[last], sizes: last + 1, ..*piece };
        jump_below = Some(bound);
    }
    let breaks = find_breaks(data, &all, chosen);
    Ok(Found { pieces, breaks, support: support(&all, chosen), jump_below })
}

/// The lowest criterion; of equal ones (to rounding) the first.
fn lowest<'a>(mut fits: impl Iterator<Item = &'a Fit>) -> Option<&'a Fit> {
    let first = fits.next()?;
    let lower = |best: &'a Fit, next: &'a Fit| {
        if next.criterion < best.criterion - 1e-7 { next } else { best }
    };
    Some(fits.fold(first, lower))
}

fn best_with(all: &[Fit], breaks: usize) -> Option<&Fit> {
    lowest(all.iter().filter(|fit| fit.shape.breaks().len() == breaks))
}

/// The best of those with the fewest breaks that are not clearly worse than the best of all.
fn choose(all: &[Fit]) -> Option<&Fit> {
    let best = lowest(all.iter())?;
    let near = |fit: &&Fit| fit.criterion <= best.criterion + CLEARLY_BETTER;
    (0..best.shape.breaks().len())
        .filter_map(|breaks| best_with(all, breaks))
        .find(near)
        .or(Some(best))
}

fn support(all: &[Fit], chosen: &Fit) -> Option<f64> {
    let fewer = (0..chosen.shape.breaks().len()).filter_map(|breaks| best_with(all, breaks));
    fewer.map(|fit| fit.criterion - chosen.criterion).reduce(f64::min)
}

/// Why even the best course does not describe the points.
fn misfit(data: &Prepared, fit: &Fit) -> Option<String> {
    let squares = data.observations.iter().map(|seen| {
        let off = (seen.cost - fit.at(seen.x)) / seen.level;
        off * off
    });
    let n = data.observations.len() as f64;
    let off = (squares.sum::<f64>() / n).sqrt();
    let errors = (fit.solution.chi2 / n).sqrt();
    (off > FAR && errors > FAR_ERRORS)
        .then(|| format!("the points lie {} off even the best course", percent(off)))
}

/// Up to which size (its index) the points exclude a jump of [`FLAT_LIMIT`], and the largest that
/// they do not exclude up to there, as a part of the level; or why they are not flat enough.
fn flatness(
    data: &Prepared,
    all: &[Fit],
    chosen: &Fit,
    axis: &Axis,
) -> Result<(usize, f64), String> {
    let level = chosen.at(1.0).abs();
    let unresolved = chosen.half_width(data, [1.0, 0.0, 0.0, 0.0]);
    if unresolved.is_none_or(|half| half >= level) {
        return Err("the costs are not resolved from zero".into());
    }
    let jump = |fit: &Fit| {
        let half = fit.half_width(data, [0.0, 1.0, 0.0, 0.0]).unwrap_or(f64::INFINITY);
        (fit.solution.coefficients[1].abs() + half) / level
    };
    // A jump before the second size or at the last would be an outlier: two are needed on each side.
    let inner = 1..data.sizes.len() - 2;
    let mut below = 0.0_f64;
    for fit in all.iter().filter(|fit| fit.shape == Shape::Step && inner.contains(&fit.brackets[0]))
    {
        let (bracket, bound) = (fit.brackets[0], jump(fit));
        if bound <= FLAT_LIMIT {
            below = below.max(bound);
        } else if bracket + 1 < FEWEST_SIZES {
            return Err(format!(
                "no break is resolved, but a jump of up to {} between {} would not be either",
                percent(bound),
                axis.range(data.sizes[bracket], data.sizes[bracket + 1]),
            ));
        } else {
            return Ok((bracket, below));
        }
    }
    Ok((data.sizes.len() - 1, below))
}

/// Indices of the first and last size of each piece.
fn spans(data: &Prepared, fit: &Fit) -> Vec<(usize, usize)> {
    let firsts = std::iter::once(0).chain(fit.brackets.iter().map(|bracket| bracket + 1));
    let lasts = fit.brackets.iter().copied().chain([data.sizes.len() - 1]);
    firsts.zip(lasts).collect()
}

fn pieces(data: &Prepared, fit: &Fit) -> Vec<Piece> {
    let piece = |(first, last): (usize, usize)| {
        let (start, end) = (data.xs[first], data.xs[last]);
        let cost = |x: f64| (fit.at(x) * data.unit).clamp(-f64::MAX, f64::MAX);
        Piece {
            first: data.sizes[first],
            last: data.sizes[last],
            sizes: last - first + 1,
            cost_at_first_ns: cost(start),
            cost_at_last_ns: cost(end),
            course: course(data, fit, start, end),
        }
    };
    spans(data, fit).into_iter().map(piece).collect()
}

fn course(data: &Prepared, fit: &Fit, start: f64, end: f64) -> Course {
    let (at_start, at_end) = (fit.shape.basis(&fit.turns, start), fit.shape.basis(&fit.turns, end));
    let across: [f64; MOST_TERMS] = std::array::from_fn(|i| at_end[i] - at_start[i]);
    let change = fit.combine(across);
    let level = fit.combine(at_start).abs().max(fit.combine(at_end).abs());
    let half = fit.half_width(data, across).unwrap_or(f64::INFINITY);
    match change.abs() > half.max(EQUIVALENCE * level) {
        true if change > 0.0 => Course::Rises,
        true => Course::Falls,
        false => Course::Flat,
    }
}

fn find_breaks(data: &Prepared, all: &[Fit], chosen: &Fit) -> Vec<Break> {
    let spans = spans(data, chosen);
    let kinds = chosen.shape.breaks();
    let found = |(which, &kind): (usize, &super::BreakKind)| {
        let same = all.iter().filter(|fit| fit.shape.breaks().len() == kinds.len());
        let scored: Vec<(usize, f64)> =
            same.map(|fit| (fit.brackets[which], fit.criterion)).collect();
        let (first, last) = credible_span(data.sizes.len(), &scored, chosen.brackets[which]);
        let (start, end) = spans[which + 1];
        let smallest = data.sizes[0] as f64;
        Break {
            kind,
            at: (chosen.turns[which] * smallest).round() as u64,
            low: data.sizes[first],
            high: data.sizes[last + 1],
            sizes_after: end - start + 1,
        }
    };
    kinds.iter().enumerate().map(found).collect()
}
