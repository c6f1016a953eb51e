//! Keeping CPUs out of idle states (Documentation/power/pm_qos_interface.rst).

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

/// What is written to a descriptor of it holds for all CPUs until the descriptor is closed. By
/// default it is root's.
pub const LATENCY_DEVICE: &str = "/dev/cpu_dma_latency";

/// A bound on the time that leaving an idle state takes, as long as it lives.
pub struct LatencyBound(File);

impl LatencyBound {
    /// Bounds it to so many microseconds; 0 allows no idle state. Refused where the device cannot
    /// be opened.
    pub fn hold(us: u32) -> io::Result<Self> {
        let mut device = OpenOptions::new().read(true).write(true).open(LATENCY_DEVICE)?;
        device.write_all(&us.to_ne_bytes())?;
        Ok(Self(device))
    }

    /// The least bound that anybody holds now, in microseconds; absent where the kernel does not
    /// tell.
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
