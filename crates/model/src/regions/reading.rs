//! The three regions of Li, Ding and Shen (2007, section 3.1), read from the breaks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use stats::changepoint::{Analysis, sound_error};

use super::breaks::{analysis, read};
use super::refill::Refill;
use super::{Axis, Breaks, Course, Piece, Point, refill};
use crate::words::two_digits;

/// A first piece up to so many times the direct cost counts as close to it: the first region of
/// the paper reaches from 1.1 to 2.3 times its c1.
const CLOSE_TO_DIRECT: f64 = 2.5;

/// Regions that there can be.
const ALL_REGIONS: usize = 3;

/// Sizes below a further level at least: see [`below_a_further_level`].
const LEAST_BELOW: usize = 10;

/// Standard errors: see [`rises_above`].
const CLEARLY_ABOVE: f64 = 4.0;

/// See [`third_is_alone`].
const TWICE: f64 = 2.0;

/// The direct cost c1, measured without work.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Direct {
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
pub enum Region {
    /// The working sets of both members fit together: flat, close to c1.
    AllFit,
    /// One fits, two together do not: the cost has left the level of the first region.
    TogetherTooLarge,
    /// One alone does not fit: the solo ring misses too, and the difference goes another way.
    AloneTooLarge,
}

/// A region and what a switch costs in it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Extent {
    /// Which one.
    pub region: Region,
    /// Its piece of the course.
    pub piece: Piece,
    /// Fitted cost over c1, the smallest in the region. `None` without a positive c1.
    pub over_direct_low: Option<f64>,
    /// The largest.
    pub over_direct_high: Option<f64>,
}

/// What the points say of regions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// There are some.
    Seen,
    /// One flat or straight course: nothing ceases to fit up to this array, or it does not show.
    NoThreshold {
        /// The largest array of which that is known, in bytes.
        up_to_bytes: u64,
    },
    /// The points are inconclusive.
    CannotTell {
        /// Why not, in words that follow a colon.
        why: String,
    },
}

/// The answer of [`regions`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Regions {
    /// Whether there are regions.
    pub answer: Answer,
    /// The regions seen, ascending; empty unless the answer is [`Answer::Seen`].
    pub extents: Vec<Extent>,
    /// What they are read from.
    pub breaks: Breaks,
    /// The cache that both breaks hang on; absent where they were found one by one, or not at all.
    pub refill: Option<Refill>,
    /// From this array size on costs rise above the last piece, and are left out: another level overflows.
    /// Absent where the pieces are of all sizes.
    #[serde(default)]
    pub further_level_from: Option<u64>,
    /// What the first region was compared with, if c1 was measured.
    pub direct: Option<Direct>,
}

/// Reads c2 at several array sizes, for one stride and kind of access, as up to three regions. The
/// direct cost only tells whether the first piece is the first region; places come from c2 alone.
///
/// A single cache is looked for first. Where free breaks describe the points about as well, they are read
/// instead.
#[must_use]
pub fn regions(points: &[Point], direct: Option<Direct>) -> Regions {
    let direct = direct.filter(|direct| direct.cost_ns.is_finite());
    let all = analysis(points);
    let whole = Regions::read(&all, direct);
    below_a_further_level(points, &all.data.places, &whole).unwrap_or(whole)
}

/// Regions up to some size, where all sizes together have not all three: beyond, where the next level
/// overflows as well, costs can rise and scatter so much that the rest drowns, or takes one of the breaks. Of
/// the cuts above whose last piece all other costs lie, the one that says most counts, if it says more than
/// the whole; of equal ones that of the most sizes.
fn below_a_further_level(points: &[Point], sizes: &[f64], whole: &Regions) -> Option<Regions> {
    if whole.extents.len() == ALL_REGIONS {
        return None;
    }
    let up_to = |count: usize| {
        let (last, next) = (sizes[count - 1] as u64, sizes[count] as u64);
        let (below, above): (Vec<Point>, Vec<Point>) =
            points.iter().partition(|point| point.size <= last);
        let read = Regions::read(&analysis(&below), whole.direct);
        let more = read.says() > whole.says() && read.answer == Answer::Seen;
        let piece = *read.breaks.pieces.last().filter(|_| more)?;
        let further_level_from = Some(next);
        rises_above(&above, &piece).then_some(Regions { further_level_from, ..read })
    };
    // Of equal ones `max_by_key` takes the last: the most sizes.
    (LEAST_BELOW..sizes.len()).filter_map(up_to).max_by_key(Regions::says)
}

/// Whether all these costs lie above the piece, were it to go on, and clearly so together (the sum of their
/// distances in standard errors over the root of their number: Stouffer et al. 1949, The American Soldier).
fn rises_above(points: &[Point], piece: &Piece) -> bool {
    let rise = (piece.cost_at_last_ns - piece.cost_at_first_ns).max(0.0);
    let per_byte = rise / (piece.last - piece.first).max(1) as f64;
    let distance = |point: &Point| {
        let error = sound_error(point.standard_error_ns)?;
        let beyond = point.size.saturating_sub(piece.last) as f64;
        Some((point.cost_ns - piece.cost_at_last_ns - per_byte * beyond) / error)
    };
    let distances: Vec<f64> = points.iter().filter_map(distance).collect();
    let sum: f64 = distances.iter().sum();
    distances.iter().all(|distance| *distance > 0.0)
        && sum >= CLEARLY_ABOVE * (distances.len() as f64).sqrt()
}

/// Why the pieces cannot be called by the paper's names.
fn unlike_the_paper(breaks: &Breaks, cache: bool, direct: Option<Direct>) -> Option<String> {
    let first = breaks.pieces.first()?;
    let start = first.cost_at_first_ns;
    if let Some(direct) = direct {
        let reference = direct.high_ns.unwrap_or(direct.cost_ns).max(direct.cost_ns);
        if start > CLOSE_TO_DIRECT * reference && reference > 0.0 {
            return Some(format!(
                "at the smallest array the cost is already {}x the direct cost, so where all working sets fit was not measured",
                two_digits(start / reference)
            ));
        }
    }
    let Some(second) = breaks.pieces.get(1) else {
        let falls = first.course == Course::Falls;
        return falls.then(|| "the cost falls with the array".to_string());
    };
    // A cache begins to overflow before it is full; without one, a rise from the start is no region.
    if first.course == Course::Rises && !cache {
        return Some(
            "the cost rises from the smallest array on, so where all working sets fit was not seen"
                .into(),
        );
    }
    let highest = second.cost_at_first_ns.max(second.cost_at_last_ns);
    (highest <= first.cost_at_last_ns).then(|| {
        "the cost falls at the first break, which larger working sets do not explain".into()
    })
}

fn extents(breaks: &Breaks, direct: Option<Direct>) -> Vec<Extent> {
    let names = [Region::AllFit, Region::TogetherTooLarge, Region::AloneTooLarge];
    let over = |cost: f64| {
        let direct = direct?.cost_ns;
        (direct > 0.0).then(|| cost / direct).filter(|ratio| ratio.is_finite())
    };
    let extent = |(region, piece): (Region, &Piece)| Extent {
        region,
        piece: *piece,
        over_direct_low: over(piece.lowest_ns()),
        over_direct_high: over(piece.highest_ns()),
    };
    let named = if third_is_alone(breaks) { 3 } else { 2 };
    names.into_iter().zip(&breaks.pieces).take(named).map(extent).collect()
}

/// One array alone fills a cache at twice the size at which two fill it: a second break elsewhere is
/// another level's.
fn third_is_alone(breaks: &Breaks) -> bool {
    let [first, second] = &breaks.breaks[..] else { return false };
    let least = second.low as f64 / first.high.max(1) as f64;
    let most = second.high as f64 / first.low.max(1) as f64;
    least <= TWICE && TWICE <= most
}

impl Piece {
    /// The lower of the fitted costs at its ends, in ns.
    #[must_use]
    pub fn lowest_ns(&self) -> f64 {
        self.cost_at_first_ns.min(self.cost_at_last_ns)
    }

    /// The higher of them.
    #[must_use]
    pub fn highest_ns(&self) -> f64 {
        self.cost_at_first_ns.max(self.cost_at_last_ns)
    }
}

impl Regions {
    /// What one cache, or free breaks, say of all points.
    fn read(all: &Analysis, direct: Option<Direct>) -> Self {
        let (breaks, refill) = match refill::find(all) {
            Some((breaks, refill)) => (breaks, Some(refill)),
            None => (read(Axis::array(), all), None),
        };
        let why = match breaks.why() {
            Some(why) => Some(why.to_owned()),
            None => unlike_the_paper(&breaks, refill.is_some(), direct),
        };
        let answer = match (why, &breaks.pieces[..]) {
            (Some(why), _) => Answer::CannotTell { why },
            (None, [piece]) => Answer::NoThreshold { up_to_bytes: piece.last },
            (None, _) => Answer::Seen,
        };
        let seen = answer == Answer::Seen;
        let extents = if seen { extents(&breaks, direct) } else { Vec::new() };
        Self { answer, extents, breaks, refill, further_level_from: None, direct }
    }

    /// How much it says: regions, then the cache that explains them.
    fn says(&self) -> (usize, bool) {
        (self.extents.len(), self.refill.is_some())
    }

    /// The extent of a region, if it was seen.
    #[must_use]
    pub fn of(&self, region: Region) -> Option<&Extent> {
        self.extents.iter().find(|extent| extent.region == region)
    }

    /// Cost where the combined working sets exceed the cache over cost where all fit: from the lowest over the
    /// highest to the highest over the lowest, as the paper's ranges give it
    /// ([`crate::published::li2007::Figures::second_over_first`]). `None` if a region was not seen or a cost
    /// is not above zero.
    #[must_use]
    pub fn second_over_first(&self) -> Option<(f64, f64)> {
        let first = self.of(Region::AllFit)?.piece;
        let second = self.of(Region::TogetherTooLarge)?.piece;
        let positive = first.lowest_ns() > 0.0 && second.lowest_ns() > 0.0;
        let ratios =
            (second.lowest_ns() / first.highest_ns(), second.highest_ns() / first.lowest_ns());
        (positive && ratios.1.is_finite()).then_some(ratios)
    }
}
