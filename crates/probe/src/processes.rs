//! Lists of processes: descendants, processes of a name, processes of a control group.
//!
//! Readers take a root folder (`/` for this machine).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use crate::procfs::{StatFile, ids_in};

/// Folders of the hierarchies of control groups that have every process: version 2, and those of
/// systemd beside version 1.
const HIERARCHIES: [&str; 3] = ["sys/fs/cgroup", "sys/fs/cgroup/unified", "sys/fs/cgroup/systemd"];

/// Bytes of the longest name that the kernel keeps of a process (TASK_COMM_LEN without its end).
const MAX_COMM_BYTES: usize = 15;

/// Reason why a control group has no processes to watch.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CgroupError {
    /// No group has this name.
    #[error("there is no such control group below /sys/fs/cgroup")]
    Unknown,
    /// Neither the group nor any below it has a process.
    #[error("there is no process in it, nor in any group below it")]
    Empty,
}

/// Lists the descendants of these processes that live now, in ascending order, without the
/// processes themselves.
pub fn descendants(root: &Path, ancestors: &[i32]) -> Vec<i32> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for pid in ids_in(&root.join("proc")) {
        if let Some(parent) = parent_of(root, pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found: BTreeSet<i32> = ancestors.iter().copied().collect();
    let mut open: Vec<i32> = ancestors.to_vec();
    while let Some(pid) = open.pop() {
        for child in children.get(&pid).into_iter().flatten() {
            if found.insert(*child) {
                open.push(*child);
            }
        }
    }
    found.into_iter().filter(|pid| !ancestors.contains(pid)).collect()
}

fn parent_of(root: &Path, pid: i32) -> Option<i32> {
    stat_of(root, pid)?.number(4)
}

/// Reads the `stat` file of a process, whose name may have any bytes.
fn stat_of(root: &Path, pid: i32) -> Option<StatFile> {
    let bytes = fs::read(root.join(format!("proc/{pid}/stat"))).ok()?;
    StatFile::parse(String::from_utf8_lossy(&bytes))
}

/// Lists the processes whose name or whose program's file name is `name`, as `pgrep -x` does, in
/// ascending order.
pub fn processes_named(root: &Path, name: &str) -> Vec<i32> {
    let mut found = ids_in(&root.join("proc"));
    found.retain(|pid| is_named(root, *pid, name));
    found.sort_unstable();
    found
}

/// Returns whether a process, or its program's file, has this name.
fn is_named(root: &Path, pid: i32, name: &str) -> bool {
    let Some(stat) = stat_of(root, pid) else { return false };
    if stat.name() == name {
        return true;
    }
    // The kernel cuts longer names, and the link cannot always be read.
    let link = fs::read_link(root.join(format!("proc/{pid}/exe")));
    match link.ok().as_deref().and_then(Path::file_name) {
        Some(file) => file.to_string_lossy().trim_end_matches(" (deleted)") == name,
        None => name.len() > MAX_COMM_BYTES && name.get(..MAX_COMM_BYTES) == Some(stat.name()),
    }
}

/// Lists the processes of a control group and of all groups below it, in ascending order. `group`
/// is a path, in the file system or below /sys/fs/cgroup, or the name of a unit: `nginx.service`,
/// or `nginx`.
///
/// # Errors
/// [`CgroupError`] if no group has this name, or none of them has a process.
pub fn processes_in_cgroup(root: &Path, group: &str) -> Result<Vec<i32>, CgroupError> {
    let folders = cgroup_folders(root, group);
    if folders.is_empty() {
        return Err(CgroupError::Unknown);
    }
    let mut found = BTreeSet::new();
    for folder in folders {
        for below in folders_below(&folder) {
            let text = fs::read_to_string(below.join("cgroup.procs")).unwrap_or_default();
            for line in text.lines() {
                // Processes of another pid namespace are 0 here.
                match line.parse::<i32>() {
                    Ok(pid) if pid > 0 => found.insert(pid),
                    _ => continue,
                };
            }
        }
    }
    if found.is_empty() { Err(CgroupError::Empty) } else { Ok(found.into_iter().collect()) }
}

/// Finds the folders of the control groups of this name, in the first hierarchy that has any.
fn cgroup_folders(root: &Path, group: &str) -> Vec<PathBuf> {
    let is_path = group.contains('/');
    for hierarchy in HIERARCHIES.map(|path| root.join(path)) {
        let found =
            if is_path { at_path(root, &hierarchy, group) } else { units(&hierarchy, group) };
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

/// Finds the group at a path of the file system, or at a path within the hierarchy.
fn at_path(root: &Path, hierarchy: &Path, path: &str) -> Vec<PathBuf> {
    let relative = path.trim_start_matches('/');
    for folder in [root.join(relative), hierarchy.join(relative)] {
        if folder.starts_with(hierarchy) && folder.join("cgroup.procs").exists() {
            return vec![folder];
        }
    }
    Vec::new()
}

/// Finds all groups of a unit's name, or of the service of that name.
fn units(hierarchy: &Path, name: &str) -> Vec<PathBuf> {
    let service = format!("{name}.service");
    let mut folders = folders_below(hierarchy);
    folders.retain(|folder| {
        let last = folder.file_name().unwrap_or_default();
        (last == name || last == service.as_str()) && folder.join("cgroup.procs").exists()
    });
    folders
}

/// Lists a folder and all folders below it, each before those below it.
fn folders_below(folder: &Path) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    let mut open = VecDeque::from([folder.to_path_buf()]);
    while let Some(folder) = open.pop_front() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push_back(entry.path());
            }
        }
        folders.push(folder);
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    fn add_process(root: &Path, pid: i32, parent: i32, name: &str) {
        write(root, &format!("proc/{pid}/stat"), &format!("{pid} ({name}) S {parent} 0 0"));
    }

    #[test]
    fn descendants_are_found_whatever_their_numbers() {
        let root = tempfile::tempdir().expect("a folder");
        for (pid, parent) in [(1, 0), (9, 1), (7, 9), (5, 7), (20, 7), (30, 1), (31, 30)] {
            add_process(root.path(), pid, parent, "x) (y");
        }
        assert_eq!(descendants(root.path(), &[9]), [5, 7, 20]);
        assert_eq!(descendants(root.path(), &[7, 30]), [5, 20, 31]);
        assert_eq!(descendants(root.path(), &[9, 7]), [5, 20], "without those that are asked for");
        assert_eq!(descendants(root.path(), &[31, 99]), [0; 0]);
    }

    #[test]
    fn names_are_whole_names() {
        let root = tempfile::tempdir().expect("a folder");
        add_process(root.path(), 8, 1, "postgres");
        add_process(root.path(), 3, 1, "postgres: walwr");
        add_process(root.path(), 4, 1, "postgres2");
        add_process(root.path(), 5, 1, "main");
        let exe = |pid: i32, file: &str| {
            let link = root.path().join(format!("proc/{pid}/exe"));
            std::os::unix::fs::symlink(file, link).expect("a link");
        };
        exe(3, "/usr/lib/postgres (deleted)");
        exe(4, "/usr/bin/postgres2");
        assert_eq!(processes_named(root.path(), "postgres"), [3, 8]);
        assert_eq!(processes_named(root.path(), "postgres: walwriter"), [0; 0]);
        add_process(root.path(), 6, 1, "systemd-journal");
        assert_eq!(processes_named(root.path(), "systemd-journald"), [6]);
        assert_eq!(processes_named(root.path(), "systemd-journal"), [6]);
    }

    #[test]
    fn a_control_group_has_those_of_the_groups_below_it() {
        let root = tempfile::tempdir().expect("a folder");
        let group = |path: &str, text: &str| {
            write(root.path(), &format!("sys/fs/cgroup/{path}cgroup.procs"), text);
        };
        group("", "1\n");
        group("system.slice/", "");
        group("system.slice/nginx.service/", "70\n12\n");
        group("system.slice/nginx.service/worker/", "0\n13\n");
        group("system.slice/idle.service/", "");
        let found = |name: &str| processes_in_cgroup(root.path(), name);
        for name in [
            "nginx.service",
            "nginx",
            "/sys/fs/cgroup/system.slice/nginx.service",
            "/system.slice/nginx.service/",
            "system.slice/nginx.service",
        ] {
            assert_eq!(found(name), Ok(vec![12, 13, 70]), "{name}");
        }
        assert_eq!(found("worker"), Ok(vec![13]));
        assert_eq!(found("idle"), Err(CgroupError::Empty));
        assert_eq!(found("apache"), Err(CgroupError::Unknown));
        assert_eq!(found("/proc"), Err(CgroupError::Unknown));
    }
}
