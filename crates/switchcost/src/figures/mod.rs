//! Charts of what was measured: a run becomes figures, with what others have published beside them.

mod bars;
mod cost;
mod published;
mod response;
mod ring;
mod rounds;
mod trials;

#[cfg(test)]
mod tests;

use charts::Point;
use model::estimate::Estimate;

pub(crate) use published::{of_published, with_published};
pub(crate) use response::figures as of_response;
pub(crate) use ring::figures as of_rings;
pub(crate) use trials::figures as of_trials;

/// An estimate and its interval.
fn point(x: f64, estimate: &Estimate) -> Point {
    Point { x, y: estimate.value, low: estimate.low, high: estimate.high }
}
