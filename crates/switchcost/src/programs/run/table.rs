//! `switchcost run` on the terminal: the answer, a table, the lines that matter; with --verbose
//! every figure.

use analysis::program::{ProgramCost, Range};
use analysis::used::{Figure, UserPart, UserSplit};
use launcher::Ending;
use rundata::machine::CpuAccounting;
use rundata::words::{bytes, time, times, whole};

use super::answer::{headline, switches, switching, switching_share};
use super::findings::{CPU, Outlier, Ratio, SOURCES, Summary, Switching};
use super::record::Record;
use crate::report::output::declarations;
use crate::report::printout::{Printout, printout};
use crate::report::table::Table;
use crate::report::terminal::{MAX_LINES, TimeUnit, counted, figure};

/// Outliers that are named one by one.
const MOST_OUTLIERS: usize = 5;

/// The figures of a command that are printed by default; all others with --verbose.
const FEW: [&str; 6] =
    ["real_ns", "cpu_ns", "max_resident_bytes", "voluntary", "involuntary", "run_delay_ns"];

const COUNTED_BY: &str = "switches: counted by the kernel for the command and all children that \
    it waited for (wait4). `switchcost trace` also counts yields, moves and orphans, and makes \
    each switch slower";

/// The whole report, ending with a newline.
pub(super) fn text(record: &Record, is_verbose: bool) -> Printout {
    let table = match &record.commands[..] {
        [one] if one.runs == 1 => list(one, true).into(),
        [one] => table(one, true).into(),
        all => comparison(record, all).into(),
    };
    let mut parts: Vec<Printout> = vec![headline(record).into(), table];
    let mut lines: Vec<String> = lines(record);
    if is_verbose {
        parts.extend(record.commands.iter().map(details));
        let ratios: String = record.ratios.iter().map(ratio_words).collect();
        let notices: String =
            record.notices.iter().map(|notice| format!("note: {notice}\n")).collect();
        parts.extend([ratios.into(), notices.into(), COUNTED_BY.into()]);
        parts.push(format!("not recorded by Linux: {}", record.not_kept.join(", ")).into());
    } else {
        lines.truncate(MAX_LINES);
        parts.push(lines.join("\n").into());
    }
    parts.extend(record.gate.iter().map(|gate| Printout::from(&gate.in_words)));
    Printout::paragraphs(parts)
}

/// Lines that matter, the most important ones first.
fn lines(record: &Record) -> Vec<String> {
    let mut lines: Vec<String> =
        record.commands.iter().filter_map(|summary| failed(record, summary)).collect();
    lines.extend(record.events().iter().map(|event| format!("note: {event}")));
    lines.extend(record.commands.iter().filter_map(|summary| outliers(record, summary)));
    match &record.commands[..] {
        [one] if one.runs == 1 => {} // The headline has it.
        [one] => lines.extend(switching(one)),
        _ => lines.extend(shares(record)),
    }
    let switching = record.commands.iter().filter_map(|summary| summary.switching.as_ref());
    let notices = switching.flat_map(|switching| &switching.notices);
    lines.extend(
        crate::base::values::each_once(notices).into_iter().map(|told| format!("note: {told}")),
    );
    lines
}

/// What switching took of each of several commands, or why that is not told; nothing where no
/// estimate was asked for.
fn shares(record: &Record) -> Option<String> {
    let estimated = record.commands.iter().filter(|summary| summary.switching.is_some());
    let mut shares = Vec::new();
    for summary in estimated {
        let label = record.plan.label(summary.number);
        shares.push(match switching_share(summary) {
            Some(share) => format!("{label}: {share}"),
            None => format!("{label}: not known ({})", why_no_share(summary)),
        });
    }
    (!shares.is_empty()).then(|| format!("switching, of the CPU time: {}", shares.join("; ")))
}

/// Why what switching takes of a command is not told.
fn why_no_share(summary: &Summary) -> String {
    if switches(summary).is_none_or(|count| count <= 0.0) {
        return "it did not switch".to_string();
    }
    match summary.switching.as_ref().map(|switching| &switching.cost) {
        Some(ProgramCost::Inconclusive { missing, .. }) => missing.join("; "),
        _ => "its range is too wide to be useful".to_string(),
    }
}

/// Where no run of several was a success: how they ended, and how to see why.
fn failed(record: &Record, summary: &Summary) -> Option<String> {
    let [(ending, _)] = summary.endings[..] else { return None };
    let is_told = summary.runs > 1 && ending != Ending::Exited { code: 0 };
    let how = if record.plan.show_output { "" } else { " (--show-output shows what they print)" };
    is_told.then(|| format!("{}: {}{how}", record.plan.label(summary.number), ends(summary)))
}

/// `1 of 20 runs is an outlier: round 3 took 90.0 ms, 7.50x the median`
fn outliers(record: &Record, summary: &Summary) -> Option<String> {
    let far = |of: &&Outlier| (of.times_median.ln().abs() * 1e9) as u64;
    let farthest = summary.outliers.iter().max_by_key(far)?;
    let count = summary.outliers.len();
    let are = if count == 1 { "is an outlier" } else { "are outliers; the farthest" };
    let name = match record.commands.len() {
        1 => String::new(),
        _ => format!("{}: ", record.plan.label(summary.number)),
    };
    Some(format!(
        "{name}{count} of {} {are}: round {} took {}, {} the median",
        counted(summary.runs as usize, "run"),
        farthest.round + 1,
        time(farthest.real_ns as f64),
        times(farthest.times_median)
    ))
}

/// A row for each command.
fn comparison(record: &Record, all: &[Summary]) -> Table {
    let real = |summary: &Summary| summary.median("real_ns").unwrap_or_default();
    let unit = TimeUnit::for_time(all.first().map_or(0.0, real));
    let time = |ns: Option<f64>| ns.map_or("-".to_string(), |ns| unit.figure(ns));
    let cells = |summary: &Summary| {
        let interval = summary.figure("real_ns").and_then(|real| real.estimate.interval());
        let range = interval.map(|i| format!("{} to {}", unit.figure(i.low), unit.figure(i.high)));
        let over = |ratio: &&Ratio| ratio.of == "real_ns" && ratio.command == summary.number;
        let ratio = record.ratios.iter().find(over).map(|ratio| ratio.estimate);
        let own = ratio.map(|of| times(of.value)).unwrap_or_default();
        let of = ratio.and_then(|of| of.interval());
        let of = of.map(|i| format!("{} to {}", figure(i.low), figure(i.high)));
        let count = switches(summary).map_or("-".to_string(), |n| whole(n.max(0.0)));
        [
            time(Some(real(summary))),
            range.unwrap_or("-".to_string()),
            time(summary.median("cpu_ns")),
            count,
            own,
            of.unwrap_or_default(),
        ]
    };
    let header = [
        format!("real {}", unit.name),
        "interval".to_string(),
        format!("CPU {}", unit.name),
        "switches".to_string(),
        "to first".to_string(),
        "interval".to_string(),
    ];
    let row = |summary: &Summary| {
        let name = record.plan.label(summary.number);
        std::iter::once(name).chain(cells(summary))
    };
    let header = std::iter::once("command".to_string()).chain(header);
    Table::new(header, all.iter().map(row)).texts(|at| at == 0)
}

/// The figures of one run, a line each: the few that matter, their times in one unit, or all.
fn list(summary: &Summary, is_few: bool) -> String {
    let unit = is_few.then(|| unit_of(summary));
    let width = CPU.len() + 2;
    let mut text = String::new();
    for (label, name) in rows().filter(|(_, name)| !is_few || FEW.contains(name)) {
        let value = match (summary.median(name), summary.missing.get(name)) {
            (Some(value), _) => in_unit(value, name, unit),
            (None, Some(why)) if !is_few => format!("not known: {why}"),
            (None, _) => continue,
        };
        text += &format!("{label:<width$} {value}\n");
        if label != CPU {
            continue;
        }
        for [label, value, range] in parts(summary, |ns| in_unit(ns, "cpu_ns", unit)) {
            let range = if is_few && !range.is_empty() { format!("({range})") } else { range };
            text += &format!("{label:<width$} {value} {range}\n");
        }
        if !is_few {
            text += &split(summary, width);
        }
    }
    text
}

/// That of the times of a command's figures.
fn unit_of(summary: &Summary) -> TimeUnit {
    TimeUnit::for_time(summary.median("real_ns").unwrap_or_default())
}

/// Returns a figure in the unit of its column; a time in `unit`, or else in the one that suits it.
fn in_unit(value: f64, name: &str, unit: Option<TimeUnit>) -> String {
    match (declarations::unit_of(name), unit) {
        ("bytes", _) => bytes(value.max(0.0) as u64),
        ("ns", Some(unit)) => unit.words(value),
        ("ns", None) => time(value),
        _ if value.fract() != 0.0 => figure(value),
        (_, Some(_)) => whole(value.max(0.0)),
        (_, None) => format!("{value:.0}"),
    }
}

/// Figures over runs, a row each: the few that matter, their times in one unit, or all.
fn table(summary: &Summary, is_few: bool) -> Table {
    let unit = is_few.then(|| unit_of(summary));
    let [alike, none] = if is_few { ["all alike", ""] } else { ["none: all alike", "-"] };
    let row = |label: &str, name: &str, of: &Figure| {
        let cell = |value: f64| in_unit(value, name, unit);
        let interval = match of.estimate.interval() {
            Some(interval) if interval.low == interval.high => alike.to_string(),
            Some(interval) => format!("{} to {}", cell(interval.low), cell(interval.high)),
            None => none.to_string(),
        };
        let spread = (!is_few).then(|| of.spread.map_or("-".to_string(), cell));
        let first = [label.to_string(), cell(of.estimate.value), interval];
        first.into_iter().chain(spread).chain([cell(of.min), cell(of.max)]).collect::<Vec<_>>()
    };
    let mut all = Vec::new();
    for (label, name) in rows().filter(|(_, name)| !is_few || FEW.contains(name)) {
        all.extend(summary.figure(name).map(|of| row(label, name, of)));
        if label == CPU && is_few {
            let parts = parts(summary, |ns| in_unit(ns, name, unit)).into_iter();
            all.extend(parts.map(|part| [&part[..], &[String::new(), String::new()]].concat()));
        }
    }
    match is_few {
        true => Table::new(["", "median", "interval", "least", "most"], all).texts(|at| at == 0),
        false => Table::new(["", "median", "interval", "spread", "min", "max"], all),
    }
}

/// All that is known of a command's runs, for --verbose.
fn details(summary: &Summary) -> Printout {
    let command = shell_words::join(&summary.command);
    let mut text = printout![format!("{command}: {}\n\n", ends(summary))];
    if summary.runs == 1 {
        text.push(list(summary, false));
    } else {
        text.push(full_table(summary));
    }
    for outlier in summary.outliers.iter().take(MOST_OUTLIERS) {
        text.push(format!(
            "outlier: round {}: real {}, {}x the median\n",
            outlier.round + 1,
            time(outlier.real_ns as f64),
            figure(outlier.times_median)
        ));
    }
    if let Some(more @ 1..) = summary.outliers.len().checked_sub(MOST_OUTLIERS) {
        text.push(format!("and {} (--json has all)\n", counted(more, "further outlier")));
    }
    text.push(summary.switching.as_ref().map(switching_words));
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
            text += &format!("  costs of {} ({})\n", profile.run, profile.called());
        }
    }
    text.extend(switching.notices.iter().map(|notice| format!("  {notice}\n")));
    text
}

fn ratio_words(ratio: &Ratio) -> String {
    let Ratio { of, command, estimate } = ratio;
    let name = if of == "real_ns" { "real time" } else { "CPU time" };
    let range = match estimate.interval() {
        Some(interval) => format!("{:.3} to {:.3}", interval.low, interval.high),
        None => format!("{} rounds give no interval", estimate.rounds),
    };
    let unresolved = if estimate.resolved { "" } else { "not resolved from 1: " };
    let number = command + 1;
    format!("command {number} / command 1, {name}: {:.3} ({unresolved}{range})\n", estimate.value)
}

/// The rows, in order: a name for people and the figure's own name.
fn rows() -> impl Iterator<Item = (&'static str, &'static str)> {
    SOURCES.into_iter().map(|(name, label, _)| (label, name)).filter(|(label, _)| !label.is_empty())
}

fn full_table(summary: &Summary) -> Printout {
    let table = table(summary, false);
    let unknown = rows().filter_map(|(label, name)| {
        Some(format!("{label} not known: {}\n", summary.missing.get(name)?))
    });
    let parts = parts(summary, time).into_iter();
    let parts = parts.map(|[label, value, range]| format!("{label} {value} {range}\n"));
    let parts: String = parts.collect();
    printout![table, "\n\n", parts, split(summary, 0), unknown.collect::<String>()]
}

/// User and system time where the split is known: label, value, range. Of an exact one there is no
/// range.
fn parts(summary: &Summary, shown: impl Fn(f64) -> String) -> Vec<[String; 3]> {
    let (Some(cpu), Some(user)) = (summary.median("cpu_ns"), summary.split.user) else {
        return Vec::new();
    };
    let system = UserPart { value: 1.0 - user.value, low: 1.0 - user.high, high: 1.0 - user.low };
    let precise = summary.split.accounting.known() == Some(&CpuAccounting::Precise);
    // What rounding leaves of nothing is nothing.
    let shown = |part: f64| shown((part * cpu).round().max(0.0));
    let range = |part: UserPart| match precise {
        true => String::new(),
        false => format!("{} to {}", shown(part.low), shown(part.high)),
    };
    let part = |label: &str, part: UserPart| [label.to_string(), shown(part.value), range(part)];
    vec![part("  user", user), part("  system", system)]
}

/// What user and system time rest on, or what resolution there is instead.
fn split(summary: &Summary, width: usize) -> String {
    let UserSplit { accounting, tick_ns, ticks, user, with_children } = &summary.split;
    let Some(cpu) = summary.median("cpu_ns") else { return String::new() };
    let tick = tick_ns
        .known()
        .map_or("whose length is not known".to_string(), |ns| format!("of {}", time(*ns as f64)));
    if user.is_none() {
        return format!(
            "{:<width$} not resolved: sampled by timer ticks {tick}, too few of them in {} of \
                CPU time\n",
            "  user, system",
            time(cpu * f64::from(summary.runs))
        );
    }
    if accounting.known() == Some(&CpuAccounting::Precise) {
        return String::new();
    }
    let ticks = ticks.map_or("no".to_string(), |ticks| format!("about {ticks:.0}"));
    let unsure = accounting.why().map_or(String::new(), |why| format!("; assumed, because {why}"));
    let rests = match with_children {
        true => format!(
            "split by the kernel, which counts children without a timer tick as all user; the \
                range is what {ticks} ticks {tick} of its own allow"
        ),
        false => format!("split by {ticks} timer ticks {tick} (95 % interval)"),
    };
    format!("{:<width$} {rests}{unsure}\n", "")
}
