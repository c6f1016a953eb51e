//! The calling process: fork, its end, deadlines, policies.

use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, getppid, set_parent_process_death_signal, setrlimit,
};

use super::signal::unblock;

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

/// The result of a call of the C library that gives -1 with errno when it fails.
#[inline(always)]
pub(super) fn check(result: libc::c_int) -> Result<libc::c_int, Errno> {
    if result == -1 { Err(last_errno()) } else { Ok(result) }
}

/// Forks the calling process. EBUSY where it has other threads: the child has their locks and none of
/// them, so that it could use only what is async-signal-safe.
pub fn fork() -> Result<Forked, Errno> {
    if !has_one_thread() {
        return Err(Errno::BUSY);
    }
    fork_beside_threads()
}

/// The same where there may be other threads. The child is on its own: a lock that one of them held is never
/// released in it (the C library's own excepted, fork(2)), so it takes none of the program's, and has a
/// deadline or a parent that ends it.
pub fn fork_beside_threads() -> Result<Forked, Errno> {
    // SAFETY: the child has the calling thread and a copy of all memory; what other threads were changing is behind
    // locks, which stay held.
    match unsafe { libc::fork() } {
        -1 => Err(last_errno()),
        0 => Ok(Forked::Child),
        pid => Pid::from_raw(pid).map(Forked::Parent).ok_or(Errno::INVAL),
    }
}

/// By the links of its folder of tasks (proc_pid_task(5)): two, and one for each thread. A thread that was
/// joined is listed for a moment longer. Without /proc the callers are relied on; so they are in unit
/// tests, whose harness has threads.
fn has_one_thread() -> bool {
    let threads = || {
        std::fs::metadata("/proc/self/task").map_or(1, |folder| folder.nlink().saturating_sub(2))
    };
    let is_alone = |attempt: u32| {
        if attempt > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        threads() <= 1
    };
    cfg!(test) || (0..100).any(is_alone)
}

/// Has the kernel end the calling process with its parent. False where that parent is gone already, or
/// the kernel refuses: then the caller is to end itself.
pub fn end_with_parent(parent: Pid) -> bool {
    // Asked for first, then checked: a parent that went before the asking is noticed.
    set_parent_process_death_signal(Some(Signal::KILL)).is_ok() && getppid() == Some(parent)
}

/// Ends the calling process at once: no destructor, no buffer of the parent's is written twice.
pub fn exit_now(status: i32) -> ! {
    // SAFETY: _exit does not return and touches no memory of ours.
    unsafe { libc::_exit(status) }
}

/// Makes SIGALRM end the process again, whatever it was started with: signals that are ignored or
/// blocked stay so over exec.
pub fn default_alarm() {
    // SAFETY: the default action needs no handler.
    unsafe { libc::signal(libc::SIGALRM, libc::SIG_DFL) };
    unblock(libc::SIGALRM);
}

/// Lets SIGALRM end the calling process after `seconds`, unless it is called again before; 0 takes
/// the deadline away. A process that hangs takes its members with it.
pub fn deadline(seconds: u32) {
    // SAFETY: alarm touches no memory; the default action of SIGALRM is to terminate.
    unsafe { libc::alarm(seconds) };
}

/// Limits for how long the calling process, under a real-time policy, may run without waiting once:
/// SIGXCPU at `limit_us`, its end `grace_us` later (setrlimit(2), RLIMIT_RTTIME). Lowering it needs no
/// privilege; where a lower one is set, that one holds.
pub fn limit_real_time(limit_us: u64, grace_us: u64) {
    let limit =
        Rlimit { current: Some(limit_us), maximum: Some(limit_us.saturating_add(grace_us)) };
    let _ = setrlimit(Resource::Rttime, limit);
}

/// Gives the calling thread, and what it forks or starts from now on, a scheduling policy
/// (`libc::SCHED_*`) at a priority.
pub fn set_policy(policy: i32, priority: i32) -> Result<(), Errno> {
    let param = libc::sched_param { sched_priority: priority };
    // SAFETY: the kernel reads one sched_param from a valid address.
    check(unsafe { libc::sched_setscheduler(0, policy, &param) }).map(|_| ())
}
