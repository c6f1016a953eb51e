//! The end of a child with what it used: wait4(2).

use std::mem::MaybeUninit;

use rustix::io::Errno;

use super::process::last_errno;

/// What a child, its threads and those of its own children that it waited for used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildUsage {
    /// Wait status as wait(2) gives it.
    pub status: i32,
    /// Voluntary switches.
    pub voluntary: u64,
    /// Involuntary switches.
    pub involuntary: u64,
    /// User and system time in nanoseconds, in steps of a microsecond.
    pub cpu_ns: u64,
    /// Greatest resident memory in bytes: of the greatest of them, or of the parent at its fork.
    pub most_resident_bytes: u64,
}

/// Waits for a child; without `patience` only if it has ended. `None` while it runs.
pub fn reap(pid: u32, patience: bool) -> Result<Option<ChildUsage>, Errno> {
    let (mut status, mut usage) = (0, MaybeUninit::<libc::rusage>::zeroed());
    let how = if patience { 0 } else { libc::WNOHANG };
    let found = loop {
        // SAFETY: both addresses are valid for what the kernel writes there.
        match unsafe { libc::wait4(pid as libc::pid_t, &mut status, how, usage.as_mut_ptr()) } {
            -1 if last_errno() == Errno::INTR => {}
            found => break found,
        }
    };
    match found {
        -1 => return Err(last_errno()),
        0 => return Ok(None),
        _ => {}
    }
    // SAFETY: zeroes are a valid rusage, and the kernel has filled it.
    let usage = unsafe { usage.assume_init() };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    Ok(Some(ChildUsage {
        status,
        voluntary: usage.ru_nvcsw as u64,
        involuntary: usage.ru_nivcsw as u64,
        cpu_ns: ns(usage.ru_utime) + ns(usage.ru_stime),
        most_resident_bytes: usage.ru_maxrss as u64 * 1024,
    }))
}

/// Sends a signal to a process. One that is gone is no error.
pub fn send_signal(pid: i32, signal: i32) {
    // SAFETY: kill touches no memory.
    unsafe { libc::kill(pid, signal) };
}
