//! A timed batch of laps as the worker saw it, its slices and the reference quanta between them;
//! and triples: the ring between two solos of each of its members, all on the same memory. Raw
//! figures only.
//!
//! The cost of a switch depends on the clock of the core and on whether another task uses the
//! core's other hardware thread. Neither can be read. So a batch is cut into slices of about 0.25
//! ms, and between two slices runs a reference quantum, two short loops whose times show both:
//!
//! ```text
//! quantum   quantum   slice     quantum   slice     quantum   quantum
//! 6.0, 6.1  6.0, 6.1  250 us    6.0, 6.1  263 us    6.0, 8.4  6.0, 8.4
//! ```
//!
//! The first time of a quantum is the latency-bound loop's, which follows the clock; the second is
//! the throughput-bound loop's, which is longer where the core is shared, as behind the last slice.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::RingCase;
use crate::bounds::saturating_sum;
use crate::placement::Placement;

/// Counts of the kernel for all members of a ring between two moments at which the ring stood
/// still. A figure that the kernel did not give is absent, never zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counters {
    /// Switches because the member had to wait (`nr_voluntary_switches`).
    pub voluntary: u64,
    /// Switches because another task was to run (`nr_involuntary_switches`).
    pub involuntary: u64,
    /// Moves from one CPU to another.
    pub migrations: Option<u64>,
    /// Page faults served without input or output.
    pub minor_faults: u64,
    /// Page faults that had to wait for input.
    pub major_faults: u64,
    /// CPU time by the scheduler's precise sum, in nanoseconds. Where the sample has slices, it
    /// includes the reference quanta between them (`RingSample::cpu_ns` leaves them out).
    pub cpu_ns: u64,
    /// Part of `cpu_ns` in user mode by the kernel's tick sampling, in nanoseconds; absent when no
    /// tick fell into the sample.
    pub user_ns: Option<u64>,
    /// Part of `cpu_ns` in the kernel by its tick sampling, in nanoseconds; absent as `user_ns`.
    pub system_ns: Option<u64>,
    /// Time that members could have run but waited for a CPU, in nanoseconds (`schedstat`); absent
    /// in older runs and where the kernel does not count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_delay_ns: Option<u64>,
    /// Times for which members could not run; absent in older runs and where nothing was noticed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub halts: Option<HaltTimes>,
}

/// Times for which members may have stood still during a sample, as far as the kernel tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HaltTimes {
    /// Time for which the control group had used up its CPU quota, in nanoseconds (`cpu.stat`).
    pub throttled_ns: u64,
    /// Time for which the control group was frozen, in nanoseconds (`cgroup.stat.local`, since
    /// Linux 6.18).
    pub frozen_ns: u64,
    /// Time for which the machine was suspended, in nanoseconds: not in the elapsed time.
    pub suspended_ns: u64,
    /// Tells whether a member was told to continue after a stop (SIGCONT).
    pub continued: bool,
}

impl Counters {
    /// Returns all switches: the voluntary ones alone miss those of a writer whom the woken member
    /// preempts.
    pub fn switches(&self) -> u64 {
        self.voluntary.saturating_add(self.involuntary)
    }
}

/// A timed batch of laps. The default has no laps and unknown figures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RingSample {
    /// Number of the case in the plan.
    pub case: usize,
    /// Round, from 0: a fresh worker for each case.
    pub round: u32,
    /// Sample within the round, from 0.
    pub sample: u32,
    /// Timed laps.
    pub laps: u64,
    /// Timed hops: laps times members, or the items of a stream over a full link.
    pub hops: u64,
    /// Time of the timed laps, in nanoseconds (CLOCK_MONOTONIC_RAW).
    pub elapsed_ns: u64,
    /// Counts of the kernel around the timed laps.
    pub counters: Counters,
    /// Time stolen by the hypervisor from the ring's CPUs, in nanoseconds, in steps of the
    /// kernel's 10 ms; absent where it is not reported.
    pub steal_ns: Option<u64>,
    /// Time from the start of the ring's set-up to its first, untimed, lap, in nanoseconds.
    pub setup_ns: u64,
    /// The batch in slices and the reference quanta between them. Absent where the plan has no
    /// slices, in runs of schema 1, and on architectures that the quanta are not written for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slices: Option<Slices>,
    /// Solos on the same memory before and after the ring; absent where solos are rings of their
    /// own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triples: Option<Box<Triples>>,
    /// Bytes of transparent huge pages that the members' processes had after their arrays were
    /// written (of small arrays more than they need: a page is given whole); absent without a
    /// working set and where the kernel does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub huge_page_bytes: Option<u64>,
    /// Samples of the rings that ran at the same time, in the order of their placements; empty for
    /// a ring by itself. Laps, hops and counters of this sample are then sums over them, and its
    /// time is their mean.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rings: Vec<RingSample>,
    /// Time from the first of several rings that began its timed laps to this one, in nanoseconds;
    /// absent for a ring by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ns: Option<u64>,
}

/// Disturbance of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Disturbance {
    /// The hypervisor ran something else, for this time in nanoseconds.
    Steal(u64),
    /// Other tasks, interrupts or unreported steal on the ring's one CPU: share of the elapsed
    /// time, 0 to 1.
    OtherWork(f64),
    /// Members waited for pages, this often.
    MajorFaults(u64),
    /// A pinned member changed its CPU, this often.
    Migrations(u64),
    /// No member ran although one could have: cause, and time in nanoseconds.
    Halt(HaltCause, u64),
}

/// Cause for which members stood still.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HaltCause {
    /// A signal stopped one (SIGSTOP, Ctrl-Z).
    Stopped,
    /// The control group's CPU quota was used up.
    Throttled,
    /// The control group was frozen.
    Frozen,
    /// The machine was suspended.
    Suspended,
    /// The kernel does not tell.
    Unknown,
}

impl HaltCause {
    /// Every cause.
    pub const ALL: [Self; 5] =
        [Self::Stopped, Self::Throttled, Self::Frozen, Self::Suspended, Self::Unknown];

    /// Describes the cause.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Stopped => "a member was stopped by a signal",
            Self::Throttled => "the CPU quota of the control group was used up",
            Self::Frozen => "the control group was frozen",
            Self::Suspended => "the machine was suspended",
            Self::Unknown => "stopped or starved",
        }
    }
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Steal(ns) => write!(f, "steal:{ns}ns"),
            Self::OtherWork(share) => write!(f, "other-work:{:.0}%", share * 100.0),
            Self::MajorFaults(count) => write!(f, "major-faults:{count}"),
            Self::Migrations(count) => write!(f, "migrations:{count}"),
            Self::Halt(why, ns) => write!(f, "{why}:{ns}ns"),
        }
    }
}

impl fmt::Display for HaltCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stopped => "stopped",
            Self::Throttled => "throttled",
            Self::Frozen => "frozen",
            Self::Suspended => "suspended",
            Self::Unknown => "stopped-or-starved",
        })
    }
}

/// Least share of the elapsed time without a member running or waiting for a CPU at which a sample
/// stood still: far more than interrupts take.
const HALT_LIMIT: f64 = 0.2;
/// Least time by which a slice on several CPUs must exceed the median slice to have stood still, in
/// nanoseconds: a CPU may be idle in every hop, but wakes within milliseconds.
const HALTED_SLICE_NS: u64 = 10_000_000;
const HALTED_SLICE_TIMES: u64 = 3;

/// Largest share of the elapsed time that others may have had before a one-CPU sample counts as
/// disturbed. The timer tick and its soft interrupts take well below this on an idle machine.
pub const OTHER_WORK_LIMIT: f64 = 0.05;

impl RingSample {
    /// Returns the time per hop, in nanoseconds. Of several rings it is the mean over their hops.
    pub fn ns_per_hop(&self) -> f64 {
        self.rings.len().max(1) as f64 * self.elapsed_ns as f64 / self.hops as f64
    }

    /// Returns the CPU time of all members for the timed laps without the reference quanta, in
    /// nanoseconds.
    pub fn cpu_ns(&self) -> u64 {
        self.counters.cpu_ns.saturating_sub(self.reference_ns())
    }

    /// Returns the user and the system part of [`Self::cpu_ns`].
    ///
    /// The quanta run in user mode. As the split rests on ticks, a sample of which few ticks fell
    /// into user mode may have spent less than nothing there; sums over samples are right.
    pub fn user_system_ns(&self) -> Option<(i64, i64)> {
        let user_ns = signed_ns(self.counters.user_ns?);
        let system_ns = signed_ns(self.counters.system_ns?);
        Some((user_ns.saturating_sub(signed_ns(self.reference_ns())), system_ns))
    }

    fn reference_ns(&self) -> u64 {
        self.slices.as_ref().map_or(0, Slices::reference_ns)
    }

    /// Returns the slices, if there are any and they are short enough to be judged by the quanta
    /// around them.
    pub fn judged_slices(&self) -> Option<&Slices> {
        self.slices.as_ref().filter(|slices| slices.can_be_judged())
    }

    /// Returns whether the sample was timed as the machine was found, without waiting.
    pub fn is_as_found(&self) -> bool {
        self.slices.as_ref().is_none_or(Slices::are_as_found)
    }

    /// Returns whether a member moved that was to stay on its CPU.
    pub fn has_moved(&self, case: &RingCase) -> bool {
        let pinned = !matches!(case.placement, Placement::Free { .. });
        pinned && self.counters.migrations.is_some_and(|count| count > 0)
    }

    /// Returns whether other tasks had so much of the ring's one CPU that no slice of the sample
    /// can be told from theirs. Applies to rings with too many members to ask them after each
    /// slice.
    pub fn is_shared_throughout(&self, case: &RingCase) -> bool {
        let by_slice = case.members <= MAX_ASKED_MEMBERS;
        let is_known = self.counters.cpu_ns > 0 && case.is_one_cpu();
        // What stood still had the CPU before and after.
        let others = !is_alone(self.elapsed_ns, self.cpu_ns()) && self.halt(case).is_none();
        !by_slice && is_known && others
    }

    /// Returns the CPU time of all members per hop, in nanoseconds.
    pub fn cpu_ns_per_hop(&self) -> f64 {
        self.cpu_ns() as f64 / self.hops as f64
    }

    /// Returns the counted switches without those of a leader that waited for an unshared core.
    pub fn switches(&self) -> u64 {
        let in_waits = self.slices.as_ref().map_or(0, Slices::switches_in_waits);
        self.counters.switches().saturating_sub(in_waits)
    }

    /// Returns the counted switches per hop.
    pub fn switches_per_hop(&self) -> f64 {
        self.switches() as f64 / self.hops as f64
    }

    /// Returns the wake-ups per hop. Members sleep at both ends of a sample, or run (the leader), so
    /// that each wait of a member, a voluntary switch, has one wake-up.
    pub fn wakeups_per_hop(&self) -> f64 {
        self.counters.voluntary as f64 / self.hops as f64
    }

    /// Lists the disturbances of the sample, as far as the kernel's counts show them.
    pub fn disturbances(&self, case: &RingCase) -> Vec<Disturbance> {
        let other_work = 1.0 - self.cpu_ns() as f64 / self.elapsed_ns as f64;
        let one_cpu = case.is_one_cpu() && self.elapsed_ns > 0;
        let halt = self.halt(case);
        let mut disturbances = Vec::new();
        match self.steal_ns {
            Some(ns) if ns > 0 => disturbances.push(Disturbance::Steal(ns)),
            _ => {}
        }
        if one_cpu && other_work > OTHER_WORK_LIMIT && halt.is_none() {
            disturbances.push(Disturbance::OtherWork(other_work));
        }
        if self.counters.major_faults > 0 {
            disturbances.push(Disturbance::MajorFaults(self.counters.major_faults));
        }
        if let (Some(count), true) = (self.counters.migrations, self.has_moved(case)) {
            disturbances.push(Disturbance::Migrations(count));
        }
        disturbances.extend(halt.map(|(why, ns)| Disturbance::Halt(why, ns)));
        disturbances
    }

    /// Returns the cause and the time for which the ring stood still, in nanoseconds: what the
    /// kernel counted, or elapsed time that is far above what is accounted for.
    fn halt(&self, case: &RingCase) -> Option<(HaltCause, u64)> {
        let halts = self.counters.halts.unwrap_or_default();
        if halts.suspended_ns > 0 {
            return Some((HaltCause::Suspended, halts.suspended_ns));
        }
        if self.is_above_share(halts.frozen_ns, OTHER_WORK_LIMIT) {
            return Some((HaltCause::Frozen, halts.frozen_ns));
        }
        if self.is_above_share(halts.throttled_ns, OTHER_WORK_LIMIT) {
            return Some((HaltCause::Throttled, halts.throttled_ns));
        }
        let unaccounted_ns = self.unaccounted_ns(case, &halts);
        if !self.is_above_share(unaccounted_ns, HALT_LIMIT) {
            return None;
        }
        let cause = if halts.continued { HaltCause::Stopped } else { HaltCause::Unknown };
        Some((cause, unaccounted_ns))
    }

    /// Returns whether a time in nanoseconds is more than this share of the elapsed time, 0 to 1.
    fn is_above_share(&self, ns: u64, share: f64) -> bool {
        ns as f64 > share * self.elapsed_ns as f64
    }

    /// Returns the time in which no member ran, waited for a CPU, or was said to, in nanoseconds.
    ///
    /// On one CPU one member always does. On several all may be idle while one wakes up: there only
    /// slices tell that are far longer than the others, or the signal that ended a stop. Without
    /// run delay, in older runs, it may have been other work.
    fn unaccounted_ns(&self, case: &RingCase, halts: &HaltTimes) -> u64 {
        let Some(run_delay_ns) = self.counters.run_delay_ns else { return 0 };
        let waits_for_pages = self.counters.major_faults > 0;
        let one_cpu = case.is_one_cpu() && !waits_for_pages;
        let idle_ns = if one_cpu || halts.continued {
            self.elapsed_ns.saturating_sub(self.cpu_ns())
        } else if waits_for_pages {
            0
        } else {
            self.slices.as_ref().map_or(0, Slices::far_too_long_ns)
        };
        idle_ns.saturating_sub(run_delay_ns).saturating_sub(self.steal_ns.unwrap_or(0))
    }
}

fn signed_ns(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

/// Longest slice that is judged, in nanoseconds: the quanta around a longer one are too far apart
/// to show what was between them.
pub const MAX_JUDGED_SLICE_NS: u64 = 3_000_000;

/// Largest share of a slice that other tasks may have had of its CPU before it counts as shared
/// with them: less than a figure is known to.
pub const OTHERS_LIMIT: f64 = 0.02;

/// Most members of a ring that are asked for their CPU time after each slice: a clock takes a
/// quarter of a microsecond, and asking a member brings back into the cache what the kernel keeps
/// of it.
pub const MAX_ASKED_MEMBERS: u32 = 64;

/// Returns whether the CPU time is all of the time that passed, both in nanoseconds.
pub fn is_alone(elapsed_ns: u64, cpu_ns: u64) -> bool {
    elapsed_ns.saturating_sub(cpu_ns) as f64 <= OTHERS_LIMIT * elapsed_ns as f64
}

/// Quanta before and behind a slice that show whether it is clean.
pub const QUANTA_AROUND: usize = 4;

/// Multiplications in one turn of the latency-bound loop, each waiting for the one before.
pub const MULTIPLIES_PER_TURN: u32 = 16;
/// Turns of the latency-bound loop: 7,200 multiplications, 6 us at 3 cycles each and 3.6 GHz.
pub const MULTIPLY_TURNS: u32 = 450;
/// Additions in one turn of the throughput-bound loop, in eight chains.
pub const ADDS_PER_TURN: u32 = 64;
/// Turns of the throughput-bound loop: 86,400 additions, as long as the other loop where four are
/// made a cycle.
pub const ADD_TURNS: u32 = 1350;

/// A timed batch in slices, with a reference quantum before the first, between all and behind the
/// last. Where a slice has no neighbour there are two, so that slice i lies between quanta i, i + 1
/// and i + 2, i + 3.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Slices {
    /// Laps of each slice; the last slice has what is left of the batch.
    pub laps: u64,
    /// Time of each slice's laps, in nanoseconds (CLOCK_MONOTONIC_RAW).
    #[serde(deserialize_with = "exact")]
    pub elapsed_ns: Vec<u64>,
    /// Time of the latency-bound loop of each quantum, in nanoseconds: three more than slices.
    #[serde(deserialize_with = "exact")]
    pub latency_ns: Vec<u32>,
    /// Time of the throughput-bound loop of each quantum, in nanoseconds: three more than slices.
    #[serde(deserialize_with = "exact")]
    pub throughput_ns: Vec<u32>,
    /// CPU time of all that is measured in each slice, in nanoseconds; the rest of the slice's time
    /// went to others. Empty where several CPUs are measured or members are too many to be asked
    /// after each slice, and in older runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "exact")]
    pub cpu_ns: Vec<u64>,
    /// Counts of each event of the plan, in its order, slice by slice; empty where nothing was
    /// counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Vec<u64>>,
    /// Waits for an unshared core, in the order of time. Absent where the batch was timed as the
    /// machine was found, without waiting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Vec<CoreWait>>,
}

/// A wait for an unshared core: quanta without anything between them, until two in a row were those
/// of such a core, or the time for waiting was over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CoreWait {
    /// Number of the slice before which it came.
    pub slice: u32,
    /// Duration, in nanoseconds.
    pub elapsed_ns: u64,
    /// CPU time of the wait, in nanoseconds: less than the duration where something else ran.
    pub cpu_ns: u64,
    /// Switches of the leader during the wait: something else ran.
    pub switches: u64,
    /// Time of the latency-bound loop of its last quantum, in nanoseconds.
    pub latency_ns: u32,
    /// Time of the throughput-bound loop of its last quantum, in nanoseconds.
    pub throughput_ns: u32,
}

/// Reads a list without room for more: a run file has hundreds of thousands of these.
fn exact<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    Box::<[T]>::deserialize(from).map(Vec::from)
}

/// Returns an empty list with room for `count` values, whose pages have been touched.
fn touched<T: Clone>(value: T, count: usize) -> Vec<T> {
    let mut room = vec![value; count];
    room.clear();
    room
}

/// Sums the times of quanta, in nanoseconds.
pub(super) fn quanta_ns(times: &[u32]) -> u64 {
    saturating_sum(times.iter().map(|ns| u64::from(*ns)))
}

impl Slices {
    /// Makes room for a batch of slices. All of it has been touched: filling it faults no page.
    pub fn with_room_for(slices: usize, laps: u64) -> Self {
        let quanta = slices + QUANTA_AROUND - 1;
        Self {
            laps,
            elapsed_ns: touched(u64::MAX, slices),
            latency_ns: touched(u32::MAX, quanta),
            throughput_ns: touched(u32::MAX, quanta),
            cpu_ns: touched(u64::MAX, slices),
            events: Vec::new(),
            waits: None,
        }
    }

    /// Adds room for the counts of events in each slice.
    pub fn with_events(mut self, events: usize) -> Self {
        let slices = self.elapsed_ns.capacity();
        self.events.clear();
        for _ in 0..events {
            self.events.push(touched(u64::MAX, slices));
        }
        self
    }

    /// Like [`Self::with_room_for`], for a batch that waits for an unshared core: with room for a
    /// wait before each slice.
    pub fn that_wait(slices: usize, laps: u64) -> Self {
        let wait = CoreWait { slice: u32::MAX, ..CoreWait::default() };
        Self { waits: Some(touched(wait, slices)), ..Self::with_room_for(slices, laps) }
    }

    /// Returns the two quanta before slice `index` and the two behind it, in the order of time.
    ///
    /// Before the slice after one that was waited for, the first of them is the last of the wait. A
    /// slice that was waited for has none: it warms up what has lain still, or was left by a
    /// neighbour, and never counts.
    pub fn around(&self, index: usize) -> Option<[(u32, u32); QUANTA_AROUND]> {
        if self.wait_for(index).is_some() {
            return None;
        }
        let mut before = self.quantum(index)?;
        if index > 0 {
            if let Some(wait) = self.wait_for(index - 1) {
                before = (wait.latency_ns, wait.throughput_ns);
            }
        }
        let behind = [self.quantum(index + 2)?, self.quantum(index + 3)?];
        Some([before, self.quantum(index + 1)?, behind[0], behind[1]])
    }

    fn quantum(&self, at: usize) -> Option<(u32, u32)> {
        Some((*self.latency_ns.get(at)?, *self.throughput_ns.get(at)?))
    }

    fn wait_for(&self, slice: usize) -> Option<&CoreWait> {
        self.waits.as_ref()?.iter().find(|wait| wait.slice as usize == slice)
    }

    /// Returns whether no other task ran on the CPU during slice `index`; `None` where CPU times
    /// were not taken.
    pub fn was_alone(&self, index: usize) -> Option<bool> {
        Some(is_alone(*self.elapsed_ns.get(index)?, *self.cpu_ns.get(index)?))
    }

    /// Iterates over all quanta: times of the latency-bound and of the throughput-bound loop.
    pub fn quanta(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let between = self.latency_ns.iter().copied().zip(self.throughput_ns.iter().copied());
        let last = self.waits.iter().flatten().map(|wait| (wait.latency_ns, wait.throughput_ns));
        between.chain(last)
    }

    /// Returns the time by which slices exceed the median slice, of those that are far too long, in
    /// nanoseconds.
    fn far_too_long_ns(&self) -> u64 {
        let mut sorted = self.elapsed_ns.clone();
        sorted.sort_unstable();
        let middle = sorted.get(sorted.len() / 2).copied().unwrap_or(0);
        let longest =
            middle.saturating_mul(HALTED_SLICE_TIMES).max(middle.saturating_add(HALTED_SLICE_NS));
        let first_over = sorted.partition_point(|ns| *ns <= longest);
        saturating_sum(sorted[first_over..].iter().map(|ns| ns - middle))
    }

    /// Returns the counts of the event at this place of the plan, slice by slice; `None` where it
    /// was not counted in all slices.
    pub fn counts_of(&self, event: usize) -> Option<&[u64]> {
        let counts = self.events.get(event)?;
        if counts.is_empty() || counts.len() != self.elapsed_ns.len() {
            return None;
        }
        Some(counts)
    }

    /// Returns whether the batch was timed as the machine was found, without waiting.
    pub fn are_as_found(&self) -> bool {
        self.waits.is_none()
    }

    /// Adds a quantum.
    #[inline]
    pub fn push_quantum(&mut self, latency_ns: u64, throughput_ns: u64) {
        self.latency_ns.push(u32::try_from(latency_ns).unwrap_or(u32::MAX));
        self.throughput_ns.push(u32::try_from(throughput_ns).unwrap_or(u32::MAX));
    }

    /// Returns the time of all quanta and the CPU time of all waits, in nanoseconds: it is in the
    /// counters' CPU time and in no slice.
    pub fn reference_ns(&self) -> u64 {
        let waits = self.waits.as_deref().unwrap_or_default();
        quanta_ns(&self.latency_ns)
            .saturating_add(quanta_ns(&self.throughput_ns))
            .saturating_add(saturating_sum(waits.iter().map(|wait| wait.cpu_ns)))
    }

    /// Returns the switches of the leader during all waits: they are in the counters, and no part
    /// of the ring.
    pub fn switches_in_waits(&self) -> u64 {
        let waits = self.waits.as_deref().unwrap_or_default();
        saturating_sum(waits.iter().map(|wait| wait.switches))
    }

    /// Returns the time of all waits, in nanoseconds; `None` where the batch was timed as the
    /// machine was found.
    pub fn waited_ns(&self) -> Option<u64> {
        Some(saturating_sum(self.waits.as_ref()?.iter().map(|wait| wait.elapsed_ns)))
    }

    /// Returns the laps of slice `index` of a batch of `laps` laps.
    pub fn laps_of(&self, index: usize, laps: u64) -> u64 {
        let before = self.laps.saturating_mul(index as u64);
        let is_last = index + 1 == self.elapsed_ns.len();
        if is_last { laps.saturating_sub(before) } else { self.laps }
    }

    /// Returns whether the quanta around each slice show what was in it: all quanta are there, and
    /// a slice takes no longer than [`MAX_JUDGED_SLICE_NS`]. The shortest slice decides, as others
    /// may have waited for the CPU; the last one, which has what is left of the batch, does not
    /// count.
    pub fn can_be_judged(&self) -> bool {
        let whole = self.elapsed_ns.len().saturating_sub(1).max(1);
        match self.elapsed_ns.iter().take(whole).min() {
            Some(shortest) => self.are_whole() && *shortest <= MAX_JUDGED_SLICE_NS,
            None => false,
        }
    }

    /// Returns whether there are three more quanta than slices, with both times.
    pub fn are_whole(&self) -> bool {
        let quanta = self.elapsed_ns.len() + QUANTA_AROUND - 1;
        let all = [&self.latency_ns, &self.throughput_ns];
        !self.elapsed_ns.is_empty() && all.iter().all(|times| times.len() == quanta)
    }
}

/// Triples that one worker measured on the same memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Triples {
    /// Members of the ring.
    pub members: u32,
    /// Timed laps of each slice of a ring.
    pub ring_laps: u64,
    /// Timed laps of each solo.
    pub solo_laps: u64,
    /// Pieces into which each hop was cut, with a quantum before each and behind the last; absent
    /// where quanta run around whole laps only. The times in `all` are then those between two
    /// quanta: the pieces of a hop, what comes before the next hop, and so on, up to the last piece
    /// of a phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pieces: Option<u32>,
    /// Triples in the order of time.
    pub all: Vec<Triple>,
    /// Number of the first triples, which were timed as the machine was found; the others waited
    /// for an unshared core. Absent where none waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_found: Option<u32>,
    /// Places of the members' memory that were tried before; absent where they had one only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub places: Option<MemoryPlaces>,
}

/// Numbers of places of the members' memory that were tried, of which the best was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryPlaces {
    /// Number of places tried.
    pub tried: u32,
    /// Number of places tried on an unshared core; absent for a CPU whose k0 was unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unshared: Option<u32>,
}

/// Times of each member's solo, the ring, and each member's solo again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Triple {
    /// Time of each slice of the ring, in nanoseconds.
    pub ring_ns: Vec<u64>,
    /// Time of each member's solo laps in nanoseconds, those before the ring first.
    pub solos_ns: Vec<u64>,
    /// CPU time of all members in each slice of the ring, in nanoseconds; empty as
    /// [`Slices::cpu_ns`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ring_cpu_ns: Vec<u64>,
    /// CPU time of each member in its solo laps, in nanoseconds; empty as `ring_cpu_ns`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub solos_cpu_ns: Vec<u64>,
    /// Time of the latency-bound loop of each quantum in nanoseconds, in the order of time: before
    /// and behind each solo, before and between the slices of the ring and behind them.
    pub latency_ns: Vec<u32>,
    /// Time of the throughput-bound loop there, in nanoseconds.
    pub throughput_ns: Vec<u32>,
    /// Time that other tasks had of the CPU in the solos and in the ring, in nanoseconds, for hops
    /// in pieces. Absent where it was not taken, and in older runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_ns: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::{MemberKind, Policy};

    fn sample() -> RingSample {
        RingSample {
            case: 0,
            round: 0,
            laps: 500,
            hops: 1000,
            elapsed_ns: 4_000_000,
            counters: Counters {
                voluntary: 1000,
                involuntary: 370,
                migrations: Some(0),
                cpu_ns: 3_950_000,
                ..Counters::default()
            },
            steal_ns: Some(0),
            setup_ns: 1,
            ..RingSample::default()
        }
    }

    fn case(placement: Placement) -> RingCase {
        let (kind, policy) = (MemberKind::Process, Policy::Other);
        RingCase {
            members: 2,
            kind,
            link: "pipe".into(),
            work: None,
            placement,
            policy,
            priority: None,
            state: None,
            burden: None,
            flight: None,
            beside: Vec::new(),
        }
    }

    #[test]
    fn switches_are_voluntary_and_involuntary_ones() {
        assert_eq!(sample().counters.switches(), 1370);
        assert!((sample().switches_per_hop() - 1.37).abs() < 1e-12);
        assert!((sample().ns_per_hop() - 4000.0).abs() < 1e-12);
    }

    #[test]
    fn a_disturbed_sample_says_by_what() {
        let same = case(Placement::Same { cpu: 1 });
        assert_eq!(sample().disturbances(&same), []);
        let mut disturbed = sample();
        disturbed.counters.cpu_ns = 3_000_000;
        disturbed.counters.migrations = Some(2);
        disturbed.steal_ns = Some(10_000_000);
        let words: Vec<String> =
            disturbed.disturbances(&same).iter().map(Disturbance::to_string).collect();
        assert_eq!(words, ["steal:10000000ns", "other-work:25%", "migrations:2"]);
        // With several CPUs the members' CPU time says nothing of others, and moving is allowed.
        let free = case(Placement::Free { cpus: vec![0, 1] });
        disturbed.steal_ns = None;
        assert_eq!(disturbed.disturbances(&free), []);
    }
}
