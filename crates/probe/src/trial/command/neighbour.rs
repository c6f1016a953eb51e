//! Processes that wake, do a little, and sleep again.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU32, Ordering};

use model::ring::{Op, Policy, Work};
use model::trial::command::{Command, Neighbour};
use rustix::process::nice;
use rustix::thread::set_current_timer_slack;

use super::super::harness::TrialError;
use crate::random::Random;
use crate::sys::{Array, Child, Shared, limit_real_time, monotonic_ns, set_own_name, sleep_until};
use crate::{placement, policy};

/// A cache line, on all that we know of.
const LINE_BYTES: u64 = 64;
/// Longest time that a neighbour under a real-time policy may run without sleeping.
const RT_SPIN_LIMIT_US: u64 = 1_000_000;
/// The nice value that preempts others soonest, where no real-time policy is granted.
const MOST_URGENT: i32 = -20;

/// All neighbours of a program; they end when this is dropped, and with this process.
pub(super) struct Neighbours {
    pub(super) processes: Vec<Child>,
    wakes: Shared<AtomicU32>,
}

impl Neighbours {
    /// Asleep in their loops when this returns.
    pub(super) fn start(of: &Command, policy: Policy, round: u32) -> Result<Self, TrialError> {
        let wakes = Shared::<AtomicU32>::new().map_err(TrialError::at("mmap"))?;
        let cpus: &[u32] = match of.neighbour {
            Neighbour::Nobody => &[],
            Neighbour::Elsewhere => of.away.as_slice(),
            Neighbour::Preempts => &of.cpus,
        };
        let one = |(place, cpu): (u32, &u32)| {
            // Other pauses in each round, on each CPU, and for each neighbour.
            let seed = of.bytes.rotate_left(32) ^ u64::from(of.rate_hz) << 16;
            let random = Random::new(seed ^ u64::from(round) << 40 ^ u64::from(place));
            start(*cpu, of, policy, random, wakes.clone())
        };
        let processes = (0..).zip(cpus).map(one).collect::<Result<_, TrialError>>()?;
        Ok(Self { processes, wakes })
    }

    /// How often they have woken, all together.
    pub(super) fn wakes(&self) -> u32 {
        self.wakes.load(Ordering::Relaxed)
    }
}

fn start(
    cpu: u32,
    of: &Command,
    policy: Policy,
    mut random: Random,
    wakes: Shared<AtomicU32>,
) -> Result<Child, TrialError> {
    let ready = || {
        let failed = |what: &'static str| move |errno| format!("{what} of the neighbour: {errno}");
        set_own_name(c"switchcost-nb");
        placement::pin(&[cpu]).map_err(failed("sched_setaffinity"))?;
        if policy.is_realtime() {
            limit_real_time(RT_SPIN_LIMIT_US, RT_SPIN_LIMIT_US);
            policy::take(policy).map_err(|errno| policy::refused(policy, errno))?;
        } else {
            // What is not granted leaves it a task like others: preemptions are counted.
            let _ = nice(MOST_URGENT);
        }
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        let array = match of.bytes {
            0 => None,
            bytes => {
                let work = Work::new(bytes, LINE_BYTES, Op::Rmw).map_err(|why| why.to_string())?;
                Array::check(&work)
                    .map_err(|most| format!("--neighbour {bytes}: at most {most}"))?;
                Some(Array::new(&work, of.bytes))
            }
        };
        Ok(array)
    };
    let period_ns = 1_000_000_000 / u64::from(of.rate_hz.max(1));
    let act = |mut array: Option<Array>| {
        let mut next_ns = monotonic_ns();
        loop {
            // Not in step with anything that the program does; what was late is not made up for.
            next_ns = next_ns.max(monotonic_ns()) + period_ns / 2 + random.below(period_ns + 1);
            sleep_until(next_ns);
            if let Some(array) = &mut array {
                array.walk();
            }
            wakes.fetch_add(1, Ordering::Relaxed);
        }
    };
    Child::start_ready(ready, act).map_err(|why| TrialError::lost("neighbour", why))
}
