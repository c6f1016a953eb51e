//! What the kernel counts for each member, read from outside while the ring is idle, so that
//! no member runs an instruction for it.

use std::array::from_fn;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use model::ring::Counters;

use crate::procfs::{self, FileText, UnreadableFile};
use crate::sys::{TaskId, cpu_clocks_ns};

/// Voluntary and involuntary switches, and migrations.
type Switches = ([u64; 2], Option<u64>);
/// Minor and major faults.
type Faults = [u64; 2];

/// Counters since the start of a task, or their sum over tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterSnapshot {
    /// Both kinds of switches, both kinds of faults, CPU time, its ticks in user mode, all its
    /// ticks. Times are in nanoseconds.
    counts: [u64; 7],
    migrations: Option<u64>,
    run_delay_ns: Option<u64>,
}

impl CounterSnapshot {
    fn new(
        switches: Switches,
        [minor, major]: Faults,
        run_delay_ns: Option<u64>,
        clocks: [u64; 3],
    ) -> Self {
        let ([voluntary, involuntary], migrations) = switches;
        let [cpu, user, both] = clocks;
        let counts = [voluntary, involuntary, minor, major, cpu, user, both];
        Self { counts, migrations, run_delay_ns }
    }

    /// The sum over tasks that are all at rest: each is waited for if it is still on its way there.
    pub fn of_resting(tasks: &[TaskId]) -> Result<Self, UnreadableFile> {
        let mut sum = Self { migrations: Some(0), run_delay_ns: Some(0), ..Self::default() };
        for task in tasks {
            let faults = rest(*task)?;
            let clocks = clocks_ns(*task)?;
            sum = sum.plus(&Self::new(switches_of(*task)?, faults, run_delay_ns(*task), clocks));
        }
        Ok(sum)
    }

    /// The calling thread's own, with the clocks read last: for the moment before a batch.
    pub fn of_self_before(task: TaskId) -> Result<Self, UnreadableFile> {
        let ((_, faults), switches) = (stat(&text(task, "stat")?)?, switches_of(task)?);
        Ok(Self::new(switches, faults, run_delay_ns(task), clocks_ns(task)?))
    }

    /// The calling thread's own, with the clocks read first: for the moment after a batch.
    pub fn of_self_after(task: TaskId) -> Result<Self, UnreadableFile> {
        let (clocks, (_, faults)) = (clocks_ns(task)?, stat(&text(task, "stat")?)?);
        Ok(Self::new(switches_of(task)?, faults, run_delay_ns(task), clocks))
    }

    /// The sum. Migrations and run delay of a sum are known only where those of every part are.
    pub fn plus(&self, other: &Self) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a + b);
        Self {
            counts: from_fn(|which| self.counts[which] + other.counts[which]),
            migrations: sum(self.migrations, other.migrations),
            run_delay_ns: sum(self.run_delay_ns, other.run_delay_ns),
        }
    }

    /// What was counted from `before` to `self`, of the same tasks.
    pub fn since(&self, before: &Self) -> Counters {
        let grown = from_fn(|which| self.counts[which].saturating_sub(before.counts[which]));
        let [voluntary, involuntary, minor_faults, major_faults, cpu_ns, user, both] = grown;
        // The kernel splits each task's precise sum by that task's own ticks (cputime_adjust), and
        // calls a task without ticks all user. Over the whole ring there are ticks enough.
        let user_ns = (both > 0)
            .then(|| (u128::from(cpu_ns) * u128::from(user.min(both)) / u128::from(both)) as u64);
        let difference = |after: Option<u64>, before| Some(after?.saturating_sub(before?));
        Counters {
            voluntary,
            involuntary,
            migrations: difference(self.migrations, before.migrations),
            minor_faults,
            major_faults,
            cpu_ns,
            user_ns,
            system_ns: user_ns.map(|user| cpu_ns - user),
            run_delay_ns: difference(self.run_delay_ns, before.run_delay_ns),
            halts: None,
        }
    }
}

/// The scheduler's sum, the ticks in user mode, all ticks.
fn clocks_ns(task: TaskId) -> Result<[u64; 3], UnreadableFile> {
    cpu_clocks_ns(task.tid, task.pid == std::process::id() as i32).map_err(|errno| {
        UnreadableFile(format!("cannot read the CPU clock of task {}: {errno}", task.tid))
    })
}

/// Time that a task could have run but waited for a CPU: the second number of `schedstat`
/// (Documentation/scheduler/sched-stats.rst). None where the kernel does not count it.
fn run_delay_ns(task: TaskId) -> Option<u64> {
    text(task, "schedstat").ok()?.text.split_whitespace().nth(1)?.parse().ok()
}

/// More than any of the files has: about two kilobytes, far fewer than a page.
const MOST_BYTES: u64 = 1 << 16;

fn text(task: TaskId, file: &str) -> Result<FileText, UnreadableFile> {
    let TaskId { pid, tid } = task;
    // Of a process of one thread its own file says the same, and the kernel makes two entries fewer
    // for it.
    let path = match pid == tid && pid != std::process::id() as i32 {
        true => format!("/proc/{pid}/{file}"),
        false => format!("/proc/{pid}/task/{tid}/{file}"),
    };
    match procfs::read_at_most(Path::new(&path), MOST_BYTES) {
        Ok(text) => Ok(FileText { path, text }),
        Err(error) => Err(UnreadableFile(format!("cannot read {path}: {error}"))),
    }
}

/// Switches and migrations: from `sched`, which has both, or where the kernel was built without it
/// from `status`, which has the switches alone.
fn switches_of(task: TaskId) -> Result<Switches, UnreadableFile> {
    let in_sched = text(task, "sched").and_then(|text| switches(&text, IN_SCHED));
    in_sched.or_else(|_| switches(&text(task, "status")?, IN_STATUS))
}

const IN_SCHED: [&str; 2] = ["nr_voluntary_switches", "nr_involuntary_switches"];
const IN_STATUS: [&str; 2] = ["voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"];

fn switches(
    text: &FileText,
    [voluntary, involuntary]: [&str; 2],
) -> Result<Switches, UnreadableFile> {
    let counts = [text.number(voluntary)?, text.number(involuntary)?];
    Ok((counts, text.number("se.nr_migrations").ok()))
}

/// State and page faults: fields 3, 10 and 12 of proc_pid_stat(5).
fn stat(text: &FileText) -> Result<(char, Faults), UnreadableFile> {
    let faults = |item, field| text.of_stat(item, |stat| stat.number(field));
    let state = text.of_stat("state", |stat| stat.number(3))?;
    Ok((state, [faults("minflt", 10)?, faults("majflt", 12)?]))
}

/// Waits until a task sleeps, then gives its faults. A member that has just sent the token may not
/// have come to its next wait yet; its switch on the way there belongs to the batch.
fn rest(task: TaskId) -> Result<Faults, UnreadableFile> {
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

/// Time stolen from `cpus` since boot in nanoseconds, in steps of the kernel's USER_HZ
/// (proc_stat(5)); absent where /proc/stat has no steal column or lacks one of the CPUs.
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
