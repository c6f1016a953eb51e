//! The report of `switchcost run` on the terminal: the answer, a table, the lines that matter; with
//! --verbose every figure.

use analysis::program::{ProgramCost, Range};
use analysis::used::{Figure, UserPart, UserSplit};
use launcher::Ending;
use rundata::machine::CpuAccounting;
use rundata::words::{bytes, time, times, whole};

use super::answer::{SwitchingShare, headline_in};
use super::findings::{
    CPU_LABEL, CommandRatio, CommandSummary, ComparedTime, FIGURE_SOURCES, FigureSource,
    SwitchOverhead, complete_runs, runs_of_command,
};
use super::hyperfine::{ChosenUnit, SortMethod, TableChoices};
use super::record::CommandUseRecord;
use crate::base::values::each_once;
use crate::report::output::declarations;
use crate::report::printout::{Printout, printout};
use crate::report::table::Table;
use crate::report::terminal::{MAX_LINES, TimeUnit, counted, figure};

/// Most outliers that are printed one by one.
const MAX_OUTLIERS: usize = 5;

/// Figures that are printed by default; --verbose prints all.
const BRIEF_FIGURES: [&str; 6] =
    ["real_ns", "cpu_ns", "max_resident_bytes", "voluntary", "involuntary", "run_delay_ns"];

/// Column in which the values of a list begin.
const LIST_INDENT: usize = CPU_LABEL.len() + 2;

const COUNTED_BY: &str = "switches: counted by the kernel for the command and all children that \
    it waited for (wait4). `switchcost trace` also counts yields, moves and orphans, and makes \
    each switch slower";

/// Returns the whole report, ending with a newline. The choices are for the first line and the table
/// below it.
pub(super) fn text(record: &CommandUseRecord, is_verbose: bool, choices: TableChoices) -> Printout {
    let unit = choices.unit.map(ChosenUnit::time_unit);
    let table: Printout = match &record.commands[..] {
        [summary] if summary.runs == 1 => brief_list(summary, unit).into(),
        [summary] => brief_table(summary, unit).into(),
        summaries => comparison_table(record, summaries, choices).into(),
    };
    let mut parts = vec![headline_in(record, unit).into(), table];
    if is_verbose {
        for summary in &record.commands {
            parts.push(details(summary));
        }
        let mut ratios = String::new();
        for ratio in &record.ratios {
            ratios += &ratio_line(ratio);
        }
        parts.push(ratios.into());
        let mut notices = String::new();
        for notice in &record.notices {
            notices += &format!("note: {notice}\n");
        }
        parts.push(notices.into());
        parts.push(COUNTED_BY.into());
        parts.push(format!("not recorded by Linux: {}", record.not_kept.join(", ")).into());
    } else {
        let mut lines = important_lines(record);
        lines.truncate(MAX_LINES);
        parts.push(lines.join("\n").into());
    }
    if let Some(gate) = &record.gate {
        parts.push((&gate.in_words).into());
    }
    Printout::paragraphs(parts)
}

/// Returns the lines below the table, the most important ones first.
fn important_lines(record: &CommandUseRecord) -> Vec<String> {
    let mut lines = Vec::new();
    for summary in &record.commands {
        lines.extend(failure_line(record, summary));
    }
    for event in record.events() {
        lines.push(format!("note: {event}"));
    }
    for summary in &record.commands {
        lines.extend(outlier_line(record, summary));
    }
    if let [summary] = &record.commands[..] {
        // The headline of a single run has the share.
        if summary.runs != 1 {
            if let Some(share) = SwitchingShare::from_summary(summary) {
                lines.push(share.in_sentence());
            }
        }
    } else {
        lines.extend(shares_line(record));
    }
    let mut notices = Vec::new();
    for summary in &record.commands {
        if let Some(overhead) = &summary.switching {
            notices.extend(&overhead.notices);
        }
    }
    for notice in each_once(notices) {
        lines.push(format!("note: {notice}"));
    }
    lines
}

/// Returns the share of each of several commands that switching takes, or why it is not known; `None`
/// if no estimate was asked for.
fn shares_line(record: &CommandUseRecord) -> Option<String> {
    let mut shares = Vec::new();
    for summary in &record.commands {
        let Some(overhead) = &summary.switching else { continue };
        let label = record.plan.label(summary.number);
        shares.push(match SwitchingShare::from_summary(summary) {
            Some(share) => format!("{label}: {}", share.in_list()),
            None => format!("{label}: not known ({})", why_no_share(summary, overhead)),
        });
    }
    if shares.is_empty() {
        return None;
    }
    Some(format!("switching, of the CPU time: {}", shares.join("; ")))
}

/// Returns why the share of a command is not known.
fn why_no_share(summary: &CommandSummary, overhead: &SwitchOverhead) -> String {
    if summary.switches().is_none_or(|count| count <= 0.0) {
        return "it did not switch".to_string();
    }
    match &overhead.cost {
        ProgramCost::Inconclusive { missing, .. } => missing.join("; "),
        ProgramCost::Estimated { .. } => "its range is too wide to be useful".to_string(),
    }
}

/// Returns how the runs of a command ended if all of several failed alike, and the flag that shows
/// why.
fn failure_line(record: &CommandUseRecord, summary: &CommandSummary) -> Option<String> {
    let [(ending, _)] = summary.endings[..] else { return None };
    if summary.runs == 1 || ending == (Ending::Exited { code: 0 }) {
        return None;
    }
    let label = record.plan.label(summary.number);
    let hint = if record.plan.show_output { "" } else { " (--show-output shows what they print)" };
    Some(format!("{label}: {}{hint}", endings_words(summary)))
}

/// Returns `1 of 20 runs is an outlier: round 3 took 90.0 ms, 7.50x the median`.
fn outlier_line(record: &CommandUseRecord, summary: &CommandSummary) -> Option<String> {
    let (mut farthest, mut max_distance) = (summary.outliers.first()?, 0);
    for outlier in &summary.outliers {
        let distance = (outlier.times_median.ln().abs() * 1e9) as u64;
        if distance >= max_distance {
            (farthest, max_distance) = (outlier, distance);
        }
    }
    let count = summary.outliers.len();
    let verb = if count == 1 { "is an outlier" } else { "are outliers; the farthest" };
    let mut name = String::new();
    if record.commands.len() > 1 {
        name = format!("{}: ", record.plan.label(summary.number));
    }
    Some(format!(
        "{name}{count} of {} {verb}: round {} took {}, {} the median",
        counted(summary.runs as usize, "run"),
        farthest.round + 1,
        time(farthest.real_ns as f64),
        times(farthest.times_median)
    ))
}

/// Builds a table with a row for each command.
fn comparison_table(
    record: &CommandUseRecord,
    summaries: &[CommandSummary],
    choices: TableChoices,
) -> Table {
    let first_unit = summaries.first().map_or(TimeUnit::for_time(0.0), real_time_unit);
    let unit = choices.unit.map_or(first_unit, ChosenUnit::time_unit);
    let mut summaries: Vec<&CommandSummary> = summaries.iter().collect();
    if choices.sort == SortMethod::MeanTime {
        let means = mean_real_times(record);
        summaries.sort_by(|one, other| means[one.number].total_cmp(&means[other.number]));
    }
    let heads = [
        "command".to_string(),
        format!("real {}", unit.name),
        "interval".to_string(),
        format!("CPU {}", unit.name),
        "switches".to_string(),
        "to first".to_string(),
        "interval".to_string(),
    ];
    let rows = summaries.into_iter().map(|summary| comparison_row(record, summary, unit));
    Table::new(heads, rows).texts(|column| column == 0)
}

/// Returns the mean real time of each command over the runs that count, in nanoseconds; infinity
/// without any.
fn mean_real_times(record: &CommandUseRecord) -> Vec<f64> {
    let runs = complete_runs(&record.runs);
    let mut means = Vec::new();
    for number in 0..record.plan.commands.len() {
        let runs = runs_of_command(&runs, number);
        let total: f64 = runs.iter().map(|run| run.used.real_ns as f64).sum();
        means.push(if runs.is_empty() { f64::INFINITY } else { total / runs.len() as f64 });
    }
    means
}

fn comparison_row(
    record: &CommandUseRecord,
    summary: &CommandSummary,
    unit: TimeUnit,
) -> [String; 7] {
    let (mut interval, mut cpu, mut switches) = ("-".to_string(), "-".to_string(), "-".to_string());
    if let Some(ends) = summary.interval("real_ns") {
        interval = format!("{} to {}", unit.figure(ends.low), unit.figure(ends.high));
    }
    if let Some(ns) = summary.median("cpu_ns") {
        cpu = unit.figure(ns);
    }
    if let Some(count) = summary.switches() {
        switches = whole(count.max(0.0));
    }
    let (mut ratio, mut ratio_interval) = (String::new(), String::new());
    for CommandRatio { command, estimate, figure: name } in &record.ratios {
        if name == ComparedTime::Real.name() && *command == summary.number {
            ratio = times(estimate.value);
            if let Some(ends) = estimate.interval() {
                ratio_interval = format!("{} to {}", figure(ends.low), figure(ends.high));
            }
        }
    }
    let label = record.plan.label(summary.number);
    let real = unit.figure(summary.median("real_ns").unwrap_or_default());
    [label, real, interval, cpu, switches, ratio, ratio_interval]
}

/// Returns the unit of time of a command's figures.
fn real_time_unit(summary: &CommandSummary) -> TimeUnit {
    TimeUnit::for_time(summary.median("real_ns").unwrap_or_default())
}

/// Returns the figures that have a row in reports.
fn labelled_figures() -> impl Iterator<Item = FigureSource> {
    FIGURE_SOURCES.into_iter().filter(|source| !source.label.is_empty())
}

/// Returns the figures that are printed by default.
fn brief_figures() -> impl Iterator<Item = FigureSource> {
    labelled_figures().filter(|source| BRIEF_FIGURES.contains(&source.name))
}

/// Returns a line for each figure of a single run that is printed by default, their times in one
/// unit.
fn brief_list(summary: &CommandSummary, unit: Option<TimeUnit>) -> String {
    let unit = unit.unwrap_or(real_time_unit(summary));
    let mut text = String::new();
    for FigureSource { label, name, .. } in brief_figures() {
        let Some(value) = summary.median(name) else { continue };
        text += &list_line(label, &in_unit(value, name, unit));
        if label == CPU_LABEL {
            for part in cpu_time_parts(summary, |ns| unit.words(ns)) {
                let mut value = format!("{} ", part.value);
                if !part.range.is_empty() {
                    value += &format!("({})", part.range);
                }
                text += &list_line(part.label, &value);
            }
        }
    }
    text
}

/// Returns a line for every figure of a single run.
fn full_list(summary: &CommandSummary) -> String {
    let mut text = String::new();
    for FigureSource { label, name, .. } in labelled_figures() {
        if let Some(value) = summary.median(name) {
            text += &list_line(label, &in_own_unit(value, name));
        } else if let Some(reason) = summary.missing.get(name) {
            text += &list_line(label, &format!("not known: {reason}"));
        } else {
            continue;
        }
        if label == CPU_LABEL {
            for part in cpu_time_parts(summary, time) {
                text += &list_line(part.label, &format!("{} {}", part.value, part.range));
            }
            text += &split_line(summary, LIST_INDENT);
        }
    }
    text
}

fn list_line(label: &str, value: &str) -> String {
    format!("{label:<LIST_INDENT$} {value}\n")
}

/// Formats a figure for a brief report: a time in `unit`, a count as a whole number.
fn in_unit(value: f64, name: &str, unit: TimeUnit) -> String {
    match declarations::unit_of(name) {
        "bytes" => bytes(value.max(0.0) as u64),
        "ns" => unit.words(value),
        _ if value.fract() != 0.0 => figure(value),
        _ => whole(value.max(0.0)),
    }
}

/// Formats a figure for a full report: a time in the unit that suits it.
fn in_own_unit(value: f64, name: &str) -> String {
    match declarations::unit_of(name) {
        "bytes" => bytes(value.max(0.0) as u64),
        "ns" => time(value),
        _ if value.fract() != 0.0 => figure(value),
        _ => format!("{value:.0}"),
    }
}

/// Builds a table of the figures over several runs that are printed by default, their times in one
/// unit.
fn brief_table(summary: &CommandSummary, unit: Option<TimeUnit>) -> Table {
    let unit = unit.unwrap_or(real_time_unit(summary));
    let mut rows: Vec<[String; 5]> = Vec::new();
    for FigureSource { label, name, .. } in brief_figures() {
        if let Some(figure) = summary.figure(name) {
            let format_value = |value: f64| in_unit(value, name, unit);
            let interval = interval_words(figure, "all alike", format_value);
            rows.push([
                label.to_string(),
                format_value(figure.estimate.value),
                interval.unwrap_or_default(),
                format_value(figure.min),
                format_value(figure.max),
            ]);
        }
        if label == CPU_LABEL {
            for CpuTimePart { label, value, range } in cpu_time_parts(summary, |ns| unit.words(ns))
            {
                rows.push([label.to_string(), value, range, String::new(), String::new()]);
            }
        }
    }
    Table::new(["", "median", "interval", "least", "most"], rows).texts(|column| column == 0)
}

/// Returns the ends of a figure's interval, or `alike` if they are equal; `None` without an interval.
fn interval_words(
    figure: &Figure,
    alike: &str,
    format_value: impl Fn(f64) -> String,
) -> Option<String> {
    let interval = figure.estimate.interval()?;
    if interval.low == interval.high {
        return Some(alike.to_string());
    }
    Some(format!("{} to {}", format_value(interval.low), format_value(interval.high)))
}

/// Returns a table of every figure over several runs, user and system time, and the figures that are
/// not known.
fn full_table(summary: &CommandSummary) -> Printout {
    let mut rows: Vec<[String; 6]> = Vec::new();
    for FigureSource { label, name, .. } in labelled_figures() {
        let Some(figure) = summary.figure(name) else { continue };
        let format_value = |value: f64| in_own_unit(value, name);
        let interval = interval_words(figure, "none: all alike", format_value);
        rows.push([
            label.to_string(),
            format_value(figure.estimate.value),
            interval.unwrap_or("-".to_string()),
            figure.spread.map_or("-".to_string(), format_value),
            format_value(figure.min),
            format_value(figure.max),
        ]);
    }
    let table = Table::new(["", "median", "interval", "spread", "min", "max"], rows);
    let mut lines = String::new();
    for CpuTimePart { label, value, range } in cpu_time_parts(summary, time) {
        lines += &format!("{label} {value} {range}\n");
    }
    lines += &split_line(summary, 0);
    for FigureSource { label, name, .. } in labelled_figures() {
        if let Some(reason) = summary.missing.get(name) {
            lines += &format!("{label} not known: {reason}\n");
        }
    }
    printout![table, "\n\n", lines]
}

/// Returns everything known about a command's runs, for --verbose.
fn details(summary: &CommandSummary) -> Printout {
    let command = shell_words::join(&summary.command);
    let mut text = printout![format!("{command}: {}\n\n", endings_words(summary))];
    if summary.runs == 1 {
        text.push(full_list(summary));
    } else {
        text.push(full_table(summary));
    }
    for outlier in summary.outliers.iter().take(MAX_OUTLIERS) {
        text.push(format!(
            "outlier: round {}: real {}, {}x the median\n",
            outlier.round + 1,
            time(outlier.real_ns as f64),
            figure(outlier.times_median)
        ));
    }
    if let Some(more @ 1..) = summary.outliers.len().checked_sub(MAX_OUTLIERS) {
        text.push(format!("and {} (--json has all)\n", counted(more, "further outlier")));
    }
    text.push(summary.switching.as_ref().map(overhead_lines));
    text
}

/// Returns how the runs of a command ended: `exit code 1`, or `20 runs, all with exit code 1`.
fn endings_words(summary: &CommandSummary) -> String {
    let runs = summary.runs;
    match summary.endings[..] {
        [(ending, _)] if runs == 1 => ending.to_string(),
        [(ending, _)] if ending != (Ending::Exited { code: 0 }) => {
            format!("{runs} runs, all with {ending}")
        }
        _ => format!("{runs} runs"),
    }
}

/// Returns the estimated overhead of a command's switches, and its assumptions, a line each.
fn overhead_lines(overhead: &SwitchOverhead) -> String {
    let mut text = String::new();
    if let Some(range) = overhead.overhead_ns {
        let mut direct = String::new();
        if let Some(range) = overhead.direct_overhead_ns {
            direct = format!(" (direct cost alone: {})", time_range(range));
        }
        text += &format!("estimated switch overhead: {} a run{direct}; ", time_range(range));
    }
    text += &format!("{}\n", overhead.cost.in_words());
    if let ProgramCost::Estimated { assumptions, .. } = &overhead.cost {
        text += &format!("  assumed: {}\n", assumptions.join("; "));
        if let Some(profile) = overhead.profile.known() {
            text += &format!("  costs of {} ({})\n", profile.run, profile.called());
        }
    }
    for notice in &overhead.notices {
        text += &format!("  {notice}\n");
    }
    text
}

fn time_range(range: Range) -> String {
    format!("{} to {}", time(range.low), time(range.high))
}

/// Returns `command 2 / command 1, real time: 1.500 (1.480 to 1.520)` as a line.
fn ratio_line(ratio: &CommandRatio) -> String {
    let time = if ratio.is_of(ComparedTime::Real) { ComparedTime::Real } else { ComparedTime::Cpu };
    let estimate = ratio.estimate;
    let range = match estimate.interval() {
        Some(interval) => format!("{:.3} to {:.3}", interval.low, interval.high),
        None => format!("{} rounds give no interval", estimate.rounds),
    };
    let unresolved = if estimate.resolved { "" } else { "not resolved from 1: " };
    format!(
        "command {} / command 1, {}: {:.3} ({unresolved}{range})\n",
        ratio.command + 1,
        time.title(),
        estimate.value
    )
}

/// User or system time of a command.
struct CpuTimePart {
    label: &'static str,
    value: String,
    /// Range of the value; empty if the kernel measured it exactly.
    range: String,
}

/// Returns user and system time, where they are known.
fn cpu_time_parts(summary: &CommandSummary, format_ns: impl Fn(f64) -> String) -> Vec<CpuTimePart> {
    let (Some(cpu_ns), Some(user)) = (summary.median("cpu_ns"), summary.split.user) else {
        return Vec::new();
    };
    let system = UserPart { value: 1.0 - user.value, low: 1.0 - user.high, high: 1.0 - user.low };
    let is_exact = summary.split.accounting.known() == Some(&CpuAccounting::Precise);
    let mut parts = Vec::new();
    for (label, part) in [("  user", user), ("  system", system)] {
        // Rounding may leave a part just below zero.
        let [value, low, high] = [part.value, part.low, part.high]
            .map(|share| format_ns((share * cpu_ns).round().max(0.0)));
        let range = if is_exact { String::new() } else { format!("{low} to {high}") };
        parts.push(CpuTimePart { label, value, range });
    }
    parts
}

/// Returns a line on how user and system time were told apart, or why they could not be; its text
/// begins at column `indent`.
fn split_line(summary: &CommandSummary, indent: usize) -> String {
    let UserSplit { accounting, tick_ns, ticks, user, with_children } = &summary.split;
    let Some(cpu_ns) = summary.median("cpu_ns") else { return String::new() };
    let tick_length = match tick_ns.known() {
        Some(ns) => format!("of {}", time(*ns as f64)),
        None => "whose length is not known".to_string(),
    };
    if user.is_none() {
        return format!(
            "{:<indent$} not resolved: sampled by timer ticks {tick_length}, too few of them in {} \
                of CPU time\n",
            "  user, system",
            time(cpu_ns * f64::from(summary.runs))
        );
    }
    if accounting.known() == Some(&CpuAccounting::Precise) {
        return String::new();
    }
    let ticks = match ticks {
        Some(count) => format!("about {count:.0}"),
        None => "no".to_string(),
    };
    let method = if *with_children {
        format!(
            "split by the kernel, which counts children without a timer tick as all user; the \
                range is what {ticks} ticks {tick_length} of its own allow"
        )
    } else {
        format!("split by {ticks} timer ticks {tick_length} (95 % interval)")
    };
    let mut assumption = String::new();
    if let Some(reason) = accounting.why() {
        assumption = format!("; assumed, because {reason}");
    }
    format!("{:<indent$} {method}{assumption}\n", "")
}
