//! `switchcost response` on the terminal: calls, signals and links.

use std::fmt::Write;
use std::path::Path;

use model::company::Company;
use model::estimate::Estimate;
use model::published::venix1984::{self, Processor};
use model::record::CaseSummary;
use model::response::{LinkCost, LoopCost, Record, Signals};
use model::ring::Case;
use model::trial::loops::SIGACTION;
use probe::trial::SYSTEM_CALLS;

use super::delays;
use crate::ring::comparison::not_switching;
use crate::ring::table::{by_cpu_time, cost_words};
use crate::terminal::{self, align, figure, interval_words, table};

/// The whole report, ending with a newline.
pub(crate) fn report(record: &Record, path: Option<&Path>) -> String {
    let mut text = String::new();
    let cpus: Vec<String> = record.header.plan.cpus().iter().map(u32::to_string).collect();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{}, on CPU {}\n", terminal::heading(&record.header), cpus.join(","));
    let sections = [
        system_calls(record),
        signals(record),
        links(record),
        delays::interrupts(record),
        delays::wakeup(record),
        delays::budget(record),
    ];
    for section in sections.into_iter().flatten() {
        let _ = writeln!(text, "{section}");
    }
    let cases = record.header.plan.cases.iter().zip(&record.cases);
    let mut lines: Vec<String> = cases
        .filter_map(|(case, of)| Some(terminal::failed(&case.title(), of.rounds(), of.failure()?)))
        .collect();
    lines.extend(record.ns_per_tick.map(terminal::ticks));
    lines.push(format!("machine: {}", record.noise.in_words()));
    lines.extend(record.company.as_ref().and_then(Company::line));
    let rounds = record.cases.iter().map(model::response::Summary::rounds).max().unwrap_or(0);
    let (header, end) = (&record.header, record.end.as_ref());
    lines.extend(terminal::end(header, end, rounds, record.worst_precision, &record.warnings));
    for line in lines {
        let _ = writeln!(text, "{line}");
    }
    let _ = writeln!(text, "{}", terminal::place(path));
    text
}

const CALLS_LEGEND: &str = "ns, ticks: per call of a hundred calls one after the other, less the empty loop of the same worker; enters kernel: entries per\n\
call, counted in a traced child\n";

/// The section, ending with a newline; none without a system call.
fn system_calls(record: &Record) -> Option<String> {
    let is_one = |cost: &&LoopCost| SYSTEM_CALLS.iter().any(|call| call.name == cost.call);
    let mut costs = record.loops.iter().filter(is_one).peekable();
    costs.peek()?;
    let mut table =
        table(["call", "ns", "interval", "ticks", "empty loop", "enters kernel", "rounds"]);
    for cost in costs {
        table.add_row([
            cost.call.clone(),
            figure(cost.ns.map(|e| e.value)),
            cost.ns.as_ref().map_or("-".to_string(), interval_words),
            figure(cost.ticks.map(|e| e.value)),
            figure(cost.empty_loop_ns.map(|e| e.value)),
            figure(cost.kernel_entries),
            record.cases[cost.case].rounds().to_string(),
        ]);
    }
    align(&mut table);
    Some(format!("system calls\n\n{table}\n\n{CALLS_LEGEND}"))
}

const SIGNALS_LEGEND: &str = "system call: getuid; interrupt latency: its estimate, a fourth of a system call; signal: kill to oneself, the handler installs itself again;\n\
kernel's processing: signal - 3 system calls; loop of two: two signals and two switches; context switch: (loop - 2 signals) / 2;\n\
each from cases of the same round; 1984: ms as printed (VenturCom, VENIX Kernel Response Time), and how many times the figure here\n";

/// The section, ending with a newline; none without a signal.
fn signals(record: &Record) -> Option<String> {
    let signals = record.signals.as_ref()?;
    // The file is part of the program and read by its tests.
    let published = venix1984::published().unwrap_or_default();
    let mut columns = vec!["".to_string(), "ns".to_string(), "interval".to_string()];
    columns.extend(published.iter().map(title));
    let mut table = table(columns);
    let install = record.loops.iter().find(|cost| cost.call == SIGACTION);
    let install = install.and_then(|cost| cost.ns.as_ref());
    let bare = |name: &str, here: Option<&Estimate>| {
        let mut cells = vec![name.to_string()];
        cells.push(figure(here.map(|e| e.value)));
        cells.push(here.map_or("-".to_string(), interval_words));
        cells
    };
    table.add_row(bare("installing a handler", install));
    for (name, here, then) in readings(signals) {
        let mut cells = bare(name, here);
        cells.extend(published.iter().map(|processor| beside(then(processor), here)));
        table.add_row(cells);
    }
    align(&mut table);
    let mut text =
        format!("signals, as the memorandum of 1984 has them\n\n{table}\n\n{SIGNALS_LEGEND}");
    for line in words(record, signals) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{line}");
    }
    Some(text)
}

fn title(processor: &Processor) -> String {
    match processor.clock_mhz {
        Some(clock) => format!("{} ({clock} MHz)", processor.name),
        None => processor.name.clone(),
    }
}

/// A figure of 1984 in milliseconds and how many times ours it is; a figure here that is not above
/// zero has no ratio.
fn beside(then_ms: f64, here: Option<&Estimate>) -> String {
    let ratio = here.filter(|here| here.value > 0.0).map(|here| then_ms * 1e6 / here.value);
    match ratio {
        Some(ratio) => format!("{then_ms} ({ratio:.0}x)"),
        None => then_ms.to_string(),
    }
}

type Reading<'a> = (&'static str, Option<&'a Estimate>, fn(&Processor) -> f64);

/// In the memorandum's order.
fn readings(found: &Signals) -> [Reading<'_>; 6] {
    [
        ("system call", found.system_call_ns.as_ref(), |p| p.system_call_ms),
        ("interrupt latency", found.interrupt_latency_ns.as_ref(), |p| p.interrupt_latency_ms),
        ("signal", found.signal_ns.as_ref(), |p| p.signal_ms),
        ("kernel's processing", found.kernel_processing_ns.as_ref(), |p| p.kernel_processing_ms),
        ("loop of two", found.two_process_loop_ns.as_ref(), |p| p.two_process_loop_ms),
        ("context switch", found.context_switch_ns.as_ref(), |p| p.context_switch_ms),
    ]
}

fn words(record: &Record, found: &Signals) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(switches) = found.switches_per_loop {
        lines.push(format!(
            "loop of two: {switches:.3} switches a loop as counted; its formula takes them for two"
        ));
    }
    let plan = &record.header.plan.cases;
    for account in &found.accounts {
        lines.push(format!(
            "{}: System {:.0}%, user {:.0}%, child sys {:.0}%, child user {:.0}% of {:.1} ms CPU time, by the timer ticks of {:.1} ms",
            plan[account.case].title(),
            account.system_percent,
            account.user_percent,
            account.child_system_percent,
            account.child_user_percent,
            account.total_ns as f64 / 1e6,
            account.sampled_ns as f64 / 1e6
        ));
    }
    lines.extend(found.in_words.iter().cloned());
    lines
}

const LINKS_LEGEND: &str = "a hop: one receive and one send by each of two processes on one CPU; ns/switch: what a hop costs above solo / switches as\n\
counted; above pipe: ns/switch less the pipe's of the same round\n";

/// The section, ending with a newline; none without a link.
fn links(record: &Record) -> Option<String> {
    if record.links.is_empty() {
        return None;
    }
    let mut table = table([
        "link",
        "ns/hop",
        "switches/hop",
        "ns/switch",
        "interval",
        "above pipe",
        "interval",
        "rounds",
    ]);
    for link in &record.links {
        if let Some(summary) = record.ring(link.case) {
            table.add_row(link_row(link, summary));
        }
    }
    align(&mut table);
    let mut text = format!("links\n\n{table}\n\n{LINKS_LEGEND}");
    let rings = record.links.iter().filter_map(|link| record.ring(link.case));
    let by_link = |case: &Case| case.link.clone();
    let by_cpu = by_cpu_time(rings.clone(), &record.noise, by_link);
    text.extend(by_cpu.map(|line| format!("{line}\n")));
    text.extend(not_switching(rings, ring_words).map(|line| format!("{line}\n")));
    Some(text)
}

fn ring_words(case: &Case) -> String {
    format!("{} by {}", case.members, case.link)
}

fn link_row(link: &LinkCost, summary: &CaseSummary) -> [String; 8] {
    let (cost, interval) = cost_words(summary);
    let above = link.above_pipe_ns.as_ref().filter(|_| !summary.does_not_switch);
    [
        link.link.clone(),
        figure(summary.ns_per_hop.map(|e| e.value)),
        summary.switches_per_hop.map_or("-".to_string(), |e| format!("{:.3}", e.value)),
        cost,
        interval,
        figure(above.map(|e| e.value)),
        above.map_or("-".to_string(), interval_words),
        summary.rounds.to_string(),
    ]
}
