//! Children: how one ended and what it used (wait4(2)), descriptors handed down to one, signals.

use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::{Errno, FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};

use super::errno::last_errno;

/// The end of a child, and getrusage(2)'s fields for it, its threads and the children that it waited for.
/// Those that Linux does not fill are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // The fields are the manual page's.
pub struct ChildEnd {
    /// Wait status as wait(2) gives it.
    pub status: i32,
    /// User time in microseconds.
    pub utime_us: i64,
    /// System time in microseconds.
    pub stime_us: i64,
    /// Greatest of any of them, or what they began with, in KiB.
    pub maxrss: i64,
    pub ixrss: i64,
    pub idrss: i64,
    pub isrss: i64,
    pub minflt: i64,
    pub majflt: i64,
    pub nswap: i64,
    pub inblock: i64,
    pub oublock: i64,
    pub msgsnd: i64,
    pub msgrcv: i64,
    pub nsignals: i64,
    pub nvcsw: i64,
    pub nivcsw: i64,
}

/// Waits for a child's end (wait4(2)).
pub fn wait_for(pid: i32) -> Result<ChildEnd, Errno> {
    let (mut status, mut usage) = (0, MaybeUninit::<libc::rusage>::zeroed());
    let usage = loop {
        // SAFETY: both addresses are valid for what the kernel writes there.
        match unsafe { libc::wait4(pid, &mut status, 0, usage.as_mut_ptr()) } {
            -1 if last_errno() == Errno::INTR => {}
            -1 => return Err(last_errno()),
            // SAFETY: zeroes are a valid rusage, and the kernel has filled it.
            _ => break unsafe { usage.assume_init() },
        }
    };
    let us = |time: libc::timeval| time.tv_sec * 1_000_000 + time.tv_usec;
    Ok(ChildEnd {
        status,
        utime_us: us(usage.ru_utime),
        stime_us: us(usage.ru_stime),
        maxrss: usage.ru_maxrss,
        ixrss: usage.ru_ixrss,
        idrss: usage.ru_idrss,
        isrss: usage.ru_isrss,
        minflt: usage.ru_minflt,
        majflt: usage.ru_majflt,
        nswap: usage.ru_nswap,
        inblock: usage.ru_inblock,
        oublock: usage.ru_oublock,
        msgsnd: usage.ru_msgsnd,
        msgrcv: usage.ru_msgrcv,
        nsignals: usage.ru_nsignals,
        nvcsw: usage.ru_nvcsw,
        nivcsw: usage.ru_nivcsw,
    })
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
    if result != 0 {
        return Err(last_errno());
    }
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
        assert_eq!(wait_for(i32::MAX), Err(Errno::CHILD));
    }
}
