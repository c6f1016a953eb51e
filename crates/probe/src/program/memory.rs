//! A watched program's memory: what is resident, and which pages were touched.

use std::path::Path;

use super::{WatchError, Watched};

/// What has the files that tell of touched pages.
const NEEDS: &str = "CONFIG_PROC_PAGE_MONITOR";

/// Huge pages in a process's page tables, of each kind of memory that may have them.
const HUGE: [&str; 3] = ["AnonHugePages", "ShmemPmdMapped", "FilePmdMapped"];

/// Pages that were touched, as far as the page tables tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Referenced {
    /// Bytes of the pages touched: of a huge one all, however little of it was.
    pub bytes: u64,
    /// Bytes of all huge pages there are; how many of them were touched is not told.
    pub huge_bytes: u64,
}

impl Watched {
    /// Resident memory in bytes (VmRSS).
    pub fn resident_bytes(&self) -> Result<u64, WatchError> {
        let status = self.folder.text("status")?;
        self.folder.kilobytes(&status, "status", "VmRSS")
    }

    /// Forgets which pages were touched (proc_pid_clear_refs(5)), under the lock of the program's memory
    /// map. The kernel flushes no TLB for it: a page whose translation is still cached may be touched
    /// again without a trace.
    pub fn clear_referenced(&self) -> Result<(), WatchError> {
        self.or_not_in_kernel("clear_refs", self.folder.write("clear_refs", "1"))
    }

    /// The pages touched since (proc_pid_smaps(5)).
    pub fn referenced(&self) -> Result<Referenced, WatchError> {
        match self.folder.text("smaps_rollup") {
            Ok(text) => self.sum(&text, "smaps_rollup"),
            // Linux before 4.14 has it for each mapping alone.
            Err(WatchError::Gone) => {
                let text = self.or_not_in_kernel("smaps", self.folder.text("smaps"))?;
                self.sum(&text, "smaps")
            }
            Err(error) => Err(error),
        }
    }

    fn sum(&self, text: &str, file: &str) -> Result<Referenced, WatchError> {
        let of = |item: &'static str| {
            let lines = text.lines().filter(|line| line.split(':').next() == Some(item));
            lines.map(|line| self.folder.kilobytes(line, file, item)).sum::<Result<u64, _>>()
        };
        if !text.lines().any(|line| line.starts_with("Referenced:")) {
            return Err(self.folder.no_item(file, "Referenced"));
        }
        // A kernel that does not name a kind of huge pages has none of it.
        let huge_bytes = HUGE.into_iter().map(of).sum::<Result<u64, _>>()?;
        Ok(Referenced { bytes: of("Referenced")?, huge_bytes })
    }

    /// A file that is not there, of a process that is.
    fn or_not_in_kernel<T>(&self, file: &str, had: Result<T, WatchError>) -> Result<T, WatchError> {
        match had {
            Err(WatchError::Gone) => {
                self.check_alive()?;
                Err(WatchError::NotInKernel { path: self.folder.path(file), needs: NEEDS })
            }
            had => had,
        }
    }
}

/// Bytes of transparent huge pages that a process has in its own memory; absent where the kernel does not tell.
pub fn huge_page_bytes_of_process(pid: i32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("AnonHugePages:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// Bytes of a transparent huge page below `root`; absent where the kernel has none, or does not tell.
pub fn huge_page_bytes(root: &Path) -> Option<u64> {
    let file = root.join("sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
    std::fs::read_to_string(file).ok()?.trim().parse().ok().filter(|bytes| *bytes > 0)
}
