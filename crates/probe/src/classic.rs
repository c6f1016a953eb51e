//! What the programs of Sloan (1992), VenturCom (1984) and Hines et al. (2000) ask of the kernel. They
//! are what they measure, so that they run without a worker: `switchcost classic`.

pub use crate::sys::{
    Account, Block, ChildTicks, Forked, Hangups, Usage, Whose, answer_hangups, catch_hangups,
    child_ticks, execute, exit_now, fork, hang_up, hangups_left, local_time, usage, wait_for,
};
pub use crate::trial::first_primes;

/// Ends a process; one that has ended is as it was.
pub fn kill(pid: i32) {
    crate::sys::send_signal(pid, rustix::process::Signal::KILL.as_raw());
}
