//! `switchcost clock` on the terminal.

use std::fmt::Write;

use model::case::Policy;
use model::published::hines2000;
use model::trial::malloc::{
    self, BRK_CALLS, CAUSES, CallCost, MINOR_FAULTS, MMAP_CALLS, Overall, Slow,
};
use model::trial::primes::{
    self, Against, GETRUSAGE_NS, GETRUSAGE_THREAD_NS, GETRUSAGE_USER_NS, THREADCLOCK_NS, Timed,
};
use model::trial::sampling::{self, ACCOUNTS};
use model::trial::{Record, overhead};

use crate::terminal::{align, estimate_words, figure, interval_words, table};

pub(crate) fn overhead(record: &Record, found: &overhead::Found) -> String {
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
    let mut text = format!("{table}\n\n{OVERHEAD_LEGEND}");
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
fn beside_the_paper(calls: &[overhead::CallCost]) -> String {
    let call = |name: &str| calls.iter().find(|call| call.call == name);
    let in_a_row = |call: &overhead::CallCost| {
        call.back_to_back_ticks.map(|estimate| estimate.value).filter(|ticks| *ticks > 0.0)
    };
    let told = |call: &overhead::CallCost| {
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

const OVERHEAD_LEGEND: &str = "in a row: ns per call of a hundred calls one after the other, median of rounds and 95 % interval; alone: ns of one call\n  less what the two time stamps around it cost, median of rounds\n\
mean to p99: ticks of all single calls, less the time stamps, interruptions included\n";

/// Names of the ways of timing in words.
const WAYS: [(&str, &str); 3] = [
    (GETRUSAGE_NS, "getrusage(RUSAGE_SELF), user + system"),
    (GETRUSAGE_USER_NS, "getrusage(RUSAGE_SELF), user alone"),
    (GETRUSAGE_THREAD_NS, "getrusage(RUSAGE_THREAD), user + system"),
];

pub(crate) fn primes(found: &primes::Found) -> String {
    let mut table =
        table(["primes", "mean us", "SD", "self us", "SD", "gain %", "thread us", "SD", "gain %"]);
    for point in &found.points {
        table.add_row(primes_row(point));
    }
    align(&mut table);
    let mut text = format!("{table}\n\n{PRIMES_LEGEND}");
    for (name, words) in WAYS {
        if let Some(against) = found.overall.get(name) {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{words}: {}", verdict(against));
        }
    }
    let _ = writeln!(
        text,
        "in 2000 the gain of getpinfo over getrusage was {} %, which went on in ticks of 10 ms",
        hines2000::PRECISION_GAIN_PERCENT
    );
    text
}

const PRIMES_LEGEND: &str = "mean us, SD: microseconds of CPU time per trial by threadclock; self, thread: by getrusage(RUSAGE_SELF) and of\n  RUSAGE_THREAD, user + system; means less those of empty trials, medians of rounds\n\
gain: how much larger that SD is than threadclock's, in percent\n";

fn primes_row(point: &primes::Point) -> Vec<String> {
    let us = |way: &str, of: fn(&Timed) -> f64| figure(point.timed.get(way).map(|t| of(t) / 1e3));
    let mut cells = vec![point.primes.to_string()];
    for way in [THREADCLOCK_NS, GETRUSAGE_NS, GETRUSAGE_THREAD_NS] {
        cells.push(us(way, |timed| timed.mean_ns.value));
        cells.push(us(way, |timed| timed.sd_ns.value));
        if let Some(against) = point.against.get(way) {
            cells.push(figure(against.gain_percent.map(|gain| gain.value)));
        }
    }
    cells
}

fn verdict(against: &Against) -> String {
    let gain = match &against.gain_percent {
        None => "its results never scattered, or threadclock's did not".to_string(),
        Some(gain) => format!("threadclock gains {} % in precision", estimate_words(Some(gain))),
    };
    let means = match &against.mean_difference_percent {
        None => "nothing to compare means by".to_string(),
        Some(difference) => {
            let percent = estimate_words(Some(difference));
            match difference.interval() {
                None => format!("means: {percent} %"),
                Some(_) if difference.resolved => format!("means differ by {percent} %"),
                Some(interval) => {
                    let most = interval.low.abs().max(interval.high.abs());
                    format!("means agree to {} % ({percent} %)", figure(Some(most)))
                }
            }
        }
    };
    format!("{gain}; {means}")
}

pub(crate) fn malloc(record: &Record, found: &malloc::Found) -> String {
    let mut table = table([
        "bytes", "by", "malloc", "fast", "mean", "SD", "p99", "free", "fast", "mean", "SD", "p99",
        "brk", "mmap", "faults",
    ]);
    for point in &found.points {
        table.add_row(malloc_row(point));
    }
    align(&mut table);
    let mut text = format!("{table}\n\n{MALLOC_LEGEND}");
    // Writing to a String cannot fail.
    for overall in &found.overall {
        let _ = writeln!(text, "{}", overall_words(record, overall));
    }
    let _ = writeln!(
        text,
        "in 2000: {} cycles, {:.2} us at 166 MHz (the mean of Doug Lea's malloc over the same sizes)",
        hines2000::MALLOC_CYCLES,
        hines2000::MALLOC_CYCLES / 166.0
    );
    for overall in &found.overall {
        let own: Vec<&malloc::Point> =
            found.points.iter().filter(|point| point.preload == overall.preload).collect();
        for (what, of) in [("malloc", of_malloc as Of), ("free", of_free as Of)] {
            let by = library(overall.preload.as_ref());
            let _ = writeln!(text, "slow {what} calls by {by}: {}", slow_words(&own, of));
        }
    }
    if found.points.iter().any(|point| !point.per_sample.contains_key(BRK_CALLS)) {
        let _ = writeln!(
            text,
            "brk, mmap: not counted, as a child could not be traced here (ptrace(2); see kernel.yama.ptrace_scope and seccomp)"
        );
    }
    text
}

const MALLOC_LEGEND: &str = "ticks of the thread's own CPU time; malloc, free: median of rounds; fast: mean of the calls that were not slow; mean to p99: of all\n\
brk, mmap, faults: kernel calls (mmap, munmap, mremap, madvise together) and page faults of a round\n";

/// Which of the two calls.
type Of = fn(&malloc::Point) -> Option<&CallCost>;

fn of_malloc(point: &malloc::Point) -> Option<&CallCost> {
    point.malloc.as_ref()
}

fn of_free(point: &malloc::Point) -> Option<&CallCost> {
    point.free.as_ref()
}

fn library(preload: Option<&String>) -> &str {
    preload.map_or("libc", |path| path.rsplit('/').next().unwrap_or(path))
}

fn malloc_row(point: &malloc::Point) -> Vec<String> {
    let mut cells = vec![point.bytes.to_string(), library(point.preload.as_ref()).to_string()];
    for cost in [&point.malloc, &point.free] {
        let cost = cost.as_ref();
        cells.push(figure(cost.and_then(|cost| cost.median_ticks).map(|e| e.value)));
        cells.push(figure(cost.and_then(|cost| cost.fast_ticks).map(|e| e.value)));
        cells.push(figure(cost.map(|cost| cost.net_ticks.mean)));
        cells.push(figure(cost.and_then(|cost| cost.net_ticks.sd)));
        cells.push(figure(cost.map(|cost| cost.net_ticks.p99 as f64)));
    }
    for count in [BRK_CALLS, MMAP_CALLS, MINOR_FAULTS] {
        cells.push(figure(point.per_sample.get(count).copied()));
    }
    cells
}

fn overall_words(record: &Record, overall: &Overall) -> String {
    let mean = overall.malloc_mean_ticks.map(|estimate| estimate.value);
    let ns = record.ns_per_tick.zip(mean).map(|(ns, ticks)| ns * ticks);
    format!(
        "{} over all sizes: malloc {} ticks, fast {}, mean {} ({} ns); free {} ticks, mean {}",
        library(overall.preload.as_ref()),
        estimate_words(overall.malloc_median_ticks.as_ref()),
        estimate_words(overall.malloc_fast_ticks.as_ref()),
        figure(mean),
        figure(ns),
        estimate_words(overall.free_median_ticks.as_ref()),
        figure(overall.free_mean_ticks.map(|estimate| estimate.value)),
    )
}

fn slow_words(points: &[&malloc::Point], of: Of) -> String {
    let costs = || points.iter().copied().filter_map(of);
    let all: u64 = costs().map(|cost| cost.net_ticks.count).sum();
    let slow: Vec<&Slow> = costs().map(|cost| &cost.slow).collect();
    let calls: i64 = slow.iter().map(|slow| slow.calls).sum();
    if calls == 0 {
        return format!("none of {all}");
    }
    let causes = CAUSES.iter().filter_map(|cause| {
        let sum: i64 = slow.iter().filter_map(|slow| slow.causes.get(cause.name)).sum();
        (sum > 0).then(|| format!("{sum} {}", cause.in_words))
    });
    let shares: Vec<f64> = slow.iter().filter_map(|slow| slow.share).collect();
    let share = stats::median(&shares).map_or(String::new(), |share| {
        format!(", {:.0} % of the time (median of sizes)", share * 100.0)
    });
    format!("{calls} of {all}{share}: {}", causes.collect::<Vec<_>>().join("; "))
}

pub(crate) fn sampling(record: &Record, points: &[sampling::Point]) -> String {
    let mut table = table(["sleeping", "process", "account", "ms per s", "error %"]);
    for point in points {
        for process in &point.processes {
            for account in &ACCOUNTS {
                let told = process.accounts.get(account.name);
                let error = told.map(|told| match &told.error_percent {
                    Some(error) => estimate_words(Some(error)),
                    None => "(the truth)".to_string(),
                });
                table.add_row([
                    point.phase.to_string(),
                    process.process.clone(),
                    account.in_words.to_string(),
                    figure(told.map(|told| told.ms_per_s.value)),
                    error.unwrap_or_else(|| "-".to_string()),
                ]);
            }
        }
    }
    align(&mut table);
    let mut text = format!("{table}\n\n{SAMPLING_LEGEND}");
    let ticks: Vec<f64> = points.iter().filter_map(|p| p.tick_ns).map(|e| e.value).collect();
    if let Some(tick) = stats::median(&ticks) {
        // Writing to a String cannot fail.
        let _ =
            writeln!(text, "a tick every {} ms, by the kernel's word", figure(Some(tick / 1e6)));
    }
    let policy = record.cases.first().map_or(Policy::Other, |case| case.case.policy);
    let _ = writeln!(text, "the sleeper runs for half of its period, under policy {policy}");
    text.push_str("the precision below is that of the sleeper's share of the CPU; errors have intervals of their own\n");
    text
}

const SAMPLING_LEGEND: &str = "the whole against the scheduler's sum (CLOCK_PROCESS_CPUTIME_ID, schedstat), user time against threadclock around the\n  system calls; ticks: utime + stime as the kernel samples them\n\
precise on today's Linux: the scheduler's sum, and user + system of a process, which is scaled to it\n\
sampled by ticks: how that sum is split into user and system (getrusage, times, /proc/PID/stat, time(1), top)\n";

#[cfg(test)]
mod tests {
    use super::*;
    use model::estimate::Estimate;
    use model::trial::Quantity;

    fn call(name: &str, ticks: f64, sd: f64) -> overhead::CallCost {
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
        overhead::CallCost {
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
