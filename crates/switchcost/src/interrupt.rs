//! Ctrl-C: the worker is ended at once, what was measured so far is printed, the exit code tells.

use std::process::Child;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::event::Event;

/// The running worker, shared with the thread that waits for signals.
pub(crate) type Running = Arc<Mutex<Option<Child>>>;

/// Which signal asked to stop, if one did.
#[derive(Clone, Default)]
pub(crate) struct Interrupt {
    signal: Arc<AtomicI32>,
    running: Running,
    stop: Event,
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
                if shared.signal.swap(signal, Ordering::SeqCst) != 0 {
                    shared.kill_worker();
                    std::process::exit(128 + signal);
                }
                shared.kill_worker();
                shared.stop.set();
            }
        };
        thread::Builder::new()
            .name("signals".into())
            .spawn(watch)
            .context("cannot start a thread")?;
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

    /// Set by the first signal.
    pub(crate) fn stop_event(&self) -> &Event {
        &self.stop
    }

    /// The running worker.
    pub(crate) fn worker(&self) -> MutexGuard<'_, Option<Child>> {
        self.running.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
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
