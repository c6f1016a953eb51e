//! The control group of each process, by its whole path, as cAdvisor names it.

use std::collections::HashMap;
use std::fs;
use std::mem;
use std::path::{Path, PathBuf};

use probe::one_line;

use super::growth::ProcessLook;
use crate::observe::live::labels::cgroup_path;

/// A process's group is read at each look until it was read so often: between its fork and its move it
/// is in the group of its parent.
const YOUNG_READINGS: u32 = 3;
/// Later it is read again in one of so many looks, another part of the processes in each.
const LOOKS_PER_READING: u32 = 4;

/// A process's control group, as it was last read.
#[derive(Debug)]
struct GroupReading {
    /// The start of the process's oldest thread: another process of the same id has another one.
    start_ns: u64,
    path: String,
    readings: u32,
}

/// The control groups of the processes of the last look.
#[derive(Debug)]
pub(super) struct ProcessGroups {
    root: PathBuf,
    looks: u32,
    processes: HashMap<u32, GroupReading>,
}

impl ProcessGroups {
    /// Returns the groups of the system whose files are below `root` (`/`); none is read yet.
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.to_path_buf(), looks: 0, processes: HashMap::new() }
    }

    /// Reads what is due of the processes of a look, and forgets others.
    pub(super) fn read(&mut self, processes: &HashMap<u32, ProcessLook>) {
        self.looks = self.looks.wrapping_add(1);
        let mut known = mem::take(&mut self.processes);
        for (tgid, process) in processes {
            let before = known.remove(tgid).filter(|before| before.start_ns == process.start_ns);
            if let Some(reading) = self.read_if_due(*tgid, process, before) {
                self.processes.insert(*tgid, reading);
            }
        }
    }

    fn read_if_due(
        &self,
        tgid: u32,
        process: &ProcessLook,
        before: Option<GroupReading>,
    ) -> Option<GroupReading> {
        let readings = before.as_ref().map_or(0, |before| before.readings);
        let is_turn = self.looks.wrapping_add(tgid) % LOOKS_PER_READING == 0;
        if !process.lives || (readings >= YOUNG_READINGS && !is_turn) {
            return before;
        }
        let file = self.root.join(format!("proc/{tgid}/cgroup"));
        let Ok(text) = fs::read_to_string(file) else { return before };
        let path = one_line(cgroup_path(&text));
        Some(GroupReading { start_ns: process.start_ns, path, readings: readings + 1 })
    }

    /// Returns the path of a process's group; absent if it ended before that was read.
    pub(super) fn path(&self, tgid: u32) -> Option<&str> {
        self.processes.get(&tgid).map(|reading| reading.path.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::super::growth::SwitchTotals;
    use super::*;

    fn look(tgid: u32, start_ns: u64, lives: bool) -> HashMap<u32, ProcessLook> {
        HashMap::from([(tgid, ProcessLook { grown: SwitchTotals::default(), start_ns, lives })])
    }

    #[test]
    fn groups_are_whole_paths_and_follow_their_process() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("proc/7/cgroup");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let mut groups = ProcessGroups::new(root.path());
        // It is moved right after its fork.
        fs::write(&file, "0::/user.slice\n").unwrap();
        groups.read(&look(7, 100, true));
        assert_eq!(groups.path(7), Some("/user.slice"));
        fs::write(&file, "0::/a.slice/one.service\n").unwrap();
        groups.read(&look(7, 100, true));
        assert_eq!(groups.path(7), Some("/a.slice/one.service"));
        // And once more, when it is old.
        for _ in 0..YOUNG_READINGS {
            groups.read(&look(7, 100, true));
        }
        fs::write(&file, "0::/b.slice/one.service\n").unwrap();
        for _ in 0..LOOKS_PER_READING {
            groups.read(&look(7, 100, true));
        }
        assert_eq!(groups.path(7), Some("/b.slice/one.service"));
        // It has ended: its last switches are of the group that it had.
        fs::remove_file(&file).unwrap();
        groups.read(&look(7, 100, false));
        assert_eq!(groups.path(7), Some("/b.slice/one.service"));
        // Another process has its id, and inherits nothing.
        groups.read(&look(7, 200, true));
        assert_eq!(groups.path(7), None);
    }
}
