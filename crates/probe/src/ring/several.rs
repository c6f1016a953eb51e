//! Several rings at the same time: the worker starts a process for each, which leads its ring as the
//! worker of a ring by itself does, and sends its samples through a pipe.
//!
//! ```text
//! worker          sleeps                                                            adds up
//!   leader 0      set up, warm-up |gate| timed laps, turns on ... |gate| next ...   samples
//!     member 1
//!   leader 1      set up, warm-up |gate| timed laps ............. |gate| next ...   samples
//!     member 1
//! ```
//!
//! All begin their timed laps together, at a gate ([`RingGate`]). Whoever has made them goes on
//! turning until all have, so that the load is the same for all of them. Leaders are killed when the
//! worker ends, and members when their leader does; a ring that fails ends all.
//!
//! A leader keeps its samples until its ring has ended: the worker, and the program that reads from it,
//! would take the time of rings that make their next timed laps, on every CPU that these leave none
//! of. At its end all rings have made their last laps. A sample is 24 bytes for each of its slices, of
//! which a sample of 10 ms has some forty, and at most 10,000: with three a round less than 1 MB.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rundata::bounds::saturating_sum;
use rundata::machine::CpuList;
use rundata::ring::{Counters, HaltTimes, RingCase, RingSample};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{WaitOptions, WaitStatus, getpid};
use serde::{Deserialize, Serialize};

use super::link::RingError;
use super::session::{Assignment, GatedRing, raise_open_files, run_at_gate};
use crate::limits;
use crate::sys::{
    ChildProcess, ForkSide, RingGate, end_with_parent, exit_now, fork, monotonic_raw_ns,
};

/// A line that a leader sends: a sample, or why there are no more.
type RingMessage = Result<Box<RingSample>, RingFailure>;

/// Reason why one of several rings failed.
#[derive(Debug, Serialize, Deserialize)]
struct RingFailure {
    message: String,
    exhausted: bool,
}

/// Exit status of a leader that has sent why its ring failed.
const STATUS_FAILED: i32 = 1;
/// Exit status of a leader whose worker was gone before it started.
const STATUS_ORPHAN: i32 = 4;

/// Bytes that are read from a leader at once.
const READ_BYTES: usize = 1 << 16;

/// Runs the rings of one assignment. The sums of their samples go to `sink` when all rings have proven
/// all their hops.
pub(super) fn run(
    assignment: &Assignment,
    sink: &mut dyn FnMut(RingSample),
) -> Result<(), RingError> {
    let rings = assignment.case.rings();
    raise_open_files();
    limits::check_open_files(rings.into())
        .map_err(|limits| RingError::TooManyRings { wanted: rings, limits })?;
    let gate = RingGate::new(rings)
        .map_err(|errno| RingError::Memory(format!("cannot map the gate of the rings: {errno}")))?;
    let mut leaders = RingLeaders { processes: Vec::new(), rings };
    let take_quanta = rings_with_quanta(&assignment.case, Path::new("/"));
    let rings_per_cpu = rings_per_cpu(&assignment.case);
    let single_ring = assignment.case.single_ring();
    let first = Assignment { case: single_ring, unshared_ratio: None, ..assignment.clone() };
    for (ring, case) in assignment.case.single_rings().into_iter().enumerate() {
        let mut single = Assignment { case, ..first.clone() };
        if !take_quanta[ring] {
            single.batching.slice_ns = None;
        }
        let gate = gate.for_ring(ring as u32);
        leaders.start(&single, GatedRing { gate, rings_per_cpu })?;
    }
    leaders.collect(&assignment.case, sink)
}

/// Tells for each ring whether it takes reference quanta. Rings that share CPUs take none: the quanta
/// of one are a load for the others and take its own turns. Nor does a ring that shares a core with
/// one on another of its hardware threads, whose quanta do not show the speed of the CPU.
fn rings_with_quanta(case: &RingCase, root: &Path) -> Vec<bool> {
    if case.shares_cpus() {
        return vec![false; case.rings() as usize];
    }
    let mut users: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for cpu in case.cpus() {
        for sibling in siblings_of(cpu, root) {
            users.entry(sibling).or_default().insert(cpu);
        }
    }
    let mut take_quanta = Vec::new();
    for placement in case.placements() {
        let own = placement.cpus();
        let is_core_shared = own.iter().any(|cpu| {
            users.get(cpu).is_some_and(|users| users.iter().any(|user| !own.contains(user)))
        });
        take_quanta.push(!is_core_shared);
    }
    take_quanta
}

/// Returns the most rings that have the same CPU, if each has as few as possible beside it.
fn rings_per_cpu(case: &RingCase) -> u32 {
    let mut apart: u32 = 0;
    for is_first in case.are_first_on_their_cpus() {
        apart += u32::from(is_first);
    }
    case.rings().div_ceil(apart.max(1))
}

/// Returns the hardware threads of a CPU's core; the CPU alone where the kernel does not tell.
fn siblings_of(cpu: u32, root: &Path) -> Vec<u32> {
    let file = format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    let list = fs::read_to_string(root.join(file))
        .ok()
        .and_then(|text| text.trim().parse::<CpuList>().ok());
    match list {
        Some(list) => list.iter().collect(),
        None => vec![cpu],
    }
}

/// The processes that lead the rings. Dropping them kills all.
struct RingLeaders {
    processes: Vec<LeaderProcess>,
    /// Number of rings, started or not.
    rings: u32,
}

/// A process that leads a ring.
struct LeaderProcess {
    /// Absent once it was reaped.
    child: Option<ChildProcess>,
    /// End of the pipe by which it sends its samples; absent once that was closed.
    output: Option<File>,
    /// Bytes that are no whole line yet.
    partial_line: Vec<u8>,
    /// Samples that were not yet added up.
    samples: VecDeque<RingSample>,
}

impl RingLeaders {
    /// Starts the leader of a ring.
    fn start(&mut self, assignment: &Assignment, gated: GatedRing) -> Result<(), RingError> {
        let ring = gated.gate.ring;
        let (output, input) =
            pipe_with(PipeFlags::CLOEXEC).map_err(|errno| self.refused(ring, "pipe", errno))?;
        let worker = getpid();
        match fork().map_err(|errno| self.refused(ring, "fork", errno))? {
            ForkSide::Parent(pid) => {
                self.processes.push(LeaderProcess {
                    child: Some(ChildProcess(pid)),
                    output: Some(File::from(output)),
                    partial_line: Vec::new(),
                    samples: VecDeque::new(),
                });
                Ok(())
            }
            ForkSide::Child => {
                drop(output);
                for leader in self.processes.drain(..) {
                    // Closes its pipe, but does not kill it: it is no child of this process.
                    std::mem::forget(leader.child);
                }
                if !end_with_parent(worker) {
                    exit_now(STATUS_ORPHAN);
                }
                exit_now(lead(assignment, gated, input));
            }
        }
    }

    /// Describes a call that failed when a leader was to be started.
    fn refused(&self, ring: u32, call: &'static str, errno: Errno) -> RingError {
        let limits = limits::behind(call, errno);
        let message = format!("its process could not be started: {call}: {errno}. {limits}");
        RingError::InRing { ring, rings: self.rings, message, exhausted: true }
    }

    /// Hands over the sum of each sample of all rings, until all leaders have ended. They send nothing
    /// but failures while some ring makes timed laps.
    fn collect(
        mut self,
        case: &RingCase,
        sink: &mut dyn FnMut(RingSample),
    ) -> Result<(), RingError> {
        while self.processes.iter().any(|leader| leader.output.is_some()) {
            for ring in self.wait_for_output()? {
                if let Err(RingFailure { message, exhausted }) = self.processes[ring].read() {
                    let (ring, rings) = (ring as u32, self.rings);
                    return Err(RingError::InRing { ring, rings, message, exhausted });
                }
            }
            while self.processes.iter().all(|leader| !leader.samples.is_empty()) {
                let mut rings = Vec::new();
                for leader in &mut self.processes {
                    rings.extend(leader.samples.pop_front());
                }
                sink(sum_of_rings(case, rings));
            }
        }
        Ok(())
    }

    /// Waits until some leaders have sent something or have ended; returns their numbers.
    fn wait_for_output(&self) -> Result<Vec<usize>, RingError> {
        let (mut rings, mut polled) = (Vec::new(), Vec::new());
        for (ring, leader) in self.processes.iter().enumerate() {
            if let Some(output) = &leader.output {
                rings.push(ring);
                polled.push(PollFd::from_borrowed_fd(output.as_fd(), PollFlags::IN));
            }
        }
        retry_on_intr(|| poll(&mut polled, None))
            .map_err(|errno| RingError::Other(format!("poll: {errno}")))?;
        let mut ready = Vec::new();
        for (ring, poll_fd) in rings.into_iter().zip(&polled) {
            if !poll_fd.revents().is_empty() {
                ready.push(ring);
            }
        }
        Ok(ready)
    }
}

impl LeaderProcess {
    /// Reads what the leader has sent, or how it has ended. Fails if its ring has failed.
    fn read(&mut self) -> Result<(), RingFailure> {
        let Some(output) = &mut self.output else { return Ok(()) };
        let mut bytes = vec![0; READ_BYTES];
        let count = match output.read(&mut bytes) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(RingFailure::once(format!("its samples are lost: {error}"))),
        };
        if count == 0 {
            self.output = None;
            return self.check_end();
        }
        for byte in &bytes[..count] {
            if *byte != b'\n' {
                self.partial_line.push(*byte);
                continue;
            }
            let line = std::mem::take(&mut self.partial_line);
            let message: RingMessage = serde_json::from_slice(&line).map_err(|error| {
                RingFailure::once(format!("its sample cannot be read: {error}"))
            })?;
            self.samples.push_back(*message?);
        }
        Ok(())
    }

    /// Checks that a leader that has closed its pipe has ended well.
    fn check_end(&mut self) -> Result<(), RingFailure> {
        let Some(child) = self.child.take() else { return Ok(()) };
        // It cannot still run: this waits for its end.
        let status = child.end(WaitOptions::empty()).unwrap_or_default();
        match status.and_then(describe_end) {
            Some(how) => Err(RingFailure::once(how)),
            None => Ok(()),
        }
    }
}

impl RingFailure {
    /// Returns a failure that need not happen again.
    fn once(message: String) -> Self {
        Self { message, exhausted: false }
    }
}

/// Describes how a leader ended; absent if it had done its part.
fn describe_end(status: WaitStatus) -> Option<String> {
    match status.terminating_signal() {
        Some(libc::SIGKILL) => Some(
            "its leader was killed by signal 9; if nobody did that, the kernel ran out of memory \
             (see dmesg)"
                .to_string(),
        ),
        Some(libc::SIGALRM) => {
            Some("it did not end within its deadline and was killed".to_string())
        }
        Some(signal) => Some(format!("its leader was killed by signal {signal}")),
        None => match status.exit_status() {
            Some(0) => None,
            Some(code) => Some(format!("its leader ended early with exit status {code}")),
            None => Some("its leader ended early".to_string()),
        },
    }
}

/// Leads one of the rings; returns the exit status.
fn lead(assignment: &Assignment, gated: GatedRing, output: OwnedFd) -> i32 {
    let sent = send_when_ended(File::from(output), |sink| {
        run_at_gate(assignment, Some(gated), &mut monotonic_raw_ns, sink)
    });
    match sent {
        Ok(true) => 0,
        Ok(false) | Err(_) => STATUS_FAILED,
    }
}

/// Runs a ring and then sends its samples, or why it failed. Returns whether it did not.
fn send_when_ended(
    mut output: File,
    run: impl FnOnce(&mut dyn FnMut(RingSample)) -> Result<(), RingError>,
) -> io::Result<bool> {
    let mut samples = Vec::new();
    if let Err(error) = run(&mut |sample| samples.push(sample)) {
        let (message, exhausted) = (error.to_string(), error.is_exhaustion());
        send(&mut output, &Err(RingFailure { message, exhausted }))?;
        return Ok(false);
    }
    for sample in samples {
        send(&mut output, &Ok(Box::new(sample)))?;
    }
    Ok(true)
}

/// Sends a line to the worker.
fn send(output: &mut File, message: &RingMessage) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    output.write_all(&line)
}

/// Builds the sample of several rings from theirs: laps, hops and counters are sums, the time is
/// their mean. The start of each is made relative to that of the first to begin.
fn sum_of_rings(case: &RingCase, mut rings: Vec<RingSample>) -> RingSample {
    let first_start_ns = rings.iter().filter_map(|ring| ring.start_ns).min();
    for ring in &mut rings {
        ring.start_ns = ring.start_ns.zip(first_start_ns).map(|(start, first)| start - first);
    }
    let elapsed_ns = sum(&rings, |ring| ring.elapsed_ns) / rings.len().max(1) as u64;
    let numbers = rings.first().cloned().unwrap_or_default();
    RingSample {
        case: numbers.case,
        round: numbers.round,
        sample: numbers.sample,
        laps: sum(&rings, |ring| ring.laps),
        hops: sum(&rings, |ring| ring.hops),
        elapsed_ns,
        counters: sum_of_counters(&rings),
        steal_ns: stolen_ns(case, &rings),
        setup_ns: rings.iter().map(|ring| ring.setup_ns).max().unwrap_or(0),
        slices: None,
        triples: None,
        huge_page_bytes: known_sum(&rings, |ring| ring.huge_page_bytes),
        rings,
        start_ns: None,
    }
}

/// Adds up a figure of all rings.
fn sum(rings: &[RingSample], read: fn(&RingSample) -> u64) -> u64 {
    saturating_sum(rings.iter().map(read))
}

/// Adds up a figure of all rings; absent if one of them does not know it.
fn known_sum(rings: &[RingSample], read: fn(&RingSample) -> Option<u64>) -> Option<u64> {
    let figures: Vec<u64> = rings.iter().map(read).collect::<Option<_>>()?;
    Some(saturating_sum(figures.into_iter()))
}

/// Returns the time stolen from the CPUs of all rings; absent if it is not known of one of them.
/// Rings on the same CPUs have all read the same.
fn stolen_ns(case: &RingCase, rings: &[RingSample]) -> Option<u64> {
    let mut by_cpus: BTreeMap<Vec<u32>, u64> = BTreeMap::new();
    for (placement, ring) in case.placements().zip(rings) {
        let stolen_ns = by_cpus.entry(placement.cpus()).or_default();
        *stolen_ns = ring.steal_ns?.max(*stolen_ns);
    }
    Some(saturating_sum(by_cpus.into_values()))
}

/// Adds up the counters of all rings.
fn sum_of_counters(rings: &[RingSample]) -> Counters {
    let cpu_ns = sum(rings, |ring| ring.counters.cpu_ns);
    // Rings without a tick have no split: that of the others stands for all.
    let user_ns = sum(rings, |ring| ring.counters.user_ns.unwrap_or(0));
    let split_ns = user_ns + sum(rings, |ring| ring.counters.system_ns.unwrap_or(0));
    let mut user_of_all_ns = None;
    if split_ns > 0 {
        let share_ns = u128::from(cpu_ns) * u128::from(user_ns) / u128::from(split_ns);
        user_of_all_ns = Some(share_ns as u64);
    }
    Counters {
        voluntary: sum(rings, |ring| ring.counters.voluntary),
        involuntary: sum(rings, |ring| ring.counters.involuntary),
        migrations: known_sum(rings, |ring| ring.counters.migrations),
        minor_faults: sum(rings, |ring| ring.counters.minor_faults),
        major_faults: sum(rings, |ring| ring.counters.major_faults),
        cpu_ns,
        user_ns: user_of_all_ns,
        system_ns: user_of_all_ns.map(|user_ns| cpu_ns.saturating_sub(user_ns)),
        run_delay_ns: known_sum(rings, |ring| ring.counters.run_delay_ns),
        halts: longest_halts(rings),
    }
}

/// Returns the longest of each kind of halt: all rings are in one control group and machine.
fn longest_halts(rings: &[RingSample]) -> Option<HaltTimes> {
    let mut longest: Option<HaltTimes> = None;
    for halts in rings.iter().filter_map(|ring| ring.counters.halts) {
        let so_far = longest.unwrap_or_default();
        longest = Some(HaltTimes {
            throttled_ns: so_far.throttled_ns.max(halts.throttled_ns),
            frozen_ns: so_far.frozen_ns.max(halts.frozen_ns),
            suspended_ns: so_far.suspended_ns.max(halts.suspended_ns),
            continued: so_far.continued || halts.continued,
        });
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;
    use rundata::placement::Placement;

    /// A case of rings that are each on one of these CPUs.
    fn case(cpus: &[u32]) -> RingCase {
        let mut placements = Vec::new();
        for cpu in cpus {
            placements.push(Placement::Same { cpu: *cpu });
        }
        let first = placements.remove(0);
        RingCase { beside: placements, ..RingCase::of_processes(2, first) }
    }

    fn ring(hops: u64, elapsed_ns: u64, start_ns: u64) -> RingSample {
        let counters = Counters {
            voluntary: hops,
            involuntary: 3,
            migrations: Some(1),
            cpu_ns: 100,
            ..Counters::default()
        };
        let start_ns = Some(start_ns);
        RingSample { laps: hops / 2, hops, elapsed_ns, counters, start_ns, ..RingSample::default() }
    }

    /// Returns what was sent by a ring that took two samples and then ended so; and that it sent nothing
    /// before.
    fn sent_by(end: Result<(), RingError>) -> String {
        let (output, input) = pipe_with(PipeFlags::NONBLOCK).unwrap();
        let mut output = File::from(output);
        let is_well = end.is_ok();
        let ended_well = send_when_ended(File::from(input), |sink| {
            for hops in [100, 60] {
                sink(ring(hops, 1000, 0));
                let early = output.read(&mut [0]).unwrap_err();
                assert_eq!(early.kind(), io::ErrorKind::WouldBlock);
            }
            end
        });
        assert_eq!(ended_well.unwrap(), is_well);
        let mut sent = String::new();
        output.read_to_string(&mut sent).unwrap();
        sent
    }

    /// Whoever reads a sample would take the time of rings that make their next laps.
    #[test]
    fn a_leader_sends_nothing_before_its_ring_has_ended() {
        let sent = sent_by(Ok(()));
        let mut hops = Vec::new();
        for line in sent.lines() {
            let message: RingMessage = serde_json::from_str(line).unwrap();
            hops.push(message.unwrap().hops);
        }
        assert_eq!(hops, [100, 60]);
        let sent = sent_by(Err(RingError::Other("lost".to_string())));
        let message: RingMessage = serde_json::from_str(sent.trim()).unwrap();
        assert_eq!(message.unwrap_err().message, "lost");
    }

    #[test]
    fn counts_of_rings_are_added_up_and_their_time_is_the_mean() {
        let sum = sum_of_rings(&case(&[0, 1]), vec![ring(100, 1000, 70), ring(60, 2000, 50)]);
        assert_eq!((sum.laps, sum.hops, sum.elapsed_ns), (80, 160, 1500));
        assert_eq!((sum.counters.voluntary, sum.counters.involuntary), (160, 6));
        assert_eq!((sum.counters.migrations, sum.counters.cpu_ns), (Some(2), 200));
        // What one of them does not know is not known of all.
        assert_eq!((sum.steal_ns, sum.counters.run_delay_ns), (None, None));
        let starts: Vec<_> = sum.rings.iter().map(|ring| ring.start_ns).collect();
        assert_eq!(starts, [Some(20), Some(0)]);
        // 100 hops in 1,000 ns and 60 in 2,000 ns: 3,000 ns for 160 hops.
        assert!((sum.ns_per_hop() - 3000.0 / 160.0).abs() < 1e-9);
    }

    /// Two cores of two hardware threads.
    #[test]
    fn quanta_run_where_no_other_ring_shares_the_core() {
        let root = tempfile::tempdir().unwrap();
        for (cpu, siblings) in [(0, "0,2"), (1, "1,3"), (2, "0,2"), (3, "1,3")] {
            let folder = root.path().join(format!("sys/devices/system/cpu/cpu{cpu}/topology"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("thread_siblings_list"), format!("{siblings}\n")).unwrap();
        }
        let judged = |cpus: &[u32]| rings_with_quanta(&case(cpus), root.path());
        assert_eq!(judged(&[0, 1]), [true, true]);
        assert_eq!(judged(&[0, 1, 2]), [false, true, false]);
        // The quanta of the first would take the time of its own laps, and of the second's.
        assert_eq!(judged(&[1, 1, 0]), [false; 3]);
        // Nothing is known of CPU 7.
        assert_eq!(judged(&[7, 0]), [true, true]);
    }

    #[test]
    fn rings_on_a_cpu_are_counted() {
        let most = |cpus: &[u32]| rings_per_cpu(&case(cpus));
        assert_eq!([most(&[0, 1]), most(&[0, 0, 0]), most(&[0, 1, 0])], [1, 3, 2]);
        let free = Placement::Free { cpus: vec![0, 1] };
        let five = RingCase { beside: vec![free.clone(); 4], ..RingCase::of_processes(2, free) };
        assert_eq!(rings_per_cpu(&five), 3);
    }

    #[test]
    fn what_was_stolen_from_one_cpu_counts_once() {
        let stolen = |ns| RingSample { steal_ns: Some(ns), ..ring(2, 1, 0) };
        let rings = [stolen(10), stolen(20), stolen(5)];
        assert_eq!(stolen_ns(&case(&[0, 0, 1]), &rings), Some(25));
        assert_eq!(stolen_ns(&case(&[0, 1, 2]), &rings), Some(35));
        assert_eq!(stolen_ns(&case(&[0, 0]), &[stolen(1), ring(2, 1, 0)]), None);
    }

    #[test]
    fn the_split_of_rings_with_ticks_stands_for_all() {
        let mut with_ticks = ring(2, 1, 0);
        with_ticks.counters.user_ns = Some(25);
        with_ticks.counters.system_ns = Some(75);
        let counters = sum_of_counters(&[with_ticks, ring(2, 1, 0)]);
        assert_eq!((counters.user_ns, counters.system_ns), (Some(50), Some(150)));
        assert_eq!(sum_of_counters(&[ring(2, 1, 0)]).user_ns, None);
    }
}
