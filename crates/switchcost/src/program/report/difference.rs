//! Ratios of the costs of several runs of one experiment to those of the first, with their intervals,
//! the worst case on top.

use analysis::comparison::{CaseChange, Comparison, ComparisonTerms};
use analysis::measures::SWITCHES_PER_HOP;
use analysis::results::{Quantity, Results};
use charts::{Axis, Figure, Point, Role, Scale, Series, Unit};

use super::questions::{DIFFERENCE, SWITCHES};
use crate::base::values::each_once;
use crate::engine::effort::CONFIDENCE;
use crate::report::terminal::counted;
use crate::report::tiles::Tile;

/// Most runs whose comparison has a sentence of its own.
const MAX_SENTENCES: usize = 3;

/// A run as it is compared.
pub(super) struct ComparedSide<'a> {
    /// Place of the run among those that are drawn.
    pub(super) run: usize,
    /// Letter of the run.
    pub(super) name: String,
    pub(super) results: &'a Results,
}

/// Differences between two runs or more.
pub(super) struct RunDifference {
    /// A sentence for each run that is compared with the first.
    pub(super) in_words: String,
    /// Ratios; of two states of the machine also the switches of a hop, which may differ although a
    /// switch costs the same.
    pub(super) figures: Vec<Figure>,
    /// The ratios of all cases, the worst first.
    pub(super) tiles: Vec<Tile>,
}

impl RunDifference {
    /// Compares all sides with the first; `None` where none has a case in common with it.
    pub(super) fn between(sides: &[ComparedSide], terms: ComparisonTerms) -> Option<Self> {
        let (base, others) = sides.split_first()?;
        // The intervals of all runs hold together (Bonferroni), as those of one do.
        let confidence = 1.0 - (1.0 - terms.confidence) / others.len().max(1) as f64;
        let terms = ComparisonTerms { confidence, ..terms };
        let mut compared = Vec::new();
        for side in others {
            let comparison = Comparison::from_results(base.results, side.results, terms);
            if !comparison.changes.is_empty() {
                compared.push(ComparedPair { run: side.run, name: &side.name, comparison });
            }
        }
        if compared.is_empty() {
            return None;
        }
        let mut rows: Vec<RatioRow> = compared.iter().flat_map(ComparedPair::rows).collect();
        rows.sort_by(|one, other| other.ratio[0].total_cmp(&one.ratio[0]));
        let mut tiles = Vec::new();
        for row in &rows {
            let run = if compared.len() > 1 { format!("{}: ", row.name) } else { String::new() };
            tiles.push(Tile::ratio(run + &row.case, row.ratio));
        }
        let left_out = LeftOutCases::count(&compared, &rows);
        let mut figures = Vec::new();
        figures.extend(ratio_figure(&base.name, &rows, &left_out));
        figures.extend(switches_figure(&base.name, &compared));
        Some(Self { in_words: sentences(&compared), tiles, figures })
    }
}

/// A run with its comparison with the first.
struct ComparedPair<'a> {
    run: usize,
    name: &'a str,
    comparison: Comparison,
}

impl ComparedPair<'_> {
    /// Returns the cases that have an interval to go by.
    fn rows(&self) -> Vec<RatioRow<'_>> {
        let changes = &self.comparison.changes;
        let mut rows = Vec::new();
        for change in changes.iter().filter(|change| change.is_tested()) {
            if let (Some((low, high)), Some(ratio)) = (change.ratio.interval(), change.ratio.value)
            {
                let case = title(change, changes);
                let ratio = [ratio, low, high];
                rows.push(RatioRow { run: self.run, name: self.name, case, ratio });
            }
        }
        rows
    }

    /// Returns the answer and the difference of the clocks in a sentence.
    fn sentence(&self) -> String {
        let answer = &self.comparison.in_words;
        match &self.comparison.clocks {
            Some(clocks) => format!("{answer}; {}.", clocks.in_words),
            None => format!("{answer}."),
        }
    }
}

/// Returns the sentences of the first runs, a line each, and how many more there are.
fn sentences(compared: &[ComparedPair]) -> String {
    let mut lines: Vec<String> =
        compared.iter().take(MAX_SENTENCES).map(ComparedPair::sentence).collect();
    if compared.len() > MAX_SENTENCES {
        lines.push(format!("And {} below.", counted(compared.len() - MAX_SENTENCES, "more run")));
    }
    lines.join("\n")
}

/// Returns the title of a case, with the labels in which it differs from cases of the same title, and
/// its quantity unless that is the cost of a switch, or the title says it.
fn title(change: &CaseChange, changes: &[CaseChange]) -> String {
    let mut title = change.title.clone();
    for (name, value) in &change.labels {
        let differs = |other: &CaseChange| {
            other.title == change.title && other.labels.get(name) != Some(value)
        };
        if changes.iter().any(differs) {
            title += &format!(", {name} {value}");
        }
    }
    match change.quantity {
        Quantity::NsPerSwitchAboveSolo => title,
        quantity if quantity.is_of_trace() => title,
        quantity => format!("{title} ({})", quantity.in_words()),
    }
}

/// A case of a run against the same case of the first.
struct RatioRow<'a> {
    run: usize,
    name: &'a str,
    case: String,
    /// The ratio and the ends of its interval.
    ratio: [f64; 3],
}

/// Numbers of cases that have no row, each counted once however many runs there are.
struct LeftOutCases {
    /// Cases of both runs without a ratio that holds.
    without_ratio: usize,
    /// Cases of one run only.
    unpaired: usize,
}

impl LeftOutCases {
    fn count(compared: &[ComparedPair], rows: &[RatioRow]) -> Self {
        let (mut paired, mut unpaired) = (Vec::new(), Vec::new());
        for pair in compared {
            let changes = &pair.comparison.changes;
            paired.extend(changes.iter().map(|change| title(change, changes)));
            unpaired.extend(pair.comparison.unpaired.iter().map(|case| &case.title));
        }
        let mut without_ratio = each_once(paired);
        without_ratio.retain(|case| rows.iter().all(|row| row.case != *case));
        Self { without_ratio: without_ratio.len(), unpaired: each_once(unpaired).len() }
    }

    fn in_words(&self) -> String {
        let mut text = String::new();
        if self.without_ratio > 0 {
            let cases = counted(self.without_ratio, "case");
            text += &format!(" Without a reliable ratio: {cases}.");
        }
        if self.unpaired > 0 {
            text += &format!(" In one run only: {}.", counted(self.unpaired, "case"));
        }
        text
    }
}

/// Draws a row a case, the worst on top, with a line where nothing has changed; `None` without rows.
fn ratio_figure(base: &str, rows: &[RatioRow], left_out: &LeftOutCases) -> Option<Figure> {
    if rows.is_empty() {
        return None;
    }
    let cases = each_once(rows.iter().map(|row| row.case.clone()));
    let runs = each_once(rows.iter().map(|row| (row.run, row.name)));
    let mut series = Vec::new();
    for (run, name) in &runs {
        let mut points = Vec::new();
        for row in rows.iter().filter(|row| row.run == *run) {
            let place = cases.iter().position(|case| *case == row.case).unwrap_or_default();
            let [ratio, low, high] = row.ratio;
            points.push(Point::with_ends(place as f64, ratio, [low, high]));
        }
        series.push(Series::new(format!("{name} / {base}"), *run, Role::Measured, points));
    }
    // The line begins within the row of the first case and ends within that of the last.
    let ends = [-0.4, cases.len() as f64 - 0.6].map(|x| Point::bare(x, 1.0)).to_vec();
    series.push(Series { name: "no change".into(), run: None, role: Role::Law, points: ends });
    let label = match &runs[..] {
        [(_, name)] => format!("cost in {name} / cost in {base}"),
        _ => format!("cost / cost in {base}"),
    };
    let in_words = format!(
        "Costs over those of {base}: 1 is no change. All intervals together hold with {:.0} % \
         confidence.{}",
        CONFIDENCE * 100.0,
        left_out.in_words()
    );
    let x = Axis::with_names("case", cases);
    let y = Axis::new(&label, Unit::Ratio, Scale::Linear);
    let figure = Figure::new(DIFFERENCE, "Difference of the costs", x, y);
    Figure { in_words, ..figure }.with_series(series)
}

/// Draws the switches of a hop of both states of the machine, the worst case by its cost on top;
/// `None` of other sides, and where no ring was measured.
fn switches_figure(base: &str, compared: &[ComparedPair]) -> Option<Figure> {
    let [pair] = compared else { return None };
    if !pair.comparison.is_of_machine() {
        return None;
    }
    let changes = &pair.comparison.changes;
    let mut cases = Vec::new();
    let mut points = [Vec::new(), Vec::new()];
    for change in pair.comparison.worst_first() {
        let Some(measured) = change.measures.get(SWITCHES_PER_HOP.id) else { continue };
        let (Some(base), Some(new)) = (measured.base, measured.new) else { continue };
        let place = cases.len() as f64;
        points[0].push(Point::bare(place, base));
        points[1].push(Point::bare(place, new));
        cases.push(title(change, changes));
    }
    if cases.is_empty() {
        return None;
    }
    let x = Axis::with_names("case", cases);
    let y = Axis::new("switches per hop", Unit::Ratio, Scale::Linear);
    let figure = Figure::new(SWITCHES, "Switches per hop", x, y);
    let in_words = "Switches that the kernel counted, per hop: more of them cost more time although \
                    each costs the same.";
    let [of_base, of_new] = points;
    let series = vec![
        Series::new(base.to_string(), 0, Role::Measured, of_base),
        Series::new(pair.name.to_string(), pair.run, Role::Measured, of_new),
    ];
    Figure { in_words: in_words.to_string(), ..figure }.with_series(series)
}
