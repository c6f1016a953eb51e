//! The declared measures of trials. The first one of a trial is its headline, by which its precision
//! and its scatter are judged.

use std::collections::BTreeMap;

use rundata::plan::Plan;
use rundata::run::Failure;
use rundata::trial::{MeasureUnit, Trial, TrialCase, TrialMeasure};

use super::{load, sensitivity};
use crate::at_clock::AtClock;
use crate::estimate::Estimate;
use crate::table::{ByRound, Table};

/// Returns the headline of a trial by round. For an execution it is the time of a lap, as the laps
/// differ from run to run.
pub(crate) fn headline_ns(table: &Table, case: usize) -> ByRound {
    let Some(TrialCase { trial, .. }) = table.plan.trial(case) else { return ByRound::default() };
    let (headline, laps) = (trial.headline(), trial.laps() as f64);
    table.by_round(case, headline.tally, |sample| Some(headline.told(sample)? / laps))
}

/// Returns the clock of a trial's headline; absent unless at full speed, and for a trial that waits
/// for others or for devices, which the core's clock does not bound.
pub(crate) fn clock_of(plan: &Plan, case: usize, figures: &ByRound) -> Option<AtClock> {
    if plan.trial(case)?.trial.headline().waits {
        return None;
    }
    figures.clock(plan.reference.known_of(case).elasticity)
}

/// Returns the headline of a trial in nanoseconds; absent as long as it was not measured, and for a
/// headline that is a share.
pub(crate) fn figure_ns(table: &Table, case: usize) -> Option<Estimate> {
    if table.plan.trial(case)?.trial.headline().unit == MeasureUnit::Share {
        return None;
    }
    headline_ns(table, case).estimate(table.plan)
}

/// Returns the relative half-width of each trial that is still measured; absent for a trial without
/// an interval.
pub(crate) fn widths(table: &Table, failures: &[Failure]) -> impl Iterator<Item = Option<f64>> {
    // The cost of a preemption takes several cases.
    let widths_of_costs = sensitivity::widths(table);
    let mut widths = Vec::new();
    for (case, trial) in table.trials() {
        if failures.iter().any(|failure| failure.case == case) {
            continue;
        }
        widths.push(match widths_of_costs.get(&case) {
            Some(width) => *width,
            None => {
                let estimate = estimate_measure(table, case, trial.headline());
                let width = estimate.as_ref().and_then(Estimate::precision);
                match trial {
                    Trial::Load(_) => load::stopping_width(table, case, width),
                    _ => width,
                }
            }
        });
    }
    widths.into_iter()
}

fn estimate_measure(table: &Table, case: usize, measure: &TrialMeasure) -> Option<Estimate> {
    table.estimate_of_slices(case, measure.tally, |sample| measure.told(sample))
}

/// Returns whether the headline of a case lacks clean slices, though these were looked for.
pub(crate) fn lacks_clean(table: &Table, case: usize) -> bool {
    let Some(TrialCase { trial, .. }) = table.plan.trial(case) else { return false };
    match table.judged(case, trial.headline().tally) {
        Some(slices) => !slices.has_full_speed() && !slices.has_few_rounds(),
        None => false,
    }
}

/// Returns the estimates of the measures of a case, by name.
pub(crate) fn measures(table: &Table, case: usize) -> BTreeMap<String, Estimate> {
    let mut estimates = BTreeMap::new();
    let Some(TrialCase { trial, .. }) = table.plan.trial(case) else { return estimates };
    for measure in trial.measures() {
        if let Some(estimate) = estimate_measure(table, case, measure) {
            estimates.insert(measure.name.to_string(), estimate);
        }
    }
    estimates
}
