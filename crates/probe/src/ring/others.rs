//! The other members as the leader sees them: how they ended, and which one failed first.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, WaitOptions, WaitStatus};

use super::link::RingError;
use crate::sys::{ChildProcess, SharedArea, TaskId};

/// Exit status of a member that lost the token.
pub const STATUS_LOST: i32 = 3;
/// Exit status of a member whose leader was gone before it started.
pub const STATUS_ORPHAN: i32 = 4;
/// Exit status of a member that could not be moved to its CPU.
pub const STATUS_PLACE: i32 = 5;
/// Exit status of a member that was refused the memory of its work.
pub const STATUS_MEMORY: i32 = 6;
/// Exit status of a process that panicked, as the standard library gives it.
const STATUS_PANIC: i32 = 101;

/// Number of times that a post-mortem looks for members that have ended: a panic that prints its
/// stack on a busy machine may take long.
const ATTEMPTS: u32 = 100;
/// Time before each of these looks.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(20);

/// All members but the leader, in the order of the ring. Empty if all run in the leader's thread.
#[derive(Default)]
pub struct OtherMembers(pub Vec<OtherMember>);

/// A member that is not the leader.
pub enum OtherMember {
    /// A child of the worker. Dropping it kills it.
    Process(ChildProcess),
    /// A thread of the worker.
    Thread(JoinHandle<i32>),
}

impl OtherMembers {
    /// Builds the list from the process ids that the leader has stored in the cells. They are those
    /// of the first members of the ring, if not all were created.
    pub fn of_processes(area: &SharedArea) -> Self {
        let mut members = Vec::new();
        for cell in &area.cells()[1..] {
            let Some(pid) = Pid::from_raw(cell.tid.load(Ordering::Acquire) as i32) else { break };
            members.push(OtherMember::Process(ChildProcess(pid)));
        }
        Self(members)
    }

    /// Returns the tasks whose counters are read. All members must have started, which a lap
    /// proves.
    pub fn tasks(&self, area: &SharedArea) -> Vec<TaskId> {
        let own_pid = std::process::id() as i32;
        let mut tasks = Vec::with_capacity(self.0.len());
        for (member, cell) in self.0.iter().zip(&area.cells()[1..]) {
            let tid = cell.tid.load(Ordering::Acquire) as i32;
            let pid = match member {
                OtherMember::Process(_) => tid,
                OtherMember::Thread(_) => own_pid,
            };
            tasks.push(TaskId { pid, tid });
        }
        tasks
    }

    /// Waits for all members after the announced end.
    pub fn finish(self) -> Result<(), RingError> {
        for (number, member) in (1..).zip(self.0) {
            if let Some(how) = member.wait_for_exit().description(0) {
                return Err(ended_early(number, &how));
            }
        }
        Ok(())
    }

    /// Returns the cause of an error: a member that has ended shows as a lost token or, between
    /// batches, as counters that cannot be read. Processes that still run are killed when they are
    /// dropped; threads end with the worker.
    pub fn end_after(self, error: RingError, area: &SharedArea) -> RingError {
        let may_be_a_death = match error {
            RingError::Lost(_) => true,
            // If the leader's own counters cannot be read either, no member has to be gone.
            RingError::Count(_) => Path::new("/proc/self/stat").exists(),
            _ => false,
        };
        if may_be_a_death { self.post_mortem(area).unwrap_or(error) } else { error }
    }

    /// Finds the member that failed first after a loss of the token, if any did. Members that only
    /// noticed the loss rank behind one that was killed or refused something.
    fn post_mortem(self, area: &SharedArea) -> Option<RingError> {
        let mut running: Vec<(u32, OtherMember)> = (1..).zip(self.0).collect();
        let mut exits = Vec::new();
        let mut first_loss = None;
        for _ in 0..ATTEMPTS {
            // The loss travels round the ring to the leader, possibly before the kernel reports the
            // death that caused it.
            std::thread::sleep(BETWEEN_ATTEMPTS);
            let mut still_running = Vec::new();
            for (number, member) in running {
                match member.try_exit() {
                    Ok(exit) => exits.push((number, exit)),
                    Err(member) => still_running.push((number, member)),
                }
            }
            running = still_running;
            first_loss = find_first_loss(&exits, area);
            // A death may be reported after the end of the member that noticed it: a process closes
            // its ends of the ring before it is gone.
            let is_certain = first_loss.as_ref().is_some_and(|loss| !loss.only_noticed);
            if is_certain || running.is_empty() {
                break;
            }
        }
        first_loss.map(|loss| loss.error)
    }
}

impl OtherMember {
    /// Waits for the member's end.
    fn wait_for_exit(self) -> MemberExit {
        match self {
            Self::Process(child) => match child.end(WaitOptions::empty()) {
                Ok(status) => MemberExit::from_status(status),
                Err(_) => MemberExit::Status(0),
            },
            Self::Thread(handle) => MemberExit::Status(handle.join().unwrap_or(STATUS_PANIC)),
        }
    }

    /// Returns how the member ended, or the member if it still runs.
    fn try_exit(self) -> Result<MemberExit, Self> {
        match self {
            Self::Process(child) => match child.end(WaitOptions::NOHANG) {
                Ok(status) => Ok(MemberExit::from_status(status)),
                Err(child) => Err(Self::Process(child)),
            },
            Self::Thread(handle) if !handle.is_finished() => Err(Self::Thread(handle)),
            thread => Ok(thread.wait_for_exit()),
        }
    }
}

/// How a member ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemberExit {
    Status(i32),
    Signal(i32),
}

impl MemberExit {
    /// Reads a wait status: of a process that has ended, as stopped ones are not waited for. `None`
    /// is a process whose status is not known.
    fn from_status(status: Option<WaitStatus>) -> Self {
        let Some(status) = status else { return Self::Status(0) };
        match status.terminating_signal() {
            Some(signal) => Self::Signal(signal),
            None => Self::Status(status.exit_status().unwrap_or(STATUS_LOST)),
        }
    }

    /// Describes the exit, or returns `None` if the member had done its part. `errno` is what the
    /// member stored in its cell, or 0.
    fn description(self, errno: u32) -> Option<String> {
        let refused = std::io::Error::from_raw_os_error(errno as i32);
        Some(match self {
            Self::Signal(9) => {
                "it was killed by signal 9; if nobody did that, the kernel ran out of memory \
                 (see dmesg)"
                    .into()
            }
            Self::Signal(signal) => format!("it was killed by signal {signal}"),
            Self::Status(0) if errno == 0 => return None,
            Self::Status(STATUS_PANIC) => "it panicked".into(),
            Self::Status(STATUS_PLACE) => format!("it could not be put on its CPU: {refused}"),
            Self::Status(STATUS_MEMORY) => {
                format!("the memory of its work cannot be allocated: mmap: {refused}")
            }
            Self::Status(_) if errno != 0 => refused.to_string(),
            Self::Status(STATUS_LOST) => "it lost the token".into(),
            Self::Status(STATUS_ORPHAN) => "its leader was gone".into(),
            Self::Status(other) => format!("exit status {other}"),
        })
    }
}

/// The member that failed first, as far as it is known.
struct FirstLoss {
    error: RingError,
    /// Whether it only lost the token, as members do whose neighbour is gone.
    only_noticed: bool,
}

fn ended_early(member: u32, how: &str) -> RingError {
    RingError::Other(format!("member {member} ended early: {how}"))
}

/// Rank of a member that only lost the token.
const RANK_NOTICED: u32 = 3;

/// Ranks how a member ended: the lower, the more likely it failed first.
fn rank(exit: MemberExit, errno: u32) -> u32 {
    match exit {
        MemberExit::Signal(_) => 0,
        MemberExit::Status(_) if errno != 0 => 1,
        MemberExit::Status(STATUS_LOST) => RANK_NOTICED,
        MemberExit::Status(_) => 2,
    }
}

/// Finds the member that failed first, among those that have ended and those that were refused
/// something and are about to end. Goes by how they ended, as the times are not known.
fn find_first_loss(exits: &[(u32, MemberExit)], area: &SharedArea) -> Option<FirstLoss> {
    let mut suspects = exits.to_vec();
    for (number, cell) in (0..).zip(area.cells()).skip(1) {
        let has_ended = exits.iter().any(|(ended, _)| *ended == number);
        if cell.errno.load(Ordering::Acquire) != 0 && !has_ended {
            suspects.push((number, MemberExit::Status(STATUS_LOST)));
        }
    }
    let mut first: Option<(u32, u32, String)> = None;
    for (number, exit) in suspects {
        let errno = area.cells()[number as usize].errno.load(Ordering::Acquire);
        let Some(how) = exit.description(errno) else { continue };
        let rank = rank(exit, errno);
        if first.as_ref().is_none_or(|first| (rank, number) < (first.0, first.1)) {
            first = Some((rank, number, how));
        }
    }
    let (rank, number, how) = first?;
    Some(FirstLoss { error: ended_early(number, &how), only_noticed: rank == RANK_NOTICED })
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    fn blamed(ends: &[(u32, MemberExit)], refused: &[(u32, Errno)]) -> Option<String> {
        let area = SharedArea::new(5, false).ok()?;
        for (member, errno) in refused {
            let code = errno.raw_os_error() as u32;
            area.cells()[*member as usize].errno.store(code, Ordering::Relaxed);
        }
        find_first_loss(ends, &area).map(|loss| loss.error.to_string())
    }

    #[test]
    fn who_went_first_is_named_and_not_who_noticed() {
        let lost = MemberExit::Status(STATUS_LOST);
        let named = |ends: &[(u32, MemberExit)], refused: &[(u32, Errno)], words: &str| {
            assert_eq!(blamed(ends, refused).as_deref(), Some(words));
        };
        named(
            &[(1, lost), (2, MemberExit::Status(STATUS_PANIC))],
            &[],
            "member 2 ended early: it panicked",
        );
        named(&[(1, lost), (3, MemberExit::Status(101))], &[], "member 3 ended early: it panicked");
        named(&[(3, lost), (1, lost)], &[], "member 1 ended early: it lost the token");
        named(
            &[(1, lost), (2, MemberExit::Status(STATUS_PLACE)), (3, MemberExit::Status(0))],
            &[(2, Errno::INVAL)],
            "member 2 ended early: it could not be put on its CPU: Invalid argument (os error 22)",
        );
        named(
            &[(1, MemberExit::Signal(11)), (2, lost)],
            &[(2, Errno::NOMEM)],
            "member 1 ended early: it was killed by signal 11",
        );
        // Refused, and not yet gone.
        let no_memory = "member 4 ended early: Cannot allocate memory (os error 12)";
        named(&[(1, lost)], &[(4, Errno::NOMEM)], no_memory);
        assert_eq!(blamed(&[(1, MemberExit::Status(0))], &[]), None);
        assert_eq!(blamed(&[], &[]), None);
    }

    /// Whose death the others noticed may be reported later: it is waited for.
    #[test]
    fn who_only_lost_the_token_is_not_known_to_be_the_first() {
        let area = SharedArea::new(5, false).unwrap();
        let lost = MemberExit::Status(STATUS_LOST);
        let only_noticed =
            |ends: &[(u32, MemberExit)]| find_first_loss(ends, &area).unwrap().only_noticed;
        assert!(only_noticed(&[(2, lost)]) && only_noticed(&[(2, lost), (3, lost)]));
        assert!(!only_noticed(&[(2, lost), (1, MemberExit::Signal(9))]));
        assert!(!only_noticed(&[(2, lost), (3, MemberExit::Status(STATUS_PANIC))]));
        area.cells()[4].errno.store(Errno::NOMEM.raw_os_error() as u32, Ordering::Relaxed);
        assert!(!only_noticed(&[(2, lost)]));
    }

    #[test]
    fn a_thread_that_panicked_is_found_among_those_that_wait() {
        let area = SharedArea::new(3, false).unwrap();
        let (hold, held) = std::sync::mpsc::channel::<()>();
        let waits = std::thread::spawn(move || held.recv().map_or(STATUS_LOST, |()| 0));
        let panics =
            std::thread::spawn(|| -> i32 { std::panic::resume_unwind(Box::new("on purpose")) });
        let others = OtherMembers([waits, panics].map(OtherMember::Thread).into());
        let error = others.post_mortem(&area).unwrap();
        assert_eq!(error.to_string(), "member 2 ended early: it panicked");
        drop(hold);
    }
}
