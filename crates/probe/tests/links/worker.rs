//! A worker as the program has it: an assignment in, samples out.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use probe::ring::{self, Assignment};
use rundata::placement::Placement;
use rundata::ring::{MemberKind, Policy, RingBatching, RingCase, RingSample};
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::left_behind::NAMES;

/// The argument that makes this program a worker.
pub const WORD: &str = "worker";

/// Set for a worker that has a second thread, as no sound one has.
pub const SECOND_THREAD: &str = "SECOND_THREAD";

pub fn main() -> ExitCode {
    set_parent_process_death_signal(Some(Signal::KILL)).unwrap();
    if std::env::var_os(SECOND_THREAD).is_some() {
        std::thread::spawn(|| {
            loop {
                std::thread::park()
            }
        });
    }
    let assignment: Assignment = serde_json::from_reader(std::io::stdin()).unwrap();
    let say = |line: String| writeln!(std::io::stdout().lock(), "{line}").unwrap();
    let done = ring::run(&assignment, &mut |sample| say(serde_json::to_string(&sample).unwrap()));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(format!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// A ring on one CPU: each on the next.
pub fn case(link: &str, kind: MemberKind, members: u32) -> RingCase {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let cpus = probe::placement::allowed_cpus().unwrap();
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let placement = Placement::Same { cpu: cpus[number % cpus.len()] };
    let policy = Policy::Other;
    let (link, work) = (link.to_string(), None);
    RingCase {
        members,
        kind,
        link,
        work,
        placement,
        policy,
        priority: None,
        state: None,
        burden: None,
        flight: None,
        beside: Vec::new(),
    }
}

/// Starts a worker for one sample of so many laps.
pub fn start(case: &RingCase, laps: u64) -> Child {
    start_by(Command::new(std::env::current_exe().unwrap()), case, laps)
}

/// The same by a command that becomes this program, or a copy of it.
pub fn start_by(command: Command, case: &RingCase, laps: u64) -> Child {
    let batching = RingBatching {
        laps: Some(laps),
        sample_ns: 1_000_000,
        samples_per_round: 1,
        enough_ns: 1,
        slice_ns: None,
        triples: None,
        places: None,
        events: Vec::new(),
    };
    start_batching(command, case, batching)
}

/// The same of a worker that makes its samples so.
pub fn start_batching(mut command: Command, case: &RingCase, batching: RingBatching) -> Child {
    let assignment =
        Assignment { case_number: 0, case: case.clone(), round: 0, batching, unshared_ratio: None };
    // Its members are found by their process group.
    command.arg(WORD).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
    command.env("TMPDIR", NAMES.path());
    let mut child = command.spawn().unwrap();
    serde_json::to_writer(child.stdin.take().unwrap(), &assignment).unwrap();
    child
}

/// What a worker said at its end.
pub fn finish(mut child: Child) -> Result<RingSample, String> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let lines: Vec<String> = lines.collect();
    let status = child.wait().unwrap();
    match lines.last() {
        Some(line) if status.success() => Ok(serde_json::from_str(line).unwrap()),
        Some(line) => Err(line.clone()),
        None => Err(format!("no word, {status}")),
    }
}
