//! Ctrl-C: the worker is ended at once, what was measured so far is printed, the exit code tells.

use std::process::Child;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Something that happens once, for all who wait for it.
#[derive(Clone, Default)]
pub(crate) struct Flag(Arc<(Mutex<bool>, Condvar)>);

impl Flag {
    /// Ends all waits, those to come too.
    pub(crate) fn set(&self) {
        let (is_set, waiting) = &*self.0;
        *is_set.lock().unwrap_or_else(PoisonError::into_inner) = true;
        waiting.notify_all();
    }

    /// Waits for so long, or without end; gives whether it is set.
    pub(crate) fn wait(&self, longest: Option<Duration>) -> bool {
        let (is_set, waiting) = &*self.0;
        let is_set = is_set.lock().unwrap_or_else(PoisonError::into_inner);
        let longest = longest.unwrap_or(Duration::MAX);
        let waited = waiting.wait_timeout_while(is_set, longest, |is_set| !*is_set);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Which signal asked to stop, if one did, and the running worker.
#[derive(Clone, Default)]
pub(crate) struct Interrupt {
    signal: Arc<AtomicI32>,
    running: Arc<Mutex<Option<Child>>>,
    /// Set by the first signal.
    pub(crate) stop: Flag,
}

impl Interrupt {
    /// Watches SIGINT and SIGTERM. A second signal ends the program at once.
    pub(crate) fn watch() -> Result<Self> {
        let interrupt = Self::default();
        let mut signals =
            Signals::new([SIGINT, SIGTERM]).context("cannot watch for Ctrl-C (sigaction)")?;
        let shared = interrupt.clone();
        let watch = move || {
            for signal in signals.forever() {
                let earlier = shared.signal.swap(signal, Ordering::SeqCst);
                shared.kill_worker();
                if earlier != 0 {
                    std::process::exit(128 + signal);
                }
                shared.stop.set();
            }
        };
        let thread = thread::Builder::new().name("signals".into());
        thread.spawn(watch).context("cannot start a thread")?;
        Ok(interrupt)
    }

    /// The signal that asked to stop.
    pub(crate) fn signal(&self) -> Option<i32> {
        Some(self.signal.load(Ordering::SeqCst)).filter(|signal| *signal != 0)
    }

    /// The exit code that tells of it.
    pub(crate) fn exit_code(&self) -> Option<u8> {
        self.signal().map(|signal| 128 + u8::try_from(signal).unwrap_or(0))
    }

    /// The running worker.
    pub(crate) fn worker(&self) -> MutexGuard<'_, Option<Child>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the running worker, if there is one, and all that runs in its process group: what a prefix
    /// has started does not go with it by itself.
    pub(crate) fn kill_worker(&self) {
        if let Some(child) = self.worker().as_mut() {
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
    fn a_flag_ends_waits_in_other_threads_and_later_ones() {
        let flag = Flag::default();
        assert!(!flag.wait(Some(Duration::from_millis(1))));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| flag.wait(None));
            flag.set();
            assert!(waits.join().unwrap());
        });
        assert!(flag.wait(None));
    }
}
