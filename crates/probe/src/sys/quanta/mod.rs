//! Reference quanta: two fixed pieces of work that tell how fast the CPU runs at this moment (fixed work
//! quanta, Sottile and Minnich 2004). One is bound by latency and goes with the core's clock; one is bound
//! by the core's width and goes with the clock and with who shares the core.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "aarch64")]
use aarch64::{latency_bound, throughput_bound};
#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
use x86_64::{latency_bound, throughput_bound};

use model::speed::Slices;

use super::clock::monotonic_raw_ns;

/// Whether this architecture has the loops.
pub const HAS_QUANTA: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn latency_bound() {}
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn throughput_bound() {}

/// Runs both loops and keeps their times. `start_ns` is now; gives the time after them. Room must have
/// been made: nothing is allocated here.
#[inline]
pub fn reference_quantum(start_ns: u64, slices: &mut Slices) -> u64 {
    latency_bound();
    let between_ns = monotonic_raw_ns();
    throughput_bound();
    let end_ns = monotonic_raw_ns();
    slices.push_quantum(between_ns.wrapping_sub(start_ns), end_ns.wrapping_sub(between_ns));
    end_ns
}
