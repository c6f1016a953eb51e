//! Chooses the stored run whose costs by working set price a program's switches: the run that was
//! asked for, or else the best one of this machine. `analysis::program::choose` ranks them.

use std::collections::HashMap;
use std::path::PathBuf;

use analysis::program::{
    CandidateWorth, CostProfile, NO_PROFILE, ProfileCandidate, ProfileGrade, WorkingSet, choose,
    clock_of, cost_at, direct, is_clean, is_of_two, is_walk, points_of, rough_points_of, short,
    unfinished,
};
use analysis::record::RingRecord;
use analysis::speed::clock_ghz;
use anyhow::{Error, Result};
use rundata::experiment::Experiment;
use rundata::machine::Machine;
use rundata::plan::Plan;
use rundata::ring::{MemberKind, Policy, RingCase, Walk};
use rundata::run::{Header, Run};

use super::stored_runs::{age_s, difference_notice, foreign_fields, newest_runs, this_machine};
use crate::base::failure::usage;
use crate::engine::execute::build_info;
use crate::engine::store::{StoredRun, find, header, read};

/// Runs that may be the profile without being asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AcceptedRuns {
    /// Runs of `cost`.
    Costs,
    /// Runs of `cost`, or else quick measurements of `run`, whose costs of a second's measurement
    /// serve no other command.
    CostsAndQuick,
}

impl AcceptedRuns {
    fn includes(self, header: &Header) -> bool {
        let spans = header.plan.spans();
        spans.iter().any(|(experiment, _)| *experiment == Experiment::Cost)
            || self == Self::CostsAndQuick && header.is_quick
    }
}

/// A cost profile, and why it is this one.
#[derive(Clone, Debug)]
pub(crate) struct ChosenProfile {
    pub(crate) profile: CostProfile,
    /// Run file of the profile.
    pub(crate) path: PathBuf,
    /// Reason for the choice.
    pub(crate) why: String,
    /// Facts that lower its worth beside the grade of its costs: another machine, a run that did not
    /// end.
    pub(crate) notices: Vec<String>,
}

/// Returns the newest costs of this machine, for any working set.
///
/// # Errors
/// Says why there are none.
pub(crate) fn newest_profile() -> Result<ChosenProfile, String> {
    best_profile(None, None, AcceptedRuns::Costs, &this_machine())
}

/// Finds the profile that was asked for by name.
///
/// # Errors
/// Fails if there is no such run, or it has no costs by working set.
pub(crate) fn find_profile(name: &str) -> Result<ChosenProfile> {
    let entry = find(name)?;
    let run = part_with_costs(read(&entry.path)?);
    if let Some(why) = unfit_reason(&run.header.plan) {
        return Err(refuse(name, &why));
    }
    let profile = profile_from_run(&run, entry.name.clone(), current_clock_ghz());
    if profile.points.is_empty() {
        return Err(refuse(name, "none of its rings of two processes has enough rounds"));
    }
    let mut notices = Vec::new();
    notices.extend(difference_notice(&run.header.machine, &this_machine(), &entry.name));
    if let Some(why) = unfinished(run.end.map(|end| end.reason)) {
        notices.push(format!("the cost profile ({}): {why}", entry.name));
    }
    let why = "asked for with --profile".to_string();
    Ok(ChosenProfile { profile, path: entry.path, why, notices })
}

fn refuse(name: &str, why: &str) -> Error {
    usage(format!(
        "--profile {name}: no costs by working set: {why} (accepted: a run of `switchcost cost`, \
         or of `ring --members 2 --work SIZE`)"
    ))
}

/// Returns the part of a run of several experiments that has the costs by working set; any other
/// run as it is.
fn part_with_costs(run: Run) -> Run {
    if run.header.plan.parts.is_empty() {
        return run;
    }
    for part in analysis::parts::part_runs(&run) {
        if part.header.plan.experiment == Experiment::Cost {
            return part;
        }
    }
    run
}

/// Like [`part_with_costs`], of a plan.
fn plan_with_costs(plan: &Plan) -> Plan {
    for part in plan.part_plans() {
        if part.experiment == Experiment::Cost {
            return part;
        }
    }
    plan.clone()
}

/// A property that a ring needs to have a cost by working set.
struct CaseRequirement {
    is_met: fn(&RingCase) -> bool,
    /// Reason to refuse a run of which no ring meets it.
    refusal: &'static str,
}

/// Requirements in the order in which the rings of a plan are narrowed down.
const CASE_REQUIREMENTS: [CaseRequirement; 5] = [
    CaseRequirement { is_met: |case| case.members == 2, refusal: "it has no ring of two" },
    CaseRequirement {
        is_met: |case| case.kind == MemberKind::Process,
        refusal: "its members are threads",
    },
    CaseRequirement { is_met: is_of_two, refusal: "its members run on several CPUs" },
    CaseRequirement { is_met: |case| case.work.is_some(), refusal: "its rings of two do no work" },
    CaseRequirement { is_met: walks_array, refusal: "it touches one line a page (--tlb)" },
];

fn ring_cases(plan: &Plan) -> Vec<&RingCase> {
    plan.rings().map(|(_, case)| case).collect()
}

fn walks_array(case: &RingCase) -> bool {
    case.work.as_ref().is_some_and(is_walk)
}

/// Returns why a plan has no costs by working set; none if it has.
fn unfit_reason(plan: &Plan) -> Option<String> {
    let mut cases = ring_cases(plan);
    if cases.is_empty() {
        return Some(format!("it is a run of `{}`, without rings", plan.experiment));
    }
    for requirement in &CASE_REQUIREMENTS {
        cases.retain(|case| (requirement.is_met)(case));
        if cases.is_empty() {
            return Some(requirement.refusal.to_string());
        }
    }
    None
}

/// Returns the array sizes of the rings of two, 0 for those without work; empty if none works.
fn array_sizes(plan: &Plan) -> Vec<u64> {
    let mut sizes = Vec::new();
    for case in ring_cases(plan) {
        if is_of_two(case) && case.work.as_ref().is_none_or(is_walk) {
            sizes.push(case.work.map_or(0, |work| work.bytes));
        }
    }
    if sizes.iter().all(|size| *size == 0) {
        sizes.clear();
    }
    sizes
}

/// Describes a stored run by its header and its end; none if it cannot be the profile.
fn describe_candidate(
    entry: &StoredRun,
    set: Option<WorkingSet>,
    accepted: AcceptedRuns,
    here: &Machine,
) -> Option<ProfileCandidate> {
    // A run that cannot be read is passed over.
    let header = header(&entry.path).ok().filter(|header| accepted.includes(header))?;
    let plan = plan_with_costs(&header.plan);
    let sizes = array_sizes(&plan);
    let (least, most) = (*sizes.iter().min()?, *sizes.iter().max()?);
    Some(ProfileCandidate {
        end: entry.brief().ok().and_then(|brief| brief.end),
        foreign: foreign_fields(&header.machine, here),
        is_quick: header.is_quick,
        apart: count_foreign_settings(&plan, set),
        encloses: set.is_none_or(|set| least <= set.low_bytes && set.high_bytes <= most),
        name: header.name.unwrap_or_else(|| short(&entry.name)),
    })
}

/// Counts the settings of a program that no ring of a plan has: the normal policy, a pipe, as many
/// members as the program has working sets on a CPU, and the walks and the yields that price
/// sampled accesses.
fn count_foreign_settings(plan: &Plan, set: Option<WorkingSet>) -> u32 {
    let mut rings = ring_cases(plan);
    rings.retain(|case| case.members > 1 && case.is_one_cpu() && !case.has_several_rings());
    let mut walking = rings.clone();
    walking.retain(|case| walks_array(case));
    let mut has_setting = vec![
        walking.iter().any(|case| case.policy == Policy::Other),
        walking.iter().any(|case| case.link == "pipe"),
    ];
    if let Some(pattern) = set.and_then(|set| set.sampled) {
        let min_members = pattern.sets_per_cpu / 2.0;
        has_setting.push(walking.iter().any(|case| f64::from(case.members) >= min_members));
        has_setting.push(has_walk(&rings, Walk::Chase));
        has_setting.push(has_walk(&rings, Walk::Whole));
        has_setting.push(rings.iter().any(|case| case.link == "yield"));
    }
    has_setting.iter().filter(|has_setting| !**has_setting).count() as u32
}

fn has_walk(rings: &[&RingCase], walk: Walk) -> bool {
    rings.iter().any(|case| case.work.is_some_and(|work| work.walk == walk))
}

/// Returns the costs of a run, at the clock that there is now. If no cost has an interval, they are
/// those of the few rounds that there are.
fn profile_from_run(run: &Run, name: String, clock_ghz: Option<f64>) -> CostProfile {
    let record = RingRecord::from_run(run);
    let measured_ghz = record.cases.iter().find_map(clock_of);
    let points = points_of(&record, clock_ghz);
    let (grade, points) = if is_clean(&record) {
        (ProfileGrade::FullSpeed, points)
    } else if direct(&points).is_some() {
        (ProfileGrade::BusyCore, points)
    } else {
        (ProfileGrade::FewRounds, rough_points_of(&record))
    };
    CostProfile {
        run: name,
        name: run.header.name.clone(),
        age_s: age_s(&run.header),
        measured_ghz,
        clock_ghz: clock_ghz.filter(|_| measured_ghz.is_some()),
        grade,
        points,
    }
}

/// Returns the clock of the core that this runs on, in GHz, if that can be told.
fn current_clock_ghz() -> Option<f64> {
    let quantum_ns = probe::busy_quantum_ns()?;
    clock_ghz(quantum_ns as f64, &build_info().target)
}

/// Returns the costs of the stored run that fits best, by [`choose`]. `between_ns` is the CPU time
/// between two switches, as in [`cost_at`].
///
/// # Errors
/// Says why no stored run serves.
pub(super) fn best_profile(
    set: Option<WorkingSet>,
    between_ns: Option<f64>,
    accepted: AcceptedRuns,
    here: &Machine,
) -> Result<ChosenProfile, String> {
    let (mut runs, mut candidates) = (Vec::new(), Vec::new());
    for run in newest_runs().map_err(|error| format!("{error:#}"))? {
        if let Some(candidate) = describe_candidate(&run, set, accepted, here) {
            runs.push(run);
            candidates.push(candidate);
        }
    }
    // Reading the clock takes 50 ms, in vain if nothing is stored.
    let clock_ghz = if runs.is_empty() { None } else { current_clock_ghz() };
    let mut loaded: HashMap<usize, ChosenProfile> = HashMap::new();
    let number = choose(&candidates, |number| {
        let Some(mut chosen) = load_profile(&runs[number], clock_ghz, here) else {
            return CandidateWorth::None("it has no cost of a switch between two processes");
        };
        let points = &chosen.profile.points;
        let covers_set = set.map(|set| cost_at(set, between_ns, points).is_ok());
        chosen.why = choice_reason(&candidates[number], covers_set == Some(true));
        let grade = chosen.profile.grade;
        loaded.insert(number, chosen);
        CandidateWorth::Some { grade, answers: covers_set != Some(false) }
    })?;
    loaded.remove(&number).ok_or_else(|| NO_PROFILE.to_string())
}

/// Loads the costs of a stored run; none without the cost of a switch itself. The reason to choose
/// it is left empty.
fn load_profile(
    entry: &StoredRun,
    clock_ghz: Option<f64>,
    here: &Machine,
) -> Option<ChosenProfile> {
    let run = part_with_costs(read(&entry.path).ok()?);
    let profile = profile_from_run(&run, entry.name.clone(), clock_ghz);
    direct(&profile.points)?;
    let notices = difference_notice(&run.header.machine, here, &entry.name).into_iter().collect();
    Some(ChosenProfile { profile, path: entry.path.clone(), why: String::new(), notices })
}

fn choice_reason(candidate: &ProfileCandidate, covers_set: bool) -> String {
    let kind = if candidate.is_quick { "quick measurement of `run`" } else { "run of `cost`" };
    let reach = if covers_set { " that covers the working set" } else { "" };
    format!("the best {kind} on this machine{reach}")
}

#[cfg(test)]
mod tests {
    use rundata::case::Sample;
    use rundata::ring::{AccessKind, Work};

    use super::*;

    /// Returns a captured run of so many rounds whose rings are measured with a working set, too.
    fn run_with_work(rounds: u32) -> Run {
        let text = include_str!("../../../../rundata/tests/fixtures/run-v1.jsonl");
        let mut run = Run::parse(text).unwrap();
        let count = run.header.plan.cases.len();
        for original in [0, 1] {
            let mut case = run.header.plan.ring(original).unwrap().clone();
            case.work = Some(Work::new(4096, 8, AccessKind::Rmw).unwrap());
            run.header.plan.cases.push(case.into());
            let rings: Vec<_> = rundata::case::rings(&run.samples).cloned().collect();
            for mut sample in rings.into_iter().filter(|sample| sample.case == original) {
                sample.case = count + original;
                sample.elapsed_ns += 1000 * sample.counters.switches();
                run.samples.push(sample.into());
            }
        }
        run.samples.retain(|sample| match sample {
            Sample::Ring(sample) => sample.round < rounds,
            _ => true,
        });
        run
    }

    fn profile_of_rounds(rounds: u32) -> CostProfile {
        profile_from_run(&run_with_work(rounds), "20261128T101500".into(), None)
    }

    /// A busy machine leaves so few rounds that no cost has an interval.
    #[test]
    fn a_profile_of_few_rounds_says_so() {
        assert_ne!(profile_of_rounds(u32::MAX).grade, ProfileGrade::FewRounds);
        let few = profile_of_rounds(2);
        assert_eq!(few.grade, ProfileGrade::FewRounds);
        assert!(direct(&few.points).is_some_and(|cost| cost.low_ns > 0.0), "{few:?}");
        assert!(few.called().ends_with(", which was measured in few rounds"), "{}", few.called());
        assert_eq!(direct(&profile_of_rounds(0).points), None);
    }
}
