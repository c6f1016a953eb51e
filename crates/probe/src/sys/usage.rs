//! What the kernel says that was used: getrusage(2), times(2), every field of wait4(2).

use std::ffi::{CStr, c_long};
use std::mem::MaybeUninit;

use rustix::io::Errno;

use super::process::wait4;

/// Of whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The calling process, all threads.
    Own,
    /// The calling thread.
    Thread,
    /// All children that were waited for.
    Children,
}

/// What getrusage(2) gives, as far as it is used here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// User time in nanoseconds, in steps of a microsecond.
    pub user_ns: u64,
    /// System time in nanoseconds, in steps of a microsecond.
    pub system_ns: u64,
    /// Page faults served without input or output.
    pub minor_faults: u64,
    /// Switches, voluntary and involuntary.
    pub switches: u64,
}

impl Usage {
    /// User and system time in nanoseconds.
    pub fn total_ns(&self) -> u64 {
        self.user_ns + self.system_ns
    }
}

/// What getrusage(2) wrote, not looked at yet: the call alone is what is timed.
pub struct Raw(libc::rusage);

/// getrusage(2).
#[inline(always)]
pub fn usage(whose: Whose) -> Raw {
    let who = match whose {
        Whose::Own => libc::RUSAGE_SELF,
        Whose::Thread => libc::RUSAGE_THREAD,
        Whose::Children => libc::RUSAGE_CHILDREN,
    };
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel fills one rusage. With a valid address and `who` it cannot fail, and
    // zeroes are a valid rusage.
    unsafe {
        libc::getrusage(who, usage.as_mut_ptr());
        Raw(usage.assume_init())
    }
}

impl Raw {
    /// Greatest resident memory in KiB (ru_maxrss).
    pub fn max_resident_kib(&self) -> u64 {
        self.0.ru_maxrss as u64
    }

    /// The figures in it.
    pub fn read(&self) -> Usage {
        let ns =
            |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
        Usage {
            user_ns: ns(self.0.ru_utime),
            system_ns: ns(self.0.ru_stime),
            minor_faults: self.0.ru_minflt as u64,
            switches: (self.0.ru_nvcsw + self.0.ru_nivcsw) as u64,
        }
    }
}

/// times(2): user and system time of the process in ticks of the clock (sysconf(_SC_CLK_TCK)).
#[inline(always)]
pub fn times() -> u64 {
    let mut times = MaybeUninit::<libc::tms>::zeroed();
    // SAFETY: the kernel fills one tms; zeroes are a valid one.
    let times = unsafe {
        libc::times(times.as_mut_ptr());
        times.assume_init()
    };
    (times.tms_utime + times.tms_stime) as u64
}

/// The end of a child, and getrusage(2)'s fields for it and the children that it waited for. Those
/// that Linux does not fill are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // The fields are the manual page's.
pub struct Account {
    /// Wait status as wait(2) gives it.
    pub status: i32,
    /// User time in microseconds.
    pub utime_us: i64,
    /// System time in microseconds.
    pub stime_us: i64,
    /// In KiB.
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

/// Waits for a child's end.
pub fn wait_for(pid: i32) -> Result<Account, Errno> {
    // Without WNOHANG there is no answer but an end.
    let (status, usage) = wait4(pid, 0)?.ok_or(Errno::CHILD)?;
    let us = |time: libc::timeval| time.tv_sec * 1_000_000 + time.tv_usec;
    Ok(Account {
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

/// times(2) of all children that were waited for, in ticks of sysconf(_SC_CLK_TCK).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildTicks {
    /// User time.
    pub user: c_long,
    /// System time.
    pub system: c_long,
    /// Time since a moment that is the kernel's choice.
    pub since: c_long,
}

/// times(2).
pub fn child_ticks() -> ChildTicks {
    let mut times = MaybeUninit::<libc::tms>::zeroed();
    // SAFETY: the kernel fills one tms; zeroes are a valid one. With a valid address it cannot fail:
    // -1 is a moment like others (times(2), BUGS).
    let (since, times) = unsafe { (libc::times(times.as_mut_ptr()), times.assume_init()) };
    ChildTicks { user: times.tms_cutime, system: times.tms_cstime, since }
}

/// Seconds since 1970 as ctime(3) writes them, in local time, without the newline. `None` beyond the
/// years that it can write.
pub fn local_time(seconds: i64) -> Option<String> {
    // ctime_r(3) asks for 26 bytes; years of more than four digits take more.
    let mut text = [0; 64];
    // SAFETY: the buffer is larger than any year of a 32-bit number of years needs.
    let written = unsafe { libc::ctime_r(&seconds, text.as_mut_ptr()) };
    if written.is_null() {
        return None;
    }
    // SAFETY: it has written a string that ends with a zero.
    let text = unsafe { CStr::from_ptr(text.as_ptr()) };
    Some(text.to_string_lossy().trim_end().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_reads_as_ctime_writes_it() {
        // Whatever the time zone, it is one of two days.
        let text = local_time(0).unwrap();
        let parts: Vec<&str> = text.split_whitespace().collect();
        assert_eq!((text.len(), parts.len()), (24, 5), "{text}");
        assert!(matches!(parts[4], "1969" | "1970"), "{text}");
        assert_eq!(local_time(i64::MAX), None);
    }

    #[test]
    fn no_child_is_an_error() {
        assert_eq!(wait_for(i32::MAX), Err(Errno::CHILD));
    }
}
