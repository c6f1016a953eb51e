//! The note of a setting that a session has changed, for the case that nobody who would put it back
//! survives: the next start of the program does it.
//!
//! ```text
//! ~/.local/state/switchcost/settings/1f0c...json
//! {"file": "/proc/sys/kernel/sched_autogroup_enabled", "old": ["1"], "values": ["0", "1"],
//!  "boot_id": "..."}
//! ```

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use directories::ProjectDirs;
use rustix::fs::{Mode, OFlags, open};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use super::file::{SettingFile, has_value, state_for};
use crate::base::failure::print_message;
use crate::report::output::file::{OWNERS_ONLY, UnfinishedFile, make_private, refuse_unsafe_store};

/// Largest note in bytes.
const MAX_NOTE_BYTES: u64 = 1 << 16;

/// What is needed to put a setting back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SettingNote {
    /// The file.
    pub(crate) file: PathBuf,
    /// What is written to put it back: one value, or several flags.
    pub(crate) old: Vec<String>,
    /// The values that the session sets.
    pub(crate) values: Vec<String>,
    /// The start of the machine (random(4), boot_id): a later one knows nothing of the setting.
    pub(crate) boot_id: String,
}

impl SettingNote {
    /// Returns the note of a setting, by its content before the session.
    pub(crate) fn new(file: &SettingFile, content: &str, values: &[String]) -> Self {
        let mut old: Vec<String> = Vec::new();
        for value in values {
            let state = state_for(content, value);
            if !old.contains(&state) {
                old.push(state);
            }
        }
        Self { file: file.path.clone(), old, values: values.to_vec(), boot_id: boot_id() }
    }

    /// Returns the note of a setting whose content is not known yet: nothing would be put back.
    pub(crate) fn unknown(file: &SettingFile, values: &[String]) -> Self {
        Self {
            file: file.path.clone(),
            old: Vec::new(),
            values: values.to_vec(),
            boot_id: boot_id(),
        }
    }

    /// Puts the setting back.
    pub(crate) fn restore(&self, file: &SettingFile) -> Result<()> {
        for old in &self.old {
            file.set(old)?;
        }
        Ok(())
    }

    /// Returns the line to type that puts the setting back.
    pub(crate) fn command(&self) -> String {
        let file = shell_words::quote(&self.file.to_string_lossy()).into_owned();
        let mut commands = Vec::new();
        for old in &self.old {
            commands.push(format!("echo {} > {file}", shell_words::quote(old)));
        }
        commands.join("; ")
    }

    /// Returns the note's path in a folder.
    fn path(&self, folder: &Path) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        self.file.hash(&mut hasher);
        folder.join(format!("{:016x}.json", hasher.finish()))
    }

    /// Writes the note so that it outlives the machine's next failure.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        let cannot = || format!("cannot keep the old value in {}", folder.display());
        make_private(folder).with_context(cannot)?;
        refuse_unsafe_store(folder).with_context(cannot)?;
        let path = self.path(folder);
        let mut new = UnfinishedFile::create(&path, OWNERS_ONLY).with_context(cannot)?;
        new.file().write_all(&serde_json::to_vec(self)?).with_context(cannot)?;
        new.file().sync_data().with_context(cannot)?;
        new.finish(&path).with_context(cannot)?;
        Ok(())
    }

    /// Removes the note.
    pub(crate) fn remove(&self, folder: &Path) {
        // One that stays is found to be needless by the next start.
        let _ = fs::remove_file(self.path(folder));
    }
}

/// Returns the identity of this start of the machine; empty where it cannot be read.
fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_string()
}

/// Returns the folder of the notes.
pub(crate) fn folder() -> Result<PathBuf> {
    let dirs = ProjectDirs::from("", "", "switchcost")
        .context("there is no home directory to keep the old value in: set HOME")?;
    let state = dirs.state_dir().context("there is no state directory (XDG_STATE_HOME)")?;
    Ok(state.join("settings"))
}

/// Puts settings back that sessions left changed which were killed with all that watched them, and
/// says so. Notes of sessions that are alive are left alone.
pub(crate) fn restore_leftovers() {
    let Ok(folder) = folder() else { return };
    let Ok(entries) = fs::read_dir(&folder) else { return };
    // Whoever may write there would choose what is written to settings.
    if probe::has_file_privileges() || refuse_unsafe_store(&folder).is_err() {
        return;
    }
    for entry in entries.flatten() {
        let path = entry.path();
        let Some(note) = read_own_note(&path) else { continue };
        if restore_leftover(&note) {
            let _ = fs::remove_file(&path);
        }
    }
}

/// Reads a note that this user wrote; `None` for anything else. The user who called sudo(8) may own
/// the folder, and must not choose what root writes to settings.
fn read_own_note(path: &Path) -> Option<SettingNote> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::from(open(path, flags, Mode::empty()).ok()?);
    let found = file.metadata().ok()?;
    let is_own = found.is_file() && found.nlink() == 1 && found.uid() == geteuid().as_raw();
    if !is_own {
        return None;
    }
    serde_json::from_reader(file.take(MAX_NOTE_BYTES)).ok()
}

/// Puts one setting back; returns whether its note is done with.
fn restore_leftover(note: &SettingNote) -> bool {
    if note.boot_id != boot_id() {
        return true;
    }
    let Ok(file) = SettingFile::find(&note.file) else { return true };
    // The session, or its guard, is alive.
    let Ok(_lock) = file.lock() else { return false };
    let Ok(content) = file.read() else { return false };
    if note.old.iter().all(|old| has_value(&content, old)) {
        return true;
    }
    let name = note.file.display();
    if !note.values.iter().any(|value| has_value(&content, value)) {
        print_message(&format!(
            "warning: {name} was changed since a session of two settings was killed: it is left as \
             it is (before that session: {})",
            note.old.join(" ")
        ));
        return true;
    }
    match note.restore(&file) {
        Ok(()) => {
            print_message(&format!(
                "{name} is {} again: a session of two settings, which was killed, had changed it",
                note.old.join(" ")
            ));
            true
        }
        Err(error) => {
            print_message(&format!(
                "warning: a session of two settings, which was killed, has left {name} changed, and \
                 it cannot be put back: {error:#}; type: {}",
                note.command()
            ));
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(old: &[&str]) -> SettingNote {
        SettingNote {
            file: "/proc/sys/x y".into(),
            old: old.iter().map(|old| (*old).to_string()).collect(),
            values: vec!["a".to_string(), "b".to_string()],
            boot_id: boot_id(),
        }
    }

    #[test]
    fn a_note_is_kept_for_its_owner_alone_and_removed() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().join("settings");
        let written = note(&["1"]);
        written.write(&folder).expect("a note");
        let path = written.path(&folder);
        let text = fs::read(&path).expect("the note");
        assert_eq!(serde_json::from_slice::<SettingNote>(&text).expect("JSON"), written);
        let mode = fs::metadata(&path).expect("the file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        written.remove(&folder);
        assert!(!path.exists());
    }

    #[test]
    fn a_note_that_is_a_link_or_has_a_second_name_is_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().join("settings");
        let written = note(&["1"]);
        written.write(&folder).expect("a note");
        let path = written.path(&folder);
        assert_eq!(read_own_note(&path), Some(written));
        let link = folder.join("link.json");
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        assert_eq!(read_own_note(&link), None);
        fs::hard_link(&path, folder.join("second.json")).expect("a name");
        assert_eq!(read_own_note(&path), None);
    }

    #[test]
    fn flags_are_put_back_one_by_one_and_the_line_to_type_is_quoted() {
        let file = SettingFile { path: "/sys/kernel/debug/sched/features".into() };
        let values = ["NO_A".to_string(), "B".to_string()];
        let both = SettingNote::new(&file, "A NO_B C", &values);
        assert_eq!(both.old, ["A", "NO_B"]);
        let same = SettingNote::new(&file, "7", &values);
        assert_eq!(same.old, ["7"]);
        let typed = note(&["4 4"]).command();
        assert_eq!(typed, "echo '4 4' > '/proc/sys/x y'");
    }

    #[test]
    fn a_note_of_an_earlier_start_of_the_machine_is_done_with() {
        let old = SettingNote { boot_id: "another".to_string(), ..note(&["1"]) };
        assert!(restore_leftover(&old));
        assert!(restore_leftover(&note(&["1"])), "a file that is gone is none to put back");
    }
}
