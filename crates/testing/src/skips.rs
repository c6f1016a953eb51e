//! What a machine may lack, and who had to leave something out for it.

use std::env;
use std::fmt::{self, Display};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::num::NonZero;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};
use std::thread;

/// Names the file that skips are written to, for `.ci/skips`.
const SKIPS: &str = "SWITCHCOST_SKIPS";

/// What a machine may lack that a test needs. `.ci/skips` knows how to find out whether it is there.
#[derive(Clone, Copy, Debug)]
pub enum Need<'a> {
    /// User id 0.
    Root,
    /// `SCHED_FIFO`.
    RealTime,
    /// eBPF with type information of the kernel (BTF).
    Tracing,
    /// A child can be traced by ptrace(2).
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
    /// Namespaces of users, mounts and networks, for root and for others.
    Namespaces,
    /// A file system can be mounted, in a namespace of its own.
    Mounts,
    /// Chromium, Node and `npm ci` in `tests/browser`.
    Browser,
    /// A program on the path.
    Program(&'a str),
    /// A setting of the CPU or the kernel that only some machines have: idle states, a clock's level.
    Hardware(&'a str),
    /// A CPU that is left alone for long enough, after many attempts.
    Quiet,
    /// To be asked for by an environment variable, as the test changes the whole machine.
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

/// Says that the test which calls this, or a part of it, cannot be made here.
///
/// `.ci/run` lists what was skipped, and fails if the machine has what was said to be missing.
pub fn skip(need: Need<'_>, why: impl Display) {
    let thread = thread::current();
    let test = thread.name().unwrap_or("a thread of a test");
    // Not by eprintln: the test runner would keep it.
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {why} [{need}]");
    if let Some(file) = env::var_os(SKIPS) {
        let why = why.to_string().replace(['\t', '\n'], " ");
        let line = format!("{need}\t{test}\t{why}\n");
        let written = OpenOptions::new()
            .append(true)
            .create(true)
            .open(&file)
            .and_then(|mut file| file.write_all(line.as_bytes()));
        assert!(written.is_ok(), "{file:?}: {written:?}");
    }
}

/// Whether one of these is missing here; of the first that is, [`skip`] is told.
///
/// # Panics
///
/// If one of them cannot be looked for but only tried: that is for the test to do.
pub fn lacks<const N: usize>(needs: [Need<'_>; N]) -> bool {
    let missing = needs.into_iter().find(|need| match need {
        Need::Root => !is_root(),
        Need::TwoCpus => thread::available_parallelism().map_or(1, NonZero::get) < 2,
        Need::X86 => !cfg!(target_arch = "x86_64"),
        Need::Program(name) => !has(name),
        Need::Asked(variable) => env::var_os(variable).is_none(),
        other => panic!("{other} has to be tried"),
    });
    if let Some(need) = missing {
        skip(need, "not here");
    }
    missing.is_some()
}

/// Whether this process is root's.
pub fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// Whether `program` can be started.
pub fn has(program: &str) -> bool {
    let (input, output) = (Stdio::null(), Stdio::null());
    Command::new(program)
        .arg("--version")
        .stdin(input)
        .stdout(output)
        .stderr(Stdio::null())
        .status()
        .is_ok()
}
