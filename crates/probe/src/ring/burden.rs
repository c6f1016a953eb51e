//! What is put on the switches of a ring on purpose, taken by the leader before there are members:
//! all of it goes on to them.

use std::os::fd::OwnedFd;

use model::ring::{Burden, Case};
use rustix::io::Errno;

use super::groups::Groups;
use super::link::RingError;
use crate::idle::{LATENCY_DEVICE, LatencyBound};
use crate::placement;
use crate::sys::{Child, count_own_switches, filter_nothing, set_policy, shield_branches};

/// A burden, as long as it lives; a filter and a shield stay with the process.
pub enum Held {
    /// It stays with the process.
    Kept,
    /// An event.
    Event(#[allow(dead_code)] OwnedFd),
    /// Control groups.
    Groups(#[allow(dead_code)] Groups),
    /// No idle state.
    Awake(#[allow(dead_code)] LatencyBound),
    /// Processes that keep CPUs busy.
    Busy(#[allow(dead_code)] Vec<Child>),
}

/// Takes it for the calling process and all that it forks or starts.
pub fn take(burden: Burden, case: &Case) -> Result<Held, RingError> {
    let refused = |why: String| RingError::Other(format!("{burden}: {why}"));
    let by = |call: &str, errno: Errno| refused(why_not(burden, call, errno));
    match burden {
        Burden::Seccomp => {
            filter_nothing().map_err(|errno| by("seccomp", errno)).map(|()| Held::Kept)
        }
        Burden::Ibpb => shield_branches().map_err(|errno| by("prctl", errno)).map(|()| Held::Kept),
        Burden::PerfEvent => {
            count_own_switches().map_err(|errno| by("perf_event_open", errno)).map(Held::Event)
        }
        Burden::Cgroup1 | Burden::Cgroup4 | Burden::Cgroup8 => {
            Groups::below(burden.levels().unwrap_or(1)).map_err(refused).map(Held::Groups)
        }
        Burden::Awake => {
            let held = LatencyBound::hold(0).map_err(|error| {
                refused(format!("{LATENCY_DEVICE}: {error} (run as root, or grant access to it)"))
            });
            held.map(Held::Awake)
        }
        Burden::Busy => {
            let cpus = case.placement.cpus();
            let busy: Result<Vec<Child>, Errno> = cpus.into_iter().map(keep_busy).collect();
            busy.map_err(|errno| by("fork", errno)).map(Held::Busy)
        }
    }
}

/// A process that runs on a CPU whenever nobody else wants to.
fn keep_busy(cpu: u32) -> Result<Child, Errno> {
    Child::start(move || {
        // Under any other policy it would be another load.
        let is_ready = placement::pin(&[cpu]).is_ok() && set_policy(libc::SCHED_IDLE, 0).is_ok();
        if is_ready {
            loop {
                std::hint::spin_loop();
            }
        }
    })
}

/// What stands behind a refusal, and what helps.
fn why_not(burden: Burden, call: &str, errno: Errno) -> String {
    let help = match (burden, errno) {
        (Burden::Seccomp, Errno::NOSYS | Errno::INVAL) => "this kernel lacks CONFIG_SECCOMP_FILTER",
        (Burden::Ibpb, Errno::NXIO | Errno::PERM) => {
            "the kernel leaves no choice to processes here (spectre_v2_user=prctl on its command \
             line, on a CPU with IBPB)"
        }
        (Burden::Ibpb, _) => "this CPU or kernel has no such control",
        (Burden::PerfEvent, Errno::ACCESS | Errno::PERM) => {
            "needs CAP_PERFMON, or kernel.perf_event_paranoid of 1 or less"
        }
        (Burden::PerfEvent, _) => "this kernel lacks CONFIG_PERF_EVENTS",
        _ => return format!("{call}: {errno}"),
    };
    format!("{call}: {errno}: {help}")
}

/// Whether this machine grants a burden: tried in a process of its own. If not, why, and what
/// helps. The calling process must be single-threaded.
pub fn check(burden: Burden, case: &Case) -> Result<(), String> {
    let try_it = || take(burden, case).map_err(|why| why.to_string());
    Child::start_ready(try_it, drop).map(|child| {
        child.join();
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use model::placement::Placement;

    use super::*;
    use crate::ring::groups::PREFIX;
    use crate::sys::exit_now;

    /// What a process forked under a burden says of itself; none where that is refused.
    fn under<T>(burden: Burden, look: impl Fn() -> bool, or: T) -> Result<bool, T> {
        let case = Case::of_processes(2, Placement::Same { cpu: 0 });
        if check(burden, &case).is_err() {
            return Err(or);
        }
        let child = Child::start(|| {
            let held = take(burden, &case);
            let grandchild = Child::start(|| exit_now(i32::from(!look())));
            let is_so = held.is_ok() && grandchild.is_ok_and(Child::join);
            drop(held);
            exit_now(i32::from(!is_so));
        });
        Ok(child.unwrap().join())
    }

    fn status(line: &str) -> bool {
        let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
        text.lines().any(|of| of.split_whitespace().collect::<Vec<_>>().join(" ") == line)
    }

    #[test]
    fn members_are_filtered() {
        assert_ne!(under(Burden::Seccomp, || status("Seccomp: 2"), ()), Ok(false));
        assert!(!status("Seccomp: 2") || status("Seccomp_filters: 1"), "only the child is");
    }

    #[test]
    fn members_are_shielded() {
        let shielded = || {
            let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
            let line = text.lines().find_map(|of| of.strip_prefix("SpeculationIndirectBranch:"));
            line.is_none_or(|of| of.contains("disabled"))
        };
        assert_ne!(under(Burden::Ibpb, shielded, ()), Ok(false));
    }

    #[test]
    fn members_are_so_many_levels_down_and_the_groups_are_gone_behind_them() {
        for burden in [Burden::Cgroup1, Burden::Cgroup4, Burden::Cgroup8] {
            let levels = burden.levels().unwrap() as usize;
            let name = || {
                let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
                let own =
                    text.lines().find_map(|line| Some(line.split_once(PREFIX)?.1.to_string()));
                // The process is in the innermost, and each below the first is called by its level.
                own.map_or(0, |own| own.split('/').count())
            };
            // One more where this process's own group is none of those that have the controller.
            let is_deep = || [levels, levels + 1].contains(&name());
            assert_ne!(under(burden, is_deep, ()), Ok(false), "{burden}");
        }
        let own = std::process::id().to_string();
        let left = super::super::groups::left().into_iter().filter(|of| of.contains(&own));
        assert_eq!(left.count(), 0);
    }
}
