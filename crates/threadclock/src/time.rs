//! The two kinds of amount that the crate tells: CPU time, and core cycles.

use core::ops::{Add, AddAssign, Sub};

/// An amount of CPU time.
///
/// Subtraction saturates at zero, so that two readings taken in the wrong order do not wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

impl Add for CpuTime {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            ns: self.ns.saturating_add(other.ns),
            cycles: self.cycles.saturating_add(other.cycles),
        }
    }
}

impl AddAssign for CpuTime {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
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
