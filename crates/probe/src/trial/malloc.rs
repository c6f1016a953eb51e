//! Blocks of one size, all allocated, then all freed. Each call is timed by the thread's CPU time.

use std::collections::BTreeMap;
use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rundata::trial::malloc::{
    AllocatorCall, BRK_CALLS, CAUSES, EMPTY_TICKS, MINOR_FAULTS, MMAP_CALLS,
};
use threadclock::{CpuTime, ThreadClock};

use super::harness::{self, TrialError, TrialOutcome, touch, touched_room};
use crate::sys::{self, HeapBlock, UsageScope};

/// A call is slow if it takes as long as one that enters the kernel ...
const SLOW_NS: u64 = 600;
/// ... or this multiple of the shortest so far, but not less than [`NEVER_SLOW_NS`].
const SLOW_FACTOR: u64 = 8;
/// Shorter than any system call or page fault.
const NEVER_SLOW_NS: u64 = 120;

/// Counts that show what a slow call has done, without a cost to other calls. Reading them
/// allocates nothing, which would change the heap that is measured.
#[derive(Clone, Copy)]
struct HeapMarks {
    minor_faults: u64,
    switches: u64,
    heap_end: usize,
    mapped_pages: Option<u64>,
}

impl HeapMarks {
    fn read() -> Self {
        let usage = sys::usage(UsageScope::Thread);
        Self {
            minor_faults: usage.minor_faults(),
            switches: usage.switches(),
            heap_end: sys::heap_end(),
            mapped_pages: mapped_pages(),
        }
    }

    /// Returns which of [`CAUSES`] show between these and later marks; the last cause is that none
    /// shows.
    fn causes(&self, later: &Self) -> [bool; 5] {
        let heap_bytes = later.heap_end.wrapping_sub(self.heap_end) as i64;
        let heap_pages = heap_bytes / rustix::param::page_size() as i64;
        let fault = later.minor_faults > self.minor_faults;
        let brk = later.heap_end != self.heap_end;
        let mmap = match (self.mapped_pages, later.mapped_pages) {
            (Some(before), Some(after)) => after as i64 - before as i64 != heap_pages,
            _ => false,
        };
        let switched = later.switches > self.switches;
        [fault, brk, mmap, switched, !(fault || brk || mmap || switched)]
    }
}

/// Reads the pages of the process's address space (proc_pid_statm(5)).
fn mapped_pages() -> Option<u64> {
    let mut text = [0; 64];
    let length = File::open("/proc/self/statm").ok()?.read_at(&mut text, 0).ok()?;
    let mut pages = 0;
    for digit in text[..length].iter().take_while(|byte| byte.is_ascii_digit()) {
        pages = pages * 10 + u64::from(digit - b'0');
    }
    Some(pages)
}

/// Times of calls of one kind, and the causes of those that were slow.
struct SlowCallWatch {
    call: AllocatorCall,
    least_ns: u64,
    marks: HeapMarks,
    ticks: Vec<i64>,
    slow: Vec<(i64, [bool; 5])>,
}

impl SlowCallWatch {
    /// Allocates room for the times of all calls.
    fn new(call: AllocatorCall, calls: u32) -> Self {
        Self {
            call,
            least_ns: u64::MAX,
            marks: HeapMarks::read(),
            ticks: touched_room(calls, 0),
            slow: touched_room(calls, (0, [false; 5])),
        }
    }

    /// Writes to all room, so that pages which a fork has shared fault now.
    fn touch(&mut self) {
        touch(&mut self.ticks, 0);
        touch(&mut self.slow, (0, [false; 5]));
    }

    /// Stores the time of a call, outside of the timed part. The kernel is asked after slow calls
    /// only: asking after every call would change what the next one finds in the caches.
    #[inline(always)]
    fn add(&mut self, CpuTime { ns, cycles }: CpuTime) {
        self.least_ns = self.least_ns.min(ns);
        let limit_ns = self.least_ns.saturating_mul(SLOW_FACTOR).clamp(NEVER_SLOW_NS, SLOW_NS);
        let is_slow = ns >= limit_ns;
        let ticks = cycles as i64;
        self.ticks.push(ticks);
        if is_slow {
            let marks = HeapMarks::read();
            self.slow.push((ticks, self.marks.causes(&marks)));
            // Reading the marks may itself fault: the next call starts from new ones.
            self.marks = HeapMarks::read();
        }
    }

    /// Adds the times of all calls, and the causes of slow ones, to the outcome.
    fn add_to(self, outcome: &mut TrialOutcome) {
        for (ticks, causes) in self.slow {
            outcome.count(self.call.slow, 1);
            outcome.count(&self.call.slow_by("ticks"), ticks);
            for (cause, has_shown) in CAUSES.iter().zip(causes) {
                if has_shown {
                    outcome.count(&self.call.slow_by(cause.name), 1);
                }
            }
        }
        outcome.tally(self.call.tally, self.ticks);
    }
}

/// Allocates and frees `trials` blocks of `bytes` bytes; `preload` is the allocator's library.
pub(super) fn run(
    bytes: u64,
    preload: Option<&str>,
    trials: u32,
) -> Result<TrialOutcome, TrialError> {
    if let Some(library) = preload {
        check_preload(library)?;
    }
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    let clock = harness::synchronised_clock();
    // All memory of this trial is allocated and touched before anything is counted: its faults are
    // not the allocator's, and the child inherits the heap that is measured.
    let mut mallocs = SlowCallWatch::new(AllocatorCall::MALLOC, trials);
    let mut frees = SlowCallWatch::new(AllocatorCall::FREE, trials);
    let mut empties = touched_room(trials, 0);
    let mut blocks: Vec<Option<HeapBlock>> = Vec::with_capacity(trials as usize);
    blocks.resize_with(trials as usize, || None);
    for _ in 0..trials {
        let (empty, ()) = timed(&clock, || ());
        empties.push(empty.cycles as i64);
    }

    // System calls are counted beforehand in a child that does the same from the same state of the
    // heap: counting them here would slow them down.
    let counted = sys::count_syscalls(|| {
        blocks.iter_mut().for_each(|block| *block = HeapBlock::new(bytes));
        blocks.iter_mut().filter_map(Option::take).for_each(HeapBlock::free);
    });
    // After the fork every page faults when it is next written.
    blocks.iter_mut().for_each(|block| *black_box(block) = None);
    mallocs.touch();
    frees.touch();
    if let Some(block) = HeapBlock::new(1) {
        block.free();
    }

    let usage_before = sys::usage(UsageScope::Thread);
    mallocs.marks = HeapMarks::read();
    for place in &mut blocks {
        let (time, block) = timed(&clock, || HeapBlock::new(bytes));
        mallocs.add(time);
        *place = block;
    }
    if blocks.iter().any(Option::is_none) {
        return Err(TrialError(format!(
            "malloc gave no {bytes} bytes: {trials} such blocks do not fit; ask for smaller ones \
             or fewer --trials"
        )));
    }
    frees.marks = HeapMarks::read();
    for block in blocks.iter_mut().filter_map(Option::take) {
        let (time, ()) = timed(&clock, || block.free());
        frees.add(time);
    }
    let faults = sys::usage(UsageScope::Thread).minor_faults() - usage_before.minor_faults();

    let mut outcome = TrialOutcome::default();
    outcome.tally(EMPTY_TICKS, empties);
    mallocs.add_to(&mut outcome);
    frees.add_to(&mut outcome);
    outcome.count(MINOR_FAULTS, faults as i64);
    if let Ok(calls) = counted {
        let map_calls = [libc::SYS_mmap, libc::SYS_munmap, libc::SYS_mremap, libc::SYS_madvise];
        outcome.count(BRK_CALLS, sum_of_calls(&calls, &[libc::SYS_brk]));
        outcome.count(MMAP_CALLS, sum_of_calls(&calls, &map_calls));
    }
    Ok(outcome)
}

/// Sums the counts of some system calls.
fn sum_of_calls(counts: &BTreeMap<i64, u64>, numbers: &[i64]) -> i64 {
    numbers.iter().filter_map(|number| counts.get(number)).sum::<u64>() as i64
}

/// Returns the thread's CPU time for `act`, and its result. Measured code.
#[inline(always)]
fn timed<T>(clock: &ThreadClock, act: impl FnOnce() -> T) -> (CpuTime, T) {
    let start = clock.now_ordered();
    let result = act();
    let end = clock.now_ordered();
    (end - start, result)
}

/// Checks that a library is among the mapped files, by the file that its path leads to, or by its
/// name: the dynamic linker goes on without a library that it cannot find.
fn check_preload(library: &str) -> Result<(), TrialError> {
    let maps = std::fs::read_to_string("/proc/self/maps")
        .map_err(|error| TrialError(format!("cannot read /proc/self/maps: {error}")))?;
    let real = std::fs::canonicalize(library).ok();
    for line in maps.lines() {
        let Some(start) = line.find('/') else { continue };
        let mapped = Path::new(&line[start..]);
        let is_library = match &real {
            Some(real) => mapped == real,
            None => has_name_of(mapped, library),
        };
        if is_library {
            return Ok(());
        }
    }
    Err(TrialError(format!(
        "{library} was not loaded: the dynamic linker does not find it (name its path, or install \
         it; LD_DEBUG=libs shows where it looks)"
    )))
}

/// Returns whether a file may be what the linker found for a name without a path: the file may have
/// a longer version, as libx.so.2.4 for libx.so.2.
fn has_name_of(file: &Path, library: &str) -> bool {
    file.file_name().is_some_and(|name| name.to_string_lossy().starts_with(library))
}
