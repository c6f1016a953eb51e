//! The engine of change points by settings of its own: known answers, and any input.

use super::{CurveAnalysis, CurveForm, CurvePoint, ErrorModel, FitSettings, Nesting, Term, Turn};
use proptest::prelude::*;

const STEP: usize = 2;
const HINGE: usize = 3;
const HALVES: &[Turn] = &[Turn::Hinge(&[0.0, 0.5])];

static FORMS: [CurveForm; 4] = [
    CurveForm::new(&[Term::One], &[]),
    CurveForm::new(&[Term::One, Term::X], &[]),
    CurveForm::new(&[Term::One, Term::Step(0)], &[Turn::Step]),
    CurveForm { before: 2, ..CurveForm::new(&[Term::One, Term::X, Term::Beyond(0)], HALVES) },
];

static SETTINGS: FitSettings = FitSettings {
    forms: &FORMS,
    tolerance: 0.01,
    relative: false,
    errors: ErrorModel::Given { fewest: 7, left: [4, 4, 7] },
    fewest: 4,
    between: 2,
    nesting: Nesting::Terms,
};

static SMOOTHED: FitSettings = FitSettings {
    relative: true,
    errors: ErrorModel::Smoothed,
    fewest: 5,
    between: 1,
    nesting: Nesting::Turns,
    ..SETTINGS
};

fn points(curve: impl Fn(f64) -> f64, error: Option<f64>) -> Vec<CurvePoint> {
    (1..=12).map(f64::from).map(|x| CurvePoint { x, y: curve(x), error }).collect()
}

#[test]
fn exact_curves_are_found_again() {
    for settings in [&SETTINGS, &SMOOTHED] {
        let flat = CurveAnalysis::new(&points(|_| 5.0, Some(0.1)), settings);
        assert_eq!(flat.chosen().unwrap().number, 0);
        assert_eq!(flat.support(flat.chosen().unwrap()), None);

        let step = points(|x| if x > 7.0 { 9.0 } else { 5.0 }, Some(0.1));
        let step = CurveAnalysis::new(&step, settings);
        let chosen = step.chosen().unwrap();
        assert_eq!((chosen.number, &chosen.brackets[..]), (STEP, &[6][..]));
        assert_eq!(step.brackets(chosen, 0), (6, 6), "between 7 and 8");
        assert!((chosen.at(12.0) * step.data.unit - 9.0).abs() < 1e-9);
        assert!(step.support(chosen).unwrap() > 10.0);

        let hinge = points(|x| 5.0 + 0.5 * x + 3.0 * (x - 6.0).max(0.0), Some(0.05));
        let hinge = CurveAnalysis::new(&hinge, settings);
        assert_eq!(hinge.chosen().unwrap().number, HINGE);
    }
}

/// The mean of n points with standard error s is known to 1.96 s / sqrt(n), less the tolerance.
#[test]
fn the_interval_of_a_constant_is_that_of_a_mean() {
    let all = CurveAnalysis::new(&points(|_| 100.0, Some(10.0)), &SETTINGS);
    let half = all.half_width(all.chosen().unwrap(), [1.0, 0.0, 0.0, 0.0]).unwrap();
    let error = 10.0_f64.hypot(0.01 * 100.0);
    assert!((half * all.data.unit - 1.95996 * error / 12.0_f64.sqrt()).abs() < 1e-3, "{half}");
    assert_eq!(all.lack_of_fit(all.chosen().unwrap()).map(|p| p > 0.999), Some(true));
}

#[test]
fn points_without_errors_are_used_or_left_out_as_the_settings_say() {
    let bare = points(|x| if x > 7.0 { 9.0 } else { 5.0 }, None);
    let all = CurveAnalysis::new(&bare, &SETTINGS);
    assert_eq!(all.chosen().map(|fit| fit.number), Some(STEP));
    assert_eq!(all.lack_of_fit(all.chosen().unwrap()), None, "nothing is left to test with");
    let none = CurveAnalysis::new(&bare, &SMOOTHED);
    assert_eq!((none.data.ignored, none.chosen().is_some()), (12, false));
    // Fewer than seven are not told from noise.
    let few = CurveAnalysis::new(&bare[3..9], &SETTINGS);
    assert_eq!(few.chosen().map(|fit| fit.number), Some(0));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_points_have_a_sound_answer(
        values in proptest::collection::vec((any::<f64>(), any::<f64>(), proptest::option::of(any::<f64>())), 0..14),
        near in proptest::collection::vec((1.0..20.0_f64, -9.0..9.0_f64, proptest::option::of(0.0..2.0_f64)), 0..14),
    ) {
        let point = |&(x, y, error): &(f64, f64, Option<f64>)| CurvePoint { x, y, error };
        for list in [&values, &near] {
            for settings in [&SETTINGS, &SMOOTHED] {
                let all = CurveAnalysis::new(&list.iter().map(point).collect::<Vec<_>>(), settings);
                let Some(chosen) = all.chosen() else { continue };
                prop_assert!(chosen.criterion.is_finite());
                for turn in 0..chosen.turns.len() {
                    let (first, last) = all.brackets(chosen, turn);
                    prop_assert!(first <= chosen.brackets[turn] && chosen.brackets[turn] <= last);
                    prop_assert!(last + 1 < all.data.places.len());
                }
            }
        }
    }
}
