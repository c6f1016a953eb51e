//! Breaks and pieces in sentences.

use super::{Axis, Break, Breaks, Course, Finding, Piece};
use crate::words::{percent, time};

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
    /// Why the points cannot tell, if they cannot.
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
            return format!("cannot tell: {why}");
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
                ", seen up to {} (any jump below {bound}); beyond it the points cannot tell",
                self.axis.size(piece.last)
            ),
            false => format!(", any jump below {bound}"),
        }
    }
}
