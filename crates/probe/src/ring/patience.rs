//! How long a worker waits for a core that nobody shares.

use model::speed::Slices;

use crate::sys::{is_unshared, monotonic_raw_ns, wait_unshared};

/// How long a batch may wait for a core that nobody shares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Patience {
    /// k0 of the CPU; of a CPU that nobody knows there is nothing to wait for.
    pub unshared_ratio: Option<f64>,
    /// What is left of the time.
    pub left_ns: u64,
}

impl Patience {
    /// Waits before the next of these slices, if they are to wait, unless the last quantum was that of a core
    /// that nobody shares. Gives the time after it.
    pub fn wait(&mut self, now: u64, slices: &mut Slices) -> u64 {
        let (Some(ratio), Some(waits)) = (self.unshared_ratio, &mut slices.waits) else {
            return now;
        };
        let last = slices.latency_ns.last().zip(slices.throughput_ns.last());
        let times = last.map(|(latency, throughput)| (u64::from(*latency), u64::from(*throughput)));
        if self.left_ns == 0 || times.is_some_and(|times| is_unshared(times, ratio)) {
            return now;
        }
        let wait = wait_unshared(ratio, self.left_ns, slices.elapsed_ns.len() as u32);
        self.left_ns = self.left_ns.saturating_sub(wait.elapsed_ns);
        waits.push(wait);
        monotonic_raw_ns()
    }

    /// The same without slices: before what is timed next.
    pub fn wait_once(&mut self) {
        if let Some(ratio) = self.unshared_ratio.filter(|_| self.left_ns > 0) {
            self.left_ns =
                self.left_ns.saturating_sub(wait_unshared(ratio, self.left_ns, 0).elapsed_ns);
        }
    }
}
