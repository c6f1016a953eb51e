//! Bounds that keep CPUs out of idle states (Documentation/power/pm_qos_interface.rst).

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

/// Device for the bound: what is written to a descriptor of it applies to all CPUs until the
/// descriptor is closed. By default only root may open it.
pub const LATENCY_DEVICE: &str = "/dev/cpu_dma_latency";

/// A bound on the time that CPUs take to leave an idle state, in force until this is dropped.
pub struct LatencyBound(File);

impl LatencyBound {
    /// Bounds the time to `us` microseconds; 0 allows no idle state. An error if the device cannot
    /// be opened.
    pub fn hold(us: u32) -> io::Result<Self> {
        let mut device = OpenOptions::new().read(true).write(true).open(LATENCY_DEVICE)?;
        device.write_all(&us.to_ne_bytes())?;
        Ok(Self(device))
    }

    /// Returns the smallest bound that any process holds now, in microseconds, if the kernel shows
    /// it.
    pub fn in_force_us(&self) -> Option<i32> {
        let mut bytes = [0; 4];
        self.0.read_exact_at(&mut bytes, 0).ok()?;
        Some(i32::from_ne_bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_holds_as_long_as_it_lives_or_is_refused_by_errno() {
        match LatencyBound::hold(0) {
            Ok(bound) => assert_eq!(bound.in_force_us(), Some(0)),
            Err(error) => assert!(error.raw_os_error().is_some(), "{error}"),
        }
    }
}
