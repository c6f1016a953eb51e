//! Processes: fork without allocation in the child, leaving without destructors, policies.

use rustix::io::Errno;
use rustix::process::Pid;

use super::watch::{LOST_PATIENCE_S, member_lost};

/// On which side of a fork the caller is.
pub enum Forked {
    /// In the new process.
    Child,
    /// In the old one.
    Parent(Pid),
}

/// Why the last call of the C library failed.
pub(super) fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}

/// Forks the calling process. The child of a process with several threads may only use what is
/// async-signal-safe; the worker forks before it starts any thread.
pub fn fork() -> Result<Forked, Errno> {
    // SAFETY: fork has no memory-safety conditions in a single-threaded process; the child has
    // copies of everything.
    match unsafe { libc::fork() } {
        -1 => Err(last_errno()),
        0 => Ok(Forked::Child),
        pid => Pid::from_raw(pid).map(Forked::Parent).ok_or(Errno::INVAL),
    }
}

/// Ends the calling process at once: no destructor, no buffer of the parent's is written twice.
pub fn exit_now(status: i32) -> ! {
    // SAFETY: _exit does not return and touches no memory of ours.
    unsafe { libc::_exit(status) }
}

/// Makes SIGALRM end the process again, whatever it was started with: signals that are ignored or
/// blocked stay so over exec.
pub fn default_alarm() {
    // SAFETY: the set is initialised before it is used; the default action needs no handler.
    unsafe {
        libc::signal(libc::SIGALRM, libc::SIG_DFL);
        let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGALRM);
        libc::sigprocmask(libc::SIG_UNBLOCK, set.as_ptr(), std::ptr::null_mut());
    }
}

/// Gives SIGCHLD its default action again: one that is ignored stays so over exec.
pub fn default_child_signal() {
    // SAFETY: the default action needs no handler.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Lets SIGALRM end the calling process after `seconds`, unless it is called again before; 0 takes
/// the deadline away. A process that hangs takes its members with it.
pub fn deadline(seconds: u32) {
    let seconds = if member_lost() { seconds.min(LOST_PATIENCE_S) } else { seconds };
    // SAFETY: alarm touches no memory; the default action of SIGALRM is to terminate.
    unsafe { libc::alarm(seconds) };
}

/// Gives the calling thread, and what it forks or starts from now on, a scheduling policy
/// (`libc::SCHED_*`) at a priority.
pub fn set_policy(policy: i32, priority: i32) -> Result<(), Errno> {
    let param = libc::sched_param { sched_priority: priority };
    // SAFETY: the kernel reads one sched_param from a valid address.
    match unsafe { libc::sched_setscheduler(0, policy, &param) } {
        -1 => Err(last_errno()),
        _ => Ok(()),
    }
}
