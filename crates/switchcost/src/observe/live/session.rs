//! The tracer, read from time to time.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use probe::program::WatchedProcess;
use rundata::machine::CpuList;
use rundata::reading::Reading;
use rundata::words::{grouped, time, two_digits};
use rustix::time::{ClockId, clock_gettime};
use schemars::JsonSchema;
use serde::Serialize;
use switchtrace::{
    Error, LostCounts, Options, RecordingOptions, ThreadSnapshot, ThreadTimeError, TraceEvent,
    Tracer, TracerCost,
};

use super::GroupBy;
use super::account::{SwitchAccount, TraceScope};
use super::labels::ProcessLabels;
use super::rows::{PreemptionCount, RowGrouping};
use crate::base::values::nanoseconds;

/// Time between two looks: the records of threads that have ended stay readable until as many
/// others have ended.
pub(crate) const LOOK: Duration = Duration::from_secs(1);

/// The tracer, and what it has seen.
pub(crate) struct TracerSession {
    tracer: Tracer,
    pub(crate) account: SwitchAccount,
    labels: ProcessLabels,
    by: Option<GroupBy>,
    /// Threads that the tracer's table has room for.
    max_threads: usize,
    /// The kernel's measurement of the tracer's programs, which goes on until it is dropped by the
    /// first look.
    measurement: Option<Result<TracerCost, Error>>,
    /// Nanoseconds that a switch takes in the tracer's programs; absent before the first look.
    ns_per_switch: Option<Reading<f64>>,
    begun: ClockMoment,
    looked: ClockMoment,
}

/// Returns whether /proc shows that a process has ended. One that cannot be read, or is hidden
/// (hidepid of proc(5)), may live.
fn has_ended(tgid: u32) -> bool {
    if !Path::new("/proc/1").exists() {
        return false;
    }
    let Ok(pid) = i32::try_from(tgid) else { return true };
    WatchedProcess::find(Path::new("/"), pid).is_err_and(|error| error.is_end())
}

/// A point in time, on the clock and in the CPU time of this program.
#[derive(Clone, Copy)]
struct ClockMoment {
    ns: u64,
    cpu_ns: u64,
}

/// Reads a clock, in nanoseconds.
pub(crate) fn clock_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl ClockMoment {
    fn now() -> Self {
        Self { ns: clock_ns(ClockId::Monotonic), cpu_ns: clock_ns(ClockId::ProcessCPUTime) }
    }
}

/// The cost of tracing itself.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Own")]
pub(crate) struct TracerOverhead {
    /// Nanoseconds a switch in the tracer's program, as the kernel measured it in the first second.
    pub(crate) ns_per_switch: Reading<f64>,
    /// CPU time of this program beside it, in nanoseconds.
    pub(crate) cpu_ns: u64,
    /// Share of all CPUs that both take, from 0 to 1.
    pub(crate) share: Reading<f64>,
    /// Preemptions of the tasks in scope by this program, its launcher included.
    pub(crate) preemptions: PreemptionCount,
}

impl TracerOverhead {
    /// Returns `this tracer: 0.3 % of the machine, 165 ns a switch`.
    pub(crate) fn in_words(&self) -> String {
        match (self.share.known(), self.ns_per_switch.known()) {
            (Some(share), Some(ns)) => format!(
                "this tracer: {} % of the machine, {ns:.0} ns a switch",
                two_digits(100.0 * share)
            ),
            _ => format!(
                "this tracer: {} of CPU time; what it adds to a switch is unknown: {}",
                time(self.cpu_ns as f64),
                self.ns_per_switch.why().unwrap_or_default()
            ),
        }
    }

    /// Returns `took the CPU: 21 of 144,000 switches (0.015 %), 10.5 a second`; none where it did
    /// not.
    pub(crate) fn took_in_words(&self) -> Option<String> {
        if self.preemptions.count == 0 {
            return None;
        }
        Some(format!("took the CPU: {}", self.preemptions.in_words()))
    }
}

impl TracerSession {
    /// Returns whether a process in scope lives. The tracer misses the end of one that ends while it
    /// is being attached, so /proc is asked, too.
    pub(crate) fn has_living_process(&self) -> bool {
        self.account.living_processes().any(|tgid| !has_ended(tgid))
    }

    /// Begins to trace, as [`Self::begin`]; an error names `instead`, a command that needs no
    /// privilege.
    pub(crate) fn open(
        scope: TraceScope,
        recording: Option<RecordingOptions>,
        by: Option<GroupBy>,
        instead: &str,
    ) -> Result<Self> {
        Self::begin(scope, recording, by)
            .map_err(|error| anyhow!("{error}; without tracing: `{instead}`"))
    }

    /// Begins to trace.
    ///
    /// # Errors
    /// Fails where the tracer cannot be loaded, or thread ids here are not those of the machine.
    pub(crate) fn begin(
        scope: TraceScope,
        recording: Option<RecordingOptions>,
        by: Option<GroupBy>,
    ) -> Result<Self> {
        let options = Options { recording, ..Options::default() };
        // Its words have the errno already.
        let tracer = Tracer::open(&options).map_err(|error| anyhow!("{error}"))?;
        check_thread_ids(&tracer)?;
        let measurement = tracer.measure_own_cost();
        let mut session = Self {
            tracer,
            account: SwitchAccount::new(scope).by_observer(std::process::id()),
            labels: ProcessLabels::new(Path::new("/")),
            by,
            max_threads: options.threads as usize,
            measurement: Some(measurement),
            ns_per_switch: None,
            begun: ClockMoment::now(),
            looked: ClockMoment::now(),
        };
        session.read_maps();
        session.begun = session.looked;
        Ok(session)
    }

    fn read_maps(&mut self) {
        let (mut threads, pairs) = (self.tracer.threads(), self.tracer.pairs());
        for thread in &mut threads {
            if thread.running {
                update_cpu_time(thread);
            }
        }
        self.looked = ClockMoment::now();
        let settled = self.account.add_look(self.looked.ns, threads, &pairs);
        self.tracer.forget(settled);
        self.read_labels();
    }

    /// Groups rows by this from now on.
    pub(crate) fn group_by(&mut self, by: GroupBy) {
        self.by = Some(by);
        self.read_labels();
    }

    /// Returns the grouping of rows, with the labels as of the last look.
    pub(crate) fn grouping(&self, by: GroupBy) -> RowGrouping<'_> {
        RowGrouping { by, labels: &self.labels }
    }

    fn read_labels(&mut self) {
        if let Some(by) = self.by {
            self.labels.read(by, self.account.threads().map(|thread| thread.tgid));
        }
    }

    /// Looks again.
    pub(crate) fn look(&mut self) {
        self.read_maps();
        // The kernel stops measuring where this is dropped.
        if let Some(measurement) = self.measurement.take() {
            self.ns_per_switch = Some(match &measurement {
                Ok(cost) => cost.ns_per_switch().ok_or("no switch was measured").into(),
                Err(error) => Reading::unknown(error.to_string()),
            });
        }
    }

    /// Returns whether it is time to look again.
    pub(crate) fn is_due(&self) -> bool {
        ClockMoment::now().ns.saturating_sub(self.looked.ns) >= nanoseconds(LOOK)
    }

    /// Looks again if it is time to.
    pub(crate) fn look_if_due(&mut self) {
        if self.is_due() {
            self.look();
        }
    }

    /// Returns the time from the beginning until now.
    pub(crate) fn since_begin(&self) -> Duration {
        Duration::from_nanos(ClockMoment::now().ns.saturating_sub(self.begun.ns))
    }

    /// Returns the time from the beginning to the last look.
    pub(crate) fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.looked.ns.saturating_sub(self.begun.ns))
    }

    /// Takes the recorded events that are there.
    pub(crate) fn drain(&mut self, take: impl FnMut(TraceEvent)) {
        if let Some(reader) = self.tracer.event_reader() {
            reader.drain(take);
        }
    }

    pub(crate) fn lost(&self) -> LostCounts {
        self.tracer.lost()
    }

    /// Begins anew: what was seen up to the last look is forgotten.
    pub(crate) fn begin_anew(&mut self) {
        self.begun = self.looked;
        self.account.forget();
    }

    /// Returns what tracing has taken since it began.
    pub(crate) fn overhead(&self) -> TracerOverhead {
        let switches = self.account.switches_of_all();
        let now = ClockMoment::now();
        let cpu_ns = now.cpu_ns.saturating_sub(self.begun.cpu_ns);
        let all_ns = now.ns.saturating_sub(self.begun.ns).max(1) as f64 * cpus() as f64;
        let ns_per_switch = self.ns_per_switch.clone();
        let ns_per_switch = ns_per_switch.unwrap_or_else(|| Reading::unknown("not measured yet"));
        let share = ns_per_switch.clone().map(|ns| (cpu_ns as f64 + ns * switches as f64) / all_ns);
        let preemptions = PreemptionCount::new(
            self.account.preempted_by_observer(),
            &self.account.total(),
            self.elapsed().as_secs_f64(),
        );
        TracerOverhead { ns_per_switch, cpu_ns, share, preemptions }
    }

    /// Returns what is not in the figures, in lines, what matters most first.
    pub(crate) fn gaps(&self) -> Vec<String> {
        let LostCounts { threads, pairs, events, .. } = self.lost();
        let mut lines = Vec::new();
        if events > 0 {
            let count = grouped(events as f64);
            lines.push(format!(
                "lost: {count} events are not in the recording (a larger --buffer keeps more)"
            ));
        }
        if threads > 0 {
            let count = grouped(threads as f64);
            lines
                .push(format!("lost: {count} switches of threads that did not fit into the table"));
        }
        if pairs > 0 {
            let count = grouped(pairs as f64);
            lines.push(format!("lost: {count} switches are in no pair, as the table was full"));
        }
        let half = self.max_threads / 2;
        if self.account.most_ended >= half {
            lines.push(format!(
                "lost: more than {half} threads ended within a second; some may be missing"
            ));
        }
        lines
    }
}

/// Refuses to trace where thread ids are not those of the machine: nothing of what follows would
/// describe the threads that are named.
fn check_thread_ids(tracer: &Tracer) -> Result<()> {
    match tracer.thread_times() {
        Ok(_) => Ok(()),
        Err(Error::Table(ThreadTimeError::NotTraced)) => bail!(
            "thread ids here are not those of the machine: trace from outside of the \
             container, or run it in the host's pid namespace (--pid=host)"
        ),
        Err(error) => bail!("{error}"),
    }
}

/// Updates the CPU time of a running thread: the tracer's is as of the last switch, the kernel's as
/// of now. A thread that only seems to run, as the kernel ran no program for its switch, gets the
/// right one, too.
fn update_cpu_time(thread: &mut ThreadSnapshot) {
    let path = format!("/proc/{}/task/{}/schedstat", thread.tgid, thread.key.tid);
    let text = fs::read_to_string(path).unwrap_or_default();
    let ns = text.split(' ').next().and_then(|ns| ns.parse().ok());
    thread.cpu_ns = thread.cpu_ns.max(ns.unwrap_or(0));
}

/// Returns the number of CPUs that are online, at least 1.
pub(crate) fn cpus() -> usize {
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    match online.trim().parse::<CpuList>() {
        Ok(cpus) => cpus.iter().count().max(1),
        Err(_) => 1,
    }
}
