//! The one figure that stands for a case, by which its precision and its scatter are told.

use super::case::Trial;
use super::figures::ByCase;
use super::sample::Sample;
use super::{gaps, interference, loops, malloc, overhead, primes, sampling, wakeup};
use crate::estimate::Estimate;

/// The figure of one sample.
pub(super) fn figure(by_case: &ByCase, case: usize, sample: &Sample) -> Option<f64> {
    match by_case.trial(case)? {
        // Not the single call: less the empty interval, a short one is nothing, give or take a step
        // of the counter, and no number of rounds narrows that to a share of itself.
        Trial::Call { .. } => overhead::in_a_row(sample),
        Trial::Loop { .. } => loops::net_ticks(sample),
        Trial::TwoProcesses => loops::loop_ticks(sample),
        Trial::Primes { .. } => primes::mean(sample, primes::THREADCLOCK_NS),
        Trial::Malloc { .. } => malloc::net_median(sample),
        Trial::Sampling { .. } => sampling::sleepers_share(sample),
        Trial::Execution(_) => {
            sample.tally(interference::EXECUTION_NS)?.quantile(0.5).map(|median| median as f64)
        }
        // Not the share lost: it goes from nothing to much by what else the machine does.
        Trial::Gaps { .. } => gaps::median_interrupt_ns(sample),
        Trial::Wakeup(_) => wakeup::median_ns(sample),
    }
}

/// The estimate by whose interval a case is called precise.
pub(super) fn estimate(by_case: &ByCase, case: usize) -> Option<Estimate> {
    by_case.estimate(case, |sample| figure(by_case, case, sample))
}
