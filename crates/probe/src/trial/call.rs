//! The calls that read a clock or a count: what each provides, and all that there are.

use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;

use threadclock::{CoreClock, ThreadClock, Tier};

use super::companion::Companion;
use crate::sys::{self, CpuClock, Whose};

/// A call that is timed.
pub(super) trait Call: Sized {
    /// Its name in tables and files.
    const NAME: &'static str;
    /// What it reads, and how.
    const SUMMARY: &'static str;

    /// Makes it ready; why it is not to be had here otherwise. `other` is a process that sleeps.
    fn ready(other: &Companion) -> Result<Self, String>;

    /// Makes it once. In the timed loop: the call and nothing else.
    fn make(&mut self);

    /// Signals that its handler has caught in this process, for a call that sends some.
    fn caught() -> Option<u64> {
        None
    }
}

/// A call that needs nothing made ready.
macro_rules! plain {
    ($type:ident, $name:expr, $summary:literal, $make:expr) => {
        pub(super) struct $type;
        impl Call for $type {
            const NAME: &'static str = $name;
            const SUMMARY: &'static str = $summary;
            fn ready(_: &Companion) -> Result<Self, String> {
                Ok(Self)
            }
            #[inline(always)]
            fn make(&mut self) {
                black_box($make);
            }
        }
    };
}
pub(super) use plain;

plain!(Stamp, "time-stamp", "the bare counter (RDTSC, CNTVCT_EL0)", threadclock::time_stamp());
plain!(
    StampOrdered,
    "time-stamp-ordered",
    "the same between two fences (LFENCE, ISB)",
    threadclock::time_stamp_ordered()
);
plain!(Monotonic, "monotonic", "clock_gettime(CLOCK_MONOTONIC), by the vDSO", sys::monotonic_ns());
plain!(
    ThreadCpu,
    "thread-cputime",
    "clock_gettime(CLOCK_THREAD_CPUTIME_ID)",
    sys::own_thread_cpu_ns()
);
plain!(
    ProcessCpu,
    "process-cputime",
    "clock_gettime(CLOCK_PROCESS_CPUTIME_ID)",
    sys::own_process_cpu_ns()
);
plain!(UsageSelf, "getrusage", "getrusage(RUSAGE_SELF)", sys::usage(Whose::Own));
plain!(UsageThread, "getrusage-thread", "getrusage(RUSAGE_THREAD)", sys::usage(Whose::Thread));
plain!(Times, "times", "times(2)", sys::times());
plain!(Convenient, "threadclock-now", "threadclock::now(), without a handle", threadclock::now());
plain!(InfoSelf, "getpinfo-self", "getpinfo(0): the caller", threadclock::getpinfo(0).ok());

/// Another process's CPU clock.
pub(super) struct OtherCpu(i32);

impl Call for OtherCpu {
    const NAME: &'static str = "other-cputime";
    const SUMMARY: &'static str = "clock_gettime of another process's CPU clock";
    fn ready(other: &Companion) -> Result<Self, String> {
        Ok(Self(other.pid()))
    }
    #[inline(always)]
    fn make(&mut self) {
        let _ = black_box(sys::cpu_clock_ns(self.0, false, CpuClock::Precise));
    }
}

/// Where the kernel says for how long a task ran, waited, and how often it was switched in.
fn schedstat(other: &Companion) -> Result<String, String> {
    let path = format!("/proc/{}/schedstat", other.pid());
    match File::open(&path) {
        Ok(_) => Ok(path),
        Err(error) => Err(format!("{path}: {error}")),
    }
}

/// schedstat, opened, read and closed.
pub(super) struct Schedstat(String);

impl Call for Schedstat {
    const NAME: &'static str = "schedstat";
    const SUMMARY: &'static str = "/proc/PID/schedstat of another process: open, read, close";
    fn ready(other: &Companion) -> Result<Self, String> {
        schedstat(other).map(Self)
    }
    #[inline(always)]
    fn make(&mut self) {
        let mut text = [0; 96];
        let file = File::open(&self.0);
        let _ = black_box(file.and_then(|file| file.read_at(&mut text, 0)));
        black_box(text);
    }
}

/// schedstat, kept open.
pub(super) struct SchedstatOpen(File);

impl Call for SchedstatOpen {
    const NAME: &'static str = "schedstat-open";
    const SUMMARY: &'static str = "the same file kept open: one pread";
    fn ready(other: &Companion) -> Result<Self, String> {
        let path = schedstat(other)?;
        File::open(&path).map(Self).map_err(|error| format!("{path}: {error}"))
    }
    #[inline(always)]
    fn make(&mut self) {
        let mut text = [0; 96];
        let _ = black_box(self.0.read_at(&mut text, 0));
        black_box(text);
    }
}

fn clock(tier: Tier) -> Result<ThreadClock, String> {
    ThreadClock::with_tier(tier).map_err(|why| why.to_string())
}

macro_rules! tier {
    ($type:ident, $tier:expr, $name:literal, $summary:literal, $read:ident) => {
        pub(super) struct $type(ThreadClock);
        impl Call for $type {
            const NAME: &'static str = $name;
            const SUMMARY: &'static str = $summary;
            fn ready(_: &Companion) -> Result<Self, String> {
                clock($tier).map(Self)
            }
            #[inline(always)]
            fn make(&mut self) {
                black_box(self.0.$read());
            }
        }
    };
}

tier!(ByRseq, Tier::Rseq, "threadclock-rseq", "threadclock, rseq tier: now()", now);
tier!(
    ByRseqOrdered,
    Tier::Rseq,
    "threadclock-rseq-ordered",
    "threadclock, rseq tier: now_ordered()",
    now_ordered
);
tier!(
    ByPerfPage,
    Tier::PerfPage,
    "threadclock-perf-page",
    "threadclock, perf page tier: now()",
    now
);
tier!(
    BySystemCall,
    Tier::SystemCall,
    "threadclock-system-call",
    "threadclock, system call tier: now()",
    now
);
tier!(ByKernel, Tier::Kernel, "threadclock-kernel", "threadclock, kernel tier: now()", now);

/// The core's own cycles.
pub(super) struct ByCounter(CoreClock);

impl Call for ByCounter {
    const NAME: &'static str = "threadclock-core-cycles";
    const SUMMARY: &'static str = "threadclock's CoreClock: a hardware counter by RDPMC";
    fn ready(_: &Companion) -> Result<Self, String> {
        CoreClock::for_this_thread().map(Self).map_err(|why| why.to_string())
    }
    #[inline(always)]
    fn make(&mut self) {
        let _ = black_box(self.0.now());
    }
}

/// The system call of a patched kernel (kernel/README.md), for the caller: the paper's own.
pub(super) struct CallSelf;

impl Call for CallSelf {
    const NAME: &'static str = "getpinfo-call";
    const SUMMARY: &'static str = "getpinfo() as a system call of a patched kernel: the caller";
    fn ready(_: &Companion) -> Result<Self, String> {
        threadclock::pinfo::available().map(|()| Self).map_err(|why| why.to_string())
    }
    #[inline(always)]
    fn make(&mut self) {
        let _ = black_box(threadclock::pinfo::thread(0));
    }
}

/// The same for all of another process.
pub(super) struct CallProcess(i32);

impl Call for CallProcess {
    const NAME: &'static str = "getpinfo-call-process";
    const SUMMARY: &'static str = "the same of another process, its dead threads included";
    fn ready(other: &Companion) -> Result<Self, String> {
        threadclock::pinfo::available().map_err(|why| why.to_string())?;
        Ok(Self(other.pid()))
    }
    #[inline(always)]
    fn make(&mut self) {
        let _ = black_box(threadclock::pinfo::process(self.0));
    }
}

macro_rules! info {
    ($type:ident, $name:literal, $summary:literal, $call:path) => {
        pub(super) struct $type(i32);
        impl Call for $type {
            const NAME: &'static str = $name;
            const SUMMARY: &'static str = $summary;
            fn ready(other: &Companion) -> Result<Self, String> {
                $call(other.pid()).map(|_| Self(other.pid())).map_err(|error| error.to_string())
            }
            #[inline(always)]
            fn make(&mut self) {
                let _ = black_box($call(self.0));
            }
        }
    };
}

info!(
    InfoOther,
    "getpinfo-other",
    "getpinfo(pid) of another process's first thread: its schedstat",
    threadclock::getpinfo
);
info!(
    InfoProcess,
    "getpinfo-process",
    "getpinfo_process(pid) of another process: its CPU clock",
    threadclock::getpinfo_process
);
