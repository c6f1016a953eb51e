//! Every sample by its round, so that drift and bad rounds are seen whatever was measured.

use std::collections::BTreeMap;

use charts::{Axis, Figure, Point, Role, Scale, Series, Unit};
use rundata::case::{rings, trials};
use rundata::ring::RingSample;
use rundata::run::Run;
use rundata::trial;
use stats::median;

use super::lines;

/// More points than this say nothing more; rounds are then left out evenly, and that is told.
const MOST_POINTS: usize = 250;

/// Part of the distance between two rounds over which the samples of a round are spread.
const SPREAD: f64 = 0.6;

/// A value that stands for some case in some round.
pub(crate) struct RoundValue {
    /// Of which case: values of one case are of one size.
    pub(crate) case: usize,
    pub(crate) round: u32,
    pub(crate) value: f64,
    pub(crate) disturbed: bool,
}

/// Every sample of rings, by the time of a hop.
pub(crate) fn ring_values(run: &Run) -> Vec<RoundValue> {
    let seen = |sample: &RingSample| {
        let case = run.header.plan.ring(sample.case);
        let disturbed = case.is_some_and(|case| !sample.disturbances(case).is_empty());
        let (case, round, value) = (sample.case, sample.round, sample.ns_per_hop());
        RoundValue { case, round, value, disturbed }
    };
    let sound = rings(&run.samples).filter(|sample| sample.hops > 0 && sample.elapsed_ns > 0);
    sound.map(seen).collect()
}

/// Every sample of trials, by the measure that stands for it.
pub(crate) fn trial_values(run: &Run) -> Vec<RoundValue> {
    let seen = |sample: &trial::TrialSample| {
        let value = run.header.plan.trial(sample.case)?.trial.headline().told(sample)?;
        let (case, round) = (sample.case, sample.round);
        value.is_finite().then_some(RoundValue { case, round, value, disturbed: false })
    };
    trials(&run.samples).filter_map(seen).collect()
}

/// Each value over the median of its case, by round; none where there is only one round.
pub(crate) fn rounds_figure(seen: Vec<RoundValue>, index: usize) -> Option<Figure> {
    let last = seen.iter().map(|seen| seen.round).max().filter(|last| *last > 0)?;
    let ratios = over_medians(seen);
    let every = u32::try_from(ratios.len().div_ceil(MOST_POINTS)).unwrap_or(u32::MAX).max(1);
    let shown = |seen: &&RoundValue| seen.round % every == 0;
    let points = |disturbed: bool| {
        spread(ratios.iter().filter(shown).filter(move |seen| seen.disturbed == disturbed))
    };
    let middles = middles(&ratios);
    let off = |(_, middle): &&(u32, f64)| (middle - 1.0).abs();
    let (worst, middle) = middles.iter().max_by(|one, other| off(one).total_cmp(&off(other)))?;
    let (many, rounds, worst, off) = (ratios.len(), last + 1, worst + 1, (middle - 1.0) * 100.0);
    let mut in_words = format!(
        "{many} samples in {rounds} rounds, each over the median of its case; round {worst} \
         deviates most, by {off:+.1} %."
    );
    if every > 1 {
        in_words.push_str(&format!(" One round in {every} is drawn."));
    }
    let line = middles.iter().map(|(round, middle)| Point::bare(f64::from(*round) + 1.0, *middle));
    let series = [
        Series::new("samples", index, Role::Raw, points(false)),
        Series::new("disturbed samples", index, Role::Raw, points(true)),
        Series::new("median of the round", index, Role::Measured, line.collect()),
    ];
    let x = Axis::new("round", Unit::Count, Scale::Linear);
    let y = Axis::new("sample / median of its case", Unit::Ratio, Scale::Linear);
    lines("rounds", "Samples by round", in_words, (x, y), series)
}

fn grouped<K: Ord, T>(all: impl IntoIterator<Item = (K, T)>) -> BTreeMap<K, Vec<T>> {
    let mut groups: BTreeMap<K, Vec<T>> = BTreeMap::new();
    all.into_iter().for_each(|(key, one)| groups.entry(key).or_default().push(one));
    groups
}

fn over_medians(mut seen: Vec<RoundValue>) -> Vec<RoundValue> {
    let by_case = grouped(seen.iter().map(|one| (one.case, one.value)));
    let medians: BTreeMap<usize, f64> =
        by_case.iter().filter_map(|(case, values)| Some((*case, median(values)?))).collect();
    for one in &mut seen {
        one.value /= medians.get(&one.case).copied().unwrap_or(f64::NAN);
    }
    seen.retain(|one| one.value.is_finite());
    seen
}

/// Side by side within their round, in the order of their cases.
fn spread<'a>(seen: impl Iterator<Item = &'a RoundValue>) -> Vec<Point> {
    let mut points = Vec::new();
    for (round, mut all) in grouped(seen.map(|one| (one.round, one))) {
        all.sort_by_key(|one| one.case);
        for (number, one) in all.iter().enumerate() {
            let beside = SPREAD * ((number as f64 + 0.5) / all.len() as f64 - 0.5);
            points.push(Point::bare(f64::from(round) + 1.0 + beside, one.value));
        }
    }
    points
}

/// The middle of each round: one value a case first, as some have more samples than others.
fn middles(ratios: &[RoundValue]) -> Vec<(u32, f64)> {
    let by_case = grouped(ratios.iter().map(|one| ((one.round, one.case), one.value)));
    let of_cases = by_case.iter().filter_map(|((round, _), all)| Some((*round, median(all)?)));
    grouped(of_cases).iter().filter_map(|(round, all)| Some((*round, median(all)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(case: usize, round: u32, value: f64) -> RoundValue {
        RoundValue { case, round, value, disturbed: value > 1e5 }
    }

    #[test]
    fn a_bad_round_stands_out_whatever_its_cases_cost() {
        // Two cases, one a hundred times as slow; in the third of five rounds both take half as
        // much again.
        let costs = |round: u32| if round == 2 { 1.5 } else { 1.0 };
        let all = (0..5).flat_map(|round| {
            [seen(0, round, 10.0 * costs(round)), seen(1, round, 1000.0 * costs(round))]
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
        let all = vec![seen(0, 0, 1e4), seen(0, 1, 1e4), seen(0, 2, 2e5)];
        let figure = rounds_figure(all, 0).unwrap();
        assert_eq!(figure.series()[1].name, "disturbed samples");
        assert_eq!(figure.series()[1].points[0].y, 20.0);
        assert!(rounds_figure(vec![seen(0, 0, 1.0), seen(1, 0, 2.0)], 0).is_none());
    }

    #[test]
    fn long_runs_are_thinned_by_rounds_and_say_so() {
        let all = (0..3000).flat_map(|round| [seen(0, round, 1.0), seen(1, round, 1.0)]).collect();
        let figure = rounds_figure(all, 0).unwrap();
        assert_eq!(figure.series()[0].points.len(), 250);
        assert!(figure.in_words.contains("One round in 24"), "{}", figure.in_words);
    }
}
