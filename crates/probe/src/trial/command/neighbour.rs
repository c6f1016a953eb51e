//! Processes that wake, do a little, and sleep again: who preempts the program, and who looks how
//! fast its CPU is.

use std::num::NonZeroU64;

use model::ring::{Op, Policy, Work};
use model::trial::command::{Command, Neighbour};
use rustix::process::nice;
use rustix::thread::set_current_timer_slack;

use super::super::harness::TrialError;
use crate::random::RandomSource;
use crate::sys::{
    ChildProcess, HAS_QUANTA, SharedValue, SpeedLog, WorkArray, limit_real_time, monotonic_ns,
    set_own_name, shortest_quantum, sleep_until,
};
use crate::{placement, policy};

/// A cache line, on all that we know of.
const LINE_BYTES: u64 = 64;
/// Longest time that a neighbour under a real-time policy may run without sleeping.
const RT_SPIN_LIMIT_US: u64 = 1_000_000;
/// Who wakes later than this was kept waiting by somebody of its own priority.
const ON_TIME_NS: u64 = 100_000;
/// The nice value that preempts others soonest, where no real-time policy is granted.
const MOST_URGENT: i32 = -20;

/// All that wake beside a program; they end when this is dropped, and with this process.
pub(super) struct RunningNeighbours {
    pub(super) processes: Vec<ChildProcess>,
    pub(super) looks: SharedValue<SpeedLog>,
}

/// What one of them does.
#[derive(Clone, Copy)]
struct NeighbourRole {
    cpu: u32,
    rate_hz: u32,
    /// Bytes that it writes to whenever it wakes.
    bytes: u64,
    stays_ns: u64,
    /// Whether it is one of the program's neighbours, whose wake-ups are counted.
    is_neighbour: bool,
    /// At each of so many wake-ups it looks how fast its CPU is; 0 where it does not.
    looks_each: u32,
}

/// Who is beside the program: neighbours on its CPUs look themselves where they wake often enough.
fn roles(of: &Command) -> Vec<NeighbourRole> {
    let looks_hz = if HAS_QUANTA { of.looks_hz() } else { 0 };
    let rate_hz = of.rate_hz.max(1);
    let on: &[u32] = match of.neighbour {
        Neighbour::Nobody => &[],
        Neighbour::Elsewhere => of.away.as_slice(),
        Neighbour::Preempts => &of.cpus,
    };
    let looks_itself = of.neighbour == Neighbour::Preempts && rate_hz >= looks_hz / 2;
    let each = rate_hz.checked_div(looks_hz).filter(|_| looks_itself);
    let each = each.map_or(0, |each| each.max(1));
    let neighbour = |cpu: &u32| NeighbourRole {
        cpu: *cpu,
        rate_hz,
        bytes: of.bytes,
        stays_ns: of.stays_ns,
        is_neighbour: true,
        looks_each: each,
    };
    let onlooker = |cpu: &u32| NeighbourRole {
        cpu: *cpu,
        rate_hz: looks_hz,
        bytes: 0,
        stays_ns: 0,
        is_neighbour: false,
        looks_each: 1,
    };
    let onlookers = of.cpus.iter().filter(|_| looks_hz > 0 && !looks_itself);
    on.iter().map(neighbour).chain(onlookers.map(onlooker)).collect()
}

impl RunningNeighbours {
    /// Asleep in their loops when this returns.
    pub(super) fn start(of: &Command, policy: Policy, round: u32) -> Result<Self, TrialError> {
        let looks = SharedValue::<SpeedLog>::new().map_err(TrialError::at("mmap"))?;
        let one = |(place, role): (u32, NeighbourRole)| {
            // Other pauses in each round, on each CPU, and for each neighbour.
            let kind = of.bytes.rotate_left(32) ^ of.stays_ns.rotate_left(24);
            let seed = kind ^ u64::from(of.rate_hz) << 16;
            let random = RandomSource::new(seed ^ u64::from(round) << 40 ^ u64::from(place));
            start(role, policy, random, looks.clone())
        };
        let processes = (0..).zip(roles(of)).map(one).collect::<Result<_, TrialError>>()?;
        Ok(Self { processes, looks })
    }
}

fn start(
    role: NeighbourRole,
    policy: Policy,
    mut random: RandomSource,
    looks: SharedValue<SpeedLog>,
) -> Result<ChildProcess, TrialError> {
    let ready = || {
        let failed = |what: &'static str| move |errno| format!("{what} of the neighbour: {errno}");
        set_own_name(c"switchcost-nb");
        placement::pin(&[role.cpu]).map_err(failed("sched_setaffinity"))?;
        if policy.is_realtime() {
            limit_real_time(RT_SPIN_LIMIT_US, RT_SPIN_LIMIT_US);
            policy::take(policy).map_err(|errno| policy::describe_refusal(policy, errno))?;
        } else {
            // What is not granted leaves it a task like others: preemptions are counted.
            let _ = nice(MOST_URGENT);
        }
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        let array = match role.bytes {
            0 => None,
            bytes => {
                let work = Work::new(bytes, LINE_BYTES, Op::Rmw).map_err(|why| why.to_string())?;
                WorkArray::check(&work)
                    .map_err(|most| format!("--neighbour {bytes}: at most {most}"))?;
                let array = WorkArray::new(&work, role.bytes);
                Some(array.map_err(|errno| format!("--neighbour {bytes}: mmap: {errno}"))?)
            }
        };
        Ok(array)
    };
    let period_ns = 1_000_000_000 / u64::from(role.rate_hz);
    let act = |mut array: Option<WorkArray>| {
        let mut woken_ns = monotonic_ns();
        let mut until_look = 1;
        loop {
            // Not in step with anything that the program does; what was late is not made up for, and
            // the program gets the CPU in between, however long this took.
            let next_ns = woken_ns + period_ns / 2 + random.below(period_ns + 1);
            let next_ns = next_ns.max(monotonic_ns() + period_ns / 4);
            sleep_until(next_ns);
            woken_ns = monotonic_ns();
            if until_look == role.looks_each {
                looks.note(shortest_quantum());
                // One that was due while a neighbour ran comes behind it, and preempts nobody.
                if !role.is_neighbour && woken_ns - next_ns < ON_TIME_NS {
                    looks.count_preemption();
                }
                until_look = 0;
            }
            until_look += 1;
            loop {
                if let Some(array) = &mut array {
                    array.walk();
                }
                if role.stays_ns == 0 || monotonic_ns() - woken_ns >= role.stays_ns {
                    break;
                }
            }
            if role.is_neighbour {
                looks.count_wake();
            }
        }
    };
    ChildProcess::start_ready(ready, act).map_err(|why| TrialError::lost("neighbour", why))
}

#[cfg(test)]
mod tests {
    use model::trial::command::{LOOKS_HZ, Subject};

    use super::*;

    #[test]
    fn every_cpu_of_the_program_is_looked_at_about_as_often_whoever_is_there() {
        if !HAS_QUANTA {
            return;
        }
        let of = |neighbour, rate_hz| Command {
            subject: Subject::Command(vec!["true".to_string()]),
            executable: None,
            cpus: vec![1, 2],
            neighbour,
            rate_hz,
            bytes: 0,
            stays_ns: 0,
            away: Some(0),
            timer: true,
        };
        let looks = |of: &Command| {
            let all = roles(of);
            let looking = all.iter().filter(|of| of.looks_each > 0);
            looking.map(|of| (of.cpu, of.rate_hz / of.looks_each)).collect::<Vec<_>>()
        };
        let expected = [(1, LOOKS_HZ), (2, LOOKS_HZ)];
        assert_eq!(looks(&of(Neighbour::Nobody, 0)), expected);
        assert_eq!(looks(&of(Neighbour::Elsewhere, 4000)), expected);
        assert_eq!(looks(&of(Neighbour::Preempts, 4000)), expected);
        assert_eq!(looks(&of(Neighbour::Preempts, 300)), [(1, 300), (2, 300)]);
        assert_eq!(looks(&of(Neighbour::Preempts, 100)), expected);
        assert_eq!(roles(&of(Neighbour::Preempts, 100)).len(), 4);
    }
}
