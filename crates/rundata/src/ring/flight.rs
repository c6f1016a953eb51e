//! Items under way at once: how many tokens circulate in a ring.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounds::check_within;

/// Most items that may be under way: as many single bytes as a pipe holds by default (pipe(7)).
pub const MAX_FLIGHT: u32 = 65_536;

/// Smallest number of laps of a slice for each item under way: at most a quarter of them are made
/// while items are few, at its end.
const LAPS_PER_ITEM: u64 = 4;

/// Returns the fewest laps that are timed together with so many items under way: they begin and end
/// with one item, or none, and most of them have all items under way.
pub fn fewest_laps(items: u32) -> u64 {
    if items > 1 { LAPS_PER_ITEM * u64::from(items) } else { 1 }
}

/// The word for as many items as the link holds.
const FULL: &str = "full";

/// Number of items that are under way at once, where it is not one.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Flight {
    /// So many tokens circulate: each member passes on one for each that it receives.
    Items(u32),
    /// As many as the link holds: in a ring of two the leader writes until the link makes it wait,
    /// and the other member reads. It answers once, after the last item of a slice.
    Full,
}

impl Flight {
    /// Returns the flight of a ring; `None` for one item, which is the ring without this setting.
    pub fn above_one(self) -> Option<Self> {
        if self == Self::Items(1) { None } else { Some(self) }
    }

    /// Checks that the number is in range, for a ring of `members`.
    pub fn check(self, members: u32) -> Result<(), String> {
        match self {
            Self::Items(count) => {
                check_within("items under way", count, 2..=MAX_FLIGHT)?;
                check_within("members with several items under way", members, 2..=u32::MAX)
            }
            Self::Full => check_within("members with a full link", members, 2..=2),
        }
    }

    /// Describes the items, for titles: `16 under way`.
    pub fn in_words(self) -> String {
        match self {
            Self::Items(count) => format!("{count} under way"),
            Self::Full => "a full link".to_string(),
        }
    }
}

impl fmt::Display for Flight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Items(count) => write!(f, "{count}"),
            Self::Full => f.write_str(FULL),
        }
    }
}

impl FromStr for Flight {
    type Err = String;

    /// Reads a number of items from 1 to [`MAX_FLIGHT`], or `full`.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == FULL {
            return Ok(Self::Full);
        }
        match text.parse() {
            Ok(count) if (1..=MAX_FLIGHT).contains(&count) => Ok(Self::Items(count)),
            _ => Err(format!("accepted: 1 to {MAX_FLIGHT}, or {FULL}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_read_back() {
        for flight in [Flight::Items(1), Flight::Items(MAX_FLIGHT), Flight::Full] {
            assert_eq!(flight.to_string().parse(), Ok(flight));
        }
        for refused in ["0", "65537", "1000000000", "-1", "many", "", "1.5", "Full"] {
            assert!(refused.parse::<Flight>().is_err(), "{refused}");
        }
    }

    #[test]
    fn one_item_is_the_ring_without_it() {
        assert_eq!(Flight::Items(1).above_one(), None);
        assert_eq!(Flight::Items(2).above_one(), Some(Flight::Items(2)));
        assert_eq!(Flight::Full.above_one(), Some(Flight::Full));
    }

    #[test]
    fn laps_are_several_for_each_item() {
        assert_eq!([1, 2, 16, MAX_FLIGHT].map(fewest_laps), [1, 8, 64, 262_144]);
    }

    #[test]
    fn a_full_link_has_a_writer_and_a_reader() {
        let allowed = |flight: Flight| [1, 2, 3].map(|members| flight.check(members).is_ok());
        assert_eq!(allowed(Flight::Full), [false, true, false]);
        assert_eq!(allowed(Flight::Items(16)), [false, true, true]);
        assert_eq!(allowed(Flight::Items(1)), [false; 3]);
    }
}
