//! Change points of a curve: which of some forms the points (x, y) follow, and where its turns lie.
//!
//! [`Settings`] name the candidate [`Form`]s, each a linear combination of [`Term`]s with up to two
//! turns. [`Analysis::of`] fits each form with its turns in every bracket between two measured x, by
//! weighted least squares, and scores the fits by a penalised criterion.
//! [`Analysis::chosen`] is the best, or the simplest inside it that is not clearly worse.

mod choose;
mod fit;
mod form;
mod points;

pub use choose::{Analysis, akaike_weights, credible_span, quantile};
pub use fit::Fit;
pub use form::{Form, MOST_TERMS, Must, Term, Turn};
pub use points::{Data, Observation, Point, sound_error};

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
pub struct Settings {
    /// The candidates, simpler before richer.
    pub forms: &'static [Form],
    /// Relative difference that is never called a change. It is added in quadrature to every standard
    /// error, which covers only what varies at one x.
    pub tolerance: f64,
    /// Fit x as multiples of the smallest x.
    pub relative: bool,
    /// What standard errors are believed.
    pub errors: Errors,
    /// Different x below which nothing is fitted.
    pub fewest: usize,
    /// Different x that must lie between two turns.
    pub between: usize,
    /// Which form is simpler than which.
    pub nesting: Nesting,
}

/// What standard errors are believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errors {
    /// They are as given. Where some are missing, all are taken to be known up to a common factor,
    /// which is estimated from the closest of all fits.
    Given {
        /// Points below which only a constant is fitted to points without errors.
        fewest: usize,
        /// Points without errors that must be left beyond the freedoms of a form, by number of turns.
        left: [usize; 3],
    },
    /// They are estimates from few repetitions: each is replaced by the median of its neighbourhood,
    /// points without one are left out, and each fit scales them by a factor of its own of at least 1.
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
