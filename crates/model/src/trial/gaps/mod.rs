//! Gaps: what a busy thread loses of its CPU, to whom, and how regularly.

mod class;
mod comb;
mod found;
#[cfg(test)]
mod tests;

pub use class::Class;
pub use comb::Comb;
pub(crate) use found::find;
pub use found::{ClassFound, Found};

pub use super::gap::GAP_TICKS;

use super::sample::Sample;

/// Count: ticks for which the loop was watched.
pub const WINDOW_TICKS: &str = "window_ticks";
/// Count: ticks of the window that went into looking what a gap was, and were not watched.
pub const LOOK_TICKS: &str = "look_ticks";
/// Count: what a gap must exceed to be kept, learned from the loop.
pub const THRESHOLD_TICKS: &str = "threshold_ticks";
/// Count: median step of the loop.
pub const LOOP_TICKS: &str = "loop_ticks";
/// Count: 1 where more gaps came than there was room for, so that the window was ended early.
pub const CUT_SHORT: &str = "cut_short";
/// Count: switches of the thread, of both kinds, over the window.
pub const SWITCHES: &str = "switches";
/// Count: nanoseconds from one timer tick to the next, by the kernel's word.
pub const TICK_NS: &str = "tick_ns";
/// Counts, of interrupts that the CPU took around the window, by their name in /proc/interrupts.
pub const INTERRUPTS: &str = "interrupts_";
/// Count: all interrupts that the CPU took around the window.
pub const ALL_INTERRUPTS: &str = "interrupts_all";

/// Factor by which a gap must exceed the 99th percentile of the loop's steps: more than a slower
/// clock of the core or a busy sibling do to all steps.
pub const THRESHOLD_FACTOR: u64 = 8;

/// Watched time of a sample in nanoseconds.
fn watched_ns(sample: &Sample) -> Option<f64> {
    let window = sample.count(WINDOW_TICKS)?.saturating_sub(sample.count(LOOK_TICKS)?);
    (window > 0).then(|| Some(window as f64 * sample.ns_per_tick()?)).flatten()
}

/// Median length of the gaps in which an interrupt ran, in nanoseconds: the figure that stands for a
/// case.
pub(super) fn median_interrupt_ns(sample: &Sample) -> Option<f64> {
    let gaps = class::classified(sample);
    let lengths: Vec<f64> =
        gaps.iter().filter(|gap| gap.class == Class::Interrupt).map(|gap| gap.length_ns).collect();
    stats::median(&lengths)
}
