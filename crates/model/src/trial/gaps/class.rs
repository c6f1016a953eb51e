//! What a gap was, as far as the kernel's own counts tell.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LOOP_TICKS;
use crate::trial::sample::Sample;

/// What took the CPU from the thread.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Not switched out, and its CPU clock went on: an interrupt, an exception, or a pause that the
    /// kernel does not know of (system management, a hypervisor that does not report).
    Interrupt,
    /// The kernel counted a switch of the thread: another task ran.
    SwitchedOut,
    /// Not switched out, but its CPU clock stood still: stolen by the hypervisor; or an interrupt,
    /// where the kernel accounts for those apart (CONFIG_IRQ_TIME_ACCOUNTING).
    Uncharged,
}

impl Class {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 3] = [Self::Interrupt, Self::SwitchedOut, Self::Uncharged];
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Interrupt => "interrupt",
            Self::SwitchedOut => "switched out",
            Self::Uncharged => "uncharged",
        })
    }
}

/// Shortest gap of which the thread's CPU clock tells whether it went on: looking at it takes
/// hundreds of nanoseconds, not always as many.
const SHORTEST_TOLD_NS: f64 = 2000.0;
/// Share of a gap for which the clock must have stood still.
const UNCHARGED_SHARE: f64 = 0.5;

/// A gap in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Told {
    /// From the start of the window.
    pub(super) at_ns: f64,
    /// Beyond a step of the loop.
    pub(super) length_ns: f64,
    pub(super) class: Class,
}

/// The gaps of a sample in the order of time; none without a rate of its time stamp.
pub(super) fn classified(sample: &Sample) -> Vec<Told> {
    let Some(ns) = sample.ns_per_tick().filter(|ns| *ns > 0.0) else { return Vec::new() };
    let step = sample.count(LOOP_TICKS).unwrap_or(0) as f64;
    let told = |gap: &crate::trial::Gap| {
        let length_ns = (gap.ticks as f64 - step) * ns;
        let stood_still_ns = gap.clocked_ticks as f64 * ns - gap.cpu_ns as f64;
        let class = if gap.switches > 0 {
            Class::SwitchedOut
        } else if length_ns >= SHORTEST_TOLD_NS && stood_still_ns > UNCHARGED_SHARE * length_ns {
            Class::Uncharged
        } else {
            Class::Interrupt
        };
        Told { at_ns: gap.at_ticks as f64 * ns, length_ns, class }
    };
    sample.gaps.iter().map(told).collect()
}
