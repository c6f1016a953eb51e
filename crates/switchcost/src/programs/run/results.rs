//! Commands that were run as results: what comparisons and exports take.

use std::collections::BTreeMap;

use analysis::estimate::{Estimate, SHARED_LAUNCH_SCATTER};
use analysis::results::{
    CaseFigure, CaseResults, ComparisonSide, Labels, LaunchFigure, Origin, Quantity, Results,
};
use launcher::{CommandRun, RunUsage};
use stats::normal_quantile;

use super::findings::Summary;
use super::record::Record;

/// Name of the command that measures, where runs have that of their experiment.
const NAME: &str = "run";

/// A figure that is compared.
struct ComparedFigure {
    quantity: Quantity,
    /// Its name in the summary of a command.
    name: &'static str,
    /// Reads it from a run.
    read: fn(&RunUsage) -> u64,
}

/// All figures that are compared.
const COMPARED: [ComparedFigure; 2] = [
    ComparedFigure { quantity: Quantity::RealNs, name: "real_ns", read: |used| used.real_ns },
    ComparedFigure {
        quantity: Quantity::CpuNs,
        name: "cpu_ns",
        read: |used| used.total().cpu_ns(),
    },
];

/// Returns the results of a record; `name` is the file that it was read from.
///
/// Nothing says how a command's times scatter between two sessions. They are taken to scatter as
/// what was measured on a shared core does.
pub(crate) fn results(record: &Record, name: String) -> Results {
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
            experiment: NAME.to_string(),
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

fn case_results(record: &Record, summary: &Summary) -> CaseResults {
    let title = record.plan.label(summary.number);
    let is_counted = |run: &&CommandRun| run.command == summary.number && !run.interrupted;
    let runs: Vec<&CommandRun> = record.runs.iter().filter(is_counted).collect();
    let mut figures = BTreeMap::new();
    for ComparedFigure { quantity, name, read } in COMPARED {
        let Some(figure) = summary.figure(name) else { continue };
        let by_round = runs.iter().map(|run| (run.round, read(&run.used) as f64)).collect();
        let estimate = Some(with_standard_error(figure.estimate));
        let launch =
            LaunchFigure { by_round, estimate, is_complete: !runs.is_empty(), clock: None };
        figures.insert(quantity, CaseFigure::Measured(vec![launch]));
    }
    CaseResults {
        number: summary.number,
        experiment: NAME,
        labels: Labels::from([("command".to_string(), title.clone())]),
        title,
        details: Labels::new(),
        figures,
        summary: None,
        failure: None,
        iterations: runs.iter().map(|run| (run.round, 1)).collect(),
    }
}

/// Returns an estimate with the standard error that its interval stands for, taken on the logarithm.
///
/// Times of commands have long tails. A standard error of them that is larger than the median says
/// nothing, while the median itself is known: of 0.8 to 3.9 ms, with 0.9 in the middle, the relative
/// error is ln(3.9 / 0.8) / 2 / 1.96, 40 %.
fn with_standard_error(estimate: Estimate) -> Estimate {
    let interval = estimate.interval().filter(|interval| interval.low > 0.0);
    let half_width = interval.map(|interval| (interval.high / interval.low).ln() / 2.0);
    let relative = half_width.zip(normal_quantile(estimate.confidence));
    let standard_error = relative.map(|(half, quantile)| half / quantile * estimate.value);
    Estimate { standard_error, ..estimate }
}
