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

use charts::{Figure, Point};
use model::estimate::Estimate;
use model::instrument::Instrument;
use model::run::Run;

pub(crate) use published::{of_published, with_published};

/// An instrument whose runs can be drawn.
pub(crate) trait Drawable: Instrument {
    /// The figures of one run, of which `record` is the record. `index` is its place among the runs that
    /// are drawn together, and stands in every series. Each figure has another id.
    fn figures(run: &Run<Self>, record: &Self::Record, index: usize) -> Vec<Figure>;
}

/// An estimate and its interval.
fn point(x: f64, estimate: &Estimate) -> Point {
    Point { x, y: estimate.value, low: estimate.low, high: estimate.high }
}
