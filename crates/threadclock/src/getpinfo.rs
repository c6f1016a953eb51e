//! The CPU time of any thread or process, after the system call of Hines et al. (2000), section 3.

use crate::{CpuTime, calibrate, sys};
use core::ffi::CStr;
use core::fmt;
use libc::{clockid_t, pid_t};

/// `CPUCLOCK_SCHED` and `CPUCLOCK_PERTHREAD_MASK` of include/linux/posix-timers_types.h.
const CLOCK_SCHED: clockid_t = 2;
const CLOCK_PER_THREAD: clockid_t = 4;
/// A clock's id holds its task's in 29 bits. Greater ones, which no task has (PID_MAX_LIMIT is
/// 2^22), would name other clocks: i32::MAX becomes CLOCK_MONOTONIC_COARSE.
const LARGEST_ID: pid_t = (1 << 28) - 1;

/// The CPU time of one thread: `id` 0 is the caller, read by its best tier.
///
/// A thread of the caller's process is read by its own clock, which is up to date. The figure for a
/// thread of another process is /proc/ID/schedstat's, which the kernel brings up to date at
/// switches and ticks only: while that thread runs it may be a tick (1 to 10 ms) behind.
/// A process's id means its first thread: see [`getpinfo_process`] for the whole.
///
/// # Errors
/// Negative ids, ids of no task, tasks that the kernel hides.
pub fn getpinfo(id: pid_t) -> Result<CpuTime, Error> {
    match id {
        0 => Ok(crate::now()),
        ..0 => Err(Error::InvalidId { id }),
        _ if id > LARGEST_ID => Err(Error::NoSuchTask { id }),
        _ => own_thread(id).map_or_else(|| schedstat(id), Ok),
    }
}

/// The CPU time of all threads of a process, those that have ended included: `pid` 0 is the
/// caller's. Up to date for any process (clock_getcpuclockid(3)).
///
/// # Errors
/// As [`getpinfo`]. `EINVAL`, if `pid` is a thread that is not its process's first.
pub fn getpinfo_process(pid: pid_t) -> Result<CpuTime, Error> {
    if pid < 0 {
        return Err(Error::InvalidId { id: pid });
    }
    if pid > LARGEST_ID {
        return Err(Error::NoSuchTask { id: pid });
    }
    let clock = match pid {
        0 => libc::CLOCK_PROCESS_CPUTIME_ID,
        _ => (!pid << 3) | CLOCK_SCHED,
    };
    match sys::clock_ns(clock) {
        Ok(ns) => Ok(with_cycles(ns)),
        // The kernel says EINVAL for an id of no process at all.
        Err(libc::EINVAL) => match exists(pid) {
            Err(libc::ESRCH) => Err(Error::NoSuchTask { id: pid }),
            _ => Err(Error::InvalidId { id: pid }),
        },
        Err(errno) => Err(failed("clock_gettime", pid, errno)),
    }
}

/// A thread of this process, by the clock that the kernel keeps for siblings only.
fn own_thread(id: pid_t) -> Option<CpuTime> {
    sys::clock_ns((!id << 3) | CLOCK_PER_THREAD | CLOCK_SCHED).ok().map(with_cycles)
}

fn schedstat(id: pid_t) -> Result<CpuTime, Error> {
    let mut path = [0u8; 32];
    let path = schedstat_path(id, &mut path);
    let mut buffer = [0; 96];
    match sys::read_start(path, &mut buffer) {
        Ok(line) => first_number(line).map(with_cycles).ok_or(Error::Unreadable { id }),
        // hidepid hides what is there; ESRCH comes from a task that died between open and read.
        Err(libc::ENOENT | libc::ESRCH) => Err(match exists(id) {
            Err(libc::ESRCH) => Error::NoSuchTask { id },
            Ok(()) | Err(libc::EPERM) => Error::NotPermitted { id },
            Err(errno) => failed("kill", id, errno),
        }),
        Err(errno) => Err(failed("read of schedstat", id, errno)),
    }
}

fn failed(call: &'static str, id: pid_t, errno: i32) -> Error {
    match errno {
        libc::ESRCH => Error::NoSuchTask { id },
        libc::EPERM | libc::EACCES => Error::NotPermitted { id },
        _ => Error::Os { call, id, errno },
    }
}

/// Whether a task has this id.
fn exists(id: pid_t) -> Result<(), i32> {
    // SAFETY: signal 0 is sent to nobody.
    if unsafe { libc::kill(id, 0) } == 0 { Ok(()) } else { Err(sys::errno()) }
}

fn with_cycles(ns: u64) -> CpuTime {
    calibrate::finish();
    CpuTime { ns, cycles: calibrate::ticks_of(ns) }
}

/// `/proc/ID/schedstat`, without an allocation.
fn schedstat_path(id: pid_t, buffer: &mut [u8; 32]) -> &CStr {
    let mut digits = [0u8; 10];
    let mut first = digits.len();
    let mut rest = id.unsigned_abs();
    loop {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    let parts: [&[u8]; 4] = [b"/proc/", &digits[first..], b"/schedstat", b"\0"];
    let bytes = parts.into_iter().flatten();
    for (to, from) in buffer.iter_mut().zip(bytes) {
        *to = *from;
    }
    CStr::from_bytes_until_nul(buffer).unwrap_or_default()
}

/// The first of schedstat's numbers: nanoseconds on the CPU.
fn first_number(line: &[u8]) -> Option<u64> {
    let end = line.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(line.len());
    core::str::from_utf8(&line[..end]).ok()?.parse().ok()
}

/// A failed [`getpinfo`](crate::getpinfo()).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// `id` is negative (EINVAL).
    InvalidId {
        /// What was asked for.
        id: pid_t,
    },
    /// No task has this id (ESRCH).
    NoSuchTask {
        /// What was asked for.
        id: pid_t,
    },
    /// The task is there and the kernel will not tell (EPERM).
    NotPermitted {
        /// What was asked for.
        id: pid_t,
    },
    /// Something else failed.
    Os {
        /// The call.
        call: &'static str,
        /// What was asked for.
        id: pid_t,
        /// Its errno.
        errno: i32,
    },
    /// `/proc/ID/schedstat` did not hold a number.
    Unreadable {
        /// What was asked for.
        id: pid_t,
    },
    /// This object belongs to the parent of a fork: make a new one in the child.
    Forked,
}

impl Error {
    /// The errno that C callers see.
    pub fn errno(self) -> i32 {
        match self {
            Self::InvalidId { .. } => libc::EINVAL,
            Self::NoSuchTask { .. } => libc::ESRCH,
            Self::NotPermitted { .. } => libc::EPERM,
            Self::Os { errno, .. } => errno,
            Self::Unreadable { .. } => libc::EIO,
            Self::Forked => libc::EBADF,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidId { id } => write!(f, "{id} is not a task id"),
            Self::NoSuchTask { id } => write!(f, "no task {id}"),
            Self::NotPermitted { id } => write!(f, "not permitted to read the time of task {id}"),
            Self::Os { call, id, errno } => write!(f, "{call} of task {id}: errno {errno}"),
            Self::Unreadable { id } => write!(f, "/proc/{id}/schedstat: not a number"),
            Self::Forked => f.write_str("made before a fork, used after it"),
        }
    }
}

impl core::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_numbers() {
        assert_eq!(schedstat_path(1, &mut [0; 32]), c"/proc/1/schedstat");
        assert_eq!(schedstat_path(pid_t::MAX, &mut [0; 32]), c"/proc/2147483647/schedstat");
        assert_eq!(first_number(b"123456789 0 17\n"), Some(123_456_789));
        assert_eq!(first_number(b""), None);
        assert_eq!(first_number(b"no\n"), None);
    }
}
