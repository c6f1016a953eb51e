//! The work order of a worker, its limits of time and memory, and its report when it fails.

use std::time::Duration;

use rundata::case::{Case, Sample};
use rundata::plan::Batching;
use rundata::ring::Work;
use rundata::trial::Trial;
use rundata::trial::load::{RequestWork, WakeLoad};
use rustix::process::{Resource, getrlimit};
use rustix::system::sysinfo;
use serde::{Deserialize, Serialize};

use crate::sys::RequestBoard;
use crate::{ring, trial};

/// Work order of a worker: one case of any kind in one round.
pub type Assignment = ring::Assignment<Case, Batching>;

/// Reason why a case gave no (further) samples.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct CaseFailure {
    /// Description: the value, the limit or errno, the next step.
    pub message: String,
    /// Whether the machine has run out of a resource: then a case that needs as much fails too.
    pub exhausted: bool,
}

/// Upper bound of the bytes kept of one trial beside its block: both times, the time of the empty
/// trial, a slot.
const BYTES_OF_TRIAL: u64 = 128;

/// Checks that `count` items of `bytes` each fit into the machine's memory and into this process's
/// limit.
fn check_fits(what: &str, count: u64, bytes: u64) -> Result<(), String> {
    let system = sysinfo();
    let total = (system.totalram + system.totalswap) * u64::from(system.mem_unit.max(1));
    let limit = getrlimit(Resource::As).current.unwrap_or(u64::MAX);
    let memory = total.min(limit);
    let needed = u128::from(count) * u128::from(bytes);
    if needed > u128::from(memory) {
        return Err(format!("{what}: {needed} bytes do not fit into {memory} bytes of memory"));
    }
    Ok(())
}

/// Checks that the working sets of all members fit into memory.
fn check_work(work: &Work, members: u64) -> Result<(), String> {
    check_fits("working sets of all members", members, work.bytes)
}

/// Checks that everything which a trial keeps fits into memory.
fn check_trial(trial: &Trial, trials: u64) -> Result<(), String> {
    check_fits("trials", trials, BYTES_OF_TRIAL)?;
    match trial {
        Trial::Malloc { bytes, .. } => check_fits("blocks", trials, *bytes),
        Trial::Primes { primes } => check_fits("primes", (*primes).into(), 4),
        Trial::Wakeup(wakeup) => check_fits("wakes", wakeup.wakes.into(), BYTES_OF_TRIAL),
        Trial::Load(load) => check_load(load),
        Trial::Execution(execution) => check_work(&execution.work, 2),
        Trial::Sampling { .. }
        | Trial::Gaps { .. }
        | Trial::Call { .. }
        | Trial::Loop { .. }
        | Trial::TwoProcesses => Ok(()),
        Trial::Switches(_) => Err("a trace is not measured by a worker".to_string()),
        Trial::Command(command) => {
            check_fits("the neighbour", command.cpus.len() as u64, command.bytes)
        }
    }
}

/// Checks that the arrays and the requests of all workers fit into memory.
fn check_load(load: &WakeLoad) -> Result<(), String> {
    let array_bytes = match load.work {
        RequestWork::ThinkNs(_) => 0,
        RequestWork::Bytes(bytes) => bytes,
    };
    let bytes = array_bytes + size_of::<RequestBoard>() as u64;
    check_fits("workers", load.workers.into(), bytes)
}

/// Upper bound of the time of one call with the empty pair beside it, by any clock source.
const SLOW_CALL: Duration = Duration::from_micros(100);

/// Returns an upper bound of what `trials` of a kind take, if that is known of it.
fn longest_trial(trial: &Trial, trials: u32) -> Option<Duration> {
    match trial {
        Trial::Gaps { duration_ns } | Trial::Sampling { duration_ns, .. } => {
            Some(Duration::from_nanos(duration_ns.saturating_mul(4)))
        }
        Trial::Wakeup(wakeup) => {
            let longest_period_ns = wakeup.period_ns.saturating_mul(2);
            Some(Duration::from_nanos(longest_period_ns.saturating_mul(wakeup.wakes.into())))
        }
        Trial::Call { .. } | Trial::Loop { .. } | Trial::TwoProcesses => {
            Some(Duration::from_secs(1).saturating_add(SLOW_CALL.saturating_mul(trials)))
        }
        Trial::Primes { .. }
        | Trial::Malloc { .. }
        | Trial::Execution(_)
        | Trial::Load(_)
        | Trial::Command(_)
        | Trial::Switches(_) => None,
    }
}

/// Limit of a worker whose duration is not known from its case.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Time that a worker may take beyond what its run has left, on a machine with nothing else to do.
const GRACE: Duration = Duration::from_secs(4);

/// Additional grace for each task that waits for a CPU, per CPU: all of them take turns.
const GRACE_PER_WAITING_TASK: Duration = Duration::from_secs(1);

/// Longest grace, however loaded the machine is.
const MAX_GRACE: Duration = Duration::from_secs(60);

/// Longest part of a run's remaining time that one worker is given: the other cases need some, too.
const MAX_SHARE: Duration = Duration::from_secs(20);

/// Upper bound of the time that starting, calibrating and ending takes for each member of a ring.
const SLOW_MEMBER: Duration = Duration::from_millis(20);

/// Returns how long a worker may take beyond its run's remaining time. It grows with the load.
fn grace() -> Duration {
    let load = sysinfo().loads[0] as f64 / f64::from(1 << libc::SI_LOAD_SHIFT);
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    (GRACE + GRACE_PER_WAITING_TASK.mul_f64(load / cpus as f64)).min(MAX_GRACE)
}

impl Assignment {
    /// Takes the samples in the calling process, which must be single-threaded and serve no other
    /// purpose. Each sample goes to `sink` as soon as it is proven.
    pub fn measure(&self, sink: &mut dyn FnMut(Sample)) -> Result<(), CaseFailure> {
        let Self { case_number, round, .. } = *self;
        self.check().map_err(|message| CaseFailure { message, exhausted: false })?;
        match &self.case {
            Case::Ring(case) => {
                let assignment = self.ring_assignment(case);
                ring::run(&assignment, &mut |sample| sink(Sample::from(sample))).map_err(|error| {
                    CaseFailure { message: error.to_string(), exhausted: error.is_exhaustion() }
                })
            }
            Case::Trial(case) => {
                let sample =
                    trial::run(case_number, case, round, self.batching.trial.trials).map_err(
                        |error| CaseFailure { message: error.to_string(), exhausted: false },
                    )?;
                sink(Sample::Trial(sample));
                Ok(())
            }
        }
    }

    /// Checks, before anything is done, that all numbers are in range and all memory can be
    /// allocated: a run file that was changed may have any numbers.
    fn check(&self) -> Result<(), String> {
        self.batching.check(&self.case)?;
        match &self.case {
            Case::Ring(case) => {
                case.work.map_or(Ok(()), |work| check_work(&work, case.members_of_all().into()))
            }
            Case::Trial(case) => check_trial(&case.trial, self.batching.trial.trials.into()),
        }
    }

    /// Returns the time after which the worker is killed by its parent, when its run has `left`
    /// until its budget is spent. No worker that makes progress takes as long.
    pub fn patience(&self, left: Duration) -> Duration {
        let needed = self.longest_known();
        needed.map_or(TIMEOUT, |needed| needed.saturating_add(left.min(MAX_SHARE) + grace()))
    }

    /// Returns an upper bound of what the case takes by itself, beside the time that its samples
    /// wait for an undisturbed CPU; `None` where that depends on what is measured.
    fn longest_known(&self) -> Option<Duration> {
        let case = match &self.case {
            Case::Ring(case) => case,
            Case::Trial(case) => return longest_trial(&case.trial, self.batching.trial.trials),
        };
        let prescribed = ring::max_prescribed_time(&self.ring_assignment(case));
        let member = SLOW_MEMBER.saturating_add(ring::max_walk_time(case));
        Some(prescribed.saturating_add(member.saturating_mul(case.members_of_all())))
    }

    /// Returns the variables that the worker's environment must have for the case, or must not have
    /// (`None`); the others are those of this process.
    pub fn environment(&self) -> Vec<(&'static str, Option<String>)> {
        match self.case.trial().map(|case| &case.trial) {
            // Also removes one: the allocator of the C library must not be replaced by another.
            Some(Trial::Malloc { preload, .. }) => vec![("LD_PRELOAD", preload.clone())],
            _ => Vec::new(),
        }
    }

    /// Builds the work order of the case's ring.
    fn ring_assignment(&self, case: &rundata::ring::RingCase) -> ring::Assignment {
        ring::Assignment {
            case_number: self.case_number,
            case: case.clone(),
            round: self.round,
            batching: self.batching.ring.clone(),
            unshared_ratio: self.unshared_ratio,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn refused(case: Value, ring: Value, trials: u32) -> Option<String> {
        let mut of_ring =
            json!({"laps": 8, "sample_ns": 1, "samples_per_round": 1, "enough_ns": 1});
        ring.as_object()
            .into_iter()
            .flatten()
            .for_each(|(name, value)| of_ring[name] = value.clone());
        let batching = json!({"ring": of_ring, "trial": {"trials": trials}});
        let all = json!({"case_number": 0, "case": case, "round": 0, "batching": batching});
        serde_json::from_value::<Assignment>(all).expect("an assignment").check().err()
    }

    fn ring(members: u64, bytes: u64) -> Value {
        let work = json!({"bytes": bytes, "stride_bytes": 8, "op": "rmw", "walk": "chase",
            "huge_pages": false});
        json!({"ring": {"members": members, "kind": "process", "link": "pipe", "work": work,
            "placement": {"mode": "same", "cpu": 0}, "policy": "other"}})
    }

    #[test]
    fn a_worker_is_given_the_time_that_its_case_may_need() {
        let patience = |case: Value, left_s: u64| {
            let ring =
                json!({"laps": null, "sample_ns": 1, "samples_per_round": 1, "enough_ns": 1});
            let batching = json!({"ring": ring, "trial": {"trials": 1}});
            let words = json!({"case_number": 0, "case": case, "round": 0, "batching": batching});
            let assignment: Assignment = serde_json::from_value(words).expect("an assignment");
            assignment.patience(Duration::from_secs(left_s))
        };
        let none_left = patience(ring(2, 4096), 0);
        assert!(none_left >= GRACE && none_left < MAX_GRACE + GRACE, "{none_left:?}");
        assert!(patience(ring(2, 4096), 10) > none_left);
        assert!(patience(ring(2, 4096), 10_000) <= MAX_SHARE + MAX_GRACE + GRACE);
        assert!(patience(ring(20_000, 8), 0) >= SLOW_MEMBER * 20_000);
        assert!(patience(ring(2, 1 << 30), 0) > Duration::from_secs(100));
        let gaps = json!({"trial": {"trial": {"of": "gaps", "duration_ns": 60_000_000_000_u64},
            "cpu": 0, "policy": "other"}});
        assert!(patience(gaps, 0) > Duration::from_secs(60));
    }

    #[test]
    fn what_no_worker_could_hold_is_refused_by_name() {
        let as_is = || json!({});
        assert_eq!(refused(ring(2, 4096), as_is(), 1), None);
        let trial = |of: Value| json!({"trial": {"trial": of, "cpu": 0, "policy": "other"}});
        let gaps = |ns: u64| trial(json!({"of": "gaps", "duration_ns": ns}));
        assert_eq!(refused(gaps(1), as_is(), 1), None);
        for (named, said) in [
            ("members is 0 ", refused(ring(0, 4096), as_is(), 1)),
            ("members is 4294967295 ", refused(ring(u32::MAX.into(), 4096), as_is(), 1)),
            ("--work 12", refused(ring(2, 12), as_is(), 1)),
            ("number of elements is 0 ", refused(ring(2, 8), as_is(), 1)),
            ("working sets of all members", refused(ring(2, 1 << 60), as_is(), 1)),
            ("laps is 0 ", refused(ring(2, 4096), json!({"laps": 0}), 1)),
            ("laps is 18446744073709551615 ", refused(ring(2, 4096), json!({"laps": u64::MAX}), 1)),
            (
                "sample_ns is 18446744073709551615 ",
                refused(ring(2, 4096), json!({"sample_ns": u64::MAX}), 1),
            ),
            ("duration_ns is 18446744073709551615 ", refused(gaps(u64::MAX), as_is(), 1)),
            ("trials", refused(gaps(1), as_is(), u32::MAX)),
        ] {
            assert!(said.as_ref().is_some_and(|said| said.starts_with(named)), "{named}: {said:?}");
        }
    }
}
