//! Figures that stand for a run in a report, each on a tile: `switch 1.48 us`, with its interval as a
//! bar below it.

use analysis::estimate::Estimate;
use rundata::words;

/// Stands in place of the interval of a count.
const COUNTED: &str = "counted";

/// A figure with its unit and its interval.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tile {
    /// Says what the figure is of.
    pub(crate) name: String,
    /// The figure, and the ends of its interval, in the unit.
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) unit: &'static str,
    /// The value in the middle of the bar: the figure itself, or 1 for a ratio.
    pub(crate) middle: f64,
    /// Stands in place of the interval of a figure that has none: counted, or as published.
    pub(crate) without_interval: Option<&'static str>,
    /// The mark and the kind of a figure that is not at full speed in many rounds: `~`, `core
    /// shared`; empty otherwise.
    pub(crate) mark: &'static str,
    pub(crate) kind: &'static str,
}

/// A figure and the ends of its interval.
#[derive(Clone, Copy, Debug)]
struct FigureRange {
    value: f64,
    low: f64,
    high: f64,
}

impl FigureRange {
    /// Makes a range from `[value, low, high]`.
    fn new([value, low, high]: [f64; 3]) -> Self {
        Self { value, low, high }
    }

    /// Makes a range without width for a figure that has no interval.
    fn with_ends(value: f64, ends: Option<(f64, f64)>) -> Self {
        let (low, high) = ends.unwrap_or((value, value));
        Self { value, low, high }
    }

    /// Returns the range in a unit of so many nanoseconds.
    fn in_unit(self, unit_ns: f64) -> Self {
        Self { value: self.value / unit_ns, low: self.low / unit_ns, high: self.high / unit_ns }
    }
}

impl Tile {
    fn new(name: impl Into<String>, range: FigureRange, unit: &'static str) -> Self {
        Self {
            name: name.into(),
            value: range.value,
            low: range.low,
            high: range.high,
            unit,
            middle: range.value,
            without_interval: None,
            mark: "",
            kind: "",
        }
    }

    /// Makes a tile of a time in the unit that suits the figure; the range is in nanoseconds.
    fn from_ns(name: impl Into<String>, range_ns: FigureRange) -> Self {
        let (unit_ns, unit) = words::time_unit(range_ns.value);
        Self::new(name, range_ns.in_unit(unit_ns), unit)
    }

    /// Makes a tile of a count.
    pub(crate) fn counted(name: impl Into<String>, value: f64, unit: &'static str) -> Self {
        let tile = Self::new(name, FigureRange::with_ends(value, None), unit);
        Self { without_interval: Some(COUNTED), ..tile }
    }

    /// Makes a tile of a time: `[value, low, high]` in nanoseconds.
    pub(crate) fn time(name: impl Into<String>, ns: [f64; 3]) -> Self {
        Self::from_ns(name, FigureRange::new(ns))
    }

    /// Makes a tile of a published time in nanoseconds, with its interval if one was published.
    pub(crate) fn published(name: impl Into<String>, ns: f64, ends: Option<(f64, f64)>) -> Self {
        let without_interval = if ends.is_none() { Some("as published") } else { None };
        Self { without_interval, ..Self::from_ns(name, FigureRange::with_ends(ns, ends)) }
    }

    /// Makes a tile of an interval without a figure; the figure on the tile is the upper end.
    pub(crate) fn at_most(
        name: impl Into<String>,
        [low, high]: [f64; 2],
        unit: &'static str,
    ) -> Self {
        Self::new(name, FigureRange { value: high, low, high }, unit)
    }

    /// Makes a tile of an interval of a time without a figure: `[low, high]` in nanoseconds.
    pub(crate) fn time_at_most(name: impl Into<String>, [low, high]: [f64; 2]) -> Self {
        Self::from_ns(name, FigureRange { value: high, low, high })
    }

    /// Makes a tile of the best answer to a cost in nanoseconds; absent if there is none.
    pub(crate) fn cost(name: impl Into<String>, estimate: Option<Estimate>) -> Option<Self> {
        let answer = estimate?.answer_cost().ok()?;
        let ends = answer.ends();
        let without_interval = if ends.is_none() { Some("in few rounds") } else { None };
        let tile = Self::from_ns(name, FigureRange::with_ends(answer.value(), ends));
        Some(Self { mark: answer.mark(), kind: answer.kind(), without_interval, ..tile })
    }

    /// Makes a tile of a share in percent; absent if it may not be quoted.
    pub(crate) fn percent(name: impl Into<String>, estimate: Option<Estimate>) -> Option<Self> {
        let quoted = estimate?.quote_count().ok()?;
        let range = FigureRange::new([quoted.value(), quoted.low(), quoted.high()]);
        Some(Self::new(name, range, "%"))
    }

    /// Makes a tile of a factor: `[value, low, high]`.
    pub(crate) fn times(name: impl Into<String>, range: [f64; 3]) -> Self {
        Self::new(name, FigureRange::new(range), "x")
    }

    /// Makes a tile of a ratio of two costs: `[value, low, high]`. Its bar has 1, no change, in its
    /// middle.
    pub(crate) fn ratio(name: impl Into<String>, range: [f64; 3]) -> Self {
        Self { middle: 1.0, ..Self::times(name, range) }
    }

    pub(crate) fn with_name(self, name: String) -> Self {
        Self { name, ..self }
    }

    /// Returns the places of both ends of the interval and of the figure, as shares of the bar.
    pub(crate) fn bar(&self) -> [f64; 3] {
        let end = self.bar_end();
        [self.low, self.high, self.value].map(|value| (value / end).clamp(0.0, 1.0))
    }

    /// Returns the value at the right end of the bar, twice the middle; 0 is at the left end.
    fn bar_end(&self) -> f64 {
        // A count may be zero.
        if self.middle > 0.0 { 2.0 * self.middle } else { self.high.max(1.0) }
    }

    /// Writes the value at the right end of the bar.
    pub(crate) fn scale(&self) -> String {
        words::three_digits(self.bar_end())
    }

    /// Writes the figure with its mark.
    pub(crate) fn figure(&self) -> String {
        format!("{}{}", self.mark, self.written(self.value))
    }

    /// Writes both ends of the interval, and the kind of the figure.
    pub(crate) fn interval(&self) -> String {
        let comma = if self.kind.is_empty() { "" } else { ", " };
        format!("{} to {}{comma}{}", self.written(self.low), self.written(self.high), self.kind)
    }

    /// Writes a value of the unit: a ratio near 1 with three decimals, a count in full, all else with
    /// three digits.
    fn written(&self, value: f64) -> String {
        match self.unit {
            "x" if (0.1..10.0).contains(&value) => format!("{value:.3}"),
            _ if self.without_interval == Some(COUNTED) => words::grouped(value),
            _ => words::three_digits(value),
        }
    }

    /// Chooses at most `max` tiles of several runs: the first of each run, then the second of each,
    /// and so on, none whose name was chosen before. The tiles of a run stay together.
    pub(crate) fn in_turn(runs: &[Vec<Self>], max: usize) -> Vec<Self> {
        let mut chosen: Vec<(usize, &Self)> = Vec::new();
        for place in 0..runs.iter().map(Vec::len).max().unwrap_or(0) {
            for (run, tiles) in runs.iter().enumerate() {
                let Some(tile) = tiles.get(place) else { continue };
                if chosen.iter().all(|(_, known)| known.name != tile.name) {
                    chosen.push((run, tile));
                }
            }
        }
        chosen.truncate(max);
        chosen.sort_by_key(|(run, _)| *run);
        chosen.into_iter().map(|(_, tile)| tile.clone()).collect()
    }

    /// Leaves out tiles whose name stands before.
    pub(crate) fn each_once(tiles: Vec<Self>) -> Vec<Self> {
        Self::in_turn(&[tiles], usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::estimate::Speed;

    #[test]
    fn only_what_holds_has_a_tile() {
        let sure = Estimate::at_full_speed(1483.0, 10.0, 20, 0.001, 0.95);
        let tile = Tile::cost("switch", sure).unwrap();
        assert_eq!((&*tile.figure(), tile.unit), ("1.48", "us"));
        assert!(tile.low < 1.483 && tile.high > 1.483 && tile.interval().contains(" to "));
        let not_resolved = Estimate::at_full_speed(-3.0, 10.0, 20, 0.001, 0.95);
        assert_eq!(Tile::cost("switch", not_resolved), None);
        // Nothing lost is a figure, and has a bar.
        let none = Tile::percent("lost", Estimate::over(&[0.0; 8], 5, 0.95, 1)).unwrap();
        assert_eq!(none.bar(), [0.0; 3]);
        let shared = Estimate::as_it_was(&[2030.0; 6], None, 0.95, Speed::Contended);
        let tile = Tile::cost("switch", shared).unwrap();
        assert_eq!(tile.figure(), "~2.03");
        assert!(tile.interval().ends_with(", core shared"), "{}", tile.interval());
        assert_eq!(Tile::cost("switch", Estimate::over(&[-1.0], 5, 0.95, 1)), None);
        assert_eq!(Tile::percent("lost", Estimate::over(&[1.0, 2.0], 5, 0.95, 1)), None);
        assert_eq!(Tile::cost("switch", None), None);
    }

    #[test]
    fn a_bar_has_the_figure_in_its_middle_and_a_ratio_no_change() {
        assert_eq!(Tile::times("jump", [4.0, 2.0, 20.0]).bar(), [0.25, 1.0, 0.5]);
        assert_eq!(Tile::ratio("case", [1.5, 1.2, 1.6]).bar(), [0.6, 0.8, 0.75]);
        assert_eq!(Tile::ratio("case", [1.5, 1.2, 1.6]).figure(), "1.500");
    }

    #[test]
    fn runs_take_turns_and_keep_together_and_nothing_is_there_twice() {
        let tile = |name: &str| Tile::times(name, [1.0, 0.9, 1.1]);
        let names = |max| {
            let runs = [["a", "b"].map(tile).to_vec(), ["c", "a", "d"].map(tile).to_vec(), vec![]];
            let all = Tile::in_turn(&runs, max);
            all.into_iter().map(|tile| tile.name).collect::<Vec<_>>()
        };
        assert_eq!(names(9), ["a", "b", "c", "d"]);
        assert_eq!(names(2), ["a", "c"]);
        assert_eq!(names(3), ["a", "b", "c"]);
    }
}
