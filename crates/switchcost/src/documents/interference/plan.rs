//! From the options of `classic experiment interference` to a plan.

use anyhow::{Context, Result, bail};
use probe::assignment::Assignment;
use probe::{placement, policy, trial};
use rundata::case::rings;
use rundata::experiment::Experiment;
use rundata::machine::Machine;
use rundata::notice::Notice;
use rundata::placement::Placement;
use rundata::plan::{Batching, Plan, Stopping};
use rundata::ring::{self, AccessKind, ELEMENT_BYTES, Policy, RingCase, Work};
use rundata::trial::interference::{
    Environment, Execution, MAX_REALTIME_NS, Noise, PacketWire, ProgramSetting,
};
use rundata::trial::{Trial, TrialBatching, TrialCase};

use super::{CostEffort, InterferenceArgs};
use crate::base::failure::usage;
use crate::engine::execute;
use crate::engine::setting::{self, LocalHost, PlanWithNotices, pair};

/// Array sizes of the paper, for a machine whose caches are unknown.
const PAPER_BYTES: [u64; 3] = [256 << 10, 384 << 10, 512 << 10];

/// Share of the budget for the laps themselves; the rest is for starting workers, and for noise that
/// delays the laps.
const LAPS_SHARE: f64 = 0.65;

/// Shortest run in nanoseconds, the mean gap between two events of the noise: so a few events fall
/// into the runs of a condition.
const MIN_EXECUTION_NS: u64 = 100_000_000;

/// Makes the plan for this host, with notices on what is not available.
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
    let works = sizes.iter().map(|bytes| work(*bytes)).collect::<Result<Vec<Work>>>()?;
    let largest = *works.iter().max_by_key(|work| work.bytes).context("no array size")?;
    here.check_memory(
        &format!("--sizes {} in two members", largest.bytes),
        u128::from(largest.bytes) * 2,
        "smaller --sizes",
    )?;
    let settings = [SettingPlan::augmented(cpu, here, &mut notices), SettingPlan::plain(cpu)];
    let wire = choose_wire(args.noise, &mut notices);
    let laps = match laps {
        Some(laps) => laps,
        None => measure_laps(cpu, largest, execution_ns(works.len(), args.runs, effort))?,
    };
    let execution = Execution {
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
    let cases = cases(&works, cpu, &execution, &settings);
    let batching = Batching::of_trials(TrialBatching { trials: 1 });
    // No precision ends the experiment before the runs that were asked for.
    let stopping = Stopping { precision: 0.0, rounds: Some(args.runs), ..effort.stopping() };
    let plan = Plan { stopping, ..effort.plan(Experiment::Interference, cases, batching) };
    Ok((plan, notices))
}

/// Returns the work on an array of a size in bytes: each element is read and written.
fn work(bytes: u64) -> Result<Work> {
    Work::new(bytes, ELEMENT_BYTES, AccessKind::Rmw).map_err(|_| {
        usage(format!("--sizes {bytes}: accepted are multiples of {ELEMENT_BYTES} bytes above 0"))
    })
}

/// The placement of a setting's noise and the policy of its members.
struct SettingPlan {
    setting: ProgramSetting,
    noise_cpu: u32,
    policy: Policy,
    /// Real-time priority of the members, under a real-time policy.
    priority: Option<u32>,
}

impl SettingPlan {
    /// Plans the plain setting: members and noise share a CPU.
    fn plain(cpu: u32) -> Self {
        let setting = ProgramSetting::Plain;
        Self { setting, noise_cpu: cpu, policy: Policy::Other, priority: None }
    }

    /// Plans the augmented setting, which keeps the noise away from the members: on another CPU if
    /// there is one, and under a real-time policy if that is granted. Notices say what is not
    /// available.
    fn augmented(cpu: u32, here: &LocalHost, notices: &mut Vec<Notice>) -> Self {
        let setting = ProgramSetting::Augmented;
        let others = placement::choose_for_controller(&here.allowed, &[cpu], &here.machine);
        let noise_cpu = others.first().copied().unwrap_or(cpu);
        notices.extend(shared_core_note(cpu, noise_cpu, &here.machine).map(Notice::from));
        let priority = realtime_priority(noise_cpu != cpu, notices);
        let policy = if priority.is_some() { Policy::Fifo } else { Policy::Other };
        Self { setting, noise_cpu, policy, priority }
    }
}

/// Returns the cases: every size in both settings, quiet and disturbed. `execution` gives what all
/// cases have in common.
fn cases(
    works: &[Work],
    cpu: u32,
    execution: &Execution,
    settings: &[SettingPlan; 2],
) -> Vec<TrialCase> {
    let mut cases = Vec::new();
    for SettingPlan { setting, noise_cpu, policy, priority } in settings {
        for environment in [Environment::Quiet, Environment::Disturbed] {
            for work in works {
                let execution = Execution {
                    setting: *setting,
                    environment,
                    noise_cpu: *noise_cpu,
                    work: *work,
                    priority: *priority,
                    ..execution.clone()
                };
                cases.push(TrialCase { trial: Trial::Execution(execution), cpu, policy: *policy });
            }
        }
    }
    cases
}

/// Conditions of an array size: two settings, quiet and disturbed.
const CONDITIONS: f64 = 4.0;

/// Returns how long a run may last, in nanoseconds, so that all runs fit into the budget.
fn execution_ns(sizes: usize, runs: u32, effort: &CostEffort) -> u64 {
    let executions = CONDITIONS * sizes as f64 * f64::from(runs);
    let share = LAPS_SHARE * effort.budget.time.as_nanos() as f64 / executions;
    (share as u64).clamp(MIN_EXECUTION_NS, MAX_REALTIME_NS)
}

/// Measures once how many laps last `execution_ns` with the largest array in the plain setting. All
/// runs have this number of laps.
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
    let mut fastest_ns = f64::INFINITY;
    for sample in rings(&samples) {
        fastest_ns = fastest_ns.min(sample.elapsed_ns as f64 / sample.laps as f64);
    }
    if fastest_ns.is_infinite() {
        bail!("the calibration gave no sample");
    }
    Ok((execution_ns as f64 / fastest_ns).ceil().max(1.0) as u64)
}

/// Chooses what packets go through, with a notice where that is not a network device.
fn choose_wire(noise: Noise, notices: &mut Vec<Notice>) -> PacketWire {
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

/// Returns a note if the noise's CPU shares the core of the members' CPU.
fn shared_core_note(cpu: u32, noise_cpu: u32, machine: &Machine) -> Option<String> {
    let siblings = machine.smt_siblings_of(cpu).ok()?;
    if noise_cpu == cpu || !siblings.contains(noise_cpu) {
        return None;
    }
    Some(format!(
        "the only other CPU ({noise_cpu}) is the SMT sibling of CPU {cpu}: the noise shares its \
                core and private caches even in the augmented setting. Allow a CPU of another \
                core (taskset, cpuset)"
    ))
}

/// Returns the real-time priority of the augmented setting, with a notice; absent if it runs under
/// SCHED_OTHER.
fn realtime_priority(has_other_cpu: bool, notices: &mut Vec<Notice>) -> Option<u32> {
    if !has_other_cpu {
        let notice = "this program may use one CPU only, so both settings are the plain one: noise on \
            the measured CPU, SCHED_OTHER (a real-time ring could hang the machine). Allow a \
            second CPU (taskset, cpuset)";
        notices.push(notice.to_string().into());
        return None;
    }
    match policy::highest_priority(Policy::Fifo) {
        Ok(priority) => {
            notices.push(setting::describe_granted(Policy::Fifo, priority).into());
            Some(priority)
        }
        Err(errno) => {
            let refused = setting::describe_refused(Policy::Fifo, errno);
            let notice =
                format!("{refused}: other work may run on the CPU of the augmented setting");
            notices.push(notice.into());
            None
        }
    }
}

/// Returns half, three quarters and the whole of the last private cache, or the sizes of the paper
/// if that is unknown.
fn default_sizes(here: &LocalHost, cpu: u32, notices: &mut Vec<Notice>) -> Vec<u64> {
    let cache = here.machine.last_private_cache(cpu).and_then(|cache| cache.size_bytes.ok());
    let why = match cache {
        Ok(bytes) if *bytes >= 4 * ELEMENT_BYTES => {
            return [2, 3, 4]
                .map(|quarters| *bytes / 4 * quarters / ELEMENT_BYTES * ELEMENT_BYTES)
                .to_vec();
        }
        Ok(_) => "it is too small".to_string(),
        Err(why) => why,
    };
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
        let execution = Execution {
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
        let (setting, priority) = (ProgramSetting::Augmented, Some(99));
        let augmented = SettingPlan { setting, noise_cpu: 0, policy: Policy::Fifo, priority };
        let cases = cases(&works, 3, &execution, &[augmented, SettingPlan::plain(3)]);
        assert_eq!(cases.len(), 8);
        let mut conditions = BTreeSet::new();
        for case in &cases {
            let Trial::Execution(execution) = &case.trial else { panic!("{case:?}") };
            assert_eq!((case.cpu, execution.laps, execution.seed), (3, 77, 9));
            let expected = match execution.setting {
                ProgramSetting::Augmented => (Policy::Fifo, 0, Some(99)),
                ProgramSetting::Plain => (Policy::Other, 3, None),
            };
            assert_eq!((case.policy, execution.noise_cpu, execution.priority), expected);
            conditions.insert(case.trial.to_string());
        }
        assert_eq!(conditions.len(), 8);
    }

    #[test]
    fn runs_fit_the_budget_within_bounds() {
        // 48 runs in 65 % of 24 s.
        assert_eq!(execution_ns(2, 6, &effort(Duration::from_secs(24))), 325_000_000);
        assert_eq!(execution_ns(2, 6, &effort(Duration::from_secs(3600))), MAX_REALTIME_NS);
        assert_eq!(execution_ns(2, 6, &effort(Duration::from_millis(1))), MIN_EXECUTION_NS);
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
        assert!(shared_core_note(1, 0, &machine).is_some_and(|note| note.contains("SMT sibling")));
        assert_eq!(shared_core_note(1, 2, &machine), None);
        assert_eq!(shared_core_note(1, 1, &machine), None);
    }

    #[test]
    fn one_cpu_has_no_real_time_policy_and_says_so() {
        let mut notices = Vec::new();
        assert_eq!(realtime_priority(false, &mut notices), None);
        assert!(notices[0].text.contains("one CPU"), "{notices:?}");
    }
}
