//! The conditions under which two results were measured, and whether they may be compared.

use rundata::machine::{FieldDifference, Machine, field_differences};
use rundata::run::ProgramBuild;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::ComparedSetting;
use super::names;
use crate::noise::NoiseLevel;
use crate::results::{CaseResults, Origin, Results};

/// Differences of two results beside their figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conditions {
    /// Differences of the machines that affect the cost of a switch.
    pub bearing: Vec<FieldDifference>,
    /// Other differences of the machines.
    pub others: Vec<FieldDifference>,
    /// Differences of the programs that measured.
    pub program: Vec<FieldDifference>,
    /// The kernel, where both ran on the same and it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_kernel: Option<String>,
    /// Reasons why the comparison is not fair, or what it leaves open; empty when it is fair.
    pub warnings: Vec<String>,
}

/// Starts of machine fields that affect the cost of a switch, in the order in which differences are
/// listed, and their names.
const BEARING_FIELDS: &[(&str, &str)] = &[
    ("cpu.models", "CPU"),
    ("kernel.release", "kernel"),
    ("kernel.version", "kernel"),
    ("kernel.banner", "kernel"),
    ("kernel.command_line", "kernel command line"),
    ("mitigations", "mitigations"),
    ("scheduler.name", "scheduler"),
    ("scheduler.sched_ext", "scheduler"),
    ("scheduler.features", "scheduler features"),
    ("scheduler.tunables", "scheduler tuning"),
    ("scheduler.sysctls", "scheduler tuning"),
    ("scheduler.has_core_cookie", "core scheduling"),
    ("kernel.preemption", "preemption"),
    ("kernel.hz", "timer frequency"),
    ("kernel.clock_source", "clock source"),
    ("kernel.sched_rt_runtime_us", "real-time limit"),
    ("frequency", "frequency settings"),
    ("virtualization", "virtualization"),
    ("cpu.smt_control", "SMT"),
    ("cpu.isolated", "isolated CPUs"),
    ("cpu.nohz_full", "tickless CPUs"),
    ("cpu.online", "number of CPUs"),
    ("scheduler.halt_poll", "halt polling"),
    ("cgroup.cpu_quota", "CPU quota"),
    ("cgroup.cpu_levels", "control group depth"),
    ("memory.thp_enabled", "huge pages"),
    ("numa", "memory nodes"),
];

/// End of the field of a CPU model that may differ within one model.
const MICROCODE: &str = ".microcode";

fn rank(difference: &FieldDifference) -> Option<usize> {
    BEARING_FIELDS.iter().position(|(start, _)| difference.field.starts_with(start))
}

/// Returns the rank and the name of a difference of two machines that affects the cost of a switch;
/// `None` where it does not.
pub(crate) fn bearing_kind(difference: &FieldDifference) -> Option<(usize, &'static str)> {
    let rank = rank(difference)?;
    if difference.field.ends_with(MICROCODE) {
        return Some((rank, "microcode"));
    }
    let (_, kind) = BEARING_FIELDS[rank];
    Some((rank, kind))
}

impl Conditions {
    /// Compares the conditions of two results. `paired` are the halves of a session.
    pub(super) fn from_results(
        base: &Results,
        new: &Results,
        across: Option<ComparedSetting>,
        paired: bool,
    ) -> Self {
        let mut conditions = match (&base.side.origin, &new.side.origin) {
            (Origin::Run { build: base_build, .. }, Origin::Run { build: new_build, .. }) => {
                Self::from_runs(base, new, across, [base_build, new_build])
            }
            _ => Self {
                bearing: Vec::new(),
                others: Vec::new(),
                program: Vec::new(),
                same_kernel: None,
                warnings: vec![publication_warning(base, new)],
            },
        };
        for results in [base, new] {
            add_result_warnings(&mut conditions.warnings, results);
        }
        // The prefixes of a session are meant to change CPU and priority.
        let is_asked = paired || across == Some(ComparedSetting::Placement);
        if !is_asked && base.noise.is_some() && new.noise.is_some() {
            conditions.warnings.extend(detail_warnings(base, new));
        }
        conditions
    }

    /// Compares machine, kernel and program of two runs.
    fn from_runs(
        base: &Results,
        new: &Results,
        across: Option<ComparedSetting>,
        [base_build, new_build]: [&ProgramBuild; 2],
    ) -> Self {
        let (mut bearing, mut others) = (Vec::new(), Vec::new());
        for difference in base.machine.differences(&new.machine) {
            let list = if rank(&difference).is_some() { &mut bearing } else { &mut others };
            list.push(difference);
        }
        bearing.sort_by_key(rank);
        let mut warnings = Vec::new();
        let mut same_kernel = None;
        if !has_difference(&bearing, ComparedSetting::Kernel) {
            same_kernel = base.machine.kernel.release.known().cloned();
        }
        match (across, &same_kernel) {
            (Some(ComparedSetting::Kernel), Some(release)) => {
                warnings.push(format!("both ran on the same kernel, {release}"));
            }
            (Some(setting), _) if setting.is_of_machine() && !has_difference(&bearing, setting) => {
                warnings.push(same_setting(&base.machine, setting));
            }
            _ => {}
        }
        if base.side.name == new.side.name {
            warnings.push(format!("{}: both are this run", base.side.name));
        }
        warnings.extend(machine_warning(&bearing, across));
        warnings.extend(build_warning(base_build, new_build));
        let program = field_differences("build", base_build, new_build);
        Self { bearing, others, program, same_kernel, warnings }
    }
}

/// Returns whether a difference of two machines is one of the setting. Governors differ by frequency
/// policy: `frequency.policies[0].governor`.
fn is_part_of(difference: &FieldDifference, setting: ComparedSetting) -> bool {
    let field = &difference.field;
    match setting {
        ComparedSetting::Kernel => field.starts_with("kernel."),
        ComparedSetting::Scheduler => {
            field.starts_with("scheduler.name") || field.starts_with("scheduler.sched_ext")
        }
        ComparedSetting::Features => field.starts_with("scheduler.features"),
        ComparedSetting::Preemption => field.starts_with("kernel.preemption"),
        ComparedSetting::Governor => {
            field.starts_with("frequency.policies") && field.ends_with(".governor")
        }
        ComparedSetting::Policy
        | ComparedSetting::Placement
        | ComparedSetting::Link
        | ComparedSetting::Kind => false,
    }
}

fn has_difference(differences: &[FieldDifference], setting: ComparedSetting) -> bool {
    differences.iter().any(|difference| is_part_of(difference, setting))
}

/// Returns the warning that a setting of the machine, whose effect is asked for, does not differ.
fn same_setting(machine: &Machine, setting: ComparedSetting) -> String {
    let why = match setting {
        ComparedSetting::Scheduler => machine.scheduler.name.why(),
        ComparedSetting::Features => machine.scheduler.features.why(),
        ComparedSetting::Preemption => machine.kernel.preemption.model.why(),
        ComparedSetting::Governor => machine.frequency.policies.why(),
        _ => None,
    };
    match why {
        Some(why) => format!("--across {setting}: it is not known of the first run ({why})"),
        None => format!("--across {setting}: it does not differ between the two"),
    }
}

/// Warns of several differences of the machines, or of another CPU. A difference of the kernel that
/// is asked for is none.
fn machine_warning(bearing: &[FieldDifference], across: Option<ComparedSetting>) -> Option<String> {
    let mut kinds: Vec<&str> = Vec::new();
    for difference in bearing {
        if across.is_some_and(|setting| is_part_of(difference, setting)) {
            continue;
        }
        if let Some((_, kind)) = bearing_kind(difference) {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
    }
    let list = kinds.join(", ");
    let why = if kinds.contains(&"CPU") {
        format!("these are different machines ({list} differ)")
    } else if kinds.len() > 1 {
        format!("{list} differ, and the ratio does not say which of them caused it")
    } else {
        return None;
    };
    Some(format!("not fair as a test of one change: {why}"))
}

fn build_warning(base: &ProgramBuild, new: &ProgramBuild) -> Option<String> {
    let (base_profile, new_profile) = (&base.profile, &new.profile);
    if base_profile != new_profile {
        return Some(format!(
            "not fair: one is of a {base_profile} build, the other of a {new_profile} build of \
             this program"
        ));
    }
    if base.version == new.version && base.commit == new.commit {
        return None;
    }
    let why = "different builds of this program: a change of the measured code would be in the \
        ratio";
    Some(why.to_string())
}

fn publication_warning(base: &Results, new: &Results) -> String {
    let [base_name, new_name] = names(&base.side, &new.side);
    let run_name = match (is_published(base), is_published(new)) {
        (true, true) => {
            return "published figures have no interval: no answer is possible".to_string();
        }
        (true, false) => new_name,
        (false, _) => base_name,
    };
    format!(
        "different machines; the published figure has no interval: the one shown is of {run_name}"
    )
}

fn is_published(results: &Results) -> bool {
    matches!(results.side.origin, Origin::Publication { .. })
}

/// Adds the warnings from reading a run's file, and the noise of its machine.
fn add_result_warnings(warnings: &mut Vec<String>, results: &Results) {
    let label = &results.side.label;
    for warning in &results.warnings {
        warnings.push(format!("{label}: {warning}"));
    }
    let Some(noise) = &results.noise else { return };
    let advice = match noise.level {
        NoiseLevel::Unusable => "; measure again",
        NoiseLevel::Noisy => "",
        NoiseLevel::Quiet | NoiseLevel::Unknown => return,
    };
    let reason = noise.reasons.first().map_or(String::new(), |reason| format!(": {reason}"));
    warnings.push(format!("{label}: {}{reason}{advice}", noise.level.in_words()));
}

/// Warns of pairs that did not run on the same CPU or at the same priority, once for each
/// difference.
fn detail_warnings(base: &Results, new: &Results) -> Vec<String> {
    let mut warnings: Vec<String> = Vec::new();
    for case in &new.cases {
        let is_same = |candidate: &&CaseResults| candidate.labels == case.labels;
        let Some(partner) = base.cases.iter().find(is_same) else { continue };
        for ((name, base_value), (_, new_value)) in partner.details.iter().zip(&case.details) {
            let warning = format!("measured on different {name}s: {base_value} and {new_value}");
            if base_value != new_value && !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
    }
    warnings
}
