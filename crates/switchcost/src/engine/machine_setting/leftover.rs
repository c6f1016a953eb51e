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
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use directories::ProjectDirs;
use rustix::fs::{AtFlags, Dir, Mode, OFlags, fstat, fsync, open, openat, renameat, unlinkat};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use super::file::{SettingFile, has_value, state_for};
use crate::base::failure::print_message;
use crate::report::output::file::make_private;

/// Largest note in bytes.
const MAX_NOTE_BYTES: u64 = 1 << 16;

/// What is needed to put a setting back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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

    /// Returns the name of the note's file.
    fn file_name(&self) -> String {
        let mut hasher = DefaultHasher::new();
        self.file.hash(&mut hasher);
        format!("{:016x}.json", hasher.finish())
    }
}

/// Returns the identity of this start of the machine; empty where it cannot be read.
fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_string()
}

/// The folder of the notes: `$XDG_STATE_HOME/switchcost/settings`. It belongs to this very user, who
/// alone may write to it: whoever else could would choose what is written to settings. After sudo(8)
/// its parents may be another user's, so nothing in it is named by its path.
pub(crate) struct NoteFolder {
    path: PathBuf,
    folder: OwnedFd,
}

impl NoteFolder {
    /// Makes the folder, if it is not there, and opens it.
    pub(crate) fn of_user() -> Result<Self> {
        let path = folder_path()?;
        make_private(&path)
            .with_context(|| format!("cannot keep the old value in {}", path.display()))?;
        Self::open(path)
    }

    /// Opens the folder, which must be there.
    fn open(path: PathBuf) -> Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let shown = path.display();
        let folder = open(&path, flags, Mode::empty())
            .with_context(|| format!("cannot open the folder {shown}"))?;
        let found = fstat(&folder).with_context(|| format!("cannot look at {shown}"))?;
        ensure!(
            found.st_uid == geteuid().as_raw() && found.st_mode & 0o022 == 0,
            "{shown} belongs to another user, or others may write to it: no old value is kept there \
             (set XDG_STATE_HOME to a folder of your own)"
        );
        Ok(Self { path, folder })
    }

    /// Writes a note so that it outlives a crash of the machine.
    pub(crate) fn write(&self, note: &SettingNote) -> Result<()> {
        let cannot = || format!("cannot keep the old value in {}", self.path.display());
        let (name, new_name) = (note.file_name(), format!("{}.new", note.file_name()));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        // One that a killed guard has left, who had changed nothing yet.
        let _ = unlinkat(&self.folder, &new_name, AtFlags::empty());
        let mode = Mode::RUSR | Mode::WUSR;
        let mut file =
            File::from(openat(&self.folder, &new_name, flags, mode).with_context(cannot)?);
        let written = file.write_all(&serde_json::to_vec(note)?).and_then(|()| file.sync_data());
        if let Err(error) = written {
            let _ = unlinkat(&self.folder, &new_name, AtFlags::empty());
            return Err(error).with_context(cannot);
        }
        renameat(&self.folder, &new_name, &self.folder, &name).with_context(cannot)?;
        fsync(&self.folder).with_context(cannot)
    }

    /// Removes a note. One that stays is found to be needless by the next start.
    pub(crate) fn remove(&self, note: &SettingNote) {
        let _ = unlinkat(&self.folder, note.file_name(), AtFlags::empty());
    }

    /// Reads the note of this name if this user wrote it; `None` for anything else.
    fn read(&self, name: &str) -> Option<SettingNote> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = File::from(openat(&self.folder, name, flags, Mode::empty()).ok()?);
        let found = file.metadata().ok()?;
        let is_own = found.is_file() && found.nlink() == 1 && found.uid() == geteuid().as_raw();
        if !is_own {
            return None;
        }
        let note: SettingNote = serde_json::from_reader(file.take(MAX_NOTE_BYTES)).ok()?;
        if note.file_name() == name { Some(note) } else { None }
    }

    /// Returns the names of the files in it.
    fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.folder).into_iter().flatten().flatten() {
            names.extend(entry.file_name().to_str().map(str::to_string));
        }
        names
    }

    /// Puts the setting of a note back, unless a session or its guard is alive, and removes the
    /// note.
    fn restore(&self, name: &str) {
        let Some(note) = self.read(name) else { return };
        let Ok(file) = SettingFile::find(&note.file) else { return };
        let Ok(_lock) = file.lock() else { return };
        // Another start may have done it before the lock was free, and a session begun since.
        let Some(note) = self.read(name) else { return };
        if note.boot_id != boot_id() || restore_setting(&note, &file) {
            self.remove(&note);
        }
    }
}

/// Returns the path of the folder of notes.
fn folder_path() -> Result<PathBuf> {
    let dirs = ProjectDirs::from("", "", "switchcost")
        .context("there is no home directory to keep the old value in: set HOME")?;
    let state = dirs.state_dir().context("there is no state directory (XDG_STATE_HOME)")?;
    Ok(state.join("settings"))
}

/// Puts settings back that sessions left changed which were killed with all that watched them, and
/// says so.
pub(crate) fn restore_leftovers() {
    let Ok(path) = folder_path() else { return };
    if !path.exists() || probe::has_file_privileges() {
        return;
    }
    let Ok(notes) = NoteFolder::open(path) else { return };
    for name in notes.names() {
        notes.restore(&name);
    }
}

/// Puts one setting back; returns whether its note is done with.
fn restore_setting(note: &SettingNote, file: &SettingFile) -> bool {
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
    match note.restore(file) {
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
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    use super::*;

    fn note(old: &[&str]) -> SettingNote {
        SettingNote {
            file: "/proc/sys/x y".into(),
            old: old.iter().map(|old| (*old).to_string()).collect(),
            values: vec!["a".to_string(), "b".to_string()],
            boot_id: boot_id(),
        }
    }

    fn folder_in(parent: &Path) -> NoteFolder {
        let path = parent.join("settings");
        make_private(&path).expect("a folder");
        NoteFolder::open(path).expect("a folder of this user")
    }

    #[test]
    fn a_note_is_kept_for_its_owner_alone_replaced_and_removed() {
        let parent = tempfile::tempdir().expect("a folder");
        let notes = folder_in(parent.path());
        let written = note(&["1"]);
        notes.write(&note(&["0"])).expect("a note");
        notes.write(&written).expect("a newer note");
        assert_eq!(notes.names().iter().filter(|name| name.ends_with(".json")).count(), 1);
        assert_eq!(notes.read(&written.file_name()), Some(written.clone()));
        let path = notes.path.join(written.file_name());
        let mode = fs::metadata(&path).expect("the file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        notes.remove(&written);
        assert!(!path.exists());
    }

    #[test]
    fn what_somebody_else_may_have_put_there_is_not_read() {
        let parent = tempfile::tempdir().expect("a folder");
        let notes = folder_in(parent.path());
        let written = note(&["1"]);
        notes.write(&written).expect("a note");
        let path = notes.path.join(written.file_name());
        symlink(&path, notes.path.join("link.json")).expect("a link");
        assert_eq!(notes.read("link.json"), None);
        fs::copy(&path, notes.path.join("shadow")).expect("a copy");
        assert_eq!(notes.read("shadow"), None, "a note has the name of its setting");
        fs::hard_link(&path, notes.path.join("second.json")).expect("a name");
        assert_eq!(notes.read(&written.file_name()), None);

        let open = fs::Permissions::from_mode(0o777);
        fs::set_permissions(&notes.path, open).expect("a mode");
        assert!(NoteFolder::open(notes.path.clone()).is_err());
        let link = parent.path().join("link");
        symlink(&notes.path, &link).expect("a link");
        assert!(NoteFolder::open(link).is_err());
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
}
