//! Competing tasks: tasks that ran on the measured CPUs, found from the kernel's counts of every
//! task, which are read now and then while nothing is measured. Needs no privilege. Reads below a
//! root folder, so that a captured tree can be read.

use std::array::from_fn;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rundata::competing::{CompetingTask, CompetingTasks, CpuRole};
use rundata::machine::Machine;

use crate::machine::{InterruptCounts, interrupt_counts, interrupts_since};
use crate::procfs::{self, MAX_STAT_BYTES, StatFile, ids_in, one_line, read_at_most};

/// Shortest time between two readings.
const MIN_INTERVAL: Duration = Duration::from_millis(250);

/// Pause after a reading, as a multiple of its length: reading takes at most 2 % of the time.
const PAUSE_FACTOR: u32 = 49;

/// Largest number of ancestors that are followed: more than any sound tree has.
const MAX_ANCESTORS: usize = 64;

/// Upper bound of the size of a task's files.
const MAX_BYTES: u64 = 4096;

/// Programs that start unrelated programs.
const SHELLS: [&str; 7] = ["ash", "bash", "busybox", "dash", "fish", "sh", "zsh"];

/// Process id of the first kernel thread, wherever kernel threads are visible.
const KTHREADD: i32 = 2;

/// Watches the tasks of the machine from the start of a run to its end.
pub struct CompetitionWatcher {
    root: PathBuf,
    /// Process id of this program, whose descendants do not compete.
    own_pid: i32,
    /// Processes of the measured program, whose descendants do not compete either.
    measured: Vec<i32>,
    began: Instant,
    /// End of the last reading.
    last_end: Instant,
    /// Length of the last reading.
    last_length: Duration,
    /// CPU time of every task at the last reading, by thread id.
    times_ns: HashMap<i32, u64>,
    /// Tasks by name, kind and CPU, with the processes of that name.
    tasks: BTreeMap<TaskKey, TaskOfProcesses>,
    /// CPU time on the measured CPUs that is known to be some task's.
    known_ns: u64,
    at_start: MachineCounts,
    /// Findings that are known before the end.
    found: CompetingTasks,
}

/// Counts that only grow: the first and the last values are enough.
struct MachineCounts {
    /// Times as [`procfs::cpu_times_ns`] returns them.
    cpu_times_ns: [Option<u64>; 4],
    /// CPU time of all children that this program has waited for, and of their children.
    children_ns: Option<u64>,
    interrupts: Option<InterruptCounts>,
}

/// Name of a task, whether it is a kernel thread, and its CPU.
type TaskKey = (String, bool, u32);

/// A task, and the processes that have it.
struct TaskOfProcesses {
    task: CompetingTask,
    pids: BTreeSet<i32>,
}

/// A thread whose CPU time grew between two readings.
struct GrownThread {
    pid: i32,
    tid: i32,
    grown_ns: u64,
}

impl CompetitionWatcher {
    /// Takes the first reading, below `root`. `own_pid` is the process that measures, on `cpus`.
    pub fn begin(root: &Path, own_pid: u32, cpus: &[u32], machine: &Machine) -> Self {
        let now = Instant::now();
        let mut watcher = Self {
            root: root.to_owned(),
            own_pid: own_pid as i32,
            measured: Vec::new(),
            began: now,
            last_end: now,
            last_length: Duration::ZERO,
            times_ns: HashMap::new(),
            tasks: BTreeMap::new(),
            known_ns: 0,
            at_start: MachineCounts::read(root, own_pid as i32, cpus),
            found: CompetingTasks {
                cpus: cpus.to_vec(),
                siblings: siblings(cpus, machine),
                hidden: hidden_tasks(root),
                ..CompetingTasks::default()
            },
        };
        // CPU time from before the run does not count: nothing has grown yet.
        (watcher.times_ns, _) = watcher.read_all();
        watcher.end_reading(now);
        watcher
    }

    /// Leaves out a measured program: these processes, their descendants, and their siblings if the
    /// common parent runs the same file, as a server's does.
    pub fn leave_out(mut self, pids: &[i32]) -> Self {
        let mut open = pids.to_vec();
        while let Some(pid) = open.pop() {
            if self.measured.contains(&pid) {
                continue;
            }
            self.measured.push(pid);
            let parent = self.stat(pid, pid).and_then(|stat| stat.number(4));
            open.extend(parent.filter(|parent| self.runs_same_file(*parent, pid)));
        }
        self
    }

    /// Returns whether two processes run the same file, which is not a shell.
    fn runs_same_file(&self, one: i32, other: i32) -> bool {
        let Some(file) = self.executable(one) else { return false };
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        !SHELLS.contains(&&*name) && self.executable(other).as_ref() == Some(&file)
    }

    fn executable(&self, pid: i32) -> Option<PathBuf> {
        fs::read_link(self.root.join(format!("proc/{pid}/exe"))).ok()
    }

    /// Takes a reading if it is time. To be called while nothing is measured.
    pub fn look_if_due(&mut self) {
        if is_due(self.last_end.elapsed(), self.last_length) {
            self.look();
        }
    }

    /// Takes the last reading; returns the competing tasks since the first.
    pub fn end(&mut self) -> CompetingTasks {
        self.look();
        let now = MachineCounts::read(&self.root, self.own_pid, &self.found.cpus);
        let then = &self.at_start;
        let [busy_ns, irq_ns, softirq_ns, steal_ns] =
            from_fn(|index| growth(now.cpu_times_ns[index], then.cpu_times_ns[index]));
        let mut unseen_ns = None;
        if let (Some(busy_ns), Some(children_ns)) =
            (busy_ns, growth(now.children_ns, then.children_ns))
        {
            let known_ns = children_ns.saturating_add(self.known_ns);
            unseen_ns = Some(busy_ns.saturating_sub(known_ns));
        }
        let mut interrupts = None;
        if let (Some(now), Some(then)) = (now.interrupts, &then.interrupts) {
            interrupts = Some(interrupts_since(now, then));
        }
        let mut tasks = Vec::new();
        for TaskOfProcesses { task, pids } in self.tasks.values() {
            let processes = u32::try_from(pids.len()).unwrap_or(u32::MAX);
            tasks.push(CompetingTask { processes, ..task.clone() });
        }
        CompetingTasks {
            elapsed_ns: self.last_end.duration_since(self.began).as_nanos() as u64,
            tasks,
            unseen_ns,
            interrupts,
            irq_ns,
            softirq_ns,
            steal_ns,
            ..self.found.clone()
        }
        .shortened()
    }

    /// Takes a reading.
    fn look(&mut self) {
        let began = Instant::now();
        let (times_ns, grown) = self.read_all();
        self.times_ns = times_ns;
        let mut known_owners = HashMap::new();
        for thread in grown {
            // A thread that has just ended cannot be read any more.
            let _ = self.add(&thread, &mut known_owners);
        }
        self.end_reading(began);
    }

    fn end_reading(&mut self, began: Instant) {
        self.last_end = Instant::now();
        self.last_length = self.last_end.duration_since(began);
        self.found.looking_ns += self.last_length.as_nanos() as u64;
        self.found.looks = self.found.looks.saturating_add(1);
    }

    /// Reads the CPU time of every task by thread id, and returns the threads that used some since
    /// the last reading.
    fn read_all(&self) -> (HashMap<i32, u64>, Vec<GrownThread>) {
        let mut times_ns = HashMap::with_capacity(self.times_ns.len());
        let mut grown = Vec::new();
        for pid in ids_in(&self.root.join("proc")) {
            for tid in ids_in(&self.root.join(format!("proc/{pid}/task"))) {
                let Some(now_ns) = self.cpu_ns(pid, tid) else { continue };
                let mut before_ns = self.times_ns.get(&tid).copied().unwrap_or(0);
                if before_ns > now_ns {
                    // Another thread has the same id now.
                    before_ns = 0;
                }
                if now_ns > before_ns {
                    grown.push(GrownThread { pid, tid, grown_ns: now_ns - before_ns });
                }
                times_ns.insert(tid, now_ns);
            }
        }
        (times_ns, grown)
    }

    /// Reads the CPU time of a thread in nanoseconds: the scheduler's precise sum, or, if the
    /// kernel does not show that, its ticks.
    fn cpu_ns(&self, pid: i32, tid: i32) -> Option<u64> {
        match read(&self.root, &format!("{pid}/task/{tid}/schedstat")) {
            // Kernels without SCHEDSTATS may show this for every task (sched_info_on).
            Ok(text) if text.trim() == "0 0 0" => self.cpu_ns_by_ticks(pid, tid),
            Ok(text) => text.split_whitespace().next()?.parse().ok(),
            // The kernel was built without SCHED_INFO.
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.cpu_ns_by_ticks(pid, tid),
            Err(_) => None,
        }
    }

    fn cpu_ns_by_ticks(&self, pid: i32, tid: i32) -> Option<u64> {
        self.stat(pid, tid)?.cpu_ns([14, 15])
    }

    fn stat(&self, pid: i32, tid: i32) -> Option<StatFile> {
        StatFile::parse(read(&self.root, &format!("{pid}/task/{tid}/stat")).ok()?)
    }

    /// Adds the CPU time of a thread to its task, at the CPU on which it ran last: the kernel shows
    /// no other. Returns `None` if it does not compete or cannot be read.
    fn add(&mut self, thread: &GrownThread, known_owners: &mut HashMap<i32, bool>) -> Option<()> {
        let GrownThread { pid, tid, grown_ns } = *thread;
        let stat = self.stat(pid, tid)?;
        let is_kernel_thread = stat.is_kernel_thread()?;
        let cpu = stat.number(39)?;
        let on = if self.found.cpus.contains(&cpu) { CpuRole::Measured } else { CpuRole::Sibling };
        if on == CpuRole::Measured {
            self.known_ns = self.known_ns.saturating_add(grown_ns);
        } else if !self.found.siblings.contains(&cpu) {
            return None;
        }
        if self.is_own(pid, 0, known_owners) {
            return None;
        }
        let name = self.task_name(pid, &stat, is_kernel_thread);
        let key = (name.clone(), is_kernel_thread, cpu);
        let entry = self.tasks.entry(key).or_insert_with(|| TaskOfProcesses {
            task: CompetingTask {
                name,
                pid,
                processes: 0,
                kernel: is_kernel_thread,
                cpu,
                on,
                cpu_ns: 0,
            },
            pids: BTreeSet::new(),
        });
        entry.pids.insert(pid);
        entry.task.cpu_ns = entry.task.cpu_ns.saturating_add(grown_ns);
        Some(())
    }

    /// Returns the name under which a thread is counted: that of its process, as a thread's own
    /// name may say little; of a kernel thread its name without numbers.
    fn task_name(&self, pid: i32, stat: &StatFile, is_kernel_thread: bool) -> String {
        let name = if is_kernel_thread {
            without_number(stat.name())
        } else {
            read(&self.root, &format!("{pid}/comm")).unwrap_or_default()
        };
        match name.trim_end_matches('\n') {
            "" => one_line(stat.name()),
            name => one_line(name),
        }
    }

    /// Returns whether a process is this program or the measured one, or descends from them.
    /// `depth` is the number of descendants followed so far, `known` has the answers of this
    /// reading.
    fn is_own(&self, pid: i32, depth: usize, known: &mut HashMap<i32, bool>) -> bool {
        if let Some(answer) = known.get(&pid) {
            return *answer;
        }
        let mut is_own = pid == self.own_pid || self.measured.contains(&pid);
        if !is_own && pid > 1 && depth < MAX_ANCESTORS {
            let parent = self.stat(pid, pid).and_then(|stat| stat.number(4));
            is_own = parent.is_some_and(|parent| self.is_own(parent, depth + 1, known));
        }
        known.insert(pid, is_own);
        is_own
    }
}

/// Returns how much a count grew, if both values are known.
fn growth(now: Option<u64>, then: Option<u64>) -> Option<u64> {
    Some(now?.saturating_sub(then?))
}

impl MachineCounts {
    fn read(root: &Path, own_pid: i32, cpus: &[u32]) -> Self {
        let text = read_at_most(&root.join("proc/stat"), MAX_STAT_BYTES).unwrap_or_default();
        let stat = read(root, &format!("{own_pid}/stat")).ok().and_then(StatFile::parse);
        Self {
            cpu_times_ns: procfs::cpu_times_ns(&text, cpus),
            children_ns: stat.and_then(|stat| stat.cpu_ns([16, 17])),
            interrupts: interrupt_counts(root, cpus),
        }
    }
}

/// Reads a file of a task.
fn read(root: &Path, path: &str) -> io::Result<String> {
    read_at_most(&root.join("proc").join(path), MAX_BYTES)
}

/// Returns why not all tasks are visible, if they are not: hidepid (proc(5)) or a PID namespace.
fn hidden_tasks(root: &Path) -> Option<String> {
    if let Err(error) = fs::read_dir(root.join("proc")) {
        return Some(format!("/proc: {error}"));
    }
    let first = read(root, &format!("{KTHREADD}/stat"));
    match first.map(|text| StatFile::parse(text).and_then(|stat| stat.is_kernel_thread())) {
        Ok(Some(true)) => None,
        Ok(_) => Some("no kernel threads: a container".to_string()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Some("no kernel threads: a container, or hidepid".to_string())
        }
        Err(error) => Some(format!("hidepid: /proc/{KTHREADD}/stat: {error}")),
    }
}

/// Returns whether it is time for a reading, `since` the last one, which took `length`.
fn is_due(since: Duration, length: Duration) -> bool {
    since >= MIN_INTERVAL.max(length.saturating_mul(PAUSE_FACTOR))
}

/// Returns the other hardware threads of the cores of `cpus`, as far as the machine shows them.
fn siblings(cpus: &[u32], machine: &Machine) -> Vec<u32> {
    let mut siblings = BTreeSet::new();
    for cpu in cpus {
        if let Ok(threads) = machine.smt_siblings_of(*cpu) {
            siblings.extend(threads.as_slice());
        }
    }
    siblings.retain(|cpu| !cpus.contains(cpu));
    siblings.into_iter().collect()
}

/// Returns the name of a kernel thread without what distinguishes it from similar ones: the CPU's
/// number (`ksoftirqd/1`), and of workers everything but the queue that they work for
/// (`kworker/u8:0-events`).
fn without_number(name: &str) -> String {
    let Some((before, after)) = name.split_once('/') else { return name.to_string() };
    if before == "kworker" {
        let queue = after.split_once(['-', '+']).map(|(_, queue)| queue);
        return queue.map_or("kworker".to_string(), |queue| format!("kworker-{queue}"));
    }
    let is_number = !after.is_empty() && after.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { before.to_string() } else { name.to_string() }
}

#[cfg(test)]
mod tests;
