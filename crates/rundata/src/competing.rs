//! Tasks that competed with a run for the measured CPUs, and for the hardware threads beside them,
//! while it measured.

use std::cmp::Ordering;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::words;

/// Least share of a measured CPU's time at which a task is reported.
pub const NOTABLE_SHARE: f64 = 0.005;
/// Like [`NOTABLE_SHARE`], for a hardware thread beside a measured CPU: it shares the core but
/// takes no turns.
const NOTABLE_SIBLING_SHARE: f64 = 0.01;
/// Like [`NOTABLE_SHARE`], for time that is known by ticks only, whose error is larger.
const NOTABLE_UNSEEN_SHARE: f64 = 0.02;
/// Least time by the kernel's ticks (10 ms each) that is reported: one or two ticks are chance.
const NOTABLE_TICK_NS: u64 = 50_000_000;
/// Least rate of a source of interrupts that is reported, a second and CPU: at 2 to 3 us each they
/// take [`NOTABLE_SHARE`] of its time.
const NOTABLE_INTERRUPTS_PER_S: f64 = 2000.0;

/// Most tasks and most sources of interrupts that are kept.
pub const MAX_KEPT_ENTRIES: usize = 20;

/// Most tasks of one CPU, most CPUs and most sources of interrupts in a report's line.
const MAX_LISTED_ENTRIES: usize = 5;

/// Least share of the time at which a sentence names a task.
const NOTABLE_NAMED_SHARE: f64 = 0.02;
/// Most tasks that a sentence names.
const MAX_NAMED_TASKS: usize = 3;

/// Interrupts that a ring causes itself: those that CPUs send each other, and timers that tasks ask
/// for.
const RING_INTERRUPTS: &[&str] = &["RES", "CAL", "TLB", "IPI"];

/// Relation of a CPU to the measured ones.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum CpuRole {
    /// The CPU is measured.
    Measured,
    /// The CPU is another hardware thread of a measured core.
    Sibling,
}

/// Tasks of one name that ran on one of the CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CompetingTask {
    /// Name of the process. Kernel threads of which there is one for each CPU or item of work lose
    /// the number.
    pub name: String,
    /// Process id of the first process of that name that was seen.
    pub pid: i32,
    /// Number of processes of that name that were seen.
    pub processes: u32,
    /// Tells whether the tasks are kernel threads.
    pub kernel: bool,
    /// The CPU on which each task had run last when it was looked at.
    pub cpu: u32,
    /// Relation of that CPU to the measured ones.
    pub on: CpuRole,
    /// Their CPU time, in nanoseconds.
    pub cpu_ns: u64,
}

/// Interrupts of one source on the measured CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InterruptSource {
    /// Name in the first column of /proc/interrupts: `LOC`, `36`.
    pub source: String,
    /// Description at the end of its line: `Local timer interrupts`, `virtio1-req.0`.
    pub name: String,
    /// Number of interrupts over all measured CPUs.
    pub count: u64,
}

/// Tasks and interrupts beside the run on its CPUs while it measured, as far as the kernel shows
/// them. The run's own processes are never among them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CompetingTasks {
    /// The measured CPUs.
    pub cpus: Vec<u32>,
    /// The other hardware threads of their cores, as far as they are visible here.
    pub siblings: Vec<u32>,
    /// Time from the first look to the last, in nanoseconds. In a resumed run this field, like all
    /// that follow, is the sum over its sessions.
    pub elapsed_ns: u64,
    /// Number of looks at the running tasks.
    pub looks: u32,
    /// Time that the looks took, in nanoseconds.
    pub looking_ns: u64,
    /// Other tasks, by their time, at most 20.
    pub tasks: Vec<CompetingTask>,
    /// Time of those beyond the 20, on the measured CPUs, in nanoseconds.
    pub other_tasks_ns: u64,
    /// Time of the measured CPUs, in nanoseconds by the kernel's ticks, that neither the run nor a
    /// task that was seen had: tasks that came and went between two looks, or hidden ones. Absent
    /// where the kernel does not tell.
    pub unseen_ns: Option<u64>,
    /// Reason why not all tasks are visible; absent where they are.
    pub hidden: Option<String>,
    /// Interrupts on the measured CPUs, by their number, at most 20 sources. Absent where they
    /// cannot be read.
    pub interrupts: Option<Vec<InterruptSource>>,
    /// Time of the measured CPUs in interrupts, in nanoseconds (proc_stat(5)); absent where that
    /// cannot be read, as the next two. Kernels without IRQ_TIME_ACCOUNTING see whole ticks only.
    pub irq_ns: Option<u64>,
    /// Time of the measured CPUs in soft interrupts, in nanoseconds.
    pub softirq_ns: Option<u64>,
    /// Time that the hypervisor took from them, in nanoseconds.
    pub steal_ns: Option<u64>,
}

impl InterruptSource {
    fn compare(&self, other: &Self) -> Ordering {
        (&self.source, &self.name).cmp(&(&other.source, &other.name))
    }

    fn add(&mut self, later: &Self) {
        self.count = self.count.saturating_add(later.count);
    }

    /// Describes a source that comes often, by its rate a second and CPU: `virtio1-req.0 3000 a
    /// second`.
    fn frequent_in_words(&self, cpu_seconds: f64) -> Option<String> {
        let rate = if cpu_seconds > 0.0 { self.count as f64 / cpu_seconds } else { 0.0 };
        let is_of_ring = RING_INTERRUPTS.iter().any(|ring| self.source.starts_with(ring));
        if is_of_ring || rate < NOTABLE_INTERRUPTS_PER_S {
            return None;
        }
        let name = if self.name.is_empty() { &self.source } else { &self.name };
        Some(format!("{name} {rate:.0} a second"))
    }
}

impl CompetingTask {
    /// Returns the key by which entries of two sessions are one.
    fn key(&self) -> (&str, bool, u32, CpuRole) {
        (&self.name, self.kernel, self.cpu, self.on)
    }

    fn compare(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }

    /// Adds the entry of a later session.
    fn add(&mut self, later: &Self) {
        // Kernel threads are the same ones in a later session, processes most likely others.
        self.processes = if self.kernel || self.pid == later.pid {
            self.processes.max(later.processes)
        } else {
            self.processes.saturating_add(later.processes)
        };
        self.cpu_ns = self.cpu_ns.saturating_add(later.cpu_ns);
    }

    fn in_words(&self, share: f64) -> String {
        let who = match (self.kernel, self.processes) {
            (true, 0..=1) => " (kernel thread)".to_string(),
            (true, many) => format!(" ({many} kernel threads)"),
            (false, 0..=1) => String::new(),
            (false, many) => format!(" ({many} processes)"),
        };
        format!("{}{who} {} %", self.name, words::percent_of(share))
    }
}

impl CompetingTasks {
    /// Drops all but the [`MAX_KEPT_ENTRIES`] tasks with most time and sources with most
    /// interrupts; adds the time of the dropped tasks to `other_tasks_ns`.
    pub fn shortened(mut self) -> Self {
        self.tasks.sort_by(|a, b| (b.cpu_ns, &a.name, a.cpu).cmp(&(a.cpu_ns, &b.name, b.cpu)));
        let dropped = self.tasks.split_off(self.tasks.len().min(MAX_KEPT_ENTRIES));
        self.other_tasks_ns = self.other_tasks_ns.saturating_add(measured_ns(&dropped));
        if let Some(interrupts) = &mut self.interrupts {
            interrupts.sort_by(|a, b| (b.count, &a.source).cmp(&(a.count, &b.source)));
            interrupts.truncate(MAX_KEPT_ENTRIES);
        }
        self
    }

    /// Adds a later session of the same run. A figure that one of them could not read is unknown in
    /// the sum.
    pub fn plus(self, other: Self) -> Self {
        let interrupts = match (self.interrupts, other.interrupts) {
            (Some(earlier), Some(later)) => {
                let sources = [earlier, later].concat();
                Some(merge_sorted(sources, InterruptSource::compare, InterruptSource::add))
            }
            _ => None,
        };
        let tasks = [self.tasks, other.tasks].concat();
        let tasks = merge_sorted(tasks, CompetingTask::compare, CompetingTask::add);
        Self {
            cpus: unite_cpus(self.cpus, other.cpus),
            siblings: unite_cpus(self.siblings, other.siblings),
            elapsed_ns: self.elapsed_ns.saturating_add(other.elapsed_ns),
            looks: self.looks.saturating_add(other.looks),
            looking_ns: self.looking_ns.saturating_add(other.looking_ns),
            tasks,
            other_tasks_ns: self.other_tasks_ns.saturating_add(other.other_tasks_ns),
            unseen_ns: add_known(self.unseen_ns, other.unseen_ns),
            hidden: self.hidden.or(other.hidden),
            interrupts,
            irq_ns: add_known(self.irq_ns, other.irq_ns),
            softirq_ns: add_known(self.softirq_ns, other.softirq_ns),
            steal_ns: add_known(self.steal_ns, other.steal_ns),
        }
        .shortened()
    }

    /// Describes in one line for the report what had a notable share of the CPUs: `also on CPU 1:
    /// kdamond.0 (kernel thread) 33 %, stress-ng 12 %`. Returns `None` where there is nothing to
    /// report.
    pub fn line(&self) -> Option<String> {
        let mut parts = self.named(CpuRole::Measured, "on", NOTABLE_SHARE);
        parts.extend(self.named(CpuRole::Sibling, "its sibling,", NOTABLE_SIBLING_SHARE));
        let nameless = self.nameless();
        if !nameless.is_empty() {
            parts.push(format!("of {}: {}", cpus_in_words(&self.cpus), nameless.join(", ")));
        }
        parts.extend(self.frequent());
        let also = if parts.is_empty() { None } else { Some(format!("also {}", parts.join("; "))) };
        let Some(why) = &self.hidden else { return also };
        let hidden = format!("other tasks: not all visible ({why})");
        Some(match also {
            Some(also) => format!("{also}; {hidden}"),
            None => hidden,
        })
    }

    /// Describes in a few words the tasks that had most: `also on CPU 1: stress-ng 12 %`.
    pub fn brief_line(&self) -> Option<String> {
        let who = self.who();
        if who.is_empty() {
            return None;
        }
        Some(format!("also on {}: {}", cpus_in_words(&self.cpus), who.join(", ")))
    }

    /// Describes the tasks that had most of the measured CPUs, at most three: `stress-ng 12 %`.
    pub fn who(&self) -> Vec<String> {
        let mut words = Vec::new();
        for (share, task) in self.most_seen() {
            words.push(task.in_words(share));
        }
        words
    }

    /// Returns the names of the tasks that had most of the measured CPUs, at most three.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for (_, task) in self.most_seen() {
            if !names.contains(&&*task.name) {
                names.push(&task.name);
            }
        }
        names
    }

    /// Returns the name of the task that had most of the measured CPUs, and its share, 0 to 1.
    pub fn busiest(&self) -> Option<(&str, f64)> {
        let (share, task) = *self.most_seen().first()?;
        Some((&task.name, share))
    }

    fn most_seen(&self) -> Vec<(f64, &CompetingTask)> {
        let mut most = self.notable_tasks(CpuRole::Measured, NOTABLE_NAMED_SHARE);
        most.truncate(MAX_NAMED_TASKS);
        most
    }

    /// Returns the tasks whose share of a CPU is at least `limit` with that share, the greatest
    /// first.
    fn notable_tasks(&self, on: CpuRole, limit: f64) -> Vec<(f64, &CompetingTask)> {
        let mut notable = Vec::new();
        for task in &self.tasks {
            let share = self.share(task.cpu_ns);
            if task.on == on && share >= limit {
                notable.push((share, task));
            }
        }
        notable.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        notable
    }

    /// Returns the share of the measured CPUs' time that tasks had which were seen, 0 to 1.
    pub fn seen_share(&self) -> f64 {
        let ns = self.other_tasks_ns.saturating_add(measured_ns(&self.tasks));
        self.share(ns) / self.cpus.len().max(1) as f64
    }

    /// Returns a time as a share of the time of one CPU.
    fn share(&self, ns: u64) -> f64 {
        if self.elapsed_ns == 0 { 0.0 } else { ns as f64 / self.elapsed_ns as f64 }
    }

    /// Describes the tasks whose share of a CPU is at least `limit`: a text for each CPU, the CPU
    /// with the greatest share first.
    fn named(&self, on: CpuRole, place: &str, limit: f64) -> Vec<String> {
        let mut cpus: Vec<(u32, Vec<String>)> = Vec::new();
        for (share, task) in self.notable_tasks(on, limit) {
            let words = task.in_words(share);
            match cpus.iter_mut().find(|(cpu, _)| *cpu == task.cpu) {
                Some((_, tasks)) => tasks.push(words),
                None => cpus.push((task.cpu, vec![words])),
            }
        }
        let mut texts = Vec::new();
        for (cpu, tasks) in cpus {
            texts.push(format!("{place} CPU {cpu}: {}", shorten_list(tasks, "more").join(", ")));
        }
        shorten_list(texts, "more CPUs")
    }

    /// Describes time of the measured CPUs that no task's name accounts for.
    fn nameless(&self) -> Vec<String> {
        let unseen = match &self.hidden {
            None => "tasks that came and went between two looks",
            Some(_) => "tasks that are not visible here",
        };
        let known = [
            (unseen, notable_ticks(self.unseen_ns), NOTABLE_UNSEEN_SHARE),
            ("further tasks", Some(self.other_tasks_ns), NOTABLE_SHARE),
            ("the hypervisor (steal)", self.steal_ns, NOTABLE_SHARE),
            ("interrupts", notable_ticks(self.irq_ns), NOTABLE_SHARE),
            (
                "soft interrupts (the link's own included)",
                notable_ticks(self.softirq_ns),
                NOTABLE_SHARE,
            ),
        ];
        let mut texts = Vec::new();
        for (name, ns, limit) in known {
            let Some(ns) = ns else { continue };
            let share = self.share(ns) / self.cpus.len().max(1) as f64;
            if share >= limit {
                texts.push(format!("{name} {} %", words::percent_of(share)));
            }
        }
        texts
    }

    /// Describes sources of interrupts that come often, with their rate a second and CPU.
    fn frequent(&self) -> Vec<String> {
        let cpu_seconds = self.elapsed_ns as f64 / 1e9 * self.cpus.len().max(1) as f64;
        let mut words = Vec::new();
        for source in self.interrupts.iter().flatten() {
            words.extend(source.frequent_in_words(cpu_seconds));
        }
        words.truncate(MAX_LISTED_ENTRIES);
        words
    }
}

/// Sums the CPU time of tasks on measured CPUs, in nanoseconds.
fn measured_ns(tasks: &[CompetingTask]) -> u64 {
    let mut ns = 0_u64;
    for task in tasks {
        if task.on == CpuRole::Measured {
            ns = ns.saturating_add(task.cpu_ns);
        }
    }
    ns
}

/// Returns a time by ticks; `None` where it may be by chance.
fn notable_ticks(ns: Option<u64>) -> Option<u64> {
    if ns? < NOTABLE_TICK_NS { None } else { ns }
}

/// Keeps the first [`MAX_LISTED_ENTRIES`] and says how many more there are.
fn shorten_list(mut entries: Vec<String>, more: &str) -> Vec<String> {
    let left = entries.len().saturating_sub(MAX_LISTED_ENTRIES);
    entries.truncate(MAX_LISTED_ENTRIES);
    if left > 0 {
        entries.push(format!("{left} {more}"));
    }
    entries
}

fn cpus_in_words(cpus: &[u32]) -> String {
    match cpus.len() {
        many @ 9.. => format!("the {many} measured CPUs"),
        many => format!("CPU{} {}", if many == 1 { "" } else { "s" }, words::list(cpus)),
    }
}

/// Sorts a list; `add` adds an entry to the equal one before it, which stands for both.
fn merge_sorted<T>(
    mut entries: Vec<T>,
    compare: impl Fn(&T, &T) -> Ordering,
    add: impl Fn(&mut T, &T),
) -> Vec<T> {
    entries.sort_by(&compare);
    entries.dedup_by(|next, sum| {
        let is_same = compare(next, sum).is_eq();
        if is_same {
            add(sum, next);
        }
        is_same
    });
    entries
}

/// Adds two figures; `None` where one of them is unknown.
fn add_known(earlier: Option<u64>, later: Option<u64>) -> Option<u64> {
    Some(earlier?.saturating_add(later?))
}

/// Returns the CPUs of both lists, rising, each once.
fn unite_cpus(mut cpus: Vec<u32>, others: Vec<u32>) -> Vec<u32> {
    cpus.extend(others);
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

#[cfg(test)]
mod tests;
