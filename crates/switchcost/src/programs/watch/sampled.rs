//! Estimates the working set of a program from samples of its memory accesses.
//!
//! Samples are few and lines are many, so most lines of a working set are never sampled. Their
//! number follows from how often the sampled ones repeat, as ecologists estimate the species of a
//! forest: 1,000 samples that hit 990 different lines come from a large set, 1,000 samples that hit
//! 40 lines from one of little more than 40.

use analysis::program::{AccessPattern, WorkingSet};
use probe::accesses::SampledAccesses;
use rundata::ring::LINE_BYTES;
use stats::estimate_richness;

use super::observation::{UnreadReason, UnreadRemedy};

/// Samples that an estimate needs.
const MIN_SAMPLES: u64 = 200;
/// Share of the samples whose code must have been understood.
const MIN_FOLLOWED_SHARE: f64 = 0.5;
const CONFIDENCE: f64 = 0.95;

/// Estimates the working set of one thread between two of its switches, for which that of the whole
/// watch is taken.
///
/// # Errors
/// Fails if samples are too few, or the code of most could not be followed.
pub(super) fn working_set(accesses: &SampledAccesses) -> Result<WorkingSet, UnreadReason> {
    let followed = accesses.accesses + accesses.computing;
    if followed < MIN_SAMPLES {
        let why =
            format!("{followed} samples of its user time are too few ({MIN_SAMPLES} are needed)");
        return Err(UnreadReason::new(why, Some(UnreadRemedy::Longer)));
    }
    let sampled = accesses.unknown + followed;
    if (accesses.unknown as f64) > (1.0 - MIN_FOLLOWED_SHARE) * sampled as f64 {
        let unknown = accesses.unknown;
        let why = format!("the code of {unknown} in {sampled} samples could not be followed");
        return Err(UnreadReason::new(why, None));
    }
    let lines = ThreadLines::estimate(accesses);
    let pattern = AccessPattern {
        sets_per_cpu: lines.sets_per_cpu,
        threads_per_cpu: accesses.threads_per_cpu(),
        memory_share: accesses.accesses as f64 / followed as f64,
        dependent_share: accesses.dependent as f64 / accesses.accesses.max(1) as f64,
        involuntary_share: 0.0,
    };
    Ok(WorkingSet {
        low_bytes: bytes_of(lines.low),
        high_bytes: bytes_of(lines.high),
        sampled: Some(pattern),
    })
}

fn bytes_of(lines: f64) -> u64 {
    (lines * LINE_BYTES as f64) as u64
}

/// Cache lines that one thread uses between two of its switches.
struct ThreadLines {
    /// Lower end of the estimate.
    low: f64,
    /// Upper end of the estimate.
    high: f64,
    /// Working sets of this size that take turns on a CPU, at least about 1.
    sets_per_cpu: f64,
}

impl ThreadLines {
    fn estimate(accesses: &SampledAccesses) -> Self {
        let by_thread = estimate_richness(accesses.line_counts_by_thread(), CONFIDENCE);
        let by_cpu = estimate_richness(accesses.line_counts_by_cpu(), CONFIDENCE);
        let (Some(by_thread), Some(by_cpu)) = (by_thread, by_cpu) else {
            return Self { low: 0.0, high: 0.0, sets_per_cpu: 1.0 };
        };
        let threads = accesses.threads().max(1) as f64;
        let cpus = accesses.cpus().max(1) as f64;
        let each = by_thread.estimate / threads;
        let program_sets = by_cpu.estimate / cpus / each;
        let competing_sets = (competing_lines(accesses) / cpus / each).min(1.0);
        Self {
            low: by_thread.interval.low / threads,
            high: by_thread.interval.high / threads,
            sets_per_cpu: program_sets + competing_sets,
        }
    }
}

/// Samples of another process, per sample of the program, from which on it runs between two
/// switches of the program.
const MIN_COMPETING_RATIO: f64 = 0.25;

/// Returns the lines of the competing tasks that take turns with the program. However many they
/// are, at least one of them runs between two of its switches.
fn competing_lines(accesses: &SampledAccesses) -> f64 {
    let program_samples = (accesses.accesses + accesses.computing + accesses.unknown) as f64;
    let mut lines = 0.0;
    for task in accesses.neighbours.values() {
        if task.samples as f64 >= MIN_COMPETING_RATIO * program_samples {
            let richness = estimate_richness(task.line_counts(), CONFIDENCE);
            if let Some(richness) = richness {
                lines += richness.estimate;
            }
        }
    }
    lines
}
