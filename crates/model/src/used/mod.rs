//! What commands used: figures of several runs.

mod ratio;
mod split;

pub use ratio::of_logarithm;
pub use split::{Part, Split, Sums};
