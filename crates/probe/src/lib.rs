//! All of switchcost that touches the kernel. A case comes in, samples go out.

pub mod assignment;
pub mod company;
pub mod limits;
pub mod machine;
pub mod placement;
pub mod policy;
pub mod program;
mod random;
pub mod ring;
pub mod standing;
pub mod trial;

mod child;
mod counters;
mod procfs;
mod sys;

use rustix::io::Errno;
use rustix::process::{Signal, getppid, set_parent_process_death_signal};

pub use sys::default_child;

/// What the programs of Sloan (1992), VenturCom (1984) and Hines et al. (2000) ask of the kernel, without
/// a worker.
pub mod classic {
    pub use crate::sys::{
        Block, ChildEnd, ChildTicks, Forked, Hangups, Usage, Whose, answer_hangups, catch_hangups,
        child_ticks, execute, exit_now, fork, hang_up, hangups_left, local_time, send_signal,
        usage, wait_for,
    };
    pub use crate::trial::first_primes;
}

/// What the launcher of commands asks of the kernel.
pub mod command {
    pub use crate::sys::{
        BeforeExec, BlockedStopSignals, ChildEnd, CpuClock, ForwardedSignal, HighWater, Inherited,
        KeptActions, Started, Starter, StopHandlers, Texts, Words, cpu_clock_ns, ended_child,
        inherited, monotonic_raw_ns, send_signal, start_again, stop_signal, unblock_stop_signals,
        wait_for, write_words,
    };
}

/// Lets the calling process be killed when its parent ends (PR_SET_PDEATHSIG). False if its parent is not
/// `parent`, who then has ended already.
pub fn set_parent_death_signal(parent: i32) -> Result<bool, Errno> {
    // Asked for first, then checked: a parent that ended before is noticed too.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(getppid().map(|pid| pid.as_raw_pid()) == Some(parent))
}

/// Whether standard output was closed when this program began. What has its number since then takes
/// everything, and keeps nothing.
pub fn output_was_closed() -> bool {
    sys::Inherited::own().had_closed(1)
}
