//! Control groups with the cpu controller, one in the other, that a ring is put into, and that are
//! gone behind it, however it ends: a process of its own waits for the end of all that may be in
//! them, and removes them.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, WaitOptions, test_kill_process, waitpid};

use crate::machine::{CpuGroup, cpu_group};
use crate::sys::act_behind;

/// What the outermost is called, before the id of the process that made it.
pub const PREFIX: &str = "switchcost-ring-";

/// Who is in a group.
const PROCS: &str = "cgroup.procs";
/// Which controllers the groups in it have (version 2).
const SUBTREE: &str = "cgroup.subtree_control";

/// How often, and how long apart, a removal is tried: who has just ended may still be in a group.
const TRIES: u32 = 200;
const PAUSE: Duration = Duration::from_millis(5);

/// Groups that the calling process is in as long as this lives.
pub struct CgroupLevels {
    /// Where the process was before.
    home: PathBuf,
    /// Closed by the end of all who have it.
    alive: Option<OwnedFd>,
    remover: Pid,
}

impl CgroupLevels {
    /// Puts the calling process so many levels below the group that it is in, by those that have
    /// the cpu controller.
    pub fn below(levels: u32) -> Result<Self, String> {
        let CpuGroup { own, parent, is_v2 } = cpu_group(Path::new("/"))?;
        let first = parent.join(format!("{PREFIX}{}", std::process::id()));
        // Its own group may be one level below the one that hands the controller on.
        let count = levels + u32::from(own != parent);
        let deeper = |path: PathBuf, level: u32| path.join(format!("level-{level}"));
        let all: Vec<PathBuf> = (1..=count)
            .scan(first, |path, level| {
                let this = path.clone();
                *path = deeper(path.clone(), level + 1);
                Some(this)
            })
            .collect();
        let (watched, alive) = pipe_with(PipeFlags::CLOEXEC).map_err(|why| why.to_string())?;
        let failed = |errno: rustix::io::Errno| format!("fork: {errno}");
        let remover = act_behind(watched, || remove(all.iter().rev()));
        let groups = Self { home: own, alive: Some(alive), remover: remover.map_err(failed)? };
        enter(&all, is_v2).map(|()| groups)
    }
}

impl Drop for CgroupLevels {
    fn drop(&mut self) {
        // Where it is refused, the process's end empties the groups.
        let is_home = fs::write(self.home.join(PROCS), std::process::id().to_string()).is_ok();
        drop(self.alive.take());
        if is_home {
            let _ = waitpid(Some(self.remover), WaitOptions::empty());
        }
    }
}

/// Makes the groups, each in the one before, and enters the last.
fn enter(all: &[PathBuf], is_v2: bool) -> Result<(), String> {
    let at = |path: &Path, what: &str, error: std::io::Error| {
        format!("{what} {}: {error} (run as root, or where the group is delegated)", path.display())
    };
    for (place, path) in all.iter().enumerate() {
        fs::create_dir(path).map_err(|error| at(path, "cannot make", error))?;
        if is_v2 && place + 1 < all.len() {
            let file = path.join(SUBTREE);
            fs::write(&file, "+cpu").map_err(|error| at(&file, "cannot write", error))?;
        }
    }
    let Some(last) = all.last() else { return Ok(()) };
    let file = last.join(PROCS);
    fs::write(&file, std::process::id().to_string())
        .map_err(|error| at(&file, "cannot write", error))
}

/// Removes groups, the innermost first.
fn remove<'a>(all: impl Iterator<Item = &'a PathBuf>) {
    for path in all {
        for _ in 0..TRIES {
            match fs::remove_dir(path) {
                Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy => {
                    std::thread::sleep(PAUSE);
                }
                _ => break,
            }
        }
    }
}

/// Names of groups of ours that are there now.
pub(super) fn left() -> Vec<String> {
    let Ok(CpuGroup { parent, .. }) = cpu_group(Path::new("/")) else { return Vec::new() };
    let Ok(folders) = fs::read_dir(parent) else { return Vec::new() };
    let names = folders.flatten().map(|of| of.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(PREFIX)).collect()
}

/// Removes groups whose maker has ended, and whose remover was killed, too.
pub fn sweep() {
    let Ok(CpuGroup { parent, .. }) = cpu_group(Path::new("/")) else { return };
    for name in left() {
        let maker = name.strip_prefix(PREFIX).and_then(|pid| Pid::from_raw(pid.parse().ok()?));
        if maker.is_some_and(|pid| test_kill_process(pid).is_err()) {
            let mut all = vec![parent.join(&name)];
            while let Some(inner) = inner_of(all.last()) {
                all.push(inner);
            }
            // Who is still in them is alive: these are not tried again.
            all.iter().rev().for_each(|path| {
                let _ = fs::remove_dir(path);
            });
        }
    }
}

/// The group of ours that is in another.
fn inner_of(path: Option<&PathBuf>) -> Option<PathBuf> {
    let folders = fs::read_dir(path?).ok()?.flatten();
    let is_ours = |of: &fs::DirEntry| of.file_name().to_string_lossy().starts_with("level-");
    folders.filter(is_ours).map(|of| of.path()).next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{ChildProcess, sleep_for_ever};
    use testing::Need;

    /// A process in groups that is killed, with no chance to do anything about it.
    #[test]
    fn what_was_made_is_gone_when_its_maker_was_killed() {
        let ready = || CgroupLevels::below(4);
        let child = match ChildProcess::start_ready(ready, |_groups| sleep_for_ever()) {
            Ok(child) => child,
            Err(why) => {
                return testing::skip(Need::Hardware("groups with the cpu controller"), why);
            }
        };
        let name = format!("{PREFIX}{}", child.pid());
        assert!(left().contains(&name));
        drop(child);
        testing::wait_for("removal", || (!left().contains(&name)).then_some(()));
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
