//! The candidate laws.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::changepoint::{Form, Must, Term, Turn};

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

/// Where a hinge is tried within a bracket.
const PLACES: &[f64] = &[0.0, 0.25, 0.5, 0.75];
const HINGE: &[Turn] = &[Turn::Hinge(PLACES)];
const RAMP: &[Turn] = &[Turn::Hinge(&[0.0, 0.5]), Turn::Hinge(&[0.5, 1.0])];

/// The form of each shape, in their order: simpler before richer. A law with a slope needs two sizes before
/// its knee to have one.
pub(super) static FORMS: [Form; 13] = {
    use Term::{Approach, Beyond, Log, LogBeyond, One, Square, Step, X};
    const LINEAR: usize = Shape::Linear as usize;
    [
        Form::new(&[One], &[]),
        Form::new(&[One, Log], &[]),
        Form::new(&[One, X], &[]),
        Form::new(&[One, Approach], &[Turn::Scale(PLACES)]).contains(&[LINEAR]),
        Form::new(&[One, X, Square], &[]).must(Must::BendAway),
        Form::new(&[One, Step(0)], &[Turn::Step]),
        Form::new(&[One, LogBeyond], &[Turn::RatioHinge(PLACES)])
            .before(2)
            .contains(&[Shape::Logarithmic as usize]),
        Form::new(&[One, Log, Step(0)], &[Turn::Step]).before(2),
        Form::new(&[One, X, Step(0)], &[Turn::Step]).before(2),
        Form::new(&[One, Log, Beyond(0)], HINGE).before(2).must(Must::Steepen),
        Form::new(&[One, X, Beyond(0)], HINGE).before(2).must(Must::Steepen),
        Form::new(&[One, Step(0), Step(1)], &[Turn::Step, Turn::Step]),
        // A ramp within one bracket is a step there; one that never ends is none of the candidates.
        Form::new(&[One, Term::Ramp], RAMP).contains(&[Shape::Step as usize, LINEAR]),
    ]
};

impl Shape {
    const ALL: [Shape; 13] = [
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

    /// The shape of the form of this number.
    pub(super) fn of(number: usize) -> Self {
        Self::ALL[number]
    }

    pub(super) fn form(self) -> &'static Form {
        &FORMS[self as usize]
    }

    /// The law before the first knee.
    pub(super) fn base(self) -> Shape {
        match self {
            Shape::Quadratic | Shape::Saturating => self,
            _ if self.form().terms.contains(&Term::Log) => Shape::Logarithmic,
            _ if self.form().terms.contains(&Term::X) => Shape::Linear,
            _ => Shape::Constant,
        }
    }
}
