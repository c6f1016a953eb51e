//! What the kernel counts for each member, read from outside while the ring stands still, so that
//! no member runs an instruction for it.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use model::sample::Counters;

use crate::procfs::{self, Stat, TICK_NS};
use crate::sys::{CpuClock, cpu_clock_ns};

/// A thread whose counters are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its process.
    pub pid: i32,
    /// Its thread id; the process id for a member that is a process.
    pub tid: i32,
}

/// A counter that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum CountError {
    /// The file could not be read.
    #[error("cannot read {path}: {error}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The file does not have the item, or not as a number.
    #[error("{path} has no readable '{item}'")]
    Item {
        /// The file.
        path: PathBuf,
        /// What was looked for.
        item: &'static str,
    },
    /// A CPU clock could not be read.
    #[error("cannot read the CPU clock of task {tid}: {errno}")]
    Clock {
        /// Whose clock.
        tid: i32,
        /// Why.
        errno: rustix::io::Errno,
    },
    /// A member did not come to rest.
    #[error("task {tid} is still running ({state}) though the token is elsewhere")]
    Restless {
        /// Which one.
        tid: i32,
        /// Its state as in proc_pid_stat(5).
        state: char,
    },
}

/// Counters since the start of a task, or their sum over tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    voluntary: u64,
    involuntary: u64,
    migrations: Option<u64>,
    minor_faults: u64,
    major_faults: u64,
    cpu_ns: u64,
    tick_user_ns: u64,
    tick_user_system_ns: u64,
}

impl Snapshot {
    /// The sum over tasks that are all at rest: each is waited for if it is still on its way there.
    pub fn of_resting(tasks: &[Task]) -> Result<Self, CountError> {
        let mut sum = Self { migrations: Some(0), ..Self::default() };
        for task in tasks {
            let faults = rest(*task)?;
            sum = sum.plus(&Self::clocks(*task)?.plus(&switches(*task)?).plus(&faults));
        }
        Ok(sum)
    }

    /// The calling thread's own, with the clocks read last: for the moment before a batch.
    pub fn of_self_before(task: Task) -> Result<Self, CountError> {
        let (_, faults) = stat(task)?;
        let counts = switches(task)?.plus(&faults);
        Ok(Self::clocks(task)?.plus(&counts))
    }

    /// The calling thread's own, with the clocks read first: for the moment after a batch.
    pub fn of_self_after(task: Task) -> Result<Self, CountError> {
        let clocks = Self::clocks(task)?;
        let (_, faults) = stat(task)?;
        Ok(clocks.plus(&switches(task)?).plus(&faults))
    }

    fn clocks(task: Task) -> Result<Self, CountError> {
        let thread = task.pid == std::process::id() as i32;
        let read = |which| {
            cpu_clock_ns(task.tid, thread, which)
                .map_err(|errno| CountError::Clock { tid: task.tid, errno })
        };
        Ok(Self {
            cpu_ns: read(CpuClock::Precise)?,
            tick_user_ns: read(CpuClock::TicksUser)?,
            tick_user_system_ns: read(CpuClock::TicksUserSystem)?,
            migrations: Some(0),
            ..Self::default()
        })
    }

    /// The sum. Migrations of a sum are known only where those of every part are.
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            voluntary: self.voluntary + other.voluntary,
            involuntary: self.involuntary + other.involuntary,
            migrations: self.migrations.zip(other.migrations).map(|(a, b)| a + b),
            minor_faults: self.minor_faults + other.minor_faults,
            major_faults: self.major_faults + other.major_faults,
            cpu_ns: self.cpu_ns + other.cpu_ns,
            tick_user_ns: self.tick_user_ns + other.tick_user_ns,
            tick_user_system_ns: self.tick_user_system_ns + other.tick_user_system_ns,
        }
    }

    /// What was counted from `before` to `self`, of the same tasks.
    pub fn since(&self, before: &Self) -> Counters {
        let cpu_ns = self.cpu_ns.saturating_sub(before.cpu_ns);
        let user = self.tick_user_ns.saturating_sub(before.tick_user_ns);
        let both = self.tick_user_system_ns.saturating_sub(before.tick_user_system_ns);
        // The kernel splits each task's precise sum by that task's own ticks (cputime_adjust), and
        // calls a task without ticks all user. Over the whole ring there are ticks enough.
        let user_ns = (both > 0)
            .then(|| (u128::from(cpu_ns) * u128::from(user.min(both)) / u128::from(both)) as u64);
        Counters {
            voluntary: self.voluntary.saturating_sub(before.voluntary),
            involuntary: self.involuntary.saturating_sub(before.involuntary),
            migrations: self.migrations.zip(before.migrations).map(|(a, b)| a.saturating_sub(b)),
            minor_faults: self.minor_faults.saturating_sub(before.minor_faults),
            major_faults: self.major_faults.saturating_sub(before.major_faults),
            cpu_ns,
            user_ns,
            system_ns: user_ns.map(|user| cpu_ns - user),
        }
    }
}

fn path(task: Task, file: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{}/task/{}/{file}", task.pid, task.tid))
}

fn read(path: &PathBuf) -> Result<String, CountError> {
    fs::read_to_string(path).map_err(|error| CountError::Read { path: path.clone(), error })
}

/// Switches and migrations: from `sched`, which has both, or where the kernel was built without it
/// from `status`, which has the switches alone.
fn switches(task: Task) -> Result<Snapshot, CountError> {
    let sched = path(task, "sched");
    let (path, text, names) = match read(&sched) {
        Ok(text) => (sched, text, ["nr_voluntary_switches", "nr_involuntary_switches"]),
        Err(_) => {
            let status = path(task, "status");
            let text = read(&status)?;
            (status, text, ["voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"])
        }
    };
    parse_switches(&text, names).map_err(|item| CountError::Item { path, item })
}

fn parse_switches(text: &str, names: [&'static str; 2]) -> Result<Snapshot, &'static str> {
    let number = |name| procfs::value(text, name)?.parse::<u64>().ok();
    Ok(Snapshot {
        voluntary: number(names[0]).ok_or(names[0])?,
        involuntary: number(names[1]).ok_or(names[1])?,
        migrations: number("se.nr_migrations"),
        ..Snapshot::default()
    })
}

/// State and page faults (proc_pid_stat(5), fields 3, 10 and 12).
fn stat(task: Task) -> Result<(char, Snapshot), CountError> {
    let path = path(task, "stat");
    let text = read(&path)?;
    parse_stat(&text).map_err(|item| CountError::Item { path, item })
}

fn parse_stat(text: &str) -> Result<(char, Snapshot), &'static str> {
    let stat = Stat::parse(text).ok_or("(name)")?;
    let state = stat.state().ok_or("state")?;
    let faults = Snapshot {
        minor_faults: stat.number(10).ok_or("minflt")?,
        major_faults: stat.number(12).ok_or("majflt")?,
        migrations: Some(0),
        ..Snapshot::default()
    };
    Ok((state, faults))
}

/// Waits until a task sleeps, then gives its faults. A member that has just sent the token may not
/// have come to its next wait yet; its switch on the way there belongs to the batch.
fn rest(task: Task) -> Result<Snapshot, CountError> {
    const ATTEMPTS: u32 = 2000;
    let mut last = ' ';
    for attempt in 0..ATTEMPTS {
        let (state, faults) = stat(task)?;
        if matches!(state, 'S' | 'D') {
            return Ok(faults);
        }
        if matches!(state, 'Z' | 'X') {
            return Err(CountError::Restless { tid: task.tid, state });
        }
        last = state;
        thread::sleep(Duration::from_micros(if attempt < 20 { 50 } else { 1000 }));
    }
    Err(CountError::Restless { tid: task.tid, state: last })
}

/// Time stolen from `cpus` since boot in nanoseconds, in steps of the kernel's USER_HZ
/// (proc_stat(5)); absent where /proc/stat has no steal column or lacks one of the CPUs.
pub fn steal_ns(cpus: &[u32]) -> Option<u64> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    parse_steal_ticks(&text, cpus).map(|ticks| ticks * TICK_NS)
}

fn parse_steal_ticks(text: &str, cpus: &[u32]) -> Option<u64> {
    cpus.iter().map(|cpu| procfs::cpu_line(text, *cpu)?.get(8)?.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHED: &str = "ring (7, #threads: 1)\n---\nse.nr_migrations      :   3\n\
        nr_switches  : 30\nnr_voluntary_switches    :   20\nnr_involuntary_switches  :  10\n";

    #[test]
    fn both_kinds_of_switches_and_migrations_are_read() {
        let names = ["nr_voluntary_switches", "nr_involuntary_switches"];
        let read = parse_switches(SCHED, names).unwrap();
        assert_eq!((read.voluntary, read.involuntary, read.migrations), (20, 10, Some(3)));
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t2\n";
        let names = ["voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"];
        let read = parse_switches(status, names).unwrap();
        assert_eq!((read.voluntary, read.involuntary, read.migrations), (5, 2, None));
        assert_eq!(parse_switches("", names), Err("voluntary_ctxt_switches"));
    }

    #[test]
    fn stat_is_read_behind_any_name() {
        let text = "12 (a) b (c)) S 1 2 3 4 5 6 111 8 222 10 11 12";
        let (state, faults) = parse_stat(text).unwrap();
        assert_eq!((state, faults.minor_faults, faults.major_faults), ('S', 111, 222));
        for bad in ["", "12 x S 1", "12 (a) S 1 2", "12 (a) S 1 2 3 4 5 6 x 8 9"] {
            assert!(parse_stat(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn steal_is_the_sum_over_the_cpus_asked() {
        let text =
            "cpu  1 1 1 1 1 1 1 99 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu1 0 0 0 0 0 0 0 5 0 0\n";
        assert_eq!(parse_steal_ticks(text, &[0]), Some(8));
        assert_eq!(parse_steal_ticks(text, &[0, 1]), Some(13));
        assert_eq!(parse_steal_ticks(text, &[2]), None);
        assert_eq!(parse_steal_ticks("cpu0 1 2 3 4", &[0]), None);
    }

    #[test]
    fn the_split_follows_the_ticks_of_the_whole_ring() {
        let before = Snapshot { cpu_ns: 100, ..Snapshot::default() };
        let mut after = Snapshot { cpu_ns: 1100, ..Snapshot::default() };
        assert_eq!(after.since(&before).user_ns, None, "no tick, no split");
        after.tick_user_ns = 4;
        after.tick_user_system_ns = 16;
        let counters = after.since(&before);
        assert_eq!((counters.user_ns, counters.system_ns), (Some(250), Some(750)));
        assert_eq!(counters.migrations, None);
    }
}
