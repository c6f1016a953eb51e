//! `switchcost response` on the terminal: interrupts, wake-ups and the response budget.

use std::fmt::Write;

use model::case::Policy;
use model::findings::gaps::{self, Class, ClassFound};
use model::findings::wakeup::{Found, Tail};
use model::published::venix1984;
use model::response::{Budget, Record};

use super::figures;
use crate::terminal::{drawn, estimate_words, figure, table};

const INTERRUPTS_LEGEND: &str = "interrupt: the thread was not switched out and its CPU clock went on; switched out: the kernel counted\n\
a switch, another task ran; uncharged: neither, as when the hypervisor steals time (and interrupts,\n\
where the kernel accounts for them apart: CONFIG_IRQ_TIME_ACCOUNTING). What is below the\n\
threshold, and pauses that no kernel counts (system management), cannot be told from an interrupt\n";

/// The section, ending with a newline; none where nothing of it was measured.
pub(crate) fn interrupts(record: &Record) -> Option<String> {
    let parts: String = record.gaps.iter().map(|found| gaps_words(record, found)).collect();
    let drawn = drawn(figures::gaps(record, 0));
    (!parts.is_empty()).then(|| format!("interrupts\n\n{parts}{drawn}{INTERRUPTS_LEGEND}"))
}

/// Of the thread of a case.
pub(crate) fn policy(record: &Record, case: usize) -> Policy {
    record.header.plan.trial(case).map_or(Policy::Other, |case| case.policy)
}

fn gaps_words(record: &Record, found: &gaps::Found) -> String {
    let row = |class: &ClassFound| {
        let length = class.length_ns.as_ref();
        let us = |ns: Option<i64>| figure(ns.map(|ns| ns as f64 / 1e3));
        [
            class.class.to_string(),
            figure(class.per_second.map(|e| e.value)),
            estimate_words(class.lost_percent),
            us(length.map(|of| of.p50)),
            us(length.map(|of| of.p99)),
            us(length.map(|of| of.max)),
            length.map_or(0, |of| of.count).to_string(),
        ]
    };
    let columns = ["lost to", "per second", "% of the time", "p50 us", "p99 us", "max us", "gaps"];
    let mut text = format!(
        "a busy thread under policy {}, watched for {:.1} s: a stamp every {} ns, gaps above {} ns\n\n\
         {}\n\nall together: {} % of the time\n",
        policy(record, found.case),
        found.watched_ns / 1e9,
        figure(found.loop_ns),
        figure(found.threshold_ns),
        table(columns, found.classes.iter().map(row)),
        estimate_words(found.lost_percent)
    );
    // Writing to a String cannot fail.
    for line in periods(record, found).into_iter().chain(counted(found)) {
        let _ = writeln!(text, "{line}");
    }
    text.push('\n');
    text
}

/// What comes at a period, and the tick beside what the kernel reports of it.
fn periods(record: &Record, found: &gaps::Found) -> Vec<String> {
    let combs = || found.classes.iter().flat_map(|of| of.combs.iter().map(|c| (of.class, c)));
    let mut lines: Vec<String> = combs().map(|(class, comb)| comb.in_words(class)).collect();
    let hz = record.header.machine.kernel.hz.known().map(|hz| format!(", CONFIG_HZ {hz}"));
    let told = found.told_tick_period_ns.map(|ns| format!("every {} ms", figure(ns / 1e6)));
    // The kernel counted about as many timer interrupts as it has ticks.
    let timers = found.interrupts_per_second.as_ref().and_then(|by_name| by_name.get("LOC"));
    let ticks = found.told_tick_period_ns.map(|ns| 1e9 / ns);
    let are_counted = timers.zip(ticks).is_some_and(|(timers, ticks)| *timers >= 0.9 * ticks);
    let seen = match combs().any(|(_, comb)| comb.is_tick) {
        true => "seen",
        false if are_counted => {
            "not seen, though the kernel counted as many timer interrupts (LOC): too few rounds, or drowned"
        }
        false => "not seen: no interrupt comes at its period (a tickless CPU, or too few rounds)",
    };
    let told = told.unwrap_or("unknown".to_string());
    lines.push(format!("the kernel's tick ({told}{}): {seen}", hz.unwrap_or_default()));
    lines
}

/// What the kernel counted beside.
fn counted(found: &gaps::Found) -> Vec<String> {
    let interrupts = match &found.interrupts_per_second {
        Some(by_name) => {
            let mut named: Vec<_> = by_name.iter().filter(|(name, _)| *name != "all").collect();
            named.sort_by(|a, b| b.1.total_cmp(a.1));
            let named =
                named.iter().take(5).map(|(name, rate)| format!("{name} {}", figure(**rate)));
            let all = figure(by_name.get("all").copied());
            let named = named.collect::<Vec<_>>().join(", ");
            format!("interrupts per second, counted by the kernel: {all} ({named})")
        }
        None => "interrupts were not counted: /proc/interrupts cannot be read".to_string(),
    };
    let steal = match found.steal_percent {
        Some(percent) => {
            let percent = figure(percent);
            format!(
                "stolen by the hypervisor, as the kernel reports it (steps of 10 ms): {percent} % of the time"
            )
        }
        None => "no stolen time is reported here".to_string(),
    };
    let many = found.cut_short;
    let cut_short = format!("{many} windows were ended early: more gaps came than are kept");
    let is_out = |of: &&ClassFound| of.class == Class::SwitchedOut && of.length_ns.is_some();
    let lost = found.classes.iter().find(is_out).and_then(|out| out.lost_percent);
    let others =
        format!("other tasks took {} % of this CPU: it is not quiet", estimate_words(lost));
    let mut lines = vec![interrupts, steal];
    lines.extend((many > 0).then_some(cut_short));
    lines.extend(lost.filter(|lost| lost.value > 1.0).map(|_| others));
    lines
}

const WAKEUP_LEGEND: &str = "us from the moment asked for (clock_nanosleep, absolute) to the sleeper's first look at the clock;\n\
busy: beside a process of the normal policy that never waits; p50: median of rounds with its interval;\n\
p99, p99.9: of all wakes with their interval by ranks, - with fewer than 368 and 3688 wakes;\n\
ranks take every wake for independent of the others: disturbances that come in clumps make it less sure\n";

/// The section, ending with a newline; none where nothing of it was measured.
pub(crate) fn wakeup(record: &Record) -> Option<String> {
    record.wakeups.first()?;
    let us = |ns: i64| figure(ns as f64 / 1e3);
    let tail = |of: Tail| format!("{} ({} to {})", us(of.value_ns), us(of.low_ns), us(of.high_ns));
    let tail = |of: Option<Tail>| of.map_or("-".to_string(), tail);
    let row = |found: &Found| {
        [
            policy(record, found.case).to_string(),
            found.load.to_string(),
            estimate_words(found.median_ns.and_then(|median| median.scaled(1e-3))),
            tail(found.p99_ns),
            tail(found.p999_ns),
            us(found.late_ns.max),
            found.late_ns.count.to_string(),
        ]
    };
    let columns = ["policy", "CPU", "p50", "p99", "p99.9", "max", "wakes"];
    let table = table(columns, record.wakeups.iter().map(row));
    let counted = record.wakeups.iter().map(|found| {
        format!("{}, {} CPU: {}\n", policy(record, found.case), found.load, beside(found))
    });
    let (counted, drawn) = (counted.collect::<String>(), drawn(figures::late(record, 0)));
    Some(format!("wake-up\n\n{table}\n\n{counted}\n{drawn}{WAKEUP_LEGEND}"))
}

/// What was counted beside.
fn beside(found: &Found) -> String {
    let slack = found.timer_slack_ns.map_or("unknown".to_string(), |ns| format!("{ns} ns"));
    let busy = |percent| format!("its neighbour had {} % of the CPU", figure(Some(percent)));
    let stolen = |percent| format!("stolen {} % of the time", figure(Some(percent)));
    let words = [
        Some(format!("{} switches a wake", figure(found.switches_per_wake))),
        Some(format!("timer slack {slack}")),
        found.busy_percent.map(busy),
        found.steal_percent.filter(|percent| *percent > 0.0).map(stolen),
    ];
    words.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

const BUDGET_LEGEND: &str = "the sum is of entry, handler and switch: the return is in the tick's gap. Tick and switch are measured\n\
under the normal policy, whatever the sleeper's. What registers in use add: ring --members 2 --state all\n\
unexplained: measured wake-up less the sum, within rounds. In the measured time and in no part: the timer's\n\
own delay (on a virtual machine the hypervisor's too), waking a CPU that sleeps, the way out of\n\
clock_nanosleep, reading the clock; under the normal policy also waiting for a turn\n";

/// The section, ending with a newline; none where no wake-up was measured.
pub(crate) fn budget(record: &Record) -> Option<String> {
    let budget = record.budget.as_ref()?;
    // Each part, and what is needed for it where it is not there.
    let all = [
        (
            "interrupt entry and handler (the tick's gap)",
            budget.entry_and_handler_ns,
            "no entry and handler: no timer tick was seen (part interrupts)\n",
        ),
        (
            "switch (pipe, above solo)",
            budget.switch_ns,
            "no switch: the ring by pipe was not measured (part links)\n",
        ),
        (
            "return to the process (1/4 system call; in the gap)",
            budget.return_ns,
            "no return: getuid was not measured (part system-calls)\n",
        ),
        ("sum", budget.sum_ns, ""),
    ];
    let parts = all.iter().map(|(what, ns, _)| [what.to_string(), estimate_words(*ns)]);
    let missing = all.iter().filter(|(_, ns, _)| ns.is_none()).map(|(.., why)| *why);
    let against = budget.against.iter().map(|of| {
        let (measured, unexplained) = (of.measured_ns, of.unexplained_ns);
        let [measured, unexplained] = [measured, unexplained].map(estimate_words);
        [of.policy.to_string(), of.load.to_string(), measured, unexplained]
    });
    Some(format!(
        "response budget\n\n{}\n\n{}\n\n{BUDGET_LEGEND}{}{}",
        table(["part", "ns"], parts),
        table(["policy", "CPU", "wake-up ns", "unexplained ns"], against),
        of_1984(budget).unwrap_or_default(),
        missing.collect::<String>()
    ))
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
        "1984, 80186: interrupt latency {latency} + handler (not given) + switch {switch} + return {latency} = {sum_ms:.1} ms and the handler{times}\n"
    ))
}
