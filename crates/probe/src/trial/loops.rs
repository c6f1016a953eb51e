//! One call or short sequence of calls, many times in a row, with the empty loop of the same frame
//! beside it: the memorandum's simsyscall and simsig (VENIX 1984), and more calls of their kind. Then its
//! twosig, which takes two processes.

use std::convert::Infallible;
use std::fs::File;
use std::hint::black_box;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, Ordering};

use model::trial::loops::{
    CALLS, CAUGHT, CLOCK_CALL, CLOCK_VDSO, EMPTY_BATCH_TICKS, ENTERED_CALLS, FUTEX_WAKE, GETPPID,
    GETUID, KERNEL_ENTRIES, LOOP_SWITCHES, READ, SCHED_YIELD, SIGACTION, SIGNAL_SELF,
    TWO_PROCESS_SHARE, WRITE,
};
use model::trial::overhead::{BATCH_CALLS, BATCH_TICKS};

use super::overhead::{Call, Registered, call, ready, time_named};
use super::timing::{Accounts, Cut, WARM_UP, batch, clocks_of, room, stamp, warm_up};
use super::{Outcome, TrialError};
use crate::child::Child;
use crate::sys::{self, EventCount, OwnSignal, Pause, Shared};

call!(Nothing, "nothing", "the empty loop", ());
call!(Getuid, GETUID, "getuid by syscall(2), as the memorandum's simsyscall", sys::getuid());
call!(Getppid, GETPPID, "getppid by syscall(2)", sys::getppid());
call!(ClockVdso, CLOCK_VDSO, "clock_gettime(CLOCK_MONOTONIC), by the vDSO", sys::monotonic_ns());
call!(
    ClockCall,
    CLOCK_CALL,
    "clock_gettime(CLOCK_MONOTONIC) by syscall(2)",
    sys::monotonic_ns_by_call()
);
call!(
    SchedYield,
    SCHED_YIELD,
    "sched_yield by syscall(2), nobody else to yield to",
    sys::sched_yield()
);

call!(
    Read(File), READ, "read of one byte from /dev/zero by syscall(2)",
    ready(_other) device("/dev/zero", false, |file| sys::read_byte(file.as_fd())),
    call(file) sys::read_byte(file.as_fd())
);
call!(
    Write(File), WRITE, "write of one byte to /dev/null by syscall(2)",
    ready(_other) device("/dev/null", true, |file| sys::write_byte(file.as_fd())),
    call(file) sys::write_byte(file.as_fd())
);
call!(
    FutexWake(AtomicU32), FUTEX_WAKE, "futex(FUTEX_WAKE, private) with no waiter by syscall(2)",
    ready(_other) {
        let word = AtomicU32::new(0);
        match sys::futex_wake(&word) {
            0 => Ok(word),
            other => Err(format!("futex(FUTEX_WAKE) answers {other}")),
        }
    },
    call(word) sys::futex_wake(word)
);
call!(
    Install(()), SIGACTION, "installing a handler: sigaction(2)",
    ready(_other) OwnSignal::install().map_err(|errno| format!("sigaction: {errno}")),
    call(_kept) OwnSignal::install()
);

/// A device that gives or takes a byte, as `try_out` finds.
fn device(path: &str, write: bool, try_out: impl Fn(&File) -> i64) -> Result<File, String> {
    let file = File::options().read(!write).write(write).open(path);
    let file = file.map_err(|error| format!("{path}: {error}"))?;
    match try_out(&file) {
        1 => Ok(file),
        _ => Err(format!("{path} gives or takes no byte")),
    }
}

/// The memorandum's simsig.
struct SignalSelf(OwnSignal);

impl Call for SignalSelf {
    const NAME: &'static str = SIGNAL_SELF;
    const SUMMARY: &'static str = "kill to oneself; the handler installs itself again";
    fn ready(_: &Child) -> Result<Self, String> {
        OwnSignal::new().map(Self).map_err(|errno| format!("sigaction: {errno}"))
    }
    #[inline(always)]
    fn make(&mut self) {
        let _ = black_box(self.0.send());
    }
    fn caught() -> Option<u64> {
        Some(sys::caught())
    }
}

const fn register<C: Call>() -> Registered {
    Registered::new::<C>(time::<C>)
}

/// System calls. A new one is an implementation of `Call` and a line here.
pub const SYSTEM_CALLS: &[Registered] = &[
    register::<Getuid>(),
    register::<Getppid>(),
    register::<Read>(),
    register::<Write>(),
    register::<ClockVdso>(),
    register::<ClockCall>(),
    register::<FutexWake>(),
    register::<SchedYield>(),
];

/// What one process does with signals.
pub const SIGNAL_LOOPS: &[Registered] = &[register::<Install>(), register::<SignalSelf>()];

pub(super) fn run(name: &str, trials: u32) -> Result<Outcome, TrialError> {
    time_named(SYSTEM_CALLS.iter().chain(SIGNAL_LOOPS), name, trials)
}

fn time<C: Call>(trials: u32, other: &Child) -> Result<Outcome, TrialError> {
    let mut call = ready::<C>(other)?;
    let batches = trials.div_ceil(BATCH_CALLS).max(1);
    // Room for all before the first: nothing is allocated between two batches, and no page faulted.
    let (mut full, mut empty) = (room(batches), room(batches));
    let caught_before = C::caught();
    let mut accounts = Accounts::open();
    let Ok(call_ns) = accounts.around(|| {
        warm_up(WARM_UP, |calls| {
            (0..calls).for_each(|_| call.make());
            Ok::<(), Infallible>(())
        })
    });
    // Beside a batch of calls an empty one does not count.
    let mut cut = Cut::new(batches, f64::from(BATCH_CALLS) * call_ns);
    let Ok(()) = cut.run(|batches| {
        accounts.around(|| {
            for _ in 0..batches {
                empty.push(batch(&mut Nothing(())));
                full.push(batch(&mut call));
            }
        });
        Ok::<(), Infallible>(())
    });
    let mut outcome = Outcome::default();
    accounts.close(None, &mut outcome);
    let calls = u64::from(WARM_UP) + u64::from(batches) * u64::from(BATCH_CALLS);
    outcome.count(CALLS, calls as i64);
    if let Some((before, after)) = caught_before.zip(C::caught()) {
        let (sent, caught) = (calls, after - before);
        if sent != caught {
            return Err(TrialError::NotCaught { sent, caught });
        }
        outcome.count(CAUGHT, caught as i64);
    }
    if let Some(entries) = kernel_entries::<C>(other) {
        outcome.count(KERNEL_ENTRIES, entries);
        outcome.count(ENTERED_CALLS, i64::from(BATCH_CALLS));
    }
    Ok(outcome.with_slices(cut, &[(BATCH_TICKS, &full), (EMPTY_BATCH_TICKS, &empty)]))
}

/// How often a batch enters the kernel: counted in a traced child, which makes itself ready once
/// without a batch and once with one. Absent where no child can be traced.
fn kernel_entries<C: Call>(other: &Child) -> Option<i64> {
    let entries = |with_batch: bool| {
        let counts = sys::count_syscalls(|| {
            // Its own: a signal of the parent's call would go to the parent.
            let call = C::ready(other);
            if with_batch {
                call.into_iter().for_each(|mut call| {
                    batch(&mut call);
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
pub(super) fn run_two_processes(trials: u32) -> Result<Outcome, TrialError> {
    threadclock::time_stamp_ordered().ok_or(TrialError::NoCounter)?;
    let batches = (trials / TWO_PROCESS_SHARE).div_ceil(BATCH_CALLS).max(1);
    let loops = u64::from(WARM_UP) + u64::from(batches) * u64::from(BATCH_CALLS);
    let mut ticks = room(batches);
    let answered = Shared::<EventCount>::new().map_err(TrialError::at("mmap"))?;
    let mut accounts = Accounts::open();
    let pause = Pause::new().map_err(TrialError::at("sigaction"))?;
    sys::watch_members().map_err(TrialError::at("timer_create"))?;
    let parent = std::process::id() as i32;
    let other = Child::start(|| {
        pause.answer(parent, loops);
        answered.0.store(sys::caught() as u32, Ordering::Release);
    })
    .map_err(TrialError::at("fork"))?;
    let lost = || TrialError::Lost {
        process: "second process",
        why: "it ended before its last signal".to_string(),
    };
    let caught_before = sys::caught();
    sys::deadline(BATCH_DEADLINE_S);
    let loop_ns = accounts.around(|| {
        warm_up(WARM_UP, |loops| pause.exchange(other.pid(), loops).map_err(|_| lost()))
    })?;
    // The second process waits for a signal while the quanta run.
    let mut cut = Cut::new(batches, f64::from(BATCH_CALLS) * loop_ns);
    cut.run(|batches| {
        accounts.around(|| {
            for _ in 0..batches {
                sys::deadline(BATCH_DEADLINE_S);
                let start = stamp();
                pause.exchange(other.pid(), BATCH_CALLS).map_err(|_| lost())?;
                ticks.push(stamp().wrapping_sub(start) as i64);
            }
            Ok(())
        })
    })?;
    // Before it is reaped, with its clocks.
    other.wait();
    let used = clocks_of(other.pid());
    let ended = other.join();
    sys::unwatch_members();
    if !ended {
        return Err(lost());
    }
    let mut outcome = Outcome::default();
    let switches = accounts.close(used, &mut outcome);
    let caught = sys::caught() - caught_before;
    let answered = u64::from(answered.0.load(Ordering::Acquire));
    if caught != loops || answered != loops {
        return Err(TrialError::NotCaught { sent: 2 * loops, caught: caught + answered });
    }
    outcome.count(CALLS, loops as i64);
    outcome.count(CAUGHT, (caught + answered) as i64);
    outcome.count(LOOP_SWITCHES, switches as i64);
    Ok(outcome.with_slices(cut, &[(BATCH_TICKS, &ticks)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_loop_makes_its_calls_and_no_other() {
        let other = Child::asleep().unwrap();
        let trace = |expected: &[(Option<i64>, i64)]| {
            for (found, calls) in expected {
                assert_eq!(*found, Some(calls * i64::from(BATCH_CALLS)));
            }
        };
        if kernel_entries::<Nothing>(&other).is_none() {
            eprintln!("skipped: a child cannot be traced here (ptrace)");
            return;
        }
        trace(&[
            (kernel_entries::<Nothing>(&other), 0),
            (kernel_entries::<Getuid>(&other), 1),
            (kernel_entries::<Getppid>(&other), 1),
            (kernel_entries::<Read>(&other), 1),
            (kernel_entries::<Write>(&other), 1),
            (kernel_entries::<ClockCall>(&other), 1),
            (kernel_entries::<FutexWake>(&other), 1),
            (kernel_entries::<SchedYield>(&other), 1),
            (kernel_entries::<Install>(&other), 1),
            // kill, sigaction and the return from the handler: the memorandum's three.
            (kernel_entries::<SignalSelf>(&other), 3),
        ]);
    }
}
