//! Wake-ups under load: workers that messengers wake on a schedule, beside busy tasks.
//!
//! A *request* is intended to arrive at a moment of the schedule. A messenger sleeps until then,
//! reads the clock and wakes the worker, which reads the clock, works and reads it again:
//!
//! ```text
//! intended      sent      received         done
//!    |--- late ---|-- wake --|--- work ------|
//!    |-------------- request ----------------|
//! ```
//!
//! The schedule does not wait for anybody (an open loop): a request that finds its worker busy
//! waits in its queue, and its time counts from the intended moment. A closed loop would send it
//! later and hide the wait (coordinated omission).

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use stats::OctaveScale;

use super::{MeasureUnit, Tally, TrialMeasure, TrialSample};
use crate::bounds::{MAX_DURATION_NS, check_within};
use crate::experiment::named;
use crate::machine::MAX_CPUS;
use crate::ring::MemberKind;

/// Most workers of a case, and most messengers.
pub const MAX_WORKERS: u32 = 256;
/// Most busy tasks beside them.
pub const MAX_BUSY_TASKS: u32 = 256;
/// Most requests a second of a messenger, and most that can be asked for by their rate.
pub const MAX_RATE_PER_S: u32 = 1_000_000;
/// Requests a second for which one messenger is planned. To send one takes some 2 us.
pub const PLANNED_RATE_PER_S: u32 = 100_000;
/// Highest load, in thousandths of the CPUs' time: four times what they have.
pub const MAX_LOAD_PERMILLE: u32 = 4000;
/// Longest sleep of a worker between two wakes, in nanoseconds.
pub const MAX_SLEEP_NS: u64 = 100_000_000;
/// Longest work on a request, in nanoseconds.
pub const MAX_THINK_NS: u64 = 10_000_000;
/// Largest array that a request walks over, in bytes.
pub const MAX_WORK_BYTES: u64 = 1 << 30;

/// The scale in which times are counted: a sample has at most [`TIME_PARTS`] different times, however
/// many requests it has.
pub const TIME_SCALE: OctaveScale = OctaveScale::SIXTY_FOUR_PARTS;
/// Number of parts of the scale that are counted. The last one has all longer times, from 135 s on.
pub const TIME_PARTS: usize = TIME_SCALE.part_index((1 << 37) - 1) + 1;

/// Returns the tally of times that were counted by the parts of [`TIME_SCALE`], each by the middle
/// of its part.
pub fn tally_parts(counts: impl IntoIterator<Item = u32>) -> Tally {
    let mut values = Vec::new();
    for (index, count) in counts.into_iter().enumerate() {
        let middle_ns = TIME_SCALE.part_middle(index);
        values.push((i64::try_from(middle_ns).unwrap_or(i64::MAX), count));
    }
    Tally::from(values)
}

/// Returns how many messengers are planned for so many requests a second of all workers together: one
/// for each [`PLANNED_RATE_PER_S`], and at most as many as workers.
pub fn planned_messengers(rate_per_s: f64, workers: u32) -> u32 {
    let messengers = (rate_per_s / f64::from(PLANNED_RATE_PER_S)).ceil() as u32;
    messengers.clamp(1, workers.max(1))
}

/// The time in which a worker had a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServedRequest {
    /// Its beginning, in nanoseconds: the worker's first reading of the clock after its sleep. Without
    /// a sleep the end of the request before, or the wake if that is later.
    pub begin_ns: u64,
    /// The worker's reading of the clock when it was done, in nanoseconds.
    pub done_ns: u64,
}

/// Returns the CPU time in nanoseconds that requests took by the clock: at each moment as many CPUs
/// as workers have a request, at most `cpus`. So it has all that keeps workers from working, busy
/// tasks on their CPUs as well, but not the time in which a sleeping worker is woken.
///
/// Of two workers on one CPU that have a request from 0 to 30 us and from 10 to 40 us this is 40 us.
pub fn occupied_ns(workers: &[Vec<ServedRequest>], cpus: usize) -> u64 {
    // Workers with a request: one more, or one less.
    let mut changes: Vec<(u64, i32)> = Vec::new();
    for requests in workers {
        let mut has_begun = false;
        for ServedRequest { begin_ns, done_ns } in requests {
            if done_ns <= begin_ns {
                continue;
            }
            match changes.last_mut() {
                // It goes on with the next one.
                Some(last) if has_begun && last.0 == *begin_ns => last.0 = *done_ns,
                _ => changes.extend([(*begin_ns, 1), (*done_ns, -1)]),
            }
            has_begun = true;
        }
    }
    changes.sort_unstable();
    let (mut total_ns, mut busy, mut since_ns) = (0, 0_i32, 0);
    for (moment_ns, change) in changes {
        let in_use = (busy.max(0) as usize).min(cpus) as u64;
        total_ns += in_use * (moment_ns - since_ns);
        (busy, since_ns) = (busy + change, moment_ns);
    }
    total_ns
}

/// The call by which a messenger wakes a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WakeMechanism {
    /// A word in shared memory (futex(2), FUTEX_WAIT and FUTEX_WAKE).
    Futex,
    /// A count that is read one by one (eventfd(2), EFD_SEMAPHORE).
    Eventfd,
    /// A byte in a pipe (pipe(2)).
    Pipe,
}

named!(WakeMechanism, "way to wake", Futex => "futex", Eventfd => "eventfd", Pipe => "pipe");

/// CPUs of the messengers, as the workers see them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WakerPlace {
    /// The workers' CPU.
    Same,
    /// The CPU that is nearest to the workers' CPU.
    Near,
    /// The CPU that is farthest from the workers' CPU.
    Far,
    /// The scheduler places messengers and workers on any of the CPUs.
    Free,
}

named!(WakerPlace, "place of messengers", Same => "same", Near => "near", Far => "far", Free => "free");

/// The schedule of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArrivalSchedule {
    /// Requests of an idle machine, with which the others are compared, at exponential gaps: those
    /// that take [`IDLE_PERMILLE`] of the CPUs' time, at most [`IDLE_RATE_PER_S`] a second. Of long
    /// requests a worker gets eight a second, or what takes half of the CPUs' time where that is
    /// less, so that a round ends in about a second.
    Idle,
    /// So many requests a second, of all messengers together, at exponential gaps.
    RatePerS(u32),
    /// Requests whose work takes so many thousandths of the time of the workers' CPUs, at
    /// exponential gaps.
    LoadPermille(u32),
    /// A wake of each worker every so many nanoseconds, at equal gaps: it sleeps as long, less its
    /// work.
    SleepNs(u64),
}

/// Most requests a second of an idle machine, of all messengers together.
pub const IDLE_RATE_PER_S: u32 = 1000;
/// Share of the CPUs' time that requests of an idle machine take, in thousandths; long ones take
/// more ([`ArrivalSchedule::Idle`]).
pub const IDLE_PERMILLE: u32 = 20;

impl fmt::Display for ArrivalSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Idle => f.write_str("idle"),
            Self::RatePerS(rate) => write!(f, "{rate}/s"),
            Self::LoadPermille(permille) => write!(f, "{} % load", f64::from(permille) / 10.0),
            Self::SleepNs(ns) => write!(f, "sleep {}", short_time(ns)),
        }
    }
}

/// Writes a time in the largest unit in which it is whole: `20 us`.
fn short_time(ns: u64) -> String {
    for (unit_ns, unit) in [(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "us")] {
        if ns >= unit_ns && ns % unit_ns == 0 {
            return format!("{} {unit}", ns / unit_ns);
        }
    }
    format!("{ns} ns")
}

/// The work on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequestWork {
    /// A loop that takes so many nanoseconds of an undisturbed CPU, as calibrated by each worker
    /// process. 0 is no work.
    ThinkNs(u64),
    /// A walk that reads and writes an array of so many bytes, of each worker its own.
    Bytes(u64),
}

impl fmt::Display for RequestWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ThinkNs(0) => f.write_str("no work"),
            Self::ThinkNs(ns) => write!(f, "think {}", short_time(ns)),
            Self::Bytes(bytes) => write!(f, "work {bytes} bytes"),
        }
    }
}

/// Workers that messengers wake under a load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WakeLoad {
    /// The schedule of requests.
    pub arrivals: ArrivalSchedule,
    /// The work on a request.
    pub work: RequestWork,
    /// The call that wakes.
    pub mechanism: WakeMechanism,
    /// Number of workers, each with a queue of its own.
    pub workers: u32,
    /// Number of messengers, each of which serves workers of its own in turn.
    pub messengers: u32,
    /// Kind of workers and messengers: processes or threads.
    pub kind: MemberKind,
    /// Number of processes under SCHED_OTHER that never wait, on the workers' CPUs.
    pub busy_tasks: u32,
    /// Place of the messengers.
    pub place: WakerPlace,
    /// CPUs of the workers.
    pub worker_cpus: Vec<u32>,
    /// CPUs of the messengers.
    pub messenger_cpus: Vec<u32>,
    /// Length of the schedule in a round, in nanoseconds.
    pub duration_ns: u64,
    /// Seed of the gaps; the round and the messenger are added.
    pub seed: u64,
}

impl WakeLoad {
    /// Checks that all numbers are in range.
    pub(super) fn check(&self) -> Result<(), String> {
        check_within("workers", self.workers, 1..=MAX_WORKERS)?;
        check_within("messengers", self.messengers, 1..=self.workers)?;
        check_within("busy_tasks", self.busy_tasks, 0..=MAX_BUSY_TASKS)?;
        check_within("duration_ns", self.duration_ns, 1..=MAX_DURATION_NS)?;
        for cpus in [&self.worker_cpus, &self.messenger_cpus] {
            check_within("number of CPUs", cpus.len(), 1..=MAX_CPUS as usize)?;
            for cpu in cpus {
                check_within("CPU", *cpu, 0..=MAX_CPUS - 1)?;
            }
        }
        match self.work {
            RequestWork::ThinkNs(ns) => check_within("think_ns", ns, 0..=MAX_THINK_NS)?,
            RequestWork::Bytes(bytes) => check_within("work", bytes, 8..=MAX_WORK_BYTES)?,
        }
        match self.arrivals {
            ArrivalSchedule::Idle => Ok(()),
            ArrivalSchedule::RatePerS(rate) => {
                check_within("rate", rate, self.workers..=MAX_RATE_PER_S)
            }
            ArrivalSchedule::LoadPermille(load) => {
                if self.work == RequestWork::ThinkNs(0) {
                    return Err("a load needs work".to_string());
                }
                check_within("load", load, 1..=MAX_LOAD_PERMILLE)
            }
            ArrivalSchedule::SleepNs(ns) => check_within("sleep_ns", ns, 1000..=MAX_SLEEP_NS),
        }
    }

    /// Returns the number of CPUs whose time the load is a share of: those that the workers can
    /// use at a time.
    pub fn loaded_cpus(&self) -> usize {
        self.worker_cpus.len().min(self.workers as usize)
    }

    /// Returns the requests a second of all messengers together, of requests that take `demand_ns`
    /// each; infinite for a load of requests without work. Absent for the idle machine, whose rate is
    /// chosen by each round.
    pub fn rate_per_s(&self, demand_ns: f64) -> Option<f64> {
        match self.arrivals {
            ArrivalSchedule::Idle => None,
            ArrivalSchedule::RatePerS(rate) => Some(rate.into()),
            ArrivalSchedule::LoadPermille(permille) => {
                let full_rate = self.loaded_cpus() as f64 * 1e9 / demand_ns;
                Some(full_rate * f64::from(permille) / 1000.0)
            }
            ArrivalSchedule::SleepNs(ns) => Some(f64::from(self.workers) * 1e9 / ns as f64),
        }
    }

    /// Returns every CPU that a worker or messenger may run on, sorted, each once.
    pub fn cpus(&self) -> Vec<u32> {
        let mut cpus = [self.worker_cpus.clone(), self.messenger_cpus.clone()].concat();
        cpus.sort_unstable();
        cpus.dedup();
        cpus
    }

    /// Returns these wake-ups on an idle machine: without busy tasks and at the rate of one.
    pub fn on_idle_machine(&self) -> Self {
        Self { arrivals: ArrivalSchedule::Idle, busy_tasks: 0, ..self.clone() }
    }

    /// Describes the load: `80 % load`, `idle`, `10000/s, 2 busy tasks`.
    pub fn load_words(&self) -> String {
        match self.busy_tasks {
            0 => self.arrivals.to_string(),
            1 => format!("{}, 1 busy task", self.arrivals),
            many => format!("{}, {many} busy tasks", self.arrivals),
        }
    }
}

impl fmt::Display for WakeLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (load, place, mechanism) = (self.load_words(), self.place, self.mechanism);
        write!(f, "wake-up by {mechanism}, {load}, from {place}")?;
        if self.workers > 1 {
            write!(f, ", {} workers", self.workers)?;
        }
        Ok(())
    }
}

/// Tally: nanoseconds from the messenger's reading of the clock right before the wake to the
/// worker's right after it, of requests for which the worker slept by the kernel's count of its
/// voluntary switches; the middle of its part of an octave, of 64.
pub const WAKE_NS: &str = "wake_ns";
/// Tally: nanoseconds from the intended arrival of a request to its end, of every request; the
/// middle of its part of an octave, of 64.
pub const REQUEST_NS: &str = "request_ns";
/// Count: requests that messengers sent, without those of the warm-up.
pub const SENT: &str = "requests_sent";
/// Count: requests that workers received, without those of the warm-up.
pub const RECEIVED: &str = "requests_received";
/// Count: wakes of which the kernel told messengers that they woke a worker, the warm-up included;
/// for futexes only.
pub const KERNEL_WAKES_SENT: &str = "kernel_wakes_sent";
/// Count: waits of which the kernel told workers that a wake ended them, the warm-up included; for
/// futexes only.
pub const KERNEL_WAKES_RECEIVED: &str = "kernel_wakes_received";
/// Count: sum of the times from the intended arrivals to the messengers' readings of the clock, in
/// nanoseconds.
pub const LATE_TOTAL_NS: &str = "late_total_ns";
/// Count: intended arrival of the last request after the beginning, the warm-up included, in
/// nanoseconds; the sample's `elapsed_ns` lasts until the last one is done.
pub const SCHEDULE_NS: &str = "schedule_ns";
/// Count: requests that workers received, the warm-up included. Absent in files of older versions.
pub const ALL_REQUESTS: &str = "all_requests";
/// Count: CPU time that [`ALL_REQUESTS`] took by the clock, in nanoseconds ([`occupied_ns`]). Absent
/// in files of older versions.
pub const OCCUPIED_NS: &str = "occupied_ns";
/// Count: time that messengers took to send [`ALL_REQUESTS`], by the clock and without their sleeps,
/// the sum over messengers in nanoseconds. Absent in files of older versions.
pub const MESSENGER_BUSY_NS: &str = "messenger_busy_ns";
/// Count: requests a second of all messengers together, as planned.
pub const RATE_PER_S: &str = "rate_per_s";
/// Count: the work on a request, as calibrated on the workers' CPU, in nanoseconds.
pub const DEMAND_NS: &str = "demand_ns";
/// Count: CPU time of all workers, in nanoseconds.
pub const WORKER_CPU_NS: &str = "worker_cpu_ns";
/// Count: voluntary switches of all workers.
pub const VOLUNTARY: &str = "voluntary";
/// Count: involuntary switches of all workers.
pub const INVOLUNTARY: &str = "involuntary";
/// Count: CPU time of all busy tasks, in nanoseconds; absent without one.
pub const BUSY_CPU_NS: &str = "busy_cpu_ns";

/// Returns the quantile `p` of a tally of the sample; absent without values.
fn sample_quantile(sample: &TrialSample, name: &str, p: f64) -> Option<f64> {
    sample.tally(name)?.quantile(p).map(|ns| ns as f64)
}

/// Medians of a round. Tails are taken of all rounds together.
pub(super) const MEASURES: [TrialMeasure; 2] = [
    TrialMeasure::new("wake_p50_ns", "wake ns", WAKE_NS, MeasureUnit::Ns, |sample| {
        sample_quantile(sample, WAKE_NS, 0.5)
    })
    .that_waits(),
    TrialMeasure::new("request_p50_ns", "request ns", REQUEST_NS, MeasureUnit::Ns, |sample| {
        sample_quantile(sample, REQUEST_NS, 0.5)
    })
    .that_waits(),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn load() -> WakeLoad {
        WakeLoad {
            arrivals: ArrivalSchedule::LoadPermille(800),
            work: RequestWork::ThinkNs(20_000),
            mechanism: WakeMechanism::Futex,
            workers: 2,
            messengers: 1,
            kind: MemberKind::Thread,
            busy_tasks: 0,
            place: WakerPlace::Near,
            worker_cpus: vec![1],
            messenger_cpus: vec![0],
            duration_ns: 250_000_000,
            seed: 7,
        }
    }

    #[test]
    fn titles_say_what_differs() {
        let busy = WakeLoad { busy_tasks: 2, ..load() };
        assert_eq!(load().to_string(), "wake-up by futex, 80 % load, from near, 2 workers");
        assert_eq!(busy.load_words(), "80 % load, 2 busy tasks");
        assert_eq!(busy.on_idle_machine().load_words(), "idle");
        assert_eq!(ArrivalSchedule::SleepNs(1_500_000).to_string(), "sleep 1500 us");
        assert_eq!(ArrivalSchedule::LoadPermille(1205).to_string(), "120.5 % load");
        assert_eq!(RequestWork::ThinkNs(999).to_string(), "think 999 ns");
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        let refused = |change: fn(&mut WakeLoad)| {
            let mut load = load();
            assert_eq!(load.check(), Ok(()));
            change(&mut load);
            load.check().unwrap_err()
        };
        let messages = [
            refused(|load| load.workers = 0),
            refused(|load| load.messengers = 3),
            refused(|load| load.busy_tasks = 257),
            refused(|load| load.duration_ns = 0),
            refused(|load| load.worker_cpus = Vec::new()),
            refused(|load| load.messenger_cpus = vec![u32::MAX]),
            refused(|load| load.work = RequestWork::ThinkNs(u64::MAX)),
            refused(|load| load.work = RequestWork::Bytes(7)),
            refused(|load| load.work = RequestWork::ThinkNs(0)),
            refused(|load| load.arrivals = ArrivalSchedule::RatePerS(0)),
            refused(|load| load.arrivals = ArrivalSchedule::LoadPermille(4001)),
            refused(|load| load.arrivals = ArrivalSchedule::SleepNs(999)),
        ];
        for message in messages {
            assert!(message.contains("accepted") || message == "a load needs work", "{message}");
        }
    }

    #[test]
    fn times_are_counted_by_parts_and_told_by_their_middles() {
        let mut counts = vec![0; TIME_PARTS];
        counts[TIME_SCALE.part_index(12_345)] = 3;
        counts[TIME_PARTS - 1] = 1;
        let tally = tally_parts(counts);
        assert_eq!(
            (tally.count(), tally.min(), tally.quantile(0.75)),
            (4, Some(12_351), Some(12_351))
        );
        assert_eq!(tally.max().map(|ns| ns >> 36), Some(1), "{:?}", tally.max());
    }

    #[test]
    fn messengers_are_planned_by_the_rate() {
        let planned = |rate| planned_messengers(rate, 256);
        assert_eq!([0.0, 1e5, 100_001.0, 10.24e6].map(planned), [1, 1, 2, 103]);
        assert_eq!([f64::INFINITY, f64::NAN].map(planned), [256, 1]);
        assert_eq!((planned_messengers(1e6, 2), planned_messengers(1e6, 0)), (2, 1));
    }

    fn served(times: &[(u64, u64)]) -> Vec<ServedRequest> {
        let mut requests = Vec::new();
        for (begin_ns, done_ns) in times {
            requests.push(ServedRequest { begin_ns: *begin_ns, done_ns: *done_ns });
        }
        requests
    }

    #[test]
    fn requests_occupy_the_cpus_that_their_workers_can_use() {
        let one = served(&[(0, 30), (30, 50), (70, 80)]);
        assert_eq!(occupied_ns(std::slice::from_ref(&one), 1), 60);
        let other = served(&[(20, 60)]);
        assert_eq!(occupied_ns(&[one.clone(), other.clone()], 1), 70);
        assert_eq!(occupied_ns(&[one, other], 2), 100);
        assert_eq!(occupied_ns(&[served(&[(0, 10)]), served(&[(10, 20)])], 1), 20);
        assert_eq!(occupied_ns(&[], 1), 0);
        // Clocks of a broken machine.
        assert_eq!(occupied_ns(&[served(&[(9, 3), (4, 5), (u64::MAX, 0)])], 1), 1);
    }

    #[test]
    fn a_load_is_of_the_cpus_that_workers_can_use() {
        let free = WakeLoad { worker_cpus: vec![0, 1, 2, 3], ..load() };
        assert_eq!((free.loaded_cpus(), load().loaded_cpus()), (2, 1));
        assert_eq!(free.cpus(), [0, 1, 2, 3]);
    }
}
