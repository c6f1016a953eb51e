//! What a worker says, line by line, until it has ended.
//!
//! The end of its output is not enough to go by: what a prefix has left running in the background
//! holds the other end of the pipe too, and may hold it for ever.

use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Child, ChildStdout};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

/// How long those that died with the worker may take to let go of the pipe.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The lines of a worker that leads a process group.
pub(crate) struct Hearing {
    stdout: ChildStdout,
    /// Readable once the worker has ended. None where the kernel has no such thing (before 5.3): then
    /// the end of its output is its end.
    worker: Option<OwnedFd>,
    group: Pid,
    said: Vec<u8>,
    /// There is no more to read.
    is_over: bool,
    /// When the worker ended.
    ended: Option<Instant>,
}

impl Hearing {
    /// Of the worker whose output that is.
    pub(crate) fn of(worker: &Child, stdout: ChildStdout) -> Self {
        let group = Pid::from_child(worker);
        Self {
            stdout,
            worker: pidfd_open(group, PidfdFlags::empty()).ok(),
            group,
            said: Vec::new(),
            is_over: false,
            ended: None,
        }
    }

    /// Ends all that the worker, or the prefix before it, has started in its group. The worker must not
    /// have been waited for: until then the number is nobody else's.
    fn end_group(&self) {
        // Most often nobody is left there.
        let _ = kill_process_group(self.group, Signal::KILL);
    }

    fn read(&mut self) {
        let mut bytes = [0; 16 * 1024];
        match self.stdout.read(&mut bytes) {
            Ok(0) => self.is_over = true,
            Ok(count) => self.said.extend_from_slice(&bytes[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => self.is_over = true,
        }
    }

    /// Waits for more words or the worker's end. False once there will be none.
    fn wait(&mut self) -> bool {
        let (has_words, has_ended) = match self.events() {
            Ok(events) => events,
            Err(Errno::INTR) => return true,
            Err(_) => return false,
        };
        if has_ended {
            self.ended = Some(Instant::now());
            self.end_group();
        }
        if has_words {
            self.read();
        }
        has_words || has_ended
    }

    /// Whether there is something to read, and whether the worker has just ended. Neither, if there is
    /// nothing to wait for any more: what holds the pipe then is outside of the group.
    fn events(&self) -> Result<(bool, bool), Errno> {
        let stdout = (!self.is_over).then_some(&self.stdout);
        let worker = self.worker.as_ref().filter(|_| self.ended.is_none());
        let left = self.ended.map(|ended| LAST_WORDS.saturating_sub(ended.elapsed()));
        if stdout.is_none() && worker.is_none() || left == Some(Duration::ZERO) {
            return Ok((false, false));
        }
        let stdout = stdout.map(|stdout| PollFd::new(stdout, PollFlags::IN));
        let worker = worker.map(|worker| PollFd::new(worker, PollFlags::IN));
        let has_stdout = stdout.is_some();
        let mut ends: Vec<PollFd> = stdout.into_iter().chain(worker).collect();
        let limit = left.and_then(|left| Timespec::try_from(left).ok());
        poll(&mut ends, limit.as_ref())?;
        let mut ready = ends.iter().map(|end| !end.revents().is_empty());
        let has_words = has_stdout && ready.next().unwrap_or(false);
        Ok((has_words, ready.next().unwrap_or(false)))
    }
}

impl Iterator for Hearing {
    type Item = Vec<u8>;

    /// The next line, without its end; at last what was cut off.
    fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(end) = self.said.iter().position(|byte| *byte == b'\n') {
                let behind = self.said.split_off(end + 1);
                let mut line = std::mem::replace(&mut self.said, behind);
                line.pop();
                return Some(line);
            }
            if !self.wait() {
                let rest = std::mem::take(&mut self.said);
                return (!rest.is_empty()).then_some(rest);
            }
        }
    }
}
