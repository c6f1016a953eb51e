//! Starts a worker for each case of each round and takes its samples; and the worker itself.
//!
//! The program never times anything in its own process: a fresh worker has a fresh address space,
//! is small enough to fork rings from, and its crash costs one sample, not the run.
//!
//! ```text
//! switchcost ring                        switchcost worker --parent 4711
//!   Workers::measure --- case, as JSON ---> standard input
//!     sink(sample) <--- {"Ok": sample} ---- standard output, a line a sample
//!     sink(sample) <--- {"Ok": sample} ----
//!     WorkerError  <--- {"Err": failure} -- at last, where the case failed
//!     WorkerError  <--- exit status ------- where it was killed or crashed
//! ```

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use probe::assignment::{Assignment, CaseFailure};
use probe::policy::SchedulingState;
use probe::standstill::PATIENCE;
use probe::{in_own_session, placement, spawn_watched};
use rundata::case::{Case, Sample};
use rustix::param::linux_execfn;
use rustix::process::Pid;
use serde::Serialize;
use signal_hook::consts::{SIGALRM, SIGKILL, SIGXCPU};
use thiserror::Error;

use crate::engine::interrupt::Interrupt;
use crate::engine::machine_state::MachineState;
use crate::engine::worker_output::WorkerOutput;

/// The hidden command of a worker.
const WORKER: &str = "worker";

/// The option with which a worker only reports its scheduling state.
const LOOK: &str = "--look";

/// Longest time for a worker that only reports its state; what stands before it may take a moment.
const LOOK_PATIENCE: Duration = Duration::from_secs(20);

/// A line of a worker: a sample, or why there are no more.
pub(crate) type WorkerMessage = Result<Box<Sample>, CaseFailure>;

/// The reason why a worker gave no (further) samples.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum WorkerError {
    /// A signal asked to stop.
    #[error("was interrupted")]
    Interrupted,
    /// This round of the case gave no (further) samples.
    #[error("{0}")]
    Case(CaseFailure),
    /// The setting of the machine under which is measured is not known any more.
    #[error("{0}")]
    SettingLost(String),
    /// The worker took longer than it was given.
    #[error("the worker did not end within {} s and was killed", .0.as_secs())]
    Overdue(Duration),
}

impl WorkerError {
    /// Returns a failure that need not happen again.
    pub(crate) fn once(message: impl Display) -> Self {
        Self::Case(CaseFailure { message: message.to_string(), exhausted: false })
    }
}

/// Measures one case in one round, and hands over each sample as it arrives. A worker that takes
/// longer than the given time is killed.
pub(crate) type MeasureCase<'a> =
    dyn FnMut(&Assignment, Duration, &mut dyn FnMut(Sample)) -> Result<(), WorkerError> + 'a;

/// Workers that are this program, started again.
pub(crate) struct Workers {
    interrupt: Interrupt,
    /// The command that starts them; none where it is empty.
    prefix: Vec<String>,
    /// The CPUs that they may run on when they start, where these are not the calling thread's.
    started_on: Option<Vec<u32>>,
    /// The state of the machine under which they measure.
    state: Option<MachineState>,
}

impl Workers {
    /// Returns workers that this program starts itself, on the CPUs of the calling thread.
    pub(crate) fn new(interrupt: Interrupt) -> Self {
        Self { interrupt, prefix: Vec::new(), started_on: None, state: None }
    }

    /// Returns workers that are started through a command, which must become them (exec): its
    /// process is the one that is waited for and killed, and the worker asks for its parent. The
    /// command finds the CPUs `allowed` to this program, not those to which the calling thread has
    /// moved out of the way.
    pub(crate) fn behind(interrupt: Interrupt, prefix: Vec<String>, allowed: Vec<u32>) -> Self {
        Self { interrupt, prefix, started_on: Some(allowed), state: None }
    }

    /// Returns these workers, which measure under a state of the machine.
    pub(crate) fn under(self, state: MachineState) -> Self {
        Self { state: Some(state), ..self }
    }

    /// Returns the scheduling state in which a worker is started, as one reports it that does
    /// nothing else.
    ///
    /// # Errors
    /// Fails where the worker cannot be started, or the prefix starts it as a child of its own.
    pub(crate) fn look(&self) -> Result<SchedulingState, WorkerError> {
        let started = self.start(&[LOOK], &[], LOOK_PATIENCE);
        let (_, mut output) = started.map_err(|error| self.cannot_start(&error))?;
        let pid = self.interrupt.worker();
        // What a prefix writes itself comes before it; what it has left running may go on for ever.
        let state = output.find_map(|line| serde_json::from_slice::<SchedulingState>(&line).ok());
        if state.is_some() {
            self.interrupt.kill_worker();
        }
        let status = self.interrupt.wait_for_worker();
        let status = status.map_err(|error| self.cannot_start(&error))?;
        match state {
            None if output.is_overdue => {
                let limit_s = LOOK_PATIENCE.as_secs();
                Err(self.refused(format!("it did not start the worker within {limit_s} s")))
            }
            None => Err(self.refused(format!("it did not start the worker ({status})"))),
            Some(state) if Some(state.pid) != pid => Err(self.refused(
                "it starts the worker as a child instead of becoming it (exec): the worker would \
                    outlive this program"
                    .to_string(),
            )),
            Some(state) => Ok(state),
        }
    }

    fn cannot_start(&self, error: &io::Error) -> WorkerError {
        self.refused(format!("cannot be started: {error}"))
    }

    /// Returns this error, or that a signal asked to stop, which may have caused it.
    fn refused(&self, why: String) -> WorkerError {
        match self.interrupt.signal() {
            Some(_) => WorkerError::Interrupted,
            None => WorkerError::once(why),
        }
    }

    /// Starts this program again as a worker, with these arguments and environment.
    fn start(
        &self,
        arguments: &[&str],
        environment: &[(&str, Option<String>)],
        patience: Duration,
    ) -> io::Result<(ChildStdin, WorkerOutput<ChildStdout>)> {
        let own_program = self.own_program();
        let mut words = self.prefix.clone();
        words.push(own_program);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args([WORKER, "--parent", &std::process::id().to_string()]);
        for (name, value) in environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        // Ctrl-C comes to this program alone, which then ends the worker.
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        in_own_session(&mut command);
        let (pid, stdin, stdout) = self.interrupt.start(
            || self.spawn_where_allowed(&mut command),
            |child| (Pid::from_child(child), child.stdin.take(), child.stdout.take()),
        )?;
        let (Some(stdin), Some(stdout)) = (stdin, stdout) else {
            return Err(io::Error::other("the worker has no pipes"));
        };
        Ok((stdin, WorkerOutput::watch(&self.interrupt, pid, stdout, patience)))
    }

    /// Returns the path by which a worker is started. By /proc it is this very program, also when
    /// its file has been replaced meanwhile. A prefix may not read there what a file with
    /// capabilities runs as.
    fn own_program(&self) -> String {
        let has_proc = Path::new("/proc/self/exe").exists();
        if !has_proc || (!self.prefix.is_empty() && probe::has_file_privileges()) {
            return linux_execfn().to_string_lossy().into_owned();
        }
        if self.prefix.is_empty() {
            return "/proc/self/exe".to_string();
        }
        // To a prefix `self` would be itself.
        format!("/proc/{}/exe", std::process::id())
    }

    /// Starts a process on the CPUs that workers are given. A process takes over the CPUs of the
    /// thread that starts it: this thread goes back to them for a moment. The worker is not told
    /// its case before.
    fn spawn_where_allowed(&self, command: &mut Command) -> io::Result<Child> {
        let Some(allowed) = &self.started_on else { return spawn_watched(command) };
        let current = placement::allowed_cpus()?;
        placement::pin(allowed)?;
        let child = spawn_watched(command);
        // Where it stays decides how quiet the worker has it, not whether it is measured.
        let _ = placement::pin(&current);
        child
    }

    /// Measures one case in one round; each sample goes to `sink` as it arrives. After `patience`
    /// the worker is killed. Under a state of the machine samples go there at the end, if the state
    /// is unchanged then.
    pub(crate) fn measure(
        &self,
        assignment: &Assignment,
        patience: Duration,
        sink: &mut dyn FnMut(Sample),
    ) -> Result<(), WorkerError> {
        let Some(state) = &self.state else {
            return self.measure_now(assignment, patience, sink);
        };
        state.establish().map_err(|error| self.state_lost(&error))?;
        let mut samples = Vec::new();
        let measured = self.measure_now(assignment, patience, &mut |sample| samples.push(sample));
        if measured == Err(WorkerError::Interrupted) {
            return measured;
        }
        state.check_unchanged().map_err(|error| self.state_lost(&error))?;
        samples.into_iter().for_each(sink);
        measured
    }

    /// Returns that the state of the machine is lost, or that a signal asked to stop, for which
    /// nobody waits for the state.
    fn state_lost(&self, error: &anyhow::Error) -> WorkerError {
        match self.interrupt.signal() {
            Some(_) => WorkerError::Interrupted,
            None => WorkerError::SettingLost(format!("{error:#}")),
        }
    }

    /// Measures one case under the settings in force.
    fn measure_now(
        &self,
        assignment: &Assignment,
        patience: Duration,
        sink: &mut dyn FnMut(Sample),
    ) -> Result<(), WorkerError> {
        let started = self.start(&[], &assignment.environment(), patience);
        let (mut stdin, mut output) = started.map_err(|error| {
            let program = self.prefix.first().map_or("/proc/self/exe", String::as_str);
            self.refused(format!("cannot start a worker ({program}): {error}"))
        })?;
        let worker = self.interrupt.worker();
        let sent = send(&mut stdin, assignment);
        drop(stdin);
        let mut failure = None;
        for line in output.by_ref() {
            match serde_json::from_slice::<WorkerMessage>(&line) {
                Ok(Ok(sample)) => sink(*sample),
                Ok(Err(error)) => failure = Some(error),
                // Cut off by a kill: the status below says so.
                Err(_) => {}
            }
        }
        let status = self
            .interrupt
            .wait_for_worker()
            .map_err(|error| WorkerError::once(format!("cannot wait for the worker: {error}")))?;
        if self.interrupt.signal().is_some() {
            return Err(WorkerError::Interrupted);
        }
        if let Some(failure) = failure {
            return Err(WorkerError::Case(failure));
        }
        if status.success() {
            return sent.map_err(|error| {
                WorkerError::once(format!("cannot send the worker its case: {error}"))
            });
        }
        if output.is_overdue {
            return Err(WorkerError::Overdue(patience));
        }
        Err(WorkerError::once(match output.stood_still {
            Some(pid) => stop_in_words(pid, worker, assignment),
            None => end_in_words(status),
        }))
    }
}

/// Sends a worker its case.
fn send(stdin: &mut ChildStdin, assignment: &Assignment) -> io::Result<()> {
    serde_json::to_writer(&mut *stdin, assignment)?;
    stdin.flush()
}

/// Says that a process was stopped for too long: the worker or one of its own.
fn stop_in_words(pid: i32, worker: Option<u32>, assignment: &Assignment) -> String {
    let who = match &assignment.case {
        _ if worker == u32::try_from(pid).ok() => "the worker",
        Case::Ring(_) => "a member of the ring",
        Case::Trial(_) => "a process of the worker",
    };
    let s = PATIENCE.as_secs();
    format!("{who} (process {pid}) was stopped by a signal and not continued within {s} s: killed")
}

/// Says how a worker ended that gave no reason itself.
fn end_in_words(status: ExitStatus) -> String {
    match status.signal() {
        Some(SIGALRM) => "the worker did not end within its deadline and was killed".to_string(),
        Some(SIGKILL) => {
            "the worker was killed by signal 9; unless somebody did that, the kernel ran out \
             of memory (see dmesg): ask for less (--members, --work, --trials)"
                .to_string()
        }
        Some(SIGXCPU) => {
            "the worker ran under a real-time policy without ever waiting and was killed \
                (RLIMIT_RTTIME)"
                .to_string()
        }
        Some(signal) => format!("the worker was killed by signal {signal}"),
        None => format!("the worker ended with {status} and without output"),
    }
}

/// Acts as a worker if this program was started as `worker --parent PID`, or with `--look` behind
/// it. This must be asked before the arguments are parsed: the memory that parsing takes would be
/// in every member of every ring.
pub(crate) fn worker_if_asked() -> Option<Result<ExitCode>> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != WORKER {
        return None;
    }
    let arguments: Vec<OsString> = arguments.collect();
    let mut words = Vec::new();
    for argument in &arguments {
        words.extend(argument.to_str());
    }
    let parent = words.get(1).and_then(|pid| pid.parse().ok());
    Some(match (&words[..], parent) {
        (["--parent", _], Some(parent)) => worker(parent),
        (["--parent", _, LOOK], Some(_)) => worker_look(),
        _ => Err(internal()),
    })
}

fn internal() -> anyhow::Error {
    anyhow!("`{WORKER}` is an internal command of switchcost")
}

/// Acts as a worker: reads a case from standard input, writes samples to standard output.
fn worker(parent: i32) -> Result<ExitCode> {
    if !probe::set_parent_death_signal(parent).context("prctl(PR_SET_PDEATHSIG)")? {
        return Err(internal());
    }
    probe::set_own_name(c"switchcost-work");
    let assignment: Assignment =
        serde_json::from_reader(io::stdin()).context("the worker's case cannot be read")?;
    // Before there are members, which inherit it.
    if let Case::Ring(_) = assignment.case {
        probe::set_own_name(c"switchcost-ring");
    }
    let mut lost = Ok(());
    let measured = assignment.measure(&mut |sample| {
        if lost.is_ok() {
            lost = report(&WorkerMessage::Ok(Box::new(sample)));
        }
    });
    if let Err(failure) = measured {
        report(&WorkerMessage::Err(failure))?;
        return Ok(ExitCode::FAILURE);
    }
    lost?;
    Ok(ExitCode::SUCCESS)
}

/// Reports the scheduling state of a worker. It ends at once, so that nothing has to see to its
/// end.
fn worker_look() -> Result<ExitCode> {
    report(&SchedulingState::own().context("the worker cannot read its own state")?)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a line to standard output.
fn report(message: &impl Serialize) -> Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    let mut stdout = io::stdout().lock();
    stdout.write_all(&line).and_then(|()| stdout.flush()).context("cannot report a sample")
}
