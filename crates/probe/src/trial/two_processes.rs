//! The memorandum's twosig (VENIX 1984): two processes on one CPU send each other a signal, whose
//! handler installs itself again and answers; between signals each pauses. Its pause could lose a
//! wake-up, between the test and the call; sigsuspend(2) lets the signal in and waits in one.

use model::trial::loops::{CALLS, CAUGHT, LOOP_SWITCHES, TWO_PROCESS_SHARE};
use model::trial::overhead::{BATCH_CALLS, BATCH_TICKS};

use super::batch::{WARM_UP, stamp};
use super::companion::Companion;
use super::slices::{Cut, room, warm_up};
use super::usage::{Accounts, Clocks, Switches};
use super::{Outcome, TrialError};
use crate::sys::{self, EventCount, Pause, Shared};

/// Seconds until a batch is taken for hung: a hundred loops last a millisecond.
const PATIENCE_S: u32 = 60;

pub(super) fn run(trials: u32) -> Result<Outcome, TrialError> {
    threadclock::time_stamp_ordered().ok_or(TrialError::NoCounter)?;
    let refused = |call| move |errno| TrialError::Refused { call, errno };
    let batches = (trials / TWO_PROCESS_SHARE).div_ceil(BATCH_CALLS).max(1);
    let loops = u64::from(WARM_UP) + u64::from(batches) * u64::from(BATCH_CALLS);
    let mut ticks = room(batches);
    let answered = Shared::<EventCount>::new().map_err(refused("mmap"))?;
    let mut accounts = Accounts::open();
    let pause = Pause::new().map_err(refused("sigaction"))?;
    sys::watch_members().map_err(refused("timer_create"))?;
    let parent = std::process::id() as i32;
    let other = Companion::start(|| {
        pause.answer(parent, loops);
        answered.0.store(sys::caught() as u32, std::sync::atomic::Ordering::Release);
    })
    .map_err(TrialError::Fork)?;
    let lost = || TrialError::Lost {
        process: "second process",
        why: "it ended before its last signal".to_string(),
    };
    let caught_before = sys::caught();
    sys::deadline(PATIENCE_S);
    let loop_ns = accounts.around(|| {
        warm_up(WARM_UP, |loops| pause.exchange(other.pid(), loops).map_err(|_| lost()))
    })?;
    // The second process waits for a signal while the quanta run.
    let mut cut = Cut::new(batches, f64::from(BATCH_CALLS) * loop_ns);
    cut.run(|batches| {
        accounts.around(|| {
            for _ in 0..batches {
                sys::deadline(PATIENCE_S);
                let start = stamp();
                pause.exchange(other.pid(), BATCH_CALLS).map_err(|_| lost())?;
                ticks.push(stamp().wrapping_sub(start) as i64);
            }
            Ok(())
        })
    })?;
    // Before it is reaped, with its clocks.
    other.wait();
    let used = Clocks::of(other.pid()).ok();
    let ended = other.join();
    sys::unwatch_members();
    if !ended {
        return Err(lost());
    }
    let mut outcome = Outcome::default();
    let Switches(switches) = accounts.close(used, &mut outcome);
    let caught = sys::caught() - caught_before;
    let answered = u64::from(answered.0.load(std::sync::atomic::Ordering::Acquire));
    if caught != loops || answered != loops {
        return Err(TrialError::NotCaught { sent: 2 * loops, caught: caught + answered });
    }
    outcome.count(CALLS, loops as i64);
    outcome.count(CAUGHT, (caught + answered) as i64);
    outcome.count(LOOP_SWITCHES, switches as i64);
    Ok(outcome.with_slices(cut, &[(BATCH_TICKS, &ticks)]))
}
