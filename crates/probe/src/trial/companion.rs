//! Processes beside the worker, which never outlive it.

use std::time::Duration;

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
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
                if ends_with(parent) {
                    act();
                }
                sys::exit_now(0);
            }
        }
    }

    /// Forks one that gets something ready before it acts; gives it once it is, or why it is not. The
    /// calling process must be single-threaded.
    pub(super) fn start_ready<T>(
        ready: impl FnOnce() -> Result<T, Errno>,
        act: impl FnOnce(T),
    ) -> Result<Self, Errno> {
        let parent = std::process::id() as i32;
        let (answers, answer) = pipe_with(PipeFlags::CLOEXEC)?;
        let companion = Self::start(|| {
            let made = ready();
            let errno = made.as_ref().err().map_or(0, |errno| errno.raw_os_error());
            let told = rustix::io::write(&answer, &errno.to_ne_bytes());
            // A namespace of users forgets whose end is ours (prctl(2)).
            if let (Ok(made), Ok(_), true) = (made, told, ends_with(parent)) {
                act(made);
            }
        })?;
        drop(answer);
        let mut errno = [0; 4];
        match rustix::io::retry_on_intr(|| rustix::io::read(&answers, &mut errno))? {
            4 => match i32::from_ne_bytes(errno) {
                0 => Ok(companion),
                errno => Err(Errno::from_raw_os_error(errno)),
            },
            _ => Err(Errno::CHILD),
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

/// Has the kernel end the calling process with its parent; asked for first, then checked: a parent that
/// went before the asking is noticed.
fn ends_with(parent: i32) -> bool {
    let asked = set_parent_process_death_signal(Some(Signal::KILL));
    asked.is_ok() && getppid().map(|pid| pid.as_raw_pid()) == Some(parent)
}

impl Drop for Companion {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::KILL);
        let _ = waitpid(Some(self.0), WaitOptions::empty());
    }
}
