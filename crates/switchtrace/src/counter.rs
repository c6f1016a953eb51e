//! The kernel's own counts of all threads, at the price of the looks alone.
//!
//! A [`Tracer`](crate::Tracer) runs a program at each switch. Counts need none: the kernel keeps them
//! for each thread (`nvcsw`, `nivcsw`). A look has the task iterator copy them for all threads; those
//! of a thread that ends are copied when the kernel frees it. So counting costs the same at any rate
//! of switches, and no thread is missed, however short it lived, while there is room and the kernel
//! runs the program. The record of an ended thread is taken again only after it was read:
//!
//! ```text
//!          new thread             sched_process_free            collect
//! free  ---------------> record ----------------------> ended ---------> pending: the next look
//!   ^                                                               |
//!   +---------------------------------------------------------------+
//! ```
//!
//! A thread for which there is no record is counted as lost.
//!
//! A kernel may run no program at some ends. One has been met that runs none, and takes no sample of
//! perf, in softirqs that interrupt a thread of process 1; the kernel frees tasks in softirqs. So a
//! thread that was in a look and is in none for [`UNSEEN`] has ended, with the counts of the last look.
//! One that no look has seen is missed there.

use crate::error::Error;
use crate::kernel::KernelLayout;
use crate::options::Options;
use crate::program;
use crate::sys::{self, AttachType};
use crate::threads::{ThreadCounts, ThreadKey, read_counts_of_thread};
use crate::tracer::{TracerMaps, load, load_tracepoint};
use std::collections::HashMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use threadclock::table::ThreadTable;

/// Time in which a thread is in no look before it has ended. The kernel frees a thread, and runs the
/// program, only once all readers of its lists are done; it complains of readers that take 21 s or more
/// (Documentation/RCU/stallwarn.rst).
const UNSEEN: Duration = Duration::from_secs(30);

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
    /// Number of the last look.
    last_look: u32,
    /// Threads that are said to live and were not in the last look, with the time when that began.
    unseen: HashMap<ThreadKey, Instant>,
    /// [`UNSEEN`].
    patience: Duration,
    /// Of records that were given back without a program at the end of their thread: that thread.
    given_up: HashMap<usize, ThreadKey>,
    /// The programs' links, that of `sched_process_free` last; they detach when they are dropped.
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
        Ok(Self {
            table,
            refresh,
            maps,
            given_back,
            pending: Vec::new(),
            last_look: 0,
            unseen: HashMap::new(),
            patience: UNSEEN,
            given_up: HashMap::new(),
            _links: links,
        })
    }

    /// Looks, and returns the counts of all living threads, and the last ones of those that have ended
    /// since the last look. One that ends meanwhile may come twice, in the order of its counts.
    ///
    /// # Errors
    /// [`Error::Os`] if the task iterator cannot be read.
    pub fn read(&mut self) -> Result<Vec<ThreadCounts>, Error> {
        sys::iterate(&self.refresh)?;
        let mut threads = Vec::new();
        let mut unseen = Vec::new();
        let previous_look = self.last_look;
        for (number, given_back) in self.given_back.iter_mut().enumerate() {
            let Some((counts, look)) = read_counts_of_thread(&self.table, number) else { continue };
            self.last_look = self.last_look.max(look);
            let is_unseen = !counts.ended && look != 0 && look <= previous_look;
            if !counts.ended && !is_unseen {
                *given_back = false;
            }
            if *given_back {
                continue;
            }
            threads.push(counts);
            if is_unseen {
                unseen.push((number, threads.len() - 1));
            }
        }
        self.give_up_unseen(&mut threads, &unseen)?;
        self.collect()?;
        threads.append(&mut self.pending);
        Ok(threads)
    }

    /// Ends those of `threads` that have been in no look for [`UNSEEN`]; `unseen` has the records of
    /// those that were not in this one, each with its place in `threads`.
    fn give_up_unseen(
        &mut self,
        threads: &mut [ThreadCounts],
        unseen: &[(usize, usize)],
    ) -> Result<(), Error> {
        let before = std::mem::take(&mut self.unseen);
        for &(number, place) in unseen {
            let thread = &mut threads[place];
            let since = before.get(&thread.key).copied().unwrap_or_else(Instant::now);
            if since.elapsed() < self.patience {
                self.unseen.insert(thread.key, since);
                continue;
            }
            thread.ended = true;
            self.given_up.insert(number, thread.key);
            self.give_back(number)?;
        }
        Ok(())
    }

    /// Lets a record be taken again.
    fn give_back(&mut self, number: usize) -> Result<(), Error> {
        if let Some(given_back) = self.given_back.get_mut(number) {
            *given_back = true;
        }
        let element = number as u32 + self.maps.first_record();
        sys::update_map(&self.maps.free, &[], &element.to_ne_bytes())
    }

    /// Keeps the last counts of threads that have ended for the next look, so that there is room for
    /// others. Costs nothing that grows with the number of living threads.
    ///
    /// # Errors
    /// [`Error::Os`] if a record cannot be given back.
    pub fn collect(&mut self) -> Result<(), Error> {
        // No more than there are: those that end meanwhile are the next call's.
        for _ in 0..self.given_back.len() {
            let element = self.maps.ended.as_ref().and_then(sys::pop).map(u32::from_ne_bytes);
            let Some(element) = element else { break };
            let number = element.saturating_sub(self.maps.first_record()) as usize;
            let counts = read_counts_of_thread(&self.table, number).map(|(counts, _)| counts);
            let given_up = self.given_up.remove(&number);
            if counts.is_some_and(|counts| given_up == Some(counts.key)) {
                // Its program came after all, and it has been given back before.
                continue;
            }
            self.pending.extend(counts);
            self.give_back(number)?;
        }
        Ok(())
    }

    /// Returns how often there was no room for a thread, since counting began.
    pub fn lost_threads(&self) -> u64 {
        self.table.header().threads_lost.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use testing::{Need, wait_for};

    /// A thread that was seen ends while the kernel runs no program at ends.
    #[test]
    fn a_thread_that_no_program_has_ended_is_given_up() {
        let mut counter = match SwitchCounter::open(65_536) {
            Err(why @ (Error::Refused { .. } | Error::NoBtf { .. } | Error::NotInBtf(_))) => {
                return testing::skip(Need::Tracing, why);
            }
            counter => counter.unwrap(),
        };
        counter.patience = Duration::ZERO;
        counter._links.pop();
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let id = child.id();
        let of_child = |counter: &mut SwitchCounter| {
            let threads = counter.read().unwrap();
            let found: Vec<_> = threads.into_iter().filter(|of| of.tgid == id).collect();
            assert!(found.len() <= 1, "{found:?}");
            found.first().copied()
        };
        let living = wait_for("the child", || of_child(&mut counter));
        assert!(!living.ended);
        child.kill().unwrap();
        child.wait().unwrap();
        let last = wait_for("its end", || of_child(&mut counter).filter(|of| of.ended));
        assert_eq!(last.key, living.key);
        assert!(last.voluntary >= living.voluntary);
        assert_eq!(counter.given_up.values().filter(|key| **key == living.key).count(), 1);
        assert_eq!(of_child(&mut counter), None, "it has ended once");
    }
}
