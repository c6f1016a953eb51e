//! A control group of a test's own.

use std::fs;
use std::path::{Path, PathBuf};

use super::wait_for;

/// A control group with few tasks, for as long as the test lasts.
pub struct Group(pub PathBuf);

impl Group {
    pub fn with_tasks(most: u32) -> Option<Self> {
        let name = format!("switchcost-test-{}", std::process::id());
        for root in ["/sys/fs/cgroup/pids", "/sys/fs/cgroup", "/sys/fs/cgroup/unified"] {
            let group = Self(Path::new(root).join(&name));
            let limit = group.0.join("pids.max");
            // In version 2 the file comes only where the parent hands the controller down.
            if fs::create_dir(&group.0).is_ok()
                && limit.exists()
                && fs::write(limit, most.to_string()).is_ok()
            {
                return Some(group);
            }
        }
        None
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let gone = || fs::remove_dir(&self.0).is_ok() || !self.0.exists();
        wait_for("removal of the control group", || gone().then_some(()));
    }
}
