//! What the kernel counts for each member, read from outside while the ring is idle, so that
//! no member runs an instruction for it.

use std::array::from_fn;
use std::fs;
use std::thread;
use std::time::Duration;

use model::ring::Counters;

use crate::procfs::{self, Stat};
use crate::sys::{CpuClock, Task, cpu_clock_ns};

/// A counter that could not be read: which file or clock, and why.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct CountError(String);

/// Voluntary and involuntary switches, and migrations.
type Switches = ([u64; 2], Option<u64>);
/// Minor and major faults.
type Faults = [u64; 2];

/// Counters since the start of a task, or their sum over tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Both kinds of switches, both kinds of faults, CPU time, its ticks in user mode, all its ticks. Times are in
    /// nanoseconds.
    counts: [u64; 7],
    migrations: Option<u64>,
}

impl Snapshot {
    fn new(switches: Switches, [minor, major]: Faults, clocks: [u64; 3]) -> Self {
        let ([voluntary, involuntary], migrations) = switches;
        let [cpu, user, both] = clocks;
        Self { counts: [voluntary, involuntary, minor, major, cpu, user, both], migrations }
    }

    /// The sum over tasks that are all at rest: each is waited for if it is still on its way there.
    pub fn of_resting(tasks: &[Task]) -> Result<Self, CountError> {
        let mut sum = Self { migrations: Some(0), ..Self::default() };
        for task in tasks {
            let faults = rest(*task)?;
            let clocks = clocks_ns(*task)?;
            sum = sum.plus(&Self::new(switches_of(*task)?, faults, clocks));
        }
        Ok(sum)
    }

    /// The calling thread's own, with the clocks read last: for the moment before a batch.
    pub fn of_self_before(task: Task) -> Result<Self, CountError> {
        let ((_, faults), switches) = (stat(task)?, switches_of(task)?);
        Ok(Self::new(switches, faults, clocks_ns(task)?))
    }

    /// The calling thread's own, with the clocks read first: for the moment after a batch.
    pub fn of_self_after(task: Task) -> Result<Self, CountError> {
        let (clocks, (_, faults)) = (clocks_ns(task)?, stat(task)?);
        Ok(Self::new(switches_of(task)?, faults, clocks))
    }

    /// The sum. Migrations of a sum are known only where those of every part are.
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            counts: from_fn(|which| self.counts[which] + other.counts[which]),
            migrations: self.migrations.zip(other.migrations).map(|(a, b)| a + b),
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
        Counters {
            voluntary,
            involuntary,
            migrations: self.migrations.zip(before.migrations).map(|(a, b)| a.saturating_sub(b)),
            minor_faults,
            major_faults,
            cpu_ns,
            user_ns,
            system_ns: user_ns.map(|user| cpu_ns - user),
        }
    }
}

/// The scheduler's sum, the ticks in user mode, all ticks.
fn clocks_ns(task: Task) -> Result<[u64; 3], CountError> {
    let thread = task.pid == std::process::id() as i32;
    let read = |which| {
        cpu_clock_ns(task.tid, thread, which).map_err(|errno| {
            CountError(format!("cannot read the CPU clock of task {}: {errno}", task.tid))
        })
    };
    Ok([read(CpuClock::Precise)?, read(CpuClock::TicksUser)?, read(CpuClock::TicksUserSystem)?])
}

/// What `parse` finds in a task's file; its error names what is missing.
fn read<T>(
    task: Task,
    file: &str,
    parse: impl Fn(&str) -> Result<T, &'static str>,
) -> Result<T, CountError> {
    let path = format!("/proc/{}/task/{}/{file}", task.pid, task.tid);
    let text = fs::read_to_string(&path);
    let text = text.map_err(|error| CountError(format!("cannot read {path}: {error}")))?;
    parse(&text).map_err(|item| CountError(format!("{path} has no readable '{item}'")))
}

/// Switches and migrations: from `sched`, which has both, or where the kernel was built without it
/// from `status`, which has the switches alone.
fn switches_of(task: Task) -> Result<Switches, CountError> {
    read(task, "sched", |text| switches(text, IN_SCHED))
        .or_else(|_| read(task, "status", |text| switches(text, IN_STATUS)))
}

const IN_SCHED: [&str; 2] = ["nr_voluntary_switches", "nr_involuntary_switches"];
const IN_STATUS: [&str; 2] = ["voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"];

fn switches(text: &str, names: [&'static str; 2]) -> Result<Switches, &'static str> {
    let number = |name| procfs::value(text, name)?.parse::<u64>().ok();
    let counts = [number(names[0]).ok_or(names[0])?, number(names[1]).ok_or(names[1])?];
    Ok((counts, number("se.nr_migrations")))
}

/// State and page faults.
fn stat(task: Task) -> Result<(char, Faults), CountError> {
    read(task, "stat", parse_stat)
}

/// Fields 3, 10 and 12 of proc_pid_stat(5).
fn parse_stat(text: &str) -> Result<(char, Faults), &'static str> {
    let stat = Stat::parse(text).ok_or("(name)")?;
    let minor = stat.number(10).ok_or("minflt")?;
    let major = stat.number(12).ok_or("majflt")?;
    Ok((stat.number(3).ok_or("state")?, [minor, major]))
}

/// Waits until a task sleeps, then gives its faults. A member that has just sent the token may not
/// have come to its next wait yet; its switch on the way there belongs to the batch.
fn rest(task: Task) -> Result<Faults, CountError> {
    const ATTEMPTS: u32 = 2000;
    let mut attempt = 0;
    loop {
        let (state, faults) = stat(task)?;
        match state {
            'S' | 'D' => return Ok(faults),
            state if attempt == ATTEMPTS || matches!(state, 'Z' | 'X') => {
                let Task { tid, .. } = task;
                let why =
                    format!("task {tid} is still running ({state}) though the token is elsewhere");
                return Err(CountError(why));
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

    #[test]
    fn both_kinds_of_switches_and_migrations_are_read() {
        let read = switches(SCHED, IN_SCHED).unwrap();
        assert_eq!(read, ([20, 10], Some(3)));
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t2\n";
        let read = switches(status, IN_STATUS).unwrap();
        assert_eq!(read, ([5, 2], None));
        assert_eq!(switches("", IN_STATUS), Err("voluntary_ctxt_switches"));
    }

    #[test]
    fn stat_is_read_behind_any_name() {
        let text = "12 (a) b (c)) S 1 2 3 4 5 6 111 8 222 10 11 12";
        let (state, faults) = parse_stat(text).unwrap();
        assert_eq!((state, faults), ('S', [111, 222]));
        for bad in ["", "12 x S 1", "12 (a) S 1 2", "12 (a) S 1 2 3 4 5 6 x 8 9"] {
            assert!(parse_stat(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_split_follows_the_ticks_of_the_whole_ring() {
        let of = |clocks| Snapshot::new(([0, 0], None), [0, 0], clocks);
        let before = of([100, 0, 0]);
        assert_eq!(of([1100, 0, 0]).since(&before).user_ns, None, "no tick, no split");
        let after = of([1100, 4, 16]);
        let counters = after.since(&before);
        assert_eq!((counters.user_ns, counters.system_ns), (Some(250), Some(750)));
        assert_eq!(counters.migrations, None);
    }
}
