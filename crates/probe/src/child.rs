//! Child processes that never outlive the process that started them.

use std::time::Duration;

use rustix::io::{Errno, retry_on_intr};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, kill_process, waitid, waitpid,
};

use crate::sys::{self, Forked};

/// A child of this process; dropping it kills it.
pub(crate) struct Child(Pid);

impl Child {
    /// Forks one that does `act` and ends. Beside other threads `act` must take no lock that they may hold.
    pub(crate) fn start(act: impl FnOnce()) -> Result<Self, Errno> {
        let parent = getpid();
        match sys::fork_beside_threads()? {
            Forked::Parent(pid) => Ok(Self(pid)),
            Forked::Child => {
                if sys::end_with_parent(parent) {
                    act();
                }
                sys::exit_now(0);
            }
        }
    }

    /// Forks one that gets something ready before it acts; gives it once it is, or why it is not, as
    /// [`Self::start`] does.
    pub(crate) fn start_ready<T>(
        ready: impl FnOnce() -> Result<T, Errno>,
        act: impl FnOnce(T),
    ) -> Result<Self, Errno> {
        let parent = getpid();
        let (answers, answer) = pipe_with(PipeFlags::CLOEXEC)?;
        let child = Self::start(|| {
            let made = ready();
            let errno = made.as_ref().err().map_or(0, |errno| errno.raw_os_error());
            let told = rustix::io::write(&answer, &errno.to_ne_bytes());
            // Entering a user namespace clears the parent-death signal (prctl(2)).
            if let (Ok(made), Ok(_), true) = (made, told, sys::end_with_parent(parent)) {
                act(made);
            }
        })?;
        drop(answer);
        let mut errno = [0; 4];
        match retry_on_intr(|| rustix::io::read(&answers, &mut errno))? {
            4 => match i32::from_ne_bytes(errno) {
                0 => Ok(child),
                errno => Err(Errno::from_raw_os_error(errno)),
            },
            _ => Err(Errno::CHILD),
        }
    }

    /// Forks one that sleeps.
    pub(crate) fn asleep() -> Result<Self, Errno> {
        Self::start(|| {
            loop {
                std::thread::sleep(Duration::from_secs(3600));
            }
        })
    }

    /// Whether it still runs.
    pub(crate) fn is_alive(&mut self) -> bool {
        // One that has ended is not taken note of here: that is left to the drop.
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        matches!(waitid(WaitId::Pid(self.0), how), Ok(None))
    }

    /// Waits for it to end by itself; what the kernel keeps of it can be read until it is joined.
    pub(crate) fn wait(&self) {
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let _ = retry_on_intr(|| waitid(WaitId::Pid(self.0), how));
    }

    /// Waits for it to end by itself; whether it did its part.
    pub(crate) fn join(self) -> bool {
        let status = retry_on_intr(|| waitpid(Some(self.0), WaitOptions::empty()));
        // It is gone: its number may soon be another's.
        std::mem::forget(self);
        matches!(status, Ok(Some((_, status))) if status.exit_status() == Some(0))
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> i32 {
        self.0.as_raw_pid()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::KILL);
        let _ = waitpid(Some(self.0), WaitOptions::empty());
    }
}
