//! The kernel's own counts of all threads, at the price of the looks alone.
//!
//! A [`Tracer`](crate::Tracer) runs a program at each switch. Counts need none: the kernel keeps them
//! for each thread (`nvcsw`, `nivcsw`). A look has the task iterator copy them for all threads; those
//! of a thread that ends are copied when the kernel frees it. So counting costs the same at any rate
//! of switches, and no thread is missed, however short it lived, while there is room. The record of an
//! ended thread is taken again only after it was read:
//!
//! ```text
//!          new thread             sched_process_free            collect
//! free  ---------------> record ----------------------> ended ---------> pending: the next look
//!   ^                                                               |
//!   +---------------------------------------------------------------+
//! ```
//!
//! A thread for which there is no record is counted as lost.

use crate::error::Error;
use crate::kernel::KernelLayout;
use crate::options::Options;
use crate::program;
use crate::sys::{self, AttachType};
use crate::threads::{ThreadCounts, read_counts_of_thread};
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
    maps: TracerMaps,
    /// Of each record whether it was given back since it was last seen in use: what it has was read.
    given_back: Vec<bool>,
    /// Last counts of threads that have ended since the last look.
    pending: Vec<ThreadCounts>,
    /// The programs' links; they detach when they are dropped.
    _links: Vec<OwnedFd>,
}

impl SwitchCounter {
    /// Begins to count, with room for so many threads at once: living ones, and those that have
    /// ended since they were last collected.
    ///
    /// # Errors
    /// [`Error`] says what is missing and how to get it.
    pub fn open(threads: u32) -> Result<Self, Error> {
        let options = Options { threads, ..Options::times_only() };
        if let Some(fault) = options.fault() {
            return Err(Error::Options(fault));
        }
        let kernel = KernelLayout::read(Path::new("/"))?;
        let maps = TracerMaps::create_for_counter(&options)?;
        let target = maps.target(kernel);
        let ids = &target.kernel.ids;
        let iterator = AttachType::Iterator;
        let refresh =
            load("switch_refresh", program::refresh(&target), iterator, ids.task_iterator)?;
        let programs = [
            load_tracepoint("switch_exec", program::take_over(&target), ids.exec)?,
            load_tracepoint("switch_free", program::free(&target), ids.free)?,
        ];
        let mut links = Vec::new();
        for program in &programs {
            links.push(sys::attach(program)?);
        }
        let table = ThreadTable::map(maps.table.as_raw_fd())?;
        let given_back = vec![false; threads as usize];
        Ok(Self { table, refresh, maps, given_back, pending: Vec::new(), _links: links })
    }

    /// Looks, and returns the counts of all living threads, and the last ones of those that have ended
    /// since the last look. One that ends meanwhile may come twice, in the order of its counts.
    ///
    /// # Errors
    /// [`Error::Os`] if the task iterator cannot be read.
    pub fn read(&mut self) -> Result<Vec<ThreadCounts>, Error> {
        sys::iterate(&self.refresh)?;
        let mut threads = Vec::new();
        for (number, given_back) in self.given_back.iter_mut().enumerate() {
            let Some(counts) = read_counts_of_thread(&self.table, number) else { continue };
            if !counts.ended {
                *given_back = false;
            }
            if !*given_back {
                threads.push(counts);
            }
        }
        self.collect()?;
        threads.append(&mut self.pending);
        Ok(threads)
    }

    /// Keeps the last counts of threads that have ended for the next look, so that there is room for
    /// others. Costs nothing that grows with the number of living threads.
    ///
    /// # Errors
    /// [`Error::Os`] if a record cannot be given back.
    pub fn collect(&mut self) -> Result<(), Error> {
        let Some(ended) = &self.maps.ended else { return Ok(()) };
        // No more than there are: those that end meanwhile are the next call's.
        for _ in 0..self.given_back.len() {
            let Some(element) = sys::pop(ended).map(u32::from_ne_bytes) else { break };
            let number = element.saturating_sub(self.maps.first_record()) as usize;
            self.pending.extend(read_counts_of_thread(&self.table, number));
            if let Some(given_back) = self.given_back.get_mut(number) {
                *given_back = true;
            }
            sys::update_map(&self.maps.free, &[], &element.to_ne_bytes())?;
        }
        Ok(())
    }

    /// Returns how often there was no room for a thread, since counting began.
    pub fn lost_threads(&self) -> u64 {
        self.table.header().threads_lost.load(Relaxed)
    }
}
