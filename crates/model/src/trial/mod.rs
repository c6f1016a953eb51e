//! Trials, which stand beside the ring. Something is done many times in a fresh worker, and the outcome of each
//! time is kept.
//!
//! `case` says what is tried, `sample` what comes back, `record` what all runs say; one file an
//! experiment reads its samples. The names of tallies and counts stand with the experiment.

mod by_round;
mod case;
mod clean;
mod figures;
mod gap;
pub mod gaps;
mod headline;
pub mod interference;
pub mod loops;
pub mod malloc;
pub mod overhead;
pub mod primes;
mod record;
mod sample;
pub mod sampling;
mod sliced;
mod tally;
pub mod wakeup;

#[cfg(test)]
mod slices_tests;
#[cfg(test)]
pub(crate) mod tests;

pub use by_round::ByRound;
pub use case::{Case, Phase, Repeats, Trial};
pub(crate) use clean::quanta_by_cpu;
pub(crate) use figures::ByCase;
pub use gap::Gap;
pub use headline::headlines_ns;
pub(crate) use headline::{lacks_clean, widths};
pub use record::{Findings, Record, Summary};
pub(crate) use record::{judge, ns_per_tick, summaries};
pub use sample::Sample;
pub use sliced::Sliced;
pub use tally::{Quantity, Tally};
