//! `switchcost cost --interference`, from what was typed to a plan.

use anyhow::{Context, Result};
use model::case::{Case as RingCase, ELEMENT_BYTES, Kind, Op, Placement, Policy, Work};
use model::interference::{Environment, Setting};
use model::plan::{Plan, Stopping};
use model::trial::interference::{Execution, NAME, Noise};
use model::trial::{Case, Repeats, Trial, Trials};
use probe::{placement, policy, trial};

use super::clock::Here;
use crate::cli::{Effort, InterferenceArgs};
use crate::failure::usage;

/// The paper's sizes, where this machine's caches are not known.
const PAPER_BYTES: [u64; 3] = [256 << 10, 384 << 10, 512 << 10];
/// Share of the budget for the laps themselves; the rest is for workers, and for noise that delays.
const SHARE_FOR_LAPS: f64 = 0.65;
/// Longest run: below it a real-time ring does not meet the kernel's limit of 950 ms in a second.
const LONGEST_NS: u64 = 800_000_000;
/// Shortest: a few gaps of the noise have to fall into all runs of a condition together.
const SHORTEST_NS: u64 = 10_000_000;

/// What was found out before the laps are known.
pub(crate) struct Setup {
    works: Vec<Work>,
    runs: u32,
    noise: Noise,
    cpu: u32,
    /// Where the noise runs in the augmented setting.
    away: u32,
    /// The augmented setting's policy.
    policy: Policy,
    notices: Vec<String>,
}

/// Looks what of the experiment can be had here; what cannot is among the notices.
pub(crate) fn setup(args: &InterferenceArgs, here: &Here) -> Result<Setup> {
    let cpu = placement::choose_one(here.allowed, here.machine).context("no CPU is allowed")?;
    trial::check_noise(args.noise)
        .map_err(|error| usage(format!("--noise {}: {error}", args.noise)))?;
    let mut notices = Vec::new();
    let sizes = match &args.sizes {
        Some(sizes) => sizes.0.clone(),
        None => default_sizes(here, cpu, &mut notices),
    };
    let work = |bytes: &u64| {
        let work = Work::new(*bytes, ELEMENT_BYTES, Op::Rmw);
        work.map_err(|_| {
            usage(format!(
                "--sizes {bytes}: accepted are multiples of {ELEMENT_BYTES} bytes above 0"
            ))
        })
    };
    let works = sizes.iter().map(work).collect::<Result<Vec<Work>>>()?;
    check_memory(&works, here)?;
    let away = placement::for_controller(here.allowed, &[cpu], here.machine);
    let away = away.first().copied().unwrap_or(cpu);
    let policy = policy_here(away != cpu, &mut notices);
    Ok(Setup { works, runs: args.runs, noise: args.noise, cpu, away, policy, notices })
}

/// The augmented setting's policy, and a word on what it lacks.
fn policy_here(has_other_cpu: bool, notices: &mut Vec<String>) -> Policy {
    if !has_other_cpu {
        notices.push(
            "there is one CPU for this program: the augmented setting has its noise on the measured \
             CPU and the normal policy (a real-time ring could hang the machine), so both settings \
             are the plain one; allow a second CPU (taskset, cpuset)"
                .to_string(),
        );
        return Policy::Other;
    }
    match policy::check(Policy::Fifo) {
        Ok(()) => Policy::Fifo,
        Err(errno) => {
            notices.push(format!(
                "the augmented setting runs under the normal policy, so other work may take its CPU: \
                 fifo: {errno}; {}",
                policy::needs(Policy::Fifo)
            ));
            Policy::Other
        }
    }
}

/// Half, three quarters and the whole of the last private cache.
fn default_sizes(here: &Here, cpu: u32, notices: &mut Vec<String>) -> Vec<u64> {
    let cache = here.machine.last_private_cache(cpu).and_then(|cache| cache.size_bytes.clone());
    let whole = cache.known().copied().filter(|bytes| *bytes >= 4 * ELEMENT_BYTES);
    match whole {
        Some(bytes) => {
            [2, 3, 4].map(|quarters| bytes / 4 * quarters / ELEMENT_BYTES * ELEMENT_BYTES).to_vec()
        }
        None => {
            let why = cache.why().unwrap_or("it is too small");
            notices.push(format!(
                "the last private cache of CPU {cpu} is not known ({why}): the paper's sizes stand in for its parts (--sizes)"
            ));
            PAPER_BYTES.to_vec()
        }
    }
}

/// Two arrays that do not fit would be ended by the out-of-memory killer, or end others.
fn check_memory(works: &[Work], here: &Here) -> Result<()> {
    let largest = works.iter().map(|work| work.bytes).max().unwrap_or(0);
    let needed = u128::from(largest) * 2;
    match here.machine.memory.available_bytes.known() {
        Some(free) if needed > u128::from(*free) * 9 / 10 => Err(usage(format!(
            "--sizes {largest}: two arrays need {} MiB, {} MiB are free",
            needed >> 20,
            free >> 20
        ))),
        _ => Ok(()),
    }
}

impl Setup {
    /// What a run may last: all of them have to fit into the budget.
    pub(crate) fn execution_ns<const BUDGET: u64>(&self, effort: &Effort<BUDGET>) -> u64 {
        let runs = 4.0 * self.works.len() as f64 * f64::from(self.runs);
        let share = SHARE_FOR_LAPS * effort.budget.as_nanos() as f64 / runs;
        (share as u64).clamp(SHORTEST_NS, LONGEST_NS)
    }

    /// The ring whose laps last longest, in the plain setting: what is calibrated.
    pub(crate) fn largest_ring(&self) -> Option<RingCase> {
        let work = *self.works.iter().max_by_key(|work| work.bytes)?;
        Some(RingCase {
            members: 2,
            kind: Kind::Process,
            link: "pipe".to_string(),
            work: Some(work),
            placement: Placement::Same { cpu: self.cpu },
            policy: Policy::Other,
            priority: None,
            state: None,
        })
    }

    /// Every condition with the same laps.
    pub(crate) fn plan<const BUDGET: u64>(
        &self,
        laps: u64,
        effort: &Effort<BUDGET>,
    ) -> Plan<Trials> {
        let case = |work: Work, setting, environment| {
            let (noise_cpu, policy) = match setting {
                Setting::Augmented => (self.away, self.policy),
                Setting::Plain => (self.cpu, Policy::Other),
            };
            let (noise, seed) = (self.noise, effort.seed);
            let execution = Execution { setting, environment, noise, noise_cpu, work, laps, seed };
            Case { trial: Trial::Execution(execution), cpu: self.cpu, policy }
        };
        let mut cases = Vec::new();
        for setting in [Setting::Augmented, Setting::Plain] {
            for environment in [Environment::Quiet, Environment::Disturbed] {
                cases.extend(self.works.iter().map(|work| case(*work, setting, environment)));
            }
        }
        Plan {
            experiment: NAME.to_string(),
            cases,
            seed: effort.seed,
            batching: Repeats { trials: 1 },
            // As many runs as asked: no precision ends them sooner.
            stopping: Stopping {
                precision: 0.0,
                rounds: Some(self.runs),
                ..super::stopping(effort)
            },
        }
    }

    /// What could not be had.
    pub(crate) fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use super::*;

    fn setup() -> Setup {
        let works = [1024, 2048].map(|bytes| Work::new(bytes, 8, Op::Rmw).unwrap()).to_vec();
        let noise = Noise::Net;
        let notices = Vec::new();
        Setup { works, runs: 6, noise, cpu: 3, away: 0, policy: Policy::Fifo, notices }
    }

    fn effort(budget: Duration) -> Effort {
        Effort { precision: 0.01, budget, rounds: None, seed: 9 }
    }

    #[test]
    fn every_condition_has_the_same_laps_and_its_own_place() {
        let plan = setup().plan(77, &effort(Duration::from_secs(60)));
        assert_eq!((plan.cases.len(), plan.stopping.rounds), (8, Some(6)));
        let mut conditions = BTreeSet::new();
        for case in &plan.cases {
            let Trial::Execution(e) = &case.trial else { panic!("{case:?}") };
            assert_eq!((case.cpu, e.laps, e.seed), (3, 77, 9));
            match e.setting {
                Setting::Augmented => assert_eq!((case.policy, e.noise_cpu), (Policy::Fifo, 0)),
                Setting::Plain => assert_eq!((case.policy, e.noise_cpu), (Policy::Other, 3)),
            }
            conditions.insert(case.trial.to_string());
        }
        assert_eq!(conditions.len(), 8);
    }

    #[test]
    fn runs_fit_the_budget_within_bounds() {
        // 48 runs in 65 % of 24 s.
        assert_eq!(setup().execution_ns(&effort(Duration::from_secs(24))), 325_000_000);
        assert_eq!(setup().execution_ns(&effort(Duration::from_secs(3600))), LONGEST_NS);
        assert_eq!(setup().execution_ns(&effort(Duration::from_millis(1))), SHORTEST_NS);
    }

    #[test]
    fn one_cpu_has_no_real_time_policy_and_says_so() {
        let mut notices = Vec::new();
        assert_eq!(policy_here(false, &mut notices), Policy::Other);
        assert!(notices[0].contains("one CPU"), "{notices:?}");
    }
}
