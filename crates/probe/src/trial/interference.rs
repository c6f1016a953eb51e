//! The interference experiment: one run of a ring, disturbed by processes beside the worker, which
//! run on a CPU of the plan's choice.

use std::cell::Cell;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use rundata::placement::Placement;
use rundata::ring::{Policy, RingBatching, RingCase, RingSample};
use rundata::trial::TrialCase;
use rundata::trial::interference::{
    EXECUTION_NS, Environment, Execution, INVOLUNTARY, NOISE_EVENTS, Noise, PacketWire, VOLUNTARY,
};

use super::harness::{TrialError, TrialOutcome, check_alive, pin, start_beside};
use crate::policy;
use crate::random::RandomSource;
use crate::ring;
use crate::sys::{self, ChildProcess, SharedValue, monotonic_ns, monotonic_raw_ns};

/// Runs the two-process program of Li, Ding and Shen (2007, section 3.3) once: a ring of two for a
/// fixed number of laps, with a noise beside it or without.
pub(super) fn run(
    case_number: usize,
    case: &TrialCase,
    round: u32,
    execution: &Execution,
) -> Result<TrialOutcome, TrialError> {
    // Before the ring, which takes its policy and its CPU for all that is forked afterwards.
    let (events, mut noise) = start_noise(execution, round)?;
    let ring = RingCase {
        work: Some(execution.work),
        policy: case.policy,
        priority: execution.priority,
        ..RingCase::of_processes(2, Placement::Same { cpu: case.cpu })
    };
    let assignment = ring::Assignment {
        case_number,
        case: ring,
        round,
        batching: RingBatching {
            laps: Some(execution.laps),
            samples_per_round: 1,
            // The noise runs all the time: no quanta come between laps.
            slice_ns: None,
            ..RingBatching::default()
        },
        unshared_ratio: None,
    };
    let mut outcome = TrialOutcome::default();
    // Events of the noise at the last two readings of the clock, which are around the sample.
    let event_counts = Cell::new([0, 0]);
    let mut read_clock = || {
        let now_ns = monotonic_raw_ns();
        event_counts.set([event_counts.get()[1], events.load(Ordering::Relaxed)]);
        now_ns
    };
    let result = ring::run_by_clock(&assignment, &mut read_clock, &mut |sample: RingSample| {
        outcome.tally(EXECUTION_NS, [i64::try_from(sample.elapsed_ns).unwrap_or(i64::MAX)]);
        outcome.elapsed_ns = Some(sample.elapsed_ns);
        outcome.count(VOLUNTARY, sample.counters.voluntary as i64);
        outcome.count(INVOLUNTARY, sample.counters.involuntary as i64);
        if execution.environment == Environment::Disturbed {
            let [start, end] = event_counts.get().map(i64::from);
            outcome.count(NOISE_EVENTS, end - start);
        }
    });
    // Checked first: a noise that has ended may make the ring fail, whose error says less.
    check_alive("noise", &mut noise)?;
    result.map_err(|error| TrialError(error.to_string()))?;
    Ok(outcome)
}

/// Longest gap between packets, and between bursts: the paper's (Li, Ding and Shen 2007, section
/// 3.3).
const MAX_GAP_NS: u64 = 200_000_000;
/// Longest wait for a packet through the loopback.
const PACKET_TIMEOUT: Duration = Duration::from_secs(1);
/// Longest burst of work: a few time slices of the scheduler.
const MAX_BURST_NS: u64 = 20_000_000;
/// Longest sleep of the timer noise.
const MAX_TIMER_NS: u64 = 1_000_000;

/// Starts the noise of an execution, if it has one, and leaves the calling process, which must be
/// single-threaded, on the noise's CPU. Returns the count of its events, and its processes.
fn start_noise(
    execution: &Execution,
    round: u32,
) -> Result<(SharedValue<AtomicU32>, Vec<ChildProcess>), TrialError> {
    let shared = SharedValue::<AtomicU32>::new().map_err(TrialError::at("mmap"))?;
    let is_quiet = execution.environment == Environment::Quiet;
    let has_wire = (execution.noise, execution.wire) == (Noise::Net, PacketWire::Veth);
    // Creating and removing the wire makes the kernel work: quiet runs have that too.
    if is_quiet && !has_wire {
        return Ok((shared, Vec::new()));
    }
    let (events, random) = (shared.clone(), noise_random(execution, round));
    // The noise starts on its CPU: beside a real-time ring it would get no turn on the measured CPU
    // to leave it. The ring moves to its own CPU by itself.
    pin(execution.noise_cpu)?;
    let children = match execution.noise {
        Noise::Cpu => vec![start_beside(move || {
            after_pauses(random, MAX_GAP_NS, |random| {
                count_event(&events);
                let end_ns = monotonic_ns() + random.below(MAX_BURST_NS + 1);
                while monotonic_ns() < end_ns {
                    std::hint::spin_loop();
                }
            })
        })?],
        Noise::Timer => vec![start_beside(move || {
            after_pauses(random, MAX_TIMER_NS, |_| count_event(&events))
        })?],
        Noise::Net if has_wire => vec![on_a_wire(move |wire| {
            if is_quiet {
                sys::sleep_for_ever();
            }
            // The kernel receives a frame on the CPU that sends it. One that is not sent is a lost
            // packet.
            after_pauses(random, MAX_GAP_NS, |_| {
                let _ = wire.send();
                events.fetch_add(wire.take_all(), Ordering::Relaxed);
            })
        })?],
        Noise::Net => {
            let (sender, receiver) = loopback().map_err(no_loopback)?;
            let receiving = start_beside(move || {
                let mut packet = [0; 64];
                loop {
                    if receiver.recv(&mut packet).is_ok() {
                        count_event(&events);
                    }
                }
            })?;
            // A datagram through the loopback is handled on the CPU that sends it, as an incoming
            // packet is on the CPU that takes its interrupt. A full buffer is a lost packet.
            let sending = start_beside(move || {
                after_pauses(random, MAX_GAP_NS, |_| {
                    let _ = sender.send(&[0; 56]);
                })
            })?;
            vec![receiving, sending]
        }
    };
    Ok((shared, children))
}

/// Counts an event of the noise.
fn count_event(events: &AtomicU32) {
    events.fetch_add(1, Ordering::Relaxed);
}

/// Starts a process with a pair of network devices of its own, under SCHED_OTHER.
fn on_a_wire(act: impl FnOnce(sys::VethPair)) -> Result<ChildProcess, TrialError> {
    ChildProcess::start_ready(own_wire_under_other, act).map_err(|why| {
        TrialError(format!("cannot make a pair of virtual network devices (veth): {why}"))
    })
}

fn own_wire_under_other() -> Result<sys::VethPair, String> {
    policy::take(Policy::Other).map_err(|errno| errno.to_string())?;
    own_wire()
}

fn own_wire() -> Result<sys::VethPair, String> {
    sys::VethPair::in_own_namespace().map_err(|errno| errno.to_string())
}

/// Checks that the noise is available here.
pub fn check_noise(noise: Noise) -> Result<(), TrialError> {
    match noise {
        Noise::Cpu | Noise::Timer => Ok(()),
        Noise::Net => {
            let passed = loopback()
                .and_then(|(sender, receiver)| pass_a_packet(&sender, &receiver, PACKET_TIMEOUT));
            passed.map_err(no_loopback)
        }
    }
}

fn no_loopback(error: io::Error) -> TrialError {
    TrialError(format!(
        "no datagram can be sent to this machine itself: {error} (ip link set lo up; or another \
         --noise)"
    ))
}

fn loopback() -> io::Result<(UdpSocket, UdpSocket)> {
    let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    sender.connect(receiver.local_addr()?)?;
    Ok((sender, receiver))
}

/// Returns the wire that packets can use here: a pair of virtual devices, or the loopback device
/// and why not the pair. Tries it in a process of its own; the calling one must be single-threaded.
pub fn wire() -> (PacketWire, Option<String>) {
    match ChildProcess::start_ready(own_wire, |_| ()) {
        Ok(_) => (PacketWire::Veth, None),
        Err(why) => (PacketWire::Loopback, Some(format!("veth: {why}"))),
    }
}

/// Passes a packet: sockets can be opened where a firewall drops packets.
fn pass_a_packet(sender: &UdpSocket, receiver: &UdpSocket, patience: Duration) -> io::Result<()> {
    receiver.set_read_timeout(Some(patience))?;
    sender.send(&[0; 56])?;
    match receiver.recv(&mut [0; 64]) {
        Err(error)
            if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) =>
        {
            Err(io::Error::other("it is sent but does not arrive (a firewall on lo?)"))
        }
        received => received.map(|_| ()),
    }
}

/// Calls `act` again and again, after pauses of random lengths.
fn after_pauses(
    mut random: RandomSource,
    longest_ns: u64,
    mut act: impl FnMut(&mut RandomSource),
) -> ! {
    loop {
        thread::sleep(random.pause(longest_ns));
        act(&mut random);
    }
}

/// Builds the source of the noise's gaps. They are the same in every setting of a round, so that
/// settings can be compared, and differ between rounds and arrays, whose scatters are taken to be
/// independent. The parts are mixed one after the other: by xor alone, neighbouring seeds would
/// have the same gaps in other rounds.
fn noise_random(execution: &Execution, round: u32) -> RandomSource {
    let mut mixed = 0;
    for part in [execution.seed, u64::from(round), execution.work.bytes] {
        mixed = RandomSource::new(mixed ^ part).next();
    }
    RandomSource::new(mixed)
}

#[cfg(test)]
mod tests {
    use rundata::ring::{AccessKind, Work};
    use rundata::trial::interference::ProgramSetting;
    use testing::Need;

    use super::*;

    #[test]
    fn a_packet_comes_through_or_its_loss_is_noticed() {
        let pairs = || Ok::<_, io::Error>((loopback()?, loopback()?, loopback()?));
        let ((sender, receiver), (other, _lost), (_, waiting)) = match pairs() {
            Ok(pairs) => pairs,
            Err(why) => return testing::skip(Need::Hardware("a loopback device"), why),
        };
        pass_a_packet(&sender, &receiver, testing::PATIENCE).unwrap();
        // A receiver that is not the one sent to stands for a firewall.
        let error = pass_a_packet(&other, &waiting, Duration::from_millis(20)).unwrap_err();
        assert!(error.to_string().contains("does not arrive"), "{error}");
    }

    fn execution(seed: u64, bytes: u64, setting: ProgramSetting) -> Execution {
        Execution {
            setting,
            environment: Environment::Disturbed,
            noise: Noise::Net,
            noise_cpu: 0,
            work: Work::new(bytes, 8, AccessKind::Rmw).unwrap(),
            laps: 1,
            seed,
            priority: None,
            wire: PacketWire::Loopback,
        }
    }

    #[test]
    fn settings_of_a_round_have_the_same_gaps_and_nothing_else_has() {
        let first = |seed, bytes, setting, round| {
            noise_random(&execution(seed, bytes, setting), round).next()
        };
        let mut seen = std::collections::BTreeSet::new();
        for seed in [0, 1, 1992, 1993, 1994] {
            for bytes in [1 << 10, 256 << 10, 384 << 10] {
                for round in 0..6 {
                    let augmented = first(seed, bytes, ProgramSetting::Augmented, round);
                    assert_eq!(augmented, first(seed, bytes, ProgramSetting::Plain, round));
                    assert!(seen.insert(augmented), "{seed} {bytes} {round}");
                }
            }
        }
    }
}
