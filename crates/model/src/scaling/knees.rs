//! Where the knees are, how surely, and how much they cost.

use super::fit::Fit;
use super::points::Prepared;
use super::select::{Dispersion, Scored};
use super::shape::MOST_TERMS;
use super::verdict::{Knee, KneeKind};
use crate::curve::credible_span;

/// The knees of the chosen law.
pub(super) fn find_knees(
    data: &Prepared,
    all: &[Scored],
    chosen: &Scored,
    dispersion: Dispersion,
) -> Vec<Knee> {
    let count = chosen.fit.shape.knees();
    (0..count)
        .map(|which| {
            let (first, last) = credible_brackets(data, all, &chosen.fit, which);
            knee(data, &chosen.fit, which, (first, last), dispersion)
        })
        .collect()
}

/// The brackets that the weight of all laws with as many knees leaves open.
fn credible_brackets(
    data: &Prepared,
    all: &[Scored],
    chosen: &Fit,
    which: usize,
) -> (usize, usize) {
    let same = all.iter().filter(|s| s.fit.shape.knees() == chosen.shape.knees());
    let scored: Vec<(usize, f64)> = same.map(|s| (s.fit.brackets[which], s.criterion)).collect();
    credible_span(data.sizes.len(), &scored, chosen.brackets[which])
}

fn knee(
    data: &Prepared,
    fit: &Fit,
    which: usize,
    brackets: (usize, usize),
    dispersion: Dispersion,
) -> Knee {
    let stepped = fit.shape.has_steps();
    let after = fit.brackets[which] + 1;
    let end = match fit.brackets.get(which + 1) {
        Some(&next) => next + 1,
        None => data.sizes.len(),
    };
    let next_turn = fit.turns.get(which + 1).copied();
    let at_members =
        if stepped { f64::from(data.sizes[after]) } else { next_turn.unwrap_or(data.largest()) };
    let (factor, interval) = factor(fit, which, at_members, dispersion);
    Knee {
        kind: if stepped { KneeKind::Step } else { KneeKind::Hinge },
        low_members: data.sizes[brackets.0],
        high_members: data.sizes[brackets.1 + 1],
        factor,
        factor_low: interval.map(|(low, _)| low),
        factor_high: interval.map(|(_, high)| high),
        at_members,
        sizes_after: end - after,
    }
}

/// Cost after over cost by the law before, and its interval by the delta method.
fn factor(
    fit: &Fit,
    which: usize,
    at: f64,
    dispersion: Dispersion,
) -> (Option<f64>, Option<(f64, f64)>) {
    let after = fit.shape.basis(&fit.turns, at);
    let before = fit.shape.basis_before(&fit.turns, which, at);
    let (cost_after, cost_before) = (fit.combine(after), fit.combine(before));
    if cost_after <= 0.0 || cost_before <= 0.0 {
        return (None, None);
    }
    let factor = cost_after / cost_before;
    let gradient: [f64; MOST_TERMS] =
        std::array::from_fn(|i| after[i] / cost_after - before[i] / cost_before);
    // Where the old cost may be zero the ratio has no upper end, and the delta method no meaning.
    let resolved = dispersion.half_width(fit, before).is_some_and(|half| half < cost_before);
    let half = dispersion.half_width(fit, gradient).filter(|_| resolved);
    let interval = half.map(|half| (factor * (-half).exp(), factor * half.exp()));
    let finite = |&(low, high): &(f64, f64)| low.is_finite() && high.is_finite();
    (Some(factor).filter(|f| f.is_finite()), interval.filter(finite))
}
