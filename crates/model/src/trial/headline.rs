//! The one figure that stands for a case, by which its precision and its scatter are told.

use super::by_round::ByRound;
use super::case::Trial;
use super::figures::ByCase;
use super::sample::Sample;
use super::{gaps, interference, loops, malloc, overhead, primes, sampling, wakeup};
use crate::estimate::Estimate;
use crate::levels::with_shared_level;
use crate::run::{Failure, Run};
use crate::sample::trials;

/// The tally that it is of.
pub(super) fn tally(trial: &Trial) -> &'static str {
    match trial {
        Trial::Call { .. } | Trial::Loop { .. } | Trial::TwoProcesses => overhead::BATCH_TICKS,
        Trial::Primes { .. } => primes::THREADCLOCK_NS,
        Trial::Malloc { .. } => malloc::MALLOC_TICKS,
        // A count: of no tally.
        Trial::Sampling { .. } => "",
        Trial::Execution(_) => interference::EXECUTION_NS,
        Trial::Gaps { .. } => gaps::GAP_TICKS,
        Trial::Wakeup(_) => wakeup::LATE_NS,
    }
}

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

/// That figure by the number of its round. Rounds without it are passed over.
fn by_round(by_case: &ByCase, case: usize, of: impl Fn(&Sample) -> Option<f64>) -> ByRound {
    let tally = by_case.trial(case).map_or("", tally);
    by_case.by_round(case, tally, of)
}

/// That figure in nanoseconds by the number of its round, of every case of a run; empty of a ring. Of an execution it is
/// the time of a lap, as the laps differ from run to run.
pub fn headlines_ns(run: &Run) -> Vec<ByRound> {
    let plan = with_shared_level(&run.header.plan, &run.samples);
    let by_case = ByCase::new(&plan, trials(&run.samples));
    let of_sample = |case: usize, sample: &Sample| {
        let unit = match by_case.trial(case)? {
            Trial::Call { .. }
            | Trial::Loop { .. }
            | Trial::TwoProcesses
            | Trial::Malloc { .. } => sample.ns_per_tick()?,
            Trial::Execution(execution) => 1.0 / execution.laps as f64,
            Trial::Primes { .. }
            | Trial::Sampling { .. }
            | Trial::Gaps { .. }
            | Trial::Wakeup(_) => 1.0,
        };
        Some(figure(&by_case, case, sample)? * unit)
    };
    let of_case = |case: usize| by_round(&by_case, case, |sample| of_sample(case, sample));
    (0..run.header.plan.cases.len()).map(of_case).collect()
}

/// The estimate by whose interval a case is called precise.
pub(super) fn estimate(by_case: &ByCase, case: usize) -> Option<Estimate> {
    let tally = tally(by_case.trial(case)?);
    by_case.estimate_of_slices(case, tally, |sample| figure(by_case, case, sample))
}

/// The relative half-width of each trial that is still measured; none of one without an interval.
pub(crate) fn widths(by_case: &ByCase, failures: &[Failure]) -> impl Iterator<Item = Option<f64>> {
    let failed = move |case: &usize| failures.iter().any(|failure| failure.case == *case);
    by_case
        .cases()
        .filter(move |case| !failed(case))
        .map(move |case| estimate(by_case, case)?.relative_half_width())
}

/// Whether the case lacks clean slices for that figure, though they were looked for.
pub(crate) fn lacks_clean(by_case: &ByCase, case: usize) -> bool {
    by_case.trial(case).is_some_and(|trial| by_case.lacks_clean(case, tally(trial)))
}
