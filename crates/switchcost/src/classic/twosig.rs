//! `twosig [loops]`: a signal that goes to and fro between two processes (VENIX 1984).
//!
//! The original tests its counter and then pauses: a signal between the two is lost for ever, and one
//! too many takes the counter past the zero that it waits for. Here signals come in within the wait
//! alone, and each process sends as many as the other one catches.

use std::process::ExitCode;

use probe::classic::{
    Forked, Hangups, answer_hangups, exit_now, fork, hang_up, hangups_left, kill, wait_for,
};
use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

use super::argument::{counts, loops};
use super::display::{Used, display};
use super::{Call, end_in_words, perror};

pub(super) fn run(call: &Call) -> ExitCode {
    let loops = match counts(call, "[loops]", loops(2_000)) {
        Ok([loops]) => loops,
        Err(code) => return code,
    };
    let before = Used::now();
    let hangups = match answer_hangups(i64::from(loops)) {
        Ok(hangups) => hangups,
        Err(errno) => {
            perror("sigaction", errno);
            return ExitCode::FAILURE;
        }
    };
    let first = getpid();
    // As the child finds it: it answers all that it catches.
    hangups.answer(first.as_raw_pid(), -1);
    let second = match fork() {
        Err(errno) => {
            perror("fork", errno);
            return ExitCode::FAILURE;
        }
        Ok(Forked::Child) => {
            let asked = set_parent_process_death_signal(Some(Signal::KILL));
            if asked.is_ok() && getppid() == Some(first) {
                catch_all(&hangups);
            }
            exit_now(0);
        }
        Ok(Forked::Parent(pid)) => pid.as_raw_pid(),
    };
    // The first signal starts it, and the last that is caught here is not answered.
    hangups.answer(second, 0);
    hang_up(second);
    catch_all(&hangups);
    if hangups_left() > 0 {
        // It should have ended; if it has not, nobody is to wait for it.
        kill(second);
    }
    let status = match wait_for(second) {
        Ok(account) => account.status,
        Err(errno) => {
            perror("wait4", errno);
            return ExitCode::FAILURE;
        }
    };
    match (hangups_left(), status) {
        (0, 0) => {
            let message = "two process catch-signal-kill loop";
            display(call, message, loops, Used::since(&before))
        }
        (left, _) => {
            let how = end_in_words(status);
            call.fail(&format!("the other process {how} with {left} of {loops} loops left"), 1)
        }
    }
}

/// Measured code, with the handler.
#[inline(never)]
fn catch_all(hangups: &Hangups) {
    while hangups_left() > 0 && !hangups.abandoned() {
        hangups.wait();
    }
}
