//! Files that the commands read and write, which are checked before anything runs.

use std::fs::{self, FileType};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use anyhow::{Error, Result};
use rustix::fs::{Access, access};

use crate::base::failure::usage;

/// Checks that a file of --output can be written: each run begins it anew.
pub(super) fn check_output_file(path: &Path) -> Result<()> {
    if is_named_pipe(path) {
        return Err(refuse(
            "--output",
            path,
            "it is a FIFO, and runs would wait for its reader (accepted: a file, or pipe)",
        ));
    }
    if path.is_dir() {
        return Err(refuse("--output", path, "it is a folder (accepted: a file in it)"));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    if !folder.is_dir() {
        let hint = format!("there is no folder {0} (mkdir -p {0})", folder.display());
        return Err(refuse("--output", path, &hint));
    }
    let written = if path.exists() {
        access(path, Access::WRITE_OK)
    } else {
        access(folder, Access::WRITE_OK | Access::EXEC_OK)
    };
    written.map_err(|errno| {
        let why = format!("it may not be written to ({errno}; accepted: a file of yours)");
        refuse("--output", path, &why)
    })
}

/// Checks that each of so many runs can read the file of --input from its beginning.
pub(super) fn check_input_file(path: &Path, runs: u32) -> Result<()> {
    if is_named_pipe(path) {
        return Err(refuse(
            "--input",
            path,
            "it is a FIFO, and runs would wait for its writer (accepted: a file: cat FIFO >FILE)",
        ));
    }
    if is_pipe(path) && runs > 1 {
        return Err(refuse(
            "--input",
            path,
            "the first run would read all of a pipe, and the others nothing (accepted: a file, or \
             one command with --runs 1)",
        ));
    }
    Ok(())
}

fn refuse(flag: &str, path: &Path, why: &str) -> Error {
    usage(format!("{flag} {}: {why}", path.display()))
}

fn is_pipe(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| FileType::is_fifo(&file.file_type()))
}

/// Returns whether a path leads to a pipe with a name of its own (fifo(7)). Whoever opens it waits
/// for the other end; not so at a pipe that is an open descriptor, such as /dev/stdin.
fn is_named_pipe(path: &Path) -> bool {
    is_pipe(path) && fs::canonicalize(path).is_ok()
}
