//! Reads the CPU time of any thread or process, after the system call of Hines et al. (2000),
//! section 3, by the calls of an unpatched kernel.

use crate::types::{CpuTime, TimeReadError};
use crate::{calibrate, clock, sys};
use core::ffi::CStr;
use libc::{clockid_t, pid_t};

/// `CPUCLOCK_SCHED` and `CPUCLOCK_PERTHREAD_MASK` of include/linux/posix-timers_types.h.
const CLOCK_SCHED: clockid_t = 2;
const CLOCK_PER_THREAD: clockid_t = 4;
/// Limits the ids that are tried: a clock's id holds its task's in 29 bits. Greater ones, which no
/// task has (PID_MAX_LIMIT is 2^22), would name other clocks: i32::MAX becomes
/// CLOCK_MONOTONIC_COARSE.
const MAX_ID: pid_t = (1 << 28) - 1;

/// Reads the CPU time of one thread: `id` 0 is the caller, read by its best tier.
///
/// A thread of the caller's process is read by its own clock, which is up to date. The figure for a
/// thread of another process is /proc/ID/schedstat's, which the kernel brings up to date at
/// switches and ticks only: while that thread runs it may be a tick (1 to 10 ms) behind.
/// The id of a process means its first thread: see [`getpinfo_process`] for the whole.
///
/// # Errors
/// Negative ids, ids of no task, tasks that the kernel hides.
pub fn getpinfo(id: pid_t) -> Result<CpuTime, TimeReadError> {
    check_id(id)?;
    if id == 0 {
        return Ok(clock::now());
    }
    // The kernel gives this clock for threads of the caller's process only.
    match sys::clock_ns((!id << 3) | CLOCK_PER_THREAD | CLOCK_SCHED) {
        Ok(ns) => Ok(with_cycles(ns)),
        Err(_) => Ok(with_cycles(read_schedstat(id)?)),
    }
}

/// Reads the CPU time of all threads of a process, including those that have ended: `pid` 0 is the
/// caller's. Up to date for any process (clock_getcpuclockid(3)).
///
/// # Errors
/// Negative ids, ids of no task, tasks that the kernel hides; [`TimeReadError::InvalidId`] if `pid` is a thread that is not its process's first.
pub fn getpinfo_process(pid: pid_t) -> Result<CpuTime, TimeReadError> {
    check_id(pid)?;
    let clock = match pid {
        0 => libc::CLOCK_PROCESS_CPUTIME_ID,
        _ => (!pid << 3) | CLOCK_SCHED,
    };
    match sys::clock_ns(clock) {
        Ok(ns) => Ok(with_cycles(ns)),
        // The kernel says EINVAL for an id of no process at all.
        Err(libc::EINVAL) => match exists(pid) {
            Err(libc::ESRCH) => Err(TimeReadError::NoSuchTask(pid)),
            _ => Err(TimeReadError::InvalidId(pid)),
        },
        Err(errno) => Err(read_error("clock_gettime", pid, errno)),
    }
}

/// Checks that a task may have this id.
fn check_id(id: pid_t) -> Result<(), TimeReadError> {
    match id {
        ..0 => Err(TimeReadError::InvalidId(id)),
        0..=MAX_ID => Ok(()),
        _ => Err(TimeReadError::NoSuchTask(id)),
    }
}

/// Reads the nanoseconds on the CPU from /proc/ID/schedstat.
fn read_schedstat(id: pid_t) -> Result<u64, TimeReadError> {
    let (mut path, mut buffer) = ([0; 32], [0; 96]);
    match sys::read_start(schedstat_path(id, &mut path), &mut buffer) {
        Ok(line) => first_number(line).ok_or(TimeReadError::Unreadable(id)),
        // hidepid hides tasks that exist; ESRCH comes from a task that died between open and read.
        Err(libc::ENOENT | libc::ESRCH) => Err(match exists(id) {
            Err(libc::ESRCH) => TimeReadError::NoSuchTask(id),
            Ok(()) | Err(libc::EPERM) => TimeReadError::NotPermitted(id),
            Err(errno) => read_error("kill", id, errno),
        }),
        Err(errno) => Err(read_error("read of schedstat", id, errno)),
    }
}

fn read_error(call: &'static str, id: pid_t, errno: i32) -> TimeReadError {
    match errno {
        libc::ESRCH => TimeReadError::NoSuchTask(id),
        libc::EPERM | libc::EACCES => TimeReadError::NotPermitted(id),
        _ => TimeReadError::Os { call, id, errno },
    }
}

/// Checks that a task has this id; errno if not.
fn exists(id: pid_t) -> Result<(), i32> {
    // SAFETY: signal 0 is sent to nobody.
    if unsafe { libc::kill(id, 0) } == 0 { Ok(()) } else { Err(sys::errno()) }
}

/// Adds the ticks of the counter to a time in nanoseconds.
fn with_cycles(ns: u64) -> CpuTime {
    calibrate::finish();
    CpuTime { ns, cycles: calibrate::ticks_of(ns) }
}

/// Writes `/proc/ID/schedstat` to a buffer, without an allocation.
fn schedstat_path(id: pid_t, buffer: &mut [u8; 32]) -> &CStr {
    let (start, room) = (buffer.as_mut_ptr().cast(), buffer.len());
    // SAFETY: writes at most `room` bytes, the last a NUL; the format takes one int.
    unsafe { libc::snprintf(start, room, c"/proc/%d/schedstat".as_ptr(), id) };
    CStr::from_bytes_until_nul(buffer).unwrap_or_default()
}

/// Returns the first of schedstat's numbers: nanoseconds on the CPU.
fn first_number(line: &[u8]) -> Option<u64> {
    let end = line.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(line.len());
    core::str::from_utf8(&line[..end]).ok()?.parse().ok()
}

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
