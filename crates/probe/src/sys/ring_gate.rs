//! The gate at which rings that run at the same time wait for each other.
//!
//! Rings of two that take one sample. Each passes the gate as often as the others; the last one to
//! arrive opens it.
//!
//! ```text
//! ring 0   set up   sleeps   warm-up      turns   ready   sleeps   timed laps        turns   end
//! ring 1   set up            warm-up longer       ready            more timed laps           end
//! gate              opens                 opens           opens                      opens
//! ```

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::io::Errno;
use rustix::thread::futex;

use super::page::{Shareable, SharedValue};

/// State of the gate, in memory that all rings share.
#[derive(Default)]
pub struct GateState {
    /// Rings that pass the gate.
    rings: AtomicU32,
    /// Number of times that the gate was opened.
    openings: AtomicU32,
    /// Number of times that a ring arrived at it.
    arrivals: AtomicU64,
    /// 1 once a ring has said that its sample was the last.
    is_last: AtomicU32,
}

// SAFETY: atomics: zeros are values, and they hold no address.
unsafe impl Shareable for GateState {}

/// The gate as one ring sees it.
pub struct RingGate {
    state: SharedValue<GateState>,
    /// Number of the ring, from 0.
    pub ring: u32,
    /// Number of times that this ring has arrived.
    arrived: u32,
}

impl RingGate {
    /// Maps a gate for `rings` rings, for the first of them.
    pub fn new(rings: u32) -> Result<Self, Errno> {
        let state = SharedValue::<GateState>::new()?;
        state.rings.store(rings, Ordering::Release);
        Ok(Self { state, ring: 0, arrived: 0 })
    }

    /// Returns the gate for another ring, which has not arrived yet.
    pub fn for_ring(&self, ring: u32) -> Self {
        Self { state: self.state.clone(), ring, arrived: 0 }
    }

    /// Returns the number of rings.
    pub fn rings(&self) -> u32 {
        self.state.rings.load(Ordering::Acquire)
    }

    /// Arrives at the gate without waiting. The last ring to arrive opens it.
    pub fn arrive(&mut self) {
        self.arrived += 1;
        let arrivals = self.state.arrivals.fetch_add(1, Ordering::AcqRel) + 1;
        if arrivals == u64::from(self.rings()) * u64::from(self.arrived) {
            let openings = &self.state.openings;
            openings.store(self.arrived, Ordering::Release);
            // No waiter is no failure, and nothing else can fail here.
            let _ = futex::wake(openings, futex::Flags::empty(), i32::MAX as u32);
        }
    }

    /// Returns whether all rings have arrived as often as this one.
    pub fn is_open(&self) -> bool {
        self.state.openings.load(Ordering::Acquire) >= self.arrived
    }

    /// Arrives at the gate and sleeps until all rings have.
    pub fn wait(&mut self) {
        self.arrive();
        let openings = &self.state.openings;
        loop {
            let opened = openings.load(Ordering::Acquire);
            if opened >= self.arrived {
                return;
            }
            // Whatever ended the wait, the count decides.
            let _ = futex::wait(openings, futex::Flags::empty(), opened, None);
        }
    }

    /// Says that the present sample is the last one. To be said before arriving at its end.
    pub fn end_here(&self) {
        self.state.is_last.store(1, Ordering::Release);
    }

    /// Returns whether some ring has said so. To be asked when the gate is open at the sample's end.
    pub fn ends_here(&self) -> bool {
        self.state.is_last.load(Ordering::Acquire) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_to_arrive_opens_the_gate() {
        let mut first = RingGate::new(3).unwrap();
        let (mut second, mut third) = (first.for_ring(1), first.for_ring(2));
        first.arrive();
        second.arrive();
        assert!(!first.is_open() && !second.is_open());
        third.arrive();
        assert!(first.is_open() && second.is_open() && third.is_open());
        // The next time all have to arrive again, and one may be ahead.
        first.arrive();
        assert!(!first.is_open() && second.is_open());
    }

    #[test]
    fn waiters_are_let_through_together_each_time() {
        let gate = RingGate::new(4).unwrap();
        let passed = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for ring in 0..4 {
                let (mut gate, passed) = (gate.for_ring(ring), &passed);
                scope.spawn(move || {
                    for time in 0..50 {
                        gate.wait();
                        // Nobody is a whole time behind or ahead.
                        let before = passed.fetch_add(1, Ordering::AcqRel);
                        assert!((4 * time..4 * (time + 2)).contains(&before), "{before} at {time}");
                        gate.wait();
                        assert_eq!(passed.load(Ordering::Acquire) / 4, time + 1);
                        gate.wait();
                    }
                });
            }
        });
    }

    #[test]
    fn one_ring_ends_the_samples_of_all() {
        let gate = RingGate::new(2).unwrap();
        let other = gate.for_ring(1);
        assert!(!gate.ends_here());
        other.end_here();
        assert!(gate.ends_here());
    }
}
