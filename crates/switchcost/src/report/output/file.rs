//! Files that are there whole or not at all, and folders that nobody else can write to.
//!
//! A file is written under no name, or under a temporary one, and gets its name when it is complete.
//! An old file of that name stays until the new one is on the disk:
//!
//! ```text
//! UnfinishedFile::create   open(2) with O_TMPFILE: no name; else .switchcost-<random>
//!        | write
//!        | fsync
//! put                      rename(2) over the old file, in one step
//! ```
//!
//! A program that is killed in between leaves the old file, and nothing else where O_TMPFILE exists.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use anyhow::{Error, Result, anyhow, bail};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
use rustix::io::Errno;
use rustix::process::{Resource, geteuid, getrlimit};

use crate::base::failure::usage;

/// Mode of stored runs: only their owner may read them, as they contain command lines.
pub(crate) const OWNERS_ONLY: u32 = 0o600;

/// Makes a folder that only its owner may enter, and the missing folders above it.
pub(crate) fn make_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Refuses a folder or file that others may write to, or that is somebody else's, as ssh(1) does:
/// its content could be theirs. Accepts a path that is not there.
pub(crate) fn refuse_others_writing(path: &Path) -> Result<()> {
    let Ok(found) = fs::metadata(path) else { return Ok(()) };
    let shown = path.display();
    if found.mode() & 0o022 != 0 {
        let mode = found.mode() & 0o7777;
        bail!(
            "others may write to {shown} (mode {mode:04o}): check its contents, then `chmod go-w {shown}`"
        );
    }
    refuse_owner(path, &found)
}

/// Refuses the folder of a store if others could put files into it, or another folder in its place.
///
/// Nobody else may write to the folder and to its parent. Every folder above, by its path and with
/// links resolved, may be writable for a group, but not for everybody unless it is sticky.
pub(crate) fn refuse_unsafe_store(folder: &Path) -> Result<()> {
    if let Some(parent) = folder.parent() {
        refuse_others_writing(parent)?;
    }
    refuse_others_writing(folder)?;
    let existing = folder.ancestors().find_map(|path| path.canonicalize().ok());
    for path in folder.ancestors().skip(2) {
        refuse_everybody_writing(path)?;
    }
    if let Some(existing) = existing {
        for path in existing.ancestors() {
            refuse_everybody_writing(path)?;
        }
    }
    Ok(())
}

/// Refuses a folder that everybody may write to, unless only owners may rename in it (sticky).
fn refuse_everybody_writing(path: &Path) -> Result<()> {
    let Ok(found) = fs::metadata(path) else { return Ok(()) };
    let is_sticky = found.mode() & 0o1000 != 0;
    if found.mode() & 0o002 != 0 && !is_sticky {
        let (shown, mode) = (path.display(), found.mode() & 0o7777);
        bail!("everybody may write to {shown} (mode {mode:04o}): `chmod o-w {shown}`");
    }
    Ok(())
}

/// Refuses a file of somebody who is neither this user nor root. Root may keep runs in the home of
/// the user who called sudo(8), and in nobody else's.
fn refuse_owner(path: &Path, found: &Metadata) -> Result<()> {
    let user = geteuid().as_raw();
    let sudo_user = std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse::<u32>().ok());
    let is_of_sudo_user = user == 0 && sudo_user == Some(found.uid());
    if found.uid() != user && found.uid() != 0 && !is_of_sudo_user {
        bail!(
            "{} belongs to another user (id {}): set XDG_DATA_HOME and XDG_STATE_HOME to folders \
             of your own",
            path.display(),
            found.uid()
        );
    }
    Ok(())
}

/// Refuses a folder that is not this user's own, or that somebody else could replace by another: a
/// folder above it belongs to another user, or others may write to one. Above it a folder like /tmp,
/// in which only owners may rename (mode 1777), is accepted.
pub(crate) fn refuse_replaceable(folder: &Path) -> Result<()> {
    let user = geteuid().as_raw();
    let real = folder.canonicalize().map_err(|error| anyhow!("{}: {error}", folder.display()))?;
    for (above, path) in real.ancestors().enumerate() {
        let found = fs::metadata(path).map_err(|error| anyhow!("{}: {error}", path.display()))?;
        let is_owned = found.uid() == user || (above > 0 && found.uid() == 0);
        if !is_owned {
            bail!("{} belongs to another user (id {})", path.display(), found.uid());
        }
        let is_sticky = above > 0 && found.mode() & 0o1000 != 0;
        if found.mode() & 0o022 != 0 && !is_sticky {
            let (path, mode) = (path.display(), found.mode() & 0o7777);
            bail!("others may write to {path} (mode {mode:04o}): `chmod go-w {path}`");
        }
    }
    Ok(())
}

/// Returns the folder of a file; `.` for a bare name.
pub(crate) fn folder_of(file: &Path) -> &Path {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// Returns a path in the same folder, with a random name that nobody can have prepared.
pub(crate) fn temporary_path(path: &Path) -> io::Result<PathBuf> {
    Ok(folder_of(path).join(format!(".switchcost-{:016x}", probe::random_number()?)))
}

/// A file that is not complete. It has no name where the file system supports that (open(2),
/// O_TMPFILE), so that a killed program leaves nothing; else a temporary name, which is removed when
/// this value is dropped.
pub(crate) struct UnfinishedFile {
    file: File,
    temporary: Option<PathBuf>,
}

impl UnfinishedFile {
    /// Creates an empty file for reading and appending, in the folder of `path`.
    pub(crate) fn create(path: &Path, mode: u32) -> io::Result<Self> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::APPEND | OFlags::CLOEXEC;
        match open(folder_of(path), flags, Mode::from_raw_mode(mode)) {
            // The file gets its name by way of /proc.
            Ok(file) if Path::new("/proc/self/fd").exists() => {
                Ok(Self { file: file.into(), temporary: None })
            }
            Ok(_) | Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => {
                Self::create_named(temporary_path(path)?, mode)
            }
            Err(errno) => Err(errno.into()),
        }
    }

    fn create_named(name: PathBuf, mode: u32) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).create_new(true).mode(mode).open(&name)?;
        Ok(Self { file, temporary: Some(name) })
    }

    pub(crate) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Gives the file its name; an error (`AlreadyExists`) if there is a file of that name.
    pub(crate) fn finish(self, path: &Path) -> io::Result<File> {
        self.link(path)?;
        self.file.try_clone()
    }

    /// Gives the file a further name, which nothing may have.
    fn link(&self, path: &Path) -> io::Result<()> {
        match &self.temporary {
            // Not every file system has links.
            Some(name) => fs::hard_link(name, path).or_else(|error| match error.kind() {
                ErrorKind::AlreadyExists => Err(error),
                _ => fs::rename(name, path),
            }),
            None => {
                let descriptor = format!("/proc/self/fd/{}", self.file.as_raw_fd());
                Ok(linkat(CWD, descriptor, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
            }
        }
    }

    /// Puts the file on the disk and in place of the old file of that name. Replacing an old file
    /// takes two system calls, between which the new one has a temporary name.
    pub(crate) fn put(mut self, path: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        if self.temporary.is_none() {
            match self.link(path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    let name = temporary_path(path)?;
                    self.link(&name)?;
                    self.temporary = Some(name);
                }
                linked => return linked,
            }
        }
        if let Some(name) = &self.temporary {
            fs::rename(name, path)?;
        }
        self.temporary = None;
        Ok(())
    }
}

impl Drop for UnfinishedFile {
    fn drop(&mut self) {
        if let Some(name) = &self.temporary {
            let _ = fs::remove_file(name);
        }
    }
}

/// What an output is written to.
pub(crate) enum WriteTarget {
    /// A file, which is replaced; with the metadata of the old one, if there is one.
    File(Option<Metadata>),
    /// A device, a FIFO, or a descriptor of this process, which is written to as it is.
    Stream,
}

impl WriteTarget {
    /// Returns what a path names, or why it is not written to. Links to files are not followed:
    /// whoever may make a link in a folder must not choose the file that is replaced.
    pub(crate) fn from_path(path: &Path) -> Result<Self, String> {
        let found = match path.metadata() {
            Ok(found) if found.is_dir() => return Err("it is a directory".to_string()),
            Ok(found) if !found.is_file() || is_descriptor(path) => return Ok(Self::Stream),
            Ok(found) => Some(found),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error.to_string()),
        };
        match path.read_link() {
            Ok(target) => {
                let target = target.display();
                Err(format!(
                    "it is a link to {target}, and links are not followed: name that file itself"
                ))
            }
            Err(_) => Ok(Self::File(found)),
        }
    }
}

/// Returns whether a path is `/dev/stdout`, `/dev/fd/3` or the like, whatever is open there.
fn is_descriptor(path: &Path) -> bool {
    let target = path.read_link().unwrap_or_default();
    is_in_fd_folder(path) || is_in_fd_folder(&folder_of(path).join(target))
}

/// Returns whether a path is in the folder of a process's descriptors, `/proc/PID/fd`.
fn is_in_fd_folder(path: &Path) -> bool {
    let folder = folder_of(path).canonicalize().unwrap_or_default();
    folder.starts_with("/proc") && folder.ends_with("fd")
}

/// Writes to a path that the user has named what `fill` makes.
pub(crate) fn write(path: &Path, fill: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let target =
        WriteTarget::from_path(path).map_err(|why| usage(format!("{}: {why}", path.display())))?;
    match target {
        WriteTarget::Stream => {
            let stream = OpenOptions::new().append(true).open(path);
            let stream = stream.map_err(|error| cannot_write(path, error))?;
            fill_writer(stream, fill)?.map_err(|error| cannot_write(path, error))
        }
        WriteTarget::File(old) => {
            let mut new = begin_file(path, old).map_err(|error| cannot_write(path, error))?;
            let written = fill_writer(new.file(), fill)?;
            written.and_then(|()| new.put(path)).map_err(|error| cannot_write(path, error))
        }
    }
}

/// Lets `fill` write. The outer error says why `fill` could not make its content, the inner one why
/// that could not be written.
pub(crate) fn fill_writer(
    to: impl Write,
    fill: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<io::Result<()>> {
    let mut to = ErrorKeeper { writer: to, error: None };
    let filled = fill(&mut to);
    match to.error {
        Some(error) if filled.is_err() => Ok(Err(error)),
        _ => filled.map(Ok),
    }
}

/// A writer that keeps its last error; whoever writes gets one of the same kind.
struct ErrorKeeper<W> {
    writer: W,
    error: Option<io::Error>,
}

impl<W: Write> Write for ErrorKeeper<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes).map_err(|error| {
            let kind = error.kind();
            self.error = Some(error);
            kind.into()
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Begins a file that will replace the old one, whose owner and mode it gets as far as that is
/// permitted.
pub(crate) fn begin_file(path: &Path, old: Option<Metadata>) -> io::Result<UnfinishedFile> {
    let mut new = UnfinishedFile::create(path, 0o666)?;
    if let Some(old) = old {
        // The owner first: a change of it takes bits of the mode away.
        let _ = fchown(new.file(), Some(old.uid()), Some(old.gid()));
        new.file().set_permissions(fs::Permissions::from_mode(old.mode() & 0o777))?;
    }
    Ok(new)
}

/// Writes a file that only its owner may read, in place of the old one.
pub(crate) fn replace_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut new = UnfinishedFile::create(path, OWNERS_ONLY)?;
    new.file().write_all(bytes)?;
    new.put(path)
}

/// Adds to an error the path, and the limit of a file's size if that is the reason.
pub(crate) fn cannot_write(path: &Path, error: io::Error) -> Error {
    let hint = match getrlimit(Resource::Fsize).current {
        Some(bytes) if error.kind() == ErrorKind::FileTooLarge => format!(
            "; the limit of a file's size is {bytes} bytes (`ulimit -f unlimited` raises it)"
        ),
        _ => String::new(),
    };
    anyhow!("cannot write {}: {error}{hint}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().flatten();
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
    }

    /// Covers file systems without O_TMPFILE.
    #[test]
    fn a_file_with_a_name_of_its_own_leaves_none_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let begin = || {
            let mut new =
                UnfinishedFile::create_named(temporary_path(&path).unwrap(), 0o600).unwrap();
            new.file().write_all(b"new").unwrap();
            new
        };
        drop(begin());
        assert_eq!(names(folder.path()), [""; 0]);
        begin().finish(&path).unwrap();
        assert_eq!(begin().finish(&path).unwrap_err().kind(), ErrorKind::AlreadyExists);
        fs::write(&path, "old").unwrap();
        begin().put(&path).unwrap();
        assert_eq!(
            (names(folder.path()), fs::read(&path).unwrap()),
            (vec!["file".into()], b"new".to_vec())
        );
    }

    #[test]
    fn nobody_can_foresee_a_name() {
        let name = || temporary_path(Path::new("folder/file")).unwrap();
        assert_ne!(name(), name());
        assert_eq!(name().parent(), Some(Path::new("folder")));
    }
}
