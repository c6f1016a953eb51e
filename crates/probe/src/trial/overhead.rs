//! What a call that reads a clock or a count costs: one at a time between two time stamps, and many one after
//! the other. What each call provides, and all that there are.

use std::convert::Infallible;
use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;

use model::trial::overhead::{BATCH_CALLS, BATCH_TICKS, CALL_TICKS, EMPTY_TICKS};
use threadclock::{CoreClock, ThreadClock, Tier};

use super::timing::{Cut, WARM_UP, batch, room, stamp, warm_up};
use super::{Outcome, TrialError};
use crate::child::Child;
use crate::sys::{self, CpuClock, Whose};

/// A call that is timed.
pub(super) trait Call: Sized {
    /// Its name in tables and files.
    const NAME: &'static str;
    /// What it reads, and how.
    const SUMMARY: &'static str;

    /// Makes it ready; or why it is not available. `other` is a process that sleeps.
    fn ready(other: &Child) -> Result<Self, String>;

    /// Makes it once. In the timed loop: the call and nothing else.
    fn make(&mut self);

    /// Signals that its handler has caught in this process, for a call that sends some.
    fn caught() -> Option<u64> {
        None
    }
}

/// A call: its type, its name, what it reads, and what is timed. Most need nothing made ready; of the others
/// the type tells what is kept, `ready` how it is made ready beside another process, `call` what is timed of it.
macro_rules! call {
    ($type:ident, $name:expr, $summary:literal, $make:expr) => {
        call!($type(()), $name, $summary, ready(_other) Ok(()), call(_kept) $make);
    };
    (
        $type:ident($kept:ty), $name:expr, $summary:literal,
        ready($other:ident) $ready:expr, call($state:ident) $make:expr
    ) => {
        pub(super) struct $type($kept);
        impl Call for $type {
            const NAME: &'static str = $name;
            const SUMMARY: &'static str = $summary;
            fn ready($other: &Child) -> Result<Self, String> {
                let made: Result<$kept, String> = $ready;
                made.map(Self)
            }
            #[inline(always)]
            fn make(&mut self) {
                let $state = &mut self.0;
                let _ = black_box($make);
            }
        }
    };
}
pub(super) use call;

call!(Stamp, "time-stamp", "the bare counter (RDTSC, CNTVCT_EL0)", threadclock::time_stamp());
call!(
    StampOrdered,
    "time-stamp-ordered",
    "the same between two fences (LFENCE, ISB)",
    threadclock::time_stamp_ordered()
);
call!(Monotonic, "monotonic", "clock_gettime(CLOCK_MONOTONIC), by the vDSO", sys::monotonic_ns());
call!(
    ThreadCpu,
    "thread-cputime",
    "clock_gettime(CLOCK_THREAD_CPUTIME_ID)",
    sys::own_thread_cpu_ns()
);
call!(
    ProcessCpu,
    "process-cputime",
    "clock_gettime(CLOCK_PROCESS_CPUTIME_ID)",
    sys::own_process_cpu_ns()
);
call!(UsageSelf, "getrusage", "getrusage(RUSAGE_SELF)", sys::usage(Whose::Own));
call!(UsageThread, "getrusage-thread", "getrusage(RUSAGE_THREAD)", sys::usage(Whose::Thread));
call!(Times, "times", "times(2)", sys::times());
call!(Convenient, "threadclock-now", "threadclock::now(), without a handle", threadclock::now());
call!(InfoSelf, "getpinfo-self", "getpinfo(0): the caller", threadclock::getpinfo(0).ok());
call!(
    OtherCpu(i32), "other-cputime", "clock_gettime of another process's CPU clock",
    ready(other) Ok(other.pid()), call(pid) sys::cpu_clock_ns(*pid, false, CpuClock::Precise)
);
call!(
    Schedstat(String), "schedstat",
    "/proc/PID/schedstat of another process: open, read, close",
    ready(other) open_schedstat(other).map(|(path, _)| path), call(path) {
        let mut text = [0; 96];
        let file = File::open(&*path);
        let _ = black_box(file.and_then(|file| file.read_at(&mut text, 0)));
        text
    }
);
call!(
    SchedstatOpen(File), "schedstat-open", "the same file kept open: one pread",
    ready(other) open_schedstat(other).map(|(_, file)| file), call(file) {
        let mut text = [0; 96];
        let _ = black_box(file.read_at(&mut text, 0));
        text
    }
);
call!(
    ByRseq(ThreadClock), "threadclock-rseq", "threadclock, rseq tier: now()",
    ready(_other) clock(Tier::Rseq), call(clock) clock.now()
);
call!(
    ByRseqOrdered(ThreadClock), "threadclock-rseq-ordered",
    "threadclock, rseq tier: now_ordered()",
    ready(_other) clock(Tier::Rseq), call(clock) clock.now_ordered()
);
call!(
    ByPerfPage(ThreadClock), "threadclock-perf-page", "threadclock, perf page tier: now()",
    ready(_other) clock(Tier::PerfPage), call(clock) clock.now()
);
call!(
    BySystemCall(ThreadClock), "threadclock-system-call",
    "threadclock, system call tier: now()",
    ready(_other) clock(Tier::SystemCall), call(clock) clock.now()
);
call!(
    ByKernel(ThreadClock), "threadclock-kernel", "threadclock, kernel tier: now()",
    ready(_other) clock(Tier::Kernel), call(clock) clock.now()
);
call!(
    ByCounter(CoreClock), "threadclock-core-cycles",
    "threadclock's CoreClock: a hardware counter by RDPMC",
    ready(_other) CoreClock::for_this_thread().map_err(|why| why.to_string()),
    call(clock) clock.now()
);
// The system call of a patched kernel (kernel/README.md): the paper's own.
call!(
    CallSelf(()), "getpinfo-call",
    "getpinfo() as a system call of a patched kernel: the caller",
    ready(_other) threadclock::pinfo::available().map_err(|why| why.to_string()),
    call(_kept) threadclock::pinfo::thread(0)
);
call!(
    CallProcess(i32), "getpinfo-call-process",
    "the same of another process, its dead threads included",
    ready(other) {
        threadclock::pinfo::available().map_err(|why| why.to_string()).map(|()| other.pid())
    },
    call(pid) threadclock::pinfo::process(*pid)
);
call!(
    InfoOther(i32), "getpinfo-other",
    "getpinfo(pid) of another process's first thread: its schedstat",
    ready(other) told_by(other, threadclock::getpinfo), call(pid) threadclock::getpinfo(*pid)
);
call!(
    InfoProcess(i32), "getpinfo-process",
    "getpinfo_process(pid) of another process: its CPU clock",
    ready(other) told_by(other, threadclock::getpinfo_process),
    call(pid) threadclock::getpinfo_process(*pid)
);

/// Where the kernel says for how long a task ran, waited, and how often it was switched in.
fn open_schedstat(other: &Child) -> Result<(String, File), String> {
    let path = format!("/proc/{}/schedstat", other.pid());
    match File::open(&path) {
        Ok(file) => Ok((path, file)),
        Err(error) => Err(format!("{path}: {error}")),
    }
}

fn clock(tier: Tier) -> Result<ThreadClock, String> {
    ThreadClock::with_tier(tier).map_err(|why| why.to_string())
}

/// The id of a process of which `call` tells.
fn told_by<T>(
    other: &Child,
    call: impl Fn(i32) -> Result<T, threadclock::Error>,
) -> Result<i32, String> {
    call(other.pid()).map(|_| other.pid()).map_err(|error| error.to_string())
}

/// A call as the registry knows it.
pub struct Registered {
    /// Its name in tables and files.
    pub name: &'static str,
    /// What it reads, and how.
    pub summary: &'static str,
    time: Time,
    ready: fn(&Child) -> Option<String>,
}

type Time = fn(u32, &Child) -> Result<Outcome, TrialError>;

impl Registered {
    /// A call that is timed by `time`.
    pub(super) const fn new<C: Call>(time: Time) -> Self {
        let ready = |other: &Child| C::ready(other).err();
        Self { name: C::NAME, summary: C::SUMMARY, time, ready }
    }
}

const fn register<C: Call>() -> Registered {
    Registered::new::<C>(time::<C>)
}

/// Every call there is. A new one is an implementation of `Call` and a line here.
pub const CALLS: &[Registered] = &[
    register::<Stamp>(),
    register::<StampOrdered>(),
    register::<ByRseq>(),
    register::<ByRseqOrdered>(),
    register::<ByPerfPage>(),
    register::<ByCounter>(),
    register::<BySystemCall>(),
    register::<ByKernel>(),
    register::<Convenient>(),
    register::<InfoSelf>(),
    register::<InfoProcess>(),
    register::<InfoOther>(),
    register::<CallSelf>(),
    register::<CallProcess>(),
    register::<Monotonic>(),
    register::<ThreadCpu>(),
    register::<ProcessCpu>(),
    register::<OtherCpu>(),
    register::<UsageSelf>(),
    register::<UsageThread>(),
    register::<Times>(),
    register::<Schedstat>(),
    register::<SchedstatOpen>(),
];

/// Of these calls the ones that this machine has, and for each other one why not. Forks: the calling
/// process must be single-threaded.
pub fn available(
    calls: &'static [Registered],
) -> Result<Vec<(&'static Registered, Option<String>)>, TrialError> {
    let other = Child::asleep().map_err(TrialError::at("fork"))?;
    Ok(calls.iter().map(|call| (call, (call.ready)(&other))).collect())
}

/// The call of that name, timed, beside a process that sleeps.
pub(super) fn time_named(
    calls: impl IntoIterator<Item = &'static Registered>,
    name: &str,
    trials: u32,
) -> Result<Outcome, TrialError> {
    let call = calls.into_iter().find(|call| call.name == name);
    let call = call.ok_or_else(|| TrialError::UnknownCall(name.to_string()))?;
    (call.time)(trials, &Child::asleep().map_err(TrialError::at("fork"))?)
}

pub(super) fn run(name: &str, trials: u32) -> Result<Outcome, TrialError> {
    time_named(CALLS, name, trials)
}

/// A call of this kind, made ready, on a processor that can time it.
pub(super) fn ready<C: Call>(other: &Child) -> Result<C, TrialError> {
    let unavailable = |why| TrialError::Other(format!("{} is not available: {why}", C::NAME));
    let call = C::ready(other).map_err(unavailable)?;
    threadclock::time_stamp_ordered().ok_or(TrialError::NoCounter)?;
    Ok(call)
}

fn time<C: Call>(trials: u32, other: &Child) -> Result<Outcome, TrialError> {
    let mut call = ready::<C>(other)?;
    // Room for all before the first: nothing is allocated between two calls, and no page faulted.
    let batches = trials.div_ceil(BATCH_CALLS).max(1);
    let (mut singles, mut empties, mut batched) = (room(trials), room(trials), room(batches));
    let Ok(call_ns) = warm_up(WARM_UP, |calls| {
        (0..calls).for_each(|_| call.make());
        Ok::<(), Infallible>(())
    });
    let Ok(pair_ns) = warm_up(WARM_UP, |pairs| {
        (0..pairs).for_each(|_| {
            black_box((empty(), single(&mut call)));
        });
        Ok::<(), Infallible>(())
    });
    let mut one_by_one = Cut::new(trials, pair_ns);
    let Ok(()) = one_by_one.run(|calls| {
        for _ in 0..calls {
            empties.push(empty());
            singles.push(single(&mut call));
        }
        Ok::<(), Infallible>(())
    });
    let mut in_a_row = Cut::new(batches, f64::from(BATCH_CALLS) * call_ns);
    let Ok(()) = in_a_row.run(|batches| {
        (0..batches).for_each(|_| batched.push(batch(&mut call)));
        Ok::<(), Infallible>(())
    });
    Ok(Outcome::default()
        .with_slices(one_by_one, &[(CALL_TICKS, &singles), (EMPTY_TICKS, &empties)])
        .with_slices(in_a_row, &[(BATCH_TICKS, &batched)]))
}

/// Ticks of one call. Measured code.
#[inline(never)]
fn single<C: Call>(call: &mut C) -> i64 {
    let start = stamp();
    call.make();
    stamp().wrapping_sub(start) as i64
}

/// Ticks of nothing. Measured code.
#[inline(never)]
fn empty() -> i64 {
    let start = stamp();
    stamp().wrapping_sub(start) as i64
}
