//! What disturbs a measurement: processes beside the worker, on a CPU of their own choice.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::Ordering;
use std::thread;

use model::case::Policy;
use model::trial::interference::{Execution, Noise};

use super::TrialError;
use super::companion::Companion;
use super::random::Random;
use crate::placement;
use crate::policy;
use crate::sys::{EventCount, Shared, monotonic_ns};

/// Longest gap between packets, and between bursts: the paper's (Li, Ding and Shen 2007, section 3.3).
const LONGEST_GAP_NS: u64 = 200_000_000;
/// Longest burst of work: a few of the scheduler's turns.
const LONGEST_BURST_NS: u64 = 20_000_000;
/// Longest of the short timers.
const LONGEST_TIMER_NS: u64 = 1_000_000;

/// A noise that is on; dropping it is its end.
pub(super) struct Noisy {
    events: Shared<EventCount>,
    companions: Vec<Companion>,
}

impl Noisy {
    /// Starts it, and leaves the calling process, which must be single-threaded, on the noise's CPU.
    pub(super) fn start(execution: &Execution, round: u32) -> Result<Self, TrialError> {
        let events = Shared::<EventCount>::new().map_err(TrialError::Fork)?;
        let mut noisy = Self { events: events.clone(), companions: Vec::new() };
        let random = Random(execution.seed ^ u64::from(round));
        // The noise is born there: one that first had to get a turn on the measured CPU to leave it
        // would never get that from a real-time ring. The ring goes to its own CPU by itself.
        let cpu = execution.noise_cpu;
        placement::pin(&[cpu]).map_err(|errno| TrialError::Affinity { cpu, errno })?;
        match execution.noise {
            Noise::Cpu => noisy.add(move || bursts(random, &events))?,
            Noise::Timer => noisy.add(move || timers(random, &events))?,
            Noise::Net => {
                let (sender, receiver) = loopback().map_err(TrialError::no_loopback)?;
                let ears = receiver.try_clone().map_err(TrialError::no_loopback)?;
                noisy.add(move || receive(&ears, &events))?;
                noisy.add(move || send(random, &sender))?;
            }
        }
        Ok(noisy)
    }

    fn add(&mut self, act: impl FnOnce()) -> Result<(), TrialError> {
        let noise = move || {
            // Under another policy it is another noise: its end is noticed.
            if policy::take(Policy::Other).is_ok() {
                act();
            }
        };
        self.companions.push(Companion::start(noise).map_err(TrialError::Fork)?);
        Ok(())
    }

    /// What it has done so far.
    pub(super) fn events(&self) -> i64 {
        i64::from(self.events.0.load(Ordering::Relaxed))
    }

    /// Whether all of it is still there: a noise that has ended was quiet.
    pub(super) fn check(&mut self) -> Result<(), TrialError> {
        match self.companions.iter_mut().all(Companion::is_alive) {
            true => Ok(()),
            false => Err(TrialError::Lost { process: "noise", why: "it has ended".to_string() }),
        }
    }
}

/// Whether the noise can be had here; else why not.
pub fn check_noise(noise: Noise) -> Result<(), TrialError> {
    match noise {
        Noise::Cpu | Noise::Timer => Ok(()),
        Noise::Net => loopback().map(|_| ()).map_err(TrialError::no_loopback),
    }
}

fn loopback() -> io::Result<(UdpSocket, UdpSocket)> {
    let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    sender.connect(receiver.local_addr()?)?;
    Ok((sender, receiver))
}

/// A datagram through the loopback is handled on the CPU that sends it, as an incoming packet is on
/// the CPU that takes its interrupt.
fn send(mut random: Random, socket: &UdpSocket) {
    loop {
        thread::sleep(random.pause(LONGEST_GAP_NS));
        // A full buffer is a lost packet.
        let _ = socket.send(&[0; 56]);
    }
}

fn receive(socket: &UdpSocket, events: &EventCount) {
    let mut packet = [0; 64];
    loop {
        if socket.recv(&mut packet).is_ok() {
            events.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn bursts(mut random: Random, events: &EventCount) {
    loop {
        thread::sleep(random.pause(LONGEST_GAP_NS));
        events.0.fetch_add(1, Ordering::Relaxed);
        let end_ns = monotonic_ns() + random.below(LONGEST_BURST_NS);
        while monotonic_ns() < end_ns {
            std::hint::spin_loop();
        }
    }
}

fn timers(mut random: Random, events: &EventCount) {
    loop {
        thread::sleep(random.pause(LONGEST_TIMER_NS));
        events.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_comes_through() {
        let Ok((sender, receiver)) = loopback() else { return };
        sender.send(&[7; 56]).unwrap();
        assert_eq!(receiver.recv(&mut [0; 64]).unwrap(), 56);
    }
}
