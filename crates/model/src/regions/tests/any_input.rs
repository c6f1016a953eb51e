//! Properties that hold for any input, also for one that nobody should send.

use proptest::prelude::*;

use super::super::*;

fn any_cost() -> impl Strategy<Value = f64> {
    let special = [
        0.0,
        -0.0,
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
    let error = proptest::option::weighted(0.9, any_cost());
    let size = prop_oneof![4 => 0_u64..70, 1 => any::<u64>()];
    let point = (size, any_cost(), error).prop_map(|(size, cost_ns, standard_error_ns)| Point {
        size,
        cost_ns,
        standard_error_ns,
    });
    proptest::collection::vec(point, 0..=20)
}

/// Costs of one order of magnitude with errors.
fn sound_points() -> impl Strategy<Value = Vec<Point>> {
    let point = (1_u64..1000, 100.0..1000.0_f64, 0.25..25.0_f64);
    let sound = |(size, cost_ns, error): (u64, f64, f64)| Point {
        size,
        cost_ns,
        standard_error_ns: Some(error),
    };
    proptest::collection::vec(point.prop_map(sound), 0..=12)
}

fn places(found: &Breaks) -> Vec<(u64, u64)> {
    found.breaks.iter().map(|a_break| (a_break.low, a_break.high)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics(points in any_points(), direct in proptest::option::of(any_cost())) {
        let direct = direct.map(|cost_ns| Direct { cost_ns, low_ns: None, high_ns: Some(cost_ns) });
        let read = regions(&points, direct);
        for words in [read.in_words(), read.breaks.in_words()] {
            prop_assert!(!words.is_empty() && !words.contains("NaN"), "{words}");
        }
        let found = &read.breaks;
        prop_assert!(!found.found() || found.pieces.len() == found.breaks.len() + 1);
        for a_break in &found.breaks {
            prop_assert!(a_break.low <= a_break.at && a_break.at <= a_break.high, "{:?}", a_break);
            prop_assert!(found.smallest <= a_break.low && a_break.high <= found.largest);
        }
        let text = serde_json::to_string(&read).unwrap();
        prop_assert!(serde_json::from_str::<Regions>(&text).is_ok(), "{text}");
    }

    #[test]
    fn the_units_do_not_matter(points in sound_points(), power in -20_i32..20, times in 1_u64..1000) {
        let cost = 2.0_f64.powi(power);
        let scaled: Vec<Point> = points.iter().map(|point| Point {
            size: point.size * times,
            cost_ns: point.cost_ns * cost,
            standard_error_ns: point.standard_error_ns.map(|error| error * cost),
        }).collect();
        let (a, b) = (breaks(Axis::pages(), &points), breaks(Axis::pages(), &scaled));
        let expected: Vec<_> = places(&a).iter().map(|(low, high)| (low * times, high * times)).collect();
        prop_assert_eq!(expected, places(&b));
    }
}
