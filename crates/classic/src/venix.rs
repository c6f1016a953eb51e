//! The programs of the VENIX memorandum (VenturCom 1984, appendix): a system call, a signal to oneself, a
//! signal to and fro between two processes.

use std::hint::black_box;
use std::process::ExitCode;

use probe::classic::{
    Forked, Hangup, OwnSignal, Pause, Usage, Whose, caught, exit_now, fork, send_signal, usage,
    wait_for, watch_members,
};
use rustix::process::{Signal, getpid, getuid};

use crate::{Call, end_in_words, perror, print, say};

/// `simsyscall [loops]`: a system call that does next to nothing.
pub(crate) fn simsyscall(call: &Call) -> ExitCode {
    let loops = match call.counts("[loops]", [(10_000, u32::MAX)]) {
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

/// `simsig [loops]`: a signal sent to oneself, caught by a handler that installs itself again.
pub(crate) fn simsig(call: &Call) -> ExitCode {
    let loops = match call.counts("[loops]", [(10_000, u32::MAX)]) {
        Ok([loops]) => loops,
        Err(code) => return code,
    };
    let signal = match OwnSignal::<Hangup>::new() {
        Ok(signal) => signal,
        Err(errno) => {
            perror("signal", errno);
            return ExitCode::FAILURE;
        }
    };
    let before = Used::now();
    send(loops, &signal);
    let used = Used::since(&before);
    match left_of(loops) {
        0 => display(call, "simple kill-catch-signal", loops, used),
        left if left > 0 => {
            call.fail(&format!("{left} of {loops} signals were not caught (seccomp?)"), 1)
        }
        left => call.fail(&format!("somebody else sent {} signals more", -left), 1),
    }
}

/// A signal to oneself is caught before the call returns. Measured code.
#[inline(never)]
fn send(loops: u32, signal: &OwnSignal<Hangup>) {
    for _ in 0..loops {
        // What is not caught is missed at the end.
        let _ = signal.send();
    }
}

/// How many of so many signals this process has not caught yet.
fn left_of(loops: u32) -> i64 {
    i64::from(loops) - caught() as i64
}

/// `twosig [loops]`: a signal that goes to and fro between two processes.
///
/// The original tests its counter and then pauses: a signal between the two is lost for ever, and one
/// too many takes the counter past the zero that it waits for. Here signals come in within the wait
/// alone, and each process sends as many as the other one catches.
pub(crate) fn twosig(call: &Call) -> ExitCode {
    let loops = match call.counts("[loops]", [(2_000, u32::MAX)]) {
        Ok([loops]) => loops,
        Err(code) => return code,
    };
    let before = Used::now();
    let pause = match watch_members().and_then(|()| Pause::<Hangup>::new()) {
        Ok(pause) => pause,
        Err(errno) => {
            perror("sigaction", errno);
            return ExitCode::FAILURE;
        }
    };
    let first = getpid().as_raw_pid();
    let second = match fork() {
        Err(errno) => {
            perror("fork", errno);
            return ExitCode::FAILURE;
        }
        Ok(Forked::Child) => {
            let has_parent = probe::set_parent_death_signal(first) == Ok(true);
            if has_parent {
                pause.answer(first, u64::from(loops));
            }
            exit_now(i32::from(!has_parent));
        }
        Ok(Forked::Parent(pid)) => pid.as_raw_pid(),
    };
    // The first signal starts it, and the last that is caught here is not answered.
    if pause.exchange(second, loops).is_err() {
        // It should have ended; if it has not, nobody is to wait for it.
        send_signal(second, Signal::KILL.as_raw());
    }
    let status = match wait_for(second) {
        Ok(account) => account.status,
        Err(errno) => {
            perror("wait4", errno);
            return ExitCode::FAILURE;
        }
    };
    match (left_of(loops), status) {
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

/// The tick samples user and system time, at the slowest every 10 ms: shares of less than this are
/// hardly more than chance.
const ENOUGH_NS: u64 = 1_000_000_000;

/// CPU time of this process and of the children that it waited for.
struct Used {
    own: Usage,
    children: Usage,
}

impl Used {
    fn now() -> Self {
        Self { own: usage(Whose::Own).read(), children: usage(Whose::Children).read() }
    }

    /// From `before` until now: the start of the program is no loop.
    fn since(before: &Self) -> Shares {
        let now = Self::now();
        Shares {
            system_ns: now.own.system_ns.saturating_sub(before.own.system_ns),
            user_ns: now.own.user_ns.saturating_sub(before.own.user_ns),
            child_system_ns: now.children.system_ns.saturating_sub(before.children.system_ns),
            child_user_ns: now.children.user_ns.saturating_sub(before.children.user_ns),
        }
    }
}

/// Whose CPU time it was, in nanoseconds.
#[derive(Clone, Copy)]
struct Shares {
    system_ns: u64,
    user_ns: u64,
    child_system_ns: u64,
    child_user_ns: u64,
}

impl Shares {
    fn total_ns(&self) -> u64 {
        self.system_ns + self.user_ns + self.child_system_ns + self.child_user_ns
    }
}

/// Prints the two lines (display of the appendix) for `loops` loops.
fn display(call: &Call, message: &str, loops: u32, used: Shares) -> ExitCode {
    let Some(text) = lines(message, loops, used) else {
        let more = format!("no CPU time was counted in {loops} loops: it takes more of them");
        return call.fail(&more, 1);
    };
    if let Err(code) = print(&text) {
        return code;
    }
    let total_ns = used.total_ns();
    if total_ns < ENOUGH_NS {
        let more = u128::from(loops) * u128::from(ENOUGH_NS) / u128::from(total_ns);
        say(&format!(
            "note: on most kernels the timer tick samples what is system and what is user time; {:.1} ms hold few ticks (`{} {}` takes some 1 s)",
            total_ns as f64 / 1e6,
            call.name,
            two_digits(more)
        ));
    }
    ExitCode::SUCCESS
}

/// `None` where nothing was used: shares of nothing do not exist.
fn lines(message: &str, loops: u32, used: Shares) -> Option<String> {
    let total_ns = used.total_ns();
    let percent = |ns: u64| (ns * 100).checked_div(total_ns);
    let ms = total_ns as f64 / f64::from(loops) / 1e6;
    Some(format!(
        "{message}: {ms:.6} ms per loop.\n System {}%, user {}%, child sys {}%, child user {}%\n",
        percent(used.system_ns)?,
        percent(used.user_ns)?,
        percent(used.child_system_ns)?,
        percent(used.child_user_ns)?
    ))
}

/// Rounded up to two digits.
fn two_digits(number: u128) -> u128 {
    let step = 10_u128.pow(number.checked_ilog10().unwrap_or(0).saturating_sub(1));
    number.div_ceil(step) * step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_call_of_today_shows() {
        // 10,000 loops of 143 ns, of which the original would have made "0.00 ms".
        let used =
            Shares { system_ns: 1_000_000, user_ns: 430_000, child_system_ns: 0, child_user_ns: 0 };
        let text = lines("'getuid' system call", 10_000, used).unwrap();
        let expected = "'getuid' system call: 0.000143 ms per loop.\n System 69%, user 30%, child sys 0%, child user 0%\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_memorandums_own_figure() {
        // 80186, two processes: 5.4 ms a loop.
        let used = Shares {
            system_ns: 5_400_000_000,
            user_ns: 0,
            child_system_ns: 5_400_000_000,
            child_user_ns: 0,
        };
        let text = lines("two process catch-signal-kill loop", 2_000, used).unwrap();
        assert!(text.starts_with("two process catch-signal-kill loop: 5.400000 ms per loop.\n"));
        assert!(text.ends_with(" System 50%, user 0%, child sys 50%, child user 0%\n"), "{text}");
    }

    #[test]
    fn of_no_time_there_are_no_shares() {
        let none = Shares { system_ns: 0, user_ns: 0, child_system_ns: 0, child_user_ns: 0 };
        assert_eq!(lines("x", 1, none), None);
    }

    #[test]
    fn loops_to_type_are_round() {
        assert_eq!((two_digits(0), two_digits(7), two_digits(6_993_007)), (0, 7, 7_000_000));
    }
}
