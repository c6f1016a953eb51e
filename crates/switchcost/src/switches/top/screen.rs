//! What stands on the screen: text of so many columns and lines, without a terminal.

use clap::ValueEnum;
use rundata::words::grouped;
use textwrap::core::display_width;
use textwrap::{Options, wrap};

use super::TopUpdate;
use super::keys::ScreenState;
use crate::base::lines::{WIDTH, fitted};
use crate::observe::live::rows::{ShownColumns, SwitchRow, cut, meanings, rate};

const KEYS: &str = "q quit  s sort  g group  / filter  f freeze  h help";

/// The same where there is less room.
const SHORT_KEYS: &str = "q s g / f h";

const HELP: [&str; 7] = [
    "q          quit",
    "s          sort by switches, preempted, wait, cost, cpu",
    "g          a row for each process, thread, control group or user",
    "c          other columns, where not all fit",
    "/          show only names with a text in them; Enter keeps it, Escape clears it",
    "f          freeze, and go on",
    "arrows     scroll; Page Up and Page Down by ten",
];

/// Columns of a key or a heading before what it means.
const KEY_WIDTH: usize = 11;

/// Before the rows of this program itself.
const OWN: &str = "this program:";

fn name_of(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or(String::new(), |value| value.get_name().to_string())
}

/// The lines above the table.
fn above(update: Option<&TopUpdate>, state: &ScreenState) -> Vec<String> {
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
fn most_preempted(rows: &[SwitchRow]) -> Option<String> {
    let pairs = rows.iter().filter_map(|row| Some((&row.name, row.preempted_by.as_ref()?)));
    let (name, by) = pairs.max_by(|(_, one), (_, other)| one.per_s.total_cmp(&other.per_s))?;
    Some(format!("most preemptions by another: {name} by {}, {} a second", by.name, rate(by.per_s)))
}

/// Heading and rows of an update, this program's own apart.
fn table(rows: &[SwitchRow], columns: &ShownColumns) -> Vec<String> {
    let (own, others): (Vec<&SwitchRow>, Vec<&SwitchRow>) = rows.iter().partition(|row| row.own);
    let shown =
        |rows: Vec<&SwitchRow>| rows.into_iter().map(|row| columns.row(row)).collect::<Vec<_>>();
    let heading = (!own.is_empty()).then(|| OWN.to_string());
    shown(others).into_iter().chain(heading).chain(shown(own)).collect()
}

/// An update as text of 80 columns.
pub(super) fn lines(update: &TopUpdate, state: &ScreenState) -> Vec<String> {
    let (above, columns) = (above(Some(update), state), ShownColumns::of(WIDTH, 0));
    let mut lines: Vec<String> = above.iter().map(|line| fitted(line, WIDTH)).collect();
    let left_out = columns.left_out.join(", ");
    lines.push(format!("hidden columns: {left_out} (--batch=json has all)"));
    lines.push(columns.head());
    lines.extend(table(&update.rows, &columns));
    lines
}

/// The last line: keys, and what other columns there are.
fn keys(state: &ScreenState, left_out: &[&str], columns: usize) -> String {
    if state.is_typing {
        return format!("filter: {}_", state.filter);
    }
    let filter = match state.filter.is_empty() {
        true => String::new(),
        false => format!("  (filter: {})", state.filter),
    };
    let (count, names) = (left_out.len(), left_out.join(", "));
    let hints = match count {
        0 => [String::new(), String::new()],
        _ => [format!("  c: {names}"), format!("  c: {count} more columns")],
    };
    let lines = [KEYS, SHORT_KEYS]
        .iter()
        .flat_map(|keys| hints.iter().map(move |hint| format!("{keys}{hint}")));
    let mut lines: Vec<String> = lines.map(|line| line + &filter).collect();
    let fitting = lines.iter().position(|line| display_width(line) <= columns);
    lines.swap_remove(fitting.unwrap_or(lines.len() - 1))
}

/// All that there is to help, in lines of so many columns.
fn help(columns: usize) -> Vec<String> {
    let blanks = " ".repeat(KEY_WIDTH);
    let options = || Options::new(columns.max(3 * KEY_WIDTH)).subsequent_indent(&blanks);
    let all = HELP.map(str::to_string).into_iter().chain([String::new()]).chain(meanings());
    let lines = all.flat_map(|line| {
        // Blanks between key and meaning are columns.
        let (key, meaning) = line.split_at(KEY_WIDTH.min(line.len()));
        let lines = wrap(meaning, options().initial_indent(key));
        lines.into_iter().map(|line| line.trim_end().to_string()).collect::<Vec<_>>()
    });
    lines.collect()
}

/// All lines of a terminal of so many columns and lines, none longer than it.
pub(super) fn screen(
    update: Option<&TopUpdate>,
    state: &ScreenState,
    (columns, rows): (usize, usize),
) -> Vec<String> {
    let set = ShownColumns::of(columns, state.columns);
    let mut lines = above(update, state);
    let mut body = Vec::new();
    if state.help {
        body = help(columns);
        // It goes before what stands above, but for the answer.
        lines.truncate(rows.saturating_sub(body.len() + 1).max(1));
    } else if let Some(update) = update {
        let mut shown = update.rows.clone();
        state.arrange(&mut shown);
        lines.push(set.head());
        body = table(&shown, &set);
    }
    let room = rows.saturating_sub(lines.len() + 1);
    let first = state.first.min(body.len().saturating_sub(room));
    lines.extend(body.into_iter().skip(first).take(room));
    lines.resize(rows.saturating_sub(1), String::new());
    if rows > 0 {
        lines.push(keys(state, &set.left_out, columns));
    }
    lines
        .iter()
        .map(|line| if display_width(line) > columns { cut(line, columns) } else { line.clone() })
        .collect()
}
