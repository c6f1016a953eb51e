//! Reads what a worker writes, line by line, until it has ended.
//!
//! The end of its output is not enough to go by: what a prefix has left running in the background
//! holds the other end of the pipe too, and may hold it for ever. So five events are waited for:
//!
//! | event | then |
//! |---|---|
//! | output, or its end | it is read |
//! | the worker has ended | its group is killed; for a second more, output is read |
//! | a signal asks to stop | the worker is killed |
//! | the deadline is over | the worker is killed. It has a deadline of its own (SIGALRM), but a member under a real-time policy may keep its CPU from delivering that |
//! | a process of it was stopped and nobody continued it | the worker is killed. To a stopped process no SIGALRM is delivered at all, so it is looked for |

use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use probe::standstill::StandstillWatch;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::engine::interrupt::Interrupt;

/// Longest time for which output is read after the end of the worker: processes that were killed
/// with it need a moment to let go of the pipe.
const MAX_LAST_OUTPUT: Duration = Duration::from_secs(1);

/// Longest patience: later than any deadline.
const MAX_PATIENCE: Duration = Duration::from_secs(1 << 32);

/// The lines of the running worker, which leads a process group. They must be read before the
/// worker is waited for.
pub(crate) struct WorkerOutput<R> {
    interrupt: Interrupt,
    stdout: R,
    /// Readable once the worker has ended. None where the kernel has no such descriptor (before
    /// 5.3): then the end of the output stands for the end of the worker.
    worker: Option<OwnedFd>,
    /// When the worker is killed; after its end, until when its output is read.
    deadline: Instant,
    standstill: StandstillWatch,
    unread: Vec<u8>,
    at_end_of_file: bool,
    has_ended: bool,
    /// Set once the worker was killed because a signal asked to stop.
    is_stopped: bool,
    /// Set once the worker was killed for taking too long.
    pub(crate) is_overdue: bool,
    /// The process for whose sake the worker was killed: it was stopped and nobody continued it.
    pub(crate) stood_still: Option<i32>,
}

impl<R: Read + AsFd> WorkerOutput<R> {
    /// Watches the process `worker`, which is killed after `patience`.
    pub(crate) fn watch(interrupt: &Interrupt, worker: Pid, stdout: R, patience: Duration) -> Self {
        Self {
            interrupt: interrupt.clone(),
            stdout,
            worker: pidfd_open(worker, PidfdFlags::empty()).ok(),
            deadline: Instant::now() + patience.min(MAX_PATIENCE),
            standstill: StandstillWatch::with_children(worker),
            unread: Vec::new(),
            at_end_of_file: false,
            has_ended: false,
            is_stopped: false,
            is_overdue: false,
            stood_still: None,
        }
    }

    /// Kills the worker and all that it or the prefix before it has started in its group.
    fn kill(&mut self) {
        self.interrupt.kill_worker();
        self.deadline = Instant::now() + MAX_LAST_OUTPUT;
    }

    /// Waits for the next event. Returns false once there will be none.
    fn wait(&mut self) -> bool {
        if !self.is_stopped && self.interrupt.signal().is_some() {
            self.is_stopped = true;
            self.kill();
        }
        let reads = !self.at_end_of_file;
        let worker = if self.has_ended { None } else { self.worker.as_ref() };
        let mut polled: Vec<PollFd<'_>> = Vec::new();
        if reads {
            polled.push(PollFd::new(&self.stdout, PollFlags::IN));
        }
        if let Some(worker) = worker {
            polled.push(PollFd::new(worker, PollFlags::IN));
        }
        if polled.is_empty() {
            return false;
        }
        if !self.is_stopped {
            polled.push(PollFd::from_borrowed_fd(self.interrupt.wake(), PollFlags::IN));
        }
        let was_killed =
            self.has_ended || self.is_overdue || self.is_stopped || self.stood_still.is_some();
        let left = self.deadline.saturating_duration_since(Instant::now());
        let pause = self.standstill.pause();
        let looks_for_standstill = !was_killed && pause < left;
        let timeout = if looks_for_standstill { pause } else { left };
        match poll(&mut polled, Timespec::try_from(timeout).ok().as_ref()) {
            Err(Errno::INTR) => return true,
            Err(_) => return false,
            // The process that still holds the pipe is outside of the group.
            Ok(0) if was_killed => return false,
            Ok(0) if looks_for_standstill => {
                self.stood_still = self.standstill.look();
                if self.stood_still.is_some() {
                    self.kill();
                }
                return true;
            }
            Ok(0) => {
                self.is_overdue = true;
                self.kill();
                return true;
            }
            Ok(_) => {}
        }
        // The signal itself is seen at the next wait.
        if !self.is_stopped && polled.last().is_some_and(is_ready) {
            self.interrupt.was_woken();
        }
        let has_output = reads && is_ready(&polled[0]);
        let has_ended = worker.is_some() && is_ready(&polled[usize::from(reads)]);
        if has_ended {
            self.has_ended = true;
            self.kill();
        }
        if has_output {
            self.read();
        }
        true
    }

    fn read(&mut self) {
        let mut bytes = [0; 16 * 1024];
        match self.stdout.read(&mut bytes) {
            Ok(count @ 1..) => self.unread.extend_from_slice(&bytes[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => self.at_end_of_file = true,
        }
    }
}

fn is_ready(polled: &PollFd<'_>) -> bool {
    !polled.revents().is_empty()
}

impl<R: Read + AsFd> Iterator for WorkerOutput<R> {
    type Item = Vec<u8>;

    /// Returns the next line, without its end; at last what was cut off.
    fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let behind = self.unread.split_off(end + 1);
                let mut line = std::mem::replace(&mut self.unread, behind);
                line.pop();
                return Some(line);
            }
            if !self.wait() {
                let rest = std::mem::take(&mut self.unread);
                return if rest.is_empty() { None } else { Some(rest) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

    use super::*;

    /// A shell as a worker, and its pipe.
    fn start(interrupt: &Interrupt, commands: &str) -> (Pid, ChildStdout) {
        let mut shell = Command::new("sh");
        shell.args(["-c", commands]).stdout(Stdio::piped()).process_group(0);
        let taken = |child: &mut Child| (Pid::from_child(child), child.stdout.take());
        let (pid, stdout) = interrupt.start(|| shell.spawn(), taken).expect("sh(1) starts");
        (pid, stdout.expect("its pipe"))
    }

    /// The lines of a shell's commands, whether they took too long, and how they ended.
    fn run(commands: &str, patience: Duration) -> (Vec<Vec<u8>>, bool, ExitStatus) {
        let interrupt = Interrupt::default();
        let (pid, stdout) = start(&interrupt, commands);
        let mut output = WorkerOutput::watch(&interrupt, pid, stdout, patience);
        let lines = output.by_ref().collect();
        (lines, output.is_overdue, interrupt.wait_for_worker().expect("its status"))
    }

    #[test]
    fn a_worker_that_does_not_end_is_ended() {
        let (lines, is_overdue, status) = run("exec sleep 1000", Duration::from_millis(1));
        assert!(lines.is_empty() && is_overdue && !status.success(), "{status}");
    }

    #[test]
    fn a_worker_that_stands_still_is_ended_and_told() {
        for commands in ["kill -STOP $$", "sleep 1000 & kill -STOP $!; echo a; wait"] {
            let interrupt = Interrupt::default();
            let (pid, stdout) = start(&interrupt, commands);
            interrupt.wake_for_another();
            let mut output =
                WorkerOutput::watch(&interrupt, pid, stdout, Duration::from_secs(100_000));
            let has_child = output.by_ref().count() > 0;
            let stood = output.stood_still.expect("somebody stood");
            assert_eq!(stood != pid.as_raw_pid(), has_child, "{commands}");
            assert!(!interrupt.wait_for_worker().expect("its status").success());
        }
    }

    #[test]
    fn a_worker_is_ended_by_a_signal_to_this_program() {
        let interrupt = Interrupt::watch().expect("handlers");
        let mut sleep = Command::new("sleep");
        sleep.arg("1000").stdout(Stdio::piped()).process_group(0);
        let taken = |child: &mut Child| (Pid::from_child(child), child.stdout.take());
        let (pid, stdout) = interrupt.start(|| sleep.spawn(), taken).expect("sleep(1) starts");
        let stdout = stdout.expect("its pipe");
        let output = WorkerOutput::watch(&interrupt, pid, stdout, Duration::from_secs(1000));
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM)
            .expect("itself");
        assert_eq!(output.count(), 0);
        let status = interrupt.wait_for_worker().expect("its status");
        assert!(!status.success() && interrupt.exit_code() == Some(143), "{status}");
    }

    #[test]
    fn a_worker_that_ends_in_time_is_left_alone() {
        let (lines, is_overdue, status) = run("echo a; printf b", Duration::from_secs(1000));
        assert_eq!(lines, [b"a", b"b"]);
        assert!(!is_overdue && status.success(), "{status}");
    }
}
