//! One gap in a busy loop, as it was seen.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Tally that a sample's gaps come to: the length of each.
pub const GAP_TICKS: &str = "gap_ticks";

/// A gap between two successive time stamps of a loop that does nothing else. In JSON
/// `[at_ticks, ticks, switches, cpu_ns, clocked_ticks]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Wire", into = "Wire")]
#[schemars(with = "Wire")]
pub struct Gap {
    /// From the start of the window to the last stamp before it, in ticks of the time stamp.
    pub at_ticks: u64,
    /// From that stamp to the next, in ticks.
    pub ticks: u64,
    /// Switches of the thread, of both kinds, since it looked after the gap before.
    pub switches: u32,
    /// The thread's CPU time (CLOCK_THREAD_CPUTIME_ID) since it looked after the gap before, in
    /// nanoseconds.
    pub cpu_ns: u64,
    /// From one reading of that CPU time to the other, in ticks: what its length is compared with.
    pub clocked_ticks: u64,
}

type Wire = (u64, u64, u32, u64, u64);

impl From<Wire> for Gap {
    fn from((at_ticks, ticks, switches, cpu_ns, clocked_ticks): Wire) -> Self {
        Self { at_ticks, ticks, switches, cpu_ns, clocked_ticks }
    }
}

impl From<Gap> for Wire {
    fn from(gap: Gap) -> Self {
        (gap.at_ticks, gap.ticks, gap.switches, gap.cpu_ns, gap.clocked_ticks)
    }
}
