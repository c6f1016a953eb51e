//! The kernel's counters of each member, read from outside while the ring stands still, so that no
//! member runs an instruction for it.

use std::array::from_fn;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rundata::ring::Counters;

use crate::procfs::{self, FileText, UnreadableFile};
use crate::sys::{TaskId, cpu_clocks_ns};

/// Voluntary and involuntary switches, and migrations.
type SwitchesAndMigrations = ([u64; 2], Option<u64>);
/// Minor and major faults.
type Faults = [u64; 2];

/// Counters since the start of a task, or their sum over tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterSnapshot {
    /// Voluntary and involuntary switches, minor and major faults, CPU time, its ticks in user
    /// mode, all its ticks. Times are in nanoseconds.
    counts: [u64; 7],
    migrations: Option<u64>,
    run_delay_ns: Option<u64>,
}

impl CounterSnapshot {
    /// Builds a snapshot of one task.
    fn new(
        switches: SwitchesAndMigrations,
        [minor, major]: Faults,
        run_delay_ns: Option<u64>,
        clocks: [u64; 3],
    ) -> Self {
        let ([voluntary, involuntary], migrations) = switches;
        let [cpu, user, both] = clocks;
        let counts = [voluntary, involuntary, minor, major, cpu, user, both];
        Self { counts, migrations, run_delay_ns }
    }

    /// Sums the counters of tasks that sleep; waits for each that does not sleep yet.
    pub fn of_resting(tasks: &[TaskId]) -> Result<Self, UnreadableFile> {
        let mut sum = Self { migrations: Some(0), run_delay_ns: Some(0), ..Self::default() };
        for task in tasks {
            let faults = wait_for_sleep(*task)?;
            let clocks = clocks_ns(*task)?;
            sum = sum.plus(&Self::new(switches_of(*task)?, faults, run_delay_ns(*task), clocks));
        }
        Ok(sum)
    }

    /// Reads the calling thread's counters, the clocks last, before a batch.
    pub fn of_self_before(task: TaskId) -> Result<Self, UnreadableFile> {
        let ((_, faults), switches) = (stat(&text(task, "stat")?)?, switches_of(task)?);
        Ok(Self::new(switches, faults, run_delay_ns(task), clocks_ns(task)?))
    }

    /// Reads the calling thread's counters, the clocks first, after a batch.
    pub fn of_self_after(task: TaskId) -> Result<Self, UnreadableFile> {
        let (clocks, (_, faults)) = (clocks_ns(task)?, stat(&text(task, "stat")?)?);
        Ok(Self::new(switches_of(task)?, faults, run_delay_ns(task), clocks))
    }

    /// Adds two snapshots. Migrations and run delay are known only if they are in both.
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            counts: from_fn(|index| self.counts[index] + other.counts[index]),
            migrations: sum_known(self.migrations, other.migrations),
            run_delay_ns: sum_known(self.run_delay_ns, other.run_delay_ns),
        }
    }

    /// Returns what was counted from `before` to `self`, of the same tasks.
    pub fn since(&self, before: &Self) -> Counters {
        let counted: [u64; 7] =
            from_fn(|index| self.counts[index].saturating_sub(before.counts[index]));
        let [voluntary, involuntary, minor_faults, major_faults, cpu_ns, user, both] = counted;
        // The kernel splits each task's precise sum by that task's ticks (cputime_adjust), and
        // counts all time of a task without ticks as user time. The whole ring has enough ticks.
        let mut user_ns = None;
        if both > 0 {
            let share_ns = u128::from(cpu_ns) * u128::from(user.min(both)) / u128::from(both);
            user_ns = Some(share_ns as u64);
        }
        Counters {
            voluntary,
            involuntary,
            migrations: known_difference(self.migrations, before.migrations),
            minor_faults,
            major_faults,
            cpu_ns,
            user_ns,
            system_ns: user_ns.map(|user| cpu_ns - user),
            run_delay_ns: known_difference(self.run_delay_ns, before.run_delay_ns),
            halts: None,
        }
    }
}

/// Adds two counts if both are known.
fn sum_known(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    Some(a? + b?)
}

/// Subtracts two counts if both are known.
fn known_difference(after: Option<u64>, before: Option<u64>) -> Option<u64> {
    Some(after?.saturating_sub(before?))
}

/// Reads a task's CPU time in nanoseconds: the scheduler's sum, ticks in user mode, all ticks.
fn clocks_ns(task: TaskId) -> Result<[u64; 3], UnreadableFile> {
    cpu_clocks_ns(task.tid, task.pid == std::process::id() as i32).map_err(|errno| {
        UnreadableFile(format!("cannot read the CPU clock of task {}: {errno}", task.tid))
    })
}

/// Reads the time for which a task was runnable but waited for a CPU: the second number of
/// `schedstat` (Documentation/scheduler/sched-stats.rst). `None` if the kernel does not count it.
fn run_delay_ns(task: TaskId) -> Option<u64> {
    text(task, "schedstat").ok()?.text.split_whitespace().nth(1)?.parse().ok()
}

/// Upper bound of the size of these files, which have about two kilobytes.
const MAX_BYTES: u64 = 1 << 16;

/// Reads a file of a task in /proc.
fn text(task: TaskId, file: &str) -> Result<FileText, UnreadableFile> {
    let TaskId { pid, tid } = task;
    // A process with one thread has the same values in its own file, for which the kernel creates
    // two directory entries less.
    let path = if pid == tid && pid != std::process::id() as i32 {
        format!("/proc/{pid}/{file}")
    } else {
        format!("/proc/{pid}/task/{tid}/{file}")
    };
    match procfs::read_at_most(Path::new(&path), MAX_BYTES) {
        Ok(text) => Ok(FileText { path, text }),
        Err(error) => Err(UnreadableFile(format!("cannot read {path}: {error}"))),
    }
}

/// Reads switches and migrations from `sched`, or, if the kernel was built without that file, the
/// switches alone from `status`.
fn switches_of(task: TaskId) -> Result<SwitchesAndMigrations, UnreadableFile> {
    let in_sched = text(task, "sched").and_then(|text| switches(&text, IN_SCHED));
    in_sched.or_else(|_| switches(&text(task, "status")?, IN_STATUS))
}

const IN_SCHED: [&str; 2] = ["nr_voluntary_switches", "nr_involuntary_switches"];
const IN_STATUS: [&str; 2] = ["voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"];

fn switches(
    text: &FileText,
    [voluntary, involuntary]: [&str; 2],
) -> Result<SwitchesAndMigrations, UnreadableFile> {
    let counts = [text.number(voluntary)?, text.number(involuntary)?];
    Ok((counts, text.number("se.nr_migrations").ok()))
}

/// Reads state and page faults: fields 3, 10 and 12 of proc_pid_stat(5).
fn stat(text: &FileText) -> Result<(char, Faults), UnreadableFile> {
    let state = text.stat_field("state", |stat| stat.number(3))?;
    let minor = text.stat_field("minflt", |stat| stat.number(10))?;
    let major = text.stat_field("majflt", |stat| stat.number(12))?;
    Ok((state, [minor, major]))
}

/// Waits until a task sleeps; returns its faults. A member that has just sent the token may not
/// have reached its next wait, and its switch there belongs to the batch.
fn wait_for_sleep(task: TaskId) -> Result<Faults, UnreadableFile> {
    const ATTEMPTS: u32 = 2000;
    let mut attempt = 0;
    loop {
        let (state, faults) = stat(&text(task, "stat")?)?;
        match state {
            'S' | 'D' => return Ok(faults),
            state if attempt == ATTEMPTS || matches!(state, 'Z' | 'X') => {
                let TaskId { tid, .. } = task;
                let why =
                    format!("task {tid} is still running ({state}) though the token is elsewhere");
                return Err(UnreadableFile(why));
            }
            _ => thread::sleep(Duration::from_micros(if attempt < 20 { 50 } else { 1000 })),
        }
        attempt += 1;
    }
}

/// Reads the time stolen from `cpus` since boot in nanoseconds, in steps of the kernel's USER_HZ
/// (proc_stat(5)). `None` if /proc/stat has no steal column or lacks one of the CPUs.
pub fn steal_ns(cpus: &[u32]) -> Option<u64> {
    procfs::cpu_times_ns(&fs::read_to_string("/proc/stat").ok()?, cpus)[3]
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHED: &str = "ring (7, #threads: 1)\n---\nse.nr_migrations      :   3\n\
        nr_switches  : 30\nnr_voluntary_switches    :   20\nnr_involuntary_switches  :  10\n";

    fn file(text: &str) -> FileText {
        FileText { path: "/proc/7/task/7/file".to_string(), text: text.to_string() }
    }

    #[test]
    fn both_kinds_of_switches_and_migrations_are_read() {
        let read = switches(&file(SCHED), IN_SCHED).unwrap();
        assert_eq!(read, ([20, 10], Some(3)));
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t2\n";
        let read = switches(&file(status), IN_STATUS).unwrap();
        assert_eq!(read, ([5, 2], None));
        let none = switches(&file(""), IN_STATUS).unwrap_err().to_string();
        assert_eq!(none, "/proc/7/task/7/file has no readable 'voluntary_ctxt_switches'");
    }

    #[test]
    fn stat_is_read_behind_any_name() {
        let text = "12 (a) b (c)) S 1 2 3 4 5 6 111 8 222 10 11 12";
        let (state, faults) = stat(&file(text)).unwrap();
        assert_eq!((state, faults), ('S', [111, 222]));
        for bad in ["", "12 x S 1", "12 (a) S 1 2", "12 (a) S 1 2 3 4 5 6 x 8 9"] {
            assert!(stat(&file(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_split_follows_the_ticks_of_the_whole_ring() {
        let of = |clocks| CounterSnapshot::new(([0, 0], None), [0, 0], Some(5), clocks);
        let before = of([100, 0, 0]);
        assert_eq!(of([1100, 0, 0]).since(&before).user_ns, None, "no tick, no split");
        let after = of([1100, 4, 16]);
        let counters = after.since(&before);
        assert_eq!((counters.user_ns, counters.system_ns), (Some(250), Some(750)));
        assert_eq!((counters.migrations, counters.run_delay_ns), (None, Some(0)));
    }
}
