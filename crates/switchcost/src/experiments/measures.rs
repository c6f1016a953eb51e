//! What trials say by their declared measures, whichever they are: an experiment that finds nothing
//! else out needs no more.

use charts::Figure;
use model::estimate::Estimate;
use model::quote::{Quoted, cost};
use model::record::Trials;
use model::run::unfinished;
use model::words;

use crate::present::figures::bars;
use crate::present::terminal::{CLOCK_LEGEND, GHZ, Text, View, at_clock, interval, table, value};

/// What it is about: of one case in words, `call`, and the identifier and title of its chart.
pub(super) struct About {
    pub(super) noun: &'static str,
    pub(super) chart: (&'static str, &'static str),
}

/// Of an experiment that has nothing of its own.
const ANY: About = About { noun: "case", chart: ("measures", "What it costs") };

pub(super) fn text(record: &Trials, view: View) -> Text {
    Text {
        headline: answer(record, ANY.noun),
        table: format!("{}\n", measures(record, ANY.noun, view)),
        details: if view.wide { CLOCK_LEGEND.to_string() } else { String::new() },
        ..Text::default()
    }
}

pub(super) fn figure(record: &Trials, index: usize) -> Option<Figure> {
    chart(record, &ANY, "", index)
}

/// The measure that stands for each case, by the case in words.
pub(super) fn costs(record: &Trials) -> Vec<(String, Estimate)> {
    let of = record.cases.iter();
    let cost = of.map(|of| (&of.case.trial, of.measures.get(of.case.trial.headline().name)));
    cost.filter_map(|(trial, of)| Some((trial.to_string(), *of?))).collect()
}

/// What the cheapest case costs, and the dearest.
pub(super) fn answer(record: &Trials, noun: &str) -> String {
    let all = costs(record);
    let quoted = |(name, ns): &(String, Estimate)| Some((name.clone(), ns.quote_cost().ok()?));
    let mut known: Vec<(String, Quoted)> = all.iter().filter_map(quoted).collect();
    if unfinished(record.end.as_ref()).is_some() {
        known.truncate(1);
    }
    known.sort_by(|(_, one), (_, other)| one.value().total_cmp(&other.value()));
    match (&known[..], all.first()) {
        ([], None) => format!("No {noun} was measured."),
        ([], Some((name, ns))) => format!("What a {noun} of {name} takes: {}.", cost(ns)),
        ([(name, ns)], _) => format!("A {noun} of {name} takes {}.", ns.time()),
        ([(name, ns), .., (dearest, most)], _) if most.low() <= ns.high() => {
            let (least, most) = (ns.time(), most.time());
            format!(
                "No {noun} is told to be dearer than another: {name} takes {least}, {dearest} {most}."
            )
        }
        ([(name, ns), .., (dearest, most)], _) => {
            let (least, most) = (ns.time(), words::time(most.value()));
            format!(
                "The cheapest {noun} is {name} with {least}, the dearest {dearest} with {most}."
            )
        }
    }
}

/// A row a case, with what each of its measures says; the first has its interval, and its cycles
/// where they are asked for.
pub(super) fn measures(record: &Trials, noun: &str, view: View) -> comfy_table::Table {
    let measures = record.cases.first().map_or(&[][..], |of| of.case.trial.measures());
    let mut columns = vec![noun];
    for (at, of) in measures.iter().enumerate() {
        columns.push(of.header);
        if at == 0 {
            columns.push("interval");
            columns.extend(view.wide.then_some(["cycles", GHZ]).into_iter().flatten());
        }
    }
    let measured = record.cases.iter().filter(|of| !of.measures.is_empty());
    let rows = measured.map(|of| {
        let mut cells = vec![of.case.trial.to_string()];
        for (at, measure) in measures.iter().enumerate() {
            let estimate = of.measures.get(measure.name).copied();
            cells.push(value(estimate));
            if at == 0 {
                cells.push(interval(estimate));
                let clock = view.wide.then(|| at_clock(of.cycles, of.clock_ghz));
                cells.extend(clock.into_iter().flatten());
            }
        }
        cells
    });
    table(columns, rows)
}

/// What stands for each case, as bars.
pub(super) fn chart(record: &Trials, about: &About, words: &str, index: usize) -> Option<Figure> {
    let label = format!("time of a {}", about.noun);
    bars((about.chart.0, about.chart.1, &label), words, costs(record), index)
}
