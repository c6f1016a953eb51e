//! The three regions of Li, Ding and Shen (2007, section 3.1), read from the breaks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Axis, Breaks, Course, Piece, Point, breaks};
use crate::words::plain;

/// A first piece up to so many times the direct cost counts as close to it: the first region of
/// the paper reaches from 1.1 to 2.3 times its c1.
const CLOSE_TO_DIRECT: f64 = 2.5;

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

impl Region {
    fn in_words(self) -> &'static str {
        match self {
            Region::AllFit => "all fits",
            Region::TogetherTooLarge => "two do not fit together",
            Region::AloneTooLarge => "one alone does not fit",
        }
    }
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

/// The answer of [`regions`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Regions {
    /// The regions seen, ascending; empty if the points cannot tell.
    pub extents: Vec<Extent>,
    /// Why there are none, in words that follow a colon.
    pub cannot_tell: Option<String>,
    /// What they are read from.
    pub breaks: Breaks,
    /// What the first region was compared with, if c1 was measured.
    pub direct: Option<Direct>,
}

/// Reads c2 at several array sizes, for one stride and kind of access, as up to three regions. The
/// direct cost only tells whether the first piece is the first region; places come from c2 alone.
#[must_use]
pub fn regions(points: &[Point], direct: Option<Direct>) -> Regions {
    let breaks = breaks(Axis::array(), points);
    let direct = direct.filter(|direct| direct.cost_ns.is_finite());
    let (extents, cannot_tell) = match (breaks.why(), unlike_the_paper(&breaks, direct)) {
        (Some(why), _) => (Vec::new(), Some(why.to_owned())),
        (None, Some(why)) => (Vec::new(), Some(why)),
        (None, None) => (extents(&breaks, direct), None),
    };
    Regions { extents, cannot_tell, breaks, direct }
}

/// Why the pieces cannot be called by the paper's names.
fn unlike_the_paper(breaks: &Breaks, direct: Option<Direct>) -> Option<String> {
    let first = breaks.pieces.first()?;
    let start = first.cost_at_first_ns;
    if let Some(direct) = direct {
        let reference = direct.high_ns.unwrap_or(direct.cost_ns).max(direct.cost_ns);
        if start > CLOSE_TO_DIRECT * reference && reference > 0.0 {
            return Some(format!(
                "at the smallest array the cost is already {}x the direct cost, so where all fits was not measured",
                plain(round(start / reference))
            ));
        }
    }
    if breaks.breaks.is_empty() && first.course == Course::Rises {
        let doubled = doubled_by(first)
            .map(|size| format!(", and has doubled by {}", breaks.axis.size(size)));
        let doubled = doubled.unwrap_or_default();
        return Some(format!("the cost rises from the smallest array on without a break{doubled}"));
    }
    let second = breaks.pieces.get(1)?;
    let highest = second.cost_at_first_ns.max(second.cost_at_last_ns);
    (highest <= first.cost_at_last_ns).then(|| {
        "the cost falls at the first break, which larger working sets do not explain".into()
    })
}

/// Where a rising piece reaches twice its first cost.
fn doubled_by(piece: &Piece) -> Option<u64> {
    let rise = piece.cost_at_last_ns - piece.cost_at_first_ns;
    let part = piece.cost_at_first_ns / rise;
    let reached = piece.cost_at_first_ns > 0.0 && part <= 1.0;
    reached.then(|| piece.first + (part * (piece.last - piece.first) as f64) as u64)
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
    names.into_iter().zip(&breaks.pieces).map(extent).collect()
}

/// Two digits.
pub(super) fn round(ratio: f64) -> f64 {
    format!("{ratio:.1e}").parse().unwrap_or(ratio)
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
    /// The extent of a region, if it was seen.
    #[must_use]
    pub fn of(&self, region: Region) -> Option<&Extent> {
        self.extents.iter().find(|extent| extent.region == region)
    }

    /// Cost where two do not fit together over cost where all fits: from the lowest over the
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

    /// The regions in one sentence, without a full stop.
    #[must_use]
    pub fn in_words(&self) -> String {
        if let Some(why) = &self.cannot_tell {
            return format!("cannot tell: {why}");
        }
        let told: Vec<String> = (0..self.extents.len()).map(|which| self.tell(which)).collect();
        let missing = match self.extents.len() {
            1 => self.breaks.bound_in_words(),
            2 => "; where one alone does not fit was not seen".into(),
            _ => String::new(),
        };
        format!("{}{missing}", told.join("; "))
    }

    fn tell(&self, which: usize) -> String {
        let extent = &self.extents[which];
        let place = match which.checked_sub(1).and_then(|before| self.breaks.breaks.get(before)) {
            Some(found) => format!(" from {}", found.place(&self.breaks.axis)),
            None => String::new(),
        };
        let cost = extent.piece.in_words();
        let ratio = match (extent.over_direct_low, extent.over_direct_high) {
            (Some(low), Some(high)) => {
                let [low, high] = [low, high].map(|ratio| plain(round(ratio)));
                let range = if low == high { low } else { format!("{low} to {high}") };
                format!(", {range} of c1")
            }
            _ => String::new(),
        };
        format!("{}{place}: {cost}{ratio}", extent.region.in_words())
    }
}
