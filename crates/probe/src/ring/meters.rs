//! Clocks and counters that the leader of a ring reads around each slice, outside of its time: the
//! CPU time that the members of a ring on one CPU have used, and events of that CPU. If the CPU
//! time is less than the time that passed, a competing task ran.

use rundata::ring::{MAX_ASKED_MEMBERS, RingCase};

use crate::sys::{CpuClock, CpuEvents, TaskId, cpu_clock_ns, own_process_cpu_ns};

/// Clocks and counters of one ring.
#[derive(Default)]
pub struct SliceMeters {
    /// The members' CPU clocks.
    pub clocks: MemberClocks,
    /// Hardware and software events of the CPU, if the plan asks for any.
    pub events: Option<CpuEvents>,
}

impl SliceMeters {
    /// Builds meters that read CPU clocks only.
    pub fn clocks_only(clocks: MemberClocks) -> Self {
        Self { clocks, events: None }
    }

    /// Builds meters that read the events outside of the clocks, and measures what two readings of
    /// the clocks add to the events, to subtract it later.
    pub fn with_events(clocks: MemberClocks, mut events: Option<CpuEvents>) -> Self {
        if let Some(events) = &mut events {
            events.measure_empty(|| {
                clocks.total_ns();
                clocks.total_ns();
            });
        }
        Self { clocks, events }
    }
}

/// CPU clocks of all members.
#[derive(Default)]
pub enum MemberClocks {
    /// No clock is read.
    #[default]
    Unknown,
    /// The clock of this process: all members are its threads.
    ThisProcess,
    /// The clocks of this process and of these others.
    WithProcesses(Vec<i32>),
}

impl MemberClocks {
    /// Chooses the clocks of a ring whose members beside the leader are `tasks`. They are unknown
    /// if members may run at the same time: their CPU time then exceeds the time that passes.
    pub fn choose(case: &RingCase, tasks: &[TaskId]) -> Self {
        if !case.placement.is_one_cpu() || case.members > MAX_ASKED_MEMBERS {
            return Self::Unknown;
        }
        let own_pid = std::process::id() as i32;
        if tasks.iter().all(|task| task.pid == own_pid) {
            Self::ThisProcess
        } else {
            Self::WithProcesses(tasks.iter().map(|task| task.pid).collect())
        }
    }

    /// Returns the CPU time of all members in nanoseconds, by the scheduler's precise sums, if it
    /// is known.
    pub fn total_ns(&self) -> Option<u64> {
        match self {
            Self::Unknown => None,
            Self::ThisProcess => Some(own_process_cpu_ns()),
            Self::WithProcesses(pids) => {
                let mut sum_ns = own_process_cpu_ns();
                for pid in pids {
                    let cpu_ns = cpu_clock_ns(*pid, false, CpuClock::Precise).ok()?;
                    sum_ns = sum_ns.wrapping_add(cpu_ns);
                }
                Some(sum_ns)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rundata::placement::Placement;

    use super::*;

    fn case(members: u32, placement: Placement) -> RingCase {
        RingCase::of_processes(members, placement)
    }

    #[test]
    fn members_are_asked_where_they_take_turns_and_are_few() {
        let own = std::process::id() as i32;
        let (thread, process) = (TaskId { pid: own, tid: own }, TaskId { pid: 7, tid: 7 });
        let one = || Placement::Same { cpu: 0 };
        let choose = |members, placement, tasks: &[TaskId]| {
            MemberClocks::choose(&case(members, placement), tasks)
        };
        assert!(matches!(choose(1, one(), &[]), MemberClocks::ThisProcess));
        assert!(matches!(choose(2, one(), &[thread]), MemberClocks::ThisProcess));
        assert!(
            matches!(choose(2, one(), &[process]), MemberClocks::WithProcesses(pids) if pids == [7])
        );
        assert!(matches!(choose(65, one(), &[process]), MemberClocks::Unknown));
        let two = Placement::Pinned { cpus: vec![0, 1], relation: None };
        assert!(matches!(choose(2, two, &[process]), MemberClocks::Unknown));
        assert!(matches!(
            choose(2, Placement::Free { cpus: vec![0, 1] }, &[thread]),
            MemberClocks::Unknown
        ));
    }

    #[test]
    fn the_time_of_each_is_in_the_sum() {
        assert_eq!(MemberClocks::Unknown.total_ns(), None);
        let own = std::process::id() as i32;
        let alone = MemberClocks::WithProcesses(Vec::new()).total_ns().unwrap();
        let with_process = MemberClocks::WithProcesses(vec![own]).total_ns().unwrap();
        assert!(with_process >= 2 * alone, "{alone} {with_process}");
        // A process that is not there has no clock, and nothing is known of all: ids end at 2^22
        // (proc_sys_kernel(5)).
        assert_eq!(MemberClocks::WithProcesses(vec![(1 << 22) + 1]).total_ns(), None);
    }
}
