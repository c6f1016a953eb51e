//! The pieces and breaks of a cost curve, or the reason why the points are inconclusive.

use rundata::words::percent;
use stats::changepoint::{
    CurveAnalysis, CurveForm, ErrorModel, FitData, FitSettings, FormFit, Nesting, Term, Turn,
};

use super::{CostBreak, CostBreaks, CostTrend, CurveAnswer, CurvePiece, EQUIVALENCE, SizeAxis};
use crate::curve::{self, CurvePoint, TurnBracket};

/// Fewest sizes of a curve.
const FEWEST_SIZES: usize = 5;
/// Smallest relative jump that a flat curve must exclude. The rises of Li, Ding and Shen are fourfold
/// and more.
const FLAT_LIMIT: f64 = 0.5;
/// Largest distance of points from the best curve, relative to the cost; beyond it and beyond
/// [`MAX_DISTANCE_ERRORS`] (root mean square both) they follow no curve.
const MAX_DISTANCE: f64 = 0.30;
/// Largest distance of points from the best curve in standard errors: see [`MAX_DISTANCE`].
const MAX_DISTANCE_ERRORS: f64 = 3.0;

/// Standard errors by which the range of the costs is widened: see [`outside`].
const RANGE_ERRORS: f64 = 3.0;

const STEP: Turn = Turn::Step;
/// Costs are straight lines in the size within a piece, as a switch fetches bytes again; only the
/// places of breaks are in ratios.
const HINGE: Turn = Turn::RatioHinge(&[0.0, 1.0 / 3.0, 2.0 / 3.0]);
/// Number of the curve that is flat, then flat at another level.
const ONE_STEP: usize = 2;

static FORMS: [CurveForm; 14] = {
    use Term::{Beyond, One, Ramp, Step, X};
    [
        CurveForm::new(&[One], &[]),
        CurveForm::new(&[One, X], &[]),
        CurveForm::new(&[One, Step(0)], &[STEP]),
        CurveForm::new(&[One, Beyond(0)], &[HINGE]),
        CurveForm::new(&[One, Step(0), Beyond(0)], &[STEP]),
        CurveForm { before: 2, ..CurveForm::new(&[One, X, Step(0)], &[STEP]) },
        CurveForm { before: 2, ..CurveForm::new(&[One, X, Beyond(0)], &[HINGE]) },
        CurveForm::new(&[One, Step(0), Step(1)], &[STEP, STEP]),
        CurveForm::new(&[One, Ramp], &[HINGE, HINGE]),
        CurveForm::new(&[One, Beyond(0), Beyond(1)], &[HINGE, HINGE]),
        CurveForm::new(&[One, Step(0), Beyond(1)], &[STEP, HINGE]),
        CurveForm::new(&[One, Ramp, Step(1)], &[HINGE, STEP]),
        CurveForm::new(&[One, Step(0), Ramp], &[STEP, HINGE]),
        CurveForm::new(&[One, Step(0), Beyond(0), Beyond(1)], &[STEP, HINGE]),
    ]
};

pub(super) static SETTINGS: FitSettings = FitSettings {
    forms: &FORMS,
    tolerance: EQUIVALENCE,
    relative: true,
    // Differences of long hops scatter more than those of short ones, so a point's error cannot be
    // guessed from the scatter of the others.
    errors: ErrorModel::Smoothed,
    fewest: FEWEST_SIZES,
    // On a grid of doublings, more sizes than one do not lie between half a cache and a whole one.
    between: 1,
    nesting: Nesting::Turns,
};

/// Finds up to two breaks of the cost.
///
/// Points may come in any order, and several may have the same size. Deterministic. Multiplying all
/// costs, or all sizes, by a positive number changes nothing but the unit of the answer.
pub fn breaks(axis: SizeAxis, points: &[CurvePoint]) -> CostBreaks {
    read(axis, &CurveAnalysis::new(points, &SETTINGS))
}

pub(super) fn read(axis: SizeAxis, all: &CurveAnalysis) -> CostBreaks {
    let silent = empty(axis, &all.data);
    match choose(all, &silent.axis) {
        Err(why) => CostBreaks { finding: CurveAnswer::CannotTell { why }, ..silent },
        Ok((chosen, pieces, jump_below)) => CostBreaks {
            pieces,
            breaks: fitted_breaks(all, chosen),
            support: all.support(chosen),
            jump_below,
            ..silent
        },
    }
}

/// Returns breaks without pieces.
pub(super) fn empty(axis: SizeAxis, data: &FitData) -> CostBreaks {
    CostBreaks {
        axis,
        finding: CurveAnswer::Found,
        pieces: Vec::new(),
        breaks: Vec::new(),
        support: None,
        jump_below: None,
        smallest: data.places.first().map_or(0, |size| *size as u64),
        largest: data.places.last().map_or(0, |size| *size as u64),
        ignored: data.ignored,
    }
}

/// Returns the piece of the sizes from one number to another, with their fitted costs in units of
/// the data.
pub(super) fn piece(
    data: &FitData,
    (first, last): (usize, usize),
    cost: impl Fn(f64) -> f64,
    course: CostTrend,
) -> CurvePiece {
    let cost_ns = |at: usize| (cost(data.xs[at]) * data.unit).clamp(-f64::MAX, f64::MAX);
    CurvePiece {
        first: data.places[first] as u64,
        last: data.places[last] as u64,
        sizes: last - first + 1,
        cost_at_first_ns: cost_ns(first),
        cost_at_last_ns: cost_ns(last),
        course,
    }
}

/// The fit, its pieces, and of a flat one the largest jump that is not excluded.
type Chosen<'a> = (&'a FormFit, Vec<CurvePiece>, Option<f64>);

fn choose<'a>(all: &'a CurveAnalysis, axis: &SizeAxis) -> Result<Chosen<'a>, String> {
    let chosen = curve::best_fit(all, FEWEST_SIZES, " with a standard error")?;
    let mut pieces = pieces(all, chosen);
    if let Some(why) = misfit(all, chosen).or_else(|| outside(all, &pieces)) {
        return Err(why);
    }
    let [piece @ CurvePiece { course: CostTrend::Flat, .. }] = &mut pieces[..] else {
        return Ok((chosen, pieces, None));
    };
    let (last, bound) = flatness(all, chosen, axis)?;
    *piece = CurvePiece { last: all.data.places[last] as u64, sizes: last + 1, ..*piece };
    Ok((chosen, pieces, Some(bound)))
}

/// Returns the reason why even the best curve does not describe the points, if there is one.
fn misfit(all: &CurveAnalysis, fit: &FormFit) -> Option<String> {
    let mut squares = 0.0;
    for seen in &all.data.observations {
        squares += ((seen.y - fit.at(seen.x)) / seen.level).powi(2);
    }
    let count = all.data.observations.len() as f64;
    let off = (squares / count).sqrt();
    let errors = (fit.solution.chi2 / count).sqrt();
    if off > MAX_DISTANCE && errors > MAX_DISTANCE_ERRORS {
        Some(format!("even the best fit misses the points by {}", percent(off)))
    } else {
        None
    }
}

/// Returns the reason why a curve cannot be that of a cost: it falls to zero, or leaves the range of
/// the measured costs, each with [`RANGE_ERRORS`] standard errors.
pub(super) fn outside(all: &CurveAnalysis, pieces: &[CurvePiece]) -> Option<String> {
    let data = &all.data;
    let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
    for seen in &data.observations {
        least = least.min(seen.y - RANGE_ERRORS / seen.precision);
        most = most.max(seen.y + RANGE_ERRORS / seen.precision);
    }
    let (least_ns, most_ns) = (least * data.unit, most * data.unit);
    if pieces.iter().any(|piece| piece.lowest_ns() <= 0.0) {
        return Some("even the best fit falls to zero".to_string());
    }
    for piece in pieces {
        if piece.lowest_ns() < least_ns || piece.highest_ns() > most_ns {
            return Some("even the best fit leaves the measured range".to_string());
        }
    }
    None
}

/// Returns the number of the size up to which the points exclude a jump of [`FLAT_LIMIT`], and the
/// largest jump that they do not exclude up to there, relative to the level; the error says why they
/// are not flat enough.
fn flatness(
    all: &CurveAnalysis,
    chosen: &FormFit,
    axis: &SizeAxis,
) -> Result<(usize, f64), String> {
    let sizes = &all.data.places;
    let level = curve::flat_level(all, chosen, 1.0)?;
    // A jump before the second size or at the last would be an outlier: two are needed on each
    // side.
    let inner = 1..sizes.len() - 2;
    let mut below = 0.0_f64;
    for fit in &all.fits {
        if fit.number != ONE_STEP || !inner.contains(&fit.brackets[0]) {
            continue;
        }
        let half = all.half_width(fit, [0.0, 1.0, 0.0, 0.0]).unwrap_or(f64::INFINITY);
        let bound = (fit.solution.coefficients[1].abs() + half) / level;
        let bracket = fit.brackets[0];
        let place = axis.range(sizes[bracket] as u64, sizes[bracket + 1] as u64);
        if bound <= FLAT_LIMIT {
            below = below.max(bound);
        } else if bracket + 1 >= FEWEST_SIZES {
            return Ok((bracket, below));
        } else {
            let up_to = percent(bound);
            return Err(format!(
                "no break is resolved; a jump of up to {up_to} between {place} would not be seen"
            ));
        }
    }
    Ok((sizes.len() - 1, below))
}

fn pieces(all: &CurveAnalysis, fit: &FormFit) -> Vec<CurvePiece> {
    let mut pieces = Vec::new();
    let mut first = 0;
    let mut ends = fit.brackets.clone();
    ends.push(all.data.places.len() - 1);
    for last in ends {
        let trend = trend(all, fit, all.data.xs[first], all.data.xs[last]);
        pieces.push(piece(&all.data, (first, last), |x| fit.at(x), trend));
        first = last + 1;
    }
    pieces
}

/// Returns the trend of a fit from `start` to `end`.
fn trend(all: &CurveAnalysis, fit: &FormFit, start: f64, end: f64) -> CostTrend {
    let (at_start, at_end) = (fit.basis(start), fit.basis(end));
    let across = std::array::from_fn(|i| at_end[i] - at_start[i]);
    let level = fit.combine(at_start).abs().max(fit.combine(at_end).abs());
    let half = all.half_width(fit, across).unwrap_or(f64::INFINITY);
    CostTrend::from_change(fit.combine(across), half.max(EQUIVALENCE * level))
}

/// Returns the breaks of a fit.
fn fitted_breaks(all: &CurveAnalysis, fit: &FormFit) -> Vec<CostBreak> {
    let mut breaks = Vec::new();
    for (number, turn) in fit.turns.iter().enumerate() {
        let TurnBracket { kind, low, high, sizes_after, .. } =
            TurnBracket::from_fit(all, fit, number);
        let (low, high) = (low as u64, high as u64);
        let at = ((turn * all.data.places[0]).round() as u64).clamp(low, high);
        breaks.push(CostBreak { kind, at, low, high, sizes_after });
    }
    breaks
}
