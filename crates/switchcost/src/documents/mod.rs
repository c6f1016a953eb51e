//! What only the four documents ask for: their programs, their experiments, the figures that were
//! published. No other command needs them.

pub(crate) mod classic;
pub(crate) mod history;
pub(crate) mod interference;
pub(crate) mod malloc;
pub(crate) mod paper;
pub(crate) mod primes;
pub(crate) mod sampling;
