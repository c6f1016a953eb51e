//! Scheduling policies: taking one, what that needs, and the scheduling that a process inherited.

use std::io;

use rundata::ring::Policy;
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

/// Sets the policy of the calling thread, and of all that it forks or starts from now on, at the
/// priority that this program uses.
pub fn take(policy: Policy) -> Result<(), Errno> {
    take_at(policy, policy.priority())
}

/// Sets the policy like [`take`], at the given priority.
pub fn take_at(policy: Policy, priority: i32) -> Result<(), Errno> {
    let found = NUMBERS.into_iter().find(|(known, _)| *known == policy);
    let (_, number) = found.ok_or(Errno::INVAL)?;
    // Also for SCHED_OTHER: the program may have been started under another policy.
    sys::set_policy(number, priority)
}

/// Describes that a policy was refused, what it needs, and what is granted.
pub fn describe_refusal(policy: Policy, errno: Errno) -> String {
    format!("policy {policy} was refused ({errno}): {}", describe_needs(policy, errno))
}

/// Describes what a refused policy needs, and what is granted. Policies are tried on a thread: with
/// EAGAIN or ENOMEM it could not be started.
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

/// Returns the highest priority at which the calling process may use a real-time policy (sched(7)):
/// the kernel's highest, or what RLIMIT_RTPRIO allows without the privilege. Tries it on a thread
/// of its own.
pub fn highest_priority(policy: Policy) -> Result<u32, Errno> {
    let Err(errno) = try_priority(policy, HIGHEST_PRIORITY) else { return Ok(HIGHEST_PRIORITY) };
    let limit = getrlimit(Resource::Rtprio).current.unwrap_or(0);
    let granted = limit.min(HIGHEST_PRIORITY.into()) as u32;
    if granted == 0 || try_priority(policy, granted).is_err() {
        return Err(errno);
    }
    Ok(granted)
}

fn try_priority(policy: Policy, priority: u32) -> Result<(), Errno> {
    on_own_thread(move || take_at(policy, priority as i32))
}

/// Highest real-time priority of the kernel (sched(7)).
const HIGHEST_PRIORITY: u32 = 99;

/// Checks that the calling process may use `policy`. Tries it on a thread of its own.
pub fn check(policy: Policy) -> Result<(), Errno> {
    on_own_thread(move || take(policy))
}

/// Runs `attempt` on a thread of its own and waits for its end.
fn on_own_thread(
    attempt: impl FnOnce() -> Result<(), Errno> + Send + 'static,
) -> Result<(), Errno> {
    let attempt = room_for_thread(THREAD_BYTES)
        .and_then(|()| std::thread::Builder::new().stack_size(THREAD_BYTES).spawn(attempt));
    let attempt = attempt.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::AGAIN))?;
    attempt.join().unwrap_or(Err(Errno::INVAL))
}

/// Scheduling that a process inherited from the process that started it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedulingState {
    /// Process id.
    pub pid: u32,
    /// CPUs that it may run on, sorted.
    pub cpus: Vec<u32>,
    /// Policy, by the kernel's number (sched(7)).
    pub policy: i32,
    /// Real-time priority; 0 under a normal policy.
    pub priority: u32,
    /// Nice value.
    pub nice: i32,
}

impl SchedulingState {
    /// Reads the scheduling of the calling process.
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

    /// Returns the policy, if members of a ring can have it.
    pub fn policy(&self) -> Option<Policy> {
        let found = NUMBERS.into_iter().find(|(_, number)| *number == self.policy);
        found.map(|(policy, _)| policy)
    }
}

/// Reads fields 19, 40 and 41 of proc_pid_stat(5): nice value, real-time priority, policy.
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
