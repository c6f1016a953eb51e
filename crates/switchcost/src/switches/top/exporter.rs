//! `top --openmetrics`: the switches of each control group as counters, for the textfile collector of
//! node_exporter.
//!
//! ```text
//! SwitchCounter   the kernel's counts of each thread since its birth; no program runs at switches
//!      | growth since the last look, by process
//! ProcessLabels   the control group of each process
//!      |
//! GroupCounters   sums since the exporter began, of so many groups; the rest is `other`
//!      |
//! write_output    a file that is there whole or not at all
//! ```
//!
//! A look costs the same at any rate of switches. What no label tells apart here, as the kernel's
//! counts do not: yields are involuntary, and a sleep is voluntary whether the CPU goes idle or not.
//! Idle CPUs have no control group and no thread; how often they were left is a counter of its own.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use rustix::time::ClockId;
use switchtrace::{SwitchCounter, ThreadCounts, ThreadKey};

use super::counters::{CounterFamily, CounterValue};
use crate::base::values::Destination;
use crate::engine::interrupt::Interrupt;
use crate::observe::live::GroupBy;
use crate::observe::live::labels::ProcessLabels;
use crate::observe::live::session::clock_ns;
use crate::report::output::exports::Labels;
use crate::report::output::{check_destination, write_output};

/// Threads that there is room for at once, with those that ended since the last look.
const MAX_THREADS: u32 = 16_384;
/// Longest time from one look to the next, so that the threads that end in between have room.
const MAX_LOOK: Duration = Duration::from_secs(15);
/// Looks without a switch after which a control group gives its series to another one.
const MAX_QUIET_LOOKS: u32 = 20;
/// The control group of all that have no series of their own.
const OTHER: &str = "other";
/// What [`ProcessLabels`] calls a process that ended before its label was read.
const UNKNOWN: &str = "?";

/// How long and how often it is looked, and how many control groups have series.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExportPace {
    pub(super) interval: Duration,
    pub(super) end: Instant,
    pub(super) updates: u64,
    pub(super) max_groups: usize,
}

/// Writes the counters to `to`, at once and in each interval, until the time is over or a signal
/// comes.
///
/// # Errors
/// Fails where threads cannot be counted, or the file cannot be written.
pub(super) fn export(to: &Destination, pace: ExportPace, interrupt: &Interrupt) -> Result<()> {
    check_destination("--openmetrics", to)?;
    let mut exporter = GroupExporter::open(pace.max_groups)?;
    write_output(exporter.text().as_bytes(), to)?;
    for _ in 0..pace.updates {
        let due = (Instant::now() + pace.interval).min(pace.end);
        while !interrupt.wait_until(due, MAX_LOOK) {
            exporter.look()?;
        }
        exporter.look()?;
        write_output(exporter.text().as_bytes(), to)?;
        if interrupt.signal().is_some() || due >= pace.end {
            break;
        }
    }
    Ok(())
}

/// Switches and CPU time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SwitchTotals {
    voluntary: u64,
    involuntary: u64,
    cpu_ns: u64,
}

impl SwitchTotals {
    /// Returns what a thread did since `before`, or in all its life.
    fn since(thread: &ThreadCounts, before: Option<&ThreadCounts>) -> Self {
        let Some(before) = before else {
            let ThreadCounts { voluntary, involuntary, cpu_ns, .. } = *thread;
            return Self { voluntary, involuntary, cpu_ns };
        };
        Self {
            voluntary: thread.voluntary.saturating_sub(before.voluntary),
            involuntary: thread.involuntary.saturating_sub(before.involuntary),
            cpu_ns: thread.cpu_ns.saturating_sub(before.cpu_ns),
        }
    }

    fn add(&mut self, more: Self) {
        self.voluntary += more.voluntary;
        self.involuntary += more.involuntary;
        self.cpu_ns += more.cpu_ns;
    }

    fn switches(self) -> u64 {
        self.voluntary + self.involuntary
    }
}

/// The threads of the last look.
#[derive(Debug, Default)]
struct ThreadGrowth {
    /// Absent before the first look.
    last: Option<HashMap<ThreadKey, ThreadCounts>>,
}

impl ThreadGrowth {
    /// Returns what each process did since the last look; nothing at the first one. A thread that is
    /// new was born since, unless there was no room for some threads: then its past is not counted.
    fn by_process(
        &mut self,
        threads: Vec<ThreadCounts>,
        had_room: bool,
    ) -> HashMap<u32, SwitchTotals> {
        let mut processes: HashMap<u32, SwitchTotals> = HashMap::new();
        let mut now = HashMap::with_capacity(threads.len());
        for thread in threads {
            if let Some(last) = &self.last {
                let before = last.get(&thread.key);
                let grown = SwitchTotals::since(&thread, before);
                if grown != SwitchTotals::default() && (before.is_some() || had_room) {
                    processes.entry(thread.tgid).or_default().add(grown);
                }
            }
            now.insert(thread.key, thread);
        }
        self.last = Some(now);
        processes
    }

    /// Returns the processes that have a living thread.
    fn living_processes(&self) -> HashSet<u32> {
        let mut living = HashSet::new();
        for thread in self.last.iter().flat_map(HashMap::values) {
            if !thread.ended {
                living.insert(thread.tgid);
            }
        }
        living
    }
}

/// The counters of a control group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct GroupSeries {
    totals: SwitchTotals,
    /// Looks since its last switch.
    quiet_looks: u32,
}

/// Counters by control group, of a limited number of groups.
///
/// What a group does while it has no series belongs to `other` for ever, so that no counter goes
/// back and nothing is counted twice.
#[derive(Debug)]
struct GroupCounters {
    max_groups: usize,
    groups: BTreeMap<String, GroupSeries>,
    rest: SwitchTotals,
}

impl GroupCounters {
    fn new(max_groups: usize) -> Self {
        Self { max_groups, groups: BTreeMap::new(), rest: SwitchTotals::default() }
    }

    /// Adds what control groups did in a look. Of groups without series those that switched most
    /// come first to what room there is.
    fn add(&mut self, grown: HashMap<String, SwitchTotals>) {
        for series in self.groups.values_mut() {
            series.quiet_looks += 1;
        }
        let mut grown = Vec::from_iter(grown);
        grown.sort_by(|(a_name, a), (b_name, b)| {
            b.switches().cmp(&a.switches()).then_with(|| a_name.cmp(b_name))
        });
        // Known groups first: one that switches does not lose its series to a new one.
        let mut unknown = Vec::new();
        for (name, totals) in grown {
            match self.groups.get_mut(&name) {
                Some(series) => {
                    series.totals.add(totals);
                    series.quiet_looks = 0;
                }
                None => unknown.push((name, totals)),
            }
        }
        for (name, totals) in unknown {
            if name == OTHER || name == UNKNOWN || !self.make_room() {
                self.rest.add(totals);
            } else {
                self.groups.insert(name, GroupSeries { totals, quiet_looks: 0 });
            }
        }
    }

    /// Returns whether there is room for another series, after taking that of the group that has
    /// been quiet for longest, if that is long enough.
    fn make_room(&mut self) -> bool {
        if self.groups.len() < self.max_groups {
            return true;
        }
        let quietest = self.groups.iter().max_by_key(|(_, series)| series.quiet_looks);
        match quietest {
            Some((name, series)) if series.quiet_looks >= MAX_QUIET_LOOKS => {
                let name = name.clone();
                self.groups.remove(&name);
                true
            }
            _ => false,
        }
    }

    /// Returns a line for each group, `other` last, with so many more labels and a figure.
    fn values(&self, kind: Option<&str>, figure: fn(SwitchTotals) -> f64) -> Vec<CounterValue> {
        let mut values = Vec::new();
        for (name, series) in &self.groups {
            values.push(group_value(name, kind, figure(series.totals)));
        }
        values.push(group_value(OTHER, kind, figure(self.rest)));
        values
    }

    fn text(&self) -> String {
        let switches = CounterFamily {
            name: "switchcost_cgroup_switches",
            unit: "",
            help: "Switches of the tasks of a control group, yields among the involuntary ones.",
        };
        let mut values = self.values(Some("voluntary"), |totals| totals.voluntary as f64);
        values.extend(self.values(Some("involuntary"), |totals| totals.involuntary as f64));
        let cpu_time = CounterFamily {
            name: "switchcost_cgroup_cpu_seconds",
            unit: "seconds",
            help: "CPU time of the tasks of a control group.",
        };
        let times = self.values(None, |totals| totals.cpu_ns as f64 / 1e9);
        switches.text(&values) + &cpu_time.text(&times)
    }
}

fn group_value(group: &str, kind: Option<&str>, value: f64) -> CounterValue {
    let mut labels: Labels = vec![("cgroup".to_string(), group.to_string())];
    labels.extend(kind.map(|kind| ("kind".to_string(), kind.to_string())));
    CounterValue { labels, value }
}

/// Switches from idle CPUs to tasks. The kernel counts all switches, and those of tasks: the rest are
/// those of idle threads.
#[derive(Debug, Default)]
struct IdleSwitches {
    all_at_start: Option<u64>,
    task_switches: u64,
    /// The most that was seen: both counts are read one after the other.
    most: u64,
}

impl IdleSwitches {
    /// Updates the count by all switches since boot, and those of tasks since the last look.
    fn update(&mut self, all: u64, grown: u64) {
        let Some(all_at_start) = self.all_at_start else {
            self.all_at_start = Some(all);
            return;
        };
        self.task_switches += grown;
        let idle = all.saturating_sub(all_at_start).saturating_sub(self.task_switches);
        self.most = self.most.max(idle);
    }
}

/// Reads the number of switches of all CPUs since boot, those of idle threads among them.
fn read_all_switches() -> Option<u64> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("ctxt "))?;
    line.trim().parse().ok()
}

struct GroupExporter {
    counter: SwitchCounter,
    growth: ThreadGrowth,
    labels: ProcessLabels,
    groups: GroupCounters,
    idle: IdleSwitches,
}

impl GroupExporter {
    /// Begins to count: what comes from now on.
    ///
    /// # Errors
    /// Fails where threads cannot be counted, or their ids here are not those of the machine.
    fn open(max_groups: usize) -> Result<Self> {
        let counter = SwitchCounter::open(MAX_THREADS).map_err(|error| anyhow!("{error}"))?;
        let mut exporter = Self {
            counter,
            growth: ThreadGrowth::default(),
            labels: ProcessLabels::new(Path::new("/")),
            groups: GroupCounters::new(max_groups),
            idle: IdleSwitches::default(),
        };
        exporter.look()?;
        if !exporter.growth.living_processes().contains(&std::process::id()) {
            bail!(
                "thread ids here are not those of the machine: count from outside of the \
                 container, or run it in the host's pid namespace (--pid=host)"
            );
        }
        Ok(exporter)
    }

    /// Looks, and adds what was done since the last look.
    fn look(&mut self) -> Result<()> {
        let threads = self.counter.read().context("the counts of all threads")?;
        let all = read_all_switches();
        let had_room = self.counter.lost_threads() == 0;
        let processes = self.growth.by_process(threads, had_room);
        let mut labelled = self.growth.living_processes();
        labelled.extend(processes.keys());
        self.labels.read(GroupBy::Cgroup, labelled.into_iter());
        let mut groups: HashMap<String, SwitchTotals> = HashMap::new();
        let mut switches = 0;
        for (tgid, totals) in processes {
            switches += totals.switches();
            groups.entry(self.labels.label(tgid)).or_default().add(totals);
        }
        if let Some(all) = all {
            self.idle.update(all, switches);
        }
        self.groups.add(groups);
        Ok(())
    }

    fn text(&self) -> String {
        let idle = CounterFamily {
            name: "switchcost_idle_switches",
            unit: "",
            help: "Switches from an idle CPU to a task; as many go the other way.",
        };
        let lost = CounterFamily {
            name: "switchcost_lost_threads",
            unit: "",
            help: "Times that a thread had no room among those that are counted.",
        };
        let own = CounterFamily {
            name: "switchcost_exporter_cpu_seconds",
            unit: "seconds",
            help: "CPU time of the program that writes this.",
        };
        let cpu_s = clock_ns(ClockId::ProcessCPUTime) as f64 / 1e9;
        let mut text = self.groups.text();
        text += &idle.text(&[plain_value(self.idle.most as f64)]);
        text += &lost.text(&[plain_value(self.counter.lost_threads() as f64)]);
        text += &own.text(&[plain_value(cpu_s)]);
        text + "# EOF\n"
    }
}

fn plain_value(value: f64) -> CounterValue {
    CounterValue { labels: Labels::new(), value }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(tid: u32, tgid: u32, voluntary: u64, involuntary: u64) -> ThreadCounts {
        ThreadCounts {
            key: ThreadKey { tid, born: tid },
            tgid,
            ended: false,
            cpu_ns: 1_000 * (voluntary + involuntary),
            voluntary,
            involuntary,
        }
    }

    fn totals(voluntary: u64, involuntary: u64) -> SwitchTotals {
        SwitchTotals { voluntary, involuntary, cpu_ns: 1_000 * (voluntary + involuntary) }
    }

    #[test]
    fn processes_grow_by_what_their_threads_did_since_the_last_look() {
        let mut growth = ThreadGrowth::default();
        let first = vec![thread(10, 10, 1_000, 10), thread(11, 10, 50, 0)];
        assert_eq!(growth.by_process(first, true), HashMap::new());
        // One goes on, one sleeps, one was born and has ended since.
        let ended = ThreadCounts { ended: true, ..thread(20, 20, 4, 2) };
        let second = vec![thread(10, 10, 1_005, 12), thread(11, 10, 50, 0), ended];
        let expected = HashMap::from([(10, totals(5, 2)), (20, totals(4, 2))]);
        assert_eq!(growth.by_process(second.clone(), true), expected);
        assert_eq!(growth.living_processes(), HashSet::from([10]));
        assert_eq!(growth.by_process(second.clone(), true), HashMap::new());
        // Where there was no room, one that is new may be old.
        let third = [second, vec![thread(30, 30, 9_000, 0)]].concat();
        assert_eq!(growth.by_process(third, false), HashMap::new());
    }

    fn grown(groups: &[(&str, u64)]) -> HashMap<String, SwitchTotals> {
        let mut grown = HashMap::new();
        for (name, switches) in groups {
            grown.insert((*name).to_string(), totals(*switches, 0));
        }
        grown
    }

    #[test]
    fn series_are_bounded_and_what_has_none_is_other() {
        let mut counters = GroupCounters::new(2);
        counters.add(grown(&[("little", 1), ("much", 30), ("more", 40), ("?", 5)]));
        assert_eq!(Vec::from_iter(counters.groups.keys()), ["more", "much"]);
        assert_eq!(counters.rest, totals(6, 0));
        // A group that switches keeps its series, however much a new one does.
        counters.add(grown(&[("little", 1_000), ("much", 1), ("other", 7)]));
        assert_eq!(counters.groups["much"].totals, totals(31, 0));
        assert_eq!(counters.rest, totals(1_013, 0));
    }

    #[test]
    fn a_quiet_group_gives_its_series_away_and_no_counter_goes_back() {
        let mut counters = GroupCounters::new(1);
        counters.add(grown(&[("quiet", 10)]));
        let mut rest = counters.rest;
        for look in 1..MAX_QUIET_LOOKS {
            counters.add(grown(&[("new", 3)]));
            assert!(counters.groups.contains_key("quiet"), "{look}");
            assert!(counters.rest.switches() >= rest.switches());
            rest = counters.rest;
        }
        counters.add(grown(&[("new", 3)]));
        // What it did before stays where it was counted.
        assert_eq!(counters.groups["new"].totals, totals(3, 0));
        assert_eq!((counters.groups.len(), counters.rest), (1, rest));
    }

    #[test]
    fn each_group_has_lines_by_kind_and_a_group_cannot_end_a_line() {
        let mut counters = GroupCounters::new(5);
        counters.add(HashMap::from([("a\"b".to_string(), totals(3, 1))]));
        let expected = "\
# TYPE switchcost_cgroup_switches counter
# HELP switchcost_cgroup_switches Switches of the tasks of a control group, yields among the involuntary ones.
switchcost_cgroup_switches_total{cgroup=\"a\\\"b\",kind=\"voluntary\"} 3
switchcost_cgroup_switches_total{cgroup=\"other\",kind=\"voluntary\"} 0
switchcost_cgroup_switches_total{cgroup=\"a\\\"b\",kind=\"involuntary\"} 1
switchcost_cgroup_switches_total{cgroup=\"other\",kind=\"involuntary\"} 0
# TYPE switchcost_cgroup_cpu_seconds counter
# UNIT switchcost_cgroup_cpu_seconds seconds
# HELP switchcost_cgroup_cpu_seconds CPU time of the tasks of a control group.
switchcost_cgroup_cpu_seconds_total{cgroup=\"a\\\"b\"} 0.000004
switchcost_cgroup_cpu_seconds_total{cgroup=\"other\"} 0
";
        assert_eq!(counters.text(), expected);
    }

    /// 50,000 wake-ups of an idle CPU are 100,000 switches of the machine: 50,000 of tasks, which are
    /// voluntary, and 50,000 of idle threads, which the kernel counts as involuntary.
    #[test]
    fn idle_cpus_are_never_counted_as_preempted() {
        let mut idle = IdleSwitches::default();
        idle.update(7_000_000, 0);
        assert_eq!(idle.most, 0);
        let mut growth = ThreadGrowth::default();
        growth.by_process(vec![thread(10, 10, 0, 0)], true);
        let processes = growth.by_process(vec![thread(10, 10, 50_000, 0)], true);
        idle.update(7_100_000, processes[&10].switches());
        assert_eq!((processes[&10].involuntary, idle.most), (0, 50_000));
        // A counter never goes back, though the two counts are read one after the other.
        idle.update(7_100_002, 10);
        assert_eq!(idle.most, 50_000);
    }
}
