//! The working set of a program whose accesses were sampled.

use analysis::program::{AccessPattern, WorkingSet};
use probe::accesses::SampledAccesses;
use rundata::ring::LINE_BYTES;
use stats::estimate_richness;

use super::seen::{NotRead, Remedy};

/// Samples that a working set is estimated from at the least.
const FEWEST_SAMPLES: u64 = 200;
/// Share of the samples that must be understood.
const UNDERSTOOD: f64 = 0.5;
const CONFIDENCE: f64 = 0.95;

/// The working set of one thread between two of its switches, taken for that of the whole watch.
pub(super) fn working_set(seen: &SampledAccesses) -> Result<WorkingSet, NotRead> {
    let followed = seen.accesses + seen.computing;
    if followed < FEWEST_SAMPLES {
        let why = format!(
            "{followed} samples of its user time are too few ({FEWEST_SAMPLES} are needed)"
        );
        return Err(NotRead::new(why, Some(Remedy::Longer)));
    }
    if (seen.unknown as f64) > (1.0 - UNDERSTOOD) * (seen.unknown + followed) as f64 {
        let why = format!(
            "the code of {} in {} samples could not be followed",
            seen.unknown,
            seen.unknown + followed
        );
        return Err(NotRead::new(why, None));
    }
    let memory_share = seen.accesses as f64 / followed as f64;
    let all = estimate_richness(seen.line_counts_by_thread(), CONFIDENCE)
        .zip(estimate_richness(seen.line_counts_by_cpu(), CONFIDENCE));
    let (low_bytes, high_bytes, sets_per_cpu) = all.map_or((0, 0, 1.0), |(of_threads, of_cpus)| {
        let threads = seen.threads().max(1) as f64;
        let bytes = |lines: f64| (lines / threads * LINE_BYTES as f64) as u64;
        let each = of_threads.estimate / threads;
        let sets = of_cpus.estimate / seen.cpus().max(1) as f64 / each;
        let sets = sets + (of_neighbours(seen) / seen.cpus().max(1) as f64 / each).min(1.0);
        (bytes(of_threads.interval.low), bytes(of_threads.interval.high), sets)
    });
    let sampled = AccessPattern {
        sets_per_cpu,
        threads_per_cpu: seen.threads_per_cpu(),
        memory_share,
        dependent_share: seen.dependent as f64 / seen.accesses.max(1) as f64,
        involuntary_share: 0.0,
    };
    Ok(WorkingSet { low_bytes, high_bytes, sampled: Some(sampled) })
}

/// Samples of another process, beside one of the program, from which on it runs between two
/// switches of the program.
const BESIDE: f64 = 0.25;

/// Lines of the other processes that take turns with the program. However many they are, one of
/// them at least runs between two of its switches.
fn of_neighbours(seen: &SampledAccesses) -> f64 {
    let own = (seen.accesses + seen.computing + seen.unknown) as f64;
    let beside = seen.neighbours.values().filter(|of| of.samples as f64 >= BESIDE * own);
    beside
        .filter_map(|of| estimate_richness(of.line_counts(), CONFIDENCE))
        .map(|of| of.estimate)
        .sum()
}
