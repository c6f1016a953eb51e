//! Figures that stand for a run, one a tile: the best that is known of each.

use analysis::estimate::Estimate;
use rundata::words;

/// What was counted.
const COUNTED: &str = "counted";

/// A figure with its unit and its interval.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tile {
    /// Of what.
    pub(crate) name: String,
    /// The figure in that unit, and the ends of its interval.
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) unit: &'static str,
    /// What the figure is set against: itself, or of a ratio 1.
    pub(crate) middle: f64,
    /// What a figure without an interval is: counted, or as published.
    pub(crate) without_interval: Option<&'static str>,
    /// Of a figure that is not at full speed in many rounds: the mark before it, and its kind.
    pub(crate) mark: &'static str,
    pub(crate) kind: &'static str,
}

impl Tile {
    fn of(name: impl Into<String>, [value, low, high]: [f64; 3], unit: &'static str) -> Self {
        Self {
            name: name.into(),
            value,
            low,
            high,
            unit,
            middle: value,
            without_interval: None,
            mark: "",
            kind: "",
        }
    }

    /// What was counted.
    pub(crate) fn counted(name: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { without_interval: Some(COUNTED), ..Self::of(name, [value; 3], unit) }
    }

    /// A time in nanoseconds with the ends of its interval.
    pub(crate) fn time(name: impl Into<String>, ns: [f64; 3]) -> Self {
        let (scale, unit) = words::time_unit(ns[0]);
        Self::of(name, ns.map(|ns| ns / scale), unit)
    }

    /// A time in nanoseconds that was published, with its interval if it has one.
    pub(crate) fn published(name: impl Into<String>, ns: f64, ends: Option<(f64, f64)>) -> Self {
        let (scale, unit) = words::time_unit(ns);
        let (low, high) = ends.unwrap_or((ns, ns));
        let without_interval = ends.is_none().then_some("as published");
        Self { without_interval, ..Self::of(name, [ns, low, high].map(|ns| ns / scale), unit) }
    }

    /// A figure of which only the ends are known, by the upper one.
    pub(crate) fn at_most(
        name: impl Into<String>,
        [low, high]: [f64; 2],
        unit: &'static str,
    ) -> Self {
        Self::of(name, [high, low, high], unit)
    }

    /// The same of a time in nanoseconds.
    pub(crate) fn time_at_most(name: impl Into<String>, ends_ns: [f64; 2]) -> Self {
        let (scale, unit) = words::time_unit(ends_ns[1]);
        Self::at_most(name, ends_ns.map(|ns| ns / scale), unit)
    }

    /// Builds a tile of the best that is known of a cost in nanoseconds; none where nothing is.
    pub(crate) fn cost(name: impl Into<String>, of: Option<Estimate>) -> Option<Self> {
        let answer = of?.answer_cost().ok()?;
        let (scale, unit) = words::time_unit(answer.value());
        let without_interval = answer.ends().is_none().then_some("in few rounds");
        let (low, high) = answer.ends().unwrap_or((answer.value(), answer.value()));
        let tile = Self::of(name, [answer.value(), low, high].map(|ns| ns / scale), unit);
        Some(Self { mark: answer.mark(), kind: answer.kind(), without_interval, ..tile })
    }

    /// A share in percent, if it holds.
    pub(crate) fn percent(name: impl Into<String>, of: Option<Estimate>) -> Option<Self> {
        let of = of?.quote_count().ok()?;
        let (value, low, high) = (of.value(), of.low(), of.high());
        Some(Self::of(name, [value, low, high], "%"))
    }

    /// How many times as much.
    pub(crate) fn times(name: impl Into<String>, ends: [f64; 3]) -> Self {
        Self::of(name, ends, "x")
    }

    /// One cost over another, set against no change.
    pub(crate) fn ratio(name: impl Into<String>, ends: [f64; 3]) -> Self {
        Self { middle: 1.0, ..Self::times(name, ends) }
    }

    /// The same by another name.
    pub(crate) fn with_name(self, name: String) -> Self {
        Self { name, ..self }
    }

    /// Where the interval begins and ends and where the figure is, as shares of the bar.
    pub(crate) fn bar(&self) -> [f64; 3] {
        let end = self.bar_end();
        [self.low, self.high, self.value].map(|value| (value / end).clamp(0.0, 1.0))
    }

    /// The value at the right end of the bar, twice the middle; 0 is at the left end.
    fn bar_end(&self) -> f64 {
        // A count may be nothing.
        if self.middle > 0.0 { 2.0 * self.middle } else { self.high.max(1.0) }
    }

    /// The right end of the bar as it is written.
    pub(crate) fn scale(&self) -> String {
        words::three_digits(self.bar_end())
    }

    /// The figure as it is written.
    pub(crate) fn figure(&self) -> String {
        format!("{}{}", self.mark, self.written(self.value))
    }

    /// Both ends of the interval.
    pub(crate) fn interval(&self) -> String {
        let comma = if self.kind.is_empty() { "" } else { ", " };
        format!("{} to {}{comma}{}", self.written(self.low), self.written(self.high), self.kind)
    }

    /// Ratios around 1 with three decimals: all else with three digits.
    fn written(&self, value: f64) -> String {
        match self.unit {
            "x" if (0.1..10.0).contains(&value) => format!("{value:.3}"),
            _ if self.without_interval == Some(COUNTED) => words::grouped(value),
            _ => words::three_digits(value),
        }
    }

    /// Of several runs as many as that, taken from each in turn, those of a run together and none
    /// twice.
    pub(crate) fn in_turn(runs: &[Vec<Self>], most: usize) -> Vec<Self> {
        let mut all: Vec<(usize, &Self)> = Vec::new();
        for place in 0..runs.iter().map(Vec::len).max().unwrap_or(0) {
            for (run, tiles) in runs.iter().enumerate() {
                let known = |tile: &&Self| all.iter().all(|(_, known)| known.name != tile.name);
                let new = tiles.get(place).filter(known).map(|tile| (run, tile));
                all.extend(new);
            }
        }
        all.truncate(most);
        all.sort_by_key(|(run, _)| *run);
        all.into_iter().map(|(_, tile)| tile.clone()).collect()
    }

    /// Each name once.
    pub(crate) fn each_once(all: Vec<Self>) -> Vec<Self> {
        Self::in_turn(&[all], usize::MAX)
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
        let open = Estimate::at_full_speed(-3.0, 10.0, 20, 0.001, 0.95);
        assert_eq!(Tile::cost("switch", open), None);
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
        let names = |most| {
            let runs = [["a", "b"].map(tile).to_vec(), ["c", "a", "d"].map(tile).to_vec(), vec![]];
            let all = Tile::in_turn(&runs, most);
            all.into_iter().map(|tile| tile.name).collect::<Vec<_>>()
        };
        assert_eq!(names(9), ["a", "b", "c", "d"]);
        assert_eq!(names(2), ["a", "c"]);
        assert_eq!(names(3), ["a", "b", "c"]);
    }
}
