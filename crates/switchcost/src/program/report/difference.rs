//! What differs between runs of one experiment: the ratio of each cost with its interval, the worst
//! case on top.

use analysis::comparison::{CaseChange, Comparison, ComparisonTerms};
use analysis::results::{Quantity, Results};
use charts::{Axis, Figure, Point, Role, Scale, Series, Unit};

use super::questions::DIFFERENCE;
use crate::base::values::each_once;
use crate::engine::effort::CONFIDENCE;
use crate::report::terminal::counted;
use crate::report::tiles::Tile;

/// Runs that are told of one by one, each a line.
const MOST_TOLD: usize = 3;

/// What the page says of two runs or more.
pub(super) struct Difference {
    /// Of each further run against the first, in a sentence.
    pub(super) in_words: String,
    pub(super) figure: Option<Figure>,
    /// The worst cases.
    pub(super) tiles: Vec<Tile>,
}

/// A case in words: what it costs is a switch, unless it says otherwise. Of several cases with one
/// title with the labels in which they differ.
fn title(change: &CaseChange, all: &[CaseChange]) -> String {
    let alike: Vec<&CaseChange> = all.iter().filter(|other| other.title == change.title).collect();
    let differs = |(name, value): &(&String, &String)| {
        alike.iter().any(|other| other.labels.get(*name) != Some(*value))
    };
    let apart =
        change.labels.iter().filter(differs).map(|(name, value)| format!(", {name} {value}"));
    let words = change.title.clone() + &apart.collect::<String>();
    match change.quantity {
        Quantity::NsPerSwitchAboveSolo => words,
        of => format!("{words} ({})", of.in_words()),
    }
}

/// A case of a run against the same of the first.
struct Row<'a> {
    run: usize,
    name: &'a str,
    case: String,
    /// The ratio and the ends of its interval.
    ratio: [f64; 3],
}

/// The cases of a comparison that have an interval to go by.
fn rows<'a>(run: usize, name: &'a str, found: &Comparison) -> Vec<Row<'a>> {
    let row = |change: &CaseChange| {
        let (low, high) = change.ratio.interval()?;
        let (case, ratio) = (title(change, &found.changes), [change.ratio.value?, low, high]);
        Some(Row { run, name, case, ratio })
    };
    found.changes.iter().filter(|change| change.is_tested()).filter_map(row).collect()
}

/// Cases that have no row, each counted once however many runs there are.
struct LeftOut {
    /// In both runs, without a ratio that holds.
    untold: usize,
    /// In one of the runs only.
    unpaired: usize,
}

impl LeftOut {
    fn of(found: &[(usize, &str, Comparison)], rows: &[Row]) -> Self {
        let titles = |of: &Comparison| -> Vec<String> {
            of.changes.iter().map(|change| title(change, &of.changes)).collect()
        };
        let told: Vec<&str> = rows.iter().map(|row| row.case.as_str()).collect();
        let paired = each_once(found.iter().flat_map(|(.., of)| titles(of)));
        let unpaired = found.iter().flat_map(|(.., of)| of.unpaired.iter().map(|of| &of.title));
        Self {
            untold: paired.iter().filter(|case| !told.contains(&case.as_str())).count(),
            unpaired: each_once(unpaired).len(),
        }
    }

    fn in_words(&self) -> String {
        let told = |many: usize, what: &str| match many {
            0 => String::new(),
            many => format!(" {what}: {}.", counted(many, "case")),
        };
        told(self.untold, "Without a reliable ratio") + &told(self.unpaired, "In one run only")
    }
}

/// Each run by its place and its letter, the first one being what the others are compared with.
/// None where they have no case in common.
pub(super) fn of(
    sides: &[(usize, String, &Results)],
    terms: ComparisonTerms,
) -> Option<Difference> {
    let ((_, base, first), others) = sides.split_first()?;
    // The intervals of all runs hold together (Bonferroni), as those of one do.
    let confidence = 1.0 - (1.0 - terms.confidence) / others.len().max(1) as f64;
    let terms = ComparisonTerms { confidence, ..terms };
    let found = others
        .iter()
        .map(|(run, name, of)| (*run, &**name, Comparison::from_results(first, of, terms)));
    let found: Vec<(usize, &str, Comparison)> =
        found.filter(|(.., found)| !found.changes.is_empty()).collect();
    found.first()?;
    let mut rows: Vec<Row> =
        found.iter().flat_map(|(run, name, found)| rows(*run, name, found)).collect();
    rows.sort_by(|one, other| other.ratio[0].total_cmp(&one.ratio[0]));
    let words = |(.., found): &(usize, &str, Comparison)| {
        let clocks = found.clocks.as_ref().map(|clocks| format!("; {}", clocks.in_words));
        let clocks = clocks.unwrap_or_default();
        format!("{}{clocks}.", found.in_words)
    };
    let more = found.len().saturating_sub(MOST_TOLD);
    let more = (more > 0).then(|| format!("And {} below.", counted(more, "more run")));
    let tile = |row: &Row| {
        let of_run = if found.len() > 1 { format!("{}: ", row.name) } else { String::new() };
        Tile::ratio(of_run + &row.case, row.ratio)
    };
    let left_out = LeftOut::of(&found, &rows);
    Some(Difference {
        in_words: found
            .iter()
            .take(MOST_TOLD)
            .map(words)
            .chain(more)
            .collect::<Vec<_>>()
            .join("\n"),
        tiles: rows.iter().map(tile).collect(),
        figure: figure(base, &rows, &left_out),
    })
}

/// A row a case, the worst on top, with a line where nothing has changed; none without any.
fn figure(base: &str, rows: &[Row], left_out: &LeftOut) -> Option<Figure> {
    let cases = each_once(rows.iter().map(|row| row.case.clone()));
    let runs = each_once(rows.iter().map(|row| (row.run, row.name)));
    let place = |row: &Row| cases.iter().position(|case| *case == row.case).unwrap_or_default();
    let point = |row: &Row| {
        let [y, low, high] = row.ratio;
        Point::with_ends(place(row) as f64, y, [low, high])
    };
    let of_run = |(run, name): &(usize, &str)| {
        let own = rows.iter().filter(|row| row.run == *run).map(point).collect();
        Series::new(format!("{name} / {base}"), *run, Role::Measured, own)
    };
    // Within the rows of the first and the last case.
    let same = [-0.4, cases.len() as f64 - 0.6].map(|x| Point::bare(x, 1.0)).to_vec();
    let same = Series { name: "no change".into(), run: None, role: Role::Law, points: same };
    let series: Vec<Series> = runs.iter().map(of_run).chain([same]).collect();
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
    let axes = (Axis::with_names("case", cases), Axis::new(&label, Unit::Ratio, Scale::Linear));
    let figure = Figure::new(DIFFERENCE, "Difference of the costs", axes.0, axes.1);
    Figure { in_words, ..figure }.with_series(series).filter(|_| !rows.is_empty())
}
