//! `switchcost profile` on the terminal: the answer, a table, the lines that matter.

use analysis::estimate::Estimate;
use analysis::marked;
use analysis::marked::MarkedText;
use analysis::used::is_bound;
use rundata::words::{byte_range, grouped, time, two_digits};

use super::findings::{AllocatorRatio, CallProfile, GroupCost};
use super::launches::{CallGroup, ProfilePlan, ProfiledLaunch};
use crate::report::output::columns::Columns;
use crate::report::printout::Printout;
use crate::report::table::Table;
use crate::report::terminal::{MAX_LINES, counted, estimate_words, figure, interval, shortened};

/// Share of its function's calls from which on a size is printed by default.
const MIN_SHARE_OF_FUNCTION: f64 = 0.05;
/// Share of all calls from which on a size is printed by default.
const MIN_SHARE_OF_ALL: f64 = 0.01;
/// Characters of a command in the answer.
const MAX_COMMAND_CHARS: usize = 40;
/// Characters of an allocator's name in a cell.
const MAX_ALLOCATOR_CHARS: usize = 10;

/// Returns the whole report, ending with a newline.
pub(super) fn text(profile: &CallProfile, is_verbose: bool) -> Printout {
    let mut lines = lines(profile);
    if is_verbose {
        if let Some(all_calls) = profile.all_calls(0) {
            let share = estimate_words(all_calls.share_of_cpu);
            lines.push(format!("share of the CPU time: {share}"));
        }
        lines.push(LEGEND.to_string());
    } else {
        lines.truncate(MAX_LINES);
    }
    let parts: Vec<Printout> =
        vec![headline(profile).into(), table(profile, is_verbose).into(), lines.join("\n").into()];
    Printout::paragraphs(parts)
}

const LEGEND: &str = "ns/call: mean CPU time of a call, less what timing it adds; <=: an upper \
    bound; -: too short to be measured\np50, p99: of all calls of all runs; longest: by a wall \
    clock\nwall +%: what a wall clock would add, which goes on while the thread is off the \
    CPU\nshare of the CPU time: without profiling";

/// Returns whether the threads' time off the CPU is known.
fn knows_wall_time(profile: &CallProfile) -> bool {
    !profile.launches.iter().any(ProfiledLaunch::has_slow_clock)
}

/// Returns by how many percent a wall clock would tell more; none if it is unknown, or the cost is
/// only an upper bound.
fn wall_percent(profile: &CallProfile, row: &GroupCost) -> Option<f64> {
    if row.is_bound || !knows_wall_time(profile) {
        return None;
    }
    Some(100.0 * (row.wall_ns_per_call.value / row.ns_per_call.value - 1.0))
}

/// Returns the answer: the cost of a call, its share of the CPU time, other allocators, and what a
/// wall clock would tell.
pub(super) fn headline(profile: &CallProfile) -> MarkedText {
    let name = shortened(&shell_words::join(&profile.plan.command), MAX_COMMAND_CHARS);
    let Some(row) = profile.all_calls(0).or_else(|| costliest_function(profile)) else {
        return format!("No call of {name} was counted.").into();
    };
    let mut text =
        marked![subject(profile, row), " takes ", time_words(row), share_words(row, &name)];
    for (index, library) in profile.plan.allocators.iter().enumerate() {
        let ratio = profile
            .ratios
            .iter()
            .find(|ratio| ratio.allocator == index + 1 && ratio.group == row.group);
        if let Some(ratio) = ratio {
            text.push(format!(" With {library} it takes {}.", ratio_words(ratio)));
        }
    }
    if let Some(words) = wall_words(profile, row) {
        text.push(words);
    }
    text
}

/// Returns a sentence, after a blank, on what a wall clock would tell; none if it is hardly more.
fn wall_words(profile: &CallProfile, row: &GroupCost) -> Option<String> {
    let percent = wall_percent(profile, row)?;
    if row.switched > 0 && percent >= 1.0 {
        Some(format!(
            " A wall clock would say {} ({} % more): {} lost the CPU.",
            time(row.wall_ns_per_call.value),
            two_digits(percent),
            counted(row.switched as usize, "call")
        ))
    } else {
        None
    }
}

/// Returns the costs of the command's own allocator, or of the named functions, without sizes.
fn own_functions(profile: &CallProfile) -> impl Iterator<Item = &GroupCost> {
    profile.rows.iter().filter(|row| row.allocator == 0 && row.group.bytes.is_none())
}

/// Returns the most CPU time that all calls of a row may take, in nanoseconds.
fn max_total_ns(row: &GroupCost) -> f64 {
    row.calls * row.at_most_ns()
}

fn costliest_function(profile: &CallProfile) -> Option<&GroupCost> {
    own_functions(profile).max_by(|one, other| max_total_ns(one).total_cmp(&max_total_ns(other)))
}

/// Returns the subject of the answer: an allocation, the named function, or the costliest of
/// several.
fn subject(profile: &CallProfile, row: &GroupCost) -> String {
    let plan: &ProfilePlan = &profile.plan;
    let Some(function) = &row.group.function else {
        if plan.malloc {
            return "An allocation or free".to_string();
        }
        return plan.calls.first().cloned().unwrap_or_default();
    };
    let min_total_ns = row.calls * row.least_ns;
    let is_costliest = own_functions(profile)
        .all(|other| other.group == row.group || max_total_ns(other) < min_total_ns);
    let takes = if is_costliest { "takes most" } else { "may take most" };
    let functions = counted(own_functions(profile).count(), "function");
    format!("Of {functions}, {function} {takes}: a call")
}

/// Returns the end of the answer's first sentence: the share of the CPU time of the command `name`.
fn share_words(row: &GroupCost, name: &str) -> String {
    match row.share_of_cpu {
        Some(share) if !row.is_bound => {
            format!("; all take {} % of the CPU time of {name}.", two_digits(100.0 * share.value))
        }
        Some(share) if row.at_most_ns() > 0.0 => {
            let most = share.value / row.ns_per_call.value * row.most_ns;
            let percent = two_digits(100.0 * share.high.unwrap_or(most));
            format!("; all take at most {percent} % of the CPU time of {name}.")
        }
        _ => format!(" in {name}."),
    }
}

/// Returns the time of a call: `54.0 ns (50.1 to 57.0)`, `at most 5.0 ns`.
fn time_words(row: &GroupCost) -> MarkedText {
    let at_most_ns = row.at_most_ns();
    if at_most_ns <= 0.0 {
        return format!("no time that can be measured (not resolved: {})", time(at_most_ns)).into();
    }
    if row.is_bound {
        return marked!["at most ", MarkedText::figure(time(at_most_ns))];
    }
    measured_time(&row.ns_per_call)
}

/// Returns the time of a call that is no bound. One launch has no interval, but many calls: its
/// value is told with the reason.
fn measured_time(ns: &Estimate) -> MarkedText {
    match ns.quote_cost() {
        Ok(ns) => ns.marked_time(),
        Err(why) => {
            let figure = MarkedText::figure(time(ns.value));
            marked!["about ", figure, format!(" ({})", why.with_time_unit())]
        }
    }
}

/// Returns whether a row's cost is printed as an upper bound.
fn has_upper_bound(row: &GroupCost) -> bool {
    row.is_bound && row.at_most_ns() > 0.0
}

fn time_cell(row: &GroupCost) -> String {
    if has_upper_bound(row) {
        format!("<={}", figure(row.at_most_ns()))
    } else {
        figure(row.ns_per_call.value)
    }
}

fn interval_cell(row: &GroupCost) -> String {
    if has_upper_bound(row) && row.ns_per_call.interval().is_some() {
        format!("0 to {}", figure(row.at_most_ns()))
    } else {
        interval(Some(row.ns_per_call))
    }
}

fn ratio_words(ratio: &AllocatorRatio) -> String {
    let interval = ratio.ratio.interval();
    if ratio.is_bound {
        return match interval {
            Some(interval) if interval.high < 1.0 => {
                format!("at most {} times that", figure(interval.high))
            }
            _ => "a time that cannot be told apart from that".to_string(),
        };
    }
    let interval = match interval {
        Some(interval) => format!("{} to {}", figure(interval.low), figure(interval.high)),
        None => "not resolved".to_string(),
    };
    format!("{} times that ({interval})", figure(ratio.ratio.value))
}

fn table(profile: &CallProfile, is_verbose: bool) -> Table {
    let rows = profile.rows.iter().filter(|row| is_shown(profile, row, is_verbose));
    columns(profile).table(rows).first_to_go(&["p50"])
}

/// Declares the columns: those of several allocators, or of a single one.
fn columns(profile: &CallProfile) -> Columns<'_, &GroupCost> {
    let is_comparison = !profile.plan.allocators.is_empty();
    let mut columns = Columns::new().right("function", |row: &&GroupCost| function_name(row));
    if is_comparison {
        columns = columns.right("by", |row| {
            let library = library_name(profile.plan.allocator(row.allocator));
            shortened(library, MAX_ALLOCATOR_CHARS)
        });
    }
    columns = columns
        .right("bytes", |row| bytes_cell(&row.group))
        .right("calls", |row| grouped(row.calls))
        .right("ns/call", |row| time_cell(row))
        .right("interval", |row| interval_cell(row));
    if is_comparison {
        columns = columns.or_empty("ratio", |row| profile.ratio(row).map(ratio_cell));
    }
    columns = columns
        .right("p50", |row| quantile_cell(profile, row.p50_ns))
        .right("p99", |row| quantile_cell(profile, row.p99_ns));
    if is_comparison {
        return columns;
    }
    columns
        .right("longest", |row| time(row.longest_wall_ns as f64))
        .or_dash("wall +%", |row| wall_percent(profile, row).map(two_digits))
}

/// Returns the name of a row's function; `all` for all functions together.
pub(super) fn function_name(row: &GroupCost) -> String {
    row.group.function.clone().unwrap_or("all".to_string())
}

/// Returns a quantile in nanoseconds; a dash if it is too short to be told.
fn quantile_cell(profile: &CallProfile, ns: f64) -> String {
    if is_bound(ns, profile.known) { "-".to_string() } else { format!("{ns:.0}") }
}

/// Returns a ratio, in brackets if it is not resolved from 1.
fn ratio_cell(ratio: &AllocatorRatio) -> String {
    let value = match (ratio.is_bound, ratio.ratio.high) {
        (true, None) => return "-".to_string(),
        (true, Some(most)) => format!("<={}", figure(most)),
        (false, _) => figure(ratio.ratio.value),
    };
    if ratio.ratio.resolved { value } else { format!("({value})") }
}

/// Returns a short name of an allocator: of the path `/usr/lib/libjemalloc.so.2` it is `jemalloc`.
pub(super) fn library_name(path: &str) -> &str {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.strip_prefix("lib").and_then(|rest| rest.split('.').next()).unwrap_or(file)
}

/// Returns whether a row is printed: all functions together if there are several, each function,
/// and the sizes that matter if there is one allocator.
fn is_shown(profile: &CallProfile, row: &GroupCost, is_verbose: bool) -> bool {
    let Some(function) = &row.group.function else {
        return profile.rows.iter().filter(|row| row.group.bytes.is_none()).count() > 2;
    };
    if row.group.bytes.is_none() || is_verbose {
        return true;
    }
    profile.plan.allocators.is_empty()
        && share_of(profile, row, &CallGroup::of_function(function)) >= MIN_SHARE_OF_FUNCTION
        && share_of(profile, row, &CallGroup::ALL) >= MIN_SHARE_OF_ALL
}

/// Returns the share of a row's calls among those of a larger group.
fn share_of(profile: &CallProfile, row: &GroupCost, larger: &CallGroup) -> f64 {
    profile.row(row.allocator, larger).map_or(0.0, |larger| row.calls / larger.calls)
}

fn bytes_cell(group: &CallGroup) -> String {
    match group.bytes {
        None => "all".to_string(),
        Some((from, to)) if from == to => from.to_string(),
        Some((from, to)) if to < 1024 => format!("{from} to {to}"),
        Some((from, to)) => byte_range(from, to + 1),
    }
}

/// Returns the lines below the table, the most important ones first.
fn lines(profile: &CallProfile) -> Vec<String> {
    let mut lines = Vec::new();
    for notice in &profile.notices {
        lines.push(format!("note: {notice}"));
    }
    let failed = profile.launches.iter().filter(|launch| launch.exit_code != 0).count();
    if failed > 0 {
        let launches = profile.launches.len();
        lines.push(format!("note: runs that did not end with exit code 0: {failed} of {launches}"));
    }
    if profile.rows.iter().any(|row| row.is_bound) {
        lines.push(bound_line(profile));
    }
    if let Some(added_ns) = profile.added_ns {
        lines.push(format!("profiling added {} to a call", time(added_ns)));
    }
    if profile.ratios.iter().any(|ratio| ratio.group.bytes.is_none() && !ratio.ratio.resolved) {
        lines.push("a ratio in brackets is not resolved from 1".to_string());
    }
    if profile.rows.iter().any(|row| row.ns_per_call.interval().is_none()) {
        lines.push("intervals need 5 runs or more: -n 10".to_string());
    }
    lines
}

/// Explains why a cost is only an upper bound.
fn bound_line(profile: &CallProfile) -> String {
    let known = match profile.known {
        Some(known) => format!(
            "here {} was measured for a call that takes {}",
            time(known.told_ns),
            time(known.in_a_row_ns)
        ),
        None => "which was not measured".to_string(),
    };
    format!("<= is an upper bound: a timed call does not overlap with the code around it ({known})")
}
