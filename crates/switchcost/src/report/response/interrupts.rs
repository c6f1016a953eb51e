//! Gaps in a busy loop on the terminal.

use std::fmt::Write;

use model::case::Policy;
use model::response::Record;
use model::trial::gaps::{Class, ClassFound, Found};

use crate::report::bars::bars;
use crate::report::parts::{align, estimate_words, figure, table};

const LEGEND: &str = "interrupt: the thread was not switched out and its CPU clock went on; switched out: the kernel counted\n\
a switch, another task ran; uncharged: neither, as when the hypervisor steals time (and interrupts,\n\
where the kernel accounts for them apart: CONFIG_IRQ_TIME_ACCOUNTING). What is below the\n\
threshold, and pauses that no kernel counts (system management), cannot be told from an interrupt\n";

/// The section, ending with a newline; none where nothing of it was measured.
pub(super) fn section(record: &Record) -> Option<String> {
    let parts: Vec<String> = record.gaps.iter().map(|found| case(record, found)).collect();
    (!parts.is_empty()).then(|| format!("interrupts\n\n{}{LEGEND}", parts.concat()))
}

fn policy(record: &Record, case: usize) -> Policy {
    record.header.plan.trial(case).map_or(Policy::Other, |case| case.policy)
}

fn case(record: &Record, found: &Found) -> String {
    let mut text = format!(
        "a busy thread under policy {}, watched for {:.1} s: a stamp every {} ns, gaps above {} ns\n\n",
        policy(record, found.case),
        found.watched_ns / 1e9,
        figure(Some(found.loop_ns)),
        figure(Some(found.threshold_ns)),
    );
    let columns = ["lost to", "per second", "% of the time", "p50 us", "p99 us", "max us", "gaps"];
    let mut table = table(columns);
    found.classes.iter().for_each(|class| {
        table.add_row(row(class));
    });
    align(&mut table);
    let _ = writeln!(
        text,
        "{table}\n\nall together: {} % of the time",
        estimate_words(found.lost_percent.as_ref())
    );
    for line in combs(record, found).into_iter().chain(counted(found)) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{line}");
    }
    for class in found.classes.iter().filter(|class| class.length_ns.is_some()) {
        let _ = writeln!(
            text,
            "\n{} gaps: length from, how many, share of what they took\n{}",
            class.class,
            bars(&class.histogram).trim_end()
        );
    }
    text.push('\n');
    text
}

fn row(found: &ClassFound) -> [String; 7] {
    let length = found.length_ns.as_ref();
    let us = |ns: Option<i64>| figure(ns.map(|ns| ns as f64 / 1e3));
    [
        found.class.to_string(),
        figure(found.per_second.map(|e| e.value)),
        estimate_words(found.lost_percent.as_ref()),
        us(length.map(|of| of.p50)),
        us(length.map(|of| of.p99)),
        us(length.map(|of| of.max)),
        length.map_or(0, |of| of.count).to_string(),
    ]
}

/// What comes at a period, and the tick beside the kernel's word.
fn combs(record: &Record, found: &Found) -> Vec<String> {
    let combs = || found.classes.iter().flat_map(|of| of.combs.iter().map(|c| (of.class, c)));
    let mut lines: Vec<String> = combs().map(|(class, comb)| comb.in_words(class)).collect();
    let hz = record.header.machine.kernel.hz.known().map(|hz| format!(", CONFIG_HZ {hz}"));
    let hz = hz.unwrap_or_default();
    let told = found.told_tick_period_ns.map(|ns| figure(Some(ns / 1e6)));
    let told = told.map_or("unknown".to_string(), |ms| format!("every {ms} ms"));
    let seen = match combs().any(|(_, comb)| comb.is_tick) {
        true => "seen",
        // As many timer interrupts as there are ticks: it is there.
        false if ticks_are_counted(found) => {
            "not seen, though the kernel counted as many timer interrupts (LOC): too few rounds, or drowned"
        }
        false => "not seen: no interrupt comes at its period (a tickless CPU, or too few rounds)",
    };
    lines.push(format!("the kernel's tick ({told}{hz}): {seen}"));
    lines
}

/// Whether the kernel counted about as many timer interrupts as it has ticks.
fn ticks_are_counted(found: &Found) -> bool {
    let counted = found.interrupts_per_second.as_ref().and_then(|by_name| by_name.get("LOC"));
    let ticks = found.told_tick_period_ns.map(|ns| 1e9 / ns);
    counted.zip(ticks).is_some_and(|(counted, ticks)| *counted >= 0.9 * ticks)
}

/// What the kernel counted beside.
fn counted(found: &Found) -> Vec<String> {
    let mut lines = Vec::new();
    lines.push(match &found.interrupts_per_second {
        Some(by_name) => {
            let mut named: Vec<(&String, &f64)> =
                by_name.iter().filter(|(name, _)| *name != "all").collect();
            named.sort_by(|a, b| b.1.total_cmp(a.1));
            let named: Vec<String> = named
                .iter()
                .take(5)
                .map(|(name, rate)| format!("{name} {}", figure(Some(**rate))))
                .collect();
            format!(
                "interrupts per second, counted by the kernel: {} ({})",
                figure(by_name.get("all").copied()),
                named.join(", ")
            )
        }
        None => "interrupts were not counted: /proc/interrupts cannot be read".to_string(),
    });
    lines.push(match found.steal_percent {
        Some(percent) => format!(
            "stolen by the hypervisor, as the kernel reports it (steps of 10 ms): {} % of the time",
            figure(Some(percent))
        ),
        None => "no stolen time is reported here".to_string(),
    });
    if found.cut_short > 0 {
        lines.push(format!(
            "{} windows were ended early: more gaps came than are kept",
            found.cut_short
        ));
    }
    let is_out = |of: &&ClassFound| of.class == Class::SwitchedOut && of.length_ns.is_some();
    if let Some(out) = found.classes.iter().find(is_out)
        && out.lost_percent.is_some_and(|lost| lost.value > 1.0)
    {
        lines.push(format!(
            "other tasks took {} % of this CPU: it is not quiet",
            estimate_words(out.lost_percent.as_ref())
        ));
    }
    lines
}
