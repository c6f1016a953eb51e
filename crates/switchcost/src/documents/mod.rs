//! What only the four documents ask for: their programs and their experiments. No other command needs
//! them.

pub(crate) mod classic;
pub(crate) mod interference;
pub(crate) mod malloc;
pub(crate) mod paper;
pub(crate) mod primes;
pub(crate) mod sampling;
