//! The candidate laws as linear combinations of basis functions of the ring's size.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::curve::KNEE_CHARGE;

/// Most coefficients of any shape.
pub(super) const MOST_TERMS: usize = 3;

/// How cost per switch may depend on the members N of the ring. A step is a jump at a knee, a
/// hinge a change of slope there; `(x)+` is x where it is positive, else 0.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// a
    Constant,
    /// a + b ln N
    Logarithmic,
    /// a + b N
    Linear,
    /// a + b (1 - exp(-(N - 1) / t)): rises (or falls) to a plateau. N - 1 members that put what they
    /// touch into random sets of a cache leave this part of the last one's behind (Thiebaut and Stone 1987).
    Saturating,
    /// a + b N + c N^2, bending away from the axis (a search of an ever longer list)
    Quadratic,
    /// a, from the knee on a + b
    Step,
    /// a, from the knee on b ln(N / t) more
    FlatLogarithmic,
    /// a + b ln N, from the knee on c more
    LogarithmicStep,
    /// a + b N, from the knee on c more
    LinearStep,
    /// a + b ln N + c (N - t)+, steeper after the knee
    LogarithmicHinge,
    /// a + b N + c (N - t)+, steeper after the knee
    LinearHinge,
    /// a, then a + b, then a + b + c
    TwoSteps,
    /// a + b ((N - t)+ - (N - u)+): flat, a ramp from t to u, flat again
    Ramp,
}

impl Shape {
    /// All candidates, simpler before richer.
    pub const ALL: [Shape; 13] = [
        Shape::Constant,
        Shape::Logarithmic,
        Shape::Linear,
        Shape::Saturating,
        Shape::Quadratic,
        Shape::Step,
        Shape::FlatLogarithmic,
        Shape::LogarithmicStep,
        Shape::LinearStep,
        Shape::LogarithmicHinge,
        Shape::LinearHinge,
        Shape::TwoSteps,
        Shape::Ramp,
    ];

    /// Number of knees.
    #[must_use]
    pub fn knees(self) -> usize {
        match self {
            Shape::Constant | Shape::Logarithmic | Shape::Linear | Shape::Quadratic => 0,
            Shape::Saturating => 0,
            Shape::TwoSteps | Shape::Ramp => 2,
            _ => 1,
        }
    }

    /// Number of positions that are searched for: knees, and how fast a plateau is reached.
    pub(super) fn places(self) -> usize {
        self.knees() + usize::from(self == Shape::Saturating)
    }

    /// Coefficients and positions: what a fit is free to choose.
    pub(super) fn freedoms(self) -> usize {
        self.terms() + self.places()
    }

    /// What the criterion charges for them, in coefficients.
    pub(super) fn charge(self) -> f64 {
        self.terms() as f64 + KNEE_CHARGE * self.places() as f64
    }

    /// Number of coefficients (positions of knees not counted).
    #[must_use]
    pub fn terms(self) -> usize {
        match self {
            Shape::Constant => 1,
            Shape::Logarithmic | Shape::Linear | Shape::Saturating | Shape::Step => 2,
            Shape::FlatLogarithmic | Shape::Ramp => 2,
            _ => 3,
        }
    }

    pub(super) fn has_steps(self) -> bool {
        matches!(self, Shape::Step | Shape::LogarithmicStep | Shape::LinearStep | Shape::TwoSteps)
    }

    /// The law before the first knee.
    pub(super) fn base(self) -> Shape {
        match self {
            Shape::Logarithmic | Shape::LogarithmicStep | Shape::LogarithmicHinge => {
                Shape::Logarithmic
            }
            Shape::Linear | Shape::LinearStep | Shape::LinearHinge => Shape::Linear,
            Shape::Quadratic | Shape::Saturating => self,
            _ => Shape::Constant,
        }
    }

    /// True where `simpler` is this shape with some of its coefficients at zero.
    pub(super) fn contains(self, simpler: Shape) -> bool {
        use Shape::{Constant, Linear, Logarithmic, Step};
        match self {
            Constant => false,
            Logarithmic | Linear | Step => simpler == Constant,
            Shape::FlatLogarithmic => matches!(simpler, Constant | Logarithmic),
            Shape::Saturating | Shape::Quadratic | Shape::LinearHinge => {
                matches!(simpler, Constant | Linear)
            }
            Shape::LogarithmicStep => matches!(simpler, Constant | Logarithmic | Step),
            Shape::LinearStep => matches!(simpler, Constant | Linear | Step),
            Shape::LogarithmicHinge => matches!(simpler, Constant | Logarithmic),
            Shape::TwoSteps => matches!(simpler, Constant | Step),
            // A ramp within one bracket is a step there; one that never ends is none of the candidates.
            Shape::Ramp => matches!(simpler, Constant | Step | Linear),
        }
    }

    /// The basis functions at `members`; unused terms are 0. `turns` are the knees' positions.
    pub(super) fn basis(self, turns: &[f64], members: f64) -> [f64; MOST_TERMS] {
        let turn = |i: usize| turns.get(i).copied().unwrap_or(f64::INFINITY);
        let step = |i: usize| if members > turn(i) { 1.0 } else { 0.0 };
        let beyond = |i: usize| (members - turn(i)).max(0.0);
        let log = members.ln();
        match self {
            Shape::Constant => [1.0, 0.0, 0.0],
            Shape::Logarithmic => [1.0, log, 0.0],
            Shape::Linear => [1.0, members, 0.0],
            Shape::Quadratic => [1.0, members, members * members],
            Shape::Saturating => [1.0, -(-(members - 1.0) / turn(0)).exp_m1(), 0.0],
            Shape::Step => [1.0, step(0), 0.0],
            Shape::FlatLogarithmic => [1.0, (log - turn(0).ln()).max(0.0), 0.0],
            Shape::LogarithmicStep => [1.0, log, step(0)],
            Shape::LinearStep => [1.0, members, step(0)],
            Shape::LogarithmicHinge => [1.0, log, beyond(0)],
            Shape::LinearHinge => [1.0, members, beyond(0)],
            Shape::TwoSteps => [1.0, step(0), step(1)],
            Shape::Ramp => [1.0, beyond(0) - beyond(1), 0.0],
        }
    }

    /// The basis of the law that held before knee number `knee`, continued to `members`.
    pub(super) fn basis_before(
        self,
        turns: &[f64],
        knee: usize,
        members: f64,
    ) -> [f64; MOST_TERMS] {
        self.basis(turns.get(..knee).unwrap_or(turns), members)
    }

    /// Rejects fits that are no law of this kind: a knee must make the curve steeper (levelling
    /// off is what the logarithm is for), a quadratic must bend away from its start.
    pub(super) fn admits(self, coefficients: &[f64], turns: &[f64], range: (f64, f64)) -> bool {
        let term = |i: usize| coefficients.get(i).copied().unwrap_or(0.0);
        let turn = turns.first().copied().unwrap_or(1.0);
        let steeper = |before: f64| (before + term(2)).abs() > before.abs();
        match self {
            Shape::LogarithmicHinge => steeper(term(1) / turn),
            Shape::LinearHinge => steeper(term(1)),
            Shape::Quadratic => {
                let vertex = -term(1) / (2.0 * term(2));
                vertex <= range.0 + 0.25 * (range.1 - range.0)
            }
            _ => true,
        }
    }
}
