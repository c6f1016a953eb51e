//! The memorandum's readings, beside its own of 1984.

use std::fmt::Write;

use model::estimate::Estimate;
use model::published::venix1984::{self, Processor};
use model::response::{Record, Signals};
use model::trial::loops::SIGACTION;

use crate::report::parts::{align, figure, interval_words, table};

const LEGEND: &str = "system call: getuid; interrupt latency: its estimate, a fourth of a system call; signal: kill to oneself, the handler installs itself again;\n\
kernel's processing: signal - 3 system calls; loop of two: two signals and two switches; context switch: (loop - 2 signals) / 2;\n\
each from cases of the same round; 1984: ms as printed (VenturCom, VENIX Kernel Response Time), and how many times the figure here\n";

/// The section, ending with a newline; none without a signal.
pub(super) fn section(record: &Record) -> Option<String> {
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
    let mut text = format!("signals, as the memorandum of 1984 has them\n\n{table}\n\n{LEGEND}");
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
