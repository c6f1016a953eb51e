//! Run files: one folder of them, one file a run, written by one process. And the file of the CPUs'
//! full speed.
//!
//! A word names a run in several ways, here with the files of three runs:
//!
//! ```text
//! file                                      --name     named by
//! 20261101T080000000Z-ring-4711.jsonl       before     last~2, 20261101T08
//! 20261101T090000000Z-cost-4822.jsonl                  last~1, 20261101T09
//! 20261102T100000000Z-ring-4933.jsonl       before     last, 20261102, before, bef
//! ```
//!
//! `before` is the newest run of that name; where several are compared, both of them
//! ([`find_all`]). `20261101` alone begins two names: an error lists them.

mod file;
pub(crate) mod speed;

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use analysis::results::PUBLISHED_PREFIX;
use anyhow::{Context, Result, anyhow, bail, ensure};
use directories::ProjectDirs;
use rundata::case::Sample;
use rundata::run::{Header, Run, RunError, RunFileReader, RunResult, StopReason, parse_header_of};
use rustix::fs::{Access, FlockOperation, Mode, OFlags, access, flock};
use serde::Deserialize;

use crate::base::failure::{print_message, usage};
use crate::base::products;
use crate::base::secrets::masked;
use crate::report::output::file::{make_private, refuse_unsafe_store};

pub(crate) use file::RunFile;

/// The folder of stored runs.
pub(crate) struct RunStore {
    pub(crate) path: PathBuf,
}

/// The file of a stored run, which was not read yet.
pub(crate) struct StoredRun {
    /// The name of the file, without its ending.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

impl RunStore {
    /// Returns the user's folder, which need not exist: `$XDG_DATA_HOME/switchcost/runs`, by
    /// default `~/.local/share/switchcost/runs`.
    pub(crate) fn of_user() -> Result<Self> {
        let dirs = ProjectDirs::from("", "", "switchcost").ok_or_else(|| {
            anyhow!("there is no home directory to keep runs in: set HOME or XDG_DATA_HOME")
        })?;
        Ok(Self { path: dirs.data_dir().join("runs") })
    }

    /// Makes the folder, if it is not there, and checks that a run can be stored in it.
    pub(crate) fn make(&self) -> Result<()> {
        let cannot = || format!("no run can be stored in {}", self.path.display());
        make_private(&self.path).with_context(cannot)?;
        refuse_unsafe_store(&self.path).with_context(cannot)?;
        access(&self.path, Access::WRITE_OK | Access::EXEC_OK).with_context(cannot)
    }

    /// Returns all runs, oldest first: a name starts with the time.
    pub(crate) fn entries(&self) -> Result<Vec<StoredRun>> {
        // Whoever can plant a run there chooses what `last` is.
        refuse_unsafe_store(&self.path)
            .with_context(|| format!("no run is read from {}", self.path.display()))?;
        let files = match std::fs::read_dir(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            files => files.with_context(|| cannot_read(&self.path))?,
        };
        let mut entries = Vec::new();
        for file in files.flatten() {
            let path = file.path();
            if path.extension().is_none_or(|end| end != "jsonl") {
                continue;
            }
            // A FIFO would be waited for, a device may have no end, and a link may lead to either.
            if path.symlink_metadata().is_ok_and(|found| found.is_file()) {
                entries.push(StoredRun::at(path));
            } else {
                print_message(&format!("warning: {} is not a file and is ignored", path.display()));
            }
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// Finds the run that a word names which is no path.
    fn find(&self, wanted: &str) -> Result<StoredRun> {
        let mut entries = self.entries()?;
        if let Some(back) = steps_back(wanted) {
            return self.find_last(entries, back);
        }
        if let Some(index) = entries.iter().position(|entry| entry.name == wanted) {
            return Ok(entries.swap_remove(index));
        }
        let mut given_names = Vec::new();
        for entry in &entries {
            given_names.push(entry.given_name());
        }
        if let Some(index) = given_names.iter().rposition(|name| name.as_deref() == Some(wanted)) {
            return Ok(entries.swap_remove(index));
        }
        self.find_beginning(wanted, entries, given_names)
    }

    /// Finds the run so many steps before the newest.
    fn find_last(&self, mut entries: Vec<StoredRun>, back: usize) -> Result<StoredRun> {
        let (folder, count) = (self.path.display(), entries.len());
        match count.checked_sub(back + 1) {
            Some(index) => Ok(entries.swap_remove(index)),
            None if count == 0 => Err(usage(format!("there is no stored run in {folder}"))),
            None if count == 1 => {
                Err(usage(format!("last~{back}: there is only 1 stored run in {folder}")))
            }
            None => Err(usage(format!("last~{back}: there are {count} stored runs in {folder}"))),
        }
    }

    /// Returns all runs of which the file's name, or the name that was given, begins so, oldest
    /// first.
    pub(crate) fn beginning(&self, wanted: &str) -> Result<Vec<StoredRun>> {
        let mut entries = self.entries()?;
        entries.retain(|entry| {
            begins(&entry.name, wanted)
                || entry.given_name().is_some_and(|name| begins(&name, wanted))
        });
        Ok(entries)
    }

    /// Finds the run of which the file's name, or the name that was given, begins so. Of several
    /// runs that were given one name it is the newest.
    fn find_beginning(
        &self,
        wanted: &str,
        entries: Vec<StoredRun>,
        given_names: Vec<Option<String>>,
    ) -> Result<StoredRun> {
        let mut found: Vec<(String, StoredRun)> = Vec::new();
        for (entry, given_name) in entries.into_iter().zip(given_names) {
            let name = match given_name {
                Some(name) if begins(&name, wanted) => name,
                _ if begins(&entry.name, wanted) => entry.name.clone(),
                _ => continue,
            };
            found.retain(|(known, _)| *known != name);
            found.push((name, entry));
        }
        if found.len() > 1 {
            let mut names = Vec::new();
            for (name, _) in found.iter().take(MAX_NAMES) {
                names.push(name.as_str());
            }
            let names = names.join(", ");
            let more = match found.len().saturating_sub(MAX_NAMES) {
                0 => String::new(),
                left => format!(" and {left} more"),
            };
            return Err(usage(format!("'{wanted}' is the start of several names: {names}{more}")));
        }
        if let Some((_, entry)) = found.pop() {
            return Ok(entry);
        }
        let folder = self.path.display();
        Err(usage(format!(
            "no stored run is called '{wanted}' (see `switchcost runs list`; runs are in \
             {folder}; a file's name has a slash or ends in .jsonl)"
        )))
    }
}

/// Finds the run that a word names: `last` or `last~N`, the whole of a name, the start of one that
/// no other shares, or a file. A word is only taken for a file if it has a slash or ends in
/// `.jsonl`: what a folder happens to hold must not stand for a stored run. Without a home only
/// files can be named.
pub(crate) fn find(wanted: &str) -> Result<StoredRun> {
    if wanted.starts_with(PUBLISHED_PREFIX) {
        let why = "published figures are no run (see `switchcost runs list --history`)";
        return Err(usage(format!("{wanted}: {why}")));
    }
    let path = Path::new(wanted);
    if !wanted.contains('/') && path.extension().is_none_or(|end| end != "jsonl") {
        return RunStore::of_user()?.find(wanted);
    }
    if !path.is_file() {
        return Err(usage(format!("no run file is called '{wanted}'")));
    }
    Ok(StoredRun::at(path.to_path_buf()))
}

/// Finds all runs that a word names, oldest first: the whole of a name that was given stands for
/// all that was stored under it, everything else for one run, as in [`find`].
pub(crate) fn find_all(wanted: &str) -> Result<Vec<StoredRun>> {
    let newest = find(wanted)?;
    let Ok(store) = RunStore::of_user() else { return Ok(vec![newest]) };
    let is_stored = newest.path.parent() == Some(store.path.as_path());
    if !is_stored || newest.name == wanted || newest.given_name().as_deref() != Some(wanted) {
        return Ok(vec![newest]);
    }
    let mut entries = store.entries()?;
    entries.retain(|entry| entry.given_name().as_deref() == Some(wanted));
    Ok(entries)
}

fn begins(name: &str, wanted: &str) -> bool {
    !wanted.is_empty() && name.starts_with(wanted)
}

/// Names that are listed where a word begins several.
const MAX_NAMES: usize = 5;

/// Returns how many runs before the newest a word means: 0 for `last`, 2 for `last~2`.
fn steps_back(wanted: &str) -> Option<usize> {
    match wanted.strip_prefix("last")? {
        "" => Some(0),
        back => back.strip_prefix('~')?.parse().ok(),
    }
}

impl StoredRun {
    fn at(path: PathBuf) -> Self {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Self { name, path }
    }

    /// Returns the name that the run was given (`--name`); none where its header cannot be read.
    fn given_name(&self) -> Option<String> {
        let first = first_line(&self.path).ok()?;
        serde_json::from_str::<HeaderLine>(&first).ok()?.header.name
    }

    /// Reads what a list of runs needs: from the first and the last lines alone.
    pub(crate) fn brief(&self) -> Result<RunBrief> {
        let first = first_line(&self.path)?;
        let Ok(HeaderLine { header: mut brief_header }) = serde_json::from_str(&first) else {
            // It says what is wrong with it.
            header(&self.path)?;
            bail!("{}: its first line is no header", self.path.display());
        };
        brief_header.invocation = masked(&brief_header.invocation);
        let mut brief = RunBrief { header: brief_header, end: None, result: None };
        for line in last_lines(&self.path)?.lines() {
            match serde_json::from_str(line) {
                Ok(LastLine::End { reason }) => brief.end = Some(reason),
                Ok(LastLine::Result(result)) => brief.result = Some(result),
                Ok(LastLine::Resumed {}) => {
                    brief.end = None;
                    brief.result = None;
                }
                // A sample, or a line of which the beginning was not read.
                Err(_) => {}
            }
        }
        Ok(brief)
    }

    /// Returns whether another process is writing the file.
    pub(crate) fn is_running(&self) -> bool {
        open(&self.path)
            .is_ok_and(|file| flock(file, FlockOperation::NonBlockingLockShared).is_err())
    }
}

/// Most bytes of a run file that is read.
const MAX_RUN_BYTES: u64 = 256 << 20;
/// Most bytes of a header that is read.
const MAX_HEADER_BYTES: u64 = 16 << 20;

/// Opens a run file to read it. Refuses whatever is no file, without waiting for it, and a file of
/// more than [`MAX_RUN_BYTES`].
fn open(path: &Path) -> Result<File> {
    let how = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, how, Mode::empty())?);
    let found = file.metadata()?;
    ensure!(found.is_file(), "it is not a file");
    let bytes = found.len();
    ensure!(
        bytes <= MAX_RUN_BYTES,
        "it has {} MiB, and a run has at most {} MiB",
        bytes >> 20,
        MAX_RUN_BYTES >> 20
    );
    Ok(file)
}

/// The facts of a run that a list of runs shows.
pub(crate) struct RunBrief {
    pub(crate) header: BriefHeader,
    /// The reason of its end; absent where the run was killed or is still going on.
    pub(crate) end: Option<StopReason>,
    /// The run's main figure in a few words.
    pub(crate) result: Option<RunResult>,
}

/// Fields of a header that a list of runs needs.
#[derive(Deserialize)]
pub(crate) struct BriefHeader {
    pub(crate) started: String,
    pub(crate) invocation: Vec<String>,
    pub(crate) name: Option<String>,
    pub(crate) host: Option<String>,
    pub(crate) plan: BriefPlan,
}

#[derive(Deserialize)]
pub(crate) struct BriefPlan {
    pub(crate) experiment: String,
}

#[derive(Deserialize)]
struct HeaderLine {
    header: BriefHeader,
}

/// A line after the samples.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum LastLine {
    End { reason: StopReason },
    Result(RunResult),
    Resumed {},
}

/// Bytes at the end of a run file in which its end lies.
const END_BYTES: u64 = 4096;

fn last_lines(path: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    let mut file = open(path).with_context(|| cannot_read(path))?;
    let length = file.metadata().with_context(|| cannot_read(path))?.len();
    let start = SeekFrom::Start(length.saturating_sub(END_BYTES));
    file.seek(start).with_context(|| cannot_read(path))?;
    file.take(END_BYTES).read_to_end(&mut bytes).with_context(|| cannot_read(path))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Names the file or the folder whose reading failed; the cause stands behind it.
fn cannot_read(path: &Path) -> String {
    format!("cannot read {}", path.display())
}

/// Reads the first line that is not blank.
fn first_line(path: &Path) -> Result<String> {
    let mut first = Vec::new();
    let file = open(path).with_context(|| cannot_read(path))?.take(MAX_HEADER_BYTES);
    let mut file = BufReader::new(file);
    while first.trim_ascii().is_empty()
        && file.read_until(b'\n', &mut first).with_context(|| cannot_read(path))? > 0
    {}
    Ok(String::from_utf8_lossy(&first).into_owned())
}

/// Reads a run file of an experiment that this build has.
pub(crate) fn read(path: &Path) -> Result<Run> {
    let mut samples = Vec::new();
    let run = read_each(path, |sample| {
        samples.push(sample);
        Ok(())
    })?;
    check_is_built(path, &run.header)?;
    Ok(run.with_samples(samples))
}

/// Checks that this build can show a run.
fn check_is_built(path: &Path, header: &Header) -> Result<()> {
    products::check_experiment(header.plan.experiment).with_context(|| cannot_read(path))
}

/// Reads a run file of any experiment and hands on each sample as it comes: the run that is returned
/// has none.
pub(crate) fn read_each(path: &Path, mut take: impl FnMut(Sample) -> Result<()>) -> Result<Run> {
    let not_a_run = |error: RunError| anyhow!("{} {error}", path.display());
    let file = open(path).with_context(|| cannot_read(path))?.take(MAX_RUN_BYTES);
    let mut file = BufReader::with_capacity(READ_BYTES, file);
    let (mut reader, mut bytes) = (RunFileReader::default(), Vec::new());
    while file.read_until(b'\n', &mut bytes).with_context(|| cannot_read(path))? > 0 {
        for line in decode(&bytes).lines() {
            if let Some(sample) = reader.line(line).map_err(not_a_run)? {
                take(sample)?;
            }
        }
        bytes.clear();
    }
    let mut run = reader.finish().map_err(not_a_run)?;
    // Older programs have stored command lines as they were.
    run.header.invocation = masked(&run.header.invocation);
    if let Some(session) = &mut run.header.session {
        session.prefix = masked(&session.prefix);
    }
    Ok(run)
}

/// Decodes a line. One that was cut off within a character is one line that cannot be read, not a
/// file.
fn decode(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

/// Bytes of a run file that are read at once.
const READ_BYTES: usize = 1 << 16;

/// Reads the header alone of a run file of an experiment that this build has.
pub(crate) fn header(path: &Path) -> Result<Header> {
    let first = first_line(path)?;
    let header = parse_header_of(&first).map_err(|error| anyhow!("{} {error}", path.display()))?;
    check_is_built(path, &header)?;
    Ok(header)
}
