//! What a run of rings says whose CPU was never its own: who was there, a bound by CPU time, and
//! what to do.

use crate::competing::CompetingTasks;
use crate::estimate::Speed;
use crate::record::RingRecord;
use crate::summary::CaseSummary;
use crate::words;

/// In two or three sentences. Absent where the cost of a switch may be quoted of any ring, and
/// where it is not others on the CPU that keep it from being so.
pub fn in_words(record: &RingRecord) -> Option<String> {
    let cost = |of: &CaseSummary| of.ns_per_switch_above_solo;
    let rings = || record.cases.iter().filter(|of| of.case.members > 1);
    if rings().filter_map(cost).any(|cost| cost.quote_cost().is_ok()) {
        return None;
    }
    let ring = rings().find(|of| cost(of).is_some_and(|cost| cost.speed == Speed::NotAlone))?;
    let cpu = *ring.case.placement.cpus_of(0).first()?;
    let share = record.noise.not_alone_share.unwrap_or(1.0);
    let who = record.company.as_ref().map_or(Vec::new(), CompetingTasks::who);
    let who = if who.is_empty() { String::new() } else { format!(" ({})", who.join(", ")) };
    let bound = ring.cpu_ns_per_switch_above_solo.and_then(|by_cpu| by_cpu.quote_cost().ok());
    let bound = bound.map_or(String::new(), |of| {
        format!(" By CPU time a switch costs at most {}.", words::time(of.high()))
    });
    Some(format!(
        "No cost of a switch at full speed: other tasks{who} shared CPU {cpu} in {:.0} % of the \
         slices.{bound} {}.",
        100.0 * share,
        advice(record, ring, cpu)
    ))
}

/// Says what gets a figure, of what this run has not tried.
fn advice(record: &RingRecord, ring: &CaseSummary, cpu: u32) -> String {
    let online = record.header.machine.cpu.online.known();
    let other = online.and_then(|list| list.iter().find(|other| *other != cpu));
    let elsewhere = other.map(|other| format!("measure on another CPU (--placement {other})"));
    // Where the rings had the only CPU, a real-time policy would leave none to watch from.
    let is_tried = record.cases.iter().any(|of| of.case.policy.is_realtime());
    let with_priority = (other.is_some() && ring.case.placement.is_one_cpu() && !is_tried)
        .then(|| "run with priority over them (--policy fifo: root, or ulimit -r 1)".to_string());
    match (elsewhere, with_priority) {
        (Some(elsewhere), Some(with_priority)) => {
            format!("Stop them, {elsewhere}, or {with_priority}")
        }
        (Some(one), None) | (None, Some(one)) => format!("Stop them, or {one}"),
        (None, None) => "Stop them".to_string(),
    }
}
