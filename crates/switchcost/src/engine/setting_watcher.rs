//! Watches the settings of the whole machine from round to round: somebody may load another
//! scheduler, or choose another governor, while a run goes on.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rundata::machine::{FieldDifference, Machine};
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
}

impl SettingWatcher {
    /// Watches for changes from the machine of a header. `earlier` is the last change that the run
    /// file has, of a run that is resumed.
    pub(crate) fn new(root: &Path, expected: Machine, earlier: Option<&SettingChange>) -> Self {
        let differences = earlier.map_or(Vec::new(), |change| change.differences.clone());
        Self { root: root.to_path_buf(), expected, differences, round: None, ignored: Vec::new() }
    }

    /// Ignores the settings in which another machine, that of a later half of the session, differs:
    /// the session changes them itself.
    pub(crate) fn ignore_differences(&mut self, other: &Machine) {
        for difference in self.expected.changed_settings(other) {
            self.ignored.push(difference.field);
        }
    }

    /// Looks at the settings if a case begins a new round; returns a change.
    pub(crate) fn before_case(&mut self, round: u32) -> Option<SettingChange> {
        if self.round == Some(round) {
            return None;
        }
        let change = self.look(round);
        self.round = Some(round);
        change
    }

    /// Looks at the settings after the last round; returns a change.
    pub(crate) fn at_end(&mut self) -> Option<SettingChange> {
        let next_round = self.round?.saturating_add(1);
        self.look(next_round)
    }

    fn look(&mut self, next_round: u32) -> Option<SettingChange> {
        let now = probe::machine::read_changeable_settings(&self.root);
        let mut differences = self.expected.changed_settings(&now);
        differences.retain(|difference| !self.ignored.contains(&difference.field));
        if differences == self.differences {
            return None;
        }
        self.differences.clone_from(&differences);
        let round = match self.round {
            // It changed within the round that has just ended.
            Some(round) if !differences.is_empty() => round,
            _ => next_round,
        };
        let at = seconds_in_words(SystemTime::now());
        Some(SettingChange { round, at, differences })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

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
            assert_eq!(watcher.before_case(round), None);
        }
        set(root.path(), "0");
        assert_eq!(watcher.before_case(49), None, "within a round nobody looks");
        let change = watcher.before_case(50).expect("a change");
        assert_eq!((change.round, change.differences.len()), (49, 1));
        let difference = &change.differences[0];
        assert_eq!(difference.field, "scheduler.sysctls.sched_autogroup_enabled");
        assert_eq!((&difference.base, &difference.other), (&"1".into(), &"0".into()));
        assert_eq!(watcher.before_case(51), None, "it is said once");
        set(root.path(), "1");
        let back = watcher.at_end().expect("a change");
        assert_eq!((back.round, back.differences.len()), (52, 0));
        assert_eq!(watcher.at_end(), None);
    }

    #[test]
    fn what_was_changed_before_the_first_round_is_no_part_of_an_earlier_session() {
        let root = tempfile::tempdir().expect("a folder");
        let mut first = watcher(root.path());
        set(root.path(), "0");
        let change = first.before_case(7).expect("a change");
        assert_eq!(change.round, 7);
        // Resumed once more: the file has that change already.
        let expected = first.expected.clone();
        let mut second = SettingWatcher::new(root.path(), expected, Some(&change));
        assert_eq!(second.before_case(8), None);
        assert_eq!(second.at_end(), None);
    }
}
