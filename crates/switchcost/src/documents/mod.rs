//! Programs and experiments of the four papers that no other command needs.
//!
//! - `classic`: the papers' own programs by name, and Sloan's procedure.
//! - `interference`: does a disturbance reach the measurement? (Li, Ding and Shen 2007)
//! - `primes`: how precise clocks are. `malloc`: what malloc and free cost. (Hines et al. 2000)
//! - `sampling`: what accounting by the timer tick makes of a sleeper.
//! - `paper`: the command line of the last three.

pub(crate) mod classic;
pub(crate) mod interference;
pub(crate) mod malloc;
pub(crate) mod paper;
pub(crate) mod primes;
pub(crate) mod sampling;

use analysis::findings::ExperimentFindings;
use analysis::record::TrialRecord;
use charts::Figure;
use clap::Command;

use crate::experiments::measures;
use crate::report::terminal::{ReportText, View};

/// Hides the old names of the papers' experiments in the help of the program: those below `clock`,
/// and `cost --interference`.
pub(crate) fn hide_old_names(program: Command) -> Command {
    program
        .mut_subcommand("cost", interference::hide_old)
        .mut_subcommand("clock", paper::hide_old_names)
}

/// Returns the report of a run; that of its measures if the papers do not have the experiment.
pub(crate) fn text(record: &TrialRecord, findings: &ExperimentFindings, view: View) -> ReportText {
    match findings {
        ExperimentFindings::Primes(found) => primes::text(record, found, view),
        ExperimentFindings::Malloc(found) => malloc::text(record, found, view),
        ExperimentFindings::Sampling(points) => sampling::text(record, points),
        ExperimentFindings::Interference(found) => interference::table::text(record, found, view),
        ExperimentFindings::Overhead(_)
        | ExperimentFindings::Sensitivity(_)
        | ExperimentFindings::Trace(_) => measures::text(record, view),
    }
}

/// Returns the chart of a run; that of its measures if the papers do not have the experiment.
pub(crate) fn figure(
    record: &TrialRecord,
    findings: &ExperimentFindings,
    index: usize,
) -> Option<Figure> {
    match findings {
        ExperimentFindings::Primes(found) => primes::figure(found, index),
        ExperimentFindings::Malloc(found) => malloc::figure(record, found, index),
        ExperimentFindings::Sampling(points) => sampling::figure(points, index),
        ExperimentFindings::Interference(found) => {
            interference::table::figure(record, found, index)
        }
        ExperimentFindings::Overhead(_)
        | ExperimentFindings::Sensitivity(_)
        | ExperimentFindings::Trace(_) => measures::figure(record, index),
    }
}
