//! Starts commands and accounts for their resources.
//!
//! Commands are started by a process between, the launcher: this program again, small and with one
//! thread. The kernel charges a child with the memory that it has before execve(2); from the
//! launcher that is little.
//!
//! ```text
//! switchcost run ... (Launcher)  --fork-->  launcher (serve_if_asked)  --clone-->  command
//!         ^------------- socket: answers -------------'
//! ```
#![forbid(unsafe_code)]

mod accounting;
mod series;
mod serve;
mod usage;

use std::cell::RefCell;
use std::ffi::{CString, OsString};
use std::fmt::Display;
use std::io::{self, BufRead, BufReader};
use std::mem;
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use probe::command::{BlockedStopSignals, InheritedState, StopHandlers, start_again, stop_signal};
use probe::standstill::{PATIENCE, StandstillWatch};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

pub use probe::command::SavedActions;
pub use series::{CommandSeries, ITERATION, OFFSET, OutputTarget, StopRule, look_up, order};
use series::{LauncherAnswer, LauncherRequest, NAME};
pub use serve::serve_if_asked;
pub use usage::{
    CommandRun, Ending, ExecBaseline, FailedWarmup, IoBytes, OrphanCounts, ProcessUsage, RunDelay,
    RunUsage, SampledTimes, ThreadPeak,
};

/// A running launcher with its series.
pub struct Launcher {
    // Dropped first: its handlers write to the socket.
    _handlers: StopHandlers,
    answers: BufReader<UnixStream>,
    process: Option<Pid>,
    watch: RefCell<LauncherWatch>,
    commands: Vec<Vec<OsString>>,
    /// The last signal that reached the launcher, once the series is done.
    signal: Option<u8>,
    failed_warmups: Vec<FailedWarmup>,
}

/// A watch for a launcher that was stopped by a signal.
struct LauncherWatch {
    standstill: StandstillWatch,
    next_check: Instant,
    /// The process id of a launcher that was killed, as it was stopped and not continued.
    killed: Option<i32>,
}

impl LauncherWatch {
    fn new(process: Pid) -> Self {
        let standstill = StandstillWatch::new(process);
        Self { next_check: Instant::now() + standstill.pause(), standstill, killed: None }
    }

    /// Kills the launcher if it has not gone on for too long.
    fn check(&mut self, process: Option<Pid>) {
        let stopped = process.filter(|_| self.standstill.look().is_some());
        self.next_check = Instant::now() + self.standstill.pause();
        if let Some(process) = stopped {
            let _ = kill_process(process, Signal::KILL);
            self.killed = Some(process.as_raw_pid());
        }
    }
}

/// The error of a command that could not be started, or of a launcher that failed.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct LauncherError {
    message: String,
    /// The exit code for it: 127 if the command does not exist, 126 if it cannot be run (env(1)), else
    /// 1.
    pub exit_code: u8,
}

impl LauncherError {
    fn new(message: String) -> Self {
        Self { message, exit_code: 1 }
    }
}

impl Launcher {
    /// Starts the launcher, which begins the series at once. Until the result is dropped, signals that
    /// ask to stop do not end this program: they are noted, and reach the command that runs. For a
    /// program with one thread.
    pub fn start(series: CommandSeries) -> Result<Self, LauncherError> {
        // Until the handlers are installed, none would be forwarded.
        let blocked = BlockedStopSignals::block();
        let (ours, theirs) = UnixStream::pair().map_err(cannot_start_io("socketpair"))?;
        // These come before the fork: a failure after it would leave the launcher without a program.
        let socket = ours.try_clone().map_err(cannot_start_io("dup"))?;
        let words = series.write_words().map_err(cannot_start("memfd_create"))?;
        let commands = series.all_commands().cloned().collect();
        let request = LauncherRequest {
            parent: std::process::id() as i32,
            socket: theirs.as_raw_fd(),
            words: words.as_raw_fd(),
            measured: series.commands.len(),
            has_files: !series.files.is_empty(),
            has_environment: !series.environment.is_empty(),
            series,
            blocked: blocked.before(),
            inherited: InheritedState::own(),
        };
        // Numbers and flags only, so it has a form in JSON, without a zero byte.
        let request = serde_json::to_vec(&request).unwrap_or_default();
        let request = CString::new(request).unwrap_or_default();
        let arguments = [c"switchcost", NAME, &request];
        let process = start_again(&arguments, &[theirs.as_fd(), words.as_fd()])
            .map_err(cannot_start("fork"))?;
        let handlers =
            StopHandlers::install(Some(socket.into())).map_err(cannot_start("sigaction"))?;
        let (answers, watch) = (BufReader::new(ours), RefCell::new(LauncherWatch::new(process)));
        let process = Some(process);
        Ok(Self {
            _handlers: handlers,
            answers,
            process,
            watch,
            commands,
            signal: None,
            failed_warmups: Vec::new(),
        })
    }

    /// Returns the last signal that asked to stop, if one came.
    pub fn signal(&self) -> Option<u8> {
        stop_signal().and_then(|signal| u8::try_from(signal).ok()).or(self.signal)
    }

    /// Returns an error if a signal that asked to stop reached the launcher alone, once the series is
    /// done: the command ran on, although the signal was meant for it. The exit code is 128 + the
    /// signal.
    pub fn stopped_alone(&self) -> Option<LauncherError> {
        let signal = self.signal.filter(|_| stop_signal().is_none())?;
        let message = format!(
            "signal {signal} reached only the launcher and did not stop the command: send it to \
                the command or to switchcost"
        );
        Some(LauncherError { message, exit_code: 128 + signal })
    }

    /// Waits for the start of the first command of an announced series. Returns its process id; `None`
    /// if the series ended without it.
    pub fn started(&mut self) -> Result<Option<u32>, LauncherError> {
        match self.next_answer()? {
            LauncherAnswer::Started(pid) => Ok(Some(pid)),
            _ => Ok(None),
        }
    }

    /// Waits for the next run to end, and returns it; `None` at the end of the series.
    pub fn next_run(&mut self) -> Result<Option<CommandRun>, LauncherError> {
        loop {
            match self.next_answer()? {
                LauncherAnswer::Started(_) => {}
                LauncherAnswer::Ran(run) => return Ok(Some(*run)),
                LauncherAnswer::WarmupFailed(warmup) => self.note_failed_warmup(warmup),
                _ => return Ok(None),
            }
        }
    }

    /// Notes a failed run of the warm-up, unless the same command has failed so before.
    fn note_failed_warmup(&mut self, warmup: FailedWarmup) {
        let FailedWarmup { command, ending, .. } = warmup;
        let mut noted = self.failed_warmups.iter();
        if !noted.any(|noted| noted.command == command && noted.ending == ending) {
            self.failed_warmups.push(warmup);
        }
    }

    /// Takes the runs of the warm-up that failed so far: of each command the first with each ending.
    pub fn take_failed_warmups(&mut self) -> Vec<FailedWarmup> {
        mem::take(&mut self.failed_warmups)
    }

    /// Waits for the next answer, at most `timeout`, and returns whether there is one (or no more will
    /// come, as the launcher was killed). A signal may end the wait before.
    pub fn wait_for_answer(&self, timeout: Option<Duration>) -> bool {
        let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut watch = self.watch.borrow_mut();
        while self.answers.buffer().is_empty() && watch.killed.is_none() {
            let until = end.map_or(watch.next_check, |end| end.min(watch.next_check));
            let pause = until.saturating_duration_since(Instant::now());
            let mut answers = [PollFd::new(self.answers.get_ref(), PollFlags::IN)];
            match poll(&mut answers, Timespec::try_from(pause).ok().as_ref()) {
                Ok(0) if watch.next_check <= Instant::now() => watch.check(self.process),
                Ok(0) => {}
                Err(Errno::INTR) => return false,
                _ => return true,
            }
            if end.is_some_and(|end| end <= Instant::now()) {
                return watch.killed.is_some();
            }
        }
        true
    }

    /// Waits for the next answer. Failures of commands are errors.
    fn next_answer(&mut self) -> Result<LauncherAnswer, LauncherError> {
        // A signal may end a wait.
        while !self.wait_for_answer(None) {}
        let mut line = Vec::new();
        match self.answers.read_until(b'\n', &mut line) {
            Ok(1..) => {}
            Err(error) if error.kind() != io::ErrorKind::ConnectionReset => {
                return Err(unreadable_answer(&error));
            }
            Ok(0) | Err(_) if self.watch.borrow().killed.is_some() => {
                let pid = self.watch.borrow().killed.unwrap_or_default();
                let s = PATIENCE.as_secs();
                return Err(LauncherError::new(format!(
                    "the launcher (process {pid}) was stopped by a signal and not continued within \
                        {s} s: it was killed; a command that was running continues, without figures"
                )));
            }
            Ok(0) | Err(_) => {
                return Err(LauncherError::new(format!(
                    "the launcher has ended ({}): a command that was running continues, without \
                        figures",
                    self.wait_for_end()
                )));
            }
        }
        match serde_json::from_slice(&line).map_err(|error| unreadable_answer(&error))? {
            LauncherAnswer::NotStarted { command, failure } => {
                let (message, exit_code) = failure.explain(self.words(command));
                Err(LauncherError { message, exit_code })
            }
            LauncherAnswer::HookFailed { kind, command, ending } => {
                let text = self.words(command).last().map(|text| text.to_string_lossy());
                Err(LauncherError::new(format!(
                    "{} '{}' ended with {ending}: nothing more is run (where that is no failure, \
                     write '... || true')",
                    kind.flag(),
                    text.unwrap_or_default(),
                )))
            }
            answer => {
                if let LauncherAnswer::Done(signal) = answer {
                    self.signal = signal;
                }
                Ok(answer)
            }
        }
    }

    /// Returns the words of a command of the series.
    fn words(&self, command: usize) -> &[OsString] {
        self.commands.get(command).map(Vec::as_slice).unwrap_or_default()
    }

    /// Reaps the launcher. Returns in words how it ended.
    fn wait_for_end(&mut self) -> String {
        match self.process.take().map(|pid| waitpid(Some(pid), WaitOptions::empty())) {
            Some(Ok(Some((_, status)))) => ExitStatus::from_raw(status.as_raw()).to_string(),
            Some(Err(errno)) => errno.to_string(),
            Some(Ok(None)) | None => "it ended before".to_string(),
        }
    }
}

/// Returns a function that makes the error of a step in the start of the launcher.
fn cannot_start(step: &str) -> impl Fn(Errno) -> LauncherError + '_ {
    move |errno| {
        let hint = series::limit_hint(errno);
        LauncherError::new(format!("cannot start the launcher: {step}: {errno}{hint}"))
    }
}

/// Like [`cannot_start`], for an error of the standard library.
fn cannot_start_io(step: &str) -> impl Fn(io::Error) -> LauncherError + '_ {
    move |error| cannot_start(step)(Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

fn unreadable_answer(error: &dyn Display) -> LauncherError {
    LauncherError::new(format!("cannot read the launcher's answer: {error}"))
}

impl Drop for Launcher {
    /// Closes the socket, which ends the launcher, and waits for its end.
    fn drop(&mut self) {
        let _ = self.answers.get_ref().shutdown(Shutdown::Both);
        if let Some(pid) = self.process.take() {
            while waitpid(Some(pid), WaitOptions::empty()).err() == Some(Errno::INTR) {}
        }
    }
}
