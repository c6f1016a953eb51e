//! The types of the interface: CPU time and core cycles, the ways to tell the time and why a better
//! one was not taken, and errors.

use core::ffi::CStr;
use core::fmt;
use core::ops::Sub;
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};
use libc::pid_t;

/// An amount of CPU time.
///
/// Subtraction saturates at zero, so that two readings taken in the wrong order do not wrap. The
/// layout is that of `struct threadclock_time` in include/threadclock.h.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(C)]
pub struct CpuTime {
    /// Nanoseconds of `CLOCK_THREAD_CPUTIME_ID`.
    pub ns: u64,
    /// The same time in ticks of the time-stamp counter (TSC, CNTVCT_EL0), not in core clock
    /// cycles: see [`CoreCycles`] for those. 0 where the processor has no such counter.
    pub cycles: u64,
}

impl Sub for CpuTime {
    type Output = Self;
    fn sub(self, earlier: Self) -> Self {
        Self {
            ns: self.ns.saturating_sub(earlier.ns),
            cycles: self.cycles.saturating_sub(earlier.cycles),
        }
    }
}

/// Cycles that the core really ran for this thread, at whatever frequency it ran. No conversion
/// to time exists, so none is offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CoreCycles(pub u64);

impl Sub for CoreCycles {
    type Output = Self;
    fn sub(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

/// A way to read a thread's CPU time, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Tier {
    /// Time stamp, and the kernel's clearing of `rseq_cs` as the sign that the thread was switched.
    Rseq = 1,
    /// Time stamp, and the `lock` word of a perf event's page as the switch generation.
    PerfPage = 2,
    /// Hardware cycle counter by RDPMC. It counts core cycles, which are not time:
    /// [`CoreClock`](crate::CoreClock) reads it; a `ThreadClock` never takes it.
    CoreCycles = 3,
    /// The system call of [`pinfo`](crate::pinfo), on a kernel that has it: the thread's counter
    /// and the number of its switches in one.
    SystemCall = 4,
    /// `clock_gettime(CLOCK_THREAD_CPUTIME_ID)` at every read.
    Kernel = 5,
}

impl Tier {
    /// All tiers, best first.
    pub const ALL: [Self; 5] =
        [Self::Rseq, Self::PerfPage, Self::CoreCycles, Self::SystemCall, Self::Kernel];

    /// The name that `threadclock_tier()` gives, without its terminating NUL.
    pub fn name(self) -> &'static str {
        self.c_name().to_str().unwrap_or_default()
    }

    pub(crate) fn c_name(self) -> &'static CStr {
        match self {
            Self::Rseq => c"rseq",
            Self::PerfPage => c"perf-page",
            Self::CoreCycles => c"core-cycles",
            Self::SystemCall => c"system-call",
            Self::Kernel => c"kernel",
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a tier was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WhyNot {
    /// The caller asked for a lower one
    /// ([`ThreadClock::with_tier`](crate::ThreadClock::with_tier)).
    NotAsked,
    /// No time-stamp counter that user space can read is known for this processor.
    NoCounter,
    /// The counter's rate changes with the core's (no "invariant TSC" bit).
    CounterNotInvariant,
    /// The kernel keeps time by something else than this counter (`current_clocksource`), which
    /// means that it distrusts the counter.
    ClockSourceDistrusted,
    /// The counter could not be calibrated against `CLOCK_MONOTONIC_RAW`.
    NotCalibrated,
    /// A reading of the kernel's clock takes so long that pairing it with a time stamp would be
    /// coarser than the published bound.
    KernelClockTooSlow,
    /// rseq could not be registered (errno).
    RseqRefused(i32),
    /// `perf_event_open` or its mmap failed (errno).
    PerfRefused(i32),
    /// A call that blocked left the sign untouched (rseq in the optimised mode of Linux 6.19 and
    /// later): a switch could go unseen.
    SwitchInSyscallUnseen,
    /// No blocking call would block, so the sign could not be tried.
    NotTried,
    /// There is no cycle counter, or it cannot be read from user space.
    CountersUnreadable,
    /// It could be had, but its unit is not time: use [`CoreClock`](crate::CoreClock).
    OtherUnit,
    /// The kernel has no `getpinfo` (`ENOSYS`).
    NoSystemCall,
    /// `getpinfo` was refused, by a filter of system calls (errno).
    SystemCallRefused(i32),
    /// What has the number of `getpinfo` here is another call.
    OtherSystemCall,
    /// The page for this thread's state could not be mapped (errno).
    NoMemory(i32),
}

impl WhyNot {
    /// The errno that came with the refusal, where one did.
    pub fn errno(self) -> Option<i32> {
        match self {
            Self::RseqRefused(errno)
            | Self::PerfRefused(errno)
            | Self::SystemCallRefused(errno)
            | Self::NoMemory(errno) => Some(errno),
            Self::NoSystemCall => Some(libc::ENOSYS),
            _ => None,
        }
    }
}

impl fmt::Display for WhyNot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::NotAsked => "not asked for",
            Self::NoCounter => "no readable time-stamp counter on this processor",
            Self::CounterNotInvariant => "the time-stamp counter is not invariant",
            Self::ClockSourceDistrusted => "the kernel does not keep time by this counter",
            Self::NotCalibrated => "the counter could not be calibrated",
            Self::KernelClockTooSlow => "the kernel clock is too slow to be paired with a stamp",
            Self::RseqRefused(errno) => return write!(f, "rseq refused (errno {errno})"),
            Self::PerfRefused(errno) => return write!(f, "perf event refused (errno {errno})"),
            Self::SwitchInSyscallUnseen => "a switch inside a system call is not shown",
            Self::NotTried => "no blocking call blocked, so it could not be tried",
            Self::CountersUnreadable => "no cycle counter readable from user space",
            Self::OtherUnit => "counts core cycles, which are not time",
            Self::NoSystemCall => "this kernel has no getpinfo system call",
            Self::SystemCallRefused(errno) => return write!(f, "getpinfo refused (errno {errno})"),
            Self::OtherSystemCall => "the number of getpinfo is another system call's here",
            Self::NoMemory(errno) => return write!(f, "no page for the state (errno {errno})"),
        };
        f.write_str(text)
    }
}

impl core::error::Error for WhyNot {}

/// A failed [`getpinfo`](crate::getpinfo()).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeReadError {
    /// `id` is negative (EINVAL).
    InvalidId(pid_t),
    /// No task has this id (ESRCH).
    NoSuchTask(pid_t),
    /// The task is there and the kernel does not give its time (EPERM).
    NotPermitted(pid_t),
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
    Unreadable(pid_t),
    /// This object belongs to the parent of a fork: make a new one in the child.
    Forked,
}

impl TimeReadError {
    /// The errno that C callers see.
    pub fn errno(self) -> i32 {
        match self {
            Self::InvalidId(_) => libc::EINVAL,
            Self::NoSuchTask(_) => libc::ESRCH,
            Self::NotPermitted(_) => libc::EPERM,
            Self::Os { errno, .. } => errno,
            Self::Unreadable(_) => libc::EIO,
            Self::Forked => libc::EBADF,
        }
    }
}

impl fmt::Display for TimeReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidId(id) => write!(f, "{id} is not a task id"),
            Self::NoSuchTask(id) => write!(f, "no task {id}"),
            Self::NotPermitted(id) => write!(f, "not permitted to read the time of task {id}"),
            Self::Os { call, id, errno } => write!(f, "{call} of task {id}: errno {errno}"),
            Self::Unreadable(id) => write!(f, "/proc/{id}/schedstat: not a number"),
            Self::Forked => f.write_str("made before a fork, used after it"),
        }
    }
}

impl core::error::Error for TimeReadError {}

/// What was found out once a process, and is kept: 0 is "not asked yet", 1 "good", others index the
/// reasons below, plus two.
pub(crate) struct Verdict(AtomicU8);

const REASONS: [WhyNot; 9] = [
    WhyNot::NoCounter,
    WhyNot::CounterNotInvariant,
    WhyNot::ClockSourceDistrusted,
    WhyNot::NotCalibrated,
    WhyNot::KernelClockTooSlow,
    WhyNot::SwitchInSyscallUnseen,
    WhyNot::NotTried,
    WhyNot::NoSystemCall,
    WhyNot::OtherSystemCall,
];

impl Verdict {
    pub(crate) const fn unknown() -> Self {
        Self(AtomicU8::new(0))
    }

    /// Threads that come at once each find out for themselves; they find the same. A reason that is
    /// not among those above is not kept: a filter's refusal, which another thread need not have.
    pub(crate) fn get_or(
        &self,
        find_out: impl FnOnce() -> Result<(), WhyNot>,
    ) -> Result<(), WhyNot> {
        match self.0.load(Relaxed) {
            0 => {
                let found = find_out();
                let code = found.err().and_then(|why| REASONS.iter().position(|&r| r == why));
                if found.is_ok() || code.is_some() {
                    self.0.store(code.map_or(1, |code| code as u8 + 2), Relaxed);
                }
                found
            }
            1 => Ok(()),
            code => Err(REASONS[usize::from(code) - 2]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_found_once() {
        let verdict = Verdict::unknown();
        assert_eq!(verdict.get_or(|| Err(WhyNot::NotCalibrated)), Err(WhyNot::NotCalibrated));
        assert_eq!(verdict.get_or(|| Ok(())), Err(WhyNot::NotCalibrated));
    }
}
