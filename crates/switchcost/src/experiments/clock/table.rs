//! `switchcost clock` on the terminal.

use model::case::Policy;
use model::estimate::Estimate;
use model::findings::malloc::{self, CallCost, Overall, Slow};
use model::findings::overhead;
use model::findings::primes::{self, Against, Timed};
use model::findings::sampling;
use model::published::hines2000;
use model::quote::NotQuotable;
use model::record::Trials;
use model::trial::malloc::{BRK_CALLS, CAUSES, MINOR_FAULTS, MMAP_CALLS};
use model::trial::primes::{GETRUSAGE_NS, GETRUSAGE_THREAD_NS, GETRUSAGE_USER_NS, THREADCLOCK_NS};
use model::trial::sampling::ACCOUNTS;

use super::{answer, ns};
use crate::experiments::measures;
use crate::present::terminal::{
    CLOCK_LEGEND, GHZ, Text, Told, View, at_clock, count, difference, estimate_words, figure,
    table, told_value, told_words, value,
};

/// What calls took, in ticks, in nanoseconds; a dash where it came out as less than the time stamps
/// around them.
fn ns_of(record: &Trials, ticks: Option<f64>) -> String {
    let ticks = ticks.filter(|ticks| *ticks >= 0.0);
    figure(record.found.ns_per_tick.zip(ticks).map(|(ns, ticks)| ns * ticks))
}

/// Cycles and GHz of a case, where they are asked for.
fn clock_of(record: &Trials, case: usize, view: View) -> impl Iterator<Item = String> {
    let case = &record.cases[case];
    view.wide.then(|| at_clock(case.cycles, case.clock_ghz)).into_iter().flatten()
}

const OVERHEAD_LEGEND: &str = "in a row: ns per call of a hundred calls one after the other, \
     median of rounds and 95 % interval; alone: ns of one call\n  less what the two time stamps \
     around it cost, median of rounds\nmean to p99: ns of all single calls, less the time stamps, \
     interruptions included; -: less than these\n";

pub(crate) fn overhead(record: &Trials, found: &overhead::Found, view: View) -> Text {
    let table = measures::measures(record, "call", view);
    let step = found.step_ticks.map_or(String::new(), |step| {
        format!(
            "the counter goes on in steps of about {step:.0} ticks: a single short call is \
             told no better\n"
        )
    });
    let clock = if view.wide { CLOCK_LEGEND } else { "" };
    let then = view.history.then(|| format!("\n{}", beside_the_paper(&found.calls)));
    Text {
        headline: answer::overhead(record),
        table: format!("{table}\n{}", then.unwrap_or_default()),
        details: format!("{}\n\n{OVERHEAD_LEGEND}{clock}{step}", single_calls(record, found)),
        ..Text::default()
    }
}

/// What single calls took.
fn single_calls(record: &Trials, found: &overhead::Found) -> comfy_table::Table {
    let row = |call: &overhead::CallCost| {
        let net = &call.net_ticks;
        let whole = [net.min, net.p50, net.p99, net.max].map(|ticks| Some(ticks as f64));
        let figures = [Some(net.mean), net.sd].into_iter().chain(whole);
        let cells = figures.map(|ticks| ns_of(record, ticks));
        let rounds = record.cases[call.case].rounds.to_string();
        let cells = std::iter::once(call.call.clone()).chain(cells).chain([rounds]);
        cells.collect::<Vec<String>>()
    };
    let columns = ["call", "mean ns", "SD ns", "min ns", "p50 ns", "p99 ns", "max ns", "rounds"];
    table(columns, found.calls.iter().map(row))
}

/// Table 1 of the paper, and the same calls here: threadclock's, and the system call where there is
/// one.
fn beside_the_paper(calls: &[overhead::CallCost]) -> String {
    let call = |name: &str| calls.iter().find(|call| call.call == name);
    let in_a_row = |call: &overhead::CallCost| {
        call.back_to_back_ticks?.quote_cost().ok().map(|ticks| ticks.value())
    };
    let ticks = |call: &overhead::CallCost| {
        format!("{} ticks (SD {})", figure(call.net_ticks.mean), figure(call.net_ticks.sd))
    };
    let (then, theirs) = (hines2000::GETRUSAGE, hines2000::GETPINFO);
    let cycles = |of: &hines2000::Call| format!("{} cycles (SD {})", of.mean_cycles, of.sd_cycles);
    let ratio_then = then.mean_cycles / theirs.mean_cycles;
    let way = |(name, words): (&str, &str)| {
        let (usage, info) = (call("getrusage")?, call(name)?);
        let ratio = in_a_row(usage)? / in_a_row(info)?;
        Some(format!(
            "getrusage / {words}: {} / {} alone, {} in a row; {} / {} = {ratio_then:.2} in 2000\n",
            ticks(usage),
            ticks(info),
            figure(ratio),
            cycles(&then),
            cycles(&theirs)
        ))
    };
    let ways = [
        ("getpinfo-self", "getpinfo of oneself"),
        ("getpinfo-call", "getpinfo, the system call, of oneself"),
    ];
    ways.into_iter().filter_map(way).collect()
}

/// Names of the ways of timing in words.
const WAYS: [(&str, &str); 3] = [
    (GETRUSAGE_NS, "getrusage(RUSAGE_SELF), user + system"),
    (GETRUSAGE_USER_NS, "getrusage(RUSAGE_SELF), user alone"),
    (GETRUSAGE_THREAD_NS, "getrusage(RUSAGE_THREAD), user + system"),
];

const PRIMES_LEGEND: &str = "mean, SD: CPU time per trial by threadclock; self, thread: by \
     getrusage(RUSAGE_SELF) and of RUSAGE_THREAD, user + system;\n  means less those of empty \
     trials, medians of rounds, at whatever speed; mean cycles: threadclock's at full speed\n\
     gain: how much larger that SD is than threadclock's, in percent\n";

pub(crate) fn primes(record: &Trials, found: &primes::Found, view: View) -> Text {
    let mut columns = vec!["primes", "mean us", "SD us"];
    columns.extend(["self us", "SD us", "gain %", "thread us", "SD us", "gain %"]);
    columns.extend(view.wide.then_some(["mean cycles", GHZ]).into_iter().flatten());
    let verdicts = WAYS.iter().filter_map(|(name, words)| {
        Some(format!("{words}: {}", verdict(found.overall.get(*name)?)))
    });
    let then = view.history.then(|| {
        format!(
            "\nin 2000 the gain of getpinfo over getrusage was {} %, which went on in ticks of \
             10 ms\n",
            hines2000::PRECISION_GAIN_PERCENT
        )
    });
    let table = table(columns, found.points.iter().map(|point| primes_row(record, point, view)));
    Text {
        headline: answer::primes(record, found),
        table: format!("{table}\n{}", then.unwrap_or_default()),
        details: format!("{PRIMES_LEGEND}{}", if view.wide { CLOCK_LEGEND } else { "" }),
        findings: verdicts.collect(),
        ..Text::default()
    }
}

fn primes_row(record: &Trials, point: &primes::Point, view: View) -> Vec<String> {
    let us = |way: &str, of: fn(&Timed) -> Estimate| {
        told_value(count(point.timed.get(way).and_then(|timed| of(timed).scaled(1e-3))))
    };
    let mut cells = vec![point.primes.to_string()];
    for way in [THREADCLOCK_NS, GETRUSAGE_NS, GETRUSAGE_THREAD_NS] {
        cells.push(us(way, |timed| timed.mean_ns));
        cells.push(us(way, |timed| timed.sd_ns));
        cells.extend(
            point.against.get(way).map(|against| told_value(difference(against.gain_percent))),
        );
    }
    cells.extend(clock_of(record, point.case, view));
    cells
}

fn verdict(against: &Against) -> String {
    let gain = match against.gain_percent {
        None => "its results never scattered, or threadclock's did not".to_string(),
        gain => format!("what threadclock gains in precision, %: {}", told_words(difference(gain))),
    };
    let of_means = difference(against.mean_difference_percent);
    let percent = told_words(of_means);
    let means = match of_means {
        None => "nothing to compare means by".to_string(),
        Some(Ok(_)) => format!("means differ by {percent} %"),
        Some(Err(NotQuotable::NotResolved { low, high })) => {
            format!("means agree to {} % ({percent} %)", figure(low.abs().max(high.abs())))
        }
        Some(Err(why)) => format!("means: {why}"),
    };
    format!("{gain}; {means}")
}

const MALLOC_LEGEND: &str = "ns of the thread's own CPU time; malloc, free: median of rounds; \
     fast: mean of the calls that were not slow; mean to p99: of all, -: less than the time \
     stamps around them\nbrk, mmap, faults: kernel calls (mmap, munmap, mremap, madvise together) \
     and page faults of a round\n";

pub(crate) fn malloc(record: &Trials, found: &malloc::Found, view: View) -> Text {
    let several = found.overall.len() > 1;
    let mut columns = vec!["bytes"];
    columns.extend(several.then_some("by"));
    columns.extend(["malloc ns", "mean ns", "p99 ns", "free ns", "mean ns", "p99 ns"]);
    columns.extend((!several).then_some("faults"));
    let row = |point: &malloc::Point| {
        let mut cells = vec![point.bytes.to_string()];
        cells.extend(several.then(|| library(point.preload.as_ref()).to_string()));
        for cost in [&point.malloc, &point.free] {
            let net = cost.as_ref().map(|cost| cost.net_ticks);
            cells.push(value(ns(record, cost.as_ref().and_then(|cost| cost.median_ticks))));
            cells.push(ns_of(record, net.map(|net| net.mean)));
            cells.push(ns_of(record, net.map(|net| net.p99 as f64)));
        }
        let faults = point.per_sample.get(MINOR_FAULTS).copied();
        cells.extend((!several).then(|| figure(faults)));
        cells
    };
    let cycles = hines2000::MALLOC_CYCLES;
    let then = view.history.then(|| {
        format!(
            "\nin 2000: {cycles} cycles, {:.2} us at 166 MHz (the mean of Doug Lea's malloc over \
             the same sizes)\n",
            cycles / 166.0
        )
    });
    Text {
        headline: answer::malloc(record, found),
        table: format!(
            "{}\n{}",
            table(columns, found.points.iter().map(row)),
            then.unwrap_or_default()
        ),
        details: malloc_details(record, found),
        findings: found.overall.iter().flat_map(|of| slow_calls(found, of)).collect(),
        ..Text::default()
    }
}

/// What was slow, and why, of each allocator.
fn slow_calls(found: &malloc::Found, Overall { preload, .. }: &Overall) -> [String; 2] {
    let own = || found.points.iter().filter(|point| point.preload == *preload);
    let malloc = slow_words(own().filter_map(|point| point.malloc.as_ref()));
    let free = slow_words(own().filter_map(|point| point.free.as_ref()));
    let by = library(preload.as_ref());
    [format!("slow malloc calls by {by}: {malloc}"), format!("slow free calls by {by}: {free}")]
}

/// All columns, and each allocator over all sizes.
fn malloc_details(record: &Trials, found: &malloc::Found) -> String {
    let columns = [
        "bytes",
        "by",
        "malloc ns",
        "fast",
        "mean",
        "SD",
        "p99",
        "free ns",
        "fast",
        "mean",
        "SD",
        "p99",
        "brk",
        "mmap",
        "faults",
    ];
    let table = table(columns, found.points.iter().map(|point| malloc_row(record, point)));
    let overall: String = found.overall.iter().map(|of| overall_words(record, of)).collect();
    let is_traced = found.points.iter().all(|point| point.per_sample.contains_key(BRK_CALLS));
    let untraced = match is_traced {
        true => "",
        false => {
            "brk, mmap: not counted, as a child could not be traced here (ptrace(2); see \
             kernel.yama.ptrace_scope and seccomp)\n"
        }
    };
    format!("{table}\n\n{MALLOC_LEGEND}{overall}{untraced}")
}

fn library(preload: Option<&String>) -> &str {
    preload.map_or("libc", |path| path.rsplit('/').next().unwrap_or(path))
}

fn malloc_row(record: &Trials, point: &malloc::Point) -> Vec<String> {
    let mut cells = vec![point.bytes.to_string(), library(point.preload.as_ref()).to_string()];
    for cost in [&point.malloc, &point.free] {
        let cost = cost.as_ref();
        cells.extend([
            value(ns(record, cost.and_then(|cost| cost.median_ticks))),
            value(ns(record, cost.and_then(|cost| cost.fast_ticks))),
            ns_of(record, cost.map(|cost| cost.net_ticks.mean)),
            ns_of(record, cost.and_then(|cost| cost.net_ticks.sd)),
            ns_of(record, cost.map(|cost| cost.net_ticks.p99 as f64)),
        ]);
    }
    let counts = [BRK_CALLS, MMAP_CALLS, MINOR_FAULTS];
    cells.extend(counts.map(|count| figure(point.per_sample.get(count).copied())));
    cells
}

fn overall_words(record: &Trials, overall: &Overall) -> String {
    format!(
        "{} over all sizes, in ns: malloc {}, fast {}, mean {}; free {}, mean {}\n",
        library(overall.preload.as_ref()),
        estimate_words(ns(record, overall.malloc_median_ticks)),
        estimate_words(ns(record, overall.malloc_fast_ticks)),
        value(ns(record, overall.malloc_mean_ticks)),
        estimate_words(ns(record, overall.free_median_ticks)),
        value(ns(record, overall.free_mean_ticks)),
    )
}

fn slow_words<'a>(costs: impl Iterator<Item = &'a CallCost>) -> String {
    let costs: Vec<&CallCost> = costs.collect();
    let all: u64 = costs.iter().map(|cost| cost.net_ticks.count).sum();
    let slow: Vec<&Slow> = costs.iter().map(|cost| &cost.slow).collect();
    let calls = slow.iter().map(|slow| slow.calls).fold(0, i64::saturating_add);
    if calls == 0 {
        return format!("none of {all}");
    }
    let causes = CAUSES.iter().filter_map(|cause| {
        let of_cause = slow.iter().filter_map(|slow| slow.causes.get(cause.name));
        let sum = of_cause.copied().fold(0, i64::saturating_add);
        (sum > 0).then(|| format!("{sum} {}", cause.in_words))
    });
    let shares: Vec<f64> = slow.iter().filter_map(|slow| slow.share).collect();
    let share = stats::median(&shares).map_or(String::new(), |share| {
        format!(", {:.0} % of the time (median of sizes)", share * 100.0)
    });
    format!("{calls} of {all}{share}: {}", causes.collect::<Vec<_>>().join("; "))
}

const SAMPLING_LEGEND: &str = "the whole against the scheduler's sum (CLOCK_PROCESS_CPUTIME_ID, \
     schedstat), user time against threadclock around the\n  system calls; ticks: utime + stime \
     as the kernel samples them\nprecise on today's Linux: the scheduler's sum, and user + system \
     of a process, which is scaled to it\nsampled by ticks: how that sum is split into user and \
     system (getrusage, times, /proc/PID/stat, time(1), top)\n";

pub(crate) fn sampling(record: &Trials, points: &[sampling::Point]) -> Text {
    let columns = ["sleeping", "process", "account", "ms per s", "error %"];
    let ticks: Vec<f64> = points.iter().filter_map(|p| p.tick_ns).map(|e| e.value).collect();
    let tick = stats::median(&ticks).map_or(String::new(), |tick| {
        format!("a tick every {} ms, as the kernel reports it\n", figure(tick / 1e6))
    });
    let policy = record.cases.first().map_or(Policy::Other, |case| case.case.policy);
    let details = format!(
        "{}\n\n{SAMPLING_LEGEND}{tick}the sleeper runs for half of its period, under policy \
         {policy}\nthe precision below is that of the sleeper's share of the CPU; errors have \
         intervals of their own\n",
        table(columns, accounts(points, told_words))
    );
    Text {
        headline: answer::sampling(points),
        table: format!("{}\n", table(columns, accounts(points, told_value))),
        details,
        ..Text::default()
    }
}

/// A row for each account of each process in each phase; `error` writes how far it is off, in
/// percent.
fn accounts(points: &[sampling::Point], error: impl Fn(Told) -> String) -> Vec<[String; 5]> {
    let mut rows = Vec::new();
    for (point, process) in points.iter().flat_map(|of| of.processes.iter().map(move |p| (of, p))) {
        for account in &ACCOUNTS {
            let reading = process.accounts.get(account.name);
            let error = match reading.map(|of| of.error_percent) {
                Some(None) => "(the truth)".to_string(),
                off => error(difference(off.flatten())),
            };
            rows.push([
                point.phase.to_string(),
                process.process.clone(),
                account.in_words.to_string(),
                told_value(count(reading.map(|of| of.ms_per_s))),
                error,
            ]);
        }
    }
    rows
}

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
            low: Some(0.9 * ticks),
            high: Some(1.1 * ticks),
            confidence: 0.95,
            resolved: true,
            rounds: 6,
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
