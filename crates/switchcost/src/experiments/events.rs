//! `--events`: what is counted beside time, as typed.

use analysis::estimate::{Estimate, Speed};
use analysis::summary::{CaseSummary, Counted};
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

/// The events, and a note on each that is left out of all. One that was asked for by name and that
/// this machine does not count is an error.
pub(crate) fn choose(
    asked: &[String],
    placement: Option<&Placement>,
) -> Result<(Vec<CountedEvent>, Vec<String>)> {
    if asked.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let one_cpu = placement.filter(|of| of.is_one_cpu());
    let Some(cpu) = one_cpu.and_then(|of| of.cpus().first().copied()) else {
        return Err(usage(
            "--events: members on several CPUs are not counted (accepted: --placement same, or one CPU)",
        ));
    };
    if asked.iter().all(|name| name.trim() != ALL) {
        let named = |name: &String| {
            let unknown =
                |why: String| usage(format!("--events {}", why.replace(')', ", or all)")));
            name.trim().parse::<CountedEvent>().map_err(unknown)
        };
        let events = asked.iter().map(named).collect::<Result<Vec<CountedEvent>>>()?;
        let events = each_once(events);
        let refused = |(event, errno)| usage(format!("--events {}", why_not(event, errno)));
        ring::check_events(cpu, &events).map_err(refused)?;
        return Ok((events, Vec::new()));
    }
    let (mut events, mut refused) = (Vec::new(), Vec::<(String, Vec<String>)>::new());
    for event in CountedEvent::ALL {
        events.push(*event);
        if let Err((event, errno)) = ring::check_events(cpu, &events) {
            events.retain(|of| *of != event);
            match refused.iter_mut().find(|(why, _)| *why == how(errno)) {
                Some((_, same)) => same.push(event.to_string()),
                None => refused.push((how(errno), vec![event.to_string()])),
            }
        }
    }
    let left_out =
        |(why, events): (String, Vec<String>)| format!("not counted: {}: {why}", events.join(", "));
    Ok((events, refused.into_iter().map(left_out).collect()))
}

fn why_not(event: CountedEvent, errno: Errno) -> String {
    format!("{event}: {}", how(errno))
}

fn how(errno: Errno) -> String {
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

/// What was counted, one line an event and ring; none where nothing was.
pub(crate) fn counted<'a>(
    cases: impl IntoIterator<Item = &'a CaseSummary>,
    name: impl Fn(&CaseSummary) -> String,
) -> Option<Table> {
    let value = |of: Option<Estimate>| figure(of.map(|of| of.value));
    // Nothing is not unresolved where nothing happened.
    let range = |of: Option<Estimate>| match of {
        None => "-".to_string(),
        Some(of) => match (of.speed, of.interval()) {
            (Speed::Contended | Speed::NotAlone, _) => "of disturbed slices".to_string(),
            (_, None) => "too few rounds".to_string(),
            (_, Some(of)) => format!("{} to {}", figure(Some(of.low)), figure(Some(of.high))),
        },
    };
    let row = |of: &CaseSummary, counted: &Counted| {
        let (hop, switch) = (counted.per_hop, counted.per_switch_above_solo);
        let (event, ring) = (counted.event.to_string(), name(of));
        [event, ring, value(hop), range(hop), value(switch), range(switch)]
    };
    let rows = |of: &'a CaseSummary| of.events.iter().map(move |event| (of, event));
    let rows: Vec<[String; 6]> =
        cases.into_iter().flat_map(rows).map(|(of, event)| row(of, event)).collect();
    let columns = ["event", "ring", "per hop", "interval", "per switch", "interval"];
    (!rows.is_empty()).then(|| Table::new(columns, rows))
}
