//! The scatter of a case between launches and rounds, and its elasticity, by earlier launches of its
//! plan.
//!
//! A launch has memory, stacks and a history of its own, so that the next one gives another figure,
//! however many rounds each has. A run cannot show this scatter, tau; stored launches of the same
//! plan can. Six launches at full speed, each known to 1 ns by its own rounds:
//!
//! ```text
//! 996  1004  996  1004  996  1004 ns    mean 1,000, variance 6/5 * 4^2 = 19.2
//! ```
//!
//! 1. Of the variance, 1^2 is the launches' own error. tau = sqrt(19.2 - 1) / 1000 = 0.43 %.
//! 2. Six launches know it badly: times t(0.975; 5) / 1.960 = 2.571 / 1.960 it is 0.56 %.
//! 3. The next launch finds 1,000 ns with an error of 1 ns in 20 rounds. Its interval has a
//!    half-width of sqrt((2.093 * 1)^2 + (1.960 * 0.0056 * 1000)^2) = 11 ns, not of 2.1 ns: it holds
//!    for the case, not only for that launch.
//!
//! Before, the figures are converted to one clock, or turbo would be scatter, and where there are
//! eight or more, each is moved to within three robust deviations of their median. With fewer than
//! five launches tau is not known, and the plan's usual one counts. The scatter between rounds is
//! taken likewise, from three launches on, for runs that see full speed in few rounds. Quantiles under
//! load have no clock and need no full speed: all launches that completed count.

use rundata::plan::{CaseHistory, QuantileScatter};
use stats::{
    Elasticity, GroupEstimate, mad_sigma, median, normal_quantile, scatter_between_groups,
    student_quantile,
};

use super::{CaseFigure, CaseResults, LaunchFigure, Quantity, Results};
use crate::at_clock::pool_elasticities;
use crate::estimate::{Estimate, Speed};
use crate::speed::is_known;

/// Smallest relative standard error of a launch: a figure that is the same in each round would have
/// none.
const LEAST_ERROR: f64 = 1e-5;
/// Confidence of the intervals that the scatter between launches is used for.
const CONFIDENCE: f64 = 0.95;

/// Returns what launches show of a case, by its number: its elasticity, its scatter between launches
/// at one clock, and its scatter between rounds.
pub fn known_from_launches(launches: &[Results], case: usize) -> CaseHistory {
    let mut cases = Vec::new();
    for launch in launches {
        cases.extend(launch.cases.iter().find(|candidate| candidate.number == case));
    }
    let Some(quantity) = first_quantity(&cases) else { return CaseHistory::default() };
    let figure = figure_of_all(&cases, quantity);
    let elasticity = pooled_elasticity(&figure);
    let mut known = CaseHistory {
        launch_scatter: launch_scatter(&figure, elasticity),
        elasticity,
        round_scatter: round_scatter(&figure),
        quantile_scatter: quantile_scatter(&cases),
        ..CaseHistory::default()
    };
    if quantity != Quantity::NsPerHop {
        let hop = figure_of_all(&cases, Quantity::NsPerHop);
        known.hop_round_scatter = round_scatter(&hop);
        known.hop_elasticity = pooled_elasticity(&hop);
    }
    known
}

/// Returns the quantity that stands for a case, by the first launch that measured it.
fn first_quantity(cases: &[&CaseResults]) -> Option<Quantity> {
    let measured = cases.iter().find(|case| !case.figures.is_empty())?;
    measured.figures.keys().next().copied()
}

/// Returns a figure of a case with the launches of all its results.
fn figure_of_all(cases: &[&CaseResults], quantity: Quantity) -> CaseFigure {
    let mut launches = Vec::new();
    for case in cases {
        if let Some(figure) = case.figures.get(&quantity) {
            launches.extend_from_slice(figure.launches());
        }
    }
    CaseFigure::Measured(launches)
}

/// Returns the mean of the elasticities that launches measured themselves; absent where it is not
/// known well enough.
fn pooled_elasticity(figure: &CaseFigure) -> Option<Elasticity> {
    let mut measured = Vec::new();
    for clock in figure.clocks() {
        measured.extend(clock.elasticity);
    }
    pool_elasticities(measured).filter(is_known)
}

fn full_speed_estimate(launch: &LaunchFigure) -> Option<Estimate> {
    launch.estimate.filter(|estimate| estimate.speed == Speed::Full)
}

/// Returns tau by the launches at full speed, converted to one clock; absent below the number of
/// launches that [`scatter_between_groups`] takes.
///
/// Few launches know tau worse than many do: it is multiplied by Student's quantile over the normal
/// one.
fn launch_scatter(figure: &CaseFigure, elasticity: Option<Elasticity>) -> Option<f64> {
    let converted = figure.converted_to(figure.quantum_ns()?, elasticity).figure;
    let mut estimates = Vec::new();
    for launch in converted.launches() {
        estimates.extend(full_speed_estimate(launch));
    }
    scatter_of_estimates(&estimates)
}

/// Returns the scatter between launches of each quantile of wake-ups, by those that completed, whatever
/// the speed of the core; absent where none is known.
fn quantile_scatter(cases: &[&CaseResults]) -> Option<QuantileScatter> {
    let found = QuantileScatter {
        wake_p50: completed_scatter(cases, Quantity::WakeP50Ns),
        wake_p99: completed_scatter(cases, Quantity::WakeP99Ns),
        request_p50: completed_scatter(cases, Quantity::RequestP50Ns),
        request_p99: completed_scatter(cases, Quantity::RequestP99Ns),
    };
    if found == QuantileScatter::default() { None } else { Some(found) }
}

/// Returns the scatter of a figure between the launches that completed.
fn completed_scatter(cases: &[&CaseResults], quantity: Quantity) -> Option<f64> {
    let mut estimates = Vec::new();
    for launch in figure_of_all(cases, quantity).launches() {
        if launch.is_complete {
            estimates.extend(launch.estimate);
        }
    }
    scatter_of_estimates(&estimates)
}

/// Returns the scatter of launches beyond their own errors, as a share.
fn scatter_of_estimates(estimates: &[Estimate]) -> Option<f64> {
    let mut groups = Vec::new();
    for estimate in estimates {
        let Some(error) = estimate.standard_error else { continue };
        let standard_error = f64::max(error, LEAST_ERROR * estimate.value);
        groups.push(GroupEstimate { value: estimate.value, standard_error });
    }
    clamp_outliers(&mut groups);
    let student = student_quantile(CONFIDENCE, groups.len() as f64 - 1.0)?;
    let scatter = scatter_between_groups(&groups)? * student / normal_quantile(CONFIDENCE)?;
    // A plan does not accept more than the figure itself.
    Some(scatter.min(1.0))
}

/// Fewest launches at full speed for a scatter between rounds.
const MIN_ROUND_SCATTER_LAUNCHES: usize = 3;

/// Smallest scatter between rounds, as a share of a figure: the rounds of one launch know it badly.
const LEAST_ROUND_SCATTER: f64 = 0.0025;

/// Returns the standard deviation between the rounds of a launch at full speed, as a share of its
/// figure: the median over the launches. Absent where too few were at full speed.
fn round_scatter(figure: &CaseFigure) -> Option<f64> {
    let mut shares = Vec::new();
    for launch in figure.launches() {
        let Some(estimate) = full_speed_estimate(launch) else { continue };
        let figures: Vec<f64> = launch.by_round.values().copied().collect();
        let Some(deviation) = mad_sigma(&figures) else { continue };
        let share = deviation / estimate.value.abs();
        if share.is_finite() {
            shares.push(share);
        }
    }
    if shares.len() < MIN_ROUND_SCATTER_LAUNCHES {
        return None;
    }
    Some(median(&shares)?.clamp(LEAST_ROUND_SCATTER, 1.0))
}

/// Robust deviations from the median beyond which a launch is moved to that distance: one outlier
/// among twenty launches says little about the others.
const MAX_DEVIATIONS: f64 = 3.0;
/// Fewest launches among which outliers are recognized.
const MIN_OUTLIER_LAUNCHES: usize = 8;

fn clamp_outliers(groups: &mut [GroupEstimate]) {
    let values: Vec<f64> = groups.iter().map(|group| group.value).collect();
    let (Some(middle), Some(deviation)) = (median(&values), mad_sigma(&values)) else { return };
    if groups.len() < MIN_OUTLIER_LAUNCHES || deviation <= 0.0 {
        return;
    }
    let distance = MAX_DEVIATIONS * deviation;
    for group in groups {
        group.value = group.value.clamp(middle - distance, middle + distance);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::at_clock::AtClock;
    use crate::measures::WakeSource;

    /// Builds a launch at the clock of a quantum of `quantum_ns`.
    fn launch(value: f64, error: f64, quantum_ns: f64) -> LaunchFigure {
        LaunchFigure {
            by_round: BTreeMap::new(),
            estimate: Estimate::at_full_speed(value, error, 20, 0.01, 0.95),
            is_complete: true,
            clock: Some(AtClock { quantum_ns, elasticity: None, known: None }),
            launch_scatter: None,
        }
    }

    /// Returns tau of launches of the same plan.
    fn scatter(launches: Vec<LaunchFigure>, elasticity: Option<f64>) -> Option<f64> {
        let elasticity = elasticity.map(|value| Elasticity { value, standard_error: 0.01 });
        launch_scatter(&CaseFigure::Measured(launches), elasticity)
    }

    #[test]
    fn launches_at_other_clocks_do_not_scatter_by_them() {
        // A clock that is 10 % slower in half of them takes a figure that the core bounds with it.
        let mut launches = Vec::new();
        for _ in 0..5 {
            launches.push(launch(1000.0, 1.0, 5000.0));
            launches.push(launch(1000.0 * 5500.0 / 5000.0, 1.0, 5500.0));
        }
        assert_eq!(scatter(launches.clone(), Some(1.0)), Some(0.0));
        assert!(scatter(launches, Some(0.0)).unwrap() > 0.04);
    }

    /// Deviations of 0.4 % about the mean of six, known to 0.1 %: tau^2 = 6/5 x 0.4^2 - 0.1^2,
    /// times t(0.975; 5) = 2.571 by 1.960.
    #[test]
    fn few_launches_know_their_scatter_badly() {
        let mut launches = Vec::new();
        for _ in 0..3 {
            launches.push(launch(1000.0 * 0.996, 1.0, 5000.0));
            launches.push(launch(1000.0 * 1.004, 1.0, 5000.0));
        }
        let tau = (1.2_f64 * 0.4_f64.powi(2) - 0.01).sqrt() / 100.0 * 2.571 / 1.960;
        let measured = scatter(launches.clone(), None).unwrap();
        assert!((measured / tau - 1.0).abs() < 0.01, "{measured} is not {tau}");
        assert_eq!(scatter(launches[..4].to_vec(), None), None);
    }

    #[test]
    fn one_outlier_among_many_does_not_widen_the_intervals_of_the_others() {
        let mut launches = Vec::new();
        for number in 0..19 {
            launches.push(launch(1000.0 + f64::from(number % 5), 1.0, 5000.0));
        }
        let calm = scatter(launches.clone(), None).unwrap();
        launches.push(launch(1120.0, 1.0, 5000.0));
        let wild = scatter(launches, None).unwrap();
        assert!(wild < 2.0 * calm, "{wild} after {calm}");
    }

    #[test]
    fn tau_is_one_that_a_plan_accepts() {
        let absurd = [350.0, 2.0, 900.0, 5.0, 4000.0, 1.0];
        let launches = absurd.iter().map(|value| launch(*value, 1.0, 5000.0));
        assert!(scatter(launches.collect(), None).unwrap() <= 1.0);
        // What is the same in all launches and rounds scatters by nothing.
        assert_eq!(scatter(vec![launch(36.0, 0.0, 5000.0); 6], None), Some(0.0));
    }

    /// Builds a launch of a median of wake-ups, at no known speed.
    fn loaded_launch(value: f64, is_complete: bool) -> CaseResults {
        let estimate = Estimate::at_full_speed(value, 10.0, 20, 0.0, 0.95);
        let estimate = estimate.map(|estimate| Estimate { speed: Speed::NotJudged, ..estimate });
        let launch_scatter = None;
        let launch = LaunchFigure {
            by_round: BTreeMap::new(),
            estimate,
            is_complete,
            clock: None,
            launch_scatter,
        };
        CaseResults {
            number: 0,
            experiment: "response",
            title: String::new(),
            labels: Vec::new(),
            details: Vec::new(),
            figures: BTreeMap::from([(Quantity::WakeP50Ns, CaseFigure::Measured(vec![launch]))]),
            summary: None,
            failure: None,
            iterations: Vec::new(),
        }
    }

    /// Deviations of 5 % about 10,000 ns, known to 0.1 %; a launch that was stopped does not count.
    #[test]
    fn quantiles_under_load_scatter_as_launches_did_at_any_speed() {
        let mut cases = Vec::new();
        for value in [9500.0, 10_500.0, 9500.0, 10_500.0, 9500.0] {
            cases.push(loaded_launch(value, true));
        }
        cases.push(loaded_launch(90_000.0, false));
        let cases: Vec<&CaseResults> = cases.iter().collect();
        let found = quantile_scatter(&cases).expect("five launches");
        let deviation = (5.0_f64 / 4.0 * (0.24 * 0.1 * 0.1)).sqrt();
        let tau = deviation / 0.95 * 2.776 / 1.960;
        let median = found.wake_p50.expect("five launches");
        assert!((median / tau - 1.0).abs() < 0.02, "{median} is not {tau}");
        let history = CaseHistory { quantile_scatter: Some(found), ..CaseHistory::default() };
        let shown = |source| Quantity::WakeP50Ns.wake_scatter(source, &history);
        assert_eq!(shown(WakeSource::Messenger), Some(median));
        // Of a timer 25 % are assumed, of which half is the least.
        assert_eq!(shown(WakeSource::Timer), Some(0.125));
        let none = QuantileScatter { wake_p50: Some(0.0), ..found };
        let calm = CaseHistory { quantile_scatter: Some(none), ..history };
        let by_calm = |quantity: Quantity, source| quantity.wake_scatter(source, &calm);
        assert_eq!(by_calm(Quantity::WakeP50Ns, WakeSource::Messenger), Some(0.025));
        assert_eq!(by_calm(Quantity::WakeP99Ns, WakeSource::Messenger), Some(0.12));
        assert_eq!(by_calm(Quantity::WakeP99Ns, WakeSource::Timer), Some(0.25));
        assert_eq!(by_calm(Quantity::NsPerHop, WakeSource::Timer), None);
        assert_eq!((found.wake_p99, quantile_scatter(&cases[..4])), (None, None));
        assert_eq!(quantile_scatter(&cases[1..]), None);
    }
}
