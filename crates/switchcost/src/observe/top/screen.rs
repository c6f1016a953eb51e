//! What stands on the screen: text of so many columns and lines, without a terminal.

use clap::ValueEnum;
use textwrap::core::display_width;

use super::Update;
use super::keys::State;
use crate::observe::live::rows::{Row, cut, head, meanings, rate, row_line};
use crate::present::terminal::{WIDTH, wrapped};
use model::words::grouped;

const KEYS: &str = "q quit  s sort  g group  / filter  f freeze  h help";

const HELP: [&str; 6] = [
    "q          quit",
    "s          sort by switches, preempted, wait, cost, cpu",
    "g          a row for each process, thread, control group or user",
    "/          show only names with a text in them; Enter keeps it, Escape clears it",
    "f          freeze, and go on",
    "arrows     scroll; Page Up and Page Down by ten",
];

fn name_of(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or(String::new(), |value| value.get_name().to_string())
}

/// The lines above the table.
fn above(update: Option<&Update>, state: &State) -> Vec<String> {
    let Some(update) = update else { return vec!["switchcost top: looking".into(), String::new()] };
    let per_s = update.total.switches_per_s();
    let voluntary = match per_s > 0.0 {
        true => format!(", {:.0} % voluntary", 100.0 * update.total.voluntary_per_s / per_s),
        false => String::new(),
    };
    let frozen = if state.frozen { "frozen: " } else { "" };
    let (by, sort) = (name_of(state.by), name_of(state.sort));
    let answer = format!(
        "{frozen}{} switches a second{voluntary}; by {by}, most {sort} first",
        grouped(per_s)
    );
    let mut lines = vec![answer, update.own.in_words()];
    lines.extend(update.own.took_in_words().map(|took| format!("this tracer {took}")));
    lines.extend(most_preempted(&update.rows));
    lines.extend(update.notices.first().cloned());
    lines.extend(state.costs.as_ref().map(|costs| match costs {
        Ok(profile) => format!("cost: by {}", profile.called()),
        Err(why) => format!("cost: {why}"),
    }));
    lines
}

/// Who takes the CPU most often from whom: what rows of 80 columns have no room for.
fn most_preempted(rows: &[Row]) -> Option<String> {
    let pairs = rows.iter().filter_map(|row| Some((&row.name, row.preempted_by.as_ref()?)));
    let (name, by) = pairs.max_by(|(_, one), (_, other)| one.per_s.total_cmp(&other.per_s))?;
    Some(format!("most preemptions by another: {name} by {}, {} a second", by.name, rate(by.per_s)))
}

/// An update as text of 80 columns.
pub(super) fn lines(update: &Update, state: &State) -> Vec<String> {
    let above = above(Some(update), state);
    let mut lines: Vec<String> = above.iter().map(|line| wrapped(line)).collect();
    lines.push(head(WIDTH));
    lines.extend(update.rows.iter().map(|row| row_line(row, WIDTH)));
    lines
}

/// All lines of a terminal of so many columns and lines, none longer than it.
pub(super) fn screen(
    update: Option<&Update>,
    state: &State,
    (columns, rows): (usize, usize),
) -> Vec<String> {
    let mut lines = above(update, state);
    let last = match state.is_typing {
        true => format!("filter: {}_", state.filter),
        false if !state.filter.is_empty() => format!("{KEYS}  (filter: {})", state.filter),
        false => KEYS.to_string(),
    };
    if state.help {
        lines.extend(HELP.map(str::to_string));
        lines.push(String::new());
        lines.extend(meanings());
    } else if let Some(update) = update {
        let mut shown = update.rows.clone();
        state.arrange(&mut shown);
        lines.push(head(columns));
        let room = rows.saturating_sub(lines.len() + 1);
        let first = state.first.min(shown.len().saturating_sub(room));
        lines.extend(shown.iter().skip(first).take(room).map(|row| row_line(row, columns)));
    }
    lines.resize(rows.saturating_sub(1), String::new());
    if rows > 0 {
        lines.push(last);
    }
    lines
        .iter()
        .map(|line| if display_width(line) > columns { cut(line, columns) } else { line.clone() })
        .collect()
}
