//! `switchcost history`: figures that were published from 1984 to 2007.

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use comfy_table::CellAlignment;
use model::subject::{Published, Quantity, published};
use model::words;
use serde::Serialize;

use crate::output::{print, put_json};
use crate::subjects::find_published;
use crate::terminal;
use crate::values::Destination;

#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// Machine to show with all its figures: its name, or the start of one that no other shares
    pub(crate) machine: Option<String>,

    /// Write as JSON (docs/record-format.md) to a file, or - for standard output
    #[arg(long, value_name = "FILE|-")]
    pub(crate) json: Option<Destination>,
}

pub(crate) fn run(args: &HistoryArgs) -> Result<ExitCode> {
    match &args.machine {
        None => {
            let all = published().context("the published figures")?;
            tell(&all, list(&all), args)?;
        }
        Some(name) => {
            let machine = find_published(name)?;
            tell(&machine, one(&machine), args)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn tell<T: Serialize>(what: &T, text: String, args: &HistoryArgs) -> Result<()> {
    put_json(what, args.json.as_ref())?;
    if args.json != Some(Destination::Stdout) {
        print(text.as_bytes()).context("cannot print the figures")?;
    }
    Ok(())
}

/// All of them, a line each.
fn list(all: &[Published]) -> String {
    let mut table = terminal::table(["name", "year", "machine", "system", "cases", "cost"]);
    for machine in all {
        table.add_row([
            machine.name.clone(),
            machine.year.to_string(),
            machine.machine.clone(),
            machine.system.clone(),
            machine.cases.len().to_string(),
            costs(machine),
        ]);
    }
    for column in table.column_iter_mut() {
        column.set_cell_alignment(CellAlignment::Left);
        column.set_padding((0, 2));
    }
    format!("{table}\n\ncompare one with a run: switchcost compare history:sun-4/280 last\n")
}

/// The cost of its smallest case that is a pair, or of whatever it has.
fn costs(machine: &Published) -> String {
    let pair = machine.cases.iter().find(|case| case.ring.as_ref().is_some_and(|r| r.members == 2));
    let case = pair.or(machine.cases.first());
    let words = |(of, ns): (&Quantity, &f64)| format!("{} a {}", words::time(*ns), of.in_words());
    let Some(case) = case else { return String::new() };
    case.figures
        .first_key_value()
        .map_or(String::new(), |figure| format!("{} ({})", words(figure), case.title))
}

/// One machine with all that is known of it.
fn one(machine: &Published) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{}, {} ({})", machine.machine, machine.system, machine.year);
    let _ = writeln!(text, "{}\n", machine.source);
    let mut table = terminal::table(["case", "cost of", "ns", ""]);
    for case in &machine.cases {
        for (of, ns) in &case.figures {
            table.add_row([
                case.title.clone(),
                of.in_words().to_string(),
                format!("{ns:.0}"),
                words::time(*ns),
            ]);
        }
    }
    terminal::align(&mut table);
    let _ = writeln!(text, "{table}\n");
    for range in &machine.ranges {
        let ns = match range.low_ns == range.high_ns {
            true => words::time(range.low_ns),
            false => format!("{} to {}", words::time(range.low_ns), words::time(range.high_ns)),
        };
        let _ = writeln!(text, "not of one case, so not compared: {}: {ns}", range.of);
    }
    for note in &machine.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text
}
