//! How a command is started and accounted for.
//!
//! Commands are started by a process of their own, the launcher: this program again, small and with
//! one thread, so that what the kernel charges to a command is the command's own. [`Launcher`] is
//! the program's end, [`serve_if_asked`] the launcher's.
#![forbid(unsafe_code)]

mod accounting;
mod series;
mod serve;
mod used;

use std::cell::RefCell;
use std::ffi::{CString, OsString};
use std::fmt::Display;
use std::io::{self, BufRead, BufReader};
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
use series::{Answer, NAME, Request};
pub use series::{Enough, Series, look_up, order};
pub use serve::serve_if_asked;
pub use used::{AtExec, Delay, Ending, IoBytes, Orphans, Run, Sampled, Threads, Usage, Used};

/// The launcher with its series.
pub struct Launcher {
    // Dropped first: its handlers write to the socket.
    _handlers: StopHandlers,
    answers: BufReader<UnixStream>,
    process: Option<Pid>,
    watch: RefCell<Watch>,
    commands: Vec<Vec<OsString>>,
    /// The last signal that reached the launcher, once the series is done.
    signal: Option<u8>,
}

/// Looks whether the launcher goes on.
struct Watch {
    standstill: StandstillWatch,
    next_look: Instant,
    /// It was killed, as it had been stopped and nobody continued it: its process id.
    given_up: Option<i32>,
}

impl Watch {
    fn of(process: Pid) -> Self {
        let standstill = StandstillWatch::new(process);
        Self { next_look: Instant::now() + standstill.pause(), standstill, given_up: None }
    }

    fn look(&mut self, process: Option<Pid>) {
        let stands = process.filter(|_| self.standstill.look().is_some());
        self.next_look = Instant::now() + self.standstill.pause();
        if let Some(process) = stands {
            let _ = kill_process(process, Signal::KILL);
            self.given_up = Some(process.as_raw_pid());
        }
    }
}

/// A command could not be started, or the launcher failed.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct LauncherError {
    message: String,
    /// The exit code that says so: 127 where the command is not there, 126 where it cannot be run
    /// (env(1)), else 1.
    pub exit_code: u8,
}

impl LauncherError {
    fn new(message: String) -> Self {
        Self { message, exit_code: 1 }
    }
}

impl Launcher {
    /// Starts the launcher, which begins at once. Until this is dropped, signals that ask to stop
    /// do not end this program: they are noted, and reach the command that runs. For a program with
    /// one thread.
    pub fn start(series: Series) -> Result<Self, LauncherError> {
        let cannot = |step| {
            move |errno| {
                let limit = series::limit(errno);
                LauncherError::new(format!("cannot start the launcher: {step}: {errno}{limit}"))
            }
        };
        let io = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
        // Until the handlers are installed, none would be forwarded.
        let blocked = BlockedStopSignals::block();
        let (ours, theirs) = UnixStream::pair().map_err(io).map_err(cannot("socketpair"))?;
        // Before there is a launcher: what fails from then on would leave it without a program.
        let socket = ours.try_clone().map_err(io).map_err(cannot("dup"))?;
        let words = series.write_words().map_err(cannot("memfd_create"))?;
        let commands = series.all().cloned().collect();
        let request = Request {
            parent: std::process::id() as i32,
            socket: theirs.as_raw_fd(),
            words: words.as_raw_fd(),
            measured: series.commands.len(),
            has_environment: !series.environment.is_empty(),
            series,
            blocked: blocked.before(),
            inherited: InheritedState::own(),
        };
        // Numbers and flags only: it has a form in JSON, and no zero.
        let request = serde_json::to_vec(&request).unwrap_or_default();
        let request = CString::new(request).unwrap_or_default();
        let again = [c"switchcost", NAME, &request];
        let process =
            start_again(&again, &[theirs.as_fd(), words.as_fd()]).map_err(cannot("fork"))?;
        let handlers = StopHandlers::install(Some(socket.into())).map_err(cannot("sigaction"))?;
        let (answers, watch) = (BufReader::new(ours), RefCell::new(Watch::of(process)));
        let process = Some(process);
        Ok(Self { _handlers: handlers, answers, process, watch, commands, signal: None })
    }

    /// The last signal that asked to stop, if one came.
    pub fn signal(&self) -> Option<u8> {
        stop_signal().and_then(|signal| u8::try_from(signal).ok()).or(self.signal)
    }

    /// A signal that asked to stop and reached the launcher alone, once the series is done: the
    /// command ran on, but somebody wanted something else. The exit code is 128 + the signal.
    pub fn stopped_alone(&self) -> Option<LauncherError> {
        let signal = self.signal.filter(|_| stop_signal().is_none())?;
        let message = format!(
            "signal {signal} reached only the launcher and did not stop the command: send it to \
                the command or to switchcost"
        );
        Some(LauncherError { message, exit_code: 128 + signal })
    }

    /// The process id of the command that is started first, of an announced series; none where
    /// there is none.
    pub fn started(&mut self) -> Result<Option<u32>, LauncherError> {
        match self.answer()? {
            Answer::Started(pid) => Ok(Some(pid)),
            _ => Ok(None),
        }
    }

    /// The next run that has ended; none at the end of the series.
    pub fn run(&mut self) -> Result<Option<Run>, LauncherError> {
        loop {
            match self.answer()? {
                Answer::Started(_) => {}
                Answer::Ran(run) => return Ok(Some(*run)),
                _ => return Ok(None),
            }
        }
    }

    /// Waits for the next answer, so long or without end; gives whether it is there. A signal may
    /// end it before. A launcher that was stopped and that nobody continues gives none any more.
    pub fn wait_for_answer(&self, longest: Option<Duration>) -> bool {
        let end = longest.and_then(|longest| Instant::now().checked_add(longest));
        let mut watch = self.watch.borrow_mut();
        while self.answers.buffer().is_empty() && watch.given_up.is_none() {
            let until = end.map_or(watch.next_look, |end| end.min(watch.next_look));
            let left = until.saturating_duration_since(Instant::now());
            let mut answers = [PollFd::new(self.answers.get_ref(), PollFlags::IN)];
            match poll(&mut answers, Timespec::try_from(left).ok().as_ref()) {
                Ok(0) if watch.next_look <= Instant::now() => watch.look(self.process),
                Ok(0) => {}
                Err(Errno::INTR) => return false,
                _ => return true,
            }
            if end.is_some_and(|end| end <= Instant::now()) {
                return watch.given_up.is_some();
            }
        }
        true
    }

    fn answer(&mut self) -> Result<Answer, LauncherError> {
        // A signal may end a wait.
        while !self.wait_for_answer(None) {}
        let unreadable = |error: &dyn Display| {
            LauncherError::new(format!("cannot read the launcher's answer: {error}"))
        };
        let mut line = Vec::new();
        match self.answers.read_until(b'\n', &mut line) {
            Ok(1..) => {}
            Err(error) if error.kind() != io::ErrorKind::ConnectionReset => {
                return Err(unreadable(&error));
            }
            Ok(0) | Err(_) if self.watch.borrow().given_up.is_some() => {
                let pid = self.watch.borrow().given_up.unwrap_or_default();
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
                    self.wait()
                )));
            }
        }
        match serde_json::from_slice(&line).map_err(|error| unreadable(&error))? {
            Answer::NotStarted { command, failure } => {
                let words = self.commands.get(command).map_or(&[][..], Vec::as_slice);
                let (message, exit_code) = failure.explain(words);
                Err(LauncherError { message, exit_code })
            }
            Answer::Around { what, command, ending } => {
                let words = self.commands.get(command).map_or(&[][..], Vec::as_slice);
                Err(LauncherError::new(format!(
                    "{} '{}' ended with {ending}: nothing more is run (where that is no failure, \
                     write '... || true')",
                    what.flag(),
                    words.last().map_or("".into(), |text| text.to_string_lossy()),
                )))
            }
            answer => {
                if let Answer::Done(signal) = answer {
                    self.signal = signal;
                }
                Ok(answer)
            }
        }
    }

    /// How the launcher's process ended.
    fn wait(&mut self) -> String {
        match self.process.take().map(|pid| waitpid(Some(pid), WaitOptions::empty())) {
            Some(Ok(Some((_, status)))) => ExitStatus::from_raw(status.as_raw()).to_string(),
            Some(Err(errno)) => errno.to_string(),
            Some(Ok(None)) | None => "it ended before".to_string(),
        }
    }
}

impl Drop for Launcher {
    /// It ends with its series, or with its socket.
    fn drop(&mut self) {
        let _ = self.answers.get_ref().shutdown(Shutdown::Both);
        if let Some(pid) = self.process.take() {
            while waitpid(Some(pid), WaitOptions::empty()).err() == Some(Errno::INTR) {}
        }
    }
}
