//! Every context switch of a running Linux system, by eBPF: the CPU time of any thread for the
//! price of a time stamp, who was switched out why and for whom, how long each waited.
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
//! but Rust is needed to build this, and nothing but the kernel to run it. How it works, the layout
//! of the table and figures: `docs/switchtrace.md`.
// The workspace denies unsafe code; here it is in `sys`, where memory that the kernel writes is
// read, and in the C interface.
#![allow(unsafe_code)]
#![deny(unsafe_op_in_unsafe_fn)]
#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod asm;
mod btf;
mod cause;
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
pub use error::Error;
pub use events::{EventKind, EventReader, TraceEvent};
pub use histogram::DurationHistogram;
pub use options::{Options, RecordingOptions};
pub use pairs::SwitchPair;
pub use privilege::BpfRefusal;
pub use threadclock::table::{ThreadTime, ThreadTimeError, ThreadTimeReader};
pub use threads::{ThreadKey, ThreadSnapshot};
pub use tracer::{LostCounts, Tracer, TracerCost};

/// An attached program that does nothing, for benchmarks: what any probe of `sched_switch` costs.
#[doc(hidden)]
pub fn empty_probe() -> Result<impl Sized, Error> {
    tracer::empty_probe()
}

/// Whether programs could be written for a kernel with these types: for `fuzz/`.
#[cfg(fuzzing)]
#[doc(hidden)]
pub fn reads_types(data: Vec<u8>) -> bool {
    kernel::Kernel::of_types(data).is_ok()
}

/// The examples of the README are tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
