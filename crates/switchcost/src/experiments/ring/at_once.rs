//! What a run of several rings at the same time says: how many switches all of them make, from how
//! many rings on they are held back, and which rings are.

use analysis::jump::CostJump;
use analysis::marked;
use analysis::marked::MarkedText;
use analysis::measures::{ColumnVisibility, MEASURES, MeasureValue, NS_PER_SWITCH, RingMeasure};
use analysis::quote::{BestEstimate, NotQuotable};
use analysis::record::RingRecord;
use analysis::regions::SizeAxis;
use analysis::rings_at_once::{RingCountSeries, RingFigures, SimultaneousRings};
use analysis::summary::CaseSummary;
use charts::{Axis, Figure, Point, Role, Scale, Series, Unit};
use rundata::ring::RingCase;
use rundata::words;

use super::settings::RingSettings;
use super::table::{measure_cells, measure_heads, order_of_leaving, texts};
use crate::report::figures::{cost_points, count_points, lines, nanoseconds};
use crate::report::table::Table;
use crate::report::terminal::{counted, estimate_words};
use crate::report::tiles::Tile;

const LEGEND: &str = "switches/s: of all rings; efficiency: that over rings x the single ring's, in the same rounds\n\
     fastest, slowest: ns/hop of these rings; ns/hop: mean over the hops of all";

const FLIGHT_LEGEND: &str =
    "hops/s: items of all rings; with several under way the efficiency is of these";

/// What is counted of several rings, and compared with the single ring.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CountedThing {
    Switches,
    /// Items, of rings that have several of them under way.
    Items,
    /// Switches of some rings and items of others.
    Both,
}

impl CountedThing {
    /// Returns what is counted in all of these rings.
    fn from_cases<'a>(cases: impl IntoIterator<Item = &'a RingCase>) -> Self {
        let (mut has_switches, mut has_items) = (false, false);
        for case in cases {
            has_items |= case.flight.is_some();
            has_switches |= case.flight.is_none();
        }
        match (has_switches, has_items) {
            (true, true) => Self::Both,
            (false, true) => Self::Items,
            (_, false) => Self::Switches,
        }
    }

    fn from_case(case: &RingCase) -> Self {
        Self::from_cases([case])
    }

    /// Returns its name within a sentence.
    fn in_words(self) -> &'static str {
        match self {
            Self::Switches => "switches",
            Self::Items => "items",
            Self::Both => "switches or items",
        }
    }

    /// Returns its name at the start of a sentence.
    fn at_start(self) -> &'static str {
        match self {
            Self::Switches => "Switches",
            Self::Items => "Items",
            Self::Both => "Switches or items",
        }
    }
}

/// Returns what the columns of several rings mean.
pub(super) fn legend(record: &RingRecord) -> Vec<&'static str> {
    if counted_thing(record) == CountedThing::Switches {
        vec![LEGEND]
    } else {
        vec![LEGEND, FLIGHT_LEGEND]
    }
}

/// Returns what is counted in the rings of a run.
fn counted_thing(record: &RingRecord) -> CountedThing {
    let mut several: Vec<&RingCase> = record.cases.iter().map(|summary| &summary.case).collect();
    several.retain(|case| case.has_several_rings());
    CountedThing::from_cases(several)
}

/// Most rings that a sentence names.
const MAX_NAMED_RINGS: usize = 8;

/// Returns whether several rings ran at the same time in some case.
pub(super) fn has_several_rings(record: &RingRecord) -> bool {
    record.cases.iter().any(|summary| summary.case.has_several_rings())
}

/// Returns the first line: what the most rings make of the switches of one, and from how many on
/// they are held back. Rings that differ in more have a part each.
pub(super) fn headline(record: &RingRecord) -> MarkedText {
    let most = cases_with_most_rings(record);
    match &most[..] {
        [] => "Nothing was measured.".into(),
        [only] => {
            let series = series_of(record, only);
            let mut words = speedup_in_words(only);
            if let Some(series) = series {
                words.push(held_back_in_words(series, only));
            }
            words.push(".");
            if let Some(RingCountSeries { jump: Some(jump), .. }) = series {
                words.push(format!(" A hop {}.", jump.in_words(&SizeAxis::RINGS)));
            }
            if let Some(rings) = slow_rings(only) {
                words.push(format!(" {rings}."));
            }
            words
        }
        several => {
            let settings = RingSettings::from_record(record);
            let mut parts = Vec::new();
            for summary in several {
                let name = name_of_rings(&settings, &summary.case);
                parts.push(marked![format!("{name}: "), times_in_words(summary)]);
            }
            let sum =
                format!("{} of all rings over those of one: ", counted_thing(record).at_start());
            marked![sum, MarkedText::join(parts, "; "), "."]
        }
    }
}

/// Returns `4 rings of 2 by futex`.
fn name_of_rings(settings: &RingSettings, case: &RingCase) -> String {
    format!("{} rings of {}", case.rings(), settings.ring(&case.single_ring()))
}

/// Returns the case with the most rings of each series.
fn cases_with_most_rings(record: &RingRecord) -> Vec<&CaseSummary> {
    let mut most: Vec<&CaseSummary> = Vec::new();
    for summary in &record.cases {
        if !summary.case.has_several_rings() {
            continue;
        }
        let single = summary.case.single_ring();
        match most.iter_mut().find(|known| known.case.single_ring() == single) {
            Some(known) if known.case.rings() < summary.case.rings() => *known = summary,
            Some(_) => {}
            None => most.push(summary),
        }
    }
    most
}

/// Returns the findings on the series that ends with a case.
fn series_of<'a>(record: &'a RingRecord, last: &CaseSummary) -> Option<&'a RingCountSeries> {
    let mut series = record.found.rings_at_once.iter();
    series.find(|series| last_case(record, series).is_some_and(|case| case.case == last.case))
}

/// Returns the case of a series that has the most rings.
fn last_case<'a>(record: &'a RingRecord, series: &RingCountSeries) -> Option<&'a CaseSummary> {
    record.cases.get(*series.cases.last()?)
}

/// Returns the switches or items of all rings over those of one, or why that may not be told; `None`
/// where it is not known.
fn speedup_of(summary: &CaseSummary) -> Option<Result<BestEstimate, NotQuotable>> {
    Some(rings_of(summary)?.speedup()?.answer_cost())
}

/// Returns `8 rings on 8 CPUs make 3.12 times (2.98 to 3.25) the switches of one`.
fn speedup_in_words(summary: &CaseSummary) -> MarkedText {
    let things = CountedThing::from_case(&summary.case).in_words();
    let cpus = counted(summary.case.cpus().len(), "CPU");
    let rings = format!("{} rings on {cpus}", summary.case.rings());
    match speedup_of(summary) {
        Some(Ok(speedup)) => {
            marked![
                format!("{rings} make "),
                speedup.marked_with_unit("times"),
                format!(" the {things} of one")
            ]
        }
        Some(Err(why)) => {
            format!("What {rings} make of the {things} of one: {}", why.with_unit("times")).into()
        }
        None if summary.samples == 0 => {
            let why = summary.failure.as_deref().unwrap_or("no sample was taken");
            format!("{rings} were not measured: {why}").into()
        }
        None if summary.does_not_switch => match summary.ns_per_hop.map(|hop| hop.answer_cost()) {
            Some(Ok(time)) => marked![format!("A hop of {rings} takes "), time.marked_time()],
            _ => format!("{rings} hardly switch").into(),
        },
        None => format!("{rings} were not measured beside a single ring").into(),
    }
}

/// Returns the switches or items of all rings over those of one, or why that is not known.
fn times_in_words(summary: &CaseSummary) -> MarkedText {
    match speedup_of(summary) {
        Some(Ok(speedup)) => speedup.marked_with_unit("times"),
        Some(Err(why)) => why.with_unit("times").into(),
        None => "not measured".into(),
    }
}

/// Returns from how many rings on they are held back, as the end of a sentence. Of rings on one CPU
/// that goes without saying.
fn held_back_in_words(series: &RingCountSeries, last: &CaseSummary) -> String {
    if last.case.is_one_cpu() {
        return String::new();
    }
    if let Some(mut from) = series.held_back_from {
        if let Some(CostJump { to, .. }) = series.jump {
            from = from.max(u32::try_from(to).unwrap_or(from));
        }
        return format!(": from {from} on they are held back");
    }
    match rings_of(last) {
        Some(SimultaneousRings { efficiency: Some(known), .. }) if known.quote_cost().is_ok() => {
            ": they hardly hold each other back".to_string()
        }
        _ => String::new(),
    }
}

/// Returns which rings of a case are slower than the fastest, and by how much the slowest is;
/// `None` where none is resolved, or all but the fastest are.
fn slow_rings(summary: &CaseSummary) -> Option<String> {
    let rings = rings_of(summary)?;
    let held_back = rings.held_back();
    let over = rings.slowest_ring()?.over_fastest?.quote_cost().ok()?;
    if held_back.is_empty() {
        return None;
    }
    let names = match held_back.len() {
        1 => format!("Ring {}", held_back[0]),
        count if count > MAX_NAMED_RINGS => format!("{count} rings"),
        _ => format!("Rings {}", words::list(&held_back)),
    };
    let verb = if held_back.len() == 1 { "is" } else { "are" };
    let (value, low, high) = (over.value(), over.low(), over.high());
    let [value, low, high] = [value, low, high].map(words::times);
    Some(format!("{names} {verb} slower than the fastest: up to {value} ({low} to {high})"))
}

fn rings_of(summary: &CaseSummary) -> Option<&SimultaneousRings> {
    summary.rings_at_once.as_deref()
}

/// Returns a sentence on each case whose rings are not alike.
pub(super) fn findings(record: &RingRecord, settings: &RingSettings) -> Vec<String> {
    let mut sentences = Vec::new();
    for summary in &record.cases {
        if let Some(slow) = slow_rings(summary) {
            sentences.push(format!("{}: {slow}", name_of_rings(settings, &summary.case)));
        }
    }
    sentences
}

/// Returns a line on the law of each series, and one on its fastest and slowest ring.
pub(super) fn laws(record: &RingRecord, settings: &RingSettings) -> Vec<String> {
    let mut lines = Vec::new();
    for series in &record.found.rings_at_once {
        let Some(last) = last_case(record, series) else { continue };
        let growth = match series.law.growth_in_words() {
            Some(growth) => growth,
            None => "no law of the number of rings is known".to_string(),
        };
        let name = settings.ring(&last.case.single_ring());
        lines.push(format!("hop by the number of rings of {name}: {growth}"));
        let Some(rings) = rings_of(last) else { continue };
        for (what, ring) in [("fastest", rings.fastest_ring()), ("slowest", rings.slowest_ring())] {
            if let Some(ring) = ring {
                lines.push(ring_in_words(what, rings, ring));
            }
        }
    }
    lines
}

/// Returns `slowest of 8: ring 3 on CPU 2, 4.1 (4.0 to 4.2) ns/hop, 1.000 switches/hop`.
fn ring_in_words(what: &str, rings: &SimultaneousRings, ring: &RingFigures) -> String {
    let hop = String::from(estimate_words(ring.ns_per_hop));
    let cpus = words::list(&ring.cpus);
    let mut text =
        format!("{what} of {}: ring {} on CPU {cpus}, {hop} ns/hop", rings.rings, ring.ring);
    if let Some(per_hop) = ring.switches_per_hop {
        text += &format!(", {per_hop:.3} switches/hop");
    }
    text
}

/// Builds the table: a row for each number of rings.
pub(super) fn table(record: &RingRecord, settings: &RingSettings) -> Table {
    let mut cases = settings.in_order(record);
    cases.retain(|summary| summary.rings_at_once.is_some());
    let has_sizes = cases.iter().any(|case| case.case.members != cases[0].case.members);
    let columns = columns(&cases);
    let (rings, figures) = columns.split_at(1);
    let mut heads = settings.header();
    for measure in rings {
        heads.push(measure.title.to_string());
    }
    if has_sizes {
        heads.push("members".to_string());
    }
    for measure in figures {
        for head in measure_heads(measure) {
            heads.push(head.to_string());
        }
    }
    let mut rows = Vec::new();
    for case in cases {
        let mut cells = texts(settings.cells(&case.case));
        for measure in rings {
            cells.extend(measure_cells(measure, case));
        }
        if has_sizes {
            cells.push(case.case.members.to_string().into());
        }
        for measure in figures {
            cells.extend(measure_cells(measure, case));
        }
        rows.push(cells);
    }
    Table::new(heads, rows).first_to_go(&order_of_leaving(figures))
}

/// Returns the measures that have columns: those of several rings first. Beside their efficiency no
/// other has its interval.
fn columns(cases: &[&CaseSummary]) -> Vec<&'static RingMeasure> {
    let has_several_items = cases.iter().any(|case| case.case.flight.is_some());
    let mut columns: Vec<&RingMeasure> = MEASURES.iter().collect();
    columns.retain(|measure| match measure.shown {
        ColumnVisibility::Always => measure.id != NS_PER_SWITCH.id,
        ColumnVisibility::SeveralRings => true,
        ColumnVisibility::RingsInFlight => has_several_items,
        ColumnVisibility::WhereKnown => {
            cases.iter().any(|case| (measure.read)(case) != MeasureValue::Unknown)
        }
        ColumnVisibility::Wide | ColumnVisibility::WhereSet => false,
    });
    columns.sort_by_key(|measure| !measure.shown.is_of_several_rings());
    columns
}

/// Draws the switches or items of all rings over those of one, and the time of a hop, by the number of rings.
pub(super) fn figures(record: &RingRecord, index: usize) -> Vec<Figure> {
    let (mut rates, mut hops) = (Vec::new(), Vec::new());
    let settings = RingSettings::from_record(record);
    let most = cases_with_most_rings(record);
    for last in &most {
        let mut cases: Vec<&CaseSummary> = record.cases.iter().collect();
        cases.retain(|summary| summary.case.single_ring() == last.case.single_ring());
        cases.sort_by_key(|summary| summary.case.rings());
        let name = settings.ring(&last.case.single_ring());
        rates.push(rate_line(&name, index, &cases));
        for (kind, read) in HOP_LINES {
            let mut by_rings = Vec::new();
            for summary in &cases {
                by_rings.push((f64::from(summary.case.rings()), read(summary)));
            }
            let points = cost_points(by_rings);
            hops.push(Series::new(format!("{name}, {kind}"), index, Role::Measured, points));
        }
    }
    let mut rings = 1;
    for summary in &most {
        rings = rings.max(summary.case.rings());
    }
    let ideal = vec![Point::bare(1.0, 1.0), Point::bare(rings.into(), rings.into())];
    rates.push(Series::new("as many times", index, Role::Projected, ideal));
    let axis = || Axis::new("rings at the same time", Unit::Count, Scale::Linear);
    let things = counted_thing(record);
    let axis_title = format!("{} of all over those of one", things.in_words());
    let y = Axis::new(&axis_title, Unit::Ratio, Scale::Linear);
    let about = String::from(headline(record));
    let title = format!("{} of all rings by their number", things.at_start());
    let mut figures = Vec::new();
    figures.extend(lines("rings-rate", &title, about, (axis(), y), rates));
    let about =
        "Time of a hop: the mean over all rings, the fastest ring, the slowest.".to_string();
    let axes = (axis(), nanoseconds("time of a hop"));
    figures.extend(lines("rings-hop", "Time of a hop by the number of rings", about, axes, hops));
    figures
}

/// Reads the time of a hop of a case for a line.
type HopReader = fn(&CaseSummary) -> Option<analysis::estimate::Estimate>;

/// The lines of the time of a hop.
const HOP_LINES: [(&str, HopReader); 3] = [
    ("mean", |summary| summary.ns_per_hop),
    ("fastest ring", |summary| rings_of(summary)?.fastest_ring()?.ns_per_hop),
    ("slowest ring", |summary| rings_of(summary)?.slowest_ring()?.ns_per_hop),
];

/// Draws the switches or items of all rings over those of one; the single ring is 1.
fn rate_line(name: &str, index: usize, cases: &[&CaseSummary]) -> Series {
    let mut points = vec![Point::bare(1.0, 1.0)];
    let mut by_rings = Vec::new();
    for summary in cases {
        let Some(rings) = rings_of(summary) else { continue };
        by_rings.push((f64::from(summary.case.rings()), rings.speedup()));
    }
    points.extend(count_points(by_rings));
    Series::new(name, index, Role::Measured, points)
}

/// Returns tiles of a hop in the single ring and in the most rings.
pub(super) fn tiles(record: &RingRecord) -> Vec<Tile> {
    let mut tiles = Vec::new();
    for last in cases_with_most_rings(record) {
        let single = last.case.single_ring();
        let single = record.cases.iter().find(|summary| summary.case == single);
        for summary in [single, Some(last)] {
            let Some(summary) = summary else { continue };
            let name = format!("hop, {}", counted(summary.case.rings() as usize, "ring"));
            tiles.extend(Tile::cost(name, summary.ns_per_hop));
        }
    }
    Tile::each_once(tiles)
}
