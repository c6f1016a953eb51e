//! Statistics for repeated measurements: location, spread, and intervals that resample rounds. `docs/method.md` gives every formula and its source.

mod bootstrap;
mod location;
mod order;
mod student;

pub(crate) use bootstrap::resampled_middles;
pub use bootstrap::{Bootstrapped, Interval, RESAMPLES, bootstrap};
pub(crate) use location::cut;
pub use location::{Center, mad_sigma, mean, median, midmean, quantile};
pub use order::{median_interval, quantile_ranks};
pub use student::{Growth, Summary, normal_quantile, student_quantile};
