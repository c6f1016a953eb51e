//! Commands through the launcher: a tiny process of this program that starts them, so that what the
//! kernel charges to them is theirs.

use std::ffi::CString;
use std::io::{self, BufReader};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result, anyhow};
use model::command_use::Used;
use probe::command::{Answer, HeldBack, NotStarted, Series, StopWatch, start_again, stop_signal};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, waitpid};

use crate::bell::Bell;
use crate::not_started;

/// The word that makes this program the launcher.
pub(crate) const NAME: &str = "launcher";

/// The launcher with its series.
pub(crate) struct Launcher {
    // First: its handlers write to the socket.
    _watch: StopWatch,
    answers: BufReader<UnixStream>,
    process: Option<Pid>,
}

/// What came of a command that was begun.
pub(crate) enum End {
    Ended(Box<Used>),
    NotStarted(NotStarted),
    /// A signal asked to stop before it began.
    Held(u8),
}

impl Launcher {
    /// Starts the launcher, which begins at once. Until this is dropped signals do not end this program:
    /// they are noted, and reach the command that runs. For a program with one thread.
    pub(crate) fn start(series: &Series) -> Result<Self> {
        // Nobody would be there to hand one on.
        let held = HeldBack::hold();
        let (ours, theirs) = UnixStream::pair().map_err(|error| cannot("socketpair", &error))?;
        let request =
            series.write(held.before()).map_err(|errno| cannot("memfd_create", &errno.into()))?;
        let text = |word: String| CString::new(word).context("a number has no zero byte");
        let descriptors = [theirs.as_raw_fd(), request.as_raw_fd()];
        let numbers = [
            std::process::id().to_string(),
            descriptors[0].to_string(),
            descriptors[1].to_string(),
        ];
        let words = ["switchcost".to_string(), NAME.to_string()].into_iter().chain(numbers);
        let words = words.map(text).collect::<Result<Vec<_>>>()?;
        let words: Vec<_> = words.iter().map(CString::as_c_str).collect();
        let process =
            start_again(&words, &descriptors).map_err(|errno| cannot("fork", &errno.into()))?;
        let watch = StopWatch::install(Some(ours.as_fd())).context("sigaction");
        let answers = BufReader::new(ours);
        Ok(Self { _watch: watch?, answers, process: Some(process) })
    }

    /// The last signal that came, if one did.
    pub(crate) fn signal(&self) -> Option<u8> {
        stop_signal().and_then(|signal| u8::try_from(signal).ok())
    }

    /// The next answer.
    pub(crate) fn hear(&mut self) -> Result<Answer> {
        Answer::read(&mut self.answers).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => {
                anyhow!(self.end_in_words())
            }
            _ => anyhow!(error).context("the launcher's answer cannot be read"),
        })
    }

    /// The id of the one command of a series that is announced.
    pub(crate) fn begun(&mut self) -> Result<std::result::Result<u32, End>> {
        match self.hear()? {
            Answer::Started { pid } => Ok(Ok(pid)),
            other => end_of(other).map(Err),
        }
    }

    /// Lets a thread of its own wait for the end of the command that was begun; the bell is rung then.
    pub(crate) fn ring_at_end(mut self, bell: Bell) -> Result<JoinHandle<Result<End>>> {
        let wait = move || {
            let ended = self.hear().and_then(end_of);
            bell.ring();
            ended
        };
        thread::Builder::new().name("end".into()).spawn(wait).context("cannot start a thread")
    }

    /// The launcher is gone: how, and what that means.
    fn end_in_words(&mut self) -> String {
        let how = match self.process.take().map(|pid| waitpid(Some(pid), WaitOptions::empty())) {
            Some(Ok(Some((_, status)))) => {
                match (status.exit_status(), status.terminating_signal()) {
                    (Some(127), _) => "/proc/self/exe cannot be executed".to_string(),
                    (Some(code), _) => format!("exit code {code}"),
                    (None, Some(signal)) => format!("signal {signal}"),
                    (None, None) => "it was stopped".to_string(),
                }
            }
            Some(Ok(None)) | None => "it ended before".to_string(),
            Some(Err(errno)) => errno.to_string(),
        };
        format!(
            "the launcher is gone ({how}): a command that was running was left to itself, and nothing is known of it"
        )
    }
}

fn cannot(step: &str, error: &io::Error) -> anyhow::Error {
    let limit = Errno::from_io_error(error).map_or("", not_started::limit);
    anyhow!("cannot start the launcher: {step}: {error}{limit}")
}

fn end_of(answer: Answer) -> Result<End> {
    match answer {
        Answer::Ran { used, .. } => Ok(End::Ended(used)),
        Answer::NotStarted { failure, .. } => Ok(End::NotStarted(failure)),
        Answer::Done { signal: Some(signal) } => Ok(End::Held(signal)),
        Answer::Done { signal: None } | Answer::Started { .. } => {
            Err(anyhow!("the launcher tells of no end"))
        }
    }
}

impl Drop for Launcher {
    /// It ends with its series, or with its socket.
    fn drop(&mut self) {
        let _ = self.answers.get_ref().shutdown(std::net::Shutdown::Both);
        if let Some(pid) = self.process.take() {
            while waitpid(Some(pid), WaitOptions::empty()).err() == Some(Errno::INTR) {}
        }
    }
}
