//! The only unsafe code of the probes: calls that no safe crate offers, each wrapped in a function
//! that cannot be misused.
#![allow(unsafe_code)]

mod child;
mod clock;
mod condvar;
mod heap;
mod mqueue;
mod page;
mod process;
mod shared;
mod shelter;
mod signal;
mod sysv;
mod trace;
mod uring;
mod usage;
mod walk;
mod watch;

pub use child::{ChildUsage, reap, send_signal};
pub use clock::{
    CpuClock, cpu_clock_ns, monotonic_ns, monotonic_raw_ns, own_process_cpu_ns, own_thread_cpu_ns,
};
pub use condvar::Meeting;
pub use heap::{Block, heap_end};
pub use mqueue::{mq_open_unlinked, mq_receive, mq_send};
pub use page::{EventCount, Shared, Slot};
pub use process::{
    Forked, deadline, default_alarm, default_child_signal, exit_now, fork, set_policy,
};
pub use shared::{Cell, SharedArea};
pub use shelter::sheltered;
pub use signal::{Aim, CaughtSignal, QueuedSignal, QueuedSignals, block_queued, catch};
pub use sysv::{SysvQueue, SysvSemaphore, own_ipc_namespace};
pub use trace::count_syscalls;
pub use uring::Uring;
pub use usage::{Whose, times, usage};
pub use walk::Array;
pub use watch::{member_lost, unwatch_members, watch_members};
