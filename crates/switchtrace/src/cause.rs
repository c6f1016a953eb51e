//! The causes for which a thread leaves its CPU, and the histograms of a thread.

/// The reason why a thread was switched out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum SwitchCause {
    /// The thread could have run on, and another was to run. Involuntary.
    Preempted = 0,
    /// The thread called sched_yield(2) (by the 64-bit interface). The kernel counts this as involuntary.
    Yielded = 1,
    /// The thread slept until woken or signalled; kernel threads also in the idle state (I).
    Sleep = 2,
    /// The thread slept and could not be signalled (state D): most often for a disk, a page fault or
    /// a lock.
    Uninterruptible = 3,
    /// The thread was stopped, traced, frozen or parked, or it ended.
    Other = 4,
}

impl SwitchCause {
    /// The causes in the order of their numbers.
    pub const ALL: [Self; 5] =
        [Self::Preempted, Self::Yielded, Self::Sleep, Self::Uninterruptible, Self::Other];
}

/// Numbers of the histograms of a thread by octaves.
pub(crate) mod histogram {
    /// Time on a CPU between two switches.
    pub(crate) const BURST: usize = 0;
    /// Time off the CPU: the first of five, one for each [`SwitchCause`](super::SwitchCause).
    pub(crate) const OFF: usize = 1;
}
