//! The processes of a program, of which the memory of only one is watched.
//!
//! Switches are counted of all processes, but a working set is read of one: the busiest. It stands
//! for the program only if that process used nearly all of the CPU time. Of a shell that starts a
//! compiler the watched process may be the shell with 3 %; then the working set is only known to
//! lie below the largest resident memory of any of the processes.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use probe::program::{SwitchCounter, SwitchCounts, WatchedProcess};

use super::observation::{MIN_WATCHED_SHARE, UnreadReason, UnreadRemedy, WorkingSetReading};
use crate::observe::live::session::TracerSession;
use crate::observe::processes::ProcessSet;

/// Time between two searches for new children, if there is no tracer.
const SEARCH_INTERVAL: Duration = Duration::from_secs(1);

/// Processes of a program, and how its CPU time is spread over them.
#[derive(Clone, Debug)]
pub(crate) struct ProgramProcesses<'a> {
    pub(super) processes: &'a ProcessSet,
    /// Processes of the program beside those that were asked for.
    pub(super) children: usize,
    /// Share of the program's CPU time that the process used whose memory was watched; absent if no
    /// CPU time was used.
    watched_share: Option<f64>,
    /// Process that used the most CPU time.
    busiest: Option<u32>,
}

impl<'a> ProgramProcesses<'a> {
    /// Returns what the tracer saw; `watched` is the process whose memory was watched.
    pub(crate) fn from_tracer(
        processes: &'a ProcessSet,
        session: &TracerSession,
        watched: u32,
    ) -> Self {
        let account = &session.account;
        Self {
            processes,
            children: account.children(),
            watched_share: cpu_share(account.cpu_ns_of(watched), account.total().cpu_ns),
            busiest: account.busiest(),
        }
    }

    /// Returns what was read from /proc: `watched_cpu_ns` is the CPU time of the process `watched`.
    pub(super) fn from_proc(
        processes: &'a ProcessSet,
        followed: &FollowedProcesses,
        watched: u32,
        watched_cpu_ns: u64,
    ) -> Self {
        let (mut busiest, mut most_cpu_ns) = (watched, watched_cpu_ns);
        for (pid, process) in followed.members.iter().rev() {
            if process.cpu_ns() > most_cpu_ns {
                (busiest, most_cpu_ns) = (pid.unsigned_abs(), process.cpu_ns());
            }
        }
        let known = followed.members.len() + 1;
        Self {
            processes,
            children: known.saturating_sub(processes.pids.len()),
            watched_share: cpu_share(watched_cpu_ns, watched_cpu_ns + followed.cpu_ns()),
            busiest: Some(busiest),
        }
    }

    /// Returns whether the watched process used so little of the CPU time that its memory does not
    /// stand for the program's.
    pub(super) fn has_other_memory(&self) -> bool {
        self.watched_share.is_some_and(|share| share < MIN_WATCHED_SHARE)
    }

    /// Returns the working set that goes with the switches of all processes, from that of the
    /// `watched` one.
    pub(super) fn working_set(
        &self,
        watched: &WatchedProcess,
        watched_set: WorkingSetReading,
    ) -> WorkingSetReading {
        let share = match self.watched_share {
            Some(share) if self.has_other_memory() => share,
            _ => return watched_set,
        };
        let mut max_bytes = watched_set.high_bytes();
        for pid in self.processes.all_pids() {
            max_bytes = max_bytes.max(resident_bytes(pid).unwrap_or(0));
        }
        let why = format!(
            "of several processes it cannot be had together: the memory of one was looked at, {} \
             (pid {}), which used {:.0} % of their CPU time; each by itself can be asked for",
            watched.name,
            watched.pid(),
            100.0 * share
        );
        let remedy = UnreadRemedy::Child(self.busiest);
        WorkingSetReading::at_most(max_bytes, UnreadReason::new(why, Some(remedy)))
    }
}

fn cpu_share(part_ns: u64, total_ns: u64) -> Option<f64> {
    if total_ns == 0 {
        return None;
    }
    Some(part_ns as f64 / total_ns as f64)
}

/// Returns the resident memory of a process in bytes; absent if it has ended.
fn resident_bytes(pid: i32) -> Option<u64> {
    WatchedProcess::find(Path::new("/"), pid).ok()?.resident_bytes().ok()
}

/// The processes of a program beside the one whose memory is watched. Their switches are read from
/// /proc, as there is no tracer.
#[derive(Debug, Default)]
pub(crate) struct FollowedProcesses {
    /// The program; absent if a tracer counts its processes, and none is followed.
    processes: Option<ProcessSet>,
    /// The process whose memory is watched; it is not among the members.
    watched: i32,
    members: BTreeMap<i32, FollowedProcess>,
    searched: Option<Instant>,
}

#[derive(Debug)]
struct FollowedProcess {
    program: WatchedProcess,
    count: SwitchCounter,
    first_cpu_ns: u64,
    last_cpu_ns: u64,
    has_ended: bool,
}

impl FollowedProcess {
    /// Returns the CPU time since the first look, in nanoseconds.
    fn cpu_ns(&self) -> u64 {
        self.last_cpu_ns.saturating_sub(self.first_cpu_ns)
    }

    /// Reads its switches and CPU time again, unless it has ended.
    fn look(&mut self) {
        if self.has_ended {
            return;
        }
        self.has_ended = self.program.look(&mut self.count).is_err();
        if let Ok(ns) = self.program.cpu_ns() {
            self.last_cpu_ns = ns;
        }
    }
}

impl FollowedProcesses {
    /// Follows all processes of a program but `watched`.
    pub(super) fn new(processes: ProcessSet, watched: i32) -> Self {
        Self { processes: Some(processes), watched, ..Self::default() }
    }

    /// Looks at every process; returns whether one lives.
    pub(super) fn look(&mut self) -> bool {
        self.search_if_due();
        for process in self.members.values_mut() {
            process.look();
        }
        self.is_alive()
    }

    fn search_if_due(&mut self) {
        let Some(processes) = &self.processes else { return };
        let is_first = match self.searched {
            None => true,
            Some(_) if !processes.has_children => return,
            Some(searched) if searched.elapsed() < SEARCH_INTERVAL => return,
            Some(_) => false,
        };
        for pid in processes.all_pids() {
            if pid == self.watched || self.members.contains_key(&pid) {
                continue;
            }
            let Ok(program) = WatchedProcess::find(Path::new("/"), pid) else { continue };
            // One that was started meanwhile is counted from its start.
            let (count, first_cpu_ns) = if is_first {
                (SwitchCounter::default(), program.cpu_ns().unwrap_or_default())
            } else {
                (SwitchCounter::from_start(), 0)
            };
            let last_cpu_ns = first_cpu_ns;
            let process =
                FollowedProcess { program, count, first_cpu_ns, last_cpu_ns, has_ended: false };
            self.members.insert(pid, process);
        }
        self.searched = Some(Instant::now());
    }

    /// Returns whether children are followed that are started meanwhile.
    pub(super) fn finds_children(&self) -> bool {
        self.processes.as_ref().is_some_and(|processes| processes.has_children)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Returns whether a process lives.
    pub(super) fn is_alive(&self) -> bool {
        self.members.values().any(|process| !process.has_ended)
    }

    /// Returns the switches since the first look.
    pub(super) fn switches(&self) -> SwitchCounts {
        let mut sum = SwitchCounts::default();
        for process in self.members.values() {
            let switches = process.count.switches();
            sum.voluntary += switches.voluntary;
            sum.involuntary += switches.involuntary;
        }
        sum
    }

    /// Returns the CPU time since the first look, in nanoseconds.
    pub(super) fn cpu_ns(&self) -> u64 {
        self.members.values().map(FollowedProcess::cpu_ns).sum()
    }

    /// Returns the number of threads that have ended. Their last switches are not counted: those
    /// after the last look at them.
    pub(super) fn ended_threads(&self) -> usize {
        let mut threads = 0;
        for process in self.members.values() {
            threads += process.count.ended;
            if process.has_ended {
                threads += process.count.threads;
            }
        }
        threads
    }

    /// Returns the number of threads at the last look.
    pub(super) fn threads(&self) -> usize {
        let mut threads = 0;
        for process in self.members.values() {
            if !process.has_ended {
                threads += process.count.threads;
            }
        }
        threads
    }
}
