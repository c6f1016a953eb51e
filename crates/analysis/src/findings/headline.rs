//! What is taken of trials by their declared measures; the first of them stands for a trial: by it
//! its precision and its scatter are told.

use std::collections::BTreeMap;

use super::sensitivity;
use crate::at_clock::AtClock;
use crate::estimate::Estimate;
use crate::speed::CaseSlices;
use crate::table::{ByRound, Table};
use rundata::plan::Plan;
use rundata::run::Failure;
use rundata::trial::{Case, Measure, Unit};

/// The measure that stands for a trial, as it is told, by the number of its round. Of an execution
/// it is the time of a lap, as the laps differ from run to run.
pub(crate) fn headline_ns(table: &Table, case: usize) -> ByRound {
    let Some(Case { trial, .. }) = table.plan.trial(case) else { return ByRound::default() };
    let (of, laps) = (trial.headline(), trial.laps() as f64);
    table.by_round(case, of.tally, |sample| Some(of.told(sample)? / laps))
}

/// At which clock the figure of a trial is; none at no full speed, and of what waits for others or
/// for devices, which no clock of the core bounds.
pub(crate) fn clock_of(plan: &Plan, case: usize, figures: &ByRound) -> Option<AtClock> {
    let waits = plan.trial(case)?.trial.headline().waits;
    figures.clock(plan.reference.known_of(case).elasticity).filter(|_| !waits)
}

/// What a trial is about, in nanoseconds; absent as long as it was not measured, and of one that is
/// about a share.
pub(crate) fn figure_ns(table: &Table, case: usize) -> Option<Estimate> {
    let is_share = table.plan.trial(case)?.trial.headline().unit == Unit::Share;
    (!is_share).then(|| headline_ns(table, case).estimate(table.plan)).flatten()
}

/// The relative half-width of each trial that is still measured; none of one without an interval.
pub(crate) fn widths(table: &Table, failures: &[Failure]) -> impl Iterator<Item = Option<f64>> {
    let failed = move |case: usize| failures.iter().any(|failure| failure.case == case);
    // What a preemption costs is none of one case alone.
    let of_costs = sensitivity::widths(table);
    table.trials().filter(move |(case, _)| !failed(*case)).map(move |(case, trial)| {
        if let Some(width) = of_costs.get(&case) {
            return *width;
        }
        let of = trial.headline();
        table.estimate_of_slices(case, of.tally, |sample| of.told(sample))?.precision()
    })
}

/// Whether the case lacks clean slices for that figure, though they were looked for.
pub(crate) fn lacks_clean(table: &Table, case: usize) -> bool {
    let tally = table.plan.trial(case).map_or("", |case| case.trial.headline().tally);
    let lacks = |slices: &CaseSlices| !slices.has_full_speed() && !slices.has_few_rounds();
    table.judged(case, tally).is_some_and(lacks)
}

/// What each measure of a case says, by its name.
pub(crate) fn measures(table: &Table, case: usize) -> BTreeMap<String, Estimate> {
    let measures = table.plan.trial(case).map_or(&[][..], |case| case.trial.measures());
    let estimate = |of: &Measure| table.estimate_of_slices(case, of.tally, |s| of.told(s));
    measures.iter().filter_map(|of| Some((of.name.to_string(), estimate(of)?))).collect()
}
