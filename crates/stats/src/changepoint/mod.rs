//! Change points of a curve: which of some forms the points (x, y) follow, and where its turns lie.
//!
//! [`FitSettings`] name the candidate [`CurveForm`]s, each a linear combination of [`Term`]s with up to two
//! turns. [`CurveAnalysis::new`] fits each form with its turns in every bracket between two measured x,
//! by weighted least squares, and scores the fits by a penalised criterion. [`CurveAnalysis::chosen`] is
//! the best, or the simplest inside it that is not clearly worse.

mod analysis;
mod points;
#[cfg(test)]
mod tests;

pub use analysis::{CurveAnalysis, FormFit, akaike_weights, credible_span, quantile};
pub use points::{CurvePoint, FitData, FitObservation, usable_error};

/// The confidence of every interval and bracket.
pub const CONFIDENCE: f64 = 0.95;

/// A turn counts for 3 coefficients, not 1: its place is searched for, and does not exist where
/// there is no turn (Davies 1987; the 3 is that of Ninomiya 2015, 6m + 2p).
pub const TURN_CHARGE: f64 = 3.0;

/// A richer form must beat the simpler one inside it by this much. "Considerably less support"
/// starts here (Burnham and Anderson 2002, section 2.6).
pub const CLEARLY_BETTER: f64 = 4.0;

/// What an analysis goes by.
#[derive(Clone, Copy, Debug)]
pub struct FitSettings {
    /// The candidates, simpler before richer.
    pub forms: &'static [CurveForm],
    /// Relative difference that is never called a change. It is added in quadrature to every
    /// standard error, which covers only what varies at one x.
    pub tolerance: f64,
    /// Fit x as multiples of the smallest x.
    pub relative: bool,
    /// What standard errors are believed.
    pub errors: ErrorModel,
    /// Different x below which nothing is fitted.
    pub fewest: usize,
    /// Different x that must lie between two turns.
    pub between: usize,
    /// Which form is simpler than which.
    pub nesting: Nesting,
}

/// What standard errors are believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorModel {
    /// They are as given. Where some are missing, all are taken to be known up to a common factor,
    /// which is estimated from the closest of all fits.
    Given {
        /// Points below which only a constant is fitted to points without errors.
        fewest: usize,
        /// Points without errors that must be left beyond the freedoms of a form, by number of
        /// turns.
        left: [usize; 3],
    },
    /// They are estimates from few repetitions: each is replaced by the median of its
    /// neighbourhood, points without one are left out, and each fit scales them by a factor of its
    /// own of at least 1.
    Smoothed,
}

/// Which form is simpler than which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nesting {
    /// One whose terms are among the other's, or that the other lists; fewer freedoms first.
    Terms,
    /// One with fewer turns.
    Turns,
}

/// Most coefficients of a form.
pub const MAX_TERMS: usize = 4;

/// A function of x that a coefficient belongs to. t, u are the places of the first and second turn,
/// `(x)+` is x where it is positive, else 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term {
    /// 1
    One,
    /// x
    X,
    /// ln x
    Log,
    /// x^2
    Square,
    /// 1 beyond the turn of this number, else 0
    Step(usize),
    /// (x - t)+ for the turn of this number
    Beyond(usize),
    /// (ln x - ln t)+
    LogBeyond,
    /// (x - t)+ - (x - u)+
    Ramp,
    /// 1 - exp(-(x - 1) / t)
    Approach,
    /// x^k / (x^k + t^k), with k in the place of the second turn: logistic in ln x
    Sigmoid,
}

impl Term {
    fn at(self, turns: &[f64], x: f64) -> f64 {
        let turn = |i: usize| turns.get(i).copied().unwrap_or(f64::INFINITY);
        let beyond = |i: usize| (x - turn(i)).max(0.0);
        match self {
            Term::One => 1.0,
            Term::X => x,
            Term::Log => x.ln(),
            Term::Square => x * x,
            Term::Step(i) => f64::from(x > turn(i)),
            Term::Beyond(i) => beyond(i),
            Term::LogBeyond => (x.ln() - turn(0).ln()).max(0.0),
            Term::Ramp => beyond(0) - beyond(1),
            Term::Approach => -(-(x - 1.0) / turn(0)).exp_m1(),
            Term::Sigmoid => 1.0 / (1.0 + (turn(0) / x).powf(turn(1))),
        }
    }
}

/// What a turn is, and where in the bracket between two measured x it is tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Turn {
    /// y jumps. Nothing was measured inside the bracket, so that its geometric middle stands for
    /// it.
    Step,
    /// The slope changes, at these fractions of the bracket's width.
    Hinge(&'static [f64]),
    /// The slope changes, at these fractions of the ratio of the bracket's ends.
    RatioHinge(&'static [f64]),
    /// No change of slope but the scale of [`Term::Approach`] or [`Term::Sigmoid`], at these
    /// fractions of the ratio. It must be below a third of the largest x: an end of the approach
    /// that is not measured is none.
    Scale(&'static [f64]),
    /// The scale of an approach that does not end within the points, at these multiples of the
    /// largest x.
    FarScale(&'static [f64]),
    /// The exponent of [`Term::Sigmoid`], of these.
    Exponent(&'static [f64]),
}

impl Turn {
    /// Whether y or its slope changes there.
    fn is_knee(self) -> bool {
        matches!(self, Turn::Step | Turn::Hinge(_) | Turn::RatioHinge(_))
    }

    /// What the criterion charges for it, in coefficients. An exponent has no place to be searched
    /// for.
    fn charge(self) -> f64 {
        if matches!(self, Turn::Exponent(_)) { 1.0 } else { TURN_CHARGE }
    }

    /// Places to try between `low` and `high`; a far scale's bracket ends at the largest x.
    fn places(self, low: f64, high: f64) -> Vec<f64> {
        match self {
            Turn::Step => vec![(low * high).sqrt()],
            Turn::Hinge(parts) => parts.iter().map(|part| low + part * (high - low)).collect(),
            Turn::RatioHinge(parts) | Turn::Scale(parts) => {
                parts.iter().map(|part| low * (high / low).powf(*part)).collect()
            }
            Turn::FarScale(multiples) => multiples.iter().map(|times| times * high).collect(),
            Turn::Exponent(exponents) => exponents.to_vec(),
        }
    }
}

/// What a fit must do to be of its form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormConstraint {
    /// Nothing.
    Any,
    /// Be steeper behind the turn than before it.
    Steepen,
    /// Bend away from its start: the vertex of the parabola lies in the first quarter of the range.
    BendAway,
    /// Slow down and not turn back: with terms ln x and x, their slope at the end has the sign of
    /// that of ln x.
    SlowDown,
}

/// A candidate.
#[derive(Clone, Copy, Debug)]
pub struct CurveForm {
    /// What its coefficients belong to, up to [`MAX_TERMS`].
    pub terms: &'static [Term],
    /// Its turns, ascending; at most two.
    pub turns: &'static [Turn],
    /// Different x that must lie before a single turn.
    pub before: usize,
    /// What its fits must do.
    pub must: FormConstraint,
    /// Numbers of simpler forms that it can come close to though they have other terms.
    pub contains: &'static [usize],
}

impl CurveForm {
    /// A form without conditions.
    pub const fn new(terms: &'static [Term], turns: &'static [Turn]) -> Self {
        Self { terms, turns, before: 1, must: FormConstraint::Any, contains: &[] }
    }

    /// Turns at which y or its slope changes: all but scales and exponents.
    pub fn knees(&self) -> usize {
        self.turns.iter().filter(|turn| turn.is_knee()).count()
    }

    /// Coefficients and turns: what a fit is free to choose.
    pub fn freedoms(&self) -> usize {
        self.terms.len() + self.turns.len()
    }

    /// What the criterion charges for them, in coefficients.
    pub fn charge(&self) -> f64 {
        self.terms.len() as f64 + self.turns.iter().map(|turn| turn.charge()).sum::<f64>()
    }

    /// The values of its terms at x; the rest is 0. With fewer `turns` than it has: before the next
    /// one.
    pub fn basis(&self, turns: &[f64], x: f64) -> [f64; MAX_TERMS] {
        let term = |i: usize| self.terms.get(i).map_or(0.0, |term| term.at(turns, x));
        std::array::from_fn(term)
    }

    fn admits(&self, coefficients: &[f64], turns: &[f64], range: (f64, f64)) -> bool {
        match (self.must, coefficients) {
            (FormConstraint::Steepen, [_, slope, change, ..]) => {
                let is_log = self.terms.get(1) == Some(&Term::Log);
                let before = if is_log { slope / turns[0] } else { *slope };
                (before + change).abs() > before.abs()
            }
            (FormConstraint::BendAway, [_, slope, square, ..]) => {
                -slope / (2.0 * square) <= range.0 + 0.25 * (range.1 - range.0)
            }
            (FormConstraint::SlowDown, [_, log, slope, ..]) => log * (log / range.1 + slope) >= 0.0,
            _ => true,
        }
    }
}
