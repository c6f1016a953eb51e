//! `clock malloc` on the terminal.

use std::fmt::Write;

use model::published::hines2000;
use model::trial::Record;
use model::trial::malloc::{
    BRK_CALLS, CAUSES, CallCost, Found, MINOR_FAULTS, MMAP_CALLS, Overall, Point, Slow,
};

use crate::report::parts::{align, estimate_words, figure, table};

pub(super) fn text(record: &Record, found: &Found) -> String {
    let mut table = table([
        "bytes", "by", "malloc", "fast", "mean", "SD", "p99", "free", "fast", "mean", "SD", "p99",
        "brk", "mmap", "faults",
    ]);
    for point in &found.points {
        table.add_row(row(point));
    }
    align(&mut table);
    let mut text = format!("{table}\n\n{LEGEND}");
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
        let own: Vec<&Point> =
            found.points.iter().filter(|point| point.preload == overall.preload).collect();
        for (what, of) in [("malloc", malloc as Of), ("free", free as Of)] {
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

const LEGEND: &str = "ticks of the thread's own CPU time; malloc, free: median of rounds; fast: mean of the calls that were not slow; mean to p99: of all\n\
brk, mmap, faults: kernel calls (mmap, munmap, mremap, madvise together) and page faults of a round\n";

/// Which of the two calls.
type Of = fn(&Point) -> Option<&CallCost>;

fn malloc(point: &Point) -> Option<&CallCost> {
    point.malloc.as_ref()
}

fn free(point: &Point) -> Option<&CallCost> {
    point.free.as_ref()
}

fn library(preload: Option<&String>) -> &str {
    preload.map_or("libc", |path| path.rsplit('/').next().unwrap_or(path))
}

fn row(point: &Point) -> Vec<String> {
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

fn slow_words(points: &[&Point], of: Of) -> String {
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
