//! Lists of the calls that are timed: calls that read a clock or a count, system calls, and signals
//! within one process (simsyscall and simsig of the memorandum, VENIX 1984, and more of their
//! kind).

use std::fs::File;
use std::hint::black_box;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicU32;

use rundata::trial::loops::{GETUID, SIGACTION, SIGNAL_SELF};
use rundata::trial::overhead::BATCH_CALLS;
use threadclock::{CoreClock, ThreadClock, Tier};

use super::harness::TrialError;
use crate::sys::{self, ChildProcess, CpuClock, OwnSignal, ResetSignal, UsageScope};

/// A call that is ready to be timed.
pub(super) trait TimedCall {
    /// Makes the call once. Runs in the timed loops: the call and nothing else.
    fn make(&mut self);

    /// Makes the call `calls` times, untimed.
    fn make_all(&mut self, calls: u32) {
        (0..calls).for_each(|_| self.make());
    }

    /// Returns the ticks of one call. Measured code.
    #[inline(never)]
    fn single(&mut self) -> i64 {
        let start = stamp();
        self.make();
        stamp().wrapping_sub(start) as i64
    }

    /// Returns the ticks of a batch. Measured code. The length is hidden from the compiler, which
    /// would unroll the loop of one call and not that of another.
    #[inline(never)]
    fn batch(&mut self) -> i64 {
        let start = stamp();
        for _ in 0..black_box(BATCH_CALLS) {
            self.make();
        }
        stamp().wrapping_sub(start) as i64
    }
}

/// Reads the time-stamp counter in order. Callers have checked that there is one.
#[inline(always)]
pub(super) fn stamp() -> u64 {
    threadclock::time_stamp_ordered().unwrap_or(0)
}

/// The empty loop.
pub(super) struct EmptyCall;

impl TimedCall for EmptyCall {
    #[inline(always)]
    fn make(&mut self) {
        black_box(());
    }
}

/// Entry of a call in the lists of calls.
pub struct RegisteredCall {
    /// Name in tables and files.
    pub name: &'static str,
    /// Description of what it reads or does, and how.
    pub summary: &'static str,
    /// Prepares the call beside a process that sleeps. The error says why it is not available.
    pub(super) ready: fn(&ChildProcess) -> Result<Box<dyn TimedCall>, String>,
}

/// Tries these calls. Returns for each why this machine does not have it, or `None` if it does.
/// Forks: the calling process must be single-threaded.
pub fn available(
    calls: &'static [RegisteredCall],
) -> Result<Vec<(&'static RegisteredCall, Option<String>)>, TrialError> {
    let sleeper = ChildProcess::asleep().map_err(TrialError::at("fork"))?;
    Ok(calls.iter().map(|call| (call, (call.ready)(&sleeper).err())).collect())
}

/// Builds the entry of a call: its name, its description, and the expression that is timed. A call
/// that needs a prepared value also names, before that, the value's type and how it is prepared
/// beside another process.
macro_rules! call {
    ($name:expr, $summary:literal => $make:expr) => {
        call!($name, $summary, () = |_other| Ok(()) => |_kept| $make)
    };
    ($name:expr, $summary:literal, $kept:ty = |$other:ident| $ready:expr => |$state:ident| $make:expr) => {{
        struct ReadyCall($kept);
        impl TimedCall for ReadyCall {
            #[inline(always)]
            fn make(&mut self) {
                let $state = &mut self.0;
                let _ = black_box($make);
            }
        }
        fn ready($other: &ChildProcess) -> Result<Box<dyn TimedCall>, String> {
            let kept: Result<$kept, String> = $ready;
            Ok(Box::new(ReadyCall(kept?)))
        }
        RegisteredCall { name: $name, summary: $summary, ready }
    }};
}

/// All calls that read a clock or a count. A new one is an entry here.
pub const CALLS: &[RegisteredCall] = &[
    call!("time-stamp", "the bare counter (RDTSC, CNTVCT_EL0)" => threadclock::time_stamp()),
    call!("time-stamp-ordered", "the same between two fences (LFENCE, ISB)"
        => threadclock::time_stamp_ordered()),
    call!("threadclock-rseq", "threadclock, rseq tier: now()",
        ThreadClock = |_other| clock(Tier::Rseq) => |clock| clock.now()),
    call!("threadclock-rseq-ordered", "threadclock, rseq tier: now_ordered()",
        ThreadClock = |_other| clock(Tier::Rseq) => |clock| clock.now_ordered()),
    call!("threadclock-perf-page", "threadclock, perf page tier: now()",
        ThreadClock = |_other| clock(Tier::PerfPage) => |clock| clock.now()),
    call!("threadclock-core-cycles", "threadclock's CoreClock: a hardware counter by RDPMC",
        CoreClock = |_other| CoreClock::for_this_thread().map_err(|why| why.to_string())
        => |clock| clock.now()),
    call!("threadclock-system-call", "threadclock, system call tier: now()",
        ThreadClock = |_other| clock(Tier::SystemCall) => |clock| clock.now()),
    call!("threadclock-kernel", "threadclock, kernel tier: now()",
        ThreadClock = |_other| clock(Tier::Kernel) => |clock| clock.now()),
    call!("threadclock-now", "threadclock::now(), without a handle" => threadclock::now()),
    call!("getpinfo-self", "getpinfo(0): the caller" => threadclock::getpinfo(0).ok()),
    call!("getpinfo-process", "getpinfo_process(pid) of another process: its CPU clock",
        i32 = |other| readable_by(other, threadclock::getpinfo_process)
        => |pid| threadclock::getpinfo_process(*pid)),
    call!("getpinfo-other", "getpinfo(pid) of another process's first thread: its schedstat",
        i32 = |other| readable_by(other, threadclock::getpinfo) => |pid| threadclock::getpinfo(*pid)),
    // The paper's own system call, in a patched kernel (kernel/README.md).
    call!("getpinfo-call", "getpinfo() as a system call of a patched kernel: the caller",
        () = |_other| patched() => |_kept| threadclock::pinfo::thread(0)),
    call!("getpinfo-call-process", "the same of another process, its dead threads included",
        i32 = |other| patched().map(|()| other.pid())
        => |pid| threadclock::pinfo::process(*pid)),
    call!("monotonic", "clock_gettime(CLOCK_MONOTONIC), by the vDSO" => sys::monotonic_ns()),
    call!("thread-cputime", "clock_gettime(CLOCK_THREAD_CPUTIME_ID)" => sys::own_thread_cpu_ns()),
    call!("process-cputime", "clock_gettime(CLOCK_PROCESS_CPUTIME_ID)"
        => sys::own_process_cpu_ns()),
    call!("other-cputime", "clock_gettime of another process's CPU clock",
        i32 = |other| Ok(other.pid())
        => |pid| sys::cpu_clock_ns(*pid, false, CpuClock::Precise)),
    call!("getrusage", "getrusage(RUSAGE_SELF)" => sys::usage(UsageScope::Own)),
    call!("getrusage-thread", "getrusage(RUSAGE_THREAD)" => sys::usage(UsageScope::Thread)),
    call!("times", "times(2)" => sys::times()),
    call!("schedstat", "/proc/PID/schedstat of another process: open, read, close",
    String = |other| open_schedstat(other).map(|(path, _)| path)
    => |path| {
        let mut text = [0; 96];
        let file = File::open(&*path);
        let _ = black_box(file.and_then(|file| file.read_at(&mut text, 0)));
        text
    }),
    call!("schedstat-open", "the same file kept open: one pread",
    File = |other| open_schedstat(other).map(|(_, file)| file)
    => |file| {
        let mut text = [0; 96];
        let _ = black_box(file.read_at(&mut text, 0));
        text
    }),
];

/// All timed system calls. A new one is an entry here.
pub const SYSTEM_CALLS: &[RegisteredCall] = &[
    call!(GETUID, "getuid by syscall(2), as the memorandum's simsyscall" => sys::getuid()),
    call!("getppid", "getppid by syscall(2)" => sys::getppid()),
    call!("read", "read of one byte from /dev/zero by syscall(2)",
        File = |_other| device("/dev/zero", false, |file| sys::read_byte(file.as_fd()))
        => |file| sys::read_byte(file.as_fd())),
    call!("write", "write of one byte to /dev/null by syscall(2)",
        File = |_other| device("/dev/null", true, |file| sys::write_byte(file.as_fd()))
        => |file| sys::write_byte(file.as_fd())),
    call!("clock-gettime-vdso", "clock_gettime(CLOCK_MONOTONIC), by the vDSO" => sys::monotonic_ns()),
    call!("clock-gettime", "clock_gettime(CLOCK_MONOTONIC) by syscall(2)"
        => sys::monotonic_ns_by_call()),
    call!("futex-wake", "futex(FUTEX_WAKE, private) with no waiter by syscall(2)",
        AtomicU32 = |_other| {
            let word = AtomicU32::new(0);
            match sys::futex_wake(&word) {
                0 => Ok(word),
                other => Err(format!("futex(FUTEX_WAKE) answers {other}")),
            }
        } => |word| sys::futex_wake(word)),
    call!("sched-yield", "sched_yield by syscall(2), nobody else to yield to"
        => sys::sched_yield()),
];

/// Loops of signals within one process.
pub const SIGNAL_LOOPS: &[RegisteredCall] = &[
    call!(SIGACTION, "installing a handler: sigaction(2)",
        () = |_other| OwnSignal::<ResetSignal>::install().map_err(|errno| format!("sigaction: {errno}"))
        => |_kept| OwnSignal::<ResetSignal>::install()),
    // The memorandum's simsig.
    call!(SIGNAL_SELF, "kill to oneself; the handler installs itself again",
        OwnSignal<ResetSignal> = |_other| OwnSignal::new().map_err(|errno| format!("sigaction: {errno}"))
        => |signal| signal.send()),
];

/// All calls that are timed in batches beside an empty batch.
pub(super) const LOOPS: [&[RegisteredCall]; 2] = [SYSTEM_CALLS, SIGNAL_LOOPS];

/// Opens the file with the time for which a process ran and waited, and its number of switches.
fn open_schedstat(other: &ChildProcess) -> Result<(String, File), String> {
    let path = format!("/proc/{}/schedstat", other.pid());
    match File::open(&path) {
        Ok(file) => Ok((path, file)),
        Err(error) => Err(format!("{path}: {error}")),
    }
}

fn clock(tier: Tier) -> Result<ThreadClock, String> {
    ThreadClock::with_tier(tier).map_err(|why| why.to_string())
}

fn patched() -> Result<(), String> {
    threadclock::pinfo::available().map_err(|why| why.to_string())
}

/// Checks that `call` can read a process; returns its id.
fn readable_by<T>(
    other: &ChildProcess,
    call: impl Fn(i32) -> Result<T, threadclock::TimeReadError>,
) -> Result<i32, String> {
    call(other.pid()).map(|_| other.pid()).map_err(|error| error.to_string())
}

/// Opens a device, and checks by `try_out` that it gives or takes a byte.
fn device(path: &str, write: bool, try_out: impl Fn(&File) -> i64) -> Result<File, String> {
    let file = File::options().read(!write).write(write).open(path);
    let file = file.map_err(|error| format!("{path}: {error}"))?;
    match try_out(&file) {
        1 => Ok(file),
        _ => Err(format!("{path} gives or takes no byte")),
    }
}
