//! Conversion of a record of `switchcost run` into results, which comparisons and exports take.

use std::collections::BTreeMap;

use analysis::results::{CaseFigure, CaseResults, Labels, LaunchFigure, Results};

use super::findings::{CommandSummary, ComparedTime, complete_runs, runs_of_command};
use super::record::CommandUseRecord;
use crate::programs::records::{ResultsSource, results_of_record};

/// Name of `switchcost run` in place of the experiment of a stored run.
const EXPERIMENT_NAME: &str = "run";

/// Returns the results of a record; `name` is the file that it was read from.
pub(crate) fn build_results(record: &CommandUseRecord, name: String) -> Results {
    let mut cases = Vec::new();
    for summary in &record.commands {
        cases.push(case_results(record, summary));
    }
    let origin = ResultsSource {
        experiment: EXPERIMENT_NAME,
        started: &record.started,
        build: &record.build,
        machine: &record.machine,
        seed: record.plan.seed,
    };
    results_of_record(name, origin, cases)
}

fn case_results(record: &CommandUseRecord, summary: &CommandSummary) -> CaseResults {
    let title = record.plan.label(summary.number);
    let runs = runs_of_command(&complete_runs(&record.runs), summary.number);
    let mut figures = BTreeMap::new();
    for time in ComparedTime::ALL {
        let Some(figure) = summary.figure(time.name()) else { continue };
        let by_round = runs.iter().map(|run| (run.round, time.read(&run.used) as f64)).collect();
        let estimate = Some(figure.estimate.with_error_of_interval());
        let launch = LaunchFigure {
            by_round,
            estimate,
            is_complete: !runs.is_empty(),
            clock: None,
            launch_scatter: None,
        };
        figures.insert(time.quantity(), CaseFigure::Measured(vec![launch]));
    }
    CaseResults {
        number: summary.number,
        experiment: EXPERIMENT_NAME,
        labels: Labels::from([("command".to_string(), title.clone())]),
        title,
        details: Labels::new(),
        figures,
        summary: None,
        failure: None,
        iterations: runs.iter().map(|run| (run.round, 1)).collect(),
    }
}
