//! The calling process: fork, its end, deadlines, policies; its children: how one ended and what it used
//! (wait4(2)), descriptors handed down, signals.

use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use rustix::io::{Errno, FdFlags, fcntl_dupfd_cloexec, fcntl_setfd, retry_on_intr};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, getppid, set_parent_process_death_signal, setrlimit,
};

use super::check;
use super::clock::Raw;
use super::signal::unblock;

/// On which side of a fork the caller is.
pub enum Forked {
    /// In the new process.
    Child,
    /// In the old one.
    Parent(Pid),
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
    match check(unsafe { libc::fork() })? {
        0 => Ok(Forked::Child),
        pid => Pid::from_raw(pid).map(Forked::Parent).ok_or(Errno::INVAL),
    }
}

/// By the links of its folder of tasks (proc_pid_task(5)): two, and one for each thread. A thread that was
/// joined is listed for a moment longer. Without /proc the callers are relied on; so they are in unit
/// tests, whose harness has threads.
fn has_one_thread() -> bool {
    let is_alone = |attempt: u32| {
        if attempt > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::fs::metadata("/proc/self/task").map_or(true, |folder| folder.nlink() <= 3)
    };
    cfg!(test) || (0..100).any(is_alone)
}

/// Lets the calling process be killed when its parent ends (PR_SET_PDEATHSIG). False if its parent is not
/// `parent`, who then has ended already.
pub fn set_parent_death_signal(parent: i32) -> Result<bool, Errno> {
    // Asked for first, then checked: a parent that ended before is noticed too.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(getppid().map(Pid::as_raw_pid) == Some(parent))
}

/// The same. False also where the kernel refuses: then the caller is to end itself.
pub fn end_with_parent(parent: Pid) -> bool {
    set_parent_death_signal(parent.as_raw_pid()) == Ok(true)
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

/// The end of a child.
#[derive(Clone, Copy, Debug)]
pub struct ChildEnd {
    /// Wait status as wait(2) gives it.
    pub status: i32,
    /// What it used with its threads and the children that it waited for. Fields that Linux does not fill are 0.
    pub usage: Raw,
}

/// Waits for a child's end (wait4(2)).
pub fn wait_for(pid: i32) -> Result<ChildEnd, Errno> {
    let (mut status, mut usage) = (0, MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: both addresses are valid for what the kernel writes there.
    retry_on_intr(|| check(unsafe { libc::wait4(pid, &mut status, 0, usage.as_mut_ptr()) }))?;
    // SAFETY: zeroes are a valid rusage, and the kernel has filled it.
    Ok(ChildEnd { status, usage: Raw(unsafe { usage.assume_init() }) })
}

/// A child that has ended and waits to be reaped: `None` while all still run, ECHILD where there is
/// none (waitid(2)).
pub fn ended_child() -> Result<Option<i32>, Errno> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let how = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the address is valid for what the kernel writes there; zeroes are a valid siginfo, of
    // no process, which it leaves where no child has ended.
    let (result, info) =
        unsafe { (libc::waitid(libc::P_ALL, 0, info.as_mut_ptr(), how), info.assume_init()) };
    check(result)?;
    // SAFETY: what waitid fills has a process id.
    let pid = unsafe { info.si_pid() };
    Ok(Some(pid).filter(|pid| *pid > 0))
}

/// A descriptor that this process was started with, under another number; exec closes both. EBADF where
/// none is open, and for standard streams.
pub fn inherited(number: i32) -> Result<OwnedFd, Errno> {
    if number < 3 {
        return Err(Errno::BADF);
    }
    // SAFETY: it is asked whether it is open, and closed by nobody: whoever owns it still does.
    let found = unsafe { BorrowedFd::borrow_raw(number) };
    fcntl_setfd(found, FdFlags::CLOEXEC)?;
    fcntl_dupfd_cloexec(found, 3)
}

/// Sends a signal to a process. One that is gone is no error.
pub fn send_signal(pid: i32, signal: i32) {
    // SAFETY: kill touches no memory.
    unsafe { libc::kill(pid, signal) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_child_is_an_error() {
        assert_eq!(wait_for(i32::MAX).err(), Some(Errno::CHILD));
    }
}
