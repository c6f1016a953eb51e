//! The one figure that stands for a case: the median of what its trial is about.

use super::case::Trial;
use super::figures::ByCase;
use super::sample::Sample;
use super::{malloc, overhead, primes};
use crate::estimate::Estimate;

/// The figure of one sample.
pub(super) fn figure(by_case: &ByCase, case: usize, sample: &Sample) -> Option<f64> {
    let name = match by_case.trial(case)? {
        Trial::Call { .. } => overhead::CALL_TICKS,
        Trial::Primes { .. } => primes::THREADCLOCK_NS,
        Trial::Malloc { .. } => malloc::MALLOC_TICKS,
        // Its error is a law, not a level: no number of rounds narrows it to a share of itself.
        Trial::Sampling { .. } => return None,
    };
    sample.tally(name)?.quantile(0.5).map(|median| median as f64)
}

/// The estimate by whose interval a case is called precise.
pub(super) fn estimate(by_case: &ByCase, case: usize) -> Option<Estimate> {
    by_case.estimate(case, |sample| figure(by_case, case, sample))
}
