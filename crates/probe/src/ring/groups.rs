//! Nested control groups with the cpu controller that a ring runs in. However the ring ends, a
//! separate process waits for the end of all processes in the groups, and removes them.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, WaitOptions, test_kill_process, waitpid};

use crate::machine::{CpuGroup, cpu_group};
use crate::sys::act_behind;

/// Name of the outermost group, before the id of the process that created it.
pub const PREFIX: &str = "switchcost-ring-";

/// File with the processes of a group.
const PROCS: &str = "cgroup.procs";
/// File with the controllers that the groups within have (version 2).
const SUBTREE: &str = "cgroup.subtree_control";

/// Number of times that a removal is tried: a process that has just ended may still be in a group.
const TRIES: u32 = 200;
/// Time between two tries.
const PAUSE: Duration = Duration::from_millis(5);

/// Nested groups that the calling process is in until this is dropped.
pub struct CgroupLevels {
    /// Group that the process was in before.
    home: PathBuf,
    /// End of a pipe that this process and all that it forks hold. The remover waits until all have
    /// ended.
    alive: Option<OwnedFd>,
    remover: Pid,
}

impl CgroupLevels {
    /// Moves the calling process `levels` levels of groups with the cpu controller below its group.
    pub fn enter(levels: u32) -> Result<Self, String> {
        let CpuGroup { own, parent, is_v2 } = cpu_group(Path::new("/"))?;
        let first = parent.join(format!("{PREFIX}{}", std::process::id()));
        // The own group may be one level below the one that has the controller for groups within.
        let count = levels + u32::from(own != parent);
        let mut folders = vec![first];
        for level in 2..=count {
            folders.push(folders[folders.len() - 1].join(format!("level-{level}")));
        }
        let (watched, alive) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| error.to_string())?;
        let remover = act_behind(watched, || remove_innermost_first(&folders))
            .map_err(|errno| format!("fork: {errno}"))?;
        let levels = Self { home: own, alive: Some(alive), remover };
        create_and_enter(&folders, is_v2)?;
        Ok(levels)
    }
}

impl Drop for CgroupLevels {
    fn drop(&mut self) {
        // If moving back is refused, the end of this process empties the groups.
        let is_home = fs::write(self.home.join(PROCS), std::process::id().to_string()).is_ok();
        drop(self.alive.take());
        if is_home {
            let _ = waitpid(Some(self.remover), WaitOptions::empty());
        }
    }
}

/// Creates the groups, each in the one before, and enters the last.
fn create_and_enter(folders: &[PathBuf], is_v2: bool) -> Result<(), String> {
    for (index, folder) in folders.iter().enumerate() {
        fs::create_dir(folder).map_err(|error| explain(folder, "cannot make", &error))?;
        if is_v2 && index + 1 < folders.len() {
            write(&folder.join(SUBTREE), "+cpu")?;
        }
    }
    let Some(innermost) = folders.last() else { return Ok(()) };
    write(&innermost.join(PROCS), &std::process::id().to_string())
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    fs::write(file, text).map_err(|error| explain(file, "cannot write", &error))
}

fn explain(path: &Path, failure: &str, error: &std::io::Error) -> String {
    let path = path.display();
    format!("{failure} {path}: {error} (run as root, or where the group is delegated)")
}

/// Removes groups that are ordered from the outermost to the innermost, once nobody is in them.
fn remove_innermost_first(folders: &[PathBuf]) {
    for folder in folders.iter().rev() {
        for _ in 0..TRIES {
            match fs::remove_dir(folder) {
                Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy => {
                    std::thread::sleep(PAUSE);
                }
                _ => break,
            }
        }
    }
}

/// Returns the names of groups that were created by this program and exist now.
pub(super) fn remaining() -> Vec<String> {
    let Ok(CpuGroup { parent, .. }) = cpu_group(Path::new("/")) else { return Vec::new() };
    let Ok(entries) = fs::read_dir(parent) else { return Vec::new() };
    let mut names = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(PREFIX) {
            names.push(name);
        }
    }
    names
}

/// Removes groups whose creator has ended and whose remover was killed.
pub fn sweep() {
    let Ok(CpuGroup { parent, .. }) = cpu_group(Path::new("/")) else { return };
    for name in remaining() {
        let creator = name.strip_prefix(PREFIX).and_then(|pid| Pid::from_raw(pid.parse().ok()?));
        if creator.is_none_or(is_alive) {
            continue;
        }
        let mut folders = vec![parent.join(&name)];
        while let Some(inner) = inner_group(&folders[folders.len() - 1]) {
            folders.push(inner);
        }
        for folder in folders.iter().rev() {
            // A group with processes is left: they are alive.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Returns whether a process exists, whoever owns it.
fn is_alive(pid: Pid) -> bool {
    !has_ended(test_kill_process(pid))
}

/// Reads the result of kill(2) with signal 0. EPERM means that the process lives and belongs to
/// another user: only ESRCH says that there is none.
fn has_ended(test: Result<(), Errno>) -> bool {
    test == Err(Errno::SRCH)
}

/// Returns the nested group within a group.
fn inner_group(folder: &Path) -> Option<PathBuf> {
    for entry in fs::read_dir(folder).ok()?.flatten() {
        if entry.file_name().to_string_lossy().starts_with("level-") {
            return Some(entry.path());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{ChildProcess, sleep_for_ever};
    use testing::Need;

    /// A process in groups that is killed, with no chance to do anything about it.
    #[test]
    fn what_was_made_is_gone_when_its_maker_was_killed() {
        let ready = || CgroupLevels::enter(4);
        let child = match ChildProcess::start_ready(ready, |_groups| sleep_for_ever()) {
            Ok(child) => child,
            Err(why) => {
                return testing::skip(Need::Hardware("groups with the cpu controller"), why);
            }
        };
        let name = format!("{PREFIX}{}", child.pid());
        assert!(remaining().contains(&name));
        drop(child);
        testing::wait_for("removal", || (!remaining().contains(&name)).then_some(()));
    }

    #[test]
    fn a_process_of_another_user_lives() {
        assert!(!has_ended(Err(Errno::PERM)) && !has_ended(Ok(())));
        assert!(has_ended(Err(Errno::SRCH)));
        // Without privileges a signal to the first process is refused.
        assert!(is_alive(Pid::INIT));
    }

    #[test]
    fn what_a_killed_remover_has_left_is_swept() {
        let Ok(CpuGroup { parent, .. }) = cpu_group(Path::new("/")) else { return };
        // Beyond all process ids.
        let old = parent.join(format!("{PREFIX}{}", (1 << 22) + 5));
        if let Err(why) = fs::create_dir_all(old.join("level-2")) {
            return testing::skip(Need::Hardware("groups with the cpu controller"), why);
        }
        sweep();
        assert!(!old.exists());
    }
}
