//! The programs of the VENIX memorandum (VenturCom 1984, appendix): a system call, a signal to
//! oneself, a signal to and fro between two processes.

use std::hint::black_box;

use probe::classic::{
    ForkSide, HangupSignal, OwnSignal, PeerSignal, UsageScope, caught, exit_now, fork, send_signal,
    usage, wait_for, watch_members,
};
use rustix::process::{Signal, getpid, getuid};

use crate::{Call, Ended, end_in_words, failed, print, say};

/// `simsyscall [loops]`: a system call that does next to nothing.
pub(crate) fn simsyscall(call: &Call) -> Ended {
    let [loops] = call.counts("[loops]", [(10_000, u32::MAX)])?;
    let before = used();
    ask(loops);
    display(call, "'getuid' system call", loops, since(before))
}

/// Measured code.
#[inline(never)]
fn ask(loops: u32) {
    for _ in 0..loops {
        black_box(getuid());
    }
}

/// `simsig [loops]`: a signal sent to oneself, caught by a handler that installs itself again.
pub(crate) fn simsig(call: &Call) -> Ended {
    let [loops] = call.counts("[loops]", [(10_000, u32::MAX)])?;
    let signal = OwnSignal::<HangupSignal>::new().map_err(failed("signal", 1))?;
    let before = used();
    send(loops, &signal);
    let used = since(before);
    let why = match left_of(loops) {
        0 => return display(call, "simple kill-catch-signal", loops, used),
        left if left > 0 => format!("{left} of {loops} signals were not caught (seccomp?)"),
        left => format!("{} more signals came from other processes", -left),
    };
    Err(call.fail(&why, 1))
}

/// A signal to oneself is caught before the call returns. Measured code.
#[inline(never)]
fn send(loops: u32, signal: &OwnSignal<HangupSignal>) {
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
/// The original tests its counter and then pauses: a signal between the two is lost for ever, and
/// one too many takes the counter past the zero that it waits for. Here signals come in within the
/// wait alone, and each process sends as many as the other one catches.
pub(crate) fn twosig(call: &Call) -> Ended {
    let [loops] = call.counts("[loops]", [(2_000, u32::MAX)])?;
    let before = used();
    let pause = watch_members().and_then(|()| PeerSignal::<HangupSignal>::new());
    let pause = pause.map_err(failed("sigaction", 1))?;
    let first = getpid().as_raw_pid();
    let second = match fork().map_err(failed("fork", 1))? {
        ForkSide::Child => {
            let has_parent = probe::set_parent_death_signal(first) == Ok(true);
            if has_parent {
                pause.answer(first, u64::from(loops));
            }
            exit_now(i32::from(!has_parent));
        }
        ForkSide::Parent(pid) => pid.as_raw_pid(),
    };
    // The first signal starts it, and the last that is caught here is not answered.
    if pause.exchange(second, loops).is_err() {
        // It should have ended; if it has not, it must not be waited for.
        send_signal(second, Signal::KILL.as_raw());
    }
    let status = wait_for(second).map_err(failed("wait4", 1))?.status;
    let left = left_of(loops);
    if (left, status) == (0, 0) {
        return display(call, "two process catch-signal-kill loop", loops, since(before));
    }
    let how = end_in_words(status);
    Err(call.fail(&format!("the other process {how} with {left} of {loops} loops left"), 1))
}

/// The tick samples user and system time, at the slowest every 10 ms: shares of less than this are
/// hardly more than chance.
const ENOUGH_NS: u64 = 1_000_000_000;

/// CPU time in nanoseconds: system and user, and of the children that were waited for system and
/// user.
type Used = [u64; 4];

fn used() -> Used {
    let (own, children) = (usage(UsageScope::Own), usage(UsageScope::Children));
    [own.system_ns(), own.user_ns(), children.system_ns(), children.user_ns()]
}

/// From `before` until now: the start of the program is no loop.
fn since(before: Used) -> Used {
    let now = used();
    std::array::from_fn(|index| now[index].saturating_sub(before[index]))
}

/// Prints the two lines (display of the appendix) for `loops` loops.
fn display(call: &Call, message: &str, loops: u32, used: Used) -> Ended {
    let text = lines(message, loops, used).ok_or_else(|| {
        let more = format!("no CPU time was counted in {loops} loops: it takes more of them");
        call.fail(&more, 1)
    })?;
    let printed = print(&text)?;
    let total_ns: u64 = used.iter().sum();
    if total_ns < ENOUGH_NS {
        let more = u128::from(loops) * u128::from(ENOUGH_NS) / u128::from(total_ns);
        say(&format!(
            "note: on most kernels the timer tick samples what is system and what is user time; \
             {:.1} ms hold few ticks (`{} {}` takes some 1 s)",
            total_ns as f64 / 1e6,
            call.name,
            two_digits(more)
        ));
    }
    Ok(printed)
}

/// `None` where nothing was used: shares of nothing do not exist.
fn lines(message: &str, loops: u32, used: Used) -> Option<String> {
    let total_ns: u64 = used.iter().sum();
    let [system, user, child_system, child_user] =
        used.map(|ns| (ns * 100).checked_div(total_ns).unwrap_or(0));
    let ms = total_ns as f64 / f64::from(loops) / 1e6;
    (total_ns > 0).then(|| {
        format!(
            "{message}: {ms:.6} ms per loop.\n System {system}%, user {user}%, child sys \
             {child_system}%, child user {child_user}%\n"
        )
    })
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
        let text = lines("'getuid' system call", 10_000, [1_000_000, 430_000, 0, 0]).unwrap();
        let expected = "'getuid' system call: 0.000143 ms per loop.\n System 69%, user 30%, \
             child sys 0%, child user 0%\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_memorandums_own_figure() {
        // 80186, two processes: 5.4 ms a loop.
        let used = [5_400_000_000, 0, 5_400_000_000, 0];
        let text = lines("two process catch-signal-kill loop", 2_000, used).unwrap();
        assert!(text.starts_with("two process catch-signal-kill loop: 5.400000 ms per loop.\n"));
        assert!(text.ends_with(" System 50%, user 0%, child sys 50%, child user 0%\n"), "{text}");
    }

    #[test]
    fn of_no_time_there_are_no_shares() {
        assert_eq!(lines("x", 1, [0; 4]), None);
    }

    #[test]
    fn loops_to_type_are_round() {
        assert_eq!((two_digits(0), two_digits(7), two_digits(6_993_007)), (0, 7, 7_000_000));
    }
}
