//! The response budget on the terminal.

use std::fmt::Write;

use model::estimate::Estimate;
use model::response::{Budget, Record};

use crate::report::parts::{align, estimate_words, table};

const LEGEND: &str = "unexplained: measured wake-up less the sum, within rounds. In the measured time and in no part: the timer's\n\
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
        ("return to the process (1/4 system call)", &budget.return_ns),
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
    for missing in missing(budget) {
        let _ = writeln!(text, "{missing}");
    }
    Some(text)
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
