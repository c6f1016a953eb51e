//! What a worker gets, and what it reports when it fails.

use std::time::Duration;

use model::case::{Case, Sample};
use model::plan::Batching;
use model::ring::Work;
use model::trial::Trial;
use rustix::process::{Resource, getrlimit};
use rustix::system::sysinfo;
use serde::{Deserialize, Serialize};

use crate::{ring, trial};

/// What a worker gets: one case of any kind, one round.
pub type Assignment = ring::Assignment<Case, Batching>;

/// Why a case gave no (further) samples.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Unmeasured {
    /// What happened: the value, the limit or errno, the next step.
    pub message: String,
    /// The machine has run out of something: a case that needs as much would fail too.
    pub exhausted: bool,
}

/// Most bytes that are kept of one trial beside its block: both times, what is timed for
/// comparison, a place.
const BYTES_OF_TRIAL: u64 = 128;

/// `count` things of so many bytes each fit into the memory that there is, or that this process may
/// have.
fn fits(what: &str, count: u64, bytes: u64) -> Result<(), String> {
    let of = sysinfo();
    let all = (of.totalram + of.totalswap) * u64::from(of.mem_unit.max(1));
    let memory = getrlimit(Resource::As).current.map_or(all, |limit| limit.min(all));
    let needed = u128::from(count) * u128::from(bytes);
    let fits = needed <= u128::from(memory);
    fits.then_some(())
        .ok_or_else(|| format!("{what}: {needed} bytes do not fit into {memory} bytes of memory"))
}

/// The working sets of so many members.
fn fits_in_members(work: &Work, members: u64) -> Result<(), String> {
    fits("working sets of all members", members, work.bytes)
}

fn fits_in_trial(trial: &Trial, trials: u64) -> Result<(), String> {
    fits("trials", trials, BYTES_OF_TRIAL)?;
    match trial {
        Trial::Malloc { bytes, .. } => fits("blocks", trials, *bytes),
        Trial::Primes { primes } => fits("primes", (*primes).into(), 4),
        Trial::Wakeup(wakeup) => fits("wakes", wakeup.wakes.into(), BYTES_OF_TRIAL),
        Trial::Execution(execution) => fits_in_members(&execution.work, 2),
        Trial::Sampling { .. }
        | Trial::Gaps { .. }
        | Trial::Call { .. }
        | Trial::Loop { .. }
        | Trial::TwoProcesses => Ok(()),
        Trial::Command(of) => fits("the neighbour", of.cpus.len() as u64, of.bytes),
    }
}

/// All steps of a worker have deadlines of their own, of a minute and more each.
const TIMEOUT: Duration = Duration::from_secs(600);

impl Assignment {
    /// Takes the samples in the calling process, which is single-threaded and for this alone; each
    /// goes to `sink` as soon as it is proven.
    pub fn measure(&self, sink: &mut dyn FnMut(Sample)) -> Result<(), Unmeasured> {
        let Self { case_number, round, .. } = *self;
        self.check().map_err(|message| Unmeasured { message, exhausted: false })?;
        match &self.case {
            Case::Ring(case) => {
                let assignment = self.of_ring(case);
                ring::run(&assignment, &mut |sample| sink(Sample::Ring(sample))).map_err(|error| {
                    Unmeasured { message: error.to_string(), exhausted: error.is_exhaustion() }
                })
            }
            Case::Trial(case) => {
                let sample = trial::run(case_number, case, round, self.batching.trial.trials)
                    .map_err(|error| Unmeasured { message: error.to_string(), exhausted: false })?;
                sink(Sample::Trial(sample));
                Ok(())
            }
        }
    }

    /// Whether what it says can be allocated and counted, before any of it is: a run file that was
    /// changed may say anything.
    fn check(&self) -> Result<(), String> {
        self.batching.check(&self.case)?;
        match &self.case {
            Case::Ring(case) => {
                case.work.map_or(Ok(()), |work| fits_in_members(&work, case.members.into()))
            }
            Case::Trial(case) => fits_in_trial(&case.trial, self.batching.trial.trials.into()),
        }
    }

    /// Longer than any working worker takes: its parent kills it then.
    pub fn timeout(&self) -> Duration {
        match &self.case {
            Case::Ring(case) => TIMEOUT.saturating_add(ring::slowest(&self.of_ring(case))),
            Case::Trial(_) => TIMEOUT,
        }
    }

    /// What the worker's environment must hold for the case, or must not, beside what this process
    /// was given.
    pub fn environment(&self) -> Vec<(&'static str, Option<String>)> {
        match self.case.trial().map(|case| &case.trial) {
            // Also without one: a measurement of the C library's must not be of another.
            Some(Trial::Malloc { preload, .. }) => vec![("LD_PRELOAD", preload.clone())],
            _ => Vec::new(),
        }
    }

    fn of_ring(&self, case: &model::ring::Case) -> ring::Assignment {
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
        let work = json!({"bytes": bytes, "stride_bytes": 8, "op": "rmw", "walk": "chase"});
        json!({"ring": {"members": members, "kind": "process", "link": "pipe", "work": work,
            "placement": {"mode": "same", "cpu": 0}, "policy": "other"}})
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
