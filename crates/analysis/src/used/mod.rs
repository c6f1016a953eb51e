//! What commands used: figures of several runs.

mod figure;
mod known;
mod ratio;
mod split;

pub use figure::{Figure, outliers};
pub use known::{Known, is_bound, widened};
pub use ratio::{of_logarithm, ratio};
pub use split::{Part, Split, Sums};
