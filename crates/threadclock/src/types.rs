//! The types of the interface: CPU time and core cycles, tiers and why one was refused, errors.

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

    /// Returns the tier's name, as `threadclock_tier()` gives it to C callers.
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

/// The reason why a tier was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TierRefusal {
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
    /// The tier is available, but its unit is not time: use [`CoreClock`](crate::CoreClock).
    OtherUnit,
    /// The kernel has no `getpinfo` (`ENOSYS`).
    NoSystemCall,
    /// `getpinfo` was refused, by a filter of system calls (errno).
    SystemCallRefused(i32),
    /// The number of `getpinfo` belongs to another call here.
    OtherSystemCall,
    /// The page for this thread's state could not be mapped (errno).
    NoMemory(i32),
}

impl TierRefusal {
    /// Returns the errno that came with the refusal, if one did.
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

impl fmt::Display for TierRefusal {
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

impl core::error::Error for TierRefusal {}

/// The error of a failed [`getpinfo`](crate::getpinfo()).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeReadError {
    /// `id` is negative (EINVAL).
    InvalidId(pid_t),
    /// No task has this id (ESRCH).
    NoSuchTask(pid_t),
    /// The task exists, but the kernel does not give its time (EPERM).
    NotPermitted(pid_t),
    /// A call failed for another reason.
    Os {
        /// The name of the call.
        call: &'static str,
        /// The id of the task.
        id: pid_t,
        /// The errno of the call.
        errno: i32,
    },
    /// `/proc/ID/schedstat` did not hold a number.
    Unreadable(pid_t),
    /// This object belongs to the parent of a fork: make a new one in the child.
    Forked,
}

impl TimeReadError {
    /// Returns the errno that C callers get.
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

/// The result of a check that is made once a process: 0 is "not made yet", 1 "good", others are the
/// position in [`CACHED_REASONS`] plus two.
pub(crate) struct CachedVerdict(AtomicU8);

/// The reasons that hold for the whole process.
const CACHED_REASONS: [TierRefusal; 9] = [
    TierRefusal::NoCounter,
    TierRefusal::CounterNotInvariant,
    TierRefusal::ClockSourceDistrusted,
    TierRefusal::NotCalibrated,
    TierRefusal::KernelClockTooSlow,
    TierRefusal::SwitchInSyscallUnseen,
    TierRefusal::NotTried,
    TierRefusal::NoSystemCall,
    TierRefusal::OtherSystemCall,
];

impl CachedVerdict {
    pub(crate) const fn unknown() -> Self {
        Self(AtomicU8::new(0))
    }

    /// Returns the result, from `check` if it is not known yet. Threads that come at once each make
    /// the check, with one result. A reason that need not hold for other threads, as a filter's
    /// refusal, is not kept.
    pub(crate) fn get_or(
        &self,
        check: impl FnOnce() -> Result<(), TierRefusal>,
    ) -> Result<(), TierRefusal> {
        match self.0.load(Relaxed) {
            0 => {
                let result = check();
                if let Some(code) = cached_code(result) {
                    self.0.store(code, Relaxed);
                }
                result
            }
            1 => Ok(()),
            code => Err(CACHED_REASONS[usize::from(code) - 2]),
        }
    }
}

/// Returns the code by which a result is kept; `None` for a reason that is not kept.
fn cached_code(result: Result<(), TierRefusal>) -> Option<u8> {
    match result {
        Ok(()) => Some(1),
        Err(why) => {
            let position = CACHED_REASONS.iter().position(|reason| *reason == why)?;
            Some(position as u8 + 2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_found_once() {
        let verdict = CachedVerdict::unknown();
        assert_eq!(
            verdict.get_or(|| Err(TierRefusal::NotCalibrated)),
            Err(TierRefusal::NotCalibrated)
        );
        assert_eq!(verdict.get_or(|| Ok(())), Err(TierRefusal::NotCalibrated));
    }
}
