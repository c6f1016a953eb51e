//! The changes of the cost and of the clock, each with what changed in the machine at that time.

use rundata::machine::field_differences;
use stats::median;
use stats::ratio::CostRatio;

use super::series::{CaseSeries, RunFigure};
use super::steps::{FEWEST_OF_ALL, LevelSpan, LevelSteps};
use super::{ClockChange, CostChange, PlacedFigure, words};
use crate::comparison::bearing_kind;
use crate::marked::MarkedText;

/// Largest relative difference of clocks that is not reported.
const MAX_SAME_CLOCK: f64 = 0.01;

/// Returns the changes whose interval excludes 1, and the levels between them.
pub(super) fn cost_changes(
    series: &CaseSeries,
    mut steps: LevelSteps,
) -> (Vec<CostChange>, LevelSteps) {
    let quantile = steps.quantile();
    // A step that the clock alone may explain is no change.
    let may_be_none = |pair: &[LevelSpan]| includes_one(&ratio(series, pair, quantile));
    while let Some(at) = steps.levels.windows(2).position(may_be_none) {
        let after = steps.levels.remove(at + 1);
        steps.levels[at] = merged(&steps.levels[at], &after);
    }
    let mut changes = Vec::new();
    for pair in steps.levels.windows(2) {
        changes.push(cost_change(series, &pair[0], &pair[1], ratio(series, pair, quantile)));
    }
    (changes, steps)
}

fn includes_one(ratio: &CostRatio) -> bool {
    ratio.interval().is_none_or(|(low, high)| low <= 1.0 && 1.0 <= high)
}

/// Returns two neighbouring levels as one: their mean, weighted by their errors.
fn merged(before: &LevelSpan, after: &LevelSpan) -> LevelSpan {
    let weights = [before.error.powi(-2), after.error.powi(-2)];
    let sum = weights[0] + weights[1];
    LevelSpan {
        first: before.first,
        end: after.end,
        log: (weights[0] * before.log + weights[1] * after.log) / sum,
        error: sum.powf(-0.5),
    }
}

/// Returns the ratio of the second level of a pair to the first.
///
/// An unknown part of the elasticity moves all runs at one clock together. It is therefore no error
/// of a single run, and enters once, by how far the clocks of both levels are apart.
fn ratio(series: &CaseSeries, pair: &[LevelSpan], quantile: f64) -> CostRatio {
    let (before, after) = (&pair[0], &pair[1]);
    let chance = quantile * before.error.hypot(after.error);
    let clock_change = series.clock_distance(after.range()) - series.clock_distance(before.range());
    let half = series.half_width(chance, clock_change);
    let log = after.log - before.log;
    let value = Some(log.exp()).filter(|ratio| ratio.is_finite());
    let (low, high) = ((log - half).exp(), (log + half).exp());
    if low.is_finite() && high.is_finite() {
        CostRatio { value, low: Some(low), high: Some(high) }
    } else {
        CostRatio { value, low: None, high: None }
    }
}

fn cost_change(
    series: &CaseSeries,
    before: &LevelSpan,
    after: &LevelSpan,
    ratio: CostRatio,
) -> CostChange {
    let figures = &series.figures;
    let (last, first) = (&figures[after.first - 1], &figures[after.first]);
    // The step may be one run earlier or later: the machine is compared between the second runs on
    // both sides.
    let old = &figures[after.first.saturating_sub(2).max(before.first)];
    let new = &figures[(after.first + 1).min(after.end - 1)];
    let mut machine = old.results.machine.differences(&new.results.machine);
    machine.retain(|difference| bearing_kind(difference).is_some());
    machine.sort_by_key(|difference| bearing_kind(difference).map(|(rank, _)| rank));
    let clock_before = median_clock_ghz(&figures[before.range()]);
    let clock_after = median_clock_ghz(&figures[after.range()]);
    let mut change = CostChange {
        at: first.point,
        since: first.started.to_string(),
        run: first.results.side.name.clone(),
        after_run: last.results.side.name.clone(),
        before_ns: before.log.exp(),
        after_ns: after.log.exp(),
        ratio,
        machine,
        program: field_differences("build", old.build, new.build),
        clocks_ghz: different_clocks(clock_before, clock_after),
        in_words: MarkedText::default(),
    };
    let label = &first.results.side.label;
    let run_label = if label.is_empty() { None } else { Some(label.as_str()) };
    change.in_words = words::change(&change, last.started, run_label);
    change
}

fn median_clock_ghz(figures: &[RunFigure]) -> Option<f64> {
    let clocks: Vec<f64> = figures.iter().filter_map(|figure| figure.ghz).collect();
    median(&clocks)
}

/// Returns both clocks if they are known and differ.
fn different_clocks(before: Option<f64>, after: Option<f64>) -> Option<[f64; 2]> {
    let clocks = [before?, after?];
    if differ(clocks[0], clocks[1]) { Some(clocks) } else { None }
}

fn differ(before: f64, after: f64) -> bool {
    (after / before - 1.0).abs() > MAX_SAME_CLOCK
}

/// Returns the changes of the core's clock.
pub(super) fn clock_changes(series: &CaseSeries) -> Vec<ClockChange> {
    let mut runs: Vec<&RunFigure> = Vec::new();
    let mut clocks = Vec::new();
    for figure in &series.figures {
        if let Some(value) = figure.ghz {
            runs.push(figure);
            clocks.push(PlacedFigure { place: figure.point, value, error: 0.0 });
        }
    }
    if runs.len() < FEWEST_OF_ALL {
        return Vec::new();
    }
    let mut changes = Vec::new();
    for pair in LevelSteps::from_figures(&clocks).levels.windows(2) {
        let [before_ghz, after_ghz] = [pair[0].log.exp(), pair[1].log.exp()];
        let (last, first) = (runs[pair[1].first - 1], runs[pair[1].first]);
        if !differ(before_ghz, after_ghz) {
            continue;
        }
        changes.push(ClockChange {
            at: first.point,
            since: first.started.to_string(),
            before_ghz,
            after_ghz,
            in_words: words::clock(before_ghz, after_ghz, last.started, first.started),
        });
    }
    changes
}
