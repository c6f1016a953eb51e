//! How a command is started and accounted for.
//!
//! Commands are started by a process of their own, the launcher: this program again, small and with one
//! thread, so that what the kernel charges to a command is the command's own. [`Launcher`] is the
//! program's end, [`serve_if_asked`] the launcher's.
#![forbid(unsafe_code)]

mod accounting;
mod not_started;
mod series;
mod serve;
mod used;

use std::io::{self, BufRead, BufReader};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use probe::command::{BlockedStopSignals, StopHandlers, start_again, stop_signal};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, waitpid};

pub use not_started::NotStarted;
pub use probe::command::KeptActions;
use series::Request;
pub use series::{Answer, Series, order};
pub use serve::serve_if_asked;
pub use used::{AtExec, Delay, Ending, IoBytes, Orphans, Run, Sampled, Threads, Usage, Used};

/// The launcher with its series.
pub struct Launcher {
    // Dropped first: its handlers write to the socket.
    _handlers: StopHandlers,
    answers: BufReader<UnixStream>,
    process: Option<Pid>,
}

/// The launcher failed.
#[derive(Debug, thiserror::Error)]
pub enum LauncherError {
    /// It could not be started.
    #[error("cannot start the launcher: {step}: {errno}{}", not_started::limit(*.errno))]
    Start {
        /// The system call.
        step: &'static str,
        /// Its errno.
        errno: Errno,
    },
    /// It ended before its series.
    #[error(
        "the launcher has ended ({how}): a command that was running goes on, and nothing is known of it"
    )]
    Gone {
        /// How it ended.
        how: String,
    },
    /// What it wrote is not an answer.
    #[error("cannot read the launcher's answer: {0}")]
    Answer(#[source] io::Error),
}

impl Launcher {
    /// Starts the launcher, which begins at once. Until this is dropped, signals that ask to stop do not
    /// end this program: they are noted, and reach the command that runs. For a program with one thread.
    pub fn start(series: &Series) -> Result<Self, LauncherError> {
        let cannot = |step| move |errno| LauncherError::Start { step, errno };
        let io = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
        // Until the handlers are there, nobody would pass one on.
        let blocked = BlockedStopSignals::block();
        let (ours, theirs) = UnixStream::pair().map_err(io).map_err(cannot("socketpair"))?;
        let words = series.write_words().map_err(cannot("memfd_create"))?;
        let request = Request::of(series, blocked.before(), theirs.as_fd(), words.as_fd());
        let process = request
            .in_words()
            .and_then(|[own, name, request]| {
                start_again(&[&own, &name, &request], &[theirs.as_fd(), words.as_fd()])
            })
            .map_err(cannot("fork"))?;
        let socket = ours.try_clone().map_err(io).map_err(cannot("dup"))?;
        let handlers = StopHandlers::install(Some(socket.into())).map_err(cannot("sigaction"))?;
        Ok(Self { _handlers: handlers, answers: BufReader::new(ours), process: Some(process) })
    }

    /// The last signal that asked to stop, if one came.
    pub fn signal(&self) -> Option<u8> {
        stop_signal().and_then(|signal| u8::try_from(signal).ok())
    }

    /// The next answer.
    pub fn answer(&mut self) -> Result<Answer, LauncherError> {
        let mut line = Vec::new();
        match self.answers.read_until(b'\n', &mut line) {
            Ok(0) => Err(LauncherError::Gone { how: self.wait() }),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                Err(LauncherError::Gone { how: self.wait() })
            }
            Err(error) => Err(LauncherError::Answer(error)),
            Ok(_) => {
                serde_json::from_slice(&line).map_err(|error| LauncherError::Answer(error.into()))
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
