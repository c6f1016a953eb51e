//! The folder of one process in /proc, held open: after its end the files of no other process with the
//! same id are read or written.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Dir, Mode, OFlags, open, openat};
use rustix::io::Errno;

use super::WatchError;
use crate::procfs::{self, Stat};

#[derive(Clone, Debug)]
pub(super) struct Folder {
    open: Arc<OwnedFd>,
    shown: String,
}

impl Folder {
    pub(super) fn open(root: &Path, pid: i32) -> Result<Self, WatchError> {
        let shown = format!("/proc/{pid}");
        let how = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match open(root.join(format!("proc/{pid}")), how, Mode::empty()) {
            Ok(folder) => Ok(Self { open: Arc::new(folder), shown }),
            Err(Errno::NOENT | Errno::SRCH) => Err(WatchError::Gone),
            Err(errno) => Err(WatchError::Refused { path: shown, error: errno.into() }),
        }
    }

    fn file(&self, name: &str, how: OFlags) -> Result<OwnedFd, WatchError> {
        openat(&self.open, name, how | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| self.refused(name, errno.into()))
    }

    pub(super) fn text(&self, name: &str) -> Result<String, WatchError> {
        let mut bytes = Vec::new();
        let read = File::from(self.file(name, OFlags::RDONLY)?).read_to_end(&mut bytes);
        read.map_err(|error| self.refused(name, error))?;
        // A name may be any bytes.
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Writes to a file that is there.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), WatchError> {
        let mut file = File::from(self.file(name, OFlags::WRONLY)?);
        file.write_all(text.as_bytes()).map_err(|error| self.refused(name, error))
    }

    /// The entries of a folder in it that are numbers.
    pub(super) fn numbers_in(&self, name: &str) -> Result<Vec<i32>, WatchError> {
        let folder = self.file(name, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut numbers = Vec::new();
        for entry in Dir::new(folder).map_err(|errno| self.refused(name, errno.into()))? {
            let entry = entry.map_err(|errno| self.refused(name, errno.into()))?;
            numbers
                .extend(entry.file_name().to_str().ok().and_then(|name| name.parse::<i32>().ok()));
        }
        Ok(numbers)
    }

    fn refused(&self, name: &str, error: io::Error) -> WatchError {
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            // ESRCH: it ended while its file was open.
            Some(Errno::NOENT | Errno::SRCH) => WatchError::Gone,
            _ => WatchError::Refused { path: self.path(name), error },
        }
    }

    pub(super) fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.shown)
    }

    pub(super) fn no_item(&self, name: &str, item: &'static str) -> WatchError {
        WatchError::Item { path: self.path(name), item }
    }

    pub(super) fn value<'a>(
        &self,
        text: &'a str,
        name: &str,
        item: &'static str,
    ) -> Result<&'a str, WatchError> {
        procfs::value(text, item).ok_or_else(|| self.no_item(name, item))
    }

    pub(super) fn number<T: std::str::FromStr>(
        &self,
        text: &str,
        name: &str,
        item: &'static str,
    ) -> Result<T, WatchError> {
        self.value(text, name, item)?.parse().map_err(|_| self.no_item(name, item))
    }

    pub(super) fn kilobytes(
        &self,
        text: &str,
        name: &str,
        item: &'static str,
    ) -> Result<u64, WatchError> {
        let bytes = procfs::kilobytes(self.value(text, name, item)?);
        bytes.ok_or_else(|| self.no_item(name, item))
    }

    /// Field of a `stat` file, numbered as in proc_pid_stat(5).
    pub(super) fn field(
        &self,
        stat: &str,
        number: usize,
        item: &'static str,
    ) -> Result<u64, WatchError> {
        let field = Stat::parse(stat).and_then(|stat| stat.number(number));
        field.ok_or_else(|| self.no_item("stat", item))
    }
}
