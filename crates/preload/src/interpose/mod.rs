//! Times calls where a program makes them. The dynamic loader finds our malloc before the C library's:
//!
//! ```text
//! program -> our malloc: find the thread, read the clock
//!                next malloc
//!            read the clock, count in the thread's slot -> program
//! ```
//!
//! Between the two readings of the clock is the call and nothing else; all bookkeeping lies outside.
//! A part of the clock is still within: intervals with nothing in them, and calls of known duration
//! are timed now and then, so that the program can subtract it.

// Takes the place of C functions, in memory that is shared with another process.
#![allow(unsafe_code)]
#![deny(unsafe_op_in_unsafe_fn)]

mod allocator;
#[cfg(target_arch = "x86_64")]
mod named;
mod next;
mod shared;
mod thread;

use core::hint::black_box;
use core::sync::atomic::Ordering::Relaxed;

use thread::TimedThread;
use threadclock::Elapsed;

use crate::layout::{EMPTY_CELL, KNOWN_CALLS, KNOWN_CELL, KNOWN_CHAINED_CELL, KNOWN_IN_A_ROW_CELL};

/// The symbol that core's tables of unwinding refer to. Nothing unwinds: a panic aborts.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

/// Run by the dynamic loader before `main`, with main's arguments (glibc and musl both pass them).
#[used]
// SAFETY: the section holds pointers to functions of this signature.
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = at_start;

extern "C" fn at_start() {
    next::find_all();
    #[cfg(target_arch = "x86_64")]
    named::keep_stubs();
    let Some(header) = shared::attach() else { return };
    if thread::make_key() {
        header.processes.fetch_add(1, Relaxed);
    }
}

/// One of so many calls of a thread also measures the overhead of counting it.
const OVERHEAD_INTERVAL: u32 = 64;

/// One of so many calls is followed by [`KNOWN_SAMPLES`] of known calls.
const KNOWN_INTERVAL: u32 = 1024;
/// Number of samples of each known call: by their mean a counter of coarse steps (10 ns) tells
/// nanoseconds, also in a short program.
const KNOWN_SAMPLES: u32 = 16;

/// Makes eight multiplications, each of which waits for the one before and the first for nothing: 24
/// cycles from begin to end on current x86-64 (Agner Fog, instruction tables), most of which a
/// processor hides behind the instructions around.
extern "C" fn known_call(value: u64) -> u64 {
    (0..8).fold(value, |value, _| value.wrapping_mul(value))
}

/// Makes a call between two readings of the clock and counts them, unless it returns in another
/// process than it began in: the clock belonged to that one.
#[inline(always)]
fn call_between_readings<R>(
    thread: &TimedThread,
    process: libc::pid_t,
    call: impl FnOnce() -> R,
    count: impl FnOnce(&Elapsed),
) -> R {
    let watch = thread.clock().stopwatch_ordered();
    let result = call();
    if thread.process() == process {
        count(&watch.elapsed_by_both());
    }
    result
}

/// Makes a call and counts its CPU time in a cell.
#[inline(always)]
fn timed<R>(cell: usize, call: impl FnOnce() -> R) -> R {
    let Some(thread) = TimedThread::enter() else { return call() };
    let number = thread.next_call();
    if number % OVERHEAD_INTERVAL == 0 {
        return timed_with_overhead(thread, number, cell, call);
    }
    call_between_readings(thread, thread.process(), call, |elapsed| {
        thread.record(cell, elapsed);
        thread.leave();
    })
}

/// Makes a call and counts it, and the overhead of counting it: the time around less the time within,
/// and an interval with nothing in it.
#[cold]
#[inline(never)]
fn timed_with_overhead<R>(
    thread: &TimedThread,
    number: u32,
    cell: usize,
    call: impl FnOnce() -> R,
) -> R {
    let process = thread.process();
    let switches_before = thread.clock().resyncs().switched;
    let started = thread.clock().now_ordered();
    call_between_readings(thread, process, call, |elapsed| {
        thread.record(cell, elapsed);
        let overhead = thread.clock().now_ordered() - started - elapsed.cpu;
        thread.record_overhead(overhead, switches_before);
        record_references(thread, number);
        thread.leave();
    })
}

/// Times references as calls are timed: an empty interval, and after one of [`KNOWN_INTERVAL`] calls
/// the known call, alone and in rows, whose time without readings around it is known from them.
fn record_references(thread: &TimedThread, number: u32) {
    record_reference(thread, EMPTY_CELL, || ());
    if number % KNOWN_INTERVAL != 0 {
        return;
    }
    // By address, as next functions are called; once before, so that it is in the caches as they are.
    let call: extern "C" fn(u64) -> u64 = black_box(known_call);
    let call_once = || use_value(call(black_box(3)));
    call_once();
    for _ in 0..KNOWN_SAMPLES {
        record_reference(thread, KNOWN_IN_A_ROW_CELL, || {
            (0..KNOWN_CALLS).for_each(|_| call_once());
        });
        let chained = |value, _| call(value);
        record_reference(thread, KNOWN_CHAINED_CELL, || {
            use_value((0..KNOWN_CALLS).fold(black_box(3), chained));
        });
        record_reference(thread, KNOWN_CELL, call_once);
        record_reference(thread, EMPTY_CELL, || ());
    }
}

/// Makes the compiler keep a value.
#[inline(always)]
fn use_value(value: u64) {
    black_box(value);
}

/// Counts an interval with `act` in it, unless the thread was switched out meanwhile.
#[inline(always)]
fn record_reference(thread: &TimedThread, cell: usize, act: impl FnOnce()) {
    call_between_readings(thread, thread.process(), act, |elapsed| {
        if !elapsed.switched {
            thread.record(cell, elapsed);
        }
    });
}
