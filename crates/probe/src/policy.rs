//! Scheduling policies: taking one, and what that needs.

use model::case::Policy;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::sys;

/// Gives the calling thread, and all that it forks or starts from now on, a policy at the priority
/// that the policy has here.
pub fn take(policy: Policy) -> Result<(), Errno> {
    let number = match policy {
        // Also the normal policy is set: the program may have been started under another.
        Policy::Other => libc::SCHED_OTHER,
        Policy::Batch => libc::SCHED_BATCH,
        Policy::Fifo => libc::SCHED_FIFO,
        Policy::Rr => libc::SCHED_RR,
    };
    sys::set_policy(number, policy.priority())
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

/// Whether the calling process may use `policy`; tried on a thread of its own, which then ends.
pub fn check(policy: Policy) -> Result<(), Errno> {
    let trial = std::thread::Builder::new().spawn(move || take(policy));
    let trial = trial.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::AGAIN))?;
    trial.join().unwrap_or(Err(Errno::INVAL))
}
