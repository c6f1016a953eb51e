//! switchcost: what a context switch costs here, and whether the number can be trusted.
//!
//! The program assembles `analysis` (arithmetic) and `probe` (kernel). Its rooms, each of which uses
//! those below it only:
//!
//! - `program`: the commands, and the root of all arguments (`cli.rs`: begin to read there)
//! - `registry`: which record an experiment has, and what is done with any
//! - `documents`: what only the four papers ask for; called by the name of one of their programs,
//!   this program acts as that
//! - `switches`: every switch of the machine (`trace`, `top`)
//! - `programs`: programs that run (`run`, `profile`, `sensitivity`, `cost --pid`)
//! - `experiments`: what is measured, a folder each
//! - `observe`: processes, and what the tracer counts of each
//! - `engine`: how a run is measured and kept
//! - `report`: how anything is shown
//! - `base`: errors, typed values
//!
//! `documents`, `switches` and `programs` with `observe` are products that a build may leave out
//! (features of Cargo.toml). The rest is the core.

// Rooms of the core have functions that only a product calls.
#![cfg_attr(
    not(all(feature = "documents", feature = "switches")),
    allow(dead_code, unused_imports)
)]

#[cfg(all(test, not(all(feature = "documents", feature = "switches"))))]
compile_error!("the tests are of the whole program, with all features");

mod base;
#[cfg(feature = "documents")]
mod documents;
mod engine;
mod experiments;
#[cfg(feature = "programs")]
mod observe;
mod program;
#[cfg(feature = "programs")]
mod programs;
mod registry;
mod report;
#[cfg(feature = "switches")]
mod switches;

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before there is a second thread: without futexes the C library would abort.
    if let Err(refused) = probe::check_needed_calls() {
        return base::failure::print_error(&refused.into());
    }
    probe::with_stack(program::cli::run_program)
}
