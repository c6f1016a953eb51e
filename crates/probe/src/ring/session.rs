//! One worker's round of one case: set-up, warm-up, samples, end.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use model::ring::{
    Batching, Case, Counters, ELEMENT_BYTES, Event, LONGEST_SLICE_NS, Places, Policy, Sample,
    Slices, Triple, Triples,
};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

use super::build::BuiltRing;
use super::burden;
use super::link::RingError;
use super::links;
use super::member::RingLeader;
use super::member_clocks::MemberClocks;
use super::meters::SliceMeters;
use super::pieces;
use super::slices::{ENOUGH_PLACES_NS, FEWEST_PLACES, PLACE_LAPS, WaitBudget, best_place};
use crate::counters::{CounterSnapshot, steal_ns};
use crate::program::huge_page_bytes_of_process;
use crate::sys::{self, CpuEvents, PageBallast, TaskId, WorkArray, monotonic_raw_ns};
use crate::{halts, placement, policy};

/// What a worker gets: one case, one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assignment<C = Case, B = Batching> {
    /// Number of the case in the plan.
    pub case_number: usize,
    /// The case.
    pub case: C,
    /// The round.
    pub round: u32,
    /// How the case becomes samples.
    pub batching: B,
    /// k0 of the CPU that is measured, as far as it is known (`model::plan::Reference`): what is
    /// waited for.
    #[serde(default)]
    pub unshared_ratio: Option<f64>,
}

/// Longest time a real-time member may run without waiting once, beyond its work: in a ring of
/// several each waits in every hop, so one that spins is broken, and must not hold the CPU
/// (setrlimit(2), RLIMIT_RTTIME).
const RT_SPIN_LIMIT_US: u64 = 2_000_000;

/// More of it for each member: the leader makes them all, and reads all their counts, without
/// sleeping once. A fork takes some tens of microseconds.
const RT_SPIN_PER_MEMBER_US: u64 = 1_000;

/// Slices of the ring between two phases of solos.
const RING_SLICES: u64 = 6;
/// Wanted time of each. Shorter than those of a sample: what a neighbour that comes and goes leaves
/// behind in a shared cache is in the ring, whose members' arrays fill more of it than one alone
/// does.
const RING_SLICE_NS: f64 = 100_000.0;
/// Wanted time of each phase of solos, at most.
const TRIPLE_SOLOS_NS: f64 = 500_000.0;
/// Laps of a solo at least.
const FEWEST_LAPS: u64 = 3;
/// A worker makes no further triple once they have lasted this long.
const ENOUGH_TRIPLES_NS: u64 = 15_000_000;
/// The same of triples whose hops are cut: of each piece several are needed.
const ENOUGH_CUT_NS: u64 = 60_000_000;
/// As long as a piece was never seen on an unshared core, so long.
const LONGEST_CUT_NS: u64 = 400_000_000;

/// A sample waits for an unshared core at most so many times as long as it lasts, all its slices
/// together: where the core is shared nine tenths of the time in stays of some milliseconds, two or
/// three moments at which it is not come in 30 ms.
const SAMPLE_WAIT_FACTOR: u64 = 3;
/// All triples of a worker have this maximum total wait.
const TRIPLES_WAIT_NS: u64 = 15_000_000;

/// Slices of a sample at most: a sample of prescribed laps may last for hours.
const MOST_SLICES: u64 = 10_000;

/// Nanoseconds an element of the working set is taken to last before one was timed.
const SLOW_ELEMENT_NS: f64 = 1000.0;

/// Nanoseconds a hop is taken to last before one was timed: far more than it does anywhere.
const SLOW_HOP_NS: f64 = 10e6;

/// Runs one assignment as [`super::run`] does, by a clock of the caller's, in nanoseconds: it is
/// read before and after each batch, the last two times around that of the sample that comes next.
/// What else it does, it does within the sample.
pub fn run_by_clock(
    assignment: &Assignment,
    clock: &mut dyn FnMut() -> u64,
    sink: &mut dyn FnMut(Sample),
) -> Result<(), RingError> {
    let name = &assignment.case.link;
    let unknown = || RingError::Other(format!("no link is called '{name}'"));
    let link = links::find_link(name).ok_or_else(unknown)?;
    link.suits(&assignment.case)?;
    // Before there is a member: what it notes is inherited.
    let halts = halts::HaltWatch::start();
    let start_ns = monotonic_raw_ns();
    let case = &assignment.case;
    sys::default_alarm();
    let slow_lap_ns = f64::from(case.members) * slow_hop_ns(case);
    deadline(slow_lap_ns);
    let cpus = case.placement.cpus_of(0);
    placement::pin(&cpus).map_err(|errno| {
        RingError::Other(format!("member 0 could not be put on CPU {cpus:?}: {errno}"))
    })?;
    take_policy(case, link.sleeps)?;
    raise_open_files();
    // It goes on to all members, and is given back when they have ended.
    let _held = case.burden.map(|burden| burden::take(burden, case)).transpose()?;
    if case.members > 1 {
        // Without it a loss is noticed all the same, where the link has an end or by the deadline.
        let _ = sys::watch_members();
    }
    let alone = assignment.batching.triples.is_some() && case.members > 1;
    let ballast_start_ns = monotonic_raw_ns();
    // Another one in each worker of a run, and the same in each run of a plan.
    let seed = (u64::from(assignment.round) << 32) + assignment.case_number as u64;
    let ballast = case.work.and_then(|work| PageBallast::hold(work.huge_pages, seed));
    // It is no part of a ring's set-up.
    let ballast_ns = monotonic_raw_ns() - ballast_start_ns;
    let BuiltRing { leader, area, others } = link.make(case, seed, alone)?;
    let setup_ns = monotonic_raw_ns() - start_ns - ballast_ns;
    let mut leader = RingLeader::new(leader, &area);
    let sampled = leader.announce(1).and_then(|()| {
        // All members have their memory: they took part in a lap.
        drop(ballast);
        let tasks = others.tasks(&area);
        let clocks = MemberClocks::of(case, &tasks);
        leader.reads(SliceMeters::with_events(clocks, events_of(assignment)));
        let huge_page_bytes = case.work.and_then(|_| huge_page_bytes_of(&tasks));
        let sampler = RingSampler {
            assignment,
            clock,
            leader: &mut leader,
            tasks,
            halts,
            setup_ns,
            ns_per_lap: slow_lap_ns,
            huge_page_bytes,
            places: None,
        };
        sampler.run(sink)
    });
    // Without the leader's ends the members notice a loss, wherever it happened.
    drop(leader);
    sys::unwatch_members();
    deadline(slow_lap_ns);
    match sampled {
        Ok(()) => others.finish(),
        Err(error) => Err(others.end_after(error, &area)),
    }
}

/// Takes the samples of a ring whose first batch of one lap has been announced.
struct RingSampler<'a, 'ring> {
    assignment: &'a Assignment,
    clock: &'a mut dyn FnMut() -> u64,
    leader: &'a mut RingLeader<'ring>,
    tasks: Vec<TaskId>,
    halts: halts::HaltWatch,
    setup_ns: u64,
    ns_per_lap: f64,
    huge_page_bytes: Option<u64>,
    places: Option<Places>,
}

impl RingSampler<'_, '_> {
    fn run(mut self, sink: &mut dyn FnMut(Sample)) -> Result<(), RingError> {
        let batching = &self.assignment.batching;
        self.warm_up()?;
        self.places = self.choose_place()?;
        let calibrated = (batching.sample_ns.max(1) as f64 / self.ns_per_lap).ceil() as u64;
        let slice_laps = self.slice_laps(batching.laps.unwrap_or(calibrated));
        let whole_slices = calibrated.next_multiple_of(slice_laps.unwrap_or(1));
        let laps = batching.laps.unwrap_or(whole_slices);
        let mut sampled_ns = 0;
        // A first reading for nothing: its buffers' page faults are not the ring's.
        self.counts_before(self.tasks.len().min(1))?;
        self.announce(laps)?;
        for number in 0.. {
            let start_ns = monotonic_raw_ns();
            let mut sample = self.sample(number, laps, slice_laps)?;
            // With the counting, which takes longer than the laps of a large ring, and without
            // waits.
            let waited_ns = sample.slices.as_ref().and_then(Slices::waited_ns).unwrap_or(0);
            sampled_ns += (monotonic_raw_ns() - start_ns).saturating_sub(waited_ns);
            sample.triples = self.triples(!sample.is_as_found())?.map(Box::new);
            let enough =
                number + 1 >= batching.samples_per_round || sampled_ns >= batching.enough_ns;
            // The next announcement is also the proof that every member made all its hops.
            self.announce(if enough { 0 } else { laps })?;
            sink(sample);
            if enough {
                break;
            }
        }
        Ok(())
    }

    fn announce(&mut self, laps: u64) -> Result<(), RingError> {
        deadline((laps + 1) as f64 * self.ns_per_lap);
        self.leader.announce(laps)
    }

    /// Untimed laps in growing batches until one lasts an eighth of a sample. What a lap takes is
    /// reckoned from the fastest batch: a disturbed one must not make the samples too short.
    fn warm_up(&mut self) -> Result<(), RingError> {
        let wanted_ns = self.assignment.batching.sample_ns.max(1);
        let mut laps = 1;
        loop {
            let elapsed_ns = self.leader.batch(laps, &mut *self.clock)?.max(1);
            self.ns_per_lap = self.ns_per_lap.min(elapsed_ns as f64 / laps as f64);
            if elapsed_ns >= wanted_ns / 8 {
                return Ok(());
            }
            laps *= 2;
            self.announce(laps)?;
        }
    }

    /// Tries some places of the members' memory, and moves it to the best. None where they have one
    /// only: huge pages that were not given would each be touched anew. It waits for nothing: the
    /// sample that follows is timed as the machine is found.
    fn choose_place(&mut self) -> Result<Option<Places>, RingError> {
        let Assignment { case, batching, unshared_ratio, .. } = self.assignment;
        let needed = case.work.and_then(|work| WorkArray::bytes_with_places(&work));
        let needed = needed.and_then(|bytes| bytes.checked_mul(case.members.into()));
        let has_places = needed.is_some_and(|needed| self.huge_page_bytes >= Some(needed));
        let start_ns = monotonic_raw_ns();
        let mut tried = Vec::new();
        for place in 0..batching.places.filter(|_| has_places).unwrap_or(0) {
            if place >= FEWEST_PLACES && monotonic_raw_ns() - start_ns > ENOUGH_PLACES_NS {
                break;
            }
            tried.push(self.move_to(place)?);
        }
        let Some((best, counts)) = best_place(*unshared_ratio, &tried) else { return Ok(None) };
        let (lap_ns, _) = self.move_to(best)?;
        self.ns_per_lap = lap_ns.max(1) as f64;
        Ok(Some(counts))
    }

    fn move_to(&mut self, place: u32) -> Result<(u64, Slices), RingError> {
        deadline((PLACE_LAPS + 8) as f64 * self.ns_per_lap);
        self.leader.move_to(place, PLACE_LAPS)
    }

    /// Laps of a slice, where samples of so many laps are cut into slices: as many as the fastest
    /// batch says, at least one, and at most [`MOST_SLICES`] slices of a sample.
    fn slice_laps(&self, sample_laps: u64) -> Option<u64> {
        let batching = &self.assignment.batching;
        let wanted_ns = batching.slice_ns.filter(|_| sys::HAS_QUANTA)?;
        let laps = (wanted_ns as f64 / self.ns_per_lap) as u64;
        let fewest = sample_laps.div_ceil(MOST_SLICES);
        Some(laps.max(fewest).max(1))
    }

    /// One timed batch with the kernel's counts around it. The members' are read while they all
    /// wait; the leader, which cannot wait, reads its own as the last and the first thing.
    ///
    /// A sample waits for an unshared core, except the first of a worker, which is timed as the
    /// machine is found: what waits is no measure of the machine, nor what comes straight after.
    /// Nor does one wait whose slices are too long to be judged.
    fn sample(
        &mut self,
        number: u32,
        laps: u64,
        slice_laps: Option<u64>,
    ) -> Result<Sample, RingError> {
        let Assignment { case, batching, unshared_ratio, .. } = self.assignment;
        let mut slices = slice_laps.map(|slice_laps| {
            let is_judged = slice_laps as f64 * self.ns_per_lap <= LONGEST_SLICE_NS as f64;
            let waits = number > 0 && unshared_ratio.is_some() && is_judged;
            let make = if waits { Slices::that_wait } else { Slices::with_room_for };
            let slices = make(laps.div_ceil(slice_laps) as usize, slice_laps);
            slices.with_events(batching.events.len())
        });
        let mut budget = self.budget(batching.sample_ns.saturating_mul(SAMPLE_WAIT_FACTOR));
        let halts_before = self.halts.before();
        let (before, stolen_before) = self.counts_before(self.tasks.len())?;
        let elapsed_ns = match &mut slices {
            Some(slices) => self.leader.batch_in_slices(laps, slices, &mut budget)?,
            None => self.leader.batch(laps, &mut *self.clock)?,
        };
        let (after, stolen_after) = self.counts_after()?;
        Ok(Sample {
            case: self.assignment.case_number,
            round: self.assignment.round,
            sample: number,
            laps,
            hops: laps * u64::from(case.members),
            elapsed_ns,
            counters: Counters { halts: self.halts.since(&halts_before), ..after.since(&before) },
            // A machine that was moved may count from zero again: then it is not known.
            steal_ns: stolen_after.zip(stolen_before).and_then(|(now, then)| now.checked_sub(then)),
            setup_ns: self.setup_ns,
            slices,
            triples: None,
            huge_page_bytes: self.huge_page_bytes,
        })
    }

    /// Each member's solo, the ring, each solo again, as often as the plan says or as fits into the
    /// time of a worker: on the same memory, within milliseconds of each other. None where the
    /// members have no channel to be alone with.
    fn triples(&mut self, after_wait: bool) -> Result<Option<Triples>, RingError> {
        let wanted = self.assignment.batching.triples.unwrap_or(0);
        if !self.leader.has_solos() || wanted == 0 {
            return Ok(None);
        }
        let members = self.assignment.case.members;
        let laps = |wanted_ns: f64| (wanted_ns / self.ns_per_lap) as u64;
        let pieces = self.pieces_of_hop();
        let (ring_laps, solo_laps, enough_ns) = match pieces {
            Some(_) => (pieces::RING_LAPS, pieces::SOLO_LAPS, ENOUGH_CUT_NS),
            // A member alone takes less for a hop than the ring does, and all have their turn.
            None => (
                laps(RING_SLICE_NS).max(1),
                laps(TRIPLE_SOLOS_NS).max(FEWEST_LAPS),
                ENOUGH_TRIPLES_NS,
            ),
        };
        // What comes straight after a wait is not as the machine was found either.
        let as_found = self.assignment.unshared_ratio.map(|_| u32::from(!after_wait));
        let (all, places) = (Vec::new(), self.places);
        let mut found = Triples { members, ring_laps, solo_laps, pieces, all, as_found, places };
        let mut budget = self.budget(TRIPLES_WAIT_NS);
        let start_ns = monotonic_raw_ns();
        for number in 0..wanted {
            if number > 0 || after_wait {
                budget.spend(0);
            }
            found.all.push(match pieces {
                Some(pieces) => {
                    deadline((ring_laps + 2 * solo_laps + 10) as f64 * self.ns_per_lap);
                    self.leader.triple_in_pieces(pieces)?
                }
                None => self.triple(ring_laps, solo_laps)?,
            });
            let waited_ns = TRIPLES_WAIT_NS - budget.left_ns;
            let passed_ns = (monotonic_raw_ns() - start_ns).saturating_sub(waited_ns);
            let lacks = |ratio| pieces.is_some() && !found.are_seen_unshared(ratio);
            let goes_on =
                passed_ns <= LONGEST_CUT_NS && self.assignment.unshared_ratio.is_some_and(lacks);
            if passed_ns > enough_ns && !goes_on {
                break;
            }
        }
        Ok(Some(found))
    }

    /// Pieces of a hop that takes longer than a slice, by the fastest lap.
    fn pieces_of_hop(&self) -> Option<u32> {
        let Assignment { case, batching, .. } = self.assignment;
        let slice_ns = batching.slice_ns.filter(|_| sys::HAS_QUANTA)?;
        pieces::pieces(&case.work?, self.ns_per_lap / f64::from(case.members), slice_ns)
    }

    fn budget(&self, left_ns: u64) -> WaitBudget {
        WaitBudget { unshared_ratio: self.assignment.unshared_ratio, left_ns }
    }

    fn triple(&mut self, ring_laps: u64, solo_laps: u64) -> Result<Triple, RingError> {
        let mut triple = Triple::default();
        self.solos(solo_laps, &mut triple)?;
        let mut slices = Slices::with_room_for(RING_SLICES as usize, ring_laps);
        self.leader.between_solos(RING_SLICES, &mut slices)?;
        triple.ring_ns = slices.elapsed_ns;
        triple.ring_cpu_ns = slices.cpu_ns;
        triple.latency_ns.extend(slices.latency_ns);
        triple.throughput_ns.extend(slices.throughput_ns);
        self.solos(solo_laps, &mut triple)?;
        Ok(triple)
    }

    /// One phase of solos, whose times are added to `to`.
    fn solos(&mut self, solo_laps: u64, to: &mut Triple) -> Result<(), RingError> {
        deadline((solo_laps + 3) as f64 * self.ns_per_lap);
        self.leader.solos(solo_laps)?;
        for cell in self.leader.cells() {
            let times_ns = cell.solo_ns.each_ref().map(|ns| ns.load(Ordering::Acquire));
            let [solo_ns, cpu_ns, quanta @ ..] = times_ns;
            to.solos_ns.push(solo_ns);
            to.solos_cpu_ns.push(cpu_ns);
            for [latency, throughput] in [[quanta[0], quanta[1]], [quanta[2], quanta[3]]] {
                to.latency_ns.push(u32::try_from(latency).unwrap_or(u32::MAX));
                to.throughput_ns.push(u32::try_from(throughput).unwrap_or(u32::MAX));
            }
        }
        Ok(())
    }

    /// The kernel's counts of the first so many members and the leader, and the time that was
    /// stolen from their CPUs.
    fn counts_before(&self, count: usize) -> Result<(CounterSnapshot, Option<u64>), RingError> {
        let others = CounterSnapshot::of_resting(&self.tasks[..count])?;
        let steal_ns = steal_ns(&self.assignment.case.placement.cpus());
        Ok((others.plus(&CounterSnapshot::of_self_before(own_task())?), steal_ns))
    }

    fn counts_after(&self) -> Result<(CounterSnapshot, Option<u64>), RingError> {
        let own = CounterSnapshot::of_self_after(own_task())?;
        let steal_ns = steal_ns(&self.assignment.case.placement.cpus());
        Ok((CounterSnapshot::of_resting(&self.tasks)?.plus(&own), steal_ns))
    }
}

/// What the plan has counted on the ring's one CPU. It could be when the plan was made; where it
/// cannot be any more the ring is measured all the same, without counts.
fn events_of(Assignment { case, batching, .. }: &Assignment) -> Option<CpuEvents> {
    let placed = case.placement.is_one_cpu() && !batching.events.is_empty();
    let cpu = *case.placement.cpus_of(0).first().filter(|_| placed)?;
    CpuEvents::open(cpu, &batching.events).ok()
}

/// Bytes of huge pages that the ring's processes were given; absent where the kernel does not
/// report them.
fn huge_page_bytes_of(tasks: &[TaskId]) -> Option<u64> {
    let pids: BTreeSet<i32> = tasks.iter().chain([&own_task()]).map(|task| task.pid).collect();
    pids.into_iter().map(huge_page_bytes_of_process).sum()
}

/// Far longer than a hop takes on any machine.
fn slow_hop_ns(case: &Case) -> f64 {
    let elements = case.work.map_or(0, |work| work.bytes / ELEMENT_BYTES);
    SLOW_HOP_NS + elements as f64 * SLOW_ELEMENT_NS
}

/// Returns an upper bound of the time that a member takes for the first walks through its working
/// set, which calibrate the number of laps.
pub fn slowest_walk(case: &Case) -> Duration {
    let elements = case.work.map_or(0, |work| work.bytes / ELEMENT_BYTES);
    Duration::from_nanos(elements.saturating_mul(4 * SLOW_ELEMENT_NS as u64))
}

/// Longer than the laps that an assignment prescribes take on any machine; nothing where it leaves
/// them to the calibration, which keeps them short.
pub fn slowest(assignment: &Assignment) -> Duration {
    let Assignment { case, batching, .. } = assignment;
    let batches = f64::from(batching.samples_per_round) + 1.0;
    let laps = batching.laps.map_or(0.0, |laps| laps as f64) * batches;
    let ns = 20.0 * laps * f64::from(case.members) * slow_hop_ns(case);
    Duration::try_from_secs_f64(ns / 1e9).unwrap_or(Duration::MAX)
}

fn own_task() -> TaskId {
    TaskId { pid: std::process::id() as i32, tid: rustix::thread::gettid().as_raw_pid() }
}

/// A step that should last `expected_ns` is taken for hung if it lasts far longer.
fn deadline(expected_ns: f64) {
    sys::deadline((60.0 + 20.0 * expected_ns / 1e9).min(f64::from(u32::MAX)) as u32);
}

/// Takes the policy for the worker and all that it forks or starts.
fn take_policy(case: &Case, sleeps: bool) -> Result<(), RingError> {
    // A ring of one never waits, and a broken one ends by its deadline.
    if case.policy.is_realtime() && case.members > 1 && sleeps {
        let work_us = 20.0 * slow_hop_ns(case) / 1000.0;
        let members_us = RT_SPIN_PER_MEMBER_US * u64::from(case.members);
        let soft = RT_SPIN_LIMIT_US + members_us + work_us as u64;
        sys::limit_real_time(soft, RT_SPIN_LIMIT_US);
    }
    let taken = policy::take_at(case.policy, case.priority());
    taken.map_err(|errno| RingError::Other(policy::describe_refusal(case.policy, errno)))
}

/// Whether the calling process may use `policy`; tried on a thread of its own, which then ends.
pub fn check_policy(policy: Policy) -> Result<(), RingError> {
    policy::check(policy).map_err(|errno| RingError::Other(policy::describe_refusal(policy, errno)))
}

/// Whether a CPU counts these events, all at once; else one that it does not, and why.
pub fn check_events(cpu: u32, events: &[Event]) -> Result<(), (Event, Errno)> {
    CpuEvents::open(cpu, events).map(drop)
}

/// Threads of a ring share one table of descriptors: use all of it that is granted.
fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    // A refusal shows later as the limit that it is, with its value.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}
