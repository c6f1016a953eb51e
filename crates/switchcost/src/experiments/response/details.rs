//! Details of a run of responses, part by part: calls, signals, links, interrupts, wake-ups and
//! the budget. Each part is a section that ends with a newline; there is none where nothing of the
//! part was measured.

use analysis::estimate::Estimate;
use analysis::findings::gaps::{GapClassFindings, GapFindings};
use analysis::findings::wakeup::{TailQuantile, WakeupFindings};
use analysis::marked::MarkedText;
use analysis::published::venix1984::{self, VenixProcessor};
use analysis::record::ResponseRecord;
use analysis::response::{LoopCost, ResponseBudget, SignalAccount, SignalCosts};
use probe::trial::calls::SYSTEM_CALLS;
use rundata::ring::Policy;
use rundata::trial::gaps::GapClass;
use rundata::trial::loops::SIGACTION;
use stats::Histogram;

use super::answer::sleeper_words;
use super::figures::histogram;
use super::load;
use super::{us, us_cell};
use crate::experiments::ring::settings::not_switching;
use crate::experiments::ring::table::{by_cpu_time, cost_words, switches_words};
use crate::report::printout::{Printout, printout};
use crate::report::table::{Table, cells};
use crate::report::terminal::{
    answer_interval, answer_value, answer_words, chart_printout, count, difference, estimate_words,
    figure, interval, value,
};

/// Returns the sections of all parts that were measured, with their legends; beside the machines of
/// 1984 if `history` is set.
pub(super) fn details(record: &ResponseRecord, history: bool) -> Printout {
    let sections = [
        system_calls_section(record),
        signals_section(record, history),
        links_section(record),
        interrupts_section(record),
        wakeups_section(record),
        load::report::section(record),
        budget_section(record, history),
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

fn system_calls_section(record: &ResponseRecord) -> Option<Printout> {
    let loops = &record.found.loops;
    let are_counted = loops.iter().any(|cost| cost.kernel_entries.is_some());
    let mut rows = Vec::new();
    for cost in loops {
        if SYSTEM_CALLS.iter().any(|call| call.name == cost.call) {
            rows.push(system_call_cells(record, cost, are_counted));
        }
    }
    if rows.is_empty() {
        return None;
    }
    let mut columns = vec!["call", "ns", "interval", "ticks", "empty loop ns"];
    if are_counted {
        columns.push("enters kernel");
    }
    columns.push("rounds");
    Some(printout!["system calls\n\n", Table::new(columns, rows), "\n\n", CALLS_LEGEND])
}

fn system_call_cells(
    record: &ResponseRecord,
    cost: &LoopCost,
    are_counted: bool,
) -> Vec<MarkedText> {
    let mut cells = cells![
        cost.call.clone(),
        value(cost.ns),
        interval(cost.ns),
        value(cost.ticks),
        value(cost.empty_loop_ns),
    ]
    .to_vec();
    if are_counted {
        cells.push(figure(cost.kernel_entries).into());
    }
    let rounds = record.cases[cost.case].trial().map_or(0, |trial| trial.rounds);
    cells.push(rounds.to_string().into());
    cells
}

const SIGNALS_LEGEND: &str = "system call: getuid; interrupt latency: estimated as a fourth of a system call\n\
     signal: kill to oneself, the handler installs itself again; kernel's processing: \
     signal - 3 system calls\n\
     loop of two: two signals and two switches; context switch: (loop - 2 signals) / 2\n\
     each from cases of the same round\n";

const HISTORY_LEGEND: &str = "1984: ms as printed (VenturCom, VENIX Kernel Response Time), \
    and \
     how many times the figure here\n";

/// A time of the memorandum of 1984: here and on its processors.
struct MemorandumTime {
    name: &'static str,
    here_ns: Option<Estimate>,
    published_ms: fn(&VenixProcessor) -> f64,
}

/// Lists the times of the memorandum in its order.
fn memorandum_times(found: &SignalCosts) -> [MemorandumTime; 6] {
    [
        MemorandumTime {
            name: "system call",
            here_ns: found.system_call_ns,
            published_ms: |processor| processor.system_call_ms,
        },
        MemorandumTime {
            name: "interrupt latency",
            here_ns: found.interrupt_latency_ns,
            published_ms: |processor| processor.interrupt_latency_ms,
        },
        MemorandumTime {
            name: "signal",
            here_ns: found.signal_ns,
            published_ms: |processor| processor.signal_ms,
        },
        MemorandumTime {
            name: "kernel's processing",
            here_ns: found.kernel_processing_ns,
            published_ms: |processor| processor.kernel_processing_ms,
        },
        MemorandumTime {
            name: "loop of two",
            here_ns: found.two_process_loop_ns,
            published_ms: |processor| processor.two_process_loop_ms,
        },
        MemorandumTime {
            name: "context switch",
            here_ns: found.context_switch_ns,
            published_ms: |processor| processor.context_switch_ms,
        },
    ]
}

fn signals_section(record: &ResponseRecord, history: bool) -> Option<Printout> {
    let found = record.found.signals.as_ref()?;
    let mut processors = Vec::new();
    if history {
        // The file is part of the program and read by its tests.
        processors = venix1984::published().unwrap_or_default();
    }
    let install = record.found.loops.iter().find(|cost| cost.call == SIGACTION);
    let install_ns = install.and_then(|cost| cost.ns);
    let mut rows =
        vec![cells!["installing a handler", value(install_ns), interval(install_ns)].to_vec()];
    for time in memorandum_times(found) {
        let mut row = cells![time.name, value(time.here_ns), interval(time.here_ns)].to_vec();
        for processor in &processors {
            row.push(published_cell((time.published_ms)(processor), time.here_ns).into());
        }
        rows.push(row);
    }
    let mut columns = ["", "ns", "interval"].map(String::from).to_vec();
    columns.extend(processors.iter().map(processor_title));
    let mut lines = String::new();
    for line in signal_lines(record, found) {
        lines += &(line + "\n");
    }
    let legend = if history { HISTORY_LEGEND } else { "" };
    let heading = "signals, as the memorandum of 1984 has them\n\n";
    Some(printout![heading, Table::new(columns, rows), "\n\n", SIGNALS_LEGEND, legend, lines])
}

fn processor_title(processor: &VenixProcessor) -> String {
    match processor.clock_mhz {
        Some(clock) => format!("{} ({clock} MHz)", processor.name),
        None => processor.name.clone(),
    }
}

/// Returns a time of 1984 in milliseconds, and how many times the one here it is if that may be
/// quoted.
fn published_cell(published_ms: f64, here_ns: Option<Estimate>) -> String {
    match quotable_ns(here_ns) {
        Some(here_ns) => format!("{published_ms} ({:.0}x)", published_ms * 1e6 / here_ns),
        None => published_ms.to_string(),
    }
}

fn quotable_ns(cost: Option<Estimate>) -> Option<f64> {
    Some(cost?.quote_cost().ok()?.value())
}

/// Returns what was counted in the loops of signals, and what the analysis says of them.
fn signal_lines(record: &ResponseRecord, found: &SignalCosts) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(switches) = found.switches_per_loop {
        lines.push(format!(
            "loop of two: {switches:.3} switches a loop as counted; its formula takes them for two"
        ));
    }
    for account in &found.accounts {
        lines.push(account_in_words(&record.header.plan.cases[account.case].title(), account));
    }
    lines.extend(found.in_words.iter().cloned());
    lines
}

fn account_in_words(title: &str, account: &SignalAccount) -> String {
    format!(
        "{title}: System {:.0}%, user {:.0}%, child sys {:.0}%, child user {:.0}% of {:.1} ms CPU \
         time, by the timer ticks of {:.1} ms",
        account.system_percent,
        account.user_percent,
        account.child_system_percent,
        account.child_user_percent,
        account.total_ns as f64 / 1e6,
        account.sampled_ns as f64 / 1e6
    )
}

const LINKS_LEGEND: &str = "a hop: one receive and one send by each of two processes on one CPU\n\
     ns/switch: what a hop costs above solo / counted switches; above pipe: ns/switch less \
     the pipe's of the same round\n";

fn links_section(record: &ResponseRecord) -> Option<Printout> {
    if record.found.links.is_empty() {
        return None;
    }
    let (mut rows, mut rings) = (Vec::new(), Vec::new());
    for link in &record.found.links {
        let Some(summary) = record.ring(link.case) else { continue };
        rings.push(summary);
        let [cost, its_interval] = cost_words(summary);
        let above_ns = if summary.does_not_switch { None } else { link.above_pipe_ns };
        let above = difference(above_ns);
        rows.push(cells![
            link.link.clone(),
            value(summary.ns_per_hop),
            switches_words(summary),
            cost,
            its_interval,
            answer_value(above),
            answer_interval(above),
            summary.rounds.to_string(),
        ]);
    }
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
    let mut section = printout!["links\n\n", Table::new(columns, rows), "\n\n", LINKS_LEGEND];
    if let Some(line) = by_cpu_time(rings.iter().copied(), &record.noise, |case| case.link.clone())
    {
        section.push(line + "\n");
    }
    if let Some(line) = not_switching(rings, |case| format!("{} by {}", case.members, case.link)) {
        section.push(line + "\n");
    }
    Some(section)
}

const INTERRUPTS_LEGEND: &str = "interrupt: the thread was not switched out and its CPU clock went on\n\
     switched out: the kernel counted a switch, another task ran\n\
     uncharged: neither, as when the hypervisor steals time (and interrupts, where the \
     kernel accounts for them separately: CONFIG_IRQ_TIME_ACCOUNTING)\n\
     Gaps below the threshold are not seen. Pauses that the kernel does not count (system \
     management) look like interrupts.\n";

fn interrupts_section(record: &ResponseRecord) -> Option<Printout> {
    if record.found.gaps.is_empty() {
        return None;
    }
    let mut section = printout!["interrupts\n\n"];
    for found in &record.found.gaps {
        section.push(watched_thread(record, found));
    }
    section.push(INTERRUPTS_LEGEND);
    Some(section)
}

/// Returns what one busy thread lost: a table by class, periods, what the kernel counted, and the
/// lengths of the gaps.
fn watched_thread(record: &ResponseRecord, found: &GapFindings) -> Printout {
    let policy = record.header.plan.trial(found.case).map_or(Policy::Other, |case| case.policy);
    let heading = format!(
        "a busy thread under policy {policy}, watched for {:.1} s: a stamp every {} ns, gaps above \
         {} ns\n\n",
        found.watched_ns / 1e9,
        figure(found.loop_ns),
        figure(found.threshold_ns),
    );
    let columns = ["lost to", "per second", "% of the time", "p50 us", "p99 us", "max us", "gaps"];
    let rows = found.classes.iter().map(gap_class_cells);
    let mut section = printout![
        heading,
        Table::new(columns, rows),
        "\n\nall together, % of the time: ",
        answer_words(count(found.lost_percent)),
        "\n"
    ];
    for line in period_lines(found) {
        section.push(line + "\n");
    }
    section.push(tick_line(record, found) + "\n");
    for line in counted_lines(found) {
        section.push(line + "\n");
    }
    section.push("\n");
    for class in &found.classes {
        let title = format!("{} gaps by length", class.class);
        section.push(chart_printout(histogram(&title, &class.histogram)));
    }
    section
}

fn gap_class_cells(class: &GapClassFindings) -> [MarkedText; 7] {
    let length = class.length_ns.as_ref();
    cells![
        class.class.to_string(),
        answer_value(count(class.per_second)),
        answer_words(count(class.lost_percent)),
        us_cell(length.map(|length| length.p50)),
        us_cell(length.map(|length| length.p99)),
        us_cell(length.map(|length| length.max)),
        length.map_or(0, |length| length.count).to_string(),
    ]
}

/// Returns a line for each period at which gaps come.
fn period_lines(found: &GapFindings) -> Vec<String> {
    let mut lines = Vec::new();
    for class in &found.classes {
        lines.extend(class.combs.iter().map(|comb| comb.in_words(class.class)));
    }
    lines
}

/// Returns whether the timer tick was seen, beside what the kernel reports of it.
fn tick_line(record: &ResponseRecord, found: &GapFindings) -> String {
    let period = match found.told_tick_period_ns {
        Some(ns) => format!("every {} ms", figure(ns / 1e6)),
        None => "unknown".to_string(),
    };
    let hz = match record.header.machine.kernel.hz.known() {
        Some(hz) => format!(", CONFIG_HZ {hz}"),
        None => String::new(),
    };
    format!("the kernel's tick ({period}{hz}): {}", tick_in_words(found))
}

fn tick_in_words(found: &GapFindings) -> &'static str {
    let (mut is_seen, mut is_hidden) = (false, false);
    for class in &found.classes {
        for comb in &class.combs {
            is_seen |= comb.is_tick;
            is_hidden |= comb.tick_may_be_one_of.is_some();
        }
    }
    if is_seen {
        "seen"
    } else if is_hidden {
        "not told apart: other interrupts come at its moments"
    } else if has_counted_ticks(found) {
        "not seen, although the kernel counted as many timer interrupts (LOC): too few \
            rounds, or hidden by other gaps"
    } else {
        "not seen: no interrupt comes at its period (a tickless CPU, or too few rounds)"
    }
}

/// Returns whether the kernel counted about as many timer interrupts as it has ticks.
fn has_counted_ticks(found: &GapFindings) -> bool {
    let Some(by_name) = &found.interrupts_per_second else { return false };
    match (by_name.get("LOC"), found.told_tick_period_ns) {
        (Some(timers), Some(period_ns)) => *timers >= 0.9 * (1e9 / period_ns),
        _ => false,
    }
}

/// Most sources of interrupts that a line names.
const MAX_NAMED_INTERRUPTS: usize = 5;

/// Percentage of a CPU that other tasks take from which on a line says that it is not quiet.
const QUIET_PERCENT: f64 = 1.0;

/// Returns lines on what the kernel counted while the thread was watched.
fn counted_lines(found: &GapFindings) -> Vec<String> {
    let mut lines = vec![interrupts_in_words(found), steal_in_words(found)];
    if found.cut_short > 0 {
        let windows = found.cut_short;
        lines.push(format!("{windows} windows ended early: the buffer of gaps was full"));
    }
    let switched_out = found
        .classes
        .iter()
        .find(|class| class.class == GapClass::SwitchedOut && class.length_ns.is_some());
    let lost = count(switched_out.and_then(|class| class.lost_percent));
    if let Some(Ok(percent)) = lost {
        if percent.value() > QUIET_PERCENT {
            let percent = answer_words(lost);
            lines.push(format!("other tasks took {percent} % of this CPU: it is not quiet"));
        }
    }
    lines
}

fn interrupts_in_words(found: &GapFindings) -> String {
    let Some(by_name) = &found.interrupts_per_second else {
        return "interrupts were not counted: /proc/interrupts cannot be read".to_string();
    };
    let mut sources: Vec<(&String, &f64)> = by_name.iter().collect();
    sources.retain(|(name, _)| *name != "all");
    sources.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    sources.truncate(MAX_NAMED_INTERRUPTS);
    let mut named = Vec::new();
    for (name, rate) in sources {
        named.push(format!("{name} {}", figure(*rate)));
    }
    let all = figure(by_name.get("all").copied());
    format!("interrupts per second, counted by the kernel: {all} ({})", named.join(", "))
}

fn steal_in_words(found: &GapFindings) -> String {
    match found.steal_percent {
        Some(percent) => format!(
            "stolen by the hypervisor, as the kernel reports it (steps of 10 ms): {} % of the time",
            figure(percent)
        ),
        None => "no stolen time is reported here".to_string(),
    }
}

const WAKEUP_LEGEND: &str = "lateness in us from the requested moment (clock_nanosleep, absolute) to the sleeper's \
     first reading of the clock\n\
     busy: next to a SCHED_OTHER process that never waits; slack: requested by \
     prctl(PR_SET_TIMERSLACK), 1 ns where nothing is said\n\
     awake: /dev/cpu_dma_latency held at 0 (no idle states)\n\
     p50: median of rounds with its interval\n\
     p99, p99.9: of all wake-ups with their interval by ranks; -: fewer than 368 and 3688 \
     wake-ups\n\
     ranks assume independent wake-ups: with disturbances in bursts the intervals are too narrow\n";

fn wakeups_section(record: &ResponseRecord) -> Option<Printout> {
    if record.found.wakeups.is_empty() {
        return None;
    }
    let mut rows = Vec::new();
    for found in &record.found.wakeups {
        rows.push(cells![
            sleeper_words(record, found.case),
            estimate_words(us(found.median_ns)),
            tail_cell(found.p99_ns),
            tail_cell(found.p999_ns),
            us_cell(Some(found.late_ns.max)),
            found.late_ns.count.to_string(),
        ]);
    }
    let columns = ["sleeper", "p50 us", "p99 us", "p99.9 us", "max us", "wakes"];
    let mut section = printout!["wake-up\n\n", Table::new(columns, rows), "\n\n"];
    for found in &record.found.wakeups {
        let sleeper = sleeper_words(record, found.case);
        let title = format!("{sleeper}: wakes by lateness ({})", sleeper_conditions(found));
        // In wide bins: a line each.
        let late = found.all_late_ns.values().map(|(ns, times)| (ns as f64, times));
        section.push(chart_printout(histogram(&title, &Histogram::from_values(late))));
    }
    section.push(WAKEUP_LEGEND);
    Some(section)
}

/// Returns a quantile in microseconds with its interval; a dash where there were too few wake-ups.
fn tail_cell(quantile: Option<TailQuantile>) -> String {
    let Some(quantile) = quantile else { return figure(None) };
    let ends = [quantile.value_ns, quantile.low_ns, quantile.high_ns];
    let [value, low, high] = ends.map(|ns| us_cell(Some(ns)));
    format!("{value} ({low} to {high})")
}

/// Returns the counts and limits of a sleeper, and what else ran on its CPU.
fn sleeper_conditions(found: &WakeupFindings) -> String {
    let mut words = vec![format!("{} switches a wake", figure(found.switches_per_wake))];
    words.push(match found.timer_slack_ns {
        Some(ns) => format!("timer slack {ns} ns"),
        None => "timer slack unknown".to_string(),
    });
    if let Some(us) = found.cpu_latency_us {
        words.push(format!("idle latency at most {us} us"));
    }
    if let Some(percent) = found.busy_percent {
        words.push(format!("the busy process had {} % of the CPU", figure(percent)));
    }
    match found.steal_percent {
        Some(percent) if percent > 0.0 => {
            words.push(format!("stolen {} % of the time", figure(percent)));
        }
        _ => {}
    }
    words.join("; ")
}

const BUDGET_LEGEND: &str = "the sum is of entry, handler and switch, also for the ends of the intervals: the \
     return is in the tick's gap\n\
     Tick and switch are measured under SCHED_OTHER, whatever the sleeper's policy. What \
     registers in use add: ring --members 2 --state all\n\
     unexplained: measured wake-up less the sum. In no part of the sum: the timer's own \
     delay (on a virtual machine also the hypervisor's), waking a CPU that sleeps, the way \
     out of clock_nanosleep, reading the clock; under SCHED_OTHER also waiting for a turn\n";

/// A part of the response budget.
struct BudgetPart {
    name: &'static str,
    ns: Option<Estimate>,
    /// Line that says what is needed for the part; it stands below where the part is missing.
    why_missing: &'static str,
}

fn budget_parts(budget: &ResponseBudget) -> [BudgetPart; 4] {
    [
        BudgetPart {
            name: "interrupt entry and handler (the tick's gap)",
            ns: budget.entry_and_handler_ns,
            why_missing: "no entry and handler: no timer tick was seen (part interrupts)\n",
        },
        BudgetPart {
            name: "switch (pipe, above solo)",
            ns: budget.switch_ns,
            why_missing: "no switch: the ring by pipe was not measured (part links)\n",
        },
        BudgetPart {
            name: "return to the process (1/4 system call; in the gap)",
            ns: budget.return_ns,
            why_missing: "no return: getuid was not measured (part system-calls)\n",
        },
        BudgetPart { name: "sum", ns: budget.sum_ns, why_missing: why_no_sum(budget) },
    ]
}

fn budget_section(record: &ResponseRecord, history: bool) -> Option<Printout> {
    let budget = record.found.budget.as_ref()?;
    let (mut parts, mut missing) = (Vec::new(), String::new());
    for part in budget_parts(budget) {
        match part.ns {
            Some(ns) => parts.push(cells![part.name, estimate_words(us(Some(ns)))]),
            None => missing += part.why_missing,
        }
    }
    // Of wake-ups alone there is nothing to explain.
    if parts.is_empty() {
        return None;
    }
    let has_sum = budget.sum_ns.is_some();
    let mut sleepers = Vec::new();
    for comparison in &budget.against {
        let sleeper = sleeper_words(record, comparison.case);
        let mut row = cells![sleeper, estimate_words(us(comparison.measured_ns))].to_vec();
        if has_sum {
            row.push(answer_words(difference(us(comparison.unexplained_ns))));
        }
        sleepers.push(row);
    }
    let mut columns = vec!["sleeper", "wake-up us"];
    if has_sum {
        columns.push("unexplained us");
    }
    let published = if history { published_budget(budget) } else { None };
    Some(printout![
        "response budget\n\n",
        Table::new(["part", "us"], parts),
        "\n\n",
        Table::new(columns, sleepers),
        "\n\n",
        BUDGET_LEGEND,
        published,
        missing
    ])
}

/// Returns why measured parts have no sum; empty where the missing parts say so themselves.
fn why_no_sum(budget: &ResponseBudget) -> &'static str {
    match (budget.entry_and_handler_ns, budget.switch_ns) {
        (Some(_), Some(_)) => "no sum: a part is not resolved\n",
        _ => "",
    }
}

/// Returns the memorandum's own sum, for its 80186.
fn published_budget(budget: &ResponseBudget) -> Option<String> {
    let processors = venix1984::published().ok()?;
    let processor = processors.iter().find(|processor| processor.name == "80186")?;
    // Its return to the new process is printed as its interrupt latency is.
    let (latency, switch) = (processor.interrupt_latency_ms, processor.context_switch_ms);
    let sum_ms = 2.0 * latency + switch;
    let times = match quotable_ns(budget.sum_ns) {
        Some(sum_ns) => format!(", {:.0} times the sum here", 1e6 * sum_ms / sum_ns),
        None => String::new(),
    };
    Some(format!(
        "1984, 80186: interrupt latency {latency} + handler (not given) + switch {switch} + \
         return {latency} = {sum_ms:.1} ms and the handler{times}\n"
    ))
}
