//! Comparisons with a side that was not at full speed, of which an upper bound is known.

use super::*;
use crate::comparison::answer::at_least;

/// Marks all cases as measured beside other tasks, with a bound of `share` of their estimates.
fn bounded(results: Results, share: f64) -> Results {
    let mut results = disturb(results, "other");
    change_estimates(&mut results, "other", |estimate| {
        estimate.at_most = Some(share * estimate.value);
    });
    results
}

#[test]
fn a_bound_below_the_other_side_decides_which_is_faster() {
    let sun = sun_results();
    let seen = || bounded(full_speed(|_| {}), 0.9);
    let faster = compare(&sun, &seen());
    for change in &faster.changes {
        let ChangeAnswer::Bounded { worse: false, ratio, at_most_ns } = change.answer else {
            panic!("{change:?}");
        };
        assert!((at_most_ns / (0.9 * change.new_ns) - 1.0).abs() < 1e-9, "{change:?}");
        assert!((ratio * change.base_ns / at_most_ns - 1.0).abs() < 1e-9, "{change:?}");
        assert!(!change.is_tested() && change.has_ratio(), "{change:?}");
    }
    let words = &faster.in_words;
    assert!(words.contains(" is faster than sun-4/280 in both cases; most in "), "{words}");
    assert!(words.contains(": at least ") && words.contains("x faster, at most "), "{words}");
    assert_eq!(faster.gate.verdict, GateVerdict::Pass);
    // The other way round the slower side is the published one: it makes no FAIL.
    let slower = compare(&seen(), &sun);
    for change in &slower.changes {
        assert!(matches!(change.answer, ChangeAnswer::Bounded { worse: true, .. }), "{change:?}");
    }
    assert_eq!(slower.gate.verdict, GateVerdict::Undecided);
    assert!(slower.gate.in_words.contains(" is at least "), "{}", slower.gate.in_words);
}

#[test]
fn a_bound_is_rounded_towards_no_change() {
    assert_eq!(at_least(Quantity::NsPerHop, 1.0 / 337.9), "at least 337x faster");
    assert_eq!(at_least(Quantity::NsPerHop, 1.0789), "at least 7.8 % slower");
}

#[test]
fn a_bound_decides_between_runs_beyond_the_interval_only() {
    let base = full_speed(|_| {});
    let run = || full_speed(|_| {});
    for change in compare(&base, &bounded(run(), 0.5)).changes {
        let ChangeAnswer::Bounded { worse: false, ratio, .. } = change.answer else {
            panic!("{change:?}");
        };
        assert!((0.5..0.99).contains(&ratio), "{change:?}");
    }
    // A bound within the interval of the other side, one of a run that did not complete, and two.
    let incomplete = full_speed(|run| run.end = None);
    for comparison in [
        compare(&base, &bounded(run(), 0.99)),
        compare(&base, &bounded(incomplete, 0.5)),
        compare(&bounded(run(), 0.9), &bounded(run(), 0.1)),
    ] {
        assert!(
            comparison.changes.iter().all(|change| change.reason().is_some()),
            "{comparison:?}"
        );
    }
    // It never shows that nothing has changed.
    let wide = ComparisonTerms { limit: 10.0, ..terms() };
    for change in Comparison::from_results(&base, &bounded(run(), 0.5), wide).changes {
        assert_ne!(change.answer, ChangeAnswer::NotChanged);
    }
}
