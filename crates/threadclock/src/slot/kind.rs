//! The kinds of slot, and what each takes for its stamp.

use super::Slot;
use crate::{arch, pinfo};
use core::sync::atomic::Ordering::Relaxed;

/// What a fork leaves.
pub(crate) const WIPED: u64 = 0;
/// The witness is `rseq_cs`, and `token` what is stored there.
pub(crate) const STORE: u64 = 1;
/// The witness is a word that the kernel counts up.
pub(crate) const COUNT: u64 = 2;
/// No witness: every read asks the kernel.
pub(crate) const ASK: u64 = 3;
/// Shared by threads that could get no memory: asks the kernel and writes nothing.
pub(crate) const BARE: u64 = 4;
/// Stamp and witness come from a system call, the witness by way of the slot's own word `swapins`.
pub(crate) const CALL: u64 = 5;

/// Added to the thread's cycles to make a stamp of them. No time stamp comes near, so that the fast
/// path, which takes one for every slot, finds it far outside of a base of these.
const APART: u64 = 1 << 62;
/// The system call failed: no count of switches is this, nor is it `NEVER`.
pub(super) const NO_ANSWER: u64 = u64::MAX - 1;

impl Slot {
    /// The stamp by which this slot's time goes.
    pub(super) fn stamp(&self) -> u64 {
        if self.kind.load(Relaxed) == CALL { self.call() } else { arch::stamp() }
    }

    /// The same, in order.
    pub(super) fn stamp_ordered(&self) -> u64 {
        if self.kind.load(Relaxed) == CALL { self.call() } else { arch::stamp_ordered() }
    }

    /// The thread's cycles. The number of its switches becomes the witness.
    ///
    /// A signal handler may do the same at any moment: what is in the word has been true, and a base
    /// that the handler took meanwhile has a later stamp than ours.
    fn call(&self) -> u64 {
        let info = pinfo::own();
        self.swapins.store(info.map_or(NO_ANSWER, |info| info.swapins), Relaxed);
        APART.wrapping_add(info.map_or(0, |info| info.cycles))
    }
}
