//! Conversion of a record of `switchcost run` into results, which comparisons and exports take.

use std::collections::BTreeMap;

use analysis::estimate::{Estimate, SHARED_LAUNCH_SCATTER};
use analysis::results::{
    CaseFigure, CaseResults, ComparisonSide, Labels, LaunchFigure, Origin, Results,
};
use stats::normal_quantile;

use super::findings::{CommandSummary, ComparedTime, complete_runs, runs_of_command};
use super::record::CommandUseRecord;

/// Name of `switchcost run` in place of the experiment of a stored run.
const EXPERIMENT_NAME: &str = "run";

/// Returns the results of a record; `name` is the file that it was read from.
///
/// The scatter of a command's times between two sessions is unknown. It is assumed to be that of
/// costs on a shared core.
pub(crate) fn build_results(record: &CommandUseRecord, name: String) -> Results {
    let cpu = record.machine.cpu_name().map_or("unknown CPU", String::as_str);
    let kernel = record.machine.kernel.release.known().map_or("unknown system", String::as_str);
    let mut cases = Vec::new();
    for summary in &record.commands {
        cases.push(case_results(record, summary));
    }
    Results {
        side: ComparisonSide {
            label: name.clone(),
            name,
            experiment: EXPERIMENT_NAME.to_string(),
            origin: Origin::Run {
                started: record.started.clone(),
                build: record.build.clone(),
                session: None,
            },
            machine: format!("{cpu}, {kernel}"),
            launches: 1,
        },
        machine: record.machine.clone(),
        noise: None,
        clock_ghz: None,
        seed: record.plan.seed,
        launch_scatter: SHARED_LAUNCH_SCATTER,
        case_scatters: Vec::new(),
        warnings: Vec::new(),
        cases,
    }
}

fn case_results(record: &CommandUseRecord, summary: &CommandSummary) -> CaseResults {
    let title = record.plan.label(summary.number);
    let runs = runs_of_command(&complete_runs(&record.runs), summary.number);
    let mut figures = BTreeMap::new();
    for time in ComparedTime::ALL {
        let Some(figure) = summary.figure(time.name()) else { continue };
        let by_round = runs.iter().map(|run| (run.round, time.read(&run.used) as f64)).collect();
        let estimate = Some(with_standard_error(figure.estimate));
        let launch =
            LaunchFigure { by_round, estimate, is_complete: !runs.is_empty(), clock: None };
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

/// Returns an estimate with the standard error that its interval stands for, computed on the
/// logarithm.
///
/// Times of commands have long tails: their standard error can be larger than the median, although
/// the median itself is well known. A median of 0.9 ms with the interval 0.8 to 3.9 ms has the
/// relative error ln(3.9 / 0.8) / 2 / 1.96, 40 %.
fn with_standard_error(estimate: Estimate) -> Estimate {
    let mut standard_error = None;
    if let (Some(interval), Some(quantile)) =
        (estimate.interval(), normal_quantile(estimate.confidence))
    {
        if interval.low > 0.0 {
            let half_width = (interval.high / interval.low).ln() / 2.0;
            standard_error = Some(half_width / quantile * estimate.value);
        }
    }
    Estimate { standard_error, ..estimate }
}
