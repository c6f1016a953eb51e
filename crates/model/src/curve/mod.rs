//! What fitting a curve to costs with standard errors takes, whatever stands on the other axis: weights,
//! least squares and the penalised criterion. Shared by [`crate::scaling`] (members of a ring) and
//! [`crate::regions`] (arrays, pages, ...).

mod criterion;
mod least_squares;
pub(crate) mod nonnegative;
mod weights;

pub(crate) use criterion::{credible_span, lack_of_fit, quantile, schwarz};
pub(crate) use least_squares::{Solution, least_squares, variance_of};
pub(crate) use weights::{LARGEST_COST, levels, sound_error};

/// The confidence of every interval that comes out of a fit.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// A knee's position counts for 3 coefficients, not 1: it is searched for, and does not exist
/// where there is no knee (Davies 1987; the 3 is that of Ninomiya 2015, 6m + 2p).
pub(crate) const KNEE_CHARGE: f64 = 3.0;

/// A richer model must beat the simpler one inside it by this much. "Considerably less support"
/// starts here (Burnham and Anderson 2002, section 2.6).
pub(crate) const CLEARLY_BETTER: f64 = 4.0;
