//! The recording: every switch, as it happened, from the kernel's ring buffer
//! (Documentation/bpf/ringbuf.rst).

use crate::error::Error;
use crate::layout::{RawEvent, kind};
use crate::sys::{self, Mapping};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// A CPU was given to another thread.
    Switch {
        /// Who left it, and its priority (the kernel's: 120 is nice 0).
        prev: (u32, u32),
        /// Who got it.
        next: (u32, u32),
        /// State of `prev` (include/linux/sched.h): 0 if it could have run on, 1 asleep, 2 D, 0x80
        /// ended.
        prev_state: u32,
        /// Whether it was preempted within the kernel.
        preempted: bool,
    },
    /// A thread was woken, or made to run for the first time.
    Wakeup {
        /// Who ran on the CPU that woke it.
        waker: u32,
        /// Who was woken, and its priority.
        wakee: (u32, u32),
        /// Where it is to run.
        target_cpu: u32,
        /// Whether it is new.
        new: bool,
    },
    /// A thread was moved to another CPU.
    Migrate {
        /// Who, and its priority.
        thread: (u32, u32),
        /// To where.
        target_cpu: u32,
    },
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEvent {
    /// `CLOCK_MONOTONIC` in nanoseconds. Events of one CPU are in order, those of several nearly.
    pub time_ns: u64,
    /// Where it happened.
    pub cpu: u32,
    /// What.
    pub kind: EventKind,
}

impl TraceEvent {
    /// `None` for a kind that is not known.
    fn from_raw(raw: RawEvent) -> Option<Self> {
        let (first, second) = ((raw.first_tid, raw.first_prio), (raw.second_tid, raw.second_prio));
        let kind = match raw.kind_and_cpu & 0xffff {
            kind::SWITCH => EventKind::Switch {
                prev: first,
                next: second,
                prev_state: raw.state & !(1 << 31),
                preempted: raw.state >> 31 == 1,
            },
            number @ (kind::WAKEUP | kind::NEW) => EventKind::Wakeup {
                waker: first.0,
                wakee: second,
                target_cpu: raw.state,
                new: number == kind::NEW,
            },
            kind::MIGRATE => EventKind::Migrate { thread: second, target_cpu: raw.state },
            _ => return None,
        };
        Some(Self { time_ns: raw.time_ns, cpu: raw.kind_and_cpu >> 16, kind })
    }
}

/// Bits of a record's length.
const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;
const HEADER_BYTES: u64 = 8;

/// Takes events out of the ring buffer. What does not fit in while nobody takes any out is lost,
/// and counted ([`LostCounts::events`](crate::LostCounts::events)).
#[derive(Debug)]
pub struct EventReader {
    _map: OwnedFd,
    /// The page with how far we are, which we write.
    consumer: Mapping,
    /// The page with how far the kernel is; then the data, twice in a row.
    producer: Mapping,
    mask: u64,
}

impl EventReader {
    pub(crate) fn new(map: OwnedFd, bytes: usize) -> Result<Self, Error> {
        let page = sys::page_bytes();
        let consumer = Mapping::new(map.as_raw_fd(), page, 0, true)?;
        let producer = Mapping::new(map.as_raw_fd(), page + 2 * bytes, page, false)?;
        Ok(Self { _map: map, consumer, producer, mask: bytes as u64 - 1 })
    }

    /// Hands over the events that are there when it is called, and says how many. Call it often
    /// enough: a million switches a second fill 40 MB.
    pub fn drain(&mut self, mut take: impl FnMut(TraceEvent)) -> usize {
        // SAFETY: the first word of each page is the position, which the kernel reads and writes as
        // such.
        let (consumed, produced) = unsafe {
            (
                &*self.consumer.start().cast::<AtomicU64>(),
                &*self.producer.start().cast::<AtomicU64>(),
            )
        };
        let (mut at, mut taken) = (consumed.load(Relaxed), 0);
        // Those that are there now: more may come as fast as they are taken.
        let end = produced.load(Acquire);
        while at < end {
            let Some((length, raw)) = self.record(at) else { break };
            if let Some(event) = raw.and_then(TraceEvent::from_raw) {
                take(event);
                taken += 1;
            }
            at += (HEADER_BYTES + u64::from(length)).next_multiple_of(8);
            consumed.store(at, Release);
        }
        taken
    }

    /// The record at this position, its length first; `None` if it is still being written.
    fn record(&self, at: u64) -> Option<(u32, Option<RawEvent>)> {
        let data = sys::page_bytes() + (at & self.mask) as usize;
        // SAFETY: the position lies in the data, which is followed by itself; records are aligned
        // to 8.
        let start = unsafe { self.producer.start().add(data) };
        // SAFETY: a record begins with its length, which the kernel writes last.
        let length = unsafe { &*start.cast::<AtomicU32>() }.load(Acquire);
        if length & BUSY != 0 {
            return None;
        }
        let bytes = length & !(BUSY | DISCARDED);
        let is_event = length & DISCARDED == 0 && bytes as usize == size_of::<RawEvent>();
        // SAFETY: complete, of this size, and not changed before it is consumed.
        let raw =
            is_event.then(|| unsafe { start.add(HEADER_BYTES as usize).cast::<RawEvent>().read() });
        Some((bytes, raw))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_events() {
        let raw = RawEvent {
            time_ns: 5,
            kind_and_cpu: kind::SWITCH | 3 << 16,
            state: 1 << 31 | 2,
            first_tid: 10,
            second_tid: 11,
            first_prio: 120,
            second_prio: 98,
        };
        let kind =
            EventKind::Switch { prev: (10, 120), next: (11, 98), prev_state: 2, preempted: true };
        assert_eq!(TraceEvent::from_raw(raw), Some(TraceEvent { time_ns: 5, cpu: 3, kind }));
        let new = TraceEvent::from_raw(RawEvent { kind_and_cpu: kind::NEW, ..raw }).unwrap();
        assert!(matches!(new.kind, EventKind::Wakeup { new: true, wakee: (11, 98), .. }));
        assert_eq!(TraceEvent::from_raw(RawEvent { kind_and_cpu: 9, ..raw }), None);
    }
}
