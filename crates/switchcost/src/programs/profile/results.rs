//! Conversion of a profile into results, which comparisons take: a case for each function of each
//! allocator, and for all functions together. Sizes stay in the profile: each further case would
//! widen the intervals of all.

use std::collections::BTreeMap;

use analysis::results::{CaseFigure, CaseResults, Labels, LaunchFigure, Quantity, Results};

use super::findings::{CallProfile, GroupCost};
use super::table::{function_name, library_name};
use crate::programs::records::{ResultsSource, results_of_record};

/// Name of `switchcost profile` in place of the experiment of a stored run.
const EXPERIMENT_NAME: &str = "profile";

/// Returns the results of a profile; `name` is the file that it was read from.
pub(crate) fn build_results(profile: &CallProfile, name: String) -> Results {
    let mut cases = Vec::new();
    for row in &profile.rows {
        if row.group.bytes.is_none() {
            cases.push(case_results(profile, row, cases.len()));
        }
    }
    let origin = ResultsSource {
        experiment: EXPERIMENT_NAME,
        started: &profile.started,
        build: &profile.build,
        machine: &profile.machine,
        seed: profile.plan.seed,
    };
    results_of_record(name, origin, cases)
}

fn case_results(profile: &CallProfile, row: &GroupCost, number: usize) -> CaseResults {
    let (mut by_round, mut iterations) = (BTreeMap::new(), Vec::new());
    for launch in &profile.launches {
        if launch.allocator != row.allocator {
            continue;
        }
        if let Some(sum) = launch.sum(&row.group) {
            by_round.insert(launch.round, sum.net_ns_per_call());
            iterations.push((launch.round, sum.calls));
        }
    }
    let estimate = Some(row.ns_per_call.with_error_of_interval());
    let launch =
        LaunchFigure { by_round, estimate, is_complete: true, clock: None, launch_scatter: None };
    let function = function_name(row);
    let allocator = profile.plan.allocator(row.allocator);
    let title = if profile.plan.allocators.is_empty() {
        function.clone()
    } else {
        format!("{function} by {}", library_name(allocator))
    };
    CaseResults {
        number,
        experiment: EXPERIMENT_NAME,
        title,
        labels: Labels::from([
            ("function".to_string(), function),
            ("allocator".to_string(), allocator.to_string()),
        ]),
        details: Labels::new(),
        figures: BTreeMap::from([(Quantity::CallNs, CaseFigure::Measured(vec![launch]))]),
        summary: None,
        failure: None,
        iterations,
    }
}
