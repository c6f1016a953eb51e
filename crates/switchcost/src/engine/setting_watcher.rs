//! Watches the settings of the whole machine from round to round: somebody may load another
//! scheduler, or choose another governor, while a run goes on.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rundata::machine::{FieldDifference, KERNEL_SCHEDULER, Machine};
use rundata::run::SettingChange;

use crate::base::values::seconds_in_words;

/// Reads the changeable settings below a root folder, and compares them with those of a run's
/// header.
pub(crate) struct SettingWatcher {
    root: PathBuf,
    /// The machine of the header.
    expected: Machine,
    /// Differences to it when it was last looked at.
    differences: Vec<FieldDifference>,
    /// The round that goes on; `None` before the first of this session.
    round: Option<u32>,
    /// Fields that the session itself changes.
    ignored: Vec<String>,
    /// True if the session itself loads schedulers: then no load is somebody else's.
    loads_schedulers: bool,
    /// Schedulers in BPF that were loaded since the machine started, at the first look and at the
    /// last.
    first_loads: Option<u64>,
    last_loads: Option<u64>,
}

impl SettingWatcher {
    /// Watches for changes from the machine of a header. `earlier` is the last change that the run
    /// file has, of a run that is resumed.
    pub(crate) fn new(root: &Path, expected: Machine, earlier: Option<&SettingChange>) -> Self {
        let differences = earlier.map_or(Vec::new(), |change| change.differences.clone());
        let loads = if is_same_boot(root, &expected) { count_loads(&expected) } else { None };
        Self {
            root: root.to_path_buf(),
            expected,
            differences,
            round: None,
            ignored: Vec::new(),
            loads_schedulers: false,
            first_loads: loads,
            last_loads: loads,
        }
    }

    /// Ignores the settings in which another machine, that of a later half of the session, differs:
    /// the session changes them itself.
    pub(crate) fn ignore_differences(&mut self, other: &Machine) {
        for difference in self.expected.changed_settings(other) {
            self.ignored.push(difference.field);
        }
        self.loads_schedulers |= count_loads(&self.expected) != count_loads(other);
    }

    /// Continues a run that was killed in this round: what has changed since its beginning, has
    /// changed in it, as nobody looked at its end.
    pub(crate) fn continue_round(&mut self, round: u32) {
        self.round = Some(round);
    }

    /// Looks at the settings if a case begins a new round; returns the changes.
    pub(crate) fn before_case(&mut self, round: u32) -> Vec<SettingChange> {
        if self.round == Some(round) {
            return Vec::new();
        }
        let changes = self.look(round);
        self.round = Some(round);
        changes
    }

    /// Looks at the settings after the last round; returns the changes.
    pub(crate) fn at_end(&mut self) -> Vec<SettingChange> {
        match self.round {
            Some(round) => self.look(round.saturating_add(1)),
            None => Vec::new(),
        }
    }

    fn look(&mut self, next_round: u32) -> Vec<SettingChange> {
        let now = probe::machine::read_changeable_settings(&self.root);
        let mut differences = self.expected.changed_settings(&now);
        differences.retain(|difference| !self.ignored.contains(&difference.field));
        let loads = if self.loads_schedulers { None } else { count_loads(&now) };
        let loads = loads.or(self.last_loads);
        self.first_loads = self.first_loads.or(loads);
        let (names, kernel) = ([&self.expected, &now].map(scheduler_name), Some(KERNEL_SCHEDULER));
        if names[0] == names[1] && names[1] != kernel {
            // The same scheduler, loaded anew, may have other options.
            differences.extend(loads_difference(self.first_loads, loads));
        }
        let at = seconds_in_words(SystemTime::now());
        let passing = loads_difference(self.last_loads, loads);
        self.last_loads = loads;
        if differences != self.differences {
            self.differences.clone_from(&differences);
            let round = match self.round {
                // It changed within the round that has just ended.
                Some(round) if !differences.is_empty() => round,
                _ => next_round,
            };
            return vec![SettingChange { round, at, differences }];
        }
        let (Some(passing), Some(round)) = (passing, self.round) else { return Vec::new() };
        // One was loaded, and is gone again.
        let mut within = differences.clone();
        within.push(passing);
        vec![
            SettingChange { round, at: at.clone(), differences: within },
            SettingChange { round: next_round, at, differences },
        ]
    }
}

/// Returns whether the machine has not been started anew since this reading of it.
fn is_same_boot(root: &Path, earlier: &Machine) -> bool {
    let now = fs::read_to_string(root.join("proc/sys/kernel/random/boot_id")).unwrap_or_default();
    earlier.kernel.boot_id.known().is_some_and(|boot_id| boot_id == now.trim())
}

fn scheduler_name(machine: &Machine) -> Option<&str> {
    machine.scheduler.name.known().map(String::as_str)
}

/// Returns how many schedulers in BPF were loaded since the machine started.
fn count_loads(machine: &Machine) -> Option<u64> {
    machine.scheduler.sched_ext.known()?.enable_seq.known().copied()
}

/// Returns the difference of two counts of loaded schedulers; `None` where one is unknown.
fn loads_difference(before: Option<u64>, after: Option<u64>) -> Option<FieldDifference> {
    let (before, after) = (before?, after?);
    if before == after {
        return None;
    }
    let field = "scheduler.sched_ext.enable_seq".to_string();
    Some(FieldDifference { field, base: before.into(), other: after.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const AUTOGROUP: &str = "proc/sys/kernel/sched_autogroup_enabled";

    fn set(root: &Path, value: &str) {
        let path = root.join(AUTOGROUP);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(path, value).expect("a setting");
    }

    fn watcher(root: &Path) -> SettingWatcher {
        set(root, "1");
        SettingWatcher::new(root, probe::machine::read(root), None)
    }

    #[test]
    fn a_change_belongs_to_the_round_in_which_it_came_and_its_end_to_the_next() {
        let root = tempfile::tempdir().expect("a folder");
        let mut watcher = watcher(root.path());
        for round in 0..50 {
            assert_eq!(watcher.before_case(round), []);
        }
        set(root.path(), "0");
        assert_eq!(watcher.before_case(49), [], "within a round nobody looks");
        let changes = watcher.before_case(50);
        let [change] = &changes[..] else { panic!("{changes:?}") };
        assert_eq!((change.round, change.differences.len()), (49, 1));
        let difference = &change.differences[0];
        assert_eq!(difference.field, "scheduler.sysctls.sched_autogroup_enabled");
        assert_eq!((&difference.base, &difference.other), (&"1".into(), &"0".into()));
        assert_eq!(watcher.before_case(51), [], "it is said once");
        set(root.path(), "1");
        let back = watcher.at_end();
        let [back] = &back[..] else { panic!("{back:?}") };
        assert_eq!((back.round, back.differences.len()), (52, 0));
        assert_eq!(watcher.at_end(), []);
    }

    #[test]
    fn what_was_changed_before_the_first_round_is_no_part_of_an_earlier_session() {
        let root = tempfile::tempdir().expect("a folder");
        let mut first = watcher(root.path());
        set(root.path(), "0");
        let change = first.before_case(7).pop().expect("a change");
        assert_eq!(change.round, 7);
        // Resumed once more: the file has that change already.
        let expected = first.expected.clone();
        let mut second = SettingWatcher::new(root.path(), expected, Some(&change));
        assert_eq!(second.before_case(8), []);
        assert_eq!(second.at_end(), []);
    }

    #[test]
    fn the_last_round_of_a_run_that_was_killed_is_judged_by_what_is_there_then() {
        let root = tempfile::tempdir().expect("a folder");
        let mut first = watcher(root.path());
        first.continue_round(6);
        set(root.path(), "0");
        let change = first.before_case(7).pop().expect("a change");
        assert_eq!(change.round, 6);
        set(root.path(), "1");
        let mut second = watcher(root.path());
        second.continue_round(6);
        assert_eq!(second.before_case(7), [], "nothing has changed");
    }

    /// Loads a scheduler, or none, as the kernel shows it.
    fn load(root: &Path, ops: Option<&str>, loads: u64) {
        let folder = root.join("sys/kernel/sched_ext");
        fs::create_dir_all(folder.join("root")).expect("folders");
        let state = if ops.is_some() { "enabled" } else { "disabled" };
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("a file");
        write("state", state);
        write("switch_all", if ops.is_some() { "1" } else { "0" });
        write("enable_seq", &loads.to_string());
        match ops {
            Some(ops) => write("root/ops", ops),
            None => fs::remove_dir_all(folder.join("root")).expect("a folder"),
        }
    }

    fn rounds(changes: &[SettingChange]) -> Vec<(u32, bool)> {
        changes.iter().map(|change| (change.round, change.differences.is_empty())).collect()
    }

    #[test]
    fn a_scheduler_that_came_and_went_takes_the_rounds_between_alone() {
        let root = tempfile::tempdir().expect("a folder");
        load(root.path(), None, 3);
        let mut watcher = watcher(root.path());
        assert_eq!(watcher.before_case(0), []);
        load(root.path(), Some("simple"), 4);
        assert_eq!(rounds(&watcher.before_case(1)), [(0, false)]);
        load(root.path(), None, 4);
        assert_eq!(rounds(&watcher.before_case(2)), [(2, true)]);
        // Loaded and unloaded within a round.
        load(root.path(), None, 5);
        assert_eq!(rounds(&watcher.before_case(3)), [(2, false), (3, true)]);
        assert_eq!(watcher.before_case(4), []);
    }

    #[test]
    fn schedulers_that_the_session_loads_are_no_change() {
        let root = tempfile::tempdir().expect("a folder");
        load(root.path(), Some("one"), 1);
        let mut watcher = watcher(root.path());
        load(root.path(), Some("two"), 2);
        watcher.ignore_differences(&probe::machine::read(root.path()));
        assert_eq!(watcher.before_case(0), []);
        for round in 1..5 {
            let ops = if round % 2 == 0 { "two" } else { "one" };
            load(root.path(), Some(ops), 2 + u64::from(round));
            assert_eq!(watcher.before_case(round), []);
        }
        set(root.path(), "0");
        assert_eq!(rounds(&watcher.before_case(5)), [(4, false)], "others' changes are seen");
    }

    #[test]
    fn the_same_scheduler_loaded_anew_is_another_setting() {
        let root = tempfile::tempdir().expect("a folder");
        load(root.path(), Some("simple"), 1);
        let mut watcher = watcher(root.path());
        assert_eq!(watcher.before_case(0), []);
        load(root.path(), Some("simple"), 2);
        assert_eq!(rounds(&watcher.before_case(1)), [(0, false)]);
        assert_eq!(watcher.before_case(2), []);
    }
}
