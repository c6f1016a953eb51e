//! The report of `switchcost cost`: the answer, tables, a heat map, regions.

use analysis::cost::{CostCurve, CostFindings, CostSweep};
use analysis::marked::MarkedText;
use analysis::published::li2007;
use analysis::record::RingRecord;
use analysis::regions::{CurveAnswer, NearestLevel, SizeAxis};
use analysis::summary::CaseSummary;
use rundata::ring::{RingCase, Walk};
use rundata::words;

use super::answer::headline;
use super::figures::map;
use super::tables::{self, title};
use crate::experiments::events;
use crate::report::printout::{Printout, printout};
use crate::report::terminal::{self, CLOCK_LEGEND, Text, View, cpu_list, estimate_words, figure};

const LEGEND: &str = "direct cost (c1), total cost (c2): ns of a switch without and with a working set: (hop \
     of the ring - mean of its members' solos on the same memory) / counted switches\n\
     at the CPU's full speed; 95 % interval with the scatter between launches\n\
     indirect = c2 - c1: what the working set adds\n";

pub(crate) fn text(record: &RingRecord, cost: &CostFindings, view: View) -> Text {
    let mut details = Printout::default();
    for direct in &cost.direct {
        if direct.cost_ns.is_some_and(|cost| cost.answer_cost().is_ok()) {
            let (members, c1) = (direct.members, estimate_words(direct.cost_ns));
            let what = format!("direct cost (c1) with {members} members: ");
            details.push(printout![what, c1, " ns a switch\n"]);
        }
    }
    details.push("\n");
    details.push(LEGEND);
    details.push(view.wide.then_some(CLOCK_LEGEND));
    for line in beside(cost) {
        details.push(line + "\n");
    }
    let ring = |of: &CaseSummary| {
        of.case.work.map_or("no work".to_string(), |work| words::bytes(work.bytes))
    };
    details.push(events::counted(&record.cases, ring).map(|table| printout!["\n", table, "\n"]));
    details.push(terminal::drawn(map(cost)));
    Text {
        headline: headline(record, cost),
        heading: heading(record),
        table: tables::all(record, cost, view),
        details,
        findings: findings(cost, view).into_iter().map(MarkedText::from).collect(),
    }
}

fn heading(record: &RingRecord) -> String {
    let Some(case) = record.header.plan.ring(0) else { return String::new() };
    let priority = case.priority.map_or(String::new(), |p| format!(" at priority {p}"));
    let mut works = record.header.plan.rings().filter_map(|(_, case)| case.work);
    let huge_pages = if works.any(|work| work.huge_pages) { "on" } else { "off" };
    let shares = record.cases.iter().filter_map(|case| case.huge_page_share);
    let lacking = shares.reduce(f64::min).filter(|share| *share < 1.0);
    let lacking = lacking.map_or(String::new(), |share| {
        format!(" (not always given: in {:.0} % of the samples)", share * 100.0)
    });
    let RingCase { kind, link, policy, placement, .. } = case;
    let cpus = cpu_list(&placement.cpus());
    format!(
        "\n{kind} members by {link}, policy {policy}{priority}, placement {placement} (CPU \
         {cpus}), huge pages {huge_pages}{lacking}"
    )
}

/// What is read from the curves, one of lines at random first: there nothing is fetched ahead. Of a
/// single size there is no course.
fn findings(cost: &CostFindings, view: View) -> Vec<String> {
    let mut lines: Vec<String> = published(cost).filter(|_| view.history).into_iter().collect();
    let mut curves: Vec<&CostCurve> = cost.curves.iter().filter(|of| of.points.len() > 1).collect();
    curves.sort_by_key(|curve| curve.work.walk != Walk::Chase);
    let worked = |of: &&CostSweep| of.work.is_some();
    let mut by_members: Vec<&CostSweep> = cost.by_members.iter().filter(worked).collect();
    by_members.extend(cost.by_members.iter().filter(|of| !worked(of)));
    let by_members = by_members.into_iter().flat_map(|sweep| along("members", sweep));
    let by_stride = cost.by_stride.iter().flat_map(|sweep| along("stride", sweep));
    let by_array = curves.into_iter().map(|curve| {
        let what = if curve.outcome.regions().is_some() { "regions" } else { "course" };
        format!("{what}, {}: {}", title(curve), curve.in_words)
    });
    lines.extend(by_array.chain(by_members).chain(by_stride));
    lines
}

/// The course of the cost along members or strides, and of what the working set adds.
fn along<'a>(axis: &'a str, sweep: &'a CostSweep) -> impl Iterator<Item = String> + 'a {
    let work = sweep.work.map_or("no work".to_string(), |work| work.in_words());
    let total = format!("by {axis}, {work}: {}", sweep.in_words);
    let added = sweep.indirect_breaks.iter().filter(|of| of.finding == CurveAnswer::Found);
    let added = added.map(|breaks| format!("added by the working set: {}", breaks.in_words()));
    std::iter::once(total).chain(added)
}

/// What of the machine lies where the courses break.
fn beside(cost: &CostFindings) -> Vec<String> {
    let arrays = cost.curves.iter().filter_map(|curve| {
        let levels = levels(&curve.outcome.breaks().axis, &curve.beside)?;
        Some(format!("levels of the machine there, {}: {levels}", title(curve)))
    });
    let members = cost.by_members.iter().filter_map(|curve| {
        let levels = levels(&SizeAxis::MEMBERS, &curve.beside)?;
        Some(format!("levels of the machine there, by members: {levels}"))
    });
    arrays.chain(members).collect()
}

fn levels(axis: &SizeAxis, beside: &[Option<NearestLevel>]) -> Option<String> {
    let levels: Vec<String> = beside.iter().flatten().map(|level| level.in_words(axis)).collect();
    (!levels.is_empty()).then(|| levels.join("; "))
}

/// Our second region over our first, beside the paper's.
fn published(cost: &CostFindings) -> Option<String> {
    let theirs = li2007::LiFigures::published().ok()?;
    cost.curves.iter().find(|curve| curve.outcome.regions().is_some())?;
    let range = |(low, high): (f64, f64)| format!("{} to {}", figure(low), figure(high));
    let of = |curve: &CostCurve| {
        Some(format!("{} ({})", range(curve.outcome.regions()?.second_over_first()?), title(curve)))
    };
    let ours: Vec<String> = cost.curves.iter().filter_map(of).collect();
    let here = if ours.is_empty() { "not both seen here".to_string() } else { ours.join("; ") };
    let (paper, c1) = (range(theirs.second_over_first()), figure(li2007::DIRECT_US));
    Some(format!(
        "total cost (c2) where combined working sets exceed the cache / where all fit: {here}; \
            {paper} in Li, Ding and Shen 2007 (in sequence, direct cost {c1} us)"
    ))
}
