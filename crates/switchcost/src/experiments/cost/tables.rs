//! Tables of costs: one for each question. The rows are what was swept: arrays, members, or, where
//! neither was, kinds of access. Where both arrays and members were, arrays are rows and members
//! columns.

use analysis::cost::{CostCurve, CostFindings, CostPoint};
use analysis::estimate::{Estimate, Speed};
use analysis::marked::MarkedText;
use analysis::quote::{BestEstimate, NotQuotable};
use analysis::record::RingRecord;
use analysis::summary::{COUNT_TOLERANCE, CaseSummary};
use rundata::ring::Work;
use rundata::words;

use crate::base::values::each_once;
use crate::report::printout::{Printout, printout};
use crate::report::table::{Table, cells};
use crate::report::terminal::{self, GHZ, View, at_clock};

/// Rings beside each other in 80 columns.
const MAX_RING_COLUMNS: usize = 7;

/// Columns beside the costs: cycles in a wide table, counts in a verbose one.
#[derive(Clone, Copy)]
struct ExtraColumns<'a> {
    /// Summaries by the number of the case.
    cases: &'a [CaseSummary],
    view: View,
}

impl ExtraColumns<'_> {
    /// Returns the cost in cycles, and the clock.
    fn clock_cells(self, point: &CostPoint) -> [MarkedText; 2] {
        let summary = &self.cases[point.case];
        let clock_ghz = summary.cycles_per_switch.and(summary.clock_ghz);
        at_clock(summary.cycles_per_switch, clock_ghz)
    }

    /// Returns whether a table without a row for each cost is followed by tables that have one.
    fn are_asked_for(self) -> bool {
        self.view.wide || self.view.verbose
    }
}

/// Returns all tables, ending with a newline.
pub(super) fn all(record: &RingRecord, cost: &CostFindings, view: View) -> Printout {
    let extra = ExtraColumns { cases: &record.cases, view };
    let is_single = cost.curves.iter().all(|curve| curve.points.len() == 1);
    if is_single && cost.curves.len() > 1 && have_one_size(&cost.curves) {
        return by_access(cost, extra);
    }
    let mut tables = Printout::default();
    for (number, work) in each_once(cost.curves.iter().map(access)).iter().enumerate() {
        if number > 0 {
            tables.push("\n");
        }
        let mut rings: Vec<&CostCurve> = cost.curves.iter().collect();
        rings.retain(|curve| access(curve) == *work);
        tables.push(match &rings[..] {
            [curve] => by_array(curve, extra),
            rings if have_one_array(rings) => by_members(rings, extra),
            rings => by_both(rings, extra),
        });
    }
    tables
}

/// Returns whether all curves are of one ring size and begin with one array.
fn have_one_size(curves: &[CostCurve]) -> bool {
    let Some((first, others)) = curves.split_first() else { return true };
    others.iter().all(|curve| {
        curve.members == first.members && curve.points[0].array_bytes == first.points[0].array_bytes
    })
}

/// Returns how memory is walked, whatever the size of it.
fn access(curve: &CostCurve) -> Work {
    Work { bytes: 0, ..curve.work }
}

/// Returns whether all rings were measured with one array, the same for all.
fn have_one_array(rings: &[&CostCurve]) -> bool {
    rings.iter().all(|ring| {
        ring.points.len() == 1 && ring.points[0].array_bytes == rings[0].points[0].array_bytes
    })
}

/// Returns `rmw by 128 B, 2 members`.
pub(super) fn title(curve: &CostCurve) -> String {
    format!("{}, {} members", curve.work.walk_in_words(), curve.members)
}

fn by_array(curve: &CostCurve, extra: ExtraColumns) -> Printout {
    let rows = curve.points.iter().map(|point| (size(curve, point.array_bytes), point));
    printout![title(curve), "\n", cost_table("array", rows, extra), "\n"]
}

fn by_members(rings: &[&CostCurve], extra: ExtraColumns) -> Printout {
    let first = rings[0];
    let size = size(first, first.points[0].array_bytes);
    let rows = rings.iter().map(|curve| (curve.members.to_string(), &curve.points[0]));
    let title = format!("{}, {size}\n", first.work.walk_in_words());
    printout![title, cost_table("members", rows, extra), "\n"]
}

fn by_access(cost: &CostFindings, extra: ExtraColumns) -> Printout {
    let first = &cost.curves[0];
    let size = words::bytes(first.points[0].array_bytes);
    let rows = cost.curves.iter().map(|curve| (curve.work.walk_in_words(), &curve.points[0]));
    let title = format!("{size}, {} members\n", first.members);
    printout![title, cost_table("access", rows, extra), "\n"]
}

fn size(curve: &CostCurve, array_bytes: u64) -> String {
    curve.axis().size(curve.size(array_bytes))
}

/// Builds a table with a row for each named point; `first` heads the column of names.
fn cost_table<'a>(
    first: &'static str,
    points: impl Iterator<Item = (String, &'a CostPoint)>,
    extra: ExtraColumns,
) -> Table {
    let mut columns = vec![first, "ns/switch"];
    if extra.view.wide {
        columns.extend(["cycles/switch", GHZ]);
    }
    columns.push("indirect ns");
    if extra.view.verbose {
        columns.extend(["switches/hop", "", "rounds"]);
    }
    let mut rows = Vec::new();
    for (name, point) in points {
        let mut cells = cells![name, total_cell(point.total_ns)].to_vec();
        if extra.view.wide {
            cells.extend(extra.clock_cells(point));
        }
        cells.push(indirect_cell(point));
        if extra.view.verbose {
            cells.extend(counted(point));
        }
        rows.push(cells);
    }
    Table::new(columns, rows)
}

/// Returns a cost with its interval, or why there is none.
fn total_cell(cost: Option<Estimate>) -> MarkedText {
    match cost {
        Some(cost) => told_cell(cost.answer_cost()),
        None => "-".into(),
    }
}

/// Returns the indirect cost of a point, which is signed, with its interval, or why there is none.
/// If the total has no answer, its part has none.
fn indirect_cell(point: &CostPoint) -> MarkedText {
    let (Some(total), Some(indirect)) = (point.total_ns, point.indirect_ns) else {
        return "-".into();
    };
    // Below zero it is shown only where full speed was seen in many rounds: a shared core may have
    // changed between the two, and what one round says of a difference is little.
    let told = match indirect.quote() {
        Ok(_) if indirect.speed == Speed::Full => indirect.answer(),
        _ => indirect.answer_cost(),
    };
    told_cell(total.answer_cost().and(told))
}

/// Returns a figure with its interval, marked where no comparison uses it, or why there is none.
fn told_cell(told: Result<BestEstimate, NotQuotable>) -> MarkedText {
    match told {
        Ok(_) => terminal::answer_words(Some(told)),
        Err(why) => why.with_time_unit().into(),
    }
}

/// Returns the counted switches per hop, with a mark where they are not one, and the rounds.
fn counted(point: &CostPoint) -> [MarkedText; 3] {
    let Some(switches) = point.switches_per_hop else { return cells!["-", "", "-"] };
    let is_unlike_one = (switches.value - 1.0).abs() > COUNT_TOLERANCE;
    let mark = if is_unlike_one { "!" } else { "" };
    cells![format!("{:.3}", switches.value), mark, switches.rounds.to_string()]
}

/// Returns costs by array and members, without intervals: where more is asked for, a table of each
/// ring follows that has them.
fn by_both(rings: &[&CostCurve], extra: ExtraColumns) -> Printout {
    let (mut arrays, mut marks) = (Vec::new(), Vec::new());
    for ring in rings {
        for point in &ring.points {
            arrays.push(point.array_bytes);
            let Some(cost) = point.total_ns else { continue };
            if let Err(why) = cost.answer_cost() {
                marks.push(mark(why));
            }
        }
    }
    let mut arrays = each_once(arrays);
    arrays.sort_unstable();
    let title = format!("{}: a switch by array and members", rings[0].work.walk_in_words());
    let mut tables = printout![title, "\n"];
    for (number, columns) in rings.chunks(MAX_RING_COLUMNS).enumerate() {
        if number > 0 {
            tables.push("\n\n");
        }
        tables.push(array_by_members(rings[0], columns, &arrays));
    }
    let mut legend = String::new();
    for (mark, why) in each_once(marks) {
        legend += &format!("{mark}: {why}\n");
    }
    tables.push(printout!["\n", legend]);
    if extra.are_asked_for() {
        for ring in rings {
            tables.push(printout!["\n", by_array(ring, extra)]);
        }
    }
    tables
}

/// Builds a table with a row an array and a column a ring; `first` names the arrays.
fn array_by_members(first: &CostCurve, rings: &[&CostCurve], arrays: &[u64]) -> Table {
    let mut columns = vec!["array".to_string()];
    columns.extend(rings.iter().map(|ring| ring.members.to_string()));
    let mut rows = Vec::new();
    for bytes in arrays {
        let mut cells = vec![MarkedText::from(size(first, *bytes))];
        for ring in rings {
            let point = ring.points.iter().find(|point| point.array_bytes == *bytes);
            cells.push(brief_cell(point.and_then(|point| point.total_ns)));
        }
        rows.push(cells);
    }
    Table::new(columns, rows)
}

/// Returns a cost for a narrow cell, or a mark that stands for why there is none.
fn brief_cell(cost: Option<Estimate>) -> MarkedText {
    let Some(cost) = cost else { return "-".into() };
    match cost.answer_cost() {
        Ok(best) => terminal::with_mark(&best, &words::time(best.value())),
        Err(why) => mark(why).0.into(),
    }
}

/// Returns a short mark for why a cost is not told, and its meaning.
fn mark(why: NotQuotable) -> (&'static str, &'static str) {
    match why {
        NotQuotable::NotAlone => ("shared", "other tasks ran on its CPU"),
        NotQuotable::NotAtFullSpeed => ("slow", "full speed not seen"),
        NotQuotable::TooFewRounds(_) => ("few", "too few rounds"),
        NotQuotable::NotResolved { .. } => ("open", "not resolved"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_below_zero_is_shown_of_many_rounds_at_full_speed_alone() {
        let total_ns = Estimate::at_full_speed(910.0, 20.0, 20, 0.0, 0.95);
        let below_zero = Estimate::at_full_speed(-142.0, 30.0, 20, 0.0, 0.95).expect("finite");
        let point = |speed: Speed| CostPoint {
            case: 0,
            array_bytes: 1 << 18,
            total_ns,
            indirect_ns: Some(Estimate { speed, ..below_zero }),
            switches_per_hop: None,
        };
        assert!(indirect_cell(&point(Speed::Full)).starts_with("-142 ("));
        for speed in [Speed::FewRounds, Speed::Contended] {
            assert!(indirect_cell(&point(speed)).starts_with("not resolved: -2"), "{speed:?}");
        }
    }
}
