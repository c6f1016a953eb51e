//! The candidate courses as linear combinations of basis functions of the size.

use super::BreakKind;

/// Most coefficients of any shape.
pub(super) const MOST_TERMS: usize = 4;

/// How the cost may depend on the size x. A step is a jump at a break, a hinge a change of slope
/// there; `(x)+` is x where it is positive, else 0. What a switch has to fetch again is a number of
/// bytes, so within a piece costs are straight lines in x itself; only the places of breaks are
/// thought of in ratios.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// a
    Flat,
    /// a + b x
    Line,
    /// a, then a + b
    Step,
    /// a + b (x - t)+
    Hinge,
    /// a, from t on b + c (x - t) more
    Jump,
    /// a + b x, from t on c more
    LineStep,
    /// a + b x + c (x - t)+
    LineHinge,
    /// a, then a + b, then a + b + c
    TwoSteps,
    /// a + b ((x - t)+ - (x - u)+)
    Ramp,
    /// a + b (x - t)+ + c (x - u)+
    TwoHinges,
    /// a, from t on a + b, from u on c (x - u) more
    StepHinge,
    /// a, b (x - t) more up to u, from u on flat and c more
    RampStep,
    /// a, from t on b + c (x - t) more, flat from u on
    JumpRamp,
    /// a, from t on b + c (x - t) more, from u on d (x - u) more
    JumpHinge,
}

impl Shape {
    /// All candidates, simpler before richer.
    pub(super) const ALL: [Shape; 14] = [
        Shape::Flat,
        Shape::Line,
        Shape::Step,
        Shape::Hinge,
        Shape::Jump,
        Shape::LineStep,
        Shape::LineHinge,
        Shape::TwoSteps,
        Shape::Ramp,
        Shape::TwoHinges,
        Shape::StepHinge,
        Shape::RampStep,
        Shape::JumpRamp,
        Shape::JumpHinge,
    ];

    /// Kinds of its breaks, ascending.
    pub(super) fn breaks(self) -> &'static [BreakKind] {
        use BreakKind::{Hinge, Step};
        match self {
            Shape::Flat | Shape::Line => &[],
            Shape::Step | Shape::Jump | Shape::LineStep => &[Step],
            Shape::Hinge | Shape::LineHinge => &[Hinge],
            Shape::TwoSteps => &[Step, Step],
            Shape::Ramp | Shape::TwoHinges => &[Hinge, Hinge],
            Shape::StepHinge | Shape::JumpRamp | Shape::JumpHinge => &[Step, Hinge],
            Shape::RampStep => &[Hinge, Step],
        }
    }

    /// Number of coefficients (places of breaks not counted).
    pub(super) fn terms(self) -> usize {
        match self {
            Shape::Flat => 1,
            Shape::Line | Shape::Step | Shape::Hinge | Shape::Ramp => 2,
            Shape::JumpHinge => 4,
            _ => 3,
        }
    }

    /// Coefficients and places: what a fit is free to choose.
    pub(super) fn freedoms(self) -> usize {
        self.terms() + self.breaks().len()
    }

    /// Sizes that the piece before the first break needs.
    pub(super) fn sizes_before(self) -> usize {
        match self {
            Shape::LineStep | Shape::LineHinge => 2,
            _ => 1,
        }
    }

    /// The basis functions at `x`; unused terms are 0. `turns` are the places of the breaks.
    pub(super) fn basis(self, turns: &[f64], x: f64) -> [f64; MOST_TERMS] {
        let turn = |i: usize| turns.get(i).copied().unwrap_or(f64::INFINITY);
        let step = |i: usize| if x > turn(i) { 1.0 } else { 0.0 };
        let beyond = |i: usize| (x - turn(i)).max(0.0);
        let ramp = beyond(0) - beyond(1);
        match self {
            Shape::Flat => [1.0, 0.0, 0.0, 0.0],
            Shape::Line => [1.0, x, 0.0, 0.0],
            Shape::Step => [1.0, step(0), 0.0, 0.0],
            Shape::Hinge => [1.0, beyond(0), 0.0, 0.0],
            Shape::Jump => [1.0, step(0), beyond(0), 0.0],
            Shape::LineStep => [1.0, x, step(0), 0.0],
            Shape::LineHinge => [1.0, x, beyond(0), 0.0],
            Shape::TwoSteps => [1.0, step(0), step(1), 0.0],
            Shape::Ramp => [1.0, ramp, 0.0, 0.0],
            Shape::TwoHinges => [1.0, beyond(0), beyond(1), 0.0],
            Shape::StepHinge => [1.0, step(0), beyond(1), 0.0],
            Shape::RampStep => [1.0, ramp, step(1), 0.0],
            Shape::JumpRamp => [1.0, step(0), ramp, 0.0],
            Shape::JumpHinge => [1.0, step(0), beyond(0), beyond(1)],
        }
    }
}
