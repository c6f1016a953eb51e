//! A trace as a page of charts.

use analysis::program::Range;
use charts::Figure;
use rundata::reading::Reading;

use super::figures::QUESTIONS;
use super::report::TraceReport;
use super::table;
use crate::base::lines::Layout;
use crate::observe::live::rows::QuantileBucket;
use crate::report::page::{self, FindingsDetails, FindingsPage};
use crate::report::terminal::figure;
use crate::report::tiles::Tile;

/// Returns the page of a trace with these charts.
pub(super) fn page(trace: &TraceReport, figures: Vec<Figure>) -> FindingsPage {
    let name = &trace.target.name;
    FindingsPage {
        title: format!("trace of {name}"),
        heading: "Who is switched, and what it costs",
        answer: trace.in_words.to_string(),
        setting: format!("Traced for {} s; {}.", figure(trace.seconds), trace.own.in_words()),
        tiles: tiles(trace),
        figures,
        questions: &QUESTIONS,
        details: FindingsDetails {
            title: "What was traced",
            subject: format!("{name}, {} s", figure(trace.seconds)),
            facts_title: "Program and costs",
            facts: facts(trace),
            text_title: "All that the trace says",
            text: table::text(trace, true, Layout::PAGE).text(Layout::PAGE).into(),
            unlisted: "No percentile is known",
        },
        footer: "Every switch is counted in the kernel, none is sampled. Times are counted by \
                 powers of two, so that a percentile is known to lie between two of them. What a \
                 switch costs is looked up in a stored run of switchcost cost.",
    }
}

/// Returns the tiles of the page: what the answer names comes first.
fn tiles(trace: &TraceReport) -> Vec<Tile> {
    let total = &trace.total;
    let per_s = total.switches_per_s();
    let mut tiles = vec![Tile::counted("switches", per_s, "/s")];
    tiles.extend(share_tile("cost of the switches, at most", &trace.share));
    tiles.extend(share_tile("without refilling caches, at most", &trace.direct_share));
    if per_s > 0.0 {
        let voluntary = 100.0 * total.voluntary_per_s / per_s;
        tiles.push(Tile::counted("because it slept", voluntary, "%"));
    }
    tiles.push(Tile::counted("preemptions", total.preempted_per_s, "/s"));
    tiles.extend(wait_tile("half of the waits, at most", total.wait_median));
    tiles.extend(wait_tile("99 % of the waits, at most", total.wait_99));
    tiles.push(Tile::counted("CPU time", 100.0 * total.cpu_share, "% of a CPU"));
    tiles
}

/// Returns the tile of a share; nothing where it is not known, or its range is too wide.
fn share_tile(title: &str, share: &Reading<Range>) -> Option<Tile> {
    let share = share.known().filter(|share| !share.is_wide())?;
    Some(Tile::at_most(title, [100.0 * share.low, 100.0 * share.high], "%"))
}

/// Returns the tile of a wait; nothing for the last bucket, which has no end.
fn wait_tile(title: &str, wait: Option<QuantileBucket>) -> Option<Tile> {
    let QuantileBucket { low_ns, high_ns } = wait?;
    if high_ns == u64::MAX {
        return None;
    }
    Some(Tile::time_at_most(title, [low_ns as f64, high_ns as f64]))
}

/// Returns what was traced and by which costs, as a list of titles and words.
fn facts(trace: &TraceReport) -> Vec<(&'static str, String)> {
    let target = &trace.target;
    let mut facts = vec![("what", target.name.clone())];
    let pids: Vec<String> = target.pids.iter().map(u32::to_string).collect();
    if !pids.is_empty() {
        facts.push(("process", pids.join(", ")));
    }
    if target.children > 0 {
        facts.push(("children", target.children.to_string()));
    }
    if let Some(words) = &target.command {
        facts.push(("command", words.join(" ")));
    }
    match (trace.profile.known(), trace.profile.why()) {
        (Some(run), _) => facts.push(("costs by", run.clone())),
        (None, Some(why)) => facts.push(("costs", format!("unknown: {why}"))),
        (None, None) => {}
    }
    facts.push(("by", page::GENERATOR.to_string()));
    facts
}
