//! What numbers of a stored plan may be: a run file is data that anybody may have written.

use std::fmt::Display;
use std::ops::RangeInclusive;

/// Largest ring: the kernel has no more process ids (PID_MAX_LIMIT, proc_sys_kernel(5)).
pub const MAX_MEMBERS: u32 = 4_194_304;
/// Largest count of things tried: no machine has the memory or the patience for more.
pub const MAX_COUNT: u32 = 1 << 30;
/// Most laps of a sample: their hops can still be counted.
pub const MAX_LAPS: u64 = 1 << 40;
/// Nothing is watched or sampled for longer than a day.
pub const MAX_DURATION_NS: u64 = 86_400_000_000_000;
/// Digits of a number that a message tells.
const MAX_NUMBER_CHARS: usize = 24;
/// The highest real-time priority (sched(7)).
pub const MAX_PRIORITY: u32 = 99;

/// Whether a number is one that is accepted there.
pub fn check_within<T: PartialOrd + Display>(
    name: &str,
    value: T,
    accepted: RangeInclusive<T>,
) -> Result<(), String> {
    match accepted.contains(&value) {
        true => Ok(()),
        false => {
            let (least, most) = accepted.into_inner();
            // A number of 300 digits says no more than its first.
            let text = value.to_string();
            let told = match text.get(..MAX_NUMBER_CHARS) {
                Some(start) if text.len() > MAX_NUMBER_CHARS => format!("{start}..."),
                _ => text,
            };
            Err(format!("{name} is {told} (accepted: {least} to {most})"))
        }
    }
}

/// The same of a number that may be absent.
pub fn check_known_within<T: PartialOrd + Display>(
    name: &str,
    value: Option<T>,
    accepted: RangeInclusive<T>,
) -> Result<(), String> {
    value.map_or(Ok(()), |value| check_within(name, value, accepted))
}

/// A sum of figures of a run file, whatever they are: no more than there are numbers.
pub fn saturating_sum(figures: impl Iterator<Item = u64>) -> u64 {
    figures.fold(0, u64::saturating_add)
}
