//! The scheduler: sched_ext, features, numbers that tune it, core scheduling, halt polling.

use std::collections::BTreeMap;

use rundata::machine::{KERNEL_SCHEDULER, SchedExt, SchedulerSettings};
use rundata::reading::Reading;

use super::tree::{MachineTree, ReadError, Result, reading};
use crate::sys;

const SCHED_EXT: &str = "/sys/kernel/sched_ext";
const DEBUG_FOLDER: &str = "/sys/kernel/debug/sched";
const SYSCTLS: &str = "/proc/sys/kernel";
const HALT_POLL: &str = "/sys/module/haltpoll/parameters";

/// The setting of real-time tasks, which the facts of the kernel have.
const REAL_TIME_LIMIT: &str = "sched_rt_runtime_us";

/// Longest value of a setting in bytes: others are tables, such as /sys/kernel/debug/sched/debug.
const MAX_VALUE_BYTES: usize = 40;

/// Most settings of a folder.
const MAX_SETTINGS: usize = 100;

/// Reads the scheduler and its settings.
pub(super) fn read(tree: &MachineTree) -> SchedulerSettings {
    let sched_ext = sched_ext(tree);
    let name = match &sched_ext {
        Ok(state) => state.scheduler_name(),
        // A kernel without sched_ext has no such folder.
        Err(error) if error.is_missing && tree.folder("/sys/kernel").is_ok() => {
            Reading::Known(KERNEL_SCHEDULER.to_string())
        }
        Err(error) => Reading::unknown(error.to_string()),
    };
    SchedulerSettings {
        name,
        sched_ext: reading(sched_ext),
        features: reading(features(tree)),
        tunables: reading(settings(tree, DEBUG_FOLDER, is_tunable)),
        sysctls: reading(settings(tree, SYSCTLS, is_sysctl)),
        has_core_cookie: has_core_cookie(tree),
        halt_poll: reading(settings(tree, HALT_POLL, |_| true)),
    }
}

fn sched_ext(tree: &MachineTree) -> Result<SchedExt> {
    tree.folder(SCHED_EXT)?;
    let switch_all: Result<u8> = tree.number(&format!("{SCHED_EXT}/switch_all"));
    Ok(SchedExt {
        state: reading(tree.word(&format!("{SCHED_EXT}/state"))),
        ops: reading(tree.word(&format!("{SCHED_EXT}/root/ops"))),
        enable_seq: reading(tree.number(&format!("{SCHED_EXT}/enable_seq"))),
        switch_all: reading(switch_all).map(|number| number != 0),
    })
}

/// Reads the features: a word each, with `NO_` before the name of one that is off.
fn features(tree: &MachineTree) -> Result<BTreeMap<String, bool>> {
    let mut features = BTreeMap::new();
    for word in tree.word(&format!("{DEBUG_FOLDER}/features"))?.split_whitespace() {
        let (name, is_on) = match word.strip_prefix("NO_") {
            Some(name) => (name, false),
            None => (word, true),
        };
        features.insert(name.to_string(), is_on);
    }
    Ok(features)
}

/// Returns whether a file of the debug folder holds a number that tunes the scheduler. The model of
/// preemption is a fact of the kernel.
fn is_tunable(name: &str) -> bool {
    name.ends_with("_ns")
        || name.ends_with("_ms")
        || name == "nr_migrate"
        || name == "tunable_scaling"
}

fn is_sysctl(name: &str) -> bool {
    name.starts_with("sched_") && name != REAL_TIME_LIMIT
}

/// Reads the wanted files of a folder that hold a value in one line. Files that cannot be read, as
/// some may only be written, and folders are left out.
fn settings(
    tree: &MachineTree,
    folder: &str,
    is_wanted: fn(&str) -> bool,
) -> Result<BTreeMap<String, String>> {
    let mut settings = BTreeMap::new();
    for name in tree.folder(folder)? {
        if !is_wanted(&name) || settings.len() == MAX_SETTINGS {
            continue;
        }
        if let Ok(value) = tree.word(&format!("{folder}/{name}")) {
            if value.len() <= MAX_VALUE_BYTES && !value.contains('\n') {
                settings.insert(name, value);
            }
        }
    }
    if settings.is_empty() {
        return Err(ReadError::no_item(folder, "setting that can be read"));
    }
    Ok(settings)
}

/// Asks the kernel for the cookie of this process, which is in no file.
fn has_core_cookie(tree: &MachineTree) -> Reading<bool> {
    if !tree.is_host() {
        return Reading::unknown("prctl(PR_SCHED_CORE): another machine's files are read");
    }
    match sys::core_cookie() {
        Ok(cookie) => Reading::Known(cookie != 0),
        Err(errno) => Reading::unknown(format!("prctl(PR_SCHED_CORE): {errno}")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// Writes files below a new root folder.
    fn root_with(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("sys/kernel")).unwrap();
        for (path, content) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        root
    }

    fn read_from(files: &[(&str, &str)]) -> SchedulerSettings {
        read(&MachineTree::new(root_with(files).path()))
    }

    fn known(name: &str) -> Reading<String> {
        Reading::Known(name.to_string())
    }

    #[test]
    fn a_kernel_without_sched_ext_schedules_itself_and_a_damaged_folder_is_unknown() {
        assert_eq!(read_from(&[]).name, known("kernel"));
        let why = "/sys/kernel/sched_ext/state: No such file or directory (os error 2)";
        assert_eq!(read_from(&[("sys/kernel/sched_ext/x", "")]).name, Reading::unknown(why));
        let why = "/sys/kernel/sched_ext: Not a directory (os error 20)";
        assert_eq!(read_from(&[("sys/kernel/sched_ext", "")]).name, Reading::unknown(why));
        // Without /sys nothing is known.
        let nowhere = read(&MachineTree::new(Path::new("/no/such/root")));
        assert!(nowhere.name.why().is_some());
    }

    #[test]
    fn a_scheduler_in_bpf_is_named_by_its_operations() {
        let folder = "sys/kernel/sched_ext";
        let state = |state| (format!("{folder}/state"), state);
        let files = |words: [(String, &'static str); 4]| {
            let files = words.each_ref().map(|(path, content)| (path.as_str(), *content));
            read_from(&files)
        };
        let loaded = files([
            state("enabled\n"),
            (format!("{folder}/root/ops"), "lavd_1.0.5\n"),
            (format!("{folder}/enable_seq"), "7\n"),
            (format!("{folder}/switch_all"), "1\n"),
        ]);
        assert_eq!(loaded.name, known("lavd_1.0.5"));
        let sched_ext = loaded.sched_ext.known().unwrap();
        assert_eq!(sched_ext.enable_seq, Reading::Known(7));
        let partial = files([
            state("enabled\n"),
            (format!("{folder}/root/ops"), "simple\n"),
            (format!("{folder}/enable_seq"), "7\n"),
            (format!("{folder}/switch_all"), "0\n"),
        ]);
        assert_eq!(partial.name, known("kernel"), "it runs tasks of the policy SCHED_EXT only");
    }

    #[test]
    fn settings_are_read_by_name_and_tables_are_left_out() {
        let table = "x".repeat(MAX_VALUE_BYTES + 1);
        let read = read_from(&[
            ("sys/kernel/debug/sched/features", "PLACE_LAG NO_DELAY_DEQUEUE\n"),
            ("sys/kernel/debug/sched/base_slice_ns", "3000000\n"),
            ("sys/kernel/debug/sched/debug", "a table"),
            ("sys/kernel/debug/sched/long_ns", &table),
            ("sys/kernel/debug/sched/lines_ns", "1\n2"),
            ("proc/sys/kernel/sched_autogroup_enabled", "1\n"),
            ("proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
            ("proc/sys/kernel/sched_domain/cpu0", "1\n"),
            ("sys/module/haltpoll/parameters/guest_halt_poll_ns", "200000\n"),
        ]);
        let features = [("DELAY_DEQUEUE".to_string(), false), ("PLACE_LAG".to_string(), true)];
        assert_eq!(read.features, Reading::Known(features.into()));
        let only = |name: &str, value: &str| {
            Reading::Known(BTreeMap::from([(name.to_string(), value.to_string())]))
        };
        assert_eq!(read.tunables, only("base_slice_ns", "3000000"));
        assert_eq!(read.sysctls, only("sched_autogroup_enabled", "1"));
        assert_eq!(read.halt_poll, only("guest_halt_poll_ns", "200000"));
    }

    #[test]
    fn the_cookie_is_asked_of_the_running_machine_only() {
        let root = root_with(&[]);
        assert!(has_core_cookie(&MachineTree::new(root.path())).why().is_some());
        let here = has_core_cookie(&MachineTree::new(Path::new("/")));
        let why = here.why().unwrap_or_default();
        assert_eq!(here.known().is_none(), why.contains("PR_SCHED_CORE"), "{here:?}");
        assert!(!why.contains("another machine"), "{why}");
    }

    #[test]
    fn what_may_change_is_read_as_the_whole_machine_reads_it() {
        let root = Path::new("/");
        let (whole, part) =
            (crate::machine::read(root), crate::machine::read_changeable_settings(root));
        assert!(whole.changed_settings(&part).is_empty(), "{:?}", whole.changed_settings(&part));
        assert_eq!(whole.scheduler, part.scheduler);
        assert_eq!(whole.cpu.online, part.cpu.online);
    }
}
