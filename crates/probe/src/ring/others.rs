//! The members besides the leader, seen from the leader: their end, and what they died of.

use std::thread::JoinHandle;
use std::time::Duration;

use model::case::Kind;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, waitpid};

use super::error::RingError;
use crate::counters::Task;
use crate::sys::SharedArea;
use std::sync::atomic::Ordering;

/// Exit status of a member that lost the token.
pub const STATUS_LOST: i32 = 3;
/// Exit status of a member whose leader was gone before it started.
pub const STATUS_ORPHAN: i32 = 4;
/// Exit status of a member that could not be put on its CPU.
pub const STATUS_PLACE: i32 = 5;

/// All members but the leader, in the order of the ring.
pub enum Others {
    /// Children of the worker.
    Processes(Vec<Pid>),
    /// Threads of the worker.
    Threads(Vec<JoinHandle<i32>>),
    /// None that the kernel knows: all run in the leader's own thread.
    Within,
}

impl Others {
    /// No members yet, with room for as many as the ring has: a list that grows between forks is
    /// copied page by page.
    pub fn none(kind: Kind, members: u32) -> Self {
        match kind {
            Kind::Process => Self::Processes(Vec::with_capacity(members as usize)),
            Kind::Thread => Self::Threads(Vec::with_capacity(members as usize)),
        }
    }

    /// Adds the next member.
    pub fn push_process(&mut self, pid: Pid) {
        if let Self::Processes(pids) = self {
            pids.push(pid);
        }
    }

    /// Adds the next member.
    pub fn push_thread(&mut self, handle: JoinHandle<i32>) {
        if let Self::Threads(handles) = self {
            handles.push(handle);
        }
    }

    /// The members as tasks whose counters can be read. All must have started: a lap is proof.
    pub fn tasks(&self, area: &SharedArea) -> Vec<Task> {
        let own = std::process::id() as i32;
        let started = |(pid, tid)| Task { pid, tid };
        let tids = area.cells().iter().skip(1).map(|cell| cell.tid.load(Ordering::Acquire) as i32);
        match self {
            Self::Processes(pids) => {
                pids.iter().map(|pid| pid.as_raw_pid()).map(|pid| started((pid, pid))).collect()
            }
            Self::Threads(_) => tids.map(|tid| started((own, tid))).collect(),
            Self::Within => Vec::new(),
        }
    }

    /// Waits for all after they were told to end.
    pub fn finish(self) -> Result<(), RingError> {
        match self {
            Self::Within => {}
            Self::Processes(pids) => {
                for (index, pid) in pids.into_iter().enumerate() {
                    let status = reap(pid, WaitOptions::empty());
                    if let Some(how) = status.and_then(bad_end) {
                        return Err(RingError::Member { member: index as u32 + 1, how });
                    }
                }
            }
            Self::Threads(handles) => {
                for (index, handle) in handles.into_iter().enumerate() {
                    let member = index as u32 + 1;
                    match handle.join() {
                        Ok(0) => {}
                        Ok(status) => {
                            return Err(RingError::Member { member, how: status_words(status) });
                        }
                        Err(_) => {
                            return Err(RingError::Member { member, how: "it panicked".into() });
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// After the token was lost: which member went first, if any did. Members that only noticed the
    /// loss come after one that was killed or refused. Ends all that are left.
    pub fn post_mortem(self, area: &SharedArea) -> Option<RingError> {
        // The loss travels round the ring before it reaches the leader, but deaths are reported
        // when the kernel gets to it.
        std::thread::sleep(Duration::from_millis(20));
        let refused = refusal(area);
        let Self::Processes(pids) = self else { return refused };
        let mut ends: Vec<(u32, WaitStatus)> = Vec::new();
        // A pid that was waited for may be somebody else's by now: only the others are killed.
        let mut left = Vec::new();
        for (index, pid) in pids.into_iter().enumerate() {
            match reap(pid, WaitOptions::NOHANG) {
                Some(status) => ends.push((index as u32 + 1, status)),
                None => left.push(pid),
            }
        }
        let killed = ends.iter().find(|(_, status)| status.terminating_signal().is_some());
        let strange = ends.iter().find(|(_, s)| s.exit_status() != Some(STATUS_LOST));
        let member = |(member, status): &(u32, WaitStatus)| {
            Some(RingError::Member { member: *member, how: bad_end(*status)? })
        };
        let error = killed
            .and_then(member)
            .or(refused)
            .or_else(|| strange.or(ends.first()).and_then(member));
        Self::Processes(left).kill();
        error
    }

    /// Ends all processes and waits for them. Threads end with the worker.
    pub fn kill(self) {
        let Self::Processes(pids) = self else { return };
        for pid in &pids {
            // One that is gone already is what we want.
            let _ = kill_process(*pid, Signal::KILL);
        }
        for pid in pids {
            reap(pid, WaitOptions::empty());
        }
    }
}

/// The first member to which the kernel refused something.
fn refusal(area: &SharedArea) -> Option<RingError> {
    area.cells().iter().enumerate().find_map(|(member, cell)| {
        let errno = cell.errno.load(Ordering::Acquire);
        let how = std::io::Error::from_raw_os_error(errno as i32).to_string();
        (errno != 0).then_some(RingError::Member { member: member as u32, how })
    })
}

fn reap(pid: Pid, options: WaitOptions) -> Option<WaitStatus> {
    loop {
        match waitpid(Some(pid), options) {
            Ok(found) => return found.map(|(_, status)| status),
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

fn bad_end(status: WaitStatus) -> Option<String> {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(0), _) => None,
        (Some(code), _) => Some(status_words(code)),
        (_, Some(9)) => Some(
            "it was killed by signal 9; if nobody did that, the kernel ran out of memory (see dmesg)"
                .to_string(),
        ),
        (_, Some(signal)) => Some(format!("it was killed by signal {signal}")),
        _ => Some(format!("its wait status is {status:?}")),
    }
}

fn status_words(status: i32) -> String {
    match status {
        STATUS_LOST => "it lost the token".to_string(),
        STATUS_ORPHAN => "its leader was gone".to_string(),
        STATUS_PLACE => "it could not be put on its CPU".to_string(),
        other => format!("exit status {other}"),
    }
}
