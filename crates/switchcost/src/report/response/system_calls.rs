//! What system calls cost.

use model::response::{LoopCost, Record};
use probe::trial::SYSTEM_CALLS;

use crate::report::parts::{align, figure, interval_words, table};

const LEGEND: &str = "ns, ticks: per call of a hundred calls one after the other, less the empty loop of the same worker; enters kernel: entries per\n\
call, counted in a traced child\n";

/// The section, ending with a newline; none without a system call.
pub(super) fn section(record: &Record) -> Option<String> {
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
    Some(format!("system calls\n\n{table}\n\n{LEGEND}"))
}
