//! Ctrl-C: the worker is ended at once, what was measured so far is printed, the exit code tells.

use std::io;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

#[derive(Default)]
struct State {
    signal: Option<i32>,
    worker: Option<Child>,
}

/// Which signal asked to stop, if one did, and the running worker.
#[derive(Clone, Default)]
pub(crate) struct Interrupt(Arc<(Mutex<State>, Condvar)>);

impl Interrupt {
    /// Watches SIGINT and SIGTERM. A second signal ends the program at once.
    pub(crate) fn watch() -> Result<Self> {
        let interrupt = Self::default();
        let mut signals =
            Signals::new([SIGINT, SIGTERM]).context("cannot watch for Ctrl-C (sigaction)")?;
        let shared = interrupt.clone();
        let watch = move || {
            for signal in signals.forever() {
                if shared.stop(signal).is_some() {
                    std::process::exit(128 + signal);
                }
            }
        };
        let thread = thread::Builder::new().name("signals".into());
        thread.spawn(watch).context("cannot start a thread")?;
        Ok(interrupt)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the worker and all waits, those to come too; gives the signal before.
    fn stop(&self, signal: i32) -> Option<i32> {
        let earlier = self.state().signal.replace(signal);
        self.kill_worker();
        self.0.1.notify_all();
        earlier
    }

    /// The signal that asked to stop.
    pub(crate) fn signal(&self) -> Option<i32> {
        self.state().signal
    }

    /// Waits for a signal, but no longer than this; gives whether one came.
    pub(crate) fn wait(&self, longest: Duration) -> bool {
        let is_left = |state: &mut State| state.signal.is_none();
        let waited = self.0.1.wait_timeout_while(self.state(), longest, is_left);
        waited.unwrap_or_else(PoisonError::into_inner).0.signal.is_some()
    }

    /// The exit code that tells of it.
    pub(crate) fn exit_code(&self) -> Option<u8> {
        self.signal().map(|signal| 128 + u8::try_from(signal).unwrap_or(0))
    }

    /// The process id of the running worker.
    pub(crate) fn worker(&self) -> Option<u32> {
        self.state().worker.as_ref().map(Child::id)
    }

    /// Starts the worker, and gives what `take` takes of it. Where somebody asked to stop, ErrorKind::Interrupted.
    pub(crate) fn start<T>(
        &self,
        spawn: impl FnOnce() -> io::Result<Child>,
        take: impl FnOnce(&mut Child) -> T,
    ) -> io::Result<T> {
        // With the lock held: either the signal is seen here, or the worker is seen where it is noted.
        let mut state = self.state();
        match state.signal {
            Some(_) => Err(io::ErrorKind::Interrupted.into()),
            None => Ok(take(state.worker.insert(spawn()?))),
        }
    }

    /// How the worker has ended, once it has.
    pub(crate) fn wait_for_worker(&self) -> io::Result<ExitStatus> {
        // The lock is not kept while waiting: the thread that waits for signals needs it.
        let child = self.state().worker.take();
        child.ok_or_else(|| io::Error::other("the process is gone"))?.wait()
    }

    /// Ends the running worker, if there is one, and all that runs in its process group: what a prefix
    /// has started does not go with it by itself.
    pub(crate) fn kill_worker(&self) {
        if let Some(child) = self.state().worker.as_mut() {
            // Its members go with it. One that is gone already is what we want.
            let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
            let _ = child.kill();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_ends_waits_in_other_threads_and_later_ones() {
        let (interrupt, long) = (Interrupt::default(), Duration::from_secs(3600));
        assert!(!interrupt.wait(Duration::from_millis(1)));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| interrupt.wait(long));
            assert_eq!(interrupt.stop(SIGINT), None);
            assert!(waits.join().unwrap());
        });
        assert!(interrupt.wait(long));
        assert_eq!(interrupt.exit_code(), Some(130));
    }
}
