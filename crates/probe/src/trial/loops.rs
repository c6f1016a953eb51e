//! One call or short sequence of calls, many times in a row, with the empty loop of the same frame
//! beside it: the memorandum's simsyscall and simsig (VENIX 1984), and more calls of their kind.

use std::convert::Infallible;
use std::fs::File;
use std::hint::black_box;
use std::os::fd::AsFd;
use std::sync::atomic::AtomicU32;

use model::trial::loops::{
    CALLS, CAUGHT, CLOCK_CALL, CLOCK_VDSO, EMPTY_BATCH_TICKS, ENTERED_CALLS, FUTEX_WAKE, GETPPID,
    GETUID, KERNEL_ENTRIES, READ, SCHED_YIELD, SIGACTION, SIGNAL_SELF, WRITE,
};
use model::trial::overhead::{BATCH_CALLS, BATCH_TICKS};
use model::trial::{Case, Trial};

use super::batch::{WARM_UP, batch};
use super::call::{Call, plain};
use super::companion::Companion;
use super::overhead::Registered;
use super::slices::{Cut, room, warm_up};
use super::usage::Accounts;
use super::{Outcome, TrialError};
use crate::sys::{self, OwnSignal};

plain!(Nothing, "nothing", "the empty loop", ());
plain!(Getuid, GETUID, "getuid by syscall(2), as the memorandum's simsyscall", sys::getuid());
plain!(Getppid, GETPPID, "getppid by syscall(2)", sys::getppid());
plain!(ClockVdso, CLOCK_VDSO, "clock_gettime(CLOCK_MONOTONIC), by the vDSO", sys::monotonic_ns());
plain!(
    ClockCall,
    CLOCK_CALL,
    "clock_gettime(CLOCK_MONOTONIC) by syscall(2)",
    sys::monotonic_ns_by_call()
);
plain!(
    SchedYield,
    SCHED_YIELD,
    "sched_yield by syscall(2), nobody else to yield to",
    sys::sched_yield()
);

/// A device that gives or takes what it is asked for.
struct Device(File);

impl Device {
    fn open(path: &str, write: bool) -> Result<Self, String> {
        let file = File::options().read(!write).write(write).open(path);
        file.map(Self).map_err(|error| format!("{path}: {error}"))
    }
}

/// read(2) of one byte.
struct Read(Device);

impl Call for Read {
    const NAME: &'static str = READ;
    const SUMMARY: &'static str = "read of one byte from /dev/zero by syscall(2)";
    fn ready(_: &Companion) -> Result<Self, String> {
        let device = Device::open("/dev/zero", false)?;
        match sys::read_byte(device.0.as_fd()) {
            1 => Ok(Self(device)),
            _ => Err("/dev/zero gives no byte".to_string()),
        }
    }
    #[inline(always)]
    fn make(&mut self) {
        black_box(sys::read_byte(self.0.0.as_fd()));
    }
}

/// write(2) of one byte.
struct Write(Device);

impl Call for Write {
    const NAME: &'static str = WRITE;
    const SUMMARY: &'static str = "write of one byte to /dev/null by syscall(2)";
    fn ready(_: &Companion) -> Result<Self, String> {
        let device = Device::open("/dev/null", true)?;
        match sys::write_byte(device.0.as_fd()) {
            1 => Ok(Self(device)),
            _ => Err("/dev/null takes no byte".to_string()),
        }
    }
    #[inline(always)]
    fn make(&mut self) {
        black_box(sys::write_byte(self.0.0.as_fd()));
    }
}

/// FUTEX_WAKE, nobody waits.
struct FutexWake(AtomicU32);

impl Call for FutexWake {
    const NAME: &'static str = FUTEX_WAKE;
    const SUMMARY: &'static str = "futex(FUTEX_WAKE, private) with no waiter by syscall(2)";
    fn ready(_: &Companion) -> Result<Self, String> {
        let word = AtomicU32::new(0);
        match sys::futex_wake(&word) {
            0 => Ok(Self(word)),
            other => Err(format!("futex(FUTEX_WAKE) answers {other}")),
        }
    }
    #[inline(always)]
    fn make(&mut self) {
        black_box(sys::futex_wake(&self.0));
    }
}

/// Installing a handler.
struct Install;

impl Call for Install {
    const NAME: &'static str = SIGACTION;
    const SUMMARY: &'static str = "installing a handler: sigaction(2)";
    fn ready(_: &Companion) -> Result<Self, String> {
        OwnSignal::install().map(|()| Self).map_err(|errno| format!("sigaction: {errno}"))
    }
    #[inline(always)]
    fn make(&mut self) {
        let _ = black_box(OwnSignal::install());
    }
}

/// The memorandum's simsig.
struct SignalSelf(OwnSignal);

impl Call for SignalSelf {
    const NAME: &'static str = SIGNAL_SELF;
    const SUMMARY: &'static str = "kill to oneself; the handler installs itself again";
    fn ready(_: &Companion) -> Result<Self, String> {
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

pub(super) fn run(case: &Case, trials: u32) -> Result<Outcome, TrialError> {
    let Trial::Loop { call: name } = &case.trial else { return Err(TrialError::WrongTrial) };
    let call = SYSTEM_CALLS.iter().chain(SIGNAL_LOOPS).find(|call| call.name == name);
    let call = call.ok_or_else(|| TrialError::UnknownCall { name: name.clone() })?;
    call.time(trials, &Companion::asleep().map_err(TrialError::Fork)?)
}

fn time<C: Call>(trials: u32, other: &Companion) -> Result<Outcome, TrialError> {
    let unavailable = |why| TrialError::Unavailable { name: C::NAME, why };
    let mut call = C::ready(other).map_err(unavailable)?;
    threadclock::time_stamp_ordered().ok_or(TrialError::NoCounter)?;
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
                empty.push(batch(&mut Nothing));
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
fn kernel_entries<C: Call>(other: &Companion) -> Option<i64> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_loop_makes_its_calls_and_no_other() {
        let other = Companion::asleep().unwrap();
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
