//! The points, and what [`super::law`] answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shape::Shape;

/// The cost of one switch in a ring of one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Members of the ring.
    pub members: u32,
    /// Cost of one switch; signed, a difference of two rings may be below zero.
    pub cost_ns: f64,
    /// Its standard error in ns, if it is known.
    pub standard_error_ns: Option<f64>,
}

/// Where the size of the errors is known from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Noise {
    /// Every point came with its standard error.
    Known,
    /// Errors in proportion to the cost, their size estimated from the scatter about the law.
    Estimated,
}

/// The law, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Law {
    /// The points follow this shape.
    Follows {
        /// The shape.
        shape: Shape,
    },
    /// The points are inconclusive.
    CannotTell {
        /// Why not, in words that follow a colon.
        why: String,
    },
}

/// A fitted shape that can be evaluated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Curve {
    /// Which basis functions the coefficients belong to.
    pub shape: Shape,
    /// a, b, c of [`Shape`], in the unit of the costs.
    pub coefficients: Vec<f64>,
    /// Positions of the knees, in members. A step's is only known to be inside its bracket; here
    /// it is the geometric middle. Of [`Shape::Saturating`]: t, by which 63 % of the way is done.
    pub turns: Vec<f64>,
}

impl Curve {
    /// Cost of a switch in a ring of `members`.
    pub(super) fn at(&self, members: f64) -> f64 {
        let basis = self.shape.form().basis(&self.turns, members);
        let terms = self.coefficients.iter().zip(basis);
        terms.map(|(coefficient, value)| coefficient * value).sum()
    }
}

/// How the curve changes at a knee.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KneeKind {
    /// The cost jumps.
    Step,
    /// The slope changes.
    Hinge,
}

/// Where the cost leaves one law for another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Knee {
    /// How the curve changes.
    pub kind: KneeKind,
    /// Largest measured size surely before the knee: with `high_members` it brackets the knee
    /// with at least 95 % of the criterion's weight.
    pub low_members: u32,
    /// Smallest measured size surely at or after it.
    pub high_members: u32,
    /// Cost over what the law before the knee leads to, both at `at_members`. Above 1 is slower.
    /// `None` where that law leads to no positive cost.
    pub factor: Option<f64>,
    /// Lower end of the factor's interval at [`super::CONFIDENCE`], for the knee at its most
    /// likely place (delta method on the logarithm).
    pub factor_low: Option<f64>,
    /// Upper end.
    pub factor_high: Option<f64>,
    /// Where the factor is taken: the first size after a step, the end of the part after a hinge.
    pub at_members: f64,
    /// Measured sizes from the knee to the next one or to the end. With 1 the knee rests on a
    /// single size, and a disturbance of that size would look the same.
    pub sizes_after: usize,
}

/// One candidate law, at its best.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Candidate {
    /// The shape.
    pub shape: Shape,
    /// Coefficients and knee positions.
    pub freedoms: usize,
    /// The penalised criterion; lower is better, only differences mean anything.
    pub criterion: f64,
    /// Criterion above the best candidate's.
    pub above_best: f64,
    /// Root of the weighted mean squared residual, in standard errors. With [`Noise::Estimated`]
    /// the standard error is [`super::EQUIVALENCE`] of the cost.
    pub scatter: f64,
}

/// The answer of [`super::law`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The law, or why there is none.
    pub law: Law,
    /// The fitted curve; `None` if the points are inconclusive.
    pub curve: Option<Curve>,
    /// Knees of the law, ascending.
    pub knees: Vec<Knee>,
    /// For a flat law: the largest trend over the measured sizes that the points do not exclude,
    /// as a part of the cost.
    pub trend_below: Option<f64>,
    /// p of the chi-squared test for lack of fit of the law. `None` with [`Noise::Estimated`], where nothing is
    /// left to test with, and without degrees of freedom.
    pub fit_p: Option<f64>,
    /// All candidates that could be fitted, best first.
    pub candidates: Vec<Candidate>,
    /// Where the errors are known from.
    pub noise: Noise,
    /// Smallest measured size; 0 without points.
    pub smallest_members: u32,
    /// Largest measured size; 0 without points.
    pub largest_members: u32,
    /// Points left out: no members, or a cost that is no sensible number.
    pub ignored: usize,
}

impl Verdict {
    /// Cost of a switch in a ring of `members` by the fitted law, in the unit of the points.
    /// Outside the measured sizes it is an extrapolation. `None` if the points are inconclusive, or
    /// for less than one member.
    #[must_use]
    pub fn cost_at(&self, members: f64) -> Option<f64> {
        let curve = self.curve.as_ref()?;
        let sensible = members.is_finite() && members >= 1.0;
        sensible.then(|| curve.at(members)).filter(|cost| cost.is_finite())
    }

    /// The shape, if the points could tell.
    #[must_use]
    pub fn shape(&self) -> Option<Shape> {
        match self.law {
            Law::Follows { shape } => Some(shape),
            Law::CannotTell { .. } => None,
        }
    }
}
