//! Breaks, pieces and regions in sentences.

use super::{Answer, Axis, Break, Breaks, Course, Finding, Piece, Refill, Region, Regions};
use crate::words::{byte_range, bytes, percent, time, two_digits};

impl Piece {
    /// `flat at 3.1 us`, `rises from 8.0 us to 120 us`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let (start, end) = (time(self.cost_at_first_ns), time(self.cost_at_last_ns));
        match self.course {
            Course::Flat if start == end => format!("flat at {start}"),
            Course::Flat => format!("about flat, {start} to {end}"),
            Course::Rises => format!("rises from {start} to {end}"),
            Course::Falls => format!("falls from {start} to {end}"),
        }
    }
}

impl Break {
    /// The place with its bracket: `192 KiB (128 to 256 KiB)`.
    #[must_use]
    pub fn place(&self, axis: &Axis) -> String {
        let single = if self.sizes_after == 1 { ", seen at one size only" } else { "" };
        format!("{} ({}{single})", axis.size(self.at), axis.range(self.low, self.high))
    }
}

impl Breaks {
    /// Why the points are inconclusive, if they are.
    #[must_use]
    pub fn why(&self) -> Option<&str> {
        match &self.finding {
            Finding::Found => None,
            Finding::CannotTell { why } => Some(why),
        }
    }

    /// The course in one sentence, without a full stop.
    #[must_use]
    pub fn in_words(&self) -> String {
        if let Some(why) = self.why() {
            return format!("inconclusive: {why}");
        }
        let after = self.breaks.iter().map(|found| Some(found.place(&self.axis)));
        let places = std::iter::once(None).chain(after);
        let told = self.pieces.iter().zip(places).map(|(piece, place)| match place {
            None => piece.in_words(),
            Some(place) => format!("from {place} on {}", piece.in_words()),
        });
        let told: Vec<String> = told.collect();
        let range = self.axis.range(self.smallest, self.largest);
        format!("{}{} ({range})", told.join("; "), self.bound_in_words())
    }

    /// How flat a flat course is, and up to where that is known; empty for any other.
    fn bound_in_words(&self) -> String {
        let Some((bound, piece)) = self.jump_below.zip(self.pieces.first()) else {
            return String::new();
        };
        let bound = percent(bound);
        match piece.last < self.largest {
            true => format!(
                ", seen up to {} (any jump below {bound}); inconclusive beyond it",
                self.axis.size(piece.last)
            ),
            false => format!(", any jump below {bound}"),
        }
    }
}

impl Region {
    /// What it says of the working sets.
    #[must_use]
    pub fn in_words(self) -> &'static str {
        match self {
            Region::AllFit => "all working sets fit",
            Region::TogetherTooLarge => "combined working sets exceed the cache",
            Region::AloneTooLarge => "one working set exceeds the cache",
        }
    }
}

impl Refill {
    fn in_words(&self) -> String {
        let [cost, low, high] =
            [self.ns_per_kib, self.ns_per_kib_low, self.ns_per_kib_high].map(two_digits);
        let holds = bytes(self.holds_bytes);
        let range = byte_range(self.holds_bytes_low, self.holds_bytes_high);
        format!(
            "; a cache of {holds} ({range}) explains both, with {cost} ns ({low} to {high}) for each KiB fetched again"
        )
    }
}

impl Regions {
    /// The regions in one sentence, without a full stop.
    #[must_use]
    pub fn in_words(&self) -> String {
        match &self.answer {
            Answer::CannotTell { why } => return format!("inconclusive: {why}"),
            Answer::NoThreshold { up_to_bytes } => return self.without_threshold(*up_to_bytes),
            Answer::Seen => {}
        }
        let told: Vec<String> = (0..self.extents.len()).map(|which| self.tell(which)).collect();
        let further = self.breaks.breaks.get(self.extents.len().saturating_sub(1));
        let missing = match (self.extents.len(), further) {
            (2, Some(further)) => {
                format!("; a further break at {}", further.place(&self.breaks.axis))
            }
            (2, None) => "; where one working set exceeds the cache was not seen".into(),
            _ => String::new(),
        };
        let cache = self.refill.map(|refill| refill.in_words()).unwrap_or_default();
        let further = self.further_level_from.map(|from| {
            format!("; from {} on costs rise above all that: another level's doing", bytes(from))
        });
        format!("{}{missing}{cache}{}", told.join("; "), further.unwrap_or_default())
    }

    /// `no threshold up to 2 MiB: flat at 3.00 us, any jump below 8 %`, or how a straight cost rises.
    fn without_threshold(&self, up_to_bytes: u64) -> String {
        let up_to = bytes(up_to_bytes);
        match &self.breaks.pieces[..] {
            [piece] if piece.course == Course::Rises => {
                let rise = piece.cost_at_last_ns - piece.cost_at_first_ns;
                let by = two_digits(rise * 1024.0 / (piece.last - piece.first).max(1) as f64);
                format!("rises by {by} ns a KiB, no threshold up to {up_to}")
            }
            [piece] => {
                let bound =
                    self.breaks.jump_below.map(|b| format!(", any jump below {}", percent(b)));
                let beyond = match piece.last < self.breaks.largest {
                    true => "; inconclusive beyond it",
                    false => "",
                };
                let bound = bound.unwrap_or_default();
                format!("no threshold up to {up_to}: {}{bound}{beyond}", piece.in_words())
            }
            _ => format!("no threshold up to {up_to}"),
        }
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
                let [low, high] = [low, high].map(two_digits);
                let range = if low == high { low } else { format!("{low} to {high}") };
                format!(", {range} of c1")
            }
            _ => String::new(),
        };
        format!("{}{place}: {cost}{ratio}", extent.region.in_words())
    }
}
