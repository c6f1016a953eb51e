//! The figures of another thread, and the errors of reading them.

use core::fmt;

/// Times and counts of a thread at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ThreadTime {
    /// CPU time over its life in nanoseconds, up to now if it runs.
    pub cpu_ns: u64,
    /// `sum_exec_runtime`, the kernel's own figure, when it was last switched out.
    pub kernel_ns: u64,
    /// Nanoseconds in the run queue without running, as of when it was last switched out.
    pub waited_ns: u64,
    /// `CLOCK_MONOTONIC` at its creation. Tells apart two threads that had one id.
    pub start_ns: u64,
    /// Number of times that it was switched out because it slept.
    pub voluntary: u64,
    /// Number of times that it was switched out while it could have run on.
    pub involuntary: u64,
    /// Number of times that it was moved to another CPU.
    pub migrations: u32,
    /// The id of its process.
    pub tgid: u32,
    /// Whether it is on a CPU.
    pub running: bool,
    /// Whether it has ended: its figures are final.
    pub ended: bool,
}

/// The reason why another thread was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThreadTimeError {
    /// No thread of this id has been seen.
    NoSuchThread(u32),
    /// The file is no table of threads of this version.
    NoTable,
    /// The table does not know the calling thread's switches: its tracer has ended, or the caller
    /// is in another pid namespace, or the table is full.
    NotTraced,
    /// A call failed.
    Os {
        /// The name of the call.
        call: &'static str,
        /// The errno of the call.
        errno: i32,
    },
}

impl ThreadTimeError {
    /// Returns the errno that C callers get.
    pub fn errno(self) -> i32 {
        match self {
            Self::NoSuchThread(_) => libc::ESRCH,
            Self::NoTable => libc::EINVAL,
            Self::NotTraced => libc::ESTALE,
            Self::Os { errno, .. } => errno,
        }
    }
}

impl fmt::Display for ThreadTimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchThread(tid) => write!(f, "no thread {tid} has been seen"),
            Self::NoTable => f.write_str("not a table of threads of this version of switchtrace"),
            Self::NotTraced => f.write_str(
                "the table is not kept up to date: its tracer has ended or is in another pid \
                 namespace",
            ),
            Self::Os { call, errno } => write!(f, "{call}: errno {errno}"),
        }
    }
}

impl core::error::Error for ThreadTimeError {}
