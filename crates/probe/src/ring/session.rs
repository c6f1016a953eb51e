//! One worker's round of one case: set-up, warm-up, samples, end.
//!
//! A case with a working set also has *triples*: each member's solo, the ring, each solo again, all
//! on the same memory within some milliseconds. Two members with hops of 10 us:
//!
//! ```text
//! solo of 0   solo of 1   ring                          solo of 0   solo of 1
//! 25 laps     25 laps     6 slices of 5 laps, 0.1 ms    25 laps     25 laps
//! 0.25 ms     0.25 ms     each, quanta between          0.25 ms     0.25 ms
//! ```
//!
//! Why: the cost of a switch is a small difference of two large times, (ring - solo) per hop. Which
//! pages a member got, and which of their lines meet in a cache set, changes those times more than
//! the switch does. Ring and solo of one worker share the pages, so the pages cancel; a solo before
//! and one after cancel drift. A solo runs over a channel of the member to itself, so that it makes
//! the same calls as in the ring but never switches. `pieces` has the triples of hops longer than a
//! slice.

use std::collections::BTreeSet;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rundata::ring::{
    CountedEvent, Counters, ELEMENT_BYTES, MAX_JUDGED_SLICE_NS, MemoryPlaces, Policy, RingBatching,
    RingCase, RingSample, Slices, Triple, Triples, fewest_laps,
};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

use super::build::BuiltRing;
use super::burden;
use super::link::RingError;
use super::links;
use super::member::RingLeader;
use super::meters::{MemberClocks, SliceMeters};
use super::pieces;
use super::several;
use super::slices::{MIN_PLACES, PLACE_LAPS, PLACES_NS, WaitBudget, best_place};
use crate::counters::{CounterSnapshot, steal_ns};
use crate::program::huge_page_bytes_of_process;
use crate::sys::{self, CpuEvents, PageBallast, RingGate, TaskId, WorkArray, monotonic_raw_ns};
use crate::{halts, limits, machine, placement, policy};

/// Work order of a worker: one case in one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assignment<C = RingCase, B = RingBatching> {
    /// Number of the case in the plan.
    pub case_number: usize,
    /// The case.
    pub case: C,
    /// The round.
    pub round: u32,
    /// How samples are taken: laps, slices, triples.
    pub batching: B,
    /// k0 of the measured CPU, if it is known (`rundata::plan::Reference`): samples wait for a core
    /// with this ratio.
    #[serde(default)]
    pub unshared_ratio: Option<f64>,
}

/// Longest time that a real-time member may run without waiting once, beyond its work. In a ring of
/// several each member waits in every hop: one that does not is broken, and must not hold the CPU
/// (setrlimit(2), RLIMIT_RTTIME).
const RT_SPIN_LIMIT_US: u64 = 2_000_000;

/// Longest such time with several items under way, where a member may find the next item each time:
/// a step's deadline ends a ring that hangs.
const RT_FLIGHT_LIMIT_US: u64 = 60_000_000;

/// Additional time for each member: the leader creates them all, and reads all their counts,
/// without sleeping once. A fork takes some tens of microseconds.
const RT_SPIN_PER_MEMBER_US: u64 = 1_000;

/// Smallest ring whose limits are checked before its first member is created: a larger one that
/// fails at a limit would leave no process to anybody else meanwhile.
const MANY_MEMBERS: u32 = 256;

/// Number of slices of the ring between two phases of solos.
const RING_SLICES: u64 = 6;
/// Wanted time of each of these slices. Shorter than a sample's: a neighbour that comes and goes
/// evicts lines from a shared cache, which costs the ring, whose arrays fill more of it, more than
/// a solo.
const RING_SLICE_NS: f64 = 100_000.0;
/// Upper bound of the wanted time of each phase of solos.
const TRIPLE_SOLOS_NS: f64 = 500_000.0;
/// Smallest number of laps of a solo.
const MIN_SOLO_LAPS: u64 = 3;
/// Time after which a worker measures no further triple.
const TRIPLES_NS: u64 = 15_000_000;
/// Like [`TRIPLES_NS`], for hops that are cut: each piece has to be measured several times.
const CUT_TRIPLES_NS: u64 = 60_000_000;
/// Like [`CUT_TRIPLES_NS`], while a piece was never measured on an unshared core.
const MAX_CUT_TRIPLES_NS: u64 = 400_000_000;

/// Limit of the time for which all slices of a sample together wait for an unshared core, as a
/// multiple of the sample's time. A core that is shared nine tenths of the time, for some
/// milliseconds each, is unshared at two or three moments in 30 ms.
const SAMPLE_WAIT_FACTOR: u64 = 3;
/// Limit of the time for which all triples of a worker together wait.
const TRIPLES_WAIT_NS: u64 = 15_000_000;

/// Most time by which the warm-up of rings that share a CPU is longer than a sample, in nanoseconds.
const MAX_WARM_UP_NS: u64 = 500_000_000;

/// Wanted time of the laps that a ring turns while others still measure, in nanoseconds.
const TURN_NS: f64 = 250_000.0;
/// Time in nanoseconds that a ring turns at least before it rests between its turns.
const TURN_PATIENCE_NS: f64 = 1e9;
/// Multiple of a sample's expected time that is added to [`TURN_PATIENCE_NS`].
const TURN_PATIENCE_SAMPLES: f64 = 10.0;
/// Time of such a rest.
const TURN_REST: Duration = Duration::from_millis(1);
/// Assumed time that each of several rings adds to a wait for all of them, in nanoseconds.
const GATE_NS_PER_RING: f64 = 50e6;

/// Largest number of slices of a sample: one of prescribed laps may last for hours.
const MAX_SLICES: u64 = 10_000;

/// Assumed time of a touch of one element, in nanoseconds, before one was timed.
const SLOW_ELEMENT_NS: f64 = 1000.0;

/// Assumed time of a hop in nanoseconds before one was timed: far longer than on any machine.
const SLOW_HOP_NS: f64 = 10e6;

/// Runs one assignment in the calling process, which must be single-threaded and serve no other
/// purpose: it forks, changes its policy and its CPUs, and sets itself a deadline. Each sample goes
/// to `sink` as soon as every member has proven that it made its hops.
pub fn run(assignment: &Assignment, sink: &mut dyn FnMut(RingSample)) -> Result<(), RingError> {
    check_room(&assignment.case)?;
    if assignment.case.has_several_rings() {
        return several::run(assignment, sink);
    }
    run_by_clock(assignment, &mut monotonic_raw_ns, sink)
}

/// Checks that the machine has room for all members of a large ring, or of many rings.
fn check_room(case: &RingCase) -> Result<(), RingError> {
    let wanted = if case.link == "coroutine" { case.rings() } else { case.members_of_all() };
    if wanted < MANY_MEMBERS {
        return Ok(());
    }
    let machine = machine::read(Path::new("/"));
    let room = limits::check_tasks(&machine, wanted.into());
    room.map_err(|limits| RingError::TooMany { wanted, limits })
}

/// Checks that a ring with several items under way has the right size and no triples: a solo is a
/// ring with one token.
fn check_flight(assignment: &Assignment) -> Result<(), RingError> {
    let Assignment { case, batching, .. } = assignment;
    let Some(flight) = case.flight else { return Ok(()) };
    flight.check(case.members).map_err(RingError::Other)?;
    if batching.triples.is_some() || batching.places.is_some() {
        let why = format!("{flight} items under way: not with solos on the same memory");
        return Err(RingError::Other(why));
    }
    Ok(())
}

/// Runs one assignment like [`run`], with a clock of the caller's in nanoseconds. It is read
/// before and after each batch; the last two readings before a sample reaches `sink` are those of
/// its batch. Whatever else the clock does is part of the sample's time.
pub fn run_by_clock(
    assignment: &Assignment,
    clock: &mut dyn FnMut() -> u64,
    sink: &mut dyn FnMut(RingSample),
) -> Result<(), RingError> {
    run_at_gate(assignment, None, clock, sink)
}

/// One of several rings that begin their samples together.
pub(super) struct GatedRing {
    pub(super) gate: RingGate,
    /// Rings that run on its CPU, itself among them.
    pub(super) rings_per_cpu: u32,
}

/// Runs one ring like [`run_by_clock`]. With a gate it sets up, warms up and begins its samples
/// together with other rings, and goes on turning until all of them have taken theirs.
pub(super) fn run_at_gate(
    assignment: &Assignment,
    gated: Option<GatedRing>,
    clock: &mut dyn FnMut() -> u64,
    sink: &mut dyn FnMut(RingSample),
) -> Result<(), RingError> {
    let rings_per_cpu = gated.as_ref().map_or(1, |ring| ring.rings_per_cpu);
    let gate = gated.map(|ring| ring.gate);
    let case = &assignment.case;
    let link = links::find_link(&case.link)
        .ok_or_else(|| RingError::Other(format!("no link is called '{}'", case.link)))?;
    link.suits(case)?;
    check_flight(assignment)?;
    // Before there is a member: members inherit the mask that it sets.
    let halts = halts::HaltWatch::start();
    let start_ns = monotonic_raw_ns();
    sys::reset_alarm();
    let slow_lap_ns = f64::from(case.members) * slow_hop_ns(case);
    set_step_deadline(slow_lap_ns);
    let cpus = case.placement.cpus_of(0);
    placement::pin(&cpus).map_err(|errno| {
        RingError::Other(format!("member 0 could not be put on CPU {cpus:?}: {errno}"))
    })?;
    take_policy(case, link.sleeps)?;
    raise_open_files();
    let under_way = match case.flight {
        Some(flight) => link.count_items(flight).map_err(RingError::Other)?,
        None => 1,
    };
    // Members inherit the burden; it is released when they have ended.
    let _burden = case.burden.map(|burden| burden::take(burden, case)).transpose()?;
    if case.members > 1 {
        // Without the watch a loss is noticed all the same: by the link, if it shows that the other
        // end is closed, or by the deadline.
        let _ = sys::watch_members();
    }
    let has_solos = assignment.batching.triples.is_some() && case.members > 1;
    let ballast_start_ns = monotonic_raw_ns();
    // Differs between the workers of a run, and is the same in each run of a plan.
    let ring = gate.as_ref().map_or(0, |gate| u64::from(gate.ring));
    let seed = (u64::from(assignment.round) << 32) + assignment.case_number as u64 + (ring << 16);
    let ballast = case.work.and_then(|work| PageBallast::hold(work.huge_pages, seed));
    // Not a part of the ring's set-up.
    let ballast_ns = monotonic_raw_ns() - ballast_start_ns;
    let BuiltRing { leader, area, others } = link.build(case, seed, has_solos)?;
    let setup_ns = monotonic_raw_ns() - start_ns - ballast_ns;
    let mut leader = RingLeader::new(leader, &area);
    leader.set_flight(case.flight);
    let sampled = leader.announce(1).and_then(|()| {
        // All members have allocated their memory: they took part in a lap.
        drop(ballast);
        let tasks = others.tasks(&area);
        let clocks = MemberClocks::choose(case, &tasks);
        leader.set_meters(SliceMeters::with_events(clocks, open_events(assignment)));
        let huge_page_bytes = case.work.and_then(|_| huge_page_bytes(&tasks));
        let sampler = RingSampler {
            assignment,
            gate,
            rings_per_cpu,
            clock,
            leader: &mut leader,
            tasks,
            halts,
            setup_ns,
            ns_per_lap: slow_lap_ns,
            under_way,
            huge_page_bytes,
            places: None,
        };
        sampler.run(sink)
    });
    // Closes the leader's ends: members that wait for a lost token notice it.
    drop(leader);
    sys::unwatch_members();
    set_step_deadline(slow_lap_ns);
    match sampled {
        Ok(()) => others.finish(),
        Err(error) => Err(others.end_after(error, &area)),
    }
}

/// Takes the samples of a ring whose first batch, of one lap, has been announced.
struct RingSampler<'a, 'ring> {
    assignment: &'a Assignment,
    /// The gate of several rings; absent for a ring by itself.
    gate: Option<RingGate>,
    /// Rings that run on its CPU, itself among them.
    rings_per_cpu: u32,
    clock: &'a mut dyn FnMut() -> u64,
    leader: &'a mut RingLeader<'ring>,
    tasks: Vec<TaskId>,
    halts: halts::HaltWatch,
    setup_ns: u64,
    ns_per_lap: f64,
    /// Items that are under way at once.
    under_way: u32,
    huge_page_bytes: Option<u64>,
    places: Option<MemoryPlaces>,
}

impl RingSampler<'_, '_> {
    /// Takes all samples of the round, and announces the end to the members.
    fn run(mut self, sink: &mut dyn FnMut(RingSample)) -> Result<(), RingError> {
        let batching = &self.assignment.batching;
        self.wait_at_gate();
        self.warm_up()?;
        self.turn_until_all_arrive()?;
        self.places = self.choose_place()?;
        let calibrated_laps = (batching.sample_ns.max(1) as f64 / self.ns_per_lap).ceil() as u64;
        let calibrated_laps = calibrated_laps.max(self.fewest_laps());
        let slice_laps = self.slice_laps(batching.laps.unwrap_or(calibrated_laps));
        let whole_slices = calibrated_laps.next_multiple_of(slice_laps.unwrap_or(1));
        let laps = batching.laps.unwrap_or(whole_slices);
        let mut sampled_ns = 0;
        // The first reading is not used: page faults of its buffers are not the ring's.
        self.counts_before(self.tasks.len().min(1))?;
        self.announce_samples(laps, slice_laps)?;
        for number in 0.. {
            let start_ns = monotonic_raw_ns();
            let mut sample = self.sample(number, laps, slice_laps)?;
            // Includes the counting, which takes longer than the laps of a large ring, but no
            // waits.
            let waited_ns = sample.slices.as_ref().and_then(Slices::waited_ns).unwrap_or(0);
            sampled_ns += (monotonic_raw_ns() - start_ns).saturating_sub(waited_ns);
            sample.triples = self.measure_triples(!sample.is_as_found())?.map(Box::new);
            let mut enough =
                number + 1 >= batching.samples_per_round || sampled_ns >= batching.enough_ns;
            if let Some(gate) = &self.gate {
                if enough {
                    gate.end_here();
                }
                self.turn_until_all_arrive()?;
            }
            if let Some(gate) = &self.gate {
                enough = gate.ends_here();
            }
            // The next announcement also proves that every member made all its hops.
            self.announce_samples(if enough { 0 } else { laps }, slice_laps)?;
            sink(sample);
            if enough {
                break;
            }
        }
        Ok(())
    }

    /// Announces the laps of the next batch, with a new deadline.
    fn announce(&mut self, laps: u64) -> Result<(), RingError> {
        self.announce_samples(laps, None)
    }

    /// Like [`Self::announce`], for a batch that may be cut into slices of so many laps.
    fn announce_samples(&mut self, laps: u64, slice_laps: Option<u64>) -> Result<(), RingError> {
        set_step_deadline((laps + 1) as f64 * self.ns_per_lap);
        self.leader.announce_in_slices(laps, slice_laps.unwrap_or(laps))
    }

    /// Sleeps until all of several rings have come as far as this one.
    fn wait_at_gate(&mut self) {
        let sample_ns = self.assignment.batching.laps.unwrap_or(1) as f64 * self.ns_per_lap;
        let Some(gate) = &mut self.gate else { return };
        set_step_deadline(sample_ns + GATE_NS_PER_RING * f64::from(gate.rings()));
        gate.wait();
    }

    /// Says that this one of several rings has come so far, and keeps it turning until all have, so
    /// that the load of the others stays as it is. No batch may be announced before.
    ///
    /// A ring that has turned far longer than a sample lasts rests between its turns. A scheduler
    /// may run the rings of one group for minutes and none of another: Linux 6.18 did so with
    /// `sched_autogroup_enabled`. Two programs that each wait for a ring that the other's turning
    /// rings keep from its CPU would never end.
    fn turn_until_all_arrive(&mut self) -> Result<(), RingError> {
        let patience_ns = self.turn_patience_ns();
        let Some(gate) = &mut self.gate else { return Ok(()) };
        gate.arrive();
        let laps = ((TURN_NS / self.ns_per_lap) as u64).max(self.fewest_laps());
        let start_ns = monotonic_raw_ns();
        while self.gate.as_ref().is_some_and(|gate| !gate.is_open()) {
            self.announce(laps)?;
            self.leader.batch(laps, &mut *self.clock)?;
            if monotonic_raw_ns() - start_ns > patience_ns {
                thread::sleep(TURN_REST);
            }
        }
        Ok(())
    }

    /// Returns the time in nanoseconds for which the ring turns without a rest.
    fn turn_patience_ns(&self) -> u64 {
        let sample_ns = match self.assignment.batching.laps {
            Some(laps) => laps as f64 * self.ns_per_lap,
            None => self.warm_up_ns() as f64,
        };
        let samples_ns = sample_ns * f64::from(self.rings_per_cpu);
        (TURN_PATIENCE_NS + TURN_PATIENCE_SAMPLES * samples_ns) as u64
    }

    /// Runs laps in growing batches until one lasts an eighth of a sample. The time of a lap is
    /// that of the fastest batch: a disturbed one must not make the samples too short.
    ///
    /// The others of several rings are no disturbance. Their share belongs to the time of a lap,
    /// which is that of all batches: one batch alone may have waited for them most of its time. The
    /// last batch lasts a sample for each ring on its CPU, so that each has its turn.
    fn warm_up(&mut self) -> Result<(), RingError> {
        let wanted_ns = self.warm_up_ns();
        let (mut laps, mut all_laps, mut all_ns) = (1, 0, 0);
        loop {
            let elapsed_ns = self.leader.batch(laps, &mut *self.clock)?.max(1);
            (all_laps, all_ns) = (all_laps + laps, all_ns + elapsed_ns);
            self.ns_per_lap = match self.gate {
                Some(_) => all_ns as f64 / all_laps as f64,
                None => self.ns_per_lap.min(elapsed_ns as f64 / laps as f64),
            };
            if elapsed_ns >= wanted_ns {
                return Ok(());
            }
            laps *= 2;
            self.announce(laps)?;
        }
    }

    /// Returns the time in nanoseconds that the last batch of the warm-up lasts at least.
    fn warm_up_ns(&self) -> u64 {
        let sample_ns = self.assignment.batching.sample_ns.max(1);
        match self.gate {
            None => sample_ns / 8,
            Some(_) => turns_ns(sample_ns, self.rings_per_cpu),
        }
    }

    /// Tries several places for the members' memory and moves it to the best. Returns `None` if
    /// there is one place only, or if the kernel gave fewer huge pages than needed: base pages
    /// would fault at each place. Waits for nothing: the sample that follows is timed as the
    /// machine is found.
    fn choose_place(&mut self) -> Result<Option<MemoryPlaces>, RingError> {
        let Assignment { case, batching, unshared_ratio, .. } = self.assignment;
        let member_bytes = case.work.and_then(|work| WorkArray::bytes_with_places(&work));
        let ring_bytes = member_bytes.and_then(|bytes| bytes.checked_mul(case.members.into()));
        if ring_bytes.is_none_or(|needed| self.huge_page_bytes < Some(needed)) {
            return Ok(None);
        }
        let start_ns = monotonic_raw_ns();
        let mut tried = Vec::new();
        for place in 0..batching.places.unwrap_or(0) {
            if place >= MIN_PLACES && monotonic_raw_ns() - start_ns > PLACES_NS {
                break;
            }
            tried.push(self.move_to(place)?);
        }
        let Some((best, counts)) = best_place(*unshared_ratio, &tried) else { return Ok(None) };
        let (lap_ns, _) = self.move_to(best)?;
        self.ns_per_lap = lap_ns.max(1) as f64;
        Ok(Some(counts))
    }

    /// Moves the members' memory to a place and times laps there.
    fn move_to(&mut self, place: u32) -> Result<(u64, Slices), RingError> {
        set_step_deadline((PLACE_LAPS + 8) as f64 * self.ns_per_lap);
        self.leader.move_to(place, PLACE_LAPS)
    }

    /// Returns the laps of a slice, if samples of `sample_laps` laps are cut into slices. A slice
    /// has at least one lap, and a sample at most [`MAX_SLICES`] slices. With several items under way
    /// the last slice of prescribed laps is no shorter than the others may be.
    fn slice_laps(&self, sample_laps: u64) -> Option<u64> {
        let batching = &self.assignment.batching;
        let wanted_ns = batching.slice_ns.filter(|_| sys::HAS_QUANTA)?;
        let laps = (wanted_ns as f64 / self.ns_per_lap) as u64;
        let fewest = sample_laps.div_ceil(MAX_SLICES);
        let slice_laps = laps.max(fewest).max(self.fewest_laps());
        if batching.laps.is_some() && self.under_way > 1 {
            return Some(even_slice_laps(sample_laps, slice_laps, self.fewest_laps()));
        }
        Some(slice_laps)
    }

    /// Returns the fewest laps of a slice.
    fn fewest_laps(&self) -> u64 {
        fewest_laps(self.under_way)
    }

    /// Times one batch, with the kernel's counts read before and after it. The members' counts are
    /// read while they all sleep. The leader cannot sleep: it reads its own last before the batch,
    /// and first after it.
    ///
    /// Every sample but the first of a worker waits for an unshared core. The first is timed as the
    /// machine is found: samples that wait, and what follows them, do not show how often the core
    /// is shared. Slices that are too long to be judged do not wait either.
    fn sample(
        &mut self,
        number: u32,
        laps: u64,
        slice_laps: Option<u64>,
    ) -> Result<RingSample, RingError> {
        let Assignment { case, batching, unshared_ratio, .. } = self.assignment;
        let mut slices = slice_laps.map(|slice_laps| {
            let is_judged = slice_laps as f64 * self.ns_per_lap <= MAX_JUDGED_SLICE_NS as f64;
            let waits = number > 0 && unshared_ratio.is_some() && is_judged && self.gate.is_none();
            let new_slices = if waits { Slices::that_wait } else { Slices::with_room_for };
            let slices = new_slices(laps.div_ceil(slice_laps) as usize, slice_laps);
            slices.with_events(batching.events.len())
        });
        let mut budget = self.budget(batching.sample_ns.saturating_mul(SAMPLE_WAIT_FACTOR));
        let halts_before = self.halts.before();
        let others_before = CounterSnapshot::of_resting(&self.tasks)?;
        // The leader sleeps here, before its own counts are read.
        self.wait_at_gate();
        let (before, stolen_before) = self.counts_with(&others_before)?;
        let start_ns = self.gate.as_ref().map(|_| monotonic_raw_ns());
        let elapsed_ns = match &mut slices {
            Some(slices) => self.leader.batch_in_slices(laps, slices, &mut budget)?,
            None => self.leader.batch(laps, &mut *self.clock)?,
        };
        let (after, stolen_after) = self.counts_after()?;
        Ok(RingSample {
            case: self.assignment.case_number,
            round: self.assignment.round,
            sample: number,
            laps,
            hops: laps * case.hops_per_lap(),
            elapsed_ns,
            counters: Counters { halts: self.halts.since(&halts_before), ..after.since(&before) },
            // A guest that was moved to another host may count from zero again: then it is unknown.
            steal_ns: stolen_after.zip(stolen_before).and_then(|(now, then)| now.checked_sub(then)),
            setup_ns: self.setup_ns,
            slices,
            triples: None,
            huge_page_bytes: self.huge_page_bytes,
            rings: Vec::new(),
            start_ns,
        })
    }

    /// Measures triples, as many as the plan wants or as fit into a worker's time. Returns `None`
    /// if the members have no channel for solos. `after_wait`: the sample before has waited.
    fn measure_triples(&mut self, after_wait: bool) -> Result<Option<Triples>, RingError> {
        let wanted = self.assignment.batching.triples.unwrap_or(0);
        if !self.leader.has_solos() || wanted == 0 {
            return Ok(None);
        }
        let members = self.assignment.case.members;
        let pieces = self.pieces_of_hop();
        let (ring_laps, solo_laps, triples_ns) = if pieces.is_some() {
            (pieces::RING_LAPS, pieces::SOLO_LAPS, CUT_TRIPLES_NS)
        } else {
            let ring_laps = (RING_SLICE_NS / self.ns_per_lap) as u64;
            // All members' solos together: a solo hop takes less time than one of the ring.
            let solo_laps = (TRIPLE_SOLOS_NS / self.ns_per_lap) as u64;
            (ring_laps.max(1), solo_laps.max(MIN_SOLO_LAPS), TRIPLES_NS)
        };
        let mut triples = Triples {
            members,
            ring_laps,
            solo_laps,
            pieces,
            all: Vec::new(),
            // What follows a wait is not as the machine was found either.
            as_found: self.assignment.unshared_ratio.map(|_| u32::from(!after_wait)),
            places: self.places,
        };
        let mut budget = self.budget(TRIPLES_WAIT_NS);
        let start_ns = monotonic_raw_ns();
        for number in 0..wanted {
            if number > 0 || after_wait {
                budget.spend(0);
            }
            triples.all.push(match pieces {
                Some(pieces) => {
                    set_step_deadline((ring_laps + 2 * solo_laps + 10) as f64 * self.ns_per_lap);
                    self.leader.measure_triple_in_pieces(pieces)?
                }
                None => self.measure_triple(ring_laps, solo_laps)?,
            });
            let waited_ns = TRIPLES_WAIT_NS - budget.left_ns;
            let passed_ns = (monotonic_raw_ns() - start_ns).saturating_sub(waited_ns);
            if passed_ns > triples_ns && !self.needs_more(&triples, passed_ns) {
                break;
            }
        }
        Ok(Some(triples))
    }

    /// Returns whether some piece was never measured on an unshared core, and time is left for more
    /// triples. Never for triples without pieces.
    fn needs_more(&self, triples: &Triples, passed_ns: u64) -> bool {
        let Some(ratio) = self.assignment.unshared_ratio else { return false };
        triples.pieces.is_some()
            && passed_ns <= MAX_CUT_TRIPLES_NS
            && !triples.are_seen_unshared(ratio)
    }

    /// Returns the pieces into which a hop is cut, if it takes longer than a slice in the fastest
    /// lap.
    fn pieces_of_hop(&self) -> Option<u32> {
        let Assignment { case, batching, .. } = self.assignment;
        let slice_ns = batching.slice_ns.filter(|_| sys::HAS_QUANTA)?;
        pieces::pieces_of_hop(&case.work?, self.ns_per_lap / f64::from(case.members), slice_ns)
    }

    /// Returns a budget of so much time for waits.
    fn budget(&self, left_ns: u64) -> WaitBudget {
        WaitBudget { unshared_ratio: self.assignment.unshared_ratio, left_ns }
    }

    /// Measures a triple whose hops are not cut.
    fn measure_triple(&mut self, ring_laps: u64, solo_laps: u64) -> Result<Triple, RingError> {
        let mut triple = Triple::default();
        self.run_solos(solo_laps, &mut triple)?;
        let mut slices = Slices::with_room_for(RING_SLICES as usize, ring_laps);
        self.leader.run_between_solos(RING_SLICES, &mut slices)?;
        triple.ring_ns = slices.elapsed_ns;
        triple.ring_cpu_ns = slices.cpu_ns;
        triple.latency_ns.extend(slices.latency_ns);
        triple.throughput_ns.extend(slices.throughput_ns);
        self.run_solos(solo_laps, &mut triple)?;
        Ok(triple)
    }

    /// Runs a phase of solos, whose times are added to `triple`.
    fn run_solos(&mut self, solo_laps: u64, triple: &mut Triple) -> Result<(), RingError> {
        set_step_deadline((solo_laps + 3) as f64 * self.ns_per_lap);
        self.leader.run_solos(solo_laps)?;
        for cell in self.leader.cells() {
            let solo = cell.solo();
            triple.solos_ns.push(solo.elapsed_ns);
            triple.solos_cpu_ns.push(solo.cpu_ns);
            for quantum in [solo.quantum_before, solo.quantum_after] {
                let latency_ns = u32::try_from(quantum.latency_ns).unwrap_or(u32::MAX);
                let throughput_ns = u32::try_from(quantum.throughput_ns).unwrap_or(u32::MAX);
                triple.latency_ns.push(latency_ns);
                triple.throughput_ns.push(throughput_ns);
            }
        }
        Ok(())
    }

    /// Reads the kernel's counts of the leader and of the first `count` other members, and the time
    /// stolen from their CPUs in nanoseconds, before a batch.
    fn counts_before(&self, count: usize) -> Result<(CounterSnapshot, Option<u64>), RingError> {
        self.counts_with(&CounterSnapshot::of_resting(&self.tasks[..count])?)
    }

    /// Adds the leader's counts to those of `others`, and reads the time stolen in nanoseconds.
    fn counts_with(
        &self,
        others: &CounterSnapshot,
    ) -> Result<(CounterSnapshot, Option<u64>), RingError> {
        let steal_ns = steal_ns(&self.assignment.case.placement.cpus());
        Ok((others.plus(&CounterSnapshot::of_self_before(own_task())?), steal_ns))
    }

    /// Reads the counts of all members and the time stolen, after a batch.
    fn counts_after(&self) -> Result<(CounterSnapshot, Option<u64>), RingError> {
        let leader = CounterSnapshot::of_self_after(own_task())?;
        let steal_ns = steal_ns(&self.assignment.case.placement.cpus());
        Ok((CounterSnapshot::of_resting(&self.tasks)?.plus(&leader), steal_ns))
    }
}

/// Opens the events that the plan wants counted on the ring's one CPU. They were available when the
/// plan was made; if they are no longer, the ring is measured without them.
fn open_events(assignment: &Assignment) -> Option<CpuEvents> {
    let Assignment { case, batching, .. } = assignment;
    if !case.placement.is_one_cpu() || batching.events.is_empty() {
        return None;
    }
    let cpu = *case.placement.cpus_of(0).first()?;
    CpuEvents::open(cpu, &batching.events).ok()
}

/// Returns the bytes of huge pages that the ring's processes were given, if the kernel reports
/// them.
fn huge_page_bytes(tasks: &[TaskId]) -> Option<u64> {
    let pids: BTreeSet<i32> = tasks.iter().chain([&own_task()]).map(|task| task.pid).collect();
    pids.into_iter().map(huge_page_bytes_of_process).sum()
}

/// Returns a time in nanoseconds that is far longer than a hop on any machine.
fn slow_hop_ns(case: &RingCase) -> f64 {
    let elements = case.work.map_or(0, |work| work.bytes / ELEMENT_BYTES);
    SLOW_HOP_NS + elements as f64 * SLOW_ELEMENT_NS
}

/// Returns the laps of a slice, `wanted` or a little more, with which the last slice of `laps` laps
/// has at least `fewest`, too.
fn even_slice_laps(laps: u64, wanted: u64, fewest: u64) -> u64 {
    if laps % wanted == 0 {
        return wanted;
    }
    for slices in (1..=laps / wanted).rev() {
        let slice_laps = laps.div_ceil(slices);
        let rest = laps % slice_laps;
        if rest == 0 || rest >= fewest {
            return slice_laps;
        }
    }
    wanted
}

/// Returns the time in which each of so many rings on a CPU has its turn of `sample_ns`, at most
/// [`MAX_WARM_UP_NS`] above that of one.
fn turns_ns(sample_ns: u64, rings_per_cpu: u32) -> u64 {
    let all_ns = sample_ns.saturating_mul(rings_per_cpu.into());
    all_ns.min(sample_ns.saturating_add(MAX_WARM_UP_NS))
}

/// Returns an upper bound of the time that a member takes for the first walks through its working
/// set, which calibrate the number of laps.
pub fn max_walk_time(case: &RingCase) -> Duration {
    let elements = case.work.map_or(0, |work| work.bytes / ELEMENT_BYTES);
    Duration::from_nanos(elements.saturating_mul(4 * SLOW_ELEMENT_NS as u64))
}

/// Returns an upper bound of the time that the prescribed laps of an assignment take on any
/// machine; zero if it leaves the laps to the calibration, which keeps them short.
pub fn max_prescribed_time(assignment: &Assignment) -> Duration {
    let Assignment { case, batching, .. } = assignment;
    let batches = f64::from(batching.samples_per_round) + 1.0;
    let laps = batching.laps.map_or(0.0, |laps| laps as f64) * batches;
    let ns = 20.0 * laps * f64::from(case.members_of_all()) * slow_hop_ns(case);
    Duration::try_from_secs_f64(ns / 1e9).unwrap_or(Duration::MAX)
}

/// Returns the ids of the calling thread.
fn own_task() -> TaskId {
    TaskId { pid: std::process::id() as i32, tid: rustix::thread::gettid().as_raw_pid() }
}

/// Sets the deadline of a step that should last `expected_ns`: it is taken for hung if it lasts far
/// longer.
fn set_step_deadline(expected_ns: f64) {
    sys::set_deadline((60.0 + 20.0 * expected_ns / 1e9).min(f64::from(u32::MAX)) as u32);
}

/// Takes the policy of the case for the worker and all that it forks or starts.
fn take_policy(case: &RingCase, sleeps: bool) -> Result<(), RingError> {
    // A ring of one never waits; if it hangs, its deadline ends it.
    if case.policy.is_realtime() && case.members > 1 && sleeps {
        let work_us = 20.0 * slow_hop_ns(case) / 1000.0;
        let members_us = RT_SPIN_PER_MEMBER_US * u64::from(case.members);
        let awake_us = if case.flight.is_some() { RT_FLIGHT_LIMIT_US } else { RT_SPIN_LIMIT_US };
        let soft = awake_us + members_us + work_us as u64;
        sys::limit_real_time(soft, RT_SPIN_LIMIT_US);
    }
    let taken = policy::take_at(case.policy, case.priority());
    taken.map_err(|errno| RingError::Other(policy::describe_refusal(case.policy, errno)))
}

/// Checks that the calling process may use `policy`. Tries it on a thread of its own.
pub fn check_policy(policy: Policy) -> Result<(), RingError> {
    policy::check(policy).map_err(|errno| RingError::Other(policy::describe_refusal(policy, errno)))
}

/// Checks that a CPU counts these events, all at once. Returns the first event that it does not
/// count, and why.
pub fn check_events(cpu: u32, events: &[CountedEvent]) -> Result<(), (CountedEvent, Errno)> {
    CpuEvents::open(cpu, events).map(drop)
}

/// Raises the limit of open files as far as it is granted: threads of a ring share one table of
/// descriptors, and a worker of several rings has one for each.
pub(super) fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    // A refusal shows later as the limit that it is, with its value.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_slice_has_its_items_under_way_too() {
        assert_eq!(even_slice_laps(128, 64, 64), 64);
        // Not 64 and 1.
        assert_eq!(even_slice_laps(65, 64, 64), 65);
        assert_eq!(even_slice_laps(100, 64, 64), 100);
        assert_eq!(even_slice_laps(64, 300, 64), 300, "one slice");
        for laps in (64..70_000).step_by(37) {
            let slice_laps = even_slice_laps(laps, 64, 64);
            let rest = laps % slice_laps;
            assert!(slice_laps >= 64 && (rest == 0 || rest >= 64), "{laps}: {slice_laps}");
        }
    }

    #[test]
    fn each_ring_on_a_cpu_has_its_turn_in_the_warm_up() {
        assert_eq!([1, 2, 8].map(|rings| turns_ns(10, rings)), [10, 20, 80]);
        assert_eq!(turns_ns(10, u32::MAX), 10 + MAX_WARM_UP_NS);
        assert_eq!(turns_ns(u64::MAX, 2), u64::MAX);
    }
}
