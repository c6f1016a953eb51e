//! The only unsafe code of the probes: calls that no safe crate offers, each wrapped in a function
//! that cannot be misused.
#![allow(unsafe_code)]

mod clock;
mod condvar;
mod mqueue;
mod page;
mod process;
mod shared;
mod shelter;
mod signal;
mod sysv;
mod uring;
mod walk;
mod watch;

pub use clock::{CpuClock, cpu_clock_ns, monotonic_raw_ns};
pub use condvar::Meeting;
pub use mqueue::{mq_open_unlinked, mq_receive, mq_send};
pub use page::{Shared, Slot};
pub use process::{Forked, deadline, default_alarm, exit_now, fork, set_policy};
pub use shared::{Cell, SharedArea};
pub use shelter::sheltered;
pub use signal::{Aim, CaughtSignal, QueuedSignal, QueuedSignals, block_queued, catch};
pub use sysv::{SysvQueue, SysvSemaphore, own_ipc_namespace};
pub use uring::Uring;
pub use walk::Array;
pub use watch::{member_lost, unwatch_members, watch_members};
