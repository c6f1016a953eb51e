//! The three regions of Li, Ding and Shen (2007, section 3.1), read from the breaks.

use rundata::words::{bytes, two_digits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::changepoint::{CurveAnalysis, usable_error};

use super::breaks::{SETTINGS, read};
use super::refill::{self, CacheRefill};
use super::{CostBreaks, CostTrend, CurveAnswer, CurvePiece, SizeAxis};
use crate::curve::CurvePoint;

/// Largest factor of a first piece over the direct cost that is close to it: the first region of the
/// paper reaches from 1.1 to 2.3 times its c1.
const CLOSE_TO_DIRECT: f64 = 2.5;

/// Largest number of regions.
const MAX_REGIONS: usize = 3;

/// Fewest sizes below a further level: see [`below_further_level`].
const FEWEST_BELOW: usize = 10;

/// Fewest standard errors above a piece: see [`rises_above`].
const MIN_ERRORS_ABOVE: f64 = 4.0;

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

/// The working sets that still fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Region")]
pub enum CacheRegion {
    /// The working sets of both members fit together: flat, close to c1.
    AllFit,
    /// A single one fits, two together do not: the cost has left the level of the first region.
    TogetherTooLarge,
    /// A single one does not fit: the solo ring misses too, and the difference follows another line.
    AloneTooLarge,
}

/// A region and the cost of a switch in it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Extent")]
pub struct RegionExtent {
    /// The region.
    pub region: CacheRegion,
    /// The piece of the curve.
    pub piece: CurvePiece,
    /// Smallest fitted cost in the region over c1; absent without a positive c1.
    pub over_direct_low: Option<f64>,
    /// Largest fitted cost in the region over c1.
    pub over_direct_high: Option<f64>,
}

/// The answer of [`regions`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Regions")]
pub struct CacheRegions {
    /// The conclusion.
    pub answer: CurveAnswer,
    /// The regions seen, ascending; empty unless the answer is [`CurveAnswer::Seen`].
    pub extents: Vec<RegionExtent>,
    /// The breaks that they are read from.
    pub breaks: CostBreaks,
    /// The cache that explains both breaks; absent where they were found one by one, or not at all.
    pub refill: Option<CacheRefill>,
    /// Array size from which costs rise above the last piece, and are left out: another level
    /// overflows. Absent where the pieces have all sizes.
    #[serde(default)]
    pub further_level_from: Option<u64>,
    /// c1, with which the first region was compared, if it was measured.
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
    below_further_level(points, &all.data.places, &whole).unwrap_or(whole)
}

/// Returns the regions up to some size, where all sizes together have fewer than three. Beyond it,
/// where the next level overflows as well, costs can rise and scatter so much that they hide a break
/// or take one. Only cuts above whose last piece all other costs lie are used. Of these the one with
/// most detail counts, if it has more than the whole, and of equal ones that of the most sizes.
fn below_further_level(
    points: &[CurvePoint],
    sizes: &[f64],
    whole: &CacheRegions,
) -> Option<CacheRegions> {
    if whole.extents.len() == MAX_REGIONS {
        return None;
    }
    let mut best: Option<CacheRegions> = None;
    for count in FEWEST_BELOW..sizes.len() {
        let (below, above): (Vec<CurvePoint>, Vec<CurvePoint>) =
            points.iter().partition(|point| point.x <= sizes[count - 1]);
        let read = CacheRegions::read(&CurveAnalysis::new(&below, &SETTINGS), whole.direct);
        let is_better = match &best {
            Some(best) => read.detail() >= best.detail(),
            None => read.detail() > whole.detail(),
        };
        let Some(piece) = read.breaks.pieces.last() else { continue };
        if is_better && read.answer == CurveAnswer::Seen && rises_above(&above, piece) {
            best = Some(CacheRegions { further_level_from: Some(sizes[count] as u64), ..read });
        }
    }
    best
}

/// Returns whether all these costs lie above the continued piece, and clearly so together (the sum
/// of their distances in standard errors over the root of their number: Stouffer et al. 1949, The
/// American Soldier).
fn rises_above(points: &[CurvePoint], piece: &CurvePiece) -> bool {
    let mut distances = Vec::new();
    for point in points {
        let beyond = (point.x - piece.last as f64).max(0.0);
        let above_ns = point.y - piece.cost_at_last_ns - piece.ns_per_byte().max(0.0) * beyond;
        if let Some(error) = usable_error(point.error) {
            distances.push(above_ns / error);
        }
    }
    let sum: f64 = distances.iter().sum();
    distances.iter().all(|distance| *distance > 0.0)
        && sum >= MIN_ERRORS_ABOVE * (distances.len() as f64).sqrt()
}

/// Returns the reason why the pieces are not the paper's regions; absent if they are.
fn unlike_the_paper(
    breaks: &CostBreaks,
    cache: bool,
    direct: Option<DirectInterval>,
) -> Option<String> {
    let first = breaks.pieces.first()?;
    if let Some(direct) = direct {
        let highest_ns = direct.cost_ns.max(direct.high_ns.unwrap_or(f64::MIN));
        if highest_ns > 0.0 && first.cost_at_first_ns > CLOSE_TO_DIRECT * highest_ns {
            let times = two_digits(first.cost_at_first_ns / highest_ns);
            return Some(format!(
                "the smallest array already costs {times}x the direct cost: arrays that all fit \
                 were not measured"
            ));
        }
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
    let direct_ns = match direct {
        Some(direct) if direct.cost_ns > 0.0 => Some(direct.cost_ns),
        _ => None,
    };
    // One array alone fills a cache at twice the size at which two fill it: a second break
    // elsewhere is another level's.
    let named = match &breaks.breaks[..] {
        [one, two]
            if two.low <= one.high.saturating_mul(2) && one.low.saturating_mul(2) <= two.high =>
        {
            MAX_REGIONS
        }
        _ => 2,
    };
    let mut extents = Vec::new();
    for (region, piece) in names.into_iter().zip(&breaks.pieces).take(named) {
        extents.push(RegionExtent {
            region,
            piece: *piece,
            over_direct_low: finite_ratio(piece.lowest_ns(), direct_ns),
            over_direct_high: finite_ratio(piece.highest_ns(), direct_ns),
        });
    }
    extents
}

fn finite_ratio(cost_ns: f64, direct_ns: Option<f64>) -> Option<f64> {
    let ratio = cost_ns / direct_ns?;
    if ratio.is_finite() { Some(ratio) } else { None }
}

impl CurvePiece {
    fn ns_per_byte(&self) -> f64 {
        let rise = self.cost_at_last_ns - self.cost_at_first_ns;
        rise / (self.last - self.first).max(1) as f64
    }

    /// Returns the lower of the fitted costs at its ends, in ns.
    pub fn lowest_ns(&self) -> f64 {
        self.cost_at_first_ns.min(self.cost_at_last_ns)
    }

    /// Returns the higher of the fitted costs at its ends, in ns.
    pub fn highest_ns(&self) -> f64 {
        self.cost_at_first_ns.max(self.cost_at_last_ns)
    }
}

impl CacheRegions {
    /// Reads all points as one cache, or else as free breaks.
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

    /// Returns how much was found: the number of regions, then whether one cache explains them.
    fn detail(&self) -> (usize, bool) {
        (self.extents.len(), self.refill.is_some())
    }

    /// Returns the extent of a region, if it was seen.
    pub fn extent(&self, region: CacheRegion) -> Option<&RegionExtent> {
        self.extents.iter().find(|extent| extent.region == region)
    }

    /// Returns the cost where the combined working sets exceed the cache over the cost where all fit: from the
    /// lowest over the highest to the highest over the lowest, as the paper's ranges give it
    /// ([`crate::published::li2007::LiFigures::second_over_first`]). Absent if a region was not
    /// seen or a cost is not above zero.
    pub fn second_over_first(&self) -> Option<(f64, f64)> {
        let first = self.extent(CacheRegion::AllFit)?.piece;
        let second = self.extent(CacheRegion::TogetherTooLarge)?.piece;
        let are_positive = first.lowest_ns() > 0.0 && second.lowest_ns() > 0.0;
        let least = second.lowest_ns() / first.highest_ns();
        let most = second.highest_ns() / first.lowest_ns();
        if are_positive && most.is_finite() { Some((least, most)) } else { None }
    }

    /// Returns the regions in one sentence, without a full stop.
    pub fn in_words(&self) -> String {
        match &self.answer {
            CurveAnswer::CannotTell { why } => return format!("inconclusive: {why}"),
            CurveAnswer::NoThreshold { up_to_bytes } => {
                return self.without_threshold(*up_to_bytes);
            }
            CurveAnswer::Seen | CurveAnswer::Found => {}
        }
        let mut facts = Vec::new();
        for (number, extent) in self.extents.iter().enumerate() {
            facts.push(self.extent_in_words(number, extent));
        }
        if self.extents.len() == 2 {
            facts.push(match self.breaks.breaks.get(1) {
                Some(further) => format!("a further break at {}", further.place(&self.breaks.axis)),
                None => "where one working set exceeds the cache was not seen".into(),
            });
        }
        if let Some(refill) = &self.refill {
            facts.push(refill.in_words());
        }
        if let Some(from) = self.further_level_from {
            let from = bytes(from);
            facts.push(format!("from {from} on costs rise further: another level overflows"));
        }
        facts.join("; ")
    }

    /// Returns a curve without threshold in words: `no threshold up to 2 MiB: flat at 3.00 us, any
    /// jump below 8 %`, or the slope of one that rises.
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

    fn extent_in_words(&self, number: usize, extent: &RegionExtent) -> String {
        let mut words = extent.region.in_words().to_string();
        if number > 0 {
            words += &format!(" from {}", self.breaks.breaks[number - 1].place(&self.breaks.axis));
        }
        words += &format!(": {}", extent.piece.in_words());
        if let (Some(low), Some(high)) = (extent.over_direct_low, extent.over_direct_high) {
            let (low, high) = (two_digits(low), two_digits(high));
            let range = if low == high { low } else { format!("{low} to {high}") };
            let direct = match number {
                0 => "the cost without a working set (the direct cost)",
                _ => "the direct cost",
            };
            words += &format!(", {range} times {direct}");
        }
        words
    }
}

impl CacheRegion {
    /// Returns the region in words.
    pub fn in_words(self) -> &'static str {
        match self {
            CacheRegion::AllFit => "all working sets fit",
            CacheRegion::TogetherTooLarge => "combined working sets exceed the cache",
            CacheRegion::AloneTooLarge => "one working set exceeds the cache",
        }
    }
}
