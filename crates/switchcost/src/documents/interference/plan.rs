//! `switchcost classic experiment interference`, from what was typed to a plan.

use anyhow::{Context, Result, bail};
use probe::assignment::Assignment;
use probe::{placement, policy, trial};
use rundata::case::rings;
use rundata::experiment::Experiment;
use rundata::machine::Machine;
use rundata::notice::Notice;
use rundata::placement::Placement;
use rundata::plan::{Batching, Plan, Stopping};
use rundata::ring::{self, AccessKind, ELEMENT_BYTES, Policy, RingCase, RingSample, Work};
use rundata::trial::interference::{
    Environment, Execution, MAX_REALTIME_NS, Noise, PacketWire, ProgramSetting,
};
use rundata::trial::{Trial, TrialBatching, TrialCase};

use super::{CostEffort, InterferenceArgs};
use crate::base::failure::usage;
use crate::engine::execute;
use crate::engine::setting::{self, LocalHost, PlanWithNotices, pair};

/// The paper's sizes, where this machine's caches are not known.
const PAPER_BYTES: [u64; 3] = [256 << 10, 384 << 10, 512 << 10];
/// Share of the budget for the laps themselves; the rest is for workers, and for noise that delays.
const SHARE_FOR_LAPS: f64 = 0.65;
/// Shortest: a mean gap of the noise, so that a few events fall into all runs of a condition
/// together.
const SHORTEST_NS: u64 = 100_000_000;

/// The plan, and a note on what is not available here.
pub(crate) fn plan(
    args: &InterferenceArgs,
    laps: Option<u64>,
    effort: &CostEffort,
    here: &LocalHost,
) -> Result<PlanWithNotices> {
    let cpu = placement::choose_quiet(&here.allowed, &here.machine).context("no CPU is allowed")?;
    trial::check_noise(args.noise)
        .map_err(|error| usage(format!("--noise {}: {error}", args.noise)))?;
    let mut notices = vec![Notice::from(setting::describe_chosen_cpu(cpu, &here.machine))];
    let sizes = match &args.sizes {
        Some(sizes) => sizes.clone(),
        None => default_sizes(here, cpu, &mut notices),
    };
    let work = |bytes: &u64| {
        Work::new(*bytes, ELEMENT_BYTES, AccessKind::Rmw).map_err(|_| {
            usage(format!(
                "--sizes {bytes}: accepted are multiples of {ELEMENT_BYTES} bytes above 0"
            ))
        })
    };
    let works = sizes.iter().map(work).collect::<Result<Vec<Work>>>()?;
    let largest = *works.iter().max_by_key(|work| work.bytes).context("no array size")?;
    here.check_memory(
        &format!("--sizes {} in two members", largest.bytes),
        u128::from(largest.bytes) * 2,
        "smaller --sizes",
    )?;
    let away = placement::choose_for_controller(&here.allowed, &[cpu], &here.machine);
    let away = away.first().copied().unwrap_or(cpu);
    notices.extend(shared_core(cpu, away, &here.machine).map(Notice::from));
    let (policy, priority) = policy_here(away != cpu, &mut notices);
    let wire = wire(args.noise, &mut notices);
    let laps = match laps {
        Some(laps) => laps,
        None => measure_laps(cpu, largest, execution_ns(works.len(), args.runs, effort))?,
    };
    let of = Execution {
        setting: ProgramSetting::Plain,
        environment: Environment::Quiet,
        noise: args.noise,
        noise_cpu: cpu,
        work: largest,
        laps,
        seed: effort.seed,
        priority: None,
        wire,
    };
    let cases = cases(&works, cpu, &of, (away, policy, priority));
    let batching = Batching::of_trials(TrialBatching { trials: 1 });
    // As many runs as asked: no precision ends them sooner.
    let stopping = Stopping { precision: 0.0, rounds: Some(args.runs), ..effort.stopping() };
    let plan = Plan { stopping, ..effort.plan(Experiment::Interference, cases, batching) };
    Ok((plan, notices))
}

/// Every size in both settings, quiet and disturbed; `of` is one of them in the plain setting. The
/// augmented one has its noise on another CPU, and a policy and a real-time priority of its own.
fn cases(
    works: &[Work],
    cpu: u32,
    of: &Execution,
    (away, policy, priority): (u32, Policy, Option<u32>),
) -> Vec<TrialCase> {
    let augmented = (ProgramSetting::Augmented, away, policy, priority);
    let plain = (ProgramSetting::Plain, cpu, Policy::Other, None);
    let mut cases = Vec::new();
    for (setting, noise_cpu, policy, priority) in [augmented, plain] {
        for environment in [Environment::Quiet, Environment::Disturbed] {
            cases.extend(works.iter().map(|work| {
                let of = Execution { setting, environment, noise_cpu, priority, ..of.clone() };
                TrialCase { trial: Trial::Execution(Execution { work: *work, ..of }), cpu, policy }
            }));
        }
    }
    cases
}

/// What a run may last: all of them have to fit into the budget.
fn execution_ns(sizes: usize, runs: u32, effort: &CostEffort) -> u64 {
    let all = 4.0 * sizes as f64 * f64::from(runs);
    let share = SHARE_FOR_LAPS * effort.budget.time.as_nanos() as f64 / all;
    (share as u64).clamp(SHORTEST_NS, MAX_REALTIME_NS)
}

/// Laps that last `execution_ns` with the largest array in the plain setting, found out once, so
/// that all runs have the same.
fn measure_laps(cpu: u32, work: Work, execution_ns: u64) -> Result<u64> {
    // Three samples of a tenth: the fastest says what an undisturbed run lasts.
    let batching = ring::RingBatching {
        sample_ns: execution_ns.div_ceil(10),
        ..ring::RingBatching::default()
    };
    let assignment = Assignment {
        case_number: 0,
        case: RingCase { work: Some(work), ..pair(Placement::Same { cpu }) }.into(),
        round: 0,
        batching: Batching::of_rings(batching),
        unshared_ratio: None,
    };
    let samples = execute::rehearse(&assignment)?;
    let ns_per_lap = |sample: &RingSample| sample.elapsed_ns as f64 / sample.laps as f64;
    let Some(fastest) = rings(&samples).map(ns_per_lap).reduce(f64::min) else {
        bail!("the calibration gave no sample");
    };
    Ok((execution_ns as f64 / fastest).ceil().max(1.0) as u64)
}

/// What packets go through, and a note where that is not what it should be.
fn wire(noise: Noise, notices: &mut Vec<Notice>) -> PacketWire {
    if noise != Noise::Net {
        return PacketWire::default();
    }
    let (wire, why) = trial::wire();
    if let Some(why) = why {
        let text = format!(
            "packets go through the loopback, without the work of a device: {why} (a device \
                needs CAP_NET_ADMIN or user namespaces, and CONFIG_VETH)"
        );
        notices.push(text.into());
    }
    wire
}

/// A noise that is not as far away as it should be.
fn shared_core(cpu: u32, away: u32, machine: &Machine) -> Option<String> {
    let siblings = machine.smt_siblings_of(cpu);
    let shared = away != cpu && siblings.is_ok_and(|list| list.contains(away));
    shared.then(|| {
        format!(
            "the only other CPU ({away}) is the SMT sibling of CPU {cpu}: the noise shares its \
                core and private caches even in the augmented setting. Allow a CPU of another \
                core (taskset, cpuset)"
        )
    })
}

/// The augmented setting's policy and priority, and a note on what was granted.
fn policy_here(has_other_cpu: bool, notices: &mut Vec<Notice>) -> (Policy, Option<u32>) {
    let notice = match has_other_cpu.then(|| policy::highest_priority(Policy::Fifo)) {
        Some(Ok(priority)) => {
            notices.push(setting::describe_granted(Policy::Fifo, priority).into());
            return (Policy::Fifo, Some(priority));
        }
        Some(Err(errno)) => {
            let refused = setting::describe_refused(Policy::Fifo, errno);
            format!("{refused}: other work may run on the CPU of the augmented setting")
        }
        None => "this program may use one CPU only, so both settings are the plain one: noise on \
            the measured CPU, SCHED_OTHER (a real-time ring could hang the machine). Allow a \
            second CPU (taskset, cpuset)"
            .to_string(),
    };
    notices.push(notice.into());
    (Policy::Other, None)
}

/// Half, three quarters and the whole of the last private cache.
fn default_sizes(here: &LocalHost, cpu: u32, notices: &mut Vec<Notice>) -> Vec<u64> {
    let cache = here.machine.last_private_cache(cpu).and_then(|cache| cache.size_bytes.ok());
    if let Some(bytes) = cache.as_ref().ok().filter(|bytes| ***bytes >= 4 * ELEMENT_BYTES) {
        let part = |quarters: u64| **bytes / 4 * quarters / ELEMENT_BYTES * ELEMENT_BYTES;
        return [2, 3, 4].map(part).to_vec();
    }
    let why = cache.err().unwrap_or_else(|| "it is too small".to_string());
    notices.push(format!(
        "the last private cache of CPU {cpu} is unknown ({why}): the sizes of the paper are used \
            (--sizes sets others)"
    ).into());
    PAPER_BYTES.to_vec()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use rundata::machine::LogicalCpu;
    use rundata::reading::Reading;

    use super::*;
    use crate::base::values::TimeBudget;

    fn effort(time: Duration) -> CostEffort {
        let budget = TimeBudget { time, extends: false };
        CostEffort { precision: 0.01, budget, rounds: None, seed: 9 }
    }

    #[test]
    fn every_condition_has_the_same_laps_and_its_own_place() {
        let works = [1024, 2048].map(|bytes| Work::new(bytes, 8, AccessKind::Rmw).unwrap());
        let of = Execution {
            setting: ProgramSetting::Plain,
            environment: Environment::Quiet,
            noise: Noise::Net,
            noise_cpu: 3,
            work: works[0],
            laps: 77,
            seed: 9,
            priority: None,
            wire: PacketWire::Veth,
        };
        let cases = cases(&works, 3, &of, (0, Policy::Fifo, Some(99)));
        assert_eq!(cases.len(), 8);
        let mut conditions = BTreeSet::new();
        for case in &cases {
            let Trial::Execution(e) = &case.trial else { panic!("{case:?}") };
            assert_eq!((case.cpu, e.laps, e.seed), (3, 77, 9));
            match e.setting {
                ProgramSetting::Augmented => {
                    assert_eq!((case.policy, e.noise_cpu, e.priority), (Policy::Fifo, 0, Some(99)));
                }
                ProgramSetting::Plain => {
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
        assert_eq!(execution_ns(2, 6, &effort(Duration::from_secs(24))), 325_000_000);
        assert_eq!(execution_ns(2, 6, &effort(Duration::from_secs(3600))), MAX_REALTIME_NS);
        assert_eq!(execution_ns(2, 6, &effort(Duration::from_millis(1))), SHORTEST_NS);
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
        assert!(notices[0].text.contains("one CPU"), "{notices:?}");
    }
}
