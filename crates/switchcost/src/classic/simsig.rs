//! `simsig [loops]`: a signal sent to oneself, caught by a handler that installs itself again (VENIX
//! 1984).

use std::process::ExitCode;

use probe::classic::{catch_hangups, hang_up, hangups_left};
use rustix::process::getpid;

use super::Call;
use super::argument::{counts, loops};
use super::display::{Used, display};

pub(super) fn run(call: &Call) -> ExitCode {
    let loops = match counts(call, "[loops]", loops(10_000)) {
        Ok([loops]) => loops,
        Err(code) => return code,
    };
    catch_hangups(i64::from(loops));
    let before = Used::now();
    send(loops, getpid().as_raw_pid());
    let used = Used::since(&before);
    match hangups_left() {
        0 => display(call, "simple kill-catch-signal", loops, used),
        left if left > 0 => {
            call.fail(&format!("{left} of {loops} signals were not caught (seccomp?)"), 1)
        }
        left => call.fail(&format!("somebody else sent {} signals more", -left), 1),
    }
}

/// A signal to oneself is caught before the call returns. Measured code.
#[inline(never)]
fn send(loops: u32, pid: i32) {
    for _ in 0..loops {
        hang_up(pid);
    }
}
