//! `switchcost response` on the terminal: calls, signals and links.

use std::iter::once;

use model::estimate::Estimate;
use model::published::venix1984::{self, Processor};
use model::response::{LinkCost, LoopCost, Record, Signals};
use model::ring::Case;
use model::trial::loops::SIGACTION;
use probe::trial::SYSTEM_CALLS;

use super::delays;
use crate::ring::comparison::not_switching;
use crate::ring::table::{by_cpu_time, cost_words, switches_words};
use crate::terminal::{Text, cpu_list, figure, interval, table, value};

pub(crate) fn text(record: &Record) -> Text {
    let own = [system_calls, signals, links];
    let sections = own.into_iter().chain([delays::interrupts, delays::wakeup, delays::budget]);
    let body = sections.filter_map(|of| Some(of(record)? + "\n")).collect();
    let heading = format!(", on CPU {}", cpu_list(&record.header.plan.cpus()));
    Text { heading, body, findings: Vec::new() }
}

const CALLS_LEGEND: &str = "ns, ticks: per call of a hundred calls one after the other, less the empty loop of the same worker; enters kernel: entries per\n\
call, counted in a traced child\n";

/// The section, ending with a newline; none without a system call.
fn system_calls(record: &Record) -> Option<String> {
    let is_one = |cost: &&LoopCost| SYSTEM_CALLS.iter().any(|call| call.name == cost.call);
    let row = |cost: &LoopCost| {
        [
            cost.call.clone(),
            value(cost.ns),
            interval(cost.ns),
            value(cost.ticks),
            value(cost.empty_loop_ns),
            figure(cost.kernel_entries),
            record.cases[cost.case].rounds().to_string(),
        ]
    };
    let mut rows = record.loops.iter().filter(is_one).map(row).peekable();
    rows.peek()?;
    let columns = ["call", "ns", "interval", "ticks", "empty loop", "enters kernel", "rounds"];
    Some(format!("system calls\n\n{}\n\n{CALLS_LEGEND}", table(columns, rows)))
}

const SIGNALS_LEGEND: &str = "system call: getuid; interrupt latency: its estimate, a fourth of a system call; signal: kill to oneself, the handler installs itself again;\n\
kernel's processing: signal - 3 system calls; loop of two: two signals and two switches; context switch: (loop - 2 signals) / 2;\n\
each from cases of the same round; 1984: ms as printed (VenturCom, VENIX Kernel Response Time), and how many times the figure here\n";

/// A reading of the memorandum: what it is called, its figure here, and that of a processor of 1984.
type Reading = (&'static str, Option<Estimate>, fn(&Processor) -> f64);

/// The section, ending with a newline; none without a signal.
fn signals(record: &Record) -> Option<String> {
    let found = record.signals.as_ref()?;
    // The file is part of the program and read by its tests.
    let published = venix1984::published().unwrap_or_default();
    // In the memorandum's order.
    let readings: [Reading; 6] = [
        ("system call", found.system_call_ns, |p| p.system_call_ms),
        ("interrupt latency", found.interrupt_latency_ns, |p| p.interrupt_latency_ms),
        ("signal", found.signal_ns, |p| p.signal_ms),
        ("kernel's processing", found.kernel_processing_ns, |p| p.kernel_processing_ms),
        ("loop of two", found.two_process_loop_ns, |p| p.two_process_loop_ms),
        ("context switch", found.context_switch_ns, |p| p.context_switch_ms),
    ];
    let here = |name: &str, of: Option<Estimate>| vec![name.to_string(), value(of), interval(of)];
    let row = |(name, of, then): Reading| {
        let beside = published.iter().map(|processor| beside(then(processor), of));
        here(name, of).into_iter().chain(beside).collect()
    };
    let title = |processor: &Processor| match processor.clock_mhz {
        Some(clock) => format!("{} ({clock} MHz)", processor.name),
        None => processor.name.clone(),
    };
    let columns = ["", "ns", "interval"].map(String::from);
    let columns: Vec<String> = columns.into_iter().chain(published.iter().map(title)).collect();
    let install = record.loops.iter().find(|cost| cost.call == SIGACTION);
    let install = here("installing a handler", install.and_then(|cost| cost.ns));
    let table = table(columns, once(install).chain(readings.into_iter().map(row)));
    let words: String = words(record, found).into_iter().map(|line| line + "\n").collect();
    Some(format!(
        "signals, as the memorandum of 1984 has them\n\n{table}\n\n{SIGNALS_LEGEND}{words}"
    ))
}

/// A figure of 1984 in milliseconds and how many times ours it is; a figure here that is not above
/// zero has no ratio.
fn beside(then_ms: f64, here: Option<Estimate>) -> String {
    let ratio = here.filter(|here| here.value > 0.0).map(|here| then_ms * 1e6 / here.value);
    ratio.map_or(then_ms.to_string(), |ratio| format!("{then_ms} ({ratio:.0}x)"))
}

fn words(record: &Record, found: &Signals) -> Vec<String> {
    let switches = found.switches_per_loop.map(|switches| {
        format!(
            "loop of two: {switches:.3} switches a loop as counted; its formula takes them for two"
        )
    });
    let accounts = found.accounts.iter().map(|account| {
        format!(
            "{}: System {:.0}%, user {:.0}%, child sys {:.0}%, child user {:.0}% of {:.1} ms CPU time, by the timer ticks of {:.1} ms",
            record.header.plan.cases[account.case].title(),
            account.system_percent,
            account.user_percent,
            account.child_system_percent,
            account.child_user_percent,
            account.total_ns as f64 / 1e6,
            account.sampled_ns as f64 / 1e6
        )
    });
    switches.into_iter().chain(accounts).chain(found.in_words.iter().cloned()).collect()
}

const LINKS_LEGEND: &str = "a hop: one receive and one send by each of two processes on one CPU; ns/switch: what a hop costs above solo / switches as\n\
counted; above pipe: ns/switch less the pipe's of the same round\n";

/// The section, ending with a newline; none without a link.
fn links(record: &Record) -> Option<String> {
    let row = |link: &LinkCost| {
        let summary = record.ring(link.case)?;
        let [cost, its_interval] = cost_words(summary);
        let above = link.above_pipe_ns.filter(|_| !summary.does_not_switch);
        Some([
            link.link.clone(),
            value(summary.ns_per_hop),
            switches_words(summary),
            cost,
            its_interval,
            value(above),
            interval(above),
            summary.rounds.to_string(),
        ])
    };
    record.links.first()?;
    let columns = [
        "link",
        "ns/hop",
        "switches/hop",
        "ns/switch",
        "interval",
        "above pipe",
        "interval",
        "rounds",
    ];
    let table = table(columns, record.links.iter().filter_map(row));
    let rings = record.links.iter().filter_map(|link| record.ring(link.case));
    let by_cpu = by_cpu_time(rings.clone(), &record.noise, |case| case.link.clone());
    let name = |case: &Case| format!("{} by {}", case.members, case.link);
    let lines = by_cpu.into_iter().chain(not_switching(rings, name));
    let lines: String = lines.map(|line| line + "\n").collect();
    Some(format!("links\n\n{table}\n\n{LINKS_LEGEND}{lines}"))
}
