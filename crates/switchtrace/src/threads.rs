//! What was aggregated of each thread.

use crate::cause::{SwitchCause, histogram};
use crate::histogram::DurationHistogram;
use crate::layout::Activity;
use std::hint;
use std::sync::atomic::{AtomicU32, Ordering::*, fence};
use threadclock::table::ThreadTable;
use threadclock::table::layout::{BUSY, ENDED, ON, TIME, ThreadRecord};

/// Which thread: no two have the same, however often an id is given anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadKey {
    /// Its id in the initial pid namespace. 0: an idle thread.
    pub tid: u32,
    /// When it was created, in 1,024 ns of `CLOCK_MONOTONIC`, modulo 2^32.
    pub born: u32,
}

impl ThreadKey {
    pub(crate) fn from_bits(bits: u64) -> Self {
        Self { tid: bits as u32, born: (bits >> 32) as u32 }
    }

    pub(crate) fn bits(self) -> u64 {
        u64::from(self.born) << 32 | u64::from(self.tid)
    }
}

/// A thread's life until now. Counts are the kernel's, over all its life, as of its last switch;
/// the difference of two snapshots is what happened between them.
#[derive(Clone, Debug)]
pub struct ThreadSnapshot {
    /// Which.
    pub key: ThreadKey,
    /// Its process.
    pub tgid: u32,
    /// The process that forked it; of one that is older than the tracer, its parent then. 0: it has
    /// none.
    pub parent: u32,
    /// The name in `/proc/TID/comm` when it last left a CPU, or at its last execve(2), without
    /// control characters.
    pub comm: String,
    /// Whether it has ended.
    pub ended: bool,
    /// Whether it is on a CPU.
    pub running: bool,
    /// CPU time in nanoseconds, as of its last switch.
    pub cpu_ns: u64,
    /// Nanoseconds in the run queue without running. `None`: the kernel does not count them, or it
    /// never waited.
    pub waited_ns: Option<u64>,
    /// Switches because it slept.
    pub voluntary: u64,
    /// Switches while it could have run on, yields among them.
    pub involuntary: u64,
    /// Of those, by sched_yield(2), since it was first seen.
    pub yields: u64,
    /// Moves to another CPU.
    pub migrations: u32,
    /// Time on a CPU between two switches, since it was first seen.
    pub bursts: DurationHistogram,
    /// Time in the run queue before each burst, since it was first seen.
    pub waits: DurationHistogram,
    /// Time from leaving a CPU until it ran again, by cause, since it was first seen. After a sleep
    /// the wait in the run queue is part of it.
    pub off: [DurationHistogram; SwitchCause::ALL.len()],
}

/// All threads of a table with activity.
pub(crate) fn all(table: &ThreadTable) -> Vec<ThreadSnapshot> {
    activities(table).filter_map(snapshot).collect()
}

/// Their records, those never used among them.
pub(crate) fn activities(table: &ThreadTable) -> impl Iterator<Item = &Activity> {
    let has_activity = table.header().record_bytes as usize == size_of::<Activity>();
    let records = if has_activity { table.header().records as usize } else { 0 };
    // SAFETY: an element has that many bytes, and its start is aligned; all fields are atomic.
    (0..records).filter_map(|number| table.element(number).map(|at| unsafe { &*at.cast() }))
}

/// `None` if nobody has it, or it is never at rest.
fn snapshot(activity: &Activity) -> Option<ThreadSnapshot> {
    // Most records were never used.
    if activity.record.tid.load(Relaxed) == 0 {
        return None;
    }
    for _ in 0..10_000 {
        let word = activity.record.word.load(Acquire);
        if word & BUSY == 0 {
            let thread = copy(activity, word);
            fence(Acquire);
            if activity.record.word.load(Relaxed) == word {
                return (thread.key.tid != 0).then_some(thread);
            }
        }
        hint::spin_loop();
    }
    None
}

fn copy(activity: &Activity, word: u64) -> ThreadSnapshot {
    let ThreadRecord { tgid, voluntary, involuntary, waited_ns, migrations, flags, .. } =
        &activity.record;
    let running = word & ON != 0;
    // What runs: its time when it was switched in.
    let since = activity.in_ns.load(Relaxed);
    let cpu_ns = if running { word.wrapping_add(since) & TIME } else { word };
    let histogram = |number: usize| DurationHistogram::from(counts(&activity.histograms[number]));
    let waited_ns = waited_ns.load(Relaxed);
    ThreadSnapshot {
        key: name_of(&activity.record),
        tgid: tgid.load(Relaxed),
        parent: activity.parent.load(Relaxed),
        comm: text(activity.comm.each_ref().map(|half| half.load(Relaxed))),
        ended: flags.load(Relaxed) & ENDED != 0,
        running,
        cpu_ns,
        waited_ns: (waited_ns != 0).then_some(waited_ns),
        voluntary: voluntary.load(Relaxed),
        involuntary: involuntary.load(Relaxed),
        yields: activity.yields.load(Relaxed),
        migrations: migrations.load(Relaxed),
        bursts: histogram(histogram::BURST),
        waits: histogram(histogram::WAIT),
        off: std::array::from_fn(|cause| histogram(histogram::OFF + cause)),
    }
}

/// The name that the programs give it in the map of pairs.
pub(crate) fn name_of(record: &ThreadRecord) -> ThreadKey {
    let born = (record.start_ns.load(Relaxed) >> 10) as u32;
    ThreadKey { tid: record.tid.load(Relaxed), born }
}

fn counts<const N: usize>(of: &[AtomicU32; N]) -> [u32; N] {
    of.each_ref().map(|count| count.load(Relaxed))
}

fn text(halves: [u64; 2]) -> String {
    let bytes: Vec<u8> = halves.into_iter().flat_map(u64::to_ne_bytes).collect();
    let bytes = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    one_line(&String::from_utf8_lossy(bytes))
}

/// A name may be any bytes (PR_SET_NAME of prctl(2)), also ends of lines, which would make two lines
/// of one wherever it is printed: these become blanks, other control characters nothing.
fn one_line(name: &str) -> String {
    let visible = |c: char| if c.is_whitespace() { ' ' } else { c };
    name.chars().map(visible).filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let name = ThreadKey { tid: 42, born: 7 };
        assert_eq!((ThreadKey::from_bits(7 << 32 | 42), name.bits()), (name, 7 << 32 | 42));
        let half = |text: &[u8; 8]| u64::from_ne_bytes(*text);
        assert_eq!(text([half(b"postgres"), half(b":work\0xy")]), "postgres:work");
        assert_eq!(text([0, 0]), "");
        assert_eq!(text([u64::MAX, 0]).chars().count(), 8);
        assert_eq!(text([half(b"a\nb\tc\x1bd\r"), half(b"e\0\0\0\0\0\0\0")]), "a b cd e");
    }
}
