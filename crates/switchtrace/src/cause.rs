//! Why a thread leaves its CPU, and what is counted in histograms.

/// Why a thread was switched out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum SwitchCause {
    /// It could have run on, and another was to run. Involuntary.
    Preempted = 0,
    /// It called sched_yield(2) (by the 64-bit interface). The kernel counts this as involuntary.
    Yielded = 1,
    /// It slept until woken or signalled; kernel threads also in the idle state (I).
    Sleep = 2,
    /// It slept and could not be signalled (state D): most often a disk, a page fault or a lock.
    Uninterruptible = 3,
    /// It was stopped, traced, frozen or parked, or it ended.
    Other = 4,
}

impl SwitchCause {
    /// All, in order.
    pub const ALL: [Self; 5] =
        [Self::Preempted, Self::Yielded, Self::Sleep, Self::Uninterruptible, Self::Other];
}

/// Which histogram is which.
pub(crate) mod histogram {
    pub(crate) const WAIT: usize = 0;
    pub(crate) const BURST: usize = 1;
    /// The first of those by [`SwitchCause`](super::SwitchCause).
    pub(crate) const OFF: usize = 2;
}
