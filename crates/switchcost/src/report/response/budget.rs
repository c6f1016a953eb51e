//! The response budget on the terminal.

use std::fmt::Write;

use model::estimate::Estimate;
use model::published::venix1984;
use model::response::{Budget, Record};

use crate::report::parts::{align, estimate_words, table};

const LEGEND: &str = "the sum is of entry, handler and switch: the return is in the tick's gap. Tick and switch are measured\n\
under the normal policy, whatever the sleeper's. What registers in use add: ring --members 2 --state all\n\
unexplained: measured wake-up less the sum, within rounds. In the measured time and in no part: the timer's\n\
own delay (on a virtual machine the hypervisor's too), waking a CPU that sleeps, the way out of\n\
clock_nanosleep, reading the clock; under the normal policy also waiting for a turn\n";

/// The section, ending with a newline; none where no wake-up was measured.
pub(super) fn section(record: &Record) -> Option<String> {
    let budget = record.budget.as_ref()?;
    let ns = |estimate: &Option<Estimate>| estimate_words(estimate.as_ref());
    let mut parts = table(["part", "ns"]);
    for (what, estimate) in [
        ("interrupt entry and handler (the tick's gap)", &budget.entry_and_handler_ns),
        ("switch (pipe, above solo)", &budget.switch_ns),
        ("return to the process (1/4 system call; in the gap)", &budget.return_ns),
        ("sum", &budget.sum_ns),
    ] {
        parts.add_row([what.to_string(), ns(estimate)]);
    }
    align(&mut parts);
    let mut against = table(["policy", "CPU", "wake-up ns", "unexplained ns"]);
    for of in &budget.against {
        against.add_row([
            of.policy.to_string(),
            of.load.to_string(),
            ns(&of.measured_ns),
            ns(&of.unexplained_ns),
        ]);
    }
    align(&mut against);
    let mut text = format!("response budget\n\n{parts}\n\n{against}\n\n{LEGEND}");
    // Writing to a String cannot fail.
    if let Some(line) = of_1984(budget) {
        let _ = writeln!(text, "{line}");
    }
    for missing in missing(budget) {
        let _ = writeln!(text, "{missing}");
    }
    Some(text)
}

/// The memorandum's own sum, for its 80186.
fn of_1984(budget: &Budget) -> Option<String> {
    let published = venix1984::published().ok()?;
    let of = published.into_iter().find(|processor| processor.name == "80186")?;
    // Its return to the new process is printed as its interrupt latency is.
    let (latency, switch) = (of.interrupt_latency_ms, of.context_switch_ms);
    let sum_ms = 2.0 * latency + switch;
    let times = budget.sum_ns.filter(|sum| sum.value > 0.0).map(|sum| 1e6 * sum_ms / sum.value);
    let times = times.map_or(String::new(), |times| format!(", {times:.0} times the sum here"));
    Some(format!(
        "1984, 80186: interrupt latency {latency} + handler (not given) + switch {switch} + return {latency} = {sum_ms:.1} ms and the handler{times}"
    ))
}

/// What is needed for the parts that are not there.
fn missing(budget: &Budget) -> Vec<&'static str> {
    let all = [
        (
            &budget.entry_and_handler_ns,
            "no entry and handler: no timer tick was seen (part interrupts)",
        ),
        (&budget.switch_ns, "no switch: the ring by pipe was not measured (part links)"),
        (&budget.return_ns, "no return: getuid was not measured (part system-calls)"),
    ];
    all.into_iter().filter(|(part, _)| part.is_none()).map(|(_, why)| why).collect()
}
