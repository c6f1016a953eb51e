//! All of switchcost that touches the kernel. A case comes in, samples go out.

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

pub use procfs::one_line;
pub use random::unforeseen;
pub use stack::{THREAD_BYTES, room_for_thread, with_stack};
pub use sys::{
    RefusedCall, busy_quantum_ns, check_needed_calls, default_child, has_file_privileges,
    ignore_file_limit, in_own_session, set_own_name, set_parent_death_signal, spawn_watched,
};

/// What the programs of Sloan (1992), VenturCom (1984) and Hines et al. (2000) ask of the kernel,
/// without a worker.
pub mod classic {
    pub use crate::sys::{
        Block, ChildEnd, ChildTicks, Forked, Hangup, OwnSignal, Pause, Usage, Whose, caught,
        child_ticks, execute, exit_now, fork, local_time, send_signal, usage, wait_for,
        watch_members,
    };
    pub use crate::trial::first_primes;
}

/// What the launcher of commands asks of the kernel.
pub mod command {
    pub use crate::sys::{
        BeforeExec, BlockedStopSignals, ChildEnd, CpuClock, FORWARDED_BYTES, HighWater, Inherited,
        KeptActions, Started, Starter, StopHandlers, Texts, Words, cpu_clock_ns, ended_child,
        inherited, is_ignored, let_go_of_traced, monotonic_raw_ns, note_forwarded, send_signal,
        set_variable, start_again, stop_signal, unblock_stop_signals, wait_for, write_words,
    };
}

/// Whether standard output was closed when this program began. What has its number since then takes
/// everything, and keeps nothing.
pub fn output_was_closed() -> bool {
    sys::Inherited::own().had_closed(1)
}
