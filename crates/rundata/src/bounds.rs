//! Ranges of the numbers in a stored plan. A run file may have been written by anybody, so every
//! number is checked before anything is built on it.

use std::fmt::Display;
use std::ops::RangeInclusive;

/// Most members of a ring: the kernel has no more process ids (PID_MAX_LIMIT, proc_sys_kernel(5)).
pub const MAX_MEMBERS: u32 = 4_194_304;
/// Most rings that run at the same time: each has a process and a descriptor in the worker.
pub const MAX_RINGS: u32 = 100_000;
/// Most repetitions of anything: no machine has the memory or the patience for more.
pub const MAX_COUNT: u32 = 1 << 30;
/// Most laps of a sample, so that their hops can still be counted.
pub const MAX_LAPS: u64 = 1 << 40;
/// Longest time that anything is watched or sampled, in nanoseconds: a day.
pub const MAX_DURATION_NS: u64 = 86_400_000_000_000;
/// Characters of a number that a message repeats.
const MAX_NUMBER_CHARS: usize = 24;
/// The highest real-time priority (sched(7)).
pub const MAX_PRIORITY: u32 = 99;

/// Checks that a number is in the accepted range; the error names it and the range.
pub fn check_within<T: PartialOrd + Display>(
    name: &str,
    value: T,
    accepted: RangeInclusive<T>,
) -> Result<(), String> {
    if accepted.contains(&value) {
        return Ok(());
    }
    let (least, most) = accepted.into_inner();
    // A number of 300 digits says no more than its first.
    let mut text = value.to_string();
    if text.len() > MAX_NUMBER_CHARS {
        text.truncate(MAX_NUMBER_CHARS);
        text.push_str("...");
    }
    Err(format!("{name} is {text} (accepted: {least} to {most})"))
}

/// Like [`check_within`], for a number that may be absent.
pub fn check_known_within<T: PartialOrd + Display>(
    name: &str,
    value: Option<T>,
    accepted: RangeInclusive<T>,
) -> Result<(), String> {
    match value {
        Some(value) => check_within(name, value, accepted),
        None => Ok(()),
    }
}

/// Sums figures of a run file, which may be any numbers: at most `u64::MAX`.
pub fn saturating_sum(figures: impl Iterator<Item = u64>) -> u64 {
    figures.fold(0, u64::saturating_add)
}
