//! What the kernel says that was used: getrusage(2), times(2), plain clocks.

use std::mem::MaybeUninit;

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
