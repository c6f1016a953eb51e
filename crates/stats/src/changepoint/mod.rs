//! Change points of a curve: which of some forms the points (x, y) follow, and where its turns lie.
//!
//! [`FitSettings`] name the candidate [`CurveForm`]s, each a linear combination of [`Term`]s with up
//! to two turns. [`CurveAnalysis::new`] fits each form with its turns in every bracket between two
//! measured x, by weighted least squares, and scores the fits by a penalised criterion.
//! [`CurveAnalysis::chosen`] is the best, or the simplest inside it that is not clearly worse.
//!
//! Twelve points are flat at 5 up to x = 7 and lie at 9 beyond, each known to 0.1. A constant, 1
//! coefficient, misses them by chi-squared of about 4,700. A step in the bracket from 7 to 8 hits
//! them all: chi-squared 0, for 2 coefficients and a turn. The criterion charges ln 12 = 2.5 for each
//! coefficient and three times that for a turn, 12.4 in all against 2.5: the step wins by far. A step
//! in the bracket from 6 to 7 would miss the point at 7 by 3.3, and is out. Where two brackets score
//! within a few units of each other, both are told ([`CurveAnalysis::brackets`]).

mod analysis;
mod points;
#[cfg(test)]
mod tests;

pub use analysis::{CurveAnalysis, FormFit, akaike_weights, credible_span, quantile};
pub use points::{CurvePoint, FitData, FitObservation, usable_error};

/// Confidence of every interval and bracket.
pub const CONFIDENCE: f64 = 0.95;

/// Coefficients that a turn counts for: 3, not 1, as its place is searched for, and does not exist
/// where there is no turn (Davies 1987; the 3 is that of Ninomiya 2015, 6m + 2p).
pub const TURN_CHARGE: f64 = 3.0;

/// Lead of the criterion by which a richer form must beat the simpler one inside it. "Considerably
/// less support" starts here (Burnham and Anderson 2002, section 2.6).
pub const CLEARLY_BETTER: f64 = 4.0;

/// Candidates and rules of an analysis.
#[derive(Clone, Copy, Debug)]
pub struct FitSettings {
    /// Candidates, simpler before richer.
    pub forms: &'static [CurveForm],
    /// Relative difference that is never called a change. It is added in quadrature to every
    /// standard error, which covers only what varies at one x.
    pub tolerance: f64,
    /// Whether x is fitted as multiples of the smallest x.
    pub relative: bool,
    /// Meaning of the standard errors.
    pub errors: ErrorModel,
    /// Least number of different x for any fit.
    pub fewest: usize,
    /// Least number of different x between two turns.
    pub between: usize,
    /// Order of forms from simple to rich.
    pub nesting: Nesting,
}

/// Meaning of the standard errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorModel {
    /// Errors are as given. Where some are missing, all are taken to be known up to a common factor,
    /// which is estimated from the closest of all fits.
    Given {
        /// Least number of points without errors to which more than a constant is fitted.
        fewest: usize,
        /// Least number of points without errors beyond the freedoms of a form, by number of turns.
        left: [usize; 3],
    },
    /// Errors are estimates from few repetitions: each is replaced by the median of its
    /// neighbourhood, points without one are left out, and each fit scales them by a factor of its
    /// own of at least 1.
    Smoothed,
}

/// Order of forms from simple to rich.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nesting {
    /// A form is simpler if its terms are among the other's, or the other lists it; fewer freedoms
    /// come first.
    Terms,
    /// A form with fewer turns is simpler.
    Turns,
}

/// Largest number of coefficients of a form.
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
    /// Returns the value of the term at x.
    fn value(self, turns: &[f64], x: f64) -> f64 {
        match self {
            Term::One => 1.0,
            Term::X => x,
            Term::Log => x.ln(),
            Term::Square => x * x,
            Term::Step(i) => f64::from(x > place_of(turns, i)),
            Term::Beyond(i) => beyond(turns, i, x),
            Term::LogBeyond => (x.ln() - place_of(turns, 0).ln()).max(0.0),
            Term::Ramp => beyond(turns, 0, x) - beyond(turns, 1, x),
            Term::Approach => -(-(x - 1.0) / place_of(turns, 0)).exp_m1(),
            Term::Sigmoid => 1.0 / (1.0 + (place_of(turns, 0) / x).powf(place_of(turns, 1))),
        }
    }
}

/// Returns the place of a turn; infinite for one that is not there.
fn place_of(turns: &[f64], number: usize) -> f64 {
    *turns.get(number).unwrap_or(&f64::INFINITY)
}

/// Returns how far x lies beyond a turn; 0 before it.
fn beyond(turns: &[f64], number: usize, x: f64) -> f64 {
    (x - place_of(turns, number)).max(0.0)
}

/// A change of the curve, and the places in the bracket between two measured x where it is tried.
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
    /// fractions of the ratio. It must be below a third of the largest x, so that the end of the
    /// approach is measured.
    Scale(&'static [f64]),
    /// The scale of an approach that does not end within the points, at these multiples of the
    /// largest x.
    FarScale(&'static [f64]),
    /// The exponent of [`Term::Sigmoid`]: one of these.
    Exponent(&'static [f64]),
}

impl Turn {
    /// Returns whether y or its slope changes there.
    fn is_knee(self) -> bool {
        matches!(self, Turn::Step | Turn::Hinge(_) | Turn::RatioHinge(_))
    }

    /// Returns the charge of the criterion for it, in coefficients. An exponent has no place to be
    /// searched for.
    fn charge(self) -> f64 {
        if matches!(self, Turn::Exponent(_)) { 1.0 } else { TURN_CHARGE }
    }

    /// Returns the places to try between `low` and `high`; a far scale's bracket ends at the largest
    /// x.
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

/// Condition that a fit must meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormConstraint {
    /// No condition.
    Any,
    /// Be steeper behind the turn than before it.
    Steepen,
    /// Bend away from its start: the vertex of the parabola lies in the first quarter of the range.
    BendAway,
    /// Slow down and not turn back: with terms ln x and x, their slope at the end has the sign of
    /// that of ln x.
    SlowDown,
}

/// A candidate: the terms and turns of a curve.
#[derive(Clone, Copy, Debug)]
pub struct CurveForm {
    /// Functions of x, one for each coefficient, up to [`MAX_TERMS`].
    pub terms: &'static [Term],
    /// Turns, ascending; at most two.
    pub turns: &'static [Turn],
    /// Least number of different x before a single turn.
    pub before: usize,
    /// Condition of its fits.
    pub must: FormConstraint,
    /// Numbers of simpler forms that it can come close to though they have other terms.
    pub contains: &'static [usize],
}

impl CurveForm {
    /// Builds a form without conditions.
    pub const fn new(terms: &'static [Term], turns: &'static [Turn]) -> Self {
        Self { terms, turns, before: 1, must: FormConstraint::Any, contains: &[] }
    }

    /// Returns the number of turns at which y or its slope changes: all but scales and exponents.
    pub fn knees(&self) -> usize {
        self.turns.iter().filter(|turn| turn.is_knee()).count()
    }

    /// Returns the number of coefficients and turns, which a fit is free to choose.
    pub fn freedoms(&self) -> usize {
        self.terms.len() + self.turns.len()
    }

    /// Returns the charge of the criterion for them, in coefficients.
    pub fn charge(&self) -> f64 {
        let mut charge = self.terms.len() as f64;
        for turn in self.turns {
            charge += turn.charge();
        }
        charge
    }

    /// Returns the values of its terms at x; the rest is 0. With fewer `turns` than it has, x lies
    /// before the next one.
    pub fn basis(&self, turns: &[f64], x: f64) -> [f64; MAX_TERMS] {
        let mut basis = [0.0; MAX_TERMS];
        for (value, term) in basis.iter_mut().zip(self.terms) {
            *value = term.value(turns, x);
        }
        basis
    }

    /// Returns whether a fit meets the condition.
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
