//! `clock overhead` on the terminal.

use std::fmt::Write;

use model::published::hines2000;
use model::trial::Record;
use model::trial::overhead::Found;

use crate::report::parts::{align, figure, interval_words, table};

pub(super) fn text(record: &Record, found: &Found) -> String {
    let columns =
        ["call", "in a row", "interval", "alone", "mean", "SD", "min", "p50", "p99", "rounds"];
    let mut table = table(columns);
    for call in &found.calls {
        let net = &call.net_ticks;
        let in_a_row = call.back_to_back_ticks.and_then(|e| e.scaled(record.ns_per_tick?));
        let alone = call.median_ticks.and_then(|e| Some(e.value * record.ns_per_tick?));
        table.add_row([
            call.call.clone(),
            figure(in_a_row.map(|e| e.value)),
            in_a_row.as_ref().map_or("-".to_string(), interval_words),
            figure(alone),
            figure(Some(net.mean)),
            figure(net.sd),
            net.min.to_string(),
            net.p50.to_string(),
            net.p99.to_string(),
            record.cases[call.case].rounds.to_string(),
        ]);
    }
    align(&mut table);
    let mut text = format!("{table}\n\n{LEGEND}");
    // Writing to a String cannot fail.
    if let Some(step) = found.step_ticks {
        let _ = writeln!(
            text,
            "the counter goes on in steps of about {step:.0} ticks: a single short call is told no better"
        );
    }
    let in_a_row = |name: &str| {
        let call = found.calls.iter().find(|call| call.call == name)?;
        call.back_to_back_ticks.map(|estimate| estimate.value).filter(|ticks| *ticks > 0.0)
    };
    if let Some((usage, info)) = in_a_row("getrusage").zip(in_a_row("getpinfo-self")) {
        let (then, theirs) = (hines2000::GETRUSAGE, hines2000::GETPINFO);
        let _ = writeln!(
            text,
            "getrusage / getpinfo of oneself, in a row: {} here; {} cycles (SD {}) / {} cycles (SD {}) = {:.2} in 2000",
            figure(Some(usage / info)),
            then.mean_cycles,
            then.sd_cycles,
            theirs.mean_cycles,
            theirs.sd_cycles,
            then.mean_cycles / theirs.mean_cycles
        );
    }
    text
}

const LEGEND: &str = "in a row: ns per call of a hundred calls one after the other, median of rounds and 95 % interval; alone: ns of one call\n  less what the two time stamps around it cost, median of rounds\n\
mean to p99: ticks of all single calls, less the time stamps, interruptions included\n";
