//! Blocks of one size, all allocated, then all freed, each call timed by the thread's own CPU time.

use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::path::Path;

use model::trial::malloc::{BRK_CALLS, CAUSES, Call, EMPTY_TICKS, MINOR_FAULTS, MMAP_CALLS};
use threadclock::{CpuTime, ThreadClock};

use super::harness::{self, TrialError, TrialOutcome, room, touch};
use crate::sys::{self, HeapBlock, UsageScope};

/// A call is slow that takes as long as one that went into the kernel ...
const SLOW_NS: u64 = 600;
/// ... or this many times the least so far, but not less than [`NEVER_SLOW_NS`].
const SLOW_FACTOR: u64 = 8;
/// Cheaper than any system call or page fault.
const NEVER_SLOW_NS: u64 = 120;

/// What a slow call may have done, as far as it can be seen from outside at no cost to the others.
/// Nothing here allocates: it would change the very heap that is looked at.
#[derive(Clone, Copy)]
struct HeapMarks {
    minor_faults: u64,
    switches: u64,
    heap_end: usize,
    mapped_pages: Option<u64>,
}

impl HeapMarks {
    fn now() -> Self {
        let usage = sys::usage(UsageScope::Thread);
        Self {
            minor_faults: usage.minor_faults(),
            switches: usage.switches(),
            heap_end: sys::heap_end(),
            mapped_pages: mapped_pages(),
        }
    }

    /// Which of [`CAUSES`] show between this and a later mark, the last being that none does.
    fn causes(&self, later: &Self) -> [bool; 5] {
        let grown = later.heap_end.wrapping_sub(self.heap_end) as i64;
        let grown = grown / rustix::param::page_size() as i64;
        let mapped = self.mapped_pages.zip(later.mapped_pages);
        let mapped = mapped.map(|(before, after)| after as i64 - before as i64 - grown);
        let fault = later.minor_faults > self.minor_faults;
        let brk = later.heap_end != self.heap_end;
        let mmap = mapped.is_some_and(|pages| pages != 0);
        let switched = later.switches > self.switches;
        [fault, brk, mmap, switched, !(fault || brk || mmap || switched)]
    }
}

/// Pages of the process's address space (proc_pid_statm(5)).
fn mapped_pages() -> Option<u64> {
    let mut text = [0; 64];
    let length = File::open("/proc/self/statm").ok()?.read_at(&mut text, 0).ok()?;
    let digits = text[..length].iter().take_while(|byte| byte.is_ascii_digit());
    Some(digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}

/// Times calls of one kind and asks after those that are slow.
struct SlowCallWatch {
    call: Call,
    least_ns: u64,
    marks: HeapMarks,
    ticks: Vec<i64>,
    slow: Vec<(i64, [bool; 5])>,
}

impl SlowCallWatch {
    /// Room for all before the first.
    fn new(call: Call, calls: u32) -> Self {
        Self {
            call,
            least_ns: u64::MAX,
            marks: HeapMarks::now(),
            ticks: room(calls, 0),
            slow: room(calls, (0, [false; 5])),
        }
    }

    /// Writes to all that will be written to: pages that a fork has shared fault once.
    fn touch(&mut self) {
        touch(&mut self.ticks, 0);
        touch(&mut self.slow, (0, [false; 5]));
    }

    /// Takes up one call. Outside of the timed part; it asks the kernel only where the call was
    /// slow, as asking after every call would change what the next one finds in the caches.
    #[inline(always)]
    fn take(&mut self, CpuTime { ns, cycles }: CpuTime) {
        self.least_ns = self.least_ns.min(ns);
        let limit_ns = self.least_ns.saturating_mul(SLOW_FACTOR).clamp(NEVER_SLOW_NS, SLOW_NS);
        let is_slow = ns >= limit_ns;
        let ticks = cycles as i64;
        self.ticks.push(ticks);
        if is_slow {
            let now = HeapMarks::now();
            self.slow.push((ticks, self.marks.causes(&now)));
            // Reading the marks may itself fault: what follows starts from here.
            self.marks = HeapMarks::now();
        }
    }

    fn add_to(self, outcome: &mut TrialOutcome) {
        for (ticks, seen) in self.slow {
            outcome.count(self.call.slow, 1);
            outcome.count(&self.call.slow_by("ticks"), ticks);
            for (cause, _) in CAUSES.iter().zip(seen).filter(|(_, seen)| *seen) {
                outcome.count(&self.call.slow_by(cause.name), 1);
            }
        }
        outcome.tally(self.call.tally, self.ticks);
    }
}

pub(super) fn run(
    bytes: u64,
    preload: Option<&str>,
    trials: u32,
) -> Result<TrialOutcome, TrialError> {
    if let Some(library) = preload {
        check_preload(library)?;
    }
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    let clock = harness::clock();
    // All memory of our own is made and touched before anything is counted: its faults are not the
    // allocator's, and the heap that the child finds is the one that is measured.
    let mut mallocs = SlowCallWatch::new(Call::MALLOC, trials);
    let mut frees = SlowCallWatch::new(Call::FREE, trials);
    let mut empties = room(trials, 0);
    let mut blocks: Vec<Option<HeapBlock>> = Vec::with_capacity(trials as usize);
    blocks.resize_with(trials as usize, || None);
    (0..trials).for_each(|_| empties.push(timed(&clock, || ()).0.cycles as i64));

    // The calls of the kernel are counted in a child beforehand, which does the same from the same
    // state of the heap; counting them here would slow them.
    let counted = sys::count_syscalls(|| {
        blocks.iter_mut().for_each(|block| *block = HeapBlock::new(bytes));
        blocks.iter_mut().filter_map(Option::take).for_each(HeapBlock::free);
    });
    // The fork has made every page one that faults when it is next written.
    blocks.iter_mut().for_each(|block| *black_box(block) = None);
    mallocs.touch();
    frees.touch();
    if let Some(block) = HeapBlock::new(1) {
        block.free();
    }

    let usage_before = sys::usage(UsageScope::Thread);
    mallocs.marks = HeapMarks::now();
    for place in &mut blocks {
        let (time, block) = timed(&clock, || HeapBlock::new(bytes));
        mallocs.take(time);
        *place = block;
    }
    if blocks.iter().any(Option::is_none) {
        return Err(TrialError(format!(
            "malloc gave no {bytes} bytes: {trials} such blocks do not fit; ask for smaller ones \
             or fewer --trials"
        )));
    }
    frees.marks = HeapMarks::now();
    for block in blocks.iter_mut().filter_map(Option::take) {
        let (time, ()) = timed(&clock, || block.free());
        frees.take(time);
    }
    let faults = sys::usage(UsageScope::Thread).minor_faults() - usage_before.minor_faults();

    let mut outcome = TrialOutcome::default();
    outcome.tally(EMPTY_TICKS, empties);
    mallocs.add_to(&mut outcome);
    frees.add_to(&mut outcome);
    outcome.count(MINOR_FAULTS, faults as i64);
    if let Ok(calls) = counted {
        let sum = |numbers: &[i64]| {
            numbers.iter().filter_map(|number| calls.get(number)).sum::<u64>() as i64
        };
        let maps = [libc::SYS_mmap, libc::SYS_munmap, libc::SYS_mremap, libc::SYS_madvise];
        outcome.count(BRK_CALLS, sum(&[libc::SYS_brk]));
        outcome.count(MMAP_CALLS, sum(&maps));
    }
    Ok(outcome)
}

/// The thread's CPU time for `act`. Measured code.
#[inline(always)]
fn timed<T>(clock: &ThreadClock, act: impl FnOnce() -> T) -> (CpuTime, T) {
    let start = clock.now_ordered();
    let result = act();
    let end = clock.now_ordered();
    (end - start, result)
}

/// The dynamic linker passes over a library that it cannot find, with a message on standard error.
/// It is looked for among the files that are mapped: by the file that a path leads to, or by name.
fn check_preload(library: &str) -> Result<(), TrialError> {
    let other = |why| Err(TrialError(why));
    let maps = match std::fs::read_to_string("/proc/self/maps") {
        Ok(maps) => maps,
        Err(error) => return other(format!("cannot read /proc/self/maps: {error}")),
    };
    let real = std::fs::canonicalize(library).ok();
    let is_it = |file: &Path| match &real {
        Some(real) => file == real,
        // A name without a path may lead to a file with a longer version: libx.so.2 to libx.so.2.4.
        None => file.file_name().is_some_and(|name| name.to_string_lossy().starts_with(library)),
    };
    let mut mapped = maps.lines().filter_map(|line| line.find('/').map(|start| &line[start..]));
    if mapped.any(|file| is_it(Path::new(file))) {
        return Ok(());
    }
    other(format!(
        "{library} was not loaded: the dynamic linker does not find it (name its path, or install \
         it; LD_DEBUG=libs shows where it looks)"
    ))
}
