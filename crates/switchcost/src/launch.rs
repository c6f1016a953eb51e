//! Starts a worker for each case of each round and takes what it says.
//!
//! The program never times anything in its own process: a fresh worker has a fresh address space,
//! is small enough to fork rings from, and its crash costs one sample, not the run.

use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::Duration;

use model::machine::Machine;
use model::sample::Sample;
use probe::assignment::Assignment;
use probe::placement;
use probe::policy::Standing;
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGALRM, SIGKILL, SIGXCPU};

use crate::deadline::Deadline;
use crate::hearing::Hearing;
use crate::interrupt::Interrupt;

/// A worker that only looks is there and gone; what stands before it may take a moment.
const LOOK_PATIENCE: Duration = Duration::from_secs(20);

/// What a worker says, a line each.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Word {
    /// A sample, proven.
    Sample(Box<Sample>),
    /// Why there are no more.
    Failure {
        /// In words.
        message: String,
        /// The machine has run out of something: a case that needs as much would fail too.
        exhausted: bool,
    },
}

/// Why a worker gave no (further) samples.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LaunchError {
    /// Somebody asked to stop.
    Interrupted,
    /// This round of the case gave no (further) samples.
    Case {
        /// In words.
        message: String,
        /// The machine has run out of something: a case that needs as much would fail too.
        exhausted: bool,
    },
}

impl LaunchError {
    fn once(message: String) -> Self {
        Self::Case { message, exhausted: false }
    }
}

/// Measures one case in one round.
pub(crate) trait Launch {
    /// Hands each sample to `sink` as it arrives.
    fn launch(
        &mut self,
        assignment: &Assignment,
        sink: &mut dyn FnMut(Sample),
    ) -> Result<(), LaunchError>;
}

/// Workers that are this program, started again.
pub(crate) struct Workers {
    interrupt: Interrupt,
    /// The command that starts them; none where it is empty.
    prefix: Vec<String>,
    away: Option<Away>,
    /// The CPUs that they may run on when they start, where these are not the calling thread's.
    started_on: Option<Vec<u32>>,
}

/// Why it was not seen as what a worker is started.
#[derive(Debug)]
pub(crate) enum Unseen {
    /// Somebody asked to stop.
    Interrupted,
    /// In words.
    Refused(String),
}

/// Keeps the calling thread, which wakes up for each sample, off the CPUs of the case that is measured.
pub(crate) struct Away {
    allowed: Vec<u32>,
    machine: Machine,
    from: Vec<u32>,
}

impl Away {
    /// From none as yet.
    pub(crate) fn new(allowed: Vec<u32>, machine: Machine) -> Self {
        Self { allowed, machine, from: Vec::new() }
    }

    /// Off these from now on.
    pub(crate) fn keep(&mut self, cpus: Vec<u32>) {
        if cpus != self.from {
            // A refusal was told before the first worker.
            let _ = placement::pin(&placement::for_controller(&self.allowed, &cpus, &self.machine));
            self.from = cpus;
        }
    }
}

impl Workers {
    /// Workers beside a thread that stays where it is.
    pub(crate) fn new(interrupt: Interrupt) -> Self {
        Self { interrupt, prefix: Vec::new(), away: None, started_on: None }
    }

    /// Workers beside a thread that makes way for each.
    pub(crate) fn with_way(interrupt: Interrupt, away: Away) -> Self {
        Self { away: Some(away), ..Self::new(interrupt) }
    }

    /// Workers that are started through a command, which must become them (exec): its process is the
    /// one that is waited for and killed, and the worker asks for its parent. It finds the CPUs `allowed`
    /// to this program, not those to which the calling thread has moved out of the way.
    pub(crate) fn behind(interrupt: Interrupt, prefix: Vec<String>, allowed: Vec<u32>) -> Self {
        Self { prefix, started_on: Some(allowed), ..Self::new(interrupt) }
    }

    /// What is executed first.
    fn program(&self) -> &str {
        self.prefix.first().map_or("/proc/self/exe", String::as_str)
    }

    /// The command that starts this program again.
    fn command(&self) -> Command {
        match self.prefix.split_first() {
            // /proc/self/exe is this very program, also when its file has been replaced meanwhile.
            None => Command::new("/proc/self/exe"),
            Some((first, others)) => {
                let mut command = Command::new(first);
                // To the prefix `self` would be itself.
                command.args(others).arg(format!("/proc/{}/exe", std::process::id()));
                command
            }
        }
    }

    /// As what a worker is started: the words of one that says so and ends. Refused where the prefix
    /// starts it as a child of its own.
    pub(crate) fn look(&self) -> Result<Standing, Unseen> {
        let refused = |why: String| match self.interrupt.signal() {
            Some(_) => Unseen::Interrupted,
            None => Unseen::Refused(why),
        };
        let cannot = |error: std::io::Error| refused(format!("cannot be started: {error}"));
        let (stdin, mut hearing) = self.spawn(self.command(), &["--look"]).map_err(cannot)?;
        drop(stdin);
        let started = self.interrupt.worker().as_ref().map(Child::id);
        let deadline = Deadline::watch(&self.interrupt, LOOK_PATIENCE);
        // What a prefix says itself stands before it; what it has left running may go on for ever.
        let standing = hearing.find_map(|line| serde_json::from_slice::<Standing>(&line).ok());
        let overdue = deadline.is_ok_and(Deadline::over);
        if standing.is_some() {
            self.interrupt.kill_worker();
        }
        let status = self.finish().map_err(cannot)?;
        match standing {
            None if overdue => {
                let limit_s = LOOK_PATIENCE.as_secs();
                Err(refused(format!("it did not start the worker within {limit_s} s")))
            }
            None => Err(refused(format!("it did not start the worker ({status})"))),
            Some(standing) if Some(standing.pid) != started => Err(refused(
                "it starts the worker as a child of its own instead of becoming it (exec): the worker \
                 would outlive this program"
                    .to_string(),
            )),
            Some(standing) => Ok(standing),
        }
    }

    fn start(&self, assignment: &Assignment) -> std::io::Result<(ChildStdin, Hearing)> {
        let mut command = self.command();
        for (name, value) in assignment.environment() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        self.spawn(command, &[])
    }

    fn spawn(&self, mut command: Command, more: &[&str]) -> std::io::Result<(ChildStdin, Hearing)> {
        let mut slot = self.interrupt.worker();
        // The signal is noted before the worker is looked for: with the lock held, either it is
        // seen here or the worker is seen there.
        if self.interrupt.signal().is_some() {
            return Err(std::io::ErrorKind::Interrupted.into());
        }
        command
            .args(["worker", "--parent", &std::process::id().to_string()])
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C comes to this program alone, which then ends the worker.
            .process_group(0);
        let mut child = self.spawn_where_allowed(&mut command)?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let pipes = pipes.map(|(stdin, stdout)| (stdin, Hearing::of(&child, stdout)));
        *slot = Some(child);
        pipes.ok_or_else(|| std::io::Error::other("the worker has no pipes"))
    }

    /// A process takes over the CPUs of the thread that starts it: this one goes back for a moment. The
    /// worker is not told its case before.
    fn spawn_where_allowed(&self, command: &mut Command) -> std::io::Result<Child> {
        let Some(allowed) = &self.started_on else { return command.spawn() };
        let here = placement::allowed_cpus()?;
        placement::pin(allowed)?;
        let child = command.spawn();
        // Where it stays decides how quiet the worker has it, not whether it is measured.
        let _ = placement::pin(&here);
        child
    }

    fn finish(&self) -> std::io::Result<ExitStatus> {
        // The lock is not kept while waiting: the thread that waits for signals needs it.
        let child = self.interrupt.worker().take();
        match child {
            Some(mut child) => child.wait(),
            None => Err(std::io::Error::other("the worker is gone")),
        }
    }
}

impl Launch for Workers {
    fn launch(
        &mut self,
        assignment: &Assignment,
        sink: &mut dyn FnMut(Sample),
    ) -> Result<(), LaunchError> {
        if let Some(away) = &mut self.away {
            away.keep(assignment.case.cpus());
        }
        let case = |what: &str, error: &dyn std::fmt::Display| {
            LaunchError::once(format!("{what}: {error}"))
        };
        let (mut stdin, hearing) =
            self.start(assignment).map_err(|error| match self.interrupt.signal() {
                Some(_) => LaunchError::Interrupted,
                None => case(&format!("cannot start a worker ({})", self.program()), &error),
            })?;
        let patience = assignment.patience();
        let deadline = Deadline::watch(&self.interrupt, patience).map_err(|error| {
            self.interrupt.kill_worker();
            let _ = self.finish();
            case("cannot start a thread to watch the worker", &error)
        })?;
        let told = serde_json::to_writer(&mut stdin, assignment).map_err(std::io::Error::from);
        let told = told.and_then(|()| stdin.flush());
        drop(stdin);
        let mut failure = None;
        for line in hearing {
            match serde_json::from_slice(&line) {
                Ok(Word::Sample(sample)) => sink(*sample),
                Ok(Word::Failure { message, exhausted }) => {
                    failure = Some(LaunchError::Case { message, exhausted });
                }
                // Cut off by a kill: the status below says so.
                Err(_) => {}
            }
        }
        let overdue = deadline.over();
        let status = self.finish().map_err(|error| case("cannot wait for the worker", &error))?;
        if self.interrupt.signal().is_some() {
            return Err(LaunchError::Interrupted);
        }
        if overdue && failure.is_none() && !status.success() {
            return Err(LaunchError::once(format!(
                "the worker did not end within {} s and was ended from outside",
                patience.as_secs()
            )));
        }
        match (failure, status.success()) {
            (Some(failure), _) => Err(failure),
            (None, true) => told.map_err(|error| case("cannot tell the worker its case", &error)),
            (None, false) => Err(LaunchError::once(end_in_words(status))),
        }
    }
}

fn end_in_words(status: ExitStatus) -> String {
    match status.signal() {
        Some(SIGALRM) => {
            "the worker did not come to an end within its deadline and was ended".to_string()
        }
        Some(SIGKILL) => {
            "the worker was killed by signal 9; if nobody did that, the kernel ran out of \
                    memory (see dmesg): ask for less (--members, --work, --trials)"
                .to_string()
        }
        Some(SIGXCPU) => {
            "the worker ran under a real-time policy without ever waiting and was ended \
                     (RLIMIT_RTTIME)"
                .to_string()
        }
        Some(signal) => format!("the worker was killed by signal {signal}"),
        None => format!("the worker ended with {status} and without a word"),
    }
}
