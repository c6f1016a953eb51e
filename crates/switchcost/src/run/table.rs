//! `switchcost run` on the terminal: a list of figures for one run, a table for several.

use launcher::Ending;
use model::machine::CpuAccounting;
use model::words::{bytes, time};

use super::findings::{CPU, Ratio, SOURCES, Summary, Switching};
use super::record::Record;
use super::split::{Part, Split};
use crate::terminal::{self, figure};
use crate::watch::findings::{ProgramCost, Range};

/// Outliers that are named one by one.
const MOST_OUTLIERS: usize = 5;

/// The whole report, ending with a newline.
pub(super) fn text(record: &Record) -> String {
    let mut text = String::new();
    for summary in &record.commands {
        let (name, command) =
            (record.plan.name(summary.number), shell_words::join(&summary.command));
        text += &format!("{name}{command}: {}\n\n", ends(summary));
        text += &if summary.runs == 1 { list(summary) } else { table(summary) };
        text += &format!("not kept by Linux: {}\n", record.not_kept.join(", "));
        for outlier in summary.outliers.iter().take(MOST_OUTLIERS) {
            text += &format!(
                "outlier: round {}: real {}, {}x the median\n",
                outlier.round + 1,
                time(outlier.real_ns as f64),
                figure(outlier.times_median)
            );
        }
        if let Some(more @ 1..) = summary.outliers.len().checked_sub(MOST_OUTLIERS) {
            text += &format!("and {more} outliers more (--json names all)\n");
        }
        text += &summary.switching.as_ref().map_or(String::new(), switching_words);
        text.push('\n');
    }
    text.extend(record.ratios.iter().map(ratio_words));
    text.extend(record.notices.iter().map(|notice| format!("note: {notice}\n")));
    text
}

fn ends(summary: &Summary) -> String {
    match (&summary.endings[..], summary.runs) {
        ([(ending, _)], 1) => ending.to_string(),
        ([(ending, _)], runs) if *ending != Ending::Exited { code: 0 } => {
            format!("{runs} runs, all with {ending}")
        }
        (_, runs) => format!("{runs} runs"),
    }
}

fn switching_words(switching: &Switching) -> String {
    let range = |range: Range| format!("{} to {}", time(range.low), time(range.high));
    let direct = switching
        .direct_overhead_ns
        .map_or(String::new(), |direct| format!(" (direct cost alone: {})", range(direct)));
    let overhead = switching.overhead_ns.map_or(String::new(), |overhead| {
        format!("estimated switch overhead: {} a run{direct}; ", range(overhead))
    });
    let mut text = format!("{overhead}{}\n", switching.cost.in_words());
    if let ProgramCost::Estimated { assumptions, .. } = &switching.cost {
        text += &format!("  assumed: {}\n", assumptions.join("; "));
        if let Some(profile) = switching.profile.known() {
            text += &format!("  costs of {}\n", profile.run);
        }
    }
    text.extend(switching.notices.iter().map(|notice| format!("  {notice}\n")));
    text
}

fn ratio_words(ratio: &Ratio) -> String {
    let Ratio { of, estimate } = ratio;
    let name = if of == "real_ns" { "real time" } else { "CPU time" };
    let range = match estimate.interval() {
        Some(interval) => format!("{:.3} to {:.3}", interval.low, interval.high),
        None => format!("{} rounds give no interval", estimate.rounds),
    };
    let unresolved = if estimate.resolved { "" } else { "not resolved from 1: " };
    format!("command 2 / command 1, {name}: {:.3} ({unresolved}{range})\n", estimate.value)
}

/// The rows, in order: a name for people and the figure's own name.
fn rows() -> impl Iterator<Item = (&'static str, &'static str)> {
    SOURCES.into_iter().map(|(name, label, _)| (label, name)).filter(|(label, _)| !label.is_empty())
}

fn list(summary: &Summary) -> String {
    let mut text = String::new();
    let width = CPU.len() + 2;
    for (label, name) in rows() {
        let value = match (summary.figure(name), summary.missing.get(name)) {
            (Some(figure), _) => shown(figure.estimate.value, name),
            (None, Some(why)) => format!("not known: {why}"),
            (None, None) => continue,
        };
        text += &format!("{label:<width$} {value}\n");
        if label == CPU {
            text += &split(summary, width);
        }
    }
    text
}

fn table(summary: &Summary) -> String {
    let figures = rows().filter_map(|(label, name)| {
        let of = summary.figure(name)?;
        let shown = |value: f64| shown(value, name);
        let interval = match of.estimate.interval() {
            Some(interval) if interval.low == interval.high => "none: all alike".to_string(),
            Some(interval) => format!("{} to {}", shown(interval.low), shown(interval.high)),
            None => "-".to_string(),
        };
        let (value, spread) = (shown(of.estimate.value), of.spread.map(shown));
        let spread = spread.unwrap_or("-".to_string());
        Some([label.to_string(), value, interval, spread, shown(of.min), shown(of.max)])
    });
    let table = terminal::table(["", "median", "interval", "spread", "min", "max"], figures);
    let unknown = rows().filter_map(|(label, name)| {
        Some(format!("{label} not known: {}\n", summary.missing.get(name)?))
    });
    format!("{table}\n\n{}{}", split(summary, 0), unknown.collect::<String>())
}

/// By the unit that the figure's name ends with.
fn shown(value: f64, name: &str) -> String {
    match name {
        _ if name.ends_with("_ns") => time(value),
        _ if name.ends_with("_bytes") => bytes(value.max(0.0) as u64),
        _ if value.fract() == 0.0 => format!("{value:.0}"),
        _ => figure(value),
    }
}

/// User and system time, as far as they are known, or what resolution there is instead.
fn split(summary: &Summary, width: usize) -> String {
    let Split { accounting, tick_ns, ticks, user, with_children } = &summary.split;
    let Some(cpu) = summary.median("cpu_ns") else { return String::new() };
    let tick = tick_ns
        .known()
        .map_or("whose length is not known".to_string(), |ns| format!("of {}", time(*ns as f64)));
    let Some(user) = user else {
        return format!(
            "{:<width$} not resolved: sampled by timer ticks {tick}, of which too few fell into {} of CPU time\n",
            "  user, system",
            time(cpu * f64::from(summary.runs))
        );
    };
    let system = Part { value: 1.0 - user.value, low: 1.0 - user.high, high: 1.0 - user.low };
    let precise = accounting.known() == Some(&CpuAccounting::Precise);
    // What rounding leaves of nothing is nothing.
    let shown = |part: f64| time((part * cpu).round().max(0.0));
    let line = |(label, part): (&str, Part)| {
        let range = match precise {
            true => String::new(),
            false => format!(" ({} to {})", shown(part.low), shown(part.high)),
        };
        format!("{label:<width$} {}{range}\n", shown(part.value))
    };
    let text = [("  user", *user), ("  system", system)].map(line).concat();
    if precise {
        return text;
    }
    let ticks = ticks.map_or("no".to_string(), |ticks| format!("about {ticks:.0}"));
    let unsure = accounting.why().map_or(String::new(), |why| format!("; assumed, as {why}"));
    let rests = match with_children {
        true => format!(
            "split by the kernel, which calls children that saw no timer tick all user; in brackets all that it may be by {ticks} ticks {tick} of its own"
        ),
        false => format!("split by {ticks} timer ticks {tick} (95 % interval)"),
    };
    format!("{text}{:<width$} {rests}{unsure}\n", "")
}
