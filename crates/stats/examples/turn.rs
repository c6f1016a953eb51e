//! Where a curve bends: the cost of an access by working set, which grows from some size on.
use stats::changepoint::{
    CurveAnalysis, CurveForm, CurvePoint, ErrorModel, FitSettings, Nesting, Term, Turn,
};

static FORMS: [CurveForm; 2] = [
    CurveForm::new(&[Term::One, Term::X], &[]),
    CurveForm::new(&[Term::One, Term::X, Term::Beyond(0)], &[Turn::Hinge(&[0.0, 0.5])]),
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

fn main() {
    // MiB and ns, known to 0.1 ns: flat to 6 MiB, then 3 ns more for each.
    let at = |x: f64| CurvePoint { x, y: 5.0 + 3.0 * (x - 6.0).max(0.0), error: Some(0.1) };
    let points: Vec<CurvePoint> = (1..=12).map(f64::from).map(at).collect();
    let analysis = CurveAnalysis::new(&points, &SETTINGS);
    match analysis.chosen() {
        None => println!("too few points"),
        Some(fit) if fit.turns.is_empty() => println!("one line"),
        Some(fit) => {
            let support = analysis.support(fit).unwrap_or_default();
            println!("the slope changes at {} MiB, with a support of {support:.0}", fit.turns[0]);
        }
    }
}
