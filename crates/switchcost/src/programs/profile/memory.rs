//! The preloaded library and the memory that it counts in.
//!
//! The command finds both by their paths in a folder of this run that only its user may enter
//! (mode 0700), and that goes with this program. What the command leaves behind still has these
//! paths in its environment, and may have more rights than others: so no path leads to what
//! somebody else could put in its place, as one below /proc/PID would once the process id is
//! another's. The counts are a file in memory behind a link; the library takes no other file for
//! it (crates/preload/src/interpose/shared.rs).

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::Write;
use std::mem::offset_of;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process;

use anyhow::{Context, Result, anyhow, ensure};
use directories::ProjectDirs;
use preload::bins::{BUCKETS, bucket_bounds};
use preload::layout::{
    CELLS_PER_SLOT, CallCell, CellKind, ENVIRONMENT_VARIABLE, MAGIC, MEMORY_BYTES, PAGE_BYTES,
    SLOTS, SharedHeader, TOKEN_DIGITS, cell_kind,
};
use preload::symbols;
use rustix::fs::{
    FlockOperation, MemfdFlags, SealFlags, StatVfsMountFlags, fcntl_add_seals, flock, memfd_create,
    statvfs,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::report::output::file::{make_private, refuse_replaceable};

/// Processes that were left behind are counted until the memory is read.
const SLACK_NS: u128 = 1_000_000_000;

/// The library as it was built (build.rs).
static LIBRARY: &[u8] = include_bytes!(env!("SWITCHCOST_PRELOAD"));

/// Beginning of the names of the folders of runs.
const FOLDER: &str = "profile-";

/// The folder of one run of `profile`, which is removed with this value. It is locked meanwhile: one
/// that is not was left by a program that was killed.
struct RunFolder {
    path: PathBuf,
    _lock: File,
}

impl RunFolder {
    /// Makes one in `$XDG_RUNTIME_DIR/switchcost`, or where that cannot be used in
    /// `$XDG_CACHE_HOME/switchcost`, by default `~/.cache/switchcost`.
    fn new() -> Result<Self> {
        let dirs = ProjectDirs::from("", "", "switchcost").ok_or_else(|| {
            anyhow!("no folder for the preloaded library: set HOME or XDG_CACHE_HOME")
        })?;
        let runtime = dirs.runtime_dir();
        if let Some(runtime) = runtime.filter(|path| path.parent().is_some_and(Path::is_dir)) {
            if let Ok(folder) = Self::below(runtime) {
                return Ok(folder);
            }
        }
        let cache = dirs.cache_dir();
        Self::below(cache).with_context(|| {
            format!(
                "the preloaded library cannot lie in {} (XDG_CACHE_HOME chooses another folder)",
                cache.display()
            )
        })
    }

    fn below(above: &Path) -> Result<Self> {
        // The dynamic linker splits LD_PRELOAD at blanks and colons, and replaces what follows a $.
        let is_taken = |byte: &u8| !matches!(byte, b' ' | b':' | b'$');
        ensure!(
            above.as_os_str().as_bytes().iter().all(is_taken),
            "LD_PRELOAD takes no path with a blank, a colon or a $"
        );
        make_private(above)?;
        refuse_replaceable(above)?;
        let mount = statvfs(above)?.f_flag;
        ensure!(!mount.contains(StatVfsMountFlags::NOEXEC), "its file system is mounted noexec");
        remove_left(above);
        let path = above.join(format!("{FOLDER}{:016x}", probe::random_number()?));
        DirBuilder::new().mode(0o700).create(&path)?;
        let lock = File::open(&path)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { path, _lock: lock })
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes the folders of programs that were killed.
fn remove_left(above: &Path) {
    for entry in fs::read_dir(above).into_iter().flatten().flatten() {
        if !entry.file_name().as_bytes().starts_with(FOLDER.as_bytes()) {
            continue;
        }
        let Ok(folder) = File::open(entry.path()) else { continue };
        if flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The command finds these files too, and may be anything: what it has no business with is refused
/// by the kernel (F_ADD_SEALS of fcntl(2)).
fn seal(file: &File, seals: SealFlags) -> Result<()> {
    fcntl_add_seals(file, seals | SealFlags::SEAL).context("fcntl(2), F_ADD_SEALS")
}

/// The library, with the names of the functions whose place it takes.
pub(super) struct Library {
    folder: RunFolder,
    path: PathBuf,
}

impl Library {
    pub(super) fn new(calls: &[String], malloc: bool) -> Result<Self> {
        let mut bytes = LIBRARY.to_vec();
        let names: Vec<&str> = calls.iter().map(String::as_str).collect();
        symbols::rename(&mut bytes, &names, malloc).map_err(|symbols::DamagedLibrary(why)| {
            anyhow!("the library in this program: {why}")
        })?;
        let folder = RunFolder::new()?;
        let path = folder.path.join("libswitchcost-profile.so");
        let cannot = || format!("cannot write {}", path.display());
        let mut how = OpenOptions::new();
        let mut file =
            how.write(true).create_new(true).mode(0o700).open(&path).with_context(cannot)?;
        file.write_all(&bytes).with_context(cannot)?;
        Ok(Self { folder, path })
    }

    /// The variables by which a command is started with it, before an allocator and before what the
    /// caller preloads.
    pub(super) fn environment(&self, shared: &Shared, allocator: Option<&str>) -> [OsString; 2] {
        let mut preload = OsString::from("LD_PRELOAD=");
        preload.push(&self.path);
        let callers = std::env::var_os("LD_PRELOAD").filter(|of| !of.is_empty());
        for next in allocator.map(OsString::from).into_iter().chain(callers) {
            preload.push(":");
            preload.push(next);
        }
        let digits = TOKEN_DIGITS;
        let mut data =
            OsString::from(format!("{ENVIRONMENT_VARIABLE}={:0digits$x}:", shared.token));
        data.push(&shared.link);
        [preload, data]
    }
}

/// How long calls took, as they were counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Times {
    /// Sum of their CPU time in nanoseconds.
    pub(crate) sum_ns: u64,
    /// The longest in nanoseconds of CPU time.
    pub(crate) max_ns: u64,
    /// Calls in which the thread was switched out, moved, or took a signal.
    pub(crate) switched: u64,
    /// Nanoseconds that a wall clock would add to the sum.
    pub(crate) off_cpu_ns: u64,
    /// The longest of those that were switched, in nanoseconds by a wall clock.
    pub(crate) max_wall_ns: u64,
}

impl Times {
    /// Where a sum is as large as a number can be, it is none ([`Counts::check`]).
    pub(super) fn add(&mut self, more: &Self) {
        self.sum_ns = self.sum_ns.saturating_add(more.sum_ns);
        self.max_ns = self.max_ns.max(more.max_ns);
        self.switched = self.switched.saturating_add(more.switched);
        self.off_cpu_ns = self.off_cpu_ns.saturating_add(more.off_cpu_ns);
        self.max_wall_ns = self.max_wall_ns.max(more.max_wall_ns);
    }
}

/// Calls of one kind in one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Calls {
    pub(super) times: Times,
    /// By bucket of `preload::bins`; empty without calls.
    pub(super) buckets: Vec<u64>,
}

impl Calls {
    pub(super) fn count(&self) -> u64 {
        self.buckets.iter().fold(0, |sum: u64, calls| sum.saturating_add(*calls))
    }

    /// The mean of those that take up to four times the median: without interrupts. None without
    /// calls.
    pub(super) fn typical_ns(&self) -> Option<f64> {
        let middle = |bucket: usize| {
            let (from_ns, below_ns) = bucket_bounds(bucket);
            (from_ns as f64 + (below_ns - 1) as f64) / 2.0
        };
        let mut seen = 0;
        let median = self.buckets.iter().position(|calls| {
            seen += calls;
            seen > 0 && seen >= self.count().div_ceil(2)
        })?;
        let typical = self.buckets.iter().enumerate();
        let typical = typical.filter(|(bucket, _)| middle(*bucket) <= 4.0 * middle(median));
        let sums = typical.fold((0.0, 0.0), |(ns, calls), (bucket, of)| {
            (ns + middle(bucket) * *of as f64, calls + *of as f64)
        });
        Some(sums.0 / sums.1)
    }

    pub(super) fn add(&mut self, more: &Self) {
        self.times.add(&more.times);
        self.buckets.resize(BUCKETS, 0);
        for (own, more) in self.buckets.iter_mut().zip(&more.buckets) {
            *own = own.saturating_add(*more);
        }
    }
}

/// All that was counted in one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Counts {
    pub(super) processes: u32,
    pub(super) missed_threads: u64,
    /// Bits of the tiers by which the time was read.
    pub(super) tiers: u32,
    /// Those that there are, in the order of their cells.
    pub(super) kinds: Vec<(CellKind, Calls)>,
}

impl Counts {
    /// Whether a run of so long can have counted so much. The command can write to the memory, too.
    fn check(&self, real_ns: u64) -> Result<()> {
        // All threads that are counted, all the time; and no call takes less than 1 ns.
        let most = u128::from(real_ns).saturating_add(SLACK_NS) * SLOTS as u128;
        let is_possible = |calls: &Calls| {
            let Times { sum_ns, max_ns, switched, off_cpu_ns, max_wall_ns } = calls.times;
            let all = [calls.count(), sum_ns, max_ns, switched, off_cpu_ns, max_wall_ns];
            all.into_iter().all(|number| u128::from(number) <= most) && switched <= calls.count()
        };
        let all = self.kinds.iter().all(|(_, calls)| is_possible(calls));
        ensure!(all, "more was counted than the command's time allows");
        Ok(())
    }
}

/// The memory that one run of the command counts in.
pub(super) struct Shared {
    file: File,
    token: u64,
    /// Leads to the file, from the folder of the run.
    link: PathBuf,
}

impl Drop for Shared {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.link);
    }
}

impl Shared {
    pub(super) fn new(library: &Library) -> Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("switchcost-profile", flags).context("memfd_create(2)")?;
        let file = File::from(file);
        // Pages that nobody writes to take no memory.
        file.set_len(MEMORY_BYTES as u64)
            .context("cannot size the memory for counts (ulimit -f)")?;
        let magic = offset_of!(SharedHeader, magic) as u64;
        file.write_all_at(&MAGIC.to_ne_bytes(), magic).context("cannot write to memory")?;
        let token = probe::random_number()?;
        let place = offset_of!(SharedHeader, token) as u64;
        file.write_all_at(&token.to_ne_bytes(), place).context("cannot write to memory")?;
        seal(&file, SealFlags::SHRINK | SealFlags::GROW)?;
        // No descriptor is handed on: programs close those that they do not know.
        let link = library.folder.path.join(format!("counts-{token:016x}"));
        let target = format!("/proc/{}/fd/{}", process::id(), file.as_raw_fd());
        symlink(target, &link).with_context(|| format!("cannot make {}", link.display()))?;
        Ok(Self { file, token, link })
    }

    /// What was counted in a run of so long. Processes that still run go on counting. An error where
    /// the command, or somebody else, has written to the memory.
    pub(super) fn counts(&self, real_ns: u64) -> Result<Counts> {
        let counts = self.read().and_then(|counts| counts.check(real_ns).map(|()| counts));
        counts.context(
            "there are no figures: the memory for counts was written to by the command, or by \
                somebody else",
        )
    }

    fn read(&self) -> Result<Counts> {
        let mut header = vec![0; size_of::<SharedHeader>()];
        self.file.read_exact_at(&mut header, 0)?;
        ensure!(
            word(&header, offset_of!(SharedHeader, magic)) == MAGIC,
            "its first word is another"
        );
        let mut cells: Vec<Calls> = vec![Calls::default(); CELLS_PER_SLOT];
        let mut at = header.len() as u64;
        let mut page = vec![0; PAGE_BYTES];
        while let Some(next) = self.next_page(at)? {
            self.file.read_exact_at(&mut page, next)?;
            let cell = (next as usize - header.len()) / PAGE_BYTES % CELLS_PER_SLOT;
            let calls = read_cell(&page);
            if calls.count() > 0 {
                cells[cell].add(&calls);
            }
            at = next + PAGE_BYTES as u64;
        }
        let kinds = cells.into_iter().enumerate().filter(|(_, calls)| calls.count() > 0);
        let half = |at: usize| u32::from_ne_bytes([0, 1, 2, 3].map(|byte| header[at + byte]));
        Ok(Counts {
            processes: half(offset_of!(SharedHeader, processes)),
            missed_threads: word(&header, offset_of!(SharedHeader, missed_threads)),
            tiers: half(offset_of!(SharedHeader, tiers)),
            kinds: kinds.map(|(cell, calls)| (cell_kind(cell), calls)).collect(),
        })
    }

    /// The next page from there on that anybody wrote to.
    fn next_page(&self, at: u64) -> Result<Option<u64>> {
        if at >= MEMORY_BYTES as u64 {
            return Ok(None);
        }
        match rustix::fs::seek(&self.file, rustix::fs::SeekFrom::Data(at)) {
            Ok(next) => Ok(Some(next / PAGE_BYTES as u64 * PAGE_BYTES as u64)),
            Err(rustix::io::Errno::NXIO) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|byte| bytes[at + byte]))
}

fn read_cell(page: &[u8]) -> Calls {
    let first = offset_of!(CallCell, buckets);
    let times = Times {
        sum_ns: word(page, offset_of!(CallCell, sum_ns)),
        max_ns: word(page, offset_of!(CallCell, max_ns)),
        switched: word(page, offset_of!(CallCell, switched)),
        off_cpu_ns: word(page, offset_of!(CallCell, off_cpu_ns)),
        max_wall_ns: word(page, offset_of!(CallCell, max_wall_ns)),
    };
    Calls { times, buckets: (0..BUCKETS).map(|number| word(page, first + 8 * number)).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_command_can_have_counted_is_refused() {
        let counts = |times: Times, calls: u64| {
            let mut buckets = vec![0; BUCKETS];
            buckets[9] = calls;
            Counts { kinds: vec![(CellKind::Empty, Calls { times, buckets })], ..Counts::default() }
        };
        let possible = Times { sum_ns: 900, max_ns: 90, switched: 1, ..Times::default() };
        assert!(counts(possible, 10).check(1_000).is_ok());
        let most = Times::default();
        assert!(counts(Times { sum_ns: u64::MAX, ..most }, 10).check(1_000).is_err());
        assert!(counts(Times { off_cpu_ns: 1 << 60, ..most }, 10).check(1_000).is_err());
        assert!(counts(Times { switched: 11, ..most }, 10).check(1_000).is_err());
        assert!(counts(most, u64::MAX).check(1_000).is_err());
    }

    #[test]
    fn one_long_interval_is_not_typical() {
        let mut buckets = vec![0; BUCKETS];
        (buckets[20], buckets[30], buckets[BUCKETS - 1]) = (8, 2, 1);
        let calls = Calls { buckets, ..Calls::default() };
        assert_eq!(calls.typical_ns(), Some(22.0));
        assert_eq!(Calls::default().typical_ns(), None);
    }
}
