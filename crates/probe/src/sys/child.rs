//! The end of a child with what it used: wait4(2).

use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use model::command_use::Usage;
use rustix::io::{Errno, FdFlags, fcntl_setfd};

use super::process::last_errno;

/// How a child ended, and what it, its threads and those of its own children that it waited for used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildUsage {
    /// Wait status as wait(2) gives it.
    pub status: i32,
    /// What they used. The resident memory is the greatest of any of them, or what they began with.
    pub usage: Usage,
}

/// Waits for a child; without `patience` only if it has ended. `None` while it runs.
pub fn reap(pid: u32, patience: bool) -> Result<Option<ChildUsage>, Errno> {
    let how = if patience { 0 } else { libc::WNOHANG };
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

/// The socket that this process was started with as descriptor `number`; what it starts does not
/// have it. To be called once, as it takes the descriptor over.
pub fn inherited_socket(number: i32) -> Result<UnixStream, Errno> {
    inherited_file(number).map(UnixStream::from)
}

/// As [`inherited_socket`], of anything that is open.
pub fn inherited_file(number: i32) -> Result<OwnedFd, Errno> {
    if number < 3 {
        // Standard streams belong to others.
        return Err(Errno::BADF);
    }
    // SAFETY: nobody in this process knows of a descriptor that it was started with. One that is not
    // open makes the next call fail.
    let file = unsafe { OwnedFd::from_raw_fd(number) };
    match fcntl_setfd(&file, FdFlags::CLOEXEC) {
        Ok(()) => Ok(file),
        Err(errno) => {
            // Not open: there is nothing to close.
            let _ = file.into_raw_fd();
            Err(errno)
        }
    }
}

/// Sends a signal to a process. One that is gone is no error.
pub fn send_signal(pid: i32, signal: i32) {
    // SAFETY: kill touches no memory.
    unsafe { libc::kill(pid, signal) };
}
