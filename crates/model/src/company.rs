//! Who else ran on the measured CPUs, and on the hardware threads beside them, while a run measured.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is told of a measured CPU: from this share of its time on.
pub const NOTABLE: f64 = 0.005;
/// The same of a hardware thread beside it, which shares the core but takes no turns.
pub const NOTABLE_BESIDE: f64 = 0.01;
/// The same of time that is only known by ticks, whose error is larger.
pub const NOTABLE_UNSEEN: f64 = 0.02;
/// Time that the kernel finds out by its ticks (10 ms each) is told from so many of them on: one or two
/// are chance.
pub const NOTABLE_BY_TICKS_NS: u64 = 50_000_000;
/// Interrupts of a name are told from so many a second of a CPU on: at 2 to 3 us each they take
/// [`NOTABLE`] of its time.
pub const NOTABLE_INTERRUPTS_PER_S: f64 = 2000.0;

/// Most tasks and most sources of interrupts that are kept.
pub const MOST_KEPT: usize = 20;

/// Most that are told of one CPU, and most CPUs of which something is told.
const MOST_TOLD: usize = 5;

/// What the CPUs send each other and the timers that tasks ask for: a ring causes these itself.
const OF_THE_RING: &[&str] = &["RES", "CAL", "TLB", "IPI"];

/// Which of the CPUs.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum On {
    /// One that is measured.
    Measured,
    /// Another hardware thread of a core that is measured.
    Sibling,
}

/// Tasks of one name that ran on one of the CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Companion {
    /// Name of the process; of kernel threads that there is one of for each CPU or item of work,
    /// without the number.
    pub name: String,
    /// One of the processes of that name: the first that was seen.
    pub pid: i32,
    /// How many processes of that name were seen.
    pub processes: u32,
    /// A kernel thread.
    pub kernel: bool,
    /// The CPU, by where each task had run last when it was looked at.
    pub cpu: u32,
    /// What that CPU is to the run.
    pub on: On,
    /// Their CPU time, in nanoseconds.
    pub cpu_ns: u64,
}

/// Interrupts of one source on the measured CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Interrupts {
    /// As in the first column of /proc/interrupts: `LOC`, `36`.
    pub source: String,
    /// What it is, as at the end of its line: `Local timer interrupts`, `virtio1-req.0`.
    pub name: String,
    /// How many, over all measured CPUs.
    pub count: u64,
}

/// Who else ran on the CPUs of a run while it measured, as far as the kernel shows it. The run's own
/// processes are never among them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Company {
    /// The measured CPUs.
    pub cpus: Vec<u32>,
    /// The other hardware threads of their cores, as far as they are visible here.
    pub siblings: Vec<u32>,
    /// Time from the first look to the last, in nanoseconds; of a resumed run the sum over its
    /// sessions, as all that follows.
    pub elapsed_ns: u64,
    /// Looks that were taken.
    pub looks: u32,
    /// What the looks took, in nanoseconds.
    pub looking_ns: u64,
    /// Other tasks, by their time, at most 20.
    pub tasks: Vec<Companion>,
    /// Time of those beyond the 20, on the measured CPUs, in nanoseconds.
    pub other_tasks_ns: u64,
    /// Time of the measured CPUs, in nanoseconds by the kernel's ticks, that neither the run nor a
    /// task that was seen had: of tasks that came and went between two looks, or that are hidden.
    /// Absent where it cannot be told.
    pub unseen_ns: Option<u64>,
    /// Why not all tasks are visible; absent where they are.
    pub hidden: Option<String>,
    /// Interrupts on the measured CPUs, by their number, at most 20 sources. Absent where they cannot
    /// be read.
    pub interrupts: Option<Vec<Interrupts>>,
    /// Time of the measured CPUs in interrupts, in nanoseconds (proc_stat(5)); absent where that
    /// cannot be read, as the next two. Kernels without IRQ_TIME_ACCOUNTING see whole ticks only.
    pub irq_ns: Option<u64>,
    /// In soft interrupts.
    pub softirq_ns: Option<u64>,
    /// Taken by the hypervisor.
    pub steal_ns: Option<u64>,
}

/// Something that had enough of a CPU to be told.
struct Notable<'a> {
    companion: &'a Companion,
    share: f64,
}

impl Notable<'_> {
    fn who(&self) -> String {
        let Companion { name, kernel, processes, .. } = self.companion;
        match (kernel, processes) {
            (true, 0..=1) => format!("{name} (kernel thread)"),
            (true, many) => format!("{name} ({many} kernel threads)"),
            (false, 0..=1) => name.clone(),
            (false, many) => format!("{name} ({many} processes)"),
        }
    }
}

impl Company {
    /// Keeps the most: tasks by time, interrupts by number.
    pub fn shortened(mut self) -> Self {
        self.tasks.sort_by(|a, b| (b.cpu_ns, &a.name, a.cpu).cmp(&(a.cpu_ns, &b.name, b.cpu)));
        let others = self.tasks.split_off(self.tasks.len().min(MOST_KEPT));
        let others = others.iter().filter(|task| task.on == On::Measured);
        self.other_tasks_ns =
            others.fold(self.other_tasks_ns, |sum, task| sum.saturating_add(task.cpu_ns));
        if let Some(interrupts) = &mut self.interrupts {
            interrupts.sort_by(|a, b| (b.count, &a.source).cmp(&(a.count, &b.source)));
            interrupts.truncate(MOST_KEPT);
        }
        self
    }

    /// Two sessions of one run together. What one of them could not read is not known of both.
    pub fn plus(self, other: Self) -> Self {
        let both = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        let interrupts = self.interrupts.zip(other.interrupts).map(|(a, b)| {
            summed(
                a.into_iter().chain(b),
                |of| (of.source.clone(), of.name.clone()),
                |sum, of| {
                    sum.count = sum.count.saturating_add(of.count);
                },
            )
        });
        let tasks = summed(
            self.tasks.into_iter().chain(other.tasks),
            |task| (task.name.clone(), task.kernel, task.cpu, task.on),
            |sum, task| {
                // Kernel threads are the same ones in a later session, processes most likely others.
                sum.processes = match sum.kernel {
                    true => sum.processes.max(task.processes),
                    false if sum.pid == task.pid => sum.processes.max(task.processes),
                    false => sum.processes.saturating_add(task.processes),
                };
                sum.cpu_ns = sum.cpu_ns.saturating_add(task.cpu_ns);
            },
        );
        Self {
            cpus: united(self.cpus, other.cpus),
            siblings: united(self.siblings, other.siblings),
            elapsed_ns: self.elapsed_ns.saturating_add(other.elapsed_ns),
            looks: self.looks.saturating_add(other.looks),
            looking_ns: self.looking_ns.saturating_add(other.looking_ns),
            tasks,
            other_tasks_ns: self.other_tasks_ns.saturating_add(other.other_tasks_ns),
            unseen_ns: both(self.unseen_ns, other.unseen_ns),
            hidden: self.hidden.or(other.hidden),
            interrupts,
            irq_ns: both(self.irq_ns, other.irq_ns),
            softirq_ns: both(self.softirq_ns, other.softirq_ns),
            steal_ns: both(self.steal_ns, other.steal_ns),
        }
        .shortened()
    }

    /// Share of the time of one CPU.
    fn share(&self, ns: u64) -> f64 {
        if self.elapsed_ns == 0 { 0.0 } else { ns as f64 / self.elapsed_ns as f64 }
    }

    /// Share of the time of all measured CPUs.
    fn share_of_all(&self, ns: u64) -> f64 {
        self.share(ns) / self.cpus.len().max(1) as f64
    }

    /// Tasks that had enough of a CPU, the CPUs of one kind by number of the greatest share.
    fn notable(&self, on: On) -> Vec<(u32, Vec<Notable<'_>>)> {
        let limit = if on == On::Measured { NOTABLE } else { NOTABLE_BESIDE };
        let mut by_cpu: BTreeMap<u32, Vec<Notable>> = BTreeMap::new();
        for companion in self.tasks.iter().filter(|task| task.on == on) {
            let share = self.share(companion.cpu_ns);
            if share >= limit {
                by_cpu.entry(companion.cpu).or_default().push(Notable { companion, share });
            }
        }
        let mut cpus: Vec<(u32, Vec<Notable>)> = by_cpu.into_iter().collect();
        cpus.iter_mut().for_each(|(_, told)| told.sort_by(|a, b| b.share.total_cmp(&a.share)));
        cpus.sort_by(|a, b| b.1[0].share.total_cmp(&a.1[0].share));
        cpus
    }

    /// What is known of the measured CPUs but by no task's name, with its share.
    fn nameless(&self) -> Vec<(&'static str, f64)> {
        let unseen = match &self.hidden {
            None => "tasks that came and went between two looks",
            Some(_) => "tasks that are not visible here",
        };
        let enough = |ns: &u64| *ns >= NOTABLE_BY_TICKS_NS;
        let known = [
            (unseen, self.unseen_ns.filter(enough), NOTABLE_UNSEEN),
            ("further tasks", Some(self.other_tasks_ns), NOTABLE),
            ("the hypervisor (steal)", self.steal_ns, NOTABLE),
            ("interrupts", self.irq_ns.filter(enough), NOTABLE),
            ("soft interrupts (the link's own included)", self.softirq_ns.filter(enough), NOTABLE),
        ];
        let share = |ns: Option<u64>| self.share_of_all(ns.unwrap_or(0));
        let told = known.map(|(name, ns, limit)| (name, share(ns), limit));
        let told = told.into_iter().filter(|(_, share, limit)| share >= limit);
        told.map(|(name, share, _)| (name, share)).collect()
    }

    /// Sources of interrupts that come often enough, with their number a second and CPU.
    fn frequent(&self) -> Vec<(&str, f64)> {
        let seconds = self.elapsed_ns as f64 / 1e9 * self.cpus.len().max(1) as f64;
        let rate = |of: &Interrupts| if seconds > 0.0 { of.count as f64 / seconds } else { 0.0 };
        let is_own = |of: &Interrupts| OF_THE_RING.iter().any(|own| of.source.starts_with(own));
        let all = self.interrupts.iter().flatten().filter(|of| !is_own(of));
        let all = all.map(|of| (if of.name.is_empty() { &of.source } else { &of.name }, rate(of)));
        let told = all.filter(|(_, rate)| *rate >= NOTABLE_INTERRUPTS_PER_S);
        told.map(|(name, rate)| (name.as_str(), rate)).take(MOST_TOLD).collect()
    }

    /// What had enough of the CPUs to be told, a sentence each: `kdamond.0 (kernel thread) had 33 % of
    /// CPU 1`. Empty where nothing had.
    pub fn in_words(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        for (on, beside) in [(On::Measured, ""), (On::Sibling, ", which shares the core")] {
            for (cpu, told) in self.notable(on) {
                let had = |of: &Notable| {
                    format!("{} had {} of CPU {cpu}{beside}", of.who(), percent(of.share))
                };
                sentences.extend(told.iter().map(had));
            }
        }
        let cpus = cpus_words(&self.cpus);
        let nameless = self.nameless().into_iter();
        sentences.extend(
            nameless.map(|(name, share)| format!("{name} had {} of {cpus}", percent(share))),
        );
        let frequent = self.frequent().into_iter();
        sentences.extend(
            frequent.map(|(name, rate)| format!("{name} came {rate:.0} times a second, each CPU")),
        );
        sentences.extend(self.hidden.iter().map(|why| format!("tasks: not all visible ({why})")));
        sentences
    }

    /// The same in one line for the report: `also on CPU 1: kdamond.0 (kernel thread) 33 %, stress-ng
    /// 12 %`; absent where there is nothing to tell.
    pub fn line(&self) -> Option<String> {
        let mut parts = Vec::new();
        for (on, where_) in [(On::Measured, "on"), (On::Sibling, "beside it, on")] {
            let all = self.notable(on);
            let more = all.len().saturating_sub(MOST_TOLD);
            parts.extend(
                all.iter()
                    .take(MOST_TOLD)
                    .map(|(cpu, told)| format!("{where_} CPU {cpu}: {}", shortened(told))),
            );
            parts.extend((more > 0).then(|| format!("and on {more} more CPUs")));
        }
        let nameless: Vec<String> = self
            .nameless()
            .into_iter()
            .map(|(name, share)| format!("{name} {}", percent(share)))
            .collect();
        if !nameless.is_empty() {
            parts.push(format!("of {}: {}", cpus_words(&self.cpus), nameless.join(", ")));
        }
        let frequent = self.frequent().into_iter();
        parts.extend(frequent.map(|(name, rate)| format!("{name} {rate:.0} a second")));
        let told = (!parts.is_empty()).then(|| format!("also {}", parts.join("; ")));
        let hidden =
            self.hidden.as_ref().map(|why| format!("other tasks: not all visible ({why})"));
        match (told, hidden) {
            (None, None) => None,
            (told, hidden) => Some(told.into_iter().chain(hidden).collect::<Vec<_>>().join("; ")),
        }
    }
}

fn shortened(told: &[Notable]) -> String {
    let more = told.len().saturating_sub(MOST_TOLD);
    let named = told.iter().take(MOST_TOLD);
    let mut words: Vec<String> =
        named.map(|of| format!("{} {}", of.who(), percent(of.share))).collect();
    words.extend((more > 0).then(|| format!("{more} more")));
    words.join(", ")
}

/// `33 %`, below ten with a digit behind the point: `0.7 %`.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 9.95 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

fn cpus_words(cpus: &[u32]) -> String {
    let numbers: Vec<String> = cpus.iter().take(8).map(u32::to_string).collect();
    match cpus {
        [one] => format!("CPU {one}"),
        _ if cpus.len() > 8 => format!("the {} measured CPUs", cpus.len()),
        _ => format!("CPUs {}", numbers.join(",")),
    }
}

fn united(one: Vec<u32>, other: Vec<u32>) -> Vec<u32> {
    let mut all = [one, other].concat();
    all.sort_unstable();
    all.dedup();
    all
}

/// One item for each key, those of the same key added up.
fn summed<T, K: Ord>(
    all: impl Iterator<Item = T>,
    key: impl Fn(&T) -> K,
    add: impl Fn(&mut T, T),
) -> Vec<T> {
    let mut sums: BTreeMap<K, T> = BTreeMap::new();
    for one in all {
        match sums.entry(key(&one)) {
            std::collections::btree_map::Entry::Vacant(free) => {
                free.insert(one);
            }
            std::collections::btree_map::Entry::Occupied(mut sum) => add(sum.get_mut(), one),
        }
    }
    sums.into_values().collect()
}

#[cfg(test)]
mod tests;
