//! A command from its start to its end, for a process that does nothing else: tiny, with one thread,
//! so that what the kernel charges to the command is the command's own.
//!
//! What the kernel forgets when a process is reaped is read before: waitid(2) with WNOWAIT, then the
//! files of the zombie, then wait4(2).

mod looks;
mod zombie;

use std::ffi::{CString, OsString};
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::thread::sleep;
use std::time::{Duration, Instant};

use model::command_use::{AtExec, Ending, Orphans, Usage, Used};
use model::reading::Reading;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, WaitId, WaitIdOptions, pidfd_open, set_child_subreaper, waitid,
};
use serde::{Deserialize, Serialize};

pub use crate::sys::inherited_socket as channel;
use crate::sys::{Note, Relay, Shared, Words, ended_child, monotonic_raw_ns, reap};
use looks::Looks;

/// Longest wait for orphans with `--tree`.
pub const PATIENCE: Duration = Duration::from_secs(1);

/// A command that could not be started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotStarted {
    /// The step that failed, a call of the kernel.
    pub step: String,
    /// Its errno.
    pub errno: i32,
}

impl NotStarted {
    fn at(step: &str) -> impl Fn(Errno) -> Self + '_ {
        move |errno| Self { step: step.to_owned(), errno: errno.raw_os_error() }
    }
}

/// Starts commands, one after the other.
pub struct Launcher {
    relay: Relay,
    note: Shared<Note>,
    /// Left behind by earlier commands.
    old: Vec<u32>,
}

impl Launcher {
    /// For a process with one thread, which from now on hands signals on to its command and adopts
    /// the orphans among its descendants.
    pub fn new() -> Result<Self, NotStarted> {
        let relay = Relay::install().map_err(NotStarted::at("sigaction"))?;
        let note = Shared::new().map_err(NotStarted::at("mmap"))?;
        // Without it orphans are init's: fewer are seen.
        let _ = set_child_subreaper(Some(Pid::INIT));
        Ok(Self { relay, note, old: Vec::new() })
    }

    /// Runs a command to its end; `started` is told its id. With `tree`, orphans that end within
    /// [`PATIENCE`] after it are waited for and counted.
    pub fn run(
        &mut self,
        words: Vec<OsString>,
        tree: bool,
        started: &mut dyn FnMut(u32),
    ) -> Result<Used, NotStarted> {
        let text = |word: OsString| CString::new(word.into_vec()).map_err(|_| Errno::INVAL);
        let texts = words.into_iter().map(text).collect::<Result<_, _>>();
        let words = texts.and_then(|texts| Words::new(texts).ok_or(Errno::INVAL));
        let words = words.map_err(NotStarted::at("execve"))?;
        let mut orphans = Adopted { tree, usage: Usage::default(), ended: 0 };
        let before_ns = monotonic_raw_ns();
        let child = self.relay.start(&words, &self.note).map_err(NotStarted::at("fork"))?;
        let pid = child.as_raw_pid();
        started(pid.unsigned_abs());
        let mut looks = Looks::new(pid);
        let waited = self.wait(child, &mut looks, &mut orphans);
        let real_ns = monotonic_raw_ns().saturating_sub(before_ns);
        let own = zombie::read(pid);
        self.relay.release();
        let ended = reap(pid.unsigned_abs(), true).map_err(NotStarted::at("wait4"))?;
        waited.map_err(NotStarted::at("waitid"))?;
        if let Some(errno) = self.note.failure() {
            return Err(NotStarted::at("execve")(errno));
        }
        let ended = ended.ok_or(Errno::CHILD).map_err(NotStarted::at("wait4"))?;
        let orphans = self.adopt(orphans);
        let (resident_bytes, minor_faults, cpu_ns) = self.note.before_exec();
        Ok(Used {
            real_ns,
            ending: Ending::of_status(ended.status),
            usage: ended.usage,
            delay: looks.delay(own.first_thread),
            threads: looks.threads(),
            own_cpu_ns: own.cpu_ns,
            sampled: own.sampled,
            migrations: own.migrations,
            io: own.io,
            orphans,
            at_exec: AtExec { resident_bytes, minor_faults, cpu_ns },
        })
    }

    /// Until the command has ended; it stays a zombie.
    fn wait(&mut self, child: Pid, looks: &mut Looks, orphans: &mut Adopted) -> Result<(), Errno> {
        // Where there is none (Linux before 5.3, no descriptor left) nobody looks meanwhile.
        match pidfd_open(child, PidfdFlags::empty()) {
            Ok(handle) => {
                while !has_ended(&handle, looks.next())? {
                    looks.look();
                    // Zombies would gather while a command runs for days.
                    self.reap_orphans(Some(child), orphans)?;
                }
            }
            Err(errno) => looks.refuse(format!("pidfd_open: {errno}")),
        }
        loop {
            match waitid(WaitId::Pid(child), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
                Err(Errno::INTR) => {}
                result => return result.map(|_| ()),
            }
        }
    }

    /// Waits for what has been orphaned and has ended, but not for the command.
    fn reap_orphans(&mut self, command: Option<Pid>, orphans: &mut Adopted) -> Result<(), Errno> {
        while let Some(pid) = ended_child()? {
            // What was found once is found first again: orphans behind it wait until it is reaped.
            if command.is_some_and(|command| command.as_raw_pid().unsigned_abs() == pid) {
                break;
            }
            let ended = reap(pid, false)?;
            if let Some(place) = self.old.iter().position(|old| *old == pid) {
                self.old.swap_remove(place);
            } else if let Some(child) = ended {
                orphans.ended += 1;
                orphans.usage = orphans.usage.and(&child.usage);
            }
        }
        Ok(())
    }

    /// What the command has left, once it is gone itself.
    fn adopt(&mut self, mut orphans: Adopted) -> Orphans {
        let end = Instant::now() + PATIENCE;
        let left_behind = loop {
            if self.reap_orphans(None, &mut orphans).is_err() {
                // ECHILD.
                self.old.clear();
                break Reading::Known(Vec::new());
            }
            let living = children();
            let left = living.map(|all| -> Vec<u32> {
                all.into_iter().filter(|pid| !self.old.contains(pid)).collect()
            });
            let patient = orphans.tree && Instant::now() < end;
            match left {
                Reading::Known(left) if !left.is_empty() && patient => sleep(LOOK_AGAIN),
                left => break left,
            }
        };
        self.old.extend(left_behind.known().into_iter().flatten());
        let usage = orphans.tree.then_some(orphans.usage);
        Orphans { ended: orphans.ended, usage, left_behind }
    }
}

/// Orphans that were reaped.
struct Adopted {
    tree: bool,
    usage: Usage,
    ended: u32,
}

const LOOK_AGAIN: Duration = Duration::from_millis(2);

fn has_ended(handle: &OwnedFd, timeout: Duration) -> Result<bool, Errno> {
    let timeout =
        Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
    match poll(&mut [PollFd::new(handle, PollFlags::IN)], Some(&timeout)) {
        Ok(ready) => Ok(ready > 0),
        // A signal was handed on.
        Err(Errno::INTR) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// This process's children (proc_pid_task(5), `children`).
fn children() -> Reading<Vec<u32>> {
    let path = format!("/proc/self/task/{}/children", std::process::id());
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"));
    Reading::from(text).map(|text| text.split_whitespace().flat_map(str::parse).collect())
}
