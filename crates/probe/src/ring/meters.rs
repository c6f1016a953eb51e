//! What the leader of a ring reads around each slice, outside of its time.

use super::own_time::OwnTime;
use crate::sys::CpuEvents;

/// What is read around slices.
#[derive(Default)]
pub struct Meters {
    /// The members' clocks.
    pub own_time: OwnTime,
    /// The CPU's events, where some were asked for.
    pub events: Option<CpuEvents>,
}

impl Meters {
    /// Of the clocks alone.
    pub fn of(own_time: OwnTime) -> Self {
        Self { own_time, events: None }
    }

    /// With events, around the clocks.
    pub fn with_events(own_time: OwnTime, mut events: Option<CpuEvents>) -> Self {
        let clocks = || {
            own_time.ns();
            own_time.ns();
        };
        if let Some(events) = &mut events {
            events.measure_empty(clocks);
        }
        Self { own_time, events }
    }
}
