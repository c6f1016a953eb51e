//! Commands through the launcher: a tiny process of this program that starts them, so that what the
//! kernel charges to them is theirs.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result, anyhow};
use model::command_use::Used;
use probe::command::NotStarted;
use probe::program::{hand_on, is_ignored};
use rustix::io::{FdFlags, fcntl_setfd};
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::raw::WithRawSiginfo;

use crate::bell::Bell;

/// Signals that are handed on to the command.
const HANDED_ON: [i32; 4] = [SIGINT, SIGQUIT, SIGTERM, SIGHUP];

/// The word that makes this program the launcher.
pub(crate) const NAME: &str = "launcher";

/// A command to run.
#[derive(Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) words: Vec<OsString>,
    pub(crate) tree: bool,
    /// Whether its id is wanted as soon as it has one.
    pub(crate) announce: bool,
}

/// What the launcher says of it.
#[derive(Serialize, Deserialize)]
pub(crate) enum Answer {
    Started(u32),
    NotStarted(NotStarted),
    Ended(Box<Used>),
}

/// What a command used, or why there was none.
pub(crate) type Ended = Result<Used, NotStarted>;

/// The launcher, and whoever hands signals on to it.
pub(crate) struct Launcher {
    answers: BufReader<UnixStream>,
    process: Arc<Mutex<Option<Child>>>,
    signal: Arc<AtomicI32>,
}

impl Launcher {
    /// Starts the launcher. From now on signals do not end this program: they are noted, and handed
    /// on to the command that runs. What is ignored (nohup) stays so, for all three.
    pub(crate) fn start() -> Result<Self> {
        let (ours, theirs) = UnixStream::pair().context("socketpair")?;
        fcntl_setfd(&theirs, FdFlags::empty()).context("fcntl")?;
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(&theirs);
        // Before there are handlers: exec would turn them into the default action, also of signals that
        // this program was started with ignoring.
        let child = Command::new("/proc/self/exe")
            .args([NAME, &std::process::id().to_string(), &descriptor.to_string()])
            .spawn()
            .context("cannot start the launcher (/proc/self/exe)")?;
        let process = Arc::new(Mutex::new(Some(child)));
        let signal = Arc::new(AtomicI32::new(0));
        watch_signals(Arc::clone(&process), Arc::clone(&signal))?;
        Ok(Self { answers: BufReader::new(ours), process, signal })
    }

    /// The last signal that came, if one did.
    pub(crate) fn signal(&self) -> Option<i32> {
        Some(self.signal.load(Ordering::SeqCst)).filter(|signal| *signal != 0)
    }

    /// Runs a command to its end.
    pub(crate) fn run(&mut self, words: &[OsString], tree: bool) -> Result<Ended> {
        self.ask(&Request { words: words.to_vec(), tree, announce: false })?;
        self.end()
    }

    /// Starts a command; gives its process id.
    pub(crate) fn begin(&mut self, words: &[OsString]) -> Result<Result<u32, NotStarted>> {
        self.ask(&Request { words: words.to_vec(), tree: false, announce: true })?;
        match self.hear()? {
            Answer::Started(pid) => Ok(Ok(pid)),
            Answer::NotStarted(failure) => Ok(Err(failure)),
            Answer::Ended(_) => Err(anyhow!("the launcher tells of an end without a start")),
        }
    }

    /// Lets a thread of its own wait for the end of the command that was begun; the bell is rung then.
    pub(crate) fn ring_at_end(mut self, bell: Bell) -> Result<JoinHandle<Result<Ended>>> {
        let wait = move || {
            let ended = self.end();
            bell.ring();
            ended
        };
        thread::Builder::new().name("end".into()).spawn(wait).context("cannot start a thread")
    }

    fn end(&mut self) -> Result<Ended> {
        loop {
            match self.hear()? {
                Answer::Started(_) => {}
                Answer::NotStarted(failure) => return Ok(Err(failure)),
                Answer::Ended(used) => return Ok(Ok(*used)),
            }
        }
    }

    fn ask(&mut self, request: &Request) -> Result<()> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        let told = self.answers.get_mut().write_all(&line);
        told.map_err(|error| anyhow!(error).context(self.end_in_words()))
    }

    fn hear(&mut self) -> Result<Answer> {
        let mut line = String::new();
        match self.answers.read_line(&mut line) {
            Ok(0) => Err(anyhow!(self.end_in_words())),
            Ok(_) => serde_json::from_str(&line).context("the launcher's answer cannot be read"),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                Err(anyhow!(self.end_in_words()))
            }
            Err(error) => Err(error).context("cannot hear the launcher"),
        }
    }

    /// The launcher is gone: how, and what that means.
    fn end_in_words(&self) -> String {
        let child = lock(&self.process).take();
        let how = match child.map(|mut child| child.wait()) {
            Some(Ok(status)) => status.to_string(),
            Some(Err(error)) => error.to_string(),
            None => "ended before".to_string(),
        };
        format!(
            "the launcher is gone ({how}): the command was left to itself, and nothing is known of it"
        )
    }
}

impl Drop for Launcher {
    /// It ends with its socket.
    fn drop(&mut self) {
        let _ = self.answers.get_ref().shutdown(std::net::Shutdown::Both);
        if let Some(mut child) = lock(&self.process).take() {
            let _ = child.wait();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes each signal, and hands it on if another process sent it: those of the terminal reach the
/// launcher and the command by themselves.
fn watch_signals(process: Arc<Mutex<Option<Child>>>, noted: Arc<AtomicI32>) -> Result<()> {
    let caught = HANDED_ON.into_iter().filter(|signal| !is_ignored(*signal));
    let mut signals = SignalsInfo::<WithRawSiginfo>::new(caught).context("sigaction")?;
    let watch = move || {
        for info in signals.forever() {
            noted.store(info.si_signo, Ordering::SeqCst);
            // With the lock held the launcher is not reaped: its id is its own.
            let process = lock(&process);
            if let Some(child) = process.as_ref().filter(|_| info.si_code <= 0) {
                hand_on(child.id(), info.si_signo);
            }
        }
    };
    thread::Builder::new().name("signals".into()).spawn(watch).context("cannot start a thread")?;
    Ok(())
}
