//! The rows that comparisons, trends and exports take of a run, of a publication, of several
//! launches, or of a session of commands: cases by name, each with its figures.
//!
//! Example: two launches of a plan with the rings of 1, 2 and 4. The hop of the ring of 2 took
//! 1.45, 1.46 and 1.48 us in the three rounds of the first launch. Its case is
//!
//! ```text
//! title   "ring of 2"
//! labels  members=2 kind=process link=pipe placement=same policy=other
//! figures NsPerHop -> Measured([1.46 us by rounds 0 to 2, 1.47 us by the second launch])
//! ```
//!
//! The labels say which case of other results it is compared with: a ring of 2 with 1.52 us, or the
//! 647 us of a Sun-4/280 of 1992, which is `Published` and has no rounds and no interval.

mod figures;
mod history;
mod launches;
mod merge;
mod parts;
mod runs;
mod side;
mod traces;

use std::collections::BTreeMap;

pub use crate::measures::{Quantity, QuantityUnit};
pub use figures::{CaseFigure, ConvertedFigure, CountedEstimates, LaunchFigure};
pub use history::{
    PUBLISHED_PREFIX, PublishedCase, PublishedMachine, PublishedRange, published_machines,
};
pub use launches::known_from_launches;
pub use merge::SchedulerConflict;
pub(crate) use parts::WHOLE;
pub use runs::plan_cases;
pub use side::{ComparisonSide, Origin};
pub use traces::TraceResults;
pub(crate) use traces::with_common_preempters;

use crate::noise::{self, NoiseVerdict};
use crate::setting_changes::run_warnings;
use crate::summary::CaseSummary;
use crate::table::Table;
use crate::trend::label_matches;
use rundata::machine::Machine;
use rundata::plan::ASSUMED_LAUNCH_SCATTER;
use rundata::run::{Run, SessionHalf};

/// Names and values that identify a case, in a fixed order: `members` and `2`.
pub type Labels = Vec<(String, String)>;

/// A case with its figures.
#[derive(Clone)]
pub struct CaseResults {
    /// Number of the case in the plan.
    pub number: usize,
    /// The experiment that measured it: that of the run or, in a run of several, of its part; `run`
    /// for commands.
    pub experiment: &'static str,
    /// The case in words: `ring of 64`.
    pub title: String,
    /// The labels by which it is paired with a case of other results. Neither the number of a single
    /// CPU nor the priority of a real-time policy is among them.
    pub labels: Labels,
    /// The CPUs that it ran on, and what else may differ between two cases that are paired.
    pub details: Labels,
    /// Figures of the case; the first one stands for it. Empty where nothing was measured.
    pub figures: BTreeMap<Quantity, CaseFigure>,
    /// Summary of a ring, of several launches that of the first. Exports read further columns from
    /// it.
    pub summary: Option<Box<CaseSummary>>,
    /// The last reported reason why the case could not be measured in some round.
    pub failure: Option<String>,
    /// Hops or trials by the number of the round, for formats with a count of iterations.
    pub iterations: Vec<(u32, u64)>,
}

impl CaseResults {
    /// Returns the value of a label.
    pub fn label(&self, name: &str) -> Option<&str> {
        let (_, value) = self.labels.iter().find(|(label, _)| label == name)?;
        Some(value)
    }

    /// Returns whether a word means the case: its title, its experiment, the value of a label, or that
    /// with the label's name.
    pub fn is_meant_by(&self, word: &str) -> bool {
        self.title.eq_ignore_ascii_case(word)
            || self.experiment == word
            || self.labels.iter().any(|(name, value)| label_matches(name, value, word))
    }

    /// Returns whether both are the same case of the same experiment.
    fn is_same_case(&self, other: &Self) -> bool {
        self.experiment == other.experiment && self.labels == other.labels
    }
}

/// The cases of a run or of a publication, with their figures and where they were measured.
#[derive(Clone)]
pub struct Results {
    /// Name, origin and machine, as a comparison stores them.
    pub side: ComparisonSide,
    /// The machine of the run. For publications it is unknown, and `side` has its name.
    pub machine: Machine,
    /// The verdict on the run's noise; absent for published figures.
    pub noise: Option<NoiseVerdict>,
    /// Clock of the core in GHz by the reference quanta, of the first CPU that has a level; of
    /// several launches their mean. Absent where it is not known.
    pub clock_ghz: Option<f64>,
    /// Seed of the plan; 0 for published figures.
    pub seed: u64,
    /// tau: the standard deviation between launches as a share of a figure; 0 for published
    /// figures.
    pub launch_scatter: f64,
    /// tau of each case, by its number, where launches have shown it.
    pub case_scatters: Vec<Option<f64>>,
    /// Warnings from reading the run's file; empty for published figures.
    pub warnings: Vec<String>,
    /// The parts that the cases of a trace are computed from; absent for all else.
    pub trace: Option<TraceResults>,
    /// The cases.
    pub cases: Vec<CaseResults>,
}

impl Results {
    /// Builds the results of a run. A run of several experiments has the cases of all, each as in a
    /// run of its own experiment, numbered as in the whole plan.
    pub fn from_run(run: &Run) -> Self {
        let plan = &run.header.plan;
        if plan.parts.is_empty() {
            return Self::from_experiment(run);
        }
        let mut parts = Vec::new();
        for part in crate::parts::part_runs(run) {
            parts.push(Self::from_experiment(&part));
        }
        let mut verdicts = Vec::new();
        for part in &parts {
            if let Some(noise) = &part.noise {
                verdicts.push((part.side.experiment.as_str(), noise.clone()));
            }
        }
        let mut whole = Self::without_cases(run);
        whole.noise = Some(NoiseVerdict::together(verdicts, &[]));
        whole.clock_ghz = parts.iter().find_map(|part| part.clock_ghz);
        for (part, (_, numbers)) in parts.into_iter().zip(plan.spans()) {
            for case in part.cases {
                whole.cases.push(CaseResults { number: numbers.start + case.number, ..case });
            }
        }
        whole
    }

    fn from_experiment(run: &Run) -> Self {
        let header = &run.header;
        let table = &Table::new(&header.plan, &run.samples);
        let mut levels = table.levels().values();
        let clock_ghz = levels.find_map(|level| level.clock_ghz(&header.build.target));
        let mut cases = runs::rings(run, table);
        cases.extend(runs::trials(run, table));
        cases.sort_by_key(|case| case.number);
        cases.extend(parts::parts(run, table));
        let trace = TraceResults::from_run(run, table);
        if let Some(trace) = &trace {
            cases.extend(trace.cases());
        }
        let noise = Some(noise::judge(table));
        Self { noise, clock_ghz, trace, cases, ..Self::without_cases(run) }
    }

    /// Builds the results of a run from its header and its end alone.
    fn without_cases(run: &Run) -> Self {
        let header = &run.header;
        let reference = &header.plan.reference;
        let mut case_scatters = Vec::new();
        for known in &reference.cases {
            case_scatters.push(known.launch_scatter);
        }
        let mut warnings = run_warnings(run);
        if run.end.is_none() {
            warnings.push("incomplete: it was killed or is still running".to_string());
        }
        Self {
            side: ComparisonSide::from_header(header),
            machine: header.machine.clone(),
            noise: None,
            clock_ghz: None,
            seed: header.plan.seed,
            launch_scatter: reference.launch_scatter.unwrap_or(ASSUMED_LAUNCH_SCATTER),
            case_scatters,
            warnings,
            trace: None,
            cases: Vec::new(),
        }
    }

    /// Returns tau of a case, by its number.
    pub fn case_launch_scatter(&self, case: usize) -> f64 {
        let scatter = self.case_scatters.get(case).copied().flatten();
        scatter.unwrap_or(self.launch_scatter)
    }

    /// Returns the cases that are compared: the parts of a switch if there are any, else all.
    pub(crate) fn compared_cases(&self) -> impl Iterator<Item = &CaseResults> {
        let has_parts = self.cases.iter().any(parts::is_part);
        self.cases.iter().filter(move |case| !has_parts || parts::is_part(case))
    }

    /// Returns the session that the run is one half of.
    pub fn session(&self) -> Option<&SessionHalf> {
        match &self.side.origin {
            Origin::Run { session, .. } => session.as_ref(),
            Origin::Publication { .. } => None,
        }
    }
}
