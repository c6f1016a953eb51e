//! Every sample by its round: drift and bad rounds can be seen whatever was measured.
//!
//! Each value is divided by the median of its case, so that cases of all costs lie around 1:
//!
//! ```text
//! 1.5 |          * *
//!     |
//!   1 | * *  * *      * *
//!     +-------------------
//!        1    2    3    4    round; round 3 deviates by +50 %
//! ```

use std::collections::BTreeMap;

use charts::{Axis, Figure, Point, Role, Scale, Series, Unit};
use rundata::case::{rings, trials};
use rundata::ring::RingSample;
use rundata::run::Run;
use rundata::trial::TrialSample;
use stats::median;

use super::lines;

/// Most points of the chart: with more of them rounds are left out evenly, which the chart says.
const MAX_POINTS: usize = 250;

/// Width over which the samples of a round are spread, as a part of the distance between rounds.
const SPREAD: f64 = 0.6;

/// A value of a case in a round. Values of one case are of similar size.
pub(crate) struct RoundValue {
    pub(crate) case: usize,
    pub(crate) round: u32,
    pub(crate) value: f64,
    pub(crate) disturbed: bool,
}

/// Returns the time of a hop of every sample of rings.
pub(crate) fn ring_values(run: &Run) -> Vec<RoundValue> {
    let mut values = Vec::new();
    for sample in rings(&run.samples) {
        if sample.hops > 0 && sample.elapsed_ns > 0 {
            values.push(ring_value(run, sample));
        }
    }
    values
}

fn ring_value(run: &Run, sample: &RingSample) -> RoundValue {
    let case = run.header.plan.ring(sample.case);
    RoundValue {
        case: sample.case,
        round: sample.round,
        value: sample.ns_per_hop(),
        disturbed: case.is_some_and(|case| !sample.disturbances(case).is_empty()),
    }
}

/// Returns the headline measure of every sample of trials.
pub(crate) fn trial_values(run: &Run) -> Vec<RoundValue> {
    let mut values = Vec::new();
    for sample in trials(&run.samples) {
        values.extend(trial_value(run, sample));
    }
    values
}

fn trial_value(run: &Run, sample: &TrialSample) -> Option<RoundValue> {
    let headline = run.header.plan.trial(sample.case)?.trial.headline();
    let value = headline.told(sample)?;
    if !value.is_finite() {
        return None;
    }
    Some(RoundValue { case: sample.case, round: sample.round, value, disturbed: false })
}

/// Builds the chart of each value over the median of its case, by round; absent if there is only one
/// round.
pub(crate) fn rounds_figure(values: Vec<RoundValue>, index: usize) -> Option<Figure> {
    let last = values.iter().map(|value| value.round).max()?;
    if last == 0 {
        return None;
    }
    let ratios = divide_by_medians(values);
    let medians = round_medians(&ratios);
    let worst = medians.iter().max_by(|a, b| a.deviation().total_cmp(&b.deviation()))?;
    let mut in_words = format!(
        "{} samples in {} rounds, each over the median of its case; round {} \
         deviates most, by {:+.1} %.",
        ratios.len(),
        last + 1,
        worst.round + 1,
        (worst.median - 1.0) * 100.0
    );
    let drawn_each = u32::try_from(ratios.len().div_ceil(MAX_POINTS)).unwrap_or(u32::MAX).max(1);
    if drawn_each > 1 {
        in_words.push_str(&format!(" One round in {drawn_each} is drawn."));
    }
    let (mut undisturbed, mut disturbed) = (Vec::new(), Vec::new());
    for ratio in &ratios {
        if ratio.round % drawn_each == 0 {
            if ratio.disturbed { disturbed.push(ratio) } else { undisturbed.push(ratio) }
        }
    }
    let line = medians.iter().map(|round| Point::bare(round_place(round.round), round.median));
    let series = [
        Series::new("samples", index, Role::Raw, spread_points(&undisturbed)),
        Series::new("disturbed samples", index, Role::Raw, spread_points(&disturbed)),
        Series::new("median of the round", index, Role::Measured, line.collect()),
    ];
    let x = Axis::new("round", Unit::Count, Scale::Linear);
    let y = Axis::new("sample / median of its case", Unit::Ratio, Scale::Linear);
    lines("rounds", "Samples by round", in_words, (x, y), series)
}

/// Returns the place of a round on the axis, where rounds are counted from 1.
fn round_place(round: u32) -> f64 {
    f64::from(round) + 1.0
}

fn group_by_key<K: Ord, T>(pairs: impl IntoIterator<Item = (K, T)>) -> BTreeMap<K, Vec<T>> {
    let mut groups: BTreeMap<K, Vec<T>> = BTreeMap::new();
    for (key, value) in pairs {
        groups.entry(key).or_default().push(value);
    }
    groups
}

/// Divides each value by the median of its case; leaves out values without a finite ratio.
fn divide_by_medians(mut values: Vec<RoundValue>) -> Vec<RoundValue> {
    let by_case = group_by_key(values.iter().map(|value| (value.case, value.value)));
    let mut medians = BTreeMap::new();
    for (case, values) in by_case {
        if let Some(median) = median(&values) {
            medians.insert(case, median);
        }
    }
    values.retain_mut(|value| match medians.get(&value.case) {
        Some(median) => {
            value.value /= median;
            value.value.is_finite()
        }
        None => false,
    });
    values
}

/// Puts the values of a round side by side, in the order of their cases.
fn spread_points(values: &[&RoundValue]) -> Vec<Point> {
    let mut points = Vec::new();
    for (round, mut values) in group_by_key(values.iter().map(|value| (value.round, *value))) {
        values.sort_by_key(|value| value.case);
        for (number, value) in values.iter().enumerate() {
            let offset = SPREAD * ((number as f64 + 0.5) / values.len() as f64 - 0.5);
            points.push(Point::bare(round_place(round) + offset, value.value));
        }
    }
    points
}

/// The median of a round's cases.
struct RoundMedian {
    round: u32,
    median: f64,
}

impl RoundMedian {
    fn deviation(&self) -> f64 {
        (self.median - 1.0).abs()
    }
}

/// Returns the median of each round over the medians of its cases: some cases have more samples in a
/// round than others.
fn round_medians(ratios: &[RoundValue]) -> Vec<RoundMedian> {
    let by_case = group_by_key(ratios.iter().map(|ratio| ((ratio.round, ratio.case), ratio.value)));
    let mut by_round: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for ((round, _), values) in by_case {
        by_round.entry(round).or_default().extend(median(&values));
    }
    let mut medians = Vec::new();
    for (round, values) in by_round {
        if let Some(median) = median(&values) {
            medians.push(RoundMedian { round, median });
        }
    }
    medians
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(case: usize, round: u32, value: f64) -> RoundValue {
        RoundValue { case, round, value, disturbed: value > 1e5 }
    }

    #[test]
    fn a_bad_round_stands_out_whatever_its_cases_cost() {
        // Two cases, one a hundred times as slow; in the third of five rounds both take half as
        // much again.
        let costs = |round: u32| if round == 2 { 1.5 } else { 1.0 };
        let all = (0..5).flat_map(|round| {
            [value(0, round, 10.0 * costs(round)), value(1, round, 1000.0 * costs(round))]
        });
        let figure = rounds_figure(all.collect(), 3).unwrap();
        let [raw, middle] = figure.series() else { panic!("{:?}", figure.series()) };
        assert_eq!((raw.role, raw.run, raw.points.len()), (Role::Raw, Some(3), 10));
        let line: Vec<(f64, f64)> = middle.points.iter().map(|point| (point.x, point.y)).collect();
        assert_eq!(line, [(1.0, 1.0), (2.0, 1.0), (3.0, 1.5), (4.0, 1.0), (5.0, 1.0)]);
        assert!(figure.in_words.contains("round 3") && figure.in_words.contains("+50.0 %"));
        assert!(raw.points.iter().all(|point| (point.x - point.x.round()).abs() < 0.5));
    }

    #[test]
    fn disturbed_samples_are_told_apart_and_one_round_is_no_course() {
        let all = vec![value(0, 0, 1e4), value(0, 1, 1e4), value(0, 2, 2e5)];
        let figure = rounds_figure(all, 0).unwrap();
        assert_eq!(figure.series()[1].name, "disturbed samples");
        assert_eq!(figure.series()[1].points[0].y, 20.0);
        assert!(rounds_figure(vec![value(0, 0, 1.0), value(1, 0, 2.0)], 0).is_none());
    }

    #[test]
    fn long_runs_are_thinned_by_rounds_and_say_so() {
        let all =
            (0..3000).flat_map(|round| [value(0, round, 1.0), value(1, round, 1.0)]).collect();
        let figure = rounds_figure(all, 0).unwrap();
        assert_eq!(figure.series()[0].points.len(), 250);
        assert!(figure.in_words.contains("One round in 24"), "{}", figure.in_words);
    }
}
