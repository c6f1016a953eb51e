//! The control group or user of each process, which the tracer does not know.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use probe::one_line;

use super::GroupBy;

/// Names of the control groups or users of processes, as of the last look at each.
#[derive(Debug, Default)]
pub(crate) struct ProcessLabels {
    root: PathBuf,
    by: Option<GroupBy>,
    users: HashMap<u32, String>,
    of_process: HashMap<u32, String>,
}

impl ProcessLabels {
    /// Returns the labels of the system whose files are below `root` (`/`); none is read yet.
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_path_buf(), ..Self::default() }
    }

    /// Reads what is not known yet of these processes, and forgets others.
    pub(crate) fn read(&mut self, by: GroupBy, processes: impl Iterator<Item = u32>) {
        if self.by.replace(by) != Some(by) {
            self.of_process.clear();
        }
        if by == GroupBy::User && self.users.is_empty() {
            self.users = read_users(&self.root);
        }
        let known = std::mem::take(&mut self.of_process);
        if !matches!(by, GroupBy::Cgroup | GroupBy::User) {
            return;
        }
        for tgid in processes {
            let label = match known.get(&tgid) {
                Some(label) => Some(label.clone()),
                None => self.read_label(by, tgid),
            };
            if let Some(label) = label {
                self.of_process.insert(tgid, label);
            }
        }
    }

    fn read_label(&self, by: GroupBy, tgid: u32) -> Option<String> {
        let folder = self.root.join(format!("proc/{tgid}"));
        if by == GroupBy::Cgroup {
            return Some(one_line(&cgroup(&fs::read_to_string(folder.join("cgroup")).ok()?)));
        }
        let uid = folder.metadata().ok()?.uid();
        Some(self.users.get(&uid).cloned().unwrap_or_else(|| uid.to_string()))
    }

    /// Returns the label of a process; a question mark where it ended before it was looked at.
    pub(crate) fn label(&self, tgid: u32) -> String {
        self.of_process.get(&tgid).map_or("?", String::as_str).to_string()
    }
}

/// Reads ids and names of users. A system without the file has none.
fn read_users(root: &Path) -> HashMap<u32, String> {
    let passwd = fs::read_to_string(root.join("etc/passwd")).unwrap_or_default();
    let mut users = HashMap::new();
    for line in passwd.lines() {
        users.extend(user(line));
    }
    users
}

/// Parses id and name of a line of passwd(5).
fn user(line: &str) -> Option<(u32, String)> {
    let mut fields = line.split(':');
    let name = fields.next()?;
    Some((fields.nth(1)?.parse().ok()?, name.to_string()))
}

/// Returns the path in the content of `/proc/PID/cgroup`: of version 2, else of the first hierarchy.
/// That of a removed group, which a process may be in that has ended, is without the mark of that.
pub(crate) fn cgroup_path(text: &str) -> &str {
    let path = text.lines().find_map(|line| line.strip_prefix("0::"));
    let path = path.or_else(|| text.lines().next()?.splitn(3, ':').nth(2)).unwrap_or("/");
    path.strip_suffix(" (deleted)").unwrap_or(path)
}

/// Returns the last part of a control group's path, of a container the start of its id:
/// `docker-4f2b...scope` is `4f2b8c0d1e2f`.
fn cgroup(text: &str) -> String {
    let last = cgroup_path(text).trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let plain = last.trim_end_matches(".scope").trim_end_matches(".service");
    let id = plain.rsplit(['-', ':']).next().unwrap_or(plain);
    let is_id = id.len() >= 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_id {
        return id[..12].to_string();
    }
    if plain.is_empty() { "/".to_string() } else { plain.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_groups_are_called_by_their_last_part() {
        let id = "4f2b8c0d1e2f4f2b8c0d1e2f4f2b8c0d1e2f4f2b8c0d1e2f4f2b8c0d1e2f1234";
        for (text, is) in [
            ("0::/\n".to_string(), "/"),
            ("0::/system.slice/postgresql.service\n".into(), "postgresql"),
            (format!("0::/system.slice/docker-{id}.scope\n"), "4f2b8c0d1e2f"),
            (format!("0::/kubepods.slice/cri-containerd-{id}.scope"), "4f2b8c0d1e2f"),
            (format!("12:cpu:/docker/{id}\n11:pids:/x"), "4f2b8c0d1e2f"),
            (String::new(), "/"),
        ] {
            assert_eq!(cgroup(&text), is, "{text}");
        }
        assert_eq!(cgroup_path("0::/a.slice/b.service (deleted)\n"), "/a.slice/b.service");
        assert_eq!(cgroup_path("12:cpu:/docker/1:2\n11:pids:/x"), "/docker/1:2");
    }

    #[test]
    fn labels_are_read_once_and_forgotten_with_their_process() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let own = root.path().metadata().unwrap().uid();
        write("proc/7/cgroup", "0::/a.slice/one.service\n");
        write("etc/passwd", &format!("somebody:x:{own}:0::/:/bin/sh\nbroken\n"));
        let mut labels = ProcessLabels::new(root.path());
        labels.read(GroupBy::Cgroup, [7, 8].into_iter());
        assert_eq!([7, 8].map(|tgid| labels.label(tgid)), ["one", "?"]);
        // It has ended meanwhile.
        fs::remove_file(root.path().join("proc/7/cgroup")).unwrap();
        labels.read(GroupBy::Cgroup, [7].into_iter());
        assert_eq!(labels.label(7), "one");
        labels.read(GroupBy::User, [7].into_iter());
        assert_eq!(labels.label(7), "somebody");
        labels.read(GroupBy::User, [].into_iter());
        assert_eq!(labels.label(7), "?");
    }
}
