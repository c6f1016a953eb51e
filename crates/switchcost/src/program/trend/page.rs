//! A trend as a page of charts.

use analysis::trend::{CaseTrend, CostChange, PointGrouping};
use charts::Figure;

use super::figures::{CLOCK_CHART, COST_CHART, figures};
use super::{day, table};
use crate::report::page::{FindingsDetails, FindingsPage, GENERATOR};
use crate::report::terminal::counted;
use crate::report::tiles::Tile;

/// Charts by id, each with its question.
const QUESTIONS: [(&str, &str); 2] =
    [(COST_CHART, "Did the cost change?"), (CLOCK_CHART, "Did the clock change?")];

/// Builds the page of a trend.
pub(crate) fn page(trend: &CaseTrend) -> FindingsPage {
    let title = &trend.case.title;
    let mut answer = trend.in_words.clone();
    if let Some(gate) = &trend.gate {
        answer = answer + &format!("\n{}", gate.in_words);
    }
    FindingsPage {
        title: format!("trend of {title}"),
        heading: "What a switch costs over time",
        answer: answer.into(),
        setting: setting(trend),
        tiles: tiles(trend),
        figures: explained(figures(trend), trend.terms.by),
        questions: &QUESTIONS,
        details: FindingsDetails {
            title: "Which runs count",
            subject: format!("{title}, {}", counted(trend.runs, "run")),
            facts_title: "Case and clock",
            facts: facts(trend),
            text_title: "All that the trend says",
            text: table::whole_text(trend),
            unlisted: "Single runs are not listed: switchcost trend --verbose",
        },
        footer: "All figures are at one clock of the core, so that a faster clock is no change of \
                 cost. A level is a stretch without a change; its interval holds with 95 % \
                 confidence.",
    }
}

/// Replaces the answer below the chart of the cost, which stands above the charts here, by what is
/// drawn.
fn explained(mut figures: Vec<Figure>, by: PointGrouping) -> Vec<Figure> {
    for figure in figures.iter_mut().filter(|figure| figure.id == COST_CHART) {
        figure.in_words = match by {
            PointGrouping::Run => {
                "A point is a run with its interval, a thick line a level without a change."
            }
            PointGrouping::Kernel => {
                "A bar is the mean of all runs on a kernel, with its interval."
            }
            PointGrouping::Scheduler => {
                "A bar is the mean of all runs under a scheduler, with its interval."
            }
            PointGrouping::Build => "A bar is the mean of all runs of a build, with its interval.",
        }
        .to_string();
    }
    figures
}

/// Returns the runs, their days and their clock in a sentence.
fn setting(trend: &CaseTrend) -> String {
    let days = match (trend.points.first(), &trend.until) {
        (Some(first), Some(until)) => format!(", {} to {}", day(&first.started), day(until)),
        _ => String::new(),
    };
    let clock =
        trend.clock_ghz.map_or(String::new(), |ghz| format!(", all figures at {ghz:.2} GHz"));
    let runs = counted(trend.runs, "run");
    format!("{runs} of {} ({}){days}{clock}.", trend.case.experiment, trend.case.title)
}

/// Most kernels or builds that have a tile: there is room for changes beside them.
const MAX_GROUP_TILES: usize = 4;

/// Returns tiles of the cost now, or of the newest kernels or builds; of each change, the newest
/// first; and of how small a change would show.
fn tiles(trend: &CaseTrend) -> Vec<Tile> {
    let mut tiles = Vec::new();
    match trend.terms.by {
        PointGrouping::Run => {
            if let Some(level) = trend.levels.last() {
                tiles.push(Tile::time("cost now", [level.ns, level.low, level.high]));
            }
        }
        PointGrouping::Kernel | PointGrouping::Scheduler | PointGrouping::Build => {
            for point in trend.points.iter().rev().take(MAX_GROUP_TILES) {
                tiles.push(Tile::time(point.name.clone(), [point.ns, point.low, point.high]));
            }
        }
    }
    for change in trend.changes.iter().rev() {
        tiles.extend(change_tile(change));
    }
    if let Some(share) = trend.detectable {
        tiles.push(Tile {
            without_interval: Some("three runs would show it"),
            ..Tile::counted("smallest change that shows", 100.0 * share, "%")
        });
    }
    tiles
}

/// Returns the ratio of a change; `None` without an interval.
fn change_tile(change: &CostChange) -> Option<Tile> {
    let (low, high) = change.ratio.interval()?;
    let name = format!("cost since {}, over that before", day(&change.since));
    Some(Tile::ratio(name, [change.ratio.value?, low, high]))
}

fn facts(trend: &CaseTrend) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("case", trend.case.title.clone()),
        ("experiment", trend.case.experiment.to_string()),
        ("runs", trend.runs.to_string()),
        ("a point is", format!("a {}", trend.terms.by)),
        ("scatter", format!("{:.1} % between neighbours", 100.0 * trend.scatter)),
    ];
    facts.extend(trend.clock_ghz.map(|ghz| ("clock", format!("{ghz:.2} GHz"))));
    facts.extend(table::left_out(trend).map(|words| ("not used", words)));
    facts.push(("by", GENERATOR.to_string()));
    facts
}
