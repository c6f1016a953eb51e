//! Tables of costs: one for each question. Arrays are rows where arrays were swept, members where
//! these were, kinds of access where nothing else was; of arrays and members together arrays are
//! rows and members columns.

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
const MOST_COLUMNS: usize = 7;

/// What rows have beside costs: with `wide` cycles, with `verbose` what was counted.
#[derive(Clone, Copy)]
struct More<'a> {
    /// By their number.
    cases: &'a [CaseSummary],
    view: View,
}

impl More<'_> {
    fn clock_of(self, point: &CostPoint) -> Option<[MarkedText; 2]> {
        let of = &self.cases[point.case];
        let clock_ghz = of.cycles_per_switch.and(of.clock_ghz);
        self.view.wide.then(|| at_clock(of.cycles_per_switch, clock_ghz))
    }

    fn counts_of(self, point: &CostPoint) -> Option<[MarkedText; 3]> {
        self.view.verbose.then(|| counted(point))
    }

    /// Whether what has no row for each cost is followed by tables that have.
    fn is_asked_for(self) -> bool {
        self.view.wide || self.view.verbose
    }
}

/// All of them, ending with a newline.
pub(super) fn all(record: &RingRecord, cost: &CostFindings, view: View) -> Printout {
    let more = More { cases: &record.cases, view };
    let single = cost.curves.iter().all(|curve| curve.points.len() == 1);
    let same = |of: &&CostCurve| (of.members, of.points[0].array_bytes);
    if single
        && cost.curves.len() > 1
        && each_once(cost.curves.iter().map(|of| same(&of))).len() == 1
    {
        return by_access(cost, more);
    }
    let works = each_once(cost.curves.iter().map(access));
    let mut tables = Printout::default();
    for (number, work) in works.iter().enumerate() {
        if number > 0 {
            tables.push("\n");
        }
        let rings: Vec<&CostCurve> = cost.curves.iter().filter(|of| access(of) == *work).collect();
        tables.push(match &rings[..] {
            [curve] => by_array(curve, more),
            rings if rings.iter().all(|of| of.points.len() == 1) && is_one_array(rings) => {
                by_members(rings, more)
            }
            rings => by_both(rings, more),
        });
    }
    tables
}

/// How memory is walked, whatever the size of it.
fn access(curve: &CostCurve) -> Work {
    Work { bytes: 0, ..curve.work }
}

fn is_one_array(rings: &[&CostCurve]) -> bool {
    each_once(rings.iter().map(|of| of.points[0].array_bytes)).len() == 1
}

/// `rmw by 128 B, 2 members`.
pub(super) fn title(curve: &CostCurve) -> String {
    format!("{}, {} members", curve.work.walk_in_words(), curve.members)
}

fn by_array(curve: &CostCurve, more: More) -> Printout {
    let rows = curve.points.iter().map(|point| (size(curve, point.array_bytes), point));
    printout![title(curve), "\n", rows_of("array", rows, more), "\n"]
}

fn by_members(rings: &[&CostCurve], more: More) -> Printout {
    let first = rings[0];
    let size = size(first, first.points[0].array_bytes);
    let rows = rings.iter().map(|curve| (curve.members.to_string(), &curve.points[0]));
    let title = format!("{}, {size}\n", first.work.walk_in_words());
    printout![title, rows_of("members", rows, more), "\n"]
}

fn by_access(cost: &CostFindings, more: More) -> Printout {
    let first = &cost.curves[0];
    let size = words::bytes(first.points[0].array_bytes);
    let rows = cost.curves.iter().map(|curve| (curve.work.walk_in_words(), &curve.points[0]));
    let title = format!("{size}, {} members\n", first.members);
    printout![title, rows_of("access", rows, more), "\n"]
}

fn size(curve: &CostCurve, array_bytes: u64) -> String {
    curve.axis().size(curve.size(array_bytes))
}

/// A row for each point.
fn rows_of<'a>(
    what: &'static str,
    rows: impl Iterator<Item = (String, &'a CostPoint)>,
    more: More,
) -> Table {
    let mut columns = vec![what, "ns/switch"];
    columns.extend(more.view.wide.then_some(["cycles/switch", GHZ]).into_iter().flatten());
    columns.push("indirect ns");
    let counts = ["switches/hop", "", "rounds"];
    columns.extend(more.view.verbose.then_some(counts).into_iter().flatten());
    Table::new(
        columns,
        rows.map(|(name, point)| {
            let mut cells = cells![name, whole(point.total_ns)].to_vec();
            cells.extend(more.clock_of(point).into_iter().flatten());
            cells.push(part(point));
            cells.extend(more.counts_of(point).into_iter().flatten());
            cells
        }),
    )
}

/// A cost with its interval, or why it may not be told.
fn whole(cost: Option<Estimate>) -> MarkedText {
    let Some(cost) = cost else { return "-".into() };
    told_cell(cost.answer_cost())
}

/// The same of a part of a cost, which is signed; of a whole that may not be told there is none.
fn part(of: &CostPoint) -> MarkedText {
    let Some((whole, part)) = of.total_ns.zip(of.indirect_ns) else { return "-".into() };
    // Below zero it is shown only where full speed was seen in many rounds: a shared core may have
    // changed between the two, and what one round says of a difference is little.
    let told = match part.quote() {
        Ok(_) if part.speed == Speed::Full => part.answer(),
        _ => part.answer_cost(),
    };
    told_cell(whole.answer_cost().and(told))
}

/// A figure with its interval, marked where no comparison uses it, or why there is none.
fn told_cell(told: Result<BestEstimate, NotQuotable>) -> MarkedText {
    told.map_or_else(|why| why.with_time_unit().into(), |_| terminal::told_words(Some(told)))
}

/// Switches as they were counted, with a mark where they are not one a hop, and the rounds.
fn counted(point: &CostPoint) -> [MarkedText; 3] {
    let switches = point.switches_per_hop;
    let is_unlike_one = switches.is_some_and(|e| (e.value - 1.0).abs() > COUNT_TOLERANCE);
    cells![
        switches.map_or("-".to_string(), |e| format!("{:.3}", e.value)),
        if is_unlike_one { "!" } else { "" },
        switches.map_or("-".to_string(), |e| e.rounds.to_string()),
    ]
}

/// Costs by array and members, without intervals: where more is asked for a table of each ring
/// follows that has them.
fn by_both(rings: &[&CostCurve], more: More) -> Printout {
    let points = || rings.iter().flat_map(|of| &of.points);
    let mut arrays = each_once(points().map(|point| point.array_bytes));
    arrays.sort_unstable();
    let title = format!("{}: a switch by array and members", rings[0].work.walk_in_words());
    let mut all = printout![title, "\n"];
    for (number, some) in rings.chunks(MOST_COLUMNS).enumerate() {
        if number > 0 {
            all.push("\n\n");
        }
        let columns = std::iter::once("array".to_string())
            .chain(some.iter().map(|of| of.members.to_string()));
        let row = |bytes: &u64| {
            let cells = some.iter().map(|of| {
                let point = of.points.iter().find(|point| point.array_bytes == *bytes);
                brief(point.and_then(|point| point.total_ns))
            });
            let size = MarkedText::from(size(rings[0], *bytes));
            std::iter::once(size).chain(cells).collect::<Vec<MarkedText>>()
        };
        all.push(Table::new(columns.collect::<Vec<String>>(), arrays.iter().map(row)));
    }
    let marks =
        each_once(points().filter_map(|point| Some(mark(point.total_ns?.answer_cost().err()?))));
    let marks: String = marks.iter().map(|(mark, why)| format!("{mark}: {why}\n")).collect();
    all.push(printout!["\n", marks]);
    if more.is_asked_for() {
        for ring in rings {
            all.push(printout!["\n", by_array(ring, more)]);
        }
    }
    all
}

/// A cost in a narrow cell, or a mark that stands for why there is none.
fn brief(cost: Option<Estimate>) -> MarkedText {
    let Some(cost) = cost else { return "-".into() };
    let told = |cost: BestEstimate| terminal::marked(&cost, &words::time(cost.value()));
    cost.answer_cost().map_or_else(|why| mark(why).0.into(), told)
}

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
        assert!(part(&point(Speed::Full)).starts_with("-142 ("));
        for speed in [Speed::FewRounds, Speed::Contended] {
            assert!(part(&point(speed)).starts_with("not resolved: -2"), "{speed:?}");
        }
    }
}
