//! The tracer, read from time to time.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
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
use super::rows::PreemptionCount;
use crate::base::values::nanoseconds;

/// Time between two looks: the records of threads that have ended stay readable until as many
/// others have ended.
pub(crate) const LOOK: Duration = Duration::from_secs(1);

/// The tracer, and what it has seen.
pub(crate) struct TracerSession {
    tracer: Tracer,
    pub(crate) account: SwitchAccount,
    pub(crate) labels: ProcessLabels,
    by: Option<GroupBy>,
    threads: usize,
    /// The kernel measures the programs until the first look.
    measuring: Result<TracerCost, Error>,
    /// What a switch takes; absent before the first look.
    ns_per_switch: Option<Reading<f64>>,
    begun: Moment,
    looked: Moment,
}

/// A point in time, on the clock and in the CPU time of this program.
#[derive(Clone, Copy)]
struct Moment {
    ns: u64,
    cpu_ns: u64,
}

/// What a clock shows, in nanoseconds.
pub(crate) fn clock_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl Moment {
    fn now() -> Self {
        Self { ns: clock_ns(ClockId::Monotonic), cpu_ns: clock_ns(ClockId::ProcessCPUTime) }
    }
}

/// What tracing itself takes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Own")]
pub(crate) struct TracerOverhead {
    /// Nanoseconds a switch in the tracer's program, as the kernel measured it in the first second.
    pub(crate) ns_per_switch: Reading<f64>,
    /// CPU time of this program beside it, in nanoseconds.
    pub(crate) cpu_ns: u64,
    /// Share of all CPUs that both take, from 0 to 1.
    pub(crate) share: Reading<f64>,
    /// How often this program, its launcher included, took the CPU from what it looked at.
    pub(crate) preemptions: PreemptionCount,
}

impl TracerOverhead {
    /// `this tracer: 0.3 % of the machine, 165 ns a switch`.
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

    /// `took the CPU: 21 of 144,000 switches (0.015 %), 10.5 a second`; none where it did not.
    pub(crate) fn took_in_words(&self) -> Option<String> {
        let PreemptionCount { count, .. } = self.preemptions;
        (count > 0).then(|| format!("took the CPU: {}", self.preemptions.in_words()))
    }
}

impl TracerSession {
    /// The same as [`TracerSession::begin`]; `instead` is a command that needs no privilege, for the
    /// error.
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
    pub(crate) fn begin(
        scope: TraceScope,
        recording: Option<RecordingOptions>,
        by: Option<GroupBy>,
    ) -> Result<Self> {
        let options = Options { recording, ..Options::default() };
        // Its words have the errno already.
        let tracer = Tracer::open(&options).map_err(|error| anyhow!("{error}"))?;
        // Where thread ids are others, nothing of what follows would be of the threads that are
        // named.
        let elsewhere = "thread ids here are not those of the machine: trace from outside of the \
             container, or run it in the host's pid namespace (--pid=host)";
        match tracer.thread_times() {
            Err(Error::Table(ThreadTimeError::NotTraced)) => bail!(elsewhere),
            times => drop(times.map_err(|error| anyhow!("{error}"))?),
        }
        let measuring = tracer.measure_own_cost();
        let mut session = Self {
            tracer,
            account: SwitchAccount::new(scope).by_observer(std::process::id()),
            labels: ProcessLabels::new(Path::new("/")),
            by,
            threads: options.threads as usize,
            measuring,
            ns_per_switch: None,
            begun: Moment::now(),
            looked: Moment::now(),
        };
        session.see();
        session.begun = session.looked;
        Ok(session)
    }

    fn see(&mut self) {
        let (mut threads, pairs) = (self.tracer.threads(), self.tracer.pairs());
        threads.iter_mut().filter(|thread| thread.running).for_each(until_now);
        self.looked = Moment::now();
        let settled = self.account.see(self.looked.ns, threads, &pairs);
        self.tracer.forget(settled);
        self.label();
    }

    /// Groups by this from now on.
    pub(crate) fn group_by(&mut self, by: GroupBy) {
        self.by = Some(by);
        self.label();
    }

    fn label(&mut self) {
        if let Some(by) = self.by {
            self.labels.read(by, self.account.threads().map(|thread| thread.tgid));
        }
    }

    /// Looks again.
    pub(crate) fn look(&mut self) {
        self.see();
        if self.ns_per_switch.is_none() {
            self.ns_per_switch = Some(match &self.measuring {
                Ok(own) => own.ns_per_switch().ok_or("no switch was measured").into(),
                Err(error) => Reading::unknown(error.to_string()),
            });
            self.measuring = Err(Error::Options("measured"));
        }
    }

    /// Whether it is time to look again.
    pub(crate) fn is_due(&self) -> bool {
        Moment::now().ns.saturating_sub(self.looked.ns) >= nanoseconds(LOOK)
    }

    /// Looks again if it is time to.
    pub(crate) fn look_if_due(&mut self) {
        if self.is_due() {
            self.look();
        }
    }

    /// From the beginning until now.
    pub(crate) fn since_begin(&self) -> Duration {
        Duration::from_nanos(Moment::now().ns.saturating_sub(self.begun.ns))
    }

    /// From the beginning to the last look.
    pub(crate) fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.looked.ns.saturating_sub(self.begun.ns))
    }

    /// Takes the recorded events that are there.
    pub(crate) fn drain(&mut self, take: impl FnMut(TraceEvent)) {
        self.tracer.event_reader().map(|event_reader| event_reader.drain(take));
    }

    pub(crate) fn lost(&self) -> LostCounts {
        self.tracer.lost()
    }

    /// Begins anew: what was seen is forgotten, up to the last look.
    pub(crate) fn begin_anew(&mut self) {
        self.begun = self.looked;
        self.account.forget();
    }

    /// What tracing has taken since it began.
    pub(crate) fn own(&self) -> TracerOverhead {
        let switches = self.account.switches_of_all();
        let now = Moment::now();
        let cpu_ns = now.cpu_ns.saturating_sub(self.begun.cpu_ns);
        let all_ns = now.ns.saturating_sub(self.begun.ns).max(1) as f64 * cpus() as f64;
        let ns_per_switch = self.ns_per_switch.clone();
        let ns_per_switch = ns_per_switch.unwrap_or_else(|| Reading::unknown("not measured yet"));
        let share = ns_per_switch.clone().map(|ns| (cpu_ns as f64 + ns * switches as f64) / all_ns);
        let (account, seconds) = (&self.account, self.elapsed().as_secs_f64());
        let preemptions =
            PreemptionCount::of(account.preempted_by_observer(), &account.total(), seconds);
        TracerOverhead { ns_per_switch, cpu_ns, share, preemptions }
    }

    /// What is not in the figures: lines, what matters most first.
    pub(crate) fn gaps(&self) -> Vec<String> {
        let LostCounts { threads, pairs, events, .. } = self.lost();
        let crowded = self.account.most_ended >= self.threads / 2;
        let [of_threads, of_pairs, of_events] =
            [threads, pairs, events].map(|count| grouped(count as f64));
        let half = self.threads / 2;
        let all = [
            (
                events > 0,
                format!(
                    "{of_events} events are not in the recording (a larger --buffer keeps more)"
                ),
            ),
            (
                threads > 0,
                format!(
                    "{of_threads} switches of threads that did not fit into the \
                table"
                ),
            ),
            (pairs > 0, format!("{of_pairs} switches are in no pair, as the table was full")),
            (
                crowded,
                format!("more than {half} threads ended within a second; some may be missing"),
            ),
        ];
        all.into_iter()
            .filter(|(is_so, _)| *is_so)
            .map(|(_, line)| format!("lost: {line}"))
            .collect()
    }
}

/// The kernel's figure of what runs: the tracer's is that of the last switch. A thread that only
/// seems to run, as the kernel ran no program for its switch, has the right one, too.
fn until_now(thread: &mut ThreadSnapshot) {
    let path = format!("/proc/{}/task/{}/schedstat", thread.tgid, thread.key.tid);
    let text = fs::read_to_string(path).unwrap_or_default();
    let ns = text.split(' ').next().and_then(|ns| ns.parse().ok());
    thread.cpu_ns = thread.cpu_ns.max(ns.unwrap_or(0));
}

/// CPUs that are online.
pub(crate) fn cpus() -> usize {
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    online.trim().parse().map_or(1, |cpus: CpuList| cpus.iter().count().max(1))
}
