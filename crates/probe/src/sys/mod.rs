//! The only unsafe code of the probes: calls that no safe crate offers, each wrapped in a function
//! that is sound whatever a safe caller gives it. What a call needs beside its arguments is checked
//! ([`fork`]: one thread) or is the contract of an `unsafe fn`.
#![allow(unsafe_code)]

mod burdens;
mod clock;
mod exec;
mod footprint;
mod handlers;
mod ipc;
mod mapping;
mod needed_calls;
mod notes;
mod page;
mod pieces;
mod process;
mod quanta;
mod registers;
mod request_board;
mod ring_gate;
mod samples;
mod scheduling;
mod signal;
mod spawn;
mod speed_log;
mod stop;
mod uring;
mod veth;
mod walk;
mod words;

use std::ffi::c_long;

use rustix::io::Errno;

pub use burdens::*;
pub use clock::*;
pub use exec::*;
pub use footprint::MemoryHighWater;
pub use handlers::*;
pub use ipc::*;
pub use needed_calls::{RefusedCall, check_needed_calls};
pub use notes::{MAX_NOTES, MemberNotes, PieceTimes};
pub use page::*;
pub use process::*;
pub use quanta::*;
pub use registers::*;
pub use request_board::*;
pub use ring_gate::RingGate;
pub use samples::{
    CpuEvents, CpuSamples, CpuTimer, TaskInstructions, ThreadSample, count_own_switches,
};
pub use scheduling::core_cookie;
pub use signal::*;
pub use spawn::spawn_watched;
pub use speed_log::SpeedLog;
pub use stop::*;
pub use uring::*;
pub use veth::VethPair;
pub use walk::WorkArray;
pub use words::*;

/// Aligns the instructions that follow to a line of the instruction cache, in every build: the
/// place of a timed loop changes the time of a hop (docs/validation.md, two speeds of one loop).
#[inline(always)]
pub fn begin_line() {
    // SAFETY: only fills up with instructions that do nothing.
    unsafe { std::arch::asm!(".p2align 6", options(nomem, nostack, preserves_flags)) }
}

/// Returns the errno of the last call of the C library.
fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}

/// Checks a call that returns nothing else than success or -1. For calls that a ring times.
#[inline(always)]
fn done(status: c_long) -> Result<(), Errno> {
    match status {
        -1 => Err(last_errno()),
        _ => Ok(()),
    }
}

/// Returns the result of a call of the C library that returns -1 with errno if it fails. Not for
/// calls that a ring times: the compiler would keep the result in one word and test it again in
/// every hop.
#[inline(always)]
fn check<T: Copy + PartialEq + From<i8>>(result: T) -> Result<T, Errno> {
    if result == T::from(-1) { Err(last_errno()) } else { Ok(result) }
}
