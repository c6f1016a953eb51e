//! `clock overhead` on the terminal.

use std::fmt::Write;

use model::published::hines2000;
use model::trial::Record;
use model::trial::overhead::{CallCost, Found};

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
    text.push_str(&beside_the_paper(&found.calls));
    text
}

/// Table 1 of the paper, and the same calls here: threadclock's, and the system call where there is one.
fn beside_the_paper(calls: &[CallCost]) -> String {
    let call = |name: &str| calls.iter().find(|call| call.call == name);
    let in_a_row = |call: &CallCost| {
        call.back_to_back_ticks.map(|estimate| estimate.value).filter(|ticks| *ticks > 0.0)
    };
    let told = |call: &CallCost| {
        let sd = figure(call.net_ticks.sd);
        format!("{} ticks (SD {sd})", figure(Some(call.net_ticks.mean)))
    };
    let (then, theirs) = (hines2000::GETRUSAGE, hines2000::GETPINFO);
    let paper = format!(
        "{} cycles (SD {}) / {} cycles (SD {}) = {:.2} in 2000",
        then.mean_cycles,
        then.sd_cycles,
        theirs.mean_cycles,
        theirs.sd_cycles,
        then.mean_cycles / theirs.mean_cycles
    );
    let ways = [
        ("getpinfo-self", "getpinfo of oneself"),
        ("getpinfo-call", "getpinfo, the system call, of oneself"),
    ];
    let mut text = String::new();
    for (name, words) in ways {
        let Some((usage, info)) = call("getrusage").zip(call(name)) else { continue };
        let ratio = in_a_row(usage).zip(in_a_row(info)).map(|(usage, info)| usage / info);
        let Some(ratio) = ratio else { continue };
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "getrusage / {words}: {} / {} alone, {} in a row; {paper}",
            told(usage),
            told(info),
            figure(Some(ratio)),
        );
    }
    text
}

const LEGEND: &str = "in a row: ns per call of a hundred calls one after the other, median of rounds and 95 % interval; alone: ns of one call\n  less what the two time stamps around it cost, median of rounds\n\
mean to p99: ticks of all single calls, less the time stamps, interruptions included\n";

#[cfg(test)]
mod tests {
    use super::*;
    use model::estimate::Estimate;
    use model::trial::Quantity;

    fn call(name: &str, ticks: f64, sd: f64) -> CallCost {
        let in_a_row = Estimate {
            standard_error: None,
            speed: Default::default(),
            value: ticks,
            low: None,
            high: None,
            confidence: 0.95,
            resolved: false,
            rounds: 2,
        };
        let middle = ticks as i64;
        CallCost {
            case: 0,
            call: name.to_string(),
            net_ticks: Quantity {
                count: 100,
                mean: ticks,
                sd: Some(sd),
                min: middle,
                p50: middle,
                p99: middle,
                max: middle,
            },
            median_ticks: None,
            back_to_back_ticks: Some(in_a_row),
        }
    }

    #[test]
    fn the_paper_is_beside_the_ways_that_there_are() {
        let usage = call("getrusage", 624.0, 30.0);
        let library = call("getpinfo-self", 12.0, 1.0);
        let system_call = call("getpinfo-call", 208.0, 20.0);
        assert_eq!(beside_the_paper(std::slice::from_ref(&usage)), "");
        let library_only = beside_the_paper(&[usage.clone(), library.clone()]);
        assert_eq!(library_only.lines().count(), 1);
        let text = beside_the_paper(&[usage, library, system_call]);
        assert_eq!(
            text.lines().nth(1),
            Some(
                "getrusage / getpinfo, the system call, of oneself: 624 ticks (SD 30.0) / \
                 208 ticks (SD 20.0) alone, 3.00 in a row; \
                 416 cycles (SD 161) / 213 cycles (SD 66) = 1.95 in 2000"
            )
        );
    }
}
