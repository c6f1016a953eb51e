//! A trace as a page of charts.

use analysis::program::Range;
use charts::Figure;
use rundata::reading::Reading;

use super::figures::QUESTIONS;
use super::report::TraceReport;
use super::table;
use crate::base::lines::Layout;
use crate::report::page::{self, FindingsDetails, FindingsPage};
use crate::report::terminal::figure;
use crate::report::tiles::Tile;

/// The page of a trace with these charts.
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

/// Figures that stand for it, the first ones what the answer names.
fn tiles(trace: &TraceReport) -> Vec<Tile> {
    let total = &trace.total;
    let per_s = total.switches_per_s();
    let share = |name: &str, of: &Reading<Range>| {
        let of = of.known().filter(|of| !of.is_wide())?;
        Some(Tile::at_most(name, [100.0 * of.low, 100.0 * of.high], "%"))
    };
    let wait = |name: &str, of: Option<crate::observe::live::rows::QuantileBucket>| {
        let of = of.filter(|of| of.high_ns != u64::MAX)?;
        Some(Tile::time_at_most(name, [of.low_ns as f64, of.high_ns as f64]))
    };
    let voluntary = (per_s > 0.0).then(|| 100.0 * total.voluntary_per_s / per_s);
    let all = [
        Some(Tile::counted("switches", per_s, "/s")),
        share("cost of the switches, at most", &trace.share),
        share("without refilling caches, at most", &trace.direct_share),
        voluntary.map(|share| Tile::counted("because it slept", share, "%")),
        Some(Tile::counted("preemptions", total.preempted_per_s, "/s")),
        wait("half of the waits, at most", total.wait_median),
        wait("99 % of the waits, at most", total.wait_99),
        Some(Tile::counted("CPU time", 100.0 * total.cpu_share, "% of a CPU")),
    ];
    all.into_iter().flatten().collect()
}

fn facts(trace: &TraceReport) -> Vec<(&'static str, String)> {
    let target = &trace.target;
    let pids = target.pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let children = target.children;
    let known = [
        ("what", Some(target.name.clone())),
        ("process", (!pids.is_empty()).then_some(pids)),
        ("children", (children > 0).then(|| children.to_string())),
        ("command", target.command.as_ref().map(|words| words.join(" "))),
        ("costs by", trace.profile.known().cloned()),
        ("costs", trace.profile.why().map(|why| format!("unknown: {why}"))),
        ("by", Some(page::GENERATOR.to_string())),
    ];
    known.into_iter().filter_map(|(what, is)| Some((what, is?))).collect()
}
