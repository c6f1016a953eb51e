//! Needs of tests that a machine may lack, and the list of tests that were skipped for them.

use std::env;
use std::ffi::OsStr;
use std::fmt::{self, Display};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::num::NonZero;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};
use std::thread;

/// The environment variable with the file that skips are written to, for `.ci/skips`.
const SKIPS_FILE: &str = "SWITCHCOST_SKIPS";

/// A thing that a test needs and a machine may lack. `.ci/skips` checks whether the machine has it.
#[derive(Clone, Copy, Debug)]
pub enum Need<'a> {
    /// User id 0.
    Root,
    /// `SCHED_FIFO`.
    RealTime,
    /// eBPF with type information of the kernel (BTF).
    Tracing,
    /// The right to trace a child by ptrace(2).
    Ptrace,
    /// A second CPU.
    TwoCpus,
    /// Performance counters of the kernel that a thread may read by itself.
    PerfPage,
    /// The kernel's registration for restartable sequences.
    Rseq,
    /// The getpinfo system call, of the patched kernel.
    Getpinfo,
    /// A time-stamp counter that the kernel trusts.
    TimeStamp,
    /// An x86-64 processor.
    X86,
    /// A control group with a limit on tasks.
    ControlGroup,
    /// Namespaces of users, mounts and networks, for root and for ordinary users.
    Namespaces,
    /// The right to mount a file system, in a new namespace.
    Mounts,
    /// Chromium, Node and `npm ci` in `tests/browser`.
    Browser,
    /// A program on the path.
    Program(&'a str),
    /// A setting of the CPU or the kernel that only some machines have: idle states, a clock's level.
    Hardware(&'a str),
    /// A CPU without competing tasks for long enough, in one of many attempts.
    Quiet,
    /// An environment variable that asks for the test, as it changes the whole machine.
    Asked(&'a str),
}

impl Display for Need<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Need::Root => f.write_str("root"),
            Need::RealTime => f.write_str("real-time"),
            Need::Tracing => f.write_str("tracing"),
            Need::Ptrace => f.write_str("ptrace"),
            Need::TwoCpus => f.write_str("two-cpus"),
            Need::PerfPage => f.write_str("perf-page"),
            Need::Rseq => f.write_str("rseq"),
            Need::Getpinfo => f.write_str("getpinfo"),
            Need::TimeStamp => f.write_str("time-stamp"),
            Need::X86 => f.write_str("x86-64"),
            Need::ControlGroup => f.write_str("control-group"),
            Need::Namespaces => f.write_str("namespaces"),
            Need::Mounts => f.write_str("mounts"),
            Need::Browser => f.write_str("browser"),
            Need::Program(name) => write!(f, "program:{name}"),
            Need::Hardware(what) => write!(f, "hardware:{what}"),
            Need::Quiet => f.write_str("quiet"),
            Need::Asked(variable) => write!(f, "asked:{variable}"),
        }
    }
}

/// Reports that the calling test, or a part of it, cannot run here.
///
/// `.ci/run` lists the skips, and fails if the machine has the need that was reported as missing.
pub fn skip(need: Need<'_>, why: impl Display) {
    let thread = thread::current();
    let test = thread.name().unwrap_or("a thread of a test");
    // Not by eprintln, which the test runner would capture.
    let _ = writeln!(io::stderr(), "skipped: {test}: {why} [{need}]");
    if let Some(file) = env::var_os(SKIPS_FILE) {
        let why = why.to_string().replace(['\t', '\n'], " ");
        let written = append_line(&file, &format!("{need}\t{test}\t{why}\n"));
        assert!(written.is_ok(), "{file:?}: {written:?}");
    }
}

fn append_line(file: &OsStr, line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).open(file)?;
    file.write_all(line.as_bytes())
}

/// Returns whether one of these needs is missing here; reports the first that is by [`skip`].
///
/// # Panics
///
/// If a need can only be found out by trying, which is up to the test.
pub fn lacks<const N: usize>(needs: [Need<'_>; N]) -> bool {
    for need in needs {
        if is_missing(need) {
            skip(need, "not here");
            return true;
        }
    }
    false
}

fn is_missing(need: Need<'_>) -> bool {
    match need {
        Need::Root => !is_root(),
        Need::TwoCpus => thread::available_parallelism().map_or(1, NonZero::get) < 2,
        Need::X86 => !cfg!(target_arch = "x86_64"),
        Need::Program(name) => !has(name),
        Need::Asked(variable) => env::var_os(variable).is_none(),
        _ => panic!("{need} has to be tried"),
    }
}

/// Returns whether this process runs as root.
pub fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// Returns whether `program` can be started.
pub fn has(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok()
}
