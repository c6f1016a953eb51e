//! A deadline for a worker, watched from where the program runs. The worker has its own (SIGALRM), but a
//! member under a real-time policy may keep its CPU from delivering that.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::interrupt::Interrupt;

/// Watches the running worker from its start until [`Deadline::over`].
pub(crate) struct Deadline {
    done: Sender<()>,
    watch: JoinHandle<bool>,
}

impl Deadline {
    /// Ends the worker that runs in `patience`.
    pub(crate) fn watch(interrupt: &Interrupt, patience: Duration) -> std::io::Result<Self> {
        let (done, waits) = channel();
        let interrupt = interrupt.clone();
        let watch = move || {
            let overdue = waits.recv_timeout(patience) == Err(RecvTimeoutError::Timeout);
            if overdue {
                interrupt.kill_worker();
            }
            overdue
        };
        let watch = thread::Builder::new().name("deadline".into()).spawn(watch)?;
        Ok(Self { done, watch })
    }

    /// The worker has said its last word: whether it was ended.
    pub(crate) fn over(self) -> bool {
        drop(self.done);
        self.watch.join().unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn sleeper(interrupt: &Interrupt) {
        let child = Command::new("sleep").arg("1000").spawn().expect("sleep(1) starts");
        *interrupt.worker() = Some(child);
    }

    fn end(interrupt: &Interrupt) -> std::process::ExitStatus {
        interrupt.kill_worker();
        let child = interrupt.worker().take();
        child.expect("a child").wait().expect("its status")
    }

    #[test]
    fn a_worker_that_does_not_end_is_ended() {
        let interrupt = Interrupt::default();
        sleeper(&interrupt);
        let deadline = Deadline::watch(&interrupt, Duration::from_millis(1)).expect("a thread");
        let ended =
            || interrupt.worker().as_mut().is_some_and(|c| !matches!(c.try_wait(), Ok(None)));
        while !ended() {
            thread::yield_now();
        }
        assert!(deadline.over());
    }

    #[test]
    fn a_worker_that_ends_in_time_is_left_alone() {
        let interrupt = Interrupt::default();
        sleeper(&interrupt);
        let deadline = Deadline::watch(&interrupt, Duration::from_secs(1000)).expect("a thread");
        assert!(!deadline.over());
        let running = interrupt.worker().as_mut().map(|child| child.try_wait().expect("asked"));
        assert_eq!(running, Some(None));
        end(&interrupt);
    }
}
