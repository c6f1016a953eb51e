//! `switchcost cost --interference`, from what was typed to a plan.

use anyhow::{Context, Result};
use model::experiment::Experiment;
use model::interference::{Environment, Setting};
use model::machine::Machine;
use model::plan::{Batching, Plan, Stopping};
use model::ring::{Case as RingCase, ELEMENT_BYTES, Kind, Op, Placement, Policy, Work};
use model::speed::Reference;
use model::trial::interference::{Execution, LONGEST_REALTIME_NS, Noise, Wire};
use model::trial::{Case, Repeats, Trial};
use probe::{placement, policy, trial};

use super::args::InterferenceArgs;
use crate::effort::Effort;
use crate::failure::usage;
use crate::setting::{self, Here};

/// The paper's sizes, where this machine's caches are not known.
const PAPER_BYTES: [u64; 3] = [256 << 10, 384 << 10, 512 << 10];
/// Share of the budget for the laps themselves; the rest is for workers, and for noise that delays.
const SHARE_FOR_LAPS: f64 = 0.65;
/// Shortest: a mean gap of the noise, so that a few events fall into all runs of a condition together.
const SHORTEST_NS: u64 = 100_000_000;

/// What was found out before the laps are known.
pub(crate) struct Setup {
    works: Vec<Work>,
    runs: u32,
    noise: Noise,
    wire: Wire,
    cpu: u32,
    /// Where the noise runs in the augmented setting.
    away: u32,
    /// The augmented setting's policy.
    policy: Policy,
    /// Its real-time priority.
    priority: Option<u32>,
    notices: Vec<String>,
}

/// Looks what of the experiment can be had here; what cannot is among the notices.
pub(crate) fn setup(args: &InterferenceArgs, here: &Here) -> Result<Setup> {
    let cpu = placement::choose_quiet(&here.allowed, &here.machine).context("no CPU is allowed")?;
    trial::check_noise(args.noise)
        .map_err(|error| usage(format!("--noise {}: {error}", args.noise)))?;
    let mut notices = vec![setting::chosen_cpu(cpu, &here.machine)];
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
    let largest = works.iter().map(|work| work.bytes).max().unwrap_or(0);
    here.check_memory(
        &format!("--sizes {largest} in two members"),
        u128::from(largest) * 2,
        "smaller --sizes",
    )?;
    let away = placement::for_controller(&here.allowed, &[cpu], &here.machine);
    let away = away.first().copied().unwrap_or(cpu);
    notices.extend(shared_core(cpu, away, &here.machine));
    let (policy, priority) = policy_here(away != cpu, &mut notices);
    let wire = wire(args.noise, &mut notices);
    let (runs, noise) = (args.runs, args.noise);
    Ok(Setup { works, runs, noise, wire, cpu, away, policy, priority, notices })
}

/// What packets go through, and a word where that is not what it should be.
fn wire(noise: Noise, notices: &mut Vec<String>) -> Wire {
    if noise != Noise::Net {
        return Wire::default();
    }
    let (wire, why) = trial::wire();
    notices.extend(why.map(|why| {
        format!(
            "packets go through the loopback, which spares them the handling of a device: {why} (it needs CAP_NET_ADMIN or user namespaces, and CONFIG_VETH)"
        )
    }));
    wire
}

/// A noise that is not as far away as it should be.
fn shared_core(cpu: u32, away: u32, machine: &Machine) -> Option<String> {
    let siblings = machine.smt_siblings_of(cpu);
    let shared = away != cpu && siblings.known().is_some_and(|list| list.contains(away));
    shared.then(|| {
        format!(
            "the only other CPU ({away}) is the SMT sibling of CPU {cpu}: also in the augmented setting the noise shares its core and private caches; allow a CPU of another core (taskset, cpuset)"
        )
    })
}

/// The augmented setting's policy and priority, and a word on what was granted.
fn policy_here(has_other_cpu: bool, notices: &mut Vec<String>) -> (Policy, Option<u32>) {
    if !has_other_cpu {
        notices.push(
            "there is one CPU for this program: the augmented setting has its noise on the measured \
             CPU and the normal policy (a real-time ring could hang the machine), so both settings \
             are the plain one; allow a second CPU (taskset, cpuset)"
                .to_string(),
        );
        return (Policy::Other, None);
    }
    match policy::highest(Policy::Fifo) {
        Ok(priority) => {
            notices.push(setting::granted(Policy::Fifo, priority));
            (Policy::Fifo, Some(priority))
        }
        Err(errno) => {
            notices.push(format!(
                "{}: other work may take the augmented setting's CPU",
                setting::not_granted(Policy::Fifo, errno)
            ));
            (Policy::Other, None)
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

impl Setup {
    /// What a run may last: all of them have to fit into the budget.
    pub(crate) fn execution_ns<const BUDGET: u64>(&self, effort: &Effort<BUDGET>) -> u64 {
        let runs = 4.0 * self.works.len() as f64 * f64::from(self.runs);
        let share = SHARE_FOR_LAPS * effort.budget.as_nanos() as f64 / runs;
        (share as u64).clamp(SHORTEST_NS, LONGEST_REALTIME_NS)
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
    pub(crate) fn plan<const BUDGET: u64>(&self, laps: u64, effort: &Effort<BUDGET>) -> Plan {
        let case = |work: Work, setting, environment| {
            let (noise_cpu, policy, priority) = match setting {
                Setting::Augmented => (self.away, self.policy, self.priority),
                Setting::Plain => (self.cpu, Policy::Other, None),
            };
            let (noise, seed) = (self.noise, effort.seed);
            let wire = self.wire;
            let execution = Execution {
                setting,
                environment,
                noise,
                noise_cpu,
                work,
                laps,
                seed,
                priority,
                wire,
            };
            Case { trial: Trial::Execution(execution), cpu: self.cpu, policy }
        };
        let mut cases = Vec::new();
        for setting in [Setting::Augmented, Setting::Plain] {
            for environment in [Environment::Quiet, Environment::Disturbed] {
                cases.extend(self.works.iter().map(|work| case(*work, setting, environment)));
            }
        }
        Plan {
            experiment: Experiment::Interference,
            cases: cases.into_iter().map(Into::into).collect(),
            seed: effort.seed,
            batching: Batching::of_trials(Repeats { trials: 1 }),
            // As many runs as asked: no precision ends them sooner.
            stopping: Stopping { precision: 0.0, rounds: Some(self.runs), ..effort.stopping() },
            reference: Reference::default(),
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

    use model::machine::LogicalCpu;
    use model::reading::Reading;

    use super::*;

    fn setup() -> Setup {
        let works = [1024, 2048].map(|bytes| Work::new(bytes, 8, Op::Rmw).unwrap()).to_vec();
        let noise = Noise::Net;
        let notices = Vec::new();
        let (policy, priority) = (Policy::Fifo, Some(99));
        let wire = Wire::Veth;
        Setup { works, runs: 6, noise, wire, cpu: 3, away: 0, policy, priority, notices }
    }

    fn effort(budget: Duration) -> Effort {
        Effort { precision: 0.01, budget, rounds: None, seed: 9 }
    }

    #[test]
    fn every_condition_has_the_same_laps_and_its_own_place() {
        let plan = setup().plan(77, &effort(Duration::from_secs(60)));
        assert_eq!((plan.cases.len(), plan.stopping.rounds), (8, Some(6)));
        let mut conditions = BTreeSet::new();
        for (_, case) in plan.trials() {
            let Trial::Execution(e) = &case.trial else { panic!("{case:?}") };
            assert_eq!((case.cpu, e.laps, e.seed), (3, 77, 9));
            match e.setting {
                Setting::Augmented => {
                    assert_eq!((case.policy, e.noise_cpu, e.priority), (Policy::Fifo, 0, Some(99)));
                }
                Setting::Plain => {
                    assert_eq!((case.policy, e.noise_cpu, e.priority), (Policy::Other, 3, None));
                }
            }
            conditions.insert(case.trial.to_string());
        }
        assert_eq!(conditions.len(), 8);
    }

    #[test]
    fn runs_fit_the_budget_within_bounds() {
        // 48 runs in 65 % of 24 s.
        assert_eq!(setup().execution_ns(&effort(Duration::from_secs(24))), 325_000_000);
        assert_eq!(setup().execution_ns(&effort(Duration::from_secs(3600))), LONGEST_REALTIME_NS);
        assert_eq!(setup().execution_ns(&effort(Duration::from_millis(1))), SHORTEST_NS);
    }

    #[test]
    fn a_noise_on_the_same_core_is_told() {
        let cpu = |cpu, siblings: &str| LogicalCpu {
            cpu,
            package: Reading::default(),
            die: Reading::default(),
            core: Reading::default(),
            smt_siblings: Reading::Known(siblings.parse().unwrap()),
            capacity: Reading::default(),
        };
        let mut machine = Machine::default();
        machine.cpu.topology = Reading::Known(vec![cpu(0, "0-1"), cpu(1, "0-1"), cpu(2, "2")]);
        assert!(shared_core(1, 0, &machine).is_some_and(|told| told.contains("SMT sibling")));
        assert_eq!(shared_core(1, 2, &machine), None);
        assert_eq!(shared_core(1, 1, &machine), None);
    }

    #[test]
    fn one_cpu_has_no_real_time_policy_and_says_so() {
        let mut notices = Vec::new();
        assert_eq!(policy_here(false, &mut notices), (Policy::Other, None));
        assert!(notices[0].contains("one CPU"), "{notices:?}");
    }
}
