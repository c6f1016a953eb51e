//! The changes of the cost and of the clock, each with what changed beside it.

use rundata::machine::{FieldDifference, field_differences};
use stats::median;
use stats::ratio::CostRatio;

use super::series::{Figure, Series};
use super::steps::{FEWEST_OF_ALL, Level, Steps};
use super::{Change, ClockChange, steps_of, words};
use crate::comparison::bearing_kind;
use crate::marked::MarkedText;

/// Clocks that differ by more than this share are told.
const CLOCK_DIFFERS: f64 = 0.01;

/// The changes whose interval excludes 1, and the levels between them.
pub(super) fn of_cost(series: &Series, mut steps: Steps) -> (Vec<Change>, Steps) {
    let quantile = steps.quantile();
    let between = |pair: &[Level]| ratio(series, &pair[0], &pair[1], quantile);
    let is_one = |pair: &[Level]| {
        between(pair).interval().is_none_or(|(low, high)| low <= 1.0 && 1.0 <= high)
    };
    // What the clock alone may explain is no change.
    while let Some(at) = steps.levels.windows(2).position(is_one) {
        let behind = steps.levels.remove(at + 1);
        steps.levels[at] = both(&steps.levels[at], &behind);
    }
    let pairs = steps.levels.windows(2);
    let changes = pairs.map(|pair| change(series, &pair[0], &pair[1], between(pair))).collect();
    (changes, steps)
}

fn both(one: &Level, other: &Level) -> Level {
    let weights = [one.error.powi(-2), other.error.powi(-2)];
    let sum = weights[0] + weights[1];
    Level {
        first: one.first,
        end: other.end,
        log: (weights[0] * one.log + weights[1] * other.log) / sum,
        error: sum.powf(-0.5),
    }
}

/// after / before. What the power of the clock leaves open is the same in all runs at one clock: it
/// enters once, by how far the clocks of both levels are apart.
fn ratio(series: &Series, before: &Level, after: &Level, quantile: f64) -> CostRatio {
    let apart = |level: &Level| series.apart(level.first..level.end);
    let chance = quantile * before.error.hypot(after.error);
    let half = series.half_width(chance, apart(after) - apart(before));
    let log = after.log - before.log;
    let ends = [log - half, log + half].map(f64::exp);
    let is_sound = ends.iter().all(|end| end.is_finite());
    let end = |at: usize| Some(ends[at]).filter(|_| is_sound);
    CostRatio {
        value: Some(log.exp()).filter(|ratio| ratio.is_finite()),
        low: end(0),
        high: end(1),
    }
}

fn change(series: &Series, before: &Level, after: &Level, ratio: CostRatio) -> Change {
    let figures = &series.figures;
    let (last, first) = (&figures[after.first - 1], &figures[after.first]);
    // The place may be one off: what lies between the second on each side is both before and
    // behind.
    let old = &figures[after.first.saturating_sub(2).max(before.first)];
    let new = &figures[(after.first + 1).min(after.end - 1)];
    let mut machine = old.results.machine.differences(&new.results.machine);
    machine.retain(|difference| bearing_kind(difference).is_some());
    machine.sort_by_key(|difference| bearing_kind(difference).map(|(rank, _)| rank));
    let program: Vec<FieldDifference> = field_differences("build", old.build, new.build);
    let clocks = clocks(&figures[before.first..before.end])
        .zip(clocks(&figures[after.first..after.end]))
        .filter(|(before, after)| differ(*before, *after));
    let mut found = Change {
        at: first.point,
        since: first.started.to_string(),
        run: first.results.side.name.clone(),
        after_run: last.results.side.name.clone(),
        before_ns: before.log.exp(),
        after_ns: after.log.exp(),
        ratio,
        machine,
        program,
        clocks_ghz: clocks.map(|(before, after)| [before, after]),
        in_words: MarkedText::default(),
    };
    let label = &first.results.side.label;
    let name = (!label.is_empty()).then_some(label.as_str());
    found.in_words = words::change(&found, last.started, name);
    found
}

fn clocks(figures: &[Figure]) -> Option<f64> {
    median(&figures.iter().filter_map(|figure| figure.ghz).collect::<Vec<f64>>())
}

fn differ(before: f64, after: f64) -> bool {
    (after / before - 1.0).abs() > CLOCK_DIFFERS
}

/// Where the clock of the core changed.
pub(super) fn of_clock(series: &Series) -> Vec<ClockChange> {
    let known: Vec<(&Figure, f64)> =
        series.figures.iter().filter_map(|figure| Some((figure, figure.ghz?))).collect();
    if known.len() < FEWEST_OF_ALL {
        return Vec::new();
    }
    let steps = steps_of(known.iter().map(|(figure, ghz)| (figure.point, *ghz, 0.0)));
    let of_pair = |pair: &[Level]| {
        let [before_ghz, after_ghz] = [pair[0].log.exp(), pair[1].log.exp()];
        let (first, _) = known[pair[1].first];
        let (last, _) = known[pair[1].first - 1];
        differ(before_ghz, after_ghz).then(|| ClockChange {
            at: first.point,
            since: first.started.to_string(),
            before_ghz,
            after_ghz,
            in_words: words::clock(before_ghz, after_ghz, last.started, first.started),
        })
    };
    steps.levels.windows(2).filter_map(of_pair).collect()
}
