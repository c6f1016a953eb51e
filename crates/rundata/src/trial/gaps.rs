//! Gaps in a busy loop.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::median;

use super::{MeasureUnit, TrialMeasure, TrialSample};
use crate::experiment::named;

/// Tally that a sample's gaps come to: the length of each.
pub const GAP_TICKS: &str = "gap_ticks";
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
/// Counts, of interrupts that the CPU took around the window, by their name in
/// /proc/interrupts.
pub const INTERRUPTS: &str = "interrupts_";
/// Count: all interrupts that the CPU took around the window.
pub const ALL_INTERRUPTS: &str = "interrupts_all";

/// Factor by which a gap must exceed the 99th percentile of the loop's steps: more than a
/// slower clock of the core or a busy sibling do to all steps.
pub const THRESHOLD_FACTOR: u64 = 8;

/// Class of a gap, by what took the CPU from the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GapClass {
    /// Not switched out, and its CPU clock went on: an interrupt, an exception, or a pause that the
    /// kernel does not know of (system management, a hypervisor that does not report).
    Interrupt,
    /// The kernel counted a switch of the thread: another task ran.
    SwitchedOut,
    /// Not switched out, but its CPU clock stood still: stolen by the hypervisor; or an interrupt,
    /// where the kernel accounts for those apart (CONFIG_IRQ_TIME_ACCOUNTING).
    Uncharged,
}

named!(GapClass, "class of gaps", Interrupt => "interrupt", SwitchedOut => "switched out",
    Uncharged => "uncharged");

/// Shortest gap for which the thread's CPU clock shows whether it went on, in nanoseconds: looking
/// at the clock takes hundreds of nanoseconds, not always as many.
const MIN_CLOCKED_GAP_NS: f64 = 2000.0;
/// Least share of a gap for which the clock must have stood still.
const MIN_UNCHARGED_SHARE: f64 = 0.5;

/// A gap in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassifiedGap {
    /// From the start of the window.
    pub at_ns: f64,
    /// Beyond a step of the loop.
    pub length_ns: f64,
    /// Class of the gap.
    pub class: GapClass,
}

/// Returns the gaps of a sample in the order of time; an empty list without a rate of its time
/// stamp. A gap no longer than a step of the loop is none.
pub fn classify(sample: &TrialSample) -> Vec<ClassifiedGap> {
    let ns = sample.ns_per_tick().unwrap_or(0.0);
    if ns <= 0.0 {
        return Vec::new();
    }
    let step = sample.count(LOOP_TICKS).unwrap_or(0) as f64;
    let mut gaps = Vec::new();
    for gap in &sample.gaps {
        let length_ns = (gap.ticks as f64 - step) * ns;
        let stood_still_ns = gap.clocked_ticks as f64 * ns - gap.cpu_ns as f64;
        let class = if gap.switches > 0 {
            GapClass::SwitchedOut
        } else if length_ns >= MIN_CLOCKED_GAP_NS
            && stood_still_ns > MIN_UNCHARGED_SHARE * length_ns
        {
            GapClass::Uncharged
        } else {
            GapClass::Interrupt
        };
        if length_ns > 0.0 {
            gaps.push(ClassifiedGap { at_ns: gap.at_ticks as f64 * ns, length_ns, class });
        }
    }
    gaps
}

/// Returns the median length of the gaps in which an interrupt ran, in nanoseconds: the figure that
/// stands for a case.
pub fn median_interrupt_ns(sample: &TrialSample) -> Option<f64> {
    let mut lengths_ns = Vec::new();
    for gap in classify(sample) {
        if gap.class == GapClass::Interrupt {
            lengths_ns.push(gap.length_ns);
        }
    }
    median(&lengths_ns)
}

/// Length of an interrupt. The share of time lost would be no measure: it goes from nothing to much
/// by what else the machine does.
pub(super) const MEASURES: [TrialMeasure; 1] = [TrialMeasure::new(
    "interrupt_ns",
    "ns of an interrupt",
    GAP_TICKS,
    MeasureUnit::Ns,
    median_interrupt_ns,
)
.that_waits()];
