//! The report of `switchcost cost`: the answer, tables, a heat map, regions.

use analysis::cost::{CostCurve, CostFindings, CostSweep};
use analysis::marked::MarkedText;
use analysis::published::li2007;
use analysis::record::RingRecord;
use analysis::regions::{CurveAnswer, NearestLevel, SizeAxis};
use rundata::ring::{RingCase, Walk};

use super::answer::headline;
use super::figures::{array_or_none, map, work_name};
use super::tables::{self, title};
use crate::experiments::events;
use crate::report::printout::{Printout, printout};
use crate::report::terminal::{
    self, CLOCK_LEGEND, ReportText, View, cpu_list, estimate_words, figure,
};

const LEGEND: &str = "direct cost (c1), total cost (c2): ns of a switch without and with a working set: (hop \
     of the ring - mean of its members' solos on the same memory) / counted switches\n\
     at the CPU's full speed; 95 % interval with the scatter between launches\n\
     indirect = c2 - c1: what the working set adds\n";

pub(crate) fn text(record: &RingRecord, cost: &CostFindings, view: View) -> ReportText {
    let mut details = Printout::default();
    for direct in &cost.direct {
        let Some(cost) = direct.cost_ns else { continue };
        if cost.answer_cost().is_ok() {
            let (members, c1) = (direct.members, estimate_words(direct.cost_ns));
            let what = format!("direct cost (c1) with {members} members: ");
            details.push(printout![what, c1, " ns a switch\n"]);
        }
    }
    details.push("\n");
    details.push(LEGEND);
    if view.wide {
        details.push(CLOCK_LEGEND);
    }
    for line in nearby_levels(cost) {
        details.push(line + "\n");
    }
    let counted = events::counted(&record.cases, |summary| array_or_none(summary.case.work));
    if let Some(table) = counted {
        details.push(printout!["\n", table, "\n"]);
    }
    details.push(terminal::chart_printout(map(cost)));
    ReportText {
        headline: headline(record, cost),
        heading: heading(record),
        table: tables::all(record, cost, view),
        details,
        findings: findings(cost, view).into_iter().map(MarkedText::from).collect(),
    }
}

fn heading(record: &RingRecord) -> String {
    let Some(case) = record.header.plan.ring(0) else { return String::new() };
    let priority = match case.priority {
        Some(priority) => format!(" at priority {priority}"),
        None => String::new(),
    };
    let mut works = record.header.plan.rings().filter_map(|(_, case)| case.work);
    let huge_pages = if works.any(|work| work.huge_pages) { "on" } else { "off" };
    let mut least_share = 1.0_f64;
    for summary in &record.cases {
        least_share = least_share.min(summary.huge_page_share.unwrap_or(1.0));
    }
    let lacking = if least_share < 1.0 {
        format!(" (not always given: in {:.0} % of the samples)", least_share * 100.0)
    } else {
        String::new()
    };
    let RingCase { kind, link, policy, placement, .. } = case;
    let cpus = cpu_list(&placement.cpus());
    format!(
        "\n{kind} members by {link}, policy {policy}{priority}, placement {placement} (CPU \
         {cpus}), huge pages {huge_pages}{lacking}"
    )
}

/// Returns what is read from the curves, those of lines at random first: there nothing is fetched
/// ahead. A single size has no course.
fn findings(cost: &CostFindings, view: View) -> Vec<String> {
    let mut lines = Vec::new();
    if view.history {
        lines.extend(published(cost));
    }
    let mut curves: Vec<&CostCurve> = cost.curves.iter().collect();
    curves.retain(|curve| curve.points.len() > 1);
    curves.sort_by_key(|curve| curve.work.walk != Walk::Chase);
    for curve in curves {
        let what = if curve.outcome.regions().is_some() { "regions" } else { "course" };
        lines.push(format!("{what}, {}: {}", title(curve), curve.in_words));
    }
    let mut by_members: Vec<&CostSweep> = cost.by_members.iter().collect();
    by_members.sort_by_key(|sweep| sweep.work.is_none());
    for sweep in by_members {
        lines.extend(course("members", sweep));
    }
    for sweep in &cost.by_stride {
        lines.extend(course("stride", sweep));
    }
    lines
}

/// Returns the course of the cost along members or strides, and of what the working set adds.
fn course(axis: &str, sweep: &CostSweep) -> Vec<String> {
    let work = work_name(sweep.work);
    let mut lines = vec![format!("by {axis}, {work}: {}", sweep.in_words)];
    if let Some(breaks) = &sweep.indirect_breaks {
        if breaks.finding == CurveAnswer::Found {
            lines.push(format!("added by the working set: {}", breaks.in_words()));
        }
    }
    lines
}

/// Returns the caches and TLBs of the machine near which the courses break.
fn nearby_levels(cost: &CostFindings) -> Vec<String> {
    let mut lines = Vec::new();
    for curve in &cost.curves {
        if let Some(levels) = levels_in_words(&curve.outcome.breaks().axis, &curve.beside) {
            lines.push(format!("levels of the machine there, {}: {levels}", title(curve)));
        }
    }
    for sweep in &cost.by_members {
        if let Some(levels) = levels_in_words(&SizeAxis::MEMBERS, &sweep.beside) {
            lines.push(format!("levels of the machine there, by members: {levels}"));
        }
    }
    lines
}

fn levels_in_words(axis: &SizeAxis, nearest: &[Option<NearestLevel>]) -> Option<String> {
    let levels: Vec<String> = nearest.iter().flatten().map(|level| level.in_words(axis)).collect();
    (!levels.is_empty()).then(|| levels.join("; "))
}

/// Returns the ratio of our second region to our first, beside the paper's; `None` where no curve
/// has regions.
fn published(cost: &CostFindings) -> Option<String> {
    let theirs = li2007::LiFigures::published().ok()?;
    let range = |(low, high): (f64, f64)| format!("{} to {}", figure(low), figure(high));
    let (mut has_regions, mut ours) = (false, Vec::new());
    for curve in &cost.curves {
        let Some(regions) = curve.outcome.regions() else { continue };
        has_regions = true;
        let ratio = regions.second_over_first();
        ours.extend(ratio.map(|ratio| format!("{} ({})", range(ratio), title(curve))));
    }
    if !has_regions {
        return None;
    }
    let here = if ours.is_empty() { "not both seen here".to_string() } else { ours.join("; ") };
    let (paper, c1) = (range(theirs.second_over_first()), figure(li2007::DIRECT_US));
    Some(format!(
        "total cost (c2) where combined working sets exceed the cache / where all fit: {here}; \
            {paper} in Li, Ding and Shen 2007 (in sequence, direct cost {c1} us)"
    ))
}
