//! Under which conditions two results were measured, and whether they may be compared.

use rundata::machine::{FieldDifference, field_differences};
use rundata::run::ProgramBuild;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::ComparedSetting;
use super::names;
use crate::noise::NoiseLevel;
use crate::results::{CaseResults, Origin, Results};

/// What differs beside the figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conditions {
    /// What differs in the machines and affects the cost of a switch: what is listed first.
    pub bearing: Vec<FieldDifference>,
    /// What else differs in them.
    pub others: Vec<FieldDifference>,
    /// What differs in the programs that measured.
    pub program: Vec<FieldDifference>,
    /// The kernel, where both ran on the same and it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_kernel: Option<String>,
    /// Why the comparison is not fair, or what it leaves open; empty when it is.
    pub warnings: Vec<String>,
}

/// What affects the cost of a switch, by the start of its field, in the order in which it is
/// listed; and what it is in words.
const BEARING: &[(&str, &str)] = &[
    ("cpu.models", "CPU"),
    ("kernel.release", "kernel"),
    ("kernel.version", "kernel"),
    ("kernel.banner", "kernel"),
    ("kernel.command_line", "kernel command line"),
    ("mitigations", "mitigations"),
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
    ("cgroup.cpu_quota", "CPU quota"),
    ("numa", "memory nodes"),
];

/// Of a CPU model, what is no other model.
const MICROCODE: &str = ".microcode";

fn rank(difference: &FieldDifference) -> Option<usize> {
    BEARING.iter().position(|(start, _)| difference.field.starts_with(start))
}

/// What of a machine a difference is of, where that affects the cost of a switch; and its rank
/// among such.
pub(crate) fn bears(difference: &FieldDifference) -> Option<(usize, &'static str)> {
    Some((rank(difference)?, kind(difference)?))
}

fn kind(difference: &FieldDifference) -> Option<&'static str> {
    match difference.field.ends_with(MICROCODE) {
        true => Some("microcode"),
        false => rank(difference).map(|rank| BEARING[rank].1),
    }
}

impl Conditions {
    pub(super) fn of(
        base: &Results,
        new: &Results,
        across: Option<ComparedSetting>,
        paired: bool,
    ) -> Self {
        let mut warnings = Vec::new();
        let (mut bearing, mut others, mut program) = (Vec::new(), Vec::new(), Vec::new());
        let mut same_kernel = None;
        match (&base.side.origin, &new.side.origin) {
            (Origin::Run { build: one, .. }, Origin::Run { build: other, .. }) => {
                let all = base.machine.differences(&new.machine);
                (bearing, others) = all.into_iter().partition(|d| rank(d).is_some());
                bearing.sort_by_key(rank);
                let is_of_kernel = |one: &FieldDifference| one.field.starts_with("kernel.");
                let release = base.machine.kernel.release.known();
                same_kernel = release.filter(|_| !bearing.iter().any(is_of_kernel)).cloned();
                if let (Some(ComparedSetting::Kernel), Some(release)) = (across, &same_kernel) {
                    warnings.push(format!("both ran on the same kernel, {release}"));
                }
                program = field_differences("build", one, other);
                if base.side.name == new.side.name {
                    warnings.push(format!("{}: both are this run", base.side.name));
                }
                warnings.extend(of_machines(&bearing, across));
                warnings.extend(of_builds(one, other));
            }
            _ => warnings.push(of_publications(base, new)),
        }
        warnings.extend([base, new].into_iter().flat_map(of_results));
        let is_asked = paired || across == Some(ComparedSetting::Placement);
        warnings.extend(of_details(base, new, is_asked));
        Self { bearing, others, program, same_kernel, warnings }
    }
}

fn of_machines(bearing: &[FieldDifference], across: Option<ComparedSetting>) -> Option<String> {
    // Each once, in their order.
    let mut kinds: Vec<&str> = Vec::new();
    let is_asked = |difference: &&FieldDifference| {
        across == Some(ComparedSetting::Kernel) && difference.field.starts_with("kernel.")
    };
    for kind in bearing.iter().filter(|difference| !is_asked(difference)).filter_map(kind) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let all = kinds.join(", ");
    let how = match (kinds.contains(&"CPU"), kinds.len()) {
        (true, _) => format!("these are different machines ({all} differ)"),
        (false, 0..=1) => return None,
        _ => format!("{all} differ, and the ratio does not say which of them caused it"),
    };
    Some(format!("not fair as a test of one change: {how}"))
}

fn of_builds(base: &ProgramBuild, new: &ProgramBuild) -> Option<String> {
    let (one, other) = (&base.profile, &new.profile);
    if one != other {
        return Some(format!(
            "not fair: one is of a {one} build, the other of a {other} build of this program"
        ));
    }
    let why = "different builds of this program: a change of the measured code would be in the \
        ratio";
    (base.version != new.version || base.commit != new.commit).then(|| why.to_string())
}

fn of_publications(base: &Results, new: &Results) -> String {
    let is_published =
        |results: &Results| matches!(results.side.origin, Origin::Publication { .. });
    let [base_name, new_name] = names(&base.side, &new.side);
    let whose = if is_published(base) { new_name } else { base_name };
    match is_published(base) && is_published(new) {
        true => "published figures have no interval: no answer is possible".to_string(),
        false => format!(
            "different machines; the published figure has no interval: the one shown is of {whose}"
        ),
    }
}

/// What its file could not tell, and the noise of its machine.
fn of_results(results: &Results) -> impl Iterator<Item = String> {
    let noise = results.noise.iter().filter_map(|noise| {
        let why = noise.reasons.first().map_or(String::new(), |why| format!(": {why}"));
        let level = noise.level.in_words();
        match noise.level {
            NoiseLevel::Unusable => Some(format!("{level}{why}; measure again")),
            NoiseLevel::Noisy => Some(format!("{level}{why}")),
            NoiseLevel::Quiet | NoiseLevel::Unknown => None,
        }
    });
    let all = results.warnings.iter().cloned().chain(noise);
    all.map(move |what| format!("{}: {what}", results.side.label))
}

/// Pairs that did not run on the same CPU, or not at the same priority: each kind once. A session's
/// prefixes are meant to do that.
fn of_details(base: &Results, new: &Results, paired: bool) -> Vec<String> {
    let mut warnings: Vec<String> = Vec::new();
    if paired || base.noise.is_none() || new.noise.is_none() {
        return warnings;
    }
    for case in &new.cases {
        let is_same = |candidate: &&CaseResults| candidate.labels == case.labels;
        let Some(partner) = base.cases.iter().find(is_same) else { continue };
        for ((name, one), (_, other)) in partner.details.iter().zip(&case.details) {
            let warning = format!("measured on different {name}s: {one} and {other}");
            if one != other && !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
    }
    warnings
}
