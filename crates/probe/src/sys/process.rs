//! Processes: fork, their end and what they used (wait4(2)), deadlines, policies, inherited descriptors.

use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use model::command_use::Usage;
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
    // SAFETY: the process has one thread, so the child has a copy of all that runs in it.
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

/// How a child ended, and what it, its threads and those of its own children that it waited for used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildUsage {
    /// Wait status as wait(2) gives it.
    pub status: i32,
    /// What they used. The resident memory is the greatest of any of them, or what they began with.
    pub usage: Usage,
}

/// Waits for a child; where `waits` is false only if it has ended. `None` while it runs.
pub fn reap(pid: u32, waits: bool) -> Result<Option<ChildUsage>, Errno> {
    let how = if waits { 0 } else { libc::WNOHANG };
    let Some((status, usage)) = wait4(pid as libc::pid_t, how)? else { return Ok(None) };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    let usage = Usage {
        user_ns: ns(usage.ru_utime),
        system_ns: ns(usage.ru_stime),
        max_resident_bytes: usage.ru_maxrss as u64 * 1024,
        minor_faults: usage.ru_minflt as u64,
        major_faults: usage.ru_majflt as u64,
        input_blocks: usage.ru_inblock as u64,
        output_blocks: usage.ru_oublock as u64,
        voluntary: usage.ru_nvcsw as u64,
        involuntary: usage.ru_nivcsw as u64,
    };
    Ok(Some(ChildUsage { status, usage }))
}

/// wait4(2) for one child: its wait status and usage. `None` where `options` do not wait and it runs.
pub(super) fn wait4(
    pid: libc::pid_t,
    options: libc::c_int,
) -> Result<Option<(i32, libc::rusage)>, Errno> {
    let (mut status, mut usage) = (0, MaybeUninit::<libc::rusage>::zeroed());
    loop {
        // SAFETY: both addresses are valid for what the kernel writes there.
        match unsafe { libc::wait4(pid, &mut status, options, usage.as_mut_ptr()) } {
            -1 if last_errno() == Errno::INTR => {}
            -1 => return Err(last_errno()),
            0 => return Ok(None),
            // SAFETY: zeroes are a valid rusage, and the kernel has filled it.
            _ => return Ok(Some((status, unsafe { usage.assume_init() }))),
        }
    }
}

/// A child that has ended and waits to be reaped, as it was: `None` while all still run, ECHILD where
/// there is none (waitid(2)).
pub fn ended_child() -> Result<Option<u32>, Errno> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let how = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the address is valid for what the kernel writes there; zeroes are a valid siginfo, of
    // no process, which it leaves where no child has ended.
    let (result, info) =
        unsafe { (libc::waitid(libc::P_ALL, 0, info.as_mut_ptr(), how), info.assume_init()) };
    if result != 0 {
        return Err(last_errno());
    }
    // SAFETY: what waitid fills has a process id.
    let pid = unsafe { info.si_pid() };
    Ok(u32::try_from(pid).ok().filter(|pid| *pid > 0))
}

/// The socket that this process was started with as descriptor `number`: see [`inherited_file`].
pub fn inherited_socket(number: i32) -> Result<UnixStream, Errno> {
    inherited_file(number).map(UnixStream::from)
}

/// What this process was started with as descriptor `number`, by a descriptor of its own. Neither is handed
/// on to what the process executes. Standard streams belong to others (EBADF).
pub fn inherited_file(number: i32) -> Result<OwnedFd, Errno> {
    if number < 3 {
        return Err(Errno::BADF);
    }
    // SAFETY: fcntl touches no memory. One that is not open is refused, and one that is keeps its owner.
    let file = unsafe {
        check(libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC))?;
        check(libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3))?
    };
    // SAFETY: a descriptor just made, which nobody else knows.
    Ok(unsafe { OwnedFd::from_raw_fd(file) })
}

/// Sends a signal to a process. One that is gone is no error.
pub fn send_signal(pid: i32, signal: i32) {
    // SAFETY: kill touches no memory.
    unsafe { libc::kill(pid, signal) };
}
