//! Processes beside the worker, which never outlive it.

use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getppid, kill_process,
    set_parent_process_death_signal, waitid, waitpid,
};

use crate::sys::{self, Forked};

/// A child of the worker; dropping it is its end.
pub(super) struct Companion(Pid);

impl Companion {
    /// Forks one that does `act` and ends. The calling process must be single-threaded.
    pub(super) fn start(act: impl FnOnce()) -> Result<Self, Errno> {
        let parent = std::process::id() as i32;
        match sys::fork()? {
            Forked::Parent(pid) => Ok(Self(pid)),
            Forked::Child => {
                // Asked for first, then checked: a parent that went before the asking is noticed.
                let asked = set_parent_process_death_signal(Some(Signal::KILL));
                if asked.is_ok() && getppid().map(|pid| pid.as_raw_pid()) == Some(parent) {
                    act();
                }
                sys::exit_now(0);
            }
        }
    }

    /// Forks one that sleeps.
    pub(super) fn asleep() -> Result<Self, Errno> {
        Self::start(|| {
            loop {
                std::thread::sleep(Duration::from_secs(3600));
            }
        })
    }

    /// Whether it still runs.
    pub(super) fn is_alive(&mut self) -> bool {
        // One that has ended is not taken note of here: that is left to the drop.
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        matches!(waitid(WaitId::Pid(self.0), how), Ok(None))
    }

    /// Waits for it to end by itself; what the kernel keeps of it can be read until it is joined.
    pub(super) fn wait(&self) {
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(Errno::INTR) = waitid(WaitId::Pid(self.0), how) {}
    }

    /// Waits for it to end by itself; whether it did its part.
    pub(super) fn join(self) -> bool {
        let status = loop {
            match waitpid(Some(self.0), WaitOptions::empty()) {
                Err(Errno::INTR) => {}
                ended => break ended,
            }
        };
        // It is gone: its number may soon be another's.
        std::mem::forget(self);
        matches!(status, Ok(Some((_, status))) if status.exit_status() == Some(0))
    }

    /// Its process id.
    pub(super) fn pid(&self) -> i32 {
        self.0.as_raw_pid()
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::KILL);
        let _ = waitpid(Some(self.0), WaitOptions::empty());
    }
}
