//! Timing of calls: one call between two time stamps, and batches of calls, each beside an empty
//! call or batch in the same loop. And twosig of the memorandum (VENIX 1984), which takes two
//! processes.

use std::sync::atomic::{AtomicU32, Ordering};

use rundata::trial::loops::{
    CALLS as MADE, CAUGHT, EMPTY_BATCH_TICKS, ENTERED_CALLS, KERNEL_ENTRIES, LOOP_SWITCHES,
    SIGNAL_SELF, TWO_PROCESS_SHARE,
};
use rundata::trial::overhead::{BATCH_CALLS, BATCH_TICKS, CALL_TICKS, EMPTY_TICKS};

use super::calls::{CALLS, EmptyCall, LOOPS, RegisteredCall, TimedCall, stamp};
use super::harness::{TrialError, TrialOutcome, touched_room};
use super::timing::{LoopAccounts, SlicedLoop, WARM_UP_CALLS, read_cpu_times, warm_up};
use rustix::io::Errno;

use crate::ring::{MemberClocks, SliceMeters};
use crate::sys::{self, ChildProcess, PeerSignal, ResetSignal, SharedValue};

/// Prepares the call of that name beside a process that sleeps. An error if the processor has no
/// time-stamp counter.
fn prepare(
    calls: impl IntoIterator<Item = &'static RegisteredCall>,
    name: &str,
) -> Result<(&'static RegisteredCall, Box<dyn TimedCall>, ChildProcess), TrialError> {
    let Some(call) = calls.into_iter().find(|call| call.name == name) else {
        return Err(TrialError(format!(
            "no call named '{name}' is known (see `switchcost clock overhead --help`)"
        )));
    };
    let sleeper = ChildProcess::asleep().map_err(TrialError::at("fork"))?;
    threadclock::time_stamp_ordered().ok_or_else(TrialError::no_counter)?;
    match (call.ready)(&sleeper) {
        Ok(timed_call) => Ok((call, timed_call, sleeper)),
        Err(why) => Err(TrialError(format!("{name} is not available: {why}"))),
    }
}

/// Makes the calls of the warm-up; returns the nanoseconds of one call.
fn warm_up_call(call: &mut dyn TimedCall) -> Result<f64, TrialError> {
    warm_up(WARM_UP_CALLS, |calls| {
        call.make_all(calls);
        Ok(())
    })
}

/// Times a call that reads a clock or a count: single calls, empty pairs of time stamps, and
/// batches.
pub(super) fn time_calls(name: &str, trials: u32) -> Result<TrialOutcome, TrialError> {
    let (_, mut call, _sleeper) = prepare(CALLS, name)?;
    let call = &mut *call;
    // All room is allocated before: between two calls nothing is allocated and no page faults.
    let batches = trials.div_ceil(BATCH_CALLS).max(1);
    let [mut singles, mut empties, mut batched] =
        [trials, trials, batches].map(|values| touched_room(values, i64::MAX));
    let call_ns = warm_up_call(call)?;
    let pair_ns = warm_up(WARM_UP_CALLS, |pairs| {
        for _ in 0..pairs {
            std::hint::black_box((EmptyCall.single(), call.single()));
        }
        Ok(())
    })?;
    let mut one_by_one = SlicedLoop::new(trials, pair_ns);
    one_by_one.run(&SliceMeters::clocks_only(MemberClocks::ThisProcess), |calls| {
        for _ in 0..calls {
            empties.push(EmptyCall.single());
            singles.push(call.single());
        }
        Ok(())
    })?;
    let mut in_a_row = SlicedLoop::new(batches, f64::from(BATCH_CALLS) * call_ns);
    in_a_row.run(&SliceMeters::clocks_only(MemberClocks::ThisProcess), |batches| {
        for _ in 0..batches {
            batched.push(call.batch());
        }
        Ok(())
    })?;
    let mut outcome = TrialOutcome::default();
    one_by_one.add_to(&mut outcome, &[(CALL_TICKS, &singles), (EMPTY_TICKS, &empties)]);
    in_a_row.add_to(&mut outcome, &[(BATCH_TICKS, &batched)]);
    Ok(outcome)
}

/// Times a system call or a signal within one process: batches, each with an empty batch before it.
/// Counts how often a batch enters the kernel.
pub(super) fn time_loop(name: &str, trials: u32) -> Result<TrialOutcome, TrialError> {
    let (registered, mut call, sleeper) = prepare(LOOPS.into_iter().flatten(), name)?;
    let call = &mut *call;
    let batches = trials.div_ceil(BATCH_CALLS).max(1);
    let (mut full, mut empty) = (touched_room(batches, i64::MAX), touched_room(batches, i64::MAX));
    let caught_before = sys::caught();
    let mut accounts = LoopAccounts::open();
    let call_ns = accounts.around(|| warm_up_call(call))?;
    // The time of an empty batch is negligible beside that of a batch of calls.
    let mut cut = SlicedLoop::new(batches, f64::from(BATCH_CALLS) * call_ns);
    cut.run(&SliceMeters::clocks_only(MemberClocks::ThisProcess), |batches| {
        accounts.around(|| {
            for _ in 0..batches {
                empty.push(EmptyCall.batch());
                full.push(call.batch());
            }
        });
        Ok(())
    })?;
    let mut outcome = TrialOutcome::default();
    accounts.close(None, &mut outcome);
    let calls = u64::from(WARM_UP_CALLS) + u64::from(batches) * u64::from(BATCH_CALLS);
    outcome.count(MADE, calls as i64);
    if name == SIGNAL_SELF {
        let caught = sys::caught() - caught_before;
        if caught != calls {
            return Err(not_caught(calls, caught));
        }
        outcome.count(CAUGHT, caught as i64);
    }
    if let Some(entries) = count_kernel_entries(registered, &sleeper) {
        outcome.count(KERNEL_ENTRIES, entries);
        outcome.count(ENTERED_CALLS, i64::from(BATCH_CALLS));
    }
    cut.add_to(&mut outcome, &[(BATCH_TICKS, &full), (EMPTY_BATCH_TICKS, &empty)]);
    Ok(outcome)
}

/// Builds the error that not every signal was caught once.
fn not_caught(sent: u64, caught: u64) -> TrialError {
    TrialError(format!(
        "of {sent} signals that were sent {caught} were caught: each should be caught once"
    ))
}

/// Counts how often a batch enters the kernel, in a traced child, which prepares the call once
/// without and once with a batch. Returns `None` if no child can be traced.
fn count_kernel_entries(call: &RegisteredCall, sleeper: &ChildProcess) -> Option<i64> {
    let with_batch = count_entries_of_child(call, sleeper, true)?;
    let without_batch = count_entries_of_child(call, sleeper, false)?;
    Some(with_batch - without_batch)
}

/// Counts how often a child enters the kernel that prepares the call, and makes a batch of it.
fn count_entries_of_child(
    call: &RegisteredCall,
    sleeper: &ChildProcess,
    with_batch: bool,
) -> Option<i64> {
    let counts = sys::count_syscalls(|| {
        // Prepared in the child: a signal of the parent's call would go to the parent.
        let prepared = (call.ready)(sleeper);
        if with_batch {
            if let Ok(mut timed_call) = prepared {
                timed_call.batch();
            }
        }
    });
    Some(counts.ok()?.values().sum::<u64>() as i64)
}

/// Seconds after which a batch is taken for hung: a hundred loops last a millisecond.
const BATCH_DEADLINE_S: u32 = 60;

/// Times twosig of the memorandum (VENIX 1984): two processes on one CPU send each other a signal,
/// whose handler installs itself again and answers; between signals each pauses. The memorandum's
/// pause could lose a wake-up between the test and the call; sigsuspend(2) unblocks the signal and
/// waits in one call.
pub(super) fn time_two_processes(trials: u32) -> Result<TrialOutcome, TrialError> {
    threadclock::time_stamp_ordered().ok_or_else(TrialError::no_counter)?;
    let batches = (trials / TWO_PROCESS_SHARE).div_ceil(BATCH_CALLS).max(1);
    let loops = u64::from(WARM_UP_CALLS) + u64::from(batches) * u64::from(BATCH_CALLS);
    let mut ticks = touched_room(batches, i64::MAX);
    let answered = SharedValue::<AtomicU32>::new().map_err(TrialError::at("mmap"))?;
    let mut accounts = LoopAccounts::open();
    let peer_signal = PeerSignal::<ResetSignal>::new().map_err(TrialError::at("sigaction"))?;
    sys::watch_members().map_err(TrialError::at("timer_create"))?;
    let parent = std::process::id() as i32;
    let peer = ChildProcess::start(|| {
        peer_signal.answer(parent, loops);
        answered.store(sys::caught() as u32, Ordering::Release);
    })
    .map_err(TrialError::at("fork"))?;
    let caught_before = sys::caught();
    sys::set_deadline(BATCH_DEADLINE_S);
    let loop_ns = accounts.around(|| {
        warm_up(WARM_UP_CALLS, |loops| peer_signal.exchange(peer.pid(), loops).map_err(lost))
    })?;
    // The second process waits for a signal while the quanta run.
    let mut cut = SlicedLoop::new(batches, f64::from(BATCH_CALLS) * loop_ns);
    cut.run(&SliceMeters::clocks_only(MemberClocks::WithProcesses(vec![peer.pid()])), |batches| {
        accounts.around(|| {
            for _ in 0..batches {
                sys::set_deadline(BATCH_DEADLINE_S);
                let start = stamp();
                peer_signal.exchange(peer.pid(), BATCH_CALLS).map_err(lost)?;
                ticks.push(stamp().wrapping_sub(start) as i64);
            }
            Ok(())
        })
    })?;
    // Its clocks can be read until it is reaped.
    peer.wait();
    let child_times = read_cpu_times(peer.pid());
    let ended = peer.join();
    sys::unwatch_members();
    if !ended {
        return Err(lost(Errno::CHILD));
    }
    let mut outcome = TrialOutcome::default();
    let switches = accounts.close(child_times, &mut outcome);
    let caught = sys::caught() - caught_before;
    let answered = u64::from(answered.load(Ordering::Acquire));
    if caught != loops || answered != loops {
        return Err(not_caught(2 * loops, caught + answered));
    }
    outcome.count(MADE, loops as i64);
    outcome.count(CAUGHT, (caught + answered) as i64);
    outcome.count(LOOP_SWITCHES, switches as i64);
    cut.add_to(&mut outcome, &[(BATCH_TICKS, &ticks)]);
    Ok(outcome)
}

/// Builds the error that the second process ended too early.
fn lost(_: Errno) -> TrialError {
    TrialError::lost("second process", "it ended before its last signal")
}

#[cfg(test)]
mod tests {

    use super::super::calls::SYSTEM_CALLS;
    use super::*;

    #[test]
    fn each_loop_makes_its_calls_and_no_other() {
        let other = ChildProcess::asleep().unwrap();
        let entries = |call: &RegisteredCall| count_kernel_entries(call, &other);
        if entries(&SYSTEM_CALLS[0]).is_none() {
            return testing::skip(testing::Need::Ptrace, "a child cannot be traced here");
        }
        for call in LOOPS.into_iter().flatten() {
            let each = match call.name {
                "clock-gettime-vdso" => continue,
                // kill, sigaction and the return from the handler: the memorandum's three.
                SIGNAL_SELF => 3,
                _ => 1,
            };
            assert_eq!(entries(call), Some(each * i64::from(BATCH_CALLS)), "{}", call.name);
        }
        let nothing =
            RegisteredCall { name: "nothing", summary: "", ready: |_| Ok(Box::new(EmptyCall)) };
        assert_eq!(entries(&nothing), Some(0));
    }
}
