//! `classic experiment malloc`: what malloc and free cost, by size of the block, and why some calls
//! are slow. (Hines, Wyatt and Chang 2000)
//!
//! Most calls take a block from a list, in some tens of nanoseconds. A few take a hundred times as
//! long: they touch a page for the first time, or the heap grows by a system call. The mean is the
//! paper's figure; the median, and the mean of the fast calls, say what most calls cost.

use std::collections::BTreeMap;
use std::process::Command;

use analysis::estimate::Estimate;
use analysis::findings::malloc::{AllocationCost, AllocatorTotals, MallocFindings, MallocPoint};
use analysis::marked;
use analysis::marked::MarkedText;
use analysis::published::hines2000;
use analysis::quote::cost;
use analysis::record::TrialRecord;
use anyhow::{Context, Result};
use charts::{Axis, Figure, Scale, Unit};
use clap::Args;
use rundata::experiment::Experiment;
use rundata::ring::Policy;
use rundata::trial::Trial;
use rundata::trial::malloc::{BRK_CALLS, CAUSES, MINOR_FAULTS, MMAP_CALLS};
use rundata::words;

use crate::base::failure::usage;
use crate::base::values::{List, counts, whole};
use crate::engine::setting::{LocalHost, PlanWithNotices};
use crate::experiments::clock::{
    MOST_TRIALS, OneCpuArgs, TrialPlan, measured_line, ticks_cell, ticks_to_ns,
};
use crate::report::figures::{CLOCK_MALLOC, lines, nanoseconds};
use crate::report::output::columns::Columns;
use crate::report::printout::{Printout, printout};
use crate::report::table::Table;
use crate::report::terminal::{ReportText, View, estimate_words, figure as digits, value};

#[derive(Debug, Args)]
pub(crate) struct MallocArgs {
    /// Sizes of a block in bytes: a list, a range (100..5000:100) or a geometric one (16..65536:x2)
    #[arg(long, value_name = "LIST", value_parser = counts, default_value = "100..5000:100")]
    pub(crate) sizes: List<u32>,

    /// Blocks in each round: all are allocated, then all are freed
    #[arg(long, value_name = "COUNT", default_value = "1000", value_parser = whole(1..=MOST_TRIALS))]
    pub(crate) trials: u32,

    /// Another allocator beside the C library's, as LD_PRELOAD takes it: libjemalloc.so.2
    #[arg(long, value_name = "LIBRARY")]
    pub(crate) preload: Vec<String>,

    #[command(flatten)]
    pub(crate) common: OneCpuArgs,
}

/// Memory that a block takes beside its own bytes: the allocator's header, and what is noted of it.
const BLOCK_OVERHEAD_BYTES: u128 = 96;

pub(crate) fn plan(args: &MallocArgs, here: &LocalHost) -> Result<PlanWithNotices> {
    for library in &args.preload {
        check_preload(library)?;
    }
    let largest = args.sizes.iter().max().copied().unwrap_or(0);
    here.check_memory(
        &format!("--sizes {largest} with --trials {}", args.trials),
        (u128::from(largest) + BLOCK_OVERHEAD_BYTES) * u128::from(args.trials),
        "smaller --sizes or fewer --trials",
    )?;
    let mut trials = malloc_trials(&args.sizes, None);
    for library in &args.preload {
        trials.extend(malloc_trials(&args.sizes, Some(library)));
    }
    let plan = TrialPlan {
        experiment: Experiment::ClockMalloc,
        trials,
        policy: Policy::Other,
        repeats: args.trials,
        notices: Vec::new(),
    };
    plan.on_cpu(&args.common, here)
}

/// Returns a trial for each size by an allocator, the C library's if none is preloaded.
fn malloc_trials(sizes: &List<u32>, preload: Option<&String>) -> Vec<Trial> {
    let mut trials = Vec::new();
    for bytes in sizes.iter() {
        trials.push(Trial::Malloc { bytes: u64::from(*bytes), preload: preload.cloned() });
    }
    trials
}

/// Checks that a library can be preloaded: the dynamic linker ignores one that it cannot load, with a
/// message that would come from every worker.
fn check_preload(library: &str) -> Result<()> {
    if library.trim().is_empty() {
        return Err(usage(format!("--preload '{library}': the name of a library is wanted")));
    }
    if probe::has_file_privileges() {
        return Err(usage(format!(
            "--preload {library}: this program's file has capabilities, and the dynamic linker \
             loads nothing else into it then: use a copy of it (cp keeps none)"
        )));
    }
    let tried = Command::new("/proc/self/exe")
        .arg("--version")
        .env("LD_PRELOAD", library)
        .output()
        .context("cannot try --preload: /proc/self/exe (is /proc mounted?)")?;
    let message = String::from_utf8_lossy(&tried.stderr);
    let first_line = message.lines().next();
    if first_line.is_none() && tried.status.success() {
        return Ok(());
    }
    let why = first_line.unwrap_or("this program does not start with it");
    Err(usage(format!(
        "--preload {library}: {why} (accepted: a path, or a name that the dynamic linker finds)"
    )))
}

const MALLOC_LEGEND: &str = "ns of the thread's own CPU time; malloc, free: median of rounds; fast: mean of the \
     calls that were not slow; mean to p99: of all calls; -: less than the time stamps \
     around them\n\
     brk, mmap, faults: kernel calls (mmap, munmap, mremap, madvise together) and page \
     faults of a round\n";

pub(crate) fn text(record: &TrialRecord, findings: &MallocFindings, view: View) -> ReportText {
    let published = if view.history { published_mean() } else { String::new() };
    let mut lines: Vec<MarkedText> = Vec::new();
    for allocator in &findings.overall {
        lines.extend(slow_call_lines(findings, allocator).map(MarkedText::from));
    }
    ReportText {
        headline: answer(record, findings),
        table: printout![short_table(record, findings), "\n", published],
        details: details(record, findings),
        findings: lines,
        ..ReportText::default()
    }
}

fn published_mean() -> String {
    let cycles = hines2000::MALLOC_CYCLES;
    format!(
        "\nin 2000: {cycles} cycles, {:.2} us at 166 MHz (the mean of Doug Lea's malloc over \
             the same sizes)\n",
        cycles / 166.0
    )
}

/// Returns the table that the answer rests on. Of several allocators it names each, and leaves out
/// page faults.
fn short_table(record: &TrialRecord, findings: &MallocFindings) -> Table {
    let has_several = findings.overall.len() > 1;
    let mut columns = Columns::<&MallocPoint>::new().right("bytes", |point| point.bytes);
    if has_several {
        columns = columns.right("by", |point| library(point.preload.as_ref()).to_string());
    }
    columns = columns
        .marked_figure("malloc ns", |point| median_cell(record, &point.malloc))
        .right("mean ns", |point| mean_cell(record, &point.malloc))
        .right("p99 ns", |point| p99_cell(record, &point.malloc))
        .marked_figure("free ns", |point| median_cell(record, &point.free))
        .right("mean ns", |point| mean_cell(record, &point.free))
        .right("p99 ns", |point| p99_cell(record, &point.free));
    if !has_several {
        columns = columns.right("faults", |point| count_cell(point, MINOR_FAULTS));
    }
    columns.table(&findings.points)
}

/// Returns the table with all figures.
fn whole_table(record: &TrialRecord, findings: &MallocFindings) -> Table {
    let columns = Columns::<&MallocPoint>::new()
        .right("bytes", |point| point.bytes)
        .right("by", |point| library(point.preload.as_ref()).to_string())
        .marked_figure("malloc ns", |point| median_cell(record, &point.malloc))
        .marked_figure("fast", |point| fast_cell(record, &point.malloc))
        .right("mean", |point| mean_cell(record, &point.malloc))
        .right("SD", |point| sd_cell(record, &point.malloc))
        .right("p99", |point| p99_cell(record, &point.malloc))
        .marked_figure("free ns", |point| median_cell(record, &point.free))
        .marked_figure("fast", |point| fast_cell(record, &point.free))
        .right("mean", |point| mean_cell(record, &point.free))
        .right("SD", |point| sd_cell(record, &point.free))
        .right("p99", |point| p99_cell(record, &point.free))
        .right("brk", |point| count_cell(point, BRK_CALLS))
        .right("mmap", |point| count_cell(point, MMAP_CALLS))
        .right("faults", |point| count_cell(point, MINOR_FAULTS));
    columns.table(&findings.points)
}

fn median_cell(record: &TrialRecord, cost: &Option<AllocationCost>) -> MarkedText {
    value(median_ns(record, cost))
}

fn fast_cell(record: &TrialRecord, cost: &Option<AllocationCost>) -> MarkedText {
    value(ticks_to_ns(record, cost.as_ref().and_then(|cost| cost.fast_ticks)))
}

fn mean_cell(record: &TrialRecord, cost: &Option<AllocationCost>) -> String {
    ticks_cell(record, cost.as_ref().map(|cost| cost.net_ticks.mean))
}

fn sd_cell(record: &TrialRecord, cost: &Option<AllocationCost>) -> String {
    ticks_cell(record, cost.as_ref().and_then(|cost| cost.net_ticks.sd))
}

fn p99_cell(record: &TrialRecord, cost: &Option<AllocationCost>) -> String {
    ticks_cell(record, cost.as_ref().map(|cost| cost.net_ticks.p99 as f64))
}

fn count_cell(point: &MallocPoint, name: &str) -> String {
    digits(point.per_sample.get(name).copied())
}

/// Returns the median of a call in nanoseconds, over rounds.
fn median_ns(record: &TrialRecord, cost: &Option<AllocationCost>) -> Option<Estimate> {
    ticks_to_ns(record, cost.as_ref()?.median_ticks)
}

/// Names an allocator by the file of its library.
fn library(preload: Option<&String>) -> &str {
    preload.map_or("libc", |path| path.rsplit('/').next().unwrap_or(path))
}

/// Returns all figures, and each allocator over all sizes.
fn details(record: &TrialRecord, findings: &MallocFindings) -> Printout {
    let mut totals = String::new();
    for allocator in &findings.overall {
        totals += &totals_line(record, allocator);
    }
    let is_traced = findings.points.iter().all(|point| point.per_sample.contains_key(BRK_CALLS));
    let untraced = if is_traced {
        ""
    } else {
        "brk, mmap: not counted, as a child could not be traced here (ptrace(2); see \
             kernel.yama.ptrace_scope and seccomp)\n"
    };
    printout![whole_table(record, findings), "\n\n", MALLOC_LEGEND, totals, untraced]
}

fn totals_line(record: &TrialRecord, allocator: &AllocatorTotals) -> String {
    format!(
        "{} over all sizes, in ns: malloc {}, fast {}, mean {}; free {}, mean {}\n",
        library(allocator.preload.as_ref()),
        estimate_words(ticks_to_ns(record, allocator.malloc_median_ticks)),
        estimate_words(ticks_to_ns(record, allocator.malloc_fast_ticks)),
        value(ticks_to_ns(record, allocator.malloc_mean_ticks)),
        estimate_words(ticks_to_ns(record, allocator.free_median_ticks)),
        value(ticks_to_ns(record, allocator.free_mean_ticks)),
    )
}

/// Returns two lines on an allocator's slow calls, of malloc and of free.
fn slow_call_lines(findings: &MallocFindings, allocator: &AllocatorTotals) -> [String; 2] {
    let (mut malloc, mut free) = (Vec::new(), Vec::new());
    for point in findings.points.iter().filter(|point| point.preload == allocator.preload) {
        malloc.extend(&point.malloc);
        free.extend(&point.free);
    }
    let by = library(allocator.preload.as_ref());
    [
        format!("slow malloc calls by {by}: {}", slow_words(&malloc)),
        format!("slow free calls by {by}: {}", slow_words(&free)),
    ]
}

/// Says how many calls of all sizes were slow, their share of the time, and how often each cause was
/// seen.
fn slow_words(costs: &[&AllocationCost]) -> String {
    let calls: u64 = costs.iter().map(|cost| cost.net_ticks.count).sum();
    let mut slow_calls: i64 = 0;
    let mut shares = Vec::new();
    for cost in costs {
        slow_calls = slow_calls.saturating_add(cost.slow.calls);
        shares.extend(cost.slow.share);
    }
    if slow_calls == 0 {
        return format!("none of {calls}");
    }
    let mut causes = Vec::new();
    for cause in CAUSES {
        let count = cause_count(costs, cause.name);
        if count > 0 {
            causes.push(format!("{count} {}", cause.in_words));
        }
    }
    let share = match stats::median(&shares) {
        Some(share) => format!(", {:.0} % of the time (median of sizes)", share * 100.0),
        None => String::new(),
    };
    format!("{slow_calls} of {calls}{share}: {}", causes.join("; "))
}

fn cause_count(costs: &[&AllocationCost], cause: &str) -> i64 {
    let mut sum: i64 = 0;
    for cost in costs {
        sum = sum.saturating_add(cost.slow.causes.get(cause).copied().unwrap_or(0));
    }
    sum
}

/// Says what a call costs by each allocator, over all sizes.
fn answer(record: &TrialRecord, findings: &MallocFindings) -> MarkedText {
    let mut costs = Vec::new();
    for allocator in &findings.overall {
        costs.extend(allocator_words(record, allocator));
    }
    let least = findings.points.iter().map(|point| point.bytes).min();
    let most = findings.points.iter().map(|point| point.bytes).max();
    let sizes = match (least, most) {
        (Some(least), Some(most)) if least == most => format!(": blocks of {least} bytes."),
        (Some(least), Some(most)) => format!(": means over sizes of {least} to {most} bytes."),
        _ => String::new(),
    };
    if costs.is_empty() || sizes.is_empty() {
        return "malloc was not measured.".into();
    }
    marked![MarkedText::join(costs, "; "), sizes]
}

/// Says what malloc and free cost by an allocator; absent if malloc was not measured.
fn allocator_words(record: &TrialRecord, allocator: &AllocatorTotals) -> Option<MarkedText> {
    let by = match &allocator.preload {
        Some(library) => format!(" of {library}"),
        None => String::new(),
    };
    let malloc = match ticks_to_ns(record, allocator.malloc_median_ticks)?.quote_cost() {
        Ok(malloc) => marked![format!("malloc{by} takes "), malloc.marked_time()],
        Err(why) => format!("what malloc{by} takes: {}", why.with_time_unit()).into(),
    };
    let free = ticks_to_ns(record, allocator.free_median_ticks);
    match free.map(|free| free.quote_cost()) {
        Some(Ok(free)) => Some(malloc + &format!(", free {}", words::time(free.value()))),
        _ => Some(malloc),
    }
}

/// Draws the median of malloc and of free by each allocator against the size of the block.
pub(crate) fn figure(
    record: &TrialRecord,
    findings: &MallocFindings,
    index: usize,
) -> Option<Figure> {
    let mut costs: BTreeMap<String, Vec<(f64, Option<Estimate>)>> = BTreeMap::new();
    for point in &findings.points {
        let by = match &point.preload {
            Some(library) => format!(" by {library}"),
            None => String::new(),
        };
        let bytes = point.bytes as f64;
        let malloc = (bytes, median_ns(record, &point.malloc));
        let free = (bytes, median_ns(record, &point.free));
        costs.entry(format!("malloc{by}")).or_default().push(malloc);
        costs.entry(format!("free{by}")).or_default().push(free);
    }
    let mut series = Vec::new();
    for (name, costs) in costs {
        series.push(measured_line(name, index, costs));
    }
    let mut in_words = "Median time of one call by the size of the block.".to_string();
    for allocator in &findings.overall {
        let Some(malloc) = ticks_to_ns(record, allocator.malloc_median_ticks) else { continue };
        let library = allocator.preload.as_deref().unwrap_or("the C library");
        let malloc = cost(&malloc);
        in_words += &format!(" A malloc by {library}, the median over sizes of blocks: {malloc}.");
    }
    let axes = (Axis::new("block", Unit::Bytes, Scale::Log), nanoseconds("time of a call"));
    lines(CLOCK_MALLOC, "What malloc and free cost", in_words, axes, series)
}
