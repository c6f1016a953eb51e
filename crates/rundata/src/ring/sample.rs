//! One timed batch of laps, as the worker saw it; its slices and the reference quanta between them;
//! the ring between two solos of each of its members, all on the same memory. Raw figures only.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::RingCase;
use crate::placement::Placement;

/// What the kernel counted for all members of a ring between two moments at which the ring stood
/// still. A figure that the kernel did not give is absent, never zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counters {
    /// Switches made because the member had to wait (`nr_voluntary_switches`).
    pub voluntary: u64,
    /// Switches made because another was to run (`nr_involuntary_switches`).
    pub involuntary: u64,
    /// Moves from one CPU to another.
    pub migrations: Option<u64>,
    /// Page faults served without input or output.
    pub minor_faults: u64,
    /// Page faults that had to wait for input.
    pub major_faults: u64,
    /// CPU time by the scheduler's precise sum, in nanoseconds. Where the sample has slices, the
    /// reference quanta between them are in it (`Sample::cpu_ns` leaves them out).
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
    /// What kept members from running; absent in older runs and where nothing was noticed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub halts: Option<HaltTimes>,
}

/// Why members may have stood still during a sample, as far as the kernel tells.
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
    /// A member was told to continue after a stop (SIGCONT).
    pub continued: bool,
}

impl Counters {
    /// All switches: the voluntary ones alone miss those of a writer whom the woken member
    /// preempts.
    pub fn switches(&self) -> u64 {
        self.voluntary.saturating_add(self.involuntary)
    }
}

/// One timed batch of laps. The default is one of no laps, of which nothing is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RingSample {
    /// Number of the case in the plan.
    pub case: usize,
    /// Round, from 0: one fresh worker for each case.
    pub round: u32,
    /// Sample within the round, from 0.
    pub sample: u32,
    /// Timed laps.
    pub laps: u64,
    /// Timed hops: laps times members.
    pub hops: u64,
    /// Time of the timed laps, in nanoseconds (CLOCK_MONOTONIC_RAW).
    pub elapsed_ns: u64,
    /// What the kernel counted around the timed laps.
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
}

/// What disturbed a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Disturbance {
    /// The hypervisor ran something else: for how long, in nanoseconds.
    Steal(u64),
    /// On the ring's one CPU something else ran: other tasks, interrupts, unreported steal. Share
    /// of the elapsed time, 0 to 1.
    OtherWork(f64),
    /// Members waited for pages: how often.
    MajorFaults(u64),
    /// A pinned member changed its CPU: how often.
    Migrations(u64),
    /// Nobody ran where somebody should have: why, and for how long, in nanoseconds.
    Halt(HaltCause, u64),
}

/// Why members stood still.
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

    /// The cause in words.
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

/// Share of the elapsed time in which nobody ran, and nobody waited for a CPU, from which on a
/// sample stood still: far more than interrupts take.
const HALT_LIMIT: f64 = 0.2;
/// A slice on several CPUs stood still if it was so much longer than the others, and so many times
/// as long: a CPU may be idle in every hop, but wakes within milliseconds.
const HALTED_SLICE_NS: u64 = 10_000_000;
const HALTED_SLICE_TIMES: u64 = 3;

/// Share of the elapsed time that may go to others before a one-CPU sample counts as disturbed.
/// The timer tick and its soft interrupts take well below this on an idle machine.
pub const OTHER_WORK_LIMIT: f64 = 0.05;

impl RingSample {
    /// Nanoseconds per hop.
    pub fn ns_per_hop(&self) -> f64 {
        self.elapsed_ns as f64 / self.hops as f64
    }

    /// CPU time of all members for the timed laps, in nanoseconds: without the reference quanta.
    pub fn cpu_ns(&self) -> u64 {
        self.counters.cpu_ns.saturating_sub(self.reference_ns())
    }

    /// User and system part of [`Self::cpu_ns`]. The quanta run in user mode; as the split rests on
    /// ticks, a sample of which few ticks fell into user mode may have spent less than nothing
    /// there. Sums are right.
    pub fn user_system_ns(&self) -> Option<(i64, i64)> {
        let (user, system) = self.counters.user_ns.zip(self.counters.system_ns)?;
        let reference = i64::try_from(self.reference_ns()).unwrap_or(i64::MAX);
        let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        Some((signed(user).saturating_sub(reference), signed(system)))
    }

    fn reference_ns(&self) -> u64 {
        self.slices.as_ref().map_or(0, Slices::reference_ns)
    }

    /// The slices, if there are any and they are short enough to be judged by the quanta around
    /// them.
    pub fn judged_slices(&self) -> Option<&Slices> {
        self.slices.as_ref().filter(|slices| slices.can_be_judged())
    }

    /// Whether it was timed as the machine was found, waiting for nothing.
    pub fn is_as_found(&self) -> bool {
        self.slices.as_ref().is_none_or(Slices::are_as_found)
    }

    /// Whether a member that was to stay on its CPU moved.
    pub fn has_moved(&self, case: &RingCase) -> bool {
        let pinned = !matches!(case.placement, Placement::Free { .. });
        pinned && self.counters.migrations.is_some_and(|count| count > 0)
    }

    /// Whether others had so much of the ring's one CPU that no slice of the sample can be told
    /// from theirs: of rings whose members are too many to be asked after each slice.
    pub fn is_shared_throughout(&self, case: &RingCase) -> bool {
        let by_slice = case.members <= MAX_ASKED_MEMBERS;
        let is_known = self.counters.cpu_ns > 0 && case.placement.is_one_cpu();
        // What stood still had the CPU before and after.
        let others = !is_alone(self.elapsed_ns, self.cpu_ns()) && self.halt(case).is_none();
        !by_slice && is_known && others
    }

    /// Nanoseconds of CPU time of all members per hop.
    pub fn cpu_ns_per_hop(&self) -> f64 {
        self.cpu_ns() as f64 / self.hops as f64
    }

    /// Counted switches, without those of a leader that waited for an unshared core.
    pub fn switches(&self) -> u64 {
        let in_waits = self.slices.as_ref().map_or(0, Slices::switches_in_waits);
        self.counters.switches().saturating_sub(in_waits)
    }

    /// Counted switches per hop.
    pub fn switches_per_hop(&self) -> f64 {
        self.switches() as f64 / self.hops as f64
    }

    /// By what the sample was disturbed, as far as the kernel's counts tell.
    pub fn disturbances(&self, case: &RingCase) -> Vec<Disturbance> {
        let other_work = 1.0 - self.cpu_ns() as f64 / self.elapsed_ns as f64;
        let one_cpu = case.placement.is_one_cpu() && self.elapsed_ns > 0;
        let halt = self.halt(case);
        let faults = Some(self.counters.major_faults);
        let some = |count: &u64| *count > 0;
        let all = [
            self.steal_ns.filter(some).map(Disturbance::Steal),
            (one_cpu && other_work > OTHER_WORK_LIMIT && halt.is_none())
                .then_some(Disturbance::OtherWork(other_work)),
            faults.filter(some).map(Disturbance::MajorFaults),
            self.counters.migrations.filter(|_| self.has_moved(case)).map(Disturbance::Migrations),
            halt.map(|(why, ns)| Disturbance::Halt(why, ns)),
        ];
        all.into_iter().flatten().collect()
    }

    /// Why the ring stood still, and for how long: what the kernel counted, or real time that is
    /// far above what is accounted for.
    fn halt(&self, case: &RingCase) -> Option<(HaltCause, u64)> {
        let halts = self.counters.halts.unwrap_or_default();
        let is_much = |ns: u64, limit: f64| ns as f64 > limit * self.elapsed_ns as f64;
        let unaccounted_ns = self.unaccounted_ns(case, &halts);
        let has_stood = is_much(unaccounted_ns, HALT_LIMIT);
        let told = [
            (HaltCause::Suspended, halts.suspended_ns, halts.suspended_ns > 0),
            (HaltCause::Frozen, halts.frozen_ns, is_much(halts.frozen_ns, OTHER_WORK_LIMIT)),
            (
                HaltCause::Throttled,
                halts.throttled_ns,
                is_much(halts.throttled_ns, OTHER_WORK_LIMIT),
            ),
            (HaltCause::Stopped, unaccounted_ns, has_stood && halts.continued),
            (HaltCause::Unknown, unaccounted_ns, has_stood),
        ];
        told.into_iter().find(|(.., is_so)| *is_so).map(|(why, ns, _)| (why, ns))
    }

    /// Time in which nobody of the ring ran, waited for a CPU, or was said to. On one CPU somebody
    /// always does. On several all may be idle while one wakes up: there only slices tell that are
    /// far longer than the others, or the signal that ended a stop. Without run delay, in older
    /// runs, it may have been other work.
    fn unaccounted_ns(&self, case: &RingCase, halts: &HaltTimes) -> u64 {
        let Some(run_delay_ns) = self.counters.run_delay_ns else { return 0 };
        let waits_for_pages = self.counters.major_faults > 0;
        let one_cpu = case.placement.is_one_cpu() && !waits_for_pages;
        let idle_ns = match one_cpu || halts.continued {
            true => self.elapsed_ns.saturating_sub(self.cpu_ns()),
            false if waits_for_pages => 0,
            false => self.slices.as_ref().map_or(0, Slices::far_too_long_ns),
        };
        idle_ns.saturating_sub(run_delay_ns).saturating_sub(self.steal_ns.unwrap_or(0))
    }
}

/// A longer slice is not judged: the quanta around it are too far apart to say what was between
/// them.
pub const MAX_JUDGED_SLICE_NS: u64 = 3_000_000;

/// Share of a slice that others may have had of its CPU before it counts as shared with them: less
/// than a figure is known to.
pub const OTHERS_LIMIT: f64 = 0.02;

/// Members of more are not asked for their CPU time after each slice: a clock takes a quarter of a
/// microsecond, and asking a member brings back into the cache what the kernel keeps of it.
pub const MAX_ASKED_MEMBERS: u32 = 64;

/// Whether so much CPU time is all of the time that passed, both in nanoseconds.
pub fn is_alone(elapsed_ns: u64, cpu_ns: u64) -> bool {
    elapsed_ns.saturating_sub(cpu_ns) as f64 <= OTHERS_LIMIT * elapsed_ns as f64
}

/// Quanta before a slice and behind it that tell whether it is clean.
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
/// last: two where a slice has no neighbour, so that slice i lies between quanta i, i + 1 and i +
/// 2, i + 3.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Slices {
    /// Laps of each slice; the last has what is left of the batch.
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
    /// CPU time of all that is measured in each slice, in nanoseconds: what it lacks of the time
    /// that passed went to others. Empty where several CPUs are measured or members are too many to
    /// be asked after each slice, and in older runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "exact")]
    pub cpu_ns: Vec<u64>,
    /// What was counted in each slice's laps of each event of the plan, in its order; empty where
    /// nothing was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Vec<u64>>,
    /// The waits for a core that nobody shares, in the order of time. Absent of a batch that was
    /// timed as the machine was found: it waited for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Vec<CoreWait>>,
}

/// A wait for a core that nobody shares: quanta without anything between them, until two in a row
/// were those of such a core, or the time for waiting was over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CoreWait {
    /// The slice that it came before.
    pub slice: u32,
    /// How long it took, in nanoseconds.
    pub elapsed_ns: u64,
    /// CPU time of it, in nanoseconds: less where something else ran meanwhile.
    pub cpu_ns: u64,
    /// Switches of the leader during it: something else ran.
    pub switches: u64,
    /// Time of the latency-bound loop of its last quantum, in nanoseconds.
    pub latency_ns: u32,
    /// Time of the throughput-bound loop of its last quantum, in nanoseconds.
    pub throughput_ns: u32,
}

/// Without room for more: a run file has hundreds of thousands of these.
fn exact<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    Box::<[T]>::deserialize(from).map(Vec::from)
}

impl Slices {
    /// Room for a batch of so many slices. All of it has been touched: filling it faults no page.
    pub fn with_room_for(slices: usize, laps: u64) -> Self {
        fn touched<T: Clone>(value: T, count: usize) -> Vec<T> {
            let mut room = vec![value; count];
            room.clear();
            room
        }
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

    /// Room for so many events of each slice.
    pub fn with_events(mut self, events: usize) -> Self {
        let slices = self.elapsed_ns.capacity();
        let touched = || {
            let mut room = vec![u64::MAX; slices];
            room.clear();
            room
        };
        self.events = (0..events).map(|_| touched()).collect();
        self
    }

    /// The same of a batch that waits for a core that nobody shares, with room for a wait before
    /// each slice.
    pub fn that_wait(slices: usize, laps: u64) -> Self {
        let mut waits = vec![CoreWait { slice: u32::MAX, ..CoreWait::default() }; slices];
        waits.clear();
        Self { waits: Some(waits), ..Self::with_room_for(slices, laps) }
    }

    /// The two quanta before slice `index` and the two behind it, in the order of time. Before the
    /// slice after one that was waited for, the first of them is the last of the wait. None of a
    /// slice that was waited for: it warms up what has lain still, or was left by a neighbour, and
    /// never counts.
    pub fn around(&self, index: usize) -> Option<[(u32, u32); QUANTA_AROUND]> {
        let quantum = |at: usize| Some((*self.latency_ns.get(at)?, *self.throughput_ns.get(at)?));
        let before = match index.checked_sub(1).and_then(|before| self.wait_for(before)) {
            Some(wait) => (wait.latency_ns, wait.throughput_ns),
            None => quantum(index)?,
        };
        let around = [before, quantum(index + 1)?, quantum(index + 2)?, quantum(index + 3)?];
        self.wait_for(index).is_none().then_some(around)
    }

    fn wait_for(&self, slice: usize) -> Option<&CoreWait> {
        self.waits.as_ref()?.iter().find(|wait| wait.slice as usize == slice)
    }

    /// Whether nobody else ran on the CPU during slice `index`; absent where that was not looked
    /// at.
    pub fn was_alone(&self, index: usize) -> Option<bool> {
        Some(is_alone(*self.elapsed_ns.get(index)?, *self.cpu_ns.get(index)?))
    }

    /// All quanta whose times are known: latency-bound and throughput-bound loop.
    pub fn quanta(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let between = self.latency_ns.iter().copied().zip(self.throughput_ns.iter().copied());
        let last = self.waits.iter().flatten().map(|wait| (wait.latency_ns, wait.throughput_ns));
        between.chain(last)
    }

    /// Time by which slices are longer than the others, of those that are so by far.
    fn far_too_long_ns(&self) -> u64 {
        let mut sorted = self.elapsed_ns.clone();
        sorted.sort_unstable();
        let middle = sorted.get(sorted.len() / 2).copied().unwrap_or(0);
        let longest =
            middle.saturating_mul(HALTED_SLICE_TIMES).max(middle.saturating_add(HALTED_SLICE_NS));
        let over = sorted.iter().filter(|ns| **ns > longest).map(|ns| ns - middle);
        over.fold(0, u64::saturating_add)
    }

    /// What was counted of the event at this place of the plan in each slice; absent where it was
    /// not counted in all.
    pub fn counts_of(&self, event: usize) -> Option<&[u64]> {
        let counts = self.events.get(event)?;
        (counts.len() == self.elapsed_ns.len() && !counts.is_empty()).then_some(counts)
    }

    /// Whether the batch was timed as the machine was found, waiting for nothing.
    pub fn are_as_found(&self) -> bool {
        self.waits.is_none()
    }

    /// Keeps a quantum's two times.
    #[inline]
    pub fn push_quantum(&mut self, latency_ns: u64, throughput_ns: u64) {
        self.latency_ns.push(u32::try_from(latency_ns).unwrap_or(u32::MAX));
        self.throughput_ns.push(u32::try_from(throughput_ns).unwrap_or(u32::MAX));
    }

    /// Time of all quanta and CPU time of all waits, in nanoseconds: it is in the counters' CPU
    /// time and in no slice.
    pub fn reference_ns(&self) -> u64 {
        let quanta = self.latency_ns.iter().chain(&self.throughput_ns).map(|ns| u64::from(*ns));
        let waits = self.waits.iter().flatten().map(|wait| wait.cpu_ns);
        quanta.chain(waits).fold(0, u64::saturating_add)
    }

    /// Switches of the leader during all waits: they are in the counters, and no part of the ring.
    pub fn switches_in_waits(&self) -> u64 {
        self.waits.iter().flatten().map(|wait| wait.switches).fold(0, u64::saturating_add)
    }

    /// Time of all waits, in nanoseconds; absent of a batch that was timed as the machine was
    /// found.
    pub fn waited_ns(&self) -> Option<u64> {
        let waits = self.waits.as_ref()?.iter();
        Some(waits.map(|wait| wait.elapsed_ns).fold(0, u64::saturating_add))
    }

    /// Laps of slice `index` of a batch of `laps` laps.
    pub fn laps_of(&self, index: usize, laps: u64) -> u64 {
        let before = self.laps.saturating_mul(index as u64);
        let is_last = index + 1 == self.elapsed_ns.len();
        if is_last { laps.saturating_sub(before) } else { self.laps }
    }

    /// Whether the quanta around each slice say what was in it: they are all there, and what a
    /// slice holds takes no longer than [`MAX_JUDGED_SLICE_NS`]. The shortest tells: others may have
    /// waited for the CPU. The last has what is left of the batch.
    pub fn can_be_judged(&self) -> bool {
        let whole = self.elapsed_ns.len().saturating_sub(1).max(1);
        let shortest = self.elapsed_ns.iter().take(whole).min();
        self.are_whole() && shortest.is_some_and(|ns| *ns <= MAX_JUDGED_SLICE_NS)
    }

    /// Whether there are three more quanta than slices, and of each loop as many.
    pub fn are_whole(&self) -> bool {
        let quanta = self.elapsed_ns.len() + QUANTA_AROUND - 1;
        let all = [&self.latency_ns, &self.throughput_ns];
        !self.elapsed_ns.is_empty() && all.iter().all(|times| times.len() == quanta)
    }
}

/// What one worker measured on the same memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Triples {
    /// Members of the ring.
    pub members: u32,
    /// Timed laps of each slice of a ring.
    pub ring_laps: u64,
    /// Timed laps of each solo.
    pub solo_laps: u64,
    /// Pieces that each hop was cut into, with a quantum before each and behind the last; absent
    /// where quanta run around whole laps only. In `all` then stands what lies between two quanta:
    /// the pieces of a hop, what comes before the next hop, and so on, up to the last piece of a
    /// phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pieces: Option<u32>,
    /// In the order of time.
    pub all: Vec<Triple>,
    /// The first so many were timed as the machine was found, the others after waiting for a core
    /// that nobody shares; absent where none waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_found: Option<u32>,
    /// The places of the members' memory that were tried before; absent where they had one only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub places: Option<MemoryPlaces>,
}

/// How many places of the members' memory were tried, of which the best was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryPlaces {
    /// All of them.
    pub tried: u32,
    /// Those that were tried on a core that nobody shared; absent of a CPU whose k0 nobody knew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unshared: Option<u32>,
}

/// Each member's solo, the ring, each member's solo again.
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
    /// Of hops in pieces: time that others had of the CPU in the solos and in the ring, in
    /// nanoseconds. Absent where that was not looked at, and in older runs.
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
