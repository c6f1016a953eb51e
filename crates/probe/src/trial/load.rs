//! Wake-ups under load: messengers wake workers on a schedule that waits for nobody.
//!
//! Everything that can fail is prepared before the schedule begins. Then a messenger sleeps until a
//! request's moment, reads the clock and wakes its worker; the worker reads the clock, works, and
//! reads it again. Requests lie in slots of their own, so that none waits for room. Times are
//! counted by parts of octaves: memory does not grow with the number of requests.

use std::hint::black_box;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread;

use rundata::ring::{AccessKind, MemberKind, Walk, Work};
use rundata::trial::load::{
    ALL_REQUESTS, ArrivalSchedule, BUSY_CPU_NS, DEMAND_NS, IDLE_PERMILLE, IDLE_RATE_PER_S,
    INVOLUNTARY, KERNEL_WAKES_RECEIVED, KERNEL_WAKES_SENT, LATE_TOTAL_NS, MAX_RATE_PER_S,
    MESSENGER_BUSY_NS, OCCUPIED_NS, RATE_PER_S, RECEIVED, REQUEST_NS, RequestWork, SCHEDULE_NS,
    SENT, ServedRequest, TIME_PARTS, TIME_SCALE, VOLUNTARY, WAKE_NS, WORKER_CPU_NS, WakeLoad,
    WakeMechanism, occupied_ns, planned_messengers, tally_parts,
};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::Timespec;
use rustix::io::{Errno, retry_on_intr};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{WaitId, WaitIdOptions, waitid};
use rustix::thread::{futex, set_current_timer_slack};

use super::harness::{TrialError, TrialOutcome, check_alive, start_beside};
use crate::placement;
use crate::random::RandomSource;
use crate::sys::{
    ChildProcess, CpuClock, MAX_WORKER_REQUESTS, MessengerBoard, RequestBoard, SharedValue,
    StartGate, UsageScope, WorkArray, cpu_clock_ns, exit_now, monotonic_ns, own_thread_cpu_ns,
    sleep_until, usage,
};

/// Number of first requests of each worker that are not counted, as their code is not in the
/// caches.
const WARM_UP_REQUESTS: usize = 4;
/// Least number of requests of a worker that are counted.
const MIN_REQUESTS: f64 = 4.0;
/// Time from the opening of the gate to the beginning of the schedule: everybody is awake by then.
const LEAD_NS: u64 = 1_000_000;
/// Stack of a worker or messenger that is a thread.
const STACK_BYTES: usize = 256 * 1024;
/// Time after which it is looked whether a member that is not ready still runs.
const READY_CHECK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Runs the schedule of a round; returns the times of its wake-ups and requests.
pub(super) fn run(load: &WakeLoad, round: u32) -> Result<TrialOutcome, TrialError> {
    let work = CalibratedWork::new(load.work)?;
    let schedule = RequestSchedule::new(load, work.demand_ns, round)?;
    let mut busy = start_busy_tasks(load)?;
    let crew = LoadCrew::new(load, work, schedule)?;
    let busy_before = cpu_sum_ns(&busy);
    match load.kind {
        MemberKind::Process => crew.run_processes(&mut busy)?,
        MemberKind::Thread => crew.run_threads()?,
    }
    let end_ns = monotonic_ns();
    let busy_after = cpu_sum_ns(&busy);
    check_alive("busy task", &mut busy)?;
    let mut outcome = crew.outcome();
    outcome.elapsed_ns = Some(end_ns.saturating_sub(crew.gate.start_ns.load(Relaxed)));
    if let (Some(before), Some(after)) = (busy_before, busy_after) {
        outcome.count(BUSY_CPU_NS, after.saturating_sub(before) as i64);
    }
    Ok(outcome)
}

/// Starts the tasks that keep the workers' CPUs busy.
fn start_busy_tasks(load: &WakeLoad) -> Result<Vec<ChildProcess>, TrialError> {
    let mut tasks = Vec::new();
    for _ in 0..load.busy_tasks {
        tasks.push(start_beside(|| {
            // If it cannot move, it ends, which is noticed.
            if placement::pin(&load.worker_cpus).is_ok() {
                loop {
                    std::hint::spin_loop();
                }
            }
        })?);
    }
    Ok(tasks)
}

/// Reads the sum of the CPU times of processes in nanoseconds; absent without one, and where one
/// cannot be read.
fn cpu_sum_ns(tasks: &[ChildProcess]) -> Option<u64> {
    let mut sum_ns = 0;
    for task in tasks {
        sum_ns += cpu_clock_ns(task.pid(), false, CpuClock::Precise).ok()?;
    }
    if tasks.is_empty() { None } else { Some(sum_ns) }
}

/// The work on a request, calibrated on the CPU of the caller.
#[derive(Clone, Copy)]
struct CalibratedWork {
    /// Turns of [`think`].
    turns: u64,
    /// Array that is walked over; absent where a request only thinks.
    array: Option<Work>,
    /// Time that it takes undisturbed, in nanoseconds.
    demand_ns: f64,
}

/// Turns of [`think`] by which it is calibrated.
const CALIBRATION_TURNS: u64 = 20_000;
/// Number of times that a work is tried to calibrate it.
const CALIBRATION_TRIES: u32 = 9;
/// Time after which it is not tried again, in nanoseconds.
const MAX_CALIBRATION_NS: u64 = 50_000_000;

impl CalibratedWork {
    fn new(work: RequestWork) -> Result<Self, TrialError> {
        match work {
            RequestWork::ThinkNs(ns) => {
                let calibrated_ns = shortest_ns(|| think(CALIBRATION_TURNS));
                let turns = ns as f64 * CALIBRATION_TURNS as f64 / calibrated_ns;
                Ok(Self { turns: turns.round() as u64, array: None, demand_ns: ns as f64 })
            }
            RequestWork::Bytes(bytes) => {
                let array = Work {
                    bytes: bytes - bytes % 8,
                    stride_bytes: 8,
                    op: AccessKind::Rmw,
                    walk: Walk::Whole,
                    huge_pages: false,
                };
                let mut walked = new_array(&array)?;
                let demand_ns = shortest_ns(|| walked.walk());
                Ok(Self { turns: 0, array: Some(array), demand_ns })
            }
        }
    }
}

/// Maps the array of a worker.
fn new_array(work: &Work) -> Result<WorkArray, TrialError> {
    if let Err(most) = WorkArray::check(work) {
        let bytes = work.bytes;
        return Err(TrialError(format!("--work {bytes}: an address space holds {most} bytes")));
    }
    WorkArray::new(work, 0).map_err(TrialError::at("mmap of the working set"))
}

/// Computes for so many turns, each of which needs the result of the one before.
#[inline(never)]
fn think(turns: u64) {
    let mut value = 1_u64;
    for turn in 0..turns {
        value = black_box(value.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ turn);
    }
}

/// Returns the shortest of a few times that `act` takes, in nanoseconds; the first, of cold caches,
/// does not count.
fn shortest_ns(mut act: impl FnMut()) -> f64 {
    act();
    let (start_ns, mut least_ns) = (monotonic_ns(), u64::MAX);
    for _ in 0..CALIBRATION_TRIES {
        let before_ns = monotonic_ns();
        act();
        let after_ns = monotonic_ns();
        least_ns = least_ns.min(after_ns - before_ns);
        if after_ns - start_ns > MAX_CALIBRATION_NS {
            break;
        }
    }
    least_ns.max(1) as f64
}

/// The schedule of a round, which depends on nothing that happens in it.
struct RequestSchedule {
    /// Requests a second of all messengers together.
    rate_per_s: f64,
    /// Requests of each worker, the warm-up included.
    worker_requests: usize,
    /// `true` where all gaps are equal, else they are exponential.
    has_equal_gaps: bool,
    seed: u64,
}

impl RequestSchedule {
    fn new(load: &WakeLoad, demand_ns: f64, round: u32) -> Result<Self, TrialError> {
        let workers = f64::from(load.workers);
        let rate_per_s = rate_per_s(load, demand_ns)?;
        let counted = (rate_per_s * load.duration_ns as f64 / 1e9 / workers).ceil();
        let most = (MAX_WORKER_REQUESTS - WARM_UP_REQUESTS) as f64;
        let mut random = RandomSource::new(load.seed ^ (u64::from(round) << 32));
        Ok(Self {
            rate_per_s,
            worker_requests: counted.clamp(MIN_REQUESTS, most) as usize + WARM_UP_REQUESTS,
            has_equal_gaps: matches!(load.arrivals, ArrivalSchedule::SleepNs(_)),
            seed: random.next(),
        })
    }

    /// Returns the gaps of one messenger, which serves `workers` of `all_workers`.
    fn gaps(&self, messenger: u32, workers: usize, all_workers: u32) -> RequestGaps {
        let share = workers as f64 / f64::from(all_workers);
        RequestGaps {
            random: RandomSource::new(self.seed.wrapping_add(messenger.into())),
            mean_ns: 1e9 / (self.rate_per_s * share),
            are_equal: self.has_equal_gaps,
        }
    }
}

/// Returns the requests a second of a load whose requests take `demand_ns` each. Fails where a load
/// takes more than [`MAX_RATE_PER_S`] of each messenger.
fn rate_per_s(load: &WakeLoad, demand_ns: f64) -> Result<f64, TrialError> {
    let Some(rate) = load.rate_per_s(demand_ns) else {
        return Ok(idle_rate_per_s(load, demand_ns));
    };
    match load.arrivals {
        ArrivalSchedule::LoadPermille(permille)
            if rate > f64::from(MAX_RATE_PER_S) * f64::from(load.messengers) =>
        {
            Err(too_many_requests(load, permille, rate))
        }
        _ => Ok(rate),
    }
}

/// Returns the requests a second of the idle machine.
fn idle_rate_per_s(load: &WakeLoad, demand_ns: f64) -> f64 {
    // Without work infinite.
    let full_rate = load.loaded_cpus() as f64 * 1e9 / demand_ns;
    let slow = full_rate * f64::from(IDLE_PERMILLE) / 1000.0;
    // Long requests: a round ends in about a second, and half of the time stays idle.
    let requests = MIN_REQUESTS + WARM_UP_REQUESTS as f64;
    let least = (requests * f64::from(load.workers)).min(full_rate / 2.0);
    slow.max(least).min(IDLE_RATE_PER_S.into())
}

/// Says that a load takes more requests a second than messengers send, and what to type.
fn too_many_requests(load: &WakeLoad, permille: u32, rate_per_s: f64) -> TrialError {
    let percent = f64::from(permille) / 10.0;
    let messengers = planned_messengers(rate_per_s, load.workers);
    let more = if messengers > load.messengers {
        format!("--messengers {messengers}, ")
    } else {
        String::new()
    };
    TrialError(format!(
        "--load {percent}%: takes {rate_per_s:.0} requests a second; a messenger sends at most \
         {MAX_RATE_PER_S} (type {more}a longer --think, more --work, or --rate)"
    ))
}

/// Gaps between the requests of a messenger, without end.
struct RequestGaps {
    random: RandomSource,
    mean_ns: f64,
    are_equal: bool,
}

impl RequestGaps {
    fn next_ns(&mut self) -> f64 {
        if self.are_equal {
            return self.mean_ns;
        }
        // Above 0 and up to 1, in steps of 2^-53.
        let uniform = ((self.random.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        -uniform.ln() * self.mean_ns
    }
}

/// The descriptors or flags by which a worker is woken.
enum WakeEnd {
    Futex(futex::Flags),
    Eventfd(OwnedFd),
    Pipe { reader: OwnedFd, writer: OwnedFd },
}

/// Number of requests that tells a worker that its messenger failed; above any real one.
const END_MARK: u32 = u32::MAX;

/// The way of requests to one worker.
struct RequestChannel {
    board: SharedValue<RequestBoard>,
    end: WakeEnd,
}

impl RequestChannel {
    fn new(mechanism: WakeMechanism, kind: MemberKind) -> Result<Self, TrialError> {
        let end = match mechanism {
            WakeMechanism::Futex => WakeEnd::Futex(match kind {
                MemberKind::Process => futex::Flags::empty(),
                MemberKind::Thread => futex::Flags::PRIVATE,
            }),
            WakeMechanism::Eventfd => {
                let flags = EventfdFlags::CLOEXEC | EventfdFlags::SEMAPHORE;
                WakeEnd::Eventfd(eventfd(0, flags).map_err(TrialError::at("eventfd"))?)
            }
            WakeMechanism::Pipe => {
                let pipe = pipe_with(PipeFlags::CLOEXEC).map_err(TrialError::at("pipe"))?;
                let (reader, writer) = pipe;
                WakeEnd::Pipe { reader, writer }
            }
        };
        let board = SharedValue::new().map_err(TrialError::at("mmap of the requests"))?;
        Ok(Self { board, end })
    }

    /// Sends a request that was intended to arrive at `intended_ns`. Returns the messenger's
    /// reading of the clock, and the workers that the wake woke by the kernel's word.
    #[inline(always)]
    fn send(&self, number: usize, intended_ns: u64) -> Result<(u64, u64), Errno> {
        let slot = &self.board.slots[number];
        slot.intended_ns.store(intended_ns, Relaxed);
        let sent_ns = monotonic_ns();
        slot.sent_ns.store(sent_ns, Relaxed);
        self.board.sent.fetch_add(1, Release);
        let woken = match &self.end {
            WakeEnd::Futex(flags) => futex::wake(&self.board.sent, *flags, 1)? as u64,
            WakeEnd::Eventfd(counter) => {
                retry_on_intr(|| rustix::io::write(counter, &1_u64.to_ne_bytes()))?;
                0
            }
            WakeEnd::Pipe { writer, .. } => {
                retry_on_intr(|| rustix::io::write(writer, &[1]))?;
                0
            }
        };
        Ok((sent_ns, woken))
    }

    /// Tells the worker that no request comes any more.
    fn cancel(&self) {
        self.board.sent.store(END_MARK, Release);
        // Best effort: where this fails too, nothing is left to try.
        let _ = match &self.end {
            WakeEnd::Futex(flags) => futex::wake(&self.board.sent, *flags, 1),
            WakeEnd::Eventfd(counter) => {
                retry_on_intr(|| rustix::io::write(counter, &1_u64.to_ne_bytes()))
            }
            WakeEnd::Pipe { writer, .. } => retry_on_intr(|| rustix::io::write(writer, &[1])),
        };
    }

    /// Waits for the request of this number. Returns the waits that a wake ended by the kernel's
    /// word; 0 where the kernel does not tell. Fails with `ECANCELED` where no request comes any
    /// more.
    #[inline(always)]
    fn receive(&self, number: usize) -> Result<u64, Errno> {
        let sent = &self.board.sent;
        let mut kernel_wakes = 0;
        match &self.end {
            WakeEnd::Futex(flags) => {
                while sent.load(Acquire) as usize == number {
                    match futex::wait(sent, *flags, number as u32, None) {
                        Ok(()) => kernel_wakes += 1,
                        // The request came before the wait, or a signal.
                        Err(Errno::AGAIN | Errno::INTR) => {}
                        Err(errno) => return Err(errno),
                    }
                }
            }
            WakeEnd::Eventfd(counter) => {
                retry_on_intr(|| rustix::io::read(counter, &mut [0; 8]))?;
            }
            WakeEnd::Pipe { reader, .. } => {
                if retry_on_intr(|| rustix::io::read(reader, &mut [0; 1]))? == 0 {
                    return Err(Errno::PIPE);
                }
            }
        }
        // What the messenger wrote before its token is seen from here on.
        if sent.load(Acquire) == END_MARK {
            return Err(Errno::CANCELED);
        }
        Ok(kernel_wakes)
    }

    /// Touches the pages of so many requests in this process.
    fn touch(&self, requests: usize) {
        for slot in &self.board.slots[..requests] {
            slot.intended_ns.fetch_add(0, Relaxed);
        }
        self.board.sent.fetch_add(0, Relaxed);
    }
}

/// A member of the crew.
#[derive(Clone, Copy)]
enum CrewRole {
    Worker(usize),
    Messenger(u32),
}

/// Workers and messengers of a round with all that they share.
struct LoadCrew<'a> {
    load: &'a WakeLoad,
    work: CalibratedWork,
    schedule: RequestSchedule,
    channels: Vec<RequestChannel>,
    messengers: Vec<SharedValue<MessengerBoard>>,
    gate: SharedValue<StartGate>,
}

impl<'a> LoadCrew<'a> {
    fn new(
        load: &'a WakeLoad,
        work: CalibratedWork,
        schedule: RequestSchedule,
    ) -> Result<Self, TrialError> {
        let (mut channels, mut messengers) = (Vec::new(), Vec::new());
        for _ in 0..load.workers {
            channels.push(RequestChannel::new(load.mechanism, load.kind)?);
        }
        for _ in 0..load.messengers {
            messengers.push(SharedValue::new().map_err(TrialError::at("mmap of the counts"))?);
        }
        let gate = SharedValue::new().map_err(TrialError::at("mmap of the gate"))?;
        Ok(Self { load, work, schedule, channels, messengers, gate })
    }

    /// Lists all members: workers first, so that they wait when the first request comes.
    fn roles(&self) -> Vec<CrewRole> {
        let mut roles = Vec::new();
        for number in 0..self.channels.len() {
            roles.push(CrewRole::Worker(number));
        }
        for number in 0..self.load.messengers {
            roles.push(CrewRole::Messenger(number));
        }
        roles
    }

    /// Returns the channels of a messenger: of every so many workers one.
    fn channels_of(&self, messenger: u32) -> Vec<&RequestChannel> {
        let messengers = self.load.messengers as usize;
        let mut channels = Vec::new();
        for (number, channel) in self.channels.iter().enumerate() {
            if number % messengers == messenger as usize {
                channels.push(channel);
            }
        }
        channels
    }

    /// Runs each member as a process.
    fn run_processes(&self, busy: &mut [ChildProcess]) -> Result<(), TrialError> {
        let mut children = Vec::new();
        for role in self.roles() {
            let child = ChildProcess::start(|| {
                exit_now(i32::from(self.take_part(role).is_err()));
            });
            children.push(child.map_err(TrialError::at("fork"))?);
        }
        self.wait_until_ready(|| check_alive(MEMBER, &mut children))?;
        self.open_gate();
        while !children.is_empty() {
            let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            let ended = retry_on_intr(|| waitid(WaitId::All, how));
            ended.map_err(TrialError::at("waitid"))?;
            check_alive("busy task", busy)?;
            let mut running = Vec::new();
            for mut child in children {
                if child.is_alive() {
                    running.push(child);
                } else if !child.join() {
                    return Err(TrialError::lost(MEMBER, "it failed or was killed"));
                }
            }
            children = running;
        }
        Ok(())
    }

    /// Runs each member as a thread of this process.
    fn run_threads(&self) -> Result<(), TrialError> {
        thread::scope(|scope| {
            let mut threads = Vec::new();
            for role in self.roles() {
                let builder = thread::Builder::new().stack_size(STACK_BYTES);
                match builder.spawn_scoped(scope, move || self.take_part(role)) {
                    Ok(thread) => threads.push(thread),
                    Err(error) => {
                        // Those that wait at the gate go home.
                        self.gate.start_ns.store(u64::MAX, Relaxed);
                        self.pass_gate();
                        return Err(TrialError(format!("cannot start a thread: {error}")));
                    }
                }
            }
            self.wait_until_ready(|| Ok(()))?;
            self.open_gate();
            let mut canceled = Ok(());
            for thread in threads {
                match thread.join() {
                    Ok(Ok(())) => {}
                    // The messenger, which is joined later, has the cause.
                    Ok(Err(Errno::CANCELED)) => canceled = Err(Errno::CANCELED),
                    Ok(Err(errno)) => return Err(TrialError::at("a thread of the load")(errno)),
                    Err(_) => return Err(TrialError::lost(MEMBER, "it panicked")),
                }
            }
            canceled.map_err(TrialError::at("a thread of the load"))
        })
    }

    /// Waits until every member is ready. `check` is called now and then.
    fn wait_until_ready(
        &self,
        mut check: impl FnMut() -> Result<(), TrialError>,
    ) -> Result<(), TrialError> {
        let members = self.load.workers + self.load.messengers;
        loop {
            let ready = self.gate.ready.load(Acquire);
            if ready == members {
                return Ok(());
            }
            check()?;
            // Whatever ended the wait, the count decides.
            let _ = futex::wait(&self.gate.ready, futex::Flags::empty(), ready, Some(&READY_CHECK));
        }
    }

    fn open_gate(&self) {
        self.gate.start_ns.store(monotonic_ns() + LEAD_NS, Relaxed);
        self.pass_gate();
    }

    fn pass_gate(&self) {
        self.gate.open.store(1, Release);
        let _ = futex::wake(&self.gate.open, futex::Flags::empty(), i32::MAX as u32);
    }

    /// Waits at the gate; returns the beginning of the schedule.
    fn wait_at_gate(&self) -> u64 {
        self.gate.ready.fetch_add(1, Release);
        let _ = futex::wake(&self.gate.ready, futex::Flags::empty(), 1);
        while self.gate.open.load(Acquire) == 0 {
            let _ = futex::wait(&self.gate.open, futex::Flags::empty(), 0, None);
        }
        self.gate.start_ns.load(Relaxed)
    }

    /// Does what the role asks for. Everything that can fail does so before the schedule begins,
    /// and keeps nobody waiting at the gate.
    fn take_part(&self, role: CrewRole) -> Result<(), Errno> {
        match role {
            CrewRole::Worker(number) => {
                let prepared = self.prepare_worker(number);
                let start_ns = self.wait_at_gate();
                let array = prepared?;
                if start_ns == u64::MAX { Ok(()) } else { self.serve(number, array) }
            }
            CrewRole::Messenger(number) => {
                let prepared = self.prepare_messenger(number);
                let start_ns = self.wait_at_gate();
                if start_ns == u64::MAX {
                    return prepared;
                }
                let ended = prepared.and_then(|()| self.send_all(number, start_ns));
                if ended.is_err() {
                    for channel in self.channels_of(number) {
                        channel.cancel();
                    }
                }
                ended
            }
        }
    }

    fn prepare_worker(&self, number: usize) -> Result<Option<WorkArray>, Errno> {
        placement::pin(&self.load.worker_cpus)?;
        self.channels[number].touch(self.schedule.worker_requests);
        match &self.work.array {
            Some(work) => Ok(Some(WorkArray::new(work, number as u64)?)),
            None => Ok(None),
        }
    }

    fn prepare_messenger(&self, number: u32) -> Result<(), Errno> {
        placement::pin(&self.load.messenger_cpus)?;
        for channel in self.channels_of(number) {
            channel.touch(self.schedule.worker_requests);
        }
        // The least slack: what is late is the kernel's doing.
        let _ = set_current_timer_slack(std::num::NonZeroU64::new(1));
        Ok(())
    }

    /// Sends all requests of a messenger, each at its moment or as soon after it as it can.
    fn send_all(&self, number: u32, start_ns: u64) -> Result<(), Errno> {
        let channels = self.channels_of(number);
        let mut gaps = self.schedule.gaps(number, channels.len(), self.load.workers);
        let (mut sent, mut kernel_wakes, mut late_total_ns) = (0, 0, 0);
        let (mut after_start_ns, mut last_ns) = (0.0, start_ns);
        let mut slept_ns = 0;
        for request in 0..self.schedule.worker_requests {
            for channel in &channels {
                after_start_ns += gaps.next_ns();
                let intended_ns = start_ns + after_start_ns as u64;
                let free_ns = monotonic_ns();
                let is_early = free_ns < intended_ns;
                if is_early {
                    sleep_until(intended_ns);
                }
                let (sent_ns, woken) = channel.send(request, intended_ns)?;
                if is_early {
                    slept_ns += sent_ns.saturating_sub(free_ns);
                }
                kernel_wakes += woken;
                last_ns = intended_ns;
                if request >= WARM_UP_REQUESTS {
                    sent += 1;
                    late_total_ns += sent_ns.saturating_sub(intended_ns);
                }
            }
        }
        let busy_ns = monotonic_ns().saturating_sub(start_ns).saturating_sub(slept_ns);
        let board = &self.messengers[number as usize];
        board.busy_ns.store(busy_ns, Relaxed);
        board.sent.store(sent, Relaxed);
        board.kernel_wakes.store(kernel_wakes, Relaxed);
        board.late_total_ns.store(late_total_ns, Relaxed);
        board.schedule_ns.store(last_ns - start_ns, Relaxed);
        Ok(())
    }

    /// Receives all requests of a worker and works on each.
    fn serve(&self, number: usize, mut array: Option<WorkArray>) -> Result<(), Errno> {
        let channel = &self.channels[number];
        // Written to, so that counting faults no page.
        let mut wakes = vec![1_u32; TIME_PARTS];
        let mut requests = vec![1_u32; TIME_PARTS];
        let no_request = ServedRequest { begin_ns: 0, done_ns: 0 };
        let first_touch = ServedRequest { begin_ns: 1, done_ns: 1 };
        let mut served = vec![first_touch; self.schedule.worker_requests];
        wakes.fill(0);
        requests.fill(0);
        served.fill(no_request);
        let (mut received, mut kernel_wakes) = (0, 0);
        // Of the warm-up's end in the end: its switches do not count.
        let mut before = usage(UsageScope::Thread).0;
        let cpu_before_ns = own_thread_cpu_ns();
        let (mut slept, mut free_ns) = (before.ru_nvcsw, 0);
        for (request, served) in served.iter_mut().enumerate() {
            kernel_wakes += channel.receive(request)?;
            let received_ns = monotonic_ns();
            match &mut array {
                Some(array) => array.walk(),
                None => think(self.work.turns),
            }
            let done_ns = monotonic_ns();
            // Only a sleep is a voluntary switch: by the kernel's count the worker was woken.
            let now = usage(UsageScope::Thread).0;
            let slept_before = std::mem::replace(&mut slept, now.ru_nvcsw);
            let has_slept = slept > slept_before;
            let slot = &channel.board.slots[request];
            let sent_ns = slot.sent_ns.load(Relaxed);
            let begin_ns = if has_slept { received_ns } else { sent_ns.max(free_ns) };
            *served = ServedRequest { begin_ns, done_ns };
            free_ns = done_ns;
            if request < WARM_UP_REQUESTS {
                before = now;
                continue;
            }
            received += 1;
            if has_slept {
                count_time(&mut wakes, received_ns.saturating_sub(sent_ns));
            }
            let intended_ns = slot.intended_ns.load(Relaxed);
            count_time(&mut requests, done_ns.saturating_sub(intended_ns));
        }
        let cpu_after_ns = own_thread_cpu_ns();
        let after = usage(UsageScope::Thread).0;
        let board = &channel.board;
        for index in 0..TIME_PARTS {
            board.wakes[index].store(wakes[index], Relaxed);
            board.requests[index].store(requests[index], Relaxed);
        }
        for (number, request) in served.iter().enumerate() {
            board.begin_ns[number].store(request.begin_ns, Relaxed);
            board.done_ns[number].store(request.done_ns, Relaxed);
        }
        board.received.store(received, Relaxed);
        board.kernel_wakes.store(kernel_wakes, Relaxed);
        board.cpu_ns.store(cpu_after_ns.saturating_sub(cpu_before_ns), Relaxed);
        board.voluntary.store((after.ru_nvcsw - before.ru_nvcsw) as u64, Relaxed);
        board.involuntary.store((after.ru_nivcsw - before.ru_nivcsw) as u64, Relaxed);
        Ok(())
    }

    /// Returns the CPU time that all requests took by the clock, in nanoseconds.
    fn occupied_ns(&self) -> u64 {
        let mut workers = Vec::new();
        for channel in &self.channels {
            let mut requests = Vec::new();
            for number in 0..self.schedule.worker_requests {
                requests.push(ServedRequest {
                    begin_ns: channel.board.begin_ns[number].load(Relaxed),
                    done_ns: channel.board.done_ns[number].load(Relaxed),
                });
            }
            workers.push(requests);
        }
        occupied_ns(&workers, self.load.loaded_cpus())
    }

    /// Adds up what workers and messengers counted.
    fn outcome(&self) -> TrialOutcome {
        let mut outcome = TrialOutcome::default();
        let (mut wakes, mut requests) = (vec![0_u32; TIME_PARTS], vec![0_u32; TIME_PARTS]);
        for channel in &self.channels {
            let board = &channel.board;
            for index in 0..TIME_PARTS {
                wakes[index] += board.wakes[index].load(Relaxed);
                requests[index] += board.requests[index].load(Relaxed);
            }
            outcome.count(RECEIVED, board.received.load(Relaxed) as i64);
            outcome.count(WORKER_CPU_NS, board.cpu_ns.load(Relaxed) as i64);
            outcome.count(VOLUNTARY, board.voluntary.load(Relaxed) as i64);
            outcome.count(INVOLUNTARY, board.involuntary.load(Relaxed) as i64);
            if self.load.mechanism == WakeMechanism::Futex {
                outcome.count(KERNEL_WAKES_RECEIVED, board.kernel_wakes.load(Relaxed) as i64);
            }
        }
        let mut schedule_ns = 0;
        for board in &self.messengers {
            schedule_ns = schedule_ns.max(board.schedule_ns.load(Relaxed));
            outcome.count(SENT, board.sent.load(Relaxed) as i64);
            outcome.count(LATE_TOTAL_NS, board.late_total_ns.load(Relaxed) as i64);
            outcome.count(MESSENGER_BUSY_NS, board.busy_ns.load(Relaxed) as i64);
            if self.load.mechanism == WakeMechanism::Futex {
                outcome.count(KERNEL_WAKES_SENT, board.kernel_wakes.load(Relaxed) as i64);
            }
        }
        outcome.count(SCHEDULE_NS, schedule_ns as i64);
        let all_requests = self.schedule.worker_requests * self.channels.len();
        outcome.count(ALL_REQUESTS, all_requests as i64);
        outcome.count(OCCUPIED_NS, self.occupied_ns() as i64);
        outcome.count(RATE_PER_S, self.schedule.rate_per_s.round() as i64);
        outcome.count(DEMAND_NS, self.work.demand_ns.round() as i64);
        outcome.tallies.insert(WAKE_NS.to_string(), tally_parts(wakes));
        outcome.tallies.insert(REQUEST_NS.to_string(), tally_parts(requests));
        outcome
    }
}

/// Workers and messengers in messages.
const MEMBER: &str = "worker or messenger";

/// Counts a time in nanoseconds by its part of an octave.
#[inline(always)]
fn count_time(counts: &mut [u32], ns: u64) {
    counts[TIME_SCALE.part_index(ns).min(TIME_PARTS - 1)] += 1;
}

#[cfg(test)]
mod tests {
    use rundata::trial::load::WakerPlace;

    use super::*;

    fn load(arrivals: ArrivalSchedule, workers: u32) -> WakeLoad {
        WakeLoad {
            arrivals,
            work: RequestWork::ThinkNs(20_000),
            mechanism: WakeMechanism::Futex,
            workers,
            messengers: 1,
            kind: MemberKind::Thread,
            busy_tasks: 0,
            place: WakerPlace::Same,
            worker_cpus: vec![0, 1],
            messenger_cpus: vec![0],
            duration_ns: 250_000_000,
            seed: 7,
        }
    }

    #[test]
    fn a_load_is_demand_times_rate_over_the_cpus_that_workers_can_use() {
        let rate_of = |load: WakeLoad, demand_ns| rate_per_s(&load, demand_ns).expect("a rate");
        let rate = |arrivals, workers| rate_of(load(arrivals, workers), 20_000.0);
        assert_eq!(rate(ArrivalSchedule::LoadPermille(800), 1), 40_000.0);
        assert_eq!(rate(ArrivalSchedule::LoadPermille(800), 4), 80_000.0);
        assert_eq!(rate(ArrivalSchedule::RatePerS(123), 4), 123.0);
        assert_eq!(rate(ArrivalSchedule::SleepNs(100_000), 4), 40_000.0);
        // 2 % of one CPU are 1,000 requests a second; of ten times the demand a tenth of them.
        assert_eq!(rate(ArrivalSchedule::Idle, 1), 1000.0);
        assert_eq!(rate_of(load(ArrivalSchedule::Idle, 1), 200_000.0), 100.0);
        assert_eq!(rate_of(load(ArrivalSchedule::Idle, 1), 0.0), 1000.0);
        // Long requests: eight of a worker take a second, or twice their work.
        assert_eq!(rate_of(load(ArrivalSchedule::Idle, 1), 5e7), 8.0);
        assert_eq!(rate_of(load(ArrivalSchedule::Idle, 1), 5e8), 1.0);
    }

    #[test]
    fn a_load_above_the_highest_rate_is_refused() {
        let shares = load(ArrivalSchedule::LoadPermille(800), 1);
        assert_eq!(rate_per_s(&shares, 800.0), Ok(1e6));
        let refused = rate_per_s(&shares, 100.0).unwrap_err().to_string();
        assert!(refused.starts_with("--load 80%: takes 8000000 requests a second"), "{refused}");
        assert!(refused.contains("at most 1000000") && refused.contains("--think"), "{refused}");
    }

    #[test]
    fn as_many_messengers_as_are_planned_send_any_default_load() {
        for workers in [1, 25, 26, 64, 256] {
            let shares = WakeLoad {
                worker_cpus: (0..workers).collect(),
                ..load(ArrivalSchedule::LoadPermille(800), workers)
            };
            let messengers = planned_messengers(40_000.0 * f64::from(workers), workers);
            let planned = WakeLoad { messengers, ..shares.clone() };
            assert_eq!(rate_per_s(&planned, 20_000.0), Ok(40_000.0 * f64::from(workers)));
            // One messenger sends what it can, else the number that is needed is said.
            match rate_per_s(&shares, 20_000.0) {
                Ok(_) => assert!(workers <= 25, "{workers}"),
                Err(refused) => {
                    let refused = refused.to_string();
                    let typed = format!("(type --messengers {messengers}, a longer --think");
                    assert!(workers > 25 && refused.contains(&typed), "{refused}");
                }
            }
        }
    }

    /// Without an end mark the workers would wait for ever.
    #[test]
    fn a_messenger_that_fails_ends_the_round_with_its_error() {
        for mechanism in [WakeMechanism::Futex, WakeMechanism::Eventfd, WakeMechanism::Pipe] {
            let here = rustix::thread::sched_getcpu() as u32;
            // No CPU at all: the messenger cannot be pinned.
            let no_messenger = WakeLoad {
                mechanism,
                worker_cpus: vec![here],
                messenger_cpus: Vec::new(),
                ..load(ArrivalSchedule::RatePerS(1000), 2)
            };
            let failed = run(&no_messenger, 0).map(|_| ()).unwrap_err();
            assert_eq!(failed, TrialError::at("a thread of the load")(Errno::INVAL));
        }
    }

    #[test]
    fn a_schedule_has_bounded_requests_and_is_fixed_by_seed_and_round() {
        let schedule = |arrivals, round| {
            RequestSchedule::new(&load(arrivals, 1), 20_000.0, round).expect("a schedule")
        };
        let requests = |arrivals| schedule(arrivals, 0).worker_requests;
        assert_eq!(requests(ArrivalSchedule::RatePerS(1000)), 254);
        assert_eq!(requests(ArrivalSchedule::RatePerS(1)), 8);
        assert_eq!(requests(ArrivalSchedule::RatePerS(1_000_000)), MAX_WORKER_REQUESTS);
        let gaps = |round, messenger| {
            let mut gaps = schedule(ArrivalSchedule::RatePerS(1000), round).gaps(messenger, 1, 1);
            [gaps.next_ns(), gaps.next_ns(), gaps.next_ns()]
        };
        assert_eq!(gaps(3, 0), gaps(3, 0));
        assert!(gaps(3, 0) != gaps(4, 0) && gaps(3, 0) != gaps(3, 1));
    }

    #[test]
    fn gaps_are_exponential_or_equal() {
        let schedule = RequestSchedule::new(&load(ArrivalSchedule::RatePerS(1000), 1), 0.0, 0)
            .expect("a schedule");
        let mut gaps = schedule.gaps(0, 1, 1);
        let (mut sum, mut above_mean) = (0.0, 0);
        for _ in 0..100_000 {
            let gap_ns = gaps.next_ns();
            assert!(gap_ns.is_finite() && gap_ns >= 0.0);
            sum += gap_ns;
            above_mean += u32::from(gap_ns > 1e6);
        }
        // The mean is 1 ms; a gap exceeds it with a probability of 1/e.
        assert!((sum / 1e5 / 1e6 - 1.0).abs() < 0.02, "{sum}");
        assert!((36_000..37_600).contains(&above_mean), "{above_mean}");
        let equal = RequestSchedule::new(&load(ArrivalSchedule::SleepNs(50_000), 2), 0.0, 0)
            .expect("a schedule");
        assert_eq!(equal.gaps(0, 2, 2).next_ns(), 25_000.0);
        assert_eq!(equal.gaps(0, 1, 2).next_ns(), 50_000.0);
    }
}
