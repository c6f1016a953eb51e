//! Run files: one folder of them, one file a run, written by one process. And the file of the CPUs'
//! full speed.

mod file;
pub(crate) mod speed;

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use analysis::results::PUBLISHED_PREFIX;
use anyhow::{Context, Result, anyhow, bail, ensure};
use directories::ProjectDirs;
use rundata::case::Sample;
use rundata::run::{Header, Run, RunError, RunFileReader, StopReason, parse_header_of};
use rustix::fs::{Access, FlockOperation, Mode, OFlags, access, flock};
use serde::Deserialize;

use crate::base::failure::{say, usage};
use crate::base::products;
use crate::base::secrets::masked;
use crate::report::output::file::{make_private, refuse_others_store};

pub(crate) use file::RunFile;

/// The folder of stored runs.
pub(crate) struct RunStore {
    /// Where it is.
    pub(crate) path: PathBuf,
}

/// A stored run.
pub(crate) struct StoredRun {
    /// Its name.
    pub(crate) name: String,
    /// Its file.
    pub(crate) path: PathBuf,
}

impl RunStore {
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
        make_private(&self.path).with_context(cannot)?;
        refuse_others_store(&self.path).with_context(cannot)?;
        access(&self.path, Access::WRITE_OK | Access::EXEC_OK).with_context(cannot)
    }

    /// All runs, oldest first: a name starts with the time.
    pub(crate) fn entries(&self) -> Result<Vec<StoredRun>> {
        // Whoever can plant a run there chooses what `last` is.
        refuse_others_store(&self.path)
            .with_context(|| format!("no run is read from {}", self.path.display()))?;
        let files = match std::fs::read_dir(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            files => files.with_context(|| format!("cannot read {}", self.path.display()))?,
        };
        let paths = files.flatten().map(|file| file.path());
        let runs = paths.filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
        // A FIFO would be waited for, a device may have no end, and a link may lead to either.
        let is_file = |path: &PathBuf| path.symlink_metadata().is_ok_and(|found| found.is_file());
        let (runs, others): (Vec<PathBuf>, Vec<PathBuf>) = runs.partition(is_file);
        for other in others {
            say(&format!("warning: {} is not a file and is ignored", other.display()));
        }
        let mut entries: Vec<StoredRun> = runs.into_iter().map(StoredRun::of).collect();
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn named(&self, wanted: &str) -> Result<StoredRun> {
        let mut entries = self.entries()?;
        if let Some(back) = steps_back(wanted) {
            return self.newest(entries, back);
        }
        if let Some(index) = entries.iter().position(|entry| entry.name == wanted) {
            return Ok(entries.swap_remove(index));
        }
        let given: Vec<Option<String>> = entries.iter().map(StoredRun::given_name).collect();
        let is_given = |name: &Option<String>| name.as_deref() == Some(wanted);
        if let Some(index) = given.iter().rposition(is_given) {
            return Ok(entries.swap_remove(index));
        }
        self.begun(wanted, entries, &given)
    }

    fn newest(&self, mut entries: Vec<StoredRun>, back: usize) -> Result<StoredRun> {
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

    /// All runs whose name begins so, its own or the one that it was given, oldest first.
    pub(crate) fn beginning(&self, wanted: &str) -> Result<Vec<StoredRun>> {
        let mut all = self.entries()?;
        let is_meant = |name: &str| begins(name, wanted);
        all.retain(|entry| {
            is_meant(&entry.name) || entry.given_name().is_some_and(|of| is_meant(&of))
        });
        Ok(all)
    }

    /// The run whose name begins so, its own or the one that it was given. Of several runs that
    /// were given one name the newest is meant.
    fn begun(
        &self,
        wanted: &str,
        entries: Vec<StoredRun>,
        given: &[Option<String>],
    ) -> Result<StoredRun> {
        let mut found: Vec<(String, StoredRun)> = Vec::new();
        for (entry, given) in entries.into_iter().zip(given) {
            let names = [given.as_ref(), Some(&entry.name)].into_iter().flatten();
            let meant = names.into_iter().find(|name| begins(name, wanted)).cloned();
            let Some(name) = meant else { continue };
            found.retain(|(known, _)| *known != name);
            found.push((name, entry));
        }
        if found.len() > 1 {
            let names = found.iter().map(|(name, _)| &**name).take(MOST_NAMES);
            let names = names.collect::<Vec<&str>>().join(", ");
            let more = match found.len().saturating_sub(MOST_NAMES) {
                0 => String::new(),
                left => format!(" and {left} more"),
            };
            return Err(usage(format!("'{wanted}' is the start of several names: {names}{more}")));
        }
        found.pop().map(|(_, entry)| entry).ok_or_else(|| {
            let folder = self.path.display();
            usage(format!(
                "no stored run is called '{wanted}' (see `switchcost runs list`; runs are in \
                 {folder}; a file's name has a slash or ends in .jsonl)"
            ))
        })
    }
}

/// The run that is meant: `last` or `last~N`, the whole of a name, the start of one that no other
/// shares, or a file. A word is only taken for a file if it has a slash or ends in `.jsonl`: what a
/// folder happens to hold must not stand for a stored run. Without a home only files can be meant.
pub(crate) fn find(wanted: &str) -> Result<StoredRun> {
    if wanted.starts_with(PUBLISHED_PREFIX) {
        let why = "published figures are no run (see `switchcost runs list --history`)";
        return Err(usage(format!("{wanted}: {why}")));
    }
    let path = Path::new(wanted);
    if wanted.contains('/') || path.extension().is_some_and(|end| end == "jsonl") {
        return match path.is_file() {
            true => Ok(StoredRun::of(path.to_path_buf())),
            false => Err(usage(format!("no run file is called '{wanted}'"))),
        };
    }
    RunStore::of_user()?.named(wanted)
}

/// All runs that are meant, oldest first: the whole of a name that was given stands for all that was
/// stored under it, everything else for one run, as in [`find`].
pub(crate) fn find_all(wanted: &str) -> Result<Vec<StoredRun>> {
    let newest = find(wanted)?;
    let Ok(folder) = RunStore::of_user() else { return Ok(vec![newest]) };
    let given = newest.given_name().filter(|given| {
        let is_stored = newest.path.parent() == Some(folder.path.as_path());
        is_stored && given == wanted && newest.name != wanted
    });
    let Some(given) = given else { return Ok(vec![newest]) };
    let mut all = folder.entries()?;
    all.retain(|entry| entry.given_name().as_ref() == Some(&given));
    Ok(all)
}

fn begins(name: &str, wanted: &str) -> bool {
    !wanted.is_empty() && name.starts_with(wanted)
}

/// Names that an ambiguous one is told to stand for.
const MOST_NAMES: usize = 5;

/// How many runs before the newest: 0 for `last`, 2 for `last~2`.
fn steps_back(wanted: &str) -> Option<usize> {
    match wanted.strip_prefix("last")? {
        "" => Some(0),
        back => back.strip_prefix('~')?.parse().ok(),
    }
}

impl StoredRun {
    fn of(path: PathBuf) -> Self {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Self { name, path }
    }

    /// The name that it was given; none where its header cannot be read.
    fn given_name(&self) -> Option<String> {
        let first = first_line(&self.path).ok()?;
        serde_json::from_str::<HeaderLine>(&first).ok()?.header.name
    }

    /// What a list of runs has of it: from the first and the last lines alone.
    pub(crate) fn brief(&self) -> Result<RunBrief> {
        let first = first_line(&self.path)?;
        let Ok(HeaderLine { header: mut begun }) = serde_json::from_str(&first) else {
            // It says what is wrong with it.
            header(&self.path)?;
            bail!("{}: its first line is no header", self.path.display());
        };
        begun.invocation = masked(&begun.invocation);
        let mut brief = RunBrief { header: begun, end: None, result: None };
        for line in last_lines(&self.path)?.lines() {
            match serde_json::from_str(line) {
                Ok(LastLine::End { reason }) => brief.end = Some(reason),
                Ok(LastLine::Result(result)) => brief.result = Some(result),
                Ok(LastLine::Resumed {}) => (brief.end, brief.result) = (None, None),
                // A sample, or a line of which the beginning was not read.
                Err(_) => {}
            }
        }
        Ok(brief)
    }

    /// Whether another process is writing it.
    pub(crate) fn is_running(&self) -> bool {
        open(&self.path)
            .is_ok_and(|file| flock(file, FlockOperation::NonBlockingLockShared).is_err())
    }
}

/// Most bytes of a run file that is read, and of its header.
const MOST_BYTES: u64 = 256 << 20;
const MOST_HEADER_BYTES: u64 = 16 << 20;

/// Opens a run file to read it. Refuses whatever is no file, without waiting for it, and a file of
/// more than [`MOST_BYTES`].
fn open(path: &Path) -> Result<File> {
    let how = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, how, Mode::empty())?);
    let found = file.metadata()?;
    ensure!(found.is_file(), "it is not a file");
    let bytes = found.len();
    ensure!(
        bytes <= MOST_BYTES,
        "it has {} MiB, and a run has at most {} MiB",
        bytes >> 20,
        MOST_BYTES >> 20
    );
    Ok(file)
}

/// What a list of runs has of one.
pub(crate) struct RunBrief {
    pub(crate) header: BriefHeader,
    /// Why it ended; none of one that was killed or is still going on.
    pub(crate) end: Option<StopReason>,
    /// What it says in a few words.
    pub(crate) result: Option<String>,
}

/// What a list needs of a header.
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
    Result(String),
    Resumed {},
}

/// Bytes at the end of a run file in which its end lies.
const END_BYTES: u64 = 4096;

fn last_lines(path: &Path) -> Result<String> {
    let cannot = || format!("cannot read {}", path.display());
    let mut bytes = Vec::new();
    let mut file = open(path).with_context(cannot)?;
    let length = file.metadata().with_context(cannot)?.len();
    let start = SeekFrom::Start(length.saturating_sub(END_BYTES));
    file.seek(start).with_context(cannot)?;
    file.take(END_BYTES).read_to_end(&mut bytes).with_context(cannot)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn first_line(path: &Path) -> Result<String> {
    let cannot = || format!("cannot read {}", path.display());
    let mut first = Vec::new();
    let mut file = BufReader::new(open(path).with_context(cannot)?.take(MOST_HEADER_BYTES));
    while first.trim_ascii().is_empty()
        && file.read_until(b'\n', &mut first).with_context(cannot)? > 0
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
    Ok(Run { samples, ..run })
}

/// Checks that this build can show a run.
fn check_is_built(path: &Path, header: &Header) -> Result<()> {
    products::check_experiment(header.plan.experiment)
        .with_context(|| format!("cannot read {}", path.display()))
}

/// Reads a run file of any experiment and hands on each sample as it comes: the run that is returned
/// has none.
pub(crate) fn read_each(path: &Path, mut take: impl FnMut(Sample) -> Result<()>) -> Result<Run> {
    let cannot = || format!("cannot read {}", path.display());
    let not_a_run = |error: RunError| anyhow!("{} {error}", path.display());
    let file = open(path).with_context(cannot)?.take(MOST_BYTES);
    let mut file = BufReader::with_capacity(READ_BYTES, file);
    let (mut reader, mut line) = (RunFileReader::default(), Vec::new());
    while file.read_until(b'\n', &mut line).with_context(cannot)? > 0 {
        // A line cut off within a character is one line that cannot be read, not a file.
        let text = std::str::from_utf8(&line).map(Cow::Borrowed);
        for line in text.unwrap_or_else(|_| String::from_utf8_lossy(&line)).lines() {
            reader.line(line).map_err(not_a_run)?.map_or(Ok(()), &mut take)?;
        }
        line.clear();
    }
    let mut run = reader.finish().map_err(not_a_run)?;
    // Older programs have stored command lines as they were.
    run.header.invocation = masked(&run.header.invocation);
    if let Some(session) = &mut run.header.session {
        session.prefix = masked(&session.prefix);
    }
    Ok(run)
}

/// Bytes that are read of a run file at once.
const READ_BYTES: usize = 1 << 16;

/// Reads the header alone of a run file of an experiment that this build has.
pub(crate) fn header(path: &Path) -> Result<Header> {
    let first = first_line(path)?;
    let header = parse_header_of(&first).map_err(|error| anyhow!("{} {error}", path.display()))?;
    check_is_built(path, &header)?;
    Ok(header)
}
