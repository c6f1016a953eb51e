//! The programs of the VENIX memorandum (VenturCom 1984, appendix): a system call, a signal to
//! oneself, a signal to and fro between two processes.

use std::hint::black_box;

use probe::classic::{
    ForkSide, HangupSignal, OwnSignal, PeerSignal, UsageScope, caught, exit_now, fork, send_signal,
    usage, wait_for, watch_members,
};
use rustix::process::{Signal, getpid, getuid};

use crate::{CountRange, ProgramCall, ProgramResult, describe_status, failed, print, print_error};

/// Runs `simsyscall [loops]`: a system call that does next to nothing.
pub(crate) fn simsyscall(call: &ProgramCall) -> ProgramResult {
    let [loops] = call.counts("[loops]", [CountRange { default: 10_000, max: u32::MAX }])?;
    let before = cpu_times();
    call_getuid(loops);
    display(call, "'getuid' system call", loops, since(before))
}

/// Makes the system calls. Measured code.
#[inline(never)]
fn call_getuid(loops: u32) {
    for _ in 0..loops {
        black_box(getuid());
    }
}

/// Runs `simsig [loops]`: a signal to oneself, caught by a handler that installs itself again.
pub(crate) fn simsig(call: &ProgramCall) -> ProgramResult {
    let [loops] = call.counts("[loops]", [CountRange { default: 10_000, max: u32::MAX }])?;
    let signal = OwnSignal::<HangupSignal>::new().map_err(failed("signal", 1))?;
    let before = cpu_times();
    send_to_self(loops, &signal);
    let used = since(before);
    let why = match not_caught(loops) {
        0 => return display(call, "simple kill-catch-signal", loops, used),
        left if left > 0 => format!("{left} of {loops} signals were not caught (seccomp?)"),
        left => format!("{} more signals came from other processes", -left),
    };
    Err(call.fail(&why, 1))
}

/// Sends the signals; each is caught before the call returns. Measured code.
#[inline(never)]
fn send_to_self(loops: u32, signal: &OwnSignal<HangupSignal>) {
    for _ in 0..loops {
        // The count at the end shows a signal that was not caught.
        let _ = signal.send();
    }
}

/// Returns how many of `loops` signals this process has not caught; negative if it caught more.
fn not_caught(loops: u32) -> i64 {
    i64::from(loops) - caught() as i64
}

/// Runs `twosig [loops]`: a signal that goes to and fro between two processes.
///
/// The original tests its counter and then pauses: a signal between the two is lost for ever, and
/// one too many takes the counter past the zero that it waits for. Here signals arrive only within the
/// wait, and each process sends as many as the other one catches.
pub(crate) fn twosig(call: &ProgramCall) -> ProgramResult {
    let [loops] = call.counts("[loops]", [CountRange { default: 2_000, max: u32::MAX }])?;
    let before = cpu_times();
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
    // The first signal starts the exchange, and the last that is caught here is not answered.
    if pause.exchange(second, loops).is_err() {
        // The other process should have ended; if it has not, waiting for it would hang.
        send_signal(second, Signal::KILL.as_raw());
    }
    let status = wait_for(second).map_err(failed("wait4", 1))?.status;
    let left = not_caught(loops);
    if (left, status) == (0, 0) {
        return display(call, "two process catch-signal-kill loop", loops, since(before));
    }
    let how = describe_status(status);
    Err(call.fail(&format!("the other process {how} with {left} of {loops} loops left"), 1))
}

/// Limits how short a total may be without a note: the tick samples user and system time, at the
/// slowest every 10 ms, so that shares of a shorter one are hardly more than chance.
const MIN_SAMPLED_NS: u64 = 1_000_000_000;

/// CPU time in nanoseconds: system and user of this process, system and user of the children that it
/// waited for.
type CpuTimes = [u64; 4];

fn cpu_times() -> CpuTimes {
    let (own, children) = (usage(UsageScope::Own), usage(UsageScope::Children));
    [own.system_ns(), own.user_ns(), children.system_ns(), children.user_ns()]
}

/// Returns the CPU time since `before`: the start of the program is not part of the loops.
fn since(before: CpuTimes) -> CpuTimes {
    let now = cpu_times();
    std::array::from_fn(|index| now[index].saturating_sub(before[index]))
}

/// Prints the two lines (display of the appendix) for `loops` loops.
fn display(call: &ProgramCall, message: &str, loops: u32, used: CpuTimes) -> ProgramResult {
    let text = lines(message, loops, used).ok_or_else(|| {
        let why = format!("no CPU time was counted in {loops} loops: it takes more of them");
        call.fail(&why, 1)
    })?;
    let printed = print(&text)?;
    let total_ns: u64 = used.iter().sum();
    if total_ns < MIN_SAMPLED_NS {
        let enough_loops = u128::from(loops) * u128::from(MIN_SAMPLED_NS) / u128::from(total_ns);
        print_error(&format!(
            "note: on most kernels the timer tick samples what is system and what is user time; \
             {:.1} ms hold few ticks (`{} {}` takes some 1 s)",
            total_ns as f64 / 1e6,
            call.name,
            round_up(enough_loops)
        ));
    }
    Ok(printed)
}

/// Formats the two lines. `None` if no time was used: there are no shares of nothing.
fn lines(message: &str, loops: u32, used: CpuTimes) -> Option<String> {
    let total_ns: u64 = used.iter().sum();
    if total_ns == 0 {
        return None;
    }
    let [system, user, child_system, child_user] = used.map(|ns| ns * 100 / total_ns);
    let ms = total_ns as f64 / f64::from(loops) / 1e6;
    Some(format!(
        "{message}: {ms:.6} ms per loop.\n System {system}%, user {user}%, child sys \
         {child_system}%, child user {child_user}%\n"
    ))
}

/// Rounds a number up to two digits and zeros.
fn round_up(number: u128) -> u128 {
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
        assert_eq!((round_up(0), round_up(7), round_up(6_993_007)), (0, 7, 7_000_000));
    }
}
