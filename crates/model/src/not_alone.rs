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
        advice(record, cpu)
    ))
}

/// What gets a figure.
fn advice(record: &RingRecord, cpu: u32) -> String {
    let online = record.header.machine.cpu.online.known();
    let other = online.and_then(|list| list.iter().find(|other| *other != cpu));
    let elsewhere = other
        .map_or(String::new(), |other| format!("measure on another CPU (--placement {other}), "));
    format!("Stop them, {elsewhere}or run with priority over them (--policy fifo)")
}
