//! Scheduling policies: taking one, and what that needs.

use model::case::Policy;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::sys;

/// Gives the calling thread, and all that it forks or starts from now on, a policy at the priority
/// that the policy has here.
pub fn take(policy: Policy) -> Result<(), Errno> {
    take_at(policy, policy.priority())
}

/// As [`take`], at a priority of the caller's choice.
pub fn take_at(policy: Policy, priority: i32) -> Result<(), Errno> {
    let number = match policy {
        // Also the normal policy is set: the program may have been started under another.
        Policy::Other => libc::SCHED_OTHER,
        Policy::Batch => libc::SCHED_BATCH,
        Policy::Fifo => libc::SCHED_FIFO,
        Policy::Rr => libc::SCHED_RR,
    };
    sys::set_policy(number, priority)
}

/// What a policy needs, and what there is of it.
pub fn needs(policy: Policy) -> String {
    let limit = getrlimit(Resource::Rtprio).current;
    let limit = limit.map_or("unlimited".to_string(), |limit| limit.to_string());
    format!(
        "it needs CAP_SYS_NICE (run as root) or RLIMIT_RTPRIO of {} or more (ulimit -r; now {limit})",
        policy.priority()
    )
}

/// The highest priority at which the calling process may use a real-time policy (sched(7)): the
/// kernel's highest, or what RLIMIT_RTPRIO allows without the privilege. Tried on a thread of its own.
pub fn highest(policy: Policy) -> Result<u32, Errno> {
    let may = |priority: u32| {
        let attempt = move || take_at(policy, i32::try_from(priority).unwrap_or(i32::MAX));
        on_own_thread(attempt)
    };
    let granted = getrlimit(Resource::Rtprio).current.unwrap_or(0).min(HIGHEST_PRIORITY.into());
    let granted = u32::try_from(granted).unwrap_or(0);
    match may(HIGHEST_PRIORITY) {
        Ok(()) => Ok(HIGHEST_PRIORITY),
        Err(_) if granted > 0 && may(granted).is_ok() => Ok(granted),
        Err(errno) => Err(errno),
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
    let attempt = std::thread::Builder::new().spawn(attempt);
    let attempt = attempt.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::AGAIN))?;
    attempt.join().unwrap_or(Err(Errno::INVAL))
}
