//! `top --openmetrics`: the switches of each control group as counters, for the textfile collector of
//! node_exporter.
//!
//! ```text
//! SwitchCounter   the kernel's counts of each thread since its birth; no program runs at switches
//!      |
//! ThreadGrowth    growth since the last look, by process
//!      | ProcessGroups: the control group of each process
//! GroupCounters   sums since the exporter began, of so many groups; the rest is `other`
//!      |
//! CounterSink     a file that is there whole or not at all
//! ```
//!
//! A look costs the same at any rate of switches. What no label tells apart here, as the kernel's
//! counts do not: yields are involuntary, and a sleep is voluntary whether the CPU goes idle or not.
//! Idle CPUs have no control group and no thread; how often they were left is a counter of its own.

mod cgroups;
mod groups;
mod growth;
mod sink;

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use rustix::time::ClockId;
use switchtrace::SwitchCounter;

use super::counters::{CounterFamily, CounterValue};
use crate::base::failure::print_message;
use crate::base::values::Destination;
use crate::engine::interrupt::Interrupt;
use crate::observe::live::session::clock_ns;
use crate::report::output::check_destination;
use crate::report::output::exports::Labels;
use cgroups::ProcessGroups;
use groups::GroupCounters;
use growth::{SwitchTotals, ThreadGrowth};
use sink::CounterSink;

/// Threads that there is room for at once at the least, with those that ended since they were last
/// collected: 4 MiB.
const MIN_THREADS: u32 = 65_536;
/// Room for a machine's threads, in times of how many there are at the start.
const ROOM: u32 = 4;
/// Most threads that switchtrace has room for.
const MAX_THREADS: u32 = 1 << 22;
/// Longest time from one look to the next, so that few processes end before their control group is
/// read.
const MAX_LOOK: Duration = Duration::from_secs(15);
/// Time from one collection of ended threads to the next, so that there is room for others.
const COLLECT: Duration = Duration::from_secs(1);

/// How long and how often it is looked, and how many control groups have series.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExportPace {
    pub(super) interval: Duration,
    pub(super) end: Instant,
    pub(super) updates: u64,
    pub(super) max_groups: usize,
}

/// Writes the counters to `to`, at once and in each interval, until the time is over, a signal comes or
/// nobody reads them any longer.
///
/// # Errors
/// Fails where threads cannot be counted, or the file cannot be written several times in a row.
pub(super) fn export(to: &Destination, pace: ExportPace, interrupt: &Interrupt) -> Result<()> {
    check_destination("--openmetrics", to)?;
    let mut exporter = GroupExporter::open(pace.max_groups)?;
    let mut sink = CounterSink::new(to);
    let mut is_read = sink.put(&exporter.text())?;
    for _ in 0..pace.updates {
        if !is_read {
            break;
        }
        let due = (Instant::now() + pace.interval).min(pace.end);
        exporter.wait_until(due, interrupt)?;
        exporter.look_again()?;
        is_read = sink.put(&exporter.text())?;
        if interrupt.signal().is_some() || due >= pace.end {
            break;
        }
    }
    Ok(())
}

/// Switches from idle CPUs to tasks. The kernel counts all switches, and those of tasks: the rest are
/// those of idle threads.
#[derive(Debug, Default)]
struct IdleSwitches {
    all_at_start: Option<u64>,
    task_switches: u64,
    /// The most that was seen: both counts are read one after the other.
    most: u64,
    /// Whether all switches could be read in this look.
    is_read: bool,
    /// Whether switches of some tasks were lost: they would be taken for those of idle threads.
    is_lost: bool,
}

impl IdleSwitches {
    /// Updates the count by all switches since boot, and those of tasks since the last look.
    fn update(&mut self, all: Option<u64>, grown: u64) {
        self.is_read = all.is_some();
        if self.all_at_start.is_some() {
            self.task_switches += grown;
        }
        let Some(all) = all else { return };
        let all_at_start = *self.all_at_start.get_or_insert(all);
        let idle = all.saturating_sub(all_at_start).saturating_sub(self.task_switches);
        self.most = self.most.max(idle);
    }

    /// Returns the count; absent if it is not known.
    fn count(&self) -> Option<u64> {
        (self.is_read && !self.is_lost).then_some(self.most)
    }
}

/// Parses the number of switches of all CPUs since boot, those of idle threads among them, in the
/// content of `/proc/stat`.
fn parse_all_switches(stat: &str) -> Option<u64> {
    let line = stat.lines().find_map(|line| line.strip_prefix("ctxt "))?;
    line.trim().parse().ok()
}

/// Parses the number of the machine's threads in the content of `/proc/loadavg`: `0.5 0.4 0.3 2/126 77`.
fn parse_threads(loadavg: &str) -> Option<u32> {
    let running_and_all = loadavg.split_whitespace().nth(3)?;
    running_and_all.split('/').nth(1)?.parse().ok()
}

/// Returns how many threads there is room for on a machine with so many.
fn room_for(threads: Option<u32>) -> u32 {
    threads.unwrap_or(0).saturating_mul(ROOM).clamp(MIN_THREADS, MAX_THREADS)
}

/// The outcome of the first look.
#[derive(Clone, Copy, Debug)]
struct FirstLook {
    /// How often a thread had no room.
    lost: u64,
    /// How many threads there is room for.
    room: u32,
    /// Whether this program is among the processes.
    sees_itself: bool,
}

impl FirstLook {
    /// Checks that all threads are counted.
    fn check(self) -> Result<()> {
        let Self { lost, room, sees_itself } = self;
        if lost > 0 {
            bail!(
                "no room for {lost} threads of this machine: there is room for {room}, {ROOM} times as \
                 many as /proc/loadavg had when it was begun (start it again)"
            );
        }
        if !sees_itself {
            bail!(
                "thread ids here are not those of the machine: count from outside of the \
                 container, or run it in the host's pid namespace (--pid=host)"
            );
        }
        Ok(())
    }
}

struct GroupExporter {
    counter: SwitchCounter,
    /// How many threads there is room for.
    room: u32,
    growth: ThreadGrowth,
    processes: ProcessGroups,
    groups: GroupCounters,
    idle: IdleSwitches,
}

impl GroupExporter {
    /// Begins to count: what comes from now on.
    ///
    /// # Errors
    /// Fails where threads cannot be counted, or their ids here are not those of the machine.
    fn open(max_groups: usize) -> Result<Self> {
        let loadavg = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let room = room_for(parse_threads(&loadavg));
        let counter = SwitchCounter::open(room).map_err(|error| {
            anyhow!(
                "{error}. Without privileges, node_exporter (--collector.schedstat) and \
                 process-exporter have counters that deploy/prometheus prices"
            )
        })?;
        let mut exporter = Self {
            counter,
            room,
            growth: ThreadGrowth::default(),
            processes: ProcessGroups::new(Path::new("/")),
            groups: GroupCounters::new(max_groups),
            idle: IdleSwitches::default(),
        };
        exporter.look()?;
        let lost = exporter.counter.lost_threads();
        let sees_itself = exporter.processes.path(std::process::id()).is_some();
        FirstLook { lost, room, sees_itself }.check()?;
        Ok(exporter)
    }

    /// Waits until an update is due or a signal comes. Collects and looks meanwhile so that few threads
    /// are lost.
    fn wait_until(&mut self, due: Instant, interrupt: &Interrupt) -> Result<()> {
        let mut next_look = Instant::now() + MAX_LOOK;
        while !interrupt.wait_until(due, COLLECT) {
            if Instant::now() >= next_look {
                self.look_again()?;
                next_look = Instant::now() + MAX_LOOK;
            }
            self.counter.collect().context("the counts of ended threads")?;
        }
        Ok(())
    }

    /// Looks, and adds what was done since the last look.
    fn look(&mut self) -> Result<()> {
        let began_ns = clock_ns(ClockId::Monotonic);
        let threads = self.counter.read().context("the counts of all threads")?;
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let processes = self.growth.by_process(threads, began_ns);
        self.processes.read(&processes);
        let mut groups: HashMap<String, SwitchTotals> = HashMap::new();
        let mut switches = 0;
        for (tgid, process) in processes {
            switches += process.grown.switches();
            if process.grown == SwitchTotals::default() {
                continue;
            }
            match self.processes.path(tgid) {
                Some(path) => groups.entry(path.to_string()).or_default().add(process.grown),
                None => self.groups.add_unknown(process.grown),
            }
        }
        self.groups.add(groups);
        self.idle.update(parse_all_switches(&stat), switches);
        Ok(())
    }

    /// Looks, and says once if threads were lost.
    fn look_again(&mut self) -> Result<()> {
        self.look()?;
        self.say_lost();
        Ok(())
    }

    fn say_lost(&mut self) {
        let lost = self.counter.lost_threads();
        if lost == 0 || self.idle.is_lost {
            return;
        }
        self.idle.is_lost = true;
        print_message(&format!(
            "warning: no room for {lost} threads (there is room for {}): their switches are not counted, \
             and those of idle CPUs no longer, as they cannot be told apart. Start it again.",
            self.room
        ));
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
        if let Some(count) = self.idle.count() {
            text += &idle.text(&[plain_value(count as f64)]);
        }
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
    use super::growth::tests::thread;
    use super::*;

    /// 50,000 wake-ups of an idle CPU are 100,000 switches of the machine: 50,000 of tasks, which are
    /// voluntary, and 50,000 of idle threads, which the kernel counts as involuntary.
    #[test]
    fn idle_cpus_are_never_counted_as_preempted() {
        let mut idle = IdleSwitches::default();
        idle.update(Some(7_000_000), 0);
        assert_eq!(idle.count(), Some(0));
        let mut growth = ThreadGrowth::default();
        growth.by_process(vec![thread(10, 10, 0, 0)], 0);
        let grown = growth.by_process(vec![thread(10, 10, 50_000, 0)], 1)[&10].grown;
        idle.update(Some(7_100_000), grown.switches());
        assert_eq!((grown.involuntary, idle.count()), (0, Some(50_000)));
        // A counter never goes back, though the two counts are read one after the other.
        idle.update(Some(7_100_002), 10);
        assert_eq!(idle.count(), Some(50_000));
    }

    #[test]
    fn idle_switches_that_are_not_known_are_not_exported() {
        let mut idle = IdleSwitches::default();
        idle.update(None, 500);
        assert_eq!(idle.count(), None);
        idle.update(Some(1_000), 500);
        idle.update(None, 20);
        assert_eq!(idle.count(), None);
        idle.update(Some(1_100), 30);
        assert_eq!(idle.count(), Some(50));
        // Those of lost threads would be taken for idle ones, from then on.
        idle.is_lost = true;
        idle.update(Some(1_200), 0);
        assert_eq!(idle.count(), None);
        assert_eq!(parse_all_switches("cpu 1 2\nctxt 77\nbtime 5"), Some(77));
        assert_eq!(parse_all_switches(""), None);
    }

    #[test]
    fn there_is_room_for_all_threads_of_a_large_machine() {
        assert_eq!(parse_threads("2.49 1.43 2.67 9/30126 5514\n"), Some(30_126));
        assert_eq!(parse_threads(""), None);
        for (threads, room) in [
            (None, 65_536),
            (Some(126), 65_536),
            (Some(30_000), 120_000),
            (Some(u32::MAX), 1 << 22),
        ] {
            assert_eq!(room_for(threads), room, "{threads:?}");
        }
    }

    /// This program's own record is the last one: without room for it its id is no reason.
    #[test]
    fn too_little_room_is_said_before_foreign_ids() {
        let look = FirstLook { lost: 1_234, room: 65_536, sees_itself: false };
        let error = look.check().unwrap_err().to_string();
        assert!(error.contains("1234") && error.contains("65536"), "{error}");
        let error = FirstLook { lost: 0, ..look }.check().unwrap_err().to_string();
        assert!(error.contains("--pid=host"), "{error}");
        assert!(FirstLook { lost: 0, sees_itself: true, ..look }.check().is_ok());
    }
}
