//! The comparison of commands as Markdown, for a comment on a pull request.

use analysis::comparison::ChangeAnswer;

use super::answer::headline;
use super::gate::{CommandGate, GatedChange};
use super::record::CommandUseRecord;

/// Most notes below the table.
const MAX_NOTES: usize = 3;

/// Returns the headline, a table of all changes, the first notes and the verdict.
pub(super) fn markdown(record: &CommandUseRecord, gate: &CommandGate) -> String {
    let plan = &record.plan;
    let is_pair = plan.commands.len() == 2;
    let new_title = if is_pair { plan.label(1) } else { "other".to_string() };
    let heads = ["figure", &plan.label(0), &new_title, "ratio", "interval", "answer"];
    let mut text = format!("**{}**\n\n", headline(record).replace(['\n', '\r'], " "));
    text += &table_row(&heads.map(str::to_string));
    text += "|:--|--:|--:|--:|--:|:--|\n";
    for change in &gate.changes {
        let mut name = change.figure.title().to_string();
        if !is_pair {
            name = format!("{}: {name}", plan.label(change.command));
        }
        text += &table_row(&change_cells(name, change));
    }
    let events = record.events();
    for (number, note) in gate.failed.iter().chain(&events).take(MAX_NOTES).enumerate() {
        if number == 0 {
            text += "\n";
        }
        text += &format!("- {note}\n");
    }
    text + &format!("\n{}\n", gate.in_words)
}

fn table_row(cells: &[String; 6]) -> String {
    let mut escaped = Vec::new();
    for cell in cells {
        escaped.push(cell.replace('|', "\\|").replace(['\n', '\r'], " "));
    }
    format!("| {} |\n", escaped.join(" | "))
}

fn change_cells(name: String, change: &GatedChange) -> [String; 6] {
    let ratio = match change.ratio {
        Some(ratio) => format!("{:.3}", ratio.value),
        None => "-".to_string(),
    };
    let interval = match change.interval() {
        Some(ends) => format!("{:.3} to {:.3}", ends.low, ends.high),
        None => "none".to_string(),
    };
    let base = change.figure.format_value(change.base);
    let new = change.figure.format_value(change.new);
    [name, base, new, ratio, interval, answer_words(change)]
}

fn answer_words(change: &GatedChange) -> String {
    match change.answer {
        ChangeAnswer::NotChanged => "not changed".to_string(),
        ChangeAnswer::Changed { worse, beyond_limit } => {
            let direction = change.figure.direction(worse);
            if worse && beyond_limit { format!("{direction} !") } else { direction.to_string() }
        }
        ChangeAnswer::Bounded { .. } | ChangeAnswer::CannotTell { .. } => {
            "inconclusive".to_string()
        }
    }
}
