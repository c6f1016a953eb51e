//! Where the counters go at each update, for as long as somebody reads them.
//!
//! A file is written under one fixed name beside it, which no collector reads, and then moved over the
//! old one. What a killed program leaves there is replaced by the next update. Nothing is synced: after a
//! crash of the machine counters begin anew anyway, and a look must not wait for a disk.

use std::fs::{self, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};

use crate::base::failure::print_message;
use crate::base::values::Destination;
use crate::report::output::file::{WriteTarget, folder_of};
use crate::report::output::print_or_broken_pipe;

/// Updates in a row that could not be written after which it is given up.
const MAX_FAILURES: u32 = 5;
/// Mode of a new file: node_exporter is another user.
const READABLE: u32 = 0o644;

/// The destination of the counters.
pub(super) struct CounterSink<'a> {
    to: &'a Destination,
    /// Updates in a row that could not be written.
    failures: u32,
}

impl<'a> CounterSink<'a> {
    pub(super) fn new(to: &'a Destination) -> Self {
        Self { to, failures: 0 }
    }

    /// Writes an update; returns whether somebody may read the next one. One that cannot be written, as
    /// the disk is full, is said and left out.
    ///
    /// # Errors
    /// Several updates in a row could not be written.
    pub(super) fn put(&mut self, text: &str) -> Result<bool> {
        let written = match self.to {
            Destination::Stdout => print_or_broken_pipe(text.as_bytes()),
            Destination::File(path) => write(path, text.as_bytes()),
        };
        let error = match written {
            Ok(()) => {
                self.failures = 0;
                return Ok(true);
            }
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(false),
            Err(error) => error,
        };
        self.failures += 1;
        let message = format!("cannot write --openmetrics {}: {error}", self.to);
        if self.failures >= MAX_FAILURES {
            return Err(anyhow!("{message}, {MAX_FAILURES} times in a row"));
        }
        print_message(&format!("warning: {message}; the next update is tried again"));
        Ok(true)
    }
}

/// Writes to a path: over a file in one step, to a device or FIFO as it is.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match WriteTarget::from_path(path).map_err(io::Error::other)? {
        WriteTarget::Stream => OpenOptions::new().append(true).open(path)?.write_all(bytes),
        WriteTarget::File(old) => replace(path, old, bytes),
    }
}

/// Writes a file in place of the old one, whose owner and mode it gets as far as that is permitted.
fn replace(path: &Path, old: Option<Metadata>, bytes: &[u8]) -> io::Result<()> {
    let unfinished = unfinished_path(path)?;
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // It is new, so that it is no link that somebody else has put there.
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(READABLE).open(&unfinished)?;
    let mut mode = READABLE;
    if let Some(old) = old {
        // The owner first: a change of it takes bits of the mode away.
        let _ = fchown(&file, Some(old.uid()), Some(old.gid()));
        mode = old.mode() & 0o777;
    }
    // Whatever the mask is (umask(2)).
    file.set_permissions(Permissions::from_mode(mode))?;
    let written = file.write_all(bytes).and_then(|()| fs::rename(&unfinished, path));
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    written
}

/// Returns the name of a file that is not complete: `.switchcost-top` for `top.prom`, which the textfile
/// collector does not read.
fn unfinished_path(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(ErrorKind::InvalidInput)?.to_string_lossy();
    let name = name.strip_suffix(".prom").unwrap_or(&name);
    Ok(folder_of(path).join(format!(".switchcost-{name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().flatten();
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn what_a_killed_program_left_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("top.prom");
        fs::write(folder.path().join(".switchcost-top"), "half").unwrap();
        replace(&path, None, b"whole").unwrap();
        assert_eq!(names(folder.path()), ["top.prom"]);
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o644);
        // A link that somebody else has put there is not followed.
        let victim = folder.path().join("victim");
        fs::write(&victim, "old").unwrap();
        std::os::unix::fs::symlink(&victim, folder.path().join(".switchcost-top")).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        replace(&path, path.metadata().ok(), b"new").unwrap();
        assert_eq!(
            (fs::read(&victim).unwrap(), fs::read(&path).unwrap()),
            (b"old".to_vec(), b"new".to_vec())
        );
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o640);
    }

    /// /dev/full is a disk without room.
    #[test]
    fn an_update_that_cannot_be_written_is_tried_again_some_times() {
        let full = Destination::File("/dev/full".into());
        let mut sink = CounterSink::new(&full);
        for _ in 1..MAX_FAILURES {
            assert!(sink.put("text").unwrap());
        }
        let error = sink.put("text").unwrap_err().to_string();
        assert!(error.contains("/dev/full") && error.contains("5 times"), "{error}");
        // One that succeeds in between begins a new row.
        let folder = tempfile::tempdir().unwrap();
        let file = Destination::File(folder.path().join("file"));
        let mut sink = CounterSink { to: &file, failures: MAX_FAILURES - 1 };
        assert!(sink.put("text").unwrap());
        assert_eq!(sink.failures, 0);
    }
}
