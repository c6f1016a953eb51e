//! The recording: every event as it happened, read from the kernel's ring buffer
//! (Documentation/bpf/ringbuf.rst).
//!
//! Two pages with positions, then the data, are mapped; positions only grow. The data are mapped
//! twice in a row, so that a record that goes over the end can be read in one piece:
//!
//! ```text
//! consumer page   producer page   data               the same data
//! 80              200             [....RRRR....]     [....RRRR....]
//! ```
//!
//! Here the records from 80 to 199 wait to be read. A record is a word with its length, one that is
//! not used, and a [`RawEvent`]. While the kernel writes a record, bit 31 of its length is set;
//! the reader stops there.

use crate::error::Error;
use crate::layout::{RawEvent, kind};
use crate::sys::{self, SharedMapping};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

/// A thread of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventThread {
    /// The thread's id in the initial pid namespace.
    pub tid: u32,
    /// The priority as the kernel has it: 120 is nice 0, below 100 is real-time.
    pub priority: u32,
}

/// An event's kind, with what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// A CPU was given to another thread.
    Switch {
        /// The thread that left the CPU.
        prev: EventThread,
        /// The thread that got it.
        next: EventThread,
        /// State of `prev` (include/linux/sched.h): 0 if it could have run on, 1 asleep, 2 D, 0x80
        /// ended.
        prev_state: u32,
        /// Whether it was preempted within the kernel.
        preempted: bool,
    },
    /// A thread was woken, or made to run for the first time.
    Wakeup {
        /// The id of the thread that ran on the CPU that woke it.
        waker: u32,
        /// The thread that was woken.
        wakee: EventThread,
        /// The CPU on which it is to run.
        target_cpu: u32,
        /// Whether it is new.
        new: bool,
    },
    /// A thread was moved to another CPU.
    Migrate {
        /// The thread that was moved.
        thread: EventThread,
        /// The CPU that it was moved to.
        target_cpu: u32,
    },
}

/// An event of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEvent {
    /// `CLOCK_MONOTONIC` in nanoseconds. Events of one CPU are in order, those of several nearly.
    pub time_ns: u64,
    /// The CPU on which it happened.
    pub cpu: u32,
    /// The kind of the event, with its threads.
    pub kind: EventKind,
}

impl TraceEvent {
    /// Decodes an event. `None` for a kind that is not known.
    fn from_raw(raw: RawEvent) -> Option<Self> {
        let first = EventThread { tid: raw.first_tid, priority: raw.first_prio };
        let second = EventThread { tid: raw.second_tid, priority: raw.second_prio };
        let kind = match raw.kind_and_cpu & 0xffff {
            kind::SWITCH => EventKind::Switch {
                prev: first,
                next: second,
                prev_state: raw.state & !(1 << 31),
                preempted: raw.state >> 31 == 1,
            },
            number @ (kind::WAKEUP | kind::NEW) => EventKind::Wakeup {
                waker: first.tid,
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

/// Bits of a record's length (`BPF_RINGBUF_BUSY_BIT`, `BPF_RINGBUF_DISCARD_BIT`).
const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;
const HEADER_BYTES: u64 = 8;

/// Takes events out of the ring buffer. An event that does not fit in is lost, and counted
/// ([`LostCounts::events`](crate::LostCounts::events)).
#[derive(Debug)]
pub struct EventReader {
    _map: OwnedFd,
    /// The page with the position up to which events were read; the reader writes it.
    consumer: SharedMapping,
    /// The page with the position up to which the kernel has written; then the data, twice.
    producer: SharedMapping,
    mask: u64,
}

/// A record of the ring buffer.
struct RingRecord {
    /// Bytes behind its header.
    bytes: u32,
    /// `None`: it was discarded, or has another size.
    event: Option<RawEvent>,
}

impl EventReader {
    pub(crate) fn new(map: OwnedFd, bytes: usize) -> Result<Self, Error> {
        let page = sys::page_bytes();
        let consumer = SharedMapping::new(map.as_raw_fd(), page, 0, true)?;
        let producer = SharedMapping::new(map.as_raw_fd(), page + 2 * bytes, page, false)?;
        Ok(Self { _map: map, consumer, producer, mask: bytes as u64 - 1 })
    }

    /// Hands over the events that are there when it is called, and returns their number. Call it
    /// often enough: a million switches a second fill 40 MB.
    pub fn drain(&mut self, mut take: impl FnMut(TraceEvent)) -> usize {
        // SAFETY: the first word of each page is the position, which the kernel reads and writes as
        // such.
        let (consumed, produced) = unsafe {
            (
                &*self.consumer.start().cast::<AtomicU64>(),
                &*self.producer.start().cast::<AtomicU64>(),
            )
        };
        let (mut position, mut taken) = (consumed.load(Relaxed), 0);
        // Read once: more events may come as fast as they are taken.
        let end = produced.load(Acquire);
        while position < end {
            let Some(record) = self.record(position) else { break };
            if let Some(event) = record.event.and_then(TraceEvent::from_raw) {
                take(event);
                taken += 1;
            }
            position += (HEADER_BYTES + u64::from(record.bytes)).next_multiple_of(8);
            consumed.store(position, Release);
        }
        taken
    }

    /// Reads the record at this position. `None` if it is still being written.
    fn record(&self, position: u64) -> Option<RingRecord> {
        let offset = sys::page_bytes() + (position & self.mask) as usize;
        // SAFETY: the position lies in the data, which is followed by itself; records are aligned
        // to 8.
        let start = unsafe { self.producer.start().add(offset) };
        // SAFETY: a record begins with its length, which the kernel writes last.
        let length = unsafe { &*start.cast::<AtomicU32>() }.load(Acquire);
        if length & BUSY != 0 {
            return None;
        }
        let bytes = length & !(BUSY | DISCARDED);
        let is_event = length & DISCARDED == 0 && bytes as usize == size_of::<RawEvent>();
        // SAFETY: complete, of this size, and not changed before it is consumed.
        let event =
            is_event.then(|| unsafe { start.add(HEADER_BYTES as usize).cast::<RawEvent>().read() });
        Some(RingRecord { bytes, event })
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
        let kind = EventKind::Switch {
            prev: EventThread { tid: 10, priority: 120 },
            next: EventThread { tid: 11, priority: 98 },
            prev_state: 2,
            preempted: true,
        };
        assert_eq!(TraceEvent::from_raw(raw), Some(TraceEvent { time_ns: 5, cpu: 3, kind }));
        let new = TraceEvent::from_raw(RawEvent { kind_and_cpu: kind::NEW, ..raw }).unwrap();
        let wakee = EventThread { tid: 11, priority: 98 };
        let expected = EventKind::Wakeup { waker: 10, wakee, target_cpu: raw.state, new: true };
        assert_eq!(new.kind, expected);
        assert_eq!(TraceEvent::from_raw(RawEvent { kind_and_cpu: 9, ..raw }), None);
    }
}
