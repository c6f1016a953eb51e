//! What trials say by their declared measures, whichever they are: an experiment that finds nothing
//! else out needs no more.

use analysis::estimate::Estimate;
use analysis::findings::TrialSummary;
use analysis::marked;
use analysis::marked::MarkedText;
use analysis::quote::{QuotedFigure, cost};
use analysis::record::TrialRecord;
use charts::Figure;
use rundata::run::unfinished;
use rundata::trial::MeasureUnit;
use rundata::words;

use crate::base::values::each_once;
use crate::report::figures::bars;
use crate::report::printout::printout;
use crate::report::table::Table;
use crate::report::terminal::{CLOCK_LEGEND, GHZ, Text, View, at_clock, interval, value};
use crate::report::tiles::Tile;

/// What it is about: of one case in words, `call`, and the identifier and title of its chart.
pub(super) struct About {
    pub(super) noun: &'static str,
    pub(super) chart: (&'static str, &'static str),
}

/// Of an experiment that has nothing of its own.
const ANY: About = About { noun: "trial", chart: ("measures", "What it costs") };

pub(crate) fn text(record: &TrialRecord, view: View) -> Text {
    Text {
        headline: answer(record, ANY.noun),
        table: printout![measures(record, ANY.noun, view), "\n"],
        details: view.wide.then_some(CLOCK_LEGEND).into(),
        ..Text::default()
    }
}

pub(crate) fn figure(record: &TrialRecord, index: usize) -> Option<Figure> {
    chart(record, &ANY, "", index)
}

/// The measure that stands for each case, by the case in words; of those that are times.
pub(crate) fn costs(record: &TrialRecord) -> Vec<(String, Estimate)> {
    let is_time = |of: &&TrialSummary| of.case.trial.headline().unit != MeasureUnit::Share;
    let of = record.cases.iter().filter(is_time);
    let cost = of.map(|of| (&of.case.trial, of.measures.get(of.case.trial.headline().name)));
    cost.filter_map(|(trial, of)| Some((trial.to_string(), *of?))).collect()
}

/// What stands for the run: the readings of these clocks, then all else.
pub(crate) fn tiles(record: &TrialRecord, clocks: &[&str]) -> Vec<Tile> {
    let all = costs(record);
    let tile = |(name, of): &(String, Estimate)| Tile::cost(&**name, Some(*of));
    let read = |name: &&str| {
        let (_, of) = all.iter().find(|(known, _)| known == name)?;
        Tile::cost(format!("reading {name}"), Some(*of))
    };
    let others = all.iter().filter(|(name, _)| !clocks.contains(&&**name));
    clocks.iter().filter_map(read).chain(others.filter_map(tile)).collect()
}

/// What the cheapest case costs, and the slowest, as far as they are resolved from the others.
pub(super) fn answer(record: &TrialRecord, noun: &str) -> MarkedText {
    let all = costs(record);
    let quoted = |(name, ns): &(String, Estimate)| Some((name.clone(), ns.quote_cost().ok()?));
    let mut known: Vec<(String, QuotedFigure)> = all.iter().filter_map(quoted).collect();
    if unfinished(record.end.as_ref()).is_some() {
        known.truncate(1);
    }
    known.sort_by(|(_, one), (_, other)| one.value().total_cmp(&other.value()));
    match (&known[..], all.first()) {
        ([], None) => format!("No {noun} was measured.").into(),
        ([], Some((name, ns))) => match ns.answer_cost() {
            Ok(answer) => {
                marked![format!("A {noun} of {name} takes "), answer.marked_time(), "."]
            }
            Err(_) => format!("What a {noun} of {name} takes: {}.", cost(ns)).into(),
        },
        ([(name, ns)], _) => marked![format!("A {noun} of {name} takes "), ns.marked_time(), "."],
        ([(name, ns), rest @ ..], _) if rest.iter().all(|(_, of)| !of.differs_from(ns)) => {
            let name = format!("No {noun} is shown to take longer than {name}, which takes ");
            marked![name, ns.marked_time(), "."]
        }
        ([(name, ns), .., (slowest, most)], _) => marked![
            format!("The fastest {noun} is {name} with "),
            ns.marked_time(),
            alike(&known, name, ns),
            format!(", the slowest {slowest} with {}", words::time(most.value())),
            alike(&known, slowest, most),
            "."
        ],
    }
}

/// The other cases that this one is not resolved from, behind a comma.
fn alike(known: &[(String, QuotedFigure)], name: &str, ns: &QuotedFigure) -> String {
    let others = known.iter().filter(|(other, of)| other != name && !of.differs_from(ns));
    let names: Vec<&str> = others.map(|(other, _)| &**other).collect();
    if names.is_empty() {
        String::new()
    } else {
        format!(", not resolved from {}", names.join(" or "))
    }
}

/// A row a case, with what each of its measures says; the first of all has its interval, and its
/// cycles where they are asked for.
pub(super) fn measures(record: &TrialRecord, noun: &str, view: View) -> Table {
    let measured = || record.cases.iter().filter(|of| !of.measures.is_empty());
    let all = each_once(measured().flat_map(|of| of.case.trial.measures()).map(|of| of.header));
    let mut columns = vec![noun];
    for (at, header) in all.iter().enumerate() {
        columns.push(header);
        if at == 0 {
            columns.push("interval");
            columns.extend(view.wide.then_some(["cycles", GHZ]).into_iter().flatten());
        }
    }
    let row = |of: &TrialSummary| {
        let own = of.case.trial.measures();
        let mut cells = vec![MarkedText::from(of.case.trial.to_string())];
        for (at, header) in all.iter().enumerate() {
            let measure = own.iter().find(|measure| measure.header == *header);
            let estimate = measure.and_then(|measure| of.measures.get(measure.name).copied());
            cells.push(value(estimate));
            if at == 0 {
                cells.push(interval(estimate).into());
                let clock = view.wide.then(|| at_clock(of.cycles, of.clock_ghz));
                cells.extend(clock.into_iter().flatten());
            }
        }
        cells
    };
    Table::new(columns, measured().map(row))
}

/// What stands for each case, as bars.
pub(super) fn chart(
    record: &TrialRecord,
    about: &About,
    words: &str,
    index: usize,
) -> Option<Figure> {
    let label = format!("time of a {}", about.noun);
    bars((about.chart.0, about.chart.1, &label), words, costs(record), index)
}
