//! Processes that wake, work for a moment and sleep again: neighbours that preempt the program, and
//! onlookers that run quanta to see how fast its CPU is.

use std::num::NonZeroU64;

use rundata::ring::{AccessKind, Policy, Work};
use rundata::trial::command::{CommandTrial, NeighbourKind};
use rustix::process::nice;
use rustix::thread::set_current_timer_slack;

use super::super::harness::TrialError;
use crate::random::RandomSource;
use crate::sys::{
    ChildProcess, HAS_QUANTA, SharedValue, SpeedLog, WorkArray, limit_real_time, monotonic_ns,
    set_own_name, shortest_quantum, sleep_until,
};
use crate::{placement, policy};

/// Size of a cache line on all supported machines.
const LINE_BYTES: u64 = 64;
/// Longest time that a neighbour under a real-time policy may run without sleeping, in
/// microseconds.
const RT_SPIN_LIMIT_US: u64 = 1_000_000;
/// Latest wake-up that is on time; a later process waited for one of its own priority.
const ON_TIME_NS: u64 = 100_000;
/// Nice value that preempts other tasks soonest, if no real-time policy is granted.
const MOST_URGENT: i32 = -20;

/// Processes that wake beside a program. They end when this is dropped, and with this process.
pub(super) struct RunningNeighbours {
    pub(super) processes: Vec<ChildProcess>,
    pub(super) log: SharedValue<SpeedLog>,
}

/// Behaviour of one of these processes.
#[derive(Clone, Copy)]
struct NeighbourRole {
    cpu: u32,
    rate_hz: u32,
    /// Bytes that it writes to whenever it wakes.
    bytes: u64,
    /// Time for which it stays on the CPU, in nanoseconds.
    stays_ns: u64,
    /// Whether it is a neighbour of the program, whose wake-ups are counted.
    is_neighbour: bool,
    /// Wake-ups from one quantum, which shows its CPU's speed, to the next; 0 if it runs none.
    wakes_per_quantum: u32,
}

/// Returns the processes beside the program: its neighbours, and onlookers that only run quanta.
/// Neighbours on the program's CPUs run the quanta themselves if they wake often enough.
fn roles(command: &CommandTrial) -> Vec<NeighbourRole> {
    let quanta_hz = if HAS_QUANTA { command.looks_hz() } else { 0 };
    let rate_hz = command.rate_hz.max(1);
    let neighbour_cpus: &[u32] = match command.neighbour {
        NeighbourKind::Nobody => &[],
        NeighbourKind::Elsewhere => command.away.as_slice(),
        NeighbourKind::Preempts => &command.cpus,
    };
    let runs_quanta = command.neighbour == NeighbourKind::Preempts && rate_hz >= quanta_hz / 2;
    let mut wakes_per_quantum = 0;
    if runs_quanta && quanta_hz > 0 {
        wakes_per_quantum = (rate_hz / quanta_hz).max(1);
    }
    let mut roles = Vec::new();
    for cpu in neighbour_cpus {
        roles.push(NeighbourRole {
            cpu: *cpu,
            rate_hz,
            bytes: command.bytes,
            stays_ns: command.stays_ns,
            is_neighbour: true,
            wakes_per_quantum,
        });
    }
    if quanta_hz == 0 || runs_quanta {
        return roles;
    }
    for cpu in &command.cpus {
        roles.push(NeighbourRole {
            cpu: *cpu,
            rate_hz: quanta_hz,
            bytes: 0,
            stays_ns: 0,
            is_neighbour: false,
            wakes_per_quantum: 1,
        });
    }
    roles
}

impl RunningNeighbours {
    /// Starts the processes; they sleep in their loops when this returns.
    pub(super) fn start(
        command: &CommandTrial,
        policy: Policy,
        round: u32,
    ) -> Result<Self, TrialError> {
        let log = SharedValue::<SpeedLog>::new().map_err(TrialError::at("mmap"))?;
        let mut processes = Vec::new();
        for (index, role) in (0_u32..).zip(roles(command)) {
            // The pauses differ in each round, on each CPU, and for each kind of neighbour.
            let kind = command.bytes.rotate_left(32) ^ command.stays_ns.rotate_left(24);
            let seed = kind ^ u64::from(command.rate_hz) << 16;
            let random = RandomSource::new(seed ^ u64::from(round) << 40 ^ u64::from(index));
            processes.push(start(role, policy, random, log.clone())?);
        }
        Ok(Self { processes, log })
    }
}

/// Starts one process.
fn start(
    role: NeighbourRole,
    policy: Policy,
    random: RandomSource,
    log: SharedValue<SpeedLog>,
) -> Result<ChildProcess, TrialError> {
    ChildProcess::start_ready(
        || prepare(&role, policy),
        |array| run_neighbour(&role, array, random, &log),
    )
    .map_err(|why| TrialError::lost("neighbour", why))
}

/// Prepares the calling process for its role; returns the array that it writes to, if it has one.
fn prepare(role: &NeighbourRole, policy: Policy) -> Result<Option<WorkArray>, String> {
    set_own_name(c"switchcost-nb");
    placement::pin(&[role.cpu])
        .map_err(|errno| format!("sched_setaffinity of the neighbour: {errno}"))?;
    if policy.is_realtime() {
        limit_real_time(RT_SPIN_LIMIT_US, RT_SPIN_LIMIT_US);
        policy::take(policy).map_err(|errno| policy::describe_refusal(policy, errno))?;
    } else {
        // If it is not granted, the neighbour is a task like others: preemptions are counted.
        let _ = nice(MOST_URGENT);
    }
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    if role.bytes == 0 {
        return Ok(None);
    }
    let bytes = role.bytes;
    let work = Work::new(bytes, LINE_BYTES, AccessKind::Rmw).map_err(|why| why.to_string())?;
    WorkArray::check(&work).map_err(|most| format!("--neighbour {bytes}: at most {most}"))?;
    let array = WorkArray::new(&work, bytes);
    array.map(Some).map_err(|errno| format!("--neighbour {bytes}: mmap: {errno}"))
}

/// Wakes, works and sleeps for ever.
fn run_neighbour(
    role: &NeighbourRole,
    mut array: Option<WorkArray>,
    mut random: RandomSource,
    log: &SpeedLog,
) {
    let period_ns = 1_000_000_000 / u64::from(role.rate_hz);
    let mut woken_ns = monotonic_ns();
    let mut wakes_since_quantum = 1;
    loop {
        // Not in step with the program. A late wake-up is not made up for, and the program gets the
        // CPU in between, however long this one took.
        let next_ns = woken_ns + period_ns / 2 + random.below(period_ns + 1);
        let next_ns = next_ns.max(monotonic_ns() + period_ns / 4);
        sleep_until(next_ns);
        woken_ns = monotonic_ns();
        if wakes_since_quantum == role.wakes_per_quantum {
            log.note(shortest_quantum());
            // An onlooker that was due while a neighbour ran follows it, and preempts nobody.
            if !role.is_neighbour && woken_ns - next_ns < ON_TIME_NS {
                log.count_preemption();
            }
            wakes_since_quantum = 0;
        }
        wakes_since_quantum += 1;
        loop {
            if let Some(array) = &mut array {
                array.walk();
            }
            if role.stays_ns == 0 || monotonic_ns() - woken_ns >= role.stays_ns {
                break;
            }
        }
        if role.is_neighbour {
            log.count_wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use rundata::trial::command::{CommandSubject, LOOKS_HZ};

    use super::*;

    #[test]
    fn every_cpu_of_the_program_is_looked_at_about_as_often_whoever_is_there() {
        if !HAS_QUANTA {
            return;
        }
        let of = |neighbour, rate_hz| CommandTrial {
            subject: CommandSubject::Command(vec!["true".to_string()]),
            executable: None,
            cpus: vec![1, 2],
            neighbour,
            rate_hz,
            bytes: 0,
            stays_ns: 0,
            away: Some(0),
            timer: true,
        };
        let looks = |of: &CommandTrial| {
            let all = roles(of);
            let looking = all.iter().filter(|role| role.wakes_per_quantum > 0);
            looking
                .map(|role| (role.cpu, role.rate_hz / role.wakes_per_quantum))
                .collect::<Vec<_>>()
        };
        let expected = [(1, LOOKS_HZ), (2, LOOKS_HZ)];
        assert_eq!(looks(&of(NeighbourKind::Nobody, 0)), expected);
        assert_eq!(looks(&of(NeighbourKind::Elsewhere, 4000)), expected);
        assert_eq!(looks(&of(NeighbourKind::Preempts, 4000)), expected);
        assert_eq!(looks(&of(NeighbourKind::Preempts, 300)), [(1, 300), (2, 300)]);
        assert_eq!(looks(&of(NeighbourKind::Preempts, 100)), expected);
        assert_eq!(roles(&of(NeighbourKind::Preempts, 100)).len(), 4);
    }
}
