//! The course that a cache prescribes: both places of a cache's doing hang on one number, what it holds.
//!
//! What a switch has to fetch again is what the other member has driven out: nothing while both arrays fit
//! (2 x below C), the whole array once they do not, and no longer all of it once the array alone does
//! not fit (x above C), as the solo ring then fetches it again in every hop as well. With F rising from 0 to 1
//! around 1:
//!
//! c2(x) = a + p x F(2x/C) (1 - F(x/C)) + s C F(x/C) + b x
//!
//! p is what fetching a byte again costs, s C what is left of it beyond C, b x a cost of each byte
//! without a threshold. One place is searched for instead of two, which finds it in data where
//! two free breaks drown (Li, Ding and Shen 2007, section 3.1, draw the same three regions).

use super::observe::Prepared;
use super::search::with_breaks;
use super::{Axis, Break, BreakKind, Breaks, Course, EQUIVALENCE, Finding, Piece};
use crate::curve::{CLEARLY_BETTER, KNEE_CHARGE, nonnegative, quantile};

/// Where F leaves 0 and where it reaches 1, straight in the logarithm between. Pages fall into the sets of
/// a cache by chance, so that some sets are full long before the cache is (wide), unless pages are huge
/// or the kernel spreads them (narrow).
const WIDTHS: [(f64, f64); 2] = [(0.5, 1.3), (0.7, 1.1)];

/// Sizes of the cache that are tried, by doubling.
const PLACES_A_DOUBLING: f64 = 8.0;

/// Sizes that have to lie before the cost leaves the level of the first region, and after.
const SIZES_BEFORE: usize = 2;

const TERMS: usize = 4;

/// One cache, fitted.
#[derive(Clone, Debug)]
pub(super) struct Refill {
    /// C, over the smallest size.
    pub(super) holds: f64,
    /// The least and the most that C may be.
    pub(super) low: f64,
    /// See `low`.
    pub(super) high: f64,
    /// p, in units of cost over the smallest size.
    pub(super) per_size: f64,
    /// Half-width of its interval.
    pub(super) per_size_half: f64,
    /// Criterion of the best course without a threshold above this one's.
    pub(super) support: f64,
    /// Whether it was measured what is left beyond C.
    pub(super) beyond: bool,
    width: (f64, f64),
    coefficients: [f64; TERMS],
}

impl Refill {
    /// The fitted cost at `x`.
    pub(super) fn at(&self, x: f64) -> f64 {
        let basis = basis(x, self.holds, self.width);
        self.coefficients.iter().zip(basis).map(|(c, b)| c * b).sum()
    }
}

impl Refill {
    /// Both places as breaks, with the pieces around them; `None` where no size lies between them.
    pub(super) fn breaks(&self, data: &Prepared) -> Option<(Breaks, super::Refill)> {
        let count = data.sizes.len();
        let starts_at = |place: f64| data.xs.iter().position(|x| *x >= place).unwrap_or(count);
        let mut starts = vec![0, starts_at(self.holds / 2.0)];
        if self.beyond {
            starts.push(starts_at(self.holds));
        }
        starts.push(count);
        if !starts.is_sorted_by(|a, b| a < b) {
            return None;
        }
        let bytes = |x: f64| (x * data.sizes[0] as f64).round() as u64;
        let pieces = starts.windows(2).map(|ends| self.piece(data, ends[0], ends[1] - 1)).collect();
        let found = |(which, ends): (usize, &[usize])| {
            let part = 0.5 * (which + 1) as f64;
            let before = data.xs.iter().rposition(|x| *x <= part * self.low).unwrap_or(0);
            let after = starts_at(part * self.high).min(count - 1);
            Break {
                kind: BreakKind::Hinge,
                at: bytes(part * self.holds),
                low: data.sizes[before],
                high: data.sizes[after].max(bytes(part * self.holds)),
                sizes_after: ends[1] - ends[0],
            }
        };
        let breaks = starts[1..].windows(2).enumerate().map(found).collect();
        let per_kib = data.unit / data.sizes[0] as f64 * 1024.0;
        let [low, high] = [-1.0, 1.0].map(|side| self.per_size + side * self.per_size_half);
        let refill = super::Refill {
            holds_bytes: bytes(self.holds),
            holds_bytes_low: bytes(self.low),
            holds_bytes_high: bytes(self.high),
            ns_per_kib: self.per_size * per_kib,
            ns_per_kib_low: low * per_kib,
            ns_per_kib_high: high * per_kib,
        };
        let breaks = Breaks {
            axis: Axis::array(),
            finding: Finding::Found,
            pieces,
            breaks,
            support: Some(self.support),
            jump_below: None,
            smallest: data.sizes[0],
            largest: data.sizes[count - 1],
            ignored: data.ignored,
        };
        Some((breaks, refill))
    }

    fn piece(&self, data: &Prepared, first: usize, last: usize) -> Piece {
        let [start, end] = [first, last].map(|at| self.at(data.xs[at]));
        let level = start.abs().max(end.abs());
        let course = match end - start {
            change if change.abs() <= EQUIVALENCE * level => Course::Flat,
            change if change > 0.0 => Course::Rises,
            _ => Course::Falls,
        };
        Piece {
            first: data.sizes[first],
            last: data.sizes[last],
            sizes: last - first + 1,
            cost_at_first_ns: start * data.unit,
            cost_at_last_ns: end * data.unit,
            course,
        }
    }
}

/// The part of the sets that is full.
fn filled(z: f64, (from, to): (f64, f64)) -> f64 {
    ((z / from).ln() / (to / from).ln()).clamp(0.0, 1.0)
}

/// a, p, s, b.
fn basis(x: f64, holds: f64, width: (f64, f64)) -> [f64; TERMS] {
    let (two, one) = (filled(2.0 * x / holds, width), filled(x / holds, width));
    [1.0, x * two * (1.0 - one), holds * one, x]
}

/// One way of fitting.
struct Trial {
    holds: f64,
    width: (f64, f64),
    /// Terms in use, and what they are charged as.
    used: [bool; TERMS],
    charge: f64,
    fit: nonnegative::Fit<TERMS>,
}

/// Looks for the cache in the points. `None` where a course without a threshold describes them as well,
/// or one with free breaks about as well.
pub(super) fn find(data: &Prepared) -> Option<Refill> {
    let (&smallest, &largest) = (data.xs.first()?, data.xs.last()?);
    let count = data.xs.len();
    if count < SIZES_BEFORE + TERMS + 1 {
        return None;
    }
    let solve = |holds: f64, width: (f64, f64), used: [bool; TERMS], places: f64| {
        let rows = data.observations.iter().map(|seen| {
            let all = basis(seen.x, holds, width);
            let kept = std::array::from_fn(|i| if used[i] { all[i] } else { 0.0 });
            (kept, seen.cost, seen.precision)
        });
        let terms = used.iter().filter(|used| **used).count() as f64;
        let fit = nonnegative::fit(rows)?;
        Some(Trial { holds, width, used, charge: terms + KNEE_CHARGE * places, fit })
    };
    let without: Vec<Trial> = [false, true]
        .into_iter()
        .filter_map(|line| solve(largest, WIDTHS[0], [true, false, false, line], 0.0))
        .collect();
    let mut with = Vec::new();
    for (holds, width) in places(smallest, largest).flat_map(|h| WIDTHS.map(|w| (h, w))) {
        let before = data.xs.iter().filter(|x| 2.0 * **x < holds * width.0).count();
        let after = data.xs.iter().filter(|x| 2.0 * **x >= holds * width.1).count();
        if before < SIZES_BEFORE || after < SIZES_BEFORE {
            continue;
        }
        // What is left beyond C is only seen where the array was measured well beyond it.
        let beyond = data.xs.iter().filter(|x| **x >= holds * width.1).count() >= SIZES_BEFORE;
        for line in [false, true] {
            with.extend(solve(holds, width, [true, true, beyond, line], 1.0));
        }
    }
    choose(data, &without, &with)
}

/// Geometric steps from twice the smallest size to twice the largest.
fn places(smallest: f64, largest: f64) -> impl Iterator<Item = f64> {
    let step = move |i: u32| 2.0 * smallest * (f64::from(i) / PLACES_A_DOUBLING).exp2();
    (0..).map(step).take_while(move |place| *place <= 2.0 * largest)
}

fn choose(data: &Prepared, without: &[Trial], with: &[Trial]) -> Option<Refill> {
    let count = data.observations.len();
    let n = count as f64;
    let free = with_breaks(data);
    // One dispersion for all, from the best description (Burnham and Anderson 2002, section 2.5):
    // taken from each candidate itself, a poor one would excuse its own misfit.
    let per_freedom =
        |chi2: f64, freedoms: usize| chi2 / count.saturating_sub(freedoms).max(1) as f64;
    let tied = with.iter().map(|trial| per_freedom(trial.fit.chi2, TERMS + 1));
    let others = free.iter().map(|fit| per_freedom(fit.chi2, fit.freedoms));
    let dispersion = tied.chain(others).reduce(f64::min)?.max(1.0);
    let score = |chi2: f64, charge: f64| chi2 / dispersion + charge * n.ln();
    let criterion = |trial: &Trial| score(trial.fit.chi2, trial.charge);
    let best = with.iter().min_by(|a, b| criterion(a).total_cmp(&criterion(b)))?;
    let simple = without.iter().map(criterion).reduce(f64::min)?;
    let support = simple - criterion(best);
    // Where nothing is resolved to be fetched again, it is a mere bend. And where two places of their own do about as well, the
    // points are good enough to say them without the tie.
    let half = best.fit.deviation(1)? * quantile(None)? * dispersion.sqrt();
    let bend = best.fit.coefficients[1] <= half;
    let apart = free.iter().map(|fit| score(fit.chi2, fit.charge)).reduce(f64::min);
    let apart = apart.is_some_and(|apart| apart < criterion(best) + CLEARLY_BETTER);
    if support < CLEARLY_BETTER || bend || apart {
        return None;
    }
    let (low, high) = span(with, criterion, best.holds);
    Some(Refill {
        holds: best.holds,
        low,
        high,
        per_size: best.fit.coefficients[1],
        per_size_half: half,
        support,
        beyond: best.used[2],
        width: best.width,
        coefficients: best.fit.coefficients,
    })
}

/// The places that carry 95 % of the criterion's weight, from the heaviest down, and what lies between.
fn span(with: &[Trial], criterion: impl Fn(&Trial) -> f64, chosen: f64) -> (f64, f64) {
    let best = with.iter().map(&criterion).fold(f64::INFINITY, f64::min);
    let mut weights: Vec<(f64, f64)> =
        with.iter().map(|t| (((best - criterion(t)) / 2.0).exp(), t.holds)).collect();
    weights.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.total_cmp(&b.1)));
    let total: f64 = weights.iter().map(|(weight, _)| weight).sum();
    // Nothing was tried between two places.
    let half_step = (0.5 / PLACES_A_DOUBLING).exp2();
    let (mut low, mut high, mut covered) = (chosen, chosen, 0.0);
    for (weight, place) in weights {
        if covered >= super::CONFIDENCE * total {
            break;
        }
        covered += weight;
        (low, high) = (low.min(place), high.max(place));
    }
    (low / half_step, high * half_step)
}
