//! Ctrl-C: the worker is ended at once, what was measured so far is printed, the exit code tells.
//!
//! This needs no thread: whoever waits also waits for the signal, and this program may fork.
//!
//! ```text
//! SIGINT --> handler: notes the signal, writes a byte to the waker
//!                                                  |
//! poll(output of the worker, ..., wake) <----------+   returns at once; the worker is killed
//! ```

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use probe::command::is_ignored;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

struct InterruptState {
    worker: Mutex<Option<Child>>,
    /// The last signal; 0 before.
    signal: Arc<AtomicUsize>,
    /// Readable from the first signal on; also for a moment after one that came to a child.
    wake: UnixStream,
    waker: UnixStream,
}

/// The signal that asked to stop, if one did, and the running worker.
#[derive(Clone)]
pub(crate) struct Interrupt(Arc<InterruptState>);

impl Interrupt {
    /// Makes the state, without handlers of signals.
    fn new() -> io::Result<Self> {
        let (wake, waker) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        let (worker, signal) = (Mutex::default(), Arc::default());
        Ok(Self(Arc::new(InterruptState { worker, signal, wake, waker })))
    }

    /// Watches SIGINT and SIGTERM, unless they are ignored (nohup(1), `&` in a script). A second
    /// signal ends the program at once.
    pub(crate) fn watch() -> Result<Self> {
        Self::watch_signals(&[SIGINT, SIGTERM])
    }

    /// Like [`watch`](Self::watch), of SIGHUP too: for what ends with its terminal as with Ctrl-C.
    pub(crate) fn watch_with_hangup() -> Result<Self> {
        Self::watch_signals(&[SIGINT, SIGTERM, SIGHUP])
    }

    fn watch_signals(signals: &[i32]) -> Result<Self> {
        let interrupt = Self::new().context("cannot watch for Ctrl-C (socketpair)")?;
        let asked = Arc::new(AtomicBool::new(false));
        for signal in signals {
            if is_ignored(*signal) {
                continue;
            }
            interrupt.handle(*signal, &asked).context("cannot watch for Ctrl-C (sigaction)")?;
        }
        Ok(interrupt)
    }

    /// Installs the handlers of a signal; `asked` is set once any signal has come.
    fn handle(&self, signal: i32, asked: &Arc<AtomicBool>) -> io::Result<()> {
        flag::register_conditional_shutdown(signal, 128 + signal, asked.clone())?;
        flag::register(signal, asked.clone())?;
        flag::register_usize(signal, self.0.signal.clone(), signal as usize)?;
        low_level::pipe::register(signal, self.0.waker.try_clone()?)?;
        Ok(())
    }

    fn running(&self) -> MutexGuard<'_, Option<Child>> {
        self.0.worker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the signal that asked to stop.
    pub(crate) fn signal(&self) -> Option<i32> {
        match i32::try_from(self.0.signal.load(Ordering::SeqCst)) {
            Ok(0) | Err(_) => None,
            Ok(signal) => Some(signal),
        }
    }

    /// Returns a descriptor that is readable once a signal has come.
    pub(crate) fn wake(&self) -> BorrowedFd<'_> {
        self.0.wake.as_fd()
    }

    /// Returns whether [`wake`](Self::wake) is readable for a signal of this process; to be asked
    /// where it is readable. A signal that came to a child before its exec was handled there, by
    /// the same handlers on the same socket; its byte is taken out, or no wait would ever be one
    /// again.
    pub(crate) fn was_woken(&self) -> bool {
        if self.signal().is_none() {
            let _ = (&self.0.wake).read(&mut [0; 64]);
        }
        let is_ours = self.signal().is_some();
        if is_ours {
            // It came meanwhile, and its byte may have been taken out, too.
            let _ = (&self.0.waker).write(&[0]);
        }
        is_ours
    }

    /// Waits for a signal, but no longer than this; returns whether one came.
    pub(crate) fn wait(&self, longest: Duration) -> bool {
        let end = Instant::now().checked_add(longest);
        while self.signal().is_none() {
            let timeout = end.and_then(|end| {
                Timespec::try_from(end.saturating_duration_since(Instant::now())).ok()
            });
            let mut wake = [PollFd::from_borrowed_fd(self.wake(), PollFlags::IN)];
            match poll(&mut wake, timeout.as_ref()) {
                Ok(0) => break,
                Ok(_) => _ = self.was_woken(),
                Err(_) => {}
            }
        }
        self.signal().is_some()
    }

    /// Waits for a signal, but no longer than this and not beyond `end`; returns whether the signal
    /// or the end has come.
    pub(crate) fn wait_until(&self, end: Instant, longest: Duration) -> bool {
        let left = end.saturating_duration_since(Instant::now());
        self.wait(longest.min(left)) || Instant::now() >= end
    }

    /// Returns the exit code that tells of the signal.
    pub(crate) fn exit_code(&self) -> Option<u8> {
        let signal = u8::try_from(self.signal()?).unwrap_or(0);
        Some(128 + signal)
    }

    /// Returns the process id of the running worker.
    pub(crate) fn worker(&self) -> Option<u32> {
        self.running().as_ref().map(Child::id)
    }

    /// Starts the worker, and returns what `take` takes from it.
    ///
    /// # Errors
    /// ErrorKind::Interrupted where a signal has asked to stop.
    pub(crate) fn start<T>(
        &self,
        spawn: impl FnOnce() -> io::Result<Child>,
        take: impl FnOnce(&mut Child) -> T,
    ) -> io::Result<T> {
        // A signal that comes from here on is seen by whoever waits for the worker.
        if self.signal().is_some() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        Ok(take(self.running().insert(spawn()?)))
    }

    /// Waits for the end of the worker, whose output has ended; returns how it ended.
    pub(crate) fn wait_for_worker(&self) -> io::Result<ExitStatus> {
        loop {
            let mut running = self.running();
            let child = running.as_mut().ok_or_else(|| io::Error::other("the process is gone"))?;
            if let Some(status) = child.try_wait()? {
                *running = None;
                return Ok(status);
            }
            drop(running);
            // Its output has ended, so it will have in a moment.
            sleep(Duration::from_millis(1));
            if self.signal().is_some() {
                self.kill_worker();
            }
        }
    }

    /// Ends the running worker, if there is one, and all that runs in its process group: what a
    /// prefix has started does not go with it by itself.
    pub(crate) fn kill_worker(&self) {
        if let Some(child) = self.running().as_mut() {
            // Its members go with it. One that is gone already is what we want.
            let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
            let _ = child.kill();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    impl Default for Interrupt {
        fn default() -> Self {
            Self::new().expect("a socket")
        }
    }

    impl Interrupt {
        /// As a child does that has a signal before its exec.
        pub(crate) fn wake_for_another(&self) {
            (&self.0.waker).write_all(&[1]).expect("a socket");
        }
    }

    #[test]
    fn a_signal_to_another_process_wakes_once() {
        let interrupt = Interrupt::default();
        interrupt.wake_for_another();
        assert!(!interrupt.wait(Duration::from_millis(1)));
        let mut wake = [PollFd::from_borrowed_fd(interrupt.wake(), PollFlags::IN)];
        assert_eq!(poll(&mut wake, Some(&Timespec::default())), Ok(0));
    }

    #[test]
    fn a_signal_ends_waits_in_other_threads_and_later_ones() {
        let (interrupt, long) = (Interrupt::default(), Duration::from_secs(3600));
        assert!(!interrupt.wait(Duration::from_millis(1)));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| interrupt.wait(long));
            interrupt.0.signal.store(SIGINT as usize, Ordering::SeqCst);
            interrupt.wake_for_another();
            assert!(waits.join().unwrap());
        });
        assert!(interrupt.wait(long));
        assert_eq!(interrupt.exit_code(), Some(130));
    }
}
