//! Times calls where a program makes them.
//!
//! What is between the two readings of the clock is the call and nothing else. All bookkeeping lies
//! outside.

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

use thread::Thread;
use threadclock::Elapsed;

use crate::layout::{EMPTY_CELL, KNOWN_CALLS, KNOWN_CELL, KNOWN_CHAINED_CELL, KNOWN_IN_A_ROW_CELL};

/// What core's tables of unwinding refer to. Nothing unwinds: a panic aborts.
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
    named::keep();
    let Some(header) = shared::attach() else { return };
    if thread::make_key() {
        header.processes.fetch_add(1, Relaxed);
    }
}

/// Of so many calls of a thread, one also shows what counting it takes.
const SAMPLED: u32 = 64;

/// Of so many calls, one is followed by [`KNOWN_SAMPLES`] of known ones.
const KNOWN_SAMPLED: u32 = 1024;
/// So many that a counter of coarse steps (10 ns) tells nanoseconds by their mean, also of a short
/// program.
const KNOWN_SAMPLES: u32 = 16;

/// Eight multiplications, each of which waits for the one before and the first for nothing: 24
/// cycles from begin to end on current x86-64 (Agner Fog, instruction tables), most of which a
/// processor hides behind what is around.
extern "C" fn known_call(value: u64) -> u64 {
    (0..8).fold(value, |value, _| value.wrapping_mul(value))
}

/// Makes the call between two readings and counts them, unless it returns in another process than
/// the one it began in, whose clock that was.
#[inline(always)]
fn between<R>(
    thread: &Thread,
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

/// Makes the call and counts its CPU time in the cell that `cell` gives.
#[inline(always)]
fn timed<R>(cell: usize, call: impl FnOnce() -> R) -> R {
    let Some(thread) = Thread::enter() else { return call() };
    let number = thread.next_call();
    if number % SAMPLED == 0 {
        return timed_twice(thread, number, cell, call);
    }
    between(thread, thread.process(), call, |elapsed| {
        thread.record(cell, elapsed);
        thread.leave();
    })
}

/// The same, and what it takes: the time around less the time within, and an interval with nothing
/// in it.
#[cold]
#[inline(never)]
fn timed_twice<R>(thread: &Thread, number: u32, cell: usize, call: impl FnOnce() -> R) -> R {
    let process = thread.process();
    let (before, started) = (thread.clock().resyncs().switched, thread.clock().now_ordered());
    between(thread, process, call, |elapsed| {
        thread.record(cell, elapsed);
        let own = thread.clock().now_ordered() - started - elapsed.cpu;
        thread.note_own(own, before);
        note_known(thread, number);
        thread.leave();
    })
}

/// What is known, timed as calls are: nothing, and after call `number` now and then a call whose
/// time without readings around it is measured as well.
fn note_known(thread: &Thread, number: u32) {
    note(thread, EMPTY_CELL, || ());
    if number % KNOWN_SAMPLED != 0 {
        return;
    }
    // As next functions are called; once before, so that it is in the caches as they are.
    let call: extern "C" fn(u64) -> u64 = black_box(known_call);
    let once = || done(call(black_box(3)));
    once();
    for _ in 0..KNOWN_SAMPLES {
        note(thread, KNOWN_IN_A_ROW_CELL, || (0..KNOWN_CALLS).for_each(|_| once()));
        let chained = |value, _| call(value);
        note(thread, KNOWN_CHAINED_CELL, || done((0..KNOWN_CALLS).fold(black_box(3), chained)));
        note(thread, KNOWN_CELL, once);
        note(thread, EMPTY_CELL, || ());
    }
}

/// For the compiler the value is used.
#[inline(always)]
fn done(value: u64) {
    black_box(value);
}

/// Counts an interval with this in it, unless the thread was switched out meanwhile.
#[inline(always)]
fn note(thread: &Thread, cell: usize, act: impl FnOnce()) {
    between(thread, thread.process(), act, |elapsed| {
        if !elapsed.switched {
            thread.record(cell, elapsed);
        }
    });
}
