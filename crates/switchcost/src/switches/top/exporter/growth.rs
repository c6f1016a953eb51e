//! What each process did between two looks, from the counts of its threads.

use std::collections::HashMap;

use switchtrace::{ThreadCounts, ThreadKey};

/// Switches and CPU time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SwitchTotals {
    pub(super) voluntary: u64,
    pub(super) involuntary: u64,
    pub(super) cpu_ns: u64,
}

impl SwitchTotals {
    /// Returns what a thread did since `before`, or in all its life.
    fn since(thread: &ThreadCounts, before: Option<&ThreadCounts>) -> Self {
        let Some(before) = before else {
            let ThreadCounts { voluntary, involuntary, cpu_ns, .. } = *thread;
            return Self { voluntary, involuntary, cpu_ns };
        };
        Self {
            voluntary: thread.voluntary.saturating_sub(before.voluntary),
            involuntary: thread.involuntary.saturating_sub(before.involuntary),
            cpu_ns: thread.cpu_ns.saturating_sub(before.cpu_ns),
        }
    }

    pub(super) fn add(&mut self, more: Self) {
        self.voluntary += more.voluntary;
        self.involuntary += more.involuntary;
        self.cpu_ns += more.cpu_ns;
    }

    pub(super) fn switches(self) -> u64 {
        self.voluntary + self.involuntary
    }
}

/// A process in a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProcessLook {
    /// What it did since the last look.
    pub(super) grown: SwitchTotals,
    /// The start of its oldest thread, by `CLOCK_MONOTONIC`: no two processes of one id have the same.
    pub(super) start_ns: u64,
    /// Whether it has a living thread.
    pub(super) lives: bool,
}

/// The threads of the last look.
#[derive(Debug, Default)]
pub(super) struct ThreadGrowth {
    /// Absent before the first look.
    last: Option<LastLook>,
}

#[derive(Debug)]
struct LastLook {
    /// When it began, by `CLOCK_MONOTONIC`.
    began_ns: u64,
    threads: HashMap<ThreadKey, ThreadCounts>,
}

impl ThreadGrowth {
    /// Returns the processes of a look that began at `began_ns`, with what each did since the last
    /// look; nothing at the first one. A thread that the last look did not see has all its life counted
    /// if it was born since then: an older one had no record, and its past belongs to no interval.
    pub(super) fn by_process(
        &mut self,
        threads: Vec<ThreadCounts>,
        began_ns: u64,
    ) -> HashMap<u32, ProcessLook> {
        let mut processes: HashMap<u32, ProcessLook> = HashMap::new();
        let mut now: HashMap<ThreadKey, ThreadCounts> = HashMap::with_capacity(threads.len());
        for thread in threads {
            let process = processes.entry(thread.tgid).or_insert(ProcessLook {
                grown: SwitchTotals::default(),
                start_ns: thread.start_ns,
                lives: false,
            });
            process.start_ns = process.start_ns.min(thread.start_ns);
            process.lives |= !thread.ended;
            if let Some(last) = &self.last {
                // One that ended during the look comes twice.
                let before = now.get(&thread.key).or_else(|| last.find(&thread));
                if before.is_some() || thread.start_ns >= last.began_ns {
                    process.grown.add(SwitchTotals::since(&thread, before));
                }
            }
            now.insert(thread.key, thread);
        }
        self.last = Some(LastLook { began_ns, threads: now });
        processes
    }
}

impl LastLook {
    /// Finds a thread as it was in this look. The first thread of a process, when another one has called
    /// execve(2), ends with the id of that one and its own birth.
    fn find(&self, thread: &ThreadCounts) -> Option<&ThreadCounts> {
        let as_first = ThreadKey { tid: thread.tgid, ..thread.key };
        self.threads.get(&thread.key).or_else(|| self.threads.get(&as_first))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns a thread that was born at so many microseconds as its id says.
    pub(in super::super) fn thread(
        tid: u32,
        tgid: u32,
        voluntary: u64,
        involuntary: u64,
    ) -> ThreadCounts {
        ThreadCounts {
            key: ThreadKey { tid, born: tid },
            start_ns: u64::from(tid) << 10,
            tgid,
            ended: false,
            cpu_ns: 1_000 * (voluntary + involuntary),
            voluntary,
            involuntary,
        }
    }

    pub(in super::super) fn totals(voluntary: u64, involuntary: u64) -> SwitchTotals {
        SwitchTotals { voluntary, involuntary, cpu_ns: 1_000 * (voluntary + involuntary) }
    }

    /// Returns the processes that did something in a look that began when a thread of this id is born.
    fn grown(
        growth: &mut ThreadGrowth,
        threads: Vec<ThreadCounts>,
        began: u32,
    ) -> HashMap<u32, SwitchTotals> {
        let mut grown = HashMap::new();
        for (tgid, process) in growth.by_process(threads, u64::from(began) << 10) {
            if process.grown != SwitchTotals::default() {
                grown.insert(tgid, process.grown);
            }
        }
        grown
    }

    #[test]
    fn processes_grow_by_what_their_threads_did_since_the_last_look() {
        let mut growth = ThreadGrowth::default();
        let first = vec![thread(10, 10, 1_000, 10), thread(11, 10, 50, 0)];
        assert_eq!(grown(&mut growth, first, 15), HashMap::new());
        // One goes on, one sleeps, one was born and has ended since.
        let ended = ThreadCounts { ended: true, ..thread(20, 20, 4, 2) };
        let second = vec![thread(10, 10, 1_005, 12), thread(11, 10, 50, 0), ended];
        let expected = HashMap::from([(10, totals(5, 2)), (20, totals(4, 2))]);
        assert_eq!(grown(&mut growth, second.clone(), 25), expected);
        let third = growth.by_process(second, 35 << 10);
        assert_eq!((third[&10].lives, third[&10].start_ns), (true, 10 << 10));
        assert!(!third[&20].lives && third[&20].grown == SwitchTotals::default());
    }

    /// A thread that had no record in a look is known from the next one on. That is no reason to forget
    /// those that are born later.
    #[test]
    fn the_past_of_a_thread_counts_only_if_it_was_born_since_the_last_look() {
        let mut growth = ThreadGrowth::default();
        assert_eq!(grown(&mut growth, vec![thread(10, 10, 0, 0)], 15), HashMap::new());
        let (old, new) = (thread(11, 11, 9_000, 0), thread(16, 16, 3, 0));
        assert_eq!(grown(&mut growth, vec![old, new], 25), HashMap::from([(16, totals(3, 0))]));
        let (old, new) = (thread(11, 11, 9_001, 0), thread(26, 26, 5, 0));
        let expected = HashMap::from([(11, totals(1, 0)), (26, totals(5, 0))]);
        assert_eq!(grown(&mut growth, vec![old, new], 35), expected);
    }

    #[test]
    fn a_thread_that_ends_during_a_look_is_counted_once() {
        let mut growth = ThreadGrowth::default();
        grown(&mut growth, vec![thread(10, 10, 100, 0)], 15);
        let ended = ThreadCounts { ended: true, ..thread(10, 10, 109, 1) };
        let twice = vec![thread(10, 10, 107, 0), ended];
        assert_eq!(grown(&mut growth, twice, 25), HashMap::from([(10, totals(9, 1))]));
        // It comes again in the next look, from those that have ended.
        assert_eq!(grown(&mut growth, vec![ended], 35), HashMap::new());
    }

    /// Thread 11 of process 10 calls execve(2): the counter keeps its key, and the first thread ends as 11.
    #[test]
    fn execve_by_another_thread_counts_both_once() {
        let mut growth = ThreadGrowth::default();
        grown(&mut growth, vec![thread(10, 10, 900, 0), thread(11, 10, 5, 0)], 15);
        let first = ThreadCounts { ended: true, ..thread(10, 10, 900, 0) };
        let tail = ThreadCounts { key: ThreadKey { tid: 11, born: 10 }, voluntary: 903, ..first };
        let look = vec![thread(11, 10, 8, 0), first, tail];
        let grown = grown(&mut growth, look, 25);
        assert_eq!(grown[&10].switches(), 3 + 3);
    }
}
