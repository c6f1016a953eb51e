//! Who else ran on the measured CPUs: what the kernel says of every task, looked at now and again while
//! nothing is measured. Needs no privilege. Reads below a root folder, so that it can be given a
//! captured tree.

mod proc;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::time::{Duration, Instant};

use model::company::{Companion, Company, Interrupts, On};
use model::machine::Machine;

use self::proc::{Proc, Stat, Ticks};
use crate::machine::{Sources, interrupt_sources};

/// Shortest time between two looks.
const SHORTEST: Duration = Duration::from_millis(250);

/// A look is followed by so many times its own length without one: looking takes at most 2 %.
const REST: u32 = 49;

/// Parents of a task that are asked for: more than any sound tree has, and an end in an unsound one.
const MOST_PARENTS: u32 = 64;

/// Looks at the tasks of the machine from the start of a run to its end.
pub struct Watcher {
    proc: Proc,
    /// This program, whose descendants are nobody's company.
    own: i32,
    cpus: Vec<u32>,
    siblings: Vec<u32>,
    began: Instant,
    /// End of the last look.
    looked: Instant,
    took: Duration,
    looking: Duration,
    looks: u32,
    /// CPU time of every task at the last look, by thread id.
    times: HashMap<i32, u64>,
    had: BTreeMap<Name, Had>,
    /// CPU time on the measured CPUs that own threads and others were seen to have.
    seen_ns: u64,
    hidden: Option<String>,
    at_start: Counts,
}

/// Tasks that are told as one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    name: String,
    kernel: bool,
    cpu: u32,
}

/// What they had.
struct Had {
    first: i32,
    pids: BTreeSet<i32>,
    ns: u64,
}

/// What only grows: its first and last value say it all.
struct Counts {
    ticks: Option<Ticks>,
    children_ns: Option<u64>,
    interrupts: Option<Sources>,
}

/// A task whose CPU time grew.
struct Grown {
    pid: i32,
    tid: i32,
    ns: u64,
}

impl Watcher {
    /// Takes the first look, below `root`. `own` is the process that measures, `cpus` where.
    pub fn begin(root: &Path, own: u32, cpus: &[u32], machine: &Machine) -> Self {
        let now = Instant::now();
        let proc = Proc::below(root);
        let at_start = Counts::read(&proc, own as i32, cpus);
        let mut watcher = Self {
            hidden: proc.hidden(),
            proc,
            own: own as i32,
            cpus: cpus.to_vec(),
            siblings: siblings(cpus, machine),
            began: now,
            looked: now,
            took: Duration::ZERO,
            looking: Duration::ZERO,
            looks: 0,
            times: HashMap::new(),
            had: BTreeMap::new(),
            seen_ns: 0,
            at_start,
        };
        // Whatever they had before is not of this run: nothing has grown yet.
        watcher.times = watcher.walk(|_| {});
        watcher.close(now);
        watcher
    }

    /// Looks again, if that is not too soon. To be called while nothing is measured.
    pub fn look_if_due(&mut self) {
        if is_due(self.looked.elapsed(), self.took) {
            self.look();
        }
    }

    /// Looks for the last time, and gives what was seen since the first.
    pub fn end(&mut self) -> Company {
        self.look();
        let now = Counts::read(&self.proc, self.own, &self.cpus);
        let ticks = now.ticks.zip(self.at_start.ticks).map(|(now, then)| now.since(then));
        let children_ns = now.children_ns.zip(self.at_start.children_ns);
        let children_ns = children_ns.map(|(now, then)| now.saturating_sub(then));
        let interrupts = now.interrupts.zip(self.at_start.interrupts.as_ref());
        let [irq_ns, softirq_ns, steal_ns] = ticks.map_or([None; 3], Ticks::other_ns);
        let unseen = |ticks: Ticks, children_ns: u64| {
            let known = children_ns.saturating_add(self.seen_ns);
            ticks.busy_ns().saturating_sub(known)
        };
        Company {
            cpus: self.cpus.clone(),
            siblings: self.siblings.clone(),
            elapsed_ns: nanoseconds(self.looked.duration_since(self.began)),
            looks: self.looks,
            looking_ns: nanoseconds(self.looking),
            tasks: self.had.iter().map(|(name, had)| self.companion(name, had)).collect(),
            other_tasks_ns: 0,
            unseen_ns: ticks.zip(children_ns).map(|(ticks, children)| unseen(ticks, children)),
            hidden: self.hidden.clone(),
            interrupts: interrupts.map(|(now, then)| since(now, then)),
            irq_ns,
            softirq_ns,
            steal_ns,
        }
        .shortened()
    }

    fn companion(&self, name: &Name, had: &Had) -> Companion {
        let Name { name, kernel, cpu } = name.clone();
        let on = if self.cpus.contains(&cpu) { On::Measured } else { On::Sibling };
        let processes = u32::try_from(had.pids.len()).unwrap_or(u32::MAX);
        Companion { name, pid: had.first, processes, kernel, cpu, on, cpu_ns: had.ns }
    }

    fn look(&mut self) {
        let began = Instant::now();
        let mut grown = Vec::new();
        self.times = self.walk(|task| grown.push(task));
        let mut own = HashMap::new();
        for task in &grown {
            self.take(task, &mut own);
        }
        self.close(began);
    }

    fn close(&mut self, began: Instant) {
        self.looked = Instant::now();
        self.took = self.looked.duration_since(began);
        self.looking += self.took;
        self.looks = self.looks.saturating_add(1);
    }

    /// The CPU time of every task, of which little more is read; `grown` is told of each that had some
    /// since the last look.
    fn walk(&self, mut grown: impl FnMut(Grown)) -> HashMap<i32, u64> {
        let mut times = HashMap::with_capacity(self.times.len());
        for pid in self.proc.processes() {
            for tid in self.proc.tasks(pid) {
                // One that has just ended is not there any more.
                let Some(now) = self.proc.cpu_ns(pid, tid) else { continue };
                // Less than before is another task of the same number.
                let before = self.times.get(&tid).copied().filter(|before| *before <= now);
                let ns = now - before.unwrap_or(0);
                if ns > 0 {
                    grown(Grown { pid, tid, ns });
                }
                times.insert(tid, now);
            }
        }
        times
    }

    /// Enters what a task had, by the CPU on which it ran last: the kernel tells of no other.
    fn take(&mut self, task: &Grown, own: &mut HashMap<i32, bool>) {
        let Some(stat) = self.proc.stat(task.pid, task.tid) else { return };
        let measured = self.cpus.contains(&stat.cpu);
        if !measured && !self.siblings.contains(&stat.cpu) {
            return;
        }
        if measured {
            self.seen_ns = self.seen_ns.saturating_add(task.ns);
        }
        if self.is_own(task.pid, own) {
            return;
        }
        let name = self.name_of(task, &stat);
        let had = self.had.entry(Name { name, kernel: stat.kernel, cpu: stat.cpu });
        let had = had.or_insert_with(|| Had { first: task.pid, pids: BTreeSet::new(), ns: 0 });
        had.pids.insert(task.pid);
        had.ns = had.ns.saturating_add(task.ns);
    }

    fn name_of(&self, task: &Grown, stat: &Stat) -> String {
        match stat.kernel {
            true => without_number(&stat.name),
            // A thread may have a name of its own, which says little without its process.
            false if task.tid == task.pid => stat.name.clone(),
            false => self.proc.name(task.pid).unwrap_or_else(|| stat.name.clone()),
        }
    }

    /// Whether a process is this program or descends from it. `known` are the answers of this look.
    fn is_own(&self, pid: i32, known: &mut HashMap<i32, bool>) -> bool {
        let mut asked = Vec::new();
        let mut at = pid;
        let answer = loop {
            match known.get(&at) {
                Some(answer) => break *answer,
                None if at == self.own => break true,
                None if at <= 1 || asked.len() as u32 >= MOST_PARENTS => break false,
                None => asked.push(at),
            }
            match self.proc.stat(at, at) {
                Some(stat) => at = stat.parent,
                None => break false,
            }
        };
        known.extend(asked.into_iter().map(|pid| (pid, answer)));
        answer
    }
}

impl Counts {
    fn read(proc: &Proc, own: i32, cpus: &[u32]) -> Self {
        Self {
            ticks: proc.ticks(cpus),
            children_ns: proc.children_ns(own),
            interrupts: interrupt_sources(proc.root(), cpus),
        }
    }
}

/// What came of each source.
fn since(now: Sources, then: &Sources) -> Vec<Interrupts> {
    let grown = |((source, name), count): ((String, String), u64)| {
        let key = (source, name);
        let count = count.saturating_sub(then.get(&key).copied().unwrap_or(0));
        (count > 0).then_some(Interrupts { source: key.0, name: key.1, count })
    };
    now.into_iter().filter_map(grown).collect()
}

/// Whether it is time for a look after the last, which took so long.
fn is_due(since: Duration, took: Duration) -> bool {
    since >= SHORTEST.max(took.saturating_mul(REST))
}

/// The other hardware threads of the cores of `cpus`, as far as the machine shows them.
fn siblings(cpus: &[u32], machine: &Machine) -> Vec<u32> {
    let of = |cpu: &u32| machine.smt_siblings_of(*cpu).known().cloned().unwrap_or_default();
    let all: BTreeSet<u32> = cpus.iter().flat_map(|cpu| of(cpu).as_slice().to_vec()).collect();
    all.into_iter().filter(|cpu| !cpus.contains(cpu)).collect()
}

/// The name of a kernel thread without what tells it from its like: the CPU's number
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

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
