//! All of switchcost that touches the kernel: a case comes in, samples go out.
//!
//! - [`assignment`]: what a worker is told to measure; it calls [`ring`] or [`trial`].
//! - [`ring`]: members that pass a token round. `ring/links/` has a file for each family of links.
//! - [`trial`]: what is measured without a ring: calls, wake-ups, gaps, malloc, whole commands.
//! - `sys`: the only unsafe code. `sys/quanta.rs` has the reference quanta, `sys/walk.rs` the
//!   working sets.
//! - [`machine`]: facts about this host, read from /proc and /sys.
//! - [`placement`], [`policy`], [`idle`]: CPUs, scheduling policies, idle states.
//! - [`program`], [`processes`], [`accesses`]: programs that run already, watched from outside.
//! - [`competing`], `counters`, `halts`: who else ran, and what the kernel counted meanwhile.

pub mod accesses;
pub mod assignment;
pub mod competing;
pub mod executable;
pub mod idle;
mod limits;
pub mod machine;
pub mod placement;
pub mod policy;
pub mod processes;
pub mod program;
mod random;
pub mod ring;
pub mod standstill;
pub mod trial;

mod counters;
mod end;
mod halts;
mod procfs;
mod stack;
mod sys;

pub use procfs::{idle_ns_by_cpu, one_line};
pub use random::random_number;
pub use stack::{THREAD_BYTES, room_for_thread, with_stack};
pub use sys::{
    RefusedCall, busy_quantum_ns, check_needed_calls, default_child, has_file_privileges,
    ignore_file_limit, in_own_session, set_own_name, set_parent_death_signal, spawn_watched,
};

/// Kernel calls of the programs of Sloan (1992), VenturCom (1984) and Hines et al. (2000), which
/// run without a worker.
pub mod classic {
    pub use crate::sys::{
        ChildEnd, ChildTicks, ForkSide, HangupSignal, HeapBlock, OwnSignal, PeerSignal,
        ResourceUsage, UsageScope, caught, child_ticks, execute, exit_now, fork, local_time,
        send_signal, usage, wait_for, watch_members,
    };
    pub use crate::trial::first_primes;
}

/// Kernel calls of the launcher of commands.
pub mod command {
    pub use crate::sys::{
        BeforeExec, BlockedStopSignals, ChildEnd, CommandFile, CommandStarter, CommandStreams,
        CommandTexts, CpuClock, FORWARDED_BYTES, InheritedState, MemoryHighWater, ReusedVariable,
        SavedActions, StartedCommand, StopHandlers, cpu_clock_ns, ended_child, inherited,
        is_ignored, monotonic_raw_ns, note_forwarded, release_traced_children, send_signal,
        set_variable, start_again, stop_signal, unblock_stop_signals, wait_for, write_commands,
    };
}

/// Returns whether standard output was closed when this program began. Its number belongs to
/// /dev/null since then.
pub fn output_was_closed() -> bool {
    sys::InheritedState::own().had_closed(1)
}
