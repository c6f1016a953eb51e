//! Scheduling: policies, taking one and what that needs; as what a process was started.

use std::io;

use model::ring::Policy;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use serde::{Deserialize, Serialize};

use crate::procfs::StatFile;
use crate::stack::{THREAD_BYTES, room_for_thread};
use crate::sys;
use crate::{limits, placement};

/// The kernel's numbers of the policies (sched(7)).
const NUMBERS: [(Policy, i32); 4] = [
    (Policy::Other, libc::SCHED_OTHER),
    (Policy::Batch, libc::SCHED_BATCH),
    (Policy::Fifo, libc::SCHED_FIFO),
    (Policy::Rr, libc::SCHED_RR),
];

/// Gives the calling thread, and all that it forks or starts from now on, a policy at the priority
/// that the policy has here.
pub fn take(policy: Policy) -> Result<(), Errno> {
    take_at(policy, policy.priority())
}

/// As [`take`], at a priority of the caller's choice.
pub fn take_at(policy: Policy, priority: i32) -> Result<(), Errno> {
    let number = NUMBERS.into_iter().find(|(of, _)| *of == policy).map(|(_, number)| number);
    // SCHED_OTHER is set, too: the program may have been started under another.
    sys::set_policy(number.ok_or(Errno::INVAL)?, priority)
}

/// That a policy was refused, what it needs, and what there is of that.
pub fn describe_refusal(policy: Policy, errno: Errno) -> String {
    format!("policy {policy} was refused ({errno}): {}", describe_needs(policy, errno))
}

/// What a policy that was refused needs, and what there is of it. It is tried on a thread: with
/// EAGAIN or ENOMEM there was none.
pub fn describe_needs(policy: Policy, errno: Errno) -> String {
    if errno == Errno::NOMEM {
        return "no thread could be started to try it: there is not enough memory (ulimit -v)"
            .into();
    }
    if errno == Errno::AGAIN {
        return format!(
            "no thread could be started to try it. {}",
            limits::behind("thread start", errno)
        );
    }
    let limit = getrlimit(Resource::Rtprio).current;
    let limit = limit.map_or("unlimited".to_string(), |limit| limit.to_string());
    format!(
        "it needs CAP_SYS_NICE (run as root) or RLIMIT_RTPRIO of {} or more (ulimit -r; now \
         {limit})",
        policy.priority()
    )
}

/// The highest priority at which the calling process may use a real-time policy (sched(7)): the
/// kernel's highest, or what RLIMIT_RTPRIO allows without the privilege. Tried on a thread of its
/// own.
pub fn highest_priority(policy: Policy) -> Result<u32, Errno> {
    let may =
        |priority: u32| on_own_thread(move || take_at(policy, priority as i32)).map(|()| priority);
    let granted = getrlimit(Resource::Rtprio).current.unwrap_or(0).min(HIGHEST_PRIORITY.into());
    match (may(HIGHEST_PRIORITY), granted as u32) {
        (Err(errno), granted) if granted > 0 => may(granted).map_err(|_| errno),
        (highest, _) => highest,
    }
}

/// The highest real-time priority that a program may ask for (sched(7)).
const HIGHEST_PRIORITY: u32 = 99;

/// Whether the calling process may use `policy`; tried on a thread of its own, which then ends.
pub fn check(policy: Policy) -> Result<(), Errno> {
    on_own_thread(move || take(policy))
}

fn on_own_thread(
    attempt: impl FnOnce() -> Result<(), Errno> + Send + 'static,
) -> Result<(), Errno> {
    let attempt = room_for_thread(THREAD_BYTES)
        .and_then(|()| std::thread::Builder::new().stack_size(THREAD_BYTES).spawn(attempt));
    let attempt = attempt.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::AGAIN))?;
    attempt.join().unwrap_or(Err(Errno::INVAL))
}

/// What a process has from the process that started it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedulingState {
    /// Its id.
    pub pid: u32,
    /// The CPUs that it may run on, sorted.
    pub cpus: Vec<u32>,
    /// Its policy, by the kernel's number (sched(7)).
    pub policy: i32,
    /// Its real-time priority; 0 under a normal policy.
    pub priority: u32,
    /// Its nice value.
    pub nice: i32,
}

impl SchedulingState {
    /// That of the calling process.
    pub fn own() -> io::Result<Self> {
        let stat = std::fs::read_to_string("/proc/self/stat")?;
        let [nice, priority, policy] = fields(&stat).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "/proc/self/stat: fields are missing")
        })?;
        Ok(Self {
            pid: std::process::id(),
            cpus: placement::allowed_cpus()?,
            policy,
            priority: u32::try_from(priority).unwrap_or(0),
            nice,
        })
    }

    /// Its policy, where members of a ring can have it.
    pub fn policy(&self) -> Option<Policy> {
        NUMBERS.into_iter().find(|(_, number)| *number == self.policy).map(|(policy, _)| policy)
    }
}

/// Fields 19, 40 and 41 of proc_pid_stat(5): nice value, real-time priority, policy.
fn fields(stat: &str) -> Option<[i32; 3]> {
    let stat = StatFile::parse(stat)?;
    Some([stat.number(19)?, stat.number(40)?, stat.number(41)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_behind_the_name() {
        let numbers: Vec<String> = (4..=52).map(|number| number.to_string()).collect();
        let stat = format!("7 (a ) b) S {}", numbers.join(" "));
        assert_eq!(fields(&stat), Some([19, 40, 41]));
        assert_eq!(fields("7 (a) S 1 2"), None);
        assert_eq!(fields(""), None);
    }

    #[test]
    fn a_thread_that_could_not_be_started_is_no_missing_privilege() {
        let (thread, privilege) = (
            describe_refusal(Policy::Fifo, Errno::AGAIN),
            describe_refusal(Policy::Fifo, Errno::PERM),
        );
        assert!(thread.contains("RLIMIT_NPROC") && !thread.contains("CAP_SYS_NICE"), "{thread}");
        assert!(privilege.contains("CAP_SYS_NICE"), "{privilege}");
    }

    #[test]
    fn this_process_stands_somewhere() {
        let own = SchedulingState::own().expect("/proc/self/stat is readable");
        assert_eq!(own.pid, std::process::id());
        assert!(!own.cpus.is_empty());
    }
}
