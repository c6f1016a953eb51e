//! A run file: a header, a line per sample as it arrives, an end line.
//!
//! ```text
//! {"header": {"run": "20260101T120000000Z-ring-4711", "plan": ...}}
//! {"sample": {"case": 2, "round": 0, ...}}       handed to the kernel at once
//! {"sample": {"case": 0, "round": 0, ...}}
//! {"failure": {"case": 1, "round": 3, ...}}
//! {"end": {"reason": "precise", ...}}            none if the program was killed
//! {"result": {"text": "640 ns a switch (2)", "is_rough": false}}
//! ```

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rundata::experiment::Experiment;
use rundata::run::{Header, Run, RunFileLine};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::report::output::file::{
    OWNERS_ONLY, UnfinishedFile, cannot_write, make_private, refuse_unsafe_store,
};

/// A run file that is being written. While it is open it is locked, so that no process resumes or
/// removes a run that is going on; the kernel takes the lock back with the process.
pub(crate) struct RunFile {
    pub(crate) path: PathBuf,
    file: File,
    experiment: Experiment,
}

impl RunFile {
    /// Makes the file of a new run, with its header. It gets its name once the header is in it: a
    /// program killed at any moment leaves a run file or none, never an empty one.
    pub(crate) fn create(folder: &Path, header: &Header) -> Result<Self> {
        make_private(folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        refuse_unsafe_store(folder)
            .with_context(|| format!("no run can be stored in {}", folder.display()))?;
        let path = folder.join(format!("{}.jsonl", header.run));
        let experiment = header.plan.experiment;
        let text = line_text(&RunFileLine::Header(Box::new(header.clone())), experiment)?;
        let mut new = UnfinishedFile::create(&path, OWNERS_ONLY)
            .map_err(|error| cannot_write(&path, error))?;
        lock(&path, new.file())?;
        let written = new.file().write_all(text.as_bytes());
        let synced = written.and_then(|()| new.file().sync_data());
        let named = synced.and_then(|()| new.finish(&path));
        let file = named.map_err(|error| cannot_write(&path, error))?;
        Ok(Self { path, file, experiment })
    }

    /// Opens the file of an earlier run to add to it, and reads it. A last line that was cut off is
    /// taken away, as the next one must start on a line of its own; but only in a file that is a
    /// run of ours.
    pub(crate) fn reopen(path: &Path) -> Result<(Self, Run)> {
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .open(path)
            .with_context(|| format!("cannot open {} for writing", path.display()))?;
        lock(path, &file)?;
        let earlier = super::read(path)?;
        let experiment = earlier.header.plan.experiment;
        let mut run = Self { path: path.to_path_buf(), file, experiment };
        run.cut_broken_tail()?;
        Ok((run, earlier))
    }

    fn cut_broken_tail(&mut self) -> Result<()> {
        let mut text = Vec::new();
        let path = self.path.display().to_string();
        self.file.seek(SeekFrom::Start(0)).with_context(|| format!("cannot read {path}"))?;
        self.file.read_to_end(&mut text).with_context(|| format!("cannot read {path}"))?;
        let end = match text.iter().rposition(|byte| *byte == b'\n') {
            Some(last) => last + 1,
            None => 0,
        };
        let mended = match &text[end..] {
            [] => Ok(()),
            // Only its end of line is missing.
            tail if self.is_line(tail) => self.file.write_all(b"\n"),
            _ => self.file.set_len(end as u64),
        };
        mended.with_context(|| format!("cannot mend {path}"))
    }

    fn is_line(&self, text: &[u8]) -> bool {
        let Ok(text) = std::str::from_utf8(text) else { return false };
        RunFileLine::from_text(text, self.experiment).is_ok()
    }

    /// Hands a line to the kernel: from then on it outlives this process.
    pub(crate) fn write(&mut self, line: &RunFileLine) -> Result<()> {
        let text = line_text(line, self.experiment)?;
        self.file.write_all(text.as_bytes()).map_err(|error| cannot_write(&self.path, error))
    }

    /// Hands all lines to the disk: from then on they outlive the machine. Asked for between
    /// workers only, as the disk's interrupts would end up in the samples.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.file.sync_data().map_err(|error| cannot_write(&self.path, error))
    }
}

/// Locks a run file.
///
/// # Errors
/// Fails where another process holds the lock. A file system without locks is no reason not to keep
/// a run.
fn lock(path: &Path, file: &File) -> Result<()> {
    if flock(file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
        bail!("{} is being written by another switchcost", path.display());
    }
    Ok(())
}

fn line_text(line: &RunFileLine, experiment: Experiment) -> Result<String> {
    let text = line.to_text(experiment).context("cannot write a line as JSON")?;
    Ok(text + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_last_line_is_kept_if_it_lacks_only_its_end_of_line() {
        let stored = include_str!("../../../tests/fixtures/ring.jsonl");
        let lines = |count| stored.split_inclusive('\n').take(count).collect::<String>();
        // A header and two samples.
        let (whole, one_less) = (lines(3), lines(2));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.jsonl");
        let reopened = |text: &str| {
            std::fs::write(&path, text).unwrap();
            let (_, run) = RunFile::reopen(&path).unwrap();
            (std::fs::read_to_string(&path).unwrap(), run.samples.len())
        };
        assert_eq!(reopened(&whole), (whole.clone(), 2));
        assert_eq!(reopened(&whole[..whole.len() - 1]), (whole.clone(), 2));
        assert_eq!(reopened(&whole[..whole.len() - 2]), (one_less, 1));
    }
}
