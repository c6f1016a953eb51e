//! The files of /proc that tell of tasks (proc_pid_stat(5), proc_stat(5)). There may be thousands, and
//! each may be gone at any moment: what cannot be read is absent.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::procfs::{self, KERNEL_THREAD, TICK_NS};

/// No file of one task that is read here comes near.
const MOST_BYTES: u64 = 4096;

/// /proc/stat of thousands of CPUs and interrupts stays below.
const MOST_BYTES_OF_ALL: u64 = 4 << 20;

/// The first of all kernel threads: process 2 wherever they are visible.
const KTHREADD: i32 = 2;

/// /proc below a root folder.
pub(super) struct Proc {
    root: PathBuf,
    proc: PathBuf,
}

/// What `stat` says of a task.
pub(super) struct Stat {
    pub(super) name: String,
    pub(super) parent: i32,
    pub(super) kernel: bool,
    /// On which it ran last.
    pub(super) cpu: u32,
    own_ticks: u64,
    children_ticks: u64,
}

impl Proc {
    pub(super) fn below(root: &Path) -> Self {
        Self { root: root.to_path_buf(), proc: root.join("proc") }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// All processes that are visible.
    pub(super) fn processes(&self) -> Vec<i32> {
        numbers(&self.proc)
    }

    /// The threads of a process.
    pub(super) fn tasks(&self, pid: i32) -> Vec<i32> {
        numbers(&self.proc.join(format!("{pid}/task")))
    }

    /// CPU time of a thread in nanoseconds: the scheduler's precise sum, or where the kernel does not
    /// show that by ticks.
    pub(super) fn cpu_ns(&self, pid: i32, tid: i32) -> Option<u64> {
        let by_ticks = || Some(self.stat(pid, tid)?.own_ticks.saturating_mul(TICK_NS));
        match self.read(&format!("{pid}/task/{tid}/schedstat")) {
            // Also what a kernel without SCHEDSTATS says of every task (sched_info_on).
            Ok(text) if text.trim() == "0 0 0" => by_ticks(),
            Ok(text) => text.split_whitespace().next()?.parse().ok(),
            // Built without SCHED_INFO.
            Err(error) if error.kind() == io::ErrorKind::NotFound => by_ticks(),
            Err(_) => None,
        }
    }

    pub(super) fn stat(&self, pid: i32, tid: i32) -> Option<Stat> {
        Stat::parse(&self.read(&format!("{pid}/task/{tid}/stat")).ok()?)
    }

    /// The name of a process.
    pub(super) fn name(&self, pid: i32) -> Option<String> {
        let name = self.read(&format!("{pid}/comm")).ok()?;
        Some(name.trim_end_matches('\n').to_string()).filter(|name| !name.is_empty())
    }

    /// CPU time in nanoseconds of all children of a process that it has waited for, and of theirs.
    pub(super) fn children_ns(&self, pid: i32) -> Option<u64> {
        let stat = Stat::parse(&self.read(&format!("{pid}/stat")).ok()?)?;
        Some(stat.children_ticks.saturating_mul(TICK_NS))
    }

    /// Why not all tasks are visible, if they are not: hidepid (proc(5)) or a PID namespace.
    pub(super) fn hidden(&self) -> Option<String> {
        if let Err(error) = fs::read_dir(&self.proc) {
            return Some(format!("/proc: {error}"));
        }
        let first = self.read(&format!("{KTHREADD}/stat"));
        match first.map(|text| Stat::parse(&text).is_some_and(|stat| stat.kernel)) {
            Ok(true) => None,
            Ok(false) => Some("no kernel threads: a container".to_string()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Some("no kernel threads: a container, or hidepid".to_string())
            }
            Err(error) => Some(format!("hidepid: /proc/{KTHREADD}/stat: {error}")),
        }
    }

    /// What the kernel has counted of all `cpus` together; absent if it lacks one of them.
    pub(super) fn ticks(&self, cpus: &[u32]) -> Option<Ticks> {
        let text = read(&self.proc.join("stat"), MOST_BYTES_OF_ALL).ok()?;
        Ticks::parse(&text, cpus)
    }

    fn read(&self, path: &str) -> io::Result<String> {
        read(&self.proc.join(path), MOST_BYTES)
    }
}

impl Stat {
    fn parse(text: &str) -> Option<Self> {
        let stat = procfs::Stat::parse(text)?;
        // The children's may be negative in old kernels' tasks that have none.
        let ticks = |field| stat.number(field).unwrap_or(0_u64);
        Some(Self {
            name: stat.name.to_string(),
            parent: stat.number(4)?,
            kernel: stat.number::<u64>(9)? & KERNEL_THREAD != 0,
            cpu: stat.number(39)?,
            own_ticks: stat.number::<u64>(14)?.saturating_add(stat.number(15)?),
            children_ticks: ticks(16).saturating_add(ticks(17)),
        })
    }
}

/// Ticks of some CPUs together, since boot or between two looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticks {
    busy: u64,
    irq: Option<u64>,
    softirq: Option<u64>,
    steal: Option<u64>,
}

impl Ticks {
    fn parse(text: &str, cpus: &[u32]) -> Option<Self> {
        let mut sum = Self { busy: 0, irq: Some(0), softirq: Some(0), steal: Some(0) };
        for cpu in cpus {
            let fields = procfs::cpu_line(text, *cpu)?;
            let column = |number: usize| fields.get(number)?.parse::<u64>().ok();
            let plus = |sum: Option<u64>, number| Some(sum?.saturating_add(column(number)?));
            // user, nice, system; then idle and iowait.
            let busy = column(1)?.saturating_add(column(2)?).saturating_add(column(3)?);
            sum = Self {
                busy: sum.busy.saturating_add(busy),
                irq: plus(sum.irq, 6),
                softirq: plus(sum.softirq, 7),
                steal: plus(sum.steal, 8),
            };
        }
        Some(sum)
    }

    pub(super) fn since(self, then: Self) -> Self {
        let grown = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        Self {
            busy: self.busy.saturating_sub(then.busy),
            irq: grown(self.irq, then.irq),
            softirq: grown(self.softirq, then.softirq),
            steal: grown(self.steal, then.steal),
        }
    }

    /// CPU time of tasks in nanoseconds.
    pub(super) fn busy_ns(self) -> u64 {
        self.busy.saturating_mul(TICK_NS)
    }

    /// Time in interrupts, in softirqs and stolen, in nanoseconds.
    pub(super) fn other_ns(self) -> [Option<u64>; 3] {
        [self.irq, self.softirq, self.steal].map(|ticks| Some(ticks?.saturating_mul(TICK_NS)))
    }
}

/// The entries of a folder that are numbers of tasks.
fn numbers(folder: &Path) -> Vec<i32> {
    let number = |name: &OsStr| name.to_str()?.parse::<i32>().ok().filter(|number| *number > 0);
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| number(&entry.file_name())).collect()
}

/// The text of a file, with what is not UTF-8 replaced: a task may call itself anything.
fn read(path: &Path, most: u64) -> io::Result<String> {
    // In a captured tree a FIFO would be waited for.
    let file: File = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW)
        .open(path)?;
    let mut bytes = Vec::with_capacity(512);
    file.take(most).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
