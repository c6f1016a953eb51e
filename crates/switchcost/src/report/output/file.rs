//! Files that are there whole or not at all: an old one stays until the new one is on the disk.

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

/// Mode of what is stored: it has command lines.
pub(crate) const OWNERS_ONLY: u32 = 0o600;

/// Makes a folder of our own, and those above it that are missing, whatever the umask is.
pub(crate) fn make_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Refuses a folder or file of our own that others may write to, as ssh(1) does: they could have put
/// there what is read as ours. What is not there is no matter.
pub(crate) fn refuse_others_writing(path: &Path) -> Result<()> {
    let Ok(found) = fs::metadata(path) else { return Ok(()) };
    let shown = path.display();
    if found.mode() & 0o022 != 0 {
        let mode = found.mode() & 0o7777;
        bail!(
            "others may write to {shown} (mode {mode:04o}): look at what is there, then `chmod go-w {shown}`"
        );
    }
    refuse_owner(path, &found)
}

/// Refuses a store in which, or in place of which, others may put something: the folder itself, the
/// one that it is in, and those above both their paths and what links in these lead to. Above it
/// members of a group may write.
pub(crate) fn refuse_unsafe_store(folder: &Path) -> Result<()> {
    let parent = folder.parent();
    for path in [parent, Some(folder)].into_iter().flatten() {
        refuse_others_writing(path)?;
    }
    let existing = folder.ancestors().find_map(|path| path.canonicalize().ok());
    let real = existing.iter().flat_map(|path| path.ancestors());
    for path in folder.ancestors().skip(2).chain(real) {
        let Ok(found) = fs::metadata(path) else { continue };
        let is_sticky = found.mode() & 0o1000 != 0;
        if found.mode() & 0o002 != 0 && !is_sticky {
            let (shown, mode) = (path.display(), found.mode() & 0o7777);
            bail!("everybody may write to {shown} (mode {mode:04o}): `chmod o-w {shown}`");
        }
    }
    Ok(())
}

/// Refuses what belongs to somebody who is neither this user nor root. Root may keep runs in the
/// home of the user whom it acts for (sudo(8)), and in no other's.
fn refuse_owner(path: &Path, found: &Metadata) -> Result<()> {
    let own = geteuid().as_raw();
    let asked_by = std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse::<u32>().ok());
    let is_asked_for = own == 0 && asked_by == Some(found.uid());
    if found.uid() != own && found.uid() != 0 && !is_asked_for {
        bail!(
            "{} belongs to another user (id {}): set XDG_DATA_HOME and XDG_STATE_HOME to folders \
             of your own",
            path.display(),
            found.uid()
        );
    }
    Ok(())
}

/// Refuses a folder that is not this user's own, or that somebody else could put another in place
/// of: one above it belongs to another user, or others may write to it. A folder like /tmp, in which
/// only owners may rename (mode 1777), is accepted.
pub(crate) fn refuse_replaceable(folder: &Path) -> Result<()> {
    let own = geteuid().as_raw();
    let real = folder.canonicalize().map_err(|error| anyhow!("{}: {error}", folder.display()))?;
    for (above, path) in real.ancestors().enumerate() {
        let found = fs::metadata(path).map_err(|error| anyhow!("{}: {error}", path.display()))?;
        let is_owned = found.uid() == own || (above > 0 && found.uid() == 0);
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

/// The folder that a file is to lie in.
pub(crate) fn folder_of(file: &Path) -> &Path {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// A name beside `path` that nobody can have foreseen.
pub(crate) fn temporary_path(path: &Path) -> io::Result<PathBuf> {
    Ok(folder_of(path).join(format!(".switchcost-{:016x}", probe::random_number()?)))
}

/// A file that is not complete. It has no name where the file system has such files (open(2),
/// O_TMPFILE), so that a program killed meanwhile leaves nothing; else a name of [`temporary_path`], which
/// goes with this value.
pub(crate) struct UnfinishedFile {
    file: File,
    named: Option<PathBuf>,
}

impl UnfinishedFile {
    /// An empty file, to be read and appended to, that will be called `path`.
    pub(crate) fn create(path: &Path, mode: u32) -> io::Result<Self> {
        let how = OFlags::TMPFILE | OFlags::RDWR | OFlags::APPEND | OFlags::CLOEXEC;
        match open(folder_of(path), how, Mode::from_raw_mode(mode)) {
            // Only by /proc can it be given a name.
            Ok(file) if Path::new("/proc/self/fd").exists() => {
                Ok(Self { file: file.into(), named: None })
            }
            Ok(_) | Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => {
                Self::create_named(temporary_path(path)?, mode)
            }
            Err(errno) => Err(errno.into()),
        }
    }

    fn create_named(name: PathBuf, mode: u32) -> io::Result<Self> {
        let mut how = OpenOptions::new();
        let file = how.read(true).append(true).create_new(true).mode(mode).open(&name)?;
        Ok(Self { file, named: Some(name) })
    }

    /// To be written.
    pub(crate) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Gives it its name, which nothing may have.
    pub(crate) fn finish(self, path: &Path) -> io::Result<File> {
        self.link(path)?;
        self.file.try_clone()
    }

    fn link(&self, path: &Path) -> io::Result<()> {
        match &self.named {
            // Not every file system has links.
            Some(name) => fs::hard_link(name, path).or_else(|error| match error.kind() {
                ErrorKind::AlreadyExists => Err(error),
                _ => fs::rename(name, path),
            }),
            None => {
                let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
                Ok(linkat(CWD, own, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
            }
        }
    }

    /// Puts it on the disk and in place of what has that name. Only between two system calls of
    /// these is it there by another.
    pub(crate) fn put(mut self, path: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        if self.named.is_none() {
            match self.link(path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    let name = temporary_path(path)?;
                    self.link(&name)?;
                    self.named = Some(name);
                }
                linked => return linked,
            }
        }
        self.named.as_ref().map_or(Ok(()), |name| fs::rename(name, path))?;
        self.named = None;
        Ok(())
    }
}

impl Drop for UnfinishedFile {
    fn drop(&mut self) {
        if let Some(name) = &self.named {
            let _ = fs::remove_file(name);
        }
    }
}

/// What a path that is to be written names.
pub(crate) enum WriteTarget {
    /// A file, of which this is known if it is there.
    File(Option<Metadata>),
    /// A device, a FIFO, or a descriptor of this process: it is written to as it is.
    Stream,
}

impl WriteTarget {
    /// Or why it is not written to. A link to a file is not: who may make links in a folder must
    /// not choose which file of somebody else is replaced.
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

/// Whether it is `/dev/stdout`, `/dev/fd/3` or the like, whatever is open there.
fn is_descriptor(path: &Path) -> bool {
    let target = path.read_link().unwrap_or_default();
    let lies_there = |path: &Path| {
        let folder = folder_of(path).canonicalize().unwrap_or_default();
        folder.starts_with("/proc") && folder.ends_with("fd")
    };
    lies_there(path) || lies_there(&folder_of(path).join(target))
}

/// Writes a file that a user has named, as `fill` writes it.
pub(crate) fn write(path: &Path, fill: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let place =
        WriteTarget::from_path(path).map_err(|why| usage(format!("{}: {why}", path.display())))?;
    let cannot = |error| cannot_write(path, error);
    match place {
        WriteTarget::Stream => {
            let to = OpenOptions::new().append(true).open(path).map_err(cannot)?;
            fill_writer(to, fill)?.map_err(cannot)
        }
        WriteTarget::File(old) => {
            let mut new = begin_file(path, old).map_err(cannot)?;
            fill_writer(new.file(), fill)?.map_err(cannot)?;
            new.put(path).map_err(cannot)
        }
    }
}

/// Lets `fill` write; what goes wrong with the writing is apart from what goes wrong with what is
/// to be written.
pub(crate) fn fill_writer(
    to: impl Write,
    fill: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<io::Result<()>> {
    struct Noted<W>(W, Option<io::Error>);
    impl<W: Write> Write for Noted<W> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes).map_err(|error| {
                let kind = error.kind();
                self.1 = Some(error);
                kind.into()
            })
        }
        fn flush(&mut self) -> io::Result<()> {
            self.0.flush()
        }
    }
    let mut to = Noted(to, None);
    match (fill(&mut to), to.1) {
        (Err(_), Some(error)) => Ok(Err(error)),
        (filled, _) => filled.map(Ok),
    }
}

/// An empty file for the place of the one that is there, whose owner and mode it gets as far as
/// that is permitted.
pub(crate) fn begin_file(path: &Path, old: Option<Metadata>) -> io::Result<UnfinishedFile> {
    let mut new = UnfinishedFile::create(path, 0o666)?;
    if let Some(old) = old {
        // The owner first: a change of it takes bits of the mode away.
        let _ = fchown(new.file(), Some(old.uid()), Some(old.gid()));
        new.file().set_permissions(fs::Permissions::from_mode(old.mode() & 0o777))?;
    }
    Ok(new)
}

/// Puts a file of our own, which others have no business with, in place of the one that is there.
pub(crate) fn replace_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut new = UnfinishedFile::create(path, OWNERS_ONLY)?;
    new.file().write_all(bytes)?;
    new.put(path)
}

/// An error with the path, and with the limit where that is the reason.
pub(crate) fn cannot_write(path: &Path, error: io::Error) -> Error {
    let limit = getrlimit(Resource::Fsize).current;
    let limit = limit.filter(|_| error.kind() == ErrorKind::FileTooLarge).map(|bytes| {
        format!("; the limit of a file's size is {bytes} bytes (`ulimit -f unlimited` raises it)")
    });
    anyhow!("cannot write {}: {error}{}", path.display(), limit.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().flatten();
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
    }

    /// As on a file system without files that have no name.
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
