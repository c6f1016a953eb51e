//! `switchcost run` on the terminal: a list of figures for one run, a table for several.

use std::fmt::Write;

use launcher::Ending;
use model::machine::CpuAccounting;
use model::words::{bytes, time};

use super::findings::{Figure, Ratio, Summary, Switching};
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
        let name = match record.plan.commands.len() {
            1 => String::new(),
            _ => format!("command {}: ", summary.number + 1),
        };
        // Writing to a String cannot fail.
        let _ =
            writeln!(text, "{name}{}: {}\n", shell_words::join(&summary.command), ends(summary));
        text.push_str(&figures(summary));
        let _ = writeln!(text, "not kept by Linux: {}", record.not_kept.join(", "));
        for outlier in summary.outliers.iter().take(MOST_OUTLIERS) {
            let _ = writeln!(
                text,
                "outlier: round {}: real {}, {}x the median",
                outlier.round + 1,
                time(outlier.real_ns as f64),
                figure(Some(outlier.times_median))
            );
        }
        if let Some(more @ 1..) = summary.outliers.len().checked_sub(MOST_OUTLIERS) {
            let _ = writeln!(text, "and {more} outliers more (--json names all)");
        }
        if let Some(switching) = &summary.switching {
            text.push_str(&switching_words(switching));
        }
        text.push('\n');
    }
    for ratio in &record.ratios {
        let _ = writeln!(text, "{}", ratio_words(ratio));
    }
    for notice in &record.notices {
        let _ = writeln!(text, "note: {notice}");
    }
    text
}

fn ends(summary: &Summary) -> String {
    match (&summary.endings[..], summary.runs) {
        ([(ending, _)], 1) => ending.to_string(),
        ([(Ending::Exited { code: 0 }, _)], runs) => format!("{runs} runs"),
        ([(ending, _)], runs) => format!("{runs} runs, all with {ending}"),
        (_, runs) => format!("{runs} runs"),
    }
}

fn switching_words(switching: &Switching) -> String {
    let mut text = String::new();
    let range = |range: Range| format!("{} to {}", time(range.low), time(range.high));
    let overhead = switching.overhead_ns.map_or(String::new(), |overhead| {
        let direct = switching
            .direct_overhead_ns
            .map_or(String::new(), |direct| format!(" (direct cost alone: {})", range(direct)));
        format!("estimated switch overhead: {} a run{direct}; ", range(overhead))
    });
    let _ = writeln!(text, "{overhead}{}", switching.cost.in_words());
    if let ProgramCost::Estimated { assumptions, .. } = &switching.cost {
        let _ = writeln!(text, "  assumed: {}", assumptions.join("; "));
        if let Some(profile) = switching.profile.known() {
            let _ = writeln!(text, "  costs of {}", profile.run);
        }
    }
    for notice in &switching.notices {
        let _ = writeln!(text, "  {notice}");
    }
    text
}

fn ratio_words(ratio: &Ratio) -> String {
    let name = if ratio.of == "real_ns" { "real time" } else { "CPU time" };
    let range = match (ratio.low, ratio.high) {
        (Some(low), Some(high)) => format!("{low:.3} to {high:.3}"),
        _ => format!("{} rounds give no interval", ratio.rounds),
    };
    let range = if ratio.resolved { range } else { format!("not resolved from 1: {range}") };
    format!("command 2 / command 1, {name}: {:.3} ({range})", ratio.value)
}

/// How a figure is shown.
#[derive(Clone, Copy)]
enum Unit {
    Time,
    Bytes,
    Count,
}

/// The rows, in order: a name for people, the figure's own name, its unit. The split of CPU time is put
/// in after it.
const ROWS: [(&str, &str, Unit); 18] = [
    ("real", "real_ns", Unit::Time),
    (CPU, "cpu_ns", Unit::Time),
    ("max resident", "max_resident_bytes", Unit::Bytes),
    ("minor faults", "minor_faults", Unit::Count),
    ("major faults", "major_faults", Unit::Count),
    ("blocks in", "input_blocks", Unit::Count),
    ("blocks out", "output_blocks", Unit::Count),
    ("voluntary switches", "voluntary", Unit::Count),
    ("involuntary switches", "involuntary", Unit::Count),
    ("run delay", "run_delay_ns", Unit::Time),
    ("migrations", "migrations", Unit::Count),
    ("peak threads seen", "peak_threads_seen", Unit::Count),
    ("read calls", "read_call_bytes", Unit::Bytes),
    ("write calls", "write_call_bytes", Unit::Bytes),
    ("storage read", "storage_read_bytes", Unit::Bytes),
    ("storage written", "storage_write_bytes", Unit::Bytes),
    ("of it cancelled", "cancelled_write_bytes", Unit::Bytes),
    ("resident at exec", "at_exec_resident_bytes", Unit::Bytes),
];

const CPU: &str = "CPU (user + system)";

fn figures(summary: &Summary) -> String {
    if summary.runs == 1 { list(summary) } else { table(summary) }
}

fn list(summary: &Summary) -> String {
    let mut text = String::new();
    let width = CPU.len() + 2;
    // Writing to a String cannot fail.
    for (label, name, unit) in ROWS {
        let value = match (summary.figure(name), summary.missing.get(name)) {
            (Some(figure), _) => shown(figure.estimate.value, unit),
            (None, Some(why)) => format!("not known: {why}"),
            (None, None) => continue,
        };
        let _ = writeln!(text, "{label:<width$} {value}");
        if label == CPU {
            text.push_str(&split(summary, width));
        }
    }
    text
}

fn table(summary: &Summary) -> String {
    let rows = ROWS.into_iter().filter_map(|(label, name, unit)| {
        let figure = summary.figure(name)?;
        Some([
            label.to_string(),
            shown(figure.estimate.value, unit),
            interval(figure, unit),
            figure.spread.map_or("-".to_string(), |spread| shown(spread, unit)),
            shown(figure.min, unit),
            shown(figure.max, unit),
        ])
    });
    let columns = ["", "median", "interval", "spread", "min", "max"];
    let mut text = format!("{}\n\n", terminal::table(columns, rows));
    text.push_str(&split(summary, 0));
    for (label, name, _) in ROWS {
        if let Some(why) = summary.missing.get(name) {
            let _ = writeln!(text, "{label} not known: {why}");
        }
    }
    text
}

fn shown(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Time => time(value),
        Unit::Bytes => bytes(value.max(0.0) as u64),
        Unit::Count if value.fract() == 0.0 => format!("{value:.0}"),
        Unit::Count => terminal::figure(Some(value)),
    }
}

fn interval(figure: &Figure, unit: Unit) -> String {
    match figure.estimate.interval() {
        Some(interval) if interval.low == interval.high => "none: all alike".to_string(),
        Some(interval) => {
            format!("{} to {}", shown(interval.low, unit), shown(interval.high, unit))
        }
        None => "-".to_string(),
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
    let mut text = String::new();
    // What rounding leaves of nothing is nothing.
    let shown = |part: f64| time((part * cpu).round().max(0.0));
    for (label, part) in [("  user", *user), ("  system", system)] {
        let range = match precise {
            true => String::new(),
            false => format!(" ({} to {})", shown(part.low), shown(part.high)),
        };
        let _ = writeln!(text, "{label:<width$} {}{range}", shown(part.value));
    }
    if !precise {
        let ticks = ticks.map_or("no".to_string(), |ticks| format!("about {ticks:.0}"));
        let unsure = accounting.why().map_or(String::new(), |why| format!("; assumed, as {why}"));
        let rests = match with_children {
            true => format!(
                "split by the kernel, which calls children that saw no timer tick all user; in brackets all that it may be by {ticks} ticks {tick} of its own"
            ),
            false => format!("split by {ticks} timer ticks {tick} (95 % interval)"),
        };
        let _ = writeln!(text, "{:<width$} {rests}{unsure}", "");
    }
    text
}
