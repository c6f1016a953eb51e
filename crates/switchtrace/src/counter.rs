//! The kernel's own counts of all threads, at the price of the looks alone.
//!
//! A [`Tracer`](crate::Tracer) runs a program at each switch. Counts need none: the kernel keeps them
//! for each thread (`nvcsw`, `nivcsw`). A look has the task iterator copy them for all threads; those
//! of a thread that ends are copied when the kernel frees it. So counting costs the same at any rate
//! of switches, and no thread is missed, however short it lived.

use crate::error::Error;
use crate::kernel::KernelLayout;
use crate::options::Options;
use crate::program;
use crate::sys::{self, AttachType};
use crate::threads::{ThreadCounts, read_counts_of_threads};
use crate::tracer::{TracerMaps, load, load_tracepoint};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use threadclock::table::ThreadTable;

/// Counts the switches of all threads of the system for as long as it lives.
///
/// Needs CAP_BPF and CAP_PERFMON (or root), and a kernel with BTF (Linux 5.8 or later).
#[derive(Debug)]
pub struct SwitchCounter {
    table: ThreadTable,
    refresh: OwnedFd,
    /// The programs' links; they detach when they are dropped.
    _links: Vec<OwnedFd>,
}

impl SwitchCounter {
    /// Begins to count, with room for so many threads at once: living ones, and those that have
    /// ended since the last look.
    ///
    /// # Errors
    /// [`Error`] says what is missing and how to get it.
    pub fn open(threads: u32) -> Result<Self, Error> {
        let options = Options { threads, ..Options::times_only() };
        if let Some(fault) = options.fault() {
            return Err(Error::Options(fault));
        }
        let kernel = KernelLayout::read(Path::new("/"))?;
        let maps = TracerMaps::create(&options)?;
        let target = maps.target(kernel);
        let ids = &target.kernel.ids;
        let iterator = AttachType::Iterator;
        let refresh =
            load("switch_refresh", program::refresh(&target), iterator, ids.task_iterator)?;
        let programs = [
            load_tracepoint("switch_exec", program::exec(&target), ids.exec)?,
            load_tracepoint("switch_free", program::free(&target), ids.free)?,
        ];
        let mut links = Vec::new();
        for program in &programs {
            links.push(sys::attach(program)?);
        }
        let table = ThreadTable::map(maps.table.as_raw_fd())?;
        Ok(Self { table, refresh, _links: links })
    }

    /// Looks, and returns the counts of all threads. Threads that have ended are among them until as
    /// many others have ended as there is room for.
    ///
    /// # Errors
    /// [`Error::Os`] if the task iterator cannot be read.
    pub fn read(&self) -> Result<Vec<ThreadCounts>, Error> {
        sys::iterate(&self.refresh)?;
        Ok(read_counts_of_threads(&self.table))
    }

    /// Returns how often there was no room for a thread, since counting began.
    pub fn lost_threads(&self) -> u64 {
        self.table.header().threads_lost.load(Relaxed)
    }
}
