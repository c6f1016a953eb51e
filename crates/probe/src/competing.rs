//! Who else ran on the measured CPUs: what the kernel says of every task, looked at now and again
//! while nothing is measured. Needs no privilege. Reads below a root folder, so that it can be
//! given a captured tree.

use std::array::from_fn;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use model::competing::{CompetingTasks, On, Task};
use model::machine::Machine;

use crate::machine::{InterruptCounts, interrupt_counts, interrupts_since};
use crate::procfs::{self, StatFile, ids_in, one_line, read_at_most};

/// Shortest time between two looks.
const SHORTEST: Duration = Duration::from_millis(250);

/// A look is followed by so many times its own length without one: looking takes at most 2 %.
const REST: u32 = 49;

/// Parents of a task that are asked for: more than any sound tree has, and an end in an unsound
/// one.
const MOST_PARENTS: usize = 64;

/// No file of one task that is read here comes near.
const MOST_BYTES: u64 = 4096;

/// /proc/stat of thousands of CPUs and interrupts stays below.
const MOST_BYTES_OF_ALL: u64 = 4 << 20;

/// Programs that start others which have nothing to do with each other.
const SHELLS: [&str; 7] = ["ash", "bash", "busybox", "dash", "fish", "sh", "zsh"];

/// The first of all kernel threads: process 2 wherever they are visible.
const KTHREADD: i32 = 2;

/// Looks at the tasks of the machine from the start of a run to its end.
pub struct CompetitionWatcher {
    root: PathBuf,
    /// This program, whose descendants do not compete.
    own: i32,
    /// Processes of the program that is measured: nor do their descendants.
    measured: Vec<i32>,
    began: Instant,
    /// End of the last look.
    looked: Instant,
    took: Duration,
    /// CPU time of every task at the last look, by thread id.
    times: HashMap<i32, u64>,
    /// Tasks by name, kind and CPU, with the processes of that name.
    had: BTreeMap<(String, bool, u32), (Task, BTreeSet<i32>)>,
    /// CPU time on the measured CPUs that own threads and others were seen to have.
    seen_ns: u64,
    at_start: MachineCounts,
    /// What is known before the end.
    found: CompetingTasks,
}

/// What only grows: its first and last value are enough.
struct MachineCounts {
    /// As [`procfs::cpu_times_ns`].
    cpu_times_ns: [Option<u64>; 4],
    /// CPU time of all children of this program that it has waited for, and of theirs.
    children_ns: Option<u64>,
    interrupts: Option<InterruptCounts>,
}

/// A task whose CPU time grew: its process, its thread id, and by how many nanoseconds.
type Grown = (i32, i32, u64);

impl CompetitionWatcher {
    /// Takes the first look, below `root`. `own` is the process that measures, `cpus` where.
    pub fn begin(root: &Path, own: u32, cpus: &[u32], machine: &Machine) -> Self {
        let now = Instant::now();
        let mut watcher = Self {
            root: root.to_owned(),
            own: own as i32,
            measured: Vec::new(),
            began: now,
            looked: now,
            took: Duration::ZERO,
            times: HashMap::new(),
            had: BTreeMap::new(),
            seen_ns: 0,
            at_start: MachineCounts::read(root, own as i32, cpus),
            found: CompetingTasks {
                cpus: cpus.to_vec(),
                siblings: siblings(cpus, machine),
                hidden: hidden(root),
                ..CompetingTasks::default()
            },
        };
        // Whatever they had before is not of this run: nothing has grown yet.
        (watcher.times, _) = watcher.walk();
        watcher.close(now);
        watcher
    }

    /// Leaves out a program that is measured while it runs: these processes, all that descends from
    /// them, and their siblings where the parent of all runs the same file, as a server's does.
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

    /// Whether two processes run one file, which is no shell: a shell starts whatever is typed.
    fn runs_same_file(&self, one: i32, other: i32) -> bool {
        let file = |pid: i32| fs::read_link(self.root.join(format!("proc/{pid}/exe"))).ok();
        let Some(found) = file(one) else { return false };
        let name = found.file_name().unwrap_or_default().to_string_lossy();
        !SHELLS.contains(&&*name) && file(other).as_ref() == Some(&found)
    }

    /// Looks again, if that is not too soon. To be called while nothing is measured.
    pub fn look_if_due(&mut self) {
        if is_due(self.looked.elapsed(), self.took) {
            self.look();
        }
    }

    /// Looks for the last time, and gives what was seen since the first.
    pub fn end(&mut self) -> CompetingTasks {
        self.look();
        let (now, then) =
            (MachineCounts::read(&self.root, self.own, &self.found.cpus), &self.at_start);
        let grown = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        let [busy_ns, irq_ns, softirq_ns, steal_ns] =
            from_fn(|which| grown(now.cpu_times_ns[which], then.cpu_times_ns[which]));
        let known_ns = grown(now.children_ns, then.children_ns)
            .map(|children_ns| children_ns.saturating_add(self.seen_ns));
        let interrupts = now.interrupts.zip(then.interrupts.as_ref());
        let tasks = self.had.values().map(|(task, pids)| {
            let processes = u32::try_from(pids.len()).unwrap_or(u32::MAX);
            Task { processes, ..task.clone() }
        });
        CompetingTasks {
            elapsed_ns: self.looked.duration_since(self.began).as_nanos() as u64,
            tasks: tasks.collect(),
            unseen_ns: busy_ns.zip(known_ns).map(|(busy, known)| busy.saturating_sub(known)),
            interrupts: interrupts.map(|(now, then)| interrupts_since(now, then)),
            irq_ns,
            softirq_ns,
            steal_ns,
            ..self.found.clone()
        }
        .shortened()
    }

    fn look(&mut self) {
        let began = Instant::now();
        let (times, grown) = self.walk();
        self.times = times;
        let mut own = HashMap::new();
        for task in grown {
            // One that has just ended cannot be read any more.
            let _ = self.take(task, &mut own);
        }
        self.close(began);
    }

    fn close(&mut self, began: Instant) {
        self.looked = Instant::now();
        self.took = self.looked.duration_since(began);
        self.found.looking_ns += self.took.as_nanos() as u64;
        self.found.looks = self.found.looks.saturating_add(1);
    }

    /// The CPU time of every task, of which little more is read, and those that had some since the
    /// last look.
    fn walk(&self) -> (HashMap<i32, u64>, Vec<Grown>) {
        let (mut times, mut grown) = (HashMap::with_capacity(self.times.len()), Vec::new());
        for pid in ids_in(&self.root.join("proc")) {
            for tid in ids_in(&self.root.join(format!("proc/{pid}/task"))) {
                let Some(now) = self.cpu_ns(pid, tid) else { continue };
                // Less than before is another task of the same number.
                let before = self.times.get(&tid).copied().filter(|before| *before <= now);
                let ns = now - before.unwrap_or(0);
                if ns > 0 {
                    grown.push((pid, tid, ns));
                }
                times.insert(tid, now);
            }
        }
        (times, grown)
    }

    /// CPU time of a thread in nanoseconds: the scheduler's precise sum, or where the kernel does
    /// not show that by ticks.
    fn cpu_ns(&self, pid: i32, tid: i32) -> Option<u64> {
        let by_ticks = || self.stat(pid, tid)?.cpu_ns([14, 15]);
        match read(&self.root, &format!("{pid}/task/{tid}/schedstat")) {
            // Also what a kernel without SCHEDSTATS says of every task (sched_info_on).
            Ok(text) if text.trim() == "0 0 0" => by_ticks(),
            Ok(text) => text.split_whitespace().next()?.parse().ok(),
            // Built without SCHED_INFO.
            Err(error) if error.kind() == io::ErrorKind::NotFound => by_ticks(),
            Err(_) => None,
        }
    }

    fn stat(&self, pid: i32, tid: i32) -> Option<StatFile> {
        StatFile::parse(read(&self.root, &format!("{pid}/task/{tid}/stat")).ok()?)
    }

    /// Enters what a task had, by the CPU on which it ran last: the kernel shows no other.
    fn take(&mut self, (pid, tid, ns): Grown, own: &mut HashMap<i32, bool>) -> Option<()> {
        let stat = self.stat(pid, tid)?;
        let (kernel, cpu) = (stat.is_kernel_thread()?, stat.number(39)?);
        let on = if self.found.cpus.contains(&cpu) { On::Measured } else { On::Sibling };
        match on {
            On::Measured => self.seen_ns = self.seen_ns.saturating_add(ns),
            On::Sibling if !self.found.siblings.contains(&cpu) => return None,
            On::Sibling => {}
        }
        if self.is_own(pid, 0, own) {
            return None;
        }
        let name = match kernel {
            true => without_number(stat.name()),
            // A thread may have a name of its own, which says little without its process.
            false => read(&self.root, &format!("{pid}/comm")).unwrap_or_default(),
        };
        let name = match name.trim_end_matches('\n') {
            "" => one_line(stat.name()),
            name => one_line(name),
        };
        let (task, pids) = self.had.entry((name.clone(), kernel, cpu)).or_insert_with(|| {
            (Task { name, pid, processes: 0, kernel, cpu, on, cpu_ns: 0 }, BTreeSet::new())
        });
        pids.insert(pid);
        task.cpu_ns = task.cpu_ns.saturating_add(ns);
        Some(())
    }

    /// Whether a process is this program, the measured one, or descends from them, after so many descendants that were
    /// asked for. `known` are the answers of this look.
    fn is_own(&self, pid: i32, asked: usize, known: &mut HashMap<i32, bool>) -> bool {
        if let Some(answer) = known.get(&pid) {
            return *answer;
        }
        let parent = || self.stat(pid, pid)?.number(4);
        let answer = pid == self.own
            || self.measured.contains(&pid)
            || pid > 1
                && asked < MOST_PARENTS
                && parent().is_some_and(|parent| self.is_own(parent, asked + 1, known));
        known.insert(pid, answer);
        answer
    }
}

impl MachineCounts {
    fn read(root: &Path, own: i32, cpus: &[u32]) -> Self {
        let text = read_at_most(&root.join("proc/stat"), MOST_BYTES_OF_ALL).unwrap_or_default();
        let stat = read(root, &format!("{own}/stat")).ok().and_then(StatFile::parse);
        Self {
            cpu_times_ns: procfs::cpu_times_ns(&text, cpus),
            children_ns: stat.and_then(|stat| stat.cpu_ns([16, 17])),
            interrupts: interrupt_counts(root, cpus),
        }
    }
}

/// A file of one task.
fn read(root: &Path, path: &str) -> io::Result<String> {
    read_at_most(&root.join("proc").join(path), MOST_BYTES)
}

/// Why not all tasks are visible, if they are not: hidepid (proc(5)) or a PID namespace.
fn hidden(root: &Path) -> Option<String> {
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

/// Whether it is time for a look after the last, which took so long.
fn is_due(since: Duration, took: Duration) -> bool {
    since >= SHORTEST.max(took.saturating_mul(REST))
}

/// The other hardware threads of the cores of `cpus`, as far as the machine shows them.
fn siblings(cpus: &[u32], machine: &Machine) -> Vec<u32> {
    let of = |cpu: &u32| machine.smt_siblings_of(*cpu).cloned().unwrap_or_default();
    let all: BTreeSet<u32> = cpus.iter().flat_map(|cpu| of(cpu).as_slice().to_vec()).collect();
    all.into_iter().filter(|cpu| !cpus.contains(cpu)).collect()
}

/// The name of a kernel thread without what distinguishes it from similar ones: the CPU's number
/// (`ksoftirqd/1`), and of workers all but the queue whose work they do (`kworker/u8:0-events`).
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
