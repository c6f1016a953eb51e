//! `switchcost profile` on the terminal: the answer, a table, the lines that matter.

use analysis::estimate::Estimate;
use analysis::marked;
use analysis::marked::MarkedText;
use analysis::used::is_bound;
use rundata::words::{byte_range, grouped, time, two_digits};

use super::findings::{CallProfile, Ratio, Row};
use super::launches::What;
use crate::report::printout::Printout;
use crate::report::table::Table;
use crate::report::terminal::{MAX_LINES, counted, estimate_words, figure, interval, shortened};

/// Sizes that are printed by default have at least these shares of their function's calls and of
/// all calls.
const OF_FUNCTION: f64 = 0.05;
const OF_ALL: f64 = 0.01;

/// The whole report, ending with a newline.
pub(super) fn text(profile: &CallProfile, is_verbose: bool) -> Printout {
    let mut parts: Vec<Printout> = vec![headline(profile).into(), rows(profile, is_verbose).into()];
    let mut lines = lines(profile);
    if is_verbose {
        let share = profile.all(0).map(|all| estimate_words(all.share_of_cpu));
        lines.extend(share.map(|share| format!("share of the CPU time: {share}")));
        lines.push(LEGEND.to_string());
    } else {
        lines.truncate(MAX_LINES);
    }
    parts.push(lines.join("\n").into());
    Printout::paragraphs(parts)
}

const LEGEND: &str = "ns/call: mean CPU time of a call, less what timing it adds; <=: an upper \
    bound; -: too short to be measured\np50, p99: of all calls of all runs; longest: by a wall \
    clock\nwall +%: what a wall clock would add, which goes on while the thread is off the \
    CPU\nshare of the CPU time: without profiling";

/// Whether the thread's time off the CPU is known.
fn knows_wall(profile: &CallProfile) -> bool {
    !profile.launches.iter().any(|launch| launch.clocks.iter().any(|clock| clock == "kernel"))
}

/// How much more a wall clock would say, in percent; of a cost that is but a bound nothing is a
/// part.
fn wall_percent(row: &Row) -> Option<f64> {
    let ns = row.ns_per_call.value;
    (!row.is_bound).then(|| 100.0 * (row.wall_ns_per_call.value / ns - 1.0))
}

pub(super) fn headline(profile: &CallProfile) -> MarkedText {
    let plan = &profile.plan;
    let name = shortened(&shell_words::join(&plan.command), 40);
    let own = || profile.rows.iter().filter(|row| row.allocator == 0 && row.what.bytes.is_none());
    // Of several functions the one that takes most.
    let most = |row: &Row| row.calls * row.at_most_ns();
    let least = |row: &Row| row.calls * row.least_ns;
    let dearest = own().max_by(|one, other| most(one).total_cmp(&most(other)));
    let Some(row) = profile.all(0).or(dearest) else {
        return format!("No call of {name} was counted.").into();
    };
    let what = match &row.what.function {
        None if plan.malloc => "An allocation or free".to_string(),
        None => plan.calls.first().cloned().unwrap_or_default(),
        Some(function) => {
            let is_most = own().all(|other| other.what == row.what || most(other) < least(row));
            let takes = if is_most { "takes most" } else { "may take most" };
            format!("Of {}, {function} {takes}: a call", counted(own().count(), "function"))
        }
    };
    let mut text = marked![what, " takes ", time_of(row)];
    text.push(match row.share_of_cpu {
        Some(share) if !row.is_bound => {
            format!("; all take {} % of the CPU time of {name}.", two_digits(100.0 * share.value))
        }
        Some(share) if row.at_most_ns() > 0.0 => {
            let most = share.value / row.ns_per_call.value * row.most_ns;
            let percent = two_digits(100.0 * share.high.unwrap_or(most));
            format!("; all take at most {percent} % of the CPU time of {name}.")
        }
        _ => format!(" in {name}."),
    });
    for (number, library) in plan.allocators.iter().enumerate() {
        let of_all = |of: &&Ratio| of.allocator == number + 1 && of.what == row.what;
        let found = profile.ratios.iter().find(of_all).map(times_words);
        if let Some(words) = found {
            text.push(format!(" With {library} it takes {words}."));
        }
    }
    let is_told = |percent: &f64| row.switched > 0 && *percent >= 1.0 && knows_wall(profile);
    if let Some(percent) = wall_percent(row).filter(is_told) {
        let wall = row.wall_ns_per_call;
        text.push(format!(
            " A wall clock would say {} ({} % more): {} lost the CPU.",
            time(wall.value),
            two_digits(percent),
            counted(row.switched as usize, "call")
        ));
    }
    text
}

/// `54.0 ns (50.1 to 57.0)`, `at most 5.0 ns`.
fn time_of(row: &Row) -> MarkedText {
    match row.at_most_ns() {
        below if below <= 0.0 => {
            format!("no time that can be measured (not resolved: {})", time(below)).into()
        }
        most if row.is_bound => marked!["at most ", MarkedText::figure(time(most))],
        _ => a_call(&row.ns_per_call),
    }
}

/// The same as a cell, with that of its interval.
fn time_cells(row: &Row) -> (String, String) {
    let range = interval(Some(row.ns_per_call));
    match row.at_most_ns() {
        most if !row.is_bound || most <= 0.0 => (figure(row.ns_per_call.value), range),
        most if row.ns_per_call.interval().is_some() => {
            (format!("<={}", figure(most)), format!("0 to {}", figure(most)))
        }
        most => (format!("<={}", figure(most)), range),
    }
}

/// What a call takes. Of one run there is no interval, and its calls are many.
fn a_call(ns: &Estimate) -> MarkedText {
    match ns.quote_cost() {
        Ok(ns) => ns.marked_time(),
        Err(why) => {
            let figure = MarkedText::figure(time(ns.value));
            marked!["about ", figure, format!(" ({})", why.with_time_unit())]
        }
    }
}

fn times_words(of: &Ratio) -> String {
    let range = of.ratio.interval();
    if of.is_bound {
        let below = range.filter(|range| range.high < 1.0);
        let less = below.map(|range| format!("at most {} times that", figure(range.high)));
        return less.unwrap_or("a time that cannot be told apart from that".to_string());
    }
    let range = range.map(|range| format!("{} to {}", figure(range.low), figure(range.high)));
    let range = range.unwrap_or("not resolved".to_string());
    format!("{} times that ({range})", figure(of.ratio.value))
}

/// A column: its heading, whether it is one of several allocators (else of one alone; nothing of
/// both), and what stands in it.
type Column = (&'static str, Option<bool>, fn(&CallProfile, &Row) -> String);

const COLUMNS: [Column; 11] = [
    ("function", None, |_, row| row.what.function.clone().unwrap_or("all".to_string())),
    ("by", Some(true), |of, row| shortened(library(of.plan.allocator(row.allocator)), 10)),
    ("bytes", None, |_, row| sizes(&row.what)),
    ("calls", None, |_, row| grouped(row.calls)),
    ("ns/call", None, |_, row| time_cells(row).0),
    ("interval", None, |_, row| time_cells(row).1),
    ("ratio", Some(true), |of, row| of.ratio(row).map_or(String::new(), ratio_cell)),
    ("p50", None, |of, row| quantile(of, row.p50_ns)),
    ("p99", None, |of, row| quantile(of, row.p99_ns)),
    ("longest", Some(false), |_, row| time(row.longest_wall_ns as f64)),
    ("wall +%", Some(false), |of, row| {
        let percent = wall_percent(row).filter(|_| knows_wall(of));
        percent.map_or("-".to_string(), two_digits)
    }),
];

fn rows(profile: &CallProfile, is_verbose: bool) -> Table {
    let several = !profile.plan.allocators.is_empty();
    let columns = || COLUMNS.iter().filter(|(_, of, _)| of.is_none_or(|of| of == several));
    let shown = profile.rows.iter().filter(|row| is_shown(profile, row, is_verbose));
    let cells = shown.map(|row| columns().map(|(.., cell)| cell(profile, row)).collect::<Vec<_>>());
    let headings = columns().map(|(heading, ..)| *heading).collect::<Vec<_>>();
    Table::new(headings, cells).first_to_go(&["p50"])
}

/// A dash for what is too short to be told.
fn quantile(profile: &CallProfile, ns: f64) -> String {
    if is_bound(ns, profile.known) { "-".to_string() } else { format!("{ns:.0}") }
}

/// In brackets where it is not resolved from 1.
fn ratio_cell(of: &Ratio) -> String {
    let value = match (of.is_bound, of.ratio.high) {
        (true, None) => return "-".to_string(),
        (true, Some(most)) => format!("<={}", figure(most)),
        (false, _) => figure(of.ratio.value),
    };
    if of.ratio.resolved { value } else { format!("({value})") }
}

/// The last part of a path: `libjemalloc.so.2` without `lib` and what follows the name.
pub(super) fn library(name: &str) -> &str {
    let file = name.rsplit('/').next().unwrap_or(name);
    file.strip_prefix("lib").and_then(|rest| rest.split('.').next()).unwrap_or(file)
}

fn is_shown(profile: &CallProfile, row: &Row, is_verbose: bool) -> bool {
    let What { function, bytes } = &row.what;
    if function.is_none() {
        return profile.rows.iter().filter(|of| of.what.bytes.is_none()).count() > 2;
    }
    if bytes.is_none() || is_verbose {
        return true;
    }
    // Sizes of functions that matter, where one allocator is looked at.
    let share =
        |what: &What| profile.row(row.allocator, what).map_or(0.0, |of| row.calls / of.calls);
    let function = What { function: function.clone(), bytes: None };
    let all = What { function: None, bytes: None };
    // What its function is of all, and it of its function.
    profile.plan.allocators.is_empty() && share(&function) >= OF_FUNCTION && share(&all) >= OF_ALL
}

fn sizes(what: &What) -> String {
    match what.bytes {
        None => "all".to_string(),
        Some((from, to)) if from == to => from.to_string(),
        Some((from, to)) if to < 1024 => format!("{from} to {to}"),
        Some((from, to)) => byte_range(from, to + 1),
    }
}

/// Lines that matter, the most important ones first.
fn lines(profile: &CallProfile) -> Vec<String> {
    let mut lines: Vec<String> =
        profile.notices.iter().map(|notice| format!("note: {notice}")).collect();
    let failed = profile.launches.iter().filter(|launch| launch.exit_code != 0).count();
    if failed > 0 {
        let all = profile.launches.len();
        lines.push(format!("note: runs that did not end with exit code 0: {failed} of {all}"));
    }
    if profile.rows.iter().any(|row| row.is_bound) {
        let known = profile.known.map_or("which was not measured".to_string(), |of| {
            format!(
                "here {} was measured for a call that takes {}",
                time(of.told_ns),
                time(of.in_a_row_ns)
            )
        });
        lines.push(format!(
            "<= is an upper bound: a timed call does not overlap with the code around it ({known})"
        ));
    }
    lines
        .extend(profile.added_ns.map(|added| format!("profiling added {} to a call", time(added))));
    let unresolved = |of: &Ratio| of.what.bytes.is_none() && !of.ratio.resolved;
    if profile.ratios.iter().any(unresolved) {
        lines.push("a ratio in brackets is not resolved from 1".to_string());
    }
    if profile.rows.iter().any(|row| row.ns_per_call.interval().is_none()) {
        lines.push("intervals need 5 runs or more: -n 10".to_string());
    }
    lines
}
