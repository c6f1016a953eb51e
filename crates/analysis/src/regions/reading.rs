//! The three regions of Li, Ding and Shen (2007, section 3.1), read from the breaks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use stats::changepoint::{CurveAnalysis, usable_error};

use super::breaks::{SETTINGS, read};
use super::refill::{self, CacheRefill};
use super::{CostBreaks, CostTrend, CurveAnswer, CurvePiece, SizeAxis};
use crate::curve::CurvePoint;
use rundata::words::{bytes, two_digits};

/// A first piece up to so many times the direct cost counts as close to it: the first region of
/// the paper reaches from 1.1 to 2.3 times its c1.
const CLOSE_TO_DIRECT: f64 = 2.5;

/// Regions that there can be.
const ALL_REGIONS: usize = 3;

/// Sizes below a further level at least: see [`below_a_further_level`].
const LEAST_BELOW: usize = 10;

/// Standard errors: see [`rises_above`].
const CLEARLY_ABOVE: f64 = 4.0;

/// The direct cost c1, measured without work.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Direct")]
pub struct DirectInterval {
    /// c1 in ns.
    pub cost_ns: f64,
    /// Lower end of its interval, if there is one.
    pub low_ns: Option<f64>,
    /// Upper end of that interval.
    pub high_ns: Option<f64>,
}

/// Which of the working sets still fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Region")]
pub enum CacheRegion {
    /// The working sets of both members fit together: flat, close to c1.
    AllFit,
    /// One fits, two together do not: the cost has left the level of the first region.
    TogetherTooLarge,
    /// One alone does not fit: the solo ring misses too, and the difference goes another way.
    AloneTooLarge,
}

/// A region and what a switch costs in it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Extent")]
pub struct RegionExtent {
    /// Which one.
    pub region: CacheRegion,
    /// Its piece of the course.
    pub piece: CurvePiece,
    /// Fitted cost over c1, the smallest in the region. `None` without a positive c1.
    pub over_direct_low: Option<f64>,
    /// The largest.
    pub over_direct_high: Option<f64>,
}

/// The answer of [`regions`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Regions")]
pub struct CacheRegions {
    /// Whether there are regions.
    pub answer: CurveAnswer,
    /// The regions seen, ascending; empty unless the answer is [`CurveAnswer::Seen`].
    pub extents: Vec<RegionExtent>,
    /// What they are read from.
    pub breaks: CostBreaks,
    /// The cache that both breaks hang on; absent where they were found one by one, or not at all.
    pub refill: Option<CacheRefill>,
    /// From this array size on costs rise above the last piece, and are left out: another level
    /// overflows. Absent where the pieces are of all sizes.
    #[serde(default)]
    pub further_level_from: Option<u64>,
    /// What the first region was compared with, if c1 was measured.
    pub direct: Option<DirectInterval>,
}

/// Reads c2 at several array sizes, for one stride and kind of access, as up to three regions. The
/// direct cost only tells whether the first piece is the first region; places come from c2 alone.
///
/// A single cache is looked for first. Where free breaks describe the points about as well, they
/// are read instead.
pub fn regions(points: &[CurvePoint], direct: Option<DirectInterval>) -> CacheRegions {
    let direct = direct.filter(|direct| direct.cost_ns.is_finite());
    let all = CurveAnalysis::new(points, &SETTINGS);
    let whole = CacheRegions::read(&all, direct);
    below_a_further_level(points, &all.data.places, &whole).unwrap_or(whole)
}

/// Regions up to some size, where all sizes together have not all three: beyond, where the next
/// level overflows as well, costs can rise and scatter so much that the rest is lost in the
/// scatter, or takes one of the breaks. Of the cuts above whose last piece all other costs lie, the
/// one that says most counts, if it says more than the whole; of equal ones that of the most sizes.
fn below_a_further_level(
    points: &[CurvePoint],
    sizes: &[f64],
    whole: &CacheRegions,
) -> Option<CacheRegions> {
    let most = if whole.extents.len() == ALL_REGIONS { 0 } else { sizes.len() };
    let up_to = |count: usize| {
        let (last, next) = (sizes[count - 1], sizes[count] as u64);
        let (below, above): (Vec<CurvePoint>, Vec<CurvePoint>) =
            points.iter().partition(|point| point.x <= last);
        let read = CacheRegions::read(&CurveAnalysis::new(&below, &SETTINGS), whole.direct);
        let more = read.says() > whole.says() && read.answer == CurveAnswer::Seen;
        let piece = *read.breaks.pieces.last().filter(|_| more)?;
        let further_level_from = Some(next);
        rises_above(&above, &piece).then_some(CacheRegions { further_level_from, ..read })
    };
    // Of equal ones `max_by_key` takes the last: the most sizes.
    (LEAST_BELOW..most).filter_map(up_to).max_by_key(CacheRegions::says)
}

/// Whether all these costs lie above the piece, were it to go on, and clearly so together (the sum
/// of their distances in standard errors over the root of their number: Stouffer et al. 1949, The
/// American Soldier).
fn rises_above(points: &[CurvePoint], piece: &CurvePiece) -> bool {
    let distance = |point: &CurvePoint| {
        let beyond = (point.x - piece.last as f64).max(0.0);
        let above_ns = point.y - piece.cost_at_last_ns - piece.ns_per_byte().max(0.0) * beyond;
        Some(above_ns / usable_error(point.error)?)
    };
    let distances: Vec<f64> = points.iter().filter_map(distance).collect();
    let sum: f64 = distances.iter().sum();
    distances.iter().all(|distance| *distance > 0.0)
        && sum >= CLEARLY_ABOVE * (distances.len() as f64).sqrt()
}

/// Why the pieces cannot be called by the paper's names.
fn unlike_the_paper(
    breaks: &CostBreaks,
    cache: bool,
    direct: Option<DirectInterval>,
) -> Option<String> {
    let first = breaks.pieces.first()?;
    let direct =
        direct.map_or(0.0, |direct| direct.cost_ns.max(direct.high_ns.unwrap_or(f64::MIN)));
    if direct > 0.0 && first.cost_at_first_ns > CLOSE_TO_DIRECT * direct {
        let times = two_digits(first.cost_at_first_ns / direct);
        return Some(format!(
            "the smallest array already costs {times}x the direct cost: arrays that all fit were \
                not measured"
        ));
    }
    let why = match (first.course, breaks.pieces.get(1)) {
        (CostTrend::Falls, None) => "the cost falls with the array",
        (_, None) => return None,
        // A cache begins to overflow before it is full; without one, a rise from the start is no
        // region.
        (CostTrend::Rises, Some(_)) if !cache => {
            "the cost rises from the smallest array on: arrays that all fit were not seen"
        }
        (_, Some(second)) if second.highest_ns() <= first.cost_at_last_ns => {
            "the cost falls at the first break, which larger working sets cannot explain"
        }
        _ => return None,
    };
    Some(why.to_string())
}

fn extents(breaks: &CostBreaks, direct: Option<DirectInterval>) -> Vec<RegionExtent> {
    let names = [CacheRegion::AllFit, CacheRegion::TogetherTooLarge, CacheRegion::AloneTooLarge];
    let direct = direct.map(|direct| direct.cost_ns).filter(|cost| *cost > 0.0);
    let over = |cost: f64| Some(cost / direct?).filter(|ratio| ratio.is_finite());
    let extent = |(region, piece): (CacheRegion, &CurvePiece)| RegionExtent {
        region,
        piece: *piece,
        over_direct_low: over(piece.lowest_ns()),
        over_direct_high: over(piece.highest_ns()),
    };
    // One array alone fills a cache at twice the size at which two fill it: a second break
    // elsewhere is another level's.
    let named = match &breaks.breaks[..] {
        [one, two]
            if two.low <= one.high.saturating_mul(2) && one.low.saturating_mul(2) <= two.high =>
        {
            ALL_REGIONS
        }
        _ => 2,
    };
    names.into_iter().zip(&breaks.pieces).take(named).map(extent).collect()
}

impl CurvePiece {
    fn ns_per_byte(&self) -> f64 {
        let rise = self.cost_at_last_ns - self.cost_at_first_ns;
        rise / (self.last - self.first).max(1) as f64
    }

    /// The lower of the fitted costs at its ends, in ns.
    pub fn lowest_ns(&self) -> f64 {
        self.cost_at_first_ns.min(self.cost_at_last_ns)
    }

    /// The higher of them.
    pub fn highest_ns(&self) -> f64 {
        self.cost_at_first_ns.max(self.cost_at_last_ns)
    }
}

impl CacheRegions {
    /// What one cache, or free breaks, say of all points.
    fn read(all: &CurveAnalysis, direct: Option<DirectInterval>) -> Self {
        let (breaks, refill) = match refill::find(all) {
            Some((breaks, refill)) => (breaks, Some(refill)),
            None => (read(SizeAxis::ARRAY, all), None),
        };
        let why = unlike_the_paper(&breaks, refill.is_some(), direct);
        let answer = match (&breaks.finding, why, &breaks.pieces[..]) {
            (silent @ CurveAnswer::CannotTell { .. }, ..) => silent.clone(),
            (_, Some(why), _) => CurveAnswer::CannotTell { why },
            (_, None, [piece]) => CurveAnswer::NoThreshold { up_to_bytes: piece.last },
            _ => CurveAnswer::Seen,
        };
        let seen = answer == CurveAnswer::Seen;
        let extents = if seen { extents(&breaks, direct) } else { Vec::new() };
        Self { answer, extents, breaks, refill, further_level_from: None, direct }
    }

    /// How much it says: regions, then the cache that explains them.
    fn says(&self) -> (usize, bool) {
        (self.extents.len(), self.refill.is_some())
    }

    /// The extent of a region, if it was seen.
    pub fn extent(&self, region: CacheRegion) -> Option<&RegionExtent> {
        self.extents.iter().find(|extent| extent.region == region)
    }

    /// Cost where the combined working sets exceed the cache over cost where all fit: from the
    /// lowest over the highest to the highest over the lowest, as the paper's ranges give it
    /// ([`crate::published::li2007::Figures::second_over_first`]). `None` if a region was not seen
    /// or a cost is not above zero.
    pub fn second_over_first(&self) -> Option<(f64, f64)> {
        let first = self.extent(CacheRegion::AllFit)?.piece;
        let second = self.extent(CacheRegion::TogetherTooLarge)?.piece;
        let positive = first.lowest_ns() > 0.0 && second.lowest_ns() > 0.0;
        let ratios =
            (second.lowest_ns() / first.highest_ns(), second.highest_ns() / first.lowest_ns());
        (positive && ratios.1.is_finite()).then_some(ratios)
    }

    /// The regions in one sentence, without a full stop.
    pub fn in_words(&self) -> String {
        match &self.answer {
            CurveAnswer::CannotTell { why } => return format!("inconclusive: {why}"),
            CurveAnswer::NoThreshold { up_to_bytes } => {
                return self.without_threshold(*up_to_bytes);
            }
            CurveAnswer::Seen | CurveAnswer::Found => {}
        }
        let mut told: Vec<String> = self.extents.iter().enumerate().map(|e| self.tell(e)).collect();
        if self.extents.len() == 2 {
            told.push(match self.breaks.breaks.get(1) {
                Some(further) => format!("a further break at {}", further.place(&self.breaks.axis)),
                None => "where one working set exceeds the cache was not seen".into(),
            });
        }
        told.extend(self.refill.map(|refill| refill.in_words()));
        told.extend(self.further_level_from.map(|from| {
            format!("from {} on costs rise further: another level overflows", bytes(from))
        }));
        told.join("; ")
    }

    /// `no threshold up to 2 MiB: flat at 3.00 us, any jump below 8 %`, or how a straight cost
    /// rises.
    fn without_threshold(&self, up_to_bytes: u64) -> String {
        let up_to = bytes(up_to_bytes);
        match &self.breaks.pieces[..] {
            [piece] if piece.course == CostTrend::Rises => {
                let by = two_digits(piece.ns_per_byte() * 1024.0);
                format!("rises by {by} ns a KiB, no threshold up to {up_to}")
            }
            [piece] => {
                let bound = self.breaks.bound_in_words();
                format!("no threshold up to {up_to}: {}{bound}", piece.in_words())
            }
            _ => format!("no threshold up to {up_to}"),
        }
    }

    fn tell(&self, (which, extent): (usize, &RegionExtent)) -> String {
        let mut told = extent.region.in_words().to_string();
        if which > 0 {
            told += &format!(" from {}", self.breaks.breaks[which - 1].place(&self.breaks.axis));
        }
        told += &format!(": {}", extent.piece.in_words());
        if let Some((low, high)) = extent.over_direct_low.zip(extent.over_direct_high) {
            let [low, high] = [low, high].map(two_digits);
            let range = if low == high { low } else { format!("{low} to {high}") };
            let direct = match which {
                0 => "the cost without a working set (the direct cost)",
                _ => "the direct cost",
            };
            told += &format!(", {range} times {direct}");
        }
        told
    }
}

impl CacheRegion {
    /// What it says of the working sets.
    pub fn in_words(self) -> &'static str {
        match self {
            CacheRegion::AllFit => "all working sets fit",
            CacheRegion::TogetherTooLarge => "combined working sets exceed the cache",
            CacheRegion::AloneTooLarge => "one working set exceeds the cache",
        }
    }
}
