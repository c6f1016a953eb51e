//! Traces every context switch of a running Linux system by eBPF: the CPU time of any thread for the
//! price of a time stamp, why each thread was switched out and for which other, how long each waited.
//!
//! ```no_run
//! # fn main() -> Result<(), switchtrace::Error> {
//! let tracer = switchtrace::Tracer::open(&switchtrace::Options::default())?;
//! let times = tracer.thread_times()?;
//! println!("init has used {} ns", times.cpu_ns(1)?);
//! # Ok(())
//! # }
//! ```
//!
//! The programs are written at run time for the kernel that runs, from its own types (BTF): nothing
//! but Rust is needed to build this, and nothing but the kernel to run it. The modules, in the order
//! in which [`Tracer::open`] uses them:
//!
//! ```text
//! btf       reads the kernel's types          asm       writes eBPF instructions
//! kernel    offsets of fields, ids            program   the programs, one for each tracepoint
//! layout    the table that they write         sys       bpf(2): maps, loading, attaching
//! tracer    puts all of it together           threads, pairs, events   read what was written
//! counter   the kernel's own counts alone, without a program at switches
//! ```
//!
//! Method, layout of the table and figures: `docs/switchtrace.md`.
// The workspace denies unsafe code; here it is in `sys`, where memory that the kernel writes is
// read, and in the C interface.
#![allow(unsafe_code)]
#![deny(unsafe_op_in_unsafe_fn)]
#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod asm;
mod btf;
mod cause;
mod counter;
mod error;
mod events;
pub mod ffi;
mod histogram;
mod kernel;
mod layout;
mod options;
mod pairs;
mod privilege;
mod program;
mod sys;
mod threads;
mod tracer;

pub use cause::SwitchCause;
pub use counter::SwitchCounter;
pub use error::Error;
pub use events::{EventKind, EventReader, EventThread, TraceEvent};
pub use histogram::{DurationHistogram, WaitHistogram};
pub use options::{Options, RecordingOptions};
pub use pairs::SwitchPair;
pub use privilege::BpfRefusal;
pub use threadclock::table::{ThreadTime, ThreadTimeError, ThreadTimeReader};
pub use threads::{ThreadCounts, ThreadKey, ThreadSnapshot};
pub use tracer::{LostCounts, Tracer, TracerCost};

/// Attaches a program that does nothing, for benchmarks: its cost is that of any probe of
/// `sched_switch`.
#[doc(hidden)]
pub fn empty_probe() -> Result<impl Sized, Error> {
    tracer::empty_probe()
}

/// Returns whether programs could be written for a kernel with these types: for `fuzz/`.
#[cfg(fuzzing)]
#[doc(hidden)]
pub fn reads_types(data: Vec<u8>) -> bool {
    kernel::KernelLayout::from_btf(data).is_ok()
}

/// Makes tests of the README's examples.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct SwitchtraceReadme;
