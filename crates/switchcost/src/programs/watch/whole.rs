//! A program of several processes, of which the memory of one is watched.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use analysis::program::WorkingSet;
use probe::program::{SwitchCounter, SwitchCounts, WatchedProcess};
use rundata::reading::Reading;

use super::findings::SeenSet;
use super::seen::{MOSTLY_OWN, NotRead, Remedy};
use crate::observe::live::session::TracerSession;
use crate::observe::processes::ProcessSet;

/// Time between two searches for children that are new, where nobody traces.
const SEARCH: Duration = Duration::from_secs(1);

/// The processes of a program, beside the one whose memory was watched.
#[derive(Clone, Debug)]
pub(crate) struct ProgramProcesses<'a> {
    pub(super) processes: &'a ProcessSet,
    /// Processes that belong to it beside those that were asked for.
    pub(super) children: usize,
    /// Share of the program's CPU time that the process used whose memory was watched; absent
    /// where none was used.
    watched_share: Option<f64>,
    /// The process that used the most CPU time.
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
        let own_ns = account.cpu_ns_of(watched);
        Self {
            processes,
            children: account.children(),
            watched_share: share(own_ns, account.total().cpu_ns),
            busiest: account.busiest(),
        }
    }

    /// Returns what was read from /proc: `own_ns` is the CPU time of the process `watched`.
    pub(super) fn from_proc(
        processes: &'a ProcessSet,
        companions: &Companions,
        watched: u32,
        own_ns: u64,
    ) -> Self {
        let all = companions.members.iter().map(|(pid, of)| (pid.unsigned_abs(), of.cpu_ns()));
        let all_ns: u64 = own_ns + all.clone().map(|(_, ns)| ns).sum::<u64>();
        let busiest = all.chain([(watched, own_ns)]).max_by_key(|(_, ns)| *ns);
        let known = companions.members.len() + 1;
        Self {
            processes,
            children: known.saturating_sub(processes.pids.len()),
            watched_share: share(own_ns, all_ns),
            busiest: busiest.map(|(pid, _)| pid),
        }
    }

    /// Whether the watched process used so little of the CPU time that its memory does not stand
    /// for the program's.
    pub(super) fn has_other_memory(&self) -> bool {
        self.watched_share.is_some_and(|share| share < MOSTLY_OWN)
    }

    /// Returns the working set that goes with the switches of all processes, from that of the one
    /// that was watched.
    pub(super) fn working_set(&self, watched: &WatchedProcess, own: SeenSet) -> SeenSet {
        let Some(share) = self.watched_share.filter(|_| self.has_other_memory()) else {
            return own;
        };
        let resident =
            |pid: &i32| WatchedProcess::find(Path::new("/"), *pid).ok()?.resident_bytes().ok();
        let largest = self.processes.all_pids().iter().filter_map(resident).max();
        let own_high = own.0.known().map(|set| set.high_bytes);
        let high = own_high.into_iter().chain(largest).max().unwrap_or(0);
        let why = format!(
            "of several processes it cannot be had together: the memory of one was looked at, {} \
             (pid {}), which used {:.0} % of their CPU time; each by itself can be asked for",
            watched.name,
            watched.pid(),
            100.0 * share
        );
        let set = Reading::Known(WorkingSet::within(high));
        (set, Some(NotRead::new(why, Some(Remedy::Child(self.busiest)))))
    }
}

fn share(own_ns: u64, all_ns: u64) -> Option<f64> {
    (all_ns > 0).then(|| own_ns as f64 / all_ns as f64)
}

/// The other processes of a program whose switches are read from /proc, as nobody traces them.
#[derive(Debug)]
pub(crate) struct Companions {
    processes: ProcessSet,
    /// The process that is watched itself.
    watched: i32,
    members: BTreeMap<i32, Companion>,
    searched: Option<Instant>,
}

/// One of them.
#[derive(Debug)]
struct Companion {
    program: WatchedProcess,
    count: SwitchCounter,
    /// CPU time at the first look and at the last.
    cpu_ns: (u64, u64),
    has_ended: bool,
}

impl Companion {
    fn cpu_ns(&self) -> u64 {
        self.cpu_ns.1.saturating_sub(self.cpu_ns.0)
    }

    /// Looks again, as long as it lives.
    fn look(&mut self) {
        if self.has_ended {
            return;
        }
        self.has_ended = self.program.look(&mut self.count).is_err();
        if let Ok(ns) = self.program.cpu_ns() {
            self.cpu_ns.1 = ns;
        }
    }
}

impl Companions {
    /// Follows all processes of a program but `watched`.
    pub(super) fn new(processes: ProcessSet, watched: i32) -> Self {
        Self { processes, watched, members: BTreeMap::new(), searched: None }
    }

    /// Looks at all of them; gives whether one lives.
    pub(super) fn look(&mut self) -> bool {
        self.search_if_due();
        self.members.values_mut().for_each(Companion::look);
        self.members.values().any(|of| !of.has_ended)
    }

    fn search_if_due(&mut self) {
        let is_first = self.searched.is_none();
        let is_due = self.searched.is_none_or(|at| at.elapsed() >= SEARCH);
        if !is_due || !is_first && !self.processes.has_children {
            return;
        }
        for pid in self.processes.all_pids() {
            if pid == self.watched || self.members.contains_key(&pid) {
                continue;
            }
            let Ok(program) = WatchedProcess::find(Path::new("/"), pid) else { continue };
            // One that came meanwhile is counted from its start.
            let count =
                if is_first { SwitchCounter::default() } else { SwitchCounter::from_start() };
            let first_ns = if is_first { program.cpu_ns().unwrap_or_default() } else { 0 };
            let cpu_ns = (first_ns, first_ns);
            self.members.insert(pid, Companion { program, count, cpu_ns, has_ended: false });
        }
        self.searched = Some(Instant::now());
    }

    /// Whether children are counted that come meanwhile.
    pub(super) fn processes_have_children(&self) -> bool {
        self.processes.has_children
    }

    /// Whether there are any.
    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Whether one of them lives.
    pub(super) fn is_alive(&self) -> bool {
        self.members.values().any(|of| !of.has_ended)
    }

    /// Switches since the first look.
    pub(super) fn switches(&self) -> SwitchCounts {
        let mut sum = SwitchCounts::default();
        for switches in self.members.values().map(|of| of.count.switches()) {
            sum.voluntary += switches.voluntary;
            sum.involuntary += switches.involuntary;
        }
        sum
    }

    /// CPU time since the first look, in nanoseconds.
    pub(super) fn cpu_ns(&self) -> u64 {
        self.members.values().map(Companion::cpu_ns).sum()
    }

    /// Threads that have ended: what they did after the last look at them is not counted.
    pub(super) fn ended_threads(&self) -> usize {
        let ended = |of: &Companion| {
            let with_process = if of.has_ended { of.count.threads } else { 0 };
            of.count.ended + with_process
        };
        self.members.values().map(ended).sum()
    }

    /// Threads at the last look.
    pub(super) fn threads(&self) -> usize {
        self.members.values().filter(|of| !of.has_ended).map(|of| of.count.threads).sum()
    }
}
