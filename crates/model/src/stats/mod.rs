//! Statistics for repeated measurements: location, spread, and intervals that resample rounds
//! first and the samples within them second. `docs/method.md` gives every formula and its source.

mod bootstrap;
mod location;
mod order;
mod student;

pub(crate) use bootstrap::resampled_middles;
pub use bootstrap::{Interval, OnePerRound, RESAMPLES, Rounds, hierarchical_interval};
pub(crate) use location::cut;
pub use location::{Center, mad_sigma, mean, median, midmean, quantile};
pub use order::{median_interval, quantile_ranks};
pub use student::{Growth, Summary, student_quantile};
