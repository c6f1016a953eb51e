//! All that a run of responses says, part by part: calls, signals, links, interrupts, wake-ups and
//! the budget.

use std::iter::once;

use analysis::estimate::Estimate;
use analysis::findings::gaps::{self, GapClassFindings};
use analysis::findings::wakeup::{TailQuantile, WakeupFindings};
use analysis::published::venix1984::{self, VenixProcessor};
use analysis::quote::BestEstimate;
use analysis::record::ResponseRecord;
use analysis::response::{LinkCost, LoopCost, ResponseBudget, SignalCosts};
use probe::trial::calls::SYSTEM_CALLS;
use rundata::ring::{Policy, RingCase};
use rundata::trial::gaps::GapClass;
use rundata::trial::loops::SIGACTION;

use super::answer::sleeper_words;
use super::figures::histogram;
use super::us;
use crate::experiments::ring::settings::not_switching;
use crate::experiments::ring::table::{by_cpu_time, cost_words, switches_words};
use crate::report::printout::{Printout, printout};
use crate::report::table::{Table, cells};
use crate::report::terminal::{
    answer_interval, answer_value, answer_words, chart_printout, count, difference, estimate_words,
    figure, interval, value,
};

/// Every part that was measured, with its legend, ending with a newline; with the machines of 1984
/// beside it where `history` says so.
pub(super) fn details(record: &ResponseRecord, history: bool) -> Printout {
    let sections = [
        system_calls(record),
        signals(record, history),
        links(record),
        interrupts(record),
        wakeup(record),
        budget(record, history),
    ];
    let mut details = Printout::default();
    for section in sections.into_iter().flatten() {
        if !details.is_empty() {
            details.push("\n");
        }
        details.push(section);
    }
    details
}

const CALLS_LEGEND: &str = "ns, ticks: per call of a hundred calls one after the other, less the empty loop of the \
     same worker\n\
     enters kernel: entries per call, counted in a traced child\n";

/// The section, ending with a newline; none without a system call.
fn system_calls(record: &ResponseRecord) -> Option<Printout> {
    let is_one = |cost: &&LoopCost| SYSTEM_CALLS.iter().any(|call| call.name == cost.call);
    let are_counted = record.found.loops.iter().any(|cost| cost.kernel_entries.is_some());
    let row = |cost: &LoopCost| {
        let mut cells = cells![
            cost.call.clone(),
            value(cost.ns),
            interval(cost.ns),
            value(cost.ticks),
            value(cost.empty_loop_ns),
        ]
        .to_vec();
        cells.extend(are_counted.then(|| figure(cost.kernel_entries).into()));
        let rounds = record.cases[cost.case].trial().map_or(0, |of| of.rounds);
        cells.push(rounds.to_string().into());
        cells
    };
    let mut rows = record.found.loops.iter().filter(is_one).map(row).peekable();
    rows.peek()?;
    let mut columns = vec!["call", "ns", "interval", "ticks", "empty loop ns"];
    columns.extend(are_counted.then_some("enters kernel"));
    columns.push("rounds");
    Some(printout!["system calls\n\n", Table::new(columns, rows), "\n\n", CALLS_LEGEND])
}

const SIGNALS_LEGEND: &str = "system call: getuid; interrupt latency: estimated as a fourth of a system call\n\
     signal: kill to oneself, the handler installs itself again; kernel's processing: \
     signal - 3 system calls\n\
     loop of two: two signals and two switches; context switch: (loop - 2 signals) / 2\n\
     each from cases of the same round\n";

const HISTORY_LEGEND: &str = "1984: ms as printed (VenturCom, VENIX Kernel Response Time), \
    and \
     how many times the figure here\n";

/// A reading of the memorandum: what it is called, its figure here, and that of a processor of
/// 1984.
type Reading = (&'static str, Option<Estimate>, fn(&VenixProcessor) -> f64);

/// The section, ending with a newline; none without a signal.
fn signals(record: &ResponseRecord, history: bool) -> Option<Printout> {
    let found = record.found.signals.as_ref()?;
    // The file is part of the program and read by its tests.
    let published = venix1984::published().unwrap_or_default();
    let published = if history { published } else { Vec::new() };
    // In the memorandum's order.
    let readings: [Reading; 6] = [
        ("system call", found.system_call_ns, |p| p.system_call_ms),
        ("interrupt latency", found.interrupt_latency_ns, |p| p.interrupt_latency_ms),
        ("signal", found.signal_ns, |p| p.signal_ms),
        ("kernel's processing", found.kernel_processing_ns, |p| p.kernel_processing_ms),
        ("loop of two", found.two_process_loop_ns, |p| p.two_process_loop_ms),
        ("context switch", found.context_switch_ns, |p| p.context_switch_ms),
    ];
    let here = |name: &str, of: Option<Estimate>| cells![name, value(of), interval(of)].to_vec();
    let row = |(name, of, then): Reading| {
        let beside = published.iter().map(|processor| beside(then(processor), of).into());
        here(name, of).into_iter().chain(beside).collect()
    };
    let title = |processor: &VenixProcessor| match processor.clock_mhz {
        Some(clock) => format!("{} ({clock} MHz)", processor.name),
        None => processor.name.clone(),
    };
    let columns = ["", "ns", "interval"].map(String::from);
    let columns: Vec<String> = columns.into_iter().chain(published.iter().map(title)).collect();
    let install = record.found.loops.iter().find(|cost| cost.call == SIGACTION);
    let install = here("installing a handler", install.and_then(|cost| cost.ns));
    let table = Table::new(columns, once(install).chain(readings.into_iter().map(row)));
    let words: String = words(record, found).into_iter().map(|line| line + "\n").collect();
    let then = if history { HISTORY_LEGEND } else { "" };
    let heading = "signals, as the memorandum of 1984 has them\n\n";
    Some(printout![heading, table, "\n\n", SIGNALS_LEGEND, then, words])
}

/// A figure of 1984 in milliseconds and how many times ours it is; a figure here that may not be
/// quoted has no ratio.
fn beside(then_ms: f64, here: Option<Estimate>) -> String {
    let here = here.and_then(|here| here.quote_cost().ok());
    let ratio = here.map(|here| then_ms * 1e6 / here.value());
    ratio.map_or(then_ms.to_string(), |ratio| format!("{then_ms} ({ratio:.0}x)"))
}

fn words(record: &ResponseRecord, found: &SignalCosts) -> Vec<String> {
    let switches = found.switches_per_loop.map(|switches| {
        format!(
            "loop of two: {switches:.3} switches a loop as counted; its formula takes them for two"
        )
    });
    let accounts = found.accounts.iter().map(|account| {
        format!(
            "{}: System {:.0}%, user {:.0}%, child sys {:.0}%, child user {:.0}% of {:.1} ms CPU \
             time, by the timer ticks of {:.1} ms",
            record.header.plan.cases[account.case].title(),
            account.system_percent,
            account.user_percent,
            account.child_system_percent,
            account.child_user_percent,
            account.total_ns as f64 / 1e6,
            account.sampled_ns as f64 / 1e6
        )
    });
    switches.into_iter().chain(accounts).chain(found.in_words.iter().cloned()).collect()
}

const LINKS_LEGEND: &str = "a hop: one receive and one send by each of two processes on one CPU\n\
     ns/switch: what a hop costs above solo / counted switches; above pipe: ns/switch less \
     the pipe's of the same round\n";

/// The section, ending with a newline; none without a link.
fn links(record: &ResponseRecord) -> Option<Printout> {
    let row = |link: &LinkCost| {
        let summary = record.ring(link.case)?;
        let [cost, its_interval] = cost_words(summary);
        let above = link.above_pipe_ns.filter(|_| !summary.does_not_switch);
        Some(cells![
            link.link.clone(),
            value(summary.ns_per_hop),
            switches_words(summary),
            cost,
            its_interval,
            answer_value(difference(above)),
            answer_interval(difference(above)),
            summary.rounds.to_string(),
        ])
    };
    record.found.links.first()?;
    let columns = [
        "link",
        "ns/hop",
        "switches/hop",
        "ns/switch",
        "interval",
        "above pipe",
        "interval",
        "rounds",
    ];
    let table = Table::new(columns, record.found.links.iter().filter_map(row));
    let rings = record.found.links.iter().filter_map(|link| record.ring(link.case));
    let by_cpu = by_cpu_time(rings.clone(), &record.noise, |case| case.link.clone());
    let name = |case: &RingCase| format!("{} by {}", case.members, case.link);
    let lines = by_cpu.into_iter().chain(not_switching(rings, name));
    let lines: String = lines.map(|line| line + "\n").collect();
    Some(printout!["links\n\n", table, "\n\n", LINKS_LEGEND, lines])
}

const INTERRUPTS_LEGEND: &str = "interrupt: the thread was not switched out and its CPU clock went on\n\
     switched out: the kernel counted a switch, another task ran\n\
     uncharged: neither, as when the hypervisor steals time (and interrupts, where the \
     kernel accounts for them separately: CONFIG_IRQ_TIME_ACCOUNTING)\n\
     Gaps below the threshold are not seen. Pauses that the kernel does not count (system \
     management) look like interrupts.\n";

/// The section, ending with a newline; none where nothing of it was measured.
fn interrupts(record: &ResponseRecord) -> Option<Printout> {
    record.found.gaps.first()?;
    let mut section = printout!["interrupts\n\n"];
    for found in &record.found.gaps {
        section.push(gaps_words(record, found));
    }
    section.push(INTERRUPTS_LEGEND);
    Some(section)
}

/// Of the thread of a case.
fn policy(record: &ResponseRecord, case: usize) -> Policy {
    record.header.plan.trial(case).map_or(Policy::Other, |case| case.policy)
}

fn gaps_words(record: &ResponseRecord, found: &gaps::GapFindings) -> Printout {
    let row = |class: &GapClassFindings| {
        let length = class.length_ns.as_ref();
        let us = |ns: Option<i64>| figure(ns.map(|ns| ns as f64 / 1e3));
        cells![
            class.class.to_string(),
            answer_value(count(class.per_second)),
            answer_words(count(class.lost_percent)),
            us(length.map(|of| of.p50)),
            us(length.map(|of| of.p99)),
            us(length.map(|of| of.max)),
            length.map_or(0, |of| of.count).to_string(),
        ]
    };
    let columns = ["lost to", "per second", "% of the time", "p50 us", "p99 us", "max us", "gaps"];
    let heading = format!(
        "a busy thread under policy {}, watched for {:.1} s: a stamp every {} ns, gaps above {} \
         ns\n\n",
        policy(record, found.case),
        found.watched_ns / 1e9,
        figure(found.loop_ns),
        figure(found.threshold_ns),
    );
    let mut section = printout![
        heading,
        Table::new(columns, found.classes.iter().map(row)),
        "\n\nall together, % of the time: ",
        answer_words(count(found.lost_percent)),
        "\n"
    ];
    for line in periods(record, found).into_iter().chain(counted(found)) {
        section.push(line + "\n");
    }
    section.push("\n");
    for class in &found.classes {
        let title = format!("{} gaps by length", class.class);
        section.push(chart_printout(histogram(&title, &class.histogram)));
    }
    section
}

/// What comes at a period, and the tick beside what the kernel reports of it.
fn periods(record: &ResponseRecord, found: &gaps::GapFindings) -> Vec<String> {
    let combs = || found.classes.iter().flat_map(|of| of.combs.iter().map(|c| (of.class, c)));
    let mut lines: Vec<String> = combs().map(|(class, comb)| comb.in_words(class)).collect();
    let hz = record.header.machine.kernel.hz.known().map(|hz| format!(", CONFIG_HZ {hz}"));
    let period = found.told_tick_period_ns.map(|ns| format!("every {} ms", figure(ns / 1e6)));
    // The kernel counted about as many timer interrupts as it has ticks.
    let timers = found.interrupts_per_second.as_ref().and_then(|by_name| by_name.get("LOC"));
    let ticks = found.told_tick_period_ns.map(|ns| 1e9 / ns);
    let are_counted = timers.zip(ticks).is_some_and(|(timers, ticks)| *timers >= 0.9 * ticks);
    let seen = match combs().any(|(_, comb)| comb.is_tick) {
        true => "seen",
        false if combs().any(|(_, comb)| comb.tick_may_be_one_of.is_some()) => {
            "not told apart: other interrupts come at its moments"
        }
        false if are_counted => {
            "not seen, although the kernel counted as many timer interrupts (LOC): too few \
                rounds, or hidden by other gaps"
        }
        false => "not seen: no interrupt comes at its period (a tickless CPU, or too few rounds)",
    };
    let period = period.unwrap_or("unknown".to_string());
    lines.push(format!("the kernel's tick ({period}{}): {seen}", hz.unwrap_or_default()));
    lines
}

/// What the kernel counted beside.
fn counted(found: &gaps::GapFindings) -> Vec<String> {
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
                "stolen by the hypervisor, as the kernel reports it (steps of 10 ms): {percent} \
                 % of the time"
            )
        }
        None => "no stolen time is reported here".to_string(),
    };
    let many = found.cut_short;
    let cut_short = format!("{many} windows ended early: there were more gaps than can be stored");
    let is_out =
        |of: &&GapClassFindings| of.class == GapClass::SwitchedOut && of.length_ns.is_some();
    let lost = found.classes.iter().find(is_out).and_then(|out| out.lost_percent);
    let lost = count(lost);
    let others = format!("other tasks took {} % of this CPU: it is not quiet", answer_words(lost));
    let mut lines = vec![interrupts, steal];
    lines.extend((many > 0).then_some(cut_short));
    let is_much = |lost: Result<BestEstimate, _>| lost.is_ok_and(|lost| lost.value() > 1.0);
    lines.extend(lost.filter(|lost| is_much(*lost)).map(|_| others));
    lines
}

const WAKEUP_LEGEND: &str = "lateness in us from the requested moment (clock_nanosleep, absolute) to the sleeper's \
     first reading of the clock\n\
     busy: next to a SCHED_OTHER process that never waits; slack: requested by \
     prctl(PR_SET_TIMERSLACK), 1 ns where nothing is said\n\
     awake: /dev/cpu_dma_latency held at 0, so that the CPU enters no idle state\n\
     p50: median of rounds with its interval\n\
     p99, p99.9: of all wake-ups with their interval by ranks; -: fewer than 368 and 3688 \
     wake-ups\n\
     ranks assume independent wake-ups: with disturbances in bursts the intervals are too narrow\n";

/// The section, ending with a newline; none where nothing of it was measured.
fn wakeup(record: &ResponseRecord) -> Option<Printout> {
    record.found.wakeups.first()?;
    let in_us = |ns: i64| figure(ns as f64 / 1e3);
    let tail = |of: TailQuantile| {
        format!("{} ({} to {})", in_us(of.value_ns), in_us(of.low_ns), in_us(of.high_ns))
    };
    let tail = |of: Option<TailQuantile>| of.map_or("-".to_string(), tail);
    let row = |found: &WakeupFindings| {
        cells![
            sleeper_words(record, found.case),
            estimate_words(us(found.median_ns)),
            tail(found.p99_ns),
            tail(found.p999_ns),
            in_us(found.late_ns.max),
            found.late_ns.count.to_string(),
        ]
    };
    let columns = ["sleeper", "p50 us", "p99 us", "p99.9 us", "max us", "wakes"];
    let table = Table::new(columns, record.found.wakeups.iter().map(row));
    let mut section = printout!["wake-up\n\n", table, "\n\n"];
    for found in &record.found.wakeups {
        let sleeper = sleeper_words(record, found.case);
        let title = format!("{sleeper}: wakes by lateness ({})", counted_beside(found));
        section.push(chart_printout(histogram(&title, &found.histogram)));
    }
    section.push(WAKEUP_LEGEND);
    Some(section)
}

/// What was counted beside.
fn counted_beside(found: &WakeupFindings) -> String {
    let slack = found.timer_slack_ns.map_or("unknown".to_string(), |ns| format!("{ns} ns"));
    let busy = |percent| format!("the busy process had {} % of the CPU", figure(Some(percent)));
    let stolen = |percent| format!("stolen {} % of the time", figure(Some(percent)));
    let words = [
        Some(format!("{} switches a wake", figure(found.switches_per_wake))),
        Some(format!("timer slack {slack}")),
        found.cpu_latency_us.map(|us| format!("idle latency at most {us} us")),
        found.busy_percent.map(busy),
        found.steal_percent.filter(|percent| *percent > 0.0).map(stolen),
    ];
    words.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

const BUDGET_LEGEND: &str = "the sum is of entry, handler and switch, also for the ends of the intervals: the \
     return is in the tick's gap\n\
     Tick and switch are measured under SCHED_OTHER, whatever the sleeper's policy. What \
     registers in use add: ring --members 2 --state all\n\
     unexplained: measured wake-up less the sum. In no part of the sum: the timer's own \
     delay (on a virtual machine also the hypervisor's), waking a CPU that sleeps, the way \
     out of clock_nanosleep, reading the clock; under SCHED_OTHER also waiting for a turn\n";

/// The section, ending with a newline; none where no wake-up was measured.
fn budget(record: &ResponseRecord, history: bool) -> Option<Printout> {
    let budget = record.found.budget.as_ref()?;
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
        ("sum", budget.sum_ns, no_sum(budget)),
    ];
    let known = |(what, ns, _): &(&str, Option<Estimate>, &str)| {
        ns.map(|ns| cells![*what, estimate_words(us(Some(ns)))])
    };
    let mut parts = all.iter().filter_map(known).peekable();
    // Of wake-ups alone there is nothing to explain.
    parts.peek()?;
    let missing = all.iter().filter(|(_, ns, _)| ns.is_none()).map(|(.., why)| *why);
    let has_sum = budget.sum_ns.is_some();
    let against = budget.against.iter().map(|of| {
        let mut cells =
            cells![sleeper_words(record, of.case), estimate_words(us(of.measured_ns))].to_vec();
        cells.extend(has_sum.then(|| answer_words(difference(us(of.unexplained_ns)))));
        cells
    });
    let mut columns = vec!["sleeper", "wake-up us"];
    columns.extend(has_sum.then_some("unexplained us"));
    let then = history.then(|| of_1984(budget)).flatten();
    Some(printout![
        "response budget\n\n",
        Table::new(["part", "us"], parts),
        "\n\n",
        Table::new(columns, against),
        "\n\n",
        BUDGET_LEGEND,
        then,
        missing.collect::<String>()
    ])
}

/// Why parts that were measured have no sum.
fn no_sum(budget: &ResponseBudget) -> &'static str {
    match (budget.entry_and_handler_ns, budget.switch_ns) {
        (Some(_), Some(_)) => "no sum: it is of parts that are resolved\n",
        _ => "",
    }
}

/// The memorandum's own sum, for its 80186.
fn of_1984(budget: &ResponseBudget) -> Option<String> {
    let published = venix1984::published().ok()?;
    let of = published.into_iter().find(|processor| processor.name == "80186")?;
    // Its return to the new process is printed as its interrupt latency is.
    let (latency, switch) = (of.interrupt_latency_ms, of.context_switch_ms);
    let sum_ms = 2.0 * latency + switch;
    let sum = budget.sum_ns.and_then(|sum| sum.quote_cost().ok());
    let times = sum.map(|sum| 1e6 * sum_ms / sum.value());
    let times = times.map_or(String::new(), |times| format!(", {times:.0} times the sum here"));
    Some(format!(
        "1984, 80186: interrupt latency {latency} + handler (not given) + switch {switch} + \
         return {latency} = {sum_ms:.1} ms and the handler{times}\n"
    ))
}
