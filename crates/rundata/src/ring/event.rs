//! Events that the CPU and the kernel count beside time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::experiment::named;

/// An event of perf_event_open(2), by perf(1)'s name. There is no common one for misses of a second
/// level of cache.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum CountedEvent {
    /// Cycles of the core, in user space and in the kernel.
    #[serde(rename = "cycles")]
    Cycles,
    /// Instructions retired.
    #[serde(rename = "instructions")]
    Instructions,
    /// Loads that miss the first data cache.
    #[serde(rename = "L1-dcache-load-misses")]
    L1Misses,
    /// Loads that miss the last level of cache.
    #[serde(rename = "LLC-load-misses")]
    LastLevelMisses,
    /// Loads whose page is in no data TLB.
    #[serde(rename = "dTLB-load-misses")]
    DataTlbMisses,
    /// Fetches whose page is in no instruction TLB.
    #[serde(rename = "iTLB-load-misses")]
    InstructionTlbMisses,
    /// Switches that the kernel makes on the CPU.
    #[serde(rename = "context-switches")]
    ContextSwitches,
    /// Page faults.
    #[serde(rename = "page-faults")]
    PageFaults,
    /// Tasks that come from another CPU.
    #[serde(rename = "cpu-migrations")]
    Migrations,
}

named!(CountedEvent, "counted event", Cycles => "cycles", Instructions => "instructions",
    L1Misses => "L1-dcache-load-misses", LastLevelMisses => "LLC-load-misses",
    DataTlbMisses => "dTLB-load-misses", InstructionTlbMisses => "iTLB-load-misses",
    ContextSwitches => "context-switches", PageFaults => "page-faults",
    Migrations => "cpu-migrations");
