//! What a call costs: one at a time between two time stamps, and many one after the other, with the
//! empty loop of the same frame beside them. Then the memorandum's twosig (VENIX 1984), which takes
//! two processes.

use std::sync::atomic::{AtomicU32, Ordering};

use model::trial::loops::{
    CALLS as MADE, CAUGHT, EMPTY_BATCH_TICKS, ENTERED_CALLS, KERNEL_ENTRIES, LOOP_SWITCHES,
    SIGNAL_SELF, TWO_PROCESS_SHARE,
};
use model::trial::overhead::{BATCH_CALLS, BATCH_TICKS, CALL_TICKS, EMPTY_TICKS};

use super::calls::{CALLS, EmptyCall, LOOPS, RegisteredCall, TimedCall, stamp};
use super::harness::{TrialError, TrialOutcome, room};
use super::timing::{LoopAccounts, SlicedLoop, WARM_UP, clocks_of, warm_up};
use crate::ring::{MemberClocks, SliceMeters};
use crate::sys::{self, ChildProcess, PeerSignal, ResetSignal, SharedValue};

/// The call of that name, made ready beside a process that sleeps, on a processor that can time it.
fn ready(
    calls: impl IntoIterator<Item = &'static RegisteredCall>,
    name: &str,
) -> Result<(&'static RegisteredCall, Box<dyn TimedCall>, ChildProcess), TrialError> {
    let other = |why| Err(TrialError(why));
    let Some(call) = calls.into_iter().find(|call| call.name == name) else {
        return other(format!(
            "no call named '{name}' is known (see `switchcost clock overhead --help`)"
        ));
    };
    let beside = ChildProcess::asleep().map_err(TrialError::at("fork"))?;
    threadclock::time_stamp_ordered().ok_or_else(TrialError::no_counter)?;
    match (call.ready)(&beside) {
        Ok(ready) => Ok((call, ready, beside)),
        Err(why) => other(format!("{name} is not available: {why}")),
    }
}

fn warm(call: &mut dyn TimedCall) -> Result<f64, TrialError> {
    warm_up(WARM_UP, |calls| {
        call.make_all(calls);
        Ok(())
    })
}

/// A call that reads a clock or a count: single ones, empty pairs of stamps, and batches.
pub(super) fn time_calls(name: &str, trials: u32) -> Result<TrialOutcome, TrialError> {
    let (_, mut call, _beside) = ready(CALLS, name)?;
    let call = &mut *call;
    // Room for all before the first: nothing is allocated between two calls, and no page faulted.
    let batches = trials.div_ceil(BATCH_CALLS).max(1);
    let [mut singles, mut empties, mut batched] =
        [trials, trials, batches].map(|values| room(values, i64::MAX));
    let call_ns = warm(call)?;
    let pair_ns = warm_up(WARM_UP, |pairs| {
        (0..pairs).for_each(|_| {
            std::hint::black_box((EmptyCall.single(), call.single()));
        });
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
        (0..batches).for_each(|_| batched.push(call.batch()));
        Ok(())
    })?;
    let mut outcome = TrialOutcome::default();
    one_by_one.add_to(&mut outcome, &[(CALL_TICKS, &singles), (EMPTY_TICKS, &empties)]);
    in_a_row.add_to(&mut outcome, &[(BATCH_TICKS, &batched)]);
    Ok(outcome)
}

/// A system call, or what one process does with signals: batches, each with an empty one before it,
/// and how often they enter the kernel.
pub(super) fn time_loop(name: &str, trials: u32) -> Result<TrialOutcome, TrialError> {
    let (registered, mut call, beside) = ready(LOOPS.into_iter().flatten(), name)?;
    let call = &mut *call;
    let batches = trials.div_ceil(BATCH_CALLS).max(1);
    let (mut full, mut empty) = (room(batches, i64::MAX), room(batches, i64::MAX));
    let caught_before = sys::caught();
    let mut accounts = LoopAccounts::open();
    let call_ns = accounts.around(|| warm(call))?;
    // Beside a batch of calls an empty one does not count.
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
    let calls = u64::from(WARM_UP) + u64::from(batches) * u64::from(BATCH_CALLS);
    outcome.count(MADE, calls as i64);
    if name == SIGNAL_SELF {
        let caught = sys::caught() - caught_before;
        if caught != calls {
            return Err(not_caught(calls, caught));
        }
        outcome.count(CAUGHT, caught as i64);
    }
    if let Some(entries) = kernel_entries(registered, &beside) {
        outcome.count(KERNEL_ENTRIES, entries);
        outcome.count(ENTERED_CALLS, i64::from(BATCH_CALLS));
    }
    cut.add_to(&mut outcome, &[(BATCH_TICKS, &full), (EMPTY_BATCH_TICKS, &empty)]);
    Ok(outcome)
}

fn not_caught(sent: u64, caught: u64) -> TrialError {
    TrialError(format!(
        "of {sent} signals that were sent {caught} were caught: each should be caught once"
    ))
}

/// How often a batch enters the kernel: counted in a traced child, which makes itself ready once
/// without a batch and once with one. Absent where no child can be traced.
fn kernel_entries(call: &RegisteredCall, beside: &ChildProcess) -> Option<i64> {
    let entries = |with_batch: bool| {
        let counts = sys::count_syscalls(|| {
            // Its own: a signal of the parent's call would go to the parent.
            let call = (call.ready)(beside);
            if with_batch {
                call.into_iter().for_each(|mut call| {
                    call.batch();
                });
            }
        });
        counts.ok().map(|counts| counts.values().sum::<u64>() as i64)
    };
    Some(entries(true)? - entries(false)?)
}

/// Seconds until a batch is taken for hung: a hundred loops last a millisecond.
const BATCH_DEADLINE_S: u32 = 60;

/// The memorandum's twosig (VENIX 1984): two processes on one CPU send each other a signal, whose
/// handler installs itself again and answers; between signals each pauses. Its pause could lose a
/// wake-up, between the test and the call; sigsuspend(2) lets the signal in and waits in one.
pub(super) fn time_two_processes(trials: u32) -> Result<TrialOutcome, TrialError> {
    threadclock::time_stamp_ordered().ok_or_else(TrialError::no_counter)?;
    let batches = (trials / TWO_PROCESS_SHARE).div_ceil(BATCH_CALLS).max(1);
    let loops = u64::from(WARM_UP) + u64::from(batches) * u64::from(BATCH_CALLS);
    let mut ticks = room(batches, i64::MAX);
    let answered = SharedValue::<AtomicU32>::new().map_err(TrialError::at("mmap"))?;
    let mut accounts = LoopAccounts::open();
    let pause = PeerSignal::<ResetSignal>::new().map_err(TrialError::at("sigaction"))?;
    sys::watch_members().map_err(TrialError::at("timer_create"))?;
    let parent = std::process::id() as i32;
    let other = ChildProcess::start(|| {
        pause.answer(parent, loops);
        answered.store(sys::caught() as u32, Ordering::Release);
    })
    .map_err(TrialError::at("fork"))?;
    let lost = || TrialError::lost("second process", "it ended before its last signal");
    let caught_before = sys::caught();
    sys::deadline(BATCH_DEADLINE_S);
    let loop_ns = accounts.around(|| {
        warm_up(WARM_UP, |loops| pause.exchange(other.pid(), loops).map_err(|_| lost()))
    })?;
    // The second process waits for a signal while the quanta run.
    let mut cut = SlicedLoop::new(batches, f64::from(BATCH_CALLS) * loop_ns);
    cut.run(
        &SliceMeters::clocks_only(MemberClocks::WithProcesses(vec![other.pid()])),
        |batches| {
            accounts.around(|| {
                for _ in 0..batches {
                    sys::deadline(BATCH_DEADLINE_S);
                    let start = stamp();
                    pause.exchange(other.pid(), BATCH_CALLS).map_err(|_| lost())?;
                    ticks.push(stamp().wrapping_sub(start) as i64);
                }
                Ok(())
            })
        },
    )?;
    // Before it is reaped, with its clocks.
    other.wait();
    let used = clocks_of(other.pid());
    let ended = other.join();
    sys::unwatch_members();
    if !ended {
        return Err(lost());
    }
    let mut outcome = TrialOutcome::default();
    let switches = accounts.close(used, &mut outcome);
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

#[cfg(test)]
mod tests {

    use super::super::calls::SYSTEM_CALLS;
    use super::*;

    #[test]
    fn each_loop_makes_its_calls_and_no_other() {
        let other = ChildProcess::asleep().unwrap();
        let entries = |call: &RegisteredCall| kernel_entries(call, &other);
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
