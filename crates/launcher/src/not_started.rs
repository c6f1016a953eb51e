//! A command that could not be started: one line that says what to do, and the exit code of a shell.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// A command could not be started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotStarted {
    /// The system call that failed.
    pub step: String,
    /// Its errno.
    pub errno: i32,
}

impl NotStarted {
    pub(crate) fn at(step: &str, errno: Errno) -> Self {
        Self { step: step.to_owned(), errno: errno.raw_os_error() }
    }

    /// A line for the command `words`, and the exit code: 127 where the command is not there, 126 where
    /// it cannot be run (env(1)), 1 where nothing could be.
    pub fn explain(&self, words: &[OsString]) -> (String, u8) {
        let name = words.first().map(OsString::as_os_str).unwrap_or_default();
        let errno = Errno::from_raw_os_error(self.errno);
        let (step, shown) = (&self.step, name.display());
        if step != "execve" {
            return (format!("cannot run '{shown}': {step}: {errno}{}", limit(errno)), 1);
        }
        let found = found(name);
        let (why, code) = match (errno, &found) {
            (_, Some(path)) if path.is_dir() => ("it is a directory", 126),
            (Errno::NOENT, Some(_)) => {
                ("its interpreter (after #!, or the dynamic loader) was not found", 126)
            }
            (Errno::NOENT, None) if name.is_empty() => ("an empty name", 127),
            (Errno::NOENT, None) if name.as_bytes().contains(&b'/') => ("no such file", 127),
            (Errno::NOENT, None) => ("command not found in PATH", 127),
            (Errno::ACCESS, Some(_)) => {
                ("it may not be executed (chmod +x, or a noexec mount)", 126)
            }
            (Errno::NOEXEC, _) => ("not a program for this machine", 126),
            (Errno::TOOBIG, _) => ("arguments and environment are too long (getconf ARG_MAX)", 126),
            _ => ("", 126),
        };
        let why = if why.is_empty() { errno.to_string() } else { format!("{why} ({errno})") };
        (format!("cannot run '{shown}': {why}"), code)
    }
}

/// What ran out, where a call says so, to be put behind its errno.
pub(crate) fn limit(errno: Errno) -> &'static str {
    match errno {
        Errno::AGAIN => {
            ": no more processes are allowed (ulimit -u, pids.max of the control group)"
        }
        Errno::NOMEM => ": out of memory",
        Errno::MFILE | Errno::NFILE => ": no more descriptors are allowed (ulimit -n)",
        _ => "",
    }
}

/// The file that was meant, if there is any.
fn found(name: &OsStr) -> Option<PathBuf> {
    if name.is_empty() {
        return None;
    }
    if name.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(name)).filter(|path| path.exists());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| Path::new(&folder).join(name))
        .find(|path| path.exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ran_out_has_its_limit_named() {
        for (step, errno, limit) in [
            ("clone", Errno::AGAIN, "ulimit -u"),
            ("clone", Errno::NOMEM, "out of memory"),
            ("mmap", Errno::NOMEM, "out of memory"),
            ("clone", Errno::MFILE, "ulimit -n"),
        ] {
            let (line, code) = NotStarted::at(step, errno).explain(&["x".into()]);
            assert!(line.starts_with(&format!("cannot run 'x': {step}: ")), "{line}");
            assert!(line.contains(limit), "{line}");
            assert_eq!(code, 1);
        }
    }
}
