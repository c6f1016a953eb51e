//! Figures of the time and resources that commands used, over several runs.

mod figure;
mod known;
mod ratio;
mod split;

pub use figure::{Figure, outliers};
pub use known::{Known, is_bound, widened};
pub use ratio::{from_logarithm, ratio};
pub use split::{CpuTimeSums, UserPart, UserSplit};
