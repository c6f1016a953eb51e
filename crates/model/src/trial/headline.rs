//! The one figure that stands for a case, by which its precision and its scatter are told.

use super::case::Trial;
use super::figures::ByCase;
use super::sample::Sample;
use super::{interference, malloc, overhead, primes, sampling};
use crate::estimate::Estimate;

/// The figure of one sample.
pub(super) fn figure(by_case: &ByCase, case: usize, sample: &Sample) -> Option<f64> {
    let median = |name: &str| sample.tally(name)?.quantile(0.5).map(|median| median as f64);
    match by_case.trial(case)? {
        Trial::Call { .. } => median(overhead::CALL_TICKS),
        Trial::Primes { .. } => median(primes::THREADCLOCK_NS),
        Trial::Malloc { .. } => median(malloc::MALLOC_TICKS),
        Trial::Sampling { .. } => sampling::sleepers_share(sample),
        Trial::Execution(_) => median(interference::EXECUTION_NS),
    }
}

/// The estimate by whose interval a case is called precise.
pub(super) fn estimate(by_case: &ByCase, case: usize) -> Option<Estimate> {
    by_case.estimate(case, |sample| figure(by_case, case, sample))
}
