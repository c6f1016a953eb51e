//! Properties that hold for any input, also for one that nobody should send.

use proptest::prelude::*;

use super::*;

fn any_cost() -> impl Strategy<Value = f64> {
    let special = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MAX,
        f64::MIN_POSITIVE,
        5e-324,
    ];
    prop_oneof![3 => -1e4..1e4, 2 => 900.0..1100.0, 1 => proptest::sample::select(special.to_vec()), 1 => any::<f64>()]
}

fn any_points() -> impl Strategy<Value = Vec<Point>> {
    let error = proptest::option::of(any_cost());
    let members = prop_oneof![4 => 0_u32..70, 1 => any::<u32>()];
    let point = (members, any_cost(), error).prop_map(|(members, cost_ns, standard_error_ns)| {
        Point { members, cost_ns, standard_error_ns }
    });
    proptest::collection::vec(point, 0..=30)
}

/// Positive costs of one order of magnitude, with or without errors.
fn sound_points() -> impl Strategy<Value = Vec<Point>> {
    let point = (1_u32..100, 100.0..1000.0_f64);
    (proptest::collection::vec(point, 0..=14), proptest::option::of(0.25..25.0_f64)).prop_map(
        |(costs, standard_error_ns)| {
            let point =
                |&(members, cost_ns): &(u32, f64)| Point { members, cost_ns, standard_error_ns };
            costs.iter().map(point).collect()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics(points in any_points()) {
        let verdict = law(&points);
        prop_assert!(!verdict.in_words().is_empty());
        prop_assert!(!verdict.in_words().contains("NaN"), "{}", verdict);
        for members in [f64::NAN, -1.0, 0.0, 1.0, 7.5, 1e9] {
            prop_assert!(verdict.cost_at(members).is_none_or(f64::is_finite));
        }
        prop_assert!(serde_json::to_string(&verdict).is_ok());
    }

    #[test]
    fn the_unit_does_not_matter(points in sound_points(), scale in 1e-6..1e6_f64) {
        let scaled: Vec<Point> = points.iter().map(|point| Point {
            members: point.members,
            cost_ns: point.cost_ns * scale,
            standard_error_ns: point.standard_error_ns.map(|error| error * scale),
        }).collect();
        let (a, b) = (law(&points), law(&scaled));
        prop_assert_eq!(&a.law, &b.law);
        let ends = |v: &Verdict| v.knees.iter().map(|k| (k.low_members, k.high_members)).collect::<Vec<_>>();
        prop_assert_eq!(ends(&a), ends(&b));
    }
}
