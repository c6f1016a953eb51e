//! `switchcost compare` on the terminal.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};
use charts::printable;
use comfy_table::{CellAlignment, Table};
use model::comparison::{Answer, Change, Comparison, More, Reason, Side, Unpaired};
use model::machine::Difference;
use model::subject::Origin;
use model::words;

use crate::output::{Output, print, put_json};
use crate::terminal;
use crate::values::Destination;

/// Differences that are printed; the JSON form has all.
const MOST_DIFFERENCES: usize = 12;

/// Writes what was asked for: text, to standard error where JSON has standard output, and JSON.
pub(crate) fn write(found: &Comparison, paths: &[&Path], output: &Output) -> Result<()> {
    let text = printable(&text(found, paths));
    match &output.json {
        _ if output.quiet => {}
        // Nobody there to read it is no reason to fail.
        Some(Destination::Stdout) => drop(io::stderr().write_all(text.as_bytes())),
        _ => print(text.as_bytes()).context("cannot print the comparison")?,
    }
    put_json(found, output.json.as_ref())
}

/// The whole, ending with a newline.
fn text(found: &Comparison, paths: &[&Path]) -> String {
    let mut lines =
        vec![format!("base: {}", side(&found.base)), format!("new:  {}", side(&found.new))];
    lines.extend(differences(found));
    lines.extend(found.conditions.warnings.iter().map(|warning| format!("warning: {warning}")));
    if !found.changes.is_empty() {
        lines.push(format!("\n{}\n\n{}", table(found), legend(found)));
    }
    lines.extend(left_over(&found.unpaired));
    lines.push(format!("\n{}", found.in_words));
    lines.extend(paths.iter().map(|path| terminal::place(Some(path))));
    lines.join("\n") + "\n"
}

/// A side in a line.
fn side(side: &Side) -> String {
    let from = match &side.origin {
        Origin::Publication { source } => source.clone(),
        Origin::Run { session: Some(session), .. } => match session.prefix.is_empty() {
            true => format!("{}: as it is", session.arm.name()),
            false => format!("{}: {}", session.arm.name(), session.prefix.join(" ")),
        },
        Origin::Run { .. } => side.experiment.clone(),
    };
    let launches = match side.launches {
        0 | 1 => String::new(),
        count => format!(", {count} launches"),
    };
    format!("{} ({from}{launches}) on {}", side.name, side.machine)
}

fn differences(found: &Comparison) -> Vec<String> {
    let conditions = &found.conditions;
    let listed = || conditions.program.iter().chain(&conditions.bearing);
    let line = |Difference { field, base, other }: &Difference| {
        format!("differs: {field}: {base} in base, {other} in new")
    };
    let left = listed().skip(MOST_DIFFERENCES).count() + conditions.others.len();
    let more = (left > 0).then(|| format!("differs: {left} more fields (--json has all)"));
    listed().take(MOST_DIFFERENCES).map(line).chain(more).collect()
}

fn table(found: &Comparison) -> Table {
    let row = |change: &Change| {
        [
            name(change, &found.changes),
            change.of.in_words().to_string(),
            words::time(change.base_ns),
            words::time(change.new_ns),
            change.ratio.value.map_or("-".to_string(), ratio),
            interval(change),
            answer(change),
            more(change),
        ]
    };
    let columns =
        ["case", "cost of", "base", "new", "new/base", "interval", "answer", more_of(found)];
    let mut table = terminal::table(columns, found.changes.iter().map(row));
    for left in [0, 6] {
        if let Some(column) = table.column_mut(left) {
            column.set_cell_alignment(CellAlignment::Left);
        }
    }
    table
}

/// The title; where several have the same, with the labels in which they differ.
fn name(change: &Change, all: &[Change]) -> String {
    let alike = || all.iter().filter(|other| other.title == change.title);
    let differs = |name: &str, value: &str| {
        alike().any(|other| other.labels.get(name).is_none_or(|other| other != value))
    };
    match label_words(&change.labels, differs) {
        apart if apart.is_empty() => change.title.clone(),
        apart => format!("{}, {apart}", change.title),
    }
}

fn label_words(labels: &BTreeMap<String, String>, is_told: impl Fn(&str, &str) -> bool) -> String {
    let told = labels.iter().filter(|(name, value)| is_told(name, value));
    told.map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
}

/// Cases without a partner, those that differ in nothing but their size on one line.
fn left_over(unpaired: &[Unpaired]) -> Vec<String> {
    let mut lines: Vec<(String, Vec<&str>)> = Vec::new();
    for Unpaired { in_base, labels, why, title, .. } in unpaired {
        let whose = if *in_base { "base" } else { "new" };
        let labels = label_words(labels, |name, _| name != "members");
        let kind = format!("in {whose} only, {labels}: {why}");
        match lines.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, titles)) => titles.push(title),
            None => lines.push((kind, vec![title])),
        }
    }
    let line = |(kind, titles): (String, Vec<&str>)| {
        format!("not compared: {} ({kind})", titles.join(", "))
    };
    lines.into_iter().map(line).collect()
}

/// Three decimals around 1, else three digits.
fn ratio(ratio: f64) -> String {
    match ratio.abs() {
        0.1..10.0 => format!("{ratio:.3}"),
        1e-3..0.1 => format!("{ratio:.5}"),
        _ => terminal::figure(ratio),
    }
}

fn interval(change: &Change) -> String {
    let ends = change.ratio.interval();
    ends.map_or("none".to_string(), |(low, high)| format!("{} to {}", ratio(low), ratio(high)))
}

fn answer(change: &Change) -> String {
    match change.answer {
        Answer::NotChanged => "not changed".to_string(),
        Answer::Changed { worse: true, beyond_limit: true } => "slower  !".to_string(),
        Answer::Changed { worse: true, .. } => "slower".to_string(),
        Answer::Changed { worse: false, .. } => "faster".to_string(),
        Answer::CannotTell { .. } => "inconclusive".to_string(),
    }
}

fn more(change: &Change) -> String {
    match change.answer {
        Answer::CannotTell { reason: Reason::FewRounds, more: Some(More::Rounds(least)) } => {
            format!(">={least}")
        }
        Answer::CannotTell { more: Some(More::Launches(more) | More::Rounds(more)), .. } => {
            format!("~{more}")
        }
        Answer::CannotTell { more: None, .. } => "-".to_string(),
        _ => String::new(),
    }
}

/// What more of would tell.
fn more_of(found: &Comparison) -> &'static str {
    if found.paired { "more rounds" } else { "more launches" }
}

fn legend(found: &Comparison) -> String {
    let limit = found.terms.limit * 100.0;
    let how = match found.paired {
        true => {
            "measured in one session: differences are taken within rounds, base and new: mean of the middle \
             half of the rounds"
        }
        false => {
            "base and new: at the CPU's full speed, mean of the launches; the interval has a term for the scatter \
             between launches"
        }
    };
    format!(
        "{how}\ninterval: all of them together hold with {:.0} % confidence; not changed: the interval lies within {limit:.3} %\n\
         slower, faster: it excludes 1; ! the ratio is above the limit too\n\
         {of}: ~ so many on each side would settle it; >= so many give an interval; - more would not",
        found.terms.confidence * 100.0,
        of = more_of(found),
        limit = terminal::figure(limit)
    )
}
