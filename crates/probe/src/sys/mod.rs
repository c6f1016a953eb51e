//! The only unsafe code of the probes: calls that no safe crate offers, each wrapped in a function
//! that cannot be misused.
#![allow(unsafe_code)]

mod clock;
mod heap;
mod process;
mod shared;
mod trace;
mod usage;
mod walk;

pub use clock::{
    CpuClock, cpu_clock_ns, monotonic_ns, monotonic_raw_ns, own_process_cpu_ns, own_thread_cpu_ns,
};
pub use heap::{Block, heap_end};
pub use process::{Forked, deadline, default_alarm, exit_now, fork, set_policy};
pub use shared::{Cell, SharedArea};
pub use trace::count_syscalls;
pub use usage::{Whose, times, usage};
pub use walk::Array;
