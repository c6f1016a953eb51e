//! Run files: one folder of them, one file a run, written by one process. And the file of the CPUs' full speed.

mod file;
pub(crate) mod speed;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use directories::ProjectDirs;
use model::run::{Header, Run, header_of};
use model::subject::PREFIX;
use rustix::fs::{Access, access};

use crate::failure::usage;
use speed::by_known_speed;

pub(crate) use file::RunFile;

/// The folder of stored runs.
pub(crate) struct Folder {
    /// Where it is.
    pub(crate) path: PathBuf,
}

/// A stored run.
pub(crate) struct Entry {
    /// Its name.
    pub(crate) name: String,
    /// Its file.
    pub(crate) path: PathBuf,
}

impl Folder {
    /// `$XDG_DATA_HOME/switchcost/runs`, by default `~/.local/share/switchcost/runs`. The folder
    /// need not exist.
    pub(crate) fn of_user() -> Result<Self> {
        let dirs = ProjectDirs::from("", "", "switchcost").ok_or_else(|| {
            anyhow!("there is no home directory to keep runs in: set HOME or XDG_DATA_HOME")
        })?;
        Ok(Self { path: dirs.data_dir().join("runs") })
    }

    /// Makes it, if it is not there, and looks whether a run can be stored in it.
    pub(crate) fn make(&self) -> Result<()> {
        let cannot = || format!("no run can be stored in {}", self.path.display());
        std::fs::create_dir_all(&self.path).with_context(cannot)?;
        access(&self.path, Access::WRITE_OK | Access::EXEC_OK).with_context(cannot)
    }

    /// All runs, oldest first: a name starts with the time.
    pub(crate) fn entries(&self) -> Result<Vec<Entry>> {
        let files = match std::fs::read_dir(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            files => files.with_context(|| format!("cannot read {}", self.path.display()))?,
        };
        let paths = files.flatten().map(|file| file.path());
        let runs = paths.filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
        let mut entries: Vec<Entry> = runs.map(Entry::of).collect();
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// The run meant by a name, the start of one that no other shares, `last`, or a file.
    pub(crate) fn find(&self, wanted: &str) -> Result<Entry> {
        if Path::new(wanted).is_file() {
            return Ok(Entry::of(PathBuf::from(wanted)));
        }
        let mut entries = self.entries()?;
        let folder = self.path.display();
        if wanted == "last" {
            return entries.pop().ok_or_else(|| anyhow!("there is no stored run in {folder}"));
        }
        if let Some(index) = entries.iter().position(|entry| entry.name == wanted) {
            return Ok(entries.swap_remove(index));
        }
        if wanted.starts_with(PREFIX) {
            bail!("{wanted}: published figures are no run (see `switchcost history`)");
        }
        entries.retain(|entry| !wanted.is_empty() && entry.name.starts_with(wanted));
        if entries.len() > 1 {
            let names: Vec<&str> = entries.iter().map(|entry| &*entry.name).collect();
            let names = names.join(", ");
            return Err(usage(format!("'{wanted}' is the start of several names: {names}")));
        }
        entries.pop().ok_or_else(|| {
            anyhow!(
                "no stored run and no file is called '{wanted}' (see `switchcost runs list`; runs are in {folder})"
            )
        })
    }
}

impl Entry {
    fn of(path: PathBuf) -> Self {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Self { name, path }
    }

    /// Whether another process is writing it.
    pub(crate) fn is_running(&self) -> bool {
        File::open(&self.path).is_ok_and(|file| file.try_lock_shared().is_err())
    }
}

/// Reads a run file.
pub(crate) fn read(path: &Path) -> Result<Run> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    // A line cut off within a character is one line that cannot be read, not a file.
    let run = Run::parse(&String::from_utf8_lossy(&bytes));
    let run = run.map_err(|error| anyhow!("{} {error}", path.display()))?;
    Ok(by_known_speed(run))
}

/// Reads the header alone of a run file.
pub(crate) fn header(path: &Path) -> Result<Header> {
    let cannot = || format!("cannot read {}", path.display());
    let mut first = Vec::new();
    let file = File::open(path).with_context(cannot)?;
    BufReader::new(file).read_until(b'\n', &mut first).with_context(cannot)?;
    header_of(&String::from_utf8_lossy(&first))
        .map_err(|error| anyhow!("{} {error}", path.display()))
}
