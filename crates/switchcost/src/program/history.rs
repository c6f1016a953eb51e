//! `switchcost runs list --history`: figures that were published from 1984 to 2007, and figures of
//! machines of today.

use std::process::ExitCode;

use analysis::results::{
    PUBLISHED_PREFIX, PublishedCase, PublishedMachine, Quantity, published_machines,
};
use anyhow::{Context, Result};
use charts::render_svg;
use clap::Args;
use rundata::ring::Policy;
use rundata::words;

use crate::base::failure::usage;
use crate::base::values::Destination;
use crate::report::figures::published::by_year;
use crate::report::output::columns::Columns;
use crate::report::output::{TableOptions, print_fitted, write_json, write_output};
use crate::report::printout::{Printout, printout};

/// Text below the picture.
const CAPTION: &str = "As each was published; machines of today as measured by switchcost.";

#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// Machine to show with all its figures: its name, or the start of one that no other shares
    pub(crate) machine: Option<String>,

    /// Write as JSON (docs/record-format.md) to a file, or - for standard output
    #[arg(long, value_name = "FILE|-")]
    pub(crate) json: Option<Destination>,

    /// Draw what a switch costs by year as an SVG file, its text as outlines; - for standard output
    #[arg(long, value_name = "FILE|-", conflicts_with_all = ["machine", "json"])]
    pub(crate) svg: Option<Destination>,

    #[command(flatten)]
    pub(crate) tables: TableOptions,
}

pub(crate) fn run(args: &HistoryArgs) -> Result<ExitCode> {
    let text = match &args.machine {
        None => {
            let machines = published_machines().context("the published figures")?;
            write_json(&machines, args.json.as_ref())?;
            if let Some(to) = &args.svg {
                write_output(render_svg(&by_year(&machines), &[], CAPTION).as_bytes(), to)?;
            }
            list(&machines)
        }
        Some(name) => {
            let machine = find_published(name)?;
            write_json(&machine, args.json.as_ref())?;
            describe(&machine)
        }
    };
    if ![&args.json, &args.svg].contains(&&Some(Destination::Stdout)) {
        print_fitted(text, args.tables.layout()).context("cannot print the figures")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Finds the published machine of that name, or the only one whose name begins with it.
pub(crate) fn find_published(wanted: &str) -> Result<PublishedMachine> {
    let wanted = wanted.to_lowercase();
    let mut machines = published_machines().context("the published figures")?;
    let known = names(&machines);
    if let Some(index) = machines.iter().position(|machine| machine.name == wanted) {
        return Ok(machines.swap_remove(index));
    }
    machines.retain(|machine| !wanted.is_empty() && machine.name.starts_with(&wanted));
    let found = names(&machines);
    match (machines.pop(), machines.is_empty()) {
        (Some(machine), true) => Ok(machine),
        (Some(_), false) => {
            Err(usage(format!("{PUBLISHED_PREFIX}{wanted}: the start of several names: {found}")))
        }
        (None, _) => Err(usage(format!(
            "{PUBLISHED_PREFIX}{wanted}: no such machine (accepted: {known}; see `switchcost runs list --history`)"
        ))),
    }
}

fn names(machines: &[PublishedMachine]) -> String {
    let names: Vec<&str> = machines.iter().map(|machine| &*machine.name).collect();
    names.join(", ")
}

/// Lists all machines, a line each.
fn list(machines: &[PublishedMachine]) -> Printout {
    let columns = Columns::new()
        .left("name", |machine: &&PublishedMachine| machine.name.clone())
        .left("year", |machine| machine.year)
        .left("machine", |machine| machine.machine.clone())
        .left("system", |machine| machine.system.clone())
        .left("cases", |machine| machine.cases.len())
        .left("cost", |machine| costs(machine));
    let table = columns.table(machines).first_to_go(&["cases", "system"]);
    printout![table, "\n\ncompare one with a run: switchcost compare history:sun-4/280 last\n"]
}

/// Returns the cost of the machine's first ring of two, or of its first case if it has none.
pub(crate) fn costs(machine: &PublishedMachine) -> String {
    let pair =
        machine.cases.iter().find(|case| case.ring.as_ref().is_some_and(|ring| ring.members == 2));
    let Some(case) = pair.or(machine.cases.first()) else { return String::new() };
    match case.figures.first_key_value() {
        Some((quantity, ns)) => {
            format!("{} a {} ({})", words::time(*ns), quantity.in_words(), case.title)
        }
        None => String::new(),
    }
}

/// A published figure of a case.
struct PublishedFigure<'a> {
    case: &'a PublishedCase,
    quantity: Quantity,
    ns: f64,
}

impl PublishedFigure<'_> {
    /// Returns the interval in the unit in which the figure is told.
    fn interval(&self) -> Option<String> {
        let (low, high) = *self.case.intervals.get(&self.quantity)?;
        let (scale, _) = words::time_unit(self.ns);
        let [low, high] = [low, high].map(|ns| words::three_digits(ns / scale));
        Some(format!("{low} to {high}"))
    }
}

/// Describes one machine with all its figures.
fn describe(machine: &PublishedMachine) -> Printout {
    let PublishedMachine { machine: name, system, year, source, .. } = machine;
    let mut figures = Vec::new();
    for case in &machine.cases {
        for (quantity, ns) in &case.figures {
            figures.push(PublishedFigure { case, quantity: *quantity, ns: *ns });
        }
    }
    let mut columns = Columns::<PublishedFigure>::new()
        .right("case", |figure| title(figure.case))
        .right("cost of", |figure| figure.quantity.in_words())
        .right("ns", |figure| {
            let decimals = if figure.ns < 100.0 { 1 } else { 0 };
            format!("{:.decimals$}", figure.ns)
        })
        .right("", |figure| words::time(figure.ns));
    if machine.cases.iter().any(|case| !case.intervals.is_empty()) {
        columns = columns.or_dash("interval", |figure| figure.interval());
    }
    let table = columns.table(figures).first_to_go(&["ns"]);
    let heading = format!("{name}, {system} ({year})\n{source}\n\n");
    let mut text = printout![heading, table, "\n\n"];
    for range in &machine.ranges {
        let ns = if range.low_ns == range.high_ns {
            words::time(range.low_ns)
        } else {
            format!("{} to {}", words::time(range.low_ns), words::time(range.high_ns))
        };
        text.push(format!("not of one case, so not compared: {}: {ns}\n", range.subject));
    }
    for note in &machine.notes {
        text.push(format!("note: {note}\n"));
    }
    text
}

/// Returns the title of a case with its policy, which may differ here; a ring of two is not said, as
/// nearly all are.
fn title(case: &PublishedCase) -> String {
    let Some(ring) = &case.ring else { return case.title.clone() };
    let title = match ring.work {
        Some(work) if ring.members == 2 => {
            format!("{} each, {}", words::bytes(work.bytes), work.walk_in_words())
        }
        _ => case.title.clone(),
    };
    match ring.policy {
        Policy::Other => title,
        policy => format!("{title}, {policy}"),
    }
}
