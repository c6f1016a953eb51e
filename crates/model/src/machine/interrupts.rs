//! Which CPU serves the devices.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Interrupts that one CPU served since the machine started (/proc/interrupts). Volatile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CpuInterrupts {
    /// The CPU.
    pub cpu: u32,
    /// Those of devices, whose lines have a number. The CPU's own timer and what the CPUs send each
    /// other follow the load, not the CPU.
    pub devices: u64,
}
