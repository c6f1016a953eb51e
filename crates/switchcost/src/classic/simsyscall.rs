//! `simsyscall [loops]`: a system call that does next to nothing (VENIX 1984).

use std::hint::black_box;
use std::process::ExitCode;

use rustix::process::getuid;

use super::Call;
use super::argument::{counts, loops};
use super::display::{Used, display};

pub(super) fn run(call: &Call) -> ExitCode {
    let loops = match counts(call, "[loops]", loops(10_000)) {
        Ok([loops]) => loops,
        Err(code) => return code,
    };
    let before = Used::now();
    ask(loops);
    display(call, "'getuid' system call", loops, Used::since(&before))
}

/// Measured code.
#[inline(never)]
fn ask(loops: u32) {
    for _ in 0..loops {
        black_box(getuid());
    }
}
