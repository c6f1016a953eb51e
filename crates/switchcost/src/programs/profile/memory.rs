//! The preloaded library and the memory that it counts in.
//!
//! The command finds both by their paths in a folder of this run that only its user may enter
//! (mode 0700), and that goes with this program. What the command leaves behind still has these
//! paths in its environment, and may have more rights than others: so no path leads to what
//! somebody else could put in its place, as one below /proc/PID would once the process id is
//! another's. The counts are a file in memory behind a link; the library takes no other file for
//! it (crates/preload/src/interpose/shared.rs).
//!
//! ```text
//! $XDG_RUNTIME_DIR/switchcost/profile-0123456789abcdef/    locked while this program runs
//!     libswitchcost-profile.so                             LD_PRELOAD of the command
//!     counts-fedcba9876543210 -> /proc/PID/fd/N            a sealed memfd, one a launch
//!
//! memfd:  header | slot 0: cell, cell, ... | slot 1: ...   a slot a thread, a cell a kind of call
//! ```

use std::env;
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
    FlockOperation, MemfdFlags, SealFlags, SeekFrom, StatVfsMountFlags, fcntl_add_seals, flock,
    memfd_create, seek, statvfs,
};
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::report::output::file::{make_private, refuse_replaceable};

/// Time after a launch in which processes that were left behind may still count.
const MAX_COUNTING_AFTER_NS: u128 = 1_000_000_000;

/// The library as it was built (build.rs).
static LIBRARY: &[u8] = include_bytes!(env!("SWITCHCOST_PRELOAD"));

/// Start of the names of the folders of runs.
const FOLDER_PREFIX: &str = "profile-";

/// The folder of one run of `profile`, which is removed with this value. It is locked meanwhile: a
/// folder without a lock was left by a program that was killed.
struct RunFolder {
    path: PathBuf,
    _lock: File,
}

impl RunFolder {
    /// Makes a folder in `$XDG_RUNTIME_DIR/switchcost`, or if that cannot be used in
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

    fn below(parent: &Path) -> Result<Self> {
        ensure!(
            parent.as_os_str().as_bytes().iter().all(is_preloadable),
            "LD_PRELOAD takes no path with a blank, a colon or a $"
        );
        make_private(parent)?;
        refuse_replaceable(parent)?;
        let mount = statvfs(parent)?.f_flag;
        ensure!(!mount.contains(StatVfsMountFlags::NOEXEC), "its file system is mounted noexec");
        remove_abandoned(parent);
        let path = parent.join(format!("{FOLDER_PREFIX}{:016x}", probe::random_number()?));
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

/// Returns whether a path in LD_PRELOAD may have this byte: the dynamic linker splits it at blanks
/// and colons, and replaces what follows a $.
fn is_preloadable(byte: &u8) -> bool {
    !matches!(byte, b' ' | b':' | b'$')
}

/// Removes the folders of programs that were killed.
fn remove_abandoned(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if !entry.file_name().as_bytes().starts_with(FOLDER_PREFIX.as_bytes()) {
            continue;
        }
        let Ok(folder) = File::open(entry.path()) else { continue };
        if flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Makes the kernel refuse some changes of a file (F_ADD_SEALS of fcntl(2)): the command finds the
/// file too, and may be anything.
fn seal(file: &File, seals: SealFlags) -> Result<()> {
    fcntl_add_seals(file, seals | SealFlags::SEAL).context("fcntl(2), F_ADD_SEALS")
}

/// The library, with the names of the functions that it replaces.
pub(super) struct PreloadLibrary {
    folder: RunFolder,
    path: PathBuf,
}

impl PreloadLibrary {
    /// Writes the library for these functions.
    pub(super) fn new(calls: &[String], malloc: bool) -> Result<Self> {
        let mut bytes = LIBRARY.to_vec();
        let names: Vec<&str> = calls.iter().map(String::as_str).collect();
        symbols::rename(&mut bytes, &names, malloc).map_err(|symbols::DamagedLibrary(why)| {
            anyhow!("the library in this program: {why}")
        })?;
        let folder = RunFolder::new()?;
        let path = folder.path.join("libswitchcost-profile.so");
        write_executable(&path, &bytes)
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { folder, path })
    }

    /// Returns the variables that a command is started with. The library stands before an
    /// allocator, and before what the caller preloads.
    pub(super) fn environment(
        &self,
        shared: &SharedCounts,
        allocator: Option<&str>,
    ) -> Vec<OsString> {
        let mut preload = OsString::from("LD_PRELOAD=");
        preload.push(&self.path);
        if let Some(allocator) = allocator {
            preload.push(":");
            preload.push(allocator);
        }
        if let Some(inherited) = env::var_os("LD_PRELOAD").filter(|list| !list.is_empty()) {
            preload.push(":");
            preload.push(inherited);
        }
        let digits = TOKEN_DIGITS;
        let mut data =
            OsString::from(format!("{ENVIRONMENT_VARIABLE}={:0digits$x}:", shared.token));
        data.push(&shared.link);
        vec![preload, data]
    }
}

fn write_executable(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o700).open(path)?;
    file.write_all(bytes)
}

/// Times of calls, as they were counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct CallTimes {
    /// Sum of their CPU time in nanoseconds.
    pub(crate) sum_ns: u64,
    /// CPU time of the longest call, in nanoseconds.
    pub(crate) max_ns: u64,
    /// Calls in which the thread was switched out, moved, or took a signal.
    pub(crate) switched: u64,
    /// Nanoseconds that a wall clock would add to the sum.
    pub(crate) off_cpu_ns: u64,
    /// Longest call of those that were switched, in nanoseconds by a wall clock.
    pub(crate) max_wall_ns: u64,
}

impl CallTimes {
    /// Adds the times of more calls. Sums saturate; such a sum is refused
    /// ([`LaunchCounts::check`]).
    pub(super) fn add(&mut self, more: &Self) {
        self.sum_ns = self.sum_ns.saturating_add(more.sum_ns);
        self.max_ns = self.max_ns.max(more.max_ns);
        self.switched = self.switched.saturating_add(more.switched);
        self.off_cpu_ns = self.off_cpu_ns.saturating_add(more.off_cpu_ns);
        self.max_wall_ns = self.max_wall_ns.max(more.max_wall_ns);
    }
}

/// Calls of one kind in one launch.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CellCalls {
    pub(super) kind: CellKind,
    pub(super) times: CallTimes,
    /// Calls by bucket of `preload::bins`.
    pub(super) buckets: Vec<u64>,
}

impl CellCalls {
    fn without_calls(kind: CellKind) -> Self {
        Self { kind, times: CallTimes::default(), buckets: vec![0; BUCKETS] }
    }

    /// Returns the number of calls.
    pub(super) fn count(&self) -> u64 {
        let mut count = 0_u64;
        for calls in &self.buckets {
            count = count.saturating_add(*calls);
        }
        count
    }

    /// Returns the bucket of the median; none without calls.
    fn median_bucket(&self) -> Option<usize> {
        let half = self.count().div_ceil(2);
        let mut calls_below = 0;
        for (bucket, calls) in self.buckets.iter().enumerate() {
            calls_below += calls;
            if calls_below > 0 && calls_below >= half {
                return Some(bucket);
            }
        }
        None
    }

    /// Returns the mean in nanoseconds of the calls that take up to four times the median, which
    /// leaves out interrupts. None without calls.
    fn typical_ns(&self) -> Option<f64> {
        let limit_ns = 4.0 * middle_ns(self.median_bucket()?);
        let (mut sum_ns, mut count) = (0.0, 0.0);
        for (bucket, calls) in self.buckets.iter().enumerate() {
            if middle_ns(bucket) <= limit_ns {
                sum_ns += middle_ns(bucket) * *calls as f64;
                count += *calls as f64;
            }
        }
        Some(sum_ns / count)
    }

    /// Adds what another thread counted.
    fn add(&mut self, more: &Self) {
        self.times.add(&more.times);
        for (sum, calls) in self.buckets.iter_mut().zip(&more.buckets) {
            *sum = sum.saturating_add(*calls);
        }
    }

    /// Returns whether all figures are at most `max`, as those of a launch are.
    fn is_possible(&self, max: u128) -> bool {
        let CallTimes { sum_ns, max_ns, switched, off_cpu_ns, max_wall_ns } = self.times;
        let count = self.count();
        let figures = [count, sum_ns, max_ns, switched, off_cpu_ns, max_wall_ns];
        switched <= count && figures.iter().all(|figure| u128::from(*figure) <= max)
    }
}

/// Returns the middle of a bucket in nanoseconds.
fn middle_ns(bucket: usize) -> f64 {
    let (from_ns, below_ns) = bucket_bounds(bucket);
    (from_ns as f64 + (below_ns - 1) as f64) / 2.0
}

/// Everything that was counted in one launch.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LaunchCounts {
    pub(super) processes: u32,
    pub(super) missed_threads: u64,
    /// Bits of the tiers by which the time was read.
    pub(super) tiers: u32,
    /// Kinds of calls that were made, in the order of their cells.
    pub(super) cells: Vec<CellCalls>,
}

impl LaunchCounts {
    fn cell(&self, kind: CellKind) -> Option<&CellCalls> {
        self.cells.iter().find(|cell| cell.kind == kind)
    }

    /// Returns the mean time in nanoseconds of a kind of calls, without interrupts.
    pub(super) fn typical_ns(&self, kind: CellKind) -> Option<f64> {
        self.cell(kind)?.typical_ns()
    }

    /// Returns the mean time in nanoseconds of a kind of calls.
    pub(super) fn mean_ns(&self, kind: CellKind) -> Option<f64> {
        let cell = self.cell(kind)?;
        Some(cell.times.sum_ns as f64 / cell.count() as f64)
    }

    /// Checks that a launch of this length can have counted so much: the command can write to the
    /// memory, too.
    fn check(&self, real_ns: u64) -> Result<()> {
        // All threads that are counted, all the time; and no call takes less than 1 ns.
        let max = u128::from(real_ns).saturating_add(MAX_COUNTING_AFTER_NS) * SLOTS as u128;
        ensure!(
            self.cells.iter().all(|cell| cell.is_possible(max)),
            "more was counted than the command's time allows"
        );
        Ok(())
    }
}

/// The memory that one launch of the command counts in.
pub(super) struct SharedCounts {
    file: File,
    token: u64,
    /// Link to the file, in the folder of the run.
    link: PathBuf,
}

impl Drop for SharedCounts {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.link);
    }
}

impl SharedCounts {
    /// Makes the memory, with a random token.
    pub(super) fn new(library: &PreloadLibrary) -> Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("switchcost-profile", flags).context("memfd_create(2)")?;
        let file = File::from(file);
        // Pages that nobody writes to take no memory.
        file.set_len(MEMORY_BYTES as u64)
            .context("cannot size the memory for counts (ulimit -f)")?;
        let magic_offset = offset_of!(SharedHeader, magic) as u64;
        file.write_all_at(&MAGIC.to_ne_bytes(), magic_offset).context("cannot write to memory")?;
        let token = probe::random_number()?;
        let token_offset = offset_of!(SharedHeader, token) as u64;
        file.write_all_at(&token.to_ne_bytes(), token_offset).context("cannot write to memory")?;
        seal(&file, SealFlags::SHRINK | SealFlags::GROW)?;
        // No descriptor is handed on: programs close those that they do not know.
        let link = library.folder.path.join(format!("counts-{token:016x}"));
        let target = format!("/proc/{}/fd/{}", process::id(), file.as_raw_fd());
        symlink(target, &link).with_context(|| format!("cannot make {}", link.display()))?;
        Ok(Self { file, token, link })
    }

    /// Returns what was counted in a launch of this length. Processes that still run go on counting.
    ///
    /// # Errors
    /// Fails if the command, or somebody else, has written to the memory.
    pub(super) fn counts(&self, real_ns: u64) -> Result<LaunchCounts> {
        self.read_checked(real_ns).context(
            "there are no figures: the memory for counts was written to by the command, or by \
             somebody else",
        )
    }

    fn read_checked(&self, real_ns: u64) -> Result<LaunchCounts> {
        let counts = self.read()?;
        counts.check(real_ns)?;
        Ok(counts)
    }

    fn read(&self) -> Result<LaunchCounts> {
        let mut header = vec![0; size_of::<SharedHeader>()];
        self.file.read_exact_at(&mut header, 0)?;
        ensure!(
            read_u64(&header, offset_of!(SharedHeader, magic)) == MAGIC,
            "its first word is another"
        );
        let mut cells: Vec<CellCalls> =
            (0..CELLS_PER_SLOT).map(|number| CellCalls::without_calls(cell_kind(number))).collect();
        let mut offset = header.len() as u64;
        let mut page = vec![0; PAGE_BYTES];
        while let Some(page_offset) = self.next_page(offset)? {
            self.file.read_exact_at(&mut page, page_offset)?;
            let page_number = (page_offset as usize - header.len()) / PAGE_BYTES;
            let cell = &mut cells[page_number % CELLS_PER_SLOT];
            let calls = read_cell(cell.kind, &page);
            if calls.count() > 0 {
                cell.add(&calls);
            }
            offset = page_offset + PAGE_BYTES as u64;
        }
        cells.retain(|cell| cell.count() > 0);
        Ok(LaunchCounts {
            processes: read_u32(&header, offset_of!(SharedHeader, processes)),
            missed_threads: read_u64(&header, offset_of!(SharedHeader, missed_threads)),
            tiers: read_u32(&header, offset_of!(SharedHeader, tiers)),
            cells,
        })
    }

    /// Returns the offset of the first page from `offset` on that anybody wrote to.
    fn next_page(&self, offset: u64) -> Result<Option<u64>> {
        if offset >= MEMORY_BYTES as u64 {
            return Ok(None);
        }
        match seek(&self.file, SeekFrom::Data(offset)) {
            Ok(data) => Ok(Some(data / PAGE_BYTES as u64 * PAGE_BYTES as u64)),
            Err(Errno::NXIO) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }
}

fn read_u64(bytes: &[u8], offset: usize) -> u64 {
    u64::from_ne_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|byte| bytes[offset + byte]))
}

fn read_u32(bytes: &[u8], offset: usize) -> u32 {
    u32::from_ne_bytes([0, 1, 2, 3].map(|byte| bytes[offset + byte]))
}

fn read_cell(kind: CellKind, page: &[u8]) -> CellCalls {
    let times = CallTimes {
        sum_ns: read_u64(page, offset_of!(CallCell, sum_ns)),
        max_ns: read_u64(page, offset_of!(CallCell, max_ns)),
        switched: read_u64(page, offset_of!(CallCell, switched)),
        off_cpu_ns: read_u64(page, offset_of!(CallCell, off_cpu_ns)),
        max_wall_ns: read_u64(page, offset_of!(CallCell, max_wall_ns)),
    };
    let first = offset_of!(CallCell, buckets);
    let buckets = (0..BUCKETS).map(|number| read_u64(page, first + 8 * number)).collect();
    CellCalls { kind, times, buckets }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(times: CallTimes, calls: u64) -> LaunchCounts {
        let mut buckets = vec![0; BUCKETS];
        buckets[9] = calls;
        let cells = vec![CellCalls { kind: CellKind::Empty, times, buckets }];
        LaunchCounts { cells, ..LaunchCounts::default() }
    }

    #[test]
    fn counts_that_no_command_can_have_made_are_refused() {
        let possible = CallTimes { sum_ns: 900, max_ns: 90, switched: 1, ..CallTimes::default() };
        assert!(counts(possible, 10).check(1_000).is_ok());
        let none = CallTimes::default();
        assert!(counts(CallTimes { sum_ns: u64::MAX, ..none }, 10).check(1_000).is_err());
        assert!(counts(CallTimes { off_cpu_ns: 1 << 60, ..none }, 10).check(1_000).is_err());
        assert!(counts(CallTimes { switched: 11, ..none }, 10).check(1_000).is_err());
        assert!(counts(none, u64::MAX).check(1_000).is_err());
    }

    #[test]
    fn a_single_long_interval_is_not_typical() {
        let mut cell = CellCalls::without_calls(CellKind::Empty);
        assert_eq!(cell.typical_ns(), None);
        (cell.buckets[20], cell.buckets[30], cell.buckets[BUCKETS - 1]) = (8, 2, 1);
        assert_eq!(cell.typical_ns(), Some(22.0));
    }
}
