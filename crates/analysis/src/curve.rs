//! Change points of a cost curve, from which the law of scaling and the breaks of a working set are
//! read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::changepoint::{CurveAnalysis, FormFit, Turn};

/// The cost of one switch in ns (`y`; signed) at one size (`x`), and its standard error if it is
/// known.
pub use stats::changepoint::CurvePoint;

use crate::estimate::Estimate;

/// Returns an estimate as a point of a curve.
pub(crate) fn curve_point(size: u64, cost: &Estimate) -> CurvePoint {
    CurvePoint { x: size as f64, y: cost.value, error: cost.standard_error }
}

/// The kind of change at a knee or break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Kind")]
pub enum TurnKind {
    /// The cost jumps.
    Step,
    /// The slope changes.
    Hinge,
}

/// A turn of a fit and the measured sizes around it.
pub(crate) struct TurnBracket {
    pub(crate) kind: TurnKind,
    /// Largest measured size surely before the turn: with `high` it brackets the turn with at least
    /// 95 % of the criterion's weight.
    pub(crate) low: f64,
    /// Smallest measured size surely at or after it.
    pub(crate) high: f64,
    /// Number of the first size after it, at its most likely place.
    pub(crate) after: usize,
    /// Measured sizes from the turn to the next one or to the end.
    pub(crate) sizes_after: usize,
}

impl TurnBracket {
    /// Returns the turn `which` of a fit.
    pub(crate) fn from_fit(all: &CurveAnalysis, fit: &FormFit, which: usize) -> Self {
        let (first, last) = all.brackets(fit, which);
        let sizes = &all.data.places;
        let after = fit.brackets[which] + 1;
        let end = fit.brackets.get(which + 1).map_or(sizes.len(), |next| next + 1);
        let stepped = fit.form.turns[which] == Turn::Step;
        Self {
            kind: if stepped { TurnKind::Step } else { TurnKind::Hinge },
            low: sizes[first],
            high: sizes[last + 1],
            after,
            sizes_after: end - after,
        }
    }
}

/// Returns the best fit of points at `fewest` sizes or more; the error says why there is none.
pub(crate) fn best_fit<'a>(
    all: &'a CurveAnalysis,
    fewest: usize,
    what: &str,
) -> Result<&'a FormFit, String> {
    match all.data.places.len() {
        1 => Err(format!("1 size{what} is too few ({fewest} are needed)")),
        few if few < fewest => Err(format!("{few} sizes{what} are too few ({fewest} are needed)")),
        _ if all.data.unit <= 0.0 => Err("all costs are zero".into()),
        _ => all.chosen().ok_or("the errors are too large".into()),
    }
}

/// Returns the level of a flat fit at `x`; an error if it is not resolved from zero.
pub(crate) fn flat_level(all: &CurveAnalysis, flat: &FormFit, x: f64) -> Result<f64, String> {
    let level = flat.at(x).abs();
    match all.half_width(flat, [1.0, 0.0, 0.0, 0.0]) {
        Some(half) if half < level => Ok(level),
        _ => Err("the costs are not resolved from zero".into()),
    }
}
