//! What earlier launches of a plan say of its cases.

use rundata::plan::CaseHistory;
use stats::{
    Elasticity, GroupEstimate, mad_sigma, median, normal_quantile, scatter_between_groups,
    student_quantile,
};

use super::{CaseFigure, Quantity, Results};
use crate::at_clock::pool_elasticities;
use crate::estimate::Speed;
use crate::speed::is_known;

/// No figure is known better than this, as a share of it: one that is the same in each round would
/// have no error.
const LEAST_ERROR: f64 = 1e-5;
/// Of the intervals that the scatter between launches is for.
const CONFIDENCE: f64 = 0.95;

/// What launches say of a case, by its number: how its figure goes with the clock, and how it
/// scatters between them once it is at one.
pub fn known_from_launches(launches: &[Results], case: usize) -> CaseHistory {
    let cases = || {
        let of_launch = |launch: &'_ Results| launch.cases.iter().position(|of| of.number == case);
        launches.iter().filter_map(move |launch| Some(&launch.cases[of_launch(launch)?]))
    };
    let first = cases().find_map(|of| of.figures.keys().next()).copied();
    let together = |of: Quantity| {
        let all = cases().filter_map(|case| case.figures.get(&of)).flat_map(CaseFigure::launches);
        CaseFigure::Measured(all.cloned().collect())
    };
    let power = |of: Quantity| {
        let own = together(of).clocks().into_iter().filter_map(|clock| clock.elasticity);
        pool_elasticities(own).filter(is_known)
    };
    let elasticity = first.and_then(power);
    CaseHistory {
        launch_scatter: first.and_then(|of| scatter(&together(of), elasticity)),
        elasticity,
        round_scatter: first.and_then(|of| scatter_between_rounds(&together(of))),
        hop_round_scatter: Some(Quantity::NsPerHop)
            .filter(|of| first != Some(*of))
            .and_then(|of| scatter_between_rounds(&together(of))),
        hop_elasticity: power(Quantity::NsPerHop).filter(|_| first != Some(Quantity::NsPerHop)),
    }
}

/// tau, as launches at full speed and at one clock say it; absent where they are fewer than five. A
/// few know it worse than many: times the quantile of as many by that of the normal distribution.
fn scatter(launches: &CaseFigure, elasticity: Option<Elasticity>) -> Option<f64> {
    let (there, _) = launches.at(launches.quantum_ns()?, elasticity);
    let full = |of: &super::LaunchFigure| of.estimate.filter(|of| of.speed == Speed::Full);
    let group = |of: &super::LaunchFigure| {
        let estimate = full(of)?;
        let standard_error = f64::max(estimate.standard_error?, LEAST_ERROR * estimate.value);
        Some(GroupEstimate { value: estimate.value, standard_error })
    };
    let groups = without_far_ones(there.launches().iter().filter_map(group).collect());
    let few = student_quantile(CONFIDENCE, groups.len() as f64 - 1.0)?;
    // More than the figure itself is nothing that an interval could have.
    Some((scatter_between_groups(&groups)? * few / normal_quantile(CONFIDENCE)?).min(1.0))
}

/// Launches at full speed from which on they say how rounds scatter.
const FEWEST_LAUNCHES: usize = 3;

/// Standard deviation between the rounds of a launch at full speed, as a share of its figure: the
/// median of the launches'. Absent where too few saw full speed.
fn scatter_between_rounds(launches: &CaseFigure) -> Option<f64> {
    let mut shares = Vec::new();
    for launch in launches.launches() {
        let Some(estimate) = launch.estimate.filter(|of| of.speed == Speed::Full) else { continue };
        let figures: Vec<f64> = launch.by_round.values().copied().collect();
        let share = mad_sigma(&figures).map(|deviation| deviation / estimate.value.abs());
        shares.extend(share.filter(|share| share.is_finite()));
    }
    let middle = median(&shares).filter(|_| shares.len() >= FEWEST_LAUNCHES)?;
    // One launch's rounds know their scatter badly: no less than a quarter of a percent.
    Some(middle.clamp(LEAST_ROUND_SCATTER, 1.0))
}

/// Rounds scatter by no less than this share of a figure.
const LEAST_ROUND_SCATTER: f64 = 0.0025;

/// Launches that lie farther from the middle than so many robust deviations of theirs count as
/// being there: one wild launch among twenty is one in twenty, and no measure of the others.
const FAR: f64 = 3.0;
/// Launches from which it is seen which of them are wild.
const FEWEST_TO_TELL: usize = 8;

fn without_far_ones(groups: Vec<GroupEstimate>) -> Vec<GroupEstimate> {
    let values: Vec<f64> = groups.iter().map(|group| group.value).collect();
    let (Some(middle), Some(deviation)) = (median(&values), mad_sigma(&values)) else {
        return groups;
    };
    if groups.len() < FEWEST_TO_TELL || deviation <= 0.0 {
        return groups;
    }
    let (least, most) = (middle - FAR * deviation, middle + FAR * deviation);
    let near =
        |group: GroupEstimate| GroupEstimate { value: group.value.clamp(least, most), ..group };
    groups.into_iter().map(near).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::at_clock::AtClock;
    use crate::estimate::Estimate;
    use crate::results::LaunchFigure;

    /// A launch at the clock of a quantum of `quantum_ns`.
    fn launch(value: f64, error: f64, quantum_ns: f64) -> LaunchFigure {
        LaunchFigure {
            by_round: BTreeMap::new(),
            estimate: Estimate::at_full_speed(value, error, 20, 0.01, 0.95),
            is_complete: true,
            clock: Some(AtClock { quantum_ns, elasticity: None, known: None }),
        }
    }

    fn of(launches: &[(f64, f64, f64)], power: Option<f64>) -> Option<f64> {
        let all = launches.iter().map(|(value, error, ns)| launch(*value, *error, *ns));
        let power = power.map(|value| Elasticity { value, standard_error: 0.01 });
        scatter(&CaseFigure::Measured(all.collect()), power)
    }

    #[test]
    fn launches_at_other_clocks_do_not_scatter_by_them() {
        // A clock that is 10 % slower in half of them takes a figure that the core bounds with it.
        let same = |ns: f64| (1000.0 * ns / 5000.0, 1.0, ns);
        let alike: Vec<_> = [5000.0, 5500.0].into_iter().cycle().take(10).map(same).collect();
        assert_eq!(of(&alike, Some(1.0)), Some(0.0));
        assert!(of(&alike, Some(0.0)).unwrap() > 0.04);
    }

    /// Deviations of 0.4 % about the mean of six, known to 0.1 %: tau^2 = 6/5 x 0.4^2 - 0.1^2,
    /// times t(0.975; 5) = 2.571 by 1.960.
    #[test]
    fn few_launches_know_their_scatter_badly() {
        let launches = [0.996, 1.004].into_iter().cycle().take(6);
        let launches: Vec<_> = launches.map(|share| (1000.0 * share, 1.0, 5000.0)).collect();
        let tau = (1.2_f64 * 0.4_f64.powi(2) - 0.01).sqrt() / 100.0 * 2.571 / 1.960;
        let found = of(&launches, None).unwrap();
        assert!((found / tau - 1.0).abs() < 0.01, "{found} is not {tau}");
        assert_eq!(of(&launches[..4], None), None);
        // One wild launch among many does not widen the intervals of the others.
        let many: Vec<_> = (0..19).map(|at| (1000.0 + f64::from(at % 5), 1.0, 5000.0)).collect();
        let calm = of(&many, None).unwrap();
        let wild = of(&[&many[..], &[(1120.0, 1.0, 5000.0)]].concat(), None).unwrap();
        assert!(wild < 2.0 * calm, "{wild} after {calm}");
        // Nothing is learnt that a plan would not take back from its file.
        let absurd = [350.0, 2.0, 900.0, 5.0, 4000.0, 1.0].map(|value| (value, 1.0, 5000.0));
        assert!(of(&absurd, None).unwrap() <= 1.0);
        // What is the same in all launches and rounds scatters by nothing.
        assert_eq!(of(&[(36.0, 0.0, 5000.0); 6], None), Some(0.0));
    }
}
