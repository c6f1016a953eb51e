//! Burdens that make each switch of a ring dearer on purpose. The leader takes them before there
//! are members, which inherit them.

use std::os::fd::OwnedFd;

use rundata::ring::{Burden, RingCase};
use rustix::io::Errno;

use super::groups::CgroupLevels;
use super::link::RingError;
use crate::idle::{LATENCY_DEVICE, LatencyBound};
use crate::placement;
use crate::policy;
use crate::sys::{ChildProcess, count_own_switches, filter_nothing, set_policy, shield_branches};

/// A burden that was taken, released when this is dropped.
pub enum HeldBurden {
    /// A filter or a shield, which stays with the process.
    Permanent,
    /// A perf event.
    Event(#[allow(dead_code)] OwnedFd),
    /// Nested control groups.
    CgroupLevels(#[allow(dead_code)] CgroupLevels),
    /// A bound that allows no idle state.
    Awake(#[allow(dead_code)] LatencyBound),
    /// Processes that keep CPUs busy.
    Busy(#[allow(dead_code)] Vec<ChildProcess>),
}

/// Takes a burden for the calling process and all that it forks or starts.
pub fn take(burden: Burden, case: &RingCase) -> Result<HeldBurden, RingError> {
    take_or_explain(burden, case).map_err(|why| RingError::Other(format!("{burden}: {why}")))
}

/// Takes a burden. The error says why it is refused, and what helps.
fn take_or_explain(burden: Burden, case: &RingCase) -> Result<HeldBurden, String> {
    match burden {
        Burden::Seccomp => match filter_nothing() {
            Ok(()) => Ok(HeldBurden::Permanent),
            Err(errno) => Err(explain_refusal(burden, "seccomp", errno)),
        },
        Burden::Ibpb => match shield_branches() {
            Ok(()) => Ok(HeldBurden::Permanent),
            Err(errno) => Err(explain_refusal(burden, "prctl", errno)),
        },
        Burden::PerfEvent => match count_own_switches() {
            Ok(event) => Ok(HeldBurden::Event(event)),
            Err(errno) => Err(explain_refusal(burden, "perf_event_open", errno)),
        },
        Burden::Cgroup1 | Burden::Cgroup4 | Burden::Cgroup8 => {
            CgroupLevels::enter(burden.levels().unwrap_or(1)).map(HeldBurden::CgroupLevels)
        }
        Burden::Awake => match LatencyBound::hold(0) {
            Ok(bound) => Ok(HeldBurden::Awake(bound)),
            Err(error) => {
                Err(format!("{LATENCY_DEVICE}: {error} (run as root, or grant access to it)"))
            }
        },
        Burden::Busy => {
            let mut processes = Vec::new();
            for cpu in case.placement.cpus() {
                processes.push(keep_busy(cpu)?);
            }
            Ok(HeldBurden::Busy(processes))
        }
    }
}

/// Starts a process that runs on a CPU whenever no other task wants to.
fn keep_busy(cpu: u32) -> Result<ChildProcess, String> {
    ChildProcess::start_ready(
        || {
            // Under any other policy it would compete with the ring.
            let taken = placement::pin(&[cpu]).and_then(|()| set_policy(libc::SCHED_IDLE, 0));
            taken.map_err(|errno| format!("a process under SCHED_IDLE: {errno}"))
        },
        |()| {
            loop {
                std::hint::spin_loop();
            }
        },
    )
}

/// Explains why a burden's call was refused, and what helps.
fn explain_refusal(burden: Burden, call: &str, errno: Errno) -> String {
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

/// Checks that this machine grants a burden to members under the policy of `case`, in a process of
/// its own. The error says why not, and what helps. The calling process must be single-threaded.
pub fn check(burden: Burden, case: &RingCase) -> Result<(), String> {
    let child = ChildProcess::start_ready(
        || {
            // A kernel with real-time group scheduling has no real-time task in a new group.
            policy::take_at(case.policy, case.priority())
                .map_err(|errno| policy::describe_refusal(case.policy, errno))?;
            take(burden, case).map_err(|error| error.to_string())
        },
        drop,
    )?;
    child.join();
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rundata::placement::Placement;

    use super::*;
    use crate::ring::groups::PREFIX;
    use crate::sys::exit_now;
    use testing::Need;

    /// Whether a process that is forked under a burden finds that `look` holds; passed over where
    /// the burden is refused.
    fn holds_under(burden: Burden, look: impl Fn(&HeldBurden) -> bool) -> bool {
        let case = RingCase::of_processes(2, Placement::Same { cpu: 0 });
        if let Err(why) = check(burden, &case) {
            testing::skip(Need::Hardware("burdens"), why);
            return true;
        }
        let child = ChildProcess::start(|| {
            let Ok(held) = take(burden, &case) else { exit_now(2) };
            let grandchild = ChildProcess::start(|| exit_now(i32::from(!look(&held))));
            let is_so = grandchild.is_ok_and(ChildProcess::join);
            drop(held);
            exit_now(i32::from(!is_so));
        });
        child.unwrap().join()
    }

    /// What stands in a line of the process's own status.
    fn status(name: &str) -> Option<String> {
        let text = fs::read_to_string("/proc/self/status").ok()?;
        text.lines().find_map(|of| Some(of.strip_prefix(name)?.trim().to_string()))
    }

    #[test]
    fn members_are_filtered() {
        assert!(holds_under(Burden::Seccomp, |_| status("Seccomp:").as_deref() == Some("2")));
    }

    #[test]
    fn members_are_shielded() {
        let is_shielded = |of: String| of.contains("disabled");
        assert!(holds_under(Burden::Ibpb, |_| {
            status("SpeculationIndirectBranch:").is_none_or(is_shielded)
        }));
    }

    /// An event counts the switches of one that is forked under it, too: it is attached to it.
    #[test]
    fn switches_of_members_are_counted() {
        const SLEEPS: u64 = 20;
        let case = RingCase::of_processes(2, Placement::Same { cpu: 0 });
        let child = ChildProcess::start_ready(
            || {
                let held = take(Burden::PerfEvent, &case).map_err(|why| why.to_string())?;
                let nap = || std::thread::sleep(std::time::Duration::from_micros(100));
                let sleeper = ChildProcess::start(|| (0..SLEEPS).for_each(|_| nap()));
                sleeper.map_err(|why| why.to_string())?.join();
                let HeldBurden::Event(event) = held else { return Ok(0) };
                let mut count = [0; 8];
                rustix::io::read(event, &mut count).map_err(|why| why.to_string())?;
                Ok(u64::from_ne_bytes(count))
            },
            |count| exit_now(i32::from(count < SLEEPS)),
        );
        match child {
            Ok(child) => assert!(child.join()),
            Err(why) => testing::skip(Need::Hardware("burdens"), why),
        }
    }

    #[test]
    fn no_idle_state_is_entered() {
        assert!(holds_under(Burden::Awake, |held| {
            matches!(held, HeldBurden::Awake(bound) if bound.in_force_us() == Some(0))
        }));
    }

    /// Each CPU has one that gives way to all others (SCHED_IDLE: 5).
    #[test]
    fn who_keeps_a_cpu_busy_gives_way() {
        let gives_way = |of: &ChildProcess| {
            let stat = fs::read_to_string(format!("/proc/{}/stat", of.pid())).unwrap_or_default();
            let behind = stat.rsplit_once(')').map(|(_, behind)| behind.to_string());
            behind.is_some_and(|of| of.split_whitespace().nth(38) == Some("5"))
        };
        assert!(holds_under(Burden::Busy, |held| {
            matches!(held, HeldBurden::Busy(all) if all.len() == 1 && all.iter().all(gives_way))
        }));
    }

    #[test]
    fn members_are_so_many_levels_down_and_the_groups_are_gone_behind_them() {
        for burden in [Burden::Cgroup1, Burden::Cgroup4, Burden::Cgroup8] {
            let levels = burden.levels().unwrap() as usize;
            let depth = || {
                let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
                let own =
                    text.lines().find_map(|line| Some(line.split_once(PREFIX)?.1.to_string()));
                own.map_or(0, |own| own.split('/').count())
            };
            // One more where this process's own group is none of those that have the controller.
            assert!(holds_under(burden, |_| [levels, levels + 1].contains(&depth())), "{burden}");
        }
    }
}
