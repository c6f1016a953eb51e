//! The text on the screen, so many columns and lines of it, without a terminal.
//!
//! ```text
//! 41,200 switches a second, 93 % voluntary; by process, most switches first     the answer
//! this tracer: 0.3 % of the machine, 165 ns a switch                            notes
//! name                 id sleeps prmpts yields  moves   wait    p99    run      a table
//! postgres            812    38k   1.2k      0    2.5   <2us <131us  <16us
//! q quit  s sort  g group  / filter  f freeze  h help  c: cost %                keys
//! ```

use clap::ValueEnum;
use rundata::words::grouped;
use textwrap::core::display_width;
use textwrap::{Options, wrap};

use super::TopUpdate;
use super::keys::ScreenState;
use crate::base::lines::{WIDTH, fitted};
use crate::observe::live::rows::{ShownColumns, SwitchRow, cut, meanings, rate};

const KEYS: &str = "q quit  s sort  g group  / filter  f freeze  h help";

/// The keys where there is less room.
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

/// Heading of the rows of this program itself.
const OWN: &str = "this program:";

/// Columns and lines of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScreenSize {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

fn value_name(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or(String::new(), |value| value.get_name().to_string())
}

/// Returns the lines above the table.
fn lines_above(update: Option<&TopUpdate>, state: &ScreenState) -> Vec<String> {
    let Some(update) = update else { return vec!["switchcost top: looking".into(), String::new()] };
    let per_s = update.total.switches_per_s();
    let voluntary = if per_s > 0.0 {
        format!(", {:.0} % voluntary", 100.0 * update.total.voluntary_per_s / per_s)
    } else {
        String::new()
    };
    let frozen = if state.is_frozen { "frozen: " } else { "" };
    let (by, sort) = (value_name(state.by), value_name(state.sort));
    let answer = format!(
        "{frozen}{} switches a second{voluntary}; by {by}, most {sort} first",
        grouped(per_s)
    );
    let mut lines = vec![answer, update.own.in_words()];
    if let Some(took) = update.own.took_in_words() {
        lines.push(format!("this tracer {took}"));
    }
    lines.extend(most_preempted(&update.rows));
    lines.extend(update.notices.first().cloned());
    match &state.costs {
        Some(Ok(profile)) => lines.push(format!("cost: by {}", profile.called())),
        Some(Err(why)) => lines.push(format!("cost: {why}")),
        None => {}
    }
    lines
}

/// Says who takes the CPU most often from whom: rows of 80 columns have no room for that.
fn most_preempted(rows: &[SwitchRow]) -> Option<String> {
    let mut most = None;
    let mut most_per_s = f64::NEG_INFINITY;
    for row in rows {
        let Some(preempter) = &row.preempted_by else { continue };
        // Of equals the last.
        if preempter.per_s.total_cmp(&most_per_s).is_ge() {
            most_per_s = preempter.per_s;
            most = Some((row, preempter));
        }
    }
    let (row, preempter) = most?;
    let rate = rate(preempter.per_s);
    Some(format!(
        "most preemptions by another: {} by {}, {rate} a second",
        row.name, preempter.name
    ))
}

/// Returns the rows of a table, this program's own apart at the end.
fn table(rows: &[SwitchRow], columns: &ShownColumns) -> Vec<String> {
    let (mut lines, mut own_lines) = (Vec::new(), Vec::new());
    for row in rows {
        let line = columns.row(row);
        if row.own { own_lines.push(line) } else { lines.push(line) }
    }
    if !own_lines.is_empty() {
        lines.push(OWN.to_string());
        lines.append(&mut own_lines);
    }
    lines
}

/// Returns an update as text of 80 columns.
pub(super) fn lines(update: &TopUpdate, state: &ScreenState) -> Vec<String> {
    let columns = ShownColumns::fitting(WIDTH, 0);
    let mut lines = Vec::new();
    for line in lines_above(Some(update), state) {
        lines.push(fitted(&line, WIDTH));
    }
    let left_out = columns.left_out.join(", ");
    lines.push(format!("hidden columns: {left_out} (--batch=json has all)"));
    lines.push(columns.head());
    lines.extend(table(&update.rows, &columns));
    lines
}

/// Returns the last line, keys and what other columns there are: the longest form that fits.
fn keys(state: &ScreenState, left_out: &[&str], columns: usize) -> String {
    if state.is_typing {
        return format!("filter: {}_", state.filter);
    }
    let filter = if state.filter.is_empty() {
        String::new()
    } else {
        format!("  (filter: {})", state.filter)
    };
    let (names, count) = (left_out.join(", "), left_out.len());
    let hints = if left_out.is_empty() {
        [String::new(), String::new()]
    } else {
        [format!("  c: {names}"), format!("  c: {count} more columns")]
    };
    let mut line = String::new();
    for keys in [KEYS, SHORT_KEYS] {
        for hint in &hints {
            line = format!("{keys}{hint}{filter}");
            if display_width(&line) <= columns {
                return line;
            }
        }
    }
    line
}

/// Returns the complete help, in lines of so many columns.
fn help(columns: usize) -> Vec<String> {
    let mut entries: Vec<String> = HELP.iter().map(ToString::to_string).collect();
    entries.push(String::new());
    entries.extend(meanings());
    let blanks = " ".repeat(KEY_WIDTH);
    let mut lines = Vec::new();
    for entry in &entries {
        // Blanks between key and meaning are columns.
        let (key, meaning) = entry.split_at(KEY_WIDTH.min(entry.len()));
        let options = Options::new(columns.max(3 * KEY_WIDTH));
        let options = options.initial_indent(key).subsequent_indent(&blanks);
        for line in wrap(meaning, options) {
            lines.push(line.trim_end().to_string());
        }
    }
    lines
}

/// Returns all lines of a terminal of this size, none longer than it.
pub(super) fn screen(
    update: Option<&TopUpdate>,
    state: &ScreenState,
    size: ScreenSize,
) -> Vec<String> {
    let ScreenSize { columns, rows } = size;
    let shown_columns = ShownColumns::fitting(columns, state.column_set);
    let mut lines = lines_above(update, state);
    let mut body = Vec::new();
    if state.shows_help {
        body = help(columns);
        // It goes before what stands above, but for the answer.
        lines.truncate(rows.saturating_sub(body.len() + 1).max(1));
    } else if let Some(update) = update {
        let mut shown = update.rows.clone();
        state.arrange(&mut shown);
        lines.push(shown_columns.head());
        body = table(&shown, &shown_columns);
    }
    let room = rows.saturating_sub(lines.len() + 1);
    let first = state.scrolled.min(body.len().saturating_sub(room));
    lines.extend(body.into_iter().skip(first).take(room));
    lines.resize(rows.saturating_sub(1), String::new());
    if rows > 0 {
        lines.push(keys(state, &shown_columns.left_out, columns));
    }
    for line in &mut lines {
        if display_width(line) > columns {
            *line = cut(line, columns);
        }
    }
    lines
}
