//! The only unsafe code of the probes: calls that no safe crate offers, each wrapped in a function that
//! is sound whatever a safe caller gives it. What a call needs beside its arguments is checked ([`fork`]: one
//! thread) or is the contract of an `unsafe fn`.
#![allow(unsafe_code)]

mod ballast;
mod calls;
mod child;
mod clock;
mod exec;
mod footprint;
mod handlers;
mod inherited;
mod ipc;
mod page;
mod process;
mod quanta;
mod registers;
mod signal;
mod stop;
mod trace;
mod uring;
mod usage;
mod veth;
mod vfork_helper;
mod walk;
mod watch;
mod words;

pub use ballast::Ballast;
pub use calls::{
    Block, futex_wake, getppid, getuid, heap_end, monotonic_ns_by_call, read_byte, sched_yield,
    write_byte,
};
pub use child::{ChildEnd, ended_child, inherited, send_signal, wait_for};
pub use clock::{
    CpuClock, cpu_clock_ns, monotonic_ns, monotonic_raw_ns, own_process_cpu_ns, own_thread_cpu_ns,
    sleep_until, tick_period_ns,
};
pub use exec::{BeforeExec, Started, Starter, execute, start_again};
pub use footprint::HighWater;
pub use handlers::{
    Hangups, OwnSignal, Pause, answer_hangups, catch_hangups, caught, hang_up, hangups_left,
};
pub use inherited::Inherited;
pub use ipc::{
    SysvQueue, SysvSemaphore, mq_open_unlinked, mq_receive, mq_send, own_ipc_namespace,
    privileged_ipc_namespace,
};
pub use page::{Cell, EventCount, Shared, SharedArea, Slot, TokenCondvar};
pub use process::{
    Forked, deadline, default_alarm, end_with_parent, exit_now, fork, fork_beside_threads,
    limit_real_time, set_policy,
};
pub use quanta::{HAS_QUANTA, all_unshared, is_unshared, reference_quantum, wait_unshared};
pub use registers::{RegisterKind, Registers, WithRegisters, has_registers, with_registers};
#[cfg(test)]
pub use registers::{in_use, last_register};
pub use signal::{Aim, CaughtSignal, QueuedSignal, QueuedSignals, block_queued, catch};
pub use stop::{
    BlockedStopSignals, ForwardedSignal, KeptActions, StopHandlers, stop_signal,
    unblock_stop_signals,
};
pub use trace::count_syscalls;
pub use uring::Uring;
pub use usage::{ChildTicks, Usage, Whose, child_ticks, local_time, times, usage};
pub use veth::Wire;
pub use vfork_helper::fifo_unlinked;
pub use walk::Array;
pub use watch::{
    EndNote, default_child, member_lost, unwatch_members, wait_uninterruptible, watch_members,
};
pub use words::{Texts, Words, write_words};
