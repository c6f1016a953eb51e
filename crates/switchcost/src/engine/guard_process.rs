//! A guard: this program again, as a process that changes the machine for a session. When it hears no
//! more of the session, however that ended, it puts back what it changed.
//!
//! A session sends requests, a line of JSON each, and gets an answer to each. The end of the pipe, by
//! close or kill, is the order to put back.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::interrupt::Interrupt;
use crate::base::failure::Interrupted;

/// A guard and the pipes to it.
pub(crate) struct GuardProcess {
    /// Its name in messages: `the guard of the setting`.
    name: &'static str,
    process: Child,
    /// Closed, it is the order to put back. Absent once that was given.
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl GuardProcess {
    /// Starts this program as a guard by its hidden command.
    pub(crate) fn start(command: &str, name: &'static str) -> Result<Self> {
        let mut process = Command::new("/proc/self/exe")
            .arg(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        let (Some(requests), Some(answers)) = (process.stdin.take(), process.stdout.take()) else {
            bail!("{name} has no pipes");
        };
        Ok(Self { name, process, requests: Some(requests), answers: BufReader::new(answers) })
    }

    /// Returns the process id.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Returns whether the guard may be asked: it was not told to put back, and nothing has failed.
    pub(crate) fn is_asked(&self) -> bool {
        self.requests.is_some()
    }

    /// Asks the guard for nothing any more: it puts back what it changed.
    pub(crate) fn close(&mut self) {
        self.requests = None;
    }

    /// Asks the guard, and returns its answer; a signal that asks to stop ends the wait. After an
    /// error nothing more is asked: a late answer would be taken for that to the next request.
    pub(crate) fn ask<A: DeserializeOwned>(
        &mut self,
        request: &impl Serialize,
        patience: Duration,
        interrupt: Option<&Interrupt>,
    ) -> Result<A> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        let name = self.name;
        let sent = match &mut self.requests {
            Some(requests) => requests.write_all(&line).and_then(|()| requests.flush()),
            None => bail!("{name} has ended"),
        };
        match self.answer(Instant::now() + patience, interrupt) {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => {
                self.close();
                // A pipe that nobody reads is one more sign of the same.
                match sent {
                    Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                        Err(error).with_context(|| format!("{name} cannot be asked"))
                    }
                    _ => bail!("{name} was killed"),
                }
            }
            Err(error) => {
                self.close();
                Err(error)
            }
        }
    }

    /// Returns the next answer; `None` where the guard has ended without one.
    pub(crate) fn answer<A: DeserializeOwned>(
        &mut self,
        until: Instant,
        interrupt: Option<&Interrupt>,
    ) -> Result<Option<A>> {
        while !self.answers.buffer().contains(&b'\n') {
            if let Some(code) = interrupt.and_then(Interrupt::exit_code) {
                return Err(Interrupted(code).into());
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                bail!("{} did not answer in time", self.name);
            }
            let timeout = Timespec::try_from(left).ok();
            let mut fds = vec![PollFd::new(self.answers.get_ref(), PollFlags::IN)];
            if let Some(interrupt) = interrupt {
                fds.push(PollFd::from_borrowed_fd(interrupt.wake(), PollFlags::IN));
            }
            match poll(&mut fds, timeout.as_ref()) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) if fds[0].revents().is_empty() => _ = interrupt.map(Interrupt::was_woken),
                Ok(_) => break,
                Err(errno) => return Err(errno).context("poll"),
            }
        }
        let mut line = String::new();
        self.answers.read_line(&mut line).context(self.name)?;
        Ok(serde_json::from_str(&line).ok())
    }

    /// Waits for the end of a guard that has closed its pipe.
    pub(crate) fn wait(&mut self) -> Option<ExitStatus> {
        self.process.wait().ok()
    }
}
