//! Tests of the reader on a table that the tests write, as the programs do.

use super::layout::{BUSY, ENDED, MAGIC, ON, TIME, TableHeader, ThreadRecord, VERSION};
use super::mapping::ThreadTable;
use super::{ThreadTimeError, ThreadTimeReader};
use crate::sys;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};
use std::vec::Vec;

const ELEMENT: usize = 64;
/// The most thread ids that Linux can have: the caller's is among them.
const TIDS: u32 = 1 << 22;
const RECORDS_AT: u32 = 1 + TIDS * 4 / ELEMENT as u32;
const RECORDS: u32 = 4;
const BYTES: usize = (RECORDS_AT + RECORDS) as usize * ELEMENT;

/// A file with a table, mapped to write to it. It stays until the end of the tests.
struct TableFile(*mut u8, i32);

// SAFETY: what is written after the start is atomic.
unsafe impl Sync for TableFile {}

impl TableFile {
    fn new() -> Self {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a name that ends in NUL; a new file, of so many bytes, in a new mapping.
        let (page, file) = unsafe {
            let file = libc::memfd_create(c"threads".as_ptr(), 0);
            assert_eq!(libc::ftruncate(file, BYTES as i64), 0);
            (libc::mmap(ptr::null_mut(), BYTES, protection, libc::MAP_SHARED, file, 0), file)
        };
        assert_ne!(page, libc::MAP_FAILED);
        let page = Self(page.cast(), file);
        page.header(|_| {});
        page
    }

    fn header(&self, damage: impl FnOnce(&mut TableHeader)) {
        let mut header = TableHeader {
            magic: MAGIC,
            version: VERSION,
            record_bytes: ELEMENT as u32,
            tids: TIDS,
            index_at: 1,
            records_at: RECORDS_AT,
            records: RECORDS,
            threads_lost: AtomicU64::new(0),
            pairs_lost: AtomicU64::new(0),
            events_lost: AtomicU64::new(0),
            switches_missed: AtomicU64::new(0),
        };
        damage(&mut header);
        // SAFETY: the page is that long and aligned.
        unsafe { self.0.cast::<TableHeader>().write(header) };
    }

    fn index(&self, tid: u32) -> &AtomicU32 {
        // SAFETY: in the page.
        unsafe { &*self.0.add(ELEMENT + tid as usize * 4).cast() }
    }

    fn record(&self, number: u32) -> &ThreadRecord {
        // SAFETY: in the page.
        unsafe { &*self.0.add((RECORDS_AT + number) as usize * ELEMENT).cast() }
    }

    /// Gives a thread a record.
    fn thread(&self, number: u32, tid: u32, word: u64) -> &ThreadRecord {
        let record = self.record(number);
        record.tid.store(tid, Relaxed);
        record.word.store(word, Relaxed);
        self.index(tid).store(RECORDS_AT + number, Release);
        record
    }

    fn table(&self) -> Result<ThreadTable, ThreadTimeError> {
        ThreadTable::from_file(self.1, BYTES, ELEMENT)
    }

    /// A reader, whose thread is traced as far as it can see.
    fn reader(&self) -> ThreadTimeReader {
        let tid = sys::own_tid();
        self.thread(RECORDS - 1, tid, 0).voluntary.store(1 << 60, Relaxed);
        ThreadTimeReader::new(self.table().unwrap()).unwrap()
    }
}

fn now_ns() -> u64 {
    sys::clock_ns(libc::CLOCK_MONOTONIC).unwrap()
}

#[test]
fn on_off_ended_and_unknown() {
    let page = TableFile::new();
    let reader = page.reader();
    page.thread(0, 7, 123);
    let before = now_ns();
    page.thread(1, 8, ON | (1_000u64.wrapping_sub(before) & TIME));
    page.thread(2, 9, 55).flags.store(ENDED, Relaxed);
    assert_eq!(reader.cpu_ns(7), Ok(123));
    let read = reader.cpu_ns(8).unwrap();
    // The stamp's clock is within some 100 ns of the kernel's.
    assert!((0..=now_ns() - before + 2_000).contains(&read.saturating_sub(500)), "{read}");
    assert!(reader.read(8).unwrap().running);
    let ended = reader.read(9).unwrap();
    assert!(ended.ended && !ended.running && ended.cpu_ns == 55);
    for tid in [0, 4_000_000, TIDS, u32::MAX] {
        assert_eq!(reader.cpu_ns(tid), Err(ThreadTimeError::NoSuchThread(tid)));
    }
    // The record was given to another thread.
    page.record(0).tid.store(11, Relaxed);
    assert_eq!(reader.cpu_ns(7), Err(ThreadTimeError::NoSuchThread(7)));
}

/// A switch between the two reads of the word is seen by the second.
#[test]
fn a_switch_during_a_reading_is_seen() {
    let page = TableFile::new();
    let reader = page.reader();
    let on = ON | (1_000u64.wrapping_sub(now_ns()) & TIME);
    let record = page.thread(0, 7, on);
    let read = reader.cpu_ns_with(7, || {
        record.word.store(2_000, Release);
        Some(now_ns() + 5_000_000)
    });
    assert_eq!(read, Ok(2_000));
    record.word.store(on, Release);
    let read = reader.cpu_ns_with(7, || {
        record.word.store(on | BUSY, Release);
        record.tid.store(8, Release);
        record.word.store(77, Release);
        Some(now_ns())
    });
    assert_eq!(read, Err(ThreadTimeError::NoSuchThread(7)));
}

/// A record that stays busy, as none of the kernel's does, is given up.
#[test]
fn a_damaged_table_neither_hangs_nor_leads_out_of_the_page() {
    let page = TableFile::new();
    let reader = page.reader();
    page.thread(0, 7, BUSY | 5);
    assert_eq!(reader.cpu_ns(7), Err(ThreadTimeError::NotTraced));
    for element in [1, RECORDS_AT - 1, RECORDS_AT + RECORDS, u32::MAX] {
        page.index(7).store(element, Relaxed);
        assert_eq!(reader.cpu_ns(7), Err(ThreadTimeError::NoSuchThread(7)), "{element}");
    }
}

#[test]
fn a_header_that_does_not_fit_is_refused() {
    let page = TableFile::new();
    assert!(page.table().is_ok());
    let damages: [fn(&mut TableHeader); 9] = [
        |header| header.magic = 0,
        |header| header.version = VERSION + 1,
        |header| header.record_bytes = 128,
        |header| header.tids += 1,
        |header| header.tids = u32::MAX,
        |header| header.index_at = 0,
        |header| header.index_at = u32::MAX,
        |header| header.records_at = u32::MAX,
        |header| header.records += 1,
    ];
    for (number, damage) in damages.into_iter().enumerate() {
        page.header(damage);
        assert!(matches!(page.table(), Err(ThreadTimeError::NoTable)), "damage {number}");
    }
    page.header(|_| {});
    assert!(ThreadTable::from_file(page.1, 32, ELEMENT).is_err());
    assert!(ThreadTable::from_file(page.1, BYTES - 1, ELEMENT).is_err());
    assert!(matches!(
        ThreadTable::map(page.1),
        Err(ThreadTimeError::Os { errno: libc::EINVAL, .. })
    ));
}

/// The kernel counts a switch of the reader that the table has not: nobody writes there any longer.
#[test]
fn a_table_that_nobody_writes_is_noticed() {
    let page = TableFile::new();
    let reader = page.reader();
    page.thread(0, 7, 123);
    assert_eq!(reader.cpu_ns(7), Ok(123));
    page.record(RECORDS - 1).voluntary.store(0, Relaxed);
    sys::sleep_ns(3_000_000);
    assert_eq!(reader.cpu_ns(7), Err(ThreadTimeError::NotTraced));
    assert!(matches!(
        ThreadTimeReader::new(page.table().unwrap()),
        Err(ThreadTimeError::NotTraced)
    ));
}

/// A writer that switches a thread on and off as fast as it can, and gives its record to another
/// and back: what is read is always this thread's, and between its last time and its next.
#[test]
fn readings_are_whole_while_a_writer_switches() {
    let page = TableFile::new();
    let stop = AtomicBool::new(false);
    // The writer publishes the total at its last end, and an upper bound of the running one.
    let (least, most) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
    page.thread(0, 7, 0);
    let reader = page.reader();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let record = page.record(0);
            let mut total = 0u64;
            while !stop.load(Relaxed) {
                record.word.store(ON | (total.wrapping_sub(now_ns()) & TIME), Release);
                let on = record.word.load(Relaxed);
                for _ in 0..20 {
                    core::hint::spin_loop();
                }
                record.word.store(on | BUSY, SeqCst);
                total = on.wrapping_add(now_ns()) & TIME;
                // Another thread's, for a moment.
                record.tid.store(8, Release);
                record.word.store(1 << 60, Release);
                record.word.store(BUSY, Release);
                record.tid.store(7, Release);
                least.store(total, SeqCst);
                record.word.store(total, Release);
            }
            most.store(total, SeqCst);
        });
        let mut readings = Vec::new();
        for _ in 0..200_000 {
            let low = least.load(SeqCst);
            match reader.cpu_ns(7) {
                Ok(read) => readings.push((low, read)),
                Err(error) => assert_eq!(error, ThreadTimeError::NoSuchThread(7)),
            }
        }
        stop.store(true, Relaxed);
        assert!(!readings.is_empty());
        for (low, read) in readings {
            // The two clocks differ by less than 2 us.
            assert!(read + 2_000 >= low && read < 1 << 50, "{read} after {low}");
        }
    });
}
