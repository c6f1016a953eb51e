//! The members besides the leader, seen from the leader: their end, and what they died of.

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
/// Exit status of a member that could not be put on its CPU.
pub const STATUS_PLACE: i32 = 5;
/// It was refused the memory of its work.
pub const STATUS_MEMORY: i32 = 6;
/// Exit status of a process that panicked, as the standard library gives it.
const STATUS_PANIC: i32 = 101;

/// How often a post-mortem looks for a first end, before it says that there was none: a panic that
/// writes its stack on a busy machine takes its time.
const ATTEMPTS: u32 = 100;
/// Time before each look.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(20);

/// All members but the leader that the kernel knows, in the order of the ring. None where all run
/// in the leader's own thread.
#[derive(Default)]
pub struct OtherMembers(pub Vec<OtherMember>);

/// One of the others.
pub enum OtherMember {
    /// A child of the worker. Dropping it kills it.
    Process(ChildProcess),
    /// A thread of the worker.
    Thread(JoinHandle<i32>),
}

impl OtherMembers {
    /// The children whose ids the leader has left in the cells, the first ones of the ring.
    pub fn of_processes(area: &SharedArea) -> Self {
        let tids = area.cells().iter().skip(1).map(|cell| cell.tid.load(Ordering::Acquire) as i32);
        let pids = tids.map_while(Pid::from_raw);
        Self(pids.map(|pid| OtherMember::Process(ChildProcess(pid))).collect())
    }

    /// The members as tasks whose counters can be read. All must have started: a lap is proof.
    pub fn tasks(&self, area: &SharedArea) -> Vec<TaskId> {
        let own = std::process::id() as i32;
        let tids = area.cells().iter().skip(1).map(|cell| cell.tid.load(Ordering::Acquire) as i32);
        let task = |(other, tid): (&OtherMember, i32)| match other {
            OtherMember::Process(_) => TaskId { pid: tid, tid },
            OtherMember::Thread(_) => TaskId { pid: own, tid },
        };
        self.0.iter().zip(tids).map(task).collect()
    }

    /// Waits for all after the announced end.
    pub fn finish(self) -> Result<(), RingError> {
        for (member, other) in (1..).zip(self.0) {
            if let Some(how) = other.end().description(0) {
                return Err(ended_early(member, &how));
            }
        }
        Ok(())
    }

    /// Gives the cause of the error: a member that is gone shows as a lost token or, between
    /// batches, in its counters. Processes that are left are killed as they are dropped, threads
    /// end with the worker.
    pub fn end_after(self, error: RingError, area: &SharedArea) -> RingError {
        let by_a_death = match error {
            RingError::Lost(_) => true,
            // Where the counters of nobody can be read, no member has to be gone.
            RingError::Count(_) => Path::new("/proc/self/stat").exists(),
            _ => false,
        };
        if by_a_death { self.post_mortem(area).unwrap_or(error) } else { error }
    }

    /// After the token was lost: which member went first, if any did. Members that only noticed the
    /// loss come after one that was killed or refused.
    fn post_mortem(self, area: &SharedArea) -> Option<RingError> {
        let mut left: Vec<(u32, OtherMember)> = (1..).zip(self.0).collect();
        let (mut ends, mut found) = (Vec::new(), None);
        for _ in 0..ATTEMPTS {
            // The loss travels round the ring before it reaches the leader, but deaths are reported
            // when the kernel gets to it.
            std::thread::sleep(BETWEEN_ATTEMPTS);
            let mut still = Vec::new();
            for (member, other) in left {
                match other.try_end() {
                    Ok(end) => ends.push((member, end)),
                    Err(other) => still.push((member, other)),
                }
            }
            left = still;
            found = culprit(&ends, area);
            // The death that a member noticed may be reported after its own end: a process is gone
            // when all that it held is, its ends of the ring first.
            if found.as_ref().is_some_and(|culprit| !culprit.only_noticed) || left.is_empty() {
                break;
            }
        }
        found.map(|culprit| culprit.error)
    }
}

impl OtherMember {
    /// Its end, waited for.
    fn end(self) -> MemberExit {
        match self {
            Self::Process(child) => {
                child.end(WaitOptions::empty()).map_or(MemberExit::Status(0), MemberExit::of)
            }
            Self::Thread(handle) => MemberExit::Status(handle.join().unwrap_or(STATUS_PANIC)),
        }
    }

    /// Its end if it has come.
    fn try_end(self) -> Result<MemberExit, Self> {
        match self {
            Self::Process(child) => {
                child.end(WaitOptions::NOHANG).map(MemberExit::of).map_err(Self::Process)
            }
            Self::Thread(handle) if !handle.is_finished() => Err(Self::Thread(handle)),
            thread => Ok(thread.end()),
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
    /// Stopped ones are not asked for: it has ended in one of the two ways.
    fn of(status: Option<WaitStatus>) -> Self {
        let signal = status.and_then(WaitStatus::terminating_signal).map(Self::Signal);
        let code = || status.map_or(Some(0), WaitStatus::exit_status).unwrap_or(STATUS_LOST);
        signal.unwrap_or_else(|| Self::Status(code()))
    }

    /// Absent for one who had done its part. `errno` is what the member left, or 0.
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

/// Who went first, as far as it is known.
struct FirstLoss {
    error: RingError,
    /// It lost the token, as members do whose neighbour is gone.
    only_noticed: bool,
}

fn ended_early(member: u32, how: &str) -> RingError {
    RingError::Other(format!("member {member} ended early: {how}"))
}

/// Who of those that have ended, or were refused something and are about to, did so first: by what
/// is known of them, as times are not.
fn culprit(ends: &[(u32, MemberExit)], area: &SharedArea) -> Option<FirstLoss> {
    let errno = |member: u32| area.cells()[member as usize].errno.load(Ordering::Acquire);
    let about_to = (1..area.cells().len() as u32)
        .filter(|member| errno(*member) != 0 && ends.iter().all(|(ended, _)| ended != member))
        .map(|member| (member, MemberExit::Status(STATUS_LOST)));
    let rank = |(member, end): &(u32, MemberExit)| match end {
        MemberExit::Signal(_) => 0,
        _ if errno(*member) != 0 => 1,
        MemberExit::Status(STATUS_LOST) => 3,
        MemberExit::Status(_) => 2,
    };
    let bad = ends.iter().copied().chain(about_to);
    let bad = bad.filter(|(member, end)| end.description(errno(*member)).is_some());
    let (member, end) = bad.min_by_key(|one| (rank(one), one.0))?;
    let error = ended_early(member, &end.description(errno(member))?);
    Some(FirstLoss { error, only_noticed: rank(&(member, end)) == 3 })
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
        culprit(ends, &area).map(|culprit| culprit.error.to_string())
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
        let only_noticed = |ends: &[(u32, MemberExit)]| culprit(ends, &area).unwrap().only_noticed;
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
