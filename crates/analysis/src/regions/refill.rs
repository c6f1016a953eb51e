//! The curve of a cache: both breaks that a cache causes depend on one number, its capacity C.
//!
//! A switch fetches again what the other member has evicted: nothing while both arrays fit (2 x below
//! C), the whole array once they do not, and less of it once the array alone does not fit (x above
//! C), as the solo ring then fetches it again in every hop as well. With F rising from 0 to 1 around
//! 1:
//!
//! c2(x) = a + p x F(2x/C) (1 - F(x/C)) + s C F(x/C) + b x
//!
//! p is the cost of fetching a byte again, s C the rest of it beyond C, b x a cost of each byte
//! without a threshold. One place is searched instead of two, which finds it in data where two free
//! breaks are lost in the scatter (Li, Ding and Shen 2007, section 3.1, draw the same three
//! regions).

use rundata::words::{byte_range, bytes, two_digits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::changepoint::{
    CLEARLY_BETTER, CurveAnalysis, FitData, FormFit, TURN_CHARGE, akaike_weights, credible_span,
    quantile,
};
use stats::{FitRow, LeastSquaresFit, nonnegative_least_squares};

use super::breaks::{empty, outside, piece};
use super::{CostBreak, CostBreaks, CostTrend, EQUIVALENCE, SizeAxis};
use crate::curve::TurnKind;

/// Parts of C at which F leaves 0 and reaches 1; it is straight in the logarithm between. Pages fall
/// into the sets of a cache by chance, so that some sets are full long before the cache is (wide),
/// unless pages are huge or the kernel spreads them (narrow).
const WIDTHS: [(f64, f64); 2] = [(0.5, 1.3), (0.7, 1.1)];

/// Capacities of the cache that are tried in each doubling.
const PLACES_A_DOUBLING: f64 = 8.0;

/// Fewest sizes before the cost leaves the level of the first region, and after.
const FEWEST_AROUND: usize = 2;

const TERMS: usize = 4;

/// A fit of a cache of one capacity.
struct CacheFit {
    /// C over the smallest size.
    holds: f64,
    width: (f64, f64),
    /// Whether sizes beyond C were measured.
    beyond: bool,
    /// Penalty of its coefficients and places.
    charge: f64,
    fit: LeastSquaresFit<TERMS>,
}

/// The cache that explains both breaks (the formula: `docs/method.md`, "One cache").
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Refill")]
pub struct CacheRefill {
    /// Capacity in bytes.
    pub holds_bytes: u64,
    /// Lower end of the capacity's interval.
    pub holds_bytes_low: u64,
    /// Upper end of the capacity's interval.
    pub holds_bytes_high: u64,
    /// Cost of fetching again, in ns for each KiB.
    pub ns_per_kib: f64,
    /// Lower end of its interval, given the capacity.
    pub ns_per_kib_low: f64,
    /// Upper end of that interval.
    pub ns_per_kib_high: f64,
}

impl CacheRefill {
    pub(super) fn in_words(&self) -> String {
        format!(
            "a cache of {} ({}) explains both, with {} ns ({} to {}) for each KiB fetched again",
            bytes(self.holds_bytes),
            byte_range(self.holds_bytes_low, self.holds_bytes_high),
            two_digits(self.ns_per_kib),
            two_digits(self.ns_per_kib_low),
            two_digits(self.ns_per_kib_high)
        )
    }
}

/// Returns the cache of the points, and both its places as breaks with the pieces around them.
/// Absent where a curve without threshold describes the points as well, or one with free breaks
/// about as well, or where no size lies between the places.
pub(super) fn find(all: &CurveAnalysis) -> Option<(CostBreaks, CacheRefill)> {
    let (smallest, largest) = all.data.range();
    let xs = &all.data.xs;
    if xs.len() < FEWEST_AROUND + TERMS + 1 {
        return None;
    }
    let mut without = Vec::new();
    for line in [false, true] {
        without.extend(solve(all, largest, WIDTHS[0], [true, false, false, line]));
    }
    let mut with = Vec::new();
    for holds in capacities(smallest, largest) {
        for width in WIDTHS {
            let before = xs.iter().filter(|x| 2.0 * **x < holds * width.0).count();
            let after = xs.iter().filter(|x| 2.0 * **x >= holds * width.1).count();
            if before < FEWEST_AROUND || after < FEWEST_AROUND {
                continue;
            }
            // What is left beyond C is only seen where the array was measured well beyond it.
            let well_beyond = xs.iter().filter(|x| **x >= holds * width.1).count();
            let beyond = well_beyond >= FEWEST_AROUND;
            for line in [false, true] {
                with.extend(solve(all, holds, width, [true, true, beyond, line]));
            }
        }
    }
    choose(all, &without, &with)
}

/// Fits the used terms; the second is that of the cache, and counts as a place.
fn solve(
    all: &CurveAnalysis,
    holds: f64,
    width: (f64, f64),
    used: [bool; TERMS],
) -> Option<CacheFit> {
    let rows = all.data.observations.iter().map(|seen| {
        let values = basis(seen.x, holds, width);
        let basis = std::array::from_fn(|i| if used[i] { values[i] } else { 0.0 });
        FitRow { basis, y: seen.y, precision: seen.precision }
    });
    let terms = used.iter().filter(|used| **used).count() as f64;
    let charge = terms + if used[1] { TURN_CHARGE } else { 0.0 };
    Some(CacheFit { holds, width, beyond: used[2], charge, fit: nonnegative_least_squares(rows)? })
}

/// Returns the capacities that are tried: geometric steps from twice the smallest size to twice the
/// largest.
fn capacities(smallest: f64, largest: f64) -> Vec<f64> {
    let mut capacities = Vec::new();
    let (mut capacity, mut step) = (2.0 * smallest, 0_u32);
    while capacity <= 2.0 * largest {
        capacities.push(capacity);
        step += 1;
        capacity = 2.0 * smallest * (f64::from(step) / PLACES_A_DOUBLING).exp2();
    }
    capacities
}

/// Returns the basis functions of a, p, s and b.
fn basis(x: f64, holds: f64, width: (f64, f64)) -> [f64; TERMS] {
    let (two, one) = (filled(2.0 * x / holds, width), filled(x / holds, width));
    [1.0, x * two * (1.0 - one), holds * one, x]
}

/// Returns F, the part of the sets that is full.
fn filled(z: f64, width: (f64, f64)) -> f64 {
    let (from, to) = width;
    ((z / from).ln() / (to / from).ln()).clamp(0.0, 1.0)
}

fn choose(
    all: &CurveAnalysis,
    without: &[CacheFit],
    with: &[CacheFit],
) -> Option<(CostBreaks, CacheRefill)> {
    let scores = FitScores::new(all, with)?;
    let best = with.iter().min_by(|a, b| scores.of_cache(a).total_cmp(&scores.of_cache(b)))?;
    let best_score = scores.of_cache(best);
    let support = without.iter().map(|fit| scores.of_cache(fit)).reduce(f64::min)? - best_score;
    if support < CLEARLY_BETTER {
        return None;
    }
    // Where nothing is resolved to be fetched again, it is a mere bend.
    let per_size_half = best.fit.deviation(1)? * quantile(None)? * scores.dispersion.sqrt();
    if best.fit.coefficients[1] <= per_size_half {
        return None;
    }
    // Where two places of their own do about as well, the points are good enough to say them without
    // the tie.
    for fit in free_fits(all) {
        if scores.score(fit.solution.chi2, fit.form.charge()) < best_score + CLEARLY_BETTER {
            return None;
        }
    }
    let mut scored = Vec::new();
    for fit in with {
        scored.push((fit.holds, scores.of_cache(fit)));
    }
    let (low, high) = credible_span(akaike_weights(&scored), best.holds);
    // Nothing was tried between two places.
    let half_step = (0.5 / PLACES_A_DOUBLING).exp2();
    let (least, most) = (low / half_step, high * half_step);
    let data = &all.data;
    let bytes = |x: f64| (x * data.places[0]).round() as u64;
    let per_kib = |off: f64| (best.fit.coefficients[1] + off) * data.unit / data.places[0] * 1024.0;
    let refill = CacheRefill {
        holds_bytes: bytes(best.holds),
        holds_bytes_low: bytes(least),
        holds_bytes_high: bytes(most),
        ns_per_kib: per_kib(0.0),
        ns_per_kib_low: per_kib(-per_size_half),
        ns_per_kib_high: per_kib(per_size_half),
    };
    let breaks = best.breaks(data, least, most, support)?;
    if outside(all, &breaks.pieces).is_none() { Some((breaks, refill)) } else { None }
}

/// Returns the fits whose places are free.
fn free_fits(all: &CurveAnalysis) -> impl Iterator<Item = &FormFit> {
    all.fits.iter().filter(|fit| !fit.turns.is_empty())
}

/// The criterion of fits with one dispersion for all; lower is better.
struct FitScores {
    observations: usize,
    dispersion: f64,
}

impl FitScores {
    /// Takes the dispersion from the best description (Burnham and Anderson 2002, section 2.5): with
    /// one from each candidate itself, a poor one would excuse its own misfit.
    fn new(all: &CurveAnalysis, with: &[CacheFit]) -> Option<Self> {
        let observations = all.data.observations.len();
        let mut dispersions = Vec::new();
        for CacheFit { fit, .. } in with {
            dispersions.push(chi2_per_freedom(fit.chi2, observations, TERMS + 1));
        }
        for fit in free_fits(all) {
            let freedoms = fit.form.freedoms();
            dispersions.push(chi2_per_freedom(fit.solution.chi2, observations, freedoms));
        }
        let dispersion = dispersions.into_iter().reduce(f64::min)?.max(1.0);
        Some(Self { observations, dispersion })
    }

    fn score(&self, chi2: f64, charge: f64) -> f64 {
        chi2 / self.dispersion + charge * (self.observations as f64).ln()
    }

    fn of_cache(&self, fit: &CacheFit) -> f64 {
        self.score(fit.fit.chi2, fit.charge)
    }
}

fn chi2_per_freedom(chi2: f64, observations: usize, freedoms: usize) -> f64 {
    chi2 / observations.saturating_sub(freedoms).max(1) as f64
}

impl CacheFit {
    /// Returns the fitted cost at a size, in the unit of the data.
    fn cost_at(&self, x: f64) -> f64 {
        let basis = basis(x, self.holds, self.width);
        self.fit.coefficients.iter().zip(basis).map(|(c, b)| c * b).sum()
    }

    /// Returns both places as breaks, where C lies from `least` to `most` (over the smallest size).
    fn breaks(&self, data: &FitData, least: f64, most: f64, support: f64) -> Option<CostBreaks> {
        let count = data.xs.len();
        let mut starts = vec![0, first_from(data, self.holds / 2.0)];
        if self.beyond {
            starts.push(first_from(data, self.holds));
        }
        starts.push(count);
        if !starts.is_sorted_by(|a, b| a < b) {
            return None;
        }
        let mut breaks = Vec::new();
        for (number, ends) in starts[1..].windows(2).enumerate() {
            // Two arrays fill the cache at half its capacity, one alone at the whole.
            let part = 0.5 * (number + 1) as f64;
            let at = (part * self.holds * data.places[0]).round() as u64;
            let before = data.xs.iter().rposition(|x| *x <= part * least).unwrap_or(0);
            let after = first_from(data, part * most).min(count - 1);
            let (low, high) = (data.places[before] as u64, (data.places[after] as u64).max(at));
            let sizes_after = ends[1] - ends[0];
            breaks.push(CostBreak { kind: TurnKind::Hinge, at, low, high, sizes_after });
        }
        let mut pieces = Vec::new();
        for ends in starts.windows(2) {
            let (first, last) = (ends[0], ends[1] - 1);
            let (start, end) = (self.cost_at(data.xs[first]), self.cost_at(data.xs[last]));
            let least_change = EQUIVALENCE * start.abs().max(end.abs());
            let trend = CostTrend::from_change(end - start, least_change);
            pieces.push(piece(data, (first, last), |x| self.cost_at(x), trend));
        }
        Some(CostBreaks { pieces, breaks, support: Some(support), ..empty(SizeAxis::ARRAY, data) })
    }
}

/// Returns the number of the first size from `place` on, or the count of sizes without one.
fn first_from(data: &FitData, place: f64) -> usize {
    data.xs.iter().position(|x| *x >= place).unwrap_or(data.xs.len())
}
