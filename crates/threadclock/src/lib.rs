//! Reads the CPU time of the calling thread for the price of one time stamp.
//!
//! ```
//! let clock = threadclock::ThreadClock::for_this_thread();
//! let watch = clock.stopwatch();
//! let sum: u64 = (0..1_000).sum();
//! println!("{sum}: {} ns of CPU time, {} tier", watch.elapsed().ns, clock.tier());
//! ```
//!
//! The figure is that of `clock_gettime(CLOCK_THREAD_CPUTIME_ID)`, to within
//! [`ThreadClock::error_bound_ns`], at about a fiftieth of its cost. Linux only. The modules:
//!
//! ```text
//! slot        the state of a clock and the fast read      witness     signs of a switch, tested
//! thread      the pages of a thread that hold its slots   calibrate   the rate of the counter
//! clock       ThreadClock, Stopwatch                      arch        time stamps by processor
//! getpinfo    any thread or process, by system calls      pinfo       the patched kernel's call
//! table       any thread, from a table of switchtrace     perf, sys, ffi   perf events, calls, C
//! ```
//!
//! The method, the tiers, their limits and measured figures: `docs/threadclock.md`.
#![no_std]
// The workspace denies unsafe code; this crate is one of the few places that are for it: it reads
// processor registers, the thread's rseq area, and pages that the kernel shares.
#![allow(unsafe_code)]
#![deny(unsafe_op_in_unsafe_fn)]
#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

// The panic handler of the C libraries, and the harness of the tests.
#[cfg(any(feature = "std", test))]
extern crate std;

#[cfg(all(feature = "abort", not(any(feature = "std", test))))]
#[panic_handler]
fn abort(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: does not return.
    unsafe { libc::abort() }
}

mod arch;
mod calibrate;
mod clock;
#[cfg(feature = "ffi")]
pub mod ffi;
mod getpinfo;
mod perf;
pub mod pinfo;
mod slot;
mod sys;
pub mod table;
mod thread;
mod types;
mod witness;

pub use clock::{Elapsed, Stopwatch, ThreadClock, now};
pub use getpinfo::{getpinfo, getpinfo_process};
pub use perf::CoreClock;
pub use slot::ResyncCounts;
pub use table::ThreadTimeReader;
pub use types::{CoreCycles, CpuTime, Tier, TierRefusal, TimeReadError};

/// Returns the bare time stamp of this processor (TSC, CNTVCT_EL0); `None` where user space has none.
///
/// The counter goes on while the thread does not run. Out of order, as [`ThreadClock::now`].
#[inline(always)]
pub fn time_stamp() -> Option<u64> {
    arch::HAS_COUNTER.then(arch::stamp)
}

/// Returns the bare time stamp in order, as [`ThreadClock::now_ordered`].
#[inline(always)]
pub fn time_stamp_ordered() -> Option<u64> {
    arch::HAS_COUNTER.then(arch::stamp_ordered)
}

/// Makes tests of the README's examples.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ThreadclockReadme;
