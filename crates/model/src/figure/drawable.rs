//! Which instruments' runs become figures.

use super::Figure;
use crate::instrument::Instrument;
use crate::run::Run;

/// An instrument whose runs can be drawn.
pub trait Drawable: Instrument {
    /// The figures of one run, of which `record` is the record. `index` is its place among the runs that
    /// are drawn together, and stands in every series. Each figure has another id.
    fn figures(run: &Run<Self>, record: &Self::Record, index: usize) -> Vec<Figure>;
}
