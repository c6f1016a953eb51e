//! Several runs, each compared with each.

use super::*;

fn same() -> (String, Results) {
    ("same".to_string(), full_speed(|_| {}))
}

fn other() -> (String, Results) {
    ("other".to_string(), full_speed(|run| slow_down(run, 3.0)))
}

fn compare_runs(runs: &[(String, Results)]) -> PairwiseComparison {
    PairwiseComparison::from_results(runs, terms())
}

#[test]
fn of_several_runs_the_only_one_that_differs_from_all_others_is_the_odd_one() {
    let slower = compare_runs(&[same(), same(), other(), same()]);
    assert_eq!(slower.odd, [2], "{slower:?}");
    assert_eq!(slower.runs[2].differs_from, [0, 1, 3]);
    assert_eq!(slower.runs[0].differs_from, [2]);
    let farthest = slower.runs[2].farthest.as_ref().unwrap();
    assert!((farthest.ratio - 3.0).abs() < 0.1 && farthest.is_odd, "{farthest:?}");
    let (low, high) = farthest.interval.unwrap();
    assert!(low < farthest.ratio && farthest.ratio < high, "{farthest:?}");
    assert!(slower.in_words.contains("other is the odd one out: 2"), "{}", slower.in_words);
    assert_eq!(slower.pairs, 18, "six pairs of runs, three cases");
    // A third of the others' cost is as odd as three times as much.
    let faster = compare_runs(&[other(), same(), other()]);
    assert_eq!(faster.odd, [1], "{faster:?}");
    assert!(faster.in_words.contains("% faster than the others"), "{}", faster.in_words);
}

/// Of three runs there are three pairs: each interval holds at a third of the risk.
#[test]
fn the_intervals_of_all_pairs_hold_together() {
    let three = compare_runs(&[same(), other(), same()]);
    let farthest = three.runs[1].farthest.as_ref().unwrap();
    let confidence = 1.0 - (1.0 - terms().confidence) / 3.0;
    let one_pair = ComparisonTerms { confidence, ..terms() };
    let pair = Comparison::from_results(&same().1, &other().1, one_pair);
    let change = pair.changes.iter().find(|change| change.title == farthest.title).unwrap();
    let ((low, high), (pair_low, pair_high)) =
        (farthest.interval.unwrap(), change.ratio.interval().unwrap());
    assert!((low / pair_low - 1.0).abs() < 1e-9, "{farthest:?} {change:?}");
    assert!((high / pair_high - 1.0).abs() < 1e-9, "{farthest:?} {change:?}");
}

#[test]
fn runs_that_differ_from_half_of_the_others_or_from_none_are_not_odd() {
    let halves = compare_runs(&[same(), other(), same(), other()]);
    assert!(halves.odd.is_empty(), "{halves:?}");
    assert!(halves.in_words.contains("4 of 4 differ"), "{}", halves.in_words);
    let alike = compare_runs(&[same(), same(), same()]);
    assert!(alike.odd.is_empty() && alike.runs.iter().all(|run| run.differs_from.is_empty()));
    assert!(alike.in_words.starts_with("None of the 3 runs"), "{}", alike.in_words);
}

#[test]
fn of_several_runs_those_without_a_common_case_are_not_compared() {
    let fifo = full_speed(|run| set_all_policies(run, Policy::Fifo));
    let comparison = compare_runs(&[same(), same(), ("fifo".to_string(), fifo)]);
    assert_eq!((comparison.cases, &comparison.odd[..]), (0, &[][..]));
    let end = "runs have no case in common: nothing was compared";
    assert!(comparison.in_words.ends_with(end), "{}", comparison.in_words);
}
