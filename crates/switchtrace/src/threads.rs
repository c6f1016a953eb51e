//! Snapshots of all threads with their activity. A record is copied between two reads of its first
//! word, which a switch changes: if both are the same and not busy, no switch came between.

use crate::cause::{SwitchCause, histogram};
use crate::histogram::{DurationHistogram, WaitHistogram};
use crate::layout::{LOOK_SHIFT, ThreadActivity};
use std::hint;
use std::sync::atomic::{AtomicU32, Ordering::*, fence};
use threadclock::table::ThreadTable;
use threadclock::table::layout::{BUSY, ENDED, ON, TIME, ThreadRecord};

/// A thread's identity: no two threads have the same, even if they had the same id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadKey {
    /// The thread's id in the initial pid namespace. 0: an idle thread.
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

/// A thread's times and counts up to now. Counts are the kernel's, over the thread's life, as of its
/// last switch; the difference of two snapshots is what happened between them.
#[derive(Clone, Debug)]
pub struct ThreadSnapshot {
    /// The thread.
    pub key: ThreadKey,
    /// The id of its process.
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
    /// Number of switches because it slept.
    pub voluntary: u64,
    /// Number of switches while it could have run on, yields included.
    pub involuntary: u64,
    /// Number of involuntary switches by sched_yield(2), since it was first seen.
    pub yields: u64,
    /// Number of moves to another CPU.
    pub migrations: u32,
    /// Time on a CPU between two switches, since it was first seen.
    pub bursts: DurationHistogram,
    /// Time in the run queue before each burst, since it was first seen, in eight parts an octave.
    pub waits: WaitHistogram,
    /// Time from leaving a CPU until it ran again, by cause, since it was first seen. After a sleep
    /// the wait in the run queue is part of it.
    pub off: [DurationHistogram; SwitchCause::ALL.len()],
}

/// Counts of a thread over its life, as of the last look or its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadCounts {
    /// The thread, by the id that it was born with: it is another one after an execve(2) by a thread that
    /// is not its process's first.
    pub key: ThreadKey,
    /// When it was created, by `CLOCK_MONOTONIC` in nanoseconds.
    pub start_ns: u64,
    /// The id of its process.
    pub tgid: u32,
    /// Whether it has ended.
    pub ended: bool,
    /// CPU time in nanoseconds, as of the kernel's last update: on a CPU up to a tick ago.
    pub cpu_ns: u64,
    /// Number of switches because it slept.
    pub voluntary: u64,
    /// Number of switches while it could have run on, yields included.
    pub involuntary: u64,
}

/// Limits how often a record is read again that a switch changes meanwhile.
const MAX_READS: u32 = 10_000;

/// Returns all threads of a table with activity.
pub(crate) fn read_threads(table: &ThreadTable) -> Vec<ThreadSnapshot> {
    activities(table).filter_map(snapshot).collect()
}

/// Returns the records of a table with activity, including those never used; none without.
pub(crate) fn activities(table: &ThreadTable) -> impl Iterator<Item = &ThreadActivity> {
    let has_activity = table.header().record_bytes as usize == size_of::<ThreadActivity>();
    let records = if has_activity { table.header().records as usize } else { 0 };
    let elements = (0..records).filter_map(|number| table.element(number));
    // SAFETY: an element has that many bytes, and its start is aligned; all fields are atomic.
    elements.map(|element| unsafe { &*element.cast() })
}

/// Copies the counts of record number `number` of a counter's table, and the number of the last look
/// that has seen its thread; 0: none has. `None` if it has no thread, or is being changed each time.
pub(crate) fn read_counts_of_thread(
    table: &ThreadTable,
    number: usize,
) -> Option<(ThreadCounts, u32)> {
    let element = table.element(number)?;
    // SAFETY: an element begins with a record, and its start is aligned; all fields are atomic.
    let record: &ThreadRecord = unsafe { &*element.cast() };
    // Most records were never used.
    if record.tid.load(Relaxed) == 0 {
        return None;
    }
    for _ in 0..MAX_READS {
        let word = record.word.load(Acquire);
        if word & BUSY == 0 {
            // What a counter's record has in place of these: see `crate::layout`.
            let (start_ns, tid) = (record.waited_ns.load(Relaxed), record.migrations.load(Relaxed));
            let flags = record.flags.load(Relaxed);
            let counts = ThreadCounts {
                key: ThreadKey { tid, born: born(start_ns) },
                start_ns,
                tgid: record.tgid.load(Relaxed),
                ended: flags & ENDED != 0,
                cpu_ns: record.kernel_ns.load(Relaxed),
                voluntary: record.voluntary.load(Relaxed),
                involuntary: record.involuntary.load(Relaxed),
            };
            fence(Acquire);
            if record.word.load(Relaxed) == word {
                return Some((counts, flags >> LOOK_SHIFT));
            }
        }
        hint::spin_loop();
    }
    None
}

/// Copies a record. `None` if it has no thread, or switches change it each time.
fn snapshot(activity: &ThreadActivity) -> Option<ThreadSnapshot> {
    // Most records were never used.
    if activity.record.tid.load(Relaxed) == 0 {
        return None;
    }
    for _ in 0..MAX_READS {
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

fn copy(activity: &ThreadActivity, word: u64) -> ThreadSnapshot {
    let ThreadRecord { tgid, voluntary, involuntary, waited_ns, migrations, flags, .. } =
        &activity.record;
    let running = word & ON != 0;
    // On a CPU the word is the CPU time less the clock: the clock of the switch in gives the CPU
    // time as of then.
    let switched_in_ns = activity.in_ns.load(Relaxed);
    let cpu_ns = if running { word.wrapping_add(switched_in_ns) & TIME } else { word };
    let waited_ns = waited_ns.load(Relaxed);
    ThreadSnapshot {
        key: key_of_record(&activity.record),
        tgid: tgid.load(Relaxed),
        parent: activity.parent.load(Relaxed),
        comm: comm_text([activity.comm[0].load(Relaxed), activity.comm[1].load(Relaxed)]),
        ended: flags.load(Relaxed) & ENDED != 0,
        running,
        cpu_ns,
        waited_ns: (waited_ns != 0).then_some(waited_ns),
        voluntary: voluntary.load(Relaxed),
        involuntary: involuntary.load(Relaxed),
        yields: activity.yields.load(Relaxed),
        migrations: migrations.load(Relaxed),
        bursts: read_counts(&activity.histograms[histogram::BURST]),
        waits: read_counts(&activity.waits),
        off: std::array::from_fn(|cause| read_counts(&activity.histograms[histogram::OFF + cause])),
    }
}

fn read_counts<const N: usize>(counts: &[AtomicU32; N]) -> DurationHistogram<N> {
    DurationHistogram::from(std::array::from_fn(|bucket| counts[bucket].load(Relaxed)))
}

/// Returns the key that the programs give this thread in the map of pairs.
pub(crate) fn key_of_record(record: &ThreadRecord) -> ThreadKey {
    let born = born(record.start_ns.load(Relaxed));
    ThreadKey { tid: record.tid.load(Relaxed), born }
}

/// Returns a thread's start as its key has it.
fn born(start_ns: u64) -> u32 {
    (start_ns >> 10) as u32
}

/// Decodes the 16 bytes of a task's `comm`.
fn comm_text(halves: [u64; 2]) -> String {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&halves[0].to_ne_bytes());
    bytes[8..].copy_from_slice(&halves[1].to_ne_bytes());
    let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    one_line(&String::from_utf8_lossy(name))
}

/// Makes white space blanks and drops control characters: a name may be any bytes (PR_SET_NAME of
/// prctl(2)), also ends of lines, which would make two lines of one wherever it is printed.
fn one_line(name: &str) -> String {
    let mut line = String::new();
    for character in name.chars() {
        if character.is_whitespace() {
            line.push(' ');
        } else if !character.is_control() {
            line.push(character);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let name = ThreadKey { tid: 42, born: 7 };
        assert_eq!((ThreadKey::from_bits(7 << 32 | 42), name.bits()), (name, 7 << 32 | 42));
        let half = |text: &[u8; 8]| u64::from_ne_bytes(*text);
        assert_eq!(comm_text([half(b"postgres"), half(b":work\0xy")]), "postgres:work");
        assert_eq!(comm_text([0, 0]), "");
        assert_eq!(comm_text([u64::MAX, 0]).chars().count(), 8);
        assert_eq!(comm_text([half(b"a\nb\tc\x1bd\r"), half(b"e\0\0\0\0\0\0\0")]), "a b cd e");
    }
}
