//! Clocks and counters that the leader of a ring reads around each slice, outside of its time.

use super::member_clocks::MemberClocks;
use crate::sys::CpuEvents;

/// What is read around slices.
#[derive(Default)]
pub struct SliceMeters {
    /// The members' CPU clocks.
    pub clocks: MemberClocks,
    /// Hardware and software events of the CPU, if the plan asks for any.
    pub events: Option<CpuEvents>,
}

impl SliceMeters {
    /// Builds meters that read CPU clocks only.
    pub fn clocks_only(clocks: MemberClocks) -> Self {
        Self { clocks, events: None }
    }

    /// Builds meters that read the events outside of the clocks, and measures what two readings of
    /// the clocks add to the events, to subtract it later.
    pub fn with_events(clocks: MemberClocks, mut events: Option<CpuEvents>) -> Self {
        if let Some(events) = &mut events {
            events.measure_empty(|| {
                clocks.total_ns();
                clocks.total_ns();
            });
        }
        Self { clocks, events }
    }
}
