//! A comparison of commands for a comment on a pull request.

use analysis::comparison::ChangeAnswer;

use super::answer::headline;
use super::gate::{Change, Gate};
use super::record::Record;

/// Notes below the table.
const MOST_NOTES: usize = 3;

/// The comparison as a table in Markdown, below its first line.
pub(super) fn markdown(record: &Record, gate: &Gate) -> String {
    let Record { plan, .. } = record;
    let row = |cells: &[String]| {
        let cells: Vec<String> =
            cells.iter().map(|cell| cell.replace('|', "\\|").replace(['\n', '\r'], " ")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let title = |number| plan.label(number);
    let new = if plan.commands.len() == 2 { title(1) } else { "other".to_string() };
    let mut text = format!("**{}**\n\n", headline(record).replace(['\n', '\r'], " "));
    text += &row(&["figure", &title(0), &new, "ratio", "interval", "answer"].map(str::to_string));
    text += "|:--|--:|--:|--:|--:|:--|\n";
    for change in &gate.changes {
        let of = match plan.commands.len() {
            2 => change.of.name().to_string(),
            _ => format!("{}: {}", title(change.command), change.of.name()),
        };
        let ends = change.ratio.and_then(|ratio| ratio.interval());
        text += &row(&[
            of,
            change.of.shown(change.base),
            change.of.shown(change.new),
            change.ratio.map_or("-".to_string(), |ratio| format!("{:.3}", ratio.value)),
            ends.map_or("none".to_string(), |ends| format!("{:.3} to {:.3}", ends.low, ends.high)),
            answer_words(change),
        ]);
    }
    let events = record.events();
    let notes: Vec<&String> = gate.failed.iter().chain(&events).take(MOST_NOTES).collect();
    text.extend(notes.first().map(|_| "\n"));
    text.extend(notes.iter().map(|note| format!("- {note}\n")));
    text + &format!("\n{}\n", gate.in_words)
}

fn answer_words(change: &Change) -> String {
    match change.answer {
        ChangeAnswer::NotChanged => "not changed".to_string(),
        ChangeAnswer::Changed { worse, beyond_limit } => {
            let words = change.of.words(worse);
            if worse && beyond_limit { format!("{words} !") } else { words.to_string() }
        }
        ChangeAnswer::Bounded { .. } | ChangeAnswer::CannotTell { .. } => {
            "inconclusive".to_string()
        }
    }
}
