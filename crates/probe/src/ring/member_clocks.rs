//! What the members of a ring on one CPU have used of it, for the leader to read between two
//! slices: where that is less than what passed, somebody else ran.

use model::ring::{Case, MOST_ASKED_MEMBERS};

use crate::sys::{CpuClock, TaskId, cpu_clock_ns, own_process_cpu_ns};

/// The clocks of all that is measured.
#[derive(Default)]
pub enum MemberClocks {
    /// Nobody is asked.
    #[default]
    Unknown,
    /// That of this process: all are its threads.
    Own,
    /// That of this process, and those of these.
    With(Vec<i32>),
}

impl MemberClocks {
    /// Of the ring of a case whose members beside the leader are `tasks`. Nothing is known where
    /// they may run at once, and then the time that passes is none's.
    pub fn of(case: &Case, tasks: &[TaskId]) -> Self {
        let own = std::process::id() as i32;
        let is_known = case.placement.is_one_cpu() && case.members <= MOST_ASKED_MEMBERS;
        match tasks.iter().all(|task| task.pid == own) {
            _ if !is_known => Self::Unknown,
            true => Self::Own,
            false => Self::With(tasks.iter().map(|task| task.pid).collect()),
        }
    }

    /// CPU time of all of them in nanoseconds, by the scheduler's precise sums; absent where it is
    /// not known.
    pub fn total_ns(&self) -> Option<u64> {
        match self {
            Self::Own => Some(own_process_cpu_ns()),
            Self::With(pids) => pids.iter().try_fold(own_process_cpu_ns(), |sum, pid| {
                Some(sum.wrapping_add(cpu_clock_ns(*pid, false, CpuClock::Precise).ok()?))
            }),
            Self::Unknown => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use model::placement::Placement;

    use super::*;

    fn case(members: u32, placement: Placement) -> Case {
        Case::of_processes(members, placement)
    }

    #[test]
    fn members_are_asked_where_they_take_turns_and_are_few() {
        let own = std::process::id() as i32;
        let (thread, process) = (TaskId { pid: own, tid: own }, TaskId { pid: 7, tid: 7 });
        let one = || Placement::Same { cpu: 0 };
        let of = |members, placement, tasks: &[TaskId]| {
            MemberClocks::of(&case(members, placement), tasks)
        };
        assert!(matches!(of(1, one(), &[]), MemberClocks::Own));
        assert!(matches!(of(2, one(), &[thread]), MemberClocks::Own));
        assert!(matches!(of(2, one(), &[process]), MemberClocks::With(pids) if pids == [7]));
        assert!(matches!(of(65, one(), &[process]), MemberClocks::Unknown));
        let two = Placement::Pinned { cpus: vec![0, 1], relation: None };
        assert!(matches!(of(2, two, &[process]), MemberClocks::Unknown));
        assert!(matches!(
            of(2, Placement::Free { cpus: vec![0, 1] }, &[thread]),
            MemberClocks::Unknown
        ));
    }

    #[test]
    fn the_time_of_each_is_in_the_sum() {
        assert_eq!(MemberClocks::Unknown.total_ns(), None);
        let own = std::process::id() as i32;
        let alone = MemberClocks::With(Vec::new()).total_ns().unwrap();
        let with_process = MemberClocks::With(vec![own]).total_ns().unwrap();
        assert!(with_process >= 2 * alone, "{alone} {with_process}");
        // A process that is not there has no clock, and nothing is known of all: ids end at 2^22
        // (proc_sys_kernel(5)).
        assert_eq!(MemberClocks::With(vec![(1 << 22) + 1]).total_ns(), None);
    }
}
