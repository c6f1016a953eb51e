//! `switchcost response` on the terminal: interrupts, wake-ups and the response budget.

use std::fmt::Write;

use model::case::Policy;
use model::estimate::Estimate;
use model::published::venix1984;
use model::response::{Budget, Record};
use model::trial::gaps::{self, Class, ClassFound};
use model::trial::wakeup::{Found, Tail};

use crate::terminal::{align, bars, estimate_words, figure, table};

const INTERRUPTS_LEGEND: &str = "interrupt: the thread was not switched out and its CPU clock went on; switched out: the kernel counted\n\
a switch, another task ran; uncharged: neither, as when the hypervisor steals time (and interrupts,\n\
where the kernel accounts for them apart: CONFIG_IRQ_TIME_ACCOUNTING). What is below the\n\
threshold, and pauses that no kernel counts (system management), cannot be told from an interrupt\n";

/// The section, ending with a newline; none where nothing of it was measured.
pub(crate) fn interrupts(record: &Record) -> Option<String> {
    let parts: Vec<String> = record.gaps.iter().map(|found| case(record, found)).collect();
    (!parts.is_empty()).then(|| format!("interrupts\n\n{}{INTERRUPTS_LEGEND}", parts.concat()))
}

fn busy_policy(record: &Record, case: usize) -> Policy {
    record.header.plan.trial(case).map_or(Policy::Other, |case| case.policy)
}

fn case(record: &Record, found: &gaps::Found) -> String {
    let mut text = format!(
        "a busy thread under policy {}, watched for {:.1} s: a stamp every {} ns, gaps above {} ns\n\n",
        busy_policy(record, found.case),
        found.watched_ns / 1e9,
        figure(Some(found.loop_ns)),
        figure(Some(found.threshold_ns)),
    );
    let columns = ["lost to", "per second", "% of the time", "p50 us", "p99 us", "max us", "gaps"];
    let mut table = table(columns);
    found.classes.iter().for_each(|class| {
        table.add_row(gap_row(class));
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

fn gap_row(found: &ClassFound) -> [String; 7] {
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
fn combs(record: &Record, found: &gaps::Found) -> Vec<String> {
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
fn ticks_are_counted(found: &gaps::Found) -> bool {
    let counted = found.interrupts_per_second.as_ref().and_then(|by_name| by_name.get("LOC"));
    let ticks = found.told_tick_period_ns.map(|ns| 1e9 / ns);
    counted.zip(ticks).is_some_and(|(counted, ticks)| *counted >= 0.9 * ticks)
}

/// What the kernel counted beside.
fn counted(found: &gaps::Found) -> Vec<String> {
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

const WAKEUP_LEGEND: &str = "us from the moment asked for (clock_nanosleep, absolute) to the sleeper's first look at the clock;\n\
busy: beside a process of the normal policy that never waits; p50: median of rounds with its interval;\n\
p99, p99.9: of all wakes with their interval by ranks, - with fewer than 368 and 3688 wakes;\n\
ranks take every wake for independent of the others: disturbances that come in clumps make it less sure\n";

/// The section, ending with a newline; none where nothing of it was measured.
pub(crate) fn wakeup(record: &Record) -> Option<String> {
    if record.wakeups.is_empty() {
        return None;
    }
    let columns = ["policy", "CPU", "p50", "p99", "p99.9", "max", "wakes"];
    let mut table = table(columns);
    for found in &record.wakeups {
        table.add_row(wakeup_row(record, found));
    }
    align(&mut table);
    let mut text = format!("wake-up\n\n{table}\n\n{WAKEUP_LEGEND}");
    for found in &record.wakeups {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "\n{}, {} CPU: late by, how many wakes, share of all lateness\n({})\n{}",
            policy(record, found),
            found.load,
            beside(found),
            bars(&found.histogram).trim_end()
        );
    }
    Some(text)
}

/// Of the sleeper.
pub(crate) fn policy(record: &Record, found: &Found) -> String {
    let case = record.header.plan.trial(found.case);
    case.map_or("-".to_string(), |case| case.policy.to_string())
}

/// What was counted beside.
fn beside(found: &Found) -> String {
    let slack = found.timer_slack_ns.map_or("unknown".to_string(), |ns| format!("{ns} ns"));
    let mut words = vec![
        format!("{} switches a wake", figure(found.switches_per_wake)),
        format!("timer slack {slack}"),
    ];
    let busy = |percent| format!("its neighbour had {} % of the CPU", figure(Some(percent)));
    words.extend(found.busy_percent.map(busy));
    let stolen = |percent| format!("stolen {} % of the time", figure(Some(percent)));
    words.extend(found.steal_percent.filter(|percent| *percent > 0.0).map(stolen));
    words.join("; ")
}

fn wakeup_row(record: &Record, found: &Found) -> [String; 7] {
    let us = |ns: i64| figure(Some(ns as f64 / 1e3));
    let tail = |tail: &Option<Tail>| {
        tail.map_or("-".to_string(), |of| {
            format!("{} ({} to {})", us(of.value_ns), us(of.low_ns), us(of.high_ns))
        })
    };
    let median = found.median_ns.and_then(|median| median.scaled(1e-3));
    [
        policy(record, found),
        found.load.to_string(),
        estimate_words(median.as_ref()),
        tail(&found.p99_ns),
        tail(&found.p999_ns),
        us(found.late_ns.max),
        found.late_ns.count.to_string(),
    ]
}

const BUDGET_LEGEND: &str = "the sum is of entry, handler and switch: the return is in the tick's gap. Tick and switch are measured\n\
under the normal policy, whatever the sleeper's. What registers in use add: ring --members 2 --state all\n\
unexplained: measured wake-up less the sum, within rounds. In the measured time and in no part: the timer's\n\
own delay (on a virtual machine the hypervisor's too), waking a CPU that sleeps, the way out of\n\
clock_nanosleep, reading the clock; under the normal policy also waiting for a turn\n";

/// The section, ending with a newline; none where no wake-up was measured.
pub(crate) fn budget(record: &Record) -> Option<String> {
    let budget = record.budget.as_ref()?;
    let ns = |estimate: &Option<Estimate>| estimate_words(estimate.as_ref());
    let mut parts = table(["part", "ns"]);
    for (what, estimate) in [
        ("interrupt entry and handler (the tick's gap)", &budget.entry_and_handler_ns),
        ("switch (pipe, above solo)", &budget.switch_ns),
        ("return to the process (1/4 system call; in the gap)", &budget.return_ns),
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
    let mut text = format!("response budget\n\n{parts}\n\n{against}\n\n{BUDGET_LEGEND}");
    // Writing to a String cannot fail.
    if let Some(line) = of_1984(budget) {
        let _ = writeln!(text, "{line}");
    }
    for missing in missing(budget) {
        let _ = writeln!(text, "{missing}");
    }
    Some(text)
}

/// The memorandum's own sum, for its 80186.
fn of_1984(budget: &Budget) -> Option<String> {
    let published = venix1984::published().ok()?;
    let of = published.into_iter().find(|processor| processor.name == "80186")?;
    // Its return to the new process is printed as its interrupt latency is.
    let (latency, switch) = (of.interrupt_latency_ms, of.context_switch_ms);
    let sum_ms = 2.0 * latency + switch;
    let times = budget.sum_ns.filter(|sum| sum.value > 0.0).map(|sum| 1e6 * sum_ms / sum.value);
    let times = times.map_or(String::new(), |times| format!(", {times:.0} times the sum here"));
    Some(format!(
        "1984, 80186: interrupt latency {latency} + handler (not given) + switch {switch} + return {latency} = {sum_ms:.1} ms and the handler{times}"
    ))
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
