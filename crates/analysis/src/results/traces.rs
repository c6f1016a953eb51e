//! The cases of a trace: one for each of its figures. Traces on one side of a comparison are one: their
//! histograms and counts add up.

use std::collections::BTreeMap;

use rundata::experiment::Experiment;
use rundata::run::Run;

use super::runs::label;
use super::{CaseFigure, CaseResults, Labels, LaunchFigure};
use crate::findings::trace::{TraceFigure, TraceParts};
use crate::table::Table;

/// The parts of a trace, or of several, and whether all of these ended.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceResults {
    parts: TraceParts,
    /// A trace has no rounds to finish: one that was stopped before its time is as good as any.
    have_ended: bool,
}

impl TraceResults {
    /// Takes the parts of a trace; `None` for a run of another experiment.
    pub(super) fn from_run(run: &Run, table: &Table) -> Option<Self> {
        Some(Self { parts: TraceParts::from_table(table)?, have_ended: run.end.is_some() })
    }

    /// Adds the parts of another trace.
    pub(super) fn append(&mut self, more: &Self) {
        self.parts.append(&more.parts);
        self.have_ended &= more.have_ended;
    }

    /// Builds a case for each figure.
    pub(super) fn cases(&self) -> Vec<CaseResults> {
        let findings = self.parts.findings();
        let mut cases = Vec::new();
        for (number, figure) in findings.figures.into_iter().enumerate() {
            cases.push(self.case(number, figure));
        }
        cases
    }

    fn case(&self, number: usize, figure: TraceFigure) -> CaseResults {
        let TraceFigure { id, title, quantity, estimate, by_part } = figure;
        let mut iterations = Vec::new();
        for part in by_part.keys() {
            iterations.push((*part, 1));
        }
        let launch = LaunchFigure {
            by_round: by_part,
            estimate: Some(estimate),
            is_complete: self.have_ended,
            clock: None,
        };
        CaseResults {
            number,
            experiment: Experiment::Trace.name(),
            title,
            labels: vec![label("tasks", self.parts.tasks), label("figure", id)],
            details: Labels::new(),
            figures: BTreeMap::from([(quantity, CaseFigure::Measured(vec![launch]))]),
            summary: None,
            failure: None,
            iterations,
        }
    }
}
