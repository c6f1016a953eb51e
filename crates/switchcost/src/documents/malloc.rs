//! `classic experiment malloc`: what malloc and free cost, by size of the block.

use std::collections::BTreeMap;
use std::process::Command;

use analysis::estimate::Estimate;
use analysis::findings::malloc::{
    AllocationCost, AllocatorTotals, MallocFindings, MallocPoint, SlowCalls,
};
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
use crate::report::printout::{Printout, printout};
use crate::report::table::{Table, cells};
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

pub(crate) fn plan(args: &MallocArgs, here: &LocalHost) -> Result<PlanWithNotices> {
    args.preload.iter().try_for_each(|library| check_preload(library))?;
    let largest = args.sizes.iter().max().copied().unwrap_or(0);
    // What an allocator adds to a block, and what is noted of it.
    let each = u128::from(largest) + 96;
    here.check_memory(
        &format!("--sizes {largest} with --trials {}", args.trials),
        each * u128::from(args.trials),
        "smaller --sizes or fewer --trials",
    )?;
    let allocators = std::iter::once(None).chain(args.preload.iter().cloned().map(Some));
    let trials = allocators.flat_map(|preload| {
        let malloc =
            move |bytes: &u32| Trial::Malloc { bytes: u64::from(*bytes), preload: preload.clone() };
        args.sizes.iter().map(malloc)
    });
    let plan = TrialPlan {
        experiment: Experiment::ClockMalloc,
        trials: trials.collect(),
        policy: Policy::Other,
        repeats: args.trials,
        notices: Vec::new(),
    };
    plan.on_cpu(&args.common, here)
}

/// The dynamic linker passes over what it cannot load with a message: better once here than in
/// every worker.
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
    let said = String::from_utf8_lossy(&tried.stderr);
    match said.lines().next() {
        None if tried.status.success() => Ok(()),
        word => Err(usage(format!(
            "--preload {library}: {} (accepted: a path, or a name that the dynamic linker finds)",
            word.unwrap_or("this program does not start with it")
        ))),
    }
}

const MALLOC_LEGEND: &str = "ns of the thread's own CPU time; malloc, free: median of rounds; fast: mean of the \
     calls that were not slow; mean to p99: of all calls; -: less than the time stamps \
     around them\n\
     brk, mmap, faults: kernel calls (mmap, munmap, mremap, madvise together) and page \
     faults of a round\n";

pub(crate) fn text(record: &TrialRecord, found: &MallocFindings, view: View) -> ReportText {
    let several = found.overall.len() > 1;
    let mut columns = vec!["bytes"];
    columns.extend(several.then_some("by"));
    columns.extend(["malloc ns", "mean ns", "p99 ns", "free ns", "mean ns", "p99 ns"]);
    columns.extend((!several).then_some("faults"));
    let row = |point: &MallocPoint| {
        let mut cells = cells![point.bytes.to_string()].to_vec();
        cells.extend(several.then(|| library(point.preload.as_ref()).into()));
        for cost in [&point.malloc, &point.free] {
            let net = cost.as_ref().map(|cost| cost.net_ticks);
            cells
                .push(value(ticks_to_ns(record, cost.as_ref().and_then(|cost| cost.median_ticks))));
            cells.push(ticks_cell(record, net.map(|net| net.mean)).into());
            cells.push(ticks_cell(record, net.map(|net| net.p99 as f64)).into());
        }
        let faults = point.per_sample.get(MINOR_FAULTS).copied();
        cells.extend((!several).then(|| digits(faults).into()));
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
    ReportText {
        headline: answer(record, found),
        table: printout![Table::new(columns, found.points.iter().map(row)), "\n", then],
        details: details(record, found),
        findings: found
            .overall
            .iter()
            .flat_map(|of| slow_calls(found, of))
            .map(Into::into)
            .collect(),
        ..ReportText::default()
    }
}

/// What was slow, and why, of each allocator.
fn slow_calls(
    found: &MallocFindings,
    AllocatorTotals { preload, .. }: &AllocatorTotals,
) -> [String; 2] {
    let own = || found.points.iter().filter(|point| point.preload == *preload);
    let malloc = slow_words(own().filter_map(|point| point.malloc.as_ref()));
    let free = slow_words(own().filter_map(|point| point.free.as_ref()));
    let by = library(preload.as_ref());
    [format!("slow malloc calls by {by}: {malloc}"), format!("slow free calls by {by}: {free}")]
}

/// All columns, and each allocator over all sizes.
fn details(record: &TrialRecord, found: &MallocFindings) -> Printout {
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
    let table = Table::new(columns, found.points.iter().map(|point| row(record, point)));
    let overall: String = found.overall.iter().map(|of| overall_words(record, of)).collect();
    let is_traced = found.points.iter().all(|point| point.per_sample.contains_key(BRK_CALLS));
    let untraced = match is_traced {
        true => "",
        false => {
            "brk, mmap: not counted, as a child could not be traced here (ptrace(2); see \
             kernel.yama.ptrace_scope and seccomp)\n"
        }
    };
    printout![table, "\n\n", MALLOC_LEGEND, overall, untraced]
}

fn library(preload: Option<&String>) -> &str {
    preload.map_or("libc", |path| path.rsplit('/').next().unwrap_or(path))
}

fn row(record: &TrialRecord, point: &MallocPoint) -> Vec<MarkedText> {
    let mut cells = cells![point.bytes.to_string(), library(point.preload.as_ref())].to_vec();
    for cost in [&point.malloc, &point.free] {
        let cost = cost.as_ref();
        cells.extend(cells![
            value(ticks_to_ns(record, cost.and_then(|cost| cost.median_ticks))),
            value(ticks_to_ns(record, cost.and_then(|cost| cost.fast_ticks))),
            ticks_cell(record, cost.map(|cost| cost.net_ticks.mean)),
            ticks_cell(record, cost.and_then(|cost| cost.net_ticks.sd)),
            ticks_cell(record, cost.map(|cost| cost.net_ticks.p99 as f64)),
        ]);
    }
    let counts = [BRK_CALLS, MMAP_CALLS, MINOR_FAULTS];
    cells.extend(counts.map(|count| digits(point.per_sample.get(count).copied()).into()));
    cells
}

fn overall_words(record: &TrialRecord, overall: &AllocatorTotals) -> String {
    format!(
        "{} over all sizes, in ns: malloc {}, fast {}, mean {}; free {}, mean {}\n",
        library(overall.preload.as_ref()),
        estimate_words(ticks_to_ns(record, overall.malloc_median_ticks)),
        estimate_words(ticks_to_ns(record, overall.malloc_fast_ticks)),
        value(ticks_to_ns(record, overall.malloc_mean_ticks)),
        estimate_words(ticks_to_ns(record, overall.free_median_ticks)),
        value(ticks_to_ns(record, overall.free_mean_ticks)),
    )
}

fn slow_words<'a>(costs: impl Iterator<Item = &'a AllocationCost>) -> String {
    let costs: Vec<&AllocationCost> = costs.collect();
    let all: u64 = costs.iter().map(|cost| cost.net_ticks.count).sum();
    let slow: Vec<&SlowCalls> = costs.iter().map(|cost| &cost.slow).collect();
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

/// What a block costs over all sizes, by each allocator.
fn answer(record: &TrialRecord, found: &MallocFindings) -> MarkedText {
    let sizes = || found.points.iter().map(|point| point.bytes);
    let of = |overall: &AllocatorTotals| {
        let by = overall.preload.as_ref().map_or(String::new(), |library| format!(" of {library}"));
        let malloc = match ticks_to_ns(record, overall.malloc_median_ticks)?.quote_cost() {
            Ok(malloc) => marked![format!("malloc{by} takes "), malloc.marked_time()],
            Err(why) => format!("what malloc{by} takes: {}", why.with_time_unit()).into(),
        };
        let free =
            ticks_to_ns(record, overall.free_median_ticks).and_then(|free| free.quote_cost().ok());
        let free = free.map(|free| format!(", free {}", words::time(free.value())));
        Some(malloc + &free.unwrap_or_default())
    };
    let costs: Vec<MarkedText> = found.overall.iter().filter_map(of).collect();
    let sizes = sizes().min().zip(sizes().max()).filter(|_| !costs.is_empty());
    let sizes = match sizes {
        None => return "What malloc costs was not measured.".into(),
        Some((least, most)) if least == most => format!(": blocks of {least} bytes."),
        Some((least, most)) => format!(": means over sizes of {least} to {most} bytes."),
    };
    marked![MarkedText::join(costs, "; "), sizes]
}

pub(crate) fn figure(record: &TrialRecord, found: &MallocFindings, index: usize) -> Option<Figure> {
    let mut by_name: BTreeMap<String, Vec<(f64, Option<Estimate>)>> = BTreeMap::new();
    for point in &found.points {
        let library = point.preload.as_ref().map_or(String::new(), |name| format!(" by {name}"));
        for (call, cost) in [("malloc", &point.malloc), ("free", &point.free)] {
            let ns = ticks_to_ns(record, cost.as_ref().and_then(|cost| cost.median_ticks));
            by_name.entry(format!("{call}{library}")).or_default().push((point.bytes as f64, ns));
        }
    }
    let axes = (Axis::new("block", Unit::Bytes, Scale::Log), nanoseconds("time of a call"));
    let of_library = |of: &AllocatorTotals| {
        let library = of.preload.as_deref().unwrap_or("the C library");
        let malloc = cost(&ticks_to_ns(record, of.malloc_median_ticks)?);
        Some(format!(" A malloc by {library}, the median over sizes of blocks: {malloc}."))
    };
    let overall: String = found.overall.iter().filter_map(of_library).collect();
    let in_words = format!("Median time of one call by the size of the block.{overall}");
    let series = by_name.into_iter().map(|(name, at)| measured_line(name, index, at));
    lines(CLOCK_MALLOC, "What malloc and free cost", in_words, axes, series)
}
