//! Times calls where a program makes them.
//!
//! What is between the two readings of the clock is the call and nothing else. All bookkeeping lies outside.

// Takes the place of C functions, in memory that is shared with another process.
#![allow(unsafe_code)]
#![deny(unsafe_op_in_unsafe_fn)]

mod allocator;
#[cfg(target_arch = "x86_64")]
mod named;
mod next;
mod shared;
mod thread;

use thread::Thread;

use crate::layout::EMPTY;

/// What core's tables of unwinding refer to. Nothing unwinds: a panic aborts.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

/// Of so many calls of a thread, one also shows what counting it takes.
const SAMPLED: u32 = 64;

/// Makes the call and counts its CPU time in the cell that `cell` gives.
#[inline(always)]
fn timed<R>(cell: usize, call: impl FnOnce() -> R) -> R {
    let Some(thread) = Thread::enter() else { return call() };
    if thread.next_call() % SAMPLED == 0 {
        return timed_twice(thread, cell, call);
    }
    let process = thread.process();
    let watch = thread.clock().stopwatch_ordered();
    let result = call();
    if thread.process() != process {
        return result;
    }
    let elapsed = watch.elapsed_by_both();
    thread.record(cell, &elapsed);
    thread.leave();
    result
}

/// The same, and what it takes: the time around less the time within, and an interval with nothing in it.
#[cold]
#[inline(never)]
fn timed_twice<R>(thread: &Thread, cell: usize, call: impl FnOnce() -> R) -> R {
    let process = thread.process();
    let (before, started) = (thread.clock().resyncs().switched, thread.clock().now_ordered());
    let watch = thread.clock().stopwatch_ordered();
    let result = call();
    if thread.process() != process {
        return result;
    }
    let elapsed = watch.elapsed_by_both();
    thread.record(cell, &elapsed);
    let own = thread.clock().now_ordered() - started - elapsed.cpu;
    thread.note_own(own, before);
    note_empty(thread);
    thread.leave();
    result
}

/// An interval with nothing in it but what is in all.
fn note_empty(thread: &Thread) {
    let process = thread.process();
    let watch = thread.clock().stopwatch_ordered();
    if thread.process() != process {
        return;
    }
    let nothing = watch.elapsed_by_both();
    if !nothing.switched {
        thread.record(EMPTY, &nothing);
    }
}
