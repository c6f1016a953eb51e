//! `clock overhead` on the terminal.

use std::fmt::Write;

use model::estimate::Estimate;
use model::published::hines2000;
use model::trial::Record;
use model::trial::overhead::Found;

use crate::report::parts::{align, figure, interval_words, table};

pub(super) fn text(record: &Record, found: &Found) -> String {
    let mut table =
        table(["call", "ns", "in a row", "p50", "interval", "mean", "SD", "min", "p99", "rounds"]);
    let ns = |ticks: Option<&Estimate>| {
        figure(record.ns_per_tick.zip(ticks).map(|(ns, ticks)| ns * ticks.value))
    };
    for call in &found.calls {
        let median = call.median_ticks.as_ref();
        let net = &call.net_ticks;
        table.add_row([
            call.call.clone(),
            ns(median),
            ns(call.back_to_back_ticks.as_ref()),
            net.p50.to_string(),
            median.map_or("-".to_string(), interval_words),
            figure(Some(net.mean)),
            figure(net.sd),
            net.min.to_string(),
            net.p99.to_string(),
            record.cases[call.case].rounds.to_string(),
        ]);
    }
    align(&mut table);
    let mut text = format!("{table}\n\n{LEGEND}");
    let median = |name: &str| {
        found
            .calls
            .iter()
            .find(|call| call.call == name)?
            .median_ticks
            .map(|estimate| estimate.value)
    };
    // Writing to a String cannot fail.
    if let Some(step) = found.step_ticks {
        let _ = writeln!(
            text,
            "the counter goes on in steps of about {step:.0} ticks: a single short call is told no better"
        );
    }
    if let Some((usage, info)) = median("getrusage").zip(median("getpinfo-self")) {
        let _ = writeln!(
            text,
            "getrusage / getpinfo of oneself: {} here; {} cycles (SD {}) / {} cycles (SD {}) = {:.2} in 2000",
            figure(Some(usage / info)),
            hines2000::GETRUSAGE.mean_cycles,
            hines2000::GETRUSAGE.sd_cycles,
            hines2000::GETPINFO.mean_cycles,
            hines2000::GETPINFO.sd_cycles,
            hines2000::GETRUSAGE.mean_cycles / hines2000::GETPINFO.mean_cycles
        );
    }
    text
}

const LEGEND: &str = "ns: one call alone, less what the two time stamps around it cost, median of rounds; in a row: nanoseconds per call of a\n  hundred calls one after the other\n\
p50 to p99: ticks of all single calls, interruptions included; interval: 95 % of the median of rounds\n";
