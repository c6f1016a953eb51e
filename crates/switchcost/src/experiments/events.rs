//! `--events`: events that are counted in addition to time, as typed, and its table.

use analysis::estimate::{Estimate, Speed};
use analysis::summary::CaseSummary;
use anyhow::Result;
use probe::ring;
use rundata::placement::Placement;
use rundata::ring::CountedEvent;
use rustix::io::Errno;

use super::links::ALL;
use crate::base::failure::usage;
use crate::base::values::each_once;
use crate::report::table::Table;
use crate::report::terminal::figure;

/// Returns the events to count, and a note on each that `all` leaves out. An event that was asked
/// for by name and that this machine does not count is an error.
pub(crate) fn choose(
    asked: &[String],
    placement: Option<&Placement>,
) -> Result<(Vec<CountedEvent>, Vec<String>)> {
    if asked.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let one_cpu = placement.filter(|placement| placement.is_one_cpu());
    let Some(cpu) = one_cpu.and_then(|placement| placement.cpus().first().copied()) else {
        return Err(usage(
            "--events: members on several CPUs are not counted (accepted: --placement same, or one CPU)",
        ));
    };
    if asked.iter().any(|name| name.trim() == ALL) {
        return Ok(available(cpu));
    }
    let mut events = Vec::new();
    for name in asked {
        match name.trim().parse::<CountedEvent>() {
            Ok(event) => events.push(event),
            Err(why) => {
                return Err(usage(format!("--events {}", why.replace(')', ", or all)"))));
            }
        }
    }
    let events = each_once(events);
    match ring::check_events(cpu, &events) {
        Ok(()) => Ok((events, Vec::new())),
        Err((event, errno)) => Err(usage(format!("--events {event}: {}", refusal_in_words(errno)))),
    }
}

/// Returns all events that a CPU counts together, and a note on the others for each reason.
fn available(cpu: u32) -> (Vec<CountedEvent>, Vec<String>) {
    let mut events = Vec::new();
    let mut refused: Vec<(String, Vec<String>)> = Vec::new();
    for event in CountedEvent::ALL {
        events.push(*event);
        let Err((event, errno)) = ring::check_events(cpu, &events) else { continue };
        events.retain(|counted| *counted != event);
        let why = refusal_in_words(errno);
        match refused.iter_mut().find(|(known, _)| *known == why) {
            Some((_, same)) => same.push(event.to_string()),
            None => refused.push((why, vec![event.to_string()])),
        }
    }
    let mut notes = Vec::new();
    for (why, names) in refused {
        notes.push(format!("not counted: {}: {why}", names.join(", ")));
    }
    (events, notes)
}

/// Returns why an event is not counted, and what helps.
fn refusal_in_words(errno: Errno) -> String {
    let next = match errno {
        Errno::NOENT | Errno::OPNOTSUPP | Errno::NODEV => {
            "this machine has no counter for it; virtual machines mostly have none"
        }
        Errno::ACCESS | Errno::PERM => {
            "it needs CAP_PERFMON, or kernel.perf_event_paranoid of 0 or less"
        }
        Errno::INVAL | Errno::BUSY => {
            "there are not enough counters for all of them at once; name fewer"
        }
        _ => "perf_event_open(2)",
    };
    format!("{errno}: {next}")
}

/// Builds a table of what was counted, a line an event and ring; `None` where nothing was.
pub(crate) fn counted<'a>(
    cases: impl IntoIterator<Item = &'a CaseSummary>,
    name: impl Fn(&CaseSummary) -> String,
) -> Option<Table> {
    let mut rows: Vec<[String; 6]> = Vec::new();
    for summary in cases {
        for counted in &summary.events {
            let (hop, switch) = (counted.per_hop, counted.per_switch_above_solo);
            rows.push([
                counted.event.to_string(),
                name(summary),
                count_cell(hop),
                range_cell(hop),
                count_cell(switch),
                range_cell(switch),
            ]);
        }
    }
    let columns = ["event", "ring", "per hop", "interval", "per switch", "interval"];
    (!rows.is_empty()).then(|| Table::new(columns, rows))
}

fn count_cell(count: Option<Estimate>) -> String {
    figure(count.map(|count| count.value))
}

/// Returns the interval of a count, whether it holds zero or not: zero is a result where nothing
/// happened.
fn range_cell(count: Option<Estimate>) -> String {
    let Some(count) = count else { return "-".to_string() };
    match (count.speed, count.interval()) {
        (Speed::Contended | Speed::NotAlone, _) => "of disturbed slices".to_string(),
        (_, None) => "too few rounds".to_string(),
        (_, Some(ends)) => format!("{} to {}", figure(Some(ends.low)), figure(Some(ends.high))),
    }
}
