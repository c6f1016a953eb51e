//! `switchcost runs list --history`: figures that were published from 1984 to 2007, and of machines of today.

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

/// What stands below the picture.
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
            let all = published_machines().context("the published figures")?;
            write_json(&all, args.json.as_ref())?;
            let picture =
                |to| write_output(render_svg(&by_year(&all), &[], CAPTION).as_bytes(), to);
            args.svg.as_ref().map_or(Ok(()), picture)?;
            list(&all)
        }
        Some(name) => {
            let machine = find_published(name)?;
            write_json(&machine, args.json.as_ref())?;
            one(&machine)
        }
    };
    if ![&args.json, &args.svg].contains(&&Some(Destination::Stdout)) {
        print_fitted(text, args.tables.layout()).context("cannot print the figures")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The published machine meant by a name, or by the start of one that no other shares.
pub(crate) fn find_published(wanted: &str) -> Result<PublishedMachine> {
    let wanted = wanted.to_lowercase();
    let mut all = published_machines().context("the published figures")?;
    let names = |all: &[PublishedMachine]| {
        all.iter().map(|of| of.name.clone()).collect::<Vec<_>>().join(", ")
    };
    let known = names(&all);
    if let Some(place) = all.iter().position(|machine| machine.name == wanted) {
        return Ok(all.swap_remove(place));
    }
    all.retain(|machine| !wanted.is_empty() && machine.name.starts_with(&wanted));
    let meant = names(&all);
    match (all.pop(), all.is_empty()) {
        (Some(machine), true) => Ok(machine),
        (Some(_), false) => {
            Err(usage(format!("{PUBLISHED_PREFIX}{wanted}: the start of several names: {meant}")))
        }
        (None, _) => Err(usage(format!(
            "{PUBLISHED_PREFIX}{wanted}: no such machine (accepted: {known}; see `switchcost runs list --history`)"
        ))),
    }
}

/// All of them, a line each.
fn list(all: &[PublishedMachine]) -> Printout {
    let columns = Columns::new()
        .left("name", |of: &&PublishedMachine| of.name.clone())
        .left("year", |of| of.year)
        .left("machine", |of| of.machine.clone())
        .left("system", |of| of.system.clone())
        .left("cases", |of| of.cases.len())
        .left("cost", |of| costs(of));
    let table = columns.table(all).first_to_go(&["cases", "system"]);
    printout![table, "\n\ncompare one with a run: switchcost compare history:sun-4/280 last\n"]
}

/// The cost of its smallest case that is a pair, or of whatever it has.
pub(crate) fn costs(machine: &PublishedMachine) -> String {
    let pair = machine.cases.iter().find(|case| case.ring.as_ref().is_some_and(|r| r.members == 2));
    let words = || {
        let case = pair.or(machine.cases.first())?;
        let (of, ns) = case.figures.first_key_value()?;
        Some(format!("{} a {} ({})", words::time(*ns), of.in_words(), case.title))
    };
    words().unwrap_or_default()
}

/// One machine with all that is known of it.
fn one(machine: &PublishedMachine) -> Printout {
    let PublishedMachine { machine: name, system, year, source, .. } = machine;
    let figures = machine
        .cases
        .iter()
        .flat_map(|case| case.figures.iter().map(move |(of, ns)| (case, *of, *ns)));
    let mut columns = Columns::<(&PublishedCase, Quantity, f64)>::new()
        .right("case", |(case, ..)| title(case))
        .right("cost of", |(_, of, _)| of.in_words())
        .right("ns", |(.., ns)| if *ns < 100.0 { format!("{ns:.1}") } else { format!("{ns:.0}") })
        .right("", |(.., ns)| words::time(*ns));
    if machine.cases.iter().any(|case| !case.intervals.is_empty()) {
        // In the unit of the figure beside it.
        columns = columns.or_dash("interval", |(case, of, ns)| {
            let ((low, high), (scale, _)) = (*case.intervals.get(of)?, words::time_unit(*ns));
            let [low, high] = [low, high].map(|ns| words::three_digits(ns / scale));
            Some(format!("{low} to {high}"))
        });
    }
    let table = columns.table(figures).first_to_go(&["ns"]);
    let heading = format!("{name}, {system} ({year})\n{source}\n\n");
    let mut text = printout![heading, table, "\n\n"];
    for range in &machine.ranges {
        let ns = match range.low_ns == range.high_ns {
            true => words::time(range.low_ns),
            false => format!("{} to {}", words::time(range.low_ns), words::time(range.high_ns)),
        };
        text.push(format!("not of one case, so not compared: {}: {ns}\n", range.subject));
    }
    for note in &machine.notes {
        text.push(format!("note: {note}\n"));
    }
    text
}

/// With the policy, which may differ here, and without what goes without saying: a ring of two.
fn title(case: &PublishedCase) -> String {
    let Some(ring) = &case.ring else { return case.title.clone() };
    let ring_words = match ring.work {
        Some(work) if ring.members == 2 => {
            format!("{} each, {}", words::bytes(work.bytes), work.walk_in_words())
        }
        _ => case.title.clone(),
    };
    match ring.policy {
        Policy::Other => ring_words,
        policy => format!("{ring_words}, {policy}"),
    }
}
