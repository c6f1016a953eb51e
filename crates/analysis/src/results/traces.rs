//! The cases of a trace: one for each of its figures. Traces on one side of a comparison are one: their
//! histograms and counts add up.

use std::collections::BTreeMap;

use rundata::experiment::Experiment;
use rundata::run::Run;

use super::runs::label;
use super::{CaseFigure, CaseResults, Labels, LaunchFigure, Results};
use crate::findings::trace::{TraceFigure, TraceFindings, TraceParts, most_frequent_preempters};
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
        self.figure_cases(self.parts.findings())
    }

    fn figure_cases(&self, findings: TraceFindings) -> Vec<CaseResults> {
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
            // That of the traces is in the errors then.
            launch_scatter: self.parts.show_scatter_of_traces().then_some(0.0),
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

/// Returns the sides of a comparison with the same tasks that preempted, those that did so most often
/// on all sides together: one that a side does not have is zero there, and not left out. Absent where
/// a side is no trace.
pub(crate) fn with_common_preempters(sides: &[&Results]) -> Option<Vec<Results>> {
    let mut sums: BTreeMap<String, i64> = BTreeMap::new();
    for side in sides {
        for (name, count) in side.trace.as_ref()?.parts.preempter_counts().unwrap_or_default() {
            let sum = sums.entry(name).or_default();
            *sum = sum.saturating_add(count);
        }
    }
    let preempters = most_frequent_preempters(&sums);
    let mut common = Vec::new();
    for side in sides {
        let trace = side.trace.as_ref()?;
        let mut side = (*side).clone();
        if trace.parts.preempter_counts().is_some() {
            side.cases = trace.figure_cases(trace.parts.findings_with(&preempters));
        }
        common.push(side);
    }
    Some(common)
}
