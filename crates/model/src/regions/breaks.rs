//! The course of the cost: its pieces and breaks, or why the points are inconclusive.

use stats::changepoint::{self, Analysis, Errors, Fit, Form, Nesting, Settings, Term, Turn};

use super::{Axis, Break, BreakKind, Breaks, Course, EQUIVALENCE, Finding, Piece, Point};
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

const STEP: Turn = Turn::Step;
/// What a switch has to fetch again is a number of bytes, so within a piece costs are straight lines in the
/// size itself; only the places of breaks are thought of in ratios.
const HINGE: Turn = Turn::RatioHinge(&[0.0, 1.0 / 3.0, 2.0 / 3.0]);
/// The number of a course that is flat, then flat at another level.
const ONE_STEP: usize = 2;

static FORMS: [Form; 14] = {
    use Term::{Beyond, One, Ramp, Step, X};
    [
        Form::new(&[One], &[]),
        Form::new(&[One, X], &[]),
        Form::new(&[One, Step(0)], &[STEP]),
        Form::new(&[One, Beyond(0)], &[HINGE]),
        Form::new(&[One, Step(0), Beyond(0)], &[STEP]),
        Form::new(&[One, X, Step(0)], &[STEP]).before(2),
        Form::new(&[One, X, Beyond(0)], &[HINGE]).before(2),
        Form::new(&[One, Step(0), Step(1)], &[STEP, STEP]),
        Form::new(&[One, Ramp], &[HINGE, HINGE]),
        Form::new(&[One, Beyond(0), Beyond(1)], &[HINGE, HINGE]),
        Form::new(&[One, Step(0), Beyond(1)], &[STEP, HINGE]),
        Form::new(&[One, Ramp, Step(1)], &[HINGE, STEP]),
        Form::new(&[One, Step(0), Ramp], &[STEP, HINGE]),
        Form::new(&[One, Step(0), Beyond(0), Beyond(1)], &[STEP, HINGE]),
    ]
};

static SETTINGS: Settings = Settings {
    forms: &FORMS,
    tolerance: EQUIVALENCE,
    relative: true,
    // Differences of long hops scatter more than those of short ones, so a point's error cannot be guessed
    // from the scatter of the others.
    errors: Errors::Smoothed,
    fewest: FEWEST_SIZES,
    // On a grid of doublings, more sizes than one do not lie between half a cache and a whole one.
    between: 1,
    nesting: Nesting::Turns,
};

/// Finds up to two breaks in the course of the cost.
///
/// Points may come in any order, and several may have the same size. Deterministic. Multiplying all costs, or
/// all sizes, by a positive number changes nothing but the unit of the answer.
#[must_use]
pub fn breaks(axis: Axis, points: &[Point]) -> Breaks {
    read(axis, &analysis(points))
}

pub(super) fn analysis(points: &[Point]) -> Analysis {
    let point = |point: &Point| changepoint::Point {
        x: point.size as f64,
        y: point.cost_ns,
        error: point.standard_error_ns,
    };
    Analysis::of(&points.iter().map(point).collect::<Vec<_>>(), &SETTINGS)
}

pub(super) fn read(axis: Axis, all: &Analysis) -> Breaks {
    let silent = Breaks {
        finding: Finding::Found,
        pieces: Vec::new(),
        breaks: Vec::new(),
        support: None,
        jump_below: None,
        smallest: all.data.places.first().map_or(0, |size| *size as u64),
        largest: all.data.places.last().map_or(0, |size| *size as u64),
        ignored: all.data.ignored,
        axis,
    };
    match choose(all, &silent.axis) {
        Err(why) => Breaks { finding: Finding::CannotTell { why }, ..silent },
        Ok((chosen, pieces, jump_below)) => Breaks {
            pieces,
            breaks: found(all, chosen),
            support: all.support(chosen),
            jump_below,
            ..silent
        },
    }
}

/// The fit, its pieces, and of a flat one the largest jump that is not excluded.
type Chosen<'a> = (&'a Fit, Vec<Piece>, Option<f64>);

fn choose<'a>(all: &'a Analysis, axis: &Axis) -> Result<Chosen<'a>, String> {
    let count = all.data.places.len();
    if count < FEWEST_SIZES {
        let sizes = if count == 1 { "size" } else { "sizes" };
        let are = if count == 1 { "is" } else { "are" };
        return Err(format!(
            "{count} {sizes} with a standard error {are} too few ({FEWEST_SIZES} are needed)"
        ));
    }
    if all.data.unit <= 0.0 {
        return Err("all costs are zero".into());
    }
    let chosen = all.chosen().ok_or("the errors are too large")?;
    if let Some(why) = misfit(all, chosen) {
        return Err(why);
    }
    let mut pieces = pieces(all, chosen);
    let mut jump_below = None;
    if let [piece] = &mut pieces[..]
        && piece.course == Course::Flat
    {
        let (last, bound) = flatness(all, chosen, axis)?;
        *piece = Piece { last: all.data.places[last] as u64, sizes: last + 1, ..*piece };
        jump_below = Some(bound);
    }
    Ok((chosen, pieces, jump_below))
}

/// Why even the best course does not describe the points.
fn misfit(all: &Analysis, fit: &Fit) -> Option<String> {
    let squares = all.data.observations.iter().map(|seen| {
        let off = (seen.y - fit.at(seen.x)) / seen.level;
        off * off
    });
    let n = all.data.observations.len() as f64;
    let off = (squares.sum::<f64>() / n).sqrt();
    let errors = (fit.solution.chi2 / n).sqrt();
    (off > FAR && errors > FAR_ERRORS)
        .then(|| format!("the points lie {} off even the best course", percent(off)))
}

/// Up to which size (its index) the points exclude a jump of [`FLAT_LIMIT`], and the largest that
/// they do not exclude up to there, as a part of the level; or why they are not flat enough.
fn flatness(all: &Analysis, chosen: &Fit, axis: &Axis) -> Result<(usize, f64), String> {
    let sizes = &all.data.places;
    let level = chosen.at(1.0).abs();
    let unresolved = all.half_width(chosen, [1.0, 0.0, 0.0, 0.0]);
    if unresolved.is_none_or(|half| half >= level) {
        return Err("the costs are not resolved from zero".into());
    }
    let jump = |fit: &Fit| {
        let half = all.half_width(fit, [0.0, 1.0, 0.0, 0.0]).unwrap_or(f64::INFINITY);
        (fit.solution.coefficients[1].abs() + half) / level
    };
    // A jump before the second size or at the last would be an outlier: two are needed on each side.
    let inner = 1..sizes.len() - 2;
    let steps = all.fits.iter().filter(|fit| fit.number == ONE_STEP);
    let mut below = 0.0_f64;
    for fit in steps.filter(|fit| inner.contains(&fit.brackets[0])) {
        let (bracket, bound) = (fit.brackets[0], jump(fit));
        if bound <= FLAT_LIMIT {
            below = below.max(bound);
        } else if bracket + 1 < FEWEST_SIZES {
            return Err(format!(
                "no break is resolved, but a jump of up to {} between {} would not be either",
                percent(bound),
                axis.range(sizes[bracket] as u64, sizes[bracket + 1] as u64),
            ));
        } else {
            return Ok((bracket, below));
        }
    }
    Ok((sizes.len() - 1, below))
}

/// Indices of the first and last size of each piece.
fn spans(all: &Analysis, fit: &Fit) -> Vec<(usize, usize)> {
    let firsts = std::iter::once(0).chain(fit.brackets.iter().map(|bracket| bracket + 1));
    let lasts = fit.brackets.iter().copied().chain([all.data.places.len() - 1]);
    firsts.zip(lasts).collect()
}

fn pieces(all: &Analysis, fit: &Fit) -> Vec<Piece> {
    let cost = |x: f64| (fit.at(x) * all.data.unit).clamp(-f64::MAX, f64::MAX);
    let piece = |(first, last): (usize, usize)| {
        let (start, end) = (all.data.xs[first], all.data.xs[last]);
        Piece {
            first: all.data.places[first] as u64,
            last: all.data.places[last] as u64,
            sizes: last - first + 1,
            cost_at_first_ns: cost(start),
            cost_at_last_ns: cost(end),
            course: course(all, fit, start, end),
        }
    };
    spans(all, fit).into_iter().map(piece).collect()
}

fn course(all: &Analysis, fit: &Fit, start: f64, end: f64) -> Course {
    let (at_start, at_end) = (fit.basis(start), fit.basis(end));
    let across = std::array::from_fn(|i| at_end[i] - at_start[i]);
    let level = fit.combine(at_start).abs().max(fit.combine(at_end).abs());
    let half = all.half_width(fit, across).unwrap_or(f64::INFINITY);
    Course::of(fit.combine(across), half.max(EQUIVALENCE * level))
}

fn found(all: &Analysis, fit: &Fit) -> Vec<Break> {
    let spans = spans(all, fit);
    let sizes = &all.data.places;
    let found = |(which, turn): (usize, &Turn)| {
        let (first, last) = all.brackets(fit, which);
        let (low, high) = (sizes[first] as u64, sizes[last + 1] as u64);
        let (start, end) = spans[which + 1];
        Break {
            kind: if *turn == Turn::Step { BreakKind::Step } else { BreakKind::Hinge },
            at: ((fit.turns[which] * sizes[0]).round() as u64).clamp(low, high),
            low,
            high,
            sizes_after: end - start + 1,
        }
    };
    fit.form.turns.iter().enumerate().map(found).collect()
}
