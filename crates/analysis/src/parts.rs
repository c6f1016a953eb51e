//! A run of several experiments (`measure`) as one run of each.

use rundata::case::Sample;
use rundata::notice::Notice;
use rundata::plan::Plan;
use rundata::run::{Failure, Header, Run};

use crate::speed::reference_of_whole;

/// Returns the run of each experiment that the plan has, in the plan's order, so that all that
/// reads a run of an experiment reads its part too. Cases are numbered from 0 in each. A run of
/// one experiment is its own only part.
pub fn part_runs(run: &Run) -> Vec<Run> {
    if run.header.plan.parts.is_empty() {
        return vec![run.clone()];
    }
    let mut parts = Vec::new();
    for (number, (plan, samples)) in split(&run.header.plan, &run.samples).into_iter().enumerate() {
        let header = Header { plan, notices: notices_of_part(run, number), ..run.header.clone() };
        let mut part = Run { samples, ..Run::new(header) };
        part.end.clone_from(&run.end);
        part.resumed.clone_from(&run.resumed);
        part.setting_changes.clone_from(&run.setting_changes);
        part.competing_tasks.clone_from(&run.competing_tasks);
        part.warnings.clone_from(&run.warnings);
        parts.push(part);
    }
    if !run.set_aside.is_empty() {
        for (part, (_, samples)) in parts.iter_mut().zip(split(&run.header.plan, &run.set_aside)) {
            part.set_aside = samples;
        }
    }
    for failure in &run.failures {
        if let Some((part, case)) = run.header.plan.place_of(failure.case) {
            parts[part].failures.push(Failure { case, ..failure.clone() });
        }
    }
    parts
}

/// Returns the notices of a part, and those that are of no part.
fn notices_of_part(run: &Run, part: usize) -> Vec<Notice> {
    let parts = &run.header.plan.parts;
    let is_here = |notice: &&Notice| {
        let is_of_a_part = parts.iter().any(|part| part.notices.contains(notice));
        !is_of_a_part || parts[part].notices.contains(notice)
    };
    run.header.notices.iter().filter(is_here).cloned().collect()
}

/// Returns the plan of each experiment with its samples, their cases numbered as that plan has
/// them.
///
/// The experiments were measured in the same rounds, so that they are judged by one level of an
/// unshared core: that of all samples together.
pub fn split(plan: &Plan, samples: &[Sample]) -> Vec<(Plan, Vec<Sample>)> {
    let mut parts: Vec<(Plan, Vec<Sample>)> = Vec::new();
    let level = reference_of_whole(plan, samples);
    for mut part in plan.part_plans() {
        part.reference.unshared_ratio = level.unshared_ratio;
        part.reference.established = level.established;
        parts.push((part, Vec::new()));
    }
    for sample in samples {
        if let Some((part, case)) = plan.place_of(sample.case()) {
            parts[part].1.push(sample.clone().with_case(case));
        }
    }
    parts
}
